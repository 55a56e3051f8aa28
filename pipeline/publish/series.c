/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/publish/series.h"

#include "pipeline/io/io_fail.h"

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
    if (rc == 0 && (!S_ISREG(st.st_mode) || st.st_size > most_bytes))
        rc = -EEXIST;
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

/* Whether a row begins with the first column of another one. */
static bool is_of(const char *row, const char *like)
{
    const size_t n = strcspn(like, ",\n") + 1;
    return strncmp(row, like, n) == 0;
}

/* The old rows but those of the new table's scene, and the new ones behind them. */
static void merge(FILE *out, const struct text *old, const struct text *table)
{
    const size_t header = line_of(table->data);
    const char *new_rows = table->data + header;
    (void)fwrite(table->data, 1, header, out);
    for (const char *row = old->data != NULL ? old->data + header : ""; *row != '\0';
         row += line_of(row))
        if (!is_of(row, new_rows))
            (void)fwrite(row, 1, line_of(row), out);
    (void)fputs(new_rows, out);
}

/* A whole file first, then the name. */
static int replace(int directory, const char *name, const struct text *old,
                   const struct text *table)
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
    merge(out, old, table);
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
static int put(int directory, const char *name, const struct text *table)
{
    struct text old = {.data = NULL};
    const size_t header = line_of(table->data);
    if (table->data[header] == '\0') /* no zone had a pixel: which scene it was is not known */
        return 0;
    int rc = read_all(directory, name, &old);
    if (rc == -ELOOP)
        rc = -EEXIST;
    if (rc == 0 && (old.n < header || memcmp(old.data, table->data, header) != 0 ||
                    old.data[old.n - 1] != '\n'))
        rc = -EEXIST;
    if (rc == 0 || rc == -ENOENT)
        rc = replace(directory, name, &old, table);
    free(old.data);
    return rc;
}

int pb_series_put(const char *products, const char *name, const char *table, struct pb_err *err)
{
    struct text text = {.data = NULL};
    char path[PATH_MAX];
    (void)snprintf(path, sizeof path, "%.2000s/%.200s", products, name);
    int directory = open(products, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = directory < 0 ? -errno : read_all(AT_FDCWD, table, &text);
    if (rc == 0)
        rc = lock(directory);
    if (rc == 0)
        rc = put(directory, name, &text);
    if (directory >= 0)
        (void)close(directory); /* ends the lock */
    free(text.data);
    if (rc == -EEXIST)
        return pb_fail(err, PB_E_OUTPUT_EXISTS,
                       "%s is no series with the columns of this product; it stays as it is", path);
    return rc < 0 ? pb_io_fail(err, -rc, "cannot append to", path) : 0;
}
