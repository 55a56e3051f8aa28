#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: threads sanitized
"""Small areas of class rasters, against GDALSieveFilter: every pixel of real and random rasters, ties and chains among them,
whatever the tiles and the threads; with steps before and after it."""
import os
import random

import numpy as np
from osgeo import gdal

import pbtest
from test_grids import compute, config_of, product, same, write

F = np.float32
TILES = "{memory: 64MiB, tile: 64, threads: 3}"


def in_memory(array, kind):
    out = gdal.GetDriverByName("MEM").Create("", array.shape[1], array.shape[0], 1, kind)
    out.GetRasterBand(1).WriteArray(array)
    return out


def sieved(band, size, connectivity=4, taken=None):
    """Sieves float32 values; NaN and pixels that are not taken stay."""
    taken = ~np.isnan(band) & (True if taken is None else taken)
    values, number = np.unique(np.where(taken, band, 0), return_inverse=True)
    source, mask = in_memory(number.reshape(band.shape).astype(np.int32), gdal.GDT_Int32), in_memory(taken.astype(np.uint8), gdal.GDT_Byte)
    made = in_memory(np.zeros(band.shape, np.int32), gdal.GDT_Int32)
    gdal.SieveFilter(source.GetRasterBand(1), mask.GetRasterBand(1), made.GetRasterBand(1), size, connectivity)
    return np.where(taken, values[made.ReadAsArray()], band).astype(F)


def valid(pixels):
    return np.where(pixels == 0, np.nan, pixels).astype(F)


def pixels_of(report):
    return gdal.Open(product(report, "cog")).ReadAsArray()


def run(scratch, scene, step, before=(), after=(), device=TILES, outputs=("A",), bands="A"):
    return compute(scratch, scene, bands, [*before, f"sieve: {{{step}}}", *after], list(outputs), device)


def classes(seed, shape, kind=np.uint8):
    """Classes with noise of several kinds, from 1; some pixels are 0."""
    numbers, choose = np.random.default_rng(seed), random.Random(seed)
    k = choose.randint(2, 6)
    noise = numbers.integers(1, k + 1, shape)
    large = np.kron(numbers.integers(1, k + 1, (shape[0] // 9 + 1, shape[1] // 9 + 1)), np.ones((9, 9), int))[:shape[0], :shape[1]]
    ramp = 1 + np.cumsum(numbers.random(shape) < 0.3, axis=1) % (9 * k)
    pixels = choose.choice([noise, ramp, np.where(numbers.random(shape) < choose.uniform(0.02, 0.5), noise, large)]).astype(kind)
    if choose.random() < 0.5:
        pixels[numbers.random(shape) < 0.1] = 0
    return pixels


# --- tests ---


@pbtest.not_about_threads
def test_random_rasters_are_those_of_gdal(scratch):
    choose = random.Random(3)
    for seed in range(6 if pbtest.SANITIZED else 20):
        shape = (choose.randint(1, 210), choose.randint(1, 260))
        pixels, size, connectivity = classes(seed, shape), choose.choice([2, 3, 8, 30, 400]), choose.choice([4, 8])
        device = f"{{memory: 64MiB, tile: {choose.choice([64, 128, 256])}, threads: {choose.randint(1, 4)}}}"
        report = run(scratch, write(scratch / "s.tif", pixels), f"bands: [A], size: {size}, connectivity: {connectivity}", device=device)
        same(pixels_of(report), sieved(valid(pixels), size, connectivity), f"raster {seed} {shape}: {size}, {connectivity}")


@pbtest.not_about_threads
@pbtest.not_about_memory
def test_chains_of_small_areas_end_as_those_of_gdal(scratch):
    """Stripes that grow along the image lead to its end over many borders of tiles; stripes of one width lead nowhere."""
    for widths in (range(1, 22), [3] * 60, [1, 2, 3, 40, 3, 2, 1] * 4, [5, 4, 6, 5, 7, 6, 30, 2, 2]):
        row = np.repeat(1 + np.arange(len(widths)) % 250, list(widths)).astype(np.uint8)
        for size in (4, 20, 21, 22):
            for pixels in (row[None], np.ascontiguousarray(row[:, None])):
                report = run(scratch, write(scratch / "s.tif", pixels), f"bands: [A], size: {size}", device="{memory: 64MiB, tile: 64, threads: 1}")
                same(pixels_of(report), sieved(valid(pixels), size), f"{pixels.shape}: {size}")


@pbtest.not_about_threads
@pbtest.not_about_memory
def test_a_real_classification_is_that_of_gdal(scratch):
    path = pbtest.sentinel2_files("SCL.tif")["SCL.tif"]
    scl = valid(gdal.Open(str(path)).ReadAsArray())
    for size, connectivity, tile in ((2, 4, 64), (12, 8, 128), (100, 4, 512)):
        report = run(scratch, path, f"bands: [A], size: {size}, connectivity: {connectivity}", device=f"{{memory: 128MiB, tile: {tile}, threads: 2}}")
        expected = sieved(scl, size, connectivity)
        same(pixels_of(report), expected, f"{size}, {connectivity}")
        assert (expected[~np.isnan(scl)] != scl[~np.isnan(scl)]).any()


@pbtest.not_about_memory
def test_tiles_and_threads_change_nothing(scratch):
    pixels = classes(5, (600, 700))
    scene, made = write(scratch / "s.tif", pixels), []
    for tile, threads in ((64, 4), (128, 2)) if pbtest.FOR_RACES else ((64, 1), (64, 4), (256, 2), (1024, 1)):
        report = run(scratch, scene, "bands: [A], size: 6", device=f"{{memory: 128MiB, tile: {tile}, threads: {threads}}}")
        made.append(pixels_of(report))
    for other in made[1:]:
        same(other, made[0], "other tiles")


@pbtest.not_about_threads
def test_steps_before_and_after_are_computed_as_ever(scratch):
    pixels = classes(8, (190, 260), np.uint16)
    scene, band = write(scratch / "s.tif", pixels), valid(pixels)
    before = [f'math: {{bands: {{C: "A * 0.5 - 1.25"}}}}']
    c = band * F(0.5) - F(1.25)
    report = run(scratch, scene, "bands: {D: C}, size: 9", before, ['math: {bands: {E: "D - C"}}'], outputs=("A", "C", "D", "E"))
    made, expected = pixels_of(report), sieved(c, 9)
    for plane, wanted in zip(made, (band, c, expected, expected - c)):
        same(plane, wanted, "fractions and negative numbers")
    window = "crop: {window: [33, 20, 150, 130]}"
    report = run(scratch, scene, "bands: [A], size: 9", after=[window])
    same(pixels_of(report), sieved(band, 9)[20:150, 33:183], "cropped after")
    report = run(scratch, scene, "bands: [A], size: 9", before=[window])
    same(pixels_of(report), sieved(band[20:150, 33:183], 9), "cropped before")
    report = run(scratch, scene, "bands: [A], size: 9", after=["median: {size: 3, bands: {M: A}}"], outputs=("A", "M"))
    same(pixels_of(report)[0], sieved(band, 9), "beside a neighbourhood")
    alone = run(scratch, write(scratch / "t.tif", np.nan_to_num(sieved(band, 9)).astype(np.uint16)), "bands: {X: A}, size: 2", before=["median: {size: 3, bands: {M: A}}"], outputs=("M",))
    same(pixels_of(report)[1], pixels_of(alone), "a neighbourhood of it")


@pbtest.not_about_threads
def test_sieves_work_in_sequence_and_in_parallel(scratch):
    one, two = classes(1, (150, 170)), classes(2, (150, 170))
    scene = write(scratch / "s.tif", np.stack([one, two]))
    a, b = valid(one), valid(two)
    report = compute(scratch, scene, "AB", ["sieve: {bands: {X: A, Y: B}, size: 5}", "sieve: {bands: {Z: X}, size: 40, connectivity: 8}", "crop: {window: [10, 10, 90, 77], bands: {V: B}}",
                                            "sieve: {bands: {W: V}, size: 12}"], ["X", "Y", "Z"], TILES)
    made = pixels_of(report)
    same(made[0], sieved(a, 5), "the first")
    same(made[1], sieved(b, 5), "the second")
    same(made[2], sieved(sieved(a, 5), 40, 8), "one after the other")
    report = compute(scratch, scene, "AB", ["crop: {window: [10, 10, 90, 77], bands: {V: B}}", "sieve: {bands: {W: V}, size: 12}"], ["W"], TILES)
    same(pixels_of(report), sieved(b[10:87, 10:100], 12), "on another grid")


def test_it_shares_its_pass_with_numbers_of_the_image(scratch):
    """Percentiles of other values than samples take two rounds; the tiles of the second are not sieved again."""
    pixels = classes(4, (200, 200))
    scene, band = write(scratch / "s.tif", pixels), valid(pixels)
    report = compute(scratch, scene, "A", ['math: {bands: {B: "A * 0.37"}}', "sieve: {bands: {S: A}, size: 7}", "stretch: {bands: {T: B}, high: 100}",
                                           "classify: {bands: [S], classes: 2, init: minmax, as: K}"], ["S", "T", "K"], TILES)
    made, expected = pixels_of(report), sieved(band, 7)
    same(made[0], expected, "sieved")
    good = (band * F(0.37))[~np.isnan(band)].astype(np.float64)
    low, high = np.percentile(good, [2, 98])
    assert np.nanmin(made[1]) == 0 and np.nanmax(made[1]) == 100
    assert {(r["step"], r["band"]) for r in report["report"]["reductions"]} >= {(3, "T"), (4, "S")}
    assert [r["results"][0]["value"] for r in report["report"]["reductions"] if r["band"] == "T"] == [low], (low, high)
    assert set(np.unique(made[2][~np.isnan(made[2])])) == {1, 2}


def test_pixels_outside_the_mask_keep_their_values(scratch):
    pixels = np.stack([classes(6, (130, 150)), np.random.default_rng(6).integers(0, 3, (130, 150)).astype(np.uint8)])
    scene, a, m = write(scratch / "s.tif", pixels), valid(pixels[0]), valid(pixels[1])
    report = compute(scratch, scene, "AB", ['math: {bands: {M: "B - 1"}}', "sieve: {bands: [A], size: 10, mask: M}"], ["A"], TILES)
    same(pixels_of(report), sieved(a, 10, 4, np.isfinite(m) & (m != 1)), "a mask with invalid pixels")


def test_tiles_that_a_gate_leaves_out_are_invalid(scratch):
    pixels = np.stack([classes(7, (200, 260)), np.full((200, 260), 9, np.uint8)])
    pixels[1, 40:150, 60:200] = 1
    scene = write(scratch / "s.tif", pixels)
    kept = np.where(pixels[1] > 5, valid(pixels[0]), F(np.nan))
    report = compute(scratch, scene, "AB", ['gate: {keep: "B > 5", bands: [A]}', "sieve: {bands: [A], size: 10}"], ["A"], TILES)
    same(pixels_of(report), sieved(kept, 10), "behind a gate")
    assert report["report"]["gate"]["left_out"] == 2, report["report"]["gate"]


@pbtest.not_about_threads
def test_classes_that_were_found_are_sieved(scratch):
    numbers = np.random.default_rng(1)
    pixels = (1000 * np.kron(numbers.integers(1, 5, (12, 14)), np.ones((20, 20))) + numbers.normal(0, 700, (240, 280))).clip(1).astype(np.uint16)
    scene = write(scratch / "s.tif", pixels)
    report = compute(scratch, scene, "A", ["classify: {bands: [A], classes: 4, as: K}", "sieve: {bands: {S: K}, size: 50}"], ["K", "S"], TILES)
    made = pixels_of(report)
    same(made[1], sieved(made[0], 50), "sieved classes")
    assert (made[1] != made[0]).mean() > 0.05


@pbtest.not_about_threads
def test_tiles_of_a_grid_are_sieved_each_by_itself(scratch):
    numbers = np.random.default_rng(2)
    pixels = numbers.integers(1, 4, (260, 300)).astype(np.uint8)
    scene = write(scratch / "s.tif", pixels, (13.0, 0.001, 0.0, 52.6, 0.0, -0.001), epsg=4326)
    made = []
    for step in ("", "      - sieve: {bands: [A], size: 12}\n"):
        config = scratch / "c.yaml"
        config.write_text("compute: {memory: 64MiB, tile: 64, threads: 2}\npipelines:\n  p:\n    input: {bands: {A: 1}}\n    steps:\n"
                          f"      - warp: {{grid: web-mercator, zoom: 11, size: 512, method: nearest}}\n{step}"
                          "    products: [cog: {type: float32, blocksize: 64}]\n")
        report = pbtest.run_json("pushbroom", "run", "--json", "-c", config, "-o", scratch / "out", "--existing", "replace", scene)[0]
        made.append({t["id"]: gdal.Open(f"{report['directory']}/s_{t['id']}.tif").ReadAsArray() for t in report["report"]["tiles"] if t["state"] == "made"})
    assert len(made[0]) == 4 and made[0].keys() == made[1].keys(), made
    for name, plain in made[0].items():
        expected = sieved(plain, 12)
        same(made[1][name], expected, name)
        assert (expected[~np.isnan(plain)] != plain[~np.isnan(plain)]).any()


@pbtest.not_about_threads
def test_overviews_hold_classes(scratch):
    pixels = np.random.default_rng(1).choice([1, 7, 30], (1, 300, 300)).astype(np.uint8)
    image = gdal.Open(product(run(scratch, write(scratch / "s.tif", pixels), "bands: [A], size: 3"), "cog"))
    band = image.GetRasterBand(1)
    assert band.GetOverviewCount() > 0 and set(np.unique(band.GetOverview(0).ReadAsArray())) <= {1, 7, 30}


@pbtest.not_about_threads
def test_what_it_takes_is_planned(scratch):
    """A dry run has it, a budget that is too small is refused with a sufficient amount, and no file is left."""
    scene = write(scratch / "s.tif", classes(9, (900, 1100)))
    report = run(scratch, scene, "bands: [A], size: 20")
    explained = pbtest.run("pushbroom", "run", "--dry-run", "-v", "-c", scratch / "c.yaml", "-o", scratch / "o", scene).stdout
    assert "1 pass over the scene for 1 sieved image\n" in explained, explained
    assert report["report"]["memory_bytes"] <= 64 << 20
    left = [name for _, _, names in os.walk(scratch / "out") for name in names if name.startswith(".spool")]
    assert not left, left
    huge = scratch / "huge.tif"
    image = gdal.GetDriverByName("GTiff").Create(str(huge), 20000, 20000, 1, gdal.GDT_Byte, ["TILED=YES", "SPARSE_OK=TRUE"])
    image.GetRasterBand(1).WriteArray(np.ones((1, 1), np.uint8))
    del image
    done = pbtest.run("pushbroom", "run", "--dry-run", "-c", scratch / "c.yaml", "-o", scratch / "o", huge, code=None)
    assert done.returncode == 1 and "for the pass before, which reduces or sieves the image" in done.stdout + done.stderr, (done.returncode, done.stdout, done.stderr)


@pbtest.not_about_threads
def test_mistakes_say_what_to_do(scratch):
    for step, words in (("sieve: {bands: [A]}", "'size'"),
                        ("sieve: {size: 5}", "'bands'"),
                        ("sieve: {bands: [A], size: 1}", ":5:35: sieve.size: 1 is out of range"),
                        ("sieve: {bands: [A], size: 5, connectivity: 6}", "sieve.connectivity"),
                        ("sieve: {bands: [A, D], size: 5}", "no band 'D' here"),
                        ("sieve: {bands: [A], size: 5, mask: M}", "no band 'M' here"),
                        ("sieve: {bands: {C: A, D: B, E: A}, size: 5}\n      - sieve: {bands: {G: C, H: D, I: E}, size: 6}\n      - sieve: {bands: {J: C, L: D}, size: 9}",
                         "sieves more than 5 bands")):
        config = config_of(scratch, [step], ["A"])
        config.write_text(config.read_text().replace("{A: 1}", "{A: 1, B: 2}"))
        done = pbtest.run("pushbroom", "check-config", config, code=None)
        assert done.returncode != 0 and words in done.stdout + done.stderr, (words, done.stdout, done.stderr, config.read_text())


if __name__ == "__main__":
    pbtest.main()
