#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: sanitized
"""Validity of pixels: nodata values that a type cannot hold, alpha bands, nodata values written with few digits; and those of
masks and pictures of several bands, with their overviews."""
import json
import shutil

import numpy as np
from osgeo import gdal

import pbtest
from pbtest import run, run_json

gdal.UseExceptions()

TYPES = {"uint8": gdal.GDT_Byte, "int16": gdal.GDT_Int16, "uint16": gdal.GDT_UInt16, "int32": gdal.GDT_Int32,
         "uint32": gdal.GDT_UInt32, "float32": gdal.GDT_Float32, "float64": gdal.GDT_Float64}


def write(path, bands, kind, nodata=None, alpha=False, options=("COMPRESS=DEFLATE",)):
    """A file of bands [b][y][x]; alpha: the last band is one."""
    count, height, width = np.shape(bands)
    file = gdal.GetDriverByName("GTiff").Create(str(path), width, height, count, TYPES[kind], [*options, *(["ALPHA=YES"] if alpha else [])])
    for i, band in enumerate(bands):
        if nodata is not None:
            file.GetRasterBand(i + 1).SetNoDataValue(nodata)
        file.GetRasterBand(i + 1).WriteArray(np.asarray(band, kind))
    file = None
    return path


def config(scratch, source="bands: {V: 1}", products=("cog: {bands: [V], type: float32}",), steps=()):
    path = scratch / "c.yaml"
    path.write_text("compute: {device: cpu}\npipelines:\n  p:\n    input: {match: ['*'], " + source + "}\n" +
                    ("    steps:\n" + "".join(f"      - {s}\n" for s in steps) if steps else "") +
                    "    products:\n" + "".join(f"      - {p}\n" for p in products))
    return path


def products(scratch, paths, **more):
    """The results of a run of all paths, in their order."""
    done = run_json("pushbroom", "run", "--json", "-c", config(scratch, **more), "-o", scratch / "out", *paths)
    by = {result["input"]: result for result in done}
    return [by[str(path)] for path in paths]


def made(result, kind="cog"):
    return next(p["path"] for p in result["products"] if p["type"] == kind)


def valid_in(result):
    return np.isfinite(gdal.Open(made(result)).ReadAsArray())


def gdals(path):
    """Values of GDAL's mask band of the first band, and its flags."""
    file = gdal.Open(str(path))
    band = file.GetRasterBand(1)
    return band.GetMaskBand().ReadAsArray() != 0, band.GetMaskFlags()


def plan(scratch, path, **more):
    return run("pushbroom", "run", "--dry-run", "-c", config(scratch, **more), "-o", scratch / "out", path).stdout


def words(text):
    return " ".join(text.split())


def collar(kind, top):
    """Values of 100 and an alpha band, both 0 in the first four rows."""
    values, alpha = np.full((10, 12), 100), np.full((10, 12), top)
    values[:4] = alpha[:4] = 0
    return [values, alpha]


UNFIT = [("uint8", v) for v in (-9999, -1, 256, 65536, 0.5, 100.5, float("nan"), float("inf"))] + \
        [("uint16", v) for v in (-10000, 65536, -0.5, float("nan"), float("-inf"))] + \
        [("int16", v) for v in (-32769, 40000, 1.5, float("nan"))] + \
        [("uint32", v) for v in (-1, 2.0 ** 32, float("nan"))] + \
        [("int32", v) for v in (2.0 ** 31, -2.5)]


def test_nodata_that_no_pixel_can_have_leaves_alpha(scratch):
    tops = {"uint8": 255, "uint16": 65535}
    # Strips and tiles that our reader decodes, bands apart, and a codec that GDAL decodes.
    layouts = (["COMPRESS=DEFLATE"], ["TILED=YES", "BLOCKXSIZE=16", "BLOCKYSIZE=16", "INTERLEAVE=BAND"], ["COMPRESS=LZMA"])
    paths = [write(scratch / f"{kind}_{i}_{k}.tif", collar(kind, tops.get(kind, 1)), kind, value, True, layout)
             for i, (kind, value) in enumerate(UNFIT) for k, layout in enumerate(layouts[:1] if i % 4 else layouts)]
    right = np.arange(10)[:, None] >= 4
    for path, result in zip(paths, products(scratch, paths)):
        assert (valid_in(result) == right).all(), path
        if "uint8_0_" in path.name:
            assert gdals(path)[1] == gdal.GMF_ALPHA | gdal.GMF_PER_DATASET
        assert "by the file's alpha band 2" == result["report"]["valid"], result["report"]["valid"]
        assert "marks no pixel" in result["report"]["valid_notes"], result["report"]
    # A value that the type can hold precedes alpha, like in GDAL.
    held, = products(scratch, [write(scratch / "held.tif", collar("uint8", 255), "uint8", 7, True)])
    assert valid_in(held).all()


def test_nodata_that_no_pixel_can_have_is_reported(scratch):
    path = write(scratch / "collar.tif", collar("uint8", 255), "uint8", -9999, True)
    said = words(plan(scratch, path))
    assert "valid by the file's alpha band 2; the file's nodata value -9999 is no value of uint8 and marks no pixel" in said, said
    result, = products(scratch, [path], products=("cog: {bands: [V], type: float32}", "stac: {datetime: file-time}"))
    lineage = json.load(open(made(result, "stac")))["properties"]["processing:lineage"]
    assert "pixels masked by alpha band 2 of the file" in lineage, lineage
    assert "nodata value -9999 is no value of uint8" in lineage, lineage
    alone = write(scratch / "alone.tif", collar("uint8", 255)[:1], "uint8", -9999)
    said = words(plan(scratch, alone))
    assert "neither a mask nor a nodata value that counts" in said, said
    said = words(plan(scratch, path, source="bands: {V: 1}, nodata: -5"))
    assert "input.nodata -5 is no value of uint8" in said, said


def test_alpha_of_a_source_leaves_out_unfit_nodata(scratch):
    plain = write(scratch / "a.tif", [np.full((10, 12), 1)], "uint8")
    write(scratch / "other.tif", collar("uint16", 65535), "uint16", -1, True)
    path = config(scratch, source="bands: {V: 1}, sources: {S: {file: " + str(scratch / "other.tif") + ", bands: {W: 1}}}",
                  products=("cog: {bands: [W], type: float32}",))
    result, = run_json("pushbroom", "run", "--json", "-c", path, "-o", scratch / "out", plain)
    assert (valid_in(result) == (np.arange(10)[:, None] >= 4)).all()
    notes = result["report"]["valid_notes"]
    assert "file S: alpha band 2 is of uint16" in notes and "file S: the file's nodata value -1 is no value of uint16" in notes, notes
    path.write_text(path.read_text().replace("bands: {W: 1}", "bands: {W: 1, X: 2}, nodata: 70000"))
    result, = run_json("pushbroom", "run", "--json", "-c", path, "-o", scratch / "out2", plain)
    notes = result["report"]["valid_notes"]
    assert valid_in(result).all() and "input.sources.S.nodata 70000 is no value of uint16" in notes, notes
    assert "band 2 is tagged as alpha and read as data, because input.sources.S.bands names it X" in notes, notes


def test_near_miss_nodata_is_invalid_as_in_gdal(scratch):
    big = -3.4028234663852886e38
    pixels = [big, -3.4e38, -3.40282346638529e38, -9999, float(np.nextafter(np.float32(-9999), np.float32(0))), -9998.99, -1e30, 0, 1e-30, 5]
    cases = [(kind, nodata) for kind in ("float32", "float64")
             for nodata in (big, -3.40282346638529e38, -3.4e38, -3.40282e38, -9999, 0)]
    paths = [write(scratch / f"n{i}.tif", [[pixels]], kind, nodata) for i, (kind, nodata) in enumerate(cases)]
    for path, result in zip(paths, products(scratch, paths)):
        expected, _ = gdals(path)
        assert (valid_in(result) == expected).all(), (path, valid_in(result), expected)
    assert not gdals(paths[2])[0][0, 0] # -3.4e38 marks the end of the range, too


def test_valid_floats_avoid_what_gdal_takes_for_nodata(scratch):
    """A valid value next to the product's nodata is stored where neither GDAL nor pushbroom takes it for nodata."""
    near = [np.float32(-9999)]
    for _ in range(9):
        near.append(np.nextafter(near[-1], np.float32(0)))
    path = write(scratch / "near.tif", [[near]], "float32")
    for kind in ("float32", "float64"):
        result, = products(scratch, [path], products=("cog: {bands: [V], type: " + kind + ", nodata: -9999}",))
        file = made(result)
        valid, _ = gdals(file)
        assert valid.all(), (kind, valid)
        assert np.abs(gdal.Open(file).ReadAsArray()[0] - near).max() <= 0.005
        assert next(p for p in result["products"] if p["type"] == "cog")["moved_off_nodata"] == 5, result["products"]
        read = scratch / f"again_{kind}.tif"
        shutil.copyfile(file, read)
        again, = products(scratch, [read])
        assert valid_in(again).all(), kind
        shutil.rmtree(scratch / "out")


def test_alpha_that_bands_name_is_data(scratch):
    """Near infrared tagged as alpha (NAIP): water, whose near infrared is 0, stays."""
    bands = np.random.default_rng(1).integers(20, 250, (4, 20, 30))
    bands[3, 5:9] = 0
    path = write(scratch / "naip.tif", bands, "uint8", alpha=True, options=["PHOTOMETRIC=RGB"])
    named = "bands: {R: 1, G: 2, B: 3, N: 4}"
    ndvi = ("cog: {bands: [NDVI], type: float32}", "stac: {datetime: file-time}")
    result, = products(scratch, [path], source=named, steps=["index: {names: [NDVI]}"], products=ndvi)
    assert valid_in(result).all()
    note = "band 4 is tagged as alpha and read as data, because input.bands names it N"
    assert note in result["report"]["valid_notes"]
    assert note in json.load(open(made(result, "stac")))["properties"]["processing:lineage"]
    said = words(plan(scratch, path, source=named, steps=["index: {names: [NDVI]}"], products=ndvi))
    assert note in said, said
    shown = words(run("pushbroom", "run", "-c", config(scratch, source=named, products=("cog: {bands: [N], type: float32}",)), "-o", scratch / "out2", path).stdout)
    assert note in shown, shown
    # A configuration that names the other bands alone, or the mask, gets alpha.
    for source in ("bands: {R: 1, G: 2, B: 3}", named + ", valid: mask", named + ", valid: both"):
        result, = products(scratch, [path], source=source, products=("cog: {bands: [R], type: float32}",))
        assert (~valid_in(result)).sum() == 4 * 30, source
        assert result["report"]["valid"] == "by the file's alpha band 4"


def test_alpha_of_odd_types_is_explained(scratch):
    """Any opacity is valid, whatever the type's full scale is."""
    cases = {"int16": ([-5, 0, 1, 32767], "1 or more"), "uint16": ([0, 0, 1, 65535], "not 0"), "float32": ([0, 0.25, 0.5, 1], "0.5 or more")}
    paths = [write(scratch / f"{kind}.tif", [[[1, 2, 3, 4]], [alpha]], kind, alpha=True) for kind, (alpha, _) in cases.items()]
    extra = ("cog: {bands: [V], type: float32}", "stac: {datetime: file-time}")
    for path, result in zip(paths, products(scratch, paths, products=extra)):
        rule = f"alpha band 2 is of {path.stem}, pixels are valid where it is {cases[path.stem][1]}"
        assert valid_in(result).tolist() == [[False, False, True, True]], path
        assert rule in result["report"]["valid_notes"], result["report"]
        assert rule in json.load(open(made(result, "stac")))["properties"]["processing:lineage"]
        assert rule in words(plan(scratch, path)), path


# --- masks and pictures of several bands --------------------------------------------------------------------------------

def halved(bands, valid):
    """The means of the valid pixels of each 2 x 2, and where there is one; the sizes are rounded up."""
    count, height, width = bands.shape
    padded = np.zeros((count, height + height % 2, width + width % 2))
    there = np.zeros(padded.shape[1:], bool)
    padded[:, :height, :width], there[:height, :width] = np.where(valid, bands, 0), valid
    groups = there.reshape(there.shape[0] // 2, 2, -1, 2).sum((1, 3))
    sums = padded.reshape(count, there.shape[0] // 2, 2, -1, 2).sum((2, 4))
    return np.where(groups > 0, sums / np.maximum(groups, 1), 0), groups > 0


def levels(path):
    """Pixels of the image and of each overview: the bands, and the mask of the first."""
    file = gdal.Open(str(path))
    band = file.GetRasterBand(1)
    out = []
    for k in range(-1, band.GetOverviewCount()):
        at = [file.GetRasterBand(i + 1) if k < 0 else file.GetRasterBand(i + 1).GetOverview(k) for i in range(file.RasterCount)]
        out.append((np.array([one.ReadAsArray() for one in at]), at[0].GetMaskBand().ReadAsArray() != 0))
    return out


def holes(kind, count, nodata, share=0.3, size=(333, 517), steps=20):
    """Bands with nodata at pixels of their own, and a corner where none has a value."""
    numbers = np.random.default_rng(7)
    bands = numbers.integers(1, steps, (count, *size)).astype(kind)
    bands[numbers.random(bands.shape) < share] = nodata
    bands[:, :70, :90] = nodata
    return bands


def test_mask_overviews_average_pixels_that_it_shows(scratch):
    for kind in ("float32", "uint8", "int16", "int32", "float64"):
        bands = holes(kind, 2, 0 if kind == "uint8" else -9999)
        path = write(scratch / f"{kind}.tif", bands, kind, float(bands[0, 0, 0]))
        product = "cog: {type: " + kind + ", mask: true, overviews: average, blocksize: 64}"
        result, = products(scratch, [path], source="bands: {A: 1, B: 2}", products=(product,))
        found = levels(made(result))
        assert len(found) == 5, len(found)
        valid = (bands != bands[0, 0, 0]).all(0)
        assert (found[0][1] == valid).all() and (found[0][0][:, valid] == bands[:, valid]).all()
        expected = bands.astype(float)
        for values, mask in found[1:]:
            expected, valid = halved(expected, valid)
            expected = expected.astype("float32").astype(float) # the type of the levels
            assert (mask == valid).all(), (kind, (mask != valid).sum())
            shown = expected if kind.startswith("float") else np.rint(expected)
            assert (values[:, valid] == shown[:, valid]).all(), kind


def test_nearest_overviews_sample_pixel_and_mask_alike(scratch):
    bands = holes("float32", 3, -1)
    path = write(scratch / "n.tif", bands, "float32", -1)
    product = "cog: {mask: true, overviews: nearest, blocksize: 64}"
    result, = products(scratch, [path], source="bands: {A: 1, B: 2, C: 3}", products=(product,))
    valid = (bands != -1).all(0)
    for k, (values, mask) in enumerate(levels(made(result))):
        assert (mask == valid[::2 ** k, ::2 ** k]).all()
        assert (values[:, mask] == bands[:, ::2 ** k, ::2 ** k][:, mask]).all()


def test_painted_overviews_average_visible_pixels(scratch):
    bands = holes("float32", 3, -1, steps=200)
    path = write(scratch / "p.tif", bands, "float32", -1)
    product = "cog: {bands: [R, G, B], range: [0, 255], valid: all, blocksize: 64, overviews: average}"
    result, = products(scratch, [path], source="bands: {R: 1, G: 2, B: 3}", products=(product,))
    expected, valid = bands.astype(float), (bands != -1).all(0)
    for k, (values, _) in enumerate(levels(made(result))):
        if k > 0:
            expected, valid = halved(expected, valid)
            expected = expected.astype("float32").astype(float)
        assert ((values[3] != 0) == valid).all(), k
        assert (abs(values[:3, valid] - expected[:, valid]) <= 0.5001).all(), k


RGB = "bands: {R: 1, G: 2, B: 3}"


def test_pictures_show_pixels_that_one_band_has(scratch):
    for nodata in (0, 255):
        bands = holes("uint8", 3, nodata, steps=200)
        path = write(scratch / f"rgb{nodata}.tif", bands, "uint8", nodata)
        some, every = (bands != nodata).any(0), (bands != nodata).all(0)
        for key, right in (("", some), (", valid: any", some), (", valid: all", every)):
            result, = products(scratch, [path], source=RGB, products=(
                "cog: {name: m, bands: [R, G, B], type: uint8, mask: true" + key + "}",
                "cog: {name: p, bands: [R, G, B], range: [0, 255]" + key + "}",
                "cog: {name: w, bands: [R, G, B], type: uint8, compress: webp, quality: 100, mask: true" + key + "}",
                "cog: {name: j, bands: [R, G, B], range: [0, 255], compress: jpeg" + key + "}",
                "cog: {name: n, bands: [R, G, B], type: uint8, nodata: 7}",
                "quicklook: {bands: [R, G, B], range: [0, 255], size: 1024" + key + "}"))
            files = {p.get("name") or p["type"]: p["path"] for p in result["products"]}
            for name in ("m", "p", "w", "j"):
                values, mask = levels(files[name])[0]
                assert ((values[3] != 0) == right).all() if name == "p" else (mask == right).all(), (name, nodata, key)
                # The band that is nodata has its stored value.
                assert name == "j" or (values[:3, right] == bands[:, right]).all(), (name, nodata, key)
            image = gdal.Open(files["quicklook"]).ReadAsArray()
            assert ((image[3] != 0) == right).all() and (image[:3, right] == bands[:, right]).all(), (nodata, key)
            # Bands of data have valid pixels of their own.
            values, _ = levels(files["n"])[0]
            assert ((values == 7) >= (bands == nodata)).all() and (values[bands != nodata] != 7).all()


def test_picture_overviews_count_the_stored_value(scratch):
    bands = holes("uint8", 3, 0, steps=200)
    path = write(scratch / "o.tif", bands, "uint8", 0)
    result, = products(scratch, [path], source=RGB, products=(
        "cog: {name: m, bands: [R, G, B], type: uint8, mask: true, blocksize: 64, overviews: average}",
        "cog: {name: p, bands: [R, G, B], range: [0, 255], blocksize: 64}"))
    files = {p["name"]: p["path"] for p in result["products"]}
    for name in ("m", "p"):
        expected, valid = bands.astype(float), (bands != 0).any(0)
        for k, (values, mask) in enumerate(levels(files[name])):
            if k > 0:
                expected, valid = halved(expected, valid)
                expected = expected.astype("float32").astype(float)
            assert ((mask if name == "m" else values[3] != 0) == valid).all(), (name, k)
            assert (abs(values[:3, valid] - expected[:, valid]) <= 0.5001).all(), (name, k)


def test_any_band_of_values_keeps_its_own_averages(scratch):
    """If values are no picture each band averages its own pixels, and the mask shows all."""
    for kind, missing in (("float32", -9999), ("uint16", 0)):
        bands = holes(kind, 2, missing)
        path = write(scratch / f"v{kind}.tif", bands, kind, missing)
        product = "cog: {type: " + kind + ", mask: true, valid: any, overviews: average, blocksize: 64}"
        result, = products(scratch, [path], source="bands: {A: 1, B: 2}", products=(product,))
        own = bands != missing
        (values, mask), (smaller, its_mask) = levels(made(result))[:2]
        assert (mask == own.any(0)).all() and (values[own] == bands[own]).all()
        assert (np.isnan(values[~own]) if kind == "float32" else values[~own] == missing).all()
        for b in range(2):
            mean, there = halved(bands[b:b + 1].astype(float), own[b])
            mean = mean.astype("float32") if kind == "float32" else np.rint(mean)
            assert (smaller[b][there] == mean[0][there]).all(), kind
        assert (its_mask == halved(bands.astype(float), own.any(0))[1]).all()


def test_valid_of_products_is_explained_and_checked(scratch):
    path = write(scratch / "e.tif", holes("uint8", 3, 0), "uint8", 0)
    for product, word in (("cog: {bands: [R, G, B], type: uint8, mask: true}", "any"),
                          ("cog: {bands: [R, G, B], type: uint8, mask: true, valid: all}", "all"),
                          ("cog: {bands: [R, G, B], mask: true}", "all"), ("cog: {bands: [R, G], type: uint8, mask: true}", "all"),
                          ("cog: {bands: [R, G, B], range: [0, 9]}", "any"), ("quicklook: {bands: [R, G, B]}", "any"),
                          ("quicklook: {bands: [R, G, B], valid: all}", "all")):
        said = words(plan(scratch, path, source=RGB, products=(product,)))
        assert f"valid where {'any band is' if word == 'any' else 'all bands are'}" in said, (product, said)
    said = words(plan(scratch, path, source=RGB, products=("cog: {bands: [R, G, B]}", "quicklook: {bands: [R]}")))
    assert "valid where" not in said, said
    wrong = run("pushbroom", "check-config", config(scratch, source=RGB, products=("cog: {bands: [R, G, B], valid: any}",)), code=2)
    assert "cog.valid is for products with a mask or an alpha band" in wrong.stderr, wrong.stderr


pbtest.main()
