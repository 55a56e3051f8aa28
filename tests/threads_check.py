#!/usr/bin/env python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Which unit tests have threads is written in tests/CMakeLists.txt (PB_THREADED), so that the thread sanitizer's tree has
those and no others. This compares the list with what the programs are linked with.

Usage: threads_check.py BIN NAME...     BIN: the folder of the test programs; NAME: those that are said to have threads"""
import pathlib
import re
import subprocess
import sys

CUDA = re.compile(r"cudart")  # the CUDA run-time, whose threads are not ours, is part of the program
STARTS = re.compile(r"\b(pthread_create|thrd_create|uv_thread_create(_ex)?|uv_queue_work)\b")


def symbols(program, *options):
    return subprocess.run(["nm", *options, program], stdout=subprocess.PIPE, text=True, check=True).stdout


def starts_threads(program):
    return bool(STARTS.search(symbols(program, "--undefined-only")))


def has_cuda(program):
    return bool(CUDA.search(symbols(program)))


def main(folder, said):
    found = {p.name for p in pathlib.Path(folder).glob("test_*")
             if starts_threads(p) and (p.name in said or not has_cuda(p))}
    for name in sorted(found - said):
        print(f"{name} can start threads: name it in PB_THREADED, for the thread sanitizer")
    for name in sorted(said - found):
        print(f"{name} has no threads: PB_THREADED does not need it")
    print(f"{len(found)} unit tests with threads")
    return 0 if found and found == said else 1


sys.exit(main(sys.argv[1], set(sys.argv[2:])))
