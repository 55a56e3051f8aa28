/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_OP_GROUND_H
#define PB_OP_GROUND_H
/* A coordinate system for tests that need no PROJ: turned, a little curved, its pixels a tenth
 * larger. */
#include "kernels/ground.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static inline void op_ground_points(void *transform, size_t n, double *x, double *y)
{
    (void)transform;
    for (size_t i = 0; i < n; i++) {
        const double u = x[i], v = y[i];

        x[i] = 1.1 * u + 0.07 * v - 3.3 + 1e-4 * u * v;
        y[i] = 1.08 * v - 0.06 * u + 2.1 + 2e-4 * u * u - 1e-7 * u * u * v;
    }
}

static inline int op_ground_open(void *of, const struct pb_ground_ask *ask, char *why,
                                 size_t why_bytes, struct pb_ground_way *out)
{
    (void)of;
    (void)why;
    (void)why_bytes;
    *out = (struct pb_ground_way){.w = ask->source_w > 5 ? (int32_t)(ask->source_w * 0.95)
                                                         : ask->source_w,
                                  .h = ask->source_h,
                                  .ground = {.transform = {10, 1.1, 0, 20, 0, -1.1},
                                             .unit_metres = {1, 1},
                                             .crs = strdup("LOCAL_CS[\"test\"]")}};
    return out->ground.crs != NULL ? 0 : -12;
}

static inline void op_ground_close(void *transform)
{
    (void)transform;
}

static const struct pb_ground_finder op_ground = {
    .open = op_ground_open, .points = op_ground_points, .close = op_ground_close};
#endif
