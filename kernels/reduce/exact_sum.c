/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* The bits of a double land in at most three neighbouring digits, each below 2^32 in magnitude, so
 * a limb takes 2^30 additions before it could overflow; carries are propagated before that.
 * Rounding works on a copy in canonical form: every digit in [0, 2^32), the sign apart. */
#include "kernels/reduce/exact_sum.h"
#include "kernels/reduce/exact_digits.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { DIGIT_BITS = PB_EXACT_DIGIT_BITS, LOWEST_EXPONENT = -1074, MANTISSA_BITS = 53 };
#define DIGIT_MASK  ((int64_t)UINT32_MAX)
#define PENDING_MAX (UINT32_C(1) << 29)

void pb_exact_sum_init(struct pb_exact_sum *sum)
{
    memset(sum, 0, sizeof *sum);
}

/* Leaves digits in [0, 2^32), but for the highest limb, which keeps the sign. The shift of a
 * negative number is arithmetic on every compiler we build with, and floors. */
static void carry(struct pb_exact_sum *sum)
{
    int64_t over = 0;
    for (int i = 0; i < PB_EXACT_LIMBS - 1; i++) {
        int64_t value = sum->limb[i] + over;
        sum->limb[i] = value & DIGIT_MASK;
        over = value >> DIGIT_BITS;
    }
    sum->limb[PB_EXACT_LIMBS - 1] += over;
    sum->pending = 1;
}

void pb_exact_sum_add(struct pb_exact_sum *sum, double x)
{
    assert(isfinite(x));
    struct pb_exact_digits digits = pb_exact_digits_of(x);
    sum->limb[digits.limb] += digits.low;
    sum->limb[digits.limb + 1] += digits.middle;
    sum->limb[digits.limb + 2] += digits.high;
    if (++sum->pending >= PENDING_MAX)
        carry(sum);
}

void pb_exact_sum_merge(struct pb_exact_sum *sum, const struct pb_exact_sum *other)
{
    struct pb_exact_sum theirs = *other;
    carry(&theirs);
    carry(sum);
    for (int i = 0; i < PB_EXACT_LIMBS; i++)
        sum->limb[i] += theirs.limb[i];
    sum->pending = 2;
}

/* Canonical magnitude; returns true when the sum is negative. */
static bool magnitude(struct pb_exact_sum *sum)
{
    carry(sum);
    if (sum->limb[PB_EXACT_LIMBS - 1] >= 0)
        return false;
    for (int i = 0; i < PB_EXACT_LIMBS; i++)
        sum->limb[i] = -sum->limb[i];
    carry(sum);
    return true;
}

static unsigned bit_at(const struct pb_exact_sum *sum, int place)
{
    return (unsigned)(sum->limb[place / DIGIT_BITS] >> (place % DIGIT_BITS)) & 1u;
}

static bool any_below(const struct pb_exact_sum *sum, int place)
{
    int limb = place / DIGIT_BITS;
    if (sum->limb[limb] & ((INT64_C(1) << (place % DIGIT_BITS)) - 1))
        return true;
    for (int i = 0; i < limb; i++)
        if (sum->limb[i] != 0)
            return true;
    return false;
}

double pb_exact_sum_round(const struct pb_exact_sum *sum)
{
    struct pb_exact_sum canon = *sum;
    bool negative = magnitude(&canon);
    int top = PB_EXACT_LIMBS - 1;
    while (top > 0 && canon.limb[top] == 0)
        top--;
    if (canon.limb[top] == 0)
        return 0.0;
    int highest = top * DIGIT_BITS + 63 - __builtin_clzll((unsigned long long)canon.limb[top]);
    if (highest >= PB_EXACT_LIMBS * DIGIT_BITS)
        return negative ? -INFINITY : INFINITY;
    int lowest = highest >= MANTISSA_BITS ? highest - MANTISSA_BITS + 1 : 0;
    uint64_t mantissa = 0;
    for (int place = highest; place >= lowest; place--)
        mantissa = mantissa << 1 | bit_at(&canon, place);
    if (lowest > 0 && bit_at(&canon, lowest - 1) &&
        ((mantissa & 1) || any_below(&canon, lowest - 1)))
        mantissa++;
    /* Exact: subnormal results have lowest == 0 and so no bit below the last one. */
    double value = ldexp((double)mantissa, lowest + LOWEST_EXPONENT);
    return negative ? -value : value;
}

struct pb_double2 pb_exact_sum_double2(const struct pb_exact_sum *sum)
{
    struct pb_double2 out = {.high = pb_exact_sum_round(sum)};
    if (!isfinite(out.high))
        return out;
    struct pb_exact_sum rest = *sum;
    pb_exact_sum_add(&rest, -out.high);
    out.low = pb_exact_sum_round(&rest);
    return out;
}

static struct pb_double2 two_sum(double a, double b)
{
    double s = a + b, t = s - a;
    return (struct pb_double2){s, (a - (s - t)) + (b - t)};
}

static struct pb_double2 two_product(double a, double b)
{
    double p = a * b;
    return (struct pb_double2){p, fma(a, b, -p)};
}

static struct pb_double2 subtract(struct pb_double2 a, struct pb_double2 b)
{
    struct pb_double2 s = two_sum(a.high, -b.high);
    return two_sum(s.high, s.low + (a.low - b.low));
}

static struct pb_double2 divide(struct pb_double2 a, double n)
{
    double q = a.high / n;
    struct pb_double2 rest = subtract(a, two_product(q, n));
    return two_sum(q, (rest.high + rest.low) / n);
}

static struct pb_double2 multiply(struct pb_double2 a, struct pb_double2 b)
{
    struct pb_double2 p = two_product(a.high, b.high);
    return two_sum(p.high, p.low + (a.high * b.low + a.low * b.high));
}

double pb_exact_mean(const struct pb_exact_sum *sum, uint64_t n)
{
    return divide(pb_exact_sum_double2(sum), (double)n).high;
}

void pb_exact_moments(const struct pb_exact_sum *sum, const struct pb_exact_sum *squares,
                      uint64_t n, double *out_mean, double *out_variance)
{
    struct pb_double2 mean = divide(pb_exact_sum_double2(sum), (double)n);
    struct pb_double2 power = divide(pb_exact_sum_double2(squares), (double)n);
    struct pb_double2 variance = subtract(power, multiply(mean, mean));
    *out_mean = mean.high;
    *out_variance = variance.high > 0 ? variance.high : 0;
}

double pb_exact_covariance(const struct pb_exact_sum *products, const struct pb_exact_sum *x,
                           const struct pb_exact_sum *y, uint64_t n)
{
    struct pb_double2 mean_x = divide(pb_exact_sum_double2(x), (double)n);
    struct pb_double2 mean_y = divide(pb_exact_sum_double2(y), (double)n);
    struct pb_double2 power = divide(pb_exact_sum_double2(products), (double)n);
    return subtract(power, multiply(mean_x, mean_y)).high;
}
