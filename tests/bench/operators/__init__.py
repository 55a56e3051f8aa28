# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""tests/bench/run operators [--build DIR] [--venv DIR] [--operators median,convolve] [--cores 1,2] [--seconds 0.3]

Operators compared with scipy, OpenCV and GDAL (rows.py): ns a pixel made of a warm plane of 512 x 512 pixels, by one thread on one core and by as many processes as
cores are named, each on a plane and a core of its own, the slowest of them counting; CPU time of the thread on both sides, so that other work on the
machine counts for less. pushbroom's side is bench_ops: samples of UInt16 with nodata
become float32, pass the operator and are stored; rivals get float32 and know no nodata, except for steps on single pixels, which numpy (the column of
scipy) begins with such samples. `of a copy` is the share of the speed at which the machine
copies such a pixel through its memory, one process a core: the bound of everything that reads and writes memory once. The last line is the same as JSON."""
import argparse
import json
import os
import pathlib
import subprocess

from rivals import venv

from .rows import ROWS

HERE = pathlib.Path(__file__).resolve().parent
ENGINES = {"scipy": "venv", "opencv": "venv", "gdal": "debian"}


def options(arguments, root):
    parser = argparse.ArgumentParser(prog="tests/bench/run operators", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=root / "build")
    parser.add_argument("--venv", type=pathlib.Path, help="the scratch environment of scipy and OpenCV, made where it is not there; without it Debian's")
    parser.add_argument("--operators", type=lambda t: t.split(","), help="all of rows.py unless given")
    parser.add_argument("--cores", type=lambda t: [int(n) for n in t.split(",")], default=[1, 2], help="how many at a time [1,2]")
    parser.add_argument("--seconds", type=float, default=0.3, help="for a row of a rival")
    return parser.parse_args(arguments)


def on_cores(n, command, text=""):
    """Output of each of n processes, one on each of the first n cores, at the same time."""
    cores = sorted(os.sched_getaffinity(0))[:n]
    if len(cores) < n:
        return None
    running = [subprocess.Popen(["taskset", "-c", str(core), *map(str, command)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for core in cores]
    for process in running:
        process.stdin.write(text)
        process.stdin.close()
    printed = [process.stdout.read() for process in running]
    for process in running:
        if process.wait() != 0:
            raise SystemExit(f"{command[0]} failed")
    return [[json.loads(line) for line in lines.splitlines()] for lines in printed]


def ours(o, n, rows):
    """{(operator, case): ns a pixel}, all cores together."""
    told = on_cores(n, [o.build / "bin/bench_ops", "--json", *sorted({r.operator for r in rows})])
    return {} if told is None else {(c["op"], c["case"]): max(1e3 / one[i]["mpx_per_s"] for one in told) / n for i, c in enumerate(told[0])}


def theirs(o, engine, n, expressions):
    """Time of each expression, all cores together; None where the engine has no answer, which is reported."""
    python = venv.DEBIAN if ENGINES[engine] == "debian" or o.venv is None else o.python
    told = on_cores(n, [python, HERE / "rival.py", engine, o.seconds], "".join(e + "\n" for e in expressions))
    if told is None:
        return [None] * len(expressions)
    for line in {one["why"] for one in told[0] if one["ns"] is None}:
        print(f"{engine}: {line}")
    return [None if any(one[i]["ns"] is None for one in told) else max(one[i]["ns"] for one in told) / n for i in range(len(expressions))]


def measure(o, rows, n):
    """A dictionary a row: ns of ours, of each rival, and the copy's."""
    (copy,) = theirs(o, "scipy", n, ["copy"])
    found = [{"operator": r.operator, "case": r.case, "cores": n, "copy_ns": copy, "rivals": {}} for r in rows]
    own = ours(o, n, rows)
    for told, r in zip(found, rows):
        told["ns"] = own.get((r.operator, r.case))
    for engine in ENGINES:
        mine = [(told, r.rivals[engine]) for told, r in zip(found, rows) if engine in r.rivals]
        for (told, _), ns in zip(mine, theirs(o, engine, n, [e for _, e in mine]) if mine else []):
            told["rivals"][engine] = ns
    return found


def line_of(told):
    ns, copy = told["ns"], told["copy_ns"]
    rivals = "".join(f"{told['rivals'][e]:9.2f} {told['rivals'][e] / ns:6.1f} x" if ns and told["rivals"].get(e) else " " * 18 for e in ENGINES)
    own = f"{ns:9.2f} {f'{copy / ns:6.0%}' if copy else '':>6}" if ns else f"{'no case':>16}"
    return f"{told['operator']:12}{told['case']:18}{told['cores']:2} {own}{rivals}"


def run(arguments, root):
    o = options(arguments, root)
    o.build = o.build.resolve()
    o.python = venv.prepare(o.venv) if o.venv else None
    rows = [r for r in ROWS if not o.operators or r.operator in o.operators]
    print(f"{'operator':12}{'case':18}cores ns/px  of a copy" + "".join(f"{e:>9}{'':9}" for e in ENGINES))
    found = []
    for n in o.cores:
        for told in measure(o, rows, n):
            print(line_of(told), flush=True)
            found.append(told)
    print(json.dumps({"rows": found}))
