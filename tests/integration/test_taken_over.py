#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""A decoder that a file has taken over (tests/tools/taken_over.c) tries to get out of the process that decodes: to the
store, other jobs' files, the service's memory, the network, a shell. Each attack is a job of the real service; the test
prints what stopped it, and afterwards the service still works."""
import json
import os
import pathlib
import shutil
import sys
import tempfile
import unittest
import zipfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from daemon_kit import BIN, Daemon  # noqa: E402
from pbtest import SANITIZED, main, run  # noqa: E402
from taken_over_kit import Attacks  # noqa: E402


def landlock():
    """Version of Landlock in this kernel, 0 = none."""
    import ctypes
    return max(0, ctypes.CDLL(None, use_errno=True).syscall(444, None, 0, 1))


class TakenOver(Attacks, unittest.TestCase):
    program = "taken_over"

    @classmethod
    def setUpClass(cls):
        cls.d = d = Daemon(fake=False, worker=BIN / cls.program, parallel=3, settle="100ms", stall="300s")
        d.change("  stall:", "  max_attempts: 1\n  stall:")
        (d.root / "products").mkdir()
        (d.root / "products/older").write_text("an older product")
        (d.root / "outside").write_text("somebody else's")
        d.start()
        cls.daemon_pid = d.process.pid

    @classmethod
    def tearDownClass(cls):
        cls.d.remove()

    def ended(self, name, argument=""):
        """Asserts that seccomp ends it; a build with sanitizers lets the call fail instead."""
        how = self.attack(name, argument)
        if SANITIZED:
            self.assertTrue(how.startswith("STOPPED by"), how)
        else:
            self.assertIn("signal 31", how)

    def test_no_other_program_and_no_other_process(self):
        for name in ("exec", "fork", "clone"):
            self.ended(name)

    def test_no_other_process_memory_and_no_signals(self):
        for name in ("ptrace", "vm_read", "kill", "tgkill"):
            self.ended(name)
        self.ended("kill", str(self.daemon_pid))
        self.denied("prlimit")
        if landlock():
            self.denied("mem")
            self.denied("mem", str(self.daemon_pid))

    def test_no_network_and_no_socket(self):
        self.ended("inet")
        self.ended("netlink")
        self.ended("unix", str(self.d.root / "s.sock"))

    def test_no_privileges_and_no_wide_surfaces(self):
        for name in ("namespace", "bpf", "io_uring"):
            self.ended(name)
        if os.getuid() == 0:
            self.ended("setuid")

    def test_no_code_of_its_own(self):
        self.denied("wx")
        self.denied("memfd")

    @unittest.skipUnless(landlock(), "a kernel without Landlock")
    def test_no_file_but_its_own(self):
        root = self.d.root
        other = root / "work" / "20200101-000000-aaaa"
        other.mkdir(exist_ok=True)
        (other / "other.tif").write_text("another job's input")
        for path in ("outside", "state/jobs.db", "config.yaml", "work/20200101-000000-aaaa/other.tif", "products/older"):
            if path == "state/jobs.db":
                path = "state/" + next(f for f in os.listdir(root / "state") if f.endswith(".db"))
            self.denied("read", str(root / path))
            self.denied("append", str(root / path))
        for path in ("inbox", "work", "state", "products", "quarantine", ""):
            self.denied("list", str(root / path))
        self.denied("read", "/etc/passwd")
        self.denied("read", "/etc/shadow")
        self.denied("truncate", str(root / "outside"))
        self.denied("remove", str(root / "outside"))
        self.denied("rename", str(root / "products/older"))
        for path in ("products/new", "inbox/new.tif", "outside-new"):
            self.denied("create", str(root / path))
            self.assertFalse((root / path).exists())
        self.denied("create", "/tmp/pb-taken-over")
        self.assertEqual((root / "outside").read_text(), "somebody else's")
        self.assertEqual((root / "products/older").read_text(), "an older product")

    def paths(self):
        """Paths of the service and of the machine, which a decoder must neither see nor change."""
        root = self.d.root
        store = next(f for f in os.listdir(root / "state") if f.endswith(".db"))
        return [str(root / "outside"), str(root / "state" / store), str(root / "products/older"), str(root / "inbox")]

    def facts(self):
        """Mode, owner, time and size of these; the store is written by the service itself."""
        found = {}
        for path in self.paths():
            st = os.stat(path)
            fixed = not path.endswith(".db") and not path.endswith("inbox")
            found[path] = (st.st_mode, st.st_uid, (st.st_mtime_ns, st.st_size) if fixed else st.st_mtime > 10000)
        return found

    def test_no_mode_and_no_time_changes(self):
        before = self.facts()
        for path in self.paths()[:2]:
            for name in ("chmod", "chmod_at", "times", "truncate", "truncate_read_only"):
                self.denied(name, path)
        for name in ("fchmod", "fchown", "open_times", "flags"):
            self.stopped(name)
        self.assertEqual(self.facts(), before)

    @unittest.skipIf(SANITIZED, "sanitizers need the facts of files")
    def test_no_fact_of_a_path(self):
        for path in [self.paths()[1], str(self.d.root / "inbox"), "/etc/shadow"]:
            for name in ("stat", "lstat", "stat_flag", "statx", "handle", "access", "readlink", "statfs", "attributes"):
                self.stopped(name, path)

    def test_no_watch_and_no_other_directory(self):
        for path in ("inbox", "state", "outside"):
            self.denied("inotify", str(self.d.root / path))
            self.denied("chdir", str(self.d.root / path))
        self.denied("chdir", "/")

    def test_no_hold_on_other_processes(self):
        cores, policy = os.sched_getaffinity(self.daemon_pid), os.sched_getscheduler(self.daemon_pid)
        for name in ("affinity", "idle", "ioprio", "policy", "group", "locks", "join_group", "session"):
            self.denied(name, str(self.daemon_pid))
        if not SANITIZED:
            self.denied("ask_affinity", str(self.daemon_pid))
        self.assertEqual((os.sched_getaffinity(self.daemon_pid), os.sched_getscheduler(self.daemon_pid)), (cores, policy))

    def test_no_signal_by_a_descriptor(self):
        if not SANITIZED:
            self.denied("signal_pipe", str(self.daemon_pid))
        self.stopped("signal_descriptor", str(self.daemon_pid))
        self.assertIsNone(self.d.process.poll())

    def test_nothing_of_the_kernel_that_no_decoder_needs(self):
        self.stopped("clone3")
        self.ended("adjtimex")
        self.ended("shared_memory")
        self.stopped("run_file")
        if not SANITIZED:
            self.denied("merge")

    @unittest.skipIf(SANITIZED or not landlock(), "sanitizers read of their own process")
    def test_nothing_of_the_machine(self):
        for path in ("/proc/%d/cmdline" % self.daemon_pid, "/proc/%d/status" % self.daemon_pid, "/proc/self/status",
                     "/proc/self/maps", "/proc/self/net/unix", "/proc/meminfo", "/proc/cpuinfo", "/etc/machine-id"):
            self.stopped("read", path)

    def test_no_descriptor_of_the_service(self):
        self.attack("descriptors", "3")  # the input, the copy that a raster opens, PROJ's database
        for name in ("jobs.db", "older", "config.yaml"):
            self.attack("beside", name)

    def test_no_trace_of_the_job_before(self):
        self.attack("mark")
        self.attack("find_mark")

    def test_no_links_in_the_directory_that_is_published(self):
        self.ended("symlink", "/etc/passwd")

    @unittest.skipIf(SANITIZED, "sanitizers reserve more address space than any budget")
    def test_no_more_memory_than_the_budget_allows(self):
        self.assertIn("Cannot allocate memory", self.attack("memory", "60000"))

    def test_lies_about_the_result_are_not_believed(self):
        how = self.attack("lie", "/etc")
        self.assertIn("ended with", how)

    def test_the_service_is_well_afterwards(self):
        self.attack("exec")
        shutil.copy(os.environ.get("PB_GOOD_TIFF") or self.good(), self.d.root / "inbox" / "good.tif")
        self.assertEqual(self.d.wait_job("good.tif", "successful")["attempts"], 1)
        self.assertEqual(self.d.process.pid, self.daemon_pid)
        self.assertIsNone(self.d.process.poll())

    def good(self):
        from osgeo import gdal
        path = pathlib.Path(self.d.root) / "good"
        out = gdal.GetDriverByName("GTiff").Create(str(path), 64, 64, 1, gdal.GDT_Byte)
        out.SetGeoTransform([500000, 10, 0, 5000000, 0, -10])
        out.GetRasterBand(1).Fill(7)
        out = None
        return path


@unittest.skipUnless(landlock() > 2, "this kernel's Landlock is not newer than that of Linux 6.1")
class TakenOverLinux61(TakenOver):
    """The same with the rights that the Landlock of Linux 6.1 handles."""
    program = "taken_over_6_1"


class TakenOverDates(Attacks, unittest.TestCase):
    """The process that reads the dates of loose files (input.by)."""

    @classmethod
    def setUpClass(cls):
        cls.d = d = Daemon(fake=False, worker=BIN / "taken_over_6_1", settle="100ms", stall="300s")
        head = d.config.read_text().split("pipelines:")[0].replace("  stall:", "  max_attempts: 1\n  stall:")
        d.config.write_text(head + """pipelines:
  dated:
    input: {group: "(?<n>.*)\\\\.tif", by: "{meta.date:%Y%m}", files: {R: "*.tif"}, complete: {expire: 1s}}
    products: [cog: {bands: [R], type: float32}]
""")
        (d.root / "outside").write_text("somebody else's")
        d.start()

    @classmethod
    def tearDownClass(cls):
        cls.d.remove()

    def test_it_reaches_nothing(self):
        outside, pid = str(self.d.root / "outside"), str(self.d.process.pid)
        before = os.stat(outside)
        for name in ("read", "append", "truncate", "remove", "rename", "chmod", "times", "inotify", "chdir"):
            self.denied(name, outside)
        for name in ("affinity", "idle", "ioprio"):
            self.denied(name, pid)
        if not SANITIZED:
            self.denied("signal_pipe", pid)
            self.stopped("stat", outside)
        self.stopped("signal_descriptor", pid)
        self.denied("create", str(self.d.root / "inbox/x.tif"))
        self.denied("list", str(self.d.root / "inbox"))
        for name in ("exec", "inet", "kill"):
            self.attack(name)
        after = os.stat(outside)
        self.assertEqual((after.st_mode, after.st_mtime_ns, after.st_size), (before.st_mode, before.st_mtime_ns, before.st_size))
        self.assertIsNone(self.d.process.poll())


class TakenOverRun(unittest.TestCase):
    """The same without a service: `pushbroom run`."""

    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="pb-"))
        self.addCleanup(shutil.rmtree, self.root)
        self.stall = "300s"
        self.input = "match: ['*.tif'], bands: {R: 1}"
        (self.root / "secret").write_text("the user's")

    def put(self, text):
        """The input that attacks."""
        (self.root / "a.tif").write_text(text)
        return "a.tif"

    def attack(self, name, argument=""):
        path = self.put("ATTACK %s %s\n" % (name, argument))
        (self.root / "c.yaml").write_text("service: {stall: %s}\ncompute: {device: cpu}\npipelines: {p: {input: {%s}, products: [{statistics: {}}]}}\n"
                                          % (self.stall, self.input))
        done = run("taken_over_run", "run", "-c", "c.yaml", "-o", "out", "--json", path, code=None, cwd=self.root)
        result = json.loads(done.stdout)
        print("run %-12s %-50s %s" % (name, argument[-50:], result["error"]["message"]), file=sys.stderr)
        self.assertEqual((done.returncode, result["status"]), (1, "failed"), result)
        self.assertNotIn("REACHED", result["error"]["message"])
        self.said = done.stderr
        self.assertEqual(list(self.root.glob("out/*")) + list(self.root.glob("out/.*.tmp")), [], "nothing is left")
        return result["error"]

    def test_no_program_no_signal_no_network(self):
        for name in ("exec", "kill", "ptrace", "inet"):
            how = self.attack(name)["message"]
            self.assertTrue("signal 31" in how or SANITIZED and "STOPPED" in how, how)
            if "signal 31" in how:
                self.assertIn("attempt 2 of 2", how)
                self.assertIn("attempt 1 of 2; it runs again", self.said)

    @unittest.skipUnless(landlock(), "a kernel without Landlock")
    def test_no_file_of_the_user(self):
        for name in ("read", "append", "truncate", "remove", "rename"):
            self.assertIn("Permission denied", self.attack(name, str(self.root / "secret"))["message"])
        self.assertIn("Permission denied", self.attack("create", str(self.root / "out/new"))["message"])
        self.assertEqual((self.root / "secret").read_text(), "the user's")

    def test_false_result_is_rejected_and_hung_run_ended(self):
        self.assertEqual(self.attack("lie", "/etc")["code"], "job.crashed")
        self.stall = "5s"
        self.assertEqual(self.attack("hang")["code"], "job.stalled")


class TakenOverArchive(TakenOverRun):
    """The same by a member of an archive, which the attacked process has unpacked."""

    def put(self, text):
        self.input = "scene: S2X_*, files: {R: B04.tif}"
        with zipfile.ZipFile(self.root / "S2X_a.zip", "w", zipfile.ZIP_DEFLATED) as out:
            out.writestr("S2X_a/B04.tif", text)
        return "S2X_a.zip"

    @unittest.skipUnless(landlock(), "a kernel without Landlock")
    def test_what_was_unpacked_gets_no_name(self):
        how = self.attack("link", str(self.root / "named"))["message"]
        self.assertTrue("signal 31" in how or SANITIZED and "STOPPED" in how, how)
        self.assertFalse((self.root / "named").exists())


if __name__ == "__main__":
    main(workers=3)
