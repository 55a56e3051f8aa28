#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: threads slow
"""`pushbroom run` with many inputs: small scenes are computed at the same time, and everything else is as if they were computed one
after the other: products, results in the order of the inputs, memory, errors, interruptions."""
import contextlib
import hashlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile

import pbtest
from patience import children, cpu_ticks, wait_for
from pbtest import BIN, program_folder, run

FOLDER = program_folder()
NONE_PUBLISHES = "service: {publishing_jobs: 0}\n"  # in addition to those that compute
N = 12


def scenes(n=N):
    """Small scenes of one tile; made once for all cases."""
    paths = [FOLDER / f"s{i:02}.tif" for i in range(n)]
    for i, path in enumerate(paths):
        if not path.exists():
            own = FOLDER / f"{os.getpid()}.part"
            run("make_scene", "--size", "200x150", "--seed", i + 1, own)
            own.rename(path)
    return paths


def many(scratch, n=60 if pbtest.SANITIZED else 240):
    """The same scenes under more names: a command with them runs long enough to be looked at."""
    paths = [scratch / f"many{i:03}.tif" for i in range(n)]
    for i, path in enumerate(paths):
        if not path.exists():
            os.link(scenes()[i % N], path)
    return paths


def left_behind(out):
    return [p.name for p in out.iterdir() if p.name.startswith(".")]


def config(scratch, compute="threads: 4", products="- cog: {bands: [NDVI]}", name="c.yaml", more=""):
    path = scratch / name
    path.write_text(f"compute: {{device: cpu, {compute}}}\n{more}pipelines:\n  p:\n    input: {{match: ['*.tif'], bands: {{B: 1, G: 2, R: 3, N: 4}}}}\n"
                    f"    steps:\n      - index: {{names: [NDVI]}}\n    products:\n      {products}\n")
    return path


def start(*words, results=subprocess.PIPE):
    """A test that reads the results only after the end gives a file for them: some 15 results fill a pipe."""
    return subprocess.Popen([str(BIN / "pushbroom"), *map(str, words)], stdout=results, stderr=subprocess.PIPE, text=True)


def results_of(process, file):
    """Waits for the end; returns what the command wrote to the file, and its messages."""
    _, err = process.communicate()
    file.seek(0)
    return file.read(), err


def files(folder):
    return {str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest() for p in folder.rglob("*.tif")}


def workers_seen(*words):
    """Runs the command; returns the largest number of its workers, which stay until all inputs are done, and its output."""
    most = 0

    def ended():
        nonlocal most
        most = max(most, len(children(process.pid)))
        return process.poll() is not None
    with tempfile.TemporaryFile("w+") as file, start(*words, results=file) as process:
        wait_for(ended, progress=lambda: cpu_ticks(process.pid), step=0.002)
        out, err = results_of(process, file)
    assert process.returncode == 0, err
    return most, out


def test_small_scenes_are_computed_at_a_time(scratch):
    most, out = workers_seen("run", "--json", "-c", config(scratch, more=NONE_PUBLISHES), "-o", scratch / "out", *scenes())
    assert most == 4, most
    path = config(scratch, "threads: 1", name="one.yaml", more=NONE_PUBLISHES)
    alone, again = workers_seen("run", "--json", "-c", path, "-o", scratch / "one", *scenes())
    assert alone == 1, alone
    results = [json.loads(line) for line in out.splitlines()]
    assert [r["input"] for r in results] == [str(p) for p in scenes()]
    assert {r["status"] for r in results} == {"successful"}
    assert [r["input"] for r in map(json.loads, again.splitlines())] == [r["input"] for r in results]
    assert files(scratch / "out") == files(scratch / "one") and len(files(scratch / "out")) == N


def test_scenes_of_several_crss_are_alike(scratch):
    """A worker loads the CRS of a scene for later ones, also after scenes without one; products are the same as alone."""
    paths = []
    for number, epsg in enumerate((32633, 32720, 3857, 32633, 4326, 32720, 3857, 32633)):
        paths.append(scratch / f"crs{number}.tif")
        run("make_scene", "--size", "200x150", "--epsg", epsg, "--corner", "9.5,48.25" if epsg == 4326 else "600000,5900040",
            "--pixel", "0.0001" if epsg == 4326 else "10", paths[-1])
    path = config(scratch, "threads: 1", products="- cog: {bands: [NDVI]}\n      - stac: {datetime: file-time}")
    run("pushbroom", "run", "--quiet", "-c", path, "-o", scratch / "out", *paths)
    for one in paths:
        run("pushbroom", "run", "--quiet", "-c", path, "-o", scratch / "alone", one)
    assert files(scratch / "out") == files(scratch / "alone") and len(files(scratch / "out")) == len(paths)
    for item in sorted((scratch / "out").rglob("*.stac.json")):
        together, alone = (json.loads(p.read_text()) for p in (item, scratch / "alone" / item.relative_to(scratch / "out")))
        assert together["bbox"] == alone["bbox"] and together["geometry"] == alone["geometry"], item
    assert left_behind(scratch / "out") == []


def test_few_scenes_are_computed_at_a_time(scratch):
    for n in (2, 4):
        path = config(scratch, f"threads: {n}", name=f"few{n}.yaml", more=NONE_PUBLISHES)
        most, _ = workers_seen("run", "--quiet", "-c", path, "-o", scratch / f"few{n}", *scenes()[:n])
        assert most == n, (n, most)


def test_scenes_of_many_tiles_are_computed_alone(scratch):
    large = [scratch / f"large{i}.tif" for i in range(2)]
    for path in large:
        run("make_scene", "--size", "1500x1500", path)
    words = ["run", "--json", "-c", config(scratch, "threads: 2", "- cog: {bands: [NDVI], blocksize: 64}", more=NONE_PUBLISHES),
             "-o", scratch / "out"]
    most, out = workers_seen(*words, *large)
    assert most == 1, most
    # small ones after a large one wait for it; then they are computed at the same time
    most, out = workers_seen(*words, "--existing", "replace", large[0], *scenes(), large[1])
    assert most == 2, most
    results = [json.loads(line) for line in out.splitlines()]
    assert [r["input"] for r in results] == [str(p) for p in [large[0], *scenes(), large[1]]]


def test_next_scene_is_computed_while_one_publishes(scratch):
    most, out = workers_seen("run", "--quiet", "-c", config(scratch, "threads: 1"), "-o", scratch / "out", *scenes())
    assert most == 2, most
    assert len(files(scratch / "out")) == N


def test_plans_share_the_memory(scratch):
    inputs = [scratch / f"square{i}.tif" for i in range(8)]
    run("make_scene", "--size", "512x512", inputs[0])
    for path in inputs[1:]:
        os.link(inputs[0], path)
    size = json.loads(run("pushbroom", "run", "--dry-run", "--json", "-c", config(scratch), inputs[0]).stdout)["plan"]["memory_bytes"]
    words = ["run", "--quiet", "-o", scratch / "out", "--existing", "replace", "-c"]
    for fit in (1, 3):
        memory = f"threads: 4, memory: {int(size * (fit + 0.5)) >> 10}KiB"
        most, _ = workers_seen(*words, config(scratch, memory, more=NONE_PUBLISHES), *inputs)
        assert most == fit, (fit, most)


def test_bad_scene_among_many_fails_alone(scratch):
    inputs = list(scenes())
    broken = scratch / "broken.tif"
    broken.write_bytes(scenes()[0].read_bytes()[:4000])
    inputs[3:3] = [broken, scratch / "missing.tif"]
    done = run("pushbroom", "run", "--json", "-c", config(scratch), "-o", scratch / "out", *inputs, code=1)
    results = [json.loads(line) for line in done.stdout.splitlines()]
    assert [r["input"] for r in results] == [str(p) for p in inputs]
    assert [r["status"] for r in results] == ["failed" if i in (3, 4) else "successful" for i in range(N + 2)]
    assert results[4]["error"]["code"] == "input.missing", results[4]
    assert len(files(scratch / "out")) == N


def test_scenes_of_one_name_keep_their_order(scratch):
    inputs = []
    for i, path in enumerate(scenes()):
        folder = scratch / f"day{i}"
        folder.mkdir()
        inputs.append(shutil.copy(path, folder / "same.tif"))
    run("pushbroom", "run", "--quiet", "--existing", "version", "-c", config(scratch), "-o", scratch / "out", *inputs)
    run("pushbroom", "run", "--quiet", "-c", config(scratch), "-o", scratch / "each", *scenes())
    for i in range(N):
        made = scratch / "out" / ("same" if i == 0 else f"same~{i + 1}") / "p/same.tif"
        assert made.read_bytes() == (scratch / f"each/s{i:02}/p/s{i:02}.tif").read_bytes(), made
    done = run("pushbroom", "run", "--json", "--existing", "refuse", "-c", config(scratch), "-o", scratch / "once", *inputs, code=1)
    results = [json.loads(line) for line in done.stdout.splitlines()]
    assert [r["status"] for r in results] == ["successful"] + ["failed"] * (N - 1), results
    assert files(scratch / "once")["same/p/same.tif"] == files(scratch / "each")["s00/p/s00.tif"]


def test_products_of_one_command_are_not_replaced(scratch):
    inputs = [shutil.copy(path, folder / "same.tif") for path, folder in zip(scenes(4), [scratch / f"day{i}" for i in range(4)])
              if folder.mkdir() is None]
    inputs.insert(2, shutil.copy(inputs[0], scratch / "same.tif"))  # equal content
    words = ["run", "--json", "--existing", "replace", "-c", config(scratch), "-o", scratch / "out"]
    run("pushbroom", *words, inputs[3])  # was there before the command
    done = run("pushbroom", *words, *inputs, code=1)
    results = [json.loads(line) for line in done.stdout.splitlines()]
    assert [r["status"] for r in results] == ["successful", "failed", "successful", "failed", "failed"], results
    assert results[1]["error"]["code"] == "output.exists" and str(inputs[0]) in results[1]["error"]["message"], results[1]
    run("pushbroom", "run", "--quiet", "-c", config(scratch), "-o", scratch / "each", inputs[0])
    assert files(scratch / "out")["same/p/same.tif"] == files(scratch / "each")["same/p/same.tif"]
    text = run("pushbroom", *words[:1], *words[2:], inputs[1], scratch / "missing/same.tif", inputs[3], code=1).stderr
    assert f"{inputs[1]} of this command made them" in text and "--existing version" in text, text
    assert text.endswith(f"1 done, 2 failed: same.tif, {inputs[3]}\n"), text
    for more in ((), ("--dry-run",)):  # one file
        assert run("pushbroom", *words[:1], *words[2:], *more, inputs[1], scratch / "day0/../day1/same.tif").stderr == ""
    plan = run("pushbroom", *words[:1], *words[2:], "--dry-run", *inputs[:2])
    assert f"{inputs[1]}: its products have the place of those of {inputs[0]}" in plan.stderr, plan.stderr


def test_shared_files_grow_in_the_order_of_inputs(scratch):
    products = "- cog: {bands: [NDVI]}\n      - stac: {collection: fields, datetime: file-time}"
    for threads in (1, 4):
        where = scratch / f"out{threads}"
        run("pushbroom", "run", "--quiet", "-c", config(scratch, f"threads: {threads}", products), "-o", where, *scenes())
    pages = [sorted(p.name for p in (scratch / f"out{t}").glob("*.json")) for t in (1, 4)]
    assert pages[0] == pages[1] and "collection.json" in pages[0], pages
    for name in pages[0]:
        one, four = (json.loads((scratch / f"out{t}" / name).read_text()).get("links") for t in (1, 4))
        assert one == four, name


def test_interrupt_ends_all_and_leaves_nothing(scratch):
    words = ["run", "--json", "-c", config(scratch, "threads: 3"), "-o", scratch / "out"]
    with contextlib.ExitStack() as stack:
        process = stack.enter_context(start(*words, *many(scratch)))
        line = process.stdout.readline()
        wait_for(lambda: process.poll() is not None or len(children(process.pid)) >= 3)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
    if process.returncode == 0:
        raise pbtest.Missed("it was done before the signal came")
    assert process.returncode == -signal.SIGINT and "interrupted" in err, (process.returncode, err)
    results = [json.loads(text) for text in (line + out).splitlines()]
    inputs = [r["input"] for r in results]
    assert inputs == sorted(inputs) and inputs[0] == str(many(scratch)[0]), inputs
    assert all(r["status"] == "successful" or r["error"]["code"] == "job.dismissed" for r in results), results
    assert not left_behind(scratch / "out"), left_behind(scratch / "out")
    done = {p.name for p in (scratch / "out").iterdir()}
    assert done == {pathlib.Path(r["input"]).stem for r in results if r["status"] == "successful"}, done


def kill_busy_worker(pid):
    """Kills the second of three workers if a child of it computes; returns its pid, or None."""
    workers = children(pid)
    if len(workers) < 3:
        return None
    os.kill(workers[1], signal.SIGSTOP)  # it cannot end its job between the check and its end
    busy = children(workers[1])
    os.kill(workers[1], signal.SIGKILL if busy else signal.SIGCONT)
    return workers[1] if busy else None


def test_killed_worker_costs_only_its_own_scene(scratch):
    words = "run", "--json", "-c", config(scratch, "threads: 3"), "-o", scratch / "out", *many(scratch)
    with tempfile.TemporaryFile("w+") as file, start(*words, results=file) as process:
        hit = wait_for(lambda: process.poll() is not None or kill_busy_worker(process.pid))
        out, err = results_of(process, file)
    if hit is True:
        raise pbtest.Missed("it was done before the worker was killed")
    results = [json.loads(text) for text in out.splitlines()]
    assert process.returncode == 0, err
    assert [r["input"] for r in results] == [str(p) for p in many(scratch)]
    assert err.count("it runs again") == 1, err
    assert not left_behind(scratch / "out"), left_behind(scratch / "out")


pbtest.main()
