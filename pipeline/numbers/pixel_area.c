/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Area of a cell of an ellipsoid: J. P. Snyder, Map Projections: A Working Manual (USGS
 * Professional Paper 1395, 1987), equations 3-11 to 3-13 (authalic latitude). */
#include "pipeline/numbers/pixel_area.h"

#include <math.h>
#include <string.h>

static const double wgs84_axis = 6378137.0;
static const double wgs84_square = 6.69437999014131739e-3; /* of the eccentricity */

static bool is_web_mercator(const struct pb_raster_info *info)
{
    return strcmp(info->crs_code, "EPSG:3857") == 0;
}

bool pb_pixel_area_varies(const struct pb_raster_info *info)
{
    return info->ellipsoid_axis > 0 || is_web_mercator(info);
}

/* The area between the equator and a latitude over one radian of longitude, in squares of the
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
    const double *t = transform, *unit = info->unit_metres;
    if (!info->has_transform || !info->has_crs)
        return (double)NAN;
    if (!pb_pixel_area_varies(info))
        return unit[0] > 0 ? fabs(t[1] * t[5] - t[2] * t[4]) * unit[0] * unit[1] : (double)NAN;
    if (t[2] != 0 || t[4] != 0)
        return (double)NAN;
    const bool mercator = is_web_mercator(info);
    const double axis = mercator ? wgs84_axis : info->ellipsoid_axis;
    const double square = mercator ? wgs84_square : info->ellipsoid_square;
    const double radians = mercator ? 1 / wgs84_axis : info->unit_radians;
    double edge[2];
    for (int i = 0; i < 2; i++) {
        const double y = (t[3] + t[5] * (row + i)) * radians;
        const double latitude = mercator ? atan(sinh(y)) : y;
        edge[i] = below(fmax(-M_PI_2, fmin(M_PI_2, latitude)), square);
    }
    return fabs(edge[1] - edge[0]) * fabs(t[1] * radians) * axis * axis * (1 - square);
}
