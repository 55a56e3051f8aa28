/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TABLE_H
#define PB_TABLE_H
/* Table of results: named columns of one kind each, and rows of cells. Errors (out of memory)
 * are sticky; pb_table_failed reports them. One thread per object. */
#include "config/base/json_writer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum pb_cell_kind { PB_CELL_NULL, PB_CELL_INT, PB_CELL_REAL, PB_CELL_FLOAT, PB_CELL_TEXT };

struct pb_cell {
    enum pb_cell_kind kind;
    int64_t integer;
    double real;      /* REAL; FLOAT: a float32, printed with the digits of one */
    const char *text; /* TEXT; owned by the table */
};

struct pb_column {
    char *name;
    enum pb_cell_kind kind; /* kind of its cells, unless NULL */
};

struct pb_table;

struct pb_table *pb_table_create(void); /* NULL = out of memory, and every call accepts it */
void pb_table_destroy(struct pb_table *table);
/* Columns are added before the first row. name is copied. */
void pb_table_column(struct pb_table *table, const char *name, enum pb_cell_kind kind);
/* Begins a row; cells are added from the left, missing ones are NULL. NaN is NULL; text is
 * copied, NULL is NULL. */
void pb_table_row(struct pb_table *table);
void pb_table_null(struct pb_table *table);
void pb_table_int(struct pb_table *table, int64_t value);
void pb_table_real(struct pb_table *table, double value);
void pb_table_float(struct pb_table *table, float value);
void pb_table_text(struct pb_table *table, const char *value);

bool pb_table_failed(const struct pb_table *table);
size_t pb_table_columns(const struct pb_table *table);
size_t pb_table_rows(const struct pb_table *table);
const struct pb_column *pb_table_column_at(const struct pb_table *table, size_t column);
const struct pb_cell *pb_table_cell(const struct pb_table *table, size_t row, size_t column);

/* RFC 4180 with line feeds: the line of names, and a line for each row; NULL is empty. malloc'd,
 * the caller's; NULL = out of memory. */
char *pb_table_csv_header(const struct pb_table *table, size_t *out_bytes);
char *pb_table_csv_rows(const struct pb_table *table, size_t *out_bytes);
/* Writes a row's cells as members of the open object. */
void pb_table_json_row(const struct pb_table *table, struct pb_json *json, size_t row);
#endif
