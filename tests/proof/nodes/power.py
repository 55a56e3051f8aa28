#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Power cuts of all machines at once: three services and their PostgreSQL server, with the disk of each in an image of ext4. At a cut all
processes stop, the images are copied, and everything starts again from the copies, whose journals have to be replayed. Memory is lost,
with the page cache of these file systems.

  power.py [--seed N] [--cuts N] [--scenes N] [--short] [--keep]

A copy counts only if nothing was written to the image meanwhile: it is then what the disk had at one moment. Before a cut the record has
what the services had confirmed: files that a client had synced into an inbox, and rows, events and products that others could see.
Afterwards all of that must be there, and the rest follows the rules of an undisturbed queue: each scene ends once, with the products of
a run without cuts."""
import argparse
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from service_kit import Scenes, Service, closing_line  # noqa: E402, sets the path of the kits
from nodes import CONFIG, product_files  # noqa: E402
from patience import wait_for  # noqa: E402
from pbtest import BIN, Skip  # noqa: E402
from postgres_kit import Postgres  # noqa: E402
from store import Cleanups, processes, restart, send  # noqa: E402

NAMES = ("a", "b", "c")
IMAGE_MB = 192
SUCCESSFUL = "2"


def call(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout.strip()


class Disk:
    """An image, mounted at `place`."""

    def __init__(self, scratch, name):
        self.image, self.place = scratch / f"{name}.img", scratch / name
        self.place.mkdir()
        with open(self.image, "wb") as file:
            file.truncate(IMAGE_MB << 20)
        call("mkfs.ext4", "-q", "-F", self.image)
        self.mount()
        self.place.chmod(0o755)

    def mount(self):
        self.device = pathlib.Path(call("losetup", "--find", "--show", self.image))
        call("mount", self.device, self.place)

    def unmount(self):
        call("umount", self.place)
        call("losetup", "-d", self.device)

    def writes(self):
        """Numbers of writes and flushes that the device has done, and of requests on their way."""
        fields = pathlib.Path("/sys/block", self.device.name, "stat").read_text().split()
        return fields[4], fields[6], fields[8], fields[15]

    def copy(self):
        """An image of one moment."""
        fresh = self.image.with_suffix(".cut")
        while True:
            before = self.writes()
            call("cp", "--sparse=always", self.image, fresh)
            if self.writes() == before and before[2] == "0":
                return fresh
            time.sleep(0.05)


class Node(Service):
    def __init__(self, name, disk, trial):
        self.name, self.trial = name, trial
        super().__init__(parent=disk.place)

    def write_config(self, **settings):
        self.settings.update(settings)
        self.config.write_text(CONFIG.format(node=self.name, products=self.trial.products, conninfo=self.trial.server.conninfo, lease=4,
                                             **self.settings))

    def deliver(self, source, name):
        """Returns when the file is on the disk, as a client does that forgets its own copy then."""
        inbox = self.root / "inbox"
        part = inbox / f".{name}.part"
        shutil.copy2(source, part)
        os.rename(part, inbox / name)
        for path in (inbox / name, inbox):
            fd = os.open(path, os.O_RDONLY)
            os.fsync(fd)
            os.close(fd)


class Record:
    """Rows, events, products and files that were confirmed before a cut."""

    def __init__(self, trial):
        self.delivered = dict(trial.delivered)
        self.jobs = {row[0]: row[1:] for row in trial.jobs()}
        self.events = trial.events()
        self.products = {job: trial.manifest(scene) for job, (scene, status, _) in self.jobs.items() if status == SUCCESSFUL}


class Trial:
    def __init__(self, options, scratch, cleanups):
        self.options, self.rng, self.scratch = options, random.Random(options.seed), scratch
        self.scenes = Scenes(scratch / "scenes")
        self.disks = {}
        for name in (*NAMES, "store", "products"):
            self.disks[name] = Disk(scratch, name)
            cleanups.addCleanup(self.disks[name].unmount)
        self.products = self.disks["products"].place / "products"
        self.products.mkdir()
        tempfile.tempdir = str(self.disks["store"].place)
        self.server = Postgres(cleanups, ("max_connections=40",))
        tempfile.tempdir = None
        self.nodes = [Node(name, self.disks[name], self) for name in NAMES]
        for node in self.nodes:
            cleanups.addCleanup(lambda each=node: each.alive() and each.kill())
        self.delivered, self.wrong, self.lock, self.ending = {}, [], threading.Lock(), False
        self.counts = dict(confirmed_files=0, confirmed_ends=0, confirmed_events=0, runs_again=0)

    def jobs(self):
        return self.server.rows("SELECT id, scene, status, epoch FROM pushbroom.jobs")

    def ends(self):
        return int(self.server.rows("SELECT count(*) FROM pushbroom.jobs WHERE status = 2")[0][0])

    def events(self):
        return self.server.rows("SELECT seq, kind, job FROM pushbroom.events WHERE seq IS NOT NULL ORDER BY seq")

    def manifest(self, scene):
        """Job, epoch and content of the products of a scene."""
        path = self.products / scene / "ndvi"
        try:
            read = json.loads((path / ".pushbroom.json").read_text())
        except OSError:
            return None
        return read["job"], read.get("epoch"), product_files(path)

    def start(self):
        for node in self.nodes:
            node.start()
        for node in self.nodes:
            node.wait_up()

    def deliver(self):
        """Files arrive all the time, also at the moment of the cut."""
        rng = random.Random(self.options.seed + 1)
        while not self.ending:
            with self.lock:
                number = len(self.delivered)
                name, source = f"s{number:05}.tif", self.scenes.good[number % len(self.scenes.good)]
                node = rng.choice(self.nodes)
                node.deliver(source, name)
                self.delivered[name] = node
            time.sleep(rng.uniform(0, 2 / self.options.rate))

    def cut(self):
        """All processes stop, and are killed after the copies are made. Returns the record of the moment before."""
        before = Record(self)
        time.sleep(self.rng.uniform(0, 0.3))  # changes in this time are not confirmed
        services = [node.process.pid for node in self.nodes]
        server = processes(self.server)
        send(services, signal.SIGSTOP)
        send(server, signal.SIGSTOP)
        workers = [pid for node in self.nodes for pid in node.processes()]
        server = processes(self.server)
        send([*workers, *server], signal.SIGSTOP)
        copies = {name: disk.copy() for name, disk in self.disks.items()}
        send([*services, *workers, *server], signal.SIGKILL)
        for node in self.nodes:
            node.process.wait()
        self.server.process.wait()
        for name, disk in self.disks.items():
            wait_for(lambda each=disk: self.is_unmounted(each))
            copies[name].rename(disk.image)
            disk.mount()
        return before

    @staticmethod
    def is_unmounted(disk):
        """Killed processes close their files a moment later."""
        try:
            disk.unmount()
            return True
        except AssertionError:
            return False

    def missing(self, before):
        """Finds confirmed things that are not there, before anything runs again but the server."""
        wrong, jobs = [], {row[0]: row[1:] for row in self.jobs()}
        for job, (scene, status, epoch) in before.jobs.items():
            now = jobs.get(job)
            if now is None:
                wrong.append(f"job {job} is lost")
            elif int(now[2]) < int(epoch) or (status == SUCCESSFUL and now[1] != SUCCESSFUL):
                wrong.append(f"job {job} was {status} in epoch {epoch}, and is {now[1]} in {now[2]}")
        if self.events()[:len(before.events)] != before.events:
            wrong.append("events are lost or have other numbers")
        for job, products in before.products.items():
            if products is not None and self.manifest(before.jobs[job][0]) != products:
                wrong.append(f"products of job {job} are lost or changed")
        self.counts["confirmed_files"] += len(before.delivered)
        self.counts["confirmed_ends"] += len(before.products)
        self.counts["confirmed_events"] += len(before.events)
        return wrong

    def is_over(self):
        jobs = dict((row[1], row) for row in self.jobs())
        return all(jobs.get(name[:-4], (0, 0, 0))[2] == SUCCESSFUL and (node.root / "work/done" / name).is_file()
                   for name, node in self.delivered.items())

    def check_end(self):
        """Each scene has one job, which ended once with the right products."""
        wrong = []
        try:
            wait_for(self.is_over, progress=lambda: self.server.rows("SELECT count(*), max(number) FROM pushbroom.events"), step=0.25)
        except AssertionError:
            wrong.append("scenes do not end")
        jobs = self.jobs()
        told = self.server.rows("SELECT job, count(*) FROM pushbroom.events WHERE kind = 'job.successful' GROUP BY job")
        if sorted(told) != sorted((row[0], "1") for row in jobs):
            wrong.append(f"not every job has one event of its end: {sorted(told)[:4]}")
        if sorted(row[1] for row in jobs) != sorted(name[:-4] for name in self.delivered):
            wrong.append(f"{len(jobs)} jobs of {len(self.delivered)} scenes")
        self.counts["runs_again"] = sum(int(row[3]) > 1 for row in jobs)
        numbers = [int(row[0]) for row in self.events()]
        if numbers != list(range(numbers[0], numbers[0] + len(numbers))):
            wrong.append("numbers of events have gaps")
        reference = self.reference()
        for job, scene, _, epoch in jobs:
            found = self.manifest(scene)
            if found is None or found[0] != job or int(found[1]) > int(epoch):
                wrong.append(f"{scene} was published by {found and found[:2]}, its job is {job}, epoch {epoch}")
            elif found[2] != reference[scene]:
                wrong.append(f"products of {scene} differ from those of a run without cuts")
        return wrong

    def reference(self):
        out = self.scratch / "reference"
        inputs = [node.root / "work/done" / name for name, node in self.delivered.items()]
        for first in range(0, len(inputs), 200):
            call(BIN / "pushbroom", "run", "-c", self.nodes[0].config, "-p", "ndvi", "-o", out, "--device", "cpu", *inputs[first:first + 200])
        return {name[:-4]: product_files(out / name[:-4] / "ndvi") for name in self.delivered}

    def run(self):
        for disk in self.disks.values():  # the installation is on the disks
            call("sync", "-f", disk.place)
        self.start()
        thread = threading.Thread(target=self.deliver, daemon=True)
        thread.start()
        for number in range(self.options.cuts):
            goal = len(self.delivered) + self.options.scenes, self.ends() + self.options.scenes // 2
            wait_for(lambda: len(self.delivered) >= goal[0] and self.ends() >= goal[1], progress=lambda: (len(self.delivered), self.ends()),
                     step=0.25)
            with self.lock:
                before = self.cut()
                restart(self.server)
                self.wrong += self.missing(before)
                self.start()
            print(f"cut {number + 1}: {len(before.delivered)} files, {len(before.products)} ends and {len(before.events)} events were "
                  f"confirmed, {len(self.wrong)} faults", flush=True)
            if self.wrong:
                break
        self.ending = True
        thread.join()
        self.wrong += self.check_end()
        print(f"{self.options.cuts} cuts, {len(self.delivered)} scenes: " + ", ".join(f"{n} {what.replace('_', ' ')}"
                                                                                       for what, n in self.counts.items()))
        for node in self.nodes:
            node.end()


def may_mount():
    probe = "d=$(mktemp -d) && truncate -s 8M $d.img && mkfs.ext4 -q -F $d.img && mount -o loop $d.img $d && umount $d; rc=$?; rm -rf $d $d.img; exit $rc"
    return os.geteuid() == 0 and subprocess.run(["unshare", "-m", "bash", "-c", probe], capture_output=True, check=False).returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cuts", type=int, default=10)
    parser.add_argument("--scenes", type=int, default=30, help="delivered between two cuts")
    parser.add_argument("--rate", type=float, default=4, help="deliveries per second")
    parser.add_argument("--short", action="store_true", help="two cuts, 12 scenes each")
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    if options.short:
        options.cuts, options.scenes = 2, 12
    if "PB_POWER_MOUNTED" not in os.environ:
        if not may_mount():
            print("skipped: loop devices cannot be mounted here")
            sys.exit(77)
        os.execvpe("unshare", ["unshare", "-m", sys.executable, *sys.argv], dict(os.environ, PB_POWER_MOUNTED="1"))
    scratch, cleanups, trial = pathlib.Path(tempfile.mkdtemp(prefix="pb-power-")), Cleanups(), None
    scratch.chmod(0o755)
    print(f"seed {options.seed}, {scratch}", flush=True)
    begun = time.monotonic()
    try:
        trial = Trial(options, scratch, cleanups)
        trial.run()
    except Skip as skip:
        print(f"skipped: {skip}")
        sys.exit(77)
    finally:
        is_wrong = trial is None or trial.wrong or sys.exc_info()[0] is not None
        if is_wrong and trial:
            for node in trial.nodes:
                print(f"--- {node.name}\n{node.tail(12)}")
        cleanups.run()
        if not (options.keep and is_wrong):
            shutil.rmtree(scratch, ignore_errors=True)
    print(f"{time.monotonic() - begun:.0f} s")
    sys.exit(closing_line(trial.wrong, len(trial.delivered)))


main()
