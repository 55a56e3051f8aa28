#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: sanitized
"""Inputs that promise more than they hold, and what becomes of their place on the Earth, in whole runs."""
import shutil
import struct

import numpy as np
from osgeo import gdal, osr

import pbtest
from pbtest import run, run_json

gdal.UseExceptions()


def config(scratch, products="- cog: {bands: [B1]}", source="", limits="", steps=""):
    path = scratch / "c.yaml"
    path.write_text("compute: {device: cpu}\n" + limits + "pipelines:\n  p:\n    input: {match: ['*']" + source + "}\n" +
                    (f"    steps:\n      {steps}\n" if steps else "") + "    products:\n" +
                    "".join(f"      {line}\n" for line in products.splitlines()))
    return path


def outcome(scratch, path, **more):
    """The result of one run."""
    code = more.pop("code", None)
    env = more.pop("env", None)
    result, = run_json("pushbroom", "run", "--json", "-c", config(scratch, **more), "-o", scratch / "out", path, code=code, env=env)
    return result


def made(result, kind="cog"):
    return next(p["path"] for p in result["products"] if p["type"] == kind)


def partly_valid(path, kind):
    """Bands of random numbers with 0 as nodata, a mask in the file or an alpha band, each of holes of its own: the file, and
    which pixels of the first band are valid by what is in it."""
    numbers = np.random.default_rng(4)
    pixels = numbers.integers(0, 6, (90, 110)).astype(np.uint16)
    holes = numbers.random(pixels.shape) < 0.3
    options = ["ALPHA=YES"] if "alpha" in kind else []
    gdal.SetConfigOption("GDAL_TIFF_INTERNAL_MASK", "YES")
    out = gdal.GetDriverByName("GTiff").Create(str(path), 110, 90, 2, gdal.GDT_UInt16, ["COMPRESS=DEFLATE", *options])
    if "mask" in kind:
        out.CreateMaskBand(gdal.GMF_PER_DATASET)
        out.GetRasterBand(1).GetMaskBand().WriteArray(np.where(holes, 0, 255).astype(np.uint8))
    out.GetRasterBand(1).WriteArray(pixels)
    out.GetRasterBand(2).WriteArray(np.where(holes, 0, 65535).astype(np.uint16))
    if "nodata" in kind:
        for i in (1, 2):
            out.GetRasterBand(i).SetNoDataValue(0)
    out = None
    gdal.SetConfigOption("GDAL_TIFF_INTERNAL_MASK", None)
    return {"mask": ~holes, "nodata": pixels != 0}


def test_valid_pixels_are_those_of_gdal(scratch):
    for kind in ("mask", "nodata", "alpha", "mask nodata", "alpha nodata", "none"):
        path = scratch / f"{kind.replace(' ', '_')}.tif"
        says = partly_valid(path, kind)
        everywhere = np.ones((90, 110), bool)
        by_mask = says["mask"] if "mask" in kind or "alpha" in kind else everywhere
        by_nodata = says["nodata"] if "nodata" in kind else everywhere
        file = gdal.Open(str(path))
        gdals = file.GetRasterBand(1).GetMaskBand().ReadAsArray() != 0
        for valid, expected in (("", gdals), ("auto", gdals), ("mask", by_mask), ("nodata", by_nodata), ("both", by_mask & by_nodata)):
            result = outcome(scratch, path, source=f", valid: {valid}" if valid else "", products="- cog: {bands: [B1]}\n- stac: {datetime: file-time}")
            found = np.isfinite(gdal.Open(made(result)).ReadAsArray())
            assert (found == expected).all(), (kind, valid, found.sum(), expected.sum())
            shutil.rmtree(scratch / "out")
    # A value that the configuration names counts in addition to the file's mask; with valid: mask it would be useless.
    path = scratch / "mask_nodata.tif"
    says = partly_valid(path, "mask nodata")
    result = outcome(scratch, path, source=", nodata: 0")
    assert (np.isfinite(gdal.Open(made(result)).ReadAsArray()) == (says["mask"] & says["nodata"])).all()
    said = run("pushbroom", "run", "--dry-run", "-c", config(scratch), "-o", scratch / "out", path).stdout
    assert "by the file's mask; its nodata values not looked at (input.valid)" in said, said
    done = run("pushbroom", "check-config", config(scratch, source=", valid: mask, nodata: 0"), code=2)
    assert "input.nodata means nothing with valid: mask" in done.stderr, done.stderr


def error_of(result):
    assert result["status"] == "failed", result
    return result["error"]["code"]


def entry_at(data, tag):
    """Where the entry of a tag begins in a classic little-endian TIFF's first directory."""
    at, = struct.unpack_from("<I", data, 4)
    for i in range(struct.unpack_from("<H", data, at)[0]):
        if struct.unpack_from("<H", data, at + 2 + 12 * i)[0] == tag:
            return at + 2 + 12 * i
    raise AssertionError(f"no tag {tag}")


def scene(path, array, nodata=None, options=(), geo=(500000, 10, 0, 4600000, 0, -10), epsg=32632, point=False):
    array = np.atleast_3d(array) if array.ndim == 2 else array
    bands = array if array.ndim == 3 and array.shape[2] != 1 else array.transpose(2, 0, 1)
    kind = {"uint8": gdal.GDT_Byte, "uint16": gdal.GDT_UInt16, "int16": gdal.GDT_Int16, "float32": gdal.GDT_Float32}[str(array.dtype)]
    ds = gdal.GetDriverByName("GTiff").Create(str(path), bands.shape[2], bands.shape[1], bands.shape[0], kind, list(options))
    if point:
        ds.SetMetadataItem("AREA_OR_POINT", "Point")
    if geo:
        ds.SetGeoTransform(geo)
    if epsg:
        srs = osr.SpatialReference()
        srs.ImportFromEPSG(epsg)
        ds.SetSpatialRef(srs)
    for i, band in enumerate(bands):
        if nodata is not None:
            ds.GetRasterBand(i + 1).SetNoDataValue(nodata)
        ds.GetRasterBand(i + 1).WriteArray(band)
    ds = None
    return path


def test_a_file_of_absent_tiles_is_refused(scratch):
    path = scratch / "sparse.tif"
    gdal.GetDriverByName("GTiff").Create(str(path), 512, 512, 1, gdal.GDT_Byte, ["TILED=YES", "SPARSE_OK=YES", "COMPRESS=DEFLATE"])
    assert error_of(outcome(scratch, path)) == "input.empty"
    assert not list((scratch / "out").glob("*")), "something was published"


@pbtest.not_about_memory
def test_lost_georeferencing_fails_the_job(scratch):
    ground = np.arange(64 * 64, dtype=np.uint16).reshape(64, 64)
    good = scene(scratch / "good.tif", ground, nodata=7).read_bytes()
    for tag in (33550, 33922, 34735, 34737, 42113):
        data = bytearray(good)
        at = entry_at(data, tag)
        if tag == 42113:  # its text is in the entry
            struct.pack_into("<I", data, at + 4, 9)
        struct.pack_into("<I", data, at + 8, len(data) - 1)
        path = scratch / f"cut{tag}.tif"
        path.write_bytes(data)
        assert error_of(outcome(scratch, path)) == "input.georeference", tag
    assert outcome(scratch, scratch / "good.tif")["status"] == "successful"


def test_nodata_tag_without_a_number_needs_the_config(scratch):
    data = bytearray(scene(scratch / "x.tif", np.arange(64 * 64, dtype=np.uint16).reshape(64, 64), nodata=123).read_bytes())
    at = entry_at(data, 42113)
    data[at + 8:at + 12] = b"12x\0"
    (scratch / "x.tif").write_bytes(data)
    result = outcome(scratch, scratch / "x.tif")
    assert error_of(result) == "input.georeference" and "input.nodata" in result["error"]["message"], result
    assert outcome(scratch, scratch / "x.tif", source=", nodata: 12")["status"] == "successful"


def test_without_proj_db_nothing_starts(scratch):
    path = scene(scratch / "x.tif", np.ones((64, 64), np.uint8))
    env = {"PROJ_DATA": str(scratch), "PROJ_LIB": str(scratch)}
    result = outcome(scratch, path, env=env)
    assert error_of(result) == "system" and "proj-data" in result["error"]["message"], result
    service = scratch / "s.yaml"
    service.write_text("service:\n" + "".join(f"  {d}: {scratch}/{d}\n" for d in ("inbox", "work", "products", "quarantine", "state")) +
                       f"  socket: {scratch}/s.sock\n" + (scratch / "c.yaml").read_text())
    for more in (["--check"], []):
        done = run("pushbroomd", "--config", service, *more, code=1, env=env)
        assert "proj-data" in done.stderr + done.stdout, done
    run("pushbroomd", "--config", service, "--check", code=0)


def gcp_scene(path, point, north_up):
    """64 x 64 pixels on 9 GCPs, the first 16 rows bright."""
    srs = osr.SpatialReference()
    srs.ImportFromEPSG(4326)
    ds = gdal.GetDriverByName("GTiff").Create(str(path), 64, 64, 1, gdal.GDT_Byte)
    if point:
        ds.SetMetadataItem("AREA_OR_POINT", "Point")
    step = -0.01 if north_up else 0.01
    ds.SetGCPs([gdal.GCP(10 + x * 0.01, 50 + y * step, 0, x * 30.0, y * 30.0) for x in range(3) for y in range(3)], srs)
    ground = np.full((64, 64), 20, np.uint8)
    ground[:16] = 200
    ds.GetRasterBand(1).WriteArray(ground)
    ds = None
    return path


def gcps(path):
    return [(g.GCPPixel, g.GCPLine, g.GCPX, g.GCPY) for g in gdal.Open(str(path)).GetGCPs()]


def test_gcps_stay_where_they_are(scratch):
    for point in (False, True):
        path = gcp_scene(scratch / f"point{int(point)}.tif", point, True)
        once = made(outcome(scratch, path))
        assert gcps(once) == gcps(path), (point, gcps(once)[:2], gcps(path)[:2])
        shutil.copy(once, scratch / f"again{int(point)}.tif")
        assert gcps(made(outcome(scratch, scratch / f"again{int(point)}.tif"))) == gcps(path), point


def test_north_is_up_without_a_transform(scratch):
    for north_up in (True, False):  # a radar scene of an ascending orbit has its south in the first row
        path = gcp_scene(scratch / f"up{int(north_up)}.tif", False, north_up)
        result = outcome(scratch, path, products="- quicklook: {bands: [B1], stretch: [0, 100]}")
        picture = gdal.Open(made(result, "quicklook")).ReadAsArray()
        assert (picture[0, 2, 30] > picture[0, -2, 30]) == north_up, picture[0, :, 30]


def levels(path):
    ds = gdal.Open(str(path))  # a band does not keep its file open
    band = ds.GetRasterBand(1)
    return [band.GetOverview(i).ReadAsArray() for i in range(band.GetOverviewCount())]


@pbtest.not_about_memory
def test_overviews_invent_no_class(scratch):
    """Integers and palettes have overviews of the nearest pixel, floats averages; the key decides otherwise."""
    classes = np.random.default_rng(1).choice(np.array([1, 5, 9], np.uint8), (1200, 1200))
    plain = scene(scratch / "plain.tif", classes)
    palette = scratch / "palette.tif"
    gdal.Translate(str(palette), str(plain))
    ds = gdal.Open(str(palette), gdal.GA_Update)
    table = gdal.ColorTable()
    for i in (1, 5, 9):
        table.SetColorEntry(i, (i, i, i, 255))
    ds.GetRasterBand(1).SetColorTable(table)
    ds = None
    integer, real = "type: uint8, nodata: 255", "type: float32"
    for path, keys, nearest in ((plain, integer, True), (plain, real, False), (palette, real, True),
                                (plain, integer + ", overviews: average", False), (plain, real + ", overviews: nearest", True)):
        result = outcome(scratch, path, products=f"- cog: {{bands: [B1], {keys}}}")
        smaller = levels(made(result))
        assert smaller, keys
        for level in smaller:
            assert (not set(np.unique(level)) - {1, 5, 9}) == nearest, (path.name, keys, np.unique(level)[:9])
    measured = scene(scratch / "measured.tif", np.random.default_rng(2).integers(0, 1000, (1200, 1200)).astype(np.uint16))
    steps = '- math: {bands: {C: "where(B1 > 500, 1, 9)"}}'
    level = levels(made(outcome(scratch, measured, steps=steps, products="- cog: {bands: [C], type: float32}")))[0]
    assert set(np.unique(level)) == {1, 9}, np.unique(level)[:9]


def test_huge_uncompressed_product_reserves_no_space(scratch):
    """A sparse image that limits let pass: the space for its product is checked, not taken."""
    path = scratch / "huge.tif"
    ds = gdal.GetDriverByName("GTiff").Create(str(path), 400000, 400000, 1, gdal.GDT_Byte,
                                              ["TILED=YES", "SPARSE_OK=YES", "COMPRESS=DEFLATE", "BLOCKXSIZE=4096", "BLOCKYSIZE=4096"])
    ds.GetRasterBand(1).WriteArray(np.ones((64, 64), np.uint8))
    ds = None
    assert path.stat().st_size < 1 << 20
    assert error_of(outcome(scratch, path)) == "input.limit"
    before = shutil.disk_usage(scratch)
    result = outcome(scratch, path, products="- cog: {bands: [B1], compress: none, overviews: none}", limits="limits: {max_ratio: 1000000000}\n")
    need = 400000 * 400000 * 4
    if need <= before.free:
        raise pbtest.Skip("this disk has room for the product")
    assert error_of(result) == ("output.limit" if need > before.total else "output.full"), result


pbtest.main()
