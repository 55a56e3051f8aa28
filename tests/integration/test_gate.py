#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: threads sanitized
"""gate: tiles that it leaves out are not decoded, and no product shows it: the bytes are those of the same pipeline that masks
in math, whatever the layout of files, the tiles and the threads; pixels are numpy's."""
import hashlib
import json
import pathlib

import numpy as np
from osgeo import gdal, osr

import pbtest
from test_grids import TRANSFORM, same, write

gdal.UseExceptions()
SHAPE = (700, 900)


def clouds(shape, seed=1, share=0.6):
    """A mask of large, contiguous clouds: 1 is clear."""
    y, x = np.mgrid[:shape[0], :shape[1]].astype(np.float64)
    a, b, c = np.random.default_rng(seed).uniform(0, 6, 3)
    height = np.sin(x / 170 + a) + np.sin(y / 130 + b) + np.sin((x + y) / 210 + c)
    return (height > np.quantile(height, share)).astype(np.uint8)


def scene_of(path, layout="BAND", block=64, nodata=0, clear=None):
    """Bands A, B, C and QA, which is 4 where it is clear and 9 under clouds."""
    clear = clouds(SHAPE) if clear is None else clear
    pixels = np.random.default_rng(5).integers(1, 4000, (4, *SHAPE)).astype(np.uint16)
    pixels[1, 40:90, 60:200] = 0
    pixels[3] = np.where(clear, 4, 9)
    options = ["COMPRESS=DEFLATE", f"INTERLEAVE={layout}"] + (["TILED=YES", f"BLOCKXSIZE={block}", f"BLOCKYSIZE={block}"] if block else [])
    out = gdal.GetDriverByName("GTiff").Create(str(path), SHAPE[1], SHAPE[0], 4, gdal.GDT_UInt16, options)
    out.SetGeoTransform(TRANSFORM)
    system = osr.SpatialReference()
    system.ImportFromEPSG(32632)
    out.SetProjection(system.ExportToWkt())
    out.WriteArray(pixels)
    if nodata is not None:
        for i in range(4):
            out.GetRasterBand(i + 1).SetNoDataValue(nodata)
    out = None
    return path, [np.where(p == 0, np.nan, p).astype(np.float32) for p in pixels]


def masked(keep, names="ABC"):
    return "math: {bands: {" + ", ".join(f'{n}: "where({keep}, {n}, 0 / 0)"' for n in names) + "}}"


def gated(keep, minimum=0):
    return f'gate: {{keep: "{keep}", minimum: {minimum}}}'


def compute(scratch, scene, first, steps, bands, settings="{memory: 128MiB, tile: 64, threads: 2}", sources="", name="o"):
    config = scratch / f"{name}.yaml"
    config.write_text(f"""compute: {settings}
pipelines:
  p:
    input:
      bands: {{A: 1, B: 2, C: 3, QA: 4}}
{sources}
    steps:
{''.join(f'      - {s}' + chr(10) for s in [first, *steps])}
    products:
      - cog: {{bands: [{', '.join(bands)}], type: float32, blocksize: 64}}
      - cog: {{name: whole, bands: [{bands[0]}], type: uint16, nodata: 65535, blocksize: 64}}
      - statistics: {{bands: [{', '.join(bands)}]}}
      - quicklook: {{bands: [{bands[0]}], size: 200}}
      - stac: {{datetime: file-time}}
""")
    return pbtest.run_json("pushbroom", "run", "--json", "-c", config, "-o", scratch / name, "--existing", "version", scene)[0]


def digests(report):
    """SHA-256 of all products but the STAC item, which has the steps and the time."""
    return {pathlib.Path(p["path"]).name: hashlib.sha256(open(p["path"], "rb").read()).hexdigest()
            for p in report["products"] if p["type"] != "stac"}


def pixels_of(report):
    return gdal.Open([p["path"] for p in report["products"] if p["type"] == "cog"][0]).ReadAsArray()


def tiles(report, stage):
    return [s["tiles"] for s in report["report"]["stages"] if s["name"] == stage][0]


CHAINS = (
    ([], ["A", "C"]),
    (['math: {bands: {N: "(A - B) / (A + B)"}}'], ["N", "A"]),
    (["convolve: {kernel: box, size: 9, bands: {S: A}}", "median: {size: 5, bands: {M: B}}"], ["S", "M"]),
    (["texture: {measure: mean, size: 7, bands: {S: A}}", "convolve: {kernel: gaussian, size: 15, bands: [S]}"], ["S"]),
    (["crop: {window: [70, 33, 611, 402], bands: [A, B]}", "roughness: {size: 7, bands: {R: A}}"], ["R", "B"]),
    (["texture: {measure: mean, size: 5, bands: [A]}", "crop: {window: [70, 33, 611, 402], bands: [A]}"], ["A"]),
    (["resample: {factor: 1.7, method: bilinear, bands: [A, B]}"], ["A", "B"]),
    (["stretch: {bands: [A, B], percentiles: [3, 90]}", "median: {bands: [A]}"], ["A", "B"]),
)
THREADED = 3, 7  # those that the thread sanitizer runs: neighbours, and two passes


@pbtest.not_about_memory
def test_products_are_those_of_masking_to_the_byte(scratch):
    scene, bands = scene_of(scratch / "s.tif")
    for i, (steps, wanted) in enumerate(CHAINS):
        if pbtest.FOR_RACES and i not in THREADED or pbtest.SANITIZED and i % 2 == 0:  # odd ones have several threads
            continue
        settings = "{memory: 128MiB, tile: 64, threads: 3}" if i % 2 else "{memory: 128MiB, tile: 128, threads: 1}"
        report = compute(scratch, scene, gated("QA < 8"), steps, wanted, settings, name=f"g{i}")
        if not pbtest.FOR_RACES:
            without = compute(scratch, scene, masked("QA < 8"), steps, wanted, name=f"m{i}")
            assert "gate" not in without["report"], without["report"]
            assert digests(report) == digests(without), (steps, settings)
        gate = report["report"]["gate"]
        assert gate["why"] is None and 0 < gate["left_out"] < gate["tiles"] and gate["blocks_not_decoded"] > 0, (steps, gate)
        assert tiles(report, "compute") == gate["tiles"] - gate["left_out"] and tiles(report, "write") == gate["tiles"], (steps, report["report"])
    report = compute(scratch, scene, gated("QA < 8"), [], ["A", "C"])
    same(pixels_of(report), np.where(bands[3] < 8, np.stack([bands[0], bands[2]]), np.nan), "masked pixels")


@pbtest.not_about_memory
@pbtest.not_about_threads
def test_what_is_left_out_is_what_has_no_clear_pixel(scratch):
    """The numbers of the report, from numpy: tiles of 64 without and with a neighbourhood, and blocks that no tile needs."""
    clear = clouds(SHAPE)
    scene, _ = scene_of(scratch / "s.tif", nodata=None, clear=clear)
    for halo, steps in ((0, []), (4, ["convolve: {kernel: box, size: 9, bands: [A, B, C]}"])):
        cloudy, blocks = 0, np.zeros((11, 15), bool)
        for y in range(0, SHAPE[0], 64):
            for x in range(0, SHAPE[1], 64):
                window = clear[max(0, y - halo):y + 64 + halo, max(0, x - halo):x + 64 + halo]
                cloudy += not window.any()
                if window.any():
                    ys = slice(max(0, y - halo) // 64, (min(SHAPE[0], y + 64 + halo) - 1) // 64 + 1)
                    blocks[ys, max(0, x - halo) // 64:(min(SHAPE[1], x + 64 + halo) - 1) // 64 + 1] = True
        gate = compute(scratch, scene, gated("QA < 8"), steps, ["A", "B", "C"])["report"]["gate"]
        assert gate == {"tiles": 11 * 15, "left_out": cloudy, "blocks_not_decoded": 3 * int((~blocks).sum()), "why": None}, (halo, gate)
        assert cloudy > 50, cloudy


@pbtest.not_about_memory
@pbtest.not_about_threads
def test_other_layouts_of_files(scratch):
    """Adjacent pixels decode together; strips, each of which is clear somewhere; a mask in a file of its own, at half the size, brought onto the grid."""
    _, bands = scene_of(scratch / "s.tif")
    expected = {}
    for layout, block in (("BAND", 64), ("PIXEL", 64), ("PIXEL", 128), ("BAND", 0), ("PIXEL", 0)):
        scene, _ = scene_of(scratch / "s.tif", layout, block)
        report = compute(scratch, scene, gated("QA < 8"), ["roughness: {size: 5, bands: {R: A}}"], ["R", "B"])
        expected = expected or digests(report)
        gate = report["report"]["gate"]
        assert digests(report) == expected, (layout, block)
        assert gate["left_out"] > 30 and (gate["blocks_not_decoded"] > 0) == (layout == "BAND" and block > 0), (layout, block, gate)
    small = clouds(SHAPE)[::2, ::2]
    write(scratch / "scl.tif", np.where(small, 4, 9).astype(np.uint8), transform=(500000, 20, 0, 4000000, 0, -20), nodata=None)
    source = f"      sources: {{SCL: {{file: {scratch}/scl.tif, bands: {{SCL: 1}}}}}}"
    onto = "resample: {like: A, method: nearest, bands: [SCL]}"
    scene, _ = scene_of(scratch / "s.tif")
    made = [compute(scratch, scene, onto, [first, "texture: {measure: mean, size: 5, bands: {S: A}}"], ["S", "B"], sources=source, name=n)
            for first, n in ((masked("SCL < 8"), "m"), (gated("SCL < 8"), "g"))]
    assert digests(made[0]) == digests(made[1])
    assert made[1]["report"]["gate"]["left_out"] > 30 and made[1]["report"]["gate"]["blocks_not_decoded"] > 0, made[1]["report"]["gate"]
    same(pixels_of(made[1])[1], np.where(np.kron(small, np.ones((2, 2)))[:SHAPE[0], :SHAPE[1]] > 0, bands[1], np.nan), "mask of another size")


@pbtest.not_about_threads
def test_gate_works_with_file_mask_and_neighbour_mask(scratch):
    scene, bands = scene_of(scratch / "s.tif", nodata=None)
    data = gdal.Open(str(scene), gdal.GA_Update)
    gdal.SetConfigOption("GDAL_TIFF_INTERNAL_MASK", "YES")
    data.CreateMaskBand(gdal.GMF_PER_DATASET)
    inside = np.zeros(SHAPE, np.uint8)
    inside[100:500, 200:640] = 255
    data.GetRasterBand(1).GetMaskBand().WriteArray(inside)
    data = None
    grown = 'math: {bands: {CLOUD: "QA > 8"}}', "convolve: {kernel: box, size: 7, bands: [CLOUD]}"
    made = [compute(scratch, scene, grown[0], [grown[1], first], ["A", "C"], name=n)
            for first, n in ((masked("CLOUD < 0.01"), "m"), (gated("CLOUD < 0.01"), "g"))]
    assert digests(made[0]) == digests(made[1])
    gate = made[1]["report"]["gate"]
    assert gate["left_out"] > 80 and gate["blocks_not_decoded"] > 0, gate


@pbtest.not_about_memory
@pbtest.not_about_threads
def test_all_clouds_and_none(scratch):
    for clear, left_out in ((np.zeros(SHAPE), 165), (np.ones(SHAPE), 0)):
        scene, _ = scene_of(scratch / "s.tif", clear=clear)
        made = [compute(scratch, scene, first, ["stretch: {bands: [B]}"], ["A", "B"], name=n)
                for first, n in ((masked("QA < 8"), "m"), (gated("QA < 8"), "g"))]
        assert digests(made[0]) == digests(made[1]), left_out
        gate = made[1]["report"]["gate"]
        assert gate["left_out"] == left_out * (gate["tiles"] // 165), gate


def test_share_is_of_fixed_squares_of_the_scene(scratch):
    clear = clouds(SHAPE, share=0.85)
    scene, bands = scene_of(scratch / "s.tif", clear=clear)
    expected = np.where(clear, bands[0], np.nan)
    for y in range(0, SHAPE[0], 512):
        for x in range(0, SHAPE[1], 512):
            square = clear[y:y + 512, x:x + 512]
            if square.mean() < 0.15:
                expected[y:y + 512, x:x + 512] = np.nan
    assert 0 < np.isfinite(expected).sum() < clear.sum()
    made = [compute(scratch, scene, gated("QA < 8", 0.15), [], ["A"], f"{{memory: {m}MiB, tile: {t}, threads: {n}}}")
            for m, t, n in ((128, 64, 2), (128, 256, 1), (256, 1024, 3), (128, 0, 2))]
    for report in made:
        same(pixels_of(report), expected, "squares")
        assert digests(report) == digests(made[0])
    item = json.load(open([p["path"] for p in made[0]["products"] if p["type"] == "stac"][0]))
    assert "Step gate: keep = QA < 8, minimum = 0.15." in item["properties"]["processing:lineage"], item["properties"]["processing:lineage"]


@pbtest.not_about_threads
def test_what_keeps_tiles_from_being_left_out_is_said(scratch):
    scene, _ = scene_of(scratch / "s.tif")
    keep = 'gate: {keep: "QA < 8", bands: [A]}'
    for first, steps, bands, words in ((keep, [], ["A", "B"], "band B is valid also where nothing passes"),
                                       (gated("QA < 8"), ['math: {bands: {ONE: "1"}}'], ["A", "ONE"], "band ONE is valid"),
                                       ("stretch: {bands: {S: A}}", [gated("S < 0.5")], ["A"], "numbers of the whole image")):
        report = compute(scratch, scene, first, steps, bands)
        assert words in report["report"]["gate"]["why"] and report["report"]["gate"]["left_out"] == 0, report["report"]
        told = pbtest.run("pushbroom", "run", "--dry-run", "-c", scratch / "o.yaml", "-o", scratch / "x", scene).stdout
        assert words in told, told
    compute(scratch, scene, gated("QA < 8"), [], ["A"])
    told = pbtest.run("pushbroom", "run", "--dry-run", "-c", scratch / "o.yaml", "-o", scratch / "x", scene).stdout
    assert "tiles without a pixel that passes" in told, told


@pbtest.not_about_threads
def test_mistakes_have_their_place(scratch):
    for text, words in (('gate: {keep: "QA <"}', ":6:27: gate: "), ('gate: {keep: "QB < 8"}', "did you mean 'QA'?"), ('gate: {keep: "1"}', "'keep' reads no band"),
                        ("gate: {}", "'gate' needs 'keep'"), ("gate: {keep: [QA]}", "gate.keep must be an expression"),
                        ("gate: {keep: QA, minimum: 2}", "minimum"), ('gate: {keep: QA}\n      - gate: {keep: A}', "the second gate")):
        config = scratch / "c.yaml"
        config.write_text(f"""pipelines:
  p:
    input:
      bands: {{A: 1, QA: 2}}
    steps:
      - {text}
    products: [{{statistics: {{bands: [A]}}}}]
""")
        done = pbtest.run("pushbroom", "check-config", config, code=None)
        assert done.returncode == 2 and words in done.stdout + done.stderr, (text, done.stdout, done.stderr)


if __name__ == "__main__":
    pbtest.main()
