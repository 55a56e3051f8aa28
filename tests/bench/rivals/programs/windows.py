# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""A rival: windows of the scene, one a thread, read by rasterio, computed by numpy, numexpr, OpenCV or a VRT's pixel function,
kept in memory and written by GDAL's COG driver.

    windows.py JOB.json numpy|numexpr|opencv|vrt"""
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

from job import read_job, sync  # sets GDAL's options: before rasterio
import numpy as np
import rasterio
import rasterio.shutil
from rasterio.enums import Resampling
from rasterio.windows import Window

import engines

SIDE = 1024  # side of a window: four blocks; its results stay in the second-level cache


def windows(width, height):
    for y in range(0, height, SIDE):
        for x in range(0, width, SIDE):
            yield x, y, min(SIDE, width - x), min(SIDE, height - y)


class Reader:
    """One dataset a thread."""

    def __init__(self, path):
        self.path, self.own = path, threading.local()

    def read(self, numbers, x, y, w, h, **more):
        if not hasattr(self.own, "dataset"):
            self.own.dataset = rasterio.open(self.path)
        return self.own.dataset.read(numbers, window=Window(x, y, w, h), **more)


class Memory:
    """A band that was read before, so that no block is decoded again for its neighbours: windows with a halo, cut at the edges of the image."""

    def __init__(self, band):
        self.band = band

    def around(self, x, y, w, h, halo):
        """Pixels as float32; also the place in them where the window begins."""
        left, top = max(x - halo, 0), max(y - halo, 0)
        return self.band[top:y + h + halo, left:x + w + halo].astype(np.float32), x - left, y - top


def each(array, work):
    """work(window) for every window of the array, a thread a core."""
    height, width = array.shape[1:]
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        return list(pool.map(work, windows(width, height)))


def fill(prepared, array):
    source, compute = prepared
    reader = Reader(source) if isinstance(source, str) else Memory(source)
    each(array, lambda window: compute(reader, window, array))


def computed(job, engine, like):
    """The array of all outputs."""
    array = np.empty((len(job.outputs), like.height, like.width), job.type)
    if job.gaussian and engine != "vrt":
        band = np.empty((1, like.height, like.width), like.dtypes[0])
        fill(engines.unchanged(job), band)
        fill(engines.gaussian(job, engine, band[0]), array)
    else:
        fill(engines.prepare(job, engine), array)
    return array


def store(job, array, like):
    """The array in memory is GDAL's dataset; overviews are made of it in memory, so that nothing is decoded again."""
    count, height, width = array.shape
    t = like.transform
    name = f"MEM:::DATAPOINTER={array.ctypes.data},PIXELS={width},LINES={height},BANDS={count},DATATYPE={job.type.capitalize().replace('Uint', 'UInt')}," \
           f"GEOTRANSFORM={t.c}/{t.a}/{t.b}/{t.f}/{t.d}/{t.e},SPATIALREFERENCE={like.crs.to_string()}"
    with rasterio.open(name, "r+") as memory:
        memory.nodata = float(job.nodata)
        factors = job.overview_factors(width, height)
        if factors:
            memory.build_overviews(factors, Resampling.average)
        rasterio.shutil.copy(memory, job.out, driver="COG", **job.cog_options())


def main():
    job, engine = read_job(), sys.argv[2]
    with rasterio.Env(), rasterio.open(job.source) as like:
        store(job, computed(job, engine, like), like)
    sync(job.out)


if __name__ == "__main__":
    main()
