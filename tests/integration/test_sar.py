#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Sentinel-1 through `pushbroom run`: backscatter by the tables of a SAFE folder against the same worked out by numpy in
float64, and what is said when tables are missing or are those of another image."""
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


def test_processors_before_2_9_have_noise_by_range_alone(scratch):
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


def refused(scratch, folder, steps, code, *words, metadata=METADATA):
    for how in ((), ("--dry-run",)):
        error = run(scratch, folder, steps, "VV", metadata=metadata, code=1, how=how)["error"]
        assert error["code"] == code, error
        for word in words:
            assert word in error["message"], (word, error)


def test_tables_that_are_missing_or_of_another_image_are_refused(scratch):
    product = Product(4, polarisations=("vv", "vh"))
    folder = product.write(scratch)
    sigma = ["calibrate: {to: sigma0, bands: [VV]}"]
    refused(scratch, folder, sigma, "input.metadata_value", "no calibration", "VV", metadata=METADATA[:1])
    refused(scratch, folder, sigma, "input.metadata_value", "noise: false", metadata=METADATA[:2])
    refused(scratch, folder, sigma, "input.metadata_value", "no annotation", metadata=METADATA[1:3])
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


if __name__ == "__main__":
    pbtest.main(globals())
