# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""A real pushbroomd in a scratch directory, and a client of its socket, for the integration tests."""
import atexit
import collections
import contextlib
import functools
import json
import os
import pathlib
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

import pbtest
import stac_rules
from patience import PATIENCE_S, finish, wait_for

HERE = pathlib.Path(__file__).resolve().parent


def open_to_all(folder, programs):
    """The folder; or a copy of these programs with links to its other files, if users of tests cannot enter it (below /root).
    The patterns that programs load from ../lib, and the program that pushbroom starts, are copied as well."""
    if os.geteuid() != 0 or all(place.stat().st_mode & 0o001 for place in (folder, *folder.parents)):
        return folder
    root = pathlib.Path(tempfile.mkdtemp(prefix="pb-open-"))
    atexit.register(shutil.rmtree, root, True)
    root.chmod(0o755)
    copy = root / folder.name
    copy.mkdir(0o755)
    for file in folder.iterdir():
        if file.name in programs:
            shutil.copytree(file, copy / file.name) if file.is_dir() else shutil.copy(file, copy)
        else:
            (copy / file.name).symlink_to(file)
    for more in ("lib/wic/patterns", "libexec/pushbroom"):
        if (folder.parent / more).is_dir():
            shutil.copytree(folder.parent / more, root / more)
    return copy


BIN = open_to_all(pbtest.BIN.resolve(), ("pushbroom", "pushbroomd", "pushbroom-notify", "pushbroom-web", "pushbroom-ccsds", "pushbroom-fetch"))
FAKE_WORKER = open_to_all(HERE, ("fake_worker.py",)) / "fake_worker.py"

CONFIG = """service:
  inbox: {root}/inbox
  work: {root}/work
  products: {root}/products
  quarantine: {root}/quarantine
  state: {root}/state
  socket: {root}/s.sock
  settle: {settle}
  rescan: {rescan}
  stall: {stall}
  parallel_jobs: {parallel}
  on_success: {on_success}
pipelines:
  {pipeline}:
    input:
      match: ["*.tif"]
      bands: {{R: 1}}
    products:
      - statistics: {{}}
"""


class RpcError(Exception):
    def __init__(self, error):
        super().__init__(error["message"])
        self.rpc = error["code"]
        self.code = error.get("data", {}).get("code")
        self.hint = error.get("data", {}).get("hint")


def can_mount():
    return os.geteuid() == 0 and subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"], stderr=subprocess.DEVNULL).returncode == 0


class Client:
    def __init__(self, path, timeout=PATIENCE_S):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(timeout)
        try:
            self.socket.connect(str(path))
        except OSError:
            self.socket.close()
            raise
        self.file = self.socket.makefile("rb")
        self.events = []
        self.number = 0

    def send(self, data):
        self.socket.sendall(data)

    def line(self):
        line = self.file.readline()
        return json.loads(line) if line else None

    def call(self, method, **params):
        self.number += 1
        self.send((json.dumps({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}) + "\n").encode())
        while True:
            reply = self.line()
            assert reply is not None, "the service closed the connection"
            if "method" in reply:
                self.events.append(reply["params"])
                continue
            assert reply["id"] == self.number
            if "error" in reply:
                raise RpcError(reply["error"])
            return reply["result"]

    def event(self):
        return self.events.pop(0) if self.events else self.line()["params"]

    def close(self):
        self.file.close()
        self.socket.close()


class Daemon:
    """settings: settle, rescan, stall, parallel, on_success, pipeline. `with` removes it at the end."""

    def __init__(self, fake=True, worker=None, parent=None, **settings):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="pb-", dir=parent))
        self.fake = fake
        self.worker = worker  # another program in the workers' place
        self.settings = dict(settle="150ms", rescan="1s", stall="300s", parallel=1, on_success="archive",
                             pipeline="plain", root=self.root)
        self.config = self.root / "config.yaml"
        self.log = self.root / "log"
        self.process = None
        self.prefix = []  # arguments before its command line
        self.options = []  # more of them
        self.write_config(**settings)
        (self.root / "inbox").mkdir()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()

    def write_config(self, **settings):
        self.settings.update(settings)
        self.config.write_text(CONFIG.format(**self.settings))

    def set_pipelines(self, text):
        """Replaces the pipelines of the configuration. The text may begin with keys of the section service."""
        before = self.config.read_text()
        self.config.write_text(before[:before.index("pipelines:")] + text)

    def change(self, before, after, count=-1):
        """Replaces a text of the configuration, at most `count` times."""
        text = self.config.read_text()
        assert before in text, (before, text)
        self.config.write_text(text.replace(before, after, count))

    def limit_stall(self, stall):
        """From now on. A test that lets a job stall does so when its worker runs: a slow start is not a stall."""
        self.write_config(stall=stall)
        self.process.send_signal(signal.SIGHUP)

    def start(self, wait=True, env=None, user=None):
        command = self.prefix + [str(BIN / "pushbroomd"), "--config", str(self.config)] + self.options
        worker = self.worker or (FAKE_WORKER if self.fake else None)
        if worker:
            command += ["--worker-command", str(worker)]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(command, stderr=log, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                            env=dict(os.environ, **(env or {})), user=user, group=user,
                                            extra_groups=None if user is None else [])
        if wait:
            wait_for(lambda: self.process.poll() is not None or self.is_up())
            assert self.process.poll() is None, self.log_text()
        return self

    def exit_status(self):
        """Exit status of a process that ends by itself, or on request."""
        finish(self.process)
        return self.process.returncode

    def is_up(self):
        """It answers, so its loop runs and signals reach it."""
        try:
            return bool(self.call("service.info"))
        except OSError:
            return False

    def wait_streams(self):
        """Waits until writers of streams can connect; the status socket answers before the job store is open."""
        wait_for((self.root / "streams.sock").exists)

    def client(self, **options):
        return Client(self.root / "s.sock", **options)

    def call(self, method, timeout=PATIENCE_S, **params):
        client = self.client(timeout=timeout)
        try:
            return client.call(method, **params)
        finally:
            client.close()

    def jobs(self, **params):
        return self.call("job.list", **params)["jobs"]

    def trouble(self, key):
        found = [t for t in self.call("service.info")["troubles"] if t["key"] == key]
        return found[0] if found else None

    def wait_trouble(self, key, words=""):
        """Waits until there is a trouble `key` whose message has these words, and returns it."""
        return wait_for(lambda: (lambda t: t and words in t["message"] and t)(self.trouble(key)))

    def drop(self, name, text="ok", old=False):
        """Into the inbox the proper way: written elsewhere, renamed in."""
        temporary = self.root / ("." + name)
        temporary.write_text(text)
        if old:
            os.utime(temporary, (1e9, 1e9))
        os.rename(temporary, self.root / "inbox" / name)

    def drop_copy(self, source, name=None):
        """Copies a file or folder into the inbox, with its time, under a hidden name, and renames it."""
        name = name or source.name
        temporary = self.root / "inbox" / f".{name}.part"
        shutil.copytree(source, temporary) if source.is_dir() else shutil.copy2(source, temporary)
        os.rename(temporary, self.root / "inbox" / name)

    @contextlib.contextmanager
    def paused(self):
        """The service is stopped in here: files that arrive meanwhile are there at its next look, all at once."""
        if self.process is None or self.process.poll() is not None:
            yield
            return
        tasks = pathlib.Path("/proc", str(self.process.pid), "task")
        self.process.send_signal(signal.SIGSTOP)
        try:
            wait_for(lambda: all(stat.read_text().rpartition(")")[2].split()[0] == "T" for stat in tasks.glob("*/stat")))
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    @contextlib.contextmanager
    def without_descriptors(self):
        """Context in which the service can open no further descriptor."""
        limit = functools.partial(resource.prlimit, self.process.pid, resource.RLIMIT_NOFILE)
        before = limit()

        def first_free():
            used = {int(fd) for fd in os.listdir(f"/proc/{self.process.pid}/fd")}
            return next(fd for fd in range(len(used) + 1) if fd not in used)
        with contextlib.ExitStack() as clients:
            while first_free() < 32: # poll() needs a larger limit than a listener has descriptors
                free = first_free()
                clients.enter_context(contextlib.closing(self.client()))
                wait_for(lambda: first_free() != free)
            seen = [first_free()]
            for _ in range(100): # some descriptors are in use only briefly, which takes longer on a loaded machine
                time.sleep(0.01)
                seen.append(first_free())
            limit((min(seen), before[1]))
            try:
                yield
            finally:
                limit(before)

    def progress(self):
        """Values that change while jobs arrive, run and end."""
        keys = ("id", "status", "attempts", "stage", "updated") # the last: time of the last reported progress of tiles or bytes
        return [[job[key] for key in keys] for job in self.jobs(limit=1000)]

    def wait_for(self, what, **limits):
        """wait_for() of what jobs lead to; ends early when none of them moves."""
        return wait_for(what, progress=self.progress, **limits)

    def wait_job(self, name, status):
        def found():
            jobs = [j for j in self.jobs() if j["name"] == name and j["status"] == status]
            return jobs and jobs[0]
        try:
            return self.wait_for(found)
        except AssertionError:
            raise AssertionError("%s is not %s: %s\n%s" % (name, status, self.jobs(), self.log_text()))

    def wait_idle(self):
        """Until no job waits or runs; the counts of each status. By the list of jobs, which is the store's: the counts of
        service.info are a moment older."""
        def counts():
            jobs = collections.Counter(accepted=0, running=0)
            jobs.update(job["status"] for job in self.jobs(limit=1000))
            return jobs["accepted"] + jobs["running"] == 0 and jobs
        return self.wait_for(counts, step=0.2)

    def workers(self):
        """Its worker processes; it may have other children (a sanitizer's, one that looks at a path for a client)."""
        text = subprocess.run(["ps", "-o", "pid=,args=", "--ppid", str(self.process.pid)], stdout=subprocess.PIPE, text=True).stdout
        return [int(line.split()[0]) for line in text.splitlines() if "--worker" in line.split()]

    def owners(self):
        """Its processes that own a device."""
        text = subprocess.run(["ps", "-o", "pid=,args=", "--ppid", str(self.process.pid)], stdout=subprocess.PIPE, text=True).stdout
        return [int(line.split()[0]) for line in text.splitlines() if "--device" in line.split()]

    def log_text(self):
        return self.log.read_text(errors="replace")

    def files(self, folder):
        """Files below a folder, except for the service's own locks."""
        base = self.root / folder
        found = [] # a folder may vanish meanwhile
        for at, folders, files in os.walk(base):
            found += [os.path.relpath(os.path.join(at, name), base) for name in folders + files if name != ".pushbroomd.lock"]
        return sorted(found)

    def stop(self, number=signal.SIGTERM):
        """Returns the exit status and the seconds it took."""
        start = time.monotonic()
        if self.process is None:
            return 0, 0
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.exit_status(), time.monotonic() - start

    def remove(self):
        """Ends it, and fails when it does not end well or a sanitizer reported an error."""
        status = 0
        if self.process is not None and self.process.poll() is None:
            status, _ = self.stop()
        text = self.log_text() if self.log.exists() else ""
        try:
            stac_rules.check_all(self.root / "products")
        finally:
            shutil.rmtree(self.root, ignore_errors=True)
        assert status == 0, "exit status %d\n%s" % (status, text)
        for word in ("Sanitizer", "runtime error:", "handles are left open"):
            assert word not in text, text


class DaemonCase(unittest.TestCase):
    """Tests that have daemons, which end with their test."""

    def daemon(self, start=True, **settings):
        daemon = Daemon(**settings)
        self.addCleanup(daemon.remove)
        if start:
            daemon.start()
        return daemon
