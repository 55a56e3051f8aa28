# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium for tests of the page, by its DevTools protocol over pipes."""
import base64
import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile

from patience import PATIENCE_S, wait_for

CHROMIUM = shutil.which("chromium")


class Browser:
    def __init__(self, *options):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="pb-chromium-"))
        to_it, self.send_fd = os.pipe()
        self.receive_fd, from_it = os.pipe()
        # The pipes are descriptors 3 and 4 there.
        command = ["bash", "-c", 'exec "$@" 3<&%d 4>&%d' % (to_it, from_it), "bash", CHROMIUM, "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu",
                   "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
                   *options, "--user-data-dir=%s" % self.folder, "about:blank"]
        self.process = subprocess.Popen(command, pass_fds=(to_it, from_it), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_it)
        os.close(from_it)
        self.buffer, self.number, self.session, self.events = b"", 0, None, []
        target = wait_for(lambda: [t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page"])[0]
        self.session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(domain + ".enable")

    def message(self, seconds=PATIENCE_S):
        while b"\0" not in self.buffer:
            if not select.select([self.receive_fd], [], [], seconds)[0]:
                return None
            block = os.read(self.receive_fd, 1 << 20)
            assert block, "chromium ended"
            self.buffer += block
        text, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(text)

    def call(self, method, **params):
        self.number += 1
        request = {"id": self.number, "method": method, "params": params}
        if self.session:
            request["sessionId"] = self.session
        os.write(self.send_fd, json.dumps(request).encode() + b"\0")
        while True:
            reply = self.message()
            assert reply is not None, "chromium does not answer " + method
            if reply.get("id") == self.number:
                assert "error" not in reply, (method, reply)
                return reply["result"]
            self.events.append(reply)

    def size(self, width, height, scale=1, dark=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def open(self, address):
        self.call("Page.navigate", url=address)

    def run(self, script):
        """Value of an expression in the page; a promise is awaited."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def wait(self, script):
        return wait_for(lambda: self.run(script))

    def press(self, key, code=0):
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else None)
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **({"text": text} if text and kind == "keyDown" else {}))

    def click(self, x, y):
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def screenshot(self, path):
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def mistakes(self):
        """Errors and warnings in the console, and exceptions."""
        found = []
        for event in self.events:
            params = event.get("params", {})
            if event.get("method") == "Runtime.exceptionThrown":
                found.append(params["exceptionDetails"])
            elif event.get("method") == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
                found.append(params["args"])
            elif event.get("method") == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
                found.append(params["entry"])
        return found

    def addresses(self):
        """Addresses of all requests; data: addresses, such as the icon of a field for dates, request nothing."""
        found = [event["params"]["request"]["url"] for event in self.events if event.get("method") == "Network.requestWillBeSent"]
        return [address for address in found if not address.startswith("data:")]

    def close(self):
        try:
            self.session = None
            self.call("Browser.close")
        except (AssertionError, OSError):
            self.process.kill()
        self.process.wait()
        os.close(self.send_fd)
        os.close(self.receive_fd)
        shutil.rmtree(self.folder, ignore_errors=True)
