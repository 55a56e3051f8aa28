#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: threads sanitized
"""The numbered changes of jobs: job.watch since one of them, over restarts and kills; event.list and event.ack."""
import contextlib
import os
import signal
import sqlite3
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from daemon_kit import DaemonCase, RpcError  # noqa: E402
from pbtest import main  # noqa: E402

LIFE = ["job.accepted", "job.running", "job.successful"]
NOTIFY = """notify:
  - exec: {name: all, command: [/bin/true], events: ["job.*"], overdue: 1s}
  - exec: {name: bad, command: [/bin/true], events: [job.failed, input.quarantined]}
"""


class Journal(DaemonCase):
    def daemon(self, notify="", **settings):
        d = super().daemon(start=False, stall="300s", **settings)
        d.config.write_text(d.config.read_text() + notify)
        return d.start()

    def watch(self, d, **params):
        client = d.client()
        self.addCleanup(client.close)
        client.first = client.call("job.watch", **params)
        return client

    def changes(self, client, n):
        """The next n changes of states; progress of running jobs, and products, are left out."""
        found = []
        while len(found) < n:
            event = client.event()
            found += [event] if event.get("event", "").startswith("job.") else []
        return found

    def life(self, d, name, text="ok"):
        d.drop(name, text)
        return d.wait_job(name, "failed" if text == "fail" else "successful")["id"]

    def test_who_comes_back_misses_nothing(self):
        d = self.daemon()
        start = self.watch(d).first["seq"]
        ids = [self.life(d, "%d.tif" % i) for i in range(3)]
        client = self.watch(d, since=start)
        self.assertEqual((client.first["gone"], client.first["seq"]), (False, start))
        replayed = self.changes(client, 3 * len(LIFE))
        self.assertEqual([e["event"] for e in replayed][:3], LIFE)
        seqs = [e["seq"] for e in replayed]
        self.assertEqual(seqs, sorted(set(seqs)))
        d.drop("live.tif")
        live = [e["data"]["job"] for e in self.changes(client, 3)]
        self.assertEqual([(j["name"], "job." + j["status"]) for j in live], [("live.tif", event) for event in LIFE])
        self.assertEqual({e["id"] for e in replayed}, {"%s-%d" % (e["data"]["job"]["id"], e["seq"]) for e in replayed})
        own = d.call("job.events", id=ids[1])["events"]
        self.assertEqual([e["event"] for e in own if e["event"] != "product.published"], LIFE)
        self.assertEqual([(e["seq"], e["time"]) for e in own], sorted((e["seq"], e["time"]) for e in own))
        self.assertEqual(d.call("job.events", id=ids[1], since=own[0]["seq"], limit=1)["events"], own[1:2])
        steps = d.call("job.events", id=ids[1])
        log = [line for event in steps["events"] for line in event["log"]] + steps["log"]
        self.assertEqual(log, sorted(log, key=lambda line: line["time"]))
        self.assertEqual(len({line["text"] for line in log}), len(log))  # none is in two places
        self.assertTrue(any(line["text"].startswith("1.tif done in") and line["level"] == "notice" for line in log), log)
        self.assertNotIn("0.tif", str(log))
        d.stop()
        d.start()  # lines before the end are in the store
        steps = d.call("job.events", id=ids[1])
        self.assertEqual(steps["log"], [])
        kept = [line for event in steps["events"] for line in event["log"]]
        self.assertEqual(kept, log[:len(kept)])
        self.assertIn("1.tif through", str(kept))
        client = self.watch(d, since=start)
        one = self.watch(d, since=start, id=ids[1])
        self.assertEqual({e["data"]["job"]["id"] for e in self.changes(one, 3)}, {ids[1]})

    def test_watch_ends_if_its_events_were_lost(self):
        """They are lost when a database continues on a server that lacks its last changes."""
        d = self.daemon()
        self.life(d, "a.tif")
        since = self.watch(d).first["seq"]
        client = self.watch(d, since=since)
        with contextlib.closing(sqlite3.connect(d.root / "state/jobs.db", timeout=60)) as db, db:
            db.execute("DELETE FROM events")
            db.execute("UPDATE sqlite_sequence SET seq = seq - 1000 WHERE name = 'events'")
        self.life(d, "b.tif")
        while client.line() is not None:
            pass
        self.assertTrue(self.watch(d, since=since).first["gone"])

    def test_numbers_survive_a_kill_once_they_are_sent(self):
        d = self.daemon()
        start = self.watch(d).first["seq"]
        self.life(d, "a.tif")
        before = self.changes(self.watch(d, since=start), 3)
        d.drop("b.tif", "slow 60")
        d.wait_job("b.tif", "running")
        d.process.send_signal(signal.SIGKILL)
        d.process.wait()
        d.start()
        client = self.watch(d, since=start)
        self.assertFalse(client.first["gone"])
        self.assertEqual(self.changes(client, 3), before)
        rest = [(e["event"], e["data"]["job"]["name"]) for e in self.changes(client, 3)]
        self.assertEqual(rest, [("job.accepted", "b.tif"), ("job.running", "b.tif"), ("job.accepted", "b.tif")])

    def test_numbers_that_are_gone_are_said_so(self):
        d = self.daemon()
        self.life(d, "a.tif")
        last = self.watch(d).first["seq"]
        for since in (0, 1, last + 1):
            client = self.watch(d, since=since)
            self.assertEqual((client.first["gone"], client.first["seq"]), (True, last), since)
        d.drop("b.tif")
        first = self.changes(client, 1)[0]
        self.assertGreater(first["seq"], last)
        self.assertEqual(first["data"]["job"]["name"], "b.tif")
        with self.assertRaises(RpcError) as caught:
            d.call("job.watch", since="x")
        self.assertIn("since is the number of an event", str(caught.exception))

    def test_a_client_that_reads_slowly_gets_all(self):
        d = self.daemon(parallel=4)
        start = self.watch(d).first["seq"]
        client = self.watch(d, since=start)
        for i in range(60):
            d.drop("%02d.tif" % i)
        d.wait_for(lambda: d.call("service.info")["jobs"]["successful"] == 60)
        events = self.changes(client, 180)
        self.assertEqual([e["event"] for e in events].count("job.successful"), 60)
        seqs = [e["seq"] for e in events]
        self.assertEqual(seqs, sorted(set(seqs)))

    def test_events_wait_for_targets_until_acknowledged(self):
        d = self.daemon(NOTIFY)
        self.life(d, "a.tif")
        self.life(d, "b.tif", "fail")
        d.wait_for(lambda: len(d.call("event.list", target="bad")["events"]) == 2)
        bad = d.call("event.list", target="bad")["events"]
        self.assertEqual([e["event"] for e in bad], ["job.failed", "input.quarantined"])
        self.assertEqual(bad[1]["data"]["job"]["input"], str(d.root / "quarantine" / "b.tif"))
        self.assertEqual([e["data"]["job"]["delivered"] for e in bad], [[str(d.root / "inbox/b.tif")]] * 2, "wherever it lies now")
        self.assertEqual(len(d.call("event.list", target="all")["events"]), 6)
        self.assertEqual(len(d.call("event.list", target="all", limit=2)["events"]), 2)
        self.assertEqual(d.call("event.ack", target="bad", seq=bad[0]["seq"]), {"target": "bad", "seq": bad[0]["seq"]})
        d.process.send_signal(signal.SIGKILL)
        d.process.wait()
        d.start()
        self.assertEqual(d.call("event.list", target="bad")["events"], bad[1:])
        d.call("event.ack", target="bad", seq=bad[1]["seq"], given_up=True)
        self.assertEqual({n["name"]: n["waiting"] for n in d.call("service.info")["notify"]}, {"all": 6, "bad": 0}, "as it is when asked")
        self.assertIn('pushbroom_notify_waiting{target="bad"} 0', d.call("service.metrics")["text"])
        self.assertEqual(d.call("event.list", target="bad")["events"], [])
        d.wait_trouble("notify", "6 events are not delivered to 'all', the oldest since")

        def states():
            return {n["name"]: (n["waiting"], n["delivered"], n["given_up"]) for n in d.call("service.info")["notify"]}
        d.wait_for(lambda: states() == {"all": (6, 0, 0), "bad": (0, 1, 1)})
        self.assertIn('pushbroom_notify_waiting{target="all"} 6', d.call("service.metrics")["text"])
        d.call("event.ack", target="all", seq=d.call("event.list", target="all")["events"][-1]["seq"])
        d.wait_for(lambda: not d.trouble("notify"))
        with self.assertRaises(RpcError) as caught:
            d.call("event.list", target="nobody")
        self.assertEqual(caught.exception.code, "notify.unknown")

    def test_an_entry_comes_and_goes_with_a_reload(self):
        d = self.daemon()
        self.life(d, "a.tif")
        config = d.config.read_text()
        d.config.write_text(config + NOTIFY)
        d.process.send_signal(signal.SIGHUP)
        d.wait_for(lambda: len(d.call("service.info")["notify"]) == 2)
        self.assertEqual(d.call("event.list", target="all")["events"], [])
        self.life(d, "b.tif")
        self.assertEqual(len(d.call("event.list", target="all")["events"]), 3)
        d.config.write_text(config)
        d.process.send_signal(signal.SIGHUP)
        d.wait_for(lambda: d.call("service.info")["notify"] == [])
        d.wait_for(lambda: "what waited for it is dropped" in d.log_text())

    def test_an_older_store_gets_a_journal(self):
        d = self.daemon()
        self.life(d, "a.tif")
        d.stop()
        with sqlite3.connect(d.root / "state" / "jobs.db") as db:
            db.executescript("DROP VIEW last_event; ALTER TABLE jobs DROP COLUMN bytes; ALTER TABLE jobs DROP COLUMN is_long; DROP TABLE gaps; ALTER TABLE jobs DROP COLUMN needs_gpu; ALTER TABLE jobs DROP COLUMN error_memory; ALTER TABLE jobs DROP COLUMN shunned; ALTER TABLE jobs DROP COLUMN needs; ALTER TABLE jobs DROP COLUMN node; DROP INDEX jobs_running; ALTER TABLE jobs DROP COLUMN session; ALTER TABLE jobs DROP COLUMN epoch; DROP TRIGGER jobs_of_archive; DROP INDEX jobs_by_archive; DROP INDEX jobs_open_scenes; DROP INDEX jobs_finished; CREATE INDEX jobs_finished ON jobs (seq) WHERE status > 1; ALTER TABLE jobs DROP COLUMN archive; DROP TRIGGER jobs_part; DROP TABLE set_windows; ALTER TABLE jobs DROP COLUMN delivered_ms; ALTER TABLE jobs DROP COLUMN inbox; DROP TABLE set_parts; DROP INDEX jobs_by_set; DROP INDEX jobs_again; ALTER TABLE jobs DROP COLUMN again; ALTER TABLE jobs DROP COLUMN bbox; ALTER TABLE jobs DROP COLUMN datetime; DROP INDEX jobs_of_sets; ALTER TABLE jobs DROP COLUMN set_id; ALTER TABLE jobs DROP COLUMN replaces; DROP TABLE contents; ALTER TABLE jobs DROP COLUMN anyway; DROP TRIGGER companions_kept; ALTER TABLE jobs DROP COLUMN companion; ALTER TABLE jobs DROP COLUMN manifest; DROP INDEX jobs_waiting; ALTER TABLE jobs DROP COLUMN rank; ALTER TABLE jobs DROP COLUMN folder; DROP TRIGGER jobs_kept; DROP TRIGGER jobs_unkept; DROP TABLE kept; DROP TABLE events; DROP TABLE subscribers; DELETE FROM sqlite_sequence WHERE name = 'events';"
                             "PRAGMA user_version = 3;")
        db.close()
        d.start()
        self.assertEqual(len(d.jobs()), 1)
        start = self.watch(d).first["seq"]
        self.life(d, "b.tif")
        self.assertEqual([e["event"] for e in self.changes(self.watch(d, since=start), 3)], LIFE)


if __name__ == "__main__":
    main(workers=3)
