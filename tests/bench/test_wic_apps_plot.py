#!/usr/bin/env python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""wic_apps_plot.py: a mark for each strategy and size that was timed, and a line for each oracle."""
import pathlib
import sys
import unittest
import xml.etree.ElementTree as ElementTree

HERE = pathlib.Path(__file__).resolve().parent
SVG = "{http://www.w3.org/2000/svg}"
sys.path[:0] = [str(HERE), str(HERE.parent / "integration")]
import pbtest  # noqa: E402
import wic_apps_plot  # noqa: E402


def row(app, size, strategy, total=None):
    out = {"app": app, "paper": "C_X", "size": size, "party0": "works", "strategy": strategy, "why": "" if total else "needs another driver", "runs": 6, "wrong": 0}
    if total:
        out.update(total_s=total, oracle_s=1e-3)
    if total and strategy != "oracle":
        out.update(host_s=2e-4)
    return out


class Plot(unittest.TestCase):
    def test_marks_and_oracles(self):
        rows = [row("cg", "small", "oracle", 1e-3), row("cg", "small", "stream", 4e-3), row("cg", "small", "graph-while", 2e-3), row("cg", "large", "oracle", 1e-2),
                row("cg", "large", "stream", 2e-2), row("cg", "large", "graph-while"), row("fe", "small", "stream", 1e-4)]
        picture = ElementTree.fromstring(wic_apps_plot.draw({"gpu": "a GPU", "rows": rows}))
        colours = [e.get("fill") for e in picture.iter(SVG + "path")]
        marks = {name: colours.count(wic_apps_plot.wic_plot.STRATEGIES[name][0]) for name in ("stream", "graph-while")}
        self.assertEqual(marks, {"stream": 3 + 1, "graph-while": 1 + 1})  # one in the legend
        self.assertEqual(sum(e.get("class") == "oracle" for e in picture.iter(SVG + "path")), 2)
        words = [t.text for t in picture.iter(SVG + "text")]
        self.assertIn("cg (C_X), host works, us", words)
        self.assertIn("large", words)


if __name__ == "__main__":
    pbtest.main()
