/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The footprint of a scene on the ground, and its CRS as text. */
#include "pipeline/gdal/raster_gdal_inside.h"
#include "pipeline/gdal/raster_gdal_place.h"
#include "pipeline/gdal/raster_gdal_said.h"
#include "pipeline/raster/outline.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define N PB_OUTLINE_POINTS
/* Until an interval of the image's width is far below a pixel. */
#define LIMB_HALVINGS 32

/* From srs to longitude, latitude (WGS 84); the caller's; NULL: there is no way. */
static OGRCoordinateTransformationH way_to_lonlat(OGRSpatialReferenceH srs)
{
    if (srs == NULL)
        return NULL;
    OGRSpatialReferenceH from = OSRClone(srs), wgs84 = OSRNewSpatialReference(NULL);
    OGRCoordinateTransformationH transformation = NULL;
    OSRSetAxisMappingStrategy(from, OAMS_TRADITIONAL_GIS_ORDER);
    OSRSetAxisMappingStrategy(wgs84, OAMS_TRADITIONAL_GIS_ORDER);
    if (OSRImportFromEPSG(wgs84, 4326) == OGRERR_NONE)
        transformation = OCTNewCoordinateTransformation(from, wgs84);
    OSRDestroySpatialReference(from);
    OSRDestroySpatialReference(wgs84);
    return transformation;
}

/* Coordinates of srs -> longitude, latitude (WGS 84). */
static bool to_lonlat(OGRSpatialReferenceH srs, double xy[N][2])
{
    double x[N], y[N];
    OGRCoordinateTransformationH transformation = way_to_lonlat(srs);
    for (size_t i = 0; i < N; i++) {
        x[i] = xy[i][0];
        y[i] = xy[i][1];
    }
    bool fine = transformation != NULL && OCTTransform(transformation, N, x, y, NULL);
    for (size_t i = 0; fine && i < N; i++) {
        xy[i][0] = x[i];
        xy[i][1] = y[i];
    }
    if (transformation != NULL)
        OCTDestroyCoordinateTransformation(transformation);
    return fine;
}

/* The place between a, which is on the Earth, and b in longitude and latitude that is nearest to
 * b and on the Earth. False: a is not. */
static bool find_limb(OGRCoordinateTransformationH way, const double a[2], const double b[2],
                      double out[2])
{
    double inside = 0, outside = 2;
    bool found = false;
    for (int i = 0; i <= LIMB_HALVINGS; i++) {
        /* The ends first, which are all where b is on the Earth. */
        const double t = i == 0 ? 0 : i == 1 ? 1 : (inside + outside) / 2;
        double x = a[0] + t * (b[0] - a[0]), y = a[1] + t * (b[1] - a[1]);
        int fine = FALSE;
        if (OCTTransformEx(way, 1, &x, &y, NULL, &fine) && fine && isfinite(x) && isfinite(y)) {
            inside = t;
            out[0] = x;
            out[1] = y;
            found = true;
        } else {
            outside = t;
        }
        if (inside == 1 || !found)
            break;
    }
    return found;
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

/* What a geostationary satellite sees: where an edge of the image lies beside the Earth, the
 * outline is the limb, looked for from the middle of the image. */
static bool by_limb(const struct pb_raster *raster, double xy[N][2])
{
    OGRSpatialReferenceH srs = pb_gdal_srs(raster);
    char *text = NULL;
    bool fine = raster->info.has_transform && srs != NULL &&
                OSRExportToProj4(srs, &text) == OGRERR_NONE && strstr(text, "+proj=geos") != NULL;
    CPLFree(text);
    OGRCoordinateTransformationH way = fine ? way_to_lonlat(srs) : NULL;
    double middle[2] = {0, 0};
    for (size_t i = 0; i < N; i++)
        GDALApplyGeoTransform((double *)(uintptr_t)raster->info.transform, xy[i][0], xy[i][1],
                              &xy[i][0], &xy[i][1]);
    for (size_t i = 0; i < N; i++)
        for (int k = 0; k < 2; k++)
            middle[k] += xy[i][k] / N;
    fine = way != NULL;
    for (size_t i = 0; fine && i < N; i++) {
        double lonlat[2] = {0, 0};
        fine = find_limb(way, middle, xy[i], lonlat);
        memcpy(xy[i], lonlat, sizeof lonlat);
    }
    if (way != NULL)
        OCTDestroyCoordinateTransformation(way);
    return fine;
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
    static bool (*const ways[])(const struct pb_raster *, double[N][2]) = {by_transform, by_limb,
                                                                           by_gcps, by_rpc};
    const struct pb_geometry own = {
        .w = raster->info.width, .h = raster->info.height, .map = pb_map_identity()};
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
