#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: sanitized
"""Older products that are the input's own after its pipeline has begun to read other files of a folder: those whose files have
the same checksums. By `pushbroom run` and by the service."""
import json
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import numpy as np  # noqa: E402
import pbtest  # noqa: E402
from daemon_kit import DaemonCase  # noqa: E402
from test_scenes import small, small_folder  # noqa: E402

RN = "{R: B04.tif, N: B08.tif}"
ALL = "{R: B04.tif, N: B08.tif, SCL: {match: SCL.tif, resample: nearest, scale: 1}}"
MASKED = '"where(SCL > 5, (N - R) / (N + R), 0/0)"'
PLAIN = '"(N - R) / (N + R)"'
NAME = "S2X_a_L2A"


def pipeline(files=RN, formula=PLAIN, name="s2", more="", exists="refuse", path="{scene}/{pipeline}"):
    return f"""
  {name}:
    input:
      scene: "S2?_*_L2A/"
      files: {files}
{more}
    steps:
      - math: {{bands: {{X: {formula}}}}}
    products:
      - cog: {{bands: [X], type: float32}}
    output: {{exists: {exists}, path: "{path}"}}
"""


class Run(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="pb-"))
        self.addCleanup(shutil.rmtree, self.root)
        self.folder = small_folder(self.root)

    def compute(self, *pipelines, code=0, more=()):
        path = self.root / "c.yaml"
        path.write_text("pipelines:" + "".join(pipelines))
        done = pbtest.run("pushbroom", "run", "--json", "-c", path, "-o", self.root / "out", *more, self.folder, code=None)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return json.loads(done.stdout.splitlines()[0])

    def read_files(self, name="s2"):
        manifest = json.loads((self.root / "out" / NAME / name / ".pushbroom.json").read_text())
        return sorted(f["file"] for f in manifest["input"]["files"])

    def test_folder_with_one_more_file_replaces_its_own(self):
        self.compute(pipeline())
        self.assertEqual(self.read_files(), ["B04.tif", "B08.tif"])
        self.compute(pipeline(ALL, MASKED))
        self.assertEqual(self.read_files(), ["B04.tif", "B08.tif", "SCL.tif"])
        self.compute(pipeline())  # and with one less again
        self.assertEqual(self.read_files(), ["B04.tif", "B08.tif"])
        self.assertEqual([p.name for p in (self.root / "out").iterdir()], [NAME])

    def test_added_metadata_leave_the_products_its_own(self):
        text = (pbtest.SOURCE / "tests/data/metadata/S2A_N0212_MTD_MSIL2A.xml").read_text()
        (self.folder / "MTD_MSIL2A.xml").write_text(text.replace("T07HFE", "T32TMK"))
        self.compute(pipeline())
        self.compute(pipeline(more="      metadata: MTD_MSIL2A.xml"))
        self.assertEqual(self.read_files(), ["B04.tif", "B08.tif", "MTD_MSIL2A.xml"])

    def test_version_makes_no_second_place_for_its_own(self):
        self.compute(pipeline(exists="version"))
        self.compute(pipeline(ALL, MASKED, exists="version"))
        self.assertEqual([p.name for p in (self.root / "out").iterdir()], [NAME])

    def test_place_without_a_pipeline_directory_is_its_own(self):
        self.compute(pipeline(path="p/{scene}"))
        self.compute(pipeline(ALL, MASKED, path="p/{scene}"))

    def test_pipelines_reading_other_files_share_the_scene(self):
        self.compute(pipeline(), pipeline(ALL, MASKED, "other"), more=("-p", "s2"))
        self.compute(pipeline(), pipeline(ALL, MASKED, "other"), more=("-p", "other"))
        self.compute(pipeline(), pipeline(ALL, MASKED, "other"), more=("-p", "s2"))
        self.assertEqual(self.read_files("other"), ["B04.tif", "B08.tif", "SCL.tif"])

    def test_another_kind_of_checksum_is_no_other_content(self):
        self.compute(pipeline())
        self.compute(pipeline(ALL, MASKED).replace("output: {", "output: {checksum: blake3, "))

    def test_other_content_is_refused_with_differing_file(self):
        self.compute(pipeline())
        path = self.folder / "B08.tif"
        array = np.full((64, 64), 7, np.uint16)
        path.unlink()
        small(path, array)
        error = self.compute(pipeline(ALL, MASKED), code=1)["error"]
        self.assertEqual(error["code"], "output.exists")
        self.assertIn("'B08.tif' has other content", error["message"])
        self.assertEqual(self.read_files(), ["B04.tif", "B08.tif"])

    def test_same_size_with_other_bytes_is_refused(self):
        self.compute(pipeline())
        raw = bytearray((self.folder / "B08.tif").read_bytes())
        raw[-1] ^= 1
        (self.folder / "B08.tif").write_bytes(raw)
        error = self.compute(pipeline(ALL, MASKED), code=1)["error"]
        self.assertIn("'B08.tif' has other content", error["message"])

    def test_input_without_a_common_file_is_another(self):
        self.compute(pipeline("{R: B04.tif}", '"R"'))
        error = self.compute(pipeline("{N: B08.tif}", '"N"'), code=1)["error"]
        self.assertIn("without any of its files", error["message"])

    def test_dry_run_says_what_lies_there(self):
        self.compute(pipeline())
        path = self.root / "c.yaml"
        path.write_text("pipelines:" + pipeline(ALL, MASKED))
        done = pbtest.run("pushbroom", "run", "--dry-run", "--json", "-c", path, "-o", self.root / "out", self.folder)
        self.assertEqual(json.loads(done.stdout)["plan"]["there"], "alike")


class Loose(unittest.TestCase):
    """Loose files of a scene: products of files that a new set lacks are preserved."""

    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="pb-"))
        self.addCleanup(shutil.rmtree, self.root)
        (self.root / "loose").mkdir()
        for path in small_folder(self.root).iterdir():
            path.rename(self.root / "loose" / f"{NAME}_{path.name}")

    def compute(self, *pipelines, code=0, existing="replace", more=()):
        path = self.root / "c.yaml"
        path.write_text("".join(["pipelines:", *pipelines]).replace('scene: "S2?_*_L2A/"', "group: '(?<scene>S2X_.*_L2A)_.*'")
                        .replace("B04.tif", '"*_B04.tif"').replace("B08.tif", '"*_B08.tif"').replace("SCL.tif", '"*_SCL.tif"'))
        done = pbtest.run("pushbroom", "run", "--json", "-c", path, "-o", self.root / "out", "--existing", existing, *more,
                          self.root / "loose" / f"{NAME}_B04.tif", code=None)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return json.loads(done.stdout.splitlines()[0])

    def test_pipeline_that_reads_fewer_files_replaces(self):
        for existing in ("replace", "refuse"):
            self.compute(pipeline(ALL, MASKED), existing=existing)
            self.compute(pipeline(), existing=existing)
            manifest = json.loads((self.root / "out" / NAME / "s2/.pushbroom.json").read_text())
            self.assertEqual([f["file"] for f in manifest["input"]["files"]], [f"{NAME}_B04.tif", f"{NAME}_B08.tif"])

    def test_set_without_a_file_of_products_is_refused(self):
        self.compute(pipeline(ALL, MASKED))
        (self.root / "loose" / f"{NAME}_SCL.tif").unlink()
        error = self.compute(pipeline(), code=1)["error"]
        self.assertEqual(error["code"], "output.exists")
        self.assertIn(f"lacks '{NAME}_SCL.tif'", error["message"])

    def test_other_pipeline_of_a_smaller_set_is_beside(self):
        both = pipeline(ALL, MASKED), pipeline(name="other")
        self.compute(*both, existing="refuse", more=("-p", "s2"))
        (self.root / "loose" / f"{NAME}_SCL.tif").unlink()
        self.compute(*both, existing="refuse", more=("-p", "other"))
        self.assertEqual(sorted(p.name for p in (self.root / "out" / NAME).iterdir() if p.is_dir()), ["other", "s2"])


class Served(DaemonCase):
    def test_service_folder_of_more_files_replaces_its_own(self):
        d = self.daemon(fake=False, start=False)
        head = d.config.read_text().partition("pipelines:")[0] + "pipelines:"
        d.config.write_text(head + pipeline())
        d.start()
        (d.root / "made").mkdir()
        folder = small_folder(d.root / "made")
        first = d.call("job.submit", input=str(folder))
        d.wait_for(lambda: d.call("job.get", id=first["id"])["status"] == "successful")
        d.config.write_text(head + pipeline(ALL, MASKED))
        d.process.send_signal(signal.SIGHUP)
        d.wait_for(lambda: "reload" in d.log_text())
        second = d.call("job.submit", input=str(folder))
        d.wait_for(lambda: d.call("job.get", id=second["id"])["status"] in ("successful", "failed"))
        job = d.call("job.get", id=second["id"])
        self.assertEqual(job["status"], "successful", job["error"])
        manifest = json.loads((d.root / "products" / NAME / "s2/.pushbroom.json").read_text())
        self.assertEqual((manifest["job"], len(manifest["input"]["files"])), (second["id"], 3))


if __name__ == "__main__":
    pbtest.main(workers=3)
