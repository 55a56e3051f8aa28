#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: sanitized
"""mask and the whole-number part of math, through `pushbroom run`, against numpy: classes, bits and ranges, growth by discs and
squares, quality bands of other pixel sizes, masks as products and as gates."""
import hashlib
import json
import pathlib
import shutil

import numpy as np
from osgeo import gdal

import pbtest
import test_grids
from test_grids import TRANSFORM, compute, write

gdal.UseExceptions()
SHAPE = (301, 277)


def same(ours, theirs, what=""):
    test_grids.same(ours, theirs, what)


def patches(shape, values, seed=1, side=9):
    """Classes in patches, like real ones."""
    numbers = np.random.default_rng(seed)
    small = numbers.choice(values, (shape[0] // side + 1, shape[1] // side + 1))
    return np.kron(small, np.ones((side, side), int))[:shape[0], :shape[1]]


def scene_of(path, quality, dtype=np.uint16, nodata=65535):
    numbers = np.random.default_rng(7)
    pixels = np.stack([quality, numbers.integers(1, 9000, quality.shape), numbers.integers(1, 9000, quality.shape)]).astype(dtype)
    return write(path, pixels, nodata=nodata), *[np.where(p == nodata, np.nan, p).astype(np.float32) for p in pixels[1:]]


def dilated(mask, radius, shape):
    """Grows by the definition: one shifted copy for each offset of the disc or square."""
    if shape == "disc" and radius > 7:
        return dilated(dilated(mask, 7, shape), radius - 7, shape)
    padded = np.pad(mask, radius)
    out = np.zeros_like(mask)
    for y in range(-radius, radius + 1):
        for x in range(-radius, radius + 1):
            if shape == "square" or x * x + y * y <= radius * radius:
                out |= padded[radius + y:radius + y + mask.shape[0], radius + x:radius + x + mask.shape[1]]
    return out


def result(scratch, scene, steps, outputs, **more):
    report = compute(scratch, scene, ["QA", "R", "N"], steps, outputs, **more)
    data = gdal.Open([p["path"] for p in report["products"] if p["type"] == "cog"][0]).ReadAsArray()
    return data if data.ndim == 3 else data[None]


@pbtest.not_about_memory
def test_classes_are_dropped_and_the_mask_is_a_band(scratch):
    quality = patches(SHAPE, [3, 4, 5, 8, 9, 11, 65535])
    scene, r, n = scene_of(scratch / "s.tif", quality)
    known = quality != 65535
    for text, drop in (("drop: [3, 8, 9]", np.isin(quality, [3, 8, 9])), ("keep: [4, 5]", ~np.isin(quality, [4, 5])),
                       ("preset: sentinel2-scl", np.isin(quality, [0, 1, 3, 8, 9, 10])),
                       ("preset: sentinel2-scl, drop: [snow, 3]", np.isin(quality, [3, 11])),
                       ("preset: sentinel2-scl, keep: [vegetation, not_vegetated]", ~np.isin(quality, [4, 5]))):
        clear, masked, whole = result(scratch, scene, [f"mask: {{name: CLEAR, band: QA, {text}, apply: [R]}}"], ["CLEAR", "R", "N"])
        same(clear, np.where(known, ~drop, np.nan).astype(np.float32))
        same(masked, np.where(known & ~drop, r, np.nan))
        same(whole, n)
    both = result(scratch, scene, ["mask: {band: QA, drop: [3, 8, 9]}"], ["R", "N"])
    for masked, band in zip(both, (r, n)):
        same(masked, np.where(known & ~np.isin(quality, [3, 8, 9]), band, np.nan))


@pbtest.not_about_memory
def test_bits_are_those_of_the_handbook(scratch):
    numbers = np.random.default_rng(3)
    quality = np.where(numbers.random(SHAPE) < 0.6, 21824, numbers.integers(0, 65535, SHAPE))  # 21824: clear land
    scene, r, _ = scene_of(scratch / "s.tif", quality)
    bit = lambda k: (quality >> k & 1).astype(bool)
    for text, drop in (("preset: landsat-c2", bit(0) | bit(1) | bit(2) | bit(3) | bit(4)),
                       ("preset: landsat-c2, drop_bits: [fill, dilated_cloud, cloud, cloud_shadow]", bit(0) | bit(1) | bit(3) | bit(4)),
                       ("preset: landsat-c2, drop_bits: [cloud_high, cirrus_low]", (quality >> 8 & 3 == 3) | (quality >> 14 & 3 == 1)),
                       ("preset: landsat-c2, keep_bits: [clear, water]", ~(bit(6) | bit(7))),
                       ("drop_bits: [5, 15]", bit(5) | bit(15)),
                       # Unusable pixels of its makers: anything but 0 in the lower seven bits.
                       ("preset: planetscope-udm", quality & 127 != 0),
                       ("preset: planetscope-udm, drop_bits: [fill, band_4]", bit(0) | bit(5)),
                       ("preset: landsat-c2-radsat", quality & 0b100101111111 != 0),
                       ("preset: landsat-c1", bit(0) | bit(4) | (quality >> 7 & 3 == 3) | (quality >> 11 & 3 == 3)),
                       ("preset: landsat-c1, drop_bits: [cloud_low, saturated_5_or_more_bands]", (quality >> 5 & 3 == 1) | (quality >> 2 & 3 == 3)),
                       ("preset: sentinel2-qa60", bit(10) | bit(11)),
                       ("preset: modis-state", np.isin(quality & 3, [1, 2]) | bit(2) | (quality >> 8 & 3 >= 2) | bit(10)),
                       ("preset: hls-fmask, drop_bits: [aerosol_high]", quality >> 6 & 3 == 3)):
        same(result(scratch, scene, [f"mask: {{band: QA, {text}, apply: [R]}}"], ["R"])[0], np.where(drop, np.nan, r))


def test_a_range_is_of_measurements(scratch):
    scene, r, n = scene_of(scratch / "s.tif", patches(SHAPE, [1, 2]))
    keep = (r >= 1000) & (r <= 5000) & (n >= 1000) & (n <= 5000)
    assert 0 < keep.sum() < keep.size
    for masked, band in zip(result(scratch, scene, ["mask: {bands: [R, N], keep: [1000, 5000]}"], ["R", "N"]), (r, n)):
        same(masked, np.where(keep, band, np.nan))


@pbtest.not_about_memory
def test_growth_is_by_distance_and_knows_no_tiles(scratch):
    numbers = np.random.default_rng(11)
    quality = np.where(numbers.random(SHAPE) < 0.0005, 9, 4)
    quality[0, 100] = quality[-1, -1] = 9
    quality[40:60, 50:90] = 65535  # nothing known: neither grows nor is grown over
    scene, r, _ = scene_of(scratch / "s.tif", quality)
    known = quality != 65535
    for grow, shape in ((1, "disc"), (3, "disc"), (7, "disc"), (17, "disc"), (1, "square"), (7, "square"), (23, "square")):
        step = f"mask: {{name: CLEAR, band: QA, drop: [9], grow: {grow}, shape: {shape}, apply: [R]}}"
        drop = dilated(quality == 9, grow, shape)
        for settings in ("{memory: 64MiB}", "{memory: 64MiB, tile: 64, threads: 2}"):
            clear, masked = result(scratch, scene, [step], ["CLEAR", "R"], compute=settings)
            same(clear, np.where(known, ~drop, np.nan).astype(np.float32))
            same(masked, np.where(known & ~drop, r, np.nan))


@pbtest.not_about_memory
def test_coarser_quality_band_uses_the_nearest_pixel(scratch):
    quality = patches((151, 139), [4, 9, 5], side=5).astype(np.uint8)
    write(scratch / "scl.tif", quality, (TRANSFORM[0], 20.0, 0.0, TRANSFORM[3], 0.0, -20.0), nodata=0)
    scene, r, n = scene_of(scratch / "s.tif", patches(SHAPE, [1, 2]))
    sources = f"      sources: {{SCL: {{file: {scratch}/scl.tif, bands: {{SCL: 1}}}}}}"
    drop = np.kron(dilated(quality == 9, 2, "disc"), np.ones((2, 2), bool))[:SHAPE[0], :SHAPE[1]]
    for gate in ("", ", gate: true"):
        step = f"mask: {{band: SCL, drop: [9], grow: 2, apply: [R, N]{gate}}}"
        for settings in ("{memory: 64MiB}", "{memory: 64MiB, tile: 64}"):
            for masked, band in zip(result(scratch, scene, [step], ["R", "N"], sources=sources, compute=settings), (r, n)):
                same(masked, np.where(drop, np.nan, band))


def test_values_of_a_scaled_scene_are_those_stored(scratch):
    quality = patches(SHAPE, [4, 9, 5])
    scene, r, _ = scene_of(scratch / "s.tif", quality)
    config = scratch / "c.yaml"
    config.write_text("""pipelines:
  p:
    input: {bands: {QA: 1, R: 2}, scale: 0.0000275, offset: -0.2}
    steps: [mask: {band: QA, drop: [9], apply: [R]}]
    products: [cog: {bands: [R], type: float32}]
""")
    report = pbtest.run_json("pushbroom", "run", "--json", "-c", config, "-o", scratch / "out", scene)[0]
    expected = (r * np.float32(0.0000275) + np.float32(-0.2)).astype(np.float32)
    same(gdal.Open(report["products"][0]["path"]).ReadAsArray(), np.where(quality == 9, np.nan, expected))


def test_mask_as_gate_skips_tiles_and_changes_nothing(scratch):
    quality = np.full(SHAPE, 9)
    quality[150:200, 30:90] = 4
    scene, _, _ = scene_of(scratch / "s.tif", quality)
    config, found = scratch / "c.yaml", []
    for gate in ("false", "true"):
        config.write_text(f"""compute: {{memory: 64MiB, tile: 64}}
pipelines:
  p:
    input: {{bands: {{QA: 1, R: 2, N: 3}}}}
    steps:
      - mask: {{band: QA, preset: sentinel2-scl, grow: 3, gate: {gate}}}
      - index: {{names: [NDVI]}}
    products:
      - cog: {{bands: [NDVI], type: float32, blocksize: 64}}
      - statistics: {{bands: [NDVI]}}
""")
        report = pbtest.run_json("pushbroom", "run", "--json", "-c", config, "-o", scratch / gate, scene)[0]
        found.append([hashlib.sha256(pathlib.Path(p["path"]).read_bytes()).hexdigest() for p in report["products"]])
    assert found[0] == found[1]
    assert report["report"]["gate"]["left_out"] > 10, report["report"]["gate"]


def test_mask_product_has_bytes_and_class_overviews(scratch):
    quality = patches((600, 700), [4, 9], side=3)
    scene, _, _ = scene_of(scratch / "s.tif", quality)
    config = scratch / "c.yaml"
    config.write_text("""pipelines:
  p:
    input: {bands: {QA: 1, R: 2, N: 3}}
    steps: [mask: {name: CLEAR, band: QA, drop: [9]}]
    products:
      - cog: {bands: [CLEAR], type: uint8, nodata: 255, blocksize: 128}
      - stac: {datetime: file-time}
""")
    report = pbtest.run_json("pushbroom", "run", "--json", "-c", config, "-o", scratch / "out", scene)[0]
    product = gdal.Open(report["products"][0]["path"])
    band = product.GetRasterBand(1)
    same(band.ReadAsArray().astype(np.float32), (quality == 4).astype(np.float32))
    assert set(np.unique(band.GetOverview(0).ReadAsArray())) == {0, 1} and band.GetNoDataValue() == 255
    item = json.load(open([p["path"] for p in report["products"] if p["type"] == "stac"][0]))
    assert '"drop":[9]' in json.dumps(item, separators=(",", ":")), item
    assert "Step mask: name = CLEAR, band = QA, drop = 9, grow = 0" in item["properties"]["processing:lineage"]


# --- real scenes -----------------------------------------------------------------------------------

def real(scratch, paths):
    (scratch / "scene_X").mkdir()
    for name, path in paths.items():
        if not path.exists():
            raise pbtest.Skip(f"{path} is not there")
        shutil.copyfile(path, scratch / "scene_X" / name)
    return scratch / "scene_X", [gdal.Open(str(path)).ReadAsArray() for path in paths.values()]


def masked_ndvi(scratch, scene, files, mask, scale, threads=2):
    config = scratch / "c.yaml"
    config.write_text(f"""compute: {{memory: 128MiB, threads: {threads}}}
pipelines:
  p:
    input:
      scene: "scene_*/"
      scale: {scale}
      files: {files}
    steps:
      - mask: {mask}
      - index: {{names: [NDVI]}}
    products:
      - cog: {{bands: [NDVI], type: float32}}
""")
    report = pbtest.run_json("pushbroom", "run", "--json", "-c", config, "-o", scratch / "out", "--existing", "version", scene)[0]
    return gdal.Open(report["products"][0]["path"]).ReadAsArray()


def ndvi(red, infrared, scale):
    r, n = [np.where(b == 0, np.nan, b.astype(np.float32) * np.float32(scale)).astype(np.float32) for b in (red, infrared)]
    with np.errstate(invalid="ignore", divide="ignore"):
        v = (n - r) / (n + r)
    return np.where(n + r == 0, np.nan, v)


@pbtest.not_about_memory
def test_a_sentinel_2_folder_is_masked_by_its_classes(scratch):
    scene, (red, infrared, classes) = real(scratch, pbtest.sentinel2_files("B04.tif", "B08.tif", "SCL.tif"))
    files = "{R: B04.tif, N: B08.tif, SCL: SCL.tif}"
    drop = dilated(np.isin(classes, [1, 3, 8, 9, 10]), 3, "disc")
    keep = np.kron(~drop & (classes != 0), np.ones((2, 2), bool))
    expected = np.where(keep, ndvi(red, infrared, 0.0001), np.nan)
    assert 0.05 < np.isfinite(expected).mean() < 0.99, np.isfinite(expected).mean()
    for gate in ("false", "true"):
        step = f"{{name: CLEAR, band: SCL, drop: [0, 1, 3, 8, 9, 10], grow: 3, apply: [R, N], gate: {gate}}}"
        same(masked_ndvi(scratch, scene, files, step, 0.0001), expected, gate)
    same(masked_ndvi(scratch, scene, files, "{band: SCL, preset: sentinel2-scl, grow: 3, apply: [R, N]}", 0.0001), expected, "preset")


def test_a_landsat_set_is_masked_by_its_bits(scratch):
    stem = "LC08_L1TP_016037_20170813_20170814_01_RT_"
    source = pbtest.need_data() / "real/landsat8_c1_016037"
    scene, (red, infrared, quality) = real(scratch, {f"{stem}{b}.TIF": source / f"{stem}{b}.TIF" for b in ("B4", "B5", "BQA")})
    files = '{R: "*_B4.TIF", N: "*_B5.TIF", QA: "*_BQA.TIF"}'
    q = quality.astype(int)
    for mask, drop in (("preset: landsat-c1", (q & 1 == 1) | (q >> 4 & 1 == 1) | (q >> 7 & 3 == 3) | (q >> 11 & 3 == 3)),
                       ("preset: landsat-c1, drop_bits: [fill, cloud_high, snow_low]", (q & 1 == 1) | (q >> 5 & 3 == 3) | (q >> 9 & 3 == 1)),
                       ("drop_bits: [0, 4], grow: 2", dilated((q & 1 == 1) | (q >> 4 & 1 == 1), 2, "disc"))):
        expected = np.where(drop, np.nan, ndvi(red, infrared, 0.00002))
        same(masked_ndvi(scratch, scene, files, f"{{band: QA, {mask}, apply: [R, N]}}", 0.00002), expected, mask)


def test_mistakes_name_their_place_and_a_way_out(scratch):
    for step, words in (("mask: {band: QA}", "nothing is chosen to be dropped"), ("mask: {drop: [1]}", "give one of the two"),
                        ("mask: {band: QA, bands: [R], keep: [0, 1]}", "give one of the two"),
                        ("mask: {band: QB, drop: [1]}", "no band 'QB' here"),
                        ("mask: {band: QA, drop: [cloud]}", "needs a preset"), ("mask: {band: QA, drop: [1.5]}", "is no whole number"),
                        ("mask: {band: QA, drop_bits: [32]}", "numbered from 0 to 31"),
                        ("mask: {band: QA, drop: [1], keep: [2]}", "exclude each other"),
                        ("mask: {band: QA, preset: landsat}", "no preset 'landsat'"),
                        ("mask: {band: QA, preset: landsat-c3}", "did you mean 'landsat-c2'?"),
                        ("mask: {band: QA, preset: landsat-c2, drop: [1]}", "is of bits; use drop_bits or keep_bits"),
                        ("mask: {band: QA, preset: sentinel2-scl, drop_bits: [1]}", "is of values; use drop or keep"),
                        ("mask: {band: QA, preset: landsat-c2, drop_bits: [clowd]}", "did you mean cloud"),
                        ("mask: {bands: [R, N], keep: [1]}", "range [low, high]"), ("mask: {bands: [R], keep: [2, 1]}", "range [low, high]"),
                        ("mask: {bands: [R], drop: [1]}", "need keep: [low, high]"), ("mask: {band: QA, drop: 3}", "must be a list"),
                        ("mask: {band: QA, drop: [1], grow: 65}", "65"), ('math: {bands: {X: "R == invalid"}}', "write isvalid(x)"),
                        ('math: {bands: {X: "bits(QA, 30, 4)"}}', "the highest bit 31")):
        config = scratch / "c.yaml"
        config.write_text(f"pipelines:\n  p:\n    input: {{bands: {{QA: 1, R: 2, N: 3}}}}\n    steps:\n      - {step}\n    products: [cog: {{}}]\n")
        done = pbtest.run("pushbroom", "check-config", config, code=2)
        assert "c.yaml:5:" in done.stderr and words in done.stderr, (step, done.stderr)


# --- math ------------------------------------------------------------------------------------------

def test_logic_bits_and_remainders_are_those_of_numpy(scratch):
    numbers = np.random.default_rng(21)
    quality = numbers.integers(0, 65535, SHAPE)
    scene, r, n = scene_of(scratch / "s.tif", quality)
    first = 'math: {bands: {R: "where(isvalid(QA) and mod(N, 7) < 1, invalid, R)"}}'
    r = np.where(np.mod(n, 7) < 1, np.float32(np.nan), r)
    known = np.isfinite(r)
    f = np.float32
    cases = {
        "bits(QA, 8, 2)": (quality >> 8 & 3).astype(f),
        "bits(QA, 3, 1) and not bits(QA, 6, 1) or N > 8000": ((quality >> 3 & 1 == 1) & ~(quality >> 6 & 1 == 1) | (n > 8000)).astype(f),
        "floor(N / 7) + mod(N, 7) * 0.5": np.floor(n / f(7)) + np.mod(n, f(7)) * f(0.5),
        "mod(N - 5000, R)": np.mod(n - f(5000), r),
        "mod(N - 5000.5, 0 - R)": np.mod(n - f(5000.5), f(0) - r),
        "isvalid(R)": known.astype(f),
        "isvalid(R) and R > 4000": (known & (r > 4000)).astype(f),
        "R > 4000 or N > 4000": np.where(n > 4000, f(1), np.where(known, (r > 4000).astype(f), f(np.nan))),
        "where(not isvalid(R), N, invalid)": np.where(known, f(np.nan), n),
        "not R > 4000": np.where(known, (~(r > 4000)).astype(f), f(np.nan)),
    }
    with np.errstate(invalid="ignore"):
        made = result(scratch, scene, [first, "math: {bands: {" + ", ".join(f'V{i}: "{t}"' for i, t in enumerate(cases)) + "}}"],
                      [f"V{i}" for i in range(len(cases))])
    for text, ours, theirs in zip(cases, made, cases.values()):
        same(ours, theirs.astype(f), text)


def test_angles_are_those_of_numpy_to_one_place(scratch):
    scene, r, n = scene_of(scratch / "s.tif", patches(SHAPE, [1]))
    cases = {"sin(R)": np.sin(r.astype(np.float64)), "cos(N - 4000)": np.cos(n.astype(np.float64) - 4000),
             "atan(R - N)": np.arctan(r.astype(np.float64) - n), "atan2(R - 4000, N - 4000)": np.arctan2(r.astype(np.float64) - 4000, n - 4000.0)}
    made = result(scratch, scene, ["math: {bands: {" + ", ".join(f'V{i}: "{t}"' for i, t in enumerate(cases)) + "}}"],
                  [f"V{i}" for i in range(len(cases))])
    for text, ours, exact in zip(cases, made, cases.values()):
        ulp = np.spacing(np.abs(exact).astype(np.float32)).astype(np.float64)
        good = np.isfinite(ours)
        assert good.mean() > 0.99 and (np.abs(ours - exact)[good] <= 0.51 * ulp[good]).all(), text
    report = compute(scratch, scene, ["QA", "R", "N"], ['math: {bands: {X: "sin(R * 1000)"}}'], ["X"])
    far = gdal.Open(report["products"][0]["path"]).ReadAsArray()
    assert (np.isnan(far) == (r * np.float32(1000) > 4194304)).all()


if __name__ == "__main__":
    pbtest.main()
