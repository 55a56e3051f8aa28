#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: sanitized slow
"""Nodes without a common file system: inputs are fetched by mutual TLS, products are brought home, and home publishes them once."""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import test_nodes  # noqa: E402
from daemon_kit import BIN, Daemon, DaemonCase, wait_for  # noqa: E402
from fetch_kit import PORT, FetchNode, make_authority, make_certificate  # noqa: E402
from patience import PATIENCE_S, Patience, children  # noqa: E402
from pbtest import main  # noqa: E402
from postgres_kit import Postgres  # noqa: E402

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


MONTHS = """pipelines:
  plain:
    input: {match: ["busy*.tif"], bands: {R: 1}}
    products: [statistics: {}]
  month:
    input:
      group: 'T(?<tile>\\d)_(?<date>\\d{8})\\.tif'
      by: "T{tile}_{date:%Y%m}"
      order: date
      files:
        S_1: {match: "*.tif", nth: 1}
        S_2: {match: "*.tif", nth: 2, optional: true}
      grid: S_1
      complete: {expire: 200ms, reopen: 90d}
    steps:
      - composite: {method: mean, bands: [S], of: [_1, _2]}
    products:
      - cog: {bands: [S], type: float32}
"""


class Fetch(DaemonCase):
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

    def test_fetched_scene_has_the_same_products(self):
        a, b = self.fetch_nodes("a", "b")
        scene = self.scene(700)
        with self.busy(a) as busy:
            a.drop_copy(scene, "s1.tif")
            self.check_fetched(a, b, scene, "s1.tif")
        a.wait_job(busy, "successful")
        rows = self.postgres.rows("SELECT position('\"Feature\"' IN data) > 0 FROM pushbroom.events WHERE kind = 'product.published'"
                                  " AND data LIKE '%/s1/plain/%'")
        self.assertEqual(rows.count(("t",)), 1, rows) # the event of the STAC product has the item

    def test_lost_connection_is_made_again(self):
        """While the input is copied, and while the products are brought home."""
        a, b = self.fetch_nodes("a", "b")
        scene = self.scene(700)
        with self.busy(a):
            a.line.cut_after = 300000
            a.drop_copy(scene, "s1.tif")
            self.check_fetched(a, b, scene, "s1.tif")
            self.assertIsNone(a.line.cut_after)
            a.line.cut_after = a.line.bytes + scene.stat().st_size + 100000
            a.drop_copy(scene, "s2.tif")
            self.check_fetched(a, b, scene, "s2.tif")
            self.assertIsNone(a.line.cut_after)
        self.assertEqual(a.log_text().count("products of node b are published"), 2)

    def test_job_waits_for_a_home_that_cannot_be_reached(self):
        a, b = self.fetch_nodes("a", "b", env={"PUSHBROOM_TEST_SHUN_MS": "1000"})
        scene = self.scene(300)
        with self.busy(a):
            a.line.is_up = False
            a.drop_copy(scene, "s1.tif")
            self.assertIn("node a", b.wait_trouble("fetch", "s1.tif")["message"])
            self.assertEqual(b.trouble("fetch")["code"], "input.fetch")
            wait_for(lambda: b.copies() == [])
            a.line.is_up = True
            self.check_fetched(a, b, scene, "s1.tif")
            wait_for(lambda: not b.trouble("fetch"))

    def test_foreign_certificate_is_refused(self):
        a, b = self.fetch_nodes("a", "b", env={"PUSHBROOM_TEST_SHUN_MS": "1000"})
        scene = self.scene(300)
        make_authority(self.keys, "other")
        make_certificate(self.keys, "b", "other")
        with self.busy(a):
            a.drop_copy(scene, "s1.tif")
            b.wait_trouble("fetch", "s1.tif")
            wait_for(lambda: "a connection was refused" in a.fetch_log())
            self.assertNotIn("fetches s1.tif", a.log_text())
            make_certificate(self.keys, "b") # used without a restart
            self.check_fetched(a, b, scene, "s1.tif")

    def test_slow_link_is_no_stall(self):
        a, b = self.fetch_nodes("a", "b", stall="6s")
        scene = self.scene(300)
        with self.busy(a):
            a.write_config(stall="1h") # its stopped worker
            a.set_pipelines(PIPELINES)
            a.process.send_signal(signal.SIGHUP)
            wait_for(lambda: "is in use" in a.log_text())
            a.line.rate = scene.stat().st_size / 15
            a.drop_copy(scene, "s1.tif")
            job = self.check_fetched(a, b, scene, "s1.tif")
            self.assertEqual(job["attempts"], 1)

    def test_killed_node_leaves_no_copies(self):
        a, b = self.fetch_nodes("a", "b")
        scene = self.scene(700)
        with self.busy(a) as busy:
            a.line.stop_after = 300000
            a.drop_copy(scene, "s1.tif")
            wait_for(lambda: b.copies() != [] and a.line.bytes >= 300000)
            b.stop(signal.SIGKILL)
            keep = b.root / "work/.fetched/mine"
            keep.mkdir()
            a.line.stop_after = None
            a.line.goes_on.set()
            b.start()
            wait_for(lambda: [c for c in b.copies() if not c.endswith(".2")] == ["mine"])
            b.wait_job("s1.tif", "successful")
        a.wait_job(busy, "successful")
        self.assertEqual(self.products(a, "s1"), self.single(scene, "s1.tif"))
        wait_for(lambda: b.copies() == ["mine"])
        self.check_once(["busy.tif", "s1.tif"])

    def test_late_products_are_refused(self):
        """The job is taken away while its products are brought home."""
        a, b = self.fetch_nodes("a", "b")
        scene = self.scene(700)
        with self.busy(a) as busy:
            a.line.stop_after = scene.stat().st_size + 100000
            a.drop_copy(scene, "s1.tif")
            wait_for(lambda: a.line.bytes >= a.line.stop_after)
            self.assertEqual(b.wait_job("s1.tif", "running")["node"], "b")
            self.postgres.rows("UPDATE pushbroom.nodes SET session = 0 WHERE node = 'b'")
            wait_for(lambda: "ended the session of this node" in b.log_text())
            a.line.stop_after = None
            a.line.goes_on.set()
            job = b.wait_job("s1.tif", "successful")
        a.wait_job(busy, "successful")
        self.assertEqual(self.postgres.rows("SELECT epoch > 1 FROM pushbroom.jobs WHERE id = '%s'" % job["id"]), [("t",)])
        self.assertEqual(a.log_text().count("products of node b are published"), 1)
        self.assertEqual(self.products(a, "s1"), self.single(scene, "s1.tif"))
        self.check_once(["busy.tif", "s1.tif"])

    def cancel(self, node, job):
        node.call("job.cancel", id=job["id"])

    def drain(self, node):
        subprocess.run([BIN / "pushbroom", "drain", "--socket", node.root / "s.sock"], check=True)

    def check_nothing_left(self, home, away):
        wait_for(lambda: away.copies() == [])
        wait_for(lambda: not [f for f in os.listdir(home.root / "products") if f.endswith(".tmp") or ".tmp." in f])

    def test_cancel_wins_while_products_travel(self):
        a, b = self.fetch_nodes("a", "b")
        scene = self.scene(700)
        with self.busy(a):
            a.line.stop_after = scene.stat().st_size + 100000
            a.drop_copy(scene, "s1.tif")
            wait_for(lambda: a.line.bytes >= a.line.stop_after)
            job = wait_for(lambda: [j for j in b.jobs() if j["name"] == "s1.tif" and j["stage"] == "publish"])[0]
            self.cancel(a, job) # home has no free slot
            ended = a.wait_job("s1.tif", "dismissed")
            self.assertEqual((ended["error"]["code"], ended["error"]["message"]), ("job.dismissed", "cancelled on request"))
            a.line.stop_after = None
            a.line.goes_on.set()
            self.check_nothing_left(a, b)
            a.drop_copy(scene, "s2.tif") # the node takes other jobs
            self.check_fetched(a, b, scene, "s2.tif")
        self.assertFalse((a.root / "products/s1").exists())
        self.assertEqual(a.log_text().count("products of node b are published"), 1)
        wait_for(lambda: "s1.tif" in os.listdir(a.root / "quarantine"))
        kinds = self.postgres.rows("SELECT kind FROM pushbroom.events WHERE data::json->'job'->>'name' = 's1.tif' ORDER BY seq")
        self.assertEqual([k for k, in kinds if k in ("job.dismissed", "job.successful", "job.failed")], ["job.dismissed"])

    def test_cancel_comes_too_late_for_published_products(self):
        """The report of home does not reach the node that computed."""
        a, b = self.fetch_nodes("a", "b")
        scene = self.scene(700)
        with self.busy(a) as busy:
            a.line.stop_after = scene.stat().st_size + 100000
            a.drop_copy(scene, "s1.tif")
            wait_for(lambda: a.line.bytes >= a.line.stop_after)
            job = wait_for(lambda: [j for j in b.jobs() if j["name"] == "s1.tif" and j["stage"] == "publish"])[0]
            a.line.answers_go_on.clear()
            a.line.stop_after = None
            a.line.goes_on.set()
            wait_for(lambda: "products of node b are published" in a.log_text())
            self.cancel(b, job)
            ended = a.wait_job("s1.tif", "successful")
            self.assertEqual(ended["error"], None)
            self.assertIn("the cancel was too late", a.log_text())
            a.line.answers_go_on.set()
            self.check_nothing_left(a, b)
        a.wait_job(busy, "successful")
        self.assertEqual(self.products(a, "s1"), self.single(scene, "s1.tif"))
        self.check_once(["busy.tif", "s1.tif"])

    def test_cancel_waits_for_a_home_that_is_away(self):
        """Only home sees whether it has published."""
        a, b = self.fetch_nodes("a", "b")
        scene = self.scene(700)
        with self.busy(a):
            a.line.stop_after = scene.stat().st_size + 100000
            a.drop_copy(scene, "s1.tif")
            wait_for(lambda: a.line.bytes >= a.line.stop_after)
            job = wait_for(lambda: [j for j in b.jobs() if j["name"] == "s1.tif" and j["stage"] == "publish"])[0]
            a.stop(signal.SIGKILL)
            self.postgres.rows("UPDATE pushbroom.nodes SET session = 0 WHERE node = 'a'")
            self.cancel(b, job)
            waiting = b.wait_job("s1.tif", "accepted")
            self.assertEqual(waiting["error"]["code"], "job.dismissed")
            self.assertIn("node a", waiting["error"]["message"])
            wait_for(lambda: b.copies() == [])
            a.line.stop_after = None
            a.line.goes_on.set()
        a.start()
        self.assertEqual(a.wait_job("s1.tif", "dismissed")["error"]["message"], "cancelled on request")
        self.assertFalse((a.root / "products/s1").exists())
        self.check_nothing_left(a, b)

    def set_months(self, node, inboxes=None):
        text = node.config.read_text().split("pipelines:")[0]
        if inboxes is not None:
            text = text.replace(f"  inbox: {node.root}/inbox\n", f"  inboxes: {inboxes}\n")
        node.config.write_text(text + MONTHS)

    def month(self, node, day):
        """The file of a day."""
        path = self.common / f"T1_202606{day:02}.tif"
        subprocess.run([BIN / "make_scene", "--size", "300x300", "--bands", "1", "--seed", str(day), path], check=True)
        return path

    def sources(self, node, n):
        """Names of the files that the products were made of, when n jobs of the scene are successful."""
        name = "T1_202606"
        node.wait_for(lambda: len([j for j in node.jobs() if (j["name"], j["status"]) == (name, "successful")]) == n)
        manifest = json.loads((node.root / f"products/{name}/month/.pushbroom.json").read_text())
        return sorted({file["file"] for file in manifest["input"]["files"]})

    def test_parts_of_a_scene_are_fetched_together(self):
        a, b = self.fetch_nodes("a", "b")
        for node in (a, b):
            self.set_months(node)
            node.process.send_signal(signal.SIGHUP)
            wait_for(lambda: "is in use" in node.log_text())
        files = [self.month(a, day) for day in (1, 2)]
        a.drop_copy(files[0])
        self.assertEqual(self.sources(a, 1), [files[0].name])
        with self.busy(a):
            a.drop_copy(files[1])
            self.assertEqual(self.sources(a, 2), [file.name for file in files])
        self.assertEqual({j["node"] for j in a.jobs() if j["name"] == "T1_202606"}, {"a", "b"})

    def test_parts_on_several_nodes_are_refused(self):
        """One inbox that two nodes see, and directories that they do not."""
        a, b = self.fetch_nodes("a", "b")
        inbox = self.common / "inbox"
        inbox.mkdir()
        for node in (a, b):
            node.stop()
            self.set_months(node, f"[{{path: {inbox}, node: a}}]")
        for node in (a, b):
            node.start()
        self.wait_all([a, b])
        first, second = self.month(a, 1), self.month(a, 2)
        def drop(file):
            shutil.copy(file, self.common / "part")
            os.rename(self.common / "part", inbox / file.name)
        drop(first)
        self.assertEqual(self.sources(a, 1), [first.name])
        self.drain(a)
        drop(second)
        failed = b.wait_job("T1_202606", "failed")
        self.assertEqual((failed["node"], failed["error"]["code"]), ("b", "input.gone"))
        self.assertIn(f"earlier files are on node a, in {a.root}/", failed["error"]["message"])
        self.assertIn("inbox of that node", failed["error"]["hint"])
        wait_for(lambda: any(f.endswith(second.name) for f in b.files("quarantine")))
        self.assertEqual(self.sources(a, 1), [first.name])
        self.assertEqual(b.files("products"), [])

    def test_store_check_names_faults_of_certificates(self):
        a, = self.fetch_nodes("a")

        def check():
            done = subprocess.run([BIN / "pushbroom", "store", "check", "--json", "-c", a.config], stdout=subprocess.PIPE, text=True)
            return {p["name"]: (p["grade"], p["text"]) for p in map(json.loads, done.stdout.splitlines())}

        def is_found(name, grade, words):
            found = check().get(name, ("", ""))
            return found[0] == grade and words in found[1]
        names = ("certificate name", "certificate", "certificate signer", "authority", "key pair")
        found = check()
        self.assertEqual([found[name][0] for name in names], ["fine", "note", "fine", "note", "fine"], found) # 30 days
        self.assertNotIn("key", found)
        self.assertIn("server", found) # point about the database
        (self.keys / "a.key").chmod(0o644)
        self.assertTrue(is_found("key", "mend", "chmod 0400"), check())
        (self.keys / "a.key").chmod(0o600)
        make_certificate(self.keys, "b")
        os.rename(self.keys / "a.crt", self.keys / "own.crt")
        shutil.copy(self.keys / "b.crt", self.keys / "a.crt")
        self.assertTrue(is_found("certificate name", "mend", "is for b, and this node is a"), check())
        self.assertTrue(is_found("key pair", "mend", "is not the key of"), check())
        make_authority(self.keys, "other")
        make_certificate(self.keys, "a", "other", days="300")
        self.assertTrue(is_found("certificate signer", "mend", "is not signed by"), check())
        self.assertTrue(is_found("certificate", "fine", "for 299 days"), check())
        make_certificate(self.keys, "a", days="0")
        wait_for(lambda: is_found("certificate", "mend", "has expired"))
        self.assertTrue(is_found("certificate signer", "fine", ""), check())
        (self.keys / "ca.crt").unlink()
        self.assertTrue(is_found("authority", "mend", "cannot be read"), check())

    def test_node_without_space_leaves_the_job(self):
        a, b = self.fetch_nodes("a", "b")
        scene = self.scene(300)
        b.change("  settle:", "  retention: {min_free: 1000TiB}\n  settle:")
        b.process.send_signal(signal.SIGHUP)
        wait_for(lambda: "is in use" in b.log_text())
        with self.busy(a):
            a.drop_copy(scene, "s1.tif")
            wait_for(lambda: "service.space" in b.log_text() and b.copies() == [])
            self.assertFalse([j for j in b.jobs() if j["status"] == "failed"])
        self.assertEqual(a.wait_job("s1.tif", "successful")["node"], "a")
        self.check_once(["busy.tif", "s1.tif"])

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
            os.kill(b.workers()[0], signal.SIGSEGV)
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
