#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: sanitized
"""Steps that change the grid of bands, through `pushbroom run`: random chains against an evaluation of whole images in numpy,
bit by bit, whatever the tiles and threads; single steps against GDAL; the places of products."""
import json
import math
import os
import random

import numpy as np
from osgeo import gdal, osr

import pbtest

gdal.UseExceptions()
TRANSFORM = (500000.0, 10.0, 0.0, 4000000.0, 0.0, -10.0)
TAPS = {"bilinear": 1.0, "cubic": 2.0}


def write(path, array, transform=TRANSFORM, block=64, nodata=0, epsg=32632):
    array = array if array.ndim == 3 else array[None]
    kind = {"uint8": gdal.GDT_Byte, "uint16": gdal.GDT_UInt16, "int16": gdal.GDT_Int16, "float32": gdal.GDT_Float32}[str(array.dtype)]
    options = ["COMPRESS=DEFLATE"] + (["TILED=YES", f"BLOCKXSIZE={block}", f"BLOCKYSIZE={block}"] if block else [])
    out = gdal.GetDriverByName("GTiff").Create(str(path), array.shape[2], array.shape[1], array.shape[0], kind, options)
    if transform:
        out.SetGeoTransform(transform)
        system = osr.SpatialReference()
        system.ImportFromEPSG(epsg)
        out.SetProjection(system.ExportToWkt())
    for i, plane in enumerate(array):
        out.GetRasterBand(i + 1).WriteArray(plane)
        if nodata is not None:
            out.GetRasterBand(i + 1).SetNoDataValue(nodata)
    return path


def compute(scratch, scene, bands, steps, outputs, compute="{memory: 64MiB}", code=0, sources=""):
    config = scratch / "c.yaml"
    config.write_text(f"""compute: {compute}
pipelines:
  p:
    input:
      bands: {{{', '.join(f'{b}: {i + 1}' for i, b in enumerate(bands))}}}
{sources}
    steps:
{''.join(f'      - {s}' + chr(10) for s in steps)}
    products:
      - cog: {{bands: [{', '.join(outputs)}], type: float32, blocksize: 64}}
      - statistics: {{bands: [{outputs[0]}]}}
      - quicklook: {{bands: [{outputs[0]}]}}
      - stac: {{datetime: file-time}}
""")
    report = pbtest.run_json("pushbroom", "run", "--json", "-c", config, "-o", scratch / "out", "--existing", "version", scene, code=code)[0]
    return report


def product(report, kind):
    return [p["path"] for p in report["products"] if p["type"] == kind][0]


# --- numpy ---


class Band:
    """Pixels of a whole image, and their place: x of the scene is (x - offset) / scale."""

    def __init__(self, pixels, scale=(1.0, 1.0), offset=(0.0, 0.0)):
        self.pixels, self.scale, self.offset = pixels.astype(np.float32), scale, offset

    def on(self, pixels):
        return Band(pixels, self.scale, self.offset)

    def grid(self):
        return self.pixels.shape, self.scale, self.offset

    def crop(self, x, y, w, h):
        return Band(self.pixels[y:y + h, x:x + w], self.scale, (self.offset[0] - x, self.offset[1] - y))

    def resample(self, method, shape, scale, offset):
        """The same arithmetic for all pixels at a time: float64 for places, float32 for weights and sums, in one order."""
        ways = [taps(method, shape[1 - axis], self.scale[axis] / scale[axis],
                     self.offset[axis] - offset[axis] * (self.scale[axis] / scale[axis]), self.pixels.shape[1 - axis]) for axis in (0, 1)]
        return Band((mode if method == "mode" else weigh)(self.pixels, method, *ways), scale, offset)


def taps(method, n, scale, offset, size):
    """first, weights [n, k] (0 beyond the image, with which nothing is counted), and the pixel at the centre."""
    pixel = np.arange(n, dtype=np.float64)
    centre = (pixel + 0.5) * scale + offset
    width = max(scale, 1.0)
    if method in TAPS:
        low, high = np.floor(centre - TAPS[method] * width), np.ceil(centre + TAPS[method] * width)
    elif method == "nearest":
        low, high = np.floor(centre), np.floor(centre) + 1
    else:
        edges = pixel * scale + offset, (pixel + 1.0) * scale + offset
        low, high = np.floor(edges[0]), np.ceil(edges[1])
    low, high = np.maximum(low, 0), np.minimum(high, size)
    count = np.maximum(high - low, 0).astype(int)
    at = low[:, None].astype(int) + np.arange(count.max() if n else 0)[None]
    there = np.arange(at.shape[1])[None] < count[:, None]
    if method in TAPS:
        t = (np.abs(at + 0.5 - centre[:, None]) / width).astype(np.float32)
        if method == "bilinear":
            weight = np.where(t < 1, np.float32(1) - t, np.float32(0))
        else:
            a = np.float32(-0.5)
            near = ((a + np.float32(2)) * t - (a + np.float32(3))) * t * t + np.float32(1)
            far = ((a * t - np.float32(5) * a) * t + np.float32(8) * a) * t - np.float32(4) * a
            weight = np.where(t < 1, near, np.where(t < 2, far, np.float32(0)))
    elif method == "nearest":
        weight = np.ones(at.shape, np.float32)
    else:
        weight = np.maximum(np.minimum(edges[1][:, None], at + 1.0) - np.maximum(edges[0][:, None], at), 0).astype(np.float32)
    return np.where(there, at, 0), np.where(there, weight, np.float32(0)).astype(np.float32), there, np.floor(centre)


def weigh(pixels, method, across, down):
    (ix, wx, tx, cx), (iy, wy, ty, cy) = across, down
    total, sums = np.zeros((len(iy), len(ix)), np.float32), np.zeros((len(iy), len(ix)), np.float32)
    if not ix.shape[1] or not iy.shape[1]:
        return np.full((len(iy), len(ix)), np.nan, np.float32)  # beyond all pixels
    if method == "nearest":
        out = pixels[iy[:, 0]][:, ix[:, 0]]
        return np.where(ty[:, :1] & tx[:, 0][None], out, np.nan)
    for j in range(iy.shape[1]):
        rows, row_total = np.zeros_like(sums), np.zeros_like(sums)
        for i in range(ix.shape[1]):
            v = pixels[iy[:, j]][:, ix[:, i]]
            good = ~np.isnan(v) & tx[:, i][None]
            rows = np.where(good, rows + wx[:, i][None] * v, rows).astype(np.float32)
            row_total = np.where(good, row_total + wx[:, i][None], row_total).astype(np.float32)
        use = ty[:, j][:, None]
        sums = np.where(use, sums + wy[:, j][:, None] * rows, sums).astype(np.float32)
        total = np.where(use, total + wy[:, j][:, None] * row_total, total).astype(np.float32)
    with np.errstate(invalid="ignore", divide="ignore"):
        out = np.where(total > 0, sums / total, np.float32(np.nan))
    if method in TAPS:
        inside = ((cy >= 0) & (cy < pixels.shape[0]))[:, None] & ((cx >= 0) & (cx < pixels.shape[1]))[None]
        at = pixels[np.clip(cy, 0, pixels.shape[0] - 1).astype(int)][:, np.clip(cx, 0, pixels.shape[1] - 1).astype(int)]
        out = np.where(inside & ~np.isnan(at), out, np.float32(np.nan))
    return out


def mode(pixels, _, across, down):
    (ix, wx, tx, _), (iy, wy, ty, _) = across, down
    out = np.full((len(iy), len(ix)), np.nan, np.float32)
    for y in range(len(iy)):
        for x in range(len(ix)):
            areas = {}
            for j in np.flatnonzero(ty[y]):
                for i in np.flatnonzero(tx[x]):
                    v = pixels[iy[y, j], ix[x, i]]
                    if not np.isnan(v):
                        areas[v] = np.float32(areas.get(v, np.float32(0)) + wy[y, j] * wx[x, i])
            best = max(areas.values(), default=0)
            if best > 0:
                out[y, x] = min(v for v in areas if areas[v] == best)
    return out


def roughness(band, size):
    padded = np.pad(band.pixels, size // 2, mode="constant", constant_values=np.nan)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (size, size))
    return band.on(windows.max((2, 3)) - windows.min((2, 3)))


def ends(pixels, method, percentiles):
    """The range of a stretch, as float32."""
    valid = pixels[~np.isnan(pixels)].astype(np.float64)
    if not valid.size:
        return np.float32(np.nan), np.float32(np.nan)
    return np.percentile(valid, percentiles).astype(np.float32) if method == "percentiles" else (np.float32(valid.min()), np.float32(valid.max()))


def stretch(band, a, b, low, high, clamp):
    low, high = np.float32(low), np.float32(high)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        half, steepest = np.float32(0.5), np.float32(np.finfo(np.float32).max if high > low else -np.finfo(np.float32).max)
        gain, base = ((high - low) * half / (b * half - a * half), low) if b > a else (steepest if clamp else np.float32(0), low + (high - low) * half)
        out = (band.pixels - a) * gain + base if not np.isnan(a) else np.full_like(band.pixels, np.nan)
    return band.on(np.clip(out, min(low, high), max(low, high)) if clamp else out)


# --- random chains ---


def random_step(rnd, bands):
    """A step on a band, as YAML and as what it does; the band X holds the result."""
    name = rnd.choice(list(bands))
    band = bands[name]
    h, w = band.pixels.shape
    kind = rnd.choice(["crop", "resample", "resample", "roughness", "math", "stretch"])
    if kind == "crop":
        cw, ch = rnd.randint(max(1, w // 2), w), rnd.randint(max(1, h // 2), h)
        x, y = rnd.randint(0, w - cw), rnd.randint(0, h - ch)
        return f"crop: {{window: [{x}, {y}, {cw}, {ch}], bands: {{X: {name}}}}}", band.crop(x, y, cw, ch)
    if kind == "resample":
        method = rnd.choice(["nearest", "bilinear", "cubic", "average", "mode"])
        factor = rnd.choice([0.5, 0.25, 2, 3, 1.7, 0.37, 0.61]) if w * h < 40000 else rnd.choice([0.5, 0.25, 0.37])
        if method == "mode" and w * h * factor * factor > 20000:
            method = "average"
        shape = tuple(max(1, math.floor(n * factor + 0.5)) for n in (h, w))
        made = band.resample(method, shape, tuple(s * factor for s in band.scale), tuple(o * factor for o in band.offset))
        return f"resample: {{factor: {factor}, method: {method}, bands: {{X: {name}}}}}", made
    if kind == "roughness":
        size = rnd.choice([3, 5, 7])
        return f"roughness: {{size: {size}, bands: {{X: {name}}}}}", roughness(band, size)
    others = [n for n in bands if bands[n].grid() == band.grid()]
    other = rnd.choice(others)
    if kind == "stretch":
        method, percentiles = rnd.choice(["percentiles", "percentiles", "minmax"]), sorted(rnd.sample([0, 0.5, 2, 33.3, 50, 98, 99.9, 100], 2))
        low, high, clamp, masked = rnd.choice([0, -3, 10]), rnd.choice([1, 255, -7]), rnd.random() < 0.7, rnd.random() < 0.4
        counted = np.where(bands[other].pixels > 0, band.pixels, np.nan) if masked else band.pixels
        counted = np.where(bands[other].pixels < 0, band.pixels, counted) if masked else counted
        return (f"stretch: {{method: {method}, percentiles: {percentiles}, low: {low}, high: {high}, beyond: {'clamp' if clamp else 'keep'}, "
                f"{f'mask: {other}, ' if masked else ''}bands: {{X: {name}}}}}",
                stretch(band, *ends(counted, method, percentiles), low, high, clamp))
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        v = band.pixels * np.float32(0.5) - bands[other].pixels
    return f'math: {{bands: {{X: "{name} * 0.5 - {other}"}}}}', band.on(v)


def same(ours, theirs, what):
    assert ours.shape == theirs.shape, (what, ours.shape, theirs.shape)
    wrong = ~((ours == theirs) | (np.isnan(ours) & np.isnan(theirs)))
    assert not wrong.any(), f"{what}: {wrong.sum()} of {wrong.size} pixels differ, the first at {np.argwhere(wrong)[0]}: " \
                            f"{ours[wrong][0]!r} and {theirs[wrong][0]!r}"


def random_scene(rnd, path):
    numbers = np.random.default_rng(rnd.randrange(1 << 30))
    w, h = rnd.randint(3, 260), rnd.randint(3, 200)
    kind = rnd.choice(["uint8", "uint16", "int16", "float32"])
    pixels = numbers.integers(0, 100, (2, h, w)).astype(kind)
    write(path, pixels, block=rnd.choice([0, 16, 64]))
    return {n: Band(np.where(p == 0, np.nan, p)) for n, p in zip("AB", pixels)}


def random_source(rnd, path, scene):
    """A second file of other type, size, pixels and place; its band Q."""
    numbers = np.random.default_rng(rnd.randrange(1 << 30))
    scale, shift = rnd.choice([0.25, 0.5, 1, 1, 2, 4, 1.3]), (rnd.choice([0, 3, -7, 0.5]), rnd.choice([0, -2, 11.25]))
    h, w = scene.pixels.shape
    shape = tuple(max(1, int(n * scale * rnd.choice([0.6, 1, 1.2]))) for n in (h, w))
    kind = rnd.choice(["uint8", "uint16", "float32"])
    pixels = numbers.integers(0, 100, shape).astype(kind)
    side = 10 / scale
    write(path, pixels, transform=(500000 + shift[0] * 10, side, 0, 4000000 - shift[1] * 10, 0, -side), block=rnd.choice([0, 16, 32]))
    return Band(np.where(pixels == 0, np.nan, pixels), (scale, scale), (-shift[0] * scale, -shift[1] * scale))


def join_step(rnd, bands, source):
    """difference, or resample onto the grid of the other."""
    name = rnd.choice([n for n in bands if n != "Q"])
    band, method = bands[name], rnd.choice(["nearest", "bilinear", "cubic", "average"])
    on = source.resample(method, band.pixels.shape, band.scale, band.offset)
    if rnd.random() < 0.5:
        return f"difference: {{bands: {{X: {name}}}, minus: [Q], method: {method}}}", band.on(band.pixels - on.pixels)
    return f"resample: {{like: {name}, method: {method}, bands: {{X: Q}}}}", on


def check_random(scratch, seed):
    rnd = random.Random(seed)
    bands = random_scene(rnd, scratch / "s.tif")
    steps, sources, last = [], "", "J"
    if rnd.random() < 0.6:
        bands["Q"] = random_source(rnd, scratch / "q_s.tif", bands["A"])
        sources = "      sources: {OTHER: {file: \"" + str(scratch) + "/q_{scene}.tif\", bands: {Q: 1}}}"
        text, made = join_step(rnd, bands, bands["Q"])
        steps.append(text.replace("X:", "J:"))
        bands["J"] = made
    for i in range(rnd.randint(0 if steps else 1, 4)):
        text, made = random_step(rnd, bands)
        last = f"X{i}"
        steps.append(text.replace("X:", last + ":"))
        bands[last] = made
    setting = f"{{memory: 64MiB, tile: {rnd.choice([64, 128, 512])}, threads: {rnd.choice([1, 2, 3])}}}"
    report = compute(scratch, scratch / "s.tif", "AB", steps, [last], setting, sources=sources)
    ours = gdal.Open(product(report, "cog"))
    same(ours.ReadAsArray(), made.pixels, f"seed {seed}: {steps}, {setting}")
    expected = [TRANSFORM[0] - 10 / made.scale[0] * made.offset[0], 10 / made.scale[0], 0,
                TRANSFORM[3] + 10 / made.scale[1] * made.offset[1], 0, -10 / made.scale[1]]
    assert np.allclose(ours.GetGeoTransform(), expected, rtol=1e-12, atol=1e-6), (seed, ours.GetGeoTransform(), expected)


def test_random_chains_have_the_bits_of_numpy(scratch):
    first = int(os.environ.get("PB_SEED", "1"))
    for seed in range(first, first + int(os.environ.get("PB_CHAINS", "6" if pbtest.SANITIZED else "24"))):
        check_random(scratch, seed)


# --- GDAL, and the places of products ---


@pbtest.not_about_memory
def test_resampling_is_that_of_gdalwarp(scratch):
    numbers = np.random.default_rng(5)
    scene = write(scratch / "s.tif", numbers.integers(1, 4000, (211, 303)).astype(np.uint16))
    for method, factor in (("nearest", 0.5), ("average", 0.5), ("bilinear", 2), ("cubic", 0.25), ("bilinear", 0.25), ("average", 1 / 3)):
        report = compute(scratch, scene, "A", [f"resample: {{factor: {factor}, method: {method}, bands: {{X: A}}}}"], ["X"])
        ours = gdal.Open(product(report, "cog"))
        t, w, h = ours.GetGeoTransform(), ours.RasterXSize, ours.RasterYSize
        theirs = gdal.Warp("", str(scene), format="MEM", outputBounds=(t[0], t[3] + h * t[5], t[0] + w * t[1], t[3]), width=w, height=h,
                           resampleAlg=method, outputType=gdal.GDT_Float32, workingType=gdal.GDT_Float32, dstNodata=-1)
        theirs = theirs.ReadAsArray()
        assert np.nanmax(np.abs(ours.ReadAsArray() - np.where(theirs == -1, np.nan, theirs))) < 0.01, (method, factor)


def test_difference_of_two_scenes(scratch):
    numbers = np.random.default_rng(1)
    after, before = numbers.integers(1, 200, (120, 150)).astype(np.uint16), numbers.integers(1, 200, (100, 90)).astype(np.uint8)
    write(scratch / "s.tif", after)
    write(scratch / "before.tif", before, transform=(500200, 10, 0, 3999900, 0, -10))
    source = f"      sources: {{BEFORE: {{file: {scratch}/before.tif, bands: {{A0: 1}}, scale: 2}}}}"
    report = compute(scratch, scratch / "s.tif", "A", ["difference: {bands: {X: A}, minus: [A0]}"], ["X"], sources=source)
    expected = np.full(after.shape, np.nan, np.float32)
    expected[10:110, 20:110] = after[10:110, 20:110].astype(np.float32) - 2 * before.astype(np.float32)
    same(gdal.Open(product(report, "cog")).ReadAsArray(), expected, "difference")
    report = compute(scratch, scratch / "s.tif", "A", ["scale: {factor: 3, bands: {B: A}}", "difference: {bands: [A, B], minus: [B, A]}"], ["A", "B"])
    both = gdal.Open(product(report, "cog")).ReadAsArray()
    assert (both[0] == -2.0 * after).all() and (both[1] == 2.0 * after).all()


def test_ratio_and_change_vector_of_two_scenes(scratch):
    numbers = np.random.default_rng(2)
    after, before = (numbers.integers(0, 60, (2, 75, 130)).astype(np.uint8) for _ in range(2))
    before[:, :5] = after[:, :5]
    write(scratch / "s.tif", after, nodata=255)
    write(scratch / "before.tif", before, nodata=255)
    source = f"      sources: {{BEFORE: {{file: {scratch}/before.tif, bands: {{A0: 1, B0: 2}}}}}}"
    step = "change_vector: {bands: {M: magnitude, D: direction, S: sector}, after: [A, B], before: [A0, B0]}"
    report = compute(scratch, scratch / "s.tif", "AB", ["ratio: {bands: {Q: A}, over: [A0]}", step], ["Q", "M", "D", "S"], sources=source)
    made = gdal.Open(product(report, "cog")).ReadAsArray()
    d = after.astype(np.float32) - before.astype(np.float32)
    with np.errstate(divide="ignore", invalid="ignore"):
        same(made[0], np.where(before[0] == 0, np.nan, after[0].astype(np.float32) / before[0].astype(np.float32)), "ratio")
    same(made[1], np.sqrt(d[0] * d[0] + d[1] * d[1]), "magnitude")
    direction = np.where((d == 0).all(0), np.nan, np.degrees(np.arctan2(d[1].astype(float), d[0])) % 360)
    assert (np.isnan(made[2]) == np.isnan(direction)).all() and np.nanmax(np.abs(made[2] - direction)) < 1e-4
    same(made[3], ((d[0] > 0) + 2 * (d[1] > 0)).astype(np.float32), "sector")
    for text, words in (("{bands: {X: direction}, after: [A], before: [A0]}", "a direction is that of two bands, and 'after' has 1"),
                        ("{bands: {X: magnitud}, after: [A], before: [A0]}", "did you mean 'magnitude'?"),
                        ("{bands: {X: magnitude}, after: [A, B], before: [A0]}", "'after' has 2 entries, 'before' 1")):
        wrong = scratch / "wrong.yaml"
        wrong.write_text((scratch / "c.yaml").read_text().replace(step, "change_vector: " + text).replace("[M]", "[Q]").replace("Q, M, D, S", "Q, X"))
        done = pbtest.run("pushbroom", "check-config", wrong, code=2)
        assert words in done.stdout + done.stderr, (text, done)


def test_lineage_names_the_sources(scratch):
    write(scratch / "s.tif", np.ones((20, 30), np.uint8))
    write(scratch / "before.tif", np.ones((20, 30), np.uint8))
    source = f"      sources: {{BEFORE: {{file: {scratch}/before.tif, bands: {{A0: 1}}}}}}"
    report = compute(scratch, scratch / "s.tif", "A", ["difference: {bands: {X: A}, minus: [A0]}"], ["X"], sources=source)
    assert "Source BEFORE" in json.load(open(product(report, "stac")))["properties"]["processing:lineage"]


def test_what_is_wrong_with_a_source_names_it(scratch):
    scene = write(scratch / "s.tif", np.ones((20, 30), np.uint8))
    whole = write(scratch / "whole.tif", np.random.default_rng(1).integers(0, 9, (200, 300)).astype(np.uint8)).read_bytes()
    (scratch / "short.tif").write_bytes(whole[:len(whole) // 2])
    (scratch / "text.tif").write_bytes(b"no TIFF")
    damaged = scratch / "damaged.tif"  # opens; the pixels of its second half are no deflate stream
    options = ["COMPRESS=DEFLATE", "TILED=YES", "BLOCKXSIZE=64", "BLOCKYSIZE=64"]
    gdal.Translate(str(damaged), str(scratch / "whole.tif"), creationOptions=options)
    data = bytearray(damaged.read_bytes())
    data[len(data) // 2:-8] = b"\xff" * len(data[len(data) // 2:-8])
    damaged.write_bytes(data)
    for file in ("missing.tif", "short.tif", "text.tif", "damaged.tif"):
        source = f"      sources: {{BEFORE: {{file: {scratch}/{file}, bands: {{Q: 1}}}}}}"
        steps = ["difference: {bands: {X: A}, minus: [Q]}"]
        error = compute(scratch, scene if file != "damaged.tif" else scratch / "whole.tif", "A", steps, ["X"], code=1, sources=source)["error"]
        assert f": source BEFORE, {scratch}/{file}: " in error["message"] and error["message"].count(file) == 1, error


def test_sources_that_do_not_fit_say_why(scratch):
    scene = write(scratch / "s.tif", np.ones((20, 30), np.uint8))
    write(scratch / "elsewhere.tif", np.ones((20, 30), np.uint8), epsg=32633)
    write(scratch / "nowhere.tif", np.ones((20, 30), np.uint8), transform=None)
    apart = "cannot be placed on the scene"
    for file, step, words in (("missing.tif", "difference: {bands: {X: A}, minus: [Q]}", "missing.tif"),
                              ("elsewhere.tif", "difference: {bands: {X: A}, minus: [Q]}", apart),
                              ("nowhere.tif", "difference: {bands: {X: A}, minus: [Q]}", apart),
                              ("elsewhere.tif", "scale: {factor: 2, bands: {X: Q}}", apart)):
        report = compute(scratch, scene, "A", [step], ["X"], code=1,
                         sources=f"      sources: {{O: {{file: {scratch}/{file}, bands: {{Q: 1}}}}}}")
        assert report["status"] == "failed" and words in report["error"]["message"], report


def sharpen_by_gdal(folder):
    return gdal.Open("<VRTDataset subClass='VRTPansharpenedDataset'><PansharpeningOptions><Algorithm>WeightedBrovey</Algorithm><AlgorithmOptions>"
                     "<Weights>0.3,0.4,0.3</Weights></AlgorithmOptions><Resampling>Cubic</Resampling>"
                     f"<PanchroBand><SourceFilename>{folder}/pan.tif</SourceFilename><SourceBand>1</SourceBand></PanchroBand>" + "".join(
                         f"<SpectralBand dstBand='{i}'><SourceFilename>{folder}/s.tif</SourceFilename><SourceBand>{i}</SourceBand></SpectralBand>"
                         for i in (1, 2, 3)) + "</PansharpeningOptions></VRTDataset>").ReadAsArray().astype(np.float64)


def test_pansharpening_is_that_of_gdal(scratch):
    """Floats are the same to a hundredth. GDAL rounds bands of integers after resampling, so that it may be 2 off."""
    numbers = np.random.default_rng(8)
    y, x = np.mgrid[0:400, 0:480]
    smooth = 900 + 500 * np.sin(x / 31) + 300 * np.cos(y / 23)
    pan = np.clip(smooth + numbers.normal(0, 40, smooth.shape), 1, 4000).astype(np.uint16)
    bands = np.stack([np.clip(smooth[2::4, 2::4] * f + numbers.normal(0, 10, (100, 120)), 1, 4000) for f in (0.6, 0.9, 1.3)]).astype(np.uint16)
    source = f"      sources: {{PAN: {{file: {scratch}/pan.tif, bands: {{P: 1}}}}}}"
    for kind, most, share in (("float32", 0.01, 0), ("uint16", 2, 1e-4)):
        write(scratch / "pan.tif", pan.astype(kind), transform=(500000, 2.5, 0, 4000000, 0, -2.5), nodata=None)
        write(scratch / "s.tif", bands.astype(kind), nodata=None)
        report = compute(scratch, scratch / "s.tif", "RGB", ["pansharpen: {pan: P, bands: [R, G, B], weights: {R: 0.3, G: 0.4, B: 0.3}}"],
                         ["R", "G", "B"], sources=source)
        ours = gdal.Open(product(report, "cog"))
        assert ours.GetGeoTransform() == (500000, 2.5, 0, 4000000, 0, -2.5)
        ours = ours.ReadAsArray()
        off = np.abs((np.rint(ours) if kind == "uint16" else ours) - sharpen_by_gdal(scratch))
        assert off.max() <= most and (off > 1).mean() <= share, (kind, off.max(), (off > 1).mean(), np.argwhere(off > most)[:5])


def test_rcs_is_the_band_times_pan_over_its_mean(scratch):
    """Against numpy, on pixels of one grid, so that nothing is resampled; and the place of the bands of a coarser grid."""
    numbers = np.random.default_rng(9)
    pan, band = (numbers.integers(1, 900, (91, 133)).astype(np.uint16) for _ in range(2))
    pan[40:44, 60:70] = 0
    source = f"      sources: {{PAN: {{file: {scratch}/pan.tif, bands: {{P: 1}}}}}}"
    write(scratch / "pan.tif", pan)
    write(scratch / "s.tif", band)
    for radius in (None, 1, 15):
        step = "pansharpen: {algorithm: rcs, pan: P, bands: [A]" + (f", radius: {radius}}}" if radius else "}")
        made = gdal.Open(product(compute(scratch, scratch / "s.tif", "A", [step], ["A"], sources=source), "cog")).ReadAsArray()
        side, reach = 2 * (radius or 9) + 1, range(-(radius or 9), (radius or 9) + 1)
        known = (pan > 0).astype(float)
        sums, n = (sum(np.roll(np.roll(np.pad(x, side, mode="edge"), i, 0), k, 1) for i in reach for k in reach)[side:-side, side:-side]
                   for x in (pan.astype(float), known))
        right = np.where(pan == 0, np.nan, band * (pan / np.where(pan == 0, 1, sums / n)))
        assert (np.isnan(made) == np.isnan(right)).all() and np.nanmax(np.abs(made - right) / right) < 1e-5, radius
    write(scratch / "s.tif", band[::4, ::4], transform=(500000, 40, 0, 4000000, 0, -40))
    report = compute(scratch, scratch / "s.tif", "A", ["pansharpen: {algorithm: rcs, pan: P, bands: [A]}"], ["A"], sources=source)
    assert gdal.Open(product(report, "cog")).GetGeoTransform() == TRANSFORM


def test_products_tell_where_they_lie(scratch):
    pixels = np.arange(1, 1 + 200 * 300, dtype=np.uint16).reshape(200, 300)
    scene = write(scratch / "s.tif", pixels)
    report = compute(scratch, scene, "A", ["crop: {bounds: [500101, 3998500, 501000, 3999555.5]}", "resample: {pixel: 20, method: average}"], ["A"])
    cog, item = gdal.Open(product(report, "cog")), json.load(open(product(report, "stac")))
    assert (cog.RasterXSize, cog.RasterYSize) == (45, 53), (cog.RasterXSize, cog.RasterYSize)
    assert cog.GetGeoTransform() == (500100, 20, 0, 3999560, 0, -20), cog.GetGeoTransform()
    asset = item["assets"]["data"]
    assert asset["proj:shape"] == [53, 45] and asset["proj:transform"] == [20, 0, 500100, 0, -20, 3999560], asset
    assert asset["proj:bbox"] == [500100, 3998500, 501000, 3999560], asset["proj:bbox"]
    west, south, east, north = item["bbox"]
    to_metres = osr.CoordinateTransformation(*map(system, (4326, 32632)))
    assert np.allclose(to_metres.TransformPoint(west, north)[:2], (500100, 3999560), atol=20)
    assert np.allclose(to_metres.TransformPoint(east, south)[:2], (501000, 3998500), atol=20)
    statistics = json.load(open(product(report, "statistics")))["bands"]
    assert next(iter(statistics.values() if isinstance(statistics, dict) else statistics))["count"] == 45 * 53


def system(epsg):
    out = osr.SpatialReference()
    out.ImportFromEPSG(epsg)
    out.SetAxisMappingStrategy(osr.OAMS_TRADITIONAL_GIS_ORDER)
    return out


def test_ground_control_points_and_rpcs_move_along(scratch):
    scene = write(scratch / "s.tif", np.ones((100, 120), np.uint8), transform=None)
    out = gdal.Open(str(scene), gdal.GA_Update)
    out.SetGCPs([gdal.GCP(5 + x / 100, 50 - y / 100, 0, x, y) for x, y in ((0, 0), (120, 0), (0, 100), (120, 100))], system(4326).ExportToWkt())
    out = None
    report = compute(scratch, scene, "A", ["crop: {window: [20, 10, 60, 40]}", "resample: {factor: 0.5}"], ["A"])
    gcps = gdal.Open(product(report, "cog")).GetGCPs()
    assert [(g.GCPPixel, g.GCPLine) for g in gcps] == [(-10, -5), (50, -5), (-10, 45), (50, 45)], [(g.GCPPixel, g.GCPLine) for g in gcps]
    rpc = {**{f"{k}_OFF": v for k, v in (("LINE", "49.5"), ("SAMP", "59.5"), ("LAT", "50"), ("LONG", "5"), ("HEIGHT", "0"))},
           **{f"{k}_SCALE": v for k, v in (("LINE", "50"), ("SAMP", "60"), ("LAT", "1"), ("LONG", "1"), ("HEIGHT", "1"))},
           "LINE_NUM_COEFF": "0 0 -1" + " 0" * 17, "SAMP_NUM_COEFF": "0 1" + " 0" * 18,
           "LINE_DEN_COEFF": "1" + " 0" * 19, "SAMP_DEN_COEFF": "1" + " 0" * 19}
    scene = write(scratch / "r.tif", np.ones((100, 120), np.uint8), transform=None)
    out = gdal.Open(str(scene), gdal.GA_Update)
    out.SetMetadata(rpc, "RPC")
    out = None
    report = compute(scratch, scene, "A", ["crop: {window: [20, 10, 60, 40]}", "resample: {factor: 0.5}"], ["A"])
    got = gdal.Open(product(report, "cog")).GetMetadata("RPC")
    assert [float(got[k]) for k in ("SAMP_OFF", "SAMP_SCALE", "LINE_OFF", "LINE_SCALE")] == [19.5, 30, 19.5, 25], got


def edges_in(bounds, source, target):
    """West, south, east, north of many points on the edges, by GDAL's transformation of single points."""
    one, other = osr.SpatialReference(), osr.SpatialReference()
    one.ImportFromEPSG(source)
    other.ImportFromEPSG(target)
    for system in (one, other):
        system.SetAxisMappingStrategy(osr.OAMS_TRADITIONAL_GIS_ORDER)
    west, south, east, north = bounds
    t = np.linspace(0, 1, 4001)
    x = np.concatenate([west + t * (east - west)] * 2 + [np.full(4001, west), np.full(4001, east)])
    y = np.concatenate([np.full(4001, south), np.full(4001, north)] + [south + t * (north - south)] * 2)
    points = np.array(osr.CoordinateTransformation(one, other).TransformPoints(np.stack([x, y], 1)))
    return points[:, 0].min(), points[:, 1].min(), points[:, 0].max(), points[:, 1].max()


@pbtest.not_about_memory
def test_bounds_of_another_crs_take_touched_pixels(scratch):
    rng = np.random.default_rng(5)
    pixels = rng.integers(1, 60000, (331, 457)).astype(np.uint16)
    scene = write(scratch / "s.tif", pixels)
    for bounds, epsg in (([9.005, 36.12, 9.03, 36.135], 4326), ([8.9, 36.1, 9.02, 36.13], 4326), ([8.5, 36.125, 9.6, 36.126], 4326),
                         ([1003000, 4317000, 1005000, 4319000], 3857)):
        report = compute(scratch, scene, "A", [f"crop: {{bounds: {bounds}, crs: 'EPSG:{epsg}'}}"], ["A"])
        got = gdal.Open(product(report, "cog"))
        west, south, east, north = edges_in(bounds, epsg, 32632)
        left, top = (west - 500000) / 10, (4000000 - north) / 10
        right, bottom = (east - 500000) / 10, (4000000 - south) / 10
        x, y, x1, y1 = max(math.floor(left), 0), max(math.floor(top), 0), min(math.ceil(right), 457), min(math.ceil(bottom), 331)
        assert (got.RasterXSize, got.RasterYSize) == (x1 - x, y1 - y), (bounds, got.RasterXSize, got.RasterYSize, x1 - x, y1 - y)
        assert got.GetGeoTransform() == (500000 + 10 * x, 10, 0, 4000000 - 10 * y, 0, -10)
        assert np.array_equal(got.ReadAsArray(), pixels[y:y1, x:x1])
        plan = pbtest.run_json("pushbroom", "run", "--dry-run", "--json", "-c", scratch / "c.yaml", scene)[0]
        assert plan["status"] == "planned", plan


def test_polygons_take_the_rectangle_around_them(scratch):
    pixels = np.random.default_rng(6).integers(1, 60000, (331, 457)).astype(np.uint16)
    scene = write(scratch / "s.tif", pixels)
    shapes = {"near": [[[9.01, 36.12], [9.02, 36.121], [9.012, 36.13], [9.01, 36.12]], [[9.03, 36.135], [9.031, 36.135], [9.03, 36.136], [9.03, 36.135]]],
              "far": [[[-120, 10], [-119, 10], [-119, 11], [-120, 10]]], "beside": [[[9.2, 36.12], [9.3, 36.12], [9.2, 36.2], [9.2, 36.12]]]}
    for name, rings in shapes.items():
        (scratch / f"{name}.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": [
            {"type": "Feature", "properties": {}, "geometry": {"type": "Polygon", "coordinates": [ring]}} for ring in rings]}))
    report = compute(scratch, scene, "A", ["crop: {polygons: near.geojson}"], ["A"])
    got = gdal.Open(product(report, "cog"))
    corners = [edges_in([x, y, x, y], 4326, 32632)[:2] for ring in shapes["near"] for x, y in ring]
    x, x1 = math.floor(min((c[0] - 500000) / 10 for c in corners)), math.ceil(max((c[0] - 500000) / 10 for c in corners))
    y, y1 = math.floor(min((4000000 - c[1]) / 10 for c in corners)), math.ceil(max((4000000 - c[1]) / 10 for c in corners))
    assert got.GetGeoTransform() == (500000 + 10 * x, 10, 0, 4000000 - 10 * y, 0, -10), got.GetGeoTransform()
    assert np.array_equal(got.ReadAsArray(), pixels[y:y1, x:x1])
    for name in ("far", "beside"):
        report = compute(scratch, scene, "A", [f"crop: {{polygons: {name}.geojson}}"], ["A"])
        assert report["stage"] == "skipped" and "the scene is outside of the polygons" in report["report"]["skipped"], report
    report = compute(scratch, scene, "A", ["crop: {polygons: none.geojson}"], ["A"], code=1)
    assert report["error"]["code"] == "vector.missing" and "none.geojson" in report["error"]["message"], report


def write_geographic(path, pixels, west, pixel):
    out = gdal.GetDriverByName("GTiff").Create(str(path), pixels.shape[1], pixels.shape[0], 1, gdal.GDT_UInt16)
    system = osr.SpatialReference()
    system.ImportFromEPSG(4326)
    out.SetGeoTransform((west, pixel, 0, 90, 0, -pixel))
    out.SetProjection(system.ExportToWkt())
    out.GetRasterBand(1).WriteArray(pixels)
    return path


def test_bounds_across_the_antimeridian(scratch):
    pixels = np.arange(1, 90 * 180 + 1, dtype=np.uint16).reshape(90, 180)
    scene = write_geographic(scratch / "east.tif", pixels, 0, 2)
    for bounds, x, x1 in (([170, -20, -170, -10], 85, 95), ([-80, -20, -60, -10], 140, 150), ([-190, -20, -170, -10], 85, 95)):
        report = compute(scratch, scene, "A", [f"crop: {{bounds: {bounds}, crs: EPSG:4326}}"], ["A"])
        assert np.array_equal(gdal.Open(product(report, "cog")).ReadAsArray(), pixels[50:55, x:x1]), bounds
    world = write_geographic(scratch / "world.tif", pixels, -180, 2)
    report = compute(scratch, world, "A", ["crop: {bounds: [170, -20, -170, -10], crs: EPSG:4326}"], ["A"], code=1)
    assert "the western and the eastern edge" in report["error"]["message"], report
    report = compute(scratch, world, "A", ["crop: {bounds: [-180, -20, 180, -10], crs: EPSG:4326}"], ["A"])
    assert np.array_equal(gdal.Open(product(report, "cog")).ReadAsArray(), pixels[50:55])
    report = compute(scratch, world, "A", ["crop: {bounds: [20000, 0, 10000, 10000], crs: EPSG:3857}"], ["A"], code=1)
    assert "west may be above east" in report["error"]["message"], report


def test_polygons_that_the_scene_does_not_reach(scratch):
    scene = scratch / "disc.tif"
    out = gdal.GetDriverByName("GTiff").Create(str(scene), 110, 110, 1, gdal.GDT_UInt16)
    system = osr.SpatialReference()
    system.ImportFromProj4("+proj=geos +h=35785831 +lon_0=0 +datum=WGS84 +units=m")
    out.SetGeoTransform((-5500000, 100000, 0, 5500000, 0, -100000))
    out.SetProjection(system.ExportToWkt())
    out.GetRasterBand(1).Fill(7)
    out = None

    def crop(*boxes, code=0):
        rings = [[[[w, s], [e, s], [e, n], [w, n], [w, s]]] for w, s, e, n in boxes]
        (scratch / "a.geojson").write_text(json.dumps({"type": "MultiPolygon", "coordinates": rings}))
        return compute(scratch, scene, "A", ["crop: {polygons: a.geojson}"], ["A"], code=code)

    assert crop((-176, 10, -175, 11))["stage"] == "skipped"
    near, both = (gdal.Open(product(crop(*boxes), "cog")) for boxes in ([(5, 10, 15, 20)], [(-176, 10, -175, 11), (5, 10, 15, 20), (150, 0, 170, 30)]))
    assert both.GetGeoTransform() == near.GetGeoTransform() and both.RasterXSize == near.RasterXSize < 20, both.GetGeoTransform()
    for box in ((-180, -90, 180, 90), (60, -10, 120, 10)):
        report = crop(box, code=1)
        assert "coordinates that the scene's coordinate system does not have" in report["error"]["message"], report


def test_scene_outside_is_skipped(scratch):
    scene = write(scratch / "s.tif", np.ones((20, 30), np.uint8))
    for step in ("crop: {bounds: [0, 0, 10, 10]}", "crop: {bounds: [7, 46, 8, 47], crs: EPSG:4326}"):
        report = compute(scratch, scene, "A", [step], ["A"])
        assert (report["status"], report["stage"], report["products"], report["directory"], report["error"]) == \
            ("successful", "skipped", [], None, None), report
        assert "the scene is outside of the bounds" in report["report"]["skipped"], report
        assert not (scratch / "out").exists() or not any((scratch / "out").rglob("*.tif")), list((scratch / "out").rglob("*"))
        done = pbtest.run("pushbroom", "run", "-c", scratch / "c.yaml", "-o", scratch / "out", scene)
        assert "s.tif skipped, no products: " in done.stdout and done.returncode == 0, done.stdout
        done = pbtest.run("pushbroom", "run", "--dry-run", "-c", scratch / "c.yaml", scene)
        assert "s.tif skipped, no products: " in done.stdout, done.stdout
        plan = pbtest.run_json("pushbroom", "run", "--dry-run", "--json", "-c", scratch / "c.yaml", scene)[0]
        assert (plan["status"], plan["error"]) == ("skipped", None), plan


def test_mistakes_say_what_to_do(scratch):
    scene = write(scratch / "s.tif", np.ones((20, 30), np.uint8))
    for steps, outputs, words in (
            (["crop: {window: [0, 0, 31, 20]}"], ["A"], "the window reaches to pixel 31, 20, the band has 30 x 20"),
            (["crop: {bounds: [20, 0, 10, 10]}"], ["A"], "west below east"),
            (["crop: {bounds: [7, 36, 8, 37], crs: EPSG:99999}"], ["A"], "'EPSG:99999' is no coordinate system that is known"),
            (["crop: {bounds: [7, 36, 8, 37], crs: /etc/passwd}"], ["A"], "write EPSG:4326, WKT or a PROJ string"),
            (["crop: {window: [0, 0, 3, 3], crs: EPSG:4326}"], ["A"], "'crs' is that of bounds"),
            (["resample: {factor: 0.5, bands: {X: A}}", 'math: {bands: {Y: "X + A"}}'], ["Y"], "bands on different grids"),
            (["resample: {factor: 0.5, bands: {X: A}}"], ["X", "A"], "products take bands of one"),
            (["resample: {factor: 0.5, pixel: 3}"], ["A"], "give one of 'factor', 'pixel' and 'like'"),
            (["resample: {like: Q}"], ["A"], "no band 'Q' here"),
            (["crop: {}"], ["A"], "give one of 'window', 'bounds' and 'polygons'")):
        done = pbtest.run("pushbroom", "run", "--json", "-c", config_of(scratch, steps, outputs), "-o", scratch / "out", scene, code=None)
        assert done.returncode != 0 and words in done.stdout + done.stderr, (words, done.stdout, done.stderr)


def config_of(scratch, steps, outputs):
    path = scratch / "m.yaml"
    path.write_text("pipelines:\n  p:\n    input: {bands: {A: 1}}\n    steps:\n" + "".join(f"      - {s}\n" for s in steps) +
                    f"    products:\n      - cog: {{bands: [{', '.join(outputs)}], type: float32}}\n")
    return path


if __name__ == "__main__":
    pbtest.main()
