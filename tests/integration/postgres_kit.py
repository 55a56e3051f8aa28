# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""A PostgreSQL server of a test in a scratch directory, with a socket in it and no network; and services that share it."""
import glob
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import tempfile

from daemon_kit import Daemon
from patience import finish, run_to_end, wait_for
from pbtest import Skip


class Postgres:
    """Ends with the test. The server refuses to run as root, and has another user then. settings: of the server, beyond its defaults."""

    def __init__(self, case, settings=("fsync=off",)):
        self.settings = [word for setting in ("shared_buffers=16MB", *settings) for word in ("-c", setting)]
        found = sorted(glob.glob(os.environ.get("PB_POSTGRES_BIN", "/usr/lib/postgresql/*/bin") + "/initdb"))
        if not found:
            assert not os.environ.get("CI"), "no PostgreSQL server is installed (package postgresql)"
            raise Skip("no PostgreSQL server is installed (package postgresql)")
        self.programs = pathlib.Path(found[-1]).parent
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="pb-postgres-"))
        self.user = {}
        if os.geteuid() == 0:
            user = next(pwd.getpwnam(name) for name in ("postgres", "nobody") if any(p.pw_name == name for p in pwd.getpwall()))
            os.chown(self.root, user.pw_uid, user.pw_gid)
            self.user = dict(user=user.pw_uid, group=user.pw_gid, extra_groups=[])
        self.process = None
        case.addCleanup(shutil.rmtree, self.root, True)
        self.make()
        self.start()
        case.addCleanup(self.stop)
        self.conninfo = f"host={self.root} user=pushbroom dbname=postgres"

    def make(self):
        """Makes the directory `data`."""
        self.tool("initdb", "-D", "data", "-U", "pushbroom", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")

    def tool(self, name, *arguments):
        done = run_to_end([self.programs / name, *arguments], cwd=self.root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **self.user)
        assert done.returncode == 0, done.stdout

    def is_ready(self):
        """A standby is ready when it answers queries."""
        ready = self.root / "data/postmaster.pid"
        return ready.exists() and ready.read_text().rstrip().rpartition("\n")[2].strip() in ("ready", "standby")

    def start(self):
        with open(self.root / "log", "ab") as log:
            self.process = subprocess.Popen(
                [self.programs / "postgres", "-D", "data", "-k", self.root, "-c", "listen_addresses=", *self.settings], cwd=self.root,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, **self.user)
        wait_for(lambda: self.process.poll() is not None or self.is_ready())
        assert self.process.poll() is None, (self.root / "log").read_text()

    def stop(self, number=signal.SIGQUIT):
        """SIGQUIT is like a crash: connections end at once."""
        if self.process.poll() is None:
            self.process.send_signal(number)
            finish(self.process)

    def hang(self, hangs):
        """Stops all processes of the server: it accepts connections, and does not answer; False lets them continue."""
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        number = signal.SIGSTOP if hangs else signal.SIGCONT
        self.process.send_signal(number)
        for child in children.read_text().split():
            os.kill(int(child), number)

    def rows(self, query):
        done = run_to_end([self.programs / "psql", "-X", "-A", "-t", "-F", "|", "-v", "ON_ERROR_STOP=1", "-c", query, self.conninfo],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert done.returncode == 0, done.stderr
        return [tuple(line.split("|")) for line in done.stdout.splitlines()]


class Node(Daemon):
    """A service that shares the store, and the directory of products below `common`."""

    def __init__(self, name, postgres, common, lease="3s", **settings):
        self.name, self.postgres, self.common, self.lease = name, postgres, common, lease
        super().__init__(**settings)

    def write_config(self, **settings):
        super().write_config(**settings)
        self.change(f"  products: {self.root}/products\n",
                    f"  products: {self.common}/products\n  node: {self.name}\n"
                    f"  store: {{postgresql: \"{self.postgres.conninfo}\", lease: {self.lease}}}\n")

    def nodes(self):
        return {node["name"]: node for node in self.call("service.info")["nodes"]}
