/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RASTER_GDAL_VSI_H
#define PB_RASTER_GDAL_VSI_H
/* Open rasters as files that GDAL can open by a name, raster->vsi_name. */
struct pb_raster;

/* Before the first GDALOpenEx of the process. Thread: init. */
void pb_gdal_file_install(void);

/* raster->file is read from until pb_gdal_file_remove, which does nothing for a raster that was not
 * added. Thread: any. */
void pb_gdal_file_add(struct pb_raster *raster);
void pb_gdal_file_remove(struct pb_raster *raster);
#endif
