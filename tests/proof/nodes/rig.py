#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Three services with one PostgreSQL store (a server and its synchronous standby) and one directory of products, under faults that a seed
chooses. Afterwards the record of the trial must follow the rules of history.py: no scene is lost, published twice or reported twice, and
products are those of a run without faults.

  rig.py [--seed N] [--faults N] [--minutes M] [--seconds S] [--lease S] [--kinds "A,B"] [--round N] [--scenes N] [--any-inbox] [--fetch]
         [--figures FILE] [--short] [--keep]

Each round makes some faults, heals them all, waits until nothing moves, and checks. The seed decides about all faults and scenes, and
not about the time that the services take. `--faults` ends the trial after this number, `--minutes` after a round when the time is over, `--seconds` within a round.
The short form in ctest is --short. With the right to mount, products are on a small file system of their own, which can be full, and the trial has process ids of its own.
--any-inbox: each node watches the inboxes of those that are away. --fetch: each node has directories of its own, and a pushbroom-fetch."""
import argparse
import collections
import dataclasses
import json
import os
import pathlib
import random
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from service_kit import checksum, closing_line  # noqa: E402, sets the path of the kits
import faults  # noqa: E402
import history  # noqa: E402
import watch  # noqa: E402
from nodes import FOLDERS, Cluster  # noqa: E402
from patience import wait_for  # noqa: E402
from pbtest import Skip  # noqa: E402
from store import Cleanups, Links, Store  # noqa: E402

NAMES = ("a", "b", "c")
SHORT = ("node killed", "node stopped", "late rename", "answers lost", "store failed over", "worker killed", "cancel", "products full")
FALSE = ("no free job id", "cannot become", "handles are left open")  # no fault of the trial is a reason for these messages
LATE_S = 6  # a job of a dead node starts elsewhere within its lease and this time
PRODUCTS_MB = 256
MOUNTED = "PB_RIG_MOUNTED"  # set when the trial has mounts and process ids of its own
OWN = ("unshare", "-m", "-p", "-f", "--kill-child", "--mount-proc")  # no process of another trial gets the id of a killed process


class Trial:
    def __init__(self, options, scratch, cleanups):
        self.options, self.rng = options, random.Random(options.seed)
        self.scratch, self.is_mounted = scratch, options.mount
        self.wrong, self.count, self.kinds_made = [], collections.Counter(), collections.Counter()
        self.round, self.failovers, self.dead = [], [], []
        self.begun, self.faults_checked = time.monotonic(), 0
        self.active, self.checked = [], 0  # active: (what a fault needs, generator, its period)
        self.periods = []  # [kind, begin, end] of each fault
        store, links = Store(cleanups), Links()
        links.start()
        cleanups.addCleanup(links.end)
        self.cluster = Cluster(scratch, store, links, NAMES, options.lease, options.any_inbox, options.fetch)
        cleanups.addCleanup(self.cluster.end)
        for place in self.cluster.places if self.is_mounted else []:
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={PRODUCTS_MB // len(self.cluster.places)}m", "none", place], check=True)
        self.changes_after, self.all_changes = 0, []

    def start(self):
        self.cluster.start()
        store = self.cluster.store
        wait_for(lambda: len(store.rows("SELECT 1 FROM pushbroom.nodes WHERE session <> 0")) == len(NAMES))
        store.rows(watch.TRIGGER)
        self.events_after = watch.last_event(store)
        self.products = watch.ProductsWatch(self.cluster.places)
        self.clients = [watch.EventsWatch(node, self.events_after) for node in self.cluster.nodes]
        for thread in (self.products, *self.clients):
            thread.start()

    def note_dead(self, node):
        """Remembers the jobs that run on a node when it is killed or stopped."""
        if self.store_answers():
            self.dead.append((time.time(), node.name, node.running(), self.periods[-1]))

    def await_job(self, node):
        """Until the node runs a job; not for long, because other nodes may take all."""
        self.deliver(2)
        end = time.monotonic() + self.cluster.lease
        while self.store_answers() and not node.running() and time.monotonic() < end:
            time.sleep(0.1)

    def nodes_up(self):
        """Names of the nodes without a present fault."""
        return [node.name for i, node in enumerate(self.cluster.nodes) if not any(f"node {i}" in wanted for wanted, _, _ in self.active)]

    def store_answers(self):
        return not any("store" in wanted for wanted, _, _ in self.active)

    def wait_session_over(self, node):
        end = time.monotonic() + 4 * self.cluster.lease
        while self.store_answers() and node.has_session() and time.monotonic() < end:
            time.sleep(0.1)

    # --- a round ---

    def deliver(self, count):
        self.round += [self.cluster.deliver(self.rng) for _ in range(count)]

    def deliver_to(self, node):
        self.round.append(self.cluster.deliver_as(node, self.rng.random() >= 0.1))

    def make(self, fault):
        """Begins a fault; returns what ends it."""
        self.kinds_made[fault.kind] += 1
        print(f"  {fault.kind}, node {NAMES[fault.node]}, {fault.lasts:.2f} leases, {fault.pick:.3f}", flush=True)
        running = faults.FAULTS[fault.kind][0](self, self.cluster.nodes[fault.node], fault)
        next(running)
        return running

    def run_round(self, planned):
        for fault in planned:
            if self.options.seconds and time.monotonic() - self.begun >= self.options.seconds:
                break
            self.deliver(fault.scenes)
            wanted = faults.needs(fault)
            for other in [a for a in self.active if a[0] & wanted]:
                self.active.remove(other)
                self.end(other)
            self.periods.append([fault.kind, time.time(), float("inf")])
            self.active.append((wanted, self.make(fault), self.periods[-1]))
            time.sleep(fault.lasts * self.cluster.lease * (1 if faults.FAULTS[fault.kind][1] != faults.NOTHING else 0.2))
            if fault.alone:
                self.end(self.active.pop())
        while self.active:
            self.end(self.active.pop())
        self.cluster.heal()

    @staticmethod
    def end(active):
        _, running, period = active
        next(running, None)
        period[2] = time.time()

    def check_round(self):
        """Waits for rest and checks what was recorded since the last check. Returns the record."""
        faults_found = self.cluster.wait_quiet(self.round)
        store = self.cluster.store
        events = watch.events(store, self.events_after)
        last = events[-1].seq if events else self.events_after
        for client in self.clients:
            client.wait_for(last)
        changes, after = watch.changes(store, self.changes_after)
        status = {change.name: change.status for change in changes}
        good = [d for d in self.round if status.get(d.name) == history.SUCCESSFUL and self.where(d) == "archive"]
        reference = self.cluster.reference(good)
        scenes = [history.Scene(d.name, d.scene, d.good, d.cancels, d.retries, self.where(d),
                                self.cluster.products_of(d), reference.get(d.scene, {})) for d in self.round]
        publications, self.products.publications = self.products.publications, []
        moves, self.products.moves = self.products.moves, {}
        record = history.History(scenes, changes, events, {c.node.name: self.seen(c, last) for c in self.clients}, publications, moves,
                                 self.products.gone + [f"{self.products.lost} events of inotify"] * bool(self.products.lost),
                                 self.cluster.leftovers(), self.events_after, watch.gaps(store))
        faults_found += history.check(record) + [gap for client in self.clients for gap in client.gaps]
        self.changes_after, self.events_after = after, last
        self.all_changes += changes
        self.checked += len(scenes)
        self.faults_checked = self.kinds_made.total()
        self.wrong += faults_found
        for fault in faults_found:
            print(f"FAIL  {fault}", flush=True)
        self.round = []
        return record

    @staticmethod
    def seen(client, last):
        """Events up to that number. A file is in quarantine shortly before its event."""
        seen = [event for event in client.seen if event.seq <= last]
        del client.seen[:len(seen)]
        return seen

    def where(self, delivered):
        """The places of a file, of those of all nodes."""
        found = []
        for node in self.cluster.nodes:
            for place, folder in zip(("archive", "quarantine"), FOLDERS):
                path = node.root / folder / delivered.name
                if path.is_file():
                    own = node in self.cluster.homes(delivered) and checksum(path) == delivered.content
                    found.append(place if own else f"{place} of {node.name}, or with other content")
        return ", ".join(found) or "no place"

    # --- the trial ---

    def run(self):
        self.start()
        options, begun, record = self.options, time.monotonic(), None
        kinds = options.kinds.split(",") if options.kinds else [kind for kind in faults.FAULTS if options.fetch or kind not in faults.OF_FETCH]
        plan = faults.plan(self.rng, len(NAMES), kinds, not options.kinds)
        while not self.wrong and self.goes_on():
            timed = options.minutes or options.seconds
            planned = [next(plan) for _ in range(options.round if timed else min(options.round, options.faults - self.kinds_made.total()))]
            self.deliver(options.scenes)
            self.run_round(planned)
            record = self.check_round()
            print(f"{self.kinds_made.total()} faults, {self.checked} scenes, {time.monotonic() - begun:.0f} s", flush=True)
        if not self.wrong:
            self.check_checker()
        for node in self.cluster.nodes:
            self.wrong += [f"the log of node {node.name} has '{words}'" for words in FALSE if words in node.log_text()]
            status = node.end()
            if status != 0:
                self.wrong.append(f"node {node.name} ended with {status}:\n{node.tail(6)}")
        return record

    def goes_on(self):
        options, passed = self.options, time.monotonic() - self.begun
        if options.minutes or options.seconds:
            return passed < (60 * options.minutes or options.seconds)
        return self.kinds_made.total() < options.faults

    def check_checker(self):
        """With a scene of each end, which a round without faults makes."""
        for good in (True, True, False):
            self.round.append(self.cluster.deliver_as(self.cluster.nodes[0], good))
        record = self.check_round()
        self.wrong += history.check_checker(record) if not self.wrong else []

    def report(self):
        logs = [node.log_text() for node in self.cluster.nodes]
        for what, words in (("sessions that ended", "ended the session of this node"), ("permits refused", "the job store has another run"),
                            ("found published", "its products are in place"), ("inboxes taken over", "begins to watch"), ("put back", "put back into the queue")):
            self.count[what] = sum(text.count(words) for text in logs)
        changes = self.all_changes
        back = [c for c in changes if c.before == history.RUNNING and c.status == history.ACCEPTED]
        self.count["runs that were given up"] = len(back)
        self.count["runs of another node's file"] = sum(c.status == history.RUNNING and c.node != self.cluster.delivered[c.name].node.name for c in changes)
        print("faults: " + ", ".join(f"{n} {kind}" for kind, n in sorted(self.kinds_made.items())))
        print(f"scenes: {self.checked}; " + ", ".join(f"{n} {what}" for what, n in sorted(self.count.items())))
        elsewhere, lease = list(self.times_elsewhere()), self.cluster.lease
        for what, others in (("dead node alone", False), ("other faults meanwhile", True)):
            times = sorted(seconds for seconds, _, kinds in elsewhere if bool(kinds) == others)
            if times:
                print(f"{what}, its jobs elsewhere (lease {lease:g} s): {spread(times)}")
        for seconds, job, kinds in elsewhere:
            if seconds > lease + LATE_S:
                print(f"  late: job {job} after {seconds:.1f} s; other faults: {', '.join(kinds) or 'none'}")
        for what, which, is_up in (("killed", 0, True), ("promoted", 1, True), ("killed, no node was up", 0, False)):
            takes = sorted(t for t in (self.time_to_take(f[which]) for f in self.failovers if bool(f[2]) == is_up) if t is not None)
            if takes:
                print(f"failover, next start of a job after the store was {what}: {spread(takes)}")

    def times_elsewhere(self):
        """Yields the time from the death of a node to the start of its job on another, the job, and the faults at the same time. Without
        a common file system, a job whose file the dead node has does not run elsewhere."""
        for at, name, jobs, own in self.dead:
            for job in jobs:
                later = [c for c in self.all_changes if c.job == job and c.at_ms >= at * 1000]
                start = next((c for c in later if c.status == history.RUNNING), None)
                bound = self.options.fetch and later and self.cluster.delivered[later[0].name].node.name == name
                if start and start.node != name and later[0].status == history.ACCEPTED and not bound:
                    end = start.at_ms / 1000
                    yield end - at, job, [p[0] for p in self.periods if p is not own and p[1] < end and p[2] > at]

    def figures(self):
        """Returns the counts and times of the trial, which are summed over many."""
        named = [[*dataclasses.astuple(c)] for c in self.all_changes if any(c.name in fault or c.job in fault for fault in self.wrong)]
        return {"seed": self.options.seed, "form": [form for form in ("any_inbox", "fetch") if getattr(self.options, form)], "lease": self.cluster.lease, "faults": self.kinds_made, "checked": self.faults_checked, "scenes": self.checked, "wrong": self.wrong,
                "changes": named, "periods": self.periods, "count": self.count, "elsewhere": list(self.times_elsewhere()),
                "failovers": [[self.time_to_take(killed), self.time_to_take(promoted), up,
                               [p[0] for p in self.periods if p[1] < promoted and p[2] > killed]] for killed, promoted, up in self.failovers]}

    def time_to_take(self, at):
        return next((c.at_ms / 1000 - at for c in self.all_changes if c.status == history.RUNNING and c.at_ms >= at * 1000), None)


def spread(times):
    return f"{len(times)}, median {times[len(times) // 2]:.1f} s, most {times[-1]:.1f} s"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--faults", type=int, default=60)
    parser.add_argument("--minutes", type=float, default=0)
    parser.add_argument("--seconds", type=float, default=0, help="no fault begins later")
    parser.add_argument("--lease", type=float, default=4)
    parser.add_argument("--round", type=int, default=12, help="faults between two checks")
    parser.add_argument("--scenes", type=int, default=6, help="at the begin of each round")
    parser.add_argument("--kinds", help="names of faults: " + ", ".join(f'"{kind}"' for kind in faults.FAULTS))
    parser.add_argument("--any-inbox", action="store_true", help="a node watches the inboxes of nodes that are away")
    parser.add_argument("--fetch", action="store_true", help="nodes have no common file system")
    parser.add_argument("--figures", type=pathlib.Path, help="file for the figures as JSON")
    parser.add_argument("--short", action="store_true", help="one of each of the eight most different faults")
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    if options.short:
        options.faults, options.lease, options.scenes, options.kinds = len(SHORT), 2, 3, ",".join(SHORT)
    options.mount = MOUNTED in os.environ
    if not options.mount and os.geteuid() == 0 and subprocess.run([*OWN, "true"], stderr=subprocess.DEVNULL).returncode == 0:
        os.execvpe(OWN[0], [*OWN, sys.executable, *sys.argv], dict(os.environ, **{MOUNTED: "1"}))
    scratch, cleanups, begun = pathlib.Path(tempfile.mkdtemp(prefix="pb-nodes-")), Cleanups(), time.monotonic()
    scratch.chmod(0o755)
    print(f"seed {options.seed}, {scratch}", flush=True)
    trial = None
    try:
        trial = Trial(options, scratch, cleanups)
        trial.run()
    except Skip as skip:
        print(f"skipped: {skip}")
        sys.exit(77)
    finally:
        cleanups.run()
        kept = options.keep or (trial and trial.wrong) or sys.exc_info()[0] not in (None, SystemExit)
        if kept and options.mount and trial:  # the file system ends with this process
            for number, place in enumerate(trial.cluster.places):
                shutil.copytree(place, scratch / f"products-kept-{number}", symlinks=True)
        if kept:
            print(f"kept: {scratch}; again: rig.py {shlex.join(sys.argv[1:])} --seed {options.seed}")
        if trial:
            trial.report()
            if options.figures:
                options.figures.write_text(json.dumps(trial.figures()))
        for place in trial.cluster.places if trial and options.mount else []:
            subprocess.run(["umount", place], check=False)
        if not kept:
            shutil.rmtree(scratch, ignore_errors=True)
    print(f"{time.monotonic() - begun:.0f} s")
    sys.exit(closing_line(trial.wrong, trial.checked))


main()
