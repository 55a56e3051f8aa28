#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: sanitized
"""Radar through `pushbroom run`: backscatter of Sentinel-1 by the tables of a SAFE folder against the same worked out by numpy in
float64, speckle filters and means against theirs, and messages for tables that are missing or are those of another image."""
import json
import tempfile

import numpy as np
from osgeo import gdal

import pbtest
from safe_kit import Product

gdal.UseExceptions()
FILES = """      scene: "S1?_*_GRD*"
      files: {VV: "measurement/*-vv-*.tif*", VH: "measurement/*-vh-*.tif*"}
"""
METADATA = [f"annotation/{kind}-{p}-*.xml" for p in ("vv", "vh") for kind in ("s1*", "calibration/calibration-*", "calibration/noise-*")]


def run(scratch, folder, steps, bands, metadata=METADATA, code=0, how=(), compute=""):
    path = scratch / "c.yaml"
    path.write_text(f"""compute: {{device: cpu{compute}}}
pipelines:
  p:
    input:
{FILES}      metadata: [{', '.join(f'"{m}"' for m in metadata)}]
    steps:
{''.join(f'      - {s}' + chr(10) for s in steps)}    products:
      - cog: {{bands: [{bands}], type: float32}}
      - stac: {{}}
""")
    done = pbtest.run("pushbroom", "run", "-c", path, "-o", tempfile.mkdtemp(dir=scratch), "--json", *how, folder, code=code)
    return json.loads(done.stdout.splitlines()[-1])


def made(result):
    path = next(p["path"] for p in result["products"] if p["type"] == "cog")
    data = gdal.Open(path).ReadAsArray()
    return data if data.ndim == 3 else data[None]


def close(values, expected, apart=1e-9):
    assert np.array_equal(np.isnan(values), np.isnan(expected))
    assert np.allclose(values, expected, rtol=2e-6, atol=apart, equal_nan=True), np.nanmax(np.abs(values - expected))


def test_backscatter_is_that_of_the_tables(scratch):
    product = Product(1)
    folder = product.write(scratch)
    steps = ["calibrate: {to: sigma0, bands: {S: VV, X: VH}}", "calibrate: {to: beta0, noise: false, bands: {B: VV}}",
             "calibrate: {to: gamma0, bands: {G: VH}}", "calibrate: {to: gamma0, noise: false, db: true, bands: {D: VH}}"]
    for compute in ("", ", tile: 64, threads: 1"):
        result = run(scratch, folder, steps, "S, X, B, G, D", compute=compute)
        out = made(result)
        close(out[0], product.backscatter("vv", "sigma0"))
        close(out[1], product.backscatter("vh", "sigma0"))
        close(out[2], product.backscatter("vv", "beta0", noise=False))
        close(out[3], product.backscatter("vh", "gamma0"))
        close(out[4], 10 * np.log10(product.backscatter("vh", "gamma0", noise=False)), 1e-5)
        assert (out[0] == 0).any()  # noise was more than there is
    said = {c["band"]: c for c in result["report"]["calibration"]}
    assert said["S"]["formula"] == "max(0, DN^2 - noise) / A^2" and said["B"]["formula"] == "DN^2 / A^2", said
    assert said["X"]["of"] == "VH" and "sigmaNought" in said["X"]["rule"], said


def test_processors_before_2_9_have_range_noise_only(scratch):
    product = Product(2, version=2)
    result = run(scratch, product.write(scratch), ["calibrate: {to: sigma0, bands: [VV]}", "decibel: {bands: {D: VV}}"], "VV, D")
    out = made(result)
    close(out[0], product.backscatter("vv", "sigma0"))
    sigma0 = np.where(out[0] > 0, out[0], np.nan).astype(np.float64)
    assert (out[0] == 0).any()
    close(out[1], 10 * np.log10(sigma0), 1e-5)


def test_focal_steps_read_tables_around_their_tiles(scratch):
    product = Product(3)
    folder = product.write(scratch)
    steps = ["calibrate: {to: sigma0, bands: [VV]}", "lee: {size: 5, looks: 4.4, bands: [VV]}"]
    whole = made(run(scratch, folder, steps, "VV", compute=", tile: 512"))
    parts = made(run(scratch, folder, steps, "VV", compute=", tile: 64, memory: 64MiB"))
    assert np.array_equal(whole, parts, equal_nan=True) and np.isfinite(whole).any()


def windows(x, size):
    """Neighbourhood of each pixel, with the image's edge repeated."""
    return np.lib.stride_tricks.sliding_window_view(np.pad(x, size // 2, mode="edge"), (size, size)).reshape(*x.shape, -1)


def image(scratch, x):
    path = scratch / f"{len(list(scratch.iterdir()))}.tif"
    out = gdal.GetDriverByName("GTiff").Create(str(path), x.shape[1], x.shape[0], 1, gdal.GDT_Float32)
    out.GetRasterBand(1).WriteArray(x)
    out.FlushCache()
    return path


def filtered(scratch, x, step, tile=64):
    """Result of one step for band VV."""
    (scratch / "c.yaml").write_text(f"""compute: {{device: cpu, tile: {tile}}}
pipelines:
  p:
    input: {{bands: {{VV: 1}}}}
    steps: [{{{step}}}]
    products: [{{cog: {{bands: [OUT], type: float32}}}}]
""")
    done = pbtest.run("pushbroom", "run", "-c", scratch / "c.yaml", "-o", tempfile.mkdtemp(dir=scratch), "--json", image(scratch, x))
    return made(json.loads(done.stdout.splitlines()[-1]))[0]


def speckled(seed, looks, height=131, width=117):
    """Steps of brightness, a ramp, points and an area without any power, under speckle."""
    random = np.random.default_rng(seed)
    x = np.where(np.arange(width) > width // 2, 0.4, 0.05) * np.linspace(0.5, 1.5, height)[:, None]
    x[::29, ::23] *= 50
    x = x * random.gamma(looks, 1 / looks, x.shape)
    x[90:110, 20:40] = 0
    return x.astype(np.float32)


def test_gamma_map_is_that_of_the_literature(scratch):
    # Lopes et al. 1993 as OTB's GammaMAPImageFilter has it: the mean, its own value, or the root of the quadratic equation.
    for looks, size in ((4.4, 7), (1, 5)):
        x = speckled(int(looks), looks)
        w = windows(x.astype(np.float64), size)
        mean, variance = w.mean(axis=2), w.var(axis=2, ddof=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            ci2, cu2 = variance / mean ** 2, 1 / looks
            alpha = (1 + cu2) / (ci2 - cu2)
            b = alpha - looks - 1
            root = (b * mean + np.sqrt(mean ** 2 * b ** 2 + 4 * alpha * looks * mean * x)) / (2 * alpha)
        near = np.abs(ci2 - 2 * cu2) < 1e-4  # float32 may be on the other side
        expected = np.where(mean == 0, 0, np.where(ci2 <= cu2, mean, np.where(ci2 < 2 * cu2, root, x)))
        out = filtered(scratch, x, f"gamma_map: {{size: {size}, looks: {looks}, edge: clamp, bands: {{OUT: VV}}}}")
        assert np.allclose(out[~near], expected[~near], rtol=1e-5, atol=1e-9) and near.mean() < 1e-3
        assert (expected == mean).any() and (expected == root).any() and (expected == x).any()


def test_multilook_is_the_mean_of_blocks(scratch):
    x = speckled(3, 1)
    for rows, columns in ((2, 3), (1, 4), (5, 1)):
        h, w = x.shape[0] // rows, x.shape[1] // columns
        blocks = x[:h * rows, :w * columns].astype(np.float64).reshape(h, rows, w, columns)
        step = f"multilook: {{range: {columns}, azimuth: {rows}, bands: {{OUT: VV}}"
        assert np.allclose(filtered(scratch, x, step + "}"), blocks.mean(axis=(1, 3)), rtol=1e-6)
        out = filtered(scratch, x, step + ", data: amplitude}")
        assert np.allclose(out, np.sqrt((blocks ** 2).mean(axis=(1, 3))), rtol=1e-6)


def refused(scratch, folder, steps, code, *words, metadata=METADATA):
    for how in ((), ("--dry-run",)):
        error = run(scratch, folder, steps, "VV", metadata=metadata, code=1, how=how)["error"]
        assert error["code"] == code, error
        for word in words:
            assert word in error["message"], (word, error)


def test_missing_or_foreign_tables_are_refused(scratch):
    product = Product(4, polarisations=("vv", "vh"))
    folder = product.write(scratch)
    sigma = ["calibrate: {to: sigma0, bands: [VV]}"]
    refused(scratch, folder, sigma, "input.metadata_missing", "no calibration", "VV", metadata=METADATA[:1])
    refused(scratch, folder, sigma, "input.metadata_missing", "noise: false", metadata=METADATA[:2])
    refused(scratch, folder, sigma, "input.metadata_missing", "no annotation", metadata=METADATA[1:3])
    refused(scratch, folder, ["calibrate: {to: toa, bands: [VV]}"], "input.metadata_value", "write to: sigma0")
    annotation = next((folder / "annotation").glob("s1*vv*.xml"))
    text = annotation.read_text()
    annotation.write_text(text.replace(">301<", ">302<"))
    refused(scratch, folder, sigma, "input.metadata_conflict", "301 x 257", "302 x 257")
    annotation.write_text(text.replace("Performed>false", "Performed>true"))
    refused(scratch, folder, sigma, "input.metadata_conflict", "noise: false")
    annotation.write_text(text)
    table = next((folder / "annotation/calibration").glob("calibration-*vv*.xml"))
    good = table.read_text()
    for old, new, word in (("<pixel count=\"9\">0 40", "<pixel count=\"9\">40 40", "ascend"), ("<line>0</line>", "<line>-31</line>", "ascend"),
                           ("<pixel count=\"9\">0 40", "<pixel count=\"9\">0 x", "'x'"), ("<line>0</line>", "", "no line")):
        assert old in good, old
        table.write_text(good.replace(old, new, 1))
        refused(scratch, folder, sigma, "input.metadata_value", word)


def test_sample_runs_as_it_stands(scratch):
    folder = Product(5).write(scratch)
    done = pbtest.run("pushbroom", "run", "-c", pbtest.SOURCE / "samples/sentinel1-grd.yaml", "-o", scratch / "out", "--json", folder)
    result = json.loads(done.stdout.splitlines()[-1])
    item = json.loads(next((scratch / "out").rglob("*.stac.json")).read_text())["properties"]
    assert result["status"] == "successful" and item["platform"] == "sentinel-1a", item
    assert [c["to"] for c in result["report"]["calibration"]] == ["sigma0", "sigma0"]
    assert (item["sar:instrument_mode"], item["sar:polarizations"], item["sar:product_type"]) == ("IW", ["VV", "VH"], "GRD"), item
    assert (item["sar:pixel_spacing_range"], round(item["sar:center_frequency"], 3), item["sat:orbit_state"]) == (10, 5.405, "descending")


if __name__ == "__main__":
    pbtest.main()
