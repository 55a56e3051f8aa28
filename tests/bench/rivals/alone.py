# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""The row without rivals: CPU seconds of the NDVI row over those of its decoding, computing and encoding alone, which bench_parts measures
on one thread. Checksum and writing are in the run and not in the sum; their seconds are named."""
import json
import shutil
import statistics
import subprocess

from measured import measure_all

from . import contest, scene
from .rows import ROWS

NAME, TITLE, BAR = "alone", "CPU over decode + compute + encode alone, NDVI, defaults", 1.15
WORK = ("decode", "compute", "encode")


def parts(o, source):
    out = o.work / "alone.out"
    done = subprocess.run([*o.under, str(o.build / "bin/bench_parts"), str(source), str(out)], check=True, stdout=subprocess.PIPE, text=True)
    out.unlink()
    return json.loads(done.stdout)


def run(o):
    source = scene.of_size(o, "synthetic", o.size)
    us = contest.ours(o, ROWS["ndvi"], [source])
    cpu, alone = [], []
    for _ in range(o.repeat):
        shutil.rmtree(us.remove, ignore_errors=True)
        scene.warm([source])
        alone.append(parts(o, source))
        cpu.append(measure_all([us.command], under=o.under)[0][2])
    shutil.rmtree(us.remove)
    each = {name: round(statistics.median(a[name] for a in alone), 2) for name in (*WORK, "checksum", "write")}
    ratio = statistics.median(cpu) / sum(each[name] for name in WORK)
    return {"row": NAME, "title": TITLE, "bar": BAR, "size": o.size, "ratio": round(ratio, 2), "cpu_seconds": round(statistics.median(cpu), 2), "parts": each}


def sentence(row):
    p = row["parts"]
    return f"{row['title']}: {row['ratio']:.2f}, of {row['cpu_seconds']:.2f} s (decode {p['decode']:.2f}, compute {p['compute']:.2f}, encode {p['encode']:.2f}), " \
           f"without the checksum ({p['checksum']:.2f}) and writing ({p['write']:.2f})"


def text(row):
    yield f"\n{sentence(row)}; at most {row['bar']} aimed at"
