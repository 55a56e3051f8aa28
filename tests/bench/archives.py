#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""The scene of scenes.py from a folder and from archives of it, compared with unpacking the archive first and then taking the folder. All take turns in one
run on one machine; products are compared pixel by pixel. Prints a table and, as the last line, the same as JSON.


    tests/bench/archives.py [--build DIR] [--work DIR] [--repeat 3] [--size 10980]"""
import json
import os
import shutil
import statistics
import tarfile
import zipfile

from scenes import FOLDER, prepare, same_pixels, timed


def make_archives(folder):
    names = sorted(folder.iterdir())
    for kind, how in (("stored", zipfile.ZIP_STORED), ("deflated", zipfile.ZIP_DEFLATED)):
        path = folder.parent / kind / f"{folder.name}.zip"
        if not path.exists():
            path.parent.mkdir()
            with zipfile.ZipFile(path, "w", how, compresslevel=6) as out:
                for file in names:
                    out.write(file, f"{folder.name}/{file.name}")
        yield f"ZIP, {kind}", path
    for how in ("", "gz"):
        path = folder.parent / f"{folder.name}.tar{'.' if how else ''}{how}"
        if not path.exists():
            with tarfile.open(path, "w:" + how, **({"compresslevel": 6} if how else {})) as out:
                for file in names:
                    out.add(file, f"{folder.name}/{file.name}")
        yield f"TAR{', ' if how else ''}{how}", path


def contestants(binary, folder, work):
    (work / "folder.yaml").write_text(FOLDER)
    run, product = f"{binary} run --quiet -c {work}/folder.yaml -o {work}/out", work / f"out/{folder.name}/ndvi/{folder.name}.tif"
    yield "folder", product, f"rm -rf {work}/out; {run} {folder}"
    for name, path in make_archives(folder):
        yield name, product, f"rm -rf {work}/out; {run} {path}"
        unpack = f"unzip -q -o {path} -d {work}/unpacked" if path.suffix == ".zip" else f"tar -C {work}/unpacked -xf {path}"
        yield f"{name}: unpacked first", product, \
            f"rm -rf {work}/out {work}/unpacked; mkdir {work}/unpacked; {unpack}; {run} {work}/unpacked/{folder.name}"


def main():
    o, folder = prepare(__doc__)
    work = o.work
    ways = list(contestants(o.build / "bin/pushbroom", folder, work))
    for path in [*folder.iterdir(), *work.rglob("S2X_scene.*")]:
        path.read_bytes()  # into the page cache, for everyone
    results, first = {name: [] for name, *_ in ways}, work / "first.tif"
    same = {}
    for _ in range(o.repeat):
        for name, product, command in ways:
            results[name].append(timed(command))
            if not first.exists():
                shutil.copyfile(product, first)
            same[name] = same_pixels(first, product)
    rows = [{"name": name, **dict(zip(("seconds", "peak_rss_mb", "cpu_seconds"),
                                      (round(statistics.median(r[i] for r in results[name]), 2) for i in range(3)))),
             "same_pixels": same[name]} for name, *_ in ways]
    print(f"{o.size} x {o.size}, four files ({sum(f.stat().st_size for f in folder.iterdir()) / 1e6:.0f} MB), {os.cpu_count()} cores, median of {o.repeat}")
    print(f"{'':32} {'seconds':>8} {'CPU s':>7} {'peak MB':>8}  same pixels")
    for r in rows:
        print(f"{r['name']:32} {r['seconds']:8.2f} {r['cpu_seconds']:7.2f} {r['peak_rss_mb']:8.0f}  {r['same_pixels']}")
    print(json.dumps({"size": o.size, "cores": os.cpu_count(), "results": rows}))
    if o.work is None:
        shutil.rmtree(work)


if __name__ == "__main__":
    main()
