#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Rights of users on the status socket. Other users are taken on by seteuid around connect: the kernel keeps the credentials
of that moment."""
import array
import contextlib
import ctypes
import json
import os
import pathlib
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from daemon_kit import BIN, Client, Daemon, RpcError, wait_for  # noqa: E402
from patience import PATIENCE_S  # noqa: E402
from pbtest import main  # noqa: E402

SERVICE, ALICE, BOB, ADMIN = 65534, 1001, 1002, 1003


@unittest.skipUnless(os.geteuid() == 0, "needs to be several users")
class Rights(unittest.TestCase):
    def daemon(self, user=None):
        d = Daemon(stall="300s")
        self.addCleanup(d.remove)
        os.chmod(d.root, 0o755)
        d.change("  settle:", "  admins: [\"%d\", nobody-of-that-name]\n  settle:" % ADMIN)
        if user is not None:
            os.chown(d.root, user, user)
            os.chown(d.root / "inbox", user, user)
        d.start(user=user)
        os.chmod(d.root / "s.sock", 0o666)
        return d

    def client(self, d, uid):
        os.seteuid(uid)
        try:
            client = Client(d.root / "s.sock")
        finally:
            os.seteuid(0)
        self.addCleanup(client.close)
        return client

    def file(self, d, name, uid, mode, text="slow 60"):
        path = d.root / name
        path.write_text(text)
        os.chown(path, uid, uid)
        os.chmod(path, mode)
        return str(path)

    def refused(self, code, client, method, **params):
        with self.assertRaises(RpcError) as caught:
            client.call(method, **params)
        self.assertEqual(caught.exception.code, code, caught.exception)
        return str(caught.exception)

    def test_only_owner_root_and_admins_change_jobs(self):
        d = self.daemon()
        alice, bob, admin, root = (self.client(d, uid) for uid in (ALICE, BOB, ADMIN, 0))
        job = alice.call("job.submit", input=self.file(d, "a.tif", ALICE, 0o644))
        self.assertEqual(job["uid"], ALICE)
        self.assertEqual(bob.call("job.get", id=job["id"])["id"], job["id"])
        for who, method in ((alice, "cancel"), (alice, "retry"), (admin, "cancel"), (admin, "retry"), (root, "cancel")):
            self.assertIn(str(BOB), self.refused("service.denied", bob, "job." + method, id=job["id"]))
            who.call("job." + method, id=job["id"])
            wait_for(lambda: d.call("job.get", id=job["id"])["status"] in
                     (("dismissed",) if method == "cancel" else ("running", "accepted")))
        self.assertIn("no user 'nobody-of-that-name'", d.log_text())

    def test_a_file_of_the_inbox_belongs_to_its_owner(self):
        d = self.daemon()
        os.rename(self.file(d, ".b", BOB, 0o644), d.root / "inbox/b.tif")
        job = d.wait_job("b.tif", "running")
        self.assertEqual(job["uid"], BOB)
        self.refused("service.denied", self.client(d, ALICE), "job.cancel", id=job["id"])
        self.client(d, BOB).call("job.cancel", id=job["id"])

    def test_a_path_is_read_with_the_rights_of_who_asks(self):
        d = self.daemon()
        secret = self.file(d, "secret.tif", 0, 0o600)
        hidden = d.root / "hidden"
        hidden.mkdir(mode=0o700)
        (hidden / "x.tif").write_text("ok")
        alice = self.client(d, ALICE)
        for path in (secret, str(hidden / "x.tif"), str(hidden / "no.tif"), "/dev/null", str(hidden), "/nowhere.tif"):
            self.refused("input.missing", alice, "job.submit", input=path, pipeline="plain")
        self.assertIn("takes no folders", self.refused("input.no_pipeline", alice, "job.submit", input=str(d.root), pipeline="plain"))
        self.refused("usage", alice, "job.submit", input="relative.tif")
        self.refused("usage", alice, "job.submit", input="/" + "x" * 5000)
        self.assertEqual(d.jobs(), [])
        self.assertEqual(self.client(d, 0).call("job.submit", input=secret)["uid"], 0)

    def submit_with(self, client, path, fd):
        client.send((json.dumps({"jsonrpc": "2.0", "id": 9, "method": "job.submit",
                                 "params": {"input": path, "descriptor": True}}) + "\n").encode())
        self.assertEqual(client.line()["method"], "job.descriptor")
        rights = [] if fd is None else [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))]
        client.socket.sendmsg([b"\n"], rights)
        return client.line()

    def test_unprivileged_service_needs_the_opened_file(self):
        d = self.daemon(user=SERVICE)
        mine = self.file(d, "mine.tif", ALICE, 0o644)
        secret = self.file(d, "secret.tif", SERVICE, 0o600)
        alice = self.client(d, ALICE)
        self.assertIn("pushbroom submit", self.refused("service.denied", alice, "job.submit", input=mine))
        own = os.open(mine, os.O_RDONLY)
        pathless = os.open(secret, os.O_PATH)
        writes = os.open(secret, os.O_WRONLY)
        for fd in (own, pathless, writes, None):
            self.assertEqual(self.submit_with(alice, secret, fd)["error"]["data"]["code"], "service.denied")
        self.assertEqual(self.submit_with(alice, mine, own)["result"]["uid"], ALICE)
        self.assertEqual(alice.call("job.get", id=d.jobs()[0]["id"])["input"], mine)
        for fd in (own, pathless, writes):
            os.close(fd)
        for path, code in ((mine, 0), (secret, 1)):
            done = subprocess.run([str(BIN / "pushbroom"), "submit", "--socket", str(d.root / "s.sock"), path], user=ALICE,
                                  group=ALICE, extra_groups=[], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.assertEqual(done.returncode != 0, code != 0, done)

    def test_who_may_raise_a_priority_and_drain(self):
        d = self.daemon()
        path = self.file(d, "a.tif", ALICE, 0o644)
        alice, admin = self.client(d, ALICE), self.client(d, ADMIN)
        self.assertIn("may not drain", self.refused("service.denied", alice, "service.drain"))
        self.assertIn("above 0", self.refused("service.denied", alice, "job.submit", input=path, priority=1))
        self.assertEqual(alice.call("job.submit", input=path, priority=-1)["priority"], -1)
        self.assertEqual(admin.call("job.submit", input=path, priority=100)["priority"], 100)
        for wrong in (101, -101, 0.5, "high"):
            with self.assertRaises(RpcError) as caught:
                admin.call("job.submit", input=path, priority=wrong)
            self.assertEqual(caught.exception.rpc, -32602)
        self.assertTrue(admin.call("service.drain")["draining"])

    def test_a_name_steers_no_terminal(self):
        d = self.daemon()
        d.call("job.submit", input=self.file(d, "a\x1b[31m\x9b2Jb.tif", 0, 0o644), pipeline="plain")
        for words in ([], [d.jobs()[0]["id"]]):
            done = subprocess.run([str(BIN / "pushbroom"), "status", "--socket", str(d.root / "s.sock"), *words],
                                  stdout=subprocess.PIPE)
            self.assertEqual(done.returncode, 0)
            self.assertIn(b"b.tif", done.stdout)
            self.assertNotRegex(done.stdout.decode(), "[\x00-\x09\x0b-\x1f\x7f-\x9f]")

    def checkers(self, parent):
        lines = subprocess.run(["ps", "-o", "pid=,comm=", "--ppid", str(parent)], stdout=subprocess.PIPE, text=True).stdout
        return [int(line.split()[0]) for line in lines.splitlines() if "pb-checker" in line]

    def test_checking_process_is_isolated_and_restarted(self):
        d = self.daemon()
        checker, = self.checkers(d.process.pid)
        spare, = wait_for(lambda: self.checkers(checker))
        for pid in (checker, spare):  # one socket to the service, one to each other
            links = wait_for(lambda: (lambda links: len(links) == 5 and links)(
                [os.readlink("/proc/%d/fd/%s" % (pid, fd)) for fd in os.listdir("/proc/%d/fd" % pid)]))
            self.assertEqual([link for link in links if str(d.root) in link and not link.endswith("/log")], [])
            self.assertEqual(len([link for link in links if link.startswith("socket:")]), 2, links)
        alice = self.client(d, ALICE)
        path = self.file(d, "a.tif", ALICE, 0o644)
        os.kill(spare, 9)
        wait_for(lambda: open("/proc/%d/stat" % spare).read().rsplit(")")[1].split()[0] == "Z")
        self.assertEqual(alice.call("job.submit", input=path)["uid"], ALICE, "another one takes the request")
        os.kill(checker, 9)
        wait_for(lambda: "is started again" in d.log_text())
        self.assertEqual(alice.call("job.submit", input=path)["uid"], ALICE)

    def test_a_stopped_checking_process_is_replaced(self):
        d = self.daemon()
        alice = self.client(d, ALICE)
        path = self.file(d, "a.tif", ALICE, 0o644)
        checker, = self.checkers(d.process.pid)
        os.kill(checker, signal.SIGSTOP)
        with self.assertRaises(RpcError) as caught:
            alice.call("job.submit", input=path)
        self.assertEqual(caught.exception.code, "service.state")
        self.assertEqual(alice.call("job.submit", input=path)["uid"], ALICE)
        self.assertNotIn(checker, self.checkers(d.process.pid))

    def test_a_stopped_checking_process_is_not_left(self):
        d = self.daemon()
        checker, = self.checkers(d.process.pid)
        os.kill(checker, signal.SIGSTOP)
        watched = os.pidfd_open(checker)
        self.addCleanup(os.close, watched)
        d.stop(signal.SIGKILL)
        has_ended = bool(select.select([watched], [], [], PATIENCE_S)[0])
        if not has_ended:
            signal.pidfd_send_signal(watched, signal.SIGKILL)
        self.assertTrue(has_ended, "it is left behind")

    def test_stopped_checking_process_delays_no_shutdown(self):
        d = self.daemon()
        checker, = self.checkers(d.process.pid)
        os.kill(checker, signal.SIGSTOP)
        self.assertEqual(d.stop()[0], 0)
        self.assertFalse(os.path.exists("/proc/%d" % checker))

    def test_unresponsive_storage_delays_no_other_user(self):
        d = self.daemon()
        where = tempfile.mkdtemp(prefix="pb-hung-")
        self.addCleanup(shutil.rmtree, where, True)
        libc = ctypes.CDLL(None, use_errno=True)
        try:
            fuse = os.open("/dev/fuse", os.O_RDWR)
        except OSError as error:
            self.skipTest(str(error))
        options = ("fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other" % fuse).encode()
        if libc.mount(b"hung", where.encode(), b"fuse", 0, options) != 0:
            os.close(fuse)
            self.skipTest("cannot mount: %s" % os.strerror(ctypes.get_errno()))
        bob, path = self.client(d, BOB), self.file(d, "b.tif", BOB, 0o644)

        def ask():
            start = time.monotonic()
            self.assertEqual(bob.call("job.submit", input=path)["uid"], BOB)
            for _ in range(20):
                bob.call("service.info")
            return time.monotonic() - start
        try:
            before = ask()  # speed of this machine
            hung = [self.client(d, ALICE) for _ in range(20)]
            for i, client in enumerate(hung):
                client.send((json.dumps({"jsonrpc": "2.0", "id": i, "method": "job.submit",
                                         "params": {"input": where + "/x.tif"}}) + "\n").encode())
            self.assertLess(ask(), 4 + 5 * before)  # a look at the other's file takes 5 s
            codes = sorted(client.line()["error"]["data"]["code"] for client in hung)
            self.assertEqual(set(codes), {"input.io", "service.busy"})
        finally:
            os.close(fuse)
            libc.umount2(where.encode(), 2)

    def test_events_are_for_notifier_and_administrators(self):
        notifier = 1004
        d = Daemon(stall="300s")
        self.addCleanup(d.remove)
        os.chmod(d.root, 0o755)
        d.config.write_text(d.config.read_text().replace("  settle:", "  notify_user: \"%d\"\n  admins: [\"%d\"]\n  settle:" % (notifier, ADMIN))
                            + "notify:\n  - exec: {name: all, command: [/bin/true], events: [job.failed]}\n")
        d.start()
        os.chmod(d.root / "s.sock", 0o666)
        d.drop("a.tif", "fail")
        job = d.wait_job("a.tif", "failed")["id"]
        for uid in (0, ADMIN, notifier):
            client = self.client(d, uid)
            self.assertEqual([e["event"] for e in client.call("event.list", target="all")["events"]], ["job.failed"])
            client.call("event.ack", target="all", seq=1)
        self.refused("service.denied", client, "job.retry", id=job)  # the notifier changes no job
        for uid in (ALICE, SERVICE):
            for method, params in (("event.list", {}), ("event.ack", {"seq": 1})):
                self.refused("service.denied", self.client(d, uid), method, target="all", **params)

    def test_who_looks_at_files_is_confined(self):
        def children(pid):
            found = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True).stdout.split()
            texts = {}
            for child in found:
                with contextlib.suppress(OSError):  # it has ended
                    texts[child] = pathlib.Path("/proc", child, "status").read_text()
            return texts

        def modes():
            checkers = [pid for pid, text in children(d.process.pid).items() if "Name:\tpb-checker\n" in text]
            return [text.split("\nSeccomp:\t")[1].split("\n")[0] for pid in checkers for text in children(pid).values()]
        d = Daemon(stall="300s")
        self.addCleanup(d.remove)
        d.start()
        wait_for(lambda: modes() == ["2"])

    def test_an_empty_notifier_is_no_user(self):
        d = Daemon(stall="300s")
        self.addCleanup(d.remove)
        os.chmod(d.root, 0o755)
        d.config.write_text(d.config.read_text().replace("  settle:", "  notify_user: \"\"\n  settle:")
                            + "notify:\n  - exec: {name: all, command: [/bin/true], events: [job.failed]}\n")
        d.start()
        os.chmod(d.root / "s.sock", 0o666)
        self.assertEqual(self.client(d, 0).call("event.list", target="all")["events"], [])
        self.refused("service.denied", self.client(d, ALICE), "event.list", target="all")


if __name__ == "__main__":
    main(workers=3)
