// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// The slots of the benchmark, their content and the check of every result element.
#include "wic/bench/base/bench.cuh"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <sys/mman.h>

namespace
{
constexpr size_t table_units = 1 << 22;
constexpr unsigned char poison_byte = 0xa5;

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

// Where in the tables a line starts.
size_t bench_pool::place(uint32_t slot, size_t line) const
{
    return (slot * size_t{7919} + line * 104729 + version_[slot] * 1299709) * 8 %
           (table_units - line_units);
}

void bench_pool::lay_out(size_t chunk_bytes)
{
    if (chunk_bytes == 0 || chunk_bytes % line_in != 0 || chunk_bytes > bytes_) {
        bench_fail("a chunk is a multiple of 4 KiB and no longer than the window", __LINE__);
    }
    chunk = chunk_bytes;
    in_stride = chunk;
    out_stride = chunk / in_unit * out_unit;
    slots = static_cast<uint32_t>(std::min<size_t>(bytes_ / in_stride, WIC_LINK_RING_MAX));
    version_.assign(slots, 0);
    for (uint32_t slot = 0; slot < slots; slot++) {
        fill(slot, 0);
    }
}

void bench_pool::fill(uint32_t slot, uint64_t version)
{
    version_[slot] = version;
    unsigned char *to = in + slot * in_stride;
    for (size_t line = 0; line < chunk / line_in; line++, to += line_in) {
        const size_t from = place(slot, line);
        memcpy(to, red_ + from, line_in / 2);
        memcpy(to + line_in / 2, nir_ + from, line_in / 2);
    }
    memset(out + slot * out_stride, poison_byte, out_stride);
}

void bench_pool::poison()
{
    memset(out, poison_byte, slots * out_stride);
}

uint64_t bench_pool::wrong_in(uint32_t slot, const void *results) const
{
    uint64_t bad = 0;
    const int16_t *got = static_cast<const int16_t *>(results ? results : out + slot * out_stride);
    for (size_t line = 0; line < chunk / line_in; line++, got += line_units) {
        const int16_t *want = ndvi_ + place(slot, line);
        if (memcmp(want, got, line_out) != 0) {
            for (size_t i = 0; i < line_units; i++) {
                bad += want[i] != got[i];
            }
        }
    }
    return bad;
}

uint64_t bench_pool::wrong(uint32_t of_slots) const
{
    uint64_t bad = 0;
    for (uint32_t slot = 0; slot < of_slots; slot++) {
        bad += wrong_in(slot);
    }
    return bad;
}
