#!/usr/bin/env python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""tests/bench/run on a small scene with Debian's GDAL as the only rival: it finds pushbroom's products, compares pixels, names who is absent, and
ends with JSON. The choice of the best and of a wrong pixel are tried separately."""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import types
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE), str(HERE.parent / "integration")]
from osgeo import gdal  # noqa: E402

import operators  # noqa: E402
import pbtest  # noqa: E402
import results  # noqa: E402
from operators import files  # noqa: E402
from rivals import compare, contest, table  # noqa: E402
from rivals.rows import ROWS, pipeline  # noqa: E402

BUILD = pbtest.BIN.parent


def scratch(test):
    folder = pathlib.Path(tempfile.mkdtemp())
    test.addCleanup(shutil.rmtree, folder)
    return folder


class Run(unittest.TestCase):
    def test_measures_a_row_with_what_debian_has(self):
        done = subprocess.run([str(HERE / "run"), "--build", str(BUILD), "--work", str(scratch(self)), "--venv", "none", "--rivals", "gdal,classic", "--rows", "ndvi6,band,alone,memory", "--sweep", "1", "--size", "600",
                               "--repeat", "1", "--markdown"], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(done.stdout.splitlines()[-1])
        *rows, alone, memory = report["rows"]
        self.assertEqual([r["row"] for r in rows], ["ndvi6", "band"])
        self.assertTrue(alone["ratio"] > 0 and alone["parts"]["decode"] > 0, alone)
        self.assertTrue(all(s["peak_mb"] > 10 for s in memory["sweep"]), memory)
        for row in rows:
            self.assertEqual({r["rival"] for r in row["results"]}, {"pushbroom", "classic"})
            for r in row["results"]:
                self.assertIsNone(r["wrong"], r)
                self.assertTrue(r["seconds"] > 0 and r["cpu_seconds"] > 0 and r["peak_mb"] > 0 and r["file_mb"] > 0, r)
            self.assertTrue(any("rasterio" in why for why in row["absent"].values()), row["absent"])
        self.assertIn("| NDVI, float32 deflate COG, level 6 |", done.stdout)

    def test_says_what_rows_there_are(self):
        done = subprocess.run([str(HERE / "run"), "--rows", "ndvy"], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 2)
        self.assertIn("no ndvy among ndvi, ", done.stderr)


class Pixels(unittest.TestCase):
    def setUp(self):
        self.folder = scratch(self)
        self.scene = self.folder / "scene.tif"
        subprocess.run([BUILD / "bin/make_scene", "--size", "700x700", self.scene], check=True)

    def product(self, row, change=None):
        """The product of pushbroom, with one pixel of the last band changed."""
        config, out = self.folder / "c.yaml", self.folder / "out"
        config.write_text(pipeline(row, HERE.parents[1]))
        subprocess.run([BUILD / "bin/pushbroom", "run", "--quiet", "-c", config, "-o", out, self.scene], check=True)
        path = out / "scene" / row.name / "scene.tif"
        if change is None:
            return path
        other = self.folder / "changed.tif"
        gdal.Translate(str(other), str(path), creationOptions=["COPY_SRC_OVERVIEWS=YES", "TILED=YES"])
        d = gdal.Open(str(other), gdal.GA_Update)
        change(d.GetRasterBand(d.RasterCount))
        return other

    def test_every_kind_of_row_is_right(self):
        for name in ("ndvi", "indices", "gauss15", "pass4", "plain"):
            with self.subTest(name):
                self.assertIsNone(compare.check(ROWS[name], self.scene, self.product(ROWS[name])))

    def test_a_pixel_that_differs_is_found(self):
        def raise_one(band):
            value = band.ReadAsArray(600, 650, 1, 1)
            band.WriteArray(value + value.dtype.type(1), 600, 650)
        for name in ("indices", "pass4"):
            with self.subTest(name):
                self.assertIn("pixels differ", compare.check(ROWS[name], self.scene, self.product(ROWS[name], raise_one)))

    def test_a_pixel_without_data_is_found(self):
        def erase(band):
            band.WriteArray(band.ReadAsArray(7, 9, 1, 1) * float("nan"), 7, 9)
        self.assertIn("pixels differ by inf", compare.check(ROWS["ndvi"], self.scene, self.product(ROWS["ndvi"], erase)))

    def test_an_overview_of_other_pixels_is_found(self):
        def swap(band):
            view = band.GetOverview(0)
            view.WriteArray(view.ReadAsArray()[::-1])
        self.assertIn("first overview", compare.check(ROWS["ndvi"], self.scene, self.product(ROWS["ndvi"], swap)))


class Best(unittest.TestCase):
    def field(self, *rest):
        make = lambda size, seconds, wrong=None: types.SimpleNamespace(product_bytes=size, seconds=seconds, wrong=wrong)  # noqa: E731
        return contest.best(make(1000, 1), [make(*r) for r in rest], lambda c: c.seconds)

    def test_a_larger_file_does_not_count(self):
        self.assertEqual(self.field((1011, 2), (1009, 3)).seconds, 3)

    def test_wrong_pixels_do_not_count(self):
        self.assertEqual(self.field((900, 2, "pixels differ by 1"), (900, 4)).seconds, 4)

    def test_there_may_be_none(self):
        self.assertIsNone(self.field((2000, 2)))

    def test_the_table_says_so(self):
        us = {"rival": "pushbroom", "title": "pushbroom", "setting": "", "seconds": 1.0, "cpu_seconds": 2.0, "peak_mb": 3, "file_mb": 4.0, "best": False}
        lines = list(table.markdown([{"title": "a row", "of": "seconds", "ratio": None, "results": [us]}]))
        self.assertIn("| a row | none |", lines[-1])


class Results(unittest.TestCase):
    PAGE = (HERE / "RESULTS.md").read_text()

    def test_table_and_date_are_replaced(self):
        page = results.replaced(self.PAGE, "Rivals, file to COG", "medians of 3 turns", ["| a |", "|---|", "| b |"])
        section = page.split("## Rivals, file to COG\n")[1].split("\n## ")[0]
        self.assertRegex(section, r"\A\n20\d\d-\d\d-\d\d, \d+ cores of .*, medians of 3 turns\.\n")
        self.assertIn("\n\n| a |\n|---|\n| b |\n\n### Other rivals", section)
        self.assertNotIn("NDVI, float32 deflate COG, defaults", section)
        rest = lambda text: text.split("## Single steps from file to COG")[1]
        self.assertEqual(rest(page), rest(self.PAGE))

    def test_a_section_without_a_table_is_refused(self):
        with self.assertRaisesRegex(ValueError, "'What' has no date"):
            results.replaced("# A\n\n## What\n\nwords\n", "What", "once", ["| a |"])

    def test_some_rows_are_no_table(self):
        done = subprocess.run([str(HERE / "run"), "--rows", "ndvi", "--results", "/dev/null"], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertIn("leave out --rows", done.stderr)


class Operators(unittest.TestCase):
    def test_rows_are_cases_of_operators(self):
        for row in operators.ROWS:
            (source,) = (HERE.parents[1] / "kernels/ops").glob(f"*/{row.operator}.c")
            self.assertTrue(re.search(rf'(\{{|CASE\()"{re.escape(row.case)}",', source.read_text()), row)

    def test_a_row_has_our_speed_and_who_is_absent_is_told(self):
        done = subprocess.run([HERE / "run", "operators", "--build", BUILD, "--operators", "scale", "--cores", "1", "--seconds", "0"],
                              check=True, stdout=subprocess.PIPE, text=True)
        (row,) = json.loads(done.stdout.splitlines()[-1])["rows"]
        self.assertGreater(row["ns"], 0)
        self.assertEqual(row["rivals"]["scipy"] is None, "scipy: ModuleNotFoundError" in done.stdout)


class OperatorFiles(unittest.TestCase):
    def test_every_row_has_a_good_configuration(self):
        o = types.SimpleNamespace(work=scratch(self), build=BUILD)
        for row in files.FILE_ROWS:
            command, _ = files.ours(o, row, 1, [pathlib.Path(f"{name}.tif") for name in files.SCENES[row.scene]])
            done = subprocess.run([BUILD / "bin/pushbroom", "check-config", command[command.index("-c") + 1]], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, (row, done.stderr))

    def test_a_row_has_the_pixels_of_the_rival_and_ratios(self):
        done = subprocess.run([HERE / "run", "operator-files", "--build", BUILD, "--work", scratch(self), "--rows", "hillshade,mosaic", "--cores", "1", "--size", "400", "--repeat", "1"],
                              check=True, stdout=subprocess.PIPE, text=True)
        rows = json.loads(done.stdout.splitlines()[-1])["rows"]
        self.assertEqual([r["operator"] for r in rows], ["mosaic", "hillshade"])
        for row in rows:
            self.assertLess(row["differ"], 0.02, row)
            for side in ("ours", "theirs"):
                self.assertTrue(row[side]["seconds"] > 0 and row[side]["cpu_seconds"] > 0 and row[side]["file_mb"] > 0, row)


pbtest.main()
