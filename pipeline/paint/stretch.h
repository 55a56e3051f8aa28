/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_STRETCH_H
#define PB_STRETCH_H
/* Maps the values of a picture to grey levels, linearly between two percentiles of the visible
 * pixels. Pure, but for the memory that pb_stretch_find counts in; any thread. */
#include "config/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes that pb_stretch_find holds meanwhile. */
size_t pb_stretch_bytes(void);

/* A pixel is shown where every plane has a finite value. */
bool pb_stretch_is_shown(const float *const *planes, uint32_t n_planes, size_t pixel);
/* low[i] and high[i] of each plane, of n_px pixels; untouched, and *out_any false, when none is
 * shown. */
int pb_stretch_find(const float *const *planes, uint32_t n_planes, size_t n_px,
                    const double percentiles[2], struct pb_err *err, double *low, double *high,
                    bool *out_any);
/* 0 at low and below, 255 at high and above. */
uint8_t pb_stretch_shade(double value, double low, double high);
#endif
