# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""A rival for samples/vegetation.yaml: COG, quicklook, statistics and STAC item, with one reading of the scene, by rasterio and numpy or numexpr.

    products.py JOB.json numpy|numexpr"""
import json
import pathlib
import sys
import threading
import warnings

from job import read_job, sync  # sets GDAL's options: before rasterio
import blake3
import numpy as np
import rasterio
from rasterio.warp import transform_bounds

import engines
from windows import each, fill, store

BUCKETS, SIDE = 256, 1024
warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)  # for the PNG


class Seen:
    """Sample of each window while it is in the cache: every n-th pixel of red, green and blue, and sums of the outputs."""

    def __init__(self, count, height, width):
        self.step = -(-max(width, height) // SIDE)
        self.picture = np.zeros((3, -(-height // self.step), -(-width // self.step)), np.float32)
        self.low, self.high = np.full(count, np.inf), np.full(count, -np.inf)
        self.sum, self.squares, self.n = np.zeros(count), np.zeros(count), 0
        self.lock = threading.Lock()

    def __call__(self, bands, window, outputs):
        x, y, _, _ = window
        left, top = -x % self.step, -y % self.step
        for to, name in zip(self.picture, "RGB"):
            part = bands[name][top::self.step, left::self.step]
            to[(y + top) // self.step:, (x + left) // self.step:][:part.shape[0], :part.shape[1]] = part
        low, high = outputs.min((1, 2)), outputs.max((1, 2))
        sums = outputs.sum((1, 2), dtype=np.float64)
        squares = np.array([np.dot(o := band.ravel(), o) for band in outputs], np.float64)
        with self.lock:
            self.low, self.high = np.minimum(self.low, low), np.maximum(self.high, high)
            self.sum, self.squares, self.n = self.sum + sums, self.squares + squares, self.n + outputs[0].size


def histograms(array, seen):
    scale = (BUCKETS / np.maximum(seen.high - seen.low, 1e-30)).astype(np.float32)
    low = seen.low.astype(np.float32)

    def one(window):
        part = engines.place(array, *window)
        return [np.bincount(np.minimum(((band - l) * s).astype(np.int32), BUCKETS - 1).ravel(), minlength=BUCKETS) for band, l, s in zip(part, low, scale)]
    return np.sum(each(array, one), axis=0)


def write_statistics(path, job, seen, counts):
    mean = seen.sum / seen.n
    deviation = np.sqrt(np.maximum(seen.squares / seen.n - mean * mean, 0))
    told = {name: {"count": seen.n, "min": lo, "max": hi, "mean": m, "stddev": d, "histogram": h} for name, lo, hi, m, d, h in zip(
        job.outputs, seen.low.tolist(), seen.high.tolist(), mean.tolist(), deviation.tolist(), counts.tolist())}
    path.write_text(json.dumps(told))


def stretched(picture):
    low, high = np.percentile(picture, (2, 98), axis=(1, 2))
    return np.clip((picture - low[:, None, None]) * (255 / (high - low))[:, None, None], 0, 255).astype(np.uint8)


def write_quicklook(path, picture):
    bytes_ = stretched(picture)
    with rasterio.open(path, "w", driver="PNG", count=3, height=bytes_.shape[1], width=bytes_.shape[2], dtype="uint8") as d:
        d.write(bytes_)


def digest(path):
    """BLAKE3, like pushbroom's default; the library has all cores for it."""
    return blake3.blake3(max_threads=blake3.blake3.AUTO).update_mmap(path).hexdigest()


def write_item(path, job, like, files):
    box = transform_bounds(like.crs, "EPSG:4326", *like.bounds)
    w, s, e, n = box
    path.write_text(json.dumps({
        "type": "Feature", "stac_version": "1.0.0", "id": pathlib.Path(job.source).stem, "bbox": box,
        "geometry": {"type": "Polygon", "coordinates": [[[w, s], [e, s], [e, n], [w, n], [w, s]]]}, "properties": {"datetime": "2026-06-21T10:30:31Z"},
        "links": [{"rel": "via", "href": f"ni:///blake3;{digest(job.source)}"}],
        "assets": {f.stem: {"href": f.name, "file:size": f.stat().st_size, "file:checksum": "1e20" + digest(f)} for f in files}}))


def files_of(job):
    cog = pathlib.Path(job.out)
    return cog, cog.with_suffix(".png"), cog.with_suffix(".statistics.json"), cog.with_suffix(".stac.json")


def main():
    job, engine = read_job(), sys.argv[2]
    cog, quicklook, statistics, item = files_of(job)
    with rasterio.Env(), rasterio.open(job.source) as like:
        array = np.empty((len(job.outputs), like.height, like.width), job.type)
        seen = Seen(*array.shape)
        fill({"numpy": engines.by_numpy, "numexpr": engines.by_numexpr}[engine](job, seen), array)
        write_statistics(statistics, job, seen, histograms(array, seen))
        write_quicklook(quicklook, seen.picture)
        store(job, array, like)
        write_item(item, job, like, [cog, quicklook, statistics])
    sync(cog, quicklook, statistics, item)


if __name__ == "__main__":
    main()
