#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: threads slow
"""The real pushbroomd with its real workers: scenes become products, workers that die cost their job
only, and a folder of hostile files neither stops nor hangs the service."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from daemon_kit import BIN, Daemon, wait_for  # noqa: E402

import numpy  # noqa: E402
import pbtest  # noqa: E402
import sums  # noqa: E402
from osgeo import gdal  # noqa: E402

gdal.UseExceptions()
DATA = pbtest.DATA

# A job to be caught while it runs is noise, written with a slow codec.
PIPELINES = """pipelines:
  slow:
    input:
      match: ["slow_*"]
      bands: {R: 1}
    products:
      - cog: {bands: [R], type: float32, compress: zstd, level: 19}
  red:
    input:
      match: ["*.tif", "*.tiff", "*.TIF", "*"]
      bands: {R: 1}
    steps:
      - math: {bands: {TWICE: "R * 2"}}
    products:
      - cog: {bands: [TWICE], type: float32, compress: deflate}
      - statistics: {}
"""


def scene(path, width, height, noise=False):
    data = numpy.arange(width * height, dtype=numpy.uint32).reshape(height, width) % 1000
    if noise:
        data = numpy.random.default_rng(1).integers(0, 60000, (height, width), dtype=numpy.uint32)
    driver = gdal.GetDriverByName("GTiff")
    out = driver.Create(str(path), width, height, 1, gdal.GDT_UInt16, ["TILED=YES", "COMPRESS=DEFLATE"])
    out.SetGeoTransform([500000, 10, 0, 5000000, 0, -10])
    out.GetRasterBand(1).WriteArray(data.astype(numpy.uint16))
    out = None
    return data


def manifest(path):
    return {"version": 1, "input": str(path), "roots": []}


class Worker(unittest.TestCase):
    def daemon(self, extra="", **settings):
        d = Daemon(fake=False, **settings)
        self.addCleanup(d.remove)
        d.set_pipelines(extra + PIPELINES)
        return d

    def put(self, d, path):
        os.rename(path, d.root / "inbox" / path.name)

    def test_a_scene_becomes_its_products(self):
        d = self.daemon().start()
        data = scene(d.root / "s.tif", 700, 500)
        self.put(d, d.root / "s.tif")
        job = d.wait_job("s.tif", "successful")
        self.assertEqual({p["type"] for p in job["products"]}, {"cog", "statistics"})
        for product in job["products"]:
            path = pathlib.Path(product["path"])
            self.assertEqual(path.stat().st_size, product["bytes"])
            self.assertEqual(product["checksum"], sums.checksum(path))
        cog = [p["path"] for p in job["products"] if p["type"] == "cog"][0]
        published = gdal.Open(cog)  # kept: a band without its dataset is a dangling pointer
        values = published.GetRasterBand(1).ReadAsArray()
        self.assertTrue(numpy.array_equal(values, data.astype(numpy.float32) * 2))
        self.assertEqual(job["tiles_done"], job["tiles_total"])
        self.assertEqual({s["name"] for s in job["report"]["stages"]}, {"read", "compute", "write"})
        self.assertEqual(d.call("service.info")["device"], job["device"])
        first = d.workers()
        scene(d.root / "t.tif", 10, 10)
        self.put(d, d.root / "t.tif")
        d.wait_job("t.tif", "successful")
        self.assertEqual(d.workers(), first, "the worker should have stayed")

    def test_worker_with_a_next_job_continues_with_it(self):
        root = pathlib.Path(tempfile.mkdtemp(prefix="pb-"))
        self.addCleanup(shutil.rmtree, root)
        worker = subprocess.Popen([BIN / "pushbroomd", "--worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(worker.kill)
        self.assertEqual(worker.stdout.readline(), "\n")

        def tell(name, pipeline="red", side=10):
            scene(root / name, side, side, noise=True)
            worker.stdin.write(json.dumps({"cmd": "run", "job": name, "config": "compute: {device: cpu}\n" + PIPELINES, "config_name": "c",
                                           "pipeline": pipeline, "manifest": manifest(root / name),
                                           "products": str(root / "out"), "scene": name}) + "\n")

        def end():
            for line in worker.stdout:
                said = json.loads(line)
                if said["event"] in ("done", "failed"):
                    return said["event"], said["job"]

        tell("a")
        tell("b")
        worker.stdin.flush()
        self.assertEqual([end(), end()], [("done", "a"), ("done", "b")])
        tell("c", "slow", 1024)
        tell("d")
        worker.stdin.write('{"cmd":"cancel"}\n')
        worker.stdin.flush()
        self.assertEqual(end(), ("failed", "c"))
        tell("e")
        worker.stdin.close()  # the end of its owner is that of the next job as well, or follows it
        worker.wait()
        self.assertFalse((root / "out/d").exists(), "what was told next is cancelled with what runs")
        self.assertEqual([p for p in (root / "out").iterdir() if p.name.startswith(".")], [])

    def catch(self, d):
        """A job of the pipeline "slow" with tiles done and tiles to do, and its worker, which is stopped. Four tiles take
        seconds; should they be faster than we look, another scene follows."""
        for i in range(10):
            name = "slow_%d.tif" % i
            scene(d.root / name, 1024, 1024, noise=True)
            self.put(d, d.root / name)
            d.wait_for(lambda: [j for j in d.jobs() if j["name"] == name and (j["tiles_done"] > 0 or j["finished"])])
            worker = d.workers()[0]
            os.kill(worker, signal.SIGSTOP)
            job, = (j for j in d.jobs() if j["name"] == name)
            if job["status"] == "running":
                return job, worker
            os.kill(worker, signal.SIGCONT)
        self.fail("no job was caught while it ran:\n" + d.log_text())

    def test_killed_worker_is_replaced_and_job_runs_again(self):
        d = self.daemon(stall="300s").start()
        job, worker = self.catch(d)
        os.kill(worker, signal.SIGKILL)
        job = d.wait_job(job["name"], "successful")
        self.assertEqual(job["attempts"], 1, "what ended it from outside is no fault of the input")
        self.assertIn("signal 9", d.log_text())
        self.assertEqual([f for f in d.files("products") if f.startswith(".")], [])

    def test_cancel_and_sigterm_leave_no_half_products(self):
        d = self.daemon(stall="300s").start()
        scene(d.root / "slow_b.tif", 1024, 1024, noise=True)
        job, worker = self.catch(d)
        self.put(d, d.root / "slow_b.tif")
        d.call("job.cancel", id=job["id"])
        os.kill(worker, signal.SIGCONT)
        d.wait_job(job["name"], "dismissed")
        d.wait_for(lambda: [j for j in d.jobs() if j["name"] == "slow_b.tif" and j["status"] != "accepted"])
        status, _ = d.stop()
        self.assertEqual(status, 0)
        self.assertEqual([f for f in d.files("products") if f.startswith(".")], [])

    def test_workers_die_with_their_service(self):
        d = self.daemon().start()
        scene(d.root / "s.tif", 10, 10)
        self.put(d, d.root / "s.tif")
        d.wait_job("s.tif", "successful")
        workers = d.workers()
        self.assertTrue(workers)
        d.stop(signal.SIGKILL)
        wait_for(lambda: not any(os.path.exists("/proc/%d" % pid) for pid in workers))

    def test_job_may_require_the_cpu_but_not_for_the_next(self):
        d = self.daemon()  # for its directory
        text = "compute: {device: 'cuda:99'}\n" + PIPELINES
        scene(d.root / "s.tif", 300, 200)
        worker = subprocess.Popen([BIN / "pushbroomd", "--worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(worker.wait)
        self.addCleanup(worker.stdout.close)
        self.addCleanup(worker.stdin.close)
        self.assertEqual(worker.stdout.readline(), "\n")  # before anything else: it runs

        def end(**more):
            command = dict(cmd="run", job="20261121-082850-abcd", config=text, config_name="c.yaml", pipeline="red",
                           manifest=manifest(d.root / "s.tif"), products=str(d.root), scene="out", **more)
            worker.stdin.write(json.dumps(command) + "\n")
            worker.stdin.flush()
            return next(e for e in map(json.loads, worker.stdout) if e["event"] != "progress")

        self.assertEqual(end()["error"]["code"], "device.missing")
        for _ in range(2):
            done = end(device="cpu")
            self.assertEqual((done["event"], done.get("report", {}).get("device")), ("done", "cpu"), done)
            self.assertEqual(end()["error"]["code"], "device.missing")

    @unittest.skipUnless((DATA / "hostile").is_dir(), "PB_SHARED_DATA with hostile/ is not there")
    def test_hostile_files_end_in_success_or_a_clear_error(self):
        d = self.daemon(stall="120s", parallel=2).start()
        files = sorted(p for p in (DATA / "hostile").iterdir() if p.is_file())
        if pbtest.SANITIZED:
            files = files[::4]  # their decoders are for test_hostile, which takes all of them
        for path in files:
            d.call("job.submit", input=str(path))
        counts = d.wait_idle()  # a hang ends by service.stall
        jobs = d.jobs(limit=1000)
        self.assertEqual(len(jobs), len(files))
        bad = {j["name"]: j["error"] for j in jobs if j["status"] == "failed" and (
            j["error"]["code"] in ("job.crashed", "job.stalled", "system") or not j["error"]["message"] or not j["error"]["hint"])}
        self.assertEqual(bad, {})
        for job in jobs:
            self.assertIn(job["status"], ("successful", "failed"))
        json.dumps(jobs)
        print("hostile:", counts, file=sys.stderr)


if __name__ == "__main__":
    pbtest.main(workers=3)
