#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""A reload that is refused is visible: as a trouble, in the metrics, and by the check that the unit runs before the signal."""
import hashlib
import os
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from daemon_kit import BIN, DaemonCase  # noqa: E402
from patience import run_to_end, wait_for  # noqa: E402
from pbtest import main  # noqa: E402
from terminal import Terminal  # noqa: E402


class Reload(DaemonCase):
    def metric(self, d, name):
        found = re.search(r"(?m)^pushbroom_%s (\S+)$" % name, d.call("service.metrics")["text"])
        return float(found.group(1)) if found else None

    def digest(self, d):
        return hashlib.sha256(d.config.read_bytes()).hexdigest()

    def reload(self, d):
        d.process.send_signal(signal.SIGHUP)

    def test_refused_reload_is_a_trouble_until_a_success(self):
        d = self.daemon()
        good = d.config.read_text()
        d.config.write_text(good.replace("parallel_jobs: 1", "parallel_jobs: many"))
        self.reload(d)
        trouble = wait_for(lambda: d.trouble("config"))
        self.assertEqual(trouble["code"], "config.value")
        line = 1 + good[:good.index("parallel_jobs")].count("\n")
        self.assertIn("config.yaml:%d:18: " % line, trouble["message"])
        self.assertIn("stays in use", trouble["message"])
        d.config.write_text(good)
        self.reload(d)
        wait_for(lambda: d.trouble("config") is None)

    def test_refused_products_directory_is_a_trouble(self):
        d = self.daemon()
        good = d.config.read_text()
        (d.root / "file").write_text("")
        d.config.write_text(good.replace("/products\n", "/file/products\n"))
        self.reload(d)
        self.assertIn("products", wait_for(lambda: d.trouble("config"))["message"])

    def test_metrics_have_result_and_time_of_reload(self):
        d = self.daemon()
        started = self.metric(d, "config_last_reload_success_timestamp_seconds")
        self.assertEqual(self.metric(d, "config_last_reload_successful"), 1)
        self.assertLess(abs(started - time.time()), 3600)
        good = d.config.read_text()
        d.config.write_text("nonsense: 1\n")
        self.reload(d)
        wait_for(lambda: self.metric(d, "config_last_reload_successful") == 0)
        self.assertEqual(self.metric(d, "config_last_reload_success_timestamp_seconds"), started)
        d.config.write_text(good + "# again\n")
        self.reload(d)
        wait_for(lambda: self.metric(d, "config_last_reload_successful") == 1)
        self.assertGreater(self.metric(d, "config_last_reload_success_timestamp_seconds"), started)

    def test_verbose_status_has_the_config_in_use(self):
        d = self.daemon()
        run = lambda *words: run_to_end([BIN / "pushbroom", "status", "--socket", d.root / "s.sock", *words], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        shown = run("-v").stdout
        self.assertIn("config   %s, loaded %s, SHA-256 %s" % (d.config, d.call("service.info")["config_loaded"], self.digest(d)), shown)
        self.assertIn("inbox    %s/inbox\n" % d.root, shown)
        self.assertNotIn("SHA-256", run().stdout)
        self.assertEqual(run("-v", "--json").returncode, 2)

    def test_relative_paths_are_a_warning(self):
        d = self.daemon(start=False)
        for command in ("pushbroomd", "--check", "-c"), ("pushbroom", "check-config"):
            run = lambda: run_to_end([BIN / command[0], *command[1:], d.config], cwd=d.root, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            self.assertNotIn("relative paths", run().stderr)
            text = d.config.read_text()
            d.config.write_text(text.replace("%s/inbox" % d.root, "inbox").replace("%s/state" % d.root, "state"))
            done = run()
            d.config.write_text(text)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("relative paths in service (inbox, state) begin at the working directory", done.stderr)

    def test_terminal_needs_a_named_config(self):
        code, text = Terminal([BIN / "pushbroomd"]).end()
        self.assertEqual(code, 2)
        self.assertIn("systemctl start pushbroom", text)

    def test_info_has_digest_and_time_of_the_used_config(self):
        d = self.daemon()
        before = d.call("service.info")
        self.assertEqual(before["config_sha256"], self.digest(d))
        good = d.config.read_text()
        d.config.write_text("nonsense: 1\n")
        self.reload(d)
        wait_for(lambda: d.trouble("config"))
        refused = d.call("service.info")
        self.assertEqual((refused["config_sha256"], refused["config_loaded"]), (before["config_sha256"], before["config_loaded"]))
        d.config.write_text(good + "# again\n")
        self.reload(d)
        wait_for(lambda: d.call("service.info")["config_sha256"] == self.digest(d))
        self.assertGreater(d.call("service.info")["config_loaded"], before["config_loaded"])


if __name__ == "__main__":
    main(workers=3)
