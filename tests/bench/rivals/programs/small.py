# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""A rival for many small scenes: one script that makes the normalised difference of all of them, a scene a core at a time.

    small.py JOB.json rasterio|codecs [compile]     JOB's `sources` has the scenes, `outs` the products

rasterio with numpy has a process a core, which is a little faster than threads. The other one has threads, and makes each tile as codecs_tiles.py does."""
import copy
import os
import sys
from concurrent.futures import ProcessPoolExecutor

from job import read_job, sync  # sets GDAL's options: before rasterio

os.environ["GDAL_NUM_THREADS"] = "1"


def by_rasterio(job):
    import numpy as np
    import rasterio

    (formula,) = job.outputs.values()
    code = compile(formula, formula, "eval")

    def one(pair):
        source, out = pair
        with rasterio.open(source) as scene:
            bands = {n: scene.read(i, out_dtype=np.float32) for n, i in job.bands.items() if n in formula}
            profile = {**scene.profile, "count": 1, "dtype": job.type, "nodata": float(job.nodata), "compress": job.compress, "zlevel": job.level or 1,
                       "predictor": 3, "interleave": "band"}
        with rasterio.open(out, "w", **profile) as product:
            product.write(eval(code, {"__builtins__": {}}, bands), 1)
        sync(out)
    return one


def by_codecs(job):
    import codecs_tiles as codecs

    def one(pair):
        own = copy.copy(job)
        own.source, own.out = pair
        codecs.make(own, codecs.Source(own.source), n_threads=1)
        sync(own.out)
    return one


one = None  # the work of a process: set before processes are forked


def call(pair):
    one(pair)


def main():
    global one
    job, engine = read_job(), sys.argv[2]
    pairs = list(zip(job.sources, job.outs))
    if engine == "codecs":
        import codecs_tiles as codecs
        one = by_codecs(job)
        with codecs.threads() as pool:
            list(pool.map(call, pairs[:1] if sys.argv[3:] else pairs))
        return
    one = by_rasterio(job)
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        list(pool.map(call, pairs, chunksize=4))


main()
