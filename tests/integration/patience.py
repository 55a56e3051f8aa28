# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Waits end by a lack of progress, never by a total time: a machine with other work takes as long as it takes, and only a hang
is given up. A long wait has a measure of progress: jobs move, a process uses CPU time."""
import pathlib
import subprocess
import time

PATIENCE_S = 120  # without progress


class Patience:
    def __init__(self, progress=lambda: None, seconds=PATIENCE_S):
        self.progress, self.seconds = progress, seconds
        self.before, self.end = None, 0

    def is_over(self):
        """progress() gave the same value for the time. It is called once in that time only."""
        if time.monotonic() < self.end:
            return False
        now = (self.progress(),)
        if now == self.before:
            return True
        self.before, self.end = now, time.monotonic() + self.seconds
        return False


def wait_for(what, *, progress=lambda: None, seconds=PATIENCE_S, step=0.02):
    """The first true value of what(), or an assertion when progress() stayed the same for the time. It is called every `step`,
    later after a twentieth of the time that passed: looking takes the processor from what is looked at."""
    patience, begun = Patience(progress, seconds), time.monotonic()
    while True:
        value = what()
        if value:
            return value
        assert not patience.is_over(), "%s s without progress, waiting for %s: %s" % (seconds, what, patience.before)
        time.sleep(max(step, min(0.25, (time.monotonic() - begun) / 20)))


def children(pid):
    """Processes that the first thread of a process started; none when it is gone."""
    try:
        return [int(word) for word in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def cpu_ticks(pid):
    """CPU time of a process and of those that it started; 0 when it is gone."""
    try:
        fields = pathlib.Path("/proc/%d/stat" % pid).read_text().rsplit(")", 1)[1].split()
        started = [int(child) for task in pathlib.Path("/proc/%d/task" % pid).iterdir()
                   for child in (task / "children").read_text().split()]
    except OSError:
        return 0
    return sum(map(int, fields[11:15])) + sum(map(cpu_ticks, started))


def finish(process):
    """communicate() with a process that takes its time; one that uses none of the CPU's is killed."""
    patience = Patience(lambda: cpu_ticks(process.pid))
    while True:
        try:
            return process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            if patience.is_over():
                process.kill()
                out, err = process.communicate()
                raise AssertionError("%s hangs\n%s\n%s" % (process.args, out, err))


def run_to_end(command, **options):
    """subprocess.run() with finish()."""
    with subprocess.Popen([str(word) for word in command], **options) as process:
        out, err = finish(process)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)
