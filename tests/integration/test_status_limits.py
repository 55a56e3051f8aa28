#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: threads
"""Limits of the status socket: one user's connections, watchers and requests are no other user's trouble. Other users
are taken on by seteuid around connect: the kernel keeps the credentials of that moment."""
import contextlib
import os
import pathlib
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from daemon_kit import Client, Daemon, RpcError, wait_for  # noqa: E402
from pbtest import SANITIZED, main  # noqa: E402

IS_ROOT = os.geteuid() == 0
USER_CLIENTS, USER_WATCHERS = 64, 32
TENURE_S = 0.4  # a connection is left alone for 0.25 s


@contextlib.contextmanager
def as_user(uid):
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)


class Limits(unittest.TestCase):
    def setUp(self):
        self.d = Daemon(stall="300s")
        self.addCleanup(self.d.remove)
        self.d.start()
        self.path = self.d.root / "s.sock"
        os.chmod(self.d.root, 0o755)
        os.chmod(self.path, 0o666)

    def client(self, uid=None):
        if uid is None:
            client = self.d.client()
        else:
            def connect():
                with contextlib.suppress(BlockingIOError):  # the queue of connections is full
                    return Client(self.path)
            with as_user(uid):
                client = wait_for(connect)
        self.addCleanup(client.close)
        return client

    def proc(self, name):
        return pathlib.Path("/proc/%d/%s" % (self.d.process.pid, name))

    def sockets(self):
        """Number of open sockets of the service. Other descriptors are opened later than the first reply: the job store opens a second one to
        checkpoint."""
        count = 0
        for descriptor in self.proc("fd").iterdir():
            with contextlib.suppress(FileNotFoundError):
                count += os.readlink(descriptor).startswith("socket:")
        return count

    def resident(self):
        return int(self.proc("statm").read_text().split()[1]) * 4096

    def test_user_has_32_watchers_and_blocks_no_other_user(self):
        watchers = [self.client() for _ in range(USER_WATCHERS)]
        for client in watchers:
            client.call("job.watch")
        extra = self.client()
        with self.assertRaises(RpcError) as caught:
            extra.call("job.watch")
        self.assertEqual(caught.exception.code, "service.busy")
        self.assertEqual(extra.call("job.list"), {"jobs": []})
        watchers[0].close()
        wait_for(lambda: extra.call("service.info")["clients"] == USER_WATCHERS)
        extra.call("job.watch")
        self.d.drop("x.tif")
        self.assertEqual(extra.event()["status"], "accepted")

    def test_clients_that_say_nothing_make_room(self):
        watcher, talker = self.client(), self.client()
        watcher.call("job.watch")
        talker.call("service.info")
        idle = [self.client() for _ in range(USER_CLIENTS - 2)]
        wait_for(lambda: talker.call("service.info")["clients"] == USER_CLIENTS)
        time.sleep(TENURE_S)
        more = [self.client() for _ in range(10)]
        for client in more:
            self.assertEqual(client.call("job.list"), {"jobs": []})
        wait_for(lambda: talker.call("service.info")["clients"] == USER_CLIENTS)
        for client in idle[:10]:
            self.assertIn("idle", client.line()["error"]["message"])
            self.assertIsNone(client.line())
        self.assertEqual(idle[10].call("job.list"), {"jobs": []})
        self.d.drop("x.tif")
        self.assertEqual(watcher.event()["status"], "accepted")

    def test_connect_and_close_loop_leaks_nothing(self):
        for _ in range(200):
            self.d.client().close()
        self.d.call("service.info")
        sockets, resident = self.sockets(), self.resident()
        for _ in range(5000):
            s = socket.socket(socket.AF_UNIX)
            s.connect(str(self.path))  # blocks while the queue is full
            s.close()
            self.assertLess(self.sockets(), sockets + USER_CLIENTS + 2)
        wait_for(lambda: self.sockets() <= sockets)
        self.assertLess(self.resident() - resident, (400 if SANITIZED else 4) << 20)

    def test_connections_of_a_user_are_counted_on_arrival(self):
        before, resident = self.sockets(), self.resident()
        held = []
        for _ in range(500):
            s = socket.socket(socket.AF_UNIX)
            self.addCleanup(s.close)
            s.connect(str(self.path))
            held.append(s)
        wait_for(lambda: self.sockets() <= before + USER_CLIENTS)
        self.assertLess(self.resident() - resident, (400 if SANITIZED else 4) << 20)

    @unittest.skipUnless(IS_ROOT, "needs to be other users")
    def test_a_users_crowd_locks_no_other_user_out(self):
        crowd = [self.client(uid) for uid in (1001, 1002, 1003, 1004, 1005) for _ in range(USER_CLIENTS)]
        for client in crowd:
            with contextlib.suppress(OSError, AssertionError, RpcError, ValueError):
                client.call("job.watch")
        for uid in (2000, 0):
            time.sleep(TENURE_S)
            watcher = self.client(uid)
            self.assertEqual(watcher.call("job.list"), {"jobs": []}, uid)
            watcher.call("job.watch")
        self.d.drop("x.tif")
        self.assertEqual(watcher.event()["status"], "accepted")

    @unittest.skipUnless(IS_ROOT, "needs to be other users")
    def test_always_busy_crowd_blocks_no_other_user(self):
        """Four users fill all connections, and none of them is idle: half watch, half do not read their replies."""
        line = b'{"jsonrpc":"2.0","id":1,"method":"service.metrics"}\n' * 200
        crowd = [[self.client(uid) for _ in range(USER_CLIENTS)] for uid in (1001, 1002, 1003, 1004)]
        for clients in crowd:
            for i, client in enumerate(clients):
                if i < USER_WATCHERS:
                    client.call("job.watch")
                else:
                    client.socket.setblocking(False)
                    client.send(line)
        time.sleep(TENURE_S)
        clients = [self.client(2000) for _ in range(4)]
        for client in clients:
            self.assertEqual(client.call("job.list"), {"jobs": []})
        clients[0].call("job.watch")
        self.d.drop("x.tif")
        self.assertEqual(clients[0].event()["status"], "accepted")

    @unittest.skipUnless(IS_ROOT, "needs to be other users")
    def test_user_with_endless_requests_gets_only_a_share(self):
        """Another user's 40 requests at a time are answered in turn with ours: while we get 50 replies, they get a
        bounded number. Counted, not timed."""
        stop, replies = threading.Event(), []
        line = b'{"jsonrpc":"2.0","id":1,"method":"service.metrics"}\n'
        sockets = [self.client(1001).socket for _ in range(40)]

        def loop():
            for s in sockets:
                s.setblocking(False)
            while not stop.is_set():
                for s in sockets:
                    with contextlib.suppress(BlockingIOError):
                        s.send(line * 4)
                    with contextlib.suppress(BlockingIOError):
                        replies.append(s.recv(1 << 20).count(b"\n"))
        thread = threading.Thread(target=loop)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(stop.set)
        wait_for(lambda: sum(replies) > 100)
        client = self.client(1002)
        worst = 0
        for _ in range(50):
            before = sum(replies)
            client.call("job.list")
            worst = max(worst, sum(replies) - before)
        # In order of arrival, each of ours waited for all 160 of theirs, and for later ones.
        self.assertLess(sum(replies), 50 * 160)

    def test_unfinished_line_is_dropped_first_for_room(self):
        slow = [self.client() for _ in range(USER_CLIENTS)]
        for client in slow:
            client.send(b'{"jsonrpc"')
        time.sleep(TENURE_S)
        for client in slow:
            client.send(b":")
        client = self.client()
        self.assertEqual(client.call("job.list"), {"jobs": []})

    def test_half_closed_connections_get_their_replies(self):
        client = self.client()
        client.send(b"".join(b'{"jsonrpc":"2.0","id":%d,"method":"service.info"}\n' % i for i in range(20)))
        client.socket.shutdown(socket.SHUT_WR)
        self.assertEqual([client.line()["id"] for _ in range(20)], list(range(20)))
        self.assertIsNone(client.line())

    @unittest.skipUnless(IS_ROOT, "needs to be other users")
    def test_submits_of_a_crowd_take_no_other_users_place(self):
        """The process that looks at files is stopped; requests of 6 users leave room for a seventh."""
        tasks = self.proc("task").glob("*/children")
        children = [int(pid) for task in tasks for pid in task.read_text().split()]
        mine = self.proc("cmdline").read_text()  # workers are other programs
        checker, = [pid for pid in children if pathlib.Path("/proc/%d/cmdline" % pid).read_text() == mine]
        os.kill(checker, signal.SIGSTOP)
        self.addCleanup(os.kill, checker, signal.SIGCONT)
        line = b'{"jsonrpc":"2.0","id":1,"method":"job.submit","params":{"input":"/nowhere/x.tif"}}\n'
        clients = [self.client(uid) for uid in range(1001, 1007) for _ in range(8)] + [self.client(2000)]
        for client in clients:
            client.send(line)
        self.client().call("service.info")
        os.kill(checker, signal.SIGCONT)
        self.assertEqual({client.line()["error"]["data"]["code"] for client in clients}, {"input.missing"})

    def test_queries_are_answered_while_a_change_waits(self):
        """Another process holds the write lock of the job store, for which a change waits 0.5 s; questions do not."""
        self.d.drop("x.tif", "until never")
        job = self.d.wait_job("x.tif", "running")
        path = self.d.root / "y.tif"
        path.write_text("ok")
        holder = subprocess.Popen([sys.executable, "-c", "import sqlite3, sys; d = sqlite3.connect(sys.argv[1]);"
                                   "d.execute('BEGIN IMMEDIATE'); print('held', flush=True); sys.stdin.read()",
                                   str(self.d.root / "state/jobs.db")], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(holder.wait)
        self.addCleanup(holder.stdout.close)
        self.addCleanup(holder.stdin.close)
        holder.stdout.readline()
        client = self.client()

        def slowest_question():
            """Seconds of the queries that are sent one after the other until the change is refused."""
            changes, slowest = self.client(), 0
            changes.send(b'{"jsonrpc":"2.0","id":1,"method":"job.submit","params":{"input":"%s"}}\n' % str(path).encode())
            while not select.select([changes.socket], [], [], 0)[0]:
                start = time.monotonic()
                self.assertEqual(client.call("job.get", id=job["id"])["id"], job["id"])
                client.call("service.info")
                slowest = max(slowest, time.monotonic() - start)
            self.assertEqual(changes.line()["error"]["data"]["code"], "service.state")
            return slowest
        # Those that wait with the change take 0.5 s each time, others only when this machine pauses.
        self.assertTrue(any(sum(slowest_question() < 0.4 for _ in range(4)) >= 3 for _ in range(10)))

    def test_deleted_socket_is_recreated_and_keeps_clients(self):
        client = self.client()
        client.call("job.watch")
        old = os.stat(self.path).st_ino
        os.unlink(self.path)
        wait_for(self.path.exists)
        self.assertNotEqual((os.stat(self.path).st_ino, os.stat(self.path).st_mode & 0o777), (old, 0o666))
        self.assertEqual(os.stat(self.path).st_mode & 0o777, 0o660)
        self.assertEqual(self.d.call("job.list"), {"jobs": []})
        self.d.drop("x.tif")
        self.assertEqual(client.event()["status"], "accepted")
        self.assertIn("was deleted", self.d.log_text())
        self.assertEqual([f for f in os.listdir(self.d.root) if f.endswith(".sock")], ["s.sock"])

    def test_what_lies_in_the_sockets_place_is_not_touched(self):
        os.unlink(self.path)
        with open(self.path, "x") as file:
            file.write("mine")
        wait_for(lambda: "move it away" in self.d.log_text())
        self.d.stop(signal.SIGTERM)
        self.assertEqual(self.path.read_text(), "mine")


if __name__ == "__main__":
    main(workers=3)
