# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Shared state of the host for the parts: its programs, a folder to work in, an owner of its GPU, and the count of what passed."""
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time


def answers(path):
    """Returns true if a process listens there. The file alone may be that of an owner that was killed."""
    with socket.socket(socket.AF_UNIX) as s:
        return s.connect_ex(str(path)) == 0


class Host:
    def __init__(self, options):
        self.bin = options.bin
        self.work = options.work or pathlib.Path(tempfile.mkdtemp(prefix="pb-gpu-"))
        self.work.mkdir(parents=True, exist_ok=True)
        self.passed = self.failed = 0
        self.owner = None

    def program(self, name):
        return str(self.bin / name) if self.bin else name

    def call(self, *command, limit=120):
        return self.stopped(*command, limit=limit)

    def stopped(self, *command, limit=120, after=None, seconds=6):
        """Runs a command; with `after`, stops it then for this many seconds. Exit 124: it took longer than the limit and was killed."""
        try:
            process = subprocess.Popen([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
        except FileNotFoundError as error:
            return subprocess.CompletedProcess(command, 127, "", str(error))
        was_stopped = False

        def stop():
            nonlocal was_stopped
            if process.poll() is None:
                was_stopped = True
                os.killpg(process.pid, signal.SIGSTOP)  # the workers with it
                time.sleep(seconds)
                os.killpg(process.pid, signal.SIGCONT)

        timer = threading.Timer(after, stop) if after is not None else None
        if timer:
            timer.start()
        try:
            out, err = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            err += f"\nno end within {limit} s"
            process.returncode = 124
        if timer:
            timer.cancel()
            timer.join()
        if after is not None and not was_stopped:
            err += "\nit had ended before it was to be stopped"
        return subprocess.CompletedProcess(command, process.returncode, out, err)

    def check(self, ok, what):
        self.passed, self.failed = self.passed + bool(ok), self.failed + (not ok)
        print(f"  {'ok  ' if ok else 'FAIL'} {what}", flush=True)

    def config(self, name, pipeline, buffers="auto", sync="stream", device="auto", codecs="host", device_memory="0"):
        path = self.work / f"{name}.yaml"
        service = f"service: {{socket: {self.work}/status}}\n" if self.owner else ""
        path.write_text(f"{service}compute: {{memory: 1GiB, device: {device}, buffers: {buffers}, sync: {sync}, codecs: {codecs}, device_memory: {device_memory}}}\npipelines:\n p:{pipeline}")
        return path

    def begin_owner(self, *options):
        """The process that owns the GPU for runs whose configuration is made from now on; without it each run starts its own."""
        path = f"{self.work}/status.cuda0"
        self.owner = subprocess.Popen([self.program("pushbroomd"), "--device", "0", "--socket", path, *options],
                                      stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 60
        while not (listens := answers(path)) and self.owner.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        self.check(listens, f"pushbroomd --device 0 listens at {path}")

    def end_owner(self):
        running = self.owner.poll() is None
        _, said = self.owner.communicate(timeout=60)  # it ends with its input
        self.check(running and self.owner.returncode == 0, f"the owner served all runs and ended (exit {self.owner.returncode}) {said[-300:]}")
        self.owner = None

    def scene(self, name, arguments):
        path = self.work / (name.replace(" ", "_").replace(",", "") + ".tif")
        if not path.exists():
            done = self.call(self.program("make_scene"), *arguments, path, limit=300)
            if done.returncode:
                sys.exit(f"make_scene: {done.stderr}")
        return path

    def run(self, config, scene, device, out="out", limit=300, after=None):
        done = self.stopped(self.program("pushbroom"), "run", "--json", "--device", device, "-c", config, "-o", self.work / out, scene,
                            limit=limit, after=after)
        lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
        return (json.loads(lines[-1]) if lines else {"status": "failed", "error": done.stderr[-500:]}), done


def sums(result):
    return {p["path"].rsplit("/", 1)[1]: p["checksum"] for p in result.get("products", [])}


def show(done):
    print("\n".join("    " + line for line in (done.stdout + done.stderr).strip().splitlines()), flush=True)
