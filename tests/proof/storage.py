#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Faults of the machine under a real service: a full or read-only disk below products, quarantine or state, reads and
fsyncs that fail, slow and hung storage, no descriptors, no memory, steps of the clock, a lost and a damaged job store, a
second service. While a fault lasts no good file may be put into quarantine; when it is gone the service continues by itself, and
every file ends where it belongs.

  storage.py [--part I/N] [NAME ...]     --part: every N-th, from the I-th on; parts may run side by side"""
import argparse
import errno
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

import control
from service_kit import BIN, SHIM, Scenes, Service, account, closing_line
from patience import Patience, run_to_end, wait_for  # noqa: E402

SCENES = 6


class Trial:
    """A running service with its faults and what was delivered to it."""

    def __init__(self, scratch, scenes, settle="100ms"):
        self.faults = control.Faults(scratch / f"faults-{random.getrandbits(48):x}", SHIM)
        self.scenes = scenes
        self.service = Service(environment=self.faults.environment(), parent=scratch, settle=settle)
        self.delivered = {}

    def drop(self, count=SCENES, bad=1):
        for i in range(count):
            base = self.scenes.bad[i % len(self.scenes.bad)] if i < bad else self.scenes.good[i % len(self.scenes.good)]
            name = f"s{len(self.delivered):03}.tif"
            self.delivered[name] = base
            self.service.drop_copy(base, name)

    def while_it_lasts(self, rules, seconds=2.0):
        """Scenes arrive while calls fail; the rules must have been met, and no good scene may be in quarantine."""
        numbers = [self.faults.rule(**rule) for rule in rules]
        self.drop()
        patience = Patience()
        while not any(self.faults.counts(n)[1] for n in numbers):
            assert not patience.is_over(), "the fault was never met"
            assert self.service.alive(), "the service ended:\n" + self.service.tail()
            time.sleep(0.05)
        time.sleep(seconds)
        assert self.service.alive(), "the service ended:\n" + self.service.tail()
        lost = [n for n, base in self.delivered.items()
                if base not in self.scenes.bad and (self.service.root / "quarantine" / n).exists()]
        self.faults.clear()
        return [f"{n} is in quarantine for a fault of the machine" for n in lost]

    def end(self):
        self.faults.clear()
        self.service.wait_up()
        self.service.drain()
        self.service.wait_idle()
        self.service.wait_placed(self.delivered)
        wrong = account(self.service, self.delivered, self.scenes.bad, self.scenes.reference)
        status = self.service.end()
        return wrong + ([f"the service ended with {status}"] if status != 0 else [])


def lasting(*rules, seconds=2.0):
    def trial(t):
        t.service.start()
        t.service.wait_up()
        return t.while_it_lasts(rules, seconds)
    return trial


def failing(call, error, path="", role="any", caller="any"):
    return dict(call=call, mode=control.FAIL_ALL, error=error, path=path, role=role, caller=caller)


def at_start(*rules):
    """The fault is there before the service starts: it starts, or it reports the reason and the next start is fine."""
    def trial(t):
        for rule in rules:
            t.faults.rule(**rule)
        t.service.start()
        ended = t.service.settle_start()
        if ended is not None:
            return [f"the service does not start (exit {ended}):\n" + t.service.tail(6)]
        t.drop()
        time.sleep(1)
        return []
    return trial


def slow(t):
    t.service.start()
    for call in ("pread", "pwrite", "fsync", "rename", "open"):
        t.faults.rule(call, control.DELAY, delay_ms=30, path=str(t.service.root))
    t.drop(3)
    time.sleep(3)
    return []


def hung(t):
    """Reads of inputs hang for some seconds; the service answers meanwhile."""
    t.service.start()
    t.service.wait_up()
    rule = t.faults.rule("pread", control.HANG, role="worker", path="/work/")
    t.drop(3)
    wait_for(lambda: t.faults.counts(rule)[1])
    for _ in range(20):
        t.service.call("job.list")  # one that waits for the storage waits until the call's own limit
    t.faults.set_mode(rule, control.OFF)
    return []


def clock_steps(t):
    """The clock steps by hours while a file grows: it is taken only when its writer has closed it."""
    t.service.start()
    t.service.wait_up()
    data = t.scenes.good[0].read_bytes()
    name = "growing.tif"
    t.delivered[name] = t.scenes.good[0]
    with open(t.service.root / "inbox" / name, "wb") as file:
        for i, step in enumerate((3600, -7200, 86400, 0, -86400, 10)):
            file.write(data[len(data) * i // 6:len(data) * (i + 1) // 6])
            file.flush()
            t.faults.set_clock(step)
            t.drop(1, bad=0)
            time.sleep(0.5)
    return []


def lost_store(t):
    t.service.start()
    t.drop()
    t.service.wait_up()
    t.service.kill()
    for path in (t.service.root / "state").glob("jobs.db*"):
        path.unlink()
    t.service.start()
    return []


def damaged_store(t):
    t.service.start()
    t.drop()
    t.service.wait_up()
    t.service.kill()
    for path in (t.service.root / "state").glob("jobs.db*"):
        path.write_bytes(os.urandom(20000))
    t.service.start()
    return []


def two_services(t):
    """A second service on the same directories refuses to start, and the first one notices nothing."""
    t.service.start()
    t.service.wait_up()
    t.drop()
    second = run_to_end([BIN / "pushbroomd", "--config", t.service.config], stderr=subprocess.PIPE, text=True)
    wrong = [] if second.returncode != 0 and second.stderr.strip() else [f"the second service: exit {second.returncode}"]
    other = t.service.root / "other.yaml"
    text = t.service.config.read_text().replace("/state\n", "/state2\n").replace("/s.sock", "/s2.sock")
    other.write_text(text)
    third = run_to_end([BIN / "pushbroomd", "--config", other], stderr=subprocess.PIPE, text=True)  # one that works runs for ever
    return wrong + (["a second service on one inbox and work ended with 0"] if third.returncode == 0 else [])


TRIALS = {
    "products_full": lasting(failing("pwrite", errno.ENOSPC, "/products/"), failing("write", errno.ENOSPC, "/products/")),
    "products_no_inodes": lasting(failing("mkdir", errno.ENOSPC, "/products/")),
    "products_read_only": lasting(failing("mkdir", errno.EROFS, "/products/"), failing("open", errno.EROFS, "/products/")),
    "products_fsync": lasting(failing("fsync", errno.EIO, "/products")),
    "products_rename": lasting(failing("rename", errno.EIO, "/products/")),
    "inputs_unreadable": lasting(failing("pread", errno.EIO, "/work/", "worker"), failing("read", errno.EIO, "/work/", "worker")),
    "no_descriptors": lasting(failing("open", errno.EMFILE, role="worker", path="pb-storage")),
    "no_threads": lasting(failing("clone", errno.EAGAIN, role="worker")),
    "no_processes": lasting(failing("clone", errno.EAGAIN, role="daemon")),
    "no_memory": lasting(failing("malloc", errno.ENOMEM, role="worker", caller="program")),
    "quarantine_full": lasting(failing("open", errno.ENOSPC, "/quarantine/"), failing("rename", errno.ENOSPC, "/quarantine/")),
    "archive_full": lasting(failing("rename", errno.ENOSPC, "/done/")),
    "work_full": lasting(failing("mkdir", errno.ENOSPC, "/work/")),
    "state_full": lasting(failing("pwrite", errno.ENOSPC, "/state/")),
    "state_fsync": lasting(failing("fsync", errno.EIO, "/state")),
    "state_full_at_start": at_start(failing("pwrite", errno.ENOSPC, "/state/"), failing("write", errno.ENOSPC, "/state/")),
    "state_unreadable_at_start": at_start(failing("pread", errno.EIO, "/state/")),
    "slow": slow,
    "hung": hung,
    "clock_steps": clock_steps,
    "lost_store": lost_store,
    "damaged_store": damaged_store,
    "two_services": two_services,
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--part", default="1/1")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    part, parts = map(int, options.part.split("/"))
    names = (options.names or list(TRIALS))[part - 1::parts]
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="pb-storage-"))
    scenes = Scenes(scratch / "scenes", kinds=2)
    wrong, passed = [], 0
    for name in names:
        begun = time.monotonic()
        trial = Trial(scratch, scenes)
        try:
            found = TRIALS[name](trial) + trial.end()
        except AssertionError as error:
            found = [str(error)]
        finally:
            trial.service.remove()
        print(f"{'FAIL' if found else 'ok':4} {time.monotonic() - begun:5.1f} s  {name}", flush=True)
        wrong += [f"{name}: {text}" for text in found]
        passed += not found
    shutil.rmtree(scratch, ignore_errors=True)
    sys.exit(closing_line(wrong, passed))


main()
