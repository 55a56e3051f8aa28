#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: threads
"""Questions of an operator about failed jobs: status with filters, retry of all that failed, and the content of quarantine."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from daemon_kit import BIN, DaemonCase, wait_for  # noqa: E402
from pbtest import main  # noqa: E402


class Quarantine(DaemonCase):
    def cli(self, d, *words, code=0):
        done = subprocess.run([str(BIN / "pushbroom"), *words, "--socket", str(d.root / "s.sock")], capture_output=True, text=True, env=dict(os.environ, NO_COLOR="1"))
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def failed(self, d, *names):
        jobs = []
        for name in names:
            d.drop(name, "fail", old=True)
            jobs.append(d.wait_job(name, "failed"))
            wait_for((d.root / "quarantine" / name).exists)
        return jobs

    def test_list_is_filtered_by_state_time_and_pipeline(self):
        d = self.daemon(settle="50ms")
        d.drop("good.tif", old=True)
        good = d.wait_job("good.tif", "successful")
        bad, = self.failed(d, "bad.tif")
        text = self.cli(d, "status")
        self.assertIn("AGO", text)
        self.assertTrue(bad["id"] in text and good["id"] in text, text)
        text = self.cli(d, "status", "--failed", "--since", "1d", "--pipeline", bad["pipeline"])
        self.assertTrue(bad["id"] in text and good["id"] not in text, text)
        self.assertIn("no such jobs", self.cli(d, "status", "--pipeline", "other"))
        self.assertEqual(d.jobs(since_ms=4102444800000), [])
        self.assertEqual([j["id"] for j in d.jobs(pipeline=good["pipeline"], status="successful")], [good["id"]])
        self.assertIn("--since wants a duration", self.cli(d, "status", "--since", "soon", code=2))

    def test_all_that_failed_runs_again(self):
        d = self.daemon(settle="50ms")
        jobs = self.failed(d, "a.tif", "b.tif")
        text = self.cli(d, "retry", "--failed", "--since", "1h")
        for job in jobs:
            self.assertIn(job["id"], text)
            wait_for(lambda: [j for j in d.jobs(status="failed") if j["id"] == job["id"] and j["updated"] > job["updated"]])
        self.assertIn("no such jobs", self.cli(d, "retry", "--failed", "--pipeline", "other"))
        self.cli(d, "retry", code=2)

    def test_quarantine_can_be_listed_retried_and_dropped(self):
        d = self.daemon(settle="50ms")
        a, b, c = self.failed(d, "a.tif", "b.tif", "c.tif")
        text = self.cli(d, "quarantine", "list")
        self.assertTrue(a["id"] in text and b["id"] in text and "input.truncated" in text, text)
        self.assertIn("tile 7", self.cli(d, "quarantine", "show", a["id"]))
        (d.root / "quarantine/mine").write_text("mine")
        self.cli(d, "quarantine", "drop", a["id"])
        self.assertEqual(sorted(p.name for p in (d.root / "quarantine").iterdir() if p.name[0] in "abcm"),
                         ["b.tif", "b.tif.error.json", "c.tif", "c.tif.error.json", "mine"])
        dropped = d.call("job.get", id=a["id"])
        self.assertEqual((dropped["input"], dropped["status"], dropped["error"]["code"], dropped["finished"]), (None, "dismissed", "input.truncated", a["finished"]))
        self.assertNotIn(a["id"], self.cli(d, "status", "--failed"))
        self.assertIn("was removed already", self.cli(d, "quarantine", "drop", a["id"], code=1))
        self.assertIn("was removed", self.cli(d, "quarantine", "retry", a["id"], code=1))
        self.cli(d, "quarantine", "retry", b["id"])
        wait_for(lambda: [j for j in d.jobs(status="failed") if j["id"] == b["id"] and j["updated"] > b["updated"]])
        wait_for((d.root / "quarantine/b.tif").exists)
        more = self.failed(d, *[f"c{i}.tif" for i in range(20)])
        lines = [line.split()[0] for line in self.cli(d, "quarantine", "drop", "--failed").splitlines() if " dismissed " in line]
        self.assertEqual(lines[-20:], [job["id"] for job in more])
        self.assertEqual(d.jobs(status="failed"), [])
        self.assertEqual([p.name for p in (d.root / "quarantine").iterdir() if p.name[0] in "abcm"], ["mine"])
        self.assertIn("nothing", self.cli(d, "quarantine", "list"))
        d.drop("good.tif", old=True)
        good = d.wait_job("good.tif", "successful")
        self.cli(d, "quarantine", "drop", good["id"], code=1)
        self.assertTrue((d.root / "work/done/good.tif").exists())
        self.cli(d, "quarantine", "eat", code=2)


if __name__ == "__main__":
    main(workers=3)
