/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_VECTOR_TABLE_H
#define PB_VECTOR_TABLE_H
/* Table of numbers as a vector file: each row with the outline of a feature of another file. */
#include "pipeline/gdal/vector.h"
#include "pipeline/numbers/table.h"

enum pb_vector_format { PB_VECTOR_GEOJSON, PB_VECTOR_GPKG };

struct pb_vector_rows {
    const struct pb_table *table;
    /* feature of each row: its index in the result of pb_vector_read, ascending */
    const uint32_t *feature;
    const char *name; /* name of the layer */
    enum pb_vector_format format;
};

/* Makes the bytes of the file, malloc'd, the caller's. GeoJSON (RFC 7946) is in longitude and
 * latitude, a GeoPackage in the coordinate system of the file of `outlines`; its outlines are
 * multipolygons. The same rows give the same bytes. Errors of pb_vector_read, memory, and
 * vector.invalid if outlines->stamp differs from the file's. Thread: any. */
int pb_vector_table(const struct pb_vector_request *outlines, const struct pb_vector_rows *rows,
                    struct pb_err *err, char **out_file, size_t *out_bytes);
#endif
