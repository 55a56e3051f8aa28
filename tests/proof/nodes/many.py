#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Many nodes with one PostgreSQL store, simulated by one process (tests/tools/store_load.c): jobs per second, and the time that calls of
the store take. Afterwards the store must have each job as successful, run once, with one event of each change.

  many.py [--nodes N] [--slots N] [--jobs N] [--ends N] [--run-ms N] [--gone N] [--short]

The trial is over when `--ends` jobs have ended, by default all; the others wait then. `--gone`: a node that is gone for ever has N jobs
of a lower priority, and is forgotten during the trial.
The calls are those of the service; a run is a sleep of this mean. The server syncs each commit to the disk."""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from service_kit import closing_line  # noqa: E402, sets the path of the kits
from pbtest import BIN, Skip  # noqa: E402
from postgres_kit import Postgres  # noqa: E402
from store import Cleanups  # noqa: E402

ADD_AT_ONCE = 10000  # jobs added by one statement
EVENTS = ("job.accepted", "job.running", "job.successful")


def check(server, jobs, ended):
    """Returns what is wrong in the store."""
    found = {(status, epoch): int(n) for status, epoch, n in
             server.rows("SELECT status, epoch, count(*) FROM pushbroom.jobs WHERE node <> 'gone' GROUP BY 1, 2")}
    running = found.get(("1", "1"), 0) if ended < jobs else 0  # taken when the trial was over
    right = {("2", "1"): ended, ("1", "1"): running, ("0", "0"): jobs - ended - running}
    wrong = [f"{found.get(key, 0)} jobs are {key[0]}, in epoch {key[1]}, not {right.get(key, 0)}"
             for key in found.keys() | right.keys() if found.get(key, 0) != right.get(key, 0)]
    events = server.rows("SELECT kind, count(*), count(DISTINCT job) FROM pushbroom.events GROUP BY 1 ORDER BY 1")
    if sorted(events) != [(kind, str(n), str(n)) for kind, n in sorted(zip(EVENTS, (jobs, ended + running, ended)))]:
        wrong.append(f"events: {events}")
    n = str(jobs + running + 2 * ended)
    if server.rows("SELECT count(*), max(seq) - min(seq) + 1 FROM pushbroom.events") != [(n, n)]:
        wrong.append("numbers of events have gaps")
    return wrong


def add_gone(server, jobs):
    """Stores the jobs of a node that does not report."""
    subprocess.run([BIN / "pushbroom", "store", "init", server.conninfo], stdout=subprocess.DEVNULL, check=True)
    server.rows("INSERT INTO pushbroom.nodes (node, session, place, work, archive, quarantine, lease_ms, started_ms, seen_ms) VALUES "
                "('gone', 1, '/gone', '/gone/work', '/gone/archive', '/gone/quarantine', 1, 1, 1)")
    for first in range(1, jobs + 1, ADD_AT_ONCE):
        server.rows(
            "INSERT INTO pushbroom.jobs (id, name, created_ms, status, owned, scene, pipeline, input, attempts, started_ms, updated_ms, finished_ms, "
            "progress, stage, device, tiles_done, tiles_total, bytes_read, bytes_written, elapsed_ms, error_code, error_message, error_hint, rank, "
            "node, needs) SELECT 'gone-' || i, i || '.tif', 1, 0, 1, 'gone-' || i, 'p', '/gone/work/' || i, 0, 0, 1, 0, 0, '', '', 0, 0, 0, 0, 0, "
            f"'', '', '', 1, 'gone', 'digest' FROM generate_series({first}, {min(jobs, first + ADD_AT_ONCE - 1)}) AS i")
    server.rows("ANALYZE pushbroom.jobs")


def forget_gone(server, jobs, wrong):
    """Forgets the node after the first jobs have run."""
    while server.rows("SELECT count(*) FROM pushbroom.jobs WHERE status > 1") == [("0",)]:
        time.sleep(0.1)
    began = time.monotonic()
    done = subprocess.run([BIN / "pushbroom", "store", "forget", "gone", server.conninfo], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False)
    running = server.rows("SELECT count(*) FROM pushbroom.jobs WHERE status = 0 AND node <> 'gone'") != [("0",)]
    print(f"store forget: {time.monotonic() - began:.1f} s for {jobs} jobs; other nodes {'still had' if running else 'had no'} jobs at its end")
    tied = server.rows("SELECT count(*) FROM pushbroom.jobs WHERE needs <> ''") + server.rows("SELECT count(*) FROM pushbroom.nodes WHERE node = 'gone'")
    if f"{jobs} that wait or ran" not in done.stdout or tied != [("0",), ("0",)]:
        wrong.append(f"store forget: {tied}: {done.stdout}")


def run(options, server):
    wrong, forget = [], None
    if options.gone:
        add_gone(server, options.gone)
        forget = threading.Thread(target=forget_gone, args=(server, options.gone, wrong))
        forget.start()
    arguments = [f"--{name}={getattr(options, name)}" for name in ("nodes", "slots", "jobs", "ends")] + [f"--run-ms={options.run_ms}"]
    done = subprocess.run([BIN / "store_load", "--store", server.conninfo, *arguments], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        return [f"store_load ended with {done.returncode}"]
    figures = json.loads(done.stdout)
    print(f"{options.nodes} nodes with {options.slots} slots, {figures['ended']} of {options.jobs} jobs of {options.run_ms} ms, {os.cpu_count()} cores, load "
          f"{os.getloadavg()[0]:.0f}: {figures['jobs_per_s']} jobs/s of at most {1000 * options.nodes * options.slots / max(1, options.run_ms):.0f}, "
          f"offers {figures['offers_per_s']}/s")
    for call in ("offer", "take", "permit", "finish", "look", "report"):
        times = figures[call]
        print(f"  {call:7} {times['n']:8} calls, median {times['p50'] / 1000:.1f} ms, 99 % {times['p99'] / 1000:.1f} ms, most {times['max'] / 1000:.0f} ms")
    print(f"  {figures['take_none']['n']} takes found no job")
    if forget:
        forget.join()
    return wrong + check(server, options.jobs, figures["ended"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--slots", type=int, default=4)
    parser.add_argument("--jobs", type=int, default=100000)
    parser.add_argument("--ends", type=int, default=0)
    parser.add_argument("--run-ms", type=int, default=1000)
    parser.add_argument("--gone", type=int, default=0)
    parser.add_argument("--short", action="store_true", help="8 nodes, 400 jobs of 50 ms, and 10,000 of a node that is gone")
    options = parser.parse_args()
    if options.short:
        options.nodes, options.jobs, options.run_ms, options.gone = 8, 400, 50, 10000
    cleanups = Cleanups()
    try:
        server = Postgres(cleanups, ("max_connections=%d" % (3 * options.nodes + 30),))
        wrong = run(options, server)
    except Skip as skip:
        print(f"skipped: {skip}")
        sys.exit(77)
    finally:
        cleanups.run()
    sys.exit(closing_line(wrong, options.jobs))


main()
