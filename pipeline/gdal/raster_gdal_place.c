/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Where an image lies on the ground, as GDAL makes it of tie points, GeoKeys and RPCs. */
#include "pipeline/gdal/raster_gdal_place.h"
#include "pipeline/raster/ground_unit.h"
#include "pipeline/raster/outline.h"
#include "pipeline/gdal/raster_gdal_inside.h"
#include "pipeline/gdal/raster_gdal_said.h"
#include "pipeline/raster/tiff_header.h"
#include "pipeline/io/text_clean.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

OGRSpatialReferenceH pb_gdal_srs(const struct pb_raster *raster)
{
    OGRSpatialReferenceH srs = GDALGetSpatialRef(raster->dataset);
    return srs != NULL ? srs : GDALGetGCPSpatialRef(raster->dataset);
}

bool pb_gdal_transform(GDALTransformerFunc transform, void *arg, double (*xy)[2], int n)
{
    double x[PB_OUTLINE_POINTS], y[PB_OUTLINE_POINTS], z[PB_OUTLINE_POINTS] = {0};
    int ok[PB_OUTLINE_POINTS];
    for (int i = 0; i < n; i++) {
        x[i] = xy[i][0];
        y[i] = xy[i][1];
    }
    bool fine = transform(arg, FALSE, n, x, y, z, ok);
    for (int i = 0; fine && i < n; i++) {
        fine = ok[i];
        xy[i][0] = x[i];
        xy[i][1] = y[i];
    }
    return fine;
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

bool pb_gdal_rpc_to_ground(const struct pb_raster *raster, double (*xy)[2], int n)
{
    GDALRPCInfoV2 rpc;
    char height[64];
    if (!pb_gdal_read_rpc(raster, &rpc))
        return false;
    (void)CPLsnprintf(height, sizeof height, "RPC_HEIGHT=%.17g", rpc.dfHEIGHT_OFF);
    const char *const options[] = {height, NULL};
    void *arg = GDALCreateRPCTransformerV2(&rpc, FALSE, 0, (char **)(uintptr_t)options);
    bool fine = arg != NULL && pb_gdal_transform(GDALRPCTransform, arg, xy, n);
    if (arg != NULL)
        GDALDestroyRPCTransformer(arg);
    return fine;
}

/* Which way rows and columns go, where no transform says it: by the plane that fits the GCPs best,
 * or by the RPCs around the middle of the image. */
static void read_orientation(struct pb_raster *raster)
{
    struct pb_raster_info *info = &raster->info;
    double fit[6], x = info->width / 2.0, y = info->height / 2.0;
    double at[3][2] = {{x, y}, {x + 1, y}, {x, y + 1}};
    if (info->has_transform) {
        memcpy(fit, info->transform, sizeof fit);
        info->has_orientation = true;
    } else if (info->n_gcps >= 3) {
        info->has_orientation =
            GDALGCPsToGeoTransform(info->n_gcps, GDALGetGCPs(raster->dataset), fit, TRUE);
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

void pb_gdal_read_unit(OGRSpatialReferenceH srs, struct pb_raster_info *info)
{
    const double *const t = info->transform;
    OGRErr rc = OGRERR_NONE;
    if (OSRIsGeographic(srs)) {
        const double unit = OSRGetAngularUnits(srs, NULL), semi_major = OSRGetSemiMajor(srs, &rc);
        const double y = t[3] + info->width / 2.0 * t[4] + info->height / 2.0 * t[5];
        if (rc == OGRERR_NONE && fabs(y * unit) < 1.5707)
            pb_ground_unit(semi_major, OSRGetInvFlattening(srs, &rc), y * unit, unit,
                           info->unit_metres);
        const double inverse = OSRGetInvFlattening(srs, &rc);
        const double flattening = inverse > 0 ? 1 / inverse : 0;
        if (rc == OGRERR_NONE && isfinite(semi_major) && semi_major > 0 && unit > 0) {
            info->ellipsoid_axis = semi_major;
            info->ellipsoid_square = flattening * (2 - flattening);
            info->unit_radians = unit;
        }
    } else {
        info->unit_metres[0] = info->unit_metres[1] = OSRGetLinearUnits(srs, NULL);
    }
    for (int i = 0; i < 2; i++)
        if (!isfinite(info->unit_metres[i]) || info->unit_metres[i] < 0)
            info->unit_metres[i] = 0;
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
    OGRSpatialReferenceH srs = pb_gdal_srs(raster);
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
