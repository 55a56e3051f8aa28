#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: sanitized
"""STAC items and collections as jobs make them: the files in their links. stac_rules.py checks each of them, and those of the
other tests."""
import base64
import hashlib
import json
import re
import shutil
import subprocess

import numpy as np
from osgeo import gdal

import pbtest
import stac_rules
import sums
from test_scenes import folder_of, small

gdal.UseExceptions()

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


def link_of(item, path):
    link, = (x for x in item["links"] if x.get("title") == path.name)
    return link


def expect_input(item, path, rel, begin="1e20"):
    link = link_of(item, path)
    assert link["rel"] == rel, link
    assert link["file:size"] == path.stat().st_size and link["file:checksum"] == sums.multihash(path, begin), link
    return link


def landsat(band):
    path = pbtest.need_data() / f"{LANDSAT}_{band}"
    if not path.exists():
        raise pbtest.Skip(f"{path} is not there")
    return path


SHA256 = "    output: {checksum: sha2-256}\n"
ONE_FILE = """    input: {match: ["*.TIF"], bands: {R: 1}, metadata: "*_MTL.txt"}
    steps: [{calibrate: {to: toa, bands: [R]}}]
    products: [{cog: {bands: [R], type: float32}}, {stac: {}}]
"""


def test_one_file_scene_is_derived_via_its_metadata(scratch):
    scene, mtl = landsat("B4.TIF"), landsat("MTL.txt")
    run(scratch, SHA256 + ONE_FILE, scene)
    item = made(scratch)
    link = expect_input(item, scene, "derived_from", "1220")
    digest = base64.urlsafe_b64encode(hashlib.sha256(scene.read_bytes()).digest()).decode().rstrip("=")
    assert link["href"] == f"ni:///sha-256;{digest}" and link["type"].startswith("image/tiff"), link
    expect_input(item, mtl, "via", "1220")
    for path in (scene, mtl):
        assert f"{path.name} (sha256 {sums.digest(path, 'sha256')})" in item["properties"]["processing:lineage"]
    said = manifest(scratch)["input"]
    assert said["sha256"] == sums.digest(scene, "sha256") and "blake3" not in said  # the identity is the scene's alone
    assert [(f["role"], f["file"], f["sha256"]) for f in said["files"]] == \
        [("pixels", scene.name, sums.digest(scene, "sha256")), ("metadata", mtl.name, sums.digest(mtl, "sha256"))]


def test_scene_of_files_is_derived_from_those_read(scratch):
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
    lines = "".join(f"{f['blake3']}  {f['file']}\n" for f in files)
    assert manifest(scratch)["input"]["blake3"] == sums.digest_of(lines.encode())


S2 = "S2B_MSIL2A_20220413T150759_N0400_R025_T33XWJ_20220414T082126"
S2_METADATA = pbtest.SOURCE / "tests/data/metadata"
S2_PIPELINE = """    input:
      scene: "S2?_MSIL2A_*/"
      files: {R: "R10m/*_B04_10m.tif", N: "R10m/*_B08_10m.tif"}
      metadata: [MTD_MSIL2A.xml, "GRANULE/*/MTD_TL.xml"]
    steps: [{calibrate: {to: surface, bands: [R, N]}}]
    products: [{cog: {bands: [R, N], type: float32}}, {stac: {}}]
"""


def sentinel2(scratch, epsg=32633, change=("", "")):
    """A .SAFE with made bands and the metadata of a real one; change: one text in the tile's."""
    folder = scratch / f"{S2}.SAFE"
    values = np.random.default_rng(1).integers(1001, 9000, (2, 40, 50)).astype(np.uint16)
    for i, band in enumerate(("B04", "B08")):
        small(folder / f"R10m/T33XWJ_20220413T150759_{band}_10m.tif", values[i], 499980.0, 8900040.0, epsg=epsg)
    tile = folder / "GRANULE/L2A_T33XWJ_A026649_20220413T150756/MTD_TL.xml"
    tile.parent.mkdir(parents=True)
    text = (S2_METADATA / "S2B_N0400_MTD_TL.xml").read_text()
    assert change[0] in text
    tile.write_text(text.replace(*change) if change[0] else text)
    shutil.copyfile(S2_METADATA / "S2B_N0400_MTD_MSIL2A.xml", folder / "MTD_MSIL2A.xml")
    return folder, values, tile


def checksums_of(scratch, folder, kind):
    """Checksums of each product of a run with that stac.checksum: at its end, in the manifest, in the item (not of itself)."""
    text = ("    input: {match: ['*.tif'], bands: {B: 1, G: 2, R: 3, N: 4}}\n    products:\n"
            f"      - cog: {{bands: [N]}}\n      - quicklook: {{bands: [N]}}\n      - stac: {{datetime: file-time, checksum: {kind}}}\n")
    (scratch / folder).mkdir()
    scene = scratch / "s.tif"
    if not scene.exists():
        pbtest.run("make_scene", "--size", "300x200", scene)
    outcome = run(scratch / folder, text, scene)
    item, = (json.loads(p.read_text()) for p in (scratch / folder / "out").rglob("*.stac.json"))
    told = {p["path"]: p["checksum"] for p in outcome["products"]}
    kept = {f["file"]: {key: f[key] for key in f if key in ("sha256", "blake3")} for f in manifest(scratch / folder)["files"]}
    return told, kept, {a["href"].rpartition("/")[2]: a.get("file:checksum") for a in item["assets"].values()}


def test_product_checksums_have_the_configured_kind(scratch):
    for kind, key, multihash in (("sha2-256", "sha256", "1220"), ("blake3", "blake3", "1e20"), ("output", "blake3", "1e20")):
        told, kept, assets = checksums_of(scratch, kind, kind)
        assert len(told) == 3, told
        for path, checksum in told.items():
            expected = sums.digest(path, key)
            name = path.rpartition("/")[2]
            assert checksum == f"{key}:{expected}" and kept[name] == {key: expected}, (checksum, kept[name], expected)
            assert name.endswith(".json") or assets[name] == multihash + expected, assets


def test_no_product_checksums_keep_input_checksums(scratch):
    told, kept, assets = checksums_of(scratch, "none", "none")
    assert set(told.values()) == {None} and all(k == {} for k in kept.values()) and set(assets.values()) == {None}, (told, kept, assets)
    assert manifest(scratch / "none")["input"]["blake3"] == sums.digest(scratch / "s.tif")


def test_inputs_have_the_checksum_of_the_pipeline(scratch):
    scene, mtl = landsat("B4.TIF"), landsat("MTL.txt")
    run(scratch, ONE_FILE, scene)
    item, said = made(scratch), manifest(scratch)
    assert said["input"]["blake3"] == sums.digest(scene) and "sha256" not in said["input"], said["input"]
    assert [(f["file"], f["blake3"]) for f in said["input"]["files"]] == [(p.name, sums.digest(p)) for p in (scene, mtl)]
    assert all("blake3" in f for f in said["files"])  # stac.checksum follows
    # No address can hold a BLAKE3: the files are listed where no address is needed.
    assert not any(x["rel"] in ("derived_from", "via") for x in item["links"]), item["links"]
    assert item["properties"]["pushbroom:inputs"] == [
        {"role": role, "file": p.name, "size": p.stat().st_size, "checksum": sums.multihash(p)} for role, p in (("pixels", scene), ("metadata", mtl))]
    for path in (scene, mtl):
        assert f"{path.name} (blake3 {sums.digest(path)})" in item["properties"]["processing:lineage"]
    # Where an address is given they are links.
    shutil.rmtree(scratch / "out")
    run(scratch, ONE_FILE.replace("stac: {}", 'stac: {derived_from: "https://x.org/{file}", checksum: sha2-256}'), scene)
    item, said = made(scratch), manifest(scratch)
    assert "pushbroom:inputs" not in item["properties"]
    for path, rel in ((scene, "derived_from"), (mtl, "via")):
        link = link_of(item, path)
        assert (link["rel"], link["href"], link["file:checksum"]) == (rel, f"https://x.org/{path.name}", sums.multihash(path)), link
    assert "blake3" in said["input"] and all("sha256" in f for f in said["files"])  # each kind as requested


def test_blake3_of_many_files_is_that_of_b3sum_lines(scratch):
    folder = folder_of(scratch)
    run(scratch, """    input:
      scene: "S2?_*_L2A/"
      files: {R: B04.tif, N: B08.tif}
    steps: [{math: {bands: {X: N - R}}}]
    products: [{cog: {bands: [X], type: float32}}]
""", folder)
    lines = subprocess.run(["b3sum", "B04.tif", "B08.tif"], check=True, capture_output=True, cwd=folder).stdout
    (scratch / "lines").write_bytes(lines)
    assert manifest(scratch)["input"]["blake3"] == sums.digest(scratch / "lines")


def test_scene_replaces_products_of_another_checksum(scratch):
    text = "    input: {match: ['*.tif'], bands: {B: 1, G: 2, R: 3, N: 4}}\n    products: [{cog: {bands: [N]}}]\n"
    other = "    output: {checksum: sha2-256, exists: refuse}\n" + text
    (scratch / "other").mkdir()
    for seed, path in ((1, "s.tif"), (2, "other/s.tif")):
        pbtest.run("make_scene", "--size", "300x200", "--compress", "NONE", "--seed", str(seed), scratch / path)
    assert (scratch / "s.tif").stat().st_size == (scratch / "other/s.tif").stat().st_size
    for config, kind in ((other, "sha256"), (text, "blake3"), (other, "sha256")):
        before = [p for p in (scratch / "out").rglob("*.tif")]
        run(scratch, config, scratch / "s.tif")
        assert manifest(scratch)["input"][kind] == sums.digest(scratch / "s.tif", kind), manifest(scratch)["input"]
        after = [p for p in (scratch / "out").rglob("*.tif")]
        assert before in ([], after), (before, after)
        refused = run(scratch, text if config is other else other, scratch / "other/s.tif", code=1)
        assert refused["error"]["code"] == "output.exists" and "with other content" in refused["error"]["message"], refused


def test_two_metadata_files_are_merged(scratch):
    folder, values, tile = sentinel2(scratch)
    run(scratch, S2_PIPELINE, folder)
    item = made(scratch)
    p = item["properties"]
    assert p["datetime"] == "2022-04-13T15:08:07.846358Z"  # the tile's, which is exact
    assert (p["platform"], p["pushbroom:processing_baseline"]) == ("sentinel-2b", "04.00")
    assert abs(p["view:sun_elevation"] - (90 - 76.5286190227361)) < 1e-9 and p["view:incidence_angle"] > 0
    assert (p["sat:orbit_state"], p["sat:relative_orbit"]) == ("ascending", 25)
    for path in (folder / "MTD_MSIL2A.xml", tile):
        file, = (x for x in p["pushbroom:inputs"] if x["file"] == str(path.relative_to(folder)))
        assert file["role"] == "metadata" and file["checksum"] == sums.multihash(path), file
    path, = (scratch / "out").rglob("*.tif")
    np.testing.assert_allclose(gdal.Open(str(path)).ReadAsArray(), (values - 1000.0) / 10000, atol=1e-6)
    said = pbtest.run("pushbroom", "run", "-c", scratch / "c.yaml", "-o", scratch / "x", "--dry-run", folder).stdout
    assert "sentinel-2b" in said and "sun 13.5 degrees high" in said, said
    (scratch / "c.yaml").write_text((scratch / "c.yaml").read_text().replace(', "GRANULE/*/MTD_TL.xml"', ""))
    said = pbtest.run("pushbroom", "run", "-c", scratch / "c.yaml", "-o", scratch / "x", "--dry-run", folder).stdout
    assert "the sun's position is in GRANULE/*/MTD_TL.xml (input.metadata)" in said, said


def test_uncalibrated_bands_are_known_by_their_files(scratch):
    folder, _, _ = sentinel2(scratch)
    text = S2_PIPELINE.replace("calibrate: {to: surface, bands: [R, N]}", 'math: {bands: {X: "N - R", N: "N + 1"}}').replace(
        "cog: {bands: [R, N]", "cog: {bands: [R, N, X]")
    run(scratch, text, folder)
    bands = {b["name"]: b for b in made(scratch)["assets"]["data"]["bands"]}
    assert (bands["R"]["eo:common_name"], bands["R"]["eo:center_wavelength"]) == ("red", 0.665), bands["R"]
    assert not any(key.startswith("eo:") for name in "NX" for key in bands[name])  # a step has changed N


def test_contradictory_metadata_are_refused_with_files(scratch):
    folder, _, _ = sentinel2(scratch, change=("_T33XWJ_N04.00</TILE_ID>", "_T32XNQ_N04.00</TILE_ID>"))
    error = run(scratch, S2_PIPELINE, folder, code=1)["error"]
    assert error["code"] == "input.metadata_conflict", error
    for word in ("MTD_TL.xml", "MTD_MSIL2A.xml", "T33XWJ", "T32XNQ"):
        assert word in error["message"], error
    shutil.rmtree(folder)
    folder, _, _ = sentinel2(scratch, epsg=32632)
    for pipeline, of in ((S2_PIPELINE, "is in EPSG:32633"), (S2_PIPELINE.replace(', "GRANULE/*/MTD_TL.xml"', ""), "is T33XWJ in EPSG:32633")):
        error = run(scratch, pipeline, folder, code=1)["error"]
        assert error["code"] == "input.metadata_conflict" and f"{of}, this one in EPSG:32632" in error["message"], error


def test_each_file_of_metadata_must_be_there(scratch):
    folder, _, tile = sentinel2(scratch)
    tile.unlink()
    error = run(scratch, S2_PIPELINE, folder, code=1)["error"]
    assert error["code"] == "input.incomplete" and "metadata (GRANULE/*/MTD_TL.xml)" in error["message"], error
    text = ONE_FILE.replace('"*_MTL.txt"', '["*_MTL.txt", "*_ANG.txt"]')
    error = run(scratch, text, landsat("B4.TIF"), code=1)["error"]
    assert error["code"] == "input.metadata_missing" and "*_ANG.txt" in error["message"], error


def test_mistakes_in_the_list_of_metadata_are_told(scratch):
    for value, words in (('[]', "has 0 entries"), ('["a.xml", "a.xml"]', "twice"), ('"GRANULE/*.xml"', "are in its directory"),
                         ('"../x.xml"', "leaves the scene's folder"), ("{a: b}", "must be a list")):
        (scratch / "c.yaml").write_text("pipelines:\n  p:\n" + ONE_FILE.replace('"*_MTL.txt"', value))
        done = pbtest.run("pushbroom", "check-config", scratch / "c.yaml", code=2)
        assert "input.metadata" in done.stderr and words in done.stderr, (value, done.stderr)


PLANET = "20170831_172754_101c"
PLANET_PIPELINE = """    input:
      scene: "2*_*_101c/"
      files:
        B: {match: "*_AnalyticMS.tif", band: 1}
        G: {match: "*_AnalyticMS.tif", band: 2}
        R: {match: "*_AnalyticMS.tif", band: 3}
        N: {match: "*_AnalyticMS.tif", band: 4}
        CLEAR: {match: "*_udm2.tif", band: 1}
      metadata: ["*_AnalyticMS_metadata.xml", "{scene}_metadata.json"]
    steps:
      - mask: {band: CLEAR, preset: planetscope-udm2, apply: [B, G, R, N]}
      - calibrate: {to: toa, bands: [B, G, R, N]}
    products: [{cog: {bands: [B, G, R, N], type: float32}}, {stac: {}}]
"""
# After the schema of Planet's data API.
PLANET_ITEM = {"id": PLANET, "type": "Feature", "properties": {
    "acquired": "2017-08-31T17:27:54.7Z", "item_type": "PSScene", "provider": "planetscope", "instrument": "PS2", "satellite_id": "101c",
    "gsd": 3.9, "cloud_percent": 12, "view_angle": 0.2, "strip_id": "700000"}}


def test_planetscope_has_stack_mask_and_two_metadata(scratch):
    folder = scratch / PLANET
    folder.mkdir()
    random = np.random.default_rng(2)
    for name, n, high, kind in ((f"{PLANET}_3B_AnalyticMS", 4, 10000, gdal.GDT_UInt16), (f"{PLANET}_3B_udm2", 8, 2, gdal.GDT_Byte)):
        out = gdal.GetDriverByName("GTiff").Create(str(folder / f"{name}.tif"), 50, 40, n, kind)
        out.SetGeoTransform((500000.0, 3.0, 0, 4000000.0, 0, -3.0))
        values = random.integers(0 if n == 8 else 1, high, (n, 40, 50))
        out.WriteArray(values)
        stack = values if n == 4 else stack
        out = None
    shutil.copyfile(S2_METADATA / f"{PLANET}_3B_AnalyticMS_metadata.xml", folder / f"{PLANET}_3B_AnalyticMS_metadata.xml")
    (folder / f"{PLANET}_metadata.json").write_text(json.dumps(PLANET_ITEM))
    run(scratch, PLANET_PIPELINE, folder)
    xml = (folder / f"{PLANET}_3B_AnalyticMS_metadata.xml").read_text()
    coefficients = [float(x) for x in re.findall(r"reflectanceCoefficient>([\d.e+-]+)<", xml)]
    assert len(coefficients) == 4
    expected = np.where(values[:1] == 1, stack * np.array(coefficients)[:, None, None], np.nan)
    path, = (scratch / "out").rglob("*.tif")
    np.testing.assert_allclose(gdal.Open(str(path)).ReadAsArray(), expected, rtol=1e-6)
    item = made(scratch)
    p = item["properties"]
    assert (p["eo:cloud_cover"], p["gsd"], p["platform"], p["instruments"]) == (12, 3.9, "101c", ["PS2"]), p
    assert p["datetime"].startswith("2017-08-31T17:27:54") and p["view:sun_elevation"] > 0
    assert sorted((x["role"], x["file"].split("c_")[1]) for x in p["pushbroom:inputs"]) == [
        ("metadata", "3B_AnalyticMS_metadata.xml"), ("metadata", "metadata.json"), ("pixels", "3B_AnalyticMS.tif"), ("pixels", "3B_udm2.tif")]
    assert [b["eo:common_name"] for b in item["assets"]["data"]["bands"]] == ["blue", "green", "red", "nir"]
    # The item alone has no coefficients, and has their place.
    shutil.rmtree(scratch / "out")
    error = run(scratch, PLANET_PIPELINE.replace('"*_AnalyticMS_metadata.xml", ', ""), folder, code=1)["error"]
    assert error["code"] == "input.metadata_value" and "the bands are in *_metadata.xml" in error["message"], error


RENDERS = """    input: {match: ["*.tif"], bands: {R: 1, N: 2, G: 3}}
    steps: [{math: {bands: {X: "N / 10000 - R / 10000"}}}]
    products:
      - cog: {bands: [G, X, R, N], type: int16, nodata: -32768, scale: 0.5, offset: 10}
      - cog: {name: index, bands: [X], type: float32}
      - quicklook: {name: rgb, bands: [R, N, G], range: [100, 9000]}
      - quicklook: {name: grey, bands: [X]}
      - quicklook: {name: seen, bands: [X], ramp: viridis, range: [1, -1]}
      - quicklook: {name: own, bands: [X], ramp: ndvi, range: [-1, 1]}
      - quicklook: {name: classes, bands: [G], colours: classes.txt, between: exact}
      - stac: {datetime: file-time}
"""


def stored(scratch, item, render):
    """The values that a tile server reads: bands of the data, scaled to 0 .. 255."""
    key, = render["assets"]
    path, = (scratch / "out").rglob(item["assets"][key]["href"][2:])
    bands = gdal.Open(str(path)).ReadAsArray().astype(np.float64)
    bands = (bands if bands.ndim == 3 else bands[None])[[i - 1 for i in render["bidx"]]]
    ends = np.array(render["rescale"])[:, :, None, None]
    return np.clip((bands - ends[:, 0]) / (ends[:, 1] - ends[:, 0]), 0, 1) * 255


def picture(scratch, name):
    path, = (scratch / "out").rglob(f"*.{name}.png")
    return gdal.Open(str(path)).ReadAsArray().astype(np.float64)


def test_tile_server_draws_data_like_the_pictures(scratch):
    values = np.random.default_rng(3).integers(1, 10000, (3, 40, 50)).astype(np.uint16)
    out = gdal.GetDriverByName("GTiff").Create(str(scratch / "s.tif"), 50, 40, 3, gdal.GDT_UInt16)
    out.WriteArray(values)
    out = None
    (scratch / "classes.txt").write_text("1 255 0 0\n2 0 255 0\n")
    run(scratch, RENDERS, scratch / "s.tif")
    item = made(scratch)
    renders = item["properties"]["renders"]
    assert sorted(renders) == ["grey", "own", "rgb", "seen"], renders  # classes.txt has values, the data other ones
    assert renders["rgb"]["assets"] == ["data"] and renders["rgb"]["bidx"] == [3, 4, 1]
    assert renders["rgb"]["rescale"] == [[(100 - 10) / 0.5, (9000 - 10) / 0.5]] * 3
    # Stored as halves, 255 levels of 8900: a level off by the rounding at most.
    assert np.abs(stored(scratch, item, renders["rgb"]) - picture(scratch, "rgb")[:3]).max() <= 1
    assert renders["seen"]["colormap_name"] == "viridis_r" and renders["seen"]["bidx"] == [2]
    assert "colormap_name" not in renders["grey"] and "colormap" not in renders["grey"]
    # A ramp that rio-tiler has not: in 256 colours.
    colours = np.array([renders["own"]["colormap"][str(i)] for i in range(256)])
    assert len(renders["own"]["colormap"]) == 256
    x = (values[1] / 10000.0 - values[0] / 10000.0 + 1) / 2 * 255
    shown = colours[np.rint(x).astype(int)].transpose(2, 0, 1)
    assert np.abs(shown - picture(scratch, "own")).max() <= 3


def test_classes_of_a_colour_file_are_drawn_by_value(scratch):
    out = gdal.GetDriverByName("GTiff").Create(str(scratch / "s.tif"), 50, 40, 3, gdal.GDT_UInt16)
    out.WriteArray(np.random.default_rng(3).integers(1, 3, (3, 40, 50)).astype(np.uint16))
    out = None
    (scratch / "classes.txt").write_text("1 255 0 0\n2 0 255 0 128\n")
    run(scratch, """    input: {match: ["*.tif"], bands: {R: 1, N: 2, G: 3}}
    products:
      - cog: {bands: [G], type: uint8, nodata: 0}
      - quicklook: {name: classes, bands: [G], colours: classes.txt, between: exact}
      - quicklook: {name: other, bands: [N]}
      - stac: {datetime: file-time}
""", scratch / "s.tif")
    renders = made(scratch)["properties"]["renders"]
    assert list(renders) == ["classes"], renders  # no product has the values of N
    assert renders["classes"] == {"title": "Quicklook", "assets": ["data"], "bidx": [1],
                                  "colormap": {"1": [255, 0, 0, 255], "2": [0, 255, 0, 128]}}


def test_quality_bands_say_what_a_preset_knows_of_them(scratch):
    folder = scratch / "S2X_a_L2A"
    small(folder / "B04.tif", np.random.default_rng(1).integers(1, 9000, (40, 50)).astype(np.uint16))
    small(folder / "SCL.tif", np.random.default_rng(2).integers(0, 12, (40, 50)).astype(np.uint8))
    text = """    input:
      scene: "S2?_*_L2A/"
      files: {R: B04.tif, SCL: SCL.tif}
    steps: [{mask: {band: SCL, preset: sentinel2-scl, apply: [R, SCL]}}]
    products:
      - cog: {bands: [SCL, R], type: uint16, nodata: 0}
      - stac: {datetime: file-time}
"""
    run(scratch, text, folder)
    scl, red = made(scratch)["assets"]["data"]["bands"]
    classes = {c["value"]: c["name"] for c in scl["classification:classes"]}
    assert len(classes) == 12 and classes[4] == "vegetation" and classes[9] == "cloud_high", scl
    assert "classification:classes" not in red
    # Bits are fields; two bits of confidence are one of several values.
    shutil.rmtree(scratch / "out")
    run(scratch, text.replace("sentinel2-scl", "landsat-c2"), folder)
    fields = made(scratch)["assets"]["data"]["bands"][0]["classification:bitfields"]
    assert [(f["offset"], f["length"]) for f in fields] == [(i, 1) for i in range(8)] + [(8, 2), (10, 2), (12, 2), (14, 2)]
    assert fields[3]["name"] == "cloud" and [c["name"] for c in fields[8]["classes"]] == ["cloud_low", "cloud_medium", "cloud_high"]
    # Scaled, interpolated or computed bands hold other values.
    for what, by in (("SCL: SCL.tif", "SCL: {match: SCL.tif, scale: 2}"), ("SCL: SCL.tif", "SCL: {match: SCL.tif, resample: bilinear}"),
                     ("apply: [R, SCL]}}", 'apply: [R]}}, {math: {bands: {SCL: "SCL + 1"}}}')):
        shutil.rmtree(scratch / "out")
        assert what in text
        run(scratch, text.replace(what, by), folder)
        assert "classification" not in json.dumps(made(scratch)["assets"]), by


def test_an_address_without_the_file_is_refused(scratch):
    text = ONE_FILE.replace("stac: {}", 'stac: {derived_from: "https://x.org/"}')
    (scratch / "c.yaml").write_text("pipelines:\n  p:\n" + text)
    done = pbtest.run("pushbroom", "check-config", scratch / "c.yaml", code=2)
    assert "stac.derived_from" in done.stderr and "{file}" in done.stderr, done.stderr


if __name__ == "__main__":
    pbtest.main()
