# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Pipelines of random steps and products, as the values of a configuration: the same for the same random.Random."""
import json


def odd(rng, most):
    return rng.randrange(3, most + 1, 2)


def edge(rng):
    return rng.choice(["reflect", "clamp", "nodata"])


def expression(rng, bands):
    a, b, c = (rng.choice(bands) for _ in range(3))
    return rng.choice([f"({a} - {b}) / ({a} + {b})", f"sqrt({a} * {b})", f"where({a} > {b}, {c}, {a} * 0.5)", f"min({a}, {b}) - max({b}, {c})", f"log({a} + 1)",
                       f"where(isvalid({a}), {a} * 2 - {b}, invalid)", f"mod({a}, 7) + abs({b})", f"({a} - {b} * 0.3) ** 2", f"{a} / ({b} + 0.1) + {c}"])


def math(rng, bands, name, _):
    return {"math": {"bands": {name: expression(rng, bands)}}}


def convolve(rng, bands, name, _):
    return {"convolve": {"kernel": rng.choice(["gaussian", "box", "sobel"]), "size": odd(rng, 15), "edge": edge(rng), "bands": {name: rng.choice(bands)}}}


def window(rng, bands, name, _):
    return {rng.choice(["median", "roughness"]): {"size": odd(rng, 7), "edge": edge(rng), "bands": {name: rng.choice(bands)}}}


def stretch(rng, bands, name, _):
    how = rng.choice([{"percentiles": [rng.choice([0, 1, 2, 5]), rng.choice([90, 98, 100])]}, {"method": "minmax"}, {"method": "stddev", "deviations": 2}])
    return {"stretch": {"bands": {name: rng.choice(bands)}, "high": rng.choice([1, 255]), **how}}


def mask(rng, bands, _name, _size):
    return {"mask": {"bands": [rng.choice(bands)], "keep": [1, 40000], "grow": rng.choice([0, 2]), "apply": [rng.choice(bands)]}}


def gate(rng, bands, _name, _size):
    return {"gate": {"keep": f"{rng.choice(bands)} > {rng.choice([0, 20, 3000])}"}}


def classify(rng, bands, name, _):
    if rng.random() < 0.5:
        return {"classify": {"method": "otsu", "bands": [rng.choice(bands)], "as": name}}
    return {"classify": {"bands": rng.sample(bands, min(2, len(bands))), "classes": rng.randint(2, 6), "rounds": rng.randint(1, 5), "as": name}}


def resample(rng, _bands, _name, _size):
    return {"resample": {"factor": rng.choice([0.3, 0.5, 0.77, 1.6, 2]), "method": rng.choice(["nearest", "bilinear", "cubic", "average", "mode"])}}


def crop(rng, _bands, _name, size):
    x, y = rng.randrange(max(1, size[0] // 2)), rng.randrange(max(1, size[1] // 2))
    return {"crop": {"window": [x, y, max(1, (size[0] - x) // 2), max(1, (size[1] - y) // 2)]}}


# With how often they are taken; the last two are taken first or not at all, because they change the grid of all bands.
STEPS = ((math, 8), (convolve, 6), (window, 4), (stretch, 3), (mask, 1), (gate, 1), (classify, 1))
GRIDS = (resample, crop)
MADE = {math, convolve, window, stretch, classify}  # a band of a new name


def cog(rng, bands, i):
    made = {"name": f"p{i}", "bands": rng.sample(bands, rng.randint(1, min(4, len(bands)))), "compress": rng.choice(["deflate"] * 5 + ["none", "lzw", "zstd"]),
            "blocksize": rng.choice([64, 128, 256, 512]), "overviews": rng.choice(["auto", "average", "nearest", "none"]), "type": rng.choice(["float32"] * 3 + ["uint8", "uint16", "int16"])}
    if made["type"] != "float32":
        made["nodata"] = 0
    if made["compress"] in ("deflate", "zstd") and rng.random() < 0.2:
        made["level"] = rng.randint(1, 9)
    if rng.random() < 0.2:
        made["predictor"] = "none"
    return {"cog": made}


def products(rng, bands):
    made = [cog(rng, bands, i) for i in range(rng.choice([1, 1, 2, 3]))]
    if rng.random() < 0.4:
        made.append({"statistics": {"bands": [rng.choice(bands)]}})
    if rng.random() < 0.4:
        made.append({"quicklook": {"bands": [rng.choice(bands)], "size": rng.choice([16, 100, 700])}})
    return made


def pipeline(rng, n_bands, size):
    """A pipeline for a scene of this many bands, (width, height) pixels."""
    bands = [f"B{i}" for i in range(1, n_bands + 1)]
    found = {"input": {"match": ["*"], "bands": {name: i for i, name in enumerate(bands, 1)}}, "steps": []}
    if rng.random() < 0.3:
        found["input"]["scale"] = 0.0001
    if rng.random() < 0.15:
        found["steps"].append(rng.choice(GRIDS)(rng, bands, None, size))
    for i in range(rng.choice([0, 1, 1, 2, 2, 3, 4])):
        step = rng.choices([s for s, _ in STEPS], [n for _, n in STEPS])[0]
        if step is gate and any("gate" in taken for taken in found["steps"]):
            continue  # a pipeline has at most one
        found["steps"].append(step(rng, bands, f"X{i}", size))
        bands = bands + [f"X{i}"] * (step in MADE)
    found["products"] = products(rng, bands)
    if not found["steps"]:
        del found["steps"]
    return found


def compute(rng):
    return {"memory": "1GiB", "codecs": "device", "tile": rng.choice([0, 0, 64, 128, 256, 512]), "device_memory": rng.choice(["0", "0", "24MiB", "100MiB"]), "threads": rng.choice([0, 2, 3])}


def text(settings):
    """YAML text, of which JSON is a part."""
    return "\n".join(f"{key}: {json.dumps(value)}" for key, value in settings.items()) + "\n"
