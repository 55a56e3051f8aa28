#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: threads
"""An input that is changed while its job runs: one file, a file of a folder, a file of a set of loose files. Size and mtime
are those of before, so that the ctime alone differs. A file that gets the name of an input before this is moved."""
import os
import pathlib
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "proof")]
import control  # noqa: E402
from daemon_kit import BIN, DaemonCase, wait_for  # noqa: E402
from pbtest import SANITIZED, main  # noqa: E402
from test_scenes import small_folder  # noqa: E402

PIPELINES = """
pipelines:
  folder:
    input:
      scene: "F_*"
      files: {R: B04.tif, N: B08.tif}
    steps:
      - math: {bands: {X: "N - R"}}
    products:
      - cog: {bands: [X], type: float32}
  loose:
    input:
      group: '(?<scene>L_.)_(B04|B08)\\.tif'
      files: {R: "{scene}_B04.tif", N: "{scene}_B08.tif"}
    steps:
      - math: {bands: {X: "N - R"}}
    products:
      - cog: {bands: [X], type: float32}
  plain:
    input:
      match: ["*.tif"]
    products:
      - cog: {}
"""


class Changes(DaemonCase):
    def hanging(self, call, path):
        """Starts a service in which this call with this path hangs; returns it, a folder with two bands, the faults, and the rule."""
        if SANITIZED:
            self.skipTest("the shim of failing calls does not go together with a sanitizer")
        d = self.daemon(fake=False, start=False)
        d.set_pipelines(PIPELINES)
        made = small_folder(d.root / "made", "F_a")
        faults = control.Faults(d.root / "faults", BIN / "pbfault.so")
        rule = faults.rule(call, control.HANG, path=path)
        d.start(env=faults.environment())
        return d, made, faults, rule

    def changed(self, deliver, name, changes):
        """Runs it until its product is synced, changes the file of that name, and lets it continue."""
        d, made, faults, rule = self.hanging("fsync", ".tif")
        deliver(d, made)
        wait_for(lambda: faults.counts(rule)[1])
        path = [p for p in (d.root / "work").rglob(changes) if p.is_file()][0]
        before = os.stat(path)
        with open(path, "r+b") as file:
            file.seek(before.st_size - 1)
            last = file.read(1)
            file.seek(before.st_size - 1)
            file.write(bytes([last[0] ^ 1]))
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        after = os.stat(path)
        self.assertEqual((after.st_size, after.st_mtime_ns), (before.st_size, before.st_mtime_ns))
        self.assertNotEqual(after.st_ctime_ns, before.st_ctime_ns)
        faults.set_mode(rule, control.OFF)
        job = d.wait_job(name, "failed")
        self.assertEqual(job["error"]["code"], "input.changed", job["error"])
        self.assertEqual([f for f in d.files("products") if f[0] != "."], [])
        wait_for(lambda: any(pathlib.Path(f).name == changes for f in d.files("quarantine")))

    def test_one_file(self):
        self.changed(lambda d, made: os.rename(made / "B04.tif", d.root / "inbox/x.tif"), "x.tif", "x.tif")

    def test_a_file_of_a_folder(self):
        self.changed(lambda d, made: os.rename(made, d.root / "inbox/F_a"), "F_a", "B08.tif")

    def test_a_file_of_a_set(self):
        def deliver(d, made):
            for band in ("B04", "B08"):
                os.rename(made / (band + ".tif"), d.root / ("inbox/L_a_%s.tif" % band))
        self.changed(deliver, "L_a", "L_a_B04.tif")

    def test_another_file_of_the_name(self):
        """The checked file is renamed and another is begun under its name just before the service moves it."""
        d, made, faults, rule = self.hanging("rename", "x.tif")
        inbox = d.root / "inbox"
        os.rename(made / "B04.tif", inbox / "x.tif")
        wait_for(lambda: faults.counts(rule)[1])
        os.rename(inbox / "x.tif", d.root / "x.old")
        content = (made / "B08.tif").read_bytes()
        with open(inbox / "x.tif", "wb") as file:
            file.write(content[:1000])
            file.flush()
            before = os.stat(inbox / "x.tif").st_ctime_ns
            faults.set_mode(rule, control.OFF)
            wait_for(lambda: (inbox / "x.tif").exists() and os.fstat(file.fileno()).st_ctime_ns != before)
            self.assertEqual(d.jobs(), [])
            file.write(content[1000:])
        d.wait_job("x.tif", "successful")


if __name__ == "__main__":
    main(workers=3)
