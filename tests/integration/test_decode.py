#!/usr/bin/env python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Pixels are those of the file, or the job fails: random layouts give the pixels GDAL gives; blocks that hold too much, too
little, or were damaged fail with block and codec; nothing of the scene before shows in what follows it in the same process.
PB_LAYOUTS is the number of random layouts (default 60)."""
import hashlib
import os
import random
import struct
import sys
import time
import zlib

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import pbtest  # noqa: E402
from daemon_kit import Daemon  # noqa: E402
from pbtest import run  # noqa: E402

import numpy as np  # noqa: E402
from osgeo import gdal  # noqa: E402

gdal.UseExceptions()
TYPES = {"uint8": gdal.GDT_Byte, "int16": gdal.GDT_Int16, "uint16": gdal.GDT_UInt16, "int32": gdal.GDT_Int32,
         "uint32": gdal.GDT_UInt32, "float32": gdal.GDT_Float32, "float64": gdal.GDT_Float64}
CANARY = b"\xc5\xa9\x3c\x96"


def probe(*paths):
    """Result of raster_probe for each file, all read by one process: (stage, code, digest, message)."""
    done = run("raster_probe", "-s", *paths)
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    return [(f[1], f[2], f[7], f[8]) for f in lines]


def tiff(path, blocks, tile=(64, 64), size=(64, 64), compression=8, bits=8, fmt=1, bands=1, strips=False, rows=0, extra=()):
    """A little-endian TIFF of the blocks given, as they are."""
    data, places = bytearray(b"II*\0\0\0\0\0"), []
    for block in blocks:
        places.append(len(data))
        data += block + b"\0" * (len(block) % 2)
    entries = [(256, 4, [size[0]]), (257, 4, [size[1]]), (258, 3, [bits] * bands), (259, 3, [compression]), (262, 3, [1]),
               (277, 3, [bands]), (284, 3, [1]), (339, 3, [fmt] * bands), *extra]
    if strips:
        entries += [(273, 4, places), (278, 4, [rows]), (279, 4, [len(b) for b in blocks])]
    else:
        entries += [(322, 4, [tile[0]]), (323, 4, [tile[1]]), (324, 4, places), (325, 4, [len(b) for b in blocks])]
    if bands > 1:
        entries.append((338, 3, [0] * (bands - 1)))
    fields = []
    for tag, kind, values in sorted(entries):
        raw = struct.pack(f"<{len(values)}{'H' if kind == 3 else 'I'}", *values)
        if len(raw) > 4:
            raw, at = struct.pack("<I", len(data)), len(data)
            data += struct.pack(f"<{len(values)}{'H' if kind == 3 else 'I'}", *values)
            assert at % 2 == 0
        fields.append(struct.pack("<HHI", tag, kind, len(values)) + raw.ljust(4, b"\0"))
    struct.pack_into("<I", data, 4, len(data))
    data += struct.pack("<H", len(fields)) + b"".join(fields) + b"\0\0\0\0"
    path.write_bytes(data)
    return path


def random_scene(path, rng):
    """A GDAL file of a random layout; returns what it was made of."""
    kind = rng.choice(list(TYPES))
    bands, w, h = rng.choice([1, 1, 2, 3, 4, 5]), rng.randint(1, 300), rng.randint(1, 200)
    codec = rng.choice(["NONE", "DEFLATE", "DEFLATE", "LZW", "LZW", "PACKBITS", "ZSTD"])
    options = [f"COMPRESS={codec}", f"INTERLEAVE={rng.choice(['PIXEL', 'BAND'])}", f"ENDIANNESS={rng.choice(['LITTLE', 'BIG'])}",
               f"BIGTIFF={rng.choice(['YES', 'NO'])}"]
    if rng.random() < 0.6:
        options += ["TILED=YES", f"BLOCKXSIZE={rng.choice([16, 32, 48, 128])}", f"BLOCKYSIZE={rng.choice([16, 64, 80])}"]
    else:
        options.append(f"BLOCKYSIZE={rng.randint(1, h)}")
    if codec in ("DEFLATE", "LZW", "ZSTD"):
        options.append(f"PREDICTOR={rng.choice([1, 2, 3] if 'float' in kind else [1, 2])}")
    if rng.random() < 0.3 and bands > 1:
        options.append("ALPHA=YES")
    sparse = rng.random() < 0.2
    if sparse:
        options.append("SPARSE_OK=TRUE")
    out = gdal.GetDriverByName("GTiff").Create(str(path), w, h, bands, TYPES[kind], options)
    if rng.random() < 0.4:
        out.GetRasterBand(1).SetNoDataValue(rng.choice([0, 7, 200, -9999, 3.5, float("nan")] if "float" in kind else [0, 7, 200]))
    y, x = np.mgrid[0:h, 0:w]
    noise = np.random.default_rng(rng.getrandbits(32))
    pixels = np.stack([(x * (b + 1) + y * 3) % 251 + noise.integers(0, rng.choice([1, 4, 200]), (h, w)) for b in range(bands)])
    if sparse:
        part = pixels[:, :max(1, h // 3), :max(1, w // 3)]
        for b in range(bands):
            if rng.random() < 0.7 or b == 0:
                out.GetRasterBand(b + 1).WriteArray(part[b].astype(kind))
    else:
        out.WriteArray(pixels.astype(kind) if bands > 1 else pixels[0].astype(kind))
    out = None
    return f"{kind} {bands} x {w} x {h} {' '.join(options)}{' sparse' if sparse else ''}"


def gdal_digest(path):
    scene = gdal.Open(str(path))
    digest = hashlib.sha256()
    for b in range(scene.RasterCount):
        digest.update(scene.GetRasterBand(b + 1).ReadAsArray().tobytes())
    return digest.hexdigest()


def test_random_layouts_give_the_pixels_gdal_gives(scratch):
    seed = int(os.environ.get("PB_SEED", time.time_ns() % 1000000))
    rng = random.Random(seed)
    made = []
    for i in range(int(os.environ.get("PB_LAYOUTS", "60"))):
        path = scratch / f"{i}.tif"
        made.append((path, random_scene(path, rng)))
    for (path, what), (stage, code, digest, message) in zip(made, probe(*(p for p, _ in made))):
        assert stage == "ok" or code == "input.empty", f"seed {seed}, {what}: {stage} {code} {message}"
        assert stage != "ok" or digest == gdal_digest(path), f"seed {seed}, {what}: other pixels"


def stored(data):
    """A zlib stream of stored blocks."""
    return zlib.compress(data, 0)


def lzw(data, end=True):
    """A clear before every 250 bytes: all codes have 9 bits."""
    bits = ""
    for i in range(0, len(data), 250):
        bits += f"{256:09b}" + "".join(f"{b:09b}" for b in data[i:i + 250])
    bits += f"{257:09b}" if end else ""
    bits += "0" * (-len(bits) % 8)
    return int(bits, 2).to_bytes(len(bits) // 8, "big")


def pack(data):
    return b"".join(bytes([min(128, len(data) - i) - 1]) + data[i:i + 128] for i in range(0, len(data), 128))


CODECS = {8: (zlib.compress, "deflate"), 32946: (stored, "deflate"), 5: (lzw, "LZW"), 32773: (pack, "PackBits")}


def test_blocks_hold_exactly_what_their_size_says(scratch):
    pixels = bytes(range(1, 65)) * 64
    want = hashlib.sha256(pixels).hexdigest()
    for compression, (encode, name) in CODECS.items():
        good, short, long_, cut = probe(
            tiff(scratch / "good.tif", [encode(pixels)], compression=compression),
            tiff(scratch / "short.tif", [encode(pixels[:-1])], compression=compression),
            tiff(scratch / "long.tif", [encode(pixels + b"over" * 9)], compression=compression),
            tiff(scratch / "cut.tif", [encode(pixels)[:-40]], compression=compression))
        assert good[0] == "ok" and good[2] == want, (name, good)
        for bad in (short, long_, cut):
            assert bad[:2] == ("read", "input.damaged"), (name, bad)
            assert "tile 0 (column 0, row 0; " in bad[3] and f"does not decode: {name}: " in bad[3], bad


def test_what_sound_files_have_is_taken(scratch):
    pixels = bytes(i % 251 for i in range(64 * 10))
    full = pixels + bytes(64 * 6)
    want = hashlib.sha256(pixels).hexdigest()
    files = []
    for compression, (encode, _) in CODECS.items():  # a last strip, as it is, and padded to full height
        for last in (pixels[64 * 8:], full[64 * 8:]):
            files.append(tiff(scratch / f"{len(files)}.tif", [encode(pixels[:64 * 8]), encode(last)], size=(64, 10), strips=True,
                              rows=8, compression=compression))
    for block in (zlib.compress(pixels) + b"\0\0padding", ):
        files.append(tiff(scratch / f"{len(files)}.tif", [block], size=(64, 10), tile=(64, 10), compression=8))
    for block in (lzw(pixels, end=False), lzw(pixels) + b"\0\0\0\0"):
        files.append(tiff(scratch / f"{len(files)}.tif", [block], size=(64, 10), tile=(64, 10), compression=5))
    for path, (stage, code, digest, message) in zip(files, probe(*files)):
        assert stage == "ok" and digest == want, (path, stage, code, message)
    # More than a whole strip is damage.
    over = tiff(scratch / "over.tif", [zlib.compress(pixels[:512]), zlib.compress(pixels)], size=(64, 10), strips=True, rows=8)
    assert probe(over)[0][:2] == ("read", "input.damaged")


def test_a_check_sum_that_is_wrong_is_damage(scratch):
    pixels = bytes(range(1, 65)) * 64
    stream = bytearray(zlib.compress(pixels))
    stream[-1] ^= 1
    assert probe(tiff(scratch / "sum.tif", [bytes(stream)]))[0][:2] == ("read", "input.damaged")
    half = bytearray(stored(pixels))
    half[len(half) // 2:] = bytes(len(half) - len(half) // 2)
    assert probe(tiff(scratch / "half.tif", [bytes(half)]))[0][:2] == ("read", "input.damaged")


def test_strip_of_full_height_is_checked_to_its_end(scratch):
    """GDAL decodes it row by row and never sees its end."""
    rows = 4000
    pixels = random.Random(2).randbytes(64 * rows // 2) + bytes(i % 7 for i in range(64 * rows // 2))
    def strip(name, data):
        return tiff(scratch / name, [data], size=(64, rows), strips=True, rows=rows)
    whole = zlib.compress(pixels)
    tail = bytearray(whole)
    tail[-1] ^= 1
    zeroed = whole[:-100] + bytes(100)
    good, *bad = probe(strip("good.tif", whole), strip("long.tif", zlib.compress(pixels + bytes(9))), strip("sum.tif", tail),
                       strip("short.tif", zlib.compress(pixels[:-64])), strip("zeroed.tif", zeroed), strip("cut.tif", whole[:-9]))
    assert good[0] == "ok" and good[2] == hashlib.sha256(pixels).hexdigest(), good
    for told in bad:
        assert told[:2] == ("read", "input.damaged") and "strip 0" in told[3], told


def places(data):
    """Offsets of the entries of tags 324 and 325 of a classic little-endian file: {tag: (array, format, values)}."""
    at, = struct.unpack_from("<I", data, 4)
    found = {}
    for i in range(struct.unpack_from("<H", data, at)[0]):
        tag, kind, count, value = struct.unpack_from("<HHII", data, at + 2 + 12 * i)
        if tag in (324, 325):
            form = {3: "H", 4: "I"}[kind]
            array = value if count * struct.calcsize(form) > 4 else at + 2 + 12 * i + 8
            found[tag] = array, form, struct.unpack_from(f"<{count}{form}", data, array)
    return found


def test_tiles_that_were_cut_or_zeroed_fail(scratch):
    rng = np.random.default_rng(5)
    y, x = np.mgrid[0:300, 0:300]
    pixels = np.stack([((np.sin(x / 17) + np.cos(y / (20 + b)) + 2) * 50 + rng.integers(0, 20, x.shape)) for b in range(3)])
    for codec in ("DEFLATE", "LZW", "ZSTD", "PACKBITS", "JPEG", "WEBP", "LZMA", "LERC"):
        whole = scratch / "whole.tif"
        out = gdal.GetDriverByName("GTiff").Create(str(whole), 300, 300, 3, gdal.GDT_Byte, [
            "TILED=YES", "BLOCKXSIZE=128", "BLOCKYSIZE=128", "INTERLEAVE=PIXEL", f"COMPRESS={codec}"])
        out.WriteArray(pixels.astype("u1"))
        out = None
        data = whole.read_bytes()
        found, files = places(data), [whole]
        (array, form, counts), offsets = found[325], found[324][2]
        for tile in (0, 4, 8):
            for name, left in (("half", counts[tile] // 2), ("10 bytes", counts[tile] - 10)):
                cut = bytearray(data)
                struct.pack_into("<" + form, cut, array + tile * struct.calcsize(form), left)
                files.append(scratch / f"{codec} {tile} without {name}.tif")
                files[-1].write_bytes(cut)
            if codec not in ("WEBP", ):  # it has no check sum: zeros decode
                zeroed = bytearray(data)
                first = offsets[tile] + counts[tile] // 2
                zeroed[first:offsets[tile] + counts[tile]] = bytes(offsets[tile] + counts[tile] - first)
                files.append(scratch / f"{codec} {tile} half zeroed.tif")
                files[-1].write_bytes(zeroed)
        told = probe(*files)
        assert told[0][0] == "ok", told[0]
        for path, (stage, code, _, message) in zip(files[1:], told[1:]):
            assert (stage, code) == ("read", "input.damaged"), (path.name, stage, code, message)
            assert codec in message.upper(), message


CONFIG = """pipelines:
  copy:
    input:
      bands: {R: 1}
    products:
      - cog: {bands: [R], type: uint16, nodata: 0, compress: none, overviews: none}
      - statistics: {}
"""


def canary_scene(path):
    """Nothing but one rare value, decoded by GDAL and in blocks as large as the hostile ones."""
    out = gdal.GetDriverByName("GTiff").Create(str(path), 1024, 1024, 1, gdal.GDT_UInt16, [
        "TILED=YES", "COMPRESS=LZMA", "BLOCKXSIZE=64", "BLOCKYSIZE=64"])
    out.GetRasterBand(1).WriteArray(np.frombuffer(CANARY * (1024 * 512), "<u2").reshape(1024, 1024))
    out = None
    return path


def test_nothing_of_the_scene_before_is_published(scratch):
    (scratch / "c.yaml").write_text(CONFIG)
    bomb = b"\x11\x22" * (300 * 300)
    hostile = [
        tiff(scratch / "overfull.tif", [stored(bomb)], tile=(256, 256), size=(256, 256), bits=16),
        tiff(scratch / "overfull_tiles.tif", [stored(bomb[:9000])] * 16, tile=(64, 64), size=(256, 256), bits=16),
        tiff(scratch / "overfull_strips.tif", [stored(bomb)] * 4, size=(256, 256), strips=True, rows=64, bits=16),
        tiff(scratch / "overfull_bits.tif", [stored(bomb)], tile=(256, 256), size=(256, 256), bits=7),
        tiff(scratch / "overfull_12_bits.tif", [stored(bomb)], tile=(256, 256), size=(256, 256), bits=12),
        tiff(scratch / "empty_jpeg.tif", [b"\xff\xd8\xff\xd9"], tile=(256, 256), size=(256, 256), compression=7),
    ]
    canary = canary_scene(scratch / "canary.tif")
    done = pbtest.run("pushbroom", "run", "-c", scratch / "c.yaml", "-o", scratch / "out", "--json",
                      *(p for h in hostile for p in (canary, h)), code=None)
    assert done.returncode == 1, done.stderr
    for path in hostile:
        assert f'"{path}"' in done.stdout or str(path) in done.stdout + done.stderr, path
    left = {p.name for p in (scratch / "out").iterdir()}
    found = [p for p in (scratch / "out").rglob("*") if p.is_file() and CANARY in p.read_bytes()]
    assert found and all("canary" in str(p) for p in found), found
    assert not any("overfull" in name for name in left), left


def test_a_worker_publishes_nothing_of_the_job_before(scratch):
    with Daemon(fake=False) as d:
        d.set_pipelines(CONFIG)
        d.start()
        canary = canary_scene(scratch / "canary.tif")
        for i, tile in enumerate((64, 128, 256)):  # one after the other: the same worker
            for name, source in ((f"canary_{i}.tif", canary.read_bytes()), (f"overfull_{i}.tif", None)):
                path = d.root / name
                if source is None:
                    tiff(path, [stored(bytes(2 * 300 * 300))] * (256 // tile) ** 2, tile=(tile, tile), size=(256, 256), bits=16)
                else:
                    path.write_bytes(source)
                os.rename(path, d.root / "inbox" / name)
                job = d.wait_job(name, "failed" if source is None else "successful")
            assert job["error"]["code"] == "input.damaged", job
            assert "deflate: it holds more than the block" in job["error"]["message"], job
        found = [p for p in (d.root / "products").rglob("*") if p.is_file() and CANARY in p.read_bytes()]
        assert found and all("canary" in str(p) for p in found), found
        assert not [p for p in (d.root / "products").rglob("*") if "overfull" in p.name]


pbtest.main()
