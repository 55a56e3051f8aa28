# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Several jobs at once on the process that owns the GPU: their chains are lanes of one resident kernel."""
import concurrent.futures
import json
import signal
import socket
import statistics
import subprocess
import threading
import time

from .host import sums
from .pipelines import EXACT, NDVI, POINT, SCENES

RATIO = """
  input: {match: ["*"], bands: {B: 1, G: 2, R: 3, N: 4}}
  steps:
    - math: {bands: {RATIO: "where(R > 0, N / R, 0) - sqrt(abs(G - B))"}}
  products:
    - cog: {bands: [RATIO], compress: none}
"""
CHAINS = {"ndvi": NDVI.replace("COMPRESS", "none"), "point": POINT, "ratio": RATIO}
OWN = {"halo": EXACT}  # has a kernel of its own


class Watch:
    """Reports of the owner about itself, again and again: (lanes, launches) whenever it changes."""

    def __init__(self, path):
        self.path, self.seen, self.ended = str(path), [], threading.Event()
        self.thread = threading.Thread(target=self.follow)

    def load(self):
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(10)
            s.connect(self.path)
            s.sendall(b'{"cmd":"load"}\n')
            return json.loads(s.makefile().readline())

    def follow(self):
        while not self.ended.is_set():
            load = self.load()
            now = load["lanes"], load["launches"]
            if not self.seen or self.seen[-1] != now:
                self.seen.append(now)
            time.sleep(0.001)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()

    def joined(self):
        """Number of times that a lane was opened next to others without a launch."""
        return sum(b[0] > a[0] > 0 and b[1] == a[1] for a, b in zip(self.seen, self.seen[1:]))


def begin(host, sessions=4):
    host.begin_owner("--sessions", str(sessions))
    return Watch(f"{host.work}/status.cuda0")


def idle(watch):
    """Report of the owner about itself once it is idle, or after 20 s."""
    deadline = time.monotonic() + 20
    while (load := watch.load())["sessions"] + load["bytes"] and time.monotonic() < deadline:
        time.sleep(0.05)
    return load


def same(host, watch, expected, jobs, rounds):
    """Several chains at once, each again and again, have the CPU's products to the bit; prints the kernel's work meanwhile."""
    def again(job):
        name, config, scene = job
        wrong = []
        for i in range(rounds):
            made, _ = host.run(config, scene, "cuda", f"lanes-{name}-{i}")
            if made["status"] != "successful" or sums(made) != expected[name] or made["report"]["sync"] != "wic":
                wrong.append(made.get("error") or (made["report"]["sync"], made["report"].get("sync_why"), sums(made)))
        return wrong

    with watch, concurrent.futures.ThreadPoolExecutor(len(jobs)) as pool:
        wrong = [w for of in pool.map(again, jobs) for w in of]
    most, launches = max(lanes for lanes, _ in watch.seen), watch.seen[-1][1]
    names = ", ".join(name for name, _, _ in jobs)
    host.check(not wrong, f"{names} at once, {rounds} times each, through one owner: the CPU's products {wrong[:2]}")
    if not any(name in OWN for name, _, _ in jobs):  # a kernel that starts or ends changes the share of the others
        host.check(most > 1 and watch.joined() > 0, f"up to {most} lanes of one kernel, {watch.joined()} chains uploaded beside others without a launch, {launches} launches for {len(jobs) * rounds} jobs")
    left = idle(watch)
    host.check(left["lanes"] == left["sessions"] == left["bytes"] == 0, f"all lanes are left at the end, and all memory: {left}")


def kill_beside(host, watch, victim, other):
    """Starts a job and kills it when both have lanes, or the other one is done."""
    command = [host.program("pushbroom"), "run", "--device", "cuda", "-c", str(victim[1]), "-o", str(host.work / "lanes-killed"), str(victim[2])]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        lanes = 0
        while lanes < 2 and process.poll() is None and not other.done():
            lanes = watch.load()["lanes"]
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
    return lanes >= 2


def killed(host, expected, jobs):
    """A worker that dies by kill -9 ends its own lane; the others' products stay the CPU's."""
    (name, config, scene), victim = jobs[0], jobs[1]
    watch = Watch(f"{host.work}/status.cuda0")
    before, dead, wrong = watch.load(), 0, []
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        for _ in range(8):
            other = pool.submit(host.run, config, scene, "cuda", "lanes-beside")
            while not other.done():
                dead += kill_beside(host, watch, victim, other)
            made, _ = other.result()
            if made["status"] != "successful" or sums(made) != expected[name]:
                wrong.append(made.get("error") or sums(made))
            if dead or wrong:
                break
    host.check(dead > 0 and not wrong, f"{dead} jobs that were killed beside another one, whose products are the CPU's {wrong}")
    load = idle(watch)
    host.check(load["sessions"] == load["lanes"] == load["bytes"] == 0, f"what they had is given back: {before} -> {load}")


def six(host, pipeline, scene, rounds=3):
    """Six jobs, three at a time: through lanes of one kernel, and by streams."""
    took = {"wic": [], "stream": []}
    for _ in range(rounds):
        for sync in took:
            config = host.config(f"six-{sync}", pipeline, "pinned", sync)
            start = time.monotonic()
            with concurrent.futures.ThreadPoolExecutor(3) as pool:
                made = list(pool.map(lambda i: host.run(config, scene, "cuda", f"six-{sync}-{i}")[0], range(6)))
            took[sync].append(1e3 * (time.monotonic() - start))
            ways = {m.get("report", {}).get("sync") for m in made}
            if ways != {sync}:
                host.check(False, f"six jobs by {sync}: {ways} {[m.get('error') for m in made][:2]}")
    print("  six jobs, three at a time: " + ", ".join(f"{sync} {statistics.median(t):.0f} ms ({min(t):.0f} to {max(t):.0f})" for sync, t in took.items()), flush=True)


def lanes(host, options):
    print("3c. several jobs at once, as lanes of one kernel")
    chains, size = CHAINS, options.scene_size
    scene = host.scene("u16 tiled", SCENES["u16 tiled"])
    large = host.scene("speed NONE", ["--size", f"{size}x{size}", "--compress", "NONE"])
    expected = {name: sums(host.run(host.config(f"lanes-{name}-cpu", pipeline), scene, "cpu", f"lanes-{name}-cpu")[0]) for name, pipeline in {**chains, **OWN}.items()}
    name, victim = list(chains)[:2]
    of_large = {name: sums(host.run(host.config(f"lanes-{name}-cpu", chains[name]), large, "cpu", "lanes-large-cpu")[0])}
    watch = begin(host)
    # The first of them flows for longer, so that others start and end meanwhile.
    jobs = [(name, host.config(f"lanes-{name}", pipeline, "pinned", "wic"), scene) for name, pipeline in chains.items()]
    jobs[0] = name, jobs[0][1], large
    same(host, watch, {**expected, **of_large}, jobs, 4)
    own = [(name, host.config(f"lanes-{name}", pipeline, "pinned", "wic"), scene) for name, pipeline in OWN.items()]
    same(host, Watch(watch.path), {**expected, **of_large}, jobs[:1] + own, 3)
    large_jobs = [(name, host.config(f"lanes-{name}", chains[name], "pinned", "wic"), large) for name in (name, victim)]
    killed(host, of_large, large_jobs)
    six(host, chains[name], large)
    host.end_owner()
