/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Values with more digits than float32: split into float32 planes, and stored without loss. The
 * residuals are scaled, so that they are not subnormal unless the value is, and small enough
 * to be finite if the value is. */
#include "pipeline/codec/rest.h"

#include "pipeline/codec/predictor.h"

#include <math.h>
#include <stdint.h>

#define DIGIT 16777216.0 /* 2^24: precision of a float32 */

uint32_t pb_rest_planes(enum pb_type type)
{
    return type == PB_F64 ? 2 : type == PB_I32 || type == PB_U32 ? 1 : 0;
}

void pb_rest_split(double v, float rest[PB_REST_MAX])
{
    double left = v - (double)(float)v;
    rest[0] = (float)(left * DIGIT);
    rest[1] = (float)((left - (double)rest[0] / DIGIT) * DIGIT * DIGIT);
}

double pb_rest_join(float a, float b, float c)
{
    return ((double)a + (double)b / DIGIT) + (double)c / (DIGIT * DIGIT);
}

/* Stored form of the valid x. Counts x if it is nodata, and moves it to a neighbour. */
static double stored(const struct pb_quantizer *q, double x, double low, double high, size_t *hits)
{
    double r = x < low ? low : x > high ? high : x;
    if (!pb_type_is_float(q->type))
        r = nearbyint(r);
    const bool near = pb_type_is_float(q->type) && r > q->below && r < q->above;
    if (r != q->nodata && !near)
        return r;
    ++*hits;
    return x < q->nodata ? q->below : q->above;
}

size_t pb_rest_quantize(const struct pb_quantizer *q, const float *in,
                        const float *const rest[PB_REST_MAX], uint32_t n_rest, size_t n, void *out,
                        size_t step)
{
    size_t hits = 0;
    for (size_t i = 0; i < n; i++) {
        double x = pb_rest_join(in[i], rest[0][i], n_rest > 1 ? rest[1][i] : 0), r;
        bool valid = isfinite(in[i]);
        if (q->type == PB_I32) {
            r = valid ? stored(q, x, INT32_MIN, INT32_MAX, &hits) : q->nodata;
            ((int32_t *)out)[i * step] = (int32_t)r;
        } else if (q->type == PB_U32) {
            r = valid ? stored(q, x, 0, UINT32_MAX, &hits) : q->nodata;
            ((uint32_t *)out)[i * step] = (uint32_t)r;
        } else {
            r = valid ? stored(q, x, -INFINITY, INFINITY, &hits) : q->nodata;
            ((double *)out)[i * step] = isnan(r) ? (double)NAN : r;
        }
    }
    return q->below != q->nodata ? hits : 0; /* values do not move if there is a mask */
}
