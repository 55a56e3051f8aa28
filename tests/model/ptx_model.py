# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""The PTX memory consistency model as a decision procedure for small programs: executions() yields every execution of a
program that the axioms allow. ptx_litmus.py has the programs.

Sources: PTX ISA, chapter "Memory Consistency Model" (morally strong operations, release and acquire patterns,
observation, base causality and communication order, the axioms), and for proxies Lustig, Cooksey, Giroux: "Mixed-Proxy
Extensions for the NVIDIA PTX Memory Consistency Model" (ISCA 2022), as the ISA's chapter has no rule for a proxy fence: two
accesses of one address by different proxies are ordered if they are in base causality order and a fence of the
non-generic one's proxy is between them, executed in that one's thread block.

Bulk copies (cp.async.bulk) are not in that paper; taken from the ISA:
- their reads and writes are weak, by the async proxy, and follow all that the issuing thread did before;
- their completion (complete_tx on an mbarrier, .release.cluster; or a group that is waited for) follows their own reads and
  writes only: it orders nothing that the issuing thread did;
- a proxy fence is implied at the completion. wait_group.read waits for the reads alone: here without that fence.
The host's atomic operations have system scope; a copy engine is a thread outside the GPU that takes tasks in their order,
and the write of a stream memory operation has a system-wide fence before it (cuStreamWriteValue64's default).

A read of the initial value reads from `None`; a read that spins is the one read that ends the spinning."""
import itertools

SCOPES = ("cta", "cluster", "gpu", "sys")


class Event:
    """kind: R, W; F: a memory fence; P: a proxy fence; N: a point in time (barrier, wait).
    value: of a write a number, a register's name, or ("+", n): the value of the read of the pair, plus n."""

    def __init__(self, thread, kind, sem="weak", scope=None, loc=None, proxy="generic", value=None):
        self.thread, self.kind, self.sem, self.scope = thread, kind, sem, scope
        self.loc, self.proxy, self.value = loc, proxy, value
        self.register = self.wanted = self.pair = None  # members of a read; pair: the other half of a read-modify-write
        self.space = None                               # P: the state space that it is restricted to
        self.index = -1

    @property
    def strong(self):
        return self.kind == "F" or self.kind in "RW" and self.sem != "weak"


class Thread:
    """cta, gpu: None for the host and for copy engines. after: the event at which a bulk copy was issued, in its place
    for each of the copy's accesses."""

    def __init__(self, name, cta, gpu=0):
        self.name, self.cta, self.gpu = name, cta, None if cta is None else gpu
        self.events = []

    def includes(self, scope, other):
        if self is other or scope == "sys":
            return True
        if self.gpu is None or other.gpu != self.gpu:
            return False
        return scope == "gpu" or other.cta == self.cta


class Program:
    def __init__(self):
        self.threads, self.events = [], []
        self.before = []   # pairs of events that barriers and the API order
        self.issued = []   # (event of the issuing thread, access of the bulk copy)
        self.controls = []  # (read that the program waits for, event that follows it)

    def thread(self, name, cta, gpu=0):
        self.threads.append(Thread(name, cta, gpu))
        return self.threads[-1]

    def add(self, event):
        event.index = len(self.events)
        self.events.append(event)
        event.thread.events.append(event)
        return event


def closure(rows):
    """Transitive closure of a relation: rows[i] has the bits of all that follow i."""
    rows = list(rows)
    for k in range(len(rows)):
        bit, row = 1 << k, rows[k]
        for i, r in enumerate(rows):
            if r & bit:
                rows[i] = r | row
    return rows


def is_acyclic(pairs, n):
    rows = [0] * n
    for a, b in pairs:
        rows[a] |= 1 << b
    return all(not row >> i & 1 for i, row in enumerate(closure(rows)))


class Static:
    """Relations that are the same in all executions of a program."""

    def __init__(self, program):
        self.program, self.events = program, program.events
        self.n = len(program.events)
        self.po = {(a.index, b.index) for t in program.threads for a, b in itertools.combinations(t.events, 2)}
        self.reads = [e for e in self.events if e.kind == "R"]
        self.writes = {}
        for e in self.events:
            if e.kind == "W":
                self.writes.setdefault(e.loc, []).append(e)
        self.releases, self.acquires = self.patterns("W", "release"), self.patterns("R", "acquire")
        self.fences = [e for e in self.events if e.kind == "F" and e.sem == "sc"]
        self.proxy_fences = [e for e in self.events if e.kind == "P"]
        self.dependencies = [(a.index, b.index) for a, b in program.controls if b.kind == "W"]
        for e in self.events:
            if e.kind == "W" and e.pair:
                self.dependencies.append((e.pair.index, e.index))
            elif e.kind == "W" and isinstance(e.value, str):
                source = [r for r in e.thread.events if r.register == e.value]
                self.dependencies.append((source[-1].index, e.index))

    def strong(self, a, b):
        """Morally strong."""
        if a is b or a.proxy != b.proxy or (a.loc and b.loc and a.loc != b.loc):
            return False
        if a.thread is b.thread:
            return True
        return a.strong and b.strong and a.thread.includes(a.scope, b.thread) and b.thread.includes(b.scope, a.thread)

    def patterns(self, kind, order):
        """Release patterns as (first operation, its write), acquire patterns as (last operation, its read)."""
        found = []
        for t in self.program.threads:
            for i, e in enumerate(t.events):
                others = t.events[i + 1:] if kind == "W" else t.events[:i]
                ends = [o for o in others if o.kind == kind and o.strong]
                if e.kind == kind and e.sem in (order, "acq_rel", "sc"):
                    found += [(e, e)] + [(e, o) for o in ends if o.loc == e.loc]
                elif e.kind == "F" and e.sem in (order, "acq_rel", "sc"):
                    found += [(e, o) for o in ends]
        return found


def values(static, sources):
    """The values of all reads and writes of this choice of sources, or None: one depends on itself."""
    known, pending = {}, list(static.events)
    while pending:
        rest = []
        for e in pending:
            if e.kind == "R":
                w = sources[e.index]
                if w is None:
                    known[e.index] = 0
                elif w.index in known:
                    known[e.index] = known[w.index]
                else:
                    rest.append(e)
            elif e.kind == "W":
                add = 0
                value = e.value
                if isinstance(value, tuple):
                    source, add = e.pair, value[1]
                elif isinstance(value, str):
                    source = [r for r in e.thread.events if r.register == value][-1]
                else:
                    known[e.index] = value
                    continue
                if source.index in known:
                    known[e.index] = known[source.index] + add
                else:
                    rest.append(e)
        if len(rest) == len(pending):
            return None
        pending = rest
    return known


def observation(static, sources):
    """Pairs (write, read): directly, or through read-modify-writes."""
    found = {(sources[r.index].index, r.index) for r in static.reads
             if sources[r.index] and static.strong(sources[r.index], r)}
    grown = True
    while grown:
        grown = False
        for w, r in list(found):
            pair = static.events[r].pair
            for w2, r2 in list(found):
                if pair and w2 == pair.index and (w, r2) not in found:
                    found.add((w, r2))
                    grown = True
    return found


def base_causality(static, observed, fence_order):
    rows = [0] * static.n
    for a, b in static.po:
        rows[a] |= 1 << b
    for a, b in static.program.before:
        rows[a.index] |= 1 << b.index
    for a, b in fence_order:
        rows[a] |= 1 << b
    for first, write in static.releases:
        for last, read in static.acquires:
            if (write.index, read.index) in observed and static.strong(first, last):
                rows[first.index] |= 1 << last.index
    rows = closure(rows)
    # Events before a bulk copy's issue precede its accesses, but not therefore its completion.
    final = list(rows)
    for issue, access in static.program.issued:
        for a in range(static.n):
            if a == issue.index or rows[a] >> issue.index & 1:
                final[a] |= 1 << access.index
    return final


def covers(fence, event):
    return (fence.thread.cta == event.thread.cta and fence.thread.gpu == event.thread.gpu and fence.proxy == event.proxy and
            (fence.space is None or event.loc.startswith(fence.space)))


def is_preserved(static, base, a, b):
    """True if base causality order between two accesses of one address holds for their proxies, too."""
    def order(x, y):
        return base[x.index] >> y.index & 1
    if a.proxy == b.proxy and (a.proxy == "generic" or a.thread.cta == b.thread.cta and a.thread.gpu == b.thread.gpu):
        return True
    out = [f for f in static.proxy_fences if a.proxy == "generic" or covers(f, a) and order(a, f)]
    into = [f for f in static.proxy_fences if b.proxy == "generic" or covers(f, b) and order(f, b)]
    if a.proxy == "generic":
        return any(order(a, f) for f in into)
    if b.proxy == "generic":
        return any(order(f, b) for f in out)
    return any(f is g or order(f, g) for f in out for g in into)


def causality(static, base, observed):
    """Pairs of accesses of one address."""
    kept = set()
    for same in by_location(static).values():
        for a, b in itertools.permutations(same, 2):
            if base[a.index] >> b.index & 1 and is_preserved(static, base, a, b):
                kept.add((a.index, b.index))
    return kept | {(w, b) for w, z in observed for a, b in kept if a == z}


def by_location(static):
    found = {}
    for e in static.events:
        if e.kind in "RW":
            found.setdefault(e.loc, []).append(e)
    return found


def coherence_orders(static, cause):
    """Every order of the writes that the axiom "Coherence" allows: those in causality order, and each morally strong
    pair in one order or the other. Writes in a race stay without."""
    given, free = set(), []
    for same in static.writes.values():
        for a, b in itertools.combinations(same, 2):
            one, other = (a.index, b.index), (b.index, a.index)
            given |= {pair for pair in (one, other) if pair in cause}
            if one not in cause and other not in cause and static.strong(a, b):
                free.append((one, other))
    for choice in itertools.product(*free):
        rows = [0] * static.n
        for a, b in given.union(choice):
            rows[a] |= 1 << b
        rows = closure(rows)
        if all(not row >> i & 1 for i, row in enumerate(rows)):
            yield {(a, b) for a in range(static.n) for b in range(static.n) if rows[a] >> b & 1}


def is_allowed(static, sources, cause, co):
    """The axioms "Atomicity", "SC per location" and "Causality"."""
    events = static.events
    rf = {(sources[r.index].index, r.index) for r in static.reads if sources[r.index]}
    fr = set()
    for r in static.reads:
        source = sources[r.index]
        fr |= {(r.index, w.index) for w in static.writes.get(r.loc, ()) if source is None or (source.index, w.index) in co}
    if any((b, a) in cause for a, b in rf | fr):
        return False
    for r, w in fr:
        pair = events[r].pair
        if pair and w != pair.index and (w, pair.index) in co and static.strong(events[r], events[w]) and \
                static.strong(events[w], pair):
            return False
    same = {(a, b) for a, b in static.po if events[a].loc and events[a].loc == events[b].loc}
    return is_acyclic(same | {(a, b) for a, b in rf | co | fr if static.strong(events[a], events[b])}, static.n)


def fence_orders(static, observed):
    """Base causality for every Fence-SC order that agrees with it."""
    pairs = [(a, b) for a, b in itertools.combinations(static.fences, 2) if static.strong(a, b)]
    for choice in itertools.product((0, 1), repeat=len(pairs)):
        order = {(a.index, b.index) if way == 0 else (b.index, a.index) for way, (a, b) in zip(choice, pairs)}
        if not is_acyclic(order, static.n):
            continue
        base = base_causality(static, observed, order)
        if not any(base[b] >> a & 1 for a, b in order):
            yield base


def choices(static, read):
    """The writes that a read can read from; those whose value is known not to be the wanted one are left out."""
    found = [None] + [w for w in static.writes.get(read.loc, ()) if w is not read.pair]
    if read.wanted is None:
        return found
    return [w for w in found if (0 if w is None else w.value) == read.wanted or w and not isinstance(w.value, int)]


def executions(program):
    """Yields {register: value} of each allowed execution; the final value of a location is not observed."""
    static = Static(program)
    for chosen in itertools.product(*(choices(static, r) for r in static.reads)):
        sources = {r.index: w for r, w in zip(static.reads, chosen)}
        rf = [(w.index, r) for r, w in sources.items() if w]
        if not is_acyclic(rf + static.dependencies, static.n):  # the axiom "No Thin Air"
            continue
        known = values(static, sources)
        if known is None or any(r.wanted is not None and known[r.index] != r.wanted for r in static.reads):
            continue
        observed = observation(static, sources)
        if any(is_allowed(static, sources, cause, co) for base in fence_orders(static, observed)
               for cause in [causality(static, base, observed)] for co in coherence_orders(static, cause)):
            yield {r.register: known[r.index] for r in static.reads if r.register}
