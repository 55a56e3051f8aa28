/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RASTER_GDAL_SIDECARS_H
#define PB_RASTER_GDAL_SIDECARS_H
/* Checks of sidecars: GDAL ignores a sidecar that it cannot use without a message, but a
 * configured sidecar that exists must be used. */
#include "pipeline/gdal/raster_gdal_inside.h"

struct pb_limits;

/* Call before GDAL opens the raster: checks the declarations of sidecars against the limits;
 * input.limit, input.damaged. */
int pb_gdal_limit_sidecars(const struct pb_raster *raster, const struct pb_limits *limits,
                           struct pb_err *err);
/* Call after raster->info is filled: checks that GDAL used each sidecar for its purpose;
 * input.damaged names it. */
int pb_gdal_check_sidecars(const struct pb_raster *raster, struct pb_err *err);
/* Coordinate system in a sidecar .prj (WKT, as ESRI's programs write it); the caller's. NULL: no
 * such sidecar; no system in it, which pb_gdal_check_sidecars reports; or a failed read, whose
 * errno is in raster->file then. */
OGRSpatialReferenceH pb_gdal_sidecar_system(struct pb_raster *raster);
/* Returns true if a sidecar is a mask. */
bool pb_gdal_has_mask_file(const struct pb_raster *raster);
#endif
