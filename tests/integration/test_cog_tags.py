#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""What a COG has besides pixels, read back by GDAL: masks inside the file and of its overviews, colours, scale and offset."""
import hashlib
import itertools
import json

import numpy as np
from osgeo import gdal
from osgeo_utils.samples import validate_cloud_optimized_geotiff as validator

import pbtest
from test_grids import same, write

gdal.UseExceptions()


def holes(shape, seed=5):
    """Pixels 0 .. 255 of three bands; each band has holes of its own, and all have one."""
    numbers = np.random.default_rng(seed)
    pixels = numbers.integers(0, 256, (3, *shape)).astype(np.float32)
    pixels[numbers.random(pixels.shape) < 0.02] = np.nan
    pixels[:, shape[0] // 4:shape[0] // 2, shape[1] // 3:] = np.nan
    pixels[:, :64, :64] = np.nan
    return pixels


def scene_of(path, pixels):
    return write(path, np.where(np.isnan(pixels), -1, pixels).astype(np.float32), nodata=-1)


def compute(scratch, scene, cog, name="o", settings="{memory: 64MiB}", steps="", bands="{R: 1, G: 2, B: 3}", extra=""):
    config = scratch / "c.yaml"
    config.write_text(f"""compute: {settings}
pipelines:
  p:
    input: {{bands: {bands}{extra}}}
{steps}
    products:
      - cog: {cog}
      - stac: {{}}
""")
    report = pbtest.run_json("pushbroom", "run", "--json", "-c", config, "-o", scratch / name, "--existing", "version", scene)[0]
    paths = {p["type"]: p["path"] for p in report["products"]}
    return paths["cog"], json.load(open(paths["stac"]))


def halved(plane, nearest):
    """The overview's pixels: the mean of those valid, or the upper left."""
    if nearest:
        return plane[::2, ::2]
    h, w = plane.shape
    padded = np.pad(plane, ((0, h % 2), (0, w % 2)), constant_values=np.nan)
    groups = np.stack([padded[y::2, x::2] for y in (0, 1) for x in (0, 1)])
    with np.errstate(invalid="ignore"):
        return np.nansum(groups, 0) / np.isfinite(groups).sum(0)


def check_valid(path):
    warnings, errors, _ = validator.validate(str(path), full_check=True)
    assert not errors and not warnings, (path, errors, warnings)


def test_a_mask_says_which_pixels_are_valid_at_every_level(scratch):
    shape = (701, 533)
    pixels = holes(shape)
    scene = scene_of(scratch / "s.tif", pixels)
    for compress, overviews in itertools.product(("deflate", "none", "zstd", "lzw"), ("nearest", "average")):
        path, item = compute(scratch, scene, f"{{type: uint8, mask: true, blocksize: 128, compress: {compress}, overviews: {overviews}}}")
        check_valid(path)
        file = gdal.Open(path)
        assert file.GetRasterBand(1).GetMaskFlags() == gdal.GMF_PER_DATASET and file.GetRasterBand(1).GetNoDataValue() is None
        expected = pixels
        for level in range(file.GetRasterBand(1).GetOverviewCount() + 1):
            valid = np.isfinite(expected).all(0)
            for i in range(3):
                band = file.GetRasterBand(i + 1)
                band = band if level == 0 else band.GetOverview(level - 1)
                assert ((band.GetMaskBand().ReadAsArray() == 255) == valid).all(), (compress, overviews, level)
                stored = np.where(np.isfinite(expected[i]), np.round(expected[i]), 0)
                # A mean of float32 means may round to the other side of a half.
                assert np.abs(band.ReadAsArray() - stored).max() <= (level > 1 and overviews == "average"), (compress, overviews, level)
            expected = np.stack([halved(p, overviews == "nearest") for p in expected])
        assert level == 3
        bands = [a for a in item["assets"].values() if "bands" in a][0]["bands"]
        assert all("nodata" not in b for b in bands)
    assert [file.GetRasterBand(i + 1).GetColorInterpretation() for i in range(3)] == [gdal.GCI_RedBand, gdal.GCI_GreenBand, gdal.GCI_BlueBand]


def test_bytes_with_a_mask_do_not_depend_on_tiles_and_threads(scratch):
    scene = scene_of(scratch / "s.tif", holes((701, 533)))
    for compress in ("deflate", "none"):
        found = {hashlib.sha256(open(compute(scratch, scene, f"{{type: uint8, mask: true, blocksize: 64, compress: {compress}}}", settings=s)[0], "rb").read()).hexdigest()
                 for s in ("{memory: 64MiB}", "{memory: 64MiB, tile: 64, threads: 3}", "{memory: 64MiB, tile: 256, threads: 1}")}
        assert len(found) == 1, compress


def test_every_value_may_be_valid_beside_a_mask(scratch):
    pixels = holes((100, 90))
    scene = scene_of(scratch / "s.tif", pixels)
    for kind in ("uint8", "int16", "float32"):
        path, _ = compute(scratch, scene, f"{{bands: [R], type: {kind}, mask: true}}")
        band = gdal.Open(path)
        mask, stored = band.GetRasterBand(1).GetMaskBand().ReadAsArray(), band.ReadAsArray()
        assert ((mask == 255) == np.isfinite(pixels[0])).all() and (stored[mask == 255] == pixels[0][np.isfinite(pixels[0])]).all()
        assert (stored[mask == 0] == 0).all() if kind != "float32" else np.isnan(stored[mask == 0]).all()
        assert (stored[mask == 255] == 0).any()
    # pushbroom reads its own masks as GDAL does.
    again, _ = compute(scratch, path, "{bands: [R], type: float32}", bands="{R: 1}")
    same(gdal.Open(again).ReadAsArray(), pixels[0], "read again")


def test_a_mask_beside_a_nodata_value_is_a_mistake(scratch):
    config = scratch / "c.yaml"
    config.write_text("pipelines:\n  p:\n    input: {bands: {R: 1}}\n    products:\n      - cog: {type: uint8, nodata: 0, mask: true}\n")
    done = pbtest.run("pushbroom", "check-config", config, code=2)
    assert "c.yaml:5:" in done.stderr and "leave one of the two out" in done.stderr, done.stderr


if __name__ == "__main__":
    pbtest.main(globals())
