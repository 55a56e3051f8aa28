#!/usr/bin/env python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""The real service on a host with one GPU or more: jobs of different chains side by side, spread over the GPUs; an owner that is killed; a
command that uses the service's owner, and one that must not run at the same time. PB_BIN names the folder of the programs."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))
from daemon_kit import Daemon, wait_for  # noqa: E402
from pbtest import main, run, run_json  # noqa: E402

PIPELINES = """compute: {device: auto}
pipelines:
  point:
    input: {match: ["point*.tif"], bands: {B: 1, G: 2, R: 3, N: 4}, scale: 0.0001}
    steps:
      - index: {names: [NDVI, EVI]}
    products:
      - cog: {bands: [NDVI, EVI], compress: none}
      - statistics: {}
  halo:
    input: {match: ["halo*.tif"], bands: {B: 1, G: 2, R: 3, N: 4}, scale: 0.0001}
    steps:
      - convolve: {kernel: gaussian, size: 7, bands: {SOFT: N}}
    products:
      - cog: {bands: [SOFT, R], compress: none}
  classes:
    input: {match: ["classes*.tif"], bands: {B: 1, G: 2, R: 3, N: 4}, scale: 0.0001}
    steps:
      - classify: {bands: [B, G, R, N], classes: 5, rounds: 4, as: KIND}
    products:
      - cog: {bands: [KIND], type: uint8, nodata: 255}
"""
KINDS = ("point", "halo", "classes")
folder = pathlib.Path(tempfile.mkdtemp(prefix="pb-scenes-"))


def gpus():
    return sum(device["device"].startswith("cuda:") for device in map(json.loads, run("pushbroom", "devices", "--json").stdout.splitlines()))


@contextlib.contextmanager
def service(**settings):
    with Daemon(fake=False, **settings) as d:
        d.set_pipelines(PIPELINES)
        try:
            yield d.start()
        except Exception:
            print(d.log_text()[-6000:])
            raise


def drop(d, name):
    shutil.copy(folder / "scene.tif", d.root / ("." + name))
    os.rename(d.root / ("." + name), d.root / "inbox" / name)


def sums(result):
    return {product["path"].rsplit(".", 1)[1]: product["checksum"] for product in result["products"] if not product["path"].endswith("json")}


def children(pid):
    return [int(n) for n in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def held(d):
    """Stops the processes that decode, so that their jobs stay."""
    found = [child for worker in d.workers() for child in children(worker)]
    for pid in found:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
    return found


def on_cpu(d, name):
    """Products of the CPU for this file."""
    return run_json("pushbroom", "run", "--json", "--device", "cpu", "-c", d.config, "-o", d.root / "cpu", named(d, name))[0]


def named(d, name):
    path = d.root / name
    if not path.exists():
        os.symlink(folder / "scene.tif", path)
    return path


class ServiceOnGpus(unittest.TestCase):
    def test_parallel_jobs_of_all_chains_equal_the_cpu(self):
        with service(parallel=4) as d:
            names = [f"{kind}{n}.tif" for n in range(4) for kind in KINDS]
            for name in names:
                drop(d, name)
            jobs = {name: d.wait_job(name, "successful") for name in names}
            for kind in KINDS:
                want = sums(on_cpu(d, f"{kind}0.tif"))
                for n in range(4):
                    job = jobs[f"{kind}{n}.tif"]
                    self.assertEqual((sums(job), job["attempts"], job["device_why"]), (want, 1, None), job["name"])
            used = {job["report"]["device"] for job in jobs.values()}
            self.assertEqual(used, {f"cuda:{n}" for n in range(min(gpus(), 4))}, "every GPU has work")
            self.assertEqual(len(d.owners()), min(gpus(), 4))

    def test_an_owner_that_is_killed_costs_no_job(self):
        with service(parallel=2) as d:
            first = wait_for(lambda: len(d.owners()) == min(gpus(), 2) and d.owners())
            for name in ("point1.tif", "halo1.tif"):
                drop(d, name)
            stopped = wait_for(lambda: held(d), step=0.005)
            os.kill(first[0], signal.SIGKILL)
            for pid in stopped:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)
            for name in ("point1.tif", "halo1.tif"):
                job = d.wait_job(name, "successful")
                self.assertEqual((sums(job), job["attempts"]), (sums(on_cpu(d, name)), 1))
                self.assertTrue(job["report"]["device"].startswith("cuda:"), job["report"])
            wait_for(lambda: len(d.owners()) == len(first) and first[0] not in d.owners())
            self.assertIn("ended with signal 9 (Killed); it is replaced", d.log_text())

    def test_commands_beside_the_service(self):
        with service() as d:
            wait_for(lambda: (d.root / "s.sock.cuda0").exists())
            result = run_json("pushbroom", "run", "--json", "-c", d.config, "-o", d.root / "out", named(d, "point9.tif"))[0]
            self.assertEqual((result["report"]["device"], sums(result)), ("cuda:0", sums(on_cpu(d, "point9.tif"))))
            owner = d.owners()[0]
            listed = subprocess.run(["nvidia-smi", "--query-compute-apps=pid", "--format=csv,noheader"], stdout=subprocess.PIPE, text=True).stdout
            tuning = {"PUSHBROOM_TUNING": str(d.root / "tuning.json")}
            told = run("pushbroom", "devices", "--tune", code=None, env={**tuning, "PUSHBROOM_SOCKET": str(d.root / "s.sock")})
            self.assertEqual(told.returncode, 1)
            self.assertIn("the service computes on cuda:0", told.stderr)
            if str(owner) in re.findall(r"\d+", listed):  # a container may hide the processes of a GPU
                told = run("pushbroom", "devices", "--tune", code=None, env=tuning)
                self.assertEqual(told.returncode, 1)
                self.assertIn(f"1 other process computes on cuda:0 (one is {owner})", told.stderr)
            else:
                print("  skipped: this host does not list the processes of a GPU")
            # The service with one job at a time has the first of several GPUs; the others may be measured.
            self.assertEqual((d.root / "tuning.json").exists(), gpus() > 1)


if __name__ == "__main__":
    run("make_scene", "--size", "3000x2500", "--compress", "NONE", "--kind", "coast", folder / "scene.tif")
    print(json.dumps({"gpus": gpus()}))
    try:
        main()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
