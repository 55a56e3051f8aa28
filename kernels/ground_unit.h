/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_GROUND_UNIT_H
#define PB_GROUND_UNIT_H
/* How long the units of a coordinate system's x and y are on the ground. On most maps they are
 * nearly the same everywhere. Degrees of longitude get shorter with the latitude, and so does what
 * a metre on a Mercator map stands for: there the length depends on y. Pure arithmetic. Thread:
 * any. */
#include <stdint.h>

enum pb_ground_law {
    PB_GROUND_EVEN,     /* everywhere as in the middle of the image */
    PB_GROUND_LATITUDE, /* x and y are longitude and latitude */
    PB_GROUND_MERCATOR  /* Mercator's projection, of an ellipsoid or (web Mercator) a sphere */
};

/* Zeroed: nothing is known. What stands after `law` is of the laws that depend on y. */
struct pb_ground_unit {
    double metres[2]; /* that a unit of x and of y is long in the middle of the image; 0: not known
                       */
    double axis, square; /* of the ellipsoid: semi-major axis in metres, square of eccentricity */
    double radians;      /* of a unit of x and y; MERCATOR: at the equator of the map */
    double origin;       /* MERCATOR: y of the equator */
    double map_square;   /* MERCATOR: the square that the projection takes; 0 of a sphere */
    int32_t law;         /* enum pb_ground_law */
};

/* The latitude of y, in radians; of a law other than EVEN. */
double pb_ground_latitude(const struct pb_ground_unit *unit, double y);
/* Metres that a unit of x and of y is long at y. Of latitudes beyond the poles that of x is below
 * 0. */
void pb_ground_metres(const struct pb_ground_unit *unit, double y, double out_metres[2]);
#endif
