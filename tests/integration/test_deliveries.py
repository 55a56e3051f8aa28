#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: sanitized
"""The presets of sensors on deliveries with the names that producers use today: one job a scene, no failed job, the right bands,
date and scale; through `pushbroom run` and through the inbox of a service."""
import json
import os
import pathlib

import numpy as np
from osgeo import gdal

import deliveries_kit as kit
import pbtest
from daemon_kit import Daemon, wait_for

gdal.UseExceptions()
S2 = "S2B_MSIL2A_20220413T150759_N0400_R025_T33XWJ_20220414T082126"
OLD = "S2A_MSIL2A_20190212T192651_N0212_R013_T07HFE_20201007T160857"
L1C = "S2A_MSIL1C_20210908T042701_N0301_R133_T46RER_20210908T070248"
LANDSAT = "LC08_L2SP_001062_20201031_20201106_02_T2"
LANDSAT_L1 = "LC08_L1TP_016037_20170813_20200903_02_T1"
PLANET, PLANET_4B = "20210401_075108_80_2406", "20170831_172754_101c"
L30, S30 = "HLS.L30.T11SLT.2022100T182413.v2.0", "HLS.S30.T11SLT.2022102T183929.v2.0"
COLLECTION_1 = "S2A_T29RKH_20200219T111041_L2A"
MTL2 = kit.METADATA / "LC08_L2SP_001062_20201031_20201106_02_T2_MTL.txt"
MTL1 = pbtest.SOURCE / "tests/data/real/landsat8_c1_016037/LC08_L1TP_016037_20170813_20170814_01_RT_MTL.txt"


def ndvi(red, nir):
    return (nir - red) / (nir + red)


def landsat_surface(dn):
    return 3 * dn * 0.0000275 - 0.2


PLAIN = ndvi(kit.RED, kit.NIR)  # where stored values have no offset
OFFSET = ndvi(kit.RED - 1000, kit.NIR - 1000)
# preset, the scene's name, its maker, NDVI, date
DELIVERIES = {
    "safe": ("sentinel2-l2a", f"{S2}.SAFE", lambda r: kit.sentinel2_safe(r, S2, "L2A_T33XWJ_A026639_20220413T150800", "L2A", "S2B_N0400_MTD_MSIL2A.xml"), OFFSET, "2022-04-13T15:07:59"),
    "safe before 04.00, as on Azure": ("sentinel2-l2a", f"{OLD}.SAFE", lambda r: kit.sentinel2_safe(r, OLD, "L2A_T07HFE_A019044_20190212T192646", "L2A", "S2A_N0212_MTD_MSIL2A.xml", "tif"),
                                       PLAIN, "2019-02-12T19:26:51"),
    "safe of L1C": ("sentinel2-l1c", f"{L1C}.SAFE", lambda r: kit.sentinel2_safe(r, L1C, "L1C_T46RER_A032448_20210908T042701", "L1C", "S2A_N0301_MTD_MSIL1C.xml"), PLAIN, "2021-09-08T04:27:01"),
    "Earth Search": ("sentinel2-l2a", "S2A_29RKH_20200219_0_L2A", lambda r: kit.sentinel2_earth_search(r / "S2A_29RKH_20200219_0_L2A", kit.earth_search_item(), "S2A_29RKH_20200219_0_L2A"),
                     PLAIN, "2020-02-19T11:34:25"),
    "Earth Search, collection 1": ("sentinel2-l2a", COLLECTION_1, lambda r: kit.sentinel2_earth_search(r / COLLECTION_1, kit.collection_1_item(COLLECTION_1), COLLECTION_1),
                                   OFFSET, "2020-02-19T11:34:25"),
    "Landsat Level 2": ("landsat-c2-l2", LANDSAT, lambda r: kit.landsat(r / LANDSAT, LANDSAT, MTL2, 2), ndvi(landsat_surface(kit.RED), landsat_surface(kit.NIR)), "2020-10-31T14:31:47"),
    "Landsat Level 1": ("landsat-c2-l1", LANDSAT_L1, lambda r: kit.landsat(r / LANDSAT_L1, LANDSAT_L1, MTL1, 1), ndvi(3 * kit.RED - 5000, 3 * kit.NIR - 5000), "2017-08-13T15:54:15"),
    "HLS of Landsat": ("hls", L30, lambda r: kit.hls(r / "hls", L30, {"B04": kit.RED, "B05": kit.NIR, "B06": 2000}), PLAIN, "2022-04-10T18:24:13"),
    "HLS of Sentinel-2": ("hls", S30, lambda r: kit.hls(r / "hls", S30, {"B04": kit.RED, "B05": 1, "B08": 1, "B8A": kit.NIR, "B11": 2000}), PLAIN, "2022-04-12T18:39:29"),
    "PlanetScope": ("planetscope", PLANET, lambda r: kit.planet(r / "order/PSScene", PLANET), PLAIN, "2017-08-31T17:27:54"),
    "PlanetScope, not clipped": ("planetscope", "20220304_093300_37_2430", lambda r: kit.planet(r / "more/PSScene", "20220304_093300_37_2430", harmonized=False, clip=False), PLAIN, "2017-08-31T17:27:54"),
    "PlanetScope, 4 bands": ("planetscope-4b", PLANET_4B, lambda r: kit.planet(r / "old/PSScene", PLANET_4B, bands=4), PLAIN, "2017-08-31T17:27:54"),
    "Sentinel-1": ("sentinel1-grd", None, lambda r: kit.sentinel1(r / "safe", 5), None, None),
    "Sentinel-1 on AWS": ("sentinel1-grd", None, lambda r: kit.sentinel1(r / "aws", 6, aws=True), None, None),
}


def check(kind, products, files=lambda p: pathlib.Path(p)):
    """Bands, date and scale of the products of one scene."""
    preset, _, _, want, date = DELIVERIES[kind]
    cogs = [p for p in products if p["type"] == "cog"]
    path = next((p["path"] for p in cogs if p.get("name") in (None, "ndvi")), cogs[0]["path"])
    image = gdal.Open(str(files(path)))
    item = json.loads(next(files(p["path"]) for p in products if p["type"] == "stac").read_text())["properties"]
    if want is None:
        assert [image.GetRasterBand(i + 1).GetDescription() for i in range(2)] == ["VV", "VH"], kind
        assert item["platform"] == "sentinel-1a" and item["datetime"], item
        return
    values = image.GetRasterBand(1).ReadAsArray()
    assert image.GetRasterBand(1).GetDescription() == "NDVI" and np.allclose(values, want, atol=2e-6), (kind, values[5, 5], want)
    assert item["datetime"].startswith(date), (kind, item["datetime"])


def run_delivery(scratch, kind):
    preset, scene, make, _, _ = DELIVERIES[kind]
    folder = make(scratch / "in")
    done = pbtest.run_json("pushbroom", "run", "--json", "-c", preset, "-o", scratch / "out", folder)
    assert [d["status"] for d in done] == ["successful"] and done[0]["pipeline"] == preset, (kind, done)
    assert scene is None or scene.removesuffix(".SAFE") in done[0]["directory"], (kind, done[0]["directory"])
    check(kind, done[0]["products"])


def of(word):
    return [k for k in DELIVERIES if word in DELIVERIES[k][0]]


def each(scratch, word):
    assert of(word)
    for kind in of(word):
        run_delivery(scratch / kind.replace(" ", "_"), kind)


def test_sentinel_2_deliveries(scratch):
    each(scratch, "sentinel2")


def test_landsat_deliveries(scratch):
    each(scratch, "landsat")


def test_hls_deliveries(scratch):
    each(scratch, "hls")


def test_planetscope_deliveries(scratch):
    each(scratch, "planetscope")


def test_sentinel_1_deliveries(scratch):
    each(scratch, "sentinel1")


def test_an_order_folder_is_a_scene_for_each_item(scratch):
    items = [PLANET, "20220304_093300_37_2430", "20220305_093440_25_2429"]
    for item in items:
        folder = kit.planet(scratch / "order/PSScene", item)
    (scratch / "order/manifest.json").write_text("{}")
    done = pbtest.run_json("pushbroom", "run", "--json", "-c", "planetscope", "-o", scratch / "out", folder)
    assert sorted(pathlib.Path(d["directory"]).parent.name for d in done) == sorted(items) and {d["status"] for d in done} == {"successful"}, done


def test_a_renamed_folder_finds_its_item(scratch):
    folder = DELIVERIES["Earth Search"][2](scratch / "in").rename(scratch / "sentinel2_29RKH")
    done, = pbtest.run_json("pushbroom", "run", "--json", "-c", "sentinel2-l2a", "-p", "sentinel2-l2a", "-o", scratch / "out", folder)
    check("Earth Search", done["products"])


def test_folder_of_scenes_is_refused_with_advice(scratch):
    for name in ("S2A_29RKH_20200219_0_L2A", "S2A_29RKH_20200219_1_L2A"):
        (scratch / "all" / name).mkdir(parents=True)
    done = pbtest.run("pushbroom", "run", "-c", "sentinel2-l2a", "-o", scratch / "out", scratch / "all", code=1)
    assert f"which holds 2 folders that fit: give {scratch}/all/*" in done.stderr and "to do:" not in done.stderr, done.stderr


def test_the_interval_of_an_item_is_taken_over(scratch):
    """A product of several observations has no time, and none is invented."""
    kit.raster(scratch / "in/mosaic_2026.tif", [kit.RED, kit.NIR])
    when = {"datetime": None, "start_datetime": "2026-06-04T10:50:31Z", "end_datetime": "2026-06-24T10:50:31Z"}
    (scratch / "in/mosaic_2026.json").write_text(json.dumps({"type": "Feature", "stac_version": "1.1.0", "id": "mosaic_2026", "properties": when}))
    config = scratch / "c.yaml"
    config.write_text("""pipelines:
  p:
    input: {match: ["*.tif"], bands: {R: 1, N: 2}, metadata: "{scene}.json"}
    products: [cog, stac]
""")
    done, = pbtest.run_json("pushbroom", "run", "--json", "-c", config, "-o", scratch / "out", scratch / "in/mosaic_2026.tif")
    item = json.loads(pathlib.Path(next(p["path"] for p in done["products"] if p["type"] == "stac")).read_text())["properties"]
    assert {k: item[k] for k in when} == when and item["pushbroom:datetime_source"] == "metadata", item


def test_bands_of_a_preset_are_those_of_the_sensor(scratch):
    """A pipeline of one's own takes any band of the delivery, on the grid of 10 m."""
    folder = DELIVERIES["safe"][2](scratch / "in")
    config = scratch / "all.yaml"
    names = ["A", "B", "G", "R", "RE1", "RE2", "RE3", "N", "N2", "WV", "S1", "S2", "SCL"]
    config.write_text(f"pipelines: {{all: {{input: sentinel2-l2a, products: [cog: {{bands: [{', '.join(names)}], type: float32}}]}}}}\n")
    done, = pbtest.run_json("pushbroom", "run", "--json", "-c", config, "-o", scratch / "out", folder)
    image = gdal.Open(done["products"][0]["path"])
    values = [int(image.GetRasterBand(i + 1).ReadAsArray()[12, 12]) for i in range(len(names))]
    assert (image.RasterYSize, image.RasterXSize) == kit.SHAPE and values == [kit.STORED.get({"R": "B04", "N": "B08"}.get(n, ""), 4 if n == "SCL" else 1000) for n in names], values


def test_the_inbox_takes_every_delivery_as_one_job(scratch):
    """All of them at once, each pipeline made of a preset."""
    kinds = [k for k in DELIVERIES if k not in ("PlanetScope, 4 bands",)]  # their names are those of planetscope, too
    presets = sorted({DELIVERIES[k][0] for k in kinds})
    with Daemon(fake=False) as d:
        pipelines = "".join(pbtest.run("pushbroom", "new", p).stdout.split("pipelines:\n")[1] for p in presets)
        d.set_pipelines("pipelines:\n" + pipelines)
        d.start()
        for kind in kinds:
            made = DELIVERIES[kind][2](scratch / kind.replace(" ", "_"))
            loose = DELIVERIES[kind][0].startswith(("planet", "landsat", "hls"))
            for path in sorted(made.iterdir()) if loose else [made]:
                os.rename(path, d.root / "inbox" / path.name)
        jobs = lambda: d.call("job.list", limit=1000)["jobs"]
        d.wait_for(lambda: len([j for j in jobs() if j["status"] == "successful"]) >= len(kinds) or [j for j in jobs() if j["status"] == "failed"])
        failed = [(j["input"], j["error"]) for j in jobs() if j["status"] == "failed"]
        assert failed == [], failed
        assert len(jobs()) == len(kinds), [j["input"] for j in jobs()]
        assert sorted(j["pipeline"] for j in jobs()) == sorted(DELIVERIES[k][0] for k in kinds)
        wait_for(lambda: d.files("inbox") == [])


if __name__ == "__main__":
    pbtest.main()
