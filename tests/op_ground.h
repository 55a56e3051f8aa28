/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_OP_GROUND_H
#define PB_OP_GROUND_H
/* A coordinate system for tests that need no PROJ: turned, a little curved, its pixels a tenth
 * larger. A large scene is curved as much from end to end as one of OP_GROUND_SIDE pixels. */
#include "kernels/ground.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define OP_GROUND_SIDE 1024

/* transform: a double, how much the lines are curved; NULL = 1. */
static inline void op_ground_points(void *transform, size_t n, double *x, double *y)
{
    const double curved = transform != NULL ? *(const double *)transform : 1.0;

    for (size_t i = 0; i < n; i++) {
        const double u = x[i], v = y[i];

        x[i] = 1.1 * u + 0.07 * v - 3.3 + curved * 1e-4 * u * v;
        y[i] =
            1.08 * v - 0.06 * u + 2.1 + curved * 2e-4 * u * u - curved * curved * 1e-7 * u * u * v;
    }
}

static inline int op_ground_open(void *of, const struct pb_ground_ask *ask, char *why,
                                 size_t why_bytes, struct pb_ground_way *out)
{
    double *const curved = malloc(sizeof *curved);

    (void)of;
    (void)why;
    (void)why_bytes;
    if (curved == NULL)
        return -12;
    *curved = ask->source_w > OP_GROUND_SIDE ? (double)OP_GROUND_SIDE / ask->source_w : 1.0;
    *out = (struct pb_ground_way){
        .transform = curved,
        .w = ask->source_w > 5 ? (int32_t)(ask->source_w * 0.95) : ask->source_w,
        .h = ask->source_h,
        .ground = {
            .transform = {10, 1.1, 0, 20, 0, -1.1},
            .unit = {.metres = {1, 1}, .axis = 6378137, .radians = 1e-3, .law = PB_GROUND_MERCATOR},
            .crs = strdup("LOCAL_CS[\"test\"]")}};
    if (out->ground.crs == NULL)
        free(curved);
    return out->ground.crs != NULL ? 0 : -12;
}

static inline void op_ground_close(void *transform)
{
    free(transform);
}

static const struct pb_ground_finder op_ground = {
    .open = op_ground_open, .points = op_ground_points, .close = op_ground_close};
#endif
