/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/numbers/lonlat.h"

#include "pipeline/raster/ground.h"

#include <math.h>
#include <stdio.h>

enum { WGS84 = 4326, TURN = 360 };

bool pb_lonlat_init(struct pb_lonlat *l, const char *crs_code, const double transform[6], int32_t w,
                    int32_t h)
{
    const double *const t = transform;
    int epsg = 0;
    if (sscanf(crs_code, "EPSG:%d", &epsg) != 1)
        return false;
    l->w = w;
    l->h = h;
    for (int i = 0; i < PB_LONLAT_NODES * PB_LONLAT_NODES; i++) {
        const int column = i % PB_LONLAT_NODES, row = i / PB_LONLAT_NODES;
        const double x = (double)w * column / PB_LONLAT_CELLS;
        const double y = (double)h * row / PB_LONLAT_CELLS;
        l->lon[i] = t[0] + x * t[1] + y * t[2];
        l->lat[i] = t[3] + x * t[4] + y * t[5];
    }
    return epsg == WGS84 ||
           pb_raster_points(epsg, WGS84, PB_LONLAT_NODES * PB_LONLAT_NODES, l->lon, l->lat);
}

/* Longitude of a node near `first`: not on the other side of the antimeridian. */
static double near(double lon, double first)
{
    return lon - first > TURN / 2.0 ? lon - TURN : first - lon > TURN / 2.0 ? lon + TURN : lon;
}

bool pb_lonlat_at(const struct pb_lonlat *l, double x, double y, double *out_lon, double *out_lat)
{
    const double u = x / l->w * PB_LONLAT_CELLS, v = y / l->h * PB_LONLAT_CELLS;
    const int col = u < 0 ? 0 : u >= PB_LONLAT_CELLS ? PB_LONLAT_CELLS - 1 : (int)u;
    const int row = v < 0 ? 0 : v >= PB_LONLAT_CELLS ? PB_LONLAT_CELLS - 1 : (int)v;
    const double *const lon = &l->lon[row * PB_LONLAT_NODES + col];
    const double *const lat = &l->lat[row * PB_LONLAT_NODES + col];
    const double a = u - col, b = v - row;
    const double weight[4] = {(1 - a) * (1 - b), a * (1 - b), (1 - a) * b, a * b};
    const int node[4] = {0, 1, PB_LONLAT_NODES, PB_LONLAT_NODES + 1};
    double east = 0, north = 0;
    for (int i = 0; i < 4; i++) {
        east += weight[i] * near(lon[node[i]], lon[0]);
        north += weight[i] * lat[node[i]];
    }
    *out_lon = east >= TURN / 2.0 ? east - TURN : east < -TURN / 2.0 ? east + TURN : east;
    *out_lat = north;
    return isfinite(east) && isfinite(north);
}
