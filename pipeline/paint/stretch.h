/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_STRETCH_H
#define PB_STRETCH_H
/* Maps the values of a picture to grey levels: linearly between two ends, from the visible
 * pixels or the configuration, or by equal shares of the visible pixels; and by gamma. Pure,
 * except for the memory of pb_stretch_find; any thread. */
#include "config/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of memory of a pb_stretch_find call. */
size_t pb_stretch_bytes(void);

/* A pixel is shown where every plane has a finite value, or with `any` where one has. */
bool pb_stretch_is_shown(const float *const *planes, uint32_t n_planes, bool any, size_t pixel);

/* Methods of the operator `stretch`, in its order. */
enum pb_stretch_method {
    PB_STRETCH_PERCENTILES,
    PB_STRETCH_MINMAX,
    PB_STRETCH_STDDEV,
    PB_STRETCH_EQUALIZE
};

/* Points at equal distances of the result, which is linear between two points: 2, the ends, or
 * PB_STRETCH_POINTS. */
#define PB_STRETCH_POINTS 16
struct pb_stretch_curve {
    uint32_t n;
    double at[PB_STRETCH_POINTS];
    double gamma; /* exponent 1 / gamma of the result; 0 or 1: unchanged */
};

struct pb_stretch_how {
    bool any; /* true: planes are separate: a pixel counts in a plane that has a finite value;
                 false: where all planes have one */
    enum pb_stretch_method method;
    double percentiles[2]; /* PERCENTILES */
    double deviations;     /* STDDEV */
};

/* Finds the points of each plane, of n_px pixels; those of a plane are untouched if none of its
 * pixels is shown; *out_any is false if no pixel of any plane is shown. */
int pb_stretch_find(const float *const *planes, uint32_t n_planes, size_t n_px,
                    const struct pb_stretch_how *how, struct pb_err *err,
                    struct pb_stretch_curve *out, bool *out_any);
/* Position of a finite value, 0 .. 1; of two points the first may be above the last one. */
double pb_stretch_share(const struct pb_stretch_curve *curve, double value);
/* Returns 0 at low and below, 255 at high and above. */
uint8_t pb_stretch_shade(double value, double low, double high);
#endif
