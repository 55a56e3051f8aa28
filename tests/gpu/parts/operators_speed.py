# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Speed of a GPU on a scene in its memory, operator by operator, compared with the host's cores (check_ops_speed), and with the limits: pixel-wise
steps and 3 x 3 neighbourhoods move 70 % of the bytes of a copy, the heavy operators are 10 times as fast as 16 cores, and a chain of
pixel-wise steps reads and writes memory once."""
import json

COPY_SHARE = 0.7
HEAVY, HEAVY_TIMES, HEAVY_CORES = ("warp", "median", "refined_lee", "composite"), 10, 16
REGISTERS_A_THREAD = 4 * 4  # bytes of shared memory of one register of the machine: four pixels
SWEEP_THREADS, SWEEP_SHARED = 128, 48 * 1024  # size of a block of kernels/vm/program.cu


def kind_of(row):
    if row["op"] in HEAVY:
        return "heavy"
    if row["keeps_grid"] and not row["focals"]:
        return "pixels"
    return "3 x 3" if row["keeps_grid"] and row["radius"] == 1 else ""


def share(row, copy, ns):
    """Share of the copy's bytes a second, for the bytes that must be moved."""
    return row["need_bytes"] / ns / copy if ns else 0


def times(row, cores, ns):
    """Speed relative to HEAVY_CORES of the measured cores."""
    return row["cpu"] * cores / HEAVY_CORES / ns if ns else 0


def verdict(row, machine):
    """The bar that the row has, whether the faster way of the two reaches it."""
    best = min(ns for ns in (row["stages"], row["parts"]) if ns)
    if kind_of(row) == "heavy":
        return times(row, machine["cores"], best) >= HEAVY_TIMES
    return share(row, machine["copy_gb_per_s"], best) >= COPY_SHARE if kind_of(row) else None


def sweep_blocks(row, machine):
    """Blocks of a sweep that the shared memory of a multiprocessor holds, and their threads: its registers may hold fewer."""
    threads = SWEEP_THREADS
    while threads > 32 and threads * max(row["registers"], 1) * REGISTERS_A_THREAD > SWEEP_SHARED:
        threads //= 2
    return f"{machine['shared_bytes'] // (threads * max(row['registers'], 1) * REGISTERS_A_THREAD + 1024)} x {threads}"


def line_of(row, machine):
    copy, cores = machine["copy_gb_per_s"], machine["cores"]
    at_most = row["need_bytes"] / copy
    ways = "".join(f"{1 / row[way]:12.1f} {row['need_bytes'] / row[way]:5.0f} {share(row, copy, row[way]):4.0%}" if row[way] else f"{'too many registers':>23}" for way in ("stages", "parts"))
    moved = row["stage_bytes"] / row["stages"]
    mark = {True: "meets", False: "BELOW", None: ""}[verdict(row, machine)]
    return (f"  {row['op'] + ' ' + row['case']:30.30} {kind_of(row):6} {row['need_bytes']:5.1f} {1 / at_most:5.0f} {ways} {row['stage_bytes']:6.1f} {moved:5.0f} {moved / copy:4.0%} "
            f"{row['cpu'] * cores:8.2f} {times(row, cores, row['stages']):7.1f} {times(row, cores, row['parts']):7.1f} {mark:5} {row['stages_n']}/{len(row['focals'])}/{row['instructions']}/"
            f"{row['registers']} {sweep_blocks(row, machine):8} {row['parts_shape'].split(',')[0]}")


HEAD = (f"  {'':30} {'bar':6} {'B/px':>5} {'copy':>5} {'stages: Gpx/s GB/s copy':>23}{'parts: Gpx/s GB/s copy':>23} {'moved':>6} {'GB/s':>5} {'copy':>4} "
        f"{'core ns':>8} {'stages':>7} {'parts':>7}       what the chain is")


def explain(machine):
    print(f"  {machine['device']}, {machine['multiprocessors']} multiprocessors, {machine['shared_bytes'] // 1024} KiB of shared memory each, L2 {machine['l2_bytes'] >> 20} MiB; a copy in device memory: {machine['copy_gb_per_s']:.0f} GB/s, read and written")
    print(f"  scene of {machine['side']} x {machine['side']} in device memory; B/px: samples read once and outputs written, of a pixel made; copy: Gpx/s if the device did nothing else\n"
          "  stages: a kernel a stage over the scene; parts: all stages on a part of it by a block, as the resident kernel does; moved: loads and stores of the stages\n"
          f"  core ns: ns a pixel of one of {machine['cores']} cores, all at work on tiles in their caches; then times {HEAVY_CORES} such cores by stages and by parts\n"
          f"  bars: {COPY_SHARE:.0%} of the copy for pixels and 3 x 3, {HEAVY_TIMES} times {HEAVY_CORES} cores for {', '.join(HEAVY)}; what the chain is: stages/focal operations/instructions/registers\n"
          "  of the machine, blocks x threads of a sweep that the shared memory of a multiprocessor holds (its own registers may hold fewer), and the shape of the parts")


def summary(rows, machine):
    for kind in ("pixels", "3 x 3", "heavy"):
        judged = [r for r in rows if kind_of(r) == kind and r["op"] != "steps"]
        if judged:
            print(f"  {kind:6} {sum(verdict(r, machine) for r in judged)} of {len(judged)} meet their bar")
    steps = [r for r in rows if r["op"] == "steps"]
    for way in ("stages", "parts"):
        if steps and all(r[way] for r in steps):
            print(f"  steps, {way}: " + ", ".join(f"{r['case']}: {r[way] / steps[0][way]:.2f}" for r in steps) + " times what one step takes")
    return steps


def operators_speed(host, _):
    print("2c. speed of operators on a scene in device memory")
    done = host.call(host.program("check_ops_speed"), limit=590)
    machine, *rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")] or [{}]
    host.check(done.returncode == 0, f"check_ops_speed, {len(rows)} cases (exit {done.returncode}) {done.stderr[-300:]}")
    if done.returncode == 2:  # it refused
        return
    if "device" not in machine:
        host.check(False, "no GPU was measured")
        return
    explain(machine)
    print(HEAD)
    whole = [r for r in rows if r.get("stages", 0) > 0]
    for row in whole:
        print(line_of(row, machine), flush=True)
    steps = summary(whole, machine)
    host.check(steps and all(r["stages_n"] == 1 for r in steps), f"chains of up to {len(steps) and steps[-1]['case']} pixel-wise steps go over memory once")
    path = host.work / "operators-speed.json"
    path.write_text(done.stdout)
    print(f"  JSON, with focal operations, times and shapes: {path}")
