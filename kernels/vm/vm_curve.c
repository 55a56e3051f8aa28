/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * A curve over a strip: all pixels of a block halve the range of their knots at the same time, with
 * no branches, which a search for one pixel mispredicts at each knot. */
#include "kernels/vm/curve_pixel.h"
#include "kernels/vm/vm_loops.h"

enum { BLOCK = 64 };

/* The last of n >= 2 knots but one that is at x or before it, the first one where none is. */
PB_CLONES static void find_knots(const float *knots, int32_t n, const float *x, int32_t n_px,
                                 int32_t *restrict low)
{
    for (int32_t i = 0; i < n_px; i++)
        low[i] = 0;
    for (int32_t left = n - 1; left > 1; left -= left / 2) {
        const int32_t half = left / 2;

        for (int32_t i = 0; i < n_px; i++)
            low[i] += knots[2 * (low[i] + half)] <= x[i] ? half : 0;
    }
}

/* What pb_curve_at makes of n >= 2 knots; out may be x. */
PB_CLONES static void find_values(const float *knots, int32_t n, const int32_t *low, int32_t n_px,
                                  const float *x, float *out)
{
    const float *const last = knots + 2 * (n - 1);

    PB_INDEPENDENT
    for (int32_t i = 0; i < n_px; i++) {
        const float v = x[i];
        const float *const at = knots + 2 * low[i];
        const float between = at[1] + (at[3] - at[1]) * ((v - at[0]) / (at[2] - at[0]));
        const float inside = at[0] == v ? at[1] : between;
        const float known = v >= last[0] ? last[1] : inside;
        const float above = v > knots[0] ? known : knots[1];

        out[i] = v != v ? pb_pixel_nan() : above;
    }
}

void pb_vm_curve(const float *knots, int32_t n, const float *x, float *out, size_t n_px)
{
    int32_t low[BLOCK];

    for (size_t i = 0; i < n_px && n < 2; i++)
        out[i] = pb_curve_at(knots, n, x[i]);
    for (size_t i = 0; i < n_px && n >= 2; i += BLOCK) {
        const int32_t many = n_px - i < BLOCK ? (int32_t)(n_px - i) : BLOCK;

        find_knots(knots, n, x + i, many, low);
        find_values(knots, n, low, many, x + i, out + i);
    }
}
