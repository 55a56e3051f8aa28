#!/usr/bin/env python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Litmus tests of the memory model that wic's device side relies on (ptx_model.py decides them).

known.litmus     results of the ISA and the papers for well-known programs: these test the checker
handover.litmus  the hand-overs of wic between host, copy engine, warps and bulk copies. Each instruction names its place in the
                 sources, and a test compares; each is then weakened in turn (scope, order, fence, wait), which at
                 least one test must find, or the file has the reason why nothing depends on it

Usage: ptx_litmus.py [-v] [known | handover | sources] ...     all by default

A file has tests of this form; '#' begins a comment:

    test NAME: forbidden | allowed       whether an execution exists in which the line `when` holds
    thread NAME cta N [gpu N] | host [: INSTRUCTION; ...]   the host and copy engines are outside every GPU
        INSTRUCTION   @PLACE             as in PTX: ld, st, atom.{add,exch}, fence, fence.proxy, bar.{arrive,sync}, mbarrier;
                                         `LOCATION = V` at its end: spins until it reads V; `-> R`: reads into R
        cp.async.bulk TO <- FROM, MBARRIER | group      also cp.async.bulk.wait_group[.read]
        task.start NAME, task.run NAME   the API call that queues a task, and the task's start
        copy TO <- FROM                  by a copy engine
        write_value LOCATION V           a stream memory operation, with its fence
    when R = V and R != V ...
    mistake TEXT: THREAD PLACE <> PLACE  with these two instructions exchanged the outcome must be possible"""
import argparse
import pathlib
import re
import sys
import time

import ptx_model
from ptx_model import Event, Program

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent


class Line:
    def __init__(self, text, place=None):
        self.text, self.place = text, place


class Test:
    def __init__(self, name, verdict):
        self.name, self.allowed = name, verdict == "allowed"
        self.threads, self.when, self.mistakes = [], [], []  # threads: [name, cta, gpu, lines]

    def changed(self, t, lines):
        other = Test(self.name, "allowed")
        other.threads = [th[:3] + [lines] if i == t else th for i, th in enumerate(self.threads)]
        other.when = self.when
        return other


# --- from text to a program ---


class Assembler:
    def __init__(self, test):
        self.program, self.barriers, self.tasks, self.groups = Program(), {}, {}, {}
        for name, cta, gpu, lines in test.threads:
            thread = self.program.thread(name, cta, gpu)
            for line in lines:
                self.instruction(thread, line.text)
        self.order()

    def add(self, thread, *args, **kinds):
        event = self.program.add(Event(thread, *args, **kinds))
        self.program.controls += [(r, event) for r in thread.events if r.wanted is not None and r is not event]
        return event

    def order(self):
        for users in self.barriers.values():
            for a, _ in users:
                self.program.before += [(a, b) for b, waits in users if waits and a.thread is not b.thread]
        for starts, runs in self.tasks.values():
            self.program.before += [(a, b) for a in starts for b in runs]

    def instruction(self, thread, text):
        word, _, rest = text.partition(" ")
        parts = word.split(".")
        kind = {"ld": self.load, "st": self.store, "atom": self.atom, "fence": self.fence, "bar": self.bar, "cp": self.bulk,
                "mbarrier": self.mbarrier, "copy": self.copy, "write_value": self.write_value, "task": self.task}[parts[0]]
        kind(thread, parts[1:], rest.strip())

    @staticmethod
    def operands(text):
        """LOCATION [VALUE] [= V | -> R]."""
        found = re.fullmatch(r"(\S+)(?: ([\w]+))?(?: (=|->) (\w+))?", text)
        if not found:
            raise ValueError(f"operands: {text}")
        location, value, how, result = found.groups()
        value = int(value) if value and value.isdigit() else value
        return location, value, int(result) if how == "=" else None, result if how == "->" else None

    @staticmethod
    def access(parts):
        """SEM [SCOPE] [PROXY]."""
        scope = next((p for p in parts if p in ptx_model.SCOPES), None)
        proxy = next((p for p in parts if p in ("async", "surface", "texture", "constant")), "generic")
        return {"sem": parts[0], "scope": scope, "proxy": proxy}

    def load(self, thread, parts, rest):
        location, _, wanted, register = self.operands(rest)
        event = self.add(thread, "R", loc=location, **self.access(parts))
        event.wanted, event.register = wanted, register

    def store(self, thread, parts, rest):
        location, value, _, _ = self.operands(rest)
        self.add(thread, "W", loc=location, value=value, **self.access(parts))

    def atom(self, thread, parts, rest, operation=None):
        location, value, wanted, register = self.operands(rest)
        sem, scope = parts[0], parts[1]
        read = self.add(thread, "R", "acquire" if sem in ("acquire", "acq_rel") else "relaxed", scope, location)
        value = ("+", value) if (operation or parts[2]) == "add" else value
        write = self.add(thread, "W", "release" if sem in ("release", "acq_rel") else "relaxed", scope, location, value=value)
        read.pair, write.pair, read.wanted, read.register = write, read, wanted, register

    def fence(self, thread, parts, _):
        if parts[0] == "proxy":
            event = self.add(thread, "P", proxy=parts[1])
            event.space = parts[2] + "." if len(parts) > 2 else None
        else:
            self.add(thread, "F", *parts)

    def bar(self, thread, parts, rest):
        event = self.add(thread, "N")
        self.barriers.setdefault((thread.gpu, thread.cta, rest), []).append((event, parts[0] == "sync"))

    def mbarrier(self, thread, parts, rest):
        if parts[0] == "try_wait":
            self.load(thread, parts[1:], rest)
        else:
            self.atom(thread, parts[1:], rest + " 1", "add")

    def copy(self, thread, _, rest):
        to, source = rest.partition(" -> ")[0].split(" <- ")
        register = rest.partition(" -> ")[2] or f"{thread.name}:{len(thread.events)}"
        self.add(thread, "R", loc=source).register = register
        self.add(thread, "W", loc=to, value=register)

    def bulk(self, thread, parts, rest):
        if parts[2:3] == ["wait_group"]:
            event = self.add(thread, "N")
            self.program.before += [(reads if parts[3:] else ends, event) for reads, ends in self.groups.get(thread.name, ())]
            return
        copied, signal = rest.split(", ")
        signal, _, register = signal.partition(" -> ")
        to, source = copied.split(" <- ")
        issue = self.add(thread, "N")
        agent = self.program.thread(f"{thread.name}:bulk{issue.index}", thread.cta, thread.gpu)
        read = self.add(agent, "R", loc=source, proxy="async")
        read.register = register or agent.name
        write = self.add(agent, "W", loc=to, proxy="async", value=read.register)
        self.program.issued += [(issue, read), (issue, write)]
        end = self.add(agent, "P", proxy="async")
        if signal == "group":
            self.groups.setdefault(thread.name, []).append((read, end))
        else:
            self.atom(agent, ["release", "cluster", "add"], signal + " 1")

    def write_value(self, thread, parts, rest):
        if parts != ["no_memory_barrier"]:
            self.add(thread, "F", "acq_rel", "sys")
        self.store(thread, ["relaxed", "sys"], rest)

    def task(self, thread, parts, rest):
        event = self.add(thread, "N")
        self.tasks.setdefault(rest, ([], []))[0 if parts[0] == "start" else 1].append(event)


def read_tests(path):
    """The tests of a file, and its other lines by their first word."""
    tests, others = [], {}
    for number, raw in enumerate(path.read_text().splitlines(), 1):
        text = raw.split("#")[0].strip()
        word, _, rest = text.partition(" ")
        try:
            if not text:
                continue
            if word == "test":
                tests.append(Test(*rest.split(": ")))
            elif word in ("place", "spare", "order"):
                others.setdefault(word, []).append(rest)
            elif word == "thread":
                found = re.fullmatch(r"(\S+) (?:host|cta (\d+)(?: gpu (\d+))?)(?:: (.*))?", rest)
                cta = None if found[2] is None else int(found[2])
                lines = [Line(part.strip()) for part in (found[4] or "").split(";") if part]
                tests[-1].threads.append([found[1], cta, int(found[3] or 0), lines])
            elif word == "when":
                tests[-1].when = [re.fullmatch(r"(\S+) (!?=) (\d+)", part).groups() for part in rest.split(" and ")]
            elif word == "mistake":
                tests[-1].mistakes.append(re.fullmatch(r"(.*): (\S+) (\S+) <> (\S+)", rest).groups())
            else:
                instruction, _, place = text.partition("@")
                tests[-1].threads[-1][3].append(Line(" ".join(instruction.split()), place.strip() or None))
        except (AttributeError, IndexError, TypeError, ValueError) as error:
            raise SystemExit(f"{path.name}:{number}: {raw.strip()}: {error}") from error
    return tests, others


def is_possible(test):
    """True if an execution exists in which all conditions of `when` hold."""
    def holds(result):
        return all((result[register] == int(value)) == (how == "=") for register, how, value in test.when)
    return any(holds(result) for result in ptx_model.executions(Assembler(test).program))


# --- mistakes ---

ORDERS = {"acquire": ["relaxed"], "release": ["relaxed"], "acq_rel": ["acquire", "release"]}
NARROWER = {"sys": "gpu", "gpu": "cta"}
DROPPED = ("fence", "bar", "cp.async.bulk.wait_group", "mbarrier.try_wait")


def weaker(line, on_host):
    """The instruction with one part made weaker: (what it becomes, the line); None: left out."""
    word, _, rest = line.text.partition(" ")
    parts, found = word.split("."), []
    for i, part in enumerate(parts):
        changes = [] if parts[0] == "fence" else list(ORDERS.get(part, []))
        changes += [] if on_host else [NARROWER[part]] if part in NARROWER else []
        found += [".".join(parts[:i] + [change] + parts[i + 1:]) for change in changes]
    found += {"fence.proxy.async": [word + ".shared"], "write_value": [word + ".no_memory_barrier"]}.get(word, [])
    lines = [(changed, Line(f"{changed} {rest}".strip(), line.place)) for changed in found]
    return lines + ([("none", None)] if word.startswith(DROPPED) else [])


def weakened(test):
    """(place, what its instruction becomes, the changed test) for each instruction."""
    for t, (_, cta, _, lines) in enumerate(test.threads):
        for i, line in enumerate(lines):
            for change, other in weaker(line, cta is None):
                yield line.place, change, test.changed(t, lines[:i] + ([other] if other else []) + lines[i + 1:])


def exchanged(test):
    for text, name, one, other in test.mistakes:
        t = [th[0] for th in test.threads].index(name)
        lines = list(test.threads[t][3])
        places = [line.place for line in lines]
        i, k = places.index(one), places.index(other)
        lines[i], lines[k] = lines[k], lines[i]
        yield text, test.changed(t, lines)


# --- the sources ---


def function_body(text, name):
    """The body of a function, without comments, white space as single spaces, string literals joined."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.S)
    for found in re.finditer(rf"\b{name}\([^;{{}}]*\)[\w\s]*{{", text):
        depth, at = 1, found.end()
        while depth > 0:
            depth += {"{": 1, "}": -1}.get(text[at], 0)
            at += 1
        body = re.sub(r"\s+", " ", text[found.end():at])
        return body.replace('" "', "").replace("\\n", "")
    return None


def compare_sources(others, read=lambda path: (ROOT / path).read_text()):
    """Parts of the lines `place` and `order` that the sources do not have: a place is instructions or calls of a function, an order
    what follows what in one. FILE FUNCTION: TEXT; ..."""
    wrong = []
    for kind in ("place", "order"):
        for line in others.get(kind, []):
            name, _, where = line.partition(" = ") if kind == "place" else ("order", "", line)
            for part in where.split(" | "):
                head, _, texts = part.partition(": ")
                path, function = head.split()
                body, at = function_body(read(path), function), 0
                if body is None:
                    wrong.append(f"{name}: {path} has no function {function}")
                    continue
                for text in texts.split(" ; "):
                    found = body.find(text.strip(), at)
                    if found < 0:
                        wrong.append(f"{name}: {function} in {path} does not have '{text.strip()}'" + (" in this order" if at else ""))
                        break
                    at = found + len(text.strip())
    return wrong


# --- what is checked ---


class Report:
    def __init__(self, verbose):
        self.verbose, self.good, self.done = verbose, True, 0

    def check(self, holds, text):
        self.done += 1
        self.good = self.good and holds
        if not holds or self.verbose:
            print(("ok      " if holds else "FAILED  ") + text, flush=True)


def check_known(report):
    for test in read_tests(HERE / "known.litmus")[0]:
        possible = is_possible(test)
        report.check(possible == test.allowed, f"{test.name}: {'possible' if possible else 'impossible'}")


def check_handovers(report):
    tests, others = read_tests(HERE / "handover.litmus")
    places = {line.partition(" = ")[0] for line in others["place"]}
    spare = {tuple(line.partition(": ")[0].split()) for line in others.get("spare", [])}
    found, missed = {}, set()
    for test in tests:
        report.check(is_possible(test) == test.allowed, f"{test.name}: {'possible' if test.allowed else 'impossible'}")
        for text, broken in exchanged(test):
            report.check(is_possible(broken), f"{test.name}: found: {text}")
        for place, change, broken in weakened(test):
            report.check(place in places, f"{test.name}: {place} is a place in the sources")
            if test.allowed or (place, change) in found:
                continue
            if is_possible(broken):
                found[place, change] = test.name
            else:
                missed.add((place, change))
    for key, name in found.items():
        report.check(key not in spare, f"{' '.join(key)}: found by {name}")
    for key in missed - found.keys():
        report.check(key in spare, f"{' '.join(key)}: found by no test, and spare")
    for key in spare:
        report.check(key in missed, f"spare {' '.join(key)}: is a weakening of something")


def check_sources(report):
    _, others = read_tests(HERE / "handover.litmus")
    wrong = compare_sources(others)
    report.check(not wrong, "the sources have every instruction of handover.litmus" + "".join("\n        " + w for w in wrong))
    # The comparison itself: each text of a place, taken out of its file, is missed.
    for line in others["place"]:
        for part in line.partition(" = ")[2].split(" | "):
            head, _, texts = part.partition(": ")
            path, _ = head.split()
            for text in texts.split(" ; "):
                def without(p, path=path, text=text.strip()):
                    content = (ROOT / p).read_text()
                    words = r"[\s\"\\n]*".join(re.escape(c) for c in text.replace(" ", ""))
                    return re.sub(words, "gone", content) if p == path else content
                report.check(bool(compare_sources(others, without)), f"{path} without '{text.strip()}' is seen")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-v", action="store_true", help="print what holds, too")
    parser.add_argument("what", nargs="*", default=[])
    args = parser.parse_args()
    report, start = Report(args.v), time.monotonic()
    checks = {"known": check_known, "handover": check_handovers, "sources": check_sources}
    for name in args.what or checks:
        checks[name](report)
    print(f"{report.done} checks, {'all hold' if report.good else 'some FAILED'}, {time.monotonic() - start:.1f} s")
    return 0 if report.good else 1


if __name__ == "__main__":
    sys.exit(main())
