#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: sanitized
"""Several inboxes (service.inboxes) of one service."""
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "proof"))
import control  # noqa: E402
from daemon_kit import BIN, DaemonCase, wait_for  # noqa: E402
from pbtest import SANITIZED, main  # noqa: E402


class Inboxes(DaemonCase):
    def feed(self, inboxes, start=True, **settings):
        """A daemon with these entries of service.inboxes, {root} in them."""
        d = self.daemon(start=False, **settings)
        self.set_inboxes(d, inboxes)
        return d.start() if start else d

    def set_inboxes(self, d, inboxes):
        d.write_config()
        lines = "".join("\n    - " + line.replace("{root}", str(d.root)) for line in inboxes)
        d.change("  inbox: %s/inbox\n" % d.root, "  inboxes:%s\n" % lines)

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

    def test_unreadable_inbox_does_not_delay_the_others(self):
        d = self.feed(["{path: \"{root}/one\"}", "{path: \"{root}/two\"}"])
        (d.root / "one/.pushbroomd.lock").unlink(missing_ok=True)
        (d.root / "one").rmdir()
        d.wait_trouble("inbox", "%s/one" % d.root)
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
        d.change("pipelines:", "  ignore: [\"*.txt\"]\npipelines:", 1)
        d.start()
        for inbox in ("one", "two"):
            for name in ("a.tif", "b.txt"):
                (d.root / inbox / name).write_text("ok")
        wait_for(lambda: [d.call("service.info")[key] for key in ("inbox_waiting", "inbox_ignored")] == [2, 2])

    def test_new_inboxes_need_a_restart_and_old_ones_stay(self):
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

    def test_files_keep_folders_and_equal_names_stay_apart(self):
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
        """The rescan is an hour away: only events report it."""
        d = self.recursive()
        for round in range(2):
            os.makedirs(d.root / "one/new/deep")
            self.put(d, "one/new/deep/x%d.tif" % round)
            self.wait_in(d, "new/deep", "x%d.tif" % round, "successful")
            self.put(d, "one/new/deep/y%d.tif" % round)
            self.wait_in(d, "new/deep", "y%d.tif" % round, "successful")
            os.rmdir(d.root / "one/new/deep")  # a later one of the same name is another
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

    def test_retention_enters_folders_but_no_inputs(self):
        d = self.recursive()
        for folder, text in (("a/b", "ok"), ("c", "fail")):
            os.makedirs(d.root / "one" / folder)
            self.put(d, "one/%s/x.tif" % folder, text)
            self.wait_in(d, folder, "x.tif", "failed" if text == "fail" else "successful")
        wait_for(lambda: "c/x.tif" in d.files("quarantine") and "a/b/x.tif" in d.files("work/done"))
        record = (d.root / "quarantine/c/x.tif.error.json").read_text()
        for folder in ("scene", "mine"):  # the first is a scene in quarantine, according to its record
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
        d.change("pipelines:", "  retention: {done: 1ms, quarantine: 1ms}\npipelines:", 1)
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
        self.assertIn("link stays: it is a symbolic link", d.log_text())

    def test_what_is_ignored_may_be_named_with_its_folder(self):
        d = self.recursive(start=False, settle="50ms")
        d.change("pipelines:", "  ignore: [\"browse/*\", \"*.txt\"]\npipelines:", 1)
        for path in ("one/browse/a.tif", "one/x/browse.tif", "one/x/n.txt"):
            os.makedirs(os.path.dirname(d.root / path), exist_ok=True)
            self.put(d, path)
        d.start()
        self.wait_in(d, "x", "browse.tif", "successful")
        self.assertEqual(d.files("one"), ["browse", "browse/a.tif", "x", "x/n.txt"])
        wait_for(lambda: d.call("service.info")["inbox_ignored"] == 2)

    def test_claim_of_dead_service_has_folder_and_priority(self):
        d = self.feed(["{path: \"{root}/one\", recurse: true, priority: 7}"], start=False)
        claim = d.root / "work/20261121-082850-abcd"
        empty = d.root / "work/20261121-082850-abce"
        for folder in (claim, empty):  # between the link and the move, and after it
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


class Markers(Inboxes):
    MARKER = "{path: \"{root}/one\", recurse: true, complete: {marker: \"{name}.done\"}}"

    def hung(self, call, part, **settings):
        """A service that hangs in that call for a path with that part."""
        if SANITIZED:
            self.skipTest("the shim of failing calls does not go together with a sanitizer")
        d = self.feed([self.MARKER], start=False, settle="1h", **settings)
        faults = control.Faults(d.root / "faults", BIN / "pbfault.so")
        rule = faults.rule(call, control.HANG, role="daemon", path=part)
        d.start(env=faults.environment())
        d.release = lambda: faults.set_mode(rule, control.OFF)
        return d, lambda: wait_for(lambda: faults.counts(rule)[1])

    def test_file_is_taken_with_its_marker_and_not_before(self):
        d = self.feed([self.MARKER], settle="1h", start=False)
        d.change("pipelines:", "  ignore: [\"*.done\"]\npipelines:", 1)
        d.start()
        os.makedirs(d.root / "one/a")
        for path in ("one/a/x.tif", "one/a/y.tif", "one/y.tif"):
            self.put(d, path)
        (d.root / "one/a/x.tif.done").touch()
        job = d.wait_job("x.tif", "successful")
        wait_for(lambda: "a/x.tif" in d.files("work/done"))
        self.assertEqual([f for f in d.files("work/done") if "." in f], ["a/x.tif", "a/x.tif.done"])
        self.assertEqual(d.jobs()[0]["companion"], str(d.root / "work/done/a/x.tif.done"))
        self.assertEqual(len(d.jobs()), 1)
        self.assertEqual(d.files("one"), ["a", "a/y.tif", "y.tif"])
        info = d.call("service.info")
        self.assertEqual((info["inbox_waiting"], info["inbox_alone"], info["inbox_ignored"]), (2, 0, 0))
        self.assertEqual(job["folder"], "a")
        wait_for(lambda: [p for p in os.listdir(d.root / "work") if p[0] != "."] == ["done"])

    def test_file_in_writing_is_not_taken_for_its_marker(self):
        d = self.feed([self.MARKER], settle="100ms", rescan="200ms")
        if d.call("service.info")["inbox_writers"] != "seen":
            self.skipTest("this filesystem has no leases")
        with open(d.root / "one/x.tif", "w") as file:
            file.write("o")
            file.flush()
            (d.root / "one/x.tif.done").touch()
            self.put(d, "one/y.tif")
            (d.root / "one/y.tif.done").touch()
            d.wait_job("y.tif", "successful")
            self.assertEqual(len(d.jobs()), 1)
            file.write("k")
        d.wait_job("x.tif", "successful")

    def test_marker_is_a_trouble_until_its_file_arrives(self):
        d = self.feed([self.MARKER], settle="300ms")
        (d.root / "one/x.tif.done").touch()
        trouble = d.wait_trouble("delivery")
        self.assertEqual(trouble["code"], "input.alone")
        self.assertIn("x.tif.done is in %s/one, but the file" % d.root, trouble["message"])
        self.assertEqual(d.call("service.info")["inbox_alone"], 1)
        self.assertIn("pushbroom_inbox_alone 1", d.call("service.metrics")["text"])
        self.assertEqual(d.jobs(), [])
        self.put(d, "one/x.tif")
        d.wait_job("x.tif", "successful")
        wait_for(lambda: not d.trouble("delivery"))

    def test_quarantine_retry_and_drop_move_the_marker(self):
        d = self.feed([self.MARKER])
        self.put(d, "one/x.tif", "fail")
        (d.root / "one/x.tif.done").touch()
        job = d.wait_job("x.tif", "failed")
        wait_for(lambda: d.files("quarantine") == ["x.tif", "x.tif.done", "x.tif.error.json"])
        (d.root / "quarantine/x.tif").write_text("until go")
        d.call("job.retry", id=job["id"])
        d.wait_job("x.tif", "running")
        self.assertEqual(d.files("quarantine"), [])
        d.call("job.cancel", id=job["id"])
        d.wait_job("x.tif", "dismissed")
        wait_for(lambda: d.files("quarantine") == ["x.tif", "x.tif.done", "x.tif.error.json"])
        d.call("job.drop", id=job["id"])
        self.assertEqual(d.files("quarantine"), [])

    def test_retention_removes_the_marker_with_its_input(self):
        d = self.feed([self.MARKER])
        for name, text in (("good.tif", "ok"), ("bad.tif", "fail")):
            self.put(d, "one/" + name, text)
            (d.root / "one" / (name + ".done")).touch()
            d.wait_job(name, "successful" if text == "ok" else "failed")
        wait_for(lambda: "good.tif" in d.files("work/done") and "bad.tif" in d.files("quarantine"))
        (d.root / "quarantine/other.done").touch()
        d.change("pipelines:", "  retention: {done: 1ms, quarantine: 1ms}\npipelines:", 1)
        d.process.send_signal(signal.SIGHUP)
        wait_for(lambda: d.files("work/done") == [] and d.files("quarantine") == ["other.done"])

    def test_a_kill_between_the_file_and_its_marker(self):
        d, hangs = self.hung("rename", "x.tif.done")
        self.put(d, "one/x.tif")
        (d.root / "one/x.tif.done").touch()
        hangs()
        self.assertEqual(d.files("one"), ["x.tif.done"])  # the file is in work/ already
        d.stop(signal.SIGKILL)
        d.start()
        d.wait_job("x.tif", "successful")
        wait_for(lambda: d.files("work/done") == ["x.tif", "x.tif.done"])
        self.assertEqual(d.files("one"), [])
        self.assertEqual(len(d.jobs()), 1)

    def test_a_kill_when_the_file_has_come_again_meanwhile(self):
        d, hangs = self.hung("rename", "x.tif.done")
        self.put(d, "one/x.tif")
        (d.root / "one/x.tif.done").touch()
        hangs()
        d.stop(signal.SIGKILL)
        self.put(d, "one/x.tif")  # the marker is the second file's now
        d.start()
        d.wait_for(lambda: len(d.jobs(status="successful")) == 2)
        wait_for(lambda: d.files("work/done") == ["x.tif", "x.tif.1", "x.tif.done"])

    def test_a_kill_before_the_job_is_stored(self):
        d, hangs = self.hung("fsync", "/work/20")
        self.put(d, "one/x.tif")
        (d.root / "one/x.tif.done").touch()
        hangs()
        d.stop(signal.SIGKILL)
        d.start()
        d.wait_job("x.tif", "successful")
        wait_for(lambda: d.files("work/done") == ["x.tif", "x.tif.done"])
        self.assertEqual((d.files("one"), len(d.jobs())), ([], 1))

    def test_marker_of_a_returned_file_is_not_for_the_next(self):
        d, hangs = self.hung("fsync", "/work/20")
        self.put(d, "one/x.tif", "ok")
        (d.root / "one/x.tif.done").touch()
        hangs()
        moved, = (d.root / "work").glob("20*/x.tif")
        os.utime(moved, (2e9, 2e9))  # another state than the settled one: it is put back
        self.put(d, "one/x.tif", "half of the next")
        d.release()
        d.wait_job("x.tif", "successful")
        wait_for(lambda: d.files("work/done") == ["x.tif", "x.tif.done"])
        self.assertEqual((d.root / "work/done/x.tif").read_text(), "ok")
        self.assertEqual(d.files("one"), ["x.tif"])
        self.assertEqual(len(d.jobs()), 1)

    def scene(self, d, name):
        """One that real workers compute."""
        subprocess.run([str(BIN / "make_scene"), "--size", "64x64", str(d.root / ".scene")], check=True, stdout=subprocess.DEVNULL)
        os.rename(d.root / ".scene", d.root / "one" / name)

    def test_file_with_sidecars_waits_for_its_marker(self):
        d = self.feed([self.MARKER], settle="100ms", fake=False)
        self.scene(d, "x.tif")
        self.put(d, "one/x.tif.aux.xml")
        for i in range(3):  # earlier files that could be taken have been
            self.scene(d, "probe%d.tif" % i)
            (d.root / ("one/probe%d.tif.done" % i)).touch()
            d.wait_job("probe%d.tif" % i, "successful")
        self.assertEqual(d.files("one"), ["x.tif", "x.tif.aux.xml"])
        (d.root / "one/x.tif.done").touch()
        d.wait_job("x.tif", "successful")
        wait_for(lambda: [f for f in d.files("work/done") if f[0] == "x"] == ["x.tif", "x.tif.done", "x.tif/x.tif", "x.tif/x.tif.aux.xml"])
        self.assertEqual((d.files("one"), d.trouble("delivery")), ([], None))

    def test_marked_file_with_20000_others_is_taken(self):
        d = self.feed([self.MARKER], settle="1h", start=False)
        d.change('match: ["*.tif"]', 'match: ["*.tif"]\n      metadata: "{scene}_*.json"')
        (d.root / "one").mkdir()
        for i in range(20001):
            (d.root / f"one/x_{i}.json").touch()
        (d.root / "one/x.tif.done").touch()
        self.put(d, "one/x.tif")
        d.start()
        d.wait_for(lambda: d.jobs())
        self.assertEqual(os.path.basename(d.jobs()[0]["companion"]), "x.tif.done")
        d.wait_for(lambda: os.listdir(d.root / "one") == [])
        self.assertIsNone(d.trouble("inbox"))

    def test_marked_file_with_sidecars_needs_no_settling(self):
        d = self.feed([self.MARKER], settle="1h", fake=False)
        self.scene(d, "x.tif")
        self.put(d, "one/x.tif.aux.xml")
        (d.root / "one/x.tif.done").touch()
        d.wait_job("x.tif", "successful")
        wait_for(lambda: "x.tif.done" in d.files("work/done"))

    def test_kill_between_file_and_its_marker_loses_none(self):
        d, hangs = self.hung("rename", "x.tif.done", fake=False)
        self.scene(d, "x.tif")
        self.put(d, "one/x.tif.aux.xml")
        (d.root / "one/x.tif.done").touch()
        hangs()
        self.assertEqual(d.files("one"), ["x.tif.done"])
        d.stop(signal.SIGKILL)
        d.start()
        d.wait_job("x.tif", "successful")
        wait_for(lambda: d.files("work/done") == ["x.tif", "x.tif.done", "x.tif/x.tif", "x.tif/x.tif.aux.xml"])
        self.assertEqual((d.files("one"), len(d.jobs())), ([], 1))


class Checksums(Inboxes):
    def service(self, **settings):
        d = self.feed(["{path: \"{root}/one\", complete: {checksum: \"{name}.sum\"}}"], fake=False, settle="50ms", **settings)
        subprocess.run([str(BIN / "make_scene"), "--size", "64x64", str(d.root / "good.tif")], check=True, stdout=subprocess.DEVNULL)
        return d

    def deliver(self, d, name, text):
        shutil.copy(d.root / "good.tif", d.root / ".copy")
        with open(d.root / ".copy", "ab") as file:
            file.write(name.encode())  # other content in each
        data = (d.root / ".copy").read_bytes()
        os.rename(d.root / ".copy", d.root / "one" / name)
        sums = {kind: getattr(hashlib, kind)(data).hexdigest() for kind in ("md5", "sha256", "sha512", "sha1")}
        (d.root / ".sum").write_text(text.format(name=name, **sums))
        os.rename(d.root / ".sum", d.root / "one" / (name + ".sum"))  # whole: it has no settle time

    def test_each_form_and_kind(self):
        d = self.service()
        forms = ["{md5}  {name}\n", "{sha256} *{name}\r\n", "{sha512}  some/where/{name}", "MD5 ({name}) = {md5}\n", "SHA256 ({name}) = {sha256}\n",
                 "SHA512 ({name}) = {sha512}\n", "{md5}\n", "# a note\n00000000000000000000000000000000  other.tif\n{md5}  {name}\n",
                 "{md5}  {name}\n{sha256}  {name}\nMD5 (./{name}) = {md5}\n", "00000000000000000000000000000000  old/{name}\n{md5}  {name}\n"]
        for i, form in enumerate(forms):
            self.deliver(d, "f%d.tif" % i, form)
        for i in range(len(forms)):
            d.wait_job("f%d.tif" % i, "successful")
        wait_for(lambda: len(d.files("work/done")) == 2 * len(forms))
        self.assertEqual(d.files("one"), [])

    def test_mismatch_is_quarantined_with_its_checksum(self):
        d = self.service()
        forms = {"wrong": ("{md5}x".replace("{md5}x", "0" * 32) + "  {name}\n", "has the MD5 checksum"), "text": ("not a sum\n", "is no line with"),
                 "empty": ("\n", "has no checksum in it"), "sha1": ("{sha1}  {name}\n", "is no line with"), "kind": ("SHA3-256 ({name}) = {sha256}\n", "is no line with"),
                 "cut": ("MD5 ({name}) = {md5}0\n", "is no line with"), "first": ("{md5}  {name}\n" + "0" * 32 + "  {name}\n", "contradicts itself: first.tif has two MD5"),
                 "last": ("MD5 ({name}) = " + "0" * 32 + "\n{md5}  {name}\n", "contradicts itself: last.tif has two MD5"),
                 "bare": ("{md5}\n" + "0" * 32 + "  {name}\n", "contradicts itself: bare.tif has two MD5"),
                 "both": ("0" * 64 + "  {name}\n{md5}  {name}\n", "has the SHA-256 checksum"), "others": ("{md5}  a.tif\n{md5}  b.tif\n", "has no line for others.tif")}
        for name, (form, words) in forms.items():
            self.deliver(d, name + ".tif", form)
        for name, (form, words) in forms.items():
            job = d.wait_job(name + ".tif", "failed")
            self.assertEqual(job["error"]["code"], "input.checksum")
            self.assertIn(words, job["error"]["message"])
        wait_for(lambda: len(d.files("quarantine")) == 3 * len(forms))
        self.assertTrue({"wrong.tif", "wrong.tif.sum", "wrong.tif.error.json"} <= set(d.files("quarantine")))
        data = (d.root / "quarantine/wrong.tif").read_bytes()
        id = [j["id"] for j in d.jobs() if j["name"] == "wrong.tif"][0]
        d.call("job.retry", id=id)  # still wrong
        wait_for(lambda: "wrong.tif" in d.files("quarantine") and d.call("job.get", id=id)["status"] == "failed")
        (d.root / "quarantine/wrong.tif.sum").write_text(hashlib.md5(data).hexdigest())
        d.call("job.retry", id=id)
        d.wait_job("wrong.tif", "successful")

    def test_each_listed_file_of_a_folder_is_compared(self):
        d = self.service(start=False)
        d.set_pipelines("pipelines:\n  s: {input: {scene: 'F_*', files: {R: a.tif}}, products: [statistics: {}]}\n")
        d.start()
        (d.root / "outside.txt").write_text("o")
        for name, change, words in (("F_good", lambda text: text, None), ("F_bad", lambda text: "0" * 64 + text[64:].replace("  ./", " *F_bad/"), "has the SHA-256 checksum"),
                                    ("F_two", lambda text: text.replace("./b.txt", "F_two/a.tif"), "contradicts itself: a.tif has two SHA-256 checksums"),
                                    ("F_less", lambda text: text.replace("b.txt", "c.txt"), "which the scene does not have"),
                                    ("F_out", lambda text: text.replace("./b.txt", "../outside.txt"), "which the scene does not have"),
                                    ("F_link", lambda text: text.replace("./b.txt", "link.txt"), "which the scene does not have")):
            made = d.root / ("." + name)
            made.mkdir()
            subprocess.run([str(BIN / "make_scene"), "--size", "64x64", str(made / "a.tif")], check=True, stdout=subprocess.DEVNULL)
            (made / "b.txt").write_text(name)
            (made / "link.txt").symlink_to(d.root / "outside.txt")
            lines = "".join("%s  ./%s\n" % (hashlib.sha256((made / file).read_bytes()).hexdigest(), file) for file in ("a.tif", "b.txt"))
            os.rename(made, d.root / "one" / name)
            (d.root / ".sum").write_text(change(lines))
            os.rename(d.root / ".sum", d.root / "one" / (name + ".sum"))
            job = d.wait_job(name, "failed" if words else "successful")
            if words:
                self.assertEqual(job["error"]["code"], "input.checksum")
                self.assertIn(words, job["error"]["message"])
        wait_for(lambda: {"F_good", "F_good.sum"} <= set(d.files("work/done")))
        self.assertEqual(d.files("one"), [])

    def test_of_a_file_with_sidecars_the_file_is_compared(self):
        d = self.service()
        for name, text in (("bare.tif", "{md5}\n"), ("named.tif", "{md5}  {name}\n"), ("wrong.tif", "0" * 32 + "\n")):
            (d.root / "one" / (name + ".aux.xml")).write_text("<PAMDataset/>")
            self.deliver(d, name, text)
        for name in ("bare.tif", "named.tif"):
            d.wait_job(name, "successful")
        error = d.wait_job("wrong.tif", "failed")["error"]
        self.assertEqual(error["code"], "input.checksum")
        self.assertIn("has the MD5 checksum", error["message"])
        wait_for(lambda: {"bare.tif/bare.tif", "bare.tif/bare.tif.aux.xml", "bare.tif.sum"} <= set(d.files("work/done")))
        wait_for(lambda: {"wrong.tif/wrong.tif.aux.xml", "wrong.tif.sum"} <= set(d.files("quarantine")))
        self.assertEqual(d.files("one"), [])

    def test_set_of_dead_service_needs_no_checksum(self):
        d = self.service(start=False)
        d.set_pipelines("pipelines:\n  s: {input: {group: '(?<scene>G\\d)_[a-z]\\.tif', "
                        "files: {R: '{scene}_a.tif'}}, products: [statistics: {}]}\n")
        claim = d.root / "work/20261121-081530-4f2a"
        (claim / "G1").mkdir(parents=True)
        (d.root / "one").mkdir()
        (claim / ".from").symlink_to(d.root / "one")
        shutil.copy(d.root / "good.tif", claim / "G1/G1_a.tif")
        d.start()
        self.assertEqual(d.wait_job("G1", "successful")["id"], claim.name)

    def test_neither_is_taken_without_the_other(self):
        d = self.service()
        with d.paused():  # the service sees the checksum alone
            self.deliver(d, "a.tif", "{md5}")
            os.rename(d.root / "one/a.tif", d.root / "aside.tif")
        self.assertEqual(wait_for(lambda: d.trouble("delivery"))["code"], "input.alone")
        self.assertEqual(d.jobs(), [])
        os.rename(d.root / "aside.tif", d.root / "one/a.tif")
        d.wait_job("a.tif", "successful")


class Priority(Inboxes):
    def test_inbox_of_a_higher_priority_has_its_jobs_first(self):
        d = self.feed(["{path: \"{root}/one\"}", "{path: \"{root}/two\", priority: 10}"])
        self.put(d, "one/first.tif", "until go")
        d.wait_job("first.tif", "running")
        for path in ("one/a.tif", "two/b.tif", "one/c.tif", "two/d.tif"):
            self.put(d, path)
            d.wait_job(os.path.basename(path), "accepted")
        self.set_inboxes(d, ["{path: \"{root}/one\", priority: 20}", "{path: \"{root}/two\", priority: 10}"])
        d.process.send_signal(signal.SIGHUP)  # for later jobs
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

    def test_nested_or_misplaced_inboxes_are_refused(self):
        d = self.feed(["{path: \"{root}/one\"}", "{path: \"{root}/one/deep\"}"], start=False)
        self.refused(d, "config.yaml:4:14", "inboxes (%s/one/deep) is inside" % d.root)
        self.set_inboxes(d, ["{path: \"{root}/one\"}", "{path: \"{root}/one/\"}"])
        self.refused(d, "config.yaml:4:14", "is the same as service.inboxes (%s/one)" % d.root)
        self.set_inboxes(d, ["{path: \"{root}/one\"}", "{path: \"{root}/products/in\"}"])
        self.refused(d, "inboxes (%s/products/in) is inside service.products" % d.root)

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
                            ("inboxes: [{}]", "needs 'path'"),
                            ("inboxes: [{path: /a, complete: {marker: x.done}}]", "write a name with {name} in it"),
                            ("inboxes: [{path: /a, complete: {marker: \"{name}\"}}]", "names no other file"),
                            ("inboxes: [{path: /a, complete: {checksum: \"sums/{name}\"}}]", "names no other file"),
                            ("inboxes: [{path: /a, complete: {}}]", "write marker or checksum"),
                            ("inboxes: [{path: /a, complete: {marker: \"{name}.a\", checksum: \"{name}.b\"}}]", "one of them")):
            d.config.write_text(good.replace("  settle:", "  %s\n  settle:" % line, 1))
            self.refused(d, words)


if __name__ == "__main__":
    main(workers=3)
