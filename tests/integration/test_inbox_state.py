#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Entries of an inbox that wait or are not taken: status, service.info, metrics, troubles and the log show each with its reason."""
import os
import re
import shutil
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from daemon_kit import BIN, DaemonCase  # noqa: E402
from patience import run_to_end, wait_for  # noqa: E402
from pbtest import main  # noqa: E402

SERVICE, MEMBER = 65534, 1001

PIPELINES = """
pipelines:
  s2:
    input:
      scene: "S2*"
      files: {R: B04.tif, N: B08.tif}
    products:
      - statistics: {}
  plain:
    input: {match: ["*.tif"]}
    products:
      - statistics: {}
"""


class State(DaemonCase):
    def service(self, service="", user=None, **settings):
        d = self.daemon(start=False, **settings)
        d.set_pipelines(service + PIPELINES)
        if user is not None:
            os.chmod(d.root, 0o755)
            os.chown(d.root, user, user)
            os.chown(d.root / "inbox", user, user)
            os.chmod(d.root / "inbox", 0o3775)
        return d.start(user=user)

    def info(self, d):
        return d.call("service.info")

    def metric(self, d, name):
        return int(re.search(r"(?m)^pushbroom_%s (\S+)$" % name, d.call("service.metrics")["text"]).group(1))

    def status(self, d):
        done = run_to_end([BIN / "pushbroom", "status", "--socket", d.root / "s.sock"], stdout=subprocess.PIPE, text=True)
        return " ".join(done.stdout.split())

    def deliver(self, d, name, files=("B04.tif", "B08.tif"), mode=0o755, owner=None):
        """A folder of a delivery, renamed in. Its files hold words for the scripted worker."""
        folder = d.root / ("." + name)
        folder.mkdir()
        for file in files:
            (folder / file).write_text("ok")
            os.utime(folder / file, (1e9, 1e9))
        if owner is not None:
            for path in (folder, *folder.iterdir()):
                os.chown(path, owner, SERVICE)
        os.chmod(folder, mode)
        os.rename(folder, d.root / "inbox" / name)
        return d.root / "inbox" / name


class Gathering(State):
    def test_incomplete_folder_is_shown_with_missing_files(self):
        d = self.service()
        folder = self.deliver(d, "S2A_x", files=["B04.tif"])
        one, = wait_for(lambda: self.info(d)["gathering"])
        self.assertEqual((one["scene"], one["pipeline"], one["files"]), ("S2A_x", "s2", 1))
        self.assertIn("1 of 2 files of the scene is missing: band N (B08.tif)", one["missing"])
        self.assertRegex(one["expires"], r"^\d{4}-\d\d-\d\dT")
        self.assertEqual(self.metric(d, "inbox_gathering"), 1)
        self.assertEqual(self.info(d)["troubles"], [])
        shown = self.status(d)
        self.assertIn("gathers S2A_x: 1 of 2 files of the scene is missing: band N (B08.tif)", shown)
        self.assertIn("waits until " + one["expires"], shown)
        self.assertNotIn("deliver a scene", shown)
        wait_for(lambda: len(re.findall(r"inbox: S2A_x waits until \S+: 1 of 2 files of the scene is missing", d.log_text())) == 1)
        (folder / "B08.tif").write_text("ok")
        d.wait_job("S2A_x", "successful")
        wait_for(lambda: self.metric(d, "inbox_gathering") == 0 and self.info(d)["gathering"] == [])
        self.assertEqual(d.log_text().count("inbox: S2A_x waits"), 1)

    def test_input_without_its_marker_is_shown(self):
        d = self.daemon(start=False)
        text = d.config.read_text().replace("  inbox: %s/inbox\n" % d.root,
                                            '  inboxes: [{path: %s/inbox, complete: {marker: "{name}.done"}}]\n' % d.root)
        d.config.write_text(text)
        d.start()
        d.drop("a.tif", old=True)
        one, = wait_for(lambda: self.info(d)["gathering"])
        self.assertEqual((one["scene"], one["expires"]), ("a.tif", None))
        self.assertIn("a.tif.done is missing", one["missing"])
        d.drop("a.tif.done")
        d.wait_job("a.tif", "successful")
        wait_for(lambda: self.info(d)["gathering"] == [])


class Settling(State):
    def test_settling_entry_is_shown_with_its_time(self):
        d = self.service(settle="1h")
        (d.root / "inbox/new.tif").write_text("ok")
        wait_for(lambda: self.info(d)["inbox_settling"] == 1)
        self.assertRegex(self.info(d)["inbox_settled"], r"^\d{4}-\d\d-\d\dT")
        self.assertRegex(self.status(d), r"settles 1 entry \(\d+ (min|s) left\)")
        self.assertNotIn("deliver a scene", self.status(d))
        d.write_config(settle="50ms")
        d.process.send_signal(signal.SIGHUP)
        d.wait_job("new.tif", "successful")
        wait_for(lambda: (self.info(d)["inbox_settling"], self.info(d)["inbox_settled"]) == (0, None))


class Foreign(State):
    def test_foreign_folder_is_shown_and_stays(self):
        d = self.service()
        folder = self.deliver(d, "LC08_x")
        wait_for(lambda: self.metric(d, "inbox_foreign") == 1)
        one, = self.info(d)["foreign"]
        self.assertEqual(one["name"], "LC08_x")
        self.assertIn("no pipeline's input.scene fits", one["message"])
        self.assertIn("foreign LC08_x: ", self.status(d))
        shutil.rmtree(folder)
        wait_for(lambda: self.metric(d, "inbox_foreign") == 0 and self.info(d)["foreign"] == [])

    def test_unmatched_folders_can_be_quarantined(self):
        d = self.service("  unmatched: {folders: quarantine}\n")
        self.deliver(d, "LC08_x")
        job = d.wait_job("LC08_x", "failed")
        self.assertEqual(job["error"]["code"], "input.no_pipeline")
        wait_for(lambda: "LC08_x" in d.files("quarantine"))
        self.assertEqual(d.files("inbox"), [])

    def test_unmatched_files_stay_if_configured(self):
        d = self.service("  unmatched: {files: leave}\n")
        d.drop("notes.txt", old=True)
        d.drop("a.tif", old=True)
        d.wait_job("a.tif", "successful")
        wait_for(lambda: self.metric(d, "inbox_foreign") == 1)
        self.assertIn("no pipeline's input.match fits", self.info(d)["foreign"][0]["message"])
        self.assertEqual(d.files("inbox"), ["notes.txt"])
        self.assertEqual(self.metric(d, "inbox_waiting"), 0)
        d.change("files: leave", "files: quarantine")
        d.process.send_signal(signal.SIGHUP)
        self.assertEqual(d.wait_job("notes.txt", "failed")["error"]["code"], "input.no_pipeline")
        wait_for(lambda: self.metric(d, "inbox_foreign") == 0)

    def test_reload_logs_no_entry_again(self):
        d = self.service("  unmatched: {files: leave}\n")
        d.drop("notes.txt", old=True)
        wait_for(lambda: self.metric(d, "inbox_foreign") == 1)
        d.change('"S2*"', '"S3*"')
        d.process.send_signal(signal.SIGHUP)
        self.deliver(d, "S3A_x")
        d.wait_job("S3A_x", "successful")
        wait_for(lambda: self.metric(d, "inbox_foreign") == 1)
        self.assertEqual(d.log_text().count("notes.txt stays"), 1)


class Refused(State):
    def refused(self, d, name):
        return wait_for(lambda: [one for one in self.info(d)["refused"] if one["name"] == name])[0]

    @unittest.skipUnless(os.geteuid() == 0, "only root can give files to other users")
    def test_denied_folder_is_shown_with_the_remedy(self):
        d = self.service(user=SERVICE)
        folder = self.deliver(d, "S2A_x", owner=MEMBER)
        one = self.refused(d, "S2A_x")
        self.assertEqual(one["code"], "input.denied")
        self.assertIn("the service (user id %d) has no right to write in the folder" % SERVICE, one["message"])
        self.assertIn("pushbroom put", one["hint"])
        trouble = d.wait_trouble("refused")
        self.assertEqual(trouble["code"], "input.denied")
        self.assertIn("S2A_x", trouble["message"])
        self.assertEqual(self.metric(d, "inbox_refused"), 1)
        shown = self.status(d)
        self.assertIn("refused S2A_x: ", shown)
        self.assertIn("chmod -R g+rwX", shown)
        self.assertEqual(shown.count("S2A_x"), 1, "one line, not a trouble as well")
        os.chmod(folder, 0o775)
        d.wait_job("S2A_x", "successful")
        wait_for(lambda: d.trouble("refused") is None and self.info(d)["refused"] == [] and self.metric(d, "inbox_refused") == 0)

    @unittest.skipUnless(os.geteuid() == 0, "only root can give files to other users")
    def test_folder_that_may_not_be_read_holds_up_no_other(self):
        d = self.service(user=SERVICE)
        for name in ("S2A_closed", "S2A_below"):
            folder = self.deliver(d, name, mode=0o770, owner=MEMBER)
            (folder / "GRANULE").mkdir()
            os.chown(folder / "GRANULE", MEMBER, MEMBER)
            os.chmod(folder / "GRANULE", 0o700)
        os.chmod(d.root / "inbox/S2A_closed", 0o700)
        d.drop("a.tif", old=True)
        d.wait_job("a.tif", "successful")
        self.assertEqual({self.refused(d, name)["code"] for name in ("S2A_closed", "S2A_below")}, {"input.denied"})
        self.assertIn("GRANULE", self.refused(d, "S2A_below")["message"])
        self.assertIsNone(d.trouble("intake"))
        self.assertIn("(and 1 more)", wait_for(lambda: d.trouble("refused"))["message"])

    def test_hard_link_is_shown_until_it_is_the_only_name(self):
        d = self.service()
        (d.root / "other").write_text("ok")
        os.link(d.root / "other", d.root / "inbox/a.tif")
        self.assertEqual(self.refused(d, "a.tif")["code"], "input.link")
        (d.root / "other").unlink()
        d.wait_job("a.tif", "successful")
        wait_for(lambda: self.info(d)["refused"] == [] and d.trouble("refused") is None)

    def test_symbolic_link_is_shown(self):
        d = self.service()
        os.symlink("/etc/passwd", d.root / "inbox/a.tif")
        self.assertIn("symbolic link", self.refused(d, "a.tif")["message"])
        (d.root / "inbox/a.tif").unlink()
        wait_for(lambda: self.info(d)["refused"] == [])


if __name__ == "__main__":
    main(workers=3)
