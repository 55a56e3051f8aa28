#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""warp through `pushbroom run` against gdalwarp without its approximation: grids, pixels, and where products say they lie."""
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
    """Equal grids; what is valid in both agrees, away from edges: of the scene, and of what is invalid there."""
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
    for method in ("nearest", "bilinear", "cubic", "lanczos", "mode"):
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


def test_what_is_cropped_first_has_the_extent_of_the_crop(scratch):
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
        assert "the scene lies outside of the bounds" in report["report"]["skipped"], report
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
    pbtest.main(globals())
