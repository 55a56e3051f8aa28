#!/usr/bin/env python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""wic_plot.py on wic_fixture.json (figures shaped like wic-bench's, not a measurement): every strategy is in the picture,
with a mark for every chunk size in both panels and a bar for every measurement of neighbours."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

HERE = pathlib.Path(__file__).resolve().parent
SVG = "{http://www.w3.org/2000/svg}"
sys.path.insert(0, str(HERE))
import wic_plot  # noqa: E402


def plot(report):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(report, file)
        file.flush()
        return subprocess.run([sys.executable, str(HERE / "wic_plot.py"), file.name], capture_output=True, text=True, timeout=60)


class Plot(unittest.TestCase):
    def setUp(self):
        self.report = json.loads((HERE / "wic_fixture.json").read_text())

    def picture(self):
        done = plot(self.report)
        self.assertEqual(done.returncode, 0, done.stderr)
        return ElementTree.fromstring(done.stdout)

    def words(self, picture):
        return [t.text for t in picture.iter(SVG + "text")]

    def colours(self, picture, tag):
        return [e.get("stroke") if tag == "polyline" else e.get("fill") for e in picture.iter(SVG + tag)]

    def test_each_strategy_has_a_line_in_both_panels_and_a_name(self):
        picture = self.picture()
        lines = [line for line in picture.iter(SVG + "polyline")]
        for name, (colour, _) in wic_plot.STRATEGIES.items():
            mine = [line for line in lines if line.get("stroke") == colour]
            self.assertEqual(len(mine), 2, name)
            for line in mine:
                self.assertEqual(len(line.get("points").split()), 3, f"{name}: a point for each size")
            self.assertIn(name, self.words(picture))

    def test_each_measurement_of_neighbours_has_a_bar_with_its_value(self):
        picture = self.picture()
        bars = self.colours(picture, "rect")
        for name in {r["strategy"] for r in self.report["neighbours"]}:
            self.assertEqual(bars.count(wic_plot.STRATEGIES[name][0]), 4, name)
        for row in self.report["neighbours"]:
            self.assertIn(wic_plot.number(row["memory"]), self.words(picture))

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

    def test_it_says_what_was_measured_on(self):
        title = next(iter(self.words(self.picture())))
        for part in ("NVIDIA H200", "580.95.05", "sm_80", "2026-01-02"):
            self.assertIn(part, title)

    def test_without_neighbours_there_are_no_bars(self):
        self.report["neighbours"] = []
        colours = self.colours(self.picture(), "rect")
        self.assertFalse(set(colours) & {c for c, _ in wic_plot.STRATEGIES.values()})

    def test_one_size_and_few_strategies_are_enough(self):
        self.report["results"] = [r for r in self.report["results"] if r["chunk_bytes"] == 65536 and r["strategy"] != "graph"]
        self.assertNotIn("graph", self.words(self.picture()))

    def test_an_unknown_strategy_is_not_left_out_silently(self):
        self.report["results"][0]["strategy"] = "magic"
        done = plot(self.report)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("magic", done.stderr)


if __name__ == "__main__":
    unittest.main()
