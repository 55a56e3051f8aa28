# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Checksums of data in the forms in which pushbroom writes them. BLAKE3 is by b3sum(1), another implementation than
that of the programs."""
import hashlib
import pathlib
import subprocess

MULTIHASH = {"1e20": "blake3", "1220": "sha256"}  # beginnings of file:checksum


def digest_of(data, kind="blake3"):
    """Hex digits; kind: as in the manifest."""
    if kind == "sha256":
        return hashlib.sha256(data).hexdigest()
    return subprocess.run(["b3sum"], input=data, stdout=subprocess.PIPE, check=True).stdout.split()[0].decode()


def digest(path, kind="blake3"):
    return digest_of(pathlib.Path(path).read_bytes(), kind)


def checksum(path, kind="blake3"):
    """As in the report of a job."""
    return f"{kind}:{digest(path, kind)}"


def multihash(path, begin="1e20"):
    """As in an item; begin: the two bytes of its kind and length."""
    return begin + digest(path, MULTIHASH[begin])
