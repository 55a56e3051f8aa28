/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_AREA_H
#define PB_AREA_H
/* The part of a scene that a step names by coordinates of another system, or by polygons: what the
 * layers above find before a chain is built. Plain data. */
#include <stdbool.h>

struct pb_area {
    bool none;                       /* no pixel of the scene can be in it: the rest says nothing */
    double left, top, right, bottom; /* in pixels of the scene's grid; may lie outside of it */
};

/* The area of the step whose struct is `params`. False: there is none. */
typedef bool pb_area_find(const void *of, const void *params, struct pb_area *out);
#endif
