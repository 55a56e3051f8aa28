#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: sanitized
"""Configurations by name: `input: NAME`, `run -c NAME`, `new`; the directories of the search, keys that override,
and messages about mistakes."""
import functools
import json
import shutil
import signal

import numpy as np
from osgeo import gdal

import pbtest
from daemon_kit import Daemon

gdal.UseExceptions()
SAMPLES = pbtest.SOURCE / "samples"
FOLDER = "S2A_29RKH_20200219_0_L2A"
NDVI = """pipelines:
  ndvi:
    input: {}
    steps: [calibrate: {{to: surface, bands: [R, N]}}, mask, index: {{names: [NDVI]}}]
    products: [cog: {{bands: [NDVI]}}, quicklook: {{bands: [NDVI], ramp: ndvi}}, stac]
"""


def written(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def checked(path, code=0, **env):
    """The object that check-config --json prints."""
    return json.loads(pbtest.run("pushbroom", "check-config", "--json", path, code=code, env={k: str(v) for k, v in env.items()}).stdout)


def mistakes(path, **env):
    """file name, line and text of each."""
    return [(e["file"].rsplit("/", 1)[-1], e["line"], e["message"]) for e in checked(path, code=2, **env)["errors"]]


def scene(scratch):
    (scratch / FOLDER).mkdir()
    for name, path in pbtest.sentinel2_files("B04.tif", "B08.tif", "SCL.tif", f"{FOLDER}.json").items():
        shutil.copyfile(path, scratch / FOLDER / name)
    return scratch / FOLDER


def band(path):
    return gdal.Open(str(path)).ReadAsArray()


def test_ndvi_of_a_folder_takes_five_lines(scratch):
    """The values are those of the preset's own pipeline."""
    folder, config = scene(scratch), written(scratch / "my.yaml", NDVI.format("sentinel2-l2a"))
    mine, = pbtest.run_json("pushbroom", "run", "--json", "-c", config, "-o", scratch / "mine", folder)
    own, = pbtest.run_json("pushbroom", "run", "--json", "-c", "sentinel2-l2a", "-o", scratch / "own", folder, cwd=scratch)
    assert (mine["pipeline"], own["pipeline"]) == ("ndvi", "sentinel2-l2a"), (mine, own)
    got, want = band(mine["products"][0]["path"]), band(own["products"][0]["path"])
    assert np.isfinite(got).any() and np.isnan(got).any() and np.array_equal(got, want, equal_nan=True)


def test_keys_beside_the_name_override(scratch):
    config = written(scratch / "my.yaml", NDVI.format("\n      {preset: sentinel2-l2a, nodata: 7, files: {N: mine.tif, RE1: B05.tif}, complete: {expire: 3m}}"))
    text = checked(config)["effective"]
    for line in ("nodata: 7", "mine.tif", "B05.tif", "B04", "expire: 3m", "all: false", "band: SCL"):
        assert line in text, (line, text)
    assert "preset: sentinel2-l2a" not in text and "_B08_10m" not in text, text
    loose = written(scratch / "loose.yaml", NDVI.format("{preset: sentinel2-l2a, group: '(?<scene>T\\d\\d[A-Z]{3}_\\d{8})_.*'}"))
    text = checked(loose)["effective"]
    assert "group:" in text and "scene: " not in text, "another way to find scenes takes the place of the preset's"


def test_own_presets_are_found_first(scratch):
    own = scratch / "presets"
    written(own / "sentinel2-l2a.yaml", (SAMPLES / "sentinel2-l2a.yaml").read_text().replace("# ", "# Mine: ", 1).replace("nodata: 0 ", "nodata: 9 "))
    written(own / "mine.yaml", NDVI.format("{preset: sentinel2-l2a, grid: N}").replace("ndvi:", "mine:", 1))
    listed = pbtest.run("pushbroom", "new", env={"PUSHBROOM_PRESETS": str(own)}).stdout
    assert "Mine: Sentinel-2 L2A" in listed and "\nmine " in listed and "\nlandsat-c2-l2 " in listed, listed
    text = checked("mine", PUSHBROOM_PRESETS=own)["effective"]
    assert "nodata: 9" in text and "grid: N" in text, "a preset may be made of another one"


def test_new_prints_every_preset_as_it_is(scratch):
    listed = pbtest.run_json("pushbroom", "new", "--json")
    names = {p.stem for p in SAMPLES.glob("*.yaml")}
    assert {entry["name"] for entry in listed} == names
    for entry in listed:
        assert 10 < len(entry["about"]) <= 85 and entry["about"][0].isupper() and not entry["about"].endswith("."), entry
        text = pbtest.run("pushbroom", "new", entry["name"]).stdout
        assert text == (SAMPLES / f"{entry['name']}.yaml").read_text()
        assert f"  {entry['name']}:\n" in text, "the pipeline has the preset's name"
    lines = pbtest.run("pushbroom", "new").stdout.split("\n\n")[0].splitlines()
    assert len(lines) == len(names) and max(map(len, lines)) <= 110, lines


def test_every_preset_is_an_input(scratch):
    for name in sorted(p.stem for p in SAMPLES.glob("*.yaml")):
        config = written(scratch / "one.yaml", f"pipelines: {{one: {{input: {name}, products: [cog]}}}}\n")
        own, mine = checked(SAMPLES / f"{name}.yaml")["effective"], checked(config)["effective"]
        section = lambda text, pipeline: text.split(f"\n  {pipeline}:\n")[1].split("    input:\n")[1].split("    output:\n")[0]
        presets = pbtest.BIN.parent.resolve() / "share/pushbroom/presets"
        paths = lambda text: functools.reduce(lambda t, folder: t.replace(f"{folder}/", ""), (presets, presets.resolve(), SAMPLES), text)
        assert paths(section(mine, "one")) == paths(section(own, name)), name


def test_unknown_names_get_the_nearest_and_the_list(scratch):
    for done in (pbtest.run("pushbroom", "run", "-c", "sentinel2-l2", "-o", scratch, scratch, code=2, cwd=scratch),
                 pbtest.run("pushbroom", "new", "sentinel2-l2", code=2)):
        assert "did you mean 'sentinel2-l2a'? Presets: burn-severity, " in done.stderr, done.stderr
    (file, line, text), = mistakes(written(scratch / "my.yaml", NDVI.format("sentinel2-l2")))
    assert (file, line) == ("my.yaml", 3) and "there is no preset 'sentinel2-l2'; did you mean 'sentinel2-l2a'?" in text, text
    done = pbtest.run("pushbroom", "check-config", "./sentinel2-l2a", code=2, cwd=scratch)
    assert "cannot open it" in done.stderr, "a path with a slash is a path"
    written(scratch / "sentinel2-l2a", "pipelines: {here: {products: [cog]}}\n")
    assert "\n  here:\n" in pbtest.run("pushbroom", "check-config", "sentinel2-l2a", cwd=scratch).stdout, "a file is a file"


def test_mistakes_in_a_preset_name_its_file(scratch):
    own = scratch / "presets"
    written(own / "a.yaml", "pipelines:\n  a:\n    input:\n      scale: big\n      nodata: 0\n    products: [cog]\n")
    written(own / "b.yaml", "pipelines:\n  c: {products: [cog]}\n")
    written(own / "d.yaml", "pipelines: {d: {input: d, products: [cog]}}\n")
    written(own / "e.yaml", "pipelines: {e: [\n")
    found = lambda name: mistakes(written(scratch / "my.yaml", f"pipelines:\n  x: {{input: {name}, products: [cog]}}\n"), PUSHBROOM_PRESETS=own)
    assert [(f, n, "input.scale: 'big'" in t) for f, n, t in found("a")] == [("a.yaml", 4, True)], found("a")
    assert [(f, "it needs a pipeline 'b'" in t) for f, _, t in found("b")] == [("b.yaml", True)], found("b")
    assert ["perhaps of itself" in t for _, _, t in found("d")] == [True], found("d")
    assert [f for f, _, _ in found("e")] == ["e.yaml"], found("e")
    (file, line, text), = found("[1]")
    assert (file, line) == ("my.yaml", 2) and "a list" in text, text


def test_paths_of_a_preset_begin_at_its_file(scratch):
    own = scratch / "presets"
    written(own / "dem.yaml", "pipelines: {dem: {input: {sources: {D: {file: d.tif, bands: {H: 1}}}}, products: [cog]}}\n")
    text = checked(written(scratch / "a/my.yaml", "pipelines: {x: {input: dem, products: [cog]}}\n"), PUSHBROOM_PRESETS=own)["effective"]
    assert f"{own}/d.tif" in text, text


def test_a_mask_takes_the_quality_band_of_its_input(scratch):
    steps = lambda text: text.split("    steps:\n")[1].split("    products:\n")[0]
    make = lambda mask, quality="quality: {band: Q, preset: landsat-c2}": written(
        scratch / "m.yaml", f"pipelines: {{x: {{input: {{bands: {{R: 1, Q: 2}}, {quality}}}, steps: [{mask}], products: [cog: {{bands: [R]}}]}}}}\n")
    for mask in ("mask", "mask: ~", "mask: {}", "mask: {grow: 2}"):
        text = steps(checked(make(mask))["effective"])
        assert "band: Q" in text and "preset: landsat-c2" in text and ("grow: 2" in text) == ("grow" in mask), text
    assert "band: R" in steps(checked(make("mask: {band: R, drop: [0]}"))["effective"])
    assert any("band" in text for _, _, text in mistakes(make("mask", "nodata: 0"))), "without one it is a mistake"


PLAIN = "{input: {match: [\"*_X.tif\"]}, products: [statistics: {}]}"
SERVICE = "service: {{inbox: {root}/inbox, work: {root}/work, products: {root}/products, quarantine: {root}/q, state: {root}/state, socket: {root}/s.sock}}\n"


def test_files_of_pipelines_d_join_a_pushbroom_yaml(scratch):
    main = written(scratch / "etc/pushbroom.yaml", f"pipelines:\n  own: {PLAIN.replace('X', 'own')}\n")
    for name in ("b", "a"):
        written(scratch / f"etc/pipelines.d/{name}.yaml", f"pipelines:\n  {name}2: {PLAIN.replace('X', name)}\n  {name}1: {PLAIN.replace('X', name)}\n")
    written(scratch / "etc/pipelines.d/empty.yaml", "# nothing yet\n")
    written(scratch / "etc/pipelines.d/.hidden.yaml", "nonsense")
    written(scratch / "etc/pipelines.d/note.txt", "nonsense")
    pipelines = checked(main)["effective"].split("\npipelines:\n")[1].splitlines()
    order = [line.strip(" :") for line in pipelines if line[2] != " "]
    assert order == ["own", "a2", "a1", "b2", "b1"], order
    with_name = written(scratch / "etc/other.yaml", main.read_text())
    assert "\n  a1:" not in checked(with_name)["effective"], "only a pushbroom.yaml has a pipelines.d"
    done = pbtest.run("pushbroom", "run", "--dry-run", "--json", "-c", "pushbroom.yaml", "-o", scratch, scene_file(scratch / "x_b.tif"), cwd=scratch / "etc")
    assert json.loads(done.stdout)["pipeline"] == "b2", done.stdout
    for name in ("inbox", "work", "products", "q", "state"):
        (scratch / name).mkdir()
    service = written(scratch / "etc/pushbroom.yaml", SERVICE.format(root=scratch) + main.read_text())
    assert "5 pipelines" in pbtest.run("pushbroomd", "--check", "--config", service).stdout
    written(main, "compute: {tile: 512}\n")
    assert "\n  a1:" in checked(main)["effective"], "the main file needs no pipelines of its own"


def scene_file(path):
    image = gdal.GetDriverByName("GTiff").Create(str(path), 32, 32, 1)
    image.GetRasterBand(1).Fill(3)
    return path


def test_mistakes_of_pipelines_d_name_their_file(scratch):
    main = written(scratch / "pushbroom.yaml", f"pipelines:\n  a: {PLAIN}\n")
    part = scratch / "pipelines.d/x.yaml"
    written(part, f"pipelines:\n  b: {PLAIN}\n  a: {PLAIN}\n")
    (file, line, text), = mistakes(main)
    assert (file, line) == ("x.yaml", 3) and f"a pipeline 'a' is in {main}:2 already" in text, text
    written(part, "pipelines:\n  b:\n    input: {scale: x}\n    products: [cog]\nservice: {}\n")
    assert [(f, n) for f, n, _ in mistakes(main)] == [("x.yaml", 3), ("x.yaml", 5)], mistakes(main)
    written(part, "- a\n")
    (file, line, text), = mistakes(main)
    assert (file, line) == ("x.yaml", 1) and "is a map 'pipelines'" in text, text
    written(part, "pipelines: {b: {input: {match: [\"*.tif\"]}, products: [cog]}}\n")
    written(scratch / "pipelines.d/y.yaml", "pipelines:\n  c: {input: {match: [\"s*.tif\"]}, products: [cog]}\n")
    warning, = checked(main)["warnings"]
    assert warning["file"] == f"{scratch}/pipelines.d/y.yaml" and warning["line"] == 2 and "no file reaches pipeline 'c'" in warning["message"], warning
    written(scratch / "pipelines.d/y.yaml", "a: b\n\fpreset /x\n")
    assert [f for f, _, _ in mistakes(main)] == ["y.yaml"], "a form feed takes no file apart"


def test_a_service_reads_pipelines_d_again(scratch):
    with Daemon(fake=False, pipeline="plain") as d:
        d.change("*.tif", "*_plain.tif")
        d.config = d.config.rename(d.root / "pushbroom.yaml")
        d.start()
        written(d.root / "pipelines.d/more.yaml", f"pipelines: {{more: {PLAIN.replace('X', 'more')}}}\n")
        n = d.log_text().count("is in use")
        d.process.send_signal(signal.SIGHUP)
        d.wait_for(lambda: d.log_text().count("is in use") > n)
        shutil.move(scene_file(scratch / "image.tif"), d.root / "inbox/one_more.tif")
        assert d.wait_job("one_more.tif", "successful")["pipeline"] == "more"


if __name__ == "__main__":
    pbtest.main()
