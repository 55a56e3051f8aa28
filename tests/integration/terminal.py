# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""A program on a terminal of a given size, for the integration tests."""
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios

from patience import PATIENCE_S, Patience, cpu_ticks


class Terminal:
    def __init__(self, command, columns=80, lines=24, env=None, cwd=None):
        self.main, side = pty.openpty()
        fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        environment = {**os.environ, "TERM": "xterm", **(env or {})}
        if "NO_COLOR" not in (env or {}):
            environment.pop("NO_COLOR", None)
        self.process = subprocess.Popen([str(word) for word in command], stdin=side, stdout=side, stderr=side, cwd=cwd,
                                        env=environment, start_new_session=True)
        os.close(side)
        self.bytes = b""

    def read(self, until=None):
        """Reads until the program ends, or until the text is there; returns all text so far."""
        patience = Patience(lambda: (len(self.bytes), cpu_ticks(self.process.pid)))
        while until is None or until not in self.text():
            assert not patience.is_over(), f"hangs; waited for {until or 'the end'}:\n{self.text()}"
            if not select.select([self.main], [], [], 0.2)[0]:
                continue
            try:
                data = os.read(self.main, 65536)
            except OSError:  # no process has the other side open any more
                break
            if not data:
                break
            self.bytes += data
        return self.text()

    def text(self):
        return self.bytes.decode(errors="replace")

    def end(self):
        """The exit code and everything written."""
        text = self.read()
        code = self.process.wait(PATIENCE_S)
        os.close(self.main)
        return code, text


def rows(text):
    """Text that was in a row at some time: pieces between line ends and returns, without escape codes."""
    return re.split(r"[\r\n]+", re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text))


def colours(text):
    return re.findall(r"\x1b\[[0-9;]*m", text)
