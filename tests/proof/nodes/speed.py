#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Scenes per second of three nodes against one, each node pinned to cores of its own; and the time from the offer of a job to its start
on an idle node. The nodes share a PostgreSQL server that syncs each commit, and one directory of products.

  speed.py [--cores N] [--scenes N] [--size N] [--offers N] [--place DIR] [--short]

Node i has the cores from i * N on. Pin the trial itself, and with it the server, to others: taskset -c 8-15 speed.py --cores 2. Times
are those of the store: from the first job that is there to the last that has ended. `--place`: a file system that is faster than the
nodes, for scenes and products; the server is in the usual directory of temporary files."""
import argparse
import os
import pathlib
import shutil
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from service_kit import Scenes, Service, closing_line  # noqa: E402, sets the path of the kits
import watch  # noqa: E402
from nodes import CONFIG  # noqa: E402
from patience import wait_for  # noqa: E402
from pbtest import Skip  # noqa: E402
from postgres_kit import Postgres  # noqa: E402
from store import Cleanups  # noqa: E402

NAMES = ("a", "b", "c")
ACCEPTED, RUNNING, SUCCESSFUL = range(3)


class Node(Service):
    def __init__(self, trial, number):
        self.name, self.trial = NAMES[number], trial
        super().__init__(parent=trial.scratch, parallel=trial.options.cores)
        first = number * trial.options.cores
        self.prefix = ["taskset", "-c", ",".join(str((first + i) % os.cpu_count()) for i in range(trial.options.cores))]

    def write_config(self, **settings):
        self.settings.update(settings)
        self.config.write_text(CONFIG.format(node=self.name, products=self.trial.products, conninfo=self.trial.server.conninfo, lease=30,
                                             **self.settings))


class Trial:
    """Some nodes with a store of their own."""

    def __init__(self, options, cleanups, nodes):
        self.options, self.scratch = options, pathlib.Path(tempfile.mkdtemp(prefix="pb-speed-", dir=options.place))
        cleanups.addCleanup(shutil.rmtree, self.scratch, True)
        self.scratch.chmod(0o755)
        self.products = self.scratch / "products"
        self.products.mkdir()
        self.server = Postgres(cleanups, ("max_connections=40",))
        self.nodes = [Node(self, number) for number in range(nodes)]
        for node in self.nodes:
            cleanups.addCleanup(lambda each=node: each.alive() and each.kill())
            node.start()
        for node in self.nodes:
            node.wait_up()
        self.server.rows(watch.TRIGGER)
        self.delivered, self.after = 0, 0

    def deliver(self, paths, nodes):
        """All at once: they are there under hidden names before the first gets its own."""
        moves = []
        for number, path in enumerate(paths):
            inbox, name = nodes[number % len(nodes)].root / "inbox", f"s{self.delivered:05}.tif"
            shutil.copy2(path, inbox / f".{name}.part")
            moves.append((inbox / f".{name}.part", inbox / name))
            self.delivered += 1
        for hidden, path in moves:
            os.rename(hidden, path)

    def wait_ended(self):
        """Returns the changes of jobs since the last call."""
        ended = "SELECT count(*) FROM pushbroom.jobs WHERE status >= 2"
        wait_for(lambda: int(self.server.rows(ended)[0][0]) >= self.delivered, progress=lambda: self.server.rows(ended), step=0.1)
        changes, self.after = watch.changes(self.server, self.after)
        return changes

    def run_all(self, paths, count, nodes):
        """Returns scenes per second, those that each node ran, and the jobs that did not end well."""
        self.deliver([paths[i % len(paths)] for i in range(count)], nodes)
        changes = self.wait_ended()
        ends = [c for c in changes if c.status > RUNNING]
        seconds = (max(c.at_ms for c in ends) - min(c.at_ms for c in changes)) / 1000
        shares = [sum(c.node == node.name for c in changes if c.status == RUNNING) for node in self.nodes]
        return len(ends) / seconds, shares, [c.name for c in ends if c.status != SUCCESSFUL]

    def offer_each(self, paths):
        """Returns times from an offer to the start, of jobs that their own node runs and of others, and the jobs that did not end well."""
        own, other, bad = [], [], []
        for _ in range(0, self.options.offers, len(self.nodes)):
            homes = {f"s{self.delivered + i:05}.tif": node.name for i, node in enumerate(self.nodes)}
            self.deliver(paths[:len(self.nodes)], self.nodes)
            changes = self.wait_ended()
            for name, home in homes.items():
                offered = next(c for c in changes if c.name == name and c.status == ACCEPTED)
                started = next(c for c in changes if c.name == name and c.status == RUNNING)
                (own if started.node == home else other).append(started.at_ms - offered.at_ms)
            bad += [c.name for c in changes if c.status > SUCCESSFUL]
        return own, other, bad


def percentiles(times):
    times = sorted(times)
    return f"{len(times)}, median {times[len(times) // 2]} ms, 99 % {times[int(len(times) * 0.99)]} ms, most {times[-1]} ms" if times else "none"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cores", type=int, default=2, help="of each node, and its parallel jobs")
    parser.add_argument("--scenes", type=int, default=200)
    parser.add_argument("--size", type=int, default=2048, help="width and height of a scene")
    parser.add_argument("--offers", type=int, default=300)
    parser.add_argument("--place", type=pathlib.Path)
    parser.add_argument("--short", action="store_true", help="6 scenes, 6 offers, one core")
    options = parser.parse_args()
    if options.short:
        options.cores, options.scenes, options.size, options.offers = 1, 6, 512, 6
    cleanups, wrong = Cleanups(), []
    made = pathlib.Path(tempfile.mkdtemp(prefix="pb-speed-", dir=options.place))
    cleanups.addCleanup(shutil.rmtree, made, True)
    try:
        large = Scenes(made / "large", size=options.size).good
        small = Scenes(made / "small").good
        one = Trial(options, cleanups, 1)
        one.run_all(small, 4 * options.cores, one.nodes)  # every worker has run a job
        rate, _, bad = one.run_all(large, options.scenes, one.nodes)
        wrong += bad
        print(f"1 node with {options.cores} cores: {rate:.2f} scenes/s of {options.size} x {options.size}", flush=True)
        one.nodes[0].end()
        three = Trial(options, cleanups, len(NAMES))
        three.run_all(small, 12 * options.cores, three.nodes)
        for what, nodes in (("into the inbox of each", three.nodes), ("into one inbox", three.nodes[:1])):
            many, shares, bad = three.run_all(large, options.scenes, nodes)
            wrong += bad
            print(f"3 nodes, {what}: {many:.2f} scenes/s, {many / rate:.2f} times; runs {shares}", flush=True)
        own, other, bad = three.offer_each(small)
        wrong += bad
        print(f"offer to start on an idle node: {percentiles(own + other)}\n  the node that has the file: {percentiles(own)}\n  another: {percentiles(other)}")
        for node in three.nodes:
            node.end()
    except Skip as skip:
        print(f"skipped: {skip}")
        sys.exit(77)
    finally:
        cleanups.run()
    sys.exit(closing_line([f"{name} did not end well" for name in wrong], 3 * options.scenes + options.offers))


main()
