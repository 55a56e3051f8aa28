#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: sanitized
"""Bands of 32-bit integers and of doubles in whole runs: products that keep all their digits, and the reported number of
pixels that lose some in float32."""
import json
import pathlib
import shutil

import numpy as np
from osgeo import gdal, osr

import pbtest
from pbtest import run, run_json

gdal.UseExceptions()

TYPES = {"uint32": gdal.GDT_UInt32, "int32": gdal.GDT_Int32, "float64": gdal.GDT_Float64}
W, H = 210, 170


def pixels(kind, seed=0, bands=1):
    """Numbers of all digits that the type has, and holes of 7."""
    numbers = np.random.default_rng(seed)
    if kind == "float64":
        made = numbers.normal(0, 1, (bands, H, W)) * 10.0 ** numbers.integers(-30, 30, (bands, H, W))
    else:
        limits = np.iinfo(kind)
        made = numbers.integers(limits.min, limits.max, (bands, H, W), endpoint=True).astype(kind)
        made[:, :40] %= 1000  # float32 holds these as well
        made[:, 40, 0], made[:, 40, 1] = limits.min, limits.max
    made[numbers.random((bands, H, W)) < 0.05] = 7
    return made


def write(path, made, nodata=7, pixel=10, options=("TILED=YES", "BLOCKXSIZE=64", "BLOCKYSIZE=64", "COMPRESS=DEFLATE")):
    out = gdal.GetDriverByName("GTiff").Create(str(path), made.shape[2], made.shape[1], made.shape[0], TYPES[made.dtype.name], list(options))
    place = osr.SpatialReference()
    place.ImportFromEPSG(32632)
    out.SetProjection(place.ExportToWkt())
    out.SetGeoTransform((500000, pixel, 0, 5000000, 0, -pixel))
    if nodata is not None:
        out.GetRasterBand(1).SetNoDataValue(nodata)
    out.WriteArray(made)
    out = None
    return path


def config(scratch, products, steps="", source="match: ['*'], bands: {A: 1}", compute="tile: 64"):
    path = scratch / "c.yaml"
    path.write_text("compute: {device: cpu, " + compute + "}\npipelines:\n  p:\n    input: {" + source + "}\n" +
                    (f"    steps:\n      {steps}\n" if steps else "") + "    products:\n" + "".join(f"      - {p}\n" for p in [*products, "stac: {datetime: file-time}"]))
    return path


def outcome(scratch, path, *args, **more):
    """The result of a run and, by name, the pixels of its products with their overviews."""
    shutil.rmtree(scratch / "out", ignore_errors=True)
    result, = run_json("pushbroom", "run", "--json", "-c", config(scratch, *args, **more), "-o", scratch / "out", path)
    made = {}
    for product in result["products"]:
        if product["type"] == "cog":
            file = gdal.Open(product["path"])
            band = file.GetRasterBand(1)
            made[product.get("name")] = [file.ReadAsArray(), *(band.GetOverview(i).ReadAsArray() for i in range(band.GetOverviewCount()))]
    return result, made


def said(result):
    """Digits in the report, which are those in the STAC item."""
    item = json.loads(pathlib.Path(next(p["path"] for p in result["products"] if p["type"] == "stac")).read_text())["properties"]
    assert [tuple(d.values()) for d in item.get("pushbroom:digits", [])] == [tuple(d.values()) for d in result["report"].get("digits", [])], item
    return [(d["band"], d["type"], d["pixels"], d["are"]) for d in result["report"].get("digits", [])]


def test_a_band_that_passes_unchanged_keeps_its_bits(scratch):
    for kind in TYPES:
        made = pixels(kind)
        path = write(scratch / f"{kind}.tif", made)
        for compress, blocks, compute in (("deflate", 64, "tile: 64"), ("none", 64, "tile: 64, threads: 4"), ("zstd", 512, "threads: 1")):
            result, found = outcome(scratch, path, [f"cog: {{bands: [A], type: {kind}, nodata: 7, compress: {compress}, blocksize: {blocks}, overviews: nearest}}"],
                                    compute=compute)
            assert found[None][0].dtype == kind and (found[None][0] == made[0]).all(), (kind, compress)
            for level, overview in enumerate(found[None][1:], 1):
                assert (overview == made[0][::2 ** level, ::2 ** level]).all(), (kind, level)
            assert said(result) == [], result["report"]["digits"]
        # Pixels that a mask and a crop remove are missing; the others are unchanged.
        holes = np.random.default_rng(1).random((H, W)) < 0.3
        both = write(scratch / f"{kind}_2.tif", np.stack([made[0], np.where(holes, 1, 2).astype(kind)]))
        _, found = outcome(scratch, both, [f"cog: {{bands: [A], type: {kind}, nodata: 7}}"],
                           "- mask: {band: M, drop: [1], apply: [A]}\n      - crop: {window: [13, 5, 130, 150]}", "match: ['*'], bands: {A: 1, M: 2}")
        assert (found[None][0] == np.where(holes, 7, made[0]).astype(kind)[5:155, 13:143]).all(), kind
        # A mask in the file in place of nodata.
        _, found = outcome(scratch, path, [f"cog: {{bands: [A], type: {kind}, mask: true}}"])
        valid = made[0] != 7
        assert (found[None][0] == made[0])[valid].all()


def test_gated_tiles_and_passes_before_keep_all_digits(scratch):
    made, mask = pixels("uint32"), np.zeros((H, W), np.uint32)
    mask[70:120, 80:140] = 1
    path = write(scratch / "a.tif", np.stack([made[0], mask]), nodata=None)
    source, product = "match: ['*'], bands: {A: 1, M: 2}", "cog: {bands: [A], type: uint32, nodata: 7, blocksize: 64}"
    result, found = outcome(scratch, path, [product], "- mask: {band: M, keep: [1], apply: [A], gate: true}", source)
    moved = np.where(made[0] == 7, 8, made[0])  # valid, and nodata of the product
    assert (found[None][0] == np.where(mask == 1, moved, 7)).all() and result["report"]["gate"]["left_out"] > 0, result["report"]["gate"]
    _, found = outcome(scratch, path, [product, "quicklook: {bands: [A], stretch: [2, 98]}"], source=source)
    assert (found[None][0] == moved).all()


def test_valid_value_equal_to_nodata_moves_by_one_step(scratch):
    made = pixels("uint32")
    made[0, 50, :5] = 4000000001
    path = write(scratch / "a.tif", made)
    result, found = outcome(scratch, path, ["cog: {bands: [A], type: uint32, nodata: 4000000001}"])
    expected = np.where(made[0] == 7, 4000000001, np.where(made[0] == 4000000001, 4000000002, made[0]))
    assert (found[None][0] == expected).all() and result["products"][0]["moved_off_nodata"] == 5, result["products"]


def test_files_of_a_scene_on_one_grid_keep_theirs_too(scratch):
    scene = scratch / "S"
    scene.mkdir()
    made = {name: pixels("uint32", seed) for seed, name in enumerate("AB")}
    for name in made:
        write(scene / f"{name}.tif", made[name])
    coarse = write(scene / "C.tif", pixels("uint32", 9)[:, :H // 2, :W // 2], pixel=20)
    source = "scene: 'S', files: {A: A.tif, B: B.tif, C: {match: C.tif, resample: nearest}}"
    result, found = outcome(scratch, scene, ["cog: {bands: [B, A], type: uint32, nodata: 7}"], source=source)
    assert (found[None][0] == np.stack([made["B"][0], made["A"][0]])).all() and said(result) == []
    # Resampled pixels went through float32; those that it does not hold are counted, at least once each.
    result, found = outcome(scratch, scene, ["cog: {bands: [A, C], type: uint32, nodata: 7}"], source=source)
    assert (found[None][0][0] == made["A"][0]).all()
    (band, kind, n, are), = said(result)
    lost = gdal.Open(str(coarse)).ReadAsArray()
    lost = (lost != 7) & (lost.astype(np.float32).astype(np.float64) != lost)
    assert (band, kind, are) == ("C", "uint32", "rounded") and n >= lost.sum(), (result["report"]["digits"], lost.sum())


def test_pixels_rounded_to_float32_are_counted(scratch):
    for kind in ("uint32", "int32"):
        made = pixels(kind)
        path = write(scratch / f"{kind}.tif", made)
        rounded = int(((made != 7) & (made.astype(np.float32).astype(np.float64) != made)).sum())
        assert 0 < rounded < made.size * 0.9
        counted = [("A", kind, rounded, "rounded")]
        for products, steps, expected in (
                (["cog: {bands: [A]}"], "", counted),                                              # float32
                (["cog: {bands: [X]}"], "- math: {bands: {X: A + 1}}", counted),
                (["cog: {bands: [X]}"], "- math: {bands: {X: 'where(A > 5, 1, 0)'}}", counted),      # a condition
                ([f"cog: {{bands: [A], type: {kind}, nodata: 7}}", "statistics: {}"], "", []),
                ([f"cog: {{bands: [A], type: {kind}, nodata: 7}}", "cog: {name: x, bands: [X]}"], "- math: {bands: {X: A * 2}}", counted),
                (["cog: {bands: [A], type: uint16, nodata: 7}"], "", [])):                        # uint16 is configured
            result, found = outcome(scratch, path, products, steps)
            assert said(result) == expected, (products, steps, said(result), expected)
            if len(products) == 2:
                assert (found[None][0] == made[0]).all(), products
        # No message where every pixel is held.
        small = write(scratch / "small.tif", made[:, :40])
        assert said(outcome(scratch, small, ["cog: {bands: [A]}"])[0]) == []


def test_doubles_beyond_float32_range_are_counted(scratch):
    made = pixels("float64")
    path = write(scratch / "a.tif", made)
    product = ["cog: {bands: [A], type: float64, nodata: 7}"]
    assert said(outcome(scratch, path, ["cog: {bands: [A]}"])[0]) == []  # float32 was requested
    made[0, 3, :9] = 1e39  # not valid to float32
    made[0, 4, :4] = 1e-300
    write(path, made)
    result, found = outcome(scratch, path, product)
    assert said(result) == [("A", "float64", 13, "out of range")], said(result)
    assert (found[None][0][3, :9] == 7).all() and (found[None][0] == made[0])[5:].all()
    text = run("pushbroom", "run", "-c", config(scratch, product), "-o", scratch / "other", path).stdout
    assert "13 pixels of band A (float64) are outside the range of float32" in text, text
    text = run("pushbroom", "run", "--dry-run", "-c", config(scratch, product), "-o", scratch / "other", path).stdout
    assert "digits     A (float64): all kept where it is stored as it is" in text, text


pbtest.main()
