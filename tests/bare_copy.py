#!/usr/bin/env python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Copies the files of the working tree that git tracks or would add, as a clone has them, and refuses tests that name the larger
collection of samples, which a clone does not have.

Usage: bare_copy.py SOURCE COPY     COPY is replaced when it is an earlier copy"""
import pathlib
import shutil
import subprocess
import sys

COLLECTION = b".." + b"/shared"
MAY_NAME_IT = {"tests/CMakeLists.txt", "tests/README.md", "tests/data/MANIFEST.md", "tests/integration/pbtest.py"}
SKIPPED = 77


def main(source, copy):
    listed = subprocess.run(["git", "-C", source, "ls-files", "-z", "--cached", "--others", "--exclude-standard"], stdout=subprocess.PIPE)
    if listed.returncode != 0:
        print(f"skipped: {source} is no git repository")
        return SKIPPED
    mark = copy / ".copy-of-the-repository"
    if copy.exists() and not mark.exists():
        print(f"{copy} exists and is no copy of this script's: remove it")
        return 1
    shutil.rmtree(copy, ignore_errors=True)
    copy.mkdir(parents=True)
    mark.touch()
    names = [name for name in listed.stdout.decode().split("\0") if name and (source / name).is_file()]
    for name in names:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source / name, copy / name)
    wrong = [name for name in names if name.startswith("tests/") and name not in MAY_NAME_IT and COLLECTION in (copy / name).read_bytes()]
    for name in wrong:
        print(f"{name}: names {COLLECTION.decode()}; read samples below PB_SHARED_DATA")
    print(f"{len(names)} files in {copy}")
    return 1 if wrong or not names else 0


sys.exit(main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])))
