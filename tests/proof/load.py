#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Thousands of files while a crowd of clients with every bad habit (tests/tools/status_crowd.c) uses the socket. At the
same time well-behaved clients (tests/tools/status_load.c) measure each method, one as a user of its own, one as a user of the crowd,
and machine_latency measures what the machine takes for a wakeup and an fdatasync at the same time. Afterwards every file
must have ended once, in products or in quarantine; memory, descriptors and threads of the service must be what they were.

  load.py [--files 20000] [--clients 1000] [--quiet] [--cpu-percent 30]     the short form in ctest: --files 40 --clients 60

The long form takes 20 to 40 minutes on 2 cores. Its p99 of 10 ms is a condition only where the machine's own latencies allow it.
--quiet: the same without the crowd."""
import argparse
import collections
import ctypes
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

from service_kit import BIN, MANIFEST, Scenes, Service, checksum, closing_line, product_directories
from patience import PATIENCE_S, Patience  # noqa: E402

GROUP, CROWD, OWN, STRANGER = 4000, (4001, 4002, 4003, 4004), 4100, 4200
BAD_SHARE, DUPLICATE_SHARE, CROWDS_SHARE = 0.2, 0.15, 0.1
WATCHDOG_S = 30           # watchdog of the unit
LIMIT_MS = 10             # limit of p99, in the long form
WAKEUP_MS, SYNC_MS = 2, 3  # time that the machine may take itself for these
STARVED_MS = 30000        # a reply that takes longer is starvation on any machine
RESIDENT_KB = 32 << 10    # more than before, at the end
LONG_FILES = 2000
LOOK_S = 20
STUCK_S = 120             # without any file that ended
EXPRESS_FILES = 4         # descriptors for the worker of service.express, which starts later


class Hung:
    """A directory on storage that never answers: FUSE without a server."""

    def __init__(self, path):
        self.path = path
        path.mkdir()
        self.fd = os.open("/dev/fuse", os.O_RDWR)
        options = f"fd={self.fd},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
        if ctypes.CDLL(None, use_errno=True).mount(b"hung", os.fsencode(path), b"fuse", 0, options) != 0:
            error = ctypes.get_errno()
            os.close(self.fd)
            raise OSError(error, os.strerror(error))

    def end(self):
        os.close(self.fd)  # ends what waits there
        subprocess.run(["umount", "-l", self.path], check=True)


class Notify(threading.Thread):
    """Stands for systemd: takes the service's messages, and notes the longest time between two signs of life."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(path))
        self.environment = {"NOTIFY_SOCKET": str(path), "WATCHDOG_USEC": "1000000"}  # a sign each half second
        self.last, self.longest, self.states = None, 0, set()
        self.start()

    def run(self):
        while True:
            text = self.socket.recv(4096).decode()
            self.states.update(line for line in text.splitlines() if not line.startswith("STATUS="))
            if "WATCHDOG=1" in text:
                now = time.monotonic()
                self.longest = max(self.longest, now - (self.last or now))
                self.last = now


class Beside:
    """A program that runs until a signal, and then prints its line of JSON."""

    def __init__(self, *command):
        self.process = subprocess.Popen([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        out, err = self.process.communicate(timeout=PATIENCE_S)
        assert self.process.returncode == 0, f"{self.process.args[0]} ended with {self.process.returncode}: {err}"
        return json.loads(out), err


def memory(pid):
    """Resident kB, the most it ever was, descriptors, threads."""
    words = dict(line.split(":", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines())
    kb = [int(words[key].split()[0]) for key in ("VmRSS", "VmHWM", "Threads")]
    return kb[0], kb[1], len(os.listdir(f"/proc/{pid}/fd")), kb[2]


class Deliveries:
    """Files for the inbox, each known by its mtime. A name may be used again, when the file before was taken."""

    def __init__(self, service, scenes, rng):
        self.inbox, self.scenes, self.rng = service.root / "inbox", scenes, rng
        self.part = self.inbox / ".next.part"
        self.files = {}  # mtime_ns -> (name, base, of the crowd)
        self.stamp = time.time_ns() - 10 ** 12

    def deliver(self):
        name = f"s{len(self.files):05}.tif"
        if self.files and self.rng.random() < DUPLICATE_SHARE:
            name = self.rng.choice(list(self.files.values())[-500:])[0]
            if (self.inbox / name).exists():
                return
        base, crowds = self.scenes.choose(self.rng, BAD_SHARE), self.rng.random() < CROWDS_SHARE
        self.stamp += 1000
        shutil.copyfile(base, self.part)
        os.utime(self.part, ns=(self.stamp, self.stamp))
        if crowds:
            os.chown(self.part, CROWD[0], GROUP)
        self.files[os.stat(self.part).st_mtime_ns] = (name, base, crowds)
        os.rename(self.part, self.inbox / name)


class Load:
    def __init__(self, options):
        self.options, self.rng = options, random.Random(options.seed)
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="pb-load-"))
        self.scratch.chmod(0o755)
        self.scenes = Scenes(self.scratch / "scenes", kinds=2, size=64)
        self.notify = Notify(self.scratch / "notify")
        self.service = Service(environment=self.notify.environment, parent=self.scratch)
        self.service.root.chmod(0o755)
        self.deliveries = Deliveries(self.service, self.scenes, self.rng)
        self.wrong, self.samples, self.hung = [], [], None

    def given(self):
        """Files that the clients submit: a good one, and some that a service must refuse or give up."""
        place = self.scratch / "given"
        place.mkdir(0o755)
        good = place / "given.tif"
        shutil.copyfile(self.scenes.good[0], good)
        good.chmod(0o644)
        (place / "directory").mkdir()
        os.mkfifo(place / "fifo")
        (place / "secret.tif").write_bytes(good.read_bytes())
        (place / "secret.tif").chmod(0o600)
        bad = [place / "none.tif", place / "directory", place / "fifo", place / "secret.tif", "/dev/zero", "relative.tif"]
        try:
            self.hung = Hung(place / "hung")
            bad.append(place / "hung" / "x.tif")
        except OSError as error:
            print("storage that hangs: not tried:", error)
        return good, bad

    def start(self):
        good, bad = self.given()
        self.service.start()
        self.service.wait_up()
        path = self.service.root / "s.sock"
        os.chown(path, 0, GROUP)
        self.warm_up()
        self.before = memory(self.service.process.pid)
        client = [BIN / "status_load", "--socket", path, "--submit", good, "--gid", GROUP, "--patience-ms", STARVED_MS,
                  "--interval-ms", self.options.interval_ms, "--uid"]
        self.machine = Beside(BIN / "machine_latency", self.service.root / "state/.machine")
        self.clients = {"own user": Beside(*client, OWN), "user of the crowd": Beside(*client, CROWD[0])}
        if not self.options.quiet:
            self.crowd = Beside(BIN / "status_crowd", "--socket", path, "--clients", self.options.clients, "--gid", GROUP,
                                "--uids", ",".join(map(str, CROWD)), "--stranger", STRANGER, "--seed", self.options.seed,
                                "--submit", ",".join(map(str, bad)), "--cpu-percent", self.options.cpu_percent)

    def warm_up(self):
        """Runs a job for each worker at once; the workers stay, with their descriptors."""
        for i in range(4):
            self.deliveries.deliver()
        while self.waiting() > 0:
            time.sleep(0.05)

    def waiting(self):
        info = self.service.call("service.info")
        self.samples.append(memory(self.service.process.pid))
        return info["jobs"]["accepted"] + info["jobs"]["running"] + info["inbox_waiting"] + self.service.waiting()

    def run(self):
        begun = time.monotonic()
        self.start()
        while len(self.deliveries.files) < self.options.files:
            for _ in range(min(50, self.options.files // 3)):
                self.deliveries.deliver()
            self.samples.append(memory(self.service.process.pid))
            time.sleep(0.05)
        self.delivered_s = time.monotonic() - begun
        # Counting 20,000 files takes the processor from those who are measured.
        looked, look_s = time.monotonic(), LOOK_S if self.options.files > LONG_FILES else 1
        while time.monotonic() - begun < self.options.seconds:
            assert self.service.alive(), "the service ended:\n" + self.service.tail()
            self.samples.append(memory(self.service.process.pid))
            time.sleep(0.5)
            if time.monotonic() - looked > look_s:
                looked = time.monotonic()
                if self.service.waiting() == 0:
                    break
        self.load_s, left = time.monotonic() - begun, self.service.waiting()
        print(f"{len(self.deliveries.files)} files, delivered in {self.delivered_s:.1f} s; {self.load_s:.1f} s with the clients, "
              f"then {left} files still waited")
        self.end_clients()
        self.judge_latencies()
        self.drain()

    def end_clients(self):
        self.tally = None if self.options.quiet else self.crowd.end()[0]
        self.figures = {who: client.end() for who, client in self.clients.items()}
        self.machine_figures = self.machine.end()[0]

    def drain(self):
        patience = Patience(self.waiting, STUCK_S)
        while (left := self.waiting()) > 0:
            assert self.service.alive(), "the service ended:\n" + self.service.tail()
            assert not patience.is_over(), f"{left} still wait:\n" + self.service.tail()
            time.sleep(0.2 if left < 100 else 5)

    # --- what must hold ---

    def account(self):
        """Where every delivered file ended, by the mtime that no other has."""
        root, places = self.service.root, collections.defaultdict(lambda: {"products": [], "archive": [], "quarantine": []})
        for _, directory in product_directories(root / "products"):
            manifest = json.loads((directory / MANIFEST).read_text())
            if manifest["input"]["name"] != "given.tif":
                places[manifest["input"]["mtime_ns"]]["products"].append((directory, manifest))
        for where, folder in (("archive", root / "work/done"), ("quarantine", root / "quarantine")):
            for entry in os.scandir(folder):
                if entry.is_file() and ".error.json" not in entry.name and entry.name[0] != ".":
                    places[entry.stat().st_mtime_ns][where].append(entry.path)
        unknown = [p for key, p in places.items() if key not in self.deliveries.files]
        if unknown:
            self.wrong.append(f"nobody delivered {len(unknown)} of what lies there: {unknown[:3]}")
        # The same content under one name is the same input: a later delivery replaced the products.
        self.made = {(name, base) for key, (name, base, _) in self.deliveries.files.items() if places[key]["products"]}
        for key, (name, base, crowds) in self.deliveries.files.items():
            self.judge_file(name, base, crowds, places[key])

    def judge_file(self, name, base, crowds, place):
        counts = tuple(len(place[where]) for where in ("products", "archive", "quarantine"))
        code = ""
        if counts == (0, 0, 1):
            record = pathlib.Path(place["quarantine"][0] + ".error.json")
            code = json.loads(record.read_text())["code"] if record.is_file() else "no record"
        if base in self.scenes.bad:
            right = code.startswith("input.") or (crowds and code == "job.dismissed")
        else:
            right = counts == (1, 1, 0) or (counts == (0, 1, 0) and (name, base) in self.made) or (crowds and code == "job.dismissed")
        if not right:
            self.wrong.append(f"{name} ({base.name}): products, archive, quarantine {counts} {code}")
        elif counts[0] == 1:
            directory, _ = place["products"][0]
            if checksum(next(directory.glob("*.tif"))) != self.scenes.reference[base]:
                self.wrong.append(f"{name}: other pixels than those of its input")

    def judge_latencies(self):
        wakeup, sync = (self.machine_figures[k]["p99"] / 1000 for k in ("wakeup", "fdatasync"))
        print(f"{'ms':44} {'n':>7} {'p50':>9} {'p99':>9} {'max':>9}")
        for what, f in self.machine_figures.items():
            if f:
                self.print_figures("the machine: " + what, f)
        for who, (figures, errors) in self.figures.items():
            if figures["wrong"]:
                self.wrong.append(f"{who}: {figures['wrong']} wrong replies:\n{errors}")
            for what, f in figures.items():
                if isinstance(f, dict) and (f["n"] or f["busy"] or f["lost"]):
                    self.print_figures(f"{who}: {what}", f)
                    self.judge_method(who, what, f, wakeup, sync)
            print(f"{who}: {figures['cpu_ms']} ms of the processor")

    def print_figures(self, what, f):
        extra = "".join(f"  {f[k]} {k}" for k in ("busy", "lost") if f.get(k))
        print(f"{what:44} {f['n']:7} {f['p50'] / 1000:9.2f} {f['p99'] / 1000:9.2f} {f['max'] / 1000:9.2f}{extra}")

    def judge_method(self, who, what, f, wakeup, sync):
        changes = what.split(",")[0] in ("job.submit", "job.cancel", "job.retry")
        if who == "own user" and (f["busy"] or f["lost"]):
            self.wrong.append(f"{who}: {what}: {f['busy']} refused, {f['lost']} connections lost")
        if len(self.deliveries.files) < LONG_FILES or who != "own user" or f["p99"] <= LIMIT_MS * 1000:
            return
        if wakeup <= WAKEUP_MS and (sync <= SYNC_MS or not changes):
            self.wrong.append(f"{who}: {what}: p99 {f['p99'] / 1000:.1f} ms")
        else:
            print(f"     not judged: the machine's own p99 is {wakeup:.1f} ms for a wakeup, {sync:.1f} ms for an fdatasync")

    def judge_crowd(self):
        if self.tally is None:
            return
        habits = {k: v for k, v in self.tally.items() if isinstance(v, dict)}
        for habit, t in habits.items():
            print(f"{habit:20} " + ", ".join(f"{v} {k}" for k, v in t.items()))
            if t["actions"] == 0 or (habit != "stranger" and t["connections"] == 0):
                self.wrong.append(f"the crowd's habit was not tried: {habit}")
        if habits["stranger"]["connections"] or not habits["stranger"]["refused"]:
            self.wrong.append(f"who may not connect: {habits['stranger']}")
        print(f"the crowd: {self.tally['cpu_ms']} ms of the processor in {self.tally['ms']} ms")

    def judge_service(self):
        end = time.monotonic() + 30  # looks at storage that hangs are ended after 5 s, and their connections with them
        while (after := memory(self.service.process.pid))[2] > self.before[2] + EXPRESS_FILES and time.monotonic() < end:
            time.sleep(0.2)
        for i, what in enumerate(("kB resident", "at most", "descriptors", "threads")):
            print(f"{what}: {self.before[i]} before, {max(s[i] for s in self.samples)} at most, {after[i]} after")
        if after[0] - self.before[0] > RESIDENT_KB:
            self.wrong.append(f"memory: {self.before[0]} kB resident before, {after[0]} after")
        if after[2] > self.before[2] + EXPRESS_FILES or after[3] > self.before[3]:
            held = collections.Counter(os.readlink(f).split("/")[-1].rstrip("0123456789]")
                                       for f in pathlib.Path(f"/proc/{self.service.process.pid}/fd").iterdir())
            self.wrong.append(f"descriptors and threads: {self.before[2:]} before, {after[2:]} after: {dict(held)}")
        print(f"longest time between two signs of life for the watchdog: {self.notify.longest:.2f} s (0.5 s are asked for)")
        if self.notify.longest > WATCHDOG_S or "READY=1" not in self.notify.states:
            self.wrong.append(f"the watchdog: {self.notify.longest:.1f} s, {self.notify.states}")
        begun = time.monotonic()
        status = self.service.end()
        print(f"stopped in {time.monotonic() - begun:.1f} s")
        if status != 0 or "STOPPING=1" not in self.notify.states:
            self.wrong.append(f"the service ended with {status}: {self.service.tail()}")

    def judge(self):
        self.account()
        self.judge_crowd()
        self.judge_service()

    def remove(self):
        for beside in (self.machine, *self.clients.values(), *([] if self.options.quiet else [self.crowd])):
            if beside.process.poll() is None:
                beside.process.kill()
        self.service.end()
        if self.hung is not None:
            self.hung.end()
        if self.wrong or self.options.keep:
            print("kept:", self.scratch)
        else:
            shutil.rmtree(self.scratch, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", type=int, default=20000)
    parser.add_argument("--clients", type=int, default=1000)
    parser.add_argument("--cpu-percent", type=int, default=30)
    parser.add_argument("--interval-ms", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=400, help="of load, at most; files that wait then go on without it")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quiet", action="store_true")
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    if os.geteuid() != 0:
        print("skipped: needs to be other users")
        sys.exit(77)
    load = Load(options)
    try:
        load.run()
        load.judge()
    except AssertionError as error:
        load.wrong.append(str(error))
    finally:
        load.remove()
    sys.exit(closing_line(load.wrong, len(load.deliveries.files)))


main()
