# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""tests/bench/run --gate: pushbroom's CPU seconds of each row against those of this machine's page. Other work on a machine adds CPU seconds and
never takes some away, therefore the least of several turns counts, and a row that is too slow has more turns before it fails."""
import sys

import figures

from . import contest, scene
from .rows import ROWS

LIMIT = 1.05  # factor of the page's CPU seconds
TURNS = 3  # turns of every row
MOST = 12  # turns of a row that stays above the limit

PASS, AGAIN, FAIL = "pass", "again", "fail"


def verdict(page_cpu, turns, most=MOST):
    """Outcome of a row: CPU seconds on the page, and those of its turns until now."""
    if turns and min(turns) <= LIMIT * page_cpu:
        return PASS
    return FAIL if len(turns) >= most else AGAIN


def page_of_machine(o):
    path = o.page or figures.path_of(figures.machine())
    if not path.exists():
        sys.exit(f"there is no page of this machine ({path}): tests/bench/run writes it")
    page = figures.read(path)
    if page["size"] != o.size:
        sys.exit(f"{path} has scenes of {page['size']} x {page['size']}; take --size {page['size']}")
    return page


def measure(o, row, kind, n):
    """CPU seconds of n turns of pushbroom."""
    sources = scene.of_row(o, row, kind)
    us = contest.ours(o, row, sources)
    us.turns = [None]  # the comparison of pixels is another run's
    for _ in range(n):
        if contest.turns(o, row, sources, [us]):
            sys.exit(f"{row.name}: pushbroom failed")
    return [turn[contest.CPU] for turn in us.turns[1:]]


def line_of(key, page_cpu, turns, outcome):
    return f"{key[0]:14} {key[1]:10} {page_cpu:8.3f} {min(turns):8.3f} {min(turns) / page_cpu - 1:+7.1%} {len(turns):3}  {outcome}"


def run(o):
    """Exit status: 0, or 1 if a row takes over 5 % more CPU seconds than on the page."""
    page, turns = page_of_machine(o), {}
    chosen = [(name, kind) for name in o.rows if name in ROWS for kind in scene.kinds_of(ROWS[name], o.scenes)]
    for key in chosen:
        if key not in page["rows"]:
            print(f"{key[0]:14} {key[1]:10} is not on the page")
    cpu = {key: page["rows"][key]["pushbroom"]["cpu_seconds"] for key in chosen if key in page["rows"]}
    print(f"CPU seconds against {page['path'].name} of {page['date']}, commit {page['commit']}; at most {LIMIT - 1:.0%} more\n"
          f"{'row':14} {'scene':10} {'page':>8} {'least':>8} {'':7} turns")
    left = list(cpu)
    while left:
        for key in left:
            turns[key] = turns.get(key, []) + measure(o, ROWS[key[0]], key[1], TURNS)
            print(line_of(key, cpu[key], turns[key], verdict(cpu[key], turns[key])), flush=True)
        left = [key for key in left if verdict(cpu[key], turns[key]) == AGAIN]
    slow = [key for key in cpu if verdict(cpu[key], turns[key]) == FAIL]
    print(f"{len(cpu) - len(slow)} rows are as fast as on the page, {len(slow)} are slower" + "".join(f"\n  {line_of(k, cpu[k], turns[k], FAIL)}" for k in slow))
    return 1 if slow or not cpu else 0
