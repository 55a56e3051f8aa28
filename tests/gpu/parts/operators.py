# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Operators and random expressions, CPU against GPU."""
import concurrent.futures


def beside(host, n):
    """Processes that share a GPU take turns on it, its copy engines and its multiprocessors each at their own times: the bytes
    of a copy may arrive after a kernel that did not wait for them."""
    with concurrent.futures.ThreadPoolExecutor(n) as pool:
        ends = list(pool.map(lambda _: host.call(host.program("check_ops"), "--quick", limit=300), range(n)))
    wrong = [e for e in ends if e.returncode != 0]
    host.check(not wrong, f"{n} processes of check_ops side by side {wrong[0].stderr[-300:] if wrong else ''}")


def operators(host, _):
    print("2. operators, CPU against GPU")
    done = host.call(host.program("check_ops"), limit=300)
    print("\n".join("  " + line for line in done.stdout.splitlines()))
    host.check(done.returncode == 0, f"check_ops (exit {done.returncode}) {done.stderr[-300:]}")
    beside(host, 8)
    for program in ("check_warp", "check_lost"):
        done = host.call(host.program(program), limit=120)
        print("\n".join("  " + line for line in done.stdout.splitlines()))
        host.check(done.returncode == 0, f"{program} (exit {done.returncode}) {done.stderr[-300:]}")
