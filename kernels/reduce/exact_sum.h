/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_EXACT_SUM_H
#define PB_EXACT_SUM_H
/* A sum of doubles without rounding: a fixed-point number as wide as the whole range of double,
 * kept in 32-bit digits inside 64-bit limbs, so that adding is three integer additions and carries
 * wait until they are needed. Additions commute exactly: the result is the same whatever the order,
 * and however the numbers were split between threads. Plain memory of the caller; all zero = 0. One
 * thread an object. */
#include <stdint.h>

/* Digit i weighs 2^(32 i - 1074). 2098 bits hold every finite double, two more limbs the carries of
 * 2^62 of them. */
#define PB_EXACT_LIMBS 68

struct pb_exact_sum {
    int64_t limb[PB_EXACT_LIMBS];
    uint32_t pending; /* additions since the carries were last propagated */
};

void pb_exact_sum_init(struct pb_exact_sum *sum);
/* x is finite. */
void pb_exact_sum_add(struct pb_exact_sum *sum, double x);
void pb_exact_sum_merge(struct pb_exact_sum *sum, const struct pb_exact_sum *other);
/* The double nearest to the sum, ties to even; infinite when beyond the range. */
double pb_exact_sum_round(const struct pb_exact_sum *sum);

/* A number as the unevaluated sum of two doubles, |low| <= ulp(high) / 2: about 106 bits. */
struct pb_double2 {
    double high, low;
};
struct pb_double2 pb_exact_sum_double2(const struct pb_exact_sum *sum);

/* The sum divided by n > 0, as if in twice the precision of double, then rounded. */
double pb_exact_mean(const struct pb_exact_sum *sum, uint64_t n);
/* Mean and population variance out of the sums of n values and of their squares; n > 0. The
 * variance is E[x^2] - E[x]^2 in twice the precision of double and never negative. */
void pb_exact_moments(const struct pb_exact_sum *sum, const struct pb_exact_sum *squares,
                      uint64_t n, double *out_mean, double *out_variance);
/* Population covariance out of the sums of n products x * y and of both factors; n > 0. In the same
 * way E[x y] - E[x] E[y]. */
double pb_exact_covariance(const struct pb_exact_sum *products, const struct pb_exact_sum *x,
                           const struct pb_exact_sum *y, uint64_t n);
#endif
