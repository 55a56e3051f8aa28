/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_REST_H
#define PB_REST_H
/* Residuals: splits v into three float32 terms, v = a + b * 2^-24 + c * 2^-48: a is v
 * rounded to float32, b the rounded remainder after a, and c the remainder after both. Exact for
 * all integers of 32 bits, whose c is 0, and for doubles that are normal numbers in float32, from
 * 1.2e-38 to 3.4e38. Bands of such types are therefore sent as float32 planes with residual
 * planes. Pure; any thread. */
#include "pipeline/codec/quantize.h"

#include <stdint.h>

enum { PB_REST_MAX = 2 };

/* Count of residual planes for values of the type: 1 for 32-bit integers, 2 for float64, else 0. */
uint32_t pb_rest_planes(enum pb_type type);
void pb_rest_split(double v, float rest[PB_REST_MAX]);
double pb_rest_join(float a, float b, float c);
/* Like pb_quantize, for values with residuals, to I32, U32 or F64: rest[k][i], k < n_rest; n_rest 1
 * or 2. If in[i] is NaN the residuals are ignored. */
size_t pb_rest_quantize(const struct pb_quantizer *quantizer, const float *in,
                        const float *const rest[PB_REST_MAX], uint32_t n_rest, size_t n, void *out,
                        size_t step);
#endif
