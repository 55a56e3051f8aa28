# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Shared parts of the tests of workers that a file has taken over (tests/tools/taken_over.c)."""
import re
import sys

DENIED = ("Permission denied", "Operation not permitted")


class Attacks:
    """For a unittest.TestCase whose class has the running service in d."""

    def attack(self, name, argument=""):
        """Lets a worker attack once; returns the reason of its failure. It must not have succeeded."""
        file = "%s-%s.tif" % (name, re.sub(r"\W", "_", argument)[-60:])
        self.d.drop(file, "ATTACK %s %s\n" % (name, argument))
        how = self.d.wait_job(file, "failed")["error"]["message"]
        print("%-12s %-50s %s" % (name, argument[-50:], how), file=sys.stderr)
        self.assertNotIn("REACHED", how)
        return how

    def stopped(self, name, argument=""):
        """Asserts that any error stops the attack."""
        self.assertIn("STOPPED by", self.attack(name, argument))

    def denied(self, name, argument=""):
        """Stopped by the kernel's rights, not by a signal."""
        how = self.attack(name, argument)
        self.assertIn("STOPPED by", how)
        self.assertTrue(any(word in how for word in DENIED), how)
