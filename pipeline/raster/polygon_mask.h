/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_POLYGON_MASK_H
#define PB_POLYGON_MASK_H
/* Planes of bytes that are 1 inside polygons and 0 outside, made one rectangle at a time:
 * content of a raster of pb_raster_make for steps that cut. Each plane is a scan of polygons
 * (polygon_scan.h). The memory of a thread is allocated before the first rectangle; a thread
 * waits while all of it is in use. */
#include "kernels/geometry.h"

#include <stddef.h>
#include <stdint.h>

struct pb_err;
struct pb_polygon_masks;
struct pb_polygon_scan;

/* Creates it without planes; NULL: out of memory. The caller's (destroy, which takes NULL).
 * Thread: init. */
struct pb_polygon_masks *pb_polygon_masks_create(void);
void pb_polygon_masks_destroy(struct pb_polygon_masks *masks);
/* Takes the scan, as the next plane; -ENOMEM: the scan stays the caller's. Thread: init. */
int pb_polygon_masks_add(struct pb_polygon_masks *masks, struct pb_polygon_scan *scan);
size_t pb_polygon_masks_count(const struct pb_polygon_masks *masks);
/* Bytes of memory for each thread that makes pixels at the same time. */
size_t pb_polygon_masks_thread_bytes(const struct pb_polygon_masks *masks);
/* Allocates memory for `threads` threads, at least 1. Call once, after the last plane and before
 * the first rectangle; -ENOMEM. Thread: init. */
int pb_polygon_masks_ready(struct pb_polygon_masks *masks, uint32_t threads);
/* A pb_raster_fill: writes the bytes of plane `band` (from 1) in rect, which is inside the grid.
 * Thread: any. */
int pb_polygon_masks_fill(const void *masks, int32_t band, const struct pb_rect *rect, void *out,
                          size_t row_bytes, struct pb_err *err);
#endif
