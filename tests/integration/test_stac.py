#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""STAC items and collections as jobs make them: which files they say they are made from. stac_rules.py checks each of
them, as it does those of the other tests."""
import base64
import hashlib
import json

import pbtest
import stac_rules
from test_scenes import folder_of

LANDSAT = "real/landsat8_c1_016037/LC08_L1TP_016037_20170813_20170814_01_RT"


def made(scratch):
    """The only item; it follows the rules."""
    path, = (p for p in (scratch / "out").rglob("*.stac.json"))
    stac_rules.check_item(path)
    return json.loads(path.read_text())


def manifest(scratch):
    path, = (p for p in (scratch / "out").rglob(".pushbroom.json") if "pipeline" in json.loads(p.read_text()))
    return json.loads(path.read_text())


def run(scratch, text, scene, code=0):
    (scratch / "c.yaml").write_text("pipelines:\n  p:\n" + text)
    done = pbtest.run("pushbroom", "run", "-c", scratch / "c.yaml", "-o", scratch / "out", "--json", scene, code=code)
    return json.loads(done.stdout.splitlines()[-1])


def sum_of(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def link_of(item, path):
    link, = (x for x in item["links"] if x.get("title") == path.name)
    return link


def expect_input(item, path, rel):
    link = link_of(item, path)
    assert link["rel"] == rel, link
    assert link["file:size"] == path.stat().st_size and link["file:checksum"] == "1220" + sum_of(path), link
    return link


def landsat(band):
    path = pbtest.need_data() / f"{LANDSAT}_{band}"
    if not path.exists():
        raise pbtest.Skip(f"{path} is not there")
    return path


ONE_FILE = """    input: {match: ["*.TIF"], bands: {R: 1}, metadata: "*_MTL.txt"}
    steps: [{calibrate: {to: toa, bands: [R]}}]
    products: [{cog: {bands: [R], type: float32}}, {stac: {}}]
"""


def test_a_scene_of_one_file_is_derived_from_it_via_its_metadata(scratch):
    scene, mtl = landsat("B4.TIF"), landsat("MTL.txt")
    run(scratch, ONE_FILE, scene)
    item = made(scratch)
    link = expect_input(item, scene, "derived_from")
    digest = base64.urlsafe_b64encode(hashlib.sha256(scene.read_bytes()).digest()).decode().rstrip("=")
    assert link["href"] == f"ni:///sha-256;{digest}" and link["type"].startswith("image/tiff"), link
    expect_input(item, mtl, "via")
    for path in (scene, mtl):
        assert f"{path.name} (sha256 {sum_of(path)})" in item["properties"]["processing:lineage"]
    said = manifest(scratch)["input"]
    assert said["sha256"] == sum_of(scene)  # the identity is the scene's alone
    assert [(f["role"], f["file"], f["sha256"]) for f in said["files"]] == \
        [("pixels", scene.name, sum_of(scene)), ("metadata", mtl.name, sum_of(mtl))]


def test_a_scene_of_many_files_is_derived_from_those_that_were_read(scratch):
    folder = folder_of(scratch)
    run(scratch, """    input:
      scene: "S2?_*_L2A/"
      files: {R: B04.tif, N: B08.tif, RE: B05.tif}
    steps: [{math: {bands: {X: N - R}}}]
    products:
      - cog: {bands: [X], type: float32}
      - stac: {datetime: "2020-02-19T11:29:00Z", derived_from: "https://data.example.org/a b/{file}?x"}
""".replace("a b", "a"), folder)
    item = made(scratch)
    for name in ("B04.tif", "B08.tif"):
        link = expect_input(item, folder / name, "derived_from")
        assert link["href"] == f"https://data.example.org/a/{folder.name}/{name}?x", link
    assert not any(x.get("title") == "B05.tif" for x in item["links"])  # no product needs it
    files = manifest(scratch)["input"]["files"]
    assert [f["file"] for f in files] == ["B04.tif", "B08.tif"]
    lines = "".join(f"{f['sha256']}  {f['file']}\n" for f in files)
    assert manifest(scratch)["input"]["sha256"] == hashlib.sha256(lines.encode()).hexdigest()


def test_an_address_without_the_file_is_refused(scratch):
    text = ONE_FILE.replace("stac: {}", 'stac: {derived_from: "https://x.org/"}')
    (scratch / "c.yaml").write_text("pipelines:\n  p:\n" + text)
    done = pbtest.run("pushbroom", "check-config", scratch / "c.yaml", code=2)
    assert "stac.derived_from" in done.stderr and "{file}" in done.stderr, done.stderr


if __name__ == "__main__":
    pbtest.main(globals())
