# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""pushbroom-web for the integration tests: the program, requests, and streams of events."""
import http.client
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import threading

from daemon_kit import BIN
from patience import PATIENCE_S, finish, wait_for

PIPELINES = """pipelines:
  ndvi:
    input: {match: ["*.tif"], bands: {R: 1, N: 2}}
    steps: [index: {names: [NDVI]}]
    products: [cog: {bands: [NDVI]}, quicklook: {bands: [NDVI], ramp: ndvi}, statistics, stac: {datetime: "2026-01-01T00:00:00Z"}]
"""


class Silent:
    """A service on a socket that answers some methods with a result or an error, and the others never."""

    def __init__(self, path, answers):
        self.answers, self.asked = answers, []
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen(64)
        self.threads, self.connections = [], []
        self.start(self.accept)

    def start(self, target, *args):
        self.threads.append(threading.Thread(target=target, args=args))
        self.threads[-1].start()

    def accept(self):
        while True:
            try:
                connection = self.listener.accept()[0]
            except OSError:
                return
            self.connections.append(connection)
            self.start(self.serve, connection)

    def serve(self, connection):
        try:
            for line in connection.makefile("rb"):
                call = json.loads(line)
                self.asked.append(call["method"])
                if call["method"] in self.answers:
                    connection.sendall(json.dumps({"jsonrpc": "2.0", "id": call["id"], **self.answers[call["method"]]}).encode() + b"\n")
        except OSError:
            pass

    def stop(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.threads[0].join()
        for connection in self.connections:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        for thread in self.threads[1:]:
            thread.join()
        for connection in [self.listener, *self.connections]:
            connection.close()


def make_certificate(folder):
    """Files of a certificate for 127.0.0.1 that its own key signs, and of the key."""
    files = folder / "web.pem", folder / "web.key"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-out", str(files[0]), "-keyout", str(files[1])], check=True, capture_output=True)
    files[1].chmod(0o600)
    return files


class UnixConnection(http.client.HTTPConnection):
    """A connection of a proxy to the Unix socket of pushbroom-web."""

    def __init__(self, path):
        super().__init__("localhost", timeout=PATIENCE_S)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Reply:
    def __init__(self, response):
        self.status, self.headers, self.body = response.status, response.headers, response.read()

    def json(self):
        return json.loads(self.body)


class Stream:
    """Server-sent events of /events."""

    def __init__(self, web, last=None):
        self.connection = web.connect()
        self.connection.request("GET", "/events", headers={"Last-Event-ID": last} if last else {})
        self.response = self.connection.getresponse()
        assert self.response.status == 200, self.response.read()
        self.last = last

    def event(self):
        """The next one: its kind and data; comments are passed over."""
        fields = {}
        while True:
            line = self.response.readline().decode().rstrip("\n")
            if not line and "event" in fields:
                self.last = fields["id"]
                return fields["event"], json.loads(fields["data"])
            name, _, value = line.partition(": ")
            if name:
                fields[name] = value

    def wait(self, kind, match=lambda data: True):
        while True:
            found, data = self.event()
            if found == kind and match(data):
                return data

    def close(self):
        self.connection.sock.close() if self.connection.sock else None
        self.response.close()


class Web:
    """pushbroom-web on a free port, or on a Unix socket. `prefix`: arguments before its command line."""

    def __init__(self, socket_path, log, *options, prefix=(), user=None, unix=None, certificate=None, key=None):
        self.log, self.unix, self.certificate = log, unix, certificate
        begun = log.stat().st_size if log.exists() else 0
        if certificate:
            options += "--certificate", str(certificate), "--key", str(key)
        command = [*prefix, str(BIN / "pushbroom-web"), "--socket", str(socket_path), "--listen", "unix:%s" % unix if unix else "127.0.0.1:0", *options]
        with open(log, "ab") as out:
            self.process = subprocess.Popen(command, stderr=out, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, user=user, group=user,
                                            extra_groups=None if user is None else [])
        found = wait_for(lambda: self.process.poll() is not None or re.search(rb"serves (?:unix:|https?://127.0.0.1:(\d+)/)", log.read_bytes()[begun:]))
        self.port = 0 if unix else int(found.group(1))

    def connect(self):
        if self.unix:
            return UnixConnection(str(self.unix))
        if self.certificate:
            return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=PATIENCE_S, context=ssl.create_default_context(cafile=str(self.certificate)))
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)

    def get(self, path, method="GET", body=None, **headers):
        connection = self.connect()
        try:
            connection.request(method, path, body, headers={name.replace("_", "-"): value for name, value in headers.items()})
            return Reply(connection.getresponse())
        finally:
            connection.close()

    def json(self, path):
        reply = self.get(path)
        assert reply.status == 200, (path, reply.status, reply.body)
        return reply.json()

    def post(self, path, body, **headers):
        return self.get(path, "POST", json.dumps(body).encode(), Content_Type="application/json", **headers)

    def raw(self, data):
        """The whole answer to bytes; the server ends the connection."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S) as connection:
            connection.sendall(data)
            answer = b""
            try:
                while block := connection.recv(65536):
                    answer += block
            except ConnectionResetError:
                pass
            return answer

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        finish(self.process)
        text = self.log.read_text(errors="replace")
        assert self.process.returncode == 0, (self.process.returncode, text)
        for word in ("Sanitizer", "runtime error:"):
            assert word not in text, text


def memory_kb(pid):
    """Proportional memory of a process."""
    with open(os.path.join("/proc", str(pid), "smaps_rollup")) as file:
        return next(int(line.split()[1]) for line in file if line.startswith("Pss:"))
