/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_VM_PIXEL_H
#define PB_VM_PIXEL_H
/* One pixel function for each operation of vm_ops.def. The rules of validity:
 *   - NaN is an invalid pixel. An operation with an invalid operand is invalid, comparisons, min
 *     and max too; WHERE looks at its condition and at the chosen branch only, AND and OR are
 *     decided by one operand where they can be (as NULL in SQL), and VALID asks.
 *   - A pole is invalid at once: x / 0, mod(x, 0), log(x <= 0), 0 ** negative. So is sqrt(x < 0)
 *     and a negative number to a fraction, the sine of an angle of which float32 does not hold the
 *     direction, and bits of what is no whole number.
 *   - An overflow is an infinity until it is stored; storing makes it invalid (pb_pixel_result).
 *
 * log, exp, **, sine, cosine and the arc tangent do not come from libm: the C library's and the
 * GPU's differ in the last bits, and neither can be vectorised by the compiler. They are made of
 * + - * / alone, the same bits everywhere. log and exp are computed in float32, in twice as many
 * lanes, within 1 ULP. **, sine, cosine and the arc tangent are computed in float64, to about
 * 1e-10, and rounded once: within 0.6 ULP (**) and 0.51 ULP. fmodf and floorf are exact, and so the
 * same in every library. */
#include "kernels/pixel.h"

PB_PIXEL uint32_t pb_vm_bits32(float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

PB_PIXEL float pb_vm_number32(uint32_t bits)
{
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

PB_PIXEL uint64_t pb_vm_bits(double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

PB_PIXEL double pb_vm_number(uint64_t bits)
{
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* ln(2) in two parts: the first has 14 bits, so that its product with an exponent is exact. */
#define PB_VM_LN2_HIGH 0x1.62e4p-1f
#define PB_VM_LN2_LOW  0x1.7f7d1cp-20f

/* log of a positive, finite float. x = 2^k * (1 + f), 1 + f in [sqrt(1/2), sqrt(2)); log(1 + f) =
 * f - f^2 / 2 + f^3 * P(f), P of the 7th degree with the least largest error. The parts of P are
 * independent of each other, so that they are computed at the same time. */
PB_PIXEL float pb_vm_log32(float x)
{
    const uint32_t sqrt_half = 0x3f3504f3u, fraction = 0x007fffffu;
    const float one = 8388608.0f; /* 2^23: what 1 in the exponent adds to the bits */
    const bool is_subnormal = x < FLT_MIN;
    const uint32_t bits = pb_vm_bits32(is_subnormal ? x * one : x);
    const uint32_t m = ((bits - sqrt_half) & fraction) + sqrt_half;
    const float exponent = (float)(int32_t)(bits - m); /* k * 2^23, exact */
    const float k = is_subnormal ? exponent - 23.0f * one : exponent;
    const float f = pb_vm_number32(m) - 1.0f, z = f * f;
    const float low = (0.33333331f - 0.25000820f * f) + (0.20001227f - 0.16623357f * f) * z;
    const float high = (0.14201759f - 0.13160183f * f) + (0.12761575f - 0.076344930f * f) * z;
    const float rest = z * (f * (low + high * (z * z)) - 0.5f);
    return k * (PB_VM_LN2_HIGH / one) + (f + (rest + k * (PB_VM_LN2_LOW / one)));
}

/* exp of any float; NaN stays. 2^k * exp(r), |r| <= ln2 / 2; exp(r) = 1 + r + r^2 * P(r), P of the
 * 4th degree with the least largest error. 2^k is two factors: a result below FLT_MIN is rounded to
 * what float32 has there by the second one. */
PB_PIXEL float pb_vm_exp32(float x)
{
    const float shift = 0x1.8p23f; /* adding it leaves the rounded integer in the low bits */
    x = x > 89.0f ? 89.0f : x;     /* infinite, or 0, before that */
    x = x < -104.0f ? -104.0f : x;
    const float t = x * 1.44269504f + shift;
    const float k = t - shift;
    const float r_high = x - k * PB_VM_LN2_HIGH, r_low = k * PB_VM_LN2_LOW, r = r_high - r_low;
    const float z = r * r;
    const float p =
        (0.5f + 0.16666535f * r) + (0.041667238f + 0.0083674830f * r) * z + 0.0013863781f * (z * z);
    const float m = 1.0f + (r_high + (z * p - r_low));
    const uint32_t power = pb_vm_bits32(t) - pb_vm_bits32(shift) + 256u; /* k + 256 */
    const uint32_t half = power / 2u;
    return m * pb_vm_number32((half - 1u) << 23) * pb_vm_number32((power - half - 1u) << 23);
}

/* exp of any double; NaN stays. 2^k * exp(r), |r| <= ln2 / 2, Taylor to r^9. */
PB_PIXEL double pb_vm_exp64(double x)
{
    const double shift = 0x1.8p52; /* adding it leaves the rounded integer in the low bits */
    x = x > 200.0 ? 200.0 : x;     /* float32 is infinite, or 0, long before */
    x = x < -200.0 ? -200.0 : x;
    const double t = x * 1.4426950408889634 + shift;
    const double k = t - shift;
    const double r = x - k * 0.6931471805599453;
    double p = 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    return p * pb_vm_number((pb_vm_bits(t) << 52) + 0x3ff0000000000000u);
}

/* log of a positive, finite, normal double; anything for other arguments. x = 2^k * m with m in
 * [sqrt(1/2), sqrt(2)); log(m) = 2 * atanh((m - 1) / (m + 1)), to the 15th power. */
PB_PIXEL double pb_vm_log64(double x)
{
    const uint64_t one = 0x3ff0000000000000u, exponent = 0xfff0000000000000u;
    const uint64_t bits = pb_vm_bits(x);
    const uint64_t moved = bits + (one - 0x3fe6a09e667f3bcdu); /* sqrt(1/2) */
    const double m = pb_vm_number(bits - (moved & exponent) + one);
    const double k = pb_vm_number((moved >> 52) | 0x4330000000000000u) - (0x1p52 + 1023.0);
    const double s = (m - 1.0) / (m + 1.0);
    const double z = s * s;
    double p = 1.0 / 15.0;
    p = p * z + 1.0 / 13.0;
    p = p * z + 1.0 / 11.0;
    p = p * z + 1.0 / 9.0;
    p = p * z + 1.0 / 7.0;
    p = p * z + 1.0 / 5.0;
    p = p * z + 1.0 / 3.0;
    return k * 0.6931471805599453 + 2.0 * (s + s * z * p);
}

/* The arc tangent of 0 .. 1. That of t is pi / 4 more than that of (t - 1) / (t + 1); of arguments
 * up to tan(pi / 8), Taylor to the 25th power. */
PB_PIXEL double pb_vm_atan64(double t)
{
    const bool large = t > 0.41421356237309503;
    const double s = large ? (t - 1.0) / (t + 1.0) : t;
    const double z = s * s;
    double p = 1.0 / 25.0;
    p = p * z - 1.0 / 23.0;
    p = p * z + 1.0 / 21.0;
    p = p * z - 1.0 / 19.0;
    p = p * z + 1.0 / 17.0;
    p = p * z - 1.0 / 15.0;
    p = p * z + 1.0 / 13.0;
    p = p * z - 1.0 / 11.0;
    p = p * z + 1.0 / 9.0;
    p = p * z - 1.0 / 7.0;
    p = p * z + 1.0 / 5.0;
    p = p * z - 1.0 / 3.0;
    return (large ? 0.78539816339744831 : 0.0) + (s + s * z * p);
}

/* Beyond this angle float32 knows directions to half a radian at best. */
#define PB_VM_ANGLE_MAX 4194304.0f

/* The sine of x + quarters * pi / 2, |x| <= PB_VM_ANGLE_MAX. x = k * pi/2 + r, |r| <= pi/4; k times
 * the first 31 bits of pi/2 is exact, and so is the difference. Taylor to r^13 and r^12. */
PB_PIXEL double pb_vm_sin64(double x, uint64_t quarters)
{
    const double shift = 0x1.8p52;
    const double t = x * 0.63661977236758134 + shift;
    const double k = t - shift;
    const double r = (x - k * 0x1.921fb544p0) - k * 0x1.0b4611a626331p-34;
    const double z = r * r;
    const uint64_t quadrant = pb_vm_bits(t) + quarters;
    double s = 1.0 / 6227020800.0;
    s = s * z - 1.0 / 39916800.0;
    s = s * z + 1.0 / 362880.0;
    s = s * z - 1.0 / 5040.0;
    s = s * z + 1.0 / 120.0;
    s = s * z - 1.0 / 6.0;
    s = r + r * z * s;
    double c = 1.0 / 479001600.0;
    c = c * z - 1.0 / 3628800.0;
    c = c * z + 1.0 / 40320.0;
    c = c * z - 1.0 / 720.0;
    c = c * z + 1.0 / 24.0;
    c = c * z - 0.5;
    c = 1.0 + z * c;
    const double v = (quadrant & 1u) != 0 ? c : s;
    return (quadrant & 2u) != 0 ? -v : v;
}

PB_PIXEL float pb_vm_ADD(float x, float y)
{
    return x + y;
}
PB_PIXEL float pb_vm_SUB(float x, float y)
{
    return x - y;
}
PB_PIXEL float pb_vm_MUL(float x, float y)
{
    return x * y;
}
PB_PIXEL float pb_vm_DIV(float x, float y)
{
    const float q = x / y;
    return y == 0.0f ? pb_pixel_nan() : q;
}

PB_PIXEL float pb_vm_POW(float x, float y)
{
    const float a = fabsf(x), half = y * 0.5f;
    const float signed_to_whole = rintf(half) != half ? -1.0f : 1.0f; /* odd, even */
    const float to_whole = rintf(y) != y ? pb_pixel_nan() : signed_to_whole;
    const float at_zero = y > 0.0f ? 0.0f : pb_pixel_nan();
    const float at_infinity = y > 0.0f ? a : 0.0f;
    float r = (float)pb_vm_exp64((double)y * pb_vm_log64((double)a));
    r = a > FLT_MAX ? at_infinity : r;
    r = x < 0.0f ? r * to_whole : r;
    r = x == 0.0f ? at_zero : r;
    r = y == 0.0f ? 1.0f : r;
    r = x != x ? x : r;
    return y != y ? y : r;
}

PB_PIXEL float pb_vm_NEG(float x)
{
    return -x;
}
PB_PIXEL float pb_vm_ABS(float x)
{
    return fabsf(x);
}
PB_PIXEL float pb_vm_SQRT(float x)
{
    return sqrtf(x);
}
PB_PIXEL float pb_vm_LOG(float x)
{
    const float r = x > 0.0f ? pb_vm_log32(x) : pb_pixel_nan();
    return x <= FLT_MAX ? r : x;
}
PB_PIXEL float pb_vm_EXP(float x)
{
    return pb_vm_exp32(x);
}

PB_PIXEL float pb_vm_MIN(float x, float y)
{
    const float r = x < y ? x : y; /* y when it is NaN */
    return x != x ? x : r;
}
PB_PIXEL float pb_vm_MAX(float x, float y)
{
    const float r = x > y ? x : y;
    return x != x ? x : r;
}
/* min(max(x, low), high). An x of NaN comes through by itself; low and high are numbers for all
 * pixels as a rule, and what is asked of them alone is asked once a loop. */
PB_PIXEL float pb_vm_CLAMP(float x, float low, float high)
{
    const float above = x <= low ? low : x;
    const float r = above >= high ? high : above;
    const float known = low != low ? low : r;
    return high != high ? high : known;
}
PB_PIXEL float pb_vm_WHERE(float condition, float yes, float no)
{
    const float chosen = condition != 0.0f ? yes : no;
    return condition != condition ? condition : chosen;
}

/* holds: the comparison, false when an operand is NaN. */
PB_PIXEL float pb_vm_truth(bool holds, float x, float y)
{
    const float truth = holds ? 1.0f : 0.0f;
    return x != x || y != y ? pb_pixel_nan() : truth;
}
PB_PIXEL float pb_vm_LT(float x, float y)
{
    return pb_vm_truth(x < y, x, y);
}
PB_PIXEL float pb_vm_LE(float x, float y)
{
    return pb_vm_truth(x <= y, x, y);
}
PB_PIXEL float pb_vm_GT(float x, float y)
{
    return pb_vm_truth(x > y, x, y);
}
PB_PIXEL float pb_vm_GE(float x, float y)
{
    return pb_vm_truth(x >= y, x, y);
}
PB_PIXEL float pb_vm_EQ(float x, float y)
{
    return pb_vm_truth(x == y, x, y);
}
PB_PIXEL float pb_vm_NE(float x, float y)
{
    return pb_vm_truth(x != y, x, y);
}

PB_PIXEL float pb_vm_AND(float x, float y)
{
    const float both = x != x || y != y ? pb_pixel_nan() : 1.0f;
    return x == 0.0f || y == 0.0f ? 0.0f : both;
}
PB_PIXEL float pb_vm_OR(float x, float y)
{
    const bool is_x = x == x && x != 0.0f, is_y = y == y && y != 0.0f;
    const float neither = x != x || y != y ? pb_pixel_nan() : 0.0f;
    return is_x || is_y ? 1.0f : neither;
}

PB_PIXEL float pb_vm_ROUND(float x)
{
    return rintf(x);
}
PB_PIXEL float pb_vm_FLOOR(float x)
{
    return floorf(x);
}
/* fmodf, which takes a bit of the quotient at a time on CPUs. A quotient below 2^28 is nearer to
 * its own whole number than to the next one by more than float64 rounds, and what the division
 * leaves is exact. */
PB_PIXEL float pb_vm_rest(float x, float y)
{
#ifndef __CUDACC__
    const double quotient = (double)x / (double)y;
    if (fabs(quotient) < 0x1p28 && fabsf(y) <= FLT_MAX)
        return copysignf((float)((double)x - trunc(quotient) * (double)y), x);
#endif
    return fmodf(x, y);
}

PB_PIXEL float pb_vm_MOD(float x, float y)
{
    const float rest = pb_vm_rest(x, y); /* has the sign of x; of a divisor 0 it is NaN */
    return rest != 0.0f && (rest < 0.0f) != (y < 0.0f) ? rest + y : rest;
}

/* x: a whole number up to 2^24, which float32 holds exactly; negative ones as two's complement.
 * from + n up to 32, n up to 24. */
PB_PIXEL float pb_vm_BITS(float x, float from, float n)
{
    const bool is_place = (from == rintf(from)) & (n == rintf(n)) & (from >= 0.0f) & (n >= 1.0f) &
                          (n <= 24.0f) & (from + n <= 32.0f);
    const bool good = (x == rintf(x)) & (fabsf(x) <= 16777216.0f) & is_place;
    const uint32_t bits = (uint32_t)(int32_t)(good ? x : 0.0f);
    const uint32_t shift = (uint32_t)(int32_t)(is_place ? from : 0.0f);
    const uint32_t width = (uint32_t)(int32_t)(is_place ? n : 1.0f);
    const float field = (float)(int32_t)((bits >> shift) & ((1u << width) - 1u));
    return good ? field : pb_pixel_nan();
}

PB_PIXEL float pb_vm_SIN(float x)
{
    const bool good = fabsf(x) <= PB_VM_ANGLE_MAX;
    const float r = (float)pb_vm_sin64(good ? (double)x : 0.0, 0);
    return good ? r : pb_pixel_nan();
}
PB_PIXEL float pb_vm_COS(float x)
{
    const bool good = fabsf(x) <= PB_VM_ANGLE_MAX;
    const float r = (float)pb_vm_sin64(good ? (double)x : 0.0, 1);
    return good ? r : pb_pixel_nan();
}

PB_PIXEL float pb_vm_ATAN2(float y, float x)
{
    const double a = (double)fabsf(x), b = (double)fabsf(y);
    const double less = a < b ? a : b, more = a < b ? b : a;
    const double angle = pb_vm_atan64(less / more); /* 0 / 0 is invalid */
    const double steep = a < b ? 1.5707963267948966 - angle : angle;
    const double half = x < 0.0f ? 3.1415926535897931 - steep : steep;
    const float r = (float)(y < 0.0f ? -half : half);
    return x != x || y != y ? pb_pixel_nan() : r;
}

PB_PIXEL float pb_vm_VALID(float x)
{
    return x == x ? 1.0f : 0.0f;
}
#endif
