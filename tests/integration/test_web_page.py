#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: optimised
"""The page of pushbroom-web in a headless Chromium, with a real service and real scenes: jobs, pictures, remedies, hostile names,
keyboard, sizes, a long list. Skipped where Chromium is not installed (the package chromium)."""
import os
import shutil
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from browser_kit import CHROMIUM, Browser  # noqa: E402
from daemon_kit import DaemonCase  # noqa: E402
from pbtest import main, program_folder, run  # noqa: E402
from web_kit import PIPELINES, Web  # noqa: E402

FOLDER = program_folder()
LOADED = "typeof loaded === 'boolean' && loaded && !waiting"
HOSTILE = ("<img src=x onerror=document.title='taken'>.tif", "a..%2f..%2fetc.tif", "\u202egnp.exe\u2066.tif", "x" * 200 + ".tif", "a&b\"c'.tif")


@unittest.skipUnless(CHROMIUM, "chromium is not on this machine")
class Page(DaemonCase):
    def start(self, names=(), **settings):
        scene = FOLDER / "scene.tif"
        if not scene.exists():
            run("make_scene", "--size", "96x64", scene)
        d = self.daemon(start=False, **settings)
        d.set_pipelines(PIPELINES)
        for name in names:
            shutil.copy(scene, d.root / "inbox" / name)
        d.start()
        self.scene = scene
        web = Web(d.root / "s.sock", d.root / "web.log")
        self.addCleanup(web.stop)
        browser = Browser()
        self.addCleanup(browser.close)
        self.address = "http://127.0.0.1:%d" % web.port
        return d, browser

    def open(self, browser):
        browser.open(self.address + "/")
        browser.wait(LOADED)

    def check_clean(self, browser):
        """No message in the console, and no request to another host."""
        self.assertEqual(browser.mistakes(), [])
        self.assertEqual([a for a in browser.addresses() if not a.startswith(self.address + "/")], [])

    def test_job_appears_and_its_picture(self):
        d, browser = self.start(fake=False)
        self.open(browser)
        self.assertIn("pushbroom put", browser.run("document.getElementById('empty').textContent"))
        shutil.copy(self.scene, d.root / "inbox" / "coast.tif")
        browser.wait("[...document.querySelectorAll('.row')].some((r) => r.textContent.includes('coast.tif') && r.textContent.includes('successful'))")
        browser.wait("[...document.querySelectorAll('#gallery img')].some((i) => i.complete && i.naturalWidth > 0)")
        self.assertIn("empty", browser.run("document.getElementById('quarantine').textContent"))
        (d.root / "inbox" / "broken.tif").write_bytes(self.scene.read_bytes()[:3000])
        browser.wait("[...document.querySelectorAll('.row')].some((r) => r.textContent.includes('broken.tif') && r.querySelector('.bad'))")
        browser.run("openJob([...jobs.values()].find((j) => j.name === 'broken.tif').id)")
        text = browser.wait("document.querySelector('#job[open] .trouble')?.textContent")
        job = d.wait_job("broken.tif", "failed")
        for part in (job["error"]["code"], job["error"]["message"], job["error"]["hint"], "pushbroom retry " + job["id"]):
            self.assertIn(part, text)
        text = browser.wait("openJob('%s').then(() => /quarantine/.test($('job-steps').textContent) && $('job-steps').textContent)" % job["id"])
        self.assertRegex(text, r"Submitted.*Started.*Failed: %s.*The input is in quarantine" % job["error"]["code"].replace(".", r"\."))
        self.assertIn("To do: " + job["error"]["hint"], browser.run("document.getElementById('quarantine').textContent"))
        self.open(browser)  # the browser has the files of the page already
        browser.wait("document.querySelectorAll('.row').length === 2")
        self.check_clean(browser)

    def test_hostile_names_are_texts(self):
        d, browser = self.start(HOSTILE, fake=False)
        d.wait_idle()
        self.open(browser)
        browser.wait("document.querySelectorAll('.row').length === %d" % len(HOSTILE))
        browser.wait("[...document.querySelectorAll('#gallery img')].filter((i) => i.complete && i.naturalWidth > 0).length === %d" % len(HOSTILE))
        for job in d.jobs():
            browser.run("openJob('%s')" % job["id"])
            browser.wait("document.getElementById('job').open && document.getElementById('job').textContent.includes('%s')" % job["id"])
        self.assertEqual(browser.run("document.querySelectorAll('#list img, [onerror], #job img[src=x]').length"), 0)
        self.assertNotIn("taken", browser.run("document.title"))
        self.assertFalse(browser.run("/[\\u202a-\\u202e\\u2066-\\u2069]/.test(document.body.textContent)"))
        self.check_clean(browser)

    def test_keyboard_and_names_for_readers(self):
        d, browser = self.start(["%d.tif" % i for i in range(6)], fake=False)
        d.wait_idle()
        self.open(browser)
        browser.run("document.getElementById('list').focus()")
        browser.press("ArrowDown", 40)
        self.assertEqual(browser.run("shown.findIndex((job) => job.id === selected)"), 1)
        browser.press("Enter", 13)
        browser.wait("document.getElementById('job').open")
        browser.press("Escape", 27)
        browser.wait("!document.getElementById('job').open")
        browser.press("/", 191)
        browser.wait("document.activeElement.id === 'search'")
        nodes = browser.call("Accessibility.getFullAXTree")["nodes"]
        for node in nodes:
            if not node.get("ignored") and node.get("role", {}).get("value") in ("button", "listbox", "option", "searchbox", "image", "progressbar", "region"):
                self.assertTrue(node.get("name", {}).get("value"), node)
        self.assertEqual(sum(node.get("role", {}).get("value") == "option" for node in nodes), 6)

    def test_page_fits_phone_and_wall(self):
        d, browser = self.start(HOSTILE, fake=False)
        d.wait_idle()
        for width, height in ((320, 640), (390, 844), (1024, 768), (1440, 900), (3840, 2160)):
            browser.size(width, height, dark=width == 390)
            self.open(browser)
            self.assertLessEqual(browser.run("document.documentElement.scrollWidth"), width)
            browser.run("openJob(shown[0].id)")
            browser.wait("document.getElementById('job').open")
            self.assertLessEqual(browser.run("document.documentElement.scrollWidth"), width)
        self.check_clean(browser)

    def test_long_list_has_few_elements(self):
        d, browser = self.start()
        self.open(browser)
        browser.run("""for (let i = 0; i < 10000; i++) keep({id: "20260101-000000-" + String(i).padStart(5, "0"), name: "scene_" + i + ".tif", folder: null, pipeline: "p", priority: 0,
            status: "successful", progress: 100, updated: "2026-01-01T00:00:00.000Z", finished: "2026-01-01T00:00:00.000Z", error: null, preview: null, attempts: 1})""")
        browser.wait("shown.length === 10000 && !waiting")
        self.assertLess(browser.run("document.querySelectorAll('.row').length"), 60)
        browser.run("document.getElementById('list').focus()")
        browser.press("End", 35)
        browser.wait("document.querySelector('.row[aria-selected=true]')?.textContent.includes('scene_0.tif')")
        browser.run("document.getElementById('search').value = 'scene_777'; document.getElementById('search').dispatchEvent(new Event('input'))")
        browser.wait("shown.length === 11")
        self.check_clean(browser)

    def test_graphs_and_machines(self):
        d, browser = self.start(["%d.tif" % i for i in range(3)], fake=False)
        d.wait_idle()
        browser.size(1440, 900)
        self.open(browser)
        browser.wait("document.querySelectorAll('#graphs svg').length === 5")
        browser.run("""{ const real = window.fetch; const slots = 180; const last = Math.floor(Date.now() / 20000);
            const column = (at) => [...Array(slots).keys()].map((i) => i < 100 || i === 150 ? null : at(i));
            const past = { span: "hour", slot_s: 20, slots, cores: 2, first_s: (last - slots + 1) * 20, since: new Date((last - 79) * 20000).toISOString(), covered_s: column(() => 20), done: column((i) => i % 7),
              failed: column((i) => i === 120), read_bytes: column(() => 2e9), written_bytes: column(() => 1e6), p50_s: column((i) => i % 7 ? 2 : null), p99_s: column((i) => i % 7 ? 30 : null), waiting: column(() => 3),
              waiting_most: column(() => 4), running: column(() => 1), cpu_share: column(() => 0.5), busy_share: { read: column(() => 0.25), compute: column(() => 0.9), write: column(() => null) },
              all: { done: 230, failed: 1, read_bytes: 1e9, written_bytes: 1e6, p50_s: 2, p99_s: 30, cpu_share: 0.5, busy_share: { read: 0.25, compute: 0.9, write: null } } };
            window.fetch = (address) => address.startsWith("/api/graphs") ? Promise.resolve(new Response(JSON.stringify(past))) : real(address); }
            document.querySelector("#graph-spans button").click()""")
        text = browser.wait("/230 scenes/.test(document.getElementById('graph-summary').textContent) && document.getElementById('graph-summary').textContent")
        for part in ("1 failed", "1.0 GB read", "half of the products within 2 s", "99 % within 30 s", "compute (90 %", "Since 2"):
            self.assertIn(part, text)
        self.assertEqual(browser.run("document.querySelector('#graphs svg').querySelectorAll('.gap').length"), 2)
        self.assertEqual(browser.run("document.querySelector('#graphs svg path.green').getAttribute('d').split('M').length - 1"), 2)  # no line passes the gap
        browser.run("document.querySelectorAll('#graphs svg')[1].focus()")
        browser.press("ArrowLeft", 37)
        self.assertIn("read 100 MB/s", browser.run("document.activeElement.getAttribute('aria-valuetext')"))
        self.assertIn("half within", browser.run("document.querySelectorAll('#graphs svg')[2].getAttribute('aria-valuetext')"))
        browser.press("End", 35)
        for i in range(29):
            browser.press("ArrowLeft", 37)
        self.assertIn("read unknown", browser.run("document.activeElement.getAttribute('aria-valuetext')"))  # slot 150
        browser.run("document.getElementById('graph-numbers').open = true")
        browser.wait("document.querySelectorAll('#graph-table tbody tr').length === 79")
        self.assertEqual(browser.run("document.querySelectorAll('#graph-table thead th').length"), 13)
        self.assertTrue(browser.run("document.getElementById('machines-zone').hidden"))
        text = browser.run("""{ keep({id: "20260101-000000-aaaa", name: "far.tif", folder: null, pipeline: "p", priority: 0, status: "running", progress: 40, updated: "2026-01-01T00:00:00.000Z",
            finished: null, error: null, preview: null, attempts: 1, node: "hot-2"});
            info = { ...info, node: "hot-1", nodes: [{ name: "hot-1", reports: true, silent_s: 2, running: 0 }, { name: "hot-2", reports: true, silent_s: 1, running: 1 }, { name: "<b>", reports: false, silent_s: 400, running: 0 }] };
            drawMachines(); document.getElementById('machines-zone').hidden ? '' : document.getElementById('machines').textContent }""")
        for part in ("hot-1 (this page's)", "0 jobs run", "1 job runs", "far.tif", "40%", "<b>", "Does not report since 6m"):
            self.assertIn(part, text)
        for width in (320, 3840):
            browser.size(width, 2160, dark=width == 320)
            browser.wait("Math.abs(document.querySelector('#graphs svg').getBoundingClientRect().width - document.querySelector('#graphs figure').clientWidth) < 1")
            self.assertLessEqual(browser.run("document.documentElement.scrollWidth"), width)
        self.check_clean(browser)

    def test_failed_load_is_repeated(self):
        d, browser = self.start(["scene.tif"])
        self.open(browser)
        for failure in ("Promise.reject(new TypeError('lost'))", "Promise.resolve(new Response('{}', { status: 503 }))"):
            browser.run("{ const real = window.fetch; window.failures = 0; window.fetch = (address) => "
                        "address.startsWith('/api/jobs?') && failures++ === 0 ? %s : real(address); load(); }" % failure)
            browser.wait("failures > 1 && loaded && jobs.size === 1")
        self.check_clean(browser)

    def test_lost_service_is_shown(self):
        d, browser = self.start(fake=False)
        self.open(browser)
        d.stop()
        browser.wait("document.getElementById('troubles').textContent.includes('service.unreachable')")
        d.start()
        browser.wait("document.getElementById('troubles').textContent === ''")
        shutil.copy(self.scene, d.root / "inbox" / "later.tif")
        browser.wait("[...jobs.values()].some((job) => job.name === 'later.tif' && job.status === 'successful')")


if __name__ == "__main__":
    main(workers=2)
