/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/expr/mask_grow.h"
#include "kernels/focal/extreme_pixel.h"

#include <math.h>
#include <string.h>

#define RADIUS_MAX (PB_FOCAL_WINDOW_SIDE_MAX / 2)

/* One focal operation of up to 7 pixels. Pixels outside the image repeat its edge, which lies
 * nearer than they do: they add nothing. */
static pb_value grow_once(struct pb_builder *b, pb_value v, int32_t radius, bool square)
{
    struct pb_focal focal;
    const int32_t side = 2 * radius + 1;

    memset(&focal, 0, sizeof focal); /* all of it: equal operations are equal bytes */
    focal.edge = PB_EDGE_CLAMP;
    focal.radius = radius;
    if (square) {
        focal.kind = PB_FOCAL_EXTREME;
        focal.choice = PB_EXTREME_GREATEST;
        return pb_builder_focal(b, &focal, v);
    }
    focal.kind = PB_FOCAL_FULL; /* counts dropped pixels: whole numbers, exact */
    for (int32_t y = -radius; y <= radius; y++)
        for (int32_t x = -radius; x <= radius; x++)
            focal.weight[(y + radius) * side + x + radius] =
                x * x + y * y <= radius * radius ? 1.0f : 0.0f;
    return pb_builder_emit(b, PB_VM_GT, pb_builder_focal(b, &focal, v),
                           pb_builder_constant(b, 0.0f), -1);
}

pb_value pb_mask_grown(struct pb_builder *b, pb_value drop, int32_t grow, bool square)
{
    const pb_value known = pb_builder_emit(b, PB_VM_VALID, drop, -1, -1);
    pb_value v = pb_builder_emit(b, PB_VM_WHERE, known, drop, pb_builder_constant(b, 0.0f));

    for (int32_t left = grow; left > 0; left -= RADIUS_MAX)
        v = grow_once(b, v, left < RADIUS_MAX ? left : RADIUS_MAX, square);
    return pb_builder_emit(b, PB_VM_WHERE, known, v, pb_builder_constant(b, NAN));
}
