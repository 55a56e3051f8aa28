/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/numbers/table.h"

#include "config/base/number.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pb_table {
    bool failed;
    struct pb_column *column;
    struct pb_cell *cell; /* row after row */
    size_t n_columns, n_rows, room_rows;
    size_t at; /* the next cell of the last row */
};

struct pb_table *pb_table_create(void)
{
    return calloc(1, sizeof(struct pb_table));
}

void pb_table_destroy(struct pb_table *table)
{
    if (table == NULL)
        return;
    for (size_t i = 0; i < table->n_columns; i++)
        free(table->column[i].name);
    for (size_t i = 0; i < table->n_rows * table->n_columns; i++)
        free((char *)(uintptr_t)table->cell[i].text);
    free(table->column);
    free(table->cell);
    free(table);
}

void pb_table_column(struct pb_table *table, const char *name, enum pb_cell_kind kind)
{
    if (table == NULL || table->failed)
        return;
    struct pb_column *all = realloc(table->column, (table->n_columns + 1) * sizeof *table->column);
    char *copy = strdup(name);
    table->column = all != NULL ? all : table->column;
    table->failed = all == NULL || copy == NULL;
    if (table->failed)
        free(copy);
    else
        all[table->n_columns++] = (struct pb_column){copy, kind};
}

void pb_table_row(struct pb_table *table)
{
    if (table == NULL || table->failed)
        return;
    if (table->n_rows == table->room_rows) {
        const size_t room = 2 * table->room_rows + 16;
        struct pb_cell *all = realloc(table->cell, room * table->n_columns * sizeof *all);
        if (all == NULL) {
            table->failed = true;
            return;
        }
        table->cell = all;
        table->room_rows = room;
    }
    memset(table->cell + table->n_rows * table->n_columns, 0,
           table->n_columns * sizeof *table->cell);
    table->n_rows++;
    table->at = 0;
}

static void set(struct pb_table *table, struct pb_cell cell)
{
    if (table == NULL || table->failed || table->n_rows == 0 || table->at == table->n_columns)
        free((char *)(uintptr_t)cell.text);
    else
        table->cell[(table->n_rows - 1) * table->n_columns + table->at++] = cell;
}

void pb_table_null(struct pb_table *table)
{
    set(table, (struct pb_cell){.kind = PB_CELL_NULL});
}

void pb_table_int(struct pb_table *table, int64_t value)
{
    set(table, (struct pb_cell){.kind = PB_CELL_INT, .integer = value});
}

void pb_table_real(struct pb_table *table, double value)
{
    set(table,
        (struct pb_cell){.kind = isfinite(value) ? PB_CELL_REAL : PB_CELL_NULL, .real = value});
}

void pb_table_float(struct pb_table *table, float value)
{
    set(table, (struct pb_cell){.kind = isfinite(value) ? PB_CELL_FLOAT : PB_CELL_NULL,
                                .real = (double)value});
}

void pb_table_text(struct pb_table *table, const char *value)
{
    char *copy = value != NULL ? strdup(value) : NULL;
    if (value != NULL && copy == NULL && table != NULL)
        table->failed = true;
    set(table, (struct pb_cell){.kind = copy != NULL ? PB_CELL_TEXT : PB_CELL_NULL, .text = copy});
}

bool pb_table_failed(const struct pb_table *table)
{
    return table == NULL || table->failed;
}

size_t pb_table_columns(const struct pb_table *table)
{
    return table != NULL ? table->n_columns : 0;
}

size_t pb_table_rows(const struct pb_table *table)
{
    return table != NULL ? table->n_rows : 0;
}

const struct pb_column *pb_table_column_at(const struct pb_table *table, size_t column)
{
    return &table->column[column];
}

const struct pb_cell *pb_table_cell(const struct pb_table *table, size_t row, size_t column)
{
    return &table->cell[row * table->n_columns + column];
}

/* --- CSV -------------------------------------------------------------------------------------- */

static void put_text(FILE *out, const char *text)
{
    if (text[strcspn(text, ",\"\r\n")] == '\0') {
        (void)fputs(text, out);
        return;
    }
    (void)fputc('"', out);
    for (; *text != '\0'; text++)
        (void)fprintf(out, "%s%c", *text == '"' ? "\"" : "", *text);
    (void)fputc('"', out);
}

static void put_cell(FILE *out, const struct pb_cell *cell)
{
    char text[PB_NUMBER_TEXT] = "";
    switch (cell->kind) {
    case PB_CELL_INT:
        (void)fprintf(out, "%" PRId64, cell->integer);
        break;
    case PB_CELL_REAL:
        (void)pb_number_text(cell->real, text);
        break;
    case PB_CELL_FLOAT:
        (void)pb_number_text_float((float)cell->real, text);
        break;
    case PB_CELL_TEXT:
        put_text(out, cell->text);
        break;
    default:
        break;
    }
    (void)fputs(text, out);
}

static void put_header(FILE *out, const struct pb_table *table)
{
    for (size_t i = 0; i < table->n_columns; i++) {
        (void)fputs(i > 0 ? "," : "", out);
        put_text(out, table->column[i].name);
    }
    (void)fputc('\n', out);
}

static void put_rows(FILE *out, const struct pb_table *table)
{
    for (size_t r = 0; r < table->n_rows; r++) {
        for (size_t i = 0; i < table->n_columns; i++) {
            (void)fputs(i > 0 ? "," : "", out);
            put_cell(out, pb_table_cell(table, r, i));
        }
        (void)fputc('\n', out);
    }
}

static char *in_memory(const struct pb_table *table,
                       void (*put)(FILE *out, const struct pb_table *table), size_t *out_bytes)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = pb_table_failed(table) ? NULL : open_memstream(&text, &bytes);
    if (out == NULL)
        return NULL;
    put(out, table);
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    *out_bytes = bytes;
    return text;
}

char *pb_table_csv_header(const struct pb_table *table, size_t *out_bytes)
{
    return in_memory(table, put_header, out_bytes);
}

char *pb_table_csv_rows(const struct pb_table *table, size_t *out_bytes)
{
    return in_memory(table, put_rows, out_bytes);
}

/* --- JSON ------------------------------------------------------------------------------------- */

void pb_table_json_row(const struct pb_table *table, struct pb_json *json, size_t row)
{
    for (size_t i = 0; i < table->n_columns; i++) {
        const struct pb_cell *cell = pb_table_cell(table, row, i);
        const char *name = table->column[i].name;
        switch (cell->kind) {
        case PB_CELL_INT:
            pb_json_int(json, name, cell->integer);
            break;
        case PB_CELL_REAL:
            pb_json_number(json, name, cell->real);
            break;
        case PB_CELL_FLOAT:
            pb_json_float(json, name, (float)cell->real);
            break;
        default:
            pb_json_string(json, name, cell->text);
        }
    }
}
