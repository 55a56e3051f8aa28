/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_EXACT_DIGITS_H
#define PB_EXACT_DIGITS_H
/* A double as three neighbouring digits of struct pb_exact_sum, for the CPU and for devices. */
#include "kernels/pixel.h"

enum { PB_EXACT_DIGIT_BITS = 32 };

struct pb_exact_digits {
    uint32_t limb; /* of the lowest one */
    int64_t low, middle, high;
};

/* x is finite. */
PB_PIXEL struct pb_exact_digits pb_exact_digits_of(double x)
{
    struct pb_exact_digits out;
    uint64_t bits, mantissa, low;
    memcpy(&bits, &x, sizeof bits);
    mantissa = bits & ((UINT64_C(1) << 52) - 1);
    uint32_t exponent = (uint32_t)(bits >> 52) & 0x7ff;
    if (exponent != 0)
        mantissa |= UINT64_C(1) << 52;
    else
        exponent = 1; /* subnormal: the same scale as the smallest normal numbers */
    const uint32_t place = exponent - 1; /* of the lowest bit, above 2^-1074 */
    const uint32_t shift = place % PB_EXACT_DIGIT_BITS;
    /* mantissa << shift has up to 84 bits */
    low = mantissa << shift;
    const int64_t sign = (bits >> 63) ? -1 : 1;
    out.limb = place / PB_EXACT_DIGIT_BITS;
    out.low = sign * (int64_t)(low & UINT32_MAX);
    out.middle = sign * (int64_t)(low >> 32);
    out.high = sign * (int64_t)(shift ? mantissa >> (64 - shift) : 0);
    return out;
}
#endif
