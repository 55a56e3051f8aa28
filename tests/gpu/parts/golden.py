# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""The products of tests/golden/products.txt, made on the GPU: every sample, and pipelines of every feature."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "golden"))
import products  # noqa: E402
import scenes  # noqa: E402

WAYS = {  # section `compute`; tiles of another size than those of products.txt
    "device": "memory: 1GiB, threads: 4, codecs: device, sync: stream",
    "bands": "memory: 1GiB, threads: 4, tile: 128, codecs: device, device_memory: 4MiB, sync: stream",
    "wic": "memory: 1GiB, threads: 2, tile: 256, codecs: host, sync: wic",
}


def golden(host, _):
    print("3e. products of the golden list on the GPU")
    make, kept = scenes.Pixels(host.program("make_scene")), products.kept()
    host.begin_owner()
    for way, compute in WAYS.items():
        used = decoded = 0
        for name in products.names():
            folder = host.work / f"golden-{way}" / name
            words = products.command(host.program("pushbroom"), name, folder, make, f"device: cuda, {compute}")
            with open(folder / "golden.yaml", "a") as config:
                config.write(f"service: {{socket: {host.work}/status}}\n")
            done = host.call(*words, limit=300)
            lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
            result = lines[-1] if lines else {}
            found = products.lines_of(name, folder / "out")
            same = done.returncode == 0 and found == kept.get(name) and not result.get("device_why")
            report = result.get("report") or {}
            device, codecs = report.get("device"), report.get("codecs")
            used += device == "cuda:0"
            decoded += device == "cuda:0" and codecs == "device"
            why = "" if same else result.get("device_why") or result.get("error") or [line for line in found if line not in kept.get(name, [])] or done.stderr[-300:]
            host.check(same, f"{way:6} {name:20} {device or ''} decoded by {codecs} {why}")
        host.check(used >= 0.7 * len(products.names()), f"{way:6} the GPU computed {used} of {len(products.names())}")
        if way == "device":
            host.check(decoded >= 0.6 * len(products.names()), f"{way:6} the GPU decoded {decoded} of {len(products.names())}")
    host.end_owner()
