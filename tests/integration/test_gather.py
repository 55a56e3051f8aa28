#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: sanitized
"""Loose files of the inbox that make a scene together (input.group): when they are taken as one, in which order they may
arrive, missing, late and repeated files, and a service that is killed in between. Real workers."""
import errno
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "proof")]
import numpy as np  # noqa: E402
from osgeo import gdal, osr  # noqa: E402

import control  # noqa: E402
import pbtest  # noqa: E402
from daemon_kit import BIN, DaemonCase, wait_for  # noqa: E402
from test_scenes import LANDSAT, landsat, small_folder  # noqa: E402


def stack(path):
    """Four bands of 16 bits."""
    out = gdal.GetDriverByName("GTiff").Create(str(path), 64, 48, 4, gdal.GDT_UInt16)
    out.SetGeoTransform((500000.0, 3.0, 0, 4000000.0, 0, -3.0))
    system = osr.SpatialReference()
    system.ImportFromEPSG(32632)
    out.SetProjection(system.ExportToWkt())
    for i in range(4):
        out.GetRasterBand(i + 1).WriteArray(np.full((48, 64), 1000 + 100 * i, np.uint16))


PARTS = ("B04", "B08", "SCL")
PIPELINES = """
pipelines:
  every:
    input: {match: ["*.tif"]}
    products: [statistics: {}]
  s2:
    input:
      group: '(?<scene>S2._[a-z0-9]+)_(B\\d\\d|SCL)\\.tif'
      files: {R: "{scene}_B04.tif", N: "{scene}_B08.tif", SCL: {match: "{scene}_SCL.tif", resample: nearest}}
      complete: {expire: EXPIRE}
    steps:
      - math: {bands: {X: "N - R + SCL"}}
    products:
      - cog: {bands: [X], type: float32}
"""


class Sets(DaemonCase):
    def service(self, expire="1h", start=True, env=None, **settings):
        d = self.daemon(fake=False, start=False, **settings)
        d.set_pipelines(PIPELINES.replace("EXPIRE", expire))
        (d.root / "made").mkdir()
        return d.start(env=env) if start else d

    def reload(self, d, before, after):
        """Files that arrive from now on meet the changed configuration."""
        n = d.log_text().count("is in use")
        d.change(before, after)
        d.process.send_signal(signal.SIGHUP)
        wait_for(lambda: d.log_text().count("is in use") > n)

    def made(self, d, scene="S2X_a"):
        """Its files under their loose names, next to the inbox."""
        folder = d.root / "made" / scene
        if not folder.exists():
            small_folder(d.root / "made", scene)
            for part in PARTS:
                os.rename(folder / f"{part}.tif", folder / f"{scene}_{part}.tif")
        return folder

    def drop(self, d, scene="S2X_a", parts=PARTS):
        for part in parts:
            source = self.made(d, scene) / f"{scene}_{part}.tif"
            shutil.copyfile(source, d.root / "made/next")
            os.rename(d.root / "made/next", d.root / "inbox" / source.name)

    def settled(self, d):
        """A later file was processed to its end, three times: earlier files that could be taken have been."""
        for i in range(3):
            name = f"probe{time.monotonic_ns()}.tif"
            shutil.copyfile(self.made(d, "S2X_probe") / "S2X_probe_SCL.tif", d.root / "made/next")
            os.rename(d.root / "made/next", d.root / "inbox" / name)
            d.wait_job(name, "successful")

    def scenes(self, d):
        return [j for j in d.jobs(limit=1000) if not j["name"].startswith("probe")]

    def gathering(self, d):
        return d.call("service.info")["gathering"]

    def names(self, scene="S2X_a", parts=PARTS):
        return [f"{scene}_{p}.tif" for p in parts]


class Taking(Sets):
    def test_files_become_one_job_and_one_archive_folder(self):
        d = self.service()
        self.drop(d)
        job = d.wait_job("S2X_a", "successful")
        self.assertEqual((job["pipeline"], len(self.scenes(d))), ("s2", 1))
        self.assertEqual(job["delivered"], [str(d.root / "inbox" / n) for n in self.names()])
        said = subprocess.run([BIN / "pushbroom", "status", "--socket", d.root / "s.sock", job["id"]], stdout=subprocess.PIPE, text=True).stdout
        self.assertIn(f"delivered  {d.root}/inbox/S2X_a_B04.tif\n             {d.root}/inbox/S2X_a_B08.tif", said)
        self.assertEqual(d.files("inbox"), [])
        self.assertEqual([f for f in d.files("work") if "S2X" in f], ["done/S2X_a"] + [f"done/S2X_a/{n}" for n in self.names()])
        manifest = json.loads((d.root / "products/S2X_a/s2/.pushbroom.json").read_text())
        self.assertEqual(manifest["job"], job["id"])
        self.assertEqual(sorted(os.listdir(d.root / "work")), ["." + "pushbroomd.lock", "done"])

    def test_any_order_and_any_pace(self):
        d = self.service()
        orders = [("SCL", "B08", "B04"), ("B08", "SCL", "B04"), ("B04", "SCL", "B08")]
        for i, order in enumerate(orders):
            self.drop(d, f"S2X_{i}", order[:1])
        self.settled(d)
        for i, order in enumerate(orders):
            self.drop(d, f"S2X_{i}", order[1:2])
        self.settled(d)
        self.assertEqual(self.scenes(d), [])
        self.assertEqual(sorted((s["scene"], s["files"]) for s in self.gathering(d)), [("S2X_0", 2), ("S2X_1", 2), ("S2X_2", 2)])
        for i, order in enumerate(orders):
            self.drop(d, f"S2X_{i}", order[2:])
        for i in range(3):
            d.wait_job(f"S2X_{i}", "successful")
        self.assertEqual(len(self.scenes(d)), 3)
        wait_for(lambda: self.gathering(d) == [])

    def test_status_says_what_is_missing(self):
        d = self.service()
        self.drop(d, parts=("B04", "SCL"))
        told, = wait_for(lambda: [one for one in self.gathering(d) if one["files"] == 2])
        self.assertEqual((told["scene"], told["pipeline"]), ("S2X_a", "s2"))
        self.assertIn("1 of 3 files of the scene is missing: band N (S2X_a_B08.tif)", told["missing"])
        said = subprocess.run([BIN / "pushbroom", "status", "--socket", d.root / "s.sock"], stdout=subprocess.PIPE, text=True).stdout
        self.assertIn("gathers  S2X_a: 1 of 3 files", said)
        self.assertIn(told["expires"], " ".join(said.split()))
        self.assertEqual(d.call("service.info")["inbox_waiting"], 2)

    def test_a_file_that_is_written_slowly_is_waited_for(self):
        d = self.service()
        self.drop(d, parts=("B04", "SCL"))
        whole = (self.made(d) / "S2X_a_B08.tif").read_bytes()
        with open(d.root / "inbox/S2X_a_B08.tif", "wb") as file:
            file.write(whole[:100])
            file.flush()
            os.utime(file.fileno(), (1e9, 1e9))
            self.settled(d)
            self.assertEqual(self.scenes(d), [])
            file.write(whole[100:])
        d.wait_job("S2X_a", "successful")

    def test_files_that_no_band_is_travel_along(self):
        d = self.service()
        (d.root / "inbox/S2X_a_B02.tif").write_bytes(b"this is no image")
        self.drop(d)
        d.wait_job("S2X_a", "successful")
        self.assertIn("done/S2X_a/S2X_a_B02.tif", d.files("work"))

    def test_the_landsat_sample_runs_as_it_stands(self):
        d = self.daemon(fake=False, start=False)
        d.set_pipelines((pbtest.SOURCE / "samples/landsat-c2-l2.yaml").read_text())
        d.start()
        (d.root / "made").mkdir()
        for path in reversed(landsat(d.root / "made")):
            os.rename(path, d.root / "inbox" / path.name)
        job = d.wait_job(LANDSAT, "successful")
        self.assertEqual({p["type"] for p in job["products"]}, {"cog", "quicklook", "statistics", "stac"})
        self.assertIn(f"done/{LANDSAT}/{LANDSAT}_MTL.txt", d.files("work"))


class Missing(Sets):
    def test_incomplete_set_is_quarantined_and_retryable(self):
        d = self.service()
        self.drop(d, parts=("B04", "B08"))
        wait_for(lambda: [one for one in self.gathering(d) if one["files"] == 2])
        self.reload(d, "expire: 1h", "expire: 1s")
        job = d.wait_job("S2X_a", "failed")
        self.assertEqual(job["error"]["code"], "input.incomplete")
        self.assertIn("1 of 3 files of the scene is missing: band SCL (S2X_a_SCL.tif)", job["error"]["message"])
        for remedy in ("deliver all files of the scene again", "add these to its folder in quarantine and 'pushbroom quarantine retry JOB'"):
            self.assertIn(remedy, job["error"]["hint"])
        wait_for(lambda: [f for f in d.files("quarantine") if "S2X" in f] ==
                 ["S2X_a", "S2X_a.error.json"] + [f"S2X_a/{n}" for n in self.names(parts=("B04", "B08"))])
        self.assertEqual(d.files("inbox"), [])
        shutil.copyfile(self.made(d) / "S2X_a_SCL.tif", d.root / "quarantine/S2X_a/S2X_a_SCL.tif")
        d.call("job.retry", id=job["id"])
        d.wait_job("S2X_a", "successful")
        self.assertEqual(d.files("quarantine"), [])

    def test_set_delivered_again_after_its_wait(self):
        d = self.service()
        self.drop(d, parts=("B04", "B08"))
        wait_for(lambda: [one for one in self.gathering(d) if one["files"] == 2])
        self.reload(d, "expire: 1h", "expire: 1s")
        d.wait_job("S2X_a", "failed")
        wait_for(lambda: "S2X_a/S2X_a_B04.tif" in d.files("quarantine"))
        self.reload(d, "expire: 1s", "expire: 1h")
        self.drop(d)
        d.wait_job("S2X_a", "successful")
        self.assertIn("S2X_a/S2X_a_B04.tif", d.files("quarantine"))

    def test_late_file_makes_no_scene_and_is_kept(self):
        d = self.service()
        self.drop(d)
        d.wait_job("S2X_a", "successful")
        self.reload(d, "expire: 1h", "expire: 1s")
        self.drop(d, parts=("B04",))
        job = d.wait_job("S2X_a", "failed")
        self.assertEqual(job["error"]["code"], "input.incomplete")
        wait_for(lambda: "S2X_a/S2X_a_B04.tif" in d.files("quarantine"))
        self.assertEqual(len(self.scenes(d)), 2)

    def test_set_delivered_twice_replaces_its_own_products(self):
        d = self.service()
        self.drop(d)
        first = d.wait_job("S2X_a", "successful")
        self.drop(d)
        d.wait_for(lambda: len([j for j in self.scenes(d) if j["status"] == "successful"]) == 2)
        second = [j for j in self.scenes(d) if j["id"] != first["id"]][0]
        self.assertEqual(second["products"][0]["path"], first["products"][0]["path"])
        self.assertTrue({"done/S2X_a", "done/S2X_a.1"} <= set(d.files("work")))

    def test_replaced_file_uses_last_version(self):
        d = self.service()
        self.drop(d, parts=("B04", "SCL"))
        (d.root / "inbox/S2X_a_B04.tif").write_bytes(b"rubbish")
        self.settled(d)
        self.drop(d, parts=("B04", "B08"))
        d.wait_job("S2X_a", "successful")

    def test_a_hard_link_stays_and_the_set_waits(self):
        d = self.service()
        self.drop(d, parts=("B04", "B08"))
        path = self.made(d) / "S2X_a_SCL.tif"
        os.link(path, d.root / "inbox" / path.name)
        self.settled(d)
        self.assertEqual(self.scenes(d), [])
        path.unlink()
        d.wait_job("S2X_a", "successful")


class Restarts(Sets):
    def hung(self, part, call="rename", **more):
        """A service that hangs in the claim, before the rename of one of the files, or another call."""
        if pbtest.SANITIZED:
            self.skipTest("the shim of failing calls does not go together with a sanitizer")
        d = self.service(start=False, **more)
        faults = control.Faults(d.root / "faults", BIN / "pbfault.so")
        rule = faults.rule(call, control.HANG, role="daemon", path=part)
        d.start(env=faults.environment())
        self.drop(d)
        wait_for(lambda: faults.counts(rule)[1])
        return d

    def kill(self, d):
        d.process.send_signal(signal.SIGKILL)
        d.process.wait()

    def test_kill_between_claims_of_two_files_loses_none(self):
        d = self.hung("S2X_a_B08.tif")
        self.kill(d)
        staged = [f for f in d.files("work") if f.endswith(".tif")]
        self.assertEqual([f.split("/")[-1] for f in staged], ["S2X_a_B04.tif"], "one of three is moved")
        d.start()
        d.wait_job("S2X_a", "successful")
        self.assertEqual(len(self.scenes(d)), 1)
        self.assertEqual(sorted(os.listdir(d.root / "work")), [".pushbroomd.lock", "done"])

    def test_a_kill_before_the_folder_has_its_place(self):
        d = self.hung(".gather/S2X_a", "fsync")
        self.kill(d)
        d.start()
        d.wait_job("S2X_a", "successful")
        self.assertEqual(len(self.scenes(d)), 1)

    def test_a_kill_when_the_file_has_come_again_meanwhile(self):
        d = self.hung("S2X_a_B08.tif")
        self.kill(d)
        self.drop(d, parts=("B04",))
        d.start()
        d.wait_job("S2X_a", "successful")
        failed = d.wait_job("S2X_a", "failed")
        self.assertEqual(failed["error"]["code"], "input.incomplete")
        wait_for(lambda: "S2X_a/S2X_a_B04.tif" in d.files("quarantine"))
        self.assertEqual([f.split("/")[-1] for f in d.files("work") if f.endswith(".tif")], self.names())

    def test_stored_set_claimed_by_dead_service_is_adopted(self):
        d = self.service(start=False)
        claim = d.root / "work/20261121-081530-4f2a"
        claim.mkdir(parents=True)
        os.rename(self.made(d), claim / "S2X_a")
        left = d.root / "work/20261121-081530-4f2a.gather"
        left.mkdir()
        (left / ".from").symlink_to(d.root / "inbox")
        d.start()
        self.assertEqual(d.wait_job("S2X_a", "successful")["id"], claim.name)
        self.assertFalse(left.exists())

    def test_hidden_scene_name_is_no_scene_and_keeps_files(self):
        d = self.service(start=False)
        d.change("(?<scene>S2._[a-z0-9]+)", "S2(?<scene>[^_]+_[a-z0-9]+)")
        d.change("{scene}_", "S2{scene}_")
        left = d.root / "work/20261121-081530-4f2a.gather"  # a claim of a service that took it for one
        (left / ".X_a").mkdir(parents=True)
        (left / ".from").symlink_to(d.root / "inbox")
        shutil.copyfile(self.made(d, "S2X_a") / "S2X_a_SCL.tif", left / ".X_a/S2.X_a_SCL.tif")
        d.start()
        self.assertEqual(d.wait_job("S2.X_a_SCL.tif", "successful")["pipeline"], "every")
        self.assertFalse(left.exists())

    def test_files_of_dead_service_follow_no_sender_link(self):
        d = self.service(start=False)
        left = d.root / "work/20261121-081530-4f2a.gather"
        (left / "S2X_a").mkdir(parents=True)
        (left / ".from").symlink_to(d.root / "inbox/sub")
        shutil.copyfile(self.made(d) / "S2X_a_B04.tif", left / "S2X_a/S2X_a_B04.tif")
        (d.root / "elsewhere").mkdir()
        (d.root / "inbox/sub").symlink_to(d.root / "elsewhere")
        d.start()
        self.assertEqual(d.wait_job("S2X_a", "failed")["error"]["code"], "input.incomplete")
        d.wait_for(lambda: "S2X_a/S2X_a_B04.tif" in d.files("quarantine"))
        self.assertEqual(d.files("elsewhere"), [])

    def test_repeatedly_killed_service_loses_no_file(self):
        d = self.service()
        rng = random.Random(7)
        pending = [(f"S2X_{i}", part) for i in range(4) for part in PARTS]
        rng.shuffle(pending)
        for n, (scene, part) in enumerate(pending):
            self.drop(d, scene, (part,))
            if n % 3 == 2:
                time.sleep(rng.uniform(0, 0.4))
                self.kill(d)
                d.start()
        d.wait_for(lambda: len([j for j in self.scenes(d) if j["status"] == "successful"]) == 4)
        self.assertEqual(len(self.scenes(d)), 4)
        self.assertEqual(d.files("inbox") + d.files("quarantine"), [])

    def test_a_reload_that_changes_the_expression(self):
        d = self.service()
        self.drop(d, parts=("B04", "SCL"))
        wait_for(lambda: self.gathering(d))
        self.reload(d, "S2._[a-z0-9]+", "S2Y_[a-z0-9]+")
        for name in self.names(parts=("B04", "SCL")):  # they are files like any other now
            self.assertEqual(d.wait_job(name, "successful")["pipeline"], "every")
        self.assertEqual(self.gathering(d), [])
        self.reload(d, "S2Y_[a-z0-9]+", "S2._[a-z0-9]+")
        self.drop(d)
        d.wait_job("S2X_a", "successful")

    def test_a_rename_that_fails_gives_the_files_back(self):
        if pbtest.SANITIZED:
            self.skipTest("the shim of failing calls does not go together with a sanitizer")
        d = self.service(start=False)
        faults = control.Faults(d.root / "faults", BIN / "pbfault.so")
        rule = faults.rule("rename", control.FAIL_ALL, role="daemon", error=5, path=".gather/S2X_a/S2X_a_SCL.tif")
        d.start(env=faults.environment())
        self.drop(d)
        d.wait_trouble("intake", "S2X_a_SCL.tif")
        wait_for(lambda: d.files("inbox") == self.names())
        self.assertFalse([f for f in d.files("work") if "S2X" in f])
        faults.set_mode(rule, control.OFF)
        d.process.send_signal(signal.SIGHUP)
        d.wait_job("S2X_a", "successful")
        self.assertEqual(len(self.scenes(d)), 1)

    def waiting_set(self):
        """A set whose job ran when the service was killed, and whose pipeline has another name since."""
        if pbtest.SANITIZED:
            self.skipTest("the shim of failing calls does not go together with a sanitizer")
        d = self.service(start=False)
        faults = control.Faults(d.root / "faults", BIN / "pbfault.so")
        rule = faults.rule("open", control.HANG, role="worker", path="S2X_a")
        d.start(env=faults.environment())
        self.drop(d)
        wait_for(lambda: faults.counts(rule)[1])
        self.kill(d)
        faults.clear()
        d.change("  s2:\n", "  renamed:\n")
        return d, faults

    def test_set_without_pipeline_waits_for_descriptors(self):
        d, faults = self.waiting_set()
        rule = faults.rule("open", control.FAIL_ALL, role="daemon", error=errno.EMFILE, path="/S2X_a")
        d.start(env=faults.environment())
        d.wait_trouble("queue")
        self.assertEqual(d.trouble("queue")["code"], "system.files")
        self.assertEqual(d.files("quarantine"), [])
        faults.set_mode(rule, control.OFF)
        self.assertEqual(d.wait_job("S2X_a", "successful")["pipeline"], "renamed")
        wait_for(lambda: not d.trouble("queue"))

    def test_set_without_pipeline_reports_limit(self):
        d, _ = self.waiting_set()
        [folder] = (d.root / "work").glob("*/S2X_a")
        folder.joinpath(*9 * ["d"]).mkdir(parents=True)
        d.start()
        self.assertEqual(d.wait_job("S2X_a", "failed")["error"]["code"], "input.limit")


PLANET = "20170831_172754_101c_3B_AnalyticMS"


class Beside(Sets):
    """A scene of one file, and what belongs to it."""

    def planets(self, expire="1h", sidecars=""):
        d = self.daemon(fake=False, start=False)
        sample = (pbtest.SOURCE / "samples/planetscope-toa.yaml").read_text()
        sample = sample.replace("      nodata: 0\n", f"      nodata: 0\n      complete: {{expire: {expire}}}\n")
        d.set_pipelines(sample + f"  every: {{input: {{match: [\"*.tif\"]{sidecars}}}, products: [statistics: {{}}]}}\n")
        (d.root / "made").mkdir()
        return d.start()

    def put(self, d, name, source=None):
        if source is None:
            source = d.root / "made/stack.tif"
            if not source.exists():
                stack(source)
        shutil.copyfile(source, d.root / "made/next")
        os.rename(d.root / "made/next", d.root / "inbox" / name)

    def settled(self, d):
        for i in range(3):
            name = f"probe{time.monotonic_ns()}.tif"
            self.put(d, name)
            d.wait_job(name, "successful")

    def metadata(self):
        return pbtest.SOURCE / f"tests/data/metadata/{PLANET}_metadata.xml"

    def test_metadata_are_waited_for_and_go_along(self):
        d = self.planets()
        self.put(d, f"{PLANET}.tif")
        self.settled(d)
        self.assertEqual(self.scenes(d), [])
        told, = self.gathering(d)
        self.assertEqual((told["scene"], told["missing"]), (f"{PLANET}.tif", "its metadata are missing (*_AnalyticMS_metadata@(|_clip).xml)"))
        self.put(d, f"{PLANET}_metadata.xml", self.metadata())
        job = d.wait_job(f"{PLANET}.tif", "successful")
        self.assertEqual((job["scene"], job["pipeline"], len(self.scenes(d))), (PLANET, "planetscope-toa", 1))
        self.assertEqual(d.files("inbox"), [])
        for file in (f"{PLANET}.tif", f"{PLANET}_metadata.xml"):
            self.assertIn(f"done/{PLANET}.tif/{file}", d.files("work"))

    def test_metadata_that_come_first_wait_for_their_scene(self):
        d = self.planets()
        self.put(d, f"{PLANET}_metadata.xml", self.metadata())
        self.settled(d)
        self.assertEqual([s["missing"] for s in self.gathering(d)], ["the file that it is metadata of is missing"])
        self.put(d, f"{PLANET}.tif")
        d.wait_job(f"{PLANET}.tif", "successful")
        self.assertEqual(len(self.scenes(d)), 1)

    def test_what_does_not_come_is_named(self):
        d = self.planets(expire="1s")
        self.put(d, f"{PLANET}.tif")
        error = d.wait_job(f"{PLANET}.tif", "failed")["error"]
        self.assertEqual(error["code"], "input.metadata_missing")
        record = json.loads((d.root / f"quarantine/{PLANET}.tif.error.json").read_text())
        self.assertEqual(record["delivered"], [str(d.root / f"inbox/{PLANET}.tif")])
        self.assertIn("_AnalyticMS_metadata", error["message"])
        self.put(d, f"{PLANET}_metadata.xml", self.metadata())
        error = d.wait_job(f"{PLANET}_metadata.xml", "failed")["error"]
        self.assertEqual(error["code"], "input.incomplete")
        self.assertIn("metadata belong to (input.metadata of pipeline planetscope-toa) did not arrive", error["message"])
        d.wait_for(lambda: {f"{PLANET}.tif", f"{PLANET}_metadata.xml"} <= set(d.files("quarantine")))

    def test_failed_file_is_retried_with_its_metadata(self):
        d = self.planets()
        (d.root / "made/wrong").write_text(self.metadata().read_text().replace("reflectanceCoefficient", "somethingElse"))
        self.put(d, f"{PLANET}_metadata.xml", d.root / "made/wrong")
        self.put(d, f"{PLANET}.tif")
        job = d.wait_job(f"{PLANET}.tif", "failed")
        d.wait_for(lambda: f"{PLANET}.tif/{PLANET}_metadata.xml" in d.files("quarantine"))
        self.assertIn(f"{PLANET}.tif.error.json", d.files("quarantine"))
        shutil.copyfile(self.metadata(), d.root / f"quarantine/{PLANET}.tif/{PLANET}_metadata.xml")
        d.call("job.retry", id=job["id"])
        d.wait_job(f"{PLANET}.tif", "successful")
        self.assertEqual(d.files("quarantine"), [])

    def test_single_file_that_cannot_be_taken_waits(self):
        d = self.planets(expire="1s")
        os.rename(d.root / "work", d.root / "away")
        self.put(d, f"{PLANET}.tif")
        d.wait_trouble("intake")
        self.assertEqual(d.call("service.info")["inbox_waiting"], 1)
        os.rename(d.root / "away", d.root / "work")
        self.assertEqual(d.wait_job(f"{PLANET}.tif", "failed")["error"]["code"], "input.metadata_missing")
        wait_for(lambda: not d.trouble("intake"))

    def test_a_dead_service_had_claimed_it(self):
        d = self.planets()
        d.stop(signal.SIGKILL)
        claim = d.root / f"work/20261121-081530-4f2a/{PLANET}.tif"
        claim.mkdir(parents=True)
        self.put(d, f"{PLANET}.tif")
        os.rename(d.root / f"inbox/{PLANET}.tif", claim / f"{PLANET}.tif")
        shutil.copyfile(self.metadata(), claim / f"{PLANET}_metadata.xml")
        d.start()
        job = d.wait_job(f"{PLANET}.tif", "successful")
        self.assertEqual((job["id"], job["pipeline"]), ("20261121-081530-4f2a", "planetscope-toa"))

    def test_sidecars_are_never_jobs_of_their_own(self):
        d = self.planets()
        for name in ("a.tif.aux.xml", "a.tfw", "b_RPC.TXT"):
            (d.root / "inbox" / name).write_text("x")
        self.settled(d)
        self.assertEqual(self.scenes(d), [])
        self.assertEqual(sorted(s["scene"] for s in self.gathering(d)), ["a.tfw", "a.tif.aux.xml", "b_RPC.TXT"])
        d.wait_for(lambda: "inbox: b_RPC.TXT stays: the file that it belongs to is not here" in d.log_text())
        self.assertEqual(d.call("service.info")["inbox_waiting"], 0)
        self.put(d, "a.tif")
        d.wait_job("a.tif", "successful")
        self.assertEqual([f for f in d.files("work") if f.startswith("done/a")],
                         ["done/a.tif", "done/a.tif/a.tfw", "done/a.tif/a.tif", "done/a.tif/a.tif.aux.xml"])
        self.assertEqual(d.files("inbox"), ["b_RPC.TXT"])
        d.wait_for(lambda: "a.tfw is next to the scene and is not read: see input.sidecars of pipeline every" in d.log_text())

    def test_listed_sidecars_are_read_with_the_inbox_file(self):
        d = self.planets(sidecars=", sidecars: [.msk]")
        self.put(d, "a.tif")
        out = gdal.GetDriverByName("GTiff").Create(str(d.root / "made/a.tif.msk"), 64, 48, 1, gdal.GDT_Byte)
        out.SetMetadataItem("INTERNAL_MASK_FLAGS_1", "2")
        half = np.full((48, 64), 255, np.uint8)
        half[:, :32] = 0
        out.GetRasterBand(1).WriteArray(half)
        del out
        os.rename(d.root / "made/a.tif.msk", d.root / "inbox/a.tif.msk")
        job = d.wait_job("a.tif", "successful")
        self.assertEqual(job["report"]["sidecars"], {"read": ["a.tif.msk"], "unused": []})
        told = json.loads(open(job["products"][0]["path"]).read())
        self.assertEqual({b["valid_percent"] for b in told["bands"]}, {50.0})
        said = subprocess.run([BIN / "pushbroom", "status", "--socket", d.root / "s.sock", job["id"]], stdout=subprocess.PIPE, text=True).stdout
        self.assertIn("sidecars   a.tif.msk", said)


if __name__ == "__main__":
    pbtest.main(workers=3)
