#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: sanitized
"""Filters against their definitions in numpy, through `pushbroom run`: odd sizes, pixels without data, one tile and several."""
import numpy as np
from osgeo import gdal

import pbtest
from test_operators import NODATA, compute, near, same, terrain, windows_of

gdal.UseExceptions()


def footprint(shape, size, angle=0):
    r = size // 2
    y, x = np.mgrid[-r:r + 1, -r:r + 1]
    return {"square": np.ones((size, size), bool), "disc": x * x + y * y <= r * r, "diamond": abs(x) + abs(y) <= r, "cross": (x == 0) | (y == 0),
            "line": {0: y == 0, 45: x == -y, 90: x == 0, 135: x == y}[angle]}[shape]


def extreme(z, element, least):
    """The least or greatest valid value under the element; NaN where z is: grey_erosion and grey_dilation of scipy.ndimage with nothing outside."""
    none = np.inf if least else -np.inf
    r = element.shape[0] // 2
    padded = np.pad(np.where(np.isnan(z), none, z), r, constant_values=none)
    windows = np.lib.stride_tricks.sliding_window_view(padded, element.shape)[:, :, element]
    return np.where(np.isnan(z), np.nan, windows.min(-1) if least else windows.max(-1)).astype(np.float32)


def morphology(z, operation, element):
    def erode(v):
        return extreme(v, element, True)

    def dilate(v):
        return extreme(v, element, False)
    return {"erode": erode, "dilate": dilate, "open": lambda v: dilate(erode(v)), "close": lambda v: erode(dilate(v)),
            "tophat": lambda v: v - dilate(erode(v)), "blackhat": lambda v: erode(dilate(v)) - v, "gradient": lambda v: dilate(v) - erode(v)}[operation](z)


def read(scene):
    z = gdal.Open(str(scene)).ReadAsArray()
    return np.where(z == NODATA, np.nan, z).astype(np.float32)


def test_morphology_is_that_of_the_definition(scratch):
    scene = terrain(scratch / "dem.tif", 203, 111, 0.05)
    z = read(scene)
    for operation, shape, size, angle in (("erode", "square", 3, 0), ("dilate", "square", 31, 0), ("open", "disc", 9, 0), ("close", "square", 7, 0),
                                          ("tophat", "line", 5, 45), ("blackhat", "line", 7, 135), ("gradient", "diamond", 11, 0), ("dilate", "cross", 15, 0),
                                          ("close", "line", 9, 90), ("erode", "disc", 31, 0)):
        step = f"morphology: {{operation: {operation}, shape: {shape}, size: {size}, {f'angle: {angle}, ' if angle else ''}bands: {{OUT: DEM}}}}"
        same(compute(scratch, scene, step), morphology(z, operation, footprint(shape, size, angle)), None)


def test_tiled_mask_morphology_equals_the_whole_image(scratch):
    scene = terrain(scratch / "dem.tif", 1000, 517, 0.01)
    theirs = morphology(np.where(np.isnan(read(scene)), np.nan, read(scene) > 320), "open", footprint("disc", 13))
    path = scratch / "mask.tif"
    out = gdal.GetDriverByName("GTiff").CreateCopy(str(path), gdal.Open(str(scene)))
    out.GetRasterBand(1).WriteArray(np.where(np.isnan(read(scene)), NODATA, read(scene) > 320))
    del out
    ours = compute(scratch, path, "morphology: {operation: open, shape: disc, size: 13, bands: {OUT: DEM}}", memory="16MiB")
    same(ours, theirs, None)
    assert set(np.unique(ours[np.isfinite(ours)])) == {0, 1}


def weighted(scene, weights, edge="reflect"):
    """In float64; NaN where one of the neighbourhood is invalid."""
    windows = windows_of(scene, weights.shape[0], edge).astype(np.float64)
    return np.einsum("yxij,ij->yx", windows, weights)


def test_convolution_up_to_31_px_equals_its_definition(scratch):
    scene = terrain(scratch / "dem.tif", 203, 111, 0.0001)
    random = np.random.default_rng(7)
    for size, whole in ((31, False), (17, True), (5, True)):
        weights = np.outer(*random.integers(-9, 10, (2, size))) if whole else random.normal(0, 1, (size, size)).astype(np.float32)
        text = ", ".join(str(float(w)) for w in weights.ravel())
        ours = compute(scratch, scene, f"convolve: {{weights: [{text}], bands: {{OUT: DEM}}}}")
        near(ours, weighted(scene, weights), 1e-5, 1e-5 * 400 * np.abs(weights).sum() / 10)
    along = np.array([-1.0, 0, 1])
    for kernel, across in (("prewitt", [1, 1, 1]), ("scharr", [3, 10, 3]), ("sobel", [1, 2, 1])):
        gx = np.outer(across, along)
        ours = compute(scratch, scene, f"convolve: {{kernel: {kernel}, edge: clamp, bands: {{OUT: DEM}}}}")
        near(ours, np.hypot(weighted(scene, gx, "clamp"), weighted(scene, gx.T, "clamp")), 1e-5, 1e-3)
    for kernel, corner in (("laplacian", 0), ("laplacian8", 1)):
        weights = np.array([[corner, 1, corner], [1, -4 - 4 * corner, 1], [corner, 1, corner]])
        near(compute(scratch, scene, f"convolve: {{kernel: {kernel}, bands: {{OUT: DEM}}}}"), weighted(scene, weights), 1e-5, 2e-3)


def test_unsharp_adds_what_a_gaussian_takes_away(scratch):
    scene = terrain(scratch / "dem.tif", 203, 111, 0.0005)
    z = read(scene).astype(np.float64)
    for radius, amount, threshold in ((1, 1, 0), (5, 0.5, 3), (1.7, 2, 1)):
        reach = int(np.ceil(3 * radius))
        line = np.exp(-np.arange(-reach, reach + 1) ** 2 / (2 * radius ** 2))
        detail = z - weighted(scene, np.outer(line, line) / line.sum() ** 2)
        theirs = np.where(np.abs(detail) >= threshold, z + amount * detail, z)
        theirs[np.isnan(detail)] = np.nan
        ours = compute(scratch, scene, f"unsharp: {{radius: {radius}, amount: {amount}, threshold: {threshold}, bands: {{OUT: DEM}}}}")
        surely = ~(np.abs(np.abs(detail) - threshold) < 1e-3)
        near(np.where(surely, ours, 0), np.where(surely, theirs, 0), 1e-6, 1e-3)


if __name__ == "__main__":
    pbtest.main()
