#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: threads sanitized
"""Report of a run about its time: the CPU time of each kind of work adds up to the kernel's count, and the limit of the run is
named; a trace has every tile's way."""
import json
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
    side = side // 2 if SANITIZED else side # four tiles and an overview at least
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


@pbtest.not_about_memory
def test_cpu_time_of_all_work_equals_the_processes(scratch):
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


@pbtest.not_about_memory
@pbtest.not_about_threads
def test_shares_add_up_to_all_cores(scratch):
    command, image = prepare(scratch)
    report = pbtest.run_json(*command, "--json", image)[0]["report"]
    shares = [limit["share"] for limit in report["limits"]]
    assert shares == sorted(shares, reverse=True), shares
    assert 0.9 < sum(shares) < 1.3, report["limits"]
    wall = sum(phase["wall_ms"] for phase in report["phases"])
    share = next(limit for limit in report["limits"] if limit["words"].startswith("encode: "))["share"]
    assert abs(share - work_of(report)["encode"] / (wall * report["cores"])) < 0.001, report


@pbtest.not_about_memory
@pbtest.not_about_threads
def test_the_largest_are_said_in_a_line(scratch):
    command, image = prepare(scratch, 1024)
    report = pbtest.run_json(*command, "--json", image)[0]["report"]
    assert any(report["limit"].startswith(limit["words"]) for limit in report["limits"][:4]), report["limit"]
    said = run(*command, "-v", image).stdout
    line = " ".join(said.split("\n  limit ")[1].split())
    assert "%" in line and " s on " in line and len(line) > 30, said
    assert "limit" not in run(*command, "--quiet", image).stdout


# --- the trace ---

def read_trace(path):
    """The events of a trace by phase, after the rules of the format that hold for all."""
    with open(path) as file:
        trace = json.load(file)
    assert set(trace) == {"displayTimeUnit", "traceEvents", "otherData"}, set(trace)
    kinds = {}
    last = 0
    for event in trace["traceEvents"]:
        assert isinstance(event["name"], str) and event["pid"] > 0 and event["tid"] > 0, event
        kinds.setdefault(event["ph"], []).append(event)
        if event["ph"] != "M":
            assert event["ts"] >= last, (last, event)
            last = event["ts"]
    assert set(kinds) == set("MXCbe"), set(kinds)
    return kinds, trace["otherData"]


def check_nesting(parts):
    """Parts of a thread are nested or disjoint. Times are rounded to nanoseconds."""
    threads = {}
    for part in parts:
        assert part["dur"] >= 0, part
        threads.setdefault((part["pid"], part["tid"]), []).append((part["ts"], part["ts"] + part["dur"]))
    for spans in threads.values():
        around = []
        for start, end in spans:
            while around and around[-1] <= start + 0.0015:
                around.pop()
            assert not around or end <= around[-1] + 0.0015, (start, end, around)
            around.append(end)
    return threads


def check_tiles(begins, ends):
    """Each tile is read, computed and delivered, in this order; returns how many."""
    ways = {}
    for event in sorted(begins + ends, key=lambda e: e["ts"]):
        ways.setdefault((event["pid"], event["id2"]["local"]), []).append(event["ph"] + " " + event["name"])
    inner = "in slots, computed"
    assert set(map(tuple, ways.values())) == {("b tile", "b " + inner, "e " + inner, "e tile")}, ways
    return len(ways)


@pbtest.not_about_memory
def test_a_trace_has_every_tile_through_every_stage(scratch):
    command, image = prepare(scratch)
    done, = pbtest.run_json(*command, "--json", "--profile", scratch / "p.json", image)
    kinds, other = read_trace(scratch / "p.json")
    assert other["events_left_out"] == 0, other
    threads = check_nesting(kinds["X"])
    tiles = check_tiles(kinds["b"], kinds["e"])
    assert tiles == done["report"]["stages"][0]["tiles"] > 1, (tiles, done["report"]["stages"])
    by_name = {}
    for part in kinds["X"]:
        by_name.setdefault(part["name"], []).append(part.get("args", {}))
    for name in ("fill", "compute", "deliver"):
        assert sorted(args["tile"] for args in by_name[name]) == list(range(tiles)), name
    assert {args["product"] for args in by_name["finish"]} == {0, 1, 2, 3}, by_name["finish"]
    assert {"open", "read", "decode", "products", "encode", "overviews", "write", "checksum", "sync", "publish", "input checksum"} <= set(by_name), set(by_name)
    names = {event["args"]["name"] for event in kinds["M"]}
    assert {"pb-tile-0", "pb-tile-1", "pb-finish", "pb-sum"} <= names, names
    assert {(e["pid"], e["tid"]) for e in kinds["M"] if e["name"] == "thread_name"} >= set(threads)
    assert {f"{image}: process that computes", "worker, which opens, checks and publishes"} <= names, names
    counts = {event["name"]: event["args"] for event in kinds["C"]}
    files = sum(product["bytes"] for product in done["products"])
    assert set(counts) == {"written"} and counts["written"]["bytes"] > files / 2, counts


@pbtest.not_about_memory
@pbtest.not_about_threads
def test_trace_keeps_products_and_has_planned_memory(scratch):
    command, image = prepare(scratch, 1024)
    plain, = pbtest.run_json(*command, "--json", image)
    traced, = pbtest.run_json(*command, "--json", "--profile", scratch / "p.json", image)
    sums = [[p["checksum"] for p in done["products"] if p["type"] != "stac"] for done in (plain, traced)]
    assert sums[0] == sums[1], sums
    more = traced["report"]["memory_bytes"] - plain["report"]["memory_bytes"]
    assert more >= 32 << 20, (plain["report"], traced["report"])


def test_trace_has_a_process_per_input_even_if_failed(scratch):
    command, image = prepare(scratch, 1024)
    data = bytearray(image.read_bytes())
    data[len(data) // 2:len(data) // 2 + 100] = b"x" * 100
    (scratch / "damaged.tif").write_bytes(data)
    run(*command, "--quiet", "--profile", scratch / "p.json", image, scratch / "damaged.tif", code=1)
    kinds, _ = read_trace(scratch / "p.json")
    check_nesting(kinds["X"])
    names = [event["args"]["name"] for event in kinds["M"] if event["name"] == "process_name"]
    for path in (image, scratch / "damaged.tif"):
        assert sum(name == f"{path}: process that computes" for name in names) == 1, names
    assert sum(part["name"] == "publish" for part in kinds["X"]) >= 1


def test_a_file_that_is_there_stays(scratch):
    command, image = prepare(scratch, 256)
    (scratch / "p.json").write_text("mine")
    done = run(*command, "--profile", scratch / "p.json", image, code=2)
    assert "is there already" in done.stderr and (scratch / "p.json").read_text() == "mine", done.stderr
    assert not (scratch / "out").exists()
    run(*command, "--profile", scratch / "no/p.json", image, code=1)
    run(*command, "--profile", scratch / "q.json", "--dry-run", image, code=2)
    run("pushbroom", "run", "-c", scratch / "none.yaml", "--profile", scratch / "q.json", image, code=2)
    run(*command, "--profile", scratch / "q.json", scratch / "missing.tif", code=1)
    assert not (scratch / "q.json").exists()


pbtest.main()
