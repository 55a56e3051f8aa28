/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CROP_H
#define PB_CROP_H
/* The parameters of a step that crops, for who finds its area and makes its cutline
 * (kernels/area.h). */
#include "kernels/key.h"

struct pb_crop {
    struct pb_items window, bounds, bands;
    char *crs;                /* of bounds; NULL: the scene's */
    char *polygons, *layer;   /* a vector file; NULL: none, and its only layer */
    struct pb_items where;    /* an expression of SQL over the attributes; empty: all features */
    int32_t cutline, touched; /* 1: pixels outside of the polygons become invalid; 1: unless an
                                 outline passes through them */
};

/* Whether the step takes a plane of the polygons, as an input of the chain. */
bool pb_crop_cuts(const struct pb_crop *crop);
#endif
