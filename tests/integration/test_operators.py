#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Operators against independent implementations, through `pushbroom run`: GDAL's utilities on the same scene. Odd sizes, pixels
without data, several tiles (a small memory budget) and one."""
import numpy as np
from osgeo import gdal

import pbtest

gdal.UseExceptions()
NODATA = -9999.0


def terrain(path, width, height, holes):
    """Elevations with slopes, steps and noise; a part of the pixels without data."""
    random = np.random.default_rng(width * height)
    y, x = np.mgrid[0:height, 0:width].astype(np.float32)
    z = 300 + 40 * np.sin(x / 17) + 25 * np.cos(y / 11) + random.normal(0, 2, (height, width)) + 80 * (x > width // 2)
    z = z.astype(np.float32)
    z[random.random(z.shape) < holes] = NODATA
    out = gdal.GetDriverByName("GTiff").Create(str(path), width, height, 1, gdal.GDT_Float32, ["TILED=YES", "BLOCKXSIZE=64", "BLOCKYSIZE=64"])
    out.SetGeoTransform([600000, 30, 0, 4100000, 0, -30])
    out.SetProjection("EPSG:32632")
    band = out.GetRasterBand(1)
    band.SetNoDataValue(NODATA)
    band.WriteArray(z)
    return path


def compute(scratch, scene, step, *options, memory="64MiB"):
    """The band OUT that the step makes of the band DEM; NaN where there is no data."""
    config = scratch / "op.yaml"
    config.write_text(f"""compute: {{memory: {memory}}}
pipelines:
  op:
    input: {{bands: {{DEM: 1}}}}
    steps:
      - {step}
    products:
      - cog: {{bands: [OUT], type: float32}}
""")
    report = pbtest.run_json("pushbroom", "run", "--json", "-c", config, "-o", scratch / "out", *options, scene)[0]
    return gdal.Open(report["products"][0]["path"]).ReadAsArray()


def same(ours, theirs, nodata):
    theirs = np.where(theirs == nodata, np.nan, theirs)
    assert ours.shape == theirs.shape
    wrong = ~((ours == theirs) | (np.isnan(ours) & np.isnan(theirs)))
    assert not wrong.any(), f"{wrong.sum()} of {wrong.size} pixels differ, the first at {np.argwhere(wrong)[0]}"
    assert np.isfinite(ours).any()


def test_roughness_is_that_of_gdaldem(scratch):
    for number, (width, height, holes) in enumerate([(301, 277, 0.002), (64, 3, 0), (1000, 517, 0.0005)]):
        scene = terrain(scratch / f"dem{number}.tif", width, height, holes)
        theirs = gdal.DEMProcessing("", str(scene), "roughness", format="MEM").ReadAsArray()
        same(compute(scratch, scene, "roughness: {bands: {OUT: DEM}}"), theirs, NODATA)


def windows_of(scene, size, edge):
    """The neighbourhoods of all pixels, NaN where there is no data: height x width x size x size."""
    z = gdal.Open(str(scene)).ReadAsArray()
    z = np.where(z == NODATA, np.nan, z)
    mode = {"reflect": "reflect", "clamp": "edge", "nodata": "constant"}[edge]
    padded = np.pad(z, size // 2, mode=mode, **({"constant_values": np.nan} if edge == "nodata" else {}))
    return np.lib.stride_tricks.sliding_window_view(padded, (size, size))


def test_roughness_of_other_sizes_and_edges_is_that_of_numpy(scratch):
    scene = terrain(scratch / "dem.tif", 203, 111, 0.001)
    for size, edge in ((5, "reflect"), (15, "clamp"), (7, "nodata")):
        windows = windows_of(scene, size, edge)
        theirs = windows.max((2, 3)) - windows.min((2, 3))
        same(compute(scratch, scene, f"roughness: {{size: {size}, edge: {edge}, bands: {{OUT: DEM}}}}"), theirs, None)


def test_median_and_percentiles_are_those_of_sorting(scratch):
    scene = terrain(scratch / "dem.tif", 203, 111, 0.001)
    for size, percentile, edge in ((3, 50, "reflect"), (5, 50, "clamp"), (5, 10, "nodata"), (7, 100, "reflect"), (9, 0, "clamp"), (15, 37.5, "reflect")):
        windows = windows_of(scene, size, edge).reshape(111, 203, -1)
        theirs = np.sort(windows, 2)[..., min(int(size * size * percentile / 100), size * size - 1)]
        theirs[np.isnan(windows).any(2)] = np.nan
        step = f"median: {{size: {size}, percentile: {percentile}, edge: {edge}, bands: {{OUT: DEM}}}}"
        same(compute(scratch, scene, step), theirs, None)
    same(compute(scratch, scene, step, memory="16MiB"), theirs, None)


def near(ours, theirs, relative, absolute=0.0):
    assert ours.shape == theirs.shape and (np.isnan(ours) == np.isnan(theirs)).all()
    off = np.abs(ours - theirs) - relative * np.abs(theirs) - absolute
    assert not np.nanmax(off) > 0, f"{np.nanmax(off)} more than allowed, at {np.unravel_index(np.nanargmax(off), off.shape)}"


def test_texture_is_that_of_two_passes(scratch):
    scene = terrain(scratch / "dem.tif", 203, 111, 0.001)
    measures = {"mean": lambda w: w.mean((2, 3)), "variance": lambda w: w.var((2, 3)), "deviation": lambda w: w.std((2, 3)),
                "variation": lambda w: w.std((2, 3)) / w.mean((2, 3))}
    for (name, measure), size, edge in zip(measures.items(), (3, 7, 9, 15), ("reflect", "clamp", "nodata", "reflect")):
        theirs = measure(windows_of(scene, size, edge).astype(np.float64))
        near(compute(scratch, scene, f"texture: {{measure: {name}, size: {size}, edge: {edge}, bands: {{OUT: DEM}}}}"), theirs, 1e-6)


def lee(value, mean, variance, noise):
    signal = np.maximum(variance - mean ** 2 * noise, 0) / (1 + noise)
    with np.errstate(divide="ignore", invalid="ignore"):
        k = np.where(signal > 0, signal / variance, 0)
    return mean + k * (value - mean)


def test_lee_is_the_estimate_of_least_square_error(scratch):
    scene = terrain(scratch / "sar.tif", 203, 111, 0.0005)
    for looks, data, noise in ((50, "intensity", 1 / 50), (7, "amplitude", (4 / np.pi - 1) / 7)):
        windows = windows_of(scene, 7, "reflect").astype(np.float64)
        theirs = lee(windows[:, :, 3, 3], windows.mean((2, 3)), windows.var((2, 3)), noise)
        step = f"lee: {{looks: {looks}, data: {data}, bands: {{OUT: DEM}}}}"
        ours = compute(scratch, scene, step)
        near(ours, theirs, 1e-5)
        assert np.nanstd(ours) > 0 and not np.allclose(ours, windows[:, :, 3, 3], equal_nan=True)


if __name__ == "__main__":
    pbtest.main(globals())
