// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef PB_PROGRAM_PLACE_CUH
#define PB_PROGRAM_PLACE_CUH
// Which pixels of a sweep a thread makes: PX of a row, in parts of up to 4 that lie side by side.
// Of several parts, part k is behind those of the other lanes of its warp: what a warp loads or
// stores at a time is one run of memory. The rows of the rectangle are cut into spans, which are
// numbered through; the last span of a row may have fewer pixels.
#include "kernels/vm/program.h"

namespace pb_device
{
// One register of one thread.
template <int PX> struct alignas(PX >= 4 ? 16 : PX * sizeof(float)) pixels {
    float v[PX];
};

template <int PX> __device__ pixels<PX> filled(float value)
{
    pixels<PX> out;
#pragma unroll
    for (int j = 0; j < PX; j++) {
        out.v[j] = value;
    }
    return out;
}

// What is swept: a pb_sweep, or a type with the same members that keeps them elsewhere, and the
// rectangle that its scratch planes grow from.
inline __device__ const pb_rect &core_of(const pb_sweep &sweep)
{
    return sweep.in.core;
}

// A sweep with leaves on other grids than its own, or of several sources: `places` says where.
template <class Sweep> struct on_grids : Sweep {
};

// Which thread of how many.
struct member {
    uint32_t thread, threads;
};

template <int PX> struct shape {
    static constexpr int PART = PX < 4 ? PX : 4, PARTS = PX / PART;
    static constexpr int LANES = PARTS > 1 ? 32 : 1; // that share a span
    static constexpr int SPAN = PX * LANES;
    // Of pixel j of a thread from its first one.
    static __device__ constexpr int offset(int j)
    {
        return j / PART * (PART * LANES) + j % PART;
    }
};

// Where the pixels of a thread are: of a row, pixel j at x + offset(j). One beyond the row is taken
// for the row's last.
struct place {
    uint32_t offset; // of the first one, in an output plane
    int32_t x, y;    // of the first one, image
    int32_t last;    // offset of the row's last pixel from the first one; may be negative
    int32_t stored;  // offset of the last pixel that is stored; negative: none is
    __device__ int32_t within(int offset) const
    {
        return offset < last ? offset : last;
    }
};

// The pixels of a thread: its share of a span, then of the span `stride` threads further on.
template <int PX> class walk
{
    using pixel_shape = shape<PX>;

  public:
    // number: of the thread among all that share the sweep; a multiple of LANES ahead of it there
    // are as many lanes as a span has.
    __device__ walk(const pb_rect &rect, uint32_t number, uint32_t stride)
        : spans_(spans_of(rect)), row_(number / pixel_shape::LANES / spans_),
          span_(number / pixel_shape::LANES - row_ * spans_),
          row_step_(stride / pixel_shape::LANES / spans_),
          span_step_(stride / pixel_shape::LANES - row_step_ * spans_),
          lane_px_(static_cast<int32_t>(number % pixel_shape::LANES) * pixel_shape::PART)
    {
    }
    // How many threads have pixels.
    static __device__ uint32_t threads_of(const pb_rect &rect)
    {
        return spans_of(rect) * static_cast<uint32_t>(rect.h) * pixel_shape::LANES;
    }
    // Beyond the rectangle: pixels of its last row, of which none is stored.
    template <class Sweep> __device__ place find(const Sweep &sweep) const
    {
        const uint32_t last_row = static_cast<uint32_t>(sweep.rect.h) - 1;
        const uint32_t row = min(row_, last_row);
        const int32_t column = static_cast<int32_t>(span_ * pixel_shape::SPAN) + lane_px_;
        place at;
        at.last = sweep.rect.w - 1 - column;
        at.stored = row_ <= last_row ? at.last : -1;
        at.offset = row * static_cast<uint32_t>(sweep.out_row) + static_cast<uint32_t>(column);
        at.x = sweep.rect.x + column;
        at.y = sweep.rect.y + static_cast<int32_t>(row);
        return at;
    }
    __device__ void next()
    {
        row_ += row_step_;
        span_ += span_step_;
        if (span_ >= spans_) {
            span_ -= spans_;
            row_++;
        }
    }

  private:
    static __device__ uint32_t spans_of(const pb_rect &rect)
    {
        return (static_cast<uint32_t>(rect.w) + pixel_shape::SPAN - 1) / pixel_shape::SPAN;
    }
    uint32_t spans_, row_, span_, row_step_, span_step_;
    int32_t lane_px_;
};
} // namespace pb_device
#endif
