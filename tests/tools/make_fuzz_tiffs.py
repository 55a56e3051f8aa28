#!/usr/bin/env python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""make_fuzz_tiffs.py DIR: writes the seeds of fuzz_tiff and mutate_scenes, some dozen small TIFFs that cover the codecs,
predictors, types and layouts. The copies in tests/fuzz/seeds/fuzz_tiff were made with GDAL 3.6."""
import pathlib
import sys

import numpy as np
from osgeo import gdal

gdal.UseExceptions()
SEEDS = {  # name: bands, numpy type, creation options
    "none_strips": (1, "u2", []),
    "none_big_endian": (2, "f4", ["ENDIANNESS=BIG", "INTERLEAVE=BAND"]),
    "deflate_tiles_p2": (3, "u2", ["TILED=YES", "COMPRESS=DEFLATE", "PREDICTOR=2"]),
    "deflate_tiles_p3": (1, "f4", ["TILED=YES", "COMPRESS=DEFLATE", "PREDICTOR=3", "BIGTIFF=YES"]),
    "deflate_strips": (1, "u1", ["COMPRESS=DEFLATE", "BLOCKYSIZE=8"]),
    "deflate_sparse": (1, "i2", ["TILED=YES", "COMPRESS=DEFLATE", "SPARSE_OK=TRUE"]),
    "deflate_7_bits": (1, "u1", ["TILED=YES", "COMPRESS=DEFLATE", "NBITS=7"]),
    "lzw_tiles": (4, "u1", ["TILED=YES", "COMPRESS=LZW", "ALPHA=YES"]),
    "lzw_strips_p2": (1, "i4", ["COMPRESS=LZW", "PREDICTOR=2", "BLOCKYSIZE=5", "ENDIANNESS=BIG"]),
    "packbits_strips": (3, "u1", ["COMPRESS=PACKBITS", "INTERLEAVE=BAND", "BLOCKYSIZE=7"]),
    "packbits_tiles": (1, "u4", ["COMPRESS=PACKBITS", "TILED=YES"]),
    "zstd_tiles": (2, "f8", ["TILED=YES", "COMPRESS=ZSTD", "PREDICTOR=3"]),
    "zstd_strips": (1, "u2", ["COMPRESS=ZSTD", "BLOCKYSIZE=16"]),
    "jpeg_tiles": (3, "u1", ["TILED=YES", "COMPRESS=JPEG", "PHOTOMETRIC=YCBCR"]),
    "jpeg_strips": (1, "u1", ["COMPRESS=JPEG", "BLOCKYSIZE=16"]),
    "webp_tiles": (3, "u1", ["TILED=YES", "COMPRESS=WEBP"]),
    "lerc_tiles": (1, "f4", ["TILED=YES", "COMPRESS=LERC"]),
    "lzma_tiles": (1, "u2", ["TILED=YES", "COMPRESS=LZMA"]),
}


def main(folder):
    rng = np.random.default_rng(1)
    y, x = np.mgrid[0:45, 0:53]
    for name, (bands, kind, options) in SEEDS.items():
        data = np.stack([(x * 3 + y * (2 + i) + rng.integers(0, 6, x.shape)) % 120 for i in range(bands)]).astype(kind)
        code = {"u1": gdal.GDT_Byte, "u2": gdal.GDT_UInt16, "i2": gdal.GDT_Int16, "u4": gdal.GDT_UInt32, "i4": gdal.GDT_Int32,
                "f4": gdal.GDT_Float32, "f8": gdal.GDT_Float64}[kind]
        tiles = ["BLOCKXSIZE=32", "BLOCKYSIZE=32"] if "TILED=YES" in options else []
        options = options if any(o.startswith("INTERLEAVE") for o in options) else options + ["INTERLEAVE=PIXEL"]
        out = gdal.GetDriverByName("GTiff").Create(str(folder / f"{name}.tif"), 53, 45, bands, code, options + tiles)
        out.SetGeoTransform([500000, 10, 0, 5000000, 0, -10])
        if "sparse" in name:
            out.GetRasterBand(1).SetNoDataValue(-7)
            out.GetRasterBand(1).WriteArray(data[0][:20, :20])
        else:
            out.WriteArray(data)
        out = None
    gdal.SetConfigOption("GDAL_TIFF_INTERNAL_MASK", "YES")
    out = gdal.GetDriverByName("GTiff").Create(str(folder / "deflate_mask.tif"), 53, 45, 1, gdal.GDT_Byte,
                                               ["TILED=YES", "COMPRESS=DEFLATE", "BLOCKXSIZE=32", "BLOCKYSIZE=32"])
    out.CreateMaskBand(gdal.GMF_PER_DATASET)
    out.GetRasterBand(1).WriteArray(data[0].astype("u1"))
    out.GetRasterBand(1).GetMaskBand().WriteArray(((x + y) % 5 > 0).astype("u1") * 255)
    for name, value in (("canary_a", 0x5A), ("canary_b", 0xC3)):  # through GDAL's decoders
        out = gdal.GetDriverByName("GTiff").Create(str(folder / f"{name}.tif"), 96, 96, 3, gdal.GDT_Byte, [
            "TILED=YES", "COMPRESS=JPEG", "INTERLEAVE=PIXEL", "BLOCKXSIZE=32", "BLOCKYSIZE=32"])
        out.WriteArray(np.full((3, 96, 96), value, "u1"))
        out = None


main(pathlib.Path(sys.argv[1]))
