# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""rival.py ENGINE SECONDS: reads expressions, a line each, and answers each with ns a pixel made on one thread (its CPU time, as bench_ops takes), the best of at most SECONDS, or null and why.
`copy` is what the machine takes to copy a pixel: 2 bytes read and 4 written, in planes that no cache holds."""
import json
import sys
import time

import numpy as np

import written

SIDE = 512


def names_of(engine):
    stored = np.random.default_rng(1).integers(0, 16384, (3, SIDE, SIDE)).astype(np.uint16)
    a, b, c = stored.astype(np.float32) * np.float32(1e-4)

    def disc(r):
        y, x = np.mgrid[-r:r + 1, -r:r + 1]
        return (x * x + y * y <= r * r).astype(np.uint8)

    def cross(r):
        footprint = np.zeros((2 * r + 1, 2 * r + 1), np.uint8)
        footprint[r, :] = footprint[:, r] = 1
        return footprint

    def load(samples):
        pixels = samples * np.float32(1e-4)
        pixels[samples == 0] = np.nan
        return pixels

    known = {"np": np, "a": a, "b": b, "c": c, "load": load, **dict(zip("ABC", stored)), "disc": disc, "cross": cross, "line": lambda n: np.eye(n, dtype=np.uint8)[::-1].copy(),
             **{f.__name__: f for f in (written.profile_curvature, written.unmix, written.nnls_rest, written.refined_lee)}}
    if engine == "scipy":
        import scipy.ndimage
        known["nd"] = scipy.ndimage
    elif engine == "opencv":
        import cv2
        cv2.setNumThreads(1)
        known["cv2"] = cv2
    elif engine == "gdal":
        from osgeo import gdal
        gdal.UseExceptions()
        d = gdal.GetDriverByName("MEM").Create("", SIDE, SIDE, 1, gdal.GDT_Float32)
        d.SetGeoTransform((0, 30, 0, 0, 0, -30))
        d.GetRasterBand(1).WriteArray(a)
        known.update(gdal=gdal, d=d, dem=lambda kind, **options: gdal.DEMProcessing("", d, kind, format="MEM", **options))
    return known


def copy():
    """np.copyto converts as it copies; its arithmetic is hidden by memory."""
    source, to = np.zeros(1 << 26, np.uint16), np.zeros(1 << 26, np.float32)
    best = min(timed(lambda: np.copyto(to, source)) for _ in range(3))
    return best / source.size * 1e9


def timed(work):
    start = time.thread_time()
    work()
    return time.thread_time() - start


def pixels_of(made):
    return made.size if isinstance(made, np.ndarray) else made.RasterXSize * made.RasterYSize


def ns_a_pixel(work, seconds):
    made, best, end = pixels_of(work()), timed(work), time.perf_counter() + seconds
    while time.perf_counter() < end:
        best = min(best, timed(work))
    return best / made * 1e9


def main():
    engine, seconds = sys.argv[1], float(sys.argv[2])
    try:
        known = names_of(engine)
    except ImportError as e:
        known = e
    for line in sys.stdin:
        try:
            if isinstance(known, ImportError):
                raise known
            told = copy() if line.strip() == "copy" else ns_a_pixel(eval(f"lambda: {line}", known), seconds)  # expressions of rows.py
            print(json.dumps({"ns": told}), flush=True)
        except Exception as e:  # any error of an engine of some version
            print(json.dumps({"ns": None, "why": f"{type(e).__name__}: {e}"}), flush=True)


main()
