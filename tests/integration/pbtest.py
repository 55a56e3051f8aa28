# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Shared parts of test programs: the places of programs and data, a way to run a program, and the runner of the cases (main)."""
import atexit
import functools
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

from patience import run_to_end
from runner import Missed, Skip, main  # noqa: F401

BIN = pathlib.Path(os.environ.get("PB_BIN", pathlib.Path(__file__).resolve().parents[2] / "build/bin"))
SOURCE = pathlib.Path(os.environ.get("PB_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
DATA = (pathlib.Path(os.environ["PB_SHARED_DATA"]) if "PB_SHARED_DATA" in os.environ else
        next(p for p in (SOURCE / "../shared/data", SOURCE / "tests/data") if p.is_dir()))
SANITIZED = bool(os.environ.get("PB_SANITIZE"))
FOR_MEMORY = os.environ.get("PB_SANITIZE") == "address"
FOR_RACES = os.environ.get("PB_SANITIZE") == "thread"


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


def program_folder():
    """Makes a folder for all cases of the program, which removes it at its end. Called before main()."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="pb-program-"))
    atexit.register(shutil.rmtree, folder, True)
    return folder


def plain_scene(folder, size):
    """An uncompressed scene of this many pixels a side; the cases that share the folder make it once."""
    path = folder / f"{size}.tif"
    if not path.exists():
        own = folder / f"{size}-{os.getpid()}.tif"
        run("make_scene", "--size", f"{size}x{size}", "--compress", "NONE", own)
        own.rename(path)
    return path


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
