# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""The job store of the trial: a PostgreSQL server with a synchronous standby, its faults, and the links of nodes to both servers.

A link is a socket in a directory of a node; one thread forwards between it and a server. It can hold what it forwards, in both
directions or only the answers, and close its connections, as a network between two machines does. It refuses connections while the
server does, so that a node tries the next one."""
import os
import selectors
import shutil
import signal
import socket
import threading

from patience import children, wait_for
from postgres_kit import Postgres

PORT = ".s.PGSQL.5432"
STANDBYS = "second"
PASS, HOLD, DEAF, CLOSED = range(4)
LOOK_S = 0.05  # time between two looks whether a dead server is back


class Cleanups:
    """The part of a test that Postgres uses."""

    def __init__(self):
        self.calls = []

    def addCleanup(self, function, *arguments):  # noqa: N802
        self.calls.append((function, arguments))

    def run(self):
        while self.calls:
            function, arguments = self.calls.pop()
            function(*arguments)


class Server(Postgres):
    """Follows `primary`, if there is one."""

    def __init__(self, case, primary=None):
        self.primary = primary
        super().__init__(case)

    def make(self):
        if self.primary is None:
            return super().make()
        return self.tool("pg_basebackup", "-D", "data", "-R", "-c", "fast", "--no-sync",
                         "-d", f"host={self.primary.root} user=pushbroom application_name={STANDBYS}")


def processes(server):
    """The server and its children, the server first: a stopped one starts no others."""
    return [server.process.pid, *children(server.process.pid)]


def send(pids, number):
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass


def restart(server):
    """Children of a killed server may outlive it for a moment, and hold its memory; and the file by which a server shows that it is ready
    may be that of the killed one."""
    def succeeds(call):
        try:
            call()
            return True
        except AssertionError:
            return False
    wait_for(lambda: succeeds(server.start))
    wait_for(lambda: succeeds(lambda: server.rows("SELECT 1")))


class Store:
    """`first` takes changes and confirms them when `second` has them. After a failover they change places."""

    def __init__(self, cleanups):
        self.cleanups = cleanups
        self.first = Server(cleanups)
        self.second = Server(cleanups, self.first)
        self.places = [self.first.root, self.second.root]  # directories that nodes have links to
        self.wait_for_standby()

    def rows(self, query):
        return self.first.rows(query)

    def wait_for_standby(self):
        wait_for(lambda: self.rows("SELECT 1 FROM pg_stat_replication WHERE state = 'streaming'"))
        self.set_standbys(STANDBYS)
        wait_for(lambda: self.rows("SELECT 1 FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')"))

    def set_standbys(self, names):
        self.rows(f"ALTER SYSTEM SET synchronous_standby_names = '{names}'")
        self.rows("SELECT pg_reload_conf()")

    def kill(self):
        """kill -9 of the first server and its children."""
        send(processes(self.first), signal.SIGKILL)
        self.first.process.wait()

    def restart(self):
        restart(self.first)

    def stop(self, server):
        """SIGSTOP. Returns what is stopped."""
        stopped = processes(server)
        send(stopped[:1], signal.SIGSTOP)
        stopped = processes(server)
        send(stopped, signal.SIGSTOP)
        return stopped

    def promote(self):
        """The standby becomes the first server, and takes changes when this returns; the dead one is not used again."""
        self.second.tool("pg_ctl", "promote", "-D", "data", "-w")
        self.first, self.second = self.second, self.first
        self.set_standbys("")

    def renew_standby(self):
        """A new standby, at the place of the dead server."""
        dead = self.second
        shutil.rmtree(dead.root / "data")
        dead.primary = self.first
        dead.make()
        dead.start()
        self.wait_for_standby()


class Link:
    """From a directory of a node to a server. mode is set by the trial, and read by the thread. listener: None while it refuses."""

    def __init__(self, directory, target):
        directory.mkdir()
        self.path, self.target, self.mode = directory / PORT, target / PORT, PASS
        self.listener, self.pairs = None, set()

    def listen(self):
        """The new listener takes the path of the closed one, which refuses."""
        fresh = self.path.with_name("fresh")
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(fresh))
        os.chmod(fresh, 0o777)
        self.listener.listen(16)
        self.listener.setblocking(False)
        fresh.rename(self.path)

    def connect(self):
        """Connects to the server. One that hangs is like one that is away."""
        server = socket.socket(socket.AF_UNIX)
        try:
            server.settimeout(0.2)
            server.connect(str(self.target))
        except OSError:
            server.close()
            raise
        return server

    def is_dead(self):
        """True if the server refuses connections; one that hangs does not."""
        try:
            self.connect().close()
        except (ConnectionRefusedError, FileNotFoundError):
            return True
        except OSError:
            pass
        return False


class Pair:
    """A connection of a node and the one to the server. Bytes wait in `queue` for the side that they are for."""

    def __init__(self, link, node, server):
        self.link, self.sides = link, (node, server)
        self.queue = {node: b"", server: b""}
        self.ended = False

    def other(self, side):
        return self.sides[1] if side is self.sides[0] else self.sides[0]

    def may_send(self, side):
        return self.link.mode == PASS or (self.link.mode == DEAF and side is self.sides[1])


class Links(threading.Thread):
    """All links, and the thread that forwards."""

    def __init__(self):
        super().__init__(daemon=True)
        self.selector = selectors.DefaultSelector()
        self.lock = threading.Lock()  # selector and pairs
        self.links, self.ending = [], False
        self.wake_read, self.wake_write = socket.socketpair()
        self.wake_read.setblocking(False)
        self.selector.register(self.wake_read, selectors.EVENT_READ, None)

    def add(self, directory, target):
        link = Link(directory, target)
        self.links.append(link)
        with self.lock:
            self.look(link)
        return link

    def look(self, link):
        """Listens, or refuses as the server does."""
        refuses = link.mode == CLOSED or link.is_dead()
        if refuses and link.listener is not None:
            self.selector.unregister(link.listener)
            link.listener.close()
            link.listener = None
        elif not refuses and link.listener is None:
            link.listen()
            self.selector.register(link.listener, selectors.EVENT_READ, link)

    def set_mode(self, link, mode, drop=False):
        """drop: the connections that exist are closed."""
        with self.lock:
            link.mode = mode
            for pair in list(link.pairs):
                if drop or mode == CLOSED:
                    self.close(pair)
                else:
                    self.flush(pair)
            self.look(link)
        self.wake_write.send(b".")

    def end(self):
        self.ending = True
        self.wake_write.send(b".")
        self.join()
        for link in self.links:
            if link.listener is not None:
                link.listener.close()

    def close(self, pair):
        if pair.ended:
            return
        pair.ended = True
        pair.link.pairs.discard(pair)
        for side in pair.sides:
            self.selector.unregister(side)
            side.close()

    def accept(self, link):
        try:
            node, _ = link.listener.accept()
        except OSError:
            return
        try:
            server = link.connect()
        except OSError:
            node.close()
            self.look(link)
            return
        pair = Pair(link, node, server)
        link.pairs.add(pair)
        for side in pair.sides:
            side.setblocking(False)
            self.selector.register(side, selectors.EVENT_READ, pair)

    def flush(self, pair):
        """Sends what may be sent, and waits for room for the rest."""
        for side in pair.sides:
            try:
                while pair.queue[side] and pair.may_send(side):
                    pair.queue[side] = pair.queue[side][side.send(pair.queue[side]):]
            except BlockingIOError:
                pass
            except OSError:
                self.close(pair)
                return
        for side in pair.sides:
            waits = selectors.EVENT_WRITE if pair.queue[side] and pair.may_send(side) else 0
            self.selector.modify(side, selectors.EVENT_READ | waits, pair)

    def receive(self, pair, side):
        try:
            data = side.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:  # held bytes are lost with the connection
            self.close(pair)
            if side is pair.sides[1]:
                self.look(pair.link)
        else:
            pair.queue[pair.other(side)] += data
            self.flush(pair)

    def run(self):
        while not self.ending:
            ready = self.selector.select(LOOK_S)
            with self.lock:
                for link in self.links:
                    if link.listener is None and link.mode != CLOSED:
                        self.look(link)
                for key, events in ready:
                    if key.fileobj is self.wake_read:
                        self.wake_read.recv(64)
                    elif isinstance(key.data, Link):
                        if key.fileobj is key.data.listener:
                            self.accept(key.data)
                    elif not key.data.ended and events & selectors.EVENT_READ:
                        self.receive(key.data, key.fileobj)
                    elif not key.data.ended:
                        self.flush(key.data)
