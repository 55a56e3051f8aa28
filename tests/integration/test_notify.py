#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: threads sanitized
"""pushbroom-notify with a real service, real HTTP servers, a real MQTT broker and real programs: deliveries, signatures, and
that nothing is lost when either side is killed or a receiver is away."""
import base64
import hashlib
import hmac
import http.server
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from daemon_kit import BIN, DaemonCase  # noqa: E402
from patience import finish, wait_for  # noqa: E402
from pbtest import main  # noqa: E402

SECRET = b"an old secret of the receivers"
MOSQUITTO = shutil.which("mosquitto", path=os.environ.get("PATH", "") + ":/usr/sbin")


RESERVED = []  # sockets in the abstract namespace: other processes of these tests look for another port


def free_port():
    """A port that no process has until this one ends: none of those that the kernel gives away by itself."""
    first_given = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    for port in random.sample(range(1024, first_given), first_given - 1024):
        reserved, tried = socket.socket(socket.AF_UNIX), socket.socket()
        try:
            reserved.bind("\0pushbroom-test-port-%d" % port)
            tried.bind(("127.0.0.1", port))
        except OSError:
            reserved.close()
            continue
        finally:
            tried.close()
        RESERVED.append(reserved)
        return port
    raise OSError("no port is free")


class Receiver:
    """An HTTP server that keeps what it gets; answer: of each request, what to answer (200); -200: with a text without
    end."""

    def __init__(self, port=0, tls=None, answer=None):
        receiver = self
        self.got = []
        self.answer = answer or (lambda n: 200)

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.got.append((dict(self.headers), body))
                status = receiver.answer(len(receiver.got))
                if status is None:  # takes it and sends nothing
                    self.close_connection = True
                    return
                endless = status < 0
                self.send_response(abs(status))
                self.send_header("Content-Length", str(10 ** 15) if endless else "4")
                try:
                    self.end_headers()
                    self.wfile.write(b"text")
                    while endless:
                        self.wfile.write(b"x" * 65536)
                except OSError:  # the client was killed
                    self.close_connection = True

            def log_message(self, *_):
                pass

            def handle(self):
                try:
                    super().handle()
                except OSError:  # the client was killed
                    pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self.thread.start()

    def events(self):
        return [json.loads(body) for _, body in self.got]

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


class Notify(DaemonCase):
    def secret(self, d, name="secret", text=SECRET + b"\n", mode=0o600):
        path = d.root / name
        path.write_bytes(text)
        path.chmod(mode)
        return path

    def service(self, notify, start=True, **settings):
        """A service with these entries, each tried again soon, and pushbroom-notify."""
        d = self.daemon(start=False, stall="300s", **settings)
        notify = notify(d) if callable(notify) else notify
        self.write(d, notify)
        d.start()
        if start:
            self.notifier(d)
        return d

    def write(self, d, entries):
        d.plain = d.plain if hasattr(d, "plain") else d.config.read_text()
        d.config.write_text(d.plain + "notify:\n" + "".join(
            "  - %s: {retry: 300ms, timeout: 60s, %s}\n" % entry for entry in entries))

    def notifier(self, d, **env):
        d.notify_log = d.root / "notify.log"
        with open(d.notify_log, "ab") as log:
            process = subprocess.Popen([str(BIN / "pushbroom-notify"), "--config", str(d.config), "-v"], stderr=log,
                                       stdin=subprocess.DEVNULL, env=dict(os.environ, **env))
        self.addCleanup(self.end, d, process)
        d.notify = process
        return process

    def end(self, d, process):
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            finish(process)
            text = self.log(d)
            self.assertEqual(process.returncode, 0, text)
            self.assertNotIn("Sanitizer", text)
            self.assertNotIn("runtime error:", text)

    def log(self, d):
        return d.notify_log.read_text() if d.notify_log.exists() else ""

    def receiver(self, **options):
        receiver = Receiver(**options)
        self.addCleanup(receiver.stop)
        return receiver

    def run_one(self, d, name, text="ok"):
        d.drop(name, text)
        return d.wait_job(name, "failed" if text == "fail" else "successful")

    def wait(self, d, what):
        try:
            return wait_for(what)
        except AssertionError:
            raise AssertionError(self.log(d) + d.log_text())

    def waiting(self, d):
        return {n["name"]: n["waiting"] for n in d.call("service.info")["notify"]}

    # --- webhooks

    def test_a_webhook_gets_signed_cloud_events_in_order(self):
        receiver = self.receiver()
        d = self.service(lambda d: [("webhook", "url: \"http://127.0.0.1:%d/hook\", secret_file: %s, token_file: %s,"
                                     " events: [\"*\"]" % (receiver.port, self.secret(d),
                                                           self.secret(d, "token", b"abc123\n")))])
        job = self.run_one(d, "a.tif")
        self.run_one(d, "b.tif", "fail")
        self.wait(d, lambda: len(receiver.got) == 8)
        events = receiver.events()
        self.assertEqual([e["type"] for e in events],
                         ["pushbroom." + t for t in ("job.accepted", "job.running", "job.successful", "product.published",
                                                     "job.accepted", "job.running", "job.failed", "input.quarantined")])
        done = events[2]
        self.assertEqual((done["specversion"], done["subject"], done["datacontenttype"]), ("1.0", job["id"], "application/json"))
        self.assertEqual(done["source"], "//%s/pushbroom" % socket.gethostname())
        for told in (done["data"]["job"], job):  # the input is put away afterwards
            told.pop("input")
        self.assertEqual(done["data"]["job"], {k: v for k, v in job.items() if k != "report"})
        self.assertEqual(events[3]["data"]["product"], job["products"][0])
        self.assertEqual(events[6]["data"]["job"]["error"]["code"], "input.truncated")
        self.assertEqual(sorted(e["sequence"] for e in events), [e["sequence"] for e in events])
        self.assertEqual(len({e["id"] for e in events}), 8)
        for headers, body in receiver.got:
            text = b"%s.%s." % (headers["webhook-id"].encode(), headers["webhook-timestamp"].encode()) + body
            right = base64.b64encode(hmac.new(SECRET, text, hashlib.sha256).digest()).decode()
            self.assertEqual(headers["webhook-signature"], "v1," + right)
            self.assertEqual(headers["webhook-id"], json.loads(body)["id"])
            self.assertLess(abs(time.time() - int(headers["webhook-timestamp"])), 300)
            self.assertEqual(headers["Authorization"], "Bearer abc123")
            self.assertEqual(headers["Content-Type"], "application/cloudevents+json; charset=UTF-8")
        self.wait(d, lambda: self.waiting(d) == {"webhook": 0})
        for secret in (SECRET.decode(), "abc123"):
            self.assertNotIn(secret, self.log(d) + d.log_text() + json.dumps(d.call("service.info")))

    def test_a_key_in_base64_as_standard_webhooks_has_it(self):
        receiver = self.receiver()
        key = bytes(range(32))
        d = self.service(lambda d: [("webhook", "url: \"http://127.0.0.1:%d/\", secret_file: %s" % (
            receiver.port, self.secret(d, text=b"whsec_" + base64.b64encode(key))))])
        self.run_one(d, "a.tif")
        self.wait(d, lambda: receiver.got)
        headers, body = receiver.got[0]
        text = b"%s.%s." % (headers["webhook-id"].encode(), headers["webhook-timestamp"].encode()) + body
        self.assertEqual(headers["webhook-signature"],
                         "v1," + base64.b64encode(hmac.new(key, text, hashlib.sha256).digest()).decode())

    def test_filters_by_event_and_pipeline(self):
        failed, nothing = self.receiver(), self.receiver()
        d = self.service([("webhook", "name: failed, events: [job.failed], url: \"http://127.0.0.1:%d/\"" % failed.port),
                          ("webhook", "name: nothing, events: [\"job.dis*\"], pipelines: [\"pl*\"],"
                           " url: \"http://127.0.0.1:%d/\"" % nothing.port)])
        self.run_one(d, "a.tif")
        self.run_one(d, "b.tif", "fail")
        self.wait(d, lambda: failed.got)
        self.assertEqual([e["type"] for e in failed.events()], ["pushbroom.job.failed"])
        self.assertEqual(nothing.got, [])

    def test_receiver_that_was_down_gets_all_events_later(self):
        port = free_port()
        d = self.service([("webhook", "url: \"http://127.0.0.1:%d/\", overdue: 500ms" % port)])
        for i in range(3):
            self.run_one(d, "%d.tif" % i)
        self.wait(d, lambda: "3 events are not delivered to 'webhook'" in (d.trouble("notify") or {"message": ""})["message"])
        self.assertIn("is not delivered: http://127.0.0.1:%d/: " % port, self.log(d))
        receiver = self.receiver(port=port)
        self.wait(d, lambda: len(receiver.got) == 3)
        self.assertEqual([e["data"]["job"]["name"] for e in receiver.events()], ["0.tif", "1.tif", "2.tif"])
        self.wait(d, lambda: not d.trouble("notify"))
        self.assertIn("is delivered after", self.log(d))
        self.assertLessEqual(self.log(d).count("is not delivered"), 3)

    def test_answers_that_are_no_success(self):
        receiver = self.receiver(answer=lambda n: {1: 503, 2: None, 3: 302, 4: 404}.get(n, 200))
        d = self.service([("webhook", "url: \"http://127.0.0.1:%d/\"" % receiver.port)])
        self.run_one(d, "a.tif")
        self.wait(d, lambda: self.waiting(d) == {"webhook": 0} and len(receiver.got) == 5)
        self.assertEqual(len({e["id"] for e in receiver.events()}), 1)
        self.assertIn("answers 503: text; tried again", self.log(d))

    def test_an_answer_without_end_is_an_answer(self):
        receiver = self.receiver(answer=lambda n: -500 if n == 1 else -200)
        d = self.service([("webhook", "url: \"http://127.0.0.1:%d/\", events: [job.successful]" % receiver.port)])
        self.run_one(d, "a.tif")
        self.run_one(d, "b.tif")
        self.wait(d, lambda: self.waiting(d) == {"webhook": 0})
        self.assertEqual([e["data"]["job"]["name"] for e in receiver.events()], ["a.tif", "a.tif", "b.tif"])
        self.assertIn("answers 500: text", self.log(d))

    def test_refused_event_delays_others_for_limited_time(self):
        receiver = self.receiver(answer=lambda n: 422 if n <= 5 else 200)
        d = self.service([("webhook", "url: \"http://127.0.0.1:%d/\"" % receiver.port)])
        self.run_one(d, "a.tif")
        self.run_one(d, "b.tif")
        self.wait(d, lambda: len(receiver.got) == 6)
        self.assertEqual([e["data"]["job"]["name"] for e in receiver.events()], ["a.tif"] * 5 + ["b.tif"])
        self.assertIn("is refused and given up after 5 tries", self.log(d))
        self.wait(d, lambda: [(n["delivered"], n["given_up"]) for n in d.call("service.info")["notify"]] == [(1, 1)])

    def test_what_expires_is_told(self):
        d = self.service([("webhook", "url: \"http://127.0.0.1:%d/\", expire: 1s" % free_port())])
        self.run_one(d, "a.tif")
        time.sleep(1.2)  # longer than its expire
        for i in range(30):  # commits, after which the journal is looked through
            d.drop("%d.tif" % i)
        d.wait_for(lambda: d.call("service.info")["jobs"]["successful"] == 31)
        self.wait(d, lambda: d.call("service.info")["notify"][0]["expired"] > 0)
        self.wait(d, lambda: "waited for longer than its expire" in d.log_text())

    def test_tls_is_verified(self):
        d = self.daemon(start=False, stall="300s")
        key, cert = str(d.root / "key.pem"), str(d.root / "cert.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
                        "subjectAltName=DNS:localhost", "-keyout", key, "-out", cert], check=True, capture_output=True)
        receiver = self.receiver(tls=(cert, key))
        known, unknown, other = [("webhook", "name: %s, url: \"https://%s:%d/\"%s" % (name, host, receiver.port, ca))
                                 for name, host, ca in (("known", "localhost", ", ca_file: " + cert), ("unknown", "localhost", ""),
                                                        ("other", "127.0.0.1", ", ca_file: " + cert))]
        self.write(d, [known, unknown, other])
        d.start()
        self.notifier(d)
        self.run_one(d, "a.tif")
        self.wait(d, lambda: receiver.got and "unknown: job.successful" in self.log(d) and "other: job.successful" in self.log(d))
        self.assertEqual(len(receiver.got), 1)
        self.assertIn("certificate", self.log(d))

    def test_readable_or_missing_secret_is_refused(self):
        receiver = self.receiver()
        d = self.service(lambda d: [
            ("webhook", "name: open, url: \"http://127.0.0.1:%d/\", secret_file: %s" % (
                receiver.port, self.secret(d, "open", mode=0o644))),
            ("webhook", "name: none, url: \"http://127.0.0.1:%d/\", secret_file: /nonexistent" % receiver.port),
            ("webhook", "name: credential, url: \"http://127.0.0.1:%d/\", secret_file: hook" % receiver.port)], start=False)
        credentials = d.root / "credentials"
        credentials.mkdir()
        (credentials / "hook").write_bytes(SECRET)
        (credentials / "hook").chmod(0o400)
        self.notifier(d, CREDENTIALS_DIRECTORY=str(credentials))
        self.run_one(d, "a.tif")
        self.wait(d, lambda: receiver.got and self.log(d).count("[notify.secret]") >= 2)
        self.assertEqual(len(receiver.got), 1)
        self.assertIn("is open to all users (mode 0644)", self.log(d))
        (d.root / "open").chmod(0o600)  # read again for each try
        self.wait(d, lambda: len(receiver.got) == 2)

    # --- kills

    def test_kills_of_notifier_lose_nothing_and_keep_ids(self):
        killed = threading.Event()

        def answer(n):
            if n % 3 == 0:  # the event is taken, and the notifier dies before it gets the reply
                d.notify.send_signal(signal.SIGKILL)
                killed.set()
            return 200
        receiver = self.receiver(answer=answer)
        d = self.service([("webhook", "url: \"http://127.0.0.1:%d/\"" % receiver.port)])
        names = ["%d.tif" % i for i in range(6)]
        for name in names:
            self.run_one(d, name)

        def all_there():
            if killed.is_set():
                d.notify.wait()
                killed.clear()
                self.notifier(d)
            return self.waiting(d) == {"webhook": 0} and len({e["id"] for e in receiver.events()}) == 6
        self.wait(d, all_there)
        events = receiver.events()
        self.assertGreater(len(events), 6)  # twice, which is right
        first = list(dict.fromkeys(e["id"] for e in events))
        self.assertEqual([e["data"]["job"]["name"] for i in first for e in [next(e for e in events if e["id"] == i)]], names)
        bodies = {}
        for event in events:
            self.assertEqual(bodies.setdefault(event["id"], event), event)

    def test_kills_of_the_service_lose_nothing(self):
        receiver = self.receiver()
        d = self.service([("webhook", "url: \"http://127.0.0.1:%d/\", events: [\"job.*\"]" % receiver.port)])
        for i in range(4):
            d.drop("%d.tif" % i)
            if i % 2:
                d.wait_job("%d.tif" % i, "successful")
            else:
                time.sleep(0.1 * i)
            d.process.send_signal(signal.SIGKILL)
            d.process.wait()
            d.start()
        d.wait_for(lambda: d.call("service.info")["jobs"]["successful"] == 4)
        self.wait(d, lambda: self.waiting(d) == {"webhook": 0})
        ends = [(e["data"]["job"]["name"], e["id"]) for e in receiver.events() if e["type"] == "pushbroom.job.successful"]
        self.assertEqual(sorted(name for name, _ in dict.fromkeys(ends)), ["%d.tif" % i for i in range(4)])
        self.assertIn("the service answers", self.log(d))

    def test_notifier_may_start_late_and_change_receiver(self):
        first, second = self.receiver(), self.receiver()
        d = self.service([("webhook", "url: \"http://127.0.0.1:%d/\"" % first.port)], start=False)
        self.run_one(d, "a.tif")
        self.notifier(d)
        # The service knows that it was delivered; its own count of what waits is of a moment ago.
        self.wait(d, lambda: first.got and not d.call("event.list", target="webhook", limit=1)["events"])
        self.write(d, [("webhook", "url: \"http://127.0.0.1:%d/\"" % second.port)])
        d.process.send_signal(signal.SIGHUP)
        d.notify.send_signal(signal.SIGHUP)
        self.wait(d, lambda: self.log(d).count("are delivered to 1 receiver") == 2)
        self.run_one(d, "b.tif")
        self.wait(d, lambda: second.got)
        self.assertEqual(second.events()[0]["data"]["job"]["name"], "b.tif")
        d.config.write_text("nonsense")
        d.notify.send_signal(signal.SIGHUP)
        self.wait(d, lambda: "reload: refused" in self.log(d))
        self.run_one(d, "c.tif")
        self.wait(d, lambda: len(second.got) == 2)

    # --- programs

    def script(self, d, name, text, program="/usr/bin/python3"):
        path = d.root / name
        path.write_text("#!%s\n%s" % (program, text))
        path.chmod(0o755)
        return path

    def test_a_program_gets_the_event_and_nothing_else(self):
        d = self.service(lambda d: [("exec", "command: [%s, \"%s\", \"$HOME; *\"]" % (self.script(
            d, "tell", "import json, os, sys\nfds = sorted(int(f) for f in os.listdir('/proc/self/fd'))\n"
            "print(json.dumps({'event': json.load(sys.stdin), 'argv': sys.argv[2:], 'env': dict(os.environ), 'fds': fds,"
            " 'cwd': os.getcwd(), 'blocked': open('/proc/self/status').read().split('SigBlk:')[1].split()[0],"
            " 'ignored': open('/proc/self/status').read().split('SigIgn:')[1].split()[0]}), file=open(sys.argv[1] + '.tmp', 'w'))\n"
            "os.rename(sys.argv[1] + '.tmp', sys.argv[1])\n"), d.root / "out.json"))])
        job = self.run_one(d, "a.tif")
        self.wait(d, (d.root / "out.json").exists)
        out = json.loads((d.root / "out.json").read_text())
        self.assertEqual(out["event"]["data"]["job"]["id"], job["id"])
        self.assertEqual(out["argv"], ["$HOME; *"])
        self.assertEqual(set(out["env"]) - {"LC_CTYPE"}, {"PATH", "LANG", "PUSHBROOM_EVENT_ID", "PUSHBROOM_EVENT"})
        self.assertEqual(out["env"]["PUSHBROOM_EVENT_ID"], out["event"]["id"])
        self.assertEqual(out["fds"][:4], [0, 1, 2, 3])  # 3 lists the others
        self.assertEqual(len(out["fds"]), 4)
        self.assertEqual((out["cwd"], int(out["blocked"], 16)), ("/", 0))
        self.assertEqual(int(out["ignored"], 16) & ~(1 << 12 | 1 << 24), 0)  # SIGPIPE and SIGXFSZ are Python's own

    def test_programs_that_fail_hang_or_are_not_there(self):
        d = self.service(lambda d: [
            ("exec", "name: fails, command: [%s]" % self.script(
                d, "fails", "import os, sys\np = '%s'\nif os.path.exists(p): open(p + '2', 'w'); sys.exit()\n"
                "open(p, 'w')\nsys.exit('no such catalogue')\n" % (d.root / "tried"))),
            ("exec", "name: hangs, command: [%s]" % self.script(
                d, "hangs", "trap '' TERM\nsleep 1000 &\necho $! > %s.new\nmv %s.new %s\nwait\n" % (3 * (d.root / "pid",)), "/bin/sh")),
            ("exec", "name: missing, command: [/nonexistent/program]")], start=False)
        d.change("timeout: 60s, name: hangs", "timeout: 1s, name: hangs")
        self.notifier(d)
        self.run_one(d, "a.tif")
        self.wait(d, (d.root / "tried2").exists)
        self.wait(d, (d.root / "pid").exists)
        child = int((d.root / "pid").read_text())
        self.wait(d, lambda: not pathlib.Path("/proc/%d" % child).exists())
        for words in ("hangs ran for longer than its timeout", "fails ended with status 1: no such catalogue",
                      "/nonexistent/program cannot be started: No such file or directory"):
            self.wait(d, lambda: words in self.log(d))

    # --- MQTT

    def broker(self, d, port, *lines):
        config = d.root / "mosquitto.conf"
        config.write_text("listener %d 127.0.0.1\n" % port + "".join(line + "\n" for line in lines or ("allow_anonymous true",)))
        config.chmod(0o644)
        process = subprocess.Popen([MOSQUITTO, "-c", str(config)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        def stop():
            process.kill()
            process.wait()
        self.addCleanup(stop)

        def is_up():
            with socket.socket() as s:
                return s.connect_ex(("127.0.0.1", port)) == 0
        wait_for(is_up)
        return stop

    def subscriber(self, port, topic, *options):
        process = subprocess.Popen(["stdbuf", "-oL", "mosquitto_sub", "-h", "127.0.0.1", "-p", str(port), "-t", topic, "-q", "1", "-v", "-d", *options],
                                   stdout=subprocess.PIPE, text=True)
        lines = []
        thread = threading.Thread(target=lambda: lines.extend(iter(process.stdout.readline, "")), daemon=True)
        thread.start()
        for step in (process.stdout.close, process.wait, thread.join, process.kill):  # the last one first
            self.addCleanup(step)
        wait_for(lambda: any("SUBACK" in line for line in lines))
        return lambda: [line.split(" ", 1) for line in lines if line.startswith("pb/")]

    @unittest.skipUnless(MOSQUITTO and shutil.which("mosquitto_sub"), "no mosquitto here (packages mosquitto, mosquitto-clients)")
    def test_broker_gets_events_of_its_downtime_too(self):
        port = free_port()
        d = self.service([("mqtt", "host: 127.0.0.1, port: %d, tls: off, topic: \"pb/{pipeline}/{event}/{scene}\"," % port +
                           " events: [job.successful, product.published]")])
        stop = self.broker(d, port)
        messages = self.subscriber(port, "pb/#")
        self.run_one(d, "a.tif")
        self.wait(d, lambda: len(messages()) == 2)
        self.assertEqual([topic for topic, _ in messages()], ["pb/plain/job.successful/a", "pb/plain/product.published/a"])
        self.assertEqual(json.loads(messages()[0][1])["data"]["job"]["name"], "a.tif")
        stop()
        self.run_one(d, "b.tif")
        self.wait(d, lambda: "cannot connect" in self.log(d) or "no confirmation" in self.log(d))
        self.broker(d, port)
        again = self.subscriber(port, "pb/#")
        self.run_one(d, "c.tif")
        self.wait(d, lambda: self.waiting(d) == {"mqtt": 0})
        self.wait(d, lambda: "pb/plain/product.published/c" in [topic for topic, _ in again()])

    @unittest.skipUnless(MOSQUITTO and shutil.which("mosquitto_sub"), "no mosquitto here (packages mosquitto, mosquitto-clients)")
    def test_a_broker_with_tls_and_a_password(self):
        port = free_port()
        d = self.daemon(start=False, stall="300s")
        d.root.chmod(0o755)
        key, cert, users = d.root / "key.pem", d.root / "cert.pem", d.root / "users"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
                        "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(cert)], check=True, capture_output=True)
        subprocess.run(["mosquitto_passwd", "-c", "-b", str(users), "pushbroom", SECRET.decode()], check=True, capture_output=True)
        for path in (key, users):
            path.chmod(0o644)  # mosquitto has a user of its own
        self.broker(d, port, "certfile %s" % cert, "keyfile %s" % key, "allow_anonymous false", "password_file %s" % users)
        wrong = self.secret(d, "wrong", b"wrong")
        base = "host: localhost, port: %d, topic: \"pb/{event}\", user: pushbroom, " % port
        self.write(d, [("mqtt", "name: good, %spassword_file: %s, ca_file: %s" % (base, self.secret(d), cert)),
                       ("mqtt", "name: wrong, %spassword_file: %s, ca_file: %s" % (base, wrong, cert)),
                       ("mqtt", "name: unknown, %spassword_file: %s" % (base, self.secret(d)))])
        messages = self.subscriber(port, "pb/#", "--cafile", str(cert), "-h", "localhost", "-u", "pushbroom", "-P", SECRET.decode())
        d.start()
        self.notifier(d)
        self.run_one(d, "a.tif")
        self.wait(d, lambda: messages() and "wrong: job.successful" in self.log(d) and "unknown: job.successful" in self.log(d))
        self.assertEqual(len(messages()), 1)
        self.assertNotIn(SECRET.decode(), self.log(d))
        self.assertIn("refuses the connection", self.log(d))

    # --- the program

    def test_usage_and_a_bad_configuration(self):
        program = str(BIN / "pushbroom-notify")
        self.assertIn("usage: pushbroom-notify", subprocess.run([program, "--help"], capture_output=True, text=True).stdout)
        self.assertEqual(subprocess.run([program, "x"], capture_output=True).returncode, 2)
        done = subprocess.run([program, "-c", "/nonexistent"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("/nonexistent", done.stderr)

    def test_an_entry_that_the_service_does_not_know_yet(self):
        receiver = self.receiver()
        d = self.daemon(start=False, stall="300s")
        d.start()
        self.write(d, [("webhook", "url: \"http://127.0.0.1:%d/\"" % receiver.port)])
        self.notifier(d)
        self.wait(d, lambda: "the service has no entry 'webhook' under notify [notify.unknown]" in self.log(d))
        d.process.send_signal(signal.SIGHUP)
        self.wait(d, lambda: "the service answers" in self.log(d))
        self.run_one(d, "a.tif")
        self.wait(d, lambda: receiver.got)


if __name__ == "__main__":
    main(workers=3)
