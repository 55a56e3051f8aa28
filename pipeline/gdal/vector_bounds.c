/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/gdal/raster_gdal_place.h"
#include "pipeline/gdal/raster_gdal_said.h"
#include "pipeline/gdal/vector.h"
#include "pipeline/gdal/vector_place.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <strings.h>

/* Points on each edge between its ends; the number of gdalwarp -te_srs and QGIS. */
#define EDGE_POINTS 21

static int transform_bounds(const double bounds[4], OGRSpatialReferenceH from,
                            OGRSpatialReferenceH to, double out[4])
{
    OGRCoordinateTransformationH way = pb_vector_to(from, to);
    if (way == NULL)
        return -ERANGE;
    const int fine = OCTTransformBounds(way, bounds[0], bounds[1], bounds[2], bounds[3], &out[0],
                                        &out[1], &out[2], &out[3], EDGE_POINTS);
    OCTDestroyCoordinateTransformation(way);
    for (int i = 0; i < 4; i++)
        if (!fine || !isfinite(out[i]))
            return -ERANGE;
    return 0;
}

/* Accepts no other text, because GDAL would read files and addresses. */
static bool is_crs_text(const char *text)
{
    static const char *const authorities[] = {
        "EPSG:", "ESRI:", "IGNF:", "OGC:", "IAU_2015:", "urn:ogc:def:crs:", "+proj="};
    const size_t n = strlen(text);
    for (size_t i = 0; i < sizeof authorities / sizeof authorities[0]; i++)
        if (strncasecmp(text, authorities[i], strlen(authorities[i])) == 0)
            return true;
    return n > 0 && text[n - 1] == ']' && strchr(text, '[') != NULL;
}

static bool take_crs(OGRSpatialReferenceH srs, const char *text)
{
    return is_crs_text(text) ? OSRSetFromUserInput(srs, text) == OGRERR_NONE
                             : OSRSetWellKnownGeogCS(srs, text) == OGRERR_NONE;
}

bool pb_vector_is_crs(const char *text)
{
    OGRSpatialReferenceH srs = OSRNewSpatialReference(NULL);
    struct pb_gdal_words words;
    pb_gdal_listen(&words, NULL);
    const bool is = take_crs(srs, text);
    pb_gdal_unlisten();
    OSRDestroySpatialReference(srs);
    return is;
}

bool pb_vector_is_epsg(uint32_t code, bool *out_geographic)
{
    OGRSpatialReferenceH srs = OSRNewSpatialReference(NULL);
    struct pb_gdal_words words;
    pb_gdal_listen(&words, NULL);
    const bool is = OSRImportFromEPSG(srs, (int)code) == OGRERR_NONE;
    if (is)
        *out_geographic = OSRIsGeographic(srs) != 0;
    pb_gdal_unlisten();
    OSRDestroySpatialReference(srs);
    return is;
}

bool pb_vector_scene_bounds(const char *crs, struct pb_raster *scene, double out_bounds[4])
{
    const struct pb_raster_info *info = &scene->info;
    OGRSpatialReferenceH from = pb_gdal_srs(scene), to = OSRNewSpatialReference(NULL);
    double own[4] = {INFINITY, INFINITY, -INFINITY, -INFINITY};
    struct pb_gdal_words words;
    for (int i = 0; i < 4; i++) {
        double at[2];
        GDALApplyGeoTransform((double *)(uintptr_t)info->transform, i & 1 ? info->width : 0,
                              i & 2 ? info->height : 0, &at[0], &at[1]);
        for (int k = 0; k < 2; k++) {
            own[k] = fmin(own[k], at[k]);
            own[k + 2] = fmax(own[k + 2], at[k]);
        }
    }
    pb_gdal_listen(&words, scene);
    const bool is = from != NULL && info->has_transform && take_crs(to, crs) &&
                    transform_bounds(own, from, to, out_bounds) == 0;
    pb_gdal_unlisten();
    OSRDestroySpatialReference(to);
    return is;
}

int pb_vector_bounds(const double bounds[4], const char *crs, struct pb_raster *scene,
                     struct pb_err *err, double out_bounds[4])
{
    OGRSpatialReferenceH to = pb_gdal_srs(scene), from = OSRNewSpatialReference(NULL);
    struct pb_gdal_words words;
    double out[4];
    int rc = 0;
    if (to == NULL) {
        OSRDestroySpatialReference(from);
        return pb_fail(err, PB_E_VECTOR_INVALID,
                       "the scene has no coordinate system, so bounds in %.80s cannot be applied",
                       crs);
    }
    pb_gdal_listen(&words, scene);
    if (!take_crs(from, crs))
        rc = pb_fail(err, PB_E_VECTOR_INVALID,
                     "'%.80s' is no coordinate system that is known; write EPSG:4326, WKT or a "
                     "PROJ string",
                     crs);
    if (rc == 0 && bounds[0] >= bounds[2] && !OSRIsGeographic(from))
        rc = pb_fail(err, PB_E_CONFIG_VALUE,
                     "bounds are [west, south, east, north], west below east; only in a geographic "
                     "system, which %.80s is not, west may be above east",
                     crs);
    if (rc == 0)
        rc = transform_bounds(bounds, from, to, out);
    pb_gdal_unlisten();
    OSRDestroySpatialReference(from);
    if (rc == 0)
        memcpy(out_bounds, out, sizeof out);
    return rc;
}
