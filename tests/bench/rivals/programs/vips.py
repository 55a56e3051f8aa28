# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""A rival: libvips. It writes a tiled TIFF with a pyramid, without georeference; its directories are not where a COG has them.

    vips.py JOB.json"""
import pyvips

import engines
from job import read_job, sync


def computed(job, image):
    names = engines.used(job) or list(job.bands)
    bands = {name: image[job.bands[name] - 1] for name in names}
    if job.gaussian:
        line = job.weights()
        mask = pyvips.Image.new_from_array([line])
        return bands[next(iter(job.outputs.values()))].cast("float").convsep(mask, precision="float")
    if all(f in bands for f in job.outputs.values()):
        out = [bands[f] for f in job.outputs.values()]
    else:
        bands = {n: b.cast("float") * job.scale if job.scale else b.cast("float") for n, b in bands.items()}
        out = [eval(f, {"__builtins__": {}}, bands).cast("float") for f in job.outputs.values()]
    return out[0].bandjoin(out[1:]) if len(out) > 1 else out[0]


def main():
    job = read_job()
    image = computed(job, pyvips.Image.new_from_file(job.source, access="sequential"))
    predictor = {"float32": "float"}.get(job.type, "horizontal") if job.predictor else "none"
    more = {"level": job.level} if job.level and job.compress != "none" else {}
    image = image.copy(interpretation="multiband" if image.bands > 1 else "b-w")  # no band is an alpha channel
    image.tiffsave(job.out, compression=job.compress, predictor=predictor, tile=True, tile_width=512, tile_height=512, pyramid=job.overviews,
                   region_shrink="mean", bigtiff=image.width * image.height * image.bands * 4 > 4e9, **more)
    sync(job.out)


main()
