#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: threads
"""Questions of an operator about failed jobs: status with filters, retry of all that failed, and the content of quarantine."""
import contextlib
import json
import os
import socketserver
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from daemon_kit import BIN, DaemonCase, wait_for  # noqa: E402
from pbtest import main  # noqa: E402


class Busy(socketserver.ThreadingUnixStreamServer):
    """A service with failed jobs whose other clients use all calls of the user at moments that no test of the real one can choose:
    it refuses the first two changes of each job or input that `refuses` names, and closes the connection if `closes`, or without reading a
    request if `unread`."""
    daemon_threads = True

    def __init__(self, path, ids, refuses, closes=False, unread=False):
        self.ids, self.refuses, self.closes, self.unread = ids, {i: 2 for i in refuses}, closes, unread
        self.lock, self.connections, self.reopened, self.done = threading.Lock(), 0, 0, []
        super().__init__(path, Connection)


class Connection(socketserver.StreamRequestHandler):
    def handle(self):
        server = self.server
        with server.lock:
            server.connections += 1
        is_first = False
        busy = {"code": -32000, "message": "8 requests are being worked on", "data": {"code": "service.busy", "hint": "later"}}
        for job in server.refuses if server.unread else ():
            if server.refuses[job] > 0:
                server.refuses[job] -= 1
                self.wfile.write(json.dumps({"jsonrpc": "2.0", "id": None, "error": busy}).encode() + b"\n")
                return
        for line in self.rfile:
            request = json.loads(line)
            params, reply = request["params"], {"jsonrpc": "2.0", "id": request["id"]}
            job = params.get("id", params.get("input"))
            with server.lock:
                server.done += [job] * (job is not None and server.refuses.get(job, 0) == 0)
                refused = server.refuses.get(job, 0) > 0 and not (is_first and server.closes)
                if refused:
                    server.refuses[job] -= 1
                    server.reopened += server.closes
            if job is None:
                is_first = True
                reply["result"] = {"jobs": [{"id": i, "status": "failed", "name": "x.tif"} for i in reversed(server.ids)]}
            elif refused and server.closes:
                reply = {"jsonrpc": "2.0", "id": None, "error": busy}
            else:
                reply.update({"error": busy} if refused else {"result": {"id": job, "status": "accepted", "name": "x.tif"}})
            self.wfile.write(json.dumps(reply).encode() + b"\n")
            if refused and server.closes:
                return


class Quarantine(DaemonCase):
    def cli_at(self, path, *words, code=0):
        done = subprocess.run([str(BIN / "pushbroom"), *words, "--socket", str(path)], capture_output=True, text=True, env=dict(os.environ, NO_COLOR="1"))
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def cli(self, d, *words, code=0):
        return self.cli_at(d.root / "s.sock", *words, code=code)

    @contextlib.contextmanager
    def busy(self, ids, refused, **how):
        with tempfile.TemporaryDirectory() as root, Busy(root + "/s.sock", ids, refused, **how) as service:
            thread = threading.Thread(target=service.serve_forever, kwargs={"poll_interval": 0.02})
            thread.start()
            try:
                yield service, root + "/s.sock"
            finally:
                service.shutdown()
                thread.join()

    def retry_all(self, refused, **how):
        ids = [f"20261129-1016{i:02}-abcd" for i in range(20)]
        with self.busy(ids, [ids[i] for i in refused], **how) as (service, path):
            text = self.cli_at(path, "retry", "--failed")
        self.assertEqual([line.split()[0] for line in text.splitlines()], ids)
        self.assertEqual(set(service.refuses.values()) - {0}, set())
        self.assertEqual(service.connections - service.reopened, 4)

    def test_busy_service_is_asked_again(self):
        self.retry_all([0, 1, 2, 9, 19])

    def test_refused_extra_connections_are_opened_again(self):
        self.retry_all([1, 2, 3], closes=True)

    def test_submit_and_again_wait_for_a_busy_service(self):
        file, job = os.path.realpath(__file__), "20261129-101600-abcd"
        for how in ({}, {"closes": True}, {"unread": True}):
            for words, name in ((["submit", file], file), (["again", job], job)):
                with self.busy([], [name], **how) as (service, path):
                    self.assertIn(name, self.cli_at(path, *words))
                self.assertEqual((service.refuses, service.done, service.connections), ({name: 0}, [name], 3 if how else 1))

    def failed(self, d, *names):
        jobs = []
        for name in names:
            d.drop(name, "fail", old=True)
            jobs.append(d.wait_job(name, "failed"))
            wait_for((d.root / "quarantine" / name).exists)
        return jobs

    def test_list_is_filtered_by_state_time_and_pipeline(self):
        d = self.daemon(settle="50ms")
        d.drop("good.tif", old=True)
        good = d.wait_job("good.tif", "successful")
        bad, = self.failed(d, "bad.tif")
        text = self.cli(d, "status")
        self.assertIn("AGO", text)
        self.assertTrue(bad["id"] in text and good["id"] in text, text)
        text = self.cli(d, "status", "--failed", "--since", "1d", "--pipeline", bad["pipeline"])
        self.assertTrue(bad["id"] in text and good["id"] not in text, text)
        self.assertIn("no such jobs", self.cli(d, "status", "--pipeline", "other"))
        self.assertEqual(d.jobs(since_ms=4102444800000), [])
        self.assertEqual([j["id"] for j in d.jobs(pipeline=good["pipeline"], status="successful")], [good["id"]])
        self.assertIn("--since wants a duration", self.cli(d, "status", "--since", "soon", code=2))

    def test_all_that_failed_runs_again(self):
        d = self.daemon(settle="50ms")
        jobs = self.failed(d, "a.tif", "b.tif")
        text = self.cli(d, "retry", "--failed", "--since", "1h")
        for job in jobs:
            self.assertIn(job["id"], text)
            wait_for(lambda: [j for j in d.jobs(status="failed") if j["id"] == job["id"] and j["updated"] > job["updated"]])
        self.assertIn("no such jobs", self.cli(d, "retry", "--failed", "--pipeline", "other"))
        self.cli(d, "retry", code=2)

    def test_quarantine_can_be_listed_retried_and_dropped(self):
        d = self.daemon(settle="50ms")
        a, b, c = self.failed(d, "a.tif", "b.tif", "c.tif")
        text = self.cli(d, "quarantine", "list")
        self.assertTrue(a["id"] in text and b["id"] in text and "input.truncated" in text, text)
        self.assertIn("tile 7", self.cli(d, "quarantine", "show", a["id"]))
        (d.root / "quarantine/mine").write_text("mine")
        self.cli(d, "quarantine", "drop", a["id"])
        self.assertEqual(sorted(p.name for p in (d.root / "quarantine").iterdir() if p.name[0] in "abcm"),
                         ["b.tif", "b.tif.error.json", "c.tif", "c.tif.error.json", "mine"])
        dropped = d.call("job.get", id=a["id"])
        self.assertEqual((dropped["input"], dropped["status"], dropped["error"]["code"], dropped["finished"]), (None, "dismissed", "input.truncated", a["finished"]))
        self.assertNotIn(a["id"], self.cli(d, "status", "--failed"))
        self.assertIn("was removed already", self.cli(d, "quarantine", "drop", a["id"], code=1))
        self.assertIn("was removed", self.cli(d, "quarantine", "retry", a["id"], code=1))
        self.cli(d, "quarantine", "retry", b["id"])
        wait_for(lambda: [j for j in d.jobs(status="failed") if j["id"] == b["id"] and j["updated"] > b["updated"]])
        wait_for((d.root / "quarantine/b.tif").exists)
        more = self.failed(d, *[f"c{i}.tif" for i in range(20)])
        lines = [line.split()[0] for line in self.cli(d, "quarantine", "drop", "--failed").splitlines() if " dismissed " in line]
        self.assertEqual(lines[-20:], [job["id"] for job in more])
        self.assertEqual(d.jobs(status="failed"), [])
        self.assertEqual([p.name for p in (d.root / "quarantine").iterdir() if p.name[0] in "abcm"], ["mine"])
        self.assertIn("nothing", self.cli(d, "quarantine", "list"))
        d.drop("good.tif", old=True)
        good = d.wait_job("good.tif", "successful")
        self.cli(d, "quarantine", "drop", good["id"], code=1)
        self.assertTrue((d.root / "work/done/good.tif").exists())
        self.cli(d, "quarantine", "eat", code=2)


if __name__ == "__main__":
    main(workers=3)
