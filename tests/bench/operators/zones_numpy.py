# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""zones_numpy.py CLASSES VALUES OUT.csv: pixels, least, greatest, mean, deviation and sum of the values of each class, written with GDAL and numpy: both rasters in memory, counts and sums by bincount."""
import csv
import sys

import numpy as np
from osgeo import gdal

gdal.UseExceptions()
classes = gdal.Open(sys.argv[1]).ReadAsArray().ravel()
values = gdal.Open(sys.argv[2]).ReadAsArray().ravel()
wide = values.astype(np.float64)
pixels, total, squares = np.bincount(classes), np.bincount(classes, wide), np.bincount(classes, wide * wide)
with open(sys.argv[3], "w", newline="") as out:
    table = csv.writer(out)
    table.writerow(["CLASS", "pixels", "B_min", "B_max", "B_mean", "B_std", "B_sum"])
    for k in np.flatnonzero(pixels):
        if k == 0:
            continue  # nodata
        own, mean = values[classes == k], total[k] / pixels[k]
        table.writerow([k, pixels[k], own.min(), own.max(), mean, (squares[k] / pixels[k] - mean * mean)**0.5, total[k]])
