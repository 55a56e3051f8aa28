# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Checks STAC items and collections that tests have made: what the JSON schemas of STAC 1.1.0 and of the extensions demand of
the members that pushbroom writes, and that sizes and checksums are those of the files. With PB_STAC_SCHEMAS, a folder that
has the schemas themselves (any names, found by their $id), and Python's jsonschema they are applied as well."""
import functools
import hashlib
import json
import os
import pathlib
import re
import urllib.parse

EXTENSIONS = "https://stac-extensions.github.io/"
VERSIONS = {"proj": "projection/v2.0.0", "raster": "raster/v2.0.0", "processing": "processing/v1.2.0", "file": "file/v2.1.0",
            "view": "view/v1.0.0", "grid": "grid/v1.1.0", "eo": "eo/v2.0.0", "sat": "sat/v1.1.0", "sar": "sar/v1.0.0",
            "classification": "classification/v2.0.0"}
TIME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$")
RANGES = {"view:sun_azimuth": (0, 360), "view:sun_elevation": (-90, 90), "view:azimuth": (0, 360), "view:off_nadir": (0, 90),
          "view:incidence_angle": (0, 90), "eo:cloud_cover": (0, 100), "sat:relative_orbit": (1, 1e9),
          "sat:absolute_orbit": (1, 1e9), "sar:center_frequency": (0.1, 100), "sar:pixel_spacing_range": (0.1, 1000),
          "sar:pixel_spacing_azimuth": (0.1, 1000)}
COMMON_NAMES = {"pan", "coastal", "blue", "green", "green05", "yellow", "red", "rededge", "rededge071", "rededge075", "rededge078", "nir",
                "nir08", "nir09", "cirrus", "swir16", "swir22", "lwir", "lwir11", "lwir12"}
WORDS = {"eo:common_name": COMMON_NAMES, "sat:orbit_state": {"ascending", "descending", "geostationary"},
         "sar:frequency_band": set("P L S C X Ku K Ka".split()), "sar:observation_direction": {"left", "right"}}


def need(holds, what, value=None):
    if not holds:
        raise AssertionError(f"STAC: {what}: {value!r}" if value is not None else f"STAC: {what}")


def keys_of(value):
    """Members of all depths; what stands in an expression is the pipeline's."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key, inner
            if key != "processing:expression":
                yield from keys_of(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from keys_of(inner)


def check_multihash(value):
    need(re.fullmatch(r"(1220|1e20)[0-9a-f]{64}", value), "file:checksum is no multihash of a SHA-256 or BLAKE3", value)


def check_extensions(thing):
    """Exactly those whose members there are: a schema demands one of them."""
    listed = thing["stac_extensions"]
    need(len(set(listed)) == len(listed), "an extension is listed twice", listed)
    used = {key.split(":")[0] for key, _ in keys_of({k: v for k, v in thing.items() if k != "stac_extensions"}) if ":" in key}
    if any(key == "renders" for key, _ in keys_of(thing)):
        used.add("renders")
    versions = {**VERSIONS, "renders": "render/v2.0.0"}
    wanted = {f"{EXTENSIONS}{versions[word]}/schema.json" for word in used if word != "pushbroom" and word in versions}
    need(set(listed) == wanted, "stac_extensions are not those of the members", sorted(set(listed) ^ wanted))
    need(used <= set(versions) | {"pushbroom"}, "members of an unknown extension", sorted(used - set(versions)))


def check_values(thing):
    for key, value in keys_of(thing):
        if key in RANGES:
            low, high = RANGES[key]
            need(isinstance(value, (int, float)) and low <= value <= high, f"{key} is out of range", value)
        if key in WORDS:
            need(value in WORDS[key], f"{key} is no word of its extension", value)
        if key in ("gsd", "eo:center_wavelength"):
            need(value > 0, f"{key} is not above 0", value)
        if key == "file:checksum":
            check_multihash(value)
        if key == "bands":
            need(value and all(b.get("name") for b in value), "bands without names", value)
        if key == "classification:classes":
            check_classes(value)
        if key == "classification:bitfields":
            for field in value:
                need(field["offset"] >= 0 and field["length"] > 0, "no bit field", field)
                check_classes(field["classes"])
                need(all(0 <= c["value"] < 1 << field["length"] for c in field["classes"]), "a class has too many bits", field)


def check_classes(classes):
    need(classes and len({c["value"] for c in classes}) == len(classes), "classes are none, or one value is there twice", classes)
    for c in classes:
        need(isinstance(c["value"], int) and re.fullmatch(r"[0-9A-Za-z_-]+", c["name"]), "no class", c)
        need("color_hint" not in c or re.fullmatch(r"[0-9A-F]{6}", c["color_hint"]), "no colour", c)


def check_when(properties):
    when = properties["datetime"]
    if when is None:
        need(TIME.match(properties["start_datetime"]) and TIME.match(properties["end_datetime"]), "no time", properties)
        need(properties["start_datetime"] <= properties["end_datetime"], "the end is before the start", properties)
    else:
        need(TIME.match(when), "datetime is no RFC 3339", when)


def check_link(link):
    need(link["rel"] and link["href"] and " " not in link["href"], "no link", link)
    if link["href"].startswith("ni:"):
        need(link["rel"] in ("derived_from", "via") and link["file:size"] >= 0, "no input", link)


def check_asset(key, asset, folder):
    need(isinstance(asset["href"], str) and asset["roles"], f"asset {key}", asset)
    file = folder / urllib.parse.unquote(asset["href"])
    need(file.is_file(), f"asset {key} is not there", str(file))
    need(asset["file:size"] == file.stat().st_size, f"asset {key} has another size", asset["file:size"])
    if asset.get("file:checksum", "").startswith("1220"): # the others are stac.checksum's, and test_stac.py's
        need(asset["file:checksum"] == "1220" + hashlib.sha256(file.read_bytes()).hexdigest(), f"asset {key} has another checksum")


def check_item(path):
    item = json.loads(path.read_text())
    need(item["type"] == "Feature" and item["stac_version"] == "1.1.0" and item["id"], "no item", item.get("type"))
    need((item["geometry"] is None) == ("bbox" not in item), "bbox and geometry do not go together")
    need(("collection" in item) == any(link["rel"] == "collection" for link in item["links"]), "collection without a link")
    check_extensions(item)
    check_values(item)
    check_when(item["properties"])
    for link in item["links"]:
        check_link(link)
    for key, asset in item["assets"].items():
        check_asset(key, asset, path.parent)
    kinds = {asset.get("file:checksum", "")[:4] for asset in item["assets"].values()}
    need(len(kinds) <= 1, "assets with checksums of several kinds", kinds)
    for render in item["properties"].get("renders", {}).values():
        need(render["assets"] and set(render["assets"]) <= set(item["assets"]), "a render of no asset", render)
    apply_schemas(item, "https://schemas.stacspec.org/v1.1.0/item-spec/json-schema/item.json")


def check_collection(path):
    collection = json.loads(path.read_text())
    if collection.get("type") != "Collection" or "links" not in collection:
        return  # what a test has put there
    for key in ("id", "description", "license", "extent"):
        need(collection[key], f"a collection without {key}")
    for box in collection["extent"]["spatial"]["bbox"]:
        need(len(box) == 4 and -180 <= box[0] <= 180 and -180 <= box[2] <= 180 and -90 <= box[1] <= box[3] <= 90, "no bbox", box)
    for interval in collection["extent"]["temporal"]["interval"]:
        need(len(interval) == 2 and all(t is None or TIME.match(t) for t in interval), "no interval", interval)
    apply_schemas(collection, "https://schemas.stacspec.org/v1.1.0/collection-spec/json-schema/collection.json")


@functools.lru_cache
def schemas():
    """By $id; empty: only the rules above are applied."""
    folder = os.environ.get("PB_STAC_SCHEMAS")
    found = [json.loads(p.read_text()) for p in pathlib.Path(folder).glob("*.json")] if folder else []
    return {schema["$id"].rstrip("#"): schema for schema in found}


def apply_schemas(thing, core):
    if not schemas():
        return
    import jsonschema
    store = {**schemas(), "https://proj.org/schemas/v0.7/projjson.schema.json": {}}
    for name in [core, *thing.get("stac_extensions", [])]:
        if name not in store:
            print(f"no schema {name}")
            continue
        resolver = jsonschema.RefResolver(name, store[name], store=store)
        jsonschema.Draft7Validator(store[name], resolver=resolver).validate(thing)


def check_all(root):
    """Every item and collection below root; how many."""
    root = pathlib.Path(root)
    items = [p for p in root.rglob("*.stac.json") if ".tmp/" not in str(p)]
    collections = list(root.rglob("collection.json"))
    for path in items:
        check_item(path)
    for path in collections:
        check_collection(path)
    return len(items) + len(collections)
