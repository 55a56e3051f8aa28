#!/usr/bin/env python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Draws what `wic-bench --json FILE` wrote: throughput and latency by chunk size, a line for each strategy.
Usage: wic_plot.py FILE.json > FILE.svg"""
import json
import math
import sys
from xml.sax.saxutils import escape

COLOURS = {"wic": "#d62728", "poll-host": "#8c564b", "poll-device": "#1f77b4", "poll-nanosleep": "#17becf",
           "stream": "#2ca02c", "graph": "#9467bd"}
WIDTH, HEIGHT, LEFT, TOP, GAP = 360, 260, 60, 40, 90


class Axis:
    """Maps values to pixels; logarithmic ones get a tick at every power of `base`."""

    def __init__(self, low, high, start, length, base=None):
        self.base = base
        self.low, self.high = (math.log(low, base), math.log(high, base)) if base else (low, high)
        self.start, self.length = start, length

    def at(self, value):
        place = math.log(value, self.base) if self.base else value
        return self.start + self.length * (place - self.low) / ((self.high - self.low) or 1)

    def ticks(self):
        if self.base:
            first, last = math.ceil(self.low - 1e-9), math.floor(self.high + 1e-9)
            return [self.base ** i for i in range(first, last + 1)]
        return [i for i in range(0, int(self.high) + 1, 10)]


def text(x, y, words, anchor="middle", extra=""):
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" {extra}>{escape(words)}</text>'


def size(n):
    return f"{n // 2**20}M" if n >= 2**20 else f"{n // 1024}K"


def panel(results, key, title, left, base):
    sizes = sorted({r["chunk_bytes"] for r in results})
    values = [r[key] for r in results if r[key] > 0]
    high = max(values) * 1.05 if base is None else base ** math.ceil(math.log(max(values), base))
    low = 0 if base is None else base ** math.floor(math.log(min(values), base))
    x = Axis(sizes[0], sizes[-1], left, WIDTH, 2)
    y = Axis(low, high, TOP + HEIGHT, -HEIGHT, base)
    out = [text(left + WIDTH / 2, TOP - 14, title),
           f'<rect x="{left}" y="{TOP}" width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="#999"/>']
    for n in sizes:
        out.append(text(x.at(n), TOP + HEIGHT + 18, size(n)))
    for value in y.ticks():
        out.append(f'<path d="M{left} {y.at(value):.1f}h{WIDTH}" stroke="#ddd"/>')
        out.append(text(left - 6, y.at(value) + 4, f"{value:g}", "end"))
    for name, colour in COLOURS.items():
        points = sorted((r["chunk_bytes"], r[key]) for r in results if r["strategy"] == name and r[key] > 0)
        if points:
            line = " ".join(f"{x.at(n):.1f},{y.at(v):.1f}" for n, v in points)
            out.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
    return out


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        report = json.load(file)
    results = report["results"]
    second = LEFT + WIDTH + GAP
    width, height = second + WIDTH + 30, TOP + HEIGHT + 80
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
           'font-family="sans-serif" font-size="12">', f'<rect width="{width}" height="{height}" fill="#fff"/>']
    out += panel(results, "gbs", f"{report['gpu']}: throughput, GB/s of input, by chunk", LEFT, None)
    out += panel(results, "p50_us", "latency p50, us from publish to visible result", second, 10)
    for i, name in enumerate(n for n in COLOURS if any(r["strategy"] == n for r in results)):
        at = LEFT + 130 * i
        out.append(f'<path d="M{at} {height - 20}h24" stroke="{COLOURS[name]}" stroke-width="3"/>')
        out.append(text(at + 30, height - 16, name, "start"))
    print("\n".join(out + ["</svg>"]))


if __name__ == "__main__":
    main()
