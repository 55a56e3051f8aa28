#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: threads
"""Services and commands of several machines on one directory of products, whose locks do not reach each other
(local_locks.c), and kill -9 while they publish: no job is disturbed, every scene has its rows once, and nothing is left."""
import csv
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "proof")]
import control  # noqa: E402, of tests/proof
from daemon_kit import BIN, Daemon, DaemonCase, wait_for
from patience import run_to_end
from pbtest import main
from postgres_kit import Node, Postgres

LOCAL_LOCKS = BIN / "local_locks.so"
CONFIG = """service:
  inbox: {root}/inbox
  work: {root}/work
  products: {products}
  quarantine: {root}/quarantine
  state: {root}/state
  socket: {root}/s.sock
  settle: 150ms
  rescan: 500ms
  parallel_jobs: 2
  max_attempts: 100
  keep_jobs: 10000
  products_mode: "0640"
compute: {{device: cpu, threads: 1}}
pipelines:
  p:
    input: {{match: ["*.tif"], bands: {{R: 1}}}}
    steps: [{{math: {{bands: {{C: "where(R >= 0, 1, 0)"}}}}}}]
    products:
      - zones: {{by: C, bands: [R], append: all.csv}}
      - stac: {{datetime: file-time, collection: c}}
"""


def runs(pid):
    try:
        return not re.search(r"^State:\s+[ZX]", pathlib.Path("/proc", str(pid), "status").read_text(), re.M)
    except (FileNotFoundError, ProcessLookupError):
        return False


def is_stopped(pid):
    try:
        return "State:\tT" in pathlib.Path("/proc", str(pid), "status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


class SharedProducts(DaemonCase):
    def setUp(self):
        if not LOCAL_LOCKS.exists():
            self.skipTest("a sanitizer and a preloaded library do not go together")
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="pb-shared-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.products = self.folder / "products"
        run_to_end([str(BIN / "make_scene"), "--size", "64x64", "--compress", "NONE", str(self.folder / "scene.tif")],
                   stdout=subprocess.DEVNULL)
        self.pixels = (self.folder / "scene.tif").read_bytes()

    def environment(self, host):
        return {"LD_PRELOAD": str(LOCAL_LOCKS), "PB_HOST": host}

    def service(self, host):
        d = Daemon(fake=False)
        self.addCleanup(d.remove)
        d.config.write_text(CONFIG.format(root=d.root, products=self.products))
        d.host = host
        return d.start(env=self.environment(host))

    def scene(self, path):
        """Each has other bytes after its pixels, so that its content is its own."""
        path.write_bytes(self.pixels + path.name.encode())

    def drop(self, d, name):
        self.scene(d.root / ("." + name))
        os.rename(d.root / ("." + name), d.root / "inbox" / name)

    def check(self, scenes, is_swept=True):
        with open(self.products / "all.csv", newline="") as file:
            rows = [row["scene"] for row in csv.DictReader(file)]
        self.assertEqual(sorted(set(rows)), sorted(scenes))
        self.assertEqual(len(rows), len(scenes) * rows.count(scenes[0]), "rows of a scene are there once")
        extent = json.loads((self.products / "collection.json").read_text())["extent"]["temporal"]["interval"][0]
        for scene in scenes:
            item, = (self.products / scene / "p").glob("*.stac.json")
            time = json.loads(item.read_text())["properties"]["datetime"]
            self.assertTrue(extent[0] <= time <= extent[1], (extent, time))
        for name in ("all.csv", "collection.json"):
            self.assertEqual((self.products / name).stat().st_mode & 0o777, 0o640, name)
        if is_swept:
            self.assertEqual(self.hidden(), [])

    def hidden(self):
        return [p.name for p in self.products.iterdir() if p.name.startswith(".") and p.name != ".pushbroom-root"]

    def test_two_services_and_a_command_share_products(self):
        services = [self.service("one"), self.service("two")]
        inputs = self.folder / "inputs"
        inputs.mkdir()
        names = ["c%d" % i for i in range(12)]
        for name in names:
            self.scene(inputs / (name + ".tif"))
        command = subprocess.Popen([str(BIN / "pushbroom"), "run", "-c", str(services[0].config), "-o", str(self.products)] +
                                   [str(p) for p in sorted(inputs.iterdir())], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, env=dict(os.environ, **self.environment("three")))
        for i in range(12):
            for k, d in enumerate(services):
                self.drop(d, "s%d-%d.tif" % (k, i))
                names.append("s%d-%d" % (k, i))
        said = command.communicate()[1]
        self.assertEqual(command.returncode, 0, said)
        for d in services:
            d.wait_for(lambda: len([j for j in d.jobs(limit=100) if j["status"] == "successful"]) == 12)
            self.assertEqual({(j["attempts"], j["error"] is None) for j in d.jobs(limit=100)}, {(1, True)})
            self.assertEqual(d.files("quarantine"), [])
        subprocess.run([str(BIN / "pushbroom"), "run", "-c", str(services[0].config), "-o", str(self.products), "--existing",
                        "replace", str(inputs / "c0.tif")], check=True, capture_output=True)
        os.chmod(self.products / "all.csv", 0o640)  # `pushbroom run` has no products_mode
        os.chmod(self.products / "collection.json", 0o640)
        self.check(names)

    def kill(self, d):
        """The service and its workers, as the kernel would when the machine has no memory left."""
        workers = d.workers()
        d.process.send_signal(signal.SIGKILL)
        for pid in workers:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        d.exit_status()
        wait_for(lambda: not [pid for pid in workers if pathlib.Path("/proc", str(pid)).exists()])

    def test_kills_while_publishing_lose_no_rows(self):
        dice = random.Random(3)
        one, two = self.service("one"), self.service("two")
        names = []
        for round_ in range(10):
            done = len(list(self.products.glob("s0-*")))
            for i in range(3):
                for k, d in enumerate((one, two)):
                    name = "s%d-%d-%d" % (k, round_, i)
                    names.append(name)
                    self.drop(d, name + ".tif")
            wait_for(lambda: len(list(self.products.glob("s0-*"))) > done or list(self.products.glob(".s0-*")))
            for _ in range(dice.randrange(4)):  # at any place of a publication
                os.listdir(self.products)
            self.kill(one)
            one.start(env=self.environment("one"))
        for d in (one, two):
            d.wait_for(lambda: len([j for j in d.jobs(limit=100) if j["status"] == "successful"]) == 30)
        one.stop()
        one.start(env=self.environment("one"))  # sweeps
        wait_for(lambda: not [p for p in self.products.iterdir() if p.name.startswith(".")])
        self.check(names)

    def abandon(self):
        """A service that was killed while its worker, which outlives it, is about to publish, and that worker."""
        d = Daemon(fake=False)
        self.addCleanup(d.remove)
        d.config.write_text(CONFIG.format(root=d.root, products=self.products))
        stop = self.folder / "stop"
        stop.touch()
        self.environment_of = {**self.environment("one"), "PB_STOP": str(stop)}
        d.start(env=self.environment_of)
        self.drop(d, "a.tif")
        late, = wait_for(lambda: [pid for pid in d.workers() if is_stopped(pid)])
        self.addCleanup(self.end, late)
        d.process.send_signal(signal.SIGKILL)
        d.exit_status()
        self.assertTrue(is_stopped(late))
        return d, late

    def end(self, pid):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def proceed(self, pid):
        """Continues the worker and waits for its end."""
        os.kill(pid, signal.SIGCONT)
        wait_for(lambda: not runs(pid))

    def manifest(self):
        return json.loads((self.products / "a/p/.pushbroom.json").read_text())

    def test_abandoned_worker_and_its_successor(self):
        d, late = self.abandon()
        d.start(env=self.environment_of)
        job = d.wait_job("a.tif", "successful")
        before = (self.products / "a/p").stat()
        self.assertEqual((self.manifest()["job"], self.manifest()["epoch"]), (job["id"], 2))
        self.proceed(late)
        after = (self.products / "a/p").stat()
        self.assertEqual((after.st_ino, after.st_mtime_ns), (before.st_ino, before.st_mtime_ns))
        self.assertEqual(self.manifest()["epoch"], 2)
        d.stop()
        d.start(env=self.environment_of)  # sweeps
        wait_for(lambda: not [p for p in self.products.iterdir() if p.name.startswith(".")])
        self.check(["a"])

    def test_abandoned_worker_of_a_failed_job(self):
        d, late = self.abandon()
        d.config.write_text(d.config.read_text().replace('"*.tif"', '"*.other"').replace("  p:\n", "  q:\n"))
        d.start(env=self.environment_of)
        d.wait_job("a.tif", "failed")
        self.proceed(late)
        self.assertEqual([p.name for p in self.products.iterdir() if not p.name.startswith(".")], [])
        self.assertEqual(d.jobs()[0]["status"], "failed")

    def node(self, name, postgres, lease):
        node = Node(name, postgres, self.folder, lease=lease, fake=False)
        self.addCleanup(node.remove)
        text = node.config.read_text()
        shared = re.search(r"  node: .*\n  store: .*\n", text).group()
        node.config.write_text(CONFIG.format(root=node.root, products=self.products).replace("  settle:", shared + "  settle:").replace(
            "  p:\n", "  p:\n    output: {exists: replace}\n"))
        node.faults = control.Faults(node.root / "faults", BIN / "pbfault.so")
        node.environment = dict(node.faults.environment(), PB_HOST=name)
        node.environment["LD_PRELOAD"] += f":{LOCAL_LOCKS}"
        return node

    def late_writer(self, path):
        """Stops a node and its writer for longer than the lease while the writer makes this path visible. Another node ends the job and
        publishes another input of the scene; the late writer must not change those products."""
        run_to_end([str(BIN / "make_scene"), "--size", "96x96", "--compress", "NONE", str(self.folder / "large.tif")], stdout=subprocess.DEVNULL)
        postgres = Postgres(self)
        a, b = self.node("a", postgres, "5s"), self.node("b", postgres, "5s")
        rule = a.faults.rule("rename", control.HANG, role="worker", path=path)
        a.start(env=a.environment)
        self.drop(a, "s.tif")
        wait_for(lambda: a.faults.counts(rule)[1] > 0)
        late, = a.workers()
        for pid in (a.process.pid, late):
            os.kill(pid, signal.SIGSTOP)
            self.addCleanup(self.end, pid)
        b.start(env=b.environment)
        self.drop(b, "t.tif")
        b.wait_job("t.tif", "successful")
        self.assertEqual(b.wait_job("s.tif", "successful")["node"], "b")
        self.check(["s", "t"], is_swept=False)
        shutil.copy(self.folder / "large.tif", b.root / "s.tif")
        os.rename(b.root / "s.tif", b.root / "inbox/s.tif")
        b.wait_for(lambda: [j["status"] for j in b.jobs()] == ["successful"] * 3)
        self.check(["s", "t"], is_swept=False)
        names = ["all.csv", "collection.json", "s/p/.pushbroom.json"]
        before = [(self.products / name).read_bytes() for name in names]
        a.faults.set_mode(rule, control.OFF)
        for pid in (a.process.pid, late):
            os.kill(pid, signal.SIGCONT)
        for words in ("the result of run 1 is dropped", "ended the session of this node"):
            wait_for(lambda: words in a.log_text())
        self.assertEqual([(self.products / name).read_bytes() for name in names], before)
        self.drop(a, "u.tif")
        a.wait_for(lambda: [j["status"] for j in a.jobs()] == ["successful"] * 4)
        a.stop()
        a.start(env=a.environment) # sweeps
        wait_for(lambda: not self.hidden())
        self.check(["s", "t", "u"])
        self.assertEqual(before[0].splitlines(), (self.products / "all.csv").read_bytes().splitlines()[:-1])

    def test_late_writer_of_products_changes_nothing(self):
        self.late_writer("/products/s")

    def test_late_writer_of_a_series_changes_nothing(self):
        self.late_writer("/products/all.csv")

    def test_late_writer_of_a_collection_changes_nothing(self):
        self.late_writer("/products/collection.json")


if __name__ == "__main__":
    main(workers=3)
