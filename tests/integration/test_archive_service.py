#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: sanitized
"""Archives of scenes in a real service: from the inbox and submitted, refused ones, a lack of space, and what is left of
unpacked members when processes are killed: nothing. Real workers."""
import base64
import io
import json
import lzma
import os
import random
import shutil
import signal
import subprocess
import sys
import tarfile
import time
import zipfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from daemon_kit import BIN, DaemonCase, RpcError, wait_for  # noqa: E402
from pbtest import FOR_RACES, main  # noqa: E402
from test_archives import files_of, inside, make_tar, make_zip  # noqa: E402
from test_scene_folders import PIPELINES  # noqa: E402
from test_scenes import small_folder  # noqa: E402


class Archives(DaemonCase):
    def service(self, more="", **settings):
        d = self.daemon(fake=False, start=False, **settings)
        self.more(d, more)
        (d.root / "made").mkdir()
        return d.start()

    def more(self, d, more, reload=False):
        """Keys of the section service."""
        d.write_config()
        d.set_pipelines(more + PIPELINES.replace("EXPIRE", "1h"))
        if reload:
            d.process.send_signal(signal.SIGHUP)

    def drop(self, d, path):
        os.rename(path, d.root / "inbox" / path.name)

    def lasting(self, d, streams):
        """An archive whose members take a while to find: before them is one of text that xz decodes at some 25 MB/s, many
        times the same compressed stream of 1 MB; fewer with the thread sanitizer, with which each takes as long as ten."""
        streams //= 4 if FOR_RACES else 1
        path = d.root / "made/S2X_l_L2A.tar.xz"
        text = base64.b64encode(random.Random(1).randbytes(3 << 18))
        head, rest = tarfile.TarInfo("S2X_l_L2A/text"), io.BytesIO()
        head.size = streams * len(text)
        with tarfile.open(fileobj=rest, mode="w") as out:
            for file, data in inside(small_folder(d.root / "made"), "S2X_l_L2A").items():
                info = tarfile.TarInfo(file)
                info.size = len(data)
                out.addfile(info, io.BytesIO(data))
        parts = [lzma.compress(part, preset=0) for part in (head.tobuf(), text, rest.getvalue())]
        path.write_bytes(parts[0] + streams * parts[1] + parts[2])
        return path

    def unpacking(self, d):
        """The name of an archive that is being unpacked. One that was ready before we looked is followed by another."""
        made = self.lasting(d, 16)
        for i in range(20):
            name = f"S2X_l{i}_L2A.tar.xz"
            shutil.copyfile(made, d.root / "made" / name)
            self.drop(d, d.root / "made" / name)
            found = d.wait_for(lambda: [j for j in d.jobs() if j["name"] == name and (j["stage"] == "unpack" or j["status"] == "successful")])
            if found[0]["status"] == "running":
                return name
        self.fail("never seen while it was unpacked")

    def test_inbox_archives_become_jobs_and_stay_unchanged(self):
        d = self.service()
        members = inside(small_folder(d.root / "made"))
        flat = files_of(small_folder(d.root / "made"))
        self.drop(d, make_zip(d.root / "made/S2X_a_L2A.zip", members, zipfile.ZIP_DEFLATED))
        self.drop(d, make_tar(d.root / "made/S2X_b_L2A.tar", flat))
        for name, scene in (("S2X_a_L2A.zip", "S2X_a_L2A"), ("S2X_b_L2A.tar", "S2X_b_L2A")):
            job = d.wait_job(name, "successful")
            self.assertEqual(job["pipeline"], "s2")
            manifest = json.loads((d.root / "products" / scene / "s2/.pushbroom.json").read_text())
            self.assertEqual((manifest["input"]["name"], manifest["job"]), (name, job["id"]))
            archive = d.call("job.get", id=job["id"])["report"]["archive"]
            self.assertEqual(archive["unpacked_bytes"] > 0, name.endswith("zip"))
        d.wait_for(lambda: d.files("work/done") == ["S2X_a_L2A.zip", "S2X_b_L2A.tar"])
        self.assertEqual(d.files("work"), ["done", "done/S2X_a_L2A.zip", "done/S2X_b_L2A.tar"])
        cogs = [(d.root / f"products/S2X_{x}_L2A/s2/S2X_{x}_L2A.tif").read_bytes() for x in "ab"]
        self.assertEqual(cogs[0], cogs[1])

    def test_hostile_archive_is_quarantined_with_reason(self):
        d = self.service()
        members = inside(small_folder(d.root / "made"))
        self.drop(d, make_zip(d.root / "made/S2X_a_L2A.zip", members | {"../../evil": b"x"}))
        job = d.wait_job("S2X_a_L2A.zip", "failed")
        self.assertEqual(job["error"]["code"], "input.archive_unsafe")
        d.wait_for(lambda: d.files("quarantine") == ["S2X_a_L2A.zip", "S2X_a_L2A.zip.error.json"])
        self.assertEqual([p for p in d.root.rglob("evil*")], [])
        make_zip(d.root / "quarantine/S2X_a_L2A.zip", members)
        d.call("job.retry", id=job["id"])
        d.wait_job("S2X_a_L2A.zip", "successful")

    def test_an_archive_is_submitted_and_stays(self):
        d = self.service()
        path = make_zip(d.root / "made/S2X_a_L2A.zip", inside(small_folder(d.root / "made")))
        submit = [BIN / "pushbroom", "submit", "--socket", d.root / "s.sock", "--wait"]
        done = subprocess.run(submit + [path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertTrue(path.exists())
        other = path.rename(d.root / "made/other.zip")
        done = subprocess.run(submit + [other], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("no pipeline's input.match fits other.zip", done.stdout)
        done = subprocess.run(submit + ["-p", "s2", other], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_no_space_to_unpack_makes_job_wait_with_need(self):
        d = self.service("  retention: {min_free: 1000TiB}\n")
        members = inside(small_folder(d.root / "made"))
        packed = make_zip(d.root / "made/S2X_a_L2A.zip", members, zipfile.ZIP_DEFLATED)
        stored = make_zip(d.root / "made/S2X_b_L2A.zip", members)
        for path in (stored, packed): # submitted: of the inbox nothing is taken
            d.call("job.submit", input=str(path))
        d.wait_job("S2X_b_L2A.zip", "successful")
        job = d.wait_for(lambda: [j for j in d.jobs() if j["name"] == "S2X_a_L2A.zip" and j["status"] == "accepted" and j["error"]])[0]
        self.assertEqual(job["error"]["code"], "output.full")
        self.assertIn("needs 1 MB below " + str(d.root / "work"), job["error"]["message"])
        self.assertIn("service.retention.min_free", job["error"]["message"])
        self.more(d, "", reload=True)
        d.wait_job("S2X_a_L2A.zip", "successful")

    def test_kill_of_all_leaves_no_unpacked_file(self):
        d = self.service()
        name = self.unpacking(d)
        workers = d.workers()
        d.process.send_signal(signal.SIGKILL)
        d.process.wait()
        wait_for(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in workers))
        claimed = [f for f in d.files("work") if not f.startswith("done")]
        self.assertIn(len(claimed), (0, 2), claimed) # 0: it was done just then
        self.assertTrue(all(f.endswith(name) or "/" not in f for f in claimed), claimed)
        d.start()
        d.wait_job(name, "successful")
        d.wait_for(lambda: [f for f in d.files("work") if not f.startswith("done")] == [])

    def test_start_removes_temporary_files_only(self):
        d = self.service()
        d.stop(signal.SIGKILL)
        work = d.root / "work"
        for name in (".spool.a1B2c3", ".spool.a1B2c3d", "spool.a1B2c3", ".spool.linked", ".spool.readme.txt"):
            (work / name).write_text("x")
        os.link(work / ".spool.linked", d.root / "made/linked")
        (work / ".spool.folder").mkdir()
        os.symlink(d.root / "config.yaml", work / ".spool.symbol")
        d.start()
        self.assertEqual(sorted(p.name for p in work.iterdir() if "spool" in p.name),
                         [".spool.a1B2c3d", ".spool.folder", ".spool.linked", ".spool.readme.txt", ".spool.symbol", "spool.a1B2c3"])

    def test_a_job_that_unpacks_is_cancelled(self):
        d = self.service()
        for _ in range(10):
            name = self.unpacking(d)
            job = next(j for j in d.jobs() if j["name"] == name)
            try:
                d.call("job.cancel", id=job["id"])
            except RpcError:
                continue # it is done already
            d.wait_idle()
            job = d.call("job.get", id=job["id"])
            if job["status"] == "dismissed":
                break
        self.assertEqual((job["status"], job["error"]["code"]), ("dismissed", "job.dismissed"))
        d.wait_for(lambda: [f for f in d.files("work") if not f.startswith("done")] == [])

    def test_unpacking_is_no_stall(self):
        """A stall is half of what the same archive has just taken: unpacking takes longer than that, and its reports do not."""
        d = self.service()
        made = self.lasting(d, 32)
        for name in ("S2X_m_L2A.tar.xz", "S2X_n_L2A.tar.xz"):
            shutil.copyfile(made, d.root / "made" / name)
        begun = time.monotonic()
        self.drop(d, d.root / "made/S2X_m_L2A.tar.xz")
        d.wait_job("S2X_m_L2A.tar.xz", "successful")
        d.settings["stall"] = "%dms" % (500 * (time.monotonic() - begun))
        self.more(d, "", reload=True)
        wait_for(lambda: "is in use" in d.log_text())
        self.drop(d, d.root / "made/S2X_n_L2A.tar.xz")
        d.wait_job("S2X_n_L2A.tar.xz", "successful")


if __name__ == "__main__":
    main(workers=3)
