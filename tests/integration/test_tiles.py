#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: sanitized
"""warp with a grid of tiles: the tiles, their places, their pixels against gdalwarp -te -tr, and that all or none is published."""
import json
import pathlib

import numpy as np
from osgeo import gdal, osr

import pbtest
from test_warp import write

gdal.UseExceptions()
# Places of delivered Sentinel-2 tiles: read of the products' own files, and of ESA's list of tiles.
CORNERS = {"19UDP": (32619, 399960, 5400000), "29RKH": (32629, 199980, 2800020), "01CEM": (32701, 499980, 1200040), "33XVP": (32633, 399960, 9400020),
           "28PDC": (32628, 399960, 1800000)}
REAL = {"19UDP": "sentinel2_19UDP_jp2/R10m/B04.jp2", "29RKH": "sentinel2_29RKH/B04.tif"}


def field(w, h):
    y, x = np.mgrid[0:h, 0:w]
    return (4000 + 900 * np.sin(x / 7.0) * np.cos(y / 11.0) + 2 * x).astype(np.uint16)


def config(scratch, params, products="[cog: {type: float32, nodata: -9999, blocksize: 64}]", output="{}"):
    path = scratch / "c.yaml"
    path.write_text(f"compute: {{memory: 64MiB}}\npipelines:\n  p:\n    output: {output}\n    steps:\n      - warp: {{{params}}}\n    products: {products}\n")
    return path


def run(scratch, scene, params, *more, code=0, **keys):
    path = config(scratch, params, **keys)
    return pbtest.run_json("pushbroom", "run", "--json", "-c", path, "-o", scratch / "out", "--existing", "replace", scene, *more, code=code)[0]


def states(report):
    return {t["id"]: t["state"] for t in report["report"]["tiles"]}


@pbtest.not_about_memory
def test_corners_are_those_of_delivered_tiles(scratch):
    for name, (epsg, x, y) in CORNERS.items():
        scene = write(scratch / "s.tif", field(40, 40), (x + 1000, 500, 0, y - 1000, 0, -500), epsg)
        report = run(scratch, scene, f"grid: mgrs, pixel: 900, tiles: [{name}]")
        made = gdal.Open(report["products"][0]["path"])
        assert made.GetGeoTransform() == (x, 900, 0, y, 0, -900) and made.RasterXSize == 122, (name, made.GetGeoTransform())
        assert osr.SpatialReference(made.GetProjection()).GetAuthorityCode(None) == str(epsg)
        if name in REAL and (pbtest.DATA / "real" / REAL[name]).exists():
            real = gdal.Open(str(pbtest.DATA / "real" / REAL[name]))
            t = real.GetGeoTransform()
            assert (t[0], t[3], round(real.RasterXSize * t[1])) == (x, y, 109800), (name, t)


def compare(path, scene, method):
    """Pixels of a tile against gdalwarp on the same grid, away from what is invalid."""
    made = gdal.Open(path)
    t, w, h = made.GetGeoTransform(), made.RasterXSize, made.RasterYSize
    theirs = gdal.Warp("", str(scene), format="MEM", errorThreshold=0, outputType=gdal.GDT_Float32, dstNodata=-9999, resampleAlg=method,
                       dstSRS=made.GetProjection(), outputBounds=(t[0], t[3] + h * t[5], t[0] + w * t[1], t[3]), xRes=t[1], yRes=-t[5])
    x, y = made.ReadAsArray(), theirs.ReadAsArray()
    assert theirs.GetGeoTransform() == t and x.shape == y.shape, (t, theirs.GetGeoTransform())
    valid = (x != -9999) & (y != -9999)
    assert ((x != -9999) != (y != -9999)).mean() < 1e-4
    for dy, dx in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        valid &= np.roll(valid, (dy, dx), (0, 1))
    assert np.all(np.abs(x - y)[valid] <= 1e-4 * np.abs(y[valid])), np.abs(x - y)[valid].max()
    return int(valid.sum())


def test_every_tile_that_the_scene_touches(scratch):
    values = field(700, 300)
    values[:, 590:] = 0 # from 699000 m on, 11.97 degrees east
    scene = write(scratch / "s.tif", values, (640000, 100, 0, 5920000, 0, -100), 32632)
    products = "[cog: {type: float32, nodata: -9999, blocksize: 64}, statistics: {}, quicklook: {size: 32}, stac: {datetime: file-time}]"
    report = run(scratch, scene, "grid: mgrs, pixel: 90", products=products)
    made = ["32UPD", "32UPE", "33UTU", "33UTV"]
    assert states(report) == {**dict.fromkeys(made, "made"), **dict.fromkeys(["32UQD", "32UQE", "33UUU", "33UUV"], "empty")}, states(report)
    names = sorted(p.name for p in pathlib.Path(report["directory"]).iterdir() if not p.name.startswith("."))
    assert names == sorted(f"s_{t}{end}" for t in made for end in (".tif", ".statistics.json", ".png", ".stac.json")), names
    assert sum(compare(f"{report['directory']}/s_{t}.tif", scene, "bilinear") for t in made) > 200000
    item = json.load(open(f"{report['directory']}/s_33UTU.stac.json"))
    assert item["id"] == "s.p.33UTU" and item["properties"]["grid:code"] == "MGRS-33UTU", item["id"]
    assert any("/grid/v1.1.0/" in e for e in item["stac_extensions"])
    assert item["properties"].get("proj:code", item["assets"]["data"].get("proj:code")) == "EPSG:32633"
    assert item["assets"]["data"]["href"] == "./s_33UTU.tif", item["assets"]["data"]["href"]
    whole = json.load(open(f"{report['directory']}/s_32UPD.statistics.json"))
    tile = gdal.Open(f"{report['directory']}/s_32UPD.tif").ReadAsArray()
    assert abs(whole["bands"][0]["mean"] - tile[tile != -9999].mean(dtype=float)) < 1e-6 * whole["bands"][0]["mean"], whole["bands"][0]
    told = pbtest.run("pushbroom", "run", "-c", scratch / "c.yaml", "-o", scratch / "out", "--existing", "replace", scene).stdout
    told = " ".join(told.split())
    assert "no valid pixel in 32UQE, 32UQD, 33UUV, 33UUU" in told and "made: 32UPE, " in told, told
    plan = pbtest.run("pushbroom", "run", "--dry-run", "-c", scratch / "c.yaml", "-o", scratch / "out", "--existing", "replace", scene).stdout
    assert "33UTV: EPSG:32633, 1220 x 1220 px, upper left corner 199980, 6000000" in plan, plan


@pbtest.not_about_memory
def test_web_mercator_tiles_join(scratch):
    scene = write(scratch / "s.tif", field(300, 260), (13.0, 0.001, 0, 52.6, 0, -0.001), 4326)
    report = run(scratch, scene, "grid: web-mercator, zoom: 11, size: 512")
    made = sorted(k for k, v in states(report).items() if v == "made")
    assert made == ["10-548-335", "10-548-336", "10-549-335", "10-549-336"], states(report)
    for name in made:
        z, x, y = map(int, name.split("-"))
        path = f"{report['directory']}/s_{name}.tif"
        t, span = gdal.Open(path).GetGeoTransform(), 2 * 20037508.342789244 / 2 ** z
        assert np.allclose(t, (x * span - span * 2 ** z / 2, span / 512, 0, span * 2 ** z / 2 - y * span, 0, -span / 512), rtol=0, atol=1e-8), t
        compare(path, scene, "bilinear")
    large = run(scratch, scene, "grid: web-mercator, zoom: 11, size: 2048, tiles: [8/137/83, 8/137/84]")
    tile = gdal.Open(f"{large['directory']}/s_8-137-83.tif").ReadAsArray()
    small = run(scratch, scene, "grid: web-mercator, zoom: 11, size: 512")
    assert np.array_equal(tile[1536:, :512], gdal.Open(f"{small['directory']}/s_10-548-335.tif").ReadAsArray())


def test_each_tile_has_names_of_its_own(scratch):
    scene = write(scratch / "s.tif", field(300, 260), (13.0, 0.001, 0, 52.6, 0, -0.001), 4326)
    products = "[cog: {blocksize: 64}, stac: {datetime: file-time}]"
    tiles = ["10-548-335", "10-548-336", "10-549-335", "10-549-336"]
    for name, form in (("{tile}_{scene}_x", "{}_s_x"), ("{scene}-y", "s_{}-y"), ("{tile}", "{}")):
        report = run(scratch, scene, "grid: web-mercator, zoom: 11, size: 512", products=products, output=f'{{name: "{name}"}}')
        names = sorted(p.name for p in pathlib.Path(report["directory"]).iterdir() if not p.name.startswith("."))
        assert names == sorted(form.format(t) + end for t in tiles for end in (".tif", ".stac.json")), (name, names)
        items = [json.load(open(f"{report['directory']}/{form.format(t)}.stac.json")) for t in tiles]
        assert [i["assets"]["data"]["href"] for i in items] == [f"./{form.format(t)}.tif" for t in tiles], name
    for params, name, words in (("grid: web-mercator, zoom: 11, size: 512", "x_{product}", "c.yaml:4:20: output.name: 'x_{product}' gives the files of all tiles one name"),
                                ('crs: "EPSG:3857", pixel: 10', "{tile}", "output.name: '{tile}' has {tile}, and no step makes tiles")):
        done = pbtest.run("pushbroom", "check-config", config(scratch, params, output=f'{{name: "{name}"}}'), code=2)
        assert words in done.stderr, done.stderr


def test_a_scene_around_the_earth(scratch):
    for west in (-180, 0):
        scene = write(scratch / "s.tif", field(360, 180), (west, 1, 0, 90, 0, -1), 4326)
        report = run(scratch, scene, "grid: web-mercator, zoom: 1, size: 256")
        assert states(report) == dict.fromkeys(["1-0-0", "1-0-1", "1-1-0", "1-1-1"], "made"), states(report)
        report = run(scratch, scene, "grid: mgrs, pixel: 900", code=1)
        assert report["error"]["code"] == "pipeline.tiles" and "half of the Earth" in report["error"]["message"], report


def test_every_tile_uses_the_device_of_the_first(scratch):
    scene = write(scratch / "s.tif", field(300, 260), (13.0, 0.001, 0, 52.6, 0, -0.001), 4326)
    path = config(scratch, "grid: web-mercator, zoom: 11, size: 512")
    plan = pbtest.run("pushbroom", "run", "--dry-run", "--as", "h100", "-c", path, "-o", scratch / "out", scene).stdout
    assert all(f"10-54{x}-33{y}: EPSG:3857" in plan for x in (8, 9) for y in (5, 6)), plan


def test_named_tiles_beside_the_scene(scratch):
    scene = write(scratch / "s.tif", field(60, 60), (700000, 100, 0, 5890000, 0, -100), 32632)
    report = run(scratch, scene, "grid: mgrs, pixel: 60, tiles: [33UVU, T32UQD]")
    assert states(report) == {"33UVU": "outside", "32UQD": "made"}, states(report)
    report = run(scratch, scene, "grid: mgrs, pixel: 60, tiles: [33UVU]")
    assert (report["stage"], report["products"]) == ("skipped", []) and "outside of tile 33UVU" in report["report"]["skipped"], report
    report = run(scratch, scene, "grid: mgrs, pixel: 60, tiles: [33UVU, T31UFV, 33UWU]")
    assert report["stage"] == "skipped" and report["report"]["skipped"].endswith("the scene is outside of all 3 tiles: 33UVU, 31UFV, 33UWU"), report
    report = run(scratch, scene, f"grid: web-mercator, zoom: 11, size: 512, tiles: [{', '.join(f'10/{x}/900' for x in range(100, 130))}]")
    assert "outside of all 30 tiles: 10-100-900, 10-101-900, " in report["report"]["skipped"] and report["report"]["skipped"].endswith(" more"), report
    path = config(scratch, "grid: mgrs, pixel: 60")
    path.write_text(path.read_text().replace("steps:", "steps:\n      - crop: {bounds: [0, 0, 10, 10]}"))
    done = pbtest.run("pushbroom", "run", "-c", path, "-o", scratch / "out", "--existing", "replace", scene)
    assert "step 1 (crop): the scene is outside of the bounds" in done.stdout, done.stdout
    values = field(60, 60) * 0
    report = run(scratch, write(scratch / "e.tif", values, (700000, 100, 0, 5890000, 0, -100), 32632), "grid: mgrs, pixel: 60")
    assert (report["stage"], report["products"]) == ("skipped", []) and "no tile has a valid pixel" in report["report"]["skipped"], report
    assert not (scratch / "out" / "e").exists()


def test_what_cannot_be_is_told_where_it_is_written(scratch):
    for params, words in (("grid: mgrs", "c.yaml:6:22: warp: tiles of mgrs need 'pixel'"), ("grid: mgrs, pixel: 7", "no whole number"),
                          ("grid: mgrs, pixel: 10, tiles: [32UQD, 32IQD]", "'32IQD' is no MGRS tile"), ("grid: mgrs, pixel: 10, zoom: 3", "'zoom'"),
                          ("grid: mgrs, pixel: 10, size: 512", "'size'"), ('grid: mgrs, pixel: 10, crs: "EPSG:32633"', "leave 'crs' out"),
                          ("grid: web-mercator", "need 'zoom'"), ("grid: web-mercator, zoom: 3, size: 4096", "larger than the world"),
                          ("grid: web-mercator, zoom: 10, size: 256, tiles: [9/1/1]", "'9/1/1' is no tile of this grid: 10/column/row"),
                          ("grid: mgrs, pixel: 10, tiles: [32UQD, 32UQD]", "named twice"),
                          ("grid: mgrs, pixel: 10, tiles: [32UQD, T32UQD]", "tile T32UQD is named twice"),
                          ("grid: web-mercator, zoom: 10, size: 256, tiles: [10/5/3, 10-5-3]", "tile 10-5-3 is named twice"), ("pixel: 10", "give 'crs'"),
                          ("grid: mgrs, pixel: 10}\n      - warp: {grid: mgrs, pixel: 10", "already")):
        done = pbtest.run("pushbroom", "check-config", config(scratch, params), code=2)
        assert words in done.stderr, (params, done.stderr)
    scene = write(scratch / "s.tif", field(300, 260), (13.0, 0.001, 0, 52.6, 0, -0.001), 4326)
    report = run(scratch, scene, "grid: web-mercator, zoom: 14, size: 256", code=1)
    assert report["error"]["code"] == "pipeline.tiles" and "may be made of one scene" in report["error"]["message"], report


if __name__ == "__main__":
    pbtest.main()
