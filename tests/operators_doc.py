#!/usr/bin/env python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""The pages of operators, from their descriptors: kernels/ops/README.md has the list, kernels/ops/<group>/README.md the operators.
    operators_doc.py PUSHBROOM ROOT           compares; prints the first difference, exits 1
    operators_doc.py PUSHBROOM ROOT --write   writes the files"""
import json
import pathlib
import re
import subprocess
import sys
import textwrap

FIELDS = ("formula", "units", "nodata", "source")
HEAD = """# Operators

The steps of a pipeline. `tests/operators_doc.py PUSHBROOM ROOT --write` makes these pages from the
descriptors in the folders; a test compares. `pushbroom operators NAME` prints the same.
"""


def cell(text):
    return text.replace("|", "\\|").replace("*", "\\*").replace("_", "\\_").replace("<", "\\<")


def notes(text):
    """Paragraphs as they are, indented lines as one block of YAML."""
    prose = " ".join(line for line in text.splitlines() if line and not line.startswith(" "))
    example = textwrap.dedent("\n".join(line for line in text.splitlines() if line.startswith(" ")))
    return (textwrap.fill(cell(prose), 100, break_long_words=False, break_on_hyphens=False) + "\n\n" if prose else "") + f"```yaml\n{example}\n```\n"


def kind(parameter):
    words = parameter["choices"].replace("|", ", ") if parameter["choices"] else parameter["type"]
    return cell(words + (f", {parameter['range']}" if parameter["range"] else ""))


def operator(o):
    rows = "".join(f"| {field} | {cell(o[field])} |\n" for field in FIELDS)
    parameters = "".join(f"| `{p['name']}` | {kind(p)} | {'required' if p['required'] else cell(p['default'] or '')} | {cell(p['doc'])} |\n"
                         for p in o["parameters"])
    return (f"\n## {o['name']}\n\n{cell(o['summary'][0].upper() + o['summary'][1:])}.\n\n| | |\n|---|---|\n{rows}\n{notes(o['notes'])}\n"
            f"| parameter | values | default | |\n|---|---|---|---|\n{parameters}")


def pages(operators, folders):
    """{path below kernels/ops: text}."""
    groups = {}
    for o in operators:
        groups.setdefault(o["group"], []).append(o)
    found, index = {}, HEAD
    for group, members in groups.items():
        folder, title = folders[group], cell(group[0].upper() + group[1:])
        index += f"\n## {title}\n\n| step | |\n|---|---|\n"
        index += "".join(f"| [{cell(o['name'])}]({folder}/README.md#{o['name']}) | {cell(o['summary'])} |\n" for o in members)
        found[f"{folder}/README.md"] = f"# {title}\n\n[All operators](../README.md)\n" + "".join(map(operator, members))
    return {"README.md": index, **found}


def compare(path, text):
    there = path.read_text() if path.exists() else ""
    for number, (have, want) in enumerate(zip((there + "\n").splitlines(), (text + "\n").splitlines()), 1):
        if have != want:
            sys.exit(f"{path}:{number}: differs from the program's descriptors\nis:    {have}\nwants: {want}\nwrite it with --write")
    if there != text:
        sys.exit(f"{path} has another length than the program's descriptors; write it with --write")


def main(program, root, write=None):
    operators = [json.loads(line) for line in
                 subprocess.run([program, "operators", "--json"], check=True, capture_output=True).stdout.splitlines()]
    folders = {title: name for name, title in re.findall(r'^PB_OP_GROUP\((\w+), "([^"]+)"\)', (pathlib.Path(root) / "kernels/ops_groups.def").read_text(), re.M)}
    for name, text in pages(operators, folders).items():
        path = pathlib.Path(root) / "kernels/ops" / name
        if write == "--write":
            path.write_text(text)
        compare(path, text)


main(*sys.argv[1:])
