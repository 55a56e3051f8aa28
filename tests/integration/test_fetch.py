#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: sanitized slow
"""Nodes without a common file system: inputs are fetched by mutual TLS, products are brought home, and home publishes them once."""
import json
import os
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from daemon_kit import BIN, wait_for  # noqa: E402
from fetch_kit import PIPELINES, FetchCase, make_authority, make_certificate  # noqa: E402
from pbtest import main  # noqa: E402

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


class Fetch(FetchCase):
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
        """The node that computed does not receive the report of home."""
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
        """Only home can find out whether the run has published."""
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
        """Makes the file of a day."""
        path = self.common / f"T1_202606{day:02}.tif"
        subprocess.run([BIN / "make_scene", "--size", "300x300", "--bands", "1", "--seed", str(day), path], check=True)
        return path

    def sources(self, node, n):
        """Waits for n successful jobs of the scene. Returns the names of the files from which the products were made."""
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
        """Both nodes watch one inbox; each has directories that the other does not see."""
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


if __name__ == "__main__":
    main()
