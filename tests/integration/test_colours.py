#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: sanitized
"""Colours of products: the colour tables of scenes, ramps, colour files as gdaldem reads them."""
import json
import subprocess
import sys

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
        size = f"size: 240, bands: [B1], colours: {colours.name}, between: {between}"  # relative to the configuration
        shown = pixels_of(make(scratch, source, [f"quicklook: {{{size}}}"], out=f"{source.stem}-{between}-{colours.stem}") / f"{source.stem}.png")
        if option is None:  # exact colours of gdaldem 3.6 are those of the first entry alone
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


def scene_of_reflectance(scratch, shape=(700, 900)):
    numbers = np.random.default_rng(11)
    values = (1 + numbers.gamma(3, 400, (3, *shape))).astype(np.uint16)
    values[:, :40, :60] = 0  # in all bands
    values[1, 300:310, 5:9] = 0
    return scene_of(scratch / "s.tif", values, 0), values


def levels(values, low, high):
    """Rounds like a quicklook's levels: halves upwards."""
    with np.errstate(invalid="ignore"):
        t = np.clip((values - low) / (high - low), 0, 1)
    return np.where(np.isnan(values), 0, np.floor(t * 255 + 0.5)).astype(np.uint8)


def info_of(path):
    source = gdal.Open(str(path))
    bands = [source.GetRasterBand(i + 1) for i in range(source.RasterCount)]
    return [(gdal.GetColorInterpretationName(b.GetColorInterpretation()), b.GetDescription(), b.GetNoDataValue()) for b in bands]


def test_three_bands_stretch_between_exact_percentiles(scratch):
    scene, values = scene_of_reflectance(scratch)
    out = make(scratch, scene, ["cog: {bands: [R, G, B], stretch: [2, 98], valid: all}", "cog: {name: n, bands: [R, G, B], stretch: [2, 98], nodata: 0, valid: all}",
                                "cog: {name: m, bands: [R, G, B], range: [0, 3000], mask: true, valid: all}", "cog: {name: g, bands: [G], stretch: [0, 100]}",
                                "stac: {datetime: file-time}"], bands="bands: {B: 1, G: 2, R: 3}")
    numbers = np.where(values == 0, np.nan, values).astype(np.float64)[::-1]
    seen = ~np.isnan(numbers).any(0)
    made = pixels_of(out / "s.tif")
    # The ends are each band's own; a pixel is seen where all are valid. The step computes in float32.
    ends = [[np.float32(np.nanpercentile(plane, p)) for p in (2, 98)] for plane in numbers]
    want = np.array([np.where(seen, levels(plane, *e), 0) for plane, e in zip(numbers, ends)])
    assert (np.abs(made[:3].astype(int) - want) <= 1).all()
    step = make(scratch, scene, ["cog: {}"], out="step", bands="bands: {B: 1, G: 2, R: 3}", steps=["stretch: {bands: {X: R, Y: G, Z: B}}"])
    assert (made[:3] == np.where(seen, levels(pixels_of(step / "s.tif").astype(np.float64), 0, 1), 0)).all(), "it is what the step makes"
    assert (made[3] == np.where(seen, 255, 0)).all()
    assert info_of(out / "s.tif") == [("Red", "R", None), ("Green", "G", None), ("Blue", "B", None), ("Alpha", "alpha", None)], info_of(out / "s.tif")
    assert (pixels_of(out / "s.n.tif") == np.where(seen, np.maximum(made[:3], 1), 0)).all(), "valid pixels keep off nodata"
    assert [n for _, _, n in info_of(out / "s.n.tif")] == [0, 0, 0]
    masked = gdal.Open(str(out / "s.m.tif"))
    assert (masked.ReadAsArray() == np.where(seen, levels(numbers, 0, 3000), 0)).all()
    assert (masked.GetRasterBand(1).GetMaskBand().ReadAsArray() == np.where(seen, 255, 0)).all() and masked.RasterCount == 3
    assert [i for i, _, _ in info_of(out / "s.g.tif")] == ["Gray", "Alpha"]
    item = json.loads((out / "s.stac.json").read_text())
    assert [b["name"] for b in item["assets"]["data"]["bands"]] == ["R", "G", "B", "alpha"], item["assets"]["data"]["bands"]
    assert "percentile" in json.dumps(item), "the numbers of the stretch are told"


def test_ramp_is_the_same_in_a_cog_and_in_a_quicklook(scratch):
    scene, values = scene_of_reflectance(scratch)
    ramp = scratch / "ramp.txt"
    ramp.write_text("0% blue\n50% white\n100% 200 0 0 128\n")
    for i, colours in enumerate(("ramp: viridis, range: [100, 4000]", "ramp: terrain, range: [4000, 100]", "colours: ramp.txt, range: [0, 2500]")):
        out = make(scratch, scene, [f"cog: {{bands: [G], {colours}}}", f"quicklook: {{bands: [G], size: 900, {colours}}}"], out=f"o{i}", bands="bands: {G: 2}")
        made = pixels_of(out / "s.tif")
        assert (made == pixels_of(out / "s.png")).all(), colours
        assert ((made[3] == 0) == (values[1] == 0)).all() and info_of(out / "s.tif")[0][0] == "Red"
    item = json.loads((make(scratch, scene, [f"cog: {{bands: [G], {colours}}}", "quicklook: {bands: [G], ramp: viridis}", "stac: {datetime: file-time}"], out="legend",
                            bands="bands: {G: 2}") / "s.stac.json").read_text())
    assert item["assets"]["data"]["pushbroom:colours"] == {"range": [0, 2500], "between": "blend", "stops": [
        ["0%", "#0000ffff"], ["50%", "#ffffffff"], ["100%", "#c8000080"]]}, item["assets"]["data"]
    assert item["assets"]["quicklook"]["pushbroom:colours"] == {"ramp": "viridis", "percentiles": [2, 98]}, item["assets"]["quicklook"]
    (scratch / "absolute.txt").write_text("0 blue\n1250 white\n2500 200 0 0 128\n")
    out = make(scratch, scene, ["cog: {bands: [G], colours: absolute.txt}"], out="absolute", bands="bands: {G: 2}")
    assert (made == pixels_of(out / "s.tif")).all()


def test_overviews_average_values_and_are_then_painted(scratch):
    numbers = np.random.default_rng(5)
    values = numbers.choice([0, 1000], (1100, 1300)).astype(np.float32)
    scene = scene_of(scratch / "v.tif", values)
    ramp = scratch / "steps.txt"
    ramp.write_text("".join(f"{v} {v // 5} 0 0\n" for v in range(0, 1001, 125)))
    out = make(scratch, scene, ["cog: {bands: [B1], colours: steps.txt, between: nearest}", "cog: {name: f, bands: [B1]}",
                                "cog: {name: e, bands: [B1], colours: steps.txt, between: exact}"])
    half = gdal.Open(str(out / "v.f.tif"))
    half = half.GetRasterBand(1).GetOverview(0).ReadAsArray()
    picture = gdal.Open(str(out / "v.tif"))
    red = picture.GetRasterBand(1).GetOverview(0).ReadAsArray()
    assert len(np.unique(red)) == 5 and (red == np.round(half / 5)).all()
    exact = gdal.Open(str(out / "v.e.tif"))
    assert set(np.unique(exact.GetRasterBand(1).GetOverview(0).ReadAsArray())) == {0, 200}, "of what is no measurement no averages are made"


@pbtest.not_about_memory
def test_pictures_do_not_depend_on_tiles_and_threads(scratch):
    scene, _ = scene_of_reflectance(scratch)
    products = ["cog: {bands: [R, G, B], stretch: [1, 99], blocksize: 64}", "cog: {name: v, bands: [X], ramp: magma, stretch: [5, 95], blocksize: 64}"]
    sums = set()
    for i, compute in enumerate(("{threads: 1, tile: 64}", "{threads: 3, tile: 256}", "{threads: 2}")):
        out = make(scratch, scene, products, out=f"o{i}", bands="bands: {B: 1, G: 2, R: 3}", steps=['math: {bands: {X: "(R - G) / (R + G)"}}'], compute=compute)
        sums.add(((out / "s.tif").read_bytes(), (out / "s.v.tif").read_bytes()))
    assert len(sums) == 1


def test_lossy_codecs_come_back_nearly_and_are_cogs(scratch):
    """Fields with edges; 700 x 900 is no multiple of a block."""
    numbers = np.random.default_rng(2)
    y, x = np.mgrid[0:700, 0:900]
    values = np.stack([800 + 300 * np.sin(x / 90 + b) + 200 * np.cos(y / 70) + 400 * ((x // 60 + y // 45) % 3 == b) for b in range(3)])
    values = (values + numbers.normal(0, 5, values.shape)).astype(np.uint16)
    values[:, :60, :80] = 0
    scene = scene_of(scratch / "s.tif", values, 0)
    rgb, grey = "bands: [R, G, B], range: [0, 2000]", "bands: [G], range: [0, 2000]"
    wanted = {"j": f"{rgb}, compress: jpeg, quality: 90", "g": f"{grey}, compress: jpeg, quality: 90, blocksize: 128",
              "w": f"{rgb}, compress: webp, quality: 90", "l": f"{rgb}, compress: webp, quality: 100", "m": f"{rgb}, compress: webp, mask: true, quality: 90",
              "u": "bands: [UR, UG, UB], type: uint8, mask: true, compress: jpeg", "rgb": f"{rgb}", "grey": f"{grey}, mask: true"}
    steps = ['math: {bands: {UR: "R / 10", UG: "G / 10", UB: "B / 10"}}']
    products = [f"cog: {{name: {name}, {keys}}}" for name, keys in wanted.items()]
    out = make(scratch, scene, products, bands="bands: {B: 1, G: 2, R: 3}", steps=steps)
    again = make(scratch, scene, products, out="again", bands="bands: {B: 1, G: 2, R: 3}", steps=steps, compute="{threads: 1, tile: 512}")

    def levels_of(name, overview=None):
        source = gdal.Open(str(out / f"s.{name}.tif"))
        bands = [source.GetRasterBand(i + 1) for i in range(source.RasterCount)]
        bands = bands if overview is None else [b.GetOverview(overview) for b in bands]
        mask = bands[0].GetMaskBand().ReadAsArray()
        return np.array([b.ReadAsArray() for b in bands]).astype(int), mask, source.GetMetadataItem("COMPRESSION", "IMAGE_STRUCTURE")

    for name, codec, like in (("j", "YCbCr JPEG", "rgb"), ("g", "JPEG", "grey"), ("w", "WEBP", "rgb"), ("l", "WEBP", "rgb"), ("m", "WEBP", "rgb")):
        assert (out / f"s.{name}.tif").read_bytes() == (again / f"s.{name}.tif").read_bytes(), f"{name}: threads and tiles change the bytes"
        for overview in (None, 0):
            found, mask, said = levels_of(name, overview)
            want, seen, _ = levels_of(like, overview)
            assert said == codec and (mask == seen).all(), (name, said)
            inside = seen > 0
            n = min(len(found), 3 if like == "rgb" else 1)
            apart = np.abs(found[:n] - want[:n])[:, inside]
            # The last column and row return as well as others do, for any values beyond the image.
            edge = np.abs(found[:n] - want[:n])[:, -4:, -4:].mean()
            assert apart.mean() < (0.001 if name == "l" else 4) and edge < 12, (name, overview, apart.mean(), edge)
        checked = subprocess.run([sys.executable, "-m", "osgeo_utils.samples.validate_cloud_optimized_geotiff", out / f"s.{name}.tif"], capture_output=True, text=True)
        assert checked.returncode == 0 and "is a valid cloud optimized GeoTIFF" in checked.stdout, checked.stdout + checked.stderr
    small, whole = (out / "s.j.tif").stat().st_size, (out / "s.rgb.tif").stat().st_size
    assert small < whole / 3, (small, whole)
    assert levels_of("u")[2] == "YCbCr JPEG", "levels that a step makes are stored as they are"


if __name__ == "__main__":
    pbtest.main()
