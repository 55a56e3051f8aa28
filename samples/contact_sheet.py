#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Makes samples/contact-sheet.jpg, the picture of README.md, from quicklooks of the demo and of two samples.
    samples/contact_sheet.py PROGRAMS DEMO [OUT]
PROGRAMS: the folder of the program pushbroom. DEMO: the scratch directory that deploy/demo leaves. Needs python3-gdal."""
import pathlib
import subprocess
import sys
import tempfile

import numpy
from osgeo import gdal

gdal.UseExceptions()
ROOT = pathlib.Path(__file__).resolve().parent.parent
SIDE, GAP, COLUMNS = 236, 8, 4  # pixels
LANDSAT8 = "LC08_L1TP_016037_20170813_20170814_01_RT"
DEMO = (
    "landsat7_olinda/landsat7/landsat7_olinda.png",
    "landsat7_olinda/landsat7/landsat7_olinda.ndvi.png",
    f"landsat-8/2017-08-13/{LANDSAT8}/quicklook.png",
    "coast_20260621/water/coast_20260621.png",
)
SAMPLES = (("landsat-temperature", ""), ("terrain", ".relief"), ("terrain", ".slope"), ("terrain", ".hillshade"))  # configuration, name of the quicklook


def tile(path):
    """The middle square of a quicklook, SIDE pixels wide, on white: rows, columns, 3."""
    source = gdal.Open(str(path))
    side = min(source.RasterXSize, source.RasterYSize)
    window = [(source.RasterXSize - side) // 2, (source.RasterYSize - side) // 2, side, side]
    options = {"format": "MEM", "srcWin": window, "width": SIDE, "height": SIDE, "resampleAlg": "average", "rgbExpand": "rgba" if source.GetRasterBand(1).GetColorTable() else None}
    bands = gdal.Translate("", source, **options).ReadAsArray().astype(float)
    bands = bands[None] if bands.ndim == 2 else bands
    has_alpha = bands.shape[0] in (2, 4)
    alpha = bands[-1] / 255 if has_alpha else numpy.ones((SIDE, SIDE))
    colours = bands[:-1] if has_alpha else bands
    colours = numpy.repeat(colours, 3, axis=0) if colours.shape[0] == 1 else colours
    return (colours * alpha + 255 * (1 - alpha)).transpose(1, 2, 0)


def made(programs, demo, out):
    """The quicklooks of SAMPLES."""
    scenes = {"landsat-temperature": demo / "incoming" / LANDSAT8, "terrain": ROOT / "tests/data/real/dem/storml_elev.tif"}
    for name, scene in scenes.items():
        subprocess.run([programs / "pushbroom", "run", "-c", ROOT / f"samples/{name}.yaml", "-o", out / name, scene], check=True)
    for name, product in SAMPLES:
        yield next((out / name).rglob(f"{scenes[name].stem}{product}.png"))


def main(programs, demo, out=ROOT / "samples/contact-sheet.jpg"):
    programs, demo = pathlib.Path(programs).resolve(), pathlib.Path(demo).resolve()
    with tempfile.TemporaryDirectory() as scratch:
        pictures = [demo / "products" / path for path in DEMO] + list(made(programs, demo, pathlib.Path(scratch)))
        tiles = [tile(path) for path in pictures]
    rows = -(-len(tiles) // COLUMNS)
    sheet = numpy.full((rows * (SIDE + GAP) - GAP, COLUMNS * (SIDE + GAP) - GAP, 3), 255.0)
    for n, picture in enumerate(tiles):
        y, x = n // COLUMNS * (SIDE + GAP), n % COLUMNS * (SIDE + GAP)
        sheet[y : y + SIDE, x : x + SIDE] = picture
    memory = gdal.GetDriverByName("MEM").Create("", sheet.shape[1], sheet.shape[0], 3)
    for band in range(3):
        memory.GetRasterBand(band + 1).WriteArray(sheet[..., band].round().astype(numpy.uint8))
    gdal.GetDriverByName("JPEG").CreateCopy(str(out), memory, options=["QUALITY=75"])


main(*sys.argv[1:])
