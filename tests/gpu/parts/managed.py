# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Scenes whose planes are managed memory, of which the GPU has a quarter at a time: a gate, rounds of k-means, and other grids. The CPU's products; the time
compared to the same scene in device memory, which it fits."""
import collections
import concurrent.futures
import shutil
import statistics
import subprocess
import threading

from .host import sums
from .patterns import CLOUDS
from .pipelines import ROUNDS
from .rows import fresh

GATE = """
  input: {match: ["*"], bands: {B: 1, G: 2, R: 3, N: 4, SCL: 5}}
  steps:
    - gate: {keep: "(SCL > 3) * (SCL < 8)"}
    - math: {bands: {X: "(N - R) / (N + R)", Y: "B + G"}}
  products:
    - cog: {bands: [X, Y], compress: deflate}
"""
RESAMPLE = """
  input: {match: ["*"], bands: {B: 1, G: 2, R: 3, N: 4}}
  steps:
    - resample: {factor: 0.5, method: average, bands: {X: N, Y: R, Z: G, W: B}}
  products:
    - cog: {bands: [X, Y, Z, W], type: uint16, nodata: 0, compress: deflate}
"""
WARP = """
  input: {match: ["*"], bands: {B: 1, G: 2, R: 3, N: 4}}
  steps:
    - warp: {crs: 'EPSG:3857', method: bilinear, bands: {X: N, Y: R, Z: G, W: B}}
  products:
    - cog: {bands: [X, Y, Z, W], type: uint16, nodata: 0, compress: deflate}
"""
# least: MiB that a tile of a small scene needs.
Row = collections.namedtuple("Row", "name title pipeline bands least arguments")
ROWS = [
    Row("gate", "gate, 60 % clouds", GATE, 5, 52, CLOUDS),
    Row("k-means", "k-means of 4 bands, 20 rounds", ROUNDS, 4, 32, []),
    Row("resample", "means of 2 x 2 pixels", RESAMPLE, 4, 44, []),
    Row("warp", "another coordinate system", WARP, 4, 36, []),
]
AIM = 0.7  # share of the speed of a scene that fits
SMALL = 2600
MOST = 6700  # pixels of a side: planes of 5 bands stay below half a gibibyte, and blocks next to them


def scenes_of(host, size):
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        made = pool.map(lambda row: host.scene(f"managed {row.name} {size}", ["--size", f"{size}x{size}", *row.arguments]), ROWS)
        return dict(zip((row.name for row in ROWS), made))


def quarter(row, size):
    """compute.device_memory in MiB: a quarter of the planes and blocks of a scene, stored and decoded, which take 8 / 3 of the planes; and what tiles need."""
    return max(2 * size * size * row.bands * 2 // 3 >> 20, row.least)


def config_of(host, row, name, size, device="cuda", buffers="auto", memory="0", pipeline=None):
    """Small tiles, so that few planes of a small scene are used at a time."""
    path = host.config(f"managed-{row.name}-{name}", pipeline or row.pipeline, buffers=buffers, device=device, codecs="device", device_memory=memory)
    more = "memory: 4GiB, tile: 512" if size == SMALL else "memory: 4GiB"
    path.write_text(path.read_text().replace("memory: 1GiB", more, 1))
    return path


class Used:
    """The most memory of the GPU that is in use while a block runs, in MiB more than before."""

    def __enter__(self):
        self.before, self.most, self.ended = self.now(), 0, threading.Event()
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()
        return self

    def now(self):
        said = subprocess.run(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"], capture_output=True, text=True).stdout
        return int(said.split()[0]) if said.split() else 0

    def watch(self):
        while not self.ended.wait(0.005):
            self.most = max(self.most, self.now() - self.before)

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()


def one(host, row, scene, size, n):
    # Ways: the CPU, all of the scene in device memory, a quarter of it with bands or the host's decoders, and with managed planes.
    little = f"{quarter(row, size)}MiB"
    ways = {"CPU": ("cpu", "auto", "0"), "device memory": ("cuda", "pinned", "16GiB"), "a quarter, auto": ("cuda", "auto", little), "a quarter": ("cuda", "managed", little)}
    made = {way: [] for way in ways}
    for _ in range(n):
        for way, (device, buffers, memory) in ways.items():
            if way == "CPU" and made[way]:
                continue
            fresh(host, "managed")
            config = config_of(host, row, way.replace(" ", "-"), size, device=device, buffers=buffers, memory=memory)
            made[way].append(host.run(config, scene, device, "managed", limit=60)[0])
    bad = [(way, r.get("error")) for way, rs in made.items() for r in rs if r.get("status") != "successful"]
    if bad:
        host.check(False, f"{row.title}: {bad[:2]}")
        return
    reports = {way: [r["report"] for r in rs] for way, rs in made.items()}
    used = {r["buffers"] for r in reports["a quarter"]} | {r["codecs"] for r in reports["a quarter"]}
    same = len({str(sorted(sums(r).items())) for rs in made.values() for r in rs}) == 1
    managed = reports["a quarter"][0].get("gpu", {}).get("managed", {})
    within = 0 < managed.get("most_bytes", 0) <= quarter(row, size) << 20
    why = reports["a quarter"][0].get("buffers_why") or reports["a quarter"][0].get("codecs_why")
    host.check(same and used == {"managed", "device"} and within, f"{row.title}, {size}: the CPU's products, {why}: {managed}")
    took = {way: statistics.median(r["elapsed_ms"] for r in rs) for way, rs in reports.items()}
    ratio = took["device memory"] / took["a quarter"]
    words = ", ".join(f"{way} {ms:.0f} ms" for way, ms in took.items())
    print(f"  {row.title:32} {words}: {ratio:.2f} of the speed ({'reached:' if ratio >= AIM else 'aim'} {AIM})", flush=True)
    for way in list(ways)[1:]:
        gpu = sorted(reports[way], key=lambda r: r["elapsed_ms"])[n // 2].get("gpu", {})
        waits = ", ".join(f"{w['thread']} {w['for']} {w['ms']:.0f}" for w in sorted(gpu.get("waits", []), key=lambda w: -w["ms"])[:4])
        work = ", ".join(f"{w['name']} {w['ms']:.0f}" for w in gpu.get("work", []))
        print(f"    {way:16} occupied {gpu.get('occupied_ms', 0):.0f} ms: {work}; set up {gpu.get('set_up_ms', 0):.0f}; waits: {waits}", flush=True)


def managed(host, options):
    print("3f. planes in managed memory, of which the GPU has a quarter at a time")
    for size in sorted({SMALL, min(options.scene_size, MOST)}):
        scenes = scenes_of(host, size)
        with Used() as used:
            host.begin_owner()
            for row in ROWS:
                one(host, row, scenes[row.name], size, options.turns if size > SMALL else 1)
            host.end_owner()
        print(f"  at most {used.most} MiB of the GPU's memory in use")


def managed_sanitizer(host, _):
    print("4d. compute-sanitizer memcheck over the same")
    if shutil.which("compute-sanitizer") is None:
        host.check(False, "compute-sanitizer is not on PATH")
        return
    scenes = scenes_of(host, SMALL)

    def checked(row):
        config = config_of(host, row, "memcheck", SMALL, buffers="managed", memory=f"{quarter(row, SMALL)}MiB", pipeline=row.pipeline.replace("rounds: 20", "rounds: 3"))
        return host.call("compute-sanitizer", "--tool", "memcheck", "--error-exitcode", "99", host.program("bench_in_process"), config,
                         host.work / f"memcheck-managed-{row.name}", scenes[row.name], limit=300)

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for row, done in zip(ROWS, pool.map(checked, ROWS)):
            host.check(done.returncode == 0, f"{row.title}: {(done.stdout + done.stderr).strip().splitlines()[-1:]}")
