#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: threads
"""service.retention: files that pushbroomd removes from its archive and quarantine and files that it leaves there, and that it
takes nothing in while there is less free space than min_free."""
import os
import sqlite3
import subprocess
import sys
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "proof")]
import control  # noqa: E402
from daemon_kit import BIN, DaemonCase, RpcError, wait_for  # noqa: E402
from pbtest import SANITIZED, main  # noqa: E402

YEAR_S = 365 * 86400


class Inputs(DaemonCase):
    def configure(self, d, retention):
        d.write_config()
        d.change("pipelines:", "  retention: %s\npipelines:" % retention, 1)

    def reload(self, d, retention):
        self.configure(d, retention)
        d.process.send_signal(1)


class Retention(Inputs):
    def test_retention_removes_only_files_of_the_service(self):
        d = self.daemon(settle="50ms", on_success="archive")
        done, quarantine = d.root / "work/done", d.root / "quarantine"
        for name, text in (("good.tif", "ok"), ("taken.tif", "ok"), ("bad.tif", "fail"), ("touched.tif", "fail"), ("later.tif", "fail")):
            d.drop(name, text, old=True)
            d.wait_job(name, "successful" if text == "ok" else "failed")
        wait_for(lambda: (done / "taken.tif").exists() and (quarantine / "later.tif").exists())
        (done / "mine.tif").write_text("never a job")
        os.utime(done / "mine.tif", (1e9, 1e9))
        (quarantine / "mine.tif").write_text("never a job")
        (quarantine / "mine.tif.error.json").write_text('{"note": "mine"}')
        os.utime(quarantine / "mine.tif.error.json", (1e9, 1e9))
        outside = d.root / "outside.tif"
        outside.write_text("not here")
        os.unlink(done / "taken.tif")
        os.symlink(outside, done / "taken.tif")
        self.reload(d, "{done: 1ms, quarantine: 1ms}")
        wait_for(lambda: not (done / "good.tif").exists() and not (quarantine / "bad.tif").exists())
        wait_for(lambda: not (quarantine / "later.tif.error.json").exists())
        self.assertTrue((done / "taken.tif").is_symlink())
        self.assertEqual(outside.read_text(), "not here")
        self.assertTrue((done / "mine.tif").exists())
        self.assertEqual(sorted(p.name for p in quarantine.iterdir() if "mine" in p.name), ["mine.tif", "mine.tif.error.json"])
        self.assertIn("retention: removed", d.log_text())

    def test_nothing_is_removed_before_its_time(self):
        d = self.daemon(settle="50ms", on_success="archive")
        d.drop("good.tif", old=True)
        d.drop("bad.tif", "fail", old=True)
        d.wait_job("good.tif", "successful")
        d.wait_job("bad.tif", "failed")
        self.reload(d, "{done: 1h, quarantine: 1h}")
        d.drop("next.tif", old=True)
        d.wait_job("next.tif", "successful")
        self.assertTrue((d.root / "work/done/good.tif").exists() and (d.root / "quarantine/bad.tif").exists())

    def test_intake_waits_for_free_space_and_reports_it(self):
        d = self.daemon(start=False, settle="50ms")
        self.configure(d, "{min_free: 900TiB}")
        d.start()
        d.drop("waits.tif", old=True)
        trouble = wait_for(lambda: d.trouble("intake"))
        self.assertEqual(trouble["code"], "service.space")
        self.assertIn("min_free", trouble["message"])
        self.assertEqual(d.jobs(), [])
        self.reload(d, "{min_free: 1MiB}")
        d.wait_job("waits.tif", "successful")
        wait_for(lambda: not d.trouble("intake"))


class Folders(Inputs):
    """Scenes that are folders, with their files in a sub-folder. B_*: a file is missing: they are put into quarantine."""

    def service(self, retention="  retention: {done: 20h}\n"):
        d = self.daemon(start=False, fake=False, settle="50ms")
        self.pipelines = ("pipelines:\n  s: {input: {scene: '*_*', files: {R: a/R.tif, N: a/N.tif}, complete: {expire: 200ms}}, products: [statistics: {}]}\n")
        d.set_pipelines(retention + self.pipelines)
        return d.start()

    def configure(self, d, retention):
        d.write_config()
        d.set_pipelines("  retention: %s\n" % retention + self.pipelines)

    def deliver(self, d, *names):
        for name in names:
            made = d.root / ("." + name)
            (made / "a").mkdir(parents=True)
            for file in ["R.tif"] + ["N.tif"] * (name[0] == "G"):
                subprocess.run([str(BIN / "make_scene"), "--size", "16x16", str(made / "a" / file)], check=True, stdout=subprocess.DEVNULL)
            (made / "a/link").symlink_to("R.tif")
            os.rename(made, d.root / "inbox" / name)
        for name in names:
            d.wait_job(name, "successful" if name[0] == "G" else "failed")
        wait_for(lambda: all((self.place(d, name) / "a").is_dir() for name in names))
        d.wait_idle()

    def place(self, d, name):
        return d.root / ("work/done" if name[0] == "G" else "quarantine") / name

    def test_files_of_a_user_stay_with_their_folder(self):
        d = self.service()
        names = [kind + what for kind in "GB" for what in ("_added", "_deep", "_empty", "_changed", "_hidden", "_less", "_same")]
        self.deliver(d, *names)
        for kind in "GB":
            (self.place(d, kind + "_added") / "a/notes.txt").write_text("do not lose me")
            (self.place(d, kind + "_deep") / "a/b").mkdir()
            (self.place(d, kind + "_deep") / "a/b/notes.txt").write_text("nor me")
            (self.place(d, kind + "_empty") / "a/mine").mkdir()
            changed = self.place(d, kind + "_changed") / "a/R.tif"
            changed.write_bytes(changed.read_bytes()[::-1])
            hidden = self.place(d, kind + "_hidden") / "a/R.tif"
            before = hidden.stat()
            hidden.write_bytes(hidden.read_bytes()[::-1])
            os.utime(hidden, ns=(before.st_atime_ns, before.st_mtime_ns))
            os.unlink(self.place(d, kind + "_less") / "a/R.tif")
        self.reload(d, "{done: 1ms, quarantine: 1ms}")
        gone = [kind + what for kind in "GB" for what in ("_less", "_same")]
        wait_for(lambda: not any(self.place(d, name).exists() for name in gone))
        for kind in "GB":
            for what, file in (("_added", "a/notes.txt"), ("_deep", "a/b"), ("_empty", "a/mine"), ("_changed", "a/R.tif"), ("_hidden", "a/R.tif")):
                wait_for(lambda: "%s stays: %s in it was not delivered with it, or was changed since" % (self.place(d, kind + what), file) in d.log_text())
                self.assertTrue((self.place(d, kind + what) / "a/R.tif").exists(), kind + what)
        self.assertEqual((self.place(d, "B_deep") / "a/b/notes.txt").read_text(), "nor me")
        self.assertTrue((d.root / "quarantine/B_added.error.json").exists())
        wait_for(lambda: not (d.root / "quarantine/B_same.error.json").exists())
        os.unlink(self.place(d, "B_added") / "a/notes.txt")  # then it is the second delivery
        said = d.log_text().count("B_deep stays")
        self.reload(d, "{done: 1ms, quarantine: 2ms}")
        wait_for(lambda: not self.place(d, "B_added").exists())
        self.assertEqual((said, d.log_text().count("B_deep stays")), (1, 1))

    def test_folder_before_retention_keeps_later_files(self):
        d = self.service(retention="")
        self.deliver(d, "G_added", "G_same", "B_added", "B_same")
        with sqlite3.connect(f"file:{d.root}/state/jobs.db?mode=ro", uri=True) as db:
            wait_for(lambda: db.execute("SELECT count(*) FROM kept WHERE files IS NULL").fetchone() == (2,))  # the store does not grow by lists
        for name in ("G_added", "B_added"):
            (self.place(d, name) / "a/notes.txt").write_text("do not lose me")
            with sqlite3.connect(d.root / "state/jobs.db", timeout=60) as db:
                db.execute("UPDATE kept SET since_ms = since_ms - 120000 WHERE path LIKE '%added'")  # a while ago
        self.reload(d, "{done: 1ms, quarantine: 1ms}")
        wait_for(lambda: not self.place(d, "B_same").exists() and not self.place(d, "G_same").exists())
        for name in ("G_added", "B_added"):
            wait_for(lambda: "%s stays" % self.place(d, name) in d.log_text())
            self.assertEqual((self.place(d, name) / "a/notes.txt").read_text(), "do not lose me")

    def test_drop_leaves_files_of_a_user(self):
        d = self.service()
        self.deliver(d, "B_added", "B_same")
        (self.place(d, "B_added") / "a/notes.txt").write_text("do not lose me")
        for name, stays in (("B_added", True), ("B_same", False)):
            id = d.wait_job(name, "failed")["id"]
            if stays:
                with self.assertRaises(RpcError) as caught:
                    d.call("job.drop", id=id)
                self.assertIn("a/notes.txt in it was not delivered with it", str(caught.exception))
            else:
                d.call("job.drop", id=id)
            self.assertEqual((self.place(d, name) / "a/R.tif").exists(), stays)
            self.assertEqual((d.root / ("quarantine/%s.error.json" % name)).exists(), stays)


@unittest.skipIf(SANITIZED, "the shim of failing calls does not go together with a sanitizer")
class Clock(Inputs):
    """Steps of the wall clock make no input old."""

    def service(self, offset_s):
        d = self.daemon(start=False, settle="50ms")
        self.faults = control.Faults(d.root / "faults", BIN / "pbfault.so")
        self.faults.set_clock(offset_s)
        d.start(env=self.faults.environment())
        for name, text in (("good.tif", "ok"), ("bad.tif", "fail")):
            d.drop(name, text, old=True)
            d.wait_job(name, "successful" if text == "ok" else "failed")
        wait_for(lambda: self.inputs(d) == (True, True))
        return d

    def inputs(self, d):
        return (d.root / "work/done/good.tif").exists(), (d.root / "quarantine/bad.tif").exists()

    def test_inputs_of_1970_stay_when_the_clock_is_set(self):
        d = self.service(60 - time.time())
        self.assertTrue(d.jobs()[0]["finished"].startswith("1970"))
        self.faults.set_clock(0)
        self.reload(d, "{done: 20h, quarantine: 1ms}")
        wait_for(lambda: self.inputs(d) == (True, False))  # due inputs are removed: the archive was looked at
        self.assertNotIn("removed %s/work" % d.root, d.log_text())

    def test_inputs_stay_if_the_clock_was_set_before_start(self):
        d = self.service(0)
        d.stop()
        self.faults.set_clock(50 * YEAR_S)
        self.configure(d, "{done: 1ms, quarantine: 20h}")
        d.start(env=self.faults.environment())
        wait_for(lambda: self.inputs(d) == (False, True))
        self.assertTrue((d.root / "quarantine/bad.tif.error.json").exists())

    def test_steps_to_and_fro_change_no_age(self):
        d = self.service(0)
        for offset_s in (50 * YEAR_S, -10 * YEAR_S, 3 * YEAR_S):
            self.faults.set_clock(offset_s)
            self.reload(d, "{done: 20h, quarantine: 20h}")
            d.drop("probe.tif", "fail", old=True)
            wait_for(lambda: self.is_kept(d, "quarantine/probe.tif"))
            self.reload(d, "{done: 20h, quarantine: 1ms}")
            wait_for(lambda: not (d.root / "quarantine/probe.tif.error.json").exists())
            self.assertEqual(self.inputs(d), (True, False))
        self.reload(d, "{done: 1ms}")
        wait_for(lambda: self.inputs(d) == (False, False))

    def test_time_passes_over_a_restart(self):
        d = self.service(0)
        d.stop()
        self.configure(d, "{done: 1ms, quarantine: 1ms}")
        d.start()
        wait_for(lambda: self.inputs(d) == (False, False))

    def test_record_of_an_unknown_store_counts_from_now(self):
        d = self.service(0)
        d.stop()
        for file in (d.root / "state").glob("jobs.db*"):
            file.unlink()
        self.configure(d, "{quarantine: 20h}")
        d.start()
        wait_for(lambda: self.is_known(d))
        self.assertEqual(self.inputs(d), (True, True))
        self.reload(d, "{quarantine: 1ms}")
        wait_for(lambda: self.inputs(d) == (True, False))

    def is_kept(self, d, place):
        """The service has recorded the age of an input: only such inputs are removed."""
        with sqlite3.connect(f"file:{d.root}/state/jobs.db?mode=ro", uri=True) as db:
            return db.execute("SELECT count(*) FROM kept WHERE path = ?", (str(d.root / place),)).fetchone() == (1,)

    def is_known(self, d):
        with sqlite3.connect(f"file:{d.root}/state/jobs.db?mode=ro", uri=True) as db:
            return db.execute("SELECT count(*) FROM kept").fetchone() == (1,)


if __name__ == "__main__":
    main(workers=3)
