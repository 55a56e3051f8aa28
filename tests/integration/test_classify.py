#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: sanitized
"""Classes that are found in the image itself, against the same definitions in numpy with exact sums: every class, centre and
count, for all tiles, threads and masks; the passes over the file, and the report."""
import fractions
import json
import math
import random

import numpy as np
from osgeo import gdal

import pbtest
from test_grids import compute, config_of, product, same, write

F = np.float32
TILES = "{memory: 64MiB, tile: 64, threads: 3}"


# --- numpy ---


def exact_sum(values):
    """Sum of float32 values, as a fraction."""
    mantissa, exponent = np.frexp(values.astype(np.float64))
    whole = np.ldexp(mantissa, 24).astype(np.int64)
    return sum((fractions.Fraction(int(whole[exponent == e].sum())) * fractions.Fraction(2) ** (int(e) - 24) for e in np.unique(exponent)),
               fractions.Fraction(0))


def nearest(bands, centres):
    """centres[c][b]. NaN where no distance is a number."""
    best, least = np.ones(bands[0].shape, F), None
    with np.errstate(invalid="ignore", over="ignore"):
        for c, centre in enumerate(centres):
            distance = None
            for x, m in zip(bands, centre):
                square = (x - F(m)) * (x - F(m))
                distance = square if distance is None else distance + square
            if least is None:
                least = distance
            else:
                best, least = np.where(distance < least, F(c + 1), best), np.where(distance < least, distance, least)
        return np.where(least <= np.finfo(F).max, best, F(np.nan))


def counted_of(bands, mask):
    good = np.logical_and.reduce([np.isfinite(x) for x in bands])
    return good if mask is None else good & np.isfinite(mask) & (mask != 0)


def starts(bands, counted, k, how):
    """centre[c][b], in the order of float32 operations that the manual gives."""
    out = np.zeros((k, len(bands)), F)
    for b, x in enumerate(bands):
        v = x[counted]
        for c in range(k):
            if how == "percentiles":
                out[c, b] = F(np.percentile(v.astype(np.float64), 100 * (c + 0.5) / k))
            elif how == "minmax":
                out[c, b] = v.min() + (v.max() * F(0.5) - v.min() * F(0.5)) * F((2 * c + 1) / k)
            else:
                mean = exact_sum(v) / v.size
                squares = sum(fractions.Fraction(int(n)) * fractions.Fraction(float(s)) ** 2 for s, n in zip(*np.unique(v, return_counts=True)))
                out[c, b] = F(float(mean)) + F(math.sqrt(float(squares / v.size - mean * mean))) * F(2 * c / (k - 1) - 1)
    return out


def kmeans(bands, centres, rounds, mask=None, ordered=True):
    """Classes, centres, pixels of each class, rounds, and true if the centres are at rest."""
    counted = counted_of(bands, mask)
    for number in range(1, rounds + 1):
        classes = nearest(bands, centres)
        now = np.where(counted, classes, 0)
        pixels = [int((now == c + 1).sum()) for c in range(len(centres))]
        means = np.array([[F(float(exact_sum(x[now == c + 1]) / n)) if n else centres[c][b] for b, x in enumerate(bands)]
                          for c, n in enumerate(pixels)], F)
        if ordered:
            means = np.array(sorted(means.tolist()), F)
        if (means == centres).all():
            return classes, centres, pixels, number, True
        if number < rounds:
            centres = means
    return classes, centres, pixels, rounds, False


def otsu(values, counts):
    """threshold_otsu of skimage.filters over values and their counts: the first that makes the variance between the classes the greatest."""
    below, above = np.cumsum(counts), np.sum(counts) - np.cumsum(counts)
    places = np.arange(len(values))
    sums = np.cumsum(counts * places)
    with np.errstate(invalid="ignore", divide="ignore"):
        score = below.astype(float) * above * (sums / below - (sums[-1] - sums) / above) ** 2
    return values[int(np.nanargmax(score))], below[int(np.nanargmax(score))]


# --- report ---


def pixels_of(report):
    return gdal.Open(product(report, "cog")).ReadAsArray()


def told(report):
    """{band: {name: value}}"""
    return {r["band"]: {x["name"]: x["value"] for x in r["results"]} for r in report["report"]["reductions"]}


def passes(report, tiles):
    return [s["tiles"] for s in report["report"]["stages"] if s["name"] == "write"][0] / tiles


def check_told(report, names, expected, step=1):
    _, centres, pixels, rounds, rest = expected
    found = told(report)
    for b, name in enumerate(names):
        assert found[name] == {f"centre of class {c + 1}": float(m[b]) for c, m in enumerate(centres)}, (name, found[name], centres)
    assert found["CLASS"] == {**{f"pixels of class {c + 1}": n for c, n in enumerate(pixels)}, "rounds": rounds, "converged": int(rest)}, (found["CLASS"], expected[2:])


def blobs(seed, kind=np.uint16, shape=(300, 400), bands=3, classes=4):
    """Pixels around a few centres, some without data."""
    numbers = np.random.default_rng(seed)
    centres = numbers.uniform(300, 9000, (classes, bands))
    which = numbers.integers(0, classes, shape)
    pixels = np.clip(np.moveaxis(centres[which], 2, 0) + numbers.normal(0, 400, (bands, *shape)), 1, 60000).astype(kind)
    pixels[:, numbers.random(shape) < 0.02] = 0
    pixels[0, numbers.random(shape) < 0.02] = 0
    return pixels


def valid(pixels):
    return [np.where(p == 0, np.nan, p).astype(F) for p in pixels]


def run(scratch, scene, bands, step, before=(), device=TILES, outputs=("CLASS",)):
    return compute(scratch, scene, bands, [*before, f"classify: {{{step}, as: CLASS}}"], list(outputs), device)


# --- tests ---


def test_random_scenes_have_the_classes_of_numpy(scratch):
    choose = random.Random(7)
    for seed in range(4 if pbtest.SANITIZED else 10):
        kind = choose.choice([np.uint16, np.uint8, np.float32])
        n, k, rounds = choose.randint(1, 2 if kind == np.uint8 else 3), choose.randint(2, 9), choose.choice([1, 2, 5, 12])
        shape = (choose.randint(40, 200), choose.randint(40, 260))
        pixels = blobs(seed, np.float32, shape, n + 1)
        pixels = (pixels / 40 if kind == np.uint8 else pixels * F(0.37) if kind == np.float32 else pixels).astype(kind)
        how = choose.choice(["minmax", "percentiles"] if kind == np.float32 else ["minmax", "percentiles", "deviations"])
        masked = choose.random() < 0.5
        if masked:
            pixels[n] = np.random.default_rng(seed).integers(0, 3, shape).astype(kind)
        names = "ABCD"[:n]
        scene = write(scratch / "s.tif", pixels)
        bands, mask = valid(pixels[:n]), (np.where(pixels[n] == 0, np.nan, pixels[n]) - 1).astype(F) if masked else None
        expected = kmeans(bands, starts(bands, counted_of(bands, mask), k, how), rounds, mask)
        device = f"{{memory: 64MiB, tile: {choose.choice([64, 128])}, threads: {choose.randint(1, 4)}}}"
        step = f"bands: [{', '.join(names)}], classes: {k}, rounds: {rounds}, init: {how}"
        if masked:
            report = compute(scratch, scene, "ABCD"[:n + 1], [f'math: {{bands: {{M: "{"ABCD"[n]} - 1"}}}}', f"classify: {{{step}, as: CLASS, mask: M}}"], ["CLASS"], device)
        else:
            report = run(scratch, scene, "ABCD"[:n + 1], step, device=device)
        check_told(report, names, expected)
        same(pixels_of(report), expected[0], f"scene {seed}: {step}, mask {masked}")


def test_centres_come_to_rest(scratch):
    pixels = blobs(3)
    scene, bands = write(scratch / "s.tif", pixels), valid(pixels)
    expected = kmeans(bands, starts(bands, counted_of(bands, None), 4, "deviations"), 30)
    report = run(scratch, scene, "ABC", "bands: [A, B, C], classes: 4")
    assert expected[4] and 2 < expected[3] < 30, expected[3:]
    check_told(report, "ABC", expected)
    same(pixels_of(report), expected[0], "classes")
    assert passes(report, 5 * 7) == 2 + expected[3], report["report"]["stages"]
    assert sorted(told(report)["A"].values()) == list(told(report)["A"].values())


def test_given_centres_keep_order_even_if_empty(scratch):
    pixels = blobs(5, bands=2, classes=2)
    scene, bands = write(scratch / "s.tif", pixels), valid(pixels)
    given = np.array([[9000, 9000], [50000, 60000], [100, 5000]], F)
    for rounds in (1, 6):
        expected = kmeans(bands, given, rounds, ordered=False)
        report = run(scratch, scene, "AB", f"bands: [A, B], classes: 3, rounds: {rounds}, centres: [{', '.join(map(str, given.ravel()))}]")
        same(pixels_of(report), expected[0], f"{rounds} rounds")
        check_told(report, "AB", expected)
        assert told(report)["A"]["centre of class 2"] == 50000 and told(report)["CLASS"]["pixels of class 2"] == 0
        assert passes(report, 5 * 7) == 1 + expected[3]


@pbtest.not_about_threads
def test_a_tie_goes_to_the_lower_class(scratch):
    scene = write(scratch / "s.tif", np.tile(np.array([[4, 5, 6]], np.uint8), (40, 20)))
    report = run(scratch, scene, "A", "bands: [A], classes: 2, rounds: 1, centres: [4, 6]")
    assert (pixels_of(report)[0, :3] == [1, 1, 2]).all()


@pbtest.not_about_threads
def test_sums_are_exact(scratch):
    """A sum in float64 would lose the small values next to the large ones, and give another mean in another order."""
    values = np.array([3e18, 1, -3e18, 2, 1.5, -7, 1e-30, 0.25] * 500, F).reshape(50, 80)
    scene = write(scratch / "s.tif", np.random.default_rng(1).permuted(values.ravel()).reshape(values.shape), nodata=None)
    report = run(scratch, scene, "A", "bands: [A], classes: 2, rounds: 2, centres: [0, 3e38]", device="{memory: 64MiB, tile: 64, threads: 2}")
    mean = float(exact_sum(values.ravel()) / values.size)
    assert told(report)["A"]["centre of class 1"] == float(F(mean)) != 0, (told(report), mean)


@pbtest.not_about_memory
def test_tiles_and_threads_change_nothing(scratch):
    scene = write(scratch / "s.tif", (blobs(11) * F(0.01)).astype(F))
    before, step = ["convolve: {kernel: gaussian, size: 5, bands: [A]}", 'math: {bands: {R: "A / B"}}'], "bands: [A, R, C], classes: 6, rounds: 5"
    made = []
    for tile, threads in ((64, 4), (128, 2)) if pbtest.FOR_RACES else ((64, 1), (64, 4), (128, 2), (512, 1)):
        report = run(scratch, scene, "ABC", step, before, f"{{memory: 128MiB, tile: {tile}, threads: {threads}}}")
        made.append((pixels_of(report), told(report)))
    for other in made[1:]:
        same(other[0], made[0][0], "other tiles")
        assert other[1] == made[0][1]


@pbtest.not_about_memory
def test_classifications_and_a_stretch_share_rounds(scratch):
    pixels = blobs(3)
    scene, bands = write(scratch / "s.tif", pixels), valid(pixels)
    report = compute(scratch, scene, "ABC", ["classify: {bands: [A, B], classes: 3, as: ONE}", "classify: {bands: [C], classes: 2, init: minmax, as: TWO}",
                                             "stretch: {bands: {S: C}, method: minmax, high: 7}"], ["ONE", "TWO", "S"], TILES)
    one = kmeans(bands[:2], starts(bands[:2], counted_of(bands[:2], None), 3, "deviations"), 30)
    two = kmeans(bands[2:], starts(bands[2:], counted_of(bands[2:], None), 2, "minmax"), 30)
    made = pixels_of(report)
    same(made[0], one[0], "the first")
    same(made[1], two[0], "the second")
    assert passes(report, 5 * 7) == 2 + max(one[3], two[3])
    by_step = {(r["step"], r["band"]) for r in report["report"]["reductions"]}
    assert by_step == {(1, "A"), (1, "B"), (1, "ONE"), (2, "C"), (2, "TWO"), (3, "S")}, by_step


@pbtest.not_about_memory
@pbtest.not_about_threads
def test_classes_of_classes(scratch):
    """A loop that starts from what another one ended with."""
    pixels = blobs(4, bands=1)
    scene, bands = write(scratch / "s.tif", pixels), valid(pixels)
    first = kmeans(bands, starts(bands, counted_of(bands, None), 4, "minmax"), 9)
    rest = [np.where(first[0] == 1, bands[0], F(np.nan))]
    second = kmeans(rest, starts(rest, counted_of(rest, None), 2, "minmax"), 9)
    report = compute(scratch, scene, "A", ["classify: {bands: [A], classes: 4, rounds: 9, init: minmax, as: ONE}", 'math: {bands: {X: "where(ONE == 1, A, 0 / 0)"}}',
                                           "classify: {bands: [X], classes: 2, rounds: 9, init: minmax, as: CLASS}"], ["CLASS"], TILES)
    same(pixels_of(report), second[0], "classes of a class")


def test_tiles_that_a_gate_leaves_out_do_not_count(scratch):
    pixels = blobs(6, bands=2)
    pixels[1, :, 130:260] = 1  # two columns of tiles and some
    scene = write(scratch / "s.tif", pixels)
    a, keep = valid(pixels)
    bands = [np.where(keep > 50, a, F(np.nan))]
    expected = kmeans(bands, starts(bands, counted_of(bands, None), 4, "deviations"), 6)
    report = run(scratch, scene, "AB", "bands: [A], classes: 4, rounds: 6", ['gate: {keep: "B > 50", bands: [A]}'])
    same(pixels_of(report), expected[0], "classes behind a gate")
    check_told(report, "A", expected)
    assert report["report"]["gate"]["left_out"] >= 5 * (2 + expected[3]), report["report"]["gate"]


@pbtest.not_about_threads
def test_images_without_classes(scratch):
    scene = write(scratch / "s.tif", np.stack([np.zeros((70, 90), np.uint8), np.full((70, 90), 7, np.uint8)]))
    for init in ("deviations", "minmax", "percentiles"):
        report = compute(scratch, scene, "AB", [f"classify: {{bands: [A], classes: 3, init: {init}, as: X}}", f"classify: {{bands: [B], init: {init}, as: Y}}"], ["X", "Y"])
        made = pixels_of(report)
        assert np.isnan(made[0]).all() and (made[1] == 1).all(), made
        assert told(report)["Y"]["pixels of class 1"] == 6300 and told(report)["X"]["converged"] == 1
    report = compute(scratch, scene, "AB", ["classify: {method: otsu, bands: [A], as: X}", "classify: {method: otsu, bands: [B], as: Y}"], ["X", "Y"])
    made = pixels_of(report)
    assert np.isnan(made[0]).all() and (made[1] == 0).all(), made
    assert told(report)["Y"] == {"threshold": 7, "pixels of class 0": 6300, "pixels of class 1": 0, "bin width": 0}, told(report)


@pbtest.not_about_memory
@pbtest.not_about_threads
def test_otsu_of_samples_is_exact(scratch):
    for kind, scale in ((np.uint16, 1), (np.uint8, 0.02), (np.int16, 1)):
        pixels = blobs(8, kind, bands=2, classes=2)
        pixels[1] = np.random.default_rng(2).integers(0, 2, pixels[1].shape)
        scene, band = write(scratch / "s.tif", pixels), valid(pixels)[0]
        for mask in ("", ", mask: B"):
            counted = np.isfinite(band) & ((pixels[1] == 1) if mask else True)
            values, counts = np.unique(pixels[0][counted], return_counts=True)
            every = np.arange(values[0], values[-1] + 1)
            full = np.zeros(len(every), np.int64)
            full[values.astype(int) - int(values[0])] = counts
            threshold, below = otsu(every, full)
            report = compute(scratch, scene, "AB", [f"classify: {{method: otsu, bands: [A], as: CLASS{mask}}}"], ["CLASS"], TILES)
            assert told(report)["CLASS"] == {"threshold": threshold, "pixels of class 0": below, "pixels of class 1": counted.sum() - below, "bin width": 0}
            same(pixels_of(report), np.where(np.isnan(band), F(np.nan), (band > threshold).astype(F)), "classes")
            assert passes(report, 5 * 7) == 2


def test_otsu_of_other_values_counts_bins(scratch):
    for seed, shift in ((1, 0), (2, -40), (3, 1e6)):
        pixels = (blobs(seed, F, bands=1, classes=2) / F(100) + F(shift)).astype(F)
        pixels[0, 0, 0] = np.nan
        scene = write(scratch / "s.tif", pixels, nodata=None)
        band = pixels[0]
        report = run(scratch, scene, "A", "method: otsu, bands: [A]")
        found = told(report)["CLASS"]
        width = found["bin width"]
        good = band[np.isfinite(band)].astype(np.float64)
        bins = np.floor(good / width).astype(np.int64)
        assert math.log2(width) == int(math.log2(width)) and bins.max() - bins.min() < 65536 and (bins.max() - bins.min() >= 32767 or width == np.spacing(np.abs(good).max().astype(F)))
        number, below = otsu(np.arange(bins.min(), bins.max() + 1), np.bincount(bins - bins.min()))
        assert found["threshold"] == float(np.nextafter(F((number + 1) * width), F(-np.inf))), (found, number)
        same(pixels_of(report), np.where(np.isnan(band), F(np.nan), (band > F(found["threshold"])).astype(F)), "classes")
        assert found["pixels of class 0"] == below == (band <= F(found["threshold"])).sum()
        assert passes(report, 5 * 7) == 3


def test_rounds_are_read_once_when_their_tiles_fit(scratch):
    """The plan reports if they do, and keeps its budget; the classes are the same."""
    pixels = blobs(3, shape=(450, 600))
    scene = write(scratch / "s.tif", pixels, block=256)
    made = []
    for mib, kept in ((20, False), (256, True)):
        device = f"{{memory: {mib}MiB, tile: 128, threads: 2}}"
        report = run(scratch, scene, "ABC", "bands: [A, B, C], classes: 4, rounds: 6", device=device)
        explained = pbtest.run("pushbroom", "run", "--dry-run", "-v", "-c", scratch / "c.yaml", "-o", scratch / "o", scene).stdout
        assert ("up to 7 passes over the scene for 4 reductions, 5 of them from memory" in explained) == kept, explained
        assert ("tiles for its rounds 2" in explained) == kept and report["report"]["memory_bytes"] <= mib << 20, explained
        made.append((pixels_of(report), told(report)))
    same(made[1][0], made[0][0], "tiles from memory")
    assert made[0][1] == made[1][1]


@pbtest.not_about_threads
def test_what_was_found_is_told(scratch):
    pixels = blobs(3)
    scene = write(scratch / "s.tif", pixels)
    report = run(scratch, scene, "ABC", "bands: [A, B], classes: 2")
    found = told(report)
    item = json.load(open(product(report, "stac")))["properties"]
    assert item["processing:expression"]["expression"]["steps"][0]["results"] == found, item["processing:expression"]
    lineage = item["processing:lineage"]
    assert f"(A: centre of class 1 = " in lineage and f"(CLASS: pixels of class 1 = {found['CLASS']['pixels of class 1']}, " in lineage and "converged = 1)" in lineage, lineage


@pbtest.not_about_threads
def test_overviews_hold_classes(scratch):
    pixels = np.random.default_rng(1).integers(1, 200, (1, 300, 300)).astype(np.uint8)
    scene = write(scratch / "s.tif", pixels)
    for step, allowed in (("bands: [A], classes: 3", {1, 2, 3}), ("method: otsu, bands: [A]", {0, 1})):
        image = gdal.Open(product(run(scratch, scene, "A", step), "cog"))
        band = image.GetRasterBand(1)
        assert band.GetOverviewCount() > 0 and set(np.unique(band.GetOverview(0).ReadAsArray())) == allowed


@pbtest.not_about_threads
def test_mistakes_say_what_to_do(scratch):
    for step, words in (("classify: {bands: [A], as: CLASS, classes: 17}", ":5:52: classify.classes: 17 is out of range"),
                        ("classify: {bands: [A], as: CLASS, classes: 1}", "classify.classes"),
                        ("classify: {bands: [A]}", "'as'"),
                        ("classify: {as: CLASS}", "'bands'"),
                        ("classify: {bands: [A], as: [CLASS]}", "classify.as must be a name, such as CLASS"),
                        ("classify: {bands: [A], as: 5x}", "'5x' cannot be a band's name"),
                        ("classify: {bands: [A, D], as: CLASS}", "no band 'D' here"),
                        ("classify: {bands: {X: A}, as: CLASS}", "'bands' is a list of bands here"),
                        ("classify: {bands: [A, B], as: B}", "'as' names a band that is looked at"),
                        ("classify: {method: otsu, bands: [A, B], as: CLASS}", "otsu takes one band, not 2"),
                        ("classify: {bands: [A, B], as: CLASS, classes: 3, centres: [1, 2, 3]}", "'centres' has 3 numbers; 3 classes of 2 bands take 6"),
                        ("classify: {bands: [A], as: CLASS, mask: M}", "no band 'M' here"),
                        ('math: {bands: {N: "3"}}\n      - classify: {bands: [N], as: CLASS}', "no pixels that could be told apart"),
                        ("resample: {factor: 0.5, bands: {C: B}}\n      - classify: {bands: [A, C], as: CLASS}", "bands on different grids")):
        config = config_of(scratch, [step], ["CLASS"])
        config.write_text(config.read_text().replace("{A: 1}", "{A: 1, B: 2}"))
        done = pbtest.run("pushbroom", "check-config", config, code=None)
        assert done.returncode != 0 and words in done.stdout + done.stderr, (words, done.stdout, done.stderr, config.read_text())


if __name__ == "__main__":
    pbtest.main()
