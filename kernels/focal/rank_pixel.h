/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RANK_PIXEL_H
#define PB_RANK_PIXEL_H
/* The pixel of a window that has a certain place in ascending order: pb_focal.choice of
 * PB_FOCAL_RANK, 0 the least. A zero is +0. C11 and C++17. No branch depends on a pixel. */
#include "kernels/focal/focal.h"
#include "kernels/pixel.h"

/* In front of a loop that nvcc unrolls whole, so that the array it indexes stays in registers. */
#ifdef __CUDA_ARCH__
#define PB_UNROLLED _Pragma("unroll")
#else
#define PB_UNROLLED
#endif

/* Up to here the median is found by exchanges; the array of a larger window would not fit into
 * registers. */
#define PB_RANK_MEDIAN_RADIUS_MAX 3
#define PB_RANK_HELD_MAX          26 /* of 49 pixels */

/* The float that has this place among all of them, from -NaN to NaN. */
PB_PIXEL float pb_rank_float(uint32_t place)
{
    const uint32_t bits = place & 0x80000000u ? place ^ 0x80000000u : ~place;
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* Any rank. Floats in ascending order are whole numbers in ascending order, and those are found
 * from their highest bit down by counting: no pixel is moved. */
PB_PIXEL float pb_rank_by_counting(const float *window, int32_t stride, int32_t radius,
                                   int32_t rank)
{
    uint32_t place = 0;

    for (int32_t bit = 31; bit >= 0; bit--) {
        const uint32_t candidate = place | (uint32_t)1 << bit;
        const float limit = pb_rank_float(candidate);
        int32_t below = 0;

        for (int32_t y = 0; y <= 2 * radius; y++)
            for (int32_t x = 0; x <= 2 * radius; x++)
                below += window[y * stride + x] < limit ? 1 : 0;
        place = below <= rank ? candidate : place;
    }
    return pb_rank_float(place);
}

PB_PIXEL void pb_rank_exchange(float *low, float *high)
{
    const float less = fminf(*low, *high), more = fmaxf(*low, *high);
    *low = less;
    *high = more;
}

/* Of n pixels, the least to the front and the greatest to the end. */
PB_PIXEL void pb_rank_part(float *held, int32_t n)
{
    PB_UNROLLED
    for (int32_t i = 0; i < n / 2; i++)
        pb_rank_exchange(&held[i], &held[n - 1 - i]);
    PB_UNROLLED
    for (int32_t i = 1; i <= (n - 1) / 2; i++)
        pb_rank_exchange(&held[0], &held[i]);
    PB_UNROLLED
    for (int32_t i = n - 2; i >= n / 2; i--)
        pb_rank_exchange(&held[i], &held[n - 1]);
}

/* The median of a window without invalid pixels. Of any of its pixels that are one more than half
 * of them, rounded up, neither the least nor the greatest is the median: both are forgotten, and
 * one that was not looked at yet takes their place, until one is left. */
PB_PIXEL float pb_rank_median(const float *window, int32_t stride, int32_t radius)
{
    const int32_t side = 2 * radius + 1, most = side * side / 2 + 2;
    float held[PB_RANK_HELD_MAX];

    PB_UNROLLED
    for (int32_t i = 0; i < most; i++)
        held[i] = window[i / side * stride + i % side];
        /* Written out: the compiler unrolls no loop as long as that. */
#define STEP(n)                                                                                    \
    if (n <= most) {                                                                               \
        const int32_t next = 2 * most - n;                                                         \
        pb_rank_part(held, n);                                                                     \
        held[0] = window[next / side * stride + next % side];                                      \
    }
    /* clang-format off */
    STEP(26) STEP(25) STEP(24) STEP(23) STEP(22) STEP(21) STEP(20) STEP(19) STEP(18) STEP(17)
    STEP(16) STEP(15) STEP(14) STEP(13) STEP(12) STEP(11) STEP(10) STEP(9) STEP(8) STEP(7) STEP(6)
    STEP(5) STEP(4)
    /* clang-format on */
#undef STEP
                pb_rank_part(held, 3);
    return held[1];
}

PB_PIXEL float pb_focal_rank(const float *window, int32_t stride, int32_t radius,
                             const struct pb_focal *focal)
{
    const int32_t side = 2 * radius + 1;
    float invalid = 0.0f;

    for (int32_t y = 0; y < side; y++)
        for (int32_t x = 0; x < side; x++)
            invalid += window[y * stride + x] - window[y * stride + x]; /* NaN of NaN, else 0 */
    if (radius <= PB_RANK_MEDIAN_RADIUS_MAX && focal->choice == side * side / 2)
        return pb_rank_median(window, stride, radius) + invalid;
    return pb_rank_by_counting(window, stride, radius, focal->choice) + invalid;
}
#endif
