#!/usr/bin/env python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""wic_plot.py on wic_fixture.json (figures shaped like wic-bench's, not a measurement): every strategy is in the picture with
a mark for every chunk size and every load that it kept up with, and a bar for every measurement of neighbours; the table
names the best rival."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

HERE = pathlib.Path(__file__).resolve().parent
SVG = "{http://www.w3.org/2000/svg}"
sys.path[:0] = [str(HERE), str(HERE.parent / "integration")]
import pbtest  # noqa: E402
import wic_plot  # noqa: E402

PARTS = ("results", "frontier", "neighbours")


def plot(*reports, options=()):
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for i, report in enumerate(reports):
            paths.append(pathlib.Path(folder) / f"{i}.json")
            paths[-1].write_text(json.dumps(report))
        return subprocess.run([sys.executable, str(HERE / "wic_plot.py"), *options, *map(str, paths)], capture_output=True, text=True, timeout=60)


class Plot(unittest.TestCase):
    def setUp(self):
        self.report = json.loads((HERE / "wic_fixture.json").read_text())

    def only(self, *parts):
        for part in PARTS:
            if part not in parts:
                self.report[part] = []

    def picture(self, *reports):
        done = plot(*(reports or [self.report]))
        self.assertEqual(done.returncode, 0, done.stderr)
        return ElementTree.fromstring(done.stdout)

    def words(self, picture):
        return [t.text for t in picture.iter(SVG + "text")]

    def colours(self, picture, tag):
        return [e.get("stroke") if tag == "polyline" else e.get("fill") for e in picture.iter(SVG + tag)]

    def points(self, picture, name):
        """Lengths of the lines of a strategy."""
        return sorted(len(line.get("points").split()) for line in picture.iter(SVG + "polyline") if line.get("stroke") == wic_plot.STRATEGIES[name][0])

    def test_colours_tell_the_strategies_apart(self):
        self.assertEqual(len({colour for colour, _ in wic_plot.STRATEGIES.values()}), len(wic_plot.STRATEGIES))

    def test_strategies_have_a_name_and_a_point_per_size(self):
        self.only("results")
        picture = self.picture()
        for name in {r["strategy"] for r in self.report["results"]}:
            self.assertEqual(self.points(picture, name), [3, 3], name)
            self.assertIn(name, self.words(picture))

    def test_each_size_has_a_panel_of_its_sustained_loads(self):
        self.only("frontier")
        picture = self.picture()
        sizes = {r["chunk_bytes"] for r in self.report["frontier"]}
        for name in {r["strategy"] for r in self.report["frontier"]}:
            kept = [sum(r["kept_up"] for r in self.report["frontier"] if (r["strategy"], r["chunk_bytes"]) == (name, size) and r["load"]) for size in sizes]
            self.assertEqual(self.points(picture, name), sorted(kept + kept + [len(sizes)]), f"{name}: p50, p99, and throughput by size")
        for size in sizes:
            self.assertTrue(any(word.startswith(wic_plot.size(size) + ": latency") for word in self.words(picture)))

    def test_neighbours_have_bars_and_a_worst_value(self):
        self.only("neighbours")
        picture = self.picture()
        bars = self.colours(picture, "rect")
        for name in {r["strategy"] for r in self.report["neighbours"]}:
            rows = [r for r in self.report["neighbours"] if r["strategy"] == name]
            self.assertEqual(bars.count(wic_plot.STRATEGIES[name][0]), 3 * len(rows), name)
            for key in wic_plot.KINDS:
                self.assertIn(wic_plot.number(max(r[key][1] for r in rows if r["where"] == "own")), self.words(picture))
        self.assertEqual(sum("in another process, with MPS" in word for word in self.words(picture)), 3)

    def test_all_lies_within_the_picture(self):
        picture = self.picture()
        width, height = float(picture.get("width")), float(picture.get("height"))
        for e in picture.iter():
            for key, most in (("x", width), ("y", height)):
                if e.get(key):
                    self.assertTrue(0 <= float(e.get(key)) <= most, f"{e.tag} {e.attrib}")
        for line in picture.iter(SVG + "polyline"):
            for point in line.get("points").split():
                x, y = map(float, point.split(","))
                self.assertTrue(0 <= x <= width and 0 <= y <= height, point)

    def test_titles_of_panels_do_not_run_into_the_next(self):
        for t in self.picture().iter(SVG + "text"):
            if t.get("font-weight") and not t.get("font-size"):
                self.assertLess(7.2 * len(t.text), wic_plot.WIDTH + wic_plot.GAP, t.text)

    def test_it_says_what_was_measured_on(self):
        title = next(iter(self.words(self.picture())))
        for part in ("NVIDIA H200", "580.95.05", "sm_80", "2026-01-02"):
            self.assertIn(part, title)

    def test_files_are_drawn_together(self):
        second = dict(self.report, results=[], neighbours=[])
        first = dict(self.report, frontier=[], ceiling_gbs=0)
        together, alone = self.picture(first, second), self.picture(self.report)
        self.assertEqual(self.words(together), self.words(alone))

    def test_files_of_different_gpus_are_not(self):
        done = plot(self.report, dict(self.report, gpu="NVIDIA H100"))
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("H100", done.stderr)

    def test_one_size_and_few_strategies_are_enough(self):
        self.only("results")
        self.report["results"] = [r for r in self.report["results"] if r["chunk_bytes"] == 65536 and r["strategy"] != "graph"]
        self.assertNotIn("graph", self.words(self.picture()))

    def test_an_unknown_strategy_is_not_left_out_silently(self):
        for part in PARTS:
            report = json.loads(json.dumps(self.report))
            report[part][0]["strategy"] = "magic"
            done = plot(report)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("magic", done.stderr)

    def row(self, chunk, load, name):
        done = plot(self.report, options=["--table"])
        self.assertEqual(done.returncode, 0, done.stderr)
        found = [line for line in done.stdout.splitlines() if line.split()[:2] == chunk.split() and f" {load} " in line and f" {name} " in line]
        self.assertEqual(len(found), 1, done.stdout)
        return found[0]

    def change(self, chunk, load, name, **figures):
        for r in self.report["frontier"]:
            if (r["chunk_bytes"], r["load"], r["strategy"]) == (chunk, load, name):
                r.update(figures)

    def test_table_compares_with_the_best_rival(self):
        self.change(65536, 50, "wic", p50_us=[9, 10, 11], p99_us=[19, 20, 21])
        self.change(65536, 50, "wic-channel", p50_us=[3, 4, 5])  # no rival
        self.change(65536, 50, "stream-batch", p50_us=[19, 20, 21], p99_us=[90, 99, 100])
        self.change(65536, 50, "poll-elected", p50_us=[29, 30, 31], p99_us=[30, 40, 50])
        row = self.row("64 KiB", "50 %", "wic")
        self.assertIn("0.50 (10 / stream-batch 20)", row)
        self.assertIn("0.50 (20 / poll-elected 40)", row)

    def test_a_rival_that_did_not_keep_up_is_not_the_best(self):
        self.change(65536, 50, "stream-batch", p50_us=[0, 1, 2], kept_up=False)
        self.assertNotIn("stream-batch 1.00", self.row("64 KiB", "50 %", "wic"))

    def test_the_table_says_when_wic_did_not_keep_up(self):
        self.change(65536, 50, "wic", kept_up=False)
        self.assertIn("overloaded", self.row("64 KiB", "50 %", "wic"))

    def test_the_table_compares_throughput(self):
        self.change(65536, 0, "wic", gbs=[49, 50, 51])
        self.change(65536, 0, "stream-batch", gbs=[39, 40, 41])
        self.change(65536, 0, "poll-elected", gbs=[19, 20, 21])
        self.assertIn("1.25 (50 / stream-batch 40) GB/s", self.row("64 KiB", "max", "wic"))

    def test_readme_has_the_figures_of_wic_channel(self):
        root = HERE.parents[1]
        done = subprocess.run([sys.executable, str(HERE / "wic_plot.py"), "--channel", str(root / "wic/bench/h200.json")], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("| 16 KiB | 80 % | 24 / 411 | 109 / 153 |", done.stdout)
        self.assertIn(done.stdout.strip(), (root / "wic/README.md").read_text())


if __name__ == "__main__":
    pbtest.main()
