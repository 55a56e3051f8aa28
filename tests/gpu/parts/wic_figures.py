# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""wic-bench's comparisons."""
import json
import pathlib
import sys

from .host import show


def wic_figures(host, _):
    print("8. wic-bench in full")
    path = host.work / "wic-bench.json"
    done = host.call(host.program("wic-bench"), "--json", path, limit=590)
    show(done)
    host.check(done.returncode == 0, f"wic-bench --json (exit {done.returncode})")
    if done.returncode == 0:
        report = json.loads(path.read_text())
        strategies = {(r["strategy"], r["chunk_bytes"]) for r in report["results"]}
        host.check(len(strategies) == 36 and not any(r["wrong"] for r in report["results"]), "six strategies at six sizes, every element right")
        print("JSON " + json.dumps(report))
    done = host.call(host.program("wic-bench"), "--patterns", "all", limit=300)
    show(done)
    host.check(done.returncode == 0, f"wic-bench --patterns all: every result right (exit {done.returncode})")


FRONTIER = "wic,wic-channel,poll-device,poll-elected,pipeline,ce-post,launch,wait-value,stream,stream-batch,stream-batch-8,graph"


def wic_frontier(host, _):
    print("8b. wic-bench: latency against load, neighbours, ablations")
    bench = host.program("wic-bench")
    cases = {"frontier": ["--frontier", "--rounds", "5", "--seconds", "0.1", "--strategies", FRONTIER],
             "own": ["--neighbours", "own", "--strategies", "wic,poll-device,poll-naps,poll-elected,stream-batch,wait-value"],
             "process": ["--neighbours", "process", "--strategies", "wic,poll-elected,stream-batch"],
             "mps": ["--neighbours", "mps", "--strategies", "wic,poll-elected,stream-batch"],
             "ablation": ["--ablation", "--rounds", "5", "--sizes", "16,1024", "--seconds", "0.05", "--window", "64"]}
    paths = []
    for name, options in cases.items():
        path = host.work / f"wic-{name}.json"
        done = host.call(bench, *options, "--json", path, limit=500)
        show(done)
        without = "no MPS: " in done.stdout
        host.check(done.returncode == 0 and (without or path.exists()), f"wic-bench {' '.join(options[:2])} (exit {done.returncode})")
        paths += [path] if path.exists() else []
    table = pathlib.Path(__file__).resolve().parents[2] / "bench/wic_plot.py"
    if paths:
        show(host.call(sys.executable, table, "--table", *paths))
