# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Engines of windows.py. Each engine takes a job and gives the file to read and a function (reader, window, array) that
fills the window's place in the array."""
import os
import pathlib
import re

import numpy as np

import vrt


def used(job):
    """The bands that the formulas name, in a fixed order."""
    words = set(re.findall(r"[A-Za-z]\w*", " ".join(job.outputs.values())))
    return [name for name in job.bands if name in words]


def place(array, x, y, w, h):
    return array[:, y:y + h, x:x + w]


def unchanged(job):
    numbers = [job.bands[formula] for formula in job.outputs.values()]

    def compute(reader, window, array):
        x, y, w, h = window
        place(array, *window)[:] = reader.read(numbers, x, y, w, h)
    return job.source, compute


def planes(job, reader, window):
    names = used(job)
    pixels = reader.read([job.bands[n] for n in names], *window, out_dtype="float32")
    if job.scale:
        pixels *= np.float32(job.scale)
    return dict(zip(names, pixels))


def by_numpy(job, seen=None):
    codes = [compile(formula, formula, "eval") for formula in job.outputs.values()]
    constants = {"__builtins__": {}}

    def compute(reader, window, array):
        bands = planes(job, reader, window)
        for to, code in zip(place(array, *window), codes):
            to[:] = eval(code, constants, bands)
        if seen:
            seen(bands, window, place(array, *window))
    return job.source, compute


def by_numexpr(job, seen=None):
    """numexpr computes in double where a formula has a constant with a point: constants become float32 values with names. Exponents stay,
    since numexpr makes multiplications and roots of them."""
    import numexpr
    numexpr.set_num_threads(os.cpu_count())
    constants = {}

    def name(match):
        constants[f"c{len(constants)}"] = np.float32(match[0])
        return f"c{len(constants) - 1}"

    formulas = [re.sub(r"(?<![\w.])(?<!\*\* )\d+\.?\d*", name, formula) for formula in job.outputs.values()]

    def compute(reader, window, array):
        bands = planes(job, reader, window)
        for to, formula in zip(place(array, *window), formulas):
            numexpr.evaluate(formula, local_dict=bands | constants, global_dict={}, out=to, casting="same_kind")
        if seen:
            seen(bands, window, place(array, *window))
    return job.source, compute


def mirrored(job, reader, window):
    """A window with its halo; pixels outside the image mirror it without the edge pixel."""
    x, y, w, h = window
    halo = job.gaussian // 2
    pixels, left, top = reader.around(x, y, w, h, halo)
    pad = ((halo - top, halo - (pixels.shape[0] - top - h)), (halo - left, halo - (pixels.shape[1] - left - w)))
    return np.pad(pixels, pad, mode="reflect") if any(map(any, pad)) else pixels


def gaussian_by_numpy(job):
    line = [np.float32(w) for w in job.weights()]

    def compute(reader, window, array):
        _, _, w, h = window
        pixels = mirrored(job, reader, window)
        down = line[0] * pixels[:h]
        for i, weight in enumerate(line[1:], 1):
            down += weight * pixels[i:i + h]
        to = place(array, *window)[0]
        np.multiply(down[:, :w], line[0], out=to)
        for i, weight in enumerate(line[1:], 1):
            to += weight * down[:, i:i + w]
    return compute


def gaussian_by_numexpr(job):
    import numexpr
    numexpr.set_num_threads(os.cpu_count())
    line = job.weights()
    text = " + ".join(f"w{i} * p{i}" for i in range(len(line)))
    names = {f"w{i}": np.float32(w) for i, w in enumerate(line)}

    def compute(reader, window, array):
        _, _, w, h = window
        pixels = mirrored(job, reader, window)
        down = numexpr.evaluate(text, local_dict={**names, **{f"p{i}": pixels[i:i + h] for i in range(len(line))}}, global_dict={})
        numexpr.evaluate(text, local_dict={**names, **{f"p{i}": down[:, i:i + w] for i in range(len(line))}}, global_dict={},
                         out=place(array, *window)[0])
    return compute


def gaussian_by_opencv(job):
    import cv2
    cv2.setNumThreads(1)  # a window a thread already
    line = np.array(job.weights(), np.float32)  # GaussianBlur has weights of its own for small sizes

    def compute(reader, window, array):
        x, y, w, h = window
        pixels, left, top = reader.around(x, y, w, h, job.gaussian // 2)
        done = cv2.sepFilter2D(pixels, -1, line, line, borderType=cv2.BORDER_REFLECT_101)
        place(array, *window)[0] = done[top:top + h, left:left + w]
    return compute


def gaussian(job, engine, band):
    """band: the pixels, in memory."""
    return band, {"numpy": gaussian_by_numpy, "numexpr": gaussian_by_numexpr, "opencv": gaussian_by_opencv}[engine](job)


def by_vrt(job):
    """GDAL's own pixel functions and filters compute: the pixels of the VRT are the result."""
    path = pathlib.Path(job.out).with_suffix(".vrt")
    path.write_text(vrt.text(job))
    numbers = list(range(1, len(job.outputs) + 1))

    def compute(reader, window, array):
        x, y, w, h = window
        place(array, *window)[:] = reader.read(numbers, x, y, w, h)
    return str(path), compute


def prepare(job, engine):
    if engine == "vrt":
        return by_vrt(job)
    if all(formula in job.bands for formula in job.outputs.values()):
        return unchanged(job)
    return {"numpy": by_numpy, "numexpr": by_numexpr}[engine](job)
