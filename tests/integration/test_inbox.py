#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: threads sanitized
"""Files that pushbroomd takes from its inbox and files that it leaves there: files that are still written, links, directories
that are replaced, a machine that has no descriptors or no space left."""
import contextlib
import ctypes
import mmap
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from daemon_kit import DaemonCase, wait_for  # noqa: E402
from pbtest import main  # noqa: E402


def exchange(one, other):
    """Both names change their directories in one step (renameat2, RENAME_EXCHANGE)."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(-100, os.fsencode(one), -100, os.fsencode(other), 2) != 0:
        raise OSError(ctypes.get_errno(), "renameat2 of %s and %s" % (one, other))


class Inbox(DaemonCase):
    def passes(self, daemon, scans=3):
        """A later file was processed that often: all that could be taken before it has been."""
        for i in range(scans):
            name = "probe%d-%d.tif" % (time.monotonic_ns(), i)
            daemon.drop(name, old=True)
            daemon.wait_job(name, "successful")

    def names(self, daemon):
        return [j["name"] for j in daemon.jobs(limit=1000) if not j["name"].startswith("probe")]

    def needs_leases(self, daemon):
        if daemon.call("service.info")["inbox_writers"] != "seen":
            self.skipTest("this filesystem has no leases")


class Ignored(Inbox):
    def test_ignored_names_stay_and_are_counted(self):
        d = self.daemon(start=False, settle="50ms")
        d.change("pipelines:", '  ignore: ["*.aux.xml", "browse*"]\npipelines:', 1)
        d.start()
        d.drop("a.tif.AUX.XML")
        d.drop("browse.tif")
        self.passes(d)
        self.assertEqual(self.names(d), [])
        self.assertEqual(sorted(p.name for p in (d.root / "inbox").iterdir() if p.name[0] != "."), ["a.tif.AUX.XML", "browse.tif"])
        self.assertEqual(d.call("service.info")["inbox_ignored"], 2)
        self.assertIn("pushbroom_inbox_ignored 2", d.call("service.metrics")["text"])


class Writers(Inbox):
    def test_open_file_is_taken_only_when_it_is_closed(self):
        d = self.daemon(settle="100ms")
        self.needs_leases(d)
        path = d.root / "inbox/slow.tif"
        with open(path, "w") as file:
            file.write("o")
            file.flush()
            os.utime(path, (1e9, 1e9))  # looks old, too
            time.sleep(1)  # much longer than settle
            self.passes(d)
            self.assertEqual(self.names(d), [])
            self.assertTrue(path.exists())
            file.write("k")
        d.wait_job("slow.tif", "successful")

    def test_a_preallocated_file_that_is_held_open_is_left(self):
        d = self.daemon(settle="100ms")
        self.needs_leases(d)
        with open(d.root / "inbox/pre.tif", "wb") as file:
            os.posix_fallocate(file.fileno(), 0, 65536)
            time.sleep(1)
            self.passes(d)
            self.assertEqual(self.names(d), [])
        d.wait_job("pre.tif", "successful")

    def test_a_file_that_is_mapped_for_writing_is_left(self):
        d = self.daemon(settle="100ms")
        self.needs_leases(d)
        with open(d.root / "inbox/map.tif", "w+b") as file:
            file.truncate(4096)
            memory = mmap.mmap(file.fileno(), 4096)
        time.sleep(1)
        self.passes(d)
        self.assertEqual(self.names(d), [])
        memory.close()
        d.wait_job("map.tif", "successful")

    def test_open_file_is_left_at_the_start_too(self):
        d = self.daemon(start=False, settle="100ms")
        with open(d.root / "inbox/slow.tif", "w") as file:
            file.write("ok")
            file.flush()
            os.utime(d.root / "inbox/slow.tif", (1e9, 1e9))
            d.start()
            self.needs_leases(d)
            self.passes(d)
            self.assertEqual(self.names(d), [])
        d.wait_job("slow.tif", "successful")

    def test_rewrite_with_restored_mtime_is_a_change(self):
        d = self.daemon(settle="3s")
        for i in range(20):
            name = "same%d.tif" % i
            changed, whole = self.rewrite(d.root / "inbox" / name)
            d.wait_job(name, "successful")
            self.assertGreaterEqual(time.monotonic() - changed, 2.9)
            if whole:
                return
        self.fail("this machine stands still for 3 s again and again")

    def rewrite(self, path):
        """Some times, with its mtime restored: a time not after the last change, and whether it could be done. The service
        may take the file when this process does not run for longer than settle."""
        changed = time.monotonic()
        try:
            with open(path, "x") as file:
                file.write("one")
            stamp = os.stat(path).st_mtime_ns
            for text in ("two", "six", "ten"):
                time.sleep(0.7)
                before = os.stat(path).st_ctime_ns
                now = time.monotonic()
                with open(path, "r+") as file:
                    file.write(text)
                changed = now
                os.utime(path, ns=(stamp, stamp))
                self.assertNotEqual(os.stat(path).st_ctime_ns, before)
            return changed, True
        except FileNotFoundError:
            return changed, False


class Renamed(Inbox):
    def test_renamed_file_is_taken_at_once_copy_settles(self):
        d = self.daemon(settle="1h", rescan="1h")
        self.needs_leases(d)
        (d.root / "inbox/copied.tif").write_text("ok")
        part = d.root / "inbox/part.tif.part"
        part.write_text("ok")
        os.rename(part, d.root / "inbox/part.tif")
        d.drop("fresh.tif")
        d.wait_job("part.tif", "successful")
        d.wait_job("fresh.tif", "successful")
        self.passes(d)
        self.assertEqual(sorted(self.names(d)), ["fresh.tif", "part.tif"])
        self.assertTrue((d.root / "inbox/copied.tif").exists())

    def test_file_renamed_by_its_writer_waits_and_settles(self):
        d = self.daemon(settle="300ms")
        self.needs_leases(d)
        outside = d.root / "writing"
        with open(outside, "w") as file:
            file.write("o")
            file.flush()
            os.rename(outside, d.root / "inbox/early.tif")
            self.passes(d)
            self.assertEqual(self.names(d), [])
            file.write("k")
        d.wait_job("early.tif", "successful")


class NoLeases(Inbox):
    """CAP_LEASE is missing and the files are another user's: the kernel gives no lease, as on a filesystem without leases."""

    def held_open(self, drop, writer=None):
        """A file of another user that stays open for writing (to the end of the with block) is left; it counts as
        complete by its stillness otherwise."""
        if os.geteuid() != 0 or shutil.which("setpriv") is None:
            self.skipTest("needs root and setpriv")
        d = self.daemon(start=False, settle="100ms")
        d.prefix = ["setpriv", "--bounding-set", drop]
        d.start()
        path = d.root / "inbox/slow.tif"
        with open(path, "w") as file:
            file.write("o")
            file.flush()  # while it is the service's own, which the kernel reports
            os.chown(path, 12345, 12345)
            time.sleep(1)  # much longer than settle
            self.passes(d)
            self.assertEqual(self.names(d), [])
            file.write("k")
        d.wait_job("slow.tif", "successful")
        return d

    def test_a_writer_is_found_in_proc(self):
        d = self.held_open("-lease")
        self.assertIn("/proc", d.call("service.info")["inbox_writers"])

    def test_writer_hidden_from_proc_is_known_by_changes(self):
        """A process with more capabilities than the service may not be looked at."""
        self.held_open("-lease,-sys_ptrace")

    def test_without_cap_lease_two_scans_decide_with_log(self):
        if os.geteuid() != 0 or shutil.which("setpriv") is None:
            self.skipTest("needs root and setpriv")
        d = self.daemon(start=False, settle="2s")
        d.prefix = ["setpriv", "--bounding-set", "-lease"]
        d.start()
        self.assertIn("CAP_LEASE", d.call("service.info")["inbox_writers"])
        self.assertIn("lacks CAP_LEASE", d.log_text())
        other = d.root / "other"
        other.write_text("ok")
        os.utime(other, (1e9, 1e9))  # its age proves nothing here
        os.chown(other, 12345, 12345)
        dropped = time.monotonic()
        os.rename(other, d.root / "inbox/other.tif")
        d.wait_job("other.tif", "successful")
        self.assertGreaterEqual(time.monotonic() - dropped, 2)
        d.drop("own.tif", old=True)
        d.wait_job("own.tif", "successful")


class Links(Inbox):
    def test_a_hard_link_stays_until_it_is_the_only_name(self):
        d = self.daemon(settle="100ms")
        secret = d.root / "secret"
        secret.write_text("ok")
        os.utime(secret, (1e9, 1e9))
        os.link(secret, d.root / "inbox/linked.tif")
        wait_for(lambda: "linked.tif stays: it has 2 names" in d.log_text())
        self.passes(d)
        self.assertEqual(self.names(d), [])
        self.assertTrue((d.root / "inbox/linked.tif").exists())
        secret.unlink()
        d.wait_job("linked.tif", "successful")


class Directory(Inbox):
    def test_inbox_replaced_between_two_scans_is_watched(self):
        d = self.daemon(rescan="2s")
        (d.root / "new").mkdir()
        exchange(d.root / "inbox", d.root / "new")  # a look between two renames would find no inbox
        wait_for(lambda: "is watched" in d.log_text())
        d.write_config(rescan="1h")  # only events bring files after this
        d.process.send_signal(1)
        wait_for(lambda: "is in use" in d.log_text())
        time.sleep(0.5)
        d.drop("x.tif", old=True)
        d.wait_job("x.tif", "successful")

    def test_missing_inbox_is_a_trouble_until_it_returns(self):
        d = self.daemon()
        self.assertEqual(d.call("service.info")["troubles"], [])
        (d.root / "inbox").rmdir()
        trouble = wait_for(lambda: d.call("service.info")["troubles"])[0]
        self.assertEqual((trouble["key"], trouble["code"]), ("inbox", "system"))
        self.assertIn(str(d.root / "inbox"), trouble["message"])
        self.assertIn('pushbroom_trouble{key="inbox",code="system"} 1', d.call("service.metrics")["text"])
        (d.root / "inbox").mkdir()
        wait_for(lambda: d.call("service.info")["troubles"] == [])
        d.drop("x.tif")
        d.wait_job("x.tif", "successful")


class Machine(Inbox):
    def test_missing_work_folder_is_trouble_loses_no_file(self):
        d = self.daemon()
        (d.root / "work").rename(d.root / "away")
        d.drop("x.tif", old=True)
        trouble = wait_for(lambda: d.call("service.info")["troubles"])[0]
        self.assertEqual(trouble["key"], "intake")
        self.assertIn("x.tif stays", trouble["message"])
        self.assertEqual(d.files("inbox"), ["x.tif"])
        (d.root / "away").rename(d.root / "work")
        d.wait_job("x.tif", "successful")
        wait_for(lambda: d.call("service.info")["troubles"] == [])


    def test_no_descriptors_is_a_trouble_and_loses_no_file(self):
        d = self.daemon(rescan="300ms")
        before = resource.prlimit(d.process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(d.process.pid, resource.RLIMIT_NOFILE, (3, before[1]))
        d.drop("x.tif", old=True)
        wait_for(lambda: "(inbox, system.files)" in d.log_text())
        self.assertEqual(d.files("inbox"), ["x.tif"])
        time.sleep(1)
        self.assertEqual(d.log_text().count("(inbox, system.files)"), 1)
        resource.prlimit(d.process.pid, resource.RLIMIT_NOFILE, before)
        d.wait_job("x.tif", "successful")
        wait_for(lambda: d.call("service.info")["troubles"] == [])

    def test_claim_on_full_disk_is_trouble_loses_no_file(self):
        disk = pathlib.Path(tempfile.mkdtemp(prefix="pb-disk-"))
        self.addCleanup(disk.rmdir)
        mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,nr_inodes=40,mode=0755", "none", disk],
                               stderr=subprocess.PIPE, text=True)
        if mount.returncode != 0:
            self.skipTest("cannot mount: " + mount.stderr.strip())
        self.addCleanup(subprocess.run, ["umount", "-l", disk], check=True)
        d = self.daemon(start=False)
        text = d.config.read_text()
        for name in ("inbox", "work", "quarantine"):
            text = text.replace("%s: %s/%s" % (name, d.root, name), "%s: %s/%s" % (name, disk, name))
        d.config.write_text(text)
        d.start()
        (disk / "inbox/.x.tif").write_text("ok")
        filling = []
        with contextlib.suppress(OSError):
            while True:
                path = disk / ("filling%d" % len(filling))
                path.touch()
                filling.append(path)
        os.rename(disk / "inbox/.x.tif", disk / "inbox/x.tif")
        trouble = wait_for(lambda: d.call("service.info")["troubles"])[0]
        self.assertEqual(trouble["key"], "intake")
        self.assertIn("No space left", trouble["message"])
        self.assertTrue((disk / "inbox/x.tif").exists())
        for path in filling:
            path.unlink()
        d.wait_job("x.tif", "successful")
        wait_for(lambda: d.call("service.info")["troubles"] == [])
        d.stop()


if __name__ == "__main__":
    main(workers=3)
