#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: threads sanitized slow
"""Permits to publish with real workers: a run whose job was taken elsewhere publishes nothing, and one whose store does not
answer waits with its products ready, until the store answers, or the run is cancelled or put back."""
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from daemon_kit import BIN, wait_for  # noqa: E402
from pbtest import main  # noqa: E402
from service_case import STOPS, Service  # noqa: E402

PIPELINE = """  p:
    input: {match: ["*.tif"], bands: {R: 1}}
    steps: [{math: {bands: {C: "where(R >= 0, 1, 0)"}}}]
    products:
      - zones: {by: C, bands: [R], append: all.csv}
"""
# Acts as a process that recovers SQLite's log and hangs: it has the locks of writers, and the first of the two copies of the
# header in the shared file of the log is not valid. Others can neither read nor write.
RECOVER = """import fcntl, os, sys
file = os.open(sys.argv[1], os.O_RDWR)
fcntl.lockf(file, fcntl.LOCK_EX, 3, 120)
header = os.pread(file, 48, 0)
os.pwrite(file, bytes(48), 0)
print("locked", flush=True)
sys.stdin.read()
os.pwrite(file, header, 0)"""


class Permit(Service):
    def service(self, **settings):
        d = self.daemon(start=False, fake=False, **settings)
        d.set_pipelines("compute: {device: cpu, threads: 1}\npipelines:\n" + PIPELINE)
        return d.start()

    def deliver(self, d, name):
        subprocess.run([BIN / "make_scene", "--size", "64x64", "--compress", "NONE", d.root / name], check=True)
        os.rename(d.root / name, d.root / "inbox" / name)

    def stop_at_start(self, d, name="a.tif"):
        """Delivers a scene to a worker that is stopped; the job, which runs, and the worker."""
        worker, = wait_for(d.workers)
        os.kill(worker, signal.SIGSTOP)
        self.addCleanup(self.proceed, worker)
        self.deliver(d, name)
        return d.wait_job(name, "running"), worker

    def proceed(self, worker):
        try:
            os.kill(worker, signal.SIGCONT)
        except ProcessLookupError:
            pass

    def visible(self, d):
        return [f for f in d.files("products") if not f.startswith(".")]

    def manifest(self, d):
        return json.loads((d.root / "products/a/p/.pushbroom.json").read_text())

    def store(self, d):
        store = sqlite3.connect(d.root / "state/jobs.db", isolation_level=None, timeout=60)
        self.addCleanup(store.close)
        return store

    def break_off(self, d):
        """The store cannot be read or written until the returned process ends."""
        other = subprocess.Popen([sys.executable, "-c", RECOVER, d.root / "state/jobs.db-shm"], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, text=True)
        self.addCleanup(other.stdout.close)
        self.addCleanup(self.unlock, other)
        self.assertEqual(other.stdout.readline(), "locked\n")
        return other

    def unlock(self, other):
        other.stdin.close()
        other.wait()

    def reload(self, d, stall):
        before = d.log_text().count("is in use")
        d.config.write_text(re.sub("stall: .*", "stall: " + stall, d.config.read_text()))
        d.process.send_signal(signal.SIGHUP)
        wait_for(lambda: d.log_text().count("is in use") > before)

    def await_outage(self, d):
        """A run whose products are ready waits, because the store does not answer; its job, worker, and the outage."""
        job, worker = self.stop_at_start(d)
        outage = self.break_off(d)
        os.kill(worker, signal.SIGCONT)
        d.wait_trouble("permits", "job %s has its products ready" % job["id"])
        self.assertEqual(self.visible(d), [])
        self.assertEqual(d.workers(), [worker])
        return job, worker, outage

    def test_job_taken_elsewhere_is_not_published(self):
        d = self.service()
        job, worker = self.stop_at_start(d)
        store = self.store(d)
        store.execute("UPDATE jobs SET epoch = epoch + 1, session = 7 WHERE id = ?", (job["id"],))
        events = store.execute("SELECT count(*) FROM events").fetchone()
        os.kill(worker, signal.SIGCONT)
        wait_for(lambda: "has a later run of it" in d.log_text())
        wait_for(lambda: d.files("products") == [])
        row = store.execute("SELECT status, epoch, session FROM jobs").fetchone()
        self.assertEqual((row, store.execute("SELECT count(*) FROM events").fetchone()), ((1, 2, 7), events))
        self.assertEqual(d.log_text().count("has a later run of it"), 1)
        self.assertNotIn("trouble", d.log_text())
        self.deliver(d, "b.tif")  # the others continue, in the same worker
        d.wait_job("b.tif", "successful")
        self.assertEqual(d.workers(), [worker])
        d.stop()
        store.execute("UPDATE jobs SET session = 9 WHERE id = ?", (job["id"],))
        d.start()  # the other session is over
        d.wait_job("a.tif", "successful")
        self.assertEqual((self.manifest(d)["job"], self.manifest(d)["epoch"]), (job["id"], 3))
        rows = (d.root / "products/all.csv").read_text().splitlines()
        self.assertEqual(len([row for row in rows if row.startswith("a,")]) * 2, len(rows) - 1)

    def test_locked_store_delays_the_end_alone(self):
        d = self.service()
        job, worker = self.stop_at_start(d)
        other = self.store(d)
        other.execute("BEGIN EXCLUSIVE")  # readers do not wait for it
        os.kill(worker, signal.SIGCONT)
        wait_for(lambda: "this is tried again" in d.log_text())
        self.assertEqual(self.manifest(d)["epoch"], 1)
        other.execute("ROLLBACK")
        job = d.wait_job("a.tif", "successful")
        self.assertEqual(job["attempts"], 1)

    def test_run_waits_while_the_store_is_out(self):
        d = self.service()
        job, worker, outage = self.await_outage(d)
        self.reload(d, "1s")
        time.sleep(3)  # longer than the limit, which does not apply
        self.assertEqual(d.workers(), [worker])
        self.reload(d, "300s")
        self.assertEqual(self.visible(d), [])
        self.unlock(outage)
        d.wait_job("a.tif", "successful")
        self.assertEqual(d.workers(), [worker])
        self.assertNotIn("no progress", d.log_text())
        wait_for(lambda: d.trouble("permits") is None)

    def test_run_that_waits_is_cancelled_or_put_back(self):
        d = self.service()
        job, _, outage = self.await_outage(d)
        d.call("job.cancel", id=job["id"])
        wait_for(lambda: d.files("products") == [])
        self.unlock(outage)
        d.wait_job("a.tif", "dismissed")
        d.call("job.retry", id=job["id"])
        d.wait_job("a.tif", "successful")
        self.deliver(d, "b.tif")
        d.wait_job("b.tif", "successful")

    def test_service_stops_while_a_run_waits(self):
        d = self.service()
        job, _, outage = self.await_outage(d)
        status, seconds = d.stop()
        self.assertEqual(status, 0)
        self.assertLess(seconds, STOPS)
        self.assertEqual(d.files("products"), [])
        self.unlock(outage)
        d.start()
        self.assertEqual(d.wait_job("a.tif", "successful")["id"], job["id"])
        self.assertEqual(self.manifest(d)["epoch"], 2)


if __name__ == "__main__":
    main(workers=3)
