#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: threads sanitized
"""pushbroom-web with a real service and real scenes: its answers and refusals, hostile names, ranges, events of many
browsers, and clients that are slow or silent."""
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import unittest
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from daemon_kit import BIN, DaemonCase  # noqa: E402
from patience import wait_for  # noqa: E402
from osgeo import gdal  # noqa: E402
try:
    import jsonschema
except ImportError:
    jsonschema = None
from pbtest import main, need_data, program_folder, run  # noqa: E402
from web_kit import PIPELINES, Silent, Stream, Web, make_certificate  # noqa: E402

gdal.UseExceptions()
FOLDER = program_folder()
HOSTILE = ("<script>alert(1)</script>.tif".replace("/", "_"), "a..%2f..%2fetc.tif", "\u202egnp.exe\u2066.tif", "a&b\"c'd#e?f.tif", "x" * 200 + ".tif")


def scene(size=64):
    path = FOLDER / ("%d.tif" % size)
    if not path.exists():
        own = FOLDER / ("%d-%d.tif" % (size, os.getpid()))
        run("make_scene", "--size", "%dx%d" % (size, size), own)
        own.rename(path)
    return path


class WebCase(DaemonCase):
    def service(self, names=(), size=64, **settings):
        d = self.daemon(start=False, fake=False, **settings)
        d.set_pipelines(PIPELINES)
        for name in names:
            shutil.copy(scene(size), d.root / "inbox" / name)
        d.start()
        d.wait_for(lambda: len(d.jobs(limit=1000)) >= len(names))  # it answers before it looks at the inbox
        return d

    def web(self, d, *options, **more):
        web = Web(d.root / "s.sock", d.root / "web.log", *options, **more)
        self.addCleanup(web.stop)
        wait_for(lambda: web.get("/api/info").status == 200)
        return web


class Answers(WebCase):
    def test_page_is_strict_and_cached(self):
        web = self.web(self.service())
        for path, kind in (("/", "text/html"), ("/icon.svg", "image/svg+xml"), *(("/%s.css" % name, "text/css") for name in ("page", "graphs", "cog", "map", "leaflet")),
                           *(("/%s.js" % name, "text/javascript") for name in ("page", "actions", "streams", "graphs", "cogview", "cogfacts", "cog", "zstd", "map", "coast", "leaflet"))):
            reply = web.get(path)
            self.assertEqual((reply.status, reply.headers["Content-Type"].split(";")[0]), (200, kind))
            policy = reply.headers["Content-Security-Policy"]
            self.assertIn("default-src 'none'", policy)
            self.assertNotIn("unsafe", policy)
            self.assertEqual(reply.headers["X-Content-Type-Options"], "nosniff")
            known = web.get(path, If_None_Match=reply.headers["ETag"])
            self.assertEqual((known.status, known.body), (304, b""))
            for name in ("Content-Security-Policy", "ETag", "Cache-Control"):  # a browser takes the new ones
                self.assertEqual(known.headers[name], reply.headers[name], (path, name))
            head = web.get(path, method="HEAD")
            self.assertEqual((head.status, head.body, head.headers["Content-Length"]), (200, b"", str(len(reply.body))))
        leaflet = pathlib.Path("/usr/share/javascript/leaflet/leaflet.min.js")  # the package libjs-leaflet
        self.assertEqual(web.get("/leaflet.js").body, leaflet.read_bytes() if leaflet.exists() else b"")
        self.assertNotIn(b"http:", web.get("/").body + web.get("/page.css").body + web.get("/page.js").body.replace(b"http://www.w3.org", b""))

    def test_other_requests_are_refused(self):
        web = self.web(self.service())
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"):
            reply = web.get("/api/info", method=method)
            self.assertEqual((reply.status, reply.headers["Allow"]), (405, "GET, HEAD"), method)
        self.assertIn(b" 413 ", web.raw(b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"))
        for host in ("evil.example", "localhost.evil.example:%d" % web.port):
            reply = web.get("/api/info", Host=host)
            self.assertEqual((reply.status, reply.json()["error"]["code"]), (421, "refused"))
        self.assertEqual(web.get("/api/info", Host="localhost:1").status, 200)
        self.assertIn(b" 421 ", web.raw(b"GET / HTTP/1.0\r\n\r\n"))
        for second in (b"Host: evil.example", b"Host: localhost"):  # a proxy may have checked the other one
            self.assertRegex(web.raw(b"GET / HTTP/1.1\r\nHost: localhost\r\n" + second + b"\r\nConnection: close\r\n\r\n")[:13], rb"HTTP/1.1 4(21|00)")
        self.assertNotIn(b" 200 ", web.raw(b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")[:13])
        for path in ("/nothing", "/api", "/page.html", "/products/", "/products/..%2f..%2fetc%2fpasswd", "/api/jobs/a%22b"):
            self.assertEqual(web.get(path).status, 404, path)
        for junk in (b"\x16\x03\x01\x02\x00", b"GET / HTTP/9.9\r\nHost: localhost\r\n\r\n", b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
                     b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"A: b\r\n" * 20000 + b"\r\n"):
            self.assertNotIn(b" 200 ", web.raw(junk + b"\r\n\r\n")[:20])
        self.assertEqual(web.get("/").status, 200)

    def test_name_of_this_host_is_allowed(self):
        web = self.web(self.service(), "--name", "ground.example", "--name", "second.example")
        for host in ("ground.example", "second.example:443", "127.0.0.1"):
            self.assertEqual(web.get("/", Host=host).status, 200)
        self.assertEqual(web.get("/", Host="third.example").status, 421)

    def test_api_is_that_of_the_socket(self):
        d = self.service(["%d.tif" % i for i in range(5)])
        d.wait_idle()
        web = self.web(d)
        info = web.json("/api/info")
        self.assertEqual((info["version"], info["jobs"]["successful"]), (d.call("service.info")["version"], 5))
        self.assertGreater(info["space"]["bytes"], info["space"]["free_bytes"])
        rows = web.json("/api/jobs?limit=2")["jobs"]
        self.assertEqual(len(rows), 2)
        while more := web.json("/api/jobs?limit=2&before=" + rows[-1]["id"])["jobs"]:
            rows += more
        self.assertEqual([row["id"] for row in rows], [job["id"] for job in d.jobs()])
        self.assertNotIn("report", rows[0])
        self.assertEqual(web.json("/api/jobs?status=failed")["jobs"], [])
        job = web.json("/api/jobs/" + rows[0]["id"])
        self.assertEqual((job["report"] is not None, job["error"]), (True, None))
        self.assertEqual({p["type"] for p in job["products"]}, {"cog", "quicklook", "statistics", "stac"})
        for product in job["products"]:
            self.assertEqual(web.get(product["href"]).body, pathlib.Path(product["path"]).read_bytes())
        for path, status in (("/api/jobs/none", 404), ("/api/jobs?limit=x", 400), ("/api/jobs?status=weird", 400), ("/api/jobs?before=a%22", 400)):
            reply = web.get(path)
            self.assertEqual((reply.status, bool(reply.json()["error"]["message"])), (status, True), path)
        events = web.json("/api/jobs/%s/events" % rows[0]["id"])["events"]
        self.assertEqual(events, d.call("job.events", id=rows[0]["id"])["events"])
        self.assertEqual([event["event"] for event in events], ["job.accepted", "job.running", "job.successful"] + 4 * ["product.published"])
        self.assertEqual(web.get("/api/jobs/none/events").status, 404)
        metrics = web.get("/metrics")
        self.assertTrue(metrics.headers["Content-Type"].startswith("text/plain"))
        self.assertIn(b"pushbroom_web_requests_total", metrics.body)
        self.assertIn(b"pushbroom_clients", metrics.body)

    def test_history_has_what_happened(self):
        d = self.service()
        web = self.web(d)
        wait_for(lambda: web.json("/api/graphs")["since"])
        for name in ("a.tif", "b.tif", "c.tif"):
            shutil.copy(scene(), d.root / "inbox" / name)
        graphs = wait_for(lambda: (found := web.json("/api/graphs?span=hour"))["all"]["done"] == 3 and found)
        self.assertEqual((graphs["span"], graphs["slots"], len(graphs["done"]), graphs["all"]["failed"]), ("hour", 180, 180, 0))
        self.assertEqual(sum(n or 0 for n in graphs["done"]), 3)
        self.assertEqual(graphs["done"][0], None)  # an hour ago
        self.assertEqual(graphs["all"]["written_bytes"], sum(job["bytes_written"] for job in d.jobs()))
        self.assertGreater(graphs["all"]["p99_s"], graphs["all"]["p50_s"])
        self.assertEqual(set(graphs["thread_share"]), {"read", "compute", "write", "parked"})
        self.assertAlmostEqual(sum(graphs["all"]["thread_share"].values()), 1, delta=0.01)
        for span in ("day", "week"):
            self.assertEqual(web.json("/api/graphs?span=" + span)["all"], graphs["all"])
        self.assertEqual(web.get("/api/graphs?span=year").status, 400)

    def test_service_may_go_and_come(self):
        d = self.service()
        web = self.web(d)
        stream = Stream(web)
        self.addCleanup(stream.close)
        stream.wait("hello", lambda hello: hello["reachable"])
        d.stop()
        stream.wait("hello", lambda hello: not hello["reachable"])
        reply = web.get("/api/info")
        self.assertEqual((reply.status, reply.json()["error"]["code"]), (503, "service.unreachable"))
        self.assertEqual(web.get("/").status, 200)
        d.start()
        stream.wait("hello", lambda hello: hello["reachable"])
        shutil.copy(scene(), d.root / "inbox" / "a.tif")
        stream.wait("job", lambda job: job["status"] == "successful")
        self.assertEqual(web.get("/api/info").status, 200)

    def test_wrong_options_are_reported(self):
        program = str(BIN / "pushbroom-web")
        self.assertIn("usage: pushbroom-web", subprocess.run([program, "--help"], capture_output=True, text=True).stdout)
        self.assertRegex(subprocess.run([program, "--version"], capture_output=True, text=True).stdout, r"^pushbroom-web \d")
        for options in (["--listen", "nothing"], ["--listen", "example.org:80"], ["--listen", "127.0.0.1:"], ["--listen", "127.0.0.1:99999999"], ["extra"], ["--unknown"]):
            done = subprocess.run([program, *options], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr != ""), (2, True), options)
        with socket.create_server(("127.0.0.1", 0)) as taken:
            done = subprocess.run([program, "--listen", "127.0.0.1:%d" % taken.getsockname()[1]], capture_output=True, text=True)
            self.assertEqual(done.returncode, 1)
            self.assertIn("Address already in use", done.stderr)


PLACES = """pipelines:
  picture:
    input: {match: ["*_p.tif"], bands: {R: 1}}
    products: [quicklook: {bands: [R]}, stac: {datetime: "2026-01-01T00:00:00Z"}]
  sheet:
    input: {match: ["*_s.tif"], bands: {R: 1, G: 2}}
    products: [quicklook: {layout: sheet}, stac: {datetime: "2026-01-01T00:00:00Z"}]
"""


class Places(WebCase):
    def test_corners_are_those_of_the_picture(self):
        scene = str(need_data() / "real/sentinel2_29RKH/L2A_PVI.tif")
        d = self.daemon(start=False, fake=False)
        d.set_pipelines(PLACES)
        inbox = d.root / "inbox"
        for name, code, transform in (("utm_p", 32629, (199980, 3430, 0, 2800020, 0, -3430)),  # over 12 degrees west
                                      ("turned_p", 32629, (300000, 280, 150, 2800020, 150, -280)), ("upside_p", 32629, (199980, 3430, 0, 2690260, 0, 3430)),
                                      ("quarter_p", 32629, (199980, 0, 3430, 2690260, 3430, 0)), ("fiji_p", 32660, (750000, 3430, 0, -1800000, 0, -3430)),
                                      ("none_p", None, (0, 1, 0, 0, 0, 1)), ("utm_s", 32629, (199980, 3430, 0, 2800020, 0, -3430))):
            copy = d.root / (name + ".tif")
            made = gdal.Translate(str(copy), scene, bandList=[1, 2] if name == "utm_s" else [1], noData=None)
            made.SetProjection("")
            if code:
                made.SetProjection("EPSG:%d" % code)
            made.SetGeoTransform(transform)
            made = None
            copy.rename(inbox / copy.name)
        d.start()
        d.wait_idle()
        rows = {row["scene"]: row for row in self.web(d).json("/api/jobs")["jobs"]}
        self.assertEqual(len(rows), 7)
        for name in ("none_p", "utm_s"):
            self.assertEqual((rows[name]["status"], rows[name]["corners"]), ("successful", None), name)
        self.assertIsNone(rows["none_p"]["bbox"])
        for name in ("utm_p", "turned_p", "upside_p", "quarter_p", "fiji_p"):
            corners = rows[name]["corners"]
            self.assertEqual(len(corners), 4, rows[name])
            item = json.loads((d.root / "products" / name / "picture" / (name + ".stac.json")).read_text())
            rings = [part if item["geometry"]["type"] == "Polygon" else part[0] for part in item["geometry"]["coordinates"]]
            places = {(round(lon, 5), round(lat, 5)) for ring in rings for lon, lat in ring}
            for lon, lat in corners:
                self.assertIn((round((lon + 180) % 360 - 180, 5), round(lat, 5)), places, name)
            (nw, ne, se, sw), mean = corners, [sum(c[k] for c in corners) / 4 for k in (0, 1)]
            for corner, west, north in ((nw, 1, 1), (ne, 0, 1), (se, 0, 0), (sw, 1, 0)):
                self.assertEqual((corner[0] < mean[0], corner[1] > mean[1]), (bool(west), bool(north)), (name, corners))
        self.assertTrue(rows["fiji_p"]["bbox"][0] > rows["fiji_p"]["bbox"][2] and rows["fiji_p"]["corners"][1][0] > 180)


WAITS = """pipelines:
  slow:
    input: {match: ["*_s.tif"], bands: {R: 1, N: 2}}
    products: [cog: {bands: [R, N], compress: zstd, level: 19}]
  picture:
    input: {match: ["*_p.tif"], bands: {R: 1}}
    products: [quicklook: {bands: [R]}]
"""


class Waits(WebCase):
    def test_place_is_known_before_the_end(self):
        """A job that runs, one that failed after its header was read, and one that waits again have the bounds of their scene."""
        d = self.daemon(start=False, fake=False)
        d.set_pipelines(WAITS)
        d.start()
        web = self.web(d)
        stream = Stream(web)
        self.addCleanup(stream.close)
        stream.wait("hello", lambda hello: hello["reachable"])
        shutil.copy(scene(700), d.root / "inbox" / "a_s.tif")
        running = stream.wait("job", lambda job: job["status"] == "successful" or (job["status"] == "running" and job["bbox"]))
        self.assertEqual(running["status"], "running")
        done = stream.wait("job", lambda job: job["status"] == "successful")
        self.assertEqual(running["bbox"], done["bbox"])
        data = bytearray(scene(700).read_bytes())
        middle = len(data) // 2
        data[middle:middle + 4096] = bytes(4096)
        (d.root / "damaged").write_bytes(data)
        (d.root / "damaged").rename(d.root / "inbox" / "b_p.tif")
        (d.root / "inbox" / "c_p.tif").write_bytes(b"no image")
        failed = d.wait_job("b_p.tif", "failed")
        self.assertEqual(failed["bbox"], done["bbox"], failed)
        self.assertIsNone(d.wait_job("c_p.tif", "failed")["bbox"])  # its place was never known
        d.call("service.drain")
        d.call("job.retry", id=failed["id"])
        row, = web.json("/api/jobs?status=accepted")["jobs"]
        self.assertEqual((row["name"], row["bbox"]), ("b_p.tif", done["bbox"]))
        d.call("service.drain", off=True)
        d.wait_job("b_p.tif", "failed")
        again = d.call("job.again", id=done["id"])
        self.assertEqual(again["bbox"], done["bbox"])


class Files(WebCase):
    def test_hostile_names_are_data(self):
        d = self.service(HOSTILE)
        d.wait_idle()
        web = self.web(d)
        rows = web.json("/api/jobs")["jobs"]
        self.assertEqual(len(rows), len(HOSTILE))
        delivered = set()
        for row in rows:
            self.assertEqual(row["status"], "successful", row)
            self.assertRegex(row["preview"], r"^/products/[A-Za-z0-9._~%/-]+$")
            job = web.json("/api/jobs/" + row["id"])
            delivered.update(map(os.path.basename, job["delivered"]))
            for product in job["products"]:
                reply = web.get(product["href"])
                self.assertEqual((reply.status, reply.body), (200, pathlib.Path(product["path"]).read_bytes()))
                self.assertIn("sandbox", reply.headers["Content-Security-Policy"])
        self.assertEqual(delivered, set(HOSTILE))
        self.check_catalogue(web, [row["id"] for row in rows])
        for path in ("/api/jobs", "/api/info"):
            self.assertEqual(web.get(path).headers["Content-Type"], "application/json")

    def check_catalogue(self, web, jobs):
        """All items are reached by links from the root, and their assets are the files."""
        links = lambda document: {link["rel"]: link["href"].removeprefix("http://127.0.0.1:%d" % web.port) for link in document["links"]}
        root = wait_for(lambda: "child" in links(found := web.json("/stac")) and found)
        self.assertEqual(root["conformsTo"], web.json(links(root)["conformance"])["conformsTo"])
        self.assertEqual(web.get(links(root)["service-desc"]).headers["Content-Type"], "application/vnd.oai.openapi+json;version=3.0")
        collection = web.json(links(root)["child"])
        self.assertEqual(([collection], "ndvi"), (web.json(links(root)["data"])["collections"], collection["id"]))
        items, path = [], links(collection)["items"] + "?limit=2&datetime=2026-01-01T00%3A00%3A00Z"
        while path:
            page = web.json(path)
            items += page["features"]
            path = links(page).get("next")
        self.assertEqual(len(items), len(jobs))
        west, south, east, north = collection["extent"]["spatial"]["bbox"][0]
        inside = json.dumps({"type": "Point", "coordinates": [(west + east) / 2, (south + north) / 2]}).replace(" ", "")
        for query, n in (("bbox=%s,%s,%s,%s" % (west, south, east, north), len(items)), ("bbox=%s,%s,%s,%s" % (east + 1, south, east + 2, north), 0), ("intersects=" + inside, len(items)),
                         ("ids=" + urllib.parse.quote(items[0]["id"]), 1), ("collections=other", 0), ("datetime=../2025-12-31T23:59:59Z", 0)):
            self.assertEqual(len(web.json(links(root)["search"] + "?" + query)["features"]), n, query)
        found, body = [], {"limit": 2, "collections": ["ndvi"], "datetime": "2026-01-01T00:00:00Z"}
        while body:  # the link of a page has the body of the next request
            reply = web.post(links(root)["search"], body)
            self.assertEqual((reply.status, reply.headers["Content-Type"]), (200, "application/geo+json"))
            found += reply.json()["features"]
            body = next((link["body"] for link in reply.json()["links"] if link["rel"] == "next"), None)
        self.assertEqual(found, items)
        self.assertEqual([item["id"] for item in web.post("/stac/search", {"ids": [items[0]["id"], "x"], "intersects": json.loads(inside)}).json()["features"]], [items[0]["id"]])
        self.check_bodies(web)
        for item in items:
            reply = web.get(links(item)["self"])
            self.assertEqual((reply.status, reply.json(), reply.headers["Content-Type"]), (200, item, "application/geo+json"))
            self.assertEqual(web.get(links(item)["self"], If_None_Match=reply.headers["ETag"]).status, 304)
            self.assertEqual(web.json(links(item)["canonical"])["id"], item["id"])
            for asset in item["assets"].values():
                self.assertEqual(int(web.get(links({"links": [{"rel": "a", "href": asset["href"]}]})["a"], method="HEAD").headers["Content-Length"]), asset["file:size"])
        for path, status in (("/stac/search?x=1", 400), ("/stac/collections/%3Cb%3E", 404), ("/stac/nothing", 404)):
            reply = web.get(path)
            self.assertEqual((reply.status, reply.json()["code"], reply.headers["Content-Type"]), (status, str(status), "application/problem+json"))

    def check_bodies(self, web):
        """Bodies that are refused, by their headers or their content; one that is not complete ends its connection."""
        good = {"Content-Type": "application/json"}
        for body, headers, status in ((b"{", good, 400), (b"[]", good, 400), (b"", good, 400), (b'{"limit": 1}', {}, 415), (b"{}", {"Content-Type": "text/plain"}, 415),
                                      (b"{}", {"Content-Type": "application/jsonx"}, 415), (b"{}", {"Content-Type": "Application/JSON; charset=utf-8"}, 200),
                                      (b'{"ids": ["' + b"x" * 65536 + b'"]}', good, 413), (b'{"x": 1}', good, 400)):
            self.assertEqual(web.get("/stac/search", "POST", body, **headers).status, status, (body[:30], headers))
        self.assertEqual(web.get("/stac/search?limit=1", "POST", b"{}", **good).status, 400)
        self.assertEqual(web.get("/stac/collections", "POST", b"{}", **good).status, 405)
        self.assertEqual(web.get("/stac/search", "GET", b"{}", **good).status, 413)
        head = b"POST /stac/search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n"
        for rest in (b"\r\n", b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
                     b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", b"Content-Length: 0x2\r\n\r\n{}"):
            self.assertRegex(web.raw(head + rest)[:13], rb"HTTP/1.1 4(11|00)", rest)
        self.assertEqual(web.raw(head + b"Content-Length: 30\r\n\r\n{").count(b"HTTP/1.1 200"), 0)  # after 20 s

    def test_description_is_that_of_the_router(self):
        """Each path of api.json has its methods and arguments and no others, and each address near it is in api.json."""
        d = self.service(["a.tif"])
        d.wait_idle()
        web = self.web(d)
        wait_for(lambda: web.json("/stac/collections")["collections"])
        job = d.jobs()[0]["id"]
        api = web.json("/api.json")
        values = {"collectionId": "ndvi", "itemId": web.json("/stac/search")["features"][0]["id"], "processId": "ndvi", "jobId": job}
        address = lambda path: re.sub(r"\{(\w+)\}", lambda found: values[found[1]], path)
        shared = {name: parameter["name"] for name, parameter in api["components"]["parameters"].items() if parameter["in"] == "query"}
        addresses = {address(path) for path in api["paths"]}
        for path, methods in api["paths"].items():
            expected = {method.upper() for method in methods} | ({"HEAD"} if "get" in methods else set())
            for method in ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
                reply = web.get(address(path), method, Accept="application/json")
                self.assertEqual(reply.status == 405, method not in expected, (path, method, reply.status))
                if method not in expected:
                    self.assertEqual(set(reply.headers["Allow"].split(", ")), expected, path)
                elif method == "GET":
                    self.assertEqual(reply.status, 200, path)
                    self.check_schema(api, methods["get"]["responses"]["200"], reply)
            if "get" not in methods:
                continue
            own = {parameter["$ref"].rsplit("/", 1)[1] for parameter in methods["get"].get("parameters", ())}
            for name, argument in shared.items() if path != "/" else ():  # the page has no arguments to refuse
                reply = web.get(address(path) + "?" + argument + "=%00")  # malformed, and for some paths unknown
                self.assertEqual(reply.status, 400, (path, name))
                reply = web.get(address(path) + "?" + argument + "=")
                refused = reply.status == 400 and reply.json()["title"] == "unknown or malformed parameter"
                self.assertEqual(refused, name not in own, (path, name, reply.body))
            for word in ("search", "conformance", "collections", "items", "processes", "jobs", "results", "execution", "queryables", "x"):
                near = address(path).rstrip("/") + "/" + word
                if near not in addresses:
                    self.assertEqual(web.get(near).status, 404, near)

    def check_schema(self, api, response, reply):
        """The answer has the described media type and form; without the package python3-jsonschema only the former is compared."""
        media_type, = response["content"]
        self.assertEqual(reply.headers["Content-Type"], media_type)
        if jsonschema:
            jsonschema.Draft4Validator({**response["content"][media_type]["schema"], "components": api["components"]}).validate(reply.json())

    def test_jobs_have_the_forms_of_ogc(self):
        d = self.service(["a.tif", "b.tif"])
        (d.root / "inbox/<b>.tif").write_bytes(b"no image")
        d.wait_job("<b>.tif", "failed")
        d.wait_idle()
        web = self.web(d)
        local = lambda href: href.removeprefix("http://127.0.0.1:%d" % web.port)
        links = lambda document: {link["rel"].rsplit("/", 1)[-1]: local(link["href"]) for link in document["links"]}
        root = web.get("/", Accept="application/json").json()
        page = web.get("/", Accept="text/html,application/json;q=0.9")
        self.assertIn(b"<!doctype html>", page.body.lower())
        self.assertEqual([web.get("/", **more).headers["Vary"] for more in ({}, {"Accept": "application/json"}, {"If_None_Match": page.headers["ETag"]})], 3 * ["Accept"])
        self.assertEqual([c for c in web.json(links(root)["conformance"])["conformsTo"] if "processes" in c], [])  # these demand execution
        self.assertEqual(web.post("/processes/ndvi/execution", {"inputs": {"scene": "/etc/hostname"}}).status, 403)  # web.actions is false
        summary = web.json(links(root)["processes"])["processes"]
        process = web.json(links(summary[0])["process"])
        self.assertEqual(([p["id"] for p in summary], process["id"], list(process["inputs"])), (["ndvi"], "ndvi", ["scene"]))
        jobs, path = [], links(root)["job-list"] + "?limit=2"
        while path:
            page = web.json(path)
            jobs += page["jobs"]
            path = links(page).get("next")
        self.assertEqual([job["jobID"] for job in jobs], [job["id"] for job in d.jobs()])
        for job in jobs:
            self.assertEqual((job["type"], job["processID"], web.json(links(job)["self"])["status"]), ("process", "ndvi", job["status"]))
            reply = web.get(links(job)["results" if job["status"] == "successful" else "exceptions"])
            if job["status"] == "successful":
                for key in ("cog", "quicklook", "statistics", "stac"):
                    self.assertEqual(web.get(local(reply.json()[key]["href"]), method="HEAD").status, 200)
            else:
                self.assertEqual((reply.status, reply.headers["Content-Type"], reply.json()["detail"]), (400, "application/problem+json", job["message"]))
        day = jobs[0]["created"]
        for query, n in (("status=failed", 1), ("status=successful,failed", 3), ("status=accepted", 0), ("processID=ndvi", 3), ("processID=x", 0), ("type=other", 0), ("datetime=../" + day, 3),
                         ("datetime=2000-01-01T00:00:00Z", 0), ("minDuration=100000", 0), ("maxDuration=100000&status=successful", 2)):
            self.assertEqual(len(web.json("/jobs?" + query)["jobs"]), n, query)
        exceptions = "http://www.opengis.net/def/exceptions/ogcapi-processes-1/1.0/"
        for path, method, status, kind in (("/jobs/none", "GET", 404, exceptions + "no-such-job"), ("/jobs/none/results", "GET", 404, exceptions + "no-such-job"),
                                           ("/processes/%3Cb%3E", "GET", 404, exceptions + "no-such-process"), ("/jobs?limit=0", "GET", 400, "about:blank"),
                                           ("/jobs?next=a%22", "GET", 400, "about:blank"), ("/jobs/a/b/c", "GET", 404, "about:blank"),
                                           ("/processes/ndvi/execution", "GET", 405, "about:blank"), ("/jobs/" + jobs[0]["jobID"], "PUT", 405, "about:blank")):
            reply = web.get(path, method=method)
            self.assertEqual((reply.status, reply.json()["type"], reply.headers["Content-Type"]), (status, kind, "application/problem+json"), path)
        self.assertEqual(web.get("/jobs", method="DELETE").headers["Allow"], "GET, HEAD")
        self.assertEqual(web.get("/jobs/" + jobs[0]["jobID"], method="DELETE").status, 403)  # web.actions is false
        self.assertEqual(web.get("/jobs/none", method="DELETE").status, 404)
        self.assertEqual(web.json("/processes/ndvi")["jobControlOptions"], [])

    def test_only_published_files_are_readable(self):
        d = self.service(["a.tif"])
        d.wait_idle()
        web = self.web(d)
        folder = d.root / "products/a/ndvi"
        good = "/products/a/ndvi/a.png"
        self.assertRegex(web.log.read_text(), "reads files of %s/products only|not confined to the products: no Landlock" % d.root)
        self.assertEqual(web.get(good).status, 200)
        (d.root / "products/secret.txt").write_text("secret")
        (folder / "secret.txt").write_text("secret")
        (folder / "link.png").symlink_to("/etc/passwd")
        (d.root / "products/out").symlink_to(d.root)
        (d.root / "products/same").symlink_to("a")
        os.mkfifo(folder / "pipe")
        for path in ("a/ndvi/.pushbroom.json", "a/ndvi/secret.txt", "secret.txt", "a/ndvi/link.png", "a/ndvi/pipe", "a/ndvi", "a", "a/ndvi/", "out/config.yaml",
                     "same/ndvi/a.png", "a/ndvi/../ndvi/a.png", "a/ndvi/%2e%2e/ndvi/a.png", "..%2fconfig.yaml", "%2e%2e/config.yaml", "a/ndvi/a.png/b", "a//ndvi/a.png",
                     "a/ndvi/a.png%00", "a/ndvi/A.PNG"):
            reply = web.get("/products/" + path)
            self.assertEqual(reply.status, 404, path)
            self.assertNotIn(b"secret", reply.body)
        listed = folder / "a.png"  # named by the manifest, and replaced by something else
        listed.unlink()
        listed.symlink_to("/etc/passwd")
        self.assertEqual(web.get(good).status, 404)
        listed.unlink()
        os.mkfifo(listed)
        self.assertEqual(web.get(good).status, 404)
        listed.unlink()
        listed.write_bytes(b"other")
        self.assertEqual(web.get(good).body, b"other")
        (folder / ".pushbroom.json").write_text("{}")
        self.assertEqual(web.get("/products/a/ndvi/a.tif").status, 404)
        shutil.rmtree(d.root / "products/a")  # the files differ from the STAC item, which is checked at the end

    def test_ranges_are_those_of_the_file(self):
        d = self.service(["a.tif"])
        d.wait_idle()
        web = self.web(d)
        path, data = "/products/a/ndvi/a.tif", (d.root / "products/a/ndvi/a.tif").read_bytes()
        n = len(data)
        whole = web.get(path)
        self.assertEqual((whole.status, whole.body, whole.headers["Accept-Ranges"], whole.headers["Content-Type"]), (200, data, "bytes", "image/tiff"))
        for text, first, end in (("0-0", 0, 1), ("0-%d" % (n - 1), 0, n), ("0-%d" % n, 0, n), ("%d-" % (n - 1), n - 1, n), ("5-", 5, n), ("-1", n - 1, n), ("-%d" % n, 0, n),
                                 ("-%d" % (n + 1), 0, n), ("7-99", 7, 100), ("1-99999999999999999999999", 1, n)):
            for method in ("GET", "HEAD"):
                reply = web.get(path, method=method, Range="bytes=" + text)
                self.assertEqual((reply.status, reply.headers["Content-Range"]), (206, "bytes %d-%d/%d" % (first, end - 1, n)), text)
                self.assertEqual(reply.headers["Content-Length"], str(end - first))
                self.assertEqual(reply.body, data[first:end] if method == "GET" else b"")
        for text in ("%d-" % n, "%d-%d" % (n, n + 5), "-0", "99999999999999999999999-"):
            reply = web.get(path, Range="bytes=" + text)
            self.assertEqual((reply.status, reply.headers["Content-Range"], reply.body), (416, "bytes */%d" % n, b""), text)
        for text in ("bytes=3-2", "bytes=0-1,4-5", "lines=0-1", "bytes=", "bytes=x-1"):
            reply = web.get(path, Range=text)
            self.assertEqual((reply.status, reply.body), (200, data), text)
        tag = whole.headers["ETag"]
        self.assertEqual(web.get(path, Range="bytes=0-3", If_Range=tag).status, 206)
        self.assertEqual(web.get(path, Range="bytes=0-3", If_Range='"other"').body, data)
        self.assertEqual(web.get(path, If_None_Match=tag).status, 304)
        os.utime(d.root / "products/a/ndvi/a.tif")
        self.assertEqual(web.get(path, If_None_Match=tag).status, 200)

    def test_connection_serves_several_requests(self):
        d = self.service(["a.tif"])
        d.wait_idle()
        connection = self.web(d).connect()
        for path in ("/", "/products/a/ndvi/a.png", "/nothing", "/api/info", "/products/a/ndvi/a.tif"):
            connection.request("GET", path, headers={"Range": "bytes=0-9"} if path.endswith("tif") else {})
            self.assertEqual(connection.getresponse().read() != b"", True)
            self.assertIsNotNone(connection.sock, path)
        connection.close()


class Events(WebCase):
    def test_all_browsers_share_one_watch(self):
        d = self.service()
        web = self.web(d)
        first = Stream(web)
        first.wait("info")
        before = d.call("service.info")["clients"]
        streams = [first] + [Stream(web) for _ in range(49)]
        for stream in streams:
            self.addCleanup(stream.close)
        shutil.copy(scene(), d.root / "inbox" / "a.tif")
        rows = [stream.wait("job", lambda job: job["status"] == "successful") for stream in streams]
        self.assertEqual(len({row["id"] for row in rows}), 1)
        self.assertEqual((rows[0]["name"], rows[0]["preview"]), ("a.tif", "/products/a/ndvi/a.png"))
        self.assertEqual(d.call("service.info")["clients"], before)
        self.assertIn(b"pushbroom_web_streams 50", web.get("/metrics").body)

    def test_reconnect_continues_where_it_was(self):
        d = self.service()
        web = self.web(d)
        stream = Stream(web)
        stream.wait("hello", lambda hello: hello["reachable"])
        shutil.copy(scene(), d.root / "inbox" / "a.tif")
        stream.wait("job", lambda job: job["name"] == "a.tif" and job["status"] == "accepted")
        last = stream.last
        stream.close()
        d.wait_job("a.tif", "successful")
        again = Stream(web, last)
        self.addCleanup(again.close)
        self.assertEqual(again.event()[0], "hello")
        kinds = []
        while True:
            kind, data = again.event()
            kinds.append(kind)
            if kind == "job" and data["status"] == "successful":
                break
        self.assertNotIn("reset", kinds)
        for unknown in ("1", "99999999999999", "x"):  # ids of another process, or nonsense
            other = Stream(web, unknown)
            self.addCleanup(other.close)
            self.assertEqual([other.event()[0] for _ in range(2)], ["hello", "reset"])

    def test_streams_have_a_limit(self):
        web = self.web(self.service())
        streams = [Stream(web) for _ in range(128)]
        for stream in streams:
            self.addCleanup(stream.close)
        self.assertEqual(web.get("/events").status, 503)
        self.assertEqual(web.get("/").status, 200)
        streams[0].close()
        wait_for(lambda: b"pushbroom_web_streams 127" in web.get("/metrics").body, step=0.5)
        Stream(web).close()

    def test_slow_and_silent_clients_delay_no_others(self):
        d = self.service(["a.tif"], size=700)
        d.wait_idle()
        web = self.web(d)
        kept = []
        for data in 400 * [b""] + 50 * [b"GET / HTTP/1.1\r\nHo"] + 20 * [b"GET /products/a/ndvi/a.tif HTTP/1.1\r\nHost: localhost\r\n\r\n"]:
            client = socket.create_connection(("127.0.0.1", web.port))
            client.sendall(data)
            kept.append(client)  # reads nothing
        for _ in range(20):
            self.assertEqual(web.get("/api/info").status, 200)
            self.assertEqual(web.get("/products/a/ndvi/a.png").status, 200)
        for client in kept:
            client.close()


class SilentService(WebCase):
    def silent(self, **answers):
        root = self.daemon(start=False).root
        answers = {"service.info": {"result": {"products": str(root)}}, "service.metrics": {"result": {"text": ""}}, "job.watch": {"result": {"watching": True, "seq": 0, "gone": False}},
                   **{"job." + name: answer for name, answer in answers.items()}}
        service = Silent(root / "silent.sock", answers)
        self.addCleanup(service.stop)
        web = Web(root / "silent.sock", root / "web.log")
        self.addCleanup(web.stop)
        return service, web

    def test_unanswered_queries_delay_no_event_and_no_stop(self):
        service, web = self.silent()
        stream = Stream(web)
        self.addCleanup(stream.close)
        stream.wait("info")
        queries = []
        for _ in range(40):
            query = web.connect()
            self.addCleanup(query.close)
            query.request("GET", "/api/jobs")
            queries.append(query)
        wait_for(lambda: "job.list" in service.asked)
        for _ in range(2):
            stream.wait("info")
        web.stop()  # with the queries that wait

    def test_unanswered_query_ends(self):
        service, web = self.silent()
        reply = web.get("/api/jobs")
        self.assertEqual((reply.status, reply.json()["error"]["code"]), (503, "service.unreachable"))
        self.assertEqual(service.asked.count("job.list"), 1)  # it is not repeated

    def test_unreadable_store_is_temporary(self):
        _, web = self.silent(list={"error": {"code": -32000, "message": "job store: locked", "data": {"code": "service.state"}}})
        reply = web.get("/api/jobs")
        self.assertEqual((reply.status, reply.headers["Retry-After"], reply.json()["error"]["code"]), (503, "2", "service.state"))


ALICE = {"Authorization": "Bearer alice-has-a-long-token"}
PAGE = {"Origin": "http://localhost"}
NO_JOB = "http://www.opengis.net/def/exceptions/ogcapi-processes-1/1.0/no-such-job"


class Changes(WebCase):
    def acting(self, actions="true", **options):
        """A service with a failed job, and pushbroom-web as service.web_user on a Unix socket; both are ready."""
        if os.geteuid() != 0:
            self.skipTest("only root can be another user")
        d = self.daemon(start=False, **options)
        if options:  # real pipelines
            d.set_pipelines(PIPELINES + "  second:\n    input: {match: [\"*.jp2\"], bands: {R: 1}}\n    products: [quicklook: {bands: [R]}]\n")
        d.root.chmod(0o755)
        d.change("  settle:", "  web_user: \"1007\"\n  settle:")
        d.config.write_text(d.config.read_text() + "\nweb: {actions: %s}\n" % actions)
        d.start()
        os.chmod(d.root / "s.sock", 0o666)
        d.drop("a.tif", "fail")  # no image
        job = d.wait_job("a.tif", "failed")["id"]
        own = d.root / "web"
        own.mkdir()
        (own / "tokens").write_text("alice alice-has-a-long-token\n")
        (own / "tokens").chmod(0o600)
        for path in (own, own / "tokens"):
            os.chown(path, 1007, 1007)
        web = self.web(d, "--token-file", str(own / "tokens"), "--user-header", "X-User", user=1007, unix=own / "w.sock")
        return d, web, "/api/jobs/%s/" % job

    def test_known_people_change_jobs(self):
        d, web, job = self.acting()
        self.assertEqual((d.root / "web/w.sock").stat().st_mode & 0o777, 0o660)
        self.assertEqual(web.json("/api/session"), {"actions": True, "why": None, "who": None, "proof": None, "tokens": True})
        for headers, status in (({}, 403), (PAGE, 401), ({**PAGE, "Authorization": "Bearer wrong"}, 401), ({**PAGE, "Cookie": "__Host-pushbroom=alice.1.x"}, 401),
                                ({"X-User": "carol"}, 403), ({**ALICE, "Origin": "https://evil.example"}, 403)):
            self.assertEqual(web.get(job + "retry", "POST", **headers).status, status, headers)
        for path, method in (("retry", "GET"), ("retry", "PUT"), ("retry", "DELETE"), ("submit", "POST")):
            self.assertEqual(web.get(job + path, method, **ALICE).status, 405, (path, method))
        self.assertEqual(d.jobs()[0]["attempts"], 1)
        done = web.get(job + "retry", "POST", **ALICE)
        self.assertEqual((done.status, done.json()["name"], done.json()["status"]), (200, "a.tif", "accepted"))
        d.wait_job("a.tif", "failed")
        d.drop("b.tif", "slow 100")
        running = "/jobs/" + d.wait_job("b.tif", "running")["id"]
        failed = job.removeprefix("/api").rstrip("/")
        end = running.removeprefix("/jobs/")[-4:]
        for path, headers, status, kind in ((running + "?x=1", ALICE, 400, "about:blank"), ("/jobs/" + end, ALICE, 404, NO_JOB), (running, {}, 403, None), (running, PAGE, 401, None), (failed, ALICE, 409, "about:blank"), ("/jobs/nothing", ALICE, 404, NO_JOB)):
            reply = web.get(path, "DELETE", **headers)
            self.assertEqual((reply.status, reply.json().get("type")), (status, kind), (path, headers))
        self.assertEqual(web.get("/jobs/nothing", "POST", **ALICE).headers["Allow"], "GET, HEAD, DELETE")
        self.assertEqual(web.json("/processes")["processes"][0]["jobControlOptions"], ["async-execute", "dismiss"])
        self.assertEqual(web.get("/api/jobs/%s/cancel" % end, "POST", **ALICE).json()["error"]["code"], "job.unknown")
        self.assertEqual(d.wait_job("b.tif", "running")["attempts"], 1)
        reply = web.get(running, "DELETE", **ALICE, If_None_Match="*")
        self.assertEqual((reply.status, reply.json()["jobID"]), (200, running.removeprefix("/jobs/")))
        d.wait_job("b.tif", "dismissed")
        for path, status, code in ((job + "cancel", 409, "job.state"), (job + "again", 409, "job.state"), (job + "again?priority=1000", 400, "query"),
                                   ("/api/jobs/nothing/retry", 404, "job.unknown")):
            reply = web.get(path, "POST", **ALICE)
            self.assertEqual((reply.status, reply.json()["error"]["code"]), (status, code), path)
        signed = web.get("/api/session", "POST", **ALICE, **PAGE)
        cookie = signed.headers["Set-Cookie"]
        for part in ("__Host-pushbroom=alice.", "Secure", "HttpOnly", "SameSite=Strict", "Path=/"):
            self.assertIn(part, cookie)
        cookie = {"Cookie": cookie.split(";")[0]}
        self.assertEqual(web.get("/api/session", **cookie).json()["who"], "alice")
        self.assertIsNone(web.get("/api/session", **ALICE).json()["who"])  # a page cannot try tokens without a line of the log
        self.assertEqual(web.get("/api/session", "POST", **cookie, **PAGE).status, 401)  # only a token signs in
        self.assertEqual(web.get(job + "drop", "POST", **cookie).status, 403)
        self.assertEqual(web.get(job + "drop", "POST", **cookie, **PAGE).json()["status"], "dismissed")
        self.assertIn("Max-Age=0", web.get("/api/session", "DELETE", **cookie, **PAGE).headers["Set-Cookie"])
        self.assertEqual(web.get(job + "cancel", "POST", X_User="carol", **PAGE).status, 409)
        twice = web.connect()
        twice.putrequest("POST", job + "cancel")
        for name, value in (("X-User", "carol"), ("x-user", "carol"), *PAGE.items()):
            twice.putheader(name, value)
        twice.endheaders()
        reply = twice.getresponse()
        self.assertEqual((reply.status, reply.headers["WWW-Authenticate"]), (401, 'Bearer realm="pushbroom"'))
        twice.close()
        web.get("/api/session", "DELETE", **PAGE)  # without a person there is no line
        log = web.log.read_text()
        for line in ("retry by alice (token): done", "drop by alice (cookie): done", "cancel by alice (token): done", "dismiss refused: no person is signed in", "cancel by carol (proxy): ", "retry refused: no person is signed in", "retry refused: another page sent it", "alice signed in"):
            self.assertIn(line, log)
        self.assertNotIn("alice-has-a", log)
        self.assertEqual(log.count("signed out"), 1)

    def test_process_is_executed(self):
        """The classes of OGC API Processes that are declared: execution in both forms, by value and by reference, and refusals."""
        d, web, _ = self.acting(fake=False)
        local = lambda href: re.sub("^https?://[^/]*", "", href)
        links = lambda document: {link["rel"].rsplit("/", 1)[-1]: local(link["href"]) for link in document["links"]}
        self.assertEqual({c.rsplit("/", 1)[1] for c in web.json("/conformance")["conformsTo"] if "processes" in c},
                         {"core", "ogc-process-description", "json", "oas30", "job-list", "dismiss"})
        process = web.json("/processes/ndvi")
        self.assertEqual((process["jobControlOptions"], process["outputTransmission"], list(process["outputs"])), (["async-execute", "dismiss"], ["value"], ["products"]))
        path = links(process)["execute"]
        self.assertEqual(path, "/processes/ndvi/execution")
        image = d.root / "an image+1.tif"
        shutil.copy(scene(), image)
        image.chmod(0o644)
        value, good = {"inputs": {"scene": str(image)}}, {**ALICE}
        for body, headers, status in ((value, {}, 403), (value, PAGE, 401), (value, {**good, "Origin": "https://evil.example"}, 403), ({}, good, 400), ({"inputs": {}}, good, 400), ({"inputs": {"scene": 1}}, good, 400),
                                      ({"inputs": {"scene": "a.tif"}}, good, 400), ({"inputs": {"scene": str(image), "x": 1}}, good, 400), ({"inputs": {"scene": {"href": "https://evil.example/a.tif"}}}, good, 400),
                                      ({"inputs": {"scene": {"href": "file://evil.example/a.tif"}}}, good, 400), ({**value, "outputs": {"x": {}}}, good, 400), ({**value, "response": "x"}, good, 400), ({**value, "response": None}, good, 400),
                                      ({**value, "outputs": {"products": {"transmissionMode": "reference"}}}, good, 400), ({"inputs": {"scene": str(d.root / "missing.tif")}}, good, 400)):
            self.assertEqual(web.post(path, body, **headers).status, status, (body, headers))
        self.assertEqual(web.post("/processes/none/execution", value, **good).json()["type"], NO_JOB.replace("job", "process"))
        self.assertEqual(len(d.jobs()), 1)
        for body, suffix in ((value, ""), ({"inputs": {"scene": {"href": "file://" + urllib.parse.quote(str(image))}}, "outputs": {"products": {"transmissionMode": "value"}}, "response": "document"}, "-document"),
                             ({"inputs": {"scene": {"value": str(image)}}, "response": "raw"}, "")):
            reply = web.post(path, body, **good)
            status = reply.json()
            self.assertEqual((reply.status, local(reply.headers["Location"]), status["processID"], status["type"]), (201, "/jobs/" + status["jobID"], "ndvi", "process"), status)
            self.assertTrue(status["jobID"].endswith(suffix))
            status = wait_for(lambda: (found := web.json(local(reply.headers["Location"])))["status"] == "successful" and found)
            self.assertEqual(status["jobID"], reply.json()["jobID"])
            results = web.json(links(status)["results"])
            if suffix:
                self.assertEqual(list(results), ["products"])
                results = results["products"]
            self.assertEqual(set(results), {"cog", "quicklook", "statistics", "stac"})
            self.assertEqual(web.get(local(results["cog"]["href"]), "HEAD").status, 200)
            job = status["jobID"].removesuffix("-document")
            self.assertEqual(d.call("job.get", id=job)["uid"], 1007)
            self.assertEqual(web.get("/jobs/" + status["jobID"], "DELETE", **good).status, 409)
        self.assertEqual(image.read_bytes(), scene().read_bytes())  # it stays where it is
        self.assertIn("process ndvi: execute by alice (token) with %s: done" % image, web.log.read_text())
        self.assertIn("process ndvi: execute refused: no person is signed in", web.log.read_text())
        first = web.json("/processes?limit=1")
        self.assertEqual(len(first["processes"]), 1)
        second = web.json(links(first)["next"])
        self.assertEqual(sorted(p["id"] for p in first["processes"] + second["processes"]), ["ndvi", "second"])
        self.assertNotIn("next", links(second))

    def test_nothing_changes_without_the_key(self):
        d, web, job = self.acting(actions="false")
        self.assertIn("web.actions", web.json("/api/session")["why"])
        reply = web.get(job + "retry", "POST", **ALICE)
        self.assertEqual((reply.status, "web.actions" in reply.json()["error"]["message"]), (403, True))
        self.assertEqual(web.get("/api/session", "POST", **ALICE, **PAGE).status, 403)
        d.change("actions: false", "actions: true")
        d.process.send_signal(signal.SIGHUP)
        wait_for(lambda: web.json("/api/info")["web"]["actions"])
        self.assertEqual(web.get(job + "retry", "POST", **ALICE).status, 200)

    @unittest.skipUnless(shutil.which("openssl"), "openssl is not on this machine")
    def test_page_is_encrypted(self):
        d = self.service()
        certificate, key = make_certificate(d.root)
        web = self.web(d, certificate=certificate, key=key)
        self.assertIn("serves https://127.0.0.1:", web.log.read_text())
        self.assertIn(b"<title>pushbroom", web.get("/").body)
        self.assertEqual(web.get("/api/jobs/20260101-000000-aaaa/retry", "POST").status, 403)
        for path in ("/stac", "/jobs"):
            for link in web.json(path)["links"]:
                self.assertRegex(link["href"], "^https://127.0.0.1:%d(/|$)" % web.port)
        web.raw(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")  # without encryption
        self.assertEqual(web.get("/api/info").status, 200)
        key.write_text("no key\n")
        done = subprocess.run([str(BIN / "pushbroom-web"), "--listen", "127.0.0.1:0", "--certificate", str(certificate), "--key", str(key)], capture_output=True, text=True)
        self.assertEqual((done.returncode, "wrong certificate or key" in done.stderr), (1, True), done.stderr)

    def test_plain_http_takes_no_tokens(self):
        program = str(BIN / "pushbroom-web")
        for options, word in ((["--token-file", "/t"], "must be encrypted"), (["--user-header", "X"], "unix:"), (["--certificate", "/c"], "need each other"),
                              (["--listen", "unix:w"], "'/'"), (["--listen", "unix:/w", "--user-header", "X"], "directory"), (["--listen", "unix:/run/w", "--token-file", "/nowhere/t"], "/nowhere"), (["--listen", "unix:/w", "--certificate", "/c", "--key", "/k"], "no TLS")):
            done = subprocess.run([program, *options], capture_output=True, text=True)
            self.assertEqual((done.returncode, word in done.stderr), (2, True), (options, done.stderr))


class Role(WebCase):
    def test_web_user_has_the_rights_of_the_key(self):
        """Without web.actions it queries, with the key it submits files and changes jobs; it never drains."""
        if os.geteuid() != 0:
            self.skipTest("only root can be another user")
        d = self.daemon(start=False)
        d.root.chmod(0o755)
        d.change("  settle:", "  web_user: \"1007\"\n  settle:")
        d.start()
        os.chmod(d.root / "s.sock", 0o666)
        d.drop("a.tif", "fail")
        job = d.wait_job("a.tif", "failed")["id"]
        code = ("import os, sys; os.setgid(1007); os.setuid(1007); sys.path.insert(0, %r)\nfrom daemon_kit import Client, RpcError\nclient = Client(%r)\n"
                "assert client.call('job.list')['jobs'] and client.call('job.watch')['watching'] and client.call('service.info')\n"
                "for method, params, allowed in (('job.submit', {'input': '/nowhere/a.tif'}, 1), ('job.retry', {'id': %r}, 1), ('job.cancel', {'id': %r}, 1), ('job.drop', {'id': %r}, 1), ('service.drain', {}, 0)):\n"
                "    try:\n        client.call(method, **params)\n    except RpcError as error:\n        assert error.code in ('job.state', 'input.missing') if ACTS and allowed else error.code == 'service.denied' and 'web_user' in str(error), (method, error)\n"
                "    else:\n        assert ACTS and allowed, method\n") % (os.path.dirname(os.path.abspath(__file__)), str(d.root / "s.sock"), job, job, job)
        for acts in (False, True):
            if acts:
                d.config.write_text(d.config.read_text() + "\nweb: {actions: true}\n")
                d.process.send_signal(signal.SIGHUP)
                wait_for(lambda: d.call("service.info")["web"]["actions"])
            done = subprocess.run([sys.executable, "-c", "ACTS = %r\n" % acts + code], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    main(workers=3)
