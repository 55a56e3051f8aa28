#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: sanitized
"""Folders of the inbox that are scenes: when they are taken, what becomes of them, and folders that are submitted. Real workers."""
import json
import os
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from daemon_kit import BIN, DaemonCase  # noqa: E402
from pbtest import main  # noqa: E402
from test_scenes import small_folder  # noqa: E402

PIPELINES = """
pipelines:
  s2:
    input:
      scene: "S2?_*_L2A/"
      files: {R: B04.tif, N: B08.tif, SCL: {match: SCL.tif, resample: nearest}}
      complete: {expire: EXPIRE}
    steps:
      - math: {bands: {X: "N - R + SCL"}}
    products:
      - cog: {bands: [X], type: float32}
  plain:
    products:
      - statistics: {}
"""


class Folders(DaemonCase):
    def service(self, expire="1h", start=True, **settings):
        d = self.daemon(fake=False, start=False, **settings)
        d.set_pipelines(PIPELINES.replace("EXPIRE", expire))
        (d.root / "made").mkdir()
        return d.start() if start else d

    def drop(self, d, name="S2X_a_L2A", without=()):
        folder = small_folder(d.root / "made", name)
        for file in without:
            (folder / file).unlink()
        os.rename(folder, d.root / "inbox" / name)
        return d.root / "inbox" / name

    def settled(self, d):
        """A later file was processed to its end, three times: earlier files that could be taken have been."""
        for i in range(3):
            name = f"probe{time.monotonic_ns()}.tif"
            source = small_folder(d.root / "made", name + ".d") / "SCL.tif"
            os.rename(source, d.root / "inbox" / name)
            d.wait_job(name, "successful")

    def scenes(self, d):
        return [j for j in d.jobs(limit=1000) if not j["name"].startswith("probe")]


class Taking(Folders):
    def test_folder_becomes_one_job_and_is_archived_whole(self):
        d = self.service()
        self.drop(d)
        job = d.wait_job("S2X_a_L2A", "successful")
        self.assertEqual(job["pipeline"], "s2")
        self.assertEqual(d.files("inbox"), [])
        self.assertEqual(d.files("work/done"), ["S2X_a_L2A"] + [f"S2X_a_L2A/{n}.tif" for n in ("B04", "B08", "SCL")])
        manifest = json.loads((d.root / "products/S2X_a_L2A/s2/.pushbroom.json").read_text())
        self.assertEqual(manifest["job"], job["id"])
        self.assertEqual(len(self.scenes(d)), 1)

    def test_on_success_delete_removes_the_folder(self):
        d = self.service(on_success="delete")
        (self.drop(d) / "notes").mkdir()
        d.wait_job("S2X_a_L2A", "successful")
        d.wait_for(lambda: not any("S2X" in f for f in d.files("work") + d.files("inbox")))

    def test_slowly_filled_folder_is_taken_when_complete(self):
        d = self.service()
        folder = d.root / "inbox/S2X_a_L2A"
        made = small_folder(d.root / "made")
        folder.mkdir()
        for name in ("B04.tif", "B08.tif"):
            shutil.copyfile(made / name, folder / name)
        self.settled(d)
        self.assertEqual(self.scenes(d), [])
        with open(folder / "SCL.tif", "wb") as file:
            file.write((made / "SCL.tif").read_bytes()[:100])
            file.flush()
            os.utime(folder / "SCL.tif", (1e9, 1e9))
            self.settled(d)
            self.assertEqual(self.scenes(d), [])
            file.write((made / "SCL.tif").read_bytes()[100:])
        d.wait_job("S2X_a_L2A", "successful")

    def test_incomplete_folder_is_quarantined_with_missing(self):
        d = self.service(expire="1s")
        self.drop(d, without=["SCL.tif"])
        job = d.wait_job("S2X_a_L2A", "failed")
        self.assertEqual(job["error"]["code"], "input.incomplete")
        self.assertIn("1 of 3 files of the scene is missing: band SCL (SCL.tif)", job["error"]["message"])
        d.wait_for(lambda: "S2X_a_L2A.error.json" in d.files("quarantine") and "S2X_a_L2A/B04.tif" in d.files("quarantine"))
        record = json.loads((d.root / "quarantine/S2X_a_L2A.error.json").read_text())
        self.assertEqual(record["code"], "input.incomplete")
        shutil.copyfile(small_folder(d.root / "made") / "SCL.tif", d.root / "quarantine/S2X_a_L2A/SCL.tif")
        d.call("job.retry", id=job["id"])
        d.wait_job("S2X_a_L2A", "successful")
        self.assertFalse(any("S2X" in f for f in d.files("quarantine")))

    def test_other_and_hard_linked_folders_stay(self):
        d = self.service()
        os.rename(small_folder(d.root / "made", "other"), d.root / "inbox/other")
        folder = small_folder(d.root / "made")
        os.link(folder / "SCL.tif", d.root / "made/also")
        os.rename(folder, d.root / "inbox/S2X_a_L2A")
        self.settled(d)
        self.assertEqual(self.scenes(d), [])
        d.wait_for(lambda: "several names (hard links)" in d.log_text() and "inbox: other stays: no pipeline's input.scene fits" in d.log_text())
        (d.root / "made/also").unlink()
        d.wait_job("S2X_a_L2A", "successful")

    def test_two_folders_of_one_name_never_meet(self):
        d = self.service()
        self.drop(d)
        d.wait_job("S2X_a_L2A", "successful")
        folder = small_folder(d.root / "made")
        shutil.copyfile(folder / "B04.tif", folder / "B08.tif")
        os.rename(folder, d.root / "inbox/S2X_a_L2A")
        d.wait_for(lambda: all(j["status"] in ("successful", "failed") for j in self.scenes(d)) and len(self.scenes(d)) == 2)
        failed = d.wait_job("S2X_a_L2A", "failed")
        self.assertEqual(failed["error"]["code"], "output.exists")
        d.wait_for(lambda: "S2X_a_L2A" in d.files("quarantine") and "S2X_a_L2A" in d.files("work/done"))

    def test_folder_claimed_by_a_dead_service_is_adopted(self):
        d = self.service(start=False)
        claim = d.root / "work/20261121-081530-4f2a"
        claim.mkdir(parents=True)
        os.rename(small_folder(d.root / "made"), claim / "S2X_a_L2A")
        d.start()
        self.assertEqual(d.wait_job("S2X_a_L2A", "successful")["id"], "20261121-081530-4f2a")

    def test_a_service_that_is_killed_loses_no_folder(self):
        d = self.service()
        for i in range(6):
            self.drop(d, f"S2X_{i}_L2A")
            time.sleep(0.05 * i)
            d.process.send_signal(signal.SIGKILL)
            d.process.wait()
            d.start()
        d.wait_for(lambda: len([j for j in self.scenes(d) if j["status"] == "successful"]) == 6)
        self.assertEqual(len(self.scenes(d)), 6)

    def test_loose_file_of_a_group_is_not_a_scene(self):
        d = self.service(start=False)
        d.config.write_text(d.config.read_text().replace('scene: "S2?_*_L2A/"', "group: '(?<scene>S2._a)_(B04|B08|SCL).tif'").replace(
            "  plain:\n    products:\n      - statistics: {}\n", ""))
        claim = d.root / "work/20261121-081530-4f2a"
        claim.mkdir(parents=True)
        os.rename(small_folder(d.root / "made") / "B04.tif", claim / "S2X_a_B04.tif")
        d.start()
        error = d.wait_job("S2X_a_B04.tif", "failed")["error"]
        self.assertEqual(error["code"], "input.no_pipeline")
        self.assertIn("one of the files of scene S2X_a (input.group of pipeline s2)", error["message"])

    def test_file_of_a_group_is_no_input_of_a_match(self):
        d = self.service(start=False)
        d.config.write_text(d.config.read_text().replace('scene: "S2?_*_L2A/"', "group: '(?<scene>S2._a)_(B04|B08|SCL).tif'"))
        self.assertIn("  plain:\n", d.config.read_text())
        file = (small_folder(d.root / "made") / "B04.tif").rename(d.root / "made/S2X_a_B04.tif")
        d.start()
        d.call("job.submit", input=str(file))
        error = d.wait_job("S2X_a_B04.tif", "failed")["error"]
        self.assertEqual(error["code"], "input.no_pipeline")
        self.assertIn("one of the files of scene S2X_a (input.group of pipeline s2)", error["message"])


class Submitting(Folders):
    def test_a_folder_is_submitted_and_stays(self):
        d = self.service()
        folder = small_folder(d.root / "made")
        done = subprocess.run([BIN / "pushbroom", "submit", "--socket", d.root / "s.sock", "--wait", f"{folder}/"], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertTrue((folder / "SCL.tif").exists())
        self.assertEqual([j["name"] for j in d.jobs()], ["S2X_a_L2A"])

    def test_folder_that_fits_no_pipeline_is_refused(self):
        d = self.service()
        folder = small_folder(d.root / "made", "other")
        done = subprocess.run([BIN / "pushbroom", "submit", "--socket", d.root / "s.sock", folder], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("no pipeline's input.scene fits the folder other", done.stdout)

    def test_user_gets_nothing_of_unreadable_files(self):
        if os.geteuid() != 0:
            self.skipTest("needs root")
        d = self.service()
        os.chmod(d.root, 0o755)
        folder = small_folder(d.root / "made")
        os.chmod(folder / "SCL.tif", 0o600)
        submit = [BIN / "pushbroom", "submit", "--socket", d.root / "s.sock", "--wait", folder]
        os.chmod(d.root / "s.sock", 0o666)
        done = subprocess.run(submit, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, user=65534, group=65534, extra_groups=[])
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("cannot open SCL.tif: Permission denied", d.wait_job("S2X_a_L2A", "failed")["error"]["message"])
        os.chmod(folder / "SCL.tif", 0o644)
        done = subprocess.run(submit, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, user=65534, group=65534, extra_groups=[])
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_user_gets_nothing_of_unreadable_sidecars(self):
        if os.geteuid() != 0:
            self.skipTest("needs root")
        d = self.service(start=False)
        d.set_pipelines("pipelines:\n  p:\n    input: {match: [\"*.tif\"], metadata: \"{scene}_MTL.txt\","
                        " sidecars: [.msk]}\n    products: [statistics: {}]\n")
        d.start()
        os.chmod(d.root, 0o755)
        folder = small_folder(d.root / "made")
        (folder / "SCL_MTL.txt").write_text("GROUP = SECRET\nEND_GROUP = SECRET\nEND\n")
        shutil.copyfile(folder / "SCL.tif", folder / "SCL.tif.msk")
        os.chmod(d.root / "s.sock", 0o666)
        submit = [BIN / "pushbroom", "submit", "--socket", d.root / "s.sock", "--wait", folder / "SCL.tif"]
        for closed, words in (("SCL_MTL.txt", "cannot open the scene's metadata: Permission denied"), ("SCL.tif.msk", "cannot open SCL.tif.msk: Permission denied")):
            os.chmod(folder / closed, 0o600)
            done = subprocess.run(submit, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, user=65534, group=65534, extra_groups=[])
            self.assertEqual(done.returncode, 1, done.stdout)
            self.assertIn(words, d.jobs()[0]["error"]["message"])
            os.chmod(folder / closed, 0o644)


if __name__ == "__main__":
    main(workers=3)
