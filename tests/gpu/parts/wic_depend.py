# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Two dependent stages of wic/stages by every strategy."""
import shutil

from .host import show

MISTAKES = ["early", "lost", "element", "silent"]


def wic_depend(host, _):
    print("8f. wic-depend: results, and mistakes that must be found")
    program = host.program("wic-depend")
    done = host.call(program, "--check", limit=100)
    show(done)
    host.check(done.returncode == 0, f"wic-depend --check: every element right (exit {done.returncode})")
    for mistake in MISTAKES:
        done = host.call(program, "--break", mistake, limit=100)
        show(done)
        host.check(done.returncode == 0, f"wic-depend --break {mistake}: found in every strategy and plan (exit {done.returncode})")


def wic_depend_sanitizer(host, _):
    print("8g. compute-sanitizer over wic-depend")
    if shutil.which("compute-sanitizer") is None:
        host.check(False, "compute-sanitizer is not on PATH")
        return
    for tool in ("memcheck", "synccheck"):
        done = host.call("compute-sanitizer", "--tool", tool, "--error-exitcode", "99", host.program("wic-depend"), "--check", limit=300)
        show(done)
        host.check(done.returncode == 0, f"{tool} of wic-depend --check (exit {done.returncode})")


def wic_depend_figures(host, _):
    print("8h. wic-depend: figures")
    done = host.call(host.program("wic-depend"), "--json", host.work / "wic-depend.json", limit=300)
    show(done)
    host.check(done.returncode == 0, f"wic-depend --json (exit {done.returncode})")
