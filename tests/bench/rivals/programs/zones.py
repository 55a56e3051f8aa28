# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Rivals for the means of many polygons, written as a CSV table of polygon and mean.

    zones.py JOB.json exactextract     which counts the share of each pixel
    zones.py JOB.json gdal             `gdal raster zonal-stats` of the newest GDAL, by its Python module"""
import csv
import sys

from job import read_job, sync  # sets GDAL's options: before osgeo
from osgeo import gdal, ogr

gdal.UseExceptions()
ogr.UseExceptions()


def by_exactextract(job, band):
    from exactextract import exact_extract
    from exactextract.raster import GDALRasterSource
    found = exact_extract(GDALRasterSource(job.source, band), job.polygons, ["mean"], include_cols=["field"])
    return [(f["properties"]["field"], f["properties"]["mean"]) for f in found]


def by_gdal(job, band):
    with gdal.Run("raster", "zonal-stats", input=job.source, zones=job.polygons, output="", output_format="MEM", band=[band], stat=["mean"], include_field=["field"]) as done:
        dataset = done.Output()
        return [(f["field"], f["mean"]) for f in dataset.GetLayer(0)]


def main():
    job = read_job()
    (name,) = job.outputs.values()
    rows = {"exactextract": by_exactextract, "gdal": by_gdal}[sys.argv[2]](job, job.bands[name])
    with open(job.out, "w", newline="", encoding="ascii") as out:
        table = csv.writer(out)
        table.writerow(["field", f"{name}_mean"])
        table.writerows(rows)
    sync(job.out)


main()
