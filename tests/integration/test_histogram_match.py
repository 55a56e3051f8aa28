#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: threads sanitized
"""Histograms matched to those of other bands, against the definition of scikit-image's match_histograms in numpy: every pixel of
samples of up to 16 bits, to a bin's width of others, whatever the tiles, the threads, the masks and the grids."""
import random

import numpy as np
from osgeo import gdal

import pbtest
from test_grids import compute, config_of, product, same, write

F = np.float32
TILES = "{memory: 96MiB, tile: 64, threads: 3}"


def shares(values):
    values, counts = np.unique(values.astype(np.float64), return_counts=True)
    return values, np.cumsum(counts) / counts.sum()


def matched(band, reference, mask=None, reference_mask=None):
    """match_histograms of the valid pixels, where the masks are valid and not 0; other pixels of the band by the same values, linear
    between them."""
    def counted(x, m):
        return x[np.isfinite(x) & (True if m is None else np.isfinite(m) & (m != 0))]
    x, q = shares(counted(band, mask))
    y, p = shares(counted(reference, reference_mask))
    knots = np.interp(q, p, y).astype(F)
    x = x.astype(F)
    at = np.clip(np.searchsorted(x, band, side="right") - 1, 0, len(x) - 1)
    after = np.minimum(at + 1, len(x) - 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        between = knots[at] + (knots[after] - knots[at]) * ((band - x[at]) / (x[after] - x[at]))
    out = np.where((band <= x[at]) | (after == at), knots[at], between)
    return np.where(np.isnan(band), F(np.nan), out).astype(F)


def valid(pixels):
    return np.where(pixels == 0, np.nan, pixels).astype(F)


def pixels_of(report):
    return gdal.Open(product(report, "cog")).ReadAsArray()


def bands(seed, kind, shape=(200, 260), n=2):
    """Bands of different distributions, some pixels without data."""
    numbers, most = np.random.default_rng(seed), {np.uint8: 255, np.uint16: 60000, np.int16: 30000}[kind]
    made = [np.clip(numbers.gamma(2 + i, most / (12 + 9 * i), shape) + 3 * i, 1, most) for i in range(n)]
    pixels = np.stack(made).astype(kind)
    pixels[:, numbers.random(shape) < 0.05] = 0
    pixels[0, numbers.random(shape) < 0.05] = 0
    return pixels


# --- tests ---


def test_samples_are_matched_as_scikit_image_does(scratch):
    choose = random.Random(5)
    for seed, kind in enumerate((np.uint8, np.uint16, np.int16)):
        pixels = bands(seed, kind, (choose.randint(30, 250), choose.randint(30, 250)))
        scene = write(scratch / "s.tif", pixels)
        a, b = valid(pixels[0]), valid(pixels[1])
        device = f"{{memory: 96MiB, tile: {choose.choice([64, 128])}, threads: {choose.randint(1, 4)}}}"
        report = compute(scratch, scene, "AB", ["histogram_match: {bands: {M: A}, reference: [B]}"], ["M", "A"], device)
        made, expected = pixels_of(report), matched(a, b)
        same(made[0], expected, f"{kind}")
        same(made[1], a, "the band itself")
        good = ~np.isnan(a)
        x, q = shares(a[good])
        y, p = shares(b[~np.isnan(b)])
        assert np.array_equal(made[0][good], np.interp(q, p, y)[np.searchsorted(x, a[good])].astype(F)), "every pixel is of a counted value"


@pbtest.not_about_threads
def test_a_real_scene_is_matched(scratch):
    paths = pbtest.sentinel2_files("B04.tif", "B08.tif")
    planes = [gdal.Open(str(paths[name])).ReadAsArray()[:600, :600] for name in ("B04.tif", "B08.tif")]
    scene = write(scratch / "s.tif", np.stack(planes))
    report = compute(scratch, scene, "RN", ["histogram_match: {bands: [R, N], reference: [N, R]}"], ["R", "N"], TILES)
    made, red, near = pixels_of(report), valid(planes[0]), valid(planes[1])
    same(made[0], matched(red, near), "red like near infrared")
    same(made[1], matched(near, red), "and the other way round, at once")


@pbtest.not_about_threads
def test_masks_leave_pixels_out_of_both_histograms(scratch):
    pixels = np.concatenate([bands(3, np.uint8), np.random.default_rng(1).integers(0, 3, (2, 200, 260)).astype(np.uint8)])
    scene = write(scratch / "s.tif", pixels)
    a, b, m, k = (valid(p) for p in pixels)
    steps = ['math: {bands: {M: "M - 1", K: "K - 1"}}', "histogram_match: {bands: [A], reference: [B], mask: M, reference_mask: K}"]
    made = pixels_of(compute(scratch, scene, "ABMK", steps, ["A"], TILES))
    same(made, matched(a, b, m - 1, k - 1), "masks")


@pbtest.not_about_threads
def test_reference_may_have_another_grid_and_type(scratch):
    one, other = bands(4, np.uint8), bands(5, np.uint16, (90, 77))
    scene = write(scratch / "s.tif", one)
    write(scratch / "r.tif", other[1], (500000.0, 20.0, 0.0, 4000000.0, 0.0, -20.0))
    sources = f'      sources: {{REF: {{file: "{scratch}/r.tif", bands: {{R: 1}}}}}}'
    report = compute(scratch, scene, "AB", ["crop: {window: [5, 9, 150, 160], bands: [A]}", "histogram_match: {bands: [A], reference: [R]}"], ["A"], TILES, sources=sources)
    same(pixels_of(report), matched(valid(one[0])[9:169, 5:155], valid(other[1])), "another source")


def test_other_values_are_matched_to_a_bin(scratch):
    """Equals the result for a value less than two bins away, to a bin; bins are a power of two wide, and there are over 32768 of the range."""
    for seed in (6, 7):
        numbers = np.random.default_rng(seed)
        pixels = np.stack([numbers.normal(5, 2, (180, 200)), numbers.exponential(3, (180, 200)) ** 2 - 40]).astype(F)
        pixels[0, :5] = np.nan
        if seed == 7:
            pixels[1] = np.round(pixels[1]) * F(0.3)  # few values: results are these, and a few between two of them
        scene = write(scratch / "s.tif", pixels, nodata=None)
        made = pixels_of(compute(scratch, scene, "AB", ["histogram_match: {bands: {M: A}, reference: [B]}"], ["M"], TILES))
        a, b = pixels
        good = ~np.isnan(a)
        width = [2.0 ** np.ceil(np.log2((np.nanmax(p) - np.nanmin(p)) / 65535)) for p in pixels]
        (x, q), (y, p) = shares(a[good]), shares(b)
        least, most = (np.interp(a[good] + s, x, q) for s in (-2 * width[0], 2 * width[0]))
        if seed == 7:
            least, most = (y[np.clip(np.searchsorted(p, share) - before, 0, len(y) - 1)] for share, before in ((least, 1), (most, 0)))
            assert (np.abs(made[good][:, None] - y[None]).min(axis=1) < width[1]).mean() > 0.95
        else:
            least, most = np.interp(least, p, y), np.interp(most, p, y)
        assert (np.isnan(made) == ~good).all()
        assert (made[good] >= least - 1.01 * width[1]).all() and (made[good] <= most + 1.01 * width[1]).all(), (made[good] - least).min() / width[1]
        exact = np.interp(np.interp(a[good], x, q), p, y)
        assert seed == 7 or np.abs(made[good] - exact).mean() < 2 * width[1], np.abs(made[good] - exact).mean() / width[1]


def test_tiles_and_threads_change_nothing(scratch):
    pixels = bands(9, np.uint16, (300, 400))
    scene, made = write(scratch / "s.tif", pixels), []
    steps = ['math: {bands: {C: "A / B"}}', "histogram_match: {bands: {M: C}, reference: [A]}", "convolve: {kernel: gaussian, size: 5, bands: {D: M}}",
             "histogram_match: {bands: {E: D}, reference: [B]}", "crop: {window: [20, 30, 250, 200]}"]
    for tile, threads in ((64, 4), (128, 2)) if pbtest.FOR_RACES else ((64, 1), (64, 4), (128, 2), (512, 1)):
        made.append(pixels_of(compute(scratch, scene, "AB", steps, ["M", "E"], f"{{memory: 256MiB, tile: {tile}, threads: {threads}}}")))
    for other in made[1:]:
        same(other, made[0], "other tiles")
    whole = pixels_of(compute(scratch, scene, "AB", steps[:-1], ["M"], TILES))
    same(made[0][0], whole[30:230, 20:270], "cropped after it")


@pbtest.not_about_threads
def test_images_without_values(scratch):
    pixels = np.stack([np.zeros((70, 90), np.uint8), np.full((70, 90), 7, np.uint8), bands(2, np.uint8, (70, 90))[0]])
    scene = write(scratch / "s.tif", pixels)
    made = pixels_of(compute(scratch, scene, "ABC", ["histogram_match: {bands: {X: A, Y: B, Z: C, W: C}, reference: [C, C, A, B]}"], ["X", "Y", "Z", "W"], TILES))
    c = valid(pixels[2])
    assert np.isnan(made[0]).all() and np.isnan(made[2]).all()
    assert (made[1] == np.nanmax(c)).all()
    same(made[3], np.where(np.isnan(c), F(np.nan), F(7)), "one value")


@pbtest.not_about_threads
def test_mistakes_say_what_to_do(scratch):
    for step, words in (("histogram_match: {bands: [A]}", "'reference'"),
                        ("histogram_match: {reference: [A]}", "'bands'"),
                        ("histogram_match: {bands: [A], reference: [D]}", "no band 'D' here"),
                        ("histogram_match: {bands: [A], reference: [B], mask: M}", "no band 'M' here"),
                        ("histogram_match: {bands: [A, B, A], reference: [A, B]}", "2 bands for 3 to match"),
                        ("histogram_match: {bands: [A], reference: {X: B}}", "'reference' is a list of bands here"),
                        ('math: {bands: {N: "3"}}\n      - histogram_match: {bands: [A], reference: [N]}', "'N' is a number and has no histogram")):
        config = config_of(scratch, [step], ["A"])
        config.write_text(config.read_text().replace("{A: 1}", "{A: 1, B: 2}"))
        done = pbtest.run("pushbroom", "check-config", config, code=None)
        assert done.returncode != 0 and words in done.stdout + done.stderr, (words, done.stdout, done.stderr, config.read_text())


if __name__ == "__main__":
    pbtest.main()
