# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Rivals of pushbroom, their settings, and rows that a rival cannot do."""
import dataclasses
import pathlib
import re

PROGRAMS = pathlib.Path(__file__).parent / "programs"
PAIR = re.compile(r"\((\w+) ?- ?(\w+)\) ?/ ?\(\1 ?\+ ?\2\)")


def pairs_only(row):
    if not row.unchanged and not row.gaussian and not all(PAIR.fullmatch(f) for f in row.outputs.values()):
        return "its VRT has no expressions (built without muparser and ExprTk)"
    return None


def filters_only(row):
    return None if row.gaussian else "no Gaussian"


def one_image(row):
    return "writes no statistics and no STAC item" if row.everything else None


def one_band(row):
    return "makes a band at a time" if len(row.outputs) > 1 and not row.unchanged else None


def formulas_only(row):
    return "BandMath computes formulas" if row.unchanged or row.gaussian else None


def computes_only(row):
    return "rasterio + numpy stands for it" if row.unchanged else None


@dataclasses.dataclass(frozen=True)
class Rival:
    name: str
    title: str  # {module} stands for a version
    needs: tuple  # modules, or a program with a slash in front
    command: tuple  # program of programs/ and its arguments after the job
    cannot: tuple = ()  # functions of a row that return the reason against it, or None
    debian: bool = False  # runs with Debian's python3, the others in the scratch environment
    defaults: bool = False  # also with its defaults, without level and predictor

    def why_not(self, row):
        return next((why for why in (test(row) for test in self.cannot) if why), None)


RIVALS = (
    Rival("gdal", "GDAL {gdal}: VRT by windows, COG driver", ("rasterio",), ("windows.py", "vrt"), (one_image, pairs_only)),
    Rival("gdal-direct", "GDAL {gdal}: VRT to COG", ("rasterio",), ("gdal_vrt.py",), (one_image, pairs_only), defaults=True),
    Rival("numpy", "rasterio {rasterio} + numpy {numpy}", ("rasterio",), ("windows.py", "numpy")),
    Rival("numexpr", "rasterio + numexpr {numexpr}", ("rasterio", "numexpr"), ("windows.py", "numexpr"), (computes_only,)),
    Rival("opencv", "rasterio + OpenCV {cv2}", ("rasterio", "cv2"), ("windows.py", "opencv"), (one_image, filters_only)),
    Rival("vips", "vips {vips}", ("pyvips",), ("vips.py",), (one_image,), defaults=True),
    Rival("otb", "OTB BandMath, then COG", ("/otbcli_BandMath", "osgeo"), ("otb.py",), (one_image, formulas_only, one_band), debian=True),
    Rival("classic", "gdal_calc.py, then COG, GDAL {osgeo}", ("osgeo",), ("gdal_classic.py",), (one_image, one_band), debian=True, defaults=True),
)


def program(rival, row):
    """And its arguments: with all products it is another one."""
    return ("products.py", *rival.command[1:]) if row.everything else rival.command


@dataclasses.dataclass(frozen=True)
class Setting:
    title: str
    level: int  # 0: the rival's default
    predictor: bool


def settings(row, rival):
    """Where the row leaves the level open, the quickest first."""
    if row.compress == "none":
        return [Setting("", 0, False)]
    if row.level:
        return [Setting(f"level {row.level}, predictor", row.level, True)]
    return [Setting("level 1, predictor", 1, True), Setting("level 6, predictor", 6, True), *([Setting("defaults", 0, False)] if rival.defaults else [])]
