#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: sanitized
"""warp of Sentinel-1 GRD by orbit and times: a made landscape is projected into the image by numpy (radar_kit.py) and must
return to its place."""
import functools
import json
import re
import shutil

import numpy as np
from osgeo import gdal

import pbtest
from radar_kit import UTM, Geometry, Landscape, RadarProduct, convert

gdal.UseExceptions()
LAND, WATER = 100.0, 10.0
MODEL = "range-Doppler of its annotation"


@functools.cache
def landscape():
    land = Landscape(Geometry(300, 260))
    return land, np.round(land.seen(LAND, WATER)).astype(np.uint16)


class Scene:
    def __init__(self, scratch):
        self.land, image = landscape()
        self.folder = RadarProduct(self.land, dn=image).write(scratch)


def config(scratch, warp, metadata='["annotation/s1*-vv-*.xml"]', before="", compute="", dem=None, stac=""):
    sources = f"sources: {{DEM: {{file: {dem}, bands: {{HEIGHT: 1}}}}}}" if dem else ""
    (scratch / "c.yaml").write_text(f"""compute: {{device: cpu{compute}}}
pipelines:
  p:
    input:
      scene: "S1?_*_GRD*"
      files: {{VV: "measurement/*-vv-*.tif*"}}
      {f"metadata: {metadata}" if metadata else ""}
      {sources}
    steps:
{before}      - warp: {{crs: "EPSG:{UTM}"{warp}}}
    products:
      - cog: {{bands: [VV], type: float32}}
{stac}""")
    return scratch / "c.yaml"


def on_map(land):
    return f", pixel: 10, bounds: [{land.left}, {land.upper - 10 * land.n}, {land.left + 10 * land.n}, {land.upper}]"


def warp(scratch, scene, params, code=0, how=(), **more):
    return pbtest.run_json("pushbroom", "run", "--json", "-c", config(scratch, params, **more), "-o", scratch / "out", "--existing", "version", *how, scene.folder,
                           code=code)[0]


def product(report):
    return gdal.Open(path_of(report, "cog")).ReadAsArray()


def path_of(report, kind):
    return next(p["path"] for p in report["products"] if p["type"] == kind)


def middle(land, image, disc, reach):
    """Centre of the dark pixels within `reach` metres around a disc, in metres east and north of it, weighted by darkness."""
    x, y = land.pixels()
    dark = np.where((x - disc[0]) ** 2 + (y - disc[1]) ** 2 < reach ** 2, np.clip((LAND - image) / (LAND - WATER), 0, 1), 0)
    return np.array([(dark * (x - disc[0])).sum(), (dark * (y - disc[1])).sum()]) / dark.sum()


def wrong(land, image, edge):
    """Number of the pixels further than `edge` metres from a shore that are land for water or the reverse."""
    x, y = land.pixels()
    sure = np.ones(x.shape, bool)
    for disc in (land.hill, land.lake):
        sure &= np.abs(np.hypot(x - disc[0], y - disc[1]) - disc[2]) > edge
    return int(((image < (LAND + WATER) / 2) != land.water(x, y))[sure].sum())


def layover(land):
    """Metres by which the tarn is moved toward the radar in an image of a plain: h / tan(incidence)."""
    lon, lat = convert(*map(np.array, land.hill[:2]), back=True)
    return land.top / np.tan(np.radians(land.geometry.incidence(lon, lat, land.base)))


def test_one_height_places_plain_and_leans_the_hill(scratch):
    scene = Scene(scratch)
    land = scene.land
    report = warp(scratch, scene, on_map(land) + f", from: range-doppler, height: {land.base}")
    assert report["report"]["placed_by"] == f"{MODEL}, at a height of 1500 m", report["report"]["placed_by"]
    image = product(report)
    assert np.isfinite(image).all()
    off = middle(land, image, land.lake, 2 * land.lake[2])
    assert np.hypot(*off) < 1, off  # a tenth of a pixel
    moved, expected = middle(land, image, land.hill, 450), layover(land)
    # It flies to the south and looks to the west: the radar is in the east.
    assert moved[0] > 0 and abs(np.hypot(*moved) - expected) < 0.015 * expected and abs(moved[1]) < 0.3 * moved[0], (moved, expected)
    assert wrong(land, image, 10) > 300
    # At the height of the tarn that is in its place instead.
    higher = product(warp(scratch, scene, on_map(land) + f", from: range-doppler, height: {land.base + land.top}"))
    assert np.hypot(*middle(land, higher, land.hill, 250)) < 15 and np.hypot(*middle(land, higher, land.lake, 450)) > 100


def test_with_heights_everything_is_in_its_place(scratch):
    scene = Scene(scratch)
    land = scene.land
    dem = land.dem(scratch / "dem.tif")
    report = warp(scratch, scene, on_map(land) + ", from: range-doppler, dem: HEIGHT", dem=dem)
    image = product(report)
    assert np.isfinite(image).all()
    for disc in (land.lake, land.hill):
        off = middle(land, image, disc, 2 * disc[2])
        assert np.hypot(*off) < 1, (disc, off)  # a tenth of a pixel
    assert wrong(land, image, 10) == 0
    # The same by a DEM of longitudes and latitudes, and with tiles that end in the hill.
    other = warp(scratch, scene, on_map(land) + ", from: range-doppler, dem: HEIGHT", dem=land.dem(scratch / "lonlat.tif", code=4326), compute=", tile: 64, threads: 2")
    assert np.abs(product(other) - image).max() < 8 and np.abs(product(other) - image).mean() < 0.05


def test_auto_takes_it_before_ground_control_points(scratch):
    scene = Scene(scratch)
    plans = [warp(scratch, scene, "", how=("--dry-run",)), warp(scratch, scene, "", how=("--dry-run",), metadata=""),
             warp(scratch, scene, ", from: gcps", how=("--dry-run",))]
    said = [plan["plan"]["grid"]["placed_by"] for plan in plans]
    assert said[0] == f"{MODEL}, at a height of 1500 m, the mean of its tie points", said
    assert said[1] == said[2] == "a polynomial of order 2 of 9 ground control points", said
    # Both are right on the plain, so their grids are nearly the same.
    ours, points = (np.array(plan["plan"]["grid"]["transform"]) for plan in plans[:2])
    assert np.abs(ours - points)[[0, 3]].max() < 15 and abs(ours[1] - points[1]) < 0.1, (ours, points)
    text = pbtest.run("pushbroom", "run", "-c", config(scratch, ""), "-o", scratch / "out", "--dry-run", scene.folder).stdout
    assert f"the scene is placed by {MODEL}" in text, text


def test_pixels_do_not_depend_on_tiles_and_threads(scratch):
    scene = Scene(scratch)
    images = [product(warp(scratch, scene, ", pixel: 7, method: cubic", compute=how)) for how in (", threads: 1, tile: 512", ", threads: 2, tile: 64")]
    assert np.array_equal(*images, equal_nan=True) and np.isfinite(images[0]).mean() > 0.6


def test_steps_before_it_may_change_the_grid(scratch):
    scene = Scene(scratch)
    land = scene.land
    image = product(warp(scratch, scene, on_map(land) + f", from: range-doppler, height: {land.base}",
                         before="      - multilook: {range: 2, azimuth: 2, bands: [VV]}\n"))
    assert np.hypot(*middle(land, image, land.lake, 2 * land.lake[2])) < 1.5
    part = warp(scratch, scene, ", pixel: 10, align: true", before="      - crop: {window: [100, 20, 150, 180]}\n", how=("--dry-run",))["plan"]["grid"]
    whole = warp(scratch, scene, ", pixel: 10, align: true", how=("--dry-run",))["plan"]["grid"]
    assert part["width"] * part["height"] < 0.5 * whole["width"] * whole["height"]
    lon, lat = land.geometry.place(100, 200, land.base)
    x, y = convert(np.array(lon), np.array(lat))
    assert abs(part["transform"][3] - 10 * part["height"] - y) < 60, (part, x, y)


def turn_orbit(folder, degrees):
    """The satellite as it would have passed so far to the east, over the same ground: longitudes of all places grow by that."""
    path, = folder.glob("annotation/s1*-vv-*.xml")
    cos, sin = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))

    def turned(found):
        x, y = float(found[2]), float(found[4])
        return f"{found[1]}{cos * x - sin * y:.9e}{found[3]}{sin * x + cos * y:.9e}{found[5]}"

    text, n = re.subn(r"(<(?:position|velocity)>\s*<x>)([^<]*)(</x>\s*<y>)([^<]*)(</y>)", turned, path.read_text())
    assert n > 20, n
    path.write_text(text)


def test_scene_across_antimeridian_has_one_grid(scratch):
    made = []
    for name, degrees in (("plain", 0), ("far", 180 - 12.35)):
        (scratch / name).mkdir()
        scene = Scene(scratch / name)
        turn_orbit(scene.folder, degrees)
        path = config(scratch, ", from: range-doppler")
        path.write_text(path.read_text().replace(f"EPSG:{UTM}", "EPSG:4326"))
        report = pbtest.run_json("pushbroom", "run", "--json", "-c", path, "-o", scratch / name, scene.folder)[0]
        made.append(gdal.Open(path_of(report, "cog")))
    plain, far = made
    here, there = far.GetGeoTransform(), plain.GetGeoTransform()
    assert (far.RasterXSize, far.RasterYSize) == (plain.RasterXSize, plain.RasterYSize), (far.RasterXSize, far.RasterYSize)
    east = here[0] + far.RasterXSize * here[1]
    assert abs(np.remainder(here[0] - there[0] - (180 - 12.35) + 180, 360) - 180) < 1e-6 and (here[0] < -180 < east or here[0] < 180 < east), (here, there)
    a, b = plain.ReadAsArray(), far.ReadAsArray()
    assert (np.isnan(a) != np.isnan(b)).mean() < 1e-3 and np.nanmean(np.abs(a - b) > 1) < 5e-3, ((np.isnan(a) != np.isnan(b)).mean(), np.nanmean(np.abs(a - b)))


def flood(scratch, folder, sample):
    """Result of the sample: its map, and the map's pixels in the landscape's, as (rows, columns)."""
    done = pbtest.run("pushbroom", "run", "-c", sample, "-o", scratch / "out", "--existing", "version", "--json", folder)
    report = json.loads(done.stdout.splitlines()[-1])
    assert {p["type"] for p in report["products"]} == {"cog", "quicklook", "statistics", "stac"}
    return gdal.Open(path_of(report, "cog")), report


def test_the_flood_sample_finds_water_where_it_is(scratch):
    land, image = landscape()
    product = RadarProduct(land)
    power = (0.01 + (image - WATER) / (LAND - WATER) * 0.11) * product.random.gamma(4.4, 1 / 4.4, image.shape)
    product.dn["vv"] = np.sqrt(power * product.area["vv"]["sigma0"] + product.noise["vv"]).round().astype(np.uint16)
    product.dn["vv"][:, :4] = 0
    folder, sample = product.write(scratch), scratch / "sentinel1-flood.yaml"
    land.dem(scratch / "dem.tif")
    shutil.copy(pbtest.SOURCE / "samples/sentinel1-flood.yaml", sample)
    made, report = flood(scratch, folder, sample)
    assert report["report"]["placed_by"] == "range-Doppler on ground of 1500 to 1630 m, which band HEIGHT has", report["report"]["placed_by"]
    item = json.load(open(path_of(report, "stac")))["properties"]
    assert " The scene was placed by range-Doppler on ground of 1500 to 1630 m" in item["processing:lineage"], item["processing:lineage"]
    assert item["sar:product_type"] == "GTC"
    found, t = made.ReadAsArray(), made.GetGeoTransform()
    assert t[1] == 20 and t[0] % 20 == t[3] % 20 == 0 and (found == 255).any()
    x, y = np.meshgrid(t[0] + 20 * (np.arange(found.shape[1]) + 0.5), t[3] - 20 * (np.arange(found.shape[0]) + 0.5))
    away = np.minimum(*(np.abs(np.hypot(x - d[0], y - d[1]) - d[2]) for d in (land.hill, land.lake)))
    sure = (found != 255) & (away > 25)  # the filter's window is 50 m wide
    assert sure.sum() > 5000 and ((found == 1) == land.water(x, y))[sure].mean() > 0.995, ((found == 1) == land.water(x, y))[sure].mean()
    # Without heights the lake is found, and the tarn next to its place.
    sample.write_text(re.sub("      sources:\n.*\n", "", sample.read_text()).replace("dem: HEIGHT", "height: 1500"))
    flat, report = flood(scratch, folder, sample)
    assert json.load(open(path_of(report, "stac")))["properties"]["sar:product_type"] == "GEC"
    assert flat.GetGeoTransform()[1] == 20
    for disc, there in ((land.lake, True), (land.hill, False)):
        px = gdal.ApplyGeoTransform(gdal.InvGeoTransform(flat.GetGeoTransform()), *disc[:2])
        assert (flat.ReadAsArray()[int(px[1]), int(px[0])] == 1) == there, (disc, px)


def refused(scratch, scene, params, code, *words, **more):
    error = warp(scratch, scene, params, code=1, **more)["error"]
    assert error["code"] == code and all(w in error["message"] for w in words), error


def test_what_cannot_be_is_refused_with_words(scratch):
    scene = Scene(scratch)
    doppler = ", from: range-doppler"
    refused(scratch, scene, doppler, "pipeline.grid", "annotation/s1*.xml", "input.metadata", metadata="")
    refused(scratch, scene, doppler, "pipeline.grid", "annotation/s1*.xml", metadata='["annotation/calibration/calibration-*-vv-*.xml"]')
    report = warp(scratch, scene, ", bounds: [600000, 5192000, 610000, 5200000]" + doppler)["report"]
    assert "outside of the bounds" in report["skipped"], report
    path = next((scene.folder / "annotation").glob("s1*-vv-*.xml"))
    text = path.read_text()
    for old, new, word in ((">300<", ">301<", "300 x 260 pixels, and its annotation is of an image of 301 x 260"), ("Ground Range", "Slant Range", "GRD products"),
                           ("orbitList", "oList", "no state vectors"), ("<geolocationGridPoint>.*</geolocationGridPoint>", "", "write height")):
        path.write_text(re.sub(old, new, text))
        refused(scratch, scene, doppler, "pipeline.grid", word)
        if new:  # another placement exists
            said = warp(scratch, scene, "", how=("--dry-run",))["plan"]["grid"]["placed_by"]
            assert "ground control points" in said, said
    path.write_text(text)
    done = pbtest.run("pushbroom", "check-config", config(scratch, ", height: 100"), code=2)
    assert ":43: warp" in done.stderr and "rpc and range-doppler" in done.stderr, done.stderr


if __name__ == "__main__":
    pbtest.main()
