# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""The test's side of fault_shim.c: a control file that makes calls of the service and its workers fail, wait or hang, or
kills them there."""
import mmap
import os
import pathlib
import struct

CALLS = ["", "malloc", "open", "read", "pread", "write", "pwrite", "fsync", "rename", "mkdir", "clone", "mmap", "accept", "unlink",
         "link", "change"]  # change: any call that changes a directory or makes a change durable
ROLES = ["any", "daemon", "worker", "other"]
CALLERS = ["any", "program", "library"]
OFF, FAIL_NTH, FAIL_ALL, FAIL_FROM, DELAY, HANG, KILL_NTH = range(7)
MAGIC, HEADER, RULE, RULES_MAX = 0x70626661, 256, 256, 15
FIELDS = struct.Struct("<IIIIiIQQQ128s")
PLACE = struct.Struct("<iI72s")  # after FIELDS


class Faults:
    """One control file. rule() adds a rule and returns its number; set_mode() changes it while processes run."""

    def __init__(self, path, shim):
        self.path, self.shim = pathlib.Path(path), pathlib.Path(shim)
        size = HEADER + RULE * RULES_MAX
        self.path.write_bytes(struct.pack("<IIq", MAGIC, 0, 0).ljust(size, b"\0"))
        with open(self.path, "r+b") as file:
            self.map = mmap.mmap(file.fileno(), size)

    def environment(self):
        return {"LD_PRELOAD": str(self.shim), "PB_FAULTS": str(self.path)}

    def clear(self):
        struct.pack_into("<I", self.map, 4, 0)
        self.set_clock(0)

    def set_clock(self, offset_s):
        struct.pack_into("<q", self.map, 8, int(offset_s * 1e9))

    def rule(self, call, mode, role="any", caller="any", error=0, delay_ms=0, n=0, path=""):
        number = struct.unpack_from("<I", self.map, 4)[0]
        FIELDS.pack_into(self.map, HEADER + RULE * number, CALLS.index(call), ROLES.index(role), CALLERS.index(caller),
                         mode, error, delay_ms, n, 0, 0, os.fsencode(path))
        PLACE.pack_into(self.map, HEADER + RULE * number + FIELDS.size, 0, 0, b"")
        struct.pack_into("<I", self.map, 4, number + 1)
        return number

    def set_mode(self, number, mode):
        struct.pack_into("<I", self.map, HEADER + RULE * number + 12, mode)

    def counts(self, number):
        """How many calls matched the rule, and in how many of them it acted."""
        return struct.unpack_from("<QQ", self.map, HEADER + RULE * number + 32)

    def place(self, number):
        """The process that reached the call of KILL_NTH (0 before), the call, and the end of its path."""
        pid, call, path = PLACE.unpack_from(self.map, HEADER + RULE * number + FIELDS.size)
        return pid, CALLS[call], os.fsdecode(path.split(b"\0")[0])
