#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: threads sanitized
"""The metrics of a running service: labels, histograms, file systems, processes."""
import datetime
import os
import pathlib
import re
import shutil
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from daemon_kit import DaemonCase  # noqa: E402
from patience import wait_for  # noqa: E402
from pbtest import main  # noqa: E402

SOURCE = pathlib.Path(__file__).resolve().parents[2]
FOLDER = "S2A_29RKH_20200219_0_L2A"
SENTINEL2 = """    input:
      scene: "S2?_*L2A*"
      metadata: "{scene}.json"
      files: {SCL: SCL.tif}
    products:
      - statistics: {}
"""
SAMPLE = re.compile(r'(\w+)(?:\{(.*)\})? (\S+)$')
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def samples(text):
    """{(name, ((label, value), ...)): number}; a line that is no sample fails."""
    found = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            name, labels, value = SAMPLE.match(line).groups()
            key = (name, tuple(sorted(LABEL.findall(labels or ""))))
            assert key not in found, "twice: " + line
            found[key] = float(value)
    return found


class Metrics(DaemonCase):
    def read(self, d):
        found = samples(d.call("service.metrics")["text"])
        return lambda name, **labels: found.get(("pushbroom_" + name, tuple(sorted(labels.items()))))

    def test_jobs_are_counted_by_pipeline(self):
        d = self.daemon(pipeline="plain")
        d.drop("a.tif")
        d.wait_job("a.tif", "successful")
        d.drop("b.tif", "fail")
        d.wait_job("b.tif", "failed")
        get = self.read(d)
        self.assertEqual(get("jobs_total", pipeline="plain", state="accepted"), 2)
        self.assertEqual(get("jobs_total", pipeline="plain", state="running"), 2)
        self.assertEqual(get("jobs_total", pipeline="plain", state="successful"), 1)
        self.assertEqual(get("jobs_total", pipeline="plain", state="failed"), 1)
        self.assertEqual(get("job_duration_seconds_count", pipeline="plain"), 2)
        self.assertEqual(get("job_duration_seconds_bucket", pipeline="plain", le="+Inf"), 2)
        self.assertIsNotNone(get("job_duration_seconds_bucket", pipeline="plain", le="0.01"))
        self.assertGreater(get("bytes_written_total", pipeline="plain"), 0)

    def test_pipeline_without_jobs_counts_zero(self):
        d = self.daemon(pipeline="idle")
        get = self.read(d)
        self.assertEqual(get("jobs_total", pipeline="idle", state="successful"), 0)
        self.assertIsNone(get("job_duration_seconds_count", pipeline="idle"))

    def test_delivery_time_includes_the_wait_for_a_worker(self):
        d = self.daemon(parallel=1)
        held = d.root / "go"
        d.drop("first.tif", "until go 10")
        d.wait_job("first.tif", "running")
        d.drop("second.tif")
        queued = d.wait_job("second.tif", "accepted")
        arrived = time.time()
        wait_for(lambda: time.time() > arrived + 0.8)
        held.touch()
        d.wait_job("second.tif", "successful")
        self.assertTrue(queued)
        get = self.read(d)
        self.assertEqual(get("delivery_to_product_seconds_count", pipeline="plain"), 2)
        self.assertGreater(get("delivery_to_product_seconds_sum", pipeline="plain"), 1.6)
        self.assertEqual(get("delivery_to_product_seconds_bucket", pipeline="plain", le="0.5"), 0)
        self.assertIsNone(get("acquisition_to_product_seconds_count", pipeline="plain"))

    def test_arrival_survives_a_restart(self):
        d = self.daemon(start=False)
        d.drop("a.tif", "until go 10")
        d.start()
        d.wait_job("a.tif", "running")
        arrived = time.time()
        d.stop()
        wait_for(lambda: time.time() > arrived + 1.2)
        d.start()
        (d.root / "go").touch()
        d.wait_job("a.tif", "successful")
        self.assertGreater(self.read(d)("delivery_to_product_seconds_sum", pipeline="plain"), 1.2)

    def test_free_space_of_directories_is_reported(self):
        d = self.daemon()
        products = str(d.root / "products")

        def avail():
            return self.read(d)("filesystem_avail_bytes", use="products", directory=products)
        wait_for(lambda: avail() is not None)
        real = os.statvfs(products)
        size = self.read(d)("filesystem_size_bytes", use="products", directory=products)
        self.assertEqual(size, real.f_blocks * real.f_frsize)
        self.assertLessEqual(avail(), size)
        for use in ("inbox", "work", "quarantine", "state"):
            self.assertIsNotNone(self.read(d)("filesystem_avail_bytes", use=use, directory=str(d.root / use)), use)

    def test_processes_are_counted_with_memory_and_time(self):
        d = self.daemon(parallel=2)
        d.drop("a.tif", "until go 10")
        d.drop("b.tif", "until go 10")
        d.wait_job("a.tif", "running")
        d.wait_job("b.tif", "running")
        wait_for(lambda: self.read(d)("processes", kind="worker") == 2)
        get = self.read(d)
        self.assertEqual(get("processes", kind="service"), 1)
        self.assertEqual(get("processes", kind="device_owner"), 0)
        self.assertEqual(get("processes", kind="checker"), 1)
        self.assertGreater(get("process_resident_memory_bytes", kind="worker"), 1 << 20)
        before = get("process_cpu_seconds_total", kind="children")
        self.assertGreater(get("process_cpu_seconds_total", kind="service"), 0)
        (d.root / "go").touch()
        d.wait_idle()
        for pid in d.workers():
            os.kill(pid, 9)
        wait_for(lambda: self.read(d)("processes", kind="worker") < 2)
        wait_for(lambda: self.read(d)("process_cpu_seconds_total", kind="children") > 0)  # time of two interpreters that ended
        self.assertGreaterEqual(self.read(d)("process_cpu_seconds_total", kind="children"), before)

    def test_acquisition_time_is_that_of_the_metadata(self):
        d = self.daemon(start=False, fake=False, pipeline="classes")
        text = d.config.read_text()
        d.config.write_text(text[:text.index("    input:")] + SENTINEL2)
        folder = d.root / FOLDER
        folder.mkdir()
        for name in ("real/sentinel2_29RKH/SCL.tif", "metadata/%s.json" % FOLDER):
            shutil.copy(SOURCE / "tests/data" / name, folder)
        d.start()
        os.rename(folder, d.root / "inbox" / FOLDER)
        d.wait_job(FOLDER, "successful")
        get = self.read(d)
        taken = datetime.datetime(2020, 2, 19, 11, 34, 25, tzinfo=datetime.timezone.utc).timestamp()
        self.assertAlmostEqual(get("acquisition_to_product_seconds_sum", pipeline="classes"), time.time() - taken, delta=600)
        self.assertEqual(get("acquisition_to_product_seconds_bucket", pipeline="classes", le="+Inf"), 1)
        self.assertEqual(get("acquisition_to_product_seconds_bucket", pipeline="classes", le="3.1536e+07"), 0)


if __name__ == "__main__":
    main(workers=3)
