# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""One row: who takes part, turns, medians, pixels compared, the best rival found."""
import dataclasses
import itertools
import json
import pathlib
import shutil
import statistics
import sys

from measured import measure_all

from . import compare, rivals, rows, scene, venv

SLOW = 1.5  # a rival that takes this factor of the best one's seconds in its first turn has no more turns


@dataclasses.dataclass
class Contestant:
    rival: str  # "pushbroom", or the name in rivals.py
    title: str
    setting: str
    level: int
    order: int  # pushbroom's is 0; a rival's, the place of its setting
    command: list
    product: pathlib.Path
    remove: pathlib.Path  # before each turn
    turns: list = dataclasses.field(default_factory=list)  # tuples (seconds, peak MB, CPU seconds)
    wrong: str = None  # error in its pixels
    product_bytes: int = 0

    def median(self, i):
        return statistics.median(t[i] for t in self.turns)

    def figures(self):
        seconds = [t[0] for t in self.turns]
        return {"rival": self.rival, "title": self.title, "setting": self.setting, "turns": len(self.turns), "seconds": round(self.median(0), 2),
                "spread": [round(min(seconds), 2), round(max(seconds), 2)], "cpu_seconds": round(self.median(2), 2),
                "peak_mb": round(self.median(1)), "file_mb": round(self.product_bytes / 1e6, 1), "wrong": self.wrong}


def ours(o, row, source):
    config = o.work / f"{row.name}.yaml"
    config.write_text(rows.pipeline(row, o.root))
    out = o.work / f"out-{row.name}"
    pipeline = "vegetation" if row.everything else row.name
    command = [o.build / "bin/pushbroom", "run", "--quiet", "-c", config, "-o", out, source]
    return Contestant("pushbroom", "pushbroom", f"level {row.level}" if row.level else "", row.level, 0, command, out / source.stem / pipeline / f"{source.stem}.tif", out)


def theirs(o, row, source, rival, python, title):
    for order, setting in enumerate(rivals.settings(row, rival)):
        folder = o.work / f"{row.name}-{rival.name}-{order}"
        job, product = folder.with_suffix(".json"), folder / "product.tif"
        job.write_text(json.dumps({
            "source": str(source), "out": str(product), "bands": {b: n for b, n in rows.BANDS.items() if n <= row.bands}, "outputs": row.outputs, "scale": row.scale,
            "gaussian": row.gaussian, "type": row.type, "nodata": row.nodata, "compress": row.compress, "level": setting.level, "predictor": setting.predictor,
            "overviews": row.overviews, "everything": row.everything}))
        program, *arguments = rivals.program(rival, row)
        yield Contestant(rival.name, title, setting.title, setting.level, order, [python, rivals.PROGRAMS / program, job, *arguments], product, folder)


def field(o, row, source):
    """Contestants of a row: pushbroom, its rivals by setting, and {title of a rival: why it is absent}."""
    absent, found = {}, []
    there = {True: venv.versions(venv.DEBIAN, ("osgeo",)), False: venv.versions(o.python, ("numpy", "rasterio", "numexpr", "pyvips", "cv2"))}
    for rival in rivals.RIVALS:
        if rival.name not in o.rivals:
            continue
        have = there[rival.debian]
        missing = [n for n in rival.needs if not (shutil.which(n[1:]) if n[0] == "/" else n in have)]
        title = rival.title.format_map({**dict.fromkeys(("gdal", "rasterio", "numpy", "numexpr", "cv2", "vips", "osgeo"), "?"), **have}).replace(" ?", "")
        why = f"not installed: {', '.join(n.lstrip('/') for n in missing)}" if missing else rival.why_not(row)
        if why:
            absent[title] = why
        else:
            found += theirs(o, row, source, rival, venv.DEBIAN if rival.debian else o.python, title)
    return ours(o, row, source), sorted(found, key=lambda c: c.order), absent


def turns(o, row, source, contestants):
    """Measures a turn of each, and compares the pixels of those whose first it is. Gives those that failed."""
    for c in contestants:
        shutil.rmtree(c.remove, ignore_errors=True)
        c.remove.mkdir(parents=True)
    scene.warm(source)
    failed = []
    for c, took in zip(contestants, measure_all([c.command for c in contestants], under=o.under)):
        if took is None:
            failed.append(c)
            continue
        c.turns.append(took)
        if not c.product_bytes:
            c.product_bytes = c.product.stat().st_size
            c.wrong = compare.check(row, source, c.product)
    for c in contestants:
        shutil.rmtree(c.remove)
    return failed


def small_enough(contestant, us):
    return contestant.product_bytes <= 1.01 * us.product_bytes


def best(us, others, key):
    """The fastest rival whose file is as small as ours within 1 %, and whose pixels are right."""
    return min((c for c in others if c.wrong is None and small_enough(c, us)), key=key, default=None)


def groups(others, n):
    """Some at a time, those of one level together: whether a higher one is wanted is known only after a lower one."""
    for _, same in itertools.groupby(others, lambda c: c.order):
        same = list(same)
        yield from (same[i:i + n] for i in range(0, len(same), n))


def first_turns(o, row, source, us, others, absent):
    """Those that took part. A rival's higher levels are left out where a lower one gave a file that is small enough."""
    took_part = []
    for group in [*groups(others, o.group), []]:
        group = [c for c in group if not any(t.rival == c.rival and t.level < c.level and small_enough(t, us) for t in took_part)]
        failed = turns(o, row, source, [us, *group]) if group or not us.turns else []
        if us in failed:
            sys.exit(f"{row.name}: pushbroom failed")
        took_part += [c for c in group if c not in failed]
        absent.update({f"{c.title}, {c.setting}": "failed; what it said of it is on standard error" for c in failed})
    return took_part


def run(o, row):
    """A row's figures. pushbroom has a turn before each group of rivals."""
    source = scene.of_row(o, row)
    us, others, absent = field(o, row, source)
    others = first_turns(o, row, source, us, others, absent)
    quick = best(us, others, lambda c: c.median(0)) or min(others, key=lambda c: c.median(0), default=us)
    again = [c for c in others if c.median(0) <= SLOW * quick.median(0)]
    for _ in range(o.repeat - 1):
        for i in range(0, len(again), o.group):
            if turns(o, row, source, [us, *again[i:i + o.group]]):
                sys.exit(f"{row.name}: a command that ended well before failed")
    which = 2 if row.cpu else 0
    first = best(us, others, lambda c: c.median(which))
    results = [c.figures() for c in (us, *others)]
    for c, r in zip((us, *others), results):
        r["ratio"] = round(c.median(which) / us.median(which), 2)
        r["best"] = c is first
    return {"row": row.name, "title": row.title, "bar": row.bar, "of": "CPU seconds" if row.cpu else "seconds", "size": o.size,
            "ratio": round(first.median(which) / us.median(which), 2) if first else None, "results": results, "absent": absent}
