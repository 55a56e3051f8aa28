// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// The slots of the benchmark, their content and the check of every result element.
#include "wic/bench/bench.cuh"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <sys/mman.h>

namespace
{
constexpr size_t table_units = 1 << 22;
constexpr unsigned char poison_byte = 0xa5;

size_t stride_of(size_t bytes)
{
    return (bytes + 4095) / 4096 * 4096;
}

unsigned char *allocate(size_t bytes, bool huge)
{
    void *memory;
    if (!huge) {
        CUDA_MUST(cudaHostAlloc(&memory, bytes, cudaHostAllocMapped | cudaHostAllocPortable));
        return static_cast<unsigned char *>(memory);
    }
    memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        bench_fail("out of memory", __LINE__);
    }
    madvise(memory, bytes, MADV_HUGEPAGE); // if it is not to be had, small ones do
    memset(memory, 0, bytes);
    CUDA_MUST(cudaHostRegister(memory, bytes, cudaHostRegisterMapped | cudaHostRegisterPortable));
    return static_cast<unsigned char *>(memory);
}

void release(unsigned char *memory, size_t bytes, bool huge)
{
    if (!huge) {
        cudaFreeHost(memory);
        return;
    }
    cudaHostUnregister(memory);
    munmap(memory, bytes);
}
} // namespace

double bench_seconds()
{
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

bench_pool::bench_pool(size_t bytes, bool huge) : bytes_(bytes), huge_(huge)
{
    in = allocate(bytes, huge);
    out = allocate(bytes, huge);
    red_ = new uint16_t[table_units];
    nir_ = new uint16_t[table_units];
    ndvi_ = new int16_t[table_units];
    uint64_t random = 88172645463325252u;
    for (size_t i = 0; i < table_units; i++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        const bool dark = random % 97 == 0; // both 0: the division by zero
        red_[i] = dark ? 0 : random >> 16;
        nir_[i] = dark ? 0 : random >> 32;
        ndvi_[i] = ndvi_pixel(red_[i], nir_[i]);
    }
}

bench_pool::~bench_pool()
{
    release(in, bytes_, huge_);
    release(out, bytes_, huge_);
    delete[] red_;
    delete[] nir_;
    delete[] ndvi_;
}

// Where in the tables a piece starts.
size_t bench_pool::place(uint32_t slot, size_t piece_index) const
{
    return (slot * size_t{7919} + piece_index * 104729) * 8 % (table_units - piece / in_unit);
}

void bench_pool::lay_out(size_t chunk_bytes, size_t piece_bytes)
{
    chunk = chunk_bytes;
    piece = std::min(piece_bytes, chunk_bytes);
    in_stride = stride_of(chunk);
    out_stride = stride_of(chunk / in_unit * out_unit);
    slots = static_cast<uint32_t>(std::min<size_t>(bytes_ / in_stride, WIC_LINK_RING_MAX));
    for (uint32_t slot = 0; slot < slots; slot++) {
        for (size_t at = 0; at < chunk; at += piece) {
            const size_t half = std::min(piece, chunk - at) / 2;
            const size_t from = place(slot, at / piece);
            memcpy(in + slot * in_stride + at, red_ + from, half);
            memcpy(in + slot * in_stride + at + half, nir_ + from, half);
        }
    }
    poison();
}

void bench_pool::poison()
{
    memset(out, poison_byte, slots * out_stride);
}

uint64_t bench_pool::wrong(uint32_t of_slots) const
{
    uint64_t bad = 0;
    for (uint32_t slot = 0; slot < of_slots; slot++) {
        for (size_t at = 0; at < chunk; at += piece) {
            const size_t units = std::min(piece, chunk - at) / in_unit;
            const int16_t *want = ndvi_ + place(slot, at / piece);
            const int16_t *got = reinterpret_cast<const int16_t *>(out + slot * out_stride +
                                                                   at / in_unit * out_unit);
            if (memcmp(want, got, units * out_unit) != 0) {
                for (size_t i = 0; i < units; i++) {
                    bad += want[i] != got[i];
                }
            }
        }
    }
    return bad;
}
