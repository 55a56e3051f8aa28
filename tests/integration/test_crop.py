#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Scenes outside of the area of their pipeline, in a real service with real workers."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from daemon_kit import BIN, DaemonCase, main, wait_for  # noqa: E402

AREA = """pipelines:
  area:
    input: {match: ["*.tif"], bands: {R: 1}}
    steps:
      - crop: {bounds: [-71, -34, -70, -33], crs: EPSG:4326}
    products:
      - cog: {bands: [R], type: float32}
      - stac: {datetime: file-time}
"""


class Crop(DaemonCase):
    def test_scene_outside_is_skipped_and_archived(self):
        d = self.daemon(fake=False, start=False, settle="50ms")
        text = d.config.read_text()
        d.config.write_text(text[:text.index("pipelines:")] + AREA)
        d.start()
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
    main()
