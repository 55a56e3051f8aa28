#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: sanitized
"""service.duplicates in a real service with real workers: skipped inputs and computed ones."""
import os
import shutil
import signal
import sqlite3
import subprocess
import sys

from osgeo import gdal

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from daemon_kit import BIN, DaemonCase, wait_for  # noqa: E402
from patience import finish  # noqa: E402
from pbtest import main  # noqa: E402

gdal.UseExceptions()
DAY_MS = 86400000
OTHER = """  other:
    input:
      match: ["*.tif"]
      bands: {R: 1}
    products:
      - statistics: {}
"""


class Duplicates(DaemonCase):
    def service(self, duplicates="{by: checksum, keep: 90d, then: skip}", more="", **settings):
        d = self.daemon(fake=False, start=False, settle="50ms", **settings)
        text = d.config.read_text().replace("pipelines:", "  duplicates: %s\npipelines:" % duplicates, 1)
        d.config.write_text(text + more)
        subprocess.run([str(BIN / "make_scene"), "--size", "64x64", str(d.root / "scene.tif")], check=True, stdout=subprocess.DEVNULL)
        with open(d.root / "scene.tif", "ab") as file:
            file.write(bytes(16))  # no reader looks at it: one changed byte is another content and the same pixels
        return d.start()

    def deliver(self, d, name, change=None):
        """A copy of the scene into the inbox; change: of its last byte."""
        made = d.root / ("made-" + name)
        shutil.copyfile(d.root / "scene.tif", made)
        if change is not None:
            data = bytearray(made.read_bytes())
            data[-1] ^= change
            made.write_bytes(data)
        os.rename(made, d.root / "inbox" / name)

    def first(self, d):
        self.deliver(d, "first.tif")
        return d.wait_job("first.tif", "successful")

    def error(self, d, job):
        return d.call("job.get", id=job["id"])["error"]

    def test_same_content_of_another_name_is_skipped(self):
        d = self.service()
        first = self.first(d)
        self.deliver(d, "again.tif")
        job = d.wait_job("again.tif", "dismissed")
        self.assertEqual(job["error"]["code"], "input.duplicate")
        for word in (first["id"], str(d.root / "products/first/plain"), "blake3:"):
            self.assertIn(word, job["error"]["message"])
        wait_for(lambda: (d.root / "work/done/again.tif").exists())
        self.assertEqual(d.files("quarantine"), [])
        self.assertFalse((d.root / "products/again").exists())
        wait_for(lambda: d.files("work") == ["done", "done/again.tif", "done/first.tif"])
        client = d.client()
        text = client.call("service.metrics")["text"]
        client.call("job.watch", since=0)
        client.close()
        self.assertIn('pushbroom_quarantined_total{reason="input.duplicate"} 1', text)
        db = sqlite3.connect(d.root / "state/jobs.db")
        kinds = [row[0] for row in db.execute("SELECT kind FROM events WHERE job = ?", (job["id"],))]
        kept = [row[0] for row in db.execute("SELECT path FROM kept")]
        db.close()
        self.assertIn("job.dismissed", kinds)
        self.assertNotIn("input.quarantined", kinds)
        self.assertIn(str(d.root / "work/done/again.tif"), kept)

    def test_done_content_is_known_by_any_checksum_kind(self):
        d = self.service()
        plain = d.config.read_text()
        assert "\n  plain:\n" in plain, plain
        sha256 = plain.replace("\n  plain:\n", "\n  plain:\n    output: {checksum: sha2-256}\n", 1)
        done = {}
        for text, digit, kind in ((sha256, 0, "sha256:"), (plain, 1, "blake3:")):
            self.assertEqual(d.stop()[0], 0)
            d.config.write_text(text)
            d.start()
            # Content that the other pipeline did is known; other content of the same size is computed.
            for known, by in done.items():
                self.deliver(d, "old-%d.tif" % known, change=known)
                job = d.wait_job("old-%d.tif" % known, "dismissed")
                self.assertIn(by, job["error"]["message"])
            self.deliver(d, "new-%d.tif" % digit, change=digit)
            d.wait_job("new-%d.tif" % digit, "successful")
            done[digit] = kind
        self.assertEqual(d.stop()[0], 0)
        d.config.write_text(sha256)
        d.start()
        self.deliver(d, "last.tif", change=1)
        self.assertIn("blake3:", d.wait_job("last.tif", "dismissed")["error"]["message"])
        self.deliver(d, "other.tif", change=2)
        d.wait_job("other.tif", "successful")

    def test_one_other_byte_is_computed(self):
        d = self.service()
        self.first(d)
        self.deliver(d, "near.tif", change=1)
        d.wait_job("near.tif", "successful")

    def test_another_pipeline_computes(self):
        d = self.service(more=OTHER)
        self.first(d)
        made = d.root / "sent.tif"
        shutil.copyfile(d.root / "scene.tif", made)
        d.call("job.submit", input=str(made), pipeline="other")
        d.wait_job("sent.tif", "successful")

    def test_after_its_time_it_is_computed(self):
        d = self.service("{keep: 30d}")
        self.first(d)
        db = sqlite3.connect(d.root / "state/jobs.db", timeout=30)
        self.assertEqual(db.execute("UPDATE contents SET time_ms = time_ms - ?", (29 * DAY_MS,)).rowcount, 1)
        db.commit()
        self.deliver(d, "soon.tif")
        d.wait_job("soon.tif", "dismissed")
        db.execute("UPDATE contents SET time_ms = time_ms - ?", (2 * DAY_MS,))
        db.commit()
        db.close()
        self.deliver(d, "late.tif")
        d.wait_job("late.tif", "successful")

    def test_what_is_too_old_is_forgotten(self):
        d = self.service("{keep: 30d}")
        self.first(d)
        self.assertEqual(d.stop()[0], 0)
        db = sqlite3.connect(d.root / "state/jobs.db", timeout=30)
        db.execute("UPDATE contents SET time_ms = time_ms - ?", (31 * DAY_MS,))
        db.commit()
        d.start()
        self.deliver(d, "next.tif", change=1)
        d.wait_job("next.tif", "successful")
        wait_for(lambda: [row[0] for row in db.execute("SELECT job FROM contents")] == [d.wait_job("next.tif", "successful")["id"]])
        db.close()

    def test_file_read_with_another_is_not_compared(self):
        d = self.service()
        self.assertEqual(d.stop()[0], 0)
        d.change("      bands:", "      sidecars: [.msk]\n      bands:", 1)
        d.start()

        def send(name, status, masked):
            made = d.root / name
            shutil.copyfile(d.root / "scene.tif", made)
            if masked:
                beside = gdal.GetDriverByName("GTiff").Create(str(made) + ".msk", 64, 64, 1, gdal.GDT_Byte)
                beside.SetMetadataItem("INTERNAL_MASK_FLAGS_1", "2")
                beside.GetRasterBand(1).Fill(255)
                del beside
            d.call("job.submit", input=str(made))
            return d.wait_job(name, status)
        send("a.tif", "successful", True)
        send("b.tif", "successful", False)
        send("c.tif", "successful", True)
        send("d.tif", "dismissed", False)

    def test_false_duplicate_of_a_worker_is_not_accepted(self):
        d = self.daemon(start=False, settle="50ms")
        d.change("pipelines:", "  duplicates: {keep: 1d}\npipelines:", 1)
        d.start()
        d.drop("x.tif", "fault input.duplicate")
        job = d.wait_job("x.tif", "failed")
        self.assertEqual((job["error"]["code"], job["attempts"]), ("job.crashed", 2))
        wait_for(lambda: "x.tif" in d.files("quarantine"))

    def test_a_retry_computes(self):
        d = self.service()
        self.first(d)
        self.deliver(d, "again.tif")
        job = d.wait_job("again.tif", "dismissed")
        wait_for(lambda: (d.root / "work/done/again.tif").exists())
        d.call("job.retry", id=job["id"])
        d.wait_job("again.tif", "successful")
        self.assertTrue((d.root / "products/again/plain").is_dir())
        wait_for(lambda: d.files("work") == ["done", "done/again.tif", "done/first.tif"])

    def test_quarantine_keeps_it_there_until_a_retry(self):
        d = self.service("{then: quarantine}")
        self.first(d)
        self.deliver(d, "again.tif")
        job = d.wait_job("again.tif", "failed")
        self.assertEqual(job["error"]["code"], "input.duplicate")
        wait_for(lambda: d.files("quarantine") == ["again.tif", "again.tif.error.json"])
        d.call("job.retry", id=job["id"])
        d.wait_job("again.tif", "successful")
        self.assertEqual(d.files("quarantine"), [])

    def test_removed_products_are_computed_and_known_again(self):
        d = self.service()
        first = self.first(d)
        shutil.rmtree(d.root / "products/first")
        self.deliver(d, "again.tif")
        job = d.wait_job("again.tif", "successful")
        self.assertEqual(job["attempts"], 1)
        self.assertIn("not in " + str(d.root / "products/first/plain"), d.log_text())
        self.deliver(d, "third.tif")
        message = self.error(d, d.wait_job("third.tif", "dismissed"))["message"]
        self.assertIn(job["id"], message)
        self.assertNotIn(first["id"], message)

    def test_a_submitted_file_stays_where_it_is(self):
        d = self.service()
        self.first(d)
        made = d.root / "sent.tif"
        shutil.copyfile(d.root / "scene.tif", made)
        d.call("job.submit", input=str(made))
        job = d.wait_job("sent.tif", "dismissed")
        self.assertEqual(job["error"]["code"], "input.duplicate")
        self.assertTrue(made.exists())
        self.assertEqual(d.files("quarantine"), [])

    def test_on_success_delete_removes_it(self):
        d = self.service(on_success="delete")
        self.first(d)
        self.deliver(d, "again.tif")
        d.wait_job("again.tif", "dismissed")
        wait_for(lambda: d.files("work") == ["done"] or d.files("work") == [])

    def test_without_the_key_nothing_is_compared(self):
        d = self.daemon(fake=False, settle="50ms")
        subprocess.run([str(BIN / "make_scene"), "--size", "64x64", str(d.root / "scene.tif")], check=True, stdout=subprocess.DEVNULL)
        self.first(d)
        self.deliver(d, "again.tif")
        d.wait_job("again.tif", "successful")

    def read_bytes(self, pid):
        try:
            with open("/proc/%d/io" % pid) as text:
                return int(text.readline().split()[1])
        except OSError:
            return 0

    def stop_comparing(self, d):
        """Delivers it until a worker is stopped while it compares; the name then. One that was done before we looked is
        followed by another."""
        for i in range(20):
            before = {pid: self.read_bytes(pid) for pid in d.workers()}
            name = "again-%d.tif" % i
            self.deliver(d, name)
            pid = wait_for(lambda: [p for p in before if self.read_bytes(p) - before[p] > 10 << 20], step=0.002)[0]
            os.kill(pid, signal.SIGSTOP)
            if [j["status"] for j in d.jobs() if j["name"] == name] == ["running"]:
                return name
            os.kill(pid, signal.SIGCONT)
            d.wait_job(name, "dismissed")
        self.fail("no worker was stopped while it compared")

    def test_a_kill_while_it_is_compared_loses_nothing(self):
        d = self.service()
        os.truncate(d.root / "scene.tif", 160 << 20)  # zeros after the pixels: time to be stopped in
        self.first(d)
        name = self.stop_comparing(d)
        self.assertFalse((d.root / "products" / name[:-4]).exists())
        d.process.kill()
        finish(d.process)
        self.assertEqual(len([f for f in d.files("work") if f.endswith("/" + name) and "done" not in f]), 1)
        d.start()
        job = d.wait_job(name, "dismissed")
        self.assertEqual(job["error"]["code"], "input.duplicate")
        wait_for(lambda: (d.root / "work/done" / name).exists())
        self.assertEqual((d.root / "work/done" / name).stat().st_size, 160 << 20)


if __name__ == "__main__":
    main(workers=3)
