#!/usr/bin/env python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""A small run of latency.py, so that it does not break unseen: every figure is there, for both kinds of products."""
import json
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))
import pbtest  # noqa: E402

LATENCY = pathlib.Path(__file__).resolve().parent / "latency.py"
FIGURES = {"p50_ms", "p90_ms", "cpu_ms", "burst_ms", "burst_cpu_ms", "run_ms", "run_cpu_ms", "many_ms", "many_cpu_ms", "busy_ms"}


class Latency(unittest.TestCase):
    def test_a_small_run(self):
        for products in ("cog", "all"):
            done = subprocess.run([sys.executable, str(LATENCY), "--size", "128", "--scenes", "2", "--burst", "3", "--repeat", "1", "--products", products],
                                  stdout=subprocess.PIPE, text=True, check=True)
            result, = json.loads(done.stdout.splitlines()[-1])["results"]
            self.assertEqual(set(result) - {"bin"}, FIGURES)
            self.assertLessEqual(result["p50_ms"], result["p90_ms"])
            for figure in FIGURES - {"busy_ms", "cpu_ms", "burst_cpu_ms"}:
                self.assertGreater(result[figure], 0, figure)


if __name__ == "__main__":
    pbtest.main()
