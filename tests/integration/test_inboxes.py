#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Several inboxes (service.inboxes) of one service."""
import os
import signal
import subprocess
import sys
import time

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


class SubFolders(Inboxes):
    def recursive(self, **settings):
        return self.feed(["{path: \"{root}/one\", recurse: true}"], rescan="1h", **settings)

    def job_of(self, d, folder, name):
        found = [j for j in d.jobs() if j["name"] == name and j["folder"] == folder]
        return found[0] if found else None

    def wait_in(self, d, folder, name, status):
        return d.wait_for(lambda: (self.job_of(d, folder, name) or {}).get("status") == status and self.job_of(d, folder, name))

    def test_files_keep_their_folder_and_those_of_one_name_never_meet(self):
        d = self.recursive(start=False)
        for folder in ("a/2026", "b"):  # there before the start
            os.makedirs(d.root / "one" / folder)
            self.put(d, "one/%s/x.tif" % folder)
        self.put(d, "one/x.tif")
        d.start()
        for folder in ("a/2026", "b", None):
            self.wait_in(d, folder, "x.tif", "successful")
        wait_for(lambda: d.files("work/done") == ["a", "a/2026", "a/2026/x.tif", "b", "b/x.tif", "x.tif"])
        wait_for(lambda: [p for p in os.listdir(d.root / "work") if p[0] != "."] == ["done"])
        self.assertEqual(d.files("one"), ["a", "a/2026", "b"])  # senders' folders stay, empty or not
        shown = subprocess.run([str(BIN / "pushbroom"), "status", "--socket", str(d.root / "s.sock")], stdout=subprocess.PIPE, text=True).stdout
        self.assertIn(" a/2026/x.tif", shown)

    def test_folders_that_come_while_it_runs_are_watched(self):
        """The rescan is an hour away, so events alone tell."""
        d = self.recursive()
        for round in range(2):
            os.makedirs(d.root / "one/new/deep")
            self.put(d, "one/new/deep/x%d.tif" % round)
            self.wait_in(d, "new/deep", "x%d.tif" % round, "successful")
            self.put(d, "one/new/deep/y%d.tif" % round)
            self.wait_in(d, "new/deep", "y%d.tif" % round, "successful")
            os.rmdir(d.root / "one/new/deep")  # one of the same name that comes later is another
            os.rmdir(d.root / "one/new")

    def test_quarantine_retry_and_drop_know_the_folder(self):
        d = self.recursive()
        for folder in ("a", "b"):
            os.makedirs(d.root / "one" / folder)
            self.put(d, "one/%s/x.tif" % folder, "fail")
            self.wait_in(d, folder, "x.tif", "failed")
        files = ["a", "a/x.tif", "a/x.tif.error.json", "b", "b/x.tif", "b/x.tif.error.json"]
        wait_for(lambda: d.files("quarantine") == files)
        for folder in ("a", "b"):
            self.assertEqual(self.job_of(d, folder, "x.tif")["input"], "%s/quarantine/%s/x.tif" % (d.root, folder))
        (d.root / "quarantine/a/x.tif").write_text("ok")
        d.call("job.retry", id=self.job_of(d, "a", "x.tif")["id"])
        self.wait_in(d, "a", "x.tif", "successful")
        wait_for(lambda: "a/x.tif" in d.files("work/done"))
        d.call("job.drop", id=self.job_of(d, "b", "x.tif")["id"])
        self.assertEqual([f for f in d.files("quarantine") if "x.tif" in f], [])

    def test_retention_looks_into_folders_but_not_into_inputs(self):
        d = self.recursive()
        for folder, text in (("a/b", "ok"), ("c", "fail")):
            os.makedirs(d.root / "one" / folder)
            self.put(d, "one/%s/x.tif" % folder, text)
            self.wait_in(d, folder, "x.tif", "failed" if text == "fail" else "successful")
        wait_for(lambda: "c/x.tif" in d.files("quarantine") and "a/b/x.tif" in d.files("work/done"))
        record = (d.root / "quarantine/c/x.tif.error.json").read_text()
        for folder in ("scene", "mine"):  # the first is a scene in quarantine, as its record says
            os.makedirs(d.root / "quarantine" / folder)
            (d.root / "quarantine" / folder / "x.tif").write_text("theirs")
            (d.root / "quarantine" / folder / "x.tif.error.json").write_text(record.replace("/c/x", "/%s/x" % folder))
            os.utime(d.root / "quarantine" / folder / "x.tif.error.json", (1e9, 1e9))
        (d.root / "quarantine/scene.error.json").write_text("{}")
        os.symlink(d.root / "quarantine/mine", d.root / "quarantine/link")
        outside = d.root / "outside"
        outside.mkdir()
        (outside / "x.tif").write_text("theirs")
        os.rename(d.root / "work/done/a", d.root / "aside")
        (d.root / "work/done/a").symlink_to(d.root / "aside")  # no link is followed
        text = d.config.read_text().replace("pipelines:", "  retention: {done: 1ms, quarantine: 1ms}\npipelines:", 1)
        d.config.write_text(text)
        d.process.send_signal(signal.SIGHUP)
        wait_for(lambda: "c/x.tif" not in d.files("quarantine"))
        wait_for(lambda: "c/x.tif.error.json" not in d.files("quarantine"))
        self.assertTrue((d.root / "aside/b/x.tif").exists())
        self.assertTrue((d.root / "quarantine/scene/x.tif").exists())
        self.assertTrue((d.root / "quarantine/mine/x.tif").exists())  # changed since its record

    def test_links_and_hidden_folders_stay(self):
        d = self.recursive(start=False)
        os.makedirs(d.root / "one/.hidden")
        os.makedirs(d.root / "one/up.part")
        os.makedirs(d.root / "elsewhere")
        for path in ("one/.hidden/x.tif", "one/up.part/x.tif", "elsewhere/x.tif"):
            self.put(d, path)
        (d.root / "one/link").symlink_to(d.root / "elsewhere")
        d.start()
        self.put(d, "one/last.tif")
        d.wait_job("last.tif", "successful")
        self.assertEqual(len(d.jobs()), 1)
        self.assertIn("link is a symbolic link", d.log_text())

    def test_what_is_ignored_may_be_named_with_its_folder(self):
        d = self.recursive(start=False, settle="50ms")
        d.config.write_text(d.config.read_text().replace("pipelines:", "  ignore: [\"browse/*\", \"*.txt\"]\npipelines:", 1))
        for path in ("one/browse/a.tif", "one/x/browse.tif", "one/x/n.txt"):
            os.makedirs(os.path.dirname(d.root / path), exist_ok=True)
            self.put(d, path)
        d.start()
        self.wait_in(d, "x", "browse.tif", "successful")
        self.assertEqual(d.files("one"), ["browse", "browse/a.tif", "x", "x/n.txt"])
        wait_for(lambda: d.call("service.info")["inbox_ignored"] == 2)

    def test_what_a_dead_service_left_in_work_has_its_folder_and_priority(self):
        d = self.feed(["{path: \"{root}/one\", recurse: true, priority: 7}"], start=False)
        claim = d.root / "work/20261121-082850-abcd"
        empty = d.root / "work/20261121-082850-abce"
        for folder in (claim, empty):  # between the link and the move, and behind it
            os.makedirs(folder)
            (folder / ".from").symlink_to(d.root / "one/deep/er")
        (claim / "x.tif").write_text("ok")
        d.start()
        job = self.wait_in(d, "deep/er", "x.tif", "successful")
        self.assertEqual((job["id"], job["priority"]), (claim.name, 7))
        wait_for(lambda: not claim.exists() and not empty.exists())
        self.assertEqual([f for f in d.files("work/done") if "x.tif" in f], ["deep/er/x.tif"])

    def test_kills_lose_no_file_and_no_folder(self):
        d = self.recursive()
        names = []
        for i in range(6):
            for k in range(4):
                folder, name = "f%d" % (k % 2), "x%d-%d.tif" % (i, k)
                os.makedirs(d.root / "one" / folder, exist_ok=True)
                self.put(d, "one/%s/%s" % (folder, name))
                names.append((folder, name))
            time.sleep(0.02 * i)
            d.stop(signal.SIGKILL)
            d.start()
        for folder, name in names:
            self.wait_in(d, folder, name, "successful")
        self.assertEqual(len(d.jobs(limit=1000)), len(names))
        wait_for(lambda: [p for p in os.listdir(d.root / "work") if p[0] != "."] == ["done"])
        self.assertEqual(sorted(f for f in d.files("work/done") if "/" in f), sorted("/".join(n) for n in names))


class Priority(Inboxes):
    def test_jobs_of_an_inbox_of_a_higher_priority_go_first(self):
        d = self.feed(["{path: \"{root}/one\"}", "{path: \"{root}/two\", priority: 10}"])
        self.put(d, "one/first.tif", "until go")
        d.wait_job("first.tif", "running")
        for path in ("one/a.tif", "two/b.tif", "one/c.tif", "two/d.tif"):
            self.put(d, path)
            d.wait_job(os.path.basename(path), "accepted")
        self.set_inboxes(d, ["{path: \"{root}/one\", priority: 20}", "{path: \"{root}/two\", priority: 10}"])
        d.process.send_signal(signal.SIGHUP)  # of jobs that come from now on
        wait_for(lambda: "reload: " in d.log_text())
        self.put(d, "one/e.tif")
        d.wait_job("e.tif", "accepted")
        (d.root / "go").touch()
        d.wait_for(lambda: len(d.jobs(status="successful")) == 6)
        done = sorted(d.jobs(), key=lambda j: j["finished"])
        self.assertEqual([j["name"][0] for j in done], ["f", "e", "b", "d", "a", "c"])


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
