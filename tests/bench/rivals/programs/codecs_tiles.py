# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""A rival without GDAL: imagecodecs (ISA-L, libdeflate, zstd) decodes and encodes, numba undoes the predictor, computes and halves, OpenCV
filters, tifffile writes. Tiles by a thread a core; encoded tiles stay in memory. It reads deflated, pixel-interleaved UInt16 in square tiles with
predictor 2, and writes the same as a COG: tiles, predictor and overviews, but without a COG's order of the file.

    codecs_tiles.py JOB.json              JOB's `codec`: isal, deflate (libdeflate), zstd or none
    codecs_tiles.py JOB.json compile      makes the product of a corner, which compiles the functions of the job; numba keeps them next to JOB.json"""
import hashlib
import importlib
import os
import pathlib
import re
import sys
from concurrent.futures import ThreadPoolExecutor

import imagecodecs
import numpy as np
import tifffile

from job import read_job, sync

COMPRESSION = {"isal": 8, "deflate": 8, "zstd": 50000, "none": 1}
GEO = ((33550, "d"), (33922, "d"), (34735, "H"), (34736, "d"), (34737, "s"))  # tags of the georeference
CORNER = 4  # tiles a side: two levels of overviews, and therefore every function with every layout of its arrays
KERNELS = '''import numba
import numpy as np


@numba.njit(nogil=True, error_model="numpy", cache=True)
def tile(t, o):
    for y in range(t.shape[0]):
{zero}
        for x in range(t.shape[1]):
{add}
{load}
{store}


@numba.njit(nogil=True, cache=True)
def half(a, o):
    for y in range(o.shape[0]):
        for x in range(o.shape[1]):
            for c in range(o.shape[2]):
                o[y, x, c] = {mean}
'''
MEANS = {"float32": "np.float32(.25) * (a[2 * y, 2 * x, c] + a[2 * y, 2 * x + 1, c] + a[2 * y + 1, 2 * x, c] + a[2 * y + 1, 2 * x + 1, c])",
         "uint16": "np.uint16((np.uint32(a[2 * y, 2 * x, c]) + a[2 * y, 2 * x + 1, c] + a[2 * y + 1, 2 * x, c] + a[2 * y + 1, 2 * x + 1, c] + 2) >> 2)"}


def expression(formula):
    """In float32 throughout; a power of one half is a square root."""
    roots = re.sub(r"\(([^()]*)\) \*\* 0\.5", r"np.sqrt(\1)", formula)
    return re.sub(r"(?<![\w.])\d+\.?\d*", lambda m: f"np.float32({m[0]})", roots)


def kernels_text(job, formulas, kind):
    names = [n for n in job.bands if any(re.search(rf"\b{n}\b", f) for f in formulas)]
    scale = f" * np.float32({job.scale})" if job.scale else ""
    plain = kind != "float32"
    return KERNELS.format(
        zero="\n".join(f"        s{n} = np.uint16(0)" for n in names),
        add="\n".join(f"            s{n} = np.uint16(s{n} + t[y, x, {job.bands[n] - 1}])" for n in names),
        load="\n".join(f"            {n} = s{n}" if plain else f"            {n} = np.float32(s{n}){scale}" for n in names),
        store="\n".join(f"            o[y, x, {i}] = {f if plain else expression(f)}" for i, f in enumerate(formulas)),
        mean=MEANS[job.type])


def kernels(job, formulas, kind):
    """Module of the compiled functions; numba keeps the code next to its source, in the folder of the job."""
    text = kernels_text(job, formulas, kind)
    path = pathlib.Path(sys.argv[1]).with_name(f"kernels_{hashlib.sha256(text.encode()).hexdigest()[:16]}.py")
    if path.stem not in sys.modules:
        if not path.exists():
            path.write_text(text)
        sys.path.insert(0, str(path.parent))
    return importlib.import_module(path.stem)


class Source:
    def __init__(self, path):
        self.file = open(path, "rb")
        page = tifffile.TiffFile(self.file).pages[0]
        assert (page.compression, page.predictor, page.planarconfig, page.dtype) == (8, 2, 1, np.uint16), "only deflated, pixel-interleaved UInt16 with predictor 2"
        self.height, self.width, self.bands = (*page.shape, 1)[:3]
        self.side = page.tilewidth
        self.across, self.down = -(-self.width // self.side), -(-self.height // self.side)
        self.offsets, self.counts = page.dataoffsets, page.databytecounts
        self.geo = [(code, kind, len(tag.value) if kind != "s" else 0, tag.value, True) for code, kind in GEO if (tag := page.tags.get(code))]

    def cut(self, tiles):
        """Keeps only the upper left corner, a square of tiles."""
        across = self.across
        self.width, self.height = min(self.width, tiles * self.side), min(self.height, tiles * self.side)
        self.across, self.down = min(across, tiles), min(self.down, tiles)
        numbers = [y * across + x for y in range(self.down) for x in range(self.across)]
        self.offsets, self.counts = [self.offsets[i] for i in numbers], [self.counts[i] for i in numbers]

    def tile(self, i):
        """Stored samples of a tile: differences along its rows."""
        stored = os.pread(self.file.fileno(), self.counts[i], self.offsets[i])
        raw = imagecodecs.isal_decode(stored, out=self.side * self.side * self.bands * 2)
        return np.frombuffer(raw, np.uint16).reshape(self.side, self.side, self.bands)


class Encoder:
    def __init__(self, job):
        self.codec, self.level, self.kind = job.codec, job.level, job.type
        self.predictor = 1 if job.codec == "none" else 3 if job.type == "float32" else 2
        self.compress = {"isal": imagecodecs.isal_encode, "deflate": imagecodecs.deflate_encode, "zstd": imagecodecs.zstd_encode}.get(job.codec)

    def __call__(self, pixels):
        """Stored bytes of a tile of rows, columns, bands."""
        pixels = np.ascontiguousarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels)
        if self.compress is None:
            return pixels.tobytes()
        predict = imagecodecs.floatpred_encode if self.predictor == 3 else imagecodecs.delta_encode
        return self.compress(np.ascontiguousarray(predict(pixels, axis=1)), level=self.level)


class Pyramid:
    """Overviews of the tiles' pixels, each padded to whole tiles."""

    def __init__(self, job, source, count):
        self.side, self.levels = source.side, []
        for factor in job.overview_factors(source.width, source.height):
            width, height = -(-source.width // factor), -(-source.height // factor)
            rows, columns = (-(-n // self.side) * self.side for n in (height, width))
            self.levels.append((width, height, np.zeros((rows, columns, count), job.type)))

    def add(self, half, pixels, x, y):
        if self.levels:
            n = self.side // 2
            half(pixels, self.levels[0][2][y * n:(y + 1) * n, x * n:(x + 1) * n])

    def halve(self, half):
        for (_, _, above), (_, _, level) in zip(self.levels, self.levels[1:]):
            h, w = above.shape[0] // 2, above.shape[1] // 2
            half(above, level[:h, :w])

    def tiles(self, level):
        n = self.side
        return [level[y:y + n, x:x + n] for y in range(0, level.shape[0], n) for x in range(0, level.shape[1], n)]


def threads(n=None):
    """A thread a core unless n is given."""
    return ThreadPoolExecutor(n or len(os.sched_getaffinity(0)))


def write(job, source, encode, pyramid, parts, pool):
    views = [list(pool.map(encode, pyramid.tiles(level))) for _, _, level in pyramid.levels]
    code, count = COMPRESSION[job.codec], len(job.outputs)
    options = {"dtype": job.type, "tile": (source.side, source.side), "photometric": "minisblack", "compression": code if code > 1 else None,
               "predictor": encode.predictor if encode.predictor > 1 else None, "planarconfig": "contig" if count > 1 else None, "metadata": None}
    shape = lambda height, width: (height, width, count) if count > 1 else (height, width)  # noqa: E731
    size = sum(map(len, parts)) + sum(map(len, sum(views, [])))
    with tifffile.TiffWriter(job.out, bigtiff=size > 4e9) as out:
        nodata = str(job.nodata)
        out.write(iter(parts), shape=shape(source.height, source.width), extratags=[*source.geo, (42113, "s", len(nodata) + 1, nodata, True)], **options)
        for (width, height, _), tiles in zip(pyramid.levels, views):
            out.write(iter(tiles), shape=shape(height, width), subfiletype=1, **options)


def pixels_by_formula(job, source):
    """A function of a tile's number, giving its pixels."""
    code = kernels(job, list(job.outputs.values()), job.type)

    def compute(i):
        made = np.empty((source.side, source.side, len(job.outputs)), job.type)
        code.tile(source.tile(i), made)
        return made
    return code, compute


def pixels_by_gaussian(job, source, pool):
    """The band is decoded first, because no tile may be decoded again for its neighbours."""
    import cv2
    cv2.setNumThreads(1)
    code = kernels(job, list(job.outputs.values()), "uint16")
    side, halo, line = source.side, job.gaussian // 2, np.array(job.weights(), np.float32)
    band = np.empty((source.down * side, source.across * side, 1), np.uint16)

    def decode(i):
        y, x = divmod(i, source.across)
        code.tile(source.tile(i), band[y * side:(y + 1) * side, x * side:(x + 1) * side])
    list(pool.map(decode, range(len(source.counts))))
    whole = band[:source.height, :source.width, 0]

    def compute(i):
        y, x = (n * side for n in divmod(i, source.across))
        top, left = max(y - halo, 0), max(x - halo, 0)
        part = whole[top:y + side + halo, left:x + side + halo].astype(np.float32)
        done = cv2.sepFilter2D(part, -1, line, line, borderType=cv2.BORDER_REFLECT_101)[y - top:, x - left:][:side, :side]
        made = np.zeros((side, side, 1), np.float32)
        made[:done.shape[0], :done.shape[1], 0] = done
        return made
    return code, compute


def encode_tiles(source, compute, half, made, pool):
    """Encodes the tiles that compute(i) gives, and fills the pyramid. made: (encoder, pyramid)."""
    encode, pyramid = made

    def one(i):
        pixels = compute(i)
        y, x = divmod(i, source.across)
        pyramid.add(half, pixels, x, y)
        return encode(pixels)
    parts = list(pool.map(one, range(len(source.counts))))
    pyramid.halve(half)
    return parts


def make(job, source, n_threads=None):
    encode, pyramid = Encoder(job), Pyramid(job, source, len(job.outputs))
    with threads(n_threads) as pool:
        code, compute = pixels_by_gaussian(job, source, pool) if job.gaussian else pixels_by_formula(job, source)

        parts = encode_tiles(source, compute, code.half, (encode, pyramid), pool)
        write(job, source, encode, pyramid, parts, pool)


def main():
    job = read_job()
    source = Source(job.source)
    if sys.argv[2:] == ["compile"]:
        source.cut(CORNER)
    make(job, source)
    sync(job.out)


if __name__ == "__main__":
    main()
