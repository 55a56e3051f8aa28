#!/usr/bin/env python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Draws what `wic-bench --json FILE` wrote, or prints the comparison of wic with the best of its rivals.

    wic_plot.py FILE.json.. > FILE.svg
    wic_plot.py --table FILE.json..
    wic_plot.py --channel FILE.json..     the table of wic/README.md: wic by wic.h, and streams that batch

Several files of one GPU (--frontier, --neighbours own, --neighbours mps, ..) make one picture: throughput and latency by
chunk size, latency against offered load (a panel a size; a load that a strategy did not keep up with is left out), and
the costs of each strategy for its neighbours. The picture has a background of its own, which follows the reader's light or dark
scheme; strategies differ by colour and by the shape of their marks."""
import json
import math
import sys
from xml.sax.saxutils import escape

# colour and mark; mid tones, which are legible on white and on black
STRATEGIES = {"wic": ("#e5484d", "circle"), "wic-channel": ("#f76b15", "circle"), "ce-post": ("#c2298a", "circle"),
              "poll-host": ("#a1765c", "square"), "poll-device": ("#2f8fd8", "diamond"), "poll-nanosleep": ("#12a594", "down"),
              "poll-naps": ("#0d74ce", "square"), "poll-elected": ("#5b5bd6", "up"), "pipeline": ("#8e4ec6", "diamond"),
              "managed-flag": ("#8d8d8d", "cross"), "launch": ("#978365", "up"), "wait-value": ("#b58900", "down"),
              "stream": ("#4da333", "up"), "stream-batch": ("#2b9a66", "square"), "stream-batch-8": ("#29a383", "cross"),
              "graph": ("#9a6dd7", "cross"), "asleep": ("#6e7781", "square")}
OURS = ("wic", "wic-channel", "ce-post")
DASHED = ("poll-nanosleep", "graph")  # drawn upon the one named before them
PLACES = {"own": "in the same process", "process": "in another process", "mps": "in another process, with MPS"}
KINDS = {"fma": "FMA-bound", "memory": "memory-bound", "l1": "L1-bound"}
WIDTH, HEIGHT, LEFT, TOP, GAP, LEGEND = 400, 250, 62, 66, 84, 26
ROW = HEIGHT + 74
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


def line(name, points, extra="", width=2):
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{path}" fill="none" stroke="{STRATEGIES[name][0]}" stroke-width="{width}" {extra}/>'


def drawing_order():
    return sorted(STRATEGIES, key=lambda name: (name == "wic", name in DASHED))  # wic on top


def by_size(points, title, left, top, logarithmic):
    """points: (strategy, chunk size, value)."""
    points = [p for p in points if p[2] > 0]
    sizes = sorted({n for _, n, _ in points})
    values = [v for _, _, v in points]
    low, high = decades(values) if logarithmic else (0, max(values) * 1.06)
    x = Axis(sizes[0], sizes[-1], left + 24, WIDTH - 48, 2)
    y = Axis(low, high, top + HEIGHT, -HEIGHT, 10 if logarithmic else None)
    out = frame(title, left, top, y)
    shown = sizes if len(sizes) < 8 else sizes[::2]
    out += [text(x.at(n), top + HEIGHT + 18, size(n), kind="soft") for n in shown]
    for name in drawing_order():
        mine = sorted((x.at(n), y.at(v)) for who, n, v in points if who == name)
        if mine:
            out += [line(name, mine, dash(name))] + [mark(name, *point) for point in mine]
    return out


def by_load(rows, chunk, left, top):
    """p50 with marks, p99 thin, of the loads that were kept up with."""
    rows = [r for r in rows if r["chunk_bytes"] == chunk and r["load"] > 0 and r["kept_up"]]
    if not rows:
        return []
    x = Axis(0, 100, left, WIDTH)
    y = Axis(*decades([r["p50_us"][1] for r in rows] + [r["p99_us"][1] for r in rows]), top + HEIGHT, -HEIGHT, 10)
    out = frame(f"{size(chunk)}: latency by offered load, us; p50, and p99 thin", left, top, y)
    out += [text(x.at(load), top + HEIGHT + 18, f"{load} %", kind="soft") for load in sorted({r["load"] for r in rows})]
    for name in drawing_order():
        mine = sorted((r["load"], r["p50_us"][1], r["p99_us"][1]) for r in rows if r["strategy"] == name)
        if mine:
            out.append(line(name, [(x.at(load), y.at(p99)) for load, _, p99 in mine], 'stroke-opacity="0.45"', 1))
            out.append(line(name, [(x.at(load), y.at(p50)) for load, p50, _ in mine], dash(name)))
            out += [mark(name, x.at(load), y.at(p50)) for load, p50, _ in mine]
    return out


def bars(rows, key, title, left, top):
    """A group for each strategy, a bar for each gap between chunks."""
    names = [n for n in STRATEGIES if any(r["strategy"] == n for r in rows)]
    values = [r[key][1] for r in rows]
    low, high = min([0.9] + values), max([1.1] + values) ** 1.15
    y = Axis(low * 0.95, high * 1.1, top + HEIGHT, -HEIGHT, 10)
    out = frame(title, left, top, y)
    out.append(f'<path class="grid" d="M{left} {y.at(1):.1f}h{WIDTH}" stroke-width="2"/>')
    group = WIDTH / len(names)
    for i, name in enumerate(names):
        mine = sorted(((r["gap_us"] or math.inf, r[key][1]) for r in rows if r["strategy"] == name), reverse=True)
        width = group / (len(mine) + 1)
        for j, (_, value) in enumerate(mine):
            at = left + group * i + width * (j + 0.5)
            up, tall = min(y.at(1), y.at(value)), max(abs(y.at(1) - y.at(value)), 2)
            out.append(f'<rect x="{at + 1:.1f}" y="{up:.1f}" width="{width - 2:.1f}" height="{tall:.1f}" fill="{STRATEGIES[name][0]}"/>')
        worst = max(value for _, value in mine)
        out.append(text(left + group * (i + 0.5), y.at(max(worst, 1)) - 5, number(worst)))
        out.append(text(left + group * (i + 0.5), top + HEIGHT + 18 + 13 * (i % 2), name, kind="soft"))
    return out


def legend(names, y):
    out = []
    for i, name in enumerate(names):
        at, below = LEFT + 140 * (i % 6), y + 20 * (i // 6)
        out.append(f'<path d="M{at} {below}h26" stroke="{STRATEGIES[name][0]}" stroke-width="2" {dash(name)}/>')
        out += [mark(name, at + 13, below), text(at + 33, below + 4, name, "start")]
    return out


def measured_on(report):
    code = f"code for sm_{report['code']}" if report.get("code") not in (None, report.get("compute")) else ""
    driver = f"driver {report['driver']}" if report.get("driver") else ""
    return ", ".join(part for part in (report["gpu"], driver, code, report.get("date", "")[:10]) if part)


def panels(report):
    """Functions of (left, top) that draw a panel each."""
    results, frontier, beside = report["results"], report["frontier"], report["neighbours"]
    full = [(r["strategy"], r["chunk_bytes"], r["gbs"][1]) for r in frontier if r["load"] == 0]
    if results:
        yield lambda *at: by_size([(r["strategy"], r["chunk_bytes"], r["gbs"]) for r in results], "throughput by chunk size, GB/s of input", *at, False)
        yield lambda *at: by_size([(r["strategy"], r["chunk_bytes"], r["p50_us"]) for r in results], "latency by chunk size, median us, one chunk at a time", *at, True)
    if full:
        yield lambda *at: by_size(full, f"throughput, all slots full, GB/s; copies alone {report['ceiling_gbs']:.1f}", *at, False)
    for chunk in sorted({r["chunk_bytes"] for r in frontier if r["load"] > 0}):
        yield lambda *at, chunk=chunk: by_load(frontier, chunk, *at)
    for where, words in PLACES.items():
        rows = [r for r in beside if r["where"] == where]
        gaps = ["none" if gap == 0 else f"{gap}" for gap in sorted({r["gap_us"] for r in rows}, key=lambda gap: -(gap or math.inf))]
        for key, kind in KINDS.items() if rows else ():
            title, note = f"{kind} neighbours {words}", f"times slower; a chunk every .. us: {', '.join(gaps)}"
            yield lambda *at, rows=rows, key=key, title=title, note=note: bars(rows, key, title, *at) + [text(at[0] + 6, at[1] + 16, note, "start", "soft")]


def draw(report):
    second = LEFT + WIDTH + GAP
    width = second + WIDTH + 28
    used = {r["strategy"] for part in ("results", "frontier", "neighbours") for r in report[part]}
    names = [n for n in STRATEGIES if n in used]
    body = [text(LEFT, 26, f"wic-bench: {measured_on(report)}", "start", extra='font-size="15" font-weight="600"')]
    body += legend(names, 48)
    top = TOP + 20 * ((len(names) + 5) // 6) + 6
    drawn = list(panels(report))
    for i, panel in enumerate(drawn):
        body += panel(second if i % 2 else LEFT, top + ROW * (i // 2))
    height = top + ROW * ((len(drawn) + 1) // 2)
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
                      'font-family="sans-serif" font-size="12">', f"<style>{STYLE}</style>",
                      f'<rect class="card" width="{width}" height="{height}" rx="6"/>'] + body + ["</svg>"])


def best(rows, key, pick):
    """The rival that is best in `key` among those that kept up: (value, name), or None."""
    rivals = [(r[key][1], r["strategy"]) for r in rows if r["strategy"] not in OURS and r["kept_up"] and r[key]]
    return pick(rivals) if rivals else None


def ratio(rows, name, key, pick):
    mine = [r for r in rows if r["strategy"] == name]
    rival = best(rows, key, pick)
    if not mine or not rival:
        return "-"
    if not mine[0]["kept_up"]:
        return f"overloaded ({rival[1]} {number(rival[0])})"
    return f"{mine[0][key][1] / rival[0]:.2f} ({number(mine[0][key][1])} / {rival[1]} {number(rival[0])})"


def table(report):
    """wic over the best rival, for each size and load: latency, lower is better; GB/s, higher is better."""
    out = [f"wic-bench: {measured_on(report)}; copies alone {report['ceiling_gbs']:.2f} GB/s",
           f"{'chunk':>8} {'load':>5}  {'strategy':11} {'p50 over the best rival':42} {'p99 over the best rival'}"]
    frontier = report["frontier"]
    for chunk in sorted({r["chunk_bytes"] for r in frontier}):
        here = [r for r in frontier if r["chunk_bytes"] == chunk]
        for load in sorted({r["load"] for r in here}, key=lambda load: load or 1000):
            rows = [r for r in here if r["load"] == load]
            for name in [n for n in OURS if any(r["strategy"] == n for r in rows)]:
                if load:
                    figures = f"{ratio(rows, name, 'p50_us', min):42} {ratio(rows, name, 'p99_us', min)}"
                else:
                    figures = f"{ratio(rows, name, 'gbs', max)} GB/s"
                out.append(f"{size(chunk):>8} {f'{load} %' if load else 'max':>5}  {name:11} {figures}".rstrip())
    return "\n".join(out)


def channel_table(report):
    """wic as a user of wic.h gets it, streams that batch, and the link alone: median and 99th percentile, us, and CPUs."""
    rows = {(r["chunk_bytes"], r["load"], r["strategy"]): r for r in report["frontier"]}
    out = ["| chunk | load | wic-channel, us | stream-batch, us | wic, us | CPUs: wic-channel, stream-batch |", "|---|---|---|---|---|---|"]
    for chunk, load in sorted({key[:2] for key in rows if key[1] in (5, 50, 80) and key[0] <= 1 << 20}):
        three = [rows.get((chunk, load, name)) for name in ("wic-channel", "stream-batch", "wic")]
        if None in three:
            continue
        us = [f"{number(r['p50_us'][1])} / {number(r['p99_us'][1])}" if r["kept_up"] else "-" for r in three]
        out.append(f"| {size(chunk)} | {load} % | {' | '.join(us)} | {three[0]['cpu']:.1f}, {three[1]['cpu']:.1f} |")
    return "\n".join(out)


def merged(paths):
    report = {}
    for path in paths:
        with open(path, encoding="utf-8") as file:
            one = json.load(file)
        if report and one["gpu"] != report["gpu"]:
            sys.exit(f"{path}: measured on {one['gpu']}, {paths[0]} on {report['gpu']}")
        for part in ("results", "neighbours", "ablation", "frontier"):
            one[part] = report.get(part, []) + one.get(part, [])
        one["ceiling_gbs"] = one.get("ceiling_gbs") or report.get("ceiling_gbs", 0)
        report = {**one, **{key: report[key] for key in ("driver", "date") if key in report}}
    return report


def main():
    printed = {"--table": table, "--channel": channel_table}
    paths = [word for word in sys.argv[1:] if word not in printed]
    if not paths or any(word.startswith("-") for word in paths):
        sys.exit(__doc__)
    report = merged(paths)
    used = {r["strategy"] for part in ("results", "frontier", "neighbours") for r in report[part]}
    if not used <= set(STRATEGIES) or not used:
        unknown = ", ".join(sorted(used - set(STRATEGIES)))
        sys.exit(f"{paths[0]}: " + (f"no colour for {unknown}" if unknown else "no results"))
    print(next((make(report) for word, make in printed.items() if word in sys.argv), None) or draw(report))


if __name__ == "__main__":
    main()
