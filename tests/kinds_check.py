#!/usr/bin/env python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""A kind of product is its folder and one line of products.def: no other source of the layers names it. Prints every place that
does, exits 1."""
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
FOLDER = "pipeline/product"


def places(kinds):
    for path in sorted(p for d in ("kernels", "config", "pipeline", "service") for p in (ROOT / d).rglob("*") if p.suffix in (".c", ".h", ".def")):
        name = path.relative_to(ROOT).as_posix()
        # Without comments, and without the names of members that a STAC item has.
        text = re.sub(r"/\*.*?\*/", lambda m: "\n" * m.group().count("\n"), path.read_text(), flags=re.S)
        text = re.sub(r'pb_json_object\(json, "\w+"\)', "", text)
        for kind in kinds:
            if re.match(rf"{FOLDER}/{kind}/\w+\.[ch]$", name) or name == f"{FOLDER}/products.def":
                continue
            if name.startswith("config/notify/"):  # an entry of notify may have the same name
                continue
            for number, line in enumerate(text.splitlines(), 1):
                if re.search(rf'\bpb_(kind|product)_{kind}\b|\bstruct pb_{kind}_config\b|"{kind}"|\bPB_PRODUCT_{kind.upper()}\b', line):
                    yield f"{name}:{number}: names the kind '{kind}': {line.strip()}"


def main():
    kinds = re.findall(r"^PB_PRODUCT\((\w+)\)", (ROOT / FOLDER / "products.def").read_text(), re.M)
    wanted = [f"{FOLDER}/{kind}/{kind}{end}" for kind in kinds for end in (".c", "_keys.c")]
    missing = [name for name in wanted if not (ROOT / name).exists()]
    found = [f"{name} is not there" for name in missing] + list(places(kinds))
    if len(kinds) < 2:
        found.append(f"{FOLDER}/products.def lists no kinds")
    print("\n".join(found) if found else f"kinds: {', '.join(kinds)} are named by their own files and products.def alone")
    sys.exit(1 if found else 0)


main()
