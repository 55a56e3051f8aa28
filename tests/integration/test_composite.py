#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: sanitized
"""composite: one image of several observations against numpy, bit by bit: any number of them, clouds, nodata, ties, tiles and
threads; observations in one file and in files of their own."""
import warnings

import numpy as np
from osgeo import gdal

import pbtest
from test_grids import product, same, write

gdal.UseExceptions()
warnings.simplefilter("ignore", RuntimeWarning)  # nanmedian of nothing
SHAPE = (75, 110)
CLEAR = '"QA{} < 5"'


def observations(n, seed=1, bands="RN"):
    """n observations of R, N and QA as uint16: a third of the pixels cloudy, some nodata, values that are often equal."""
    numbers = np.random.default_rng(seed)
    out = numbers.integers(1, 12, (n, len(bands) + 1, *SHAPE)).astype(np.uint16)
    out[:, :-1] *= 100
    out[:, :-1][numbers.random((n, len(bands), *SHAPE)) < 0.1] = 0
    out[:, -1] = numbers.integers(0, 8, (n, *SHAPE))
    return out


def expected(pixels, method, clear=True):
    """Both bands, from observations of R, N and QA; 0 is nodata."""
    values = np.where(pixels == 0, np.nan, pixels).astype(np.float32)[:, :2]
    ok = pixels[:, 2] < 5 if clear else np.ones(pixels[:, 2].shape, bool)
    ok &= pixels[:, 2] > 0 if clear else True  # nodata of the mask
    alone = {"median": np.nanmedian, "mean": np.nanmean, "min": np.nanmin, "max": np.nanmax,
             "count": lambda x, _: (~np.isnan(x)).sum(0), "percentile": lambda x, _: np.nanpercentile(x, 30, axis=0)}
    if method in alone:
        return alone[method](np.where(ok[:, None], values, np.nan), 0).astype(np.float32)
    ok &= ~np.isnan(values).any(1)
    red, nir = values[:, 0], values[:, 1]
    key = np.where(ok, (nir - red) / (nir + red), -np.inf) if method == "max-ndvi" else np.where(ok, np.arange(len(ok))[:, None, None], -np.inf)
    best = key.argmax(0)
    return np.where(ok.any(0), np.take_along_axis(values, best[None, None], 0)[0], np.nan)


def compute(scratch, scene, bands, step, sources="", settings="{memory: 128MiB}", code=0):
    config = scratch / "c.yaml"
    config.write_text(f"""compute: {settings}
pipelines:
  p:
    input:
      bands: {{{', '.join(f'{b}: {i + 1}' for i, b in enumerate(bands))}}}
{sources}
    steps: [{{composite: {{{step}}}}}]
    products:
      - cog: {{bands: [R, N], type: float32, blocksize: 64}}
      - stac: {{datetime: file-time}}
""")
    return pbtest.run_json("pushbroom", "run", "--json", "-c", config, "-o", scratch / "out", "--existing", "version", scene, code=code)[0]


def pixels_of(report):
    return gdal.Open(product(report, "cog")).ReadAsArray()


def step(method, n, clear=True):
    return f"method: {method}{', percentile: 30' * (method == 'percentile')}, bands: [R, N], of: [{', '.join(f'_{i}' for i in range(n))}]" + (f", clear: {CLEAR}" if clear else "")


def names(i):
    return [f"R_{i}", f"N_{i}", f"QA_{i}"]


@pbtest.not_about_memory
def test_any_number_of_observations_in_one_file(scratch):
    for n in (1, 2, 3, 4, 5, 7, 8, 11, 16):
        pixels = observations(n, seed=n)
        scene = write(scratch / "s.tif", pixels.reshape(-1, *SHAPE))
        bands = [b for i in range(n) for b in names(i)]
        for method in ("median", "max-ndvi", "latest-clear")[:3 if n in (3, 16) else 1]:
            made = pixels_of(compute(scratch, scene, bands, step(method, n), settings=f"{{memory: 128MiB, tile: {64 if n % 2 else 128}, threads: {1 + n % 3}}}"))
            same(made, expected(pixels, method), f"{method} of {n}")


@pbtest.not_about_memory
def test_every_method_on_bands_by_themselves(scratch):
    """numpy's mean and percentile are of float64: a mean of float32 is off by some of its last digits."""
    for n in (1, 6, 21):
        pixels = observations(n, seed=50 + n)
        scene = write(scratch / "s.tif", pixels.reshape(-1, *SHAPE))
        bands = [b for i in range(n) for b in names(i)]
        for method in ("min", "max", "count", "mean", "percentile"):
            made, right = pixels_of(compute(scratch, scene, bands, step(method, n), settings="{memory: 128MiB, tile: 64}")), expected(pixels, method)
            assert (np.isnan(made) == np.isnan(right)).all(), (method, n)
            close = 1e-6 if method in ("mean", "percentile") else 0
            assert np.nanmax(np.abs(made - right) / np.maximum(np.abs(right), 1)) <= close, (method, n)


def test_as_many_observations_as_bands_can_be_read(scratch):
    pixels = np.random.default_rng(64).integers(0, 9, (64, *SHAPE)).astype(np.uint8)
    scene, config = write(scratch / "s.tif", pixels), scratch / "c.yaml"
    config.write_text(f"""pipelines:
  p:
    input: {{bands: {{{', '.join(f'R_{i}: {i + 1}' for i in range(64))}}}}}
    steps: [{{composite: {{bands: [R], of: [{', '.join(f'_{i}' for i in range(64))}]}}}}]
    products: [{{cog: {{bands: [R], type: float32}}}}]
""")
    made = pbtest.run_json("pushbroom", "run", "--json", "-c", config, "-o", scratch / "out", scene)[0]
    same(pixels_of(made), np.nanmedian(np.where(pixels == 0, np.nan, pixels.astype(np.float32)), 0).astype(np.float32), "64")


@pbtest.not_about_memory
def test_observations_in_files_of_their_own(scratch):
    pixels = observations(4, seed=40)
    for i in range(4):
        write(scratch / f"t{i}.tif", pixels[i], block=64 if i else 0)
    sources = "      sources: {" + ", ".join(
        f"T{i}: {{file: {scratch}/t{i}.tif, bands: {{{', '.join(f'{b}: {k + 1}' for k, b in enumerate(names(i)))}}}}}" for i in range(1, 4)) + "}"
    for method in ("median", "max-ndvi", "latest-clear"):
        for clear in (True, False):
            made = pixels_of(compute(scratch, scratch / "t0.tif", names(0), step(method, 4, clear), sources))
            same(made, expected(pixels, method, clear), (method, clear))


def test_sixteen_files(scratch):
    """Files on one grid and of one type are read into one window of a tile; one of another block size, one with strips, and
    one of another type among them. Their neighbourhoods, too."""
    pixels = observations(16, seed=3)
    for i in range(16):
        write(scratch / f"t{i}.tif", pixels[i].astype(np.int16) if i == 9 else pixels[i], block={3: 16, 5: 0}.get(i, 64))
    sources = "      sources: {" + ", ".join(
        f"T{i}: {{file: {scratch}/t{i}.tif, bands: {{{', '.join(f'{b}: {k + 1}' for k, b in enumerate(names(i)))}}}}}" for i in range(1, 16)) + "}"
    for method, settings in (("median", "{memory: 128MiB, tile: 64, threads: 3}"), ("latest-clear", "{memory: 128MiB, tile: 512}")):
        made = pixels_of(compute(scratch, scratch / "t0.tif", names(0), step(method, 16), sources, settings))
        same(made, expected(pixels, method), method)
    mean = compute(scratch, scratch / "t0.tif", names(0), step("median", 16) + "}}, {texture: {measure: mean, size: 5, bands: [R]", sources)
    one = compute(scratch, write(scratch / "all.tif", pixels.reshape(-1, *SHAPE)), [b for i in range(16) for b in names(i)],
                  step("median", 16) + "}}, {texture: {measure: mean, size: 5, bands: [R]")
    same(pixels_of(mean), pixels_of(one), "neighbourhoods")
    compute(scratch, scratch / "t0.tif", names(0), step("median", 16) + '}}, {gate: {keep: "R > 300"', sources, code=1)


def test_mistakes_say_what_to_do(scratch):
    scene = write(scratch / "s.tif", observations(2).reshape(-1, *SHAPE))
    bands = names(0) + names(1)
    for text, words in (("method: percentile, bands: [R], of: [_0, _1]", "the percentile is missing"),
                        ("percentile: 5, bands: [R], of: [_0, _1]", "belongs to method: percentile"),
                        ("method: median, bands: [R, N], of: [_0, _2]", "no band 'R_2' here, which is 'R' of observation '_2'"),
                        ("method: meadian, bands: [R, N], of: [_0]", "did you mean 'median'?"),
                        ('method: median, bands: [R, N], of: [_0, _1], clear: "QB{} < 3"', "did you mean 'QA_0'?"),
                        (f"method: median, bands: [R, N], of: [{', '.join(f'_{i}' for i in range(65))}]", "65 observations; at most 64")):
        config = scratch / "c.yaml"
        config.write_text(f"""pipelines:
  p:
    input: {{bands: {{{', '.join(f'{b}: {i + 1}' for i, b in enumerate(bands))}}}}}
    steps: [{{composite: {{{text}}}}}]
    products: [{{cog: {{bands: [R, N], type: float32}}}}]
""")
        done = pbtest.run("pushbroom", "check-config", config, code=None)
        assert done.returncode == 2 and words in done.stdout + done.stderr, (text, done.stdout, done.stderr)


if __name__ == "__main__":
    pbtest.main()
