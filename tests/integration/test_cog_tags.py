#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: sanitized
"""Parts of a COG other than pixels, read back by GDAL: masks inside the file and of its overviews, colours, scale and offset."""
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
      - stac: {{datetime: file-time}}
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


@pbtest.not_about_memory
def test_mask_marks_valid_pixels_at_every_level(scratch):
    shape = (701, 533)
    pixels = holes(shape)
    scene = scene_of(scratch / "s.tif", pixels)
    for compress, overviews in itertools.product(("deflate", "none", "zstd", "lzw"), ("nearest", "average")):
        path, item = compute(scratch, scene, f"{{type: uint8, mask: true, valid: all, blocksize: 128, compress: {compress}, overviews: {overviews}}}")
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
            if overviews == "average":  # only pixels that the mask shows
                expected = np.where(valid, expected, np.nan)
            expected = np.stack([halved(p, overviews == "nearest") for p in expected])
        assert level == 3
        bands = [a for a in item["assets"].values() if "bands" in a][0]["bands"]
        assert all("nodata" not in b for b in bands)
    assert [file.GetRasterBand(i + 1).GetColorInterpretation() for i in range(3)] == [gdal.GCI_RedBand, gdal.GCI_GreenBand, gdal.GCI_BlueBand]


@pbtest.not_about_memory
def test_bytes_with_a_mask_ignore_tiles_and_threads(scratch):
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


def bands_of(item):
    return [a for a in item["assets"].values() if "bands" in a][0]["bands"]


def test_scaled_integers_say_what_they_mean(scratch):
    values = np.random.default_rng(8).uniform(-1.2, 1.2, (1, 300, 400)).astype(np.float32)
    values[0, :40] = np.nan
    scene = scene_of(scratch / "s.tif", np.where(values == -1, 0, values))
    path, item = compute(scratch, scene, "{type: int16, nodata: -32768, scale: 0.0001, unit: '1', blocksize: 128}", bands="{R: 1}")
    check_valid(path)
    file = gdal.Open(path)
    band = file.GetRasterBand(1)
    stored = band.ReadAsArray()
    assert (band.GetScale(), band.GetOffset(), band.GetUnitType(), band.GetDescription()) == (0.0001, 0, "1", "R")
    assert ((stored == -32768) == np.isnan(values[0])).all()
    exact = values[0].astype(np.float64) / 0.0001
    assert (stored == np.where(np.isnan(exact), -32768, np.rint(exact.astype(np.float32)))).all()
    assert bands_of(item)[0]["raster:scale"] == 0.0001 and bands_of(item)[0]["raster:offset"] == 0 and bands_of(item)[0]["unit"] == "1"
    # A value k * 0.0001 is stored as k, and offsets are taken off first.
    steps = np.arange(-10000, 10000, dtype=np.int16).reshape(1, 100, 200)
    scene = write(scratch / "k.tif", steps, nodata=None)
    path, _ = compute(scratch, scene, "{type: int16, nodata: -32768, scale: 0.0001}", bands="{R: 1}", extra=", scale: 0.0001")
    assert (gdal.Open(path).ReadAsArray() == steps[0]).all()
    path, _ = compute(scratch, scene, "{type: uint16, nodata: 0, scale: 0.0001, offset: -1.5}", bands="{R: 1}", extra=", scale: 0.0001")
    assert (gdal.Open(path).ReadAsArray() == steps[0].astype(int) + 15000).all()


def test_unchanged_bands_keep_the_tags_of_the_scene(scratch):
    palette = pbtest.SOURCE / "tests/data/real/palette/lc_stars.tif"
    theirs = gdal.Open(str(palette))
    colors = theirs.GetRasterBand(1).GetColorTable()
    for steps in ("", "    steps: [mask: {band: C, drop: [11]}]"):
        path, _ = compute(scratch, palette, "{bands: [C], type: uint8, nodata: 255, blocksize: 64}", bands="{C: 1}", steps=steps)
        file = gdal.Open(path)
        band = file.GetRasterBand(1)
        check_valid(path)
        assert band.GetColorInterpretation() == gdal.GCI_PaletteIndex and band.GetColorTable().GetCount() == 256
        for i in range(colors.GetCount()):
            assert band.GetColorTable().GetColorEntry(i)[:3] == colors.GetColorEntry(i)[:3], i
        if band.GetOverviewCount():
            assert band.GetOverview(0).GetColorTable() is not None
    path, _ = compute(scratch, palette, "{bands: [X], type: uint8, nodata: 255}", bands="{C: 1}", steps='    steps: [math: {bands: {X: "C + 1"}}]')
    file = gdal.Open(path)
    assert file.GetRasterBand(1).GetColorTable() is None


def test_tags_of_the_scene_hold_for_stored_values_only(scratch):
    out = gdal.GetDriverByName("GTiff").Create(str(scratch / "t.tif"), 100, 80, 2, gdal.GDT_UInt16)
    for i in (1, 2):
        band = out.GetRasterBand(i)
        band.WriteArray(np.random.default_rng(i).integers(1, 9999, (80, 100)).astype(np.uint16))
        band.SetScale(0.01 * i)
        band.SetOffset(-2.0)
        band.SetUnitType("K")
        band.SetNoDataValue(0)
    out = None
    path, item = compute(scratch, scratch / "t.tif", "{type: uint16, nodata: 0}", bands="{A: 1, T: 2}")
    file = gdal.Open(path)
    assert [(file.GetRasterBand(i).GetScale(), file.GetRasterBand(i).GetOffset(), file.GetRasterBand(i).GetUnitType()) for i in (1, 2)] == [(0.01, -2, "K"), (0.02, -2, "K")]
    assert [b["raster:scale"] for b in bands_of(item)] == [0.01, 0.02] and bands_of(item)[1]["unit"] == "K"
    for extra, steps in ((", scale: 0.01, offset: -2", ""), ("", '    steps: [math: {bands: {A: "A * 0.01", T: "T + 1"}}]')):
        path, item = compute(scratch, scratch / "t.tif", "{bands: [A, T]}", bands="{A: 1, T: 2}", extra=extra, steps=steps)
        file = gdal.Open(path)
        assert file.GetRasterBand(1).GetScale() is None and file.GetRasterBand(1).GetUnitType() == "" and "raster:scale" not in bands_of(item)[0]


def test_colours_of_bands_are_kept(scratch):
    path, _ = compute(scratch, pbtest.SOURCE / "tests/data/real/rgb/landsat7_rgb_tenth.tif", "{bands: [B, R], type: uint16, nodata: 0}")
    file = gdal.Open(path)
    assert [file.GetRasterBand(i).GetColorInterpretation() for i in (1, 2)] == [gdal.GCI_BlueBand, gdal.GCI_RedBand]


def test_names_of_classes_are_in_the_stac_item(scratch):
    palette = pbtest.SOURCE / "tests/data/real/palette/lc_stars.tif"
    theirs = gdal.Open(str(palette))
    colors = theirs.GetRasterBand(1).GetColorTable()
    path, item = compute(scratch, palette, "{bands: [C], type: uint8, nodata: 0, classes: {none: 0, water: 11, forest: 41, far: 200}}", bands="{C: 1}")
    classes = bands_of(item)[0]["classification:classes"]
    assert [(c["value"], c["name"], c.get("nodata", False)) for c in classes] == [(0, "none", True), (11, "water", False), (41, "forest", False), (200, "far", False)]
    for c in classes:
        assert c["color_hint"] == "%02X%02X%02X" % colors.GetColorEntry(c["value"])[:3], c
    assert [e for e in item["stac_extensions"] if "classification" in e] == ["https://stac-extensions.github.io/classification/v2.0.0/schema.json"]
    # Without colours and as floats: the names, and overviews of the nearest pixel.
    values = np.random.default_rng(7).integers(0, 20, (1, 600, 700)).astype(np.uint8)
    scene = write(scratch / "s.tif", values, nodata=None)
    path, item = compute(scratch, scene, "{bands: [C], blocksize: 64, classes: {water: 6, snow: 11}}", bands="{C: 1}")
    assert bands_of(item)[0]["classification:classes"] == [{"value": 6, "name": "water"}, {"value": 11, "name": "snow"}]
    file = gdal.Open(path)
    band = file.GetRasterBand(1)
    assert (band.GetOverview(0).ReadAsArray() == values[0, ::2, ::2]).all()
    path, item = compute(scratch, scene, "{bands: [C]}", bands="{C: 1}")
    assert "classification" not in json.dumps(item)
    for keys, words in (("classes: {a: 1, b: 1}", "a and b are names of one value"), ("classes: {a: 1.5}", "no whole number"),
                        ("bands: [C, C2], classes: {a: 1}", "names the values of one band"), ("bands: [C], classes: {a: 1}, ramp: viridis, range: [0, 1]", "a picture has levels")):
        config = scratch / "c.yaml"
        config.write_text("pipelines:\n  p:\n    input: {bands: {C: 1, C2: 1}}\n    products:\n      - cog: {%s}\n" % (keys if "bands" in keys else "bands: [C], " + keys))
        done = pbtest.run("pushbroom", "check-config", config, code=2)
        assert "c.yaml:5:" in done.stderr and words in done.stderr, done.stderr


def test_overviews_of_what_steps_round_have_its_values(scratch):
    values = np.random.default_rng(7).integers(0, 200, (1, 600, 700)).astype(np.uint8)
    scene = write(scratch / "s.tif", values, nodata=None)
    for steps, nearest in (("    steps: [cast: {type: uint8, bands: {X: C}}]", True), ('    steps: [math: {bands: {X: "floor(C / 10)"}}]', True),
                           ('    steps: [math: {bands: {X: "C / 10"}}]', False)):
        path, _ = compute(scratch, scene, "{bands: [X], blocksize: 64}", bands="{C: 1}", steps=steps)
        file = gdal.Open(path)
        band = file.GetRasterBand(1)
        assert (band.GetOverview(0).ReadAsArray() == band.ReadAsArray()[::2, ::2]).all() == nearest, steps


def test_valid_values_equal_to_nodata_are_reported(scratch):
    values = np.random.default_rng(3).integers(0, 5, (1, 200, 300)).astype(np.int16)
    scene = write(scratch / "s.tif", values, nodata=-1)
    config = scratch / "c.yaml"
    config.write_text("""compute: {memory: 64MiB, tile: 64}
pipelines:
  p:
    input: {bands: {C: 1}}
    products: [cog: {type: uint8, nodata: 0, blocksize: 64}, cog: {name: apart, type: uint8, nodata: 255}, stac: {datetime: file-time}]
""")
    report = pbtest.run_json("pushbroom", "run", "--json", "-c", config, "-o", scratch / "out", scene)[0]
    first, second = [p for p in report["products"] if p["type"] == "cog"]
    assert first["moved_off_nodata"] == (values == 0).sum() and "moved_off_nodata" not in second
    item = json.load(open([p["path"] for p in report["products"] if p["type"] == "stac"][0]))
    assert item["assets"]["data"]["pushbroom:moved_off_nodata"] == (values == 0).sum()
    said = pbtest.run("pushbroom", "run", "-c", config, "-o", scratch / "again", scene).stdout
    assert f"{(values == 0).sum()} valid values equal the nodata value" in said, said


def test_a_mask_beside_a_nodata_value_is_a_mistake(scratch):
    config = scratch / "c.yaml"
    config.write_text("pipelines:\n  p:\n    input: {bands: {R: 1}}\n    products:\n      - cog: {type: uint8, nodata: 0, mask: true}\n")
    done = pbtest.run("pushbroom", "check-config", config, code=2)
    assert "c.yaml:5:" in done.stderr and "leave one of the two out" in done.stderr, done.stderr


if __name__ == "__main__":
    pbtest.main()
