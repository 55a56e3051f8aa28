# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Conclusions of a row, and its lines for a terminal. figures.py writes the same to a page."""

EQUAL = 1.01  # files up to this factor of ours are as small as ours
NEAR = 1.1  # and up to this one, if no rival's is as small
SAME_CPU = 1.5  # rivals up to this factor of the least CPU seconds of all rivals take the same


def us_of(row):
    return next(r for r in row["results"] if r["rival"] == "pushbroom")


def right(row):
    return [r for r in row["results"] if r["rival"] != "pushbroom" and r["wrong"] is None]


def comparable(rivals, our_mb):
    """Rivals whose file is as small as ours within 1 %. If there is no such rival, those within 10 %, although their product is worse."""
    return next(filter(None, ([r for r in rivals if r["file_mb"] <= most * our_mb] for most in (EQUAL, NEAR))), [])


def as_small(row):
    return comparable(right(row), us_of(row)["file_mb"])


def best_of(row):
    """The one with the fewest seconds; None if no rival's file is as small."""
    return min(as_small(row), key=lambda r: r["seconds"], default=None)


def times(row, key, gdal_only=False):
    """The least ratio of seconds, or CPU seconds, of a rival to ours; None without a rival. Each ratio has its own rival."""
    rivals = comparable([r for r in right(row) if r["gdal"] or not gdal_only], us_of(row)["file_mb"])
    return min((r[key] for r in rivals), default=None) and min(r[key] for r in rivals) / us_of(row)[key]


def smallest(row):
    """The rival with the smallest file at equal CPU; None without a rival, and for files that are not compressed."""
    rivals = right(row) if row["compressed"] else []
    least = min((r["cpu_seconds"] for r in rivals), default=0)
    return min((r for r in rivals if r["cpu_seconds"] <= SAME_CPU * least), key=lambda r: r["file_mb"], default=None)


def larger(row):
    """Share by which our file is larger than the smallest one at equal CPU, or None."""
    rival = smallest(row)
    return us_of(row)["file_mb"] / rival["file_mb"] - 1 if rival else None


def breaks_rule(row):
    """True if a default product is more than 1 % larger than the best rival's at equal CPU."""
    share = larger(row)
    return row["default"] and share is not None and share > EQUAL - 1


def factor(value):
    return f"{value:.2f}" if value else "-"


def size_note(row):
    rival = smallest(row)
    if rival is None:
        return "no compressed file of a rival to compare with"
    note = f"file {100 * larger(row):+.1f} % of that of {rival['name']} ({rival['file_mb']:.1f} MB), the smallest at equal CPU"
    return note + (": a default product is more than 1 % larger" if breaks_rule(row) else "")


def text(row):
    """Figures of all contestants, the fastest first, and the conclusions."""
    yield f"\n{row['title']}; {row['scene']}, {row['size']} x {row['size']}"
    yield f"{'':62} {'turns':>5} {'seconds':>8} {'spread':>13} {'CPU s':>7} {'peak MB':>8} {'file MB':>8}"
    best = best_of(row)
    for r in sorted(row["results"], key=lambda r: r["seconds"]):
        mark = " best" if r is best else f" {r['wrong']}" if r["wrong"] else ""
        yield f"{r['name']:62} {r['turns']:5} {r['seconds']:8.2f} {r['spread'][0]:6.2f}-{r['spread'][1]:<6.2f} {r['cpu_seconds']:7.2f} {r['peak_mb']:8.0f} {r['file_mb']:8.1f}{mark}"
    aims = " and ".join(f"{bar} of {what}" for bar, what in zip(row["bars"], ("seconds", "CPU")) if bar)
    yield f"  times as fast as the best rival: seconds {factor(times(row, 'seconds'))}, CPU {factor(times(row, 'cpu_seconds'))}; as the best with GDAL: " \
          f"{factor(times(row, 'seconds', True))}, {factor(times(row, 'cpu_seconds', True))}; the aim is {aims}"
    yield f"  {size_note(row)}"
    for title, why in row["absent"].items():
        if why.startswith(("not installed", "failed")):  # the page has the others, too
            yield f"  {title} is absent: {why}"


def absent(rows):
    """Rivals that were absent, or could not do a row: never silently left out."""
    why = {}
    for row in rows:
        for title, reason in row["absent"].items():
            names = why.setdefault((title, reason), [])
            names += [] if row["row"] in names else [row["row"]]
    for (title, reason), names in why.items():
        yield f"{title}: {reason} ({', '.join(names) if len(names) < len({row['row'] for row in rows}) else 'every row'})"
