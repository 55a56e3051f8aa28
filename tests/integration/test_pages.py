#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""TIFFs with several pages: the first is read, and dry run, run, report and item have a note that the others are not."""
import json
import struct

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


def reduced_and_masked(path):
    """Adds a mask and an overview to the first page."""
    gdal.SetConfigOption("GDAL_TIFF_INTERNAL_MASK", "YES")
    out = gdal.Open(str(path), gdal.GA_Update)
    out.CreateMaskBand(gdal.GMF_PER_DATASET)
    out.GetRasterBand(1).GetMaskBand().Fill(255)
    out.BuildOverviews("NEAREST", [2, 4])
    del out
    gdal.SetConfigOption("GDAL_TIFF_INTERNAL_MASK", None)
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
            assert f"{name}.tif has {n} pages, and only the first is read" in words and "others are read with pages: all" in words, words
        assert f"the first of {n} pages, the others are not read" in plan, plan
        assert f"has {n} pages, of which the first was read" in lineage, lineage


def test_overviews_and_masks_are_no_pages(scratch):
    path = reduced_and_masked(scene(scratch / "plain.tif", 100, 256))
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


BANDS = """pipelines:
  p:
    input: {match: ["*.tif", "*.jp2"], pages: all, bands: {B: 1, G: 2, R: 3, N: 4}}
    products:
      - cog: {type: uint16, nodata: 0}
      - stac: {datetime: file-time}
"""


def banded(scratch, path, *words, code=0, text=BANDS):
    (scratch / "bands.yaml").write_text(text)
    done, = pbtest.run_json("pushbroom", "run", "--json", "-c", scratch / "bands.yaml", "-o", scratch / "out", "--existing", "replace", *words, path, code=code)
    return done


def test_a_page_for_each_band_is_read(scratch):
    """Overviews and masks between the pages do not count; the file is one input."""
    plain, mixed = pages(scratch / "plain.tif", 5), reduced_and_masked(scene(scratch / "mixed.tif", 100, 256))
    for i in range(1, 4):
        scene(mixed, 100 + i, 256, ["APPEND_SUBDATASET=YES"])
    for path in (plain, mixed):
        done = banded(scratch, path)
        made = gdal.Open(done["products"][0]["path"])
        assert [int(band.mean()) for band in made.ReadAsArray()] == [100, 101, 102, 103] and made.ReadAsArray().std(axis=(1, 2)).max() == 0, path
        assert [made.GetRasterBand(i).GetDescription() for i in range(1, 5)] == ["B", "G", "R", "N"]
        assert "warning" not in done["report"] and made.GetGeoTransform()[0] == 500000, done["report"]
        item = json.loads((scratch / "out" / path.stem / "p" / f"{path.stem}.stac.json").read_text())["properties"]
        assert [part["file"] for part in item["pushbroom:inputs"]] == [path.name] and "Source N: page 4." in item["processing:lineage"], item
        plan = pbtest.run("pushbroom", "run", "--dry-run", "-c", scratch / "bands.yaml", path).stdout
        lines = [line.split() for line in plan.splitlines() if line.startswith("  band ")]
        assert [line[1:3] for line in lines] == [[band, f"{path.name},"] for band in "BGRN"] and all(f"; page {n}" in plan for n in range(1, 5)), plan


def test_pages_that_are_no_bands_are_refused(scratch):
    def refused(path, code, *words):
        error = banded(scratch, path, code=1)["error"]
        assert error["code"] == code and all(w in error["message"] for w in words), error
    refused(pages(scratch / "short.tif", 2), "pipeline.band", "the file has 2 pages, and page 4 is wanted")
    refused(pages(scratch / "thumbnail.tif", 5, (64, 64, 16, 64)), "input.grid", "page 3 has 16 x 16 pixels, and page 1 64 x 64")
    many = pages(scratch / "many.tif", 3)
    out = gdal.GetDriverByName("GTiff").Create(str(many), 64, 64, 3, gdal.GDT_UInt16, ["APPEND_SUBDATASET=YES"])
    out.WriteArray(np.ones((3, 64, 64), np.uint16))
    del out
    refused(many, "pipeline.band", "page 4 has 3 bands", "{N: {match: \"*.tif\", page: 4, band: 1}}")
    shifted = pages(scratch / "shifted.tif", 4)
    out = gdal.Open(f"GTIFF_DIR:2:{shifted}", gdal.GA_Update)
    out.SetGeoTransform((500005.0, 10, 0, 4000000.0, 0, -10))
    del out
    refused(shifted, "input.grid", "page 2 is at another place than page 1")
    gdal.GetDriverByName("JP2OpenJPEG").CreateCopy(str(scratch / "one.jp2"), gdal.Open(str(pages(scratch / "one.tif", 1))))
    refused(scratch / "one.jp2", "pipeline.band", "it is a JPEG 2000 file, which has no page 4")


def test_page_at_another_place_is_named(scratch):
    far = pages(scratch / "far.tif", 3)
    out = gdal.Open(f"GTIFF_DIR:2:{far}", gdal.GA_Update)
    out.SetGeoTransform((900000.0, 10, 0, 4000000.0, 0, -10))
    del out
    text = """pipelines: {p: {input: {group: '(?<scene>.+).tif', files: {A: {match: '*.tif', page: 3}, B: {match: '*.tif', page: 2}}}, steps: [math: {bands: {D: A - B}}], products: [cog: {bands: [D], type: int16, nodata: -1}]}}
"""
    error = banded(scratch, far, code=1, text=text)["error"]
    assert error["code"] == "input.grid" and "page 2 of far.tif does not overlap page 3 of far.tif" in error["message"], error
    error = banded(scratch, pages(scratch / "short.tif", 2), code=1, text=text)["error"]
    assert error["code"] == "pipeline.band" and "page 3 is wanted (page in input.files" in error["message"], error


def test_pages_without_a_place_have_the_first_ones(scratch):
    """A step computes from two pages, of which one has a georeference."""
    path = scene(scratch / "one.tif", 100)
    out = gdal.GetDriverByName("GTiff").Create(str(path), 64, 64, 1, gdal.GDT_UInt16, ["APPEND_SUBDATASET=YES"])
    out.GetRasterBand(1).WriteArray(np.full((64, 64), 300, np.uint16))
    del out
    text = """pipelines: {p: {input: {pages: all, bands: BANDS}, steps: [math: {bands: {D: N - R}}], products: [cog: {bands: [D], type: int16, nodata: -1}]}}"""
    made = gdal.Open(banded(scratch, path, text=text.replace("BANDS", "{R: 1, N: 2}"))["products"][0]["path"])
    assert (made.ReadAsArray() == 200).all() and made.GetGeoTransform()[0] == 500000
    error = banded(scratch, path, code=1, text=text.replace("BANDS", "{N: 2, R: 1}"))["error"]
    assert error["code"] == "input.grid" and "name the band of page 1 first in input.bands" in error["message"], error


def directories(data):
    """Offsets of the directories of a TIFF, and of the links to them."""
    links, found = [4], []
    while at := struct.unpack_from("<I", data, links[-1])[0]:
        found.append(at)
        links.append(at + 2 + 12 * struct.unpack_from("<H", data, at)[0])
    return found, links


def masked_pages(path, order):
    """Two pages of 100 and 101 with masks (columns 0 to 9 and 10 to 19 are invalid); order: directories of the file."""
    path.unlink(missing_ok=True)
    gdal.SetConfigOption("GDAL_TIFF_INTERNAL_MASK", "YES")
    for i in range(2):
        out = gdal.GetDriverByName("GTiff").Create(str(path), 64, 64, 1, gdal.GDT_UInt16, ["APPEND_SUBDATASET=YES"] if i else [])
        out.GetRasterBand(1).WriteArray(np.full((64, 64), 100 + i, np.uint16))
        out.CreateMaskBand(gdal.GMF_PER_DATASET)
        valid = np.full((64, 64), 255, np.uint8)
        valid[:, 10 * i:10 * i + 10] = 0
        out.GetRasterBand(1).GetMaskBand().WriteArray(valid)
        del out
    gdal.SetConfigOption("GDAL_TIFF_INTERNAL_MASK", None)
    data = bytearray(path.read_bytes())
    found, links = directories(data)
    chain = [found[("P1", "M1", "P2", "M2").index(name)] for name in order.split()]
    link = 4
    for at in chain + [0]:
        struct.pack_into("<I", data, link, at)
        link = links[found.index(at) + 1] if at else None
    path.write_bytes(data)
    return path


def test_mask_is_that_of_the_page_before_it(scratch):
    """Invalid columns of pages 1 and 2, by the order of the directories; None: the file is refused."""
    config = scratch / "c.yaml"
    config.write_text("pipelines: {p: {input: {group: '(?<scene>.+).tif', files: {A: {match: '*.tif', page: 1}, B: {match: '*.tif', page: 2}}},"
                      " products: [cog: {bands: [A, B], type: float32, blocksize: 64}]}}")
    (scratch / "first.yaml").write_text("pipelines: {p: {input: {match: ['*.tif']}, products: [cog: {type: float32, blocksize: 64}]}}")
    none, one, two = slice(0, 0), slice(0, 10), slice(10, 20)
    for order, expected in (("P1 M1 P2 M2", (one, two)), ("P1 P2 M2", (none, two)), ("P1 M1 P2", (one, none)), ("P1 P2", (none, none)),
                            ("P1 P2 M1 M2", None)):
        path = masked_pages(scratch / "x.tif", order)
        for name in ("c.yaml", "first.yaml"):
            done, = pbtest.run_json("pushbroom", "run", "--json", "-c", scratch / name, "-o", scratch / "out", "--existing", "replace", path, code=0 if expected else 1)
            if expected is None:
                assert done["error"]["code"] == "input.unsupported" and "the mask of a page is unknown" in done["error"]["message"], (order, done)
                continue
            made = gdal.Open(done["products"][0]["path"]).ReadAsArray().reshape(-1, 64, 64)
            for page, columns in zip(made, expected):
                invalid = np.zeros((64, 64), bool)
                invalid[:, columns] = True
                assert np.array_equal(np.isnan(page), invalid), (order, name, np.isnan(page)[0])


if __name__ == "__main__":
    pbtest.main()
