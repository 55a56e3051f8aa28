/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WARP_OP_H
#define PB_WARP_OP_H
/* The parameters of a step that warps, for who finds its tiles (kernels/tiling.h). */
#include "kernels/key.h"
#include "kernels/tiling.h"

struct pb_warp_op {
    char *crs;
    char *dem;    /* a band; NULL = not given */
    double pixel; /* 0 = not given */
    bool has_pixel;
    struct pb_items bounds, tiles, bands;
    int32_t align, method, grid; /* grid: enum pb_tiling */
    bool has_method;
    int32_t zoom, size;
    bool has_zoom, has_size; /* of web-mercator; size: 0 = not given */
    int32_t from, order;     /* from: enum pb_ground_model; order: 0 = not given */
    double height;
    bool has_order, has_height;
};

/* Side of the tiles of web-mercator in pixels. */
int32_t pb_warp_op_size(const struct pb_warp_op *warp);
/* The tile of that name in the grid of the step; false: there is none. */
bool pb_warp_op_tile(const struct pb_warp_op *warp, const char *name, struct pb_ground_tile *out);
#endif
