/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_FRAMES_PIXEL_H
#define PB_FRAMES_PIXEL_H
/* Which part of a grid a core of another coordinate system needs, for both devices. */
#include "kernels/chain/chain_stage.h"
#include "kernels/resample/warp_pixel.h"

PB_PIXEL struct pb_warp_box pb_frames_no_box(void)
{
    struct pb_warp_box box;
    box.x0 = box.y0 = (double)INFINITY;
    box.x1 = box.y1 = -(double)INFINITY;
    return box;
}

/* Adds to `box`, in pixels of grid `from`, what a leg needs of it; rect: of the leg's own grid. */
PB_PIXEL void pb_frames_add(struct pb_warp_box *box, const struct pb_chain_leg *leg,
                            const struct pb_chain_grid *to, const struct pb_chain_grid *from,
                            const struct pb_rect *rect)
{
    const struct pb_map own = to->own, back = from->own;
    struct pb_warp_box area;
    if (rect->w == 0) {
        return;
    }
    area.x0 = (rect->x - own.offset_x) / own.scale_x;
    area.y0 = (rect->y - own.offset_y) / own.scale_y;
    area.x1 = (rect->x + rect->w - own.offset_x) / own.scale_x;
    area.y1 = (rect->y + rect->h - own.offset_y) / own.scale_y;
    const struct pb_warp_box bounds = pb_warp_bounds(leg->warp, &area);
    box->x0 = fmin(box->x0, bounds.x0 * back.scale_x + back.offset_x);
    box->y0 = fmin(box->y0, bounds.y0 * back.scale_y + back.offset_y);
    box->x1 = fmax(box->x1, bounds.x1 * back.scale_x + back.offset_x);
    box->y1 = fmax(box->y1, bounds.y1 * back.scale_y + back.offset_y);
}

/* The pixels of the grid in the box; w and h are 0 when there are none. */
PB_PIXEL struct pb_rect pb_frames_rect(const struct pb_warp_box *box, int32_t w, int32_t h)
{
    const double x0 = fmax(floor(box->x0), 0.0), y0 = fmax(floor(box->y0), 0.0);
    const double x1 = fmin(ceil(box->x1), (double)w), y1 = fmin(ceil(box->y1), (double)h);
    struct pb_rect out = {0, 0, 0, 0};
    if (x1 > x0 && y1 > y0) {
        out.x = (int32_t)x0;
        out.y = (int32_t)y0;
        out.w = (int32_t)(x1 - x0);
        out.h = (int32_t)(y1 - y0);
    }
    return out;
}
#endif
