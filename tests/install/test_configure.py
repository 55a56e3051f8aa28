#!/usr/bin/env python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Configures pushbroom like a user who has read nothing: without packages, without a preset."""
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


def packages(name):
    """The words of a list of deploy/packages.sh."""
    done = subprocess.run(["bash", "-c", ". deploy/packages.sh; echo $%s" % name], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return set(done.stdout.split())


class Configure(unittest.TestCase):
    def setUp(self):
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="pb-configure-"))
        self.addCleanup(shutil.rmtree, self.scratch)

    def configure(self, *options, **environment):
        return subprocess.run(["cmake", "-S", ROOT, "-B", self.scratch / "build", "-G", "Ninja", "-DPB_CUDA=OFF", *options],
                              env=dict(os.environ, **environment), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def install_line(self, done):
        self.assertNotEqual(done.returncode, 0, done.stdout)
        self.assertEqual(done.stdout.count("CMake Error"), 1, done.stdout)
        return set(re.search(r"sudo apt install (.*)", done.stdout).group(1).split())

    def test_missing_libraries_are_one_message(self):
        libraries = {p for p in packages("PB_PACKAGES_BUILD") if p.endswith("-dev")} - {"libc6-dev", "librust-blake3-dev"}
        nowhere = {"PKG_CONFIG_LIBDIR": str(self.scratch), "PKG_CONFIG_PATH": ""}
        self.assertEqual(self.install_line(self.configure(**nowhere)) - {"librust-blake3-dev"}, libraries)
        tests = self.install_line(self.configure("-DPB_TESTS=ON", **nowhere))
        self.assertEqual(tests - {"librust-blake3-dev"}, libraries | {"check", "libpng-dev"})

    def test_missing_tools_are_in_the_message(self):
        programs = self.scratch / "bin"
        programs.mkdir()
        (programs / "cmake").symlink_to(shutil.which("cmake"))
        bare = {"PATH": str(programs), "CC": "", "CXX": "", "PKG_CONFIG": ""}
        lacking = self.install_line(self.configure("-DPB_TESTS=ON", **bare))
        self.assertEqual({"gcc", "libc6-dev", "g++", "ninja-build", "pkg-config"} - lacking, set())
        self.assertEqual(lacking - packages("PB_PACKAGES_BUILD") - packages("PB_PACKAGES_TEST_BUILD"), set())
        again = self.configure()  # in the same folder, after they were installed
        self.assertEqual(again.returncode, 0, again.stdout)

    def test_default_build_has_no_tests_and_no_werror(self):
        done = self.configure()
        self.assertEqual(done.returncode, 0, done.stdout)
        commands = (self.scratch / "build/compile_commands.json").read_text()
        self.assertIn("service/main_pushbroom.c", commands)
        self.assertNotIn("-Werror", commands)
        self.assertNotIn(str(ROOT / "tests"), commands)
        self.assertIn("-Wconversion", commands)


if __name__ == "__main__":
    pbtest.main()
