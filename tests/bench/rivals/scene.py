# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""The scenes that are read: synthetic, deflate with predictor, tiles of 512 x 512; in the page cache, for everyone."""
import subprocess


def make(build, path, width, height, *options):
    """Under another name until it is whole."""
    if not path.exists():
        part = path.with_suffix(".part.tif")
        subprocess.run([build / "bin/make_scene", "--size", f"{width}x{height}", *options, part], check=True)
        part.rename(path)
    return path


def four_bands(o):
    return make(o.build, o.work / f"scene_{o.size}.tif", o.size, o.size)


def of_row(o, row):
    if row.bands == 4:
        return four_bands(o)
    return make(o.build, o.work / f"scene_{o.size}_b{row.bands}.tif", o.size, o.size, "--bands", str(row.bands))


def warm(path):
    with open(path, "rb") as f:
        while f.read(1 << 24):
            pass
