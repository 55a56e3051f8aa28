#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: sanitized slow
"""Services that share a PostgreSQL store: each runs the jobs of all, and what one leaves the others finish."""
import collections
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import stac_rules  # noqa: E402
from daemon_kit import BIN, DaemonCase, RpcError, can_mount, wait_for  # noqa: E402
from patience import finish  # noqa: E402
from pbtest import DATA, Skip, main  # noqa: E402
from postgres_kit import Node, Postgres  # noqa: E402


def is_stopped(pid):
    tasks = pathlib.Path("/proc", str(pid), "task")
    return all(stat.read_text().rpartition(")")[2].split()[0] == "T" for stat in tasks.glob("*/stat"))


class Nodes(DaemonCase):
    def nodes(self, *names, start=True, **settings):
        self.postgres = Postgres(self)
        self.common = pathlib.Path(tempfile.mkdtemp(prefix="pb-common-"))
        self.common.chmod(0o755)
        self.addCleanup(shutil.rmtree, self.common, True)
        self.addCleanup(stac_rules.check_all, self.common / "products")
        nodes = []
        for name in names:
            node = Node(name, self.postgres, self.common, **settings)
            self.addCleanup(node.remove)
            nodes.append(node)
        for node in nodes if start else []:
            node.start()
        if start:
            self.wait_all(nodes)
        return nodes

    def wait_all(self, nodes):
        """Until each sees that all report."""
        wait_for(lambda: all(len([n for n in node.nodes().values() if n["reports"]]) == len(nodes) for node in nodes))

    def ends(self):
        """Number of final events of each scene, from the journal."""
        rows = self.postgres.rows("SELECT data::json->'job'->>'name', kind FROM pushbroom.events WHERE kind IN"
                                  " ('job.successful', 'job.failed', 'job.dismissed') ORDER BY number")
        return collections.Counter(rows)

    def check_once(self, names, kind="job.successful"):
        self.assertEqual(self.ends(), collections.Counter((name, kind) for name in names))

    def wait_archived(self, node, names):
        """Inputs of successful jobs are in the archive of the node that took them in."""
        wait_for(lambda: [f for f in node.files("work") if f.endswith(".tif")] == sorted("done/" + name for name in names))

    def wait_successful(self, node, names):
        wanted = sorted((name, "successful") for name in names)
        def done():
            try:
                return sorted((j["name"], j["status"]) for j in node.jobs()) == wanted
            except RpcError as error: # the store was away
                self.assertEqual(error.code, "service.state")
        wait_for(done)

    def wait_running(self, node, n):
        """The jobs that run, of which there are n on different nodes."""
        def running():
            jobs = [j for j in node.jobs() if j["status"] == "running"]
            return len(jobs) == n and len({j["node"] for j in jobs}) == n and jobs
        return wait_for(running)

    def test_scenes_of_one_inbox_run_on_both_nodes(self):
        a, b = self.nodes("a", "b", lease="30s")
        names = ["s%d.tif" % i for i in range(6)]
        for name in names:
            a.drop(name, "until go")
        self.wait_running(b, 2)
        (self.common / "go").touch()
        self.wait_successful(b, names)
        self.assertEqual({j["node"] for j in a.jobs()}, {"a", "b"})
        self.check_once(names)
        self.wait_archived(a, names)
        self.assertEqual([f for f in b.files("work") if f.endswith(".tif")], [])
        text = subprocess.run([BIN / "pushbroom", "status", "--socket", b.root / "s.sock"], stdout=subprocess.PIPE, text=True, check=True).stdout
        self.assertRegex(text, r"node     a: \d running, last report \d+ s ago\nnode     b \(this\): ")
        self.assertRegex(text, r"PIPELINE +NODE +INPUT")
        for action, to_mend in (("init", []), ("check", ["fsync"])):
            done = subprocess.run([BIN / "pushbroom", "store", action, "--json", "-c", a.config], stdout=subprocess.PIPE, text=True)
            points = [json.loads(line) for line in done.stdout.splitlines()]
            self.assertEqual([p["name"] for p in points if p["grade"] == "mend"], to_mend, points)
            self.assertEqual(done.returncode, 1 if to_mend else 0)

    def test_runs_of_a_lost_machine_are_swept_when_over(self):
        a, = self.nodes("a", lease="10s")
        a.drop("s1.tif", "until go")
        wait_for(lambda: [j for j in a.jobs() if j["status"] == "running"])
        job, = a.jobs()
        left = [self.common / "products" / (".s1.%s.%d.aaaaaaaaaaaa.1-1-0.tmp" % run)
                for run in ((job["id"], 1), (job["id"], 2), (job["id"][:-4] + "zzzz", 1), ("run", 0))]
        for path in left:
            path.mkdir()
            (path / ".lock").touch()
        (self.common / "go").touch()
        self.wait_successful(a, ["s1.tif"])
        a.stop()
        a.start()
        wait_for(lambda: not left[0].exists())
        self.assertEqual([path.exists() for path in left[1:]], [True] * 3) # a later run, and those that the store does not know
        for path in left[1:]:
            shutil.rmtree(path)

    def test_client_with_lost_events_lists_again(self):
        """A server that lacks the last events takes over: its timeline is another one."""
        a, = self.nodes("a", lease="10s")
        a.drop("s1.tif")
        self.wait_successful(a, ["s1.tif"])
        last = int(self.postgres.rows("SELECT seq FROM pushbroom.last_event")[0][0])
        a.stop()
        self.postgres.rows("UPDATE pushbroom.store SET generation = '1/00000001'")
        a.start()
        a.drop("s2.tif")
        self.wait_successful(a, ["s1.tif", "s2.tif"])
        gone = {n: a.call("job.watch", since=last + n)["gone"] for n in (0, 1, 5)}
        self.assertEqual(gone, {0: False, 1: True, 5: True})

    def test_watch_shows_the_jobs_of_all_nodes(self):
        a, b = self.nodes("a", "b", lease="30s")
        names = ["s1.tif", "s2.tif", "s3.tif"]
        watch = subprocess.Popen([BIN / "pushbroom", "status", "--watch", "--until-idle", "--expect", "3", "--socket", b.root / "s.sock"],
                                 stdout=subprocess.PIPE, text=True)
        for name in names:
            a.drop(name, "until go")
        self.wait_running(a, 2)
        (self.common / "go").touch()
        text, _ = finish(watch)
        self.assertEqual(sorted(line.split()[-1] for line in text.splitlines() if line.startswith("successful")), names)
        self.assertEqual({j["node"] for j in a.jobs()}, {"a", "b"})

    def test_jobs_of_a_killed_node_end_on_another(self):
        a, b = self.nodes("a", "b", lease="10s")
        names = ["s1.tif", "s2.tif", "s3.tif"]
        for name in names:
            a.drop(name, "until go")
        lost = next(j for j in self.wait_running(b, 2) if j["node"] == "a")
        a.stop(signal.SIGKILL)
        wait_for(lambda: not b.nodes()["a"]["reports"])
        wait_for(lambda: b.call("job.get", id=lost["id"])["status"] == "accepted")
        (self.common / "go").touch()
        self.wait_successful(b, names)
        self.assertEqual({j["node"] for j in b.jobs()}, {"b"})
        self.assertEqual(b.call("job.get", id=lost["id"])["attempts"], 2)
        a.start()
        self.wait_archived(a, names)
        self.check_once(names)

    def test_jobs_of_a_forgotten_node_run_elsewhere(self):
        """Also with another text of the pipeline."""
        a, b = self.nodes("a", "b", start=False, lease="3s")
        b.change("bands: {R: 1}", "bands: {R: 2}")
        for node in (a, b):
            node.start()
        self.wait_all([a, b])
        def forget(node):
            done = subprocess.run([BIN / "pushbroom", "store", "forget", node, "--json", "-c", b.config], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True)
            self.assertEqual(done.returncode, 1, done.stderr)
            lines = [json.loads(line) for line in done.stdout.splitlines()]
            return {p["name"]: (p["grade"], p["text"]) for p in lines if "name" in p}, done.stdout + done.stderr
        a.drop("bad.tif", "fail")
        wait_for(lambda: "bad.tif" in a.files("quarantine"))
        for name in ("s1.tif", "s2.tif"):
            a.drop(name, "until go")
        a.wait_job("s1.tif", "running")
        a.wait_job("s2.tif", "accepted")
        self.assertIn("node a reports", forget("a")[1])
        a.stop(signal.SIGKILL)
        wait_for(lambda: not b.nodes()["a"]["reports"])
        claim = a.root / "work" / "20200101-000000-aaaa"
        claim.mkdir()
        points, _ = forget("a")
        self.assertEqual({name: grade for name, (grade, _) in points.items()},
                         {"node": "fine", "jobs": "fine", "inputs": "fine", "quarantine": "mend", "claims": "mend"})
        self.assertIn("1 in %s have no job: move the files in %s into an inbox" % (claim.parent, claim.name), points["claims"][1])
        self.assertIn("1 inputs in %s/quarantine" % a.root, points["quarantine"][1])
        self.assertIn("2 that wait or ran", points["jobs"][1])
        self.assertIn("there is no node a", forget("a")[1])
        (self.common / "go").touch()
        for name in ("s1.tif", "s2.tif"):
            self.assertEqual(b.wait_job(name, "successful")["node"], "b")
        wait_for(lambda: list(b.nodes()) == ["b"])
        b.call("job.retry", id=b.wait_job("bad.tif", "failed")["id"])
        wait_for(lambda: self.ends()[("bad.tif", "job.failed")] == 2)
        self.assertEqual(b.wait_job("bad.tif", "failed")["input"], str(a.root / "quarantine/bad.tif"))

    def test_inbox_of_a_killed_node_is_watched_by_another(self):
        """It has claimed a file and died before it stored its job, and another node as well, which had watched its inbox."""
        a, b = self.nodes("a", "b", start=False, lease="10s")
        listed = ", ".join(f"{{path: {node.root}/inbox, node: {node.name}}}" for node in (a, b))
        for node in (a, b):
            node.change(f"  inbox: {node.root}/inbox\n", f"  inboxes: [{listed}]\n")
            node.start()
        self.wait_all([a, b])
        a.drop("s1.tif")
        self.wait_archived(a, ["s1.tif"])
        def claim(name, place):
            place.mkdir(parents=True)
            os.symlink(a.root / "inbox", place / ".from")
            (place / name).write_text("ok")
        claim("s2.tif", a.root / "work/20261121-082850-aaaa")
        claim("s0.tif", self.common / "work_of_c/20261121-082850-cccc")
        subprocess.run([BIN / "pushbroom", "drain", "--socket", a.root / "s.sock"], check=True)
        wait_for(lambda: f"begins to watch {a.root}/inbox" in b.log_text())
        self.postgres.rows("INSERT INTO pushbroom.nodes SELECT (jsonb_populate_record(n, jsonb_build_object('node', 'c', 'session', 0,"
                           f" 'place', 'c', 'work', '{self.common}/work_of_c'))).* FROM pushbroom.nodes n WHERE node = 'b'")
        self.wait_successful(b, ["s0.tif", "s1.tif"]) # node a lives, and may store the job of s2
        a.stop(signal.SIGKILL)
        self.postgres.rows("UPDATE pushbroom.nodes SET session = 0 WHERE node = 'a'") # its lease is over
        a.drop("s3.tif")
        self.wait_successful(b, ["s0.tif", "s1.tif", "s2.tif", "s3.tif"])
        a.start()
        self.assertIn(f"inbox: node b watches {a.root}/inbox", a.log_text())
        wait_for(lambda: f"leaves to another node {a.root}/inbox" in b.log_text())
        a.drop("s4.tif")
        names = ["s0.tif", "s1.tif", "s2.tif", "s3.tif", "s4.tif"]
        self.wait_successful(b, names)
        self.wait_archived(a, ["s1.tif", "s2.tif", "s4.tif"])
        self.wait_archived(b, ["s3.tif"])
        self.check_once(names)
        b.change(f"{a.root}/inbox, node: a", f"{a.root}/inbox, node: b")
        b.process.send_signal(signal.SIGHUP)
        wait_for(lambda: f"the node of inbox {a.root}/inbox needs a restart" in b.log_text())

    def test_node_that_slept_drops_its_runs(self):
        """Real workers: products of the late run would be seen."""
        nodes = self.nodes("a", "b", fake=False, lease="15s")
        subprocess.run([BIN / "make_scene", "--size", "6000x6000", "--compress", "NONE", self.common / "scene.tif"], check=True)
        names = []
        while True: # until a run is caught before its end
            names.append("scene%d.tif" % len(names))
            shutil.copy(self.common / "scene.tif", nodes[0].root / names[-1])
            os.rename(nodes[0].root / names[-1], nodes[0].root / "inbox" / names[-1])
            def begun():
                jobs = [j for node in nodes for j in node.jobs() if j["name"] == names[-1] and j["status"] != "accepted"]
                return jobs and jobs[0]
            slept = next(node for node in nodes if node.name == wait_for(begun, step=0.005)["node"])
            stopped = [slept.process.pid, *slept.workers()]
            for pid in stopped:
                os.kill(pid, signal.SIGSTOP)
            wait_for(lambda: all(map(is_stopped, stopped)))
            if ("1",) in self.postgres.rows(f"SELECT status FROM pushbroom.jobs WHERE name = '{names[-1]}'"):
                break
            for pid in stopped:
                os.kill(pid, signal.SIGCONT)
        other = next(node for node in nodes if node is not slept)
        other.wait_for(lambda: other.wait_job(names[-1], "successful")["node"] == other.name)
        products = self.common / "products" / names[-1][:-4] / "plain"
        before = {file.name: (file.stat().st_ino, file.read_bytes()) for file in products.iterdir() if file.is_file()}
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
        wait_for(lambda: "ended the session of this node" in slept.log_text())
        wait_for(lambda: slept.nodes()[slept.name]["reports"] and not slept.trouble("store"))
        nodes[0].drop_copy(self.common / "scene.tif", "after.tif")
        self.wait_successful(slept, [*names, "after.tif"])
        self.check_once([*names, "after.tif"])
        self.assertEqual({file.name: (file.stat().st_ino, file.read_bytes()) for file in products.iterdir() if file.is_file()}, before)
        self.assertEqual([f for f in os.listdir(self.common / "products") if f.endswith(".tmp")], [])

    def test_outage_of_the_store_loses_nothing(self):
        a, b = self.nodes("a", "b", lease="30s")
        a.drop("s1.tif", "until go")
        b.drop("s2.tif", "until go")
        self.wait_running(a, 2)
        last = int(self.postgres.rows("SELECT seq FROM pushbroom.last_event")[0][0])
        self.postgres.stop()
        for node in (a, b):
            node.wait_trouble("store")
        self.assertIn("runs continue", a.trouble("store")["message"])
        reply = a.call("job.watch", since=last + 1)  # the client has an event that the last picture lacks
        self.assertEqual((reply["gone"], reply["seq"]), (False, last + 1))
        a.drop("s3.tif")
        wait_for(lambda: "s3.tif stays" in a.log_text())
        (self.common / "go").touch() # the runs end, which cannot be stored
        wait_for(lambda: a.trouble("jobs") and b.trouble("jobs"))
        self.postgres.start()
        self.wait_successful(a, ["s1.tif", "s2.tif", "s3.tif"])
        for node in (a, b):
            wait_for(lambda: not node.call("service.info")["troubles"])
            self.assertNotIn("ended the session", node.log_text())
        self.check_once(["s1.tif", "s2.tif", "s3.tif"])
        self.wait_archived(a, ["s1.tif", "s3.tif"])
        self.wait_archived(b, ["s2.tif"])

    def test_status_answers_while_the_store_hangs(self):
        a, = self.nodes("a", lease="30s")
        a.drop("s1.tif")
        self.wait_successful(a, ["s1.tif"])
        self.addCleanup(self.postgres.hang, False) # before it is stopped
        def picture():
            """The last picture, once it has the end of the job."""
            self.postgres.hang(True)
            try:
                found = a.call("job.list")
                if "as_of" in found and [j["status"] for j in found["jobs"]] == ["successful"]:
                    return found
            except RpcError as error: # there was no picture yet
                self.assertEqual(error.code, "service.state")
            self.postgres.hang(False)
            wait_for(lambda: "as_of" not in a.call("service.info"))
        found = wait_for(picture)
        self.assertEqual([j["name"] for j in found["jobs"]], ["s1.tif"])
        self.assertGreaterEqual(found["age_s"], 0)
        self.assertNotIn("incomplete", found)
        def old_job():
            """The job of the last picture; a reading that began before the hang is of the moment."""
            job = a.call("job.get", id=found["jobs"][0]["id"])
            return job if "age_s" in job else None
        job = wait_for(old_job)
        self.assertEqual(job["status"], "successful")
        wait_for(lambda: "age_s" in a.call("service.info"))
        status = [BIN / "pushbroom", "status", "--socket", a.root / "s.sock"]
        text = subprocess.run(status, stdout=subprocess.PIPE, text=True, check=True).stdout
        self.assertRegex(text, r"as of \d+ s ago: the job store does not answer\n(.*\n)*.*s1.tif")
        for method, params in (("job.get", {"id": "zzzz"}), ("job.list", {"before": "zzzz"}), ("job.retry", {"id": job["id"]})):
            with self.assertRaises(RpcError) as refused:
                a.call(method, **params)
            self.assertEqual(refused.exception.code, "service.state")
            self.assertIn("try again", str(refused.exception))
        self.postgres.hang(False)
        wait_for(lambda: "as_of" not in a.call("job.list"))
        wait_for(lambda: not a.call("service.info")["troubles"])
        a.drop("s2.tif")
        self.wait_successful(a, ["s1.tif", "s2.tif"])

    def test_requests_reach_the_node_that_has_the_job(self):
        a, b = self.nodes("a", "b", lease="10s")
        a.drop("s1.tif", "until never")
        b.drop("s2.tif", "until never")
        for job in self.wait_running(a, 2):
            other = b if job["node"] == "a" else a
            other.call("job.cancel", id=job["id"])
            other.wait_for(lambda: other.call("job.get", id=job["id"])["status"] == "dismissed")
        a.drop("s3.tif", "fail")
        wait_for(lambda: "s3.tif" in a.files("quarantine"))
        self.assertEqual([f for f in b.files("quarantine") if f.startswith("s3")], [])
        failed = b.wait_job("s3.tif", "failed")
        b.call("job.retry", id=failed["id"])
        wait_for(lambda: self.ends()[("s3.tif", "job.failed")] == 2)
        wait_for(lambda: "s3.tif" in a.files("quarantine"))
        b.call("job.drop", id=b.wait_job("s3.tif", "failed")["id"])
        b.wait_job("s3.tif", "dismissed")
        wait_for(lambda: not [f for f in a.files("quarantine") if f.startswith("s3")])
        a.drop("s4.tif", "fail")
        failed = b.wait_job("s4.tif", "failed")
        wait_for(lambda: "s4.tif" in a.files("quarantine"))
        a.stop(signal.SIGKILL)
        wait_for(lambda: not b.nodes()["a"]["reports"])
        with self.assertRaisesRegex(RpcError, "belongs to node a, which does not report"):
            b.call("job.retry", id=failed["id"])

    def test_jobs_of_a_drained_node_run_on_another(self):
        a, b = self.nodes("a", "b", lease="30s")
        names = ["s1.tif", "s2.tif"]
        for name in names:
            a.drop(name, "until go")
        self.wait_running(b, 2)
        subprocess.run([BIN / "pushbroom", "drain", "--now", "--socket", a.root / "s.sock"], check=True)
        wait_for(lambda: b.nodes()["a"]["draining"])
        self.assertIn('pushbroom_node_draining{node="a"} 1\n', b.call("service.metrics")["text"])
        text = subprocess.run([BIN / "pushbroom", "status", "--socket", b.root / "s.sock"], stdout=subprocess.PIPE, text=True, check=True).stdout
        self.assertRegex(text, r"node     a: drains, \d running")
        (self.common / "go").touch()
        self.wait_successful(b, names)
        self.assertEqual({j["node"] for j in b.jobs()}, {"b"})
        self.wait_archived(a, names)
        self.check_once(names)

    def test_growing_scene_runs_on_the_node_of_its_stream(self):
        """A failed run is repeated on the node with the stream, although another node is idle; each alert is one event."""
        a, b = self.nodes("a", "b", start=False, fake=False, lease="30s")
        for node in (a, b):
            node.set_pipelines("""compute: {device: cpu, threads: 1}
pipelines:
  red:
    input: {stream: red, bands: {R: 3}, lines: {every: 352, silence: 1h}}
    products: [{cog: {}}, {alert: {band: R, above: 100}}]
""")
            node.start()
        self.wait_all([a, b])
        a.wait_streams()
        feed = subprocess.Popen([BIN / "pushbroom", "feed", "--socket", a.root / "s.sock", "--stream", "red", "--lines-per-second", "20",
                                 "--group", "2", DATA / "real/landsat7_L7_ETMs_6band.tif"], stdout=subprocess.DEVNULL)
        self.addCleanup(feed.wait)
        self.addCleanup(feed.kill)
        a.wait_for(lambda: a.call("service.info")["streams"][0]["lines"] >= 2)
        feed.send_signal(signal.SIGSTOP)
        job = a.wait_for(lambda: a.jobs(status=["running"]))[0]
        a.wait_for(lambda: a.call("service.info")["streams"][0].get("latency"))
        for worker in a.workers():
            os.kill(worker, signal.SIGKILL)
        a.wait_for(lambda: "it is computed again" in a.log_text())
        again = a.wait_for(lambda: [j for j in a.jobs(status=["running"]) if j["id"] == job["id"]])[0]
        self.assertEqual(again["node"], "a")
        feed.send_signal(signal.SIGCONT)
        self.assertEqual(feed.wait(), 0)
        self.wait_successful(b, [job["name"]])
        self.check_once([job["name"]])
        folder = pathlib.Path(b.call("job.get", id=job["id"])["directory"])
        features = json.loads(next(folder.glob("*.alerts.geojson")).read_text())["features"]
        def alerts():
            events = b.call("job.events", id=job["id"], limit=1000)["events"]
            return [event["alert"]["number"] for event in events if event["event"] == "alert.raised"]
        wait_for(lambda: len(alerts()) >= len(features))
        self.assertEqual(alerts(), [feature["id"] for feature in features])

    def test_job_that_failed_on_a_node_runs_on_another(self):
        """The other one is busy until the first has run later jobs."""
        a, b = self.nodes("a", "b", start=False, lease="30s")
        for node in (a, b):
            node.start(env={"PUSHBROOM_TEST_SHUN_MS": "3600000"})
        self.wait_all([a, b])
        b.drop("busy.tif", "until go")
        busy = next(node for node in (a, b) if node.name == b.wait_job("busy.tif", "running")["node"])
        free = a if busy is b else b
        free.drop("s1.tif", "fault device.missing 1")
        wait_for(lambda: free.wait_job("s1.tif", "accepted")["error"])
        for name in ("s2.tif", "s3.tif"): # s1 is older
            free.drop(name)
            free.wait_job(name, "successful")
        self.assertEqual(free.wait_job("s1.tif", "accepted")["error"]["code"], "device.missing")
        (self.common / "go").touch()
        names = ["busy.tif", "s1.tif", "s2.tif", "s3.tif"]
        self.wait_successful(free, names)
        self.assertEqual(free.wait_job("s1.tif", "successful")["node"], busy.name)
        self.check_once(names)

    def test_job_that_crashed_on_two_nodes_runs_on_a_third(self):
        """The third node is busy until the other two have run later jobs."""
        nodes = self.nodes("a", "b", "c", start=False, parallel=1, lease="30s")
        for node in nodes:
            node.change("  settle:", "  max_attempts: 3\n  express: 0s\n  settle:")
            node.start(env={"PUSHBROOM_TEST_SHUN_MS": "3600000"})
        self.wait_all(nodes)
        nodes[0].drop("busy.tif", "until go")
        busy = nodes[0].wait_job("busy.tif", "running")["node"]
        free = [node for node in nodes if node.name != busy]
        free[0].drop("s1.tif", "crash 2")
        wait_for(lambda: all("Segmentation fault" in node.log_text() for node in free))
        later = [f"s{i}.tif" for i in range(2, 8)]
        for name in later:
            free[0].drop(name)
        for name in later:
            free[0].wait_job(name, "successful")
        job = free[0].wait_job("s1.tif", "accepted") # it is older
        self.assertEqual(job["attempts"], 2)
        (self.common / "go").touch()
        self.wait_successful(free[0], ["busy.tif", "s1.tif", *later])
        job = free[0].wait_job("s1.tif", "successful")
        self.assertEqual((job["node"], job["attempts"]), (busy, 3))
        self.check_once(["busy.tif", "s1.tif", *later])

    def test_job_waits_for_a_node_with_its_memory(self):
        a, b = self.nodes("a", "b", start=False, lease="10s")
        for node, memory in ((a, "1GiB"), (b, "4GiB")):
            node.config.write_text(node.config.read_text() + f"\ncompute: {{memory: {memory}}}\n")
            node.start()
        self.wait_all([a, b])
        drain = [BIN / "pushbroom", "drain", "--socket", b.root / "s.sock"]
        subprocess.run(drain, check=True)
        wait_for(lambda: a.nodes()["b"]["draining"])
        a.drop("s1.tif", "fault plan.memory 1")
        trouble = a.wait_trouble("needs")
        self.assertRegex(trouble["message"], r"\(s1\.tif\) waits: .* 2048 MiB at least, and no node has more than 1024 MiB")
        job = a.wait_job("s1.tif", "accepted")
        self.assertEqual((job["error"]["code"], job["error"]["memory"]), ("plan.memory", 2 << 30))
        a.drop("s2.tif")
        a.wait_job("s2.tif", "successful")
        subprocess.run([*drain, "--off"], check=True)
        self.assertEqual(b.wait_job("s1.tif", "successful")["node"], "b")
        wait_for(lambda: not a.trouble("needs"))
        self.check_once(["s1.tif", "s2.tif"])

    def test_job_waits_for_a_node_with_a_gpu(self):
        a, b = self.nodes("a", "b", start=False, lease="10s")
        a.config.write_text(a.config.read_text() + "\ncompute: {device: cuda}\n")
        for node in (a, b):
            node.start()
        self.wait_all([a, b])
        names = ["s1.tif", "s2.tif"]
        for name in names:
            a.drop(name, "until go")
        a.wait_job("s1.tif", "running")
        trouble = b.wait_trouble("needs") # the device of the worker of this test is a CPU
        self.assertRegex(trouble["message"], r"\(s2\.tif\) waits: no node with a GPU; compute.device of node a,")
        self.assertEqual(b.wait_job("s2.tif", "accepted")["needs_gpu"], True)
        (self.common / "go").touch()
        self.wait_successful(b, names)
        self.assertEqual({j["node"] for j in a.jobs()}, {"a"})
        wait_for(lambda: not b.trouble("needs"))
        self.check_once(names)

    def test_unseen_inputs_are_left_to_other_nodes(self):
        if not can_mount():
            raise Skip("needs the right to mount")
        a, b = self.nodes("a", "b", start=False, lease="30s")
        b.prefix = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"', str(a.root)]
        for node in (a, b):
            node.start()
        self.wait_all([a, b])
        a.drop("s1.tif", "until go")
        a.drop("s2.tif", "until go")
        trouble = b.wait_trouble("mount")
        self.assertIn(str(a.root / "work"), trouble["message"])
        (self.common / "go").touch()
        self.wait_successful(b, ["s1.tif", "s2.tif"])
        self.assertEqual({j["node"] for j in a.jobs()}, {"a"})
        self.check_once(["s1.tif", "s2.tif"])

    def test_node_without_products_runs_nothing(self):
        if not can_mount():
            raise Skip("needs the right to mount")
        a, b = self.nodes("a", "b", start=False, fake=False, lease="10s")
        products = self.common / "products"
        subprocess.run([BIN / "make_scene", "--size", "64x64", "--compress", "NONE", self.common / "scene.tif"], check=True,
                       stdout=subprocess.DEVNULL)
        a.start() # makes the token
        b.prefix = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"', str(products)]
        b.start()
        self.wait_all([a, b])
        self.assertIn(f"{products} has no .pushbroom-root: mount the file system", b.wait_trouble("mount")["message"])
        of_b = lambda *command: subprocess.run(["nsenter", "-m", "-t", str(b.process.pid), *command], check=True, stdout=subprocess.PIPE)
        names = []
        def run_on_a():
            for _ in range(3):
                names.append("s%d.tif" % len(names))
                a.drop_copy(self.common / "scene.tif", names[-1])
            self.wait_successful(b, names)
            self.assertEqual({j["node"] for j in a.jobs() if j["name"] in names[-3:]}, {"a"})
            self.assertEqual(of_b("ls", "-A", str(products)).stdout, b"")
        run_on_a()
        of_b("umount", str(products))
        wait_for(lambda: not b.trouble("mount"))
        self.assertEqual(a.stop()[0], 0)
        names.append("b.tif")
        b.drop_copy(self.common / "scene.tif", "b.tif")
        self.assertEqual(b.wait_job("b.tif", "successful")["node"], "b")
        self.assertTrue((products / "b/plain/.pushbroom.json").is_file())
        of_b("mount", "-t", "tmpfs", "none", str(products)) # while it runs
        b.wait_trouble("mount")
        a.start()
        run_on_a()
        self.check_once(names)

    def test_products_move_with_their_token(self):
        """The directory below a mount point is empty, as one that is made in place of the other."""
        a, = self.nodes("a", start=False, fake=False, parallel=2, lease="10s")
        products, away = self.common / "products", self.common / "away"
        worker = self.common / "worker" # begins to read its commands when the file `go` is there
        worker.write_text(f'#!/bin/sh\necho\nwhile [ ! -e {self.common}/go ]; do sleep 0.05; done\nexec {BIN}/pushbroomd "$@"\n')
        worker.chmod(0o755)
        a.worker = worker
        subprocess.run([BIN / "make_scene", "--size", "64x64", "--compress", "NONE", self.common / "scene.tif"], check=True,
                       stdout=subprocess.DEVNULL)
        a.change("  settle:", "  max_attempts: 1\n  settle:")
        a.start()
        token = (products / ".pushbroom-root").read_text()
        self.assertEqual(self.postgres.rows("SELECT root, has_root FROM pushbroom.store"), [(token.rstrip(), "1")])
        names = ["s1.tif", "s2.tif"]
        for name in names:
            a.drop_copy(self.common / "scene.tif", name)
        for name in names:
            a.wait_job(name, "running") # the service has seen the token, its workers have not
        products.rename(away)
        products.mkdir()
        os.kill(a.workers()[0], signal.SIGSEGV) # the crash is its only attempt
        wait_for(lambda: "it waits, because the directory of products is not there" in a.log_text())
        (self.common / "go").touch()
        self.assertIn(f"write this line into that file: {token.rstrip()}", a.wait_trouble("mount")["message"])
        codes = sorted(a.wait_job(name, "accepted")["error"]["code"] for name in names)
        self.assertEqual((codes, os.listdir(products)), (["job.crashed", "output.root"], []))
        shutil.copy(away / ".pushbroom-root", products)
        self.wait_successful(a, names)
        self.assertEqual([j["attempts"] for j in a.jobs()], [1, 1])
        wait_for(lambda: not a.trouble("mount"))
        self.assertEqual(sorted(os.listdir(products)), [".pushbroom-root", "s1", "s2"])
        self.assertEqual(os.listdir(away), [".pushbroom-root"])
        self.check_once(names)

    def test_unknown_pipelines_are_left_to_others(self):
        a, b = self.nodes("a", "b", start=False, lease="30s")
        b.change("  plain:", "  another:")
        for node in (a, b):
            node.start()
        self.wait_all([a, b])
        a.drop("s1.tif", "until go")
        a.drop("s2.tif", "until go")
        trouble = b.wait_trouble("pipelines")
        self.assertRegex(trouble["message"], r"no pipeline of this node takes s\d\.tif")
        (self.common / "go").touch()
        self.wait_successful(b, ["s1.tif", "s2.tif"])
        self.assertEqual({j["node"] for j in a.jobs()}, {"a"})
        self.check_once(["s1.tif", "s2.tif"])
        wait_for(lambda: not b.trouble("pipelines"))

    def test_other_text_of_a_pipeline_is_left_to_others(self):
        a, b = self.nodes("a", "b", start=False, lease="10s")
        text = b.config.read_text()
        b.change("bands: {R: 1}", "bands: {R: 2}")
        for node in (a, b):
            node.start()
        self.wait_all([a, b])
        a.drop("s1.tif", "until go")
        a.drop("s2.tif", "until go")
        a.wait_job("s1.tif", "running")
        a.wait_job("s2.tif", "accepted")
        trouble = b.wait_trouble("pipelines", "another text")
        self.assertRegex(trouble["message"], r"pipeline 'plain' has another text here than on node a, which has job \S+ \(s2\.tif\)")
        b.config.write_text(text)
        b.process.send_signal(signal.SIGHUP)
        self.assertEqual({j["node"] for j in self.wait_running(a, 2)}, {"a", "b"})
        (self.common / "go").touch()
        self.wait_successful(b, ["s1.tif", "s2.tif"])
        self.check_once(["s1.tif", "s2.tif"])

    def test_second_service_of_one_name_waits(self):
        a, = self.nodes("a", lease="10s")
        twin = Node("a", self.postgres, self.common, lease="10s")
        self.addCleanup(twin.remove)
        twin.start()
        self.assertIn("another pushbroomd is node a", wait_for(lambda: twin.trouble("store"))["message"])
        a.drop("s1.tif")
        self.wait_successful(a, ["s1.tif"])
        a.stop(signal.SIGKILL)
        wait_for(lambda: not twin.trouble("store"))


if __name__ == "__main__":
    main(workers=2)
