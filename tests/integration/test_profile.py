#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""What a run tells of where its time went: the CPU time of each kind of work adds up to what the kernel counted, and what
limited the run is said in words."""
import resource

import pbtest
from pbtest import SANITIZED, run

CONFIG = """
compute: {device: cpu, threads: 2}
pipelines:
  p:
    input: {match: ['*.tif'], bands: {B: 1, G: 2, R: 3, N: 4}, scale: 0.0001}
    steps: [{index: {names: [NDVI, EVI]}}]
    products:
      - cog: {bands: [NDVI, EVI], compress: deflate, level: 6}
      - quicklook: {bands: [R, G, B]}
      - statistics: {}
      - stac: {datetime: file-time}
"""


def prepare(scratch, side=2048):
    side = side // 4 if SANITIZED else side
    run("make_scene", "--size", f"{side}x{side}", "--compress", "DEFLATE", scratch / "scene.tif")
    (scratch / "c.yaml").write_text(CONFIG)
    return ["pushbroom", "run", "-c", scratch / "c.yaml", "-o", scratch / "out"], scratch / "scene.tif"


def cpu_of_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1e3 * (used.ru_utime + used.ru_stime)


def work_of(report):
    """CPU time by kind, over all phases."""
    times = {}
    for phase in report["phases"]:
        assert abs(sum(w["cpu_ms"] for w in phase["work"]) - phase["cpu_ms"]) < 0.1, phase
        for work in phase["work"]:
            times[work["name"]] = times.get(work["name"], 0) + work["cpu_ms"]
    return times


def test_the_cpu_time_of_all_work_is_that_of_the_processes(scratch):
    command, image = prepare(scratch)
    before = cpu_of_children()
    done, = pbtest.run_json(*command, "--json", image)
    used = cpu_of_children() - before
    report = done["report"]
    times = work_of(report)
    assert [p["name"] for p in report["phases"]] == ["open", "tiles", "finish", "publish"], report
    for name in ("open", "read", "decode", "fill", "compute", "encode", "overviews", "products", "write", "checksum", "finish",
                 "input checksum", "publish"):
        assert times.get(name, 0) > 0, (name, times)
    counted = sum(ms for name, ms in times.items() if name != "other")
    assert counted <= 1.01 * report["cpu_ms"], (times, report["cpu_ms"])
    # Libraries that are loaded, and the command itself, take some 30 ms more; sanitizers much more.
    assert report["cpu_ms"] <= used + 10, (used, report["cpu_ms"])
    assert SANITIZED or counted > 0.9 * report["cpu_ms"], (times, report["cpu_ms"])
    assert SANITIZED or report["cpu_ms"] > used - 200, (used, report["cpu_ms"])


def test_shares_add_up_to_all_cores(scratch):
    command, image = prepare(scratch)
    report = pbtest.run_json(*command, "--json", image)[0]["report"]
    shares = [limit["share"] for limit in report["limits"]]
    assert shares == sorted(shares, reverse=True), shares
    assert 0.9 < sum(shares) < 1.3, report["limits"]
    wall = sum(phase["wall_ms"] for phase in report["phases"])
    share = next(limit for limit in report["limits"] if limit["words"].startswith("encode: "))["share"]
    assert abs(share - work_of(report)["encode"] / (wall * report["cores"])) < 0.001, report


def test_the_largest_are_said_in_a_line(scratch):
    command, image = prepare(scratch, 1024)
    report = pbtest.run_json(*command, "--json", image)[0]["report"]
    assert any(report["limit"].startswith(limit["words"]) for limit in report["limits"][:4]), report["limit"]
    said = run(*command, image).stdout
    line = " ".join(said.split("\n  limit ")[1].split())
    assert "%" in line and " s on " in line and len(line) > 30, said
    assert "limit" not in run(*command, "--quiet", image).stdout


pbtest.main(globals())
