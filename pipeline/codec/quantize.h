/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_QUANTIZE_H
#define PB_QUANTIZE_H
/* Converts float32 pixels to the type that a product stores. Integers are rounded to nearest even
 * and saturate. NaN (and an infinity, which a float product must not have) becomes the nodata
 * value; a NaN is always stored with the same bits. A valid value that would be stored as the
 * nodata value moves to its neighbour in the type: to the side of its exact value, upwards if it
 * was exactly nodata, and to the other side at the end of the type. For floats the neighbour is the
 * next value that readers do not treat as nodata (pb_pixel_is_nodata_f32), and values in between
 * move as well. Therefore no valid pixel is lost, and none changes by more than one step, in floats
 * eight. Any thread. */
#include "kernels/codec/quantizer.h"

#include <stdbool.h>
#include <stddef.h>

/* nodata: an integer of the type's range, or for floats a value of the type (rounded to
 * float32 for PB_F32) or NaN. -EINVAL for other values. */
int pb_quantizer_init(struct pb_quantizer *quantizer, enum pb_type type, double nodata);
/* Same for a product with a mask of valid pixels: invalid values are stored as `fill`, and no value
 * moves away from it. */
int pb_quantizer_init_masked(struct pb_quantizer *quantizer, enum pb_type type, double fill);
/* in: n values; out: n values of the type, `step` samples apart (1 = packed). Returns the count of
 * valid values that were moved off nodata. */
size_t pb_quantize(const struct pb_quantizer *quantizer, const float *in, size_t n, void *out,
                   size_t step);
/* Writes n times nodata, packed. */
void pb_quantize_nodata(const struct pb_quantizer *quantizer, size_t n, void *out);
#endif
