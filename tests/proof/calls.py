#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""The n-th call fails, for every n until a run passes: malloc, open, read, pread, write, pwrite, fsync, rename, mkdir,
clone, mmap, accept, unlink. A run with a failed call either fails cleanly (a code, no products, no file left) or
makes the right products; the service continues by itself, and its files end where they belong.

  calls.py [--target run|daemon|worker ...] [--call NAME ...] [--most N] [--seed N]
  --most N: calls that a run makes more than N times are failed at the first N / 2 and at random ones (60)
  --sticky: all calls from the n-th on fail for the target `run`"""
import argparse
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile

import control
from service_kit import BIN, CONFIG, SHIM, Scenes, Service, account, checksum, closing_line, product_directories
from patience import run_to_end  # noqa: E402

import errno

ERRORS = {"malloc": errno.ENOMEM, "open": errno.EMFILE, "read": errno.EIO, "pread": errno.EIO, "write": errno.ENOSPC,
          "pwrite": errno.ENOSPC, "fsync": errno.EIO, "rename": errno.EIO, "mkdir": errno.ENOSPC, "clone": errno.EAGAIN,
          "mmap": errno.ENOMEM, "accept": errno.EMFILE, "unlink": errno.EIO}
NEVER = 10**12  # a rule that only counts
PATHS = {"read": "/", "write": "/"}  # files only; a pipe or an eventfd of a process never fails so
NO_POOL = -signal.SIGABRT  # libuv ends a process whose pool gets no thread; systemd starts it again


class Run:
    """`pushbroom run` of one scene."""

    def __init__(self, scratch, scenes, faults):
        self.scratch, self.faults = scratch, faults
        self.scene = scenes.good[0]
        self.reference = scenes.reference[self.scene]
        self.config = scratch / "run.yaml"
        self.config.write_text(CONFIG.format(root=scratch / "none", settle="1s", parallel=1))

    def once(self, may_leave):
        out = self.scratch / "out"
        shutil.rmtree(out, ignore_errors=True)
        try:
            done = run_to_end([BIN / "pushbroom", "run", "--json", "-c", self.config, "-p", "ndvi", "-o", out, "--device", "cpu",
                               self.scene], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env={**os.environ, **self.faults.environment()})
        except AssertionError as error:
            return str(error)[-1500:]
        places = list(product_directories(out))
        if done.returncode == 0:
            if len(places) != 1 or checksum(places[0][1] / f"{self.scene.name}") != self.reference:
                return f"exit 0 with other products: {places}"
            return None
        if done.returncode not in (1, 2):
            return f"exit {done.returncode}: {done.stderr[-300:]}"
        if places:
            return f"exit {done.returncode} with products in place: {done.stdout[-200:]} {done.stderr[-200:]}"
        if not (done.stdout + done.stderr).strip():
            return f"exit {done.returncode} without a word"
        left = [str(p) for p in out.rglob("*")] if out.exists() and not may_leave else []
        left = [p for p in left if ".tmp" in p and not (os.path.isdir(p) and not os.listdir(p))]
        return f"left behind: {left[:3]}" if left else None


class Daemon:
    """The service with one good and one broken scene; the fault is in the service or in its workers."""

    def __init__(self, scratch, scenes, faults):
        self.scratch, self.scenes, self.faults = scratch, scenes, faults

    def once(self, may_leave):
        service = Service(environment=self.faults.environment(), parent=self.scratch, parallel=1)
        delivered = {"good.tif": self.scenes.good[0], "bad.tif": self.scenes.bad[0]}
        try:
            return self.account(service, delivered, may_leave)
        except AssertionError as error:
            return str(error)[-1500:]
        finally:
            service.remove()

    def account(self, service, delivered, may_leave):
        for name, base in delivered.items():
            service.drop_copy(base, name)
        service.start()
        started = service.settle_start()
        if started not in (None, 1, 2, NO_POOL):
            return f"the service ended with {started}:\n{service.tail()}"
        if started is not None:  # refused to start with a message, and the next start has no fault
            if not service.log.read_text().strip():
                return "the service ended without a word"
            service.start()
            service.wait_up()
        service.drain()
        service.wait_idle()
        wrong = account(service, delivered, self.scenes.bad, self.scenes.reference)
        if may_leave:
            wrong = [w for w in wrong if not w.startswith("left behind")]
        status = service.end()
        if status != 0:
            wrong.append(f"the service ended with {status}")
        return "; ".join(wrong) + "\n" + service.tail(12) if wrong else None


def numbers(count, most, rng):
    """Calls that fail: all when there are few, else the first ones and a sample of the others."""
    if count <= most:
        return list(range(1, count + 1))
    first = most // 2
    return list(range(1, first + 1)) + sorted(rng.sample(range(first + 1, count + 1), most - first))


def measure(target, faults, call, role, caller):
    faults.clear()
    rule = faults.rule(call, control.FAIL_NTH, role=role, caller=caller, n=NEVER,
                       path=PATHS.get(call, ""))
    wrong = target.once(True)
    assert wrong is None, f"without a fault: {wrong}"
    return faults.counts(rule)[0]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--target", nargs="+", default=["run", "worker", "daemon"])
    parser.add_argument("--call", nargs="+", default=list(ERRORS))
    parser.add_argument("--most", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sticky", action="store_true")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="pb-calls-"))
    scenes = Scenes(scratch / "scenes", kinds=1)
    faults = control.Faults(scratch / "faults", SHIM)
    wrong, tried, hit = [], 0, 0
    for name in options.target:
        target = (Run if name == "run" else Daemon)(scratch, scenes, faults)
        role = "any" if name == "run" else name
        mode = control.FAIL_FROM if options.sticky and name == "run" else control.FAIL_NTH
        for call in options.call:
            for caller in ("program", "library") if call in ("malloc", "open", "pread") else ("any",):
                count = measure(target, faults, call, role, caller)
                chosen = numbers(count, options.most, rng)
                before = len(wrong)
                for n in chosen:
                    faults.clear()
                    rule = faults.rule(call, mode, role=role, caller=caller, error=ERRORS[call], n=n,
                                       path=PATHS.get(call, ""))
                    found = target.once(call in ("unlink", "open", "malloc", "mkdir"))
                    tried += 1
                    hit += faults.counts(rule)[1] > 0
                    if found:
                        wrong.append(f"{name}: {call} ({caller}) {n} of {count}: {found}")
                print(f"{name:7} {call:7} {caller:8} {count:7} calls, {len(chosen):4} failed in turn, "
                      f"{len(wrong) - before} wrong", flush=True)
    print(f"{tried} runs, a call failed in {hit} of them")
    shutil.rmtree(scratch, ignore_errors=True)
    sys.exit(closing_line(wrong, tried - len(wrong)))


main()
