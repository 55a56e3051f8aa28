#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""The plans of tests/golden/plans: every sample and every pipeline of features.py on the CPU and on GPUs that are not here, with small
and large budgets, as text. A plan that differs prints a unified diff of its block and the way to make it by hand.

    tests/golden/plans.py [GROUP...]             compares all plans, or those files; exit 1 if a plan differs
    tests/golden/plans.py --write [GROUP...]     writes the plans of today
    tests/golden/plans.py --by-hand NAME DIR     makes the scene and the configuration of one plan in DIR and prints its commands

PB_BIN is the folder of the programs. `golden_plans` there is `pushbroom` in one process for all plans (tests/tools/golden_plans.c);
it also plans as the process that owns the GPU does ("served"), and as a process that computes on it by itself ("own")."""
import argparse
import difflib
import itertools
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

import features
import scenes

GOLDEN = pathlib.Path(__file__).resolve().parent / "plans"
BIN = pathlib.Path(os.environ.get("PB_BIN", scenes.ROOT / "build/bin"))
SIDE = 10980
SMALL = {"sentinel1-grd": 4000, "sentinel1-flood": 600, "mosaic": 4000, "grids": 5000}  # sides of other scenes than SIDE
# A plan's device and its section `compute`; threads is never all cores of the machine.
VARIANTS = [
    ("cpu", "memory: 64MiB, threads: 1"),
    ("cpu", "memory: 512MiB, threads: 2"),
    ("cpu", "memory: 16GiB, threads: 16"),
    ("h200", "memory: 512MiB, threads: 2"),
    ("h200", "memory: 16GiB, threads: 16"),
    ("h200", "memory: 2GiB, threads: 16, codecs: device, sync: stream"),
    ("t4", "memory: 256MiB, threads: 2"),
    ("t4", "memory: 4GiB, threads: 16, codecs: device, device_memory: 512MiB"),
    ("jetson-orin-nano", "memory: 512MiB, threads: 2"),
    ("jetson-orin", "memory: 2GiB, threads: 16, buffers: managed"),
]
DEVICES = ["jetson-orin", "jetson-orin-32", "jetson-orin-nx", "jetson-orin-nano", "t4", "a100", "l4", "h100", "h200"]
# Numbers that only the process with the files computes.
OF_JOB = re.compile(r"memory\.|decodes|sources\.\d+\.(cell|later)|threads\.(reading|writing|wanted)|slots\.scratch|gate\.|digits|"
                    r"chain\.rounds|made\.(most|products)|exchange|blocks\.why|resident\.alone")
# Values that most plans have; the text leaves them out.
COMMON = {"engine": "cpu", "decodes": "1", "tiles.unit_columns": "1", "chain.rounds": "1", "exchange.of": "tiles", "exchange.pattern": "unidirectional (reach: 0)", "slots.memory": "host"}


def sweeps():
    """Each budget, device and key of `compute` alone, on one pipeline."""
    for memory in ("64MiB", "96MiB", "128MiB", "256MiB", "512MiB", "1GiB", "2GiB", "4GiB", "8GiB", "16GiB"):
        for device in ("cpu", "h200", "jetson-orin-nano"):
            yield device, f"memory: {memory}, threads: 16"
    for device in DEVICES:
        for more in ("", ", codecs: device", ", codecs: host"):
            yield device, f"memory: 1GiB, threads: 2{more}"
    for device in ("h200", "t4", "jetson-orin"):
        for more in ("buffers: pinned", "buffers: managed", "buffers: host", "sync: stream", "tile: 256", "device_memory: 64MiB, codecs: device", "device_memory: 4GiB"):
            yield device, f"memory: 1GiB, threads: 16, {more}"
    for threads in (1, 2, 3, 16, 64):
        yield "cpu", f"memory: 1GiB, threads: {threads}"


class Case:
    """One plan. group: the file that it is in, and the pipeline."""

    def __init__(self, group, pipeline, device, compute):
        self.group, self.pipeline, self.device, self.compute = group, pipeline, device, compute
        self.name = f"{group} {device} {compute}"


def cases():
    for name in [*scenes.SAMPLES, *features.FEATURES]:
        for variant in VARIANTS:
            yield Case(name, name, *variant)
    for variant in sweeps():
        yield Case("compute", "vegetation", *variant)


def config_text(pipeline, folder):
    if pipeline in features.FEATURES:
        return features.text(pipeline)
    return (scenes.ROOT / f"samples/{pipeline}.yaml").read_text().replace("/data/", f"{folder}/")


def make_scene(pipeline, folder):
    """The input of the pipeline, made once a folder."""
    make = scenes.SAMPLES.get(pipeline) or features.FEATURES[pipeline].scene
    folder.mkdir(parents=True)
    return make(folder, scenes.Sparse(), SMALL.get(pipeline, SIDE))


def arguments(case, folder, scene, number):
    """The command line after the name of the program; writes its configuration."""
    config = folder / f"{number}.yaml"
    config.write_text(config_text(case.pipeline, folder) + f"\ncompute: {{{case.compute}}}\n")
    device = ["--device", "cpu"] if case.device == "cpu" else ["--as", case.device]
    return ["run", "--dry-run", "--json", "--quiet", *device, "-c", str(config), "-p", case.pipeline, "-o", str(folder / "out"), str(scene)]


# --- text -----------------------------------------------------------------------------------------

def number(value):
    return f"{value:.4f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def flat(value, at=""):
    """Members as {path: text}, without those that are 0, false, null or empty. A list of numbers is one text."""
    if isinstance(value, dict):
        return {k: v for key, inner in value.items() for k, v in flat(inner, f"{at}.{key}" if at else key).items()}
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return {k: v for i, inner in enumerate(value) for k, v in flat(inner, f"{at}.{i}").items()}
    if isinstance(value, list):
        return {at: ",".join(map(number, value))} if value else {}
    text = "yes" if value is True else number(value)
    return {at: text} if value not in (0, None, False, "") and COMMON.get(at) != text else {}


def lines_of(members, before):
    """`members` as lines, one an object of the pass; the words of reasons end their line."""
    lines = {}
    for path, value in members.items():
        object_, _, key = path.rpartition(".")
        lines.setdefault(object_ or "pass", []).append(f"{key}={value}")
    return [f"{before}{object_.replace('.', ' ')}: {' '.join(sorted(words, key=lambda w: ' ' in w))}" for object_, words in lines.items()]


def differences(job, other, skip):
    """The members of `other` that are not as the job's; "-": 0, absent, or the common value."""
    keys = [*other, *(k for k in job if k not in other)]
    return {k: other.get(k, "-") for k in keys if job.get(k) != other.get(k) and not (skip and skip.match(k))}


def compared(label, job, other, skip=None):
    """Lines for passes that another process plans, with their differences from the job's."""
    if isinstance(other, dict) and "refused" in other:
        yield f"{label}: refused {other['refused']['code']}: {other['refused']['message']}"
        return
    passes = other["passes"] if isinstance(other, dict) else other
    for i, pass_ in enumerate(passes):
        if "refused" in pass_:
            yield f"{label} {i + 1}: refused {pass_['refused']['code']}: {pass_['refused']['message']}"
            continue
        found = differences(job[i] if i < len(job) else {}, flat(pass_), skip)
        yield f"{label} {i + 1}: {'differs' if found else 'same'}"
        yield from lines_of(found, "  ")


def block_lines(case, answer):
    """The text of one plan."""
    yield f"== {case.device} {{{case.compute}}}"
    plan, error = answer.get("plan"), answer.get("error")
    if error:
        yield f"refused {error['code']}: {error['message']}"
    if plan is None:
        yield from [] if error else [f"{answer['status']}: {answer.get('skipped')}"]
        return
    yield f"device {plan['device']}, memory {plan['memory_bytes']} of {plan['memory_budget_bytes']}"
    encoded = [p["encoded_on"] + (f" ({p['encoded_on_why']})" if p.get("encoded_on_why") else "") for p in plan["products"] if "encoded_on" in p]
    if encoded:
        yield "encoded by " + ", ".join(f"{where} x {sum(1 for _ in same)}" for where, same in itertools.groupby(encoded))
    passes = [flat(p) for p in plan["passes"]]
    for i, pass_ in enumerate(passes):
        yield f"pass {i + 1} of {len(passes)}"
        yield from lines_of(pass_, "  ")
    if "served" in plan:
        yield from compared("served", passes, plan["served"], OF_JOB)
    if "own" in plan:
        yield from compared("own", passes, plan["own"])


def answers(wanted, work):
    """(case, its answer) for each case; one process plans all."""
    inputs, lines = {}, []
    for i, case in enumerate(wanted):
        folder = work / case.pipeline
        if case.pipeline not in inputs:
            inputs[case.pipeline] = make_scene(case.pipeline, folder)
        lines.append("\t".join(arguments(case, folder, inputs[case.pipeline], i)))
    done = subprocess.run([BIN / "golden_plans"], input="\n".join(lines) + "\n", stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=work)
    groups = re.split(r'^\{"exit": -?\d+\}\n', done.stdout, flags=re.M)
    if done.returncode or len(groups) != len(wanted) + 1:
        sys.exit(f"golden_plans ended with {done.returncode} after {len(groups) - 1} of {len(wanted)} plans: {done.stderr[-2000:]}")
    for case, text in zip(wanted, groups):
        if not text.strip():
            sys.exit(f"{case.name}: no plan: {done.stderr[-2000:]}")
        yield case, json.loads(text.replace(str(work / case.pipeline), "DIR"))


def plans(groups):
    """{group: text of its file}; groups: all if empty"""
    texts = {}
    with tempfile.TemporaryDirectory(prefix="pb-golden-") as work:
        for case, answer in answers([c for c in cases() if not groups or c.group in groups], pathlib.Path(work)):
            texts.setdefault(case.group, []).append("\n".join(block_lines(case, answer)))
    return {group: "\n\n".join(blocks) + "\n" for group, blocks in texts.items()}


# --- commands -------------------------------------------------------------------------------------

def compare(kept, found):
    """Prints what differs; returns how many plans do."""
    differing = 0
    for group in sorted(kept.keys() | found.keys()):
        blocks = [{text.splitlines()[0]: text.splitlines() for text in side.get(group, "").split("\n\n") if text} for side in (kept, found)]
        for title in blocks[0] | blocks[1]:
            old, new = (side.get(title, []) for side in blocks)
            if [line.rstrip() for line in old] == [line.rstrip() for line in new]:
                continue
            differing += 1
            print("\n".join(difflib.unified_diff(old, new, f"tests/golden/plans/{group}.txt", "now", n=2, lineterm="")))
            print(f"by hand: tests/golden/plans.py --by-hand {shlex.quote(f'{group} {title[3:]}')} DIR\n")
    return differing


def by_hand(name, folder):
    case = next((c for c in cases() if name in (c.name, f"{c.group} {c.device} {{{c.compute}}}")), None)
    if case is None:
        sys.exit(f"there is no plan '{name}'")
    scene = make_scene(case.pipeline, folder / case.pipeline)
    words = [word for word in arguments(case, folder / case.pipeline, scene, 0) if word != "--quiet"]
    print(shlex.join([str(BIN / "pushbroom"), *words]))
    if case.device != "cpu":
        print("the same with `served` and `own`: " + "printf '%s\\t' " + shlex.join(words) + f" | {BIN / 'golden_plans'}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--by-hand", nargs=2, metavar=("NAME", "DIR"))
    parser.add_argument("groups", nargs="*", metavar="GROUP")
    o = parser.parse_args()
    if o.by_hand:
        by_hand(o.by_hand[0], pathlib.Path(o.by_hand[1]).resolve())
        return
    found = plans(o.groups)
    n = sum(text.count("\n== ") + 1 for text in found.values())
    if o.write:
        GOLDEN.mkdir(exist_ok=True)
        for path in GOLDEN.glob("*.txt"):
            if not o.groups or path.stem in o.groups:
                path.unlink()
        for group, text in found.items():
            (GOLDEN / f"{group}.txt").write_text(text)
        print(f"{n} plans written")
        return
    differing = compare({path.stem: path.read_text() for path in GOLDEN.glob("*.txt") if not o.groups or path.stem in o.groups}, found)
    print(f"{n} plans, {differing} of them differ" + (": if they are meant to, tests/golden/plans.py --write, and state the change in the commit" if differing else ""))
    sys.exit(1 if differing else 0)


if __name__ == "__main__":
    main()
