# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""CUDA calls that fail, kernels that hang, a full GPU."""
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time

from .host import sums
from .patterns import CLOUDS, COMPOSITE, DATES, GATE
from .pipelines import CHAINS, CLASSES

# The error of the n-th call, in turn: memory, something that fails once, a context that is gone from then on.
ERRORS = ["2", "801", "719:lost"]
# memory: compute.device_memory in MiB, too little for all of the scene; "": the default.
Way = collections.namedtuple("Way", "chain buffers sync scene memory", defaults=("plain", ""))
FAULTY_WAYS = [Way("point", "pinned", "wic"), Way("halo", "pinned", "wic"), Way("point", "pinned", "stream"), Way("halo", "managed", "stream", "deflate"),
               Way("point", "pinned", "wic", "deflate"), Way("halo", "pinned", "wic", "lzw"), Way("halo", "pinned", "wic", "damaged"),
               *(Way(chain, "pinned", "wic", "clouds" if chain == "gate" else "deflate") for chain in ("warp", "gate", "composite", "kmeans")),
               Way("warp", "pinned", "stream", "deflate", "24"), Way("warp", "managed", "stream", "deflate", "16")]
# The GPU decodes the blocks of all scenes but the first.
SCENES = {"plain": ["NONE"], "deflate": ["DEFLATE"], "lzw": ["LZW"], "damaged": ["DEFLATE"], "clouds": ["DEFLATE", *CLOUDS]}


def name_of(way):
    return "-".join(part for part in way if part not in ("plain", ""))


WARP = """
  input: {match: ["*"], bands: {B: 1, G: 2, R: 3, N: 4}, scale: 0.0001}
  steps:
    - warp: {crs: 'EPSG:3857', method: bilinear, bands: {X: N, Y: R}}
  products:
    - cog: {bands: [X, Y], compress: deflate}
"""
WHAT_FAILS = [name_of(way) for way in FAULTY_WAYS] + ["hang", "hang-codecs", "full"]


# Calls that faulty_run leaves alone: they return texts, or the name of a device.
NOT_FAILED = {"cudaDeviceGetPCIBusId", "cudaDriverGetVersion", "cudaGetErrorName", "cudaGetErrorString"}


def not_listed():
    """CUDA calls of the product that faulty_run does not replace, if the sources are next to this file."""
    root = pathlib.Path(__file__).resolve().parents[3]
    sources = [p for folder in ("pipeline", "kernels", "wic/device") for p in (root / folder).rglob("*.c*")]
    listing = root / "tests/gpu/faulty_run.c"
    if not sources or not listing.exists():
        return []
    called = set().union(*(re.findall(r"\b(cuda[A-Z]\w+)\(", p.read_text()) for p in sources))
    listed = set(re.findall(r"(?:(?:CALL|WAIT|QUERY)\(|__wrap_)(cuda\w+)", listing.read_text()))
    return sorted(called - listed - NOT_FAILED)


def damage(scene):
    """Bytes of some blocks in the middle, so that one of the later tiles is bad."""
    data = bytearray(scene.read_bytes())
    for at in range(len(data) // 2, len(data) // 2 + 3000, 7):
        data[at] ^= 0x55
    scene.write_bytes(data)


class Faults:
    """Runs of one small scene by a program whose CUDA calls fail on demand (faulty_run.c), several at a time."""

    def __init__(self, host):
        self.host = host
        size = ["--size", "1300x1100", "--block", "128", "--compress"]
        self.scene = {name: host.scene(f"faults {name}", [*size, *how]) for name, how in SCENES.items()}
        dates = [host.scene(f"faults date {i}", [*size, "DEFLATE", "--seed", str(i + 1)]) for i in range(1, DATES)]
        sources = "\n".join(f"      D{i}: {{file: {path}, bands: {{A_{i}: 1, B_{i}: 2}}}}" for i, path in enumerate(dates, 1))
        pipelines = {**CHAINS, "warp": WARP, "gate": GATE, "composite": COMPOSITE.replace("SOURCES", sources), "kmeans": CLASSES.replace("COMPRESS", "deflate")}
        damage(self.scene["damaged"])
        self.reference, self.config = {}, {}
        for way in FAULTY_WAYS:
            pipeline = pipelines[way.chain].replace("zstd", "deflate")
            path = host.work / f"faults-{name_of(way)}.yaml"
            codecs = "host" if way.scene == "plain" else "device"
            memory = f"tile: 128, device_memory: {way.memory}MiB" if way.memory else "tile: 256"
            path.write_text(f"compute: {{memory: 256MiB, {memory}, threads: 2, buffers: {way.buffers}, sync: {way.sync}, codecs: {codecs}}}\npipelines:\n p:{pipeline}")
            self.config[way] = path
            if (way.chain, way.scene) not in self.reference:
                made, _ = host.run(path, self.scene[way.scene], "cpu", f"faults-cpu-{way.chain}-{way.scene}")
                self.reference[way.chain, way.scene] = sums(made) if made["status"] == "successful" else made["error"]

    def run(self, way, fault, limit=100):
        """Returns (the names of the calls that failed, one a process; the error or ""; the result; seconds)."""
        place = pathlib.Path(tempfile.mkdtemp(prefix="fault-", dir=self.host.work))
        start = time.monotonic()
        env = {**os.environ, "CUDA_FAULT": fault}
        command = [self.host.program("faulty_run"), "run", "--json", "--device", "auto", "-c", str(self.config[way]), "-o", str(place / "out"), str(self.scene[way.scene])]
        try:
            done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=limit)
        except subprocess.TimeoutExpired:
            done = subprocess.CompletedProcess(command, 124, "", f"no end within {limit} s")
        calls = [line.split()[1] for line in done.stderr.splitlines() if line.startswith("CUDA_FAULT ")]
        wrong, result = self.judge(way, done, place / "out")
        shutil.rmtree(place, ignore_errors=True)
        return calls, wrong, result, time.monotonic() - start

    def judge(self, way, done, out):
        lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
        if done.returncode not in (0, 1) or len(lines) != 1:
            return f"exit {done.returncode}, {len(lines)} results: {done.stderr[-300:]}", {}
        result = json.loads(lines[0])
        if result["status"] == "successful":
            return ("" if sums(result) == self.reference[way.chain, way.scene] else "ANOTHER PRODUCT"), result
        code = result["error"]["code"]
        left = [str(p) for p in out.rglob("*") if p.is_file()] if out.exists() else []
        clean = result["error"] == self.reference[way.chain, way.scene]  # device auto: the CPU computes what the GPU cannot
        return ("" if clean and not left else f"{code}: {result['error']['message']}; left {left}"), result


def chosen(names):
    """Numbers of the calls that are to fail, of a run that made these: of each function the first two, the last one, and some between, ever farther apart."""
    of = collections.defaultdict(list)
    for n, name in enumerate(names, 1):
        of[name].append(n)
    numbers = set()
    for all_of in of.values():
        at = 0
        while at < len(all_of):
            numbers.add(all_of[at])
            at += max(1, at)
        numbers.add(all_of[-1])
    return sorted(numbers)


def sweep(host, faults, pool, way):
    """Calls of every function fail, one in a run. Returns the names of the calls of a run without faults by number."""
    listed, why, result, _ = faults.run(way, "list")
    whole = bool(listed) and not why and (result.get("status") == "successful") == (way.scene != "damaged") and not result.get("device_why")
    host.check(whole, f"{name_of(way)}: {len(listed)} calls without a fault {why or result.get('device_why') or ''}")
    numbers = chosen(listed)
    wrong, ends, struck, slowest = [], collections.Counter(), 0, (0.0, 0, "")
    for k, (calls, why, result, seconds) in zip(numbers, pool.map(lambda k: faults.run(way, f"{k}:{ERRORS[k % 3]}"), numbers)):
        struck += bool(calls)
        if not calls and not why and (result.get("status") != "successful") != (way.scene == "damaged"):
            why = f"no call failed, and the run was {result.get('status')}"
        name = calls[0] if calls else "not reached"
        how = result.get("device_why") or ("as configured" if result.get("status") == "successful" else result.get("error", {}).get("code", "?"))
        ends[re.sub(r" after .*", "", how)] += 1
        slowest = max(slowest, (seconds, k, name))
        if why:
            wrong.append(f"call {k} ({name}), error {ERRORS[k % 3]}: {why}")
    print("\n".join("    " + line for line in wrong))
    told = ", ".join(f"{count} {how}" for how, count in ends.most_common())
    enough = struck >= 0.9 * len(numbers)  # a run may make fewer calls than another
    host.check(enough and not wrong, f"{name_of(way)}: {struck} of {len(numbers)} calls fail, {len(wrong)} wrong ends ({told}); the slowest {slowest[0]:.0f} s, call {slowest[1]} ({slowest[2]})")
    return dict(enumerate(listed, 1))


LAUNCHES = "cudaLaunchKernel", "__cudaLaunchKernel"


def first_call(names, *wanted):
    return min((n for n, name in names.items() if name in wanted), default=0)


def hangs(way, names):
    """(What hangs, the number of the call from which on it does)."""
    if way == FAULTY_WAYS[0]:
        yield "a kernel that does not leave", first_call(names, "cudaLaunchKernel") + 1
    if way == FAULTY_WAYS[2]:
        yield "tiles that do not end", first_call(names, "__cudaLaunchKernel")


def hangs_of_codecs(names):
    """At each stage: calls of a name in their order, the first of which is that of the stage."""
    copies = [n for n, name in sorted(names.items()) if name == "cudaMemcpyAsync"]
    launches = [n for n, name in sorted(names.items()) if name in LAUNCHES]
    if copies and launches:
        first = min(n for n in launches if n > copies[0]) if launches[-1] > copies[0] else launches[-1]
        yield "blocks that do not arrive", copies[0]
        yield "blocks that are not decoded", first
        yield "the last tile's work", launches[-1]
        yield "the last copy", copies[-1]


def cuda_faults(host, options):
    wanted = options.faults.split(",")
    print("9. CUDA calls that fail")
    host.check(not not_listed(), f"every CUDA call of the product can fail here {not_listed()}")
    faults = Faults(host)
    late = []
    with concurrent.futures.ThreadPoolExecutor(max(2, min(8, (os.cpu_count() or 2) // 2))) as pool, concurrent.futures.ThreadPoolExecutor(4) as slow:
        for way in FAULTY_WAYS:
            if name_of(way) not in wanted:
                continue
            names = sweep(host, faults, pool, way)  # where a stage begins is known now
            found = list(hangs(way, names)) if "hang" in wanted else []
            found += list(hangs_of_codecs(names)) if "hang-codecs" in wanted and way.chain in CHAINS and way.scene == "deflate" else []
            late += [(what, slow.submit(faults.run, way, f"{n}:hang", 200)) for what, n in found]
        for what, future in late:
            calls, why, result, seconds = future.result()
            good = calls and not why and result["status"] == "successful" and "device.lost" in (result["device_why"] or "")
            host.check(good, f"{what}: {why or result.get('device_why')}, {seconds:.0f} s")
    if "full" in wanted:
        calls, why, result, seconds = faults.run(FAULTY_WAYS[0], "hog:30")
        report = result.get("report", {})
        good = calls == ["hog"] and not why and report.get("sync") == "stream" and "device.busy" in (report.get("sync_why") or "") and seconds < 20
        host.check(good, f"a GPU that is full for 30 s: {why or report.get('sync_why') or result.get('device_why')}, {seconds:.1f} s")
