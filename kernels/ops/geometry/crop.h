/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CROP_H
#define PB_CROP_H
/* The parameters of a step that crops, for who finds its area (kernels/area.h). */
#include "kernels/key.h"

struct pb_crop {
    struct pb_items window, bounds, bands;
    char *crs;              /* of bounds; NULL: the scene's */
    char *polygons, *layer; /* a vector file; NULL: none, and its only layer */
};
#endif
