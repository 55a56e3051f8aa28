#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: sanitized
"""How values become levels and colours in quicklooks and painted COGs, against numpy: methods of stretch, gamma, shade."""
import json

import numpy as np
from osgeo import gdal

import pbtest
from test_colours import config_of, make, pixels_of, scene_of

gdal.UseExceptions()


def values_of(n, seed=5, shape=(150, 201)):
    random = np.random.default_rng(seed)
    return random.gamma(2, 300, (n, *shape)).astype(np.float32)


def share_of(values, method, percentiles=(2, 98), deviations=2.0):
    x = values.astype(np.float64)
    if method == "equalize":
        at = np.percentile(x, np.linspace(0, 100, 16))
        return np.interp(x, at, np.linspace(0, 1, 16))
    low, high = {"minmax": (x.min(), x.max()), "stddev": (x.mean() - deviations * x.std(), x.mean() + deviations * x.std()),
                 "percentiles": np.percentile(x, percentiles)}[method]
    return np.clip((x - low) / (high - low), 0, 1)


METHODS = (("percentiles", "stretch: [5, 90]", {"percentiles": (5, 90)}), ("minmax", "stretch_method: minmax", {}),
           ("stddev", "stretch_method: stddev, deviations: 1.5", {"deviations": 1.5}), ("equalize", "stretch_method: equalize", {}))


def near(ours, theirs, share=0.01):
    off = np.abs(ours.astype(int) - np.floor(theirs * 255 + 0.5).astype(int))
    assert ours.shape == theirs.shape and off.max() <= 1 and (off > 0).mean() < share, (off.max(), (off > 0).mean())


def test_methods_of_stretch_are_those_of_numpy(scratch):
    values = values_of(3)
    scene = scene_of(scratch / "s.tif", values)
    for method, keys, more in METHODS:
        for gamma in (1, 1.8):
            theirs = np.array([share_of(v, method, **more) for v in values]) ** (1 / gamma)
            made = make(scratch, scene, [f"quicklook: {{bands: [B1, B2, B3], {keys}, gamma: {gamma}}}", f"cog: {{bands: [B1, B2, B3], {keys}, gamma: {gamma}}}"],
                        out=f"{method}{gamma}")
            near(pixels_of(made / "s.png")[:3], theirs)
            near(pixels_of(made / "s.tif")[:3], theirs)
    assert len(np.unique(pixels_of(made / "s.png")[0])) > 250


def test_steps_of_stretch_are_those_of_numpy(scratch):
    values = values_of(1)
    values[:, :40] = 250  # many pixels of one value
    scene = scene_of(scratch / "s.tif", values)
    steps = ["stretch: {method: equalize, high: 255, bands: {E: B1}}", "stretch: {gamma: 2.2, low: 10, high: -10, bands: {G: B1}}"]
    made = make(scratch, scene, ["cog: {bands: [E, G]}"], steps=steps, compute="{memory: 64MiB, tile: 64}")
    equalized, bent = pixels_of(made / "s.tif")
    other = values[0] != 250  # except these: their share depends on where the percentile of equal values counts
    assert np.abs(equalized - 255 * share_of(values[0], "equalize"))[other].max() < 1e-3
    assert np.abs(bent - (10 - 20 * share_of(values[0], "percentiles") ** (1 / 2.2))).max() < 1e-3
    assert equalized.min() == 0 and equalized.max() == 255


def test_an_equalized_ramp_uses_all_its_colours(scratch):
    scene = scene_of(scratch / "s.tif", values_of(1))
    made = make(scratch, scene, ["quicklook: {bands: [B1], ramp: viridis, stretch_method: equalize}", "quicklook: {name: g, bands: [B1], ramp: grey, stretch_method: equalize}",
                                 "cog: {bands: [B1], ramp: grey, stretch_method: equalize, gamma: 0.5}"])
    share = share_of(values_of(1)[0], "equalize")
    near(pixels_of(made / "s.g.png")[0], share, 0.06)  # a ramp rounds as gdaldem does
    near(pixels_of(made / "s.tif")[0], share ** 2, 0.06)
    assert len(np.unique(pixels_of(made / "s.png")[:3].reshape(3, -1), axis=1).T) > 200


def blended(colours, brightness, how):
    c, s = colours / 255, brightness / 255
    return c * s if how == "multiply" else np.where(c < 0.5, 2 * c * s, 1 - 2 * (1 - c) * (1 - s))


def test_shade_is_blended_with_colours(scratch):
    values = values_of(4)
    values[3] = np.random.default_rng(1).uniform(0, 255, values.shape[1:])
    values[3, 7, 9] = -9999
    scene = scene_of(scratch / "s.tif", values, nodata=-9999)
    for how in ("multiply", "overlay"):
        for bands, keys in (("[B1]", "ramp: terrain, range: [100, 1500]"), ("[B1, B2, B3]", "range: [0, 2000]"), ("[B2]", "range: [0, 2000]")):
            kinds = [("quicklook", "png"), ("cog", "tif")]
            made = make(scratch, scene, [f"{kind}: {{bands: {bands}, {keys}}}" for kind, _ in kinds]
                        + [f"{kind}: {{name: shaded, bands: {bands}, {keys}, shade: B4, blend: {how}}}" for kind, _ in kinds], out=f"{how}{len(bands)}{keys[:4]}")
            for kind, suffix in kinds:
                plain, shaded = pixels_of(made / f"s.{suffix}"), pixels_of(made / f"s.shaded.{suffix}")
                inside = np.ones(values.shape[1:], bool)
                inside[7, 9] = False
                near(shaded[:-1][:, inside], blended(plain[:-1][:, inside].astype(float), values[3][inside], how))
                assert (shaded[-1] == np.where(inside, 255, 0)).all(), kind


def test_item_has_bands_and_results_of_a_painted_cog(scratch):
    values = values_of(4)
    values[3] = np.random.default_rng(1).uniform(0, 255, values.shape[1:])
    made = make(scratch, scene_of(scratch / "s.tif", values, nodata=-9999),
                ["cog: {bands: [B1, B2, B3], stretch_method: equalize, shade: B4}", "stac: {datetime: file-time}"])
    def once(pairs):
        assert len({k for k, _ in pairs}) == len(pairs), [k for k, _ in pairs]
        return dict(pairs)
    item = json.loads((made / "s.stac.json").read_text(), object_pairs_hook=once)
    bands = [b["name"] for b in next(iter(item["assets"].values()))["bands"]]
    assert len(bands) == pixels_of(made / "s.tif").shape[0] == 4 and "B4" not in bands, bands
    results = [s["results"] for s in item["properties"]["processing:expression"]["expression"]["steps"] if "results" in s]
    assert [len(r[b]) for r in results for b in r] == [16, 16, 16], results


def test_sheet_has_a_named_picture_of_each_band(scratch):
    scene = scene_of(scratch / "s.tif", values_of(5, shape=(301, 402)))
    sheet = "quicklook: {{name: sheet, layout: sheet, size: 400{}}}"
    for number, (keys, channels) in enumerate((("", 2), (", ramp: magma, stretch_method: equalize", 4))):
        made = make(scratch, scene, [sheet.format(keys)] + [f"quicklook: {{name: {b}, bands: [{b}], size: 118{keys}}}" for b in ("B1", "B2", "B3", "B4", "B5")], out=f"{number}")
        image, single = pixels_of(made / "s.sheet.png"), [pixels_of(made / f"s.B{b}.png") for b in range(1, 6)]
        _, h, w = single[0].shape  # two rows of three columns, 4 pixels apart, a line of 12 above each
        assert image.shape == (channels, 2 * (h + 12) + 4, 3 * w + 8), image.shape
        assert max(image.shape[1:]) <= 400
        labels = []
        for i, picture in enumerate(single):
            y, x = i // 3 * (h + 16), i % 3 * (w + 4)
            assert (image[:, y + 12:y + 12 + h, x:x + w] == picture).all(), i
            labels.append(image[0, y:y + 12, x:x + w])
            assert (image[-1, y:y + 12, x:x + w] == 255).all() and set(np.unique(labels[-1])) == {0, 255}
            assert (labels[-1][:, :7] == labels[0][:, :7]).all() and not labels[-1][:, 13:].any(), "all begin with B, and have two letters"
        assert len({label.tobytes() for label in labels}) == 5
        assert not image[-1, :, w:w + 4].any() and not image[-1, h + 16:, 2 * (w + 4):].any(), "transparent between, and where no band is"
        plan, = pbtest.run_json("pushbroom", "run", "--dry-run", "--json", "-c", scratch / "c.yaml", "-o", scratch / "p", scene)
        assert (plan["plan"]["products"][0]["width"], plan["plan"]["products"][0]["height"]) == image.shape[:0:-1], plan


def test_keys_of_painting_are_checked(scratch):
    for product, words in (("quicklook: {bands: [B1], blend: overlay}", "blend is for shade"),
                           ("quicklook: {shade: B1}", "write bands: [NAME] as well"),
                           ("quicklook: {bands: [B1], shade: NOPE}", "NOPE"),
                           ("cog: {bands: [B1], range: [0, 1], stretch_method: minmax}", "keep one of them"),
                           ("quicklook: {bands: [B1], stretch: [1, 99], stretch_method: equalize}", "keep one of them"),
                           ("quicklook: {bands: [B1], layout: sheet, shade: B1}", "shade is for one picture"),
                           ("quicklook: {bands: [B1], deviations: 3}", "deviations are for stretch_method: stddev"),
                           ("cog: {bands: [B1], gamma: 2, type: uint16}", "are of uint8")):
        told = pbtest.run("pushbroom", "check-config", config_of(scratch, [product], bands="bands: {B1: 1}"), code=2)
        assert words in told.stdout + told.stderr, (product, told.stdout + told.stderr)


if __name__ == "__main__":
    pbtest.main()
