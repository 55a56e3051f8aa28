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
#include <vector>

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

constexpr uint32_t line_units = 1024; // pixels of a line
constexpr uint32_t line_in = line_units * in_unit, line_out = line_units * out_unit;

// The slots, filled from tables of random pixels and their NDVI. A version is a filling: it decides
// together with the slot where in the tables each line comes from.
class bench_pool
{
  public:
    bench_pool(size_t bytes, bool huge); // of input; huge: in huge pages
    ~bench_pool();
    // Lays the pool out as slots of `chunk` bytes, a multiple of line_in; fills them with version 0
    // and poisons the output.
    void lay_out(size_t chunk);
    void fill(uint32_t slot, uint64_t version); // and poisons its output
    void poison();
    // Number of wrong elements in a slot's results, which are in `out` unless said otherwise.
    uint64_t wrong_in(uint32_t slot, const void *results = nullptr) const;
    uint64_t wrong(uint32_t slots) const; // in the first so many

    unsigned char *in, *out;
    size_t in_stride, out_stride, chunk; // bytes; chunks lie side by side, and so do their results
    uint32_t slots;

  private:
    size_t place(uint32_t slot, size_t line) const;
    size_t bytes_;
    bool huge_;
    uint16_t *red_, *nir_;
    int16_t *ndvi_;
    std::vector<uint64_t> version_; // by slot
};

// A way to get chunks through the GPU. Chunk n, counted from 0, lies in slot n % slots of the pool,
// and so do its results. Its host part runs in these calls, all from one thread.
class strategy
{
  public:
    explicit strategy(uint64_t of_slots) : slots(of_slots)
    {
    }
    virtual ~strategy() = default;
    strategy(const strategy &) = delete;
    strategy &operator=(const strategy &) = delete;

    // All chunks before `end` have arrived, at most `slots` of them not done. Does not wait.
    virtual void submit(uint64_t end) = 0;
    // The host's next step. Returns how many chunks are done: of these all results are visible to
    // the host, and nothing reads their slots any more.
    virtual uint64_t poll() = 0;
    // Milliseconds from the last result until the GPU is free; no chunk after it.
    virtual double leave_ms()
    {
        return 0;
    }
    // Where the results of the slot are.
    virtual const unsigned char *results(const bench_pool &pool, uint32_t slot) const
    {
        return pool.out + slot * pool.out_stride;
    }

    const uint64_t slots;
};

// Resident kernels, by how they wait.
enum wait_kind {
    WAIT_PARKED,
    WAIT_POLL_HOST,
    WAIT_POLL_DEVICE,
    WAIT_POLL_NANOSLEEP,
    WAIT_POLL_NAPS,
    WAIT_POLL_ELECTED,
    WAIT_PIPELINE,
    WAIT_PARKED_WHOLE, // for transports that do not pull
    WAIT_ASLEEP,       // for nothing: it takes the room of WAIT_PARKED
};

const void *resident_kernel(wait_kind kind);
// With one of those or another kernel of a link. NULL when the plan does not fit on the device.
std::unique_ptr<strategy> make_resident(const void *kernel, const bench_pool &pool,
                                        const wic_transfer_plan &plan);
// With a link that was created for it, which it destroys; NULL: there is no room on the device.
std::unique_ptr<strategy> start_resident(wic_link *link, const bench_pool &pool, uint32_t unit);
const void *pipeline_kernel();
// That kernel between the slots of the pool.
wic_link_options bench_link_options(wait_kind kind, const bench_pool &pool,
                                    const wic_transfer_plan &plan);

// Through channels, device proxy and kernel, by one transport (see --help) or, "",
// by all; true: every element of every tile was right.
bool soak(uint64_t tiles, const std::string &transport);
// The same through up to so many lanes of one launch.
bool soak_lanes(uint64_t tiles, uint32_t lanes);
// How lanes share a kernel, and what one costs.
bool share_lanes_fairly(double seconds);
// The same schedules walked by this thread and by a resident kernel; true: they agreed on each
// chunk.
bool replay();
// Every way that a kernel leaves the GPU, and what happens when it cannot come; true: all as they
// must be. The last one costs the process its device.
bool ways_out();
// An idle kernel that leaves when its host has been silent for `ms`.
void park_for(double ms, const bench_pool &pool, wic_transfer_plan plan);
#endif
