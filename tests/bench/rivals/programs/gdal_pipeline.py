# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""A rival: `gdal raster pipeline` of the newest GDAL, by its Python module. Its wheel has no expressions, therefore only the built-in function of
the normalised difference; the two bands are selected by a VRT.

    gdal_pipeline.py JOB.json"""
import pathlib
import re

from job import read_job, sync  # sets GDAL's options: before osgeo
from osgeo import gdal

gdal.UseExceptions()


def main():
    job = read_job()
    (formula,) = job.outputs.values()
    first, second = re.match(r"\((\w+) - (\w+)\)", formula).groups()
    selected = pathlib.Path(job.out).with_suffix(".vrt")
    with gdal.Run("raster", "select", input=job.source, output=str(selected), band=[str(job.bands[first]), str(job.bands[second])]):
        pass
    options = " ".join(f"--co {k}={v}" for k, v in job.cog_options().items())
    calc = f"calc -i {selected} --dialect builtin --calc norm_diff --flatten --ot Float32 --nodata {job.nodata}"
    with gdal.Run("raster", "pipeline", pipeline=f"{calc} ! write -f COG {options} {job.out}"):
        pass
    sync(job.out)


main()
