# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""A rival: OTB's BandMath, then gdal_translate -of COG by Debian's GDAL.

    otb.py JOB.json"""
import os
import pathlib
import re
import subprocess

os.environ["GDAL_CACHEMAX"] = "2048"  # as in gdal_classic.py
from job import read_job, sync  # sets GDAL's options: before osgeo
from osgeo import gdal

gdal.UseExceptions()


def main():
    job = read_job()
    (formula,) = job.outputs.values()
    expression = re.sub(r"\b[A-Z]\b", lambda m: f"im1b{job.bands[m[0]]}", formula)
    path = pathlib.Path(job.out).with_name("calculated.tif")
    tiled = "?&gdal:co:TILED=YES&gdal:co:BLOCKXSIZE=512&gdal:co:BLOCKYSIZE=512"
    subprocess.run(["otbcli_BandMath", "-il", job.source, "-exp", expression, "-out", f"{path}{tiled}", "float", "-ram", "2048"],
                   check=True, stdout=subprocess.DEVNULL)
    options = [f"{k}={v}" for k, v in job.cog_options().items()]
    gdal.Translate(job.out, str(path), format="COG", noData=float(job.nodata), creationOptions=options)
    sync(job.out)


main()
