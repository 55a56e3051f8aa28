/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/tiles/tiles.h"

#include "pipeline/raster/ground.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    LONLAT = 4326,
    SAMPLES = 11, /* points along an edge of a square that are tested for being in its zone */
    SQUARE = 100000,
    SOUTH = 10000000
};
/* Largest bulge of the footprint beyond the lines between its points, as a fraction of its extent.
 */
#define BULGE 0.02

static int add(struct pb_tile_list *list, const struct pb_ground_tile *tile, struct pb_err *err)
{
    if (list->n == PB_TILES_LOOKED_AT_MAX)
        return pb_fail(err, PB_E_PIPELINE_TILES,
                       "more than %d tiles surround the scene; %d may be made of one scene",
                       PB_TILES_LOOKED_AT_MAX, PB_TILES_MAX);
    list->tile[list->n++] = *tile;
    return 0;
}

/* Degrees of longitude from the footprint's west to its east. No footprint has zero width: one
 * whose east equals its west extends around the Earth. */
static double width_of(const struct pb_footprint *f)
{
    const double wide = fmod(f->bbox[2] - f->bbox[0] + 720, 360);
    return wide > 0 ? wide : 360;
}

/* --- MGRS ------------------------------------------------------------------------------------- */

/* West and east of a zone at a latitude, in degrees from Greenwich; false: it has no area there.
 * Zones have other widths next to the North Sea (band V) and at Svalbard (X). */
static bool zone_reaches(int32_t zone, double lat, double out[2])
{
    const bool v = lat >= 56 && lat < 64, x = lat >= 72;
    out[0] = -180 + 6.0 * (zone - 1);
    out[1] = out[0] + 6;
    if (v && zone == 31)
        out[1] = 3;
    if (v && zone == 32)
        out[0] = 3;
    if (x && (zone == 32 || zone == 34 || zone == 36))
        return false;
    if (x && (zone == 31 || zone == 33 || zone == 35))
        out[1] += 3;
    if (x && (zone == 33 || zone == 35 || zone == 37))
        out[0] -= 3;
    return true;
}

static int epsg_of(int32_t zone, bool south)
{
    return (south ? 32700 : 32600) + zone;
}

/* True if a part of the square is in its zone and hemisphere. */
static bool exists(const struct pb_mgrs_square *s)
{
    double x[SAMPLES * SAMPLES], y[SAMPLES * SAMPLES], reach[2];
    for (int i = 0; i < SAMPLES * SAMPLES; i++) {
        const int column = i % SAMPLES, row = i / SAMPLES;
        x[i] = s->east + (double)SQUARE * column / (SAMPLES - 1);
        y[i] = s->north + (double)SQUARE * row / (SAMPLES - 1);
    }
    if (!pb_raster_points(epsg_of(s->zone, s->south), LONLAT, SAMPLES * SAMPLES, x, y))
        return false;
    for (int i = 0; i < SAMPLES * SAMPLES; i++) {
        if (isnan(x[i]) || !zone_reaches(s->zone, y[i], reach))
            continue;
        const double lon = x[i] - 360 * floor((x[i] - reach[0]) / 360);
        if (lon < reach[1])
            return true;
    }
    return false;
}

/* Extent of the footprint in a zone; false: it is not near. */
static bool extent_in(const struct pb_footprint *f, int32_t zone, bool south, double out[4])
{
    double x[PB_FOOTPRINT_POINTS], y[PB_FOOTPRINT_POINTS];
    for (size_t i = 0; i < f->n; i++) {
        x[i] = f->lonlat[i][0];
        y[i] = f->lonlat[i][1];
    }
    out[0] = out[1] = INFINITY;
    out[2] = out[3] = -INFINITY;
    if (!pb_raster_points(LONLAT, epsg_of(zone, south), f->n, x, y))
        return false;
    for (size_t i = 0; i < f->n; i++) {
        out[0] = fmin(out[0], x[i]);
        out[1] = fmin(out[1], y[i]);
        out[2] = fmax(out[2], x[i]);
        out[3] = fmax(out[3], y[i]);
    }
    const double more = BULGE * fmax(out[2] - out[0], out[3] - out[1]);
    for (int k = 0; k < 2; k++) {
        out[k] -= more;
        out[2 + k] += more;
    }
    return out[0] < 10 * SQUARE && out[2] > 0;
}

static int add_squares(const struct pb_warp_op *warp, const double extent[4], int32_t zone,
                       bool south, struct pb_tile_list *list, struct pb_err *err)
{
    struct pb_ground_tile tile;
    struct pb_mgrs_square s = {.zone = zone, .south = south};
    char name[6];
    int rc = 0;
    for (s.north = SOUTH - SQUARE; s.north >= 0; s.north -= SQUARE)
        for (s.east = SQUARE; s.east <= 8 * SQUARE && rc == 0; s.east += SQUARE) {
            if (!pb_mgrs_name(&s, name) || !pb_mgrs_tile(name, warp->pixel, &tile))
                continue;
            const double *b = tile.bounds;
            if (b[0] < extent[2] && b[2] > extent[0] && b[1] < extent[3] && b[3] > extent[1] &&
                exists(&s))
                rc = add(list, &tile, err);
        }
    return rc;
}

/* True if the footprint's longitudes are within half a zone of the zone's. */
static bool is_near(const struct pb_footprint *f, int32_t zone)
{
    const double west = f->bbox[0], lat = fmax(fabs(f->bbox[1]), fabs(f->bbox[3]));
    const double wide = width_of(f);
    /* A tile extends 110 km beyond a square that has a part in the zone. */
    const double beyond = 3.5 + 220e3 / (111e3 * fmax(cos(lat * acos(-1.0) / 180), 0.05));
    const double from = fmod(-180 + 6.0 * (zone - 1) - beyond - west + 1080, 360);
    return wide + 6 + 2 * beyond >= 360 || from <= wide || from + 6 + 2 * beyond >= 360;
}

static int find_mgrs(const struct pb_warp_op *warp, const struct pb_footprint *f,
                     struct pb_tile_list *list, struct pb_err *err)
{
    double extent[4];
    int rc = 0;
    if (width_of(f) >= 180) /* ambiguous in a zone's coordinates */
        return pb_fail(
            err, PB_E_PIPELINE_TILES,
            "the scene reaches around half of the Earth or more; %d tiles may be made of "
            "one scene",
            PB_TILES_MAX);
    for (int32_t zone = 1; zone <= 60 && rc == 0; zone++)
        for (int south = 0; south < 2 && rc == 0; south++) {
            const bool reaches = south ? f->bbox[1] < 1 : f->bbox[3] > -1;
            if (is_near(f, zone) && reaches && extent_in(f, zone, south != 0, extent))
                rc = add_squares(warp, extent, zone, south != 0, list, err);
        }
    return rc;
}

/* --- Web Mercator ----------------------------------------------------------------------------- */

/* Row of tiles at a latitude, out of n. */
static double row_of(double lat, double n)
{
    const double pi = acos(-1.0), s = asinh(tan(fmin(fmax(lat, -89.9), 89.9) * pi / 180));
    return fmin(fmax((1 - s / pi) / 2 * n, 0), n - 1e-9);
}

static int find_web(const struct pb_warp_op *warp, const struct pb_footprint *f,
                    struct pb_tile_list *list, struct pb_err *err)
{
    const int32_t t = pb_web_tile_zoom(warp->zoom, pb_warp_op_size(warp));
    const double n = (double)(1 << t), left = (f->bbox[0] + 180) / 360 * n,
                 right = left + width_of(f) / 360 * n, first = floor(left - BULGE * (right - left));
    const double high = f->bbox[3] - f->bbox[1], more = BULGE * high;
    const int32_t top = (int32_t)row_of(f->bbox[3] + more, n),
                  bottom = (int32_t)row_of(f->bbox[1] - more, n);
    struct pb_ground_tile tile;
    char name[PB_TILE_ID_BYTES];
    int rc = 0;
    for (int32_t y = top; y <= bottom && rc == 0; y++)
        for (double x = first; x <= right + BULGE * (right - left) && x < first + n && rc == 0;
             x++) {
            const int32_t column = (int32_t)(x - n * floor(x / n));
            (void)snprintf(name, sizeof name, "%d/%d/%d", t, column, y);
            if (pb_web_tile(name, warp->zoom, pb_warp_op_size(warp), &tile))
                rc = add(list, &tile, err);
        }
    return rc;
}

int pb_tiles_find(const struct pb_warp_op *warp, struct pb_raster *raster, struct pb_err *err,
                  struct pb_tile_list *out)
{
    struct pb_footprint footprint;
    int rc = 0;
    *out = (struct pb_tile_list){.tile = calloc(PB_TILES_LOOKED_AT_MAX, sizeof *out->tile)};
    if (out->tile == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory while planning");
    for (size_t i = 0; i < warp->tiles.n && rc == 0; i++)
        if (pb_warp_op_tile(warp, warp->tiles.items[i].text, &out->tile[out->n]))
            out->n++;
    if (warp->tiles.n == 0 && pb_raster_footprint(raster, NULL, &footprint) == 0)
        rc = warp->grid == PB_TILING_MGRS ? find_mgrs(warp, &footprint, out, err)
                                          : find_web(warp, &footprint, out, err);
    return rc;
}
