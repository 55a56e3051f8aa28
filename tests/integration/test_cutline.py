#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: threads sanitized
"""crop with a cutline against gdalwarp -cutline and gdal_rasterize: concave polygons with holes, several of them over each
other, of one system and of another, by centres and touched, of GeoJSON and GeoPackage; and messages for a wrong where."""
import json
import math
import random
import subprocess

import numpy as np
from osgeo import gdal, osr

import pbtest

gdal.UseExceptions()
WIDTH, HEIGHT, WEST, NORTH = 301, 217, 600000, 4100000
CONFIG = """pipelines:
  area:
    input: {match: ["*.tif"], bands: {A: 1, B: 2}}
    steps:
      - crop: {polygons: %s, cutline: true%s}
    products:
      - cog: {bands: [A, B], type: uint16, nodata: 0}
"""


def system(epsg):
    srs = osr.SpatialReference()
    srs.ImportFromEPSG(epsg)
    srs.SetAxisMappingStrategy(osr.OAMS_TRADITIONAL_GIS_ORDER)
    return srs


def scene(path):
    pixels = np.random.default_rng(3).integers(1, 60000, (2, HEIGHT, WIDTH)).astype(np.uint16)
    ds = gdal.GetDriverByName("GTiff").Create(str(path), WIDTH, HEIGHT, 2, gdal.GDT_UInt16,
                                              ["TILED=YES", "BLOCKXSIZE=64", "BLOCKYSIZE=64", "COMPRESS=DEFLATE"])
    ds.SetGeoTransform((WEST, 10, 0, NORTH, 0, -10))
    ds.SetProjection(system(32632).ExportToWkt())
    ds.WriteArray(pixels)
    for band in (1, 2):
        ds.GetRasterBand(band).SetNoDataValue(0)
    return pixels


def ring(any_number, x, y, low, high):
    n = any_number.randint(3, 9)
    at = [(any_number.uniform(low, high), 2 * math.pi * k / n) for k in range(n)]
    return [[x + r * math.cos(a), y + r * math.sin(a)] for r, a in at]


def outlines(path, epsg=32632):
    """Twelve of them, over each other; some reach beyond the scene, some have a hole, one is on centres of pixels."""
    any_number = random.Random(5)
    to = osr.CoordinateTransformation(system(32632), system(epsg))
    features = []
    for i in range(12):
        x, y = WEST + any_number.uniform(100, 2900), NORTH - any_number.uniform(100, 2000)
        rings = [ring(any_number, x, y, 60, 400)] + ([ring(any_number, x, y, 20, 50)] if i % 3 == 0 else [])
        if i == 5:
            rings = [[[WEST + 1005, NORTH - 505], [WEST + 1305, NORTH - 505], [WEST + 1305, NORTH - 705], [WEST + 1005, NORTH - 705]]]
        rings = [[list(to.TransformPoint(*p)[:2]) for p in r + r[:1]] for r in rings]
        features.append({"type": "Feature", "properties": {"kind": "maize" if i % 2 else "wheat", "n": i},
                         "geometry": {"type": "Polygon", "coordinates": rings}})
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features,
                                "crs": {"type": "name", "properties": {"name": f"urn:ogc:def:crs:EPSG::{epsg}"}}}))


def cut(scratch, file, more="", code=0, of="scene.tif"):
    (scratch / "c.yaml").write_text(CONFIG % (file, more))
    done = pbtest.run_json("pushbroom", "run", "--json", "-c", scratch / "c.yaml", "-o", scratch / "out", "--existing", "replace",
                           scratch / of, code=code)[0]
    if code:
        return done["error"]
    ds = gdal.Open([p["path"] for p in done["products"] if p["type"] == "cog"][0])
    return ds.ReadAsArray(), ds.GetGeoTransform()


def warped(scratch, file, where=None, touched=False):
    options = ["-cwhere", where] if where else []
    options += ["-wo", "CUTLINE_ALL_TOUCHED=TRUE"] if touched else []
    subprocess.run(["gdalwarp", "-q", "-overwrite", "-cutline", scratch / file, "-crop_to_cutline", "-tr", "10", "10", "-tap", *options,
                    "-dstnodata", "0", scratch / "scene.tif", scratch / "warped.tif"], check=True)
    ds = gdal.Open(str(scratch / "warped.tif"))
    return ds.ReadAsArray(), ds.GetGeoTransform()


def burnt(scratch, file, transform, shape, where=None, touched=False):
    west, north = transform[0], transform[3]
    options = ["-where", where] if where else []
    options += ["-at"] if touched else []
    subprocess.run(["gdal_rasterize", "-q", "-burn", "1", "-ot", "Byte", "-init", "0", *options, "-te", str(west), str(north - 10 * shape[1]),
                    str(west + 10 * shape[2]), str(north), "-tr", "10", "10", scratch / file, scratch / "burnt.tif"], check=True)
    return gdal.Open(str(scratch / "burnt.tif")).ReadAsArray() == 1


def overlap(a, at, b, bt):
    """The part of b that a's rectangle has, 0 where it has none of it."""
    out = np.zeros_like(a)
    dx, dy = round((at[0] - bt[0]) / 10), round((bt[3] - at[3]) / 10)
    for y in range(a.shape[1]):
        for x0, x1 in [(max(0, -dx), min(a.shape[2], b.shape[2] - dx))]:
            if 0 <= y + dy < b.shape[1] and x1 > x0:
                out[:, y, x0:x1] = b[:, y + dy, x0 + dx:x1 + dx]
    return out


@pbtest.not_about_threads
def test_cutline_is_that_of_gdal(scratch):
    pixels = scene(scratch / "scene.tif")
    outlines(scratch / "f.geojson")
    subprocess.run(["ogr2ogr", "-f", "GPKG", scratch / "f.gpkg", scratch / "f.geojson"], check=True)
    for file, where, touched in [("f.geojson", None, False), ("f.geojson", "kind = 'maize' AND n < 9", False), ("f.gpkg", None, True),
                                 ("f.gpkg", "kind = 'maize'", True)]:
        more = (", touched: true" if touched else "") + (f', where: "{where}"' if where else "")
        got, transform = cut(scratch, file, more)
        inside = burnt(scratch, file, transform, got.shape, where, touched)
        x, y = round((transform[0] - WEST) / 10), round((NORTH - transform[3]) / 10)
        want = np.where(inside, pixels[:, y:y + got.shape[1], x:x + got.shape[2]], 0)
        assert 0.02 < inside.mean() < 0.9, inside.mean()
        assert np.array_equal(got, want), (file, where, touched, (got != want).sum())
    for where, touched in [("n = 3", False), ("n = 6", True)]: # one feature: gdalwarp takes overlaps of features for holes
        got, transform = cut(scratch, "f.geojson", f', where: "{where}"' + (", touched: true" if touched else ""))
        other, other_transform = warped(scratch, "f.geojson", where, touched)
        assert (got != 0).sum() > 500, (got != 0).sum()
        assert np.array_equal(got, overlap(got, transform, other, other_transform)), (where, touched)


@pbtest.not_about_threads
def test_cutline_of_another_crs_is_exact_to_a_pixel(scratch):
    """Edges are bent there: ours follow the curve; ogr2ogr moves the vertices alone, unless its edges are short."""
    pixels = scene(scratch / "scene.tif")
    outlines(scratch / "far.geojson", 4326)
    got, transform = cut(scratch, "far.geojson")
    subprocess.run(["ogr2ogr", "-segmentize", "0.0005", "-t_srs", "EPSG:32632", scratch / "near.gpkg", scratch / "far.geojson"], check=True)
    inside = burnt(scratch, "near.gpkg", transform, got.shape)
    x, y = round((transform[0] - WEST) / 10), round((NORTH - transform[3]) / 10)
    want = np.where(inside, pixels[:, y:y + got.shape[1], x:x + got.shape[2]], 0)
    assert (got != want).mean() < 2e-3, (got != want).mean()


def test_same_bytes_whatever_tiles_and_threads(scratch):
    scene(scratch / "scene.tif")
    outlines(scratch / "f.geojson")
    first = cut(scratch, "f.geojson")[0]
    for head in ("compute: {threads: 1, tile: 64}\n", "compute: {threads: 3, tile: 128}\n"):
        (scratch / "c.yaml").write_text(head + CONFIG % ("f.geojson", ""))
        done = pbtest.run_json("pushbroom", "run", "--json", "-c", scratch / "c.yaml", "-o", scratch / "out", "--existing", "replace",
                               scratch / "scene.tif")[0]
        assert np.array_equal(first, gdal.Open(done["products"][0]["path"]).ReadAsArray()), head


@pbtest.not_about_threads
def test_where_is_told_with_line_and_column(scratch):
    scene(scratch / "scene.tif")
    outlines(scratch / "f.geojson")
    subprocess.run(["ogr2ogr", "-f", "GPKG", scratch / "f.gpkg", scratch / "f.geojson"], check=True)
    line = CONFIG[:CONFIG.index("crop")].count("\n") + 1
    for file, where, what, at in [("f.geojson", "kind == 'maize'", "syntax error", 6), ("f.geojson", "colour = 3", "colour", None),
                                  ("f.gpkg", "colour = 3", "colour", None), ("f.geojson", "n > 400", "no feature fits", 0),
                                  ("f.gpkg", "n > 400", "no feature fits", 0)]:
        error = cut(scratch, file, f', where: "{where}"', code=1)
        config = (scratch / "c.yaml").read_text().splitlines()[line - 1]
        col = config.index(where) + 1
        assert error["code"] == "vector.choice", error
        assert f"c.yaml:{line}:" in error["message"] and what in error["message"] and "kind, n" in error["message"], error
        found = int(error["message"].split(f"c.yaml:{line}:")[1].split(":")[0])
        assert found >= col and (at is None or found == col + at), (error, col)
        assert "/vsimem" not in error["message"], error


@pbtest.not_about_threads
def test_keys_that_say_nothing_are_refused(scratch):
    for keys, what in [("window: [0, 0, 5, 5], cutline: true", "cutline"), ("polygons: f.geojson, touched: true", "touched"),
                       ("window: [0, 0, 5, 5], where: \"n = 1\"", "where")]:
        (scratch / "c.yaml").write_text("pipelines:\n  a:\n    input: {match: ['*']}\n    steps:\n      - crop: {%s}\n    products:\n"
                                        "      - cog: {type: float32}\n" % keys)
        done = pbtest.run("pushbroom", "check-config", scratch / "c.yaml", code=2)
        assert "c.yaml:5:" in done.stderr and f"'{what}'" in done.stderr, done.stderr


def pipeline(scratch, steps, products):
    (scratch / "c.yaml").write_text("pipelines:\n  a:\n    input: {match: ['*'], bands: {A: 1, B: 2}}\n    steps:\n" +
                                    "".join(f"      - {s}\n" for s in steps) + "    products:\n" + "".join(f"      - {p}\n" for p in products))
    return scratch / "c.yaml"


@pbtest.not_about_threads
def test_scene_outside_is_told_with_both_rectangles(scratch):
    scene(scratch / "scene.tif")
    outlines(scratch / "f.geojson")
    text = (scratch / "f.geojson").read_text().replace("60", "90")  # elsewhere
    (scratch / "f.geojson").write_text(text)
    for step, words in [("bounds: [7, 46, 8, 47]", ["[7, 46, 8, 47]", "[600000, 4097830, 603010, 4100000]", "bounds in degrees need crs: EPSG:4326"]),
                        ("bounds: [7, 46, 8, 47], crs: EPSG:4326", ["[7, 46, 8, 47]", "[10.1"]),
                        ("polygons: f.geojson", ["polygons: these are [90", "[600000, 4097830, 603010, 4100000]"])]:
        config = pipeline(scratch, [f"crop: {{{step}}}"], ["cog: {bands: [A], type: uint16, nodata: 0}"])
        done = pbtest.run_json("pushbroom", "run", "--json", "-c", config, "-o", scratch / "out", scratch / "scene.tif")[0]
        assert done["stage"] == "skipped", done
        assert all(w in done["report"]["skipped"] for w in words), done["report"]["skipped"]


@pbtest.not_about_threads
def test_mistakes_are_found_before_a_pixel_is_read(scratch):
    scene(scratch / "scene.tif")
    cog = ["cog: {bands: [A], type: uint16, nodata: 0}"]
    for steps, products, column, words in [(["crop: {bounds: [7, 46, 8, 47], crs: EPSG:99999}"], cog, 45, "crop.crs: 'EPSG:99999' is no coordinate system"),
                                           (["warp: {crs: /etc/passwd}"], cog, 21, "warp.crs: '/etc/passwd' is no coordinate system"),
                                           (["tasseled_cap: {sensor: landsat7, as: [wetness]}"], cog, 32, "'landsat7' is not known; write landsat-etm\n")]:
        done = pbtest.run("pushbroom", "check-config", pipeline(scratch, steps, products), code=2)
        assert f"c.yaml:5:{column}: " in done.stderr and words in done.stderr and "did you mean 'landsat" not in done.stderr, done.stderr
    for steps, code in [(['math: {bands: {K: "A / B"}}'], 2), (['math: {bands: {K: "A > B"}}'], 0), (["crop: {window: [3, 3, 30, 30], bands: {K: A}}"], 0)]:
        config = pipeline(scratch, steps, ["zones: {bands: [B], by: K}"] if "crop" not in steps[0] else ["zones: {bands: [K], by: K}"])
        done = pbtest.run("pushbroom", "run", "--dry-run", "-c", config, "-o", scratch / "out", scratch / "scene.tif", code=code)
        assert code == 0 or "band 'K' of by is computed" in done.stderr, done.stderr
    done = pbtest.run("pushbroom", "run", "-c", pipeline(scratch, ["crop: {window: [0, 0, 999, 9]}"], cog), "-o", scratch / "out", scratch / "scene.tif", code=1)
    assert "the band has 301 x 217 [pipeline.grid]" in done.stderr, done.stderr


@pbtest.not_about_threads
def test_points_are_omitted_and_cut_polygons_marked(scratch):
    scene(scratch / "scene.tif")

    def box(x, y, side, name):
        ring = [[WEST + x, NORTH - y], [WEST + x + side, NORTH - y], [WEST + x + side, NORTH - y - side], [WEST + x, NORTH - y - side], [WEST + x, NORTH - y]]
        return {"type": "Feature", "properties": {"name": name}, "geometry": {"type": "Polygon", "coordinates": [ring]}}

    point = {"type": "Feature", "properties": {"name": "well"}, "geometry": {"type": "Point", "coordinates": [WEST + 500, NORTH - 500]}}
    crs = {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::32632"}}
    features = [box(500, 500, 300, "inside"), point, box(-100, 500, 300, "edge"), box(0, 0, 100, "corner")]
    (scratch / "z.geojson").write_text(json.dumps({"type": "FeatureCollection", "crs": crs, "features": features}))
    for form in ("csv", "geojson"):
        config = pipeline(scratch, ["crop: {window: [0, 0, 301, 217]}"], [f"zones: {{bands: [A], zones: z.geojson, id: name, stats: [mean], format: {form}}}"])
        done = pbtest.run_json("pushbroom", "run", "--json", "-c", config, "-o", scratch / "out", "--existing", "replace", scratch / "scene.tif")[0]
        told = json.dumps(done)
        assert "1 feature of" in told and "left out: it is no polygon (the first: feature 1)" in told, done
        text = open(done["products"][0]["path"]).read()
        if form == "csv":
            lines = [line.split(",")[:3] for line in text.splitlines()]
            assert lines == [["name", "pixels", "cut"], ["inside", "900", "0"], ["edge", "600", "1"], ["corner", "100", "0"]], lines
        else:
            rows = [(f["properties"]["name"], f["properties"]["cut"], f["geometry"]["coordinates"][0][0][0]) for f in json.loads(text)["features"]]
            assert [row[:2] for row in rows] == [("inside", 0), ("edge", 1), ("corner", 0)] and rows[1][2] < rows[2][2] < rows[0][2], rows
    for step in ("crop: {polygons: z.geojson}", "crop: {polygons: z.geojson, cutline: true}"):
        own = pipeline(scratch, [step], ["cog: {}"])
        done = pbtest.run("pushbroom", "run", "-c", own, "-o", scratch / "cropped", "--existing", "replace", scratch / "scene.tif")
        told = " ".join(done.stdout.split())
        assert "warning 1 feature of z.geojson left out: it is no polygon (the first: feature 1)" in told, done.stdout
    (scratch / "z.geojson").write_text(json.dumps({"type": "FeatureCollection", "crs": crs, "features": [point]}))
    done = pbtest.run("pushbroom", "run", "-c", config, "-o", scratch / "out", scratch / "scene.tif", code=1)
    assert "feature 0 is a POINT, not a polygon" in done.stderr, done.stderr
    (scratch / "z.geojson").write_text('{"type": "FeatureCollection", "features": [')
    done = pbtest.run("pushbroom", "run", "-c", config, "-o", scratch / "out", scratch / "scene.tif", code=1)
    assert "z.geojson" in done.stderr and "/vsimem" not in done.stderr, done.stderr


if __name__ == "__main__":
    pbtest.main()
