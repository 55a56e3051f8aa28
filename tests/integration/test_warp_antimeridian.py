#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: threads
"""warp of scenes across 180 degrees: onto tiles and bounds of one side, whole, and refusals. Against gdalwarp."""
import json

import numpy as np
from osgeo import gdal, osr

import pbtest
from daemon_kit import Daemon

gdal.UseExceptions()
FIJI = (804000, 100, 0, 8120000, 0, -100)  # EPSG:32760: 179.855 E to 179.861 W


def fiji(path, w=300, h=200, gcps=None):
    y, x = np.mgrid[0:h, 0:w]
    out = gdal.GetDriverByName("GTiff").Create(str(path), w, h, 1, gdal.GDT_UInt16)
    system = osr.SpatialReference()
    system.ImportFromEPSG(4326 if gcps else 32760)
    if gcps:
        out.SetGCPs(gcps, system.ExportToWkt())
    else:
        out.SetGeoTransform(FIJI)
        out.SetProjection(system.ExportToWkt())
    out.GetRasterBand(1).WriteArray((1000 + x + 1000 * (y // 50)).astype(np.uint16))
    return path


def jumping(path):
    return fiji(path, gcps=[gdal.GCP((179.8 + 0.1 * c + 180) % 360 - 180, -17 - 0.1 * r, 0, 75 * c, 50 * r) for c in range(5) for r in range(5)])


def config(scratch, params, before=""):
    path = scratch / "c.yaml"
    path.write_text(f"""compute: {{memory: 64MiB}}
pipelines:
  p:
    steps:
{before}      - warp: {{{params}}}
    products:
      - cog: {{type: float32, nodata: -9999, blocksize: 64}}
      - stac: {{datetime: file-time}}
""")
    return path


def warp(scratch, scene, params, before="", code=0):
    return pbtest.run_json("pushbroom", "run", "--json", "-c", config(scratch, params, before), "-o", scratch / "out", "--existing", "replace", scene, code=code)[0]


def same_as_gdalwarp(path, scene, crs):
    """Nearest pixels of a product, against gdalwarp on its grid; for a place on a border of two pixels either may be."""
    made = gdal.Open(str(path))
    t, w, h = made.GetGeoTransform(), made.RasterXSize, made.RasterYSize
    theirs = gdal.Warp("", str(scene), format="MEM", errorThreshold=0, outputType=gdal.GDT_Float32, dstNodata=-9999, dstSRS=crs,
                       outputBounds=(t[0], t[3] + h * t[5], t[0] + w * t[1], t[3]), xRes=t[1], yRes=-t[5]).ReadAsArray()
    mine = made.ReadAsArray()
    assert (mine != theirs).mean() < 1e-4, (path, (mine != theirs).sum())
    return int((mine != -9999).sum()), t, w


def products(report, suffix=".tif"):
    return [p["path"] for p in report["products"] if p["path"].endswith(suffix)]


@pbtest.not_about_threads
def test_tiles_on_both_sides_are_made(scratch):
    scene = fiji(scratch / "s.tif")
    report = warp(scratch, scene, "grid: web-mercator, zoom: 9, size: 512, method: nearest")
    made = {p.split("_")[-1]: same_as_gdalwarp(p, scene, "EPSG:3857")[0] for p in products(report)}
    assert set(made) == {"8-0-140.tif", "8-255-140.tif"} and min(made.values()) > 3000, made


@pbtest.not_about_memory
@pbtest.not_about_threads
def test_bounds_of_one_side_have_what_lies_in_them(scratch):
    scene = fiji(scratch / "s.tif")
    for crs, bounds, pixel in (("EPSG:3857", [20000000, -1940000, 20037500, -1900000], 100), ("EPSG:3857", [-20037500, -1940000, -20000000, -1900000], 100),
                               ("EPSG:4326", [179.8, -17.3, 180, -16.9], 0.001), ("EPSG:4326", [-180, -17.3, -179.8, -16.9], 0.001),
                               ("EPSG:4326", [179.8, -17.3, 180, -16.9], None), ("EPSG:4326", [-180, -17.3, -179.8, -16.9], None)):
        size = f", pixel: {pixel}" if pixel else ""
        report = warp(scratch, scene, f'crs: "{crs}", bounds: {bounds}, method: nearest{size}')
        n, t, _ = same_as_gdalwarp(products(report)[0], scene, crs)
        assert n > 20000 and t[0] == bounds[0], (crs, bounds, n)


@pbtest.not_about_memory
@pbtest.not_about_threads
def test_whole_scene_goes_on_beyond_180_degrees(scratch):
    scene = fiji(scratch / "s.tif")
    crop = '      - crop: {bounds: [179.7, -17.3, 180, -16.9], crs: "EPSG:4326"}\n'
    for crs, half, before in (("EPSG:4326", 180, ""), ("EPSG:3857", 20037508.342789244, ""), ("EPSG:6933", 17367530.4451615, ""), ("EPSG:4326", 180, crop)):
        report = warp(scratch, scene, f'crs: "{crs}", method: nearest', before)
        path, = products(report)
        made = gdal.Open(path)
        t, a = made.GetGeoTransform(), made.ReadAsArray()
        east = t[0] + made.RasterXSize * t[1]
        assert t[0] < half < east < half * 1.002 and made.RasterXSize < 400, (crs, t, made.RasterXSize)
        assert (a != -9999).sum() > (28000 if before else 55000), (crs, (a != -9999).sum())
        item = json.load(open(products(report, ".stac.json")[0]))
        assert item["bbox"][0] > 179 and item["bbox"][2] < -179 and item["geometry"]["type"] == "MultiPolygon", item["bbox"]
        # Each half is where bounds of one side have it.
        for side in (1, -1):
            west, to = (t[0], half) if side > 0 else (-half, east - 2 * half)
            part = warp(scratch, scene, f'crs: "{crs}", method: nearest, pixel: {t[1]!r}, bounds: [{west!r}, {t[3] + made.RasterYSize * t[5]!r}, {to!r}, {t[3]!r}]', before)
            n = (gdal.Open(products(part)[0]).ReadAsArray() != -9999).sum()
            columns = a[:, :round((half - t[0]) / t[1])] if side > 0 else a[:, round((half - t[0]) / t[1]):]
            assert abs(n * abs(t[1] / t[5]) - (columns != -9999).sum()) < 0.03 * n + 300, (crs, side, n, (columns != -9999).sum())


@pbtest.not_about_threads
def test_an_edge_of_the_map_is_refused_with_words(scratch):
    scene = fiji(scratch / "s.tif")
    for crs in ("+proj=sinu +R=6371007.181", "+proj=moll"):
        error = warp(scratch, scene, f'crs: "{crs}"', code=1)["error"]
        assert error["code"] == "input.place" and "antimeridian" in error["message"] and "bounds and pixel" in error["message"], error
    warp(scratch, scene, 'crs: "+proj=sinu +R=6371007.181", pixel: 100, bounds: [19000000, -1940000, 19300000, -1880000]')
    error = warp(scratch, jumping(scratch / "gcps.tif"), 'crs: "EPSG:4326"', code=1)["error"]
    assert error["code"] == "input.place" and "jump by 360 degrees" in error["message"], error


@pbtest.not_about_threads
def test_world_fills_the_map_and_nothing_beyond_it(scratch):
    """Also of longitudes 0 to 360, whose image has the edge of the map in the middle. Beyond the map PROJ gives places of its other side."""
    for name, west in (("greenwich", -180), ("pacific", 0)):
        world = gdal.GetDriverByName("GTiff").Create(str(scratch / f"{name}.tif"), 120, 60, 1, gdal.GDT_Byte)
        world.SetGeoTransform((west, 3, 0, 90, 0, -3))
        world.SetProjection(osr.GetUserInputAsWKT("EPSG:4326"))
        world.GetRasterBand(1).Fill(7)
        del world
        for crs, part in (("+proj=sinu +R=6371007.181", 2 / np.pi), ("+proj=moll", np.pi / 4), ("+proj=aeqd +lat_0=90", np.pi / 4)):
            half = 20015109 if "moll" not in crs else 18040096
            high = {"s": 10007554, "m": 9020048, "a": 20004000}[crs[6]]
            params = f'crs: "{crs}", method: nearest, pixel: 200000, bounds: [{-half}, {-high}, {half}, {high}]'
            made = gdal.Open(products(warp(scratch, scratch / f"{name}.tif", params))[0]).ReadAsArray()
            assert abs((made == 7).mean() - part) < 0.02, (name, crs, (made == 7).mean(), part)
            if "aeqd" not in crs:
                made = gdal.Open(products(warp(scratch, scratch / f"{name}.tif", f'crs: "{crs}", method: nearest'))[0]).ReadAsArray()
                assert abs((made == 7).mean() - part) < 0.03, (name, crs, (made == 7).mean(), part)


def test_refused_scene_is_no_trouble_of_config(scratch):
    with Daemon(fake=False, stall="300s") as d:
        d.set_pipelines(config(scratch, 'crs: "EPSG:4326"').read_text().split("\n", 1)[1])
        d.start()
        jumping(scratch / "gcps.tif")
        d.drop_copy(scratch / "gcps.tif")
        job = d.wait_job("gcps.tif", "failed")
        assert job["error"]["code"] == "input.place", job
        assert d.trouble("config") is None and (d.root / "quarantine/gcps.tif").exists()


if __name__ == "__main__":
    pbtest.main()
