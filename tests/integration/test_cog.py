#!/usr/bin/env python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: optimised
"""COGs that the writer makes, seen by GDAL: valid, equal to an independent numpy model of pixels and
overviews for every type, codec, predictor and odd size, and the same bytes whatever the tile size,
the order of tiles, the number of threads and the order in which they complete."""
import itertools
import json
import os
import pathlib
import subprocess
import tempfile

import numpy as np
from osgeo import gdal
from osgeo_utils.samples import validate_cloud_optimized_geotiff as validator

import pbtest
import sums

gdal.UseExceptions()
TOOL = pbtest.BIN / "write_cog"
TYPES = {"uint8": np.uint8, "int16": np.int16, "uint16": np.uint16, "int32": np.int32,
         "uint32": np.uint32, "float32": np.float32, "float64": np.float64}


def check(ok, what):
    assert ok, what


def scene(w, h, bands, dtype, seed=0):
    """Smooth fields with noise, holes, halves to round, and values beyond the type's range."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:h, 0:w]
    planes = np.empty((bands, h, w), np.float32)
    for b in range(bands):
        field = np.sin(x / 37 + b) * np.cos(y / 23) + rng.normal(0, 0.05, (h, w))
        if np.issubdtype(dtype, np.integer):
            field = np.round(field * 320) / 2 + 100  # many values end in .5
        planes[b] = field
    planes[rng.random(planes.shape) < 0.01] = np.nan
    planes[:, h // 3:h // 2, w // 4:w // 2] = np.nan
    if w >= 4 and h >= 4:
        planes[:, 0, :4] = [1e9, -1e9, 3e38, -3e38]
    return planes


def quantized(values, dtype, nodata):
    """The model of quantize.h, in float64."""
    v = values.astype(np.float64)
    if np.issubdtype(dtype, np.integer):
        info = np.iinfo(dtype)
        q = np.rint(np.clip(v, info.min, info.max))
        below, above = nodata - 1, nodata + 1
        below, above = (above if below < info.min else below), (below if above > info.max else above)
        q = np.where(q == nodata, np.where(v < nodata, below, above), q)
        return np.where(np.isnan(v), nodata, q).astype(dtype)
    v = v.astype(dtype)
    if not np.isnan(nodata):
        # Readers take floats for nodata that differ by less than 4.8e-7 of it: the next float32 beyond.
        n, sides = dtype(nodata), []
        for end in (-np.inf, np.inf):
            side = np.nextafter(n, dtype(end))
            if n != 0 and abs(n) < 1e38:
                side = np.float32(n)
                while abs(float(side) - float(n)) < 2.0 ** -22 * abs(float(side) + float(n)):
                    side = np.nextafter(side, np.float32(end))
            sides.append(dtype(side))
        v = np.where((v > sides[0]) & (v < sides[1]), np.where(v < n, *sides), v)
    return np.where(np.isnan(v), dtype(nodata), v)


def halved(planes, nearest):
    bands, h, w = planes.shape
    if nearest:
        return planes[:, ::2, ::2]
    padded = np.full((bands, h + h % 2, w + w % 2), np.nan, np.float32)
    padded[:, :h, :w] = planes
    four = [padded[:, j::2, i::2].astype(np.float64) for j in (0, 1) for i in (0, 1)]
    n = sum((~np.isnan(f)).astype(np.float64) for f in four)
    a, b, c, d = [np.where(np.isnan(f), 0, f) for f in four]
    with np.errstate(invalid="ignore"):
        return (((a + b) + (c + d)) / n).astype(np.float32)


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and np.array_equal(
        a, b, equal_nan=np.issubdtype(a.dtype, np.floating))


def write(scratch, planes, name="out.tif", **options):
    """Runs the tool; returns the path and what it printed, or None and its message."""
    source = scratch / "planes.raw"
    planes.tofile(source)
    bands, h, w = planes.shape
    out = scratch / name
    words = [str(TOOL), f"in={source}", f"out={out}", f"w={w}", f"h={h}", f"bands={bands}"]
    words += [f"{key}={value}" for key, value in options.items()]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        return None, done.stderr
    said = json.loads(done.stdout)
    data = out.read_bytes()
    check(said["bytes"] == len(data), f"{options}: length {said['bytes']} is not {len(data)}")
    kind = {"blake3": "blake3", "sha2-256": "sha256"}.get(options.get("checksum", "blake3"))
    check(said["checksum"] == (sums.checksum(out, kind) if kind else ""), f"{options}: checksum {said['checksum']}")
    if not pbtest.SANITIZED:
        slack = 64 * 1024  # overhead of malloc; zstd and spool objects
        check(said["taken"] <= said["declared"] + slack,
              f"{options}: took {said['taken']} bytes of memory, declared {said['declared']}")
    return out, said


def verify(scratch, planes, what, dtype, nodata, **options):
    out, said = write(scratch, planes, type=np.dtype(dtype).name, nodata=nodata, **options)
    what = f"{what} {np.dtype(dtype).name} {options}"
    if out is None:
        check(False, f"{what}: {said}")
        return
    warnings, errors, _ = validator.validate(str(out), full_check=True)
    if options.get("overviews") == "none":
        warnings = [w for w in warnings if "overviews" not in w]
    check(not warnings and not errors, f"{what}: validator: {warnings} {errors}")
    data = gdal.Open(str(out))
    check(data.RasterCount == len(planes), f"{what}: bands")
    check(data.GetRasterBand(1).GetBlockSize() == [options.get("block", 512)] * 2, f"{what}: block")
    level, count = planes, data.GetRasterBand(1).GetOverviewCount()
    for k in range(count + 1):
        for b in range(len(planes)):
            band = data.GetRasterBand(b + 1)
            band = band.GetOverview(k - 1) if k else band
            check(same(band.ReadAsArray(), quantized(level[b], dtype, nodata)),
                  f"{what}: pixels of band {b + 1}, level {k}")
            stored = band.GetNoDataValue()
            check(stored is not None and (stored == nodata or np.isnan([stored, nodata]).all()),
                  f"{what}: nodata {stored} of level {k}")
        level = halved(level, options.get("overviews") == "nearest")
    smallest = max(data.GetRasterBand(1).GetOverview(count - 1).XSize,
                   data.GetRasterBand(1).GetOverview(count - 1).YSize) if count else 0
    check(options.get("overviews") == "none" or smallest <= 512, f"{what}: overviews end too early")


def thinned(items, step):
    """All of them; one of `step` with a sanitizer, which looks at the code and not at every combination."""
    items = list(items)
    return items[::step] if pbtest.SANITIZED else items


def test_types_codecs_predictors(scratch):
    for (name, dtype), compress in itertools.product(TYPES.items(), ["none", "deflate", "zstd", "lzw"]):
        floats = np.issubdtype(dtype, np.floating)
        for predictor in ([0, 1, 2, 3] if floats else [0, 1, 2]):
            bands = 3 if predictor == 0 else 1
            nodata = float("nan") if floats else (255 if name == "uint8" else 0)
            verify(scratch, scene(300, 270, bands, dtype), "types", dtype, nodata, compress=compress,
                   predictor=predictor, block=64, tile=128)


def test_chunky_bands(scratch):
    for (name, dtype), bands in itertools.product(TYPES.items(), [2, 5]):
        for predictor in ([2, 3] if np.issubdtype(dtype, np.floating) else [2]):
            verify(scratch, scene(200, 150, bands, dtype), f"{bands} bands", dtype, 7, predictor=predictor,
                   block=64, tile=64, overviews="nearest")


def ratios(bands, h, w):
    """Quotients of noisy counts, as of an index, without a value in a corner."""
    rng = np.random.default_rng(bands * h + w)
    y, x = np.mgrid[:h, :w]
    cover = 0.5 + 0.4 * np.sin(x / 91) * np.cos(y / 57)
    noise = 50 * rng.standard_normal((bands, 2, h, w))
    red, nir = np.rint(2200 - 1700 * cover + noise[:, 0]), np.rint(2400 + 1800 * cover + noise[:, 1])
    planes = ((nir - red) / (nir + red)).astype(np.float32)
    planes[:, x + y < w // 12] = np.nan
    return planes


def test_zstd_planes(scratch):
    """Frames of our own encoder, which have a window of 128 KiB, in full blocks, blocks on edges and overviews."""
    for dtype, bands, level in [(np.float32, 1, 0), (np.float32, 1, 9), (np.float32, 3, 0), (np.float32, 2, 19), (np.float32, 20, 1)]:
        block = 512 if bands < 20 else 128
        verify(scratch, ratios(bands, 700, 900), f"{bands} bands", dtype, float("nan"), compress="zstd", level=level, block=block)
        data = gdal.Open(str(scratch / "out.tif"))
        raw = (scratch / "out.tif").read_bytes()
        for band in (data.GetRasterBand(1), data.GetRasterBand(1).GetOverview(0)):
            at = int(band.GetMetadataItem("BLOCK_OFFSET_0_0", "TIFF"))
            check(raw[at:at + 6] == b"\x28\xb5\x2f\xfd\x80\x38", f"{bands} bands of {dtype}: the library encoded a block")


def test_odd_sizes(scratch):
    sides = [1, 2, 511, 512, 513, 1025]
    for w, h in thinned(itertools.product(sides, sides), 5):
        overviews = "average" if (w + h) % 2 else "nearest"
        verify(scratch, scene(w, h, 1, np.float32, w), f"{w}x{h}", np.float32, float("nan"), tile=512,
               overviews=overviews, level=1)
    for w, h in [(5000, 1), (1, 5000), (777, 31)]:
        for order in ("rows", "z"):
            verify(scratch, scene(w, h, 2, np.uint16, w), f"{w}x{h}", np.uint16, 0, tile=64, block=64,
                   order=order, flight=3)
    verify(scratch, scene(900, 1000, 1, np.float32), "one block", np.float32, -9999.0, tile=1024, block=1024)
    verify(scratch, scene(700, 100, 1, np.int16), "no overviews", np.int16, -32768, overviews="none")


def test_nodata_everywhere(scratch):
    for dtype, nodata in [(np.uint8, 0), (np.uint8, 255), (np.int16, -32768), (np.uint32, 4294967295),
                          (np.int32, -2147483648), (np.float32, 0.1), (np.float64, 100.5)]:
        planes = scene(150, 140, 1, np.int16)
        planes[0, 5, :] = np.float32(nodata)
        stored = float(np.float32(nodata)) if dtype == np.float32 else nodata
        verify(scratch, planes, "nodata", dtype, stored, block=64, tile=64)
    verify(scratch, np.full((1, 300, 300), np.nan, np.float32), "all invalid", np.float32, float("nan"))


def test_same_bytes(scratch):
    planes = scene(725, 611, 2, np.float32)
    sums = set()
    variants = itertools.product([64, 128, 512, 2048], ["rows", "z"], [1, 4], [1, 7])
    for seed, (tile, order, threads, flight) in enumerate(variants):
        out, said = write(scratch, planes, tile=tile, order=order, threads=threads, flight=flight, seed=seed,
                          block=64, compress="zstd", level=1)
        check(out is not None, f"tile {tile} {order} {threads} threads: {said}")
        sums.add(said["checksum"] if out else None)
    check(len(sums) == 1, f"one image gave {len(sums)} different files")


def test_same_bytes_whatever_waits_where(scratch):
    """Blocks that all fit into memory; that are written straight into the file; that wait in the spool; gaps that the file
    system closes, and those that are closed by moving the following bytes."""
    shm = pathlib.Path("/dev/shm")  # a tmpfs
    with tempfile.TemporaryDirectory(prefix="pb-cog-", dir=shm if os.access(shm, os.W_OK) else scratch) as own:
        compare_places(scratch, [(scratch, 0), (scratch, 1), (pathlib.Path(own), 0)])


def compare_places(scratch, places):
    planes = scene(780, 613, 1, np.float32)
    for mask, overviews in [(0, "average"), (1, "average"), (0, "none")]:
        sums = set()
        for (place, move), pool, order, threads in thinned(itertools.product(places, [1, 100000, 0], ["rows", "z"], [1, 2, 8]), 5):
            out, said = write(scratch, planes, name=place / "out.tif", tile=64, order=order, threads=threads, flight=2 * threads,
                              seed=pool + threads, block=64, level=1, pool=pool, move=move, mask=mask, overviews=overviews)
            check(out is not None, f"pool {pool} {order} {threads} threads move {move} in {place}: {said}")
            sums.add(said["checksum"] if out else None)
        check(len(sums) == 1, f"mask {mask}, overviews {overviews}: one image gave {len(sums)} different files")
        warnings, errors, _ = validator.validate(str(out), full_check=True)
        warnings = [w for w in warnings if overviews != "none" or "overviews" not in w]
        check(not warnings and not errors, f"mask {mask}, overviews {overviews}: validator: {warnings} {errors}")
        level, data = planes, gdal.Open(str(out))
        for k in range(data.GetRasterBand(1).GetOverviewCount() + 1):
            band = data.GetRasterBand(1)
            band = band.GetOverview(k - 1) if k else band
            check(same(band.ReadAsArray(), level[0]), f"mask {mask}, overviews {overviews}: pixels of level {k}")
            first = int(band.GetMetadataItem("BLOCK_OFFSET_0_0", "TIFF"))
            check(k > 1 or (first - 4) % 4096 == 0, f"level {k} begins at {first - 4}, which is within a page")
            level = halved(level, False)


def test_checksums(scratch):
    planes = scene(900, 800, 1, np.float32)
    for kind, side in itertools.product(("blake3", "sha2-256", "none"), (900, 20)):
        write(scratch, planes[:, :side, :side], checksum=kind)  # compares it


def test_bigtiff(scratch):
    planes = scene(700, 650, 2, np.uint16)
    verify(scratch, planes, "BigTIFF", np.uint16, 0, big=1, block=128, tile=256)
    check((scratch / "out.tif").read_bytes()[:4] == b"II\x2b\0", "big=1 made no BigTIFF")
    verify(scratch, scene(60, 60, 1, np.uint8), "BigTIFF of one block", np.uint8, 0, big=1, tile=64)
    verify(scratch, planes, "classic", np.uint16, 0, block=128, tile=256)
    check((scratch / "out.tif").read_bytes()[:4] == b"II\x2a\0", "a small file is a BigTIFF")


def test_georeference_is_in_the_main_directory_only(scratch):
    out, _ = write(scratch, scene(1200, 1100, 1, np.float32))
    data = gdal.Open(str(out))
    check(data.GetGeoTransform() == (500000, 10, 0, 4600000, 0, -10), "geotransform")
    check('"EPSG","32631"' in data.GetProjection(), "projection")
    check(data.GetMetadataItem("TIFFTAG_SOFTWARE").startswith("pushbroom "), "software tag")
    check(data.GetMetadataItem("LAYOUT", "IMAGE_STRUCTURE") == "COG", "GDAL does not see a COG")
    second = gdal.Open(f"GTIFF_DIR:2:{out}")
    check(second.GetGeoTransform(can_return_null=True) is None, "an overview has a geotransform")


def test_refusals(scratch):
    planes = scene(64, 64, 1, np.float32)
    for options, words in [(dict(type="uint8"), "nodata"), (dict(type="uint8", nodata=256), "256"),
                           (dict(type="uint16", nodata=0, predictor=3), "predictor"),
                           (dict(compress="deflate", level=13), "level"),
                           (dict(block=100, tile=100), "blocksize")]:
        out, said = write(scratch, planes, **options)
        check(out is None and words in said and "pipeline.product" in said, f"{options}: {said}")
    out, said = write(scratch, planes, name="missing/out.tif")
    check(out is None and "output.write" in said, f"missing directory: {said}")


def test_full_disk(scratch):
    place = scratch / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)]
    if subprocess.run(mount, capture_output=True).returncode != 0:
        raise pbtest.Skip("mounting a tmpfs is not allowed here")
    try:
        # Larger than the disk will ever be; full while tiles arrive, and full at the end.
        for size, compress, pool, code in [(1000, "none", 0, "output.limit"), (1000, "deflate", 1, "output.full"),
                                           (1000, "deflate", 0, "output.full")]:
            out, said = write(scratch, scene(size, size, 1, np.float32), name="small/out.tif", pool=pool,
                              compress=compress, overviews="none", block=64, tile=64)
            check(out is None and code in said, f"full disk: {said}")
            check(not list(place.iterdir()), f"full disk: left {list(place.iterdir())}")
        for pool in (1, 0):
            out, said = write(scratch, scene(450, 450, 1, np.float32), name="small/out.tif", pool=pool, threads=1, flight=1,
                              compress="deflate", overviews="none", block=64, tile=64)
            check(out is not None, f"blocks in the order of the file take their space once: {said}")
            out and out.unlink()
        out, said = write(scratch, scene(400, 400, 1, np.float32), name="small/out.tif",
                          compress="none", overviews="none", block=64, tile=64)
        check(out is not None, f"blocks that are not compressed take their space once: {said}")
        out, said = write(scratch, scene(400, 400, 1, np.float32), name="small/second.tif",  # with the first one it has no room
                          compress="none", overviews="none", block=64, tile=64)
        check(out is None and "output.full" in said, f"full disk: {said}")
    finally:
        subprocess.run(["umount", str(place)], check=True)


pbtest.main()
