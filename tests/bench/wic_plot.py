#!/usr/bin/env python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Draws what `wic-bench --json FILE` wrote: throughput and latency by chunk size, a line for each strategy, and what its
waiting warps cost their neighbours.

    wic_plot.py FILE.json > FILE.svg

The picture has a background of its own, which follows the reader's light or dark scheme; strategies differ by colour and
by the shape of their marks."""
import json
import math
import sys
from xml.sax.saxutils import escape

# colour and mark; mid tones, which are legible on white and on black
STRATEGIES = {"wic": ("#e5484d", "circle"), "poll-host": ("#a1765c", "square"), "poll-device": ("#2f8fd8", "diamond"),
              "poll-nanosleep": ("#12a594", "down"), "stream": ("#4da333", "up"), "graph": ("#9a6dd7", "cross")}
DASHED = ("poll-nanosleep", "graph")  # which lie upon the one named before them
WIDTH, HEIGHT, LEFT, TOP, GAP, LEGEND = 400, 250, 62, 66, 84, 26
STYLE = """
  .card { fill: #ffffff } .ink { fill: #24292f } .soft { fill: #57606a } .frame { stroke: #8c959f; fill: none }
  .grid { stroke: #8c959f; stroke-opacity: 0.3 }
  @media (prefers-color-scheme: dark) {
    .card { fill: #0d1117 } .ink { fill: #e6edf3 } .soft { fill: #9ea7b1 }
  }
"""


class Axis:
    """Maps values to pixels; a logarithmic one (with a base) has a tick at every power of it."""

    def __init__(self, low, high, start, length, base=None):
        self.base = base
        self.low, self.high = (math.log(low, base), math.log(high, base)) if base else (low, high)
        self.start, self.length = start, length

    def at(self, value):
        place = math.log(value, self.base) if self.base else value
        return self.start + self.length * (place - self.low) / ((self.high - self.low) or 1)

    def ticks(self):
        if self.base:
            return [self.base ** i for i in range(math.ceil(self.low - 1e-9), math.floor(self.high + 1e-9) + 1)]
        return range(0, int(self.high) + 1, 10 if self.high > 20 else 5)


def decades(values):
    """Powers of ten around all of them."""
    low, high = math.floor(math.log10(min(values)) + 1e-9), math.ceil(math.log10(max(values)) - 1e-9)
    return 10.0 ** low, 10.0 ** max(high, low + 1)


def text(x, y, words, anchor="middle", kind="ink", extra=""):
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {extra}>{escape(words)}</text>'


def dash(name):
    return 'stroke-dasharray="6 5"' if name in DASHED else ""


def mark(name, x, y):
    colour, shape = STRATEGIES[name]
    r = 3.5
    path = {"square": f"M{x - r:.1f} {y - r:.1f}h{2 * r}v{2 * r}h{-2 * r}z", "up": f"M{x:.1f} {y - r - 1:.1f}l{r + 1} {2 * r + 1}h{-2 * r - 2}z",
            "diamond": f"M{x:.1f} {y - r - 1:.1f}l{r + 1} {r + 1}l{-r - 1} {r + 1}l{-r - 1} {-r - 1}z",
            "down": f"M{x:.1f} {y + r + 1:.1f}l{r + 1} {-2 * r - 1}h{-2 * r - 2}z"}
    if shape == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r + 0.5}" fill="{colour}"/>'
    if shape == "cross":
        return f'<path d="M{x - r:.1f} {y - r:.1f}l{2 * r} {2 * r}m0 {-2 * r}l{-2 * r} {2 * r}" stroke="{colour}" stroke-width="2"/>'
    return f'<path d="{path[shape]}" fill="{colour}"/>'


def size(n):
    return f"{n / 2**20:g} MiB" if n >= 2**20 else f"{n / 1024:g} KiB"


def number(value):
    return f"{value:.2f}" if value < 10 else f"{value:.0f}"


def frame(title, left, top, y):
    out = [text(left, top - 12, title, "start", extra='font-weight="600"')]
    for value in y.ticks():
        out.append(f'<path class="grid" d="M{left} {y.at(value):.1f}h{WIDTH}"/>')
        out.append(text(left - 7, y.at(value) + 4, f"{value:g}", "end", "soft"))
    return out + [f'<rect class="frame" x="{left}" y="{top}" width="{WIDTH}" height="{HEIGHT}"/>']


def lines(results, key, title, left, top, logarithmic):
    results = [r for r in results if r[key] > 0]
    sizes = sorted({r["chunk_bytes"] for r in results})
    low, high = decades([r[key] for r in results]) if logarithmic else (0, max(r[key] for r in results) * 1.06)
    x = Axis(sizes[0], sizes[-1], left + 24, WIDTH - 48, 2)
    y = Axis(low, high, top + HEIGHT, -HEIGHT, 10 if logarithmic else None)
    out = frame(title, left, top, y)
    out += [text(x.at(n), top + HEIGHT + 18, size(n), kind="soft") for n in sizes]
    for name, (colour, _) in sorted(STRATEGIES.items(), key=lambda item: (item[0] == "wic", item[0] in DASHED)):  # wic on top
        points = sorted((r["chunk_bytes"], r[key]) for r in results if r["strategy"] == name)
        if points:
            path = " ".join(f"{x.at(n):.1f},{y.at(v):.1f}" for n, v in points)
            out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2" {dash(name)}/>')
            out += [mark(name, x.at(n), y.at(v)) for n, v in points]
    return out


def bars(rows, key, title, left, top):
    names = [n for n in STRATEGIES if any(r["strategy"] == n for r in rows)]
    _, high = decades([1.0] + [r[key] for r in rows])
    y = Axis(0.5, high, top + HEIGHT, -HEIGHT, 10)
    out = frame(title, left, top, y)
    group = WIDTH / len(names)
    for i, name in enumerate(names):
        mine = sorted((r["waiting_warps"], r[key]) for r in rows if r["strategy"] == name)
        width = group / (len(mine) + 1)
        for j, (warps, value) in enumerate(mine):
            at = left + group * i + width * (j + 0.5)
            from_y, to_y = y.at(1), y.at(max(value, 0.5))
            up, tall = min(from_y, to_y), max(abs(from_y - to_y), 2)
            out.append(f'<rect x="{at + 2:.1f}" y="{up:.1f}" width="{width - 4:.1f}" height="{tall:.1f}" fill="{STRATEGIES[name][0]}"/>')
            out.append(text(at + width / 2, up - 5, number(value)))
            out.append(text(at + width / 2, top + HEIGHT - 6, f"{warps}", kind="soft"))
        out.append(text(left + group * (i + 0.5), top + HEIGHT + 18, name, kind="soft"))
    return out


def legend(names, y):
    out = []
    for i, name in enumerate(names):
        at = LEFT + 140 * i
        out.append(f'<path d="M{at} {y}h26" stroke="{STRATEGIES[name][0]}" stroke-width="2" {dash(name)}/>')
        out += [mark(name, at + 13, y), text(at + 33, y + 4, name, "start")]
    return out


def measured_on(report):
    code = f"code for sm_{report['code']}" if report.get("code") not in (None, report.get("compute")) else ""
    driver = f"driver {report['driver']}" if report.get("driver") else ""
    return ", ".join(part for part in (report["gpu"], driver, code, report.get("date", "")[:10]) if part)


def draw(report):
    results, beside = report["results"], report.get("neighbours", [])
    second = LEFT + WIDTH + GAP
    names = [n for n in STRATEGIES if any(r["strategy"] == n for r in results)]
    width, height = second + WIDTH + 28, TOP + HEIGHT + 34 + LEGEND
    body = [text(LEFT, 26, f"wic-bench: {measured_on(report)}", "start", extra='font-size="15" font-weight="600"')]
    body += lines(results, "gbs", "throughput by chunk size, GB/s of input", LEFT, TOP, False)
    body += lines(results, "p50_us", "latency by chunk size, median us, one chunk at a time", second, TOP, True)
    body += legend(names, TOP + HEIGHT + 44)
    if beside:
        below = height + 44
        warps = sorted({r["waiting_warps"] for r in beside})
        beside_whom = f"of {' or '.join(map(str, warps))} waiting warps, times slower"
        body += bars(beside, "fma", f"FMA-bound neighbours {beside_whom}", LEFT, below)
        body += bars(beside, "memory", "memory-bound neighbours, times slower", second, below)
        height = below + HEIGHT + 36
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
                      'font-family="sans-serif" font-size="12">', f"<style>{STYLE}</style>",
                      f'<rect class="card" width="{width}" height="{height}" rx="6"/>'] + body + ["</svg>"])


def main():
    if len(sys.argv) != 2 or sys.argv[1] in ("-h", "--help"):
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as file:
        report = json.load(file)
    unknown = {r["strategy"] for r in report["results"]} - set(STRATEGIES)
    if unknown or not report["results"]:
        sys.exit(f"{sys.argv[1]}: " + (f"no colour for {', '.join(sorted(unknown))}" if unknown else "no results"))
    print(draw(report))


if __name__ == "__main__":
    main()
