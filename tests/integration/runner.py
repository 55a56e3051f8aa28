# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Runs the cases of a test program: its functions test_*(scratch) and the methods of its unittest.TestCase classes. Each case has
a process, forked from the program, and several run at a time if the program allows it. Threads would share what belongs to a
process: user ids, umask, environment, signals, and Python's lock. A process also has its own CPU time, and its crash is that of
one case. The cases of a class that has setUpClass share its process and run in it one after another."""
import argparse
import collections
import json
import os
import pathlib
import resource
import selectors
import shutil
import sys
import tempfile
import time
import traceback
import unittest

import stac_rules

SKIPPED = 77
TRIES = 10  # runs at most of a case that raises Missed
Skip = unittest.SkipTest


class Missed(Exception):
    """The state that the case had to meet was over before it looked; the runner repeats the case."""


class FunctionCase(unittest.TestCase):
    """A function of the program; it gets an empty directory, and the STAC items that it leaves there are checked."""

    def __init__(self, name, function):
        super().__init__("run_function")
        self.name, self.function = name, function

    def run_function(self):
        for left in reversed(range(TRIES)):
            scratch = pathlib.Path(tempfile.mkdtemp(prefix="pb-" + self.name[:20] + "-"))
            try:
                self.function(scratch)
                return stac_rules.check_all(scratch)
            except Missed as why:
                print(f"again {self.name}: {why}")
                if left == 0:
                    raise
            finally:
                shutil.rmtree(scratch, ignore_errors=True)


def name_of(case):
    """The name of a function, `Class.method`, or setUpClass with its class."""
    if isinstance(case, FunctionCase):
        return case.name
    return f"{type(case).__name__}.{case._testMethodName}" if isinstance(case, unittest.TestCase) else str(case)


def cpu_seconds():
    """CPU time of this process and of those that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


class Report(unittest.TestResult):
    """Writes the result of each case to a pipe, a line of JSON, with the output since the case before."""

    def __init__(self, pipe, output):
        super().__init__()
        self.pipe, self.output, self.shown = pipe, output, 0

    def startTest(self, case):
        super().startTest(case)
        self.begun, self.cpu = time.monotonic(), cpu_seconds()

    def stopTest(self, case):
        super().stopTest(case)
        self.send(name_of(case), seconds=time.monotonic() - self.begun, cpu=cpu_seconds() - self.cpu)

    def send(self, name, **times):
        faults, skips = self.failures + self.errors, [reason for _, reason in self.skipped]
        for found in (self.failures, self.errors, self.skipped):
            found.clear()
        self.write(name, "FAIL" if faults else "skip" if skips else "ok", "; ".join(skips),
                   "\n".join(text if name_of(case) == name else f"{case}\n{text}" for case, text in faults), **times)

    def write(self, name, word, reason="", fault="", **times):
        sys.stdout.flush()
        sys.stderr.flush()
        output = os.pread(self.output, 1 << 20, self.shown)
        self.shown += len(output)
        line = dict(name=name, word=word, reason=reason, text=output.decode(errors="replace") + fault, **times)
        data = json.dumps(line).encode() + b"\n"
        while data:
            data = data[os.write(self.pipe, data):]

    def send_rest(self):
        """Writes the results of setUpClass and tearDownClass."""
        for case, _ in self.errors + self.skipped:
            self.send(name_of(case))


def run_here(unit, pipe, output, stop_at_failure):
    """The process of the unit. It does not return."""
    status = 1
    try:
        os.dup2(output, 1)
        os.dup2(output, 2)
        report = Report(pipe, output)
        report.failfast = stop_at_failure
        try:
            unittest.TestSuite(unit).run(report)
            report.send_rest()
        except BaseException:  # Ctrl-C, or an error of this file
            report.write(name_of(unit[0]), "FAIL", fault=traceback.format_exc())
        status = 0
    finally:
        os._exit(status)


class Child:
    """A unit, cases that share a process, while it runs."""

    def __init__(self, unit, stop_at_failure):
        self.unit, self.buffer = unit, b""
        with tempfile.TemporaryFile() as output:
            self.pipe, pipe = os.pipe()
            sys.stdout.flush()
            sys.stderr.flush()
            self.pid = os.fork()
            if self.pid == 0:
                run_here(unit, pipe, output.fileno(), stop_at_failure)
            os.close(pipe)
            self.output = os.dup(output.fileno())

    def fileno(self):
        return self.pipe

    def read(self):
        """Returns the results that the process has written; None after the last one."""
        data = os.read(self.pipe, 1 << 16)
        *lines, self.buffer = (self.buffer + data).split(b"\n")
        return [json.loads(line) for line in lines] if data else None

    def end(self):
        """Waits for the process. Returns a result in its place if it was killed."""
        _, status = os.waitpid(self.pid, 0)
        output = os.pread(self.output, 1 << 20, 0).decode(errors="replace")
        os.close(self.pipe)
        os.close(self.output)
        if status == 0:
            return []
        how = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"exit status {os.WEXITSTATUS(status)}"
        return [dict(name=" or ".join(map(name_of, self.unit)), word="FAIL", reason=f"its process ended with {how}", text=output)]


def run_units(units, workers, stop_at_failure):
    """Yields results as cases end."""
    todo, failed = collections.deque(units), False
    with selectors.DefaultSelector() as running:
        while running.get_map() or todo and not (failed and stop_at_failure):
            while todo and len(running.get_map()) < workers:
                running.register(Child(todo.popleft(), stop_at_failure), selectors.EVENT_READ)
            for key, _ in running.select():
                results = key.fileobj.read()
                if results is None:
                    running.unregister(key.fileobj)
                    results = key.fileobj.end()
                failed = failed or any(result["word"] == "FAIL" for result in results)
                yield from results


def cases_of(module):
    """Yields the cases that the module defines; those of imported modules belong to other programs."""
    for name, value in vars(module).items():
        if getattr(value, "__module__", None) != module.__name__:
            continue
        if isinstance(value, type) and issubclass(value, unittest.TestCase):
            yield from unittest.defaultTestLoader.loadTestsFromTestCase(value)
        elif name.startswith("test_") and callable(value):
            yield FunctionCase(name, value)


def units_of(cases):
    """Returns the list of cases of each process."""
    shared = collections.defaultdict(list)
    for number, case in enumerate(cases):
        has_fixture = type(case).setUpClass.__func__ is not unittest.TestCase.setUpClass.__func__
        shared[type(case) if has_fixture else number].append(case)
    return list(shared.values())


def choose(cases, options):
    if options.not_about_memory:
        cases = [case for case in cases if getattr(getattr(case, "function", None), "not_about_memory", False)]
    if not options.cases:
        return cases
    names = [{name_of(case), *name_of(case).split(".")} for case in cases]
    unknown = set(options.cases).difference(*names)
    if unknown:
        sys.exit(f"no case '{min(unknown)}'; cases: {' '.join(map(name_of, cases))}")
    return [case for case, of_case in zip(cases, names) if of_case & set(options.cases)]


def main(workers=1, arguments=None, stop_at_failure=False):
    """Runs the cases of the program, `workers` at a time, and exits: 0, 1 after a failure, 77 if all were skipped."""
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    parser.add_argument("cases", nargs="*", help="function, Class, Class.method or method; default: all")
    parser.add_argument("-v", "--verbose", action="store_true", help="print each case with its seconds and output")
    parser.add_argument("-j", "--jobs", type=int, default=workers, help="cases at a time (default: %(default)s)")
    parser.add_argument("--not-about-memory", action="store_true", help="the cases that the address sanitizer leaves out")
    options = parser.parse_args(arguments)
    begun, counts = time.monotonic(), collections.Counter()
    units = units_of(choose(list(cases_of(sys.modules["__main__"])), options))
    for result in run_units(units, max(1, options.jobs), stop_at_failure):
        counts[result["word"]] += 1
        if result["word"] == "ok" and not options.verbose:
            continue
        times = f", {result['seconds']:.1f} s, {result['cpu']:.1f} s of CPU" if "cpu" in result else ""
        print(f"{result['word']:5} {result['name']}{times}" + (f": {result['reason']}" if result["reason"] else ""))
        if result["text"] and (result["word"] == "FAIL" or options.verbose):
            print(result["text"].rstrip())
        sys.stdout.flush()
    print(f"{counts['ok']} passed, {counts['FAIL']} failed, {counts['skip']} skipped: "
          f"{time.monotonic() - begun:.1f} s, {cpu_seconds():.1f} s of CPU")
    sys.exit(1 if counts["FAIL"] or not counts else SKIPPED if not counts["ok"] else 0)
