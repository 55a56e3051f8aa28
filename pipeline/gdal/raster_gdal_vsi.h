/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RASTER_GDAL_VSI_H
#define PB_RASTER_GDAL_VSI_H
/* Open rasters as files that GDAL can open by a name, raster->vsi_name, and their sidecars
 * (pb_raster_file_hand_sidecars) as files beside them. */
#include <stddef.h>

struct pb_raster;
struct pb_raster_file;

/* Before the first GDALOpenEx of the process. Thread: init. */
void pb_gdal_file_install(void);

/* raster->file is read from until pb_gdal_file_remove, which does nothing for a raster that was not
 * added. Thread: any. */
void pb_gdal_file_add(struct pb_raster *raster);
void pb_gdal_file_remove(struct pb_raster *raster);
/* The file's name and those of its sidecars, as GDAL wants the names beside a file; the caller's
 * (CSLDestroy). NULL: it has no sidecars. */
char **pb_gdal_file_siblings(const struct pb_raster *raster);
/* Its sidecar of that number; NULL = there is none. */
const struct pb_raster_file *pb_gdal_file_sidecar(const struct pb_raster *raster, size_t i);
#endif
