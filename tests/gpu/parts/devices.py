# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Devices of the driver; transfer plans by measurement."""
import json
import os

from .host import show, sums
from .pipelines import POINT, SCENES


def devices(host, _):
    print("1. devices")
    done = host.call(host.program("pushbroom"), "devices")
    print(done.stdout.rstrip())
    host.check(done.returncode == 0 and "cuda:0" in done.stdout and "link" in done.stdout, "a CUDA device is there and its link was measured")


def tune(host, _):
    """The plan that tuning finds is one of the best; a saved plan is used, and computes the same."""
    print("1b. transfer plans by measurement")
    done = host.call(host.program("check_tune"), limit=120)
    show(done)
    host.check(done.returncode == 0, f"12 shapes: tuning takes 3 s and is within 2 % of the best of all candidates (exit {done.returncode})")
    os.environ["PUSHBROOM_TUNING"] = str(host.work / "tuning.json")
    try:
        tuned = host.call(host.program("pushbroom"), "devices", "--tune", "--json")
        device = json.loads(tuned.stdout.splitlines()[1]) if tuned.returncode == 0 else {"tuned": []}
        host.check(len(device["tuned"]) == 12 and (host.work / "tuning.json").exists(), f"devices --tune keeps 12 rows {tuned.stderr[-300:]}")
        told = host.call(host.program("pushbroom"), "devices").stdout
        host.check("measured on 20" in told and "as measured" in told, "devices says that plans are measured, and when")
        scene = host.scene("u16 tiled", SCENES["u16 tiled"])
        cpu, gpu = (host.run(host.config("tuned", POINT, sync="wic"), scene, way, f"tuned-{way}")[0] for way in ("cpu", "cuda"))
        host.check(gpu["status"] == "successful" and sums(gpu) == sums(cpu), "a run by a measured plan gives what the CPU gives")
        (host.work / "tuning.json").write_text('{"pushbroom_tuning": 1, "gpus": [')
        told = host.call(host.program("pushbroom"), "devices").stdout
        host.check("is damaged" in " ".join(told.split()) and "built-in table" in told, "a damaged file is told and ignored")
    finally:
        del os.environ["PUSHBROOM_TUNING"]
