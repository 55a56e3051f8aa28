#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""kill -9 of the service and its workers while scenes of all kinds (deliveries.py) arrive. Afterwards every delivered file is in one
place, the archive or quarantine; each scene has one successful job, or one of each late file and of each request to make it again;
the products are those of a service without faults, and a reader that watched all the time saw each of them once and complete.

  kill.py [--kills 1000] [--seed N] [--kinds A,B] [--every-point] [--point KIND:PLACE:N] [--keep]        the short form in ctest: --kills 30

First all kinds are delivered without a fault; the calls that rename, link, remove, make directories and sync are counted meanwhile,
and the writes to the job store. Half of the kills are at chosen calls of these, one scene at a time, and may hit the start after the
kill as well; the other half are at random times, with many scenes and slow calls. The seed decides about all choices but not about
the time that the service takes; a fault at a point is tried again by --point."""
import argparse
import collections
import pathlib
import random
import shutil
import sys
import tempfile
import time

import control
from deliveries import AGAIN, RETRY, VARIANTS, Deliveries, KindsService, Watcher
from patience import wait_for
from service_kit import SHIM, closing_line

# Each of these calls is a point to be killed at: {place: rule of the shim}.
PLACES = {"daemon": dict(call="change", role="daemon"), "store": dict(call="pwrite", role="daemon", path="/state/"),
          "worker": dict(call="change", role="worker")}
NEVER = 1 << 62
RESTART_SHARE = 0.3  # share of the kills at points that are followed by a kill of the start
RESTART_CALLS = 25
ROUND = 25  # random kills between two accounts


class Trial:
    def __init__(self, options):
        self.options, self.rng = options, random.Random(options.seed)
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="pb-kill-"))
        self.faults = control.Faults(self.scratch / "faults", SHIM)
        self.service = KindsService(environment=self.faults.environment(), parent=self.scratch)
        self.deliveries = Deliveries(self.service)
        self.watcher = Watcher(self.deliveries)
        self.kinds = options.kinds.split(",") if options.kinds else list(self.deliveries.kinds)
        self.points = {}  # {(kind, place): number of calls}
        self.wrong, self.count = [], collections.Counter()

    def start(self):
        self.service.start()
        self.service.wait_up()

    def check(self, deliveries, where):
        """Waits for the end of these, and adds what is wrong with them."""
        try:
            self.deliveries.wait_over(deliveries)
            found = self.deliveries.account(deliveries)
        except AssertionError as error:
            found = [str(error)]
        self.wrong += [f"{where}: {fault}" for fault in found]
        for fault in found:
            print(f"FAIL  {where}: {fault}", flush=True)

    # --- without faults ---

    def last_step(self, delivery):
        """Makes all steps but the last one, each when the one before is over; that is where the kills are."""
        while delivery.done < len(delivery.steps) - 1:
            self.deliveries.step(delivery)
            self.deliveries.wait_over([delivery])

    def learn(self):
        """The right products, and the number of calls at each place."""
        for kind in self.kinds:
            for variant in range(VARIANTS):
                delivery = self.deliveries.make(kind, variant)
                self.last_step(delivery)
                self.faults.clear()
                rules = {place: self.faults.rule(mode=control.KILL_NTH, n=NEVER, **rule) for place, rule in PLACES.items()}
                self.deliveries.step(delivery)
                self.check([delivery], f"{kind} without a fault")
                for place, rule in rules.items():
                    self.points[kind, place] = max(self.points.get((kind, place), 0), self.faults.counts(rule)[0])
        self.faults.clear()

    # --- at points ---

    def await_kill(self, rule, is_over):
        """Until the process of the rule is dead. Returns False if is_over() is true before."""
        wait_for(lambda: self.faults.place(rule)[0] != 0 or not self.service.alive() or is_over(), progress=lambda: self.faults.counts(rule))
        pid = self.faults.place(rule)[0]
        if pid == 0:
            return False
        self.service.kill(pid if pid != self.service.process.pid else None)
        return True

    def restart(self):
        """Starts it; now and then it is killed at one of its first calls."""
        if self.rng.random() < RESTART_SHARE:
            rule = self.faults.rule(mode=control.KILL_NTH, n=self.rng.randint(1, RESTART_CALLS), **PLACES[self.rng.choice(("daemon", "store"))])
            self.service.start()
            ended = self.service.settle_start() is not None
            self.faults.clear()
            if ended or self.faults.place(rule)[0]:
                self.service.process.wait()
                self.count["start"] += 1
        if not self.service.alive():
            self.start()

    def visit(self, kind, place, n):
        """Kills at the n-th call at the place."""
        delivery = self.deliveries.make(kind, self.rng.randrange(VARIANTS))
        self.last_step(delivery)
        rule = self.faults.rule(mode=control.KILL_NTH, n=n, **PLACES[place])
        self.deliveries.step(delivery, self.rng)

        def is_over():
            try:
                return self.deliveries.is_over(delivery, self.deliveries.index(), self.service.scene_jobs([delivery])[delivery.job])
            except (OSError, AssertionError):  # killed meanwhile
                return False
        killed = self.await_kill(rule, is_over)
        _, call, path = self.faults.place(rule)
        self.faults.clear()
        if killed:
            self.count[f"{place} at {call}"] += 1
            self.count[place] += 1
        if not self.service.alive():
            self.service.process.wait()
            self.restart()
        self.check([delivery], f"--point {kind}:{place}:{n} ({call} {path})")

    def visit_points(self, most):
        every = [(kind, place, n) for (kind, place), calls in self.points.items() for n in range(1, calls + 1)]
        self.rng.shuffle(every)
        # Kinds and places take turns, therefore a few points are spread over all of them.
        turn = collections.Counter()
        for point in every:
            turn[point[:2]] += 1
            turn[point] = turn[point[:2]]
        every.sort(key=lambda point: turn[point])
        chosen = every[:most]
        for point in chosen:
            self.visit(*point)
        reached = sum(self.count[place] for place in PLACES)
        print(f"{reached} kills at {len(chosen)} of {len(every)} points of {len(self.points)} kinds and places", flush=True)
        if reached < 0.7 * len(chosen):  # a scene may need fewer calls than the one that was counted
            self.wrong.append(f"only {reached} of {len(chosen)} points were reached")

    # --- at random times ---

    def slow(self, on):
        self.faults.clear()
        if on:
            for call, ms in (("rename", 60), ("fsync", 40), ("unlink", 20), ("mkdir", 20)):
                self.faults.rule(call, control.DELAY, delay_ms=ms)

    def kill_one(self):
        """Half of the kills hit the service, half a worker where one starts within a second."""
        wanted = self.rng.random() < 0.5
        end = time.monotonic() + 1
        while wanted and time.monotonic() < end:
            workers = self.service.processes()
            if workers:
                self.service.kill(self.rng.choice(workers))
                self.count["worker, random"] += 1
                return
            time.sleep(0.005)
        self.service.kill()
        self.service.start()
        self.count["service, random"] += 1

    def can_step(self, delivery):
        """Late files may arrive at any time; only a scene that was made can be made again, and only a failed archive be retried."""
        wanted = {AGAIN: "successful", RETRY: "failed"}.get(str(delivery.steps[delivery.done]))
        return wanted is None or self.service.settle_start() is None and \
            any(job["status"] == wanted and job["archive"] is None for job in self.service.scene_jobs([delivery])[delivery.job])

    def random_kills(self, count):
        for first in range(0, count, ROUND):
            new = []
            self.slow(first // ROUND % 2 == 1)
            for _ in range(min(ROUND, count - first)):
                for _ in range(self.rng.choice((0, 1, 2))):
                    new.append(self.deliveries.make(self.rng.choice(self.kinds), self.rng.randrange(VARIANTS)))
                    self.deliveries.step(new[-1], self.rng)
                for delivery in new:
                    if delivery.done < len(delivery.steps) and self.rng.random() < 0.2 and self.can_step(delivery):
                        self.deliveries.step(delivery, self.rng)
                time.sleep(self.rng.expovariate(1 / 0.25))
                self.kill_one()
            self.faults.clear()
            self.service.wait_up()
            while open_ones := [d for d in new if d.done < len(d.steps)]:
                self.deliveries.wait_over(open_ones)
                for delivery in open_ones:
                    self.deliveries.step(delivery, self.rng)
            self.check(new, f"random kills from {first}")

    def check_account(self):
        """The account finds a lost file, a file in two places, and lost products."""
        delivery = next(d for d in reversed(self.deliveries.all) if d.good)
        file = self.deliveries.index()[next(iter(delivery.files()))][0]
        products = self.service.root / "products" / delivery.scene
        away = self.service.root / "made/away"
        for fault, make, mend in (("a lost file", lambda: file.rename(away), lambda: away.rename(file)),
                                  ("a file in two places", lambda: shutil.copy(file, self.service.root / "quarantine"),
                                   lambda: (self.service.root / "quarantine" / file.name).unlink()),
                                  ("lost products", lambda: products.rename(away), lambda: away.rename(products))):
            make()
            if not self.deliveries.account([delivery]):
                self.wrong.append(f"the account does not find {fault}")
            mend()

    def run(self):
        self.start()
        self.learn()
        self.watcher.start()
        if self.options.point:
            kind, place, n = self.options.point.split(":")
            self.visit(kind, place, int(n))
        else:
            self.visit_points(NEVER if self.options.every_point else self.options.kills // 2)
            self.random_kills(self.options.kills - self.options.kills // 2)
        self.service.wait_idle()
        self.check(self.deliveries.all, "at the end")
        self.wrong += self.watcher.end()
        self.check_account()
        status = self.service.end()
        if status != 0:
            self.wrong.append(f"the service ended with {status}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds")
    parser.add_argument("--every-point", action="store_true")
    parser.add_argument("--point")
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    trial, begun = Trial(options), time.monotonic()
    print(f"seed {options.seed}, {trial.scratch}", flush=True)
    try:
        trial.run()
    finally:
        kept = options.keep or trial.wrong or sys.exc_info()[0]
        trial.service.end() if trial.service.process else None
        print("kept: " + str(trial.scratch) if kept else "", flush=True)
    made = collections.Counter(delivery.kind for delivery in trial.deliveries.all)
    print(", ".join(f"{n} {what}" for what, n in sorted(trial.count.items())))
    print("scenes: " + ", ".join(f"{n} {kind}" for kind, n in made.items()))
    print(f"{len(trial.watcher.seen)} products seen in {trial.watcher.looks} looks; {time.monotonic() - begun:.0f} s")
    if not kept:
        shutil.rmtree(trial.scratch, ignore_errors=True)
    sys.exit(closing_line(trial.wrong, len(trial.deliveries.all)))


main()
