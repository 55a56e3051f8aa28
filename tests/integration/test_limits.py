#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: threads slow
"""limits.* hold for the results of a scene: a file of a few hundred bytes with pixels of 30 km makes no grid of 37 gigapixels,
and is refused alike by `pushbroom run`, by its dry run and by the service."""
import shutil
import subprocess

import numpy as np
from osgeo import gdal, osr

import pbtest
from daemon_kit import Daemon
from pbtest import run, run_json

gdal.UseExceptions()
WARP = "{warp: {crs: 'EPSG:6933', pixel: 10}}"
COG = "{cog: {bands: [B1], type: float32}}"


def scene(path, pixel_m, side=64, epsg=6933, x=0, noise=False):
    path.parent.mkdir(exist_ok=True)
    ds = gdal.GetDriverByName("GTiff").Create(str(path), side, side, 1, gdal.GDT_Byte, ["COMPRESS=DEFLATE"])
    ref = osr.SpatialReference()
    ref.ImportFromEPSG(epsg)
    ds.SetProjection(ref.ExportToWkt())
    ds.SetGeoTransform((x, pixel_m, 0, pixel_m * side / 2, 0, -pixel_m))
    ds.GetRasterBand(1).WriteArray(np.random.default_rng(1).integers(1, 255, (side, side)).astype("u1") if noise else np.full((side, side), 9, "u1"))
    return path


def config(scratch, step, inputs="match: ['*.tif']", limits="", product=COG):
    path = scratch / "c.yaml"
    path.write_text(f"compute: {{device: cpu, memory: 256MiB, threads: 2}}\n{limits}pipelines:\n  p:\n    input: {{{inputs}}}\n"
                    f"    steps: [{step}]\n    products: [{product}]\n")
    return path


def refused(scratch, path, step, words, code="output.limit", **more):
    """Refused by the run and by its dry run, before a byte is written."""
    for dry in ([], ["--dry-run"]):
        out = scratch / "out"
        done = run("pushbroom", "run", "--json", *dry, "-c", config(scratch, step, **more), "-o", out, path, code=1)
        assert f'"{code}"' in done.stdout and words in done.stdout, done.stdout + done.stderr
        assert not list(out.rglob("*.tif")) if out.exists() else True


def made(scratch, path, step, **more):
    out = scratch / "out"
    result, = run_json("pushbroom", "run", "--json", "-c", config(scratch, step, **more), "-o", out, path)
    shutil.rmtree(out)
    return result


def test_small_scene_makes_no_huge_warp(scratch):
    refused(scratch, scene(scratch / "in/x.tif", 30000), WARP, "limits.max_growth")
    refused(scratch, scene(scratch / "in/x.tif", 100000), WARP, "limits.max_pixels")
    refused(scratch, scene(scratch / "in/x.tif", 200000), WARP, "limits.max_side_px")
    refused(scratch, scene(scratch / "in/x.tif", 2e6), WARP.replace("10", "0.001"), "1 to 1073741824")


def test_small_scene_makes_no_huge_resample(scratch):
    path = scene(scratch / "in/x.tif", 6000, side=600)
    refused(scratch, path, "{resample: {pixel: 100}}", "limits.max_growth")
    refused(scratch, path, "{resample: {pixel: 100}}", "limits.max_pixels", limits="limits: {max_growth: 10000, max_pixels: 1000000000}\n")


def test_far_scenes_make_no_huge_mosaic(scratch):
    path = scene(scratch / "in/a_1.tif", 10)
    scene(scratch / "in/a_2.tif", 10, x=9e6)
    inputs = "group: '(?<scene>a)_[12].tif', files: {A_1: '*_1.tif', A_2: '*_2.tif'}"
    refused(scratch, path, "{mosaic: {bands: [A], of: [_1, _2]}}", "limits.max_side_px", inputs=inputs,
            limits="limits: {max_side_px: 800000}\n", product=COG.replace("B1", "A"))


def test_limits_of_grids_are_those_configured(scratch):
    path = scene(scratch / "in/x.tif", 20)
    step = "{warp: {crs: 'EPSG:6933', pixel: 10}}"
    made(scratch, path, step)
    refused(scratch, path, step, "limits.max_pixels", limits="limits: {max_pixels: 16383}\n")
    refused(scratch, path, step, "limits.max_side_px", limits="limits: {max_side_px: 127}\n")
    made(scratch, path, step, limits="limits: {max_pixels: 16384, max_side_px: 128, max_growth: 1}\n")


def test_output_without_compression_is_refused_first(scratch):
    path = scene(scratch / "in/x.tif", 200)  # 1280 x 1280, in 9 blocks, and overviews of 4 and 1
    step, plain = WARP, COG.replace("float32", "float32, compress: none")
    refused(scratch, path, step, "limits.output", product=plain, limits="limits: {output: 13MiB}\n")
    made(scratch, path, step, product=COG, limits="limits: {output: 13MiB}\n")
    made(scratch, path, step, product=plain, limits="limits: {output: 15MiB}\n")
    two = f"{plain}, {COG.replace('float32', 'uint8, name: b, nodata: 0, compress: none')}"
    refused(scratch, path, step, "limits.output", product=two, limits="limits: {output: 15MiB}\n")


def test_output_with_compression_is_stopped(scratch):
    path = scene(scratch / "in/x.tif", 200, noise=True)
    step, out = "{warp: {crs: 'EPSG:6933', pixel: 10, method: cubic}}", scratch / "out"
    limited = config(scratch, step, limits="limits: {output: 1MiB}\n")
    run("pushbroom", "run", "--dry-run", "-c", limited, "-o", out, path)
    result, = run_json("pushbroom", "run", "--json", "-c", limited, "-o", out, path, code=1)
    assert result["error"]["code"] == "output.limit" and "limits.output" in result["error"]["message"], result
    assert not [p for p in out.rglob("*") if p.is_file()], list(out.rglob("*"))


def test_disk_that_is_too_small_is_told_first(scratch):
    small = scratch / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=20m", "tmpfs", small], stderr=subprocess.DEVNULL).returncode != 0:
        raise pbtest.Skip("cannot mount a tmpfs")
    try:
        path = scene(scratch / "in/x.tif", 1000)
        limited = config(scratch, WARP, product=COG.replace("float32", "float32, compress: none"))
        for dry in ([], ["--dry-run"]):
            done = run("pushbroom", "run", "--json", *dry, "-c", limited, "-o", small / "out", path, code=1)
            assert '"output.limit"' in done.stdout and "whole file system" in done.stdout, done.stdout
        (small / "full").write_bytes(b"x" * (15 << 20))
        limited = config(scratch, WARP.replace("10", "50"), product=COG.replace("float32", "float32, compress: none"))
        for dry in ([], ["--dry-run"]):
            done = run("pushbroom", "run", "--json", *dry, "-c", limited, "-o", small / "out", path, code=1)
            assert '"output.full"' in done.stdout, done.stdout
        assert not list(small.rglob("*.tif"))
        (small / "full").unlink()
        path = scene(scratch / "in/y.tif", 1000, noise=True)
        limited = config(scratch, WARP.replace("10", "10, method: cubic"))
        result, = run_json("pushbroom", "run", "--json", "-c", limited, "-o", small / "out", path, code=1)
        assert result["error"]["code"] == "output.limit" and "it is full after" in result["error"]["message"], result
        assert not list(small.rglob("*.tif"))
    finally:
        subprocess.run(["umount", small], check=True)


def test_grid_of_a_source_is_no_growth(scratch):
    """A small scene on the grid of a large file that the configuration names."""
    path = scene(scratch / "in/x.tif", 600, side=400)
    large = gdal.GetDriverByName("GTiff").Create(str(scratch / "large.tif"), 24000, 24000, 1, gdal.GDT_Byte, ["TILED=YES", "SPARSE_OK=TRUE"])
    large.SetProjection(gdal.Open(str(path)).GetProjection())
    large.SetGeoTransform((0, 10, 0, 120000, 0, -10))
    large.GetRasterBand(1).WriteArray(np.ones((256, 256), "u1"))
    large = None
    inputs = f"match: ['*.tif'], sources: {{L: {{file: {scratch}/large.tif, bands: {{P: 1}}}}}}"
    refused(scratch, path, "{resample: {factor: 60, bands: [B1]}}", "limits.max_growth")
    run("pushbroom", "run", "--dry-run", "-c", config(scratch, "{resample: {like: P, bands: [B1]}}", inputs=inputs), "-o", scratch / "out", path)


def test_tiles_count_together(scratch):
    refused(scratch, scene(scratch / "in/x.tif", 5000, epsg=32633, x=300000), "{warp: {grid: mgrs, pixel: 10}}", "limits.max_growth")


def test_hostile_scene_leaves_service_working(scratch):
    with Daemon(fake=False) as daemon:
        daemon.set_pipelines(config(scratch, WARP).read_text())
        daemon.start()
        for name, pixel_m in (("evil.tif", 30000), ("good1.tif", 10), ("good2.tif", 10)):
            scene(daemon.root / ("." + name), pixel_m)
            (daemon.root / ("." + name)).rename(daemon.root / "inbox" / name)
        daemon.wait_job("good1.tif", "successful")
        daemon.wait_job("good2.tif", "successful")
        job = daemon.wait_job("evil.tif", "failed")
        assert job["error"]["code"] == "output.limit" and job["attempts"] == 1, job
        assert daemon.call("service.info")["troubles"] == []
        assert "evil.tif" in " ".join(daemon.files("quarantine"))


def test_slow_patterns_hold_up_no_scan(scratch):
    daemon = Daemon(fake=False)
    patterns = ("@(a|aa|aaa)*" * 5 + "b.tif", "*a" * 20 + "b.tif", "*(*(*(*(a)a|b)a|c)a|d)b.tif")
    text = "pipelines:\n  p:\n    input: {match: ['*.tif']}\n    products: [statistics: {}]\n"
    for i, pattern in enumerate(patterns):
        text += f"  f{i}:\n    input: {{scene: 'F{i}_*', files: {{R: R.tif, N: '{pattern}'}}}}\n    products: [cog: {{bands: [R], type: float32}}]\n"
    try:
        daemon.set_pipelines(text)
        daemon.start()
        for i in range(len(patterns)):
            folder = daemon.root / f".F{i}"
            scene(folder / "R.tif", 10)
            scene(folder / ("a" * 240 + ".tif"), 10)
            folder.rename(daemon.root / f"inbox/F{i}_1")
        scene(daemon.root / ".good.tif", 10)
        (daemon.root / ".good.tif").rename(daemon.root / "inbox/good.tif")
        daemon.wait_job("good.tif", "successful")
        assert daemon.stop()[0] == 0
    finally:
        daemon.remove()


if __name__ == "__main__":
    pbtest.main()
