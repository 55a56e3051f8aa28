#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: threads slow
"""The status socket of a real pushbroomd: every method, events, and clients that misbehave."""
import os
import socket
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from daemon_kit import Daemon, RpcError, wait_for  # noqa: E402
from pbtest import SANITIZED, main  # noqa: E402


class Socket(unittest.TestCase):
    def setUp(self):
        self.d = Daemon(stall="300s")
        self.addCleanup(self.d.remove)
        self.d.start()

    def test_job_events_arrive_at_most_5_times_a_second(self):
        watcher = self.d.client()
        self.addCleanup(watcher.close)
        first = watcher.call("job.watch")
        self.assertEqual((first["watching"], first["jobs"]), (True, []))
        start = time.monotonic()
        self.d.drop("x.tif", "until go")  # reports its progress 10 times a second
        events = []

        def hear(status, times):
            while [e["status"] for e in events].count(status) < times:
                events.append(watcher.event())
        hear("running", 6)
        (self.d.root / "go").touch()
        hear("successful", 1)
        self.assertEqual([e["status"] for e in events if e["status"] != "running"], ["accepted", "successful"])
        running = [e for e in events if e["status"] == "running"]
        done = [e["tiles_done"] for e in running]
        self.assertEqual(done, sorted(done))
        self.assertLessEqual(len(running), 5 * (time.monotonic() - start) + 3)

    def test_a_watch_of_one_job_hears_of_that_job_only(self):
        self.d.drop("a.tif", "until go")
        job = self.d.wait_job("a.tif", "running")
        watcher = self.d.client()
        self.addCleanup(watcher.close)
        first = watcher.call("job.watch", id=job["id"][-4:])
        self.assertEqual(first["jobs"][0]["id"], job["id"])
        self.d.drop("b.tif", "ok")
        self.d.wait_job("b.tif", "accepted")
        (self.d.root / "go").touch()
        while watcher.event()["status"] == "running":
            pass
        self.d.wait_job("b.tif", "successful")
        watcher.call("job.get", id=job["id"])
        self.assertEqual({e["id"] for e in watcher.events}, set())

    def test_list_filters_and_limits_newest_first(self):
        for name, text in (("a.tif", "ok"), ("b.tif", "fail"), ("c.tif", "ok")):
            self.d.drop(name, text)
            wait_for(lambda: [j for j in self.d.jobs() if j["name"] == name and j["finished"]])
        self.assertEqual([j["name"] for j in self.d.jobs()], ["c.tif", "b.tif", "a.tif"])
        self.assertEqual([j["name"] for j in self.d.jobs(status="failed")], ["b.tif"])
        self.assertEqual([j["name"] for j in self.d.jobs(status=["failed", "successful"], limit=2)], ["c.tif", "b.tif"])
        self.assertEqual(self.d.jobs(status="running"), [])

    def test_brief_list_goes_on_before_a_job(self):
        for i in range(5):
            self.d.drop("f%d.tif" % i)
        self.d.wait_for(lambda: len(self.d.jobs(status="successful")) == 5)
        whole = self.d.jobs()
        brief = self.d.jobs(fields="brief")
        self.assertEqual(brief, [{k: v for k, v in job.items() if k != "report"} for job in whole])
        self.assertTrue({"bbox", "datetime", "preview"} < set(brief[0]))
        self.assertEqual(self.d.jobs(limit=2, before=whole[1]["id"]), whole[2:4])
        self.assertEqual(self.d.jobs(before=whole[4]["id"]), [])
        with self.assertRaises(RpcError) as caught:
            self.d.jobs(before="20200101-000000-aaaa")
        self.assertEqual(caught.exception.code, "job.unknown")

    def test_wrong_parameter_gets_the_right_ones(self):
        for method, params, hint in (("job.list", {"filter": 1}, "job.list takes pipeline, status, limit, fields, before, since_ms"),
                                     ("job.get", {}, "job.get takes id (required)"), ("service.info", {"x": 1}, "service.info takes no parameters"),
                                     ("job.again", {"id": "x", "dry_run": 1}, "job.again takes id (required), priority, dry_run")):
            with self.assertRaises(RpcError) as caught:
                self.d.call(method, **params)
            self.assertEqual((caught.exception.rpc, caught.exception.hint), (-32602, hint))

    def test_methods_are_listed(self):
        said = self.d.call("rpc.discover")
        methods = {m["name"]: {p["name"]: p["required"] for p in m["params"]} for m in said["methods"]}
        self.assertEqual(said["openrpc"], "1.2.6")
        self.assertEqual(methods["event.ack"], {"target": True, "seq": True, "given_up": False})
        for method, params in methods.items():
            try:
                self.d.call(method, **{name: None for name in params})
            except RpcError as error:
                self.assertNotEqual(error.rpc, -32601)
                self.assertNotIn("takes no parameter", str(error))

    def test_info_and_metrics(self):
        self.d.drop("a.tif")
        self.d.drop("b.tif", "fail")
        self.d.wait_job("a.tif", "successful")
        self.d.wait_job("b.tif", "failed")
        info = self.d.call("service.info")
        self.assertEqual((info["device"], info["device_why"]), ("cpu", "a test"))
        self.assertEqual(info["jobs"], {"accepted": 0, "running": 0, "successful": 1, "failed": 1, "dismissed": 0})
        self.assertEqual(info["pid"], self.d.process.pid)
        text = self.d.call("service.metrics")["text"]
        lines = text.splitlines()
        for line in ('pushbroom_jobs_total{pipeline="plain",state="successful"} 1', 'pushbroom_jobs_total{pipeline="plain",state="accepted"} 2',
                     'pushbroom_quarantined_total{reason="input.truncated"} 1', 'pushbroom_tiles_total{pipeline="plain"} 20',
                     'pushbroom_job_duration_seconds_count{pipeline="plain"} 2', "pushbroom_queue_depth 0",
                     'pushbroom_stage_duration_seconds_total{stage="read",mode="busy"} 0.010'):
            self.assertIn(line, lines)
        typed = {line.split()[2] for line in lines if line.startswith("# TYPE")}
        for line in lines:
            if not line.startswith("#"):
                name = line.split("{")[0].split()[0]
                for suffix in ("_bucket", "_sum", "_count"):
                    if name.endswith(suffix) and name[:-len(suffix)] in typed:
                        name = name[:-len(suffix)]
                self.assertIn(name, typed)
                float(line.rsplit(" ", 1)[1])

    def test_unknown_jobs_are_said_so(self):
        for method in ("job.get", "job.cancel", "job.retry", "job.watch"):
            for name in ("zzzz", "x';--", "20200101-000000-0000", "%"):
                with self.assertRaises(RpcError) as caught:
                    self.d.call(method, id=name)
                self.assertEqual(caught.exception.code, "job.unknown")
                self.assertTrue(caught.exception.hint)

    def test_garbage_gets_errors_and_keeps_the_connection(self):
        client = self.d.client()
        self.addCleanup(client.close)
        for line, code in ((b"nonsense", -32700), (b'{"a":', -32700), (b"\xff\xfe", -32700), (b"[" * 40 + b"]" * 40, -32700),
                           (b"[]", -32600), (b"42", -32600), (b"{}", -32600), (b'{"jsonrpc":"1.0","id":1}', -32600),
                           (b'{"jsonrpc":"2.0","id":{},"method":"job.list"}', -32600),
                           (b'{"jsonrpc":"2.0","id":1,"method":"job.eat"}', -32601),
                           (b'{"jsonrpc":"2.0","id":1,"method":"job.get"}', -32602),
                           (b'{"jsonrpc":"2.0","id":1,"method":"job.get","params":{"id":7}}', -32602),
                           (b'{"jsonrpc":"2.0","id":1,"method":"job.list","params":{"stauts":"failed"}}', -32602),
                           (b'{"jsonrpc":"2.0","id":1,"method":"job.list","params":{"limit":0}}', -32602),
                           (b'{"jsonrpc":"2.0","id":1,"method":"job.list","params":[1]}', -32602),
                           (b'{"jsonrpc":"2.0","id":1,"method":"job.get","params":{"id":"a\\u0000b"}}', -32602)):
            client.send(line + b"\n")
            reply = client.line()
            self.assertEqual(reply["error"]["code"], code, line)
            self.assertEqual(reply["jsonrpc"], "2.0")
        self.assertEqual(client.call("job.list"), {"jobs": []})

    def test_split_and_joined_requests_and_any_ids_work(self):
        client = self.d.client()
        self.addCleanup(client.close)
        for byte in b'{"jsonrpc":"2.0","id":"text","method":"job.list"}\r\n':
            client.send(bytes([byte]))
        self.assertEqual(client.line()["id"], "text")
        client.send(b"".join(b'{"jsonrpc":"2.0","id":%d,"method":"job.list"}\n' % i for i in range(50)))
        self.assertEqual([client.line()["id"] for _ in range(50)], list(range(50)))
        client.send(b'{"jsonrpc":"2.0","method":"job.list"}\n{"jsonrpc":"2.0","id":null,"method":"job.list"}\n')
        self.assertEqual(client.line(), {"jsonrpc": "2.0", "id": None, "result": {"jobs": []}})

    def test_line_over_the_limit_ends_with_a_message(self):
        client = self.d.client()
        self.addCleanup(client.close)
        try:
            client.send(b"x" * 200000)
        except OSError:
            pass
        try:
            reply = client.line()
            self.assertIn("65536", reply["error"]["message"])
            self.assertIsNone(client.line())
        except ConnectionResetError:
            pass
        self.assertTrue(self.d.is_up())

    def test_deaf_client_is_dropped_and_others_are_served(self):
        slow = socket.socket(socket.AF_UNIX)
        self.addCleanup(slow.close)
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect(str(self.d.root / "s.sock"))
        slow.setblocking(False)
        line = b'{"jsonrpc":"2.0","id":1,"method":"service.metrics"}\n'
        end = time.monotonic() + 90
        dropped = False
        while not dropped and time.monotonic() < end:
            try:
                slow.send(line * 20)
            except BlockingIOError:
                time.sleep(0.01)
            except OSError:
                dropped = True
        self.assertTrue(dropped)
        self.assertIn("does not read its replies", self.d.log_text())
        self.assertEqual(self.d.jobs(), [])

    def test_memory_does_not_grow_with_connections(self):
        def resident():
            with open("/proc/%d/statm" % self.d.process.pid) as file:
                return int(file.read().split()[1]) * 4096
        for _ in range(100):
            self.d.call("service.info")
        before = resident()
        for _ in range(1000):
            self.d.call("service.info")
        # Sanitizers keep freed memory for a while.
        limit = 400 if SANITIZED else 2
        self.assertLess(resident() - before, limit << 20)


if __name__ == "__main__":
    main(workers=3)
