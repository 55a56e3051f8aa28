#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: threads
"""The real pushbroomd with scripted workers: its start or its reason against it, and its messages to systemd."""
import os
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from daemon_kit import BIN, wait_for  # noqa: E402
from patience import PATIENCE_S, run_to_end  # noqa: E402
from pbtest import main  # noqa: E402
from service_case import Service  # noqa: E402


class Start(Service):
    def test_words_and_exit_codes_when_it_cannot_start(self):
        d = self.daemon(start=False)
        d.config.write_text("service: [")
        d.start(wait=False)
        self.assertEqual(d.exit_status(), 2)
        self.assertRegex(d.log_text(), r"config\.yaml:\d+:\d+: ")
        d.write_config()
        (d.root / "products").write_text("a file")
        d.start(wait=False)
        self.assertEqual(d.exit_status(), 1)
        self.assertIn("products", d.log_text())
        self.assertIn("is not a directory", d.log_text())

    def test_check_and_usage(self):
        d = self.daemon(start=False)
        run = lambda *a: run_to_end([BIN / "pushbroomd", *a], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(run("--check", "-c", str(d.config)).returncode, 0)
        self.assertEqual(run("--check", "-c", "/no/such/file").returncode, 2)
        self.assertEqual(run("--nonsense").returncode, 2)
        self.assertEqual(run("stray").returncode, 2)
        for words in (("--device", "cpu"), ("--device", "cpu", "--config", str(d.config)), ("--socket", "/tmp/x")):
            done = run(*words)
            self.assertEqual(done.returncode, 2, words)
            self.assertIn("--device and --socket need each other", done.stderr)
        self.assertIn("--config", run("--help").stdout)
        self.assertRegex(run("--version").stdout, r"^pushbroomd \d")

    def test_inbox_around_or_in_another_folder_is_refused(self):
        d = self.daemon(start=False)
        good = d.config.read_text()
        for key, path in (("products", "inbox/p"), ("quarantine", "inbox"), ("inbox", "state/in")):
            old = "%s: %s/%s" % (key, d.root, key)
            self.assertIn(old, good)
            d.config.write_text(good.replace(old, "%s: %s/%s" % (key, d.root, path)))
            d.start(wait=False)
            self.assertEqual(d.exit_status(), 2)
            check = run_to_end([BIN / "pushbroom", "check-config", d.config], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.assertEqual(check.returncode, 2)
        self.assertIn("service.products is inside service.inbox", d.log_text())
        self.assertIn("service.inbox is inside service.state", d.log_text())
        (d.root / "link").symlink_to(d.root / "inbox")  # seen by the file system only
        (d.root / "inbox/p").mkdir(exist_ok=True)
        d.config.write_text(good.replace("%s/products" % d.root, "%s/link/p" % d.root))
        d.start(wait=False)
        self.assertEqual(d.exit_status(), 2)
        self.assertIn("products (%s/inbox/p) is inside inbox" % d.root, d.log_text())
        d.config.write_text(good)
        d.start()
        d.config.write_text(good.replace("%s/products" % d.root, "%s/link/p" % d.root))
        d.process.send_signal(signal.SIGHUP)
        wait_for(lambda: "stays in use" in d.log_text())
        d.drop("x.tif")
        d.wait_job("x.tif", "successful")
        self.assertEqual(d.files("inbox/p"), [])

    def test_inbox_and_work_on_two_filesystems_are_refused(self):
        d = self.daemon(start=False)
        if not os.path.isdir("/dev/shm") or os.stat("/dev/shm").st_dev == os.stat(d.root).st_dev:
            self.skipTest("/dev/shm is not there, or is the filesystem of %s too" % d.root)
        inbox = "/dev/shm/pb-test-%d" % os.getpid()
        d.change(str(d.root / "inbox"), inbox)
        try:
            d.start(wait=False)
            self.assertEqual(d.exit_status(), 2)
        finally:
            subprocess.run(["rm", "-rf", inbox])
        self.assertIn("different filesystems", d.log_text())

    def test_worker_that_cannot_start_leaves_job_waiting(self):
        d = self.daemon(start=False)
        d.fake = False
        with open(d.log, "ab") as log:
            d.process = subprocess.Popen([str(BIN / "pushbroomd"), "-c", str(d.config), "--worker-command", "/no/such"], stderr=log)
        wait_for(d.is_up)
        d.drop("x.tif")
        d.wait_job("x.tif", "accepted")
        wait_for(lambda: "cannot start a worker" in d.log_text())
        self.assertEqual(d.jobs()[0]["status"], "accepted")
        self.assertEqual(d.jobs()[0]["attempts"], 0)
        self.assertEqual(d.stop()[0], 0)


class Systemd(Service):
    def test_systemd_gets_ready_alive_reloading_stopping(self):
        d = self.daemon(start=False)
        path = str(d.root / "notify")
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(listener.close)
        listener.bind(path)
        listener.settimeout(PATIENCE_S)
        said = []

        def until(word):
            while not any(word in text for text in said):
                said.append(listener.recv(4096).decode())
            seen = "\n".join(said)
            said.clear()
            return seen

        # Messages are read from the begin on: when the socket has ten, the service waits until one is read.
        d.start(wait=False, env={"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "400000"})
        self.assertIn("STATUS=0 running, 0 waiting, 0 failed", until("READY=1"))

        def five_beats():
            start = time.monotonic()
            for _ in range(5):
                until("WATCHDOG=1")
            return time.monotonic() - start
        # Some round is in time; which one is up to whatever else the machine does.
        self.assertTrue(any(five_beats() < 5 * 0.4 for _ in range(30)))
        d.process.send_signal(signal.SIGHUP)
        until("RELOADING=1")
        until("READY=1")
        d.process.send_signal(signal.SIGTERM)
        until("STOPPING=1")
        self.assertEqual(d.exit_status(), 0)

    def test_a_journal_gets_levels_as_prefixes(self):
        d = self.daemon(start=False)
        d.log.touch()
        st = os.stat(d.log)
        d.start(env={"JOURNAL_STREAM": "%d:%d" % (st.st_dev, st.st_ino)})
        self.assertRegex(d.log_text(), r"^<5>pushbroomd ")


if __name__ == "__main__":
    main(workers=3)
