#!/usr/bin/env python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""An inbox with many entries that stay: CPU time of the service until the entries are known, time from the rename of a scene into
the inbox until it is claimed, CPU time of the service for that scene, and time of calls of the socket meanwhile. The workers are
scripts, which do nothing.

    tests/bench/inbox.py [--bin DIR] [--kind foreign|folders|links|tree|sets ...] [--entries 1000 10000 100000] [--scenes 9]

foreign: files that no pipeline takes; folders: empty folders; links: symbolic links; tree: empty folders of an inbox that recurses;
sets: loose files, two of three of each scene."""
import argparse
import os
import pathlib
import statistics
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
QUIET_S, QUIET_CPU_S, PAUSE_S = 1, 0.03, 0.7

PLAIN = """  plain:
    input: {match: ["*.tif"], bands: {R: 1}}
    products: [{statistics: {}}]
"""
SETS = """pipelines:
  many:
    input:
      group: '(?<scene>scene[0-9]+)_B[0-9]+[.]dat'
      complete: {expire: 1d}
      files: {R: "*_B1.dat", G: "*_B2.dat", B: "*_B3.dat"}
    products: [{statistics: {}}]
""" + PLAIN


def fill(daemon, kind, entries):
    inbox = daemon.root / "inbox"
    if kind == "foreign":
        daemon.change("pipelines:", "  unmatched: {files: leave}\npipelines:", 1)
    elif kind == "tree":
        daemon.change(f"inbox: {inbox}", f"inboxes: [{{path: {inbox}, recurse: true}}]", 1)
    elif kind == "sets":
        daemon.set_pipelines(SETS)
    for i in range(entries):
        if kind == "foreign":
            (inbox / f"foreign{i:06}.bin").touch()
        elif kind == "links":
            (inbox / f"link{i:06}.tif").symlink_to("/nowhere")
        elif kind == "sets":
            (inbox / f"scene{i // 2:06}_B{i % 2 + 1}.dat").touch()
        else:
            (inbox / f"folder{i:06}").mkdir()


def cpu_s(daemon):
    """CPU time of the threads of the service, without its workers."""
    tasks = pathlib.Path("/proc", str(daemon.process.pid), "task")
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks.iterdir()) / 1e9


class Caller(threading.Thread):
    """Calls the service all the time; the times of the calls."""

    def __init__(self, daemon):
        super().__init__()
        self.daemon_of_calls, self.times, self.ends = daemon, [], threading.Event()

    def run(self):
        client = self.daemon_of_calls.client()
        while not self.ends.is_set():
            start = time.monotonic()
            client.call("service.info")
            self.times.append(time.monotonic() - start)
            self.ends.wait(0.005)
        client.close()

    def end(self):
        self.ends.set()
        self.join()
        return sorted(self.times)


def claim_scene(daemon, number):
    """Seconds until the scene was claimed, and of CPU time."""
    path = daemon.root / "inbox" / f"new{number}.tif"
    before, start = cpu_s(daemon), time.monotonic()
    daemon.drop(path.name, old=True)
    while path.exists():
        time.sleep(0.0005)
    latency = time.monotonic() - start
    time.sleep(PAUSE_S)
    return latency, cpu_s(daemon) - before


def measure(daemon, scenes):
    daemon.start()
    first = 0
    while cpu_s(daemon) - first > QUIET_CPU_S:
        first = cpu_s(daemon)
        time.sleep(QUIET_S)
    idle = cpu_s(daemon)
    caller = Caller(daemon)
    caller.start()
    latency, cost = zip(*(claim_scene(daemon, i) for i in range(scenes)))
    calls = caller.end()
    status = pathlib.Path("/proc", str(daemon.process.pid), "status").read_text()
    return dict(first=idle, latency=statistics.median(latency), worst=max(latency), cost=statistics.median(cost),
                p99=calls[len(calls) * 99 // 100], calls=len(calls), mb=int(status.split("VmRSS:")[1].split()[0]) // 1024)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=HERE.parent.parent / "build/bin")
    parser.add_argument("--kind", nargs="+", default=["foreign", "folders", "links", "tree", "sets"])
    parser.add_argument("--entries", nargs="+", type=int, default=[1000, 10000, 100000])
    parser.add_argument("--scenes", type=int, default=9)
    options = parser.parse_args()
    os.environ["PB_BIN"] = str(options.bin)
    sys.path.insert(0, str(HERE.parent / "integration"))
    from daemon_kit import Daemon
    print("| entries | CPU of the start | claim, median | longest | CPU of a scene | calls, 99th percentile | memory |\n"
          + "|---" * 7 + "|")
    for kind in options.kind:
        for entries in options.entries:
            with Daemon(settle="150ms", rescan="30s") as daemon:
                fill(daemon, kind, entries)
                r = measure(daemon, options.scenes)
            print(f"| {entries} {kind} | {r['first'] * 1e3:.0f} ms | {r['latency'] * 1e3:.1f} ms | {r['worst'] * 1e3:.1f} ms "
                  f"| {r['cost'] * 1e3:.0f} ms | {r['p99'] * 1e3:.1f} ms of {r['calls']} | {r['mb']} MB |", flush=True)


if __name__ == "__main__":
    main()
