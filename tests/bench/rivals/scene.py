# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""The scenes that are read: deflate with predictor 2, tiles of 512 x 512, UInt16 bands B, G, R, N, pixels interleaved; in the page cache, for
all contestants. Kinds:

    synthetic   make_scene
    real        red and near infrared of a crop of a Sentinel-2 scene (tests/data), mirrored until the scene is full, times a smooth gain field of
                0.97 to 1.03, plus noise of 2 DN, so that mirrored copies are no matches of a compressor. Blue and green are mixed of both, with noise
                of 8 DN."""
import math
import shutil
import subprocess

import numpy as np

KINDS = ("synthetic", "real")
CROP = "tests/data/derived/sentinel2_29RKH_crop"
OPTIONS = ["TILED=YES", "BLOCKXSIZE=512", "BLOCKYSIZE=512", "COMPRESS=DEFLATE", "ZLEVEL=6", "PREDICTOR=2", "INTERLEAVE=PIXEL", "NUM_THREADS=ALL_CPUS", "BIGTIFF=IF_SAFER"]
ROWS = 512  # rows that are made at a time


def make(build, path, width, height, *options):
    """A synthetic scene, under another name until it is whole."""
    if not path.exists():
        part = path.with_suffix(".part.tif")
        subprocess.run([build / "bin/make_scene", "--size", f"{width}x{height}", *options, part], check=True)
        part.rename(path)
    return path


def mirrored(side, size):
    """Positions in a side of the crop for `size` pixels: there and back again."""
    there = np.arange(size) % (2 * side)
    return np.where(there < side, there, 2 * side - 1 - there)


def strip(crops, y, n, size):
    """Rows y to y + n of the bands B, G, R, N as float32; of one crop, only this band."""
    noise = np.random.default_rng(y)
    rows, columns = mirrored(crops[0].shape[0], size)[y:y + n], mirrored(crops[0].shape[1], size)
    gain = 1 + 0.03 * np.sin(np.arange(y, y + n) / 900)[:, None] * np.cos(np.arange(size) / 1100)[None]
    real = [(crop[rows][:, columns] * gain + 2 * noise.standard_normal((n, size), np.float32)).astype(np.float32) for crop in crops]
    if len(real) == 1:
        return real
    red, infrared = real
    blue = 0.55 * red + 0.05 * infrared + 300 + 8 * noise.standard_normal((n, size), np.float32)
    green = 0.7 * red + 0.12 * infrared + 200 + 8 * noise.standard_normal((n, size), np.float32)
    return blue, green, red, infrared


def make_real(o, path, size, bands):
    if path.exists():
        return path
    from osgeo import gdal
    gdal.UseExceptions()
    files = [gdal.Open(str(o.root / CROP / name)) for name in ("B04.tif", "B08.tif")[:1 if bands == 1 else 2]]
    crops, part = [f.ReadAsArray() for f in files], path.with_suffix(".part.tif")
    out = gdal.GetDriverByName("GTiff").Create(str(part), size, size, bands, gdal.GDT_UInt16, OPTIONS)
    left, _, _, top, _, _ = files[0].GetGeoTransform()
    out.SetGeoTransform((left, 10, 0, top, 0, -10))
    out.SetProjection(files[0].GetProjection())
    for y in range(0, size, ROWS):
        for number, pixels in enumerate(strip(crops, y, min(ROWS, size - y), size), 1):
            out.GetRasterBand(number).WriteArray(np.rint(pixels).clip(1, 65535).astype(np.uint16), 0, y)
    out = None
    part.rename(path)
    return path


def of_size(o, kind, size, bands=4):
    path = o.work / f"{kind}_{size}_b{bands}.tif"
    if kind == "real":
        return make_real(o, path, size, bands)
    return make(o.build, path, size, size, *(["--bands", str(bands)] if bands != 4 else []))


def of_row(o, row, kind):
    """Paths of the row's scenes; of several, each is a file of its own with the same pixels."""
    if row.scenes == 1:
        return [of_size(o, kind, o.size // row.shrink, row.bands)]
    first = of_size(o, kind, row.side)
    folder = o.work / f"{kind}-{row.scenes}"
    folder.mkdir(exist_ok=True)
    paths = [folder / f"scene{i}.tif" for i in range(row.scenes)]
    for path in paths:
        if not path.exists():
            shutil.copyfile(first, path)
    return paths


def kinds_of(row, chosen):
    """Kinds of scenes of a row: the chosen ones, or as many as matter."""
    return chosen or (KINDS if row.depends else KINDS[:1])


def warm(paths):
    for path in paths:
        with open(path, "rb") as f:
            while f.read(1 << 24):
                pass


def polygons_of(source, count, corners=24):
    """A GeoPackage with polygons in a lattice over a scene: stars, none of which meets another one; their field `field` numbers them from 1."""
    path = source.with_suffix(f".{count}.gpkg")
    if path.exists():
        return path
    from osgeo import gdal, ogr
    gdal.UseExceptions()
    ogr.UseExceptions()
    scene = gdal.Open(str(source))
    left, pixel, _, top, _, _ = scene.GetGeoTransform()
    side = math.isqrt(count)
    width, height = scene.RasterXSize * pixel / side, scene.RasterYSize * pixel / side
    part = path.with_suffix(".part.gpkg")
    part.unlink(missing_ok=True)
    out = ogr.GetDriverByName("GPKG").CreateDataSource(str(part))
    layer = out.CreateLayer("fields", srs=scene.GetSpatialRef(), geom_type=ogr.wkbPolygon)
    layer.CreateField(ogr.FieldDefn("field", ogr.OFTInteger))
    out.StartTransaction()
    for number in range(side * side):
        y, x = divmod(number, side)
        ring = ogr.Geometry(ogr.wkbLinearRing)
        for corner in range(corners + 1):
            angle, radius = 2 * math.pi * (corner % corners) / corners, 0.36 if corner % 2 else 0.45
            ring.AddPoint_2D(left + width * (x + 0.5 + radius * math.cos(angle)), top - height * (y + 0.5 + radius * math.sin(angle)))
        polygon = ogr.Geometry(ogr.wkbPolygon)
        polygon.AddGeometry(ring)
        feature = ogr.Feature(layer.GetLayerDefn())
        feature.SetField("field", number + 1)
        feature.SetGeometry(polygon)
        layer.CreateFeature(feature)
    out.CommitTransaction()
    out = None
    part.rename(path)
    return path
