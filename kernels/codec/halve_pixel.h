/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_HALVE_PIXEL_H
#define PB_HALVE_PIXEL_H
/* The mean of the valid of four pixels, for the CPU's loops (pipeline/cog/halve.c) and a device's.
 * Sums in float64: four float32 near the end of their range do not overflow, and the mean is
 * rounded once. Selects instead of branches keep loops vectorised. */
#include "kernels/pixel.h"

PB_PIXEL float pb_mean4(float a, float b, float c, float d)
{
    double sum = ((double)(a == a ? a : 0.0f) + (double)(b == b ? b : 0.0f)) +
                 ((double)(c == c ? c : 0.0f) + (double)(d == d ? d : 0.0f));
    float n = ((a == a ? 1.0f : 0.0f) + (b == b ? 1.0f : 0.0f)) +
              ((c == c ? 1.0f : 0.0f) + (d == d ? 1.0f : 0.0f));
    return (float)(sum / (double)n); /* 0 / 0 = NaN */
}
#endif
