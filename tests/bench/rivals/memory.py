# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""The sweep: pushbroom's peak memory and seconds by the size of the scene, in tiles and in strips of one row. A size for which the disk has no
room is named."""
import math
import shutil

from measured import measure_all

from . import contest, scene
from .rows import ROWS

NAME, TITLE = "memory", "Peak memory, NDVI, defaults"
BYTES_PER_PX = 12  # bytes of disk: the scene, its product, and temporary files of the product


def one(o, mpx, layout):
    side = math.isqrt(mpx * 1000000)
    told = {"mpx": mpx, "layout": layout}
    path = o.work / f"sweep-{mpx}-{layout}.tif"
    need, room = mpx * 1e6 * BYTES_PER_PX, shutil.disk_usage(o.work).free
    if need > room and not path.exists():
        return {**told, "why_not": f"no room: about {need / 1e9:.0f} GB, {room / 1e9:.0f} are free"}
    scene.make(o.build, path, side, side, *(["--strips", "--block", "1"] if layout == "strips" else []))
    us = contest.ours(o, ROWS["ndvi"], [path])
    shutil.rmtree(us.remove, ignore_errors=True)
    (took,) = measure_all([us.command], under=o.under)
    shutil.rmtree(us.remove, ignore_errors=True)
    path.unlink()
    return {**told, "seconds": round(took[0], 2), "peak_mb": round(took[contest.TREE_MB])} if took else {**told, "why_not": "failed"}


def run(o):
    return {"row": NAME, "title": TITLE, "sweep": [one(o, mpx, layout) for mpx in o.sweep for layout in ("tiles", "strips")]}


def sentence(row):
    told = [s for s in row["sweep"] if "peak_mb" in s]
    peaks = [s["peak_mb"] for s in told]
    return f"{row['title']}: {min(peaks)} to {max(peaks)} MB from {min(s['mpx'] for s in told)} to {max(s['mpx'] for s in told)} Mpx" if told else f"{row['title']}: not measured"


def text(row):
    yield f"\n{row['title']}"
    for s in row["sweep"]:
        yield f"{s['mpx']:7} Mpx in {s['layout']:7} " + (s.get("why_not") or f"{s['seconds']:8.2f} s  peak {s['peak_mb']:5} MB")
