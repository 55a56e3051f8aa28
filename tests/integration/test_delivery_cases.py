#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: sanitized slow
"""Deliveries as they are in the world (delivery_cases.py): `pushbroom run`, `--dry-run` and the inbox of a service find the same
scenes in each, make the same pixels of them, or fail with the same error."""
import os
import pathlib
import shutil
import tarfile
import zipfile

import numpy as np
from osgeo import gdal, osr

import pbtest
from daemon_kit import Daemon
from deliveries_kit import utm_of
from delivery_cases import CASES, Image

gdal.UseExceptions()
SHAPE = (240.0, 360.0)  # metres; small pixels have fewer
CONFIG = """pipelines:
  p:
    input: {input}
    products:
      - cog: {{bands: [{bands}], type: float32}}
"""


def new_image(path, shape, n, kind, options=()):
    return gdal.GetDriverByName("GTiff").Create(str(path), shape[1], shape[0], n, kind, list(options))


def write_image(path, spec):
    """A constant of each band. JPEG 2000 is lossless."""
    step = max(spec.pixel, 10.0)
    shape = [max(1, round(metres / step)) for metres in SHAPE]
    kind = getattr(gdal, "GDT_" + spec.kind)
    tiff = path.with_suffix(".made") if path.suffix == ".jp2" else path
    for page, values in enumerate([[v] for v in spec.values] if spec.pages else [spec.values]):
        out = new_image(tiff, shape, len(values), kind, ["APPEND_SUBDATASET=YES"] if page else [])
        if spec.place:
            system = osr.SpatialReference()
            system.ImportFromEPSG(utm_of(path))
            out.SetGeoTransform((500000.0, spec.pixel, 0, 4000000.0, 0, -spec.pixel))
            out.SetProjection(system.ExportToWkt())
        for i, value in enumerate(values):
            out.GetRasterBand(i + 1).WriteArray(np.full(shape, value))
        del out
    if tiff != path:
        gdal.GetDriverByName("JP2OpenJPEG").CreateCopy(str(path), gdal.Open(str(tiff)), options=["REVERSIBLE=YES", "QUALITY=100"])
        tiff.unlink()
        path.with_name(path.name + ".aux.xml").unlink(missing_ok=True)


def write_tree(folder, tree):
    for name, content in tree.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, Image):
            write_image(path, content)
        else:
            path.write_text("no image, no text" if content is None else content)


def deliver(case, folder, scratch):
    """Writes the delivery into a folder: its files, or an archive of them."""
    tree = scratch / "tree"
    if not tree.exists():
        write_tree(tree, case.tree)
    folder.mkdir(parents=True, exist_ok=True)
    if not case.entry:
        shutil.copytree(tree, folder, dirs_exist_ok=True)
        return
    archive = folder / (case.name + case.entry)
    files = sorted(p for p in tree.rglob("*") if p.is_file())
    if case.entry == ".zip":
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as out:
            for path in files:
                out.write(path, path.relative_to(tree))
    else:
        with tarfile.open(archive, "w") as out:
            for path in files:
                out.add(path, str(path.relative_to(tree)))


def configured(case):
    """The pipeline that a user writes, with a short wait for missing files."""
    inside = case.input[1:-1] if case.input.startswith("{") else f"preset: {case.input}"
    more = ", complete: {expire: 1s}" if "match:" not in inside else ""
    return CONFIG.format(input="{" + inside + more + "}", bands=", ".join(case.bands.split()))


def pixels(cog):
    image = gdal.Open(str(cog))
    return [round(float(image.GetRasterBand(i + 1).ReadAsArray()[1, 1]), 4) for i in range(image.RasterCount)]


def told(case, errors):
    """Checks the only error against that of the case."""
    assert case.error is not None and len(errors) == 1, errors
    code, message = errors[0]
    assert code == case.error[0] and case.error[1] in message, (code, message, case.error)


def of_run(case, scratch, config):
    """{scene: values of its product} of `pushbroom run`, after the dry run agreed."""
    deliver(case, scratch / "in", scratch)
    given = [scratch / "in" / name for name in case.given] if case.given else sorted((scratch / "in").iterdir())
    words = ("-c", config, "-o", scratch / "out", *given)
    planned = pbtest.run_json("pushbroom", "run", "--dry-run", "--json", *words, code=None)
    done = pbtest.run_json("pushbroom", "run", "--json", *words, code=None)
    failed = [(d["error"]["code"], d["error"]["message"]) for d in done if d["status"] == "failed"]
    if failed or case.error:
        told(case, [(p["error"]["code"], p["error"]["message"]) for p in planned if p["status"] == "failed"])
        told(case, failed)
        return {}
    found = {pathlib.Path(d["directory"]).parent.name: pixels(next(p["path"] for p in d["products"] if p["type"] == "cog")) for d in done}
    assert [p["status"] for p in planned] == ["planned"] * len(done), planned
    assert sorted(p["plan"]["scene"] for p in planned) == sorted(found), (planned, found)
    return found


def of_inbox(case, scratch, config):
    """The same of a service that finds the delivery at its start."""
    with Daemon(fake=False) as d:
        deliver(case, d.root / "inbox", scratch)
        place = "inboxes: [{path: %s, recurse: true}]" if case.recurse else "inbox: %s"
        d.change(f"inbox: {d.root}/inbox", place % f"{d.root}/inbox", 1)
        d.set_pipelines("  unmatched: {files: leave, folders: leave}\n" + config.read_text())
        d.start()
        n = len(case.scenes or "1")
        d.wait_for(lambda: len([j for j in d.jobs(limit=1000) if j["status"] in ("successful", "failed", "dismissed")]) >= n)
        d.wait_idle()
        jobs = [j for j in d.jobs(limit=1000) if j["stage"] != "scenes"]
        failed = [(j["error"]["code"], j["error"]["message"]) for j in jobs if j["status"] == "failed"]
        if failed or case.error:
            told(case, failed)
            return {}
        return {j["scene"]: pixels(next(p["path"] for p in j["products"] if p["type"] == "cog")) for j in jobs}


def check(scratch, *words):
    """The cases whose names contain one of the words."""
    names = [n for n in CASES if any(w in n for w in words)]
    assert names
    for name in names:
        case, folder = CASES[name], scratch / "".join(c if c.isalnum() else "_" for c in name)
        folder.mkdir()
        config = folder / "c.yaml"
        config.write_text(configured(case))
        for way in (of_run, of_inbox):
            try:
                made = way(case, folder, config)
            except AssertionError as wrong:
                raise AssertionError(f"{name}, {way.__name__}: {wrong}") from wrong
            assert made == (case.scenes or {}), (name, way, made, case.scenes)


def test_sentinel_2(scratch):
    check(scratch, "SAFE", "AWS", "Earth Search")


def test_landsat_and_hls(scratch):
    check(scratch, "USGS", "HLS")


def test_planetscope_orders(scratch):
    check(scratch, "order", "item")


def test_tiles_of_one_image(scratch):
    check(scratch, "Maxar", "Pleiades")


def test_single_files(scratch):
    check(scratch, "NAIP", "PRISMA", "EnMAP", "drone", "page")


if __name__ == "__main__":
    pbtest.main()
