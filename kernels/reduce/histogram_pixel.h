/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_HISTOGRAM_PIXEL_H
#define PB_HISTOGRAM_PIXEL_H
/* Bins of a histogram (histogram.h), for the CPU and for devices: without a call of the C library,
 * which devices have others of. */
#include "kernels/pixel.h"

#define PB_HISTOGRAM_BINS 4096 /* power of two: bin i lives in slot i modulo this */

/* Finer bins than the spacing of the largest floats seen, or of the smallest ones there are, tell
 * nothing and would not fit an int32. */
enum { PB_HISTOGRAM_PRECISION = FLT_MANT_DIG - 1, PB_HISTOGRAM_FINEST = -149 };

/* 2^e, e in -1022 .. 1023. */
PB_PIXEL double pb_power_of_two(int e)
{
    const uint64_t bits = (uint64_t)(uint32_t)(e + 1023) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

/* Exact: floats times powers of two in use are doubles. */
PB_PIXEL int64_t pb_histogram_bin(float value, int e)
{
    return (int64_t)floor((double)value * pb_power_of_two(-e));
}

PB_PIXEL bool pb_histogram_fits(float min, float max, int e)
{
    return pb_histogram_bin(max, e) - pb_histogram_bin(min, e) < PB_HISTOGRAM_BINS;
}

/* The smallest exponent for which the range fits into the bins. */
PB_PIXEL int pb_histogram_exponent_of(float min, float max)
{
    const double largest = (double)fmaxf(fabsf(min), fabsf(max)); /* no subnormal number */
    uint64_t bits;
    memcpy(&bits, &largest, sizeof bits);
    int e = (int)(bits >> 52) - 1023 - PB_HISTOGRAM_PRECISION;
    if (e < PB_HISTOGRAM_FINEST) /* also of 0 */
        e = PB_HISTOGRAM_FINEST;
    while (!pb_histogram_fits(min, max, e))
        e++;
    return e;
}
#endif
