/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TILING_H
#define PB_TILING_H
/* Grids of tiles that products are cut into, by name. Arithmetic alone. Thread: any.
 *
 * MGRS: the tiles that Sentinel-2 is delivered in. A 100 km square of the Military Grid Reference
 * System, in the UTM zone of its name: its western edge moved west and its northern one away from
 * the south to multiples of 60 m (north of the equator of northing 0, south of it counted from the
 * equator), and from there 109,800 m to the east and the south. A square that two latitude bands
 * share has the letter of the band that its middle lies in. Checked against delivered tiles (19UDP,
 * 29RKH, 01CEM, 28PDC) and ESA's list of tiles (33XVP, 13SFR).
 *
 * Web Mercator: the XYZ tiles of zoom t (OGC's WebMercatorQuad, GoogleMapsCompatible), each of
 * 256 * 2^k pixels, which are those of zoom t + k. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PB_TILES_MAX         64 /* of one scene */
#define PB_TILE_ID_BYTES     32
#define PB_MGRS_METRES       109800
#define PB_WEB_MERCATOR_HALF 20037508.342789244 /* from the middle to an edge, metres */
#define PB_WEB_ZOOM_MAX      24

enum pb_tiling { PB_TILING_NONE, PB_TILING_MGRS, PB_TILING_WEB_MERCATOR };

/* A tile: its name as part of a file's name, and its grid. */
struct pb_ground_tile {
    char id[PB_TILE_ID_BYTES]; /* "32UQD", "10-550-335" (zoom, column, row) */
    char code[40];             /* of STAC's grid extension, "MGRS-32UQD"; "" = there is none */
    char crs[16];              /* "EPSG:32632" */
    double bounds[4];          /* west, south, east, north */
    double pixel;
};

/* A 100 km square by its corner. */
struct pb_mgrs_square {
    int32_t zone; /* 1 to 60 */
    bool south;   /* false northing of 10,000 km */
    int32_t east, north;
};

/* name: "32UQD" or "T32UQD". False: there is no such square. */
bool pb_mgrs_find(const char *name, struct pb_mgrs_square *out);
/* False: the square has no name. */
bool pb_mgrs_name(const struct pb_mgrs_square *square, char out[6]);
/* Whether 109,800 m are a whole number of such pixels. */
bool pb_mgrs_pixel_fits(double pixel);
/* name: as pb_mgrs_find takes it. False: there is none. */
bool pb_mgrs_tile(const char *name, double pixel, struct pb_ground_tile *out);

/* name: "10/550/335" or "10-550-335" (zoom, column, row from the north). side_px: of the tile, 256
 * * 2^k; zoom: of its pixels. False: there is no such tile, or its pixels are of another zoom. */
bool pb_web_tile(const char *name, int32_t zoom, int32_t side_px, struct pb_ground_tile *out);
/* The zoom of tiles of that side whose pixels are of `zoom`; negative: there is none. */
int32_t pb_web_tile_zoom(int32_t zoom, int32_t side_px);
#endif
