#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: sanitized
"""warp by RPCs over ground of different heights (dem) through `pushbroom run`, against gdalwarp -rpc -to RPC_DEM without its
approximation: pixels, and positions."""
import sys

import numpy as np
from osgeo import gdal, osr

import pbtest
from test_orthorectify import SIDE, inside, rpc_scene

sys.path.insert(0, str(pbtest.SOURCE / "tests/bench"))
from measured import measure  # noqa: E402

gdal.UseExceptions()
AREA = (515000, 5250000, 528000, 5262000)  # area of the scene except for its edges, in EPSG:32755
LONLAT = (4326, (147.1, 0.001, 0, -42.7, 0, -0.001), 320)
METRES = (32755, (508000, 100, 0, 5274000, 0, -100), 240)


def relief(path, place, low=0.0, high=1500.0, kind=gdal.GDT_Float32, hole=False):
    """Hills and valleys of some kilometres."""
    epsg, transform, side = place
    y, x = np.mgrid[0:side, 0:side]
    heights = low + (high - low) * (0.5 + 0.25 * np.sin(x / 9.0) + 0.25 * np.cos(y / 13.0))
    if hole:
        heights[side // 2 - 9:side // 2 + 9, side // 2 - 15:side // 2 + 15] = -32768
    out = gdal.GetDriverByName("GTiff").Create(str(path), side, side, 1, kind, ["TILED=YES", "BLOCKXSIZE=64", "BLOCKYSIZE=64", "COMPRESS=DEFLATE"])
    system = osr.SpatialReference()
    system.ImportFromEPSG(epsg)
    out.SetProjection(system.ExportToWkt())
    out.SetGeoTransform(transform)
    out.GetRasterBand(1).WriteArray(heights)
    if hole:
        out.GetRasterBand(1).SetNoDataValue(-32768)
    return path


def config(scratch, dem, params, compute="{memory: 64MiB}", source="", steps=()):
    path = scratch / "c.yaml"
    path.write_text(f"""compute: {compute}
pipelines:
  p:
    input:
      bands: {{A: 1}}
      sources: {{DEM: {{file: "{dem}", bands: {{H: 1}}{source}}}}}
    steps:
{''.join(f'      - {s}' + chr(10) for s in steps)}      - warp: {{crs: "EPSG:32755", from: rpc, dem: H, {params}}}
    products:
      - cog: {{bands: [A], type: float32, nodata: -9999, blocksize: 64}}
""")
    return path


def warp(scratch, scene, dem, params, **more):
    report = pbtest.run_json("pushbroom", "run", "--json", "-c", config(scratch, dem, params, **more), "-o", scratch / "out", "--existing", "version", scene)[0]
    return gdal.Open([p["path"] for p in report["products"] if p["type"] == "cog"][0]), report


def reference(scene, dem, **options):
    return gdal.Warp("", str(scene), format="MEM", errorThreshold=0, outputType=gdal.GDT_Float32, dstNodata=-9999, dstSRS="EPSG:32755", rpc=True,
                     transformerOptions=[f"RPC_DEM={dem}"], xRes=40, yRes=40, outputBounds=AREA, **options)


WITHIN = f"pixel: 40, bounds: {list(AREA)}"


def compare(ours, theirs, method):
    assert np.allclose(ours.GetGeoTransform(), theirs.GetGeoTransform(), rtol=0, atol=1e-6)
    x, y = ours.ReadAsArray(), theirs.ReadAsArray()
    valid = (x != -9999) & (y != -9999)
    inner = inside(valid, 4)
    assert inner.mean() > 0.8, inner.mean()
    if method == "nearest":
        assert (x != y)[inner].mean() < 1e-4, int((x != y)[inner].sum())
    else:
        # gdalwarp averages the rectangle around a pixel that is turned, not its polygon
        most = 3e-3 if method == "average" else 1e-4
        assert (np.abs(x - y)[inner] <= most * np.abs(y[inner])).all(), float((np.abs(x - y)[inner] / y[inner]).max())
    return ((x != -9999) != (y != -9999)).mean()


@pbtest.not_about_memory
def test_pixels_are_those_of_gdalwarp(scratch):
    scene = rpc_scene(scratch / "s.tif")
    for place in (LONLAT, METRES):
        dem = relief(scratch / "dem.tif", place)
        for method in ("nearest", "bilinear", "cubic", "average"):
            ours, _ = warp(scratch, scene, dem, f"{WITHIN}, method: {method}")
            differ = compare(ours, reference(scene, dem, resampleAlg="near" if method == "nearest" else method), method)
            assert differ < 1e-3, (place[0], method, differ)


def test_positions_equal_gdal_to_a_200th_of_a_pixel(scratch):
    """A scene whose pixels are their columns, then their rows, becomes a map of source positions by bilinear."""
    dem = relief(scratch / "dem.tif", LONLAT, -200.0, 4200.0)
    rows, columns = np.mgrid[0:SIDE, 0:SIDE]
    for axis, place in ((0, columns), (1, rows)):
        scene = gdal.Open(str(rpc_scene(scratch / "s.tif")), gdal.GA_Update)
        scene.GetRasterBand(1).WriteArray(place * 100)  # bilinear adds up float32: 1/100 of a pixel is a whole number
        del scene
        ours, report = warp(scratch, scratch / "s.tif", dem, f"{WITHIN}, method: bilinear")
        exact = gdal.Transformer(gdal.Open(str(scratch / "s.tif")), ours, ["METHOD=RPC", f"RPC_DEM={dem}"])
        made = ours.ReadAsArray()
        at = [(c, r) for r in range(3, 300, 7) for c in range(2, 325, 7) if made[r, c] != -9999]
        points, good = exact.TransformPoints(1, [(c + 0.5, r + 0.5, 0) for c, r in at])
        off = [abs(made[r, c] / 100 + 0.5 - p[axis]) for (c, r), p, g in zip(at, points, good) if g and 1 < p[0] < SIDE - 1 and 1 < p[1] < SIDE - 1]
        assert len(off) > 1500 and max(off) < 1 / 200, (len(off), max(off))
        assert report["report"]["placed_by"].startswith("RPCs on ground of -200 to 4") and "band H" in report["report"]["placed_by"], report["report"]


def test_where_heights_are_missing_there_are_no_pixels(scratch):
    scene = rpc_scene(scratch / "s.tif")
    dem = relief(scratch / "dem.tif", LONLAT, kind=gdal.GDT_Int16, hole=True)
    ours, _ = warp(scratch, scene, dem, f"{WITHIN}, method: nearest")
    theirs = reference(scene, dem, resampleAlg="near")
    holes = [d.ReadAsArray() == -9999 for d in (ours, theirs)]
    assert holes[0].sum() > 500 and not (holes[0] & ~holes[1]).any(), [int(h.sum()) for h in holes]
    assert (holes[1] & ~holes[0]).sum() < 0.15 * holes[0].sum(), "gdalwarp leaves out half a pixel of the heights more, not more than that"
    compare(ours, theirs, "nearest")


def test_undulation_is_added_by_the_source_offset(scratch):
    scene = rpc_scene(scratch / "s.tif")
    low, high = relief(scratch / "low.tif", METRES, 0, 900), relief(scratch / "high.tif", METRES, 48, 948)
    one, _ = warp(scratch, scene, low, WITHIN, source=", offset: 48")
    other, _ = warp(scratch, scene, high, WITHIN)
    plain, _ = warp(scratch, scene, low, WITHIN)
    assert np.allclose(one.ReadAsArray(), other.ReadAsArray(), rtol=1e-6, atol=0)
    assert not np.allclose(one.ReadAsArray(), plain.ReadAsArray(), rtol=1e-4, atol=0)


def test_the_grid_holds_all_of_the_scene(scratch):
    scene, dem = rpc_scene(scratch / "s.tif"), relief(scratch / "dem.tif", METRES, 0, 3000)
    found, _ = warp(scratch, scene, dem, "pixel: 40, align: true, method: nearest")
    wide, _ = warp(scratch, scene, dem, "pixel: 40, method: nearest, bounds: [508000, 5240000, 538000, 5276000]")
    counts = [int((d.ReadAsArray() != -9999).sum()) for d in (found, wide)]
    assert counts[0] == counts[1] > 80000, counts
    assert found.RasterXSize < 0.8 * wide.RasterXSize, (found.RasterXSize, wide.RasterXSize)


@pbtest.not_about_memory
def test_tiles_and_threads_do_not_count(scratch):
    scene, dem = rpc_scene(scratch / "s.tif"), relief(scratch / "dem.tif", LONLAT)
    seen = set()
    for compute in ("{memory: 512MiB, threads: 1}", "{memory: 64MiB, threads: 2, tile: 64}", "{memory: 64MiB, tile: 256, threads: 3}"):
        _, report = warp(scratch, scene, dem, "method: cubic", compute=compute)
        seen.add([p["checksum"] for p in report["products"] if p["type"] == "cog"][0])
    assert len(seen) == 1, seen


def test_steps_before_and_behind_go_with_it(scratch):
    scene, dem = rpc_scene(scratch / "s.tif"), relief(scratch / "dem.tif", LONLAT)
    gdal.Translate(str(scratch / "part.tif"), str(scene), srcWin=[60, 80, 150, 130])
    ours, _ = warp(scratch, scene, dem, f"{WITHIN}, method: nearest", steps=("crop: {window: [60, 80, 150, 130], bands: [A]}",))
    x, y = ours.ReadAsArray(), reference(scratch / "part.tif", dem, resampleAlg="near").ReadAsArray()
    assert (x != y).mean() < 1e-3 and (x != -9999).mean() > 0.15, ((x != y).mean(), (x != -9999).mean())


def test_the_dry_run_says_which_heights(scratch):
    scene, dem = rpc_scene(scratch / "s.tif"), relief(scratch / "dem.tif", LONLAT)
    done = pbtest.run("pushbroom", "run", "--dry-run", "-c", config(scratch, dem, WITHIN), "-o", scratch / "out", scene)
    assert "the scene is placed by RPCs on ground of 0 to 1500 m, which band H has" in done.stdout, done.stdout


def test_heights_in_large_blocks_keep_the_memory_limit(scratch):
    """A block of 16 MiB, of which the scene's area is nearly all."""
    if pbtest.SANITIZED:
        raise pbtest.Skip("a sanitizer's memory is not planned")
    side, scene = 4096, rpc_scene(scratch / "s.tif")

    def dry_run(path, memory):
        return ["pushbroom", "run", "--dry-run", "-c", config(scratch, path, WITHIN, f"{{memory: {memory}MiB, threads: 1}}"), "-o", scratch / "out", scene]

    def peak(path):
        command = dry_run(path, 88)
        return measure([pbtest.BIN / command[0], *command[1:]])[1]

    base = peak(relief(scratch / "dem.tif", LONLAT))
    out = gdal.GetDriverByName("GTiff").Create(str(scratch / "large.tif"), side, side, 1, gdal.GDT_Byte,
                                               ["TILED=YES", "BLOCKXSIZE=4096", "BLOCKYSIZE=4096", "COMPRESS=DEFLATE"])
    system = osr.SpatialReference()
    system.ImportFromEPSG(4326)
    out.SetProjection(system.ExportToWkt())
    out.SetGeoTransform((147.16, 0.2 / side, 0, -42.77, 0, -0.15 / side))
    heights = np.full((side, side), 7, np.uint8)
    heights[side // 2, side // 2] = 90
    out.GetRasterBand(1).WriteArray(heights)
    del out
    assert "on ground of 7 to 90 m" in pbtest.run(*dry_run(scratch / "large.tif", 88)).stdout
    took = peak(scratch / "large.tif")
    assert took - base < 55, f"{took - base:.0f} MiB more than with small blocks"
    said = pbtest.run(*dry_run(scratch / "large.tif", 16), code=1)
    assert "compute.memory is 16 MiB, but to read the heights of the ground from a file of 4096 x 4096" in said.stdout + said.stderr, said


def test_sample_orthorectifies_with_rpcs_in_a_sidecar(scratch):
    relief(scratch / "copernicus-glo30.tif", LONLAT, 300, 800)
    name = "09DEC06145803-P1BS-052869858050_01_P002"
    plain = gdal.Open(str(rpc_scene(scratch / "s.tif")))
    made = gdal.GetDriverByName("GTiff").CreateCopy(str(scratch / f"{name}.tif"), plain, options=["RPB=YES", "PROFILE=BASELINE"])
    del made
    path = scratch / "vhr-ortho.yaml"
    path.write_text((pbtest.SOURCE / "samples/vhr-ortho.yaml").read_text().replace("/data/", f"{scratch}/"))
    report, = pbtest.run_json("pushbroom", "run", "--json", "-c", path, "-o", scratch / "out", scratch / f"{name}.tif")
    assert [p["type"] for p in report["products"]] == ["cog", "quicklook", "stac"], report
    assert report["report"]["placed_by"] == "RPCs on ground of 347 to 847 m, which band HEIGHT has", report["report"]["placed_by"]


def test_what_cannot_be_is_refused_with_words(scratch):
    scene, dem = rpc_scene(scratch / "s.tif"), relief(scratch / "dem.tif", LONLAT)
    away = relief(scratch / "away.tif", (4326, (10.0, 0.001, 0, 50.0, 0, -0.001), 50))
    nowhere = gdal.GetDriverByName("GTiff").Create(str(scratch / "nowhere.tif"), 20, 20)
    del nowhere
    damaged = scratch / "damaged.tif"
    data = bytearray(dem.read_bytes())
    data[len(data) // 2:len(data) // 2 + 400] = bytes(400)
    damaged.write_bytes(data)
    for file, params, steps, words in ((away, "", (), "no valid pixel in the area of the scene"),
                                       (scratch / "nowhere.tif", "", (), "no geotransform with a coordinate system"),
                                       (damaged, "", (), "damaged.tif"), (dem, "height: 3", (), "the heights of 'dem'"),
                                       (dem, "", ("median: {bands: [H]}",), "'H' has been changed by a step")):
        done = pbtest.run("pushbroom", "run", "--json", "-c", config(scratch, file, params, steps=steps), "-o", scratch / "out", scene, code=None)
        said = done.stdout + done.stderr
        assert done.returncode != 0 and words in said, (file, said)
        assert file != damaged or '"code": "input.' in said or '"code":"input.' in said, said


if __name__ == "__main__":
    pbtest.main()
