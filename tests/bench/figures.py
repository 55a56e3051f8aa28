# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Pages of figures: pages/MACHINE.md is the newest run of tests/bench/run on a machine, and git has the older ones. This module writes and reads them,
and compares the figures of other documents with the newest page.

A document takes figures from the newest page by a comment above a paragraph:

    <!-- figures: ndvi synthetic: seconds peak_mb rival.seconds times -->

The numbers with a unit (s, ms, MB, GB, times) in the paragraph are these figures of the row and the scene, in this order, each rounded as it is
written there. Names are those of FIGURES; `rival.` means the best rival. A link to a page has to be to the newest one, and a date of
figures is that page's."""
import datetime
import os
import pathlib
import re
import subprocess
import textwrap

from rivals import table

HERE = pathlib.Path(__file__).resolve().parent
FOLDER = "tests/bench/pages"
WATCHED = ("README.md", "service/doc/comparison.md")  # documents in which a figure without the comment is an error
FIGURES = ("seconds", "cpu_seconds", "peak_mb", "file_mb", "scene_mb", "times", "times_cpu")
UNIT = r"(?: ms| s| MB| GB| times)\b"
FIGURE = re.compile(rf"(?<![\w.])(\d+(?:\.\d+)?)(?={UNIT})")
MARK = re.compile(r"^<!-- figures: (\S+) (\S+): ([\w. ]+) -->\n((?:[^\n]+\n)+)", re.M)
LINK = re.compile(r"\[figures of (\d{4}-\d\d-\d\d)\]\(([^)\s]*tests/bench/pages/|pages/)([^)\s]+)\)")
LINE = re.compile(r"^\| `([\w-]+)` \| (\w+) \| ([^|]+) \| (\d+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| ([^|]*) \|$", re.M)
HEAD = re.compile(r"^(\d{4}-\d\d-\d\d), pushbroom `([^`]+)`, scenes of (\d+) x \3 pixels\.", re.M)
SCENES = re.compile(r"^\| `([\w-]+)` \| (\w+) \| ([\d.]+) \|$", re.M)


# --- the machine ---


def machine():
    """The processor and the cores in use, as 'AMD EPYC (family 26, model 2), 2 cores'."""
    text = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    value = lambda key: (re.search(rf"^{key}\s*: (.*)$", text, re.M) or ["", "unknown"])[1].strip()  # noqa: E731
    model = re.sub(r"\s+", " ", value("model name"))
    return f"{model} (family {value('cpu family')}, model {value('model')}), {len(os.sched_getaffinity(0))} cores"


def path_of(machine_name, folder=HERE / "pages"):
    return folder / (re.sub(r"[^a-z0-9]+", "-", machine_name.lower()).strip("-") + ".md")


def commit(root):
    """The commit of the source, with a plus if files differ from it."""
    git = lambda *words: subprocess.run(["git", "-C", root, *words], capture_output=True, text=True, check=False)  # noqa: E731
    head = git("rev-parse", "--short=10", "HEAD")
    changed = git("status", "--porcelain", "--untracked-files=no").stdout.strip()
    return (head.stdout.strip() + ("+" if changed else "")) if head.returncode == 0 else "unknown"


# --- writing ---


def wrapped(text, indent=""):
    return textwrap.wrap(text, 100, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def figures(r):
    return f"{r['seconds']:.2f} s, {r['cpu_seconds']:.2f}, {r['peak_mb']:.0f}, {r['file_mb']:.1f}"


def conclusion(row):
    best, share = table.best_of(row), table.larger(row)
    ratios = [table.factor(table.times(row, key, gdal)) for gdal in (False, True) for key in ("seconds", "cpu_seconds")]
    size = "" if share is None else f"{100 * share:+.1f} %{' **larger**' if table.breaks_rule(row) else ''}"
    aims = ", ".join(f"{bar:.1f}" if bar else "-" for bar in row["bars"])
    return f"| {row['title']} | {row['scene']} | {figures(table.us_of(row))} | {best['name'] if best else 'none'} | {figures(best) if best else ''} | " \
           f"{ratios[0]}, {ratios[1]} | {ratios[2]}, {ratios[3]} | {aims} | {size} |"


def measurement(row, r, best):
    mark = "best" if r is best else r["wrong"] or ""
    return f"| `{row['row']}` | {row['scene']} | {r['name']} | {r['turns']} | {r['seconds']:.3f} | {r['cpu_seconds']:.3f} | {r['peak_mb']:.1f} | {r['file_mb']:.1f} | {mark} |"


def page(rows, others, about):
    """Text of a page. about: machine, commit, size, versions; others: sentences of the rows without rivals."""
    out = [f"# Figures of {about['machine']}", "", f"{datetime.date.today()}, pushbroom `{about['commit']}`, scenes of {about['size']} x {about['size']} pixels.", "",
           *wrapped("`tests/bench/run` wrote this page. [RESULTS.md](../RESULTS.md#rivals-file-to-cog) describes it."), "",
           "| program | version |", "|---|---|", *(f"| {name} | {version} |" for name, version in sorted(about["versions"].items())), "",
           "## Rows", "",
           "| | scene | pushbroom: s, CPU s, MB, file MB | best rival | its figures | times: s, CPU | with GDAL | aim | file |",
           "|---|---|---|---|---|---|---|---|---|", *map(conclusion, rows), "", "## Without rivals", "",
           *sum((wrapped(f"- {sentence}.", "  ") for sentence in others), []), "", "## Measurements", "",
           "| row | scene | program | turns | s | CPU s | peak MB | file MB | |", "|---|---|---|---|---|---|---|---|---|"]
    for row in rows:
        best = table.best_of(row)
        out += [measurement(row, r, best) for r in row["results"]]
    out += ["", "## Scenes", "", "| row | scene | MB |", "|---|---|---|", *(f"| `{row['row']}` | {row['scene']} | {row['scene_mb']:.1f} |" for row in rows), "", "## Absent", "",
            "| program | reason |", "|---|---|", *(f"| {line.replace(': ', ' | ', 1)} |" for line in table.absent(rows))]
    return "\n".join(out) + "\n"


# --- reading ---


def read(path):
    """{path, date, commit, size, rows: {(row, scene): {pushbroom, rivals: those with the right pixels, scene_mb}}}."""
    text = path.read_text()
    head = HEAD.search(text)
    if head is None:
        raise ValueError(f"{path} is no page of tests/bench/run")
    rows = {}
    for name, scene, program, turns, *numbers, mark in LINE.findall(text):
        seconds, cpu, peak, file = map(float, numbers)
        own = rows.setdefault((name, scene), {"rivals": []})
        told = {"program": program, "turns": int(turns), "seconds": seconds, "cpu_seconds": cpu, "peak_mb": peak, "file_mb": file}
        if program.split(",")[0] == "pushbroom":
            own["pushbroom"] = told
        elif mark in ("", "best"):
            own["rivals"].append(told)
    for name, scene, size in SCENES.findall(text):
        rows[name, scene]["scene_mb"] = float(size)
    return {"path": path, "date": head[1], "commit": head[2], "size": int(head[3]), "rows": rows}


def newest(root):
    """The page of the latest date, or None."""
    pages = [read(path) for path in sorted((root / FOLDER).glob("*.md"))]
    return max(pages, key=lambda p: p["date"], default=None)


def figure(row, name):
    """A figure of a row by its name; None if the page lacks it. `times` and `times_cpu` each have their own best rival."""
    side, _, own = name.rpartition(".")
    us = row["pushbroom"]
    rivals = table.comparable(row["rivals"], us["file_mb"])
    if own not in FIGURES or side not in ("", "rival") or (not rivals and (side or own.startswith("times"))):
        return None
    if own == "scene_mb":
        return row["scene_mb"]
    if own.startswith("times"):
        key = "seconds" if own == "times" else "cpu_seconds"
        return min(r[key] for r in rivals) / us[key]
    return (min(rivals, key=lambda r: r["seconds"]) if side else us)[own]


# --- other documents ---


def rounded(value, written):
    """The value with as many decimals as are written."""
    return f"{value:.{len(written.partition('.')[2])}f}"


def expected(page_, mark):
    """The paragraph of a mark as the page has it, and why not."""
    row, scene, names, paragraph = mark.groups()
    known = page_["rows"].get((row, scene))
    if known is None:
        return paragraph, f"the page has no row '{row}' of scene '{scene}'"
    names, written = names.split(), FIGURE.findall(paragraph)
    if len(names) != len(written):
        return paragraph, f"{len(names)} figures are named, and the paragraph has {len(written)}"
    values = [figure(known, name) for name in names]
    if None in values:
        return paragraph, f"the row '{row}' has no figure '{names[values.index(None)]}'"
    fill = iter(zip(values, written))
    return FIGURE.sub(lambda _: rounded(*next(fill)), paragraph), None


def renewed(page_, text):
    """The document with the figures, the links and the dates of the page."""
    text = MARK.sub(lambda m: m[0][:m.start(4) - m.start()] + expected(page_, m)[0], text)
    return LINK.sub(lambda m: f"[figures of {page_['date']}]({m[2]}{page_['path'].name})", text)


def prose(text):
    """The text without blocks of code, inline code, and paragraphs that have a mark."""
    return re.sub(r"`[^`\n]*`", "", MARK.sub("", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)))


def gaps(root, documents):
    """Differences between documents, {name: text}, and the newest page."""
    page_ = newest(root)
    for name, text in documents.items():
        if page_ is None and (MARK.search(text) or LINK.search(text)):
            yield f"{name}: it has figures, and {FOLDER} has no page: tests/bench/run writes one"
            continue
        for mark in MARK.finditer(text):
            right, why = expected(page_, mark)
            if why or right != mark[4]:
                line = text[:mark.start()].count("\n") + 1
                yield f"{name}:{line}: {why or 'figures that differ from the newest page'} ({page_['path'].name}); `tests/docs_check.py . --write` renews figures"
        for link in LINK.finditer(text):
            if (link[1], link[3]) != (page_["date"], page_["path"].name):
                yield f"{name}: [figures of {link[1]}]({link[3]}) is not the newest page, which is {page_['path'].name} of {page_['date']}"
        if name in WATCHED:
            for stray in FIGURE.finditer(prose(text)):
                yield f"{name}: the figure '{prose(text)[stray.start():].split(chr(10))[0][:20]}' is of no page; a comment names its row (tests/bench/figures.py)"


def renew(root, documents):
    """Writes the newest page's figures into documents. Returns the names of those that changed."""
    page_, changed = newest(root), []
    for name, text in documents.items() if page_ else ():
        if (other := renewed(page_, text)) != text:
            (root / name).write_text(other)
            changed.append(name)
    return changed
