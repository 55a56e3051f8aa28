/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_VECTOR_H
#define PB_VECTOR_H
/* Polygons of a vector file: GeoJSON, GeoPackage, Shapefile (with .dbf, .shx, .prj and .cpg beside
 * it), in the coordinate system of a scene. The file is read into memory once and decoded there:
 * GDAL opens no path, and what it looks for beside the file it does not find. */
#include "pipeline/raster/polygons.h"

struct pb_err;
struct pb_raster;

#define PB_VECTOR_BYTES_MAX    ((uint64_t)256 << 20) /* of the file, and of each beside it */
#define PB_VECTOR_FEATURES_MAX 1000000
#define PB_VECTOR_VERTICES_MAX 20000000
#define PB_VECTOR_FIELDS_MAX   64
#define PB_VECTOR_HANDED_MAX   64 /* files, those of a Shapefile each for itself */

/* What is wrong with a filter. */
struct pb_vector_wrong {
    bool is;   /* the filter is wrong, or chooses nothing: the error says so and names no place */
    size_t at; /* the byte in it that is; SIZE_MAX: not known */
};

struct pb_vector_request {
    const char *path;
    const char *layer;         /* NULL: the only one that the file has */
    const char *const *fields; /* whose values each polygon gets; "fid": the number of the feature,
                                  unless there is a field of that name */
    size_t n_fields;
    const char *where; /* a field: only features of which it has one of `values`; NULL: all. Two
                          numbers are equal by value, "007" and "7" as well, where the field holds
                          numbers */
    const char *const *values;
    size_t n_values;
    const char *filter; /* an expression of SQL over the attributes, as ogr2ogr -where: only
                           features of which it is true; NULL: all */
    struct pb_vector_wrong *out_wrong; /* with `filter`: zeroed before */
    double tolerance; /* edges that the transformation bends get vertices until they are so near to
                         the curve, in units of the scene's CRS; 0: none are added */
    uint64_t stamp;   /* of pb_vector_table: that of the polygons, so that a file that has changed
                         since then is an error; 0: it may have */
};

/* The polygons and multipolygons of the file, in its order, in the scene's CRS (x to the east, y to
 * the north, whatever the order of axes). Curves become lines; Z and M are dropped; a feature
 * without geometry has no rings, and points and lines are left out and counted. Longitudes of a
 * polygon may go on beyond 180 degrees, and a polygon may lie around a pole: it is added where it
 * is in the scene. Of one whose edges have no place in the scene's system the part around the scene
 * is taken. The scene is borrowed for the call. The caller's (pb_polygons_free). Errors, which name
 * the file, and the feature where there is one: vector.missing (no such file, no right),
 * vector.invalid (not of these formats, damaged; no coordinate system where the scene has one, or
 * the reverse; no geometry that is a polygon; coordinates that the scene's CRS does not have),
 * vector.choice (no such layer or field, several layers and none named, no feature that `where`
 * chooses), vector.limit, memory. Thread: any. */
int pb_vector_read(const struct pb_vector_request *request, struct pb_raster *scene,
                   struct pb_err *err, struct pb_polygons **out_polygons);

/* Opens the file, and those beside it, for a process that is about to lose the right to open files:
 * what reads the path from then on gets what was opened, or the error. Beyond PB_VECTOR_HANDED_MAX
 * nothing is kept. Thread: init. */
void pb_vector_hand(const char *path);

/* Whether the text names a coordinate system: "EPSG:4326", WKT, a PROJ string, "WGS84". No file or
 * address is looked at. Thread: any. */
bool pb_vector_is_crs(const char *text);
/* The rectangle around the scene, west, south, east, north, in `crs`; false: it has none there. */
bool pb_vector_scene_bounds(const char *crs, struct pb_raster *scene, double out_bounds[4]);

/* A rectangle of another coordinate system: west, south, east, north in `crs` ("EPSG:4326", WKT, a
 * PROJ string) become the rectangle around it in the scene's, with edges that are bent in between
 * looked at, as GDAL's TransformBounds does. 0; vector.invalid: the CRS is not known, or the scene
 * has none; -ERANGE without an error: no place of the rectangle has one in the scene's CRS. */
int pb_vector_bounds(const double bounds[4], const char *crs, struct pb_raster *scene,
                     struct pb_err *err, double out_bounds[4]);
#endif
