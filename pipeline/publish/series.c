/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/publish/series.h"

#include "pipeline/io/io_fail.h"
#include "pipeline/numbers/table.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LOCK_MS = 60000, LOCK_STEP_MS = 5 };
static const int64_t most_bytes = INT64_C(1) << 30;

/* Zeroed: nothing. */
struct text {
    char *data; /* NUL-terminated */
    size_t n;
};

/* All of a regular file. -ENOENT: there is none. */
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

/* A lock on the directory, which every writer of a series in it takes. */
static int lock(int directory)
{
    int waited = 0;
    while (flock(directory, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return -errno;
        if (waited >= LOCK_MS)
            return -ETIMEDOUT;
        (void)nanosleep(&(struct timespec){.tv_nsec = LOCK_STEP_MS * 1000000L}, NULL);
        waited += LOCK_STEP_MS;
    }
    return 0;
}

/* Length of a line with its line feed; of one that was cut off, what is there. */
static size_t line_of(const char *text)
{
    const char *end = strchr(text, '\n');
    return end != NULL ? (size_t)(end - text) + 1 : strlen(text);
}

/* Length of the first column of a row, with its quotes. */
static size_t first_of(const char *row)
{
    size_t n = 0;
    if (row[0] != '"')
        return strcspn(row, ",\n");
    do { /* "" is a quote in it */
        n += 1 + strcspn(row + n + 1, "\"");
        n += row[n] == '"';
    } while (row[n] == '"');
    return n;
}

/* Whether a row's first column is that text, as it is written. */
static bool is_of(const char *row, const char *scene)
{
    const size_t n = first_of(row);
    return n == strlen(scene) && memcmp(row, scene, n) == 0;
}

/* The name as the first column has it; malloc'd, NULL = no memory. */
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

/* The old rows but those of the scene, and the new ones behind them. */
static void merge(FILE *out, const struct text *old, const struct text *table, const char *scene)
{
    const size_t header = line_of(table->data);
    const char *new_rows = table->data + header;
    (void)fwrite(table->data, 1, header, out);
    for (const char *row = old->data != NULL ? old->data + header : ""; *row != '\0';
         row += line_of(row))
        if (!is_of(row, scene))
            (void)fwrite(row, 1, line_of(row), out);
    (void)fputs(new_rows, out);
}

/* A whole file first, then the name. */
static int replace(int directory, const char *name, const struct text *old,
                   const struct text *table, const char *scene)
{
    char temporary[NAME_MAX + 1];
    struct stat st = {.st_mode = 0};
    (void)snprintf(temporary, sizeof temporary, ".%.200s.new", name);
    if (unlinkat(directory, temporary, 0) != 0 && errno != ENOENT) /* of one that was killed */
        return -errno;
    int fd =
        openat(directory, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    FILE *out = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (out == NULL) {
        const int error = errno;
        if (fd >= 0)
            (void)close(fd);
        return -error;
    }
    if (old->data != NULL && fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
        (void)fchmod(fd, st.st_mode & 0777);
    merge(out, old, table, scene);
    bool fine = fflush(out) == 0 && !ferror(out) && fsync(fd) == 0;
    int error = fine ? 0 : errno != 0 ? errno : EIO;
    if (fclose(out) != 0 && fine)
        error = errno;
    if (error == 0 && renameat(directory, temporary, directory, name) != 0)
        error = errno;
    if (error == 0 && fsync(directory) != 0 && errno != EINVAL)
        error = errno;
    if (error != 0)
        (void)unlinkat(directory, temporary, 0);
    return -error;
}

/* With the lock held. */
static int put(int directory, const char *name, const struct text *table, const char *scene)
{
    struct text old = {.data = NULL};
    const size_t header = line_of(table->data);
    int rc = read_all(directory, name, &old);
    if (rc == -ELOOP)
        rc = -EEXIST;
    if (rc == 0 && (old.n < header || memcmp(old.data, table->data, header) != 0 ||
                    old.data[old.n - 1] != '\n'))
        rc = -EEXIST;
    if (rc == -ENOENT && table->data[header] == '\0') /* no zone had a pixel */
        rc = 0;
    else if (rc == 0 || rc == -ENOENT)
        rc = replace(directory, name, &old, table, scene);
    free(old.data);
    return rc;
}

int pb_series_put(const char *products, const char *name, const char *scene, const char *table,
                  struct pb_err *err)
{
    struct text text = {.data = NULL};
    char path[PATH_MAX];
    (void)snprintf(path, sizeof path, "%.2000s/%.200s", products, name);
    int directory = open(products, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = directory < 0 ? -errno : read_all(AT_FDCWD, table, &text);
    if (rc == 0)
        rc = lock(directory);
    char *column = column_of(scene);
    if (rc == 0)
        rc = column != NULL ? put(directory, name, &text, column) : -ENOMEM;
    free(column);
    if (directory >= 0)
        (void)close(directory); /* ends the lock */
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
    return rc < 0 ? pb_io_fail(err, -rc, "cannot append to", path) : 0;
}
