#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: sanitized
"""`exchange` of a pipeline, seen from outside: for any pattern of the tiles, the products are the same bytes; a pattern that
does not fit tiles is refused before the first pixel is read."""
import json
import shutil

import pbtest
from pbtest import run

STEPS = "    steps:\n      - math: {bands: {S: 'B1 + B2'}}\n      - convolve: {bands: [S], kernel: box, size: 5}\n      - stretch: {bands: [S]}\n"
PRODUCTS = "    products:\n      - cog: {bands: [S, B1], compress: deflate}\n      - statistics: {}\n"


def scene(scratch):
    path = scratch / "scene.tif"
    run("make_scene", "--size", "700x600", path)
    return path


def made(scratch, name, exchange):
    """The bytes of every product, by file name."""
    config = scratch / f"{name}.yaml"
    config.write_text("compute: {device: cpu, threads: 4, tile: 64}\npipelines:\n  p:\n    input: {match: ['*']}\n"
                      f"{exchange}{STEPS}{PRODUCTS}")
    run("pushbroom", "run", "--quiet", "-c", config, "-o", scratch / name, scratch / "scene.tif")
    folder = scratch / name / "scene/p"
    return {f.name: f.read_bytes() for f in folder.iterdir() if f.suffix in (".tif", ".json") and not f.name.startswith(".")}


@pbtest.not_about_memory
def test_products_are_the_same_whatever_the_pattern(scratch):
    scene(scratch)
    plain = made(scratch, "plain", "")
    assert len(plain) == 2, plain.keys()
    for name, exchange in {"one": "{pattern: unidirectional}", "wide": "{reach: 1}", "turns": "{pattern: alternating}",
                           "many": "{pattern: multiple, n0: 3, n1: 2}", "data": "{pattern: probabilistic, by_data: 1}"}.items():
        assert made(scratch, name, f"    exchange: {exchange}\n") == plain, name


@pbtest.not_about_threads
def test_pattern_unsuitable_for_tiles_is_refused(scratch):
    path = scene(scratch)
    cases = {"{pattern: probabilistic}": "wants results of tiles before they are sent",
             "{pattern: multiple, n0: 1000, n1: 1}": None,  # the number that fits the window is sent down
             "{pattern: alternating, rounds: 3}": "pattern alternating cannot do that",
             "{reach: 2048}": "pattern unidirectional cannot do that"}
    for exchange, what in cases.items():
        config = scratch / "c.yaml"
        config.write_text("compute: {device: cpu, threads: 2, tile: 64}\npipelines:\n  p:\n    input: {match: ['*']}\n"
                          f"    exchange: {exchange}\n{PRODUCTS.replace('S, ', '')}")
        run("pushbroom", "check-config", config)
        done = run("pushbroom", "run", "--quiet", "-c", config, "-o", scratch / "out", path, code=1 if what else 0)
        assert (what or "") in done.stderr and ("exchange: " in done.stderr or not what), (exchange, done.stderr)
        assert bool(what) != (scratch / "out/scene").exists(), exchange
        for folder in (scratch / "out").glob("scene*"):
            shutil.rmtree(folder)


def test_operators_choose_the_exchange_of_tile_parts(scratch):
    """A composite's and a gate's tiles follow the patterns that these operators choose, also when the file has the same; the
    report has them; another pattern is refused with its place."""
    path = scene(scratch)
    run("make_scene", "--size", "700x600", "--bands", "2", "--seed", "5", scratch / "later.tif")
    other = "{later: {file: later.tif, bands: {R_2: 1, N_2: 2}}}"
    composite = "      - composite: {method: latest-clear, bands: [R, N], of: [_1, _2]}\n"
    gate = "      - gate: {keep: 'B4 > 0.2'}\n"
    cases = {"composite": (composite, {"of": "parts", "pattern": "multiple", "arguments": {"n0": 2, "n1": 1}}),
             "gate": (gate, {"of": "parts", "pattern": "probabilistic", "arguments": {"n0": 1, "n1": 1, "by_data": 1, "shuffled": 0}}),
             "both": (composite + gate, {"of": "parts", "pattern": "probabilistic",
                                         "arguments": {"n0": 1, "n1": 1, "by_data": 1, "shuffled": 0}})}
    for name, (steps, wanted) in cases.items():
        products = []
        as_said = ", ".join(f"{key}: {value}" for key, value in wanted["arguments"].items())
        for exchange in ("", f"    exchange: {{pattern: {wanted['pattern']}, {as_said}}}\n"):
            config = scratch / f"{name}.yaml"
            config.write_text("compute: {device: cpu, threads: 3, tile: 64}\npipelines:\n  p:\n"
                              f"    input: {{match: ['*'], bands: {{R_1: 1, N_1: 2, B3: 3, B4: 4}}, sources: {other}}}\n"
                              f"{exchange}    steps:\n{steps}    products:\n      - cog: {{bands: [{'R_1' if name == 'gate' else 'R'}]}}\n")
            done = run("pushbroom", "run", "--json", "-c", config, "-o", scratch / name, path)
            report = json.loads(done.stdout.splitlines()[-1])["report"]
            assert report["exchanges"] == [wanted], (name, report["exchanges"])
            products.append((scratch / name / "scene/p/scene.tif").read_bytes())
            shutil.rmtree(scratch / name)
        assert products[0] == products[1], name
        config.write_text(config.read_text().replace(f"pattern: {wanted['pattern']}, {as_said}", "pattern: alternating"))
        line = 1 + config.read_text().splitlines().index("    exchange: {pattern: alternating}")
        done = run("pushbroom", "check-config", config, code=2)
        assert f":{line}:15: exchange: the step '" in done.stderr and f"needs the pattern '{wanted['pattern']}'" in done.stderr, done.stderr
    (scratch / "t.yaml").write_text("pipelines:\n  p:\n    input: {match: ['*']}\n    steps:\n      - gate: {keep: 'B4 > 0.2'}\n"
                                    "    products: [cog: {bands: [B1]}]\n")
    done = run("pushbroom", "run", "-c", scratch / "t.yaml", "-o", scratch / "t", path)
    assert "  exchange   parts by probabilistic\n" in done.stdout, done.stdout


@pbtest.not_about_threads
def test_patterns_say_which_operators_choose_them(scratch):
    listed = {entry["name"]: entry["chosen_by"] for entry in pbtest.run_json("pushbroom", "patterns", "--json")}
    assert listed == {"unidirectional": [], "alternating": [{"operator": "classify", "of": "rounds"}],
                      "multiple": [{"operator": "composite", "of": "parts"}],
                      "probabilistic": [{"operator": "gate", "of": "parts"}]}, listed
    assert "The operator 'gate' chooses it for the parts of each tile.\n" in run("pushbroom", "patterns", "probabilistic").stdout


if __name__ == "__main__":
    pbtest.main()
