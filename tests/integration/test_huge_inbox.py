#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""An inbox with thousands of entries that stay: a change costs the service the work of that change, and a flood of events loses
no file. tests/bench/inbox.py measures it."""
import os
import pathlib
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from daemon_kit import DaemonCase, wait_for  # noqa: E402
from pbtest import main  # noqa: E402

ENTRIES = 20000
CHANGES = 10


class HugeInbox(DaemonCase):
    def make(self, entries):
        d = self.daemon(start=False, settle="100ms", rescan="1h")
        d.change("pipelines:", "  unmatched: {files: leave}\npipelines:", 1)
        for i in range(entries):
            (d.root / "inbox" / f"foreign{i:06}.bin").touch()
        return d

    def count(self, daemon, key):
        return daemon.call("service.info")[key]

    def cpu_s(self, daemon):
        """CPU time of the threads of the service, without its workers."""
        tasks = pathlib.Path("/proc", str(daemon.process.pid), "task")
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks.iterdir()) / 1e9

    def test_cost_of_an_update_is_that_of_its_change(self):
        d = self.make(ENTRIES)
        d.start()
        wait_for(lambda: self.count(d, "inbox_foreign") == ENTRIES)
        updates = []
        for i in range(CHANGES):
            before = self.cpu_s(d)
            (d.root / "inbox" / f"foreign-{i}.bin").touch()
            wait_for(lambda: self.count(d, "inbox_foreign") == ENTRIES + i + 1, step=0.1)  # calls cost, too
            updates.append(self.cpu_s(d) - before)
        # A reload lists all names again.
        d.change("  unmatched:", '  ignore: ["foreign*"]\n  unmatched:', 1)
        before = self.cpu_s(d)
        d.process.send_signal(signal.SIGHUP)
        wait_for(lambda: self.count(d, "inbox_ignored") == ENTRIES + CHANGES)
        listing = self.cpu_s(d) - before
        self.assertLess(min(updates), listing / 5, (updates, listing))

    def test_removed_names_are_no_longer_counted(self):
        d = self.make(100)
        d.start()
        wait_for(lambda: self.count(d, "inbox_foreign") == 100)
        for i in range(50):
            (d.root / "inbox" / f"foreign{i:06}.bin").unlink()
        wait_for(lambda: self.count(d, "inbox_foreign") == 50)
        os.rename(d.root / "inbox/foreign000050.bin", d.root / "inbox/scene.tif")
        d.wait_job("scene.tif", "successful")
        self.assertEqual(self.count(d, "inbox_foreign"), 49)

    def test_overflow_of_the_event_queue_loses_no_file(self):
        d = self.make(0)
        d.start()
        limit = int(pathlib.Path("/proc/sys/fs/inotify/max_queued_events").read_text())
        if limit > 4 * ENTRIES:
            self.skipTest("the queue of events has %d entries" % limit)
        with d.paused():
            for i in range(limit // 2 + 10):  # two events each
                (d.root / "inbox" / f"foreign{i:06}.bin").touch()
            d.drop("last.tif", old=True)
        d.wait_job("last.tif", "successful")
        wait_for(lambda: self.count(d, "inbox_foreign") == limit // 2 + 10)

    def test_scene_is_found_between_incomplete_sets(self):
        d = self.make(0)
        d.set_pipelines("""pipelines:
  many:
    input:
      group: '(?<scene>scene[0-9]+)_B[0-9]+[.]dat'
      files: {R: "*_B1.dat", G: "*_B2.dat", B: "*_B3.dat"}
    products: [{statistics: {}}]
""")
        for i in range(1000):
            (d.root / "inbox" / f"scene{i:06}_B1.dat").touch()
        d.start()
        wait_for(lambda: self.count(d, "gathering_sets") == 1000)
        for band in (2, 3):
            (d.root / "inbox" / f"scene000500_B{band}.dat").touch()
        d.wait_job("scene000500", "successful")
        wait_for(lambda: self.count(d, "gathering_sets") == 999)


class WithoutEvents(DaemonCase):
    """The kernel refuses inotify or watches of sub-folders if other programs of the user have all of them."""

    def start_limited(self, limit, number, **settings):
        prefix = ["unshare", "--user", "--map-current-user", "sh", "-c",
                  f'echo {number} > /proc/sys/user/{limit} && exec "$@"', "limited"]
        if subprocess.run([*prefix, "true"], stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("this system has no user namespaces for tests")
        d = self.daemon(start=False, settle="100ms", **settings)
        d.prefix = prefix
        return d

    def test_without_inotify_listings_find_files(self):
        d = self.start_limited("max_inotify_instances", 0, rescan="200ms")
        d.change("pipelines:", "  unmatched: {files: leave}\npipelines:", 1)
        d.start()
        self.assertIn("no events for", d.log_text())
        d.drop("scene.tif", old=True)
        d.wait_job("scene.tif", "successful")
        other = d.root / "inbox/other.bin"
        other.touch()
        wait_for(lambda: d.call("service.info")["inbox_foreign"] == 1)
        other.unlink()
        wait_for(lambda: d.call("service.info")["inbox_foreign"] == 0)

    def test_unwatched_folders_are_listed(self):
        d = self.start_limited("max_inotify_watches", 2, rescan="200ms")  # one of the claim's, one of the inbox itself
        d.change(f"inbox: {d.root}/inbox", f"inboxes: [{{path: {d.root}/inbox, recurse: true}}]", 1)
        (d.root / "inbox/sub").mkdir()
        d.start()
        wait_for(lambda: "no events for" in d.log_text())
        part = d.root / "inbox/sub/.scene.tif"
        part.write_text("ok")
        os.utime(part, (1e9, 1e9))
        os.rename(part, d.root / "inbox/sub/scene.tif")
        d.wait_job("scene.tif", "successful")


if __name__ == "__main__":
    main()
