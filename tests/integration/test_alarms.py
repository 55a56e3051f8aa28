#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Dashboard and alarm rules in deploy/: they name metrics that the service has, with labels that it has, and the rules
raise what they promise (promtool)."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from daemon_kit import BIN, DaemonCase  # noqa: E402
from patience import wait_for  # noqa: E402
from pbtest import main  # noqa: E402

DEPLOY = pathlib.Path(__file__).resolve().parents[2] / "deploy"
RULES = DEPLOY / "prometheus/pushbroom.rules.yml"
DASHBOARD = DEPLOY / "grafana/pushbroom.json"
NOTIFY = "notify:\n  - exec: {name: all, command: [/bin/true], events: [job.failed]}\n"
OF_PROMETHEUS = {"instance", "job", "le"}
SELECTOR = re.compile(r"(pushbroom_\w+)(?:\{([^}]*)\})?")
GROUPING = re.compile(r"\bby \(([^)]*)\)")


def expressions():
    """Every expression, with the place that it is in."""
    dashboard = json.loads(DASHBOARD.read_text())
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            yield "panel " + panel["title"], target["expr"]
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            yield "variable " + variable["name"], variable["query"]["query"]
    for annotation in dashboard["annotations"]["list"]:
        yield "annotation " + annotation["name"], annotation["expr"]
    for number, line in enumerate(RULES.read_text().splitlines(), 1):
        if not line.lstrip().startswith("#") and "pushbroom_" in line:
            yield "%s:%d" % (RULES.name, number), line


def promtool(test):
    path = shutil.which("promtool")
    if path is None:
        test.skipTest("skipped: promtool")
    return path


class Alarms(DaemonCase):
    def metrics(self):
        """The text of a service that has done, failed and reported something."""
        d = self.daemon(start=False)
        d.config.write_text(d.config.read_text() + NOTIFY)
        d.start()
        d.drop("a.tif")
        d.wait_job("a.tif", "successful")
        d.drop("b.tif", "fail")
        d.wait_job("b.tif", "failed")

        def text():
            done = subprocess.run([BIN / "pushbroom", "metrics", "--socket", d.root / "s.sock"], stdout=subprocess.PIPE, text=True)
            return "pushbroom_filesystem_avail_bytes{" in done.stdout and "pushbroom_notify_total{" in done.stdout and done.stdout
        return wait_for(text)

    def test_named_metrics_and_labels_exist(self):
        labels = {"pushbroom_trouble": {"key", "code"}, "pushbroom_device_retries_total": {"on"}}
        types = set()
        for line in self.metrics().splitlines():
            if line.startswith("# TYPE "):
                types.add(line.split()[2])
                continue
            name, inner = SELECTOR.match(line).groups() if not line.startswith("#") else ("", "")
            labels.setdefault(name, set()).update(re.findall(r'(\w+)="', inner or ""))
        found = 0
        for place, text in expressions():
            for name, inner in SELECTOR.findall(text):
                base = re.sub(r"_(bucket|sum|count)$", "", name)
                self.assertTrue(name in types or base in types, "%s: no metric %s" % (place, name))
                if "acquisition" not in name:  # the scene of this test has no time
                    used = set(re.findall(r"(\w+) *(?:=~|!~|!=|=)", inner)) - OF_PROMETHEUS
                    self.assertLessEqual(used, labels[name], "%s: labels of %s" % (place, name))
                found += 1
            known = set().union(*labels.values()) | OF_PROMETHEUS
            for group in GROUPING.findall(text):
                self.assertLessEqual({word.strip() for word in group.split(",")}, known, place)
        self.assertGreater(found, 40)

    def test_panels_do_not_overlap(self):
        cells = {}
        for panel in json.loads(DASHBOARD.read_text())["panels"]:
            place = panel["gridPos"]
            for x in range(place["x"], place["x"] + place["w"]):
                for y in range(place["y"], place["y"] + place["h"]):
                    self.assertLess(x, 24, panel["title"])
                    self.assertIsNone(cells.get((x, y)), panel["title"])
                    cells[x, y] = panel["title"]

    def test_promtool_accepts_the_metrics(self):
        path = promtool(self)
        done = subprocess.run([path, "check", "metrics"], input=self.metrics(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_rules_raise_their_alarms(self):
        path = promtool(self)
        for words in (["check", "rules", RULES], ["test", "rules", RULES.with_suffix(".test.yml")]):
            done = subprocess.run([path, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            self.assertEqual(done.returncode, 0, done.stdout)


if __name__ == "__main__":
    main(workers=3)
