/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_AREA_H
#define PB_AREA_H
/* The part of a scene that a step names by coordinates of another system, or by polygons: what the
 * layers above find before a chain is built. Plain data. */
#include <stdbool.h>
#include <stdint.h>

struct pb_area {
    bool none;                       /* no pixel of the scene can be in it: the rest says nothing */
    double left, top, right, bottom; /* in pixels of the scene's grid; may lie outside of it */
    bool has_both;                   /* west, south, east, north in one system, for people: */
    double named[4], scene[4];       /* of what the step names, and of the scene */
    bool has_cutline;
    int32_t cutline; /* with has_cutline: the input of the chain, on the scene's grid, that is 0
                        outside of the polygons and 1 inside */
};

/* The area of the step whose struct is `params`. False: there is none. */
typedef bool pb_area_find(const void *of, const void *params, struct pb_area *out);
#endif
