/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RASTER_GDAL_VSI_H
#define PB_RASTER_GDAL_VSI_H
/* Virtual files that GDAL opens by name: open rasters by raster->vsi_name, and their sidecars
 * (pb_raster_file_hand_sidecars) in the same folder. */
#include <stddef.h>

struct pb_raster;
struct pb_raster_file;

/* Call before the first GDALOpenEx of the process. Thread: init. */
void pb_gdal_file_install(void);

/* Reads from raster->file until pb_gdal_file_remove, which ignores a raster that was not added.
 * Thread: any. */
void pb_gdal_file_add(struct pb_raster *raster);
void pb_gdal_file_remove(struct pb_raster *raster);
/* Names of the file and its sidecars, as the list of siblings for GDAL; the caller's
 * (CSLDestroy). NULL: no sidecars. */
char **pb_gdal_file_siblings(const struct pb_raster *raster);
/* Returns its sidecar number i; NULL if absent. */
const struct pb_raster_file *pb_gdal_file_sidecar(const struct pb_raster *raster, size_t i);
#endif
