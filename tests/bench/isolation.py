#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Costs of confinement and of a process a job: scenes of several sizes through a worker as the service runs it, through the
same one without confinement (bench_unconfined), and one after the other in one process (bench_in_process), taking turns
in one run. Prints medians of CPU milliseconds a job, of user and system apart, and of seconds a job.

    tests/bench/isolation.py [--build DIR] [--work DIR] [--repeat 3] [--jobs 256:60,2048:12,8192:2]

CPU time is of all processes of a worker, from the second job on (the first warms caches); the one process pays its start,
which is taken off by a run of a single job."""
import argparse
import json
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONFIG = """compute: {device: cpu, memory: 384MiB}
pipelines:
  ndvi:
    input: {match: ["*.tif"], bands: {B: 1, G: 2, R: 3, N: 4}, scale: 0.0001}
    steps:
      - index: {names: [NDVI]}
    products:
      - cog: {bands: [NDVI], type: float32, compress: deflate}
      - stac: {datetime: file-time}
"""


def cpu(pid):
    """User and system seconds of a process and its children that ended."""
    fields = pathlib.Path("/proc/%d/stat" % pid).read_text().rsplit(")", 1)[1].split()
    tick = os.sysconf("SC_CLK_TCK")
    return [(int(fields[11 + i]) + int(fields[13 + i])) / tick for i in (0, 1)]


def worker(program, scene, jobs, work):
    out = work / "out"
    process = subprocess.Popen([program, "--worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                               stderr=subprocess.DEVNULL)

    def run(number):
        command = dict(cmd="run", job="20260101-000000-%04x" % number, config=CONFIG, config_name="c.yaml", pipeline="ndvi",
                       manifest={"version": 1, "input": str(scene), "roots": []}, products=str(out), scene="s%d" % number, name=scene.name)
        process.stdin.write(json.dumps(command) + "\n")
        process.stdin.flush()
        for line in process.stdout:
            event = json.loads(line) if line.strip() else {}
            if event.get("event") == "failed":
                sys.exit(event["error"]["message"])
            if event.get("event") == "done":
                return
        sys.exit("the worker ended")

    run(0)
    before, start = cpu(process.pid), time.monotonic()
    for number in range(1, jobs + 1):
        run(number)
    seconds, after = time.monotonic() - start, cpu(process.pid)
    process.stdin.close()
    process.wait()
    shutil.rmtree(out)
    return [(b - a) / jobs for a, b in zip(before, after)] + [seconds / jobs]


def in_process(program, scene, jobs, work):
    config, out = work / "c.yaml", work / "out"
    config.write_text(CONFIG)
    took = []
    for n in (1, jobs + 1):
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        subprocess.run([program, config, out] + [scene] * n, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        took.append([after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime, time.monotonic() - start])
        shutil.rmtree(out)
    return [(b - a) / jobs for a, b in zip(*took)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--work", type=pathlib.Path)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--jobs", default="256:60,2048:12,8192:2", help="side in pixels : jobs, ...")
    args = parser.parse_args()
    work = args.work or pathlib.Path(tempfile.mkdtemp(prefix="pb-isolation-"))
    binaries = args.build.resolve() / "bin"
    ways = [("one process, unconfined", in_process, "bench_in_process"), ("a process a job", worker, "bench_unconfined"),
            ("a confined process a job", worker, "pushbroomd")]
    print("| scene | | CPU ms a job | user | system | seconds a job |\n|---|---|---|---|---|---|")
    for side, jobs in (map(int, part.split(":")) for part in args.jobs.split(",")):
        scene = work / ("s%d.tif" % side)
        subprocess.run([binaries / "make_scene", "--size", "%dx%d" % (side, side), "--kind", "fields", scene], check=True,
                       stdout=subprocess.DEVNULL)
        took = {name: [] for name, _, _ in ways}
        for _ in range(args.repeat):
            for name, how, program in ways:
                took[name].append(how(binaries / program, scene, jobs, work))
        for name, _, _ in ways:
            user, system, seconds = (statistics.median(column) for column in zip(*took[name]))
            both = statistics.median(row[0] + row[1] for row in took[name])
            print("| %d x %d | %s | %.1f | %.1f | %.1f | %.3f |" % (side, side, name, both * 1e3, user * 1e3, system * 1e3, seconds),
                  flush=True)
        scene.unlink()
    if args.work is None:
        shutil.rmtree(work)


if __name__ == "__main__":
    main()
