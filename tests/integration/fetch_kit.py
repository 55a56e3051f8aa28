# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Nodes without a common file system: each has directories of its own, and a pushbroom-fetch."""
import contextlib
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

import test_nodes
from daemon_kit import BIN, Daemon, DaemonCase
from patience import finish, run_to_end, wait_for
from postgres_kit import Node, Postgres


def openssl(*arguments, cwd):
    done = run_to_end(["openssl", *arguments], cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout


PORT = 8447
KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]


def make_authority(folder, name="ca"):
    folder.mkdir(parents=True, exist_ok=True)
    openssl("req", "-x509", *KEY, "-days", "30", "-subj", "/CN=" + name, "-keyout", name + ".key", "-out", name + ".crt", cwd=folder)


def make_certificate(folder, node, ca="ca", days="30"):
    openssl("req", "-new", *KEY, "-subj", "/CN=" + node, "-addext", "subjectAltName=DNS:" + node, "-keyout", node + ".key", "-out", node + ".csr", cwd=folder)
    openssl("x509", "-req", "-in", node + ".csr", "-CA", ca + ".crt", "-CAkey", ca + ".key", "-CAcreateserial", "-days", days,
            "-copy_extensions", "copy", "-out", node + ".crt", cwd=folder)


def own_address():
    """An address of the loopback that no other test has: the port is free there."""
    return "127.%d.%d.%d" % (random.randint(1, 254), random.randint(0, 255), random.randint(1, 254))


class Line(threading.Thread):
    """A network link to an address. It counts the bytes of both directions, and can be cut, stopped or slowed (bytes a second).

    answers_go_on: while it is cleared, bytes from the other side (the home of a job) are held back."""

    def __init__(self, target):
        super().__init__(daemon=True)
        self.target, self.listener = target, socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.pairs, self.bytes, self.cut_after, self.stop_after, self.is_up, self.rate = [], 0, None, None, True, None
        self.goes_on, self.answers_go_on = threading.Event(), threading.Event()
        self.answers_go_on.set()
        self.start()

    def run(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection((self.target, PORT)) if self.is_up else None
            except OSError:
                far = None
            if far is None:
                near.close()
                continue
            self.pairs.append((near, far))
            for source, sink, gate in ((near, far, None), (far, near, self.answers_go_on)):
                threading.Thread(target=self.carry, args=(source, sink, gate), daemon=True).start()

    def carry(self, source, sink, gate):
        try:
            while data := source.recv(65536):
                self.bytes += len(data)
                if self.cut_after is not None and self.bytes >= self.cut_after:
                    self.cut_after = None
                    self.cut()
                    return
                if self.stop_after is not None and self.bytes >= self.stop_after:
                    self.goes_on.wait()
                if gate is not None:
                    gate.wait()
                if self.rate is not None:
                    time.sleep(len(data) / self.rate)
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError: # a reset ends both sides, as without this link
            for end in (source, sink):
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def cut(self):
        """Ends all connections."""
        pairs, self.pairs = self.pairs, []
        for pair in pairs:
            for end in pair:
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
                end.close()

    def close(self):
        self.listener.close()
        self.goes_on.set()
        self.answers_go_on.set()
        self.cut()


class FetchNode(Node):
    """line: other nodes reach it over a Line."""

    def __init__(self, name, postgres, common, certificates, **settings):
        self.certificates, self.address, self.fetcher = certificates, own_address(), None
        self.line = Line(self.address)
        super().__init__(name, postgres, common, **settings)

    def write_config(self, **settings):
        super().write_config(**settings)
        keys = self.certificates
        self.change(f"  products: {self.common}/products\n",
                    f"  products: {self.root}/products\n  fetch:\n    listen: {self.address}:{PORT}\n    address: 127.0.0.1:{self.line.port}\n"
                    f"    certificate: {keys}/{self.name}.crt\n    key: {keys}/{self.name}.key\n    ca: {keys}/ca.crt\n"
                    f"    socket: {self.root}/f.sock\n")

    def start_fetcher(self):
        with open(self.root / "fetch.log", "ab") as log:
            self.fetcher = subprocess.Popen([BIN / "pushbroom-fetch", "--config", self.config], stderr=log, stdin=subprocess.DEVNULL)
        wait_for(lambda: self.fetcher.poll() is not None or (self.root / "f.sock").exists())
        assert self.fetcher.poll() is None, self.fetch_log()

    def fetch_log(self):
        return (self.root / "fetch.log").read_text(errors="replace")

    def stop_fetcher(self, number=signal.SIGTERM):
        if self.fetcher is not None and self.fetcher.poll() is None:
            self.fetcher.send_signal(number)
            finish(self.fetcher)

    def copies(self):
        """Directories of fetched files."""
        folder = pathlib.Path(self.root / "work/.fetched")
        return sorted(p.name for p in folder.iterdir()) if folder.is_dir() else []

    def remove(self):
        self.stop_fetcher()
        self.line.close()
        log = self.fetch_log() if (self.root / "fetch.log").exists() else ""
        super().remove()
        for word in ("Sanitizer", "runtime error:"):
            assert word not in log, log


PIPELINES = """pipelines:
  plain:
    input:
      match: ["*.tif"]
      bands: {R: 1}
    products:
      - cog: {bands: [R]}
      - quicklook: {bands: [R], size: 64}
      - statistics: {}
      - stac: {datetime: "2024-01-01T00:00:00Z"}
"""


class FetchCase(DaemonCase):
    """Tests with nodes that send each other files; each node has directories of its own."""
    wait_all, ends, check_once = test_nodes.Nodes.wait_all, test_nodes.Nodes.ends, test_nodes.Nodes.check_once

    def fetch_nodes(self, *names, env=None, **settings):
        self.postgres = Postgres(self)
        self.common = pathlib.Path(tempfile.mkdtemp(prefix="pb-common-"))
        self.common.chmod(0o755)
        self.addCleanup(shutil.rmtree, self.common, True)
        self.keys = self.common / "keys"
        make_authority(self.keys)
        nodes = []
        for name in names:
            make_certificate(self.keys, name)
            node = FetchNode(name, self.postgres, self.common, self.keys, fake=False, lease="30s", **settings)
            node.set_pipelines(PIPELINES)
            self.addCleanup(node.remove)
            nodes.append(node)
        for node in nodes:
            node.start(env=env)
            node.start_fetcher()
        self.wait_all(nodes)
        return nodes

    def scene(self, size, *more):
        path = self.common / f"scene{size}.tif"
        subprocess.run([BIN / "make_scene", "--size", f"{size}x{size}", "--compress", "NONE", *more, path], check=True)
        return path

    @contextlib.contextmanager
    def busy(self, node):
        """In here the node's only slot has a job that does not end: others run its jobs."""
        stopped = wait_for(node.workers)
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        wait_for(lambda: all(map(test_nodes.is_stopped, stopped)))
        node.drop_copy(self.scene(64), "busy.tif")
        self.assertEqual(node.wait_job("busy.tif", "running")["node"], node.name)
        try:
            yield "busy.tif"
        finally:
            for pid in stopped:
                with contextlib.suppress(ProcessLookupError): # it ended with its service
                    os.kill(pid, signal.SIGCONT)

    def products(self, node, scene):
        """Bytes of the products; without what names the run."""
        found = {}
        for file in sorted((node.root / "products" / scene / "plain").iterdir()):
            data = file.read_bytes()
            if file.name == ".pushbroom.json":
                continue
            if file.suffix == ".json" and b'"Feature"' in data:
                item = json.loads(data)
                for key in ("created", "updated", "processing:datetime"):
                    item["properties"].pop(key, None)
                data = json.dumps(item, sort_keys=True).encode().replace(str(node.root).encode(), b"")
            found[file.name] = data
        return found

    def single(self, scene, name):
        """Products of the same scene by one service alone."""
        daemon = Daemon(fake=False)
        self.addCleanup(daemon.remove)
        daemon.set_pipelines(PIPELINES)
        daemon.start()
        daemon.drop_copy(scene, name)
        daemon.wait_job(name, "successful")
        return self.products(daemon, name[:-4])

    def check_fetched(self, home, away, scene, name):
        job = away.wait_job(name, "successful")
        self.assertEqual(job["node"], away.name)
        self.assertEqual(self.products(home, name[:-4]), self.single(scene, name))
        self.assertTrue(all(p["path"].startswith(f"{home.root}/products/") for p in job["products"]), job["products"])
        self.assertFalse((away.root / "products" / name[:-4]).exists())
        wait_for(lambda: away.copies() == [])
        wait_for(lambda: name in home.files("work/done"))
        self.assertEqual([f for f in os.listdir(home.root / "products") if f.endswith(".tmp")], [])
        events = self.postgres.rows("SELECT kind FROM pushbroom.events e WHERE data::json->'job'->>'name' = '%s'" % name)
        self.assertEqual(events.count(("job.successful",)), 1, events)
        return job

    def cancel(self, node, job):
        node.call("job.cancel", id=job["id"])

    def drain(self, node):
        subprocess.run([BIN / "pushbroom", "drain", "--socket", node.root / "s.sock"], check=True)

    def check_nothing_left(self, home, away):
        wait_for(lambda: away.copies() == [])
        wait_for(lambda: not [f for f in os.listdir(home.root / "products") if f.endswith(".tmp") or ".tmp." in f])
