# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Whole pipelines, CPU against GPU; a run that is stopped."""
import time

from .host import sums
from .pipelines import CHAINS, POINT, SCENES, WAYS


def of_cpu_and_gpu(host):
    print("3. products, CPU against GPU; of the first scene by an owner of each run's own")
    for name, arguments in SCENES.items():
        for chain, pipeline in CHAINS.items():
            scene = host.scene(name, arguments)
            reference, _ = host.run(host.config(f"{chain}", pipeline), scene, "cpu", "cpu")
            for buffers, sync in WAYS:
                made, _ = host.run(host.config(f"{chain}-{buffers}-{sync}", pipeline, buffers, sync), scene, "cuda", "cuda")
                same = reference["status"] == made["status"] == "successful" and sums(made) == sums(reference)
                report = made.get("report", {})
                used = report.get("buffers"), report.get("device"), report.get("sync")
                right = used == (buffers, "cuda:0", "stream" if buffers == "host" else sync)
                what = "" if same and right else made.get("error") or (used, sums(made), sums(reference))
                host.check(same and right, f"{chain:6} {name:20} {buffers:8} {sync:7} {what}")
        if not host.owner:
            host.begin_owner()
    host.end_owner()


def silent(host, size):
    """A run whose process is stopped for longer than a resident kernel waits for a sign of life."""
    scene = host.scene("speed NONE", ["--size", f"{size}x{size}", "--compress", "NONE"])
    scene.read_bytes()  # so that both runs find it in memory
    config = host.config("silent", POINT, "pinned", "wic")
    start = time.monotonic()
    whole, _ = host.run(config, scene, "cuda", "silent")
    wall, report = time.monotonic() - start, whole.get("report", {})
    stream, publish = report.get("elapsed_ms", 0) / 1e3, report.get("publish_ms", 0) / 1e3
    if whole["status"] != "successful" or stream < 0.3:
        host.check(whole["status"] == "successful", f"stopped for 6 s: skipped, the stream takes but {stream:.2f} s; use a larger --scene-size")
        return
    made, done = host.run(config, scene, "cuda", "silent", after=max(0.3, wall - publish - stream / 2))
    launches = [r.get("report", {}).get("link", {}).get("launches") for r in (whole, made)]
    good = made["status"] == "successful" and sums(made) == sums(whole) and "ended before" not in done.stderr
    why = "" if good else f" {made.get('error')} {done.stderr[-200:]}"
    host.check(good, f"stopped for 6 s: same products, {launches[0]} launches without, {launches[1]} with it{why}")


def products(host, options):
    of_cpu_and_gpu(host)
    silent(host, options.scene_size)
