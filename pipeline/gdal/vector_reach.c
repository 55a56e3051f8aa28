/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/gdal/vector_reach.h"
#include "pipeline/gdal/raster_gdal_place.h"
#include "pipeline/gdal/vector_place.h"

#include <math.h>

/* A part of the scene's width and height to its right and below its upper left corner. */
static void place_at(const struct pb_raster *scene, double across, double down, double out[2])
{
    GDALApplyGeoTransform((double *)(uintptr_t)scene->info.transform, across * scene->info.width,
                          down * scene->info.height, &out[0], &out[1]);
}

static bool has_place(OGRCoordinateTransformationH to, double at[2])
{
    int fine = TRUE;
    return OCTTransformEx(to, 1, &at[0], &at[1], NULL, &fine) && fine && isfinite(at[0]) &&
           isfinite(at[1]);
}

/* A rectangle across 180 degrees has its east a turn behind its west. */
static void find_near(struct pb_vector_reach *reach, const struct pb_raster *scene,
                      OGRCoordinateTransformationH back, OGRSpatialReferenceH file)
{
    double low[2] = {INFINITY, INFINITY}, high[2] = {-INFINITY, -INFINITY}, *near = reach->near;
    for (int i = 0; i < 4; i++) {
        double at[2];
        place_at(scene, i & 1, i >> 1, at);
        for (int k = 0; k < 2; k++) {
            low[k] = fmin(low[k], at[k]);
            high[k] = fmax(high[k], at[k]);
        }
    }
    reach->has_near = OCTTransformBounds(back, low[0], low[1], high[0], high[1], &near[0], &near[1],
                                         &near[2], &near[3], PB_VECTOR_REACH_SIDE);
    if (reach->has_near && near[0] > near[2] && OSRIsGeographic(file))
        near[2] += 2 * acos(-1.0) / OSRGetAngularUnits(file, NULL);
    reach->has_near = reach->has_near && near[0] <= near[2] && near[1] <= near[3];
}

void pb_vector_reach_find(struct pb_vector_reach *reach, const struct pb_raster *scene,
                          OGRSpatialReferenceH file)
{
    OGRCoordinateTransformationH back = pb_vector_to(pb_gdal_srs(scene), file);
    reach->has_near = false;
    reach->n_seen = 0;
    if (back != NULL && scene->info.has_transform) {
        find_near(reach, scene, back, file);
        for (int i = 0; i < PB_VECTOR_REACH_SIDE * PB_VECTOR_REACH_SIDE; i++) {
            double *at = reach->seen[reach->n_seen];
            const double side = PB_VECTOR_REACH_SIDE - 1;
            const int column = i % PB_VECTOR_REACH_SIDE, row = i / PB_VECTOR_REACH_SIDE;
            place_at(scene, column / side, row / side, at);
            reach->n_seen += has_place(back, at);
        }
    }
    if (back != NULL)
        OCTDestroyCoordinateTransformation(back);
}

bool pb_vector_reach_is_far(const struct pb_vector_reach *reach, OGRGeometryH geometry,
                            double circle)
{
    bool far = true;
    const double *near = reach->near;
    OGREnvelope e;
    OGR_G_GetEnvelope(geometry, &e);
    for (int turn = -1; turn <= 1; turn++)
        far = far && (e.MaxX + turn * circle < near[0] || e.MinX + turn * circle > near[2]);
    return reach->has_near && (far || e.MaxY < near[1] || e.MinY > near[3]);
}

bool pb_vector_reach_is_beyond(const struct pb_vector_reach *reach, OGRGeometryH ring,
                               OGRCoordinateTransformationH to)
{
    OGREnvelope e;
    if (to == NULL || reach->n_seen == 0)
        return false;
    for (int i = 0; i < OGR_G_GetPointCount(ring); i++) {
        double at[2] = {OGR_G_GetX(ring, i), OGR_G_GetY(ring, i)};
        if (!isfinite(at[0]) || !isfinite(at[1]) || has_place(to, at))
            return false;
    }
    OGR_G_GetEnvelope(ring, &e);
    for (size_t i = 0; i < reach->n_seen; i++) {
        const double *at = reach->seen[i];
        if (at[0] >= e.MinX && at[0] <= e.MaxX && at[1] >= e.MinY && at[1] <= e.MaxY)
            return false;
    }
    return true;
}
