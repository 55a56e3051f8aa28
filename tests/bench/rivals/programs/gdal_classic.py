# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""A rival: gdal_calc.py where something is to be computed, then gdal_translate -of COG, by Debian's GDAL.

    gdal_classic.py JOB.json"""
import os
import pathlib
import re

os.environ["GDAL_CACHEMAX"] = "2048"  # a row of blocks of the whole width, in both files: no block is decoded twice
import vrt
from job import read_job, sync  # sets GDAL's options: before osgeo
from osgeo import gdal
from osgeo_utils import gdal_calc

gdal.UseExceptions()


def calculated(job, path):
    """One band by gdal_calc.py, uncompressed: compressing what is read once costs more than it saves."""
    (formula,) = job.outputs.values()
    scale = f" * numpy.float32({job.scale})" if job.scale else ""
    names = {n: b for n, b in job.bands.items() if re.search(rf"\b{n}\b", formula)}
    calc = re.sub(r"\b[A-Z]\b", lambda m: f"({m[0]}.astype(numpy.float32){scale})", formula)
    files = {n: job.source for n in names} | {f"{n}_band": b for n, b in names.items()}
    gdal_calc.Calc(calc=calc, outfile=str(path), type="Float32", NoDataValue=float(job.nodata), quiet=True, overwrite=True,
                   creation_options=["TILED=YES", "BLOCKXSIZE=512", "BLOCKYSIZE=512"], **files)


def main():
    job = read_job()
    if job.gaussian or all(f in job.bands for f in job.outputs.values()):
        path = pathlib.Path(job.out).with_suffix(".vrt")
        path.write_text(vrt.text(job))
    else:
        path = pathlib.Path(job.out).with_name("calculated.tif")
        calculated(job, path)
    gdal.Translate(job.out, str(path), format="COG", creationOptions=[f"{k}={v}" for k, v in job.cog_options().items()])
    sync(job.out)


main()
