# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""pushbroom compared with NVIDIA's libraries on the same scene (tests/bench/rivals/programs/nvtiff_cupy.py), where these are installed."""
import json
import pathlib
import statistics
import sys

from .host import show
from .rows import ROWS, fresh, turn

PROGRAM = pathlib.Path(__file__).resolve().parents[2] / "bench/rivals/programs/nvtiff_cupy.py"
AIM = 2
ALGORITHMS = {0: "entropy only", 1: "its default"}


def ours(host, scene, n):
    results = []
    for _ in range(n):
        fresh(host, "rival-ours")
        results.append(turn(host, host.config("rival", ROWS[0].pipeline, sync="wic", codecs="device"), scene, "cuda", "rival-ours"))
    bad = [r.get("error") for r in results if r["status"] != "successful"]
    host.check(not bad, f"pushbroom {bad[:1]}")
    product = host.work / "rival-ours" / scene.stem / "p" / f"{scene.stem}.tif"
    return None if bad else {key: 1e3 * statistics.median(r["took"][key] for r in results) for key in ("stream", "total")} | {"bytes": product.stat().st_size}


def rival(host, options):
    size, n = options.scene_size, options.turns
    print(f"rival: nvTIFF + CuPy + nvCOMP; {size} x {size} x 4 UInt16, deflate, NDVI, tiled TIFF with overviews; medians of {n}")
    scene = host.scene(f"rows DEFLATE {size}", ["--size", f"{size}x{size}", "--compress", "DEFLATE"])
    scene.read_bytes()
    host.begin_owner()
    us = ours(host, scene, n)
    host.end_owner()
    for algorithm, how in ALGORITHMS.items():
        done = host.call(sys.executable, PROGRAM, scene, host.work / "rival.tif", n, algorithm, limit=200)
        if done.returncode:
            show(done)
            host.check(False, f"nvtiff_cupy.py (exit {done.returncode})")
            continue
        them = json.loads(done.stdout.splitlines()[-1])
        if "absent" in them:
            print(f"  skipped: {them['absent']}")
            return
        host.check(them["wrong"] is None, f"the rival's blocks decode to what it computed {them['wrong'] or ''}")
        if us:
            print(f"  nvCOMP's algorithm {algorithm} ({how}): stream {them['stream']:.0f} ms, {them['stream'] / us['stream']:.1f} x ours of {us['stream']:.0f}; with writing, checksum and fsync {them['total']:.0f} ms, "
                  f"{them['total'] / us['total']:.1f} x ours of {us['total']:.0f} ({AIM} x aimed at); {them['bytes'] / us['bytes']:.2f} of our file's bytes", flush=True)
        print("JSON " + json.dumps({"ours": us, "theirs": them}), flush=True)
    (host.work / "rival.tif").unlink(missing_ok=True)
