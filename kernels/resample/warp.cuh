// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef PB_WARP_CUH
#define PB_WARP_CUH
// Warping on a GPU: 32 threads make a run of RUN * 32 pixels of a row, each every 32nd of them, so
// that the square of the tree and what its row comes to are found once for several pixels. Kernels
// of their own width are added up as the CPU's rows are; a pixel whose sum is NaN, and those of
// other methods, are made by the pixel function.
#include "kernels/resample/warp_area.h"

namespace pb_device
{
// Where the pixels of one row lie: the square that the last one was found in.
struct warp_finder {
    const pb_warp_job &job;
    double y; // on the warp's new grid
    bool row_is_on;
    double left, end; // of the square
    pb_warp_row row;

    __device__ warp_finder(const pb_warp_job &of, int32_t at)
        : job(of), y((at + 0.5) * of.to.scale_y + of.to.offset_y),
          row_is_on(pb_warp_is_on(at + 0.5, of.to.scale_y, of.to.offset_y, of.warp->h)), left(0.0),
          end(-1.0), row()
    {
    }

    __device__ pb_warp_at find(int32_t column)
    {
        pb_warp_at at;
        at.x = at.y = static_cast<double>(pb_pixel_nan());
        if (!row_is_on ||
            !pb_warp_is_on(column + 0.5, job.to.scale_x, job.to.offset_x, job.warp->w)) {
            return at;
        }
        const double x = (column + 0.5) * job.to.scale_x + job.to.offset_x;
        if (!(x >= left && x < end)) {
            const pb_warp_square square = pb_warp_find(job.warp, x, y);
            left = square.x;
            end = square.x + square.size;
            row = pb_warp_row_of(job.warp, &square, y);
        }
        at = pb_warp_row_at(&row, x);
        at.x = at.x * job.from.scale_x + job.from.offset_x;
        at.y = at.y * job.from.scale_y + job.from.offset_y;
        return at;
    }
};

// The sum over TAPS x TAPS pixels in the order of pb_resample_sum; NaN: one is invalid, or not
// there.
template <pb_resampling HOW, int TAPS>
__device__ float warp_narrow(const pb_plane &in, const pb_warp_at &at)
{
    const pb_rect &rect = in.rect;
    double x, y;
    if (!pb_warp_first_tap(at.x, TAPS, rect.x, static_cast<double>(rect.x) + rect.w - TAPS, &x) ||
        !pb_warp_first_tap(at.y, TAPS, rect.y, static_cast<double>(rect.y) + rect.h - TAPS, &y)) {
        return pb_pixel_nan();
    }
    const float *from = in.data + static_cast<size_t>(static_cast<int32_t>(y) - rect.y) * rect.w +
                        (static_cast<int32_t>(x) - rect.x);
    float across[TAPS], weights = 0.0f, sum = 0.0f, total = 0.0f;
#pragma unroll
    for (int k = 0; k < TAPS; k++) {
        across[k] = pb_warp_weight(HOW, at.x, x + k);
        weights = weights + across[k];
    }
#pragma unroll
    for (int j = 0; j < TAPS; j++) {
        const float down = pb_warp_weight(HOW, at.y, y + j);
        float row = 0.0f;
#pragma unroll
        for (int k = 0; k < TAPS; k++) {
            row = row + across[k] * from[k];
        }
        sum = sum + down * row;
        total = total + down * weights;
        from += rect.w;
    }
    return pb_pixel_result(sum / total);
}

inline __device__ float warp_narrow(const pb_resampling how, const pb_plane &in,
                                    const pb_warp_at &at)
{
    return how == PB_BILINEAR ? warp_narrow<PB_BILINEAR, 2>(in, at)
           : how == PB_CUBIC  ? warp_narrow<PB_CUBIC, 4>(in, at)
                              : warp_narrow<PB_LANCZOS, 6>(in, at);
}

// A plane by the threads of a group (whole warps), which says `thread` and `threads`. heights: at
// its pixels, or at their corners for areas, where the warp is of several (RELIEF, which takes
// more registers); else it is not read. Nobody syncs.
template <bool RELIEF, class Group>
__device__ void run_warp(const pb_warp_job &job, const pb_plane &in, const pb_plane &heights,
                         const pb_plane &out, const Group &group)
{
    constexpr uint32_t LANES = 32, RUN = 4 * LANES;
    const pb_resample_source source = {in.data, in.rect};
    const uint32_t width = static_cast<uint32_t>(out.rect.w);
    const uint32_t runs = (width + RUN - 1) / RUN, all = runs * static_cast<uint32_t>(out.rect.h);
    const bool narrow = pb_warp_narrow(&job) > 0;
    const bool by_height = RELIEF && !pb_warp_is_area(job.how);

    for (uint32_t i = group.thread / LANES; i < all; i += group.threads / LANES) {
        const uint32_t line = i / runs, first = i % runs * RUN;
        const uint32_t end = first + RUN < width ? first + RUN : width;
        const int32_t row = out.rect.y + static_cast<int32_t>(line);
        float *const to = out.data + static_cast<size_t>(line) * width;
        warp_finder finder(job, row);
        for (uint32_t k = first + group.thread % LANES; k < end; k += LANES) {
            const int32_t column = out.rect.x + static_cast<int32_t>(k);
            const pb_warp_at at = by_height ? pb_warp_position(&job, column + 0.5, row + 0.5,
                                                               *pb_plane_at(&heights, column, row))
                                            : finder.find(column);
            float v = narrow ? warp_narrow(job.how, in, at) : pb_pixel_nan();
            if (v != v) {
                v = pb_warp_pixel(&job, &source, column, row, &at, RELIEF ? &heights : nullptr);
            }
            to[k] = v;
        }
    }
}
} // namespace pb_device
#endif
