# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Shared parts of the integration tests: the place of the programs, a scratch directory, a way to run them, and a small runner
that prints each test's name and its outcome."""
import functools
import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile
import traceback

import stac_rules
from patience import run_to_end

BIN = pathlib.Path(os.environ.get("PB_BIN", pathlib.Path(__file__).resolve().parents[2] / "build/bin"))
SOURCE = pathlib.Path(os.environ.get("PB_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
DATA = (pathlib.Path(os.environ["PB_SHARED_DATA"]) if "PB_SHARED_DATA" in os.environ else
        next(p for p in (SOURCE / "../shared/data", SOURCE / "tests/data") if p.is_dir()))
SANITIZED = bool(os.environ.get("PB_SANITIZE"))
FOR_MEMORY = os.environ.get("PB_SANITIZE") == "address"
FOR_RACES = os.environ.get("PB_SANITIZE") == "thread"
SKIP = 77


class Skip(Exception):
    pass


class Missed(Exception):
    """The state that the test needs was over before we looked: the test is run again."""


def run(*args, code=0, env=None, cwd=None):
    """Runs a program of ours; checks its exit code (None = any); returns the CompletedProcess with text."""
    command = [str(BIN / args[0]), *map(str, args[1:])]
    done = run_to_end(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=cwd, env={**os.environ, **(env or {})})
    if code is not None and done.returncode != code:
        raise AssertionError(f"{' '.join(command)}\nexit {done.returncode}, expected {code}\n{done.stdout}\n{done.stderr}")
    return done


def run_json(*args, **more):
    """`pushbroom run --json`: one object an input."""
    return [json.loads(line) for line in run(*args, **more).stdout.splitlines()]


def not_about_memory(function):
    """Skips a test with the address sanitizer: it compares values, and the others run the same code there. The optimised
    programs run it; `--not-about-memory` as argument selects these tests."""
    @functools.wraps(function)
    def wrapper(scratch):
        if FOR_MEMORY:
            raise Skip("not about memory")
        function(scratch)
    wrapper.not_about_memory = True
    return wrapper


def not_about_threads(function):
    """Skips a test under the thread sanitizer, which takes its time and would learn nothing."""
    @functools.wraps(function)
    def wrapper(scratch):
        if FOR_RACES:
            raise Skip("not about threads")
        function(scratch)
    return wrapper


def need_data():
    if not DATA.is_dir():
        raise Skip(f"the sample data is not at {DATA}")
    return DATA


def sentinel2_files(*names):
    """Paths of files of a real Sentinel-2 scene by their names: of the whole one, or of a window of it."""
    folders = [need_data() / "real/sentinel2_29RKH", DATA / "derived/sentinel2_29RKH_crop"]
    folder = next((f for f in folders if (f / "B08.tif").exists()), folders[0])
    paths = {name: path for name in names for path in (SOURCE / "tests/data/metadata" / name, folder / name) if path.exists()}
    missing = [name for name in names if name not in paths]
    if missing:
        raise Skip(f"{folder / missing[0]} is not there")
    return paths


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run_test(name, function, tries=10):
    """One test, in a fresh directory."""
    for left in reversed(range(tries)):
        scratch = pathlib.Path(tempfile.mkdtemp(prefix="pb-" + name[:20] + "-"))
        try:
            function(scratch)
            return stac_rules.check_all(scratch)
        except Missed as why:
            print(f"again {name}: {why}", flush=True)
            if left == 0:
                raise
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


def main(namespace):
    """Runs every function of the module called test_*. Exit 77 when all were skipped."""
    tests = [(name, f) for name, f in namespace.items() if name.startswith("test_") and callable(f)]
    wanted = sys.argv[1:]
    if wanted == ["--not-about-memory"]:
        tests, wanted = [(name, f) for name, f in tests if getattr(f, "not_about_memory", False)], []
    failed = skipped = 0
    for name, function in tests:
        if wanted and name not in wanted:
            continue
        before = cpu_seconds()
        try:
            run_test(name, function)
            print(f"ok    {name}, {cpu_seconds() - before:.1f} s of the CPU", flush=True)
        except Skip as why:
            skipped += 1
            print(f"skip  {name}: {why}", flush=True)
        except Exception:  # a test's failure, whatever it is, is printed and counted
            failed += 1
            print(f"FAIL  {name}", flush=True)
            traceback.print_exc()
    print(f"{len(tests) - failed - skipped} passed, {failed} failed, {skipped} skipped")
    sys.exit(1 if failed else SKIP if skipped == len(tests) else 0)
