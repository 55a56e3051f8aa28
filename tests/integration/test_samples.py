#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Every configuration of samples/ runs as it stands on a scene of its kind. What needs files of a family is tried where the
family is (ELSEWHERE); a sample that is in neither table fails."""
import json
import shutil

import numpy as np
from osgeo import gdal

import pbtest

gdal.UseExceptions()
SAMPLES = pbtest.SOURCE / "samples"
LANDSAT7 = pbtest.SOURCE / "tests/data/real/landsat7_L7_ETMs_6band.tif"  # blue, green, red, near infrared, ...
ELSEWHERE = {"landsat-c2-l1-toa": "test_calibrate", "landsat-c2-l2": "test_scenes", "landsat-temperature": "test_transforms", "planetscope": "test_calibrate",
             "sentinel1-grd": "test_sar", "sentinel1-flood": "test_sar", "sentinel2-l2a": "test_scenes", "vhr-pan": "test_calibrate"}
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
    """Its classes lie in a directory beside, at half the resolution."""
    (scratch / "scl").mkdir()
    scl = np.full((176, 175), 4, np.uint8)
    scl[:88] = 9
    half = gdal.Translate("", str(LANDSAT7), format="MEM", bandList=[1], width=175, height=176)
    half.GetRasterBand(1).WriteArray(scl)
    gdal.GetDriverByName("GTiff").CreateCopy(str(scratch / "scl/olinda_SCL.tif"), half)
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
    """Two fields in longitude and latitude."""
    def field(parcel, west, south, east, north):
        ring = [[west, south], [east, south], [east, north], [west, north], [west, south]]
        return {"type": "Feature", "properties": {"parcel": parcel}, "geometry": {"type": "Polygon", "coordinates": [ring]}}
    (scratch / "fields.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": [
        field("north", -34.90, -8.00, -34.88, -7.98), field("south", -34.91, -8.05, -34.89, -8.02)]}))
    return landsat7(scratch)


# sample: what makes its scene, and the products, one a kind and name
SINGLE = {
    "cloudfree": (cloudfree, ["cog", "quicklook", "statistics"]),
    "composite": (composite, ["cog", "quicklook"]),
    "edges": (landsat7, ["cog", "quicklook"]),
    "fields": (fields, ["zones", "zones", "quicklook", "stac"]),
    "landcover": (landsat7, ["cog", "statistics", "stac"]),
    "landsat8": (lambda s: bands(s / "LC08_L2SP_016037_20170813_20200903_02_T1.tif", 7),
                 ["cog", "cog", "quicklook", "statistics", "stac"]),
    "pictures": (landsat7, ["cog", "cog", "quicklook", "quicklook", "stac"]),
    "sentinel2": (lambda s: bands(s / (S2.format("400") + ".tif"), 12), ["cog", "quicklook", "quicklook", "statistics", "stac"]),
    "terrain": (elevations, ["cog", "cog", "cog", "quicklook", "quicklook", "quicklook", "statistics"]),
    "vegetation": (landsat7, ["cog", "quicklook", "statistics", "stac"]),
    "watermask": (landsat7, ["cog", "statistics"]),
}


def test_every_sample_is_tried(_):
    assert {p.stem for p in SAMPLES.glob("*.yaml")} == set(SINGLE) | set(ELSEWHERE)
    for sample, test in ELSEWHERE.items():
        assert sample in (pbtest.SOURCE / f"tests/integration/{test}.py").read_text(), sample


def of_sample(scratch, name):
    """/data stands for where the sample's files lie."""
    path = scratch / f"{name}.yaml"
    path.write_text((SAMPLES / f"{name}.yaml").read_text().replace("/data/", f"{scratch}/"))
    return path


def run_sample(scratch, name):
    make, kinds = SINGLE[name]
    config, scene = of_sample(scratch, name), make(scratch)
    planned, = pbtest.run_json("pushbroom", "run", "--dry-run", "--json", "-c", config, "-o", scratch / "out", scene)
    done, = pbtest.run_json("pushbroom", "run", "--json", "-c", config, "-o", scratch / "out", scene)
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


def test_samples_of_single_files_run_and_the_plan_says_what_comes(scratch):
    for name in SINGLE:
        if name not in ("cloudfree", "composite", "fields"):
            (scratch / name).mkdir()
            made, _ = run_sample(scratch / name, name)
            assert share_valid(made[0]) > 0.2, name


def test_clouds_of_a_file_beside(scratch):
    made, plan = run_sample(scratch, "cloudfree")
    assert [f["name"] for f in plan["files"]] == ["olinda.tif", f"{scratch}/scl/olinda_SCL.tif"], plan["files"]
    assert 0.4 < share_valid(made[0]) < 0.5, "half of it lies under clouds, and 20 m around them"


def test_numbers_of_each_field(scratch):
    made, _ = run_sample(scratch, "fields")
    shown = [f["properties"] for f in json.loads(made[0].read_text())["features"]]
    assert [f["parcel"] for f in shown] == ["north", "south"]
    cover = [line.split(",") for line in made[1].read_text().splitlines()]
    assert cover[0] == ["parcel", "COVER", "COVER_name", "pixels", "area_m2", "area_ha"], cover[0]
    for field in shown:
        assert -1 <= field["NDVI_p5"] <= field["NDVI_median"] <= field["NDVI_p95"] <= 1 and field["NDVI_valid_percent"] == 100, field
        own = [row for row in cover if row[0] == field["parcel"]]
        assert sum(int(row[3]) for row in own) == field["pixels"] > 3000 and {row[2] for row in own} <= {"water", "bare", "green"}, own
        assert abs(field["area_m2"] - field["pixels"] * 28.5 ** 2) < 1, field
    assert share_valid(made[2]) == 1


def test_the_median_of_three_dates(scratch):
    made, _ = run_sample(scratch, "composite")
    assert (gdal.Open(str(made[0])).ReadAsArray() == 700).all(), "two of three are clear"


def test_the_baseline_chooses_the_pipeline_of_sentinel2(scratch):
    for baseline, pipeline in (("400", "sentinel2"), ("510", "sentinel2"), ("301", "sentinel2-before-0400")):
        scene = bands(scratch / (S2.format(baseline) + ".tif"), 12)
        planned, = pbtest.run_json("pushbroom", "run", "--dry-run", "--json", "-c", SAMPLES / "sentinel2.yaml", scene)
        stac = planned["plan"]["products"][-1]
        assert planned["pipeline"] == pipeline and stac["datetime"] == "2022-02-19T11:21:11Z", planned
    (scratch / "S2A_MSIL2A_stack.tif").write_bytes(scene.read_bytes())
    done = pbtest.run("pushbroom", "run", "--json", "-c", SAMPLES / "sentinel2.yaml", scratch / "S2A_MSIL2A_stack.tif", code=1)
    assert json.loads(done.stdout)["error"]["code"] == "input.no_pipeline", done.stdout


if __name__ == "__main__":
    pbtest.main(globals())
