// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_BENCH_NDVI_CUH
#define WIC_BENCH_NDVI_CUH
// NDVI by a group of threads, of pixels in two layouts.
#include "wic/bench/base/bench.cuh"

__device__ __forceinline__ uint32_t ndvi_two(uint32_t red, uint32_t nir)
{
    const uint16_t low = ndvi_pixel(red & 0xffff, nir & 0xffff);
    const uint16_t high = ndvi_pixel(red >> 16, nir >> 16);
    return low | static_cast<uint32_t>(high) << 16;
}

// Red pixels, then infrared pixels, at `in`.
__device__ __forceinline__ void ndvi_piece(const void *in, void *out, uint32_t units,
                                           uint32_t thread, uint32_t threads)
{
    if (units % 8 == 0) { // both bands and the result are 16-byte aligned
        const uint4 *red = static_cast<const uint4 *>(in);
        const uint4 *nir = red + units / 8;
        for (uint32_t i = thread; i < units / 8; i += threads) {
            const uint4 r = red[i], n = nir[i];
            static_cast<uint4 *>(out)[i] = make_uint4(ndvi_two(r.x, n.x), ndvi_two(r.y, n.y),
                                                      ndvi_two(r.z, n.z), ndvi_two(r.w, n.w));
        }
    } else {
        const uint16_t *red = static_cast<const uint16_t *>(in);
        for (uint32_t i = thread; i < units; i += threads) {
            static_cast<int16_t *>(out)[i] = ndvi_pixel(red[i], red[units + i]);
        }
    }
}

// Whole lines of line_units: each its red pixels, then its infrared ones.
__device__ __forceinline__ void ndvi_lines(const void *in, void *out, uint32_t units,
                                           uint32_t thread, uint32_t threads)
{
    constexpr uint32_t line = line_units / 8; // 16 bytes each
    for (uint32_t i = thread; i < units / 8; i += threads) {
        const uint4 *red = static_cast<const uint4 *>(in) + (i / line * 2 * line + i % line);
        const uint4 r = red[0], n = red[line];
        static_cast<uint4 *>(out)[i] = make_uint4(ndvi_two(r.x, n.x), ndvi_two(r.y, n.y),
                                                  ndvi_two(r.z, n.z), ndvi_two(r.w, n.w));
    }
}
#endif
