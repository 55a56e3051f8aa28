# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Deliveries of satellite data with the file names that their producers use today. Pixels are made; metadata are real ones of
tests/data/metadata, renamed. Names are from the producers' product specifications, from catalogues (Earth Search, Planetary
Computer) and from public scripts that read such deliveries."""
import json
import pathlib
import re

import numpy as np
from osgeo import gdal, osr

import pbtest
from safe_kit import Product

METADATA = pbtest.SOURCE / "tests/data/metadata"
SHAPE = (24, 36)
RED, NIR = 3000, 5000  # stored values; other bands have others


def utm_of(path):
    """EPSG code of the UTM zone of the tile in a path, T33XWJ or 29RKH."""
    tile = re.search(r"(?<![A-Z0-9])T?(\d\d)([C-X])[A-Z]{2}(?![A-Z0-9])", str(path))
    return 32632 if tile is None else (32600 if tile[2] >= "N" else 32700) + int(tile[1])


def raster(path, values, pixel=10.0, kind=gdal.GDT_UInt16, driver="GTiff"):
    """A file with a band for each value."""
    path.parent.mkdir(parents=True, exist_ok=True)
    size = [max(1, round(n * 10.0 / pixel)) for n in SHAPE]
    made = gdal.GetDriverByName("MEM").Create("", size[1], size[0], len(values), kind)
    made.SetGeoTransform((500000.0, pixel, 0, 4000000.0, 0, -pixel))
    system = osr.SpatialReference()
    system.ImportFromEPSG(utm_of(path))
    made.SetProjection(system.ExportToWkt())
    for i, value in enumerate(values):
        made.GetRasterBand(i + 1).WriteArray(np.full(size, value, np.uint16))
    options = ["REVERSIBLE=YES", "QUALITY=100"] if driver == "JP2OpenJPEG" else []
    gdal.GetDriverByName(driver).CreateCopy(str(path), made, options=options)
    (path.parent / (path.name + ".aux.xml")).unlink(missing_ok=True)


def others(folder, *names):
    """Files that no band needs."""
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"no image, no text")


# --- Sentinel-2 -----------------------------------------------------------------------------------

RESOLUTION = {"B01": 60, "B02": 10, "B03": 10, "B04": 10, "B05": 20, "B06": 20, "B07": 20, "B08": 10, "B8A": 20, "B09": 60, "B10": 60, "B11": 20, "B12": 20}
STORED = {"B04": RED, "B08": NIR}


def sentinel2_safe(root, product, granule, level, metadata, suffix="jp2"):
    """A SAFE folder: L2A has each band at its own resolution and at the coarser ones."""
    folder, images = root / f"{product}.SAFE", f"GRANULE/{granule}/IMG_DATA"
    tile, sensed = product.split("_")[5], product.split("_")[2]
    driver = "JP2OpenJPEG" if suffix == "jp2" else "GTiff"
    for band, finest in RESOLUTION.items():
        for pixel in ([finest] if level == "L1C" else [p for p in (10, 20, 60) if p >= finest and band != "B10" and (p == 10 or band != "B08")]):
            name = f"{tile}_{sensed}_{band}.{suffix}" if level == "L1C" else f"R{pixel}m/{tile}_{sensed}_{band}_{pixel}m.{suffix}"
            raster(folder / images / name, [STORED.get(band, 1000)], float(pixel), driver=driver)
    if level == "L2A":
        for pixel in (20, 60):
            raster(folder / images / f"R{pixel}m/{tile}_{sensed}_SCL_{pixel}m.{suffix}", [4], float(pixel), gdal.GDT_Byte, driver)
        others(folder / images, *(f"R{p}m/{tile}_{sensed}_{n}_{p}m.{suffix}" for p in (10, 20, 60) for n in ("AOT", "TCI", "WVP")))
        others(folder, f"GRANULE/{granule}/QI_DATA/MSK_CLDPRB_20m.jp2", f"GRANULE/{granule}/QI_DATA/MSK_SNWPRB_20m.jp2")
    else:
        others(folder / images, f"{tile}_{sensed}_TCI.jp2")
    others(folder, f"GRANULE/{granule}/MTD_TL.xml", f"GRANULE/{granule}/QI_DATA/MSK_CLASSI_B00.jp2", f"GRANULE/{granule}/QI_DATA/MSK_DETFOO_B04.jp2",
           f"GRANULE/{granule}/QI_DATA/FORMAT_CORRECTNESS.xml", f"GRANULE/{granule}/AUX_DATA/AUX_ECMWFT", "manifest.safe", "INSPIRE.xml",
           f"{product}-ql.jpg", "HTML/UserProduct_index.html", f"DATASTRIP/DS_{product[4:19]}/MTD_DS.xml", "rep_info/S2_User_Product_Level-2A_Metadata.xsd")
    (folder / f"MTD_MSI{level}.xml").write_text((METADATA / metadata).read_text())
    return folder


def sentinel2_earth_search(folder, item, name):
    """COGs of Earth Search with the item of the catalogue."""
    for band, pixel in RESOLUTION.items():
        if band != "B10":
            raster(folder / f"{band}.tif", [STORED.get(band, 1000)], float(pixel))
    raster(folder / "SCL.tif", [4], 20.0, gdal.GDT_Byte)
    others(folder, "TCI.tif", "AOT.tif", "WVP.tif", "L2A_PVI.tif", "PVI.tif", "CLD_20m.tif", "SNW_20m.tif", "thumbnail.jpg", "preview.jpg", "metadata.xml",
           "tileinfo_metadata.json", "tileInfo.json", "product_metadata.xml")
    (folder / f"{name}.json").write_text(json.dumps(item))
    return folder


def earth_search_item():
    return json.loads((METADATA / "S2A_29RKH_20200219_0_L2A.json").read_text())


def collection_1_item(name):
    """As in sentinel-2-c1-l2a: baseline 05.00, and scale and offset by asset, without the flag."""
    item = earth_search_item()
    item["id"], item["collection"] = name, "sentinel-2-c1-l2a"
    for key in [k for k in item["properties"] if "boa_offset_applied" in k]:
        del item["properties"][key]
    item["properties"]["s2:processing_baseline"] = "05.00"
    for word in ("s2:product_uri",):
        item["properties"].pop(word, None)
    names = {"red": "B04", "nir": "B08"}
    item["assets"] = {k: {"href": f"https://example.org/{name}/{b}.tif", "roles": ["data", "reflectance"],
                          "raster:bands": [{"nodata": 0, "data_type": "uint16", "scale": 0.0001, "offset": -0.1}]} for k, b in names.items()}
    return item


# --- Landsat --------------------------------------------------------------------------------------

def landsat(folder, scene, mtl, level):
    """All files of USGS of a scene: 27 of Level 2, 23 of Level 1."""
    one = 30.0
    common = ["ANG.txt", "MTL.json", "MTL.xml", "QA_RADSAT.TIF", "thumb_large.jpeg", "thumb_small.jpeg"]
    if level == 2:
        for n in range(1, 8):
            raster(folder / f"{scene}_SR_B{n}.TIF", [{4: 3 * RED, 5: 3 * NIR}.get(n, 9000)], one)
        raster(folder / f"{scene}_ST_B10.TIF", [44000], one)
        others(folder, *(f"{scene}_{n}" for n in [*common, "SR_QA_AEROSOL.TIF", "SR_stac.json", "ST_stac.json",
                                                 *(f"ST_{k}.TIF" for k in ("ATRAN", "CDIST", "DRAD", "EMIS", "EMSD", "QA", "TRAD", "URAD"))]))
    else:
        for n in range(1, 12):
            raster(folder / f"{scene}_B{n}.TIF", [{4: 3 * RED, 5: 3 * NIR, 10: 26000}.get(n, 9000)], 15.0 if n == 8 else one)
        others(folder, *(f"{scene}_{n}" for n in [*common, "stac.json", "SAA.TIF", "SZA.TIF", "VAA.TIF", "VZA.TIF"]))
    raster(folder / f"{scene}_QA_PIXEL.TIF", [21824], one)
    text = mtl.read_text()
    (folder / f"{scene}_MTL.txt").write_text(text.replace(re.search(r'LANDSAT_PRODUCT_ID = "([^"]+)"', text)[1], scene))
    return folder


# --- Harmonized Landsat Sentinel-2 -------------------------------------------------------------------

def hls(folder, granule, bands):
    """The files of a granule; B05 of S30 is a red edge, B08 its wide near infrared, which HLS does not harmonize."""
    for band, value in bands.items():
        raster(folder / f"{granule}.{band}.tif", [value], 30.0, gdal.GDT_Int16)
    raster(folder / f"{granule}.Fmask.tif", [64], 30.0, gdal.GDT_Byte)
    others(folder, *(f"{granule}.{n}" for n in ("SAA.tif", "SZA.tif", "VAA.tif", "VZA.tif", "cmr.xml", "jpg")), f"{granule}_stac.json")
    return folder


# --- PlanetScope ----------------------------------------------------------------------------------

def planet_xml(bands):
    """The real document of 4 bands, also as one of 8."""
    text = (METADATA / "20170831_172754_101c_3B_AnalyticMS_metadata.xml").read_text()
    if bands == 8:
        first = re.search(r"[ \t]*<ps:bandSpecificMetadata>.*?</ps:bandSpecificMetadata>\s*", text, re.S)
        last = list(re.finditer(r"</ps:bandSpecificMetadata>\s*", text))[-1]
        eight = "".join(first[0].replace("<ps:bandNumber>1<", f"<ps:bandNumber>{n}<") for n in range(1, 9))
        text = text[:first.start()] + eight + text[last.end():]
    return text


def planet(folder, item, bands=8, harmonized=True, clip=True):
    """The files of one item in an order's folder PSScene."""
    b, h, c = "_8b" if bands == 8 else "", "_harmonized" if harmonized else "", "_clip" if clip else ""
    values = [500, 800, 900, 1000, 1100, RED, 2500, NIR] if bands == 8 else [800, 1000, RED, NIR]
    raster(folder / f"{item}_3B_AnalyticMS_SR{b}{h}{c}.tif", values, 3.0)
    raster(folder / f"{item}_3B_udm2{c}.tif", [1, 0, 0, 0, 0, 0, 100, 0], 3.0, gdal.GDT_Byte)
    text = planet_xml(bands).replace("20170831_172754_101c_3B_AnalyticMS", f"{item}_3B_AnalyticMS{b}").replace("20170831_172754_101c", item)
    (folder / f"{item}_3B_AnalyticMS{b}_metadata{c}.xml").write_text(text)
    (folder / f"{item}_metadata.json").write_text(json.dumps({"id": item, "type": "Feature", "properties": {"item_type": "PSScene"}}))
    (folder / f"{item}.json").write_text(json.dumps({"id": item, "type": "Feature"}))
    return folder


# --- Sentinel-1 -----------------------------------------------------------------------------------

def sentinel1(root, seed, aws=False):
    """A SAFE folder, or its copy on AWS and Azure: short names, the folder without .SAFE."""
    folder = pathlib.Path(Product(seed, polarisations=("vv", "vh")).write(root))
    others(folder, "manifest.safe", "preview/quick-look.png", "preview/map-overlay.kml", "annotation/rfi/rfi-s1a-iw-grd-vv-001.xml", "support/s1-object-types.xsd")
    if not aws:
        return folder.rename(folder.with_name("S1A_IW_GRDH_1SDV_20230809T020729_20230809T020754_049792_05FCE6_1175.SAFE"))
    for path in [p for p in folder.rglob("*") if p.is_file()]:
        short = re.sub(r"s1[a-d]-(iw|ew)-grd-(vv|vh)-.*(?=\.(tiff?|xml)$)", r"\1-\2", path.name)
        path.rename(path.with_name(short))
    others(folder, "productInfo.json", "productPreview.html")
    return folder.rename(folder.with_name("S1A_IW_GRDH_1SDV_20230628T210705_20230628T210730_049191_05EA4D_21D1"))
