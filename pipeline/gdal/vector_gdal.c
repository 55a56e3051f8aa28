/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/gdal/raster_gdal_place.h"
#include "pipeline/gdal/raster_gdal_said.h"
#include "pipeline/gdal/vector.h"
#include "pipeline/gdal/vector_file.h"
#include "pipeline/gdal/vector_make.h"
#include "pipeline/gdal/vector_place.h"
#include "pipeline/gdal/vector_reach.h"
#include "pipeline/gdal/vector_wrap.h"
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
    struct pb_gdal_words words;
    GDALDatasetH dataset;
    OGRLayerH layer;
    struct pb_vector_way way;        /* transformation to the scene's system */
    int field[PB_VECTOR_FIELDS_MAX]; /* index of each requested field; -1: the feature's id */
    int where; /* index of the `where` field; -1: the feature's id; -2: all features */
    struct pb_vector_reach reach; /* used if the systems differ */
    struct pb_vector_wrap wrap;
    struct pb_vector_make make;
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
                      pb_gdal_said(&r->words));
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
        return wrong_filter(r, pb_gdal_said(&r->words), wrong_at(CPLGetLastErrorMsg()));
    OGR_F_Destroy(OGR_L_GetNextFeature(r->layer));
    return r->words.n > 0 ? wrong_filter(r, pb_gdal_said(&r->words), SIZE_MAX) : 0;
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
    const struct pb_gdal_words words = r->words; /* places outside a projection are no damage */
    if (pb_vector_way_init(&r->way, from, scene, r->request->tolerance) == 0) {
        if (r->way.to != NULL)
            pb_vector_reach_find(&r->reach, scene, from);
        r->words = words;
        return 0;
    }
    return pb_fail_at(r->err, PB_E_VECTOR_INVALID, r->request->path, 0, 0,
                      "there is no way from its coordinate system to the scene's (%s)",
                      pb_gdal_said(&r->words));
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

/* Removes the rings of the current polygon beyond n_rings. */
static void take_rings_back(struct pb_vector_make *make, size_t n_rings)
{
    if (make->n_rings > n_rings)
        make->n_vertices = make->ring[n_rings].first;
    make->n_rings = n_rings;
    make->polygon[make->n - 1].n_rings = n_rings - make->polygon[make->n - 1].first_ring;
}

/* Adds ring i of a part, or traces it. Omits the ring, or the whole part, if it is outside the
 * scene's system. */
static int add_ring(struct reading *r, OGRGeometryH part, int i, bool wraps, bool *out_end)
{
    const struct pb_gdal_words words = r->words;
    OGRGeometryH ring = OGR_G_GetGeometryRef(part, i);
    const size_t n_rings = r->make.n_rings, n_traces = r->wrap.n;
    int rc = wraps ? pb_vector_wrap_ring(&r->wrap, ring, &r->way)
                   : pb_vector_place_ring(&r->make, ring, &r->way);
    const bool beyond = rc == -ERANGE && pb_vector_reach_is_beyond(&r->reach, ring, r->way.to);
    const double circle = r->way.planar ? r->way.circle / r->way.ratio : 0;
    if (beyond ||
        ((rc == -ERANGE || rc == -EXDEV) && pb_vector_reach_is_far(&r->reach, part, circle))) {
        *out_end = i == 0 || !beyond;
        r->make.polygon[r->make.n - 1].is_beyond = true;
        take_rings_back(&r->make, n_rings);
        pb_vector_wrap_reset(&r->wrap, n_traces);
        rc = 0;
    }
    if (rc == 0)
        r->words = words;
    return rc;
}

/* Adds a polygon, or a part of a MultiPolygon. A part that crosses the seam of the scene's
 * system is traced. */
static int add_part(struct reading *r, OGRGeometryH part, bool wraps)
{
    const size_t before = r->make.n_rings;
    bool end = false;
    int rc = 0;
    r->make.part++;
    pb_vector_wrap_reset(&r->wrap, 0);
    for (int i = 0; rc == 0 && !end && i < OGR_G_GetGeometryCount(part); i++)
        rc = add_ring(r, part, i, wraps, &end);
    if (rc == 0 && wraps && !end)
        rc = pb_vector_wrap_add(&r->wrap, &r->way, &r->make);
    if (end || rc == -EXDEV)
        take_rings_back(&r->make, before);
    if (rc == -EXDEV && !wraps) {
        const struct pb_gdal_words words = r->words;
        const bool can = pb_vector_wrap_has_seam(&r->way);
        r->words = words;
        return can ? add_part(r, part, true) : rc;
    }
    return rc;
}

/* Returns true if a part of a geographic file is wider than the Earth and cannot be traced. */
static bool is_wider(struct reading *r, OGRGeometryH part)
{
    const struct pb_vector_way *way = &r->way;
    OGREnvelope e;
    if (!way->planar || way->geographic)
        return false;
    OGR_G_GetEnvelope(part, &e);
    return isfinite(e.MaxX - e.MinX) && e.MaxX - e.MinX > way->circle / way->ratio * (1 + 1e-6) &&
           !pb_vector_wrap_has_seam(&r->way);
}

static bool is_finite(OGRGeometryH part)
{
    for (int i = 0; i < OGR_G_GetGeometryCount(part); i++) {
        OGRGeometryH ring = OGR_G_GetGeometryRef(part, i);
        for (int k = 0; k < OGR_G_GetPointCount(ring); k++)
            if (!isfinite(OGR_G_GetX(ring, k)) || !isfinite(OGR_G_GetY(ring, k)))
                return false;
    }
    return true;
}

/* Adds the part of a polygon around the scene if other edges have no place in the scene's
 * system. -ERANGE: the rectangle around the scene is unknown. */
static int add_cut(struct reading *r, OGRGeometryH part)
{
    const double circle = r->way.planar ? r->way.circle / r->way.ratio : 0;
    int rc = r->reach.has_near && is_finite(part) ? 0 : -ERANGE;
    for (int turn = circle > 0 ? -1 : 0; rc == 0 && turn <= (circle > 0); turn++) {
        OGRGeometryH cut = pb_vector_reach_cut(&r->reach, part, turn * circle);
        if (cut == NULL)
            continue;
        rc = add_part(r, cut, false);
        OGR_G_DestroyGeometry(cut);
    }
    r->make.polygon[r->make.n - 1].is_beyond = true;
    return rc;
}

static int add_polygon(struct reading *r, OGRGeometryH part)
{
    const struct pb_gdal_words words = r->words; /* the search transforms invalid places too */
    const bool wider = is_wider(r, part);
    const bool wraps = r->way.geographic || pb_vector_wrap_is_beyond(&r->way, part);
    r->words = words;
    const size_t before = r->make.n_rings;
    const int rc = wider ? -EDOM : add_part(r, part, wraps);
    if (wraps || (rc != -ERANGE && rc != -EXDEV && rc != -EDOM))
        return rc;
    take_rings_back(&r->make, before);
    r->words = words;
    const int cut = add_cut(r, part);
    if (cut != -ERANGE && cut != -EXDEV)
        return cut;
    take_rings_back(&r->make, before);
    return rc;
}

static int add_rings(struct reading *r, OGRGeometryH geometry)
{
    const OGRwkbGeometryType type = wkbFlatten(OGR_G_GetGeometryType(geometry));
    int rc = 0;
    if (type == wkbPolygon)
        return add_polygon(r, geometry);
    if (type != wkbMultiPolygon)
        return -EINVAL;
    for (int i = 0; rc == 0 && i < OGR_G_GetGeometryCount(geometry); i++)
        rc = add_rings(r, OGR_G_GetGeometryRef(geometry, i));
    return rc;
}

static int add_geometry(struct reading *r, OGRFeatureH feature)
{
    OGRGeometryH own = OGR_F_GetGeometryRef(feature), geometry = own;
    if (own == NULL || OGR_G_IsEmpty(own))
        return 0;
    r->wkb_bytes += (uint64_t)OGR_G_WkbSize(own);
    if (OGR_G_HasCurveGeometry(own, TRUE))
        geometry = OGR_G_GetLinearGeometry(own, 0, NULL);
    const OGRwkbGeometryType type =
        geometry != NULL ? wkbFlatten(OGR_G_GetGeometryType(geometry)) : wkbUnknown;
    int rc = type == wkbPolygon || type == wkbMultiPolygon ? add_rings(r, geometry) : -EINVAL;
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
    if (r->make.n >= PB_VECTOR_FEATURES_MAX)
        return pb_fail_at(r->err, PB_E_VECTOR_LIMIT, r->request->path, 0, 0,
                          "more than %d features", PB_VECTOR_FEATURES_MAX);
    if (pb_vector_make_polygon(&r->make, OGR_F_GetFID(feature)) < 0)
        rc = -ENOMEM;
    for (size_t i = 0; rc == 0 && i < r->request->n_fields; i++) {
        char fid[24];
        struct pb_polygon_value value = value_of(feature, r->field[i], fid);
        char text[1024];
        if (value.text != NULL) {
            (void)pb_text_clean(value.text, text, sizeof text);
            value.text = text;
        }
        rc = pb_vector_make_value(&r->make, &value);
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
    if (r->words.n > 0)
        return pb_fail_at(r->err, PB_E_VECTOR_INVALID, r->request->path, 0, 0,
                          "it is damaged after feature %lld: %s",
                          r->make.n > 0 ? (long long)r->make.polygon[r->make.n - 1].fid : -1LL,
                          pb_gdal_said(&r->words));
    if (r->make.n > 0)
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

/* Returns true if the columns of a geographic scene extend around the Earth. */
static bool is_round(const struct pb_raster *scene, double circle)
{
    const struct pb_raster_info *info = &scene->info;
    const double *t = info->transform;
    return info->has_transform && t[2] == 0 && t[4] == 0 &&
           fabs(t[1]) * info->width >= circle - 1e-6 * fabs(t[1]);
}

int pb_vector_read(const struct pb_vector_request *request, struct pb_raster *scene,
                   struct pb_err *err, struct pb_polygons **out_polygons)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct reading r = {.request = request, .err = err};
    struct pb_vector_file file;
    (void)pthread_once(&once, register_once);
    int rc = pb_vector_file_open(&file, request->path, err);
    pb_gdal_listen(&r.words, NULL);
    if (rc == 0)
        rc = open_file(&r, &file);
    if (rc == 0)
        rc = find_layer(&r);
    if (rc == 0)
        rc = find_fields(&r);
    if (rc == 0)
        rc = set_filter(&r);
    if (rc == 0)
        rc = find_way(&r, scene);
    if (rc == 0)
        rc = read_features(&r);
    const uint64_t lists = pb_vector_make_bytes(&r.make);
    struct pb_polygons *polygons =
        rc == 0 ? pb_vector_make_polygons(&r.make, request->n_fields) : NULL;
    if (rc == 0 && polygons == NULL)
        rc = wrong_feature(&r, 0, -ENOMEM, "");
    if (rc == 0) {
        polygons->stamp = file.stamp;
        polygons->file_bytes = file.bytes;
        polygons->wkb_bytes = r.wkb_bytes;
        polygons->read_bytes = file.bytes + lists + polygons->memory_bytes;
        polygons->moved = r.way.to != NULL;
        polygons->is_split = r.wrap.split;
        polygons->is_round = r.way.geographic && is_round(scene, r.way.circle);
        polygons->n_left_out = r.n_left_out;
        polygons->first_left_out = r.first_left_out;
    }
    pb_vector_make_free(&r.make);
    pb_vector_way_fini(&r.way);
    pb_vector_wrap_free(&r.wrap);
    if (r.dataset != NULL)
        GDALClose(r.dataset);
    pb_gdal_unlisten();
    if (rc < 0)
        pb_vector_file_blame(&file, request->path, err);
    pb_vector_file_close(&file);
    if (rc == 0)
        *out_polygons = polygons;
    return rc;
}
