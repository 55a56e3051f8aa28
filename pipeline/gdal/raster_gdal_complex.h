/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RASTER_GDAL_COMPLEX_H
#define PB_RASTER_GDAL_COMPLEX_H
/* Complex pixels that GDAL decodes. A raster belongs to one thread at a time. */
#include "pipeline/gdal/raster_gdal_inside.h"

/* Returns NONE for real and other types. */
enum pb_complex_kind pb_gdal_complex_kind(GDALDataType type);

/* Reads part of one block of a band as float32, rows row_bytes apart. Returns a CPLErr, like
 * GDALRasterIO; without a GDAL message if out of memory. */
int pb_gdal_read_complex(struct pb_raster *raster, int band, const struct pb_rect *part, char *to,
                         size_t row_bytes);
#endif
