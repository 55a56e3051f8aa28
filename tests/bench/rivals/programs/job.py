# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Input of every rival's program, and common parts of all of them: the job as JSON, the options of GDAL's COG driver, the
sync of the written files."""
import json
import math
import os
import pathlib
import sys

CACHE_MB = 256  # size of GDAL's block cache: as much as windows of a thread each use; with 2048 the windows take 8 % longer
os.environ.setdefault("GDAL_CACHEMAX", str(CACHE_MB))  # this and the rest before any GDAL is loaded
os.environ.update({
    "GDAL_NUM_THREADS": "ALL_CPUS", "GDAL_MEM_ENABLE_OPEN": "YES", "GDAL_DISABLE_READDIR_ON_OPEN": "EMPTY_DIR", "GDAL_PAM_ENABLED": "NO"})


class Job:
    """source: path; bands: {name: number} of the source; outputs: {name: formula of the bands}; scale: of the bands, or null; gaussian:
    side of the neighbourhood, or null; type: of the output; nodata; compress, level, predictor (bool), overviews (bool); out: path."""

    def __init__(self, text):
        vars(self).update(json.loads(text))

    def cog_options(self):
        """Options of GDAL's COG driver. A level of 0 leaves it to GDAL."""
        options = {"COMPRESS": self.compress.upper(), "BLOCKSIZE": "512", "NUM_THREADS": "ALL_CPUS", "BIGTIFF": "IF_SAFER",
                   "OVERVIEW_RESAMPLING": "AVERAGE", "OVERVIEWS": "AUTO" if self.overviews else "NONE"}
        if self.compress != "none":
            options["PREDICTOR"] = "YES" if self.predictor else "NO"
            options.update({"LEVEL": str(self.level)} if self.level else {})
        return options

    def weights(self):
        """Weights of the Gaussian, one dimension, with the sigma that OpenCV takes for that size."""
        sigma = 0.3 * ((self.gaussian - 1) / 2 - 1) + 0.8
        line = [math.exp(-((i - self.gaussian // 2) ** 2) / (2 * sigma * sigma)) for i in range(self.gaussian)]
        return [w / sum(line) for w in line]

    def overview_factors(self, width, height):
        """Until one block holds the image, as the COG driver and pushbroom do."""
        factors, factor = [], 1
        while self.overviews and max(width, height) / factor > 512:
            factor *= 2
            factors.append(factor)
        return factors


def read_job():
    return Job(pathlib.Path(sys.argv[1]).read_text())


def sync(*paths):
    for path in paths:
        fd = os.open(path, os.O_RDONLY)
        os.fsync(fd)
        os.close(fd)
