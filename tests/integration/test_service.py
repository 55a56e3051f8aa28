#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""The real pushbroomd with scripted workers: intake, jobs, restarts, signals. The socket's manners
are in test_status_socket.py; whole runs with real pixels are elsewhere."""
import json
import os
import signal
import sqlite3
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from daemon_kit import BIN, DaemonCase, RpcError, main, wait_for  # noqa: E402
from patience import PATIENCE_S, run_to_end  # noqa: E402

STOPS = 40  # seconds; it promises 10, and this machine may have other work; what does not stop takes 50 and more


class Service(DaemonCase):
    def temporary(self, daemon):
        return [f for f in daemon.files("products") if f.startswith(".") and "/" not in f]

    def hold(self, pid):
        """Traces the process and never waits for it, so that its end stays hidden from its parent: to the service it
        looks like one that hangs in the kernel. Returns the tracer."""
        code = ("import ctypes, sys, time\nrc = ctypes.CDLL(None, use_errno=True).ptrace(0x4206, %d, None, None)\n"
                "print(rc, flush=True)\ntime.sleep(120)" % pid)  # PTRACE_SEIZE
        tracer = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        self.addCleanup(tracer.stdout.close)
        self.addCleanup(tracer.wait)
        self.addCleanup(tracer.kill)
        if tracer.stdout.readline().strip() != "0":
            self.skipTest("this system lets no process trace another")
        return tracer


class Intake(Service):
    def test_a_file_dropped_before_and_after_the_start_becomes_products(self):
        d = self.daemon(start=False)
        d.drop("before.tif")
        d.start()
        d.drop("after.tif")
        job = d.wait_job("after.tif", "successful")
        d.wait_job("before.tif", "successful")
        self.assertEqual(job["progress"], 100)
        self.assertEqual(job["pipeline"], "plain")
        self.assertEqual(job["attempts"], 1)
        self.assertEqual(job["products"][0]["type"], "cog")
        self.assertEqual(job["device"], "cpu")
        self.assertIsNone(job["error"])
        self.assertRegex(job["finished"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
        self.assertEqual(d.files("work"), ["done", "done/after.tif", "done/before.tif"])
        self.assertEqual(job["input"], str(d.root / "work/done/after.tif"))
        self.assertEqual(d.files("inbox"), [])
        self.assertIn("fake worker takes " + job["id"], d.log_text())

    def test_a_growing_file_is_left_until_it_holds_still(self):
        d = self.daemon(settle="1500ms")
        with open(d.root / "inbox/grows.tif", "w") as file:
            for _ in range(12):
                file.write("ok ")
                file.flush()
                time.sleep(0.2)
                self.assertEqual(d.jobs(), [])
        d.wait_job("grows.tif", "successful")

    def test_an_old_file_is_taken_at_once(self):
        d = self.daemon(settle="10min")
        d.drop("old.tif", old=True)
        d.wait_job("old.tif", "successful")

    def test_names_in_progress_and_things_that_are_no_files_stay(self):
        d = self.daemon()
        inbox = d.root / "inbox"
        for name in (".hidden.tif", "a.tif.part", "b.TMP", "c.inprogress", "d.filepart"):
            (inbox / name).write_text("ok")
        (inbox / "folder.tif").mkdir()
        os.mkfifo(inbox / "pipe.tif")
        os.symlink("/etc/passwd", inbox / "link.tif")
        d.drop("real.tif")
        d.wait_job("real.tif", "successful")
        time.sleep(1.3)
        self.assertEqual(len(d.files("inbox")), 8)
        self.assertEqual(len(d.jobs()), 1)
        for word in ("folder.tif is a directory", "pipe.tif is a pipe", "link.tif is a symbolic link"):
            self.assertEqual(d.log_text().count(word), 1, word)

    def test_a_file_that_fits_no_pipeline_is_quarantined_with_words(self):
        d = self.daemon()
        d.drop("notes.txt")
        job = d.wait_job("notes.txt", "failed")
        self.assertEqual(job["error"]["code"], "input.no_pipeline")
        self.assertEqual(d.files("quarantine"), ["notes.txt", "notes.txt.error.json"])

    def test_names_with_odd_bytes_are_cleaned(self):
        d = self.daemon()
        os.rename(self.write(d, b"ok"), os.fsencode(d.root / "inbox") + b"/a\xff\n b.tif")
        wait_for(lambda: [j for j in d.jobs() if j["status"] == "successful"])
        self.assertRegex(d.jobs()[0]["name"], r"^a__ b-[0-9a-f]{12}\.tif$")

    def write(self, d, data):
        path = d.root / "elsewhere"
        path.write_bytes(data)
        return path

    def test_the_same_name_again_is_a_new_job_and_overwrites_no_input(self):
        d = self.daemon()
        for i in range(3):
            d.drop("x.tif")
            wait_for(lambda: len(d.jobs(status="successful")) == i + 1)
        self.assertEqual(d.files("work"), ["done", "done/x.tif", "done/x.tif.1", "done/x.tif.2"])

    def test_inputs_are_deleted_when_the_config_says_so(self):
        d = self.daemon(on_success="delete")
        d.drop("x.tif")
        d.wait_job("x.tif", "successful")
        wait_for(lambda: d.files("work") == ["done"])

    def test_many_files_at_once_are_all_taken(self):
        d = self.daemon(parallel=4)
        for i in range(80):
            d.drop("s%02d.tif" % i)
        d.wait_for(lambda: len(d.jobs(status="successful", limit=200)) == 80)
        self.assertLessEqual(len(d.workers()), 4)

    def test_submitted_files_stay_where_they_are(self):
        d = self.daemon()
        good, bad = d.root / "mine.tif", d.root / "broken.tif"
        good.write_text("ok")
        bad.write_text("fail")
        job = d.call("job.submit", input=str(good))
        self.assertIn(job["status"], ("accepted", "running"))
        d.wait_job("mine.tif", "successful")
        d.call("job.submit", input=str(bad), pipeline="plain")
        d.wait_job("broken.tif", "failed")
        self.assertTrue(good.exists() and bad.exists())
        self.assertEqual(d.files("quarantine"), ["broken.tif.error.json"])
        for params, code in (({"input": "rel.tif"}, "usage"), ({"input": "/no/such.tif"}, "input.missing"),
                             ({"input": "/etc"}, "input.missing"),
                             ({"input": str(good), "pipeline": "nope"}, "input.no_pipeline")):
            with self.assertRaises(RpcError) as caught:
                d.call("job.submit", **params)
            self.assertEqual(caught.exception.code, code)


class Failure(Service):
    def test_what_cannot_be_claimed_stays_and_is_taken_once_it_can(self):
        d = self.daemon()
        (d.root / "work").rename(d.root / "away")
        d.drop("x.tif", old=True)
        wait_for(lambda: "x.tif stays" in d.log_text())
        time.sleep(2)
        self.assertLess(d.log_text().count("x.tif stays"), 4)
        self.assertEqual(d.files("inbox"), ["x.tif"])
        (d.root / "away").rename(d.root / "work")
        d.wait_job("x.tif", "successful")

    def test_an_inbox_that_goes_away_and_comes_back_is_watched_again(self):
        d = self.daemon()
        (d.root / "inbox").rmdir()
        wait_for(lambda: "cannot read" in d.log_text())
        (d.root / "inbox").mkdir()
        wait_for(lambda: "is over: inbox: cannot read" in d.log_text())
        d.drop("x.tif")
        d.wait_job("x.tif", "successful")
        self.assertEqual(d.log_text().count("system): inbox: cannot read"), 1)

    def test_a_failed_job_leaves_input_and_reason_in_quarantine(self):
        d = self.daemon()
        d.drop("bad.tif", "fail")
        d.drop("good.tif")
        job = d.wait_job("bad.tif", "failed")
        d.wait_job("good.tif", "successful")
        self.assertEqual(job["error"], {"code": "input.truncated", "message": "tile 7 is missing",
                                        "hint": "fetch the file again; part of its pixels are missing"})
        record = json.loads((d.root / "quarantine/bad.tif.error.json").read_text())
        self.assertEqual((record["code"], record["job"], record["attempts"]), ("input.truncated", job["id"], 1))
        self.assertEqual(job["input"], str(d.root / "quarantine/bad.tif"))
        self.assertEqual(d.files("work"), ["done", "done/good.tif"])
        self.assertEqual(self.temporary(d), [])

    def test_a_crash_is_tried_once_more_and_then_fails(self):
        d = self.daemon()
        d.drop("bomb.tif", "crash")
        d.drop("once.tif", "crash_once")
        job = d.wait_job("bomb.tif", "failed")
        self.assertEqual((job["error"]["code"], job["attempts"]), ("job.crashed", 2))
        self.assertIn("signal 11", job["error"]["message"])
        self.assertEqual(d.wait_job("once.tif", "successful")["attempts"], 2)
        self.assertEqual(self.temporary(d), [])

    def test_a_worker_that_talks_nonsense_or_leaves_counts_as_crashed(self):
        d = self.daemon(stall="20s")
        names = ("garbage", "long", "quiet_exit", "elsewhere", "other_job")
        for name in names:
            d.drop(name + ".tif", name)
        for name in names:
            self.assertEqual(d.wait_job(name + ".tif", "failed")["error"]["code"], "job.crashed", name)
        for why in ("not where this job's belong", "an event of another job"):
            self.assertIn(why, d.log_text())

    def test_a_worker_that_floods_does_not_hold_up_the_service(self):
        d = self.daemon(stall="60s", parallel=2)
        d.drop("flood.tif", "flood")
        d.drop("next.tif")
        d.wait_job("next.tif", "successful")
        self.assertEqual(d.wait_job("flood.tif", "failed")["error"]["code"], "job.crashed")
        self.assertIn("too many lines", d.log_text())
        self.assertLess(d.log.stat().st_size, 100000)

    def test_a_job_without_progress_is_ended(self):
        d = self.daemon(stall="4s")
        d.drop("stuck.tif", "deaf")
        d.drop("next.tif")
        job = d.wait_job("stuck.tif", "failed")
        self.assertEqual(job["error"]["code"], "job.stalled")
        self.assertIn("tile 5 of 10", job["error"]["message"])
        d.wait_job("next.tif", "successful")

    def test_a_worker_that_outlives_sigkill_is_given_up(self):
        d = self.daemon(stall="4s")
        d.drop("hung.tif", "deaf")
        d.wait_job("hung.tif", "running")
        worker, = d.workers()
        self.hold(worker)
        d.drop("next.tif")
        d.wait_job("next.tif", "accepted")
        job = d.wait_job("hung.tif", "failed")
        # Storage that does not answer is not the input's fault; the second worker can be ended, and then it is.
        self.assertEqual(job["error"]["code"], "job.stalled")
        self.assertEqual(job["attempts"], 1)
        d.wait_job("next.tif", "successful")
        self.assertIn("worker %d: does not end on SIGKILL" % worker, d.log_text())
        self.assertRegex(d.log_text(), "input.io: worker %d hangs .* and cannot be ended" % worker)

    def test_a_shutdown_does_not_wait_for_a_worker_that_outlives_sigkill(self):
        d = self.daemon(stall="60s")
        d.drop("hung.tif", "deaf")
        job = d.wait_job("hung.tif", "running")
        self.hold(d.workers()[0])
        status, seconds = d.stop()
        self.assertEqual(status, 0)
        self.assertLess(seconds, STOPS)
        self.assertTrue((d.root / "work" / job["id"] / "hung.tif").exists())

    def test_cancel_waiting_running_and_deaf_jobs(self):
        d = self.daemon(stall="60s")
        d.drop("runs.tif", "slow 30")
        running = d.wait_job("runs.tif", "running")
        d.drop("waits.tif")
        waiting = d.wait_job("waits.tif", "accepted")
        self.assertEqual(d.call("job.cancel", id=waiting["id"])["status"], "dismissed")
        d.call("job.cancel", id=running["id"][-4:])
        job = d.wait_job("runs.tif", "dismissed")
        self.assertEqual(job["error"]["code"], "job.dismissed")
        self.assertEqual(len(d.files("quarantine")), 4)
        with self.assertRaises(RpcError) as caught:
            d.call("job.cancel", id=job["id"])
        self.assertEqual(caught.exception.code, "job.state")
        d.drop("deaf.tif", "deaf")
        deaf = d.wait_job("deaf.tif", "running")
        d.call("job.cancel", id=deaf["id"])
        d.wait_job("deaf.tif", "dismissed")

    def test_retry_brings_the_input_back(self):
        d = self.daemon()
        d.drop("x.tif", "fail")
        job = d.wait_job("x.tif", "failed")
        (d.root / "quarantine/x.tif").write_text("ok")
        d.call("job.retry", id=job["id"])
        again = d.wait_job("x.tif", "successful")
        self.assertEqual((again["id"], again["attempts"]), (job["id"], 1))
        self.assertEqual(d.files("quarantine"), [])
        with self.assertRaises(RpcError) as caught:
            d.call("job.retry", id=job["id"])
        self.assertEqual(caught.exception.code, "job.state")
        d.drop("gone.tif", "fail")
        job = d.wait_job("gone.tif", "failed")
        (d.root / "quarantine/gone.tif").unlink()
        with self.assertRaises(RpcError) as caught:
            d.call("job.retry", id=job["id"])
        self.assertEqual(caught.exception.code, "input.missing")

    def test_two_files_of_one_scene_never_run_together(self):
        d = self.daemon(parallel=2)
        d.drop("s.tif", "slow 1")
        d.wait_job("s.tif", "running")
        d.drop("s.tif", "slow 1")

        def both_done():
            states = [j["status"] for j in d.jobs()]
            self.assertLessEqual(states.count("running"), 1)
            return states == ["successful"] * 2
        wait_for(both_done)


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
        self.assertTrue(job["device_why"].startswith("once more in a fresh process after device.lost: the GPU failed"), job)
        self.assertIsNone(job["error"])
        self.assertEqual(d.files("quarantine"), [])
        self.assertIn("job %s: runs once more in a fresh process" % job["id"], d.log_text())
        self.assertEqual((self.counted(d, "fresh"), self.counted(d, "cpu")), (1, 0))
        self.assertFalse(os.path.exists("/proc/%d" % warm))
        self.assertEqual(self.temporary(d), [])
        d.drop("y.tif")
        job = d.wait_job("y.tif", "successful")
        self.assertIsNone(job["device_why"])
        self.assertEqual([str(pid) for pid in d.workers()], pids[1:], "the fresh worker stays")

    def test_a_full_device_is_used_by_streams_in_a_fresh_worker(self):
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

    def test_a_cuda_that_is_demanded_gives_way_to_the_cpu_and_that_is_said(self):
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
        trouble = wait_for(lambda: d.trouble("queue"))
        self.assertEqual(trouble["code"], "device.lost")
        job = d.wait_job("x.tif", "successful")
        self.assertEqual(len(self.tries(d, "x")[0]), 6)
        self.assertEqual(job["attempts"], 1)
        self.assertEqual(d.files("quarantine"), [])
        d.drop("y.tif")
        d.wait_job("y.tif", "successful")
        self.assertIsNone(d.trouble("queue"))

    def test_an_error_of_the_input_after_a_lost_device_stands(self):
        d = self.daemon()
        d.drop("x.tif", "device device.lost fail")
        job = d.wait_job("x.tif", "failed")
        self.assertEqual(job["error"]["code"], "input.truncated")
        self.assertEqual(len(self.tries(d, "x")[0]), 2)

    def test_a_device_that_is_demanded_and_not_there_is_waited_for(self):
        d = self.daemon()
        d.drop("x.tif", "device device.missing device.missing")
        self.assertEqual(wait_for(lambda: d.trouble("queue"))["code"], "device.missing")
        job = d.wait_job("x.tif", "successful")
        self.assertEqual((len(self.tries(d, "x")[0]), job["attempts"]), (3, 1))

    def test_progress_starts_over_and_a_cancel_wins(self):
        d = self.daemon(stall="60s")
        d.drop("x.tif", "device device.lost slow 30")
        job = wait_for(lambda: [j for j in d.jobs() if j["device_why"] and j["tiles_total"] == 20])[0]
        self.assertLess(job["tiles_done"], 7)
        self.assertEqual(job["status"], "running")
        d.call("job.cancel", id=job["id"])
        job = d.wait_job("x.tif", "dismissed")
        self.assertEqual(job["error"]["code"], "job.dismissed")
        self.assertEqual(len(self.tries(d, "x")[0]), 2)
        job = d.call("job.retry", id=job["id"])
        self.assertIsNone(job["device_why"])

    def lost_and_held(self, d):
        """A job whose worker said device.lost and does not end, though killed."""
        d.drop("warm.tif")
        d.wait_job("warm.tif", "successful")
        self.hold(d.workers()[0])
        d.drop("x.tif", "device device.lost")
        return wait_for(lambda: [j for j in d.jobs() if j["device_why"]])[0]

    def test_a_cancel_between_two_tries_wins_at_once(self):
        d = self.daemon(stall="1s")
        job = self.lost_and_held(d)
        self.assertEqual((job["status"], job["progress"], job["tiles_done"], job["stage"]), ("running", 0, 0, None))
        d.call("job.cancel", id=job["id"])
        self.assertEqual(d.wait_job("x.tif", "dismissed")["attempts"], 1)
        d.drop("y.tif")
        d.wait_job("y.tif", "successful")
        self.assertNotIn("does not end on SIGKILL", d.log_text(), "it was waited for")
        self.assertEqual(len(self.tries(d, "x")[0]), 1)

    def test_a_lost_worker_that_outlives_sigkill_is_given_up_and_the_job_goes_on(self):
        d = self.daemon(stall="1s")
        self.lost_and_held(d)
        job = d.wait_job("x.tif", "successful")
        self.assertEqual(len(self.tries(d, "x")[0]), 2)
        self.assertEqual(job["attempts"], 1)

    def test_a_shutdown_between_two_tries_puts_the_job_back(self):
        d = self.daemon(stall="60s")
        job = self.lost_and_held(d)
        status, seconds = d.stop()
        self.assertEqual(status, 0)
        self.assertLess(seconds, STOPS)
        d.start()
        self.assertEqual(d.wait_job("x.tif", "successful")["id"], job["id"])

    def test_kill_9_between_two_tries_runs_the_job_again(self):
        d = self.daemon(stall="60s")
        job = self.lost_and_held(d)
        d.stop(signal.SIGKILL)
        d.start()
        again = d.wait_job("x.tif", "successful")
        self.assertEqual((again["id"], again["device_why"]), (job["id"], None))
        self.assertEqual(len(d.jobs()), 2)

    def test_a_cancelled_job_leaves_no_broken_worker_behind(self):
        d = self.daemon(stall="60s")
        d.drop("x.tif", "lost_on_cancel")
        job = d.wait_job("x.tif", "running")
        worker, = d.workers()
        d.call("job.cancel", id=job["id"])
        d.wait_job("x.tif", "dismissed")
        d.drop("y.tif")
        d.wait_job("y.tif", "successful")
        self.assertNotIn(worker, d.workers())


class Restart(Service):
    def test_after_kill_9_old_jobs_are_there_and_running_ones_run_again(self):
        d = self.daemon(parallel=2)
        d.drop("done.tif")
        done = d.wait_job("done.tif", "successful")
        d.drop("a.tif", "slow 4")
        d.drop("b.tif", "slow 4")
        d.wait_job("a.tif", "running")
        d.wait_job("b.tif", "running")
        wait_for(lambda: [f[:2] for f in self.temporary(d)] == [".a", ".b"])
        workers = d.workers()
        d.stop(signal.SIGKILL)
        wait_for(lambda: not any(os.path.exists("/proc/%d" % pid) for pid in workers))
        self.assertEqual(len(self.temporary(d)), 2)
        d.start()
        self.assertEqual(d.call("job.get", id=done["id"])["status"], "successful")
        self.assertEqual(d.wait_job("a.tif", "successful")["attempts"], 2)
        d.wait_job("b.tif", "successful")
        self.assertEqual(self.temporary(d), [])

    def lock_store(self, d):
        other = sqlite3.connect(d.root / "state/jobs.db", isolation_level=None)
        self.addCleanup(other.close)
        other.execute("BEGIN IMMEDIATE")  # nobody else can write now
        return other

    def test_an_end_that_cannot_be_stored_is_shown_and_stored_later(self):
        d = self.daemon()
        d.drop("x.tif", "slow 3")
        job = d.wait_job("x.tif", "running")
        d.drop("waits.tif", "ok")
        waiting = d.wait_job("waits.tif", "accepted")
        other = self.lock_store(d)
        wait_for(lambda: "this is tried again" in d.log_text())
        self.assertEqual(d.call("job.get", id=job["id"])["status"], "successful")
        self.assertTrue((d.root / "work" / job["id"] / "x.tif").exists())
        with self.assertRaises(RpcError):
            d.call("job.cancel", id=waiting["id"])
        self.assertEqual(d.call("job.get", id=waiting["id"])["status"], "accepted")
        with self.assertRaises(RpcError):
            d.call("job.retry", id=job["id"])
        other.execute("ROLLBACK")
        wait_for(lambda: "stored now as successful" in d.log_text())
        self.assertFalse((d.root / "work" / job["id"]).exists())
        d.wait_job("waits.tif", "successful")
        d.stop(signal.SIGKILL)
        d.start()
        self.assertEqual(d.call("job.get", id=job["id"])["attempts"], 1)

    def test_an_end_that_was_never_stored_leaves_the_input_for_the_next_start(self):
        d = self.daemon()
        d.drop("x.tif", "slow 3")
        job = d.wait_job("x.tif", "running")
        other = self.lock_store(d)
        wait_for(lambda: "this is tried again" in d.log_text())
        d.stop(signal.SIGKILL)
        other.execute("ROLLBACK")
        self.assertTrue((d.root / "work" / job["id"] / "x.tif").exists())
        d.start()
        self.assertEqual(d.wait_job("x.tif", "successful")["id"], job["id"])
        self.assertEqual(d.files("work"), ["done", "done/x.tif"])

    def test_a_store_of_an_older_service_is_taken_over(self):
        d = self.daemon()
        d.drop("x.tif")
        before = d.wait_job("x.tif", "successful")
        self.assertEqual(d.stop()[0], 0)
        db = sqlite3.connect(d.root / "state/jobs.db")
        db.executescript("DROP TABLE job_counts; DROP INDEX jobs_by_tail; DROP INDEX jobs_finished;"
                         "DROP TRIGGER jobs_inserted; DROP TRIGGER jobs_deleted; DROP TRIGGER jobs_moved;"
                         "ALTER TABLE jobs DROP COLUMN uid; ALTER TABLE jobs DROP COLUMN identity;"
                         "ALTER TABLE jobs DROP COLUMN device_why; PRAGMA user_version = 1;")
        db.close()
        before["uid"] = None
        for _ in range(2):
            d.start()
            self.assertEqual(d.jobs(), [before])
            self.assertEqual(d.stop()[0], 0)
        self.assertEqual([f for f in d.files("state") if "damaged" in f], [])

    def test_a_damaged_store_is_moved_aside_and_inputs_are_found_again(self):
        d = self.daemon()
        d.drop("x.tif", "slow 20")
        job = d.wait_job("x.tif", "running")
        d.stop(signal.SIGKILL)
        for name in ("jobs.db", "jobs.db-wal"):
            (d.root / "state" / name).write_bytes(b"rubbish" * 3000)
        (d.root / "work" / job["id"] / "x.tif").write_text("ok")
        d.start()
        self.assertEqual(d.wait_job("x.tif", "successful")["id"], job["id"])
        self.assertIn("store was damaged", d.log_text())
        self.assertTrue([f for f in d.files("state") if ".damaged-" in f])

    def test_sigterm_puts_a_long_job_back_and_lets_a_short_one_finish(self):
        d = self.daemon(parallel=2)
        d.drop("long.tif", "slow 60")
        d.drop("short.tif", "slow 1.5")
        d.wait_job("long.tif", "running")
        wait_for(lambda: d.wait_job("short.tif", "running")["progress"] > 20)
        status, seconds = d.stop()
        self.assertEqual(status, 0)
        self.assertLess(seconds, STOPS)
        self.assertFalse((d.root / "s.sock").exists())
        d.start()
        self.assertEqual(d.wait_job("short.tif", "successful")["attempts"], 1)
        self.assertEqual(d.wait_job("long.tif", "running")["attempts"], 1)

    def test_sigterm_ends_within_10_s_when_a_worker_is_deaf(self):
        d = self.daemon(stall="60s")
        d.drop("deaf.tif", "deaf")
        d.wait_job("deaf.tif", "running")
        workers = d.workers()
        status, seconds = d.stop(signal.SIGINT)
        self.assertEqual(status, 0)
        self.assertLess(seconds, STOPS)
        self.assertFalse(any(os.path.exists("/proc/%d" % pid) for pid in workers))

    def test_an_idle_service_stops_at_once(self):
        begun = time.monotonic()
        d = self.daemon()
        started = time.monotonic() - begun  # says how fast this machine is
        status, seconds = d.stop()
        self.assertEqual(status, 0)
        self.assertLess(seconds, 4 + 4 * started)
        self.assertIn("stopped", d.log_text())

    def test_a_second_service_on_the_same_state_is_refused(self):
        d = self.daemon()
        second = run_to_end([BIN / "pushbroomd", "-c", d.config], stderr=subprocess.PIPE, text=True)
        self.assertEqual(second.returncode, 1)
        self.assertIn("another pushbroomd (pid %d)" % d.process.pid, second.stderr)
        self.assertTrue(d.is_up())

    def test_reload_takes_a_good_config_and_refuses_a_bad_one(self):
        d = self.daemon()
        d.write_config(pipeline="other", parallel=3, settle="100ms")
        d.process.send_signal(signal.SIGHUP)
        wait_for(lambda: d.call("service.info")["pipelines"] == ["other"])
        self.assertEqual(d.call("service.info")["parallel_jobs"], 3)
        good = d.config.read_text()
        d.config.write_text(good.replace("parallel_jobs: 3", "parallel_jobs: many").replace("settle:", "setle:"))
        d.process.send_signal(signal.SIGHUP)
        wait_for(lambda: "stays in use" in d.log_text())
        self.assertIn("setle", d.log_text())
        self.assertIn("parallel_jobs", d.log_text())
        d.config.write_text(good.replace("/inbox", "/inbox2"))
        d.process.send_signal(signal.SIGHUP)
        wait_for(lambda: "inbox2 needs a restart" in d.log_text())
        d.drop("x.tif")
        self.assertEqual(d.wait_job("x.tif", "successful")["pipeline"], "other")

    def test_a_stale_socket_is_replaced_and_other_files_are_not(self):
        d = self.daemon()
        d.stop(signal.SIGKILL)
        self.assertTrue((d.root / "s.sock").exists())
        d.start()
        self.assertEqual(os.stat(d.root / "s.sock").st_mode & 0o777, 0o660)
        d.stop()
        (d.root / "s.sock").write_text("precious")
        d.start(wait=False)
        self.assertEqual(d.process.wait(60), 1)
        self.assertEqual((d.root / "s.sock").read_text(), "precious")


class Start(Service):
    def test_words_and_exit_codes_when_it_cannot_start(self):
        d = self.daemon(start=False)
        d.config.write_text("service: [")
        d.start(wait=False)
        self.assertEqual(d.process.wait(60), 2)
        self.assertRegex(d.log_text(), r"config\.yaml:\d+:\d+: ")
        d.write_config()
        (d.root / "products").write_text("a file")
        d.start(wait=False)
        self.assertEqual(d.process.wait(60), 1)
        self.assertIn("products", d.log_text())
        self.assertIn("is not a directory", d.log_text())

    def test_check_and_usage(self):
        d = self.daemon(start=False)
        run = lambda *a: run_to_end([BIN / "pushbroomd", *a], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(run("--check", "-c", str(d.config)).returncode, 0)
        self.assertEqual(run("--check", "-c", "/no/such/file").returncode, 2)
        self.assertEqual(run("--nonsense").returncode, 2)
        self.assertEqual(run("stray").returncode, 2)
        self.assertIn("--config", run("--help").stdout)
        self.assertRegex(run("--version").stdout, r"^pushbroomd \d")

    def test_an_inbox_around_or_inside_another_directory_is_refused(self):
        d = self.daemon(start=False)
        good = d.config.read_text()
        for key, path in (("products", "inbox/p"), ("quarantine", "inbox"), ("inbox", "state/in")):
            old = "%s: %s/%s" % (key, d.root, key)
            self.assertIn(old, good)
            d.config.write_text(good.replace(old, "%s: %s/%s" % (key, d.root, path)))
            d.start(wait=False)
            self.assertEqual(d.process.wait(60), 2)
            check = run_to_end([BIN / "pushbroom", "check-config", d.config], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.assertEqual(check.returncode, 2)
        self.assertIn("service.products lies inside service.inbox", d.log_text())
        self.assertIn("service.inbox lies inside service.state", d.log_text())
        (d.root / "link").symlink_to(d.root / "inbox")  # seen by the file system only
        (d.root / "inbox/p").mkdir(exist_ok=True)
        d.config.write_text(good.replace("%s/products" % d.root, "%s/link/p" % d.root))
        d.start(wait=False)
        self.assertEqual(d.process.wait(60), 2)
        self.assertIn("products (%s/inbox/p) lies inside inbox" % d.root, d.log_text())
        d.config.write_text(good)
        d.start()
        d.config.write_text(good.replace("%s/products" % d.root, "%s/link/p" % d.root))
        d.process.send_signal(signal.SIGHUP)
        wait_for(lambda: "stays in use" in d.log_text())
        d.drop("x.tif")
        d.wait_job("x.tif", "successful")
        self.assertEqual(d.files("inbox/p"), [])

    def test_inbox_and_work_on_two_filesystems_are_refused(self):
        d = self.daemon(start=False)
        if not os.path.isdir("/dev/shm") or os.stat("/dev/shm").st_dev == os.stat(d.root).st_dev:
            self.skipTest("/dev/shm is not there, or is the filesystem of %s too" % d.root)
        inbox = "/dev/shm/pb-test-%d" % os.getpid()
        d.config.write_text(d.config.read_text().replace(str(d.root / "inbox"), inbox))
        try:
            d.start(wait=False)
            self.assertEqual(d.process.wait(60), 1)
        finally:
            subprocess.run(["rm", "-rf", inbox])
        self.assertIn("different filesystems", d.log_text())

    def test_a_worker_that_cannot_start_leaves_the_job_waiting(self):
        d = self.daemon(start=False)
        d.fake = False
        with open(d.log, "ab") as log:
            d.process = subprocess.Popen([str(BIN / "pushbroomd"), "-c", str(d.config), "--worker-command", "/no/such"], stderr=log)
        wait_for(d.is_up)
        d.drop("x.tif")
        d.wait_job("x.tif", "accepted")
        time.sleep(1.5)
        self.assertEqual(d.jobs()[0]["status"], "accepted")
        self.assertEqual(d.jobs()[0]["attempts"], 0)
        self.assertIn("cannot start a worker", d.log_text())
        self.assertEqual(d.stop()[0], 0)


class Systemd(Service):
    def test_systemd_is_told_ready_alive_reloading_and_stopping(self):
        d = self.daemon(start=False)
        path = str(d.root / "notify")
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(listener.close)
        listener.bind(path)
        listener.settimeout(PATIENCE_S)
        said = []

        def until(word):
            while not any(word in text for text in said):
                said.append(listener.recv(4096).decode())
            seen = "\n".join(said)
            said.clear()
            return seen

        d.start(env={"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "400000"})
        self.assertIn("STATUS=0 running, 0 waiting, 0 failed", until("READY=1"))

        def five_beats():
            start = time.monotonic()
            for _ in range(5):
                until("WATCHDOG=1")
            return time.monotonic() - start
        # Some round is in time; which one is up to whatever else the machine does.
        self.assertTrue(any(five_beats() < 5 * 0.4 for _ in range(5)))
        d.process.send_signal(signal.SIGHUP)
        until("RELOADING=1")
        until("READY=1")
        d.process.send_signal(signal.SIGTERM)
        until("STOPPING=1")
        self.assertEqual(d.process.wait(60), 0)

    def test_a_journal_gets_levels_as_prefixes(self):
        d = self.daemon(start=False)
        d.log.touch()
        st = os.stat(d.log)
        d.start(env={"JOURNAL_STREAM": "%d:%d" % (st.st_dev, st.st_ino)})
        self.assertRegex(d.log_text(), r"^<5>pushbroomd ")


if __name__ == "__main__":
    main()
