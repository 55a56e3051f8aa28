# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Scenes a minute through the real service, from dropping to published: on the CPU and on the GPU, and on one GPU and on all of them."""
import json
import os
import pathlib
import resource
import shutil
import statistics
import sys
import tempfile
import time

from .rows import INPUT, NDVI

JOBS = ((1, 0), (1, 1), (1, 4), (2, 4), (4, 4))  # service.parallel_jobs and service.publishing_jobs
AIM = 4  # times as many scenes a minute as the CPU
COMPUTE = {"CPU": "{device: cpu, memory: 1GiB}", "GPU": "{device: cuda, memory: 1GiB}", "one GPU": "{device: 'cuda:0', memory: 1GiB}"}
AIM_GPUS = 0.95  # scenes a minute of all GPUs, as a share of this many times those of one
# One that reads and writes most of its time, and one that computes: classes found in rounds.
CHAINS = {"NDVI": NDVI, "classes": INPUT + """  steps:
    - classify: {bands: [B, G, R, N], classes: 12, rounds: 30, as: KIND}
  products:
    - cog: {bands: [KIND], type: uint8, nodata: 255, compress: deflate}
"""}


def kit(host):
    """The integration tests' service, of the programs of this host."""
    os.environ["PB_BIN"] = str(host.bin or pathlib.Path(shutil.which("pushbroomd")).parent)
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "integration"))
    import daemon_kit
    tempfile.tempdir = str(host.work)
    return daemon_kit


def start(daemon_kit, way, parallel, publishing, chain):
    daemon = daemon_kit.Daemon(fake=False, parallel=parallel)
    daemon.change("  parallel_jobs:", f"  publishing_jobs: {publishing}\n  parallel_jobs:")
    daemon.set_pipelines(f"compute: {COMPUTE[way]}\npipelines:\n  chain:" + CHAINS[chain].replace("\n ", "\n   "))
    return daemon.start()


class Scenes:
    """Copies of one scene, all in the page cache, which the services take in turn and give back."""

    def __init__(self, host, scene, n):
        self.folder = host.work / "copies"
        self.folder.mkdir(exist_ok=True)
        self.names = [f"s{i}.tif" for i in range(n)]
        for name in self.names:
            shutil.copyfile(scene, self.folder / name)
        os.sync()

    def drop(self, daemon, names):
        start = time.monotonic()
        for name in names:
            os.rename(self.folder / name, daemon.root / "inbox" / name)
        return start

    def take_back(self, daemon):
        for path in list(daemon.root.rglob("s*.tif")):
            if path.name in self.names and "products" not in path.relative_to(daemon.root).parts:
                os.rename(path, self.folder / path.name)


def wait(daemon, n):
    """The jobs, when this many have ended in any way."""
    while True:
        jobs = [job for job in daemon.jobs(limit=1000) if job["status"] in ("successful", "failed", "dismissed")]
        if len(jobs) >= n:
            return jobs
        time.sleep(0.02)


def measure(host, daemon_kit, way, jobs_at_a_time, scenes, n, chain="NDVI"):
    """Time of n scenes; a few precede them, so that workers and the GPU's owner are there."""
    parallel, publishing = jobs_at_a_time
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    daemon = start(daemon_kit, way, parallel, publishing, chain)
    try:
        scenes.drop(daemon, scenes.names[n:n + parallel])
        wait(daemon, parallel)
        began = scenes.drop(daemon, scenes.names[:n])
        jobs = wait(daemon, n + parallel)
        took = time.monotonic() - began
        failed = [(job["name"], job["status"], job["device_why"], job["error"]) for job in jobs if job["status"] != "successful" or job["device_why"]]
        jobs = [job for job in jobs if job["status"] == "successful"]
        sums = {json.dumps({p["type"]: p["checksum"] for p in job["products"] if p["type"] != "stac"}) for job in jobs}
        reports = [job["report"] for job in jobs]
        daemon.stop()
        scenes.take_back(daemon)
    finally:
        daemon.remove()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / (n + parallel)
    middle = {key: statistics.median(r[key] for r in reports) for key in ("elapsed_ms", "publish_ms")} if reports else {}
    ran = sorted({f"{r['device']} {r.get('codecs') or ''}".strip() for r in reports})
    host.check(not failed, f"{way}, {parallel} at a time and {publishing} that publish: {n} scenes {failed[:2]}")
    return {"way": way, "parallel": parallel, "publishing": publishing, "seconds": took, "a_minute": 60 * n / took, "cpu": cpu, "sums": sums, "ran": ran, **middle}


def throughput_of_gpus(host, options):
    """A job on each GPU against one job on one, and the best of both with more jobs."""
    n_gpus = sum(line.startswith('{"device":"cuda:') for line in host.call(host.program("pushbroom"), "devices", "--json").stdout.replace(": ", ":").splitlines())
    size, n = options.scene_size, options.scenes
    print(f"service on one GPU and on all {n_gpus}: {n} scenes of {size} x {size} x 4 UInt16, deflate")
    if n_gpus < 2:
        print(f"  not run: {n_gpus} GPU")
        return
    daemon_kit = kit(host)
    scene = host.scene(f"rows DEFLATE {size}", ["--size", f"{size}x{size}", "--compress", "DEFLATE"])
    scenes, rows = Scenes(host, scene, n + 2 * n_gpus), []
    for chain in CHAINS:
        for way, parallel in (("one GPU", 1), ("GPU", n_gpus), ("one GPU", n_gpus), ("one GPU", 2 * n_gpus), ("GPU", 2 * n_gpus)):
            row = measure(host, daemon_kit, way, (parallel, 4), scenes, n, chain)
            row["chain"] = chain
            print(f"  {chain}, {'all' if way == 'GPU' else 'one'}, {parallel} at a time: {row['a_minute']:5.0f} scenes a minute, {row['cpu']:5.2f} CPU s a scene; of one the stream takes {row.get('elapsed_ms', 0):.0f} ms, "
                  f"publishing {row.get('publish_ms', 0):.0f} ms ({', '.join(row['ran'])})", flush=True)
            rows.append(row)
        mine = [row for row in rows if row["chain"] == chain]
        host.check(len(set().union(*(row["sums"] for row in mine))) == 1, "one product by all ways")
        host.check(all(len(row["ran"]) == n_gpus for row in mine if row["way"] == "GPU"), "every GPU has work")
        rate = {way: {row["parallel"]: row["a_minute"] for row in mine if row["way"] == way} for way in ("one GPU", "GPU")}
        gain, best = rate["GPU"][n_gpus] / rate["one GPU"][1], max(rate["GPU"].values()) / max(rate["one GPU"].values())
        print(f"  {chain}: a job on each GPU against one job on one: {gain:.2f} x ({AIM_GPUS * n_gpus:.1f} aimed at); the best of each: {best:.2f} x")
    shutil.rmtree(scenes.folder)
    print("JSON " + json.dumps([{key: value for key, value in row.items() if key != "sums"} for row in rows]), flush=True)


def throughput(host, options):
    size, n = options.scene_size, options.scenes
    print(f"service: {n} scenes of {size} x {size} x 4 UInt16, deflate, NDVI, from dropping to published")
    daemon_kit = kit(host)
    scene = host.scene(f"rows DEFLATE {size}", ["--size", f"{size}x{size}", "--compress", "DEFLATE"])
    scenes, rows = Scenes(host, scene, n + max(parallel for parallel, _ in JOBS)), []
    for jobs in JOBS:
        for way in COMPUTE:
            row = measure(host, daemon_kit, way, jobs, scenes, n)
            print(f"  {way}, {jobs[0]} at a time and {jobs[1]} that publish: {row['a_minute']:5.0f} scenes a minute, {row['cpu']:5.2f} CPU s a scene; of one the stream takes {row.get('elapsed_ms', 0):.0f} ms, "
                  f"publishing {row.get('publish_ms', 0):.0f} ms ({', '.join(row['ran'])})", flush=True)
            rows.append(row)
    shutil.rmtree(scenes.folder)
    host.check(len(set().union(*(row["sums"] for row in rows))) == 1, "one product by all ways")
    best = {way: max(row["a_minute"] for row in rows if row["way"] == way) for way in COMPUTE}
    print(f"  the best of each: {best['GPU'] / best['CPU']:.1f} x ({AIM} x aimed at)")
    print("JSON " + json.dumps([{key: value for key, value in row.items() if key != "sums"} for row in rows]), flush=True)
