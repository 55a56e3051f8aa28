#!/usr/bin/env python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""The tree as a whole: the top level has the names below and no others; one version in CMakeLists.txt, CHANGELOG.md and the
Debian changelog; every file has a licence, in its first lines or in a REUSE.toml, and LICENSES/ has the text; sample files
have the licence of their origin in tests/data/MANIFEST.md. Prints every gap, exits 1."""
import pathlib
import re
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
TOP = {"wic", "kernels", "config", "pipeline", "service", "deploy", "tests", "samples", "docs", "LICENSES", ".ci", "CMakeLists.txt", "CMakePresets.json",
       "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "LICENSE", "REUSE.toml", ".clang-format", ".clang-tidy", ".dockerignore", ".editorconfig", ".gitattributes", ".gitignore"}
HEADER_BYTES = 4096
TAG = re.compile(r"SPDX-License[-]Identifier: *([A-Za-z0-9.+() -]+?) *(?:\*/|-->|\"|$)", re.M)
# Short names of licences in tests/data/MANIFEST.md.
SHORT = {"BSD-3": "BSD-3-Clause", "CC0": "CC0-1.0"}


def tracked():
    done = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    if done.returncode == 0:
        return [name for name in done.stdout.split("\0") if name and (ROOT / name).is_file()]
    files = (p.relative_to(ROOT).as_posix() for p in ROOT.rglob("*") if p.is_file())  # an unpacked archive
    return [name for name in files if not re.match(r"build|\.git/", name)]


def pattern(glob):
    """The path of an annotation: * does not match /, ** does."""
    words = re.split(r"(\*\*|\*)", glob)
    return re.compile("".join({"**": ".*", "*": "[^/]*"}.get(w, re.escape(w)) for w in words) + "$")


class Licences:
    """Licences by the lists; a list deeper in the tree and a later entry win."""

    def __init__(self, names):
        self.lists = []
        for name in sorted((n for n in names if n.split("/")[-1] == "REUSE.toml"), key=lambda n: n.count("/"), reverse=True):
            entries = []
            for entry in tomllib.loads((ROOT / name).read_text())["annotations"]:
                paths = [entry["path"]] if isinstance(entry["path"], str) else entry["path"]
                entries.append(([pattern(p) for p in paths], entry["SPDX-License-Identifier"]))
            self.lists.append((name[:-len("REUSE.toml")], entries))

    def listed(self, name):
        for folder, entries in self.lists:
            if name.startswith(folder):
                for patterns, licence in reversed(entries):
                    if any(p.match(name[len(folder):]) for p in patterns):
                        return licence
        return None

    def of(self, name):
        with open(ROOT / name, "rb") as file:
            head = file.read(HEADER_BYTES).decode("utf-8", "replace")
        tag = TAG.search(head)
        return tag.group(1) if tag and "SPDX-FileCopyrightText:" in head else self.listed(name)


def licence_gaps(names, licences):
    texts = {p.name.removesuffix(".txt") for p in (ROOT / "LICENSES").iterdir()}
    used = set()
    for name in names:
        if name == "LICENSE" or name.startswith("LICENSES/") or (ROOT / name).stat().st_size == 0:
            continue
        licence = licences.of(name)
        if not licence:
            yield f"{name} has no licence: write SPDX-FileCopyrightText and SPDX-License-Identifier into it, or name it in a REUSE.toml"
            continue
        used |= set(re.findall(r"[\w.-]+", licence)) - {"AND", "OR", "WITH"}
    for licence in sorted(used ^ texts):
        yield f"LICENSES/{licence}.txt {'is missing' if licence in used else 'is the licence of no file'}"


def sample_gaps(licences):
    manifest = (ROOT / "tests/data/MANIFEST.md").read_text()
    table = manifest.split("## Origins and licences")[1].split("\n## ")[0]
    of = {repo: SHORT.get(word, word) for repo, word in re.findall(r"^\| ([\w.-]+/[\w.-]+) \| \w+ \| ([\w.-]+)", table, re.M)}
    if len(of) < 10:
        yield "tests/data/MANIFEST.md: no table of origins found"
    for folder in ("real", "hostile"):
        section = manifest.split(f"## {folder}/")[1].split("\n## ")[0]
        for name, origin in re.findall(r"^\| (\S+\.\S+) \| ([\w./-]+)", section, re.M):
            licence = licences.listed(f"tests/data/{folder}/{name}")
            if "/" in origin and licence != of.get(origin):
                yield f"tests/data/{folder}/{name} is {licence} in REUSE.toml, and of {origin}: {of.get(origin)}"


def version_gaps():
    version = re.search(r"^project\(pushbroom VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(), re.M).group(1)
    for name, form in (("CHANGELOG.md", r"^## \[?(\d[\w.]*)"), ("deploy/debian/changelog", r"^pushbroom \(([^)]*)\)")):
        found = re.search(form, (ROOT / name).read_text(), re.M)
        if not found or found.group(1) != version:
            yield f"{name} begins with version {found and found.group(1)}, CMakeLists.txt has {version}"


def gaps():
    names = tracked()
    for name in sorted({n.split("/")[0] for n in names} - TOP):
        yield f"{name}: the top level has the folders and files of TOP in tests/tree_check.py alone"
    licences = Licences(names)
    yield from licence_gaps(names, licences)
    yield from sample_gaps(licences)
    yield from version_gaps()


found = list(gaps())
print("\n".join(found) if found else "tree: names, version and licences are in order")
sys.exit(1 if found else 0)
