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


def test_roughness_of_sizes_and_edges_equals_numpy(scratch):
    scene = terrain(scratch / "dem.tif", 203, 111, 0.001)
    for size, edge in ((5, "reflect"), (15, "clamp"), (7, "nodata")):
        windows = windows_of(scene, size, edge)
        theirs = windows.max((2, 3)) - windows.min((2, 3))
        same(compute(scratch, scene, f"roughness: {{size: {size}, edge: {edge}, bands: {{OUT: DEM}}}}"), theirs, None)


@pbtest.not_about_memory
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


def half_of(windows):
    """Mean and variance of Lee's half for each window: by whole images, one for each of the eight halves."""
    size = windows.shape[2]
    radius = size // 2
    reach, step = radius // 2, radius - radius // 2
    y, x = np.mgrid[-radius:radius + 1, -radius:radius + 1]
    towards = [(-1, 0), (1, -1), (0, -1), (-1, -1), (1, 0), (-1, 1), (0, 1), (1, 1)]
    area = lambda dx, dy: windows[:, :, radius + step * dy - reach:radius + step * dy + reach + 1, radius + step * dx - reach:radius + step * dx + reach + 1].sum((2, 3))
    sums, middle = np.array([area(*to) for to in towards]), area(0, 0)
    pair = np.abs(sums[:4] - sums[4:]).argmax(0)
    first, second = (np.take_along_axis(sums, at[None], 0)[0] for at in (pair, pair + 4))
    half = np.where(np.abs(first - middle) < np.abs(second - middle), pair, pair + 4)
    mean, variance = (np.take_along_axis(np.array([of(windows[:, :, dx * x + dy * y >= 0], axis=2) for dx, dy in towards]), half[None], 0)[0]
                      for of in (np.mean, np.var))
    return mean, variance


def test_refined_lee_takes_the_half_on_the_pixels_side(scratch):
    scene = terrain(scratch / "sar.tif", 203, 111, 0.0003)
    for size, looks, edge in ((7, 60, "reflect"), (5, 100, "clamp"), (11, 40, "nodata")):
        windows = windows_of(scene, size, edge).astype(np.float64)
        valid = ~np.isnan(windows).any((2, 3))
        mean, variance = half_of(np.where(valid[..., None, None], windows, 0))
        theirs = np.where(valid, lee(windows[:, :, size // 2, size // 2], mean, variance, 1 / looks), np.nan)
        near(compute(scratch, scene, f"refined_lee: {{size: {size}, looks: {looks}, edge: {edge}, bands: {{OUT: DEM}}}}"), theirs, 1e-5)


def weighted(windows, weights):
    return (windows * weights).sum((2, 3)) / weights.sum((2, 3))


def test_bilateral_and_frost_weigh_by_window_values(scratch):
    scene = terrain(scratch / "dem.tif", 203, 111, 0.0005)
    for size, edge, scale, sigma in ((5, "reflect", 6, 0), (9, "clamp", 1.5, 2), (3, "nodata", 40, 1)):
        windows = windows_of(scene, size, edge).astype(np.float64)
        r = size // 2
        y, x = np.mgrid[-r:r + 1, -r:r + 1]
        off = windows - windows[:, :, r:r + 1, r:r + 1]
        theirs = weighted(windows, np.exp(-(x * x + y * y) / (2 * (sigma or (size - 1) / 3) ** 2)) * np.exp(-np.minimum(off ** 2 / (2 * scale ** 2), 87)))
        near(compute(scratch, scene, f"bilateral: {{size: {size}, range: {scale}, sigma: {sigma}, edge: {edge}, bands: {{OUT: DEM}}}}"), theirs, 2e-6)
        damping = 20 * scale
        variation = windows.var((2, 3), keepdims=True) / windows.mean((2, 3), keepdims=True) ** 2
        theirs = weighted(windows, np.exp(-np.minimum(damping * variation * np.hypot(x, y), 87)))
        near(compute(scratch, scene, f"frost: {{size: {size}, damping: {damping}, edge: {edge}, bands: {{OUT: DEM}}}}", memory="16MiB"), theirs, 2e-6)


def of_gdaldem(scene, what, **options):
    theirs = gdal.DEMProcessing("", str(scene), what, format="MEM", **options)
    nodata = theirs.GetRasterBand(1).GetNoDataValue()
    theirs = theirs.ReadAsArray().astype(np.float64)
    return np.where(theirs == nodata, np.nan, theirs)


@pbtest.not_about_memory
def test_slope_aspect_and_hillshade_equal_gdaldem(scratch):
    scene = terrain(scratch / "dem.tif", 301, 277, 0.001)
    for method, alg in (("horn", "Horn"), ("zevenbergen-thorne", "ZevenbergenThorne")):
        near(compute(scratch, scene, f"slope: {{method: {method}, bands: {{OUT: DEM}}}}"), of_gdaldem(scene, "slope", alg=alg), 1e-5, 1e-4)
        percent = of_gdaldem(scene, "slope", alg=alg, slopeFormat="percent")
        near(compute(scratch, scene, f"slope: {{method: {method}, unit: percent, bands: {{OUT: DEM}}}}", memory="16MiB"), percent, 1e-5, 5e-4)
        turn = compute(scratch, scene, f"aspect: {{method: {method}, bands: {{OUT: DEM}}}}")
        assert (turn[np.isfinite(turn)] >= 0).all() and (turn[np.isfinite(turn)] < 360).all()
        off = np.radians((turn - of_gdaldem(scene, "aspect", alg=alg) + 180) % 360 - 180)
        near(off * percent / 100, np.where(np.isnan(percent), np.nan, 0), 0, 4e-6)  # the less steep, the less certain
        shade = of_gdaldem(scene, "hillshade", alg=alg, azimuth=200, altitude=30, zFactor=3)
        near(compute(scratch, scene, f"hillshade: {{method: {method}, azimuth: 200, altitude: 30, factor: 3, bands: {{OUT: DEM}}}}"), shade, 0, 0.51)


def test_level_ground_has_no_aspect(scratch):
    scene = terrain(scratch / "flat.tif", 64, 64, 0)
    file = gdal.Open(str(scene), gdal.GA_Update)
    file.GetRasterBand(1).WriteArray(np.full((64, 64), 7, np.float32))
    file = None
    assert not compute(scratch, scene, "slope: {edge: clamp, bands: {OUT: DEM}}").any()
    assert np.isnan(compute(scratch, scene, "aspect: {edge: clamp, bands: {OUT: DEM}}")).all()
    same(compute(scratch, scene, "hillshade: {edge: clamp, bands: {OUT: DEM}}"), np.full((64, 64), np.float32(1 + 254 * np.float32(np.sqrt(0.5)))), None)


def test_slope_of_a_turned_scene_looks_along_its_axes(scratch):
    """A plane that rises by 0.3 to the east and 0.1 to the south, seen by a grid that is turned and stretched."""
    scene = scratch / "turned.tif"
    t = [600000, 20, 9, 4100000, 7, -30]
    row, column = np.mgrid[0:80, 0:90] + 0.5
    z = 0.3 * (t[1] * column + t[2] * row) - 0.1 * (t[4] * column + t[5] * row)
    file = gdal.GetDriverByName("GTiff").Create(str(scene), 90, 80, 1, gdal.GDT_Float32)
    file.SetGeoTransform(t)
    file.SetProjection("EPSG:32632")
    file.GetRasterBand(1).WriteArray(z.astype(np.float32))
    file = None
    inner = (slice(1, -1), slice(1, -1))
    near(compute(scratch, scene, "slope: {unit: percent, bands: {OUT: DEM}}")[inner], np.full((78, 88), 100 * np.hypot(0.3, 0.1)), 1e-3)
    near(compute(scratch, scene, "aspect: {bands: {OUT: DEM}}")[inner], np.full((78, 88), np.degrees(np.arctan2(-0.3, 0.1)) + 360), 1e-3)


def test_slope_without_georeference_needs_a_pixel_size(scratch):
    scene = scratch / "nowhere.tif"
    file = gdal.GetDriverByName("GTiff").Create(str(scene), 90, 80, 1, gdal.GDT_Float32)
    file.GetRasterBand(1).WriteArray(np.mgrid[0:80, 0:90][1].astype(np.float32))
    file = None
    near(compute(scratch, scene, "slope: {unit: percent, pixel: 4, bands: {OUT: DEM}}")[1:-1, 1:-1], np.full((78, 88), 25.0), 1e-6)
    config = scratch / "op.yaml"
    config.write_text(config.read_text().replace("pixel: 4, ", ""))
    told = pbtest.run("pushbroom", "run", "-c", config, "-o", scratch / "out", scene, code=1)
    assert "give 'pixel'" in told.stdout + told.stderr, told


if __name__ == "__main__":
    pbtest.main()
