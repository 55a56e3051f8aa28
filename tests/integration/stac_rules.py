# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Checks STAC items, collections and catalogues that tests have made: rules that the schemas cannot express, sizes and
checksums of files, links, and the JSON schemas of tests/data/stac-schemas where Python has jsonschema."""
import functools
import json
import pathlib
import re
import threading
import urllib.parse
import warnings

import sums

EXTENSIONS = "https://stac-extensions.github.io/"
try:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import jsonschema
except ImportError:
    jsonschema = None

SCHEMAS = pathlib.Path(__file__).resolve().parents[1] / "data/stac-schemas"
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
    """Members of all depths; members of an expression are the pipeline's."""
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


def check_inputs(inputs):
    for file in inputs:
        need(file["role"] in ("pixels", "metadata", "sidecar", "source") and file["file"] and file["size"] >= 0, "no input", file)
        check_multihash(file["checksum"])


def check_asset(key, asset, folder):
    need(isinstance(asset["href"], str) and asset["roles"], f"asset {key}", asset)
    file = folder / urllib.parse.unquote(asset["href"])
    need(file.is_file(), f"asset {key} is not there", str(file))
    need(asset["file:size"] == file.stat().st_size, f"asset {key} has another size", asset["file:size"])
    if "file:checksum" in asset:
        check_multihash(asset["file:checksum"])
        need(asset["file:checksum"] == sums.multihash(file, asset["file:checksum"][:4]), f"asset {key} has another checksum")


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
    check_inputs(item["properties"].get("pushbroom:inputs", []))
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
        return  # a test has put it there
    for key in ("id", "description", "license", "extent"):
        need(collection[key], f"a collection without {key}")
    for box in collection["extent"]["spatial"]["bbox"]:
        need(len(box) == 4 and -180 <= box[0] <= 180 and -180 <= box[2] <= 180 and -90 <= box[1] <= box[3] <= 90, "no bbox", box)
    for interval in collection["extent"]["temporal"]["interval"]:
        need(len(interval) == 2 and all(t is None or TIME.match(t) for t in interval), "no interval", interval)
    apply_schemas(collection, "https://schemas.stacspec.org/v1.1.0/collection-spec/json-schema/collection.json")


CHECKING = threading.Lock()  # a resolver of references has state, and cases run in threads


@functools.lru_cache
def schemas():
    """Validates by the address that a reference resolves to. PROJJSON is not checked: nothing here writes it."""
    found = {"https://proj.org/schemas/v0.7/projjson.schema.json": {}}
    for file in SCHEMAS.glob("*.json"):
        schema = json.loads(file.read_text())
        found[schema["$id"].rstrip("#")] = schema
        if file.name.startswith("stac-"):  # the $id of common.json has a typing error
            found[schema["$id"].rsplit("/", 1)[0] + "/" + file.name[len("stac-"):]] = schema
    return found


@functools.lru_cache
def validator(name):
    need(name in schemas(), f"tests/data/stac-schemas lacks {name}")
    schema = schemas()[name]
    try:  # jsonschema 4.18 and newer
        import referencing.jsonschema
    except ImportError:
        return jsonschema.Draft7Validator(schema, resolver=jsonschema.RefResolver(name, schema, store=schemas()))
    resources = [(uri, referencing.jsonschema.DRAFT7.create_resource(s)) for uri, s in schemas().items()]
    return jsonschema.Draft7Validator(schema, registry=referencing.Registry().with_resources(resources))


def apply_schemas(thing, core):
    """Without python3-jsonschema only the rules above are applied."""
    for name in [core, *thing.get("stac_extensions", [])] if jsonschema is not None else []:
        with CHECKING:
            error = jsonschema.exceptions.best_match(validator(name).iter_errors(thing))
        need(error is None, f"{thing['id']} breaks {name}", error and f"{error.json_path}: {error.message}")


def check_catalog(path):
    catalog = json.loads(path.read_text())
    if catalog.get("type") != "Catalog" or "links" not in catalog:
        return  # another program made it
    apply_schemas(catalog, "https://schemas.stacspec.org/v1.1.0/catalog-spec/json-schema/catalog.json")


def walk(path):
    """The items that the links of a catalogue or collection reach, as paths; each link is to be alive, each item
    linked once, and each child and item is to link back to its parent and to the root."""
    root, found, waiting = path.resolve(), [], [path.resolve()]
    while waiting:
        here = waiting.pop()
        thing = json.loads(here.read_text())
        for link in thing["links"]:
            if link["rel"] not in ("child", "item"):
                continue
            there = target(here, link["href"])
            need(there.is_file(), f"{here.name} links a file that is not there", link["href"])
            backward = {back["rel"]: target(there, back["href"]) for back in json.loads(there.read_text())["links"]
                        if back["rel"] in ("root", "parent", "collection")}
            need(backward.get("root") == root, f"{there.name} has another root", str(backward.get("root")))
            if link["rel"] == "child":
                need(backward.get("parent") == here, f"{there.name} has another parent", str(backward.get("parent")))
                waiting.append(there)
            else:
                found.append(there)
    need(len(found) == len(set(found)), "an item is linked twice")
    return sorted(found)


def target(path, href):
    return (path.parent / urllib.parse.unquote(href)).resolve()


def check_all(root):
    """Every item, collection and catalogue below root; how many items and collections."""
    root = pathlib.Path(root)
    items = [p for p in root.rglob("*.stac.json") if ".tmp/" not in str(p)]
    collections = list(root.rglob("collection.json"))
    for path in items:
        check_item(path)
    for path in collections:
        check_collection(path)
    for path in [*root.rglob("catalog.json"), *root.rglob("collection-*.json")]:
        check_catalog(path)
    return len(items) + len(collections)
