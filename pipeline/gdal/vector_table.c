/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/gdal/vector_table.h"
#include "pipeline/gdal/vector_place.h"
#include "pipeline/gdal/raster_gdal_said.h"
#include "pipeline/gdal/vector_file.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct writing {
    const struct pb_vector_request *outlines;
    const struct pb_vector_rows *rows;
    struct pb_err *err;
    struct pb_gdal_words words;
    GDALDatasetH from, to;
    OGRLayerH source, layer;
    char path[80]; /* path in GDAL's memory */
};

static int failed(struct writing *w, const char *what)
{
    return pb_fail_at(w->err, PB_E_VECTOR_INVALID, w->outlines->path, 0, 0, "%s (%s)", what,
                      pb_gdal_said(&w->words));
}

static int open_source(struct writing *w, const struct pb_vector_file *file)
{
    static const char *const drivers[] = {"GeoJSON", "GPKG", "ESRI Shapefile", NULL};
    w->from = GDALOpenEx(file->name, GDAL_OF_VECTOR | GDAL_OF_READONLY | GDAL_OF_VERBOSE_ERROR,
                         drivers, NULL, (const char *const *)file->siblings);
    if (w->from != NULL && w->outlines->layer != NULL)
        w->source = GDALDatasetGetLayerByName(w->from, w->outlines->layer);
    else if (w->from != NULL)
        w->source = GDALDatasetGetLayer(w->from, 0);
    return w->source != NULL ? 0 : failed(w, "its outlines cannot be read again");
}

static int add_columns(struct writing *w)
{
    static const OGRFieldType types[] = {[PB_CELL_NULL] = OFTString,
                                         [PB_CELL_INT] = OFTInteger64,
                                         [PB_CELL_REAL] = OFTReal,
                                         [PB_CELL_FLOAT] = OFTReal,
                                         [PB_CELL_TEXT] = OFTString};
    for (size_t i = 0; i < pb_table_columns(w->rows->table); i++) {
        const struct pb_column *column = pb_table_column_at(w->rows->table, i);
        OGRFieldDefnH field = OGR_Fld_Create(column->name, types[column->kind]);
        const OGRErr rc = OGR_L_CreateField(w->layer, field, FALSE);
        OGR_Fld_Destroy(field);
        if (rc != OGRERR_NONE || OGR_FD_GetFieldCount(OGR_L_GetLayerDefn(w->layer)) != (int)i + 1 ||
            OGR_FD_GetFieldIndex(OGR_L_GetLayerDefn(w->layer), column->name) != (int)i)
            return failed(w, "its copy does not get its columns");
    }
    return 0;
}

/* Sets a constant time of the last change in a GeoPackage, so that its bytes are reproducible. */
static int create(struct writing *w)
{
    static atomic_uint last;
    const bool json = w->rows->format == PB_VECTOR_GEOJSON;
    char **options = NULL;
    (void)snprintf(w->path, sizeof w->path, "/vsimem/pb_vector_table_%u.%s",
                   atomic_fetch_add(&last, 1) + 1, json ? "geojson" : "gpkg");
    if (json)
        options = CSLSetNameValue(options, "RFC7946", "YES");
    else
        options = CSLSetNameValue(options, "FID", "feature_id");
    GDALDriverH driver = GDALGetDriverByName(json ? "GeoJSON" : "GPKG");
    if (driver != NULL)
        w->to = GDALCreate(driver, w->path, 0, 0, 0, GDT_Unknown, NULL);
    if (w->to != NULL)
        w->layer = GDALDatasetCreateLayer(w->to, w->rows->name, OGR_L_GetSpatialRef(w->source),
                                          json ? wkbUnknown : wkbMultiPolygon, options);
    CSLDestroy(options);
    return w->layer != NULL ? add_columns(w) : failed(w, "its outlines cannot be copied");
}

static void set_cell(OGRFeatureH feature, int field, const struct pb_cell *cell)
{
    switch (cell->kind) {
    case PB_CELL_INT:
        OGR_F_SetFieldInteger64(feature, field, cell->integer);
        break;
    case PB_CELL_REAL:
    case PB_CELL_FLOAT:
        OGR_F_SetFieldDouble(feature, field, cell->real);
        break;
    case PB_CELL_TEXT:
        OGR_F_SetFieldString(feature, field, cell->text);
        break;
    default:
        OGR_F_SetFieldNull(feature, field);
    }
}

static int add_row(struct writing *w, size_t row, OGRGeometryH outline)
{
    OGRFeatureH feature = OGR_F_Create(OGR_L_GetLayerDefn(w->layer));
    for (size_t i = 0; i < pb_table_columns(w->rows->table); i++)
        set_cell(feature, (int)i, pb_table_cell(w->rows->table, row, i));
    if (outline != NULL && w->rows->format == PB_VECTOR_GPKG)
        OGR_F_SetGeometryDirectly(feature,
                                  OGR_G_ForceTo(OGR_G_Clone(outline), wkbMultiPolygon, NULL));
    else if (outline != NULL)
        OGR_F_SetGeometryDirectly(feature, OGR_G_GetLinearGeometry(outline, 0, NULL));
    const OGRErr rc = OGR_L_CreateFeature(w->layer, feature);
    OGR_F_Destroy(feature);
    return rc == OGRERR_NONE ? 0 : failed(w, "one of its outlines cannot be copied");
}

/* Both lists are ascending by the number of the feature. */
static int add_rows(struct writing *w)
{
    const size_t n = pb_table_rows(w->rows->table);
    OGRFeatureH feature;
    size_t row = 0;
    int rc = 0;
    OGR_L_ResetReading(w->source);
    for (uint32_t i = 0; rc == 0 && row < n;) {
        feature = OGR_L_GetNextFeature(w->source);
        if (feature == NULL)
            return failed(w, "it has changed while it was used");
        if (pb_vector_is_left_out(OGR_F_GetGeometryRef(feature))) {
            OGR_F_Destroy(feature);
            continue;
        }
        for (; rc == 0 && row < n && w->rows->feature[row] == i; row++)
            rc = add_row(w, row, OGR_F_GetGeometryRef(feature));
        i++;
        OGR_F_Destroy(feature);
    }
    return rc;
}

static int take_file(struct writing *w, char **out_file, size_t *out_bytes)
{
    vsi_l_offset n = 0;
    w->words.n = 0;
    w->words.first[0] = '\0';
    GDALClose(w->to); /* writes the remaining data, and the index; it returns no error */
    w->to = NULL;
    if (w->words.n > 0)
        return failed(w, "its copy cannot be completed");
    const GByte *bytes = VSIGetMemFileBuffer(w->path, &n, FALSE);
    char *copy = bytes != NULL ? malloc((size_t)n + 1) : NULL;
    if (copy == NULL)
        return pb_fail(w->err, PB_E_MEMORY, "no memory for the table with outlines");
    memcpy(copy, bytes, (size_t)n);
    *out_file = copy;
    *out_bytes = (size_t)n;
    return 0;
}

int pb_vector_table(const struct pb_vector_request *outlines, const struct pb_vector_rows *rows,
                    struct pb_err *err, char **out_file, size_t *out_bytes)
{
    struct writing w = {.outlines = outlines, .rows = rows, .err = err};
    struct pb_vector_file file;
    int rc = pb_vector_file_open(&file, outlines->path, err);
    if (rc == 0 && outlines->stamp != 0 && outlines->stamp != file.stamp)
        rc =
            pb_fail_at(err, PB_E_VECTOR_INVALID, outlines->path, 0, 0,
                       "it has changed since its polygons were read, so its outlines may belong to "
                       "other numbers; run the scene again");
    pb_gdal_listen(&w.words, NULL);
    CPLSetThreadLocalConfigOption("OGR_CURRENT_DATE", "1970-01-01T00:00:00.000Z");
    if (rc == 0)
        rc = open_source(&w, &file);
    if (rc == 0)
        rc = create(&w);
    if (rc == 0)
        rc = add_rows(&w);
    if (rc == 0)
        rc = take_file(&w, out_file, out_bytes);
    if (w.to != NULL)
        GDALClose(w.to);
    if (w.path[0] != '\0')
        (void)VSIUnlink(w.path);
    if (w.from != NULL)
        GDALClose(w.from);
    CPLSetThreadLocalConfigOption("OGR_CURRENT_DATE", NULL);
    pb_gdal_unlisten();
    pb_vector_file_close(&file);
    return rc;
}
