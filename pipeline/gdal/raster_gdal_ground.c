/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The footprint of a scene on the ground, and its CRS as text. */
#include "pipeline/gdal/raster_gdal_inside.h"
#include "pipeline/gdal/raster_gdal_place.h"
#include "pipeline/gdal/raster_gdal_said.h"
#include "pipeline/raster/outline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define N PB_OUTLINE_POINTS

/* Coordinates of srs -> longitude, latitude (WGS 84). */
static bool to_lonlat(OGRSpatialReferenceH srs, double xy[N][2])
{
    double x[N], y[N];
    bool fine = false;
    if (srs == NULL)
        return false;
    OGRSpatialReferenceH from = OSRClone(srs), wgs84 = OSRNewSpatialReference(NULL);
    OGRCoordinateTransformationH transformation = NULL;
    OSRSetAxisMappingStrategy(from, OAMS_TRADITIONAL_GIS_ORDER);
    OSRSetAxisMappingStrategy(wgs84, OAMS_TRADITIONAL_GIS_ORDER);
    if (OSRImportFromEPSG(wgs84, 4326) == OGRERR_NONE)
        transformation = OCTNewCoordinateTransformation(from, wgs84);
    for (size_t i = 0; i < N; i++) {
        x[i] = xy[i][0];
        y[i] = xy[i][1];
    }
    if (transformation != NULL)
        fine = OCTTransform(transformation, N, x, y, NULL);
    for (size_t i = 0; fine && i < N; i++) {
        xy[i][0] = x[i];
        xy[i][1] = y[i];
    }
    if (transformation != NULL)
        OCTDestroyCoordinateTransformation(transformation);
    OSRDestroySpatialReference(from);
    OSRDestroySpatialReference(wgs84);
    return fine;
}

static bool by_transform(const struct pb_raster *raster, double xy[N][2])
{
    if (!raster->info.has_transform)
        return false;
    for (size_t i = 0; i < N; i++)
        GDALApplyGeoTransform((double *)(uintptr_t)raster->info.transform, xy[i][0], xy[i][1],
                              &xy[i][0], &xy[i][1]);
    return to_lonlat(pb_gdal_srs(raster), xy);
}

static bool by_gcps(const struct pb_raster *raster, double xy[N][2])
{
    if (raster->info.n_gcps < 3)
        return false;
    void *arg =
        GDALCreateGCPTransformer(raster->info.n_gcps, GDALGetGCPs(raster->dataset), 0, FALSE);
    bool fine = arg != NULL && pb_gdal_transform(GDALGCPTransform, arg, xy, N);
    if (arg != NULL)
        GDALDestroyGCPTransformer(arg);
    return fine && to_lonlat(GDALGetGCPSpatialRef(raster->dataset), xy);
}

static bool by_rpc(const struct pb_raster *raster, double xy[N][2])
{
    return pb_gdal_rpc_to_ground(raster, xy, N);
}

/* Points along the edge of a grid in the image's pixel coordinates. */
static void outline_of(const struct pb_geometry *grid, double points[N][2])
{
    pb_outline_pixels(grid->w, grid->h, points);
    for (size_t i = 0; i < N; i++) {
        points[i][0] = (points[i][0] - grid->map.offset_x) / grid->map.scale_x;
        points[i][1] = (points[i][1] - grid->map.offset_y) / grid->map.scale_y;
    }
}

int pb_raster_footprint(struct pb_raster *raster, const struct pb_geometry *grid,
                        struct pb_footprint *out_footprint)
{
    static bool (*const ways[])(const struct pb_raster *, double[N][2]) = {by_transform, by_gcps,
                                                                           by_rpc};
    const struct pb_geometry own = {raster->info.width, raster->info.height, pb_map_identity()};
    struct pb_gdal_words words; /* not read: the next transform is tried */
    int rc = -ENODATA;
    pb_gdal_listen(&words, raster);
    for (size_t i = 0; rc < 0 && i < sizeof ways / sizeof ways[0]; i++) {
        double points[N][2];
        outline_of(grid != NULL ? grid : &own, points);
        if (ways[i](raster, points))
            rc = pb_outline_footprint(points, out_footprint);
    }
    pb_gdal_unlisten();
    return rc;
}

bool pb_raster_same_crs(const struct pb_raster *a, const struct pb_raster *b)
{
    OGRSpatialReferenceH one = pb_gdal_srs(a), other = pb_gdal_srs(b);
    struct pb_gdal_words words; /* not read */
    if (one == NULL || other == NULL)
        return one == other;
    pb_gdal_listen(&words, a);
    bool same = OSRIsSame(one, other) != 0;
    pb_gdal_unlisten();
    return same;
}

enum crs_text { CRS_WKT2, CRS_PROJJSON };

static char *crs_text(const struct pb_raster *raster, enum crs_text kind)
{
    static const char *const wkt2[] = {"FORMAT=WKT2_2019", "MULTILINE=NO", NULL};
    static const char *const json[] = {"MULTILINE=NO", NULL};
    OGRSpatialReferenceH srs = pb_gdal_srs(raster);
    struct pb_gdal_words words;
    char *text = NULL, *copy = NULL;
    OGRErr rc = OGRERR_FAILURE;
    if (srs == NULL)
        return NULL;
    pb_gdal_listen(&words, raster);
    if (kind == CRS_WKT2)
        rc = OSRExportToWktEx(srs, &text, wkt2);
    else
        rc = OSRExportToPROJJSON(srs, &text, json);
    pb_gdal_unlisten();
    if (rc == OGRERR_NONE && text != NULL && text[0] != '\0')
        copy = strdup(text);
    CPLFree(text);
    return copy;
}

char *pb_raster_wkt2(struct pb_raster *raster)
{
    return crs_text(raster, CRS_WKT2);
}

char *pb_raster_projjson(struct pb_raster *raster)
{
    return crs_text(raster, CRS_PROJJSON);
}
