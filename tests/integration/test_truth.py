#!/usr/bin/env python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Every file in TRUTH.tsv decodes to the pixels written there (sha256 over the bands one after the
other, in the file's own type), or is refused as unsupported where the type or codec is none of ours.
A file of the list that is not here is named and left out."""
import pbtest

PROBE = pbtest.BIN / "raster_probe"
DATA = pbtest.DATA
TYPES = {"Byte": "uint8", "Int16": "int16", "UInt16": "uint16", "Int32": "int32", "UInt32": "uint32",
         "Float32": "float32", "Float64": "float64"}

LEAST = 100  # files, also of the selection in tests/data
EMPTY = {"odd/gdal_sparse_tiled_contig.tif"}  # not one of its tiles is stored


def truths():
    for line in (DATA / "TRUTH.tsv").read_text().splitlines()[1:]:
        field = line.split("\t")
        path = DATA / "real" / field[0]
        yield path if path.exists() else DATA / "derived" / field[0], field


def wrong(line, field):
    """Error in the probe's line, or None."""
    _, stage, code, _, _, shape, kind, digest, message = line.split("\t")
    if "REFUSED" in field or field[2] not in TYPES:
        wanted = "input.complex" if len(field) > 2 and field[2].startswith(("CInt", "CFloat")) else "input.unsupported"
        return None if code == wanted else f"expected {wanted}, got {stage} {code}"
    if field[0] in EMPTY:
        return None if code == "input.empty" else f"expected input.empty, got {stage} {code}"
    if stage != "ok":
        return f"{stage} {code}: {message}"
    if (shape, kind) != (field[1], TYPES[field[2]]):
        return f"{shape} {kind} instead of {field[1]} {field[2]}"
    return None if digest == field[3] else "other pixels"


def test_every_file_gives_the_listed_pixels(_):
    if not (DATA / "TRUTH.tsv").exists():
        raise pbtest.Skip(f"{DATA / 'TRUTH.tsv'} is not there")
    listed = list(truths())
    wanted = [(path, field) for path, field in listed if path.exists()]
    for path, _ in listed:
        if not path.exists():
            print(f"left out: {path} is not there")
    assert len(wanted) >= LEAST, f"only {len(wanted)} of {len(listed)} files are there"
    lines = pbtest.run("raster_probe", "-s", *(path for path, _ in wanted)).stdout.splitlines()
    assert len(lines) == len(wanted), f"raster_probe ended after {len(lines)} of {len(wanted)} files"
    bad = [f"{path}: {what}" for (path, field), line in zip(wanted, lines) if (what := wrong(line, field))]
    assert not bad, "\n".join(bad)


pbtest.main()
