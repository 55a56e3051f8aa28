#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: threads sanitized
"""Pixels, areas and statistics of zones, against numpy and PROJ, and the same bytes whatever the tiles, their order and the
threads."""
import csv
import json
import math
import os
import signal
import sqlite3
import subprocess
import time

import numpy as np
from osgeo import gdal, ogr, osr

import pbtest

gdal.UseExceptions()
ogr.UseExceptions()
HEAD = "service: {inbox: /i, work: /w, products: /p, quarantine: /q, state: /s, socket: /x.sock}\n"
STATS = ["valid", "valid_percent", "min", "max", "range", "mean", "std", "sum", "median", "p5", "p97.5", "majority", "minority", "variety"]


def scene(path, width, height, epsg=32633, transform=(600000, 10, 0, 5000000, 0, -10)):
    """A band of classes with holes, one of integers with many values, one of floats in [-1, 1], each with holes of its own."""
    rng = np.random.default_rng(5)
    y, x = np.mgrid[0:height, 0:width]
    classes = (x // 37 + y // 23 * 3) % 7 - 1.0
    planes = [classes, rng.integers(0, 4000, classes.shape) * 1.0, np.sin(x / 50) * rng.random(classes.shape)]
    planes = np.array(planes, np.float32)
    for i, plane in enumerate(planes):
        plane[rng.random(plane.shape) < 0.03] = np.nan
        plane[10 * i:10 * i + 40, 20:90] = np.nan
    ds = gdal.GetDriverByName("GTiff").Create(str(path), width, height, 3, gdal.GDT_Float32)
    ds.SetGeoTransform(transform)
    srs = osr.SpatialReference()
    srs.ImportFromEPSG(epsg)
    ds.SetProjection(srs.ExportToWkt())
    for i, plane in enumerate(planes):
        ds.GetRasterBand(i + 1).WriteArray(plane)
    return planes


def write(scratch, config, path, side=512, threads=1, seed=0, code=0):
    """The products of a pipeline without steps; tiles in any order."""
    out = scratch / f"out{side}_{threads}_{seed}"
    out.mkdir(exist_ok=True)
    (scratch / "c.yaml").write_text(HEAD + "pipelines:\n  p:\n    input: {match: ['*'], bands: {KIND: 1, N: 2, F: 3}}\n    products:\n" + config)
    pbtest.run("write_products", scratch / "c.yaml", "p", path, out, side, threads, seed, code=code)
    return out


def rows(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def number(text):
    return float(text) if text else np.nan


def of_numpy(values):
    """The statistics of one zone; values of a float32 plane."""
    n, v = values.size, values[np.isfinite(values)].astype(np.float64)
    if v.size == 0:
        return {**dict.fromkeys(STATS, np.nan), "valid": 0, "valid_percent": 0.0 if n else np.nan, "sum": 0, "variety": 0}
    kinds, counts = np.unique(v, return_counts=True)
    return dict(valid=v.size, valid_percent=100 * v.size / n, min=v.min(), max=v.max(), range=v.max() - v.min(), mean=v.mean(), std=v.std(), sum=v.sum(),
                median=np.median(v), majority=kinds[counts.argmax()], minority=kinds[counts.argmin()], variety=kinds.size,
                **{"p5": np.percentile(v, 5), "p97.5": np.percentile(v, 97.5)})


def compare(row, band, values):
    for name, expected in of_numpy(values).items():
        np.testing.assert_allclose(number(row[f"{band}_{name}"]), expected, rtol=1e-6 if name in ("min", "max", "majority", "minority") else 1e-12, atol=1e-12,
                                   err_msg=f"{band}_{name} of {row}")
    assert number(row[f"{band}_error"]) == 0 or not np.isfinite(values).any(), row


def test_classes_equal_numpy(scratch):
    kind, n, f = scene(scratch / "a.tif", 333, 217)
    out = write(scratch, f"      - zones: {{by: KIND, bands: [N, F], stats: [{', '.join(STATS)}], classes: {{water: 3}}}}\n", scratch / "a.tif", 64, 3, 9)
    table = rows(out / "scene.zones.csv")
    assert [float(r["KIND"]) for r in table] == [-1, 0, 1, 2, 3, 4, 5], table
    assert [r["KIND_name"] for r in table] == ["", "", "", "", "water", "", ""]
    for row in table:
        inside = kind == float(row["KIND"])
        assert int(row["pixels"]) == inside.sum()
        assert float(row["area_m2"]) == inside.sum() * 100 and float(row["area_ha"]) == inside.sum() / 100
        compare(row, "N", n[inside])
        compare(row, "F", f[inside])


@pbtest.not_about_memory
def test_bytes_ignore_tiles_order_and_threads(scratch):
    scene(scratch / "a.tif", 577, 334)
    config = ("      - zones: {by: KIND, bands: [N, F], stats: [sum, std, median, majority]}\n"
              "      - zones: {name: areas, by: KIND, format: json}\n")
    names = ("scene.zones.csv", "scene.areas.zones.json")
    whole = write(scratch, config, scratch / "a.tif", 1024)
    expected = [(whole / name).read_bytes() for name in names]
    areas = json.loads(expected[1])["zones"]
    assert [a["pixels"] for a in areas] == [int(r["pixels"]) for r in rows(whole / names[0])]
    assert set(areas[0]) == {"KIND", "pixels", "area_m2", "area_ha"}, areas[0]
    for side, threads, seed in ((64, 1, 0), (64, 4, 7), (128, 3, 8)):
        out = write(scratch, config, scratch / "a.tif", side, threads, seed)
        assert [(out / name).read_bytes() for name in names] == expected, (side, threads, seed)


@pbtest.not_about_threads
def test_areas_in_degrees_and_mercator_are_ellipsoidal(scratch):
    """GDAL 3.6 has no geodesic area in Python: cells in a cylindrical equal-area projection instead, where meridians and parallels are
    straight."""
    for epsg, transform in ((4326, (10.0, 0.5, 0, 80.0, 0, -0.7)), (3857, (1e6, 3000.0, 0, 1.2e7, 0, -9000.0)),
                            (3395, (1e6, 3000.0, 0, 1.2e7, 0, -9000.0)), (5641, (1e6, 3000.0, 0, 1.4e7, 0, -9000.0))):
        kind, _, _ = scene(scratch / "g.tif", 101, 217, epsg, transform)
        out = write(scratch, "      - zones: {by: KIND}\n", scratch / "g.tif", 64)
        source, equal = osr.SpatialReference(), osr.SpatialReference()
        source.ImportFromEPSG(epsg)
        source.SetAxisMappingStrategy(osr.OAMS_TRADITIONAL_GIS_ORDER)
        equal.ImportFromProj4("+proj=cea +ellps=WGS84 +units=m")
        to = osr.CoordinateTransformation(source, equal)
        corner = np.array([to.TransformPoint(transform[0] + transform[1], transform[3] + i * transform[5])[:2] for i in range(218)])
        width = corner[0, 0] - to.TransformPoint(transform[0], transform[3])[0]
        area = np.abs(np.diff(corner[:, 1])) * width
        for row in rows(out / "scene.zones.csv"):
            expected = ((kind == float(row["KIND"])).sum(axis=1) * area).sum()
            np.testing.assert_allclose(float(row["area_m2"]), expected, rtol=1e-9)


@pbtest.not_about_threads
def test_areas_that_are_not_known_are_empty(scratch):
    scene(scratch / "rotated.tif", 64, 64, 4326, (10.0, 0.5, 0.1, 60.0, 0.1, -0.5))
    gdal.GetDriverByName("GTiff").Create(str(scratch / "plain.tif"), 64, 64, 3, gdal.GDT_Float32).WriteArray(np.ones((3, 64, 64), np.float32))
    for name in ("plain.tif", "rotated.tif"):
        for row in rows(write(scratch, "      - zones: {by: KIND}\n", scratch / name) / "scene.zones.csv"):
            assert row["area_m2"] == row["area_ha"] == "" and int(row["pixels"]) > 0, row


def fields(path, epsg=32633, driver="GeoJSON"):
    """Overlapping polygons, one with a hole, one of two parts, one on the edge, one far away, one without geometry; on the grid of scene()."""
    to, utm = osr.SpatialReference(), osr.SpatialReference()
    to.ImportFromEPSG(epsg)
    utm.ImportFromEPSG(32633)
    for srs in (to, utm):
        srs.SetAxisMappingStrategy(osr.OAMS_TRADITIONAL_GIS_ORDER)
    def ring(*points):
        return "(" + ", ".join(f"{600000 + x:.3f} {5000000 - y:.3f}" for x, y in points + points[:1]) + ")"
    shapes = ["POLYGON (" + ring((103, 207), (1507, 311), (1291, 1402), (52, 1177)) + ")",
              "POLYGON (" + ring((903, 117), (2507, 311), (2291, 1902), (652, 1677)) + ", " + ring((1203, 517), (1807, 611), (1491, 1302)) + ")",
              "MULTIPOLYGON ((" + ring((-400, 1800), (300, 1500), (450, 3000)) + "), (" + ring((3000, 13), (4000, 55), (3100, 909)) + "))",
              "POLYGON (" + ring((90000, 0), (91000, 0), (91000, 900)) + ")", None,
              "POLYGON (" + ring((1001, 1001), (1003, 1001), (1003, 1003)) + ")"]
    ds = ogr.GetDriverByName(driver).CreateDataSource(str(path))
    layer = ds.CreateLayer("fields", to, ogr.wkbUnknown)
    layer.CreateField(ogr.FieldDefn("parcel", ogr.OFTString))
    layer.CreateField(ogr.FieldDefn("number", ogr.OFTInteger))
    for i, wkt in enumerate(shapes):
        feature = ogr.Feature(layer.GetLayerDefn())
        feature["parcel"], feature["number"] = f"a, {i}", i * 10
        if wkt:
            shape = ogr.CreateGeometryFromWkt(wkt)
            shape.Segmentize(200.0)
            shape.Transform(osr.CoordinateTransformation(utm, to))
            feature.SetGeometry(shape)
        layer.CreateFeature(feature)
    ds = None
    return path


def drop_corners(inside, shape, grid):
    """GDAL also burns pixels that an outline meets in their corner alone; they share no area with the polygon."""
    to, t, shape = grid.GetSpatialRef(), grid.GetGeoTransform(), shape.Clone()
    to.SetAxisMappingStrategy(osr.OAMS_TRADITIONAL_GIS_ORDER)
    shape.TransformTo(to)
    centres = np.pad(inside, 1)
    around = centres[:-2, 1:-1] & centres[2:, 1:-1] & centres[1:-1, :-2] & centres[1:-1, 2:]
    for y, x in np.argwhere(inside & ~around):
        west, north = t[0] + x * t[1], t[3] + y * t[5]
        east, south = west + t[1], north + t[5]
        pixel = ogr.CreateGeometryFromWkt(f"POLYGON (({west} {north},{east} {north},{east} {south},{west} {south},{west} {north}))")
        shared = shape.Intersection(pixel)
        inside[y, x] = shared.GetDimension() == 2 and shared.GetArea() > 1e-6


def burn(path, like, touched=False):
    """Pixels that GDAL burns for each feature. GDAL cuts lines at the edge of its grid, which moves them there; therefore its grid is wider."""
    grid, vector = gdal.Open(str(like)), ogr.Open(str(path))
    out, margin, t = [], 150, list(grid.GetGeoTransform())
    t[0], t[3] = t[0] - margin * t[1], t[3] - margin * t[5]
    for feature in vector.GetLayer(0):
        one = ogr.GetDriverByName("MEM" if ogr.GetDriverByName("Memory") is None else "Memory").CreateDataSource("x")
        layer = one.CreateLayer("x", vector.GetLayer(0).GetSpatialRef())
        if feature.GetGeometryRef() is not None:
            copy = ogr.Feature(layer.GetLayerDefn())
            copy.SetGeometry(feature.GetGeometryRef())
            layer.CreateFeature(copy)
        target = gdal.GetDriverByName("MEM").Create("", grid.RasterXSize + 2 * margin, grid.RasterYSize + 2 * margin, 1)
        target.SetGeoTransform(t)
        target.SetProjection(grid.GetProjection())
        gdal.RasterizeLayer(target, [1], layer, burn_values=[1], options=["ALL_TOUCHED=TRUE"] if touched else [])
        out.append(target.ReadAsArray()[margin:-margin, margin:-margin] == 1)
        if touched and feature.GetGeometryRef() is not None:
            drop_corners(out[-1], feature.GetGeometryRef(), grid)
    return out


def test_polygons_equal_gdal_and_numpy(scratch):
    kind, n, _ = scene(scratch / "a.tif", 333, 217)
    fields(scratch / "f.geojson")
    fields(scratch / "f.gpkg", driver="GPKG")
    for file, touched, side in (("f.geojson", False, 64), ("f.gpkg", True, 128)):
        out = write(scratch, f"      - zones: {{zones: {file}, id: parcel, attributes: [number], bands: [N], touched: {str(touched).lower()}, stats: [{', '.join(STATS)}]}}\n"
                             f"      - zones: {{name: both, zones: {file}, id: number, by: KIND, bands: [N], stats: [{', '.join(STATS)}]}}\n", scratch / "a.tif", side, 3, 4)
        table, inside = rows(out / "scene.zones.csv"), burn(scratch / file, scratch / "a.tif", touched)
        assert [(r["parcel"], r["number"]) for r in table] == [(f"a, {i}", str(10 * i)) for i in range(6)], table
        assert inside[0].any() and (inside[0] & inside[1]).any() and not inside[3].any()
        for row, where in zip(table, inside):
            assert int(row["pixels"]) == where.sum(), (row, where.sum())
            assert float(row["area_m2"]) == where.sum() * 100
            compare(row, "N", n[where])
        inside, both = burn(scratch / file, scratch / "a.tif"), rows(out / "scene.both.zones.csv")
        pairs = [(i * 10, k) for i, where in enumerate(inside) for k in np.unique(kind[where & np.isfinite(kind)])]
        assert [(int(r["number"]), float(r["KIND"])) for r in both] == pairs
        for row, (number_, k) in zip(both, pairs):
            compare(row, "N", n[inside[number_ // 10] & (kind == k)])


@pbtest.not_about_threads
def test_geojson_and_gpkg_have_outlines_and_numbers(scratch):
    scene(scratch / "a.tif", 333, 217)
    fields(scratch / "f.gpkg", driver="GPKG")
    config = "".join(f"      - zones: {{name: {form}, zones: f.gpkg, layer: fields, id: parcel, bands: [N], stats: [mean, majority], format: {form}}}\n" for form in ("csv", "geojson", "gpkg"))
    out, again = write(scratch, config, scratch / "a.tif", 64, 4, 3), write(scratch, config, scratch / "a.tif", 1024)
    table = rows(out / "scene.csv.zones.csv")
    for form in ("geojson", "gpkg"):
        assert (out / f"scene.{form}.zones.{form}").read_bytes() == (again / f"scene.{form}.zones.{form}").read_bytes()
        layer = (ds := ogr.Open(str(out / f"scene.{form}.zones.{form}"))).GetLayer(0)
        source = (sds := ogr.Open(str(scratch / "f.gpkg"))).GetLayer(0)
        assert layer.GetSpatialRef().GetAuthorityCode(None) == {"geojson": "4326", "gpkg": "32633"}[form]
        assert layer.GetFeatureCount() == len(table) == 6
        for feature, outline, row in zip(layer, source, table):
            for name, text in row.items():
                value = feature[name]
                assert (value is None and text == "") or str(value) == text or abs(value - float(text)) <= 1e-6 * abs(value), (name, value, text)
            if (shape := outline.GetGeometryRef()) is None:
                assert feature.GetGeometryRef() is None
                continue
            srs = layer.GetSpatialRef()
            srs.SetAxisMappingStrategy(osr.OAMS_TRADITIONAL_GIS_ORDER)
            shape = shape.Clone()
            shape.TransformTo(srs)
            assert feature.GetGeometryRef().SymmetricDifference(shape).Area() <= 2e-7 * shape.Boundary().Length()


@pbtest.not_about_threads
def test_polygons_of_another_crs_are_those_of_the_grid(scratch):
    _, n, _ = scene(scratch / "a.tif", 333, 217)
    fields(scratch / "f.geojson", 4326)
    (scratch / "c.yaml").write_text("pipelines:\n  p:\n    input: {match: ['*'], bands: {KIND: 1, N: 2, F: 3}}\n    products:\n"
                                    "      - zones: {zones: f.geojson, bands: [N], stats: [valid, mean], format: geojson}\n      - stac: {datetime: file-time}\n")
    report, = pbtest.run_json("pushbroom", "run", "--json", "-c", scratch / "c.yaml", "-o", scratch / "out", scratch / "a.tif")
    features = json.loads(pbtest.pathlib.Path(report["products"][0]["path"]).read_text())["features"]
    fields(scratch / "utm.geojson")
    for feature, where in zip(features, burn(scratch / "utm.geojson", scratch / "a.tif")):
        assert abs(feature["properties"]["pixels"] - where.sum()) <= 0.001 * where.sum(), feature["properties"]
    item = json.loads(pbtest.pathlib.Path(report["products"][1]["path"]).read_text())
    assert item["assets"]["zones"]["type"] == "application/geo+json", item["assets"]


@pbtest.not_about_threads
def test_zones_lie_on_the_grid_that_a_warp_makes(scratch):
    """Areas and polygons of a scene in degrees, on a grid in metres and back: as numpy and GDAL have them of the same image in a file."""
    scene(scratch / "utm.tif", 160, 150)
    fields(scratch / "f.geojson")
    area = burn(scratch / "f.geojson", scratch / "utm.tif")[0].sum() * 100
    gdal.Warp(str(scratch / "degrees.tif"), str(scratch / "utm.tif"), dstSRS="EPSG:4326")
    for name, crs in (("degrees", 32633), ("utm", 4326)):
        (scratch / "c.yaml").write_text("pipelines:\n  p:\n    input: {match: ['*'], bands: {KIND: 1, N: 2, F: 3}}\n    steps: [warp: {crs: 'EPSG:%d', method: nearest}]\n" % crs +
                                        "    products:\n      - cog: {type: float32, nodata: -9999}\n      - zones: {by: KIND}\n      - zones: {name: f, zones: f.geojson, id: number, bands: [N], stats: [valid]}\n")
        report, = pbtest.run_json("pushbroom", "run", "--json", "-c", scratch / "c.yaml", "-o", scratch / name, scratch / f"{name}.tif")
        cog, classes, polygons = (p["path"] for p in report["products"])
        again = scratch / f"again_{name}"
        again.mkdir()
        expected = write(again, "      - zones: {by: KIND}\n      - zones: {name: f, zones: ../f.geojson, id: number, bands: [N], stats: [valid]}\n", cog)
        assert pbtest.pathlib.Path(classes).read_text() == (expected / "scene.zones.csv").read_text(), name
        assert pbtest.pathlib.Path(polygons).read_text() == (expected / "scene.f.zones.csv").read_text(), name
        table = rows(polygons)
        assert int(table[0]["pixels"]) > 0 and abs(float(table[0]["area_m2"]) / area - 1) < 0.01, (table[0], area)


@pbtest.not_about_threads
def test_polygons_over_the_memory_are_refused(scratch):
    """Small in the file, and over all of the rows of a tall grid."""
    ds = gdal.GetDriverByName("GTiff").Create(str(scratch / "tall.tif"), 4, 60000, 1, gdal.GDT_Byte)
    srs = osr.SpatialReference()
    srs.ImportFromEPSG(32633)
    ds.SetProjection(srs.ExportToWkt())
    ds.SetGeoTransform((0, 1, 0, 60000, 0, -1))
    ds = None
    feature = {"type": "Feature", "properties": {}, "geometry": {"type": "Polygon", "coordinates": [[[0, 0], [4, 0], [0, 60000], [0, 0]]]}}
    for n, code in ((20, 0), (6000, 1)):
        (scratch / "f.geojson").write_text(json.dumps({"type": "FeatureCollection", "crs": {"type": "name", "properties": {"name": "EPSG:32633"}}, "features": [feature] * n}))
        (scratch / "c.yaml").write_text("compute: {memory: 24 MiB}\npipelines:\n  p:\n    input: {match: ['*'], bands: {N: 1}}\n    products: [zones: {zones: f.geojson}]\n")
        report, = pbtest.run_json("pushbroom", "run", "--json", "-c", scratch / "c.yaml", "-o", scratch / "out", scratch / "tall.tif", code=code)
    assert report["error"]["code"] == "plan.memory" and "for products" in report["error"]["message"], report


def many_fields(path, n):
    """n fields of 24 corners on the grid of scene()."""
    step = 900 / math.ceil(math.sqrt(n))
    side = round(900 / step)
    features = []
    for i in range(n):
        x, y = 600010 + (i % side + 0.5) * step, 4999990 - (i // side + 0.5) * step
        ring = [[x + step * (0.3 + 0.02 * (k % 7)) * math.cos(k * math.pi / 12), y + step * (0.3 + 0.02 * (k % 7)) * math.sin(k * math.pi / 12)] for k in range(24)]
        features.append({"type": "Feature", "properties": {"parcel": f"number {i}"}, "geometry": {"type": "Polygon", "coordinates": [ring + ring[:1]]}})
    path.write_text(json.dumps({"type": "FeatureCollection", "crs": {"type": "name", "properties": {"name": "EPSG:32633"}}, "features": features}))


# A small process that starts the command: a process begins with the peak of the one that started it.
PEAK = """import os, sys
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
_, status, usage = os.wait4(pid, 0)
print(usage.ru_maxrss * 1024)
sys.exit(os.waitstatus_to_exitcode(status))"""


def peak_of(*args):
    """Most resident bytes of a process of `pushbroom run`, and the bytes of its plan."""
    done = subprocess.run(["/usr/bin/python3", "-c", PEAK, str(pbtest.BIN / "pushbroom"), "run", "--json", "--existing", "replace", *map(str, args)],
                          stdout=subprocess.PIPE, text=True, check=True)
    report, peak = done.stdout.splitlines()
    return int(peak), json.loads(report)["report"]["memory_bytes"]


def test_many_polygons_stay_below_the_planned_memory(scratch):
    """The planned bytes grow at least as much as the resident ones, by less than 3 times, and are far below the default memory."""
    if pbtest.SANITIZED:
        raise pbtest.Skip("a sanitizer's memory is not planned")
    scene(scratch / "a.tif", 97, 71)
    for keys in ("bands: [N], stats: [mean]", "bands: [N], stats: [median], format: json", "bands: [N], stats: [mean], format: gpkg", "bands: [N], stats: [mean], format: geojson"):
        (scratch / "c.yaml").write_text(f"pipelines:\n  p:\n    input: {{match: ['*'], bands: {{KIND: 1, N: 2, F: 3}}}}\n    products:\n      - zones: {{zones: f.geojson, id: parcel, {keys}}}\n")
        few, many = [], []
        for n, to in ((10, few), (10000, many)):
            many_fields(scratch / "f.geojson", n)
            to += peak_of("-c", scratch / "c.yaml", "-o", scratch / "out", scratch / "a.tif")
        used, planned = many[0] - few[0], many[1] - few[1]
        assert used <= planned < 3 * used + (8 << 20), (keys, used, planned)
        assert len(rows(scratch / "out/a/p/a.zones.csv")) == 10000 if "format" not in keys else True


@pbtest.not_about_threads
def test_bad_vector_file_is_refused_before_any_pixel(scratch):
    scene(scratch / "a.tif", 64, 64)
    fields(scratch / "f.geojson")
    for keys, code, words in (("zones: no.geojson", "vector.missing", "no.geojson"), ("zones: f.geojson, id: plot", "vector.choice", "parcel"),
                              ("zones: f.geojson, layer: other", "vector.choice", "fields")):
        (scratch / "c.yaml").write_text(f"pipelines:\n  p:\n    input: {{match: ['*'], bands: {{N: 2}}}}\n    products: [zones: {{{keys}}}]\n")
        for dry in ((), ("--dry-run",)):
            report, = pbtest.run_json("pushbroom", "run", "--json", *dry, "-c", scratch / "c.yaml", "-o", scratch / "out", scratch / "a.tif", code=1)
            assert report["error"]["code"] == code and words in report["error"]["message"], report


def series(scratch, scenes):
    """Runs that write into one directory of products and append their tables to one file."""
    for name in scenes:
        scene(scratch / f"{name}.tif", 97, 71)
    fields(scratch / "f.geojson")
    (scratch / "c.yaml").write_text("pipelines:\n  p:\n    input: {match: ['*'], bands: {KIND: 1, N: 2, F: 3}}\n    products:\n"
                                    "      - zones: {zones: f.geojson, id: parcel, bands: [N], stats: [mean], append: series.csv}\n")
    return lambda name: [str(pbtest.BIN / "pushbroom"), "run", "--existing", "replace", "-c", str(scratch / "c.yaml"), "-o", str(scratch / "out"), str(scratch / f"{name}.tif")]


def is_whole(path, scenes):
    table = rows(path)
    assert path.read_text().endswith("\n") and list(table[0])[:3] == ["scene", "datetime", "parcel"], table[0]
    for name in {r["scene"] for r in table}:
        assert name in scenes and [r["parcel"] for r in table if r["scene"] == name] == [f"a, {i}" for i in range(6)], table
    return {r["scene"] for r in table}


@pbtest.not_about_threads
def test_series_has_rows_of_a_scene_once_despite_kills(scratch):
    scenes = ("a", "b", "c", "d")
    command, path = series(scratch, scenes), scratch / "out/series.csv"
    started = time.monotonic()
    subprocess.run(command("a"), check=True, capture_output=True)
    took = time.monotonic() - started
    for i in range(12):  # killed at any place, all its processes
        run = subprocess.Popen(command(scenes[i % 4]), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        time.sleep(took * (0.35 + 0.06 * i))
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()
        is_whole(path, scenes)
    together = [subprocess.Popen(command(name), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for name in scenes]
    for run in together:
        said = run.communicate()[1]
        assert run.returncode == 0, said
    assert is_whole(path, scenes) == set(scenes)
    before = path.read_bytes()
    subprocess.run(command("b"), check=True, capture_output=True)
    assert sorted(path.read_bytes().splitlines()) == sorted(before.splitlines()), "a scene that comes again adds no rows"


@pbtest.not_about_threads
def test_a_series_has_the_time_that_the_item_has(scratch):
    for name, source, wanted in (("a_20260604", "name:%Y%m%d", "2026-06-04T00:00:00Z"), ("b", "2026-05-04T10:30:00Z", "2026-05-04T10:30:00Z")):
        command = series(scratch, (name,))(name)
        (scratch / "c.yaml").write_text((scratch / "c.yaml").read_text() + f"      - stac: {{datetime: '{source}'}}\n")
        subprocess.run(command, check=True, capture_output=True)
        assert {r["datetime"] for r in rows(scratch / "out/series.csv") if r["scene"] == name} == {wanted}


@pbtest.not_about_threads
def test_series_distinguishes_scene_names_with_commas(scratch):
    """If a scene is delivered again without zones, its rows are removed."""
    series(scratch, ("a,1", 'a,"2', "a"))
    (scratch / "c.yaml").write_text("pipelines:\n  p:\n    input: {match: ['*'], bands: {KIND: 1, N: 2, F: 3}}\n    products:\n"
                                    "      - zones: {by: KIND, append: series.csv}\n")
    def put(name):
        command = [str(pbtest.BIN / "pushbroom"), "run", "--existing", "replace", "-c", str(scratch / "c.yaml"), "-o", str(scratch / "out"), str(scratch / f"{name}.tif")]
        subprocess.run(command, check=True, capture_output=True)
        return [r["scene"] for r in rows(scratch / "out/series.csv")]
    put("a,1")
    put('a,"2')
    each = put("a")
    known = set(each)
    n = len(each) // 3
    assert len(known) == 3 and all(each.count(name) == n > 1 for name in known), each
    assert sorted(put("a,1")) == sorted(each)
    with_nothing = gdal.Open(str(scratch / "a,1.tif"), gdal.GA_Update)
    with_nothing.GetRasterBand(1).WriteArray(np.full((71, 97), np.nan, np.float32))
    with_nothing = None
    assert sorted(put("a,1")) == sorted(name for name in each if "1" not in name)


@pbtest.not_about_threads
def test_a_series_that_is_too_large_is_said_to_be(scratch):
    command, path = series(scratch, ("a",)), scratch / "out/series.csv"
    path.parent.mkdir()
    with path.open("wb") as file:
        file.truncate((1 << 30) + 1)
    done = subprocess.run(command("a"), capture_output=True, text=True)
    assert done.returncode == 1 and "1024 MiB" in done.stderr and "is no series" not in done.stderr, done


@pbtest.not_about_threads
def test_numbers_of_64_bits_keep_their_digits(scratch):
    scene(scratch / "a.tif", 64, 64)
    fields(scratch / "f.gpkg", driver="GPKG")
    layer = (ds := gdal.OpenEx(str(scratch / "f.gpkg"), gdal.OF_UPDATE)).GetLayer(0)
    layer.CreateField(ogr.FieldDefn("code", ogr.OFTInteger64))
    for i in range(6):
        feature = layer.GetFeature(i + 1)
        feature["code"] = 9007199254740993 + i
        layer.SetFeature(feature)
    feature = layer = ds = None
    out = write(scratch, "      - zones: {zones: f.gpkg, id: code, bands: [N], stats: [mean]}\n      - zones: {name: g, zones: f.gpkg, id: code, bands: [N], stats: [mean], format: gpkg}\n",
                scratch / "a.tif", 64)
    expected = [9007199254740993 + i for i in range(6)]
    assert [int(r["code"]) for r in rows(out / "scene.zones.csv")] == expected
    ds = ogr.Open(str(out / "scene.g.zones.gpkg"))
    assert [f["code"] for f in ds.GetLayer(0)] == expected


@pbtest.not_about_threads
def test_a_geopackage_that_is_written_to_is_refused(scratch):
    scene(scratch / "a.tif", 64, 64)
    fields(scratch / "f.gpkg", driver="GPKG")
    with sqlite3.connect(scratch / "f.gpkg") as db:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("CREATE TABLE more (x)")
        db.commit()
        assert (scratch / "f.gpkg-wal").stat().st_size > 0
        (scratch / "c.yaml").write_text("pipelines:\n  p:\n    input: {match: ['*'], bands: {N: 2}}\n    products: [zones: {zones: f.gpkg}]\n")
        report, = pbtest.run_json("pushbroom", "run", "--json", "-c", scratch / "c.yaml", "-o", scratch / "out", scratch / "a.tif", code=1)
    assert report["error"]["code"] == "vector.invalid" and "f.gpkg-wal" in report["error"]["message"], report
    db.close()


@pbtest.not_about_threads
def test_duplicate_columns_are_refused_with_bands(scratch):
    scene(scratch / "a.tif", 64, 64)
    fields(scratch / "f.gpkg", driver="GPKG")
    ds = gdal.OpenEx(str(scratch / "f.gpkg"), gdal.OF_UPDATE)
    ds.GetLayer(0).CreateField(ogr.FieldDefn("n_MEAN", ogr.OFTReal))
    ds = None
    (scratch / "c.yaml").write_text("pipelines:\n  p:\n    input: {match: ['*'], bands: {N: 2}}\n    products: [zones: {zones: f.gpkg, attributes: [n_MEAN]}]\n")
    for dry in ((), ("--dry-run",)):
        report, = pbtest.run_json("pushbroom", "run", "--json", *dry, "-c", scratch / "c.yaml", "-o", scratch / "out", scratch / "a.tif", code=1)
        assert "two columns of the table would be called N_mean" in report["error"]["message"], report


@pbtest.not_about_threads
def test_a_series_leaves_files_of_others_alone(scratch):
    command, path = series(scratch, ("a",)), scratch / "out/series.csv"
    (scratch / "out").mkdir()
    for foreign in ("scene,other\n", "", "notes of mine"):
        path.write_text(foreign)
        done = subprocess.run(command("a"), capture_output=True, text=True)
        assert done.returncode == 1 and "output.series" in done.stderr and "name another table in zones.append" in done.stderr and "series.csv is no series" in done.stderr, done
        assert path.read_text() == foreign and not (scratch / "out/a").exists()
    path.unlink()
    path.symlink_to(scratch / "elsewhere.csv")
    assert subprocess.run(command("a"), capture_output=True).returncode == 1 and not (scratch / "elsewhere.csv").exists()


@pbtest.not_about_threads
def test_a_band_that_is_no_class_fails_the_job(scratch):
    scene(scratch / "a.tif", 333, 217)
    (scratch / "c.yaml").write_text("pipelines:\n  p:\n    input: {match: ['*'], bands: {KIND: 1, N: 2, F: 3}}\n    products: [zones: {by: F}, stac: {datetime: file-time}]\n")
    report, = pbtest.run_json("pushbroom", "run", "--json", "-c", scratch / "c.yaml", "-o", scratch / "out", scratch / "a.tif", code=1)
    assert report["error"]["code"] == "pipeline.product" and "'F' has more than 4096 values" in report["error"]["message"], report


@pbtest.not_about_threads
def test_the_table_is_an_asset_of_the_item(scratch):
    scene(scratch / "a.tif", 333, 217)
    (scratch / "c.yaml").write_text("pipelines:\n  p:\n    input: {match: ['*'], bands: {KIND: 1, N: 2, F: 3}}\n    products:\n"
                                    "      - zones: {by: KIND, bands: [N]}\n      - zones: {name: areas, by: KIND, format: json}\n      - stac: {datetime: file-time}\n")
    report, = pbtest.run_json("pushbroom", "run", "--json", "-c", scratch / "c.yaml", "-o", scratch / "out", scratch / "a.tif")
    item = json.loads(pbtest.pathlib.Path(report["products"][-1]["path"]).read_text())
    assert {k: (a["href"], a["type"], a["roles"]) for k, a in item["assets"].items()} == {
        "zones": ("./a.zones.csv", "text/csv", ["data"]), "areas": ("./a.areas.zones.json", "application/json", ["data"])}, item["assets"]


@pbtest.not_about_threads
def test_mistakes_are_found_before_a_pixel_is_read(scratch):
    (scratch / "c.yaml").write_text("""pipelines:
  p:
    input: {match: ["*"], bands: {KIND: 1, N: 2}}
    products:
      - zones: {by: OTHER, bands: [N], stats: [median, p101, mean, mean]}
      - zones: {name: b, bands: [N], classes: {a: 1, b: 1}}
      - zones: {name: c, by: KIND, id: parcel, format: gpkg}
      - zones: {name: d, zones: f.gpkg, attributes: [fid]}
      - zones: {name: e, by: KIND, append: e.txt}
      - zones: {name: f, by: KIND, append: f.csv, format: json}
      - zones: {name: g, zones: f.gpkg, attributes: [AREA_ha], format: geojson}
      - zones: {name: h, zones: f.gpkg, id: feature_id, format: gpkg}
      - zones: {name: i, by: KIND, append: same.csv}
  q:
    input: {match: ["*"], bands: {KIND: 1}}
    products:
      - zones: {by: KIND, append: same.csv}
""")
    said = pbtest.run("pushbroom", "check-config", scratch / "c.yaml", code=None)
    text = said.stdout + said.stderr
    assert said.returncode != 0
    for words in (":5:9: zones: no step makes a band 'OTHER'", ":5:47: zones.stats: 'p101'", "zones.stats: mean is there twice",
                  ":6:9: zones: which zones?", ":7:40: zones.id is of a vector file", "classes of a band have no outline",
                  "zones.attributes: fid is a column already",
                  "'e.txt' is no name of a CSV file", "zones.append is for tables", "a and b are names of one value, 1",
                  "two columns of the table would be called area_ha", "two columns of the table would be called feature_id",
                  ":17:9: zones: the product in line 13 puts its rows into 'same.csv', too"):
        assert words in text, (words, text)


if __name__ == "__main__":
    pbtest.main()
