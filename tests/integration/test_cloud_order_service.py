#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: threads
"""input.order: cloud of loose files in the inbox of the service: a file waits for its STAC item, and one that joins later takes its
place by its clouds. Real workers."""
import json
import os
import pathlib
import sys

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__))]
import numpy as np  # noqa: E402
from osgeo import gdal  # noqa: E402

from daemon_kit import DaemonCase  # noqa: E402
from pbtest import main  # noqa: E402
from test_cloud_order import image, item  # noqa: E402

PIPELINE = """
pipelines:
  month:
    input:
      group: 'T1_(?<date>\\d{8})\\.(tif|json)'
      by: "T1_{date:%Y%m}"
      order: cloud
      nodata: 0
      metadata: "*.json"
      files: {A_1: {match: "*.tif", nth: 1}, A_2: {match: "*.tif", nth: 2, optional: true}}
      complete: {expire: EXPIRE, reopen: 90d}
    steps: [mosaic: {bands: [A], of: [_1, _2]}]
    products: [cog: {bands: [A], type: float32}, stac: {}]
"""


class Clouds(DaemonCase):
    def service(self, expire):
        d = self.daemon(fake=False, start=False)
        d.set_pipelines(PIPELINE.replace("EXPIRE", expire))
        (d.root / "made").mkdir()
        return d.start()

    def drop(self, d, day, clouds, item_too=True):
        image(d.root / f"made/T1_202606{day:02}.tif", day)
        item(d.root / f"made/T1_202606{day:02}.json", clouds, day=day)
        with d.paused():  # `expire` is short: they arrive at once
            for suffix in ("json", "tif") if item_too else ("tif",):
                os.rename(d.root / f"made/T1_202606{day:02}.{suffix}", d.root / f"inbox/T1_202606{day:02}.{suffix}")

    def done(self, d, n):
        d.wait_for(lambda: [j["status"] for j in d.jobs()].count("successful") == n)
        job = d.jobs()[0]
        made = gdal.Open(next(p["path"] for p in job["products"] if p["type"] == "cog")).ReadAsArray()
        return [(f["file"], f["cloud_cover"], f["used"]) for f in job["report"]["order"]["files"]], np.unique(made).tolist()

    def test_scene_is_recomputed_when_a_clearer_file_joins(self):
        d = self.service("200ms")
        self.drop(d, 5, 50)
        self.assertEqual(self.done(d, 1), ([("T1_20260605.tif", 50, True)], [5]))
        self.drop(d, 6, 20)
        self.assertEqual(self.done(d, 2), ([("T1_20260606.tif", 20, True), ("T1_20260605.tif", 50, True)], [6]))
        self.drop(d, 7, 10)
        order, made = self.done(d, 3)
        self.assertEqual((order, made), ([("T1_20260607.tif", 10, True), ("T1_20260606.tif", 20, True), ("T1_20260605.tif", 50, False)], [7]))
        item_of = json.loads(next(pathlib.Path(d.jobs()[0]["directory"]).glob("*.json")).read_text())
        self.assertEqual(item_of["properties"]["start_datetime"], "2026-06-06T10:50:31Z")
        self.assertEqual(d.files("quarantine"), [])

    def test_a_file_waits_for_its_item(self):
        d = self.service("1h")
        self.drop(d, 5, 50, item_too=False)
        gathering = d.wait_for(lambda: d.call("service.info").get("gathering"))
        self.assertIn("metadata of T1_20260605.tif (*.json)", json.dumps(gathering))
        self.assertEqual(d.jobs(), [])

    def test_without_its_item_it_goes_to_quarantine(self):
        d = self.service("100ms")
        self.drop(d, 5, 50, item_too=False)
        d.wait_for(lambda: [j for j in d.jobs() if j["status"] == "failed"])
        error = d.jobs()[0]["error"]
        self.assertEqual(error["code"], "input.incomplete")
        self.assertIn("metadata of T1_20260605.tif", error["message"])
        self.assertTrue([f for f in d.files("quarantine") if f.endswith("T1_20260605.tif")])


if __name__ == "__main__":
    main(workers=3)
