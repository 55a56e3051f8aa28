# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Rivals of pushbroom, their settings, and rows that a rival cannot do, or is not measured in unless --rivals names it."""
import dataclasses
import pathlib
import re

PROGRAMS = pathlib.Path(__file__).parent / "programs"
PAIR = re.compile(r"\((\w+) ?- ?(\w+)\) ?/ ?\(\1 ?\+ ?\2\)")


def pairs_only(row):
    if not row.unchanged and not row.gaussian and not all(PAIR.fullmatch(f) for f in row.outputs.values()):
        return "its VRT has no expressions (built without muparser and ExprTk)"
    return None


def one_pair(row):
    return None if len(row.outputs) == 1 and not row.gaussian and not row.unchanged else "its wheel computes only the normalised difference"


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


def pixels_only(row):
    return "makes no table of polygons" if row.polygons else None


def polygons_only(row):
    return None if row.polygons else "makes only tables of polygons"


def one_scene(row):
    return "a process for each scene takes many times as long" if row.scenes > 1 else None


def never(_row, _kind):
    """Two to three times as slow as others in every row."""
    return False


def once(row, kind):
    """Slower than others in every row."""
    return row.name == "ndvi" and kind == "synthetic"


def if_not_numexpr(row, kind):
    return once(row, kind) or row.unchanged or row.scenes > 1


def if_not_filtered(row, _):
    return not row.gaussian


def if_plain(row, kind):
    """Its compressed files are 15 % larger than others at every level."""
    return once(row, kind) or row.compress == "none"


def always(_row, _kind):
    return True


@dataclasses.dataclass(frozen=True)
class Rival:
    name: str
    title: str  # {module} stands for a version
    needs: tuple  # modules, or a program with a slash in front
    command: tuple  # program of programs/ and its arguments after the job
    cannot: tuple = ()  # functions of a row that return the reason against it, or None
    usual: object = always  # function of a row and the kind of its scene: true if the rival is measured without being named
    gdal: bool = True  # reads or writes with GDAL
    debian: bool = False  # runs with Debian's python3, the others in the scratch environment
    defaults: bool = False  # also with its defaults, without level and predictor
    compiles: bool = False  # has to run once before its turns, with the argument `compile`

    def why_not(self, row):
        return next((why for why in (test(row) for test in self.cannot) if why), None)


RIVALS = (
    Rival("codecs", "imagecodecs {imagecodecs} + numba {numba}", ("imagecodecs", "numba", "tifffile", "cv2", "rasterio", "blake3"), ("codecs_tiles.py",), (pixels_only,), gdal=False, compiles=True),
    Rival("numexpr", "rasterio {rasterio} + numexpr {numexpr}", ("rasterio", "numexpr"), ("windows.py", "numexpr"), (pixels_only, computes_only, one_scene), if_not_filtered),
    Rival("numpy", "rasterio {rasterio} + numpy {numpy}", ("rasterio",), ("windows.py", "numpy"), (pixels_only,), usual=if_not_numexpr),
    Rival("opencv", "rasterio {rasterio} + OpenCV {cv2}", ("rasterio", "cv2"), ("windows.py", "opencv"), (pixels_only, one_image, filters_only, one_scene)),
    Rival("vips", "vips {vips}", ("pyvips",), ("vips.py",), (pixels_only, one_image, one_scene), if_plain, gdal=False),
    Rival("gdal", "GDAL {rasterio_gdal}: VRT by windows, COG driver", ("rasterio",), ("windows.py", "vrt"), (pixels_only, one_image, pairs_only, one_scene), once),
    Rival("gdal-direct", "GDAL {rasterio_gdal}: VRT to COG", ("rasterio",), ("gdal_vrt.py",), (pixels_only, one_image, pairs_only, one_scene), never, defaults=True),
    Rival("gdal-pipeline", "GDAL {gdal_wheel}: gdal raster pipeline", ("gdal_wheel",), ("gdal_pipeline.py",), (pixels_only, one_image, one_pair, one_scene), once),
    Rival("otb", "OTB BandMath, then COG", ("/otbcli_BandMath", "osgeo"), ("otb.py",), (pixels_only, one_image, formulas_only, one_band, one_scene), once, debian=True),
    Rival("classic", "gdal_calc.py, then COG, GDAL {osgeo}", ("osgeo",), ("gdal_classic.py",), (pixels_only, one_image, one_band, one_scene), never, debian=True, defaults=True),
    Rival("exactextract", "exactextract {exactextract}", ("exactextract", "gdal_wheel"), ("zones.py", "exactextract"), (polygons_only,)),
    Rival("zonal-stats", "GDAL {gdal_wheel}: gdal raster zonal-stats", ("gdal_wheel",), ("zones.py", "gdal"), (polygons_only,)),
)
SMALL = {"codecs": ("small.py", "codecs"), "numpy": ("small.py", "rasterio")}


def program(rival, row):
    """Its program and arguments: with all products, or many scenes, it is another one."""
    if row.scenes > 1:
        return SMALL[rival.name]
    if row.everything:
        return ("products_tiles.py",) if rival.name == "codecs" else ("products.py", *rival.command[1:])
    return rival.command


@dataclasses.dataclass(frozen=True)
class Setting:
    title: str
    level: int  # 0: the rival's default
    predictor: bool
    codec: str = ""  # name of a codec of programs/codecs_tiles.py


def codec_settings(row):
    """ISA-L is the quickest deflate; of its levels 0 to 3 only integers gain by the highest, whose files are those of libdeflate."""
    if row.compress == "none":
        return [Setting("", 0, False, "none")]
    if row.compress == "zstd":
        return [Setting(f"zstd {n}", n, True, "zstd") for n in ((row.level,) if row.level else (1, 3))]
    if row.level > 1:
        return [Setting(f"libdeflate {row.level}", row.level, True, "deflate")]
    return [Setting("ISA-L 1", 1, True, "isal"), *([Setting("ISA-L 3", 3, True, "isal")] if row.type == "uint16" else [])]


def settings(row, rival):
    """The quickest first; a later one is measured only while the files of the earlier ones are too large. Where the row leaves the level open, it is 1:
    with a predictor a higher one does not make files of these scenes smaller."""
    if rival.name == "codecs":
        return codec_settings(row)
    if row.compress == "none" or row.polygons:
        return [Setting("", 0, False)]
    if row.level:
        return [Setting(f"level {row.level}, predictor", row.level, True)]
    return [Setting("level 1, predictor", 1, True), *([Setting("defaults", 0, False)] if rival.defaults else [])]
