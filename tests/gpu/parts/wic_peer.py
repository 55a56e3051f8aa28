# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Channels between kernels of one GPU and of two: wic-peer."""
import os
import shutil

from .host import show

NOT_RUN = 77  # exit code of wic-peer if there is one GPU
MISTAKES = ["early", "lost", "wrong", "twice"]


def pairs(host):
    """One GPU with itself, and two."""
    done = host.call(host.program("wic-peer"), "--gpus", "0,1", "--part", "check", "--chunks", "1000", limit=60)
    if done.returncode == NOT_RUN:
        print("   two GPUs: " + done.stdout.strip())
        return ["0,0"]
    host.check(done.returncode == 0, f"wic-peer --gpus 0,1 begins (exit {done.returncode})")
    return ["0,0", "0,1"]


def wic_peer(host, _):
    print("8g. wic-peer: every element, words, rates, rivals, patterns, ways out; mistakes that must be found")
    for gpus in pairs(host):
        path = host.work / f"wic-peer-{gpus.replace(',', '-')}.json"
        for options in (["--json", path], *(["--break", mistake, "--chunks", "20000"] for mistake in MISTAKES)):
            done = host.call(host.program("wic-peer"), "--gpus", gpus, *options, limit=300)
            show(done)
            host.check(done.returncode == 0, f"wic-peer --gpus {gpus} {options[0]} {options[1]} (exit {done.returncode})")


def wic_peer_sanitizer(host, _):
    print("8h. compute-sanitizer over wic-peer")
    if shutil.which("compute-sanitizer") is None:
        host.check(False, "compute-sanitizer is not on PATH")
        return
    cases = [("memcheck", "wic-peer", "3000"), ("synccheck", "wic-peer", "3000")]
    racing = host.bin / "wic-peer-racecheck" if host.bin else shutil.which("wic-peer-racecheck")
    if racing and os.path.exists(racing):
        cases.append(("racecheck", "wic-peer-racecheck", "400"))
    else:
        print("  racecheck skipped: there is no wic-peer-racecheck (it is not built with the others)")
    for tool, program, chunks in cases:
        done = host.call("compute-sanitizer", "--tool", tool, "--error-exitcode", "99", host.program(program),
                         "--gpus", "0,0", "--part", "check", "--chunks", chunks, limit=300)
        show(done)
        host.check(done.returncode == 0, f"{tool} of {program} --part check (exit {done.returncode})")
