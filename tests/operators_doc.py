#!/usr/bin/env python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""kernels/ops/README.md is what the operators' descriptors say.
    operators_doc.py PUSHBROOM ROOT           compares; prints the first difference, exits 1
    operators_doc.py PUSHBROOM ROOT --write   writes the file anew"""
import json
import pathlib
import subprocess
import sys
import textwrap

FIELDS = ("formula", "units", "nodata", "source")
HEAD = """# Operators

What a step of a pipeline can be, from the descriptors in this folder by `tests/operators_doc.py PUSHBROOM ROOT --write`; a test compares.
`pushbroom operators NAME` prints the same.
"""


def cell(text):
    return text.replace("|", "\\|").replace("*", "\\*").replace("_", "\\_").replace("<", "\\<")


def notes(text):
    """Paragraphs as they are, indented lines as one block of YAML."""
    prose = " ".join(line for line in text.splitlines() if line and not line.startswith(" "))
    example = textwrap.dedent("\n".join(line for line in text.splitlines() if line.startswith(" ")))
    return (textwrap.fill(cell(prose), 140, break_long_words=False) + "\n\n" if prose else "") + f"```yaml\n{example}\n```\n"


def kind(parameter):
    words = parameter["choices"].replace("|", ", ") if parameter["choices"] else parameter["type"]
    return cell(words + (f", {parameter['range']}" if parameter["range"] else ""))


def operator(o):
    rows = "".join(f"| {field} | {cell(o[field])} |\n" for field in FIELDS)
    parameters = "".join(f"| `{p['name']}` | {kind(p)} | {'required' if p['required'] else cell(p['default'] or '')} | {cell(p['doc'])} |\n"
                         for p in o["parameters"])
    return (f"\n## {o['name']}\n\n{cell(o['summary'][0].upper() + o['summary'][1:])}.\n\n| | |\n|---|---|\n{rows}\n{notes(o['notes'])}\n"
            f"| parameter | values | default | |\n|---|---|---|---|\n{parameters}")


def contents(operators):
    """The groups with their operators, as a list of links."""
    groups = {}
    for o in operators:
        groups.setdefault(o["group"], []).append(f"[{cell(o['name'])}](#{o['name']})")
    return "\n" + "".join(f"- {cell(group)}: {', '.join(names)}\n" for group, names in groups.items())


def main(program, root, write=None):
    operators = json.loads(subprocess.run([program, "operators", "--json"], check=True, capture_output=True).stdout)
    text = HEAD + contents(operators) + "".join(map(operator, operators))
    path = pathlib.Path(root) / "kernels/ops/README.md"
    if write == "--write":
        path.write_text(text)
    there = path.read_text() if path.exists() else ""
    for number, (have, want) in enumerate(zip((there + "\n").splitlines(), (text + "\n").splitlines()), 1):
        if have != want:
            sys.exit(f"{path}:{number}: differs from what the program says\nis:    {have}\nwants: {want}\nwrite it anew with --write")
    if there != text:
        sys.exit(f"{path} has not the length of what the program says; write it anew with --write")


main(*sys.argv[1:])
