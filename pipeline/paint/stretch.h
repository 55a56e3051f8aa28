/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_STRETCH_H
#define PB_STRETCH_H
/* Maps the values of a picture to grey levels: linearly between two ends, which the visible pixels
 * have or the configuration says, or by equal shares of the visible pixels; and by gamma. Pure, but
 * for the memory that pb_stretch_find counts in; any thread. */
#include "config/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes that pb_stretch_find holds meanwhile. */
size_t pb_stretch_bytes(void);

/* A pixel is shown where every plane has a finite value, or with `any` where one has. */
bool pb_stretch_is_shown(const float *const *planes, uint32_t n_planes, bool any, size_t pixel);

/* As the operator `stretch` has it, and in its order. */
enum pb_stretch_method {
    PB_STRETCH_PERCENTILES,
    PB_STRETCH_MINMAX,
    PB_STRETCH_STDDEV,
    PB_STRETCH_EQUALIZE
};

/* Points at equal distances of the result, which is linear between two: 2, the ends, or
 * PB_STRETCH_POINTS. */
#define PB_STRETCH_POINTS 16
struct pb_stretch_curve {
    uint32_t n;
    double at[PB_STRETCH_POINTS];
    double gamma; /* the result to the power of 1 / gamma; 0 or 1: as it is */
};

struct pb_stretch_how {
    bool any; /* planes are looked at by themselves: a pixel is one of a plane's where that plane
                 has a finite value; else where all have */
    enum pb_stretch_method method;
    double percentiles[2]; /* PERCENTILES */
    double deviations;     /* STDDEV */
};

/* The points of each plane, of n_px pixels; those of a plane are untouched where none of its pixels
 * is shown, and *out_any false when none of any is. */
int pb_stretch_find(const float *const *planes, uint32_t n_planes, size_t n_px,
                    const struct pb_stretch_how *how, struct pb_err *err,
                    struct pb_stretch_curve *out, bool *out_any);
/* Where a finite value lies, 0 .. 1; the first point may be above the last one of two. */
double pb_stretch_share(const struct pb_stretch_curve *curve, double value);
/* 0 at low and below, 255 at high and above. */
uint8_t pb_stretch_shade(double value, double low, double high);
#endif
