/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_HALVE_H
#define PB_HALVE_H
/* Halves a plane of w x h pixels into ceil(w/2) x ceil(h/2); row_px: distance of rows in pixels.
 * Groups at the right and lower edge may have one column or row only. Thread: any. */
#include "kernels/codec/pixel_join.h"

#include <stddef.h>
#include <stdint.h>

/* Mean of the valid (not NaN) pixels of each 2x2 group, NaN if all are invalid; summed in float64,
 * as (a + b) + (c + d), so that the result is the same wherever it is computed. */
void pb_halve_average(const float *from, size_t from_row_px, int32_t w, int32_t h, float *to,
                      size_t to_row_px);
/* Same for n_planes planes whose pixels are valid together; plane b of the result begins at to +
 * b * to_plane_px. */
void pb_halve_average_joined(const struct pb_pixel_join *join, const float *const *planes,
                             uint32_t n_planes, size_t from_row_px, int32_t w, int32_t h, float *to,
                             size_t to_plane_px, size_t to_row_px);
/* Effective values of planes of n pixels, at planes[b] + at: out[b] gets n values, and may be
 * planes[b]. */
void pb_join_row(const struct pb_pixel_join *join, const float *const *planes, uint32_t n_planes,
                 size_t at, size_t n, float *const *out);
/* Takes the upper left pixel of each group. */
void pb_halve_nearest(const float *from, size_t from_row_px, int32_t w, int32_t h, float *to,
                      size_t to_row_px);
#endif
