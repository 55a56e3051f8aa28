# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""The faults of the trial. Each is a generator: it makes the fault, yields while the fault lasts, and ends it. FAULTS names the part that
a fault needs for itself (a node, the store): two faults at the same time do not undo each other. All choices are numbers of the plan.
Two trials of one seed differ only in the jobs that run at the time of a fault."""
import dataclasses
import errno
import signal
import time

import control
from daemon_kit import RpcError
from patience import wait_for
from store import CLOSED, DEAF, HOLD, PASS, send

DAY_S = 86400


@dataclasses.dataclass
class Planned:
    """kind: of FAULTS; node: number of it; lasts: in leases; pick: a number from 0 to 1; alone: ended before the next one begins."""
    kind: str
    node: int
    lasts: float
    pick: float
    alone: bool
    scenes: int


def node_killed(trial, node, fault):
    trial.await_job(node)
    trial.note_dead(node)
    node.kill()
    yield
    node.start()


def all_killed(trial, node, fault):
    for each in trial.cluster.nodes:
        each.kill()
    yield
    for each in trial.cluster.nodes:
        each.start()


def node_killed_at_call(trial, node, fault):
    """Kills at the n-th call that changes a directory or makes a change durable."""
    role = "daemon" if fault.pick < 0.6 else "worker"
    rule = node.faults.rule("change", control.KILL_NTH, role=role, n=1 + int(fault.pick * 997) % 30)
    yield
    node.faults.set_mode(rule, control.OFF)
    time.sleep(0.1)  # a process that has read the rule dies now
    if node.faults.place(rule)[0] == node.process.pid:
        node.process.wait()
    node.calm()
    if not node.alive():
        node.start()


def node_ended(trial, node, fault):
    """SIGTERM, as an upgrade does. A node that is not ready may not handle signals yet, and has nothing to end."""
    right = (0,) if node.was_ready() else (0, -signal.SIGTERM)
    node.process.send_signal(signal.SIGTERM)
    yield
    wait_for(lambda: node.process.poll() is not None, progress=lambda: len(node.log_text()))
    if node.process.returncode not in right:
        trial.wrong.append(f"node {node.name} ended with {node.process.returncode}:\n{node.tail(6)}")
    node.start()


def node_stopped(trial, node, fault):
    trial.await_job(node)
    trial.note_dead(node)
    stopped = node.stop_all()
    yield
    send(reversed(stopped), signal.SIGCONT)


def worker_killed(trial, node, fault):
    trial.await_job(node)
    workers = node.processes()
    if workers:
        node.kill(workers[int(fault.pick * len(workers))])
    yield


def worker_stopped(trial, node, fault):
    trial.await_job(node)
    workers = node.processes()
    stopped = workers and [workers[int(fault.pick * len(workers))]]
    send(stopped, signal.SIGSTOP)
    yield
    send(stopped, signal.SIGCONT)


def cut(mode):
    def begin(trial, node, fault):
        node.set_links(mode, drop=mode == CLOSED)
        yield
        node.set_links(PASS, drop=fault.pick < 0.5)
    return begin


def store_killed(trial, node, fault):
    trial.cluster.store.kill()
    yield
    trial.cluster.store.restart()


def store_stopped(trial, node, fault):
    stopped = trial.cluster.store.stop(trial.cluster.store.first)
    yield
    send(reversed(stopped), signal.SIGCONT)


def standby_stopped(trial, node, fault):
    """Commits wait for it."""
    stopped = trial.cluster.store.stop(trial.cluster.store.second)
    yield
    send(reversed(stopped), signal.SIGCONT)


def failover(trial, node, fault):
    """Fails over while each node has a scene for its next job."""
    up = trial.nodes_up()
    for each in trial.cluster.nodes:
        trial.deliver_to(each)
    store = trial.cluster.store
    store.kill()
    begun = time.time()
    store.promote()
    trial.failovers.append((begun, time.time(), up))
    yield
    store.renew_standby()


def disk_full(trial, node, fault):
    """Fills the file system of products for all nodes if the trial has mounted it; otherwise writes of one node fail."""
    ballast = [place / ".ballast" for place in trial.cluster.places] if trial.is_mounted else []
    for path in ballast:
        with open(path, "wb", buffering=0) as file:  # the close would write a buffer again, and fail
            try:
                while file.write(bytes(1 << 20)):
                    pass
            except OSError as error:
                assert error.errno == errno.ENOSPC
    if not ballast:
        for call in ("write", "pwrite"):
            node.faults.rule(call, control.FAIL_ALL, role="worker", path="/products/", error=errno.ENOSPC)
    yield
    for path in ballast:
        path.unlink()
    if not ballast:
        node.calm()


def fetcher_killed(trial, node, fault):
    trial.await_job(node)
    node.kill_fetcher()
    yield
    node.start_fetcher()


def line_cut(trial, node, fault):
    trial.await_job(node)
    node.line.is_up = False
    node.line.cut()
    yield
    node.line.is_up = True


def line_slow(trial, node, fault):
    """The transfer of the files of a scene takes about as long as a lease."""
    node.line.rate = 2e5 / trial.cluster.lease
    trial.await_job(node)
    yield
    node.line.rate = None


def clock_wrong(trial, node, fault):
    node.faults.set_clock(DAY_S if fault.pick < 0.5 else -DAY_S)
    yield
    node.faults.set_clock(0)


def renames_slow(trial, node, fault):
    node.faults.rule("rename", control.DELAY, delay_ms=int(2000 * trial.cluster.lease * fault.pick))
    yield
    node.calm()


def rename_late(trial, node, fault):
    """A worker hangs in a rename, most often in that of a scene's products; its node loses its lease meanwhile, and the jobs run
    elsewhere."""
    rule = node.faults.rule("rename", control.HANG, role="worker", path="/s0" if fault.pick * 8 % 1 < 0.7 else "")
    trial.await_job(node)
    end = time.monotonic() + 2 * trial.cluster.lease
    while not node.faults.counts(rule)[1] and time.monotonic() < end:
        time.sleep(0.02)
    trial.count["renames that were held"] += bool(node.faults.counts(rule)[1])
    stopped = [node.process.pid]
    if fault.pick < 0.5:
        send(stopped, signal.SIGSTOP)
    else:
        node.set_links(HOLD)
    trial.wait_session_over(node)
    yield
    send(stopped, signal.SIGCONT)
    if fault.pick >= 0.75:  # the late rename is made before the node knows
        node.faults.set_mode(rule, control.OFF)
        time.sleep(0.2)
    node.set_links(PASS)
    node.calm()


def request(trial, node, fault, method, states):
    """Requests a change of a job of this round, in one of the states, from the node. If the reply is lost, it may have been taken."""
    scenes = {delivered.name: delivered for delivered in trial.round}
    end = time.monotonic() + trial.cluster.lease
    while time.monotonic() < end:
        try:
            listed = node.call("job.list", timeout=5, limit=1000, fields="brief")["jobs"]
            jobs = [job for job in listed if job["name"] in scenes and job["status"] in states]
            if jobs:
                job = jobs[int(fault.pick * len(jobs))]
                scenes[job["name"]].cancels += method == "job.cancel"
                scenes[job["name"]].retries += method == "job.retry"
                node.call(method, timeout=5, id=job["id"])
                trial.count[method + " that were confirmed"] += 1
                return
        except (RpcError, OSError, AssertionError):
            pass
        time.sleep(0.1)


def cancel(trial, node, fault):
    trial.deliver(3)
    request(trial, node, fault, "job.cancel", ("accepted", "running"))
    yield


def retry(trial, node, fault):
    request(trial, node, fault, "job.retry", ("failed", "dismissed"))
    yield


NODE, STORE, ALL, PRODUCTS, LINE, NOTHING = "node", "store", "all", "products", "line", "nothing"
OF_FETCH = ("fetcher killed", "line cut", "line slow")  # faults of nodes without a common file system
FAULTS = {  # kind: (generator, what it needs, share)
    "node killed": (node_killed, NODE, 10),
    "all nodes killed": (all_killed, ALL, 2),
    "node killed at a call": (node_killed_at_call, NODE, 10),
    "node ended": (node_ended, NODE, 4),
    "node stopped": (node_stopped, NODE, 10),
    "worker killed": (worker_killed, NOTHING, 8),
    "worker stopped": (worker_stopped, NOTHING, 5),
    "silent cut": (cut(HOLD), NODE, 6),
    "answers lost": (cut(DEAF), NODE, 6),
    "connections refused": (cut(CLOSED), NODE, 4),
    "store killed": (store_killed, STORE, 5),
    "store stopped": (store_stopped, STORE, 4),
    "standby stopped": (standby_stopped, STORE, 3),
    "store failed over": (failover, STORE, 4),
    "products full": (disk_full, PRODUCTS, 4),
    "clock a day off": (clock_wrong, NODE, 4),
    "slow renames": (renames_slow, NODE, 4),
    "late rename": (rename_late, NODE, 8),
    "fetcher killed": (fetcher_killed, LINE, 5),
    "line cut": (line_cut, LINE, 5),
    "line slow": (line_slow, LINE, 5),
    "cancel": (cancel, NOTHING, 10),
    "retry": (retry, NOTHING, 6),
}


def needs(fault):
    """Names of what the fault has for itself."""
    what = FAULTS[fault.kind][1]
    nodes = {f"node {i}" for i in range(64)}
    return {NODE: {f"node {fault.node}"}, STORE: {"store"}, ALL: nodes | {"products"}, PRODUCTS: nodes | {"products"}, LINE: {f"line {fault.node}"}, NOTHING: set()}[what]


def plan(rng, nodes, kinds, shares):
    """Yields faults without end, in shuffled decks that have each kind as often as its share."""
    while True:
        deck = [kind for kind in kinds for _ in range(FAULTS[kind][2] if shares else 1)]
        rng.shuffle(deck)
        for kind in deck:
            yield Planned(kind, rng.randrange(nodes), rng.uniform(0.1, 2.2), rng.random(), rng.random() < 0.6, rng.choice((0, 1, 1, 2, 3)))
