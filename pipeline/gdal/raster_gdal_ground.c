/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The footprint of a scene on the ground, and its CRS as text. */
#include "pipeline/gdal/raster_gdal_grid.h"
#include "pipeline/gdal/raster_gdal_inside.h"
#include "pipeline/gdal/raster_gdal_place.h"
#include "pipeline/gdal/raster_gdal_said.h"
#include "pipeline/raster/ground.h"
#include "pipeline/raster/outline.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Tolerance of a place that is transformed to the Earth and back: interrupted projections return
 * a longitude even for places beyond their edge. */
#define RETURN_METRES 1000.0
/* Latitude beyond which points are fitted in a plane around their middle, because their
 * longitudes are meaningless. */
#define POLAR_DEGREES 80.0
#define RADIANS       (M_PI / 180)

/* Transformation from the pixels of a grid on the image to longitude and latitude. */
struct way {
    const struct pb_raster *raster;
    const struct pb_geometry *grid;        /* NULL: the image's own */
    OGRCoordinateTransformationH to, back; /* between the CRS and WGS 84; back NULL: not needed */
    bool is_lonlat;                        /* the CRS has longitudes and latitudes; then valid: */
    double degrees,
        most;         /* degrees per unit, and the greatest latitude: half a pixel past a pole */
    double off;       /* tolerance of x and y after the return */
    void *gcps;       /* a transformer by ground control points, or NULL */
    bool is_polar;    /* with gcps: to a plane around `middle` */
    double middle[2]; /* longitude, latitude, in radians */
};

/* --- systems ---------------------------------------------------------------------------------- */

static void close_way(struct way *way)
{
    if (way->to != NULL)
        OCTDestroyCoordinateTransformation(way->to);
    if (way->back != NULL)
        OCTDestroyCoordinateTransformation(way->back);
    if (way->gcps != NULL)
        GDALDestroyGCPTransformer(way->gcps);
}

/* Opens the transformation from srs to longitude, latitude (WGS 84). Returns false if PROJ has
 * no such transformation. */
static bool open_way(OGRSpatialReferenceH srs, struct way *way)
{
    if (srs == NULL)
        return false;
    OGRSpatialReferenceH from = OSRClone(srs), wgs84 = OSRNewSpatialReference(NULL);
    OSRSetAxisMappingStrategy(from, OAMS_TRADITIONAL_GIS_ORDER);
    OSRSetAxisMappingStrategy(wgs84, OAMS_TRADITIONAL_GIS_ORDER);
    if (OSRImportFromEPSG(wgs84, 4326) == OGRERR_NONE)
        way->to = OCTNewCoordinateTransformation(from, wgs84);
    way->is_lonlat = OSRIsGeographic(srs) != 0;
    if (way->is_lonlat) {
        const double *t = way->raster->info.transform;
        way->degrees = OSRGetAngularUnits(srs, NULL) / RADIANS;
        way->most = 90 + fmax(1, (fabs(t[4]) + fabs(t[5])) * way->degrees * 0.500001);
    } else if (way->to != NULL && pb_gdal_srs_is_open(srs)) {
        const double metres = OSRGetLinearUnits(srs, NULL);
        way->back = OCTNewCoordinateTransformation(wgs84, from);
        way->off = RETURN_METRES / (metres > 0 ? metres : 1);
    }
    OSRDestroySpatialReference(from);
    OSRDestroySpatialReference(wgs84);
    return way->to != NULL;
}

/* --- places ----------------------------------------------------------------------------------- */

static void nowhere(double xy[2])
{
    xy[0] = xy[1] = (double)NAN;
}

/* Converts pixels of the grid to pixels of the image. */
static void to_image(const struct way *way, size_t n, double (*xy)[2])
{
    const struct pb_geometry *grid = way->grid;
    for (size_t i = 0; grid != NULL && i < n; i++) {
        xy[i][0] = (xy[i][0] - grid->map.offset_x) / grid->map.scale_x;
        xy[i][1] = (xy[i][1] - grid->map.offset_y) / grid->map.scale_y;
    }
}

/* Returns true if the transformation back from lonlat gives the place in the CRS. */
static bool returns(const struct way *way, const double xy[2], const double lonlat[2])
{
    double x = lonlat[0], y = lonlat[1];
    int fine = TRUE;
    if (way->back == NULL)
        return true;
    return OCTTransformEx(way->back, 1, &x, &y, NULL, &fine) && fine &&
           fabs(x - xy[0]) <= way->off && fabs(y - xy[1]) <= way->off;
}

static void to_lonlat(const struct way *way, size_t n, double (*xy)[2])
{
    for (size_t i = 0; i < n; i++) {
        double lonlat[2] = {xy[i][0], xy[i][1]};
        int fine = TRUE;
        if (way->is_lonlat && fabs(lonlat[1] * way->degrees) <= way->most)
            lonlat[1] = fmin(fmax(lonlat[1], -90 / way->degrees), 90 / way->degrees);
        if (!OCTTransformEx(way->to, 1, &lonlat[0], &lonlat[1], NULL, &fine) || !fine ||
            !returns(way, xy[i], lonlat)) {
            nowhere(xy[i]);
            continue;
        }
        if (way->is_lonlat) /* keeps the turn of the original longitude */
            lonlat[0] += 360 * round((xy[i][0] * way->degrees - lonlat[0]) / 360);
        memcpy(xy[i], lonlat, sizeof lonlat);
    }
}

static void by_transform(void *of, size_t n, double (*xy)[2])
{
    const struct way *way = of;
    to_image(way, n, xy);
    for (size_t i = 0; i < n; i++)
        GDALApplyGeoTransform((double *)(uintptr_t)way->raster->info.transform, xy[i][0], xy[i][1],
                              &xy[i][0], &xy[i][1]);
    to_lonlat(way, n, xy);
}

/* --- ground control points -------------------------------------------------------------------- */

/* Projects to the azimuthal equal-area plane around a place, on a sphere of radius 1; radians. */
static void to_plane(const double middle[2], const double lonlat[2], double out[2])
{
    const double s = sin(middle[1]), c = cos(middle[1]), lon = lonlat[0] - middle[0],
                 lat = lonlat[1];
    const double k = sqrt(2 / (1 + s * sin(lat) + c * cos(lat) * cos(lon)));
    out[0] = k * cos(lat) * sin(lon);
    out[1] = k * (c * sin(lat) - s * cos(lat) * cos(lon));
}

static void from_plane(const double middle[2], const double xy[2], double out[2])
{
    const double rho = hypot(xy[0], xy[1]), angle = 2 * asin(fmin(rho / 2, 1));
    const double s = sin(middle[1]), c = cos(middle[1]);
    out[0] = middle[0];
    out[1] = middle[1];
    if (rho > 0) {
        out[0] += atan2(xy[0] * sin(angle), rho * c * cos(angle) - xy[1] * s * sin(angle));
        out[1] = asin(fmin(fmax(cos(angle) * s + xy[1] * sin(angle) * c / rho, -1), 1));
    }
}

/* Replaces the points by points of a plane around their middle if they are near a pole, or
 * extend around the Earth. */
static void flatten(struct way *way, GDAL_GCP *gcp, int n)
{
    const double unit = way->degrees * RADIANS;
    double sum[3] = {0, 0, 0}, west = INFINITY, east = -INFINITY, farthest = 0;
    for (int i = 0; i < n; i++) {
        const double lon = gcp[i].dfGCPX * unit, lat = gcp[i].dfGCPY * unit;
        sum[0] += cos(lat) * cos(lon);
        sum[1] += cos(lat) * sin(lon);
        sum[2] += sin(lat);
        west = fmin(west, lon);
        east = fmax(east, lon);
        farthest = fmax(farthest, fabs(lat));
    }
    way->is_polar = farthest > POLAR_DEGREES * RADIANS || east - west > M_PI;
    way->middle[0] = atan2(sum[1], sum[0]);
    way->middle[1] = atan2(sum[2], hypot(sum[0], sum[1]));
    for (int i = 0; way->is_polar && i < n; i++) {
        const double lonlat[2] = {gcp[i].dfGCPX * unit, gcp[i].dfGCPY * unit};
        double xy[2];
        to_plane(way->middle, lonlat, xy);
        gcp[i].dfGCPX = xy[0];
        gcp[i].dfGCPY = xy[1];
    }
}

static void by_gcps(void *of, size_t n, double (*xy)[2])
{
    const struct way *way = of;
    to_image(way, n, xy);
    pb_gdal_transform(GDALGCPTransform, way->gcps, xy, n);
    for (size_t i = 0; way->is_polar && i < n; i++) {
        double lonlat[2];
        from_plane(way->middle, xy[i], lonlat);
        for (int k = 0; k < 2; k++)
            xy[i][k] = lonlat[k] / (way->degrees * RADIANS);
    }
    to_lonlat(way, n, xy);
}

static bool open_gcps(struct way *way)
{
    const int n = way->raster->info.n_gcps;
    GDAL_GCP *gcp = pb_gdal_gcps_place(way->raster) ? pb_gdal_gcps(way->raster) : NULL;
    if (gcp == NULL)
        return false;
    if (way->is_lonlat)
        flatten(way, gcp, n);
    way->gcps = GDALCreateGCPTransformer(n, gcp, 0, FALSE);
    pb_gdal_free_gcps(gcp, n);
    return way->gcps != NULL;
}

/* --- footprints ------------------------------------------------------------------------------- */

static void by_rpc(void *of, size_t n, double (*xy)[2])
{
    const struct way *way = of;
    to_image(way, n, xy);
    if (!pb_gdal_rpc_to_ground(way->raster, xy, n))
        for (size_t i = 0; i < n; i++)
            nowhere(xy[i]);
}

static int outline_of(struct way *way, pb_outline_place *place, struct pb_footprint *out)
{
    const struct pb_raster_info *info = &way->raster->info;
    const struct pb_outline outline = {
        .w = way->grid != NULL ? way->grid->w : info->width,
        .h = way->grid != NULL ? way->grid->h : info->height,
        .place = place,
        .of = way,
        .is_plane = place == by_transform && way->is_lonlat,
        .has_limb = place == by_transform && !way->is_lonlat,
    };
    return pb_outline_footprint(&outline, out);
}

int pb_raster_footprint(struct pb_raster *raster, const struct pb_geometry *grid,
                        struct pb_footprint *out_footprint)
{
    const struct pb_raster_info *info = &raster->info;
    struct pb_gdal_words words; /* not read: on failure the next transform is used */
    struct way way = {.raster = raster, .grid = grid};
    int rc = -ENODATA;
    pb_gdal_listen(&words, raster);
    if (info->has_transform && open_way(pb_gdal_srs(raster), &way))
        rc = outline_of(&way, by_transform, out_footprint);
    close_way(&way);
    way = (struct way){.raster = raster, .grid = grid};
    if (rc < 0 && info->n_gcps >= 3 && open_way(GDALGetGCPSpatialRef(raster->dataset), &way) &&
        open_gcps(&way))
        rc = outline_of(&way, by_gcps, out_footprint);
    close_way(&way);
    way = (struct way){.raster = raster, .grid = grid};
    if (rc < 0 && info->has_rpc)
        rc = outline_of(&way, by_rpc, out_footprint);
    pb_gdal_unlisten();
    return rc;
}

void pb_raster_footprint_defined(struct pb_raster *raster, struct pb_footprint *footprint)
{
    OGRSpatialReferenceH srs = raster->info.has_transform ? pb_gdal_srs(raster) : NULL;
    double west, south, east, north;
    if (srs == NULL || !OSRGetAreaOfUse(srs, &west, &south, &east, &north, NULL) || west != -180 ||
        east != 180)
        return;
    if ((south == 0 && north == 90) || (south == -90 && north == 0))
        (void)pb_outline_keep_half(footprint, north > 0);
}

bool pb_raster_same_crs(const struct pb_raster *a, const struct pb_raster *b)
{
    OGRSpatialReferenceH one = pb_gdal_srs(a), other = pb_gdal_srs(b);
    struct pb_gdal_words words; /* not read */
    if (one == NULL || other == NULL)
        return one == other;
    pb_gdal_listen(&words, a);
    bool same = OSRIsSame(one, other) != 0;
    pb_gdal_unlisten();
    return same;
}

enum crs_text { CRS_WKT2, CRS_PROJJSON };

static char *crs_text(const struct pb_raster *raster, enum crs_text kind)
{
    static const char *const wkt2[] = {"FORMAT=WKT2_2019", "MULTILINE=NO", NULL};
    static const char *const json[] = {"MULTILINE=NO", NULL};
    OGRSpatialReferenceH srs = pb_gdal_srs(raster);
    struct pb_gdal_words words;
    char *text = NULL, *copy = NULL;
    OGRErr rc = OGRERR_FAILURE;
    if (srs == NULL)
        return NULL;
    pb_gdal_listen(&words, raster);
    if (kind == CRS_WKT2)
        rc = OSRExportToWktEx(srs, &text, wkt2);
    else
        rc = OSRExportToPROJJSON(srs, &text, json);
    pb_gdal_unlisten();
    if (rc == OGRERR_NONE && text != NULL && text[0] != '\0')
        copy = strdup(text);
    CPLFree(text);
    return copy;
}

char *pb_raster_wkt2(struct pb_raster *raster)
{
    return crs_text(raster, CRS_WKT2);
}

char *pb_raster_projjson(struct pb_raster *raster)
{
    return crs_text(raster, CRS_PROJJSON);
}
