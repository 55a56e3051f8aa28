#!/usr/bin/env python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""What a command took: seconds of wall clock, peak resident MB of its largest process, CPU seconds.

The command is started by a small process of its own. Linux keeps a process's peak over exec, and between fork and exec a child has its
parent's memory: started from a benchmark that has read images itself, any command would be said to hold at least as much as the benchmark.
The least that is measured is therefore this small process, some 10 MB."""
import json
import os
import subprocess
import sys
import time


def measure(command, env=None):
    """Of a command, a list of words; its standard output is dropped. Ends the program when it fails."""
    done = subprocess.run([sys.executable, "-I", "-S", __file__, *map(str, command)], stdout=subprocess.PIPE, env={**os.environ, **(env or {})}, check=False)
    if done.returncode != 0:
        sys.exit(f"failed: {' '.join(map(str, command))}")
    return tuple(json.loads(done.stdout))


def main():
    start = time.monotonic()
    pid = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ, file_actions=[(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)])
    _, status, usage = os.wait4(pid, 0)
    print(json.dumps([time.monotonic() - start, usage.ru_maxrss / 1024, usage.ru_utime + usage.ru_stime]))
    sys.exit(0 if status == 0 else 1)


if __name__ == "__main__":
    main()
