/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * RPCs and sensors are the second half of the transformation, after the one from the new grid to
 * longitude and latitude. Far from the scene the fractions of RPCs yield arbitrary numbers;
 * therefore places there are invalid. */
#include "pipeline/gdal/raster_gdal_model.h"
#include "pipeline/gdal/raster_gdal_place.h"
#include "pipeline/gdal/raster_gdal_said.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { POINTS = 1024, TPS_MOST = 1024 };
/* RPCs are fitted within their scales around their offsets; this multiple of the scales is
 * trusted. */
#define RPC_REACH 1.5

/* --- georeferencing of a scene
 * ----------------------------------------------------------------- */

static bool has_transform(const struct pb_raster *raster)
{
    return raster->info.has_transform && pb_gdal_srs(raster) != NULL;
}

static bool has_gcps(const struct pb_raster *raster)
{
    return raster->info.n_gcps >= 3 && GDALGetGCPSpatialRef(raster->dataset) != NULL;
}

/* Returns true if the source has the size of the sensor's image: in a part of that image pixels
 * have other coordinates. */
static bool is_sensors_image(const struct pb_ground_source *source)
{
    const struct pb_raster_info *info = &source->raster->info;
    return source->sensor.of != NULL && info->width == source->sensor.width &&
           info->height == source->sensor.height;
}

/* Selects the requested model; AUTO if the scene has no model. */
static enum pb_ground_model find_model(const struct pb_ground_source *source,
                                       const struct pb_ground_ask *ask)
{
    const struct pb_raster *raster = source->raster;
    GDALRPCInfoV2 rpc;
    if (ask->model != PB_GROUND_AUTO)
        return ask->model;
    return has_transform(raster)            ? PB_GROUND_TRANSFORM
           : is_sensors_image(source)       ? PB_GROUND_SENSOR
           : has_gcps(raster)               ? PB_GROUND_GCPS
           : pb_gdal_read_rpc(raster, &rpc) ? PB_GROUND_RPC
                                            : PB_GROUND_AUTO;
}

static int undefined(const struct pb_gdal_model *m, const struct pb_ground_ask *ask, char *why,
                     size_t bytes)
{
    (void)snprintf(
        why, bytes,
        "the scene cannot be brought into '%.80s' by %s: that is not defined at its position",
        ask->crs, m->by);
    return -EDOM;
}

static int missing(char *why, size_t bytes, const char *words)
{
    (void)snprintf(why, bytes, "%s", words);
    return -EINVAL;
}

/* Reports that the scene's georeferencing is unusable, independent of the step's parameters. */
static int unfit(char *why, size_t bytes, const char *words)
{
    (void)missing(why, bytes, words);
    return -EDOM;
}

/* --- GDAL's transformers ---------------------------------------------------------------------- */

/* system: coordinate system of the source; NULL: its own. */
static void *open_image(GDALDatasetH source, const char *system, const char *method,
                        const char *order, const char *wkt)
{
    char **options = CSLSetNameValue(NULL, "DST_SRS", wkt);
    options = system != NULL ? CSLSetNameValue(options, "SRC_SRS", system) : options;
    options = method != NULL ? CSLSetNameValue(options, "METHOD", method) : options;
    options = order != NULL ? CSLSetNameValue(options, "MAX_GCP_ORDER", order) : options;
    void *image = GDALCreateGenImgProjTransformer2(source, NULL, options);
    CSLDestroy(options);
    return image;
}

/* Opens the geotransform of a scene. GDAL needs the system of a sidecar .prj, which the dataset
 * does not have. */
static void *open_placed(const struct pb_raster *raster, const char *wkt)
{
    static const char *const options[] = {"FORMAT=WKT2_2019", NULL};
    char *from = NULL;
    void *image = NULL;
    GDALDatasetH set = pb_gdal_dataset(raster);
    if (set != NULL && (GDALGetSpatialRef(set) != NULL ||
                        OSRExportToWktEx(pb_gdal_srs(raster), &from, options) == OGRERR_NONE))
        image = open_image(set, from, "GEOTRANSFORM", NULL, wkt);
    CPLFree(from);
    return image;
}

static int open_transform(const struct pb_ground_source *source, const struct pb_ground_ask *ask,
                          const char *wkt, char *why, size_t bytes, struct pb_gdal_model *m)
{
    const struct pb_raster *raster = source->raster;
    (void)ask;
    if (!has_transform(raster))
        return missing(why, bytes, "the scene has no geotransform with a coordinate system");
    (void)snprintf(m->by, sizeof m->by, "the geotransform");
    m->image = open_placed(raster, wkt);
    return 0;
}

int pb_gdal_model_made(GDALDatasetH made, const struct pb_ground_ask *ask, const char *wkt,
                       char *why, size_t why_bytes, struct pb_gdal_model *out)
{
    *out = (struct pb_gdal_model){.model = PB_GROUND_TRANSFORM, .scale = {1, 1}};
    (void)snprintf(out->by, sizeof out->by, "%s", ask->from->by);
    out->image = open_image(made, NULL, "GEOTRANSFORM", NULL, wkt);
    return out->image != NULL ? 0 : undefined(out, ask, why, why_bytes);
}

static int check_gcps(const struct pb_raster *raster, const struct pb_ground_ask *ask, char *why,
                      size_t bytes)
{
    static const int needs[] = {3, 3, 6, 10};
    const int n = raster->info.n_gcps;
    double middle, turn;
    if (n == 0)
        return missing(why, bytes, "the scene has no ground control points");
    if (GDALGetGCPSpatialRef(raster->dataset) == NULL)
        return missing(why, bytes, "the scene's ground control points have no coordinate system");
    if (pb_gdal_gcps_jump(raster, &middle, &turn))
        return unfit(why, bytes,
                     "longitudes of the scene's ground control points jump by 360 degrees within "
                     "it, which neither a polynomial nor a spline follows: give the points in "
                     "metres of a map (gdal_translate -gcp -a_srs), or take another model (from)");
    if (n >= 3 && !pb_gdal_gcps_place(raster))
        return unfit(why, bytes,
                     "the scene's ground control points are on a line or in one spot, in the "
                     "image or on the ground, so they do not place the rest of it: give points all "
                     "over the image (gdal_translate -gcp), or take another model (from)");
    if (ask->model == PB_GROUND_TPS && n > TPS_MOST)
        (void)snprintf(
            why, bytes,
            "a spline takes %d ground control points at most, and the scene has %d: use from: gcps",
            TPS_MOST, n);
    else if (n < needs[ask->order])
        (void)snprintf(why, bytes,
                       "the scene has %d ground control point%s, and %s takes %d or more", n,
                       n == 1 ? "" : "s",
                       ask->model == PB_GROUND_TPS ? "a spline"
                       : ask->order > 1            ? "a polynomial of that order"
                                                   : "a polynomial",
                       needs[ask->order]);
    else
        return 0;
    return -EINVAL;
}

static int open_gcps(const struct pb_ground_source *source, const struct pb_ground_ask *ask,
                     const char *wkt, char *why, size_t bytes, struct pb_gdal_model *m)
{
    const struct pb_raster *raster = source->raster;
    const int n = raster->info.n_gcps, rc = check_gcps(raster, ask, why, bytes);
    if (rc < 0)
        return rc;
    if (m->model == PB_GROUND_TPS) {
        (void)snprintf(m->by, sizeof m->by, "a thin-plate spline through %d ground control points",
                       n);
        m->image = open_image(raster->dataset, NULL, "GCP_TPS", NULL, wkt);
        return 0;
    }
    const int order = ask->order > 0 ? ask->order : n >= 6 ? 2 : 1; /* GDAL's choice */
    const char digit[2] = {(char)('0' + order), '\0'};
    (void)snprintf(m->by, sizeof m->by, "a polynomial of order %d of %d ground control points",
                   order, n);
    m->image = open_image(raster->dataset, NULL, "GCP_POLYNOMIAL", digit, wkt);
    return 0;
}

static int open_rpc(const struct pb_ground_source *source, const struct pb_ground_ask *ask,
                    const char *wkt, char *why, size_t bytes, struct pb_gdal_model *m)
{
    const struct pb_raster *raster = source->raster;
    GDALRPCInfoV2 rpc;
    char height[64];
    if (!raster->info.has_rpc)
        return missing(why, bytes, "the scene has no RPCs");
    if (!pb_gdal_read_rpc(raster, &rpc))
        return unfit(why, bytes, "the scene's RPCs are not complete, or have a scale of 0");
    const double h = ask->has_height ? ask->height : rpc.dfHEIGHT_OFF;
    (void)CPLsnprintf(height, sizeof height, "RPC_HEIGHT=%.17g", h);
    (void)CPLsnprintf(m->by, sizeof m->by, "RPCs at a height of %.10g m%s", h,
                      ask->has_height ? "" : ", their own mean");
    const char *const options[] = {height, NULL};
    m->lonlat[0] = rpc.dfLONG_OFF;
    m->lonlat[1] = rpc.dfLAT_OFF;
    m->reach[0] = RPC_REACH * fabs(rpc.dfLONG_SCALE);
    m->reach[1] = RPC_REACH * fabs(rpc.dfLAT_SCALE);
    m->image = open_image(NULL, "EPSG:4326", NULL, NULL, wkt);
    m->rpc = GDALCreateRPCTransformerV2(&rpc, FALSE, 0, (char **)(uintptr_t)options);
    return 0;
}

static int open_sensor(const struct pb_ground_source *source, const struct pb_ground_ask *ask,
                       const char *wkt, char *why, size_t bytes, struct pb_gdal_model *m)
{
    const struct pb_ground_sensor *sensor = &source->sensor;
    const struct pb_raster_info *info = &source->raster->info;
    if (sensor->of == NULL)
        return missing(why, bytes, sensor->why_none);
    if (!is_sensors_image(source)) {
        (void)snprintf(
            why, bytes,
            "the scene has %d x %d pixels, and its annotation is of an image of %d x %d: "
            "it places the whole image only",
            info->width, info->height, sensor->width, sensor->height);
        return -EINVAL;
    }
    m->height = ask->has_height ? ask->height : sensor->mean_height;
    if (!isfinite(m->height))
        return missing(why, bytes,
                       "the annotation has no tie points, whose mean height would be taken: write "
                       "height");
    (void)CPLsnprintf(m->by, sizeof m->by, "%s, at a height of %.10g m%s", sensor->name, m->height,
                      ask->has_height ? "" : ", the mean of its tie points");
    if (!sensor->ground(sensor->of, info->width / 2.0, info->height / 2.0, m->height, &m->lonlat[0],
                        &m->lonlat[1]))
        m->lonlat[0] = m->lonlat[1] = NAN;
    m->image = open_image(NULL, "EPSG:4326", NULL, NULL, wkt);
    m->sensor = sensor;
    return 0;
}

int pb_gdal_model_open(const struct pb_ground_source *source, const struct pb_ground_ask *ask,
                       const char *wkt, char *why, size_t why_bytes, struct pb_gdal_model *out)
{
    static int (*const ways[])(const struct pb_ground_source *, const struct pb_ground_ask *,
                               const char *, char *, size_t, struct pb_gdal_model *) = {
        [PB_GROUND_TRANSFORM] = open_transform,
        [PB_GROUND_GCPS] = open_gcps,
        [PB_GROUND_TPS] = open_gcps,
        [PB_GROUND_RPC] = open_rpc,
        [PB_GROUND_SENSOR] = open_sensor,
    };
    *out = (struct pb_gdal_model){.model = find_model(source, ask), .scale = {1, 1}};
    if (out->model == PB_GROUND_AUTO)
        return missing(why, why_bytes,
                       "the scene has no geotransform with a coordinate system, no three ground "
                       "control points and no RPCs, so its pixels cannot be brought into another "
                       "system");
    const int rc = ways[out->model](source, ask, wkt, why, why_bytes, out);
    const bool is_open = out->image != NULL && (out->rpc != NULL || out->model != PB_GROUND_RPC);
    return rc < 0 || is_open ? rc : undefined(out, ask, why, why_bytes);
}

/* --- points ----------------------------------------------------------------------------------- */

static bool is_near(const struct pb_gdal_model *m, double lon, double lat)
{
    return fabs(remainder(lon - m->lonlat[0], 360.0)) <= m->reach[0] &&
           fabs(lat - m->lonlat[1]) <= m->reach[1];
}

static bool by_rpc(const struct pb_gdal_model *m, int to_source, int n, double *x, double *y,
                   double *z, int *ok)
{
    bool near[POINTS];
    for (int i = 0; i < n; i++)
        near[i] = !to_source || is_near(m, x[i], y[i]);
    const bool fine = GDALRPCTransform(m->rpc, to_source, n, x, y, z, ok);
    for (int i = 0; i < n; i++)
        ok[i] = ok[i] && near[i];
    return fine;
}

static bool by_sensor(const struct pb_gdal_model *m, int to_source, int n, double *x, double *y,
                      double *z, int *ok)
{
    const struct pb_ground_sensor *s = m->sensor;
    (void)z;
    for (int i = 0; i < n; i++) {
        const double a = x[i], b = y[i];
        ok[i] = to_source ? s->pixel(s->of, a, b, m->height, &x[i], &y[i])
                          : s->ground(s->of, a, b, m->height, &x[i], &y[i]);
    }
    return true;
}

bool pb_gdal_model_by_lonlat(const struct pb_gdal_model *m)
{
    return m->rpc != NULL || m->sensor != NULL;
}

/* Moves longitudes of the scene into one turn. */
static void unwind(const struct pb_gdal_model *m, int n, double *lon)
{
    for (int i = 0; i < n; i++)
        if (fabs(lon[i] - m->lonlat[0]) > 180)
            lon[i] -= 360 * round((lon[i] - m->lonlat[0]) / 360);
}

/* Transforms at most POINTS points. */
static bool by_lonlat(const struct pb_gdal_model *m, int to_source, int n, double *x, double *y,
                      double *z, int *ok)
{
    bool (*const half)(const struct pb_gdal_model *, int, int, double *, double *, double *,
                       int *) = m->rpc != NULL ? by_rpc : by_sensor;
    int first[POINTS];
    bool fine = to_source ? GDALGenImgProjTransform(m->image, TRUE, n, x, y, z, first)
                          : half(m, FALSE, n, x, y, z, first);
    if (!to_source)
        unwind(m, n, x);
    fine = fine && (to_source ? half(m, TRUE, n, x, y, z, ok)
                              : GDALGenImgProjTransform(m->image, FALSE, n, x, y, z, ok));
    for (int i = 0; i < n; i++)
        ok[i] = fine && ok[i] && first[i];
    return fine;
}

static void to_part(const struct pb_gdal_model *m, int to_source, int n, double *x, double *y)
{
    for (int i = 0; i < n; i++) {
        x[i] = to_source ? (x[i] - m->part[0]) * m->scale[0] : x[i] / m->scale[0] + m->part[0];
        y[i] = to_source ? (y[i] - m->part[1]) * m->scale[1] : y[i] / m->scale[1] + m->part[1];
    }
}

int pb_gdal_model_transform(void *model, int to_source, int n, double *x, double *y, double *z,
                            int *ok)
{
    const struct pb_gdal_model *m = model;
    bool fine = true;
    for (int at = 0; at < n && fine; at += POINTS) {
        const int some = n - at < POINTS ? n - at : POINTS;
        if (!to_source)
            to_part(m, to_source, some, x + at, y + at);
        fine = pb_gdal_model_by_lonlat(m)
                   ? by_lonlat(m, to_source, some, x + at, y + at, z + at, ok + at)
                   : GDALGenImgProjTransform(m->image, to_source, some, x + at, y + at, z + at,
                                             ok + at);
        if (to_source)
            to_part(m, to_source, some, x + at, y + at);
    }
    return fine;
}

void pb_gdal_model_close(struct pb_gdal_model *model)
{
    if (model->image != NULL)
        GDALDestroyGenImgProjTransformer(model->image);
    if (model->rpc != NULL)
        GDALDestroyRPCTransformer(model->rpc);
    model->image = model->rpc = NULL;
}
