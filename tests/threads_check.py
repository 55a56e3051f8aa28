#!/usr/bin/env python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Unit tests that can start threads have the tag `threads` in their first comment (tests/CMakeLists.txt), so that the thread
sanitizer's tree has those and no others. This compares the tags with what the programs are linked with.

Usage: threads_check.py BIN NAME...     BIN: the folder of the test programs; NAME: those that have the tag"""
import pathlib
import re
import subprocess
import sys

CUDA = re.compile(r"cudart")  # the CUDA run-time, whose threads are not ours, is part of the program
STARTS = re.compile(r"\b(pthread_create|_ZNSt6thread15_M_start_thread\w*|thrd_create|uv_thread_create(_ex)?|uv_queue_work)\b")


def symbols(program, *options):
    return subprocess.run(["nm", *options, program], stdout=subprocess.PIPE, text=True, check=True).stdout


def starts_threads(program):
    return bool(STARTS.search(symbols(program, "--undefined-only")))


def has_cuda(program):
    return bool(CUDA.search(symbols(program)))


def main(folder, tagged):
    # names with a dot are a linker's, which removes them later
    found = {p.name for p in pathlib.Path(folder).glob("test_*") if "." not in p.name
             if starts_threads(p) and (p.name in tagged or not has_cuda(p))}
    for name in sorted(found - tagged):
        print(f"{name} can start threads: its first comment needs the tag: ctest: threads")
    for name in sorted(tagged - found):
        print(f"{name} has no threads: remove its tag threads")
    print(f"{len(found)} unit tests with threads")
    return 0 if found and found == tagged else 1


sys.exit(main(sys.argv[1], set(sys.argv[2:])))
