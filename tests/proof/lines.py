#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""A sensor that sends lines for the requested time, scene after scene. No line may be lost, each product must have the values that
`pushbroom run` computes from the file, and neither the service nor a worker may take more memory in its second half than in the first. Memory is anonymous memory:
pages of the growing file, which a worker maps, are the page cache's.

  lines.py [--minutes 10] [--rate 2000] [--width 4096] [--every 61440]     the short form in ctest: --short"""
import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import numpy
from osgeo import gdal

from service_kit import BIN, closing_line
from daemon_kit import Daemon
from patience import children, wait_for

gdal.UseExceptions()
SAMPLE_S = 0.05
GROWTH_KB = 8192
GROWTH_SHARE = 0.05
HEIGHT = 1024  # lines of the file that is sent again and again
PIPELINES = """compute: {{device: cpu, threads: {threads}}}
pipelines:
  swir:
    input: {{stream: swir, bands: {{B: 1, G: 2, R: 3, N: 4}}, lines: {{every: {every}, silence: 600s}}}}
    steps:
      - index: {{names: [NDVI]}}
    products:
      - cog: {{}}
      - alert: {{band: NDVI, above: 0.7, pixels: 4}}
      - statistics: {{}}
"""


def anonymous_kb(pid):
    """Anonymous memory of a process; None when it is gone."""
    try:
        return int(pathlib.Path(f"/proc/{pid}/status").read_text().split("RssAnon:")[1].split()[0])
    except (OSError, IndexError):
        return None


class Sensor:
    def __init__(self, options):
        self.options = options
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="pb-lines-"))
        self.scene = self.scratch / "sensor.tif"
        subprocess.run([BIN / "make_scene", "--size", f"{options.width}x{HEIGHT}", "--compress", "NONE", self.scene],
                       check=True, capture_output=True)
        self.service = Daemon(fake=False, parent=self.scratch)
        self.service.set_pipelines(PIPELINES.format(every=options.every, threads=options.threads))
        self.wrong, self.own, self.workers, self.checked = [], [], [], set()

    def sample(self):
        """Records the memory of the service and of its largest worker, and the share of tiles that the running job has written."""
        pid = self.service.process.pid
        self.own.append(anonymous_kb(pid))
        running = [j for j in self.jobs() if j["status"] == "running" and j["tiles_total"]]
        kb = max((anonymous_kb(child) or 0 for child in children(pid)), default=0)
        if len(running) == 1:
            self.workers.append((running[0]["tiles_done"] / running[0]["tiles_total"], kb))

    def jobs(self):
        return self.service.call("job.list", limit=1000)["jobs"]

    def reference(self):
        """Values of `pushbroom run` for the file whose lines the sensor repeats."""
        out = self.scratch / "file"
        subprocess.run([BIN / "pushbroom", "run", "-c", self.service.config, "-p", "swir", "-o", out, self.scene], check=True,
                       capture_output=True)
        return gdal.Open(str(next(out.rglob("sensor.tif")))).ReadAsArray()

    def is_right(self, path):
        image, every = gdal.Open(str(path)), self.options.every
        return image.RasterYSize == every and all(
            numpy.array_equal(image.ReadAsArray(0, y, self.options.width, HEIGHT), self.wanted, equal_nan=True)
            for y in range(0, every, HEIGHT))

    def is_done(self):
        self.collect()
        return len(self.checked) == self.options.scenes

    def collect(self):
        """Checks and removes the products of scenes that are done, and their lines."""
        for job in self.jobs():
            if job["status"] != "successful" or job["id"] in self.checked:
                continue
            products = pathlib.Path(job["directory"])
            if not self.is_right(products / f"{job['scene']}.tif"):
                self.wrong.append(f"{job['scene']}: other values than those of the file")
            shutil.rmtree(products.parent)
            (self.service.root / "work/done" / job["name"]).unlink(missing_ok=True)
            self.checked.add(job["id"])

    def run(self):
        self.service.start()
        self.wanted = self.reference()
        self.service.wait_streams()
        socket = self.service.root / "s.sock"
        feed = subprocess.Popen([BIN / "pushbroom", "feed", "--socket", socket, "--stream", "swir", "--group", "1", "--lines-per-second",
                                 str(self.options.rate), "--repeat", str(self.options.scenes * self.options.every // HEIGHT), self.scene],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            while feed.poll() is None:
                self.sample()
                self.collect()
                time.sleep(SAMPLE_S)
        finally:
            feed.kill()
            said = feed.communicate()[0].strip()
        print(said)
        if feed.returncode != 0:
            self.wrong.append(f"the sensor ended with {feed.returncode}: {said}")
            return
        wait_for(self.is_done, progress=lambda: [(j["status"], j["tiles_done"]) for j in self.jobs()], step=0.2)

    def judge_lines(self):
        stream = self.service.call("service.info")["streams"][0]
        lines = self.options.scenes * self.options.every
        lost = {key: stream[key] for key in ("gap_lines", "dropped") if stream.get(key)}
        if stream["lines"] != lines or lost:
            self.wrong.append(f"{stream['lines']} of {lines} lines arrived: {lost}")
        for line in self.service.call("service.metrics")["text"].splitlines():
            if "latency" in line and not line.startswith("#"):
                print(line)

    def judge_memory(self):
        """Compares halves: for the service by time, for workers after a quarter of a scene, when they have used all rows of tiles."""
        own = [kb for kb in self.own if kb]
        parts = [("the service", own[len(own) // 4:len(own) // 2], own[len(own) // 2:]),
                 ("the largest worker", [kb for share, kb in self.workers if 0.25 <= share < 0.5], [kb for share, kb in self.workers if share >= 0.75])]
        for name, early, late in parts:
            if not early or not late:
                print(f"{name}: the progress that was seen has too few steps")
                continue
            print(f"{name}: at most {max(early)} kB early, {max(late)} kB late")
            if max(late) > max(early) * (1 + GROWTH_SHARE) + GROWTH_KB:
                self.wrong.append(f"{name}: memory grows from {max(early)} to {max(late)} kB")

    def judge(self):
        self.judge_lines()
        self.judge_memory()


def parsed():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--rate", type=int, default=2000, help="lines a second")
    parser.add_argument("--width", type=int, default=4096, help="pixels of a line, of 4 bands of uint16")
    parser.add_argument("--every", type=int, default=60 * HEIGHT, help=f"lines of a scene, a multiple of {HEIGHT}")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--short", action="store_true")
    options = parser.parse_args()
    options.scenes = max(1, round(options.minutes * 60 * options.rate / options.every))
    if options.short:
        options.scenes, options.every, options.width, options.rate, options.threads = 2, 8 * HEIGHT, 1024, 4000, 1
    return options


def main():
    sensor = Sensor(parsed())
    try:
        sensor.run()
        if not sensor.wrong:
            sensor.judge()
    except AssertionError as error:
        sensor.wrong.append(str(error))
    status = sensor.service.stop()[0]
    if status != 0:
        sensor.wrong.append(f"the service ended with {status}")
    if sensor.wrong:
        print("kept:", sensor.scratch)
    else:
        shutil.rmtree(sensor.scratch, ignore_errors=True)
    sys.exit(closing_line(sensor.wrong, sensor.options.scenes))


main()
