# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""The channel library's device side: results, ways out, soaks, the sanitizers over them."""
import os
import re
import shutil
import time

from .host import show

EXAMPLES = ["camera", "guest", "planar", "reduction", "device", "tasks", "threads", "processes"]
TRANSPORTS = ["pull", "lines", "mixed", "managed", "copy", "place", "resident"]


def wic(host, _):
    print("6. wic: ways out, replay, joins of tasks, soaks")
    bench = host.program("wic-bench")
    cases = [["--ways-out"], ["--replay"], ["--joins"], ["--guests"], ["--rounds", "1", "--seconds", "0.05", "--samples", "200", "--patterns", "all"]]
    cases += [["--check", "--no-tune", "--window", "64", "--sizes", "4,64,1024", "--strategies", "all"]]
    cases += [["--soak", "1000000", "--transport", "pull"], ["--soak", "200000", "--lanes", "8"], ["--lanes", "8"]]
    cases += [["--soak", "200000", "--transport", transport] for transport in TRANSPORTS[1:]]
    took = {}
    for case in cases:
        start = time.monotonic()
        done = host.call(bench, *case, limit=300)
        took[case[-1]] = time.monotonic() - start
        show(done)
        host.check(done.returncode == 0 and "FAIL" not in done.stdout, f"wic-bench {' '.join(case)} ({took[case[-1]]:.0f} s, exit {done.returncode})")
    for transport, tiles in (("pull", 1000000), ("copy", 200000)):
        done = host.stopped(bench, "--soak", tiles, "--transport", transport, limit=300, after=max(0.3, took[transport] * 0.6))
        show(done)
        timeouts, wrong = re.search(r"(\d+) heartbeat timeouts", done.stdout), re.search(r" (\d+) wrong", done.stdout)
        good = done.returncode == 0 and timeouts and int(timeouts[1]) >= 1 and wrong and int(wrong[1]) == 0
        host.check(good, f"soak by {transport}, stopped for 6 s: the kernel left, came back, nothing wrong (exit {done.returncode})")


def wic_examples(host, _):
    print("the examples of wic: each compares its results with the host's")
    for name in EXAMPLES:
        start = time.monotonic()
        done = host.call(host.program(f"wic-example-{name}"), limit=60)
        show(done)
        host.check(done.returncode == 0, f"wic-example-{name} ({time.monotonic() - start:.1f} s, exit {done.returncode})")
    for name, options in (("check_stream", ([], ["--speed"])), ("check_guest", ([], ["--stopped"]))):
        program = host.bin / name if host.bin else shutil.which(name)
        if not program or not os.path.exists(program):
            print(f"  some headers are not checked: there is no {name} (it is not built with the others)")
            continue
        for option in options:
            done = host.call(program, *option, limit=120)
            show(done)
            host.check(done.returncode == 0, f"{name} {' '.join(option)} (exit {done.returncode})")


def racecheck_finds_mistakes(host):
    for mistake in range(5):
        done = host.call("compute-sanitizer", "--tool", "racecheck", "--error-exitcode", "99", host.program("wic-gates-racecheck"), mistake, limit=120)
        good = done.returncode == (0 if mistake == 0 else 99)
        host.check(good, f"racecheck of the gates {'without a mistake' if mistake == 0 else f'with mistake {mistake}'} (exit {done.returncode})")


def wic_sanitizer(host, _):
    print("7. compute-sanitizer over wic")
    if shutil.which("compute-sanitizer") is None:
        host.check(False, "compute-sanitizer is not on PATH")
        return
    cases = [(tool, "wic-bench", transport) for transport in TRANSPORTS for tool in ("memcheck", "synccheck")]
    racing = host.bin / "wic-bench-racecheck" if host.bin else shutil.which("wic-bench-racecheck")
    if racing and os.path.exists(racing):
        cases += [("racecheck", "wic-bench-racecheck", transport) for transport in TRANSPORTS]
        racecheck_finds_mistakes(host)
    else:
        print("  racecheck skipped: there is no wic-bench-racecheck (it and wic-gates-racecheck are not built with the others)")
    patterns = ["--rounds", "1", "--seconds", "0.001", "--samples", "3", "--patterns", "small"]
    for tool, program in sorted({(tool, program) for tool, program, _ in cases}):
        done = host.call("compute-sanitizer", "--tool", tool, "--error-exitcode", "99", host.program(program), *patterns, limit=280)
        show(done)
        host.check(done.returncode == 0, f"{tool} of {program} --patterns small (exit {done.returncode})")
    for tool, program, transport in cases:
        # Under racecheck tiles take longer than the producer's rest after the thousandth: the kernel would not leave.
        tiles = "900" if tool == "racecheck" else "1500"
        done = host.call("compute-sanitizer", "--tool", tool, "--error-exitcode", "99", host.program(program), "--soak", tiles, "--transport", transport, limit=280)
        show(done)
        host.check(done.returncode == 0, f"{tool} of {program} --soak {tiles} --transport {transport} (exit {done.returncode})")
