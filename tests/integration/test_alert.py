#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: sanitized
"""Alerts of a file by `pushbroom run`: log lines, and a GeoJSON file that agrees with numpy."""
import json

import numpy as np
from osgeo import gdal

import pbtest

gdal.UseExceptions()


def test_alerts_are_logged_and_written(scratch):
    plane = np.full((300, 700), 10, np.uint16)
    plane[100:103, 650:655] = [[90], [95], [91]]
    plane[299, :2] = 80
    ds = gdal.GetDriverByName("GTiff").Create(str(scratch / "a.tif"), 700, 300, 1, gdal.GDT_UInt16)
    ds.GetRasterBand(1).WriteArray(plane)
    ds = None
    (scratch / "c.yaml").write_text("pipelines:\n  p:\n    input: {match: ['*.tif'], bands: {A: 1}}\n"
                                    "    products: [alert: {band: A, above: 50, pixels: 3}]\n")
    done = pbtest.run("pushbroom", "run", "-c", scratch / "c.yaml", "-o", scratch / "out", scratch / "a.tif")
    assert "alert 1: A is 90 at line 100, sample 650; 5 such pixels" in done.stderr, done.stderr
    assert "alert 2" not in done.stderr
    path, = (scratch / "out").rglob("*.alerts.geojson")
    feature, = json.loads(path.read_text())["features"]
    assert feature["geometry"] is None
    want = {"band": "A", "value": 95, "pixels": 15, "line": 101, "sample": 650, "first_line": 100, "last_line": 102, "datetime": None}
    assert feature["properties"] == want


if __name__ == "__main__":
    pbtest.main()
