/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RASTER_GDAL_PLACE_H
#define PB_RASTER_GDAL_PLACE_H
/* Where an image lies on the ground. A raster belongs to one thread at a time. */
#include "pipeline/gdal/raster_gdal_said.h"

struct pb_tiff_geo;

/* The CRS of the transform, else of the GCPs; borrowed from the raster; NULL: none. */
OGRSpatialReferenceH pb_gdal_srs(const struct pb_raster *raster);

/* Runs one of GDAL's transformers (pixel -> ground) over n points; NaN: a point has no place. */
void pb_gdal_transform(GDALTransformerFunc transform, void *arg, double (*xy)[2], size_t n);

/* Whether longitudes of the scene's ground control points jump by a turn, from 180 to -180 or from
 * 360 to 0: more than half of a turn, which has *out_middle in it, is without a point then.
 * *out_turn: a turn in their unit. */
bool pb_gdal_gcps_jump(const struct pb_raster *raster, double *out_middle, double *out_turn);
/* Whether the ground control points place the image: neither their pixels nor their places lie
 * along a line, or in a spot, as far as the image reaches. */
bool pb_gdal_gcps_place(const struct pb_raster *raster);
/* A copy of the points in which longitudes go on instead of jumping; NULL: no memory. */
GDAL_GCP *pb_gdal_gcps(const struct pb_raster *raster);
void pb_gdal_free_gcps(GDAL_GCP *gcp, int n);

/* The RPCs; false: the scene has none, or such with a scale that is 0 or not finite. */
bool pb_gdal_read_rpc(const struct pb_raster *raster, GDALRPCInfoV2 *out_rpc);

/* Pixels -> longitude, latitude by the RPCs, at their own mean height: the terrain is not known.
 * NaN: a pixel has no place. False: the scene has no RPCs. */
bool pb_gdal_rpc_to_ground(const struct pb_raster *raster, double (*xy)[2], size_t n);

/* Fills in info->unit, of the transform and size in info. */
void pb_gdal_read_unit(OGRSpatialReferenceH srs, struct pb_raster_info *info);
/* Fills in the georeferencing of raster->info. */
void pb_gdal_read_place(struct pb_raster *raster);

/* What the header promises must be there; a product without it would look like a good one. words:
 * what GDAL said meanwhile. */
int pb_gdal_check_place(const struct pb_raster *raster, const struct pb_tiff_geo *promised,
                        const struct pb_gdal_words *words, struct pb_err *err);
#endif
