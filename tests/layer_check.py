#!/usr/bin/env python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Rules of includes: service > pipeline > config > kernels > wic, never to the left, and within a layer its rooms
(sub-folders) in the order below, never to the left; in some rooms every file has its header and no two files need each
other; each foreign library is included by one file; .cu files live in wic/ and kernels/ only. Prints every breach, exits 1."""
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
ORDER = ["wic", "kernels", "config", "pipeline", "service"]
# The rooms of a layer, top first; "" is the layer's folder itself.
ROOMS = {
    "wic": ["examples", "apps/pair", "apps/measure", "apps/strategies", "apps", "bench", "bench/patterns", "bench/measure", "bench/replay", "bench/neighbours", "bench/soak", "bench/strategies", "bench/base", "stages/strategies", "stages", "peer/bench", "peer", "depend", "device", "patterns", "pattern", ""],
    "kernels": ["ops", "ops/image", "ops/scenes", "ops/geometry", "ops/terrain", "ops/radar", "ops/filter", "ops/pixel", "index", "chain", "expr", "graph", "vm", "reduce", "areas", "resample", "focal", "codec", ""],
    "config": ["notify", "", "output", "yaml", "base"],
    "pipeline": ["explain", "run", "run/whole", "run/passes", "run/served", "run/stream", "run/base", "publish", "tune", "plan", "product/cog", "product/quicklook", "product/zones", "product/alert", "product/line_times", "product/statistics", "product/stac", "product", "metadata", "sar", "images", "cog", "paint", "gdal", "tiles", "numbers", "scene", "archive", "raster", "lines", "codec", "device", "io", "profile", "grid"],
    "service": ["", "cli", "web", "fetch", "notify", "ccsds", "daemon", "status", "runner", "stream", "inbox", "processes", "worker", "device", "confine", "jobs", "help", "base"],
}
# Headers in a layer's folder that belong to one of its rooms: users find them at the top of the library.
FRONTS = {"wic/guest.hpp": "depend", **{"wic/%s.hpp" % name: "device" for name in ("stream", "rows", "reduction")}}
# Rooms whose files have a header each and include each other in one direction only; files of one module may share its
# <module>_table.h.
TREES = ["service/runner", "service/processes", "service/inbox", "pipeline/plan"]
# header pattern -> the files that may include it
FOREIGN = {
    r"^(gdal|cpl_|ogr_).*\.h$": {"pipeline/gdal/raster_gdal_inside.h"},
    r"^yaml\.h$": {"config/yaml/yaml_tree.c"},
    r"^sqlite3\.h$": {"service/jobs/sql_sqlite.h", "service/jobs/store_sqlite.h"},
    r"^json-c/": {"config/base/json_reader.c"},
    r"^systemd/": {"service/daemon/notify.c"},
    r"^libdeflate\.h$": {"pipeline/codec/codec_deflate.c", "pipeline/codec/decode_deflate.c", "pipeline/codec/inflate_pair.c", "pipeline/product/quicklook/png.c"},
    r"^zstd(_errors)?\.h$": {"pipeline/codec/codec_zstd.c", "pipeline/codec/decode_zstd.c"},
    r"^jpeglib\.h$": {"pipeline/codec/codec_jpeg.c"},
    r"^webp/": {"pipeline/codec/codec_webp.c"},
    r"^seccomp\.h$": {"service/confine/confine_seccomp.c"},
    r"^linux/landlock\.h$": {"service/confine/confine_landlock.c"},
    r"^zlib\.h$": {"pipeline/codec/decode_inflate.c"},
    r"^pcre2\.h$": {"config/group_pattern.c"},
    r"^blake3\.h$": {"pipeline/io/checksum.c", "pipeline/io/tree_sum.c"},
    r"^openssl/": {"pipeline/io/sha256.c", "service/notify/signature.c"},
    r"^curl/": {"service/notify/http.c"},
    r"^microhttpd\.h$": {"service/web/reply.h", "service/web/server.c"},
    r"^gnutls/": {"service/fetch/tls.c"},
    r"^mosquitto\.h$": {"service/notify/by_mqtt.c"},
    r"^libxml/": {"pipeline/metadata/meta_xml.c"},
    r"^archive(_entry)?\.h$": {"pipeline/archive/archive_inside.h"},
}


def room(name):
    layer, *rest = name.split("/")[:-1]
    return layer, FRONTS.get(name, "/".join(rest))


def points_up(name, header):
    """True if the header is in a room above that of the file; None: one of the two is in no known room."""
    (layer, own), (other_layer, other) = room(name), room(header)
    if layer != other_layer:
        return False
    order = ROOMS[layer]
    return None if own not in order or other not in order else order.index(other) < order.index(own)


def module(name):
    """The file without its ending; a header for the inside of a module belongs to that."""
    return re.sub(r"(_table|_parts|_inside)?\.\w+$", "", name)


def circles(folder):
    """Modules of a room that include one another, over whatever way."""
    uses = {}
    for path in (p for p in (ROOT / folder).glob("*") if p.suffix in (".c", ".h")):
        own = module(path.relative_to(ROOT).as_posix())
        for header in re.findall(r'^\s*#\s*include\s+"([^"]+)"', path.read_text(errors="replace"), re.M):
            uses.setdefault(own, set()).update({module(header)} - {own})
    for first in sorted(uses):
        reached, to_do = set(), [first]
        while to_do:
            new = uses.get(to_do.pop(), set()) - reached
            reached |= new
            to_do += new
        if first in reached:
            yield f"{first}: in a circle of includes inside {folder}/"


def without_header(folder):
    """Sources of a room that no header of their own describes."""
    tables = [p.name.removesuffix("_table.h") for p in (ROOT / folder).glob("*_table.h")]
    for path in sorted((ROOT / folder).glob("*.c")):
        if not path.with_suffix(".h").exists() and not any(path.name.startswith(t + "_") for t in tables):
            yield f"{path.relative_to(ROOT).as_posix()}: has no header of its own"


def breaches():
    for folder in TREES:
        yield from circles(folder)
        yield from without_header(folder)
    for path in sorted(p for d in ORDER for p in (ROOT / d).rglob("*") if p.suffix in (".c", ".h", ".hpp", ".cu", ".cuh", ".def")):
        name = path.relative_to(ROOT).as_posix()
        folder = name.split("/")[0]
        if path.suffix in (".cu", ".cuh") and folder not in ("wic", "kernels"):
            yield f"{name}: CUDA sources belong into wic/ or kernels/"
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            match = re.match(r'\s*#\s*include\s+([<"])([^>"]+)[>"]', line)
            if not match:
                continue
            quote, header = match.groups()
            where = f"{name}:{number}"
            if quote == '"':
                if "/" not in header:
                    yield f"{where}: include '{header}' from the root, as \"{folder}/{header}\""
                    continue
                other = header.split("/")[0]
                if other not in ORDER:
                    yield f"{where}: '{header}' is in no layer"
                elif ORDER.index(other) > ORDER.index(folder):
                    yield f"{where}: {folder}/ must not know {other}/"
                elif (up := points_up(name, header)) is not False:
                    yield f"{where}: '{header}' is " + ("in no room of ROOMS" if up is None else "in a room above this one")
                continue
            if re.match(r"^uv(/|\.h)", header) and folder != "service":
                yield f"{where}: libuv belongs to service/"
            for pattern, allowed in FOREIGN.items():
                if re.match(pattern, header) and name not in allowed:
                    yield f"{where}: <{header}> is included by {', '.join(sorted(allowed))} alone"


found = list(breaches())
print("\n".join(found) if found else "layers: every include points down")
sys.exit(1 if found else 0)
