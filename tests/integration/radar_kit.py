# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Radar images of a made landscape, as Sentinel-1 delivers them: a part of the swath of a real annotation, into which every piece
of ground is projected by the range-Doppler equations in numpy. Its orbit is one polynomial through all state vectors, not
pieces of Lagrange's, and it finds places by scipy's roots."""
import re
import xml.etree.ElementTree as ET

import numpy as np
from osgeo import gdal, osr
from scipy.interpolate import RectBivariateSpline
from scipy.optimize import fsolve

import pbtest
from safe_kit import HEADER, Product

gdal.UseExceptions()
osr.UseExceptions()
ANNOTATION = pbtest.SOURCE / "tests/data/metadata/s1b-iw-grd-vv-geometry.xml"
LIGHT = 299792458.0
UTM = 32633
LATER = 4.3  # seconds of the real image before the first line: two updates of the polynomials are near


def seconds(text, since):
    return float((np.datetime64(text, "ns") - since) / np.timedelta64(1, "ns")) * 1e-9


def to_utm():
    systems = []
    for code in (4326, UTM):
        system = osr.SpatialReference()
        system.ImportFromEPSG(code)
        system.SetAxisMappingStrategy(osr.OAMS_TRADITIONAL_GIS_ORDER)
        systems.append(system)
    return systems


def convert(x, y, back=False):
    """Longitude, latitude to UTM, or back."""
    lonlat, utm = to_utm()
    way = osr.CoordinateTransformation(*((utm, lonlat) if back else (lonlat, utm)))
    out = np.array(way.TransformPoints(np.stack([np.ravel(x), np.ravel(y)], 1)))
    return out[:, 0].reshape(np.shape(x)), out[:, 1].reshape(np.shape(x))


def earth_fixed(lon, lat, height):
    a, f = 6378137.0, 1 / 298.257223563
    lon, lat, e2 = np.radians(lon), np.radians(lat), f * (2 - f)
    n = a / np.sqrt(1 - e2 * np.sin(lat) ** 2)
    return np.stack([(n + height) * np.cos(lat) * np.cos(lon), (n + height) * np.cos(lat) * np.sin(lon), (n * (1 - e2) + height) * np.sin(lat)])


class Geometry:
    """Geometry of `width` x `height` pixels from near range on."""

    def __init__(self, width, height):
        root = ET.parse(ANNOTATION).getroot()
        image = root.find(".//imageInformation")
        self.width, self.height, self.line, self.pixel = width, height, float(image.findtext("azimuthTimeInterval")), 10.0
        self.since = np.datetime64(image.findtext("productFirstLineUtcTime"), "ns") + np.timedelta64(int(LATER * 1e9), "ns")
        orbit = list(root.iter("orbit"))
        time = [seconds(o.findtext("time"), self.since) for o in orbit]
        self.path = [np.polynomial.Polynomial.fit(time, [float(o.findtext(f"position/{k}")) for o in orbit], 11) for k in "xyz"]
        updates = list(root.find(".//coordinateConversionList"))
        self.times = np.array([seconds(u.findtext("azimuthTime"), self.since) for u in updates])
        self.terms = np.array([u.findtext("grsrCoefficients").split() for u in updates], float)
        self.middle = np.mean([self.slant(np.array(p * self.pixel), np.array(height / 2 * self.line)) for p in (0, width - 1)])

    def slant(self, ground, time):
        """Slant range of a ground range, by the polynomials of both updates around the time."""
        k = np.clip(np.searchsorted(self.times, time, "right") - 1, 0, len(self.times) - 2)
        part = (time - self.times[k]) / (self.times[k + 1] - self.times[k])
        first, second = (sum(self.terms[k + i, n] * ground ** n for n in range(self.terms.shape[1])) for i in (0, 1))
        return first * (1 - part) + second * part

    def project(self, lon, lat, height):
        """Column and line, 0.5 in the middle of the first pixel."""
        place, time = earth_fixed(lon, lat, height), np.zeros(np.shape(lon))
        for _ in range(3):
            p, v, a = (np.stack([(c.deriv(n) if n else c)(time) for c in self.path]) for n in range(3))
            time = time - ((place - p) * v).sum(0) / (((place - p) * a).sum(0) - (v * v).sum(0))
        distance = np.sqrt(((place - np.stack([c(time) for c in self.path])) ** 2).sum(0))
        ground = np.full(np.shape(lon), self.width * self.pixel / 2)
        for _ in range(4):
            here = self.slant(ground, time)
            ground = ground - (here - distance) / (self.slant(ground + 1, time) - here)
        return ground / self.pixel + 0.5, (time - (distance - self.middle) / LIGHT) / self.line + 0.5

    def place(self, column, line, height):
        guess = (12.43, 47.11 - LATER * 0.06)
        return fsolve(lambda p: np.subtract(self.project(*p, height), (column, line)), guess, xtol=1e-13)

    def incidence(self, lon, lat, height):
        """Degrees between the line of sight and the vertical."""
        place = earth_fixed(lon, lat, height)
        time = (self.project(lon, lat, height)[1] - 0.5) * self.line
        sight = np.stack([c(time) for c in self.path]) - place
        up = earth_fixed(lon, lat, height + 1) - place
        return np.degrees(np.arccos((sight * up).sum() / np.linalg.norm(sight)))

    def annotation(self, base):
        """The real one, of this part, whose tie points are at the height `base`; of the product that safe_kit's headers are of."""
        text = re.sub("<adsHeader>.*</adsHeader>", HEADER.format("VV"), ANNOTATION.read_text(), flags=re.S)
        for name, value in (("numberOfSamples", self.width), ("numberOfLines", self.height), ("productFirstLineUtcTime", str(self.since)[:26])):
            text = re.sub(f"<{name}>[^<]*<", f"<{name}>{value}<", text)
        points = "".join(f"<geolocationGridPoint><line>{y}</line><pixel>{x}</pixel><height>{base}</height></geolocationGridPoint>"
                         for y in (0, self.height - 1) for x in (0, self.width - 1))
        return re.sub("(<geolocationGridPointList[^>]*>).*(</geolocationGridPointList>)", rf"\1{points}\2", text, flags=re.S)


class Landscape:
    """Land at `base` metres with a hill of `top` metres above it, a lake on the plain and a tarn on top. Its map has pixels of
    10 m; `left`, `upper` is its corner."""

    def __init__(self, geometry, base=1500.0, top=130.0):
        self.geometry, self.base, self.top = geometry, base, top
        x, y = convert(*geometry.place(geometry.width / 2, geometry.height / 2, base))
        self.side = 0.62 * min(geometry.width, geometry.height) * 10  # side of the part inside the image, turned like it
        self.left, self.upper = 10 * np.round((x - self.side / 2) / 10), 10 * np.round((y + self.side / 2) / 10)
        self.n = int(self.side / 10)
        self.foot = 0.38 * self.side  # width of the hill, around its top
        self.hill = (self.left + 0.35 * self.side, self.upper - 0.5 * self.side, 0.09 * self.side)
        self.lake = (self.left + 0.83 * self.side, self.upper - 0.2 * self.side, 0.12 * self.side)

    def heights(self, x, y):
        off = np.clip((np.hypot(x - self.hill[0], y - self.hill[1]) - self.hill[2]) / (self.foot - self.hill[2]), 0, 1)
        return self.base + self.top * np.cos(off * np.pi / 2) ** 2

    @staticmethod
    def disc(x, y, disc):
        return (x - disc[0]) ** 2 + (y - disc[1]) ** 2 < disc[2] ** 2

    def water(self, x, y):
        return self.disc(x, y, self.hill) | self.disc(x, y, self.lake)

    def pixels(self):
        """Centres of the map's pixels."""
        return np.meshgrid(self.left + 10 * (np.arange(self.n) + 0.5), self.upper - 10 * (np.arange(self.n) + 0.5))

    def seen(self, land, water):
        """The radar's image: the mean of what all pieces of 5 m send back to each pixel."""
        g, around = self.geometry, 0.5 * self.side
        x, y = (np.arange(start - around, start + self.side + around, 5.0) for start in (self.left, self.upper - self.side))
        few = [axis[0] + np.linspace(0, axis[-1] - axis[0], 9) for axis in (x, y)]  # coordinates are smooth
        lonlat = [RectBivariateSpline(*few, c)(x, y) for c in convert(*np.meshgrid(*few, indexing="ij"), back=True)]
        x, y = np.meshgrid(x, y, indexing="ij")
        column, line = g.project(*lonlat, self.heights(x, y))
        at = np.floor(line).astype(int) * g.width + np.floor(column).astype(int)
        inside = (column >= 0) & (column < g.width) & (line >= 0) & (line < g.height)
        sums = np.bincount(at[inside], np.where(self.water(x, y), water, land)[inside], g.width * g.height)
        counts = np.bincount(at[inside], minlength=g.width * g.height)
        return np.where(counts > 0, sums / np.maximum(counts, 1), land).reshape(g.height, g.width)

    def dem(self, path, step=20.0, code=UTM):
        """Elevations above the ellipsoid."""
        around = 60 * step
        left, upper, n = self.left - around, self.upper + around, int((self.side + 2 * around) / step)
        x, y = np.meshgrid(left + step * (np.arange(n) + 0.5), upper - step * (np.arange(n) + 0.5))
        out = gdal.GetDriverByName("GTiff").Create(str(path) if code == UTM else f"{path}.utm.tif", n, n, 1, gdal.GDT_Float32)
        out.SetGeoTransform([left, step, 0, upper, 0, -step])
        out.SetSpatialRef(to_utm()[1])
        out.GetRasterBand(1).WriteArray(self.heights(x, y).astype(np.float32))
        out.FlushCache()
        if code != UTM:
            gdal.Warp(str(path), out, format="GTiff", dstSRS=f"EPSG:{code}", resampleAlg="cubic", dstNodata=-9999)
        return path

    def georeference(self, out):
        g, points = self.geometry, []
        for line in (0, g.height // 2, g.height):
            for column in (0, g.width // 2, g.width):
                lon, lat = g.place(column, line, self.base)
                points.append(gdal.GCP(lon, lat, self.base, column, line))
        out.SetGCPs(points, to_utm()[0])


class RadarProduct(Product):
    """A SAFE folder whose annotation has the geometry of a landscape's radar, and its image the landscape."""

    def __init__(self, landscape, seed=1, dn=None):
        g = landscape.geometry
        self.landscape = landscape
        super().__init__(seed, width=g.width, height=g.height, polarisations=("vv",), name="S1B_IW_GRDH_1SDV_20210401T052628")
        if dn is not None:
            self.dn["vv"] = dn

    def annotation(self, p):
        return self.landscape.geometry.annotation(self.landscape.base)

    def write(self, parent):
        return super().write(parent, self.landscape.georeference)
