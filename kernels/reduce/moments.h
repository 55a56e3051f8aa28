/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_MOMENTS_H
#define PB_MOMENTS_H
/* Count, range, sum and sum of squares of float32 pixels, equal to the last bit whatever the order
 * and size of the tiles. Plain sums would depend on where a tile ends; so a sum is formed over runs
 * of PB_MOMENTS_RUN pixels that begin at multiples of that in the image, in one fixed order, and
 * runs are added without rounding (exact_sum.h). Squares of float32 have 48 bits: 32 of like
 * magnitude add up exactly in a double, hence two sums of squares a run; a constant band has a
 * standard deviation of 0. Plain memory of the caller; one thread an object. */
#include "kernels/reduce/exact_sum.h"

#include <stdint.h>

#define PB_MOMENTS_RUN 64

struct pb_moments {
    uint64_t valid; /* finite pixels; when there is none, min and max mean nothing */
    float min, max; /* never -0 */
    struct pb_exact_sum sum, squares;
};

void pb_moments_begin(struct pb_moments *moments);
/* A plane of w x h pixels, rows tightly packed; its first column is a multiple of PB_MOMENTS_RUN of
 * the image. Pixels that are not finite are left out. */
void pb_moments_add(struct pb_moments *moments, const float *plane, int32_t w, int32_t h);
void pb_moments_merge(struct pb_moments *into, const struct pb_moments *from);
/* Mean and population standard deviation; valid > 0. */
void pb_moments_result(const struct pb_moments *moments, double *out_mean, double *out_stddev);
#endif
