#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: threads sanitized
"""Items in events, and pushbroom-notify with a STAC API: a real HTTP server that has the semantics of the Transaction
extension."""
import http.server
import json
import os
import pathlib
import shutil
import subprocess
import sys
import threading
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import stac_rules  # noqa: E402
from daemon_kit import BIN, DaemonCase  # noqa: E402
from patience import finish, wait_for  # noqa: E402
from pbtest import main  # noqa: E402

SCENE = pathlib.Path(__file__).resolve().parents[1] / "data/real/sentinel2_29RKH/SCL.tif"
BASE = "https://data.example.org/products"
ITEM = "https://schemas.stacspec.org/v1.1.0/item-spec/json-schema/item.json"


class StacApi:
    """POST creates an item (409 if there is one), PUT replaces one (else 404), in collections that exist."""

    def __init__(self, *collections, token=None):
        self.items = {name: {} for name in collections}
        self.token = token
        self.requests = []  # method, path, status
        self.refuse = set()  # ids that it does not take: 400
        api = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                self.handle_item(None)

            def do_PUT(self):
                self.handle_item("PUT")

            def handle_item(self, put):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status, answer = api.change(self.command, self.path, self.headers, body)
                api.requests.append((self.command, self.path, status))
                text = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/geo+json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = "http://127.0.0.1:%d/api" % self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def change(self, method, path, headers, body):
        if self.token is not None and headers.get("Authorization") != "Bearer " + self.token:
            return 401, {"code": "Unauthorized"}
        parts = [urllib.parse.unquote(p) for p in path.split("/")]
        if parts[:3] != ["", "api", "collections"] or parts[4:5] != ["items"] or len(parts) != (5 if method == "POST" else 6):
            return 405, {"code": "MethodNotAllowed"}
        if parts[3] not in self.items:
            return 404, {"code": "NotFoundError", "description": "no collection " + parts[3]}
        item = json.loads(body)
        try:
            stac_rules.apply_schemas(item, ITEM)
        except AssertionError as error:
            return 422, {"code": "InvalidItem", "description": str(error)}
        if item["id"] in self.refuse:
            return 400, {"code": "BadRequest"}
        known = self.items[parts[3]]
        if method == "POST" and item["id"] in known:
            return 409, {"code": "ConflictError"}
        if method == "PUT" and (item["id"] != parts[5] or item["id"] not in known):
            return 404, {"code": "NotFoundError"}
        if item["collection"] != parts[3]:
            return 400, {"code": "BadRequest", "description": "another collection"}
        known[item["id"]] = item
        return 201 if method == "POST" else 200, item

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


class NotifyStac(DaemonCase):
    def api(self, *collections, **options):
        api = StacApi(*collections, **options)
        self.addCleanup(api.stop)
        return api

    def service(self, entry, collection="collection: land, "):
        d = self.daemon(start=False, fake=False, stall="300s")
        text = d.config.read_text().replace("- statistics: {}", "- statistics: {}\n      - stac: {%sdatetime: file-time}" % collection)
        d.config.write_text(text + "notify:\n  - stac: {retry: 300ms, timeout: 60s, base_url: \"%s/\", %s}\n" % (BASE, entry))
        d.start()
        with open(d.root / "notify.log", "ab") as log:
            process = subprocess.Popen([str(BIN / "pushbroom-notify"), "--config", str(d.config), "-v"], stderr=log, stdin=subprocess.DEVNULL)
        self.addCleanup(self.end, d, process)
        return d

    def end(self, d, process):
        process.terminate()
        finish(process)
        text = (d.root / "notify.log").read_text()
        self.assertEqual(process.returncode, 0, text)
        for word in ("Sanitizer", "runtime error:"):
            self.assertNotIn(word, text)

    def deliver(self, d, name):
        temporary = d.root / ("." + name)
        shutil.copy(SCENE, temporary)
        os.rename(temporary, d.root / "inbox" / name)
        return d.wait_job(name, "successful")

    def state(self, d):
        return d.call("service.info")["notify"][0]

    def test_item_is_in_the_event(self):
        d = self.service("url: \"http://127.0.0.1:1/\"")
        client = d.client()
        self.addCleanup(client.close)
        client.call("job.watch", since=client.call("job.watch")["seq"])
        self.deliver(d, "a.tif")
        products = {}
        while len(products) < 2:
            event = client.event()
            if event.get("event") == "product.published":
                products[event["data"]["product"]["type"]] = event["data"]["product"]
        item = json.loads((d.root / "products" / products["stac"]["place"]).read_text())
        self.assertEqual(products["stac"]["item"], item)
        self.assertNotIn("item", products["statistics"])
        self.assertNotIn("item", json.dumps(d.jobs()[0]["products"]))

    def test_item_is_created_with_public_addresses(self):
        api = self.api("land")
        d = self.service("url: \"%s/\"" % api.url)
        self.deliver(d, "a b.tif")
        wait_for(lambda: api.items["land"])
        item, = api.items["land"].values()
        self.assertEqual(api.requests, [("POST", "/api/collections/land/items", 201)])
        folder = (d.root / "products" / "a b" / "plain")
        self.assertEqual({a["href"] for a in item["assets"].values()},
                         {"%s/a%%20b/plain/%s" % (BASE, urllib.parse.quote(p.name)) for p in folder.iterdir()
                          if not p.name.startswith(".") and ".stac." not in p.name})
        self.assertEqual({link["rel"] for link in item["links"]}, {"collection"})
        self.assertEqual([file["file"] for file in item["properties"]["pushbroom:inputs"]], ["a b.tif"])
        wait_for(lambda: self.state(d)["waiting"] == 0)

    def test_existing_item_is_replaced(self):
        api = self.api("land")
        d = self.service("url: \"%s\"" % api.url)
        first = self.deliver(d, "a.tif")
        wait_for(lambda: api.items["land"])
        before, = api.items["land"].values()
        archive = d.call("service.info")["archive"]
        wait_for(lambda: d.call("job.get", id=first["id"])["input"].startswith(archive))
        d.call("job.submit", input=d.call("job.get", id=first["id"])["input"])
        wait_for(lambda: len(api.requests) == 3)
        self.assertEqual([r[0::2] for r in api.requests], [("POST", 201), ("POST", 409), ("PUT", 200)])
        self.assertEqual(api.requests[2][1], "/api/collections/land/items/" + before["id"])
        self.assertEqual(list(api.items["land"]), [before["id"]])

    def test_missing_collection_is_waited_for(self):
        api = self.api()
        d = self.service("url: \"%s\", collection: other" % api.url)
        self.deliver(d, "a.tif")
        wait_for(lambda: len([r for r in api.requests if r[2] == 404]) >= 7)  # more than a refusal is tried
        api.items["other"] = {}
        wait_for(lambda: api.items["other"])
        self.assertEqual(list(api.items["other"].values())[0]["collection"], "other")

    def test_refused_item_does_not_hold_up_others(self):
        api = self.api("land")
        api.refuse.add("a.plain")
        d = self.service("url: \"%s\"" % api.url)
        self.deliver(d, "a.tif")
        self.deliver(d, "b.tif")
        wait_for(lambda: "b.plain" in api.items["land"])
        self.assertEqual(len([r for r in api.requests if r[2] == 400]), 5)
        wait_for(lambda: self.state(d)["given_up"] == 1)

    def test_token_is_sent_and_may_be_replaced(self):
        api = self.api("land", token="right")
        token = pathlib.Path(self.daemon(start=False).root) / "token"
        token.write_text("wrong\n")
        token.chmod(0o600)
        d = self.service("url: \"%s\", token_file: %s" % (api.url, token))
        self.deliver(d, "a.tif")
        wait_for(lambda: len([r for r in api.requests if r[2] == 401]) >= 7)
        token.write_text("right\n")
        wait_for(lambda: api.items["land"])

    def test_item_without_collection_is_given_up(self):
        api = self.api("land")
        d = self.service("url: \"%s\"" % api.url, collection="")
        self.deliver(d, "a.tif")
        wait_for(lambda: self.state(d)["given_up"] == 1)
        self.assertEqual(api.requests, [])
        self.assertIn("names no collection", (d.root / "notify.log").read_text())

    def test_mistakes_of_the_entry_are_reported(self):
        d = self.daemon(start=False)
        for entry, words in (("url: \"https://x.example/\"", "base_url"),
                             ("url: \"ftp://x\", base_url: \"%s\"" % BASE, "stac.url"),
                             ("url: \"https://x/?a\", base_url: \"%s\"" % BASE, "no '?'"),
                             ("url: \"https://x/\", base_url: \"%s\", events: [job.failed]" % BASE, "stac.events"),
                             ("url: \"http://x/\", base_url: \"%s\", token_file: /t" % BASE, "over https only")):
            path = d.root / "c.yaml"
            path.write_text(d.config.read_text() + "notify:\n  - stac: {%s}\n" % entry)
            done = subprocess.run([BIN / "pushbroom", "check-config", path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            self.assertEqual(done.returncode, 2, entry)
            self.assertIn(words, done.stdout)


if __name__ == "__main__":
    main(workers=3)
