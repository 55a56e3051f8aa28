#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""The checksums of tests/golden/products.txt: products of every sample and every pipeline of features.py, from small scenes. They do not
depend on threads, tiles and budget, nor on the device: tests/gpu/run golden makes them on a GPU.

    tests/golden/products.py [NAME...]           compares all runs, or those; exit 1 if a product differs
    tests/golden/products.py --write [NAME...]   writes the checksums of today
    tests/golden/products.py --by-hand NAME DIR  makes the scene and the configuration of one run in DIR and prints its command

PB_BIN is the folder of the programs. Compressed blocks are those of Debian 12's libraries: libdeflate, zstd, libpng, libjpeg, libwebp."""
import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

import features
import scenes

GOLDEN = pathlib.Path(__file__).resolve().parent / "products.txt"
BIN = pathlib.Path(os.environ.get("PB_BIN", scenes.ROOT / "build/bin"))
SIDE = 500
SIDES = {"vhr-pansharpen": 800, "with_sources": 300}  # sides of other scenes than SIDE
LEFT_OUT = {"vhr-ortho": "its scene is a header; real-rpc warps by RPCs", "sentinel2-mgrs": "its tile has 30 megapixels; tiles-mgrs makes smaller ones"}
COMPUTE = "device: cpu, memory: 256MiB, threads: 2, tile: 128"
THREADS_AT_ONCE = 3
FILE_TIME = 1_800_000_000  # time of the inputs in seconds
# Members of a JSON product that hold times, versions, or checksums and sizes of files with such.
VOLATILE = {"created", "updated", "processing:software", "file:checksum", "file:size", "checksum", "size"}
VERSION = re.compile(r"pushbroom \d+\.\d+\.\d+")


def names():
    return [name for name in (*scenes.SAMPLES, *features.FEATURES) if name not in LEFT_OUT]


def make_input(name, folder, make):
    scene = scenes.SAMPLES.get(name) or features.FEATURES[name].scene
    folder.mkdir(parents=True)
    made = scene(folder, make, SIDES.get(name) or SIDES.get(scene.__name__, SIDE))
    for path in [*folder.rglob("*")]:
        os.utime(path, (FILE_TIME, FILE_TIME))
    return made


def config_text(name, folder, compute):
    text = features.text(name) if name in features.FEATURES else (scenes.ROOT / f"samples/{name}.yaml").read_text()
    return text.replace("/data/", f"{folder}/") + f"\ncompute: {{{compute}}}\n"


def stable(value):
    """A JSON value without its volatile members and words."""
    if isinstance(value, dict):
        return {key: stable(inner) for key, inner in value.items() if key not in VOLATILE and not str(inner).startswith("ni:")}
    if isinstance(value, list):
        return [stable(inner) for inner in value]
    if isinstance(value, str):
        return re.sub(r"\(blake3 [0-9a-f]{64}\)", "()", re.sub(r"(pushbroom) \d+\.\d+\.\d+ on \w+(:\d+)?", r"\1", value))
    return value


def checksum(path):
    data = path.read_bytes()
    if path.suffix in (".json", ".geojson"):
        data = json.dumps(stable(json.loads(data)), sort_keys=True).encode()
    elif path.suffix == ".tif":
        data = VERSION.sub("pushbroom", data.decode("latin-1")).encode("latin-1")
    return hashlib.sha256(data).hexdigest()


def checksums(folder):
    """{file: checksum} of all products in a folder."""
    return {str(path.relative_to(folder)): checksum(path) for path in sorted(folder.rglob("*")) if path.is_file() and not path.name.startswith(".")}


def lines_of(name, folder):
    return [f"== {name}", *(f"{total}  {file}" for file, total in checksums(folder).items())]


def kept():
    """{name: its lines} of products.txt."""
    blocks = GOLDEN.read_text().split("\n\n") if GOLDEN.exists() else []
    return {block.splitlines()[0][3:]: block.splitlines() for block in blocks}


def command(program, name, folder, make, compute=COMPUTE):
    """Makes input and configuration of a run; its command."""
    scene = make_input(name, folder, make)
    (folder / "golden.yaml").write_text(config_text(name, folder, compute))
    return [str(program), "run", "--json", "-c", str(folder / "golden.yaml"), "-p", name, "-o", str(folder / "out"), str(scene)]


def run(name, work):
    """The lines of one run, or those of its failure."""
    words = command(BIN / "pushbroom", name, work / name, scenes.Pixels(str(BIN / "make_scene")))
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        return [f"== {name}", f"exit {done.returncode}: {done.stdout[-500:]} {done.stderr[-500:]}"]
    return lines_of(name, work / name / "out")


def compare(before, found):
    """Prints what differs; returns how many runs do."""
    differing = 0
    for name in before | found:
        old, new = before.get(name, []), found.get(name, [])
        if old == new:
            continue
        differing += 1
        print("\n".join([f"== {name}", *(f"- {line}" for line in old if line not in new), *(f"+ {line}" for line in new if line not in old)]))
        print(f"by hand: tests/golden/products.py --by-hand {name} DIR\n")
    return differing


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--by-hand", nargs=2, metavar=("NAME", "DIR"))
    parser.add_argument("names", nargs="*", metavar="NAME")
    o = parser.parse_args()
    if o.by_hand:
        name, folder = o.by_hand
        print(shlex.join(command(BIN / "pushbroom", name, pathlib.Path(folder).resolve() / name, scenes.Pixels(str(BIN / "make_scene")))))
        return
    with tempfile.TemporaryDirectory(prefix="pb-golden-") as work, concurrent.futures.ThreadPoolExecutor(THREADS_AT_ONCE) as pool:
        wanted = o.names or names()
        found = dict(zip(wanted, pool.map(lambda name: run(name, pathlib.Path(work)), wanted)))
    n = sum(len(lines) - 1 for lines in found.values())
    if o.write:
        found = kept() | found if o.names else found
        GOLDEN.write_text("\n\n".join("\n".join(lines) for lines in found.values()) + "\n")
        print(f"{n} products of {len(found)} runs written")
        return
    differing = compare({name: lines for name, lines in kept().items() if not o.names or name in o.names}, found)
    print(f"{n} products of {len(found)} runs, {differing} of them differ" + (": if they are meant to, tests/golden/products.py --write, and state the change in the commit" if differing else ""))
    sys.exit(1 if differing else 0)


if __name__ == "__main__":
    main()
