#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: sanitized
"""Scenes of many files through `pushbroom run`: a Sentinel-2 folder against numpy from its separate files, the opened files,
and messages for files that are missing, repeated, elsewhere, or links."""
import json
import os
import shutil
import subprocess

import numpy as np
from osgeo import gdal, osr

import pbtest
import sums

gdal.UseExceptions()
FOLDER = "S2A_29RKH_20200219_0_L2A"
NDVI = 'math: {bands: {NDVI: "where(SCL == 5, (N - R) / (N + R), 0/0)"}}'
FILES = {"R": "B04.tif", "N": "B08.tif", "SCL": "{match: SCL.tif, resample: nearest, scale: 1}"}


def config(scratch, files=None, steps=(NDVI,), outputs="NDVI", more="", scene='"S2?_*_L2A/"', scale="0.0001", limits=""):
    path = scratch / "c.yaml"
    path.write_text(f"""{limits}
pipelines:
  s2:
    input:
      scene: {scene}
      scale: {scale}
      files: {{{', '.join(f'{k}: {v}' for k, v in (files or FILES).items())}}}
{more}
    steps:
{''.join(f'      - {s}' + chr(10) for s in steps)}
    products:
      - cog: {{bands: [{outputs}], type: float32}}
      - stac: {{datetime: file-time}}
""")
    return path


def folder_of(scratch, name=FOLDER, files=("B04.tif", "B05.tif", "B08.tif", "SCL.tif")):
    (scratch / name).mkdir()
    for file, path in pbtest.sentinel2_files(*files).items():
        shutil.copyfile(path, scratch / name / file)
    return scratch / name


def small(path, array, x=500000.0, y=4000000.0, pixel=10.0, epsg=32632):
    """A band file of a made-up scene."""
    path.parent.mkdir(parents=True, exist_ok=True)
    kind = {"uint8": gdal.GDT_Byte, "uint16": gdal.GDT_UInt16}[str(array.dtype)]
    out = gdal.GetDriverByName("GTiff").Create(str(path), array.shape[1], array.shape[0], 1, kind, ["COMPRESS=DEFLATE"])
    out.SetGeoTransform((x, pixel, 0, y, 0, -pixel))
    system = osr.SpatialReference()
    system.ImportFromEPSG(epsg)
    out.SetProjection(system.ExportToWkt())
    out.GetRasterBand(1).WriteArray(array)
    return path


def small_folder(scratch, name="S2X_a_L2A"):
    random = np.random.default_rng(1)
    for file, side, pixel in (("B04.tif", 64, 10.0), ("B08.tif", 64, 10.0), ("SCL.tif", 32, 20.0)):
        high, kind = (12, np.uint8) if file == "SCL.tif" else (9999, np.uint16)
        small(scratch / name / file, random.integers(1, high, (side, side)).astype(kind), pixel=pixel)
    return scratch / name


def compute(scratch, folder, path, code=0, *more):
    done = pbtest.run("pushbroom", "run", "--json", "-c", path, "-o", scratch / "out", "--existing", "version", *more, folder, code=None)
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return json.loads(done.stdout.splitlines()[0])


def refused(scratch, folder, path, code, *words):
    error = compute(scratch, folder, path, 1)["error"]
    assert error["code"] == code, error
    for word in words:
        assert word in error["message"], (word, error)
    assert not list((scratch / "out").glob("*")), "nothing is published"


def pixels(report, kind="cog"):
    return gdal.Open([p["path"] for p in report["products"] if p["type"] == kind][0]).ReadAsArray()


def band(path):
    return gdal.Open(str(path)).ReadAsArray()


def numpy_ndvi(folder):
    """Computed like pushbroom: in float32, one operation after the other."""
    def read(name):
        raw = band(folder / name)
        return np.where(raw == 0, np.float32(np.nan), raw.astype(np.float32) * np.float32(0.0001))
    r, n = read("B04.tif"), read("B08.tif")
    scl = band(folder / "SCL.tif").repeat(2, axis=0).repeat(2, axis=1)[:r.shape[0], :r.shape[1]]
    with np.errstate(all="ignore"):
        return np.where(scl == 5, (n - r) / (n + r), np.float32(np.nan)).astype(np.float32)


def test_sentinel_2_folder_equals_numpy_on_its_files(scratch):
    folder = folder_of(scratch)
    got, want = pixels(compute(scratch, f"{folder}/", config(scratch))), numpy_ndvi(folder)
    assert np.isfinite(want).any() and np.isnan(want).any()
    assert got.dtype == np.float32 and np.array_equal(got.view(np.uint32)[np.isfinite(want)], want.view(np.uint32)[np.isfinite(want)])
    assert np.array_equal(np.isnan(got), np.isnan(want))


def test_bands_on_coarser_grids_equal_gdal(scratch):
    folder = folder_of(scratch)
    files = {"R": "B04.tif", "E": "{match: B05.tif, resample: bilinear}"}
    got = pixels(compute(scratch, folder, config(scratch, files, ['math: {bands: {X: "E"}}'], "X", scale="1")))
    big = gdal.Open(str(folder / "B04.tif"))
    low, high = big.GetGeoTransform(), (big.RasterXSize, big.RasterYSize)
    raw = gdal.Translate("", str(folder / "B05.tif"), format="MEM", outputType=gdal.GDT_Float32)
    raw.GetRasterBand(1).SetNoDataValue(-1)
    bounds = (low[0], low[3] + low[5] * high[1], low[0] + low[1] * high[0], low[3])
    want = gdal.Warp("", raw, format="MEM", outputBounds=bounds, width=high[0], height=high[1], resampleAlg="bilinear").ReadAsArray()
    valid = band(folder / "B05.tif").repeat(2, axis=0).repeat(2, axis=1)[:high[1], :high[0]] != 0
    inner = np.zeros_like(valid)
    inner[2:-2, 2:-2] = True
    assert (band(folder / "B05.tif") == 0).any() or np.array_equal(got[inner], want[inner])
    assert np.array_equal(np.isfinite(got), valid)


def test_only_files_that_products_need_are_opened(scratch):
    folder = small_folder(scratch)
    (folder / "B02.tif").write_bytes(b"this is no image")
    files = {**FILES, "B": "B02.tif"}
    compute(scratch, folder, config(scratch, files))
    error = compute(scratch, folder, config(scratch, files, [NDVI.replace("(N - R)", "(N - B)")]), 1)["error"]
    assert error["code"] == "input.not_tiff" and ": B02.tif: " in error["message"], error


def test_source_next_to_config_works_with_a_folder(scratch):
    folder = small_folder(scratch)
    slopes = np.arange(64 * 64, dtype=np.uint16).reshape(64, 64)
    small(scratch / "slopes.tif", slopes)
    path = config(scratch, steps=['math: {bands: {SUM: "R + S"}}'], outputs="SUM", scale="1", more="      sources: {SLOPES: {file: slopes.tif, bands: {S: 1}}}")
    assert np.array_equal(pixels(compute(scratch, folder, path)), band(folder / "B04.tif").astype(np.float32) + slopes)


def test_a_band_whose_grid_is_taken_is_opened(scratch):
    folder = small_folder(scratch)
    steps = ["resample: {like: SCL, method: average, bands: {LOW: R}}"]
    files = {"R": "B04.tif", "SCL": "SCL.tif"}
    assert pixels(compute(scratch, folder, config(scratch, files, steps, "LOW"))).shape == (32, 32)


def test_which_bands_of_which_file(scratch):
    folder = scratch / "S2X_b_L2A/deep/er"
    for name, value in (("x_one.tif", 1), ("x_TWO.TIF", 2)):
        small(folder / name, np.full((20, 30), value, np.uint8))
    stack = gdal.BuildVRT("", [str(folder / "x_one.tif"), str(folder / "x_TWO.TIF")], separate=True)
    gdal.Translate(str(folder / "stack.tif"), stack)
    files = {"A": "{match: stack.tif, band: 2}", "B": "deep/*/x_one.tif", "C": "{match: stack.tif, band: 1}", "D": '"x_two.tif"'}
    steps = ['math: {bands: {X: "1000 * A + 100 * B + 10 * C + D"}}']
    got = pixels(compute(scratch, scratch / "S2X_b_L2A", config(scratch, files, steps, "X", scale="1")))
    assert (got == 2112).all(), got


def test_the_scene_names_files_and_products(scratch):
    folder = scratch / "S2A_MSIL2A.SAFE"
    small(folder / "IMG/S2A_MSIL2A_R.tif", np.full((20, 30), 7, np.uint8))
    path = config(scratch, {"R": '"{scene}_R.tif"'}, ['math: {bands: {X: "R"}}'], "X", scene='"*.SAFE"', scale="1")
    report = compute(scratch, folder, path)
    assert (pixels(report) == 7).all()
    assert report["products"][0]["path"].endswith("/out/S2A_MSIL2A/s2/S2A_MSIL2A.tif"), report


def test_the_manifest_has_the_sum_of_what_was_read(scratch):
    folder = small_folder(scratch)
    report = compute(scratch, folder, config(scratch))
    manifest = json.loads((scratch / "out/S2X_a_L2A/s2/.pushbroom.json").read_text())
    names = sorted(p.name for p in folder.iterdir())
    lines = "".join(f"{sums.digest(folder / n)}  {n}\n" for n in names)
    assert manifest["input"]["blake3"] == sums.digest_of(lines.encode())
    assert manifest["input"]["name"] == "S2X_a_L2A" and manifest["input"]["bytes"] == sum(p.stat().st_size for p in folder.iterdir())
    again = compute(scratch, folder, config(scratch))
    assert again["products"][0]["path"] == report["products"][0]["path"], "the same input replaces its products"
    small(folder / "SCL.tif", np.full((32, 32), 5, np.uint8), pixel=20.0)
    assert "S2X_a_L2A~2" in compute(scratch, folder, config(scratch))["products"][0]["path"], "another one does not"


@pbtest.not_about_memory
def test_the_samples_run_as_they_stand(scratch):
    folder = folder_of(scratch, files=("B04.tif", "B08.tif", "SCL.tif", f"{FOLDER}.json"))
    got = pixels(compute(scratch, folder, pbtest.SOURCE / "samples/sentinel2-l2a.yaml"))
    scl = band(folder / "SCL.tif").repeat(2, axis=0).repeat(2, axis=1)
    want = np.where(np.isin(scl, (2, 4, 5, 6, 7, 11)), 1, np.nan)
    assert np.array_equal(np.isnan(got), np.isnan(want)) and np.isfinite(got).any()


@pbtest.not_about_memory
def test_the_sample_of_one_mgrs_tile_runs_as_it_stands(scratch):
    """Its pixels are those of the tile, where the scene's are five times as large."""
    folder = folder_of(scratch, files=("B04.tif", "B08.tif", "SCL.tif", f"{FOLDER}.json"))
    report = compute(scratch, folder, pbtest.SOURCE / "samples/sentinel2-mgrs.yaml")
    assert [p["path"].rsplit("/", 1)[1] for p in report["products"]][0] == f"{FOLDER}_29RKH.tif", report
    file = gdal.Open(report["products"][0]["path"])
    assert (file.RasterXSize, file.RasterYSize, *file.GetGeoTransform()) == (5490, 5490, 199980, 20, 0, 2800020, 0, -20)
    red, near, scl = (band(folder / f"{name}.tif").astype(np.float64) for name in ("B04", "B08", "SCL"))
    clear = np.isin(scl, (2, 4, 5, 6, 7, 11)).repeat(2, axis=0).repeat(2, axis=1)
    left, _, _, top, _, _ = gdal.Open(str(folder / "B04.tif")).GetGeoTransform()  # a window of the tile, or all of it
    row, column = round((2800020 - top) / 20), round((left - 199980) / 20)
    window = (slice(row, row + 5 * red.shape[0]), slice(column, column + 5 * red.shape[1]))
    tile = file.ReadAsArray()
    got = tile[window][2::5, 2::5] * 0.0001  # the middle of each of the scene's pixels
    valid = got > -3
    assert (valid <= clear).all() and 0.5 * clear.mean() < valid.mean() < clear.mean(), "clouds have grown"
    assert np.abs(got - (near - red) / (near + red))[valid].max() <= 0.5e-4 + 1e-6
    tile[window] = -32768
    assert (tile == -32768).all(), "a pixel beyond the scene is valid"


def test_what_is_missing_is_named(scratch):
    folder = small_folder(scratch)
    (folder / "SCL.tif").unlink()
    refused(scratch, folder, config(scratch), "input.incomplete", "1 of 3 files of the scene is missing: band SCL (SCL.tif)")
    (folder / "B08.tif").unlink()
    refused(scratch, folder, config(scratch, more='      metadata: "{scene}_MTL.txt"'), "input.incomplete",
            "3 of 4 files of the scene are missing: band N (B08.tif), band SCL (SCL.tif), metadata (S2X_a_L2A_MTL.txt)")
    only_r = dict(steps=['math: {bands: {X: "R"}}'], outputs="X")
    refused(scratch, folder, config(scratch, **only_r), "input.incomplete", "band N")
    compute(scratch, folder, config(scratch, more="      complete: {all: false}", **only_r))


def test_two_files_for_one_band(scratch):
    folder = small_folder(scratch)
    shutil.copytree(folder, folder / "copy")
    refused(scratch, folder, config(scratch), "input.ambiguous", "two files fit band R: B04.tif and copy/B04.tif")


def test_files_that_lie_elsewhere(scratch):
    ones = np.ones((32, 32), np.uint8)
    for change, words in ((dict(epsg=32633), "SCL.tif has EPSG:32633, and B04.tif, whose grid is the scene's, EPSG:32632"),
                          (dict(x=900000.0), "SCL.tif does not overlap B04.tif, whose grid is the scene's: they have no pixel in common"),
                          (dict(pixel=-20.0), "axes of SCL.tif are not parallel")):
        folder = small_folder(scratch)
        (folder / "SCL.tif").unlink()
        small(folder / "SCL.tif", ones, **{"pixel": 20.0, **change})
        refused(scratch, folder, config(scratch), "input.grid", words)
        shutil.rmtree(folder)


def test_nothing_outside_the_folder_is_read(scratch):
    folder = small_folder(scratch)
    os.rename(folder / "SCL.tif", scratch / "SCL.tif")
    (folder / "SCL.tif").symlink_to("../SCL.tif")
    refused(scratch, folder, config(scratch), "input.link", "SCL.tif is a symbolic link")
    (folder / "SCL.tif").unlink()
    (scratch / "beside").mkdir()
    os.rename(scratch / "SCL.tif", scratch / "beside/SCL.tif")
    (folder / "sub").symlink_to("../beside")
    refused(scratch, folder, config(scratch), "input.incomplete", "SCL.tif")
    for pattern in ("../SCL.tif", "/etc/passwd", "a/../../x"):
        done = pbtest.run("pushbroom", "check-config", config(scratch, {**FILES, "SCL": f'"{pattern}"'}), code=2)
        assert "files of a scene are named by patterns inside its folder" in done.stderr, done.stderr


def test_a_folder_that_is_too_large(scratch):
    folder = small_folder(scratch)
    deep = folder / "/".join("abcdefghij")
    deep.mkdir(parents=True)
    refused(scratch, folder, config(scratch), "input.limit", "deeper than 8")
    shutil.rmtree(folder / "a")
    (folder / "many").mkdir()
    for i in range(20001):
        (folder / f"many/{i}").touch()
    refused(scratch, folder, config(scratch), "input.limit", "more than 20000 entries")


def test_folders_and_files_use_matching_pipelines(scratch):
    folder = small_folder(scratch)
    refused(scratch, folder / "B04.tif", config(scratch), "input.no_pipeline", "takes this file's name: none takes single files by their names (input.match)")
    os.rename(folder, scratch / "other")
    refused(scratch, scratch / "other", config(scratch), "input.no_pipeline", "no pipeline of", "takes a folder of its name (input.scene): s2 takes S2?_*_L2A/")
    done = pbtest.run("pushbroom", "run", "-c", config(scratch), "-p", "s2", scratch / "other/B04.tif", code=1)
    assert "pipeline s2 takes folders (input.scene)" in done.stderr, done.stderr
    one = scratch / "one.yaml"
    one.write_text("pipelines:\n  p:\n    products: [cog: {}]\n")
    done = pbtest.run("pushbroom", "run", "-c", one, "-p", "p", scratch / "other", code=1)
    assert "this is a folder, and pipeline p takes files" in done.stderr and "[input.no_pipeline]" in done.stderr, done.stderr
    one.write_text("pipelines:\n  p:\n    input: {match: [p*.tif, q?.tif]}\n    products: [cog: {}]\n  r:\n    input: {match: [r.tif]}\n    products: [cog: {}]\n")
    refused(scratch, scratch / "other/B04.tif", one, "input.no_pipeline", "takes this file's name: p takes p*.tif q?.tif; r takes r.tif")


def jp2(source, path, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    creation = [f"{k}={v}" for k, v in {"REVERSIBLE": "YES", "QUALITY": "100", "BLOCKXSIZE": 64, "BLOCKYSIZE": 64, **options}.items()]
    gdal.Translate(str(path), str(source), format="JP2OpenJPEG", creationOptions=creation)
    (path.parent / (path.name + ".aux.xml")).unlink(missing_ok=True)
    return path


def safe_of(scratch, folder, **options):
    """The same scene as a SAFE has it: JPEG 2000, a folder a resolution."""
    safe = scratch / "S2X_MSIL2A_b.SAFE"
    for name, inner in (("B04", "R10m/T_B04_10m"), ("B08", "R10m/T_B08_10m"), ("SCL", "R20m/T_SCL_20m")):
        jp2(folder / f"{name}.tif", safe / f"GRANULE/L2A/IMG_DATA/{inner}.jp2", **options)
    return safe


JP2_FILES = {"R": '"@(B04|*_B04_10m).@(tif|jp2)"', "N": '"@(B08|*_B08_10m).@(tif|jp2)"',
             "SCL": '{match: "@(SCL|*_SCL_20m).@(tif|jp2)", resample: nearest, scale: 1}'}


@pbtest.not_about_memory
def test_jpeg_2000_files_give_what_their_tiffs_give(scratch):
    folder = folder_of(scratch)
    path = config(scratch, JP2_FILES, scene='"S2?_*L2A*"', more="      nodata: 0")
    want = pixels(compute(scratch, folder, path))
    for options in ({}, {"BLOCKXSIZE": 1024, "BLOCKYSIZE": 1024}, {"CODEC": "J2K", "GMLJP2": "NO", "GeoJP2": "NO"}):
        safe = safe_of(scratch, folder, **options)
        if "CODEC" in options:  # a codestream alone has no place
            assert compute(scratch, safe, path, 1)["error"]["code"] == "input.grid"
        else:
            got = pixels(compute(scratch, safe, path))
            assert np.array_equal(got.view(np.uint32), want.view(np.uint32)), options
        shutil.rmtree(safe)


def test_jpeg_2000_files_that_are_cut_or_damaged(scratch):
    folder = small_folder(scratch)
    safe = safe_of(scratch, folder)
    path = config(scratch, JP2_FILES, scene='"S2?_*L2A*"')
    victim = safe / "GRANULE/L2A/IMG_DATA/R10m/T_B08_10m.jp2"
    whole = victim.read_bytes()
    assert compute(scratch, safe, path)["status"] == "successful"
    for cut in (len(whole) - 1, len(whole) // 2, whole.index(b"jp2c") + 30, 40, 13):
        victim.write_bytes(whole[:cut])
        error = compute(scratch, safe, path, 1)["error"]
        assert error["code"] in ("input.truncated", "input.damaged") and "T_B08_10m.jp2" in error["message"], (cut, error)
    size = whole.index(b"\xff\x51")
    for at, value, code in ((size + 6, b"\x7f\xff\xff\xff", "input.limit"), (size + 38, b"\x00\x00", "input.damaged"),
                            (size + 38, b"\x3f\xff", "input.damaged"), (size + 22, b"\x00\x00\x00\x00", "input.damaged")):
        victim.write_bytes(whole[:at] + value + whole[at + len(value):])
        error = compute(scratch, safe, path, 1)["error"]
        assert error["code"] == code, (at - size, error)
    victim.write_bytes(whole)
    tight = config(scratch, JP2_FILES, scene='"S2?_*L2A*"', limits="limits: {max_block_bytes: 4KiB}")
    assert compute(scratch, safe, tight, 1)["error"]["code"] == "input.limit"


@pbtest.not_about_threads
def test_altered_jpeg_2000_files_cause_no_crash(scratch):
    folder = small_folder(scratch)
    victim = jp2(folder / "B08.tif", folder / "B08.jp2")
    path = config(scratch, {"N": "B08.jp2"}, ['math: {bands: {X: "N"}}'], "X", scale="1")
    whole, random, ended = victim.read_bytes(), np.random.default_rng(2), set()
    for _ in range(25):
        altered = bytearray(whole)
        for at in random.integers(0, len(whole), 3):
            altered[at] = int(random.integers(0, 256))
        victim.write_bytes(altered)
        done = pbtest.run("pushbroom", "run", "--json", "-c", path, "-o", scratch / "out", "--existing", "version", folder, code=None)
        report = json.loads(done.stdout.splitlines()[0])
        ended.add(report["error"]["code"] if report.get("error") else "done")
    assert not ended & {"job.crashed", "job.stalled", "system"} and any(e.startswith("input.") for e in ended), ended


def test_a_vrt_is_no_input(scratch):
    folder = small_folder(scratch)
    gdal.BuildVRT(str(folder / "B04.vrt"), str(folder / "B04.tif"))
    refused(scratch, folder, config(scratch, {**FILES, "R": "B04.vrt"}), "input.not_tiff", "B04.vrt")


LANDSAT = "LC08_L2SP_001062_20201031_20201106_02_T2"


def landsat(folder, scene=LANDSAT, seed=3):
    """Loose files of a scene, with made-up pixels and the real metadata of one."""
    random = np.random.default_rng(seed)
    for name in ("SR_B4", "SR_B5", "ST_B10"):
        small(folder / f"{scene}_{name}.TIF", random.integers(7000, 45000, (40, 60)).astype(np.uint16), pixel=30.0, epsg=32619)
    small(folder / f"{scene}_QA_PIXEL.TIF", random.choice([21824, 22280, 1], (40, 60)).astype(np.uint16), pixel=30.0, epsg=32619)
    told = (pbtest.SOURCE / f"tests/data/metadata/{LANDSAT}_MTL.txt").read_text()
    (folder / f"{scene}_MTL.txt").write_text(told.replace(LANDSAT, scene))
    return sorted(folder.glob(f"{scene}_*"))


def test_loose_files_of_one_name_are_one_scene(scratch):
    sample = pbtest.SOURCE / "samples/landsat-c2-l2.yaml"
    files = landsat(scratch / "in")
    landsat(scratch / "in", LANDSAT.replace("001062", "001063"), seed=4)
    out = pbtest.run_json("pushbroom", "run", "--json", "-c", sample, "-o", scratch / "out", *files)
    assert len(out) == 1 and out[0]["products"][0]["path"].endswith(f"/{LANDSAT}/landsat-c2-l2/{LANDSAT}.ndvi.tif"), out
    raw = {n: band(scratch / f"in/{LANDSAT}_{n}.TIF") for n in ("SR_B4", "SR_B5", "ST_B10", "QA_PIXEL")}
    clear = raw["QA_PIXEL"] == 21824
    r, n = (raw[b].astype(np.float32) * np.float32(2.75e-05) + np.float32(-0.2) for b in ("SR_B4", "SR_B5"))
    want = np.where(clear, (n - r) / (n + r), np.nan).astype(np.float32)
    got = pixels(out[0])
    assert np.array_equal(got.view(np.uint32)[clear], want.view(np.uint32)[clear]) and np.array_equal(np.isnan(got), ~clear)
    kelvin = gdal.Open([p["path"] for p in out[0]["products"] if p.get("name") == "temperature"][0]).ReadAsArray()
    want = raw["ST_B10"].astype(np.float32) * np.float32(0.00341802) + np.float32(149.0)
    assert np.array_equal(kelvin[clear], want[clear]) and np.isnan(kelvin[~clear]).all()


def test_spellings_of_one_folder_make_one_scene(scratch):
    """Each input has its own path in the result, if it is a scene by itself."""
    sample = pbtest.SOURCE / "samples/landsat-c2-l2.yaml"
    landsat(scratch / "in")
    (scratch / "link").symlink_to("in")
    names = (f"{LANDSAT}_SR_B4.TIF", f"./{LANDSAT}_SR_B5.TIF", f"../link/{LANDSAT}_ST_B10.TIF")
    done = subprocess.run([pbtest.BIN / "pushbroom", "run", "--json", "-c", sample, "-o", scratch / "out", *names],
                          cwd=scratch / "in", stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    [out] = [json.loads(line) for line in done.stdout.splitlines()]
    assert out["input"] == f"./{LANDSAT}", out
    shutil.copyfile(scratch / f"in/{LANDSAT}_SR_B4.TIF", scratch / "in/x.tif")
    shutil.copyfile(scratch / f"in/{LANDSAT}_SR_B4.TIF", scratch / "in/y.tif")
    (scratch / "one.yaml").write_text("pipelines:\n  one:\n    input: {match: ['?.tif']}\n    products: [statistics: {}]\n")
    out = pbtest.run_json("pushbroom", "run", "--json", "-c", scratch / "one.yaml", "-o", scratch / "out", scratch / "in/x.tif",
                          scratch / "link/y.tif")
    assert [one["input"] for one in out] == [str(scratch / "in/x.tif"), str(scratch / "link/y.tif")], out


# Other files of a USGS scene than those of SCENES.
BESIDE = ["ANG.txt", "MTL.json", "MTL.xml", "SR_stac.json", "QA_RADSAT.TIF", "thumb_large.jpeg", "thumb_small.jpeg"]
OLI = [*BESIDE, *(f"SR_B{n}.TIF" for n in (1, 2, 3, 6, 7)), "SR_QA_AEROSOL.TIF"]
TM = [*BESIDE, *(f"SR_B{n}.TIF" for n in (1, 2, 5, 7)), "SR_ATMOS_OPACITY.TIF", "SR_CLOUD_QA.TIF"]
WITH_ST = ["ST_stac.json", *(f"ST_{n}.TIF" for n in ("ATRAN", "CDIST", "DRAD", "EMIS", "EMSD", "QA", "TRAD", "URAD"))]
# scene: its metadata, bands that the sample reads, other files, the pipeline
DELIVERED = {
    LANDSAT: (f"{LANDSAT}_MTL.txt", ("SR_B4", "SR_B5", "ST_B10"), OLI + WITH_ST, "landsat-c2-l2"),
    "LO08_L2SR_001062_20201031_20201106_02_T2": (f"{LANDSAT}_MTL.txt", ("SR_B4", "SR_B5"), OLI, "landsat-c2-l2sr"),
    "LE07_L2SP_021030_20100109_20200911_02_T1": ("LE07_L2SP_021030_20100109_20200911_02_T1_MTL.xml", ("SR_B3", "SR_B4", "ST_B6"), TM + WITH_ST, "landsat457-c2-l2"),
    "LT05_L2SP_058014_20110312_20200823_02_T1": ("LT05_L2SP_058014_20110312_20200823_02_T1_MTL.xml", ("SR_B3", "SR_B4", "ST_B6"), TM + WITH_ST, "landsat457-c2-l2"),
    "LT05_L2SR_058014_20110312_20200823_02_T1": ("LT05_L2SP_058014_20110312_20200823_02_T1_MTL.xml", ("SR_B3", "SR_B4"), TM, "landsat457-c2-l2sr"),
}


def delivered(folder, scene):
    """All files of a delivery by their names; those that the sample does not read are no rasters."""
    metadata, bands, others, _ = DELIVERED[scene]
    random = np.random.default_rng(5)
    for name in bands:
        small(folder / f"{scene}_{name}.TIF", random.integers(8000, 30000, (20, 30)).astype(np.uint16), pixel=30.0, epsg=32619)
    small(folder / f"{scene}_QA_PIXEL.TIF", np.full((20, 30), 21824 if scene.startswith("L") and "08_" in scene else 5440, np.uint16), pixel=30.0, epsg=32619)
    told = (pbtest.SOURCE / "tests/data/metadata" / metadata).read_text()  # any notation is read under any name
    (folder / f"{scene}_MTL.txt").write_text(told.replace(metadata[:40], scene))
    for name in others:
        (folder / f"{scene}_{name}").write_bytes(b"no image, no text")
    return sorted(folder.glob(f"{scene}_*"))


def test_landsat_deliveries_are_one_scene_each(scratch):
    sample = pbtest.SOURCE / "samples/landsat-c2-l2.yaml"
    files = [f for scene in DELIVERED for f in delivered(scratch / "in", scene)]
    assert len(files) == 4 + 1 + len(OLI + WITH_ST) + 3 + 1 + len(OLI) + 2 * (4 + 1 + len(TM + WITH_ST)) + 3 + 1 + len(TM)
    done = pbtest.run_json("pushbroom", "run", "--json", "-c", sample, "-o", scratch / "out", *files)
    assert {pbtest.pathlib.Path(one["input"]).name[:40]: one["pipeline"] for one in done} == {s: d[3] for s, d in DELIVERED.items()}, done
    for one in done:
        bands = DELIVERED[pbtest.pathlib.Path(one["input"]).name[:40]][1]
        assert sorted(p["name"] for p in one["products"] if p["type"] == "cog") == (["ndvi", "temperature"] if len(bands) == 3 else ["ndvi"])
        assert np.isfinite(pixels(one)).mean() > 0.9


def test_any_file_selects_its_group_and_no_other(scratch):
    sample = pbtest.SOURCE / "samples/landsat-c2-l2.yaml"
    other = LANDSAT.replace("001062", "001063")
    first, second = landsat(scratch)[:2], landsat(scratch, other, seed=4)[-1:]
    out = pbtest.run_json("pushbroom", "run", "--json", "-c", sample, "-o", scratch / "out", *first, *second)
    assert sorted(p.parent.parent.name for p in (pbtest.pathlib.Path(o["products"][0]["path"]) for o in out)) == [LANDSAT, other]
    (scratch / f"{other}_SR_B5.TIF").unlink()
    done = pbtest.run("pushbroom", "run", "--json", "-c", sample, "-o", scratch / "out2", *second, code=1)
    error = json.loads(done.stdout)["error"]
    assert error["code"] == "input.incomplete" and error["message"] == f"{scratch}/{other}: 1 of 5 files of the scene is missing: band N ({other}_SR_B5.TIF)", error
    said = pbtest.run("pushbroom", "run", "--dry-run", "-c", sample, *first).stdout
    assert said.count("scene      ") == 1 and f"band R     {LANDSAT}_SR_B4.TIF, 60 x 40 px" in said, said


def test_groups_that_are_none(scratch):
    for pattern, words in (("(?<scene>x)(", "at character"), ("(?<tile>x)_B4", "no group (?<scene>...)"), ("x", "no group")):
        path = scratch / "g.yaml"
        path.write_text(f"pipelines:\n  p:\n    input: {{group: '{pattern}', files: {{R: a.tif}}}}\n    products: [cog: {{}}]\n")
        assert words in pbtest.run("pushbroom", "check-config", path, code=2).stderr, pattern
    both = config(scratch, more="      group: '(?<scene>x)_B4'")
    assert "make two pipelines" in pbtest.run("pushbroom", "check-config", both, code=2).stderr


def of_dates(scratch, by, order, count=2, group=r"'(?<tile>[a-z]+)_(?<date>\d{8})_x\.tif'", name="c"):
    path = scratch / f"{name}.yaml"
    files = "".join(f", {chr(65 + k)}: {{match: '*.tif', nth: {k + 1}, optional: true}}" for k in range(1, count))
    path.write_text(f"pipelines:\n  dates:\n    input: {{group: {group}, by: {by}, order: {order}, files: {{A: {{match: '*.tif', nth: 1}}{files}}}}}\n"
                    "    products: [cog: {type: float32}]\n")
    return path


def test_files_of_a_date_or_a_tile_are_one_scene(scratch):
    """They are counted by their names or dates; files beyond the pipeline's number are reported."""
    pixels = {"b_20260110_x": 1, "a_20260110_x": 2, "a_20251231_x": 3, "a_20260105_x": 4}
    for name, value in pixels.items():
        small(scratch / f"{name}.tif", np.full((20, 30), value, np.uint16))
    (scratch / "a_20261399_x.tif").write_bytes((scratch / "a_20260110_x.tif").read_bytes())  # no date
    def of(by, order, file, scene, first, not_used=()):
        told, = pbtest.run_json("pushbroom", "run", "--dry-run", "--json", "-c", of_dates(scratch, by, order), scratch / f"{file}.tif")
        plan = told["plan"]
        assert plan["scene"] == scene and [pixels[f["name"][:-4]] for f in plan["files"]] == list(first), plan
        assert plan["not_used"] == [f"{name}.tif" for name in not_used], plan["not_used"]
    of("date", "name", "b_20260110_x", "20260110", (2, 1))
    of("date", "name-descending", "b_20260110_x", "20260110", (1, 2))
    of("'{date:%Y}'", "date", "a_20260105_x", "2026", (4, 2), ["b_20260110_x"])
    of("'{date:%Y}'", "date-descending", "a_20260105_x", "2026", (1, 2), ["a_20260105_x"])
    of("'{tile}{date:%m}'", "date", "a_20251231_x", "a12", (3,))
    done, = pbtest.run_json("pushbroom", "run", "--json", "-c", of_dates(scratch, "date", "name"), "-o", scratch / "out", scratch / "a_20260105_x.tif")
    made = gdal.Open(done["products"][0]["path"]).ReadAsArray()
    assert (made[0] == 4).all() and np.isnan(made[1]).all(), "a file that did not come is valid nowhere"


def test_missing_band_is_reported_and_shifts_no_other(scratch):
    """N of the first day is missing: R and N of different days were number 1."""
    path = of_dates(scratch, "date", "date", 1, group=r"'(?<tile>[a-z]+)_(?<date>\d{8})_[RN]\.tif'")
    path.write_text(path.read_text().replace("by: date", "by: '{tile}'").replace("{A: {match: '*.tif', nth: 1}}", ", ".join(
        f"{b}_{k}: {{match: '*_{b}.tif', nth: {k}, optional: {str((b, k) != ('R', 1)).lower()}}}"
        for b in "RN" for k in (1, 2)).join("{}")))
    for name in ("a_20260105_R", "a_20260107_R", "a_20260107_N"):
        small(scratch / f"{name}.tif", np.full((20, 30), 1, np.uint16))
    done, = pbtest.run_json("pushbroom", "run", "--json", "-c", path, "-o", scratch / "out", scratch / "a_20260105_R.tif", code=1)
    assert done["error"]["code"] == "input.incomplete" and "2 files fit *_R.tif and 1 fit *_N.tif" in done["error"]["message"], done
    small(scratch / "a_20260105_N.tif", np.full((20, 30), 1, np.uint16))
    pbtest.run_json("pushbroom", "run", "--json", "-c", path, "-o", scratch / "out", scratch / "a_20260105_R.tif")


def test_names_of_products_that_are_known(scratch):
    for group, name, by, scene in (("sentinel2", "T31UFS_20260604T105031_B04_10m.jp2", "date", "20260604"),
                                   ("sentinel2", "T31UFS_20260604T105031_SCL_20m.jp2", "'{scene}'", "T31UFS_20260604T105031"),
                                   ("landsat", "LC08_L2SP_016037_20200829_20200906_02_T1_SR_B4.TIF", "'{tile}-{date:%j}'", "016037-242")):
        small(scratch / name, np.full((20, 30), 1, np.uint16))
        path = of_dates(scratch, by, "date", 1, group)
        path.write_text(path.read_text().replace("'*.tif'", f"'*{name[-12:]}'"))
        told, = pbtest.run_json("pushbroom", "run", "--dry-run", "--json", "-c", path, scratch / name)
        assert told["plan"]["scene"] == scene, told


def test_mistakes_of_groups(scratch):
    def wrong(words, **of):
        told = pbtest.run("pushbroom", "check-config", of_dates(scratch, **{"by": "date", "order": "name", **of}), code=2).stderr
        assert words in told and "c.yaml:3:" in told, told
    wrong("it has no group (?<date>...), which input.by '{date:%Y%m%d}' is made of", group="'(?<scene>a).tif'")
    wrong("it has no group (?<scene>...), which distinguishes scenes; or write input.by", group="'a.tif'", by="null")
    wrong("a format is for {date:%Y%m} and {meta.date:%Y%m}, not for {tile}", by="'{tile:%Y}'")
    wrong("a brace in '{tile' contains no name of a group", by="'{tile'")
    wrong("'x' names no group in braces", by="x")
    wrong("'place' lacks its braces: write \"{place}\"", group=r"'(?<place>.+)_B\d\.tif'", by="place")
    wrong("input.order: dates are those of (?<date>...) in input.group", by="'{scene}'", group="'(?<scene>a).tif'", order="date")


def test_the_effective_configuration_is_one(scratch):
    shown = pbtest.run("pushbroom", "check-config", config(scratch, more="      grid: R\n      complete: {all: false, expire: 2h}")).stdout
    again = scratch / "again.yaml"
    again.write_text(shown)
    assert pbtest.run("pushbroom", "check-config", again).stdout == shown and "complete: {all: false, expire: 2h, reopen: 0s}" in shown, shown


def test_mistakes_of_the_configuration(scratch):
    for files, more, words in (
            (None, "      grid: Q", "input.grid: 'Q' is no band of input.files"),
            (None, "      bands: {R: 1}", "input.files names the bands already"),
            (None, '      match: ["*.tif"]', "input.match is for scenes of one file"),
            ({"R": "{band: 2}"}, "", "'file' needs 'match'"),
            ({"R": "{match: a.tif, resample: cubical}"}, "", "cubic"),
            ({"R": "{match: a.tif, scale: 0}"}, "", "scale: 0 would make every pixel the same"),
            ({"R": "[a.tif]"}, "", "must be a pattern, or a map with match"),
            ({f"B{i}": f"B{i}.tif" for i in range(17)}, "", "a pipeline reads at most 16 files")):
        done = pbtest.run("pushbroom", "check-config", config(scratch, files, ['math: {bands: {NDVI: "1"}}'], more=more), code=2)
        assert words in done.stderr, (words, done.stderr)
    alone = scratch / "alone.yaml"
    alone.write_text('pipelines:\n  p:\n    input: {scene: "a/"}\n    products: [cog: {}]\n')
    assert "input.scene is about scenes of many files" in pbtest.run("pushbroom", "check-config", alone, code=2).stderr


if __name__ == "__main__":
    pbtest.main()
