#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""kill -9 of the service and its workers at random points, with and without slowed renames and fsyncs, while scenes,
good and broken, keep arriving. Afterwards every file must be in one place: products and archive, or quarantine with its
reason, and where the store has it; a reader that watched all the time must have seen each product once and complete; the service
must report the same.

  kill.py [--kills 1000] [--seed N] [--keep]        the short form in ctest: --kills 12"""
import argparse
import pathlib
import random
import shutil
import sys
import tempfile
import time

import control
from service_kit import SHIM, Reader, Scenes, Service, account, closing_line, false_paths

BAD_SHARE = 0.15


def slow(faults, on):
    faults.clear()
    if on:
        for call, ms in (("rename", 60), ("fsync", 40), ("unlink", 20), ("mkdir", 20)):
            faults.rule(call, control.DELAY, delay_ms=ms)


def kill_one(service, rng):
    """Half of the kills hit the service, half a worker where one starts within a second. Returns which."""
    wanted = rng.random() < 0.5
    end = time.monotonic() + 1
    while wanted and time.monotonic() < end:
        workers = service.processes()
        if workers:
            service.kill(rng.choice(workers))
            return "worker"
        time.sleep(0.005)
    service.kill()
    service.start()
    return "service"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="pb-kill-"))
    scenes = Scenes(scratch / "scenes")
    faults = control.Faults(scratch / "faults", SHIM)
    service = Service(environment=faults.environment(), parent=scratch)
    delivered, count = {}, {"worker": 0, "service": 0}
    reader = Reader(service.root / "products", lambda scene: scenes.reference[delivered[scene.split("~")[0] + ".tif"]])
    service.start()
    reader.start()
    started = time.monotonic()
    for i in range(options.kills):
        if i % 20 == 0:
            slow(faults, i // 20 % 2 == 1)
        for _ in range(rng.choice((0, 1, 2)) if service.waiting_at_most(60) else 0):
            name = f"s{len(delivered):05}.tif"
            delivered[name] = scenes.choose(rng, BAD_SHARE)
            service.drop_copy(delivered[name], name)
        time.sleep(rng.expovariate(1 / 0.25))
        count[kill_one(service, rng)] += 1
    faults.clear()
    service.wait_up()
    try:
        service.drain()
        wrong = []
    except AssertionError as error:
        wrong = [str(error)]
    service.wait_idle()
    wrong += reader.end() + account(service, delivered, scenes.bad, scenes.reference) + false_paths(service)
    good = sum(base not in scenes.bad for base in delivered.values())
    print(f"{count['service']} kills of the service, {count['worker']} of workers; {good} good and {len(delivered) - good} broken "
          f"scenes; {len(reader.seen)} products seen in {reader.looks} looks; {time.monotonic() - started:.0f} s")
    status = service.end()
    if status != 0:
        wrong.append(f"the service ended with {status}")
    if options.keep or wrong:
        print("kept:", scratch)
    else:
        shutil.rmtree(scratch, ignore_errors=True)
    sys.exit(closing_line(wrong, len(delivered)))


main()
