#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: sanitized
"""Steps that need numbers of the whole image before its pixels can be made: the numbers, the passes over the scene for them,
and their report. Random chains with stretches are in test_grids.py."""
import json

import numpy as np
from osgeo import gdal

import pbtest
from test_grids import compute, config_of, ends, product, same, stretch, write, Band


def pixels_of(report):
    return gdal.Open(product(report, "cog")).ReadAsArray()


def tiles_written(report):
    return [s["tiles"] for s in report["report"]["stages"] if s["name"] == "write"][0]


def scene_of(scratch, kind=np.uint16, shape=(300, 400)):
    numbers = np.random.default_rng(3)
    pixels = numbers.gamma(2, 300, (2, *shape)).astype(kind)
    return write(scratch / "s.tif", pixels), [Band(np.where(p == 0, np.nan, p)) for p in pixels]


@pbtest.not_about_memory
def test_band_is_read_once_more_other_values_twice(scratch):
    scene, (a, _) = scene_of(scratch)
    tile = "{memory: 64MiB, tile: 512}"
    for steps, last, passes in ((["stretch: {bands: [A], high: 255}"], "A", 1),
                                (["stretch: {bands: {X: A}, mask: B}"], "X", 1),
                                (["stretch: {bands: {X: A}, method: stddev}"], "X", 1),
                                (['math: {bands: {X: "A * 0.5 + B"}}', "stretch: {bands: [X]}"], "X", 2),
                                (["stretch: {bands: [A, B]}", "stretch: {bands: {X: A}, method: minmax}"], "X", 2),
                                (["stretch: {bands: {X: A}}"], "A", 0)):
        report = compute(scratch, scene, "AB", steps, [last], tile)
        assert tiles_written(report) == 1 + passes, (steps, tiles_written(report))
    explained = pbtest.run("pushbroom", "run", "--dry-run", "-c", config_of(scratch, ["stretch: {bands: [A]}"], ["A"]), "-o", scratch / "o", scene).stdout
    assert "1 pass over the scene for 1 reduction" in explained, explained


@pbtest.not_about_threads
def test_stddev_and_stretch_of_a_stretch_equal_numpy(scratch):
    scene, (a, b) = scene_of(scratch)
    report = compute(scratch, scene, "AB", ["stretch: {bands: {X: A}, method: stddev, deviations: 1.5, beyond: keep}",
                                            "stretch: {bands: {Y: X}, percentiles: [5, 90], low: 10, high: -10}"], ["X", "Y"])
    made = pixels_of(report)
    mean, width = np.float32(np.nanmean(a.pixels.astype(np.float64))), np.float32(np.nanstd(a.pixels.astype(np.float64))) * np.float32(1.5)
    assert np.nanmax(np.abs(made[0] - stretch(a, mean - width, mean + width, 0, 1, False).pixels)) < 1e-6
    x = a.on(made[0])
    same(made[1], stretch(x, *ends(x.pixels, "percentiles", [5, 90]), 10, -10, True).pixels, "a stretch of a stretch")
    found = report["report"]["reductions"]
    assert [(r["step"], r["band"]) for r in found] == [(1, "X"), (2, "Y")], found
    names = [[x["name"] for x in r["results"]] for r in found]
    assert names == [["mean", "standard deviation", "minimum", "maximum"], ["percentile 5", "percentile 90"]], names
    assert abs(found[0]["results"][0]["value"] - np.nanmean(a.pixels.astype(np.float64))) < 1e-9, found


@pbtest.not_about_memory
def test_tiles_and_threads_change_nothing(scratch):
    scene, _ = scene_of(scratch, np.float32)
    steps = ["roughness: {bands: {R: A}}", "stretch: {bands: [R, A], percentiles: [0.5, 99.5]}", "resample: {factor: 0.37, bands: [R, A]}",
             "stretch: {bands: [R], method: stddev}"]
    made = [pixels_of(compute(scratch, scene, "AB", steps, ["R", "A"], f"{{memory: 64MiB, tile: {tile}, threads: {threads}}}"))
            for tile, threads in ((64, 1), (64, 3), (128, 2), (512, 1))]
    for other in made[1:]:
        same(other, made[0], "other tiles")


@pbtest.not_about_threads
def test_images_without_a_range(scratch):
    nothing, one = np.zeros((70, 90), np.uint8), np.full((70, 90), 7, np.uint8)
    scene = write(scratch / "s.tif", np.stack([nothing, one]))
    for method in ("percentiles", "minmax", "stddev"):
        made = pixels_of(compute(scratch, scene, "AB", [f"stretch: {{method: {method}, low: 10, high: 20, bands: {{X: A, Y: B}}}}"], ["X", "Y"]))
        assert np.isnan(made[0]).all() and (made[1] == 15).all(), (method, made)
    made = pixels_of(compute(scratch, scene, "AB", ['math: {bands: {C: "3"}}', "stretch: {bands: {X: C}, mask: B}", 'math: {bands: {Y: "X + B * 0"}}'], ["Y"]))
    assert (made == 0.5).all(), made


@pbtest.not_about_threads
def test_a_range_of_one_value_parts_below_and_above(scratch):
    """Most pixels have one value, so both percentiles are that; the others must not be lost."""
    pixels = np.full((100, 100), 5, np.uint16)
    pixels[0, :40], pixels[1, :40] = 1, 900
    scene = write(scratch / "s.tif", pixels)
    made = pixels_of(compute(scratch, scene, "A", ["stretch: {bands: {X: A}, high: 255}", "stretch: {bands: {Y: A}, low: 9, high: 3, beyond: keep}"], ["X", "Y"]))
    assert (made[0] == np.where(pixels < 5, 0, np.where(pixels > 5, 255, 127.5))).all()
    assert (made[1] == 6).all()


@pbtest.not_about_threads
def test_the_widest_range_of_float32(scratch):
    pixels = np.array([[-3e38, -1e38, 0, 1e38, 3e38, 2e38, 5, 7]], np.float32)
    made = pixels_of(compute(scratch, write(scratch / "s.tif", pixels, nodata=None), "A", ["stretch: {bands: {X: A}, method: minmax, high: 100}"], ["X"]))
    assert not np.isnan(made).any() and made[0, 0] == 0 and made[0, 4] == 100 and abs(made[0, 2] - 50) < 1e-4, made
    done = pbtest.run("pushbroom", "check-config", config_of(scratch, ["stretch: {bands: [A], low: -3e38, high: 3e38}"], ["A"]), code=None)
    assert done.returncode != 0 and "high - low" in done.stdout + done.stderr, done


@pbtest.not_about_memory
def test_an_image_without_valid_pixels_ends_early(scratch):
    """One round of two suffices; the reported progress still adds up, or the job would be taken for broken."""
    scene = write(scratch / "s.tif", np.full((6000 if not pbtest.SANITIZED else 1500, 3000), np.nan, np.float32))
    report = compute(scratch, scene, "A", ["stretch: {bands: {X: A}}"], ["X"], "{memory: 256MiB, tile: 64}")
    assert np.isnan(pixels_of(report)).all()


@pbtest.not_about_memory
@pbtest.not_about_threads
def test_the_memory_that_is_named_is_enough(scratch):
    """An amount that a refusal names is accepted, also where an earlier pass needs more than the last one."""
    numbers = np.random.default_rng(2)
    scene = write(scratch / "s.tif", numbers.integers(1, 9000, (6, 700, 900)).astype(np.uint16), block=256)
    names = "ABCDEF"
    for steps in (["stretch: {bands: [A]}"], ["stretch: {}"], ["roughness: {}", "stretch: {}"], ["resample: {factor: 0.5}", "stretch: {}"]):
        config, mib, named = scratch / "m.yaml", 16, []
        for _ in range(3):
            config.write_text(f"""compute: {{memory: {mib}MiB, threads: 8}}
pipelines:
  p:
    input: {{bands: {{{", ".join(f"{b}: {i + 1}" for i, b in enumerate(names))}}}}}
    steps: [{", ".join("{" + s + "}" for s in steps)}]
    products: [{{cog: {{type: float32}}}}, {{quicklook: {{bands: [A], size: 1024}}}}, {{statistics: {{}}}}]
""")
            done = pbtest.run("pushbroom", "run", "--dry-run", "-c", config, "-o", scratch / "o", scene, code=None)
            if done.returncode == 0:
                break
            assert "at least " in done.stderr, done.stderr
            mib = int(done.stderr.split("at least ")[1].split()[0])
            named.append(mib)
        assert done.returncode == 0 and len(named) == 1, (steps, named, done.stderr)


@pbtest.not_about_threads
def test_the_range_is_told(scratch):
    scene, (a, _) = scene_of(scratch)
    report = compute(scratch, scene, "AB", ["stretch: {bands: [A], percentiles: [2, 98]}"], ["A"])
    low, high = np.nanpercentile(a.pixels.astype(np.float64), [2, 98])
    properties = json.load(open(product(report, "stac")))["properties"]
    assert f"(A: percentile 2 = {low:g}, percentile 98 = {high:g})" in properties["processing:lineage"], properties["processing:lineage"]
    assert report["report"]["reductions"] == [
        {"step": 1, "band": "A", "results": [{"name": "percentile 2", "value": low}, {"name": "percentile 98", "value": high}]}], report["report"]


def test_a_source_has_a_range_of_its_own(scratch):
    scene, (a, _) = scene_of(scratch)
    numbers = np.random.default_rng(9)
    other = numbers.integers(1, 200, (150, 200)).astype(np.uint8)
    write(scratch / "q.tif", other, transform=(500000, 20, 0, 4000000, 0, -20))
    report = compute(scratch, scene, "AB", ["stretch: {bands: {Z: Q}, high: 100}", "resample: {like: A, method: nearest, bands: [Z]}"], ["Z"],
                     sources=f"      sources: {{O: {{file: {scratch}/q.tif, bands: {{Q: 1}}}}}}")
    q = Band(other)
    small = stretch(q, *ends(q.pixels, "percentiles", [2, 98]), 0, 100, True).pixels
    same(pixels_of(report), np.kron(small, np.ones((2, 2), np.float32)), "the source on the scene's grid")


@pbtest.not_about_threads
def test_mistakes_say_what_to_do(scratch):
    scene, _ = scene_of(scratch)
    for steps, words in ((["stretch: {bands: [A], percentiles: [98, 2]}"], "percentiles"),
                         (["stretch: {bands: [A], mask: MASK}"], "no band 'MASK' here"),
                         (["resample: {factor: 0.5, bands: {M: B}}", "stretch: {bands: [A], mask: M}"], "bands on different grids"),
                         (["stretch: {bands: [A], method: best}"], "percentiles, minmax")):
        config = config_of(scratch, steps, ["A"])
        config.write_text(config.read_text().replace("{A: 1}", "{A: 1, B: 2}"))
        done = pbtest.run("pushbroom", "run", "-c", config, "-o", scratch / "out", scene, code=None)
        assert done.returncode != 0 and words in done.stderr, (words, done.stdout, done.stderr)


if __name__ == "__main__":
    pbtest.main()
