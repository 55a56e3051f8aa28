#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Several inboxes (service.inboxes) of one service."""
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from daemon_kit import BIN, DaemonCase, main, wait_for  # noqa: E402


class Inboxes(DaemonCase):
    def feed(self, inboxes, start=True, **settings):
        """A daemon with these entries of service.inboxes, {root} in them."""
        d = self.daemon(start=False, **settings)
        self.set_inboxes(d, inboxes)
        return d.start() if start else d

    def set_inboxes(self, d, inboxes):
        d.write_config()
        lines = "".join("\n    - " + line.replace("{root}", str(d.root)) for line in inboxes)
        text = d.config.read_text().replace("  inbox: %s/inbox\n" % d.root, "  inboxes:%s\n" % lines)
        d.config.write_text(text)

    def put(self, d, path, text="ok"):
        """Below the root, the proper way: written elsewhere, renamed in."""
        temporary = d.root / (".new-" + os.path.basename(path))
        temporary.write_text(text)
        os.utime(temporary, (1e9, 1e9))
        os.rename(temporary, d.root / path)

    def check(self, d):
        return subprocess.run([str(BIN / "pushbroomd"), "--check", "--config", str(d.config)], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)


class Several(Inboxes):
    def test_files_of_each_inbox_become_jobs(self):
        d = self.feed(["{path: \"{root}/one\"}", "{path: \"{root}/two\"}"])
        self.put(d, "one/a.tif")
        self.put(d, "two/b.tif")
        d.wait_job("a.tif", "successful")
        d.wait_job("b.tif", "successful")
        self.assertEqual(d.files("one") + d.files("two"), [])
        info = d.call("service.info")
        self.assertEqual(info["inboxes"], [str(d.root / "one"), str(d.root / "two")])
        self.assertEqual(info["inbox"], info["inboxes"][0])

    def test_one_that_cannot_be_read_keeps_no_other_waiting(self):
        d = self.feed(["{path: \"{root}/one\"}", "{path: \"{root}/two\"}"])
        (d.root / "one/.pushbroomd.lock").unlink(missing_ok=True)
        (d.root / "one").rmdir()
        wait_for(lambda: d.trouble("inbox"))
        self.assertIn("%s/one" % d.root, d.trouble("inbox")["message"])
        for i in range(3):  # a good inbox does not clear the trouble of a bad one
            self.put(d, "two/b%d.tif" % i)
            d.wait_job("b%d.tif" % i, "successful")
        self.assertTrue(d.trouble("inbox"))
        (d.root / "one").mkdir()
        wait_for(lambda: not d.trouble("inbox"))
        self.put(d, "one/a.tif")
        d.wait_job("a.tif", "successful")

    def test_waiting_and_ignored_are_those_of_all(self):
        d = self.feed(["{path: \"{root}/one\"}", "{path: \"{root}/two\"}"], start=False, settle="1h")
        d.config.write_text(d.config.read_text().replace("pipelines:", "  ignore: [\"*.txt\"]\npipelines:", 1))
        d.start()
        for inbox in ("one", "two"):
            for name in ("a.tif", "b.txt"):
                (d.root / inbox / name).write_text("ok")
        wait_for(lambda: d.call("service.info")["inbox_waiting"] == 2)
        self.assertEqual(d.call("service.info")["inbox_ignored"], 2)

    def test_other_inboxes_need_a_restart_and_the_old_ones_stay(self):
        d = self.feed(["{path: \"{root}/one\"}"])
        self.set_inboxes(d, ["{path: \"{root}/two\"}"])
        d.process.send_signal(signal.SIGHUP)
        wait_for(lambda: "%s/two needs a restart" % d.root in d.log_text())
        self.assertIn("%s/one is watched until" % d.root, d.log_text())
        self.put(d, "one/a.tif")
        d.wait_job("a.tif", "successful")


class Refused(Inboxes):
    def refused(self, d, *words):
        said = self.check(d)
        self.assertEqual(said.returncode, 2, said.stdout)
        for word in words:
            self.assertIn(word, said.stdout)

    def test_inboxes_in_each_other_and_in_other_directories(self):
        d = self.feed(["{path: \"{root}/one\"}", "{path: \"{root}/one/deep\"}"], start=False)
        self.refused(d, "config.yaml:4:14", "inboxes (%s/one/deep) lies inside" % d.root)
        self.set_inboxes(d, ["{path: \"{root}/one\"}", "{path: \"{root}/one/\"}"])
        self.refused(d, "config.yaml:4:14", "is the same as service.inboxes (%s/one)" % d.root)
        self.set_inboxes(d, ["{path: \"{root}/one\"}", "{path: \"{root}/products/in\"}"])
        self.refused(d, "inboxes (%s/products/in) lies inside service.products" % d.root)

    def test_links_to_each_other(self):
        d = self.feed(["{path: \"{root}/one\"}", "{path: \"{root}/link\"}"], start=False)
        (d.root / "one").mkdir()
        (d.root / "link").symlink_to(d.root / "one")
        self.refused(d, "are the same directory")

    def test_an_inbox_on_another_filesystem(self):
        d = self.feed(["{path: \"{root}/one\"}", "{path: /dev/shm/pb-inboxes-%d}" % os.getpid()], start=False)
        if not os.path.isdir("/dev/shm") or os.stat("/dev/shm").st_dev == os.stat(d.root).st_dev:
            self.skipTest("/dev/shm is not there, or is the filesystem of %s too" % d.root)
        self.refused(d, "different filesystems")
        self.assertFalse(os.path.exists("/dev/shm/pb-inboxes-%d" % os.getpid()))

    def test_both_keys_and_what_is_no_list(self):
        d = self.daemon(start=False)
        good = d.config.read_text()
        for line, words in (("inboxes: [{path: /srv/a}]", "service.inbox is given as well"),
                            ("inboxes: []", "not an empty one"),
                            ("inboxes: {path: /srv/a}", "must be a list such as"),
                            ("inboxes: [/srv/a]", "must be a map such as {path: /srv/feed}"),
                            ("inboxes: [{dir: /srv/a}]", "unknown key 'dir' in inboxes"),
                            ("inboxes: [{}]", "needs 'path'")):
            d.config.write_text(good.replace("  settle:", "  %s\n  settle:" % line, 1))
            self.refused(d, words)


if __name__ == "__main__":
    main()
