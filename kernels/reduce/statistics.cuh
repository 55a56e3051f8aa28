// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef PB_STATISTICS_CUH
#define PB_STATISTICS_CUH
// Statistics of planes by thread groups of THREADS threads, several for each plane. Sums are formed
// over runs of 64 pixels in the order of moments.c, by eight threads a run, and added without
// rounding as integers (exact_digits.h), which no order changes. Once the range is known, pixels
// are counted by bins.
#include "kernels/reduce/exact_digits.h"
#include "kernels/reduce/statistics_device.h"
#include "kernels/reduce/statistics_key.h"
#include "kernels/thread_group.cuh"

namespace pb_device
{
constexpr uint32_t STATISTICS_THREADS = 256;
constexpr uint32_t RUN_PX = 64, RUN_LANES = 8, RUN_HALF = RUN_PX / 2;
constexpr uint32_t RUNS_AT_ONCE = STATISTICS_THREADS / RUN_LANES;

struct moments_arena {
    unsigned long long sum[PB_EXACT_LIMBS], squares[PB_EXACT_LIMBS]; // signed, modulo 2^64
    uint32_t valid, min, max;
};

struct bins_arena {
    uint32_t bin[PB_HISTOGRAM_BINS];
};

inline __device__ void add_exact(unsigned long long *limb, double x)
{
    const pb_exact_digits digits = pb_exact_digits_of(x);
    atomicAdd(&limb[digits.limb], static_cast<unsigned long long>(digits.low));
    atomicAdd(&limb[digits.limb + 1], static_cast<unsigned long long>(digits.middle));
    if (digits.high != 0) {
        atomicAdd(&limb[digits.limb + 2], static_cast<unsigned long long>(digits.high));
    }
}

// Of the eight lanes of a run, as fold_lanes() of moments.c; in all of them.
inline __device__ double fold_run(double v)
{
    v += __shfl_xor_sync(0xffffffffu, v, 4);
    v += __shfl_xor_sync(0xffffffffu, v, 2);
    v += __shfl_xor_sync(0xffffffffu, v, 1);
    return v;
}

// Pixels of a lane of one run.
struct run_lane {
    double sum = 0, squares[2] = {0, 0};
    uint32_t valid = 0, min = 0xffffffff, max = 0;
};

// px: the run's first pixel, of which n are there; lane: of eight.
inline __device__ run_lane sweep_lane(const float *px, uint32_t n, uint32_t lane)
{
    run_lane out;
    for (uint32_t half = 0; half < 2; half++) {
        for (uint32_t i = half * RUN_HALF + lane; i < (half + 1) * RUN_HALF; i += RUN_LANES) {
            const float v = i < n ? px[i] : pb_pixel_nan();
            const bool ok = fabsf(v) <= FLT_MAX;
            const double x = ok ? static_cast<double>(v) : 0;
            const uint32_t key = pb_statistics_key(v);
            out.sum += x;
            out.squares[half] += x * x;
            out.valid += ok;
            out.min = ok && key < out.min ? key : out.min;
            out.max = ok && key > out.max ? key : out.max;
        }
    }
    return out;
}
} // namespace pb_device

// All of a part, before the rest.
template <class Group>
__device__ void pb_statistics_begin(pb_statistics_part *part, const Group &group)
{
    for (uint32_t i = group.thread; i < PB_HISTOGRAM_BINS; i += group.threads) {
        part->bin[i] = 0;
    }
    for (uint32_t i = group.thread; i < PB_EXACT_LIMBS; i += group.threads) {
        part->sum[i] = 0;
        part->squares[i] = 0;
    }
    if (group.thread == 0) {
        part->valid = 0;
        part->min = 0xffffffff;
        part->max = 0;
    }
}

// The share `index` of `shares` of a plane's runs.
template <class Group>
__device__ void pb_statistics_moments(const pb_statistics_plane &plane, uint32_t index,
                                      uint32_t shares, pb_device::moments_arena &arena,
                                      pb_statistics_part *part, const Group &group)
{
    using namespace pb_device;
    const uint32_t w = static_cast<uint32_t>(plane.w), columns = (w + RUN_PX - 1) / RUN_PX;
    const uint64_t runs = plane.data == nullptr ? 0 : static_cast<uint64_t>(columns) * plane.h;
    const uint32_t lane = group.thread % RUN_LANES;
    for (uint32_t i = group.thread; i < PB_EXACT_LIMBS; i += group.threads) {
        arena.sum[i] = 0;
        arena.squares[i] = 0;
    }
    if (group.thread == 0) {
        arena.valid = 0;
        arena.min = 0xffffffff;
        arena.max = 0;
    }
    group.sync();
    run_lane all;
    for (uint64_t first = static_cast<uint64_t>(index) * RUNS_AT_ONCE; first < runs;
         first += static_cast<uint64_t>(shares) * RUNS_AT_ONCE) {
        const uint64_t run = first + group.thread / RUN_LANES;
        const uint64_t y = run / columns, x = run % columns * RUN_PX;
        const run_lane own = run < runs ? sweep_lane(plane.data + y * plane.row_px + x,
                                                     static_cast<uint32_t>(w - x), lane)
                                        : run_lane();
        const double sum = fold_run(own.sum);
        const double low = fold_run(own.squares[0]), high = fold_run(own.squares[1]);
        if (lane == 0) {
            add_exact(arena.sum, sum);
            add_exact(arena.squares, low);
            add_exact(arena.squares, high);
        }
        all.valid += own.valid;
        all.min = own.min < all.min ? own.min : all.min;
        all.max = own.max > all.max ? own.max : all.max;
    }
    if (all.valid > 0) {
        atomicAdd(&arena.valid, all.valid);
        atomicMin(&arena.min, all.min);
        atomicMax(&arena.max, all.max);
    }
    group.sync();
    for (uint32_t i = group.thread; i < PB_EXACT_LIMBS && arena.valid > 0; i += group.threads) {
        atomicAdd(reinterpret_cast<unsigned long long *>(&part->sum[i]), arena.sum[i]);
        atomicAdd(reinterpret_cast<unsigned long long *>(&part->squares[i]), arena.squares[i]);
    }
    if (group.thread == 0 && arena.valid > 0) {
        atomicAdd(reinterpret_cast<unsigned long long *>(&part->valid),
                  static_cast<unsigned long long>(arena.valid));
        atomicMin(&part->min, arena.min);
        atomicMax(&part->max, arena.max);
    }
}

// The share `index` of `shares` of a plane's rows, when the part's moments are there.
template <class Group>
__device__ void pb_statistics_bins(const pb_statistics_plane &plane, uint32_t index,
                                   uint32_t shares, pb_device::bins_arena &arena,
                                   pb_statistics_part *part, const Group &group)
{
    if (part->valid == 0) {
        return;
    }
    const int e = pb_histogram_exponent_of(pb_statistics_value(part->min) + 0.0f,
                                           pb_statistics_value(part->max) + 0.0f);
    const double scale = pb_power_of_two(-e);
    for (uint32_t i = group.thread; i < PB_HISTOGRAM_BINS; i += group.threads) {
        arena.bin[i] = 0;
    }
    group.sync();
    for (int32_t y = static_cast<int32_t>(index); y < plane.h; y += static_cast<int32_t>(shares)) {
        const float *const row = plane.data + static_cast<size_t>(y) * plane.row_px;
        for (uint32_t x = group.thread; x < static_cast<uint32_t>(plane.w); x += group.threads) {
            const float v = row[x];
            if (fabsf(v) <= FLT_MAX) {
                const auto bin = static_cast<int32_t>(floor(static_cast<double>(v) * scale));
                atomicAdd(&arena.bin[static_cast<uint32_t>(bin) & (PB_HISTOGRAM_BINS - 1)], 1u);
            }
        }
    }
    group.sync();
    for (uint32_t i = group.thread; i < PB_HISTOGRAM_BINS; i += group.threads) {
        if (arena.bin[i] != 0) {
            atomicAdd(&part->bin[i], arena.bin[i]);
        }
    }
}
#endif
