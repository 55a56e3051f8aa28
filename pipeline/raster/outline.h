/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_OUTLINE_H
#define PB_OUTLINE_H
/* Geometry of a footprint, independent of the mapping from pixels to coordinates: follows the
 * edge of an image with as many points as its curvature needs and makes GeoJSON polygons of it,
 * also across the antimeridian and around or through a pole. Pure, any thread. */
#include "pipeline/raster/raster.h"

#include <stdbool.h>
#include <stddef.h>

#define PB_OUTLINE_EDGE                                                                            \
    8 /* points an edge at least: a corner and seven between it and the next                       \
       */

/* Converts n places from pixel coordinates to longitude, latitude in degrees, in place (0, 0 =
 * upper left corner of the upper left pixel); NaN: not on the Earth. */
typedef void pb_outline_place(void *of, size_t n, double (*xy)[2]);

struct pb_outline {
    double w, h; /* size of the image */
    pb_outline_place *place;
    void *of;
    bool is_plane; /* the image is a grid of longitudes and latitudes: longitudes never jump and are
                      valid at the poles */
    bool has_limb; /* the image may reach beyond the Earth; the outline is then the Earth's edge */
};

/* 0; -ENODATA when the image is not on the Earth or encloses nothing. */
int pb_outline_footprint(const struct pb_outline *outline, struct pb_footprint *out_footprint);
/* Keeps the part north of the equator, or south of it. -ENODATA: nothing would be left; the
 * footprint is unchanged then. */
int pb_outline_keep_half(struct pb_footprint *footprint, bool north);
#endif
