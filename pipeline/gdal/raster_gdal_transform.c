/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The way from a grid in one coordinate system to one in another: GDAL's transformer of images,
 * which is also gdalwarp's, and the extent and pixels that it suggests. */
#include "pipeline/gdal/raster_gdal_inside.h"
#include "pipeline/gdal/raster_gdal_place.h"
#include "pipeline/gdal/raster_gdal_said.h"
#include "pipeline/raster/ground.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POINTS = 1024 };
/* A part that misses an edge of its grid by so little reaches to it. */
#define EDGE_PX  1e-6
#define SIDE_MAX (1 << 30)

/* A dataset without bands that lies there; NULL: it cannot be made. */
static GDALDatasetH make_dataset(const struct pb_ground *ground, int32_t w, int32_t h)
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

/* Whether the text can only be a code (EPSG:32633), WKT, PROJJSON or a PROJ string. GDAL would look
 * for a file or an address by any other name. */
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

/* The WKT of what a user calls a CRS; the caller's (CPLFree). NULL: it is none. */
static char *wkt_of(const char *crs)
{
    static const char *const options[] = {"FORMAT=WKT2_2019", NULL};
    OGRSpatialReferenceH srs = is_definition(crs) ? OSRNewSpatialReference(NULL) : NULL;
    char *wkt = NULL;
    if (srs != NULL && OSRSetFromUserInput(srs, crs) == OGRERR_NONE)
        (void)OSRExportToWktEx(srs, &wkt, options);
    OSRDestroySpatialReference(srs);
    return wkt;
}

/* --- the new grid ----------------------------------------------------------------------------- */

static int too_large(char *why, size_t bytes, double w, double h)
{
    (void)snprintf(why, bytes,
                   "the grid would have %.0f x %.0f pixels; 1 to %d are allowed along an axis", w,
                   h, SIDE_MAX);
    return -EINVAL;
}

/* Of the suggested transform and size: what the ask wants otherwise, by the rules of gdalwarp. */
static int set_grid(const struct pb_ground_ask *ask, const double t[6], int w, int h, char *why,
                    size_t bytes, struct pb_ground_way *way)
{
    const double pixel = ask->pixel > 0 ? ask->pixel : t[1];
    double low[2] = {t[0], t[3] + h * t[5]}, high[2] = {t[0] + w * t[1], t[3]};
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
    /* Without a given size pixels become as large as fits the bounds. */
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
        memcpy(way->ground.unit_metres, info->unit_metres, sizeof info->unit_metres);
    }
    if (rc < 0) {
        free(way->ground.crs);
        way->ground.crs = NULL;
    }
    OSRDestroySpatialReference(srs);
    free(info);
    return rc;
}

/* --- the finder ------------------------------------------------------------------------------- */

struct transform {
    void *image;
    GDALDatasetH made; /* the old grid's; NULL: the scene's own is used */
};

static void close_transform(void *transform)
{
    struct transform *t = transform;
    if (t == NULL)
        return;
    if (t->image != NULL)
        GDALDestroyGenImgProjTransformer(t->image);
    if (t->made != NULL)
        GDALClose(t->made);
    free(t);
}

/* Whether bands have less than the grid that they lie on. */
static bool is_part(const struct pb_ground_ask *ask)
{
    return ask->part[0] > EDGE_PX || ask->part[1] > EDGE_PX ||
           ask->part[2] < ask->source_w - EDGE_PX || ask->part[3] < ask->source_h - EDGE_PX;
}

/* A dataset of that part alone; NULL: it cannot be made. */
static GDALDatasetH make_part(const struct pb_raster *raster, const struct pb_ground_ask *ask)
{
    struct pb_ground ground = ask->from != NULL ? *ask->from : (struct pb_ground){.crs = NULL};
    OGRSpatialReferenceH srs = ask->from == NULL ? pb_gdal_srs(raster) : NULL;
    GDALDatasetH set = NULL;
    char *wkt = NULL;
    if (ask->from == NULL) {
        memcpy(ground.transform, raster->info.transform, sizeof ground.transform);
        if (raster->info.has_transform && srs != NULL && OSRExportToWkt(srs, &wkt) == OGRERR_NONE)
            ground.crs = wkt;
    }
    if (ground.crs != NULL) {
        double *t = ground.transform;
        const double across = ask->part[2] - ask->part[0], down = ask->part[3] - ask->part[1];
        const double w = fmax(floor(across + 0.5), 1), h = fmax(floor(down + 0.5), 1);
        t[0] += ask->part[0] * t[1] + ask->part[1] * t[2];
        t[3] += ask->part[0] * t[4] + ask->part[1] * t[5];
        t[1] *= across / w;
        t[4] *= across / w;
        t[2] *= down / h;
        t[5] *= down / h;
        set = make_dataset(&ground, (int32_t)w, (int32_t)h);
    }
    CPLFree(wkt);
    return set;
}

/* The extent and pixels that GDAL suggests for the source. */
static bool suggest(GDALDatasetH source, const char *wkt, double t[6], int *w, int *h)
{
    char **options = CSLSetNameValue(NULL, "DST_SRS", wkt);
    void *image = GDALCreateGenImgProjTransformer2(source, NULL, options);
    double extent[4];
    CSLDestroy(options);
    const bool fine =
        image != NULL && GDALSuggestedWarpOutput2(source, GDALGenImgProjTransform, image, t, w, h,
                                                  extent, 0) == CE_None;
    if (image != NULL)
        GDALDestroyGenImgProjTransformer(image);
    return fine;
}

static bool suggest_part(const struct pb_raster *raster, const char *wkt,
                         const struct pb_ground_ask *ask, double t[6], int *w, int *h)
{
    GDALDatasetH part = make_part(raster, ask);
    const bool fine = part != NULL && suggest(part, wkt, t, w, h);
    if (part != NULL)
        GDALClose(part);
    return fine;
}

static int find_grid(struct transform *t, const struct pb_raster *raster, const char *wkt,
                     const struct pb_ground_ask *ask, char *why, size_t bytes,
                     struct pb_ground_way *way)
{
    char **options = CSLSetNameValue(NULL, "DST_SRS", wkt);
    GDALDatasetH source = t->made != NULL ? t->made : raster->dataset;
    double suggested[6];
    int w = 0, h = 0;
    t->image = GDALCreateGenImgProjTransformer2(source, NULL, options);
    CSLDestroy(options);
    if (t->image == NULL || !(is_part(ask) ? suggest_part(raster, wkt, ask, suggested, &w, &h)
                                           : suggest(source, wkt, suggested, &w, &h))) {
        (void)snprintf(why, bytes,
                       "the scene cannot be brought into '%.80s': it lies where that is not "
                       "defined",
                       ask->crs);
        return -EINVAL;
    }
    int rc = set_grid(ask, suggested, w, h, why, bytes, way);
    if (rc == 0)
        GDALSetGenImgProjTransformerDstGeoTransform(t->image, way->ground.transform);
    return rc < 0 ? rc : describe(way, wkt);
}

static int open_transform(const struct pb_raster *raster, const struct pb_ground_ask *ask,
                          char *why, size_t bytes, struct pb_ground_way *way)
{
    struct transform *t = calloc(1, sizeof *t);
    char *wkt = wkt_of(ask->crs);
    int rc = t != NULL ? 0 : -ENOMEM;
    if (rc == 0 && wkt == NULL) {
        (void)snprintf(why, bytes,
                       "'%.80s' is no coordinate system that PROJ knows: write EPSG:32633, or WKT",
                       ask->crs);
        rc = -EINVAL;
    }
    if (rc == 0 && ask->from != NULL) {
        t->made = make_dataset(ask->from, ask->source_w, ask->source_h);
        rc = t->made != NULL ? 0 : -ENOMEM;
    }
    if (rc == 0)
        rc = find_grid(t, raster, wkt, ask, why, bytes, way);
    CPLFree(wkt);
    if (rc < 0)
        close_transform(t);
    else
        way->transform = t;
    return rc;
}

static int open_way(void *of, const struct pb_ground_ask *ask, char *why, size_t why_bytes,
                    struct pb_ground_way *out_way)
{
    const struct pb_raster *raster = of;
    struct pb_gdal_words words; /* why says it in the terms of the step */
    pb_gdal_listen(&words, raster);
    int rc = open_transform(raster, ask, why, why_bytes, out_way);
    pb_gdal_unlisten();
    return rc;
}

static void points_of(void *transform, size_t n, double *x, double *y)
{
    const struct transform *t = transform;
    struct pb_gdal_words words; /* of places that the projection does not have */
    double z[POINTS];
    int ok[POINTS];
    pb_gdal_listen(&words, NULL);
    for (size_t first = 0; first < n; first += POINTS) {
        int some = n - first < POINTS ? (int)(n - first) : POINTS;
        memset(z, 0, sizeof z);
        bool fine = GDALGenImgProjTransform(t->image, TRUE, some, x + first, y + first, z, ok);
        for (int i = 0; i < some; i++)
            if (!fine || !ok[i] || !isfinite(x[first + (size_t)i]) ||
                !isfinite(y[first + (size_t)i]))
                x[first + (size_t)i] = y[first + (size_t)i] = (double)NAN;
    }
    pb_gdal_unlisten();
}

struct pb_ground_finder pb_raster_ground_finder(struct pb_raster *raster)
{
    return (struct pb_ground_finder){
        .of = raster, .open = open_way, .points = points_of, .close = close_transform};
}

int pb_raster_placed(const struct pb_ground *ground, int32_t w, int32_t h, struct pb_err *err,
                     struct pb_raster **out_raster)
{
    struct pb_raster *raster = calloc(1, sizeof *raster);
    struct pb_gdal_words words;
    if (raster == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory for the place of the products");
    raster->file.fd = -1;
    raster->info.width = w;
    raster->info.height = h;
    pb_gdal_listen(&words, NULL);
    raster->dataset = make_dataset(ground, w, h);
    if (raster->dataset != NULL)
        pb_gdal_read_place(raster);
    pb_gdal_unlisten();
    if (raster->dataset == NULL) {
        free(raster);
        return pb_fail(err, PB_E_SYSTEM, "GDAL cannot place the products: %s",
                       pb_gdal_said(&words));
    }
    *out_raster = raster;
    return 0;
}
