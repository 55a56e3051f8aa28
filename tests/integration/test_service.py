#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: threads slow
"""The real pushbroomd with scripted workers: files arrive, jobs run, fail, are cancelled and retried. Restarts are in
test_restart.py, devices that fail in test_device_tries.py, starting and systemd in test_daemon.py, the socket's manners in
test_status_socket.py; whole runs with real pixels are elsewhere."""
import json
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from daemon_kit import BIN, RpcError, wait_for  # noqa: E402
from patience import run_to_end  # noqa: E402
from pbtest import main  # noqa: E402
from service_case import STOPS, Service  # noqa: E402


class Intake(Service):
    def test_files_before_and_after_start_become_products(self):
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

    def test_names_in_progress_and_non_files_stay(self):
        d = self.daemon()
        inbox = d.root / "inbox"
        for name in (".hidden.tif", "a.tif.part", "b.TMP", "c.inprogress", "d.filepart"):
            (inbox / name).write_text("ok")
        (inbox / "folder.tif").mkdir()
        os.mkfifo(inbox / "pipe.tif")
        os.symlink("/etc/passwd", inbox / "link.tif")
        d.drop("real.tif")
        d.wait_job("real.tif", "successful")
        for i in range(3):  # each is found by another look at the inbox
            d.drop("probe%d.tif" % i)
            d.wait_job("probe%d.tif" % i, "successful")
        self.assertEqual(len(d.files("inbox")), 8)
        self.assertEqual(len(d.jobs()), 4)
        for word in ("folder.tif stays: no pipeline's input.scene fits", "pipe.tif stays: it is a pipe", "link.tif stays: it is a symbolic link"):
            self.assertEqual(d.log_text().count(word), 1, word)

    def test_file_without_a_pipeline_is_quarantined(self):
        d = self.daemon()
        d.drop("notes.txt")
        job = d.wait_job("notes.txt", "failed")
        self.assertEqual(job["error"]["code"], "input.no_pipeline")
        self.assertEqual(d.files("quarantine"), ["notes.txt", "notes.txt.error.json"])

    def test_names_with_odd_bytes_are_cleaned(self):
        d = self.daemon()
        os.rename(self.write(d, b"ok"), os.fsencode(d.root / "inbox") + b"/a\xff\n b.tif")
        d.wait_for(lambda: [j for j in d.jobs() if j["status"] == "successful"])
        self.assertRegex(d.jobs()[0]["name"], r"^a__ b-[0-9a-f]{12}\.tif$")

    def write(self, d, data):
        path = d.root / "elsewhere"
        path.write_bytes(data)
        return path

    def test_same_name_is_a_new_job_and_keeps_old_input(self):
        d = self.daemon()
        for i in range(3):
            d.drop("x.tif")
            d.wait_for(lambda: len(d.jobs(status="successful")) == i + 1)
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
                             ({"input": "/etc"}, "input.no_pipeline"),
                             ({"input": str(good), "pipeline": "nope"}, "input.no_pipeline")):
            with self.assertRaises(RpcError) as caught:
                d.call("job.submit", **params)
            self.assertEqual(caught.exception.code, code)


class Failure(Service):
    def test_unclaimable_file_stays_and_is_taken_later(self):
        d = self.daemon()
        (d.root / "work").rename(d.root / "away")
        d.drop("x.tif", old=True)
        wait_for(lambda: "x.tif stays" in d.log_text())
        time.sleep(2)
        self.assertLess(d.log_text().count("x.tif stays"), 4)
        self.assertEqual(d.files("inbox"), ["x.tif"])
        (d.root / "away").rename(d.root / "work")
        d.wait_job("x.tif", "successful")

    def test_inbox_that_was_recreated_is_watched_again(self):
        d = self.daemon()
        (d.root / "inbox").rmdir()
        wait_for(lambda: "cannot read" in d.log_text())
        said = run_to_end([BIN / "pushbroom", "status"], stdout=subprocess.PIPE, text=True, env={"PUSHBROOM_SOCKET": str(d.root / "s.sock")})
        self.assertRegex(" ".join(said.stdout.split()), r"^trouble system: inbox: cannot read \S+: No such file or directory; "
                         r"trying again every 1 s no jobs yet$")  # and does not suggest a delivery
        (d.root / "inbox").mkdir()
        wait_for(lambda: "is over; it was: inbox: cannot read" in d.log_text())
        d.drop("x.tif")
        d.wait_job("x.tif", "successful")
        self.assertEqual(d.log_text().count("system): inbox: cannot read"), 1)

    def test_failed_job_has_input_and_reason_in_quarantine(self):
        d = self.daemon()
        d.drop("bad.tif", "fail")
        d.drop("good.tif")
        job = d.wait_job("bad.tif", "failed")
        d.wait_job("good.tif", "successful")
        self.assertEqual(job["error"], {"code": "input.truncated", "message": "tile 7 is missing",
                                        "hint": "fetch the file again; part of it is missing"})
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

    def test_worker_with_garbage_or_early_exit_is_crashed(self):
        d = self.daemon(stall="20s")
        names = ("garbage", "long", "quiet_exit", "elsewhere", "other_job")
        for name in names:
            d.drop(name + ".tif", name)
        for name in names:
            self.assertEqual(d.wait_job(name + ".tif", "failed")["error"]["code"], "job.crashed", name)
        for why in ("not where this job's belong", "an event of another job"):
            self.assertIn(why, d.log_text())

    def test_flooding_worker_does_not_delay_the_service(self):
        d = self.daemon(stall="300s", parallel=2)
        d.drop("flood.tif", "flood")
        d.drop("next.tif")
        d.wait_job("next.tif", "successful")
        self.assertEqual(d.wait_job("flood.tif", "failed")["error"]["code"], "job.crashed")
        self.assertIn("too many lines", d.log_text())
        self.assertLess(d.log.stat().st_size, 100000)

    def test_a_job_without_progress_is_ended(self):
        d = self.daemon()
        d.drop("stuck.tif", "deaf")
        d.wait_for(lambda: [j for j in d.jobs() if j["tiles_done"] == 5])
        d.limit_stall("2s")
        job = d.wait_job("stuck.tif", "failed")
        self.assertEqual(job["error"]["code"], "job.stalled")
        self.assertIn("tile 5 of 10", job["error"]["message"])
        d.limit_stall("300s")
        d.drop("next.tif")
        d.wait_job("next.tif", "successful")

    def test_a_worker_that_outlives_sigkill_is_given_up(self):
        d = self.daemon()
        d.drop("hung.tif", "deaf")
        d.wait_for(lambda: [j for j in d.jobs() if j["tiles_done"] == 5])
        worker, = d.workers()
        self.hold(worker)
        d.drop("next.tif")
        d.wait_job("next.tif", "accepted")
        d.limit_stall("10s")
        job = d.wait_job("hung.tif", "failed")
        # Storage that does not answer is not the input's fault; the second worker can be ended, and then it is.
        self.assertEqual(job["error"]["code"], "job.stalled")
        self.assertEqual(job["attempts"], 1)
        d.wait_job("next.tif", "successful")
        self.assertIn("worker %d: does not end on SIGKILL" % worker, d.log_text())
        self.assertRegex(d.log_text(), "input.io: worker %d hangs .* and cannot be ended" % worker)

    def test_shutdown_ignores_worker_that_survives_sigkill(self):
        d = self.daemon(stall="300s")
        d.drop("hung.tif", "deaf")
        job = d.wait_job("hung.tif", "running")
        self.hold(d.workers()[0])
        status, seconds = d.stop()
        self.assertEqual(status, 0)
        self.assertLess(seconds, STOPS)
        self.assertTrue((d.root / "work" / job["id"] / "hung.tif").exists())

    def test_cancel_waiting_running_and_deaf_jobs(self):
        d = self.daemon(stall="300s")
        d.drop("runs.tif", "until never")
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
        d.drop("s.tif", "until go")
        first = d.wait_job("s.tif", "running")["id"]
        d.drop("s.tif")
        second = d.wait_job("s.tif", "accepted")["id"]
        d.drop("other.tif")  # the second worker has nothing else to do
        d.wait_job("other.tif", "successful")
        self.assertEqual([d.call("job.get", id=job)["status"] for job in (first, second)], ["running", "accepted"])
        (d.root / "go").touch()
        d.wait_for(lambda: len(d.jobs(status="successful")) == 3)


class Publishing(Service):
    def publishing(self, d, name):
        return d.wait_for(lambda: [j for j in d.jobs() if j["name"] == name and j["stage"] == "publish"])

    def ended(self, d, n):
        d.wait_for(lambda: len(d.jobs(status="successful")) == n)
        return {job["name"]: job for job in d.jobs()}

    def test_the_next_job_computes_while_one_publishes(self):
        d = self.daemon()  # with one parallel job
        d.drop("a.tif", "publishing go-a")
        self.publishing(d, "a.tif")
        d.drop("b.tif", "publishing go-b")
        self.publishing(d, "b.tif")
        self.assertEqual(d.wait_job("a.tif", "running")["stage"], "publish")
        d.drop("c.tif")  # one job makes room, not two
        d.wait_job("c.tif", "accepted")
        (d.root / "go-b").touch()
        jobs = self.ended(d, 2)
        self.assertEqual(jobs["a.tif"]["status"], "running")
        self.assertGreaterEqual(jobs["c.tif"]["started"], jobs["b.tif"]["finished"])
        (d.root / "go-a").touch()
        self.ended(d, 3)

    def test_no_job_starts_beside_one_that_lacks_tiles(self):
        d = self.daemon()
        d.drop("a.tif", "publishing go-a 5")  # 5 of its 10 tiles are computed
        self.publishing(d, "a.tif")
        d.drop("b.tif")
        d.wait_job("b.tif", "accepted")
        (d.root / "go-a").touch()
        jobs = self.ended(d, 2)
        self.assertGreaterEqual(jobs["b.tif"]["started"], jobs["a.tif"]["finished"])

    def test_no_job_starts_beside_without_publishing_jobs(self):
        for key in ("publishing_jobs: 0", "duplicates: {by: checksum, keep: 90d, then: skip}"):
            d = self.daemon(start=False)
            d.change("  parallel_jobs: 1", f"  parallel_jobs: 1\n  {key}")
            d.start()
            self.assertEqual(d.call("service.info")["publishing_jobs"], 0, key)
            d.drop("a.tif", "publishing go-a")
            self.publishing(d, "a.tif")
            d.drop("b.tif")
            d.wait_job("b.tif", "accepted")
            (d.root / "go-a").touch()
            jobs = self.ended(d, 2)
            self.assertGreaterEqual(jobs["b.tif"]["started"], jobs["a.tif"]["finished"], key)


if __name__ == "__main__":
    main(workers=3)
