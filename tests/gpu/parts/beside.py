# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""A job by launches while another job keeps a kernel resident on the same owner."""
import statistics
import threading

from .pipelines import NDVI

BAR = 1.2  # times its time alone
TURNS = 5
LONG = "where(N > R, " + " + ".join(f"sqrt(N * {i} + R) / (B + {i})" for i in range(1, 25)) + ", G)"  # over 100 instructions
RESIDENT = {"ndvi": NDVI.replace("COMPRESS", "none"), "long": NDVI.replace("COMPRESS", "none").replace("- index: {names: [NDVI]}", f'- math: {{bands: {{NDVI: "{LONG}"}}}}')}


class Again:
    """Runs a job again and again in the background."""

    def __init__(self, host, config, scene):
        self.ended, self.made = threading.Event(), []
        self.thread = threading.Thread(target=self.follow, args=(host, config, scene))

    def follow(self, host, config, scene):
        while not self.ended.is_set():
            self.made.append(host.run(config, scene, "cuda", "beside-other")[0])

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()


def times(host, config, scene, until=lambda: True):
    """Medians of the stream's time and of the GPU's occupied time of a job by launches, in ms; None: a run failed."""
    runs = []
    while len(runs) < TURNS or not until():
        made, _ = host.run(config, scene, "cuda", "beside")
        report = made.get("report", {})
        if made["status"] != "successful" or report.get("codecs") != "device":
            return None
        runs.append((report["elapsed_ms"], report.get("gpu", {}).get("occupied_ms", 0)))
        if len(runs) > 20 * TURNS:
            break
    return [statistics.median(column) for column in zip(*runs)]


def beside(host, options):
    print("a job by launches beside a resident kernel")
    done = host.call(host.program("check_beside"), limit=60)
    print("".join("  " + line + "\n" for line in done.stdout.splitlines()), end="")
    host.check(done.returncode == 0, f"kernels start beside the shared kernel {done.stderr.strip()}")
    size = f"{options.scene_size}x{options.scene_size}"
    first = host.scene("beside deflate", ["--size", size])
    other = host.scene("beside zstd", ["--size", size, "--compress", "ZSTD"])
    for scene in (first, other):
        scene.read_bytes()  # so that runs find it in memory
    host.begin_owner("--sessions", "4")
    launches = host.config("beside-launches", NDVI.replace("COMPRESS", "deflate"), codecs="device")
    launches.write_text(launches.read_text().replace("{memory: 1GiB", "{threads: 6, memory: 1GiB"))
    alone = times(host, launches, first)
    host.check(alone is not None, f"alone: {alone} ms of stream, GPU occupied")
    for name, pipeline in RESIDENT.items():
        for sync in ("stream", "wic"):
            config = host.config(f"beside-{name}-{sync}", pipeline, sync=sync)
            config.write_text(config.read_text().replace("{memory: 1GiB", "{threads: 6, memory: 1GiB"))
            with Again(host, config, other) as again:
                now = times(host, launches, first, lambda: len(again.made) > 2)
            used = {run.get("report", {}).get("sync") for run in again.made}
            good = alone is not None and now is not None and now[0] <= BAR * alone[0] and used == {sync}
            text = f"{now[0] / alone[0]:.2f} of the time alone, {now}" if alone and now else now
            host.check(good, f"beside {len(again.made)} jobs of {name} by {sync} ({', '.join(map(str, used))}): {text}")
    host.end_owner()
