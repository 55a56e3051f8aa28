#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: sanitized
"""mosaic: adjacent scenes on one grid, against gdalwarp, gdalbuildvrt and numpy: odd sizes, holes, scenes that do not touch,
tiles and threads."""
import json
import pathlib
import warnings

import numpy as np
from osgeo import gdal

import pbtest
from test_grids import product, same, write

gdal.UseExceptions()
warnings.simplefilter("ignore", RuntimeWarning)  # nanmean of nothing
LEFT, TOP = 500000, 4000000


def scenes(scratch, places, seed=1, kind=np.uint16, bands=1):
    """Files of random pixels with holes at (column, row, width, height) of a grid of 10 m."""
    numbers = np.random.default_rng(seed)
    out = []
    for i, (column, row, w, h) in enumerate(places):
        pixels = numbers.integers(1, 250, (bands, h, w)).astype(kind)
        pixels[:, h // 3:h // 3 + 9, w // 2:w // 2 + 14] = 0
        pixels[numbers.random(pixels.shape) < 0.01] = 0
        write(scratch / f"t{i}.tif", pixels, transform=(LEFT + 10 * column, 10, 0, TOP - 10 * row, 0, -10), block=64 if i % 2 else 0)
        out.append(pixels)
    return out


def whole(places, pixels, window=None):
    """Each scene on the grid of all, NaN where it is not valid in every band: scene, band, row, column."""
    x0, y0 = (min(p[i] for p in places) for i in (0, 1)) if window is None else window[:2]
    x1, y1 = (max(p[i] + p[i + 2] for p in places) for i in (0, 1)) if window is None else (window[0] + window[2], window[1] + window[3])
    big = np.full((len(places), len(pixels[0]), 4000, 4000), np.nan, np.float32)
    for i, (x, y, w, h) in enumerate(places):
        p = pixels[i].astype(np.float32)
        big[i, :, y + 1000:y + 1000 + h, x + 1000:x + 1000 + w] = np.where((p == 0).any(0), np.nan, p)
    return big[:, :, y0 + 1000:y1 + 1000, x0 + 1000:x1 + 1000]


def compute(scratch, n, step, settings="{memory: 128MiB}", bands="A", code=0):
    sources = "" if n == 1 else "      sources: {" + ", ".join(
        f"T{i}: {{file: {scratch}/t{i}.tif, bands: {{{', '.join(f'{b}_{i}: {k + 1}' for k, b in enumerate(bands))}}}}}" for i in range(1, n)) + "}"
    config = scratch / "c.yaml"
    config.write_text(f"""compute: {settings}
pipelines:
  p:
    input:
      bands: {{{', '.join(f'{b}_0: {k + 1}' for k, b in enumerate(bands))}}}
{sources}
    steps: [{{mosaic: {{bands: [{', '.join(bands)}], of: [{', '.join(f'_{i}' for i in range(n))}], {step}}}}}]
    products:
      - cog: {{bands: [{', '.join(bands)}], type: float32, blocksize: 64}}
      - quicklook: {{bands: [{bands[0]}]}}
      - stac: {{datetime: file-time}}
""")
    report, = pbtest.run_json("pushbroom", "run", "--json", "-c", config, "-o", scratch / "out", "--existing", "version", scratch / "t0.tif", code=code)
    if code:
        return report
    made = gdal.Open(product(report, "cog"))
    return np.atleast_3d(made.ReadAsArray()) if made.RasterCount == 1 else made.ReadAsArray(), made.GetGeoTransform()


def distance(valid, most):
    """To the nearest pixel that is not valid, in columns or rows, whichever are more: eroded pixel by pixel."""
    out = np.zeros(valid.shape, np.float32)
    for _ in range(most):
        out += valid
        padded = np.pad(valid, 1, mode="edge")
        valid = np.logical_and.reduce([padded[y:y + valid.shape[0], x:x + valid.shape[1]] for y in range(3) for x in range(3)])
    return out


def feather(stack, width):
    weight = [distance(~np.isnan(x[0]), width) for x in stack]
    total, sums = np.float32(0), np.float32(0)
    for w, x in zip(weight, stack):
        sums, total = sums + np.where(w > 0, x, 0).astype(np.float32) * w, total + w
    return np.where(total > 0, sums / total, np.nan).astype(np.float32)


def expected(stack, method, width=32):
    if method == "feather":
        return feather(stack, width)
    if method in ("first", "last"):
        out = np.full(stack.shape[1:], np.nan, np.float32)
        for x in stack if method == "last" else stack[::-1]:
            out = np.where(np.isnan(x), out, x)
        return out
    return {"mean": np.nanmean, "min": np.nanmin, "max": np.nanmax}[method](stack, 0).astype(np.float32)


PLACES = [(0, 0, 121, 97), (90, -30, 75, 80), (-41, 60, 90, 71), (400, 200, 30, 20)]


@pbtest.not_about_memory
def test_every_method_on_the_grid_of_all(scratch):
    pixels = scenes(scratch, PLACES, bands=2)
    stack = whole(PLACES, pixels)
    for i, method in enumerate(("first", "last", "mean", "min", "max", "feather", "feather, width: 100", "feather, width: 1")):
        width = int(method[16:] or 32) if method[:7] == "feather" else 32
        made, place = compute(scratch, 4, f"method: {method}", f"{{memory: 128MiB, tile: {(64, 128, 256)[i % 3]}, threads: {1 + i % 3}}}", "AB")
        assert place == (LEFT - 410, 10, 0, TOP + 300, 0, -10), place
        right = expected(stack, method[:7].rstrip(","), width)
        assert made.shape == right.shape and (np.isnan(made) == np.isnan(right)).all(), method
        close = 1e-6 if method == "mean" else 0
        assert np.nanmax(np.abs(made - right) / right) <= close, (method, np.nanmax(np.abs(made - right)))


def test_the_grid_of_the_first_or_of_a_band(scratch):
    stack = whole(PLACES, scenes(scratch, PLACES), PLACES[0])
    made, place = compute(scratch, 4, "extent: first")
    assert place == (LEFT, 10, 0, TOP, 0, -10)
    same(made.reshape(stack.shape[1:]), expected(stack, "first"), "first")
    made, place = compute(scratch, 4, "like: A_1, method: last")
    assert place == (LEFT + 900, 10, 0, TOP + 300, 0, -10) and made.size == 75 * 80


def test_the_mosaic_is_that_of_gdal(scratch):
    """gdalbuildvrt: the last file on top. gdalwarp: bilinear, of a scene whose pixels are between those of the first."""
    scenes(scratch, PLACES)
    files = [str(scratch / f"t{i}.tif") for i in range(4)]
    vrt = gdal.BuildVRT("", files)
    made, place = compute(scratch, 4, "method: last")
    theirs = vrt.ReadAsArray().astype(np.float32)
    assert place == vrt.GetGeoTransform()
    same(made.reshape(theirs.shape), np.where(theirs == 0, np.nan, theirs), "gdalbuildvrt")
    numbers = np.random.default_rng(3)
    write(scratch / "t0.tif", numbers.integers(1, 200, (60, 70)).astype(np.uint16))
    write(scratch / "t1.tif", numbers.integers(1, 200, (60, 70)).astype(np.uint16), transform=(LEFT + 404, 10, 0, TOP - 203, 0, -10))
    made, place = compute(scratch, 2, "method: last, resampling: bilinear")
    h, w = 81, 111
    assert place == (LEFT, 10, 0, TOP, 0, -10) and made.size == w * h, (place, made.shape)
    theirs = gdal.Warp("", str(scratch / "t1.tif"), format="MEM", resampleAlg="bilinear", outputType=gdal.GDT_Float32, dstNodata=-1,
                       outputBounds=(LEFT, TOP - 10 * h, LEFT + 10 * w, TOP), xRes=10, yRes=10).ReadAsArray()
    ours = made.reshape(h, w)[22:79, 42:109]
    assert (theirs[22:79, 42:109] > 0).all() and np.abs(ours - theirs[22:79, 42:109]).max() < 1e-3


@pbtest.not_about_memory
def test_as_many_scenes_as_can_be_read(scratch):
    """16, of six grids: four files have that of one of the others, with other holes."""
    places = [(50 * (i % 3) + i, 40 * (i // 3) - i, 61 + i, 53) for i in range(6)]
    places = [places[i % 6] for i in range(16)]
    pixels = scenes(scratch, places, seed=16)
    for method, tile in (("first", 64), ("feather", 128)):
        made, _ = compute(scratch, 16, f"method: {method}", f"{{memory: 256MiB, tile: {tile}, threads: 2}}")
        right = expected(whole(places, pixels), method)
        same(made.reshape(right.shape), right, method)
    scenes(scratch, [(50 * i, 0, 61, 53) for i in range(7)])
    failed = compute(scratch, 7, "method: first", code=1)["error"]
    assert "more than 6 kinds" in failed["message"], failed


def test_mistakes_say_what_to_do(scratch):
    scenes(scratch, PLACES[:2])
    compute(scratch, 2, "method: first")
    right = (scratch / "c.yaml").read_text()
    for text, words in (("width: 9", "belongs to method: feather"), ("like: A_1, extent: first", "exclude each other"),
                        ("method: fist", "did you mean 'first'?")):
        (scratch / "c.yaml").write_text(right.replace("method: first", text))
        done = pbtest.run("pushbroom", "check-config", scratch / "c.yaml", code=2)
        assert words in done.stdout + done.stderr, (text, done)
    (scratch / "c.yaml").write_text(right.replace("steps: [", 'steps: [{warp: {bands: [A_1], crs: "EPSG:32633"}}, '))
    done = pbtest.run("pushbroom", "run", "-c", scratch / "c.yaml", "-o", scratch / "other", scratch / "t0.tif", code=None)
    assert done.returncode != 0 and "has another coordinate system" in done.stderr, done.stderr
    write(scratch / "t1.tif", np.ones((20, 30), np.uint8), epsg=32633)
    (scratch / "c.yaml").write_text(right)
    failed, = pbtest.run_json("pushbroom", "run", "--json", "-c", scratch / "c.yaml", "-o", scratch / "other", scratch / "t0.tif", code=1)
    assert "cannot be placed on the scene" in failed["error"]["message"], failed


def tiles_of_a_delivery(scratch, order="name"):
    """Loose tiles of one day that share no pixel; one more may arrive."""
    places = ((0, 0, 70, 50), (70, 0, 61, 50), (0, 50, 70, 43))
    pixels = scenes(scratch, places)
    files = "".join(f", A_{i}: {{match: '*.tif', nth: {i + 1}, optional: true}}" for i in range(1, 4))
    (scratch / "t.yaml").write_text(f"""pipelines:
  tiles:
    input: {{group: '(?<scene>t)\\d\\.tif', order: {order}, nodata: 0, files: {{A_0: {{match: '*.tif', nth: 1}}{files}}}}}
    steps: [mosaic: {{bands: [A], of: [_0, _1, _2, _3]}}]
    products: [cog: {{bands: [A], type: float32}}, stac: {{datetime: file-time}}]
""")
    return places, pixels


def test_tiles_of_a_delivery_need_not_share_a_pixel(scratch):
    for order in ("name", "name-descending"):
        places, pixels = tiles_of_a_delivery(scratch, order)
        report, = pbtest.run_json("pushbroom", "run", "--json", "-c", scratch / "t.yaml", "-o", scratch / order, scratch / "t1.tif")
        made = gdal.Open(report["products"][0]["path"]).ReadAsArray()
        np.testing.assert_array_equal(made, np.nanmax(whole(places, pixels)[:, 0], axis=0))
        item = json.loads(pathlib.Path(report["products"][1]["path"]).read_text())
        assert [file["file"] for file in item["properties"]["pushbroom:inputs"]] == [f"t{i}.tif" for i in range(3)], item["properties"]


if __name__ == "__main__":
    pbtest.main()
