/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/tiling.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SQUARE = 100000, CYCLE = 2000000, STEP = 60, SOUTH = 10000000, BANDS = 20, ROWS = 20 };

static const char row_letters[] = "ABCDEFGHJKLMNPQRSTUV";
static const char *const column_letters[] = {"ABCDEFGH", "JKLMNPQR", "STUVWXYZ"};
static const char band_letters[] = "CDEFGHJKLMNPQRSTUVWX";
/* Northing of the parallels at multiples of 8 degrees, from the equator, on a zone's middle
 * meridian (WGS 84, scale 0.9996; PROJ). At the zone's edge a parallel lies up to 5 km further from
 * the equator; no middle of a square is between the two. Then the northern edge of the last row of
 * squares. */
static const int32_t parallel[] = {0,       884298,  1768935, 2654227, 3540436, 4427757,
                                   5316300, 6206080, 7097014, 7988933, 9400000};

/* The letter of the band at that northing; '\0' = none. */
static char band_at(int32_t north, bool south)
{
    const int32_t from = south ? SOUTH - north : north;
    int i = 0;

    while (i < 10 && from >= parallel[i + 1])
        i++;
    if (from < 0 || i == 10 ||
        (south && from > 8900000)) /* the row of 80 degrees south is the last */
        return '\0';
    return band_letters[south ? 9 - i : 10 + i];
}

bool pb_mgrs_name(const struct pb_mgrs_square *s, char out[6])
{
    const char band = band_at(s->north + SQUARE / 2, s->south);
    const int32_t column = s->east / SQUARE - 1, shift = s->zone % 2 == 0 ? 5 : 0;

    if (s->zone < 1 || s->zone > 60 || column < 0 || column > 7 || s->north < 0 || band == '\0')
        return false;
    (void)snprintf(out, 6, "%02d%c%c%c", s->zone % 100, band,
                   column_letters[(s->zone - 1) % 3][column],
                   row_letters[(s->north / SQUARE % ROWS + shift) % ROWS]);
    return true;
}

/* Whether a part of the rows from `north` lies in the band, a little beyond its parallels. */
static bool is_in_band(int32_t north, char band, bool south)
{
    const int32_t inside = 6000;

    return band_at(north + inside, south) == band ||
           band_at(north + SQUARE - inside, south) == band;
}

bool pb_mgrs_find(const char *name, struct pb_mgrs_square *out)
{
    const char *const at = name[0] == 'T' ? name + 1 : name;
    struct pb_mgrs_square s = {0};

    if (strlen(at) != 5 || strspn(at, "0123456789") != 2)
        return false;
    s.zone = (at[0] - '0') * 10 + at[1] - '0';
    if (s.zone < 1 || s.zone > 60)
        return false;
    const char *const columns = column_letters[(s.zone - 1) % 3];
    const char *const band = strchr(band_letters, at[2]), *const column = strchr(columns, at[3]),
                      *const row = strchr(row_letters, at[4]);
    if (band == NULL || column == NULL || row == NULL)
        return false;
    s.south = band - band_letters < BANDS / 2;
    s.east = (int32_t)(column - columns + 1) * SQUARE;
    s.north = (int32_t)((row - row_letters + (s.zone % 2 == 0 ? ROWS - 5 : 0)) % ROWS) * SQUARE;
    while (s.north < SOUTH && !is_in_band(s.north, at[2], s.south))
        s.north += CYCLE;
    if (s.north >= SOUTH)
        return false;
    *out = s;
    return true;
}

bool pb_mgrs_pixel_fits(double pixel)
{
    const double n = PB_MGRS_METRES / pixel;

    return pixel >= 1 && pixel <= PB_MGRS_METRES && n == floor(n);
}

bool pb_mgrs_tile(const char *name, double pixel, struct pb_ground_tile *out)
{
    struct pb_mgrs_square s;

    if (!pb_mgrs_find(name, &s) || !pb_mgrs_pixel_fits(pixel))
        return false;
    const int32_t equator = s.south ? SOUTH : 0;
    const double west = floor((double)s.east / STEP) * STEP;
    const double north = ceil((double)(s.north + SQUARE - equator) / STEP) * STEP + equator;
    *out = (struct pb_ground_tile){
        .bounds = {west, north - PB_MGRS_METRES, west + PB_MGRS_METRES, north}, .pixel = pixel};
    (void)snprintf(out->id, sizeof out->id, "%s", name[0] == 'T' ? name + 1 : name);
    (void)snprintf(out->code, sizeof out->code, "MGRS-%s", out->id);
    (void)snprintf(out->crs, sizeof out->crs, "EPSG:32%d%02d", s.south ? 7 : 6, s.zone % 100);
    return true;
}

/* --- Web Mercator ----------------------------------------------------------------------------- */

int32_t pb_web_tile_zoom(int32_t zoom, int32_t side_px)
{
    while (side_px > 256) {
        side_px /= 2;
        zoom--;
    }
    return zoom;
}

/* A number and the sign behind it. */
static bool take(const char **at, char sign, int32_t *out)
{
    char *end = NULL;
    const long value = **at >= '0' && **at <= '9' ? strtol(*at, &end, 10) : -1;

    if (value < 0 || value >= 1L << PB_WEB_ZOOM_MAX || *end != sign)
        return false;
    *out = (int32_t)value;
    *at = end + (sign != '\0');
    return true;
}

bool pb_web_tile(const char *name, int32_t zoom, int32_t side_px, struct pb_ground_tile *out)
{
    const char sign = strchr(name, '/') != NULL ? '/' : '-', *at = name;
    int32_t t, x, y;

    if (!take(&at, sign, &t) || !take(&at, sign, &x) || !take(&at, '\0', &y) ||
        t != pb_web_tile_zoom(zoom, side_px) || x >= 1 << t || y >= 1 << t)
        return false;
    const double span = 2 * PB_WEB_MERCATOR_HALF / (double)(1 << t);
    *out = (struct pb_ground_tile){
        .crs = "EPSG:3857",
        .bounds = {x * span - PB_WEB_MERCATOR_HALF, PB_WEB_MERCATOR_HALF - (y + 1) * span,
                   (x + 1) * span - PB_WEB_MERCATOR_HALF, PB_WEB_MERCATOR_HALF - y * span},
        .pixel = span / side_px};
    (void)snprintf(out->id, sizeof out->id, "%d-%d-%d", t, x, y);
    return true;
}
