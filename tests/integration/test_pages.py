#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""TIFFs with several pages: the first is read, and dry run, run, report and item have a note that the others are not."""
import json

import numpy as np
from osgeo import gdal, osr

import pbtest

gdal.UseExceptions()
CONFIG = """pipelines:
  p:
    input: {match: ["*.tif"]}
    products:
      - cog: {type: uint16, nodata: 0}
      - stac: {datetime: file-time}
"""


def scene(path, value, size=64, options=()):
    out = gdal.GetDriverByName("GTiff").Create(str(path), size, size, 1, gdal.GDT_UInt16, list(options))
    system = osr.SpatialReference()
    system.ImportFromEPSG(32632)
    out.SetGeoTransform((500000.0, 10, 0, 4000000.0, 0, -10))
    out.SetProjection(system.ExportToWkt())
    out.GetRasterBand(1).WriteArray(np.full((size, size), value, np.uint16))
    return path


def pages(path, n, sizes=(64,)):
    for i in range(n):
        scene(path, 100 + i, sizes[i % len(sizes)], ["APPEND_SUBDATASET=YES"] if i else [])
    return path


def outcome(scratch, path):
    """Notes of a run: its report, its text, that of a dry run, the file of the plan, and the item."""
    (scratch / "c.yaml").write_text(CONFIG)
    words = ("-c", scratch / "c.yaml", "-o", scratch / "out", "--existing", "replace", path)
    report, = pbtest.run_json("pushbroom", "run", "--json", *words)
    text = pbtest.run("pushbroom", "run", *words).stdout
    plan = pbtest.run("pushbroom", "run", "--dry-run", *words).stdout
    item = json.loads((scratch / "out" / path.stem / "p" / f"{path.stem}.stac.json").read_text())
    made = gdal.Open(str(scratch / "out" / path.stem / "p" / f"{path.stem}.tif")).ReadAsArray()
    assert (made == 100).all()
    return report["report"], text, plan, item["properties"]["processing:lineage"]


def test_pages_that_are_not_read_are_named(scratch):
    for name, n, sizes in (("two", 2, (64,)), ("three", 3, (64, 32, 100))):
        report, text, plan, lineage = outcome(scratch, pages(scratch / f"{name}.tif", n, sizes))
        for words in (report["warning"], text):
            assert f"{name}.tif has {n} pages, and only the first is read" in words and "page: 2" in words, words
        assert f"the first of {n} pages, the others are not read" in plan, plan
        assert f"has {n} pages, of which the first was read" in lineage, lineage


def test_overviews_and_masks_are_no_pages(scratch):
    path = scene(scratch / "plain.tif", 100, 256)
    gdal.SetConfigOption("GDAL_TIFF_INTERNAL_MASK", "YES")
    out = gdal.Open(str(path), gdal.GA_Update)
    out.CreateMaskBand(gdal.GMF_PER_DATASET)
    out.GetRasterBand(1).GetMaskBand().Fill(255)
    out.BuildOverviews("NEAREST", [2, 4])
    del out
    gdal.SetConfigOption("GDAL_TIFF_INTERNAL_MASK", None)
    report, text, plan, lineage = outcome(scratch, path)
    assert "warning" not in report and "pages" not in plan + lineage and "only the first" not in text, (report.get("warning"), text, plan, lineage)


def test_a_named_page_is_read(scratch):
    """Files are classic and BigTIFF in both byte orders, with pages of different sizes."""
    config = scratch / "c.yaml"
    config.write_text("pipelines: {p: {input: {group: '(?<scene>.+).tif', files: {A: {match: '*.tif', page: 3}}}, products: [cog: {bands: [A], type: uint16, nodata: 0}]}}")
    for name, layout in (("little", []), ("big", ["ENDIANNESS=BIG"]), ("wide", ["BIGTIFF=YES"]), ("wide_big", ["BIGTIFF=YES", "ENDIANNESS=BIG"])):
        path = scratch / f"{name}.tif"
        for i in range(3):
            scene(path, 100 + i, (64, 32, 100)[i], layout + (["APPEND_SUBDATASET=YES"] if i else []))
        done, = pbtest.run_json("pushbroom", "run", "--json", "-c", config, "-o", scratch / "out", path)
        made = gdal.Open(done["products"][0]["path"]).ReadAsArray()
        assert made.shape == (100, 100) and (made == 102).all() and "warning" not in done["report"], (name, made.shape, done["report"].get("warning"))
    done, = pbtest.run_json("pushbroom", "run", "--json", "-c", config, "-o", scratch / "out", pages(scratch / "two.tif", 2), code=1)
    assert done["error"]["code"] == "pipeline.band" and "2 pages, and page 3 is wanted" in done["error"]["message"], done


if __name__ == "__main__":
    pbtest.main()
