#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Colours of products: the colour tables of scenes, ramps, colour files as gdaldem reads them."""
import subprocess

import numpy as np
from osgeo import gdal

import pbtest

gdal.UseExceptions()


def config_of(scratch, products, bands="", steps=(), name="c.yaml"):
    path = scratch / name
    lines = ["pipelines:", "  p:", f"    input: {{{bands}}}"]
    lines += ["    steps:", *[f"      - {s}" for s in steps]] if steps else []
    path.write_text("\n".join([*lines, "    products:", *[f"      - {p}" for p in products], ""]))
    return path


def make(scratch, scene, products, out="out", compute=None, **more):
    """Runs a pipeline; returns the directory of its products."""
    config = config_of(scratch, products, **more)
    if compute:
        config.write_text(f"compute: {compute}\n" + config.read_text())
    pbtest.run("pushbroom", "run", "-c", config, "-o", scratch / out, scene)
    return scratch / out / scene.stem / "p"


def pixels_of(path):
    return gdal.Open(str(path)).ReadAsArray()


def scene_of(path, values, nodata=None, transform=(500000, 10, 0, 4600000, 0, -10)):
    values = np.atleast_3d(values.T).T
    kind = {"uint8": gdal.GDT_Byte, "uint16": gdal.GDT_UInt16, "float32": gdal.GDT_Float32}[str(values.dtype)]
    scene = gdal.GetDriverByName("GTiff").Create(str(path), values.shape[2], values.shape[1], values.shape[0], kind)
    scene.SetGeoTransform(transform)
    for i, plane in enumerate(values, 1):
        scene.GetRasterBand(i).WriteArray(plane)
        if nodata is not None:
            scene.GetRasterBand(i).SetNoDataValue(nodata)
    return path


def test_a_scene_with_a_colour_table_is_shown_in_it(scratch):
    for name, steps, window in (("lc_stars", (), (0, 0, 84, 46)), ("storml_tcc", ["crop: {window: [10, 5, 100, 90]}"], (10, 5, 100, 90))):
        scene = pbtest.DATA / "real/palette" / f"{name}.tif"
        if not scene.is_file():
            raise pbtest.Skip(f"no {scene}")
        source = gdal.Open(str(scene))
        band = source.GetRasterBand(1)
        table = np.array([band.GetColorTable().GetColorEntry(i) for i in range(256)])
        index = band.ReadAsArray(*window)
        valid = (index != (-1 if band.GetNoDataValue() is None else band.GetNoDataValue())) & (table[index][..., 3] > 0)
        shown = pixels_of(make(scratch, scene, ["quicklook: {bands: [B1]}"], out=name, steps=steps) / f"{name}.png")
        assert (shown == np.where(valid, np.moveaxis(table[index], 2, 0), 0)).all(), name
        made = make(scratch, scene, ["quicklook: {bands: [B1], stretch: [0, 100]}", "quicklook: {name: double, bands: [D]}"], out=name + "2",
                    steps=['math: {bands: {D: "B1 * 2"}}'])
        for grey in (made / f"{name}.png", made / f"{name}.double.png"):
            assert gdal.Open(str(grey)).RasterCount == 2, f"{grey}: levels were asked for, or the band is none of the scene"


def gdaldem(scratch, scene, colours, *options):
    out = scratch / "relief.tif"
    subprocess.run(["gdaldem", "color-relief", "-alpha", "-q", *options, scene, colours, out], check=True)
    return pixels_of(out)


def test_colour_files_give_what_gdaldem_gives(scratch):
    numbers = np.random.default_rng(7)
    values = numbers.normal(500, 400, (180, 240)).astype(np.float32)
    values[::9, ::7] = -9999
    scene = scene_of(scratch / "dem.tif", values, -9999)
    whole = scene_of(scratch / "classes.tif", numbers.integers(0, 12, (90, 70)).astype(np.uint8), 11)
    relief = scratch / "relief.txt"
    relief.write_text("# heights\nnv 10 20 30 40\n-200 blue\n0 0 80 120 200\n1 60:140:60\n300.5,220,220,120\n900 brown 128\n2000 white\n")
    classes = scratch / "classes.txt"
    classes.write_text("nv 1 1 1 255\n" + "".join(f"{i} {20 * i} {255 - 20 * i} {i}\n" for i in (1, 2, 3, 5, 8)))
    for source, colours, between, option in ((scene, relief, "blend", ()), (scene, relief, "nearest", ("-nearest_color_entry",)),
                                             (whole, classes, "exact", None), (whole, classes, "nearest", ("-nearest_color_entry",))):
        size = f"size: 240, bands: [B1], colours: {colours.name}, between: {between}"  # relative: beside the configuration
        shown = pixels_of(make(scratch, source, [f"quicklook: {{{size}}}"], out=f"{source.stem}-{between}-{colours.stem}") / f"{source.stem}.png")
        if option is None:  # that of gdaldem 3.6 finds the first entry alone
            index = pixels_of(source)
            want = np.zeros((4, *index.shape), np.uint8)
            for i in (1, 2, 3, 5, 8):
                want[:, index == i] = np.array([[20 * i], [255 - 20 * i], [i], [255]])
            want[:, index == 11] = np.array([[1], [1], [1], [255]])
        else:
            want = gdaldem(scratch, source, colours, *option)
        assert (shown == want).all(), (source, between, np.argwhere((shown != want).any(0))[:5])


def test_a_colour_file_with_a_mistake_is_told_by_line(scratch):
    (scratch / "bad.txt").write_text("0 red\n\n10 0 300 0\n")
    config = config_of(scratch, ["quicklook: {bands: [B1], colours: bad.txt}"])
    said = pbtest.run("pushbroom", "check-config", config, code=2)
    said = said.stdout + said.stderr
    assert "c.yaml:5:43" in said and f"{scratch}/bad.txt:3: '300' is no level" in said, said
    (scratch / "bad.txt").write_text("0 red\n5 blue\n")
    config = config_of(scratch, ["quicklook: {bands: [B1], colours: bad.txt, range: [0, 1]}"])
    said = pbtest.run("pushbroom", "check-config", config, code=2)
    assert "have values of their own" in said.stdout + said.stderr, said


if __name__ == "__main__":
    pbtest.main(globals())
