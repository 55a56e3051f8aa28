# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""CUDA calls that fail, kernels that hang, a full GPU."""
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
from .pipelines import CHAINS

# The error of the n-th call, in turn: memory, something that fails once, a context that is gone from then on.
ERRORS = ["2", "801", "719:lost"]
FAULTY_WAYS = [("point", "pinned", "wic"), ("halo", "pinned", "wic"), ("point", "pinned", "stream"), ("halo", "managed", "wic"), ("halo", "managed", "stream")]
WHAT_FAILS = ["-".join(way) for way in FAULTY_WAYS] + ["hang", "full"]
CALLS_MAX = 2000  # of one run, many times what one makes


class Faults:
    """Runs of one small scene by a program whose CUDA calls fail on demand (faulty_run.c), several at a time."""

    def __init__(self, host):
        self.host = host
        self.scene = host.scene("faults", ["--size", "1300x1100", "--block", "128", "--compress", "NONE"])
        self.reference, self.config = {}, {}
        for chain, pipeline in CHAINS.items():
            made, _ = host.run(host.config(f"{chain}-faults", pipeline), self.scene, "cpu", "faults-cpu")
            self.reference[chain] = sums(made)
        for chain, buffers, sync in FAULTY_WAYS:
            path = host.work / f"faults-{chain}-{buffers}-{sync}.yaml"
            path.write_text(f"compute: {{memory: 256MiB, tile: 256, threads: 2, buffers: {buffers}, sync: {sync}, codecs: host}}\npipelines:\n p:{CHAINS[chain]}")
            self.config[chain, buffers, sync] = path

    def run(self, way, fault, limit=100):
        """Returns (the names of the calls that failed, one a process; what was wrong or ""; the result; seconds)."""
        place = pathlib.Path(tempfile.mkdtemp(prefix="fault-", dir=self.host.work))
        start = time.monotonic()
        env = {**os.environ, "CUDA_FAULT": fault}
        command = [self.host.program("faulty_run"), "run", "--json", "--device", "auto", "-c", str(self.config[way]), "-o", str(place / "out"), str(self.scene)]
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
            return ("" if sums(result) == self.reference[way[0]] else "ANOTHER PRODUCT"), result
        code = result["error"]["code"]
        left = [str(p) for p in out.rglob("*") if p.is_file()] if out.exists() else []
        clean = code == "memory" or code.startswith("device.")
        return ("" if clean and not left else f"{code}: {result['error']['message']}; left {left}"), result


def sweep(host, faults, pool, way):
    """Every n until one is reached by no call. Returns the names of the calls by n."""
    names, wrong, ends, finished, n = {}, [], {}, False, 1
    while not finished and n < CALLS_MAX:
        batch = range(n, n + 16)
        for k, (calls, why, result, _) in zip(batch, pool.map(lambda k: faults.run(way, f"{k}:{ERRORS[k % 3]}"), batch)):
            if not calls:
                finished = True
                if result.get("status") != "successful" and not why:
                    why = "no call failed, but the run did"
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
    host.check(finished and names and not wrong, f"{' '.join(way)}: each of {len(names)} calls fails once, {len(wrong)} wrong ends ({told})")
    return names


def first_call(names, *wanted):
    return min((n for n, name in names.items() if name in wanted), default=0)


def cuda_faults(host, options):
    wanted = options.faults.split(",")
    print("9. CUDA calls that fail")
    faults = Faults(host)
    names, late = {}, []
    with concurrent.futures.ThreadPoolExecutor(max(2, min(8, (os.cpu_count() or 2) // 2))) as pool, concurrent.futures.ThreadPoolExecutor(2) as slow:
        for way in FAULTY_WAYS:
            if "-".join(way) not in wanted:
                continue
            names[way] = sweep(host, faults, pool, way)
            if "hang" in wanted and way in (FAULTY_WAYS[0], FAULTY_WAYS[2]):  # where it begins is known now
                resident = way[2] == "wic"
                n = first_call(names[way], "cudaLaunchKernel" if resident else "__cudaLaunchKernel") + (1 if resident else 0)
                what = "a kernel that does not leave" if resident else "tiles that do not end"
                late.append((what, slow.submit(faults.run, way, f"{n}:hang", 200)))
        for what, future in late:
            calls, why, result, seconds = future.result()
            good = calls and not why and result["status"] == "successful" and "device.lost" in (result["device_why"] or "")
            host.check(good, f"{what}: {why or result.get('device_why')}, {seconds:.0f} s")
    if "full" in wanted:
        calls, why, result, seconds = faults.run(FAULTY_WAYS[0], "hog:30")
        report = result.get("report", {})
        good = calls == ["hog"] and not why and report.get("sync") == "stream" and "device.busy" in (report.get("sync_why") or "") and seconds < 20
        host.check(good, f"a GPU that is full for 30 s: {why or report.get('sync_why') or result.get('device_why')}, {seconds:.1f} s")
