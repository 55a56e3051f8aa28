# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""A rival for samples/vegetation.yaml: COG, quicklook, statistics and STAC item, with one decoding of the scene, as codecs_tiles.py makes a COG. numba
also sums, counts and samples the picture; the pixels stay in memory for the histograms. Only the item's box on the ground uses rasterio.

    products_tiles.py JOB.json [compile]"""
import os
import pathlib
import sys
import types

os.environ["NUMBA_CACHE_DIR"] = str(pathlib.Path(sys.argv[1]).parent)  # before numba
import codecs_tiles as codecs
import imagecodecs
import numba
import numpy as np
import products
import rasterio
from job import read_job, sync


@numba.njit(nogil=True, cache=True)
def sums(o, h, w, out):
    """Minimum, maximum, sum and sum of squares of each channel."""
    for c in range(o.shape[2]):
        low, high, total, squares = np.inf, -np.inf, 0.0, 0.0
        for y in range(h):
            for x in range(w):
                v = o[y, x, c]
                low, high, total, squares = min(low, v), max(high, v), total + v, squares + v * v
        out[c, 0], out[c, 1], out[c, 2], out[c, 3] = low, high, total, squares


@numba.njit(nogil=True, cache=True)
def count(o, h, w, low, scale, counts):
    last = counts.shape[1] - 1
    for y in range(h):
        for x in range(w):
            for c in range(o.shape[2]):
                counts[c, min(int((o[y, x, c] - low[c]) * scale[c]), last)] += 1


@numba.njit(nogil=True, cache=True)
def sample(t, bands, top, left, step, out):
    """Every step-th sample of every step-th row of the bands."""
    for i in range(len(bands)):
        for y in range(top, t.shape[0], step):
            value = np.uint16(0)
            for x in range(t.shape[1]):
                value = np.uint16(value + t[y, x, bands[i]])
                if x >= left and (x - left) % step == 0:
                    out[i, (y - top) // step, (x - left) // step] = value


class Scene:
    def __init__(self, job, source):
        self.job, self.source, self.step = job, source, -(-max(source.width, source.height) // products.SIDE)
        self.code = codecs.kernels(job, list(job.outputs.values()), job.type)
        self.bands = np.array([job.bands[n] - 1 for n in "RGB"])
        side = source.side
        self.tiles = np.empty((len(source.counts), side, side, len(job.outputs)), np.float32)
        self.sums = np.empty((len(source.counts), len(job.outputs), 4))
        self.picture = np.zeros((3, -(-source.height // self.step) + side, -(-source.width // self.step) + side), np.float32)

    def place(self, i):
        """Left, top, width and height of a tile's pixels in the scene."""
        y, x = (n * self.source.side for n in divmod(i, self.source.across))
        return x, y, min(self.source.side, self.source.width - x), min(self.source.side, self.source.height - y)

    def compute(self, i):
        stored, made = self.source.tile(i), self.tiles[i]
        self.code.tile(stored, made)
        x, y, w, h = self.place(i)
        sums(made, h, w, self.sums[i])
        left, top = -x % self.step, -y % self.step
        sample(stored, self.bands, top, left, self.step, self.picture[:, (y + top) // self.step:, (x + left) // self.step:])
        return made

    def seen(self):
        """Statistics of all tiles, and the picture."""
        s = self.sums
        height, width = (-(-n // self.step) for n in (self.source.height, self.source.width))
        return types.SimpleNamespace(low=s[:, :, 0].min(0), high=s[:, :, 1].max(0), sum=s[:, :, 2].sum(0), squares=s[:, :, 3].sum(0), n=self.source.width * self.source.height,
                                     picture=self.picture[:, :height, :width] * np.float32(self.job.scale))

    def histograms(self, seen, pool):
        scale = products.BUCKETS / np.maximum(seen.high - seen.low, 1e-30)

        def one(i):
            counts = np.zeros((len(scale), products.BUCKETS), np.int64)
            _, _, w, h = self.place(i)
            count(self.tiles[i], h, w, seen.low, scale, counts)
            return counts
        return sum(pool.map(one, range(len(self.tiles))))


def make(job, source):
    cog, quicklook, statistics, item = products.files_of(job)
    scene, encode, pyramid = Scene(job, source), codecs.Encoder(job), codecs.Pyramid(job, source, len(job.outputs))
    with codecs.threads() as pool:
        parts = codecs.encode_tiles(source, scene.compute, scene.code.half, (encode, pyramid), pool)
        seen = scene.seen()
        products.write_statistics(statistics, job, seen, scene.histograms(seen, pool))
        quicklook.write_bytes(imagecodecs.png_encode(np.ascontiguousarray(np.moveaxis(products.stretched(seen.picture), 0, 2))))
        codecs.write(job, source, encode, pyramid, parts, pool)
    with rasterio.open(job.source) as like:
        products.write_item(item, job, like, [cog, quicklook, statistics])
    sync(cog, quicklook, statistics, item)


def main():
    job = read_job()
    source = codecs.Source(job.source)
    if sys.argv[2:] == ["compile"]:
        source.cut(codecs.CORNER)
    make(job, source)


main()
