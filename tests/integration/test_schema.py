#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""The JSON Schema of configurations: it takes all samples, the default and the installed file, and refuses wrong ones as a load
does."""
import json

import pbtest

try:
    import jsonschema
    import yaml
except ImportError:
    jsonschema = None

RIGHT = """
- {}
- pipelines: {a: {input: sentinel2-l2a, steps: [mask, {calibrate: {to: surface, bands: [R]}}], products: [cog, stac: {}]}}
- pipelines: {a: {input: {preset: x, files: {R: B04.tif, N: {match: B08.tif, nth: 2}}}, products: [cog: {type: uint8, nodata: .nan}]}}
- {service: {inbox: /in, settle: 1m 30s, products_mode: 0640, retention: {done: 7d, min_free: 1.5GiB}}, pipelines: {a: {products: [cog]}}}
- {compute: {device: "cuda:1", memory: 1073741824, tile: 512}, limits: {max_pixels: 1e9, job_time: 0}}
- {notify: [{exec: {command: [/bin/true]}}]}
"""
# Each is wrong for one reason, which a load refuses, too.
WRONG = """
- {pipeline: {a: {products: [cog]}}}
- {pipelines: [a]}
- {pipelines: {a: {input: {match: ["*.tif"]}}}}
- {pipelines: {"a/b": {products: [cog]}}}
- {pipelines: {a: {input: [x], products: [cog]}}}
- {pipelines: {a: {input: {nodat: 0}, products: [cog]}}}
- {pipelines: {a: {input: {files: {R: {band: 1}}}, products: [cog]}}}
- {pipelines: {a: {input: {scale: big}, products: [cog]}}}
- {pipelines: {a: {input: {bands: {R: one}}, products: [cog]}}}
- {pipelines: {a: {steps: [ndvi], products: [cog]}}}
- {pipelines: {a: {steps: [convolve: {kernel: gaussian, sise: 5}], products: [cog]}}}
- {pipelines: {a: {steps: [{gate: {keep: B1}, scale: {}}], products: [cog]}}}
- {pipelines: {a: {products: [tiff]}}}
- {pipelines: {a: {products: [cog: {compress: rar}]}}}
- {pipelines: {a: {products: {cog: {}}}}}
- {pipelines: {a: {priority: 101, products: [cog]}}}
- {pipelines: {a: {products: [cog]}}, service: {settle: soon}}
- {pipelines: {a: {products: [cog]}}, service: {inbox: [a]}}
- {pipelines: {a: {products: [cog]}}, compute: {memory: much}}
- {pipelines: {a: {products: [cog]}}, compute: {device: gpu}}
- {pipelines: {a: {products: [cog]}}, limits: {max_bands: 65}}
- {pipelines: {a: {products: [cog]}}, notify: [{mail: {}}]}
"""


def validator():
    if jsonschema is None:
        raise pbtest.Skip("python3-jsonschema or python3-yaml is not installed")
    schema = json.loads(pbtest.run("pushbroom", "check-config", "--schema").stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_schema_takes_every_sample_and_default(_):
    check = validator()
    files = [*(pbtest.SOURCE / "samples").glob("*.yaml"), pbtest.SOURCE / "config/pushbroom.yaml", pbtest.SOURCE / "deploy/pushbroom.yaml"]
    assert len(files) > 25
    for path in files:
        found = [(list(e.absolute_path), e.message[:200]) for e in check.iter_errors(yaml.safe_load(path.read_text()))]
        assert found == [], (path.name, found)
    for number, right in enumerate(yaml.safe_load(RIGHT)):
        assert check.is_valid(right), (number, right, [e.message[:300] for e in check.iter_errors(right)])


def test_schema_takes_effective_configurations(_):
    check = validator()
    for path in (pbtest.SOURCE / "samples").glob("*.yaml"):
        text = pbtest.run("pushbroom", "check-config", path).stdout
        found = [(list(e.absolute_path), e.message[:200]) for e in check.iter_errors(yaml.safe_load(text))]
        assert found == [], (path.name, found)


def test_schema_refuses_what_a_load_refuses(scratch):
    check = validator()
    path = scratch / "wrong.yaml"
    for wrong in yaml.safe_load(WRONG):
        assert not check.is_valid(wrong), wrong
        path.write_text(json.dumps(wrong))
        pbtest.run("pushbroom", "check-config", path, code=2)


def test_schema_describes_every_key(_):
    schema = json.loads(pbtest.run("pushbroom", "check-config", "--schema").stdout)
    pipeline = schema["properties"]["pipelines"]["additionalProperties"]["properties"]
    steps = pipeline["steps"]["items"]["anyOf"][1]["properties"]
    operators = [json.loads(line) for line in pbtest.run("pushbroom", "operators", "--json").stdout.splitlines()]
    assert set(steps) == {o["name"] for o in operators}
    for operator in operators:
        assert {p["name"] for p in operator["parameters"]} == set(steps[operator["name"]]["properties"]), operator["name"]
        assert all(k["description"] for k in steps[operator["name"]]["properties"].values())


if __name__ == "__main__":
    pbtest.main()
