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
CALLS_MAX = 2000  # limit of one run, many times the usual number


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
        clean = code == "memory" or code.startswith("device.") or result["error"] == self.reference[way.chain, way.scene]
        return ("" if clean and not left else f"{code}: {result['error']['message']}; left {left}"), result


def sweep(host, faults, pool, way):
    """Every n until one is reached by no call. Returns the names of the calls by n."""
    names, wrong, ends, finished, n = {}, [], {}, False, 1
    while not finished and n < CALLS_MAX:
        batch = range(n, n + 16)
        for k, (calls, why, result, _) in zip(batch, pool.map(lambda k: faults.run(way, f"{k}:{ERRORS[k % 3]}"), batch)):
            if not calls:
                finished = True
                if (result.get("status") != "successful") != (way.scene == "damaged") and not why:
                    why = f"no call failed, and the run was {result.get('status')}"
            else:
                names[k] = calls[0]
            how = result.get("device_why") or ("as configured" if result.get("status") == "successful" else result.get("error", {}).get("code", "?"))
            how = re.sub(r" after .*", "", how)
            ends[how] = ends.get(how, 0) + 1
            if why:
                wrong.append(f"call {k} ({names.get(k)}), error {ERRORS[k % 3]}: {why}")
        n += len(batch)
    print("\n".join("    " + line for line in wrong))
    told = ", ".join(f"{count} {how}" for how, count in sorted(ends.items(), key=lambda item: -item[1]))
    host.check(finished and names and not wrong, f"{name_of(way)}: each of {len(names)} calls fails once, {len(wrong)} wrong ends ({told})")
    return names


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
