/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/gdal/raster_gdal_grid.h"
#include "pipeline/gdal/raster_gdal_place.h"
#include "pipeline/raster/ground.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIDE_MAX (1 << 30)

GDALDatasetH pb_gdal_grid_dataset(const struct pb_ground *ground, int32_t w, int32_t h)
{
    OGRSpatialReferenceH srs = OSRNewSpatialReference(ground->crs);
    GDALDatasetH set = GDALCreate(GDALGetDriverByName("MEM"), "", w, h, 0, GDT_Byte, NULL);
    bool fine = srs != NULL && set != NULL;
    if (fine) {
        OSRSetAxisMappingStrategy(srs, OAMS_TRADITIONAL_GIS_ORDER);
        fine = GDALSetSpatialRef(set, srs) == CE_None &&
               GDALSetGeoTransform(set, (double *)(uintptr_t)ground->transform) == CE_None;
    }
    OSRDestroySpatialReference(srs);
    if (!fine && set != NULL)
        GDALClose(set);
    return fine ? set : NULL;
}

/* Returns true if the text can only be a code (EPSG:32633), WKT, PROJJSON or a PROJ string. GDAL
 * would use any other text as the name of a file or as an address. */
static bool is_definition(const char *crs)
{
    static const char code[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_:.+-";
    if (strchr(crs, '[') != NULL || crs[0] == '{')
        return true;
    if (crs[0] == '+')
        return strstr(crs, "+init") == NULL;
    return strchr(crs, ':') != NULL && strspn(crs, code) == strlen(crs);
}

char *pb_gdal_grid_wkt(const char *crs)
{
    static const char *const options[] = {"FORMAT=WKT2_2019", NULL};
    OGRSpatialReferenceH srs = is_definition(crs) ? OSRNewSpatialReference(NULL) : NULL;
    char *wkt = NULL;
    if (srs != NULL && OSRSetFromUserInput(srs, crs) == OGRERR_NONE)
        (void)OSRExportToWktEx(srs, &wkt, options);
    OSRDestroySpatialReference(srs);
    return wkt;
}

/* Least change of x for a degree along the equator, at two places: one is not at the seam. */
static double per_degree(OGRSpatialReferenceH srs)
{
    OGRSpatialReferenceH lonlat = OSRCloneGeogCS(srs);
    OGRCoordinateTransformationH way = NULL;
    double x[4] = {0, 1, 90, 91}, y[4] = {0, 0, 0, 0}, least = 0;
    if (lonlat != NULL) {
        OSRSetAxisMappingStrategy(lonlat, OAMS_TRADITIONAL_GIS_ORDER);
        way = OCTNewCoordinateTransformation(lonlat, srs);
    }
    if (way != NULL && OCTTransform(way, 4, x, y, NULL))
        least = fmin(fabs(x[1] - x[0]), fabs(x[3] - x[2]));
    if (way != NULL)
        OCTDestroyCoordinateTransformation(way);
    OSRDestroySpatialReference(lonlat);
    return isfinite(least) ? least : 0;
}

/* names: NULL ends the list. */
static bool is_one_of(OGRSpatialReferenceH srs, const char *const *names)
{
    const char *name = OSRGetAttrValue(srs, "PROJECTION", 0);
    while (name != NULL && *names != NULL && strcmp(name, *names) != 0)
        names++;
    return name != NULL && *names != NULL;
}

static bool is_cylindrical(OGRSpatialReferenceH srs)
{
    static const char *const names[] = {
        SRS_PT_MERCATOR_1SP,           SRS_PT_MERCATOR_2SP,
        SRS_PT_CYLINDRICAL_EQUAL_AREA, SRS_PT_MERCATOR_AUXILIARY_SPHERE,
        SRS_PT_EQUIRECTANGULAR,        SRS_PT_MILLER_CYLINDRICAL,
        SRS_PT_GALL_STEREOGRAPHIC,     NULL};
    return is_one_of(srs, names);
}

bool pb_gdal_srs_is_open(OGRSpatialReferenceH srs)
{
    static const char *const names[] = {SRS_PT_TRANSVERSE_MERCATOR,
                                        SRS_PT_POLAR_STEREOGRAPHIC,
                                        SRS_PT_STEREOGRAPHIC,
                                        SRS_PT_OBLIQUE_STEREOGRAPHIC,
                                        SRS_PT_LAMBERT_AZIMUTHAL_EQUAL_AREA,
                                        SRS_PT_GEOSTATIONARY_SATELLITE,
                                        SRS_PT_ORTHOGRAPHIC,
                                        SRS_PT_HOTINE_OBLIQUE_MERCATOR,
                                        SRS_PT_HOTINE_OBLIQUE_MERCATOR_AZIMUTH_CENTER,
                                        NULL};
    return !OSRIsGeographic(srs) && !is_cylindrical(srs) && !is_one_of(srs, names);
}

bool pb_gdal_grid_is_open(const char *wkt)
{
    OGRSpatialReferenceH srs = OSRNewSpatialReference(wkt);
    const bool is_open = srs != NULL && pb_gdal_srs_is_open(srs);
    OSRDestroySpatialReference(srs);
    return is_open;
}

double pb_gdal_grid_turn(const char *wkt)
{
    OGRSpatialReferenceH srs = OSRNewSpatialReference(wkt);
    double turn = 0;
    if (srs != NULL) {
        OSRSetAxisMappingStrategy(srs, OAMS_TRADITIONAL_GIS_ORDER);
        if (OSRIsGeographic(srs))
            turn = 2 * M_PI / OSRGetAngularUnits(srs, NULL);
        else if (is_cylindrical(srs))
            turn = 360 * per_degree(srs);
    }
    OSRDestroySpatialReference(srs);
    return turn;
}

/* Returns true if GDAL's suggestion is a valid grid: control points may be any numbers. */
static bool is_grid(const double t[6], int w, int h)
{
    bool fine = w >= 1 && h >= 1 && w <= SIDE_MAX && h <= SIDE_MAX && t[1] > 0 && t[5] < 0;
    for (int i = 0; i < 6 && fine; i++)
        fine = isfinite(t[i]);
    return fine;
}

static int too_large(char *why, size_t bytes, double w, double h)
{
    (void)snprintf(why, bytes,
                   "the grid would have %.0f x %.0f pixels; 1 to %d are allowed along an axis", w,
                   h, SIDE_MAX);
    return -EFBIG;
}

/* Applies the requested size, bounds and pixel to the suggested transform and size, by the rules
 * of gdalwarp. */
static int choose(const struct pb_ground_ask *ask, const double t[6], int w, int h, char *why,
                  size_t bytes, struct pb_ground_way *way)
{
    const double pixel = ask->pixel > 0 ? ask->pixel : t[1];
    double low[2] = {t[0], t[3] + h * t[5]}, high[2] = {t[0] + w * t[1], t[3]};
    const bool is_given = ask->has_bounds && ask->pixel > 0; /* nothing is suggested then */
    if (!is_given && !is_grid(t, w, h)) {
        (void)snprintf(
            why, bytes,
            "the scene has no extent in '%.80s': its model gives no positions for its edges",
            ask->crs);
        return -EDOM;
    }
    if (!ask->has_bounds && ask->pixel == 0) {
        memcpy(way->ground.transform, t, sizeof way->ground.transform);
        way->w = w;
        way->h = h;
        return 0;
    }
    for (int i = 0; i < 2; i++) {
        low[i] = ask->has_bounds ? ask->bounds[i] : low[i];
        high[i] = ask->has_bounds ? ask->bounds[2 + i] : high[i];
        low[i] = ask->align ? floor(low[i] / pixel + 1e-9) * pixel : low[i];
        high[i] = ask->align ? ceil(high[i] / pixel - 1e-9) * pixel : high[i];
    }
    const double n[2] = {floor((high[0] - low[0] + pixel / 2) / pixel),
                         floor((high[1] - low[1] + pixel / 2) / pixel)};
    if (!(n[0] >= 1 && n[1] >= 1 && n[0] <= SIDE_MAX && n[1] <= SIDE_MAX))
        return too_large(why, bytes, n[0], n[1]);
    /* Without a given size pixels are as large as fits the bounds. */
    const double across = ask->pixel > 0 ? pixel : (high[0] - low[0]) / n[0];
    const double down = ask->pixel > 0 ? pixel : (high[1] - low[1]) / n[1];
    const double fitted[6] = {low[0], across, 0, high[1], 0, -down};
    memcpy(way->ground.transform, fitted, sizeof fitted);
    way->w = (int32_t)n[0];
    way->h = (int32_t)n[1];
    return 0;
}

static int describe(struct pb_ground_way *way, const char *wkt)
{
    struct pb_raster_info *info = calloc(1, sizeof *info);
    OGRSpatialReferenceH srs = OSRNewSpatialReference(wkt);
    way->ground.crs = strdup(wkt);
    int rc = info != NULL && srs != NULL && way->ground.crs != NULL ? 0 : -ENOMEM;
    if (rc == 0) {
        info->width = way->w;
        info->height = way->h;
        memcpy(info->transform, way->ground.transform, sizeof info->transform);
        pb_gdal_read_unit(srs, info);
        way->ground.unit = info->unit;
    }
    if (rc < 0) {
        free(way->ground.crs);
        way->ground.crs = NULL;
    }
    OSRDestroySpatialReference(srs);
    free(info);
    return rc;
}

int pb_gdal_grid_set(const struct pb_ground_ask *ask, const char *wkt, const double suggested[6],
                     int w, int h, char *why, size_t why_bytes, struct pb_ground_way *way)
{
    const int rc = choose(ask, suggested, w, h, why, why_bytes, way);
    return rc < 0 ? rc : describe(way, wkt);
}

int pb_raster_ground(const struct pb_raster *raster, struct pb_ground *out)
{
    static const char *const options[] = {"FORMAT=WKT2_2019", NULL};
    const struct pb_raster_info *info = &raster->info;
    OGRSpatialReferenceH srs = info->has_transform ? pb_gdal_srs(raster) : NULL;
    char *wkt = NULL;
    if (srs == NULL || OSRExportToWktEx(srs, &wkt, options) != OGRERR_NONE) {
        CPLFree(wkt);
        return -ENODATA;
    }
    *out = (struct pb_ground){.crs = strdup(wkt)};
    memcpy(out->transform, info->transform, sizeof out->transform);
    out->unit = info->unit;
    CPLFree(wkt);
    return out->crs != NULL ? 0 : -ENOMEM;
}
