#!/usr/bin/env python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: slow sanitized
"""Statistics, quicklook and STAC item of scenes, made tile by tile, against numpy, and the same bytes
whatever the tiles, their order and the threads."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import numpy as np
from osgeo import gdal, osr

import pbtest
import sums

TOOL = pbtest.BIN / "write_products"
DATA = pbtest.DATA
gdal.UseExceptions()
# GDAL takes two locks of its own in either order while it starts, on one thread.
os.environ.setdefault("TSAN_OPTIONS", "detect_deadlocks=0")

CONFIG = """
service: {inbox: /i, work: /w, products: /p, quarantine: /q, state: /s, socket: /x.sock}
pipelines:
  test:
    input: {match: ["*"], scale: 0.0001, offset: 0.5}
    products:
      - cog: {type: float32, blocksize: 64}
      - quicklook: {bands: [B3, B2, B1], size: 300, stretch: [1, 99]}
      - quicklook: {name: grey, bands: [B2], size: 5000, stretch: [0, 100]}
      - statistics: {buckets: 100}
      - stac: {datetime: file-time, platform: test-1, constellation: test}
"""


def scene(path, width, height, transform=(600000, 10, 0, 5000000, 0, -10), epsg=32633, nodata=0):
    """Three bands of UInt16 with holes; returns what a pipeline sees: float32, invalid = NaN."""
    rng = np.random.default_rng(7)
    y, x = np.mgrid[0:height, 0:width]
    stored = np.empty((3, height, width), np.uint16)
    for b in range(3):
        wave = np.sin(x / (40.0 + 9 * b)) + np.cos(y / (30.0 + 5 * b))
        stored[b] = 3000 + 1000 * wave + rng.integers(0, 500, wave.shape)
        stored[b][rng.random(wave.shape) < 0.02] = 0
    stored[:, 100:200, 300:500] = 0
    ds = gdal.GetDriverByName("GTiff").Create(str(path), width, height, 3, gdal.GDT_UInt16)
    if transform:
        ds.SetGeoTransform(transform)
    if epsg:
        srs = osr.SpatialReference()
        srs.ImportFromEPSG(epsg)
        ds.SetProjection(srs.ExportToWkt())
    for b in range(3):
        ds.GetRasterBand(b + 1).WriteArray(stored[b])
        ds.GetRasterBand(b + 1).SetNoDataValue(nodata)
    ds = None
    values = stored.astype(np.float32) * np.float32(0.0001) + np.float32(0.5)
    values[stored == nodata] = np.nan
    return values


def halve(plane):
    h, w = plane.shape
    padded = np.full(((h + 1) // 2 * 2, (w + 1) // 2 * 2), np.nan, np.float64)
    padded[:h, :w] = plane
    groups = padded.reshape(padded.shape[0] // 2, 2, padded.shape[1] // 2, 2)
    valid = np.isfinite(groups).sum(axis=(1, 3))
    total = np.nansum(groups, axis=(1, 3))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(valid > 0, total / valid, np.nan).astype(np.float32)


def weights(image, source, level, target):
    """target x source matrix of the overlaps on one axis, in pixels of level 0."""
    t, s = np.mgrid[0:target, 0:source]
    begin = np.maximum(t * image / target, s * 2**level)
    end = np.minimum(np.minimum((t + 1) * image / target, (s + 1) * 2**level), image)
    return np.maximum(0.0, end - begin)


def times(matrix, plane):
    """matrix @ plane, where a row of the matrix has a short run of numbers and zeros around it."""
    out = np.empty((len(matrix), plane.shape[1]))
    for row, weight in zip(out, matrix):
        (at,) = np.nonzero(weight)
        row[:] = weight[at] @ plane[at]
    return out


def quicklook(values, size, stretch):
    """uint8 planes and alpha by the rule in the documentation."""
    height, width = values.shape[1:]
    level, planes = 0, list(values)
    while max(planes[0].shape) >= 2 * size:
        planes = [halve(p) for p in planes]
        level += 1
    longer = max(width, height)
    side = min(longer, size)
    w, h = (max(1, (2 * n * side + longer) // (2 * longer)) for n in (width, height))
    rows = weights(height, planes[0].shape[0], level, h)
    cols = weights(width, planes[0].shape[1], level, w)
    shown = []
    for plane in planes:
        valid = np.isfinite(plane)
        weight = times(cols, times(rows, valid.astype(float)).T).T
        total = times(cols, times(rows, np.where(valid, plane, 0).astype(float)).T).T
        with np.errstate(invalid="ignore", divide="ignore"):
            shown.append(np.where(weight > 1e-9, total / weight, np.nan).astype(np.float32))
    alpha = np.all(np.isfinite(shown), axis=0)
    out, limits = [], []
    for plane in shown:
        low, high = np.percentile(plane[alpha].astype(np.float64), stretch)
        limits.append((low, high))
        scaled = np.clip((np.where(alpha, plane, low) - low) / (high - low), 0, 1) * 255
        out.append(np.where(alpha, np.floor(scaled + 0.5), 0))
    return np.array(out), alpha, limits


class Products(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = pathlib.Path(tempfile.mkdtemp(prefix="pb_products_"))
        cls.config = cls.scratch / "config.yaml"
        cls.config.write_text(CONFIG)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.scratch)

    def make(self, path, side=512, threads=1, seed=0, config=None):
        out = pathlib.Path(tempfile.mkdtemp(dir=self.scratch))
        done = subprocess.run([TOOL, config or self.config, "test", path, out, str(side),
                               str(threads), str(seed)], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        checksums = {}
        for line in done.stdout.splitlines():
            _, name, size, checksum = line.split("\t")
            data = (out / name).read_bytes()
            self.assertEqual(len(data), int(size))
            self.assertEqual("blake3:" + sums.digest_of(data), checksum)
            checksums[name] = checksum
        return out, checksums

    def check_quicklook(self, path, values, size, stretch, flip=None):
        expected, alpha, limits = quicklook(values, size, stretch)
        if flip:
            expected, alpha = expected[:, flip[0], flip[1]], alpha[flip]
        ds = gdal.Open(str(path))
        got = ds.ReadAsArray()
        self.assertEqual(got.shape, (len(values) + 1,) + alpha.shape)
        self.assertTrue(np.array_equal(got[-1] == 255, alpha))
        difference = np.abs(got[:-1].astype(int) - expected)
        # sums in another order: a value on the edge between two greys may fall to either side
        self.assertLessEqual(difference.max(), 1)
        self.assertLess((difference > 0).mean(), 1e-3)
        said = re.findall(r"B\d ([-\d.e]+) \.\. ([-\d.e]+);",
                          ds.GetMetadata()["pushbroom.stretch"])
        self.assertTrue(np.allclose(np.array(said, float), limits, rtol=1e-6))

    def test_bytes_ignore_tiles_order_and_threads(self):
        path = self.scratch / "a.tif"
        scene(path, 577, 834)
        _, expected = self.make(path, 4096)
        del expected["scene.stac.json"]
        self.assertEqual(len(expected), 4)
        for side, threads, seed in ((64, 1, 0), (64, 3, 11), (128, 2, 12), (512, 4, 13)):
            _, got = self.make(path, side, threads, seed)
            self.assertIn("scene.stac.json", got)
            del got["scene.stac.json"]
            self.assertEqual(got, expected, f"side {side}, threads {threads}, seed {seed}")

    def test_statistics_equal_numpy(self):
        path = self.scratch / "b.tif"
        values = scene(path, 701, 503)
        out, _ = self.make(path, 128, 2, 5)
        said = json.loads((out / "scene.statistics.json").read_text())
        self.assertEqual(said["scene"], "scene")
        self.assertEqual(said["input"], "b.tif")
        self.assertEqual([b["name"] for b in said["bands"]], ["B1", "B2", "B3"])
        for plane, band in zip(values, said["bands"]):
            valid = plane[np.isfinite(plane)].astype(np.longdouble)
            self.assertEqual(band["count"], plane.size)
            self.assertEqual(band["valid"], valid.size)
            self.assertAlmostEqual(band["valid_percent"], 100 * valid.size / plane.size, 12)
            self.assertEqual(np.float32(band["minimum"]), np.nanmin(plane))
            self.assertEqual(np.float32(band["maximum"]), np.nanmax(plane))
            self.assertAlmostEqual(band["mean"], float(valid.mean()), 14)
            self.assertAlmostEqual(band["stddev"], float(valid.std()), 13)
            h = band["histogram"]
            self.assertEqual(h["count"], len(h["buckets"]))
            self.assertLessEqual(h["count"], 100)
            self.assertGreater(h["count"], 50)
            edges = h["min"] + (h["max"] - h["min"]) / h["count"] * np.arange(h["count"] + 1)
            index = np.searchsorted(edges, valid.astype(np.float64), side="right") - 1
            self.assertEqual(h["buckets"], np.bincount(index, minlength=h["count"]).tolist())

    def test_quicklooks_equal_numpy(self):
        for name, width, height in (("c", 1201, 803), ("d", 431, 977), ("e", 250, 301)):
            path = self.scratch / f"{name}.tif"
            values = scene(path, width, height)
            out, _ = self.make(path, 256, 2, 3)
            self.check_quicklook(out / "scene.png", values[::-1], 300, (1, 99))
            self.check_quicklook(out / "scene.grey.png", values[1:2], 5000, (0, 100))

    def test_quicklook_of_a_south_up_scene_has_north_up(self):
        path = self.scratch / "south.tif"
        values = scene(path, 640, 500, (600000, 10, 0, 4000000, 0, 10))
        out, _ = self.make(path)
        up = (slice(None, None, -1), slice(None))
        self.check_quicklook(out / "scene.png", values[::-1], 300, (1, 99), up)

    # --- STAC: demands of the schemas of core 1.1.0, projection 2.0.0, raster 2.0.0, processing 1.2.0 and file 2.1.0, written
    # by hand (schemas are not fetched in a test)

    def check_item(self, out, path):
        item = json.loads((out / "scene.stac.json").read_text())
        self.assertEqual(item["type"], "Feature")
        self.assertEqual(item["stac_version"], "1.1.0")
        self.assertEqual(item["id"], "scene.test")
        self.assertIn("geometry", item)
        self.assertEqual(item["geometry"] is None, "bbox" not in item)
        if item["geometry"]:
            self.check_geometry(item["geometry"], item["bbox"])
        when = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$")
        for key in ("datetime", "created", "updated"):
            self.assertRegex(item["properties"][key], when)
        rels = [link["rel"] for link in item["links"]]
        self.assertEqual("collection" in rels, "collection" in item)
        # This program computes no checksums of the input, and names no file that it does not know.
        self.assertNotIn("derived_from", rels)
        self.assertNotIn("pushbroom:inputs", item["properties"])
        self.assertEqual(item["properties"]["pushbroom:input"], path.name)
        self.assertIn("Made from %s by pipeline" % path.name, item["properties"]["processing:lineage"])
        for link in item["links"]:
            self.assertTrue(link["href"])
        extensions = item["stac_extensions"]
        self.assertEqual(len(set(extensions)), len(extensions))
        for name in extensions:
            self.assertRegex(name, r"^https://stac-extensions\.github\.io/[a-z]+/v\d\.\d\.\d/"
                                   r"schema\.json$")
        prefixes = {"proj": "projection", "raster": "raster", "processing": "processing",
                    "file": "file", "renders": "render"}
        used = set()
        for thing in [item["properties"], *item["assets"].values(),
                      *(b for a in item["assets"].values() for b in a.get("bands", []))]:
            used |= {key.split(":")[0] for key in thing if ":" in key}
        used.remove("pushbroom")  # its own words, which no schema knows
        used |= {"renders"} & set(item["properties"])
        self.assertEqual({prefixes[p] for p in used},
                         {re.search(r"io/([a-z]+)/", e).group(1) for e in extensions})
        for asset in item["assets"].values():
            self.check_asset(out, asset)
        for key, value in item["properties"]["processing:software"].items():
            self.assertTrue(key and isinstance(value, str))
        self.assertEqual(set(item["properties"]["processing:expression"]), {"format", "expression"})
        return item

    def check_geometry(self, geometry, bbox):
        self.assertEqual(len(bbox), 4)
        polygons = {"Polygon": [geometry["coordinates"]],
                    "MultiPolygon": geometry["coordinates"]}[geometry["type"]]
        points = []
        for polygon in polygons:
            self.assertEqual(len(polygon), 1)
            ring = polygon[0]
            self.assertGreaterEqual(len(ring), 4)
            self.assertEqual(ring[0], ring[-1])
            area = sum(a[0] * b[1] - b[0] * a[1] for a, b in zip(ring, ring[1:]))
            self.assertGreater(area, 0, "rings run counter-clockwise")
            points += ring
        lon, lat = zip(*points)
        self.assertTrue(all(-180 <= x <= 180 for x in lon) and all(-90 <= y <= 90 for y in lat))
        if bbox[0] <= bbox[2]:
            self.assertTrue(np.allclose(bbox, [min(lon), min(lat), max(lon), max(lat)],
                                        atol=1e-6))

    def check_asset(self, out, asset):
        self.assertTrue(asset["href"].startswith("./"))
        path = out / asset["href"]
        self.assertEqual(asset["file:size"], path.stat().st_size)
        self.assertEqual(asset["file:checksum"], sums.multihash(path))
        self.assertTrue(asset["roles"] and asset["type"] and asset["title"])
        if "proj:shape" in asset:
            ds = gdal.Open(str(path))
            self.assertEqual(asset["proj:shape"], [ds.RasterYSize, ds.RasterXSize])
        for i, band in enumerate(asset.get("bands", [])):
            ds = gdal.Open(str(path))
            self.assertEqual(ds.GetRasterBand(i + 1).GetDescription(), band["name"])
            self.assertEqual(gdal.GetDataTypeName(ds.GetRasterBand(i + 1).DataType).lower(),
                             band["data_type"])
            self.assertTrue(isinstance(band["nodata"], (int, float)) or band["nodata"] == "nan")
            self.assertTrue(set(band["statistics"]) <= {"minimum", "maximum", "mean", "stddev",
                                                        "count", "valid_percent"})
            h = band["raster:histogram"]
            self.assertEqual(set(h), {"count", "min", "max", "buckets"})
            self.assertGreaterEqual(len(h["buckets"]), 3)
            self.assertEqual(len(h["buckets"]), h["count"])

    def test_item_of_a_placed_scene(self):
        path = self.scratch / "placed scene.tif"
        scene(path, 600, 400)
        out, _ = self.make(path)
        item = self.check_item(out, path)
        p = item["properties"]
        self.assertEqual((p["platform"], p["constellation"]), ("test-1", "test"))
        self.assertEqual(p["proj:code"], "EPSG:32633")
        self.assertIn("value = DN * 0.0001 + 0.5", p["processing:lineage"])
        self.assertIn("DN = 0 (nodata of the file)", p["processing:lineage"])
        self.assertEqual(p["processing:expression"]["expression"]["input"]["scale"], 0.0001)
        self.assertEqual(item["links"], [])
        cog = item["assets"]["data"]
        self.assertEqual(cog["proj:transform"], [10, 0, 600000, 0, -10, 5000000])
        self.assertEqual(cog["proj:bbox"], [600000, 4996000, 606000, 5000000])
        self.assertEqual([b["name"] for b in cog["bands"]], ["B1", "B2", "B3"])
        self.assertIsNone(item["assets"]["quicklook"]["proj:code"])
        said = json.loads((out / "scene.statistics.json").read_text())["bands"]
        for band, statistics in zip(cog["bands"], said):
            for key in ("minimum", "maximum", "mean", "stddev", "count", "valid_percent"):
                self.assertEqual(band["statistics"][key], statistics[key])
            self.assertEqual(band["raster:histogram"], statistics["histogram"])
        west, south, east, north = item["bbox"]
        self.assertTrue(16.2 < west < east < 16.5 and 45.0 < south < north < 45.2)

    def test_the_item_says_where_its_time_comes_from(self):
        path = self.scratch / "S2A_20200219T112111_N0214.tif"
        scene(path, 300, 200)
        os.utime(path, (981173106, 981173106))
        own = self.scratch / "own.yaml"

        def said(word, keys=("datetime", "pushbroom:datetime_source")):
            own.write_text(CONFIG.replace("datetime: file-time", f"datetime: {word}"))
            out = pathlib.Path(tempfile.mkdtemp(dir=self.scratch))
            pbtest.run("pushbroom", "run", "--quiet", "-c", own, "-o", out, path)
            item = json.loads((out / path.stem / "test" / f"{path.stem}.stac.json").read_text())
            return [item["properties"].get(key) for key in keys]

        def refused(word, words):
            own.write_text(CONFIG.replace("datetime: file-time, ", word))
            for how in ([], ["--dry-run"]):
                done = pbtest.run("pushbroom", "run", "-c", own, "-o", self.scratch / "none", "--json", *how, path,
                                  code=1)
                error = json.loads(done.stdout)["error"]
                self.assertEqual(error["code"], "input.datetime")
                self.assertIn(words, error["message"])
                self.assertIn("set stac.datetime", error["hint"])
            self.assertFalse((self.scratch / "none" / path.stem).exists())

        self.assertEqual(said("file-time"), ["2001-02-03T04:05:06Z", "modification time"])
        self.assertEqual(said("'2020-02-03T04:05:06Z'"), ["2020-02-03T04:05:06Z", "config"])
        self.assertEqual(said('name:"%Y%m%dT%H%M%S"'), ["2020-02-19T11:21:11Z", "name"])
        self.assertEqual(said("'name:_%Y%m%d'", ("datetime", "start_datetime", "end_datetime")),
                         [None, "2020-02-19T00:00:00Z", "2020-02-19T23:59:59Z"])
        # Nothing is guessed.
        refused("", "it is unknown")
        refused("datetime: tag, ", "no TIFF tag DateTime")
        refused("datetime: metadata, ", "input.metadata")
        refused("datetime: 'name:%Y-%m-%d', ", "finds no time in the scene's name")
        ds = gdal.Open(str(path), gdal.GA_Update)
        ds.SetMetadataItem("TIFFTAG_DATETIME", "2010:02:03 04:05:06")
        ds = None
        self.assertEqual(said("tag"), ["2010-02-03T04:05:06Z", "tag"])
        refused("", "it is unknown")  # when the file was made is not when the scene was taken

    def test_item_of_an_unplaced_scene(self):
        path = self.scratch / "nowhere.tif"
        scene(path, 300, 200, None, None)
        out, _ = self.make(path)
        item = self.check_item(out, path)
        self.assertIsNone(item["geometry"])
        self.assertIsNone(item["properties"]["proj:code"])
        self.assertNotIn("proj:transform", item["assets"]["data"])

    def test_item_of_a_scene_whose_system_has_no_code(self):
        path = self.scratch / "custom.tif"
        scene(path, 300, 200, (0, 1000, 0, 0, 0, -1000), None)
        ds = gdal.Open(str(path), gdal.GA_Update)
        srs = osr.SpatialReference()
        srs.ImportFromProj4("+proj=laea +lat_0=47 +lon_0=13 +datum=WGS84 +units=m")
        ds.SetProjection(srs.ExportToWkt())
        ds = None
        out, _ = self.make(path)
        cog = self.check_item(out, path)["assets"]["data"]
        self.assertIsNone(cog["proj:code"])
        self.assertRegex(cog["proj:wkt2"], r"^PROJCRS\[")
        self.assertEqual(cog["proj:projjson"]["type"], "ProjectedCRS")

    def test_item_across_the_antimeridian(self):
        path = self.scratch / "fiji.tif"
        scene(path, 400, 300, (179, 0.01, 0, -16, 0, -0.01), 4326)
        out, _ = self.make(path)
        item = self.check_item(out, path)
        self.assertEqual(item["geometry"]["type"], "MultiPolygon")
        self.assertGreater(item["bbox"][0], item["bbox"][2])

    def test_real_scenes(self):
        names = ["landsat7_L7_ETMs_6band.tif", "rgb/landsat7_RGB.byte.tif",
                 "sentinel1/s1-vh_2023_gcps.tiff", "global/southup_small.tif",
                 "odd/rotated_packbits.tif", "modis_mcd43a4/B01.TIF"]
        if not DATA.is_dir():
            self.skipTest("the sample data is not at %s" % DATA)
        plain = self.scratch / "plain.yaml"
        plain.write_text(CONFIG.replace("bands: [B3, B2, B1], ", "").replace("[B2]", "[B1]"))
        for path in (DATA / "real" / name for name in names):
            with self.subTest(path.name):
                if not path.exists():
                    self.skipTest("%s is not there" % path)
                out, one = self.make(path, 64, 2, 77, plain)
                self.check_item(out, path)
                _, other = self.make(path, 512, 1, 0, plain)
                one.pop("scene.stac.json")
                other.pop("scene.stac.json")
                self.assertEqual(one, other)


if __name__ == "__main__":
    pbtest.main()
