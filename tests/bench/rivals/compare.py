# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Checks that a product has the pixels that numpy computes from the scene, and the first overview the means of these. numpy's arithmetic is
float32 for formulas, as the contestants', and float64 for Gaussians. Read by Debian's GDAL."""
import csv

import numpy as np
from osgeo import gdal, ogr

from .rows import BANDS
from .scene import polygons_of

gdal.UseExceptions()
ogr.UseExceptions()
gdal.SetConfigOption("GDAL_NUM_THREADS", "ALL_CPUS")
ROWS_AT_A_TIME = 512  # even, because a pixel of the overview needs two rows
EVERY = 8  # strips of which one is compared, and the last one


def read(dataset, numbers, y, n, kind=None):
    pixels = dataset.ReadAsArray(0, y, dataset.RasterXSize, n, band_list=numbers)
    pixels = pixels if pixels.ndim == 3 else pixels[np.newaxis]
    return pixels if kind is None else pixels.astype(kind)


def gaussian(pixels, size):
    sigma = 0.3 * ((size - 1) / 2 - 1) + 0.8
    line = np.exp(-((np.arange(size) - size // 2) ** 2) / (2 * sigma * sigma))
    line /= line.sum()
    h, w = pixels.shape[0] - size + 1, pixels.shape[1] - size + 1
    down = sum(weight * pixels[i:i + h] for i, weight in enumerate(line))
    return sum(weight * down[:, i:i + w] for i, weight in enumerate(line))


def expected(row, scene, y, n):
    """Strips of the row's bands, and the number of rows and columns at the image's edges that are not compared: rivals differ in the values outside of it."""
    halo = row.gaussian // 2
    if row.gaussian:
        top, bottom = max(y - halo, 0), min(y + n + halo, scene.RasterYSize)
        (pixels,) = read(scene, [BANDS[f] for f in row.outputs.values()], top, bottom - top, np.float64)
        pad = ((halo - (y - top), halo - (bottom - y - n)), (halo, halo))
        return gaussian(np.pad(pixels, pad, mode="reflect"), row.gaussian)[np.newaxis]
    kind = np.dtype(row.type)
    bands = {name: read(scene, [number], y, n, kind)[0] for name, number in BANDS.items() if number <= scene.RasterCount}
    if row.scale:
        bands = {name: pixels * np.float32(row.scale) for name, pixels in bands.items()}
    return np.stack([eval(f, {"__builtins__": {}}, bands) for f in row.outputs.values()])


def worst(want, got):
    """The largest difference, of floats relative where a value is above 1; infinite where one is nodata and the other is not."""
    whole = got.dtype.kind in "iu"
    want, got = want.astype(np.float64), got.astype(np.float64)
    if not np.array_equal(np.isnan(want), np.isnan(got)):
        return np.inf
    return float(np.nanmax(np.abs(want - got) / (1 if whole else np.maximum(np.abs(want), 1)), initial=0))


def halved(pixels):
    h, w = pixels.shape[1] // 2 * 2, pixels.shape[2] // 2 * 2
    p = pixels[:, :h, :w].astype(np.float64)
    return (p[:, ::2, ::2] + p[:, 1::2, ::2] + p[:, ::2, 1::2] + p[:, 1::2, 1::2]) / 4


def overview_strip(product, numbers, y, n):
    views = [product.GetRasterBand(i).GetOverview(0) for i in numbers]
    return np.stack([v.ReadAsArray(0, y // 2, v.XSize, n // 2) for v in views])


def check_means(row, scene_path, table_path, _every):
    """None, or the error: a polygon is missing, or its mean differs from that of its pixels. A pixel belongs to a polygon if its centre does; the tolerance
    is for rivals that count shares of pixels."""
    scene, polygons = gdal.Open(str(scene_path)), ogr.Open(str(polygons_of(scene_path, row.polygons)))
    ids = gdal.GetDriverByName("MEM").Create("", scene.RasterXSize, scene.RasterYSize, 1, gdal.GDT_Int32)
    ids.SetGeoTransform(scene.GetGeoTransform())
    ids.SetProjection(scene.GetProjection())
    gdal.RasterizeLayer(ids, [1], polygons.GetLayer(0), options=["ATTRIBUTE=field"])
    (name,) = row.outputs.values()
    ids, pixels = ids.ReadAsArray().ravel(), read(scene, [BANDS[name]], 0, scene.RasterYSize)[0].ravel()
    with np.errstate(invalid="ignore"):
        want = np.bincount(ids, pixels)[1:] / np.bincount(ids)[1:]
    found = {int(line["field"]): float(line[f"{name}_mean"]) for line in csv.DictReader(table_path.read_text().splitlines())}
    if sorted(found) != list(range(1, len(want) + 1)):
        return f"{len(found)} of {len(want)} polygons"
    off = np.nanmax(np.abs([found[i + 1] for i in range(len(want))] / want - 1))
    return f"means differ by {off:.2g}" if off > row.tolerance else None


def check(row, scene_path, product_path, every=1):
    """None, or what is wrong. Compares one strip of `every`, and the last one."""
    scene, product = gdal.Open(str(scene_path)), gdal.Open(str(product_path))
    numbers = list(range(1, len(row.outputs) + 1))
    if (product.RasterXSize, product.RasterYSize, product.RasterCount) != (scene.RasterXSize, scene.RasterYSize, len(numbers)):
        return "another size or number of bands"
    if gdal.GetDataTypeName(product.GetRasterBand(1).DataType).lower() != row.type:
        return f"pixels of {gdal.GetDataTypeName(product.GetRasterBand(1).DataType)}"
    has_views = product.GetRasterBand(1).GetOverviewCount() > 0
    if has_views != row.overviews and scene.RasterXSize > 512:
        return "no overviews" if row.overviews else "overviews that nobody asked for"
    edge, found, in_views = row.gaussian // 2, 0.0, 0.0
    strips = range(0, scene.RasterYSize, ROWS_AT_A_TIME)
    for y in sorted({*strips[::every], strips[-1]}):
        n = min(ROWS_AT_A_TIME, scene.RasterYSize - y)
        want, got = expected(row, scene, y, n), read(product, numbers, y, n)
        inner = np.s_[:, max(edge - y, 0):n - max(y + n + edge - scene.RasterYSize, 0), edge:scene.RasterXSize - edge]
        found = max(found, worst(want[inner], got[inner]))
        if has_views and not edge:
            means = halved(want)
            in_views = max(in_views, worst(means, overview_strip(product, numbers, y, n)[:, :means.shape[1], :means.shape[2]]))
    if found > row.tolerance:
        return f"pixels differ by {found:.2g}"
    rounding = 1 if row.type != "float32" else 0  # the mean is rounded to a whole number
    if in_views > row.tolerance + rounding:
        return f"the first overview differs by {in_views:.2g}"
    return None
