/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_FLOAT_SUMS_H
#define PB_FLOAT_SUMS_H
/* Count, range, sum and sum of squares of float32 values without rounding, in a third of the memory
 * of two struct pb_exact_sum: for sums of many groups. A value is an integer of 24 bits times a
 * power of two, its square one of 48 bits; a limb of 128 bits takes those whose powers lie in the
 * same 32, and holds 2^47 of them. Additions commute exactly, so order and split change nothing.
 * Plain memory of the caller; all zero = nothing was added. One thread an object. */
#include "kernels/reduce/exact_sum.h"

#include <stddef.h>
#include <stdint.h>

enum { PB_FLOAT_LIMBS = 8, PB_FLOAT_SQUARE_LIMBS = 16 };

__extension__ typedef __int128 pb_int128;

struct pb_float_sums {
    pb_int128 sum[PB_FLOAT_LIMBS];            /* limb i weighs 2^(32 i - 149) */
    pb_int128 squares[PB_FLOAT_SQUARE_LIMBS]; /* limb i weighs 2^(32 i - 298) */
    uint64_t n;
    float min, max; /* never -0; mean nothing when n is 0 */
};

/* n values; those that are not finite are left out. */
void pb_float_sums_add(struct pb_float_sums *sums, const float *value, size_t n);
void pb_float_sums_merge(struct pb_float_sums *into, const struct pb_float_sums *from);
/* Mean and population standard deviation, as pb_moments_result; n > 0. The sum is rounded to the
 * nearest double. */
void pb_float_sums_result(const struct pb_float_sums *sums, double *out_mean, double *out_stddev,
                          double *out_sum);
#endif
