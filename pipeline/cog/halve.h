/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_HALVE_H
#define PB_HALVE_H
/* Halves a plane of w x h pixels into ceil(w/2) x ceil(h/2); rows are so many pixels apart. Groups
 * at the right and lower edge may have one column or row only. Thread: any. */
#include <stddef.h>
#include <stdint.h>

/* Mean of the valid (not NaN) pixels of each 2x2 group, NaN when there are none; summed in float64,
 * as (a + b) + (c + d), so that the result is the same wherever it is computed. */
void pb_halve_average(const float *from, size_t from_row_px, int32_t w, int32_t h, float *to,
                      size_t to_row_px);
/* The upper left pixel of each group. */
void pb_halve_nearest(const float *from, size_t from_row_px, int32_t w, int32_t h, float *to,
                      size_t to_row_px);
#endif
