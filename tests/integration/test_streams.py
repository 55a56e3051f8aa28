#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: threads slow
"""Streams of lines: writers of all kinds, and the scenes that the service makes of their lines."""
import errno
import json
import mmap
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import sys
import time
import unittest

from osgeo import gdal
import numpy

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "proof")]
import control  # noqa: E402
from daemon_kit import BIN, DaemonCase, RpcError  # noqa: E402
from patience import wait_for  # noqa: E402
from pbtest import DATA, SANITIZED, SOURCE, main, run  # noqa: E402

gdal.UseExceptions()
SCENE = DATA / "real/landsat7_L7_ETMs_6band.tif"
TIME = "2026-11-30T12:00:00Z"
PIPELINES = """compute: {{device: cpu, threads: 1}}
pipelines:
  red:
    input: {{stream: red, bands: {{R: 3, N: 4}}, lines: {{every: {every}, silence: {silence}, when_full: {full}}}}}
"""
STEPS = """    steps: [{math: {bands: {NDVI: "(N - R) / (N + R)"}}}]
    products:
      - cog: {}
"""
REQUEST = {"version": 1, "stream": "red", "type": "uint8", "bands": 4, "samples": 64, "group_lines": 8}


def read(path):
    return gdal.Open(str(path)).ReadAsArray()


class Streams(DaemonCase):
    def service(self, every=128, silence="60s", full="wait", more=""):
        d = self.daemon(start=False, fake=False)
        d.set_pipelines(PIPELINES.format(every=every, silence=silence, full=full) + STEPS + more)
        d.start().wait_streams()
        return d

    def feed(self, d, *options, scene=SCENE, code=0, stream="red"):
        d.wait_streams()
        return run("pushbroom", "feed", "--socket", d.root / "s.sock", "--stream", stream, *options, scene, code=code)

    def start_feed(self, d, *options):
        """A feed that runs while the test continues; it is slow, so that the test can end it."""
        d.wait_streams()
        process = subprocess.Popen([BIN / "pushbroom", "feed", "--socket", d.root / "s.sock", "--stream", "red", "--json",
                                    *map(str, options), SCENE], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def stream(self, d):
        return d.call("service.info")["streams"][0]

    def ended(self, d):
        """The stream after its writer; service.info is a moment older than the end."""
        return d.wait_for(lambda: (lambda s: s["lines"] and s["writer"] is None and s)(self.stream(d)))

    def wait_lines(self, d, n):
        return d.wait_for(lambda: (lambda s: s["lines"] >= n and s)(self.stream(d)))

    def wait_scenes(self, d, n):
        """Until n scenes are done; their jobs, in the order of their names."""
        def found():
            jobs = d.jobs(limit=1000)
            return len(jobs) >= n and all(j["status"] not in ("accepted", "running") for j in jobs) and jobs
        jobs = sorted(d.wait_for(found), key=lambda j: j["created"] + j["id"])
        self.assertEqual([j["status"] for j in jobs], ["successful"] * n, d.log_text())
        return jobs

    def values(self, d, job):
        folder = pathlib.Path(d.call("job.get", id=job["id"])["directory"])
        image, = folder.glob("*.tif")
        return read(image)

    def expected(self, d, first, n):
        """NDVI of lines of the scene, as a file."""
        cut = d.root / f"cut-{first}-{n}.tif"
        gdal.Translate(str(cut), str(SCENE), srcWin=[0, first, gdal.Open(str(SCENE)).RasterXSize, n], noData=0)
        config = d.root / "file.yaml"
        config.write_text("compute: {device: cpu}\npipelines:\n  red:\n    input: {bands: {R: 3, N: 4}}\n" + STEPS)
        run("pushbroom", "run", "-c", config, "-o", d.root / "file", "--quiet", cut)
        return read(d.root / "file" / cut.stem / "red" / f"{cut.stem}.tif")

    def connect(self, d):
        d.wait_streams()
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(60)
        s.connect(str(d.root / "streams.sock"))
        self.addCleanup(s.close)
        return s

    def ask(self, d, request):
        """The answer to a request, the memory of the channel (None without) and the connection."""
        s = self.connect(d)
        s.sendall(request if isinstance(request, bytes) else (json.dumps(request) + "\n").encode())
        data, fds, _, _ = socket.recv_fds(s, 65536, 1)
        return json.loads(data) if data else None, fds[0] if fds else None, s

    def test_scenes_have_the_values_of_the_file(self):
        d = self.service(every=128)
        height = gdal.Open(str(SCENE)).RasterYSize
        self.feed(d, "--lines-per-second", 4000, "--start", TIME)
        n = -(-height // 128)
        jobs = self.wait_scenes(d, n)
        self.assertEqual(jobs[0]["name"], "red_20261130T120000000_0.tif")
        for i, job in enumerate(jobs):
            lines = min(128, height - 128 * i)
            numpy.testing.assert_array_equal(self.values(d, job), self.expected(d, 128 * i, lines))
        s = self.ended(d)
        self.assertEqual((s["lines"], s["gaps"], s["dropped"], s["scenes"], s["writer"]), (height, 0, 0, n, None))
        place = gdal.Open(str(SCENE)).GetGeoTransform()
        folder = pathlib.Path(d.call("job.get", id=jobs[1]["id"])["directory"])
        image, = folder.glob("*.tif")
        there = gdal.Open(str(image)).GetGeoTransform()
        self.assertEqual(there[:3] + there[4:], place[:3] + place[4:]) if there[3] == place[3] + 128 * place[5] else self.fail(there)
        self.assertIn('pushbroom_stream_lines_total{stream="red"} %d' % height, d.call("service.metrics")["text"])

    def start_live(self, d):
        """Starts a scene and stops its writer after a few lines. Returns the writer and the running job."""
        process = self.start_feed(d, "--lines-per-second", 20, "--group", 2, "--start", TIME)
        self.wait_lines(d, 2)
        process.send_signal(signal.SIGSTOP)
        job = d.wait_job("red_20261130T120000000_0.tif", "running")
        d.wait_for(lambda: self.stream(d).get("latency"))  # the run has opened the growing file and computed lines
        self.assertLess(self.stream(d)["lines"], 352)
        return process, job

    def check_live(self, d, process, live, bands=None):
        """Continues the writer, and checks that the job makes the products of its scene in one attempt."""
        process.send_signal(signal.SIGCONT)
        self.assertEqual(process.wait(), 0)
        done = d.wait_job(live["name"], "successful")
        self.assertEqual((done["id"], done["attempts"]), (live["id"], 1))
        expected = self.expected(d, 0, 352) if bands is None else read(SCENE)[bands]
        numpy.testing.assert_array_equal(self.values(d, done), expected)

    def test_scene_runs_while_its_lines_arrive(self):
        """The job does not use the slot of a file, and the run that began with the first lines completes it."""
        d = self.daemon(start=False, fake=False, parallel=1)
        d.set_pipelines(PIPELINES.format(every=352, silence="1h", full="wait") + STEPS + """  files:
    input: {match: ["*.tif"], bands: {R: 3}}
    products: [{cog: {}}]
""")
        d.start()
        process, live = self.start_live(d)
        d.drop_copy(SCENE, "file.tif")
        d.wait_job("file.tif", "successful")
        self.assertEqual(d.call("job.get", id=live["id"])["status"], "running")
        self.check_live(d, process, live)
        self.assertNotIn("computed again", d.log_text())
        self.assertEqual(self.stream(d)["latency"]["lines"], 352)
        metrics = d.call("service.metrics")["text"]
        self.assertIn('pushbroom_stream_latency_seconds_count{stream="red"} 352\n', metrics)
        self.assertIn('pushbroom_stream_latency_seconds_bucket{stream="red",le="+Inf"} 352\n', metrics)
        counts = [int(n) for n in re.findall(r'stream_latency_seconds_bucket{stream="red",le="[^"]+"} (\d+)', metrics)]
        self.assertEqual(counts, sorted(counts))

    @unittest.skipIf(SANITIZED, "the shim of failing calls does not go together with a sanitizer")
    def test_next_scene_runs_while_one_is_published(self):
        d = self.daemon(start=False, fake=False, parallel=1)
        d.set_pipelines(PIPELINES.format(every=128, silence="1h", full="wait") + STEPS)
        faults = control.Faults(d.root / "faults", BIN / "pbfault.so")
        d.start(env=faults.environment())
        process, first = self.start_live(d)
        rule = faults.rule("rename", control.HANG, role="worker", path="/products/")
        process.send_signal(signal.SIGCONT)
        self.wait_lines(d, 130)
        process.send_signal(signal.SIGSTOP)
        self.assertLess(self.stream(d)["lines"], 256)
        wait_for(lambda: faults.counts(rule)[1])
        second, = d.wait_for(lambda: [j for j in d.jobs() if j["id"] != first["id"]])
        d.wait_job(second["name"], "running")
        self.assertEqual(d.call("job.get", id=first["id"])["status"], "running")
        faults.set_mode(rule, control.OFF)
        process.send_signal(signal.SIGCONT)
        self.assertEqual(process.wait(), 0)
        self.wait_scenes(d, self.ended(d)["scenes"])

    def test_run_of_growing_scene_survives_its_worker(self):
        d = self.service(every=352, silence="1h")
        process, live = self.start_live(d)
        for worker in d.workers():
            os.kill(worker, signal.SIGKILL)
        d.wait_for(lambda: "it is computed again" in d.log_text())
        self.check_live(d, process, live)

    def test_scene_that_ends_early_is_computed_again(self):
        d = self.service(every=352, silence="1h")
        process, live = self.start_live(d)
        process.kill()
        job, = self.wait_scenes(d, 1)
        self.assertEqual((job["id"], job["attempts"]), (live["id"], 1))
        self.assertIn("input.shorter", d.log_text())
        numpy.testing.assert_array_equal(self.values(d, job), self.expected(d, 0, self.ended(d)["lines"]))

    def test_growing_scene_is_not_cancelled(self):
        """The input is still being written. A drain returns the job to the queue."""
        d = self.service(every=352, silence="1h")
        process, live = self.start_live(d)

        def refused():
            with self.assertRaises(RpcError) as error:
                d.call("job.cancel", id=live["id"])
            self.assertIn("still arrive", str(error.exception))

        refused()
        d.call("service.drain", now=True)
        d.wait_job(live["name"], "accepted")
        refused()
        d.call("service.drain", off=True)
        d.wait_job(live["name"], "running")
        self.check_live(d, process, live)

    def test_failed_run_waits_for_the_scene(self):
        """The run fails before the scene is complete; later the complete input is moved to quarantine."""
        d = self.service(every=352, silence="1h")
        d.change("compute:", "limits: {max_side_px: 348}\ncompute:")
        d.stop()
        d.start()
        process = self.start_feed(d, "--lines-per-second", 20, "--group", 2, "--start", TIME)
        self.wait_lines(d, 2)
        process.send_signal(signal.SIGSTOP)
        d.wait_for(lambda: d.log_text().count("it is computed again") == 3)
        d.wait_job("red_20261130T120000000_0.tif", "accepted")
        process.send_signal(signal.SIGCONT)
        self.assertEqual(process.wait(), 0)
        failed = d.wait_job("red_20261130T120000000_0.tif", "failed")
        self.assertEqual(failed["attempts"], 1)
        kept, = (d.root / "quarantine").rglob("*.tif")
        numpy.testing.assert_array_equal(read(kept), read(SCENE))

    def start_alerts(self):
        """Starts a service, and a growing scene with an alert in its first line."""
        d = self.daemon(start=False, fake=False)
        rows = read(SCENE)[2].max(axis=1)
        d.set_pipelines(PIPELINES.format(every=352, silence="1h", full="wait") +
                        "    products: [{cog: {}}, {alert: {band: R, above: %d}}]\n" % (rows[0] - 1))
        d.start()
        watcher = d.client()
        watcher.call("job.watch", since=watcher.call("job.watch")["seq"])
        return watcher, d, *self.start_live(d)

    def alerts(self, d, job):
        events = d.call("job.events", id=job["id"], limit=1000)["events"]
        return [event["alert"] for event in events if event["event"] == "alert.raised"]

    def check_alerts(self, d, job):
        """Checks that each alert of the product was one event, in order."""
        folder = pathlib.Path(d.call("job.get", id=job["id"])["directory"])
        features = json.loads(next(folder.glob("*.alerts.geojson")).read_text())["features"]
        self.assertGreater(len(features), 1)
        alerts = d.wait_for(lambda: (lambda all: len(all) >= len(features) and all)(self.alerts(d, job)))
        self.assertEqual([alert["number"] for alert in alerts], [feature["id"] for feature in features])
        self.assertEqual([alert["line"] for alert in alerts], [feature["properties"]["first_line"] for feature in features])

    def test_alerts_are_events_while_lines_arrive(self):
        """Watchers get alerts before the next lines arrive; a second run does not repeat them."""
        watcher, d, process, live = self.start_alerts()
        while (event := watcher.event()).get("event") != "alert.raised":
            pass
        alert = event["data"]["alert"]
        self.assertEqual((alert["number"], alert["band"], alert["line"], alert["datetime"]), (1, "R", 0, "2026-11-30T12:00:00.000Z"))
        self.assertAlmostEqual(alert["longitude"], -33, delta=10)
        self.assertEqual(d.call("job.get", id=live["id"])["status"], "running")
        for worker in d.workers():
            os.kill(worker, signal.SIGKILL)
        d.wait_for(lambda: "it is computed again" in d.log_text())
        self.check_live(d, process, live, bands=slice(2, 4))
        self.check_alerts(d, live)

    def test_killed_service_repeats_no_alert(self):
        _, d, process, live = self.start_alerts()
        d.wait_for(lambda: self.alerts(d, live))
        d.stop(signal.SIGKILL)
        process.kill()
        d.start()
        d.wait_job(live["name"], "successful")
        alerts = self.alerts(d, live)
        self.assertEqual([alert["number"] for alert in alerts], list(range(1, len(alerts) + 1)))

    def test_gap_is_invalid_and_counted(self):
        d = self.service(every=128)
        self.feed(d, "--lines-per-second", 100000, "--start", TIME, "--skip", "40:10")
        # Jobs of the same millisecond have no order; their names have the times of the scenes.
        jobs = sorted(self.wait_scenes(d, -(-gdal.Open(str(SCENE)).RasterYSize // 128)), key=lambda job: job["name"])
        values, expected = self.values(d, jobs[0]), self.expected(d, 0, 128)
        self.assertTrue(numpy.isnan(values[40:50]).all())
        numpy.testing.assert_array_equal(values[:40], expected[:40])
        numpy.testing.assert_array_equal(values[50:], expected[50:])
        s = self.ended(d)
        self.assertEqual((s["gaps"], s["gap_lines"]), (1, 10))
        reports = [d.call("job.get", id=job["id"])["report"] for job in jobs]
        self.assertEqual(reports[0]["lines"], {"gaps": [{"first": 40, "n": 10}], "n": 128, "missing": 10})
        self.assertEqual(reports[1]["lines"], {"gaps": [], "n": 128, "missing": 0})
        words = "10 of 128 lines are missing, and invalid: 40 to 49"
        self.assertEqual((reports[0]["notes"], "notes" in reports[1]), ([words], False))
        self.assertIn(words, " ".join(run("pushbroom", "status", "--socket", d.root / "s.sock", jobs[0]["id"]).stdout.split()))

    def test_scene_of_the_same_time_overwrites_nothing(self):
        d = self.service(every=1000)
        self.feed(d, "--lines-per-second", 4000, "--start", TIME)
        first, = self.wait_scenes(d, 1)
        folder = pathlib.Path(d.call("job.get", id=first["id"])["directory"])
        products = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
        self.feed(d, "--lines-per-second", 4000, "--start", TIME, "--skip", "100:20")
        failed, = d.wait_for(lambda: [j for j in d.jobs() if j["status"] == "failed"])
        self.assertEqual((failed["name"], failed["error"]["code"]), (first["name"], "output.exists"))
        self.assertEqual({path: path.read_bytes() for path in folder.iterdir() if path.is_file()}, products)
        lines = read(failed["input"])  # no line is lost
        expected = read(SCENE)
        expected[:, 100:120] = 0
        numpy.testing.assert_array_equal(lines, expected)

    def test_killed_writer_leaves_a_scene_of_its_lines(self):
        d = self.service(every=100000)
        process = self.start_feed(d, "--lines-per-second", 50, "--group", 8, "--repeat", 100)
        self.wait_lines(d, 24)
        process.kill()
        job, = self.wait_scenes(d, 1)
        s = self.ended(d)
        self.assertIsNone(s["writer"])
        numpy.testing.assert_array_equal(self.values(d, job), self.expected(d, 0, s["lines"]))
        self.feed(d)  # the next writer is welcome
        self.wait_scenes(d, 2)

    def test_stopped_writer_closes_its_scene_and_goes_on(self):
        d = self.service(every=100000, silence="5s")
        process = self.start_feed(d, "--lines-per-second", 40, "--group", 8)
        self.wait_lines(d, 8)
        process.send_signal(signal.SIGSTOP)
        self.wait_scenes(d, 1)  # after 5 s of silence
        self.assertIsNotNone(self.stream(d)["writer"])
        process.send_signal(signal.SIGCONT)
        self.assertEqual(process.wait(), 0)
        jobs = self.wait_scenes(d, 2)
        both = numpy.concatenate([self.values(d, job) for job in jobs])
        numpy.testing.assert_array_equal(both, self.expected(d, 0, gdal.Open(str(SCENE)).RasterYSize))
        self.assertEqual(self.ended(d)["gaps"], 0)
        self.assertIn("no line for 5 s", d.log_text())

    def test_second_writer_is_refused(self):
        d = self.service()
        first = self.start_feed(d, "--lines-per-second", 20, "--group", 4)
        self.wait_lines(d, 4)
        refused = self.feed(d, code=3)
        self.assertIn("has a writer already", refused.stderr)
        first.terminate()
        self.assertEqual(first.wait(), 0)
        self.feed(d)

    def test_garbage_and_wrong_requests_are_refused(self):
        d = self.service()
        for request, code in ((b"garbage\n", "invalid"), (b"{}\n", "invalid"), (b"[" * 4000 + b"\n", "invalid"),
                              (dict(REQUEST, stream="blue"), "unknown"), (dict(REQUEST, bands=2), "invalid"),
                              (dict(REQUEST, samples=0), "invalid"), (dict(REQUEST, type="complex64"), "invalid"),
                              (dict(REQUEST, epsg=1), "invalid"), (dict(REQUEST, samples=2**20, bands=64), "invalid")):
            with self.subTest(request=request):
                answer, fd, _ = self.ask(d, request)
                self.assertEqual((answer["error"], fd), (code, None), answer)
        silent = [self.connect(d) for _ in range(6)]  # more than one user may have; the rest is closed
        self.assertEqual(silent[-1].recv(1), b"")
        for s in silent:
            s.close()
        self.feed(d)

    def test_type_without_the_nodata_value_is_refused(self):
        d = self.daemon(start=False, fake=False)
        d.set_pipelines(PIPELINES.format(every=128, silence="60s", full="wait").replace("bands:", "nodata: -9999, bands:") + STEPS)
        d.start()
        answer, fd, _ = self.ask(d, REQUEST)
        self.assertEqual((answer["error"], fd), ("invalid", None), answer)
        self.assertIn("-9999, is no value", answer["message"])
        self.assertIn("slots", self.ask(d, dict(REQUEST, type="int16"))[0])

    def test_writer_with_hostile_memory_is_disconnected(self):
        d = self.service()
        chance = random.Random(7)
        for what in ("words", "header", "all"):
            answer, fd, s = self.ask(d, REQUEST)
            self.assertIn("slots", answer)
            size = os.fstat(fd).st_size
            for change in (lambda: os.ftruncate(fd, 0), lambda: os.ftruncate(fd, 2 * size)):
                self.assertRaises(OSError, change)  # it is sealed
            memory = mmap.mmap(fd, size)
            slots = size - answer["slots"] * (-(-answer["slot_bytes"] // 4096) * 4096)
            begin, end = {"words": (0, slots), "header": (slots, slots + 64), "all": (0, size)}[what]
            for at in range(begin, end, 4096):
                memory[at:min(at + 4096, end)] = chance.randbytes(min(at + 4096, end) - at)
            s.shutdown(socket.SHUT_WR)
            # Closed, without the confirmation of lines, unless the words of the channel are fine: then it has no line.
            self.assertEqual(s.recv(100), b"{}\n" if what == "header" else b"")
            memory.close()
            os.close(fd)
        self.feed(d)
        d.wait_idle()
        self.assertTrue(d.is_up())

    def test_writer_that_shuts_its_side_is_answered(self):
        """pb_stream_close ends so while it holds a slot."""
        d = self.service()
        _, fd, s = self.ask(d, REQUEST)
        s.shutdown(socket.SHUT_WR)
        self.assertEqual(s.recv(100), b"{}\n")
        self.assertEqual(s.recv(100), b"")
        os.close(fd)
        self.assertNotIn("is gone", d.log_text())

    def test_trouble_of_lines_ends_with_its_writer(self):
        d = self.service(every=10000)  # one scene, however long the writer lives
        d.change("  on_success", "  retention: {min_free: 1000TiB}\n  on_success")
        d.process.send_signal(signal.SIGHUP)
        d.wait_for(lambda: "is in use" in d.log_text())
        process = self.start_feed(d, "--lines-per-second", 20, "--group", 4)
        d.wait_trouble("lines", "free")
        self.assertEqual(self.stream(d)["dropped"], 0)
        process.kill()
        process.wait()
        d.change("  retention: {min_free: 1000TiB}\n", "")
        d.process.send_signal(signal.SIGHUP)
        d.wait_for(lambda: d.trouble("lines") is None)
        job, = self.wait_scenes(d, 1)
        s = self.ended(d)
        self.assertEqual((s["dropped"], s["gaps"]), (0, 0))
        n = min(s["lines"], gdal.Open(str(SCENE)).RasterYSize)
        numpy.testing.assert_array_equal(self.values(d, job)[:n], self.expected(d, 0, n))

    def on_bad_disk(self, full):
        """A service and a writer, and the rule under which each write of lines fails."""
        d = self.daemon(start=False, fake=False)
        d.set_pipelines(PIPELINES.format(every=128, silence="60s", full=full) + STEPS)
        faults = control.Faults(d.root / "faults", BIN / "pbfault.so")
        d.start(env=faults.environment())
        process = self.start_feed(d, "--lines-per-second", 30, "--group", 4, "--start", TIME)
        self.wait_lines(d, 4)
        rule = faults.rule("pwrite", control.FAIL_ALL, role="daemon", error=errno.EIO, path="/work/")
        d.wait_trouble("lines", "Input/output error")
        return d, faults, rule, process

    @unittest.skipIf(SANITIZED, "the shim of failing calls does not go together with a sanitizer")
    def test_writer_waits_for_a_bad_disk(self):
        d, faults, rule, process = self.on_bad_disk("wait")
        tries = faults.counts(rule)[1]
        wait_for(lambda: faults.counts(rule)[1] > tries + 1)
        self.assertIsNone(d.process.poll())
        self.assertEqual(self.stream(d)["dropped"], 0)
        faults.set_mode(rule, control.OFF)
        out, errors = process.communicate()
        self.assertEqual(process.returncode, 0, errors)
        d.wait_for(lambda: d.trouble("lines") is None)
        height = gdal.Open(str(SCENE)).RasterYSize
        s = self.ended(d)
        self.assertEqual((s["lines"], s["gaps"], s["dropped"]), (height, 0, 0))
        first = 0  # the first scene can be closed later than the others
        for job in sorted(self.wait_scenes(d, s["scenes"]), key=lambda j: j["name"]):
            self.assertEqual(int(job["name"][:-4].split("_")[2]), first)
            values = self.values(d, job)
            numpy.testing.assert_array_equal(values, self.expected(d, first, len(values)))
            first += len(values)
        self.assertEqual(first, height)

    @unittest.skipIf(SANITIZED, "the shim of failing calls does not go together with a sanitizer")
    def test_bad_disk_drops_lines_where_configured(self):
        d, faults, rule, process = self.on_bad_disk("drop-oldest")
        d.wait_for(lambda: self.stream(d)["dropped"] > 0)
        faults.set_mode(rule, control.OFF)
        self.assertEqual(process.communicate()[1], "")
        s = self.ended(d)
        lines = sum(len(self.values(d, job)) for job in self.wait_scenes(d, s["scenes"]))
        self.assertEqual(lines, s["lines"] - s["dropped"])

    def test_service_without_descriptors_waits_for_them(self):
        d = self.service()
        begin = time.monotonic()
        with d.without_descriptors():
            waiting = [self.connect(d) for _ in range(3)]
            text = "cannot take a writer"
            wait_for(lambda: d.log_text().count(text) > 2)
            n, seconds = d.log_text().count(text), time.monotonic() - begin
            self.assertLessEqual(n, seconds / 0.5 + 1)  # one try each half second
        waiting[-1].sendall(b"garbage\n")
        self.assertIn(b"invalid", waiting[-1].recv(1000))
        self.feed(d)

    def test_killed_service_makes_jobs_of_open_scenes(self):
        d = self.service(every=100000)
        process = self.start_feed(d, "--lines-per-second", 40, "--group", 8)
        self.wait_lines(d, 8)
        d.stop(signal.SIGKILL)
        self.assertEqual(process.wait(), 3)
        self.assertIn("the service ended it", process.stderr.read())
        d.start()
        job, = self.wait_scenes(d, 1)
        values = self.values(d, job)
        self.assertGreaterEqual(len(values), 8)
        numpy.testing.assert_array_equal(values, self.expected(d, 0, len(values)))
        self.assertIn("later ones are lost", d.log_text())
        self.feed(d)
        self.wait_scenes(d, 2)

    def test_stopped_service_closes_scenes(self):
        d = self.service(every=100000)
        process = self.start_feed(d, "--lines-per-second", 40, "--group", 8)
        self.wait_lines(d, 8)
        self.assertEqual(d.stop()[0], 0)
        self.assertEqual(process.wait(), 3)
        d.start()
        self.wait_scenes(d, 1)

    def test_oldest_lines_are_dropped_where_configured(self):
        d = self.service(every=4096, full="drop-oldest")
        process = self.start_feed(d, "--lines-per-second", 2000, "--repeat", 1000, "--group", 1)
        self.wait_lines(d, 1)

        def dropped():
            with d.paused():
                time.sleep(1)
            return self.stream(d)["dropped"]

        wait_for(dropped, seconds=300)
        process.terminate()
        written = json.loads(process.communicate()[0])["lines"]
        self.assertEqual(process.returncode, 0)
        d.wait_idle()
        s = self.ended(d)
        self.assertEqual(s["dropped"], s["gap_lines"])
        self.assertEqual(s["lines"] + s["dropped"], written)

    def test_token_and_users_decide_who_may_write(self):
        if os.getuid() != 0:
            self.skipTest("needs root, to be another user")
        d = self.service()
        os.chmod(d.root, 0o755)
        token = d.root / "token"
        token.write_text("open sesame\n")

        def ask(more):
            """The answer to another user."""
            code = ("import json, os, socket, sys\nos.setgid(65534); os.setuid(65534)\ns = socket.socket(socket.AF_UNIX)\n"
                    "s.connect(sys.argv[1])\ns.sendall(sys.argv[2].encode() + b'\\n')\nprint(s.recv(4096).decode())")
            done = subprocess.run([sys.executable, "-c", code, d.root / "streams.sock", json.dumps(dict(REQUEST, **more))],
                                  stdout=subprocess.PIPE, text=True, check=True)
            return json.loads(done.stdout)

        self.assertEqual(ask({})["error"], "denied")
        self.assertEqual(ask({"token": "open sesame"})["error"], "denied")
        d.change("lines: {", "lines: {token: %s, " % token)
        d.process.send_signal(signal.SIGHUP)
        wait_for(lambda: "slots" in ask({"token": "open sesame"}))
        self.assertEqual(ask({"token": "open"})["error"], "denied")
        self.assertEqual(ask({"token": ""})["error"], "denied")
        d.change("token: %s" % token, 'writers: ["65534"]')
        d.process.send_signal(signal.SIGHUP)
        wait_for(lambda: "slots" in ask({}))

    def test_reload_disconnects_a_writer_without_its_right(self):
        if os.getuid() != 0:
            self.skipTest("needs root, to be another user")
        d = self.service()
        os.chmod(d.root, 0o755)
        d.change("lines: {", 'lines: {writers: ["65534"], ')
        d.process.send_signal(signal.SIGHUP)
        d.wait_for(lambda: "is in use" in d.log_text())
        scene = d.root / "scene.tif"
        scene.write_bytes(SCENE.read_bytes())
        scene.chmod(0o644)
        process = subprocess.Popen([BIN / "pushbroom", "feed", "--socket", d.root / "s.sock", "--stream", "red", "--group", "4", "--lines-per-second", "40", "--start", TIME,
                                    "--repeat", "1000", scene], stderr=subprocess.PIPE, text=True, user=65534, group=65534, extra_groups=[])
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.wait_lines(d, 20)

        def reload():
            n = d.log_text().count("is in use")
            d.process.send_signal(signal.SIGHUP)
            d.wait_for(lambda: d.log_text().count("is in use") > n)
        reload()  # the writer still has the right
        lines = self.stream(d)["lines"]
        self.wait_lines(d, lines + 20)
        d.change('writers: ["65534"]', 'writers: ["65533"]')
        reload()
        self.assertNotEqual(process.wait(), 0)
        self.assertIn("stream red: the service", process.stderr.read())
        s = self.ended(d)
        self.assertGreater(s["lines"], lines)
        total = sum(len(self.values(d, job)) for job in self.wait_scenes(d, s["scenes"]))
        self.assertEqual((total, s["dropped"]), (s["lines"], 0))
        reload()
        self.assertEqual(d.log_text().count("lets this user not write"), 1)

    def test_times_of_lines_are_in_item_and_table(self):
        d = self.daemon(start=False, fake=False)
        d.set_pipelines("""pipelines:
  red:
    input: {stream: red, bands: {R: 3}, lines: {every: 1000}}
    products: [{cog: {}}, {line_times: {}}, {stac: {}}]
  table:
    input: {match: ["*.tif"]}
    products: [{line_times: {}}]
""")
        d.start()
        self.assertIn("files have no times of lines", d.log_text())  # a warning of the second pipeline
        self.feed(d, "--lines-per-second", 1000, "--start", TIME, "--skip", "40:2")
        job, = self.wait_scenes(d, 1)
        job = d.call("job.get", id=job["id"])
        folder = pathlib.Path(job["directory"])
        height = gdal.Open(str(SCENE)).RasterYSize
        item = json.loads(next(folder.glob("*.stac.json")).read_text())
        properties = item["properties"]
        self.assertEqual((properties["datetime"], properties["start_datetime"], properties["end_datetime"]),
                         (None, "2026-11-30T12:00:00.000000Z", "2026-11-30T12:00:00.%03d000Z" % (height - 1)))
        self.assertEqual(properties["pushbroom:datetime_source"], "lines")
        self.assertEqual(properties["pushbroom:notes"], ["2 of %d lines are missing, and invalid: 40 to 41" % height])
        self.assertEqual(item["assets"]["lines"]["type"], "text/csv")
        rows = next(folder.glob("*.lines.csv")).read_text().splitlines()
        gap = range(40, 42)
        self.assertEqual(rows, ["line,datetime,gap"] + [
            f"{y},,1" if y in gap else f"{y},2026-11-30T12:00:00.{y:03d}000Z,0" for y in range(height)])
        self.feed(d)  # without times: no time is guessed for the item
        self.assertIn("gave its lines no times", d.wait_for(
            lambda: [j for j in d.jobs() if j["status"] == "failed"])[0]["error"]["message"])
        d.drop_copy(SCENE, "file.tif")
        self.assertEqual(d.wait_job("file.tif", "failed")["error"]["code"], "input.datetime")

    def test_samples_write_a_stream(self):
        d = self.service(every=256, more="""  samples:
    input: {stream: samples, bands: {A: 1, B: 2, C: 3, D: 4}, lines: {every: 128}}
    products: [{cog: {}}]
""")
        library = BIN.parent / "libpushbroom-stream.so"
        if not library.exists():
            self.skipTest("the library is not built with sanitizers")
        line, band, sample = numpy.arange(256)[None, :, None], numpy.arange(4)[:, None, None], numpy.arange(512)[None, None, :]
        expected = (1 + line + 1000 * band + sample).astype(numpy.uint16)
        for n, command in enumerate(([BIN / "stream_writer"], [sys.executable, SOURCE / "samples/stream_writer.py"]), 1):
            subprocess.run([*command, d.root / "streams.sock", "samples"], check=True,
                           env=dict(os.environ, PUSHBROOM_STREAM_LIBRARY=str(library)))
            jobs = self.wait_scenes(d, 2 * n)[-2:]
            names = [job["name"] for job in jobs]
            self.assertTrue(all(re.fullmatch(r"samples_\d{8}T\d{9}_(0|128)\.tif", name) for name in names), names)
            values = numpy.concatenate([self.values(d, job) for job in sorted(jobs, key=lambda j: j["name"])], axis=1)
            numpy.testing.assert_array_equal(values, expected)

    def test_python_writer_refuses_parts_of_lines(self):
        library = BIN.parent / "libpushbroom-stream.so"
        if not library.exists():
            self.skipTest("the library is not built with sanitizers")
        d = self.service()
        code = ("import sys; sys.path.insert(0, sys.argv[1]); from stream_writer import Writer\n"
                "with Writer(sys.argv[2], 'red', 'uint8', bands=4, samples=64, library=sys.argv[3]) as w:\n"
                "    w.write(0, bytes(4 * 64 * 3))\n    w.write(3, bytes(4 * 64 * 2 + 1))")
        done = subprocess.run([sys.executable, "-c", code, SOURCE / "samples", d.root / "streams.sock", library],
                              stderr=subprocess.PIPE, text=True)
        self.assertIn("ValueError: 513 bytes are not whole lines of 256 bytes", done.stderr)
        self.assertEqual(self.ended(d)["lines"], 3)

    def test_taken_socket_is_a_trouble(self):
        d = self.daemon(start=False, fake=False)
        d.set_pipelines(PIPELINES.format(every=128, silence="60s", full="wait") + STEPS)
        (d.root / "streams.sock").mkdir()
        d.start()
        d.wait_trouble("streams", "streams.sock")
        (d.root / "streams.sock").rmdir()
        wait_for(lambda: d.trouble("streams") is None)
        self.feed(d)


if __name__ == "__main__":
    main()
