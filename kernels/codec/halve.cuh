// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef PB_HALVE_CUH
#define PB_HALVE_CUH
// A row of a halved plane, by a warp.
#include "kernels/codec/halve_device.h"
#include "kernels/codec/halve_pixel.h"

// Row y of the result, if there is one.
template <bool NEAREST>
__device__ void pb_halve_row(const pb_halve_part &part, uint32_t plane, int32_t y, uint32_t lane)
{
    if (2 * y >= part.h) {
        return;
    }
    const size_t at = static_cast<size_t>(2 * y) * part.from_row_px;
    const float *const upper = part.from == nullptr ? nullptr : part.from + at; // of plane 0
    const float *const lower =
        upper == nullptr || 2 * y + 1 >= part.h ? nullptr : upper + part.from_row_px;
    float *const to = part.to + plane * part.to_plane_px + static_cast<size_t>(y) * part.to_row_px;
    const float nan = pb_pixel_nan();
    for (int32_t x = static_cast<int32_t>(lane); 2 * x < part.w; x += 32) {
        const bool pair = 2 * x + 1 < part.w;
        if (upper == nullptr) {
            to[x] = nan;
        } else if (NEAREST) {
            to[x] = upper[plane * part.from_plane_px + 2 * x];
        } else {
            const auto value = [&](const float *row, int32_t i) {
                return pb_joined(&part.join, row + i, part.from_plane_px, plane);
            };
            to[x] = pb_mean4(value(upper, 2 * x), pair ? value(upper, 2 * x + 1) : nan,
                             lower != nullptr ? value(lower, 2 * x) : nan,
                             pair && lower != nullptr ? value(lower, 2 * x + 1) : nan);
        }
    }
}
#endif
