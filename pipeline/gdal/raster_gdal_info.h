/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RASTER_GDAL_INFO_H
#define PB_RASTER_GDAL_INFO_H
/* What a scene is, as GDAL makes it of the header. A raster belongs to one thread at a time. */
struct pb_limits;
struct pb_raster;
struct pb_tiff_header;
struct pb_err;

/* Fills in raster->info, alpha_band and dataset_mask of a raster with a dataset, but for what its
 * blocks tell. Fails with the code of what is wrong with the file. */
int pb_gdal_read_info(struct pb_raster *raster, const struct pb_limits *limits,
                      const struct pb_tiff_header *header, struct pb_err *err);
#endif
