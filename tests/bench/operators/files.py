# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""tests/bench/run operator-files [--build DIR] [--work DIR] [--rows warp,slope] [--cores 1,2] [--repeat 3] [--size 5490]

Operators from a deflated file to a deflated COG with overviews, compared with other programs for it: gdalwarp, gdaldem, gdal_translate, gdal_pansharpen.py,
OTB. Both sides have the same cores and take turns; their last file is synced within the measured time; the rival's COG is made with level 1, a
predictor and threads, which is its fastest at pushbroom's size of file. Medians; ratios are the rival's to pushbroom's. `differ` is the mean difference of
pixels that both have, in standard deviations (of tables: of their numbers, as shares): the rules of two programs are not always the same (gdalwarp's positions are right to 1/8 of a pixel)."""
import argparse
import csv
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile

from measured import measure_all

from .file_rows import FILE_ROWS

COG = "gdal_translate -q -of COG -co COMPRESS=DEFLATE -co LEVEL=1 -co PREDICTOR=YES -co NUM_THREADS={n} {tmp} {out} && sync {out}"
HERE = pathlib.Path(__file__).resolve().parent
CLASSES = 7
# Files by name, each with the arguments of make_scene; {half} and {quarter} of the size. "classes": the pixels of the scene "band", classified.
SCENES = {
    "band": {"band": "--bands 1 --size {size}x{size}"},
    "bands": {"bands": "--bands 4 --size {size}x{size}"},
    "heights": {"heights": "--kind relief --size {size}x{size}"},
    "radar": {"radar": "--bands 1 --type Float32 --size {size}x{size}"},
    "pair": {"pair_1": "--bands 1 --size {half}x{size}", "pair_2": "--bands 1 --size {half}x{size} --corner {east},5900040 --seed 2"},
    "bundle": {"bundle_pan": "--bands 1 --size {size}x{size}", "bundle_ms": "--bands 4 --pixel 40 --size {quarter}x{quarter}"},
    "bytes": {"bytes": "--bands 1 --type Byte --size {size}x{size}"},
    "classes": {"classes": "classes"},
    "zoned": {"zoned_classes": "classes", "zoned_value": "--bands 1 --size {size}x{size}"},
}
INPUT = {
    "band": "match: ['*.tif'], bands: {B: 1}", "heights": "match: ['*.tif'], bands: {B: 1}", "radar": "match: ['*.tif'], bands: {B: 1}",
    "classes": "match: ['*.tif'], bands: {B: 1}", "zoned": "group: '(?<scene>zoned)_(classes|value)\\.tif', files: {CLASS: '*_classes.tif', B: '*_value.tif'}",
    "bytes": "match: ['*.tif'], bands: {B: 1}", "bands": "match: ['*.tif'], bands: {B: 1, G: 2, R: 3, N: 4}",
    "pair": "group: '(?<scene>pair)_[12]\\.tif', files: {B_1: '*_1.tif', B_2: '*_2.tif'}",
    "bundle": "group: '(?<scene>bundle)_(pan|ms)\\.tif', files: {P: '*_pan.tif', B: {match: '*_ms.tif', band: 1}, G: {match: '*_ms.tif', band: 2}, "
              "R: {match: '*_ms.tif', band: 3}, N: {match: '*_ms.tif', band: 4}}, grid: P",
}


def options(arguments, root):
    parser = argparse.ArgumentParser(prog="tests/bench/run operator-files", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=root / "build")
    parser.add_argument("--work", type=pathlib.Path, help="where scenes and products are written [a new directory in /tmp]")
    parser.add_argument("--rows", type=lambda t: t.split(","), help="operators; all of file_rows.py unless given")
    parser.add_argument("--cores", type=lambda t: [int(n) for n in t.split(",")], default=[1, 2], help="how many at a time [1,2]")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--size", type=int, default=5490)
    return parser.parse_args(arguments)


def classify(o, to):
    """1 to CLASSES in equal shares, as noisy as a classification of single pixels is; tiles, deflated."""
    import numpy as np
    from osgeo import gdal
    gdal.UseExceptions()
    (band,) = scene(o, "band")
    source = gdal.Open(str(band))
    pixels = source.ReadAsArray()
    steps = np.quantile(pixels[::8, ::8], np.arange(1, CLASSES) / CLASSES)
    made = gdal.GetDriverByName("GTiff").Create(str(to), *pixels.shape[::-1], 1, gdal.GDT_Byte, ["TILED=YES", "BLOCKXSIZE=512", "BLOCKYSIZE=512", "COMPRESS=DEFLATE"])
    made.SetGeoTransform(source.GetGeoTransform())
    made.SetProjection(source.GetProjection())
    made.GetRasterBand(1).SetNoDataValue(0)
    made.GetRasterBand(1).WriteArray(np.digitize(pixels, steps).astype(np.uint8) + 1)


def scene(o, name):
    """Its files, in the page cache for everyone."""
    numbers = {"size": o.size, "half": o.size // 2, "quarter": o.size // 4, "east": 600000 + 10 * (o.size // 2)}
    files = []
    for file, arguments in SCENES[name].items():
        path = o.work / f"{file}.tif"
        if not path.exists() and arguments == "classes":
            classify(o, path)
        elif not path.exists():
            subprocess.run([o.build / "bin/make_scene", *arguments.format(**numbers).split(), path], check=True)
        path.read_bytes()
        files.append(path)
    return files


def ours(o, row, n, files):
    """The command and its product."""
    config, out = o.work / f"{row.operator}.yaml", o.work / "ours"
    nodata = "" if row.type == "float32" else ", nodata: 0"
    steps = f"    steps:\n      - {row.steps}\n" if row.steps else ""
    product = row.product or f"cog: {{bands: {row.bands}, type: {row.type}, compress: deflate{nodata}}}"
    config.write_text(f"compute: {{device: cpu, threads: {n}}}\npipelines:\n  p:\n    input: {{{INPUT[row.scene]}}}\n{steps}    products:\n      - {product}\n")
    name = files[0].stem if len(files) == 1 else row.scene
    made = f"{name}.zones.csv" if row.product else f"{name}.tif"
    return [str(o.build / "bin/pushbroom"), "run", "--quiet", "-c", str(config), "-o", str(out), *map(str, files)], out / name / "p" / made


def theirs(o, row, n, files):
    out, tmp = o.work / "theirs" / ("made.csv" if row.product else "made.tif"), o.work / "theirs" / "tmp.tif"
    cog = COG.format(n=n, tmp=tmp, out=out)
    return ["bash", "-ec", row.commands.format(*files, n=n, tmp=tmp, cog=cog, out=out, here=HERE, size=o.size)], out


def table_difference(one, other):
    """The mean of what numbers of two tables differ by, as shares; columns that both have. None: not the same rows."""
    ours, theirs = ([*csv.DictReader(path.read_text().splitlines())] for path in (one, other))
    if len(ours) != len(theirs) or not ours:
        return None
    apart = [abs(float(a[k]) - float(b[k])) / max(abs(float(a[k])), 1e-9) for a, b in zip(ours, theirs) for k in b]
    return sum(apart) / len(apart)


def difference(one, other):
    """In standard deviations of the first; None: not of one size, or no pixel is in both."""
    if one.suffix == ".csv":
        return table_difference(one, other)
    import numpy as np
    from osgeo import gdal
    gdal.UseExceptions()
    a, b = gdal.Open(str(one)), gdal.Open(str(other))
    if (a.RasterXSize, a.RasterYSize) != (b.RasterXSize, b.RasterYSize):
        return None
    planes = [np.ma.masked_invalid(d.GetRasterBand(1).ReadAsArray().astype(np.float32)) for d in (a, b)]
    for d, p in zip((a, b), planes):
        nodata = d.GetRasterBand(1).GetNoDataValue()
        if nodata is not None:
            p[p.data == nodata] = np.ma.masked
    apart = np.ma.abs(planes[0] - planes[1]).mean()
    return None if apart is np.ma.masked else float(apart / max(planes[0].std(), 1e-9))


def measure(o, row, n):
    """A dictionary, or None where a rival is not there."""
    if shutil.which(row.commands.replace("OTB_MAX_RAM_HINT=512 ", "").split()[0]) is None:
        return None
    files = scene(o, row.scene)
    sides = {"ours": ours(o, row, n, files), "theirs": theirs(o, row, n, files)}
    cores = ",".join(map(str, sorted(os.sched_getaffinity(0))[:n]))
    turns = {side: [] for side in sides}
    for _ in range(o.repeat):
        for side, (command, _) in sides.items():
            shutil.rmtree(o.work / side, ignore_errors=True)
            (o.work / side).mkdir()
            (took,) = measure_all([command], under=("taskset", "-c", cores))
            if took is None:
                raise SystemExit(f"{row.name}: failed: {' '.join(command)}")
            turns[side].append(took)
    told = {"row": row.name, "operator": row.operator, "rival": row.rival, "cores": n, "differ": difference(*(product for _, product in sides.values()))}
    for side, (_, product) in sides.items():
        told[side] = {"seconds": statistics.median(t[0] for t in turns[side]), "cpu_seconds": statistics.median(t[2] for t in turns[side]),
                      "peak_mb": statistics.median(t[1] for t in turns[side]), "file_mb": product.stat().st_size / 1e6}
    return told


def line_of(told):
    us, them = told["ours"], told["theirs"]
    figures = "".join(f"{s['seconds']:8.2f} {s['cpu_seconds']:7.2f} {s['peak_mb']:6.0f} {s['file_mb']:7.1f}" for s in (us, them))
    differ = "   other size" if told["differ"] is None else f"{told['differ']:13.4f}"
    return (f"{told['operator']:11}{told['row']:30}{told['cores']:2} {figures}{them['seconds'] / us['seconds']:7.1f} x{them['cpu_seconds'] / us['cpu_seconds']:7.1f} x{differ}  {told['rival']}")


def run(arguments, root):
    o = options(arguments, root)
    own, o.build = o.work is None, o.build.resolve()
    o.work = (o.work or pathlib.Path(tempfile.mkdtemp(prefix="pushbroom-bench-"))).resolve()
    o.work.mkdir(parents=True, exist_ok=True)
    print(f"{o.size} x {o.size}, medians of {o.repeat}\n{'':41}cores   ours: s, CPU s, MB, MB of file   theirs{'':22}seconds      CPU       differ")
    found = []
    for n in o.cores:
        for row in (r for r in FILE_ROWS if not o.rows or r.operator in o.rows):
            told = measure(o, row, n)
            print(line_of(told) if told else f"{row.operator:11}{row.name:30}{n:2} absent: {row.rival}", flush=True)
            found += [told] if told else []
    print(json.dumps({"size": o.size, "rows": found}))
    if own:
        shutil.rmtree(o.work)
