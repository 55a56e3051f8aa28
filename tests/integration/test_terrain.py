#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: sanitized
"""Operators on elevations against gdaldem and numpy, through `pushbroom run`, on generated and delivered elevations."""
import numpy as np
from osgeo import gdal

import pbtest
from test_operators import compute, near, of_gdaldem, same, terrain, windows_of

gdal.UseExceptions()
HORN_EAST = np.array([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]]) / 8


def delivered(name):
    path = pbtest.DATA / "real/dem" / name
    if not path.exists():
        raise pbtest.Skip(f"{path} is not there")
    return path


def scenes(scratch):
    yield terrain(scratch / "dem.tif", 301, 277, 0.001)
    for name in ("storml_elev.tif", "olinda_dem_utm25s.tif"):
        if (pbtest.DATA / "real/dem" / name).exists():
            yield pbtest.DATA / "real/dem" / name


@pbtest.not_about_memory
def test_position_and_ruggedness_are_those_of_gdaldem(scratch):
    for scene in scenes(scratch):
        near(compute(scratch, scene, "tpi: {bands: {OUT: DEM}}", memory="16MiB"), of_gdaldem(scene, "TPI"), 1e-5, 1e-4)
        near(compute(scratch, scene, "tri: {bands: {OUT: DEM}}"), of_gdaldem(scene, "TRI", alg="Riley"), 1e-5, 1e-5)
        near(compute(scratch, scene, "tri: {method: wilson, bands: {OUT: DEM}}"), of_gdaldem(scene, "TRI", alg="Wilson"), 1e-5, 1e-5)


@pbtest.not_about_memory
def test_tpi_and_tri_of_other_sizes_equal_numpy(scratch):
    scene = terrain(scratch / "dem.tif", 203, 111, 0.001)
    for size, edge in ((5, "reflect"), (15, "clamp")):
        windows = windows_of(scene, size, edge).astype(np.float64)
        off = windows[:, :, size // 2, size // 2][:, :, None, None] - windows
        n = size * size - 1
        for step, theirs in (("tpi: {", off.sum((2, 3)) / n), ("tri: {", np.sqrt((off ** 2).sum((2, 3)))), ("tri: {method: wilson, ", np.abs(off).sum((2, 3)) / n)):
            near(compute(scratch, scene, f"{step}size: {size}, edge: {edge}, bands: {{OUT: DEM}}}}"), theirs, 2e-6, 1e-5)


@pbtest.not_about_memory
def test_shadings_are_those_of_gdaldem(scratch):
    for scene in scenes(scratch):
        for method, alg in (("horn", "Horn"), ("zevenbergen-thorne", "ZevenbergenThorne")):
            for step, options in (("shading: multidirectional, altitude: 35", {"multiDirectional": True, "altitude": 35}),
                                  ("shading: combined, azimuth: 200", {"combined": True, "azimuth": 200}),
                                  ("shading: igor, azimuth: 77", {"igor": True, "azimuth": 77})):
                theirs = of_gdaldem(scene, "hillshade", alg=alg, zFactor=2, **{"computeEdges": False, **options})
                near(compute(scratch, scene, f"hillshade: {{method: {method}, factor: 2, {step}, bands: {{OUT: DEM}}}}"), theirs, 0, 0.51)


@pbtest.not_about_memory
def test_level_ground_is_as_bright_as_gdaldem_has_it(scratch):
    scene = terrain(scratch / "flat.tif", 64, 64, 0)
    file = gdal.Open(str(scene), gdal.GA_Update)
    file.GetRasterBand(1).WriteArray(np.full((64, 64), 7, np.float32))
    file = None
    for step, options in (("multidirectional", {"multiDirectional": True}), ("combined", {"combined": True}), ("igor", {"igor": True})):
        near(compute(scratch, scene, f"hillshade: {{shading: {step}, bands: {{OUT: DEM}}}}"), of_gdaldem(scene, "hillshade", **options), 0, 0.51)
    assert not np.nan_to_num(compute(scratch, scene, "aspect: {flat: zero, bands: {OUT: DEM}}")).any()
    assert np.isfinite(compute(scratch, scene, "aspect: {flat: zero, edge: clamp, bands: {OUT: DEM}}")).all()
    assert not compute(scratch, scene, "curvature: {kind: plan, edge: clamp, bands: {OUT: DEM}}").any()


def test_trigonometric_aspect_is_that_of_gdaldem(scratch):
    for scene in scenes(scratch):
        theirs = of_gdaldem(scene, "aspect", trigonometric=True, zeroForFlat=True)
        steep = of_gdaldem(scene, "slope", slopeFormat="percent") / 100
        ours = compute(scratch, scene, "aspect: {angle: trigonometric, flat: zero, bands: {OUT: DEM}}")
        assert (ours[np.isfinite(ours)] >= 0).all() and (ours[np.isfinite(ours)] < 360).all()
        near(np.radians((ours - theirs + 180) % 360 - 180) * steep, np.where(np.isnan(steep), np.nan, 0), 0, 4e-6)  # gdaldem has 0 for invalid pixels, too


def zevenbergen_thorne(windows, length, height):
    """Written like the paper and RichDEM, for square pixels or not: D, E, F, G, H, and 100 times the curvatures."""
    z = {i + 1: windows[:, :, i // 3, i % 3] for i in range(9)}
    d = ((z[4] + z[6]) / 2 - z[5]) / length ** 2
    e = ((z[2] + z[8]) / 2 - z[5]) / height ** 2
    f = (-z[1] + z[3] + z[7] - z[9]) / (4 * length * height)
    g = (-z[4] + z[6]) / (2 * length)
    h = (z[2] - z[8]) / (2 * height)
    square = g * g + h * h
    with np.errstate(invalid="ignore"):
        profile = np.where(square == 0, 0, 2 * (d * g * g + e * h * h + f * g * h) / square)
        plan = np.where(square == 0, 0, -2 * (d * h * h + e * g * g - f * g * h) / square)
    invalid = np.isnan(windows).any((2, 3))
    return {kind: np.where(invalid, np.nan, 100 * value) for kind, value in (("total", -2 * (d + e)), ("profile", profile), ("plan", plan))}


@pbtest.not_about_memory
def test_curvatures_equal_zevenbergen_and_thorne(scratch):
    for scene in scenes(scratch):
        _, length, _, _, _, height = gdal.Open(str(scene)).GetGeoTransform()
        theirs = zevenbergen_thorne(windows_of(scene, 3, "nodata").astype(np.float64), length, -height)
        for kind, values in theirs.items():
            near(compute(scratch, scene, f"curvature: {{kind: {kind}, bands: {{OUT: DEM}}}}"), values, 1e-5, 2e-5)
    near(compute(scratch, scene, "curvature: {kind: plan, unit: per-metre, factor: 2, bands: {OUT: DEM}}"), theirs["plan"] / 50, 1e-5, 1e-7)


def test_curvature_of_a_turned_scene_follows_its_axes(scratch):
    """A paraboloid seen by a grid that is turned, sheared and stretched."""
    scene = scratch / "turned.tif"
    t = [600000, 20, 9, 4100000, 7, -30]
    row, column = np.mgrid[0:80, 0:90]
    x, y = t[1] * column + t[2] * row, t[4] * column + t[5] * row
    z = 0.001 * x ** 2 - 0.002 * y ** 2 + 0.0005 * x * y + 0.3 * x - 0.1 * y
    file = gdal.GetDriverByName("GTiff").Create(str(scene), 90, 80, 1, gdal.GDT_Float32)
    file.SetGeoTransform(t)
    file.SetProjection("EPSG:32632")
    file.GetRasterBand(1).WriteArray(z.astype(np.float32))
    file = None
    east, north = 0.002 * x + 0.0005 * y + 0.3, -0.004 * y + 0.0005 * x - 0.1
    square = east ** 2 + north ** 2
    profile = 100 * (0.002 * east ** 2 + 2 * 0.0005 * east * north - 0.004 * north ** 2) / square
    plan = -100 * (0.002 * north ** 2 - 2 * 0.0005 * east * north - 0.004 * east ** 2) / square
    inner = (slice(1, -1), slice(1, -1))
    for kind, theirs in (("total", np.full_like(z, 0.2)), ("profile", profile), ("plan", plan)):
        near(compute(scratch, scene, f"curvature: {{kind: {kind}, bands: {{OUT: DEM}}}}")[inner], theirs[inner], 1e-3, 1e-3)


def test_a_light_that_is_not_asked_for_is_refused(scratch):
    scene = terrain(scratch / "dem.tif", 64, 64, 0)
    for step, word in (("shading: multidirectional, azimuth: 90", "azimuth"), ("shading: igor, altitude: 30", "altitude")):
        config = scratch / "wrong.yaml"
        config.write_text(f"pipelines: {{p: {{input: {{bands: {{DEM: 1}}}}, steps: [{{hillshade: {{{step}}}}}], products: [{{cog: {{type: float32}}}}]}}}}\n")
        told = pbtest.run("pushbroom", "check-config", config, code=2)
        assert f"{word}" in told.stdout + told.stderr and "leave it out" in told.stdout + told.stderr, told


def without_corners(values):
    """gdaldem repeats columns there."""
    values = values.astype(np.float32)
    values[[0, 0, -1, -1], [0, -1, 0, -1]] = np.nan
    return values


@pbtest.not_about_memory
def test_edges_and_holes_are_computed_as_gdaldem_does(scratch):
    operators = [("slope: {", "slope", {}, 1e-5, 1e-4), ("slope: {method: zevenbergen-thorne, ", "slope", {"alg": "ZevenbergenThorne"}, 1e-5, 1e-4),
                 ("hillshade: {", "hillshade", {}, 0, 0.51), ("hillshade: {shading: multidirectional, ", "hillshade", {"multiDirectional": True}, 0, 0.51),
                 ("tpi: {", "TPI", {}, 1e-5, 1e-4), ("tri: {", "TRI", {"alg": "Riley"}, 1e-5, 1e-5), ("tri: {method: wilson, ", "TRI", {"alg": "Wilson"}, 1e-5, 1e-5),
                 ("roughness: {", "roughness", {}, 0, 0)]
    for scene in scenes(scratch):
        for step, name, options, relative, absolute in operators:
            theirs = without_corners(of_gdaldem(scene, name, computeEdges=True, **options))
            ours = without_corners(compute(scratch, scene, f"{step}edge: extrapolate, bands: {{OUT: DEM}}}}", memory="16MiB"))
            near(ours, theirs, relative, absolute)
            assert np.isfinite(ours[0, 1:-1]).any() and np.isfinite(ours[1:-1, 0]).any(), step


def extrapolated(z):
    """The pixels around each, those outside on the line through the edge and the pixel inside; NaN becomes the pixel in the middle."""
    z = np.vstack([2 * z[0] - z[1], z, 2 * z[-1] - z[-2]])
    z = np.column_stack([2 * z[:, 0] - z[:, 1], z, 2 * z[:, -1] - z[:, -2]])
    windows = np.lib.stride_tricks.sliding_window_view(z, (3, 3))
    return np.where(np.isnan(windows), windows[:, :, 1:2, 1:2], windows)


def test_corners_lie_on_the_same_lines(scratch):
    scene = terrain(scratch / "dem.tif", 61, 47, 0.02)
    z = gdal.Open(str(scene)).ReadAsArray().astype(np.float64)
    windows = extrapolated(np.where(z == -9999, np.nan, z))
    slope = 100 * np.hypot((windows * HORN_EAST).sum((2, 3)) / 30, (windows * HORN_EAST.T).sum((2, 3)) / 30)
    near(compute(scratch, scene, "slope: {unit: percent, edge: extrapolate, bands: {OUT: DEM}}"), slope, 1e-5, 1e-4)
    for kind, theirs in zevenbergen_thorne(windows, 30, 30).items():
        near(compute(scratch, scene, f"curvature: {{kind: {kind}, edge: extrapolate, bands: {{OUT: DEM}}}}"), theirs, 1e-4, 1e-4)


AXIS, SQUARE = 6378137.0, (2 - 1 / 298.257223563) / 298.257223563  # WGS 84


def isometric(latitude, square):
    e = np.sqrt(square)
    return np.arctanh(np.sin(latitude)) - e * np.arctanh(e * np.sin(latitude))


def latitudes(isometrics, square):
    """Latitudes of isometric ones, by bisection."""
    low, high = np.full_like(isometrics, -1.55), np.full_like(isometrics, 1.55)
    for _ in range(60):
        middle = (low + high) / 2
        below = isometric(middle, square) < isometrics
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return low


def metres(system, y):
    """Length of a unit of x and of y, at each y: the distance on the ellipsoid between places a thousandth of a unit apart, or by
    calculus."""
    if system == "EPSG:4326":
        latitude, radians, share = np.radians(y), np.pi / 180, 1.0
    else:
        square = 0 if system == "EPSG:3857" else SQUARE
        latitude, radians = latitudes(y / AXIS, square), 1 / AXIS
        share = (latitudes((y + 1) / AXIS, square) - latitudes((y - 1) / AXIS, square)) / (2 * radians)
    root = np.sqrt(1 - SQUARE * np.sin(latitude) ** 2)
    return AXIS / root * np.cos(latitude) * radians, AXIS * (1 - SQUARE) / root ** 3 * radians * share


def relief(path, system, transform, width, height, z=None):
    random = np.random.default_rng(width)
    y, x = np.mgrid[0:height, 0:width]
    rough = 900 + 400 * np.sin(x / 19) + 300 * np.cos(y / 13) + random.normal(0, 30, (height, width))
    file = gdal.GetDriverByName("GTiff").Create(str(path), width, height, 1, gdal.GDT_Float32, ["TILED=YES", "BLOCKXSIZE=64", "BLOCKYSIZE=64"])
    file.SetGeoTransform(transform)
    file.SetProjection(system)
    file.GetRasterBand(1).WriteArray((rough if z is None else z).astype(np.float32))
    return path


def slope_of(scene, system, transform):
    """Percent, of each pixel by the lengths at its own centre."""
    windows = windows_of(scene, 3, "nodata").astype(np.float64)
    rows, columns = windows.shape[:2]
    row, column = np.mgrid[0:rows, 0:columns] + 0.5
    east_unit, north_unit = metres(system, transform[3] + column * transform[4] + row * transform[5])
    along, down = (windows * HORN_EAST).sum((2, 3)), (windows * HORN_EAST.T).sum((2, 3))
    inverse = np.linalg.inv([[transform[1], transform[4]], [transform[2], transform[5]]])  # matrix of the gradient
    east = (inverse[0, 0] * along + inverse[0, 1] * down) / east_unit
    north = (inverse[1, 0] * along + inverse[1, 1] * down) / north_unit
    return 100 * np.hypot(east, north), east, north


def test_degrees_are_as_long_as_they_are_in_each_row(scratch):
    """30 seconds of arc from the south of Sicily to the north of Bavaria, and a turned grid next to the pole."""
    for number, (transform, width, height) in enumerate((([12, 1 / 120, 0, 48, 0, -1 / 120], 203, 1211), ([-40, 0.01, 0.004, 86, 0.003, -0.009], 131, 117))):
        scene = relief(scratch / f"degrees{number}.tif", "EPSG:4326", transform, width, height)
        theirs, east, north = slope_of(scene, "EPSG:4326", transform)
        for memory in ("16MiB", "64MiB"):
            near(compute(scratch, scene, "slope: {unit: percent, bands: {OUT: DEM}}", memory=memory), theirs, 3e-6, 1e-5)
        aspect = np.degrees(np.arctan2(-east, -north)) % 360
        turned = (compute(scratch, scene, "aspect: {bands: {OUT: DEM}}") - aspect + 180) % 360 - 180
        near(turned, np.where(np.isnan(aspect), np.nan, 0), 0, 2e-3)
    one = gdal.DEMProcessing("", str(scene), "slope", format="MEM", slopeFormat="percent", scale=111120).ReadAsArray()[5, 5]
    assert abs(one / theirs[5, 5] - 1) > 0.1  # one length for all is no substitute


@pbtest.not_about_memory
def test_metres_of_mercator_are_those_on_the_ground(scratch):
    for system in ("EPSG:3857", "EPSG:3395"):
        transform = [-5000000, 900, 0, 9000000, 0, -900]  # from 62.5 degrees north to 24
        scene = relief(scratch / f"{system[5:]}.tif", system, transform, 67, 6500)
        near(compute(scratch, scene, "slope: {unit: percent, bands: {OUT: DEM}}"), slope_of(scene, system, transform)[0], 5e-6, 1e-5)


def test_curvature_in_degrees_is_by_row(scratch):
    transform = [8, 0.001, 0, 71, 0, -0.001]
    scene = relief(scratch / "dem.tif", "EPSG:4326", transform, 97, 901)
    east, north = metres("EPSG:4326", 71 - (np.arange(901) + 0.5) / 1000)
    theirs = zevenbergen_thorne(windows_of(scene, 3, "nodata").astype(np.float64), east[:, None] / 1000, north[:, None] / 1000)
    for kind, values in theirs.items():
        near(compute(scratch, scene, f"curvature: {{kind: {kind}, bands: {{OUT: DEM}}}}"), values, 2e-5, 2e-5)


def test_a_crop_of_degrees_has_the_pixels_of_the_whole(scratch):
    transform = [12, 1 / 120, 0, 48, 0, -1 / 120]
    scene = relief(scratch / "dem.tif", "EPSG:4326", transform, 203, 411)
    whole = compute(scratch, scene, "slope: {bands: {OUT: DEM}}")
    after = compute(scratch, scene, "slope: {bands: {OUT: DEM}}\n      - crop: {window: [20, 150, 90, 200]}")
    same(after, whole[150:350, 20:110], None)
    before = compute(scratch, scene, "crop: {window: [20, 150, 90, 200]}\n      - slope: {bands: {OUT: DEM}}")
    near(before[1:-1, 1:-1], whole[151:349, 21:109], 1e-6)


def test_a_slope_of_degrees_may_be_warped(scratch):
    """Made on the scene's grid, tile by tile of another one."""
    scene = relief(scratch / "dem.tif", "EPSG:4326", [12, 1 / 120, 0, 48, 0, -1 / 120], 203, 411)
    whole = compute(scratch, scene, "slope: {bands: {OUT: DEM}}")
    file = gdal.GetDriverByName("GTiff").CreateCopy(str(scratch / "slope.tif"), gdal.Open(str(scene)))
    file.GetRasterBand(1).WriteArray(whole)
    file.GetRasterBand(1).SetNoDataValue(float("nan"))
    file = None
    theirs = gdal.Warp("", str(scratch / "slope.tif"), format="MEM", dstSRS="EPSG:32633", resampleAlg="near", dstNodata=float("nan"), errorThreshold=0).ReadAsArray()
    ours = compute(scratch, scene, "slope: {bands: {OUT: DEM}}\n      - warp: {crs: 'EPSG:32633', method: nearest}", memory="16MiB")
    assert ours.shape == theirs.shape and np.isfinite(ours).mean() > 0.8
    alike = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
    assert alike.mean() > 0.9999, alike.mean()  # between two pixels either is the nearest


def test_bands_warped_to_mercator_have_true_slope(scratch):
    """The same plane seen in metres of UTM and of web Mercator rises alike."""
    row, column = np.mgrid[0:300, 0:280]
    scene = relief(scratch / "utm.tif", "EPSG:32633", [500000, 100, 0, 6700000, 0, -100], 280, 300, 0.13 * 100 * column + 0.21 * 100 * row)
    ours = compute(scratch, scene, "warp: {crs: 'EPSG:3857', method: cubic}\n      - slope: {unit: percent, bands: {OUT: DEM}}")
    inner = ours[60:-60, 60:-60]
    assert np.nanmax(np.abs(inner - 100 * np.hypot(0.13, 0.21))) < 0.05, (np.nanmin(inner), np.nanmax(inner))


def test_the_globe_is_computed_but_for_its_poles(scratch):
    """Centres of pixels from pole to pole, both included."""
    scene = relief(scratch / "globe.tif", "EPSG:4326", [-180.25, 0.5, 0, 90.25, 0, -0.5], 720, 361)
    ours = compute(scratch, scene, "slope: {unit: percent, edge: extrapolate, bands: {OUT: DEM}}")
    assert np.isnan(ours[[0, -1]]).all() and np.isfinite(ours[1:-1]).all()
    theirs, _, _ = slope_of(scene, "EPSG:4326", [-180.25, 0.5, 0, 90.25, 0, -0.5])
    near(ours[1:-1, 1:-1], theirs[1:-1, 1:-1], 5e-6, 1e-5)


def test_degrees_have_their_true_length_in_each_row(scratch):
    """A delivered tile that ends 100 m from the south pole, where a degree of longitude has a metre and a half."""
    scene = delivered("copernicus_dem90_S90.tif")
    told = pbtest.run("pushbroom", "run", "--dry-run", "-c", pbtest.SOURCE / "samples/terrain.yaml", "-o", scratch / "out", scene).stdout
    assert told.count("120 x 1200 px of 8.129 x 93.08 m in the middle") == 2, told
    theirs, _, _ = slope_of(scene, "EPSG:4326", gdal.Open(str(scene)).GetGeoTransform())
    near(compute(scratch, scene, "slope: {unit: percent, bands: {OUT: DEM}}"), theirs, 1e-5, 1e-5)


if __name__ == "__main__":
    pbtest.main()
