/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_QUANTIZE_PIXEL_H
#define PB_QUANTIZE_PIXEL_H
/* One pixel as it is stored: the text that the CPU's loops (pipeline/codec/quantize.c) and a
 * device's (encode_rows.cuh) share. All selects and no branches, so that loops vectorise.
 *
 * Rounding is the addition and subtraction of 1.5 * 2^23 (2^52 for doubles): exact, to nearest even
 * in the default rounding mode, for all magnitudes below 2^22 (2^51), and the values are clamped
 * before. It needs neither SSE4.1's roundps nor a libm call. 8 and 16 bit integers are done in
 * float32, 32 bit ones in float64, where all of their values are exact.
 *
 * nodata, below, above: those of struct pb_quantizer in the type that is computed with; *hits is
 * counted up when x, not NaN, is nodata as stored, of floats also when it is between below and
 * above. */
#include "kernels/pixel.h"

#define PB_ROUND_F32 12582912.0f        /* 1.5 * 2^23 */
#define PB_ROUND_F64 6755399441055744.0 /* 1.5 * 2^52 */

/* Valid x is stored as r: moved to a neighbour if r is nodata. */
#define PB_APART(x, r) ((r) == nodata ? ((x) < nodata ? below : above) : (r))
/* The same of floats, where readers take what is near for nodata as well (pb_pixel_is_nodata_f32).
 */
#define PB_NEAR(x)        ((x) == nodata || ((x) > below && (x) < above))
#define PB_FLOAT_APART(x) (PB_NEAR(x) ? ((x) < nodata ? below : above) : (x))

/* U8, I16, U16; low and high: the type's limits. */
PB_PIXEL float pb_quantize_small(float x, float low, float high, float nodata, float below,
                                 float above, size_t *hits)
{
    float r = x < low ? low : x;
    r = r > high ? high : r;
    r = (r + PB_ROUND_F32) - PB_ROUND_F32;
    *hits += r == nodata ? 1 : 0;
    r = PB_APART(x, r);
    return x == x ? r : nodata;
}

/* I32, U32. */
PB_PIXEL double pb_quantize_large(double x, double low, double high, double nodata, double below,
                                  double above, size_t *hits)
{
    double r = x < low ? low : x;
    r = r > high ? high : r;
    r = (r + PB_ROUND_F64) - PB_ROUND_F64;
    *hits += r == nodata ? 1 : 0;
    r = PB_APART(x, r);
    return x == x ? r : nodata;
}

PB_PIXEL float pb_quantize_f32(float x, float nodata, float below, float above, size_t *hits)
{
    const float r = PB_FLOAT_APART(x);
    *hits += PB_NEAR(x) ? 1 : 0;
    return fabsf(x) <= FLT_MAX ? r : nodata; /* false for NaN, too */
}

PB_PIXEL double pb_quantize_f64(double x, double nodata, double below, double above, size_t *hits)
{
    const double r = PB_FLOAT_APART(x);
    *hits += PB_NEAR(x) ? 1 : 0;
    return fabs(x) <= (double)FLT_MAX ? r : nodata;
}

/* In float64, rounded once: values that are whole numbers times the scale get that number. */
PB_PIXEL float pb_quantize_scaled(float x, double scale, double offset)
{
    return (float)(((double)x - offset) / scale);
}
#undef PB_FLOAT_APART
#undef PB_NEAR
#undef PB_APART
#endif
