#!/usr/bin/env python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""The options of a build are written in CMakePresets.json alone: this cmake takes the file, each preset can be configured,
built and tested, and the scripts name presets that exist and none of their options. Prints every gap, exits 1."""
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
NAMES = {"release", "debug", "asan", "tsan", "cuda", "fuzz", "arm64"}
SCRIPTS = ("tests/run", "tests/fuzz/run")
MINE = re.compile(r"-D(PB_SANITIZE|PB_TESTS|PB_WERROR|PB_FUZZ|CMAKE_C_COMPILER|CMAKE_C_FLAGS\w*|CMAKE_BUILD_TYPE)=")


def listed(kind):
    done = subprocess.run(["cmake", f"--list-presets={kind}"], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit(f"cmake --list-presets={kind}: {done.stdout}")
    return set(re.findall(r'^  "(\w+)"', done.stdout, re.M))


def gaps():
    for kind in ("configure", "build", "test"):
        found = listed(kind)
        if found != NAMES:
            yield f"{kind} presets are {sorted(found)}, not {sorted(NAMES)}"
    presets = json.loads((ROOT / "CMakePresets.json").read_text())
    cmake = (ROOT / "CMakeLists.txt").read_text()
    options = set(re.findall(r"\b(PB_\w+)\b", cmake))
    for preset in presets["configurePresets"]:
        for name in preset.get("cacheVariables", {}):
            if name.startswith("PB_") and name not in options:
                yield f"preset {preset['name']} sets {name}, which CMakeLists.txt does not know"
    for name in ("PB_TESTS", "PB_WERROR"):
        if presets["configurePresets"][0]["cacheVariables"].get(name) != "ON" or not re.search(rf"option\({name} .* OFF\)", cmake):
            yield f"{name} is ON in the preset base, which all others inherit, and OFF without a preset"
    for preset in presets["configurePresets"][1:]:
        if "inherits" not in preset:
            yield f"preset {preset['name']} inherits nothing of base"
    for script in SCRIPTS:
        text = re.sub(r"(?m)^\s*#.*", "", (ROOT / script).read_text())
        used = set(re.findall(r"--preset (\w+)|^configure \w+ (\w+)", text, re.M))
        used = {a or b for a, b in used}
        if not used or not used <= NAMES:
            yield f"{script} uses the presets {sorted(used)}"
        for match in MINE.finditer(text):
            yield f"{script} has an option of its own: {match.group(0)}"


found = list(gaps())
print("\n".join(found) if found else "presets: all there, and used")
sys.exit(1 if found else 0)
