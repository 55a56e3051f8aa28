#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: sanitized
"""warp through `pushbroom run` against gdalwarp without its approximation: grids, pixels, and the places of products."""
import json

import numpy as np
from osgeo import gdal, osr

import pbtest

gdal.UseExceptions()
UTM = (399960.0, 100.0, 0.0, 5900040.0, 0.0, -100.0)


def write(path, array, transform, epsg, nodata=0):
    out = gdal.GetDriverByName("GTiff").Create(str(path), array.shape[1], array.shape[0], 1, gdal.GDT_UInt16)
    system = osr.SpatialReference()
    system.ImportFromEPSG(epsg)
    out.SetGeoTransform(transform)
    out.SetProjection(system.ExportToWkt())
    out.GetRasterBand(1).WriteArray(array)
    out.GetRasterBand(1).SetNoDataValue(nodata)
    return path


def field(w, h, holes=True):
    """Smooth values with steps between classes, and invalid pixels."""
    y, x = np.mgrid[0:h, 0:w]
    v = 4000 + 900 * np.sin(x / 7.0) * np.cos(y / 11.0) + 200 * ((x // 13 + y // 9) % 3)
    if holes:
        v[(x - w // 3) ** 2 + (y - h // 2) ** 2 < 90] = 0
    return v.astype(np.uint16)


def warp(scratch, scene, params, compute="{memory: 64MiB}", code=0, before=None):
    config = scratch / "c.yaml"
    first = f"      - {before}\n" if before else ""
    config.write_text(f"""compute: {compute}
pipelines:
  p:
    steps:
{first}      - warp: {{{params}}}
    products:
      - cog: {{type: float32, nodata: -9999, blocksize: 64}}
      - stac: {{datetime: file-time}}
""")
    return pbtest.run_json("pushbroom", "run", "--json", "-c", config, "-o", scratch / "out", "--existing", "version", scene, code=code)[0]


def pixels(report):
    return gdal.Open([p["path"] for p in report["products"] if p["type"] == "cog"][0])


def reference(scene, **options):
    return gdal.Warp("", str(scene), format="MEM", errorThreshold=0, outputType=gdal.GDT_Float32, dstNodata=-9999, warpMemoryLimit=512, **options)


def compare(scene, ours, theirs, method, edge=4):
    """Equal grids; pixels that are valid in both agree, away from edges: of the scene, and of its invalid parts."""
    a, b = ours.GetGeoTransform(), theirs.GetGeoTransform()
    assert np.allclose(a, b, rtol=0, atol=1e-9 * max(map(abs, b))), (a, b)
    x, y = ours.ReadAsArray(), theirs.ReadAsArray()
    assert x.shape == y.shape, (x.shape, y.shape)
    valid = (x != -9999) & (y != -9999)
    inner = np.zeros(valid.shape, bool)
    inner[edge:-edge, edge:-edge] = True
    for dy in range(-edge, edge + 1):
        for dx in range(-edge, edge + 1):
            inner &= np.roll(np.roll(valid, dy, 0), dx, 1)
    assert inner.sum() > 0.3 * inner.size, inner.mean()
    wrong = x[inner] != y[inner] if method in ("nearest", "mode") else np.abs(x - y)[inner] > 1e-4 * np.abs(y[inner])
    assert wrong.mean() <= (1e-4 if method == "mode" else 0), (method, int(wrong.sum()), float(np.abs(x - y)[inner].max()))
    if method in ("nearest", "bilinear"):
        assert (((x != -9999) != (y != -9999)).mean()) < 1e-4, "valid pixels differ"


@pbtest.not_about_memory
def test_pixels_are_those_of_gdalwarp(scratch):
    scene = write(scratch / "s.tif", field(301, 223), UTM, 32632)
    for method in ("nearest", "bilinear", "cubic", "lanczos"):
        report = warp(scratch, scene, f'crs: "EPSG:32633", method: {method}')
        compare(scene, pixels(report), reference(scene, dstSRS="EPSG:32633", resampleAlg="near" if method == "nearest" else method), method)


def test_grids_are_those_of_gdalwarp(scratch):
    scene = write(scratch / "s.tif", field(301, 223), UTM, 32632)
    cases = (("pixel: 130", {"xRes": 130, "yRes": 130}),
             ("pixel: 130, align: true", {"xRes": 130, "yRes": 130, "targetAlignedPixels": True}),
             ("bounds: [836000, 6996000, 867234, 7026000]", {"outputBounds": (836000, 6996000, 867234, 7026000)}))
    for text, options in cases:
        report = warp(scratch, scene, f'crs: "EPSG:3857", {text}')
        compare(scene, pixels(report), reference(scene, dstSRS="EPSG:3857", resampleAlg="bilinear", **options), "bilinear")


def test_kernels_widen_as_pixels_grow(scratch):
    scene = write(scratch / "s.tif", field(301, 223, holes=False), UTM, 32632)
    for method in ("bilinear", "cubic", "average", "mode"):
        report = warp(scratch, scene, f'crs: "EPSG:32632", pixel: 500, method: {method}')
        compare(scene, pixels(report), reference(scene, dstSRS="EPSG:32632", resampleAlg=method, xRes=500, yRes=500), method, edge=2)


def test_south_up_turned_and_geographic_scenes(scratch):
    for name, transform, epsg, target in (("south", (399960.0, 100.0, 0.0, 5877740.0, 0.0, 100.0), 32632, "EPSG:3857"),
                                          ("turned", (399960.0, 86.0, 50.0, 5900040.0, 50.0, -86.0), 32632, "EPSG:32633"),
                                          ("degrees", (9.0, 0.001, 0.0, 53.0, 0.0, -0.001), 4326, "EPSG:32632")):
        scene = write(scratch / f"{name}.tif", field(260, 200), transform, epsg)
        report = warp(scratch, scene, f'crs: "{target}", method: nearest')
        compare(scene, pixels(report), reference(scene, dstSRS=target, resampleAlg="near"), "nearest")


def test_the_antimeridian_and_the_pole(scratch):
    for name, transform, epsg, target in (("fiji", (176.5, 0.02, 0.0, -15.0, 0.0, -0.02), 4326, "EPSG:3832"),
                                          ("pole", (-200000.0, 2000.0, 0.0, 200000.0, 0.0, -2000.0), 3413, "EPSG:3995"),
                                          ("world", (-180.0, 1.0, 0.0, 90.0, 0.0, -1.0), 4326, "+proj=ortho +lat_0=40 +lon_0=170 +datum=WGS84")):
        shape = (360, 180) if name == "world" else (200, 200)
        scene = write(scratch / f"{name}.tif", field(*shape, holes=False), transform, epsg)
        report = warp(scratch, scene, f'crs: "{target}", method: nearest')
        compare(scene, pixels(report), reference(scene, dstSRS=target, resampleAlg="near"), "nearest", edge=2)


def clipped(x, y, keep):
    """Polygons (rows of vertices) cut by a half-plane; keep: distances of their vertices inside of it."""
    nx, ny, k = np.roll(x, -1, 1), np.roll(y, -1, 1), np.roll(keep, -1, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        part = np.where((keep >= 0) != (k >= 0), keep / (keep - k), 0.0)
    end = np.where((keep >= 0) & (k >= 0), 1.0, part)  # where an edge leaves, from where it begins inside
    begin = np.where(keep >= 0, 0.0, np.where(k >= 0, part, 0.0))
    inside = (keep >= 0) | (k >= 0)
    out = [np.stack((v + (n - v) * begin, v + (n - v) * end), 2).reshape(len(v), -1) for v, n in ((x, nx), (y, ny))]
    inside = np.repeat(inside, 2, axis=1)
    first = np.argmax(inside, 1)[:, None]  # edges outside of it shrink to a vertex of the next edge inside
    at = np.where(inside, np.arange(inside.shape[1]), -1)
    at = np.maximum.accumulate(at, 1)
    at = np.where(at < 0, inside.shape[1] - 1 - np.argmax(inside[:, ::-1], 1)[:, None], at)
    at = np.where(inside.any(1)[:, None], at, first * 0)
    x, y = (np.take_along_axis(v, at, 1) for v in out)
    return np.where(inside.any(1)[:, None], x, 0.0), np.where(inside.any(1)[:, None], y, 0.0)


def overlap(x, y, column, row):
    """Area of each polygon in its pixel of the old grid."""
    x, y = x - column[:, None], y - row[:, None]
    for axis, side in ((0, 0), (0, 1), (1, 0), (1, 1)):
        v = (x, y)[axis]
        x, y = clipped(x, y, 1 - v if side else v)
    return np.abs((x * np.roll(y, -1, 1) - np.roll(x, -1, 1) * y).sum(1)) / 2


def averages(scene, ours, period):
    """Means over the polygons of the pixels' corners, joined across the seam of the world; NaN where one leaves the scene."""
    source = gdal.Open(str(scene))
    values, old = source.ReadAsArray().astype(np.float64), gdal.InvGeoTransform(source.GetGeoTransform())
    h, w = values.shape
    rows, columns = np.mgrid[0:ours.RasterYSize + 1, 0:ours.RasterXSize + 1].astype(np.float64)
    t = ours.GetGeoTransform()
    systems = [osr.SpatialReference(wkt=d.GetProjection()) for d in (ours, source)]
    for system in systems:
        system.SetAxisMappingStrategy(osr.OAMS_TRADITIONAL_GIS_ORDER)
    way = osr.CoordinateTransformation(*systems)
    places = np.stack((t[0] + columns * t[1] + rows * t[2], t[3] + columns * t[4] + rows * t[5]), 2).reshape(-1, 2)
    there = np.array(way.TransformPoints(places))[:, :2]
    there[~np.isfinite(there)] = np.nan
    x = (old[0] + there[:, 0] * old[1] + there[:, 1] * old[2]).reshape(rows.shape)
    y = (old[3] + there[:, 0] * old[4] + there[:, 1] * old[5]).reshape(rows.shape)
    corners = [(v[:-1, :-1].ravel(), v[:-1, 1:].ravel(), v[1:, 1:].ravel(), v[1:, :-1].ravel()) for v in (x, y)]
    x, y = (np.stack(c, 1) for c in corners)
    if period:
        x = x[:, :1] + (x - x[:, :1]) - period * np.round((x - x[:, :1]) / period)
    fine = np.isfinite(x).all(1) & np.isfinite(y).all(1) & (np.ptp(x, axis=1) < 40) & (np.ptp(y, axis=1) < 40)
    fine[fine] &= (y[fine].min(1) >= 0) & (y[fine].max(1) <= h)
    fine[fine] &= np.full(fine.sum(), True) if period else (x[fine].min(1) >= 0) & (x[fine].max(1) <= w)
    x, y, out = x[fine], y[fine], np.full(fine.shape, np.nan)
    left, top = np.floor(x.min(1)).astype(int), np.floor(y.min(1)).astype(int)
    total, whole = np.zeros(len(x)), np.zeros(len(x))
    for j in range(int(np.ceil(y.max(1) - top).max())):
        for i in range(int(np.ceil(x.max(1) - left).max())):
            area = overlap(x, y, left + i, top + j)
            v = values[np.clip(top + j, 0, h - 1), (left + i) % period if period else np.clip(left + i, 0, w - 1)]
            total, whole = total + area * v, whole + area
    out[fine] = total / whole
    return out.reshape(ours.RasterYSize, ours.RasterXSize)


WORLD = dict(size=(360, 180), transform=(-180.0, 1.0, 0.0, 90.0, 0.0, -1.0), system="EPSG:4326", period=360)
AREAS = {
    "seam": (WORLD, 'crs: "EPSG:32760", pixel: 130000, bounds: [-2600000, 6000000, 3900000, 9900000]'),
    "0-360": ({**WORLD, "transform": (0.0, 1.0, 0.0, 90.0, 0.0, -1.0)}, 'crs: "EPSG:3035", pixel: 200000, bounds: [1000000, 1000000, 6000000, 5000000]'),
    "around the pole": (WORLD, 'crs: "EPSG:3413", pixel: 250000, bounds: [-3875000, -3875000, 3875000, 3875000]'),
    "polar": (dict(size=(200, 200), transform=(-2e6, 2e4, 0, 2e6, 0, -2e4), system="EPSG:3413"), 'crs: "EPSG:4326", pixel: 0.7, bounds: [-179, 74, -100, 88]'),
    "turned": (dict(size=(200, 160), transform=(399960.0, 86.0, 50.0, 5900040.0, 50.0, -86.0), system="EPSG:32632"), 'crs: "EPSG:3035", pixel: 230'),
    "geostationary": (dict(size=(220, 220), transform=(-5500000, 50000, 0, 5500000, 0, -50000), system="+proj=geos +h=35785831 +lon_0=140.7 +datum=WGS84"),
                      'crs: "EPSG:4326", pixel: 1.3, bounds: [100, -50, 180, 50]'),
    "sinusoidal": (dict(size=(240, 240), transform=(0, 4633.1, 0, 5559752.6, 0, -4633.1), system="+proj=sinu +lon_0=0 +R=6371007.181"),
                   'crs: "EPSG:32632", pixel: 9000'),
}


@pbtest.not_about_memory
def test_averages_are_those_of_polygons(scratch):
    """Every kind of grid, also where gdalwarp takes the rectangle around a pixel that is turned."""
    for name, (scene, params) in AREAS.items():
        w, h = scene["size"]
        y, x = np.mgrid[0:h, 0:w] + 0.5
        around = 2 * np.pi / (w if "period" in scene else 97)
        v = (4000 + 900 * np.sin(x * around * 2) + 700 * np.cos(y / 23) + 0.5 * y).astype(np.float32)
        out = gdal.GetDriverByName("GTiff").Create(str(scratch / f"{name}.tif"), w, h, 1, gdal.GDT_Float32)
        system = osr.SpatialReference()
        system.SetFromUserInput(scene["system"])
        out.SetGeoTransform(scene["transform"])
        out.SetProjection(system.ExportToWkt())
        out.GetRasterBand(1).WriteArray(v)
        del out
        report = warp(scratch, scratch / f"{name}.tif", f"{params}, method: average")
        ours = pixels(report)
        got, want = ours.ReadAsArray().astype(np.float64), averages(scratch / f"{name}.tif", ours, scene.get("period", 0))
        if name == "around the pole":
            want[13:18, 13:18] = np.nan  # the pole's own pixel, and its neighbours
        seen = np.isfinite(want)
        assert seen.sum() > 300, (name, seen.sum())
        error = np.abs(got - want)[seen] / want[seen]
        assert error.max() <= 1e-6, (name, error.max(), np.argwhere(seen)[error.argmax()], int((error > 1e-6).sum()), int(seen.sum()))


def test_areas_do_not_join_the_seams_sides(scratch):
    """The value of a pixel is its distance from longitude 0: nothing near 180 degrees is below 170."""
    y, x = np.mgrid[0:40, 0:720]
    scene = write(scratch / "world.tif", np.abs(x * 0.5 - 179.75).astype(np.uint16), (-180.0, 0.5, 0.0, -8.0, 0.0, -0.5), 4326, nodata=9999)
    for method in ("average", "mode"):
        for target in ('crs: "EPSG:32760", pixel: 50000, bounds: [400000, 7500000, 1400000, 8500000]',
                       'crs: "EPSG:3832", pixel: 40000, bounds: [2600000, -2500000, 3800000, -1200000]'):
            got = pixels(warp(scratch, scene, f"{target}, method: {method}")).ReadAsArray()
            assert got.size >= 400 and got.min() > 170, (method, target, got.min())


def test_small_grids_read_their_own_part_alone(scratch):
    """64 pixels a side or less, like more: a large scene fits a small memory."""
    out = gdal.GetDriverByName("GTiff").Create(str(scratch / "large.tif"), 10980, 10980, 2, gdal.GDT_UInt16,
                                               ["TILED=YES", "COMPRESS=DEFLATE", "SPARSE_OK=TRUE"])
    system = osr.SpatialReference()
    system.ImportFromEPSG(32632)
    out.SetGeoTransform((600000, 10, 0, 5400000, 0, -10))
    out.SetProjection(system.ExportToWkt())
    out.GetRasterBand(1).WriteArray(np.full((512, 512), 700, np.uint16), 4896, 4896)
    del out
    for n in (65, 64, 32, 1):
        west, south = 4396900 - 5 * n, 2797400 - 5 * n
        report = warp(scratch, scratch / "large.tif", f'crs: "EPSG:3035", pixel: 10, bounds: [{west}, {south}, {west + 10 * n}, {south + 10 * n}], method: nearest')
        assert (pixels(report).ReadAsArray()[0] == 700).all(), n


@pbtest.not_about_memory
def test_tiles_and_threads_do_not_count(scratch):
    scene = write(scratch / "s.tif", field(701, 423), UTM, 32632)
    seen = set()
    for compute in ("{memory: 512MiB, threads: 1}", "{memory: 64MiB, threads: 2, tile: 64}", "{memory: 64MiB, tile: 256, threads: 3}"):
        report = warp(scratch, scene, 'crs: "EPSG:32633", method: cubic', compute)
        seen.add([p["checksum"] for p in report["products"] if p["type"] == "cog"][0])
    assert len(seen) == 1, seen


def test_products_say_where_they_lie(scratch):
    scene = write(scratch / "s.tif", field(301, 223), UTM, 32632)
    report = warp(scratch, scene, 'crs: "EPSG:32633", pixel: 100, align: true')
    made = pixels(report)
    assert osr.SpatialReference(made.GetProjection()).GetAuthorityCode(None) == "32633"
    item = json.load(open([p["path"] for p in report["products"] if p["type"] == "stac"][0]))
    asset = [a for a in item["assets"].values() if "proj:shape" in a]
    where = asset[0] if asset else item["properties"]
    assert "EPSG:32633" in json.dumps(item), item
    t = made.GetGeoTransform()
    assert t[0] % 100 == 0 and t[3] % 100 == 0, t
    assert where["proj:transform"][:6] == [t[1], t[2], t[0], t[4], t[5], t[3]], where
    assert where["proj:shape"] == [made.RasterYSize, made.RasterXSize], where
    west, south, east, north = item["bbox"]
    assert 7.4 < west < 7.6 and 53.0 < north < 53.5 and 7.8 < east < 8.1, item["bbox"]


def test_what_cannot_be_is_refused_with_words(scratch):
    scene = write(scratch / "s.tif", field(60, 60), UTM, 32632)
    for params, words in (('crs: "EPSG:99999"', "no coordinate system that PROJ knows"), ('crs: /etc/passwd', "no coordinate system"),
                          ('crs: "EPSG:32633", align: true', "'pixel', which is not given"),
                          ('crs: "EPSG:32633", bounds: [5, 5, 1, 1]', "bounds are [west")):
        report = pbtest.run("pushbroom", "run", "-c", config(scratch, params), "-o", scratch / "out", scene, code=None)
        assert words in report.stderr + report.stdout, report.stderr
    plain = gdal.GetDriverByName("GTiff").Create(str(scratch / "plain.tif"), 20, 20)
    del plain
    report = pbtest.run("pushbroom", "run", "-c", config(scratch, 'crs: "EPSG:32633"'), "-o", scratch / "out", scratch / "plain.tif", code=None)
    assert "no geotransform with a coordinate system, no three ground control points and no RPCs" in report.stderr, report.stderr


def test_crop_before_warp_gives_the_extent_of_the_crop(scratch):
    scene = write(scratch / "s.tif", field(301, 223, holes=False), UTM, 32632)
    gdal.Translate(str(scratch / "part.tif"), str(scene), srcWin=[40, 70, 111, 83])
    for params, options in (('crs: "EPSG:32633"', {"dstSRS": "EPSG:32633"}), ('crs: "EPSG:3857", pixel: 130', {"dstSRS": "EPSG:3857", "xRes": 130, "yRes": 130})):
        report = warp(scratch, scene, f"{params}, method: nearest", before="crop: {window: [40, 70, 111, 83]}")
        compare(scene, pixels(report), reference(scratch / "part.tif", resampleAlg="near", **options), "nearest")


def test_a_scene_beside_the_bounds_is_skipped(scratch):
    scene = write(scratch / "s.tif", field(60, 60), UTM, 32632)
    for before, params in ((None, 'crs: "EPSG:32633", pixel: 100, bounds: [600000, 5900000, 603000, 5902000]'),
                           ("crop: {window: [0, 0, 20, 20]}", 'crs: "EPSG:32632", pixel: 100, bounds: [403960, 5895040, 405960, 5896040]')):
        report = warp(scratch, scene, params, before=before)
        assert (report["stage"], report["products"]) == ("skipped", []), report
        assert "the scene is outside of the bounds" in report["report"]["skipped"], report
    report = warp(scratch, scene, 'crs: "EPSG:32632", pixel: 100, bounds: [405860, 5894140, 407860, 5896040]')
    assert report["stage"] == "done", report


def test_bounds_of_another_system_do_not_follow_a_warp(scratch):
    scene = write(scratch / "s.tif", field(60, 60), UTM, 32632)
    path = config(scratch, 'crs: "EPSG:32633"}\n      - crop: {bounds: [7.4, 53.1, 7.5, 53.2], crs: "EPSG:4326"')
    done = pbtest.run("pushbroom", "run", "-c", path, "-o", scratch / "out", scene, code=None)
    assert done.returncode != 0 and "crop before the warp" in done.stderr, done.stderr
    (scratch / "a.geojson").write_text('{"type": "Polygon", "coordinates": [[[7.4, 53.1], [7.5, 53.1], [7.5, 53.2], [7.4, 53.1]]]}')
    path = config(scratch, 'crs: "EPSG:32633"}\n      - crop: {polygons: a.geojson')
    done = pbtest.run("pushbroom", "run", "-c", path, "-o", scratch / "out", scene, code=None)
    assert done.returncode != 0 and "around polygons is of the scene's own grid" in done.stderr and "'crs'" not in done.stderr, done.stderr


def config(scratch, params):
    path = scratch / "c.yaml"
    path.write_text(f"pipelines:\n  p:\n    steps:\n      - warp: {{{params}}}\n    products:\n      - cog: {{type: float32}}\n")
    return path


if __name__ == "__main__":
    pbtest.main()
