/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/gdal/raster_gdal_place.h"
#include "pipeline/gdal/raster_gdal_said.h"
#include "pipeline/gdal/vector.h"
#include "pipeline/gdal/vector_file.h"
#include "pipeline/gdal/vector_placer.h"
#include "pipeline/gdal/vector_shapes.h"
#include "pipeline/gdal/vector_workers.h"
#include "config/base/text_clean.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Declared by GDAL's C++ header ogrsf_frmts.h. */
void RegisterOGRGeoJSON(void);
void RegisterOGRGeoPackage(void);
void RegisterOGRShape(void);

/* State of reading a file. */
struct reading {
    const struct pb_vector_request *request;
    struct pb_err *err;
    struct pb_vector_placer place;
    struct pb_vector_shapes shapes;
    struct pb_vector_later *later; /* n_later: polygons whose shapes are placed after all features
                                      are read */
    size_t n_later, later_room;
    GDALDatasetH dataset;
    OGRLayerH layer;
    int field[PB_VECTOR_FIELDS_MAX]; /* index of each requested field; -1: the feature's id */
    int where;          /* index of the `where` field; -1: the feature's id; -2: all features */
    uint64_t wkb_bytes; /* size of all shapes as WKB */
    size_t n_left_out;  /* features that are not polygons */
    int64_t first_left_out;
    char left_out[40]; /* type of the first of them */
};

static void register_once(void)
{
    pb_raster_init();
    RegisterOGRGeoJSON();
    RegisterOGRGeoPackage();
    RegisterOGRShape();
}

static int open_file(struct reading *r, const struct pb_vector_file *file)
{
    static const char *const drivers[] = {"GeoJSON", "GPKG", "ESRI Shapefile", NULL};
    r->dataset = GDALOpenEx(file->name, GDAL_OF_VECTOR | GDAL_OF_READONLY | GDAL_OF_VERBOSE_ERROR,
                            drivers, NULL, (const char *const *)file->siblings);
    if (r->dataset != NULL)
        return 0;
    return pb_fail_at(r->err, PB_E_VECTOR_INVALID, r->request->path, 0, 0,
                      "it is no GeoJSON, GeoPackage or Shapefile that can be read (%s)",
                      pb_gdal_said(&r->place.words));
}

/* Lists the names of the layers, or of a layer's fields, for a message. */
static void list_names(struct reading *r, bool fields, char *out, size_t bytes)
{
    OGRFeatureDefnH of = fields ? OGR_L_GetLayerDefn(r->layer) : NULL;
    const int n = fields ? OGR_FD_GetFieldCount(of) : GDALDatasetGetLayerCount(r->dataset);
    size_t used = 0;
    out[0] = '\0';
    for (int i = 0; i < n && used + 80 < bytes; i++) {
        char name[64];
        (void)pb_text_clean(fields ? OGR_Fld_GetNameRef(OGR_FD_GetFieldDefn(of, i))
                                   : OGR_L_GetName(GDALDatasetGetLayer(r->dataset, i)),
                            name, sizeof name);
        used += (size_t)CPLsnprintf(out + used, bytes - used, "%s%s", i > 0 ? ", " : "", name);
    }
    if (n == 0)
        (void)CPLsnprintf(out, bytes, "none");
}

static int find_layer(struct reading *r)
{
    const char *name = r->request->layer;
    char names[300];
    list_names(r, false, names, sizeof names);
    if (name != NULL)
        r->layer = GDALDatasetGetLayerByName(r->dataset, name);
    else if (GDALDatasetGetLayerCount(r->dataset) == 1)
        r->layer = GDALDatasetGetLayer(r->dataset, 0);
    if (r->layer != NULL)
        return 0;
    if (name != NULL)
        return pb_fail_at(r->err, PB_E_VECTOR_CHOICE, r->request->path, 0, 0,
                          "it has no layer '%.60s'; its layers: %s", name, names);
    return pb_fail_at(r->err, PB_E_VECTOR_CHOICE, r->request->path, 0, 0,
                      "name one of its layers: %s", names);
}

/* Finds the index of a field of the layer; -1 = the feature's id. */
static int find_field(struct reading *r, const char *name, int *out)
{
    char names[300];
    *out = OGR_FD_GetFieldIndex(OGR_L_GetLayerDefn(r->layer), name);
    if (*out >= 0 || strcmp(name, "fid") == 0)
        return 0;
    list_names(r, true, names, sizeof names);
    return pb_fail_at(r->err, PB_E_VECTOR_CHOICE, r->request->path, 0, 0,
                      "it has no field '%.60s'; its fields: %s", name, names);
}

static int find_fields(struct reading *r)
{
    const struct pb_vector_request *request = r->request;
    int rc = 0;
    if (request->n_fields > PB_VECTOR_FIELDS_MAX)
        return pb_fail_at(r->err, PB_E_VECTOR_LIMIT, request->path, 0, 0,
                          "at most %d of its fields can be used", PB_VECTOR_FIELDS_MAX);
    for (size_t i = 0; rc == 0 && i < request->n_fields; i++)
        rc = find_field(r, request->fields[i], &r->field[i]);
    r->where = -2;
    if (rc == 0 && request->where != NULL)
        rc = find_field(r, request->where, &r->where);
    return rc;
}

/* Finds the offset at which OGR's parser stopped, from the caret in its message, which is
 * preceded by at most 40 characters of the expression. SIZE_MAX: not in the message. */
static size_t wrong_at(const char *said)
{
    const char *last = strrchr(said, '\n');
    const char *caret = last != NULL ? strchr(last, '^') : NULL;
    return caret != NULL && caret - last - 1 < 40 ? (size_t)(caret - last - 1) : SIZE_MAX;
}

static int wrong_filter(struct reading *r, const char *what, size_t at)
{
    char names[300];
    const char *around = strstr(what, ". Occurred around");
    const int n = around != NULL ? (int)(around - what) : (int)strlen(what);
    list_names(r, true, names, sizeof names);
    *r->request->out_wrong = (struct pb_vector_wrong){true, at};
    return pb_fail(r->err, PB_E_VECTOR_CHOICE, "%.*s; the fields of %s: %s", n, what,
                   r->request->path, names);
}

/* Sets the attribute filter, and reads a feature with it: a GeoPackage detects errors only then. */
static int set_filter(struct reading *r)
{
    if (r->request->filter == NULL)
        return 0;
    if (OGR_L_SetAttributeFilter(r->layer, r->request->filter) != OGRERR_NONE)
        return wrong_filter(r, pb_gdal_said(&r->place.words), wrong_at(CPLGetLastErrorMsg()));
    OGR_F_Destroy(OGR_L_GetNextFeature(r->layer));
    return r->place.words.n > 0 ? wrong_filter(r, pb_gdal_said(&r->place.words), SIZE_MAX) : 0;
}

static int find_way(struct reading *r, const struct pb_raster *scene)
{
    OGRSpatialReferenceH from = OGR_L_GetSpatialRef(r->layer), to = pb_gdal_srs(scene);
    if (from == NULL && to == NULL)
        return 0;
    if (from == NULL)
        return pb_fail_at(
            r->err, PB_E_VECTOR_INVALID, r->request->path, 0, 0,
            "it has no coordinate system, and the scene has one%s",
            strcmp(GDALGetDriverShortName(GDALGetDatasetDriver(r->dataset)), "ESRI Shapefile") == 0
                ? "; that of a Shapefile is in its .prj file"
                : "");
    if (to == NULL)
        return pb_fail_at(r->err, PB_E_VECTOR_INVALID, r->request->path, 0, 0,
                          "it has a coordinate system, and the scene does not");
    if (pb_vector_placer_init(&r->place, from, to, &scene->info, r->request->tolerance) == 0) {
        const struct pb_gdal_words words = r->place.words;
        if (r->place.way.to != NULL)
            pb_vector_reach_find(&r->place.reach, scene, from);
        r->place.words = words;
        return 0;
    }
    return pb_fail_at(r->err, PB_E_VECTOR_INVALID, r->request->path, 0, 0,
                      "there is no way from its coordinate system to the scene's (%s)",
                      pb_gdal_said(&r->place.words));
}

static bool is_number(OGRFieldType type)
{
    return type == OFTInteger || type == OFTInteger64 || type == OFTReal;
}

/* Text is borrowed from the feature until its next field is read. */
static struct pb_polygon_value value_of(OGRFeatureH feature, int field, char fid[24])
{
    struct pb_polygon_value value = {.num = (double)NAN};
    if (field == -1) {
        value.whole = OGR_F_GetFID(feature);
        (void)CPLsnprintf(fid, 24, "%lld", (long long)value.whole);
        return (struct pb_polygon_value){fid, (double)value.whole, true, value.whole};
    }
    if (!OGR_F_IsFieldSetAndNotNull(feature, field))
        return value;
    const OGRFieldType type = OGR_Fld_GetType(OGR_F_GetFieldDefnRef(feature, field));
    if (is_number(type))
        value.num = OGR_F_GetFieldAsDouble(feature, field);
    value.is_whole =
        is_number(type) &&
        (type != OFTReal || (value.num == rint(value.num) && fabs(value.num) <= 0x1p53));
    if (value.is_whole)
        value.whole = OGR_F_GetFieldAsInteger64(feature, field);
    value.text = OGR_F_GetFieldAsString(feature, field);
    return value;
}

/* Compares by value; whole numbers with all their digits. */
static bool is_number_of(const struct pb_polygon_value *value, const char *wanted)
{
    char *end = NULL;
    if (isnan(value->num))
        return false;
    errno = 0;
    const long long whole = strtoll(wanted, &end, 10);
    if (value->is_whole && end != wanted && *end == '\0')
        return errno == 0 && whole == value->whole;
    return CPLStrtod(wanted, &end) == value->num && end != wanted && *end == '\0';
}

static bool is_chosen(const struct reading *r, OGRFeatureH feature)
{
    char fid[24];
    if (r->where == -2)
        return true;
    const struct pb_polygon_value value = value_of(feature, r->where, fid);
    for (size_t i = 0; value.text != NULL && i < r->request->n_values; i++) {
        const char *wanted = r->request->values[i];
        if (strcmp(value.text, wanted) == 0 || is_number_of(&value, wanted))
            return true;
    }
    return false;
}

static int wrong_feature(struct reading *r, int64_t fid, int rc, const char *kind)
{
    const char *path = r->request->path;
    if (rc == -ENOMEM)
        return pb_fail_at(r->err, PB_E_MEMORY, path, 0, 0, "no memory for its polygons");
    if (rc == -E2BIG)
        return pb_fail_at(r->err, PB_E_VECTOR_LIMIT, path, 0, 0,
                          "more than %d vertices up to feature %lld", PB_VECTOR_VERTICES_MAX,
                          (long long)fid);
    if (rc == -ERANGE)
        return pb_fail_at(r->err, PB_E_VECTOR_INVALID, path, 0, 0,
                          "feature %lld has coordinates that the scene's coordinate system does "
                          "not have",
                          (long long)fid);
    if (rc == -EXDEV)
        return pb_fail_at(r->err, PB_E_VECTOR_INVALID, path, 0, 0,
                          "feature %lld crosses a seam of the scene's coordinate system that is no "
                          "meridian; cut it there",
                          (long long)fid);
    if (rc == -EDOM)
        return pb_fail_at(r->err, PB_E_VECTOR_INVALID, path, 0, 0,
                          "feature %lld is wider than 360 degrees; cut it into parts",
                          (long long)fid);
    return pb_fail_at(r->err, PB_E_VECTOR_INVALID, path, 0, 0,
                      "feature %lld is a %s, not a polygon", (long long)fid, kind);
}

/* Notes that the current polygon has a shape. */
static int add_later(struct reading *r, int64_t shape)
{
    void *list = r->later;
    const int rc = pb_vector_grow(&list, r->n_later, 1, &r->later_room, sizeof *r->later);
    r->later = list;
    if (rc == 0)
        r->later[r->n_later++] = (struct pb_vector_later){r->place.make.n - 1, (size_t)shape};
    return rc;
}

static int add_geometry(struct reading *r, OGRFeatureH feature)
{
    OGRGeometryH own = OGR_F_GetGeometryRef(feature), geometry = own;
    if (own == NULL || OGR_G_IsEmpty(own))
        return 0;
    const int64_t shape = pb_vector_shapes_number(&r->shapes, own);
    if (shape >= 0)
        return add_later(r, shape) == 0 ? 0 : wrong_feature(r, OGR_F_GetFID(feature), -ENOMEM, "");
    r->wkb_bytes += (uint64_t)OGR_G_WkbSize(own);
    if (OGR_G_HasCurveGeometry(own, TRUE))
        geometry = OGR_G_GetLinearGeometry(own, 0, NULL);
    const OGRwkbGeometryType type =
        geometry != NULL ? wkbFlatten(OGR_G_GetGeometryType(geometry)) : wkbUnknown;
    int rc = type == wkbPolygon || type == wkbMultiPolygon
                 ? pb_vector_placer_add(&r->place, geometry)
                 : -EINVAL;
    if (geometry != own)
        OGR_G_DestroyGeometry(geometry);
    return rc == 0 ? 0 : wrong_feature(r, OGR_F_GetFID(feature), rc, OGR_G_GetGeometryName(own));
}

/* Omits points and lines, which have no pixels inside. */
static bool leave_out(struct reading *r, OGRFeatureH feature)
{
    OGRGeometryH geometry = OGR_F_GetGeometryRef(feature);
    if (!pb_vector_is_left_out(geometry))
        return false;
    if (r->n_left_out++ == 0) {
        r->first_left_out = OGR_F_GetFID(feature);
        (void)CPLsnprintf(r->left_out, sizeof r->left_out, "%s", OGR_G_GetGeometryName(geometry));
    }
    return true;
}

static int add_feature(struct reading *r, OGRFeatureH feature)
{
    int rc = 0;
    if (!is_chosen(r, feature) || leave_out(r, feature))
        return 0;
    if (r->place.make.n >= PB_VECTOR_FEATURES_MAX)
        return pb_fail_at(r->err, PB_E_VECTOR_LIMIT, r->request->path, 0, 0,
                          "more than %d features", PB_VECTOR_FEATURES_MAX);
    if (pb_vector_make_polygon(&r->place.make, OGR_F_GetFID(feature)) < 0)
        rc = -ENOMEM;
    for (size_t i = 0; rc == 0 && i < r->request->n_fields; i++) {
        char fid[24];
        struct pb_polygon_value value = value_of(feature, r->field[i], fid);
        char text[1024];
        if (value.text != NULL) {
            (void)pb_text_clean(value.text, text, sizeof text);
            value.text = text;
        }
        rc = pb_vector_make_value(&r->place.make, &value);
    }
    if (rc < 0)
        return wrong_feature(r, OGR_F_GetFID(feature), rc, "");
    return add_geometry(r, feature);
}

static int read_features(struct reading *r)
{
    OGRFeatureH feature;
    int rc = 0;
    OGR_L_ResetReading(r->layer);
    while (rc == 0 && (feature = OGR_L_GetNextFeature(r->layer)) != NULL) {
        rc = add_feature(r, feature);
        OGR_F_Destroy(feature);
    }
    if (rc < 0)
        return rc;
    if (r->place.words.n > 0)
        return pb_fail_at(
            r->err, PB_E_VECTOR_INVALID, r->request->path, 0, 0,
            "it is damaged after feature %lld: %s",
            r->place.make.n > 0 ? (long long)r->place.make.polygon[r->place.make.n - 1].fid : -1LL,
            pb_gdal_said(&r->place.words));
    if (r->place.make.n > 0)
        return 0;
    if (r->n_left_out > 0)
        return wrong_feature(r, r->first_left_out, -EINVAL, r->left_out);
    if (r->request->filter != NULL)
        return wrong_filter(r, "no feature fits it", SIZE_MAX);
    return pb_fail_at(r->err, PB_E_VECTOR_CHOICE, r->request->path, 0, 0,
                      r->where == -2 ? "it has no feature"
                                     : "none of its features has one of the values given for '%s'",
                      r->request->where);
}

/* Places the shapes of the polygons. */
static int place_shapes(struct reading *r, const struct pb_raster *scene)
{
    struct pb_vector_work work = {.place = &r->place,
                                  .shapes = &r->shapes,
                                  .later = r->later,
                                  .n = r->n_later,
                                  .scene = scene,
                                  .threads = r->request->threads};
    if (r->n_later == 0)
        return 0;
    const int rc = pb_vector_workers_run(&work);
    r->wkb_bytes += work.wkb_bytes;
    return rc == 0
               ? 0
               : wrong_feature(r, r->place.make.polygon[r->later[work.failed].polygon].fid, rc, "");
}

/* Most bytes that reading held. */
static uint64_t read_bytes(const struct reading *r, uint64_t file_bytes,
                           const struct pb_polygons *polygons)
{
    const uint64_t lists = pb_polygons_bytes(polygons);
    const uint64_t shapes = r->later_room * (sizeof *r->later + sizeof(struct pb_vector_shape));
    const uint64_t text = (r->n_later > 0 ? 2 : 1) * file_bytes;
    const uint64_t before = text + shapes + lists + polygons->memory_bytes;
    return before > 2 * lists ? before : 2 * lists;
}

/* Returns true if the columns of a geographic scene extend around the Earth. */
static bool is_round(const struct pb_raster *scene, double circle)
{
    const struct pb_raster_info *info = &scene->info;
    const double *t = info->transform;
    return info->has_transform && t[2] == 0 && t[4] == 0 &&
           fabs(t[1]) * info->width >= circle - 1e-6 * fabs(t[1]);
}

/* Makes the result of reading. */
static struct pb_polygons *make_polygons(struct reading *r, const struct pb_vector_file *file,
                                         const struct pb_raster *scene)
{
    struct pb_polygons *polygons = pb_vector_make_polygons(&r->place.make, r->request->n_fields);
    if (polygons == NULL)
        return NULL;
    polygons->stamp = file->stamp;
    polygons->file_bytes = file->bytes;
    polygons->wkb_bytes = r->wkb_bytes;
    polygons->read_bytes = read_bytes(r, file->bytes, polygons);
    polygons->moved = r->place.way.to != NULL;
    polygons->is_split = r->place.wrap.split;
    polygons->is_round = r->place.way.geographic && is_round(scene, r->place.way.circle);
    polygons->n_left_out = r->n_left_out;
    polygons->first_left_out = r->first_left_out;
    return polygons;
}

/* Reads the file. by_shapes: its coordinates are read by threads if they can be. */
static int read_file(struct reading *r, struct pb_raster *scene, bool by_shapes,
                     struct pb_polygons **out_polygons)
{
    struct pb_vector_file file;
    int rc = pb_vector_file_open(&file, r->request->path, r->err);
    pb_gdal_listen(&r->place.words, NULL);
    if (rc == 0 && by_shapes && pb_vector_shapes_take(&r->shapes, file.name) < 0)
        rc = wrong_feature(r, 0, -ENOMEM, "");
    if (rc == 0)
        rc = open_file(r, &file);
    if (rc == 0)
        rc = find_layer(r);
    if (rc == 0)
        rc = find_fields(r);
    if (rc == 0)
        rc = set_filter(r);
    if (rc == 0)
        rc = find_way(r, scene);
    if (rc == 0)
        rc = read_features(r);
    if (rc == 0)
        rc = place_shapes(r, scene);
    if (rc == 0) {
        *out_polygons = make_polygons(r, &file, scene);
        rc = *out_polygons != NULL ? 0 : wrong_feature(r, 0, -ENOMEM, "");
    }
    pb_vector_placer_fini(&r->place);
    pb_vector_shapes_free(&r->shapes);
    free(r->later);
    if (r->dataset != NULL)
        GDALClose(r->dataset);
    pb_gdal_unlisten();
    if (rc < 0)
        pb_vector_file_blame(&file, r->request->path, r->err);
    pb_vector_file_close(&file);
    return rc;
}

int pb_vector_read(const struct pb_vector_request *request, struct pb_raster *scene,
                   struct pb_err *err, struct pb_polygons **out_polygons)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct pb_err own = {0};
    struct reading r = {.request = request, .err = &own};
    (void)pthread_once(&once, register_once);
    /* A filter may contain the area of a shape (OGR_GEOM_AREA). */
    if (request->threads > 0 && request->filter == NULL &&
        read_file(&r, scene, true, out_polygons) == 0)
        return 0;
    /* GDAL reads text that is unusual; and its messages have places in the file. */
    r = (struct reading){.request = request, .err = err};
    return read_file(&r, scene, false, out_polygons);
}
