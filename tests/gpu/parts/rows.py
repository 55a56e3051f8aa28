# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Time that the GPU saves on a scene whose blocks are moved to it as files store them: a table, a row a kind of scene and pipeline. CPU and GPU take turns, the
scene is in the page cache, each figure is the median of the turns, and all turns of a row have to make the same bytes."""
import collections
import json
import os
import resource
import shutil
import statistics
import time

from .host import sums

INPUT = """
  input: {match: ["*"], bands: {B: 1, G: 2, R: 3, N: 4}, scale: 0.0001}
"""
NDVI = INPUT + """  steps:
    - index: {names: [NDVI]}
  products:
    - cog: {bands: [NDVI], compress: deflate}
"""
# Ten float32 bands, of which four have neighbourhoods, two of these of what another one made.
TEN = INPUT + """  steps:
    - index: {names: [NDVI, EVI, SAVI, OSAVI, GNDVI]}
    - math: {bands: {WATER: "(G - N) / (G + N)"}}
    - convolve: {kernel: gaussian, size: 7, bands: {SOFT: NDVI}}
    - convolve: {kernel: sobel, size: 3, bands: {EDGE: SOFT}}
    - convolve: {kernel: gaussian, size: 15, bands: {WIDE: N}}
    - roughness: {size: 5, bands: {ROUGH: SOFT}}
  products:
    - cog: {bands: [NDVI, EVI, SAVI, OSAVI, GNDVI, WATER, SOFT, EDGE, WIDE, ROUGH], compress: deflate}
"""
# All kinds of products.
ALL = INPUT + """  steps:
    - index: {names: [NDVI, EVI]}
    - math: {bands: {WATER: "(G - N) / (G + N)"}}
  products:
    - cog: {bands: [NDVI, EVI, WATER], compress: deflate}
    - quicklook: {bands: [R, G, B], size: 1024, stretch: [2, 98]}
    - statistics: {}
    - stac: {datetime: file-time}
"""
SHA256 = "  output: {checksum: sha2-256}\n"

# Aims: a figure (stream, or total: with publishing) is to be this factor smaller than `base`, which is the seconds of 16 cores of the host with the H200
# before there was any decoding on a GPU; without a base, than the CPU's figure.
Aim = collections.namedtuple("Aim", "figure times base")
Row = collections.namedtuple("Row", "name title codec pipeline aims")
ROWS = [
    Row("deflate", "deflate scene, NDVI", "DEFLATE", NDVI, [Aim("stream", 10, 0.77), Aim("total", 5, 1.26)]),
    Row("sha256", "the same, SHA-256 for BLAKE3", "DEFLATE", NDVI + SHA256, [Aim("total", 4, 1.26)]),
    Row("lzw", "LZW scene, NDVI", "LZW", NDVI, [Aim("stream", 4, None)]),
    Row("plain", "uncompressed scene, NDVI", "NONE", NDVI, [Aim("stream", 3, 0.59)]),
    Row("all", "deflate scene, all products", "DEFLATE", ALL, []),
    Row("ten", "deflate scene, 10 bands, halo", "DEFLATE", TEN, [Aim("total", 4, 6.26)]),
    Row("ten-sha256", "the same, SHA-256 for BLAKE3", "DEFLATE", TEN + SHA256, [Aim("total", 4, 6.26)]),
]
CPU_SECONDS_AIM = 1.5  # seconds of the host for a scene of one band
# A process that owns the GPU stays, as the service's does; and a command alone, which starts one, and waits for the driver before its stream begins.
WAYS = {"CPU": ("cpu", "host"), "GPU": ("cuda", "device"), "GPU, command alone": ("cuda", "device")}
TICKS = os.sysconf("SC_CLK_TCK")


def spent(pid):
    """CPU seconds of a process so far, all its threads."""
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def fresh(host, out):
    """No product of an earlier turn is in the way, or on its way to the disk."""
    shutil.rmtree(host.work / out, ignore_errors=True)
    os.sync()


def turn(host, config, scene, device, out):
    """A run's result with what it took: wall seconds of the command, CPU seconds of its processes and of the GPU's owner."""
    before, of_owner, start = resource.getrusage(resource.RUSAGE_CHILDREN), spent(host.owner.pid) if host.owner else 0, time.monotonic()
    made, _ = host.run(config, scene, device, out)
    wall, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    made["took"] = {"wall": wall, "cpu": cpu + (spent(host.owner.pid) - of_owner if host.owner else 0)}
    if made["status"] == "successful":
        report = made["report"]
        made["took"] |= {"stream": report["elapsed_ms"] / 1e3, "total": (report["elapsed_ms"] + report["publish_ms"]) / 1e3}
    return made


def turns(host, row, scene, n, ways):
    """The results of each way: n turns, one of each way after the other."""
    results = {way: [] for way in ways}
    for _ in range(n):
        for way in ways:
            device, codecs = WAYS[way]
            owned = way == "GPU"
            name = f"rows-{row.name}-{codecs}{'-owned' if owned else ''}"
            owner, host.owner = host.owner, host.owner if owned else None
            config = host.config(name, row.pipeline, sync="wic", codecs=codecs)
            fresh(host, "rows")
            results[way].append(turn(host, config, scene, device, "rows"))
            host.owner = owner
    return results


def medians(results):
    return {key: statistics.median(r["took"][key] for r in results) for key in ("stream", "total", "wall", "cpu")}


def products(made):
    """Checksums of the products whose bytes do not depend on the way: an item has times, and names the device."""
    return {name: value for name, value in sums(made).items() if not name.endswith(".json")}


def judged(row, cpu, gpu):
    """Text of the result of each aim."""
    for aim in row.aims:
        base = aim.base if aim.base is not None else cpu[aim.figure]
        yield f"{aim.figure} {base / gpu[aim.figure]:.1f} x of {base:.2f} s ({'aim' if base / gpu[aim.figure] < aim.times else 'reached:'} {aim.times} x)"


def gpu_words(report):
    """Work of the GPU and its link meanwhile, and waits of the threads that feed it."""
    share = lambda x: "?" if x is None else f"{100 * x:.0f} %"
    gpu, link = report.get("gpu", {}), report.get("link", {})
    words = [f"GPU occupied {share(gpu.get('occupied_share'))}"] + [f"{w['name']} {w['ms']:.0f} ms" for w in gpu.get("work", []) if w["ms"] >= 1]
    words += [f"link in {share(link.get('to_device_share'))}, out {share(link.get('from_device_share'))}"]
    words += [f"{w['thread']} waited {w['ms']:.0f} ms for {w['for']}" for w in sorted(gpu.get("waits", []), key=lambda w: -w["ms"])[:3] if w["ms"] >= 1]
    return ", ".join(words)


def one(host, row, size, n, ways):
    scene = host.scene(f"rows {row.codec} {size}", ["--size", f"{size}x{size}", "--compress", row.codec])
    scene.read_bytes()
    results = turns(host, row, scene, n, ways)
    bad = [(way, r.get("error")) for way, rs in results.items() for r in rs if r["status"] != "successful"]
    if bad:
        host.check(False, f"{row.title}: {bad[:2]}")
        return
    made = {json.dumps(products(r), sort_keys=True) for rs in results.values() for r in rs}
    ran = {(r["report"]["device"].split(":")[0], r["report"].get("codecs")) for way, rs in results.items() if way != "CPU" for r in rs}
    why = [r["report"].get("codecs_why") for way, rs in results.items() if way != "CPU" for r in rs][:1]
    host.check(len(made) == 1 and ran <= {("cuda", "device")}, f"{row.title}: one product by all ways, decoded by the GPU {'' if ran <= {('cuda', 'device')} else (ran, why)}")
    took = {way: medians(rs) for way, rs in results.items()}
    for way, t in took.items():
        beside = f"  {took['CPU']['stream'] / t['stream']:4.1f} x {took['CPU']['total'] / t['total']:4.1f} x" if way != "CPU" else ""
        print(f"  {row.title:30} {way:19} {t['stream']:6.3f} {t['total']:7.3f} {t['wall']:7.3f} {t['cpu']:6.2f}{beside}", flush=True)
    if "GPU" in took:
        print(f"  {'':30} " + ", ".join(judged(row, took["CPU"], took["GPU"])) + (f", CPU seconds at most {CPU_SECONDS_AIM} aimed at" if not row.name.startswith("ten") else ""))
    middle = {way: sorted(rs, key=lambda r: r["took"]["total"])[len(rs) // 2]["report"] for way, rs in results.items()}
    if "GPU" in middle:
        print(f"  {'':30} {gpu_words(middle['GPU'])}")
    print("JSON " + json.dumps({"row": row.name, "size": size, "turns": n, "took": took, "report": middle}), flush=True)


def table(host, options):
    size, n = options.scene_size, options.turns
    print(f"  {size} x {size} x 4 UInt16, COG of float32, deflate, with overviews; medians of {n}; ratios to the CPU beside it")
    print(f"  {'seconds':30} {'':19} stream   total command    CPU")
    host.begin_owner()
    for row in ROWS:
        if row.name in options.rows:
            one(host, row, size, n, list(WAYS) if row.name == "deflate" else [w for w in WAYS if w != "GPU, command alone"])
    host.end_owner()
