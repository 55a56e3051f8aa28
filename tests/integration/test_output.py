#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""output.path and output.name with fields of the scene's own metadata: `pushbroom run` with its worker, whose confined child
alone reads metadata."""
import json
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from pbtest import BIN, main, run  # noqa: E402

METADATA = pathlib.Path(__file__).parent.parent / "data/metadata"


def config(scratch, output, steps=""):
    path = scratch / "c.yaml"
    path.write_text(f"""compute: {{device: cpu}}
pipelines:
  p:
    input: {{match: ["*.tif"], bands: {{B: 1, G: 2, R: 3, N: 4}}, metadata: "{{scene}}_MTL.txt"}}
    output: {output}
    products: [cog: {{bands: [R], type: uint16, nodata: 0}}, stac: {{}}]
""")
    return path


def scene(scratch, name, seed):
    path = scratch / f"{name}.tif"
    path.parent.mkdir(parents=True, exist_ok=True)
    run("make_scene", "--size", "300x300", "--seed", str(seed), path)
    shutil.copy(mtl(), path.with_name(f"{path.stem}_MTL.txt"))
    return path


def mtl():
    found = sorted(METADATA.rglob("LC0*_L2SP*_MTL.txt"))
    assert found, METADATA
    return found[0]


def compute(scratch, path, *more, code=0):
    done = subprocess.run([str(BIN / "pushbroom"), "run", "--json", "-c", str(scratch / "c.yaml"), "-o", str(scratch / "out"), *more, str(path)],
                          capture_output=True, text=True)
    assert done.returncode == code, done.stdout + done.stderr
    return json.loads(done.stdout)


PATH = '{path: "{sensor}/{datetime:%Y/%m/%d}/{scene}/{pipeline}", name: "{scene}_{datetime:%Y%m%d}_{product}"}'


def expected(scratch):
    import re
    text = mtl().read_text()
    date = re.search(r"DATE_ACQUIRED = (\S+)", text).group(1)
    sensor = re.search(r'SPACECRAFT_ID = "LANDSAT_(\d)"', text).group(1)
    return f"landsat-{sensor}", date


def test_products_go_where_the_metadata_say(scratch):
    config(scratch, PATH)
    sensor, date = expected(scratch)
    place = scratch / "out" / sensor / date.replace("-", "/") / "x" / "p"
    result = compute(scratch, scene(scratch, "x", 1))
    assert result["directory"] == str(place), result
    day = date.replace("-", "")
    assert sorted(p.name for p in place.iterdir()) == [".pushbroom.json", f"x_{day}_cog.tif", f"x_{day}_stac.json"]
    item = json.loads((place / f"x_{day}_stac.json").read_text())
    assert item["id"] == ".".join([sensor, *date.split("-"), "x", "p"]), item["id"]
    compute(scratch, scratch / "x.tif")  # its own products are replaced
    other = scene(scratch, "other/x", 2)
    refused = compute(scratch, other, code=1)
    assert refused["error"]["code"] == "output.exists", refused
    second = compute(scratch, other, "--existing", "version")
    assert second["directory"] == str(place.parent.parent / "x~2/p"), second
    item = json.loads((place.parent.parent / f"x~2/p/x_{day}_stac.json").read_text())
    assert item["id"].endswith(".x~2.p"), item["id"]
    assert not [p for p in (scratch / "out").iterdir() if p.name.startswith(".")]


def test_the_last_component_may_be_the_scenes(scratch):
    config(scratch, '{path: "{pipeline}/{datetime:%Y%m%d}_{scene}"}')
    sensor, date = expected(scratch)
    result = compute(scratch, scene(scratch, "x", 1))
    place = scratch / "out/p" / f"{date.replace('-', '')}_x"
    assert result["directory"] == str(place), result
    assert sorted(p.name for p in place.iterdir()) == [".pushbroom.json", "x.stac.json", "x.tif"]
    assert compute(scratch, scratch / "x.tif")["directory"] == str(place)


def test_field_missing_in_metadata_is_a_clean_error(scratch):
    config(scratch, PATH)
    path = scene(scratch, "x", 1)
    text = (scratch / "c.yaml").read_text()
    (scratch / "c.yaml").write_text(text.replace(', metadata: "{scene}_MTL.txt"', ""))
    result = compute(scratch, path, code=1)
    assert result["error"]["code"] == "output.path" and "{" in result["error"]["message"], result
    assert not list((scratch / "out").iterdir())


if __name__ == "__main__":
    main()
