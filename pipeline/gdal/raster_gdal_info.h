/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RASTER_GDAL_INFO_H
#define PB_RASTER_GDAL_INFO_H
/* Properties of a scene, read by GDAL from the header. A raster belongs to one thread at a time. */
struct pb_limits;
struct pb_raster;
struct pb_tiff_header;
struct pb_err;

/* Fills in raster->info, alpha_band and dataset_mask of a raster with a dataset, except the
 * members that depend on its blocks. Fails with the code of the file's problem. */
int pb_gdal_read_info(struct pb_raster *raster, const struct pb_limits *limits,
                      const struct pb_tiff_header *header, struct pb_err *err);
#endif
