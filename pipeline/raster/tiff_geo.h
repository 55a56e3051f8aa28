/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TIFF_GEO_H
#define PB_TIFF_GEO_H
/* Georeferencing that a directory declares. Private to the TIFF checks. Thread: any. */
#include "pipeline/raster/tiff_directory.h"
#include "pipeline/raster/tiff_header.h"

/* Reads the GeoKeys and checks which other tags exist. Returns 0, or an error of reading them. */
int pb_tiff_read_geo(const struct pb_tiff_file *file, const struct pb_tiff_directory *dir,
                     struct pb_tiff_geo *out);
#endif
