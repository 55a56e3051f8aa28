#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: threads
"""Polygons across 180 degrees, around poles and of the other longitude convention, on grids that end at such a seam and on others.
The right pixels are those whose centres, moved by PROJ into the polygon's system, are inside of it there."""
import csv
import math
import os
import random

import numpy as np
from osgeo import gdal, ogr, osr

import pbtest

gdal.UseExceptions()
ogr.UseExceptions()
HALF = 20037508.342789244
SINUSOIDAL = "+proj=sinu +lon_0=0 +R=6371007.181 +units=m"
# The grid's system, its transform, and its size.
SCENES = {
    "world": ("EPSG:4326", (-180, 2, 0, 90, 0, -2), (180, 90)),
    "to360": ("EPSG:4326", (0, 2, 0, 90, 0, -2), (180, 90)),
    "centred": ("EPSG:4326", (-181, 2, 0, 91, 0, -2), (181, 91)),
    "region": ("EPSG:4326", (165, 0.5, 0, -5, 0, -0.5), (80, 60)),
    "arctic": ("EPSG:3413", (-4e6, 6e4, 0, 4e6, 0, -6e4), (133, 133)),
    "antarctic": ("EPSG:3031", (-4e6, 6e4, 0, 4e6, 0, -6e4), (133, 133)),
    "mercator": ("EPSG:3857", (-HALF, HALF / 90, 0, HALF, 0, -HALF / 90), (180, 180)),
    "ease": ("EPSG:6933", (-17367530.44, 173675.3044, 0, 7314540.83, 0, -146290.8166), (200, 100)),
    "sinusoidal": (SINUSOIDAL, (-20015109.354, 200151.09354, 0, 10007554.677, 0, -200151.09354), (200, 100)),
    "pacific": ("EPSG:3832", (-19e6, 2e5, 0, 9e6, 0, -2e5), (190, 90)),
    "utm": ("EPSG:32760", (3e5, 1e4, 0, 8.4e6, 0, -1e4), (80, 90)),
}
# The system of a file, and where the middles of its polygons are: west, south, east, north, and how far their outlines are from there.
FILES = {
    "EPSG:4326": (-190, -70, 200, 70, 18),
    "EPSG:4269": (0, -70, 360, 70, 18),
    "EPSG:3413": (-2e6, -2e6, 2e6, 2e6, 2.5e6),
    "EPSG:3031": (-2e6, -2e6, 2e6, 2e6, 2.5e6),
    "EPSG:32760": (2e5, 7e6, 9e5, 9e6, 6e5),
    "EPSG:32601": (2e5, 1e6, 9e5, 6e6, 6e5),
    "EPSG:3832": (-6e6, -5e6, 8e6, 5e6, 3e6),
    "EPSG:3460": (1.6e6, 3.6e6, 2.4e6, 4.4e6, 4e5),
}


def system(text):
    srs = osr.SpatialReference()
    srs.SetFromUserInput(text)
    srs.SetAxisMappingStrategy(osr.OAMS_TRADITIONAL_GIS_ORDER)
    return srs


def star(any_number, x, y, most):
    """A ring around a place, that no ray from there meets twice."""
    n = any_number.randint(4, 11)
    turn = any_number.uniform(0, 7)
    at = [(any_number.uniform(0.4, 1) * most, turn + 2 * math.pi * k / n) for k in range(n)]
    return [(x + r * math.cos(a), y + r * math.sin(a)) for r, a in at]


def shapes(any_number, crs, n):
    """Polygons of one or two parts, with holes and without."""
    west, south, east, north, most = FILES[crs]
    out = []
    for i in range(n):
        parts = []
        for _ in range(1 + (i % 4 == 0)):
            x, y, own = any_number.uniform(west, east), any_number.uniform(south, north), any_number.uniform(0.2, 1) * most
            rings = [star(any_number, x, y, own)] + ([star(any_number, x, y, own * 0.35)] if i % 3 == 0 else [])
            parts.append(rings)
        out.append(parts)
    return out


def write_scene(path, name, values):
    crs, transform, (width, height) = SCENES[name]
    ds = gdal.GetDriverByName("GTiff").Create(str(path), width, height, 1, gdal.GDT_UInt16)
    ds.SetGeoTransform(transform)
    ds.SetProjection(system(crs).ExportToWkt())
    ds.GetRasterBand(1).WriteArray(values)


def write_shapes(path, crs, polygons):
    ds = ogr.GetDriverByName("GPKG").CreateDataSource(str(path))
    layer = ds.CreateLayer("x", system(crs), ogr.wkbMultiPolygon)
    layer.CreateField(ogr.FieldDefn("id", ogr.OFTInteger))
    for i, parts in enumerate(polygons):
        text = ", ".join("(" + ", ".join("(" + ", ".join(f"{x!r} {y!r}" for x, y in ring + ring[:1]) + ")" for ring in part) + ")" for part in parts)
        feature = ogr.Feature(layer.GetLayerDefn())
        feature["id"] = i
        feature.SetGeometry(ogr.CreateGeometryFromWkt(f"MULTIPOLYGON ({text})"))
        layer.CreateFeature(feature)


def move(xy, source, target):
    """Places in another system; NaN if absent there, or another one on the way back."""
    osr.DontUseExceptions()
    gdal.PushErrorHandler("CPLQuietErrorHandler")
    there = np.array(osr.CoordinateTransformation(source, target).TransformPoints(xy))[:, :2]
    there[~np.isfinite(there).all(1)] = 0
    back = np.array(osr.CoordinateTransformation(target, source).TransformPoints(there))[:, :2]
    gdal.PopErrorHandler()
    osr.UseExceptions()
    off = np.abs(back - xy)
    if source.IsGeographic():
        off[:, 0] = np.where(np.abs(xy[:, 1]) > 89.9999, 0, np.minimum(off[:, 0], np.abs(360 - off[:, 0])))
    there[~(off < (1e-6 if source.IsGeographic() else 1)).all(1)] = np.nan
    return there


def holds(parts, xy, is_geographic):
    """True for places inside of one of the parts."""
    out = np.zeros(len(xy), bool)
    for turn in (-360, 0, 360) if is_geographic else (0,):
        for rings in parts:
            low, high = np.min(rings[0], 0), np.max(rings[0], 0)
            near = ((xy + (turn, 0) >= low) & (xy + (turn, 0) <= high)).all(1)
            x, y = xy[near, 0] + turn, xy[near, 1]
            odd = np.zeros(len(x), bool)
            for ring in rings:
                for (ax, ay), (bx, by) in zip(ring, ring[1:] + ring[:1]):
                    if ay != by:
                        odd ^= ((ay > y) != (by > y)) & (x < ax + (y - ay) * (bx - ax) / (by - ay))
            out[near] |= odd
    return out


def centres(name, dx=0.0, dy=0.0):
    _, t, (width, height) = SCENES[name]
    y, x = np.mgrid[0:height, 0:width]
    return np.c_[(t[0] + (x + 0.5 + dx) * t[1]).ravel(), (t[3] + (y + 0.5 + dy) * t[5]).ravel()]


def compare(scratch, name, seed, files, n):
    """Pixels and sum of each polygon. A pixel whose centre is nearer than a thousandth of it to an outline may be either way:
    three places around it are not alike."""
    any_number = random.Random(seed)
    _, _, (width, height) = SCENES[name]
    values = np.random.default_rng(seed).integers(1, 60000, (height, width)).astype(np.uint16)
    scratch.mkdir(exist_ok=True)
    write_scene(scratch / "a.tif", name, values)
    polygons = {crs: shapes(any_number, crs, n) for crs in files}
    text = "pipelines:\n  p:\n    input: {match: ['*'], bands: {V: 1}}\n    products:\n"
    for k, crs in enumerate(files):
        write_shapes(scratch / f"{k}.gpkg", crs, polygons[crs])
        text += f"      - zones: {{name: z{k}, zones: {k}.gpkg, id: id, bands: [V], stats: [sum]}}\n"
    (scratch / "c.yaml").write_text(text)
    report, = pbtest.run_json("pushbroom", "run", "--json", "-c", scratch / "c.yaml", "-o", scratch / "out", scratch / "a.tif")
    source, flat, wrong, some = system(SCENES[name][0]), values.ravel().astype(np.int64), [], 0
    for product, crs in zip(report["products"], files):
        target = system(crs)
        at = [move(centres(name, dx, dy), source, target) for dx, dy in ((2e-3, 1e-3), (-1e-3, 2e-3), (-1e-3, -2e-3))]
        with open(product["path"], newline="") as file:
            table = list(csv.DictReader(file))
        assert len(table) == n, (name, crs, table)
        for row, parts in zip(table, polygons[crs]):
            inside = [holds(parts, xy, target.IsGeographic()) for xy in at]
            surely, perhaps = np.logical_and.reduce(inside), np.logical_or.reduce(inside)
            pixels, total = int(row["pixels"]), int(row["V_sum"] or 0)
            some += surely.any()
            if not (surely.sum() <= pixels <= perhaps.sum() and flat[surely].sum() <= total <= flat[perhaps].sum()):
                wrong.append((name, crs, row, int(surely.sum()), int(perhaps.sum()), parts))
    assert not wrong, (len(wrong), [w[:5] for w in wrong], wrong[0])
    return some


@pbtest.not_about_threads
def test_random_polygons_take_the_pixels_of_proj(scratch):
    """Half of the files for each scene; PB_SEEDS=n uses n seeds."""
    for seed in range(int(os.environ.get("PB_SEEDS", "1"))):
        some = [compare(scratch / f"{name}{seed}", name, seed, list(FILES)[(i + seed) % 2::2], 4) for i, name in enumerate(SCENES)]
        assert sum(some) > 80, some


def square(x, y, width, height):
    return [(x, y), (x + width, y), (x + width, y + height), (x, y + height)]


# The scene, the file's system, parts, and pixels: centres that PROJ moves into the polygon.
KNOWN = {
    "degree": (("EPSG:4326", (-180, 1, 0, 90, 0, -1), (360, 180)), [
        ("EPSG:3031", [[square(-1.5e6, -1.5e6, 3e6, 3e6)]], 5552),
        ("EPSG:3413", [[square(-1.5e6, -1.5e6, 3e6, 3e6)]], 5568),
        ("EPSG:3413", [[square(0, 0, 1.5e6, 1.5e6)]], 1392),  # a corner at the pole
        ("EPSG:3413", [[square(-1e6, 0, 2e6, 1e6)]], 1848),  # an edge through it
        ("EPSG:3413", [[square(-2.5e6, -2.5e6, 5e6, 5e6), square(-1e6, -1e6, 2e6, 2e6)]], 5488),  # a hole around it
        ("EPSG:3413", [[square(-2.5e6, -2.5e6, 5e6, 5e6), square(-1.5e6, 0.8e6, 1e6, 1e6)]], 8862),  # a hole across 180 degrees
        ("EPSG:32760", [[square(380000, 7800000, 900000, 800000)]], 56),
        ("EPSG:3832", [[square(2e6, -2e6, 3e6, 4e6), square(3e6, -1e6, 1e6, 2e6)]], 810),
        ("EPSG:4326", [[square(170, -20, 25, 30)]], 750),
        ("EPSG:4326", [[square(170, -20, 10, 30)], [square(-180, -20, 15, 30)]], 750),  # written like RFC 7946
        ("EPSG:4326", [[square(170, -20, 25, 30), square(175, -10, 10, 10)]], 650),
        ("EPSG:4326", [[square(-180, 60, 360, 30)]], 10800),
        ("EPSG:4326", [[square(-200, 60, 400, 30)]], 10800),  # wider than the Earth
        ("EPSG:6933", [[square(-17e6, -2e6, 33e6, 4e6)]], 10944)]),
    "to360": (("EPSG:4326", (0, 1, 0, 90, 0, -1), (360, 180)), [
        ("EPSG:4326", [[square(-100, -20, 25, 30)]], 750),
        ("EPSG:4326", [[square(-10, -20, 25, 30)]], 750),
        ("EPSG:4269", [[square(-10, -20, 25, 30)]], 750),
        ("EPSG:3413", [[square(-1.5e6, -1.5e6, 3e6, 3e6)]], 5568)]),
    "mercator100": (("EPSG:3857", (-HALF, HALF / 100, 0, HALF, 0, -HALF / 100), (200, 200)), [
        ("EPSG:3857", [[square(1.9e7, 0, 4e6, 4e6)]], 400),  # beyond the eastern edge
        ("EPSG:3857", [[square(1.5e7, 0, 4e6, 4e6)]], 400),
        ("EPSG:4326", [[square(150, -20, 55, 30)]], 527),
        ("EPSG:4326", [[square(-180, 50, 360, 40)]], 13600),
        ("EPSG:4326", [[square(-200, 10, 400, 40)]], 5200)]),  # wider than the Earth
    "zone33": (("EPSG:32633", (5e5, 1e3, 0, 5e6, 0, -1e3), (100, 100)), [
        ("EPSG:32633", [[square(4e5, 4.95e6, 1.5e5, 2e4)]], 1000),  # beyond the grid
        ("EPSG:4326", [[square(10, 20, 170, 60)]], 10000),
        ("EPSG:4326", [[square(-180, -90, 360, 180)]], 10000),  # most of it has no place in the zone
        ("EPSG:4326", [[square(-100, 0, 180, 80)]], 10000),
        ("EPSG:3857", [[square(-2e7, -2e7, 4e7, 4e7)]], 10000)]),
    "lambert": (("EPSG:2154", (2e5, 1e4, 0, 7e6, 0, -1e4), (80, 80)), [
        ("EPSG:4326", [[square(-180, -90, 360, 180)]], 6400)]),
    "polar": (("EPSG:3413", (-4e6, 4e4, 0, 4e6, 0, -4e4), (200, 200)), [
        ("EPSG:4326", [[square(-180, 60, 360, 30)]], 21700),
        ("EPSG:4326", [[square(0, 70, 360, 20)]], 9396),
        ("EPSG:4326", [[square(170, 60, 10, 20)], [square(-180, 60, 10, 25)]], 1129),
        ("EPSG:4326", [[square(-180, -90, 360, 30)]], 0),
        ("EPSG:4326", [[square(-200, 60, 400, 25)]], 21124),
        ("EPSG:3031", [[square(-2.5e6, -2.5e6, 5e6, 5e6)]], 0),  # around the other pole
        ("EPSG:3031", [[square(-5e7, -5e7, 1e8, 1e8), square(-1.1e7, -1.1e7, 2.2e7, 2.2e7)]], 25056)]),
}


@pbtest.not_about_threads
def test_polygons_at_seams_and_poles_have_known_pixels(scratch):
    for name, (SCENES[name], cases) in KNOWN.items():
        folder = scratch / name
        folder.mkdir()
        width, height = SCENES[name][2]
        write_scene(folder / "a.tif", name, np.full((height, width), 7, np.uint16))
        text = "pipelines:\n  p:\n    input: {match: ['*'], bands: {V: 1}}\n    products:\n"
        for k, (crs, parts, _) in enumerate(cases):
            write_shapes(folder / f"{k}.gpkg", crs, [parts])
            text += f"      - zones: {{name: z{k}, zones: {k}.gpkg, id: id, bands: [V], stats: [sum]}}\n"
        (folder / "c.yaml").write_text(text)
        report, = pbtest.run_json("pushbroom", "run", "--json", "-c", folder / "c.yaml", "-o", folder / "out", folder / "a.tif")
        for product, (crs, parts, pixels) in zip(report["products"], cases):
            with open(product["path"], newline="") as file:
                row, = csv.DictReader(file)
            assert int(row["pixels"]) == pixels, (name, crs, parts, row)
            if name in ("degree", "to360"):
                assert row["cut"] == "0", (crs, parts, row)  # nothing is beyond the whole Earth
            elif pixels == 0:
                assert row["cut"] == "1", (name, crs, parts, row)


@pbtest.not_about_threads
def test_polygon_that_cannot_be_followed_is_refused(scratch):
    """From the disc that a satellite sees, over its edge: half of the polygon has no place in the grid."""
    SCENES["disc"] = ("+proj=geos +h=35785831 +lon_0=140.7 +datum=WGS84 +units=m", (-5.5e6, 1.1e5, 0, 5.5e6, 0, -1.1e5), (100, 100))
    write_scene(scratch / "a.tif", "disc", np.full((100, 100), 7, np.uint16))
    write_shapes(scratch / "w.gpkg", "EPSG:4326", [[[square(27, 41, 153, 40)]]])
    (scratch / "c.yaml").write_text("pipelines:\n  p:\n    input: {match: ['*'], bands: {V: 1}}\n    products:\n      - zones: {zones: w.gpkg, bands: [V], stats: [sum]}\n")
    done = pbtest.run("pushbroom", "run", "-c", scratch / "c.yaml", "-o", scratch / "out", scratch / "a.tif", code=1)
    assert "feature 1 has coordinates that the scene's coordinate system does not have [vector.invalid]" in done.stderr, done.stderr


@pbtest.not_about_threads
def test_cutline_across_the_edge_of_a_world_grid(scratch):
    """Its pixels are at both edges; a rectangle around them would hold the whole Earth between them."""
    write_scene(scratch / "a.tif", "world", np.full((90, 180), 7, np.uint16))
    parts = [[square(380000, 7800000, 900000, 800000)]]
    write_shapes(scratch / "p.gpkg", "EPSG:32760", [parts])
    config = scratch / "c.yaml"
    for cutline in ("true", "false"):
        config.write_text("pipelines:\n  p:\n    input: {match: ['*'], bands: {V: 1}}\n    steps:\n"
                          f"      - crop: {{polygons: p.gpkg, cutline: {cutline}}}\n    products:\n      - cog: {{type: uint16, nodata: 0}}\n")
        done = pbtest.run("pushbroom", "run", "-c", config, "-o", scratch / "out", scratch / "a.tif", code=0 if cutline == "true" else 1)
    assert "cross the antimeridian" in done.stderr and "cutline: true" in done.stderr, done.stderr
    ds = gdal.Open(str(scratch / "out/a/p/a.tif"))
    got, expected = np.zeros((90, 180), bool), holds(parts, move(centres("world"), system("EPSG:4326"), system("EPSG:32760")), False).reshape(90, 180)
    top = round((90 - ds.GetGeoTransform()[3]) / 2)
    got[top:top + ds.RasterYSize] = ds.ReadAsArray() == 7
    assert ds.RasterXSize == 180 and expected.sum() == 16 and (got == expected).all(), (got.sum(), ds.RasterXSize)


if __name__ == "__main__":
    pbtest.main()
