#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: sanitized slow
"""Limits for nodes that fetch: silent, slow and greedy ones, crashes, and connections without rights."""
import contextlib
import json
import os
import signal
import socket
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from daemon_kit import wait_for  # noqa: E402
from fetch_kit import PIPELINES, PORT, FetchCase  # noqa: E402
from patience import PATIENCE_S, Patience, children  # noqa: E402
from pbtest import main  # noqa: E402

class Guests(FetchCase):
    @contextlib.contextmanager
    def guest(self, node):
        """A connection to the service, as that of a pushbroom-fetch."""
        with contextlib.closing(socket.socket(socket.AF_UNIX)) as guest:
            guest.settimeout(PATIENCE_S)
            guest.connect(f"{node.root}/s.sock.fetch")
            yield guest, guest.makefile("rb")

    def drip(self, guest):
        """Sends a byte of an endless line each half second, until the other side closes the connection."""
        def is_closed():
            try:
                guest.sendall(b"x")
                return False
            except ConnectionError:
                return True
        wait_for(is_closed, step=0.5)

    def count(self, node, metric):
        lines = [line.split() for line in node.call("service.metrics")["text"].splitlines()]
        return int(dict(line for line in lines if line[0] != "#")["pushbroom_" + metric])

    def reload(self, node, **settings):
        number = node.log_text().count("is in use")
        node.write_config(**settings)
        node.set_pipelines(PIPELINES)
        node.process.send_signal(signal.SIGHUP)
        wait_for(lambda: node.log_text().count("is in use") > number)

    def stop_computing(self, node):
        """Stops the process that computes the node's job, when it has begun."""
        worker, = wait_for(node.workers)
        patience = Patience()
        while not (found := children(worker)):
            self.assertFalse(patience.is_over(), node.log_text())
            time.sleep(0.002) # a small scene does not take long
        for pid in found:
            os.kill(pid, signal.SIGSTOP)
        return found

    def test_silent_connections_are_closed(self):
        a, = self.fetch_nodes("a")
        with self.guest(a) as (silent, lines), self.guest(a) as (slow, _):
            self.drip(slow)
            self.assertEqual(lines.readline(), b"")
        wait_for(lambda: self.count(a, "fetch_refused_total") == 2)
        self.assertIn("without a first line", a.log_text())
        with contextlib.closing(socket.create_connection((a.address, PORT))) as other: # without TLS
            other.settimeout(PATIENCE_S)
            self.assertEqual(other.recv(1), b"")
        wait_for(lambda: "a connection was refused" in a.fetch_log())

    def test_service_without_descriptors_waits_for_them(self):
        a, = self.fetch_nodes("a")
        begin, text = time.monotonic(), "cannot accept connections of other nodes"
        with contextlib.ExitStack() as guests:
            with a.without_descriptors():
                waiting = [guests.enter_context(self.guest(a)) for _ in range(3)]
                wait_for(lambda: a.log_text().count(text) > 2)
                n, seconds = a.log_text().count(text), time.monotonic() - begin
                self.assertLessEqual(n, seconds / 0.5 + 1) # a try in half a second
            guest, lines = waiting[-1]
            guest.sendall(b"\n")
            self.assertEqual(lines.readline(), b"")

    def test_run_without_progress_is_ended_at_home(self):
        """The other node has the job, and sends a byte from time to time."""
        a, b = self.fetch_nodes("a", "b", env={"PUSHBROOM_TEST_SHUN_MS": "1000"})
        scene = self.scene(700)
        with self.busy(a) as busy:
            a.line.stop_after = 300000
            a.drop_copy(scene, "s1.tif")
            job = b.wait_job("s1.tif", "running")
            wait_for(lambda: a.line.bytes >= a.line.stop_after)
        a.wait_job(busy, "successful")
        self.drain(a) # the other node takes its jobs
        self.reload(a, stall="5s")
        with self.guest(a) as (guest, _):
            guest.sendall(json.dumps({"job": job["id"], "epoch": 1, "node": "b"}).encode() + b"\n")
            self.drip(guest)
        wait_for(lambda: "the run of node b is ended here: no progress" in a.log_text())
        wait_for(lambda: self.count(a, "fetch_late_total") == 1)
        self.reload(a, stall="300s")
        a.line.stop_after = None
        a.line.goes_on.set()
        self.check_fetched(a, b, scene, "s1.tif")

    def test_long_computation_is_no_silence(self):
        """Its node sends signs of life."""
        a, b = self.fetch_nodes("a", "b", env={"PUSHBROOM_TEST_SHUN_MS": "1000"})
        scene = self.scene(3000)
        with self.busy(a) as busy:
            a.line.stop_after = 300000
            a.drop_copy(scene, "s1.tif")
            b.wait_job("s1.tif", "running")
            wait_for(lambda: a.line.bytes >= a.line.stop_after)
        a.wait_job(busy, "successful")
        self.drain(a) # the other node takes its jobs
        self.reload(a, stall="20s")
        a.line.cut() # the next connection has the new limit
        a.line.stop_after = None
        a.line.goes_on.set()
        stopped = self.stop_computing(b)
        time.sleep(25)
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
        self.assertEqual(self.check_fetched(a, b, scene, "s1.tif")["attempts"], 1)
        self.assertNotIn("is ended here", a.log_text())

    def test_node_has_a_limit_of_runs(self):
        a, b = self.fetch_nodes("a", "b", env={"PUSHBROOM_TEST_NODE_GUESTS": "1", "PUSHBROOM_TEST_SHUN_MS": "1000"})
        scene = self.scene(700)
        self.reload(b, parallel=2)
        with self.busy(a) as busy:
            a.line.stop_after = scene.stat().st_size - 20000 # buffers hold the rest: TCP gives up a peer that takes no bytes for 30 s
            a.drop_copy(scene, "s1.tif")
            b.wait_job("s1.tif", "running")
            wait_for(lambda: a.line.bytes >= a.line.stop_after)
            a.line.stop_after = None # for later connections
            a.drop_copy(self.scene(300), "s2.tif")
            wait_for(lambda: "node b does not get its input: it has 1 runs here already" in a.log_text())
            wait_for(lambda: self.count(a, "fetch_refused_total") > 0)
            a.line.goes_on.set()
            for name in ("s1.tif", "s2.tif"):
                self.assertEqual(b.wait_job(name, "successful")["node"], "b")
        a.wait_job(busy, "successful")
        self.check_once([busy, "s1.tif", "s2.tif"])

    def test_guests_need_the_epoch_of_their_node(self):
        a, b = self.fetch_nodes("a", "b")
        scene = self.scene(700)

        def ask(text):
            with self.guest(a) as (guest, lines), contextlib.suppress(ConnectionError): # closed, with bytes that were not read
                guest.sendall(text.encode() + b"\n")
                line = lines.readline()
                return json.loads(line) if line else None

        with self.busy(a):
            a.line.stop_after = 300000
            a.drop_copy(scene, "s1.tif")
            job = b.wait_job("s1.tif", "running")
            wait_for(lambda: a.line.bytes >= a.line.stop_after) # now b does not see the end of its connection
            for node, epoch in (("b", 2), ("c", 1), ("a", 1)):
                answer = ask(json.dumps({"job": job["id"], "epoch": epoch, "node": node}))
                self.assertEqual((answer["event"], answer["error"]["code"]), ("failed", "job.state"), answer)
            for text in ("", "{}", "[]", "x" * 5000, json.dumps({"job": "../../x", "epoch": 1, "node": "b"}), json.dumps({"job": job["id"], "epoch": -1, "node": "b"})):
                self.assertIsNone(ask(text))
            # A node that has the job reports a fault of a device: home uses no device in this run, and does not run it again.
            with self.guest(a) as (guest, lines):
                guest.sendall(json.dumps({"job": job["id"], "epoch": 1, "node": "b"}).encode() + b'\n{"files": false}\n')
                wait_for(lambda: json.loads(lines.readline())["event"] == "open")
                error = {"code": "device.lost", "message": "gone", "file": "", "line": 0}
                guest.sendall(json.dumps({"event": "failed", "job": job["id"], "error": error}).encode() + b"\n")
                wait_for(lambda: not lines.readline())
            wait_for(lambda: "ended here without products: gone" in a.log_text())
            self.assertNotIn("has it now", a.log_text())
            a.line.stop_after = None
            a.line.goes_on.set()
            self.check_fetched(a, b, scene, "s1.tif")

    def test_job_that_crashed_runs_at_home(self):
        """There its attempts are counted; elsewhere it would crash again and again."""
        a, b = self.fetch_nodes("a", "b")
        with self.busy(a):
            a.line.stop_after = 300000
            a.drop_copy(self.scene(700), "s1.tif")
            wait_for(lambda: a.line.bytes >= a.line.stop_after)
            os.kill(b.workers()[0], signal.SIGABRT)  # a crash that no sanitizer reports
            wait_for(lambda: "put back into the queue" in b.log_text())
            a.line.stop_after = None
            a.line.goes_on.set()
            a.drop_copy(self.scene(300), "s2.tif")
            self.assertEqual(b.wait_job("s2.tif", "successful")["node"], "b")
            self.assertEqual(b.wait_job("s1.tif", "accepted")["error"]["code"], "job.crashed")
        job = a.wait_job("s1.tif", "successful")
        self.assertEqual((job["node"], job["attempts"]), ("a", 2))

    def test_other_connections_outlive_a_guest(self):
        """They get the descriptor that the service passed to a worker, and must not end with its run."""
        a, b = self.fetch_nodes("a", "b")
        with self.busy(a), contextlib.ExitStack() as stack:
            a.line.stop_after = 300000
            a.drop_copy(self.scene(700), "s1.tif")
            wait_for(lambda: a.line.bytes >= a.line.stop_after)
            others = []
            for _ in range(20):
                guest = stack.enter_context(socket.socket(socket.AF_UNIX))
                guest.settimeout(PATIENCE_S)
                guest.connect(f"{a.root}/s.sock.fetch")
                others.append(guest)
            last = others.pop()
            last.sendall(b"\n")
            self.assertEqual(last.recv(1), b"") # the service has accepted the others before
            a.line.stop_after = None
            a.line.goes_on.set()
            b.wait_job("s1.tif", "successful")
            for guest in others:
                guest.sendall(b"\n")
                self.assertEqual(guest.recv(1), b"")


if __name__ == "__main__":
    main()

