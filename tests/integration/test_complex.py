#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: sanitized
"""Complex pixels (single-look SAR) as amplitude or power, in whole runs, bit by bit against numpy."""
import json
import shutil

import numpy as np
from osgeo import gdal

import pbtest
from pbtest import run, run_json

gdal.UseExceptions()

KINDS = {gdal.GDT_CInt16: "CInt16", gdal.GDT_CInt32: "CInt32", gdal.GDT_CFloat32: "CFloat32", gdal.GDT_CFloat64: "CFloat64"}
# Layouts of our own decoders, and those left to GDAL: differences of whole samples (PREDICTOR=2).
LAYOUTS = {
    "tiled": ["TILED=YES", "BLOCKXSIZE=64", "BLOCKYSIZE=32", "COMPRESS=DEFLATE"],
    "strips": ["BLOCKYSIZE=1"],
    "long strips": ["BLOCKYSIZE=50", "COMPRESS=LZW"],
    "planes": ["INTERLEAVE=BAND", "TILED=YES", "BLOCKXSIZE=32", "BLOCKYSIZE=32"],
    "big endian": ["ENDIANNESS=BIG", "COMPRESS=DEFLATE"],
    "differences": ["COMPRESS=DEFLATE", "PREDICTOR=2", "TILED=YES", "BLOCKXSIZE=64", "BLOCKYSIZE=64"],
}
W, H = 150, 110


def samples(kind, seed=0):
    """Two bands; many real parts of 0, which alone are no holes, and holes of 0 + 0i."""
    numbers = np.random.default_rng(seed)
    if kind in (gdal.GDT_CInt16, gdal.GDT_CInt32):
        most = 32767 if kind == gdal.GDT_CInt16 else 2147483647
        parts = numbers.integers(-most - 1, most + 1, (2, H, W, 2)).astype(np.float64)
    else:
        parts = numbers.normal(0, 1e3, (2, H, W, 2)).astype(np.float32 if kind == gdal.GDT_CFloat32 else np.float64).astype(np.float64)
    parts[numbers.random((2, H, W)) < 0.1, 0] = 0
    parts[numbers.random((2, H, W)) < 0.1] = 0
    return parts


def write(path, kind, parts, options=(), nodata=None):
    out = gdal.GetDriverByName("GTiff").Create(str(path), parts.shape[2], parts.shape[1], parts.shape[0], kind, list(options))
    if nodata is not None:
        out.GetRasterBand(1).SetNoDataValue(nodata)
    for i, band in enumerate(parts):
        out.GetRasterBand(i + 1).WriteArray((band[..., 0] + 1j * band[..., 1]).astype(np.complex128))
    out = None
    return path


def expected(parts, how, nodata=None):
    power = parts[..., 0] * parts[..., 0] + parts[..., 1] * parts[..., 1]
    out = (power if how == "power" else np.sqrt(power)).astype(np.float32)
    if nodata is not None:
        out[(parts[..., 0] == nodata) & (parts[..., 1] == 0)] = np.nan
    return out


def config(scratch, keys):
    path = scratch / "c.yaml"
    path.write_text("compute: {device: cpu}\npipelines:\n  p:\n    input: {match: ['*'], bands: {A: 1, B: 2}" + keys +
                    "}\n    products:\n      - cog: {bands: [A, B]}\n      - stac: {datetime: file-time}\n")
    return path


def computed(scratch, path, keys, code=None):
    result, = run_json("pushbroom", "run", "--json", "-c", config(scratch, keys), "-o", scratch / "out", path, code=code)
    if result.get("error"):
        return result["error"]
    pixels = gdal.Open(next(p["path"] for p in result["products"] if p["type"] == "cog")).ReadAsArray()
    shutil.rmtree(scratch / "out")
    return pixels


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and ((a == b) | (np.isnan(a) & np.isnan(b))).all()


def test_amplitude_and_power_equal_numpy_in_any_layout(scratch):
    for kind, name in KINDS.items():
        parts = samples(kind)
        for layout, options in LAYOUTS.items():
            if layout == "differences" and kind == gdal.GDT_CFloat64:
                continue  # GDAL writes none
            how = "power" if layout in ("strips", "planes") else "amplitude"
            nodata = 0 if layout in ("tiled", "planes", "differences") else None
            path = write(scratch / f"{name}.tif", kind, parts, options, nodata)
            found = computed(scratch, path, f", complex: {how}")
            assert same(found, expected(parts, how, nodata)), (name, layout, how)
            assert np.isnan(found).any() == (nodata is not None), (name, layout)


def test_nodata_is_a_sample_without_an_imaginary_part(scratch):
    for kind, name in KINDS.items():
        parts = samples(kind, 1)
        parts[:, 3:9, 4:70] = (-123, 0)   # nodata
        parts[:, 20:30, 4:70] = (-123, 7)  # not nodata
        parts[:, 40:50, 4:70] = (0, 123)   # the same amplitude
        for options, tag, keys, meant in ((["TILED=YES"], -123, "", -123), ([], None, ", nodata: -123", -123),
                                          ([], -123, ", nodata: 0", 0), ([], -123, ", valid: mask", None)):
            path = write(scratch / f"{name}.tif", kind, parts, options, tag)
            found = computed(scratch, path, ", complex: amplitude" + keys)
            assert same(found, expected(parts, "amplitude", meant)), (name, options, keys)


def test_absent_blocks_have_the_value_of_the_tag(scratch):
    for tag, value in ((None, 0), (-7, np.nan)):
        path = scratch / "sparse.tif"
        out = gdal.GetDriverByName("GTiff").Create(str(path), W, H, 2, gdal.GDT_CInt16, ["SPARSE_OK=TRUE", "TILED=YES", "BLOCKXSIZE=64", "BLOCKYSIZE=64"])
        if tag is not None:
            out.GetRasterBand(1).SetNoDataValue(tag)
        out.GetRasterBand(1).WriteArray(np.full((10, 10), 3 + 4j))
        out = None
        found = computed(scratch, path, ", complex: amplitude")
        pixels = gdal.Open(str(path)).ReadAsArray()
        wanted = expected(np.stack([pixels.real, pixels.imag], -1).astype(np.float64), "amplitude", tag)
        assert wanted[0, 0, 0] == 5 and np.array_equal(wanted[:, -1, -1], [value, value], equal_nan=True)
        assert same(found, wanted), (tag, found[0, :12, :12], found[1])


def test_complex_pixels_without_conversion_are_refused(scratch):
    path = write(scratch / "slc.tif", gdal.GDT_CInt16, samples(gdal.GDT_CInt16))
    error = computed(scratch, path, "", code=1)
    assert error["code"] == "input.complex" and "CInt16" in error["message"] and "input.complex" in error["message"], error
    advised = error["hint"].split(" (")[0].removeprefix("write input.")
    assert same(computed(scratch, path, f", {advised}"), expected(samples(gdal.GDT_CInt16), "amplitude")), advised
    said = run("pushbroom", "run", "--dry-run", "-c", config(scratch, ", complex: power"), "-o", scratch / "out", path).stdout
    assert "pixels     CInt16, read as power, re^2 + im^2" in said and "CInt16 as power" in said, said
    result, = run_json("pushbroom", "run", "--json", "-c", config(scratch, ", complex: power"), "-o", scratch / "item", path)
    item = json.loads(open(next(p["path"] for p in result["products"] if p["type"] == "stac")).read())
    assert item["properties"]["pushbroom:complex"] == "CInt16 as power", item["properties"]
    # Real pixels stay what they are.
    out = gdal.GetDriverByName("GTiff").Create(str(scratch / "real.tif"), 70, 60, 2, gdal.GDT_Int16)
    pixels = np.random.default_rng(2).integers(-9, 9, (2, 60, 70)).astype(np.int16)
    out.WriteArray(pixels)
    out = None
    assert same(computed(scratch, scratch / "real.tif", ", complex: power"), pixels.astype(np.float32))


def test_each_file_of_a_scene_has_a_choice_of_its_own(scratch):
    scene = scratch / "S1_SLC"
    scene.mkdir()
    parts = {pol: samples(gdal.GDT_CInt16, seed)[:1] for seed, pol in enumerate(("vv", "vh"))}
    for pol, pixels in parts.items():
        write(scene / f"s1-{pol}.tif", gdal.GDT_CInt16, pixels)
    path = scratch / "c.yaml"
    text = ("compute: {device: cpu}\npipelines:\n  p:\n    input:\n      scene: 'S1_*'\n"
            "      files: {VV: '*-vv.tif', VH: {match: '*-vh.tif'%s}}\n%s    products:\n      - cog: {bands: [VV, VH]}\n")
    for of_file, of_input, vv, vh in ((", complex: power", "      complex: amplitude\n", "amplitude", "power"),
                                      ("", "      complex: power\n", "power", "power")):
        path.write_text(text % (of_file, of_input))
        result, = run_json("pushbroom", "run", "--json", "-c", path, "-o", scratch / "out", scene)
        found = gdal.Open(next(p["path"] for p in result["products"] if p["type"] == "cog")).ReadAsArray()
        assert same(found, np.stack([expected(parts["vv"][0], vv), expected(parts["vh"][0], vh)])), (vv, vh)
        shutil.rmtree(scratch / "out")
    path.write_text(text % (", complex: power", ""))
    result, = run_json("pushbroom", "run", "--json", "-c", path, "-o", scratch / "out", scene, code=1)
    assert result["error"]["code"] == "input.complex" and "s1-vv.tif" in result["error"]["message"], result


pbtest.main()
