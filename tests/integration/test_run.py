#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: threads slow
"""`pushbroom run` end to end: products against numpy on real scenes, one result for every layout of a scene, the same bytes
whatever the threads and tiles, metadata carried, bad input refused with words."""
import csv
import hashlib
import json
import os
import pathlib
import shutil
import subprocess

import numpy as np
from osgeo import gdal

import pbtest
from pbtest import FOR_RACES, need_data, not_about_threads, run, run_json

gdal.UseExceptions()
FEW = 4 if FOR_RACES else 1  # every n-th layout: their decoders have no threads of their own
BANDS6 = "{B: 1, G: 2, R: 3, N: 4, S1: 5, S2: 6}"


def config(scratch, pipeline, name="c.yaml", compute="device: cpu", limits=""):
    path = scratch / name
    path.write_text(f"compute: {{{compute}}}\n{limits}pipelines:\n  p:\n" + "".join(f"    {line}\n" for line in pipeline.strip().splitlines()))
    return path


NDVI = f"""
input: {{match: ["*"], bands: {BANDS6}}}
steps:
  - index: {{names: [NDVI]}}
products:
  - cog: {{bands: [NDVI], blocksize: 64}}
  - statistics: {{}}
"""


def pixels(path):
    ds = gdal.Open(str(path))
    return ds.ReadAsArray(), ds


def ndvi(array):
    red, nir = array[2].astype(np.float32), array[3].astype(np.float32)
    with np.errstate(divide="ignore", invalid="ignore"):
        out = (nir - red) / (nir + red)
    out[~np.isfinite(out)] = np.nan
    return out


def test_ndvi_of_a_landsat_scene_equals_numpy(scratch):
    scene = need_data() / "real/landsat7_L7_ETMs_6band.tif"
    result, = run_json("pushbroom", "run", "--json", "-c", config(scratch, NDVI), "-o", scratch / "out", scene)
    assert result["status"] == "successful", result
    made, ds = pixels(next(p["path"] for p in result["products"] if p["type"] == "cog"))
    expected = ndvi(pixels(scene)[0])
    np.testing.assert_array_equal(made, expected)
    source = gdal.Open(str(scene))
    assert ds.GetGeoTransform() == source.GetGeoTransform()
    assert ds.GetSpatialRef().IsSame(source.GetSpatialRef())
    assert ds.GetRasterBand(1).GetDescription() == "NDVI"
    statistics = json.loads(pathlib.Path(next(p["path"] for p in result["products"] if p["type"] == "statistics")).read_text())
    band = statistics["bands"][0]
    valid = expected[np.isfinite(expected)].astype(np.float64)
    assert band["valid"] == valid.size if "valid" in band else True
    np.testing.assert_allclose([band["statistics"]["mean"], band["statistics"]["stddev"]] if "statistics" in band else [band["mean"], band["stddev"]],
                               [valid.mean(), valid.std()], rtol=1e-12)


def checksums(result):
    return sorted((pathlib.Path(p["path"]).name.split(".", 1)[-1], p["checksum"]) for p in result["products"] if p["type"] != "stac")


def test_every_layout_of_a_scene_gives_one_result(scratch):
    data = need_data()
    with open(data / "TRUTH.tsv") as f:
        truth = {row["file"]: row["pixels_sha256"] for row in csv.DictReader(f, delimiter="\t")}
    # Declaring a value invalid changes what the products must be, so that one is separate; other types of the same numbers
    # replace it.
    names = [n for n, sha in truth.items() if sha == truth["l7_tiled16.tif"] and "nodata" not in n]
    names += ["l7_uint16.tif", "l7_int16_zstd_p2.tif", "l7_uint32.tif", "l7_float32_deflate_p3.tif", "l7_float64_lzw_p3.tif"]
    found = [data / "derived" / n for n in names]
    assert len(found) >= 25, f"only {len(found)} layouts found"
    found = found[::FEW]
    results = run_json("pushbroom", "run", "--json", "-c", config(scratch, NDVI), "-o", scratch / "out", *found)
    cogs = {}
    for path, result in zip(found, results):
        assert result["status"] == "successful", (path, result)
        cog = next(p for p in result["products"] if p["type"] == "cog")
        cogs.setdefault(hashlib.sha256(pixels(cog["path"])[0].tobytes()).hexdigest(), []).append(path.name)
    assert len(cogs) == 1, cogs


SOFT = NDVI.replace("products:", "  - convolve: {kernel: gaussian, size: 9, bands: {SOFT: NDVI}}\nproducts:").replace("bands: [NDVI], block", "bands: [SOFT], block")


@pbtest.not_about_memory
def test_shared_blocks_give_same_result_in_any_layout(scratch):
    """Small tiles with a halo: every block is needed by several tiles and readers, as in a large scene."""
    data = need_data()
    with open(data / "TRUTH.tsv") as f:
        truth = {row["file"]: row["pixels_sha256"] for row in csv.DictReader(f, delimiter="\t")}
    found = [data / "derived" / n for n, sha in truth.items() if sha == truth["l7_tiled16.tif"] and "nodata" not in n][::FEW]
    for name, pipeline in (("ndvi", NDVI), ("soft", SOFT)):
        seen = {}
        runs = ((f"device: cpu, tile: 64, threads: {threads}, memory: {memory}MiB", found) for threads, memory in ((4, 512), (2, 24)))
        for i, (compute, paths) in enumerate([("device: cpu, tile: 512", found[:1]), *runs]):
            results = run_json("pushbroom", "run", "--json", "-c", config(scratch, pipeline, f"{name}{i}.yaml", compute), "-o", scratch / f"{name}{i}", *paths)
            for path, result in zip(paths, results):
                assert result["status"] == "successful", (path, compute, result)
                cog = next(p for p in result["products"] if p["type"] == "cog")
                seen.setdefault(hashlib.sha256(pixels(cog["path"])[0].tobytes()).hexdigest(), []).append((path.name, compute))
        assert len(seen) == 1, seen


ALL = f"""
input: {{match: ["*"], bands: {BANDS6}, scale: 0.0001, offset: -0.01}}
steps:
  - index: {{names: [NDVI, EVI]}}
  - convolve: {{kernel: gaussian, size: 5, bands: {{SOFT: NDVI}}}}
  - math: {{bands: {{EDGE: "where(abs(NDVI - SOFT) > 0.05, 1, 0)"}}}}
products:
  - cog: {{bands: [NDVI, EVI, SOFT], blocksize: 64, compress: zstd}}
  - cog: {{name: edge, bands: [EDGE], blocksize: 64, type: uint8, nodata: 255, overviews: nearest, compress: lzw}}
  - quicklook: {{bands: [R, G, B], size: 200}}
  - statistics: {{}}
"""


@pbtest.not_about_memory
def test_bytes_do_not_depend_on_threads_or_tiles(scratch):
    scene = need_data() / "real/landsat7_L7_ETMs_6band.tif"
    seen = set()
    for i, compute in enumerate(("device: cpu, threads: 1, tile: 64", "device: cpu, threads: 3, tile: 64", "device: cpu, threads: 2, tile: 128",
                                 "device: cpu, threads: 4, tile: 512", "device: cpu")):
        result, = run_json("pushbroom", "run", "--json", "-c", config(scratch, ALL, f"{i}.yaml", compute), "-o", scratch / str(i), scene)
        assert result["status"] == "successful", result
        seen.add(json.dumps(checksums(result)))
    assert len(seen) == 1, "\n".join(seen)


@not_about_threads
def test_products_are_valid_cogs_with_overviews(scratch):
    from osgeo_utils.samples import validate_cloud_optimized_geotiff as validator
    scene = need_data() / "real/landsat7_L7_ETMs_6band.tif"
    result, = run_json("pushbroom", "run", "--json", "-c", config(scratch, ALL), "-o", scratch / "out", scene)
    for product in result["products"]:
        if product["type"] == "cog":
            warnings, errors, _ = validator.validate(product["path"], full_check=True)
            assert not errors and not warnings, (product, warnings, errors)
            ds = gdal.Open(product["path"])
            assert ds.GetRasterBand(1).GetOverviewCount() == 3, ds.GetRasterBand(1).GetOverviewCount()


@not_about_threads
def test_gcps_rpc_rotation_and_south_up_are_carried(scratch):
    data = need_data() / "real"
    one_band = """
input: {match: ["*"]}
products:
  - cog: {type: float32}
"""
    for name in ("odd/gdal_byte_rpc.tif", "odd/gdal_byte_gcp.tif", "odd/gdal_geomatrix.tif", "global/southup_small.tif", "sentinel1/s1-vh_2023_gcps.tiff"):
        scene = data / name
        result, = run_json("pushbroom", "run", "--json", "-c", config(scratch, one_band), "-o", scratch / "out", scene)
        assert result["status"] == "successful", result
        a, b = gdal.Open(str(scene)), gdal.Open(result["products"][0]["path"])
        assert a.GetGeoTransform(can_return_null=True) == b.GetGeoTransform(can_return_null=True), name
        assert a.GetGCPCount() == b.GetGCPCount(), name
        assert a.GetMetadata("RPC") == b.GetMetadata("RPC"), name
        assert [(g.GCPX, g.GCPY, g.GCPPixel, g.GCPLine) for g in a.GetGCPs()] == [(g.GCPX, g.GCPY, g.GCPPixel, g.GCPLine) for g in b.GetGCPs()], name


def test_masks_alpha_and_nodata_make_pixels_invalid(scratch):
    data = need_data()
    one_band = """
input: {match: ["*"]}
products:
  - cog: {type: float32}
"""
    for scene in (data / "derived/l7_mask_internal.tif", data / "derived/l7_nodata255.tif", data / "real/mask_alpha/cog_rgb_mask.tif"):
        result, = run_json("pushbroom", "run", "--json", "-c", config(scratch, one_band), "-o", scratch / "out", scene)
        assert result["status"] == "successful", result
        made, _ = pixels(result["products"][0]["path"])
        source = gdal.Open(str(scene))
        for b in range(source.RasterCount):
            band = source.GetRasterBand(b + 1)
            valid = band.GetMaskBand().ReadAsArray() != 0
            np.testing.assert_array_equal(np.isfinite(made[b]), valid, str(scene))
            np.testing.assert_array_equal(made[b][valid], band.ReadAsArray()[valid].astype(np.float32))


def failed(scratch, pipeline, scene, code=None, **more):
    result, = run_json("pushbroom", "run", "--json", "-c", config(scratch, pipeline, **more), "-o", scratch / "out", scene, code=1)
    assert result["status"] == "failed", result
    assert result["error"]["message"] and result["error"]["hint"], result
    if code:
        assert result["error"]["code"] == code, result
    left = list((scratch / "out").rglob("*")) if (scratch / "out").exists() else []
    assert not left, left
    return result["error"]


@not_about_threads
def test_a_missing_band_is_refused_with_words(scratch):
    scene = need_data() / "real/rgb/landsat7_rgb_tenth.tif"
    error = failed(scratch, NDVI, scene, "pipeline.band")
    assert "3 bands" in error["message"], error


@not_about_threads
def test_an_index_the_bands_cannot_evaluate_is_refused(scratch):
    # Known from the config alone, so it never gets as far as a job.
    path = config(scratch, NDVI.replace("[NDVI]", "[NDMI, TCARIOSAVI]", 1).replace("bands: [NDMI, TCARIOSAVI], ", ""))
    done = run("pushbroom", "run", "-c", path, "-o", scratch / "out", "x.tif", code=2)
    assert "RE1" in done.stderr, done.stderr


@not_about_threads
def test_things_that_are_not_tiffs_are_refused(scratch):
    for name, content, code in (("text.tif", b"hello", "input.not_tiff"), ("empty.tif", b"", None), ("head.tif", b"II*\0", None)):
        (scratch / name).write_bytes(content)
        error = failed(scratch, NDVI, scratch / name, code)
        assert error["code"].startswith("input."), error
    failed(scratch, NDVI, scratch / "nothing.tif", "input.missing")
    failed(scratch, NDVI, scratch, None)


def test_a_truncated_scene_is_called_truncated(scratch):
    whole = (need_data() / "derived/l7_tiled16.tif").read_bytes()
    (scratch / "short.tif").write_bytes(whole[:len(whole) // 2])
    failed(scratch, NDVI, scratch / "short.tif", "input.truncated")


def test_a_tile_that_does_not_decode_is_named(scratch):
    data = bytearray((need_data() / "derived/l7_deflate_p2_tiled.tif").read_bytes())
    middle = len(data) // 2
    data[middle:middle + 400] = b"\xff" * 400
    (scratch / "bad.tif").write_bytes(data)
    error = failed(scratch, NDVI, scratch / "bad.tif", "input.damaged")
    assert "band" in error["message"] or "window" in error["message"] or "tile" in error["message"], error


@not_about_threads
def test_impossible_budget_is_refused_before_reading(scratch):
    scene = scratch / "wide.tif"  # strips as wide as the image: a row of tiles must be held decoded
    made = gdal.GetDriverByName("GTiff").Create(str(scene), 12000, 1100, 4, gdal.GDT_UInt16, ["SPARSE_OK=TRUE", "BLOCKYSIZE=1"])
    made.GetRasterBand(1).WriteArray(np.ones((1, 12000), np.uint16))  # the others are not there
    made = None
    pipeline = NDVI.replace("blocksize: 64", "blocksize: 512").replace(BANDS6, "{R: 3, N: 4}")
    error = failed(scratch, pipeline, scene, "plan.memory", compute="device: cpu, memory: 16MiB")
    assert "MiB" in error["message"], error


@not_about_threads
def test_limits_are_held(scratch):
    scene = need_data() / "real/landsat7_L7_ETMs_6band.tif"
    failed(scratch, NDVI, scene, "input.limit", limits="limits: {max_pixels: 1000}\n")


def test_a_full_disk_says_so(scratch):
    small = scratch / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", small], capture_output=True).returncode:
        raise pbtest.Skip("cannot mount a tmpfs here")
    try:
        scene = need_data() / "real/landsat7_L7_ETMs_6band.tif"
        result, = run_json("pushbroom", "run", "--json", "-c", config(scratch, ALL), "-o", small, scene, code=1)
        assert result["error"]["code"] == "output.full", result
        assert not list(small.iterdir())
    finally:
        subprocess.run(["umount", small])


@not_about_threads
def test_dry_run_touches_nothing(scratch):
    scene = need_data() / "real/landsat7_L7_ETMs_6band.tif"
    done = run("pushbroom", "run", "--dry-run", "-c", config(scratch, NDVI), "-o", scratch / "out", scene)
    assert "349 x 352" in done.stdout and "memory" in done.stdout, done.stdout
    assert not list((scratch / "out").iterdir()) if (scratch / "out").exists() else True


@not_about_threads
def test_running_again_replaces_the_products(scratch):
    scene = need_data() / "real/landsat7_L7_ETMs_6band.tif"
    for _ in range(2):
        run("pushbroom", "run", "--quiet", "-c", config(scratch, NDVI), "-o", scratch / "out", scene)
    assert [p.name for p in (scratch / "out").iterdir()] == ["landsat7_L7_ETMs_6band"]


def kept(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def refused(scratch, scene, output, word, cwd=None):
    result, = run_json("pushbroom", "run", "--json", "-c", config(scratch, NDVI), "-o", output, scene, code=1, cwd=cwd)
    assert result["error"]["code"] == "output.exists" and word in result["error"]["message"], result
    assert not [p.name for p in pathlib.Path(cwd or ".", output).iterdir() if p.name.endswith(".tmp")]


@not_about_threads
def test_the_directory_of_the_input_is_left_alone(scratch):
    """Named like a delivered Landsat scene: LC08_A/LC08_A.tif with its metadata; run from inside with -o .. ."""
    folder = scratch / "LC08_A"
    folder.mkdir()
    shutil.copy(need_data() / "real/landsat7_L7_ETMs_6band.tif", folder / "LC08_A.tif")
    (folder / "LC08_A_MTL.txt").write_text("metadata")
    before = kept(folder)
    refused(scratch, "LC08_A.tif", "..", "not made by pushbroom", cwd=folder)
    refused(scratch, folder / "LC08_A.tif", scratch, "not made by pushbroom")
    assert kept(folder) == before
    result, = run_json("pushbroom", "run", "--json", "--existing", "version", "-c", config(scratch, NDVI), "-o", "..", "LC08_A.tif", cwd=folder)
    assert result["directory"] == str(scratch / "LC08_A~2/p"), result
    assert kept(folder) == before


@not_about_threads
def test_foreign_files_of_the_scene_name_are_kept(scratch):
    scene, out = scratch / "s.tif", scratch / "out"
    shutil.copy(need_data() / "real/landsat7_L7_ETMs_6band.tif", scene)
    out.mkdir()
    elsewhere = scratch / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "keep").write_text("mine")
    for make in (lambda p: p.write_text("a file"), lambda p: p.symlink_to(elsewhere), lambda p: p.symlink_to("nowhere"), lambda p: p.mkdir()):
        make(out / "s")
        refused(scratch, scene, out, "out/s ")
        assert (out / "s").is_symlink() or (out / "s").exists()
        (out / "s").rmdir() if (out / "s").is_dir() and not (out / "s").is_symlink() else (out / "s").unlink()
    assert kept(elsewhere) == {"keep": b"mine"}


@not_about_threads
def test_other_input_is_refused_and_the_same_replaced(scratch):
    out = scratch / "out"
    for name in ("a", "b"):
        (scratch / name).mkdir()
        shutil.copy(need_data() / "real/landsat7_L7_ETMs_6band.tif", scratch / name / "s.tif")
    other = bytearray((scratch / "b/s.tif").read_bytes())
    other[-1] ^= 3
    (scratch / "b/s.tif").write_bytes(other)
    os.utime(scratch / "a/s.tif", (1e9, 1e9))
    first, = run_json("pushbroom", "run", "--json", "-c", config(scratch, NDVI), "-o", out, scratch / "a/s.tif")
    before = kept(out)
    refused(scratch, scratch / "b/s.tif", out, "another input")
    assert kept(out) == before
    shutil.copy(scratch / "a/s.tif", scratch / "s.tiff")  # the same content is the same input, whatever its mtime
    run("pushbroom", "run", "--quiet", "-c", config(scratch, NDVI), "-o", out, scratch / "s.tiff")
    again, = run_json("pushbroom", "run", "--json", "-c", config(scratch, NDVI), "-o", out, scratch / "a/s.tif")
    assert again["directory"] == first["directory"] == str(out / "s/p"), (first, again)
    (out / "s/p/notes.txt").write_text("mine")
    refused(scratch, scratch / "a/s.tif", out, "notes.txt")
    assert (out / "s/p/notes.txt").read_text() == "mine"
    (out / "s/p/notes.txt").unlink(missing_ok=True)
    damaged = bytearray((scratch / "a/s.tif").read_bytes())
    damaged[-1] ^= 1
    (scratch / "a/s.tif").write_bytes(damaged)
    os.utime(scratch / "a/s.tif", (1e9, 1e9))
    before = kept(out)
    refused(scratch, scratch / "a/s.tif", out, "with other content")
    assert kept(out) == before
    replaced, = run_json("pushbroom", "run", "--json", "--existing", "replace", "-c", config(scratch, NDVI), "-o", out, scratch / "b/s.tif")
    assert replaced["directory"] == str(out / "s/p") and [p.name for p in out.iterdir()] == ["s"]


@not_about_threads
def test_pipelines_of_a_scene_lie_side_by_side(scratch):
    path = config(scratch, NDVI)
    path.write_text(path.read_text() + path.read_text().split("pipelines:\n")[1].replace("  p:", "  q:"))
    scene = need_data() / "real/landsat7_L7_ETMs_6band.tif"
    for pipeline in ("p", "q"):
        run("pushbroom", "run", "--quiet", "-c", path, "-p", pipeline, "-o", scratch / "out", scene)
    assert sorted(os.listdir(scratch / "out/landsat7_L7_ETMs_6band")) == [".pushbroom.json", "p", "q"]


pbtest.main()
