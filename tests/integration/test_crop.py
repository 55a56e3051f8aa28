#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: sanitized
"""Scenes outside of the area of their pipeline, in a real service with real workers."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from daemon_kit import BIN, DaemonCase, wait_for  # noqa: E402
from pbtest import main  # noqa: E402

AREA = """pipelines:
  area:
    input: {match: ["*.tif"], bands: {R: 1}}
    steps:
      - crop: {%s}
    products:
      - cog: {bands: [R], type: float32}
      - stac: {datetime: file-time}
"""


class Crop(DaemonCase):
    def service(self, area):
        d = self.daemon(fake=False, start=False, settle="50ms")
        d.set_pipelines(AREA % area)
        return d.start()

    def test_polygons_are_read_by_a_confined_worker(self):
        d = self.service("polygons: area.geojson")
        subprocess.run([str(BIN / "make_scene"), "--size", "64x64", str(d.root / "scene.tif")], check=True, stdout=subprocess.DEVNULL)
        corners = subprocess.run(["gdalinfo", "-json", str(d.root / "scene.tif")], stdout=subprocess.PIPE, check=True).stdout
        ring = json.loads(corners)["wgs84Extent"]["coordinates"][0]
        middle = [sum(p[k] for p in ring[:4]) / 4 for k in (0, 1)]
        half = [[(p[0] + middle[0]) / 2, (p[1] + middle[1]) / 2] for p in ring]
        (d.root / "area.geojson").write_text(json.dumps({"type": "Polygon", "coordinates": [half]}))
        os.rename(d.root / "scene.tif", d.root / "inbox/near.tif")
        job = d.call("job.get", id=d.wait_job("near.tif", "successful")["id"])
        self.assertEqual(job["stage"], "done")
        cog = [p["path"] for p in job["products"] if p["type"] == "cog"][0]
        size = json.loads(subprocess.run(["gdalinfo", "-json", cog], stdout=subprocess.PIPE, check=True).stdout)["size"]
        self.assertTrue(all(32 <= n <= 35 for n in size), size)

    def test_scene_outside_is_skipped_and_archived(self):
        d = self.service("bounds: [-71, -34, -70, -33], crs: EPSG:4326")
        subprocess.run([str(BIN / "make_scene"), "--size", "64x64", str(d.root / "scene.tif")], check=True, stdout=subprocess.DEVNULL)
        os.rename(d.root / "scene.tif", d.root / "inbox/far.tif")
        job = d.wait_job("far.tif", "successful")
        whole = d.call("job.get", id=job["id"])
        self.assertEqual((whole["stage"], whole["progress"], whole["products"], whole["error"]), ("skipped", 100, [], None))
        self.assertIn("outside of the bounds", whole["report"]["skipped"])
        wait_for(lambda: (d.root / "work/done/far.tif").exists())
        self.assertEqual(d.files("quarantine"), [])
        self.assertEqual(d.files("products"), [])
        shown = subprocess.run([str(BIN / "pushbroom"), "status", job["id"], "--socket", str(d.root / "s.sock")],
                               stdout=subprocess.PIPE, text=True, check=True).stdout
        self.assertIn("skipped", shown)
        wait_for(lambda: "far.tif skipped, no products" in d.log_text())


if __name__ == "__main__":
    main(workers=3)
