# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Steps that choose a communication pattern, where the GPU decodes: composite (multiple), k-means (alternating) and gate (probabilistic). The CPU's products;
the time compared to the same job on the GPU whose blocks the host decodes."""
import collections
import concurrent.futures
import os
import shutil
import statistics

from .pipelines import ROUNDS
from .rows import fresh, gpu_words, products

DATES = 6
COMPOSITE = """
  input:
    match: ["*"]
    bands: {A_0: 1, B_0: 2}
    sources:
SOURCES
  steps:
    - composite: {bands: {A: A, B: B}, of: [_0, _1, _2, _3, _4, _5]}
  products:
    - cog: {bands: [A, B], type: uint16, nodata: 0, compress: deflate}
"""
GATE = """
  input: {match: ["*"], bands: {B: 1, G: 2, R: 3, N: 4, SCL: 5}}
  steps:
    - gate: {keep: "(SCL > 3) * (SCL < 8)"}
    - index: {names: [NDVI]}
  products:
    - cog: {bands: [NDVI], compress: deflate}
"""
CLOUDS = ["--bands", "5", "--interleave", "BAND", "--clouds", "0.6", "--cloud-octaves", "1"]
# Times that the job is to be faster than with blocks decoded on the host; cold: of a file that is not in the page cache.
Row = collections.namedtuple("Row", "name title times cold")
ROWS = [
    Row("composite", f"composite of {DATES} deflate dates", 4, False),
    Row("k-means", "k-means of 4 bands, 20 rounds", 3, False),
    Row("gate", "gate, 60 % clouds, a cold file", 1.4, True),
]
WAYS = {"CPU": ("cpu", "host"), "GPU, host decodes": ("cuda", "host"), "GPU": ("cuda", "device")}


def arguments_of(size):
    """Arguments of all scenes, by name."""
    square = ["--size", f"{size}x{size}"]
    dates = {f"patterns date {i} {size}": [*square, "--bands", "2", "--seed", str(i + 1)] for i in range(DATES)}
    return {**dates, f"patterns k-means {size}": square, f"patterns gate {size}": [*square, *CLOUDS]}


def scenes_of(host, size):
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        return dict(zip(arguments_of(size), pool.map(lambda item: host.scene(*item), arguments_of(size).items())))


def pipeline_of(row, scenes, size):
    """The pipeline of a row, and its scene."""
    if row.name == "composite":
        paths = [scenes[f"patterns date {i} {size}"] for i in range(DATES)]
        sources = "\n".join(f"      D{i}: {{file: {paths[i]}, bands: {{A_{i}: 1, B_{i}: 2}}}}" for i in range(1, DATES))
        return COMPOSITE.replace("SOURCES", sources), paths[0]
    return (ROUNDS.replace("compress: zstd", "compress: deflate"), scenes[f"patterns k-means {size}"]) if row.name == "k-means" else (GATE, scenes[f"patterns gate {size}"])


def drop(path):
    """Takes a file out of the page cache."""
    with open(path, "rb") as f:
        os.fdatasync(f.fileno())
        os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def one(host, row, scenes, size, n):
    pipeline, scene = pipeline_of(row, scenes, size)
    made = {way: [] for way in WAYS}
    for _ in range(n):
        for way, (device, codecs) in WAYS.items():
            if way == "CPU" and made[way]:
                continue
            fresh(host, "patterns")
            if row.cold:
                drop(scene)
            config = host.config(f"patterns-{row.name}-{codecs}-{device}", pipeline, sync="wic", codecs=codecs)
            made[way].append(host.run(config, scene, device, "patterns")[0])
    bad = [(way, r.get("error")) for way, rs in made.items() for r in rs if r.get("status") != "successful"]
    if bad:
        host.check(False, f"{row.title}: {bad[:2]}")
        return
    ran = {r["report"].get("codecs") for r in made["GPU"]}
    same = len({str(sorted(products(r).items())) for rs in made.values() for r in rs}) == 1
    host.check(same and ran == {"device"}, f"{row.title}: the CPU's products, decoded on the GPU {'' if ran == {'device'} else made['GPU'][0]['report'].get('codecs_why')}")
    took = {way: statistics.median(r["report"]["elapsed_ms"] for r in rs) for way, rs in made.items()}
    ratio = took["GPU, host decodes"] / took["GPU"]
    print(f"  {row.title:36} " + ", ".join(f"{way} {ms:.0f} ms" for way, ms in took.items()) + f": {ratio:.1f} x ({'reached:' if ratio >= row.times else 'aim'} {row.times} x)")
    for way in list(WAYS)[1:]:
        report = sorted(made[way], key=lambda r: r["report"]["elapsed_ms"])[len(made[way]) // 2]["report"]
        print(f"  {way:36} {gpu_words(report)} {report.get('gate', '')}", flush=True)


def patterns(host, options):
    print("3e. steps that choose a communication pattern, decoded on the GPU")
    for size in sorted({1300, options.scene_size}):
        scenes = scenes_of(host, size)
        host.begin_owner()
        for row in ROWS:
            one(host, row, scenes, size, options.turns if size == options.scene_size else 1)
        host.end_owner()


def patterns_sanitizer(host, _):
    print("4c. compute-sanitizer memcheck over the same")
    if shutil.which("compute-sanitizer") is None:
        host.check(False, "compute-sanitizer is not on PATH")
        return
    scenes = scenes_of(host, 1300)

    def checked(row):
        pipeline, scene = pipeline_of(row, scenes, 1300)
        config = host.config(f"memcheck-{row.name}", pipeline.replace("rounds: 20", "rounds: 3"), sync="wic", device="cuda", codecs="device")
        return host.call("compute-sanitizer", "--tool", "memcheck", "--error-exitcode", "99", host.program("bench_in_process"), config,
                         host.work / f"memcheck-{row.name}", scene, limit=300)

    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        for row, done in zip(ROWS, pool.map(checked, ROWS)):
            host.check(done.returncode == 0, f"{row.title}: {(done.stdout + done.stderr).strip().splitlines()[-1:]}")
