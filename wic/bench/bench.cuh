// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_BENCH_CUH
#define WIC_BENCH_CUH
// Shared by the parts of wic-bench. The workload: NDVI of 16-bit red and near infrared in pinned
// memory to 16-bit NDVI in pinned memory, chunk by chunk; a unit is a pixel, 4 bytes in, 2 out. In
// a slot each piece holds its red, then its infrared pixels (see wic/device/link.h).
#include "wic/device/link.h"

#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <memory>
#include <string>

constexpr uint32_t in_unit = 4, out_unit = 2;

#define CUDA_MUST(call) bench_must((call), #call, __LINE__)

inline void bench_fail(const char *what, int line)
{
    fprintf(stderr, "wic-bench: %s (line %d)\n", what, line);
    exit(1);
}

inline void bench_must(cudaError_t error, const char *what, int line)
{
    if (error) {
        fprintf(stderr, "wic-bench: %s: %s\n", what, cudaGetErrorString(error));
        bench_fail(what, line);
    }
}

double bench_seconds(); // a steady clock

// NDVI * 10000, to nearest even; the same bits on both sides (no contraction, IEEE division).
__host__ __device__ inline int16_t ndvi_pixel(uint16_t red, uint16_t nir)
{
    const float r = red, n = nir, sum = n + r;
    if (!(sum > 0.0f)) {
        return -32768;
    }
    const float scaled = (n - r) / sum * 10000.0f;
#ifdef __CUDA_ARCH__
    return static_cast<int16_t>(__float2int_rn(scaled));
#else
    return static_cast<int16_t>(__builtin_lrintf(scaled));
#endif
}

// The slots, filled from tables of random pixels and their NDVI; slot s starts at its own place in
// the tables.
class bench_pool
{
  public:
    bench_pool(size_t bytes, bool huge); // of input; huge: in huge pages
    ~bench_pool();
    // Lays the pool out as slots of `chunk` bytes in pieces of `piece`; fills them and poisons the
    // output.
    void lay_out(size_t chunk, size_t piece);
    void poison();
    // Number of wrong elements in the first `slots` output slots.
    uint64_t wrong(uint32_t slots) const;

    unsigned char *in, *out;
    size_t in_stride, out_stride, chunk, piece;
    uint32_t slots;

  private:
    size_t place(uint32_t slot, size_t piece_index) const;
    size_t bytes_;
    bool huge_;
    uint16_t *red_, *nir_;
    int16_t *ndvi_;
};

// A way to get chunks through the GPU.
class strategy
{
  public:
    virtual ~strategy() = default;
    virtual double throughput(uint64_t chunks) = 0; // seconds for so many
    virtual void once() = 0;       // one chunk, until its result is visible to the host
    virtual double leave_ms() = 0; // from the last result until the GPU is free; no chunk after it
    virtual uint32_t slots_used(uint64_t chunks) const = 0;
};

enum wait_kind { WAIT_PARKED, WAIT_POLL_HOST, WAIT_POLL_DEVICE, WAIT_POLL_NANOSLEEP };

// Resident kernels. NULL when the plan does not fit on the device.
std::unique_ptr<strategy> make_resident(wait_kind kind, const bench_pool &pool,
                                        const wic_transfer_plan &plan);
const void *resident_kernel(wait_kind kind);
// That kernel between the slots of the pool.
wic_link_options bench_link_options(wait_kind kind, const bench_pool &pool,
                                    const wic_transfer_plan &plan);
std::unique_ptr<strategy> make_streams(const bench_pool &pool);
std::unique_ptr<strategy> make_graph(const bench_pool &pool);

// Time of compute warps that share the multiprocessors with waiting warps, over their time alone.
struct neighbours {
    double fma, memory;
};
// Through channels, device proxy and kernel, by one transport (pull, copy, prefetch, place) or, "",
// by all; true: every element of every tile was right.
bool soak(uint64_t tiles, const std::string &transport);
// The same schedules walked by this thread and by a resident kernel; true: they agreed on each
// chunk.
bool replay();
// Every way that a kernel leaves the GPU, and what happens when it cannot come; true: all as they
// must be. The last one costs the process its device.
bool ways_out();
// An idle kernel that leaves when its host has been silent for `ms`.
void park_for(double ms, const bench_pool &pool, wic_transfer_plan plan);
// False: waiters and compute warps do not fit on a multiprocessor together.
bool measure_neighbours(wait_kind kind, const bench_pool &pool, uint32_t waiting_warps,
                        neighbours *out);
#endif
