#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: threads
"""Faults of the machine are not faults of the input: a full or read-only disk, no descriptors, a worker that cannot run hold the
queue; nothing is put into quarantine for them, and the service continues by itself. --long: as many scenes as a day brings."""
import os
import resource
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../proof"))
import control  # noqa: E402
from daemon_kit import BIN, FAKE_WORKER, DaemonCase, wait_for  # noqa: E402
from pbtest import SANITIZED, main  # noqa: E402

LONG = "--long" in sys.argv
if LONG:
    sys.argv.remove("--long")
SCENES = 200 if LONG else 20


class Faults(DaemonCase):
    def mount(self, place, size):
        """A small disk at the place."""
        place.mkdir(exist_ok=True)
        made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=" + size, "tmpfs", str(place)], capture_output=True)
        if made.returncode:
            self.skipTest("cannot mount a tmpfs here: needs root")
        self.addCleanup(subprocess.run, ["umount", "-l", str(place)])

    def count(self, d, status):
        return d.call("service.info")["jobs"][status]

    def held(self, d, code, key="queue"):
        """Waits until the queue is held for that reason."""
        try:
            return wait_for(lambda: (lambda t: t and t["code"] == code and t)(d.trouble(key)))
        except AssertionError:
            raise AssertionError("%s, not %s\n%s" % (d.call("service.info")["troubles"], code, d.log_text()))

    def all_done(self, d, n):
        try:
            d.wait_for(lambda: self.count(d, "successful") == n)
        except AssertionError:
            raise AssertionError("%s\n%s" % (d.call("service.info"), d.log_text()))
        self.assertEqual(self.count(d, "failed"), 0)
        self.assertEqual(d.files("quarantine"), [])
        self.assertEqual({j["attempts"] for j in d.jobs(limit=1000)}, {1})
        self.assertIsNone(d.trouble("queue"))

    def fill(self, place):
        with open(place / "fill", "wb", buffering=0) as file:
            try:
                while file.write(b"x" * 4096) == 4096:
                    pass
            except OSError:
                pass
        return place / "fill"

    def scenes(self, d, n):
        """Tiny good scenes for a real worker."""
        from osgeo import gdal
        import numpy
        gdal.UseExceptions()
        path = d.root / "one.tif"
        out = gdal.GetDriverByName("GTiff").Create(str(path), 32, 32, 1, gdal.GDT_UInt16)
        out.SetGeoTransform([500000, 10, 0, 5000000, 0, -10])
        out.GetRasterBand(1).WriteArray(numpy.arange(1024, dtype=numpy.uint16).reshape(32, 32))
        out = None
        for i in range(n):
            shutil.copy(path, d.root / ".copy")
            os.rename(d.root / ".copy", d.root / "inbox" / ("s%03d.tif" % i))


class Hangs(Faults):
    def test_hung_storage_holds_the_queue_and_fails_no_job(self):
        """The reads of an input do not return, for a worker that could be ended any time."""
        if SANITIZED:
            self.skipTest("the sanitizer wants to be the first library")
        d = self.daemon(fake=False, start=False)
        faults = control.Faults(d.root / "faults", BIN / "pbfault.so")
        rule = faults.rule("pread", control.OFF, role="worker", path="/work/")
        d.start(env=faults.environment())
        self.scenes(d, 1)
        self.all_done(d, 1)
        d.limit_stall("4s")
        faults.set_mode(rule, control.HANG)
        self.scenes(d, 2)  # the first one's name again: three jobs in all
        trouble = self.held(d, "input.io")
        self.assertIn("does not return", trouble["message"])
        self.assertEqual(d.jobs(status="failed"), [])
        d.limit_stall("300s")  # slowness alone, on a machine with other work, does not count
        faults.set_mode(rule, control.OFF)
        self.all_done(d, 3)


# Runs a command in a sandbox that forbids filters of system calls: seccomp(2) and prctl(PR_SET_SECCOMP) fail with EPERM.
WITHOUT_SECCOMP = """
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
seccomp, prctl = {"x86_64": (317, 157), "aarch64": (277, 167)}[os.uname().machine]
code = b"".join(struct.pack("=HBBI", *line) for line in (
    (0x20, 0, 0, 0), (0x15, 3, 0, seccomp), (0x15, 0, 3, prctl), (0x20, 0, 0, 16), (0x15, 0, 1, 22),
    (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7fff0000)))
kept = ctypes.create_string_buffer(code)
program = ctypes.create_string_buffer(struct.pack("=HxxxxxxQ", len(code) // 8, ctypes.addressof(kept)))
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program, 0, 0) == 0, os.strerror(ctypes.get_errno())
os.execv(sys.argv[1], sys.argv[1:])
"""


class Confinement(Faults):
    def test_unconfined_worker_reads_and_fails_nothing(self):
        if os.uname().machine not in ("x86_64", "aarch64"):
            self.skipTest("the numbers of the system calls are not known here")
        if SANITIZED:
            self.skipTest("under a sanitizer the filter refuses instead of killing, and prctl(2) can install such a one")
        d = self.daemon(fake=False, start=False)
        d.prefix = [sys.executable, "-c", WITHOUT_SECCOMP]
        d.start()
        self.scenes(d, 2)
        trouble = self.held(d, "system")
        self.assertIn("cannot confine the worker", trouble["message"])
        self.assertEqual(self.count(d, "failed"), 0)
        self.assertEqual(d.files("quarantine"), [])
        d.stop()
        d.prefix = []
        d.start()
        self.all_done(d, 2)


class Queue(Faults):
    def test_a_fault_of_the_machine_fails_no_job(self):
        d = self.daemon(parallel=3)
        (d.root / "full").touch()
        for i in range(SCENES):
            d.drop("s%03d.tif" % i, "while full output.full")
        trouble = self.held(d, "output.full")
        self.assertIn("as the test wants it", trouble["message"])
        self.assertIn('pushbroom_trouble{key="queue",code="output.full"} 1', d.call("service.metrics")["text"])
        # While it is held one job is tried at a time, and each try starts later.
        wait_for(lambda: self.count(d, "accepted") == SCENES)
        d.wait_trouble("queue", "fault 6 since")
        self.assertLess(len(list(d.root.glob("runs-*"))), 12)
        waiting = [j for j in d.jobs(status="accepted", limit=1000) if j["error"]]  # one more may be tried right now
        self.assertEqual({(j["status"], j["attempts"], j["error"]["code"]) for j in waiting}, {("accepted", 0, "output.full")})
        self.assertEqual(self.count(d, "failed"), 0)
        (d.root / "full").unlink()
        self.all_done(d, SCENES)
        self.assertEqual({j["error"] for j in d.jobs(limit=1000)}, {None})

    def test_job_that_causes_the_fault_is_set_aside(self):
        d = self.daemon()
        d.drop("poison.tif", "fault input.io")
        self.held(d, "input.io")
        good = 0
        while not d.jobs(status="failed"):
            good += 1
            self.assertLess(good, 300, d.log_text())
            d.drop("g%d.tif" % good)
            d.wait_job("g%d.tif" % good, "successful")
            time.sleep(0.2)
        job, = d.jobs(status="failed")
        self.assertEqual((job["name"], job["error"]["code"]), ("poison.tif", "input.io"))
        self.assertIn("while other jobs were successful", job["error"]["message"])
        self.assertEqual(d.files("quarantine"), ["poison.tif", "poison.tif.error.json"])
        self.assertEqual(len((d.root / "runs-poison").read_text().splitlines()), 4)
        self.assertIsNone(d.trouble("queue"))

    def test_a_cancelled_job_leaves_no_hold_behind(self):
        d = self.daemon()
        d.drop("x.tif", "fault memory")
        self.held(d, "memory")
        job = d.wait_job("x.tif", "accepted")
        d.call("job.cancel", id=job["id"])
        wait_for(lambda: d.trouble("queue") is None)

    def test_a_worker_that_is_killed_costs_no_attempt(self):
        d = self.daemon()
        d.write_config()
        d.drop("x.tif", "killed_once")
        job = d.wait_job("x.tif", "successful")
        self.assertEqual(job["attempts"], 1)
        self.assertIn("signal 9", d.log_text())


class Program(Faults):
    def swap(self, d, text):
        """The worker's program is another one from now on, in one step."""
        new = d.root / "worker.new"
        new.write_text(text)
        new.chmod(0o755)
        os.rename(new, d.worker)

    def test_a_worker_that_dies_at_once_holds_the_queue(self):
        d = self.daemon(start=False)
        d.worker = d.root / "worker"
        self.swap(d, "#!/bin/sh\nexit 127\n")
        d.start()
        for i in range(SCENES):
            d.drop("s%03d.tif" % i)
        trouble = self.held(d, "system")
        self.assertIn("exit status 127", trouble["message"])
        d.wait_trouble("queue", "fault 4 since")
        self.assertEqual(self.count(d, "failed"), 0)
        self.swap(d, FAKE_WORKER.read_text())
        self.all_done(d, SCENES)

    def test_a_program_that_is_not_there_holds_the_queue(self):
        d = self.daemon(start=False)
        d.worker = d.root / "worker"
        d.start()
        d.drop("x.tif")
        self.assertIn("cannot start a worker", self.held(d, "system")["message"])
        self.swap(d, FAKE_WORKER.read_text())
        self.all_done(d, 1)


class Disk(Faults):
    """Real workers, real disks."""

    def test_full_products(self):
        d = self.daemon(start=False, fake=False)
        self.mount(d.root / "products", "2m")
        fill = self.fill(d.root / "products")
        d.start()
        self.scenes(d, SCENES)
        self.held(d, "output.full")
        d.wait_trouble("queue", "fault 4 since")
        fill.unlink()
        d.wait_for(lambda: self.count(d, "successful") > 0)
        subprocess.run(["mount", "-o", "remount,size=100m", str(d.root / "products")], check=True)
        self.all_done(d, SCENES)

    def test_read_only_products(self):
        d = self.daemon(start=False, fake=False)
        self.mount(d.root / "products", "100m")
        d.start()
        subprocess.run(["mount", "-o", "remount,ro", str(d.root / "products")], check=True)
        self.scenes(d, SCENES)
        self.held(d, "output.denied")
        d.wait_trouble("queue", "fault 4 since")
        subprocess.run(["mount", "-o", "remount,rw", str(d.root / "products")], check=True)
        self.all_done(d, SCENES)

    def test_full_state(self):
        d = self.daemon(start=False)
        self.mount(d.root / "state", "1m")
        d.start()
        d.drop("first.tif", "until go")
        d.wait_job("first.tif", "running")
        fill = self.fill(d.root / "state")
        (d.root / "go").touch()
        self.held(d, "service.state", "jobs")
        for i in range(5):
            d.drop("s%03d.tif" % i)
        time.sleep(2)
        self.assertTrue(d.is_up())
        fill.unlink()
        self.all_done(d, 6)
        self.assertIsNone(d.trouble("jobs"))

    def test_no_descriptors(self):
        d = self.daemon(fake=False)
        worker, = wait_for(d.workers)
        soft, hard = resource.prlimit(worker, resource.RLIMIT_NOFILE)
        wait_for(lambda: d.call("service.info")["device"])
        resource.prlimit(worker, resource.RLIMIT_NOFILE, (6, hard))
        self.scenes(d, SCENES)
        self.held(d, "system.files")
        d.wait_trouble("queue", "fault 3 since")
        resource.prlimit(worker, resource.RLIMIT_NOFILE, (soft, hard))
        self.all_done(d, SCENES)


if __name__ == "__main__":
    main(workers=3)
