#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: threads sanitized
"""The outcome of a job is what a reader of products/ can see: a job whose complete products are in place is successful and
runs once, whatever its worker reported or did not report afterwards."""
import os
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from daemon_kit import DaemonCase, wait_for  # noqa: E402
from pbtest import main  # noqa: E402


class Outcome(DaemonCase):
    def once(self, d, name):
        """The job is successful after one run, its input in the archive, its products are listed."""
        job = d.wait_job(name + ".tif", "successful")
        self.assertEqual((job["attempts"], job["error"], job["progress"]), (1, None, 100))
        directory = str(d.root / "products" / name / "plain")
        self.assertEqual(job["directory"], directory)
        self.assertEqual([(p["type"], p["path"], p["bytes"], p["checksum"]) for p in job["products"]],
                         [("cog", directory + "/x.tif", 6, "sha256:" + "0" * 64)])
        self.assertEqual(len((d.root / ("runs-" + name)).read_text().splitlines()), 1)
        wait_for(lambda: (d.root / "work/done" / (name + ".tif")).exists())
        self.assertEqual(d.files("quarantine"), [])
        return job

    def is_published(self, d, name):
        wait_for(lambda: (d.root / "products" / name / "plain/x.tif").exists())

    def test_failure_after_published_products_is_a_success(self):
        d = self.daemon()
        d.drop("x.tif", "published fail")
        self.once(d, "x")
        self.assertIn("in spite of: tile 7", d.log_text())

    def test_a_fault_of_the_machine_told_after_it(self):
        d = self.daemon()
        (d.root / "there").touch()
        d.drop("x.tif", "published until never")
        self.is_published(d, "x")
        os.kill(d.workers()[0], signal.SIGKILL)
        self.once(d, "x")
        self.assertIsNone(d.trouble("queue"))

    def test_workers_that_die_before_their_last_line(self):
        d = self.daemon()
        for name, how in (("a", "killed"), ("b", "crash"), ("c", "quiet_exit"), ("d", "garbage")):
            d.drop(name + ".tif", "published " + how)
            self.once(d, name)

    def test_a_stall_after_it(self):
        d = self.daemon()
        d.drop("x.tif", "published deaf")
        d.wait_for(lambda: [j for j in d.jobs() if j["tiles_done"] == 5])
        d.limit_stall("2s")
        self.once(d, "x")

    def test_a_cancel_that_comes_too_late(self):
        d = self.daemon(stall="300s")
        d.drop("x.tif", "published until never")
        job = d.wait_job("x.tif", "running")
        self.is_published(d, "x")
        d.call("job.cancel", id=job["id"])
        self.once(d, "x")

    def test_a_service_that_dies_before_it_knows(self):
        d = self.daemon()
        d.drop("x.tif", "published until never")
        self.is_published(d, "x")
        d.stop(signal.SIGKILL)
        d.start()
        self.once(d, "x")

    def test_a_service_that_is_stopped_before_it_knows(self):
        d = self.daemon(stall="300s")
        d.drop("x.tif", "published deaf")
        self.is_published(d, "x")
        self.assertEqual(d.stop()[0], 0)
        d.start()
        self.once(d, "x")

    def test_products_that_are_not_complete_do_not_count(self):
        d = self.daemon()
        d.drop("x.tif", "published until go")
        self.is_published(d, "x")
        (d.root / "products/x/plain/x.tif").write_text("less")
        os.kill(d.workers()[0], signal.SIGKILL)
        wait_for(lambda: d.trouble("queue"))
        job = d.wait_job("x.tif", "accepted")
        self.assertEqual(job["attempts"], 0)
        d.call("job.cancel", id=job["id"])
        self.assertEqual(d.wait_job("x.tif", "dismissed")["products"], [])

    def test_another_jobs_products_do_not_count(self):
        d = self.daemon()
        d.drop("x.tif", "published ok")
        first = d.wait_job("x.tif", "successful")
        d.drop("x.tif", "fail")
        job = d.wait_job("x.tif", "failed")
        self.assertNotEqual(job["id"], first["id"])


if __name__ == "__main__":
    main(workers=3)
