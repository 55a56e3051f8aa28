# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Pipelines of the golden plans and products that use operators and files which no sample has."""
import collections

from scenes import doubles, four_bands, integers, planes, real, tiny, with_columns, with_mask, with_sources

Feature = collections.namedtuple("Feature", "scene steps products input", defaults=("match: ['*'], bands: {B: 1, G: 2, R: 3, N: 4}, scale: 0.0001",))
FOUR = "match: ['*'], bands: {B: 1, G: 2, R: 3, N: 4}, scale: 0.0001"
OLD = FOUR + ", sources: {OLD: {file: old.tif, bands: {OLD_B: 1, OLD_G: 2, OLD_R: 3, OLD_N: 4}, scale: 0.01}}"
PAN = FOUR + ", sources: {OLD: {file: old.tif, bands: {OLD_N: 4}, scale: 0.01}, PAN: {file: pan.tif, bands: {P: 1}}}"
CLOUDS = "match: ['*'], bands: {B: 1, G: 2, R: 3, SCL: 4}, nodata: 0"
FEATURES = {
    "warp": Feature(four_bands, ["index: {names: [NDVI]}", "warp: {crs: 'EPSG:3857', method: bilinear, bands: [NDVI, R]}"],
                    ["cog: {bands: [NDVI, R], type: float32}", "quicklook: {bands: [NDVI]}", "statistics: {bands: [NDVI]}"]),
    "warp-average": Feature(four_bands, ["median: {bands: {SOFT: N}}", "warp: {crs: 'EPSG:32634', pixel: 27.3, method: average, bands: {X: SOFT}}", "roughness: {bands: {W: X}}"],
                            ["cog: {bands: [X, W], type: float32}"]),
    "tiles-mgrs": Feature(four_bands, ["index: {names: [NDVI]}", "warp: {grid: mgrs, pixel: 60, method: nearest, bands: [NDVI]}"],
                          ["cog: {bands: [NDVI], type: int16, nodata: -32768, scale: 0.0001}", "quicklook: {bands: [NDVI]}"]),
    "tiles-web": Feature(four_bands, ["warp: {grid: web-mercator, zoom: 12, method: cubic, bands: [R]}"], ["cog: {bands: [R], type: float32}"]),
    "histogram-match": Feature(with_sources, ["histogram_match: {bands: [R, N], reference: [OLD_R, OLD_N]}"], ["cog: {bands: [R, N], type: float32}"], OLD),
    "sieve": Feature(four_bands, ["math: {bands: {KIND: 'floor(N * 8)'}}", "sieve: {bands: [KIND], size: 12, connectivity: 8}"],
                     ["cog: {bands: [KIND], type: uint8, nodata: 255}", "statistics: {bands: [KIND], buckets: 8}"]),
    "sieve-classes": Feature(four_bands, ["classify: {bands: [R, N], classes: 4, rounds: 5, as: KIND}", "sieve: {bands: [KIND], size: 30}"],
                             ["cog: {bands: [KIND], type: uint8, nodata: 255}"]),
    "columns": Feature(with_columns, ["calibrate: {columns: detectors.csv, bands: [R, N]}", "index: {names: [NDVI]}", "convolve: {kernel: gaussian, size: 5, bands: {SOFT: N}}"],
                       ["cog: {bands: [R, N, NDVI, SOFT], type: float32}", "statistics: {bands: [R, N]}"], "match: ['*'], bands: {B: 1, G: 2, R: 3, N: 4}"),
    "gate": Feature(planes, ["gate: {keep: 'SCL < 8'}", "convolve: {kernel: gaussian, size: 7, bands: {SOFT: R}}"], ["cog: {bands: [SOFT, B], type: float32}"], CLOUDS),
    "gate-minimum": Feature(planes, ["gate: {keep: 'SCL < 8', minimum: 0.05, bands: [B, G, R]}"], ["cog: {bands: [B, G, R], type: uint16, nodata: 0}"], CLOUDS),
    "mask": Feature(planes, ["mask: {band: SCL, drop: [9], grow: 5, apply: [B, R], gate: true}", "math: {bands: {X: '(R - B) / (R + B)'}}"],
                    ["cog: {bands: [X], type: float32}", "quicklook: {bands: [R, G, B]}"], CLOUDS),
    "masked-file": Feature(with_mask, ["math: {bands: {X: '(G - R) / (G + R)'}}"], ["cog: {bands: [X], type: float32}", "cog: {name: rgb, bands: [R, G, B], type: uint8, mask: true}",
                                                                                "quicklook: {bands: [R, G, B]}"], "match: ['*'], bands: {R: 1, G: 2, B: 3}"),
    "composite-greenest": Feature(four_bands, ["math: {bands: {A_1: B, A_2: G, A_3: R, A_4: N}}", "composite: {method: max-ndvi, bands: {GREENEST: A}, of: [_1, _3, _4], red: A, nir: A}",
                                               "composite: {bands: {MEDIAN: A}, of: [_1, _2, _3, _4], clear: 'A{} > 0.05'}"], ["cog: {bands: [GREENEST, MEDIAN], type: float32}"]),
    "classify": Feature(four_bands, ["math: {bands: {V: '(G - N) / (G + N)'}}", "convolve: {kernel: gaussian, size: 5, bands: {SOFT: N}}",
                                     "classify: {bands: [B, G, R, SOFT], classes: 7, rounds: 9, as: KIND}", "classify: {method: otsu, bands: [V], as: WATER}"],
                        ["cog: {bands: [KIND, WATER], type: uint8, nodata: 255}", "statistics: {bands: [KIND], buckets: 7}"]),
    "stretch": Feature(four_bands, ["stretch: {bands: {X: N}, percentiles: [2, 98], high: 255}", "stretch: {bands: {Z: R}, method: stddev, beyond: keep}", "roughness: {bands: {W: Z}}"],
                       ["cog: {bands: [X, Z, W], type: float32}"]),
    "pca": Feature(four_bands, ["pca: {bands: [B, G, R, N], as: [PC1, PC2]}"], ["cog: {bands: [PC1, PC2], type: float32}", "statistics: {bands: [PC1]}"]),
    "zones": Feature(with_sources, ["index: {names: [NDVI]}"], ["zones: {zones: areas.geojson, id: id, bands: [NDVI], stats: [mean, std, median]}"]),
    "statistics": Feature(four_bands, ["index: {names: [NDVI, EVI]}"], ["statistics: {bands: [B, N, NDVI, EVI], percentiles: [5, 50, 95]}"]),
    "quicklook": Feature(four_bands, [], ["quicklook: {bands: [R, G, B], size: 512, stretch: [2, 98]}", "quicklook: {name: n, bands: [N], ramp: viridis, size: 256}"]),
    "copy": Feature(four_bands, [], ["cog: {bands: [B, G, R, N], type: uint16, nodata: 0}", "cog: {name: n, bands: [N], type: uint16, nodata: 0, compress: zstd, overviews: nearest}"],
                    "match: ['*'], bands: {B: 1, G: 2, R: 3, N: 4}"),
    "digits-double": Feature(doubles, ["math: {bands: {S: 'A + C'}}"], ["cog: {bands: [A], type: float64}", "cog: {name: s, bands: [S], type: float32}"], "match: ['*'], bands: {A: 1, C: 2}"),
    "digits-integer": Feature(integers, ["mask: {bands: [A], keep: [1, 4000000000], apply: [A]}"], ["cog: {bands: [A, C], type: uint32, nodata: 0}"], "match: ['*'], bands: {A: 1, C: 2}"),
    "grids": Feature(with_sources, ["convolve: {kernel: gaussian, size: 5, bands: {SOFT: N}}", "difference: {bands: {D: SOFT}, minus: [OLD_N], method: cubic}",
                                    "pansharpen: {pan: P, bands: {S: D, T: R}}", "resample: {factor: 0.61, method: average, bands: [S, T]}", "math: {bands: {X: 'S + sqrt(abs(T))'}}"],
                     ["cog: {bands: [S, T, X], type: float32}", "quicklook: {bands: [X]}"], PAN),
    "difference": Feature(with_sources, ["difference: {bands: {X: R, Y: N}, minus: [OLD_R, OLD_N]}"], ["cog: {bands: [X, Y], type: float32}"], OLD),
    "cutline": Feature(with_sources, ["crop: {polygons: areas.geojson, cutline: true}", "index: {names: [NDVI]}"], ["cog: {bands: [NDVI, B], type: float32}"]),
    "crop-resample": Feature(four_bands, ["crop: {window: [37, 21, 301, 207]}", "resample: {factor: 1.7, method: bilinear, bands: {F: N}}"], ["cog: {bands: [F], type: float32}"]),
    "wide-window": Feature(four_bands, ["median: {size: 15, bands: {M: N}}", "convolve: {kernel: gaussian, size: 31, bands: {S: M}}"], ["cog: {bands: [S], type: float32}"]),
    "mosaic": Feature(with_sources, ["mosaic: {method: feather, width: 32, bands: {X: N}, of: [_NEW, _OLD]}"], ["cog: {bands: [X], type: float32}"],
                      "match: ['*'], bands: {N_NEW: 4}, scale: 0.0001, sources: {OLD: {file: old.tif, bands: {N_OLD: 4}, scale: 0.01}}"),
    "unmix": Feature(four_bands, ["unmix: {bands: [B, G, R, N], as: [VEG, SOIL], rmse: RMSE, endmembers: {VEG: [0.02, 0.06, 0.04, 0.48], SOIL: [0.1, 0.15, 0.2, 0.3], SHADE: [0.01, 0.01, 0.01, 0.02]}}"],
                     ["cog: {bands: [VEG, SOIL, RMSE], type: float32}"]),
    "pattern-tiles": Feature(four_bands, ["index: {names: [NDVI]}"], ["cog: {bands: [NDVI], type: float32}"], FOUR + "}\n    exchange: {pattern: multiple, n0: 3, n1: 2"),
    "painted": Feature(four_bands, ["index: {names: [NDVI]}"], ["cog: {name: rgb, bands: [R, G, B], stretch: [2, 98], compress: deflate}", "cog: {name: ndvi, bands: [NDVI], ramp: ndvi, range: [-1, 1]}"]),
    # Files of others in tests/data.
    "real-landsat7": Feature(real("landsat7_L7_ETMs_6band.tif"), ["index: {names: [NDVI, SAVI]}", "median: {bands: {SOFT: NDVI}}"],
                             ["cog: {bands: [NDVI, SAVI, SOFT], type: float32}", "quicklook: {bands: [R, G, B]}", "statistics: {bands: [NDVI]}", "stac: {datetime: file-time}"]),
    "real-alpha": Feature(real("mask_alpha/RGBA.uint16_alpha255.tif"), ["math: {bands: {X: '(G - R) / (G + R)'}}"],
                          ["cog: {bands: [X], type: float32}", "cog: {name: rgb, bands: [R, G, B], type: uint16, mask: true}"], "match: ['*'], bands: {B: 1, G: 2, R: 3}"),
    "real-big-endian": Feature(real("global/blue_marble_720x360_be.tif"), ["convolve: {kernel: sobel, size: 3, bands: {E: G}}"],
                               ["cog: {bands: [E], type: float32}", "cog: {name: rgb, bands: [R, G, B], type: uint8, nodata: 0}"], "match: ['*'], bands: {R: 1, G: 2, B: 3}"),
    "real-palette": Feature(real("palette/lc_stars.tif"), ["resample: {factor: 0.4, bands: {C: L}}"], ["cog: {bands: [C], type: uint8, nodata: 255}"], "match: ['*'], bands: {L: 1}"),
    "real-complex": Feature(real("odd/gdal_cint16.tif"), ["decibel: {bands: {D: A}}"], ["cog: {bands: [A, D], type: float32}"], "match: ['*'], bands: {A: 1}, complex: power"),
    "real-gcps": Feature(real("sentinel1/s1-vh_2023_gcps.tiff"), ["warp: {crs: 'EPSG:3857', from: gcps, order: 1, bands: [V]}"], ["cog: {bands: [V], type: float32}"], "match: ['*'], bands: {V: 1}"),
    "real-rpc": Feature(real("odd/gdal_byte_rpc.tif"), ["warp: {crs: 'EPSG:32755', from: rpc, height: 300, bands: [V]}"], ["cog: {bands: [V], type: float32}"], "match: ['*'], bands: {V: 1}"),
    "tiny": Feature(tiny, ["index: {names: [NDVI]}"], ["cog: {bands: [NDVI], type: float32}", "statistics: {}"], "match: ['*'], bands: {B: 1, G: 2, R: 3, N: 4}"),
}


def text(name):
    """The configuration of a feature, whose pipeline has its name."""
    feature = FEATURES[name]
    steps = "    steps:\n" + "".join(f"      - {step}\n" for step in feature.steps) if feature.steps else ""
    return f"pipelines:\n  {name}:\n    input: {{{feature.input}}}\n{steps}    products:\n" + "".join(f"      - {product}\n" for product in feature.products)
