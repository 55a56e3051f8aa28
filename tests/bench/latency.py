#!/usr/bin/env python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Time of small scenes through the service: from the rename of a file into the inbox until inotify reports that its directory
of products is there; scenes one after the other, then a burst that is renamed in at once. `pushbroom run` on one scene and on many
for comparison. Every scene is a file of its own. CPU time is that of the service and all its processes, divided by the scenes. With
several --bin the builds take turns; each turn has a new service, and one scene before the clock runs. Prints a table and, as the
last line, the same as JSON.

    tests/bench/latency.py [--bin DIR ...] [--size 512] [--scenes 40] [--burst 40] [--repeat 3] [--products cog|all] [--parallel 1]
                           [--old] [--work DIR]

Scenes have just been written when they are renamed in; with --old they were long ago."""
import argparse
import ctypes
import json
import os
import pathlib
import resource
import select
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "integration"))
from daemon_kit import Client  # noqa: E402

PATIENCE_S = 60
CREATED, MOVED_IN = 0x100, 0x80  # IN_CREATE, IN_MOVED_TO
PRODUCTS = {"cog": "[{cog: {bands: [NDVI]}}]",
            "all": "[{cog: {bands: [NDVI]}}, {quicklook: {bands: [R, G, B]}}, {statistics: {}}, {stac: {datetime: file-time}}]"}
CONFIG = """service:
  inbox: {root}/inbox
  work: {root}/work
  products: {root}/products
  quarantine: {root}/quarantine
  state: {root}/state
  socket: {root}/s.sock
  parallel_jobs: {parallel}
compute: {{device: cpu}}
pipelines:
  ndvi:
    input: {{match: ["*.tif"], bands: {{B: 1, G: 2, R: 3, N: 4}}, scale: 0.0001}}
    steps: [{{index: {{names: [NDVI]}}}}]
    products: {products}
"""


class Arrivals:
    """When products/<scene>/ndvi appeared, in seconds of the monotonic clock. No wait polls: inotify reports it."""

    def __init__(self, root):
        self.root, self.at, self.scenes = root, {}, {}
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.fd = self.libc.inotify_init1(os.O_CLOEXEC)
        self.top = self.watch(root)

    def watch(self, path):
        number = self.libc.inotify_add_watch(self.fd, os.fsencode(path), CREATED | MOVED_IN)
        if number < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(path))
        return number

    def take(self):
        data, now, at = os.read(self.fd, 1 << 16), time.monotonic(), 0
        while at < len(data):
            number, _, _, size = struct.unpack_from("iIII", data, at)
            name = data[at + 16:at + 16 + size].rstrip(b"\0").decode()
            at += 16 + size
            if number == self.top and not name.startswith("."):
                self.scenes[self.watch(self.root / name)] = name
                if (self.root / name / "ndvi").is_dir():  # before the watch was there
                    self.at.setdefault(name, now)
            elif name == "ndvi":
                self.at.setdefault(self.scenes[number], now)

    def wait(self, names):
        while not all(name in self.at for name in names):
            if not select.select([self.fd], [], [], PATIENCE_S)[0]:
                sys.exit(f"no product appeared for {PATIENCE_S} s")
            self.take()
        return [self.at[name] for name in names]

    def close(self):
        os.close(self.fd)


def cpu_seconds(pid):
    """CPU time of a process and all below it, those that ended and were waited for included."""
    text = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    below = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return sum(map(int, text[11:15])) / os.sysconf("SC_CLK_TCK") + sum(cpu_seconds(child) for child in below)


class Service:
    def __init__(self, binary, root, options):
        self.root, self.scene, self.options, self.n = root, options.scene, options, 0
        for folder in ("inbox", "products", "ready"):
            (root / folder).mkdir(parents=True)
        config = root / "config.yaml"
        config.write_text(CONFIG.format(root=root, parallel=options.parallel, products=PRODUCTS[options.products]))
        self.arrivals = Arrivals(root / "products")
        self.process = subprocess.Popen([binary / "pushbroomd", "--config", config], stderr=subprocess.DEVNULL)
        end = time.monotonic() + PATIENCE_S
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() > end:
                sys.exit(f"{binary}/pushbroomd does not start")
            time.sleep(0.01)
        self.deliver(1)

    def answers(self):
        try:
            client = Client(self.root / "s.sock")
        except OSError:
            return False
        client.call("service.info")
        client.close()
        return True

    def deliver(self, n):
        """Renames n scenes in at once; the seconds until each was published, and those of them all."""
        names = [f"scene{self.n + i}" for i in range(n)]
        self.n += n
        for name in names:
            path = self.root / "ready" / (name + ".tif")
            shutil.copyfile(self.scene, path)
            if self.options.old:
                os.utime(path, (1e9, 1e9))
        os.sync()  # pending writes of the copies are not part of it
        start = {}
        for name in names:
            start[name] = time.monotonic()
            os.rename(self.root / "ready" / (name + ".tif"), self.root / "inbox" / (name + ".tif"))
        ends = self.arrivals.wait(names)
        return [end - start[name] for name, end in zip(names, ends)], max(ends) - start[names[0]]

    def wait_idle(self):
        """The input of a burst's last job may still be on its way to the archive."""
        while len(list((self.root / "work" / "done").glob("*"))) < self.n:
            time.sleep(0.002)

    def cpu(self):
        self.wait_idle()
        return cpu_seconds(self.process.pid)

    def stop(self):
        self.process.terminate()
        if self.process.wait(PATIENCE_S) != 0:
            sys.exit("the service did not end well")
        self.arrivals.close()


def in_service(binary, options, root):
    service = Service(binary, root, options)
    took, cpu = [], service.cpu()
    for _ in range(options.scenes):
        took += service.deliver(1)[0]
        service.wait_idle()
    alone = service.cpu()
    _, whole = service.deliver(options.burst)
    burst = service.cpu()
    service.stop()
    took.sort()
    return {"p50_ms": 1e3 * took[len(took) // 2], "p90_ms": 1e3 * took[len(took) * 9 // 10],
            "cpu_ms": 1e3 * (alone - cpu) / options.scenes, "burst_ms": 1e3 * whole / options.burst,
            "burst_cpu_ms": 1e3 * (burst - alone) / options.burst}


def timed(command):
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    took, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return done.stdout, 1e3 * took, 1e3 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def by_run(binary, options, root):
    """`pushbroom run`: a process a scene, and one process for many. busy: the time of reading, computing and writing within."""
    root.mkdir()
    config, scenes = root / "config.yaml", []
    config.write_text(CONFIG.format(root=root, parallel=1, products=PRODUCTS[options.products]))
    for i in range(options.burst):
        scenes.append(root / f"scene{i}.tif")
        shutil.copyfile(options.scene, scenes[-1])
    os.sync()
    command = [binary / "pushbroom", "run", "--json", "-c", config, "-o"]
    alone = [timed([*command, root / f"out{i}", scene]) for i, scene in enumerate(scenes[:options.scenes])]
    text, wall, cpu = timed([*command, root / "many", *scenes])
    reports = [json.loads(line)["report"] for line in text.splitlines()]
    busy = [sum(stage["busy_ms"] for stage in report["stages"]) for report in reports]
    return {"run_ms": statistics.median(a[1] for a in alone), "run_cpu_ms": statistics.mean(a[2] for a in alone),
            "many_ms": wall / len(scenes), "many_cpu_ms": cpu / len(scenes), "busy_ms": statistics.median(busy)}


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = os.environ.get("PB_BIN", HERE.parents[1] / "build/bin")
    parser.add_argument("--bin", type=pathlib.Path, action="append")
    parser.add_argument("--size", type=int, default=512)
    parser.add_argument("--scenes", type=int, default=40)
    parser.add_argument("--burst", type=int, default=40)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--parallel", type=int, default=1)
    parser.add_argument("--products", choices=PRODUCTS, default="cog")
    parser.add_argument("--old", action="store_true")
    parser.add_argument("--work", type=pathlib.Path)
    options = parser.parse_args()
    options.bin = [path.resolve() for path in options.bin or [pathlib.Path(default)]]
    return options


def main():
    options = parse()
    results = [[] for _ in options.bin]
    with tempfile.TemporaryDirectory(prefix="pb-latency-", dir=options.work) as folder:
        work = pathlib.Path(folder)
        options.scene = work / "scene.tif"
        subprocess.run([options.bin[0] / "make_scene", "--size", f"{options.size}x{options.size}", options.scene], check=True, stdout=subprocess.DEVNULL)
        for turn in range(options.repeat):
            for i, binary in enumerate(options.bin):
                turns = work / f"{turn}-{i}"
                results[i].append({**in_service(binary, options, turns / "service"), **by_run(binary, options, turns / "run")})
                shutil.rmtree(turns)
    rows = [{"bin": str(binary), **{key: round(statistics.median(r[key] for r in result), 2) for key in result[0]}}
            for binary, result in zip(options.bin, results)]
    print(f"{options.size} x {options.size}, products: {options.products}, {os.cpu_count()} cores, ms a scene, medians of {options.repeat}")
    print(f"{'':24}" + "".join(f"{key[:-3]:>11}" for key in results[0][0]))
    for row in rows:
        print(f"{row['bin'][-24:]:24}" + "".join(f"{row[key]:11.1f}" for key in results[0][0]))
    print(json.dumps({"size": options.size, "products": options.products, "parallel_jobs": options.parallel, "cores": os.cpu_count(),
                      "scenes": options.scenes, "burst": options.burst, "results": rows}))


if __name__ == "__main__":
    main()
