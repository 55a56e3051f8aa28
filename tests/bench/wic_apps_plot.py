#!/usr/bin/env python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Draws what `wic-apps --json FILE` wrote: a panel for each application and each way of the host (it works or replays), with the
time of each strategy at each size. A line at each size is the oracle, a dashed one the work of the host.

    wic_apps_plot.py FILE.json > FILE.svg"""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import wic_plot  # noqa: E402
from wic_plot import GAP, HEIGHT, LEFT, ROW, STYLE, TOP, WIDTH, Axis, decades, frame, mark, text  # noqa: E402

wic_plot.STRATEGIES.update({"graph-while": ("#d6409f", "down"), "zero-copy": ("#0d74ce", "diamond"), "nblocking": ("#12a594", "up"),
                            "demandcpy": ("#a1765c", "square")})
SIZES = ("tiny", "small", "middle", "large")


def timed(report):
    return [r for r in report["rows"] if r.get("total_s")]


def panel(rows, left, top):
    """Times in microseconds; strategies of a size are next to each other."""
    names = list(dict.fromkeys(r["strategy"] for r in rows if r["strategy"] in wic_plot.STRATEGIES))
    sizes = [s for s in SIZES if any(r["size"] == s for r in rows)]
    times = [r[key] * 1e6 for r in rows for key in ("total_s", "host_s") if r.get(key)]
    y = Axis(*decades(times), top + HEIGHT, -HEIGHT, 10)
    out = frame(f"{rows[0]['app']} ({rows[0]['paper']}), host {rows[0]['party0']}, us", left, top, y)
    for i, size in enumerate(sizes):
        start, wide = left + WIDTH * i / len(sizes), WIDTH / len(sizes)
        out.append(text(start + wide / 2, top + HEIGHT + 18, size, kind="soft"))
        own = [r for r in rows if r["size"] == size]
        hosts = sorted(r["host_s"] for r in own if r.get("host_s"))
        if hosts:
            at = y.at(hosts[len(hosts) // 2] * 1e6)
            out.append(f'<path class="host" d="M{start + 8:.1f} {at:.1f}h{wide - 16:.1f}"/>')
        for r in own:
            at = y.at(r["total_s"] * 1e6)
            if r["strategy"] == "oracle":
                out.append(f'<path class="oracle" d="M{start + 8:.1f} {at:.1f}h{wide - 16:.1f}"/>')
            elif r["strategy"] in names:
                out.append(mark(r["strategy"], start + wide * (names.index(r["strategy"]) + 1) / (len(names) + 1), at))
    return out


def legend(names, y):
    out = []
    for i, name in enumerate(names):
        x = LEFT + 6 + i % 6 * 140
        out += [mark(name, x, y + i // 6 * 20 - 4), text(x + 12, y + i // 6 * 20, name, "start")]
    return out


def draw(report):
    rows = timed(report)
    apps = list(dict.fromkeys((r["app"], r["party0"]) for r in rows))
    names = [n for n in wic_plot.STRATEGIES if any(r["strategy"] == n for r in rows)]
    second = LEFT + WIDTH + GAP
    width = second + WIDTH + 28
    top = TOP + 20 * ((len(names) + 5) // 6) + 6
    height = top + ROW * ((len(apps) + 1) // 2)
    body = [text(LEFT, 26, f"wic-apps: {report['gpu']}; lines: oracle, and dashed the host's work", "start", extra='font-size="15" font-weight="600"')]
    body += legend(names, 48)
    for i, app in enumerate(apps):
        body += panel([r for r in rows if (r["app"], r["party0"]) == app], second if i % 2 else LEFT, top + ROW * (i // 2))
    own = "  .oracle { stroke: #1a7f37; stroke-width: 2 } .host { stroke: #8c959f; stroke-width: 2; stroke-dasharray: 5 4 }"
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
                      'font-family="sans-serif" font-size="12">', f"<style>{STYLE}{own}</style>",
                      f'<rect class="card" width="{width}" height="{height}" rx="6"/>'] + body + ["</svg>"])


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print(draw(json.loads(pathlib.Path(sys.argv[1]).read_text())))
