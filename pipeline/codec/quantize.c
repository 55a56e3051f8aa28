/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* One loop a type, all selects and no branches, so that it vectorises on any x86-64 or ARM. The
 * arithmetic of a pixel: kernels/codec/quantize_pixel.h. */
#include "pipeline/codec/quantize.h"

#include "kernels/codec/quantize_pixel.h"
#include "pipeline/codec/predictor.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdint.h>

enum { NEAR_MOST = 8 }; /* more than the float32 values on each side that may count as nodata */

static const struct {
    double min, max;
} range[PB_TYPE_COUNT] = {
    [PB_U8] = {0, 255},
    [PB_I16] = {INT16_MIN, INT16_MAX},
    [PB_U16] = {0, UINT16_MAX},
    [PB_I32] = {INT32_MIN, INT32_MAX},
    [PB_U32] = {0, UINT32_MAX},
    [PB_F32] = {-(double)FLT_MAX, (double)FLT_MAX},
    [PB_F64] = {-DBL_MAX, DBL_MAX},
};

/* The float next to nodata, towards `to`, that no reader treats as nodata. At the ends of the range
 * readers treat all values there as nodata (pb_pixel_is_nodata_f32): then a few values further. */
static double beside_f32(float nodata, float to)
{
    float v = nextafterf(nodata, to);
    for (int i = 0; i < NEAR_MOST && pb_pixel_is_nodata_f32(v, nodata); i++)
        v = nextafterf(v, to);
    return (double)v;
}

/* Same for float64, with the same distances as in float32. */
static double beside_f64(double nodata, double to)
{
    double v = nextafter(nodata, to);
    float f = (float)nodata;
    for (int i = 0; i < NEAR_MOST && isfinite(f) && pb_pixel_is_nodata_f64(v, nodata); i++) {
        f = nextafterf(f, (float)to);
        v = (double)f;
    }
    return v;
}

int pb_quantizer_init(struct pb_quantizer *quantizer, enum pb_type type, double nodata)
{
    bool is_float = type == PB_F32 || type == PB_F64;
    struct pb_quantizer q = {.type = type, .nodata = nodata, .below = nodata, .above = nodata};
    if (is_float && isnan(nodata)) {
        *quantizer = q;
        return 0;
    }
    if (!(nodata >= range[type].min && nodata <= range[type].max))
        return -EINVAL;
    if (!is_float && nodata != nearbyint(nodata))
        return -EINVAL;
    if (type == PB_F32) {
        q.nodata = (double)(float)nodata;
        q.below = beside_f32((float)nodata, -INFINITY);
        q.above = beside_f32((float)nodata, INFINITY);
    } else if (type == PB_F64) {
        q.below = beside_f64(nodata, (double)-INFINITY);
        q.above = beside_f64(nodata, (double)INFINITY);
    } else {
        q.below = nodata - 1;
        q.above = nodata + 1;
    }
    if (q.below < range[type].min)
        q.below = q.above;
    if (q.above > range[type].max)
        q.above = q.below;
    *quantizer = q;
    return 0;
}

int pb_quantizer_init_masked(struct pb_quantizer *quantizer, enum pb_type type, double fill)
{
    int rc = pb_quantizer_init(quantizer, type, fill);
    if (rc == 0)
        quantizer->below = quantizer->above = quantizer->nodata;
    return rc;
}

#define SMALL_INTEGER(name, ctype, type)                                                           \
    PB_CLONES static size_t name(const struct pb_quantizer *q, const float *restrict in, size_t n, \
                                 ctype *restrict out, size_t step)                                 \
    {                                                                                              \
        const float low = (float)range[type].min, high = (float)range[type].max;                   \
        const float nodata = (float)q->nodata, below = (float)q->below, above = (float)q->above;   \
        size_t hits = 0;                                                                           \
        for (size_t i = 0; i < n; i++)                                                             \
            out[i * step] =                                                                        \
                (ctype)(int32_t)pb_quantize_small(in[i], low, high, nodata, below, above, &hits);  \
        return hits;                                                                               \
    }
SMALL_INTEGER(to_u8, uint8_t, PB_U8)
SMALL_INTEGER(to_i16, int16_t, PB_I16)
SMALL_INTEGER(to_u16, uint16_t, PB_U16)

static inline double round_to(const struct pb_quantizer *q, double low, double high, double x,
                              size_t *hits)
{
    return pb_quantize_large(x, low, high, q->nodata, q->below, q->above, hits);
}

PB_CLONES static size_t to_i32(const struct pb_quantizer *quantizer, const float *restrict in,
                               size_t n, int32_t *restrict out, size_t step)
{
    const struct pb_quantizer q = *quantizer;
    size_t hits = 0;
    for (size_t i = 0; i < n; i++)
        out[i * step] = (int32_t)round_to(&q, INT32_MIN, INT32_MAX, (double)in[i], &hits);
    return hits;
}

PB_CLONES static size_t to_u32(const struct pb_quantizer *quantizer, const float *restrict in,
                               size_t n, uint32_t *restrict out, size_t step)
{
    const struct pb_quantizer q = *quantizer;
    size_t hits = 0;
    /* Converts via int32, because every vector unit has that conversion. */
    for (size_t i = 0; i < n; i++) {
        double r = round_to(&q, 0, UINT32_MAX, (double)in[i], &hits);
        out[i * step] = (uint32_t)(int32_t)(r - 2147483648.0) ^ UINT32_C(0x80000000);
    }
    return hits;
}

PB_CLONES static size_t to_f32(const struct pb_quantizer *q, const float *restrict in, size_t n,
                               float *restrict out, size_t step)
{
    const float nodata = isnan(q->nodata) ? NAN : (float)q->nodata;
    const float below = (float)q->below, above = (float)q->above;
    size_t hits = 0;
    for (size_t i = 0; i < n; i++)
        out[i * step] = pb_quantize_f32(in[i], nodata, below, above, &hits);
    return hits;
}

PB_CLONES static size_t to_f64(const struct pb_quantizer *q, const float *restrict in, size_t n,
                               double *restrict out, size_t step)
{
    const double nodata = isnan(q->nodata) ? (double)NAN : q->nodata;
    const double below = q->below, above = q->above;
    size_t hits = 0;
    for (size_t i = 0; i < n; i++)
        out[i * step] = pb_quantize_f64((double)in[i], nodata, below, above, &hits);
    return hits;
}

size_t pb_quantize(const struct pb_quantizer *q, const float *in, size_t n, void *out, size_t step)
{
    size_t hits = 0; /* count of valid values that are nodata */
    switch (q->type) {
    case PB_U8:
        hits = to_u8(q, in, n, out, step);
        break;
    case PB_I16:
        hits = to_i16(q, in, n, out, step);
        break;
    case PB_U16:
        hits = to_u16(q, in, n, out, step);
        break;
    case PB_I32:
        hits = to_i32(q, in, n, out, step);
        break;
    case PB_U32:
        hits = to_u32(q, in, n, out, step);
        break;
    case PB_F32:
        hits = to_f32(q, in, n, out, step);
        break;
    case PB_F64:
    case PB_TYPE_COUNT:
        hits = to_f64(q, in, n, out, step);
        break;
    }
    return q->below != q->nodata ? hits : 0; /* values do not move if there is a mask */
}

void pb_quantize_nodata(const struct pb_quantizer *q, size_t n, void *out)
{
    const float invalid = NAN;
    size_t bytes = pb_type_bytes(q->type);
    for (size_t i = 0; i < n; i++)
        pb_quantize(q, &invalid, 1, (char *)out + i * bytes, 1);
}
