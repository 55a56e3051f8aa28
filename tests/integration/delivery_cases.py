# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Deliveries as trees of files with the names that their producers use, and what is expected of them: data, no code of a case.
Each band of a scene has a value of its own, therefore the values of the products prove which file became which band.

Names and layouts are those of the producers' specifications, which the comment before each group names. Pixels are made;
Sentinel-2, Landsat and PlanetScope metadata are the real documents of tests/data/metadata."""
import collections

from osgeo import osr

import deliveries_kit as kit

# A raster: a value for each band, the pixel in metres, its type, "place" False = without georeference, pages True = a page a band.
Image = collections.namedtuple("Image", "values pixel kind place pages", defaults=(10.0, "UInt16", True, False))
# tree: {path: Image, text, or None for a file that no pipeline reads}; entry: how it is delivered, a suffix of an archive or ""
# for its files and folders as they are; name: of the archive without the suffix.
# input: value of the key in the configuration; bands: those of the product, in its order; scenes: {name: their values}.
# error: (code, words of the message) of the only job.
# given: paths that `pushbroom run` gets, by default all at the top. recurse: of the inbox.
Case = collections.namedtuple("Case", "tree input bands scenes error entry name given recurse", defaults=(None, None, "", "", None, False))


def image(*values, **more):
    return Image(list(values), **more)


def below(folder, tree):
    return {f"{folder}/{path}": content for path, content in tree.items()}


def metadata(name, *replaced):
    text = (kit.METADATA / name).read_text()
    for before, after in replaced:
        text = text.replace(before, after)
    return text


# --- Sentinel-2: S2 MSI product specification document (naming of SAFE, "compact" since December 2016) ---------------------------

L2A = "S2B_MSIL2A_20220413T150759_N0400_R025_T33XWJ_20220414T082126"
L2A_IMAGES = "GRANULE/L2A_T33XWJ_A026639_20220413T150800/IMG_DATA"
L1C = "S2A_MSIL1C_20210908T042701_N0301_R133_T46RER_20210908T070248"
L1C_IMAGES = "GRANULE/L1C_T46RER_A032448_20210908T042701/IMG_DATA"
SAFE_L2A = {
    **{f"{L2A_IMAGES}/R{p}m/T33XWJ_20220413T150759_B04_{p}m.jp2": image(v, pixel=p) for p, v in ((10, 3000), (20, 3100), (60, 3200))},
    f"{L2A_IMAGES}/R10m/T33XWJ_20220413T150759_B08_10m.jp2": image(5000),
    **{f"{L2A_IMAGES}/R{p}m/T33XWJ_20220413T150759_SCL_{p}m.jp2": image(v, pixel=p, kind="Byte") for p, v in ((20, 4), (60, 5))},
    f"{L2A_IMAGES}/R10m/T33XWJ_20220413T150759_TCI_10m.jp2": None,
    "GRANULE/L2A_T33XWJ_A026639_20220413T150800/MTD_TL.xml": metadata("S2B_N0400_MTD_TL.xml"),
    "GRANULE/L2A_T33XWJ_A026639_20220413T150800/QI_DATA/MSK_CLDPRB_20m.jp2": None,
    "MTD_MSIL2A.xml": metadata("S2B_N0400_MTD_MSIL2A.xml"), "manifest.safe": None, "INSPIRE.xml": None,
}
SAFE_L1C = {f"{L1C_IMAGES}/T46RER_20210908T042701_B04.jp2": image(3000), f"{L1C_IMAGES}/T46RER_20210908T042701_B08.jp2": image(5000),
            f"{L1C_IMAGES}/T46RER_20210908T042701_TCI.jp2": None, "MTD_MSIL1C.xml": metadata("S2A_N0301_MTD_MSIL1C.xml"), "manifest.safe": None}
SURFACE = {"input": "sentinel2-l2a", "bands": "R N SCL"}
# Before December 2016: one SAFE, a granule a tile, long names.
OLD = "S2A_OPER_PRD_MSIL1C_PDMC_20160318T145513_R008_V20160318T105405_20160318T105405"

GRANULE = "S2A_OPER_MSI_L1C_TL_SGS__20160318T135310_A003850_{}_N02.01"


def granule(tile, red, nir):
    name = GRANULE.format(tile).removesuffix("_N02.01")
    return below(f"GRANULE/{GRANULE.format(tile)}", {f"IMG_DATA/{name}_B04.jp2": image(red), f"IMG_DATA/{name}_B08.jp2": image(nir), "QI_DATA/MSK_NODATA.gml": None})


OLD_INPUT = '{scene: "S2?_*L1C*", files: {R: "*_B04.jp2", N: "*_B08.jp2"}}'

# Open data on AWS: README of the bucket sentinel-s2-l2a (tiles/29/R/KH/2020/2/19/0), here in a folder of a name that fits.
TILE = "S2A_29RKH_20200219_0_L2A"
AWS_TILE = {"R10m/B04.jp2": image(3000), "R10m/B08.jp2": image(5000), "R20m/B04.jp2": image(3100, pixel=20), "R20m/SCL.jp2": image(4, pixel=20, kind="Byte"),
            "R60m/B04.jp2": image(3200, pixel=60), "metadata.xml": metadata("S2B_N0400_MTD_TL.xml"), "tileInfo.json": "{}", "qi/MSK_CLDPRB_20m.jp2": None}

# --- Landsat: USGS LSDS-1619, Landsat 8-9 Collection 2 Level 2 --------------------------------------------------------------

LANDSAT = "LC08_L2SP_001062_20201031_20201106_02_T2"
USGS = {**{f"{LANDSAT}_SR_B{n}.TIF": image(v, pixel=30) for n, v in ((2, 8000), (3, 8500), (4, 9000), (5, 15000))}, f"{LANDSAT}_ST_B10.TIF": image(44000, pixel=30),
        f"{LANDSAT}_QA_PIXEL.TIF": image(21824, pixel=30), f"{LANDSAT}_SR_QA_AEROSOL.TIF": None, f"{LANDSAT}_ANG.txt": None, f"{LANDSAT}_thumb_small.jpeg": None,
        f"{LANDSAT}_MTL.txt": metadata(f"{LANDSAT}_MTL.txt")}

# --- PlanetScope: Planet, Orders API, delivery layout (manifest.json, PSScene/<files>); names of assets of PSScene ----------------


def item(name, red, bands=8, form="_harmonized_clip", clip="_clip"):
    values = [500, 800, 900, 1000, 1100, red, 2500, 5000] if bands == 8 else [800, 1000, red, 5000]
    eight = "_8b" if bands == 8 else ""
    text = kit.planet_xml(bands).replace("20170831_172754_101c_3B_AnalyticMS", f"{name}_3B_AnalyticMS{eight}").replace("20170831_172754_101c", name)
    return {f"{name}_3B_AnalyticMS_SR{eight}{form}.tif": image(*values, pixel=3), f"{name}_3B_udm2{clip}.tif": image(1, 0, 0, 0, 0, 0, 100, 0, pixel=3, kind="Byte"),
            f"{name}_3B_AnalyticMS{eight}_metadata{clip}.xml": text, f"{name}_metadata.json": f'{{"id": "{name}", "type": "Feature", "properties": {{"item_type": "PSScene"}}}}'}


ITEMS = ("20210401_075108_80_2406", "20220304_093300_37_2430")
ORDER = {"manifest.json": "{}", **below("PSScene", {**item(ITEMS[0], 3000), **item(ITEMS[1], 3300)})}
ONE_ITEM = {"manifest.json": "{}", **below("PSScene", item(ITEMS[0], 3000))}

# --- Maxar: Imagery Support Data documentation (tiles R<row>C<column>, .TIL lists them, .IMD and .RPB are of the whole image) ------

PART = "050023456010_01_P001"
MAXAR = {f"16JUL11181234-M2AS-{PART}.TIF": image(800, 1000, 3000, 5000, pixel=2), f"16JUL11181234-M2AS-{PART}.IMD": None, f"16JUL11181234-M2AS-{PART}.RPB": None,
         f"16JUL11181234-M2AS-{PART}.XML": None, f"16JUL11181234-M2AS-{PART}-BROWSE.JPG": None}
MAXAR_TILES = {**{f"16JUL11181234-M2AS_R1C{c}-{PART}.TIF": image(800, 1000, 3000, 5000, pixel=2) for c in (1, 2)}, f"16JUL11181234-M2AS-{PART}.TIL": "numTiles = 2;\n",
               f"16JUL11181234-M2AS-{PART}.IMD": None, f"16JUL11181234-M2AS-{PART}.RPB": None}
MULTISPECTRAL = '{scene: "*_MUL", files: {R: {match: "*-M2AS*.TIF", band: 3}, N: {match: "*-M2AS*.TIF", band: 4}}}'

# --- Airbus: Pleiades Imagery User Guide, DIMAP V2 (IMG_*, DIM_*, RPC_*; tiles R1C1 of one image) -----------------------------------

PHR = "PHR1A_MS_201206050630123_ORT_C"
DIMAP = {f"IMG_{PHR}_R1C1.TIF": image(3000, 1000, 800, 5000, pixel=2), f"DIM_{PHR}.XML": None, f"RPC_{PHR}.XML": None, f"PREVIEW_{PHR}.JPG": None}
DIMAP_TILES = {**DIMAP, f"IMG_{PHR}_R1C2.TIF": image(3000, 1000, 800, 5000, pixel=2)}
PLEIADES = '{scene: "IMG_PHR*", files: {R: {match: "IMG_*.TIF", band: 1}, N: {match: "IMG_*.TIF", band: 4}}}'

# --- Harmonized Landsat Sentinel-2: HLS User Guide v2, 7.1 (names), bands of L30 and S30 ------------------------------------------------

L30, S30 = "HLS.L30.T11SLT.2022100T182413.v2.0", "HLS.S30.T11SLT.2022102T183929.v2.0"
HLS_L30 = {**{f"{L30}.{b}.tif": image(v, pixel=30, kind="Int16") for b, v in (("B02", 800), ("B03", 1000), ("B04", 3000), ("B05", 5000), ("B06", 2000))},
           f"{L30}.Fmask.tif": image(64, pixel=30, kind="Byte"), f"{L30}.SZA.tif": None, f"{L30}.cmr.xml": None, f"{L30}.jpg": None, f"{L30}_stac.json": None}
HLS_S30 = {**{f"{S30}.{b}.tif": image(v, pixel=30, kind="Int16") for b, v in (("B04", 3100), ("B05", 9999), ("B8A", 5100), ("B08", 9999), ("B11", 2100))},
           f"{S30}.Fmask.tif": image(64, pixel=30, kind="Byte"), f"{S30}.cmr.xml": None}

# --- NAIP: USDA Digital Ortho Quarter Quads (m_<quad>_<quarter>_<zone>_<resolution>_<date>); PRISMA: ASI product specification;
# EnMAP: DLR, HSI product specification level 2A ------------------------------------------------------------------------------------------

NAIP = "m_3807708_ne_18_060_20211104"
PRISMA = "PRS_L2D_STD_20200215101312_20200215101316_0001"
ENMAP = "ENMAP01-____L2A-DT0000001867_20220724T104526Z_008_V010302_20230628T165614Z"
ENMAP_BANDS = [10 * n for n in range(1, 225)]

# Drones: ODM and Pix4D write a world file (six lines, the centre of the upper left pixel) and the system as WKT next to the TIFF.
SYSTEM = osr.SpatialReference()
SYSTEM.ImportFromEPSG(32632)
PROJECTION = SYSTEM.ExportToWkt(["FORMAT=WKT1_ESRI"])
WORLD = "0.05\n0\n0\n-0.05\n500000.025\n3999999.975\n"

CASES = {
    # Sentinel-2
    "SAFE": Case(below(f"{L2A}.SAFE", SAFE_L2A), **SURFACE, scenes={L2A: [3000, 5000, 4]}),
    "ZIP of a SAFE (X.zip)": Case(below(f"{L2A}.SAFE", SAFE_L2A), **SURFACE, scenes={L2A: [3000, 5000, 4]}, entry=".zip", name=L2A),
    "ZIP of a SAFE (X.SAFE.zip, CDSE)": Case(below(f"{L2A}.SAFE", SAFE_L2A), **SURFACE, scenes={L2A: [3000, 5000, 4]}, entry=".zip", name=f"{L2A}.SAFE"),
    "TAR of a SAFE": Case(below(f"{L2A}.SAFE", SAFE_L2A), **SURFACE, scenes={L2A: [3000, 5000, 4]}, entry=".tar", name=L2A),
    "SAFE of L1C": Case(below(f"{L1C}.SAFE", SAFE_L1C), "sentinel2-l1c", "R N", {L1C: [3000, 5000]}),
    "SAFE without a band": Case(below(f"{L2A}.SAFE", {k: v for k, v in SAFE_L2A.items() if "B08" not in k}), **SURFACE, error=("input.incomplete", "band N")),
    "SAFE of 2016 with two granules": Case(below(f"{OLD}.SAFE", {**granule("T31TCJ", 3000, 5000), **granule("T31TDJ", 3100, 5100), f"{OLD.replace('PRD_MSI', 'MTD_SAF')}.xml": None}),
                                           OLD_INPUT, "R N", error=("input.ambiguous", "if each folder of GRANULE/ is a scene of its own")),
    "granules of a SAFE of 2016": Case(below(f"{OLD}.SAFE", {**granule("T31TCJ", 3000, 5000), **granule("T31TDJ", 3100, 5100)}),
                                       OLD_INPUT.replace("S2?_*L1C*", "S2?_OPER_MSI_L1C_TL_*"), "R N", {GRANULE.format("T31TCJ"): [3000, 5000], GRANULE.format("T31TDJ"): [3100, 5100]},
                                       given=[f"{OLD}.SAFE/GRANULE/{GRANULE.format(t)}" for t in ("T31TCJ", "T31TDJ")], recurse=True),
    "ZIP of two SAFE": Case({**below(f"{L2A}.SAFE", SAFE_L2A), **below(f"{L2A.replace('T33XWJ', 'T33XWK')}.SAFE", SAFE_L2A), "index.html": None}, '{preset: sentinel2-l2a, archives: ["download_*.zip"]}', "R N SCL",
                            {L2A: [3000, 5000, 4], L2A.replace("T33XWJ", "T33XWK"): [3000, 5000, 4]}, entry=".zip", name="download_2022-04-14"),
    "tile of AWS": Case(below(TILE, AWS_TILE), '{scene: "S2?_*L2A", files: {R: R10m/B04.jp2, N: R10m/B08.jp2, SCL: {match: R20m/SCL.jp2, resample: nearest}}}', "R N SCL", {TILE: [3000, 5000, 4]}),
    "COGs of Earth Search": Case(below(TILE, {"B04.tif": image(3000), "B08.tif": image(5000), "SCL.tif": image(4, pixel=20, kind="Byte"), "TCI.tif": None, "metadata.xml": None,
                                              f"{TILE}.json": metadata(f"{TILE}.json")}), **SURFACE, scenes={TILE: [3000, 5000, 4]}),
    # Landsat
    "USGS, loose": Case(USGS, "landsat-c2-l2", "R N LST QA", {LANDSAT: [9000, 15000, 44000, 21824]}, given=["."]),
    "USGS, folder": Case(below(LANDSAT, USGS), "landsat-c2-l2", "R N LST QA", {LANDSAT: [9000, 15000, 44000, 21824]}, recurse=True),
    "USGS, TAR": Case(USGS, "landsat-c2-l2", "R N LST QA", {LANDSAT: [9000, 15000, 44000, 21824]}, entry=".tar", name=LANDSAT),
    # PlanetScope
    "order, folder PSScene": Case(ORDER, "planetscope", "R N CLEAR", {ITEMS[0]: [3000, 5000, 1], ITEMS[1]: [3300, 5000, 1]}, given=["PSScene"], recurse=True),
    "order, files": Case({**item(ITEMS[0], 3000), **item(ITEMS[1], 3300, form="", clip="")}, "planetscope", "R N CLEAR",
                         {ITEMS[0]: [3000, 5000, 1], ITEMS[1]: [3300, 5000, 1]}, given=["."]),
    "order of 4 bands": Case(item("20170831_172754_101c", 3000, bands=4, form="_clip"), "planetscope-4b", "R N CLEAR", {"20170831_172754_101c": [3000, 5000, 1]}, given=["."]),
    "ZIP of one item": Case(item(ITEMS[0], 3000), "planetscope", "R N CLEAR", {ITEMS[0]: [3000, 5000, 1]}, entry=".zip", name=ITEMS[0]),
    "ZIP of an order": Case(ORDER, "planetscope", "R N CLEAR", {ITEMS[0]: [3000, 5000, 1], ITEMS[1]: [3300, 5000, 1]}, entry=".zip", name="vineyard_psscene_analytic_8b_sr_udm2"),
    "ZIP of an order of one item": Case(ONE_ITEM, "planetscope", "R N CLEAR", {"field_psscene_analytic_8b_sr_udm2": [3000, 5000, 1]}, entry=".zip", name="field_psscene_analytic_8b_sr_udm2"),
    # Maxar, Airbus
    "Maxar, one image": Case(below(f"{PART}_MUL", MAXAR), MULTISPECTRAL, "R N", {f"{PART}_MUL": [3000, 5000]}),
    "Maxar, tiles": Case(below(f"{PART}_MUL", MAXAR_TILES), MULTISPECTRAL, "R N", error=("input.tiles", "they are tiles of one image")),
    "Pleiades, one image": Case(below("IMG_PHR1A_MS_001", DIMAP), PLEIADES, "R N", {"IMG_PHR1A_MS_001": [3000, 5000]}),
    "Pleiades, tiles": Case(below("IMG_PHR1A_MS_001", DIMAP_TILES), PLEIADES, "R N", error=("input.tiles", "they are tiles of one image")),
    # HLS
    "HLS": Case({**HLS_L30, **HLS_S30}, "hls", "R N S1 FMASK", {L30: [0.3, 0.5, 0.2, 64], S30: [0.31, 0.51, 0.21, 64]}, given=["."]),
    # single files
    "NAIP": Case({f"{NAIP}.tif": image(120, 130, 110, 200, pixel=0.6, kind="Byte")}, '{match: ["m_*.tif"], bands: {R: 1, G: 2, B: 3, N: 4}}', "R N", {NAIP: [120, 200]}),
    "PRISMA, HDF5": Case({f"{PRISMA}.he5": "\x89HDF"}, '{match: ["PRS_*.he5"], bands: {R: 1}}', "R", error=("input.not_tiff", "does not begin as a TIFF")),
    "EnMAP": Case({f"{ENMAP}-SPECTRAL_IMAGE.TIF": image(*ENMAP_BANDS, pixel=30, kind="Int16")}, '{match: ["ENMAP01-*SPECTRAL_IMAGE.TIF"], bands: {R: 47, N: 60}}', "R N",
                  error=("input.limit", "224")),
    "drone, world file and projection": Case({"odm_orthophoto.tif": image(90, 120, 60, 255, pixel=0.05, kind="Byte", place=False), "odm_orthophoto.tfw": WORLD, "odm_orthophoto.prj": PROJECTION},
                                             '{match: ["*_orthophoto.tif"], bands: {R: 1, G: 2, B: 3}, sidecars: [.tfw, .prj]}', "R G B", {"odm_orthophoto": [90, 120, 60]}, given=["odm_orthophoto.tif"]),
    "a page a band": Case({"IMG_0001.tif": image(1000, 2000, 3000, 5000, pages=True)}, '{match: ["IMG_*.tif"], pages: all, bands: {B: 1, G: 2, R: 3, N: 4}}', "R N", {"IMG_0001": [3000, 5000]}),
    "a page a band, by files": Case({"IMG_0001.tif": image(3000, 5000, pages=True)}, '{group: "(?<scene>IMG_[0-9]+).tif", files: {R: {match: "*.tif", page: 1}, N: {match: "*.tif", page: 2}}}', "R N", {"IMG_0001": [3000, 5000]}),
}
