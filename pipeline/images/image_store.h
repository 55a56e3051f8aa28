/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_IMAGE_STORE_H
#define PB_IMAGE_STORE_H
/* One whole image between two passes, by cells, in a nameless temporary file. A cell of classes
 * (whole numbers from 0 to 254, or invalid) uses one byte per pixel there, any other four, a
 * cell without a valid pixel none. -0 becomes 0. */
#include "config/base/err.h"
#include "kernels/view.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pb_image_store;

/* Upper bound of memory in bytes for that many cells. */
uint64_t pb_image_store_bytes(uint64_t cells);
/* Cells are squares of this side, cut off at the image's edge, row by row. directory: folder of
 * the file; borrowed until destroy. */
int pb_image_store_create(const char *directory, int32_t image_w, int32_t image_h, int32_t side,
                          struct pb_err *err, struct pb_image_store **out_store);
void pb_image_store_destroy(struct pb_image_store *store); /* NULL is fine */
/* Stores the pixels of a cell, row by row, and replaces earlier ones; packs them in place.
 * Thread: any, one at a time per cell. */
int pb_image_store_put(struct pb_image_store *store, uint32_t cell, float *pixels,
                       struct pb_err *err);
/* Returns true if a valid pixel of the cell is stored. */
bool pb_image_store_has(const struct pb_image_store *store, uint32_t cell);
/* Reads the pixels of rect, which is inside the image; rows row_bytes apart. A pb_raster_fill.
 * Thread: any, while none of its cells is being stored. */
int pb_image_store_get(const void *store, int32_t band, const struct pb_rect *rect, void *out,
                       size_t row_bytes, struct pb_err *err);
#endif
