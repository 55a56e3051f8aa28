#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: threads sanitized slow
"""The real pushbroomd with scripted workers, ended by signals and started again: nothing is lost, nothing is done twice."""
import os
import signal
import sqlite3
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from daemon_kit import BIN, RpcError, wait_for  # noqa: E402
from patience import run_to_end  # noqa: E402
from pbtest import main  # noqa: E402
from service_case import STOPS, Service  # noqa: E402


class Restart(Service):
    def test_kill_9_keeps_old_jobs_and_reruns_running_ones(self):
        d = self.daemon(parallel=2)
        d.drop("done.tif")
        done = d.wait_job("done.tif", "successful")
        d.drop("a.tif", "until go")
        d.drop("b.tif", "until go")
        d.wait_job("a.tif", "running")
        d.wait_job("b.tif", "running")
        wait_for(lambda: [f[:2] for f in self.temporary(d)] == [".a", ".b"])
        workers = d.workers()
        d.stop(signal.SIGKILL)
        wait_for(lambda: not any(os.path.exists("/proc/%d" % pid) for pid in workers))
        self.assertEqual(len(self.temporary(d)), 2)
        (d.root / "go").touch()
        d.start()
        self.assertEqual(d.call("job.get", id=done["id"])["status"], "successful")
        self.assertEqual(d.wait_job("a.tif", "successful")["attempts"], 2)
        d.wait_job("b.tif", "successful")
        self.assertEqual(self.temporary(d), [])

    def test_signal_to_the_group_acts_like_one_to_service(self):
        """^C in a terminal, its end, `kill -- -GROUP`."""
        for number in (signal.SIGTERM, signal.SIGINT):
            d = self.daemon(start=False, fake=False)
            d.prefix = ["setsid"]
            d.start()
            subprocess.run([BIN / "make_scene", "--size", "1500x1500", "--compress", "NONE", d.root / "scene.tif"], check=True)
            os.rename(d.root / "scene.tif", d.root / "inbox/scene.tif")
            wait_for(lambda: [j for j in d.jobs() if j["status"] != "accepted"])
            os.killpg(d.process.pid, signal.SIGHUP)
            wait_for(lambda: "reload" in d.log_text())
            os.killpg(d.process.pid, number)
            self.assertEqual(d.exit_status(), 0)
            self.assertNotIn("its worker ended with", d.log_text())
            self.assertNotIn("trouble", d.log_text())
            self.assertRegex(d.log_text(), "put back into the queue|done in")

    def lock_store(self, d):
        other = sqlite3.connect(d.root / "state/jobs.db", isolation_level=None)
        self.addCleanup(other.close)
        other.execute("BEGIN IMMEDIATE")  # no other process can write now
        return other

    def test_unstorable_end_is_shown_and_stored_later(self):
        d = self.daemon()
        d.drop("x.tif", "until go")
        job = d.wait_job("x.tif", "running")
        d.drop("waits.tif", "ok")
        waiting = d.wait_job("waits.tif", "accepted")
        other = self.lock_store(d)
        (d.root / "go").touch()
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

    def test_end_never_stored_keeps_input_for_next_start(self):
        d = self.daemon()
        d.drop("x.tif", "until go")
        job = d.wait_job("x.tif", "running")
        other = self.lock_store(d)
        (d.root / "go").touch()
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
        db.executescript("DROP VIEW last_event; ALTER TABLE jobs DROP COLUMN bytes; ALTER TABLE jobs DROP COLUMN is_long; DROP TABLE gaps; ALTER TABLE jobs DROP COLUMN needs_gpu; ALTER TABLE jobs DROP COLUMN error_memory; ALTER TABLE jobs DROP COLUMN shunned; ALTER TABLE jobs DROP COLUMN needs; ALTER TABLE jobs DROP COLUMN node; DROP INDEX jobs_running; ALTER TABLE jobs DROP COLUMN session; ALTER TABLE jobs DROP COLUMN epoch; DROP TRIGGER jobs_of_archive; DROP INDEX jobs_by_archive; DROP INDEX jobs_open_scenes; DROP INDEX jobs_finished; ALTER TABLE jobs DROP COLUMN archive; DROP TRIGGER jobs_part; DROP TABLE set_windows; ALTER TABLE jobs DROP COLUMN delivered_ms; ALTER TABLE jobs DROP COLUMN inbox; DROP TABLE set_parts; DROP INDEX jobs_by_set; DROP INDEX jobs_again; ALTER TABLE jobs DROP COLUMN again; ALTER TABLE jobs DROP COLUMN bbox; ALTER TABLE jobs DROP COLUMN datetime; DROP INDEX jobs_of_sets; ALTER TABLE jobs DROP COLUMN set_id; ALTER TABLE jobs DROP COLUMN replaces; DROP TABLE contents; ALTER TABLE jobs DROP COLUMN anyway; DROP TRIGGER companions_kept; ALTER TABLE jobs DROP COLUMN companion; ALTER TABLE jobs DROP COLUMN manifest; DROP INDEX jobs_waiting; ALTER TABLE jobs DROP COLUMN rank; ALTER TABLE jobs DROP COLUMN folder; DROP TABLE job_counts; DROP INDEX jobs_by_tail;"
                         "DROP TRIGGER jobs_inserted; DROP TRIGGER jobs_deleted; DROP TRIGGER jobs_moved;"
                         "ALTER TABLE jobs DROP COLUMN uid; ALTER TABLE jobs DROP COLUMN identity;"
                         "ALTER TABLE jobs DROP COLUMN device_why; DROP TABLE events; DROP TABLE subscribers;"
                         "DELETE FROM sqlite_sequence WHERE name = 'events'; DROP TRIGGER jobs_kept; DROP TRIGGER jobs_unkept; DROP TABLE kept;"
                         "PRAGMA user_version = 1;")
        db.close()
        before["uid"] = None
        for _ in range(2):
            d.start()
            self.assertEqual(d.jobs(), [{**before, "delivered": []}], "older stores do not have what was delivered")
            self.assertEqual(d.stop()[0], 0)
        self.assertEqual([f for f in d.files("state") if "damaged" in f], [])

    def test_damaged_store_is_moved_aside_and_inputs_found(self):
        d = self.daemon()
        d.drop("x.tif", "until never")
        job = d.wait_job("x.tif", "running")
        d.stop(signal.SIGKILL)
        for name in ("jobs.db", "jobs.db-wal"):
            (d.root / "state" / name).write_bytes(b"rubbish" * 3000)
        (d.root / "work" / job["id"] / "x.tif").write_text("ok")
        d.start()
        self.assertEqual(d.wait_job("x.tif", "successful")["id"], job["id"])
        self.assertIn("store was damaged", d.log_text())
        self.assertTrue([f for f in d.files("state") if ".damaged-" in f])

    def stop_at_work(self, d):
        """SIGTERM while two jobs run, of which one is nearly done, and then done: whether the service waited for its end,
        which it does for 5 s."""
        d.drop("long.tif", "until never")
        d.drop("short.tif", "until go 99")
        d.wait_job("long.tif", "running")
        short = d.wait_for(lambda: [j for j in d.jobs() if j["name"] == "short.tif" and j["progress"] > 90])[0]["id"]
        d.process.send_signal(signal.SIGTERM)
        wait_for(lambda: "stopping: signal" in d.log_text())
        (d.root / "go").touch()
        status, seconds = d.stop()
        self.assertEqual(status, 0)
        self.assertLess(seconds, STOPS)
        self.assertFalse((d.root / "s.sock").exists())
        d.start()
        self.assertEqual(d.wait_job("short.tif", "successful")["attempts"], 1)
        self.assertEqual(d.wait_job("long.tif", "running")["attempts"], 1)
        return d.log_text().count("fake worker takes " + short) == 1

    def test_sigterm_requeues_long_job_and_ends_short_one(self):
        self.assertTrue(any(self.stop_at_work(self.daemon(parallel=2)) for _ in range(5)))

    def test_sigterm_ends_within_10_s_despite_deaf_worker(self):
        d = self.daemon(stall="300s")
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
        started = time.monotonic() - begun  # speed of this machine
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

    def test_reload_takes_good_config_and_refuses_bad_one(self):
        d = self.daemon()
        self.assertEqual(d.call("service.info")["publishing_jobs"], 1)  # the default
        d.write_config(pipeline="other", parallel=3, settle="100ms")
        d.change("  parallel_jobs: 3", "  parallel_jobs: 3\n  publishing_jobs: 2")
        d.process.send_signal(signal.SIGHUP)
        wait_for(lambda: d.call("service.info")["pipelines"] == ["other"])
        info = d.call("service.info")
        self.assertEqual((info["parallel_jobs"], info["publishing_jobs"]), (3, 2))
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

    def test_stale_socket_is_replaced_but_no_other_file(self):
        d = self.daemon()
        d.stop(signal.SIGKILL)
        self.assertTrue((d.root / "s.sock").exists())
        d.start()
        self.assertEqual(os.stat(d.root / "s.sock").st_mode & 0o777, 0o660)
        d.stop()
        (d.root / "s.sock").write_text("precious")
        d.start(wait=False)
        self.assertEqual(d.exit_status(), 1)
        self.assertEqual((d.root / "s.sock").read_text(), "precious")


if __name__ == "__main__":
    main(workers=3)
