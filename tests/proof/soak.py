#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""A service under a steady mixture of scenes, failures, cancellations, worker deaths and clients, for the requested time.
Afterwards the resident memory, descriptors and threads of the service in the last quarter of the time must be those of
the second quarter, and every scene must have ended where it belongs.

  soak.py [--minutes 120] [--rate 1.0]     rate: scenes a second; the short form in ctest: --minutes 0.5"""
import argparse
import pathlib
import random
import shutil
import statistics
import sys
import tempfile
import time

import control
from service_kit import MANIFEST, SHIM, Scenes, Service, checksum, closing_line, product_directories

SAMPLE_S = 2.0
GROWTH_KB = 8192  # growth of resident memory, beyond GROWTH_SHARE: caches that the first minute still fills (two minutes: 56.4 to 56.9 MB)
GROWTH_SHARE = 0.05
GROWTH_FILES = 2 + 2  # two are temporary; two are those of the job store's second connection, which is opened when its log is long


def sample(pid):
    """Resident kB, descriptors, threads of the service; None when it is gone. The pipes to its workers, three each, start
    and end with them and are not counted."""
    try:
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        rss = int(status.split("VmRSS:")[1].split()[0])
        threads = int(status.split("Threads:")[1].split()[0])
        children = sum(len(task.read_text().split()) for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children"))
        return rss, len(list(pathlib.Path(f"/proc/{pid}/fd").iterdir())) - 3 * children, threads
    except (OSError, IndexError):
        return None


class Soak:
    def __init__(self, options):
        self.rng = random.Random(options.seed)
        self.options = options
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="pb-soak-"))
        self.scenes = Scenes(self.scratch / "scenes")
        self.faults = control.Faults(self.scratch / "faults", SHIM)
        self.service = Service(environment=self.faults.environment(), parent=self.scratch, settle="300ms")
        self.delivered, self.ended, self.wrong, self.samples = {}, {}, [], []
        self.kills = self.cancels = self.outages = 0

    def deliver(self):
        name = f"s{len(self.delivered):06}.tif"
        self.delivered[name] = self.scenes.choose(self.rng, 0.1)
        self.service.drop_copy(self.delivered[name], name)

    def end_of(self, name, where):
        if name in self.ended:
            self.wrong.append(f"{name} ended twice: {self.ended[name]} and {where}")
        self.ended[name] = where

    def collect(self):
        """Removes files of ended jobs, like a consumer and an operator. Products whose job still runs stay: if its worker is killed
        now, the service looks for them, and computes the scene again if they are gone."""
        root = self.service.root
        published = list(product_directories(root / "products"))
        runs = {job["name"] for job in self.service.jobs() if job["status"] in ("accepted", "running")}
        for scene, directory in published:
            if scene + ".tif" in runs:
                continue
            base = self.delivered.get(scene + ".tif")
            if not (directory / MANIFEST).is_file() or checksum(directory / f"{scene}.tif") != self.scenes.reference.get(base):
                self.wrong.append(f"{scene}: incomplete, or other pixels than those of its input")
            shutil.rmtree(directory.parent)
            self.end_of(scene + ".tif", "products")
        for path in list((root / "quarantine").glob("*.tif")):
            record = path.with_name(path.name + ".error.json")
            if not record.is_file():
                self.wrong.append(f"{path.name}: no record in quarantine")
                continue
            text = record.read_text()
            if self.delivered[path.name] not in self.scenes.bad and "job.dismissed" not in text:
                self.wrong.append(f"{path.name} (good) in quarantine: {text}")
            path.unlink()
            record.unlink()
            self.end_of(path.name, "quarantine")
        for path in (root / "work/done").glob("*.tif"):
            path.unlink()

    def disturb(self):
        dice = self.rng.random()
        if dice < 0.03 and (workers := self.service.processes()):
            self.service.kill(self.rng.choice(workers))
            self.kills += 1
        elif dice < 0.06:
            waiting = [j for j in self.service.jobs() if j["status"] in ("accepted", "running")]
            if waiting:
                try:
                    self.service.call("job.cancel", id=self.rng.choice(waiting)["id"])
                    self.cancels += 1
                except Exception as error:  # it may have ended meanwhile
                    if "job.state" not in str(getattr(error, "code", "")):
                        self.wrong.append(f"cancel: {error}")
        elif dice < 0.065:
            self.faults.rule("pwrite", control.FAIL_ALL, error=28, path="/products/", role="worker")
            time.sleep(1)
            self.faults.clear()
            self.outages += 1
        else:
            self.service.call("service.info")
            self.service.call("job.list", limit=50)
            self.service.call("service.metrics")

    def run(self):
        self.service.start()
        self.service.wait_up()
        begun = time.monotonic()
        end = begun + self.options.minutes * 60
        next_drop = next_sample = next_collect = begun
        while (now := time.monotonic()) < end:
            if now >= next_drop and self.service.waiting_at_most(30):
                self.deliver()
                next_drop = now + self.rng.expovariate(self.options.rate)
                self.disturb()
            if now >= next_collect:
                self.collect()
                next_collect = now + 1
            if now >= next_sample:
                self.samples.append((now - begun, sample(self.service.process.pid)))
                next_sample = now + SAMPLE_S
            time.sleep(0.02)
        self.service.drain()
        self.service.wait_idle()
        time.sleep(0.5)
        self.collect()

    def judge(self):
        missing = sorted(set(self.delivered) - set(self.ended))
        if missing:
            self.wrong.append(f"{len(missing)} files ended nowhere: {missing[:5]}")
        values = [s for _, s in self.samples if s is not None]
        quarter = max(1, len(values) // 4)
        for i, what in enumerate(("kB resident", "descriptors", "threads")):
            early = statistics.median(v[i] for v in values[quarter:2 * quarter] or values)
            late = statistics.median(v[i] for v in values[-quarter:])
            allowed = (early * GROWTH_SHARE + GROWTH_KB, GROWTH_FILES, 2)[i]
            print(f"{what}: {early:.0f} in the second quarter, {late:.0f} in the last, highest {max(v[i] for v in values)}")
            if late - early > allowed:
                self.wrong.append(f"{what} grow: {early:.0f} to {late:.0f}")
        print(f"{len(self.delivered)} scenes, {self.kills} worker kills, {self.cancels} cancellations, {self.outages} full disks, "
              f"{self.options.minutes} minutes")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=120)
    parser.add_argument("--rate", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    soak = Soak(parser.parse_args())
    try:
        soak.run()
    except AssertionError as error:
        soak.wrong.append(str(error))
    soak.judge()
    status = soak.service.end()
    if status != 0:
        soak.wrong.append(f"the service ended with {status}: {soak.service.tail()}")
    if soak.wrong:
        print("kept:", soak.scratch)
    else:
        shutil.rmtree(soak.scratch, ignore_errors=True)
    sys.exit(closing_line(soak.wrong, len(soak.delivered)))


main()
