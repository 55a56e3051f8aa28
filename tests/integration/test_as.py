#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: sanitized
"""`--as`: the plan for a device that is absent, by its maker's figures. The output for a board and for a card is compared word
by word: speeds are marked as estimates, all else is the plan of such a device."""
import json

from pbtest import main, run

ORIN = """jetson-orin  Jetson AGX Orin 64GB (sm_87), not here: by its figures
        gpu     16 multiprocessors at 1300 MHz with 164 KiB of shared memory,
                163 of a block
        memory  64 GB, 204.8 GB/s, shared with the 12 cores of its CPU
        link    none: GPU and CPU share memory, and nothing is copied
        source  NVIDIA Jetson AGX Orin Series data sheet, DS-10662-001
        decode  32 blocks of files at a time, 2 on a multiprocessor; estimated
                1.9 to 3.9 GB/s of pixels, and 3.0 on 12 cores: of a queue that
                both take from, the GPU would take 39 to 56 %
        encode  estimated 10.1 to 19.0 GB/s of results
        limit   decoding, by GPU and cores: estimated 4.9 GB/s of pixels of a
                deflated scene, before storage and checksums
                Estimates scale what an H200 did by multiprocessors x clock; a
                core is taken to be as fast as one there.
        plans   1024 x 1024 px, 2 bands of uint16, index:
                in place, 128 pieces a tile, 32 blocks of 8 + 3 warps, 14336
                bytes shared memory each
"""
L4 = """l4  NVIDIA L4 (sm_89), not here: by its figures
        gpu     58 multiprocessors at 2040 MHz with 100 KiB of shared memory, 99
                of a block
        memory  24 GB, 300.0 GB/s
        link    31.5 GB/s one way
        source  NVIDIA L4 Tensor Core GPU product brief, PB-11316-001; PCIe 4.0
                x16
        decode  58 blocks of files at a time, 1 on a multiprocessor; estimated
                5.5 to 22.0 GB/s of pixels"""
CONFIG = """pipelines:
  v:
    input: {bands: {R: 1, N: 2}}
    steps: [index: {names: [NDVI]}]
    products: [cog: {bands: [NDVI], type: float32}]
"""
OTHER_GRID = """
pipelines:
  p:
    input: {match: ["*.tif"], bands: {R: 3, N: 4}}
    steps:
      - resample: {factor: 0.5, method: average, bands: {X: N, Y: R}}
    products:
      - cog: {bands: [X, Y], type: float32}
"""


def test_a_board_and_a_card_are_described(scratch):
    assert run("pushbroom", "devices", "--as", "jetson-orin").stdout.startswith(ORIN), run("pushbroom", "devices", "--as", "jetson-orin").stdout
    card = run("pushbroom", "devices", "--as=l4").stdout  # its cores are those of this machine
    assert card.startswith(L4) and "22 blocks of 16\n                + 3 warps" in card, card
    told = json.loads(run("pushbroom", "devices", "--as", "jetson-orin", "--json").stdout)
    assert (told["decoded_at_a_time"], told["integrated"], told["cores"], len(told["plans"])) == (32, True, 12, 4), told
    assert abs(told["estimated_bytes_per_s"]["decode_most"] / (46e9 * 16 * 1300 / (132 * 1870)) - 1) < 1e-9, told


def test_names_that_are_unknown_get_the_list(scratch):
    for command in (["devices"], ["run", "--dry-run", "-c", scratch / "c.yaml", "-o", scratch / "o", "x.tif"]):
        (scratch / "c.yaml").write_text(CONFIG)
        told = run("pushbroom", *command[:1], "--as", "jetson-orion", *command[1:], code=2).stderr
        assert "there is no device 'jetson-orion'; did you mean 'jetson-orin'?" in told, told
        assert "known: jetson-orin, jetson-orin-32, jetson-orin-nx, jetson-orin-nano, t4, a100, l4, h100, h200\n" in told, told


def test_a_scene_is_planned_as_on_that_device(scratch):
    scene = scratch / "s.tif"
    run("make_scene", "--size", "1400x1400", "--compress", "DEFLATE", scene)
    (scratch / "c.yaml").write_text(CONFIG)

    def plan(device):
        said = run("pushbroom", "run", "--dry-run", "--as", device, "-c", scratch / "c.yaml", "-o", scratch / "o", scene).stdout
        return {line[2:12].strip(): line[13:] for line in said.splitlines() if line.startswith("  ")}
    board, card = plan("jetson-orin"), plan("h200")
    assert board["as"].startswith("jetson-orin, Jetson AGX Orin 64GB: not here, planned from its figures"), board
    assert board["memory"].endswith("; computed on jetson-orin") and card["memory"].endswith("; computed on h200"), (board, card)
    assert board["threads"].startswith("4 reading, "), board  # a core of its 12 a tile
    assert "estimated" in board["decode"] and "estimated" in card["decode"], (board, card)
    assert not (scratch / "o").exists()
    told = json.loads(run("pushbroom", "run", "--dry-run", "--json", "--as", "t4", "-c", scratch / "c.yaml", "-o", scratch / "o", scene).stdout)
    assert told["plan"]["as"]["device"] == told["plan"]["device"] == "t4" and told["plan"]["as"]["decoded_at_a_time"] == 40, told


def test_share_limits_the_multiprocessors(scratch):
    scene = scratch / "s.tif"
    run("make_scene", "--size", "1400x1400", "--compress", "DEFLATE", scene)

    def plan(compute):
        (scratch / "c.yaml").write_text(f"compute: {{{compute}}}\n" + CONFIG)
        done = run("pushbroom", "run", "--dry-run", "--json", "--as", "h200", "-c", scratch / "c.yaml", "-o", scratch / "o", scene)
        return json.loads(done.stdout)["plan"]["schedule"]
    part, whole = plan("codecs: host, share: 25%"), plan("codecs: host")
    assert part["share"] == "33 of the GPU's 132 multiprocessors" and "share" not in whole, (part, whole)
    text = run("pushbroom", "run", "--dry-run", "--as", "h200", "-c", scratch / "c.yaml", "-o", scratch / "o", scene).stdout
    assert "\n  share " not in text, text
    assert ", 12 blocks of " in part["kernel"] and ", 51 blocks of " in whole["kernel"], (part, whole)
    (scratch / "c.yaml").write_text("compute: {share: 25}\n" + CONFIG)
    told = run("pushbroom", "check-config", scratch / "c.yaml", code=2).stderr
    assert "compute.share: '25' is not a whole percentage; write it as 25%" in told, told


def test_unused_engines_have_reason_and_remedy(scratch):
    scene = scratch / "s.tif"
    run("make_scene", "--size", "1400x1400", "--compress", "DEFLATE", scene)
    (scratch / "c.yaml").write_text("compute: {codecs: host}\n" + CONFIG)
    common = ["pushbroom", "run", "--dry-run", "--as", "h200", "-c", scratch / "c.yaml", "-o", scratch / "o", scene]
    limits = json.loads(run(*common, "--json").stdout)["plan"]["limits"]
    assert limits == [{"engine": "decoding on the GPU", "reason": "compute.codecs is host", "feature": "compute.codecs: host",
                       "kind": "chosen", "remedy": "set compute.codecs to auto"}], limits
    line = "  not used   decoding on the GPU: compute.codecs is host; set compute.codecs to auto\n"
    assert line in run(*common, "-v").stdout and line not in run(*common).stdout, run(*common, "-v").stdout


def test_planes_that_exceed_the_gpu_are_managed(scratch):
    scene = scratch / "s.tif"
    run("make_scene", "--size", "2600x2600", "--compress", "DEFLATE", scene)

    def plan(device, *keys):
        compute = ", ".join(("codecs: device", "memory: 2GiB", "tile: 512", "device_memory: 48MiB", *keys))
        (scratch / "c.yaml").write_text(f"compute: {{{compute}}}\n" + OTHER_GRID)
        done = run("pushbroom", "run", "--dry-run", "--json", "--as", device, "-c", scratch / "c.yaml", "-o", scratch / "o", scene)
        told = json.loads(done.stdout)["plan"]
        return told, told["passes"][-1]["blocks"], told["schedule"]
    told, blocks, words = plan("h200", "buffers: managed")
    assert blocks["on_device"] and blocks["managed"]["bytes"] > 0, blocks
    assert words["buffers"].startswith("managed: 27 MiB of planes, of which the GPU has at most "), words
    assert "planes 27 (managed)" in words["memory"] and told["passes"][-1]["memory"]["planes"] == blocks["managed"]["bytes"], words
    on_device = blocks["managed"]["chunk_bytes"] * (blocks["managed"]["decoding_chunks"] + blocks["managed"]["computing_chunks"])
    assert on_device < 48 << 20 and told["memory_bytes"] > blocks["managed"]["bytes"], blocks
    for device, key, why in (("h200", "buffers: pinned", "set compute.buffers to managed"), ("jetson-orin", "buffers: auto", "set compute.buffers to managed")):
        told, blocks, words = plan(device, key)
        assert not blocks["on_device"] and "managed" not in blocks and "buffers" not in words, blocks
        assert any(why in (limit["remedy"] or "") for limit in told["limits"]), told["limits"]
    told, blocks, _ = plan("jetson-orin", "buffers: managed")
    assert any(limit["engine"] == "planes in managed memory" and "shares its memory with the host" in limit["reason"] for limit in told["limits"]), told["limits"]


def test_it_is_of_plans_alone(scratch):
    (scratch / "c.yaml").write_text(CONFIG)
    common = ["-c", scratch / "c.yaml", "-o", scratch / "o", "x.tif"]
    assert "it needs --dry-run" in run("pushbroom", "run", "--as", "l4", *common, code=2).stderr
    assert "leave --device out" in run("pushbroom", "run", "--dry-run", "--as", "l4", "--device", "cpu", *common, code=2).stderr
    assert "--tune measures" in run("pushbroom", "devices", "--tune", "--as", "l4", code=2).stderr
    assert "wants the name" in run("pushbroom", "devices", "--as", code=2).stderr


if __name__ == "__main__":
    main()
