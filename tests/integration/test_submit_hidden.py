#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""`pushbroom submit` of a file that the client can read and the service cannot: the message names the cause and the remedy.
The service has other mounts than this test, as its unit gives it."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from daemon_kit import BIN, DaemonCase, can_mount  # noqa: E402
from patience import run_to_end  # noqa: E402
from pbtest import main  # noqa: E402

SERVICE = 65534
MOUNTS = 'mount -t tmpfs none "$0" && chmod %o "$0" && exec setpriv --reuid %d --regid %d --clear-groups "$@"'


@unittest.skipUnless(can_mount(), "needs the right to mount")
class Hidden(DaemonCase):
    def service(self, hidden, mode):
        d = self.daemon(start=False)
        for path in (d.root, d.root / "inbox"):
            os.chmod(path, 0o755)
            os.chown(path, SERVICE, SERVICE)
        if hidden:
            d.prefix = ["unshare", "-m", "sh", "-c", MOUNTS % (mode, SERVICE, SERVICE), hidden]
        else:
            d.prefix = ["setpriv", "--reuid", str(SERVICE), "--regid", str(SERVICE), "--clear-groups"]
        return d.start()

    def scene(self, below, mode=0o644):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="pb-scene-", dir=below))
        self.addCleanup(shutil.rmtree, folder)
        os.chmod(folder, 0o755)
        (folder / "a.tif").write_text("ok")
        os.chmod(folder / "a.tif", mode)
        return folder / "a.tif"

    def refused(self, d, path):
        done = run_to_end([BIN / "pushbroom", "submit", "--socket", d.root / "s.sock", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("[input.denied]", done.stderr)
        self.assertIn("pushbroom put", done.stderr)
        return done.stderr

    def test_home_that_the_unit_hides_is_named(self):
        d = self.service("/home", 0)
        self.assertIn("the service cannot see /home (ProtectHome= of its unit)", self.refused(d, self.scene("/home")))

    def test_tmp_of_its_own_is_named(self):
        d = self.service("/var/tmp", 0o1777)
        self.assertIn("the service has a /var/tmp of its own (PrivateTmp= of its unit)", self.refused(d, self.scene("/var/tmp")))

    def test_other_hidden_place_is_named_as_hidden(self):
        d = self.service("/mnt", 0o755)
        self.assertIn("its unit or a container hides this place", self.refused(d, self.scene("/mnt")))

    def test_file_without_permission_names_the_user(self):
        d = self.service(None, 0)
        self.assertIn("the service (user id %d) has no right to read it" % SERVICE, self.refused(d, self.scene("/var/tmp", 0o600)))

    def test_readable_file_is_taken(self):
        d = self.service("/mnt", 0o755)
        done = run_to_end([BIN / "pushbroom", "submit", "--socket", d.root / "s.sock", self.scene("/var/tmp")], stdout=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)


if __name__ == "__main__":
    main(workers=3)
