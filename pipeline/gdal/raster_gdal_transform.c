/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Transformation from a grid in one coordinate system to a grid in another: GDAL's transformers,
 * which gdalwarp uses too, and the extent and pixels that they suggest. */
#include "pipeline/gdal/raster_gdal_grid.h"
#include "pipeline/gdal/raster_gdal_inside.h"
#include "pipeline/gdal/raster_gdal_model.h"
#include "pipeline/gdal/raster_gdal_place.h"
#include "pipeline/gdal/raster_gdal_said.h"
#include "pipeline/raster/ground.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POINTS = 1024, ACROSS = 21 /* sample points per axis of the image, to detect a seam */ };
/* Distance to the edge of its grid within which a part counts as ending at the edge. */
#define EDGE_PX 1e-6
/* Tolerance for models of sensors, which have breaks: polynomials for some times, interpolated
 * in between. This tolerance needs a tenth of the points of 1/65536. */
#define SENSOR_ERROR_PX (1.0 / 64.0)
/* Tolerance for splines: a spline bends at each of its points, and its time grows with their
 * number. */
#define SPLINE_ERROR_PX (1.0 / 1024.0)
/* Neighbours this many times farther apart than most are on two sides of an edge. */
#define TORN 20
/* Tolerance, in pixels of the new grid, between a place and its return. */
#define BACK_PX 0.5

struct transform {
    struct pb_gdal_model model;
    GDALDatasetH made; /* dataset of the old grid; NULL: the scene's own is used */
    bool looks_back; /* the new system may map places beyond its edge: a place whose return differs
                        is invalid */
};

static void close_transform(void *transform)
{
    struct transform *t = transform;
    if (t == NULL)
        return;
    pb_gdal_model_close(&t->model);
    if (t->made != NULL)
        GDALClose(t->made);
    free(t);
}

/* --- the suggested grid ----------------------------------------------------------------------- */

/* Returns true if bands cover less than their grid. */
static bool is_part(const struct pb_ground_ask *ask)
{
    return ask->part[0] > EDGE_PX || ask->part[1] > EDGE_PX ||
           ask->part[2] < ask->source_w - EDGE_PX || ask->part[3] < ask->source_h - EDGE_PX;
}

/* Computes the size of a part in whole pixels, and the growth of its pixels. */
static void size_of_part(const struct pb_ground_ask *ask, int32_t size[2], double grown[2])
{
    for (int i = 0; i < 2; i++) {
        const double length = ask->part[2 + i] - ask->part[i];
        size[i] = (int32_t)fmax(floor(length + 0.5), 1);
        grown[i] = length / size[i];
    }
}

/* Makes a dataset of the part alone, with a geotransform; NULL: it cannot be made. */
static GDALDatasetH make_part(const struct pb_raster *raster, const struct pb_ground_ask *ask)
{
    struct pb_ground ground = ask->from != NULL ? *ask->from : (struct pb_ground){.crs = NULL};
    GDALDatasetH set = NULL;
    char *wkt = NULL;
    if (ask->from == NULL && OSRExportToWkt(pb_gdal_srs(raster), &wkt) == OGRERR_NONE) {
        memcpy(ground.transform, raster->info.transform, sizeof ground.transform);
        ground.crs = wkt;
    }
    if (ground.crs != NULL) {
        double *t = ground.transform, grown[2];
        int32_t size[2];
        size_of_part(ask, size, grown);
        t[0] += ask->part[0] * t[1] + ask->part[1] * t[2];
        t[3] += ask->part[0] * t[4] + ask->part[1] * t[5];
        t[1] *= grown[0];
        t[4] *= grown[0];
        t[2] *= grown[1];
        t[5] *= grown[1];
        set = pb_gdal_grid_dataset(&ground, size[0], size[1]);
    }
    CPLFree(wkt);
    return set;
}

/* Grid that GDAL suggests for an image of the source's size. */
struct suggestion {
    double transform[6];
    int w, h;
    bool is_torn; /* the scene is on several sides of an edge of the map */
};

/* GDAL's transformer, whose x is continuous at the seam of the new system. */
struct beyond {
    GDALTransformerFunc points;
    void *of;
    double turn, middle; /* turn and middle of x */
};

static int go_beyond(void *arg, int to_source, int n, double *x, double *y, double *z, int *ok)
{
    const struct beyond *b = arg;
    const int fine = b->points(b->of, to_source, n, x, y, z, ok);
    for (int i = 0; i < n && !to_source; i++)
        x[i] -= b->turn * round((x[i] - b->middle) / b->turn);
    return fine;
}

static int by_size(const void *one, const void *other)
{
    const double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

/* Collects x of places all over the image, ascending. Returns their count. */
static size_t sample_x(GDALDatasetH source, const struct beyond *b, double x[ACROSS * ACROSS])
{
    const double w = GDALGetRasterXSize(source), h = GDALGetRasterYSize(source);
    size_t n = 0;
    for (int row = 0; row < ACROSS; row++) {
        double at[ACROSS], y[ACROSS], z[ACROSS];
        int ok[ACROSS];
        for (int i = 0; i < ACROSS; i++) {
            at[i] = w * i / (ACROSS - 1);
            y[i] = h * row / (ACROSS - 1);
            z[i] = 0;
        }
        const int fine = b->points(b->of, FALSE, ACROSS, at, y, z, ok);
        for (int i = 0; i < ACROSS; i++)
            if (fine && ok[i] && isfinite(at[i]) && isfinite(y[i]))
                x[n++] = at[i];
    }
    qsort(x, n, sizeof *x, by_size);
    return n;
}

/* Returns true if the image is on both sides of the seam, the antimeridian of most systems, so
 * that its range of x is narrower with continuous x; sets the middle of that range. The widest
 * gap between its places is then inside, and at least a quarter of a turn. */
static bool is_across(GDALDatasetH source, struct beyond *b)
{
    double x[ACROSS * ACROSS], gap = 0, west = 0, east = 0;
    const size_t n = b->turn > 0 ? sample_x(source, b, x) : 0;
    for (size_t i = 1; i < n; i++)
        if (x[i] - x[i - 1] > gap) {
            gap = x[i] - x[i - 1];
            west = x[i];
            east = x[i - 1] + b->turn;
        }
    if (n == 0 || gap < b->turn / 4 || b->turn - gap >= x[n - 1] - x[0])
        return false;
    b->middle = (west + east) / 2;
    return true;
}

/* Adds the distances between neighbours of a row or a column of places to *d. Returns their
 * count. */
static size_t add_steps(const double *x, const double *y, size_t stride, double *d)
{
    size_t n = 0;
    for (size_t i = 0; i + 1 < ACROSS; i++) {
        const double step =
            hypot(x[(i + 1) * stride] - x[i * stride], y[(i + 1) * stride] - y[i * stride]);
        if (isfinite(step))
            d[n++] = step;
    }
    return n;
}

/* Returns true if half of the values' range is a gap; moves finite values to the front. */
static bool has_gap(double *v)
{
    double gap = 0;
    size_t n = 0;
    for (size_t i = 0; i < ACROSS * ACROSS; i++)
        if (isfinite(v[i]))
            v[n++] = v[i];
    qsort(v, n, sizeof *v, by_size);
    for (size_t i = 1; i < n; i++)
        gap = fmax(gap, v[i] - v[i - 1]);
    return n > 1 && gap > 0.5 * (v[n - 1] - v[0]);
}

/* Returns true if neighbours in the image are separated by most of its extent while others are
 * not: the image crosses an edge at which the map of the new system ends. */
static bool is_torn(GDALDatasetH source, GDALTransformerFunc points, void *of)
{
    const double w = GDALGetRasterXSize(source), h = GDALGetRasterYSize(source);
    double x[ACROSS * ACROSS], y[ACROSS * ACROSS], z[ACROSS * ACROSS], step[2 * ACROSS * ACROSS];
    double low[2] = {INFINITY, INFINITY}, high[2] = {-INFINITY, -INFINITY};
    int ok[ACROSS * ACROSS];
    size_t n = 0;
    for (int i = 0; i < ACROSS * ACROSS; i++) {
        const int row = i / ACROSS;
        x[i] = w * (i % ACROSS) / (ACROSS - 1);
        y[i] = h * row / (ACROSS - 1);
        z[i] = 0;
    }
    if (!points(of, FALSE, ACROSS * ACROSS, x, y, z, ok))
        return false;
    for (int i = 0; i < ACROSS * ACROSS; i++) {
        if (!ok[i] || !isfinite(x[i]) || !isfinite(y[i])) {
            x[i] = y[i] = (double)NAN;
            continue;
        }
        low[0] = fmin(low[0], x[i]);
        low[1] = fmin(low[1], y[i]);
        high[0] = fmax(high[0], x[i]);
        high[1] = fmax(high[1], y[i]);
    }
    for (size_t i = 0; i < ACROSS; i++) {
        n += add_steps(x + i * ACROSS, y + i * ACROSS, 1, step + n);
        n += add_steps(x + i, y + i, ACROSS, step + n);
    }
    qsort(step, n, sizeof *step, by_size);
    return n > 1 && step[n - 1] > 0.5 * hypot(high[0] - low[0], high[1] - low[1]) &&
           step[n - 1] > TORN * step[n / 2] && (has_gap(x) || has_gap(y));
}

/* turn: growth of x around the Earth in the new system; 0: x does not continue at a seam. */
static bool suggest(GDALDatasetH source, GDALTransformerFunc points, void *of, double turn,
                    struct suggestion *out)
{
    struct beyond beyond = {.points = points, .of = of, .turn = turn};
    const bool goes_on = is_across(source, &beyond);
    double extent[4];
    out->is_torn = turn == 0 && is_torn(source, points, of);
    return GDALSuggestedWarpOutput2(source, goes_on ? go_beyond : points, goes_on ? &beyond : of,
                                    out->transform, &out->w, &out->h, extent, 0) == CE_None;
}

static bool suggest_placed_part(const struct pb_raster *raster, const char *wkt,
                                const struct pb_ground_ask *ask, double turn,
                                struct suggestion *out)
{
    char **options = CSLSetNameValue(NULL, "DST_SRS", wkt);
    GDALDatasetH part = make_part(raster, ask);
    void *image = part != NULL ? GDALCreateGenImgProjTransformer2(part, NULL, options) : NULL;
    const bool fine = image != NULL && suggest(part, GDALGenImgProjTransform, image, turn, out);
    CSLDestroy(options);
    if (image != NULL)
        GDALDestroyGenImgProjTransformer(image);
    if (part != NULL)
        GDALClose(part);
    return fine;
}

/* Suggests a grid for a scene without a geotransform. */
static bool suggest_part(const struct pb_gdal_model *model, const struct pb_ground_ask *ask,
                         double turn, struct suggestion *out)
{
    struct pb_gdal_model part = *model; /* borrows its transformers */
    int32_t size[2];
    double grown[2];
    size_of_part(ask, size, grown);
    for (int i = 0; i < 2; i++) {
        part.part[i] = ask->part[i];
        part.scale[i] = 1 / grown[i];
    }
    GDALDatasetH set =
        GDALCreate(GDALGetDriverByName("MEM"), "", size[0], size[1], 0, GDT_Byte, NULL);
    const bool fine = set != NULL && suggest(set, pb_gdal_model_transform, &part, turn, out);
    if (set != NULL)
        GDALClose(set);
    return fine;
}

static bool suggest_grid(struct transform *t, const struct pb_raster *raster, const char *wkt,
                         const struct pb_ground_ask *ask, struct suggestion *out)
{
    GDALDatasetH source = t->made != NULL ? t->made : pb_gdal_dataset(raster);
    const double turn = pb_gdal_grid_turn(wkt);
    if (is_part(ask))
        return t->model.model == PB_GROUND_TRANSFORM
                   ? suggest_placed_part(raster, wkt, ask, turn, out)
                   : suggest_part(&t->model, ask, turn, out);
    /* With its own transformer GDAL detects equal systems and keeps their grid. */
    return pb_gdal_model_by_lonlat(&t->model)
               ? suggest(source, pb_gdal_model_transform, &t->model, turn, out)
               : suggest(source, GDALGenImgProjTransform, t->model.image, turn, out);
}

/* --- the finder ------------------------------------------------------------------------------- */

static double error_of(const struct pb_gdal_model *model)
{
    if (model->model == PB_GROUND_TPS)
        return SPLINE_ERROR_PX;
    return model->sensor != NULL ? SENSOR_ERROR_PX : 0;
}

static int find_grid(struct transform *t, const struct pb_raster *raster, const char *wkt,
                     const struct pb_ground_ask *ask, char *why, size_t bytes,
                     struct pb_ground_way *way)
{
    struct suggestion suggested;
    way->error_px = error_of(&t->model);
    if (ask->to != NULL) {
        GDALSetGenImgProjTransformerDstGeoTransform(t->model.image, ask->to->transform);
        way->w = ask->to_w;
        way->h = ask->to_h;
        return 0;
    }
    if (!suggest_grid(t, raster, wkt, ask, &suggested)) {
        (void)snprintf(
            why, bytes,
            "the scene cannot be brought into '%.80s' by %s: that is not defined at its position",
            ask->crs, t->model.by);
        return -EDOM;
    }
    if (suggested.is_torn && !(ask->has_bounds && ask->pixel > 0)) {
        (void)snprintf(why, bytes,
                       "the scene is on both sides of an edge of '%.80s', as the antimeridian is "
                       "one: a grid around it would be nearly empty; give bounds and pixel of one "
                       "side, or a crs without an edge there",
                       ask->crs);
        return -EDOM;
    }
    const int rc =
        pb_gdal_grid_set(ask, wkt, suggested.transform, suggested.w, suggested.h, why, bytes, way);
    if (rc == 0) {
        GDALSetGenImgProjTransformerDstGeoTransform(t->model.image, way->ground.transform);
        memcpy(way->ground.by, t->model.by, sizeof way->ground.by);
        way->ground.model = ask->from != NULL ? ask->from->model : t->model.model;
        way->ground.on_relief = ask->from != NULL && ask->from->on_relief;
    }
    return rc;
}

static int open_transform(const struct pb_ground_source *source, const struct pb_ground_ask *ask,
                          char *why, size_t bytes, struct pb_ground_way *way)
{
    struct transform *t = calloc(1, sizeof *t);
    char *wkt = pb_gdal_grid_wkt(ask->crs);
    int rc = t != NULL ? 0 : -ENOMEM;
    if (rc == 0 && wkt == NULL) {
        (void)snprintf(why, bytes,
                       "'%.80s' is no coordinate system that PROJ knows: write EPSG:32633, or WKT",
                       ask->crs);
        rc = -EINVAL;
    }
    if (rc == 0 && ask->from != NULL) {
        t->made = pb_gdal_grid_dataset(ask->from, ask->source_w, ask->source_h);
        rc = t->made != NULL ? pb_gdal_model_made(t->made, ask, wkt, why, bytes, &t->model)
                             : -ENOMEM;
    } else if (rc == 0) {
        rc = pb_gdal_model_open(source, ask, wkt, why, bytes, &t->model);
    }
    if (rc == 0)
        t->looks_back = t->model.model == PB_GROUND_TRANSFORM && pb_gdal_grid_is_open(wkt);
    if (rc == 0)
        rc = find_grid(t, source->raster, wkt, ask, why, bytes, way);
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
    const struct pb_ground_source *source = of;
    struct pb_gdal_words words; /* not read: `why` describes the problem in terms of the step */
    pb_gdal_listen(&words, source->raster);
    int rc = open_transform(source, ask, why, why_bytes, out_way);
    pb_gdal_unlisten();
    return rc;
}

/* Sets ok to 0 where the return of a place differs from the place in the new grid. */
static void look_back(const struct transform *t, int n, const double *x, const double *y,
                      const double *from_x, const double *from_y, int *ok)
{
    double back_x[POINTS], back_y[POINTS], z[POINTS];
    int there[POINTS];
    for (int i = 0; i < n; i++) {
        back_x[i] = ok[i] ? x[i] : 0;
        back_y[i] = ok[i] ? y[i] : 0;
        z[i] = 0;
    }
    const bool fine =
        pb_gdal_model_transform((void *)(uintptr_t)&t->model, FALSE, n, back_x, back_y, z, there);
    for (int i = 0; i < n; i++)
        ok[i] = ok[i] && fine && there[i] && fabs(back_x[i] - from_x[i]) < BACK_PX &&
                fabs(back_y[i] - from_y[i]) < BACK_PX;
}

static void points_of(void *transform, size_t n, double *x, double *y)
{
    const struct transform *t = transform;
    double from_x[POINTS], from_y[POINTS];
    struct pb_gdal_words words; /* messages about places outside the projection */
    double z[POINTS];
    int ok[POINTS];
    pb_gdal_listen(&words, NULL);
    for (size_t first = 0; first < n; first += POINTS) {
        int some = n - first < POINTS ? (int)(n - first) : POINTS;
        memset(z, 0, sizeof z);
        memcpy(from_x, x + first, (size_t)some * sizeof *x);
        memcpy(from_y, y + first, (size_t)some * sizeof *y);
        bool fine = pb_gdal_model_transform((void *)(uintptr_t)&t->model, TRUE, some, x + first,
                                            y + first, z, ok);
        if (fine && t->looks_back)
            look_back(t, some, x + first, y + first, from_x, from_y, ok);
        for (int i = 0; i < some; i++)
            if (!fine || !ok[i] || !isfinite(x[first + (size_t)i]) ||
                !isfinite(y[first + (size_t)i]))
                x[first + (size_t)i] = y[first + (size_t)i] = (double)NAN;
    }
    pb_gdal_unlisten();
}

struct pb_ground_finder pb_raster_ground_finder(const struct pb_ground_source *source)
{
    return (struct pb_ground_finder){.of = (void *)(uintptr_t)source,
                                     .open = open_way,
                                     .points = points_of,
                                     .close = close_transform};
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
    raster->dataset = pb_gdal_grid_dataset(ground, w, h);
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
