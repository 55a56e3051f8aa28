#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Writes lines into a stream of pushbroomd, with libpushbroom-stream:

    with Writer("/run/pushbroom/streams.sock", "swir", "uint16", bands=4, samples=512) as writer:
        writer.write(0, pixels)     # bytes of whole lines: band after band in each line

As a program: stream_writer.py SOCKET STREAM writes 256 lines of a test pattern."""
import array
import ctypes
import os
import sys
import time

TYPES = ("uint8", "uint16", "int16", "uint32", "int32", "float32", "float64")
BYTES = (1, 2, 2, 4, 4, 4, 8)
NO_TIME = -2**63


class Format(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("bands", ctypes.c_uint32), ("samples", ctypes.c_uint32), ("group_lines", ctypes.c_uint32)]


class Options(ctypes.Structure):
    _fields_ = [("socket", ctypes.c_char_p), ("stream", ctypes.c_char_p), ("token", ctypes.c_char_p), ("format", Format),
                ("has_transform", ctypes.c_bool), ("transform", ctypes.c_double * 6), ("epsg", ctypes.c_uint32)]


class Writer:
    def __init__(self, socket, stream, type, bands, samples, group_lines=16, token=None, transform=None, epsg=0,
                 library="libpushbroom-stream.so.0"):
        self.library = ctypes.CDLL(library)
        self.line_bytes = bands * samples * BYTES[TYPES.index(type)]
        self.group_lines = group_lines
        options = Options(socket.encode(), stream.encode(), token.encode() if token else None,
                          Format(TYPES.index(type), bands, samples, group_lines), transform is not None,
                          (ctypes.c_double * 6)(*(transform or ())), epsg)
        error = ctypes.create_string_buffer(512)
        self.writer = ctypes.c_void_p()
        self._check(self.library.pb_stream_open(ctypes.byref(options), error, ctypes.byref(self.writer)), error)

    @staticmethod
    def _check(rc, error=None):
        if rc != 0:
            raise OSError(-rc, error.value.decode() if error is not None else os.strerror(-rc))

    def write(self, line, pixels, times_ns=None, timeout_ms=-1):
        """Writes whole lines, the first of which has the number `line`. times_ns: one for each line."""
        pixels = memoryview(pixels).cast("B")
        count, rest = divmod(len(pixels), self.line_bytes)
        if rest != 0 or (times_ns is not None and len(times_ns) != count):
            raise ValueError(f"{len(pixels)} bytes are not whole lines of {self.line_bytes} bytes, or have another number of times")
        for first in range(0, count, self.group_lines):
            n = min(self.group_lines, count - first)
            data = bytes(pixels[first * self.line_bytes:(first + n) * self.line_bytes])
            times = (ctypes.c_int64 * n)(*times_ns[first:first + n]) if times_ns else None
            self._check(self.library.pb_stream_copy(self.writer, ctypes.c_int64(timeout_ms), ctypes.c_uint64(line + first),
                                                    ctypes.c_uint32(n), data, times))

    def close(self, timeout_ms=60000):
        """Ends the scene, and waits until the service has all lines."""
        writer, self.writer = self.writer, None
        if writer is not None:
            self._check(self.library.pb_stream_close(writer, ctypes.c_int64(timeout_ms)))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: stream_writer.py SOCKET STREAM    (SOCKET: streams.sock of the service)")
    lines, bands, samples = 256, 4, 512
    with Writer(sys.argv[1], sys.argv[2], "uint16", bands, samples,
                library=os.environ.get("PUSHBROOM_STREAM_LIBRARY", "libpushbroom-stream.so.0")) as writer:
        for line in range(lines):
            pixels = array.array("H", (1 + line + 1000 * b + s for b in range(bands) for s in range(samples)))
            writer.write(line, pixels, [time.time_ns()])


if __name__ == "__main__":
    main()
