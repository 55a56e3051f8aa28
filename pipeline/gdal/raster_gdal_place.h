/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RASTER_GDAL_PLACE_H
#define PB_RASTER_GDAL_PLACE_H
/* Georeferencing of an image. A raster belongs to one thread at a time. */
#include "pipeline/gdal/raster_gdal_said.h"

struct pb_tiff_geo;
struct pb_tiff_keys;

/* A CRS that pb_raster_warm has loaded, with the GeoKeys that GDAL writes for it. Equal keys give
 * an equal CRS, and deriving it from them takes longer than reading a small scene. Thread: any. */
struct pb_known_system;
/* Finds the CRS of these keys; NULL: not loaded. Valid until the end of the process. */
const struct pb_known_system *pb_gdal_known(const struct pb_tiff_keys *keys);
/* Returns the CRS, for no other call on it until pb_gdal_known_unlock. */
OGRSpatialReferenceH pb_gdal_known_lock(const struct pb_known_system *known);
void pb_gdal_known_unlock(void);
/* Returns the keys if GDAL writes them for a product, too; else NULL. */
const struct pb_tiff_keys *pb_gdal_known_keys(const struct pb_known_system *known);
/* Fills in unit, has_crs and crs_code; returns false if the unit depends on the image's place. */
bool pb_gdal_known_place(const struct pb_known_system *known, struct pb_raster_info *info);

/* Returns the dataset of a raster, NULL if it cannot be made; borrowed from the raster. A plain
 * GeoTIFF has one without pixels, made when it is needed: with its size, transform and CRS. */
GDALDatasetH pb_gdal_dataset(const struct pb_raster *raster);

/* Returns the CRS of the transform, of the file or of its sidecar; borrowed from the raster; NULL
 * if absent. */
OGRSpatialReferenceH pb_gdal_system(const struct pb_raster *raster);
/* Returns the CRS of the transform, else of the GCPs; borrowed from the raster; NULL if absent. */
OGRSpatialReferenceH pb_gdal_srs(const struct pb_raster *raster);

/* Runs one of GDAL's transformers (pixel -> ground) over n points; NaN: a point has no place. */
void pb_gdal_transform(GDALTransformerFunc transform, void *arg, double (*xy)[2], size_t n);

/* Returns true if longitudes of the scene's ground control points jump by a turn, from 180 to
 * -180 or from 360 to 0: more than half of a turn, with *out_middle in it, contains no point
 * then. *out_turn: a turn in their unit. */
bool pb_gdal_gcps_jump(const struct pb_raster *raster, double *out_middle, double *out_turn);
/* Returns true if the ground control points place the image: over the extent of the image
 * neither their pixels nor their places are collinear or in a single spot. */
bool pb_gdal_gcps_place(const struct pb_raster *raster);
/* Returns a copy of the points with continuous longitudes; NULL: out of memory. */
GDAL_GCP *pb_gdal_gcps(const struct pb_raster *raster);
void pb_gdal_free_gcps(GDAL_GCP *gcp, int n);

/* Reads the RPCs; returns false if absent, or if a scale is 0 or not finite. */
bool pb_gdal_read_rpc(const struct pb_raster *raster, GDALRPCInfoV2 *out_rpc);

/* Transforms pixels to longitude, latitude by the RPCs, at their own mean height, because the
 * terrain is unknown. NaN: a pixel has no place. Returns false if the scene has no RPCs. */
bool pb_gdal_rpc_to_ground(const struct pb_raster *raster, double (*xy)[2], size_t n);

/* Sets info->unit from the transform and size in info. */
void pb_gdal_read_unit(OGRSpatialReferenceH srs, struct pb_raster_info *info);
/* Fills in the georeferencing of raster->info. */
void pb_gdal_read_place(struct pb_raster *raster);
/* Fills in that of the CRS of raster->known, for a transform that is known. */
void pb_gdal_read_known(struct pb_raster *raster);

/* Checks that the georeferencing declared by the header was read; a product without it would
 * look correct. words: GDAL's messages of the open. */
int pb_gdal_check_place(const struct pb_raster *raster, const struct pb_tiff_geo *promised,
                        const struct pb_gdal_words *words, struct pb_err *err);
#endif
