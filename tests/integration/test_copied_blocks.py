#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: sanitized
"""COGs whose blocks the scene's file has already: which are taken over byte by byte, which are compressed again, and that
pixels, masks and overviews are those of a product that was compressed again as a whole."""
import json
import shutil

import numpy as np
from osgeo import gdal, osr

import pbtest
from pbtest import run, run_json

gdal.UseExceptions()

W, H, B = 330, 200, 64  # 6 x 4 blocks, the last ones cut off
TYPES = {"uint8": gdal.GDT_Byte, "int16": gdal.GDT_Int16, "uint16": gdal.GDT_UInt16, "int32": gdal.GDT_Int32, "uint32": gdal.GDT_UInt32,
         "float32": gdal.GDT_Float32, "float64": gdal.GDT_Float64}
PREDICTOR = {"float32": 3, "float64": 3}
ALL = {(x, y) for y in range(-(-H // B)) for x in range(-(-W // B))}


def pixels(kind, bands=2):
    """Numbers from 10 on, of all the digits of the type."""
    numbers = np.random.default_rng(5)
    if kind.startswith("float"):
        return (10 + np.abs(numbers.normal(0, 1, (bands, H, W)))).astype(kind)
    return numbers.integers(10, np.iinfo(kind).max - 9, (bands, H, W), endpoint=True).astype(kind)


def write(scratch, made, nodata=None, name="a.tif", mask=None, **options):
    kind = made.dtype.name
    told = {"TILED": "YES", "BLOCKXSIZE": B, "BLOCKYSIZE": B, "COMPRESS": "DEFLATE", "PREDICTOR": PREDICTOR.get(kind, 2), "ZLEVEL": 9,
            "INTERLEAVE": "PIXEL", **options}
    path = scratch / name
    gdal.SetConfigOption("GDAL_TIFF_INTERNAL_MASK", "YES")
    out = gdal.GetDriverByName("GTiff").Create(str(path), made.shape[2], made.shape[1], made.shape[0], TYPES[kind], [f"{k}={v}" for k, v in told.items()])
    place = osr.SpatialReference()
    place.ImportFromEPSG(32632)
    out.SetProjection(place.ExportToWkt())
    out.SetGeoTransform((500000, 10, 0, 5000000, 0, -10))
    if nodata is not None:
        for i in range(made.shape[0]):
            out.GetRasterBand(i + 1).SetNoDataValue(nodata)
    out.WriteArray(made)
    if mask is not None:
        out.CreateMaskBand(gdal.GMF_PER_DATASET)
        out.GetRasterBand(1).GetMaskBand().WriteArray(mask)
    out = None
    return path


def config(scratch, product, steps="", more="", compute="", bands="A: 1, B: 2"):
    path = scratch / "c.yaml"
    path.write_text(f"compute: {{device: cpu{compute}}}\npipelines:\n  p:\n    input: {{match: ['*'], bands: {{{bands}}}{more}}}\n" +
                    (f"    steps:\n      - {steps}\n" if steps else "") + f"    products:\n      - cog: {{{product}}}\n")
    return path


def product_of(scratch, path, product, place, **more):
    shutil.rmtree(scratch / place, ignore_errors=True)
    result, = run_json("pushbroom", "run", "--json", "-c", config(scratch, product, **more), "-o", scratch / place, path)
    return result["products"][0]


def blocks(path):
    """The stored bytes of blocks of the full image, by column and row."""
    file, found, data = gdal.Open(str(path)), {}, open(path, "rb").read()
    band = file.GetRasterBand(1)
    w, h = band.GetBlockSize()
    for y in range(-(-band.YSize // h)):
        for x in range(-(-band.XSize // w)):
            at, n = (int(band.GetMetadataItem(f"BLOCK_{what}_{x}_{y}", "TIFF") or 0) for what in ("OFFSET", "SIZE"))
            found[x, y] = data[at:at + n]
    return found


def images(path):
    """Pixels, masks and overviews."""
    file = gdal.Open(str(path))
    bands = [file.GetRasterBand(i + 1) for i in range(file.RasterCount)]
    every = [[b, *(b.GetOverview(i) for i in range(b.GetOverviewCount()))] for b in bands]
    return [image.ReadAsArray().tobytes() for one in every for band in one for image in (band, band.GetMaskBand())]


def said(scratch, path, product, **more):
    """Message of a dry run about the product's blocks."""
    plan, = run_json("pushbroom", "run", "--json", "--dry-run", "-c", config(scratch, product, **more), "-o", scratch / "out", path)
    made = plan["plan"]["products"][0]
    return made.get("blocks"), made.get("blocks_why")


def check(scratch, path, product, expected, at=(0, 0), **more):
    """Copies the expected blocks, by column and row of the product, and makes the pixels that encoding makes. at: the file's block that is the first."""
    copied = product_of(scratch, path, product, "out", **more)
    encoded = product_of(scratch, path, product + ", blocks: encode", "other", **more)
    assert images(copied["path"]) == images(encoded["path"]), product
    assert copied.get("moved_off_nodata") == encoded.get("moved_off_nodata"), (copied, encoded)
    theirs, ours = blocks(path), blocks(copied["path"])
    same = {key for key, block in ours.items() if block == theirs.get((key[0] + at[0], key[1] + at[1]))}
    assert same == expected, (product, more, sorted(same ^ expected))
    return copied


def product(kind="uint16", nodata=0, bands="A, B", more=""):
    return f"bands: [{bands}], type: {kind}, blocksize: {B}" + (f", nodata: {nodata}" if nodata is not None else "") + more


def test_bands_in_order_in_their_own_format_are_copied(scratch):
    for kind in TYPES:
        path = write(scratch, pixels(kind))
        check(scratch, path, product(kind), ALL if kind != "float64" else set())
    one = write(scratch, pixels("uint16", 1))
    check(scratch, one, product(bands="A"), ALL, bands="A: 1")
    check(scratch, one, product(bands="A", nodata=None, more=", mask: true"), ALL, bands="A: 1")
    for name in ("ZSTD", "LZW"):
        path = write(scratch, pixels("uint16"), COMPRESS=name)
        check(scratch, path, product(more=f", compress: {name.lower()}"), ALL)
    path = write(scratch, pixels("int16"), PREDICTOR=1)
    check(scratch, path, product("int16", more=", predictor: none"), ALL)
    path = write(scratch, pixels("uint8"), ENDIANNESS="BIG")
    check(scratch, path, product("uint8"), ALL)


def test_the_bytes_depend_on_neither_tiles_nor_threads(scratch):
    made = pixels("uint16")
    made[1, 70, 200] = 7
    path = write(scratch, made)
    found = {open(product_of(scratch, path, product(nodata=7), "out", compute=compute)["path"], "rb").read()
             for compute in ("", ", tile: 64, threads: 1", ", tile: 128, threads: 3", ", memory: 64MiB")}
    assert len(found) == 1


@pbtest.not_about_memory
def test_block_with_a_changed_pixel_is_encoded(scratch):
    for kind in ("uint16", "uint32", "float32"):
        made = pixels(kind)
        made[1, 70, 200] = 7  # block 3, 1: valid, and nodata of the product
        path = write(scratch, made)
        copied = check(scratch, path, product(kind, 7), ALL - {(3, 1)})
        assert copied["moved_off_nodata"] == 1, copied
        # Invalid pixels have the product's nodata in the file already; floats may also be infinite, therefore their blocks are
        # encoded.
        invalid = ALL if kind != "float32" else ALL - {(3, 1)}
        check(scratch, path, product(kind, 7), invalid, more=", nodata: 7")
        path = write(scratch, made, nodata=7)
        check(scratch, path, product(kind, 7), invalid)
        check(scratch, path, product(kind, 5), ALL - {(3, 1)})  # another one


@pbtest.not_about_memory
def test_block_with_a_pixel_made_invalid_is_encoded(scratch):
    mask = np.full((H, W), 255, np.uint8)
    mask[199, 329] = 0
    for kind in ("uint16", "float32"):
        made = pixels(kind)
        made[1, 70, 200], made[0, 130, 70] = 7, 8
        path = write(scratch, made, nodata=7)
        check(scratch, path, product(kind, 7), ALL - {(3, 1), (1, 2)}, steps="math: {bands: {A: 'where(A == 8, invalid, A)'}}")
        path = write(scratch, made, mask=mask)
        check(scratch, path, product(kind, 7), ALL - {(3, 1), (5, 3)})
        check(scratch, path, product(kind, None, more=", mask: true"), ALL - {(5, 3)})
    # A tile of which a gate lets nothing pass.
    path = write(scratch, np.where(np.arange(W) < 128, 8, pixels("uint16")).astype("uint16"), nodata=7)
    check(scratch, path, product("uint16", 7), {(x, y) for x, y in ALL if x > 1}, steps="mask: {band: A, drop: [8], apply: [A, B], gate: true}",
          compute=", tile: 64")


def test_floats_that_no_product_holds_are_encoded(scratch):
    made = pixels("float32")
    made[0, 0, 0], made[0, 0, 70], made[0, 70, 0] = np.nan, np.inf, -0.0
    path = write(scratch, made)
    check(scratch, path, product("float32", None), ALL - {(0, 0), (1, 0)})
    check(scratch, path, product("float32", 0), ALL - {(0, 0), (1, 0), (0, 1)})


def test_crop_on_block_edges_copies_whole_blocks_only(scratch):
    path = write(scratch, pixels("uint16"))
    inner = {(x, y) for x in range(3) for y in range(2)}
    check(scratch, path, product(), inner, (1, 1), steps="crop: {window: [64, 64, 192, 128]}")
    check(scratch, path, product(), {(x, y) for x in range(2) for y in range(2)}, (1, 1), steps="crop: {window: [64, 64, 191, 128]}")
    check(scratch, path, product(), {(x, y) for x in range(2) for y in range(2)}, (4, 2), steps="crop: {window: [256, 128, 74, 72]}")
    check(scratch, path, product(), set(), (1, 1), steps="crop: {window: [63, 64, 192, 128]}")
    check(scratch, path, product(), ALL, steps="convolve: {kernel: box, size: 3, bands: {S: A}}")  # read with a halo, in other tiles


def test_absent_blocks_and_old_streams_are_encoded(scratch):
    made = pixels("uint16")
    made[:, 64:128, 64:128] = 0
    path = write(scratch, made, SPARSE_OK="TRUE")
    assert blocks(path)[1, 1] == b""
    check(scratch, path, product(), ALL - {(1, 1)})


def test_dry_run_has_the_reason_against_copying_blocks(scratch):
    path = write(scratch, pixels("uint16"))
    assert said(scratch, path, product()) == ("copied", None)
    assert said(scratch, path, product(bands="B, A")) == (None, None)
    assert said(scratch, path, product(bands="A")) == (None, None)
    assert said(scratch, path, product(), steps="math: {bands: {A: A + 1}}") == (None, None)
    assert said(scratch, path, product(more=", compress: none")) == (None, None)
    for more, why in ((", blocks: encode", "cog.blocks is encode"), (", level: 6", "cog.level is given"), (", compress: zstd", "the file has DEFLATE (cog.compress)"),
                      (", predictor: none", "the file's have predictor horizontal (cog.predictor)"), (", scale: 0.1", "cog.scale or cog.offset is given")):
        assert said(scratch, path, product(more=more)) == ("encoded", why), more
        check(scratch, path, product(more=more), set()) if "blocks" not in more else None
    assert said(scratch, path, "bands: [A, B], type: uint16, nodata: 0") == ("encoded", "the file's are of 64 x 64 px (cog.blocksize)")
    assert said(scratch, path, product("int16")) == ("encoded", "the file's pixels are of another type (cog.type)")
    assert said(scratch, path, product(), steps="crop: {window: [63, 64, 192, 128]}") == ("encoded", "the crop begins within one of the file's")
    for options, why in (({"INTERLEAVE": "BAND"}, "each of the file's is of one band"), ({"ENDIANNESS": "BIG"}, "the file is big-endian"),
                         ({"TILED": "NO", "BLOCKYSIZE": 64}, "the file has strips")):
        assert said(scratch, write(scratch, pixels("uint16"), name="b.tif", **options), product()) == ("encoded", why), options
    text = run("pushbroom", "run", "--dry-run", "-c", config(scratch, product()), "-o", scratch / "out", path).stdout
    assert "nodata 0, deflate, blocks copied from the file" in text, text
    text = run("pushbroom", "run", "--dry-run", "-c", config(scratch, product(more=", level: 6")), "-o", scratch / "out", path).stdout
    assert "deflate, blocks encoded again: cog.level is given" in text, text


def test_a_damaged_block_fails_the_run(scratch):
    path = write(scratch, pixels("uint16"))
    file = gdal.Open(str(path))
    at = int(file.GetRasterBand(1).GetMetadataItem("BLOCK_OFFSET_2_1", "TIFF"))
    data = bytearray(path.read_bytes())
    data[at + 900] ^= 0x55
    path.write_bytes(data)
    done = run("pushbroom", "run", "--json", "-c", config(scratch, product()), "-o", scratch / "out", path, code=1)
    error = json.loads(done.stdout)["error"]
    assert error["code"] == "input.damaged" and "tile 8 (column 2, row 1" in error["message"], error
    assert not list((scratch / "out").rglob("*.tif"))


pbtest.main()
