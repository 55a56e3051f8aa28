#!/usr/bin/env python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Checks the models of wic/ with spin, exhaustively: shapes of the protocol that must hold, and the same models with one
mistake each, which must be found. A search that does not reach its end (memory, time, depth) counts as a failure, and so
does a mistake that is not found.

Usage: run_spin.py [-v] [--all] [MODEL[.holds|.broken] ...]     both models by default; exits 77 without spin or gcc.
The short form (half a minute of one core) leaves out the shapes of a million states and most mistakes; --all takes
everything (5 minutes of one core), and is what a change of a model or of what it stands for needs."""
import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
MEGABYTES = 1500
DEPTH = 20000

# How the verifier is compiled: under a million states what gcc takes to optimise is more than what it saves. The short
# form has the small ones only; every kind of participant, end and property has a small shape.
SMALL, LARGE = "-O0", "-O1"
EVERY_NTH_MISTAKE = 4  # in the short form

# Shapes that must hold: (defines, also as a liveness property: no run continues for ever; size).
HOLDS = {
    "channel": [
        ("NP=1 NC=1 N=5 SLOTS=1", False, SMALL),
        ("NP=1 NC=1 N=5 SLOTS=2 SPURIOUS=2", False, SMALL),
        ("NP=1 NC=1 N=3 SLOTS=2 CLOSE", False, SMALL),
        ("NP=1 NC=2 N=3 SLOTS=2", False, LARGE),
        ("NP=2 NC=1 N=3 SLOTS=2", False, LARGE),
        ("NP=1 NC=2 N=2 SLOTS=1 IMPATIENT", False, SMALL),
        ("NP=2 NC=1 N=3 SLOTS=1 IMPATIENT", False, LARGE),
        ("NP=2 NC=1 N=2 SLOTS=1 CLOSE", False, LARGE),
        ("NP=2 NC=1 N=2 SLOTS=1 ABORT", False, LARGE),
        ("NP=2 NC=2 N=2 SLOTS=1", False, LARGE),
        ("NP=1 NC=2 N=2 SLOTS=1 SPURIOUS=2", False, SMALL),
        ("NP=2 NC=1 N=1 SLOTS=1 CLOSE", False, SMALL),
        ("NP=2 NC=1 N=1 SLOTS=1 ABORT", False, SMALL),
        ("NP=1 NC=1 N=1 SLOTS=1 ABORT", True, SMALL),
        ("NP=2 NC=2 N=1 SLOTS=1 CLOSE", False, LARGE),
        ("NP=2 NC=2 N=1 SLOTS=1 ABORT", False, LARGE),
        ("NP=1 NC=1 N=3 SLOTS=2 ABORT", True, LARGE),
        ("NP=1 NC=2 N=1 SLOTS=1 ABORT", True, LARGE),
        ("NP=1 NC=2 N=1 SLOTS=1 CLOSE", True, LARGE),
        ("NP=1 NC=1 N=5 SLOTS=2 SEVERAL", False, SMALL),
        ("NP=1 NC=1 N=4 SLOTS=4 SEVERAL", False, SMALL),
        ("NP=1 NC=2 N=3 SLOTS=2 SEVERAL", False, LARGE),
        ("NP=2 NC=1 N=3 SLOTS=2 SEVERAL", False, LARGE),
        ("NP=1 NC=1 N=3 SLOTS=2 SEVERAL CLOSE", False, LARGE),
        ("NP=1 NC=1 N=3 SLOTS=2 SEVERAL ABORT", True, LARGE),
    ],
    "device": [
        ("N=5 SLOTS=3 BLOCKS=2", False, SMALL),
        ("N=3 SLOTS=2 BLOCKS=3 PULLS=2", False, SMALL),
        ("N=5 SLOTS=2 BLOCKS=2 SHORT", False, SMALL),
        ("N=3 SLOTS=2 BLOCKS=2 LONG IDLES=1 TIMEOUTS=1", False, SMALL),
        ("N=2 SLOTS=1 BLOCKS=2 LONG", True, SMALL),
        ("N=3 SLOTS=2 BLOCKS=3 PULLS=2 SHORT IDLES=1", False, SMALL),
        ("N=4 SLOTS=2 BLOCKS=2 IDLES=2 TIMEOUTS=1", False, SMALL),
        ("N=3 SLOTS=1 BLOCKS=2 IDLES=1 TIMEOUTS=2", False, SMALL),
        ("N=3 SLOTS=2 BLOCKS=2 IDLES=1 TIMEOUTS=1 ABORT", False, LARGE),
        ("N=3 SLOTS=2 BLOCKS=2 IDLES=1 HOST_DIES", False, SMALL),
        ("N=3 SLOTS=2 BLOCKS=2 PULLS=1 WARPS DEPTH=2", False, SMALL),
        ("N=3 SLOTS=2 BLOCKS=1 WARPS DEPTH=2 IDLES=1 TIMEOUTS=1", False, SMALL),
        ("N=2 SLOTS=1 BLOCKS=2 WARPS ABORT", False, SMALL),
        ("N=4 SLOTS=2 BLOCKS=1 ENGINE", False, SMALL),
        ("N=3 SLOTS=2 BLOCKS=2 ENGINE", False, SMALL),
        ("N=3 SLOTS=2 BLOCKS=1 ENGINE_ALL TIMEOUTS=1 IDLES=1", False, SMALL),
        ("N=3 SLOTS=2 BLOCKS=2 ENGINE SHORT", False, SMALL),
        ("N=2 SLOTS=2 BLOCKS=1 ENGINE ABORT", False, SMALL),
        ("N=4 SLOTS=2 BLOCKS=1 ENGINE LAZY TWO_WAY=1 IDLES=1", False, SMALL),
        ("N=2 SLOTS=1 BLOCKS=2 ENGINE IDLES=1 TIMEOUTS=1", True, SMALL),
        ("N=3 SLOTS=2 BLOCKS=1 WARPS ENGINE DEPTH=2", False, LARGE),
        ("N=4 SLOTS=3 BLOCKS=1 WARPS DEPTH=2 IDLES=1", False, LARGE),
        ("N=3 SLOTS=2 BLOCKS=1 ENGINE IDLES=1 SETUPS=1", False, LARGE),
        ("N=2 SLOTS=2 BLOCKS=2 RIVAL=1 ENGINE", False, LARGE),
        ("N=4 SLOTS=3 BLOCKS=1 ENGINE LAZY", False, LARGE),
        ("N=4 SLOTS=3 BLOCKS=1 ENGINE", False, LARGE),
        ("N=3 SLOTS=2 BLOCKS=1 ENGINE IDLES=1 TIMEOUTS=1", False, LARGE),
        ("N=2 SLOTS=2 BLOCKS=2 PULLS=1 ENGINE TIMEOUTS=1 ABORT", False, LARGE),
        ("N=2 SLOTS=1 BLOCKS=1 ENGINE IDLES=1 TIMEOUTS=1 ABORT", True, LARGE),
        ("N=2 SLOTS=2 BLOCKS=1 ENGINE HOST_DIES", False, LARGE),
        ("N=2 SLOTS=2 BLOCKS=2 ARRIVALS IDLES=1 TIMEOUTS=1", False, SMALL),
        ("N=2 SLOTS=1 BLOCKS=2 ARRIVALS IDLES=1 TIMEOUTS=1", True, SMALL),
        ("N=3 SLOTS=2 BLOCKS=3 ARRIVALS IDLES=1", False, LARGE),
        ("N=2 SLOTS=2 BLOCKS=2 RIVAL=2 IDLES=1", False, SMALL),
        ("N=2 SLOTS=2 BLOCKS=2 RIVAL_STAYS IDLES=1", False, SMALL),
        ("N=2 SLOTS=2 BLOCKS=2 RIVAL_STAYS IDLES=1 TIMEOUTS=1", False, LARGE),
        ("N=3 SLOTS=2 BLOCKS=2 RIVAL=2 IDLES=1 TIMEOUTS=1", False, LARGE),
        ("N=2 SLOTS=2 BLOCKS=2 RIVAL=1 ABORT", False, LARGE),
        ("N=2 SLOTS=1 BLOCKS=2 RIVAL=1 HOST_DIES", False, LARGE),
        ("N=2 SLOTS=1 BLOCKS=2 WARPS RIVAL=1", False, LARGE),
        ("N=3 SLOTS=2 BLOCKS=2 SETUPS=2 IDLES=1", False, SMALL),
        ("N=3 SLOTS=2 BLOCKS=2 SETUPS=1 IDLES=1 TIMEOUTS=1", False, LARGE),
        ("N=2 SLOTS=2 BLOCKS=2 SETUPS=1 ABORT", False, LARGE),
        ("N=4 SLOTS=2 BLOCKS=2 TWO_WAY=1 IDLES=1 TIMEOUTS=1", False, SMALL),
        ("N=3 SLOTS=2 BLOCKS=2 TWO_WAY=1 RIVAL=1 IDLES=1", False, SMALL),
        ("N=2 SLOTS=2 BLOCKS=1 IDLES=1 TIMEOUTS=1 ABORT", True, LARGE),
    ],
    "lanes": [
        ("LANES=2 BLOCKS=1", False, SMALL),
        ("LANES=1 BLOCKS=2 VISITS=2 ABORT", False, SMALL),
        ("LANES=1 BLOCKS=2 VISITS=2 TILES=2 DEPTH=2 PULLS=1", False, SMALL),
        ("LANES=2 BLOCKS=1 VISITS=2", False, LARGE),
        ("LANES=2 BLOCKS=1 ABORT", False, LARGE),
        ("LANES=2 BLOCKS=2 PULLS=1", False, LARGE),
    ],
    "told": [
        ("N=5 SLOTS=2", False, SMALL),
        ("N=5 SLOTS=1 WAYS_END", False, SMALL),
        ("N=4 SLOTS=2 COUNT=3 WAYS_END ABORT", False, SMALL),
        ("N=3 SLOTS=1 WAYS_END ABORT", True, SMALL),
        ("N=5 SLOTS=2 WAYS_END", False, LARGE),
    ],
    "peer": [
        ("N=4 SLOTS=1 DEPTH=1", False, SMALL),
        ("N=2 ANSWERS", False, SMALL),
        ("N=2 ANSWERS PULL SLOTS=1", False, SMALL),
        ("N=2 ABSENT", False, SMALL),
        ("N=2 SLOTS=1 ONE_LEAVES", True, SMALL),
        ("N=4", False, LARGE),
        ("N=4 BULK", False, LARGE),
        ("N=6 SLOTS=4 DEPTH=1", False, LARGE),
        ("N=5 SLOTS=4 DEPTH=1 ANSWERS", False, SMALL),
        ("N=6 PULL", False, LARGE),
        ("N=2 STOP", False, LARGE),
        ("N=2 SLOTS=1 STOP", True, LARGE),
        ("N=2 ANSWERS STOP", False, LARGE),
        ("N=2 ANSWERS ONE_LEAVES", False, LARGE),
        ("N=3 ANSWERS BULK", False, LARGE),
    ],
}

# One mistake each, in a shape that shows it: (defines, message of spin).
STUCK, TOUCHED = "invalid end state", "assertion violated"
BROKEN = {
    "channel": [
        ("NP=1 NC=1 N=2 SLOTS=2 BROKEN_LOOKS_THEN_READS_SIGNAL", STUCK),
        ("NP=1 NC=1 N=2 SLOTS=2 BROKEN_NUDGE_BEFORE_STORE", STUCK),
        ("NP=1 NC=1 N=2 SLOTS=2 BROKEN_LOAD_OVERTAKES_STORE", STUCK),
        ("NP=1 NC=1 N=2 SLOTS=2 BROKEN_STORE_BEFORE_DATA", TOUCHED),
        ("NP=2 NC=2 N=2 SLOTS=2 BROKEN_NO_NUDGE_AFTER_TAKE", STUCK),
        ("NP=1 NC=2 N=3 SLOTS=2 BROKEN_SLEEPS_ON_ODD", STUCK),
        ("NP=1 NC=2 N=2 SLOTS=2 IMPATIENT BROKEN_GIVES_UP_WITHOUT_LOOKING", STUCK),
        ("NP=1 NC=2 N=2 SLOTS=1 CLOSE BROKEN_NO_WAKE_AT_THE_END", STUCK),
        ("NP=1 NC=1 N=2 SLOTS=2 ABORT BROKEN_ABORT_WITHOUT_WAKE", STUCK),
        ("NP=1 NC=2 N=2 SLOTS=2 ABORT BROKEN_SIGNAL_TOO_SHORT", STUCK),
        ("NP=1 NC=1 N=4 SLOTS=2 SEVERAL BROKEN_WAKES_BEFORE_THE_SECOND", STUCK),
    ],
    "device": [
        # A kernel that returns.
        ("N=3 SLOTS=2 BLOCKS=2 IDLES=1 BROKEN_RESTARTS_BEFORE_IT_LEFT", STUCK),
        ("N=3 SLOTS=2 BLOCKS=2 TIMEOUTS=1 BROKEN_RESTARTS_BEFORE_IT_LEFT", TOUCHED),
        ("N=3 SLOTS=2 BLOCKS=2 IDLES=1 BROKEN_POSTS_TO_WHO_IS_LEAVING", STUCK),
        ("N=3 SLOTS=2 BLOCKS=2 IDLES=1 BROKEN_END_LEFT_CLOSED", TOUCHED),
        ("N=3 SLOTS=2 BLOCKS=2 IDLES=1 BROKEN_DOOR_NOT_CLEARED", TOUCHED),
        ("N=3 SLOTS=2 BLOCKS=2 IDLES=1 BROKEN_BOARD_NOT_CLEARED", TOUCHED),
        ("N=3 SLOTS=2 BLOCKS=2 IDLES=1 BROKEN_DONE_NOT_CLEARED", TOUCHED),
        ("N=3 SLOTS=2 BLOCKS=2 IDLES=1 BROKEN_OFFSETS_STAY", TOUCHED),
        ("N=3 SLOTS=2 BLOCKS=2 IDLES=1 BROKEN_CLOSES_AT_TICKET", STUCK),
        # A kernel that left by itself.
        ("N=3 SLOTS=2 BLOCKS=2 TIMEOUTS=1 BROKEN_ARRIVED_NOT_CLEARED", TOUCHED),
        ("N=3 SLOTS=2 BLOCKS=2 TIMEOUTS=1 BROKEN_REPOSTS_FROM_POSTED", STUCK),
        ("N=3 SLOTS=2 BLOCKS=2 TIMEOUTS=1 BROKEN_NOT_CLOSED_AGAIN", STUCK),
        ("N=3 SLOTS=2 BLOCKS=2 TIMEOUTS=1 BROKEN_LOOKS_AND_THEN_ASKS", TOUCHED),
        ("N=3 SLOTS=2 BLOCKS=2 HOST_DIES BROKEN_NO_HEARTBEAT", STUCK),
        ("N=3 SLOTS=2 BLOCKS=2 ABORT BROKEN_ACTIVATOR_DEAF", STUCK),
        # Blocks that arrive one by one, or have no room.
        ("N=2 SLOTS=2 BLOCKS=2 RIVAL_STAYS IDLES=1 BROKEN_STARTED_NOT_CLEARED", STUCK),
        ("N=2 SLOTS=2 BLOCKS=2 RIVAL_STAYS IDLES=1 BROKEN_FIRST_BLOCK_STARTS", STUCK),
        ("N=2 SLOTS=2 BLOCKS=2 RIVAL_STAYS IDLES=1 BROKEN_NO_ABORT_WITHOUT_ROOM", STUCK),
        ("N=2 SLOTS=2 BLOCKS=2 RIVAL_STAYS IDLES=1 BROKEN_WAITS_FOR_A_MONITOR_WITHOUT_ROOM", STUCK),
        ("N=2 SLOTS=2 BLOCKS=2 RIVAL_STAYS IDLES=1 BROKEN_RESTARTS_BEFORE_IT_LEFT", STUCK),
        # Another job that needs the device without a resident kernel.
        ("N=3 SLOTS=2 BLOCKS=2 SETUPS=1 BROKEN_NOT_ASKED_TO_LEAVE", STUCK),
        ("N=3 SLOTS=2 BLOCKS=2 SETUPS=1 BROKEN_LEFT_BEFORE_ITS_END", TOUCHED),
        # A party that waits for results before it sends more.
        ("N=3 SLOTS=2 BLOCKS=2 TWO_WAY=1 BROKEN_HANDS_OVER_WHEN_FULL", STUCK),
        # A block without a piece.
        ("N=3 SLOTS=2 BLOCKS=2 SHORT BROKEN_WAITS_FOR_WHAT_IS_OVER", STUCK),
        # Tiles by copy engine.
        ("N=3 SLOTS=2 BLOCKS=1 ENGINE BROKEN_MONITOR_IGNORES_LANDED", TOUCHED),
        ("N=3 SLOTS=2 BLOCKS=1 ENGINE_ALL BROKEN_LANDED_OF_FIRST_LANE", TOUCHED),
        ("N=3 SLOTS=2 BLOCKS=1 ENGINE BROKEN_WRITES_BEFORE_COPY", TOUCHED),
        ("N=3 SLOTS=2 BLOCKS=1 ENGINE BROKEN_BACK_LAGS", TOUCHED),
        ("N=3 SLOTS=2 BLOCKS=1 ENGINE TIMEOUTS=1 BROKEN_RESTARTS_WITH_COPIES_QUEUED", TOUCHED),
        ("N=3 SLOTS=2 BLOCKS=1 ENGINE TIMEOUTS=1 BROKEN_RELEASES_WHEN_COPIED", TOUCHED),
        ("N=3 SLOTS=2 BLOCKS=1 ENGINE IDLES=1 BROKEN_LANDED_NOT_CLEARED", TOUCHED),
        ("N=3 SLOTS=2 BLOCKS=1 ENGINE BROKEN_PULLS_PAST_WAITING", STUCK),
        ("N=3 SLOTS=2 BLOCKS=1 ENGINE BROKEN_PUBLISHES_BEFORE_BACK", TOUCHED),
        ("N=3 SLOTS=2 BLOCKS=1 ENGINE BROKEN_BRINGS_BACK_UNMADE", TOUCHED),
        ("N=3 SLOTS=2 BLOCKS=1 ENGINE_ALL BROKEN_SETTLES_BY_OTHER_LANE", TOUCHED),
        ("N=3 SLOTS=2 BLOCKS=1 ENGINE TWO_WAY=1 BROKEN_BATCH_WAITS_TO_FILL", STUCK),
        ("N=3 SLOTS=2 BLOCKS=1 ENGINE TIMEOUTS=1 ABORT BROKEN_LEAVES_WITH_COPIES_QUEUED", TOUCHED),
        # Slots and stages.
        ("N=3 SLOTS=2 BLOCKS=2 LONG BROKEN_POSTS_WHAT_DOES_NOT_FIT", TOUCHED),
        ("N=3 SLOTS=2 BLOCKS=2 BROKEN_NO_OUTPUT_SLOT", TOUCHED),
        ("N=3 SLOTS=2 BLOCKS=2 BROKEN_RELEASES_WHEN_COPIED", TOUCHED),
        ("N=3 SLOTS=2 BLOCKS=2 BROKEN_FIRST_PIECE_PUBLISHES", TOUCHED),
        ("N=3 SLOTS=2 BLOCKS=2 PULLS=1 BROKEN_FIRST_WAITS_TOO", STUCK),
        ("N=3 SLOTS=2 BLOCKS=1 WARPS BROKEN_NO_WAIT_FOR_EMPTY", TOUCHED),
        ("N=3 SLOTS=2 BLOCKS=1 WARPS BROKEN_OPENS_WHEN_PULL_STARTS", TOUCHED),
        ("N=3 SLOTS=2 BLOCKS=1 WARPS BROKEN_EMPTY_BEFORE_RESULTS_ARE_READ", TOUCHED),
        ("N=3 SLOTS=2 BLOCKS=1 WARPS BROKEN_COUNTS_BEFORE_WRITTEN", TOUCHED),
        ("N=3 SLOTS=2 BLOCKS=1 WARPS BROKEN_LEAVE_NOT_PASSED_ON", STUCK),
        ("N=3 SLOTS=2 BLOCKS=1 WARPS ABORT BROKEN_ACTIVATOR_DEAF", STUCK),
    ],
    "lanes": [
        ("LANES=2 BLOCKS=1 ABORT BROKEN_LEFT_WITHOUT_A_MARK", TOUCHED),
        ("LANES=2 BLOCKS=1 VISITS=2 BROKEN_MONITOR_NOT_COUNTED", TOUCHED),
        ("LANES=2 BLOCKS=1 VISITS=2 BROKEN_OPENED_BEFORE_DESCRIBED", TOUCHED),
        ("LANES=2 BLOCKS=1 VISITS=2 BROKEN_NUMBER_STAYS", TOUCHED),
        ("LANES=2 BLOCKS=1 VISITS=2 BROKEN_OPEN_WORDS_STAY", TOUCHED),
        ("LANES=2 BLOCKS=1 BROKEN_FIRST_ENDS_THE_KERNEL BROKEN_LEAVES_BESIDE_OPEN_LANES", STUCK),
        ("LANES=2 BLOCKS=2 TILES=2 PULLS=1 BROKEN_WAITS_IN_A_LANE", STUCK),
    ],
    "told": [
        ("N=5 SLOTS=2 STEPS=2", TOUCHED),  # a ring of steps must have more than that of chunks
        ("N=3 SLOTS=1 BROKEN_GIVES_BEFORE_WRITTEN", TOUCHED),
        ("N=3 SLOTS=1 BROKEN_PUBLISHES_BEFORE_WRITTEN", TOUCHED),
        ("N=3 SLOTS=1 BROKEN_GIVES_BACK_BEFORE_READ", TOUCHED),
        ("N=3 SLOTS=1 BROKEN_SENDS_WITHOUT_ROOM", TOUCHED),
        ("N=3 SLOTS=1 BROKEN_READS_WHAT_WAS_NOT_TOLD", TOUCHED),
        ("N=3 SLOTS=1 BROKEN_TELLS_BEFORE_WRITTEN", TOUCHED),
        ("N=3 SLOTS=1 ABORT BROKEN_DEAF_TO_THE_ABORT", STUCK),
        ("N=3 SLOTS=1 BROKEN_NEVER_SAYS_THE_END", STUCK),
    ],
    "peer": [
        ("N=4 BROKEN_SENDS_WITHOUT_CREDIT", TOUCHED),
        ("N=4 BROKEN_CREDIT_BEFORE_READ", TOUCHED),
        ("N=4 BULK BROKEN_POSTS_BEFORE_STORED", TOUCHED),
        ("N=4 SLOTS=1 BROKEN_TAKES_ANY_WORD", TOUCHED),
        ("N=4 BROKEN_NO_WAIT_FOR_EMPTY", STUCK),
        ("N=3 ONE_LEAVES BROKEN_DEAF_TO_STOP", STUCK),
        ("N=2 BROKEN_LEAVE_NOT_PASSED_ON", STUCK),
        ("N=4 BROKEN_CREDIT_TOO_LATE", STUCK),
        ("N=3 ONE_LEAVES BROKEN_LEAVES_IN_SILENCE", STUCK),
    ],
}


def sh(command, folder):
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace")
    return done.returncode, done.stdout


def search(model, defines, liveness, optimise):
    """Verdict of pan on one shape, or the reason why it has no verdict."""
    with tempfile.TemporaryDirectory(prefix="pb-spin-") as folder:
        options = ["-D" + define for define in defines.split()] + (["-DENDS"] if liveness else [])
        rc, text = sh(["spin", "-a", *options, str(HERE / f"{model}.pml")], folder)
        if rc != 0 or not (pathlib.Path(folder) / "pan.c").exists() or "Error" in text:
            return f"spin -a failed:\n{text}"
        safety = ["-DNOFAIR"] if liveness else ["-DSAFETY", "-DNOCLAIM"]
        rc, text = sh(["gcc", optimise, "-w", f"-DMEMLIM={MEGABYTES}", *safety, "-o", "pan",
                       "pan.c"], folder)
        if rc != 0:
            return f"the verifier does not compile:\n{text}"
        return sh(["./pan", f"-m{DEPTH}", "-w23", "-n", *(["-a"] if liveness else [])], folder)[1]


def verdict(text, wanted):
    """'' when pan found what was wanted (None: nothing, after a whole search), else what is wrong."""
    errors = re.search(r"errors: (\d+)", text)
    if not errors:
        return text
    if wanted is None:
        whole = not re.search(r"not completed|max search depth too small|out of memory|truncated", text)
        return "" if errors.group(1) == "0" and whole else text
    return "" if re.search(r"pan:\d+: .*" + wanted, text) else f"the mistake was not found (wanted: {wanted})\n{text}"


def check(model, defines, wanted, liveness, size, verbose):
    start = time.monotonic()
    text = search(model, defines, liveness, size)
    wrong = verdict(text, wanted)
    states = re.search(r"(\d+) states, stored", text)
    said = "FAILED" if wrong else ("no error" if wanted is None else f"found: {wanted}")
    print(f"{model:8} {defines + (' (every run ends)' if liveness else ''):82} {said:26} "
          f"{int(states.group(1)) if states else 0:10d} states {time.monotonic() - start:5.1f} s", flush=True)
    if wrong or verbose:
        print(text if not wrong else wrong)
    return not wrong


def shapes(model, kind, every):
    """Searches: (defines, expected finding, liveness, size)."""
    if kind == "holds":
        rows = [(defines, None, liveness, size) for defines, liveness, size in HOLDS[model]]
        return rows if every else [row for row in rows if row[3] == SMALL]
    rows = [(defines, wanted, False, SMALL) for defines, wanted in BROKEN[model]]
    return rows if every else rows[::EVERY_NTH_MISTAKE]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-v", action="store_true", help="print all that pan says")
    parser.add_argument("--all", action="store_true", help="the long form")
    parser.add_argument("what", nargs="*", default=[])
    args = parser.parse_args()
    for tool in ("spin", "gcc"):
        if not shutil.which(tool):
            print(f"no {tool} here: the models are not checked")
            return 77
    good, done = True, 0
    for model in HOLDS:
        for kind in ("holds", "broken"):
            if args.what and not {model, f"{model}.{kind}"} & set(args.what):
                continue
            for defines, wanted, liveness, size in shapes(model, kind, args.all):
                good = check(model, defines, wanted, liveness, size, args.v) and good
                done += 1
    if done == 0:
        print(f"nothing is called {' '.join(args.what)}")
        return 2
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
