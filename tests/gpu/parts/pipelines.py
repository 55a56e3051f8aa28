# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Pipelines and scenes of the parts."""
import struct

EXACT = """
  input: {match: ["*"], bands: {B: 1, G: 2, R: 3, N: 4}, scale: 0.0001}
  steps:
    - index: {names: [NDVI, EVI, SAVI]}
    - convolve: {kernel: gaussian, size: 7, bands: {SOFT: NDVI}}
    - convolve: {kernel: sobel, size: 3, bands: {EDGE: SOFT}}
    - math: {bands: {MASK: "where(EDGE > 0.2, 1, 0)", ROOT: "sqrt(N * R)"}}
  products:
    - cog: {bands: [NDVI, EVI, SAVI, SOFT, EDGE, ROOT], compress: zstd}
    - cog: {name: mask, bands: [MASK], type: uint8, nodata: 255, overviews: nearest, compress: zstd}
    - quicklook: {bands: [R, G, B], size: 512}
    - statistics: {}
"""
POINT = """
  input: {match: ["*"], bands: {B: 1, G: 2, R: 3, N: 4}, scale: 0.0001}
  steps:
    - index: {names: [NDVI, EVI, SAVI]}
    - math: {bands: {MASK: "where(NDVI > 0.2, 1, 0)", ROOT: "sqrt(N * R)", LN: "log(N + 1) ** 2"}}
  products:
    - cog: {bands: [NDVI, EVI, SAVI, ROOT, LN], compress: zstd}
    - cog: {name: mask, bands: [MASK], type: uint8, nodata: 255, overviews: nearest, compress: zstd}
    - quicklook: {bands: [R, G, B], size: 512}
    - statistics: {}
"""
NDVI = """
  input: {match: ["*"], bands: {B: 1, G: 2, R: 3, N: 4}, scale: 0.0001}
  steps:
    - index: {names: [NDVI]}
  products:
    - cog: {bands: [NDVI], compress: COMPRESS}
"""
CLASSES = """
  input: {match: ["*"], bands: {B: 1, G: 2, R: 3, N: 4}, scale: 0.0001}
  steps:
    - classify: {bands: [B, G, R, N], classes: 6, rounds: 5, as: KIND}
  products:
    - cog: {bands: [KIND], type: uint8, nodata: 255, compress: COMPRESS}
"""
ROUNDS = """
  input: {match: ["*"], bands: {B: 1, G: 2, R: 3, N: 4}, scale: 0.0001}
  steps:
    - classify: {bands: [B, G, R, N], classes: 7, rounds: 20, as: KIND}
  products:
    - cog: {bands: [KIND], type: uint8, nodata: 255, compress: zstd}
    - statistics: {}
"""
CHAINS = {"point": POINT, "halo": EXACT}
SCENES = {
    "u16 tiled": ["--size", "2300x1900"],
    "u16 strips, collar": ["--size", "2111x1777", "--strips", "--block", "16", "--collar", "--kind", "coast"],
    "u8 band": ["--size", "1500x1500", "--type", "Byte", "--interleave", "BAND"],
    "f32": ["--size", "1300x900", "--type", "Float32", "--compress", "NONE"],
    "f64 tiny": ["--size", "17x5", "--type", "Float64", "--compress", "NONE", "--strips", "--block", "1"],
    "i16": ["--size", "700x700", "--type", "Int16", "--block", "256"],
    "u32": ["--size", "700x701", "--type", "UInt32", "--block", "256"],
    "i32": ["--size", "701x700", "--type", "Int32", "--block", "256"],
}
METHODS = ["nearest", "bilinear", "cubic", "average", "mode"]
# Steps that change the grid, and the output's bands; OLD is another day's scene, shifted, of another type; PAN has pixels a quarter as wide.
GRIDS = {
    "crop": (["crop: {window: [37, 21, 800, 601]}", 'math: {bands: {X: "(N - R) / (N + R)"}}'], ["X", "B"]),
    "finer": ([f"resample: {{factor: 1.7, method: {m}, bands: {{{m.upper()}: N}}}}" for m in METHODS], [m.upper() for m in METHODS]),
    "coarser": ([f"resample: {{factor: 0.37, method: {m}, bands: {{{m.upper()}: N}}}}" for m in METHODS], [m.upper() for m in METHODS]),
    "tenth": ([f"resample: {{factor: 0.1, method: {m}, bands: {{{m.upper()}: N}}}}" for m in METHODS], [m.upper() for m in METHODS]),
    "difference": (["difference: {bands: {X: R, Y: N}, minus: [OLD_R, OLD_N]}"], ["X", "Y"]),
    "pansharpen": (["pansharpen: {pan: P, bands: [R, G, B]}"], ["R", "G", "B"]),
    "stretch": (['math: {bands: {V: "(N - R) / (N + R)"}}', "stretch: {bands: {X: N, Y: V}, high: 255}",
                 "stretch: {bands: {Z: Y}, method: stddev, beyond: keep}", "roughness: {bands: {W: Z}}"], ["X", "Y", "Z", "W"]),
    "ranges": (["resample: {factor: 0.3, method: average, bands: {A: N}}", "stretch: {bands: {X: A}, percentiles: [1, 90]}"], ["X"]),
    "classes": (['math: {bands: {V: "(G - N) / (G + N)"}}', "convolve: {kernel: gaussian, size: 5, bands: {SOFT: N}}",
                 "classify: {bands: [B, G, R, SOFT], classes: 7, rounds: 9, as: KIND}", "classify: {bands: [V, R], classes: 16, rounds: 3, init: percentiles, as: FINE}",
                 "classify: {method: otsu, bands: [V], as: WATER}"], ["KIND", "FINE", "WATER"]),
    "gate": (['gate: {keep: "(N > 0.1) * (N < 0.4)"}', "convolve: {kernel: gaussian, size: 7, bands: {SOFT: N}}"], ["SOFT", "R"]),
    "mask": (['math: {bands: {QA: "floor(N * 40)"}}', "resample: {factor: 0.5, method: nearest, bands: {COARSE: QA}}",
              "mask: {name: CLEAR, band: COARSE, drop: [3, 4, 11], grow: 9, apply: [R, N], gate: true}",
              "mask: {band: QA, drop_bits: [1, 3], grow: 2, shape: square, apply: {M: G}}", "mask: {bands: [B, G], keep: [0.01, 0.3], apply: [R]}",
              'math: {bands: {X: "where(bits(QA, 0, 2) == 1 and isvalid(R) or mod(N, 0.01) < 0.005, sin(N * 9), invalid)"}}'], ["R", "N", "M", "X"]),
    "gate, all left out": (['gate: {keep: "N > 9"}', "stretch: {bands: {X: N}}"], ["X", "R"]),
    "composite": (['math: {bands: {A_1: B, A_2: G, A_3: R, A_4: N}}', "convolve: {kernel: gaussian, size: 5, bands: {A_5: N}}",
                   'composite: {bands: {MEDIAN: A}, of: [_1, _2, _3, _4, _5], clear: "A{} > 0.05"}',
                   "composite: {method: max-ndvi, bands: {GREENEST: A}, of: [_1, _3, _4], red: A, nir: A}",
                   'composite: {method: latest-clear, bands: {LATEST: A}, of: [_4, _2, _5], clear: "A{} < 0.2"}'], ["MEDIAN", "GREENEST", "LATEST"]),
    "mix": (["convolve: {kernel: gaussian, size: 5, bands: {SOFT: N}}", "difference: {bands: {D: SOFT}, minus: [OLD_N], method: cubic}",
             "pansharpen: {pan: P, bands: {S: D, T: R}}", "crop: {window: [411, 333, 2000, 1700], bands: [S, T]}",
             "resample: {factor: 0.61, method: average, bands: [S, T]}", "roughness: {size: 5, bands: {ROUGH: S}}", 'math: {bands: {X: "ROUGH + sqrt(abs(T))"}}'],
            ["S", "T", "X"]),
}
# Into other coordinate systems: by a process that has the GPU for itself.
WARPS = {
    **{f"warp {m}": ([f"warp: {{crs: 'EPSG:3857', method: {m}, bands: {{X: N, Y: R}}}}"], ["X", "Y"]) for m in (*METHODS, "lanczos")},
    **{f"warp, coarser, {m}": (["median: {bands: {SOFT: N}}", f"warp: {{crs: 'EPSG:32634', pixel: 27.3, method: {m}, bands: {{X: SOFT, Y: R}}}}",
                                "roughness: {bands: {W: X}}"], ["X", "Y", "W"]) for m in ("bilinear", "mode")},
    # Placed by RPCs, over the ground of another file's heights.
    **{f"warp, relief, {m}": ([f"warp: {{crs: 'EPSG:32633', from: rpc, dem: H, pixel: 11, method: {m}, bands: {{X: N, Y: R}}}}"], ["X", "Y"])
       for m in ("nearest", "cubic", "average")},
    "warp, two systems": (["warp: {crs: 'EPSG:4326', method: cubic, bands: {X: N, Y: R}}", "stretch: {bands: {Z: X}, high: 255}",
                           "warp: {crs: 'EPSG:3857', pixel: 12, bands: [X, Y, Z]}"], ["X", "Y", "Z"]),
    "warp, tiles, mgrs": (["warp: {grid: mgrs, pixel: 60, method: bilinear, bands: {X: N, Y: R}}"], ["X", "Y"]),
    "warp, tiles, web": (["warp: {grid: web-mercator, zoom: 13, size: 512, method: average, bands: {X: N, Y: R}}"], ["X", "Y"]),
    "match": (["histogram_match: {bands: {X: N, Y: R}, reference: [R, G]}", "convolve: {kernel: gaussian, size: 5, bands: {SOFT: X}}"],
              ["X", "Y", "SOFT"]),
    "sieve": (['math: {bands: {K: "floor(N * 20)"}}', "sieve: {bands: {X: K}, size: 12}", "median: {bands: {Y: X}}"], ["X", "Y"]),
}
WAYS = [("pinned", "wic"), ("pinned", "stream"), ("host", "wic")]


# RPCs of the scene of GRIDS, with its middle at 10.5792 E, 53.1942 N, in the order of TIFF's tag of RPCs: biases, offsets and scales of
# line, column, latitude, longitude and height, four polynomials. A higher place is further to the right.
RPCS = [-1, -1, 500, 550, 53.1942, 10.5792, 200, 500, 550, 0.045, 0.083, 500] + [
    coefficients.get(i, 0) for coefficients in ({1: 0.02, 2: -1, 3: 0.01, 4: 0.002}, {0: 1, 2: 0.003},
                                                {1: 1, 2: 0.02, 3: 0.04, 9: 0.0004}, {0: 1, 3: -0.004}) for i in range(20)]


def grid_pipeline(work, name):
    steps, outputs = (GRIDS | WARPS)[name]
    sources = f"""
    sources:
      OLD: {{file: {work}/old.tif, bands: {{OLD_B: 1, OLD_G: 2, OLD_R: 3, OLD_N: 4}}, scale: 0.01}}
      PAN: {{file: {work}/pan.tif, bands: {{P: 1}}}}"""
    own = sources if name in ("difference", "pansharpen", "mix") else ""
    if "relief" in name:
        own = f"""
    sources: {{DEM: {{file: {work}/old.tif, bands: {{H: 1}}, scale: 0.1}}}}"""
    return f"""
  input:
    match: ["*"]
    bands: {{B: 1, G: 2, R: 3, N: 4}}
    scale: 0.0001{own}
  steps:
""" + "".join(f"    - {step}\n" for step in steps) + f"""
  products:
    - cog: {{bands: [{', '.join(outputs)}], type: float32, compress: zstd}}
    - quicklook: {{bands: [{outputs[0]}], size: 256}}
    - statistics: {{bands: [{outputs[0]}]}}
"""


def grid_scene(host):
    """The scene of GRIDS, and its sources next to it."""
    host.scene("old", ["--size", "700x900", "--type", "Int16", "--block", "128", "--pixel", "13", "--corner", "600220,5899000", "--seed", "5"])
    host.scene("pan", ["--size", "4400x4000", "--bands", "1", "--pixel", "2.5", "--block", "256", "--seed", "7"])
    return host.scene("grids", ["--size", "1100x1000", "--block", "256", "--collar", "--kind", "coast"])


def rpc_scene(scene):
    """The same with RPCs: a directory with one tag more at the end of the file."""
    data = bytearray(scene.read_bytes())
    order, at = {b"II*\0": "<", b"MM\0*": ">"}[bytes(data[:4])], {b"I": "<I", b"M": ">I"}[bytes(data[:1])]
    first, = struct.unpack_from(at, data, 4)
    count, = struct.unpack_from(order + "H", data, first)
    entries = [bytes(data[first + 2 + 12 * i:first + 14 + 12 * i]) for i in range(count)]
    data += bytes(len(data) % 2)
    entries.append(struct.pack(order + "HHII", 50844, 12, len(RPCS), len(data)))
    data += struct.pack(f"{order}{len(RPCS)}d", *RPCS)
    struct.pack_into(at, data, 4, len(data))
    data += struct.pack(order + "H", count + 1) + b"".join(sorted(entries, key=lambda e: struct.unpack(order + "H", e[:2])))
    data += scene.read_bytes()[first + 2 + 12 * count:first + 6 + 12 * count]
    made = scene.with_name("grids_rpc.tif")
    made.write_bytes(data)
    return made
