#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: slow
"""The real pushbroomd with scripted workers whose device fails: a fresh worker, then the CPU, and never the input's fault."""
import os
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from daemon_kit import wait_for  # noqa: E402
from pbtest import main  # noqa: E402
from service_case import STOPS, Service  # noqa: E402


class LostDevice(Service):
    """A device that fails costs the job a fresh worker, then the GPU; never its input."""

    def tries(self, d, name):
        path = d.root / ("tries-" + name)
        lines = [line.split() for line in path.read_text().splitlines()] if path.exists() else []
        return [pid for pid, _ in lines], [device for _, device in lines]

    def counted(self, d, on):
        line = 'pushbroom_device_retries_total{on="%s"} ' % on
        return int(d.call("service.metrics")["text"].split(line)[1].split()[0])

    def test_lost_once_runs_again_in_a_fresh_worker(self):
        d = self.daemon()
        d.drop("warm.tif")
        d.wait_job("warm.tif", "successful")
        warm, = d.workers()
        d.drop("x.tif", "device device.lost")
        job = d.wait_job("x.tif", "successful")
        pids, devices = self.tries(d, "x")
        self.assertEqual(int(pids[0]), warm)
        self.assertNotEqual(pids[0], pids[1])
        self.assertEqual(devices, ["config", "config"])
        self.assertEqual((job["attempts"], job["progress"], job["tiles_done"]), (1, 100, 20))
        self.assertTrue(job["device_why"].startswith("again in a fresh process after device.lost: the GPU failed"), job)
        self.assertIsNone(job["error"])
        self.assertEqual(d.files("quarantine"), [])
        self.assertIn("job %s: runs again in a fresh process" % job["id"], d.log_text())
        self.assertEqual((self.counted(d, "fresh"), self.counted(d, "cpu")), (1, 0))
        self.assertFalse(os.path.exists("/proc/%d" % warm))
        self.assertEqual(self.temporary(d), [])
        d.drop("y.tif")
        job = d.wait_job("y.tif", "successful")
        self.assertIsNone(job["device_why"])
        self.assertEqual([str(pid) for pid in d.workers()], pids[1:], "the fresh worker stays")

    def test_full_device_is_used_by_streams_in_new_worker(self):
        d = self.daemon()
        d.drop("x.tif", "device device.busy")
        job = d.wait_job("x.tif", "successful")
        pids, devices = self.tries(d, "x")
        self.assertNotEqual(pids[0], pids[1])
        self.assertEqual((devices, job["attempts"]), (["config", "stream"], 1))
        self.assertTrue(job["device_why"].startswith("by streams in a fresh process after device.busy: "), job)
        self.assertEqual([self.counted(d, on) for on in ("fresh", "stream", "cpu")], [0, 1, 0])
        self.assertEqual(d.files("quarantine"), [])

    def test_lost_twice_runs_on_the_cpu_and_only_that_job(self):
        for second in ("device.lost", "device.failed", "device.missing"):
            d = self.daemon()
            d.drop("x.tif", "device device.lost " + second)
            job = d.wait_job("x.tif", "successful")
            pids, devices = self.tries(d, "x")
            self.assertEqual(devices, ["config", "config", "cpu"])
            self.assertEqual(len(set(pids)), 3)
            self.assertTrue(job["device_why"].startswith("on the CPU after %s: " % second), job)
            self.assertEqual((job["attempts"], job["device"]), (1, "cpu"))
            self.assertEqual((self.counted(d, "fresh"), self.counted(d, "cpu")), (1, 1))
            d.drop("y.tif", "device")
            d.wait_job("y.tif", "successful")
            self.assertEqual(self.tries(d, "y"), (pids[2:], ["config"]))

    def test_required_cuda_falls_back_to_cpu_with_message(self):
        d = self.daemon(start=False)
        d.config.write_text("compute: {device: cuda}\n" + d.config.read_text())
        d.start()
        d.drop("x.tif", "device device.lost device.lost")
        job = d.wait_job("x.tif", "successful")
        self.assertIn("although the configuration demands a GPU", job["device_why"])
        self.assertIn(job["device_why"], d.log_text())

    def test_lost_on_every_device_waits_until_one_works(self):
        d = self.daemon()
        d.drop("x.tif", "device" + 5 * " device.lost")
        trouble = d.wait_trouble("queue")
        self.assertEqual(trouble["code"], "device.lost")
        job = d.wait_job("x.tif", "successful")
        self.assertEqual(len(self.tries(d, "x")[0]), 6)
        self.assertEqual(job["attempts"], 1)
        self.assertEqual(d.files("quarantine"), [])
        d.drop("y.tif")
        d.wait_job("y.tif", "successful")
        self.assertIsNone(d.trouble("queue"))

    def test_input_error_after_a_lost_device_is_final(self):
        d = self.daemon()
        d.drop("x.tif", "device device.lost fail")
        job = d.wait_job("x.tif", "failed")
        self.assertEqual(job["error"]["code"], "input.truncated")
        self.assertEqual(len(self.tries(d, "x")[0]), 2)

    def test_required_but_absent_device_is_waited_for(self):
        d = self.daemon()
        d.drop("x.tif", "device device.missing device.missing")
        self.assertEqual(wait_for(lambda: d.trouble("queue"))["code"], "device.missing")
        job = d.wait_job("x.tif", "successful")
        self.assertEqual((len(self.tries(d, "x")[0]), job["attempts"]), (3, 1))

    def test_progress_starts_over_and_a_cancel_wins(self):
        d = self.daemon(stall="300s")
        d.drop("x.tif", "device device.lost slow 300")
        job = d.wait_for(lambda: [j for j in d.jobs() if j["device_why"] and j["tiles_total"] == 20])[0]
        self.assertLess(job["tiles_done"], 7)
        self.assertEqual(job["status"], "running")
        d.call("job.cancel", id=job["id"])
        job = d.wait_job("x.tif", "dismissed")
        self.assertEqual(job["error"]["code"], "job.dismissed")
        self.assertEqual(len(self.tries(d, "x")[0]), 2)
        job = d.call("job.retry", id=job["id"])
        self.assertIsNone(job["device_why"])

    def lost_and_held(self, d):
        """A job whose worker reported device.lost and does not end, even when killed."""
        d.drop("warm.tif")
        d.wait_job("warm.tif", "successful")
        self.hold(d.workers()[0])
        d.drop("x.tif", "device device.lost")
        return d.wait_for(lambda: [j for j in d.jobs() if j["device_why"]])[0]

    def test_a_cancel_between_two_tries_wins_at_once(self):
        d = self.daemon()
        job = self.lost_and_held(d)
        self.assertEqual((job["status"], job["progress"], job["tiles_done"], job["stage"]), ("running", 0, 0, None))
        d.call("job.cancel", id=job["id"])
        self.assertEqual(d.wait_job("x.tif", "dismissed")["attempts"], 1)
        d.drop("y.tif")
        d.wait_job("y.tif", "successful")
        self.assertNotIn("does not end on SIGKILL", d.log_text(), "it was waited for")
        self.assertEqual(len(self.tries(d, "x")[0]), 1)

    def test_worker_that_survives_sigkill_is_replaced(self):
        d = self.daemon()
        self.lost_and_held(d)
        d.limit_stall("1s")  # waiting for the next worker is not a stall of the job
        time.sleep(3)
        d.limit_stall("300s")
        job = d.wait_job("x.tif", "successful")
        self.assertEqual(len(self.tries(d, "x")[0]), 2)
        self.assertEqual(job["attempts"], 1)

    def test_shutdown_between_tries_requeues_the_job(self):
        d = self.daemon(stall="300s")
        job = self.lost_and_held(d)
        status, seconds = d.stop()
        self.assertEqual(status, 0)
        self.assertLess(seconds, STOPS)
        d.start()
        self.assertEqual(d.wait_job("x.tif", "successful")["id"], job["id"])

    def test_kill_9_between_two_tries_runs_the_job_again(self):
        d = self.daemon(stall="300s")
        job = self.lost_and_held(d)
        d.stop(signal.SIGKILL)
        d.start()
        again = d.wait_job("x.tif", "successful")
        self.assertEqual((again["id"], again["device_why"]), (job["id"], None))
        self.assertEqual(len(d.jobs()), 2)

    def test_cancelled_job_leaves_no_broken_worker(self):
        d = self.daemon(stall="300s")
        d.drop("x.tif", "lost_on_cancel")
        job = d.wait_job("x.tif", "running")
        worker, = d.workers()
        d.call("job.cancel", id=job["id"])
        d.wait_job("x.tif", "dismissed")
        d.drop("y.tif")
        d.wait_job("y.tif", "successful")
        self.assertNotIn(worker, d.workers())


if __name__ == "__main__":
    main(workers=3)
