#!/usr/bin/env python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: sanitized
"""Every hostile file is read to its end or refused with a dotted code: in a process of its own, within
100 seconds, below 512 MiB resident, never by a signal. Files made valid on purpose must be accepted."""
import subprocess

import pbtest

PROBE = pbtest.BIN / "raster_probe"
DATA = pbtest.DATA / "hostile"
SECONDS = 100  # for a loaded machine; on an idle one 20 are plenty
RSS_KIB = (4096 if pbtest.SANITIZED else 512) * 1024


# Expected messages for some: the code, and a part of the message.
SAID = {
    "gdal__hugeblocksize.tif": ("input.unsupported", "at most 2147483647 a side are read"),
    "gdal__toomanyblocks.tif": ("input.unsupported", "3600000000 blocks of 1 x 1 pixels; at most 134217728 are read"),
    "gdal__mandrilmini_12bitjpeg.tif": ("input.unsupported", "precision 12"),
    "gdal__ycbcr_14_lzw.tif": ("input.unsupported", "does not decode"),
    "syn__geo_nan_matrix.tif": ("input.georeference", "invertible transform"),
    "syn__hdr_bigtiff_offsize4.tif": ("input.damaged", "its offsets have not 8 bytes"),
    "syn__codec_junk_deflate.tif": ("input.damaged", "not a valid zlib stream"),
}


def wrong(path, line):
    """Error in the probe's result for the file, or None. line: its output."""
    try:
        line = line.decode("utf-8")
    except UnicodeDecodeError:
        return "its message is not UTF-8"
    field = line.split("\t")
    if field[1] == "died":
        return field[2]
    if len(field) != 9 or not line.replace("\t", "").isprintable():
        return f"unclean output: {line!r}"
    _, stage, code, _, rss, _, _, _, message = field
    if int(rss) > RSS_KIB:
        return f"{int(rss) // 1024} MiB resident"
    if stage == "ok":
        return None
    if path.name.startswith("syn__val_"):
        return f"is valid but was refused: {code}: {message}"
    said = SAID.get(path.name, (code, ""))
    if not code.startswith("input.") or not message.isprintable() or code != said[0] or said[1] not in message:
        return f"{stage} with {code}: {message}"
    if "no reason given" in message:
        return f"says so: {message}"
    return None


def test_every_hostile_file_is_read_or_refused(_):
    if not DATA.exists():
        raise pbtest.Skip(f"{DATA} is not there")
    files = sorted(path for path in DATA.iterdir() if path.is_file())
    assert files, DATA
    done = subprocess.run([PROBE, "-m", "-f", str(SECONDS), *files], capture_output=True, check=False)
    lines = done.stdout.split(b"\n")
    if done.returncode != 0 or lines.pop() != b"" or len(lines) != len(files):
        bad = [f"{len(lines)} lines for {len(files)} files, exit status {done.returncode}"]
    else:
        bad = [f"{path.name}: {what}" for path, line in zip(files, lines) if (what := wrong(path, line))]
    assert not bad, "\n".join([*bad, done.stderr[-20000:].decode(errors="replace")])


pbtest.main()
