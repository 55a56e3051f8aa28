#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: sanitized
"""Steps that calibrate, through `pushbroom run`: real and made scenes with the metadata that producers deliver, against the
formulas of the handbooks worked out here in float64, and messages for missing, wrong or unsuitable metadata."""
import json
import math
import shutil
import subprocess

import numpy as np
from osgeo import gdal, osr

import pbtest
from daemon_kit import Daemon

gdal.UseExceptions()
METADATA = pbtest.SOURCE / "tests/data/metadata"
LANDSAT = "LC08_L1TP_016037_20170813_20170814_01_RT"
LEVEL2 = "LC08_L2SP_001062_20201031_20201106_02_T2"
PLANET = "20170831_172754_101c_3B_AnalyticMS"
SUN = math.sin(math.radians(62.17310472))


def config(scratch, source, steps, bands, more=""):
    path = scratch / "c.yaml"
    path.write_text(f"""pipelines:
  p:
    input:
{''.join(f'      {line}' + chr(10) for line in source)}
    steps:
{''.join(f'      - {s}' + chr(10) for s in steps)}
    products:
      - cog: {{bands: [{bands}], type: float32}}
{more}
""")
    return path


def raster(path, array, x=500000.0, y=4000000.0, pixel=30.0, epsg=32615):
    """A GeoTIFF of the array: bands, rows, columns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    out = gdal.GetDriverByName("GTiff").Create(str(path), array.shape[2], array.shape[1], array.shape[0], gdal.GDT_UInt16)
    out.SetGeoTransform((x, pixel, 0, y, 0, -pixel))
    system = osr.SpatialReference()
    system.ImportFromEPSG(epsg)
    out.SetProjection(system.ExportToWkt())
    for i in range(array.shape[0]):
        out.GetRasterBand(i + 1).WriteArray(array[i])


def numbers(n_bands, seed=1, high=10000):
    return np.random.default_rng(seed).integers(1, high, (n_bands, 40, 50)).astype(np.uint16)


def read(path):
    data = gdal.Open(str(path)).ReadAsArray()
    return data if data.ndim == 3 else data[None]


def made(scratch, scene, product="p"):
    return read(scratch / "out" / scene / product / f"{scene}.tif")


def run(scratch, scene, code=0):
    done = pbtest.run("pushbroom", "run", "-c", scratch / "c.yaml", "-o", scratch / "out", "--json", scene, code=code)
    return json.loads(done.stdout.splitlines()[-1])


def refused(scratch, scene, code, *words):
    """Both by a run and by a dry run, before anything is made."""
    shutil.rmtree(scratch / "out", ignore_errors=True)
    for how in ([], ["--dry-run"]):
        done = pbtest.run("pushbroom", "run", "-c", scratch / "c.yaml", "-o", scratch / "out", "--json", *how, scene, code=1)
        error = json.loads(done.stdout.splitlines()[-1])["error"]
        assert error["code"] == code, error
        for word in words:
            assert word in error["message"], (word, error)
    assert not (scratch / "out" / scene.stem).exists()


def close(values, expected):
    assert np.array_equal(np.isnan(values), np.isnan(expected))
    assert np.allclose(values, expected, rtol=1e-6, atol=1e-7, equal_nan=True), np.nanmax(np.abs(values - expected))


def landsat_folder(scratch, mtl=None):
    source = pbtest.need_data() / "real/landsat8_c1_016037"
    folder = scratch / "scene"
    folder.mkdir()
    for band in ("B4", "B5", "B10"):
        shutil.copyfile(source / f"{LANDSAT}_{band}.TIF", folder / f"{LANDSAT}_{band}.TIF")
    text = (source / f"{LANDSAT}_MTL.txt").read_text()
    (folder / f"{LANDSAT}_MTL.txt").write_text(mtl(text) if mtl else text)
    return folder


FOLDER = ['scene: "scene"', 'files: {R: "*_B4.TIF", N: "*_B5.TIF", T: "*_B10.TIF"}', 'metadata: "*_MTL.txt"', "nodata: 0"]


def test_landsat_level_1_is_that_of_the_handbook(scratch):
    # Landsat 8-9 Data Users Handbook (LSDS-1574) chapter 5: rho = (M_rho Q + A_rho) / sin(elevation), L = M_L Q + A_L,
    # T = K2 / ln(K1 / L + 1).
    folder = landsat_folder(scratch)
    config(scratch, FOLDER, ["calibrate: {to: radiance, bands: {LR: R}}", "calibrate: {to: toa, bands: [R, N]}",
                             "calibrate: {sensor: landsat-c2, to: temperature, bands: {BT: T}}"], "R, N, LR, BT")
    result = run(scratch, folder)
    r, n, t = (np.where(d == 0, np.nan, d.astype(np.float64)) for d in
               (read(folder / f"{LANDSAT}_{b}.TIF")[0] for b in ("B4", "B5", "B10")))
    out = made(scratch, "scene")
    close(out[0], (2.0e-5 * r - 0.1) / SUN)
    close(out[1], (2.0e-5 * n - 0.1) / SUN)
    close(out[2], 9.7350e-3 * r - 48.67504)
    close(out[3], 1321.0789 / np.log(774.8853 / (3.3420e-4 * t + 0.1) + 1))
    # Worked out by hand: stored 15142 is 0.20284 / 0.88436 = 0.229363, stored 25962 is 294.1025 K.
    assert abs(out[0][128, 128] - 0.229363) < 1e-6 and abs(out[3][128, 128] - 294.1025) < 1e-4
    said = {c["band"]: c for c in result["report"]["calibration"]}
    assert said["R"]["of"] == "4" and said["R"]["to"] == "toa" and "sun elevation 62.173105" in said["R"]["rule"], said
    assert said["BT"]["formula"] == "1321.0789 / ln(774.8853 / (DN * 0.0003342 + 0.1) + 1)", said
    assert result["report"]["metadata"]["datetime"] == "2017-08-13T15:54:15.788464Z"


def test_landsat_l2_is_reflectance_and_temperature(scratch):
    # Level 2 Science Product Guide (LSDS-1619): 0.0000275 DN - 0.2 and 0.00341802 DN + 149.0.
    stored = numbers(2, high=60000)
    raster(scratch / f"scene/{LEVEL2}_SR_B4.TIF", stored[:1])
    raster(scratch / f"scene/{LEVEL2}_ST_B10.TIF", stored[1:])
    shutil.copy(METADATA / f"{LEVEL2}_MTL.txt", scratch / "scene")
    source = ['scene: "scene"', 'files: {R: "*_SR_B4.TIF", T: "*_ST_B10.TIF"}', 'metadata: "*_MTL.txt"']
    config(scratch, source, ["calibrate: {to: surface, bands: [R]}", "calibrate: {to: temperature, bands: [T]}"], "R, T")
    run(scratch, scratch / "scene")
    out = made(scratch, "scene")
    close(out[0], 2.75e-5 * stored[0] - 0.2)
    close(out[1], 0.00341802 * stored[1] + 149.0)
    config(scratch, source, ["calibrate: {to: toa, bands: [R]}"], "R")
    refused(scratch, scratch / "scene", "input.metadata_value", "band 4", "use to: surface")


def item_of(scratch, scene="scene"):
    return json.loads((scratch / "out" / scene / "p" / f"{scene}.stac.json").read_text())


def test_item_has_time_sun_and_bands_of_the_metadata(scratch):
    folder = landsat_folder(scratch)
    config(scratch, FOLDER, ["calibrate: {to: toa, bands: [R, N]}", "index: {names: [NDVI]}"], "R, N, NDVI", "      - stac: {}")
    run(scratch, folder)
    item = item_of(scratch)
    p = item["properties"]
    assert (p["datetime"], p["pushbroom:datetime_source"]) == ("2017-08-13T15:54:15.788464Z", "metadata")
    assert (p["platform"], p["constellation"], p["instruments"], p["gsd"]) == ("landsat-8", "landsat", ["OLI_TIRS"], 30)
    assert (p["view:sun_elevation"], p["view:sun_azimuth"], p["eo:cloud_cover"]) == (62.17310472, 126.81463739, 26.7)
    assert p["pushbroom:source_product"] == LANDSAT
    assert "view:off_nadir" not in p
    for name in ("view/v1.0.0", "eo/v2.0.0"):
        assert f"https://stac-extensions.github.io/{name}/schema.json" in item["stac_extensions"]
    red, nir, ndvi = item["assets"]["data"]["bands"]
    assert (red["name"], red["eo:common_name"], red["eo:center_wavelength"]) == ("R", "red", 0.655), red
    assert nir["eo:common_name"] == "nir08" and "eo:common_name" not in ndvi
    rules = {c["band"]: c for c in p["processing:expression"]["expression"]["calibration"]}
    assert rules["R"]["of"] == "4" and "LSDS-1574" in rules["R"]["source"], rules
    assert "R = DN * 0.0000226" in p["processing:lineage"] and "sun elevation 62.173105" in p["processing:lineage"]
    # Without metadata nothing of it is there, and no extension either.
    config(scratch, FOLDER[:2] + FOLDER[3:], ["math: {bands: {S: R + N}}"], "S", "      - stac: {datetime: file-time}")
    shutil.rmtree(scratch / "out")
    run(scratch, folder)
    item = item_of(scratch)
    assert not any(k.startswith(("view:", "eo:")) for k in item["properties"])
    assert not any("/view/" in e or "/eo/" in e for e in item["stac_extensions"])


def test_a_time_that_metadata_do_not_say_is_asked_for(scratch):
    raster(scratch / "pan.tif", numbers(1))
    text = (METADATA / "09DEC06145803-P1BS-052869858050_01_P002.IMD").read_text()
    (scratch / "pan.IMD").write_text(text.replace("TLCTime", "OtherTime").replace("firstLineTime", "lineTime"))
    config(scratch, ['match: ["pan.tif"]', "bands: {P: 1}", 'metadata: "{scene}.IMD"'],
           ["calibrate: {to: radiance, bands: [P]}"], "P", "      - stac: {}")
    refused(scratch, scratch / "pan.tif", "input.datetime", "its metadata (worldview) do not have it")


def sentinel2(scratch, change=lambda text: text, name="S2A_29RKH_20200219_0_L2A.json"):
    shutil.rmtree(scratch / "scene", ignore_errors=True)
    shutil.rmtree(scratch / "out", ignore_errors=True)
    stored = numbers(2)
    epsg = {"S2B_N0400_MTD_MSIL2A.xml": 32633, "S2A_N0212_MTD_MSIL2A.xml": 32707}.get(name, 32629)  # the zone of the tile in the metadata
    raster(scratch / "scene/B04.tif", stored[:1], epsg=epsg)
    raster(scratch / "scene/B8A.tif", stored[1:], epsg=epsg)
    (scratch / "scene" / name).write_text(change((METADATA / name).read_text()))
    config(scratch, ['scene: "scene"', "files: {R: B04.tif, N: B8A.tif}", f'metadata: "{name}"'],
           ["calibrate: {sensor: sentinel2, to: surface, bands: [R, N]}"], "R, N")
    return stored.astype(np.float64)


@pbtest.not_about_memory
def test_sentinel2_offset_follows_baseline_and_flag(scratch):
    scene = scratch / "scene"
    for name, change, offset in (
            ("S2A_29RKH_20200219_0_L2A.json", lambda t: t, 0),
            ("S2A_29RKH_20200219_0_L2A.json", lambda t: t.replace('"02.14"', '"05.09"').replace('"offset":0', '"offset":-0.1'), -1000),
            ("S2A_29RKH_20200219_0_L2A.json",
             lambda t: t.replace('"02.14"', '"05.09"').replace('offset_applied":false', 'offset_applied":true'), 0),
            ("S2B_N0400_MTD_MSIL2A.xml", lambda t: t, -1000),
            ("S2B_N0400_MTD_MSIL2A.xml", lambda t: t.replace("2022-04-13", "2016-04-13"), -1000),  # never by date
            ("S2A_N0212_MTD_MSIL2A.xml", lambda t: t, 0)):
        stored = sentinel2(scratch, change, name)
        result = run(scratch, scene)
        close(made(scratch, "scene"), (stored + offset) / 10000)
        rule = result["report"]["calibration"][0]["rule"]
        assert ("(DN - 1000) / 10000" in rule) == (offset != 0), rule
    stored = sentinel2(scratch, lambda t: t.replace(">04.00<", ">02.09<"), "S2B_N0400_MTD_MSIL2A.xml")
    refused(scratch, scene, "input.metadata_conflict", "baseline 02.09 has no offset, but BOA_ADD_OFFSET is -1000")


def test_planetscope_goes_by_the_number_of_the_band(scratch):
    stored = numbers(4)
    raster(scratch / f"{PLANET}.tif", stored)
    shutil.copy(METADATA / f"{PLANET}_metadata.xml", scratch)
    source = ['match: ["*AnalyticMS*.tif"]', "bands: {B: 1, G: 2, R: 3, N: 4}", 'metadata: "{scene}_metadata.xml"']
    config(scratch, source, ["calibrate: {bands: {RT: R, NT: N}}", "calibrate: {to: radiance, bands: [B]}"], "RT, NT, B")
    run(scratch, scratch / f"{PLANET}.tif")
    out = made(scratch, PLANET)
    close(out[0], 2.14155262585e-05 * stored[2])
    close(out[1], 3.22221688359e-05 * stored[3])
    close(out[2], 0.01 * stored[0])
    # Surface reflectance has the same metadata, and another name.
    (scratch / f"{PLANET}.tif").rename(scratch / f"{PLANET}_SR.tif")
    source[-1] = f'metadata: "{PLANET}_metadata.xml"'
    config(scratch, source, ["calibrate: {bands: [R]}"], "R")
    refused(scratch, scratch / f"{PLANET}_SR.tif", "input.metadata_conflict", "_SR", "use to: surface")
    config(scratch, source, ["calibrate: {to: surface, bands: [R]}"], "R")
    run(scratch, scratch / f"{PLANET}_SR.tif")
    close(made(scratch, f"{PLANET}_SR")[0], stored[2] / 10000)


def test_vhr_scene_has_radiance_and_reflectance(scratch):
    # Radiometric Use of WorldView-2 Imagery: L = absCalFactor DN / effectiveBandwidth; TOA = L d^2 pi / (E sin(elevation)).
    stored = numbers(1)
    raster(scratch / "pan.tif", stored)
    shutil.copy(METADATA / "09DEC06145803-P1BS-052869858050_01_P002.IMD", scratch / "pan.IMD")
    source = ['match: ["pan.tif"]', "bands: {P: 1}", 'metadata: "{scene}.imd"']
    config(scratch, source, ["calibrate: {to: radiance, bands: {L: P}}", "calibrate: {sensor: worldview, bands: [P]}"], "L, P")
    run(scratch, scratch / "pan.tif")
    radiance = 5.678345e-02 / 2.846000e-01 * stored[0]
    out = made(scratch, "pan")
    close(out[0], radiance)
    distance = 0.985248
    assert np.allclose(out[1], radiance * distance**2 * math.pi / (1571.36 * math.sin(math.radians(66.4))), rtol=1e-5)
    # Another irradiance, for which the user is responsible; a satellite of unknown irradiance requires one.
    imd = (scratch / "pan.IMD").read_text()
    config(scratch, source, ["calibrate: {bands: {T: P}, irradiance: {P: 1600}}"], "T", "      - stac: {}")
    run(scratch, scratch / "pan.tif")
    assert np.allclose(made(scratch, "pan")[0], radiance * distance**2 * math.pi / (1600 * math.sin(math.radians(66.4))), rtol=1e-5)
    (scratch / "pan.IMD").write_text(imd.replace("WV02", "WV04"))
    config(scratch, source, ["calibrate: {bands: [P]}"], "P")
    refused(scratch, scratch / "pan.tif", "input.metadata_value", "WV04", "calibrate.irradiance")
    config(scratch, source, ["calibrate: {bands: [P], irradiance: {P: 1608.01}}"], "P")
    report = run(scratch, scratch / "pan.tif")["report"]
    assert np.allclose(made(scratch, "pan")[0], radiance * distance**2 * math.pi / (1608.01 * math.sin(math.radians(66.4))), rtol=1e-5)
    assert "irradiance 1608.01 W/(m2 um), of the configuration" in report["calibration"][0]["rule"], report["calibration"]
    # Pleiades: L = DN / GAIN + BIAS; band 1 of the file is B2.
    stored = numbers(4)
    raster(scratch / "phr.tif", stored)
    shutil.copy(METADATA / "DIM_PHR1B_made.XML", scratch / "DIM_phr.XML")
    config(scratch, ['match: ["phr.tif"]', "bands: {R: 1, B: 3}", 'metadata: "DIM_{scene}.XML"'],
           ["calibrate: {to: radiance, bands: [R, B]}"], "R, B")
    run(scratch, scratch / "phr.tif")
    out = made(scratch, "phr")
    close(out[0], stored[0] / 10.46 + 0.5)
    close(out[1], stored[2] / 9.46)


def test_a_band_that_cannot_be_told_is_asked_for(scratch):
    raster(scratch / "stack.tif", numbers(2))
    shutil.copy(METADATA / f"{LEVEL2}_MTL.txt", scratch / "stack_MTL.txt")
    source = ['match: ["stack.tif"]', "bands: {R: 1, N: 2}", 'metadata: "{scene}_MTL.txt"']
    config(scratch, source, ["calibrate: {to: surface, bands: [R]}"], "R")
    refused(scratch, scratch / "stack.tif", "pipeline.band", "the product's band for R is unclear", "as: {R: B4}")
    config(scratch, source, ["calibrate: {to: surface, bands: [R], as: {R: B14}}"], "R")
    refused(scratch, scratch / "stack.tif", "pipeline.band", "R is B14 according to 'as'")
    config(scratch, source, ["calibrate: {to: surface, bands: [R], as: {R: B4}}"], "R")
    run(scratch, scratch / "stack.tif")
    close(made(scratch, "stack")[0], 2.75e-5 * numbers(2)[0] - 0.2)
    config(scratch, source, ["calibrate: {to: surface, bands: [R], as: {R: B4}}",
                             "calibrate: {to: surface, bands: [R], as: {R: B4}}"], "R")
    refused(scratch, scratch / "stack.tif", "pipeline.band", "'R' is calibrated by an earlier step already")


def test_radar_is_refused_with_words(scratch):
    raster(scratch / "s1.tif", numbers(1))
    shutil.copy(METADATA / "s1c-s4-grd-hh-short.xml", scratch / "s1.xml")
    config(scratch, ['match: ["s1.tif"]', "bands: {HH: 1}", 'metadata: "{scene}.xml"'],
           ["calibrate: {to: radiance, bands: [HH], as: {HH: HH}}"], "HH")
    refused(scratch, scratch / "s1.tif", "input.metadata_value", "write to: sigma0, beta0 or gamma0")


def test_metadata_that_are_missing_are_named(scratch):
    raster(scratch / "a.tif", numbers(1))
    config(scratch, ['match: ["*.tif"]', "bands: {R: 1}", 'metadata: "{scene}_MTL.txt"'],
           ["calibrate: {to: toa, bands: [R], as: {R: B4}}"], "R")
    refused(scratch, scratch / "a.tif", "input.metadata_missing", "no file fits a_MTL.txt")
    folder = landsat_folder(scratch)
    (folder / f"{LANDSAT}_MTL.txt").unlink()
    config(scratch, FOLDER, ["calibrate: {to: toa, bands: [R, N]}"], "R, N")
    refused(scratch, folder, "input.incomplete", "metadata (*_MTL.txt)")
    target = scratch / "elsewhere.txt"
    shutil.copy(METADATA / f"{LEVEL2}_MTL.txt", target)
    (scratch / "a_MTL.txt").symlink_to(target)
    config(scratch, ['match: ["*.tif"]', "bands: {R: 1}", 'metadata: "{scene}_MTL.txt"'],
           ["calibrate: {to: surface, bands: [R], as: {R: B4}}"], "R")
    refused(scratch, scratch / "a.tif", "input.link", "symbolic link")
    (scratch / "a_MTL.txt").unlink()
    shutil.copy(target, scratch / "b_MTL.txt")
    shutil.copy(target, scratch / "c_MTL.txt")
    config(scratch, ['match: ["*.tif"]', "bands: {R: 1}", 'metadata: "*_MTL.txt"'],
           ["calibrate: {to: surface, bands: [R], as: {R: B4}}"], "R")
    refused(scratch, scratch / "a.tif", "input.ambiguous", "two files fit input.metadata")
    (scratch / "a_MTL.txt").symlink_to(target)  # chosen of several: the one that begins like the scene's file
    refused(scratch, scratch / "a.tif", "input.link", "symbolic link")


def test_metadata_that_lie_are_refused(scratch):
    steps = ["calibrate: {to: toa, bands: [R, N]}"]
    config(scratch, FOLDER, steps, "R, N")
    for change, code, words in (
            (lambda t: t.replace("REFLECTANCE_MULT_BAND_4 = 2.0000E-05", "REFLECTANCE_MULT_BAND_4 = 2.0000E-04"),
             "input.metadata_conflict", "REFLECTANCE of band 4 contradicts itself"),
            (lambda t: t[:len(t) // 2], "input.metadata_invalid", ""),
            (lambda t: "PK\x03\x04", "input.metadata_invalid", "no text"),
            (lambda t: "<!DOCTYPE a [<!ENTITY b SYSTEM 'file:///etc/passwd'>]><a>&b;</a>", "input.metadata_invalid", "not allowed"),
            (lambda t: "<a/>", "input.metadata_unknown", "no metadata of a family"),
            (lambda t: t.replace("SUN_ELEVATION = 62.17310472", "SUN_ELEVATION = -3"), "input.metadata_value",
             "not above the horizon"),
            (lambda t: t.replace("20170813_20170814", "20170813_20170815"), "input.metadata_conflict", "another product")):
        shutil.rmtree(scratch / "scene", ignore_errors=True)
        refused(scratch, landsat_folder(scratch, change), code, words)
    shutil.rmtree(scratch / "scene", ignore_errors=True)
    config(scratch, FOLDER, ["calibrate: {sensor: sentinel2, to: toa, bands: [R, N]}"], "R, N")
    refused(scratch, landsat_folder(scratch), "input.metadata_conflict", "calibrate.sensor is sentinel2")


def test_the_configuration_says_what_calibrating_needs(scratch):
    path = config(scratch, ['match: ["*.tif"]', "bands: {R: 1}", "scale: 0.0001"],
                  ["calibrate: {to: toa, bands: [R], as: {X: B4}}"], "R")
    done = pbtest.run("pushbroom", "check-config", path, code=2)
    for words in ("c.yaml:9:9: calibrate needs the scene's metadata; name their file with input.metadata",
                  "c.yaml:9:38: calibrate: 'R' must have its stored values", "calibrate: as: 'X' is none of bands"):
        assert words in done.stderr, (words, done.stderr)


def sample(scratch, name, scene, stem, product):
    """A sample without changes, on a scene of ours; its item."""
    done = pbtest.run("pushbroom", "run", "-c", pbtest.SOURCE / "samples" / name, "-o", scratch / "out", "--json", scene)
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["status"] == "successful" and result["directory"].endswith(f"{stem}/{product}"), result
    return json.loads((scratch / "out" / stem / product / f"{stem}.stac.json").read_text())["properties"]


def test_collection_grows_and_overwrites_no_other(scratch):
    products = scratch / "out"
    raster(scratch / "a.tif", numbers(1))
    raster(scratch / "b.tif", numbers(1, seed=2), x=700000.0, y=4100000.0)
    config(scratch, ['match: ["*.tif"]', "bands: {R: 1}"], ["math: {bands: {S: R * 2}}"], "S",
           "      - stac: {datetime: file-time, collection: scenes}")
    both = [subprocess.Popen([pbtest.BIN / "pushbroom", "run", "--quiet", "-c", scratch / "c.yaml", "-o", products,
                              scratch / f"{name}.tif"]) for name in "ab"]
    assert [p.wait() for p in both] == [0, 0]
    written = (products / "collection.json").read_bytes()
    collection = json.loads(written)
    assert (collection["type"], collection["id"], collection["stac_version"]) == ("Collection", "scenes", "1.1.0")
    assert collection["license"] and collection["description"] and len(collection["links"]) == 3
    items = [item_of(scratch, name) for name in "ab"]
    box, = collection["extent"]["spatial"]["bbox"]
    assert box == [f(i["bbox"][k] for i in items) for k, f in enumerate((min, min, max, max))] and box[2] - box[0] > 2, box
    times = [i["properties"]["datetime"] for i in items]
    assert collection["extent"]["temporal"]["interval"] == [[min(times), max(times)]]
    page = f"collection-{times[0][:7]}.json"
    assert sorted(p.name for p in products.iterdir()) == ["a", "b", "catalog.json", page, "collection.json"]
    item = item_of(scratch, "a")
    link = [l for l in item["links"] if l["rel"] == "collection"][0]
    assert (products / "a/p" / link["href"]).resolve() == (products / "collection.json").resolve()
    # The operator's own words stay.
    collection["description"] = "mine"
    (products / "collection.json").write_text(json.dumps(collection))
    assert pbtest.run("pushbroom", "run", "-c", scratch / "c.yaml", "-o", products, scratch / "a.tif").stderr.count("collection") == 0
    assert json.loads((products / "collection.json").read_text())["description"] == "mine"
    for text, why in (('{"type": "Collection", "id": "others"}', "is another collection"), ("keep me", "is no collection")):
        (products / "collection.json").write_text(text)
        done = pbtest.run("pushbroom", "run", "-c", scratch / "c.yaml", "-o", products, scratch / "a.tif")
        assert "the collection scenes has no collection.json" in done.stderr + done.stdout and why in done.stderr + done.stdout, done
        assert (products / "collection.json").read_text() == text
    # Its place follows output.path.
    path = scratch / "c.yaml"
    path.write_text(path.read_text().replace("    steps:", '    output: {path: "x/y/{scene}"}\n    steps:'))
    shutil.rmtree(products)
    run(scratch, scratch / "a.tif")
    links = json.loads((products / "x/y/a/a.stac.json").read_text())["links"]
    places = {link["rel"]: (products / "x/y/a" / link["href"]).resolve() for link in links}
    assert places["collection"] == (products / "collection.json").resolve() and places["collection"].exists()
    assert places["root"] == (products / "catalog.json").resolve() and places["parent"] == (products / page).resolve()


def test_the_service_says_the_rule_in_status_and_log(scratch):
    folder = landsat_folder(scratch)
    config(scratch, FOLDER, ["calibrate: {to: toa, bands: [R, N]}"], "R, N", "      - stac: {}")
    with Daemon(fake=False, stall="300s") as d:
        d.set_pipelines((scratch / "c.yaml").read_text())
        d.start()
        d.drop_copy(folder, "scene")
        job = d.wait_job("scene", "successful")
        rule = "R = toa of band 4: DN * 0.000022615174686238066 - 0.11307587343119033"
        shown = pbtest.run("pushbroom", "status", job["id"], "--socket", d.root / "s.sock").stdout
        assert f"calibrate  {rule}" in shown, shown
        d.wait_for(lambda: rule in d.log_text())


def test_service_names_metadata_inside_the_scene(scratch):
    """The folder in which the service ran the job is not in the message: it is gone."""
    folder = landsat_folder(scratch, lambda text: text.replace("DATE_ACQUIRED = 2017-08-13", "DATE_ACQUIRED = 2017-08-14"))
    pan = scratch / "pan.tif"
    raster(pan, numbers(1))
    text = config(scratch, FOLDER, ["calibrate: {to: toa, bands: [R, N]}"], "R, N").read_text()
    (scratch / "pan.IMD").write_text("no metadata")
    more = config(scratch, ['match: ["pan.tif"]', "bands: {P: 1}", 'metadata: "{scene}.IMD"'],
                  ["calibrate: {to: radiance, bands: [P]}"], "P").read_text()
    with Daemon(fake=False, stall="300s") as d:
        d.set_pipelines(text + more.replace("pipelines:\n  p:", "  file:"))
        d.start()
        d.drop_copy(folder, "scene")
        d.drop_copy(scratch / "pan.IMD")
        d.drop_copy(pan)
        for name, file in (("scene", f"{LANDSAT}_MTL.txt"), ("pan.tif", "pan.IMD")):
            message = d.wait_job(name, "failed")["error"]["message"]
            assert message.startswith(f"{file}:"), message


@pbtest.not_about_memory
def test_samples_run_as_they_stand(scratch):
    folder = landsat_folder(scratch).rename(scratch / LANDSAT)
    assert sample(scratch, "landsat-c2-l1.yaml", folder, LANDSAT, "landsat-c2-l1")["platform"] == "landsat-8"
    raster(scratch / f"{PLANET}.tif", numbers(4))
    shutil.copy(METADATA / f"{PLANET}_metadata.xml", scratch)
    assert sample(scratch, "planetscope-toa.yaml", scratch / f"{PLANET}.tif", PLANET, "planetscope-toa")["datetime"] == "2017-08-31T17:27:54Z"
    pan = "09DEC06145803-P1BS-052869858050_01_P002"
    raster(scratch / f"{pan}.tif", numbers(1))
    shutil.copy(METADATA / f"{pan}.IMD", scratch)
    assert sample(scratch, "vhr-pan.yaml", scratch / f"{pan}.tif", pan, "vhr-pan")["view:off_nadir"] == 14.4
    name = "S2A_29RKH_20200219_0_L2A"
    (scratch / name).mkdir()
    for file, path in pbtest.sentinel2_files("B04.tif", "B08.tif", "SCL.tif", f"{name}.json").items():
        shutil.copyfile(path, scratch / name / file)
    item = sample(scratch, "sentinel2-l2a.yaml", scratch / name, name, "sentinel2-l2a")
    assert item["pushbroom:processing_baseline"] == "02.14" and item["datetime"] == "2020-02-19T11:34:25.405Z", item


def columns(path, names, width, seed=5):
    """A table for these bands, its rows in random order; dark and gain of each band as float32."""
    source = np.random.default_rng(seed)
    dark, gain = source.uniform(50, 150, (len(names), width)).astype(np.float32), source.uniform(0.8, 1.2, (len(names), width)).astype(np.float32)
    rows = [f"{c},{name},{float(dark[b, c])!r},{float(gain[b, c])!r}" for b, name in enumerate(names) for c in range(width)]
    source.shuffle(rows)
    path.write_text("column,band,dark,gain\n" + "\n".join(rows) + "\n")
    return dark[:, None, :], gain[:, None, :]


WIDE = ["bands: {R: 1, N: 2}", "nodata: 0"]


def wide_scene(scratch):
    stored = np.random.default_rng(4).integers(0, 4096, (2, 300, 700)).astype(np.uint16)
    stored[:, 100:110, 200:220] = 0
    raster(scratch / "scene.tif", stored)
    return np.where(stored == 0, np.float32(np.nan), stored.astype(np.float32))


def test_columns_even_out_detectors(scratch):
    stored = wide_scene(scratch)
    dark, gain = columns(scratch / "tables.csv", ("R", "N"), 700)
    expected = (stored - dark) * gain
    for more in ("", "compute: {memory: 24MiB, device: cpu}"):  # narrow stripes
        path = config(scratch, WIDE, ["calibrate: {columns: tables.csv, bands: [R]}", "calibrate: {columns: tables.csv, bands: {C: N}}"], "R, C", "      - stac: {datetime: file-time}")
        path.write_text(more + "\n" + path.read_text())
        shutil.rmtree(scratch / "out", ignore_errors=True)
        result = run(scratch, scratch / "scene.tif")
        assert np.array_equal(made(scratch, "scene"), expected, equal_nan=True)
    told = {c["band"]: c for c in result["report"]["calibration"]}
    assert told["C"]["of"] == "N" and told["C"]["formula"] == "(DN - dark) * gain" and told["C"]["to"] == "columns", told
    assert "columns" in json.dumps(item_of(scratch)), item_of(scratch)


def test_columns_are_those_of_the_scene_after_a_crop(scratch):
    stored = wide_scene(scratch)
    dark, gain = columns(scratch / "tables.csv", ("R", "N"), 700)
    expected = ((stored - dark) * gain)[:, 20:270, 333:600]
    step, crop = "calibrate: {columns: tables.csv, bands: [R, N]}", "crop: {bounds: [%s, %s, %s, %s]}" % (500000 + 333 * 30, 4000000 - 270 * 30, 500000 + 600 * 30, 4000000 - 20 * 30)
    config(scratch, WIDE, [step, crop], "R, N")
    run(scratch, scratch / "scene.tif")
    assert np.array_equal(made(scratch, "scene"), expected, equal_nan=True)
    config(scratch, WIDE, [crop, step], "R, N")
    refused(scratch, scratch / "scene.tif", "pipeline.grid", "267 x 250 pixels, 700 x 300")


def test_columns_have_halos_of_later_steps(scratch):
    stored = wide_scene(scratch)
    dark, gain = columns(scratch / "tables.csv", ("R", "N"), 700)
    even = (stored - dark) * gain
    config(scratch, WIDE, ["calibrate: {columns: tables.csv, bands: [R, N]}", "median: {bands: {M: R}, size: 3}"], "M")
    run(scratch, scratch / "scene.tif")
    got = made(scratch, "scene")[0]
    block = np.stack([even[0, 1 + y:299 + y, 1 + x:699 + x] for y in (-1, 0, 1) for x in (-1, 0, 1)])
    whole = ~np.isnan(block).any(axis=0)
    assert np.array_equal(got[1:-1, 1:-1][whole], np.median(block, axis=0)[whole])


def test_columns_that_do_not_fit_are_refused(scratch):
    wide_scene(scratch)
    table = scratch / "tables.csv"
    config(scratch, WIDE, ["calibrate: {columns: tables.csv, bands: [R, N]}"], "R, N")
    refused(scratch, scratch / "scene.tif", "pipeline.table", "No such file")
    columns(table, ("R", "N"), 700)
    good = table.read_text().splitlines()
    for rows, code, words in ((good[1:], "pipeline.table", "the first line must be column,band,dark,gain"),
                              (good[:1] + ["0,R,1"] + good[2:], "pipeline.table", "four fields"),
                              (good[:1] + ["0,R,1,2,3"], "pipeline.table", "four fields"),
                              (good[:1] + ["0,R,1,x"], "pipeline.table", "'x' is not a number"),
                              (good[:1] + ["0,R,1,nan"], "pipeline.table", "'nan' is not a number"),
                              (good[:1] + ["-1,R,1,2"], "pipeline.table", "'-1' is not the number of a column"),
                              (good + good[5:6], "pipeline.table", "is there twice"),
                              (good[:-1], "pipeline.grid", "is missing: the scene has 700 columns, 0 to 699"),
                              (good + ["700,R,1,1"], "pipeline.grid", "column 700 of band R: the scene has 700 columns, 0 to 699"),
                              (good + ["900,OTHER,1,1"], None, "")):
        table.write_text("\n".join(rows) + "\n")
        if code is not None:
            refused(scratch, scratch / "scene.tif", code, words)
    run(scratch, scratch / "scene.tif")


def test_columns_leave_no_room_for_metadata(scratch):
    for keys in ("to: radiance", "sensor: landsat-c2", "as: {R: B4}"):
        path = config(scratch, WIDE, ["calibrate: {columns: tables.csv, bands: [R], %s}" % keys], "R")
        done = pbtest.run("pushbroom", "check-config", path, code=2)
        assert "columns: the table decides" in done.stderr + done.stdout, (keys, done)


def test_columns_are_read_by_the_service(scratch):
    """The process that computes may not open the table; its content is read before."""
    stored = wide_scene(scratch)
    dark, gain = columns(scratch / "tables.csv", ("R", "N"), 700)
    text = config(scratch, WIDE, [f"calibrate: {{columns: {scratch}/tables.csv, bands: [R, N]}}"], "R, N").read_text()
    with Daemon(fake=False, stall="300s") as d:
        d.set_pipelines(text)
        d.start()
        d.drop_copy(scratch / "scene.tif")
        job = d.wait_job("scene.tif", "successful")
        assert np.array_equal(read(d.root / "products/scene/p/scene.tif"), (stored - dark) * gain, equal_nan=True)
        d.wait_for(lambda: "R = columns of band R: (DN - dark) * gain" in d.log_text())


if __name__ == "__main__":
    pbtest.main()
