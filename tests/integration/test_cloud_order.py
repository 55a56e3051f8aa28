#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: sanitized
"""input.order: cloud. Order of a scene's files by the cloud cover in their metadata (STAC items, MTL, MTD_MSIL2A.xml, GDAL's own),
against numpy; messages for files without it, and refusals."""
import json
import pathlib
import tarfile

import numpy as np
from osgeo import gdal

import pbtest
from test_grids import write

gdal.UseExceptions()
METADATA = pbtest.SOURCE / "tests/data/metadata"
LEFT, TOP = 500000, 4000000


def image(path, value, size=(37, 53), hole=None, clouds=None):
    """A file of one value; hole: columns without data. clouds: GDAL's metadata."""
    pixels = np.full(size, value, np.uint16)
    if hole is not None:
        pixels[:, hole[0]:hole[1]] = 0
    path.parent.mkdir(parents=True, exist_ok=True)
    write(path, pixels, transform=(LEFT, 10, 0, TOP, 0, -10), block=16)
    if clouds is not None:
        made = gdal.Open(str(path), gdal.GA_Update)
        made.SetMetadata({"CLOUDCOVER": str(clouds), "SATELLITEID": "test"}, "IMAGERY")
    return pixels


def item(path, clouds, when="2026-06-{:02}T10:50:31Z", day=1, **more):
    properties = {"datetime": when.format(day), "platform": "made-up", **({} if clouds is None else {"eo:cloud_cover": clouds}), **more}
    path.write_text(json.dumps({"type": "Feature", "stac_version": "1.0.0", "id": path.stem, "geometry": None, "properties": properties,
                                "links": [], "assets": {}}))


def config(scratch, count=3, metadata='"*.json"', match="*.tif", more="", step="method: first", stac="stac: {}", group=r"'(?<scene>t)_\d+\.(tif|json)'"):
    path = scratch / "c.yaml"
    files = "".join(f", A_{k}: {{match: '{match}', nth: {k}, optional: true}}" for k in range(2, count + 1))
    where = f"group: {group}" if group else "scene: 'month/'"
    path.write_text(f"""compute: {{memory: 64MiB, tile: 64}}
pipelines:
  p:
    input:
      {where}
      order: cloud
      nodata: 0
      {f'metadata: {metadata}' if metadata else ''}
      files: {{A_1: {{match: '{match}', nth: 1}}{files}{more}}}
    steps: [mosaic: {{bands: [A], of: [{', '.join(f'_{k}' for k in range(1, count + 1))}], {step}}}]
    products: [cog: {{bands: [A], type: float32}}, {stac}]
""")
    return path


def compute(scratch, path, scene, code=0):
    done, = pbtest.run_json("pushbroom", "run", "--json", "-c", path, "-o", scratch / "out", "--existing", "version", scene, code=code)
    return done


def pixels(report):
    return gdal.Open(next(p["path"] for p in report["products"] if p["type"] == "cog")).ReadAsArray()


def order(report):
    return [(f["file"], f["cloud_cover"], f["used"]) for f in report["report"]["order"]["files"]]


def refused(scratch, path, scene, code, *words):
    error = compute(scratch, path, scene, 1)["error"]
    assert error["code"] == code, error
    for word in words:
        assert word in error["message"], (word, error)


def test_least_cloudy_is_first_and_cloudiest_unused(scratch):
    clouds = {1: 71.5, 2: 0.25, 3: 100, 4: 12, 5: 0}
    for day, cover in clouds.items():
        image(scratch / f"t_{day}.tif", day * 10, hole=(5 * day, 5 * day + 12))
        item(scratch / f"t_{day}.json", cover, day=day)
    done = compute(scratch, config(scratch), scratch / "t_3.tif")
    assert order(done) == [("t_5.tif", 0, True), ("t_2.tif", 0.25, True), ("t_4.tif", 12, True), ("t_1.tif", 71.5, False), ("t_3.tif", 100, False)]
    right = np.full((37, 53), np.nan, np.float32)
    for day in (4, 2, 5):
        layer = np.full(right.shape, day * 10, np.float32)
        layer[:, 5 * day:5 * day + 12] = np.nan
        right = np.where(np.isnan(layer), right, layer)
    np.testing.assert_array_equal(pixels(done), right)
    made = json.loads(pathlib.Path(next(p["path"] for p in done["products"] if p["type"] == "stac")).read_text())["properties"]
    assert (made["datetime"], made["start_datetime"], made["end_datetime"]) == (None, "2026-06-02T10:50:31Z", "2026-06-05T10:50:31Z"), made
    assert "eo:cloud_cover" not in made, "of a mosaic nobody knows it"
    assert "Not used, as others are less cloudy: t_1.tif, t_3.tif." in made["processing:lineage"], made


def test_equal_clouds_are_ordered_by_name(scratch):
    for day, cover in ((2, 5), (1, 5), (3, 1)):
        image(scratch / f"t_{day}.tif", day)
        item(scratch / f"t_{day}.json", cover, day=day)
    done = compute(scratch, config(scratch, 4), scratch / "t_1.tif")
    assert order(done) == [("t_3.tif", 1, True), ("t_1.tif", 5, True), ("t_2.tif", 5, True)]
    assert (pixels(done) == 3).all()


def test_metadata_in_files_count_if_no_others_exist(scratch):
    for day, cover in ((1, 40), (2, 999), (3, 3)):
        image(scratch / f"t_{day}.tif", day, hole=(0, 20) if day == 3 else None, clouds=cover)
    (scratch / "t_2.json").write_text("")  # belongs to the group, and to nothing that is read
    path = config(scratch, metadata=None, stac="stac: {datetime: file-time}")
    done = compute(scratch, path, scratch / "t_1.tif")
    assert order(done) == [("t_3.tif", 3, True), ("t_1.tif", 40, True), ("t_2.tif", None, True)], "999 is GDAL's word for unknown"
    assert (pixels(done)[:, :20] == 1).all() and (pixels(done)[:, 20:] == 3).all()
    said = pbtest.run("pushbroom", "run", "-c", path, "-o", scratch / "out2", scratch / "t_1.tif").stdout
    assert "1 t_3.tif, 3 % clouds" in said and "3 t_2.tif, cloud cover unknown, therefore last" in said, said
    plan = pbtest.run("pushbroom", "run", "--dry-run", "-c", path, scratch / "t_1.tif").stdout
    assert "1 t_3.tif, 3 % clouds" in plan, plan


def test_an_item_goes_before_metadata_in_the_file(scratch):
    for day, cover, inside in ((1, 40, 1), (2, None, 7), (3, 20, 90)):
        image(scratch / f"t_{day}.tif", day, clouds=inside)
        item(scratch / f"t_{day}.json", cover, day=day)
    assert order(compute(scratch, config(scratch), scratch / "t_1.tif")) == [("t_2.tif", 7, True), ("t_3.tif", 20, True), ("t_1.tif", 40, True)]


def landsat(folder, day, cover, value):
    """The files of a Landsat product of the day, with the MTL of a real one."""
    name = f"LC08_L2SP_001062_202010{day}_20201106_02_T2"
    text = (METADATA / "LC08_L2SP_001062_20201031_20201106_02_T2_MTL.txt").read_text()
    text = text.replace("LC08_L2SP_001062_20201031_20201106_02_T2", name).replace("DATE_ACQUIRED = 2020-10-31", f"DATE_ACQUIRED = 2020-10-{day}")
    assert "    CLOUD_COVER = 99.94\n" in text
    image(folder / f"{name}_SR_B4.TIF", value)
    image(folder / f"{name}_QA_PIXEL.TIF", value + 1)
    (folder / f"{name}_MTL.txt").write_text(text.replace("CLOUD_COVER = 99.94", f"CLOUD_COVER = {cover}"))
    return name


LANDSAT = r"'LC08_L2SP_(?<scene>\d{6})_.*_(SR_B4|QA_PIXEL|MTL)\.(TIF|txt)'"


def two_bands(scratch):
    path = config(scratch, 2, metadata='"*_MTL.txt"', match="*_SR_B4.TIF", group=LANDSAT,
                  more=", Q_1: {match: '*_QA_PIXEL.TIF', nth: 1}, Q_2: {match: '*_QA_PIXEL.TIF', nth: 2, optional: true}")
    path.write_text(path.read_text().replace("bands: [A], of", "bands: [A, Q], of").replace("bands: [A], type", "bands: [A, Q], type"))
    return path


def test_bands_of_landsat_products_go_by_their_mtl(scratch):
    names = {day: landsat(scratch, day, cover, 10 * day) for day, cover in ((15, 70.19), (31, 4.5), (22, -1))}
    done = compute(scratch, two_bands(scratch), scratch / f"{names[15]}_MTL.txt")
    first = pixels(done)
    assert (first[0] == 310).all() and (first[1] == 311).all()
    said = {f["file"]: (f["nth"], f["cloud_cover"]) for f in done["report"]["order"]["files"]}
    assert said[f"{names[22]}_QA_PIXEL.TIF"] == (3, None), "-1 is the producer's word for unknown"
    assert said[f"{names[15]}_SR_B4.TIF"] == (2, 70.19), said


def test_bands_of_different_observations_are_not_mixed(scratch):
    names = [landsat(scratch, day, cover, 10 * day) for day, cover in ((15, 1), (31, 50), (22, 70))]
    (scratch / f"{names[0]}_QA_PIXEL.TIF").unlink()
    refused(scratch, two_bands(scratch), scratch / f"{names[1]}_MTL.txt", "input.incomplete", "3 files fit *_SR_B4.TIF and 2 fit *_QA_PIXEL.TIF")
    (scratch / f"{names[1]}_SR_B4.TIF").unlink()
    refused(scratch, two_bands(scratch), scratch / f"{names[1]}_MTL.txt", "input.metadata_conflict", "number 1", "different observations")
    landsat(scratch, 15, 50, 150)
    (scratch / f"{names[0]}_QA_PIXEL.TIF").unlink()  # equally cloudy, of another day
    refused(scratch, two_bands(scratch), scratch / f"{names[1]}_MTL.txt", "input.metadata_conflict", "different observations")


def safe(folder, number, cover):
    """A product of Sentinel-2 as a folder in the scene, with the metadata of a real one."""
    own = folder / f"S2_{number}.SAFE"
    image(own / "GRANULE/L2A/B04.tif", number)
    text = (METADATA / "S2B_N0400_MTD_MSIL2A.xml").read_text()
    before, tag, rest = text.partition("<Cloud_Coverage_Assessment>")
    assert tag
    (own / "MTD_MSIL2A.xml").write_text(before + tag + str(cover) + rest[rest.index("</"):])


def folders(scratch):
    return config(scratch, metadata='"*/MTD_MSIL2A.xml"', match="*/GRANULE/*/B04.tif", group=None)


def test_sentinel_2_folders_order_in_scene_and_archive(scratch):
    for number, cover in ((1, 12.5), (10, 80), (2, 99.9), (3, 0.5)):
        safe(scratch / "month", number, cover)
    done = compute(scratch, folders(scratch), scratch / "month")
    want = [(f"S2_{n}.SAFE/GRANULE/L2A/B04.tif", c, n != 2) for n, c in ((3, 0.5), (1, 12.5), (10, 80), (2, 99.9))]
    assert order(done) == want and (pixels(done) == 3).all(), order(done)
    with tarfile.open(scratch / "month.tar.gz", "w:gz") as archive:
        archive.add(scratch / "month", "month")
    packed = compute(scratch, folders(scratch), scratch / "month.tar.gz")
    assert order(packed) == want
    np.testing.assert_array_equal(pixels(packed), pixels(done))


def test_the_identity_is_of_all_that_decided(scratch):
    """A file that is not used now would be if another were cloudier."""
    for day, cover in ((1, 10), (2, 20), (3, 30), (4, 40)):
        image(scratch / f"t_{day}.tif", day)
        item(scratch / f"t_{day}.json", cover, day=day)
    done = compute(scratch, config(scratch), scratch / "t_1.tif")
    read = json.loads((pathlib.Path(done["directory"]) / ".pushbroom.json").read_text())["input"]["files"]
    assert sorted(f["file"] for f in read) == sorted(f"t_{d}.{e}" for d in range(1, 5) for e in ("tif", "json")), read


def test_what_is_missing_or_contradicts_is_said(scratch):
    path = config(scratch)
    for day in (1, 10):
        image(scratch / f"t_{day}.tif", day)
    item(scratch / "t_1.json", 5)
    refused(scratch, path, scratch / "t_1.tif", "input.incomplete", "metadata of t_10.tif (*.json)")
    item(scratch / "t_10.json", None)
    item(scratch / "t_1.json", None)
    refused(scratch, path, scratch / "t_1.tif", "input.metadata_missing", "the cloud cover of its files is unknown", "input.metadata")
    item(scratch / "t_1.json", 101)
    refused(scratch, path, scratch / "t_1.tif", "input.metadata_value", "t_1.json", "eo:cloud_cover")
    (scratch / "t_1.json").write_text("{")
    refused(scratch, path, scratch / "t_1.tif", "input.metadata_invalid", "t_1.json")
    item(scratch / "t_1.json", 5)
    (scratch / "t_10.tif").write_bytes((scratch / "t_10.tif").read_bytes()[:150])
    refused(scratch, path, scratch / "t_1.tif", "input.truncated", "t_10.tif")


def test_one_file_needs_no_order(scratch):
    image(scratch / "t_1.tif", 1)
    item(scratch / "t_1.json", None)
    done = compute(scratch, config(scratch), scratch / "t_1.tif")
    assert order(done) == [("t_1.tif", None, True)]
    made = json.loads(pathlib.Path(next(p["path"] for p in done["products"] if p["type"] == "stac")).read_text())["properties"]
    assert made["datetime"] == "2026-06-01T10:50:31Z", made


def test_more_files_than_can_be_looked_at_are_refused(scratch):
    for day in range(40):
        image(scratch / f"t_{day}.tif", 1 + day, size=(3, 4))
        item(scratch / f"t_{day}.json", day)
    refused(scratch, config(scratch), scratch / "t_1.tif", "input.limit", "more than 32 files", "40 fit *.tif")
    for day in range(35, 40):
        (scratch / f"t_{day}.tif").unlink()
        (scratch / f"t_{day}.json").unlink()
    assert len(order(compute(scratch, config(scratch), scratch / "t_1.tif"))) == 35


def test_an_item_of_a_product_orders_products(scratch):
    """Products of scenes whose metadata have their clouds are mosaicked by the items next to them."""
    scene = scratch / "scene.yaml"
    scene.write_text("pipelines: {one: {input: {match: ['*.TIF'], metadata: '*_MTL.txt'}, "
                     "products: [cog: {type: uint16, nodata: 0}, stac: {}]}}\n")
    for day, cover in ((15, 70.19), (31, 4.5)):
        name = landsat(scratch / "in", day, cover, day)
        (scratch / "in" / f"{name}_QA_PIXEL.TIF").unlink()
        done = compute(scratch, scene, scratch / "in" / f"{name}_SR_B4.TIF")
        for product in done["products"]:
            path = pathlib.Path(product["path"])
            path.rename(scratch / f"t_{day}{path.suffix}")
    done = compute(scratch, config(scratch), scratch / "t_15.tif")
    assert order(done) == [("t_31.tif", 4.5, True), ("t_15.tif", 70.19, True)] and (pixels(done) == 31).all()


def test_mistakes_of_the_configuration(scratch):
    def wrong(words, path):
        told = pbtest.run("pushbroom", "check-config", path, code=2).stderr
        assert words in told and "c.yaml:" in told, told
    wrong("'{scene}_MTL.txt' has to begin with a *", config(scratch, metadata='"{scene}_MTL.txt"'))
    path = config(scratch)
    path.write_text(path.read_text().replace(", nth: 1", "").replace(", nth: 2", "").replace(", nth: 3", ""))
    wrong("none of input.files has nth", path)
    path = config(scratch)
    path.write_text(path.read_text().replace("    steps: [", "    steps: [calibrate: {to: toa, bands: [A_1]}, "))
    wrong("with input.order: cloud each file has its own", path)


def test_clouds_of_the_page_that_is_read_count(scratch):
    """The first page is a thumbnail without metadata."""
    for day, clouds in ((1, 50), (2, 10)):
        path = scratch / f"in/t_{day}.tif"
        image(path, 7)
        page = gdal.GetDriverByName("GTiff").Create(str(path), 53, 37, 1, gdal.GDT_UInt16, ["APPEND_SUBDATASET=YES"])
        page.SetGeoTransform((LEFT, 10, 0, TOP, 0, -10))
        page.GetRasterBand(1).WriteArray(np.full((37, 53), day, np.uint16))
        page.SetMetadata({"CLOUDCOVER": str(clouds), "SATELLITEID": "test"}, "IMAGERY")
        del page
    path = config(scratch, 2, metadata="", stac="stac: {datetime: file-time}")
    path.write_text(path.read_text().replace("nth: ", "page: 2, nth: "))
    done = compute(scratch, path, scratch / "in/t_1.tif")
    made = gdal.Open([p["path"] for p in done["products"] if p["type"] == "cog"][0]).ReadAsArray()
    assert (made == 2).all(), made


if __name__ == "__main__":
    pbtest.main()
