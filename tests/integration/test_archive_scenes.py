#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: sanitized
"""Archives of several scenes in a real service: a job of each scene and one of the archive, whose input is one file. Real workers."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import sums  # noqa: E402
from daemon_kit import BIN, DaemonCase, RpcError, wait_for  # noqa: E402
from pbtest import main  # noqa: E402
from test_archives import ODD_NAMES, files_of, inside, make_odd_zip, make_zip, with_group  # noqa: E402
from test_scene_folders import PIPELINES  # noqa: E402
from test_scenes import small_folder  # noqa: E402

A, B, ARCHIVE = "S2X_a_L2A", "S2X_b_L2A", "order_1.zip"
TEXT = PIPELINES.replace("EXPIRE", "1h").replace('scene: "S2?_*_L2A/"', 'scene: "S2?_*_L2A/"\n      archives: ["order_*.zip"]')


class ArchiveScenes(DaemonCase):
    def service(self, more="", text=TEXT, **settings):
        d = self.daemon(fake=False, start=False, **settings)
        d.set_pipelines(more + text)
        (d.root / "made").mkdir()
        return d.start()

    def make(self, d, name=ARCHIVE, without=()):
        """A ZIP of two scenes, without these files."""
        files = inside(small_folder(d.root / "made"), A) | inside(small_folder(d.root / "made"), B)
        return make_zip(d.root / "made" / name, {n: data for n, data in files.items() if n not in without})

    def deliver(self, d, **what):
        path = self.make(d, **what)
        os.rename(path, d.root / "inbox" / path.name)

    def ended(self, d, status, name=ARCHIVE):
        """The job of the archive, and those of its scenes by their names, when the input is at its place."""
        def found():
            jobs = [j for j in d.jobs(limit=1000) if j["name"] == name]
            archives = [j for j in jobs if j["archive"] is None]
            over = archives and all(j["status"] not in ("accepted", "running") for j in jobs)
            # a long list is read in steps, between which the rows of an archive may change
            moved = all("/work/2" not in (j["input"] or "") for j in jobs if j["again_of"] is None)
            return over and moved and jobs
        jobs = d.wait_for(found)
        archive, = [j for j in jobs if j["archive"] is None]
        self.assertEqual(archive["status"], status or archive["status"], archive["error"])
        scenes = {j["scene"]: j for j in jobs if j["archive"] is not None and j["again_of"] is None}
        self.assertEqual({j["archive"] for j in scenes.values()}, {archive["id"]})
        self.assertEqual({j["input"] for j in scenes.values()}, {archive["input"]})
        return d.call("job.get", id=archive["id"]), scenes

    def maker(self, d, scene):
        return json.loads((d.root / "products" / scene / "s2/.pushbroom.json").read_text())["job"]

    def cli(self, d, *words, code=0):
        done = subprocess.run([BIN / "pushbroom", *map(str, words), "--socket", str(d.root / "s.sock")], capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def test_archive_ends_once(self):
        """Its last scene and the queue find its end at the same time."""
        d = self.service(parallel=3)
        made = self.make(d)
        names = ["order_%d.zip" % i for i in range(24)]
        for name in names:
            shutil.copy(made, d.root / name)
            os.rename(d.root / name, d.root / "inbox" / name)
        for name in names:
            archive, _ = self.ended(d, "successful", name)
            self.assertTrue(os.path.exists(archive["input"]), archive)
        d.stop()
        self.assertEqual(sorted(re.findall(r"all scenes in (\S+) are done", d.log_text())), sorted(names))

    def test_each_scene_is_a_job_with_products(self):
        d = self.service(text=with_group(PIPELINES.replace("EXPIRE", "1h"), "S2._.+?"))
        path = make_odd_zip(d.root / "made/S2X_many.zip", files_of(small_folder(d.root / "made")))
        os.rename(path, d.root / "inbox" / path.name)
        archive, scenes = self.ended(d, "successful", path.name)
        self.assertEqual(sorted(scenes), sorted(ODD_NAMES))
        self.assertEqual([(s["scene"], s["job"], s["status"]) for s in archive["report"]["scenes"]],
                         [(s["scene"], scenes[s["scene"]]["id"], "successful") for s in archive["report"]["scenes"]])
        self.assertEqual((archive["stage"], archive["products"], archive["attempts"]), ("scenes", [], 1))
        cogs = set()
        for name, job in scenes.items():
            self.assertEqual((self.maker(d, name), job["status"], job["attempts"]), (job["id"], "successful", 1))
            cogs.add(next((d.root / "products" / name / "s2").glob("*.tif")).read_bytes())
        self.assertEqual(len(cogs), 1)
        self.assertEqual((d.files("work"), archive["input"]), (["done", "done/S2X_many.zip"], str(d.root / "work/done/S2X_many.zip")))
        self.assertEqual(d.files("quarantine"), [])
        said = self.cli(d, "status", archive["id"])
        self.assertIn(f"job {scenes[ODD_NAMES[0]]['id']}, successful", said)

    def test_scene_that_fails_is_computed_alone_by_a_retry(self):
        d = self.service()
        self.deliver(d, without=[f"{B}/B08.tif"])
        archive, scenes = self.ended(d, "failed")
        self.assertEqual((scenes[A]["status"], scenes[B]["status"], scenes[B]["error"]["code"]), ("successful", "failed", "input.incomplete"))
        self.assertEqual(archive["error"]["code"], "input.scenes")
        self.assertEqual(archive["error"]["message"], f"1 of 2 scenes failed: {B} (input.incomplete)")
        self.assertEqual(d.files("quarantine"), [ARCHIVE, ARCHIVE + ".error.json"])
        self.assertEqual(json.loads((d.root / "quarantine" / (ARCHIVE + ".error.json")).read_text())["job"], archive["id"])
        before = (d.root / "products" / A / "s2").stat()
        for method in ("job.retry", "job.drop"):
            with self.assertRaises(RpcError) as refused:
                d.call(method, id=scenes[B]["id"])
            self.assertIn(archive["id"], str(refused.exception))
        shutil.move(self.make(d), d.root / "quarantine" / ARCHIVE)
        d.call("job.retry", id=archive["id"])
        again, made = self.ended(d, "successful")
        self.assertEqual((again["id"], {s: j["id"] for s, j in made.items()}), (archive["id"], {s: j["id"] for s, j in scenes.items()}))
        self.assertEqual((d.root / "products" / A / "s2").stat().st_ino, before.st_ino)
        self.assertEqual((made[A]["finished"], self.maker(d, B)), (scenes[A]["finished"], scenes[B]["id"]))
        self.assertEqual((d.files("quarantine"), d.files("work")), ([], ["done", "done/" + ARCHIVE]))

    def test_scenes_of_a_known_archive_are_duplicates(self):
        d = self.service("  duplicates: {keep: 1d, then: skip}\n")
        self.deliver(d)
        self.ended(d, "successful")
        makers = [self.maker(d, s) for s in (A, B)]
        shutil.copy(d.root / "work/done" / ARCHIVE, d.root / "made/order_2.zip")
        os.rename(d.root / "made/order_2.zip", d.root / "inbox/order_2.zip")
        archive, scenes = self.ended(d, "successful", "order_2.zip")
        self.assertEqual({j["error"]["code"] for j in scenes.values()}, {"input.duplicate"})
        self.assertEqual([s["code"] for s in archive["report"]["scenes"]], ["input.duplicate"] * 2)
        self.assertEqual([self.maker(d, s) for s in (A, B)], makers)
        self.assertEqual(d.files("work/done"), [ARCHIVE, "order_2.zip"])
        with self.assertRaises(RpcError) as refused:
            d.call("job.retry", id=scenes[A]["id"])
        self.assertIn(f"use job {archive['id']}", str(refused.exception))
        d.call("job.retry", id=archive["id"])
        archive, made = self.ended(d, "successful", "order_2.zip")
        self.assertEqual({s: (j["id"], j["status"]) for s, j in made.items()}, {s: (scenes[s]["id"], "successful") for s in (A, B)})
        self.assertEqual([self.maker(d, s) for s in (A, B)], [scenes[s]["id"] for s in (A, B)])
        self.assertEqual(d.files("work"), ["done", "done/" + ARCHIVE, "done/order_2.zip"])
        with self.assertRaises(RpcError) as refused:
            d.call("job.retry", id=archive["id"])
        self.assertIn("all scenes", str(refused.exception))

    def test_submitted_archive_stays_in_place(self):
        d = self.service()
        path = self.make(d)
        self.cli(d, "submit", "--wait", path)
        archive, scenes = self.ended(d, "successful")
        self.assertEqual((archive["input"], len(scenes)), (str(path), 2))
        self.assertEqual((d.files("work"), d.files("quarantine")), (["done"], []))
        shutil.rmtree(d.root / "products")
        broken = self.make(d, name="order_3.zip", without=[f"{A}/SCL.tif"])
        said = self.cli(d, "submit", "--wait", broken, code=1)
        self.assertIn("1 of 2 scenes failed", said)
        self.assertTrue(broken.exists())
        _, scenes = self.ended(d, "failed", "order_3.zip")
        self.cli(d, "again", scenes[B]["id"])
        d.wait_for(lambda: [j for j in d.jobs(limit=1000) if j["again_of"] == scenes[B]["id"] and j["status"] == "successful"])

    def test_put_waits_for_the_archive(self):
        d = self.service()
        said = self.cli(d, "put", "--wait", self.make(d, without=[f"{B}/B04.tif"]), code=1)
        self.assertIn("1 of 2 scenes failed", said)

    def test_commands_for_all_failed_jobs_take_the_archive(self):
        d = self.service()
        self.deliver(d, without=[f"{B}/B04.tif"])
        first, _ = self.ended(d, "failed")
        self.cli(d, "retry", "--failed")
        archive, scenes = self.ended(d, "failed")
        self.assertNotEqual(archive["finished"], None)
        self.assertEqual((archive["id"], scenes[A]["attempts"], scenes[B]["status"]), (first["id"], 1, "failed"))
        self.assertEqual([len(self.cli(d, "quarantine", "list", "--json").split("\n")), self.cli(d, "quarantine", "list").count(ARCHIVE)], [2, 1])
        self.cli(d, "quarantine", "drop", "--failed")
        self.assertEqual({j["scene"]: j["status"] for j in d.jobs(limit=1000)}, {"order_1": "dismissed", A: "successful", B: "dismissed"})
        self.assertEqual(d.files("quarantine"), [])

    def test_scene_is_made_again_from_the_archived_file(self):
        d = self.service()
        self.deliver(d)
        archive, scenes = self.ended(d, "successful")
        with self.assertRaises(RpcError) as refused:
            d.call("job.again", id=archive["id"])
        self.assertIn("lists the jobs of its scenes", str(refused.exception))
        self.assertIn("2 scenes queued", self.cli(d, "again", "--pipeline", "s2"))
        d.wait_idle()
        again = {j["scene"]: j for j in d.jobs(limit=1000) if j["again_of"] is not None}
        self.assertEqual({s: (j["status"], j["again_of"]) for s, j in again.items()}, {s: ("successful", scenes[s]["id"]) for s in (A, B)})
        self.assertEqual([self.maker(d, s) for s in (A, B)], [again[s]["id"] for s in (A, B)])
        self.assertEqual((d.files("work/done"), d.files("quarantine")), ([ARCHIVE], []))

    def test_scene_made_again_is_never_several(self):
        """The archive had one scene when its job was successful; then the pipeline takes both."""
        d = self.service(text=TEXT.replace("S2?_*_L2A/", "S2?_a_L2A/"))
        self.deliver(d)
        job = d.wait_job(ARCHIVE, "successful")
        n = d.log_text().count("reload")
        d.change("S2?_a_L2A/", "S2?_*_L2A/")
        d.process.send_signal(signal.SIGHUP)
        d.wait_for(lambda: d.log_text().count("reload") > n)
        d.call("job.again", id=job["id"])
        again = d.wait_for(lambda: [j for j in d.jobs(limit=1000) if j["again_of"] == job["id"] and j["status"] == "failed"])[0]
        self.assertEqual(again["error"]["code"], "input.scenes")
        self.assertIn(f"job {job['id']} found one", again["error"]["message"])
        self.assertEqual(len(d.jobs(limit=1000)), 2)

    def test_scenes_follow_the_pipeline_of_a_reload(self):
        d = self.service(parallel_jobs=1)
        files = {f"S2X_{i}_L2A/{n}": data for i in range(12) for n, data in files_of(small_folder(d.root / "made")).items()}
        path = make_zip(d.root / "made" / ARCHIVE, files)
        os.rename(path, d.root / "inbox" / path.name)
        d.wait_for(lambda: [j for j in d.jobs(limit=1000) if j["archive"] is None and j["stage"] == "scenes"])
        d.change("  s2:", "  s3:")
        d.process.send_signal(signal.SIGHUP)
        self.ended(d, "successful")

    def test_drop_after_a_cancelled_retry_takes_the_scenes(self):
        d = self.service(parallel_jobs=1)
        self.deliver(d, without=[f"{B}/B04.tif"])
        archive, _ = self.ended(d, "failed")
        other = make_zip(d.root / "made/order_9.zip", {f"S2X_{i}_L2A/{n}": data for i in range(6) for n, data in files_of(small_folder(d.root / "made")).items()})
        os.rename(other, d.root / "inbox/order_9.zip")
        d.wait_for(lambda: [j for j in d.jobs(limit=1000) if j["name"] == "order_9.zip" and j["stage"] == "scenes"])
        d.call("job.retry", id=archive["id"])
        try:
            d.call("job.cancel", id=archive["id"])
        except RpcError:
            pass  # the scenes were over
        d.wait_idle()
        d.call("job.drop", id=archive["id"])
        states = {j["scene"]: j["status"] for j in d.jobs(limit=1000) if j["name"] == ARCHIVE}
        self.assertEqual(states, {"order_1": "dismissed", A: "successful", B: "dismissed"})

    def test_cancel_of_the_archive_cancels_its_scenes(self):
        """Scenes that end before the cancel are successful; a retry computes the others."""
        d = self.service(parallel_jobs=1)
        files = {f"S2X_{i}_L2A/{n}": data for i in range(12) for n, data in files_of(small_folder(d.root / "made")).items()}
        path = make_zip(d.root / "made" / ARCHIVE, files)
        os.rename(path, d.root / "inbox" / path.name)
        job = d.wait_for(lambda: [j for j in d.jobs(limit=1000) if j["archive"] is None and j["stage"] == "scenes"])[0]
        try:
            d.call("job.cancel", id=job["id"])
        except RpcError:
            pass  # all scenes were over
        d.wait_idle()
        cancelled = [j for j in d.jobs(limit=1000) if j["archive"] and j["status"] == "dismissed"]
        self.ended(d, "dismissed" if cancelled else "successful")
        if cancelled:
            self.assertEqual(d.files("quarantine"), [ARCHIVE, ARCHIVE + ".error.json"])
            d.call("job.retry", id=job["id"])
        _, scenes = self.ended(d, "successful")
        self.assertEqual([(s, j["status"]) for s, j in sorted(scenes.items())], [(s, "successful") for s in sorted(f"S2X_{i}_L2A" for i in range(12))])

    def test_archive_ends_while_other_jobs_have_all_slots(self):
        d = self.daemon(start=False)
        row = "  %s: {priority: %d, input: {match: ['%s'], bands: {R: 1}}, products: [statistics: {}]}\n"
        d.set_pipelines("pipelines:\n" + row % ("urgent", 5, "u.tif") + row % ("plain", 0, "*.zip"))
        d.start()
        d.drop("x.zip", "scenes a,b until go")
        wait_for(lambda: [j for j in d.jobs(status="running") if j["scene"] == "a"])
        d.drop("u.tif", "until end")
        wait_for(lambda: [j for j in d.jobs(status="accepted") if j["name"] == "u.tif"])
        (d.root / "go").touch()
        d.wait_job("u.tif", "running")
        archive, = [j for j in d.jobs() if j["name"] == "x.zip" and j["archive"] is None]
        self.assertEqual((archive["status"], archive["stage"]), ("accepted", "scenes"))
        d.call("job.cancel", id=archive["id"])
        archive, scenes = self.ended(d, "dismissed", "x.zip")
        self.assertEqual({s: j["status"] for s, j in scenes.items()}, {"a": "successful", "b": "dismissed"})
        self.assertEqual(d.files("quarantine"), ["x.zip", "x.zip.error.json"])
        self.assertEqual([j["name"] for j in d.jobs(status="running")], ["u.tif"])
        (d.root / "end").touch()
        d.wait_idle()

    def test_archive_is_summed_once(self):
        """The workers read each byte of the archive once, and some of them again as members."""
        d = self.service(parallel_jobs=1)
        files = {f"S2X_{i}_L2A/{n}": data for i in range(3) for n, data in files_of(small_folder(d.root / "made")).items()}
        path = make_zip(d.root / "made" / ARCHIVE, files | {f"S2X_{i}_L2A/notes.bin": os.urandom(16 << 20) for i in range(3)})
        size, known = path.stat().st_size, sums.digest(path)
        os.rename(path, d.root / "inbox" / path.name)
        self.assertEqual(len(self.ended(d, "successful")[1]), 3)

        def read():
            """Bytes that the service, its workers, and the ended children of both have read."""
            return sum(int(re.search(r"rchar: (\d+)", pathlib.Path(f"/proc/{p}/io").read_text())[1]) for p in [d.process.pid, *d.workers()])
        self.assertEqual(read() // size, 1, read() / size)
        self.assertEqual([self.record(d.root / "products" / f"S2X_{i}_L2A") for i in range(3)], [(size, known)] * 3)

    def record(self, scene):
        """Size and checksum of the input in the record of products."""
        read = json.loads((scene / "s2/.pushbroom.json").read_text())["input"]
        return read["bytes"], read["blake3"]

    def test_replaced_archive_has_the_right_checksum(self):
        d = self.service(parallel_jobs=1)
        files = {f"S2X_{i}_L2A/{n}": data for i in range(12) for n, data in files_of(small_folder(d.root / "made")).items()}
        path = make_zip(d.root / "made" / ARCHIVE, files)
        other = make_zip(d.root / "other.zip", dict(reversed(list(files.items()))))
        right = {(p.stat().st_size, sums.digest(p)) for p in (path, other)}
        self.assertEqual({size for size, _ in right}, {other.stat().st_size})
        os.rename(path, d.root / "inbox" / path.name)
        job = d.wait_for(lambda: [j for j in d.jobs(limit=1000) if j["archive"] and j["status"] == "successful"])[0]
        shutil.copystat(job["input"], other)
        if os.path.exists(job["input"]):  # else all scenes are over
            os.rename(other, job["input"])
        _, scenes = self.ended(d, None)
        self.assertEqual(len(scenes), 12)
        for name, job in scenes.items():
            if job["status"] == "successful":
                self.assertIn(self.record(d.root / "products" / name), right)
            else:  # the file was replaced while the job read it
                self.assertEqual(job["error"]["code"], "input.changed")

    def test_known_checksum_is_that_of_a_state(self):
        root = pathlib.Path(tempfile.mkdtemp(prefix="pb-"))
        self.addCleanup(shutil.rmtree, root)
        path = make_zip(root / ARCHIVE, {f"{s}/{n}": data for s in (A, B) for n, data in files_of(small_folder(root / "made")).items()})
        worker = subprocess.Popen([BIN / "pushbroomd", "--worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(lambda: [worker.kill(), worker.wait(), worker.stdin.close(), worker.stdout.close()])

        def run(job, manifest={"version": 1, "roots": []}, **more):
            worker.stdin.write(json.dumps({"cmd": "run", "job": job, "config": "compute: {device: cpu}\n" + TEXT, "config_name": "c", "pipeline": "s2",
                                           "manifest": {"input": str(path)} | manifest, "products": str(root / job), "scene": A} | more) + "\n")
            worker.stdin.flush()
            for line in worker.stdout:
                said = json.loads(line) if line.strip() else {"event": ""}
                if said["event"] in ("done", "failed"):
                    return said

        def made(job, manifest):
            said = run(job, manifest, part="yes")
            self.assertEqual(said["event"], "done", said)
            return self.record(root / job / A)[1]

        said, real = run("list"), sums.digest(path)
        self.assertEqual((said["error"]["code"], said["scenes"]), ("input.scenes", [A, B]))
        file = said["manifest"]["roots"][0]["files"][0]
        state = path.stat()
        self.assertEqual(file, {"path": ARCHIVE, "bytes": state.st_size, "inode": state.st_ino, "mtime_ns": state.st_mtime_ns,
                                "ctime_ns": state.st_ctime_ns, "checksum": "blake3:" + real})
        self.assertEqual(made("known", said["manifest"]), real)
        file["checksum"] = "blake3:" + "5" * 64  # it is not computed
        self.assertEqual(made("same", said["manifest"]), "5" * 64)
        for key in ("bytes", "inode", "mtime_ns", "ctime_ns"):
            other = json.loads(json.dumps(said["manifest"]))
            other["roots"][0]["files"][0][key] += 1
            self.assertEqual(made(key, other), real)
        os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))  # changes the ctime
        self.assertEqual(made("touched", said["manifest"]), real)

    def test_killed_service_continues_with_the_scenes(self):
        d = self.service(parallel_jobs=1)
        self.deliver(d)
        d.wait_for(lambda: [j for j in d.jobs(limit=1000) if j["archive"]])
        d.process.send_signal(signal.SIGKILL)
        d.process.wait()
        d.start()
        archive, scenes = self.ended(d, "successful")
        self.assertEqual([self.maker(d, s) for s in (A, B)], [scenes[s]["id"] for s in (A, B)])
        self.assertEqual(d.files("work"), ["done", "done/" + ARCHIVE])


if __name__ == "__main__":
    main(workers=3)
