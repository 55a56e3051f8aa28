/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TIFF_GEO_H
#define PB_TIFF_GEO_H
/* Georeferencing that a directory declares. Private to the TIFF checks, except pb_tiff_keys_add.
 * Thread: any. */
#include "pipeline/raster/tiff_directory.h"
#include "pipeline/raster/tiff_header.h"

/* Reads the GeoKeys and checks which other tags exist. Returns 0, or an error of reading them. */
int pb_tiff_read_geo(const struct pb_tiff_file *file, const struct pb_tiff_directory *dir,
                     struct pb_tiff_geo *out);
/* Adds the bytes of one of the three tags, in their order; 0 bytes: absent. Returns false, and
 * empties the keys, if they do not fit. */
bool pb_tiff_keys_add(struct pb_tiff_keys *keys, const void *value, uint64_t bytes);
#endif
