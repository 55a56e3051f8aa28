#!/usr/bin/env python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""The planned memory of a run is the memory of its processes: the peak of the largest process, less that of the same run on a scene of 64
pixels (program, libraries, what GDAL and PROJ hold), is no more than the plan's memory, whatever file and products. A slow machine changes the
peak downwards only, as fewer slots are in use at a time."""
import re
import sys

from pbtest import BIN, SANITIZED, SOURCE, Skip, main, run

sys.path.insert(0, str(SOURCE / "tests/bench"))
from measured import measure  # noqa: E402

ALLOWED_MIB = 12  # added to the plan: heap of headers, lists and libraries, which the small scene has less of
SIDE = 2048  # several tiles of each kind
COMPUTE = "compute: {device: cpu, memory: 160MiB, threads: 2}\n"
BANDS = "{match: ['*.tif'], bands: {B: 1, G: 2, R: 3, N: 4}}"
PIPELINES = {
    "index": ("    steps:\n      - index: {names: [NDVI]}\n", "cog: {bands: [NDVI], type: float32}"),
    "focal": ("    steps:\n      - convolve: {kernel: gaussian, size: 15, bands: [R]}\n", "cog: {bands: [R], compress: zstd}"),
    "many": ("    steps:\n      - index: {names: [NDVI, EVI]}\n", "cog: {bands: [NDVI, EVI, R]}\n      - quicklook: {bands: [R, G, B]}\n      - statistics: {}"),
    "copied": ("", "cog: {type: uint16, nodata: 0, compress: none}"),
}
SCENES = {
    "tiles": ["--block", "512"],
    "planes of large tiles": ["--block", "1024", "--interleave", "BAND"],
    "strips": ["--strips", "--block", "16"],
    "what GDAL decodes": ["--compress", "LERC"],
}


def make(path, side, *options):
    run("make_scene", "--size", f"{side}x{side}", *options, path)
    return path


def peak_mib(config, out, scene):
    return measure([BIN / "pushbroom", "run", "--quiet", "-c", config, "-o", out, scene])[1]


def planned_mib(config, scene):
    said = run("pushbroom", "run", "--dry-run", "-c", config, scene).stdout
    return int(re.search(r"^  memory +(\d+) MiB", said, re.MULTILINE)[1])


def check(config, scene, small, scratch):
    extra = peak_mib(config, scratch / "peak", scene) - peak_mib(config, scratch / "base", small)
    planned = planned_mib(config, scene)
    assert extra <= planned + ALLOWED_MIB, f"{config.stem}, {scene.name}: {extra:.0f} MiB beside the program's own, {planned} planned"


def test_peak_is_of_the_command_and_not_of_its_parent(scratch):
    held = b"\1" * (96 << 20)
    assert measure(["true"])[1] < 48, "the peak of `true` contains the memory of this process"
    assert held[-1] == 1


def takes_what_it_plans(pipeline, scene, scratch):
    if SANITIZED:
        raise Skip("a sanitizer's memory is not planned")
    steps, products = PIPELINES[pipeline]
    config = scratch / f"{pipeline}.yaml"
    config.write_text(f"{COMPUTE}pipelines:\n  x:\n    input: {BANDS}\n{steps}    products:\n      - {products}\n")
    check(config, make(scratch / "large.tif", SIDE, *SCENES[scene]), make(scratch / "small.tif", 64, *SCENES[scene]), scratch)


def test_tiles_to_several_products(scratch):
    takes_what_it_plans("many", "tiles", scratch)


def test_planes_of_large_tiles(scratch):
    takes_what_it_plans("index", "planes of large tiles", scratch)


def test_strips_with_neighbours(scratch):
    takes_what_it_plans("focal", "strips", scratch)


def test_what_gdal_decodes(scratch):
    takes_what_it_plans("copied", "what GDAL decodes", scratch)


def folder(path, side):
    path.mkdir()
    for band, name in enumerate(("B02", "B04", "B08")):
        make(path / f"{name}.tif", side, "--bands", "1", "--block", "1024", "--seed", "7" if band == 0 else str(band))
    make(path / "SCL.tif", side // 2, "--bands", "1", "--type", "Byte", "--pixel", "20")
    return path


def test_a_scene_of_several_files(scratch):
    if SANITIZED:
        raise Skip("a sanitizer's memory is not planned")
    config = scratch / "folder.yaml"
    config.write_text(f"""{COMPUTE}pipelines:
  x:
    input: {{scene: "S2*", files: {{B: B02.tif, R: B04.tif, N: B08.tif, SCL: {{match: SCL.tif, resample: nearest}}}}, grid: R}}
    steps:
      - math: {{bands: {{NDVI: "where(SCL > 40, (N - R) / (N + R), 0/0)"}}}}
    products:
      - cog: {{bands: [NDVI], type: float32, compress: deflate}}
""")
    large = folder(scratch / "S2_large", SIDE)
    check(config, large, folder(scratch / "S2_small", 64), scratch)
    said = run("pushbroom", "run", "--dry-run", "-v", "-c", config, large).stdout
    assert "every block 1.00 times, 2 of 3 files straight into tiles, else 4 cells of 512 x 512 px" in said, said


if __name__ == "__main__":
    main()
