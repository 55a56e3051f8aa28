/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_POLYGON_SCAN_H
#define PB_POLYGON_SCAN_H
/* Rasterizes polygons, a tile at a time: finds the polygon that covers each pixel. The rules are
 * those of GDAL's GDALRasterizeGeometries: a pixel belongs to a polygon if its centre is inside
 * one of its parts (even-odd over all rings of the part; a centre on a right or upper edge is
 * inside, one on a left edge is not), with PB_SCAN_TOUCHED also if an edge passes through it, so
 * that a part of its area is inside. An edge along the border of two pixels passes through
 * neither. Where polygons overlap the last one counts. No raster of the whole grid exists: edges
 * are listed by bands of rows.
 *
 * The scan keeps no reference to the polygons. It is read-only after creation; any thread. */
#include "kernels/geometry.h"

#include <stddef.h>
#include <stdint.h>

struct pb_polygons;
struct pb_polygon_scan;

enum pb_scan_rule { PB_SCAN_CENTRES, PB_SCAN_TOUCHED };

/* polygons: in pixels of a grid of w x h (pb_polygons_to_pixels), borrowed for the call. NULL:
 * out of memory. The caller's (pb_polygon_scan_destroy). */
struct pb_polygon_scan *pb_polygon_scan_create(const struct pb_polygons *polygons, int32_t w,
                                               int32_t h, enum pb_scan_rule rule);
void pb_polygon_scan_destroy(struct pb_polygon_scan *scan);

/* Bytes of a scan of these polygons, without the polygons themselves: each edge once, and each
 * part's number once per 64 rows that it overlaps. */
size_t pb_polygon_scan_bytes(const struct pb_polygons *polygons, int32_t w, int32_t h);
/* Bytes of scratch for one call of pb_polygon_scan_zones: 17 KiB, or the crossings of a part and
 * a row if these need more. */
size_t pb_polygon_scan_scratch_bytes(const struct pb_polygon_scan *scan);

/* Returns true if a polygon's bounding rectangle intersects rect; false = all zones would be 0. */
bool pb_polygon_scan_meets(const struct pb_polygon_scan *scan, const struct pb_rect *rect);

/* Writes out_zones[row * stride + column] of the rectangle, which is inside the grid: 0 = no
 * polygon, else 1 + the number of the polygon. scratch: pb_polygon_scan_scratch_bytes, 8 byte
 * aligned, not shared with other calls. Thread: any, each with its own scratch. */
void pb_polygon_scan_zones(const struct pb_polygon_scan *scan, const struct pb_rect *rect,
                           void *scratch, uint32_t *out_zones, size_t stride);

/* Receives n pixels of a row, from column x, that are in the polygon of that number. false ends
 * the scan. */
typedef bool pb_polygon_run(void *user, uint32_t polygon, int32_t x, int32_t y, int32_t n);
/* Reports each polygon separately: a pixel in which several overlap is in a run of each. zones:
 * rect->w * rect->h numbers, not shared with other calls. Returns false if a run ended the scan.
 * Adjacent runs of a row are merged. */
bool pb_polygon_scan_each(const struct pb_polygon_scan *scan, const struct pb_rect *rect,
                          void *scratch, uint32_t *zones, pb_polygon_run *run, void *user);
#endif
