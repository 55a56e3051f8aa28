# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Chains of several grids and sources, and classes that are found in rounds, CPU against GPU."""
from .host import sums
from .pipelines import GRIDS, ROUNDS, WARPS, WAYS, grid_pipeline, grid_scene, rpc_scene


def compare(host, names, scene_of, stays=True):
    """Products of an owner's GPU, in all ways that a program may have it, against those of the CPU. stays: a kernel stays for all of
    them; else the plan may launch instead."""
    host.begin_owner()
    for name in names:
        pipeline, scene = grid_pipeline(host.work, name), scene_of(name)
        label = name.replace(" ", "_").replace(",", "")
        reference, _ = host.run(host.config(label, pipeline), scene, "cpu", "cpu")
        for buffers, sync in WAYS[:4]:
            made, _ = host.run(host.config(f"{label}-{buffers}-{sync}", pipeline, buffers, sync), scene, "cuda", "cuda")
            same = reference["status"] == made["status"] == "successful" and sums(made) == sums(reference) != {}
            report = made.get("report", {})
            used = report.get("buffers"), report.get("device"), report.get("sync")
            right = used[:2] == (buffers, "cuda:0") and used[2] in ((sync,) if stays else (sync, "stream"))
            what = f"{used[2]:6} {report.get('elapsed_ms')} ms, cpu {reference.get('report', {}).get('elapsed_ms')} ms" if same and right else \
                made.get("error") or (used, made.get("device_why"), sums(made), sums(reference), reference.get("error"))
            host.check(same and right, f"{name:24} {buffers:8} {sync:7} {what}")
    host.end_owner()


def grids(host, _):
    print("3b. products of several grids and sources, CPU against GPU")
    scene = grid_scene(host)
    compare(host, GRIDS, lambda _: scene)


def warps(host, _):
    print("3d. products in other coordinate systems, of curves and of sieved bands, CPU against GPU")
    plain = grid_scene(host)
    seen = rpc_scene(plain)
    compare(host, WARPS, lambda name: seen if "relief" in name else plain, stays=False)


def rounds(host, _):
    """Classes that are found in rounds: those of the CPU, sooner, and the scene is sent down once a pass, not once a round."""
    print("3c. rounds over a scene of 160 MB")
    scene = host.scene("rounds", ["--size", "5000x4000", "--compress", "NONE", "--kind", "coast"])
    reference, _ = host.run(host.config("rounds", ROUNDS), scene, "cpu", "cpu")
    for owner in (False, True):
        if owner:
            host.begin_owner()
        for sync in ("wic", "stream"):
            made, _ = host.run(host.config(f"rounds-{sync}-{owner}", ROUNDS, "pinned", sync), scene, "cuda", "cuda")
            same = reference["status"] == made["status"] == "successful" and sums(made) == sums(reference)
            report = made.get("report", {})
            took, otherwise = report.get("elapsed_ms"), reference.get("report", {}).get("elapsed_ms")
            down = report.get("link", {}).get("to_device_bytes", 0)
            right = same and took < otherwise and down < 4 * scene.stat().st_size
            host.check(right, f"{sync:7} {'owner' if owner else 'own':6} {took} ms, cpu {otherwise} ms, {down / 1e6:.0f} MB down, same {same} {made.get('error') or ''}")
    host.end_owner()
