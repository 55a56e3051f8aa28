#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: sanitized
"""Bands made of all bands of a pixel, by fixed weights or by numbers of the whole image, against numpy."""
import numpy as np
from osgeo import gdal

import pbtest
from test_grids import compute, product, same, write

F = np.float32
TILES = "{memory: 64MiB, tile: 64, threads: 3}"


def pixels_of(report):
    pixels = gdal.Open(product(report, "cog")).ReadAsArray()
    return pixels if pixels.ndim == 3 else pixels[None]


def mistake(scratch, scene, bands, step, code=2):
    """Message for an impossible step."""
    (scratch / "m.yaml").write_text(f"pipelines:\n  p:\n    input: {{bands: {{{', '.join(f'{b}: {i + 1}' for i, b in enumerate(bands))}}}}}\n"
                                    f"    steps:\n      - {step}\n    products:\n      - statistics: {{}}\n      - stac: {{datetime: file-time}}\n")
    return pbtest.run("pushbroom", "run", "-c", scratch / "m.yaml", "-o", scratch / "mo", scene, code=code).stderr


# --- tasseled cap ---

# brightness, greenness, wetness, as i.tasscap of GRASS has them, and tables of other programs for TM, Sentinel-2 and the surface
LANDSAT = "B G R N S1 S2"
CAPS = {"landsat-tm": (LANDSAT, [[.2043, .4158, .5524, .5741, .3124, .2303], [-.1603, -.2819, -.4934, .7940, -.0002, -.1446], [.0315, .2021, .3102, .1594, -.6806, -.6109]]),
        "landsat-etm": (LANDSAT, [[.3561, .3972, .3904, .6966, .2286, .1596], [-.3344, -.3544, -.4556, .6966, -.0242, -.2630], [.2626, .2141, .0926, .0656, -.7629, -.5388]]),
        "landsat-oli": (LANDSAT, [[.3029, .2786, .4733, .5599, .5080, .1872], [-.2941, -.2430, -.5424, .7276, .0713, -.1608], [.1511, .1973, .3283, .3407, -.7117, -.4559]]),
        "landsat-oli-sr": (LANDSAT, [[.3690, .4271, .4689, .5073, .3824, .2406], [-.2870, -.2685, -.4087, .8145, .0637, -.1052], [.0382, .2137, .3536, .2270, -.6108, -.6351]]),
        "sentinel2": (LANDSAT, [[.3510, .3813, .3437, .7196, .2396, .1949], [-.3599, -.3533, -.4734, .6633, .0087, -.2856], [.2578, .2305, .0883, .1071, -.7611, -.5308]]),
        "sentinel2-13": ("B1 B2 B3 B4 B5 B6 B7 B8 B9 B10 B11 B12 B8A",
                         [[.0356, .0822, .1360, .2611, .2964, .3338, .3877, .3895, .0949, .0009, .3882, .1366, .4750],
                          [-.0635, -.1128, -.1680, -.3480, -.3303, .0852, .3302, .3165, .0467, -.0009, -.4578, -.4064, .3625],
                          [.0649, .1363, .2802, .3072, .5288, .1379, -.0001, -.0807, -.0302, .0003, -.4064, -.5602, -.1389]]),
        "modis": ("R N B G N2 S1 S2", [[.4395, .5945, .2460, .3918, .3506, .2136, .2678], [-.4064, .5129, -.2744, -.2893, .4882, -.0036, -.4169],
                                       [.1147, .2489, .2408, .3132, -.3122, -.6416, -.5087]])}


@pbtest.not_about_memory
def test_tasseled_cap_has_the_published_weights(scratch):
    """Components of bands that are 1 in one column and 0 in the others are the weights; they are orthonormal as they were derived."""
    for sensor, (bands, weights) in CAPS.items():
        n, weights = len(bands.split()), np.array(weights)
        scene = write(scratch / "s.tif", np.repeat(np.eye(n, dtype=F)[:, None, :], 3, 1), nodata=None, block=0)
        given = "" if bands == LANDSAT else f"bands: [{bands.replace(' ', ', ')}], "
        report = compute(scratch, scene, bands.split(), [f"tasseled_cap: {{sensor: {sensor}, {given}as: {{X: brightness, Y: greenness, Z: wetness}}}}"], "XYZ")
        same(pixels_of(report), np.repeat(weights.astype(F)[:, None, :], 3, 1), sensor)
        assert np.abs(weights @ weights.T - np.eye(3)).max() < 0.02, (sensor, weights @ weights.T)


def test_tasseled_cap_of_a_scene(scratch):
    pixels = np.random.default_rng(5).uniform(0, 1, (6, 70, 131)).astype(F)
    pixels[3, 9:12, 60:70] = np.nan
    scene = write(scratch / "s.tif", pixels, nodata=None)
    report = compute(scratch, scene, LANDSAT.split(), ["tasseled_cap: {sensor: sentinel2, as: [wetness, brightness]}"], ["wetness", "brightness"], TILES)
    expected = [np.add.reduce([F(w) * p for w, p in zip(CAPS["sentinel2"][1][c], pixels)], dtype=F) for c in (2, 0)]
    same(pixels_of(report), np.array(expected), "tasseled cap")


def test_tasseled_cap_says_what_is_wrong(scratch):
    scene = write(scratch / "s.tif", np.ones((6, 9, 9), F), block=0)
    for bands, step, words in ((LANDSAT.split(), "as: [brightness]", "sensor"), (list("BGRNXY"), "sensor: landsat-oli, as: [wetness]", "there is no band 'S1'"),
                               (LANDSAT.split(), "sensor: modis, as: [wetness]", "bands 1 to 7"), (LANDSAT.split(), "sensor: modis, bands: [B, G], as: [wetness]", "'bands' names 2"),
                               (LANDSAT.split(), "sensor: sentinel2, as: [TCW]", "{NAME: brightness}")):
        assert words in (said := mistake(scratch, scene, bands, f"tasseled_cap: {{{step}}}")), said


# --- principal components ---


def told(report):
    """{band: {name: value}}"""
    return {r["band"]: {x["name"]: x["value"] for x in r["results"]} for r in report["report"]["reductions"]}


def correlated(seed, n, kind, shape=(150, 210)):
    """Bands that have to do with each other; some pixels without data in one band."""
    numbers = np.random.default_rng(seed)
    hidden = numbers.normal(0, 1, (n, *shape)) * np.geomspace(1, .05, n)[:, None, None]
    pixels = np.einsum("ij,jyx->iyx", numbers.normal(0, 1, (n, n)), hidden)
    pixels = (pixels * 300 + 2000).clip(1, 65535) if kind != F else pixels * .05 + .3
    pixels = pixels.astype(kind)
    pixels[numbers.integers(0, n), numbers.random(shape) < .03] = 0
    return pixels


def principal(bands, counted, correlation):
    """Eigenvalues, eigenvectors as rows, means, deviations by numpy; the sign rule."""
    values = np.array([b[counted] for b in bands], np.float64)
    mean, deviation = values.mean(1), values.std(1, ddof=1)
    matrix = np.corrcoef(values) if correlation else np.cov(values)
    value, vector = np.linalg.eigh(matrix)
    value, vector = value[::-1], vector.T[::-1]
    signs = np.sign(vector[np.arange(len(vector)), np.abs(vector).argmax(1)])
    return value, vector * signs[:, None], mean, deviation


def check_pca(scratch, seed, n, kind, correlation, masked, device=TILES):
    pixels, names = correlated(seed, n, kind), [f"B{i}" for i in range(n)]
    made = [f"PC{i + 1}" for i in range(n)]
    mask = np.random.default_rng(seed).integers(0, 2, pixels.shape[1:]).astype(kind)
    scene = write(scratch / "s.tif", np.concatenate([pixels, mask[None] + kind(1)]))
    bands = [np.where(p == 0, np.nan, p).astype(F) for p in pixels]
    valid = np.logical_and.reduce([np.isfinite(b) for b in bands])
    counted = valid & (mask == 1) if masked else valid
    step = f"pca: {{bands: [{', '.join(names)}], as: [{', '.join(made)}], matrix: {'correlation' if correlation else 'covariance'}{', mask: CLEAR' if masked else ''}}}"
    report = compute(scratch, scene, [*names, "M"], ['math: {bands: {CLEAR: "M - 1"}}', step], made, device)
    value, vector, mean, deviation = principal(bands, counted, correlation)
    found = told(report)
    for c, name in enumerate(made):
        weights = [found[name][f"weight of band {i + 1}"] for i in range(n)]
        assert np.allclose(found[name]["eigenvalue"], value[c], rtol=1e-9, atol=1e-12 * value[0]), (name, found[name], value)
        assert np.allclose(found[name]["explained share"], value[c] / value.sum(), atol=1e-10)
        assert np.allclose(weights, vector[c], atol=1e-7), (name, weights, vector[c])
    for i, name in enumerate(names):
        assert np.allclose([found[name]["mean"], found[name]["standard deviation"]], [mean[i], deviation[i]], rtol=1e-12)
    scale = deviation if correlation else np.ones(n)
    expected = np.einsum("ij,jyx->iyx", vector, (np.array(bands, np.float64) - mean[:, None, None]) / scale[:, None, None])
    expected[:, ~valid] = np.nan
    ours = pixels_of(report)
    assert (np.isnan(ours) == np.isnan(expected)).all()
    assert np.nanmax(np.abs(ours - expected)) < 1e-5 * np.nanmax(np.abs(expected)), (seed, n, np.nanmax(np.abs(ours - expected)))


@pbtest.not_about_memory
def test_pca_is_that_of_numpy(scratch):
    for seed, (n, kind, correlation, masked) in enumerate(((2, np.uint16, False, False), (6, np.uint16, False, True), (4, F, True, False), (16, F, False, False), (5, np.uint16, True, True))):
        check_pca(scratch, seed, n, kind, correlation, masked)


def test_pca_is_the_same_whatever_the_tiles(scratch):
    scene = write(scratch / "s.tif", correlated(9, 5, F, (300, 333)))
    made = []
    for tile, threads in ((64, 1), (64, 4), (128, 2), (512, 1)):
        report = compute(scratch, scene, "ABCDE", ["convolve: {kernel: gaussian, size: 3, bands: [A]}", "pca: {bands: [A, B, C, D, E], matrix: correlation, as: [X, Y]}"], "XY",
                         f"{{memory: 128MiB, tile: {tile}, threads: {threads}}}")
        made.append((pixels_of(report), told(report)))
    for pixels, numbers in made[1:]:
        same(pixels, made[0][0], "other tiles")
        assert numbers == made[0][1]


def test_pca_of_bands_without_variance(scratch):
    """A constant band weighs nothing; a scene without data has no components."""
    pixels = correlated(3, 2, np.uint16)
    scene = write(scratch / "s.tif", np.concatenate([pixels, np.full_like(pixels[:1], 7), np.zeros_like(pixels[:1])]))
    report = compute(scratch, scene, "ABCD", ["pca: {bands: [A, C, B], matrix: correlation, as: [X, Y, Z]}", "pca: {bands: [A, D], as: [E]}"], "XYZE", TILES)
    found = told(report)
    assert found["C"] == {"mean": 7, "standard deviation": 0} and found["X"]["weight of band 2"] == 0 and found["Z"]["eigenvalue"] == 0, found
    ours = pixels_of(report)
    assert np.isfinite(ours[:2, pixels.min(0) > 0]).all() and (ours[2][pixels.min(0) > 0] == 0).all() and np.isnan(ours[3]).all()


def test_pca_says_what_is_wrong(scratch):
    scene = write(scratch / "s.tif", np.ones((2, 9, 9), F), block=0)
    for step, words in (("bands: [A], as: [X]", "2 to 16 bands have components, not 1"), ("bands: [A, B], as: [X, Y, Z]", "2 bands have 2 components, not 3"),
                        ("bands: [A, C], as: [X]", "'C'")):
        assert words in (said := mistake(scratch, scene, "AB", f"pca: {{{step}}}")), said


# --- unmixing ---


def mixtures(seed, bands, n, shape=(60, 75), noise=.02):
    """Endmembers as columns, and pixels: mixtures with some noise, and some that are not mixtures."""
    numbers = np.random.default_rng(seed)
    ends = numbers.uniform(.02, .6, (bands, n))
    shares = numbers.dirichlet(np.full(n, .5), shape) * numbers.uniform(.6, 1.4, (*shape, 1))
    pixels = np.einsum("bn,yxn->byx", ends, shares) + numbers.normal(0, noise, (bands, *shape))
    pixels[:, :5] = numbers.uniform(-.2, .8, (bands, 5, shape[1]))
    pixels = pixels.astype(F)
    pixels[numbers.integers(0, bands), 7, 3:9] = np.nan
    return ends, pixels


def some(ends, pixels, to_one):
    """Weights of all endmembers, of any sign; with a sum of 1 the first is the rest of the others."""
    if not to_one:
        return np.linalg.lstsq(ends, pixels, rcond=None)[0]
    rest = np.linalg.lstsq(ends[:, 1:] - ends[:, :1], pixels - ends[:, :1], rcond=None)[0] if ends.shape[1] > 1 else np.zeros((0, pixels.shape[1]))
    return np.concatenate([1 - rest.sum(0, keepdims=True), rest])


def abundances(ends, pixels, method):
    """[n, pixels]. With signs: of the sets whose abundances are none of them negative, the one that leaves least, as scipy.optimize.nnls finds it."""
    n, to_one = ends.shape[1], method in ("sum-to-one", "fully-constrained")
    if method in ("least-squares", "sum-to-one"):
        return some(ends, pixels, to_one)
    best, least = np.zeros((n, pixels.shape[1])), np.full(pixels.shape[1], np.inf) if to_one else (pixels ** 2).sum(0)
    for chosen in ([i for i in range(n) if s >> i & 1] for s in range(1, 1 << n)):
        made = np.zeros_like(best)
        made[chosen] = some(ends[:, chosen], pixels, to_one)
        left = ((ends @ made - pixels) ** 2).sum(0)
        better = (made.min(0) >= 0) & (left < least)
        best[:, better], least[better] = made[:, better], left[better]
    return best


def unmix(scratch, ends, pixels, method, device="{memory: 64MiB}"):
    bands, n = ends.shape
    names, made = [f"B{i}" for i in range(bands)], [f"E{i}" for i in range(n)]
    spectra = ", ".join(f"{name}: [{', '.join(repr(float(v)) for v in end)}]" for name, end in zip(made, ends.T))
    scene = write(scratch / "s.tif", pixels, nodata=None)
    step = f"unmix: {{bands: [{', '.join(names)}], endmembers: {{{spectra}}}, as: [{', '.join(made)}], method: {method}, rmse: LEFT}}"
    return compute(scratch, scene, names, [step], [*made, "LEFT"], device)


def test_unmixing_is_that_of_all_sets(scratch):
    for seed, (bands, n, method) in enumerate(((6, 3, "least-squares"), (4, 4, "sum-to-one"), (6, 4, "non-negative"), (5, 5, "fully-constrained"), (2, 2, "fully-constrained"), (7, 2, "fully-constrained"),
                                               (9, 6, "non-negative"))):
        ends, pixels = mixtures(seed, bands, n)
        made = pixels_of(unmix(scratch, ends, pixels, method))
        valid = np.isfinite(pixels).all(0)
        expected = np.full((n + 1, *valid.shape), np.nan)
        values = pixels[:, valid].astype(np.float64)
        expected[:n, valid] = abundances(ends, values, method)
        expected[n, valid] = np.sqrt(((ends @ expected[:n, valid] - values) ** 2).mean(0))
        assert (np.isnan(made) == ~valid).all()
        error = np.abs(made - expected)[:, valid] / max(1, np.nanmax(np.abs(expected)))
        limit = 2e-6 * np.linalg.cond(ends)
        assert error.max() < limit < 1e-3, (method, error.max(), limit, np.linalg.cond(ends))
        if method in ("sum-to-one", "fully-constrained"):
            assert np.abs(made[:n, valid].sum(0) - 1).max() < 1e-4
        if method in ("non-negative", "fully-constrained"):
            assert made[:n, valid].min() == 0 and (made[:n, valid] == 0).mean() > .05


@pbtest.not_about_memory
def test_unmixing_takes_eight_endmembers(scratch):
    ends, pixels = mixtures(11, 10, 8, (20, 30))
    made = pixels_of(unmix(scratch, ends, pixels, "non-negative", TILES))
    valid = np.isfinite(pixels).all(0)
    assert np.abs(made[:8, valid] - abundances(ends, pixels[:, valid].astype(np.float64), "non-negative")).max() < 1e-6 * np.linalg.cond(ends)


def test_unmixing_says_what_is_wrong(scratch):
    scene = write(scratch / "s.tif", np.ones((3, 9, 9), F), block=0)
    for step, words in (("endmembers: {X: [1, 2], Y: [1, 2, 3]}, as: [X]", "endmember X has 2 numbers; 'bands' has 3"), ("endmembers: {X: [1, 2, 3]}, as: [X]", "1 endmembers of 3 bands"),
                        ("endmembers: {X: [1, 2, 3], Y: [2, 4, 6]}, as: [X]", "Y is a mixture"), ("endmembers: {X: [1, 2, 3], Y: [1, 0, 1]}, as: [Z]", "no endmember 'Z'"),
                        ("endmembers: [1, 2], as: [X]", "a map of names and lists"), ("endmembers: {X: 3}, as: [X]", "write a list"), ("endmembers: {X: [1, a, 3]}, as: [X]", "number")):
        assert words in (said := mistake(scratch, scene, "ABC", f"unmix: {{bands: [A, B, C], {step}}}")), said


# --- masks ---


def test_a_mask_by_otsus_threshold_is_one_step(scratch):
    """The classes of classify, which test_classify.py compares; both sides, as a band and applied."""
    numbers = np.random.default_rng(4)
    pixels = np.where(numbers.random((90, 140)) < .4, numbers.normal(.7, .1, (90, 140)), numbers.normal(.2, .05, (90, 140))).astype(F)
    pixels[3:9, 70:80] = np.nan
    scene = write(scratch / "s.tif", np.stack([pixels, np.full_like(pixels, 5)]), nodata=None)
    report = compute(scratch, scene, "AB", ["classify: {method: otsu, bands: [A], as: CLASS}", "mask: {name: HIGH, bands: [A], otsu: above, apply: {X: B}}",
                                            "mask: {name: LOW, bands: [A], otsu: below, apply: {Y: B}}"], ["CLASS", "HIGH", "LOW", "X", "Y"], TILES)
    classes, high, low, x, y = pixels_of(report)
    found = told(report)
    assert .3 < found["HIGH"]["threshold"] < .6 and found["HIGH"] == found["CLASS"] == found["LOW"] and found["CLASS"]["pixels of class 1"] > 3000, found
    same(high, classes, "above")
    same(low, 1 - classes, "below")
    same(x, np.where(classes == 1, F(5), F(np.nan)), "kept above")
    same(y, np.where(classes == 0, F(5), F(np.nan)), "kept below")
    for step, words in (("bands: [A, B], otsu: above", "one band, not of 2"), ("band: A, otsu: above", "without band"), ("bands: [A], otsu: below, keep: [0, 1]", "without band")):
        assert words in (said := mistake(scratch, scene, "AB", f"mask: {{{step}}}")), said


# --- the sample of temperatures ---

TEMPERATURE = pbtest.SOURCE / "samples/landsat-temperature.yaml"
LEVEL2 = "LC08_L2SP_001062_20201031_20201106_02_T2"
LEVEL1 = "LC08_L1TP_016037_20170813_20170814_01_RT"


def celsius(scratch, folder):
    report, = pbtest.run_json("pushbroom", "run", "--json", "-c", TEMPERATURE, "-o", scratch / "out", folder)
    assert [p["type"] for p in report["products"]] == ["cog", "quicklook", "statistics", "stac"], report["products"]
    return gdal.Open(product(report, "cog")).ReadAsArray(), gdal.Open(product(report, "quicklook")).ReadAsArray()


def test_surface_temperature_without_clouds(scratch):
    """Level 2: made pixels, with the real metadata of one; two pixels around a cloud are masked with it."""
    folder = scratch / LEVEL2
    folder.mkdir()
    stored = np.random.default_rng(8).integers(38000, 46000, (50, 70)).astype(np.uint16)
    stored[:, :3] = 0
    quality = np.full(stored.shape, 21824, np.uint16)
    quality[20:26, 30:40] = 22280
    for name, pixels in (("ST_B10", stored), ("QA_PIXEL", quality)):
        write(folder / f"{LEVEL2}_{name}.TIF", pixels, (600000, 30, 0, 9000000, 0, -30), block=0, nodata=None, epsg=32619)
    (folder / f"{LEVEL2}_MTL.txt").write_text((pbtest.SOURCE / f"tests/data/metadata/{LEVEL2}_MTL.txt").read_text())
    made, picture = celsius(scratch, folder)
    y, x = np.mgrid[0:50, 0:70]
    near = np.hypot(np.maximum(np.maximum(20 - y, y - 25), 0), np.maximum(np.maximum(30 - x, x - 39), 0)) <= 2
    kept = ~near & (stored > 0)
    same(made, np.where(kept, stored.astype(F) * F(0.00341802) + F(149) - F(273.15), F(np.nan)), "degrees Celsius")
    assert picture.shape[0] == 4 and (picture[3] == np.where(kept, 255, 0)).all()


def test_brightness_temperature_of_a_real_scene(scratch):
    """Level 1 of Collection 1, by Planck's law with the constants of its metadata."""
    real = pbtest.SOURCE / "tests/data/real/landsat8_c1_016037"
    (scratch / LEVEL1).symlink_to(real)
    made, _ = celsius(scratch, scratch / LEVEL1)
    stored, quality = (gdal.Open(str(real / f"{LEVEL1}_{name}.TIF")).ReadAsArray() for name in ("B10", "BQA"))
    bad = (quality & 0b10001) > 0
    for shift in (7, 11):  # high confidence of a cloud's shadow, of cirrus
        bad |= (quality >> shift & 3) == 3
    expected = 1321.0789 / np.log(774.8853 / (stored * 3.342e-4 + .1) + 1) - 273.15
    kept = ~bad & (stored > 0)
    assert (np.isfinite(made) == kept).all() and .1 < kept.mean() < .9
    assert np.abs(made - expected)[kept].max() < 1e-3 and 10 < made[kept].mean() < 40


if __name__ == "__main__":
    pbtest.main()
