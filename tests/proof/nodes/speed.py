#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Scenes per second of three nodes against one, each node pinned to cores of its own; and the time from the offer of a job to its start
on an idle node. The nodes share a PostgreSQL server that syncs each commit, and one directory of products. Three services that share
nothing show what the machine gives.

  speed.py [--cores N] [--more N] [--scenes N] [--size N] [--offers N] [--place DIR]
           [--quota CPUS] [--groups DIR] [--short]

Node i has the cores from i * N on. Pin the trial itself, and with it the server, to others: taskset -c 8-15 speed.py --cores 2. On few
cores --quota bounds the CPU time of each node instead. Times are those of the store: from the first job that is there to the last that
has ended. `--place`: a file system that is faster than the nodes, for scenes and products; the server is in the usual directory of
temporary files."""
import argparse
import collections
import dataclasses
import os
import pathlib
import shutil
import statistics
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from service_kit import Scenes, Service, closing_line  # noqa: E402, sets the path of the kits
import watch  # noqa: E402
from nodes import CONFIG  # noqa: E402
from patience import cpu_ticks, wait_for  # noqa: E402
from pbtest import Skip  # noqa: E402
from postgres_kit import Postgres  # noqa: E402
from store import Cleanups  # noqa: E402

NAMES = ("a", "b", "c")
ACCEPTED, RUNNING, SUCCESSFUL = range(3)
PERIOD_US = 10000


def make_group(path, quota):
    """Makes a cgroup whose processes share this number of CPUs. remove_groups() removes it after they have ended."""
    path.mkdir(exist_ok=True)
    if (path / "cpu.max").exists():
        (path / "cpu.max").write_text(f"{quota * PERIOD_US:.0f} {PERIOD_US}")
    else:
        (path / "cpu.cfs_period_us").write_text(str(PERIOD_US))
        (path / "cpu.cfs_quota_us").write_text(f"{quota * PERIOD_US:.0f}")
    return path


def remove_groups(parent):
    for path in parent.glob(f"pushbroom-speed-{os.getpid()}-*"):
        wait_for(lambda group=path: not (group / "cgroup.procs").read_text())
        path.rmdir()


class Node(Service):
    def __init__(self, trial, number):
        self.name, self.trial = NAMES[number], trial
        super().__init__(parent=trial.scratch, parallel=trial.options.cores + trial.options.more)
        first = number * trial.options.cores
        self.prefix = ["taskset", "-c", ",".join(str((first + i) % os.cpu_count()) for i in range(trial.options.cores))]
        if trial.options.quota:
            group = make_group(trial.options.groups / f"pushbroom-speed-{os.getpid()}-{self.name}", trial.options.quota)
            self.prefix = ["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh"]

    def write_config(self, **settings):
        self.settings.update(settings)
        self.config.write_text(CONFIG.format(node=self.name, products=self.trial.products, conninfo=self.trial.server.conninfo, lease=30,
                                             **self.settings))


class Trial:
    """Some nodes, by their numbers, with a store of their own."""

    def __init__(self, options, cleanups, numbers):
        self.options, self.scratch = options, pathlib.Path(tempfile.mkdtemp(prefix="pb-speed-", dir=options.place))
        cleanups.addCleanup(shutil.rmtree, self.scratch, True)
        self.scratch.chmod(0o755)
        self.products = self.scratch / "products"
        self.products.mkdir()
        self.server = Postgres(cleanups, ("max_connections=40",))
        self.nodes = [Node(self, number) for number in numbers]
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
        return run_beside([self], paths, count, [nodes])

    def used(self):
        """CPU seconds of the services, of their workers and of the server, and the server's transactions, since the start."""
        services = [node.process.pid for node in self.nodes]
        own = sum(own_ticks(pid) for pid in services)
        ticks = (own, sum(map(cpu_ticks, services)) - own, cpu_ticks(self.server.process.pid))
        commits = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = 'postgres'"
        return [n / os.sysconf("SC_CLK_TCK") for n in ticks] + [int(self.server.rows(commits)[0][0])]

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


def own_ticks(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
        return sum(map(int, file.read().rpartition(")")[2].split()[11:13]))


@dataclasses.dataclass
class Result:
    """Figures of scenes that ran at the same time. shares: runs of each node; used: as Trial.used(), for a scene; run, gap: median milliseconds
    of a run, and between two runs of a slot."""
    rate: float
    shares: list
    bad: list
    used: list
    run: float
    gap: float

    def __str__(self):
        service, workers, server, transactions = self.used
        return (f"{self.rate:.2f} scenes/s, runs {self.shares}; a run {self.run:.0f} ms, then {self.gap:.0f} ms without one; CPU of a scene: "
                f"workers {1000 * workers:.0f} ms, service {1000 * service:.1f} ms, server {1000 * server:.1f} ms; "
                f"{transactions:.1f} transactions")


def run_beside(trials, paths, count, inboxes):
    """Runs `count` scenes in all, in trials that run at the same time, from the inboxes of some nodes of each trial."""
    before = [trial.used() for trial in trials]
    for number, (trial, nodes) in enumerate(zip(trials, inboxes)):
        trial.deliver([paths[i % len(paths)] for i in range(number, count, len(trials))], nodes)
    changes = [change for trial in trials for change in trial.wait_ended()]
    used = [[(b - a) / count for a, b in zip(was, trial.used())] for was, trial in zip(before, trials)]
    ends = [c for c in changes if c.status > RUNNING]
    seconds = (max(c.at_ms for c in ends) - min(c.at_ms for c in changes)) / 1000
    names = [node.name for trial in trials for node in trial.nodes]
    shares = [sum(c.node == name for c in changes if c.status == RUNNING) for name in names]
    runs, gaps = times_of_slots(changes)
    return Result(len(ends) / seconds, shares, [c.name for c in ends if c.status != SUCCESSFUL], [sum(n) for n in zip(*used)],
                  statistics.median(runs), statistics.median(gaps or [0]))


def times_of_slots(changes):
    """Milliseconds of each run, and of each slot from the end of a run to the begin of the next."""
    begun, free, runs, gaps = {}, collections.defaultdict(list), [], []
    for change in sorted(changes, key=lambda c: c.at_ms):
        if change.status == RUNNING:
            begun[change.node, change.job] = change.at_ms
            if free[change.node]:
                gaps.append(change.at_ms - free[change.node].pop(0))
        elif change.status > RUNNING:
            runs.append(change.at_ms - begun[change.node, change.job])
            free[change.node].append(change.at_ms)
    return runs, gaps


def percentiles(times):
    times = sorted(times)
    return f"{len(times)}, median {times[len(times) // 2]} ms, 99 % {times[int(len(times) * 0.99)]} ms, most {times[-1]} ms" if times else "none"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cores", type=int, default=2, help="of each node, and its parallel jobs without --more")
    parser.add_argument("--more", type=int, default=0, help="parallel jobs beyond the cores")
    parser.add_argument("--scenes", type=int, default=200)
    parser.add_argument("--size", type=int, default=2048, help="width and height of a scene")
    parser.add_argument("--offers", type=int, default=300)
    parser.add_argument("--place", type=pathlib.Path)
    parser.add_argument("--quota", type=float, default=0, help="CPUs of each node, which then has no cores of its own")
    parser.add_argument("--groups", type=pathlib.Path, default=pathlib.Path("/sys/fs/cgroup"), help="cgroup with the controller of CPUs, for --quota")
    parser.add_argument("--short", action="store_true", help="6 scenes, 6 offers, one core")
    options = parser.parse_args()
    if options.short:
        options.cores, options.scenes, options.size, options.offers = 1, 6, 512, 6
    cleanups, wrong = Cleanups(), []
    made = pathlib.Path(tempfile.mkdtemp(prefix="pb-speed-", dir=options.place))
    cleanups.addCleanup(shutil.rmtree, made, True)
    if options.quota:
        cleanups.addCleanup(remove_groups, options.groups)
    try:
        large = Scenes(made / "large", size=options.size).good
        small = Scenes(made / "small").good
        one = Trial(options, cleanups, [0])
        one.run_all(small, 4 * (options.cores + options.more), one.nodes)  # every worker has run a job
        alone = one.run_all(large, options.scenes, one.nodes)
        print(f"1 node with {options.cores} cores, {options.size} x {options.size}: {alone}", flush=True)
        others = [one] + [Trial(options, cleanups, [number]) for number in range(1, len(NAMES))]
        run_beside(others, small, 12 * (options.cores + options.more), [trial.nodes for trial in others])
        beside = run_beside(others, large, options.scenes, [trial.nodes for trial in others])
        print(f"3 services that share nothing: {beside.rate / alone.rate:.2f} times; {beside}", flush=True)
        for trial in others:
            trial.nodes[0].end()
        three = Trial(options, cleanups, range(len(NAMES)))
        three.run_all(small, 12 * (options.cores + options.more), three.nodes)
        results = [alone, beside]
        for what, nodes in (("into the inbox of each", three.nodes), ("into one inbox", three.nodes[:1])):
            results.append(three.run_all(large, options.scenes, nodes))
            print(f"3 nodes, {what}: {results[-1].rate / alone.rate:.2f} times; {results[-1]}", flush=True)
        wrong += [name for result in results for name in result.bad]
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
    sys.exit(closing_line([f"{name} did not end well" for name in wrong], 4 * options.scenes + options.offers))


main()
