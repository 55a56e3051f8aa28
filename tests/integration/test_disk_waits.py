#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: threads
"""A disk that takes no sync holds up what has to be on it, and nothing else: a change is answered after its commit, the
service's loop continues meanwhile."""
import json
import os
import signal
import socket
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "proof")]
import control  # noqa: E402
from daemon_kit import BIN, DaemonCase, wait_for  # noqa: E402
from patience import PATIENCE_S  # noqa: E402
from pbtest import SANITIZED, main  # noqa: E402


@unittest.skipIf(SANITIZED, "the shim of failing calls does not go together with a sanitizer")
class DiskWaits(DaemonCase):
    def hung(self):
        """A service with a running job, a file that it cannot claim, and the rule that ends its syncs' wait."""
        d = self.daemon(start=False)
        faults = control.Faults(d.root / "faults", BIN / "pbfault.so")
        d.start(env=faults.environment())
        d.drop("runs.tif", "until never")
        d.wait_job("runs.tif", "running")
        rule = faults.rule("fsync", control.HANG, role="daemon")

        def end():
            faults.set_mode(rule, control.OFF)
        self.addCleanup(end)  # before the daemon is stopped
        d.drop("comes.tif")
        wait_for(lambda: faults.counts(rule)[1])
        return d, end

    def send(self, client, method, **params):
        client.send((json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}) + "\n").encode())

    def test_the_loop_goes_on_while_the_disk_hangs(self):
        d, end = self.hung()
        job, = d.jobs()
        self.assertEqual(d.call("job.get", id=job["id"])["status"], "running")
        d.process.send_signal(signal.SIGHUP)
        wait_for(lambda: "is in use" in d.log_text())
        self.assertEqual(d.call("job.cancel", id=job["id"])["status"], "running")
        self.assertEqual([(j["name"], j["status"]) for j in d.jobs()], [("runs.tif", "running")],
                         "neither the other one nor the end of this one is on the disk yet")
        end()
        d.wait_job("runs.tif", "dismissed")
        d.wait_job("comes.tif", "successful")

    def test_an_inbox_that_hangs_holds_up_no_shutdown(self):
        d = self.daemon(start=False)
        faults = control.Faults(d.root / "faults", BIN / "pbfault.so")
        d.start(env=faults.environment())
        rule = faults.rule("open", control.HANG, role="daemon", path="/inbox")
        self.addCleanup(faults.set_mode, rule, control.OFF)
        d.drop("comes.tif")
        wait_for(lambda: faults.counts(rule)[1])
        self.assertEqual(d.stop()[0], 0)
        self.assertIn("is still blocked", d.log_text())

    def test_what_is_not_on_the_disk_is_not_acknowledged(self):
        d, end = self.hung()
        path = d.root / "given.tif"
        path.write_text("ok")
        client = d.client()
        self.send(client, "job.submit", input=str(path))
        client.socket.settimeout(1)
        with self.assertRaises(socket.timeout):
            client.socket.recv(1, socket.MSG_PEEK)
        self.assertEqual([j["name"] for j in d.jobs()], ["runs.tif"])
        client.socket.settimeout(PATIENCE_S)
        end()
        job = client.line()["result"]
        self.assertEqual((job["name"], job["status"]), ("given.tif", "accepted"))
        client.close()


if __name__ == "__main__":
    main(workers=3)
