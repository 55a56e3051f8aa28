#!/usr/bin/env python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Costs of a command: seconds of wall clock, peak resident MB of its largest process, CPU seconds of its process tree, peak resident MB of the
tree.

The command is started by a small process of its own. Linux keeps a process's peak over exec, and between fork and exec a child has its
parent's memory: started from a benchmark that has read images itself, any command would seem to hold at least as much as the benchmark.
The least that is measured is therefore this small process, some 10 MB.

The tree is sampled every 20 ms. Its memory is the anonymous memory of all its processes, and once the largest part that is mapped from files or
shared, because processes of a tree share these. A peak between two samples is missed unless a single process has it."""
import json
import os
import subprocess
import sys
import threading
import time

SAMPLE_S = 0.02
PAGE_MB = os.sysconf("SC_PAGE_SIZE") / 2**20


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


def tree(pid):
    """Numbers of a process and of those below it. A process that ends meanwhile is left out."""
    yield pid
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as f:
                for child in f.read().split():
                    yield from tree(int(child))
    except OSError:
        return


def resident_mb(pid):
    """Memory of a tree now."""
    own, shared = 0, 0
    for each in tree(pid):
        try:
            with open(f"/proc/{each}/statm", encoding="ascii") as f:
                _, resident, mapped, *_ = map(int, f.read().split())
        except OSError:
            continue
        own, shared = own + resident - mapped, max(shared, mapped)
    return (own + shared) * PAGE_MB


class TreePeak:
    """Samples the memory of a tree until it is stopped."""

    def __init__(self, pid):
        self.pid, self.mb, self.ended = pid, 0, threading.Event()
        self.thread = threading.Thread(target=self.sample)
        self.thread.start()

    def sample(self):
        while not self.ended.is_set():
            self.mb = max(self.mb, resident_mb(self.pid))
            self.ended.wait(SAMPLE_S)

    def stop(self):
        self.ended.set()
        self.thread.join()
        return self.mb


def one(command):
    os.sync()
    start = time.monotonic()
    pid = os.posix_spawnp(command[0], command, os.environ, file_actions=[(os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0), (os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)])
    peak = TreePeak(pid)
    _, status, usage = os.wait4(pid, 0)
    seconds, largest = time.monotonic() - start, usage.ru_maxrss / 1024
    took = [seconds, largest, usage.ru_utime + usage.ru_stime, max(peak.stop(), largest)]
    print(json.dumps(took if status == 0 else None), flush=True)


if __name__ == "__main__":
    for words in json.loads(sys.stdin.read()):
        one(words)
