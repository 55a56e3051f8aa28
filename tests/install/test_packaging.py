#!/usr/bin/env python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""The Debian packaging matches what the build installs, without building a package: every installed file is in one package,
every line of the lists has a file, the symbols are those of the library, the build dependencies those of deploy/packages.sh.
tests/install/package tries the packages themselves."""
import fnmatch
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))
import pbtest  # noqa: E402

ROOT = pbtest.SOURCE
BUILD = pbtest.BIN.parent
DEBIAN = ROOT / "deploy/debian"
REMOVED = {"usr/share/doc/pushbroom/LICENSE"}  # deploy/debian/rules removes it


def output(*command, **options):
    return subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, text=True, check=True, **options).stdout


class Packaging(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = pathlib.Path(tempfile.mkdtemp(prefix="pb-packaging-"))
        output("cmake", "--install", BUILD, "--prefix", "/usr", env=dict(os.environ, DESTDIR=str(cls.scratch)))
        # A package build installs libraries into the multiarch directory; this build may have lib.
        names = (p.relative_to(cls.scratch).as_posix() for p in cls.scratch.rglob("*") if not p.is_dir())
        cls.files = {re.sub(r"^usr/lib/(lib|wic/|cmake/|pkgconfig/)", r"usr/lib/any/\1", name) for name in names}

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.scratch)

    def lists(self):
        for path in sorted(DEBIAN.glob("*.install")):
            for line in path.read_text().splitlines():
                yield path.name, line.split()[0]

    def test_every_file_is_in_one_package(self):
        taken = {}
        for name, pattern in self.lists():
            hits = {f for f in self.files if fnmatch.fnmatchcase(f, pattern) or fnmatch.fnmatchcase(f, pattern + "/*")}
            self.assertTrue(hits, "%s: %s matches nothing" % (name, pattern))
            for file in hits:
                self.assertEqual(taken.setdefault(file, name), name, file)
        self.assertEqual(self.files - set(taken), set())
        self.assertEqual(REMOVED - self.files, set())

    def test_symbols_are_those_of_the_library(self):
        library = next(self.scratch.rglob("libwic.so"))
        exported = {line.split()[-1] for line in output("nm", "-D", "--defined-only", library).splitlines()}
        listed = set(re.findall(r"^ (\w+)@Base", (DEBIAN / "libwic0.symbols").read_text(), re.M))
        self.assertEqual(exported, listed)

    def test_build_dependencies_are_those_of_the_scripts(self):
        field = re.search(r"^Build-Depends:\n((?: .*\n)+)", (DEBIAN / "control").read_text(), re.M).group(1)
        control = set(re.findall(r"[a-z0-9.+-]{3,}", re.sub(r"\(.*?\)", "", field)))
        scripts = set(output("bash", "-c", ". deploy/packages.sh; echo $PB_PACKAGES_BUILD", cwd=ROOT).split())
        self.assertEqual(scripts - {"gcc", "libc6-dev"} - control, set())  # build-essential
        libraries = {name for name in control if name.endswith("-dev")}
        self.assertEqual(libraries - {"libblake3-dev", "systemd-dev"} - scripts, set())


if __name__ == "__main__":
    pbtest.main()
