#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""`exchange` of a pipeline, seen from outside: whatever pattern the tiles follow, the products are the same bytes; a pattern
that does not go with tiles is refused before the first pixel is read."""
import pbtest
from pbtest import run

STEPS = "    steps:\n      - math: {bands: {S: 'B1 + B2'}}\n      - convolve: {bands: [S], kernel: box, size: 5}\n      - stretch: {bands: [S]}\n"
PRODUCTS = "    products:\n      - cog: {bands: [S, B1], compress: deflate}\n      - statistics: {}\n"


def scene(scratch):
    path = scratch / "scene.tif"
    run("make_scene", "--size", "900x700", path)
    return path


def made(scratch, name, exchange):
    """The bytes of every product, by file name."""
    config = scratch / f"{name}.yaml"
    config.write_text("compute: {device: cpu, threads: 4, tile: 64}\npipelines:\n  p:\n    input: {match: ['*']}\n"
                      f"{exchange}{STEPS}{PRODUCTS}")
    run("pushbroom", "run", "--quiet", "-c", config, "-o", scratch / name, scratch / "scene.tif")
    folder = scratch / name / "scene/p"
    return {f.name: f.read_bytes() for f in folder.iterdir() if f.suffix in (".tif", ".json") and not f.name.startswith(".")}


def test_products_are_the_same_whatever_the_pattern(scratch):
    scene(scratch)
    plain = made(scratch, "plain", "")
    assert len(plain) == 2, plain.keys()
    for name, exchange in {"one": "{pattern: unidirectional}", "wide": "{reach: 1}", "turns": "{pattern: alternating}",
                           "many": "{pattern: multiple, n0: 3, n1: 2}", "data": "{pattern: probabilistic, by_data: 1}"}.items():
        assert made(scratch, name, f"    exchange: {exchange}\n") == plain, name


def test_a_pattern_that_does_not_go_with_tiles_is_refused(scratch):
    path = scene(scratch)
    cases = {"{pattern: probabilistic}": "wants results of tiles before they are sent",
             "{pattern: multiple, n0: 1000, n1: 1}": None,  # as many as fit the window go down
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
            pbtest.shutil.rmtree(folder)


if __name__ == "__main__":
    pbtest.main(globals())
