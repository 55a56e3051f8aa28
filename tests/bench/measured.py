#!/usr/bin/env python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Costs of a command: seconds of wall clock, peak resident MB of its largest process, CPU seconds.

The command is started by a small process of its own. Linux keeps a process's peak over exec, and between fork and exec a child has its
parent's memory: started from a benchmark that has read images itself, any command would seem to hold at least as much as the benchmark.
The least that is measured is therefore this small process, some 10 MB."""
import json
import os
import subprocess
import sys
import time


def measure(command, env=None):
    """Runs a command, a list of words; its standard output is dropped. Ends the program when it fails."""
    (took,) = measure_all([command], env)
    if took is None:
        sys.exit(f"failed: {' '.join(map(str, command))}")
    return tuple(took)


def measure_all(commands, env=None, under=()):
    """The same of several commands, one after the other, what was written before each being on the disk; None for one that fails. Words of
    `under` are put before the process that starts them, and not measured."""
    words = json.dumps([[str(w) for w in command] for command in commands])
    done = subprocess.run([*under, sys.executable, "-I", "-S", __file__], input=words, stdout=subprocess.PIPE, env={**os.environ, **(env or {})}, check=False, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()] + [None] * (len(commands) - done.stdout.count("\n"))


def one(command):
    os.sync()
    start = time.monotonic()
    pid = os.posix_spawnp(command[0], command, os.environ, file_actions=[(os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0), (os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)])
    _, status, usage = os.wait4(pid, 0)
    took = [time.monotonic() - start, usage.ru_maxrss / 1024, usage.ru_utime + usage.ru_stime]
    print(json.dumps(took if status == 0 else None), flush=True)


if __name__ == "__main__":
    for words in json.loads(sys.stdin.read()):
        one(words)
