#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""service.retention: what pushbroomd removes from its archive and quarantine and what it leaves there, and that it
takes nothing in while there is less free space than min_free."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from daemon_kit import DaemonCase, main, wait_for  # noqa: E402


class Retention(DaemonCase):
    def configure(self, d, retention):
        d.write_config()
        d.config.write_text(d.config.read_text().replace("pipelines:", "  retention: %s\npipelines:" % retention, 1))

    def reload(self, d, retention):
        self.configure(d, retention)
        d.process.send_signal(1)

    def test_what_the_service_put_there_goes_and_what_others_put_there_stays(self):
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

    def test_intake_waits_for_free_space_says_so_and_goes_on(self):
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


if __name__ == "__main__":
    main()
