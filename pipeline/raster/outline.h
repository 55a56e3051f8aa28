/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_OUTLINE_H
#define PB_OUTLINE_H
/* Geometry of a footprint, without knowing how pixels become coordinates: follows the edge of an
 * image, with as many points as its bends need, and makes the polygons of GeoJSON of it, across the
 * antimeridian and around or through a pole, too. Pure, any thread. */
#include "pipeline/raster/raster.h"

#include <stdbool.h>
#include <stddef.h>

#define PB_OUTLINE_EDGE                                                                            \
    8 /* points an edge at least: a corner and seven between it and the next                       \
       */

/* Makes longitude, latitude in degrees of n places in pixel coordinates, in place (0, 0 = upper
 * left corner of the upper left pixel); NaN: not on the Earth. */
typedef void pb_outline_place(void *of, size_t n, double (*xy)[2]);

struct pb_outline {
    double w, h; /* of the image */
    pb_outline_place *place;
    void *of;
    bool is_plane; /* longitudes never jump and count at the poles, too: the image is a grid
                      of longitudes and latitudes */
    bool has_limb; /* the image may reach beyond the Earth; the outline is then the Earth's edge */
};

/* 0; -ENODATA when the image is not on the Earth or encloses nothing. */
int pb_outline_footprint(const struct pb_outline *outline, struct pb_footprint *out_footprint);
/* Leaves what is north of the equator, or south of it. -ENODATA: nothing would be left; the
 * footprint stays then. */
int pb_outline_keep_half(struct pb_footprint *footprint, bool north);
#endif
