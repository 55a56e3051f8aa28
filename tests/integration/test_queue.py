#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: threads sanitized
"""Order and limits of jobs in the real pushbroomd with scripted workers: jobs run in order of arrival; short jobs overtake
long ones without starving them; a job has a limit of time."""
import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from daemon_kit import BIN, Daemon, RpcError, wait_for  # noqa: E402
from patience import finish  # noqa: E402
from pbtest import main  # noqa: E402


class Queue(unittest.TestCase):
    def daemon(self, service="", limits="", **settings):
        d = Daemon(**settings)
        self.addCleanup(d.remove)
        text = d.config.read_text().replace("pipelines:", "%spipelines:" % limits, 1)
        d.config.write_text(text.replace("  settle:", service + "  settle:", 1))
        return d.start()

    def job(self, d, name):
        return [j for j in d.jobs() if j["name"] == name][0]

    def started(self, d, name):
        """How often the job was given to a worker."""
        return d.log_text().count("fake worker takes " + self.job(d, name)["id"])

    def test_jobs_start_in_the_order_in_which_they_came(self):
        d = self.daemon()
        d.drop("first.tif", "until go")
        d.wait_job("first.tif", "running")
        for i in range(6):
            d.drop("s%d.tif" % i)
            wait_for(lambda: [j for j in d.jobs() if j["name"] == "s%d.tif" % i])
        (d.root / "go").touch()
        d.wait_for(lambda: len(d.jobs(status="successful")) == 7)
        done = sorted(d.jobs(), key=lambda j: j["finished"])
        self.assertEqual([j["name"] for j in done], ["first.tif"] + ["s%d.tif" % i for i in range(6)])

    def drain(self, d, *options):
        return subprocess.Popen([BIN / "pushbroom", "drain", *options, "--socket", d.root / "s.sock"],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def test_drain_waits_for_runs_and_takes_nothing(self):
        d = self.daemon()
        d.drop("first.tif", "until go")
        d.drop("second.tif")
        d.wait_job("first.tif", "running")
        d.wait_job("second.tif", "accepted")
        drain = self.drain(d)
        wait_for(lambda: d.call("service.info")["draining"])
        d.drop("third.tif")
        wait_for(lambda: d.call("service.info")["inbox_waiting"])
        with self.assertRaisesRegex(RpcError, "takes no job; 'pushbroom drain --off'"):
            d.call("job.submit", input=str(d.root / "inbox/third.tif"))
        with self.assertRaisesRegex(RpcError, "exclude"):
            d.call("service.drain", now=True, off=True)
        self.assertIn("pushbroom_draining 1", d.call("service.metrics")["text"])
        status = subprocess.run([BIN / "pushbroom", "status", "--socket", d.root / "s.sock"], stdout=subprocess.PIPE, text=True, check=True)
        self.assertIn("drains   1 job runs, no other begins", status.stdout)
        self.assertIsNone(drain.poll())
        (d.root / "go").touch()
        text, _ = finish(drain)
        self.assertEqual(drain.returncode, 0, text)
        self.assertRegex(text, "^1 job runs, no other begins\nnothing runs, and no job begins; ")
        self.assertIn("done/first.tif", d.files("work"))
        self.assertEqual({j["name"]: j["status"] for j in d.jobs()}, {"first.tif": "successful", "second.tif": "accepted"})
        self.assertEqual(d.files("inbox"), ["third.tif"])
        text, _ = finish(self.drain(d, "--off"))
        self.assertEqual(text, "jobs and files are taken again\n")
        self.assertEqual(d.wait_idle()["successful"], 3)
        self.assertFalse(d.call("service.info")["draining"])

    def test_drain_now_puts_back_and_a_restart_ends_it(self):
        d = self.daemon()
        d.drop("first.tif", "until go")
        d.wait_job("first.tif", "running")
        text, _ = finish(self.drain(d, "--now"))
        self.assertIn("nothing runs", text)
        self.assertEqual((self.job(d, "first.tif")["status"], self.job(d, "first.tif")["attempts"]), ("accepted", 0))
        (d.root / "go").touch()
        d.stop()
        d.start()
        d.wait_job("first.tif", "successful")

    def shared(self, service="", **settings):
        """A service whose jobs have two cores and 512 MiB together."""
        d = Daemon(parallel=0, **settings)
        self.addCleanup(d.remove)
        d.change("  settle:", service + "  settle:", 1)
        d.change("pipelines:", "compute: {device: cpu, threads: 2, memory: 512MiB}\npipelines:", 1)
        return d.start()

    def computes(self, d, name):
        return [j for j in d.jobs() if j["name"] == name and j["stage"] == "compute"]

    def test_jobs_of_few_tiles_compute_together(self):
        d = self.shared()
        for name in ("a.tif", "b.tif"):
            d.drop(name, "turn 1 1000 until go")
            d.wait_for(lambda: self.computes(d, name))
        d.drop("c.tif", "turn 1 1000 ok")
        d.wait_job("c.tif", "accepted")
        self.assertTrue(self.computes(d, "a.tif") and self.computes(d, "b.tif"))
        self.assertEqual(self.started(d, "c.tif"), 0)
        (d.root / "go").touch()
        d.wait_for(lambda: len(d.jobs(status="successful")) == 3)

    def test_job_of_many_tiles_computes_alone(self):
        d = self.shared(stall="2s")
        d.drop("a.tif", "turn 1 1000 until go")
        d.wait_for(lambda: self.computes(d, "a.tif"))
        d.drop("large.tif", "turn 1000 1000 until go2")
        d.wait_job("large.tif", "running")
        d.drop("z.tif", "turn 1 1000 ok")
        d.wait_job("z.tif", "accepted")
        d.wait_for(lambda: self.job(d, "a.tif")["tiles_done"] > 40)  # 4 s and more: the wait of the large one is no stall
        self.assertEqual(self.job(d, "large.tif")["status"], "running")
        self.assertFalse(self.computes(d, "large.tif"))
        (d.root / "go").touch()
        d.wait_for(lambda: self.computes(d, "large.tif"))
        d.wait_job("a.tif", "successful")
        self.assertEqual(self.started(d, "z.tif"), 0)
        (d.root / "go2").touch()
        d.wait_for(lambda: len(d.jobs(status="successful")) == 3)
        self.assertEqual(self.started(d, "large.tif"), 1)

    def test_jobs_of_few_tiles_share_the_memory(self):
        d = self.shared()
        d.drop("a.tif", "turn 1 1000 until go")
        d.wait_for(lambda: self.computes(d, "a.tif"))
        d.drop("b.tif", "turn 1 536870912 ok")
        d.wait_job("b.tif", "running")
        d.wait_for(lambda: self.started(d, "b.tif"))
        d.wait_for(lambda: self.job(d, "a.tif")["tiles_done"] > 10)
        self.assertEqual(self.job(d, "b.tif")["status"], "running")
        (d.root / "go").touch()
        d.wait_for(lambda: len(d.jobs(status="successful")) == 2)

    def test_waiting_job_is_cancelled(self):
        d = self.shared()
        d.drop("a.tif", "turn 1 1000 until go")
        d.wait_for(lambda: self.computes(d, "a.tif"))
        d.drop("large.tif", "turn 1000 1000 until go")
        d.wait_job("large.tif", "running")
        d.wait_for(lambda: self.started(d, "large.tif"))
        d.call("job.cancel", id=self.job(d, "large.tif")["id"])
        d.wait_job("large.tif", "dismissed")
        d.drop("b.tif", "turn 1 1000 ok")
        (d.root / "go").touch()
        d.wait_job("b.tif", "successful")

    def test_turn_of_an_express_job_is_refused(self):
        d = self.shared(service="  express: 1s\n")
        for name in ("a.tif", "b.tif"):
            d.drop(name, "turn 1 1000 until go")
            d.wait_for(lambda: self.computes(d, name))
        d.drop("c.tif", "turn 1 1000 ok")  # its run has no turn to wait for
        self.assertEqual(d.wait_job("c.tif", "failed")["error"]["code"], "job.crashed")
        self.assertIn("a turn that was not expected", d.log_text())
        (d.root / "go").touch()
        d.wait_for(lambda: len(d.jobs(status="successful")) == 2)

    def test_jobs_with_polygons_plan_one_at_a_time(self):
        d = Daemon(parallel=0)
        self.addCleanup(d.remove)
        fields = '  fields: {input: {match: ["f*.tif"], bands: {R: 1}}, products: [{zones: {zones: fields.geojson}}]}\n'
        d.change("pipelines:\n", "compute: {device: cpu, threads: 4}\npipelines:\n" + fields, 1)
        d.change("  settle:", "  express: 0s\n  settle:", 1)
        (d.root / "fields.geojson").write_text('{"type": "FeatureCollection", "features": []}')
        d.start()
        d.drop("a.tif", "turn 1 1000 ok")
        d.wait_job("a.tif", "successful")
        d.drop("b.tif", "until go")  # it has no plan
        d.wait_for(lambda: self.computes(d, "b.tif"))
        d.drop("c.tif", "turn 1 1000 ok")
        d.wait_job("c.tif", "accepted")
        done = self.job(d, "b.tif")["tiles_done"]
        d.wait_for(lambda: self.job(d, "b.tif")["tiles_done"] > done + 10)
        self.assertEqual(self.started(d, "c.tif"), 0)
        (d.root / "go").touch()
        d.wait_for(lambda: len(d.jobs(status="successful")) == 3)

    def test_express_job_that_stays_uses_everything(self):
        d = self.shared(service="  express: 1s\n")
        for name in ("a.tif", "b.tif"):
            d.drop(name, "turn 1 1000 until go")
            d.wait_for(lambda: self.computes(d, name))
        d.drop("c.tif", "until go-c")
        d.wait_for(lambda: self.computes(d, "c.tif"))
        (d.root / "go").touch()
        d.wait_for(lambda: len(d.jobs(status="successful")) == 2)
        done = self.job(d, "c.tif")["tiles_done"]
        d.wait_for(lambda: self.job(d, "c.tif")["tiles_done"] > done + 40)  # it has become ordinary: a second is enough
        d.change("express: 1s", "express: 0s")  # d would overtake it
        d.process.send_signal(signal.SIGHUP)
        d.wait_for(lambda: "reload:" in d.log_text())
        d.drop("d.tif", "turn 1 536870912 ok")
        d.wait_job("d.tif", "accepted")
        d.wait_for(lambda: self.job(d, "c.tif")["tiles_done"] > done + 60)
        self.assertEqual(self.started(d, "d.tif"), 0)
        (d.root / "go-c").touch()
        d.wait_for(lambda: len(d.jobs(status="successful")) == 4)

    def test_publishing_job_keeps_its_place(self):
        d = self.shared()
        d.drop("a.tif", "turn 1 1000 publishing go-a 5 later")
        d.wait_for(lambda: [j for j in d.jobs() if j["name"] == "a.tif" and j["stage"] == "publish"])
        d.drop("b.tif", "turn 1 1000 publishing go-b")  # in the slot after that of a, and it publishes first
        d.wait_for(lambda: [j for j in d.jobs() if j["name"] == "b.tif" and j["stage"] == "publish"])
        (d.root / "later").touch()
        d.wait_for(lambda: self.job(d, "a.tif")["tiles_done"] == 10)
        d.drop("c.tif", "turn 1 536870912 ok")  # needs the memory of a
        d.wait_job("c.tif", "running")
        d.wait_for(lambda: self.started(d, "c.tif"))
        d.drop("e.tif", "ok")  # its wait gives c time to compute, if it may
        d.wait_job("e.tif", "accepted")
        (d.root / "go-a").touch()  # b keeps its place until c is done
        d.wait_job("c.tif", "successful")
        (d.root / "go-b").touch()
        d.wait_for(lambda: len(d.jobs(status="successful")) == 4)
        self.assertLessEqual(self.job(d, "a.tif")["finished"], self.job(d, "c.tif")["finished"])

    def test_a_higher_priority_goes_first(self):
        d = Daemon()
        self.addCleanup(d.remove)
        text = d.config.read_text()
        urgent = "".join('  %s: {priority: %d, input: {match: ["%s*.tif"], bands: {R: 1}}, products: [statistics: {}]}\n' % row
                         for row in (("urgent", 5, "u"), ("late", -1, "l")))
        d.config.write_text(text.replace("pipelines:\n", "pipelines:\n" + urgent, 1))
        d.start()
        d.drop("first.tif", "until go")
        d.wait_job("first.tif", "running")
        for name in ("l1.tif", "s1.tif", "u1.tif", "l2.tif", "s2.tif", "u2.tif"):
            d.drop(name)
            wait_for(lambda: [j for j in d.jobs() if j["name"] == name])
        (d.root / "go").touch()
        d.wait_for(lambda: len(d.jobs(status="successful")) == 7)
        done = sorted(d.jobs(), key=lambda j: j["finished"])
        self.assertEqual([j["name"][:2] for j in done], ["fi", "u1", "u2", "s1", "s2", "l1", "l2"])

    def test_job_priority_overrides_pipeline_priority(self):
        d = Daemon()
        self.addCleanup(d.remove)
        urgent = '  urgent: {priority: 5, input: {match: ["u*.tif"], bands: {R: 1}}, products: [statistics: {}]}\n'
        d.change("pipelines:\n", "pipelines:\n" + urgent, 1)
        d.start()
        d.drop("first.tif", "until go")
        d.wait_job("first.tif", "running")
        for name, priority in (("s0.tif", 0), ("u0.tif", 0), ("s-3.tif", -3), ("s7.tif", 7), ("u7.tif", 7), ("u-3.tif", -3)):
            (d.root / name).write_text("ok")
            done = subprocess.run([str(BIN / "pushbroom"), "submit", "--socket", str(d.root / "s.sock"), "--priority", str(priority),
                                   str(d.root / name)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            self.assertEqual(done.returncode, 0, done.stdout)
        d.stop(signal.SIGKILL)  # waiting jobs are kept with their priority
        d.start()
        shown = subprocess.run([str(BIN / "pushbroom"), "status", "--socket", str(d.root / "s.sock"), self.job(d, "s7.tif")["id"]],
                               stdout=subprocess.PIPE, text=True).stdout
        self.assertRegex(shown, r"priority +7\n")
        d.wait_job("first.tif", "running")
        (d.root / "go").touch()
        d.wait_for(lambda: len(d.jobs(status="successful")) == 7)
        done = sorted(d.jobs(), key=lambda j: j["finished"])
        self.assertEqual([j["name"][:-4] for j in done if j["name"] != "first.tif"], ["u7", "s7", "u0", "s0", "u-3", "s-3"])
        self.assertEqual(self.job(d, "u-3.tif")["priority"], -3)

    def waits_for_config(self, d, *names):
        for name in names:
            job = wait_for(lambda: [j for j in d.jobs(status="accepted") if j["name"] == name and j["error"]])[0]
            self.assertEqual(job["attempts"], 0)
        self.assertEqual(d.files("quarantine"), [])

    def test_files_unfit_for_the_config_wait_for_another(self):
        """A mistake that only a job finds costs no file; a job of another kind continues meanwhile."""
        d = self.daemon()
        (d.root / "wrong").touch()
        for i in range(3):
            d.drop("a%d.tif" % i, "while wrong pipeline.band")
        self.waits_for_config(d, "a0.tif", "a1.tif", "a2.tif")
        wait_for(lambda: (d.trouble("config") or {}).get("message", "").startswith("the configuration keeps 3 jobs"))
        self.assertEqual((d.trouble("config")["code"], d.trouble("queue")), ("pipeline.band", None))
        runs = [self.started(d, "a%d.tif" % i) for i in range(3)]
        time.sleep(2)
        self.assertEqual(runs, [self.started(d, "a%d.tif" % i) for i in range(3)], "nothing is tried before a reload")
        (d.root / "wrong").unlink()
        d.process.send_signal(signal.SIGHUP)
        for i in range(3):
            self.assertEqual(d.wait_job("a%d.tif" % i, "successful")["attempts"], 1)
        self.assertEqual((d.trouble("config"), d.files("quarantine")), (None, []))

    def test_a_file_of_a_pipeline_that_fits_others_fails(self):
        d = self.daemon()
        d.drop("bad.tif", "fault pipeline.band")
        d.drop("big.tif", "fault plan.memory 1")
        self.waits_for_config(d, "bad.tif", "big.tif")
        d.drop("good.tif")
        d.wait_job("good.tif", "successful")
        self.assertEqual(d.wait_job("bad.tif", "failed")["error"]["code"], "pipeline.band")
        self.assertEqual(d.files("quarantine"), ["bad.tif", "bad.tif.error.json"])
        d.drop("bad2.tif", "fault pipeline.band")
        d.wait_job("bad2.tif", "failed")
        self.assertEqual(d.trouble("config")["code"], "plan.memory", "that others fit says nothing of a bigger one")
        d.stop()
        d.start()  # the configuration may be another one
        d.wait_job("big.tif", "successful")
        self.assertIsNone(d.trouble("config"))

    def test_submitted_file_unfit_for_the_config_fails(self):
        d = self.daemon()
        (d.root / "mine.tif").write_text("fault plan.memory")
        d.call("job.submit", input=str(d.root / "mine.tif"))
        self.assertEqual(d.wait_job("mine.tif", "failed")["error"]["code"], "plan.memory")
        self.assertTrue((d.root / "mine.tif").exists())

    def test_short_jobs_overtake_a_long_one(self):
        d = self.daemon(service="  express: 1s\n")
        d.drop("long.tif", "until go")
        d.wait_job("long.tif", "running")
        for i in range(3):  # one at a time: no other job wants the place of one that the machine makes slow
            d.drop("s%d.tif" % i)
            d.wait_job("s%d.tif" % i, "successful")
        (d.root / "go").touch()
        job = d.wait_job("long.tif", "successful")
        self.assertEqual((job["attempts"], self.started(d, "long.tif")), (1, 1), "it was never interrupted")

    def test_end_of_a_drain_makes_no_express_job_long(self):
        d = self.daemon(service="  express: 1s\n")
        d.drop("long.tif", "until go")
        d.wait_job("long.tif", "running")
        d.drop("s.tif", "deaf")  # its worker ignores the cancel: it ends after the drain
        d.wait_job("s.tif", "running")
        d.call("service.drain", now=True)
        d.call("service.drain", off=True)
        def row():
            with contextlib.closing(sqlite3.connect(f"file:{d.root}/state/jobs.db?mode=ro", uri=True)) as db:
                return db.execute("SELECT epoch, is_long FROM jobs WHERE name = 's.tif'").fetchone()
        self.assertEqual(wait_for(lambda: row()[0] > 1 and row())[1], 0)

    def test_failed_texts_of_pipelines_are_a_trouble(self):
        d = self.daemon()
        d.drop("first.tif", "until go")
        d.wait_job("first.tif", "running")
        with contextlib.closing(sqlite3.connect(d.root / "state/jobs.db", timeout=60)) as db, db:
            db.execute("CREATE TRIGGER no BEFORE UPDATE OF needs ON jobs BEGIN SELECT RAISE(ABORT, 'not now'); END")
        d.change("R: 1", "R: 2")
        d.process.send_signal(signal.SIGHUP)
        self.assertIn("not now", d.wait_trouble("texts")["message"])
        with contextlib.closing(sqlite3.connect(d.root / "state/jobs.db", timeout=60)) as db, db:
            db.execute("DROP TRIGGER no")
        wait_for(lambda: not d.trouble("texts"))
        (d.root / "go").touch()
        d.wait_job("first.tif", "successful")

    def test_long_jobs_after_a_long_one_rejoin_the_queue(self):
        d = self.daemon(service="  express: 1s\n")
        d.drop("a.tif", "until go-a")
        d.wait_job("a.tif", "running")
        d.drop("b.tif", "until go-b")
        d.wait_job("b.tif", "running")
        d.drop("c.tif")  # a short one after both
        wait_for(lambda: "takes longer than service.express" in d.log_text())
        d.wait_job("c.tif", "successful")
        self.assertEqual(self.job(d, "b.tif")["status"], "accepted")
        (d.root / "go-a").touch()
        d.wait_job("a.tif", "successful")
        d.wait_job("b.tif", "running")
        (d.root / "go-b").touch()
        b = d.wait_job("b.tif", "successful")
        self.assertEqual((b["attempts"], self.started(d, "b.tif")), (1, 2), "one try was in vain, none counts")
        self.assertEqual(self.started(d, "a.tif"), 1)

    def test_the_smallest_goes_first_where_short_ones_go(self):
        d = self.daemon(service="  express: 0s\n")
        d.drop("long.tif", "until go")
        d.wait_job("long.tif", "running")
        for name, text in (("big.tif", "ok" + " " * 5000), ("small.tif", "ok")):
            d.drop(name, text)
            d.wait_job(name, "accepted")
        d.config.write_text(d.config.read_text().replace("express: 0s", "express: 1s"))  # both are there when a place opens
        d.process.send_signal(signal.SIGHUP)
        d.wait_for(lambda: self.started(d, "small.tif") + self.started(d, "big.tif") > 0)
        self.assertEqual(self.started(d, "small.tif"), 1)
        (d.root / "go").touch()
        d.wait_for(lambda: len(d.jobs(status="successful")) == 3)

    def test_without_the_express_place_jobs_wait(self):
        d = self.daemon(service="  express: 0s\n")
        d.drop("long.tif", "slow 4")
        d.wait_job("long.tif", "running")
        d.drop("s.tif")
        s, long = d.wait_job("s.tif", "successful"), d.wait_job("long.tif", "successful")
        self.assertLessEqual(long["finished"], s["started"])

    def test_a_job_over_its_time_fails_with_words(self):
        d = self.daemon(limits="limits: {job_time: 2s}\n", stall="300s")
        d.drop("long.tif", "until never")
        d.drop("deaf.tif", "deaf")
        for name in ("long.tif", "deaf.tif"):
            job = d.wait_job(name, "failed")
            self.assertEqual((job["error"]["code"], job["attempts"]), ("input.limit", 1))
            self.assertIn("limits.job_time (2 s)", job["error"]["message"])
        self.assertEqual(d.files("quarantine"), ["deaf.tif", "deaf.tif.error.json", "long.tif", "long.tif.error.json"])


if __name__ == "__main__":
    main(workers=3)
