#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: threads slow
"""Files that join a scene of loose files after its job (input.complete.reopen): products that are made again and their files,
cases without it, readers of the products meanwhile, and the state after a kill. Real workers."""
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "proof")]
import numpy as np  # noqa: E402
from osgeo import gdal, osr  # noqa: E402

import control  # noqa: E402
import pbtest  # noqa: E402
import sums  # noqa: E402
from daemon_kit import BIN, DaemonCase, wait_for  # noqa: E402

SCENE = "T1_202606"
PIPELINES = """
pipelines:
  every:
    input: {match: ["probe*.tif"]}
    products: [statistics: {}]
  month:
    input:
      group: 'T(?<tile>\\d)_(?<date>\\d{8})\\.tif'
      by: "T{tile}_{date:%Y%m}"
      order: date
      files:
        S_1: {match: "*.tif", nth: 1}
        S_2: {match: "*.tif", nth: 2, optional: true}
        S_3: {match: "*.tif", nth: 3, optional: true}
        S_4: {match: "*.tif", nth: 4, optional: true}
        S_5: {match: "*.tif", nth: 5, optional: true}
        S_6: {match: "*.tif", nth: 6, optional: true}
      grid: S_1
      complete: {expire: EXPIRE, reopen: 90d}
    steps:
      - composite: {method: mean, bands: [S], of: [_1, _2, _3, _4, _5, _6]}
    products:
      - cog: {bands: [S], type: float32}
      - stac: {datetime: file-time}
"""


def image(path, value):
    out = gdal.GetDriverByName("GTiff").Create(str(path), 64, 48, 1, gdal.GDT_UInt16)
    out.SetGeoTransform((500000.0, 3.0, 0, 4000000.0, 0, -3.0))
    system = osr.SpatialReference()
    system.ImportFromEPSG(32632)
    out.SetProjection(system.ExportToWkt())
    out.GetRasterBand(1).WriteArray(np.full((48, 64), value, np.uint16))


class Joining(DaemonCase):
    def service(self, start=True, expire="200ms", more="", **settings):
        d = self.daemon(fake=False, start=False, **settings)
        d.set_pipelines(more + PIPELINES.replace("EXPIRE", expire))
        (d.root / "made").mkdir()
        return d.start() if start else d

    def folders(self, exists="refuse"):
        d = self.service(start=False)
        text = d.config.read_text().replace(f"  inbox: {d.root}/inbox\n", f"  inboxes: [{{path: {d.root}/inbox, recurse: true}}]\n")
        d.config.write_text(text.replace("    steps:", f"    output: {{exists: {exists}}}\n    steps:"))
        return d.start()

    def name(self, day):
        return f"T1_202606{day:02}.tif"

    def drop(self, d, *days, add=0, beside=()):
        """The file of a day has its number, times 100, in each pixel. Files of one call arrive at once: `expire` is short."""
        new = d.root / "made/new"
        new.mkdir(exist_ok=True)
        for day in days:
            image(d.root / "made" / self.name(day), 100 * day + add)
            shutil.copyfile(d.root / "made" / self.name(day), new / self.name(day))
        with d.paused():
            for file in (*beside, *sorted(new.iterdir())):
                os.rename(file, d.root / "inbox" / file.name)

    def months(self, d, *states):
        return [j for j in d.jobs(limit=1000) if j["name"] == SCENE and (not states or j["status"] in states)][::-1]

    def done(self, d, n, failed=0):
        """The jobs of the month, oldest first, when n of them are successful."""
        def are():
            wrong = self.months(d, "failed")
            assert len(wrong) <= failed, [j["error"] for j in wrong]
            return len(self.months(d, "successful")) == n
        d.wait_for(are)
        return self.months(d)

    def product(self, d):
        return d.root / f"products/{SCENE}/month/{SCENE}.tif"

    def mean(self, d):
        return np.unique(gdal.Open(str(self.product(d))).ReadAsArray()).tolist()

    def manifest(self, d):
        return json.loads((self.product(d).parent / ".pushbroom.json").read_text())

    def of(self, d):
        """The days whose files the products were made of, from the manifest and the STAC item."""
        files = sorted({f["file"] for f in self.manifest(d)["input"]["files"]})
        item = json.loads(next(self.product(d).parent.glob("*.json")).read_text())
        self.assertEqual(sorted({file["file"] for file in item["properties"]["pushbroom:inputs"]}), files)
        return [int(f[9:11]) for f in files]

    def probe(self, d):
        """A scene of one file is processed to its end."""
        image(d.root / "made/next", 1)
        os.rename(d.root / "made/next", d.root / "inbox/probe.tif")
        d.wait_job("probe.tif", "successful")

    def archived(self, d):
        return [f for f in d.files("work") if f.endswith(".tif") and "probe" not in f]


class Made(Joining):
    def test_joining_file_recomputes_the_scene_from_all(self):
        d = self.service()
        self.drop(d, 5, 12)
        first, = self.done(d, 1)
        self.assertEqual((self.mean(d), self.of(d), first["replaces"]), ([850], [5, 12], None))
        self.drop(d, 20)
        _, second = self.done(d, 2)
        self.assertEqual((second["replaces"], second["delivered"]), (first["id"], [str(d.root / "inbox" / self.name(20))]))
        self.assertEqual((self.mean(d), self.of(d), self.manifest(d)["job"]), ([np.float32(3700 / 3)], [5, 12, 20], second["id"]))
        self.drop(d, 1)  # the earliest of all
        third = self.done(d, 3)[2]
        self.assertEqual((third["replaces"], self.mean(d), self.of(d)), (second["id"], [950], [1, 5, 12, 20]))
        self.assertEqual(self.archived(d), [f"done/{SCENE}.1/{self.name(20)}", f"done/{SCENE}.2/{self.name(1)}",
                                            f"done/{SCENE}/{self.name(5)}", f"done/{SCENE}/{self.name(12)}"])
        self.assertEqual(sorted(os.listdir(d.root / "products")), [SCENE])
        said = subprocess.run([BIN / "pushbroom", "status", "--socket", d.root / "s.sock", third["id"]], stdout=subprocess.PIPE, text=True).stdout
        self.assertIn(f"replaces   job {second['id']}, with its files and those delivered now", said)

    def test_pushbroom_run_makes_the_same_of_all_files(self):
        d = self.service()
        for n, days in enumerate(((12,), (5, 20), (1,))):
            self.drop(d, *days)
            self.done(d, n + 1)
        self.assertEqual(self.of(d), [1, 5, 12, 20])
        pbtest.run("pushbroom", "run", "-c", d.config, "-o", d.root / "own", d.root / "made" / self.name(1))
        own = d.root / "own" / SCENE / "month"
        self.assertEqual(sums.digest(own / f"{SCENE}.tif"), sums.digest(self.product(d)))
        alone = json.loads((own / ".pushbroom.json").read_text())
        self.assertEqual(alone["input"]["blake3"], self.manifest(d)["input"]["blake3"])

    def test_run_command_replaces_same_bytes_products_only(self):
        d = self.service(start=False)
        self.drop(d, 5, 12)
        own = d.root / "own" / SCENE / "month"

        def run(*more, code=0):
            return pbtest.run("pushbroom", "run", "-c", d.config, "-o", d.root / "own", *more, d.root / "inbox" / self.name(5), code=code)

        def mean():
            return np.unique(gdal.Open(str(own / f"{SCENE}.tif")).ReadAsArray()).tolist()

        run()
        self.drop(d, 20)
        run()
        self.assertEqual(mean(), [np.float32(3700 / 3)])
        self.drop(d, 12, add=3)
        self.drop(d, 1)
        said = run(code=1)
        self.assertIn(f"its '{self.name(12)}' has other content", said.stderr + said.stdout)
        self.assertEqual(mean(), [np.float32(3700 / 3)])
        run("--existing", "version")
        self.assertEqual(sorted(os.listdir(d.root / "own")), [SCENE, f"{SCENE}~2"])
        self.assertEqual(mean(), [np.float32(3700 / 3)])
        run("--existing", "replace")
        self.assertEqual(mean(), [np.float32(3803 / 4)])

    def test_scene_is_joined_after_a_step_of_the_clock(self):
        if pbtest.SANITIZED:
            self.skipTest("the shim of failing calls does not go together with a sanitizer")
        d = self.service(start=False)
        faults = control.Faults(d.root / "faults", BIN / "pbfault.so")
        d.start()
        self.drop(d, 5)
        first, = self.done(d, 1)
        d.stop()
        faults.set_clock(50 * 365 * 86400)  # reopen is 90d
        d.start(env=faults.environment())
        self.drop(d, 12)
        second = self.done(d, 2)[1]
        self.assertEqual((self.of(d), second["replaces"]), ([5, 12], first["id"]))

    def test_what_comes_while_a_job_runs_becomes_one_job(self):
        d = self.service()
        self.drop(d, 5)
        self.done(d, 1)
        worker, = d.workers()
        os.kill(worker, signal.SIGSTOP)
        self.drop(d, 12)
        second = wait_for(lambda: self.months(d, "running", "accepted"))[0]
        for n, day in enumerate((15, 18, 20)):
            self.drop(d, day)
            told = wait_for(lambda: [s for s in d.call("service.info")["gathering"] if s["files"] == n + 1])[0]
        self.assertIn(f"3 files to be joined with those of job {second['id']} when it is over", told["missing"])
        self.assertIsNone(told["expires"])
        os.kill(worker, signal.SIGCONT)
        jobs = self.done(d, 3)
        self.assertEqual((len(jobs), jobs[2]["replaces"], len(jobs[2]["delivered"])), (3, second["id"], 3))
        self.assertEqual((self.of(d), self.mean(d)), ([5, 12, 15, 18, 20], [1400]))

    def test_other_month_and_other_time_are_other_scenes(self):
        d = self.service()
        self.drop(d, 5)
        self.done(d, 1)
        image(d.root / "made/next", 7)
        os.rename(d.root / "made/next", d.root / "inbox/T1_20260701.tif")
        self.assertIsNone(d.wait_job("T1_202607", "successful")["replaces"])
        n = d.log_text().count("is in use")
        d.change("reopen: 90d", "reopen: 1ms")
        d.process.send_signal(signal.SIGHUP)
        wait_for(lambda: d.log_text().count("is in use") > n)
        self.drop(d, 12)  # output.exists: refuse, and a part of a scene is never put in the place of more
        failed = d.wait_job(SCENE, "failed")
        self.assertEqual((failed["error"]["code"], failed["replaces"]), ("output.exists", None))
        self.assertEqual(self.of(d), [5])

    def test_same_names_in_another_folder_replace_nothing(self):
        d = self.folders()
        for folder, value in (("north", 500), ("south", 700)):
            (d.root / "inbox" / folder).mkdir()
            image(d.root / "made/next", value)
            os.rename(d.root / "made/next", d.root / "inbox" / folder / self.name(5))
            d.wait_for(lambda: [j for j in self.months(d, "successful", "failed") if j["folder"] == folder])
        north, south = self.months(d)
        self.assertEqual((north["status"], south["status"], south["replaces"]), ("successful", "failed", None))
        self.assertEqual(south["error"]["code"], "output.exists")
        self.assertEqual((self.mean(d), self.manifest(d)["job"]), ([500], north["id"]))

    def test_same_names_in_another_inbox_are_another_scene(self):
        d = self.service(start=False)
        text = d.config.read_text().replace(f"  inbox: {d.root}/inbox\n", f"  inboxes: [{{path: {d.root}/inbox}}, {{path: {d.root}/other}}]\n")
        d.config.write_text(text.replace("    steps:", "    output: {exists: version}\n    steps:"))
        (d.root / "other").mkdir()
        d.start()
        for n, (inbox, day) in enumerate((("inbox", 5), ("other", 5), ("other", 12), ("inbox", 20))):
            image(d.root / "made/next", 100 * (n + 1))
            os.rename(d.root / "made/next", d.root / inbox / self.name(day))
            self.done(d, n + 1)
        first, second, third, fourth = self.months(d)
        self.assertEqual([j["replaces"] for j in (first, second, third, fourth)], [None, None, second["id"], first["id"]])
        self.assertEqual((self.mean(d), self.of(d)), ([250], [5, 20]))
        other = d.root / f"products/{SCENE}~2/month/{SCENE}.tif"
        self.assertEqual(np.unique(gdal.Open(str(other)).ReadAsArray()).tolist(), [250])

    def test_scene_in_another_place_is_recomputed_there(self):
        d = self.folders("version")
        for n, (folder, day) in enumerate((("north", 5), ("south", 5), ("south", 12))):
            (d.root / "inbox" / folder).mkdir(exist_ok=True)
            image(d.root / "made/next", 100 * (n + 1))
            os.rename(d.root / "made/next", d.root / "inbox" / folder / self.name(day))
            self.done(d, n + 1)
        self.assertEqual((self.mean(d), self.of(d)), ([100], [5]))
        south = d.root / f"products/{SCENE}~2/month/{SCENE}.tif"
        self.assertEqual(np.unique(gdal.Open(str(south)).ReadAsArray()).tolist(), [250])
        self.assertEqual(sorted(os.listdir(d.root / "products")), [SCENE, f"{SCENE}~2"])


class Beside(Joining):
    def mask(self, d, day, left):
        """A mask for the file of a day: valid in the left half, or the right one."""
        path = d.root / "made" / (self.name(day) + ".msk")
        out = gdal.GetDriverByName("GTiff").Create(str(path), 64, 48, 1, gdal.GDT_Byte)
        out.SetMetadataItem("INTERNAL_MASK_FLAGS_1", "2")
        half = np.zeros((48, 64), np.uint8)
        half[:, slice(0, 32) if left else slice(32, 64)] = 255
        out.GetRasterBand(1).WriteArray(half)
        del out
        return path

    def test_sidecars_of_earlier_files_are_read_with_them(self):
        d = self.service(start=False)
        d.change("\\.tif'", "\\.tif(\\.msk)?'")
        d.change("grid: S_1", "grid: S_1\n      sidecars: [.msk]")
        d.start()
        self.drop(d, 5, beside=[self.mask(d, 5, True)])
        self.done(d, 1)
        self.drop(d, 12, beside=[self.mask(d, 12, False)])
        jobs = self.done(d, 2)
        self.assertEqual(jobs[1]["report"]["sidecars"]["read"], [self.name(5) + ".msk", self.name(12) + ".msk"])
        made = gdal.Open(str(self.product(d))).ReadAsArray()
        self.assertEqual((np.unique(made[:, :32]).tolist(), np.unique(made[:, 32:]).tolist()), ([500], [1200]))


class NotMade(Joining):
    def test_same_files_again_compute_nothing_until_retry(self):
        d = self.service()
        self.drop(d, 5, 12)
        first, = self.done(d, 1)
        before = os.stat(self.product(d))
        self.drop(d, 12)
        again = d.wait_job(SCENE, "dismissed")
        self.assertEqual(again["error"]["code"], "input.duplicate")
        self.assertIn(f"job {first['id']} made it of the same", again["error"]["message"])
        self.assertEqual(os.stat(self.product(d)), before)
        self.drop(d, 5, 12)
        d.wait_for(lambda: len(self.months(d, "dismissed")) == 2)
        self.assertEqual(os.stat(self.product(d)), before)
        d.call("job.retry", id=again["id"])
        self.done(d, 2)
        self.assertEqual((self.of(d), self.manifest(d)["job"]), ([5, 12], again["id"]))

    def test_files_of_another_checksum_kind_are_joined(self):
        d = self.service(start=False)
        text = d.config.read_text()
        d.config.write_text(text.replace("    steps:", "    output: {checksum: sha2-256}\n    steps:"))
        d.start()
        self.drop(d, 5, 12)
        first, = self.done(d, 1)
        self.assertIn("sha256", self.manifest(d)["input"])
        self.assertEqual(d.stop()[0], 0)
        d.config.write_text(text)
        for file in self.archived(d):
            os.utime(d.root / "work" / file)  # the times no longer prove that it is the same file
        d.start()
        self.drop(d, 5, 12)
        self.assertEqual(d.wait_job(SCENE, "dismissed")["error"]["code"], "input.duplicate")
        self.drop(d, 20)
        second = self.done(d, 2)[-1]
        self.assertEqual((second["replaces"], self.mean(d), self.of(d)), (first["id"], [np.float32(3700 / 3)], [5, 12, 20]))
        self.assertIn("blake3", self.manifest(d)["input"])

    def test_file_with_other_content_replaces_its_namesake(self):
        d = self.service()
        self.drop(d, 5, 12)
        self.done(d, 1)
        self.drop(d, 12, add=100)
        jobs = self.done(d, 2)
        self.assertEqual((self.mean(d), self.of(d), jobs[1]["replaces"]), ([900], [5, 12], jobs[0]["id"]))
        self.drop(d, 20)
        self.done(d, 3)
        self.assertEqual(self.mean(d), [np.float32(3800 / 3)])

    def test_undecodable_file_harms_none_of_the_others(self):
        d = self.service()
        self.drop(d, 5)
        self.done(d, 1)
        (d.root / "made/next").write_bytes(b"II*\0this is no image")
        os.rename(d.root / "made/next", d.root / "inbox" / self.name(12))
        failed = d.wait_job(SCENE, "failed")
        self.assertEqual(self.of(d), [5])
        d.wait_for(lambda: f"{SCENE}/{self.name(12)}" in d.files("quarantine"))
        self.drop(d, 20)
        self.done(d, 2, failed=1)
        self.assertEqual((self.of(d), self.mean(d)), ([5, 20], [1250]))
        broken = d.root / f"quarantine/{SCENE}/{self.name(12)}"
        broken.unlink()
        image(broken, 1200)
        d.call("job.retry", id=failed["id"])
        self.done(d, 3)
        self.assertEqual((self.of(d), self.mean(d)), ([5, 12, 20], [np.float32(3700 / 3)]))

    def test_a_retry_joins_what_was_made_meanwhile(self):
        d = self.service()
        (d.root / "made/next").write_bytes(b"II*\0this is no image")
        os.rename(d.root / "made/next", d.root / "inbox" / self.name(5))  # the first file of all
        failed = d.wait_job(SCENE, "failed")
        d.wait_for(lambda: f"{SCENE}/{self.name(5)}" in d.files("quarantine"))
        self.drop(d, 12)
        second = self.done(d, 1, failed=1)[1]
        broken = d.root / f"quarantine/{SCENE}/{self.name(5)}"
        broken.unlink()
        image(broken, 500)
        d.call("job.retry", id=failed["id"])
        again = self.done(d, 2)[0]
        self.assertEqual((again["id"], again["replaces"]), (failed["id"], second["id"]))
        self.assertEqual((self.of(d), self.mean(d)), ([5, 12], [850]))
        self.drop(d, 20)
        self.assertEqual(self.done(d, 3)[2]["replaces"], failed["id"])
        self.assertEqual(self.of(d), [5, 12, 20])

    def test_missing_archive_file_makes_no_smaller_product(self):
        d = self.service()
        self.drop(d, 5, 12)
        first, = self.done(d, 1)
        kept = d.root / f"work/done/{SCENE}/{self.name(12)}"
        kept.rename(d.root / "made/kept")
        self.drop(d, 20)
        failed = d.wait_job(SCENE, "failed")
        self.assertEqual(failed["error"]["code"], "input.gone")
        self.assertIn(f"it joins the scene that job {first['id']} made, and 1 of the 2 files of that is in the archive no more: {self.name(12)}",
                      failed["error"]["message"])
        self.assertEqual((self.of(d), self.manifest(d)["job"]), ([5, 12], first["id"]))
        (d.root / "made/kept").rename(kept)
        d.call("job.retry", id=failed["id"])
        self.done(d, 2)
        self.assertEqual(self.of(d), [5, 12, 20])

    def overfilled(self, d, n, manifest):
        """The scene gets n more earlier jobs in the job store."""
        d.stop()
        with sqlite3.connect(d.root / "state/jobs.db") as db:
            columns = [row[1] for row in db.execute("PRAGMA table_info(set_parts)")]
            row = dict(zip(columns, db.execute(f"SELECT {', '.join(columns)} FROM set_parts").fetchone()))
            for i in range(n):
                more = row | {"job": f"20200101-000000-{i:04}", "path": f"{row['path']}.{i}", "manifest": manifest, "up_ms": 0, "time_ms": 0}
                db.execute(f"INSERT INTO set_parts ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})", [more[c] for c in columns])
        db.close()
        d.start()

    def check_too_large(self, n, manifest, code, message):
        d = self.service()
        self.drop(d, 5)
        self.done(d, 1)
        self.overfilled(d, n, manifest)
        self.drop(d, 12)
        failed = d.wait_job(SCENE, "failed")
        self.assertEqual((failed["error"]["code"], failed["attempts"]), (code, 1))
        self.assertIn(message, failed["error"]["message"])
        self.assertIn("when input.complete.reopen is over", failed["error"]["hint"])
        self.assertIsNone(d.trouble("queue"))
        wait_for(lambda: d.files("quarantine"))
        self.assertEqual(self.of(d), [5])
        self.probe(d)  # other scenes are processed

    def test_scene_of_too_many_deliveries_fails_alone(self):
        self.check_too_large(1100, None, "input.limit", "too long paths of these, or more than 1100 deliveries")

    def test_scene_of_too_many_files_fails_alone(self):
        files = [{"path": f"f{i}"} for i in range(19999)]
        self.check_too_large(1, json.dumps({"version": 1, "roots": [{"path": "/in", "files": files}]}), "input.limit", "more than 20000 files")

    def test_unreadable_earlier_list_fails_its_job_alone(self):
        self.check_too_large(1, " " * (8 << 20) + "{}", "input.gone", "the job store has no valid list of the files of one of its earlier jobs")

    def refused(self, d, day):
        """A file of that day is delivered, and nothing is made of what is in the archive."""
        failed = len(self.months(d, "failed"))
        self.drop(d, day)
        d.wait_for(lambda: len(self.months(d, "failed")) == failed + 1)
        error = self.months(d, "failed")[-1]["error"]
        self.assertEqual((error["code"], self.of(d)), ("input.gone", [5, 12]))
        return error["message"]

    def test_changed_archived_file_is_not_used(self):
        d = self.service()
        self.drop(d, 5, 12)
        first, = self.done(d, 1)
        kept = d.root / f"work/done/{SCENE}/{self.name(12)}"
        wait_for(kept.exists)  # it is archived after the end of the job
        before = os.stat(kept)
        self.assertEqual(self.mean(d), [850])
        image(kept, 1300)  # in place
        words = f"it joins the scene that job {first['id']} made, and {self.name(12)} of that was changed in the archive since"
        self.assertIn(words, self.refused(d, 20))
        self.assertEqual(os.stat(kept).st_size, before.st_size)
        os.utime(kept, ns=(before.st_atime_ns, before.st_mtime_ns))  # and hidden
        self.assertIn(words, self.refused(d, 21))
        image(d.root / "made/other", 1300)
        os.replace(d.root / "made/other", kept)
        self.assertIn(words, self.refused(d, 22))
        self.assertEqual(self.mean(d), [850])
        image(kept, 1200)  # it has its content again
        d.call("job.retry", id=self.months(d, "failed")[0]["id"])
        self.done(d, 2, failed=3)
        self.assertEqual((self.of(d), self.mean(d)), ([5, 12, 20], [np.float32(3700 / 3)]))

    def test_foreign_file_in_the_archive_is_left_out(self):
        d = self.service()
        self.drop(d, 5, 12)
        self.done(d, 1)
        wait_for((d.root / f"work/done/{SCENE}/{self.name(12)}").exists)
        image(d.root / f"work/done/{SCENE}/{self.name(13)}", 9000)
        (d.root / f"work/done/{SCENE}/{self.name(12)}.aux.xml").write_text("<PAMDataset/>")
        os.chmod(d.root / f"work/done/{SCENE}/{self.name(12)}", 0o640)  # no change of the content
        self.drop(d, 20)
        self.done(d, 2)
        self.assertEqual((self.of(d), self.mean(d)), ([5, 12, 20], [np.float32(3700 / 3)]))

    def test_retention_leaves_what_others_may_join(self):
        d = self.service(more="  retention: {done: 1ms}\n")
        self.drop(d, 5)
        self.done(d, 1)
        self.probe(d)
        d.stop()
        d.start()  # the first look at the archive is at once
        wait_for(lambda: "retention: removed" in d.log_text())
        self.assertEqual(self.archived(d), [f"done/{SCENE}/{self.name(5)}"])
        self.drop(d, 12)
        self.done(d, 2)
        self.assertEqual(self.of(d), [5, 12])
        text = d.config.read_text()
        d.stop()
        d.config.write_text(text[:text.index("  month:")])  # a mistake of a day
        d.start()
        d.stop()
        self.assertEqual(len(self.archived(d)), 2)
        d.config.write_text(text)
        d.start()
        self.drop(d, 20)
        self.done(d, 3)
        self.assertEqual(self.of(d), [5, 12, 20])
        d.stop()
        d.config.write_text(text.replace("reopen: 90d", "reopen: 0s"))
        d.start()
        wait_for(lambda: self.archived(d) == [])

    def test_the_configuration_says_what_cannot_be(self):
        d = self.service(start=False, on_success="delete")
        said = subprocess.run([BIN / "pushbroom", "check-config", d.config], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(said.returncode, 2, said.stdout)
        self.assertRegex(said.stdout, r"config\.yaml:\d+:\d+: .*input\.complete\.reopen makes a scene again from its archived files")
        d.config.write_text("pipelines:\n  p:\n    input:\n      scene: 'x/'\n      files: {R: R.tif}\n      complete: {reopen: 1d}\n    products: [statistics: {}]\n")
        said = subprocess.run([BIN / "pushbroom", "check-config", d.config], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertIn(":6:26: ", said.stdout)
        self.assertIn("input.complete.reopen is about loose files that join a scene", said.stdout)


class Reader(threading.Thread):
    """Looks at the product without a pause: it must be there, whole, and of never fewer files."""

    def __init__(self, product):
        super().__init__(daemon=True)
        self.product, self.wrong, self.seen, self.ends = product, [], [], False

    def run(self):
        while not self.ends:
            try:
                at = os.open(self.product.parent, os.O_RDONLY | os.O_DIRECTORY)
            except FileNotFoundError:
                if self.seen:
                    self.wrong.append("the products went away")
                continue
            try:
                read = lambda name: os.fdopen(os.open(name, os.O_RDONLY, dir_fd=at), "rb").read()
                manifest = json.loads(read(".pushbroom.json"))
                for file in manifest["files"]:
                    if sums.digest_of(read(file["file"])) != file["blake3"]:
                        self.wrong.append(f"{file['file']} is not that of its manifest")
                n = len({f["file"] for f in manifest["input"]["files"]})
                if not self.seen or self.seen[-1] != (manifest["job"], n):
                    self.seen.append((manifest["job"], n))
            except FileNotFoundError:
                pass  # the older products of an exchange are removed while they are read
            finally:
                os.close(at)

    def end(self):
        self.ends = True
        self.join()
        counts = [n for _, n in self.seen]
        if counts != sorted(counts):
            self.wrong.append(f"products of fewer files came after those of more: {self.seen}")
        if len({job for job, _ in self.seen}) != len(self.seen):
            self.wrong.append(f"the products of a job came twice: {self.seen}")
        return self.wrong


class Killed(Joining):
    def reader(self, d):
        reader = Reader(self.product(d))
        self.addCleanup(setattr, reader, "ends", True)  # for a test that fails before it ends the reader
        reader.start()
        return reader

    def is_of(self, d, days):
        try:
            return self.of(d) == days
        except (AssertionError, OSError, StopIteration):
            return False  # the products are being replaced

    def kill(self, d):
        d.process.send_signal(signal.SIGKILL)
        d.process.wait()

    def at(self, call, path):
        """A service that is killed in that call, when a file joins."""
        if pbtest.SANITIZED:
            self.skipTest("the shim of failing calls does not go together with a sanitizer")
        d = self.service(start=False)
        faults = control.Faults(d.root / "faults", BIN / "pbfault.so")
        d.start(env=faults.environment())
        self.drop(d, 5, 12)
        self.done(d, 1)
        reader = self.reader(d)
        rule = faults.rule(call, control.HANG, role="daemon", path=path)
        self.drop(d, 20)
        wait_for(lambda: faults.counts(rule)[1])
        self.kill(d)
        d.start()
        jobs = self.done(d, 2)
        d.wait_idle()
        self.assertEqual((self.of(d), len(jobs), jobs[1]["replaces"]), ([5, 12, 20], 2, jobs[0]["id"]))
        self.assertEqual(reader.end(), [])
        wait_for(lambda: self.archived(d) == [f"done/{SCENE}.1/{self.name(20)}"] + [f"done/{SCENE}/{self.name(day)}" for day in (5, 12)])
        self.assertEqual(d.files("inbox") + d.files("quarantine"), [])
        self.drop(d, 25)
        self.done(d, 3)
        self.assertEqual(self.of(d), [5, 12, 20, 25])

    def test_while_the_file_is_claimed(self):
        self.at("rename", self.name(20))

    def test_while_its_folder_gets_its_place(self):
        self.at("fsync", f".gather/{SCENE}")

    def test_while_the_file_goes_to_the_archive(self):
        self.at("rename", f"done/{SCENE}.1")

    def test_after_it_went_to_the_archive(self):
        self.at("fsync", "/work/done")

    def test_file_of_a_second_inbox_joins_after_a_kill(self):
        if pbtest.SANITIZED:
            self.skipTest("the shim of failing calls does not go together with a sanitizer")
        d = self.service(start=False)
        d.change(f"  inbox: {d.root}/inbox\n", f"  inboxes: [{{path: {d.root}/other}}, {{path: {d.root}/inbox}}]\n")
        (d.root / "other").mkdir()
        faults = control.Faults(d.root / "faults", BIN / "pbfault.so")
        d.start(env=faults.environment())
        self.drop(d, 5)
        first, = self.done(d, 1)
        rule = faults.rule("fsync", control.HANG, role="daemon", path=f"{d.root}/inbox")  # the file is in work/, its job is not stored
        self.drop(d, 12)
        wait_for(lambda: faults.counts(rule)[1])
        self.kill(d)
        d.start()
        second = self.done(d, 2)[1]
        self.assertIn("belonged to no job and is job", d.log_text())
        self.assertEqual((self.of(d), second["replaces"], second["delivered"]), ([5, 12], first["id"], [str(d.root / "inbox" / self.name(12))]))

    def test_repeated_kills_lose_no_file_shrink_no_product(self):
        d = self.service()
        self.drop(d, 2)
        self.done(d, 1)
        reader = self.reader(d)
        rng = random.Random(11)
        for day in (30, 7, 21, 14, 25):
            self.drop(d, day)
            time.sleep(rng.uniform(0, 0.6))
            self.kill(d)
            d.start()
        d.wait_for(lambda: not d.files("inbox") and not d.jobs(status=["accepted", "running"]))
        d.wait_for(lambda: self.is_of(d, [2, 7, 14, 21, 25, 30]))
        self.assertEqual(self.mean(d), [1650])
        self.assertEqual(reader.end(), [])
        self.assertEqual(d.files("quarantine"), [])
        self.assertEqual(len(self.archived(d)), 6)


if __name__ == "__main__":
    pbtest.main(workers=3)
