#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: threads
"""The process that owns a device, here the CPU: it computes the tiles of all jobs in memory that it shares with confined
workers. Kills of it, or of a worker; hostile lines; and that products are the same."""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import unittest

from daemon_kit import Daemon, wait_for
from patience import PATIENCE_S, children, run_to_end
from pbtest import BIN, main, plain_scene, program_folder, run

VERSION = run("pushbroom", "--version").stdout.split()[1]

PIPELINES = """compute: {device: cpu, threads: 2}
pipelines:
  vegetation:
    input: {match: ["*.tif"], bands: {B: 1, G: 2, R: 3, N: 4}, scale: 0.0001}
    steps:
      - index: {names: [NDVI, EVI]}
      - stretch: {bands: {S: NDVI}}
      - convolve: {kernel: gaussian, size: 5, bands: [EVI]}
    products:
      - cog: {bands: [NDVI, EVI, S], level: 1}
      - statistics: {}
"""
# Facts that only the process with the files finds: ways to other coordinate systems, curves, sieved bands, tiles of a grid.
REACHING = """compute: {device: cpu, threads: 2}
pipelines:
  reaching:
    input: {match: ["*.tif"], bands: {B: 1, G: 2, R: 3, N: 4}}
    steps:
      - histogram_match: {bands: {M: N}, reference: [R]}
      - math: {bands: {K: "floor(B / 300)"}}
      - sieve: {bands: [K], size: 9}
      - warp: {crs: "EPSG:4326", method: cubic, bands: [M, G]}
      - warp: {grid: web-mercator, zoom: 13, size: 256, method: average, bands: [M, G]}
      - stretch: {bands: {S: M}}
    products:
      - cog: {bands: [M, G, S], level: 1}
"""
FOLDER = program_folder()
LONG = 2400  # long enough to be stopped in the middle


@contextlib.contextmanager
def service(start=True, owners="cpu", pipelines=PIPELINES, **settings):
    with Daemon(fake=False, **settings) as d:
        d.set_pipelines(pipelines)
        d.options = ["--owner", owners]
        yield d.start() if start else d


def drop(d, size, name):
    d.drop_copy(plain_scene(FOLDER, size), name)


def owner(d, other_than=0):
    return wait_for(lambda: [pid for pid in d.owners() if pid != other_than])[0]


def pools(pid):
    """Memory for tiles that the process has mapped."""
    try:
        return pathlib.Path(f"/proc/{pid}/maps").read_text().count("memfd:pushbroom-tiles")
    except FileNotFoundError:
        return 0


def computing(d, pid):
    """A job for which the owner has memory, and the owner is stopped. Should it be faster than we look, another follows."""
    for turn in range(20):
        name = f"a{turn}.tif"
        drop(d, LONG, name)
        wait_for(lambda: pools(pid) > 0 or ended(d, [name]), step=0.01)
        os.kill(pid, signal.SIGSTOP)
        if pools(pid) > 0 and not ended(d, [name]):
            return next(job for job in d.jobs() if job["name"] == name)
        os.kill(pid, signal.SIGCONT)
        d.wait_job(name, "successful")
    raise AssertionError("no job was caught while it ran:\n" + d.log_text())


class Line:
    """A connection to an owner."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(PATIENCE_S)
        self.socket.connect(str(path))
        self.file = self.socket.makefile("rb")

    def say(self, line):
        text = line if isinstance(line, bytes) else json.dumps(line).encode()
        with contextlib.suppress(OSError):
            self.socket.sendall(text + b"\n")

    def hear(self):
        try:
            line = self.file.readline()
        except OSError:
            return None
        return json.loads(line) if line else None

    def close(self):
        self.file.close()
        self.socket.close()


def load(path):
    c = Line(path)
    c.say({"cmd": "load"})
    said = c.hear()
    c.close()
    return said


def hold(d, held):
    """Stops the processes that decode, so that their jobs stay; returns those that were not stopped before."""
    new = [child for worker in d.workers() for child in children(worker) if child not in held]
    for pid in new:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
    return new


def ended(d, names):
    return any(job["name"] in names and job["status"] not in ("accepted", "running") for job in d.jobs())


class Owner(unittest.TestCase):
    def test_products_are_those_of_one_process(self):
        with service() as d:
            drop(d, 700, "a.tif")
            job = d.wait_job("a.tif", "successful")
            report = job["report"]
            self.assertEqual((job["device"], report["device"], report["sync"]), ("cpu", "cpu", "wic"))
            self.assertEqual([s["name"] for s in report["stages"]], ["read", "compute", "write"])
            self.assertGreater(report["stages"][1]["tiles"], 0)
            self.assertEqual(d.call("service.info")["device"], "cpu")
            shutil.copy(plain_scene(FOLDER, 700), d.root / "a.tif")
            run("pushbroom", "run", "-c", d.config, "-o", d.root / "alone", "--quiet", d.root / "a.tif")
            for name in ("a.tif", "a.statistics.json"):
                here = (d.root / "alone/a/vegetation" / name).read_bytes()
                self.assertEqual((d.root / "products/a/vegetation" / name).read_bytes(), here, name)
            self.assertEqual(wait_for(lambda: pools(owner(d)) == 0), True)

    def test_facts_of_files_reach_the_owner(self):
        with service(pipelines=REACHING) as d:
            drop(d, 900, "a.tif")
            job = d.wait_job("a.tif", "successful")
            self.assertEqual((job["report"]["device"], job["report"]["sync"]), ("cpu", "wic"))
            shutil.copy(plain_scene(FOLDER, 900), d.root / "a.tif")
            run("pushbroom", "run", "-c", d.config, "-o", d.root / "alone", "--quiet", d.root / "a.tif")
            made = {p.relative_to(d.root / "products"): p.read_bytes() for p in (d.root / "products").rglob("*.tif")}
            here = {p.relative_to(d.root / "alone"): p.read_bytes() for p in (d.root / "alone").rglob("*.tif")}
            self.assertGreater(len(here), 1)
            self.assertEqual(made, here)

    def test_jobs_side_by_side_have_one_owner(self):
        with service(parallel=2) as d:
            for name in ("a.tif", "b.tif", "c.tif"):
                drop(d, 900, name)
            for name in ("a.tif", "b.tif", "c.tif"):
                self.assertEqual(d.wait_job(name, "successful")["attempts"], 1)
            self.assertEqual(len(d.owners()), 1)

    def hold_one_each(self, d, paths, names):
        """Two jobs, stopped while they read. A job may end before it is stopped: whether both were caught, and the processes."""
        held = []
        for name, loads in zip(names, ([1, 0], [1, 1])):
            drop(d, LONG, name)
            wait_for(lambda: [load(path)["bytes"] > 0 for path in paths] == loads or ended(d, names), step=0.01)
            held += hold(d, held)
        return not ended(d, names) and [load(path)["sessions"] for path in paths] == [1, 1], held

    def test_jobs_go_to_the_owner_with_least_to_do(self):
        with service(start=False, parallel=2, owners="cpu,cpu") as d:
            text = d.config.read_text().replace("      - stretch: {bands: {S: NDVI}}\n", "").replace(", S]", "]")
            d.config.write_text(text)  # one pass, so one session a job
            d.start()
            paths = [d.root / "s.sock.cpu", d.root / "s.sock.cpu.1"]
            wait_for(lambda: all(path.exists() for path in paths))
            caught = False
            for turn in range(10):
                names = (f"a{turn}.tif", f"b{turn}.tif")
                caught, held = self.hold_one_each(d, paths, names)
                for pid in held:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGCONT)
                for name in names:
                    self.assertEqual(d.wait_job(name, "successful")["attempts"], 1)
                wait_for(lambda: [load(path) for path in paths] == 2 * [{"event": "load", "sessions": 0, "bytes": 0, "lanes": 0, "launches": 0}])
                if caught:
                    break
            self.assertTrue(caught, "in ten turns no two jobs had an owner each")

    def test_an_owner_that_is_killed_costs_no_job(self):
        with service() as d:
            first = owner(d)
            caught = computing(d, first)
            os.kill(first, signal.SIGKILL)
            job = d.wait_job(caught["name"], "successful")
            self.assertEqual(job["attempts"], 1)
            self.assertIn("again in a fresh process after device.lost", job["device_why"])
            self.assertNotEqual(owner(d, first), first)
            self.assertIn("ended with signal 9 (Killed); it is replaced", d.log_text())
            drop(d, 300, "b.tif")
            self.assertIsNone(d.wait_job("b.tif", "successful")["device_why"])

    def test_a_worker_that_is_killed_gives_its_memory_back(self):
        with service() as d:
            pid = owner(d)
            caught = computing(d, pid)
            for child in children(d.workers()[0]):
                os.kill(child, signal.SIGKILL)
            os.kill(pid, signal.SIGCONT)
            job = d.wait_job(caught["name"], "successful")
            self.assertGreaterEqual(job["attempts"], 1)
            wait_for(lambda: pools(pid) == 0)
            self.assertEqual(d.owners(), [pid], "the owner stays")

    def test_a_cancelled_job_gives_its_memory_back(self):
        with service() as d:
            pid = owner(d)
            caught = computing(d, pid)
            d.call("job.cancel", id=caught["id"])
            os.kill(pid, signal.SIGCONT)
            d.wait_job(caught["name"], "dismissed")
            wait_for(lambda: pools(pid) == 0)

    def test_an_owner_killed_in_idleness_is_there_again(self):
        with service() as d:
            pid = owner(d)
            path = d.root / "s.sock.cpu"
            os.kill(pid, signal.SIGKILL)
            wait_for(lambda: path.exists() and owner(d, pid))
            drop(d, 300, "a.tif")
            d.wait_job("a.tif", "successful")

    def hello(self, d, **other):
        line = {"cmd": "hello", "version": VERSION, "job": "x", "config": d.config.read_text(), "config_name": "c",
                "pipeline": "vegetation"}
        line.update(other)
        return line

    def test_a_file_in_the_socket_s_place_stays(self):
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder, "s.sock.cpu")
            place.write_text("not a socket")
            done = run_to_end([BIN / "pushbroomd", "--device", "cpu", "--socket", place], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.assertEqual(done.returncode, 1)
            self.assertIn("is no socket", done.stderr)
            self.assertEqual(place.read_text(), "not a socket")

    def test_hostile_lines_are_refused(self):
        with service() as d:
            pid = owner(d)
            path = wait_for(lambda: (d.root / "s.sock.cpu").exists() and d.root / "s.sock.cpu")
            for line in (b"", b"\0\1\2", b"{" * 10000, b"[]", {"cmd": "open"}, {"cmd": "hello"},
                         self.hello(d, version="9"), self.hello(d, pipeline="none"), self.hello(d, config="a: [")):
                c = Line(path)
                c.say(line)
                said = c.hear()
                self.assertEqual(said["event"], "failed", line)
                self.assertIsNone(c.hear(), "the connection is closed")
                c.close()
            for line in (b"x", {"cmd": "hello"}, {"cmd": "open"}, {"cmd": "open", "bytes": 7}, {"cmd": "open", "bytes": -1},
                         {"cmd": "open", "bytes": 1 << 62}, {"cmd": "open", "bytes": "zz"}):
                c = Line(path)
                c.say(self.hello(d))
                self.assertEqual(c.hear()["device"], "cpu")
                c.say(line)
                self.assertEqual(c.hear()["event"], "failed", line)
                self.assertIsNone(c.hear())
                c.close()
            c = Line(path)
            c.say(self.hello(d))
            self.assertEqual(c.hear()["device"], "cpu")
            c.say(b'{"cmd": "open", "bytes": 8000000}\n' + bytes(8000000))  # a request of zeros
            self.assertEqual(c.hear()["code"], "service.protocol")
            c.close()
            c = Line(path)
            c.say(b"x" * (9 << 20))
            self.assertIsNone(c.hear())
            c.close()
            drop(d, 300, "a.tif")
            d.wait_job("a.tif", "successful")
            self.assertEqual(d.owners(), [pid], "none of it ended the owner")

    def test_other_users_may_not_connect(self):
        if os.getuid() != 0:
            self.skipTest("only root can become another user")
        with service() as d:
            path = wait_for(lambda: (d.root / "s.sock.cpu").exists() and d.root / "s.sock.cpu")
            os.chmod(d.root, 0o755)
            code = "import socket,sys\ns=socket.socket(socket.AF_UNIX)\ns.connect(sys.argv[1])\n"
            done = subprocess.run(["/usr/bin/python3", "-c", code, str(path)], user=65534, group=65534, extra_groups=[],
                                  stderr=subprocess.PIPE, text=True)
            self.assertIn("PermissionError", done.stderr)
            os.chmod(path, 0o666)
            done = subprocess.run(["/usr/bin/python3", "-c", code + f"s.settimeout({PATIENCE_S})\nprint(s.recv(1))\n", str(path)],
                                  user=65534, group=65534, extra_groups=[], stdout=subprocess.PIPE, text=True)
            self.assertEqual(done.stdout, "b''\n", "the kernel says who it is")


if __name__ == "__main__":
    main(workers=3)
