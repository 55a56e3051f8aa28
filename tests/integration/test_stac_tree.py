#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: sanitized
"""The STAC tree of a directory of products: catalog.json, collection.json, the pages of the months, the items."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import pbtest  # noqa: E402
import stac_rules  # noqa: E402
from pbtest import BIN, run  # noqa: E402

SCENE = pathlib.Path(__file__).resolve().parents[1] / "data/real/sentinel2_29RKH/SCL.tif"
CONFIG = """pipelines:
  p:
    input: {match: ["*.tif"], bands: {R: 1}}
    products: [{statistics: {}}, {stac: {collection: land, datetime: "name:%Y%m%d"}}]
"""
PAGE_ITEMS = 1000


def scene(scratch, name):
    path = scratch / (name + ".tif")
    shutil.copy(SCENE, path)
    return path


def publish(scratch, *names, **more):
    (scratch / "c.yaml").write_text(CONFIG)
    return run("pushbroom", "run", "-c", scratch / "c.yaml", "-o", scratch / "out", *(scene(scratch, n) for n in names), **more)


def items(scratch):
    return sorted(p.resolve() for p in (scratch / "out").rglob("*.stac.json") if ".tmp/" not in str(p))


def reached(scratch, start="catalog.json"):
    stac_rules.check_all(scratch / "out")
    return stac_rules.walk(scratch / "out" / start)


def links(path, rel):
    return [link["href"] for link in json.loads(path.read_text())["links"] if link["rel"] == rel]


def test_all_items_are_reached_from_the_root(scratch):
    publish(scratch, "a_20200105", "b_20200106", "c_20200219", "a name_20200220")
    assert len(items(scratch)) == 4
    assert reached(scratch) == items(scratch)
    assert links(scratch / "out/collection.json", "child") == ["./collection-2020-01.json", "./collection-2020-02.json"]
    assert links(scratch / "out/catalog.json", "child") == ["./collection.json"]
    for item in items(scratch):
        backward = {link["rel"]: link["href"] for link in json.loads(item.read_text())["links"]}
        assert backward["root"] == "../../catalog.json" and backward["collection"] == "../../collection.json"


def test_pystac_finds_all_items(scratch):
    try:
        import pystac
    except ImportError:
        raise pbtest.Skip("skipped: pystac") from None
    publish(scratch, "a_20200105", "b_20200106", "c_20200219")
    collection = pystac.Collection.from_file(str(scratch / "out/collection.json"))
    found = list(collection.get_items(recursive=True))
    assert sorted(pathlib.Path(i.get_self_href()).resolve() for i in found) == items(scratch)
    assert {(i.get_root().id, i.get_collection().id) for i in found} == {("pushbroom", "land")}


def test_republished_item_is_linked_once(scratch):
    publish(scratch, "a_20200105")
    before = (scratch / "out/collection-2020-01.json").read_text()
    publish(scratch, "a_20200105")
    assert (scratch / "out/collection-2020-01.json").read_text() == before
    assert reached(scratch) == items(scratch)


def test_processes_publish_at_the_same_time(scratch):
    (scratch / "c.yaml").write_text(CONFIG)
    command = [BIN / "pushbroom", "run", "-c", scratch / "c.yaml", "-o", scratch / "out"]
    running = [subprocess.Popen([*command, *(scene(scratch, f"s{i}{k}_2020010{k}") for k in range(1, 4))],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for i in range(6)]
    assert [p.wait() for p in running] == [0] * 6
    assert len(items(scratch)) == 18
    assert reached(scratch) == items(scratch)


def test_kill_leaves_no_item_without_link(scratch):
    """Kills at times that are spread over a run; the next run completes the tree."""
    begin = time.monotonic()
    publish(scratch, "first_20200101")
    took = time.monotonic() - begin
    for i in range(16):
        path = scene(scratch, f"s{i}_20200102")
        process = subprocess.Popen([BIN / "pushbroom", "run", "-c", scratch / "c.yaml", "-o", scratch / "out", path],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(took * (0.3 + 0.05 * i))
        process.kill()
        process.wait()
        for file in (scratch / "out").glob("*.json"):
            json.loads(file.read_text())  # whole at any time
    publish(scratch, "last_20200103")
    assert reached(scratch) == items(scratch)


def test_files_of_others_stay(scratch):
    out = scratch / "out"
    out.mkdir()
    own = {"catalog.json": '{"type": "Catalog", "id": "mine"}', "collection-2020-02.json": '{"type": "Catalog", "id": "x"}'}
    for name, text in own.items():
        (out / name).write_text(text)
    done = publish(scratch, "a_20200105", "b_20200206")
    assert "collection-*.json" in done.stdout + done.stderr
    assert {name: (out / name).read_text() for name in own} == own
    assert [p.name for p in items(scratch)] == ["a_20200105.stac.json", "b_20200206.stac.json"]
    assert links(out / "collection-2020-01.json", "item") == ["./a_20200105/p/a_20200105.stac.json"]


def test_older_collection_gets_its_links(scratch):
    publish(scratch, "a_20200105")
    path = scratch / "out/collection.json"
    old = json.loads(path.read_text())
    old["links"] = [{"rel": "license", "href": "https://example.org/licence"}]
    old["description"] = "Ours."
    path.write_text(json.dumps(old))
    publish(scratch, "b_20200205")
    new = json.loads(path.read_text())
    assert new["description"] == "Ours." and new["links"][0] == old["links"][0]
    assert links(path, "child") == ["./collection-2020-02.json"]
    publish(scratch, "a_20200105")
    assert reached(scratch) == items(scratch)


def test_collection_that_is_kept_gets_no_pages(scratch):
    publish(scratch, "a_20200105")
    path = scratch / "out/collection.json"
    kept = json.loads(path.read_text())
    del kept["pushbroom:extent"]
    path.write_text(json.dumps(kept))
    publish(scratch, "b_20200205")
    assert json.loads(path.read_text()) == kept
    assert not (scratch / "out/collection-2020-02.json").exists()


def fill_page(scratch):
    """A month with as many items as its page holds."""
    out = scratch / "out"
    page = out / "collection-2020-01.json"
    full = json.loads(page.read_text())
    item = items(scratch)[0].read_text()
    for i in range(PAGE_ITEMS - 1):
        folder = out / f"full{i}" / "p"
        folder.mkdir(parents=True)
        (folder / "x.stac.json").write_text(item)
        full["links"].append({"rel": "item", "href": f"./full{i}/p/x.stac.json", "type": "application/geo+json"})
    page.write_text(json.dumps(full))


def test_full_page_is_continued_in_others(scratch):
    publish(scratch, "a_20200105")
    fill_page(scratch)
    names = [f"more{i}_20200106" for i in range(4)]
    publish(scratch, *names)
    publish(scratch, *names)  # they are found again where they are linked
    page = scratch / "out/collection-2020-01.json"
    assert len(links(page, "item")) == PAGE_ITEMS
    assert 1 <= len(links(page, "child")) <= 4
    assert len(stac_rules.walk(scratch / "out/catalog.json")) == PAGE_ITEMS + 4
    for folder in (scratch / "out").glob("full*"):  # their items name files that were never there
        shutil.rmtree(folder)


def test_links_to_removed_items_are_dropped(scratch):
    publish(scratch, "a_20200105", "b_20200106")
    shutil.rmtree(scratch / "out/a_20200105")
    publish(scratch, "c_20200107")
    assert reached(scratch) == items(scratch)
    assert len(items(scratch)) == 2


def test_schemas_reject_a_wrong_item(scratch):
    if stac_rules.jsonschema is None:
        raise pbtest.Skip("skipped: python3-jsonschema")
    publish(scratch, "a_20200105")
    path, = items(scratch)
    item = json.loads(path.read_text())
    for change in (lambda i: i.update(stac_version="9"), lambda i: i["properties"].update({"proj:code": 3})):
        wrong = json.loads(json.dumps(item))
        change(wrong)
        try:
            stac_rules.apply_schemas(wrong, "https://schemas.stacspec.org/v1.1.0/item-spec/json-schema/item.json")
        except AssertionError:
            continue
        raise RuntimeError("a wrong item is taken for a right one")


if __name__ == "__main__":
    pbtest.main()
