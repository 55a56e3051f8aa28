# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Blocks that are moved to the GPU as files store them: the CPU's products, and messages for damaged blocks"""
import concurrent.futures
import pathlib
import shutil

from .host import sums
from .pipelines import CHAINS, NDVI
from .rows import INPUT, table

SCENES = {
    "deflate": ["--size", "3000x2600"],
    "lzw": ["--size", "3000x2600", "--compress", "LZW"],
    "none": ["--size", "3000x2600", "--compress", "NONE"],
    "deflate strips, bands": ["--size", "3000x2600", "--interleave", "BAND", "--strips", "--block", "7"],
    "none, one strip": ["--size", "3000x2600", "--compress", "NONE", "--strips", "--block", "3000", "--collar"],
    "float32": ["--size", "3000x2600", "--type", "Float32"],
    "zstd, bands": ["--size", "2100x1600", "--compress", "ZSTD", "--interleave", "BAND"],
    "u8": ["--size", "2999x2601", "--type", "Byte", "--block", "256", "--collar"],
}
# Real files, where a checkout has them: a mask in an image of its own, alpha bands of 8 and 16 bits, and what the host decodes.
DATA = pathlib.Path(__file__).resolve().parents[2] / "data/real/mask_alpha"
FILES = {
    "cog_rgb_mask": ("device", ""),
    "cog_rgba": ("device", ""),
    "RGBA.uint16_alpha255": ("device", ""),
    "cogeo_jpeg_mask": ("host", "is not supported on the GPU"),
}
COLOURS = """
  input: {match: ["*"], bands: {R: 1, G: 2, B: 3}}
  steps:
    - convolve: {kernel: gaussian, size: 9, bands: {SOFT: G}}
    - math: {bands: {SUM: "R + SOFT / B"}}
  products:
    - cog: {bands: [SUM, R], compress: deflate}
    - statistics: {}
"""
# Names of pipelines of one COG, which everything but the pixels' way leaves alone.
BLUR = NDVI.replace("- index: {names: [NDVI]}", "- convolve: {kernel: gaussian, size: 15, bands: {NDVI: N}}")
# Passes before the last: of one round, and of several where values are float32.
STRETCH = """
  input: {match: ["*"], bands: {B: 1, G: 2, R: 3, N: 4}}
  steps:
    - stretch: {bands: [B, G], percentiles: [2, 98]}
    - index: {names: [NDVI]}
    - stretch: {bands: {SHOWN: NDVI}, high: 255}
  products:
    - cog: {bands: [B, G, SHOWN], compress: deflate}
"""
# Products that the GPU makes, of all types of blocks, some of which are left to the host; a picture alone, of which most rows of tiles complete no
# block; and one that is made of pixels.
MADE = """
  input: {match: ["*"], bands: {B: 1, G: 2, R: 3, N: 4}}
  steps:
    - math: {bands: {A: "(N - R) / (N + R)", D: "N * 2", C: "where(N > R, 1, 0)"}}
  products:
    - cog: {name: a, bands: [A, D], compress: deflate}
    - cog: {name: b, bands: [D], type: uint16, nodata: 0, overviews: average}
    - cog: {name: c, bands: [C], type: uint8, mask: true, blocksize: 256}
    - cog: {name: d, bands: [A], compress: zstd, overviews: nearest}
    - cog: {name: e, bands: [A], type: int16, scale: 0.0001, nodata: -32768, blocksize: 1024}
    - statistics: {bands: [A, D]}
    - quicklook: {bands: [D, R, A], stretch: [2, 98]}
"""
PICTURE = INPUT + """  products:
    - quicklook: {bands: [R, G, B], size: 300}
"""
PIXELS = MADE + """    - statistics: {name: p, bands: [A], percentiles: [50]}
"""
PIPELINES = {"made": MADE, "picture": PICTURE, "pixels": PIXELS, "ndvi": NDVI.replace("COMPRESS", "deflate"), "blur": BLUR.replace("COMPRESS", "deflate"), "stretch": STRETCH, **CHAINS}


def same(host):
    for name, arguments in SCENES.items():
        scene = host.scene(f"whole {name}", arguments)
        for chain, pipeline in PIPELINES.items():
            reference, _ = host.run(host.config(f"whole-{chain}", pipeline), scene, "cpu", "whole-cpu")
            for memory in ("0", "400MiB"):
                config = host.config(f"whole-{chain}-{memory}", pipeline, codecs="device", device_memory=memory)
                made, _ = host.run(config, scene, "cuda", "whole-cuda")
                report = made.get("report", {})
                good = reference["status"] == made["status"] == "successful" and sums(made) == sums(reference)
                used = report.get("device"), report.get("codecs"), report.get("sync")
                codecs = "host" if name.startswith("zstd") else "device"
                there = {"made": 7, "pixels": 7, "picture": 1}.get(chain, 0)  # products that the GPU makes
                on = [p["on"] for p in report.get("encoded", [])]
                good = good and (on[:there] == ["device"] * there or memory != "0")
                why = "" if good and used == ("cuda:0", codecs, "stream") else made.get("error") or (used, report.get("codecs_why"), report.get("encoded"), sums(made), sums(reference))
                host.check(not why, f"{name:22} {chain:6} in {memory if memory != '0' else 'a quarter of the memory':23} {why}")


def files(host):
    for name, (codecs, why) in FILES.items():
        scene = DATA / f"{name}.tif"
        if not scene.exists():
            print(f"  left out: there is no {scene}")
            continue
        reference, _ = host.run(host.config("whole-colours", COLOURS), scene, "cpu", "whole-cpu")
        made, _ = host.run(host.config("whole-colours-device", COLOURS, codecs="device"), scene, "cuda", "whole-cuda")
        report = made.get("report", {})
        good = reference["status"] == made["status"] == "successful" and sums(made) == sums(reference)
        said = (report.get("device"), report.get("codecs"), report.get("codecs_why") or "")
        good = good and said[:2] == ("cuda:0", codecs) and why in said[2] and bool(why) == bool(said[2]) and report.get("sync") == "stream"
        host.check(good, f"{name:22} {'' if good else made.get('error') or (said, sums(made), sums(reference))}")


def damaged(host):
    for name in ("deflate", "lzw"):
        scene = host.scene(f"whole {name}", SCENES[name])
        bad, data = host.work / f"damaged_{name}.tif", bytearray(scene.read_bytes())
        for at in range(len(data) // 2, len(data) // 2 + 3000, 7):
            data[at] ^= 0x55
        bad.write_bytes(data)
        said = []
        for device, config in (("cpu", host.config("whole-ndvi", PIPELINES["ndvi"])), ("cuda", host.config("whole-ndvi-0", PIPELINES["ndvi"], codecs="device"))):
            made, _ = host.run(config, bad, device, "whole-bad")
            said.append(made.get("error"))
        host.check(said[0] and said[0] == said[1], f"damaged {name}: {said[1] if said[0] == said[1] else said}")


def whole_products(host, _):
    print("whole way: blocks decoded on the GPU")
    same(host)
    files(host)
    damaged(host)


SANITIZED = ["deflate", "lzw", "deflate strips, bands", "float32"]


def whole_sanitizer(host, _):
    """From a file to its products in one process, whose end the sanitizer sees."""
    print("whole way: compute-sanitizer memcheck and synccheck")
    if shutil.which("compute-sanitizer") is None:
        host.check(False, "compute-sanitizer is not on PATH")
        return
    cases = [(name, chain, tool) for name in SANITIZED for chain in ("ndvi", "halo") for tool in ("memcheck", "synccheck")]

    def checked(case):
        name, chain, tool = case
        arguments = ["--size", "700x600", *SCENES[name][2:], *([] if "--block" in SCENES[name] else ["--block", "128"])]
        scene = host.scene(f"sanitized {name}", arguments)
        config = host.config(f"sanitized-{chain}", PIPELINES[chain].replace("zstd", "deflate"), device="cuda", codecs="device")
        return host.call("compute-sanitizer", "--tool", tool, "--error-exitcode", "99", host.program("bench_in_process"), config, host.work / f"sanitized-{name}-{chain}-{tool}", scene, limit=280)

    for name in SANITIZED:  # before several look for it
        checked((name, "ndvi", "memcheck"))
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for (name, chain, tool), done in zip(cases, pool.map(checked, cases)):
            good = done.returncode == 0 and "codecs device" in done.stdout
            host.check(good, f"{tool} {name:22} {chain}: {(done.stdout + done.stderr).strip().splitlines()[-1:]}")


def whole_way(host, options):
    print("whole way: what it saves")
    table(host, options)
