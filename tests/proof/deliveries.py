# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Deliveries of all kinds for the proofs, in several inboxes: files, files with markers, checksums, sidecars and metadata, loose
files by name and by metadata, folders, archives of one scene and of several, late files, products made again, and broken ones. The
account: where each of their files is, and what their jobs made."""
import collections
import dataclasses
import hashlib
import io
import json
import os
import pathlib
import sys
import tarfile
import threading
import time
import zipfile

from service_kit import MANIFEST, Service, checksum, product_directories

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "integration"))
import numpy as np  # noqa: E402
from osgeo import gdal  # noqa: E402

from daemon_kit import RpcError  # noqa: E402
from patience import Patience  # noqa: E402
from test_cloud_order import image, item  # noqa: E402

VARIANTS = 3
INBOXES = ("inbox", "marked", "summed")
CONFIG = """service:
  inboxes:
    - {path: ROOT/inbox, recurse: true}
    - {path: ROOT/marked, complete: {marker: "{name}.done"}}
    - {path: ROOT/summed, priority: 5, complete: {checksum: "{name}.md5"}}
  work: ROOT/work
  products: ROOT/products
  quarantine: ROOT/quarantine
  state: ROOT/state
  socket: ROOT/s.sock
  settle: 100ms
  rescan: 1s
  parallel_jobs: 2
  max_attempts: 100
  keep_jobs: 100000
compute: {device: cpu, threads: 1, memory: 64MiB, tile: 64}
pipelines:
  file:
    input: {match: ["file_*.tif"], bands: {A: 1}}
    PRODUCTS
  side:
    input: {match: ["side_*.tif"], bands: {A: 1}, sidecars: [.msk], complete: {all: true}}
    PRODUCTS
  meta:
    input: {match: ["meta_*.tif"], bands: {A: 1}, metadata: "*.json"}
    PRODUCTS
  set:
    input:
      group: '(?<scene>set_\\d+)_[RN]\\.tif'
      files: {R: "*_R.tif", N: "*_N.tif"}
    steps: [math: {bands: {A: "N - R"}}]
    PRODUCTS
  by:
    input:
      group: '(?<where>by_\\d+)[ab]\\.tif'
      by: "{where}_{meta.date:%Y%m}"
      metadata: "*.json"
      files: {A_1: {match: "*.tif", nth: 1}, A_2: {match: "*.tif", nth: 2}}
    steps: [composite: {method: mean, bands: [A], of: [_1, _2]}]
    PRODUCTS
  pack:
    input: {scene: "pack_*", archives: ["many_*.zip"], files: {R: R.tif, N: N.tif}}
    steps: [math: {bands: {A: "N - R"}}]
    PRODUCTS
  late:
    input:
      group: '(?<scene>late_\\d+)_\\d\\.tif'
      files:
        A_1: {match: "*.tif", nth: 1}
        A_2: {match: "*.tif", nth: 2, optional: true}
        A_3: {match: "*.tif", nth: 3, optional: true}
      complete: {expire: 200ms, reopen: 90d}
    steps: [composite: {method: mean, bands: [A], of: [_1, _2, _3]}]
    PRODUCTS
"""
PRODUCTS = """products:
      - cog: {bands: [A], type: float32}
      - statistics: {}
      - stac: {datetime: file-time}"""


def digest(data):
    return hashlib.sha256(data).hexdigest()


class Sources:
    """Contents of the delivered files, VARIANTS of each."""

    def __init__(self, folder):
        folder.mkdir()
        self.tif, self.mask, self.item = [], [], []
        for v in range(2 * VARIANTS):  # those of the second half are the other bands
            path = folder / f"{v}.tif"
            image(path, 10 * (v + 1) + (3 if v >= VARIANTS else 0))
            self.tif.append(path.read_bytes())
        for v in range(VARIANTS):
            path, mask = folder / f"{v}.msk", np.full((37, 53), 255, np.uint8)
            mask[:, :10 * (v + 1)] = 0
            out = gdal.GetDriverByName("GTiff").Create(str(path), 53, 37, 1, gdal.GDT_Byte)
            out.SetMetadataItem("INTERNAL_MASK_FLAGS_1", "2")
            out.GetRasterBand(1).WriteArray(mask)
            del out
            self.mask.append(path.read_bytes())
            item(folder / f"{v}.json", 10 * v, day=v + 1)
            self.item.append((folder / f"{v}.json").read_bytes())

    def bands(self, v):
        return {"R.tif": self.tif[v], "N.tif": self.tif[v + VARIANTS]}

    def zip(self, v):
        return self.zip_of(v, self.bands(v))

    def zip_of(self, v, files):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED if v else zipfile.ZIP_STORED) as archive:
            for name, data in files.items():
                archive.writestr(zipfile.ZipInfo(name), data)
        return out.getvalue()

    def tar(self, v):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as archive:
            for name, data in self.bands(v).items():
                info = tarfile.TarInfo(name)
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
        return out.getvalue()


@dataclasses.dataclass
class Delivery:
    """One scene, or an archive of several. A step is {path below the root: bytes, or {name: bytes} of a folder}, AGAIN or RETRY."""
    kind: str
    variant: int
    job: str  # name of its jobs
    scene: str
    steps: list
    good: bool = True
    done: int = 0  # steps that were made
    again: int = 0  # number of requests to make it again that the service may have taken
    several: dict = None  # scenes of an archive of several: {scene: the variant of its content, None = it fails}
    made: int = dataclasses.field(default_factory=lambda: int(time.time() * 1000) - 1000)

    def files(self):
        """{name, with its folder for a file of a folder: digest} of the files that were delivered."""
        found = {}
        for step in self.steps[:self.done]:
            for path, data in step.items() if isinstance(step, dict) else ():
                name = path.rpartition("/")[2]
                found.update({f"{name}/{n}": digest(d) for n, d in data.items()} if isinstance(data, dict) else {name: digest(data)})
        return found

    def parts(self):
        return sum(isinstance(step, dict) for step in self.steps[:self.done])

    def scenes(self):
        """{scene: the variant of its content, None = it fails}."""
        return self.several or {self.scene: self.variant if self.good else None}

    def may_grow(self):
        """Its scene is made of the files that are there, and made again with later ones: a job of each file is possible."""
        return self.kind.startswith("late")


AGAIN, RETRY = "again", "retry"


def kinds(s):
    """{kind: function of variant and number}."""
    def named(prefix, n):
        return f"{prefix}_{n:05}"

    def single(kind, v, n, folder="inbox", more=lambda path, data: {}, again=False):
        name, data = named("file", n), s.tif[v]
        path = f"{folder}/{name}.tif"
        return Delivery(kind, v, name + ".tif", name, [{path: data, **more(path, data)}] + [AGAIN] * again)

    def two(kind, v, n, prefix, suffix, data):
        name = named(prefix, n)
        return Delivery(kind, v, name + ".tif", name, [{f"inbox/{name}.tif": s.tif[v], f"inbox/{name}{suffix}": data}])

    def loose(kind, v, n, again=False):
        name = named("set", n)
        return Delivery(kind, v, name, name, [{f"inbox/{name}_{band}": data for band, data in s.bands(v).items()}] + [AGAIN] * again)

    def by(kind, v, n):
        name = named("by", n)
        files = {f"inbox/{name}a.tif": s.tif[v], f"inbox/{name}b.tif": s.tif[v + 1],
                 f"inbox/{name}a.json": s.item[v], f"inbox/{name}b.json": s.item[(v + 1) % VARIANTS]}
        return Delivery(kind, v, f"{name}_202606", f"{name}_202606", [files])

    def pack(kind, v, n, suffix, content):
        name = named("pack", n)
        return Delivery(kind, v, name + suffix, name, [{f"inbox/{name}{suffix}": content(v)}])

    def many(kind, v, n, broken=False):
        name = named("many", n)
        scenes = {f"{named('pack', n)}{letter}": (v + i) % VARIANTS for i, letter in enumerate("abc")}
        files = {f"{scene}/{band}": data for scene, w in scenes.items() for band, data in s.bands(w).items()}
        if broken:
            bad = f"{named('pack', n)}b"
            scenes[bad] = None
            del files[f"{bad}/N.tif"]
        return Delivery(kind, v, name + ".zip", f"{named('pack', n)}a", [{f"inbox/{name}.zip": s.zip_of(v, files)}] + [RETRY] * broken, not broken, several=scenes)

    def late(kind, v, n, again=False):
        name = named("late", n)
        first, second = ({f"inbox/{name}_{i}.tif": s.tif[v + i] for i in part} for part in ((1, 3), (2,)))
        return Delivery(kind, v, name, name, [first, second] + [AGAIN] * again)

    def broken(kind, v, n):
        bad = [s.tif[0][:300], b"no picture at all\n" * 40, s.zip(1)[:200]][v]
        made = [single, loose, lambda kind, v, n: pack(kind, v, n, ".zip", lambda v: bad)][v](kind, 0, n)
        path = next(iter(made.steps[0]))
        made.steps[0][path] = bad
        made.variant, made.good = v, False
        return made

    return {
        "file": single,
        "sub-folder": lambda k, v, n: single(k, v, n, f"inbox/north/{v}"),
        "marker": lambda k, v, n: single(k, v, n, "marked", lambda path, data: {path + ".done": b""}),
        "checksum": lambda k, v, n: single(k, v, n, "summed", lambda path, data: {path + ".md5": (hashlib.md5(data).hexdigest() + "\n").encode()}),
        "sidecar": lambda k, v, n: two(k, v, n, "side", ".tif.msk", s.mask[v]),
        "metadata": lambda k, v, n: two(k, v, n, "meta", ".json", s.item[v]),
        "set": loose,
        "by-metadata": by,
        "folder": lambda k, v, n: pack(k, v, n, "", s.bands),
        "zip": lambda k, v, n: pack(k, v, n, ".zip", s.zip),
        "tar": lambda k, v, n: pack(k, v, n, ".tar", s.tar),
        "several": many,
        "several-broken": lambda k, v, n: many(k, v, n, broken=True),
        "late": late,
        "again": lambda k, v, n: single(k, v, n, again=True),
        "set-again": lambda k, v, n: loose(k, v, n, again=True),
        "late-again": lambda k, v, n: late(k, v, n, again=True),
        "broken": broken,
    }


class KindsService(Service):
    def __init__(self, environment=None, parent=None):
        super().__init__(environment, parent)
        self.config.write_text(CONFIG.replace("ROOT", str(self.root)).replace("PRODUCTS", PRODUCTS))
        for folder in INBOXES[1:] + ("made",):
            (self.root / folder).mkdir()

    def scene_jobs(self, deliveries):
        """{name: jobs of that name, oldest first}."""
        found, before = {delivery.job: [] for delivery in deliveries}, {}
        since = min((delivery.made for delivery in deliveries), default=0)
        while True:
            jobs = self.call("job.list", limit=1000, fields="brief", since_ms=since, **before)["jobs"]
            for job in jobs:
                if job["name"] in found:
                    found[job["name"]].insert(0, job)
            if len(jobs) < 1000:
                return found
            before = {"before": jobs[-1]["id"]}


class Deliveries:
    """Deliveries to one service, and their account. reference: {(kind, variant, parts): checksum of the COG}."""

    def __init__(self, service, reference=None):
        self.service, self.root = service, service.root
        self.sources = Sources(self.root / "sources")
        self.kinds = kinds(self.sources)
        self.all, self.by_scene, self.reference = [], {}, {} if reference is None else reference

    def make(self, kind, variant):
        made = self.kinds[kind](kind, variant, len(self.all))
        self.all.append(made)
        self.by_scene.update({scene: made for scene in made.scenes()})
        return made

    def put(self, path, data):
        """Written elsewhere on the file system, renamed into the inbox."""
        new, place = self.root / "made" / pathlib.Path(path).name, self.root / path
        if isinstance(data, dict):
            new.mkdir()
            for name, content in data.items():
                (new / name).write_bytes(content)
        else:
            new.write_bytes(data)
        place.parent.mkdir(parents=True, exist_ok=True)
        os.rename(new, place)

    def step(self, delivery, rng=None):
        """Makes the next step; with rng its files arrive in any order, with pauses."""
        step = delivery.steps[delivery.done]
        if step in (AGAIN, RETRY):
            (self.request_again if step == AGAIN else self.request_retry)(delivery)
            return
        paths = list(step)
        if rng is not None:
            rng.shuffle(paths)
        delivery.done += 1
        for path in paths:
            self.put(path, step[path])
            if rng is not None and rng.random() < 0.3:
                time.sleep(rng.uniform(0, 0.1))

    def request_again(self, delivery):
        """The service may die before it answers: then it has taken the request, or not."""
        delivery.done += 1
        try:
            jobs = [job for job in self.service.scene_jobs([delivery])[delivery.job] if job["status"] == "successful"]
            delivery.again += 1
            self.service.call("job.again", id=jobs[-1]["id"])
        except RpcError:
            delivery.again -= 1  # its input is on the way to the archive
        except (OSError, AssertionError):
            pass

    def request_retry(self, delivery):
        """Retries a failed archive; the service may die before it answers."""
        delivery.done += 1
        try:
            jobs = [job for job in self.service.scene_jobs([delivery])[delivery.job] if job["archive"] is None]
            self.service.call("job.retry", id=jobs[-1]["id"])
        except (RpcError, OSError, AssertionError):
            pass

    # --- the account ---

    def index(self):
        """{name as in Delivery.files: paths} of the files in the directories of inputs, without the service's own."""
        found = collections.defaultdict(list)
        for top in INBOXES + ("work", "quarantine"):
            for folder, _, names in os.walk(self.root / top):  # without folders that are removed meanwhile
                for name in names:
                    if name not in (".pushbroomd.lock", ".from") and not name.endswith(".error.json"):
                        found[f"{os.path.basename(folder)}/{name}" if name in ("R.tif", "N.tif") else name].append(pathlib.Path(folder, name))
        return found

    def place(self, delivery):
        return self.root / ("work/done" if delivery.good else "quarantine")

    def is_over(self, delivery, index, jobs):
        """All of its jobs are over, and its files are where they stay."""
        place = str(self.place(delivery)) + "/"
        return bool(jobs) and all(job["status"] not in ("accepted", "running") for job in jobs) and \
            all(str(path).startswith(place) for name in delivery.files() for path in index.get(name, [self.root / "none"]))

    def wait_over(self, deliveries):
        """Until they are over, or nothing moves any more: the account then reports the faults."""
        def waiting():
            index, jobs = self.index(), self.service.scene_jobs(deliveries)
            return [d.scene for d in deliveries if not self.is_over(d, index, jobs[d.job])]
        patience = Patience(lambda: (waiting(), self.service.progress()))
        while waiting() and not patience.is_over():
            assert self.service.alive(), "the service ended:\n" + self.service.tail()
            time.sleep(0.05)

    def account(self, deliveries):
        """Faults of these, and files and products that belong to no delivery."""
        faults, index, jobs = [], self.index(), self.service.scene_jobs(deliveries)
        for delivery in deliveries:
            who = f"{delivery.scene} ({delivery.kind}, variant {delivery.variant})"
            faults += [f"{who}: {fault}" for fault in self.files_of(delivery, index) + self.jobs_of(delivery, jobs[delivery.job]) +
                       self.products_of(delivery, jobs[delivery.job])]
        known = {name for delivery in self.all for name in delivery.files()}
        faults += [f"a file that was not delivered: {path}" for name in index.keys() - known for path in index[name]]
        products = self.root / "products"
        entries = os.listdir(products) if products.is_dir() else []
        faults += [f"products/{entry}: no delivery made it" for entry in entries if not entry.startswith(".") and entry not in self.by_scene]
        left = [str(p) for p in products.rglob("*.tmp*") if not p.is_dir() or any(p.iterdir())]
        claims = [p for p in (self.root / "work").iterdir() if p.name not in ("done", ".pushbroomd.lock")]
        return faults + [f"left behind: {path}" for path in left + claims]

    def files_of(self, delivery, index):
        faults, place = [], self.place(delivery)
        for name, wanted in delivery.files().items():
            paths = index.get(name, [])
            if len(paths) != 1 or place not in paths[0].parents:
                faults.append(f"{name} is in {paths or 'no place'}, not in {place}")
            elif digest(paths[0].read_bytes()) != wanted:
                faults.append(f"{paths[0]} has other content")
        return faults

    def jobs_of_several(self, delivery, jobs):
        """One of the archive, and one of each of its scenes."""
        wanted = {None: delivery.good, **{scene: variant is not None for scene, variant in delivery.several.items()}}
        found = [(job["scene"] if job["archive"] else None, job["status"], job["archive"]) for job in jobs]
        archive = next((job["id"] for job in jobs if job["archive"] is None), None)
        right = [(scene, "successful" if good else "failed", archive if scene else None) for scene, good in wanted.items()]
        return [] if sorted(map(str, found)) == sorted(map(str, right)) else [f"jobs {found}, not {right}: {[job['error'] for job in jobs]}"]

    def jobs_of(self, delivery, jobs):
        false = [f"job {job['id']} has a false path: {job['input']}" for job in jobs if job["input"] and not os.path.lexists(job["input"])]
        if delivery.several:
            return self.jobs_of_several(delivery, jobs) + false
        first = [job for job in jobs if job["again_of"] is None]
        again = len(jobs) - len(first)
        faults = [f"job {job['id']} is {job['status']}: {job['error']}" for job in jobs if job["status"] != ("successful" if delivery.good else "failed")]
        most = len(delivery.files()) if delivery.may_grow() else 1
        if not 1 <= len(first) <= most or again > delivery.again:
            faults.append(f"{len(first)} jobs where there may be {most}, and {again} of {delivery.again} that make it again")
        return faults + false

    def products_of(self, delivery, jobs):
        return [fault for scene, variant in delivery.scenes().items() for fault in self.products_of_scene(delivery, scene, variant, jobs)]

    def products_of_scene(self, delivery, scene, variant, jobs):
        found = [path for path in (self.root / "products" / scene).glob("*") if not path.name.startswith(".")]
        if variant is None:
            return [f"{scene} has products: {found}"] if found else []
        if len(found) != 1:
            return [f"{len(found)} products of {scene}"]
        faults, cog = [], found[0] / f"{scene}.tif"
        wanted = self.reference.setdefault((delivery.kind, variant, delivery.parts()), checksum(cog))
        if checksum(cog) != wanted:
            faults.append(f"{scene}: other pixels than without a fault")
        made = json.loads((found[0] / MANIFEST).read_text())["job"]
        if made not in [job["id"] for job in jobs if job["scene"] == scene]:
            faults.append(f"{scene}: its products are of job {made}, which it does not have")
        return faults


class Watcher(threading.Thread):
    """Reads products/ all the time, as a consumer does: each directory is complete when it is seen. A directory that takes its place is
    that of another job, and of no fewer files."""

    def __init__(self, deliveries):
        super().__init__(daemon=True)
        self.deliveries, self.faults, self.looks = deliveries, [], 0
        self.seen, self.gone = {}, set()  # scene: (inode, jobs, files of the last)
        self.ending = threading.Event()

    def run(self):
        while not self.ending.is_set():
            self.look()
            time.sleep(0.02)
        self.look()

    def look(self):
        self.looks += 1
        there = set()
        for scene, directory in product_directories(self.deliveries.root / "products"):
            there.add(scene)
            try:
                at = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
            except FileNotFoundError:
                self.faults.append(f"{scene}: its products were there and are gone")
                continue
            try:
                if self.seen.get(scene, (0,))[0] != os.fstat(at).st_ino:
                    self.read(scene, directory, at)
            finally:
                os.close(at)
        for scene in self.seen.keys() - there - self.gone:
            if not (self.deliveries.root / "products" / scene).exists():
                self.gone.add(scene)

    def read(self, scene, directory, at):
        delivery, inode = self.deliveries.by_scene.get(scene), os.fstat(at).st_ino
        try:
            files = {name: os.fdopen(os.open(name, os.O_RDONLY, dir_fd=at), "rb").read()
                     for name in (MANIFEST, f"{scene}.tif", f"{scene}.statistics.json", f"{scene}.stac.json")}
            manifest, _, _ = (json.loads(data) for name, data in files.items() if name.endswith(".json"))
        except (FileNotFoundError, ValueError) as error:
            if directory.stat().st_ino == inode:  # else newer products took its place while it was read
                self.faults.append(f"{scene}: half published: {error}")
            return
        _, jobs, before = self.seen.get(scene, (0, [], 0))
        n = len({file["file"] for file in manifest["input"].get("files", [])})
        if manifest["job"] in jobs:
            self.faults.append(f"{scene}: job {manifest['job']} published a second time")
        if n < before:
            self.faults.append(f"{scene}: products of {n} files in the place of those of {before}")
        wanted = self.deliveries.reference.get((delivery.kind, delivery.scenes()[scene], 1)) if delivery and not delivery.may_grow() else None
        if wanted not in (None, digest(files[f"{scene}.tif"])):
            self.faults.append(f"{scene}: other pixels than without a fault")
        self.seen[scene] = inode, jobs + [manifest["job"]], n

    def end(self):
        self.ending.set()
        self.join()
        return self.faults + [f"{scene}: its products are gone" for scene in self.gone]
