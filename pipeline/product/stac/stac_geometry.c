/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* A ring that crosses the antimeridian is unrolled to longitudes 0 .. 360 and clipped to either
 * side of 180 (Sutherland and Hodgman, one edge); the eastern half is moved back by 360.
 * Coordinates are given to 1e-7 degrees, a centimetre. */
#include "pipeline/product/stac/stac_geometry.h"

#include <math.h>

enum { RING_MAX = 2 * PB_BANDS_MAX + 2 };

struct ring {
    double lonlat[RING_MAX][2];
    size_t n;
};

static double rounded(double degrees)
{
    return round(degrees * 1e7) / 1e7 + 0.0;
}

static void put(struct ring *ring, double lon, double lat)
{
    if (ring->n < RING_MAX) {
        ring->lonlat[ring->n][0] = lon;
        ring->lonlat[ring->n][1] = lat;
        ring->n++;
    }
}

/* Keeps the part west (side -1) or east (side 1) of 180 of an unrolled, closed ring; closed again,
 * in the longitudes of GeoJSON. */
static struct ring clip(const struct ring *in, int side)
{
    struct ring out = {.n = 0};
    double back = side > 0 ? 360 : 0;
    for (size_t i = 0; i + 1 < in->n; i++) {
        const double *a = in->lonlat[i], *b = in->lonlat[i + 1];
        bool a_in = side * (a[0] - 180) >= 0, b_in = side * (b[0] - 180) >= 0;
        if (a_in)
            put(&out, a[0] - back, a[1]);
        if (a_in != b_in && a[0] != 180 && b[0] != 180)
            put(&out, 180 - back, a[1] + (b[1] - a[1]) * (180 - a[0]) / (b[0] - a[0]));
    }
    if (out.n > 0)
        put(&out, out.lonlat[0][0], out.lonlat[0][1]);
    return out;
}

/* One polygon's coordinates: an array of one ring. */
static void write_ring(struct pb_json *json, const char *key, const struct ring *ring)
{
    pb_json_array(json, key);
    pb_json_array(json, NULL);
    for (size_t i = 0; i < ring->n; i++) {
        pb_json_array(json, NULL);
        pb_json_number(json, NULL, rounded(ring->lonlat[i][0]));
        pb_json_number(json, NULL, rounded(ring->lonlat[i][1]));
        pb_json_end(json);
    }
    pb_json_end(json);
    pb_json_end(json);
}

static void write_crossing(struct pb_json *json, const struct ring *ring)
{
    struct ring unrolled = *ring;
    for (size_t i = 0; i < unrolled.n; i++)
        if (unrolled.lonlat[i][0] < 0)
            unrolled.lonlat[i][0] += 360;
    struct ring west = clip(&unrolled, -1), east = clip(&unrolled, 1);
    pb_json_string(json, "type", "MultiPolygon");
    pb_json_array(json, "coordinates");
    if (west.n >= 4)
        write_ring(json, NULL, &west);
    if (east.n >= 4)
        write_ring(json, NULL, &east);
    pb_json_end(json);
}

void pb_stac_geometry(struct pb_json *json, const struct pb_footprint *footprint)
{
    if (footprint == NULL) {
        pb_json_null(json, "geometry");
        return;
    }
    struct ring ring = {.n = 0};
    for (size_t i = 0; i < footprint->n; i++)
        put(&ring, footprint->lonlat[i][0], footprint->lonlat[i][1]);
    pb_json_object(json, "geometry");
    if (footprint->bbox[0] > footprint->bbox[2]) {
        write_crossing(json, &ring);
    } else {
        pb_json_string(json, "type", "Polygon");
        write_ring(json, "coordinates", &ring);
    }
    pb_json_end(json);
    pb_json_array(json, "bbox");
    for (int i = 0; i < 4; i++)
        pb_json_number(json, NULL, rounded(footprint->bbox[i]));
    pb_json_end(json);
}
