/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_VECTOR_H
#define PB_VECTOR_H
/* Reads polygons of a vector file in the coordinate system of a scene: GeoJSON, GeoPackage,
 * Shapefile (with .dbf, .shx, .prj and .cpg next to it). The file is read into memory once and
 * decoded there: GDAL opens no path and finds no other files. */
#include "pipeline/raster/polygons.h"

struct pb_err;
struct pb_raster;

#define PB_VECTOR_BYTES_MAX    ((uint64_t)256 << 20) /* bytes of each file */
#define PB_VECTOR_FEATURES_MAX 1000000
#define PB_VECTOR_VERTICES_MAX 20000000
#define PB_VECTOR_FIELDS_MAX   64
#define PB_VECTOR_HANDED_MAX   64 /* open files */

/* Error of a filter. */
struct pb_vector_wrong {
    bool is;   /* the filter is invalid, or matches nothing; the error then has no place */
    size_t at; /* offset of the error in it; SIZE_MAX: unknown */
};

struct pb_vector_request {
    const char *path;
    const char *layer;         /* NULL: the only layer of the file */
    const char *const *fields; /* fields whose values each polygon gets; "fid": the id of the
                                  feature, unless a field has that name */
    size_t n_fields;
    const char *where; /* name of a field: only features whose value is one of `values`; NULL: all.
                          In fields of numbers values compare as numbers: "007" equals "7" */
    const char *const *values;
    size_t n_values;
    const char *filter; /* SQL expression over the attributes, like ogr2ogr -where: only features
                           for which it is true; NULL: all */
    struct pb_vector_wrong *out_wrong; /* with `filter`: zeroed before */
    double tolerance; /* edges that the transformation bends get vertices until they are this near
                         to the curve, in units of the scene's CRS; 0: no vertices are added */
    uint32_t threads; /* threads that read coordinates of GeoJSON and transform them; 0: GDAL reads
                         them, on the calling thread */
    uint64_t stamp;   /* for pb_vector_table: stamp of the polygons; a file that has changed since
                         then is an error; 0: no check */
};

/* Reads the polygons and multipolygons of the file, in its order, in the scene's CRS (x to the
 * east, y to the north, whatever the order of axes). Curves become lines; Z and M are dropped; a
 * feature without geometry has no rings; points and lines are omitted and counted. Longitudes of
 * a polygon may continue beyond 180 degrees, and a polygon may contain a pole: it is added at
 * its place in the scene. If edges of a polygon have no place in the scene's system, only its
 * part around the scene is added. The scene is borrowed for the call. The result is the caller's
 * (pb_polygons_free). Errors, which name the file, and the feature if there is one:
 * vector.missing (no such file, no permission), vector.invalid (not one of these formats,
 * damaged; no coordinate system although the scene has one, or the reverse; no geometry that is
 * a polygon; coordinates outside the scene's CRS), vector.choice (no such layer or field,
 * several layers and none named, no feature that `where` matches), vector.limit, memory. Thread:
 * any. */
int pb_vector_read(const struct pb_vector_request *request, struct pb_raster *scene,
                   struct pb_err *err, struct pb_polygons **out_polygons);

/* Opens the file, and those next to it, for a process that is about to drop the permission to
 * open files: later reads of the path use the open files, or get the error. Beyond
 * PB_VECTOR_HANDED_MAX files are ignored. Thread: init. */
void pb_vector_hand(const char *path);

/* Returns true if the text names a coordinate system: "EPSG:4326", WKT, a PROJ string, "WGS84".
 * Files and addresses are not opened. Thread: any. */
bool pb_vector_is_crs(const char *text);
/* Returns true if there is a coordinate system with that EPSG code; *out_geographic: its
 * coordinates are degrees. Thread: any. */
bool pb_vector_is_epsg(uint32_t code, bool *out_geographic);
/* Finds the rectangle around the scene, west, south, east, north, in `crs`; returns false if the
 * scene has no place there. */
bool pb_vector_scene_bounds(const char *crs, struct pb_raster *scene, double out_bounds[4]);

/* Transforms a rectangle, west, south, east, north in `crs` ("EPSG:4326", WKT, a PROJ string),
 * to the rectangle around it in the scene's system, with points along curved edges taken into
 * account, like GDAL's TransformBounds. Returns 0; vector.invalid: the CRS is unknown, or the
 * scene has no CRS; -ERANGE without an error: no place of the rectangle has coordinates in the
 * scene's CRS. */
int pb_vector_bounds(const double bounds[4], const char *crs, struct pb_raster *scene,
                     struct pb_err *err, double out_bounds[4]);
#endif
