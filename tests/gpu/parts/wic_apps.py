# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""The applications of wic/apps by every strategy."""
import json
import pathlib
import shutil
import sys

from .host import show

MISTAKES = ["early-read", "lost-last", "stale"]


def wic_apps(host, _):
    print("8c. wic-apps: results, and mistakes that must be found")
    program = host.program("wic-apps")
    path = host.work / "wic-apps-check.json"
    done = host.call(program, "--size", "tiny,small", "--check", "--json", path, limit=400)
    show(done)
    host.check(done.returncode == 0, f"wic-apps --size tiny,small --check: every element right (exit {done.returncode})")
    if done.returncode == 0:
        rows = json.loads(path.read_text())["rows"]
        without = sorted({f"{row['strategy']}: {row['why']}" for row in rows if row["why"]})
        host.check(not without, f"every strategy runs every application {'; '.join(without)}")
    for mistake in MISTAKES:
        done = host.call(program, "--size", "tiny", "--break", mistake, limit=200)
        show(done)
        host.check(done.returncode == 0, f"wic-apps --break {mistake}: found in every application, by every strategy, both ways (exit {done.returncode})")


def pairs_of(host, gpus, name):
    """Results, mistakes and figures. Exit 77: the program needs more GPUs."""
    program = host.program("wic-pairs")
    for option in (["--size", "tiny"], *(["--size", "tiny", "--break", mistake] for mistake in MISTAKES), ["--json", host.work / name]):
        done = host.call(program, "--gpus", gpus, *option, limit=300)
        show(done)
        if done.returncode == 77:
            return
        host.check(done.returncode == 0, f"wic-pairs --gpus {gpus} {' '.join(str(o) for o in option[:4])} (exit {done.returncode})")


def wic_pairs(host, _):
    print("8f. wic-pairs: two kernels of one GPU, results, mistakes, figures")
    pairs_of(host, "0,0", "wic-pairs.json")


def wic_pairs_gpus(host, _):
    print("8g. wic-pairs: a kernel on each of two GPUs, results, mistakes, figures")
    pairs_of(host, "0,1", "wic-pairs-gpus.json")


def wic_apps_sanitizer(host, _):
    print("8d. compute-sanitizer over wic-apps and wic-pairs")
    if shutil.which("compute-sanitizer") is None:
        host.check(False, "compute-sanitizer is not on PATH")
        return
    for program, options in (("wic-apps", ["--check"]), ("wic-pairs", ["--rounds", "1", "--limit", "60"])):
        done = host.call("compute-sanitizer", "--tool", "memcheck", "--error-exitcode", "99", host.program(program), "--size", "tiny", *options, limit=500)
        show(done)
        host.check(done.returncode == 0, f"memcheck of {program} --size tiny (exit {done.returncode})")


def wic_apps_figures(host, _):
    print("8e. wic-apps: figures")
    path = host.work / "wic-apps.json"
    done = host.call(host.program("wic-apps"), "--json", path, limit=590)
    show(done)
    host.check(done.returncode == 0, f"wic-apps --json (exit {done.returncode})")
    plot = pathlib.Path(__file__).resolve().parents[2] / "bench/wic_apps_plot.py"
    if path.exists():
        drawn = host.call(sys.executable, plot, path)
        (host.work / "wic-apps.svg").write_text(drawn.stdout)
        host.check(drawn.returncode == 0, f"wic_apps_plot.py (exit {drawn.returncode})")
