#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: sanitized
"""warp of scenes without a geotransform through `pushbroom run`: by ground control points and by RPCs, against gdalwarp
without its approximation (-order, -tps, -rpc)."""
import json

import numpy as np
from osgeo import gdal, osr

import pbtest

gdal.UseExceptions()
RADAR = pbtest.DATA / "real/sentinel1/s1-vh_2023_gcps.tiff"
RPC = pbtest.DATA / "real/odd/gdal_byte_rpc.tif"
SIDE = 300
HEIGHT_OFF = 300.0  # height offset of the RPCs
SPLINE = 1e-3  # share of pixels by nearest, of positions that are off by 1/1024 pixel at most


def rpc_scene(path, **more):
    """A scene of SIDE x SIDE pixels of about 50 m that has the coefficients of a real one, which saw the same ground in 0.5 m."""
    rpc = {**gdal.Open(str(RPC)).GetMetadata("RPC"), "LINE_OFF": "149.5", "LINE_SCALE": "150", "SAMP_OFF": "149.5", "SAMP_SCALE": "150"}
    y, x = np.mgrid[0:SIDE, 0:SIDE]
    out = gdal.GetDriverByName("GTiff").Create(str(path), SIDE, SIDE, 1, gdal.GDT_UInt16)
    out.SetMetadata({**rpc, **more}, "RPC")
    out.GetRasterBand(1).WriteArray((4000 + 900 * np.sin(x / 7.0) * np.cos(y / 11.0)).astype(np.uint16))
    return path


def gcp_scene(path, n, wild=0.0):
    """A scene with n points along two lines, at the places of a turned affine transform, to `wild` metres."""
    system = osr.SpatialReference()
    system.ImportFromEPSG(32632)
    system.SetAxisMappingStrategy(osr.OAMS_TRADITIONAL_GIS_ORDER)
    points = []
    for i in range(n):
        column, line = 200.0 * (i % 2), 200.0 * (i // 2) / max(1, (n - 1) // 2)
        points.append(gdal.GCP(400000 + 90 * column + 20 * line + wild * (i % 3), 5900000 + 20 * column - 90 * line + wild * (i % 5), 0, column, line))
    y, x = np.mgrid[0:200, 0:200]
    out = gdal.GetDriverByName("GTiff").Create(str(path), 200, 200, 1, gdal.GDT_UInt16)
    out.GetRasterBand(1).WriteArray((1000 + x * 5 + y * 3).astype(np.uint16))
    out.SetGCPs(points, system)
    return path


def config(scratch, params, compute="{memory: 64MiB}", before=None, entry=""):
    path = scratch / "c.yaml"
    first = f"      - {before}\n" if before else ""
    path.write_text(f"""compute: {compute}
pipelines:
  p:
    input: {{{entry}}}
    steps:
{first}      - warp: {{{params}}}
    products:
      - cog: {{type: float32, nodata: -9999, blocksize: 64}}
      - stac: {{datetime: file-time}}
""")
    return path


def warp(scratch, scene, params, code=0, **more):
    return pbtest.run_json("pushbroom", "run", "--json", "-c", config(scratch, params, **more), "-o", scratch / "out", "--existing", "version", scene, code=code)[0]


def product(report, kind="cog"):
    return [p["path"] for p in report["products"] if p["type"] == kind][0]


def reference(scene, **options):
    return gdal.Warp("", str(scene), format="MEM", errorThreshold=0, outputType=gdal.GDT_Float32, dstNodata=-9999, overviewLevel="NONE", **options)


def inside(valid, edge):
    out = np.zeros(valid.shape, bool)
    out[edge:-edge, edge:-edge] = True
    for dy in range(-edge, edge + 1):
        for dx in range(-edge, edge + 1):
            out &= np.roll(np.roll(valid, dy, 0), dx, 1)
    return out


def compare(report, theirs, method, edge=4, share=1e-4):
    """Equal grids and valid pixels; values of nearest are equal except for that share, others to 1e-4 away from invalid pixels."""
    ours = gdal.Open(product(report))
    a, b = ours.GetGeoTransform(), theirs.GetGeoTransform()
    assert np.allclose(a, b, rtol=0, atol=1e-9 * max(map(abs, b))), (a, b)
    x, y = ours.ReadAsArray(), theirs.ReadAsArray()
    assert x.shape == y.shape, (x.shape, y.shape)
    valid = (x != -9999) & (y != -9999)
    assert ((x != -9999) != (y != -9999)).mean() < share, "valid pixels differ"
    inner = valid if method == "nearest" else inside(valid, edge)
    assert inner.mean() > 0.25, inner.mean()
    if method == "nearest":
        assert (x != y)[inner].mean() < share, int((x != y)[inner].sum())
    else:
        assert (np.abs(x - y)[inner] <= 1e-4 * np.abs(y[inner])).all(), float((np.abs(x - y)[inner] / y[inner]).max())


@pbtest.not_about_memory
def test_gcp_polynomials_equal_gdalwarp(scratch):
    for params, order, says in (("", 0, "order 2"), (", from: gcps, order: 1", 1, "order 1"), (", from: gcps, order: 2", 2, "order 2"),
                                (", from: gcps, order: 3", 3, "order 3")):
        report = warp(scratch, RADAR, f'crs: "EPSG:32740", method: nearest{params}')
        compare(report, reference(RADAR, dstSRS="EPSG:32740", resampleAlg="near", polynomialOrder=order), "nearest")
        assert report["report"]["placed_by"] == f"a polynomial of {says} of 294 ground control points", report["report"]["placed_by"]


def test_gcp_splines_equal_gdalwarp(scratch):
    report = warp(scratch, RADAR, 'crs: "EPSG:32740", pixel: 500, method: nearest, from: tps')
    compare(report, reference(RADAR, dstSRS="EPSG:32740", resampleAlg="near", tps=True, xRes=500, yRes=500), "nearest", share=SPLINE)
    assert report["report"]["placed_by"] == "a thin-plate spline through 294 ground control points", report["report"]


def test_points_without_a_polynomial_fit_a_spline(scratch):
    scene = gcp_scene(scratch / "wild.tif", 30, wild=300.0)
    for method in ("bilinear", "cubic"):
        report = warp(scratch, scene, f'crs: "EPSG:32632", pixel: 70, from: tps, method: {method}')
        compare(report, reference(scene, dstSRS="EPSG:32632", resampleAlg=method, tps=True, xRes=70, yRes=70), method, edge=8)


def test_rpcs_are_those_of_gdalwarp(scratch):
    scene = rpc_scene(scratch / "s.tif")
    for method in ("nearest", "bilinear", "cubic"):
        report = warp(scratch, scene, f'crs: "EPSG:32755", pixel: 40, from: rpc, height: 750, method: {method}')
        near = "near" if method == "nearest" else method
        compare(report, reference(scene, dstSRS="EPSG:32755", resampleAlg=near, rpc=True, transformerOptions=["RPC_HEIGHT=750"], xRes=40, yRes=40), method)
        assert report["report"]["placed_by"] == "RPCs at a height of 750 m", report["report"]["placed_by"]


def test_rpcs_without_a_height_take_their_own_mean(scratch):
    scene = rpc_scene(scratch / "s.tif")
    report = warp(scratch, scene, 'crs: "EPSG:32755", method: nearest')
    compare(report, reference(scene, dstSRS="EPSG:32755", resampleAlg="near", rpc=True, transformerOptions=[f"RPC_HEIGHT={HEIGHT_OFF}"]), "nearest")
    assert report["report"]["placed_by"] == "RPCs at a height of 300 m, their own mean", report["report"]["placed_by"]


def test_rpcs_in_a_sidecar_place_the_scene(scratch):
    whole = gdal.Open(str(rpc_scene(scratch / "whole.tif")))
    made = gdal.GetDriverByName("GTiff").CreateCopy(str(scratch / "s.tif"), whole, options=["RPB=YES", "PROFILE=BASELINE"])
    del made
    assert (scratch / "s.RPB").exists()
    report = warp(scratch, scratch / "s.tif", 'crs: "EPSG:32755", method: nearest', entry="sidecars: [.RPB]")
    compare(report, reference(scratch / "whole.tif", dstSRS="EPSG:32755", resampleAlg="near", rpc=True, transformerOptions=[f"RPC_HEIGHT={HEIGHT_OFF}"]), "nearest")


def test_what_is_cropped_first_lies_where_it_lay(scratch):
    cut = {"srcWin": [40, 70, 111, 83]}
    for scene, crs, options in ((rpc_scene(scratch / "r.tif"), "EPSG:32755", {"rpc": True, "transformerOptions": [f"RPC_HEIGHT={HEIGHT_OFF}"]}),
                                (gcp_scene(scratch / "g.tif", 30, wild=20.0), "EPSG:32632", {"tps": True})):
        gdal.Translate(str(scratch / "part.tif"), str(scene), **cut)
        source = "from: tps, " if "tps" in options else ""
        report = warp(scratch, scene, f'crs: "{crs}", {source}method: nearest', before="crop: {window: [40, 70, 111, 83]}")
        compare(report, reference(scratch / "part.tif", dstSRS=crs, resampleAlg="near", **options), "nearest", share=SPLINE if source else 1e-4)


def test_auto_prefers_points_to_rpcs_also_in_dry_run(scratch):
    scene = rpc_scene(scratch / "s.tif")
    both = gdal.Open(str(scene), gdal.GA_Update)
    system = osr.SpatialReference()
    system.ImportFromEPSG(4326)
    system.SetAxisMappingStrategy(osr.OAMS_TRADITIONAL_GIS_ORDER)
    both.SetGCPs([gdal.GCP(147 + c / 3000.0, -42 - r / 3000.0, 0, c, r) for c in (0, 300) for r in (0, 300)], system)
    del both
    for params, says in (("", "a polynomial of order 1 of 4 ground control points"), (", from: rpc", "RPCs at a height of 300 m, their own mean")):
        done = pbtest.run("pushbroom", "run", "--dry-run", "-c", config(scratch, f'crs: "EPSG:32755"{params}'), "-o", scratch / "out", scene)
        assert f"the scene is placed by {says}" in done.stdout, done.stdout


def test_places_far_from_the_scene_are_empty(scratch):
    """The fractions of RPCs make any numbers there; these bounds are 40 times as long as the scene."""
    scene = rpc_scene(scratch / "s.tif")
    near = gdal.Open(product(warp(scratch, scene, 'crs: "EPSG:32755", pixel: 400, align: true, method: nearest')))
    far = gdal.Open(product(warp(scratch, scene, 'crs: "EPSG:32755", pixel: 400, method: nearest, bounds: [200000, 4900000, 840000, 5540000]')))
    counts = [int((d.ReadAsArray() != -9999).sum()) for d in (near, far)]
    assert counts[0] == counts[1] > 500, counts


def test_tiles_and_threads_do_not_count(scratch):
    scene = rpc_scene(scratch / "s.tif")
    seen = set()
    for compute in ("{memory: 512MiB, threads: 1}", "{memory: 64MiB, threads: 2, tile: 64}", "{memory: 64MiB, tile: 256, threads: 3}"):
        seen.add([p["checksum"] for p in warp(scratch, scene, 'crs: "EPSG:32755", method: cubic', compute=compute)["products"] if p["type"] == "cog"][0])
    assert len(seen) == 1, seen


def test_grid_tiles_are_found_without_a_geotransform(scratch):
    report = warp(scratch, RADAR, "grid: mgrs, pixel: 610")
    tiles = {t["id"] for t in report["report"]["tiles"]}
    assert tiles and all(t.startswith(("40M", "39M")) for t in tiles), tiles


def test_products_say_where_they_lie(scratch):
    report = warp(scratch, rpc_scene(scratch / "s.tif"), 'crs: "EPSG:32755", pixel: 50, align: true')
    made = gdal.Open(product(report))
    assert made.GetMetadata("RPC") == {} and made.GetGCPCount() == 0, "the place of the scene is on the product"
    item = json.load(open(product(report, "stac")))
    west, south, east, north = item["bbox"]
    assert 147.1 < west < 147.2 and 147.3 < east < 147.4 and -43 < south < north < -42.7, item["bbox"]
    text = json.dumps(item)
    assert "EPSG:32755" in text, text


def points_scene(path, longitude, step):
    """5 x 5 points in degrees, from that longitude on."""
    out = gdal.GetDriverByName("GTiff").Create(str(path), 400, 300, 1, gdal.GDT_Byte)
    out.GetRasterBand(1).Fill(7)
    first = -180 if longitude < 180 else 0  # start of the turn of the longitudes
    points = [((longitude + step * c - first) % 360 + first, -17 - 0.2 * r, c, r) for c in range(5) for r in range(5)]
    system = osr.SpatialReference()
    system.ImportFromEPSG(4326)
    out.SetGCPs([gdal.GCP(lon, lat, 0, 100 * c, 75 * r) for lon, lat, c, r in points], system.ExportToWkt())
    return path


def test_points_whose_longitudes_jump_are_refused(scratch):
    """A polynomial of 179.9 and -179.9 would put the scene around the Earth."""
    for name, longitude, step in (("pacific", 179.5, 0.25), ("greenwich", 359.5, 0.25)):
        scene = points_scene(scratch / f"{name}.tif", longitude, step)
        for params in ("from: gcps", "from: tps", "from: auto"):
            done = pbtest.run("pushbroom", "run", "-c", config(scratch, f'crs: "EPSG:4326", {params}'), "-o", scratch / "out", scene, code=None)
            assert done.returncode != 0 and "jump by 360 degrees" in done.stderr, (name, params, done.stderr)
    for name, longitude, step in (("east", 178.9, 0.25), ("west", -180, 0.25), ("wide", -170, 80), ("later", 300, 10)):
        scene = points_scene(scratch / f"{name}.tif", longitude, step)
        pbtest.run("pushbroom", "run", "-c", config(scratch, 'crs: "EPSG:4326", from: gcps, order: 1'), "-o", scratch / "out", scene)


def test_scene_across_antimeridian_has_one_grid(scratch):
    """RPCs depend on the distance of a longitude from their own: the scene is that of another place, a number of degrees to the west."""
    own = float(gdal.Open(str(RPC)).GetMetadata("RPC")["LONG_OFF"])
    plain = gdal.Open(product(warp(scratch, rpc_scene(scratch / "s.tif"), 'crs: "EPSG:4326", from: rpc')))
    for name, middle in (("east", 179.98), ("west", -179.98)):
        scene = rpc_scene(scratch / f"{name}.tif", LONG_OFF=repr(middle))
        report = warp(scratch, scene, 'crs: "EPSG:4326", from: rpc')
        made = gdal.Open(product(report))
        assert (made.RasterXSize, made.RasterYSize) == (plain.RasterXSize, plain.RasterYSize), (made.RasterXSize, made.RasterYSize)
        here, there = made.GetGeoTransform(), plain.GetGeoTransform()
        assert abs(here[0] - there[0] - (middle - own)) < 1e-7 and np.allclose(here[1:], there[1:], atol=1e-9), (here, there)
        assert here[0] < middle < here[0] + made.RasterXSize * here[1] and (here[0] < -180 or here[0] + made.RasterXSize * here[1] > 180), here
        assert (made.ReadAsArray() != plain.ReadAsArray()).mean() < 1e-3
        item = json.load(open(product(report, "stac")))
        west, _, east, _ = item["bbox"]
        assert 179.8 < west < 180 and -180 < east < -179.8 and item["geometry"]["type"] == "MultiPolygon", item["bbox"]
    # Other datums and web Mercator end at 180; the grid continues there, too.
    for crs, turn in (("EPSG:4272", 360), ("EPSG:3857", 40075016.68557849)):
        made = gdal.Open(product(warp(scratch, scratch / "east.tif", f'crs: "{crs}", from: rpc')))
        here, east = made.GetGeoTransform(), made.GetGeoTransform()[0] + made.RasterXSize * made.GetGeoTransform()[1]
        assert here[0] < turn / 2 < east < turn / 2 + turn / 360 and (made.ReadAsArray() != -9999).mean() > 0.5, (crs, here, east)
    # In metres nothing jumps, and bounds may be given on either side.
    for crs, bounds, size in (("EPSG:32701", None, 200), ("EPSG:4326", [179.9, -42.88, 180.06, -42.8], None), ("EPSG:4326", [-180.1, -42.88, -179.94, -42.8], None)):
        params = f'crs: "{crs}", from: rpc' + (f", bounds: {bounds}" if bounds else "")
        part = gdal.Open(product(warp(scratch, scratch / "east.tif", params))).ReadAsArray()
        assert max(part.shape) < 1000 and (part != -9999).mean() > 0.5, (crs, bounds, part.shape, (part != -9999).mean())


def test_points_close_to_a_line_are_refused(scratch):
    """Any polynomial solves nearly singular equations: pixels of the new grid were 1e15 of the old ones."""
    places = {"image": lambda i, off: (400000 + 90 * i, 5900000 - 90 * (i * i % 7), i, i + off * (i % 3)),
              "ground": lambda i, off: (400000 + 90 * i, 5900000 + 90 * i + off * (i % 3), i, i * i % 7),
              "spot": lambda i, off: (400000 + 90 * i, 5900000 - 90 * (i * i % 7), 30 + off * i, 30 + off * (i * i % 7))}
    for name, place in places.items():
        for off in (0, 1e-12, 1e-9, 1e-6, 1e-3):
            for model in ("gcps", "gcps, order: 1", "tps"):
                scene = gcp_scene(scratch / "near.tif", 6)
                out = gdal.Open(str(scene), gdal.GA_Update)
                out.SetGCPs([gdal.GCP(x, y, 0, c, r) for x, y, c, r in (place(30 * i, off) for i in range(6))], out.GetGCPSpatialRef())
                del out
                done = pbtest.run("pushbroom", "run", "--json", "-c", config(scratch, f'crs: "EPSG:32632", pixel: 90, from: {model}'), "-o", scratch / "out", scene, code=1)
                error = json.loads(done.stdout)["error"]
                assert error["code"] == "input.place" and "are on a line or in one spot" in error["message"], (name, off, model, error)
    narrow = gcp_scene(scratch / "narrow.tif", 6)  # 6 points of an image that is as narrow as their spread
    strip = gdal.Translate(str(scratch / "strip.tif"), str(narrow), srcWin=[0, 0, 200, 2])
    strip.SetGCPs([gdal.GCP(400000 + 90 * c, 5900000 - 90 * r, 0, c, r) for c in (0, 100, 200) for r in (0, 2)], strip.GetGCPSpatialRef())
    del strip
    warp(scratch, scratch / "strip.tif", 'crs: "EPSG:32632", from: gcps, order: 1')


def test_what_cannot_be_is_refused_with_words(scratch):
    affine = pbtest.DATA / "real/odd/gdal_byte_DEFLATE.tif"
    few, two = gcp_scene(scratch / "few.tif", 5), pbtest.DATA / "real/odd/gdal_byte_gcp.tif"
    zero = rpc_scene(scratch / "zero.tif", LONG_SCALE="0")
    line = gdal.Open(str(gcp_scene(scratch / "line.tif", 6)), gdal.GA_Update)
    line.SetGCPs([gdal.GCP(400000 + 9 * i, 5900000, 0, i, i) for i in range(6)], line.GetGCPSpatialRef())
    same = gdal.Open(str(gcp_scene(scratch / "same.tif", 6)), gdal.GA_Update)
    same.SetGCPs([gdal.GCP(400000, 5900000, 0, 10, 10)] * 6, same.GetGCPSpatialRef())
    del line, same
    for scene, params, words in ((affine, "from: gcps", "no ground control points"), (affine, "from: rpc", "no RPCs"), (RADAR, "from: rpc", "no RPCs"),
                                 (RADAR, "from: transform", "no geotransform with a coordinate system"),
                                 (few, "from: gcps, order: 2", "5 ground control points, and a polynomial of that order takes 6"),
                                 (few, "from: gcps, order: 3", "takes 10 or more"), (two, "from: tps", "2 ground control points, and a spline takes 3"),
                                 (zero, "from: rpc", "not complete, or have a scale of 0"), (scratch / "line.tif", "from: gcps", "are on a line or in one spot"),
                                 (scratch / "same.tif", "from: tps", "are on a line or in one spot"),
                                 (RADAR, "order: 2", "it is one of from: gcps"), (RADAR, "from: tps, height: 3", "it is one of from: rpc"),
                                 (RADAR, "from: gcps, order: 4", "order")):
        done = pbtest.run("pushbroom", "run", "-c", config(scratch, f'crs: "EPSG:32740", {params}'), "-o", scratch / "out", scene, code=None)
        assert done.returncode != 0 and words in done.stderr, (params, done.stderr)
    path = config(scratch, 'crs: "EPSG:32740", from: rpc', before='warp: {crs: "EPSG:32739"}')
    done = pbtest.run("pushbroom", "run", "-c", path, "-o", scratch / "out", RADAR, code=None)
    assert done.returncode != 0 and "leave 'from' out" in done.stderr, done.stderr


if __name__ == "__main__":
    pbtest.main()
