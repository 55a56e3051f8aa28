# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Sentinel-1 products as SAFE folders, made: the annotations that the processor writes, with the numbers of a test, and an image."""
import numpy as np
from osgeo import gdal

gdal.UseExceptions()
HEADER = ("<adsHeader><missionId>S1A</missionId><productType>GRD</productType><polarisation>{}</polarisation><mode>IW</mode>"
          "<startTime>2023-08-09T02:07:29.5</startTime><absoluteOrbitNumber>49792</absoluteOrbitNumber></adsHeader>")


def row(numbers, form="{:.6e}"):
    return " ".join(form.format(n) for n in numbers)


def vectors(kind, name, lines, at, tables):
    """tables: {element: array of lines x places}."""
    text = "".join(f"<{name}><azimuthTime>2023-08-09T02:07:29.5</azimuthTime><line>{line}</line>"
                   f"<pixel count=\"{len(at[i])}\">{row(at[i], '{:d}')}</pixel>"
                   + "".join(f"<{k} count=\"{len(at[i])}\">{row(v[i])}</{k}>" for k, v in tables.items()) + f"</{name}>"
                   for i, line in enumerate(lines))
    return f'<{kind} count="{len(lines)}">{text}</{kind}>'


def interpolated(lines, at, table, height, width):
    """Bilinear between lines and places, in float64; beyond the ends the first and last hold."""
    rows = np.array([np.interp(np.arange(width), at[i], table[i]) for i in range(len(lines))])
    return np.array([np.interp(np.arange(height), lines, rows[:, x]) for x in range(width)]).T


class Product:
    """One scene; write() puts it into a folder, area[quantity] and noise are what a pixel's tables are."""

    def __init__(self, seed, width=301, height=257, version=3, polarisations=("vv", "vh"), name="S1A_IW_GRDH_1SDV_20230809T020729"):
        self.random = np.random.default_rng(seed)
        self.width, self.height, self.version, self.polarisations, self.name = width, height, version, polarisations, name
        self.dn, self.area, self.noise, self.files, self.more = {}, {}, {}, {}, ""
        for p in polarisations:
            self.make(p)

    def places(self, step):
        return sorted({*range(0, self.width - 1, step), self.width - 1})

    def make(self, p):
        r, w, h = self.random, self.width, self.height
        dn = r.integers(1, 400, (h, w)).astype(np.uint16)
        dn[:, :7] = dn[h - 5:] = 0
        lines = [-31, 0, 40, 97, 180, h + 20]
        at = [self.places(40)] * len(lines)
        tables = {k: np.round(r.uniform(300, 600, (len(lines), len(at[0]))), 4) for k in ("sigmaNought", "betaNought", "gamma")}
        calibration = vectors("calibrationVectorList", "calibrationVector", lines, at, tables)
        self.area[p] = {to: interpolated(lines, at, tables[k], h, w) ** 2
                        for to, k in (("sigma0", "sigmaNought"), ("beta0", "betaNought"), ("gamma0", "gamma"))}
        range_at = [self.places(33), self.places(50), self.places(33)]
        range_lut = [np.round(r.uniform(500, 4000, len(a)), 3) for a in range_at]
        kind = ("noiseRange", "noiseRangeLut") if self.version == 3 else ("noise", "noiseLut")
        noise = vectors(f"{kind[0]}VectorList", f"{kind[0]}Vector", [0, 120, h - 1], range_at, {kind[1]: range_lut})
        self.noise[p] = interpolated([0, 120, h - 1], range_at, range_lut, h, w)
        noise += self.azimuth(p) if self.version == 3 else ""
        stem = f"s1a-iw-grd-{p}-20230809t020729-20230809t020754-049792-05fce6-00{1 + len(self.files)}"
        self.dn[p], self.files[p] = dn, (stem, calibration, noise)

    def azimuth(self, p):
        blocks, text = [(0, 149, 0, 99), (150, self.height - 1, 0, 99), (0, self.height - 1, 100, 280)], ""
        for first, last, left, right in blocks:  # pixels after 280 are in none
            lines = sorted({*range(first + 3, last, 20), last})
            lut = np.round(self.random.uniform(0.8, 1.2, len(lines)), 5)
            text += (f"<noiseAzimuthVector><swath>IW1</swath><firstAzimuthLine>{first}</firstAzimuthLine><firstRangeSample>{left}"
                     f"</firstRangeSample><lastAzimuthLine>{last}</lastAzimuthLine><lastRangeSample>{right}</lastRangeSample>"
                     f"<line>{row(lines, '{:d}')}</line><noiseAzimuthLut>{row(lut)}</noiseAzimuthLut></noiseAzimuthVector>")
            self.noise[p][first:last + 1, left:right + 1] *= np.interp(np.arange(first, last + 1), lines, lut)[:, None]
        return f"<noiseAzimuthVectorList>{text}</noiseAzimuthVectorList>"

    def annotation(self, p):
        return (f"<product>{HEADER.format(p.upper())}<generalAnnotation><productInformation><pass>Descending</pass><radarFrequency>5.405000454334350e+09</radarFrequency>"
                f"</productInformation></generalAnnotation><imageAnnotation><imageInformation><rangePixelSpacing>10.0</rangePixelSpacing>"
                f"<azimuthPixelSpacing>10.0</azimuthPixelSpacing><numberOfSamples>{self.width}</numberOfSamples><numberOfLines>"
                f"{self.height}</numberOfLines><incidenceAngleMidSwath>38.5</incidenceAngleMidSwath></imageInformation>"
                f"<processingInformation><thermalNoiseCorrectionPerformed>false</thermalNoiseCorrectionPerformed>"
                f"</processingInformation></imageAnnotation>{self.more}</product>")

    def write(self, parent, georeference=None):
        folder = parent / f"{self.name}.SAFE"
        (folder / "annotation/calibration").mkdir(parents=True)
        (folder / "measurement").mkdir()
        for p, (stem, calibration, noise) in self.files.items():
            (folder / f"annotation/{stem}.xml").write_text(self.annotation(p))
            for kind, name, text in (("calibration", "calibration", calibration), ("noise", "noise", noise)):
                (folder / f"annotation/calibration/{kind}-{stem}.xml").write_text(
                    f'<?xml version="1.0" encoding="UTF-8"?><{name}>{HEADER.format(p.upper())}{text}</{name}>')
            out = gdal.GetDriverByName("GTiff").Create(str(folder / f"measurement/{stem}.tiff"), self.width, self.height, 1, gdal.GDT_UInt16)
            out.GetRasterBand(1).WriteArray(self.dn[p])
            if georeference is not None:
                georeference(out)
            out.FlushCache()
        return folder

    def backscatter(self, p, to, noise=True):
        """float64; NaN where DN is 0."""
        dn = self.dn[p].astype(np.float64)
        return np.where(dn == 0, np.nan, np.maximum(dn ** 2 - (self.noise[p] if noise else 0), 0) / self.area[p][to])
