# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Real services that are the nodes of the trial: each with links of its own to the store, with a control file of failing calls, with
locks of directories and a host name of its own (local_locks.c), and with slow reads, so that faults find running jobs."""
import hashlib
import os
import re
import signal
import subprocess

import control
from fetch_kit import PORT, Line, make_authority, make_certificate, own_address
from patience import wait_for
from pbtest import BIN
from service_kit import SHIM, Scenes, Service, checksum
from store import send

LOCAL_LOCKS = BIN / "local_locks.so"
FOLDERS = ("work/done", "quarantine")  # below the root of a node: files of jobs that were successful, and of the others
SLOW = [("pread", "/work/", 250), ("fsync", "/products/", 300)]  # calls of workers: a part of the path, and the most that each waits (ms)
CONFIG = """service:
  inbox: {root}/inbox
  work: {root}/work
  products: {products}
  quarantine: {root}/quarantine
  state: {root}/state
  socket: {root}/s.sock
  node: {node}
  store: {{postgresql: "{conninfo}", lease: {lease:g}s}}
  settle: {settle}
  rescan: 1s
  parallel_jobs: {parallel}
  max_attempts: 100
  keep_jobs: 100000
compute: {{device: cpu, threads: 1, memory: 64MiB}}
pipelines:
  ndvi:
    input: {{match: ["*.tif"], bands: {{B: 1, G: 2, R: 3, N: 4}}, scale: 0.0001}}
    steps:
      - index: {{names: [NDVI]}}
    products:
      - cog: {{bands: [NDVI]}}
      - statistics: {{}}
      - stac: {{datetime: file-time}}
"""


class Node(Service):
    """`links`: one to each place of a server; `line`: by which other nodes reach its fetcher, if there is no common file system."""

    def __init__(self, name, cluster):
        self.name, self.cluster, self.begun = name, cluster, 0
        self.fetcher = self.line = None
        if cluster.keys is not None:
            make_certificate(cluster.keys, name)
            self.address = own_address()
            self.line = Line(self.address)
        self.faults = control.Faults(cluster.scratch / f"faults-{name}", SHIM)
        environment = dict(self.faults.environment(), PB_HOST=f"machine-{name}")
        environment["LD_PRELOAD"] += f":{LOCAL_LOCKS}"
        super().__init__(environment, parent=cluster.scratch)
        self.products = cluster.products or self.root / "products"
        self.products.mkdir(exist_ok=True)
        self.links = [cluster.links.add(self.root / f"db{i}", place) for i, place in enumerate(cluster.store.places)]
        self.calm()

    def write_config(self, **settings):
        self.settings.update(settings)
        conninfo = f"host={self.root}/db0,{self.root}/db1 user=pushbroom dbname=postgres"
        products = self.cluster.products or f"{self.root}/products\n{self.fetch_settings()}"
        text = CONFIG.format(node=self.name, products=products, conninfo=conninfo, lease=self.cluster.lease, **self.settings)
        if self.cluster.any_inbox:
            listed = ", ".join(f"{{path: {node.root}/inbox, node: {node.name}}}" for node in self.cluster.nodes)
            text = text.replace(f"  inbox: {self.root}/inbox\n", f"  inboxes: [{listed}]\n")
        self.config.write_text(text)

    def fetch_settings(self):
        keys = self.cluster.keys
        return (f"  fetch: {{listen: \"{self.address}:{PORT}\", address: \"127.0.0.1:{self.line.port}\", certificate: {keys}/{self.name}.crt,"
                f" key: {keys}/{self.name}.key, ca: {keys}/ca.crt, socket: {self.root}/f.sock}}")

    def start_fetcher(self):
        """Starts pushbroom-fetch, which serves and fetches files for the service."""
        with open(self.root / "fetch.log", "ab") as log:
            self.fetcher = subprocess.Popen([BIN / "pushbroom-fetch", "--config", self.config], stderr=log, stdin=subprocess.DEVNULL)

    def kill_fetcher(self):
        self.fetcher.kill()
        self.fetcher.wait()

    def start(self):
        self.begun = self.log.stat().st_size if self.log.exists() else 0
        return super().start()

    def was_ready(self):
        """Since its last start."""
        return b"ready: " in self.log.read_bytes()[self.begun:]

    def calm(self):
        """No faults but those that last. A call that hangs looks at its rule again, therefore that is turned off first."""
        for number in range(control.RULES_MAX):
            self.faults.set_mode(number, control.OFF)
        self.faults.clear()
        for call, path, delay_ms in SLOW:
            self.faults.rule(call, control.DELAY, role="worker", path=path, delay_ms=delay_ms)

    def set_links(self, mode, drop=False):
        for link in self.links:
            self.cluster.links.set_mode(link, mode, drop)

    def kill(self, pid=None):
        """Kills the service and waits for the end of its workers, which end with it. A worker that was stopped before it had requested
        this ends after it continues."""
        below = self.processes() if pid is None else []
        super().kill(pid)
        send(below, signal.SIGCONT)
        wait_for(lambda: not any(map(is_alive, below)))

    def stop_all(self):
        """SIGSTOP of the service and its processes, which are returned."""
        stopped = [self.process.pid]
        send(stopped, signal.SIGSTOP)
        stopped += self.processes()
        send(stopped, signal.SIGSTOP)
        return stopped

    def running(self):
        """Ids of the jobs that it runs according to the store."""
        return [job for job, in self.cluster.store.rows(f"SELECT id FROM pushbroom.jobs WHERE status = 1 AND node = '{self.name}'")]

    def has_session(self):
        return bool(self.cluster.store.rows(f"SELECT 1 FROM pushbroom.nodes WHERE node = '{self.name}' AND session <> 0"))


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


class Delivered:
    """A file that was put into an inbox."""

    def __init__(self, name, node, base, good):
        self.name, self.node, self.base, self.good = name, node, base, good
        self.scene, self.content = name[:-len(".tif")], checksum(base)
        self.cancels = self.retries = 0  # requests that the service may have taken


class Cluster:
    """The store, the links, the nodes and what was delivered. any_inbox: a node watches the inboxes of nodes that do not
    report, and keeps the files that it takes there. fetches: each node has its own products, and fetches the files of others."""

    def __init__(self, scratch, store, links, names, lease, any_inbox=False, fetches=False):
        self.scratch, self.store, self.links, self.lease = scratch, store, links, lease
        self.any_inbox, self.nodes = any_inbox, []
        self.products, self.keys = (None, scratch / "keys") if fetches else (scratch / "products", None)
        if fetches:
            make_authority(self.keys)
        else:
            self.products.mkdir()
        self.scenes = Scenes(scratch / "scenes")
        self.nodes += [Node(name, self) for name in names]
        self.delivered = {}
        for node in self.nodes:
            node.write_config()
        self.places = sorted({node.products for node in self.nodes})  # directories of products

    def start(self):
        for node in self.nodes:
            node.start()
            if self.keys is not None:
                node.start_fetcher()
        for node in self.nodes:
            node.wait_up()

    def end(self):
        for node in self.nodes:
            if node.alive():
                node.kill()
            if node.fetcher is not None:
                node.kill_fetcher()
                node.line.close()

    def deliver(self, rng):
        return self.deliver_as(rng.choice(self.nodes), rng.random() >= 0.1)

    def deliver_as(self, node, good):
        number, bases = len(self.delivered), self.scenes.good if good else self.scenes.bad
        made = Delivered(f"s{number:05}.tif", node, bases[number % len(bases)], good)
        self.delivered[made.name] = made
        node.drop_copy(made.base, made.name)
        return made

    def rows(self, query):
        return self.store.rows(query)

    def heal(self):
        """Every node runs and reaches the store, every process continues, no call fails."""
        for node in self.nodes:
            node.calm()
            node.set_links(0)
            if not node.alive():
                node.start()
        for node in self.nodes:
            node.wait_up()

    def unfinished(self, delivered):
        """Those of the delivered files that have no final job, or are not where they stay."""
        status = dict(self.rows("SELECT name, min(status) FROM pushbroom.jobs GROUP BY name"))
        return [d.name for d in delivered if status.get(d.name, "0") in "01" or not self.paths(d, FOLDERS[status[d.name] != "2"])]

    def homes(self, delivered):
        """Returns the nodes that may have the file."""
        return self.nodes if self.any_inbox else [delivered.node]

    def paths(self, delivered, folder):
        return [path for node in self.homes(delivered) if (path := node.root / folder / delivered.name).is_file()]

    def wait_quiet(self, delivered):
        """Waits until all of these have ended, nothing waits, no node has a trouble and nothing is left. Returns the faults."""
        counts = "SELECT (SELECT count(*) FROM pushbroom.jobs WHERE status < 2) + (SELECT count(*) FROM pushbroom.requests)"
        moves = "SELECT count(*), coalesce(max(number), 0) FROM pushbroom.events"
        rest, restarted = [], []

        def is_quiet():
            if self.rows(counts) != [("0",)]:
                rest[:] = ["jobs wait or run, or requests wait for a node"]
                return False
            troubles = [(node.name, t["key"], t["message"]) for node in self.nodes for t in node.call("service.info")["troubles"]]
            rest[:] = [*self.unfinished(delivered), *troubles]
            if not rest and self.leftovers() and not restarted:
                restarted.append(self.restart())
            rest.extend(self.leftovers())
            return not rest
        try:
            wait_for(is_quiet, progress=lambda: self.rows(moves), step=0.25)
        except AssertionError:
            return [f"does not end: {what}" for what in rest]
        return []

    def restart(self):
        """The next run or the next start of a node removes the temporary files of its killed workers."""
        for node in self.nodes:
            status = node.end()
            assert status == 0, f"node {node.name} ended with {status}:\n{node.tail(6)}"
            node.start()
        for node in self.nodes:
            node.wait_up()

    def leftovers(self):
        """Temporary files of products, claims and files in inboxes: no such path exists when nothing runs."""
        found = [path for place in self.places for path in place.rglob("*")
                 if path.name.startswith(".") and path.name not in (".pushbroom.json", ".pushbroom-root")]
        for node in self.nodes:
            found += list((node.root / "inbox").iterdir())
            found += [path for path in (node.root / "work").iterdir() if path.name not in ("done", ".pushbroomd.lock", ".fetched")]
            found += (node.root / "work/.fetched").glob("*")
        return [str(path) for path in found]

    def products_of(self, delivered):
        """Returns product_files(), in which files in a wrong directory have other names."""
        own = delivered.node.products
        return {name if place == own else f"{place}/{name}": checksum for place in self.places
                for name, checksum in product_files(place / delivered.scene).items()}

    def reference(self, scenes):
        """Products of `pushbroom run` of the archived inputs: {scene: {file: checksum}}."""
        out = self.scratch / "reference"
        inputs = [self.paths(d, FOLDERS[0])[0] for d in scenes]
        for first in range(0, len(inputs), 200):
            done = subprocess.run([BIN / "pushbroom", "run", "-c", self.nodes[0].config, "-p", "ndvi", "-o", out, "--device", "cpu",
                                   *inputs[first:first + 200]], capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
        return {d.scene: product_files(out / d.scene) for d in scenes}


def product_files(scene):
    """{path below the scene: checksum} of its products, without the manifest, whose job is checked elsewhere."""
    found = {}
    for folder, _, names in os.walk(scene):
        for name in names:
            if name != ".pushbroom.json":
                path = os.path.join(folder, name)
                found[os.path.relpath(path, scene)] = digest_of_item(path) if name.endswith(".stac.json") else checksum(path)
    return found


def digest_of_item(path):
    """Without the time at which it was made."""
    with open(path, encoding="utf-8") as file:
        text = re.sub(r'^ *"(created|updated)": "[^"]*",\n', "", file.read(), flags=re.M)
    return hashlib.sha256(text.encode()).hexdigest()
