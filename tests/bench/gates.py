#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""The step `gate` in a scene under clouds: NDVI with a mask, once by a gate and once by `where` in math, taking turns in one run. Three
layouts of the bands and their mask, two kinds of clouds. The products are compared byte by byte.

    tests/bench/gates.py [--bin DIR] [--work DIR] [--size 10980] [--repeat 5] [--clouds 0.6] [--cores 0,1] [--only LAYOUT,...]

Prints a table of medians and, as the last line, the same as JSON. Needs the programs pushbroom and make_scene and the installed patterns."""
import argparse
import hashlib
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Name: options of the scene, and of the mask where it has a file of its own.
LAYOUTS = {
    "one file, a plane a band": (["--bands", "5", "--interleave", "BAND"], None),
    "four bands, mask in its own file": ([], ["--pixel", "10"]),
    "four bands, mask of 20 m": ([], ["--pixel", "20"]),
}
CLOUDS = {"closed": ["--cloud-octaves", "1"], "broken": []}


def make(o, path, size, *options):
    if not path.exists():
        subprocess.run([o.bin / "make_scene", "--size", f"{size}x{size}", *options, path], check=True)
    with open(path, "rb") as f:  # into the page cache, for both
        while f.read(1 << 24):
            pass
    return path


def scene_of(o, layout, kind):
    options, mask = LAYOUTS[layout]
    clouds = ["--clouds", str(o.clouds), *CLOUDS[kind]]
    if mask is None:
        return make(o, o.work / f"planes-{kind}.tif", o.size, *options, *clouds), None
    size = o.size * 10 // int(mask[1])
    return make(o, o.work / "four.tif", o.size, *options), make(o, o.work / f"mask-{kind}-{mask[1]}.tif", size, "--bands", "1", "--type", "Byte", *mask, *clouds)


def config_of(o, layout, mask, gated):
    coarse = mask is not None and mask.name.endswith("-20.tif")
    sources = f"sources: {{SCL: {{file: {mask}, bands: {{SCL: 1}}}}}}" if mask else ""
    bands = "{B: 1, G: 2, R: 3, N: 4" + ("}" if mask else ", SCL: 5}")
    keep = "(SCL > 3) * (SCL < 8)"
    masked = ", ".join(f'{b}: "where({keep}, {b}, 0 / 0)"' for b in "BGRN")
    steps = (["resample: {like: R, method: nearest, bands: [SCL]}"] if coarse else []) + \
        ([f'gate: {{keep: "{keep}"}}'] if gated else [f"math: {{bands: {{{masked}}}}}"]) + ["index: {names: [NDVI]}"]
    path = o.work / f"{'gate' if gated else 'math'}.yaml"
    path.write_text(f"""compute: {{device: cpu, memory: 384MiB, threads: {len(o.cores)}}}
pipelines:
  cloudfree:
    input:
      match: ["*.tif"]
      bands: {bands}
      {sources}
    steps:
""" + "".join(f"      - {step}\n" for step in steps) + """    products:
      - cog: {bands: [NDVI]}
      - quicklook: {bands: [R, G, B]}
      - statistics: {bands: [NDVI]}
""")
    return path


def run(o, config, scene):
    """Seconds of wall clock and of CPU, the report, and digests of the products."""
    out = o.work / "out"
    shutil.rmtree(out, ignore_errors=True)
    start = time.monotonic()
    with open(o.work / "result.json", "wb") as result:
        process = subprocess.Popen([o.bin / "pushbroom", "run", "--json", "-c", config, "-o", out, scene], stdout=result,
                                   preexec_fn=lambda: os.sched_setaffinity(0, o.cores))
        _, status, usage = os.wait4(process.pid, 0)
    wall = time.monotonic() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"pushbroom run failed: {(o.work / 'result.json').read_text()}")
    told = json.loads((o.work / "result.json").read_text())
    digests = {pathlib.Path(p["path"]).name: hashlib.sha256(pathlib.Path(p["path"]).read_bytes()).hexdigest() for p in told["products"]}
    return wall, usage.ru_utime + usage.ru_stime, told["report"], digests


def compare(o, layout, kind):
    scene, mask = scene_of(o, layout, kind)
    took = {"math": [], "gate": []}
    for _ in range(o.repeat):
        for way in took:
            took[way].append(run(o, config_of(o, layout, mask, way == "gate"), scene))
    if len({json.dumps(t[3], sort_keys=True) for ways in took.values() for t in ways}) != 1:
        sys.exit(f"{layout}: the products differ")
    wall, cpu = ({way: statistics.median(t[i] for t in ts) for way, ts in took.items()} for i in (0, 1))
    gate = took["gate"][0][2]["gate"]
    return {"layout": layout, "clouds": kind, "left_out": gate["left_out"] / gate["tiles"], "not_decoded": gate["blocks_not_decoded"],
            "math_seconds": wall["math"], "gate_seconds": wall["gate"], "wall": wall["math"] / wall["gate"],
            "math_cpu": cpu["math"], "gate_cpu": cpu["gate"], "cpu": cpu["math"] / cpu["gate"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/bin")
    parser.add_argument("--work", type=pathlib.Path)
    parser.add_argument("--size", type=int, default=10980)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--clouds", type=float, default=0.6)
    parser.add_argument("--cores", type=lambda text: {int(c) for c in text.split(",")}, default={0, 1})
    parser.add_argument("--only", default=",".join(CLOUDS), help="kinds of clouds [%(default)s]")
    o = parser.parse_args()
    o.bin = o.bin.resolve()
    own = o.work is None
    o.work = o.work or pathlib.Path(tempfile.mkdtemp(prefix="pushbroom-bench-"))
    o.work.mkdir(parents=True, exist_ok=True)
    print(f"{o.size} x {o.size} x 4 UInt16 deflate, {100 * o.clouds:.0f} % under clouds, {len(o.cores)} cores, medians of {o.repeat}")
    print(f"{'layout':34} {'clouds':7} {'tiles left out':>14} {'math s':>8} {'gate s':>8} {'wall':>6} {'math CPU':>9} {'gate CPU':>9} {'CPU':>6}")
    rows = []
    for kind in o.only.split(","):
        for layout in LAYOUTS:
            rows.append(r := compare(o, layout, kind))
            print(f"{layout:34} {kind:7} {100 * r['left_out']:12.0f} % {r['math_seconds']:8.2f} {r['gate_seconds']:8.2f} {r['wall']:5.2f}x {r['math_cpu']:9.2f} {r['gate_cpu']:9.2f} {r['cpu']:5.2f}x", flush=True)
    print(json.dumps({"size": o.size, "clouds": o.clouds, "cores": len(o.cores), "rows": rows}))
    if own:
        shutil.rmtree(o.work)


main()
