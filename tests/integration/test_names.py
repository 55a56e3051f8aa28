#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: sanitized
"""Files of any name become products: the parent takes the name that a worker derives. Control characters and those that turn
the direction of text do not reach the names of products."""
import json
import random
import shutil
import unicodedata

import numpy as np
from osgeo import gdal

import pbtest
from daemon_kit import Daemon
from pbtest import run
from test_scenes import small_folder

gdal.UseExceptions()
KNOWN = (" lead.tif", "trail .tif", "  .tif", "a\u202eb.tif", "a\u2028b.tif", "a\u0085b.tif", "\u2066a.tif", "a\x07b.tif", "a\u00a0.tif",
         "\u3000x.tif", "\ufeffx.tif", "-x.tif", "a\nb.tif", "*[x]?.tif", "%s{scene}.tif", "e\u0301.tif", "\U0001f6f0.tif", "~2.tif")
LETTERS = [*range(1, 0x2f), *range(0x30, 0x3000), *range(0xe000, 0xe010), *range(0xfe00, 0x10000), *range(0x1f600, 0x1f650), 0xe0001, 0x10ffff]
CONTROLS = [*range(1, 0x20), *range(0x7f, 0xa0), 0x20, 0x2028, 0x2029, *range(0x202a, 0x202f), *range(0x2066, 0x206a)]
PLAIN = """pipelines:
  p:
    input: {match: ['*']}
    products: [{cog: {bands: [B1], type: float32, compress: none}}, {statistics: {}}, {stac: {datetime: file-time}}]
"""


def random_name(rng):
    return "".join(chr(rng.choice(rng.choice((LETTERS, CONTROLS)))) for _ in range(rng.randint(1, 30))) + rng.choice((".tif", "", " .TIFF"))


def names(seed, n):
    """Different ones, without those that hide a file."""
    rng = random.Random(seed)
    made = {name for name in (random_name(rng) for _ in range(n)) if name[0] != "." and len(name.encode()) < 200}
    return sorted(made | set(KNOWN))


def write_scene(path):
    ds = gdal.GetDriverByName("GTiff").Create(str(path), 16, 16, 1, gdal.GDT_Byte)
    ds.GetRasterBand(1).WriteArray(np.full((16, 16), 5, "u1"))
    return path


def is_shown(name):
    """No character of it turns or ends a line."""
    return not any(unicodedata.category(c) in ("Cc", "Zl", "Zp") or "\u202a" <= c <= "\u202e" or "\u2066" <= c <= "\u2069" for c in name)


def check_products(path, products):
    assert len(products) == 3, (path, products)
    for product in products:
        assert is_shown(product["path"]), ascii(product["path"])


def test_run_takes_any_name(scratch):
    (scratch / "in").mkdir()
    (scratch / "c.yaml").write_text("compute: {device: cpu, memory: 64MiB}\n" + PLAIN)
    base = write_scene(scratch / "base.tif")
    paths = [scratch / "in" / name for name in names(26, 40)]
    for path in paths:
        shutil.copy(base, path)
    text = run("pushbroom", "run", "--json", "-c", scratch / "c.yaml", "-o", scratch / "out", *paths).stdout
    results = [json.loads(line) for line in text.split("\n") if line]  # some names have what splitlines() takes for an end
    assert len(results) == len(paths)
    for result in results:
        assert result["status"] == "successful", result
        check_products(result["input"], result["products"])


def test_run_prints_names_without_control(scratch):
    """Names of inputs with escape sequences or newlines reach neither stdout nor stderr as they are."""
    (scratch / "c.yaml").write_text("compute: {device: cpu, memory: 64MiB}\n" + PLAIN)
    good = write_scene(scratch / "esc\x1b[31mred\x1b]0;x\x07\nline.tif")
    bad = scratch / "bad\x1b[31mred\u0085\nline.tif"
    bad.write_text("no image")
    for more in ([], ["--dry-run"]):
        done = run("pushbroom", "run", *more, "-c", scratch / "c.yaml", "-o", scratch / "out", good, bad, code=1)
        said = done.stdout + done.stderr
        assert is_shown(said.replace("\n", "")), ascii(said)
        assert "esc [31mred ]0;x  line.tif" in done.stdout and "line.tif: " in done.stderr, ascii(said)


def test_service_takes_any_name(scratch):
    with Daemon(fake=False) as daemon:
        daemon.set_pipelines(PLAIN)
        daemon.start()
        base = write_scene(scratch / "base.tif")
        wanted = names(27, 12)
        with daemon.paused():
            for name in wanted:
                shutil.copy(base, daemon.root / ".new")
                (daemon.root / ".new").rename(daemon.root / "inbox" / name)
        daemon.wait_for(lambda: len(daemon.jobs(limit=1000)) == len(wanted))
        daemon.wait_idle()
        for job in daemon.jobs(limit=1000):
            assert job["status"] == "successful" and job["attempts"] == 1, job
            assert is_shown(job["name"]), ascii(job["name"])
            check_products(job["name"], job["products"])


def odd_scenes(scratch):
    """A file, a file in a folder and a folder that is a scene, whose names are no UTF-8."""
    (scratch / "d\udcff").mkdir()
    file = write_scene(scratch / "base.tif")
    for name in ("bad\udcff.tif", "d\udcff/bytes:x.tif"):
        shutil.copy(file, scratch / name)
    folder = small_folder(scratch)
    folder.rename(scratch / "S2X_\udcff_L2A")
    return [scratch / "bad\udcff.tif", scratch / "d\udcff/bytes:x.tif", scratch / "S2X_\udcff_L2A"]


ODD = PLAIN + """  s2:
    input: {scene: "S2?_*_L2A/", files: {R: B04.tif, N: B08.tif}}
    steps: [{math: {bands: {X: "N - R"}}}]
    products: [{cog: {bands: [X], type: float32}}, {stac: {datetime: file-time}}]
"""


def test_run_takes_names_that_are_no_utf8(scratch):
    config = scratch / "c.yaml"
    config.write_text(ODD)
    for path in odd_scenes(scratch):
        told, = pbtest.run_json("pushbroom", "run", "--json", "-c", config, "-o", scratch / "out", path)
        assert told["status"] == "successful" and told["input"].startswith("bytes:/") and "%FF" in told["input"], told


def test_submit_takes_names_that_are_no_utf8(scratch):
    with Daemon(fake=False) as daemon:
        daemon.set_pipelines(ODD)
        daemon.start()
        paths = odd_scenes(scratch)
        run("pushbroom", "submit", "--wait", "--socket", daemon.root / "s.sock", *paths)
        for job, path in zip(reversed(daemon.jobs()), paths):
            assert job["status"] == "successful" and "%FF" in job["input"] and is_shown(job["name"]), job
            again = daemon.call("job.again", id=job["id"])
            daemon.wait_for(lambda: daemon.call("job.get", id=again["id"])["status"] == "successful")
        one = daemon.call("job.submit", input=job["input"])  # the spelling of the list
        daemon.wait_for(lambda: daemon.call("job.get", id=one["id"])["status"] == "successful")


if __name__ == "__main__":
    pbtest.main()
