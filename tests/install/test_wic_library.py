#!/usr/bin/env python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""wic as a library of its own: installs it from the build into a scratch prefix and uses it from there as a stranger would,
by pkg-config and by CMake's find_package; looks at what was installed; builds a copy of wic/ without the rest."""
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
EXAMPLES = ROOT / "wic/examples"
HOST = ("wic/wic.h", "wic/pattern/exchange.h", "wic/pattern/pattern.h", "wic/pattern/plugin.h", "wic/pattern/replay.h", "wic/pattern/schedule.h")
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", "-"]


class Library(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = pathlib.Path(tempfile.mkdtemp(prefix="pb-wic-"))
        cls.prefix = cls.scratch / "prefix"
        cls.run_in(cls.scratch, "cmake", "--install", BUILD, "--component", "wic", "--prefix", cls.prefix)
        cls.library = next(cls.prefix.rglob("libwic.so")).parent
        cls.environment = dict(os.environ, LD_LIBRARY_PATH=str(cls.library), PKG_CONFIG_PATH=str(cls.library / "pkgconfig"))
        cls.device = (cls.library / "libwic_device.a").exists()

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.scratch)

    @classmethod
    def run_in(cls, folder, *command, **options):
        done = subprocess.run([str(c) for c in command], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
        if done.returncode != 0:
            raise AssertionError("%s: %d\n%s" % (" ".join(map(str, command)), done.returncode, done.stdout))
        return done.stdout

    def flags(self, *options):
        return self.run_in(self.scratch, "pkg-config", *options, env=self.environment).split()

    def runs_or_has_no_gpu(self, program):
        self.assertIn(subprocess.run([program], stdout=subprocess.DEVNULL).returncode, (0, 77), program)

    def headers(self):
        return sorted(p.relative_to(self.prefix / "include").as_posix() for p in (self.prefix / "include").rglob("*.*"))

    def test_a_program_built_with_pkg_config_runs(self):
        for example in ("threads", "processes"):
            program = self.scratch / example
            self.run_in(self.scratch, "cc", "-std=c11", "-D_GNU_SOURCE", EXAMPLES / (example + ".c"), "-o", program, "-pthread",
                        *self.flags("--cflags", "--libs", "wic"))
            self.run_in(self.scratch, program, env=self.environment)
            self.assertIn("libwic.so.0", self.run_in(self.scratch, "readelf", "-d", program))

    def test_a_project_with_find_package_builds_and_runs(self):
        build = self.scratch / "stranger"
        told = self.run_in(self.scratch, "cmake", "-S", ROOT / "tests/install/stranger", "-B", build, "-G", "Ninja",
                           "-DCMAKE_PREFIX_PATH=%s" % self.prefix, "-DEXAMPLES=%s" % EXAMPLES, "-DCMAKE_C_FLAGS=-D_GNU_SOURCE",
                           "-DDEVICE=%d" % self.device)
        self.assertIn("device side: %s" % ("TRUE" if self.device else ""), told)
        self.run_in(self.scratch, "cmake", "--build", build)
        for program in ("threads-wic", "threads-wic_shared", "processes-wic", "processes-wic_shared"):
            self.run_in(build, build / program)
        if self.device:
            self.runs_or_has_no_gpu(build / "camera")

    def test_each_header_compiles_alone(self):
        alone = [h for h in self.headers() if h.endswith((".h", ".hpp"))]
        self.assertLessEqual(set(HOST), set(alone))
        self.assertEqual("wic/stream.hpp" in alone, self.device)
        for header in alone:
            for language in (["c", "-std=c11"], ["c++", "-std=c++17"])[header.endswith(".hpp"):]:
                self.run_in(self.scratch, "cc", "-x", *language, "-I", self.prefix / "include", *STRICT, input='#include "%s"\n' % header)

    def test_headers_include_only_what_is_installed(self):
        headers = self.headers()
        for header in headers:
            for included in re.findall(r'^#include "([^"]+)"', (self.prefix / "include" / header).read_text(), re.M):
                self.assertIn(included, headers, header)

    def test_shared_library_exports_public_headers_only(self):
        exported = {line.split()[-1] for line in
                    self.run_in(self.scratch, "nm", "-D", "--defined-only", self.library / "libwic.so").splitlines()}
        public = "".join('#include "%s"\n' % h for h in self.headers() if h in HOST)
        text = self.run_in(self.scratch, "cc", "-E", "-P", "-I", self.prefix / "include", "-x", "c", "-", input=public)
        declared = set(re.findall(r"\b(wic_\w+)\([^(){}]*(?:\([^()]*\)[^(){}]*)*\);", text))
        declared = {n for n in declared if not re.search(r"static inline[^;{]*\b%s\(" % n, text)}
        declared -= {"wic_replay_move"}  # a type
        declared.add("wic_pattern_unidirectional")  # an object
        self.assertGreater(len(declared), 20)
        self.assertEqual(exported, declared)

    def test_nothing_points_to_where_it_was_built(self):
        for path in self.prefix.rglob("*"):
            if path.suffix in (".pc", ".cmake"):
                for place in (ROOT, BUILD, self.prefix):
                    self.assertNotIn(str(place) + "/", path.read_text(), path)

    def test_wic_builds_without_the_rest(self):
        shutil.copytree(ROOT / "wic", self.scratch / "alone/wic", ignore=shutil.ignore_patterns("bench"))
        self.run_in(self.scratch / "alone", "cmake", "-S", "wic", "-B", "build", "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug")
        self.run_in(self.scratch / "alone", "cmake", "--build", "build", "--target", "wic")

    def test_the_device_side(self):
        if not self.device:
            self.skipTest("this build has no CUDA")
        for example in ("camera", "device", "guest", "planar", "reduction"):
            program = self.scratch / example
            self.run_in(self.scratch, "nvcc", "-std=c++17", "-arch=sm_90", EXAMPLES / (example + ".cu"), "-o", program,
                        *self.flags("--cflags", "--libs", "wic-device"))
            self.runs_or_has_no_gpu(program)


if __name__ == "__main__":
    pbtest.main()
