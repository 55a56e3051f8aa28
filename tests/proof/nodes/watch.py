# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Records of a running trial: products as they appear (inotify), the events that each node sends to a client (job.watch), and
every change of a job's state in the store, by a trigger that is made for the trial."""
import ctypes
import dataclasses
import json
import os
import select
import struct
import threading
import time

from daemon_kit import Client, RpcError
from patience import wait_for

IN_MOVED_FROM, IN_MOVED_TO, IN_CREATE, IN_DELETE, IN_Q_OVERFLOW, IN_ONLYDIR = 0x40, 0x80, 0x100, 0x200, 0x4000, 0x1000000
HEAD = struct.Struct("iIII")
TRIGGER = """
CREATE SCHEMA trial;
CREATE TABLE trial.changes (n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, at_ms bigint, job text, name text, before bigint,
 status bigint, epoch bigint, node text);
CREATE FUNCTION trial.note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
 INSERT INTO trial.changes (at_ms, job, name, before, status, epoch, node) VALUES (pushbroom.pb_now_ms(), NEW.id, NEW.name,
  CASE WHEN TG_OP = 'INSERT' THEN -1 ELSE OLD.status END, NEW.status, NEW.epoch, NEW.node); RETURN NULL; END $$;
CREATE TRIGGER trial_inserted AFTER INSERT ON pushbroom.jobs FOR EACH ROW EXECUTE FUNCTION trial.note();
CREATE TRIGGER trial_changed AFTER UPDATE ON pushbroom.jobs FOR EACH ROW
 WHEN (OLD.status <> NEW.status OR OLD.epoch <> NEW.epoch) EXECUTE FUNCTION trial.note();
"""


@dataclasses.dataclass
class Change:
    """A change of a job in the store. before: its state; -1 = it is new. at_ms: clock of the server."""
    at_ms: int
    job: str
    name: str
    before: int
    status: int
    epoch: int
    node: str


@dataclasses.dataclass
class Event:
    seq: int
    kind: str
    job: str


@dataclasses.dataclass
class Publication:
    """Products that took their place."""
    scene: str
    inode: int
    job: str
    epoch: int
    complete: bool


def changes(store, after):
    """Changes with numbers above `after`, and the last number."""
    rows = store.rows(f"SELECT n, at_ms, job, name, before, status, epoch, node FROM trial.changes WHERE n > {after} ORDER BY n")
    found = [Change(int(at), job, name, int(before), int(status), int(epoch), node)
             for _, at, job, name, before, status, epoch, node in rows]
    return found, int(rows[-1][0]) if rows else after


def events(store, after):
    """Events in the store with numbers above `after`."""
    return [Event(int(seq), kind, job) for seq, kind, job in
            store.rows(f"SELECT seq, kind, job FROM pushbroom.events WHERE seq > {after} ORDER BY seq")]


def gaps(store):
    """Numbers that a server left out when it took over: {the last before: the last of them}."""
    return {int(last): int(following) for last, following in store.rows("SELECT last_seq, next_seq FROM pushbroom.gaps")}


def last_event(store):
    return int(store.rows("SELECT seq FROM pushbroom.last_event")[0][0])


class EventsWatch(threading.Thread):
    """A client of a node that reads all events, and continues after its last one when the connection ends."""

    def __init__(self, node, since):
        super().__init__(daemon=True)
        self.node, self.since, self.ending = node, since, threading.Event()
        self.seen, self.gaps = [], []

    def run(self):
        while not self.ending.is_set():
            try:
                self.follow()
            except (OSError, RpcError, AssertionError, TypeError, ValueError):  # it ended, is stopped, or its store is away
                time.sleep(0.05)

    def follow(self):
        client = Client(self.node.root / "s.sock", timeout=5)
        try:
            reply = client.call("job.watch", since=self.since)
            if reply.get("gone"):
                self.gaps.append(f"node {self.node.name} has no events after {self.since}, it continues at {reply['seq']}")
                self.since = reply["seq"]
            while not self.ending.is_set():
                event = client.event()
                if "event" not in event:  # progress of a job
                    continue
                self.seen.append(Event(event["seq"], event["event"], event["data"]["job"]["id"]))
                self.since = event["seq"]
        finally:
            client.close()

    def wait_for(self, seq):
        wait_for(lambda: self.since >= seq, progress=lambda: self.since)


class ProductsWatch(threading.Thread):
    """Records each rename in the directories of products and of scenes."""

    def __init__(self, places):
        super().__init__(daemon=True)
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.fd = self.libc.inotify_init1(os.O_CLOEXEC)
        assert self.fd >= 0, "no inotify"
        self.scenes, self.last = {}, {}  # watch: directory of a scene; scene: inode of its products
        self.publications, self.gone, self.lost = [], [], 0
        self.moves = {}  # scene: how many directories were renamed to its place
        self.ending = threading.Event()
        self.tops = {self.add(place, IN_MOVED_TO | IN_CREATE): place for place in places}

    def add(self, path, mask):
        return self.libc.inotify_add_watch(self.fd, os.fsencode(path), mask | IN_ONLYDIR)

    def run(self):
        while not self.ending.is_set():
            if select.select([self.fd], [], [], 0.2)[0]:
                self.take(os.read(self.fd, 1 << 16))

    def take(self, data):
        at = 0
        while at < len(data):
            watch, mask, _, n = HEAD.unpack_from(data, at)
            name = os.fsdecode(data[at + HEAD.size:at + HEAD.size + n].rstrip(b"\0"))
            at += HEAD.size + n
            if mask & IN_Q_OVERFLOW:
                self.lost += 1
            elif watch in self.tops and not name.startswith("."):
                self.watch_scene(self.tops[watch] / name)
            elif watch in self.scenes and name and not name.startswith("."):
                self.note(self.scenes[watch], name, mask)

    def watch_scene(self, scene):
        watch = self.add(scene, IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE)
        if watch >= 0:
            self.scenes[watch] = scene
            for name in os.listdir(scene):
                if not name.startswith("."):
                    self.look(scene, name)

    def note(self, scene, name, mask):
        if mask & IN_MOVED_TO:
            self.moves[scene.name] = self.moves.get(scene.name, 0) + 1
            self.look(scene, name)
        elif not (scene / name).exists():
            self.gone.append(f"{scene}/{name}")

    def look(self, scene, name):
        """Notes the products at a place, unless they are those that were there before."""
        directory = scene / name
        try:
            inode, read = directory.stat().st_ino, json.loads((directory / ".pushbroom.json").read_text())
            complete = all((directory / file["file"]).stat().st_size == file["bytes"] for file in read["files"])
        except (OSError, ValueError, KeyError):
            inode, read, complete = 0, {}, False
        key = inode, read.get("job"), read.get("epoch", 0)
        if self.last.get(scene) != key:
            self.last[scene] = key
            self.publications.append(Publication(scene.name, inode, read.get("job", ""), read.get("epoch", 0), complete))

    def end(self):
        self.ending.set()
        self.join()
        os.close(self.fd)
