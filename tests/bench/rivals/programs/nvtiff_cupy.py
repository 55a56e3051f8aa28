#!/usr/bin/env python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Results of NVIDIA's libraries for a scene that stays on the GPU: nvTIFF decodes a TIFF of 4 x UInt16, CuPy computes NDVI, five overviews and the
float predictor, nvCOMP deflates blocks of 512 x 512, and one copy brings the blocks back, which are written as a tiled TIFF with overviews. The libraries are
loaded where they are installed (pip install cupy-cuda13x nvidia-nvtiff-cu13 nvidia-libnvcomp-cu13==5.*), never shipped.

    nvtiff_cupy.py SCENE.tif OUT.tif [TURNS [ALGORITHM]]

Prints a line of JSON: milliseconds of each stage, medians of the turns; {"absent": why} where a library is missing. ALGORITHM is nvCOMP's, 0 to 5.
The COG lacks the order of the directories, GDAL's marks around blocks, and the CRS."""
import ctypes
import hashlib
import json
import os
import pathlib
import statistics
import struct
import sys
import time
import zlib

BLOCK, BLOCK_BYTES = 512, 512 * 512 * 4
KERNELS = r"""
extern "C" __global__ void ndvi(const ushort4 *scene, float *out, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        ushort4 p = scene[i];
        float red = p.z, nir = p.w;
        out[i] = red + nir != 0 ? (nir - red) / (nir + red) : __int_as_float(0x7fc00000);
    }
}
extern "C" __global__ void halve(const float *in, int w, int h, float *out, int ow, int oh) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x >= ow) return;
    float sum = 0; int n = 0;
    for (int dy = 0; dy < 2; dy++)
        for (int dx = 0; dx < 2; dx++)
            if (2 * x + dx < w && 2 * y + dy < h) {
                float v = in[(long)(2 * y + dy) * w + 2 * x + dx];
                if (v == v) { sum += v; n++; }
            }
    out[(long)y * ow + x] = n ? sum / n : __int_as_float(0x7fc00000);
}
/* A block of threads a row of a tile: four planes of bytes, the highest first, each byte less the one before. */
extern "C" __global__ void predict(const float *in, int w, int h, unsigned char *out, int across) {
    __shared__ unsigned char row[2048];
    int tile = blockIdx.y, y = blockIdx.x, ty = tile / across * 512 + y, tx = tile % across * 512;
    for (int x = threadIdx.x; x < 512; x += blockDim.x) {
        unsigned v = ty < h && tx + x < w ? __float_as_uint(in[(long)ty * w + tx + x]) : 0x7fc00000u;
        for (int b = 0; b < 4; b++) row[b * 512 + x] = v >> (24 - 8 * b);
    }
    __syncthreads();
    unsigned char *to = out + ((long)tile * 512 + y) * 2048;
    for (int k = threadIdx.x; k < 2048; k += blockDim.x) to[k] = row[k] - (k ? row[k - 1] : 0);
}
extern "C" __global__ void adler(const unsigned char *in, unsigned n, unsigned *out) {
    __shared__ unsigned long long sums[2];
    if (threadIdx.x < 2) sums[threadIdx.x] = 0;
    __syncthreads();
    const unsigned char *p = in + (long)blockIdx.x * n;
    unsigned long long a = 0, b = 0;
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x) { a += p[i]; b += (unsigned long long)(n - i) * p[i]; }
    atomicAdd(&sums[0], a); atomicAdd(&sums[1], b);
    __syncthreads();
    if (threadIdx.x == 0) out[blockIdx.x] = (unsigned)((sums[1] + n) % 65521) << 16 | (unsigned)((sums[0] + 1) % 65521);
}
/* zlib's header, the deflate stream, Adler-32: one after the other. */
extern "C" __global__ void gather(const unsigned char *in, long stride, const unsigned long long *bytes, const long long *at, const unsigned *adler, unsigned char *out) {
    const unsigned char *p = in + (long)blockIdx.x * stride;
    unsigned char *to = out + at[blockIdx.x];
    unsigned long long n = bytes[blockIdx.x];
    for (unsigned long long i = threadIdx.x; i < n; i += blockDim.x) to[2 + i] = p[i];
    if (threadIdx.x == 0) {
        unsigned a = adler[blockIdx.x];
        to[0] = 0x78; to[1] = 0x01;
        for (int b = 0; b < 4; b++) to[2 + n + b] = a >> (24 - 8 * b);
    }
}
"""


def absent(why):
    print(json.dumps({"absent": why}))
    sys.exit(0)


def library(pattern):
    for folder in sys.path:
        for found in sorted(pathlib.Path(folder or ".").glob(f"nvidia/{pattern}")):
            return ctypes.CDLL(str(found), mode=ctypes.RTLD_GLOBAL)
    absent(f"there is no nvidia/{pattern} on Python's path")


class Image(ctypes.Structure):
    _fields_ = [("data", ctypes.POINTER(ctypes.c_void_p)), ("pitch", ctypes.POINTER(ctypes.c_size_t)), ("planes", ctypes.c_uint32)]


class Options(ctypes.Structure):
    _fields_ = [("algorithm", ctypes.c_int), ("reserved", ctypes.c_char * 60)]


def must(status, what):
    if status:
        sys.exit(f"{what}: status {status}")


def levels_of(w, h):
    found = [(w, h)]
    while max(found[-1]) > BLOCK:
        found.append(((found[-1][0] + 1) // 2, (found[-1][1] + 1) // 2))
    return found


def tiles_of(size):
    return -(-size[0] // BLOCK), -(-size[1] // BLOCK)


class Rival:
    def __init__(self, scene, algorithm):
        try:
            import cupy
            import numpy
            import tifffile
        except ImportError as error:
            absent(str(error))
        self.cp, self.np, self.scene = cupy, numpy, str(scene)
        self.nvcomp, self.nvtiff = library("libnvcomp/lib64/libnvcomp.so.5"), library("nvtiff/lib/libnvtiff.so.0")
        with tifffile.TiffFile(scene) as file:
            page = file.pages[0]
            self.size, self.first = (page.imagewidth, page.imagelength), (page.dataoffsets[0], page.databytecounts[0])
        self.levels = levels_of(*self.size)
        self.tiles = [tiles_of(size) for size in self.levels]
        self.n = sum(a * d for a, d in self.tiles)
        self.options = Options(algorithm, b"")
        self.make_memory()

    def make_memory(self):
        """All of it before the first turn, and the kernels."""
        cp, n = self.cp, self.n
        self.kernel = {name: cp.RawKernel(KERNELS, name) for name in ("ndvi", "halve", "predict", "adler", "gather")}
        self.pixels = cp.empty((self.size[1], self.size[0], 4), cp.uint16)
        self.planes = [cp.empty((h, w), cp.float32) for w, h in self.levels]
        self.raw, self.adlers = cp.empty(n * BLOCK_BYTES, cp.uint8), cp.empty(n, cp.uint32)
        most, temp = ctypes.c_size_t(), ctypes.c_size_t()
        must(self.nvcomp.nvcompBatchedDeflateCompressGetMaxOutputChunkSize(ctypes.c_size_t(BLOCK_BYTES), self.options, ctypes.byref(most)), "nvCOMP")
        must(self.nvcomp.nvcompBatchedDeflateCompressGetTempSizeAsync(ctypes.c_size_t(n), ctypes.c_size_t(BLOCK_BYTES), self.options, ctypes.byref(temp),
                                                                      ctypes.c_size_t(n * BLOCK_BYTES)), "nvCOMP")
        self.stride = (most.value + 15) // 16 * 16
        self.temp, self.packed = cp.empty(max(1, temp.value), cp.uint8), cp.empty(n * self.stride, cp.uint8)
        self.ins = cp.asarray(self.raw.data.ptr + cp.arange(n, dtype=cp.uint64) * BLOCK_BYTES)
        self.outs = cp.asarray(self.packed.data.ptr + cp.arange(n, dtype=cp.uint64) * self.stride)
        self.in_bytes, self.out_bytes, self.status = cp.full(n, BLOCK_BYTES, cp.uint64), cp.zeros(n, cp.uint64), cp.zeros(n, cp.int32)
        self.all = cp.empty(n * BLOCK_BYTES, cp.uint8)
        self.host = self.np.frombuffer(cp.cuda.alloc_pinned_memory(n * BLOCK_BYTES), self.np.uint8, n * BLOCK_BYTES)
        self.decoder, self.params = ctypes.c_void_p(), ctypes.c_void_p()
        must(self.nvtiff.nvtiffDecoderCreateSimple(ctypes.byref(self.decoder), None), "nvTIFF")
        must(self.nvtiff.nvtiffDecodeParamsCreate(ctypes.byref(self.params)), "nvTIFF")

    def decode(self):
        stream = ctypes.c_void_p()
        must(self.nvtiff.nvtiffStreamOpenFromFile(self.scene.encode(), ctypes.byref(stream)), "nvTIFF: the file")
        opened = time.monotonic()
        data, pitch = ctypes.c_void_p(self.pixels.data.ptr), ctypes.c_size_t(self.size[0] * 8)
        image = Image(ctypes.pointer(data), ctypes.pointer(pitch), 1)
        must(self.nvtiff.nvtiffDecode(stream, self.decoder, self.params, ctypes.byref(image), None), "nvTIFF: decode")
        self.cp.cuda.Device().synchronize()
        must(self.nvtiff.nvtiffStreamClose(stream), "nvTIFF")
        return opened

    def compute(self):
        w, h = self.size
        self.kernel["ndvi"]((2048,), (256,), (self.pixels, self.planes[0], self.np.int32(w * h)))
        at = 0
        for i, (w, h) in enumerate(self.levels):
            if i > 0:
                before = self.levels[i - 1]
                self.kernel["halve"]((-(-w // 256), h), (256,), (self.planes[i - 1], *map(self.np.int32, before), self.planes[i], *map(self.np.int32, (w, h))))
            across, down = self.tiles[i]
            self.kernel["predict"]((512, across * down), (256,), (self.planes[i], *map(self.np.int32, (w, h)), self.raw[at * BLOCK_BYTES:], self.np.int32(across)))
            at += across * down
        self.cp.cuda.Device().synchronize()

    def encode(self):
        cp, pointer = self.cp, lambda a: ctypes.c_void_p(a.data.ptr)
        must(self.nvcomp.nvcompBatchedDeflateCompressAsync(pointer(self.ins), pointer(self.in_bytes), ctypes.c_size_t(BLOCK_BYTES), ctypes.c_size_t(self.n), pointer(self.temp),
                                                           ctypes.c_size_t(self.temp.nbytes), pointer(self.outs), pointer(self.out_bytes), self.options, pointer(self.status), None), "nvCOMP")
        self.kernel["adler"]((self.n,), (1024,), (self.raw, self.np.uint32(BLOCK_BYTES), self.adlers))
        ends = cp.cumsum(self.out_bytes.astype(cp.int64) + 6)
        starts = cp.concatenate([cp.zeros(1, cp.int64), ends[:-1]])
        self.kernel["gather"]((self.n,), (1024,), (self.packed, self.np.int64(self.stride), self.out_bytes, starts, self.adlers, self.all))
        if int(cp.abs(self.status).max()) != 0:
            sys.exit("nvCOMP refuses a block")
        self.at = cp.asnumpy(cp.concatenate([starts, ends[-1:]]))
        return int(self.at[-1])

    def directories(self):
        """All of the file before the blocks, whose offsets are in it."""
        blocks = struct.calcsize("<2sHI") + sum(2 + 13 * 12 + 4 + 8 * a * d for a, d in self.tiles)
        head, begun = struct.pack("<2sHI", b"II", 42, 8), 0
        for i, ((w, h), (a, d)) in enumerate(zip(self.levels, self.tiles)):
            lists = len(head) + 2 + 13 * 12 + 4
            offsets, counts = self.at[begun:begun + a * d] + blocks, self.np.diff(self.at[begun:begun + a * d + 1])
            one = a * d == 1
            tags = [(254, 4, 1, int(i > 0)), (256, 4, 1, w), (257, 4, 1, h), (258, 3, 1, 32), (259, 3, 1, 8), (262, 3, 1, 1), (277, 3, 1, 1), (317, 3, 1, 3), (322, 4, 1, BLOCK), (323, 4, 1, BLOCK),
                    (324, 4, a * d, int(offsets[0]) if one else lists), (325, 4, a * d, int(counts[0]) if one else lists + 4 * a * d), (339, 3, 1, 3)]
            following = lists + 8 * a * d if i + 1 < len(self.levels) else 0
            head += struct.pack("<H", len(tags)) + b"".join(struct.pack("<HHII", *tag) for tag in tags) + struct.pack("<I", following)
            head += offsets.astype("<u4").tobytes() + counts.astype("<u4").tobytes()
            begun += a * d
        return head

    def publish(self, out, n):
        """Written, hashed and on the disk, in parallel as far as Python allows it."""
        import threading
        head, body = self.directories(), memoryview(self.host)[:n]
        digest = hashlib.sha256(head)
        hashing = threading.Thread(target=digest.update, args=(body,))
        hashing.start()
        with open(out, "wb", buffering=0) as file:
            file.write(head)
            done = 0
            while done < n:
                done += file.write(body[done:done + (64 << 20)])
            written = time.monotonic()
            os.fsync(file.fileno())
        hashing.join()
        return written

    def turn(self, out):
        t = [time.monotonic()]
        t += [self.decode(), time.monotonic()]
        self.compute()
        t += [time.monotonic()]
        n = self.encode()
        t += [time.monotonic()]
        self.all[:n].get(out=self.host[:n])
        t += [time.monotonic()]
        t += [self.publish(out, n), time.monotonic()]
        names = ("open", "decode", "compute", "encode", "download", "write", "rest")
        took = {name: 1e3 * (b - a) for name, a, b in zip(names, t, t[1:])}
        return {**took, "stream": 1e3 * (t[5] - t[0]), "total": 1e3 * (t[7] - t[0]), "bytes": n}

    def wrong(self, out):
        """Errors in a block of each level, or in the decoded pixels."""
        np, at = self.np, 0
        with open(self.scene, "rb") as file:
            file.seek(self.first[0])
            first = np.frombuffer(zlib.decompress(file.read(self.first[1])), np.uint16).reshape(BLOCK, BLOCK, 4)
        if not np.array_equal(np.cumsum(first, axis=1, dtype=np.uint16), self.cp.asnumpy(self.pixels[:BLOCK, :BLOCK])):
            return "nvTIFF's pixels of the first block"
        data = out.read_bytes()
        for (a, d), plane in zip(self.tiles, self.planes):
            start = len(self.directories()) + int(self.at[at])
            rows = np.frombuffer(zlib.decompress(data[start:start + int(self.at[at + 1] - self.at[at])]), np.uint8).reshape(BLOCK, 4 * BLOCK)
            bytes_ = np.cumsum(rows, axis=1, dtype=np.uint8).reshape(BLOCK, 4, BLOCK)
            found = np.ascontiguousarray(bytes_.transpose(0, 2, 1)).view(">f4")[:, :, 0]
            want = self.cp.asnumpy(plane[:BLOCK, :BLOCK])
            if not np.array_equal(found[:want.shape[0], :want.shape[1]], want, equal_nan=True):
                return f"the first block of the level of {plane.shape[1]} x {plane.shape[0]}"
            at += a * d
        return None


def main():
    scene, out = map(pathlib.Path, sys.argv[1:3])
    turns, algorithm = (int(a) for a in (*sys.argv[3:5], *("5", "1")[len(sys.argv) - 3:]))
    rival = Rival(scene, algorithm)
    took = [rival.turn(out) for _ in range(turns + 1)][1:]  # the first one loads the kernels
    print(json.dumps({"turns": turns, "algorithm": algorithm, "wrong": rival.wrong(out), **{name: round(statistics.median(t[name] for t in took), 1) for name in took[0]}}))


if __name__ == "__main__":
    main()
