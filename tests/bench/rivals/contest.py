# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""One row: contestants, turns, medians, comparison of pixels."""
import dataclasses
import itertools
import json
import pathlib
import shutil
import statistics
import subprocess
import sys

from measured import measure_all

from . import compare, rivals, rows, scene, table, venv

SLOW = 1.25  # a rival that takes this factor of the best one's seconds in its first turn has no more turns
LEAST = 3  # turns of pushbroom, with which --gate compares
SECONDS, CPU, TREE_MB = 0, 2, 3  # places in a turn
MODULES = ("numpy", "rasterio", "numexpr", "pyvips", "cv2", "imagecodecs", "numba", "tifffile", "osgeo", "blake3", "exactextract")
SERVICE = rivals.PROGRAMS / "service.py"
USUAL = "slower than others, or its file is larger; --rivals {} measures it"
COMPARED = 3  # scenes of several whose pixels are compared


@dataclasses.dataclass
class Contestant:
    rival: str  # "pushbroom", or the name in rivals.py
    title: str
    setting: str
    order: int  # pushbroom's is 0; a rival's, the place of its setting
    command: list
    products: list  # paths, one for each scene
    remove: pathlib.Path  # before each turn
    gdal: bool = False  # uses GDAL
    reports: bool = False  # the command prints its figures itself
    turns: list = dataclasses.field(default_factory=list)  # lists of what measured.py gives
    wrong: str = None  # error in its pixels
    product_bytes: int = 0

    @property
    def name(self):
        return f"{self.title}{', ' if self.setting else ''}{self.setting}"

    @property
    def seconds(self):
        return statistics.median(t[SECONDS] for t in self.turns)

    @property
    def cpu(self):
        """The least: other work on the machine adds to it."""
        return min(t[CPU] for t in self.turns)

    def figures(self):
        walls = [t[SECONDS] for t in self.turns]
        return {"rival": self.rival, "name": self.name, "gdal": self.gdal, "turns": len(self.turns), "seconds": self.seconds, "spread": [min(walls), max(walls)],
                "cpu_seconds": self.cpu, "peak_mb": statistics.median(t[TREE_MB] for t in self.turns), "file_mb": self.product_bytes / 1e6, "wrong": self.wrong}


def polygons_of(row, sources):
    return scene.polygons_of(sources[0], row.polygons) if row.polygons else None


def ours(o, row, sources):
    out = o.work / f"out-{row.name}"
    title = f"level {row.level}" if row.level else ""
    if row.service:
        command = [venv.DEBIAN, SERVICE, o.build / "bin", out, sources[0], len(sources)]
        products = [out / f"products/scene{i + 1}/ndvi/scene{i + 1}.tif" for i in range(len(sources))]
        return Contestant("pushbroom", "pushbroom", title, 0, command, products, out, reports=True)
    config = o.work / f"{row.name}.yaml"
    config.write_text(rows.pipeline(row, o.root, polygons_of(row, sources)))
    pipeline = "vegetation" if row.everything else row.name
    command = [o.build / "bin/pushbroom", "run", "--quiet", "-c", config, "-o", out, *sources]
    suffix = ".zones.csv" if row.polygons else ".tif"
    return Contestant("pushbroom", "pushbroom", title, 0, command, [out / s.stem / pipeline / f"{s.stem}{suffix}" for s in sources], out)


def theirs(o, row, sources, rival, python, title):
    for order, setting in enumerate(rivals.settings(row, rival)):
        folder = o.work / f"{row.name}-{rival.name}-{order}"
        job, products = folder.with_suffix(".json"), [folder / ("product.csv" if row.polygons else "product.tif")] if len(sources) == 1 else [folder / f"{s.stem}.tif" for s in sources]
        job.write_text(json.dumps({
            "source": str(sources[0]), "out": str(products[0]), "sources": list(map(str, sources)), "outs": list(map(str, products)),
            "bands": {b: n for b, n in rows.BANDS.items() if n <= row.bands}, "outputs": row.outputs, "scale": row.scale, "gaussian": row.gaussian, "type": row.type,
            "nodata": row.nodata, "compress": row.compress, "level": setting.level, "predictor": setting.predictor, "codec": setting.codec, "overviews": row.overviews,
            "everything": row.everything, "polygons": str(polygons_of(row, sources) or "")}))
        program, *arguments = rivals.program(rival, row)
        yield Contestant(rival.name, title, setting.title, order, [python, rivals.PROGRAMS / program, job, *arguments], products, folder, rival.gdal)


def field(o, row, kind, sources):
    """Contestants of a row: pushbroom, its rivals by setting, and {title of a rival: why it is absent}."""
    absent, found = {}, []
    there = {True: venv.versions(venv.DEBIAN, ("osgeo",)), False: venv.versions(o.python, MODULES)}
    for rival in rivals.RIVALS:
        if rival.name not in o.rivals:
            continue
        have = there[rival.debian]
        missing = [n for n in rival.needs if not (shutil.which(n[1:]) if n[0] == "/" else n in have)]
        title = rival.title.format_map({**dict.fromkeys((*MODULES, "rasterio_gdal", "gdal_wheel", "vips"), "?"), **have}).replace(" ?", "")
        why = f"not installed: {', '.join(n.lstrip('/') for n in missing)}" if missing else rival.why_not(row)
        if not why and o.usual and not rival.usual(row, kind):
            why = USUAL.format(rival.name)
        if why:
            absent[title] = why
        else:
            found += theirs(o, row, sources, rival, venv.DEBIAN if rival.debian else o.python, title)
    return ours(o, row, sources), sorted(found, key=lambda c: c.order), absent


def clean(contestants):
    for c in contestants:
        shutil.rmtree(c.remove, ignore_errors=True)
        c.remove.mkdir(parents=True)


def compiled(contestants):
    """Rivals that compile run once before their turns."""
    for c in contestants:
        clean([c])
        subprocess.run([*map(str, c.command), "compile"], check=False)
        shutil.rmtree(c.remove)


def reported(o, command):
    done = subprocess.run([*o.under, *map(str, command)], stdout=subprocess.PIPE, check=False, text=True)
    return json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else None


def measured(o, contestants):
    """Figures of a turn of each, in their order; None for one that failed."""
    for own, group in itertools.groupby(contestants, lambda c: c.reports):
        group = list(group)
        yield from ([reported(o, c.command) for c in group] if own else measure_all([c.command for c in group], under=o.under))


def look_at(o, row, sources, c):
    """The size of a contestant's products, and the comparison of their pixels."""
    absent = [p for p in c.products if not p.exists()]
    if absent:
        c.wrong = f"{len(absent)} of {len(c.products)} products are absent"
        return
    c.product_bytes = sum(p.stat().st_size for p in c.products)
    step = -(-len(sources) // COMPARED)
    every = 1 if o.every_pixel else compare.EVERY
    check = compare.check_means if row.polygons else compare.check
    c.wrong = next(filter(None, (check(row, s, p, every) for s, p in list(zip(sources, c.products))[::step])), None)


def turns(o, row, sources, contestants):
    """Measures a turn of each, and compares the pixels of those whose first it is. Gives those that failed."""
    clean(contestants)
    scene.warm(sources)
    failed = []
    for c, took in zip(contestants, measured(o, contestants)):
        if took is None:
            failed.append(c)
            continue
        c.turns.append(took)
        if len(c.turns) == 1:
            look_at(o, row, sources, c)
    for c in contestants:
        shutil.rmtree(c.remove)
    return failed


def small_enough(contestant, us):
    return contestant.product_bytes <= table.EQUAL * us.product_bytes


def groups(others, n):
    """Some at a time, those of one level together: whether a higher one is wanted is known only after a lower one."""
    for _, same in itertools.groupby(others, lambda c: c.order):
        same = list(same)
        yield from (same[i:i + n] for i in range(0, len(same), n))


def first_turns(o, row, sources, us, others, absent):
    """Those that took part. A rival's later settings are left out where an earlier one gave a file that is small enough."""
    took_part = []
    for group in [*groups(others, o.group), []]:
        group = [c for c in group if not any(t.rival == c.rival and t.order < c.order and small_enough(t, us) for t in took_part)]
        compiled([c for c in group if any(r.compiles and r.name == c.rival for r in rivals.RIVALS)])
        failed = turns(o, row, sources, [us, *group]) if group or not us.turns else []
        if us in failed or us.wrong:
            sys.exit(f"{row.name}: pushbroom failed" + (f": {us.wrong}" if us.wrong else ""))
        took_part += [c for c in group if c not in failed]
        absent.update({c.name: "failed; its message is on standard error" for c in failed})
    return took_part


def more_turns(o, row, sources, us, others):
    figures = [c.figures() for c in (us, *others)]
    quick = table.best_of({"results": figures}) or min(figures[1:] or figures, key=lambda r: r["seconds"])
    again = [c for c in others if c.seconds <= SLOW * quick["seconds"]]
    while len(us.turns) < max(o.repeat, LEAST if o.usual else 0) or any(len(c.turns) < o.repeat for c in again):
        group = [c for c in again if len(c.turns) < o.repeat][:o.group]
        if turns(o, row, sources, [us, *group]):
            sys.exit(f"{row.name}: a command that ended well before failed")


def run(o, row, kind):
    """A row's figures. pushbroom has a turn before each group of rivals."""
    sources = scene.of_row(o, row, kind)
    us, others, absent = field(o, row, kind, sources)
    others = first_turns(o, row, sources, us, others, absent)
    more_turns(o, row, sources, us, others)
    return {"row": row.name, "scene": kind, "title": row.title, "bars": row.bars, "size": row.side or o.size // row.shrink, "scene_mb": sum(s.stat().st_size for s in sources) / 1e6,
            "default": row.is_default, "compressed": row.compresses, "results": [c.figures() for c in (us, *others)], "absent": absent}
