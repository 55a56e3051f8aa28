# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""compute-sanitizer over operators and products."""
import concurrent.futures
import shutil

from .pipelines import CHAINS, GRIDS, SCENES, WAYS, grid_pipeline, grid_scene


def sanitizer(host, _):
    print("4. compute-sanitizer memcheck")
    if shutil.which("compute-sanitizer") is None:
        host.check(False, "compute-sanitizer is not on PATH")
        return
    prefix = ["compute-sanitizer", "--tool", "memcheck", "--error-exitcode", "99"]
    done = host.call(*prefix, host.program("check_ops"), "--quick", limit=580)
    host.check(done.returncode == 0, f"check_ops --quick: {(done.stdout + done.stderr).strip().splitlines()[-1:]}")
    for name in ("u16 strips, collar", "f64 tiny"):
        for chain, pipeline in CHAINS.items():
            for buffers, sync in WAYS[:4]:
                config = host.config(f"{chain}-{buffers}-{sync}-cuda", pipeline, buffers, sync, "cuda")
                # in one process, whose end memcheck sees
                done = host.call(*prefix, host.program("bench_in_process"), config, host.work / "memcheck", host.scene(name, SCENES[name]), limit=300)
                host.check(done.returncode == 0, f"{chain} {name} {buffers} {sync}: {(done.stdout + done.stderr).strip().splitlines()[-1:]}")


def grid_sanitizer(host, _):
    print("4b. compute-sanitizer memcheck over grids")
    prefix = ["compute-sanitizer", "--tool", "memcheck", "--error-exitcode", "99"]
    scene = grid_scene(host)
    small = host.scene("small", ["--size", "300x260", "--block", "64", "--collar"])

    def checked(case):
        name, (buffers, sync) = case
        config = host.config(f"{name}-{buffers}-{sync}-cuda", grid_pipeline(host.work, name), buffers, sync, "cuda")
        whole = name in ("crop", "mix")  # their windows are inside the large one
        return host.call(*prefix, host.program("bench_in_process"), config, host.work / f"memcheck-{name}-{buffers}-{sync}", scene if whole else small,
                         limit=300)

    cases = [(name, way) for name in GRIDS for way in WAYS[:4]]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for (name, way), done in zip(cases, pool.map(checked, cases)):
            host.check(done.returncode == 0, f"{name} {' '.join(way)}: {(done.stdout + done.stderr).strip().splitlines()[-1:]}")
