#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: optimised
"""The runner of test programs (runner.py) on small programs: the lines that it prints, its exit status, and the processes of
cases that run at the same time."""
import os
import re
import subprocess
import sys

import pbtest

HERE = os.path.dirname(os.path.abspath(__file__))


def program(scratch, text, *arguments, workers=1, more=""):
    """Runs a test program that consists of these cases; returns its exit status and lines."""
    path = scratch / "program.py"
    path.write_text(f"import os, signal, sys, unittest\nsys.path.insert(0, {HERE!r})\nimport pbtest\n{text}\npbtest.main(workers={workers}{more})\n")
    done = subprocess.run([sys.executable, "-B", path, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout.splitlines()


ALL_KINDS = """
def test_good(scratch):
    print("not shown")
def test_bad(scratch):
    print("some output")
    assert 1 == 2, "they differ"
def test_left_out(scratch):
    raise pbtest.Skip("no reason")
class Kind(unittest.TestCase):
    def test_method(self):
        self.assertEqual(1, 1)
    @unittest.skipIf(True, "never")
    def test_other(self):
        pass
"""


def test_failed_and_skipped_cases_are_printed(scratch):
    status, lines = program(scratch, ALL_KINDS)
    assert status == 1, lines
    heads = [line.split(",")[0] for line in lines if line[:5] in ("ok   ", "FAIL ", "skip ")]
    assert heads == ["FAIL  test_bad", "skip  test_left_out", "skip  Kind.test_other"], lines
    assert "some output" in lines and "AssertionError: they differ" in lines and "not shown" not in lines, lines
    assert lines[-1].startswith("2 passed, 1 failed, 2 skipped: ") and lines[-1].endswith(" s of CPU"), lines
    status, lines = program(scratch, ALL_KINDS, "--verbose")
    assert status == 1 and "not shown" in lines and any(line.startswith("ok    Kind.test_method, ") for line in lines), lines


def test_exit_status_tells_pass_skip_and_nothing(scratch):
    assert program(scratch, "def test_a(scratch): pass\ndef test_b(scratch): raise pbtest.Skip('x')")[0] == 0
    assert program(scratch, "def test_b(scratch): raise pbtest.Skip('x')")[0] == 77
    assert program(scratch, "@unittest.skip('x')\nclass A(unittest.TestCase):\n    def test_a(self): pass")[0] == 77
    assert program(scratch, "")[0] == 1


def test_names_choose_cases(scratch):
    for names, count in (("test_good", 1), ("Kind", 2), ("Kind.test_method", 1), ("test_method", 1)):
        status, lines = program(scratch, ALL_KINDS, names, "-v")
        assert status == 0 and len([line for line in lines if line[:5] in ("ok   ", "skip ")]) == count, (names, lines)
    status, lines = program(scratch, ALL_KINDS, "test_godo")
    assert status == 1 and lines[0].startswith("no case 'test_godo'; cases: test_good test_bad "), lines


def test_marked_cases_are_chosen(scratch):
    text = "@pbtest.not_about_memory\ndef test_a(scratch): pass\ndef test_b(scratch): assert False\n"
    status, lines = program(scratch, text, "--not-about-memory", "-v")
    assert status == 0 and [line.split(",")[0] for line in lines[:-1]] == ["ok    test_a"], lines


MEET = """
os.mkfifo("{0}/a"), os.mkfifo("{0}/b")
def meet(mine, other):
    writing = os.open("{0}/" + mine, os.O_RDWR)
    os.write(writing, b"x")
    assert open("{0}/" + other, "rb").read(1) == b"x"
def test_one(scratch):
    os.umask(0o077)
    os.environ["ONE"] = "1"
    meet("a", "b")
def test_two(scratch):
    meet("b", "a")
    assert os.umask(0o022) == {1} and "ONE" not in os.environ
"""


def test_cases_meet_and_share_no_state(scratch):
    umask = os.umask(0o022)
    os.umask(umask)
    status, lines = program(scratch, MEET.format(scratch, umask), workers=2)
    assert status == 0, lines


def test_killed_case_fails_alone(scratch):
    text = "def test_a(scratch): os.kill(os.getpid(), signal.SIGKILL)\ndef test_b(scratch): pass\ndef test_c(scratch): sys.exit(0)\n"
    status, lines = program(scratch, text)
    assert status == 1 and "FAIL  test_a: its process ended with signal 9" in lines, lines
    assert lines[-1].startswith("1 passed, 2 failed, 0 skipped: "), lines


FIXTURE = """
class A(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.made = [0]
        {0}
    def test_1(self):
        self.made[0] += 1
    def test_2(self):
        self.assertEqual(self.made[0], 1)
"""


def test_class_fixture_is_shared(scratch):
    assert program(scratch, FIXTURE.format("pass"), workers=2)[0] == 0
    status, lines = program(scratch, FIXTURE.format("assert False, 'no fixture'"), workers=2)
    assert status == 1 and "FAIL  setUpClass (__main__.A)" in lines and "AssertionError: no fixture" in lines, lines
    status, lines = program(scratch, FIXTURE.format("raise pbtest.Skip('no tool')"), workers=2)
    assert status == 77 and "skip  setUpClass (__main__.A): no tool" in lines, lines


def test_first_failure_ends_the_run_on_demand(scratch):
    methods = "class A(unittest.TestCase):\n    @classmethod\n    def setUpClass(cls): pass\n    def test_1(self): assert False\n    def test_2(self): pass\n"
    for text in (methods, "def test_1(scratch): assert False\ndef test_2(scratch): pass\n"):
        status, lines = program(scratch, text, more=", arguments=['--verbose'], stop_at_failure=True")
        assert status == 1 and lines[-1].startswith("0 passed, 1 failed, 0 skipped: "), lines


def test_missed_state_repeats_the_case(scratch):
    text = f"def test_a(own):\n    open('{scratch}/tries', 'a').write('x')\n    if len(open('{scratch}/tries').read()) < %d: raise pbtest.Missed('x')\n"
    assert program(scratch, text % 3)[0] == 0
    status, lines = program(scratch, text % 100)
    assert status == 1 and len((scratch / "tries").read_text()) == 13 and lines[0].startswith("FAIL  test_a"), lines


def test_every_program_uses_the_runner(_):
    programs = [path for path in (pbtest.SOURCE / "tests").rglob("test_*.py") if "data" not in path.parts]
    assert len(programs) > 100, programs
    for path in programs:
        text = path.read_text()
        assert re.search(r"^ *(pbtest\.)?main\((workers=\d+)?\)$", text, re.M) and not re.search(r"unittest\.main\(|sys\.exit\(77\)", text), path


pbtest.main()
