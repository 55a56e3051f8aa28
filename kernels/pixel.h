/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PIXEL_H
#define PB_PIXEL_H
/* What a pixel function is written with, and how a stored sample becomes a float32. Pixel functions
 * are compiled by the C compiler for the CPU loops and by nvcc for the kernels, from this one text:
 * the common subset of C11 and C++17, contraction off, no libm beyond what IEEE 754 rounds exactly.
 * That is why both devices give the same bits. */
#include "kernels/view.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#ifdef __CUDACC__
#define PB_PIXEL static __host__ __device__ __forceinline__
#else
#define PB_PIXEL static inline
#endif

/* Loops that are compiled once per instruction set and chosen when the program starts. Not under
 * sanitizers (their runtime is not up yet when the choice is made) and not with compilers that lack
 * the attribute; then the baseline alone is compiled. No clone ever uses fused multiply-add. */
#if defined(PB_CPU_CLONES) && defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__) &&  \
    !defined(__CUDACC__)
#define PB_CLONES      __attribute__((target_clones("avx512f", "avx2", "default")))
#define PB_CLONES_BITS __attribute__((target_clones("bmi2", "default"))) /* shifts by variables */
#else
#define PB_CLONES
#define PB_CLONES_BITS
#endif

/* In front of a loop whose output may be the very same array as an input (element i needs element i
 * only), so that the compiler need not fear overlap. clang's counterpart turns a loop that stays
 * scalar into a warning, so clang is left to check for overlap itself. */
#if defined(__GNUC__) && !defined(__clang__)
#define PB_INDEPENDENT _Pragma("GCC ivdep")
#else
#define PB_INDEPENDENT
#endif

/* Sample types: X(enum suffix, C type, name, type and field of struct pb_program_input for nodata).
 */
#define PB_SAMPLE_TYPES(X)                                                                         \
    X(U8, uint8_t, u8, int32_t, nodata_int)                                                        \
    X(I16, int16_t, i16, int32_t, nodata_int)                                                      \
    X(U16, uint16_t, u16, int32_t, nodata_int)                                                     \
    X(I32, int32_t, i32, int32_t, nodata_int)                                                      \
    X(U32, uint32_t, u32, uint32_t, nodata_int)                                                    \
    X(F32, float, f32, float, nodata_float)                                                        \
    X(F64, double, f64, double, nodata_float)

/* The one NaN that is ever stored: devices make different ones. */
PB_PIXEL float pb_pixel_nan(void)
{
    const uint32_t bits = 0x7fc00000u;
    float nan;
    memcpy(&nan, &bits, sizeof nan);
    return nan;
}

/* What may be stored: a finite number, or the one NaN. The only place where an overflow to infinity
 * becomes invalid. */
PB_PIXEL float pb_pixel_result(float v)
{
    return fabsf(v) <= FLT_MAX ? v : pb_pixel_nan();
}

/* Whether a stored float is its band's nodata value. A value is written into a file as text, often
 * with fewer digits than the pixels have, so a difference below 4.8e-7 of the value (4 to 7 units
 * in the last place of float32) counts as none, in float64 as well: the rule of GDAL's mask bands
 * (ARE_REAL_EQUAL), with its overflow: of a value beyond half of float32's range, such as -3.4e38,
 * every sample near that end of the range is nodata. 0 is equal to 0 alone. */
PB_PIXEL bool pb_pixel_is_nodata_f32(float v, float nodata)
{
    return v == nodata || fabsf(v - nodata) < 2.0f * FLT_EPSILON * fabsf(v + nodata);
}
PB_PIXEL bool pb_pixel_is_nodata_f64(double v, double nodata)
{
    return v == nodata || fabs(v - nodata) < 2.0 * (double)FLT_EPSILON * fabs(v + nodata);
}

/* A stored sample as float32: invalid when it is nodata (compared in its own type) or not finite.
 */
PB_PIXEL float pb_pixel_from_int(int32_t v, bool has_nodata, int32_t nodata)
{
    return has_nodata && v == nodata ? pb_pixel_nan() : (float)v;
}
PB_PIXEL float pb_pixel_from_u8(int32_t v, bool has_nodata, int32_t nodata)
{
    return pb_pixel_from_int(v, has_nodata, nodata);
}
PB_PIXEL float pb_pixel_from_i16(int32_t v, bool has_nodata, int32_t nodata)
{
    return pb_pixel_from_int(v, has_nodata, nodata);
}
PB_PIXEL float pb_pixel_from_u16(int32_t v, bool has_nodata, int32_t nodata)
{
    return pb_pixel_from_int(v, has_nodata, nodata);
}
PB_PIXEL float pb_pixel_from_i32(int32_t v, bool has_nodata, int32_t nodata)
{
    return pb_pixel_from_int(v, has_nodata, nodata);
}
PB_PIXEL float pb_pixel_from_u32(uint32_t v, bool has_nodata, uint32_t nodata)
{
    return has_nodata && v == nodata ? pb_pixel_nan() : (float)v;
}
PB_PIXEL float pb_pixel_from_f32(float v, bool has_nodata, float nodata)
{
    return has_nodata && pb_pixel_is_nodata_f32(v, nodata) ? pb_pixel_nan() : pb_pixel_result(v);
}
PB_PIXEL float pb_pixel_from_f64(double v, bool has_nodata, double nodata)
{
    return has_nodata && pb_pixel_is_nodata_f64(v, nodata) ? pb_pixel_nan()
                                                           : pb_pixel_result((float)v);
}
#endif
