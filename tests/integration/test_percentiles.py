#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: sanitized
"""Percentiles of statistics, against numpy: exact where they are documented as exact, and within their error elsewhere; the same bytes
whatever the tiles, their order and the threads."""
import json

import numpy as np
from osgeo import gdal

import pbtest

gdal.UseExceptions()
HEAD = "service: {inbox: /i, work: /w, products: /p, quarantine: /q, state: /s, socket: /x.sock}\n"
WANTED = [0, 2, 12.5, 50, 98, 99.9, 100]


def raster(path, planes, kind, nodata):
    ds = gdal.GetDriverByName("GTiff").Create(str(path), planes[0].shape[1], planes[0].shape[0], len(planes), kind)
    for i, plane in enumerate(planes):
        ds.GetRasterBand(i + 1).WriteArray(plane)
        ds.GetRasterBand(i + 1).SetNoDataValue(nodata)


def write(scratch, image, more="", side=512, threads=1, seed=0):
    """The bands of the products."""
    out = scratch / f"out{side}_{threads}_{seed}"
    out.mkdir(exist_ok=True)
    (scratch / "c.yaml").write_text(f"{HEAD}pipelines:\n  p:\n    input: {{match: ['*'], bands: {{A: 1, B: 2}}{more}}}\n"
                                    f"    products: [statistics: {{percentiles: {WANTED}}}]\n")
    pbtest.run("write_products", scratch / "c.yaml", "p", image, out, side, threads, seed)
    return (out / "scene.statistics.json").read_bytes()


def bands(text):
    return json.loads(text)["bands"]


def test_bands_of_16_bits_are_exact(scratch):
    rng = np.random.default_rng(3)
    every = np.arange(257 * 509, dtype=np.int64).reshape(257, 509) % 65536 - 32768
    few = np.rint(rng.normal(900, 300, every.shape))
    planes = [np.where(rng.random(every.shape) < 0.1, -9999, p).astype(np.int16) for p in (every, few)]
    raster(scratch / "i.tif", planes, gdal.GDT_Int16, -9999)
    for more, scale, offset in (("", 1, 0), (", scale: 0.0001, offset: -0.1", 0.0001, -0.1)):
        for band, plane in zip(bands(write(scratch, scratch / "i.tif", more, 64, 3, 5)), planes):
            values = plane[plane != -9999].astype(np.float32)
            if scale != 1:
                values = values * np.float32(scale) + np.float32(offset)
            assert [p["percentile"] for p in band["percentiles"]] == WANTED
            assert [p["error"] for p in band["percentiles"]] == [0] * len(WANTED), band
            np.testing.assert_allclose([p["value"] for p in band["percentiles"]], np.percentile(values.astype(np.float64), WANTED), rtol=1e-15)


def floats(scratch, width, height):
    rng = np.random.default_rng(4)
    planes = [rng.normal(0, 1, (height, width)).astype(np.float32), (rng.random((height, width)) ** 8 * 1e6).astype(np.float32)]
    planes[0][rng.random(planes[0].shape) < 0.05] = np.nan
    raster(scratch / "f.tif", planes, gdal.GDT_Float32, np.nan)
    return planes


@pbtest.not_about_memory
def test_floats_are_within_their_error(scratch):
    planes = floats(scratch, 1023, 701)
    for band, plane in zip(bands(write(scratch, scratch / "f.tif", side=256)), planes):
        expected = np.nanpercentile(plane.astype(np.float64), WANTED)
        for one, value in zip(band["percentiles"], expected):
            assert abs(one["value"] - value) <= one["error"] <= 2 ** -14 * max(abs(value), 1e-3), (one, value)
        for one, name in ((band["percentiles"][0], "minimum"), (band["percentiles"][-1], "maximum")):
            assert one["error"] == 0 and np.float32(one["value"]) == np.float32(band[name]), (one, band[name])
        assert any(p["error"] > 0 for p in band["percentiles"])


@pbtest.not_about_memory
def test_bytes_ignore_tiles_order_and_threads(scratch):
    floats(scratch, 777, 534)
    whole = write(scratch, scratch / "f.tif", side=1024)
    for side, threads, seed in ((64, 1, 0), (64, 4, 7), (128, 3, 8)):
        assert write(scratch, scratch / "f.tif", "", side, threads, seed) == whole, (side, threads, seed)


def test_the_item_repeats_them(scratch):
    floats(scratch, 200, 130)
    (scratch / "c.yaml").write_text(HEAD + """pipelines:
  p:
    input: {match: ['*'], bands: {A: 1, B: 2}}
    products: [cog: {}, statistics: {percentiles: [2, 97.5]}, stac: {datetime: 2024-01-01T00:00:00Z}]
""")
    pbtest.run("pushbroom", "run", "-c", scratch / "c.yaml", "-o", scratch / "o", scratch / "f.tif")
    item = json.loads((scratch / "o/f/p/f.stac.json").read_text())
    told = [b["statistics"] for a in item["assets"].values() for b in a.get("bands", a.get("raster:bands", [])) if "statistics" in b]
    for band, found in zip(bands((scratch / "o/f/p/f.statistics.json").read_text()), told, strict=True):
        assert [found["percentile_2"], found["percentile_97.5"]] == [p["value"] for p in band["percentiles"]], found


def test_bands_without_values_have_none(scratch):
    raster(scratch / "n.tif", [np.full((40, 70), np.nan, np.float32)] * 2, gdal.GDT_Float32, np.nan)
    assert all(p["value"] is None and p["error"] is None for p in bands(write(scratch, scratch / "n.tif"))[0]["percentiles"])


def test_mistakes_are_told_with_their_place(scratch):
    for text, message in (("[2, 50, 2]", "2 is there twice"), ("[101]", "101"), (str(list(range(33))), "there are 33, and at most 32 may be")):
        (scratch / "c.yaml").write_text(f"{HEAD}pipelines:\n  p:\n    input: {{match: ['*'], bands: {{A: 1}}}}\n    products:\n"
                                        f"      - statistics: {{percentiles: {text}}}\n")
        done = pbtest.run("pushbroom", "check-config", scratch / "c.yaml", code=2)
        assert message in done.stderr and "c.yaml:6:" in done.stderr, done


if __name__ == "__main__":
    pbtest.main()
