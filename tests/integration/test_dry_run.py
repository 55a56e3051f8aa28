#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: sanitized
"""`pushbroom run --dry-run`: questions of an operator before a run, for files, folders and groups; and that it reads no pixels
and writes nothing."""
import os
import re
import shutil

import numpy as np
from osgeo import gdal, osr

import pbtest

gdal.UseExceptions()
LANDSAT = "LC08_L2SP_001062_20201031_20201106_02_T2"
METADATA = pbtest.SOURCE / "tests/data/metadata"
SINGLE = """pipelines:
  other:
    input: {match: ["other*"]}
    products: [cog: {}]
  p:
    input: {match: ["*.tif"], bands: {R: 1, N: 2, X: 3}, scale: 0.0001, offset: -0.1, nodata: 0}
    output: {name: "{scene}_{product}"}
    steps:
      - math: {bands: {NDVI: "(N - R) / (N + R)"}}
    products:
      - cog: {bands: [NDVI], type: int16, nodata: -32768, scale: 0.0001}
      - quicklook: {bands: [NDVI], ramp: ndvi, size: 32}
      - stac: {datetime: "name:%Y%m%dT%H%M%S"}
"""
FOLDER = """pipelines:
  s2:
    input:
      scene: "S2?_*_L2A/"
      files: {R: B04.tif, N: B08.tif, SCL: {match: SCL.tif, resample: nearest}, B: "B02.tif"}
    steps:
      - mask: {band: SCL, preset: sentinel2-scl, apply: [R, N]}
      - math: {bands: {NDVI: "(N - R) / (N + R)"}}
    products:
      - cog: {bands: [NDVI], type: float32}
"""


def write(path, n_bands=1, size=64, pixel=10.0, kind=gdal.GDT_UInt16):
    path.parent.mkdir(parents=True, exist_ok=True)
    out = gdal.GetDriverByName("GTiff").Create(str(path), size, size, n_bands, kind, ["COMPRESS=DEFLATE"])
    out.SetGeoTransform((500000.0, pixel, 0, 4000000.0, 0, -pixel))
    system = osr.SpatialReference()
    system.ImportFromEPSG(32632)
    out.SetProjection(system.ExportToWkt())
    values = np.random.default_rng(1).integers(1, 12, (size, size))
    for i in range(n_bands):
        out.GetRasterBand(i + 1).WriteArray(values)
    return path


def config(scratch, text):
    path = scratch / "c.yaml"
    path.write_text(text)
    return path


def dry_run(path, *more, code=0):
    return pbtest.run("pushbroom", "run", "--dry-run", "-c", path, *more, code=code)


def has(done, *lines):
    for line in lines:
        assert line in done.stdout, (line, done.stdout)


def state_of(folder):
    return {str(p): (p.stat().st_mtime_ns, p.stat().st_size) for p in sorted(folder.rglob("*"))}


def test_a_file(scratch):
    image = write(scratch / "20200219T112111_a.tif", 4)
    path = config(scratch, SINGLE)
    before = state_of(scratch)
    done = dry_run(path, "-o", scratch / "out", image)
    has(done, "pipeline   p: its name fits '*.tif' of input.match, and none before it (2 of 2) takes it\n",
        "taken      2020-02-19T11:21:11Z, by the scene's name (stac.datetime)\n",
        "file       20200219T112111_a.tif, 64 x 64 px of 10 m, 4 bands of uint16, DEFLATE; value = stored * 0.0001 - 0.1\n",
        "bands      R 1, N 2\n", "not read   X 3: no product needs it\n", "not read   4 of the file: input.bands has no name for it\n",
        "valid      by nodata values: 0 (input.nodata)\n", 'step 1     math: {bands: {NDVI: "(N - R) / (N + R)"}}\n',
        "grid       EPSG:32632, 64 x 64 px of 10 m, upper left corner 500000, 4000000\n",
        f"into       {scratch}/out/20200219T112111_a/p\n",
        "cog        20200219T112111_a_cog.tif: NDVI, 64 x 64 px, int16, nodata -32768; value = stored * 0.0001, deflate\n",
        "quicklook  20200219T112111_a_quicklook.png: NDVI, 32 x 32 px, colours ndvi\n", "stac       20200219T112111_a_stac.json\n",
        " MiB of the 512 of compute.memory; computed on cpu\n")
    assert state_of(scratch) == before
    assert "threads" not in done.stdout and "tiles" not in done.stdout, done.stdout
    has(dry_run(path, "-v", image), "tiles      1 of ", "threads    1, each", "slots ")
    has(dry_run(path, "-p", "p", image), "pipeline   p: chosen with -p\n")


def test_lines_of_memory_agree(scratch):
    """Each amount is rounded up: the line of the plan, and that of its details."""
    for size in (64, 700, 1100, 1500, 1900):
        done = dry_run(config(scratch, SINGLE), "-v", write(scratch / f"20200219T112111_{size}.tif", 4, size))
        amounts = re.findall(r"^  memory +(\d+) MiB", done.stdout, re.M)
        assert len(amounts) == 2 and amounts[0] == amounts[1], done.stdout


def test_no_pixels_are_read(scratch):
    """Errors that only their decoding would find are not found."""
    image = write(scratch / "20200219T112111_a.tif", 4)
    opened = gdal.Open(str(image))
    data = opened.GetRasterBand(1).GetMetadataItem("BLOCK_OFFSET_0_0", "TIFF")
    with open(image, "r+b") as file:
        file.seek(int(data))
        file.write(b"\xff" * 40)
    path = config(scratch, SINGLE)
    assert "input.damaged" in pbtest.run("pushbroom", "run", "-c", path, "-o", scratch / "out", image, code=1).stderr
    dry_run(path, "-o", scratch / "out", image)


def folder_of(scratch):
    folder = scratch / "S2A_a_L2A"
    for name in ("B04.tif", "B08.tif"):
        write(folder / name)
    write(folder / "SCL.tif", size=32, pixel=20.0, kind=gdal.GDT_Byte)
    for name in ("B02.tif", "preview.jpg", "deep/notes.txt"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(b"this is no image")
    return folder


def test_a_folder(scratch):
    done = dry_run(config(scratch, FOLDER), str(folder_of(scratch)) + "/")
    has(done, "pipeline   s2: its name fits input.scene 'S2?_*_L2A/'\n", "band R     B04.tif, 64 x 64 px of 10 m, uint16, DEFLATE; the grid\n",
        "band N     B08.tif, 64 x 64 px", "band SCL   SCL.tif, 32 x 32 px of 20 m, uint8, DEFLATE; nearest\n",
        "not opened B: no product needs it\n", "not used   deep/notes.txt, preview.jpg: no pattern of the pipeline fits them\n",
        "step 1     mask: {band: SCL, preset: sentinel2-scl, apply: [R, N]}\n",
        "             drops no_data, saturated_or_defective, cloud_shadow, cloud_medium, cloud_high, cirrus\n")
    assert "taken" not in done.stdout, "no product needs a time"


def test_a_group_with_its_calibration(scratch):
    for suffix in ("SR_B4", "SR_B5", "ST_B10", "QA_PIXEL"):
        write(scratch / f"{LANDSAT}_{suffix}.TIF")
    shutil.copyfile(METADATA / f"{LANDSAT}_MTL.txt", scratch / f"{LANDSAT}_MTL.txt")
    (scratch / f"{LANDSAT}_SR_B7.TIF").write_bytes(b"this is no image")
    done = dry_run(pbtest.SOURCE / "samples/landsat-c2-l2.yaml", *scratch.glob("*.TIF"))
    has(done, "pipeline   landsat-c2-l2: the names of its files fit input.group, and it is the first of 4 pipelines\n", f"metadata   {LANDSAT}_MTL.txt: landsat-c2, landsat-8",
        "taken      2020-10-31T", f"band QA    {LANDSAT}_QA_PIXEL.TIF", "not opened A, B, G, S1, S2: no product needs them\n",
        "calibrate  R = surface of band 4: DN * 0.0000275 - 0.2\n", "LST = temperature of band ST_B10: DN * 0.00341802 + 149\n",
        "drops fill, dilated_cloud, cirrus, cloud, cloud_shadow\n")
    assert done.stdout.count("\n  pipeline ") == 1, done.stdout


def test_as_json(scratch):
    image = write(scratch / "20200219T112111_a.tif", 4)
    planned, = pbtest.run_json("pushbroom", "run", "--dry-run", "--json", "-c", config(scratch, SINGLE), "-o", scratch / "out", image)
    plan = planned["plan"]
    assert (planned["status"], planned["pipeline"], planned["error"]) == ("planned", "p", None), planned
    assert plan["kind"] == "file" and plan["files"][0]["bands"][0] == {"name": "R", "number": 1, "read": True}, plan
    assert plan["files"][0]["unnamed_bands"] == [4] and plan["files"][0]["scale"] == 0.0001, plan
    assert plan["grid"]["crs"] == "EPSG:32632" and plan["grid"]["pixel"] == [10, 10], plan
    cog, quicklook, stac = plan["products"]
    assert (cog["file"], cog["data_type"], cog["nodata"], cog["bands"]) == ("20200219T112111_a_cog.tif", "int16", -32768, ["NDVI"]), cog
    assert (quicklook["width"], quicklook["ramp"]) == (32, "ndvi") and stac["pushbroom:datetime_source"] == "name", plan
    assert plan["directory"] == f"{scratch}/out/20200219T112111_a/p" and plan["there"] == "nothing", plan
    assert 0 < plan["memory_bytes"] <= plan["memory_budget_bytes"] and "threads" in plan["schedule"], plan


def test_what_lies_where_the_products_go(scratch):
    """The same words as of a run, and its exit code."""
    image, path, out = write(scratch / "20200219T112111_a.tif", 4), config(scratch, SINGLE), scratch / "out"
    place = out / "20200219T112111_a"
    pbtest.run("pushbroom", "run", "--quiet", "-c", path, "-o", out, image)
    has(dry_run(path, "-o", out, image), "products of an input that looks like this one are there: replaced when the content is the same, else refused")
    write(image, 5)
    done = dry_run(path, "-o", out, image, code=1)
    has(done, f"into       {place}/p\n")
    assert "[output.exists]" in done.stderr and "holds the products of another input" in done.stderr, done.stderr
    told, = pbtest.run_json("pushbroom", "run", "--dry-run", "--json", "-c", path, "-o", out, image, code=1)
    assert (told["status"], told["error"]["code"], told["plan"]["there"]) == ("failed", "output.exists", "another input"), told
    has(dry_run(path, "-o", out, "--existing", "version", image), f"into       {place}~2/p\n")
    has(dry_run(path, "-o", out, "--existing", "replace", image), f"into       {place}/p\n", "products are there: they are replaced")
    os.rename(place, scratch / "away")
    place.mkdir()
    assert "was not made by pushbroom" in dry_run(path, "-o", out, image, code=1).stderr


def test_a_path_that_needs_what_nothing_says(scratch):
    image = write(scratch / "20200219T112111_a.tif", 4)
    path = config(scratch, SINGLE.replace('output: {name', 'output: {path: "{sensor}/{scene}", name'))
    for how in ("--dry-run", "--quiet"):
        done = pbtest.run("pushbroom", "run", how, "-c", path, "-o", scratch / "out", image, code=1)
        assert "[output.path]" in done.stderr and "sensor" in done.stderr, done.stderr


if __name__ == "__main__":
    pbtest.main()
