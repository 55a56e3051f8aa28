#!/usr/bin/env python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""tests/bench/run on a small scene with Debian's GDAL as the only rival: it finds pushbroom's products, compares pixels, names rivals that are absent,
writes a page, and ends with JSON. Conclusions of a row, the gate's decision and figures in documents are tried with fixed numbers."""
import dataclasses
import fcntl
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

import figures  # noqa: E402
import operators  # noqa: E402
import pbtest  # noqa: E402
from measured import measure  # noqa: E402
from operators import files  # noqa: E402
from rivals import compare, regression, scene, table  # noqa: E402
from rivals.rows import ROWS, pipeline  # noqa: E402

BUILD = pbtest.BIN.parent


def scratch(test):
    folder = pathlib.Path(tempfile.mkdtemp())
    test.addCleanup(shutil.rmtree, folder)
    return folder


class Run(unittest.TestCase):
    def bench(self, work, *more):
        return subprocess.run([str(HERE / "run"), "--build", str(BUILD), "--work", str(work), "--size", "600", *more], capture_output=True, text=True, timeout=240)

    def test_row_has_figures_and_page(self):
        work = scratch(self)
        page = work / "page.md"
        done = self.bench(work, "--venv", "none", "--rivals", "gdal,classic", "--rows", "ndvi6,band,alone,memory", "--sweep", "1", "--repeat", "1", "--page", str(page))
        self.assertEqual(done.returncode, 0, done.stderr)
        *rows, alone, memory = json.loads(done.stdout.splitlines()[-1])["rows"]
        self.assertEqual([(r["row"], r["scene"]) for r in rows], [("ndvi6", "synthetic"), ("ndvi6", "real"), ("band", "synthetic"), ("band", "real")])
        self.assertTrue(alone["ratio"] > 0 and alone["parts"]["decode"] > 0, alone)
        self.assertTrue(all(s["peak_mb"] > 10 for s in memory["sweep"]), memory)
        told = figures.read(page)
        for row in rows:
            self.assertEqual({r["rival"] for r in row["results"]}, {"pushbroom", "classic"})
            for r in row["results"]:
                self.assertIsNone(r["wrong"], r)
                self.assertTrue(r["seconds"] > 0 and r["cpu_seconds"] > 0 and r["peak_mb"] > 0 and r["file_mb"] > 0, r)
            self.assertTrue(any("rasterio" in why for why in row["absent"].values()), row["absent"])
            on_page = told["rows"][row["row"], row["scene"]]
            self.assertAlmostEqual(on_page["pushbroom"]["cpu_seconds"], table.us_of(row)["cpu_seconds"], 3)
            self.assertEqual({r["program"] for r in on_page["rivals"]}, {r["name"] for r in row["results"] if r["rival"] == "classic"})
        self.gate(work, page)

    def gate(self, work, page):
        """With a page that is 1000 times as slow, and one that is as much faster: neither depends on the machine."""
        for factor, status in ((1000, 0), (0.001, 1)):
            other = work / "other.md"
            other.write_text(figures.LINE.sub(lambda m: m[0].replace(f"| {m[6]} |", f"| {float(m[6]) * factor:.6f} |"), page.read_text()))
            done = self.bench(work, "--gate", "--rows", "band", "--scenes", "real", "--page", str(other))
            self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.assertIn("0 rows are as fast as on the page, 1 are slower", done.stdout)

    def test_service_and_command_make_small_scenes(self):
        done = self.bench(scratch(self), "--venv", "none", "--rows", "small,service", "--scenes", "synthetic", "--repeat", "1", "--small", "5")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = json.loads(done.stdout.splitlines()[-1])["rows"]
        for row in rows:
            (us,) = row["results"]
            self.assertIsNone(us["wrong"], us)
            self.assertTrue(us["seconds"] > 0 and us["cpu_seconds"] > 0 and us["peak_mb"] > 0, us)
        self.assertAlmostEqual(rows[0]["results"][0]["file_mb"], rows[1]["results"][0]["file_mb"], 2)
        self.assertIn("no page is written", done.stdout)

    def test_unknown_row_is_named(self):
        done = subprocess.run([str(HERE / "run"), "--rows", "ndvy"], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 2)
        self.assertIn("no ndvy among ndvi, ", done.stderr)

    def test_second_run_in_a_directory_is_refused(self):
        work = scratch(self)
        with open(work / "lock", "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            done = self.bench(work, "--venv", "none", "--rows", "ndvi")
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"another run works in {work}", done.stderr)

    def test_gate_without_a_page_is_refused(self):
        done = subprocess.run([str(HERE / "run"), "--gate", "--page", "/no/page.md"], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertIn("there is no page of this machine (/no/page.md)", done.stderr)

    def test_tree_has_the_memory_of_all_processes(self):
        hold = "import time; a = b'x' * 60000000; time.sleep(1)"
        _, largest, _, tree = measure(["sh", "-c", f'"{sys.executable}" -c "{hold}" & "{sys.executable}" -c "{hold}"; wait'])
        self.assertTrue(60 < largest < 110, largest)
        self.assertGreater(tree, 115)


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


class Means(unittest.TestCase):
    def setUp(self):
        self.folder, self.row = scratch(self), dataclasses.replace(ROWS["zones"], polygons=100)
        self.scene = self.folder / "scene.tif"
        subprocess.run([BUILD / "bin/make_scene", "--size", "700x700", self.scene], check=True)
        config = self.folder / "c.yaml"
        config.write_text(pipeline(self.row, HERE.parents[1], scene.polygons_of(self.scene, 100)))
        subprocess.run([BUILD / "bin/pushbroom", "run", "--quiet", "-c", config, "-o", self.folder, self.scene], check=True)
        self.table = self.folder / "scene/zones/scene.zones.csv"

    def check(self, lines):
        other = self.folder / "other.csv"
        other.write_text("\n".join(lines))
        return compare.check_means(self.row, self.scene, other, 1)

    def test_means_of_pixels_are_right(self):
        self.assertIsNone(self.check(self.table.read_text().splitlines()))

    def test_missing_polygon_is_found(self):
        self.assertEqual(self.check(self.table.read_text().splitlines()[:-1]), "99 of 100 polygons")

    def test_other_mean_is_found(self):
        head, first, *rest = self.table.read_text().splitlines()
        *fields, mean = first.split(",")
        self.assertIn("means differ by 0.05", self.check([head, ",".join([*fields, str(float(mean) * 1.05)]), *rest]))


def result(rival="x", seconds=1.0, cpu=1.0, mb=100.0, wrong=None, gdal=True):
    return {"rival": rival, "name": rival, "gdal": gdal, "turns": 1, "seconds": seconds, "spread": [seconds, seconds], "cpu_seconds": cpu, "peak_mb": 50.0, "file_mb": mb, "wrong": wrong}


def row_of(*rivals, default=True):
    return {"row": "ndvi", "scene": "real", "title": "NDVI", "bars": (2, 0), "size": 600, "scene_mb": 7.0, "default": default, "compressed": True, "absent": {},
            "results": [result("pushbroom", 1.0, 1.5), *rivals]}


class Conclusions(unittest.TestCase):
    def test_larger_file_is_not_best(self):
        self.assertEqual(table.best_of(row_of(result("a", 2, mb=101.1), result("b", 3, mb=100.9)))["rival"], "b")

    def test_larger_file_is_best_without_a_smaller_one(self):
        self.assertEqual(table.best_of(row_of(result("a", 2, mb=105), result("b", 1, mb=120)))["rival"], "a")

    def test_wrong_pixels_are_not_best(self):
        self.assertEqual(table.best_of(row_of(result("a", 2, wrong="pixels differ by 1"), result("b", 4)))["rival"], "b")

    def test_best_may_be_absent(self):
        self.assertIsNone(table.best_of(row_of(result("a", 2, mb=200))))
        self.assertIsNone(table.times(row_of(), "seconds"))

    def test_each_ratio_has_its_own_rival(self):
        row = row_of(result("a", 2, 6), result("b", 3, 3, gdal=False))
        self.assertEqual((table.times(row, "seconds"), table.times(row, "cpu_seconds"), table.times(row, "cpu_seconds", True)), (2, 2, 4))

    def test_size_is_compared_at_equal_cpu(self):
        row = row_of(result("quick", 2, 2, 103), result("same", 3, 3, 98), result("slow", 9, 9, 80))
        self.assertEqual(table.smallest(row)["rival"], "same")
        self.assertAlmostEqual(table.larger(row), 100 / 98 - 1)
        self.assertTrue(table.breaks_rule(row))
        self.assertIn("a default product is more than 1 % larger", "\n".join(table.text(row)))

    def test_rule_is_for_default_products(self):
        self.assertFalse(table.breaks_rule(row_of(result("a", mb=98), default=False)))
        self.assertFalse(table.breaks_rule(row_of(result("a", mb=99.2))))


class Gate(unittest.TestCase):
    def test_least_of_the_turns_decides(self):
        self.assertEqual(regression.verdict(2.0, [9.0, 2.1, 5.0]), regression.PASS)

    def test_slow_row_has_more_turns(self):
        self.assertEqual(regression.verdict(2.0, [2.11] * (regression.MOST - 1)), regression.AGAIN)

    def test_row_fails_after_all_turns(self):
        self.assertEqual(regression.verdict(2.0, [2.11] * regression.MOST), regression.FAIL)

    def test_last_turn_may_pass(self):
        self.assertEqual(regression.verdict(2.0, [2.11] * (regression.MOST - 1) + [2.09]), regression.PASS)


class Figures(unittest.TestCase):
    MARK = "<!-- figures: ndvi real: scene_mb seconds times rival.seconds -->\n"

    def tree(self, document):
        """A tree with a page and a document."""
        root = scratch(self)
        (root / figures.FOLDER).mkdir(parents=True)
        about = {"machine": "a machine", "commit": "abc", "size": 600, "versions": {"numpy": "2"}}
        row = row_of(result("a", 2.5, 6.0))
        (root / figures.FOLDER / "m.md").write_text(figures.page([row], ["none"], about))
        self.date = figures.newest(root)["date"]
        return root, {"README.md": document}

    def gaps(self, document):
        return list(figures.gaps(*self.tree(document)))

    def test_figures_of_the_page_pass(self):
        self.assertEqual(self.gaps(self.MARK + "A scene of 7 MB takes 1.0 s: 2.5 times as fast as 2.50 s.\n"), [])

    def test_other_figure_fails(self):
        (gap,) = self.gaps(self.MARK + "A scene of 7 MB takes 0.9 s: 2.5 times as fast as 2.50 s.\n")
        self.assertIn("README.md:1: figures that differ from the newest page (m.md)", gap)

    def test_figure_without_a_row_fails(self):
        (gap,) = self.gaps("It takes 0.9 s.\n")
        self.assertIn("the figure '0.9 s.' is of no page", gap)

    def test_missing_figure_fails(self):
        (gap,) = self.gaps(self.MARK + "It takes 1.0 s.\n")
        self.assertIn("4 figures are named, and the paragraph has 1", gap)

    def test_unknown_row_fails(self):
        (gap,) = self.gaps(self.MARK.replace("ndvi", "ndvy") + "It takes 1.0 s.\n")
        self.assertIn("the page has no row 'ndvy' of scene 'real'", gap)

    def test_old_link_fails(self):
        (gap,) = self.gaps("[figures of 2020-01-01](tests/bench/pages/m.md)\n")
        self.assertIn("is not the newest page", gap)

    def test_write_renews_figures_and_links(self):
        root, documents = self.tree(self.MARK + "A scene of 9 MB takes 0.9 s: 3.5 times as fast\nas 2.00 s ([figures of 2020-01-01](tests/bench/pages/old.md)).\n")
        self.assertEqual(figures.renew(root, documents), ["README.md"])
        text = (root / "README.md").read_text()
        self.assertIn(f"A scene of 7 MB takes 1.0 s: 2.5 times as fast\nas 2.50 s ([figures of {self.date}](tests/bench/pages/m.md)).", text)
        self.assertEqual(list(figures.gaps(root, {"README.md": text})), [])

    def test_page_has_a_rule_that_is_broken(self):
        root, _ = self.tree("")
        text = figures.page([row_of(result("a", mb=95))], [], {"machine": "m", "commit": "c", "size": 600, "versions": {}})
        self.assertIn("| +5.3 % **larger** |", text)


class Scenes(unittest.TestCase):
    def test_real_scene_has_the_pixels_of_the_crop(self):
        o = types.SimpleNamespace(work=scratch(self), root=HERE.parents[1])
        crop = gdal.Open(str(o.root / scene.CROP / "B04.tif")).ReadAsArray().astype(float)
        red = gdal.Open(str(scene.of_size(o, "real", 700))).ReadAsArray()[2].astype(float)
        self.assertLess(abs(red[:300, :300] / crop - 1).max(), 0.05)
        self.assertLess(abs(red[300:600, :300] / crop[::-1] - 1).max(), 0.05)


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
