#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: threads
"""kill -9 between the move of an input and the commit that stores its place: the next start finds the input, so that its job,
retention and a retry have its true path. Each test hangs the sync that follows the rename, and kills there."""
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "proof")]
import control  # noqa: E402
from daemon_kit import BIN, DaemonCase, wait_for  # noqa: E402
from pbtest import SANITIZED, main  # noqa: E402

FOUND = "the service was killed before it stored that"


@unittest.skipIf(SANITIZED, "the shim of failing calls does not go together with a sanitizer")
class Moves(DaemonCase):
    def service(self, change=None, **settings):
        d = self.daemon(start=False, **{"settle": "50ms", **settings})
        if change is not None:
            d.config.write_text(change(d.config.read_text()))
        self.faults = control.Faults(d.root / "faults", BIN / "pbfault.so")
        return d.start(env=self.faults.environment())

    def kill_at(self, d, path, act):
        """Kills the service in the first sync below the path that follows act()."""
        rule = self.faults.rule("fsync", control.HANG, role="daemon", path=str(path))
        act()
        wait_for(lambda: self.faults.counts(rule)[1])
        d.process.kill()
        d.process.wait()

    def paths(self, d):
        """Each path in the store that is no file."""
        with sqlite3.connect(f"file:{d.root}/state/jobs.db?mode=ro", uri=True) as db:
            rows = [row[0] for text in ("input FROM jobs", "companion FROM jobs", "path FROM kept", "path FROM set_parts")
                    for row in db.execute("SELECT " + text)]
        return [path for path in rows if path is not None and not os.path.exists(path)]

    def removes(self, d, path):
        """Retention knows it."""
        text = d.config.read_text()
        d.config.write_text(text.replace("pipelines:", "  retention: {done: 1ms, quarantine: 1ms}\npipelines:", 1))
        d.process.send_signal(1)
        wait_for(lambda: not path.exists())

    def test_archived_file_is_found(self):
        d = self.service()
        self.kill_at(d, "/work/done", lambda: d.drop("x.tif", old=True))
        (d.root / "work/done/y.tif").write_text("another's")
        d.start()
        job = d.wait_job("x.tif", "successful")
        self.assertEqual(job["input"], str(d.root / "work/done/x.tif"))
        self.assertEqual(self.paths(d), [])
        self.assertIn(FOUND, d.log_text())
        self.removes(d, d.root / "work/done/x.tif")
        self.assertTrue((d.root / "work/done/y.tif").exists())

    def test_archived_file_with_another_name_is_found(self):
        d = self.service()
        (d.root / "work/done").mkdir(parents=True, exist_ok=True)
        (d.root / "work/done/x.tif").write_text("another's")
        self.kill_at(d, "/work/done", lambda: d.drop("x.tif", old=True))
        d.start()
        self.assertEqual(d.wait_job("x.tif", "successful")["input"], str(d.root / "work/done/x.tif.1"))

    def test_file_that_somebody_took_is_not_replaced(self):
        d = self.service()
        self.kill_at(d, "/work/done", lambda: d.drop("x.tif", old=True))
        os.unlink(d.root / "work/done/x.tif")
        (d.root / "work/done/x.tif").write_text("another's")
        d.start()
        job = d.wait_job("x.tif", "successful")
        self.assertNotEqual(job["input"], str(d.root / "work/done/x.tif"))
        self.assertNotIn(FOUND, d.log_text())

    def test_quarantined_file_is_found_and_retried(self):
        d = self.service()
        d.drop("x.tif", "until go", old=True)
        job = d.wait_job("x.tif", "running")
        cancel = threading.Thread(target=lambda: self.cancel(d, job["id"]))
        self.kill_at(d, "/work/2", cancel.start)
        cancel.join()
        d.start()
        found = d.wait_job("x.tif", "dismissed")
        self.assertEqual(found["input"], str(d.root / "quarantine/x.tif"))
        self.assertEqual(self.paths(d), [])
        d.call("job.retry", id=job["id"])
        (d.root / "go").touch()
        d.wait_job("x.tif", "successful")
        wait_for(lambda: d.files("quarantine") == [])

    def cancel(self, d, job):
        try:
            d.call("job.cancel", id=job)
        except (OSError, EOFError, ValueError):
            pass  # the service is killed before it answers

    def test_companion_is_found(self):
        d = self.service(lambda text: text.replace("  inbox: ", "  inboxes: [{path: ").replace("/inbox\n", "/inbox, complete: {marker: \"{name}.done\"}}]\n", 1))
        def deliver():
            d.drop("x.tif.done", "")
            d.drop("x.tif", old=True)
        self.kill_at(d, "/work/done", deliver)
        self.assertEqual(d.files("work/done"), ["x.tif.done"])  # it is moved before the input
        d.start()
        wait_for(lambda: d.files("work/done") == ["x.tif", "x.tif.done"])
        wait_for(lambda: self.paths(d) == [])
        self.assertEqual(d.wait_job("x.tif", "successful")["companion"], str(d.root / "work/done/x.tif.done"))
        self.removes(d, d.root / "work/done/x.tif.done")

    def test_folder_is_found(self):
        d = self.service(lambda text: text[:text.index("pipelines:")] + "pipelines:\n  s: {input: {scene: 'F_*', files: {R: a/R.tif}}, products: [statistics: {}]}\n", fake=False)
        made = d.root / ".made"
        (made / "a").mkdir(parents=True)
        subprocess.run([str(BIN / "make_scene"), "--size", "64x64", str(made / "a/R.tif")], check=True, stdout=subprocess.DEVNULL)
        self.kill_at(d, "/work/done", lambda: os.rename(made, d.root / "inbox/F_1"))
        d.start()
        self.assertEqual(d.wait_job("F_1", "successful")["input"], str(d.root / "work/done/F_1"))
        self.assertEqual(self.paths(d), [])
        self.removes(d, d.root / "work/done/F_1")

    def test_duplicate_is_found_and_retried(self):
        d = self.service(lambda text: text.replace("pipelines:", "  duplicates: {by: checksum, keep: 1d, then: skip}\npipelines:", 1), fake=False)
        scene = d.root / "scene.tif"
        subprocess.run([str(BIN / "make_scene"), "--size", "64x64", str(scene)], check=True, stdout=subprocess.DEVNULL)
        def deliver(name):
            shutil.copyfile(scene, d.root / ("." + name))
            os.rename(d.root / ("." + name), d.root / "inbox" / name)
        deliver("x.tif")
        d.wait_job("x.tif", "successful")
        wait_for(lambda: d.files("work/done") == ["x.tif"] and self.paths(d) == [])
        self.kill_at(d, "/work/done", lambda: deliver("y.tif"))
        d.start()
        job = d.wait_job("y.tif", "dismissed")
        self.assertEqual(job["input"], str(d.root / "work/done/y.tif"))
        d.call("job.retry", id=job["id"])
        d.wait_job("y.tif", "successful")
        wait_for(lambda: self.paths(d) == [])

    def test_deleted_input_leaves_nothing_behind(self):
        d = self.service(on_success="delete")
        d.drop("x.tif", old=True)
        d.wait_job("x.tif", "successful")
        wait_for(lambda: not d.files("work/done") and not [f for f in d.files("work") if f[0].isdigit()])
        with sqlite3.connect(f"file:{d.root}/state/jobs.db?mode=ro", uri=True) as db:
            wait_for(lambda: db.execute("SELECT count(*) FROM kept").fetchone() == (0,))


if __name__ == "__main__":
    main(workers=3)
