/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_REST_H
#define PB_REST_H
/* What float32 does not hold of a value, as float32: v = a + b * 2^-24 + c * 2^-48, where a is v
 * rounded to float32, b what is left then, rounded as well, and c what is left of that. Exact for
 * all integers of 32 bits, whose c is 0, and for doubles that float32 has as normal numbers, from
 * 1.2e-38 to 3.4e38. So bands of such types go as planes of float32 with planes of
 * rests beside them. Pure; any thread. */
#include "pipeline/codec/quantize.h"

#include <stdint.h>

enum { PB_REST_MAX = 2 };

/* Planes of rests that values of the type have: 1 for 32-bit integers, 2 for float64, else 0. */
uint32_t pb_rest_planes(enum pb_type type);
void pb_rest_split(double v, float rest[PB_REST_MAX]);
double pb_rest_join(float a, float b, float c);
/* As pb_quantize, of values with rests, to I32, U32 or F64: rest[k][i], k < n_rest; n_rest 1 or 2.
 * Where in[i] is NaN the rests may be anything. */
size_t pb_rest_quantize(const struct pb_quantizer *quantizer, const float *in,
                        const float *const rest[PB_REST_MAX], uint32_t n_rest, size_t n, void *out,
                        size_t step);
#endif
