/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Longitudes are first unrolled so that neighbouring points are never more than 180 degrees apart.
 * The change of longitude along the whole outline distinguishes the cases: 0 is an ordinary ring
 * (possibly across the antimeridian); +-360 means that it goes around a pole, and then the ring is
 * cut at the antimeridian and led over the pole, as GeoJSON requires. */
#include "pipeline/raster/outline.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define N PB_OUTLINE_POINTS

void pb_outline_pixels(int32_t width, int32_t height, double out_xy[N][2])
{
    const double corner[5][2] = {
        {0, 0}, {0, height}, {width, height}, {width, 0}, {0, 0},
    };
    for (size_t i = 0; i < N; i++) {
        const double *a = corner[i / PB_OUTLINE_EDGE], *b = corner[i / PB_OUTLINE_EDGE + 1];
        double t = (double)(i % PB_OUTLINE_EDGE) / PB_OUTLINE_EDGE;
        out_xy[i][0] = a[0] + t * (b[0] - a[0]);
        out_xy[i][1] = a[1] + t * (b[1] - a[1]);
    }
}

/* Makes longitudes continuous; returns the change along the whole outline: 0, 360 or -360. -1 = not
 * on the Earth. */
static double unroll(double lonlat[N][2])
{
    for (size_t i = 0; i < N; i++) {
        double *p = lonlat[i];
        if (!isfinite(p[0]) || !isfinite(p[1]) || fabs(p[0]) > 540 || fabs(p[1]) > 91)
            return -1;
        /* Grids of points with one on the pole reach half a pixel past it. */
        p[1] = fmin(fmax(p[1], -90), 90);
        if (i > 0)
            p[0] -= 360 * round((p[0] - lonlat[i - 1][0]) / 360);
    }
    return -360 * round((lonlat[0][0] - lonlat[N - 1][0]) / 360);
}

static void reverse(double lonlat[N][2])
{
    for (size_t i = 0; i < N / 2; i++) {
        double swap[2] = {lonlat[i][0], lonlat[i][1]};
        memcpy(lonlat[i], lonlat[N - 1 - i], sizeof swap);
        memcpy(lonlat[N - 1 - i], swap, sizeof swap);
    }
}

static double twice_area(double lonlat[N][2])
{
    double area = 0;
    for (size_t i = 0; i < N; i++) {
        const double *a = lonlat[i], *b = lonlat[(i + 1) % N];
        area += (a[0] - lonlat[0][0]) * (b[1] - lonlat[0][1]) -
                (b[0] - lonlat[0][0]) * (a[1] - lonlat[0][1]);
    }
    return area;
}

static void add(struct pb_footprint *out, double lon, double lat)
{
    out->lonlat[out->n][0] = lon;
    out->lonlat[out->n][1] = lat;
    out->n++;
}

static double wrap(double lon)
{
    return lon - 360 * floor((lon + 180) / 360);
}

static void ring(double lonlat[N][2], struct pb_footprint *out)
{
    double west = lonlat[0][0], east = west, south = lonlat[0][1], north = south;
    if (twice_area(lonlat) < 0)
        reverse(lonlat);
    for (size_t i = 0; i < N; i++) {
        west = fmin(west, lonlat[i][0]);
        east = fmax(east, lonlat[i][0]);
        south = fmin(south, lonlat[i][1]);
        north = fmax(north, lonlat[i][1]);
    }
    /* The whole ring is moved so that it begins inside; an edge on the antimeridian stays put. */
    double shift = west < -180 || west >= 180 ? wrap(west) - west : 0;
    bool all_around = east - west >= 360; /* then the result does not depend on the first point */
    if (all_around)
        shift = -180 - west;
    west += shift;
    east = all_around ? 180 : east + shift;
    for (size_t i = 0; i < N; i++)
        add(out, fmin(lonlat[i][0] + shift, east), lonlat[i][1]);
    add(out, out->lonlat[0][0], out->lonlat[0][1]);
    const double bbox[4] = {west, south, east > 180 ? east - 360 : east, north};
    memcpy(out->bbox, bbox, sizeof bbox);
}

/* Around a pole: eastward along the outline from -180 to 180 for the north pole (westward for the
 * south pole), then along the pole's latitude back; both ways the pole lies on the left. */
static void cap(double lonlat[N][2], double gain, struct pb_footprint *out)
{
    double mean = 0, nearest = 90;
    for (size_t i = 0; i < N; i++)
        mean += lonlat[i][1] / N;
    bool north = mean > 0;
    double pole = north ? 90 : -90, sign = north ? 1 : -1;
    if ((gain > 0) != north)
        reverse(lonlat);
    size_t first = 0; /* the point that comes first after the antimeridian */
    for (size_t i = 0; i < N; i++) {
        lonlat[i][0] = wrap(lonlat[i][0]);
        nearest = fmin(nearest, fabs(lonlat[i][1]));
        if (sign * lonlat[i][0] < sign * lonlat[first][0])
            first = i;
    }
    const double *a = lonlat[(first + N - 1) % N], *b = lonlat[first];
    double span = 360 - fabs(a[0] - b[0]);
    double t = span > 0 ? (180 - fabs(a[0])) / span : 0;
    double lat = a[1] + t * (b[1] - a[1]);
    add(out, -sign * 180, lat);
    for (size_t i = 0; i < N; i++)
        add(out, lonlat[(first + i) % N][0], lonlat[(first + i) % N][1]);
    add(out, sign * 180, lat);
    add(out, sign * 180, pole);
    add(out, -sign * 180, pole);
    add(out, -sign * 180, lat);
    const double bbox[4] = {-180, north ? nearest : -90, 180, north ? 90 : -nearest};
    memcpy(out->bbox, bbox, sizeof bbox);
}

int pb_outline_footprint(double lonlat[N][2], struct pb_footprint *out_footprint)
{
    struct pb_footprint footprint = {.n = 0};
    double gain = unroll(lonlat);
    if (gain == 0 && twice_area(lonlat) != 0)
        ring(lonlat, &footprint);
    else if (gain == 360 || gain == -360)
        cap(lonlat, gain, &footprint);
    else
        return -ENODATA;
    *out_footprint = footprint;
    return 0;
}
