# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Inputs of the golden plans and products: for each sample and each pipeline of features.py a function that makes its files in a
folder, and returns the input of `pushbroom run`. `make` writes an image: Sparse for plans, Pixels (make_scene) for products; `n` is
the side of the largest grid. Needs Python alone: a host with a GPU has neither GDAL nor numpy."""
import json
import pathlib
import re
import shutil
import subprocess

import sparse_tiff

ROOT = pathlib.Path(__file__).resolve().parents[2]
METADATA = ROOT / "tests/data/metadata"
REAL = ROOT / "tests/data/real"


class Sparse:
    """Headers alone, of any size."""

    def __call__(self, path, width, height, bands=1, kind="uint16", seed=1, look="fields", collar=False, clouds=None, **layout):
        return sparse_tiff.write(path, width, height, bands, kind, **layout)


class Pixels:
    """Images of make_scene; small ones are not compressed, because the bytes of a codec depend on its library."""

    KINDS = {"uint8": "Byte", "uint16": "UInt16", "int16": "Int16", "uint32": "UInt32", "int32": "Int32", "float32": "Float32", "float64": "Float64"}

    def __init__(self, program):
        self.program = program

    def __call__(self, path, width, height, bands=1, kind="uint16", seed=1, look="fields", collar=False, clouds=None, *, block=512, strips=0,
                 codec="none", planar=False, epsg=32632, corner=(600000, 5900040), pixel=10, **_):
        path.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([self.program, "--size", f"{width}x{height}", "--bands", str(bands), "--type", self.KINDS[kind], "--compress", codec.upper(),
                        "--interleave", "BAND" if planar else "PIXEL", "--block", str(strips or min(block, 256)), "--seed", str(seed), "--kind", look, "--epsg", str(epsg),
                        "--pixel", str(pixel), "--corner", f"{corner[0]},{corner[1]}", *(["--strips"] if strips else []), *(["--collar"] if collar else []),
                        *(["--clouds", str(clouds)] if clouds is not None else []), path], check=True)
        return path


# --- samples --------------------------------------------------------------------------------------

def burn_severity(folder, make, n):
    make(folder / "a_20250601.tif", n, n, 6, predictor=2, seed=1)
    return make(folder / "a_20250905.tif", n, n, 6, predictor=2, seed=2)


def cloudfree(folder, make, n):
    make(folder / "s_SCL.tif", n // 2, n // 2, 1, "uint8", pixel=20, clouds=0.3)
    return make(folder / "s.tif", n, n, 4)


def composite(folder, make, n):
    for number, path in enumerate(("s.tif", "dates/s_2.tif", "dates/s_3.tif")):
        make(folder / path, n, n, 5, planar=True, seed=number + 1, clouds=0.3)
    return folder / "s.tif"


def edges(folder, make, n):
    return make(folder / "s.tif", n, n // 2 + 3, 3, "uint8", strips=16, codec="lzw" if isinstance(make, Sparse) else "none")


def fields(folder, make, n):
    """Where the fields of the sample are."""
    shutil.copyfile(ROOT / "samples/fields.geojson", folder / "fields.geojson")
    return make(folder / "s.tif", n, n, 4, "uint8", epsg=32725, corner=(288776, 9120761), pixel=28.5)


def hls(folder, make, n):
    granule = "HLS.S30.T32UNE.2022102T183929.v2.0"
    for number, band in enumerate(("B04", "B8A")):
        make(folder / f"{granule}.{band}.tif", n, n, 1, "int16", pixel=30, block=256, seed=number + 1)
    make(folder / f"{granule}.Fmask.tif", n, n, 1, "uint8", pixel=30, block=256, clouds=0.2)
    return folder / f"{granule}.B04.tif"


def landcover(folder, make, n):
    return make(folder / "s.tif", n, n, 4, planar=True, codec="zstd" if isinstance(make, Sparse) else "none", look="coast")


LANDSAT_1 = "LC08_L1TP_016037_20170813_20170814_01_RT"
LANDSAT_2 = "LC08_L2SP_001062_20201031_20201106_02_T2"


def landsat_level_1(folder, make, n):
    shutil.copyfile(REAL / f"landsat8_c1_016037/{LANDSAT_1}_MTL.txt", folder / f"{LANDSAT_1}_MTL.txt")
    for number, band in enumerate(("B4", "B5", "B10", "BQA")):
        make(folder / f"{LANDSAT_1}_{band}.TIF", n, n, 1, block=256, pixel=30, seed=number + 1)
    return folder / f"{LANDSAT_1}_B4.TIF"


def landsat_level_2(folder, make, n):
    shutil.copyfile(METADATA / f"{LANDSAT_2}_MTL.txt", folder / f"{LANDSAT_2}_MTL.txt")
    for number, band in enumerate(("SR_B4", "SR_B5", "ST_B10", "QA_PIXEL")):
        make(folder / f"{LANDSAT_2}_{band}.TIF", n, n, 1, block=256, pixel=30, seed=number + 1, look="coast")
    return folder / f"{LANDSAT_2}_SR_B4.TIF"


def landsat_folder(folder, make, n):
    inner = folder / LANDSAT_2
    inner.mkdir()
    landsat_level_2(inner, make, n)
    return inner


def landsat8(folder, make, n):
    return make(folder / "LC08_L2SP_016037_20170813_20200903_02_T1.tif", n, n, 7, pixel=30, predictor=2)


def least_cloudy(folder, make, n):
    for day, cover in ((4, 30), (9, 1.5), (14, 80)):
        scene = make(folder / f"T31UFS_202606{day:02}.tif", n, n, 4, seed=day, clouds=cover / 100)
        scene.with_suffix(".json").write_text(json.dumps({"type": "Feature", "stac_version": "1.1.0", "id": scene.stem, "properties": {
            "datetime": f"2026-06-{day:02}T10:50:31Z", "eo:cloud_cover": cover}}))
    return folder / "T31UFS_20260604.tif"


def ndvi_month(folder, make, n):
    for day in (4, 9, 14, 24):
        make(folder / f"T31UFS_202606{day:02}T105031.tif", n, n, 3, planar=True, seed=day, clouds=0.2)
    return folder / "T31UFS_20260624T105031.tif"


def pictures(folder, make, n):
    return make(folder / "s.tif", n, n, 4, collar=True)


def planet_xml(item, bands):
    """The real document of 4 bands, also as one of 8."""
    text = (METADATA / "20170831_172754_101c_3B_AnalyticMS_metadata.xml").read_text()
    if bands == 8:
        first = re.search(r"[ \t]*<ps:bandSpecificMetadata>.*?</ps:bandSpecificMetadata>\s*", text, re.S)
        last = list(re.finditer(r"</ps:bandSpecificMetadata>\s*", text))[-1]
        text = text[:first.start()] + "".join(first[0].replace("<ps:bandNumber>1<", f"<ps:bandNumber>{n}<") for n in range(1, 9)) + text[last.end():]
    return text.replace("20170831_172754_101c_3B_AnalyticMS", f"{item}_3B_AnalyticMS{'_8b' if bands == 8 else ''}").replace("20170831_172754_101c", item)


PLANET = "20230809_020729_42_24c9"


def planetscope(folder, make, n, bands=8):
    eight = "_8b" if bands == 8 else ""
    scene = make(folder / f"{PLANET}_3B_AnalyticMS_SR{eight}.tif", n, n, bands, pixel=3, block=256)
    make(folder / f"{PLANET}_3B_udm2.tif", n, n, 8, "uint8", pixel=3, block=256, clouds=0.2)
    (folder / f"{PLANET}_3B_AnalyticMS{eight}_metadata.xml").write_text(planet_xml(PLANET, bands))
    return scene


def planetscope_4b(folder, make, n):
    return planetscope(folder, make, n, 4)


def planetscope_toa(folder, make, n):
    (folder / f"{PLANET}_3B_AnalyticMS_metadata.xml").write_text(planet_xml(PLANET, 4))
    return make(folder / f"{PLANET}_3B_AnalyticMS.tif", n, n, 4, pixel=3, strips=1, codec="none")


RADAR = "S1A_IW_GRDH_1SDV_20230809T020729_20230809T020754_049792_05FCE6_1175"
HEADER = ("<adsHeader><missionId>S1A</missionId><productType>GRD</productType><polarisation>{}</polarisation><mode>IW</mode>"
          "<startTime>2023-08-09T02:07:29.5</startTime><absoluteOrbitNumber>49792</absoluteOrbitNumber></adsHeader>")


def radar_vectors(kind, name, n, numbers):
    at = [0, n // 2, n - 1]
    table = "".join(f'<{k} count="3">{" ".join(str(v) for v in values)}</{k}>' for k, values in numbers.items())
    text = "".join(f'<{name}><azimuthTime>2023-08-09T02:07:29.5</azimuthTime><line>{line}</line><pixel count="3">{" ".join(map(str, at))}</pixel>{table}</{name}>' for line in at)
    return f'<{kind} count="3">{text}</{kind}>'


def radar(folder, make, n, bands=("vv", "vh"), annotation=None):
    """A SAFE folder with three places in each table."""
    safe = folder / f"{RADAR}.SAFE"
    (safe / "annotation/calibration").mkdir(parents=True)
    for number, p in enumerate(bands):
        stem = f"s1a-iw-grd-{p}-20230809t020729-20230809t020754-049792-05fce6-00{number + 1}"
        make(safe / f"measurement/{stem}.tiff", n, n, 1, seed=number + 1, epsg=0 if isinstance(make, Sparse) else 32633, strips=1, codec="none")
        header = HEADER.format(p.upper())
        (safe / f"annotation/{stem}.xml").write_text(annotation or (
            f"<product>{header}<generalAnnotation><productInformation><pass>Descending</pass><radarFrequency>5.405000454334350e+09</radarFrequency></productInformation></generalAnnotation>"
            f"<imageAnnotation><imageInformation><rangePixelSpacing>10.0</rangePixelSpacing><azimuthPixelSpacing>10.0</azimuthPixelSpacing><numberOfSamples>{n}</numberOfSamples>"
            f"<numberOfLines>{n}</numberOfLines><incidenceAngleMidSwath>38.5</incidenceAngleMidSwath></imageInformation><processingInformation>"
            f"<thermalNoiseCorrectionPerformed>false</thermalNoiseCorrectionPerformed></processingInformation></imageAnnotation></product>"))
        tables = {"calibration": radar_vectors("calibrationVectorList", "calibrationVector", n, {k: (400.5, 410.25, 395.75) for k in ("sigmaNought", "betaNought", "gamma")}),
                  "noise": radar_vectors("noiseRangeVectorList", "noiseRangeVector", n, {"noiseRangeLut": (900.5, 700.25, 800.75)})}
        for kind, text in tables.items():
            (safe / f"annotation/calibration/{kind}-{stem}.xml").write_text(f'<?xml version="1.0" encoding="UTF-8"?><{kind}>{header}{text}</{kind}>')
    return safe


def sentinel1_flood(folder, make, n):
    """The first lines of a real image, on ground of the height 0."""
    text = re.sub("<adsHeader>.*</adsHeader>", HEADER.format("VV"), (METADATA / "s1b-iw-grd-vv-geometry.xml").read_text(), flags=re.S)
    for name in ("numberOfSamples", "numberOfLines"):
        text = re.sub(f"<{name}>[^<]*<", f"<{name}>{n}<", text)
    points = "".join(f"<geolocationGridPoint><line>{y}</line><pixel>{x}</pixel><height>0</height></geolocationGridPoint>" for y in (0, n - 1) for x in (0, n - 1))
    text = re.sub("(<geolocationGridPointList[^>]*>).*(</geolocationGridPointList>)", rf"\1{points}\2", text, flags=re.S)
    sparse_tiff.write(folder / "dem.tif", 1200, 1000, 1, "float32", codec="none", epsg=4326, corner=(10, 50), pixel=0.005)
    return radar(folder, make, n, ("vv",), text)


SAFE_1 = "S2A_MSIL1C_20200219T112111_N0301_R037_T29RKH_20200219T123947"
SAFE_2 = "S2B_MSIL2A_20220219T112111_N0400_R037_T29RKH_20220219T123947"


def sentinel2(folder, make, n, scene, metadata, bands):
    safe = folder / f"{scene}.SAFE"
    tile, sensed = scene.split("_")[5], scene.split("_")[2]
    for number, (band, pixel) in enumerate(bands.items()):
        name = f"{tile}_{sensed}_{band}.tif" if "L1C" in scene else f"{tile}_{sensed}_{band}_{pixel}m.tif"
        make(safe / f"GRANULE/IMG_DATA/{name}", n * 10 // pixel, n * 10 // pixel, 1, "uint8" if band == "SCL" else "uint16", block=1024, seed=number + 1,
             epsg=32629, corner=(199980, 2800020), pixel=pixel, clouds=0.2 if band == "SCL" else None)
    text = re.sub(r"_T\d\d[A-Z]{3}_", f"_{tile}_", (METADATA / metadata).read_text())
    (safe / f"MTD_MSI{scene[7:10]}.xml").write_text(text)
    return safe


def sentinel2_l1c(folder, make, n):
    return sentinel2(folder, make, n, SAFE_1, "S2A_N0301_MTD_MSIL1C.xml", {"B02": 10, "B03": 10, "B04": 10, "B08": 10})


def sentinel2_l2a(folder, make, n):
    return sentinel2(folder, make, n, SAFE_2, "S2B_N0400_MTD_MSIL2A.xml", {"B02": 10, "B03": 10, "B04": 10, "B08": 10, "SCL": 20})


def sentinel2_stack(folder, make, n):
    return make(folder / "S2A_MSIL2A_20220219T112111_N0400_R037_T29RKH_20220219T123947.tif", n, n, 12, planar=True, predictor=2)


def terrain(folder, make, n):
    return make(folder / "s.tif", n, n, 1, "float32", look="relief", pixel=30, predictor=3)


def four_bands(folder, make, n):
    return make(folder / "s.tif", n, n, 4, predictor=2)


def with_columns(folder, make, n):
    """A scene, and a table of dark signal and gain for each column of two of its bands."""
    rows = [f"{column},{band},{90 + (7 * column + 3 * i) % 17 / 4},{1e-4 * (1 + (column + i) % 11 / 64)}" for i, band in enumerate("RN") for column in range(n)]
    (folder / "detectors.csv").write_text("\n".join(["column,band,dark,gain", *rows]) + "\n")
    return make(folder / "s.tif", n, n, 4, predictor=2)


VHR = "09DEC06145803-{}-052869858050_01_P002.TIF"


def vhr_pan(folder, make, n):
    shutil.copyfile(METADATA / "09DEC06145803-P1BS-052869858050_01_P002.IMD", folder / "09DEC06145803-P1BS-052869858050_01_P002.IMD")
    return make(folder / VHR.format("P1BS").replace("TIF", "tif"), n, n, 1, epsg=0 if isinstance(make, Sparse) else 32755, pixel=0.5)


# Biases, offsets and scales of line, column, latitude, longitude and height, then four polynomials.
RPC = [-1, -1, 2000, 2000, -35.0, 147.0, 50, 2000, 2000, 0.02, 0.024, 500] + [
    coefficients.get(i, 0) for coefficients in ({1: 0.02, 2: -1, 3: 0.01, 4: 0.002}, {0: 1, 2: 0.003}, {1: 1, 2: 0.02, 3: 0.04, 9: 0.0004}, {0: 1, 3: -0.004}) for i in range(20)]


def vhr_ortho(folder, make, n):
    sparse_tiff.write(folder / "copernicus-glo30.tif", 1000, 800, 1, "float32", codec="none", epsg=4326, corner=(146.5, -34.6), pixel=0.001)
    return sparse_tiff.write(folder / VHR.format("P1BS").replace("TIF", "tif"), 4000, 4000, 1, epsg=0, rpc=RPC)


def vhr_pansharpen(folder, make, n):
    make(folder / VHR.format("P2AS"), n, n, 1, pixel=0.5, seed=2)
    return make(folder / VHR.format("M2AS"), n // 4, n // 4, 4, pixel=2, seed=1)


def watermask(folder, make, n):
    return make(folder / "s.tif", n, n // 2 + 3, 4, "uint8", strips=16, codec="lzw" if isinstance(make, Sparse) else "none")


SAMPLES = {
    "burn-severity": burn_severity, "cloudfree": cloudfree, "composite": composite, "edges": edges, "fields": fields, "hls": hls, "landcover": landcover,
    "landsat-c2-l1": landsat_level_1, "landsat-c2-l2": landsat_level_2, "landsat-temperature": landsat_folder, "landsat8": landsat8,
    "least-cloudy": least_cloudy, "ndvi-month": ndvi_month, "pictures": pictures, "planetscope": planetscope, "planetscope-4b": planetscope_4b,
    "planetscope-toa": planetscope_toa, "sentinel1-flood": sentinel1_flood, "sentinel1-grd": radar, "sentinel2": sentinel2_stack,
    "sentinel2-l1c": sentinel2_l1c, "sentinel2-l2a": sentinel2_l2a, "sentinel2-mgrs": sentinel2_l2a, "terrain": terrain, "vegetation": four_bands,
    "vhr-ortho": vhr_ortho, "vhr-pan": vhr_pan, "vhr-pansharpen": vhr_pansharpen, "watermask": watermask,
}


# --- features -------------------------------------------------------------------------------------

def with_sources(folder, make, n):
    """A scene with what the features' sources name: another day's scene, shifted and of another type, a finer band, fields, heights."""
    make(folder / "old.tif", n * 10 // 13, n * 10 // 13, 4, "int16", block=128, pixel=13, corner=(600220, 5899000), seed=5)
    make(folder / "pan.tif", 4 * n, 4 * n, 1, pixel=2.5, block=256, seed=7)
    side = 10 * n
    rings = [[(600000 + side * x, 5900040 - side * y) for x, y in ring] for ring in (
        [(0.1, 0.1), (0.6, 0.2), (0.5, 0.5), (0.1, 0.1)], [(0.5, 0.6), (0.9, 0.55), (0.8, 0.9), (0.6, 0.9), (0.5, 0.6)])]
    (folder / "areas.geojson").write_text(json.dumps({
        "type": "FeatureCollection", "crs": {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::32632"}}, "features": [
            {"type": "Feature", "properties": {"id": i + 1}, "geometry": {"type": "Polygon", "coordinates": [ring]}} for i, ring in enumerate(rings)]}))
    return make(folder / "s.tif", n, n, 4, collar=True, look="coast")


def planes(folder, make, n):
    return make(folder / "s.tif", n, n, 4, planar=True, clouds=0.4, block=256)


def with_mask(folder, make, n):
    if isinstance(make, Sparse):
        return make(folder / "s.tif", n, n, 3, "uint8", mask=True)
    return shutil.copyfile(REAL / "mask_alpha/cog_rgb_mask.tif", folder / "s.tif")


def doubles(folder, make, n):
    return make(folder / "s.tif", n, n, 2, "float64")


def integers(folder, make, n):
    return make(folder / "s.tif", n, n, 2, "uint32", strips=8, codec="none")


def tiny(folder, make, n):
    return make(folder / "s.tif", 17, 5, 4, "float32", strips=1, codec="none")


def real(name):
    """A file of tests/data/real, whatever the side."""
    def copy(folder, make, n):
        return shutil.copyfile(REAL / name, folder / "s.tif")
    return copy
