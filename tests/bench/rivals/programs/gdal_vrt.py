# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""A rival: gdal_translate -of COG of a VRT that computes, by rasterio's GDAL.

    gdal_vrt.py JOB.json"""
import os
import pathlib

os.environ["GDAL_CACHEMAX"] = "2048"  # a row of blocks of the whole width, in both files: no block is decoded twice
import vrt
from job import read_job, sync  # sets GDAL's options: before rasterio
import rasterio
import rasterio.shutil


def main():
    job = read_job()
    path = pathlib.Path(job.out).with_suffix(".vrt")
    path.write_text(vrt.text(job))
    with rasterio.Env():
        rasterio.shutil.copy(str(path), job.out, driver="COG", **job.cog_options())
    sync(job.out)


main()
