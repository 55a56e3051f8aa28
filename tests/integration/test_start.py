#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Conditions that keep pushbroomd from starting and conditions that must not, and the output of `pushbroomd --check`."""
import json
import os
import pathlib
import signal
import sqlite3
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from daemon_kit import BIN, DaemonCase, RpcError, wait_for  # noqa: E402
from patience import run_to_end  # noqa: E402
from pbtest import main  # noqa: E402


class Start(DaemonCase):
    def small_disk(self, size):
        """A mounted filesystem of that size."""
        path = pathlib.Path(tempfile.mkdtemp(prefix="pb-disk-"))
        self.addCleanup(path.rmdir)
        mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=%s,mode=0755" % size, "none", path],
                               stderr=subprocess.PIPE, text=True)
        if mount.returncode != 0:
            self.skipTest("cannot mount: " + mount.stderr.strip())
        self.addCleanup(subprocess.run, ["umount", "-l", path], check=True)
        return path

    def fill(self, disk):
        """Leaves no byte free."""
        path = disk / "filling"
        with open(path, "ab", buffering=0) as file:
            for step in (65536, 4096, 1):
                try:
                    while file.write(b"x" * step):
                        pass
                except OSError:
                    pass
        return path

    def troubles(self, d):
        return {t["key"]: t for t in d.call("service.info")["troubles"]}

    def run_daemon(self, *words):
        return run_to_end([BIN / "pushbroomd", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


class Foreign(Start):
    def test_nothing_in_the_inbox_keeps_it_from_starting(self):
        for make in (os.mkdir, os.mkfifo, lambda path: os.symlink("/etc/passwd", path)):
            d = self.daemon(start=False)
            make(d.root / "inbox/.pushbroomd.probe")
            make(d.root / "inbox/.pushbroomd.lock")
            before = d.files("inbox")
            d.start()
            d.drop("x.tif")
            d.wait_job("x.tif", "successful")
            self.assertEqual(d.files("inbox"), before)

    def test_second_service_on_shared_folder_is_refused(self):
        d = self.daemon()
        for shared in ("work", "quarantine"):
            other = self.daemon(start=False)
            other.config.write_text(other.config.read_text().replace(str(other.root / shared), str(d.root / shared)).replace(
                str(other.root / "inbox"), str(d.root / "in2")))
            if shared == "quarantine":  # on one filesystem with work, but another work
                other.change(str(other.root / "work"), str(d.root / "work2"))
            other.start(wait=False)
            self.assertEqual(other.exit_status(), 1)
            self.assertRegex(other.log_text(), r"another pushbroomd \(pid %d\) works on %s; stop it, or give this one its own "
                             r"directories\n" % (d.process.pid, d.root / shared))
        d.drop("x.tif")
        d.wait_job("x.tif", "successful")

    def test_others_cannot_hold_the_locks(self):
        d = self.daemon()
        for path in ("state/lock", "work/.pushbroomd.lock", "quarantine/.pushbroomd.lock"):
            self.assertEqual(os.stat(d.root / path).st_mode & 0o777, 0o600, path)
        for name in ("jobs.db", "jobs.db-wal", "jobs.db-shm"):
            self.assertEqual(os.stat(d.root / "state" / name).st_mode & 0o777, 0o600, name)
        self.assertEqual(os.stat(d.root / "state").st_mode & 0o777, 0o700)

    def test_shared_inbox_without_sticky_bit_is_reported(self):
        d = self.daemon(start=False)
        (d.root / "inbox").chmod(0o777)
        d.start()
        self.assertIn("not sticky", d.log_text())
        d.stop()
        d.log.write_text("")
        (d.root / "inbox").chmod(0o1777)
        d.start()
        self.assertNotIn("not sticky", d.log_text())


class State(Start):
    def on_small_disk(self, size="1m"):
        """A daemon with its state on a disk of its own, which has run a job and has closed its store: nothing of the
        store's log is left, so the next start needs room on the disk."""
        disk = self.small_disk(size)
        d = self.daemon(start=False, rescan="500ms")
        d.change("%s/state" % d.root, "%s/state" % disk)
        d.start()
        d.drop("first.tif")
        d.wait_job("first.tif", "successful")
        d.stop()
        self.assertEqual(sorted(d.files(disk / "state")), ["jobs.db", "lock"])
        return d, disk

    def waits_and_goes_on(self, d, mend):
        trouble = self.troubles(d)["store"]
        self.assertEqual(trouble["code"], "service.state")
        self.assertIn("pushbroom_trouble{key=\"store\"", d.call("service.metrics")["text"])
        with self.assertRaises(RpcError) as caught:
            d.jobs()
        self.assertEqual(caught.exception.code, "service.state")
        status = run_to_end([BIN / "pushbroom", "status", "--socket", d.root / "s.sock"], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True)
        self.assertIn("service.state", status.stderr)
        self.assertIn(" ".join(trouble["message"].split()), " ".join(status.stdout.split()))
        d.drop("second.tif")
        mend()
        wait_for(lambda: self.troubles(d) == {})
        d.wait_job("second.tif", "successful")
        self.assertEqual(self.troubles(d), {})
        self.assertEqual(sorted(j["name"] for j in d.jobs()), ["first.tif", "second.tif"])
        self.assertEqual(d.log_text().count("trouble (store"), 2)  # raised and cleared
        self.assertNotIn("damaged", d.log_text())

    def test_a_full_state_disk_is_waited_out(self):
        d, disk = self.on_small_disk()
        filling = self.fill(disk)
        d.start()
        self.waits_and_goes_on(d, filling.unlink)
        d.stop()

    def test_a_state_disk_that_is_read_only_is_waited_out(self):
        d, disk = self.on_small_disk()
        remount = lambda how: subprocess.run(["mount", "-o", "remount," + how, disk], check=True)
        remount("ro")
        d.start(wait=False)
        self.assertEqual(d.exit_status(), 1)  # the directory cannot be written: this is reported at once
        self.assertIn("Read-only file system", d.log_text())
        remount("rw")
        d.start()
        self.assertEqual([j["name"] for j in d.jobs()], ["first.tif"])
        d.stop()

    def test_unopenable_store_is_waited_for_and_kept(self):
        d = self.daemon()
        d.drop("first.tif")
        d.wait_job("first.tif", "successful")
        d.stop()
        store = d.root / "state/jobs.db"
        store.rename(d.root / "state/away.db")
        store.mkdir()
        d.start()
        self.waits_and_goes_on(d, lambda: (store.rmdir(), (d.root / "state/away.db").rename(store)))

    def test_a_reload_and_a_stop_while_it_waits(self):
        d = self.daemon(start=False)
        (d.root / "state/jobs.db").mkdir(parents=True)
        d.start()
        self.assertIn("store", self.troubles(d))
        d.process.send_signal(signal.SIGHUP)
        wait_for(lambda: "is in use" in d.log_text())
        self.assertIn("store", self.troubles(d))
        self.assertEqual(d.stop()[0], 0)


class Leftovers(Start):
    def test_immovable_input_does_not_delay_other_jobs(self):
        disk = self.small_disk("400k")
        d = self.daemon(start=False, rescan="500ms")
        text = d.config.read_text()
        for name in ("inbox", "work", "quarantine"):
            text = text.replace("%s: %s/%s" % (name, d.root, name), "%s: %s/%s" % (name, disk, name))
        d.config.write_text(text)
        (disk / "inbox").mkdir()
        bad = disk / "inbox/bad.tif"
        bad.write_text("fail")
        d.start()
        job = d.wait_job("bad.tif", "failed")
        wait_for(lambda: (disk / "quarantine/bad.tif").exists())
        d.stop(signal.SIGKILL)
        claim = disk / "work" / job["id"]  # state of a death before the move
        claim.mkdir()
        (disk / "quarantine/bad.tif").rename(claim / "bad.tif")
        (disk / "quarantine/bad.tif.error.json").unlink()
        filling = self.fill(disk)
        d.start()
        trouble = self.troubles(d)["work"]
        self.assertIn(job["id"], trouble["message"])
        self.assertIn("No space left", trouble["message"])
        self.assertTrue((claim / "bad.tif").exists())
        good = d.root / "good.tif"
        good.write_text("ok")
        d.call("job.submit", input=str(good))  # it works meanwhile
        d.wait_job("good.tif", "successful")
        filling.unlink()
        wait_for(lambda: "work" not in self.troubles(d))
        self.assertTrue((disk / "quarantine/bad.tif").exists())
        self.assertEqual(json.loads((disk / "quarantine/bad.tif.error.json").read_text())["job"], job["id"])
        self.assertEqual(d.call("job.get", id=job["id"])["input"], str(disk / "quarantine/bad.tif"))
        d.stop()

    def test_retry_finds_an_input_of_unstored_place(self):
        d = self.daemon()
        d.drop("bad.tif", "fail")
        job = d.wait_job("bad.tif", "failed")
        wait_for(lambda: d.call("job.get", id=job["id"])["input"] == str(d.root / "quarantine/bad.tif"))
        d.stop(signal.SIGKILL)
        store = sqlite3.connect(d.root / "state/jobs.db")
        store.execute("UPDATE jobs SET input = ?", [str(d.root / "work" / job["id"] / "bad.tif")])
        store.commit()
        store.close()
        d.start()
        (d.root / "quarantine/bad.tif").write_text("ok")
        d.call("job.retry", id=job["id"])
        d.wait_job("bad.tif", "successful")

    def test_unfinished_file_without_a_job_waits_in_work(self):
        d = self.daemon(start=False)
        claim = d.root / "work/20261121-082850-aaaa"
        claim.mkdir(parents=True)
        with open(claim / "x.tif", "w") as file:
            file.write("o")
            file.flush()
            d.start()
            if d.call("service.info")["inbox_writers"] != "seen":
                self.skipTest("this filesystem has no leases")
            self.assertIn("open for writing", self.troubles(d)["work"]["message"])
            self.assertEqual(d.jobs(), [])
            file.write("k")
        d.wait_job("x.tif", "successful")
        self.assertEqual(self.troubles(d), {})


class Check(Start):
    def refused(self, d, code, words):
        """Both refuse, with one code, and the check makes nothing."""
        before = sorted(d.root.rglob("*"))
        check = self.run_daemon("--check", "-c", str(d.config))
        self.assertEqual(check.returncode, code, check.stderr)
        self.assertIn(words, check.stderr)
        self.assertEqual(sorted(d.root.rglob("*")), before)
        d.start(wait=False)
        self.assertEqual(d.exit_status(), code, d.log_text())

    def test_it_makes_nothing_and_says_what_a_start_would(self):
        d = self.daemon(start=False)
        good = d.config.read_text()
        before = sorted(d.root.rglob("*"))
        self.assertEqual(self.run_daemon("--check", "-c", str(d.config)).returncode, 0)
        self.assertEqual(sorted(d.root.rglob("*")), before)
        (d.root / "products").write_text("a file")
        self.refused(d, 1, "is not a directory")
        (d.root / "products").unlink()
        (d.root / "link").symlink_to(d.root / "inbox")
        d.config.write_text(good.replace("%s/products" % d.root, "%s/link/p" % d.root))
        self.refused(d, 2, "is inside inbox")
        d.config.write_text(good)
        (d.root / "s.sock").write_text("precious")
        self.refused(d, 1, "s.sock")

    def test_it_takes_relative_directories_as_a_start_does(self):
        d = self.daemon(start=False)
        os.rmdir(d.root / "inbox")
        d.change("%s/" % d.root, "")
        daemon = [BIN / "pushbroomd", "-c", d.config]
        check = run_to_end([*daemon, "--check"], cwd=d.root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(check.returncode, 0, check.stdout)
        with subprocess.Popen(daemon, cwd=d.root, stderr=subprocess.DEVNULL) as process:
            wait_for(lambda: process.poll() is not None or d.is_up())
            process.terminate()
        self.assertEqual(process.returncode, 0)
        self.assertTrue((d.root / "inbox").is_dir())

    def test_it_sees_two_filesystems(self):
        d = self.daemon(start=False)
        disk = self.small_disk("200k")
        d.change(str(d.root / "work"), "%s/a/work" % disk)
        self.refused(d, 2, "different filesystems")

    def test_it_may_be_asked_while_the_service_runs(self):
        d = self.daemon()
        check = self.run_daemon("--check", "-c", str(d.config))
        self.assertEqual(check.returncode, 0, check.stderr)
        self.assertTrue(d.is_up())


if __name__ == "__main__":
    main(workers=3)
