# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Shared parts of the tests of the service with scripted workers."""
import subprocess
import sys

from daemon_kit import DaemonCase

STOPS = 40  # seconds; it promises 10, and this machine may have other work; a worker that does not stop takes 50 and more


class Service(DaemonCase):
    def temporary(self, daemon):
        return [f for f in daemon.files("products") if f.startswith(".") and "/" not in f]

    def hold(self, pid):
        """Traces the process and never waits for it, so that its end stays hidden from its parent: to the service it
        looks like one that hangs in the kernel. Returns the tracer."""
        code = ("import ctypes, sys, time\nrc = ctypes.CDLL(None, use_errno=True).ptrace(0x4206, %d, None, None)\n"
                "print(rc, flush=True)\ntime.sleep(120)" % pid)  # PTRACE_SEIZE
        tracer = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        self.addCleanup(tracer.stdout.close)
        self.addCleanup(tracer.wait)
        self.addCleanup(tracer.kill)
        if tracer.stdout.readline().strip() != "0":
            self.skipTest("this system lets no process trace another")
        return tracer
