/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/reduce/float_sums.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { LIMB_BITS = 32, LIMB_SHIFT = 5 };
enum { SUM_LOWEST = -149, SQUARES_LOWEST = -298 }; /* powers of two of limb 0 */

static void add_one(struct pb_float_sums *sums, float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    const uint32_t exponent = bits >> 23 & 0xff;
    const uint32_t place = exponent ? exponent - 1 : 0;
    const int64_t mantissa = (int64_t)((bits & 0x7fffff) | (exponent ? 0x800000U : 0U));
    const int64_t shifted = mantissa << place % LIMB_BITS;
    const uint32_t twice = 2 * place;

    sums->sum[place >> LIMB_SHIFT] += bits >> 31 ? -shifted : shifted;
    sums->squares[twice >> LIMB_SHIFT] += (pb_int128)(mantissa * mantissa) << twice % LIMB_BITS;
}

void pb_float_sums_add(struct pb_float_sums *sums, const float *value, size_t n)
{
    float min = sums->n > 0 ? sums->min : FLT_MAX, max = sums->n > 0 ? sums->max : -FLT_MAX;
    uint64_t valid = 0;

    for (size_t i = 0; i < n; i++) {
        const float v = value[i];

        if (!(fabsf(v) <= FLT_MAX))
            continue;
        valid++;
        min = v < min ? v : min;
        max = v > max ? v : max;
        add_one(sums, v);
    }
    if (valid == 0)
        return;
    sums->n += valid;
    sums->min = min + 0.0F; /* -0 and 0 are equal: always 0 */
    sums->max = max + 0.0F;
}

void pb_float_sums_merge(struct pb_float_sums *into, const struct pb_float_sums *from)
{
    if (from->n == 0)
        return;
    for (int i = 0; i < PB_FLOAT_LIMBS; i++)
        into->sum[i] += from->sum[i];
    for (int i = 0; i < PB_FLOAT_SQUARE_LIMBS; i++)
        into->squares[i] += from->squares[i];
    into->min = into->n == 0 || from->min < into->min ? from->min : into->min;
    into->max = into->n == 0 || from->max > into->max ? from->max : into->max;
    into->n += from->n;
}

/* Limbs as an exact sum: each in four digits of 32 bits, which are doubles. */
static void spread(struct pb_exact_sum *out, const pb_int128 *limb, int n, int lowest)
{
    __extension__ typedef unsigned __int128 uint128;

    pb_exact_sum_init(out);
    for (int i = 0; i < n; i++) {
        const bool negative = limb[i] < 0;
        uint128 rest = negative ? -(uint128)limb[i] : (uint128)limb[i];

        for (int digit = 0; rest != 0; digit++, rest >>= LIMB_BITS) {
            const double part = ldexp((double)(uint32_t)rest, lowest + LIMB_BITS * (i + digit));
            pb_exact_sum_add(out, negative ? -part : part);
        }
    }
}

void pb_float_sums_result(const struct pb_float_sums *sums, double *out_mean, double *out_stddev,
                          double *out_sum)
{
    struct pb_exact_sum sum, squares;
    double variance;

    spread(&sum, sums->sum, PB_FLOAT_LIMBS, SUM_LOWEST);
    spread(&squares, sums->squares, PB_FLOAT_SQUARE_LIMBS, SQUARES_LOWEST);
    pb_exact_moments(&sum, &squares, sums->n, out_mean, &variance);
    *out_stddev = sqrt(variance);
    *out_sum = pb_exact_sum_round(&sum);
}
