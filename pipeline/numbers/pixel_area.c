/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Area of a cell of an ellipsoid: J. P. Snyder, Map Projections: A Working Manual (USGS
 * Professional Paper 1395, 1987), equations 3-11 to 3-13 (authalic latitude). */
#include "pipeline/numbers/pixel_area.h"

#include <math.h>

bool pb_pixel_area_varies(const struct pb_raster_info *info)
{
    return info->unit.law != PB_GROUND_EVEN;
}

/* Area between the equator and a latitude over one radian of longitude, in squares of the
 * semi-minor axis. */
static double below(double latitude, double square)
{
    const double sine = sin(latitude), e = sqrt(square);
    if (square <= 0)
        return sine;
    return (sine / (1 - square * sine * sine) + atanh(e * sine) / e) / 2;
}

double pb_pixel_area(const struct pb_raster_info *info, const double transform[6], int32_t row)
{
    const struct pb_ground_unit *const unit = &info->unit;
    const double *const t = transform, *const metres = unit->metres;
    if (!info->has_transform || !info->has_crs)
        return (double)NAN;
    if (!pb_pixel_area_varies(info))
        return metres[0] > 0 ? fabs(t[1] * t[5] - t[2] * t[4]) * metres[0] * metres[1]
                             : (double)NAN;
    if (t[2] != 0 || t[4] != 0)
        return (double)NAN;
    double edge[2];
    for (int i = 0; i < 2; i++) {
        const double latitude = pb_ground_latitude(unit, t[3] + t[5] * (row + i));
        edge[i] = below(fmax(-M_PI_2, fmin(M_PI_2, latitude)), unit->square);
    }
    return fabs(edge[1] - edge[0]) * fabs(t[1] * unit->radians) * unit->axis * unit->axis *
           (1 - unit->square);
}
