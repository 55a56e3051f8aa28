/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_OP_GROUND_H
#define PB_OP_GROUND_H
/* A coordinate system for tests that need no PROJ: turned, a little curved, its pixels a tenth
 * larger. A large scene is curved as much from end to end as one of OP_GROUND_SIDE pixels. If a
 * query has a height, pixels are shifted by it, not quite evenly; from a grid that has a
 * place of its own and to one that is known, heights are looked up, whose pixels are 2.5 times as
 * large. */
#include "kernels/graph/way.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define OP_GROUND_SIDE 1024

struct op_ground_way {
    double curved; /* how much the lines are */
    double height;
    bool of_heights;
};

/* transform: a struct op_ground_way; NULL: a small scene at no height. */
static inline void op_ground_points(void *transform, size_t n, double *x, double *y)
{
    static const struct op_ground_way plain = {1, 0, false};
    const struct op_ground_way *const way = transform != NULL ? transform : &plain;
    const double up = way->height / 100, curved = way->curved;

    for (size_t i = 0; i < n; i++) {
        const double u = x[i], v = y[i];

        if (way->of_heights) {
            x[i] = 0.4 * u + 0.03 * v + 1.7;
            y[i] = 0.39 * v - 0.02 * u + 5.2;
            continue;
        }
        x[i] = 1.1 * u + 0.07 * v - 3.3 + curved * 1e-4 * u * v + up * (0.9 + 0.02 * up + 1e-3 * u);
        y[i] = 1.08 * v - 0.06 * u + 2.1 + curved * 2e-4 * u * u -
               curved * curved * 1e-7 * u * u * v - up * (0.4 + 0.01 * up);
    }
}

static inline int op_ground_open(void *of, const struct pb_ground_ask *ask, char *why,
                                 size_t why_bytes, struct pb_ground_way *out)
{
    struct op_ground_way *const way = malloc(sizeof *way);

    (void)of;
    (void)why;
    (void)why_bytes;
    if (way == NULL)
        return -12;
    *way = (struct op_ground_way){
        .curved = ask->source_w > OP_GROUND_SIDE ? (double)OP_GROUND_SIDE / ask->source_w : 1.0,
        .height = ask->has_height ? ask->height : 0,
        .of_heights = ask->from != NULL && ask->to != NULL};
    *out = (struct pb_ground_way){.w = ask->to_w, .h = ask->to_h, .transform = way};
    if (ask->to != NULL)
        return 0;
    out->w = ask->has_bounds     ? (int32_t)((ask->bounds[2] - ask->bounds[0]) / 1.1 + 0.5)
             : ask->source_w > 5 ? (int32_t)(ask->source_w * 0.95)
                                 : ask->source_w;
    out->h =
        ask->has_bounds ? (int32_t)((ask->bounds[3] - ask->bounds[1]) / 1.1 + 0.5) : ask->source_h;
    out->ground = (struct pb_ground){
        .transform = {10, 1.1, 0, 20, 0, -1.1},
        .unit = {.metres = {1, 1}, .axis = 6378137, .radians = 1e-3, .law = PB_GROUND_MERCATOR},
        .crs = strdup("LOCAL_CS[\"test\"]")};
    if (out->ground.crs == NULL)
        free(way);
    return out->ground.crs != NULL ? 0 : -12;
}

static inline void op_ground_close(void *transform)
{
    free(transform);
}

static const struct pb_ground_finder op_ground = {
    .open = op_ground_open, .points = op_ground_points, .close = op_ground_close};

/* Heights of every input: from 100 to 900 m. */
static inline int op_heights_place(const void *of, uint32_t input, char *why, size_t why_bytes,
                                   struct pb_ground *out)
{
    (void)of;
    (void)input;
    (void)why;
    (void)why_bytes;
    *out = (struct pb_ground){.transform = {10, 2.5, 0, 20, 0, -2.5},
                              .crs = strdup("LOCAL_CS[\"heights\"]")};
    return out->crs != NULL ? 0 : -12;
}

static inline int op_heights_range(const void *of, uint32_t input, const double box[4], char *why,
                                   size_t why_bytes, double out[2])
{
    (void)of;
    (void)input;
    (void)box;
    (void)why;
    (void)why_bytes;
    out[0] = 100;
    out[1] = 900;
    return 0;
}

static const struct pb_ground_heights op_heights = {.place = op_heights_place,
                                                    .range = op_heights_range};

/* Ways that are made by these. */
static struct pb_way_maker op_way_maker = {&op_ground, &op_heights};
static const struct pb_way_finder op_ways = {.of = &op_way_maker, .find = pb_way_make};
#endif
