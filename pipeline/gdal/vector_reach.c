/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/gdal/vector_reach.h"
#include "pipeline/gdal/raster_gdal_place.h"
#include "pipeline/gdal/vector_place.h"

#include <math.h>

/* Margin as a part of a scene's width and height: nothing farther away affects its pixels. */
#define MARGIN 0.25

/* Place at a fraction of the scene's width and height from its upper left corner. */
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

/* A rectangle across 180 degrees has its east one turn after its west. */
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

/* Adds the place at which the edge crosses the line where coordinate k is `at`. */
static void add_meeting(OGRGeometryH to, const double a[2], const double b[2], int k, double at)
{
    const double part = (at - a[k]) / (b[k] - a[k]);
    const double other = a[1 - k] + part * (b[1 - k] - a[1 - k]);
    OGR_G_AddPoint_2D(to, k == 0 ? at : other, k == 0 ? other : at);
}

/* Cuts a ring by a line and returns the part on one side as a ring; edges along the line may
 * overlap. */
static OGRGeometryH cut_ring(OGRGeometryH ring, int k, double at, bool above)
{
    OGRGeometryH out = OGR_G_CreateGeometry(wkbLinearRing);
    const int n = OGR_G_GetPointCount(ring);
    for (int i = 0; i < n; i++) {
        const int before = i > 0 ? i - 1 : n - 1;
        const double a[2] = {OGR_G_GetX(ring, before), OGR_G_GetY(ring, before)};
        const double b[2] = {OGR_G_GetX(ring, i), OGR_G_GetY(ring, i)};
        const bool is_in = above ? b[k] >= at : b[k] <= at;
        if (is_in != (above ? a[k] >= at : a[k] <= at))
            add_meeting(out, a, b, k, at);
        if (is_in)
            OGR_G_AddPoint_2D(out, b[0], b[1]);
    }
    return out;
}

OGRGeometryH pb_vector_reach_cut(const struct pb_vector_reach *reach, OGRGeometryH polygon,
                                 double aside)
{
    const double *near = reach->near;
    OGRGeometryH out = OGR_G_CreateGeometry(wkbPolygon);
    for (int i = 0; reach->has_near && i < OGR_G_GetGeometryCount(polygon); i++) {
        OGRGeometryH ring = OGR_G_Clone(OGR_G_GetGeometryRef(polygon, i));
        for (int side = 0; side < 4; side++) {
            const int k = side % 2;
            const double margin = MARGIN * (near[2 + k] - near[k]);
            const double at =
                (side < 2 ? near[k] - margin : near[2 + k] + margin) + (k == 0 ? aside : 0);
            OGRGeometryH less = cut_ring(ring, k, at, side < 2);
            OGR_G_DestroyGeometry(ring);
            ring = less;
        }
        if (OGR_G_GetPointCount(ring) < 3 && i == 0) {
            OGR_G_DestroyGeometry(ring);
            break;
        }
        OGR_G_AddGeometryDirectly(out, ring);
    }
    if (OGR_G_GetGeometryCount(out) > 0)
        return out;
    OGR_G_DestroyGeometry(out);
    return NULL;
}
