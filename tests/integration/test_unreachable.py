#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""The message of a client that cannot connect: group, login, left-over socket. As users of this test's own, which needs root."""
import grp
import os
import pwd
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from daemon_kit import BIN, DaemonCase  # noqa: E402
from patience import run_to_end  # noqa: E402
from pbtest import main  # noqa: E402


def status(d, **who):
    return run_to_end([BIN / "pushbroom", "status", "--socket", d.root / "s.sock"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **who)


class Unreachable(DaemonCase):
    def test_leftover_socket_is_named_as_such(self):
        d = self.daemon()
        d.stop(signal.SIGKILL)
        told = status(d)
        self.assertEqual(told.returncode, 3)
        self.assertIn("is left over from a service that has ended", told.stderr)
        self.assertIn("start pushbroomd", told.stderr)

    def test_missing_socket_is_named_as_such(self):
        d = self.daemon(start=False)
        told = status(d)
        self.assertEqual(told.returncode, 3)
        self.assertIn("s.sock: No such file or directory", told.stderr)
        (d.root / "s.sock").write_text("")
        self.assertIn("s.sock: it is not a socket", status(d).stderr)

    @unittest.skipUnless(os.geteuid() == 0, "only root can become other users")
    def test_user_outside_the_group_reads_which_to_join(self):
        d = self.daemon()
        group = grp.getgrnam("users")
        user = pwd.getpwnam("nobody")
        os.chmod(d.root, 0o755)
        os.chown(d.root / "s.sock", 0, group.gr_gid)
        told = status(d, user=user.pw_uid, group=user.pw_gid, extra_groups=[])
        self.assertEqual(told.returncode, 3)
        self.assertIn("you are not in the group users, which may use %s" % (d.root / "s.sock"), told.stderr)
        self.assertIn("sudo adduser nobody users, then log in again", told.stderr)
        self.assertNotIn("start pushbroomd", told.stderr)
        self.assertEqual(status(d, user=user.pw_uid, group=user.pw_gid, extra_groups=[group.gr_gid]).returncode, 0)

    @unittest.skipUnless(os.geteuid() == 0, "only root can become other users")
    def test_socket_of_root_names_no_group(self):
        d = self.daemon()
        user = pwd.getpwnam("nobody")
        os.chmod(d.root, 0o755)
        told = status(d, user=user.pw_uid, group=user.pw_gid, extra_groups=[])
        self.assertEqual(told.returncode, 3)
        self.assertIn("only root may use", told.stderr)
        self.assertNotIn("adduser", told.stderr)


if __name__ == "__main__":
    main(workers=3)
