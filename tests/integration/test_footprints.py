#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Footprints of STAC items: of grids with a pole or the antimeridian in them, at their edge or near them, and of ground control
points. Geometry and bbox against points of the grid as PROJ places them, in both directions."""
import json
import math

import numpy as np
from osgeo import gdal, osr

import pbtest

gdal.UseExceptions()
osr.UseExceptions()
SIDE = 60  # pixels of a scene
OFF = 2e-3  # share of the extent, by which an outline may be off
CONFIG = """pipelines:
  p:
    products:
      - cog: {type: uint8, nodata: 0}
      - stac: {datetime: file-time}
"""
DISK = "+proj=geos +h=35786023 +lon_0=%g +sweep=x +a=6378137 +b=6356752.3 +units=m"


def centred(x, y, across, turn=0.0, down=None):
    """A geotransform of SIDE x SIDE pixels around (x, y), turned by the given number of degrees."""
    c, s = math.cos(math.radians(turn)), math.sin(math.radians(turn))
    px, py = across / SIDE, (down or across) / SIDE
    a, b, d, e = px * c, py * s, px * s, -py * c
    return (x - SIDE / 2 * (a + b), a, b, y - SIDE / 2 * (d + e), d, e)


# name: coordinate system, geotransform
GRIDS = {
    "plain": ("EPSG:32633", centred(500000, 5000000, 100000)),
    "plain_turned": ("EPSG:32633", centred(500000, 5000000, 100000, 33)),
    "south_up": ("EPSG:32633", (450000, 1000, 0, 4950000, 0, 1000)),
    "fiji": ("EPSG:32760", centred(819000, 8110000, 30000)),
    "fiji_turned": ("EPSG:32760", centred(819000, 8110000, 300000, 120)),
    "mercator_beyond_180": ("EPSG:3857", centred(20037508, 1000000, 400000)),
    "lonlat_to_180": ("EPSG:4326", centred(175, 10, 10)),
    "lonlat_from_180": ("EPSG:4326", centred(-175, 10, 10)),
    "lonlat_beyond_180": ("EPSG:4326", centred(179, 10, 10)),
    "lonlat_of_0_to_360": ("EPSG:4326", centred(200, 10, 10)),
    "lonlat_across_360": ("EPSG:4326", centred(360, 10, 10)),
    "lonlat_turned": ("EPSG:4326", centred(-179, -40, 20, 40)),
    "lonlat_to_the_pole": ("EPSG:4326", centred(30, 75, 30)),
    "lonlat_half_a_pixel_past_it": ("EPSG:4326", centred(30, 75.25, 30)),
    "world": ("EPSG:4326", centred(0, 0, 360, 0, 180)),
    "world_of_0_to_360": ("EPSG:4326", centred(180, 0, 360, 0, 180)),
    "world_of_points": ("EPSG:4326", centred(180, 0, 360 * SIDE / (SIDE - 1), 0, 180 * SIDE / (SIDE - 1))),
    "world_but_a_strip": ("EPSG:4326", centred(180, 0, 359, 0, 178)),
    "world_mercator": ("EPSG:3857", centred(0, 0, 40075016)),
    "world_equal_area": ("EPSG:6933", centred(0, 0, 34735061, 0, 14630000)),
    "arctic": ("EPSG:3413", centred(0, 0, 6000000)),
    "arctic_turned": ("EPSG:3413", centred(0, 0, 6000000, 30)),
    "arctic_off_centre": ("EPSG:3413", centred(1700000, 1700000, 4000000)),
    "pole_at_an_edge": ("EPSG:3031", centred(1000000, 0, 2000000)),
    "pole_at_a_corner": ("EPSG:3031", centred(1000000, 1000000, 2000000)),
    "pole_just_inside": ("EPSG:3413", centred(999900, 0, 2000000)),
    "pole_just_outside": ("EPSG:3413", centred(1000100, 0, 2000000)),
    "pole_one_metre_inside": ("EPSG:3413", centred(999999, 0, 2000000)),
    "pole_one_metre_outside": ("EPSG:3413", centred(1000001, 0, 2000000)),
    "antarctic_small": ("EPSG:3031", centred(0, 0, 20000)),
    "antarctic_at_180": ("EPSG:3031", centred(0, -2000000, 1000000)),
    "beyond_the_equator": ("+proj=laea +lat_0=90 +R=6371000", centred(0, 0, 17000000)),
    "beyond_the_equator_south": ("+proj=laea +lat_0=-90 +R=6371000", centred(100000, 0, 17000000)),
    "nearly_all_of_it": ("+proj=laea +lat_0=90 +lon_0=20 +R=6371000", centred(0, 0, 17990000)),
    "all_around_a_pole": ("+proj=laea +lat_0=90 +R=6371000", centred(0, 0, 26000000)),
    "equidistant": ("+proj=aeqd +lat_0=50 +lon_0=10 +R=6371000", centred(0, 0, 12000000)),
    "equidistant_with_both_poles": ("+proj=aeqd +lat_0=10 +lon_0=10 +R=6371000", centred(0, 0, 23000000)),
    "equidistant_both_poles_and_180": ("+proj=aeqd +lat_0=10 +lon_0=170 +R=6371000", centred(0, 0, 23000000)),
    "equidistant_world": ("+proj=aeqd +lat_0=50 +lon_0=10", centred(0, 0, 42000000)),
    "equidistant_world_of_the_pole": ("+proj=aeqd +lat_0=90", centred(0, 0, 42000000)),
    "full_disk": (DISK % -75, centred(0, 0, 11000000)),
    "full_disk_at_140": (DISK % 140.7, centred(0, 0, 11000000)),
    "half_of_a_disk": (DISK % 140.7, centred(2750000, 0, 5500000, 0, 11000000)),
    "sinusoidal_world": ("+proj=sinu +R=6371007.181", centred(0, 0, 40030230, 0, 20015109)),
    "sinusoidal_at_the_edge": ("+proj=sinu +R=6371007.181", centred(17000000, 5000000, 3000000)),
    "sinusoidal_corner": ("+proj=sinu +R=6371007.181", centred(-3891827, 8339628, 1111951)),
    "sinusoidal_beyond_the_pole": ("+proj=sinu +R=6371007.181", centred(5319037, 8785297, 11562654)),
    "mollweide_world": ("+proj=moll +lon_0=10", centred(0, 0, 37000000, 0, 19000000)),
    "conic_to_its_edge": ("+proj=aea +lat_1=29.5 +lat_2=45.5 +lat_0=23 +lon_0=-96", centred(-7000000, 6000000, 12000000)),
    "conic": ("EPSG:5070", centred(0, 1500000, 5000000)),
    "oblique": ("+proj=stere +lat_0=85 +lon_0=100 +R=6371000", centred(0, 0, 3000000)),
}


def write(path, crs=None, transform=None, gcps=None):
    system = osr.SpatialReference()
    system.SetFromUserInput(crs or "EPSG:4326")
    out = gdal.GetDriverByName("GTiff").Create(str(path), SIDE, SIDE, 1, gdal.GDT_Byte)
    out.GetRasterBand(1).Fill(1)
    if gcps:
        out.SetGCPs(gcps, system.ExportToWkt())
    else:
        out.SetProjection(system.ExportToWkt())
        out.SetGeoTransform(transform)
    return path


def ways(crs):
    one, other = osr.SpatialReference(), osr.SpatialReference()
    one.SetFromUserInput(crs)
    other.ImportFromEPSG(4326)
    for s in (one, other):
        s.SetAxisMappingStrategy(osr.OAMS_TRADITIONAL_GIS_ORDER)
    return osr.CoordinateTransformation(one, other), osr.CoordinateTransformation(other, one)


def transformed(way, points):
    gdal.PushErrorHandler("CPLQuietErrorHandler")
    try:
        got = []
        for p in points:
            try:
                got.append(way.TransformPoint(*map(float, p))[:2] if np.isfinite(p).all() else (np.nan, np.nan))
            except RuntimeError:
                got.append((np.nan, np.nan))
        return np.array(got).reshape(-1, 2)
    finally:
        gdal.PopErrorHandler()


def on_the_ground(crs, t, columns, rows):
    """Longitudes and latitudes of places of the image, -180 .. 180; NaN beyond the Earth."""
    to, back = ways(crs)
    xy = np.stack([t[0] + columns * t[1] + rows * t[2], t[3] + columns * t[4] + rows * t[5]], -1).reshape(-1, 2)
    if crs == "EPSG:4326":
        xy[:, 1] = np.clip(xy[:, 1], -90, 90)
        return np.stack([(xy[:, 0] + 180) % 360 - 180, xy[:, 1]], -1)
    lonlat = transformed(to, xy)
    if "proj=" in crs:  # beyond the edge of interrupted maps PROJ continues around the Earth
        lonlat[~(np.abs(transformed(back, lonlat) - xy).max(-1) < 1000)] = np.nan
    lonlat[~np.isfinite(lonlat).all(-1)] = np.nan
    return lonlat


def in_the_image(crs, t, lonlat):
    """How far places are inside of the image, in parts of it: negative outside. NaN: nowhere on the map."""
    xy = lonlat if crs == "EPSG:4326" else transformed(ways(crs)[1], lonlat)
    inverse = gdal.InvGeoTransform(t)
    xy = np.where(np.isfinite(xy), xy, np.nan)
    best = np.full(len(lonlat), -np.inf)
    period = {"EPSG:4326": 360.0, "EPSG:3857": 2 * math.pi * 6378137}.get(crs, 0)
    for turn in (-1, 0, 1) if period else (0,):
        x, y = xy[:, 0] + turn * period, xy[:, 1]
        u, v = (inverse[0] + inverse[1] * x + inverse[2] * y) / SIDE, (inverse[3] + inverse[4] * x + inverse[5] * y) / SIDE
        best = np.fmax(best, np.minimum(np.minimum(u, 1 - u), np.minimum(v, 1 - v)))
    return best


def rings(geometry):
    polygons = geometry["coordinates"] if geometry["type"] == "MultiPolygon" else [geometry["coordinates"]]
    return [[np.array(r) for r in p] for p in polygons]


def winding(ring, p):
    """Number of turns of the ring around the points; and their distance from it, in degrees of the plane."""
    a, b = ring[:-1, None, :], ring[1:, None, :]
    up, down = (a[..., 1] <= p[:, 1]) & (b[..., 1] > p[:, 1]), (a[..., 1] > p[:, 1]) & (b[..., 1] <= p[:, 1])
    side = (b[..., 0] - a[..., 0]) * (p[:, 1] - a[..., 1]) - (p[:, 0] - a[..., 0]) * (b[..., 1] - a[..., 1])
    scale = np.stack([np.maximum(np.cos(np.radians(p[:, 1])), 1e-9), np.ones(len(p))], -1)
    d, q = (b - a) * scale, (p - a) * scale
    f = np.clip((d * q).sum(-1) / np.maximum((d * d).sum(-1), 1e-30), 0, 1)
    return (up & (side > 0)).sum(0) - (down & (side < 0)).sum(0), np.hypot(*np.moveaxis(q - f[..., None] * d, -1, 0)).min(0)


def inside(geometry, points):
    """True and false where points are inside, and their distance to the outline. -180 is 180, too."""
    is_in, far = np.zeros(len(points), bool), np.full(len(points), np.inf)
    other = np.abs(points[:, 0]) > 180 - 1e-9
    if other.any():
        moved = points.copy()
        moved[other, 0] *= -(1 - 1e-10)
        points = points.copy()
        points[other, 0] *= 1 - 1e-10
        one, two = (inside(geometry, q) for q in (points, moved))
        return one[0] | two[0], np.minimum(one[1], two[1])
    for polygon in rings(geometry):
        n = np.zeros(len(points), int)
        for ring in polygon:
            times, distance = winding(ring, points)
            n += times
            far = np.minimum(far, distance)
        is_in |= n > 0
    return is_in, far


def area(ring):
    return np.sum(ring[:-1, 0] * ring[1:, 1] - ring[1:, 0] * ring[:-1, 1]) / 2


def in_box(bbox, p, more):
    west, south, east, north = bbox
    lon = (p[:, 0] - west + more) % 360
    return (lon <= (east - west if east >= west else east - west + 360) + 2 * more) & (p[:, 1] >= south - more) & (p[:, 1] <= north + more)


def well_formed(name, item):
    """Follows RFC 7946, and the bbox is the geometry's own."""
    polygons = rings(item["geometry"])
    for polygon in polygons:
        for k, ring in enumerate(polygon):
            assert (ring[0] == ring[-1]).all() and len(ring) >= 4, name
            assert (area(ring) > 0) == (k == 0), (name, "the right-hand rule")
            assert np.abs(ring[:, 0]).max() <= 180 and np.abs(ring[:, 1]).max() <= 90, (name, ring)
    outer = [p[0] for p in polygons]
    west, south, east, north = item["bbox"]
    assert south == min(r[:, 1].min() for r in outer) and north == max(r[:, 1].max() for r in outer), (name, item["bbox"])
    spans = sorted((r[:, 0].min(), r[:, 0].max()) for r in outer)
    if west <= east:
        assert west == spans[0][0] and east == max(s[1] for s in spans), (name, item["bbox"], spans)
    else:
        assert all(s[1] <= east or s[0] >= west for s in spans), (name, item["bbox"], spans)
        assert any(s[0] == west for s in spans) and any(s[1] == east for s in spans), (name, item["bbox"], spans)


def narrowest(lon):
    """The least part of the circle with all longitudes: its width in degrees."""
    lon = np.sort(lon % 360)
    return 360 - np.diff(np.append(lon, lon[0] + 360)).max()


def fits(name, item, crs, t):
    at = np.linspace(0, SIDE, 61)
    columns, rows = (g.ravel() for g in np.meshgrid(at, at))
    p = on_the_ground(crs, t, columns, rows)
    p = p[np.isfinite(p).all(-1)]
    extent = min(max(np.ptp(p[:, 1]), narrowest(p[:, 0]) * math.cos(math.radians(np.abs(p[:, 1]).min()))), 180)
    off = OFF * extent + 1e-6
    is_in, far = inside(item["geometry"], p)
    poles = np.abs(p[:, 1]) > 90 - 1e-6
    lost = ~is_in & (far > off) & ~poles
    assert not lost.any(), (name, "places of the grid outside of the geometry", p[lost][:3], far[lost][:3], item["bbox"])
    # At a pole every longitude is right, and close to it their width in degrees has little meaning.
    loose = off / np.maximum(np.cos(np.radians(p[:, 1])), 1e-9)
    boxed = np.array([in_box(item["bbox"], q[None], m)[0] for q, m in zip(p, np.minimum(loose, 360))])
    assert (boxed | poles).all(), (name, "places of the grid outside of the bbox", p[~(boxed | poles)][:3], item["bbox"])
    west, south, east, north = item["bbox"]
    step = 0.06 * extent + off
    assert p[:, 1].max() > north - step and p[:, 1].min() < south + step, (name, item["bbox"], p.min(0), p.max(0))
    wide, needed = (east - west) % 360 or 360, narrowest(p[~poles, 0])
    steep = max(math.cos(math.radians(np.abs(p[~poles, 1]).max())), 0.02)
    has_pole = (in_the_image(crs, t, np.array([[0.0, 90], [0, -90]])) > -0.01).any()
    assert has_pole or wide <= needed + step / steep, (name, item["bbox"], needed)
    # Places of the Earth, near the grid and all over it: those in the geometry are in the image, and no others.
    random = np.random.default_rng(7)
    q = np.stack([random.uniform(-180, 180, 1500), np.degrees(np.arcsin(random.uniform(-1, 1, 1500)))], -1)
    near = p[random.integers(0, len(p), 500)] + random.normal(0, extent / 4, (500, 2))
    q = np.concatenate([q, np.stack([(near[:, 0] + 180) % 360 - 180, np.clip(near[:, 1], -90, 90)], -1)])
    is_in, far = inside(item["geometry"], q)
    depth = in_the_image(crs, t, q)
    sure = np.isfinite(depth) & (np.abs(depth) > 0.01) & (far > off)
    wrong = sure & (is_in != (depth > 0))
    assert not wrong.any(), (name, "places of the Earth on the wrong side", q[wrong][:3], depth[wrong][:3], far[wrong][:3])


def items(scratch, paths):
    (scratch / "c.yaml").write_text(CONFIG)
    pbtest.run("pushbroom", "run", "-c", scratch / "c.yaml", "-o", scratch / "out", *paths)
    return {p.stem: json.loads((scratch / "out" / p.stem / "p" / f"{p.stem}.stac.json").read_text()) for p in paths}


@pbtest.not_about_memory
def test_grid_lies_in_its_geometry_and_bbox(scratch):
    made = items(scratch, [write(scratch / f"{name}.tif", *grid) for name, grid in GRIDS.items()])
    wrong = []
    for name, (crs, transform) in GRIDS.items():
        try:
            assert made[name]["geometry"] is not None, (name, "no geometry")
            well_formed(name, made[name])
            fits(name, made[name], crs, transform)
        except AssertionError as why:
            wrong.append(str(why))
    assert not wrong, "\n".join(wrong)


def test_hemisphere_systems_end_at_the_equator(scratch):
    grids = {f"ease{code}": (f"EPSG:{code}", centred(0, 0, 18000000)) for code in (6931, 6932, 3408, 3409)}
    grids["small"] = ("EPSG:6931", centred(0, 0, 10000000))
    made = items(scratch, [write(scratch / f"{name}.tif", *grid) for name, grid in grids.items()])
    for name, item in made.items():
        well_formed(name, item)
    assert made["ease6931"]["bbox"] == made["ease3408"]["bbox"] == [-180, 0, 180, 90], made["ease6931"]["bbox"]
    assert made["ease6932"]["bbox"] == made["ease3409"]["bbox"] == [-180, -90, 180, 0], made["ease6932"]["bbox"]
    fits("small", made["small"], *grids["small"])


def test_extent_of_a_collection_is_that_of_its_items(scratch):
    text = CONFIG.replace("datetime: file-time}", "datetime: file-time, collection: c}")
    for names, expected in ((("lonlat_to_180", "fiji"), (170, -180 + 1)), (("lonlat_to_180", "lonlat_from_180"), (170, -170)),
                            (("fiji", "full_disk_at_140"), None), (("lonlat_from_180", "arctic"), (-180, 180))):
        out = scratch / "_".join(names)
        paths = [write(scratch / f"{name}.tif", *GRIDS[name]) for name in names]
        (scratch / "c.yaml").write_text(text)
        pbtest.run("pushbroom", "run", "-c", scratch / "c.yaml", "-o", out, *paths)
        west, south, east, north = json.loads((out / "collection.json").read_text())["extent"]["spatial"]["bbox"][0]
        made = [json.loads((out / p.stem / "p" / f"{p.stem}.stac.json").read_text())["bbox"] for p in paths]
        assert south == min(b[1] for b in made) and north == max(b[3] for b in made), (names, south, north)
        assert west == made[0][0] if names[0] != "fiji" else west == made[1][0], (names, west, made)
        assert expected is None or west == expected[0], (names, west)
        for b in made:
            box = [west, south, east, north]
            assert in_box(box, np.array([[b[0], b[1]], [b[2], b[3]]]), 1e-9).all(), (names, box, b)
        assert (east - west) % 360 <= max((b[2] - b[0]) % 360 or 360 for b in made) + 20, (names, west, east)


def test_polar_tiles_are_in_the_right_hemisphere(scratch):
    text = CONFIG.replace("    products:", "    steps:\n      - warp: {grid: web-mercator, zoom: 2, size: 256, method: nearest}\n    products:")
    (scratch / "c.yaml").write_text(text)
    for name, code, rows in (("north", 6931, {0, 1, 2}), ("south", 6932, {1, 2, 3})):
        scene = write(scratch / f"{name}.tif", f"EPSG:{code}", centred(0, 0, 18000000))
        report, = pbtest.run_json("pushbroom", "run", "--json", "-c", scratch / "c.yaml", "-o", scratch / "out", scene)
        made = {t["id"] for t in report["report"]["tiles"] if t["state"] == "made"}
        found = {int(i.replace("/", "-").split("-")[-1]) for i in made}
        outer = 0 if name == "north" else 3
        assert outer in found and found >= rows, (name, made)


def points(path, place):
    """A scene of 121 ground control points, whose longitudes jump as those of satellites do."""
    gcps = []
    for row in np.linspace(0, SIDE, 11):
        for column in np.linspace(0, SIDE, 11):
            lon, lat = place(column / SIDE, row / SIDE)
            gcps.append(gdal.GCP((lon + 180) % 360 - 180, lat, 0, column, row))
    return write(path, gcps=gcps)


def test_points_across_180_degrees_give_two_polygons(scratch):
    across = points(scratch / "across.tif", lambda x, y: (179.2 + 2 * x - 0.2 * y, 62 + 0.2 * x - 0.8 * y))
    item = items(scratch, [across])["across"]
    well_formed("across", item)
    assert item["geometry"]["type"] == "MultiPolygon" and np.allclose(item["bbox"], [179, 61.2, -178.8, 62.2], atol=1e-6), item["bbox"]


def test_points_around_a_pole_give_a_polygon_over_it(scratch):
    to, _ = ways("EPSG:3413")
    t = centred(500000, 0, 2000000)

    def place(x, y):
        lon, lat, _ = to.TransformPoint(t[0] + x * SIDE * t[1], t[3] + y * SIDE * t[5])
        return lon, lat

    item = items(scratch, [points(scratch / "arctic.tif", place)])["arctic"]
    well_formed("arctic", item)
    assert item["bbox"][0] == -180 and item["bbox"][2:] == [180, 90], item["bbox"]
    assert abs(item["bbox"][1] - min(place(*p)[1] for p in ((0, 0), (0, 1), (1, 0), (1, 1)))) < 0.05, item["bbox"]


if __name__ == "__main__":
    pbtest.main()
