/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/raster/ground_unit.h"

#include <math.h>

/* The radii of curvature in the prime vertical and in the meridian. */
void pb_ground_unit(double semi_major, double inverse_flattening, double latitude, double unit,
                    double out_metres[2])
{
    const double f = inverse_flattening > 0 ? 1.0 / inverse_flattening : 0.0;
    const double e2 = f * (2.0 - f), s = sin(latitude), w2 = 1.0 - e2 * s * s;
    out_metres[0] = semi_major / sqrt(w2) * cos(latitude) * unit;
    out_metres[1] = semi_major * (1.0 - e2) / (w2 * sqrt(w2)) * unit;
}
