#!/usr/bin/env python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""What the documents list is what the program has: error codes with their hints in service/README.md, commands in
README.md, sample files with their origins in tests/data/MANIFEST.md, the words of the code in CONTRIBUTING.md. Prints
every gap, exits 1."""
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")


def gaps():
    service, readme = (ROOT / "service/README.md").read_text(), (ROOT / "README.md").read_text()
    rows = re.findall(r'PB_ERR\(\w+, "([^"]+)", \w+, \w+,\s*((?:"[^"]*"\s*)+)\)', (ROOT / "config/base/err_codes.def").read_text())
    if not rows:
        yield "config/base/err_codes.def: no rows found"
    for code, hint in rows:
        words = "".join(re.findall(r'"([^"]*)"', hint))
        line = f"| `{code}` | {words} |"
        if line not in service:
            yield f"service/README.md lacks: {line}"
    for code in re.findall(r"^\| `([a-z_.]+)` \|", service.split("## Error codes")[1], re.M):
        if code not in dict(rows):
            yield f"service/README.md lists {code}, which is no error code"
    for command in re.findall(r'^    \{"([a-z-]+)", "', (ROOT / "service/cli/cli.c").read_text(), re.M):
        if f"pushbroom {command}" not in readme:
            yield f"README.md does not show 'pushbroom {command}'"
    yield from sample_gaps(ROOT / "tests/data")
    yield from glossary_gaps((ROOT / "CONTRIBUTING.md").read_text())


def glossary_gaps(text):
    rows = re.findall(r"^\| `?([\w ]+?)`? \| \[[^]]+\]\(([^)]+)\) \|", text.split("## Glossary")[1], re.M)
    if len(rows) < 20:
        yield "CONTRIBUTING.md: no glossary found"
    for word, name in rows:
        path = ROOT / name
        if not path.exists() or not re.search(r"(?i)\b_?%s" % word.replace(" ", r"[\s_*]+"), path.read_text().replace("_", " _")):
            yield f"CONTRIBUTING.md: the word '{word}' is not in {name}"
    for name in re.findall(r"\]\(([^)#]+)", text):
        if not (ROOT / name).exists():
            yield f"CONTRIBUTING.md: {name} does not exist"


def sample_gaps(data):
    manifest = (data / "MANIFEST.md").read_text()
    for kind in ("real", "derived", "metadata", "hostile"):
        section = manifest.split(f"## {kind}/")[1].split("\n## ")[0]
        listed = set(re.findall(r"^\| (\S+\.\S+) \|", section, re.M)) if kind != "derived" else set(re.findall(r"[\w/]+\.tif", section))
        there = {p.relative_to(data / kind).as_posix() for p in (data / kind).rglob("*") if p.is_file()}
        for name in sorted(listed ^ there):
            yield f"tests/data/{kind}/{name} is {'listed and not there' if name in listed else 'not in MANIFEST.md'}"


found = list(gaps())
print("\n".join(found) if found else "docs: error codes, commands, sample files and words are all there")
sys.exit(1 if found else 0)
