# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Shared parts of the proofs: small scenes good and broken, a real service that may be killed at any moment, and the final account:
where every delivered file ended."""
import hashlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "integration"))
from daemon_kit import Daemon  # noqa: E402
from patience import Patience, cpu_ticks  # noqa: E402
from pbtest import BIN  # noqa: E402

SHIM = pathlib.Path(os.environ.get("PB_FAULT_SHIM", BIN / "pbfault.so"))
MANIFEST = ".pushbroom.json"
CONFIG = """service:
  inbox: {root}/inbox
  work: {root}/work
  products: {root}/products
  quarantine: {root}/quarantine
  state: {root}/state
  socket: {root}/s.sock
  settle: {settle}
  rescan: 1s
  parallel_jobs: {parallel}
  max_attempts: 100
  keep_jobs: 100000
compute: {{device: cpu, threads: 1, memory: 64MiB}}
pipelines:
  ndvi:
    input: {{match: ["*.tif"], bands: {{B: 1, G: 2, R: 3, N: 4}}, scale: 0.0001}}
    output: {{exists: version}}
    steps:
      - index: {{names: [NDVI]}}
    products:
      - cog: {{bands: [NDVI]}}
      - statistics: {{}}
      - stac: {{datetime: file-time}}
"""


def checksum(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


class Scenes:
    """Base scenes; each delivery is one of them under a name of its own. `reference` is the checksum of the right COG."""

    def __init__(self, root, kinds=4, size=192):
        self.root = pathlib.Path(root)
        self.root.mkdir()
        config = self.root / "reference.yaml"
        config.write_text(CONFIG.format(root=self.root / "none", settle="1s", parallel=1))
        self.good, self.reference = [], {}
        codecs = ["DEFLATE", "NONE", "LZW", "ZSTD"]
        for i in range(kinds):
            path = self.root / f"good{i}.tif"
            subprocess.run([BIN / "make_scene", "--size", f"{size + 16 * i}x{size}", "--compress", codecs[i % 4],
                            "--block", "64", "--seed", str(i + 1), path], check=True, capture_output=True)
            out = self.root / f"reference{i}"
            subprocess.run([BIN / "pushbroom", "run", "-c", config, "-p", "ndvi", "-o", out, "--device", "cpu", path],
                           check=True, capture_output=True)
            self.good.append(path)
            self.reference[path] = checksum(next(out.rglob("good*.tif")))
        whole = self.good[0].read_bytes()
        self.bad = [self.write("cut.tif", whole[:len(whole) // 2]), self.write("text.tif", b"no picture at all\n" * 40)]

    def write(self, name, data):
        path = self.root / name
        path.write_bytes(data)
        return path

    def choose(self, rng, bad_share):
        return rng.choice(self.bad if rng.random() < bad_share else self.good)


class Service(Daemon):
    """The daemon with the pipeline of the proofs and failing calls; start() and kill() at will."""

    def __init__(self, environment=None, parent=None, settle="100ms", parallel=2):
        super().__init__(fake=False, parent=parent, settle=settle, parallel=parallel)
        self.environment = environment or {}

    def write_config(self, **settings):
        self.settings.update(settings)
        self.config.write_text(CONFIG.format(**self.settings))

    def start(self):
        return super().start(wait=False, env=self.environment)

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def processes(self):
        """Returns every process below the service, deepest last."""
        found, look = [], [self.process.pid]
        while look:
            pid = look.pop()
            for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
                try:
                    children = [int(word) for word in task.read_text().split()]
                except OSError:
                    continue
                found += children
                look += children
        return found

    def kill(self, pid=None):
        try:
            os.kill(pid or self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        if pid is None:
            self.process.wait()

    def end(self):
        """Returns the exit status; None if it did not run."""
        return self.stop()[0] if self.alive() else None

    def wait_up(self):
        ended = self.settle_start()
        assert ended is None, "the service ended:\n" + self.tail()
        return self.call("service.info")

    def settle_start(self):
        """None once it answers, or its exit status when it ends before that."""
        patience = Patience(lambda: cpu_ticks(self.process.pid))
        while self.alive():
            try:
                self.call("service.info", timeout=5)
                return None
            except (OSError, AssertionError):
                assert not patience.is_over(), "the service neither answers nor ends:\n" + self.tail()
                time.sleep(0.05)
        return self.process.returncode

    def tail(self, lines=30):
        return "\n".join(self.log_text().splitlines()[-lines:])

    def jobs(self, limit=1000):
        return super().jobs(limit=limit)

    def waiting(self):
        """Files on their way: in the inbox or claimed."""
        while True:
            try:
                inbox = [p for p in (self.root / "inbox").iterdir() if not p.name.startswith(".")]
                claims = [p for p in os.scandir(self.root / "work") if p.name != "done" and p.is_dir()]
                return len(inbox) + sum(1 for claim in claims for p in os.scandir(claim) if p.is_file())
            except FileNotFoundError:  # a directory went while it was read
                pass

    def waiting_at_most(self, count):
        return not (self.root / "work").is_dir() or self.waiting() <= count

    def drain(self):
        patience = Patience(self.waiting)
        while self.waiting() > 0:
            assert self.alive(), "the service ended:\n" + self.tail()
            assert not patience.is_over(), f"{self.waiting()} files still wait:\n" + self.tail()
            time.sleep(0.2)

    def wait_placed(self, names):
        """Until every file is archived or in quarantine: a move that failed is tried again after the job has ended."""
        def missing():
            return sum(not ((self.root / "work/done" / n).is_file() or (self.root / "quarantine" / f"{n}.error.json").is_file()) for n in names)
        patience = Patience(missing)
        while missing() and not patience.is_over():
            time.sleep(0.1)

    def remove(self):
        """Ends it without the checks of Daemon, because failing calls may have ended it before."""
        self.end()
        shutil.rmtree(self.root, ignore_errors=True)


def product_directories(products):
    """products/<scene>/<pipeline>; hidden directories are still in the making."""
    try:
        scenes = [s for s in products.iterdir() if not s.name.startswith(".") and s.is_dir()]
    except FileNotFoundError:
        return
    for scene in scenes:
        try:
            inside = list(scene.iterdir())
        except FileNotFoundError:
            continue
        for pipeline in inside:
            if pipeline.is_dir() and not pipeline.name.startswith("."):
                yield scene.name, pipeline


def account(service, delivered, bad, reference):
    """Where every delivered file ended: products and archive, or quarantine with a reason; and nothing else. delivered:
    name -> base scene. Returns the list of what is wrong."""
    faults, root = [], service.root
    published = {}
    for scene, directory in product_directories(root / "products"):
        published.setdefault(scene.split("~")[0], []).append(directory)
    jobs = {}
    for job in service.jobs():
        jobs.setdefault(job["name"], []).append(job)
    for name, base in delivered.items():
        stem = name[:-4]
        archived = (root / "work/done" / name).is_file()
        refused = (root / "quarantine" / name).is_file()
        record = root / "quarantine" / f"{name}.error.json"
        places = published.get(stem, [])
        statuses = [job["status"] for job in jobs.get(name, [])]
        if base in bad:
            code = json.loads(record.read_text())["code"] if record.is_file() else "none"
            if not (refused and not archived and not places and code.startswith("input.")):
                faults.append(f"{name} (broken): quarantine {refused}, archive {archived}, products {len(places)}, code {code}")
            if statuses and statuses != ["failed"]:
                faults.append(f"{name} (broken): told as {statuses}")
        else:
            why = record.read_text() if record.is_file() else ""
            if not (archived and not refused and len(places) == 1):
                faults.append(f"{name}: archive {archived}, quarantine {refused}, products {len(places)} {why}")
            elif checksum(places[0] / f"{stem}.tif") != reference[base]:
                faults.append(f"{name}: other pixels than those of its input")
            if statuses and statuses != ["successful"]:
                faults.append(f"{name}: told as {statuses}")
    for scene in published:
        if scene + ".tif" not in delivered:
            faults.append(f"products/{scene}: nobody delivered it")
    # A kill between mkdir and the first manifest leaves an empty directory, which looks like a foreign one.
    left = [str(p.relative_to(root)) for p in (root / "products").rglob("*.tmp*") if not p.is_dir() or any(p.iterdir())]
    if left:
        faults.append(f"left behind in products: {left[:5]}")
    return faults


def closing_line(faults, passed):
    """The line a test runner ends with; the exit status."""
    for fault in faults[:40]:
        print("FAIL ", fault)
    print(f"{passed} passed, {len(faults)} failed")
    return 1 if faults else 0
