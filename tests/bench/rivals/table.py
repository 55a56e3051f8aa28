# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Output of the rows: a table for a terminal, or for RESULTS.md."""


def mark(result):
    return "pushbroom" if result["rival"] == "pushbroom" else "best" if result["best"] else ""


def text(row):
    """Figures of one row: of all contestants, the fastest first."""
    yield f"\n{row['title']}; {row['size']} x {row['size']}; ratio of {row['of']}, {row['bar']} aimed at"
    yield f"{'':62} {'turns':>5} {'seconds':>8} {'spread':>13} {'CPU s':>7} {'peak MB':>8} {'file MB':>8} {'ratio':>6}"
    for r in sorted(row["results"], key=lambda r: r["seconds"]):
        name = f"{r['title']}{', ' if r['setting'] else ''}{r['setting']}"
        yield f"{name:62} {r['turns']:5} {r['seconds']:8.2f} {r['spread'][0]:6.2f}-{r['spread'][1]:<6.2f} {r['cpu_seconds']:7.2f} {r['peak_mb']:8} {r['file_mb']:8.1f} " \
              f"{r['ratio']:6.2f}  {mark(r)}{' ' + r['wrong'] if r['wrong'] else ''}".rstrip()
    for title, why in row["absent"].items():
        yield f"{title:62} absent: {why}"


def figures(r):
    return f"{r['seconds']:.2f} s, {r['cpu_seconds']:.1f}, {r['peak_mb']}, {r['file_mb']:.0f}"


def markdown(rows):
    """A line a row: the best rival and pushbroom."""
    if not rows:
        return
    yield "| | best rival of equal or smaller file | seconds, CPU s, peak MB, file MB | pushbroom | |"
    yield "|---|---|---|---|---|"
    for row in rows:
        us = next(r for r in row["results"] if r["rival"] == "pushbroom")
        rival = next((r for r in row["results"] if r["best"]), None)
        if rival is None:
            yield f"| {row['title']} | none | | {figures(us)} | |"
            continue
        name = f"{rival['title']}{', ' if rival['setting'] else ''}{rival['setting']}"
        unit = " of CPU" if row["of"] == "CPU seconds" else ""
        yield f"| {row['title']} | {name} | {figures(rival)} | {figures(us)} | {row['ratio']:.2f} x{unit} |"


def absent(rows):
    """Rivals that were absent, or could not do a row: never silently left out."""
    why = {}
    for row in rows:
        for title, reason in row["absent"].items():
            why.setdefault((title, reason), []).append(row["row"])
    for (title, reason), names in why.items():
        yield f"{title}: {reason} ({', '.join(names) if len(names) < len(rows) else 'every row'})"
