/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Georeferencing of an image, derived by GDAL from tie points, GeoKeys and RPCs. */
#include "pipeline/gdal/raster_gdal_place.h"
#include "pipeline/gdal/raster_gdal_inside.h"
#include "pipeline/gdal/raster_gdal_said.h"
#include "pipeline/gdal/raster_gdal_sidecars.h"
#include "pipeline/raster/tiff_header.h"
#include "config/base/text_clean.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { POINTS = 128 }; /* transformed at once */
/* Limits of control points: an image is not placed by points if its extent exceeds their spread
 * by EXTRAPOLATED, or if its pixels would be SQUEEZED times longer than wide. */
#define EXTRAPOLATED 1000.0
#define SQUEEZED     10000.0

/* Makes what a plain raster gets when it is needed: it belongs to one thread. */
static struct pb_raster *own(const struct pb_raster *raster)
{
    return (struct pb_raster *)(uintptr_t)raster;
}

OGRSpatialReferenceH pb_gdal_system(const struct pb_raster *raster)
{
    OGRSpatialReferenceH srs = raster->known == NULL ? GDALGetSpatialRef(raster->dataset) : NULL;
    if (raster->is_plain && raster->system == NULL) {
        own(raster)->system = OSRClone(pb_gdal_known_lock(raster->known));
        pb_gdal_known_unlock();
    }
    return srs != NULL ? srs : raster->system;
}

OGRSpatialReferenceH pb_gdal_srs(const struct pb_raster *raster)
{
    OGRSpatialReferenceH srs = pb_gdal_system(raster);
    return srs != NULL || raster->is_plain ? srs : GDALGetGCPSpatialRef(raster->dataset);
}

GDALDatasetH pb_gdal_dataset(const struct pb_raster *raster)
{
    const struct pb_raster_info *info = &raster->info;
    if (raster->dataset != NULL || !raster->is_plain)
        return raster->dataset;
    OGRSpatialReferenceH srs = pb_gdal_system(raster);
    GDALDatasetH set =
        GDALCreate(GDALGetDriverByName("MEM"), "", info->width, info->height, 0, GDT_Byte, NULL);
    const bool fine = set != NULL && srs != NULL && GDALSetSpatialRef(set, srs) == CE_None &&
                      GDALSetGeoTransform(set, (double *)(uintptr_t)info->transform) == CE_None;
    if (!fine && set != NULL)
        GDALClose(set);
    own(raster)->dataset = fine ? set : NULL;
    return raster->dataset;
}

void pb_gdal_transform(GDALTransformerFunc transform, void *arg, double (*xy)[2], size_t n)
{
    double x[POINTS], y[POINTS], z[POINTS];
    int ok[POINTS];
    for (size_t first = 0; first < n; first += POINTS) {
        const size_t some = n - first < POINTS ? n - first : POINTS;
        for (size_t i = 0; i < some; i++) {
            x[i] = xy[first + i][0];
            y[i] = xy[first + i][1];
            z[i] = 0;
        }
        const bool fine = transform(arg, FALSE, (int)some, x, y, z, ok);
        for (size_t i = 0; i < some; i++) {
            xy[first + i][0] = fine && ok[i] ? x[i] : (double)NAN;
            xy[first + i][1] = fine && ok[i] ? y[i] : (double)NAN;
        }
    }
}

bool pb_gdal_gcps_jump(const struct pb_raster *raster, double *out_middle, double *out_turn)
{
    OGRSpatialReferenceH srs = GDALGetGCPSpatialRef(raster->dataset);
    const GDAL_GCP *gcp = GDALGetGCPs(raster->dataset);
    double east = -INFINITY, before = -INFINITY, behind = INFINITY;
    if (srs == NULL || !OSRIsGeographic(srs))
        return false;
    const double half = M_PI / OSRGetAngularUnits(srs, NULL);
    for (int i = 0; i < raster->info.n_gcps; i++)
        east = fmax(east, gcp[i].dfGCPX);
    const double middle = east > half * (1 + 1e-9) ? half : 0;
    for (int i = 0; i < raster->info.n_gcps; i++) {
        const double lon = gcp[i].dfGCPX;
        before = lon < middle ? fmax(before, lon) : before;
        behind = lon >= middle ? fmin(behind, lon) : behind;
    }
    *out_middle = middle;
    *out_turn = 2 * half;
    return isfinite(behind - before) && behind - before > half;
}

/* Spread of points: variances along their longest axis and across it. */
struct spread {
    double along, across;
    double axis[2]; /* direction of `across` */
};

static struct spread spread_of(const GDAL_GCP *gcp, int n, bool of_ground)
{
    double mean[2] = {0, 0}, xx = 0, xy = 0, yy = 0;
    for (int i = 0; i < n; i++) {
        mean[0] += (of_ground ? gcp[i].dfGCPX : gcp[i].dfGCPPixel) / n;
        mean[1] += (of_ground ? gcp[i].dfGCPY : gcp[i].dfGCPLine) / n;
    }
    for (int i = 0; i < n; i++) {
        const double x = (of_ground ? gcp[i].dfGCPX : gcp[i].dfGCPPixel) - mean[0],
                     y = (of_ground ? gcp[i].dfGCPY : gcp[i].dfGCPLine) - mean[1];
        xx += x * x / n;
        xy += x * y / n;
        yy += y * y / n;
    }
    const double half = hypot((xx - yy) / 2, xy), along = (xx + yy) / 2 + half;
    const double angle = atan2(2 * xy, xx - yy) / 2;
    return (struct spread){.along = along,
                           .across = along > 0 ? fmax((xx * yy - xy * xy) / along, 0) : 0,
                           .axis = {-sin(angle), cos(angle)}};
}

bool pb_gdal_gcps_place(const struct pb_raster *raster)
{
    const struct pb_raster_info *info = &raster->info;
    GDAL_GCP *gcp = pb_gdal_gcps(raster);
    if (gcp == NULL)
        return false;
    const struct spread image = spread_of(gcp, info->n_gcps, false),
                        ground = spread_of(gcp, info->n_gcps, true);
    pb_gdal_free_gcps(gcp, info->n_gcps);
    const double wide = info->width * fabs(image.axis[0]) + info->height * fabs(image.axis[1]);
    const double deep = info->width * fabs(image.axis[1]) + info->height * fabs(image.axis[0]);
    return sqrt(image.across) > wide / EXTRAPOLATED && sqrt(image.along) > deep / EXTRAPOLATED &&
           ground.along > 0 &&
           sqrt(ground.across / ground.along) > sqrt(image.across / image.along) / SQUEEZED;
}

GDAL_GCP *pb_gdal_gcps(const struct pb_raster *raster)
{
    const int n = raster->info.n_gcps;
    GDAL_GCP *gcp = GDALDuplicateGCPs(n, GDALGetGCPs(raster->dataset));
    double middle, turn;
    if (gcp != NULL && pb_gdal_gcps_jump(raster, &middle, &turn))
        for (int i = 0; i < n; i++)
            gcp[i].dfGCPX += gcp[i].dfGCPX < middle ? turn : 0;
    return gcp;
}

void pb_gdal_free_gcps(GDAL_GCP *gcp, int n)
{
    if (gcp != NULL)
        GDALDeinitGCPs(n, gcp);
    CPLFree(gcp);
}

bool pb_gdal_read_rpc(const struct pb_raster *raster, GDALRPCInfoV2 *out_rpc)
{
    const GDALRPCInfoV2 *const rpc = out_rpc;
    if (!raster->info.has_rpc ||
        !GDALExtractRPCInfoV2(GDALGetMetadata(raster->dataset, "RPC"), out_rpc))
        return false;
    const double scales[] = {rpc->dfLINE_SCALE, rpc->dfSAMP_SCALE, rpc->dfLAT_SCALE,
                             rpc->dfLONG_SCALE, rpc->dfHEIGHT_SCALE};
    for (size_t i = 0; i < sizeof scales / sizeof scales[0]; i++) {
        if (!isfinite(scales[i]) || scales[i] == 0)
            return false;
    }
    return true;
}

bool pb_gdal_rpc_to_ground(const struct pb_raster *raster, double (*xy)[2], size_t n)
{
    GDALRPCInfoV2 rpc;
    char height[64];
    if (!pb_gdal_read_rpc(raster, &rpc))
        return false;
    (void)CPLsnprintf(height, sizeof height, "RPC_HEIGHT=%.17g", rpc.dfHEIGHT_OFF);
    const char *const options[] = {height, NULL};
    void *arg = GDALCreateRPCTransformerV2(&rpc, FALSE, 0, (char **)(uintptr_t)options);
    if (arg == NULL)
        return false;
    pb_gdal_transform(GDALRPCTransform, arg, xy, n);
    GDALDestroyRPCTransformer(arg);
    return true;
}

/* Finds the orientation of rows and columns without a transform: from the plane that fits the
 * GCPs best, or from the RPCs around the middle of the image. */
static void read_orientation(struct pb_raster *raster)
{
    struct pb_raster_info *info = &raster->info;
    double fit[6], x = info->width / 2.0, y = info->height / 2.0;
    double at[3][2] = {{x, y}, {x + 1, y}, {x, y + 1}};
    if (info->has_transform) {
        memcpy(fit, info->transform, sizeof fit);
        info->has_orientation = true;
    } else if (info->n_gcps >= 3 && pb_gdal_gcps_place(raster)) {
        GDAL_GCP *gcp = pb_gdal_gcps(raster);
        info->has_orientation = gcp != NULL && GDALGCPsToGeoTransform(info->n_gcps, gcp, fit, TRUE);
        pb_gdal_free_gcps(gcp, info->n_gcps);
    } else if (pb_gdal_rpc_to_ground(raster, at, 3)) {
        fit[1] = at[1][0] - at[0][0];
        fit[2] = at[2][0] - at[0][0];
        fit[4] = at[1][1] - at[0][1];
        fit[5] = at[2][1] - at[0][1];
        info->has_orientation = true;
    }
    const double d[4] = {fit[1], fit[2], fit[4], fit[5]};
    for (int i = 0; info->has_orientation && i < 4; i++)
        info->has_orientation = isfinite(d[i]);
    if (info->has_orientation)
        memcpy(info->orientation, d, sizeof d);
}

/* Reads the law of a system whose unit depends on the place. */
static void read_latitude(OGRSpatialReferenceH srs, struct pb_ground_unit *unit)
{
    unit->law = PB_GROUND_LATITUDE;
    unit->radians = OSRGetAngularUnits(srs, NULL);
}

/* The WKT of web Mercator, whatever its code, has the sphere in an extension: the ellipsoid's
 * latitudes are mapped as if they were the sphere's. */
static void read_mercator(OGRSpatialReferenceH srs, struct pb_ground_unit *unit)
{
    const char *const how = OSRGetAttrValue(srs, "EXTENSION", 1);
    const char *const projection = OSRGetAttrValue(srs, "PROJECTION", 0);
    double scale = OSRGetNormProjParm(srs, SRS_PP_SCALE_FACTOR, 1.0, NULL);
    if (strcmp(projection, SRS_PT_MERCATOR_2SP) == 0) {
        const double parallel = OSRGetNormProjParm(srs, SRS_PP_STANDARD_PARALLEL_1, 0, NULL);
        const double latitude = parallel * (M_PI / 180), sine = sin(latitude);
        scale = cos(latitude) / sqrt(1 - unit->square * sine * sine);
    }
    unit->law = PB_GROUND_MERCATOR;
    unit->map_square = how != NULL && strstr(how, "+b=6378137 ") != NULL ? 0 : unit->square;
    unit->radians = OSRGetLinearUnits(srs, NULL) / (unit->axis * scale);
    unit->origin = OSRGetProjParm(srs, SRS_PP_FALSE_NORTHING, 0, NULL);
}

static bool is_mercator(OGRSpatialReferenceH srs)
{
    const char *const projection = OSRGetAttrValue(srs, "PROJECTION", 0);
    return projection != NULL && (strcmp(projection, SRS_PT_MERCATOR_1SP) == 0 ||
                                  strcmp(projection, SRS_PT_MERCATOR_2SP) == 0);
}

/* Sets the law if all its numbers are known and the middle of the image has a latitude. */
static void read_law(OGRSpatialReferenceH srs, const struct pb_raster_info *info,
                     struct pb_ground_unit *out)
{
    const double *const t = info->transform;
    const double y = t[3] + info->width / 2.0 * t[4] + info->height / 2.0 * t[5];
    OGRErr rc = OGRERR_NONE, round = OGRERR_NONE;
    struct pb_ground_unit unit = {.axis = OSRGetSemiMajor(srs, &rc)};
    const double inverse = OSRGetInvFlattening(srs, &round);
    const double flattening = round == OGRERR_NONE && inverse > 0 ? 1 / inverse : 0;
    unit.square = flattening * (2 - flattening);
    if (OSRIsGeographic(srs))
        read_latitude(srs, &unit);
    else
        read_mercator(srs, &unit);
    const bool known = rc == OGRERR_NONE && isfinite(unit.axis) && unit.axis > 0 &&
                       isfinite(unit.radians) && unit.radians > 0 && isfinite(unit.origin) &&
                       unit.square >= 0 && unit.square < 1;
    if (!known)
        return;
    pb_ground_metres(&unit, y, unit.metres);
    if (fabs(pb_ground_latitude(&unit, y)) >= 1.5707)
        unit.metres[0] = unit.metres[1] = 0;
    *out = unit;
}

void pb_gdal_read_unit(OGRSpatialReferenceH srs, struct pb_raster_info *info)
{
    struct pb_ground_unit *const unit = &info->unit;
    if (OSRIsGeographic(srs) || is_mercator(srs))
        read_law(srs, info, unit);
    else
        unit->metres[0] = unit->metres[1] = OSRGetLinearUnits(srs, NULL);
    for (int i = 0; i < 2; i++)
        if (!isfinite(unit->metres[i]) || unit->metres[i] < 0)
            unit->metres[i] = 0;
}

static void read_system(OGRSpatialReferenceH srs, struct pb_raster_info *info)
{
    info->has_crs = srs != NULL;
    if (srs != NULL && info->has_transform)
        pb_gdal_read_unit(srs, info);
    const char *name = srs ? OSRGetAuthorityName(srs, NULL) : NULL;
    const char *code = srs ? OSRGetAuthorityCode(srs, NULL) : NULL;
    char both[sizeof info->crs_code];
    if (name != NULL && code != NULL &&
        snprintf(both, sizeof both, "%s:%s", name, code) < (int)sizeof both)
        (void)pb_text_clean(both, info->crs_code, sizeof info->crs_code);
}

void pb_gdal_read_known(struct pb_raster *raster)
{
    if (pb_gdal_known_place(raster->known, &raster->info))
        return;
    read_system(pb_gdal_known_lock(raster->known), &raster->info);
    pb_gdal_known_unlock();
}

/* The CRS of an image with GCPs is theirs. */
static void read_known(struct pb_raster *raster)
{
    if (raster->info.n_gcps > 0)
        raster->known = NULL;
    if (raster->known == NULL)
        return;
    OGRSpatialReferenceH srs = pb_gdal_known_lock(raster->known);
    raster->system = OSRClone(srs);
    if (raster->system != NULL)
        read_system(srs, &raster->info);
    pb_gdal_known_unlock();
    if (raster->system == NULL)
        raster->known = NULL;
}

void pb_gdal_read_place(struct pb_raster *raster)
{
    struct pb_raster_info *info = &raster->info;
    double transform[6], inverse[6];
    bool fine = GDALGetGeoTransform(raster->dataset, transform) == CE_None;
    for (int i = 0; fine && i < 6; i++)
        fine = isfinite(transform[i]);
    fine = fine && GDALInvGeoTransform(transform, inverse);
    for (int i = 0; fine && i < 6; i++)
        fine = isfinite(inverse[i]);
    info->has_transform = fine;
    if (fine)
        memcpy(info->transform, transform, sizeof transform);
    info->n_gcps = GDALGetGCPCount(raster->dataset);
    info->has_rpc = GDALGetMetadata(raster->dataset, "RPC") != NULL;
    read_orientation(raster);
    read_known(raster);
    if (raster->known != NULL)
        return;
    if (pb_gdal_srs(raster) == NULL)
        raster->system = pb_gdal_sidecar_system(raster);
    read_system(pb_gdal_srs(raster), info);
}

int pb_gdal_check_place(const struct pb_raster *raster, const struct pb_tiff_geo *promised,
                        const struct pb_gdal_words *words, struct pb_err *err)
{
    const struct pb_raster_info *info = &raster->info;
    const char *what = NULL;
    if (promised->place && !info->has_transform && info->n_gcps == 0)
        what = "its tie points or its matrix give no finite, invertible transform";
    else if (promised->crs && !info->has_crs)
        what = "its GeoKeys give no CRS";
    else if (promised->rpc && !info->has_rpc)
        what = "its RPC tag gives no RPCs";
    if (pb_gdal_says(words, "proj.db"))
        return pb_fail_at(err, PB_E_SYSTEM, raster->file.path, 0, 0, "%s", words->first);
    if (what == NULL)
        return 0;
    return pb_fail_at(err, PB_E_INPUT_GEOREFERENCE, raster->file.path, 0, 0, "%s%s%s", what,
                      words->first[0] != '\0' ? ": " : "", words->first);
}
