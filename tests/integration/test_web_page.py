#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: optimised
"""The page of pushbroom-web in a headless Chromium, with a real service and real scenes: jobs, pictures, remedies, hostile names,
keyboard, sizes, a long list, the values of COGs, and pictures on the map. Skipped where Chromium is not installed (the package
chromium)."""
import http.server
import json
import os
import random
import re
import shutil
import struct
import sys
import threading
import unittest

import numpy as np
from osgeo import gdal, osr

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from browser_kit import CHROMIUM, Browser  # noqa: E402
from daemon_kit import DaemonCase  # noqa: E402
from patience import wait_for  # noqa: E402
from pbtest import main, need_data, program_folder, run  # noqa: E402
from web_kit import PIPELINES, Web, make_certificate  # noqa: E402

FOLDER = program_folder()
LEAFLET = os.path.exists("/usr/share/javascript/leaflet/leaflet.min.js")
LOADED = "typeof loaded === 'boolean' && loaded && !waiting"
gdal.UseExceptions()
# Files that the viewer shows: type, bands, and options of GDAL's writer.
COGS = {
    "uint8 deflate, pixels": ("uint8", 3, "COMPRESS=DEFLATE", "INTERLEAVE=PIXEL", "PHOTOMETRIC=RGB"),
    "uint16 deflate 2, pixels": ("uint16", 4, "COMPRESS=DEFLATE", "PREDICTOR=2", "INTERLEAVE=PIXEL"),
    "uint16 zstd 2, bands": ("uint16", 3, "COMPRESS=ZSTD", "PREDICTOR=2", "INTERLEAVE=BAND"),
    "int16 zstd 2": ("int16", 1, "COMPRESS=ZSTD", "PREDICTOR=2", "ZSTD_LEVEL=19"),
    "float32 zstd 3": ("float32", 1, "COMPRESS=ZSTD", "PREDICTOR=3"),
    "float32 deflate 3, pixels": ("float32", 2, "COMPRESS=DEFLATE", "PREDICTOR=3", "INTERLEAVE=PIXEL", "BIGTIFF=YES"),
    "float32 deflate 3, big-endian": ("float32", 1, "COMPRESS=DEFLATE", "PREDICTOR=3", "ENDIANNESS=BIG"),
    "uint16 deflate 2, big-endian": ("uint16", 1, "COMPRESS=DEFLATE", "PREDICTOR=2", "ENDIANNESS=BIG", "BIGTIFF=YES"),
    "float64 zstd 3": ("float64", 1, "COMPRESS=ZSTD", "PREDICTOR=3"),
    "uint32 zstd 2": ("uint32", 1, "COMPRESS=ZSTD", "PREDICTOR=2"),
    "int32 lzw 2": ("int32", 1, "COMPRESS=LZW", "PREDICTOR=2"),
    "uint8 webp": ("uint8", 3, "COMPRESS=WEBP", "WEBP_LOSSLESS=YES", "INTERLEAVE=PIXEL"),
    "uint8 webp, alpha": ("uint8", 4, "COMPRESS=WEBP", "WEBP_LOSSLESS=YES", "INTERLEAVE=PIXEL", "PHOTOMETRIC=RGB", "ALPHA=YES"),
    "uint8 jpeg": ("uint8", 3, "COMPRESS=JPEG", "PHOTOMETRIC=YCBCR", "JPEG_QUALITY=95", "INTERLEAVE=PIXEL"),
}
# The values of all pixels of a band as the viewer has them; null where they are not valid.
PIXELS = """((band) => Array.from({length: cog.full.height}, (_, row) => Array.from({length: cog.full.width}, (_, column) => {
    const found = cog.tileAt(0, column, row), tile = cog.tiles.get(cog.key(0, found.index)), {array, from, each} = cog.samples(tile, band);
    const value = array ? array[from + found.pixel * each] : 0;
    return !cog.isValid(tile, found.pixel) || value !== value || value === cog.nodata ? null : value; })))"""
SHOWN = "cog && (cog.alert.textContent || cog.dialog.dataset.ready === 'true')"
HOSTILE = ("<img src=x onerror=document.title='taken'>.tif", "a..%2f..%2fetc.tif", "\u202egnp.exe\u2066.tif", "x" * 200 + ".tif", "a&b\"c'.tif")


@unittest.skipUnless(CHROMIUM, "chromium is not on this machine")
class Page(DaemonCase):
    def start(self, names=(), web=None, **settings):
        scene = FOLDER / "scene.tif"
        d = self.daemon(start=False, **settings)
        if not scene.exists():  # renamed when it is complete: other cases run at the same time
            made = FOLDER / (d.root.name + ".tif")
            run("make_scene", "--size", "96x64", made)
            made.rename(scene)
        d.set_pipelines(PIPELINES + ("web: %s\n" % web if web else ""))
        for name in names:
            shutil.copy(scene, d.root / "inbox" / name)
        d.start()
        d.wait_for(lambda: len(d.jobs(limit=1000)) >= len(names))  # it answers before it looks at the inbox
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
        self.assertRegex(text, r"Submitted.*Started.*Failed: %s.*The input is in quarantine.*Log of the service.*broken\.tif failed" % job["error"]["code"].replace(".", r"\."))
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
            browser.run("select('%s')" % job["id"])  # the map has its name, too
            browser.run("openJob('%s')" % job["id"])
            browser.wait("document.getElementById('job').open && document.getElementById('job').textContent.includes('%s')" % job["id"])
            browser.run("document.querySelector('#job .cog-link').click()")
            browser.wait(SHOWN)
            self.assertEqual(browser.run("[cog.alert.textContent, cog.looks.value]"), ["", "item:quicklook"])
            self.assertEqual(browser.run("document.querySelectorAll('#cog img, [onerror]').length"), 0)
            browser.run("cog.dialog.close()")
        self.assertEqual(browser.run("document.querySelectorAll('#list img, [onerror], #job img[src=x], #map-zone img').length"), 0)
        self.assertNotIn("taken", browser.run("document.title"))
        self.assertFalse(browser.run("/[\\u202a-\\u202e\\u2066-\\u2069]/.test(document.body.textContent)"))
        self.check_clean(browser)

    @unittest.skipUnless(LEAFLET, "libjs-leaflet is not on this machine")
    def test_picture_lands_where_its_item_says(self):
        d, browser = self.start(fake=False)
        scene = need_data() / "real/sentinel2_29RKH/L2A_PVI.tif"
        for name in ("first.tif", "second.tif"):
            shutil.copy(scene, d.root / "inbox" / name)
        turned = gdal.Translate(str(d.root / "turned.tif"), str(scene), outputSRS="EPSG:32660")  # across 180 degrees
        turned.SetGeoTransform((750000, 2800, 1500, -1800000, 1500, -2800))
        turned = None
        (d.root / "turned.tif").rename(d.root / "inbox" / "turned.tif")
        (d.root / "inbox" / "broken.tif").write_bytes(scene.read_bytes()[:900])
        d.wait_job("broken.tif", "failed")
        d.wait_idle()
        self.open(browser)
        browser.wait("!!window.mapZone && mapZone.map.getSize().x > 0")
        # Colours of the canvas at a place, and of the picture at the same pixel.
        browser.run("""window.coloursAt = (places) => {
            const map = mapZone.map, shown = document.querySelector('#map canvas'), own = map.getContainer().getBoundingClientRect(), box = shown.getBoundingClientRect();
            const copy = document.createElement('canvas'), scale = shown.width / box.width;
            [copy.width, copy.height] = [shown.width, shown.height];
            const context = copy.getContext('2d', { willReadFrequently: true });
            context.drawImage(shown, 0, 0);
            return places.map(([lon, lat]) => {
                const at = map.latLngToContainerPoint([lat, lon + 360 * Math.round((map.getCenter().lng - lon) / 360)]), border = map.getContainer().clientLeft;
                return [...context.getImageData((own.left + border + at.x - box.left) * scale, (own.top + border + at.y - box.top) * scale, 1, 1).data];
            });
        }
        window.pixelsOf = async (address) => {
            const image = new Image();
            image.src = address;
            await image.decode();
            const canvas = document.createElement('canvas');
            [canvas.width, canvas.height] = [image.naturalWidth, image.naturalHeight];
            canvas.getContext('2d').drawImage(image, 0, 0);
            return { w: canvas.width, h: canvas.height, data: [...canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data] };
        }""")
        for name in ("first", "turned"):
            job = d.wait_job(name + ".tif", "successful")
            browser.run("select('%s')" % job["id"])
            browser.wait("document.getElementById('map-about').textContent.includes('%s')" % name)
            rings = json.loads((d.root / "products" / name / "ndvi" / (name + ".stac.json")).read_text())["geometry"]["coordinates"]
            points = [(lon % 360 if name == "turned" else lon, lat) for part in rings for lon, lat in (part if name == "first" else part[0])]
            # The item's geometry, by which the corners are found: the outermost points along both diagonals.
            if name == "first":
                corner = [max(points, key=lambda p: x * p[0] + y * p[1]) for x, y in ((-1, 1), (1, 1), (1, -1), (-1, -1))]
            else:  # turned by about 28 degrees
                corner = [key(points, key=lambda p: p[axis]) for key, axis in ((min, 0), (max, 1), (max, 0), (min, 1))]
            picture = browser.run("pixelsOf(jobs.get('%s').preview)" % job["id"])
            w, h = picture["w"], picture["h"]

            def place(u, v):
                return [(1 - v) * ((1 - u) * corner[0][k] + u * corner[1][k]) + v * ((1 - u) * corner[3][k] + u * corner[2][k]) for k in (0, 1)]
            wanted = [(x, y) for x in range(2, w - 2, 3) for y in range(2, h - 2, 3) if picture["data"][4 * (y * w + x) + 3] == 255]
            self.assertGreater(len(wanted), 50)
            script = "coloursAt(%s)" % json.dumps([place((x + 0.5) / w, (y + 0.5) / h) for x, y in wanted])

            def error():
                """Mean difference of the colours, and that to the picture moved by two pixels."""
                found = browser.run(script)
                return [sum(abs(f[k] - picture["data"][4 * (y * w + x + aside) + k]) for f, (x, y) in zip(found, wanted) for k in range(3)) / len(found) / 3 for aside in (0, 2)]
            wait_for(lambda: 3 * error()[0] < error()[1])
            ground, = browser.run("coloursAt([%s])" % place(-0.15, 0.5))
            self.assertIn(ground[:3], ([223, 233, 242], [247, 246, 241]))  # sea, land
        self.assertIn("1 without a place", browser.run("document.getElementById('map-count').textContent"))
        self.check_selection(d, browser)
        self.check_clean(browser)

    def check_selection(self, d, browser):
        """The first click selects a job in the list, the next one another job at the same place; filters leave out jobs."""
        jobs = {name: d.wait_job(name + ".tif", "successful")["id"] for name in ("first", "second", "turned")}
        browser.run("select('%s')" % jobs["first"])
        browser.run("select('%s')" % jobs["turned"])
        browser.run("void mapZone.map.setView([24.8, -11.4], 6, { animate: false })")
        seen = set()
        for _ in range(2):
            spot = browser.run("(() => { const box = mapZone.map.getContainer().getBoundingClientRect(), at = mapZone.map.latLngToContainerPoint([24.8, -11.4]); return [box.left + at.x, box.top + at.y]; })()")
            before = browser.run("selected")
            browser.click(*spot)
            browser.wait("selected !== '%s'" % before)
            seen.add(browser.run("selected"))
            browser.wait("document.querySelector('.row[aria-selected=true]')?.id === 'row-' + selected")
        self.assertEqual(seen, {jobs["first"], jobs["second"]})
        browser.run("document.getElementById('search').value = 'turned'; document.getElementById('search').dispatchEvent(new Event('input'))")
        browser.wait("document.getElementById('map-count').textContent === '1 place'")
        browser.run("document.getElementById('map').focus()")
        browser.press("PageDown", 34)
        browser.wait("selected === '%s'" % jobs["turned"])
        self.assertGreater(browser.run("mapZone.map.getBounds().getCenter().lng"), 170)
        browser.run("document.querySelector('.leaflet-control-zoom-in').focus(); window.zoom = mapZone.map.getZoom()")
        browser.press("Enter", 13)
        browser.wait("mapZone.map.getZoom() > zoom")
        self.assertFalse(browser.run("document.getElementById('job').open"))
        browser.run("document.getElementById('map').focus()")
        browser.press("Enter", 13)
        browser.wait("document.getElementById('job').open")
        browser.press("Escape", 27)
        browser.run("document.getElementById('map-day').value = '2001-01-01'; document.getElementById('map-day').dispatchEvent(new Event('change'))")
        browser.wait("document.getElementById('map-count').textContent === '0 places'")

    def test_keyboard_and_names_for_readers(self):
        d, browser = self.start(["%d.tif" % i for i in range(6)], fake=False)
        d.wait_idle()
        picture = next((d.root / "products").rglob("0.png"))
        picture.rename(d.root / "kept.png")  # until the end
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
        self.assertEqual(sum(node.get("role", {}).get("value") == "option" and ".tif" in node["name"]["value"] for node in nodes), 6)
        self.check_troubles(browser)
        browser.run("openJob([...jobs.values()].find((job) => job.name === '0.tif').id)")
        browser.wait("document.getElementById('job').open && document.getElementById('job').textContent.includes('0.tif') && !document.querySelector('#job img')")
        self.assertEqual(browser.run("[...document.querySelectorAll('#job a')].filter((a) => !a.textContent).length"), 0)  # no empty link stays
        (d.root / "kept.png").rename(picture)

    def check_troubles(self, browser):
        """Screen readers get a trouble once, though a count in its message changes."""
        browser.run("""{ window.spoken = 0; new MutationObserver(() => { spoken++; }).observe(document.getElementById('alert'), { childList: true, characterData: true, subtree: true });
            window.trouble = (key, message) => { info = { ...info, troubles: [...info.troubles.filter((t) => t.key !== key), { key, code: 'inbox.files', message, hint: null, since: null }] }; drawTroubles(); }; }""")
        seen = browser.run("""(async () => { const seen = []; for (const [key, message] of [['a', '1 file waits'], ['a', '2 files wait'], ['b', 'another']]) {
            trouble(key, message); await null; seen.push([spoken, document.getElementById('troubles').textContent.includes(message)]); } return seen; })()""")
        self.assertEqual(seen, [[1, True], [1, True], [2, True]])
        self.assertEqual(browser.run("document.getElementById('alert').textContent"), "inbox.files: another")

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
              waiting_most: column(() => 4), running: column(() => 1), cpu_share: column(() => 0.5), thread_share: { read: column(() => 0.25), compute: column(() => 0.7), write: column(() => null), parked: column(() => 0.05) },
              all: { done: 230, failed: 1, read_bytes: 1e9, written_bytes: 1e6, p50_s: 2, p99_s: 30, cpu_share: 0.5, thread_share: { read: 0.25, compute: 0.7, write: null, parked: 0.05 } } };
            window.fetch = (address) => address.startsWith("/api/graphs") ? Promise.resolve(new Response(JSON.stringify(past))) : real(address); }
            document.querySelector("#graph-spans button").click()""")
        text = browser.wait("/230 scenes/.test(document.getElementById('graph-summary').textContent) && document.getElementById('graph-summary').textContent")
        for part in ("1 failed", "1.0 GB read", "half of the products within 2 s", "99 % within 30 s", "compute (70 %", "Since 2"):
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
        self.assertEqual(browser.run("document.querySelectorAll('#graph-table thead th').length"), 14)
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

    # --- values of COGs ---

    def make_cog(self, path, dtype, bands, *options, size=(150, 100), mask=False):
        """A GeoTIFF with tiles and an overview: fields with noise and without data."""
        width, height = size
        rng = np.random.default_rng(3)
        rows, columns = np.mgrid[0:height, 0:width]
        kind = np.dtype(dtype)
        kinds = {"uint8": gdal.GDT_Byte, "uint16": gdal.GDT_UInt16, "int16": gdal.GDT_Int16, "uint32": gdal.GDT_UInt32, "int32": gdal.GDT_Int32,
                 "float32": gdal.GDT_Float32, "float64": gdal.GDT_Float64}
        data = gdal.GetDriverByName("GTiff").Create(str(path), width, height, bands, kinds[dtype], ["TILED=YES", "BLOCKXSIZE=64", "BLOCKYSIZE=64", *options])
        data.SetGeoTransform((600000, 10, 0, 5900040, 0, -10))
        data.SetProjection(self.utm.ExportToWkt())
        for b in range(bands):
            values = 100 + 80 * np.sin(columns / 17 + b) * np.cos(rows / 11) + rng.normal(0, 4, (height, width))
            values = values * (1 if kind.itemsize == 1 else 0.01 if kind.kind == "f" else -100 if kind.kind == "i" else 100)
            values = np.clip(values, 1, 255) if kind.itemsize == 1 else values
            if not mask and "COMPRESS=JPEG" not in options:
                nodata = float("nan") if kind.kind == "f" else 0
                values[40:60, 70:120] = nodata
                data.GetRasterBand(b + 1).SetNoDataValue(nodata)
            data.GetRasterBand(b + 1).WriteArray(values.astype(kind))
        if mask:
            gdal.SetConfigOption("GDAL_TIFF_INTERNAL_MASK", "YES")
            data.CreateMaskBand(gdal.GMF_PER_DATASET)
            data.GetRasterBand(1).GetMaskBand().WriteArray(np.where((columns + rows) % 7 == 0, 0, 255).astype(np.uint8))
        data.FlushCache()
        data.BuildOverviews("AVERAGE", [2])
        data = None

    def start_viewer(self):
        """The service with a product, whose file the tests replace. Returns the path of the file and the browser."""
        self.utm = osr.SpatialReference()
        self.utm.ImportFromEPSG(32632)
        d, browser = self.start(["s.tif"], fake=False)
        job = d.wait_job("s.tif", "successful")
        cog, = (product for product in d.call("job.get", id=job["id"])["products"] if product["type"] == "cog")
        self.open(browser)
        browser.wait("jobs.size === 1")
        path = d.root / "products" / cog["path"]
        content = path.read_bytes()
        self.addCleanup(path.write_bytes, content)  # the STAC item is compared to it in the end
        return path, browser

    def show(self, browser, query="", until=SHOWN):
        """Opens the viewer. Returns the words of an error."""
        browser.run("location.hash = ''; followAddress(); location.hash = '#cog=/products/s/ndvi/s.tif&item=s.stac.json%s'" % query)
        browser.wait(until)
        return browser.run("cog.alert.textContent")

    def test_cogs_are_as_gdal_reads_them(self):
        path, browser = self.start_viewer()
        for name, (dtype, bands, *options) in COGS.items():
            with self.subTest(name):
                path.unlink()
                self.make_cog(path, dtype, bands, *options)
                self.assertEqual(self.show(browser, "&at=75,50,3" + ("&look=rgb" if bands > 2 else "")), "")
                data = gdal.Open(str(path))
                for b in range(bands):
                    expected = data.GetRasterBand(b + 1).ReadAsArray(buf_type=gdal.GDT_Float64)
                    expected[data.GetRasterBand(b + 1).GetMaskBand().ReadAsArray() == 0] = np.nan
                    if "ALPHA=YES" in options:  # colours of transparent pixels have no meaning
                        expected[data.GetRasterBand(bands).ReadAsArray() == 0] = np.nan
                    found = np.array(browser.run(PIXELS + "(%d)" % b), dtype=float)
                    if "COMPRESS=JPEG" in options:  # two decoders differ by some levels
                        self.assertLess(np.abs(found - expected).mean(), 2)
                    else:
                        np.testing.assert_array_equal(found, expected)
        path.unlink()
        self.make_cog(path, "uint16", 1, "COMPRESS=DEFLATE", mask=True)
        content = bytearray(path.read_bytes())  # the first tile of the mask is removed: none of its pixels is valid
        head, = struct.unpack_from("<I", content, 4)
        head, = struct.unpack_from("<I", content, head + 2 + 12 * struct.unpack_from("<H", content, head)[0])
        entries = {struct.unpack_from("<H", content, at)[0]: struct.unpack_from("<HII", content, at + 2) for at in range(head + 2, head + 2 + 12 * struct.unpack_from("<H", content, head)[0], 12)}
        self.assertEqual(entries[254][2], 4)
        for tag in (324, 325):
            kind, _, place = entries[tag]
            struct.pack_into("<H" if kind == 3 else "<I", content, place, 0)
        path.write_bytes(content)
        self.assertEqual(self.show(browser, "&at=75,50,3"), "")
        found = np.array(browser.run(PIXELS + "(0)"), dtype=float)
        data = gdal.Open(str(path))
        np.testing.assert_array_equal(np.isnan(found), data.GetRasterBand(1).GetMaskBand().ReadAsArray() == 0)
        self.assertEqual(browser.mistakes(), [])
        self.check_broken(path, browser)

    def test_pointer_reads_pixels(self):
        path, browser = self.start_viewer()
        browser.run("openJob([...jobs.values()][0].id)")
        browser.wait("document.querySelector('#job .cog-link') !== null")
        browser.run("document.querySelector('#job .cog-link').click()")
        browser.wait(SHOWN)
        self.assertEqual(browser.run("cog.looks.value"), "item:quicklook")
        self.assertTrue(browser.run("cog.dialog.getBoundingClientRect().right === innerWidth && document.documentElement.clientWidth === innerWidth"))  # no bar of the page
        values = gdal.Open(str(path)).ReadAsArray()
        ground = osr.CoordinateTransformation(self.utm, osr.SpatialReference(osr.SRS_WKT_WGS84_LAT_LONG))
        for column, row in ((0, 0), (95, 63), (17, 40)):
            x, y = browser.run("(() => { cog.view = {x: %d, y: %d, scale: 7}; cog.isFit = false; cog.moved(); const box = cog.canvas.getBoundingClientRect();"
                               "return [box.left + cog.width / 2 + 3, box.top + cog.height / 2 + 3]; })()" % (column, row))
            browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
            browser.wait("!cog.waiting && cog.canvas.dataset.pixel === '%d,%d'" % (column, row))
            value = re.match(r"NDVI: (\S+)$", browser.run("cog.status.textContent")).group(1)
            self.assertEqual(np.float32(value), values[row, column])
            east, north, longitude, latitude = re.match(r".* EPSG:32632 (\S+), (\S+) \S (\S+)\u00b0E (\S+)\u00b0N$", browser.run("cog.place.textContent")).groups()
            self.assertEqual((float(east), float(north)), (600005 + 10 * column, 5900035 - 10 * row))
            expected = ground.TransformPoint(float(east), float(north))
            np.testing.assert_allclose((float(latitude), float(longitude)), expected[:2], atol=1e-6)
        # The link of a view shows the same view.
        browser.run("cog.look.get('viridis') && cog.setLook('viridis', true)")
        link = browser.run("cog.link()")
        view = browser.run("JSON.stringify([cog.view, cog.shown.key, cog.shown.ranges])")
        browser.press("Escape", 27)
        browser.wait("cog === null && location.hash === ''")
        browser.run("location.hash = %s" % json.dumps(link))
        browser.wait(SHOWN)
        self.assertEqual(browser.run("JSON.stringify([cog.view, cog.shown.key, cog.shown.ranges])"), view)
        self.assertLessEqual(browser.run("cog.read.requests"), 2)
        # Keys, and what the pixel in the middle has at an overview's zoom.
        path.unlink()
        self.make_cog(path, "int16", 1, "COMPRESS=ZSTD", size=(2000, 1500))
        self.show(browser)
        browser.run("cog.canvas.focus()")
        self.assertIn("overview 1:2", browser.run("cog.valueText(700, 800)"))
        before = browser.run("cog.view.x")
        browser.press("ArrowRight", 39)
        self.assertGreater(browser.run("cog.view.x"), before)
        browser.press("Enter", 13)
        browser.wait("!cog.waiting && /^band 1: \\S+$/.test(cog.status.textContent)")
        column, row = map(int, browser.run("cog.canvas.dataset.pixel").split(","))
        self.assertEqual(int(browser.run("cog.status.textContent").split()[2]), gdal.Open(str(path)).ReadAsArray(column, row, 1, 1)[0, 0])
        self.check_clean(browser)

    def check_broken(self, path, browser):
        """Damaged files are refused with words, or shown; and addresses of other things are not opened."""
        made = path.parent / "made.tif"

        def put(data):
            path.unlink()
            path.write_bytes(data)
            return self.show(browser)

        chance = random.Random(5)
        for dtype, *options in (("uint16", "COMPRESS=DEFLATE", "PREDICTOR=2", "BIGTIFF=YES"), ("uint8", "COMPRESS=LZW"), ("float32", "COMPRESS=ZSTD", "PREDICTOR=3")):
            self.make_cog(made, dtype, 1, *options)
            good = made.read_bytes()
            made.unlink()
            for _ in range(4):  # shown or refused, and never without an end
                flipped = bytearray(good)
                for _ in range(chance.randint(1, 4)):
                    flipped[chance.randrange(len(good))] ^= 1 << chance.randrange(8)
                put(flipped)
        head, = struct.unpack_from("<I", good, 4)
        n, = struct.unpack_from("<H", good, head)
        entries = {struct.unpack_from("<H", good, at)[0]: at for at in range(head + 2, head + 2 + 12 * n, 12)}
        broken = {"not there": b"", "head": good[:200], "cut off": good[:len(good) // 2], "no TIFF": b"\x89PNG" + good[4:]}
        for what, tag, value in (("width", 256, 0x7fffffff), ("tile", 322, 0xffffff0), ("compression", 259, 34925), ("bits", 258, 7), ("bands", 277, 60000), ("table", 324, len(good) - 4)):
            changed = bytearray(good)
            struct.pack_into("<I", changed, entries[tag] + 8, value)
            broken[what] = bytes(changed)
        loop = bytearray(good)
        struct.pack_into("<I", loop, head + 2 + 12 * n, head)
        broken["directories in a loop"] = bytes(loop)
        for what, data in broken.items():
            with self.subTest(what):
                self.assertRegex(put(data), "^Not shown: \\w.*\\w\\. ")
        large = bytearray(good + struct.pack("<64I", *[100000] * 64) + bytes(200000))  # tiles of 16 KiB
        struct.pack_into("<H", large, entries[325] + 2, 4)
        struct.pack_into("<I", large, entries[325] + 8, len(good))
        self.assertIn("the size of a tile is damaged", put(large))
        # Pictures whose heads have a far larger size than the tile are not decoded.
        for options, head, size in ((("COMPRESS=WEBP", "WEBP_LOSSLESS=YES"), rb"(VP8L....\x2f)....", b"\xff\xff\xff\x0f"),
                                    (("COMPRESS=JPEG", "PHOTOMETRIC=YCBCR"), rb"(\xff\xc0\x00\x11\x08)....", b"\xff\xdc\xff\xdc")):
            self.make_cog(made, "uint8", 3, *options, "INTERLEAVE=PIXEL")
            data, n = re.subn(head, lambda found: found[1] + size, made.read_bytes(), flags=re.DOTALL)
            made.unlink()
            self.assertGreater(n, 0)
            self.assertIn("a tile has another size", put(data))
        # Metadata with entities, in the place of the tag of the value without data, have no names.
        words = b'<!DOCTYPE a [<!ENTITY b "long">]><GDALMetadata><Item sample="0" role="description">&b;</Item></GDALMetadata>\0'
        named = bytearray(good + words)
        struct.pack_into("<HHII", named, entries[42113], 42112, 2, len(words), len(good))
        self.assertEqual(put(named), "")
        self.assertEqual(browser.run("cog.bands[0].name"), "")
        for address in ("https://example.org/products/a.tif", "/api/info", "/products/../api/info", "//example.org/products/a.tif", "javascript:alert(1)"):
            browser.run("location.hash = ''; followAddress(); location.hash = '#cog=%s'" % address)
            browser.run("new Promise((resolve) => requestAnimationFrame(resolve))")
            self.assertIsNone(browser.run("cog"), address)
        self.assertEqual([a for a in browser.addresses() if not a.startswith(self.address + "/")], [])
        self.assertEqual([m for m in browser.mistakes() if "status of 4" not in str(m)], [])  # 416 for the empty file

    @unittest.skipUnless(LEAFLET, "libjs-leaflet is not on this machine")
    def test_tiles_come_from_the_named_host_only(self):
        gdal.GetDriverByName("PNG").CreateCopy("/vsimem/tile.png", gdal.GetDriverByName("MEM").Create("", 256, 256, 3))
        file = gdal.VSIFOpenL("/vsimem/tile.png", "rb")
        picture = bytes(gdal.VSIFReadL(1, gdal.VSIStatL("/vsimem/tile.png").size, file))
        gdal.VSIFCloseL(file)

        class Tiles(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                seen.append((self.path, self.headers.get("Referer")))
                self.send_response(200)
                self.send_header("Content-Type", "image/png")
                self.send_header("Content-Length", str(len(picture)))
                self.end_headers()
                self.wfile.write(picture)

            def log_message(self, *_):
                pass

        servers, seen = [http.server.ThreadingHTTPServer(("127.0.0.1", 0), Tiles) for _ in range(2)], []
        for server in servers:
            thread = threading.Thread(target=server.serve_forever)
            thread.start()
            for end in (thread.join, server.server_close, server.shutdown):  # in the reverse order
                self.addCleanup(end)
        named, other = ("http://127.0.0.1:%d" % server.server_address[1] for server in servers)
        d, browser = self.start(web="{basemap: \"%s/{z}/{x}/{y}.png\", attribution: \"<b>Us\"}" % named)
        self.open(browser)
        browser.wait("document.querySelectorAll('#map .leaflet-tile-loaded').length > 0")
        self.assertEqual(browser.run("document.getElementById('map-owner').textContent"), "<b>Us")
        self.assertTrue(all(re.fullmatch(r"/\d+/-?\d+/-?\d+\.png", path) and referer is None for path, referer in seen), seen)
        self.assertEqual(browser.mistakes(), [])
        self.assertEqual([a for a in browser.addresses() if not a.startswith((self.address + "/", named + "/"))], [])
        browser.run("void (() => { window.blocked = ''; const i = new Image(); i.onerror = () => { blocked = 'refused'; }; i.onload = () => { blocked = 'loaded'; }; i.src = '%s/a.png'; })()" % other)
        self.assertEqual(browser.wait("blocked"), "refused")

    def test_stream_is_a_strip_of_its_scenes(self):
        """Rate, gaps and delay of a stream; its scenes in the order of their lines, the newest in sight."""
        d = self.daemon(start=False, fake=False)
        d.set_pipelines("""compute: {device: cpu}
pipelines:
  swir:
    input: {stream: swir, bands: {R: 3, N: 4}, lines: {every: 64}}
    products: [quicklook: {bands: [N]}]
""")
        d.start()
        web = Web(d.root / "s.sock", d.root / "web.log")
        self.addCleanup(web.stop)
        browser = Browser()
        self.addCleanup(browser.close)
        self.address = "http://127.0.0.1:%d" % web.port
        self.open(browser)
        browser.wait("!document.getElementById('streams-zone').hidden")
        self.assertIn("no writer", browser.run("document.getElementById('streams').textContent"))
        d.wait_streams()
        run("pushbroom", "feed", "--socket", d.root / "s.sock", "--stream", "swir", "--lines-per-second", "5000", "--start", "2026-11-30T12:00:00Z", need_data() / "real/landsat7_L7_ETMs_6band.tif")
        self.assertEqual(browser.wait("document.querySelectorAll('.strip img').length === 6 && [...document.querySelectorAll('.strip img')].every((i) => i.complete && i.naturalWidth > 0)"), True)
        names = browser.run("[...document.querySelectorAll('.strip button')].map((b) => b.title)")
        self.assertEqual([name.split("_")[2].split(":")[0] for name in names], ["320", "256", "192", "128", "64", "0"])
        browser.run("document.querySelector('.strip').style.maxHeight = '100px'")  # more than is in sight
        browser.wait("(() => { const s = document.querySelector('.strip'), box = s.getBoundingClientRect(), ends = [...s.children].map((b) => b.getBoundingClientRect().bottom);"
                     "return s.scrollHeight > s.clientHeight && Math.abs(ends[0] - box.bottom) < 4 && ends.every((end, i) => i === 0 || end < ends[i - 1]); })()")
        self.assertIn("352 lines \u00b7 6 scenes", browser.wait("/352 lines/.test(document.getElementById('streams').textContent) && document.getElementById('streams').textContent"))
        browser.run("document.querySelector('.strip button').click()")
        browser.wait("document.getElementById('job').open && document.getElementById('job-title').textContent.includes('swir_')")
        self.check_clean(browser)

    # --- changes ---

    @unittest.skipUnless(shutil.which("openssl"), "openssl is not on this machine")
    def test_known_people_change_jobs(self):
        """Without a token there are no buttons and no change; with one a job is retried and dropped by the keyboard."""
        d = self.daemon(start=False)
        d.config.write_text(d.config.read_text() + "\nweb: {actions: true}\n")
        d.start()
        d.drop("a.tif", "fail")
        job = d.wait_job("a.tif", "failed")["id"]
        (d.root / "tokens").write_text("alice alice-has-a-long-token\n")
        (d.root / "tokens").chmod(0o600)
        certificate, key = make_certificate(d.root)
        web = Web(d.root / "s.sock", d.root / "web.log", "--token-file", str(d.root / "tokens"), certificate=certificate, key=key)
        self.addCleanup(web.stop)
        browser = Browser("--ignore-certificate-errors")
        self.addCleanup(browser.close)
        self.address = "https://127.0.0.1:%d" % web.port
        self.open(browser)
        browser.wait("document.querySelector('#person button')?.textContent === 'Sign in'")
        browser.run("openJob('%s')" % job)
        self.assertIn("Sign in to change", browser.wait("document.getElementById('job-actions')?.textContent"))
        self.assertEqual(browser.run("document.querySelectorAll('#job-actions button').length"), 0)
        self.assertEqual(browser.run("fetch('/api/jobs/%s/retry', { method: 'POST' }).then((reply) => reply.status)" % job), 401)
        self.assertEqual(d.jobs()[0]["attempts"], 1)
        browser.press("Escape", 27)
        browser.wait("!document.getElementById('job').open")
        browser.run("document.querySelector('#person button').focus()")
        for token in ("wrong", "alice-has-a-long-token"):
            if token != "wrong":
                browser.wait("document.getElementById('sign-in-state').textContent === 'This token is not known.'")
            else:
                browser.press("Enter", 13)
                browser.wait("document.activeElement.id === 'token'")
            browser.run("document.getElementById('token').value = '%s'" % token)
            browser.press("Enter", 13)
        browser.wait("!document.getElementById('sign-in').open && document.getElementById('person').textContent === 'aliceSign out'")
        self.assertNotIn("alice-has", browser.run("document.cookie + JSON.stringify({ ...localStorage, ...sessionStorage })"))
        for word, question, done in (("retry", "Compute this job again?", "(job) => job.attempts === 1 && job.status === 'failed'"), ("drop", "for good", "(job) => job.status === 'dismissed'")):
            browser.run("openJob('%s')" % job)
            browser.wait("document.getElementById('job').open && !!document.querySelector('#job-actions [data-job=act-%s]')" % word)
            before = browser.run("jobs.get('%s').updated" % job)
            browser.run("document.querySelector('#job-actions [data-job=act-%s]').focus()" % word)
            browser.press("Enter", 13)
            browser.wait("document.activeElement.dataset.job === 'no'")  # the safe answer has the focus
            self.assertIn(question, browser.run("document.getElementById('question').textContent"))
            browser.press("Enter", 13)
            browser.wait("!document.getElementById('question')")
            self.assertEqual(browser.run("jobs.get('%s').updated" % job), before)
            browser.run("document.querySelector('#job-actions [data-job=act-%s]').click()" % word)
            names = [node["name"]["value"] for node in browser.call("Accessibility.getFullAXTree")["nodes"] if node.get("role", {}).get("value") in ("button", "group") and not node.get("ignored")]
            self.assertIn("Change this job", names)
            self.assertIn("No", names)
            browser.run("document.querySelector('#job-actions [data-job=yes]').focus()")
            browser.press("Enter", 13)
            browser.wait("jobs.get('%s').updated > '%s' && (%s)(jobs.get('%s'))" % (job, before, done, job))
        browser.wait("document.querySelector('#job-actions [data-job=act-retry]') && !document.querySelector('#job-actions [data-job=act-drop]')")
        browser.press("Escape", 27)
        browser.run("document.querySelector('[data-job=sign-out]').click()")
        browser.wait("document.getElementById('person').textContent === 'Sign in'")
        self.assertRegex(web.log.read_text(), r"(?s)retry refused: no person.*retry by alice \(cookie\): done.*drop by alice \(cookie\): done")

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
