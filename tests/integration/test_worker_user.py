#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""A user of their own for the processes that compute (service.worker_user), where the service runs as root: decoders that a
file has taken over (tests/tools/taken_over.c) are strangers to the service's files also on a kernel without Landlock, good
scenes become products that belong to the service, and no process of the service's user can look into it."""
import datetime
import json
import os
import pathlib
import pwd
import stat
import subprocess
import sys
import unittest
import zipfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from daemon_kit import BIN, Daemon  # noqa: E402
from pbtest import SANITIZED, main  # noqa: E402
from taken_over_kit import Attacks  # noqa: E402

from osgeo import gdal  # noqa: E402

gdal.UseExceptions()
USER = "nobody"


def deliver(d, name, owner=None):
    """A small good scene, whole as it appears in the inbox."""
    path = d.root / ("new-" + name)
    out = gdal.GetDriverByName("GTiff").Create(str(path), 64, 64, 1, gdal.GDT_Byte)
    out.SetGeoTransform([500000, 10, 0, 5000000, 0, -10])
    out.GetRasterBand(1).Fill(7)
    out = None
    if owner is not None:
        os.chown(path, owner, -1)
    path.rename(d.root / "inbox" / name)


def deliver_archive(d, name):
    """The same in an archive that has to be unpacked."""
    deliver(d, "other.part")
    part = d.root / "inbox/other.part"
    with zipfile.ZipFile(d.root / "new.zip", "w", zipfile.ZIP_DEFLATED) as out:
        out.write(part, "S2X_u/a.tif")
    part.unlink()
    (d.root / "new.zip").rename(d.root / "inbox" / name)


@unittest.skipUnless(os.geteuid() == 0, "another user can be had by root alone")
class OwnUser(Attacks, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.d = d = Daemon(fake=False, worker=BIN / "taken_over_old", settle="100ms", stall="300s")
        text = d.config.read_text().replace("  stall:", "  max_attempts: 1\n  worker_user: %s\n  stall:" % USER)
        text = text.replace("- statistics: {}", "- cog: {bands: [R], type: uint8, nodata: 0}\n      - statistics: {}\n"
                                                "      - quicklook: {bands: [R]}\n      - stac: {datetime: file-time}")
        text += "  packed:\n    input: {scene: S2X_*, files: {R: a.tif}}\n    products: [stac: {datetime: file-time}]\n"
        d.config.write_text(text)
        (d.root / "outside").write_text("somebody else's")
        d.start()
        # The scratch directory is closed to others, which would stop every attack by itself.
        d.root.chmod(0o755)

    @classmethod
    def tearDownClass(cls):
        cls.d.remove()

    def test_what_an_archive_holds_is_read_by_it(self):
        deliver_archive(self.d, "S2X_u.zip")
        self.d.wait_job("S2X_u.zip", "successful")
        done = self.d.root / "work/done/S2X_u.zip"
        self.d.wait_for(done.exists)
        item = json.loads((self.d.root / "products/S2X_u/packed/S2X_u.stac.json").read_text())
        when = datetime.datetime.fromtimestamp(int(done.stat().st_mtime), datetime.timezone.utc)
        self.assertEqual(item["properties"]["datetime"], when.strftime("%Y-%m-%dT%H:%M:%SZ"))

    def test_it_is_told(self):
        client = self.d.client()
        self.addCleanup(client.close)
        said = client.call("service.info")["confinement"]
        self.assertIn("user " + USER, said)
        self.assertIn("user " + USER, self.d.log.read_text())

    def test_it_is_another_user_without_capabilities(self):
        self.denied("be_user", "0")

    def test_no_file_of_the_service_without_landlock(self):
        root = self.d.root
        for path in ("outside", "config.yaml"):
            self.denied("append", str(root / path))
            self.denied("truncate", str(root / path))
            self.denied("remove", str(root / path))
            self.denied("rename", str(root / path))
        for path in ("products", "inbox", "work", "state", "quarantine"):
            self.denied("create", str(root / path / "new"))
        store = next(f for f in os.listdir(root / "state") if f.endswith(".db"))
        self.denied("append", str(root / "state" / store))
        self.denied("read", "/etc/shadow")
        self.denied("mem", str(self.d.process.pid))
        self.assertEqual((root / "outside").read_text(), "somebody else's")

    def test_the_directory_it_writes_in_is_not_its_own(self):
        self.denied("open_up", "0777")

    def test_products_belong_to_the_service(self):
        deliver(self.d, "good.tif")
        job = self.d.wait_job("good.tif", "successful")
        directory = pathlib.Path(job["directory"])
        self.assertEqual(len(job["products"]), 4)
        for path in [directory, *directory.iterdir()]:
            st = path.stat()
            self.assertEqual((st.st_uid, st.st_gid), (os.geteuid(), os.getegid()), path)
            wanted = 0o755 if path.is_dir() else 0o644
            self.assertEqual(stat.S_IMODE(st.st_mode), wanted & ~self.umask(), path)
        self.assertEqual(os.listdir(directory.parent.parent), ["good"], "nothing else is left there")

    def umask(self):
        mask = os.umask(0)
        os.umask(mask)
        return mask


@unittest.skipUnless(os.geteuid() == 0, "another user can be had by root alone")
class NoOwnUser(unittest.TestCase):
    """worker_user: "" where another user could be had: the service's own computes."""

    def test_scenes_are_computed_as_the_service(self):
        d = Daemon(fake=False, settle="100ms")
        self.addCleanup(d.remove)
        d.change("  stall:", "  worker_user: \"\"\n  stall:")
        d.start()
        client = d.client()
        self.addCleanup(client.close)
        self.assertIn(", the service's user, ", client.call("service.info")["confinement"])
        deliver(d, "good.tif")
        d.wait_job("good.tif", "successful")


@unittest.skipUnless(os.geteuid() == 0, "another user can be had by root alone")
class UnitsUser(unittest.TestCase):
    """The service runs as the user `nobody` with the capabilities of a unit's drop-in (service/doc/security.md): it gives the
    processes that compute a user of their own."""

    def test_a_unit_gives_a_user_by_capabilities(self):
        d = Daemon(fake=False, settle="100ms")
        self.addCleanup(d.remove)
        user = pwd.getpwnam(USER)
        d.change("  stall:", "  worker_user: daemon\n  stall:")
        d.root.chmod(0o755)
        for path in [d.root, *d.root.rglob("*")]:
            os.chown(path, user.pw_uid, user.pw_gid)
        rights = "+setuid,+setgid,+chown,+dac_override,+fowner,+kill"
        d.prefix = ["setpriv", "--reuid", USER, "--regid", str(user.pw_gid), "--clear-groups", "--no-new-privs",
                    "--inh-caps", rights, "--ambient-caps", rights]
        d.start()
        client = d.client()
        self.addCleanup(client.close)
        self.assertIn(", user daemon, ", client.call("service.info")["confinement"])
        deliver(d, "good.tif", user.pw_uid)
        job = d.wait_job("good.tif", "successful")
        self.assertEqual(pathlib.Path(job["directory"]).stat().st_uid, user.pw_uid)


@unittest.skipUnless(os.geteuid() == 0, "another user can be had by root alone")
class ServicesUser(unittest.TestCase):
    """The service runs as the user `nobody`: processes of its user cannot look into it."""

    def setUp(self):
        self.d = d = Daemon(fake=False, settle="100ms")
        user = pwd.getpwnam(USER)
        for path in [d.root, *d.root.rglob("*")]:
            os.chown(path, user.pw_uid, user.pw_gid)
        d.prefix = ["setpriv", "--reuid", USER, "--regid", str(user.pw_gid), "--clear-groups"]
        d.start()

    def tearDown(self):
        self.d.remove()

    def test_it_is_told_that_no_other_user_can_be_had(self):
        client = self.d.client()
        self.addCleanup(client.close)
        said = client.call("service.info")["confinement"]
        self.assertIn("the service's user (which may not change to another)", said)

    @unittest.skipIf(SANITIZED, "sanitizers attach to their process")
    def test_nobody_of_its_user_reads_its_memory(self):
        deliver(self.d, "good.tif", pwd.getpwnam(USER).pw_uid)
        self.d.wait_job("good.tif", "successful")
        service = self.d.process.pid
        workers = subprocess.run(["pgrep", "-P", str(service)], capture_output=True, text=True).stdout.split()
        self.assertTrue(workers)
        for pid in [str(service), *workers]:
            look = subprocess.run([*self.d.prefix, "cat", "/proc/%s/environ" % pid], capture_output=True, text=True)
            self.assertIn("Permission denied", look.stderr, pid)


if __name__ == "__main__":
    main(workers=3)
