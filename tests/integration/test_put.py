#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""`pushbroom put`: scenes reach the inbox whole, with the rights that the service needs, and nothing is overwritten or left."""
import json
import os
import signal
import stat
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from daemon_kit import BIN  # noqa: E402
from patience import finish, run_to_end, wait_for  # noqa: E402
from pbtest import main  # noqa: E402
from test_inbox_state import MEMBER, SERVICE, State  # noqa: E402

ROOT_ONLY = unittest.skipUnless(os.geteuid() == 0, "only root can become other users")


class Put(State):
    def put(self, d, *words, **options):
        return run_to_end([BIN / "pushbroom", "put", "--socket", d.root / "s.sock", *words],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)

    def scene(self, d, name="S2A_x", owner=None, mode=0o755, words="ok"):
        folder = d.root / "made" / name
        (folder / "more").mkdir(parents=True)
        for file in ("B04.tif", "B08.tif", "more/notes.txt"):
            (folder / file).write_text(words)
            os.chmod(folder / file, mode & 0o644)
            os.utime(folder / file, (1e9, 1e9))
        for path in (folder / "more", folder):
            os.chmod(path, mode)
        if owner is not None:
            for path in (folder, *folder.rglob("*")):
                os.chown(path, owner, owner)
            os.chown(d.root / "made", owner, owner)
        os.chmod(d.root / "made", 0o755)
        return folder

    def left(self, d):
        return [f for f in d.files("inbox") if ".part" in f]


class Copy(Put):
    def test_folder_is_copied_and_becomes_a_job(self):
        d = self.service()
        folder = self.scene(d)
        done = self.put(d, folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("S2A_x: 3 files, 6 B, copied to %s/inbox" % d.root, done.stdout)
        d.wait_job("S2A_x", "successful")
        self.assertTrue((folder / "B04.tif").exists())
        self.assertEqual(self.left(d), [])
        archived = d.root / "work/done/S2A_x/more/notes.txt"
        wait_for(archived.exists)
        self.assertEqual((archived.read_text(), archived.stat().st_mtime), ("ok", 1e9))

    @ROOT_ONLY
    def test_member_with_usual_umask_delivers_a_folder(self):
        for mode in (0o755, 0o700):
            d = self.service(user=SERVICE)
            folder = self.scene(d, owner=MEMBER, mode=mode)
            os.chmod(d.root / "s.sock", 0o660)
            done = self.put(d, "--wait", folder, user=MEMBER, group=MEMBER, extra_groups=[SERVICE], umask=0o022)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            job, = d.jobs()
            self.assertEqual((job["name"], job["status"], job["uid"]), ("S2A_x", "successful", MEMBER))
            for path in (d.root / "work/done/S2A_x").rglob("*"):
                st = path.stat()
                wanted = (mode | 0o2070 if path.is_dir() else mode & 0o644 | 0o060, SERVICE)
                self.assertEqual((stat.S_IMODE(st.st_mode), st.st_gid), wanted, path)

    @ROOT_ONLY
    def test_user_outside_the_group_reads_which_to_join(self):
        d = self.service(user=SERVICE)
        os.chmod(d.root / "s.sock", 0o666)
        folder = self.scene(d, owner=MEMBER)
        done = self.put(d, folder, user=MEMBER, group=MEMBER, extra_groups=[])
        self.assertEqual(done.returncode, 1)
        self.assertIn("service.group", done.stderr)
        self.assertEqual(d.files("inbox"), [])

    def test_name_that_is_there_is_refused(self):
        d = self.service(settle="1h")
        folder = self.scene(d)
        (d.root / "inbox/S2A_x").mkdir()
        done = self.put(d, folder)
        self.assertEqual(done.returncode, 1)
        self.assertIn("S2A_x is there already", done.stderr)
        self.assertEqual(d.files("inbox"), ["S2A_x"])

    def test_unusable_source_is_refused_before_the_copy(self):
        d = self.service()
        folder = self.scene(d)
        os.symlink("B04.tif", folder / "link.tif")
        os.mkfifo(d.root / "made/pipe.tif")
        (d.root / "made/.hidden.tif").write_text("ok")
        for source, word in ((folder, "symbolic link"), (d.root / "made/pipe.tif", "neither a plain file"),
                             (d.root / "made/.hidden.tif", "rename it"), (d.root / "made/none.tif", "No such file")):
            done = self.put(d, source)
            self.assertEqual(done.returncode, 1)
            self.assertIn(word, done.stderr)
        self.assertEqual((d.files("inbox"), d.jobs()), ([], []))

    def test_signal_leaves_nothing_behind(self):
        d = self.service()
        folder = self.scene(d)
        with open(folder / "B04.tif", "wb") as file:
            for _ in range(2048):
                file.write(os.urandom(1 << 18))
        process = subprocess.Popen([BIN / "pushbroom", "put", "--socket", d.root / "s.sock", folder], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        wait_for(lambda: self.left(d) or process.poll() is not None)
        process.send_signal(signal.SIGINT)
        finish(process)
        if process.returncode == 0:
            self.skipTest("the copy was faster than the signal")
        self.assertEqual(process.returncode, -signal.SIGINT)
        self.assertEqual((d.files("inbox"), d.jobs()), ([], []))

    def test_json_names_place_and_errors(self):
        d = self.service(settle="1h")
        (d.root / "made").mkdir()
        (d.root / "made/a.tif").write_text("ok")
        done = self.put(d, "--json", d.root / "made/a.tif", d.root / "made/none.tif")
        good, bad = map(json.loads, done.stdout.splitlines())
        self.assertEqual(good, {"name": "a.tif", "path": str(d.root / "inbox/a.tif"), "files": 1, "bytes": 2, "moved": False})
        self.assertEqual((done.returncode, bad["error"]["code"]), (1, "input.missing"))


class Move(Put):
    def test_moved_folder_is_gone_at_its_source(self):
        d = self.service()
        folder = self.scene(d)
        done = self.put(d, "--move", "--wait", folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertFalse(folder.exists())
        self.assertEqual([j["status"] for j in d.jobs()], ["successful"])

    @ROOT_ONLY
    def test_member_moves_a_folder(self):
        d = self.service(user=SERVICE)
        folder = self.scene(d, owner=MEMBER)
        done = self.put(d, "--move", "--wait", folder, user=MEMBER, group=MEMBER, extra_groups=[SERVICE], umask=0o022)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertFalse(folder.exists())

    def test_hard_link_is_copied_and_removed(self):
        d = self.service()
        folder = self.scene(d)
        os.link(folder / "B04.tif", d.root / "other")
        done = self.put(d, "--move", "--wait", folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertFalse(folder.exists())
        self.assertEqual((d.root / "other").read_text(), "ok")

    def test_refused_move_leaves_the_source(self):
        d = self.service(settle="1h")
        folder = self.scene(d)
        (d.root / "inbox/S2A_x").write_text("other")
        self.assertEqual(self.put(d, "--move", folder).returncode, 1)
        self.assertTrue((folder / "B04.tif").exists())
        self.assertEqual(d.files("inbox"), ["S2A_x"])


class Service(Put):
    def test_failed_job_is_waited_for(self):
        d = self.service()
        done = self.put(d, "--wait", self.scene(d, words="fail"))
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("failed", done.stdout)

    def test_wait_ends_with_the_name_of_the_scene(self):
        """Its second delivery has another name in the archive. A retry of the job leads to the command that runs it again."""
        d = self.service()
        scene = d.root / "a.tif"
        for words in ("ok", "ok, other"):
            scene.write_text(words)
            done = self.put(d, "--wait", scene)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stdout.split()[-1], "a.tif", done.stdout)
        second = next(job for job in d.jobs() if job["input"].endswith("a.tif.1"))
        done = run_to_end([BIN / "pushbroom", "retry", "--socket", d.root / "s.sock", second["id"]], stderr=subprocess.PIPE, text=True)
        self.assertIn("'pushbroom again %s' makes its products again" % second["id"], done.stderr)

    def test_wait_ends_for_a_foreign_folder(self):
        d = self.service()
        done = self.put(d, "--wait", self.scene(d, "LC08_x"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("LC08_x stays in the inbox: no pipeline's input.scene fits", done.stderr)
        for remedy in ("set recurse: true for this inbox", "\n  to do: add a pipeline"):
            self.assertIn(remedy, done.stderr)

    def test_inbox_itself_is_refused(self):
        d = self.service()
        for more in ((), ("--move",)):
            done = self.put(d, *more, d.root / "inbox")
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"{d.root}/inbox is the inbox itself", done.stderr)
        self.assertEqual(d.files("inbox"), [])

    def test_names_are_printed_without_control_characters(self):
        d = self.service()
        scene = d.root / "a\n\x1b[31m.txt"
        scene.write_text("no image")
        done = self.put(d, scene)
        self.assertEqual(done.stdout.count("\n"), 1, done.stdout)
        self.assertTrue("\x1b" not in done.stdout and done.stdout.startswith("a  [31m.txt: 1 file"), done.stdout)

    def test_stopped_service_leads_to_the_config(self):
        d = self.service()
        d.stop()
        folder = self.scene(d)
        done = self.put(d, "-c", d.config, folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("the service does not run; the inbox is that of", done.stderr)
        self.assertEqual(self.put(d, "-c", d.config, "--wait", self.scene(d, "S2A_y")).returncode, 3)
        self.assertEqual([f for f in d.files("inbox") if "/" not in f], ["S2A_x"])
        if not os.path.exists("/etc/pushbroom/pushbroom.yaml"):
            done = self.put(d, folder)
            self.assertEqual(done.returncode, 3)
            self.assertRegex(done.stderr, r"no service on .*\n  to do: start pushbroomd, .*or its configuration with -c")
        d.start()
        d.wait_job("S2A_x", "successful")

    def test_one_of_several_inboxes_is_named(self):
        d = self.daemon(start=False)
        d.config.write_text(d.config.read_text().replace("  inbox: %s/inbox\n" % d.root,
                                                         "  inboxes: [{path: %s/inbox}, {path: %s/second}]\n" % (d.root, d.root)))
        d.start()
        scene = d.root / "a.tif"
        scene.write_text("ok")
        unnamed = self.put(d, scene)
        self.assertEqual(unnamed.returncode, 2)
        self.assertIn("%s/inbox, %s/second" % (d.root, d.root), unnamed.stderr)
        unknown = self.put(d, "--inbox", "secnd", scene)
        self.assertEqual(unknown.returncode, 2)
        self.assertIn("did you mean 'second'", unknown.stderr)
        self.assertEqual(self.put(d, "--wait", "--inbox", "second", scene).returncode, 0)
        self.assertEqual(d.jobs()[0]["delivered"], [str(d.root / "second/a.tif")])


if __name__ == "__main__":
    main(workers=3)
