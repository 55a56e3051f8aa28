/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/publish/series.h"

#include "pipeline/io/io_fail.h"
#include "pipeline/numbers/table.h"
#include "pipeline/publish/publish_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const int64_t most_bytes = INT64_C(1) << 30;

/* Zeroed: empty. */
struct text {
    char *data; /* NUL-terminated */
    size_t n;
};

/* Reads a complete regular file. -ENOENT: not found. */
static int read_all(int directory, const char *name, struct text *out)
{
    struct stat st = {.st_mode = 0};
    int fd = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    int rc = fd < 0 || fstat(fd, &st) != 0 ? -errno : 0;
    if (rc == 0 && !S_ISREG(st.st_mode))
        rc = -EEXIST;
    if (rc == 0 && st.st_size > most_bytes)
        rc = -EFBIG;
    const size_t bytes = rc == 0 ? (size_t)st.st_size : 0;
    char *data = rc == 0 ? malloc(bytes + 1) : NULL;
    if (rc == 0 && data == NULL)
        rc = -ENOMEM;
    ssize_t n = 1;
    size_t at = 0;
    while (rc == 0 && at < bytes && (n = pread(fd, data + at, bytes - at, (off_t)at)) > 0)
        at += (size_t)n;
    if (rc == 0 && n < 0)
        rc = -errno;
    if (fd >= 0)
        (void)close(fd);
    if (rc != 0) {
        free(data);
        return rc;
    }
    data[at] = '\0';
    *out = (struct text){data, at};
    return 0;
}

/* Length of the line at the start of the text, with its line feed; of a truncated line without. */
static size_t line_of(const char *text, size_t n)
{
    const char *end = memchr(text, '\n', n);
    return end != NULL ? (size_t)(end - text) + 1 : n;
}

/* Length of the field at the start of the text, with its quotes; 0 with *out_open: the closing
 * quote is missing. */
static size_t field_of(const char *text, size_t n, bool *out_open)
{
    size_t at = 0;
    *out_open = false;
    if (n > 0 && text[0] == '"')
        for (at = 1;; at++) { /* "" is an escaped quote */
            const char *quote = memchr(text + at, '"', n - at);
            if (quote == NULL) {
                *out_open = true;
                return 0;
            }
            at = (size_t)(quote - text) + 1;
            if (at >= n || text[at] != '"')
                break;
        }
    while (at < n && text[at] != ',' && text[at] != '\n')
        at++;
    return at;
}

/* Length of the row at the start of the text: up to a line feed outside of quotes. A row without
 * a closing quote ends with the line: the rest belongs to other rows. */
static size_t row_of(const char *text, size_t n)
{
    for (size_t at = 0; at < n;) {
        bool open;
        at += field_of(text + at, n - at, &open);
        if (open)
            return line_of(text, n);
        if (at < n && text[at++] == '\n')
            return at;
    }
    return n;
}

/* Returns true if a row's first column is that text, as written. */
static bool is_of(const char *row, size_t n, const char *scene)
{
    bool open;
    const size_t bytes = field_of(row, n, &open);
    return !open && bytes == strlen(scene) && memcmp(row, scene, bytes) == 0;
}

/* Returns the name in the form of the first column; malloc'd, NULL = out of memory. */
static char *column_of(const char *scene)
{
    struct pb_table *table = pb_table_create();
    size_t n = 0;
    pb_table_column(table, "scene", PB_CELL_TEXT);
    pb_table_row(table);
    pb_table_text(table, scene);
    char *text = pb_table_failed(table) ? NULL : pb_table_csv_rows(table, &n);
    if (text != NULL)
        text[n - 1] = '\0'; /* the line feed */
    pb_table_destroy(table);
    return text;
}

/* Writes the old rows except those of the scene, followed by the new ones. */
static void merge(FILE *out, const struct text *old, const struct text *table, const char *scene)
{
    const size_t header = line_of(table->data, table->n);
    (void)fwrite(table->data, 1, header, out);
    for (size_t at = old->data != NULL ? header : 0; at < old->n;) {
        const size_t bytes = row_of(old->data + at, old->n - at);
        if (!is_of(old->data + at, bytes, scene))
            (void)fwrite(old->data + at, 1, bytes, out);
        at += bytes;
    }
    (void)fwrite(table->data + header, 1, table->n - header, out);
}

/* Sets the permissions of the new file if they differ from those of its creation. */
static void set_mode(int fd, int products_fd, const char *name, const struct text *old,
                     unsigned mode)
{
    struct stat st;
    if (mode != 0)
        (void)fchmod(fd, mode);
    else if (old->data != NULL && fstatat(products_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
        (void)fchmod(fd, st.st_mode & 0777);
}

struct into {
    struct pb_publish_lock *lock;
    int products_fd;
    const char *name, *scene;
    unsigned mode;
};

static int write_file(const struct into *into, const struct text *old, const struct text *table)
{
    int fd = -1, rc = pb_publish_lock_file(into->lock, into->name, 0644, &fd);
    if (rc < 0)
        return rc;
    FILE *out = fdopen(fd, "w");
    if (out == NULL) {
        rc = -errno;
        (void)close(fd);
        return rc;
    }
    set_mode(fd, into->products_fd, into->name, old, into->mode);
    errno = 0;
    merge(out, old, table, into->scene);
    bool fine = fflush(out) == 0 && !ferror(out) && fsync(fd) == 0;
    rc = fine ? 0 : errno != 0 ? -errno : -EIO;
    if (fclose(out) != 0 && rc == 0)
        rc = -errno;
    return rc;
}

static int stage(const struct into *into, const struct text *table)
{
    struct text old = {.data = NULL};
    const size_t header = line_of(table->data, table->n);
    int rc = read_all(into->products_fd, into->name, &old);
    if (rc == -ELOOP)
        rc = -EEXIST;
    if (rc == 0 && (old.n < header || memcmp(old.data, table->data, header) != 0 ||
                    old.data[old.n - 1] != '\n'))
        rc = -EEXIST;
    if (rc == -ENOENT && header == table->n) /* no zone had a pixel */
        rc = 0;
    else if (rc == 0 || rc == -ENOENT)
        rc = write_file(into, &old, table);
    free(old.data);
    return rc;
}

int pb_series_stage(struct pb_publish_lock *lock, int products_fd, const char *shown,
                    const char *name, const char *scene, int directory, const char *table,
                    unsigned mode, struct pb_err *err)
{
    struct text text = {.data = NULL};
    char path[PATH_MAX];
    (void)snprintf(path, sizeof path, "%.2000s/%.200s", shown, name);
    char *column = column_of(scene);
    const struct into into = {lock, products_fd, name, column, mode};
    int rc = column != NULL ? read_all(directory, table, &text) : -ENOMEM;
    if (rc == 0)
        rc = stage(&into, &text);
    free(column);
    free(text.data);
    if (rc == -EEXIST)
        return pb_fail(err, PB_E_OUTPUT_SERIES,
                       "%s is no series with the columns of this product; it stays as it is", path);
    if (rc == -EFBIG)
        return pb_fail(
            err, PB_E_OUTPUT_SERIES,
            "%s: a series, and the table that is put into it, has at most %lld MiB; move "
            "it away, and the next table begins another one",
            path, (long long)most_bytes >> 20);
    return rc < 0 && rc != -ESTALE ? pb_io_fail(err, -rc, "cannot append to", path) : rc;
}
