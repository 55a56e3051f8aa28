/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/gdal/raster_gdal_inside.h"
#include "pipeline/gdal/raster_gdal_said.h"
#include "pipeline/raster/ground.h"

#include <math.h>
#include <stdlib.h>

static OGRSpatialReferenceH system_of(int code)
{
    OGRSpatialReferenceH srs = OSRNewSpatialReference(NULL);
    OSRSetAxisMappingStrategy(srs, OAMS_TRADITIONAL_GIS_ORDER);
    if (OSRImportFromEPSG(srs, code) == OGRERR_NONE)
        return srs;
    OSRDestroySpatialReference(srs);
    return NULL;
}

bool pb_raster_points(int from, int to, size_t n, double *x, double *y)
{
    OGRSpatialReferenceH a = system_of(from), b = system_of(to);
    OGRCoordinateTransformationH way = NULL;
    int *ok = calloc(n + 1, sizeof *ok);
    struct pb_gdal_words words; /* messages about places outside the projection */
    pb_gdal_listen(&words, NULL);
    if (a != NULL && b != NULL && ok != NULL)
        way = OCTNewCoordinateTransformation(a, b);
    if (way != NULL)
        (void)OCTTransformEx(way, (int)n, x, y, NULL, ok);
    for (size_t i = 0; way != NULL && i < n; i++)
        if (!ok[i] || !isfinite(x[i]) || !isfinite(y[i]))
            x[i] = y[i] = (double)NAN;
    pb_gdal_unlisten();
    const bool done = way != NULL;
    if (way != NULL)
        OCTDestroyCoordinateTransformation(way);
    OSRDestroySpatialReference(a);
    OSRDestroySpatialReference(b);
    free(ok);
    return done;
}
