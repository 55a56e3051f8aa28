/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * J. P. Snyder, Map Projections: A Working Manual (USGS Professional Paper 1395, 1987): radii of
 * curvature 4-18 to 4-20, the isometric latitude 3-7 and its inverse 7-9. */
#include "kernels/ground_unit.h"

#include <math.h>

/* 7-9: each turn is better by the square of the eccentricity, so six reach the last digit. */
static double of_isometric(double isometric, double square)
{
    const double e = sqrt(square), tangent = exp(-isometric);
    double latitude = M_PI_2 - 2.0 * atan(tangent);

    for (int i = 0; i < 6 && square > 0; i++) {
        const double sine = e * sin(latitude);

        latitude = M_PI_2 - 2.0 * atan(tangent * pow((1.0 - sine) / (1.0 + sine), e / 2.0));
    }
    return latitude;
}

double pb_ground_latitude(const struct pb_ground_unit *unit, double y)
{
    return unit->law == PB_GROUND_MERCATOR
               ? of_isometric((y - unit->origin) * unit->radians, unit->map_square)
               : y * unit->radians;
}

void pb_ground_metres(const struct pb_ground_unit *unit, double y, double out_metres[2])
{
    if (unit->law == PB_GROUND_EVEN) {
        out_metres[0] = unit->metres[0];
        out_metres[1] = unit->metres[1];
        return;
    }
    const double latitude = pb_ground_latitude(unit, y), s = sin(latitude), c = cos(latitude);
    const double w2 = 1.0 - unit->square * s * s;
    /* The radii of curvature across and along the meridian. */
    const double across = unit->axis / sqrt(w2), along = across * (1.0 - unit->square) / w2;
    const double map = unit->map_square;
    /* How much latitude there is in the isometric one. */
    const double share =
        unit->law == PB_GROUND_MERCATOR ? c * (1.0 - map * s * s) / (1.0 - map) : 1.0;

    out_metres[0] = across * c * unit->radians;
    out_metres[1] = along * share * unit->radians;
}
