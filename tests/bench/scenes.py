#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""NDVI masked by a scene classification, from a folder of four band files (B02, B04, B08: 10980 x 10980 UInt16 deflate at 10 m; SCL: 5490 x
5490 Byte at 20 m) to a float32 deflate COG with overviews: pushbroom on the folder, compared with gdal_calc.py on the band files, and with
stacking by GDAL and pushbroom on the stack. The contestants take turns in one run on one machine; products are compared pixel by pixel.
Prints a table and, as the last line, the same as JSON.

    tests/bench/scenes.py [--build DIR] [--work DIR] [--repeat 3] [--size 10980]

Peak memory is the largest resident set of any process of a command (measured.py)."""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

import numpy as np
from osgeo import gdal

from measured import measure

gdal.UseExceptions()
ROOT = pathlib.Path(__file__).resolve().parents[2]
STEPS = """
    steps:
      - math: {bands: {NDVI: "where(SCL == 4, (N - R) / (N + R), 0/0)"}}
    products:
      - cog: {bands: [NDVI], type: float32, compress: deflate}
"""
FOLDER = """
compute: {device: cpu, memory: 256MiB}
pipelines:
  ndvi:
    input:
      scene: "S2X_*"
      files: {B: B02.tif, R: B04.tif, N: B08.tif, SCL: {match: SCL.tif, resample: nearest}}
      grid: R
""" + STEPS
STACK = """
compute: {device: cpu, memory: 256MiB}
pipelines:
  ndvi:
    input: {match: ["*.tif"], bands: {R: 1, N: 2, SCL: 3}}
""" + STEPS


def timed(command):
    return measure(["bash", "-ec", command], {"GDAL_NUM_THREADS": "ALL_CPUS"})


def make_folder(build, work, size):
    folder = work / "S2X_scene"
    if folder.exists():
        return folder
    stack, part = work / "made.tif", work / "part"
    part.mkdir()
    subprocess.run([build / "bin/make_scene", "--size", f"{size}x{size}", "--interleave", "BAND", stack], check=True)
    options = ["TILED=YES", "COMPRESS=DEFLATE", "BLOCKXSIZE=1024", "BLOCKYSIZE=1024"]
    for name, number in (("B02", 1), ("B04", 3), ("B08", 4)):
        gdal.Translate(str(part / f"{name}.tif"), str(stack), bandList=[number], creationOptions=options)
    low = gdal.Translate("", str(part / "B08.tif"), format="MEM", width=size // 2, height=size // 2)
    out = gdal.GetDriverByName("GTiff").Create(str(part / "SCL.tif"), size // 2, size // 2, 1, gdal.GDT_Byte, options)
    out.SetGeoTransform(low.GetGeoTransform())
    out.SetProjection(low.GetProjection())
    out.GetRasterBand(1).WriteArray(np.where(low.ReadAsArray() > 2500, 4, 8).astype(np.uint8))
    out = None
    stack.unlink()
    part.rename(folder)
    return folder


def contestants(binary, folder, work):
    (work / "folder.yaml").write_text(FOLDER)
    (work / "stack.yaml").write_text(STACK)
    size = gdal.Open(str(folder / "B04.tif")).RasterXSize
    yield "gdal_calc.py on the band files, then COG", work / "gdal.tif", \
        f"gdal_translate -q -r nearest -outsize {size} {size} {folder}/SCL.tif {work}/scl10.tif; " \
        f"gdal_calc.py --quiet --overwrite -R {folder}/B04.tif -N {folder}/B08.tif -S {work}/scl10.tif --type=Float32 --NoDataValue=nan " \
        f"--calc='numpy.where(S == 4, (N.astype(numpy.float32) - R) / (N.astype(numpy.float32) + R), numpy.nan)' --outfile={work}/calc.tif; " \
        f"gdal_translate -q -of COG -co COMPRESS=DEFLATE -co NUM_THREADS=ALL_CPUS {work}/calc.tif {work}/gdal.tif"
    yield "gdalbuildvrt, gdal_translate, pushbroom run", work / "out/stack/ndvi/stack.tif", \
        f"rm -rf {work}/out/stack; gdalbuildvrt -q -overwrite -separate -resolution highest {work}/stack.vrt {folder}/B04.tif {folder}/B08.tif {folder}/SCL.tif; " \
        f"gdal_translate -q -ot UInt16 -co TILED=YES -co COMPRESS=DEFLATE -co NUM_THREADS=ALL_CPUS {work}/stack.vrt {work}/stack.tif; " \
        f"{binary} run --quiet -c {work}/stack.yaml -o {work}/out {work}/stack.tif"
    yield "pushbroom run on the folder", work / "out/S2X_scene/ndvi/S2X_scene.tif", \
        f"rm -rf {work}/out/S2X_scene; {binary} run --quiet -c {work}/folder.yaml -o {work}/out {folder}"


def same_pixels(a, b):
    """Strip by strip, NaN alike."""
    a, b = gdal.Open(str(a)), gdal.Open(str(b))
    for y in range(0, a.RasterYSize, 1024):
        n = min(1024, a.RasterYSize - y)
        one, other = (d.GetRasterBand(1).ReadAsArray(0, y, a.RasterXSize, n) for d in (a, b))
        if not np.array_equal(one, other, equal_nan=True):
            return False
    return True


def prepare(description):
    """The command's options, with a directory to work in, and the folder of files."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--work", type=pathlib.Path)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--size", type=int, default=10980)
    o = parser.parse_args()
    o.work = o.work or pathlib.Path(tempfile.mkdtemp(prefix="pushbroom-bench-"))
    o.work.mkdir(parents=True, exist_ok=True)
    return o, make_folder(o.build, o.work, o.size)


def main():
    o, folder = prepare(__doc__)
    work = o.work
    for file in folder.iterdir():
        file.read_bytes()  # into the page cache, for everyone
    ways = list(contestants(o.build / "bin/pushbroom", folder, work))
    results = {name: [] for name, *_ in ways}
    for _ in range(o.repeat):
        for name, _, command in ways:
            results[name].append(timed(command))
    rows = []
    for name, product, _ in ways:
        seconds, rss, cpu = (statistics.median(r[i] for r in results[name]) for i in range(3))
        rows.append({"name": name, "seconds": round(seconds, 2), "cpu_seconds": round(cpu, 2), "peak_rss_mb": round(rss),
                     "output_mb": round(product.stat().st_size / 1e6), "same_pixels": same_pixels(ways[-1][1], product),
                     "spread": [round(f(r[0] for r in results[name]), 2) for f in (min, max)]})
    print(f"NDVI masked by SCL, {o.size} x {o.size}, four files ({sum(f.stat().st_size for f in folder.iterdir()) / 1e6:.0f} MB), {os.cpu_count()} cores, median of {o.repeat}")
    print(f"{'':46} {'seconds':>8} {'spread':>13} {'CPU s':>7} {'peak MB':>8} {'file MB':>8} {'speed':>6}  same pixels")
    for r in rows:
        r["speedup"] = round(rows[0]["seconds"] / r["seconds"], 2)
        print(f"{r['name']:46} {r['seconds']:8.2f} {r['spread'][0]:6.2f}-{r['spread'][1]:<6.2f} {r['cpu_seconds']:7.1f} {r['peak_rss_mb']:8} {r['output_mb']:8} {r['speedup']:5.2f}x  {r['same_pixels']}")
    print(json.dumps({"size": o.size, "cores": os.cpu_count(), "results": rows}))
    if o.work is None:
        shutil.rmtree(work)


if __name__ == "__main__":
    main()
