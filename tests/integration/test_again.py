#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: sanitized
"""`pushbroom again` and job.again: products of done jobs are made again from the archive, over their own. Real workers."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tarfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from daemon_kit import BIN, DaemonCase, RpcError  # noqa: E402
from pbtest import main  # noqa: E402
from test_own_products import ALL, MASKED, NAME, pipeline  # noqa: E402
from test_scenes import small_folder  # noqa: E402

PLAIN = """
  plain:
    input: {match: ["*.tif"], bands: {R: 1}}
    products:
      - statistics: {}
"""
SETS = """
  sets:
    input:
      group: "(?<scene>T[0-9]+)_B0[48].tif"
      files: {R: "*_B04.tif", N: "*_B08.tif"}
      complete: {reopen: 1h}
    steps:
      - math: {bands: {X: "N - R"}}
    products:
      - cog: {bands: [X], type: float32}
"""


class Again(DaemonCase):
    def service(self, *pipelines, start=True, settings="", **more):
        d = self.daemon(fake=False, start=False, **more)
        self.head = d.config.read_text().partition("pipelines:")[0] + settings
        self.configure(d, *(pipelines or (pipeline(exists="version"), PLAIN)))
        (d.root / "made").mkdir()
        return d.start() if start else d

    def configure(self, d, *pipelines):
        d.config.write_text(self.head + "pipelines:" + "".join(pipelines))
        if d.process is not None:
            n = d.log_text().count("reload")
            d.process.send_signal(signal.SIGHUP)
            d.wait_for(lambda: d.log_text().count("reload") > n)

    def deliver(self, d, name=NAME):
        os.rename(small_folder(d.root / "made", name), d.root / "inbox" / name)
        return d.wait_job(name, "successful")

    def archived(self, d, job):
        """The job, once its input is in the archive."""
        return d.wait_for(lambda: (found := d.call("job.get", id=job["id"]))["input"].startswith(str(d.root / "work/done")) and found)

    def done(self, d, job, status="successful"):
        d.wait_for(lambda: d.call("job.get", id=job["id"])["status"] in ("successful", "failed", "dismissed"))
        job = d.call("job.get", id=job["id"])
        self.assertEqual(job["status"], status, job["error"])
        return job

    def manifest(self, d, path=f"{NAME}/s2"):
        return json.loads((d.root / "products" / path / ".pushbroom.json").read_text())

    def cli(self, d, *words, code=0):
        done = subprocess.run([BIN / "pushbroom", *map(str, words), "--socket", str(d.root / "s.sock")], capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def test_done_folder_is_made_by_the_changed_pipeline(self):
        d = self.service()
        first = self.archived(d, self.deliver(d))
        self.configure(d, pipeline(ALL, MASKED, exists="version"), PLAIN)
        second = d.call("job.again", id=first["id"])
        self.assertEqual((second["again_of"], second["priority"], second["input"]), (first["id"], -50, first["input"]))
        self.done(d, second)
        manifest = self.manifest(d)
        self.assertEqual((manifest["job"], len(manifest["input"]["files"])), (second["id"], 3))
        self.assertEqual([p for p in d.files("products") if "~" in p], [])
        self.assertEqual(d.call("job.get", id=first["id"])["input"], first["input"])
        self.assertTrue(pathlib.Path(first["input"]).is_dir())
        third = d.call("job.again", id=second["id"])  # again and again: of the first
        self.assertEqual(third["again_of"], first["id"])
        self.done(d, third)
        self.done(d, d.call("job.again", id=first["id"][-4:]))

    def test_list_has_place_time_and_picture(self):
        d = self.service(pipeline().replace("    output:", """      - quicklook: {bands: [X]}
      - stac: {datetime: "2020-02-19T11:21:11Z"}
    output:"""))
        self.deliver(d)
        job, = d.jobs(fields="brief")
        item = json.loads(next((d.root / "products").rglob("*.stac.json")).read_text())
        self.assertEqual((job["bbox"], job["datetime"]), (item["bbox"], "2020-02-19T11:21:11Z"))
        self.assertTrue(job["preview"].endswith(".png") and os.path.exists(job["preview"]), job["preview"])

    def test_done_file_is_no_duplicate(self):
        d = self.service(settings="  duplicates: {keep: 1d, then: skip}\n")
        shutil.copyfile(small_folder(d.root / "made") / "SCL.tif", d.root / "x.tif")
        os.rename(d.root / "x.tif", d.root / "inbox/x.tif")
        first = self.archived(d, d.wait_job("x.tif", "successful"))
        second = self.done(d, d.call("job.again", id=first["id"]))
        self.assertEqual(self.manifest(d, "x/plain")["job"], second["id"])

    def test_done_archive_is_made_again(self):
        d = self.service()
        folder = small_folder(d.root / "made")
        with tarfile.open(d.root / "x.tar", "w") as tar:
            tar.add(folder, NAME)
        os.rename(d.root / "x.tar", d.root / "inbox" / (NAME + ".tar"))
        first = self.archived(d, d.wait_job(NAME + ".tar", "successful"))
        self.configure(d, pipeline(ALL, MASKED), PLAIN)
        second = self.done(d, d.call("job.again", id=first["id"]))
        self.assertEqual(self.manifest(d)["job"], second["id"])

    def test_submitted_folder_is_made_again_where_it_is(self):
        d = self.service()
        folder = small_folder(d.root / "made")
        first = self.done(d, d.call("job.submit", input=str(folder)))
        second = self.done(d, d.call("job.again", id=first["id"]))
        self.assertEqual(self.manifest(d)["job"], second["id"])
        raw = bytearray((folder / "B08.tif").read_bytes())
        raw[-1] ^= 1
        (folder / "B08.tif").write_bytes(raw)
        third = self.done(d, d.call("job.again", id=second["id"]), "failed")  # nor as another version
        self.assertEqual(third["error"]["code"], "output.exists")
        self.assertIn("'B08.tif' has other content", third["error"]["message"])
        self.assertEqual(self.manifest(d)["job"], second["id"])

    def test_joined_files_are_made_again_together(self):
        d = self.service(SETS)
        made = small_folder(d.root / "made")
        for band in ("B04", "B08"):
            os.rename(made / f"{band}.tif", d.root / f"inbox/T1_{band}.tif")
        first = self.archived(d, d.wait_job("T1", "successful"))
        made = small_folder(d.root / "made", "S2X_b_L2A")
        again = small_folder(d.root / "made", "S2X_c_L2A")
        os.rename(again / "B04.tif", d.root / "inbox/T1_B04.tif")
        d.wait_for(lambda: sum(j["status"] in ("successful", "dismissed") for j in d.jobs()) == 2)
        jobs = [j for j in d.jobs() if j["status"] == "successful"]
        last = self.archived(d, jobs[0])
        second = self.done(d, d.call("job.again", id=last["id"]))
        manifest = self.manifest(d, "T1/sets")
        self.assertEqual(manifest["job"], second["id"])
        self.assertEqual(len([f for f in manifest["input"]["files"] if f["role"] == "pixels"]), 2)
        # and others may still join
        os.rename(made / "B08.tif", d.root / "inbox/T1_B08.tif")
        d.wait_idle()
        self.assertEqual([j["status"] for j in d.jobs() if j["status"] == "failed"], [], d.jobs())

    def test_superseded_job_is_refused(self):
        d = self.service()
        first = self.archived(d, self.deliver(d))
        os.rename(small_folder(d.root / "made", NAME), d.root / "inbox" / NAME)
        d.wait_for(lambda: len([j for j in d.jobs() if j["status"] == "successful"]) == 2)
        last = self.archived(d, d.jobs()[0])
        self.assertNotEqual(last["input"], first["input"])
        with self.assertRaises(RpcError) as caught:
            d.call("job.again", id=first["id"])
        self.assertEqual(caught.exception.code, "job.superseded")
        self.assertIn(last["id"], str(caught.exception))
        self.assertIn(f"after job {first['id']}, from the same files", str(caught.exception))
        said = self.cli(d, "again", "--pipeline", "s2", "--dry-run").stdout
        self.assertIn("1 scene would be made again", said)
        self.assertIn("1 left out, because later jobs made their products", said)
        self.done(d, d.call("job.again", id=last["id"]))

    def test_commands_queue_what_the_archive_has(self):
        d = self.service()
        a, b = (self.archived(d, self.deliver(d, f"S2X_{c}_L2A")) for c in "ab")
        shutil.rmtree(b["input"])
        before = len(d.jobs())
        done = self.cli(d, "again", "--pipeline", "s2", "--since", "1h", "--dry-run", code=1)
        self.assertIn("1 scene would be made again, reading", done.stdout)
        self.assertIn("1 not in the archive any more", done.stdout)
        self.assertIn(f"the archive does not have the input of job {b['id']} any more", done.stderr)
        self.assertEqual(len(d.jobs()), before)
        lines = [json.loads(line) for line in self.cli(d, "again", "--pipeline", "s2", "--json", code=1).stdout.splitlines()]
        made, = [line for line in lines if "error" not in line or line["error"] is None]
        gone, = [line for line in lines if line not in (made,)]
        self.assertEqual((made["again_of"], gone["job"], gone["error"]["code"]), (a["id"], b["id"], "input.gone"))
        self.done(d, made)
        self.assertIn(f"again of   job {a['id']}", self.cli(d, "status", made["id"]).stdout)
        self.assertIn("which JOB?", self.cli(d, "again", code=2).stderr)
        self.cli(d, "again", "--pipeline", "s2", a["id"], code=2)

    def test_second_request_waits_for_the_first(self):
        d = self.service(start=True)
        first = self.archived(d, self.deliver(d))
        for worker in d.workers():
            os.kill(worker, signal.SIGSTOP)
        try:
            second = d.call("job.again", id=first["id"])
            with self.assertRaises(RpcError) as caught:
                d.call("job.again", id=first["id"])
            self.assertEqual(caught.exception.code, "job.state")
            self.assertIn(second["id"], str(caught.exception))
        finally:
            for worker in d.workers():
                os.kill(worker, signal.SIGCONT)
        self.done(d, second)

    def test_failed_job_is_no_done_job(self):
        d = self.service()
        (d.root / "y.tif").write_text("no image")
        os.rename(d.root / "y.tif", d.root / "inbox/y.tif")
        job = d.wait_job("y.tif", "failed")
        with self.assertRaises(RpcError) as caught:
            d.call("job.again", id=job["id"])
        self.assertEqual(caught.exception.code, "job.state")

    def test_kill_leaves_the_archive_and_the_job(self):
        d = self.service()
        first = self.archived(d, self.deliver(d))
        second = d.call("job.again", id=first["id"])
        d.process.kill()
        d.process.wait()
        d.start()
        self.done(d, second)
        self.assertEqual(self.manifest(d)["job"], second["id"])
        self.assertEqual(d.call("job.get", id=first["id"])["input"], first["input"])
        self.assertTrue(pathlib.Path(first["input"]).is_dir())


if __name__ == "__main__":
    main(workers=3)
