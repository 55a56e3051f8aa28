/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* A row counts once: one that is there twice, or missing, is an error, because a detector with a
 * wrong gain would be a stripe in every product. */
#include "pipeline/run/run_columns.h"

#include "config/config.h"
#include "config/pipeline_config.h"
#include "config/units.h"
#include "kernels/ops/pixel/calibrate.h"
#include "kernels/op.h"
#include "pipeline/run/run_areas.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TABLE_BYTES_MAX (64 << 20)
#define HANDED_MAX      32
#define FIELDS          4
#define HEADER          "column,band,dark,gain"

/* Content of a file that was read before the process lost its right to. */
static struct {
    char path[PATH_MAX], *text;
} handed[HANDED_MAX];
static size_t n_handed;

/* Table of one step: values[entry * width + column], darks in the second half. */
struct table {
    size_t step, n_entries;
    float *values;
};

struct pb_run_columns {
    size_t n, width;
    struct table table[];
};

/* A file that is read. */
struct reading {
    const struct pb_calibrate *step;
    const char *path;
    int line;
    size_t width, n_gaps; /* n_gaps: values that are missing still */
    float *gain, *dark;
    struct pb_err *err;
};

static const struct pb_calibrate *step_of(const struct pb_step_config *step)
{
    const struct pb_calibrate *calibrate =
        step->op == pb_op_find("calibrate") ? step->params : NULL;
    return calibrate != NULL && calibrate->columns != NULL ? calibrate : NULL;
}

/* Returns the text of a file, malloc'd; NULL with errno: it cannot be read. */
static char *read_text(const char *path)
{
    FILE *file = fopen(path, "re");
    char *text = NULL;
    size_t n = 0, room = 65536;
    while (file != NULL && n + 1 < TABLE_BYTES_MAX && !ferror(file) && !feof(file)) {
        char *more = realloc(text, room *= 2);
        if (more == NULL)
            break;
        text = more;
        n += fread(text + n, 1, room - n - 1, file);
        text[n] = '\0';
    }
    const bool is_whole = file != NULL && feof(file) && !ferror(file) && n < TABLE_BYTES_MAX;
    const int error = file == NULL ? errno : EFBIG;
    if (file != NULL)
        (void)fclose(file);
    if (is_whole && strlen(text) == n)
        return text;
    free(text);
    errno = is_whole ? EINVAL : error;
    return NULL;
}

void pb_run_columns_hand(const struct pb_config *config, const struct pb_pipeline_config *pipeline)
{
    for (size_t i = 0; i < pipeline->n_steps; i++) {
        const struct pb_calibrate *step = step_of(&pipeline->steps[i]);
        char path[PATH_MAX];
        if (step == NULL || n_handed == HANDED_MAX ||
            !pb_run_config_path(config, step->columns, path))
            continue;
        handed[n_handed].text = read_text(path);
        if (handed[n_handed].text != NULL) /* else the read fails again, with its message */
            memcpy(handed[n_handed++].path, path, sizeof path);
    }
}

/* --- rows ------------------------------------------------------------------------------------- */

static int wrong(const struct reading *r, const char *message, const char *value)
{
    return pb_fail_at(r->err, PB_E_PIPELINE_TABLE, r->path, r->line, 0, message, value);
}

static int read_number(const struct reading *r, const char *text, float *out)
{
    double value = 0;
    if (pb_units_number(text, false, &value) != 0 || fabs(value) > 3e38)
        return wrong(r, "'%.40s' is not a number", text);
    *out = (float)value;
    return 0;
}

/* Cuts a row at its commas. Returns false if it has another number of fields. */
static bool split(char *row, char *field[FIELDS])
{
    size_t n = 0;
    for (char *at = row; at != NULL; n++) {
        char *comma = strchr(at, ',');
        if (comma != NULL)
            *comma = '\0';
        if (n < FIELDS) {
            at += strspn(at, " \t");
            field[n] = at;
            at[strcspn(at, " \t\r")] = '\0';
        }
        at = comma != NULL ? comma + 1 : NULL;
    }
    return n == FIELDS;
}

/* Stores a row of a band that the step calibrates. */
static int take_row(struct reading *r, char *field[FIELDS])
{
    int64_t column = 0;
    float gain = 0, dark = 0;
    if (pb_units_int(field[0], &column) != 0 || column < 0)
        return wrong(r, "'%.40s' is not the number of a column, from 0", field[0]);
    int rc = read_number(r, field[2], &dark);
    rc = rc ? rc : read_number(r, field[3], &gain);
    for (size_t e = 0; rc == 0 && e < r->step->bands.n; e++) {
        if (strcmp(r->step->bands.items[e].text, field[1]) != 0)
            continue;
        if ((uint64_t)column >= r->width)
            return pb_fail_at(r->err, PB_E_PIPELINE_GRID, r->path, r->line, 0,
                              "calibrate.columns: column %lld of band %.60s: the scene has %zu "
                              "columns, 0 to %zu",
                              (long long)column, field[1], r->width, r->width - 1);
        const size_t at = e * r->width + (size_t)column;
        if (!isnan(r->gain[at]))
            return wrong(r, "column %.20s of the band is there twice", field[0]);
        r->gain[at] = gain;
        r->dark[at] = dark;
        r->n_gaps--;
    }
    return rc;
}

static int check_whole(const struct reading *r)
{
    for (size_t i = 0; r->n_gaps > 0 && i < r->step->bands.n * r->width; i++)
        if (isnan(r->gain[i]))
            return pb_fail_at(r->err, PB_E_PIPELINE_GRID, r->path, 0, 0,
                              "calibrate.columns: column %zu of band %.60s is missing: the scene "
                              "has %zu columns, 0 to %zu",
                              i % r->width, r->step->bands.items[i / r->width].text, r->width,
                              r->width - 1);
    return 0;
}

static int read_rows(struct reading *r, char *text)
{
    char *field[FIELDS], *rest = text;
    int rc = 0;
    for (char *row; rc == 0 && (row = strsep(&rest, "\n")) != NULL;) {
        r->line++;
        const size_t n = strcspn(row, "\r");
        if (r->line == 1 && (n != strlen(HEADER) || strncmp(row, HEADER, n) != 0))
            rc = wrong(r, "the first line must be %s", HEADER);
        else if (r->line > 1 && row[strspn(row, " \t\r")] != '\0')
            rc = split(row, field) ? take_row(r, field)
                                   : wrong(r, "a row must have four fields: %s", HEADER);
    }
    return rc ? rc : check_whole(r);
}

/* --- tables ----------------------------------------------------------------------------------- */

static char *text_of(const char *path)
{
    for (size_t i = 0; i < n_handed; i++)
        if (strcmp(handed[i].path, path) == 0)
            return strdup(handed[i].text);
    return read_text(path);
}

static int read_table(const struct pb_config *config, const struct pb_calibrate *step, size_t width,
                      struct table *out, struct pb_err *err)
{
    char path[PATH_MAX];
    const size_t n = step->bands.n * width;
    if (!pb_run_config_path(config, step->columns, path))
        return pb_fail(err, PB_E_CONFIG_VALUE,
                       "calibrate.columns: the path is longer than %d bytes", PATH_MAX - 1);
    char *text = text_of(path);
    if (text == NULL)
        return pb_fail_at(err, PB_E_PIPELINE_TABLE, path, 0, 0, "calibrate.columns: %s",
                          errno == EFBIG    ? "the file has over 64 MiB"
                          : errno == EINVAL ? "the file is not text"
                                            : strerror(errno));
    out->n_entries = step->bands.n;
    out->values = calloc(2 * n, sizeof *out->values);
    struct reading reading = {.step = step,
                              .path = path,
                              .width = width,
                              .n_gaps = n,
                              .gain = out->values,
                              .dark = out->values + n,
                              .err = err};
    int rc = out->values != NULL ? 0 : pb_fail(err, PB_E_MEMORY, "no memory for calibrate.columns");
    for (size_t i = 0; rc == 0 && i < n; i++)
        reading.gain[i] = NAN;
    rc = rc ? rc : read_rows(&reading, text);
    free(text);
    return rc;
}

int pb_run_columns_read(const struct pb_config *config, const struct pb_pipeline_config *pipeline,
                        int32_t width, struct pb_err *err, struct pb_run_columns **out_columns)
{
    size_t n = 0;
    int rc = 0;
    *out_columns = NULL;
    for (size_t i = 0; i < pipeline->n_steps; i++)
        n += step_of(&pipeline->steps[i]) != NULL;
    if (n == 0)
        return 0;
    struct pb_run_columns *columns = calloc(1, sizeof *columns + n * sizeof columns->table[0]);
    if (columns == NULL)
        return pb_fail(err, PB_E_MEMORY, "no memory for calibrate.columns");
    columns->width = (size_t)width;
    for (size_t i = 0; rc == 0 && i < pipeline->n_steps; i++) {
        const struct pb_calibrate *step = step_of(&pipeline->steps[i]);
        if (step == NULL)
            continue;
        columns->table[columns->n].step = i;
        rc = read_table(config, step, (size_t)width, &columns->table[columns->n++], err);
    }
    if (rc != 0)
        pb_run_columns_destroy(columns);
    else
        *out_columns = columns;
    return rc;
}

void pb_run_columns_destroy(struct pb_run_columns *columns)
{
    for (size_t i = 0; columns != NULL && i < columns->n; i++)
        free(columns->table[i].values);
    free(columns);
}

static const float *values_of(const struct pb_run_columns *columns, size_t step, size_t half,
                              size_t entry)
{
    for (size_t i = 0; columns != NULL && i < columns->n; i++)
        if (columns->table[i].step == step)
            return columns->table[i].values +
                   (half * columns->table[i].n_entries + entry) * columns->width;
    return NULL;
}

const float *pb_run_columns_gain(const struct pb_run_columns *columns, size_t step, size_t entry)
{
    return values_of(columns, step, 0, entry);
}

const float *pb_run_columns_dark(const struct pb_run_columns *columns, size_t step, size_t entry)
{
    return values_of(columns, step, 1, entry);
}
