#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Every configuration of samples/ runs without changes on a scene of its kind. A sample that needs files of a family is tried
where the family is (ELSEWHERE); a sample that is in neither table fails."""
import json
import shutil

import numpy as np
from osgeo import gdal

import pbtest

gdal.UseExceptions()
SAMPLES = pbtest.SOURCE / "samples"
LANDSAT7 = pbtest.SOURCE / "tests/data/real/landsat7_L7_ETMs_6band.tif"  # blue, green, red, near infrared, ...
ELSEWHERE = {"hls": "test_deliveries", "landsat-c2-l1": "test_calibrate", "landsat-c2-l2": "test_scenes", "landsat-temperature": "test_transforms", "planetscope": "test_deliveries", "planetscope-4b": "test_deliveries", "planetscope-toa": "test_calibrate", "sentinel2-l1c": "test_deliveries",
             "sentinel1-grd": "test_sar", "sentinel1-flood": "test_terrain_correction", "sentinel2-l2a": "test_scenes", "sentinel2-mgrs": "test_scenes", "vhr-ortho": "test_relief",
             "vhr-pan": "test_calibrate"}
S2 = "S2A_MSIL2A_20220219T112111_N0{}_R037_T29RKH_20220219T123947"


def bands(path, n, values=None):
    """The real scene again as bands of UInt16, as many as the product has."""
    source = gdal.Open(str(LANDSAT7)).ReadAsArray().astype(np.uint16) * 30
    out = gdal.GetDriverByName("GTiff").CreateCopy(str(path), gdal.Translate("", str(LANDSAT7), format="MEM", bandList=[1] * n,
                                                                              outputType=gdal.GDT_UInt16))
    for i in range(n):
        out.GetRasterBand(i + 1).WriteArray(values[i] if values is not None else source[i % 6])
    return path


def landsat7(scratch):
    shutil.copyfile(LANDSAT7, scratch / "olinda.tif")
    return scratch / "olinda.tif"


def cloudfree(scratch):
    """Its classes are in a separate file, at half the resolution."""
    scl = np.full((176, 175), 4, np.uint8)
    scl[:88] = 9
    half = gdal.Translate("", str(LANDSAT7), format="MEM", bandList=[1], width=175, height=176)
    half.GetRasterBand(1).WriteArray(scl)
    gdal.GetDriverByName("GTiff").CreateCopy(str(scratch / "olinda_SCL.tif"), half)
    return landsat7(scratch)


def composite(scratch):
    (scratch / "dates").mkdir()
    for path, clear in (("a.tif", 4), ("dates/a_2.tif", 5), ("dates/a_3.tif", 9)):
        bands(scratch / path, 5, [np.full((352, 349), 700)] * 4 + [np.full((352, 349), clear)])
    return scratch / "a.tif"


def elevations(scratch):
    """A cone of 600 m on a plain, in pixels of 30 m."""
    y, x = np.mgrid[0:352, 0:349]
    dem = gdal.GetDriverByName("GTiff").Create(str(scratch / "dem.tif"), 349, 352, 1, gdal.GDT_Float32)
    dem.SetGeoTransform([600000, 30, 0, 4100000, 0, -30])
    dem.SetProjection("EPSG:32632")
    dem.GetRasterBand(1).WriteArray(np.maximum(0, 600 - 6 * np.hypot(x - 170, y - 180)).astype(np.float32))
    dem = None
    return scratch / "dem.tif"


def fields(scratch):
    """Fields of the samples, next to the configuration; returns their scene."""
    shutil.copyfile(SAMPLES / "fields.geojson", scratch / "fields.geojson")
    return landsat7(scratch)


def vhr_pansharpen(scratch):
    """A bundle of 1 to 4: the panchromatic file is the mean of the bands, larger, with detail of its own."""
    name = "09DEC06145803-{}2AS-052869858050_01_P002.TIF"
    multispectral = gdal.Open(str(bands(scratch / name.format("M"), 4)))
    wide = gdal.Translate("", multispectral, format="MEM", width=4 * multispectral.RasterXSize, height=4 * multispectral.RasterYSize, resampleAlg="cubic")
    pan = gdal.Translate("", wide, format="MEM", bandList=[1])
    detail = 1 + 0.2 * np.random.default_rng(1).random((wide.RasterYSize, wide.RasterXSize))
    pan.GetRasterBand(1).WriteArray((wide.ReadAsArray().mean(0) * detail).astype(np.uint16))
    gdal.GetDriverByName("GTiff").CreateCopy(str(scratch / name.format("P")), pan)
    return scratch / name.format("M")


def burn_severity(scratch):
    """The left half burned: less near infrared, more short-wave infrared."""
    pixels = np.stack([np.full((352, 349), v) for v in (300, 400, 500, 3000, 1500, 1000)])
    bands(scratch / "a_20250601.tif", 6, pixels)
    pixels[3, :, :170], pixels[5, :, :170] = 1000, 2000
    return bands(scratch / "a_20250905.tif", 6, pixels)


def ndvi_month(scratch, days=(4, 9, 14, 24)):
    """Reflectances 0.1 of red, 0.5, 0.4 and 0.7 of near infrared, and a day of clouds; another month is in the same folder."""
    seen = {4: (6000, 4), 9: (5000, 5), 14: (9000, 9), 24: (8000, 4)}
    for day in days:
        bands(scratch / f"T31UFS_202606{day:02}T105031.tif", 3, [np.full((352, 349), v) for v in (2000, *seen[day])])
    bands(scratch / "T31UFS_20260704T105031.tif", 3)
    return scratch / f"T31UFS_202606{days[-1]:02}T105031.tif"


def least_cloudy(scratch, clouds={4: 30, 9: 1.5, 14: 80, 19: 60, 24: 99}):
    """The day in each pixel, clouds over the columns below 10 times the day, and the same cover in the items."""
    for day, cover in clouds.items():
        pixels = np.stack([np.full((352, 349), v) for v in (day, day + 100, day + 200, 4)])
        pixels[3, :, :10 * day] = 9
        scene = bands(scratch / f"T31UFS_202606{day:02}.tif", 4, pixels)
        scene.with_suffix(".json").write_text(json.dumps({"type": "Feature", "stac_version": "1.1.0", "id": scene.stem, "properties": {
            "datetime": f"2026-06-{day:02}T10:50:31Z", "eo:cloud_cover": cover}}))
    return scene


# sample: the maker of its scene, and the products, one a kind and name
SINGLE = {
    "burn-severity": (burn_severity, ["cog", "cog", "quicklook", "statistics"]),
    "cloudfree": (cloudfree, ["cog", "quicklook", "statistics"]),
    "composite": (composite, ["cog", "quicklook"]),
    "edges": (landsat7, ["cog", "quicklook"]),
    "fields": (fields, ["zones", "zones", "quicklook", "stac"]),
    "landcover": (landsat7, ["cog", "statistics", "stac"]),
    "landsat8": (lambda s: bands(s / "LC08_L2SP_016037_20170813_20200903_02_T1.tif", 7),
                 ["cog", "cog", "quicklook", "statistics", "stac"]),
    "least-cloudy": (least_cloudy, ["cog", "quicklook", "stac"]),
    "ndvi-month": (ndvi_month, ["cog", "cog", "quicklook"]),
    "pictures": (landsat7, ["cog", "cog", "quicklook", "quicklook", "stac"]),
    "sentinel2": (lambda s: bands(s / (S2.format("400") + ".tif"), 12), ["cog", "quicklook", "quicklook", "statistics", "stac"]),
    "terrain": (elevations, ["cog", "cog", "cog", "quicklook", "quicklook", "quicklook", "statistics"]),
    "vegetation": (landsat7, ["cog", "quicklook", "statistics"]),
    "vhr-pansharpen": (vhr_pansharpen, ["cog", "quicklook"]),
    "watermask": (landsat7, ["cog", "statistics"]),
}


def test_every_sample_is_tried(_):
    assert {p.stem for p in SAMPLES.glob("*.yaml")} == set(SINGLE) | set(ELSEWHERE)
    for sample, test in ELSEWHERE.items():
        assert sample in (pbtest.SOURCE / f"tests/integration/{test}.py").read_text(), sample


def of_sample(scratch, name):
    """Copy of the sample, next to the files that it names."""
    return shutil.copyfile(SAMPLES / f"{name}.yaml", scratch / f"{name}.yaml")


def run_sample(scratch, name, *more):
    make, kinds = SINGLE[name]
    config, scene = of_sample(scratch, name), make(scratch)
    planned, = pbtest.run_json("pushbroom", "run", "--dry-run", "--json", *more, "-c", config, "-o", scratch / "out", scene)
    done, = pbtest.run_json("pushbroom", "run", "--json", *more, "-c", config, "-o", scratch / "out", scene)
    assert [p["type"] for p in done["products"]] == kinds == [p["type"] for p in planned["plan"]["products"]], done
    made = [pbtest.pathlib.Path(p["path"]) for p in done["products"]]
    assert [p.name for p in made] == [p["file"] for p in planned["plan"]["products"]], planned
    assert str(made[0].parent) == planned["plan"]["directory"], planned
    for path, product in zip(made, planned["plan"]["products"]):
        if path.suffix in (".tif", ".png"):
            image = gdal.Open(str(path))
            assert (image.RasterXSize, image.RasterYSize) == (product["width"], product["height"]), product
        if product["type"] == "cog":
            nodata, told = image.GetRasterBand(1).GetNoDataValue(), product.get("nodata")
            assert str(nodata) == "nan" if told == "nan" else nodata == told, (nodata, product)
            kind = {"float32": "Float32", "uint8": "Byte", "int16": "Int16", "uint16": "UInt16"}[product["data_type"]]
            assert gdal.GetDataTypeName(image.GetRasterBand(1).DataType) == kind, product
    return made, planned["plan"]


def share_valid(path, band=1):
    image = gdal.Open(str(path))
    return (image.GetRasterBand(band).GetMaskBand().ReadAsArray() > 0).mean()


@pbtest.not_about_memory
def test_samples_of_single_files_run_as_planned(scratch):
    for name in SINGLE:
        if name not in ("burn-severity", "cloudfree", "composite", "fields", "least-cloudy", "ndvi-month", "vhr-pansharpen"):
            (scratch / name).mkdir()
            made, _ = run_sample(scratch / name, name)
            assert share_valid(made[0]) > 0.2, name


def test_clouds_of_a_file_beside(scratch):
    made, plan = run_sample(scratch, "cloudfree")
    assert [f["name"] for f in plan["files"]] == ["olinda.tif", "olinda_SCL.tif"], plan["files"]
    assert 0.4 < share_valid(made[0]) < 0.5, "half of it lies under clouds, and 20 m around them"


def test_numbers_of_each_field(scratch):
    made, _ = run_sample(scratch, "fields")
    shown = [f["properties"] for f in json.loads(made[0].read_text())["features"]]
    assert [f["parcel"] for f in shown] == ["A1", "A2", "B1", "C1"]
    cover = [line.split(",") for line in made[1].read_text().splitlines()]
    assert cover[0] == ["parcel", "COVER", "COVER_name", "pixels", "cut", "area_m2", "area_ha"], cover[0]
    for field in shown:
        assert -1 <= field["NDVI_p5"] <= field["NDVI_median"] <= field["NDVI_p95"] <= 1 and field["NDVI_valid_percent"] == 100, field
        own = [row for row in cover if row[0] == field["parcel"]]
        assert sum(int(row[3]) for row in own) == field["pixels"] > 500 and {row[2] for row in own} <= {"bare", "sparse", "green"}, own
        assert abs(field["area_m2"] - field["pixels"] * 28.5 ** 2) < 1, field
    assert shown[1]["NDVI_median"] > 0.1 > shown[2]["NDVI_median"], "woods are greener than a town"
    assert share_valid(made[2]) == 1


def test_file_without_a_group_gets_the_list_of_groups(scratch):
    scene = landsat7(scratch)
    done, = pbtest.run_json("pushbroom", "run", "--json", "-c", SAMPLES / "burn-severity.yaml", "-o", scratch / "out", scene, code=1)
    assert r"burn-severity takes by input.group (?<place>.+)_(?<date>\d{8})\.tiff?" in done["error"]["message"], done


def test_the_median_of_three_dates(scratch):
    made, _ = run_sample(scratch, "composite")
    assert (gdal.Open(str(made[0])).ReadAsArray() == 700).all(), "two of three are clear"


def test_the_median_of_the_clear_days_of_a_month(scratch):
    """Made of all files so far; one that joins replaces the product."""
    values = lambda made: [int(np.unique(gdal.Open(str(path)).ReadAsArray()).item()) for path in made[:2]]
    ndvi_month(scratch, (9, 14))
    config, scene = SAMPLES / "ndvi-month.yaml", scratch / "T31UFS_20260609T105031.tif"
    done, = pbtest.run_json("pushbroom", "run", "--json", "-c", config, "-o", scratch / "out", scene)
    first = [pbtest.pathlib.Path(p["path"]) for p in done["products"]]
    assert first[0].name == "T31UFS_202606.ndvi.tif" and values(first) == [6000, 1], done
    made, plan = run_sample(scratch, "ndvi-month")
    assert made == first and values(made) == [6667, 3]
    assert [f["name"] for f in plan["files"]] == [f"T31UFS_202606{day:02}T105031.tif" for day in (4, 9, 14, 24)], plan["files"]
    assert [b["band"] for b in plan["absent"]] == ["R_5", "N_5", "SCL_5", "R_6", "N_6", "SCL_6"] and plan["not_used"] == [], plan
    shown = pbtest.run("pushbroom", "run", "--dry-run", "--existing", "replace", "-c", config, "-o", scratch / "out", scene).stdout
    assert plan["order"]["by"] == "date" and not plan["order"]["descending"], plan["order"]
    assert [(f["nth"], f["date"]) for f in plan["order"]["files"]] == [(n + 1, f"202606{day:02}") for n, day in enumerate((4, 9, 14, 24))], plan["order"]
    assert "order      1 20260604, 2 20260609, 3 20260614, 4 20260624: by (?<date>...) of the names (input.order)" in " ".join(shown.split("\n    ")).replace("             ", ""), shown
    assert "not there  R_5, N_5, SCL_5, R_6, N_6, SCL_6: the scene lacks" in shown and "20260704" not in shown, shown
    for day in ("04", "09", "14"): # a composite of more is not replaced by one of the last file alone
        (scratch / f"T31UFS_202606{day}T105031.tif").unlink()
    last = scratch / "T31UFS_20260624T105031.tif"
    refused, = pbtest.run_json("pushbroom", "run", "--json", "-c", config, "-o", scratch / "out", last, code=1)
    assert refused["error"]["code"] == "output.exists", refused
    assert "holds products of 4 files, and this input lacks 'T31UFS_20260604T105031.tif' of them; bring all of them together" in refused["error"]["message"], refused
    assert values(made) == [6667, 3]


def test_the_clearest_days_of_a_month(scratch):
    """The day with 99 % clouds is a fifth one; under the clouds of the clearest day the next one is seen."""
    made, plan = run_sample(scratch, "least-cloudy")
    picture = gdal.Open(str(made[0])).ReadAsArray()
    assert (picture[0, :, 90:] == 9).all() and (picture[2, :, 40:90] == 204).all() and (picture[:, :, :40] == 0).all()
    assert [(f["file"][13:15], f["used"]) for f in plan["order"]["files"]] == [("09", True), ("04", True), ("19", True), ("14", True), ("24", False)]
    item = json.loads(made[2].read_text())["properties"]
    assert (item["start_datetime"], item["end_datetime"]) == ("2026-06-04T10:50:31Z", "2026-06-19T10:50:31Z"), item


def test_where_it_burned(scratch):
    """The burn ratio falls from 0.5 to -1/3."""
    made, _ = run_sample(scratch, "burn-severity")
    dnbr, severity = (gdal.Open(str(path)).ReadAsArray() for path in made[:2])
    assert np.allclose(dnbr[:, :170], 0.5 + 1 / 3) and (severity[:, :170] == 7).all()
    assert (dnbr[:, 170:] == 0).all() and (severity[:, 170:] == 3).all()


@pbtest.not_about_memory
def test_pansharpen_has_pan_pixels_at_level_of_bands(scratch):
    made, plan = run_sample(scratch, "vhr-pansharpen")
    sharp, coarse = gdal.Open(str(made[0])), gdal.Open(str(scratch / "09DEC06145803-M2AS-052869858050_01_P002.TIF"))
    assert (sharp.RasterXSize, sharp.RasterYSize) == (4 * coarse.RasterXSize, 4 * coarse.RasterYSize)
    for band in (1, 4):
        ours, level = sharp.GetRasterBand(band).ReadAsArray().astype(float), coarse.GetRasterBand(band).ReadAsArray()
        assert abs(ours.mean() / level.mean() - 1) < 0.02, "the level stays"
        assert np.abs(np.diff(ours, axis=1)).mean() > 2 * np.abs(np.diff(np.kron(level, np.ones((4, 4))), axis=1)).mean(), "detail comes"


def test_baseline_chooses_the_sentinel2_pipeline(scratch):
    for baseline, pipeline in (("400", "sentinel2"), ("510", "sentinel2"), ("301", "sentinel2-before-0400")):
        scene = bands(scratch / (S2.format(baseline) + ".tif"), 12)
        planned, = pbtest.run_json("pushbroom", "run", "--dry-run", "--json", "-c", SAMPLES / "sentinel2.yaml", scene)
        stac = planned["plan"]["products"][-1]
        assert planned["pipeline"] == pipeline and stac["datetime"] == "2022-02-19T11:21:11Z", planned
    (scratch / "S2A_MSIL2A_stack.tif").write_bytes(scene.read_bytes())
    done = pbtest.run("pushbroom", "run", "--json", "-c", SAMPLES / "sentinel2.yaml", scratch / "S2A_MSIL2A_stack.tif", code=1)
    assert json.loads(done.stdout)["error"]["code"] == "input.no_pipeline", done.stdout


if __name__ == "__main__":
    pbtest.main()
