#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: sanitized
"""Meaning of the numbers of bands after steps: classes stay classes, and scale, offset and unit stay where the numbers stay.
Tags that a run leaves out or cannot keep are in its report and in the item of its products."""
import json

import numpy as np
from osgeo import gdal, osr

import pbtest
from test_grids import write

gdal.UseExceptions()
CLASSES = np.array([10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 100], np.uint8)
COLOURS = {int(v): (int(v), 255 - int(v), 0, 255) for v in CLASSES}


def raster(path, planes, epsg=32632, transform=(500000, 10, 0, 5000000, 0, -10), tags=None, palette=None, nodata=None, options=()):
    planes = planes if planes.ndim == 3 else planes[None]
    kind = {"uint8": gdal.GDT_Byte, "uint16": gdal.GDT_UInt16, "int16": gdal.GDT_Int16, "float32": gdal.GDT_Float32}[str(planes.dtype)]
    path.parent.mkdir(exist_ok=True)
    out = gdal.GetDriverByName("GTiff").Create(str(path), planes.shape[2], planes.shape[1], len(planes), kind, list(options))
    out.SetGeoTransform(transform)
    system = osr.SpatialReference()
    system.ImportFromEPSG(epsg)
    out.SetProjection(system.ExportToWkt())
    for i, plane in enumerate(planes):
        band = out.GetRasterBand(i + 1)
        if palette:
            table = gdal.ColorTable()
            for value, colour in palette.items():
                table.SetColorEntry(value, colour)
            band.SetColorTable(table)
        if tags:
            band.SetScale(tags[0])
            band.SetOffset(tags[1])
            band.SetUnitType(tags[2])
        if nodata is not None:
            band.SetNoDataValue(nodata)
        band.WriteArray(plane)
    return path


def cover(path, **more):
    """Eleven classes in squares of 10 x 10 pixels, with a colour table."""
    squares = np.random.default_rng(0).choice(CLASSES, (24, 30))
    return raster(path, np.kron(squares, np.ones((10, 10), np.uint8)), palette=COLOURS, nodata=0, **more)


def run(scratch, scenes, steps, cog="{type: uint8, nodata: 0, blocksize: 64}", extra="", code=0, more="", bands="{C: 1}"):
    """The report, the COG opened, and the item; or the error."""
    config = scratch / "c.yaml"
    config.write_text("compute: {memory: 64MiB}\npipelines:\n  p:\n    input: {%s%s}\n    steps:\n%s    products:\n      - cog: %s\n      - stac: {datetime: file-time}\n%s" % (
        f"bands: {bands}" if bands else "", extra, "".join(f"      - {s}\n" for s in steps) or "      []\n", cog, more))
    scenes = scenes if isinstance(scenes, list) else [scenes]
    done, = pbtest.run_json("pushbroom", "run", "--json", "-c", config, "-o", scratch / "out", "--existing", "version", *scenes, code=code)
    if code:
        return done["error"]
    paths = {p["type"]: p["path"] for p in done["products"]}
    return done["report"], gdal.Open(paths["cog"]), json.load(open(paths["stac"]))


def notes_of(report, item):
    assert report.get("notes", []) == item["properties"].get("pushbroom:notes", []), "the item has what the report has"
    return report.get("notes", [])


def tags_of(file, item=None, band=1):
    got = file.GetRasterBand(band)
    if item:
        told = [a for a in item["assets"].values() if "bands" in a][0]["bands"][band - 1]
        assert (told.get("raster:scale"), told.get("raster:offset"), told.get("unit", "")) == (got.GetScale(), got.GetOffset(), got.GetUnitType()), told
    return got.GetScale(), got.GetOffset(), got.GetUnitType()


# --- classes ---

ONTO_OTHER_GRIDS = ('warp: {crs: "EPSG:3035", pixel: 10}', "resample: {pixel: 7}", "resample: {factor: 0.3}", 'warp: {crs: "EPSG:3035", pixel: 35}')


def test_palette_band_keeps_classes_and_colours(scratch):
    scene = cover(scratch / "cover.tif")
    for step in ONTO_OTHER_GRIDS:
        report, file, item = run(scratch, scene, [step])
        band = file.GetRasterBand(1)
        values = band.ReadAsArray()
        assert np.isin(values, [0, *CLASSES]).all() and (values > 0).any(), step
        assert band.GetColorTable() is not None and all(band.GetColorTable().GetColorEntry(v)[:3] == c[:3] for v, c in COLOURS.items()), step
        for level in range(band.GetOverviewCount()):
            assert np.isin(band.GetOverview(level).ReadAsArray(), [0, *CLASSES]).all(), (step, level)
        assert notes_of(report, item) == []


def test_larger_pixels_have_the_most_frequent_class(scratch):
    scene = cover(scratch / "cover.tif")
    for step, method in (("resample: {factor: 0.4%s}", "mode"), ("resample: {factor: 0.6%s}", "nearest"), ("resample: {pixel: 8%s}", "nearest")):
        first, second = (run(scratch, scene, [step % more])[1].ReadAsArray() for more in ("", f", method: {method}"))
        assert (first == second).all(), step


def test_a_method_that_mixes_classes_is_kept_and_noted(scratch):
    scene = cover(scratch / "cover.tif")
    report, file, item = run(scratch, scene, ["resample: {pixel: 7, method: cubic}"])
    assert not np.isin(file.ReadAsArray(), [0, *CLASSES]).all() and file.GetRasterBand(1).GetColorTable() is None
    note, = notes_of(report, item)
    assert note.startswith("band C has classes, and cubic makes values between them"), note
    config = scratch / "c.yaml"
    text = pbtest.run("pushbroom", "run", "--dry-run", "-c", config, scene).stdout
    assert "note       band C has classes" in text, text
    text = pbtest.run("pushbroom", "run", "-c", config, "-o", scratch / "out", "--existing", "version", scene).stdout
    assert "note       band C has classes" in " ".join(text.split("\n")), text


def test_category_names_and_quality_bands_are_classes(scratch):
    values = np.kron(np.random.default_rng(1).choice([4, 8, 11], (20, 20)), np.ones((6, 6), int)).astype(np.uint8)
    plain = raster(scratch / "plain.tif", values)
    assert not np.isin(run(scratch, plain, ["resample: {pixel: 7}"])[1].ReadAsArray(), [4, 8, 11]).all(), "integers alone may be measurements"
    named = raster(scratch / "named.tif", values)
    (scratch / "named.tif.aux.xml").write_text("<PAMDataset><PAMRasterBand band='1'><CategoryNames><Category>none</Category><Category>a</Category>"
                                               "</CategoryNames></PAMRasterBand></PAMDataset>")
    ways = [(named, "{C: 1}", ", sidecars: [.aux.xml]", [], "C", ""), (plain, "{SCL: 1}", "", [], "SCL", ""), (plain, "{C: 1}", "", ["mask: {band: C, drop: [9]}"], "C", ""),
            (plain, "{C: 1}", "", [], "C", ", classes: {land: 4, cloud: 8}"), (plain, "{C: 1}", "", [], "C", "zones")]
    for scene, bands, extra, steps, name, classes in ways:
        table = "      - zones: {by: C}\n" if classes == "zones" else ""
        cog = "{bands: [%s], type: uint8, nodata: 0%s}" % (name, "" if table else classes)
        _, file, _ = run(scratch, scene, ["resample: {pixel: 7}", *steps], cog=cog, bands=bands, extra=extra, more=table)
        assert np.isin(file.ReadAsArray(), [0, 4, 8, 11]).all(), (bands, extra, steps, classes)


def test_measurements_are_interpolated_beside_classes(scratch):
    """One step for all bands: reflectance bilinear, the scene classification nearest."""
    random = np.random.default_rng(2)
    planes = np.stack([random.integers(1000, 9000, (60, 60)), np.kron(random.choice([4, 8], (10, 10)), np.ones((6, 6), int))]).astype(np.uint16)
    scene = raster(scratch / "s.tif", planes)
    _, file, _ = run(scratch, scene, ["resample: {pixel: 7}"], cog="{type: uint16, nodata: 0}", bands="{R: 1, SCL: 2}")
    assert np.isin(file.GetRasterBand(2).ReadAsArray(), [4, 8]).all()
    assert not np.isin(file.GetRasterBand(1).ReadAsArray(), planes[0]).all()


def test_mask_classes_are_in_the_item_on_another_grid(scratch):
    values = np.kron(np.random.default_rng(3).choice([4, 8], (10, 10)), np.ones((6, 6), int)).astype(np.uint8)
    scene = raster(scratch / "q.tif", values)
    for method, kept in (("", True), (", method: mode", True), (", method: cubic", False)):
        _, file, item = run(scratch, scene, ['warp: {crs: "EPSG:3035", pixel: 10%s}' % method, "mask: {band: Q, preset: sentinel2-scl}"], cog="{bands: [Q], type: uint8, nodata: 0, blocksize: 64}", bands="{Q: 1}")
        assert ("classification:classes" in json.dumps(item)) == kept, method


# --- scale, offset and unit ---

KELVIN = (0.01, 273.15, "K")
KEEP = ('warp: {crs: "EPSG:3035", pixel: 20}', "resample: {factor: 0.5, method: average}", "resample: {factor: 1.5, method: cubic}", 'warp: {crs: "EPSG:3035", pixel: 10, method: lanczos}',
        "median: {size: 3}", "convolve: {size: 3}", "sieve: {size: 4, bands: [V]}", "unsharp: {}")
DROP = ("convolve: {kernel: sobel, size: 3}", "texture: {}", 'math: {bands: {V: "V * 2"}}')


def test_numbers_that_are_weighed_keep_what_they_mean(scratch):
    values = np.add.outer(np.arange(60), np.arange(80)).astype(np.int16)
    scene = raster(scratch / "lst.tif", values, tags=KELVIN)
    for step in KEEP + DROP:
        report, file, item = run(scratch, scene, [step], cog="{type: float32}", bands="{V: 1}")
        assert tags_of(file, item) == (KELVIN if step in KEEP else (None, None, "")), step
        assert report.get("tags") == ([{"band": "V", "scale": 0.01, "offset": 273.15, "unit": "K"}] if step in KEEP else None), step
        said = pbtest.run("pushbroom", "run", "--dry-run", "-c", scratch / "c.yaml", scene).stdout
        assert ("value = stored * 0.01 + 273.15" in " ".join(said.split())) == (step in KEEP), said


def pair(scratch, first, second, **more):
    values = np.full((40, 50), 1000, np.int16)
    raster(scratch / "in/a_1.tif", values, tags=first, **more)
    return [raster(scratch / "in/a_2.tif", values + 100, tags=second, **more), scratch / "in/a_1.tif"]


TWO = ", group: '(?<scene>a)_\\d.tif', files: {V_1: '*_1.tif', V_2: '*_2.tif'}"


def test_files_keep_shared_tags_and_mix_no_others(scratch):
    steps = ("composite: {bands: [V], of: [_1, _2]}", "composite: {method: latest-clear, bands: [V], of: [_1, _2]}", "mosaic: {bands: [V], of: [_1, _2]}",
             "mosaic: {method: feather, width: 4, bands: [V], of: [_1, _2]}")
    same, other = pair(scratch, KELVIN, KELVIN), None
    for step in steps:
        _, file, item = run(scratch, same, [step], cog="{bands: [V], type: float32}", bands="", extra=TWO[2:])
        assert tags_of(file, item) == KELVIN, step
    other = pair(scratch, KELVIN, (0.01, 0, "K"))
    for step in steps:
        error = run(scratch, other, [step], cog="{bands: [V], type: float32}", bands="", extra=TWO[2:], code=1)
        assert error["code"] == "input.scale" and all(f"V_{n} has scale 0.01, offset {o}, unit K" in error["message"] for n, o in ((1, 273.15), (2, 0))), error
        assert "input.files" in error["hint"]
    # With scale and offset of each in the configuration steps see temperatures.
    scaled = "group: '(?<scene>a)_\\d.tif', files: {V_1: {match: '*_1.tif', scale: 0.01, offset: 273.15}, V_2: {match: '*_2.tif', scale: 0.01, offset: 0}}"
    _, file, _ = run(scratch, other, [steps[2]], cog="{bands: [V], type: float32}", bands="", extra=scaled)
    assert abs(file.ReadAsArray() - 283.15).max() < 1e-4 and tags_of(file) == (None, None, "")
    # Bands that are not mixed have tags of their own each.
    _, file, item = run(scratch, other, [], cog="{bands: [V_1, V_2], type: int16, nodata: -1}", bands="", extra=TWO[2:])
    assert [tags_of(file, item, b) for b in (1, 2)] == [KELVIN, (0.01, 0, "K")]


def test_class_mosaic_has_the_colours_of_both(scratch):
    for colours, kept in ((COLOURS, True), ({**COLOURS, 10: (1, 2, 3, 255)}, False)):
        raster(scratch / "in/a_1.tif", np.full((40, 50), 10, np.uint8), palette=COLOURS, nodata=0)
        two = raster(scratch / "in/a_2.tif", np.full((40, 50), 20, np.uint8), palette=colours, nodata=0)
        _, file, _ = run(scratch, [two], ["mosaic: {bands: [V], of: [_1, _2]}"], cog="{bands: [V], type: uint8, nodata: 0}", bands="", extra=TWO[2:])
        assert (file.GetRasterBand(1).GetColorTable() is not None) == kept


# --- report of a run ---


def test_infinities_of_the_input_are_counted(scratch):
    values = np.ones((2, 300, 200), np.float32)
    values[0, :3, :5], values[0, 250, 100], values[0, 8, 8] = np.inf, -np.inf, np.nan
    scene = raster(scratch / "f.tif", values, options=["TILED=YES", "BLOCKXSIZE=64", "BLOCKYSIZE=64"])
    for step in ("median: {size: 3}", 'math: {bands: {A: A}}'):
        report, file, item = run(scratch, scene, [step], cog="{bands: [A, B], type: float32, blocksize: 64}", bands="{A: 1, B: 2}")
        assert notes_of(report, item) == ["band A: 16 pixels of the input are infinite, which is invalid"], step
    assert np.isnan(file.GetRasterBand(1).ReadAsArray()).sum() == 17
    report, _, item = run(scratch, scene, ['warp: {crs: "EPSG:3035", pixel: 10}'], cog="{bands: [A], type: float32}", bands="{A: 1, B: 2}")
    assert notes_of(report, item) == ["band A: pixels of the input are infinite, which is invalid"]
    # Infinity as the nodata value is no surprise.
    scene = raster(scratch / "n.tif", np.where(np.isinf(values), np.inf, 1).astype(np.float32), nodata=float("inf"))
    report, _, item = run(scratch, scene, [], cog="{bands: [A], type: float32}", bands="{A: 1, B: 2}")
    assert notes_of(report, item) == []


def test_a_warp_without_a_valid_pixel_is_noted(scratch):
    values = np.zeros((100, 100), np.uint8)
    values[:50] = 7
    scene = raster(scratch / "s.tif", values, nodata=0)
    for south, found in ((4999000, False), (4999400, True)):
        step = 'warp: {crs: "EPSG:32632", pixel: 10, bounds: [500100, %d, 500300, %d]}' % (south, south + 200)
        report, file, item = run(scratch, scene, [step])
        assert (file.ReadAsArray() == 7).any() == found
        assert [n.split(":")[0] for n in notes_of(report, item)] == ([] if found else ["no pixel of the products is valid"]), (south, report)


def test_observations_beyond_the_count_are_noted(scratch):
    for day in range(1, 6):
        raster(scratch / f"in/t_2026060{day}.tif", np.full((30, 30), day, np.uint8))
    config = scratch / "c.yaml"
    config.write_text("""pipelines:
  p:
    input:
      group: '(?<tile>t)_(?<date>\\d{8}).tif'
      by: tile
      order: date
      files:
        V_1: {match: "*.tif", nth: 1}
        V_2: {match: "*.tif", nth: 2, optional: true}
        V_3: {match: "*.tif", nth: 3, optional: true}
    steps: [composite: {bands: [V], of: [_1, _2, _3]}]
    products: [cog: {bands: [V], type: uint8, nodata: 0}, stac: {datetime: file-time}]
""")
    done, = pbtest.run_json("pushbroom", "run", "--json", "-c", config, "-o", scratch / "out", scratch / "in/t_20260601.tif")
    item = json.load(open([p["path"] for p in done["products"] if p["type"] == "stac"][0]))
    assert notes_of(done["report"], item) == ["left out, as input.files counts fewer files (nth): t_20260604.tif, t_20260605.tif"], done
    for day in (4, 5):
        (scratch / f"in/t_2026060{day}.tif").unlink()
    done, = pbtest.run_json("pushbroom", "run", "--json", "-c", config, "-o", scratch / "out2", scratch / "in/t_20260601.tif")
    assert "notes" not in done["report"]


if __name__ == "__main__":
    pbtest.main()
