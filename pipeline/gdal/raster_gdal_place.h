/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RASTER_GDAL_PLACE_H
#define PB_RASTER_GDAL_PLACE_H
/* Where an image lies on the ground. A raster belongs to one thread at a time. */
#include "pipeline/gdal/raster_gdal_said.h"

struct pb_tiff_geo;

/* The CRS of the transform, else of the GCPs; borrowed from the raster; NULL: none. */
OGRSpatialReferenceH pb_gdal_srs(const struct pb_raster *raster);

/* Runs one of GDAL's transformers (pixel -> ground) over n points, at most PB_OUTLINE_POINTS.
 * false: one of them has no place; xy is undefined then. */
bool pb_gdal_transform(GDALTransformerFunc transform, void *arg, double (*xy)[2], int n);

/* The RPCs; false: the scene has none, or such with a scale that is 0 or not finite. */
bool pb_gdal_read_rpc(const struct pb_raster *raster, GDALRPCInfoV2 *out_rpc);

/* Pixels -> longitude, latitude by the RPCs, at their own mean height: the terrain is not known. */
bool pb_gdal_rpc_to_ground(const struct pb_raster *raster, double (*xy)[2], int n);

/* Fills in info->unit, of the transform and size in info. */
void pb_gdal_read_unit(OGRSpatialReferenceH srs, struct pb_raster_info *info);
/* Fills in the georeferencing of raster->info. */
void pb_gdal_read_place(struct pb_raster *raster);

/* What the header promises must be there; a product without it would look like a good one. words:
 * what GDAL said meanwhile. */
int pb_gdal_check_place(const struct pb_raster *raster, const struct pb_tiff_geo *promised,
                        const struct pb_gdal_words *words, struct pb_err *err);
#endif
