#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""The Python client of deploy/python with a real service."""
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
PACKAGE = HERE.parents[1] / "deploy/python"
sys.path[:0] = [str(HERE), str(PACKAGE / "src")]
import pushbroom_client as pc  # noqa: E402
from daemon_kit import DaemonCase, open_to_all  # noqa: E402
from patience import PATIENCE_S, wait_for  # noqa: E402
from pbtest import main  # noqa: E402

OPEN_PACKAGE = open_to_all(PACKAGE / "src", ("pushbroom_client",))  # here: a case's process runs no atexit


class PythonClient(DaemonCase):
    def client(self, d, **options):
        options.setdefault("timeout", PATIENCE_S)
        options.setdefault("reconnect", PATIENCE_S)
        client = pc.Client(d.root / "s.sock", **options)
        self.addCleanup(client.close)
        return client

    def scene(self, d, name, text="ok"):
        folder = d.root / "scenes"
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(text)
        return folder / name

    def test_submitted_scene_becomes_products(self):
        d = self.daemon()
        client = self.client(d)
        job = client.submit(self.scene(d, "a.tif"), pipeline="plain", priority=7)
        self.assertEqual((job.status, job.pipeline, job.priority), (pc.JobStatus.ACCEPTED, "plain", 7))
        states = []
        done = client.wait(job, timeout=PATIENCE_S, on_progress=states.append)
        self.assertEqual(done.status, "successful")
        self.assertTrue(done.is_finished and done.finished >= done.created)
        self.assertEqual(states[-1].id, job.id)
        self.assertTrue(done.products)
        self.assertEqual(done.products[0].path, os.path.join(done.directory, done.raw["products"][0]["path"]))
        self.assertEqual(client.job(job.id[-4:]).id, job.id)
        self.assertEqual([j.id for j in client.jobs(status=[pc.JobStatus.SUCCESSFUL], pipeline="plain")], [job.id])
        self.assertEqual(client.jobs(status="failed"), [])

    def serve(self, answers):
        """A socket that answers one connection after the other: the protocol's rare cases, which a service shows
        at a moment that no test can choose, or to another user only. Returns its path."""
        root = self.daemon(start=False).root
        server = socket.socket(socket.AF_UNIX)
        self.addCleanup(server.close)
        server.bind(str(root / "own.sock"))
        server.listen()

        def run():
            for answer in answers:
                peer, _ = server.accept()
                with peer, peer.makefile("rb") as lines:
                    answer(peer, lines)
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        self.addCleanup(thread.join, PATIENCE_S)
        return root / "own.sock"

    def test_opened_input_is_passed_when_it_is_requested(self):
        seen = {}

        def answer(peer, lines):
            request = json.loads(lines.readline())
            seen.update(request["params"])
            peer.sendall(b'{"jsonrpc":"2.0","method":"job.descriptor"}\n')
            byte, fds, _, _ = socket.recv_fds(peer, 1, 1)
            seen.update(byte=byte, content=os.read(fds[0], 100))
            os.close(fds[0])
            result = {"id": "x", "name": "scene.tif", "status": "accepted"}
            peer.sendall(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}).encode() + b"\n")
        path = self.serve([answer])
        file = path.parent / "scene.tif"
        file.write_text("content")
        with pc.Client(path, timeout=PATIENCE_S) as client:
            client.submit(file)
        self.assertEqual(seen, {"input": str(file), "descriptor": True, "byte": b"\n", "content": b"content"})

    def test_file_of_another_user_is_submitted(self):
        """Neither side is root: the service may not take on the rights of its client, and requests the opened file."""
        if os.geteuid() != 0:
            self.skipTest("skipped: this test runs programs as other users, which needs root")
        d = self.daemon(start=False)
        os.chmod(d.root, 0o755)
        for folder in ("inbox", "work", "products", "quarantine", "state"):
            (d.root / folder).mkdir(exist_ok=True)
        for path in [d.root, *d.root.rglob("*")]:
            os.chown(path, 65534, 65534)
        d.start(user=65534)
        code = ("import sys; sys.path.insert(0, sys.argv[1]); import pushbroom_client as pc\n"
                "with pc.Client(sys.argv[2]) as c: print(c.wait(c.submit(sys.argv[3])).status)")
        done = subprocess.run([sys.executable, "-c", code, OPEN_PACKAGE, d.root / "s.sock", self.scene(d, "a.tif")],
                              user=65533, group=65534, extra_groups=[], stdout=subprocess.PIPE, text=True, timeout=PATIENCE_S)
        self.assertEqual(done.stdout, "successful\n")

    def test_errors_have_types_codes_and_hints(self):
        d = self.daemon()
        client = self.client(d)
        for expected, code, call in ((pc.InputError, "input.missing", lambda: client.submit(d.root / "absent.tif")),
                                     (pc.UnknownJob, "job.unknown", lambda: client.job("zzzz")),
                                     (pc.ServiceError, "service.protocol", lambda: client.call("no.method"))):
            with self.assertRaises(expected) as caught:
                call()
            self.assertEqual(caught.exception.code, code)
            self.assertIn(code, str(caught.exception))
        with self.assertRaises(pc.Unreachable) as caught:
            pc.Client(d.root / "nothing.sock").info()
        self.assertTrue(caught.exception.hint)
        job = client.wait(client.submit(self.scene(d, "a.tif")))
        with self.assertRaises(pc.WrongState):
            client.cancel(job)

    def test_failed_job_raises_its_error(self):
        d = self.daemon()
        client = self.client(d)
        job = client.submit(self.scene(d, "a.tif", "fail"))
        with self.assertRaises(pc.JobFailed) as caught:
            client.wait(job)
        self.assertEqual(caught.exception.code, caught.exception.job.error.code)
        self.assertTrue(caught.exception.hint)
        self.assertEqual(client.wait(job, check=False).status, pc.JobStatus.FAILED)
        self.assertIn(client.retry(job).status, (pc.JobStatus.ACCEPTED, pc.JobStatus.RUNNING))
        client.wait(job, check=False)

    def test_cancelled_job_is_dismissed(self):
        d = self.daemon()
        client = self.client(d)
        job = client.submit(self.scene(d, "a.tif", "slow 600"))
        d.wait_job("a.tif", "running")
        with self.assertRaises(pc.WaitTimeout):
            client.wait(job, timeout=0.3)
        client.cancel(job)
        self.assertEqual(client.wait(job, check=False).status, pc.JobStatus.DISMISSED)

    def test_watch_resumes_after_a_kill_without_gaps(self):
        d = self.daemon()
        client = self.client(d)
        changes = client.watch()
        first = client.wait(client.submit(self.scene(d, "a.tif")))
        got = [next(changes) for _ in range(3)]
        self.assertEqual([c.event for c in got], ["job.accepted", "job.running", "job.successful"])
        self.assertEqual({c.job.id for c in got}, {first.id})
        d.process.send_signal(signal.SIGKILL)
        d.process.wait()
        d.start()
        second = client.wait(client.submit(self.scene(d, "b.tif")))
        rest = []
        while not rest or rest[-1].event != "job.successful":
            change = next(changes)
            rest += [change] if change.event.startswith("job.") else []
        self.assertEqual([c.job.id for c in rest], [second.id] * 3)
        products = [c for c in client.watch(since=got[0].seq - 1, job=second, timeout=1) if c.event == "product.published"]
        self.assertTrue(products and products[0].product.path.startswith(second.directory))
        with self.assertRaises(pc.EventsLost) as caught:
            client.watch(since=rest[-1].seq + 100000)
        self.assertIsInstance(caught.exception.seq, int)
        changes.close()

    def test_wait_goes_on_over_a_restart(self):
        d = self.daemon()
        client = self.client(d)
        job = client.submit(self.scene(d, "a.tif", "until go 10"))
        d.wait_job("a.tif", "running")
        result = []
        waiter = threading.Thread(target=lambda: result.append(self.client(d).wait(job)))
        waiter.start()
        d.stop()
        d.start()
        self.assertEqual(client.info()["jobs"]["successful"], 0)  # this connection was lost as well
        (d.root / "go").touch()
        waiter.join(PATIENCE_S)
        self.assertEqual([j.status for j in result], ["successful"])

    def test_change_is_not_repeated_after_a_lost_reply(self):
        requests = []

        def read_and_close(peer, lines):
            requests.append(json.loads(lines.readline())["method"])
        path = self.serve([read_and_close, read_and_close])
        with pc.Client(path, timeout=PATIENCE_S, reconnect=PATIENCE_S) as client:
            with self.assertRaises(pc.ConnectionLost):
                client.cancel("x")
            self.assertEqual(requests, ["job.cancel"])
            with self.assertRaises(pc.ConnectionLost):  # the same client, on a new connection
                client.cancel("x")

    def test_connection_that_ended_while_idle_is_replaced(self):
        d = self.daemon()
        client = self.client(d)
        client.info()
        d.stop()
        d.start()
        client.wait(client.submit(self.scene(d, "a.tif")))

    def test_lists_come_in_pages(self):
        d = self.daemon()
        client = self.client(d)
        ids = [client.wait(client.submit(self.scene(d, "%d.tif" % i))).id for i in range(5)]
        found, page = [], client.jobs(limit=2, brief=True)
        while page:
            found += page
            page = client.jobs(limit=2, brief=True, before=page[-1])
        self.assertEqual([job.id for job in found], ids[::-1])
        self.assertEqual({job.report for job in found}, {None})
        self.assertIsNotNone(client.job(ids[0]).report)

    def test_products_are_made_again(self):
        d = self.daemon()
        client = self.client(d)
        d.drop("a.tif")
        first = client.job(d.wait_job("a.tif", "successful")["id"])
        archive = client.info()["archive"]
        wait_for(lambda: client.job(first.id).input.startswith(archive))
        self.assertEqual(client.again(first, dry_run=True).id, first.id)
        self.assertEqual(len(client.jobs()), 1)
        second = client.again(first, priority=3)
        self.assertEqual((second.priority, second.raw["again_of"]), (3, first.id))
        self.assertEqual(client.wait(second).products[0].path, first.products[0].path)

    def test_info_and_metrics_are_read(self):
        d = self.daemon()
        client = self.client(d)
        self.assertEqual(client.info()["pid"], d.process.pid)
        self.assertIn("pushbroom_build_info", client.metrics())

    def test_wheel_holds_the_package(self):
        """Built without network, where this interpreter has pip and setuptools."""
        probe = subprocess.run([sys.executable, "-c", "import setuptools, pip, wheel"], stderr=subprocess.PIPE, text=True)
        if probe.returncode != 0:
            self.skipTest("skipped: this Python lacks pip, setuptools or wheel")
        d = self.daemon(start=False)
        source, out = d.root / "package", d.root / "wheel"
        subprocess.run(["cp", "-r", PACKAGE, source], check=True)
        subprocess.run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index", "--no-build-isolation",
                        "--wheel-dir", out, source], check=True)
        wheel, = out.iterdir()
        self.assertRegex(wheel.name, r"pushbroom_client-[0-9.]+-py3-none-any\.whl$")
        names = zipfile.ZipFile(wheel).namelist()
        for name in ("__init__.py", "client.py", "connection.py", "errors.py", "types.py", "py.typed"):
            self.assertIn("pushbroom_client/" + name, names)

    def test_package_runs_on_python_3_9(self):
        """Its syntax, by the grammar of that version."""
        import ast
        for file in (PACKAGE / "src/pushbroom_client").glob("*.py"):
            ast.parse(file.read_text(), feature_version=(3, 9))


if __name__ == "__main__":
    main(workers=3)
