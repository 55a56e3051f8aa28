/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PAINT_STEPS_H
#define PB_PAINT_STEPS_H
/* A painter's levels or colours as steps of its values, which a device paints with
 * (kernels/codec/paint_pixel.h). Between two stops of a ramp each channel only rises or only falls
 * with the value; the first value of every step is therefore found by bisection with the painter
 * itself, and a device needs none of its arithmetic. Pure, except for memory; any thread. */
#include "kernels/codec/paint_pixel.h"
#include "pipeline/paint/painter.h"

struct pb_paint_steps {
    uint32_t n;
    uint8_t invalid[4]; /* with a ramp: colour of values that are not finite */
    const struct pb_paint_step *step;
};

/* Finds the steps of a painter whose planes have one range. room: PB_PAINT_STEPS_MAX entries.
 * Returns their count; 0: there are more, or no memory. */
uint32_t pb_paint_steps_find(const struct pb_painter *painter, struct pb_paint_step *room);
/* A device's description of the painter. Without a ramp all planes have the range of the first. */
struct pb_paint pb_paint_of(const struct pb_painter *painter, const struct pb_paint_steps *steps);
#endif
