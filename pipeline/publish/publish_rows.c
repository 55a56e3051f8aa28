/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/publish/publish_rows.h"

#include "config/base/json_reader.h"
#include "config/base/json_writer.h"
#include "pipeline/io/io_fail.h"
#include "pipeline/publish/collection.h"
#include "pipeline/publish/manifest.h"
#include "pipeline/publish/publish_lock.h"
#include "pipeline/publish/publish_parents.h"
#include "pipeline/publish/series.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BROKEN_TRIES    100       /* retries after a broken lock */
#define RECOVER_WAIT_MS 2000      /* in a sweep: the next one tries again */
#define RECORD_MAX      (4 << 20) /* bytes; a scene may have many tiles */

bool pb_publish_rows_are_none(const struct pb_publish_rows *rows)
{
    return rows->n_series == 0 && (rows->collection[0] == '\0' || rows->n_items == 0);
}

int pb_publish_rows_add_item(struct pb_publish_rows *rows, const char *file)
{
    char(*more)[256] = realloc(rows->item, (rows->n_items + 1) * sizeof *more);
    if (more == NULL)
        return -ENOMEM;
    rows->item = more;
    (void)snprintf(more[rows->n_items++], sizeof *more, "%s", file);
    return 0;
}

void pb_publish_rows_fini(struct pb_publish_rows *rows)
{
    free(rows->series);
    free(rows->item);
    rows->series = NULL;
    rows->item = NULL;
    rows->n_series = rows->n_items = 0;
}

/* --- writing the files -----------------------------------------------------------------------*/

/* Reads the extent of all items together, and the month of each. */
static int read_items(const struct pb_publish_rows *rows, int leaf,
                      struct pb_collection_extent *out, char (*month)[8])
{
    int rc = 0;
    for (size_t i = 0; i < rows->n_items && rc == 0; i++) {
        struct pb_collection_extent next;
        rc = pb_collection_extent_read(leaf, rows->item[i], rows->collection, &next);
        if (rc != 0)
            break;
        (void)snprintf(month[i], sizeof month[i], "%.7s", next.start);
        if (i == 0)
            *out = next;
        else
            (void)pb_collection_extent_grow(out, &next);
    }
    return rc;
}

static int stage_collection(const struct pb_publish_rows *rows, int products_fd, const char *shown,
                            int leaf, struct pb_publish_lock *lock,
                            enum pb_publish_rows_collection *out_state, char why[400])
{
    const char *what = "holds no item of the collection";
    if (rows->collection[0] == '\0' || rows->n_items == 0)
        return 0;
    char(*month)[8] = calloc(rows->n_items, sizeof *month);
    struct pb_collection_change change = {.id = rows->collection,
                                          .items = {.directory = rows->directory,
                                                    .file = (const char(*)[256])rows->item,
                                                    .month = (const char(*)[8])month,
                                                    .n = rows->n_items},
                                          .mode = rows->mode};
    int rc = month != NULL ? read_items(rows, leaf, &change.extent, month) : -ENOMEM;
    rc = rc ? rc : pb_collection_stage(lock, products_fd, &change, &what);
    free(month);
    if (rc == 0 || rc == -ESTALE)
        return rc;
    if (rc == PB_COLLECTION_UNLINKED) {
        *out_state = PB_ROWS_COLLECTION_FOREIGN;
        (void)snprintf(why, 400, "the collection %.100s in %.130s does not link the item: %.120s",
                       rows->collection, shown, what);
        return 0;
    }
    *out_state = rc > 0 || rc == -EINVAL ? PB_ROWS_COLLECTION_FOREIGN : PB_ROWS_COLLECTION_FAILED;
    (void)snprintf(
        why, 400,
        rc > 0 ? "the collection %.100s has no " PB_COLLECTION_FILE
                 ": the file of that name in %.150s %.100s"
               : "the item is not in the extent of the collection %.100s, " PB_COLLECTION_FILE
                 " in %.150s: %.100s",
        rows->collection, shown, rc > 0 ? what : strerror(-rc));
    return 0;
}

static int stage_all(const struct pb_publish_rows *rows, int products_fd, const char *shown,
                     int leaf, struct pb_publish_lock *lock, struct pb_err *err,
                     enum pb_publish_rows_collection *out_state, char why[400])
{
    int rc = 0;
    *out_state = PB_ROWS_COLLECTION_FINE;
    why[0] = '\0';
    for (size_t i = 0; i < rows->n_series && rc == 0; i++)
        rc = pb_series_stage(lock, products_fd, shown, rows->series[i].name, rows->scene, leaf,
                             rows->series[i].table, rows->mode, err);
    return rc ? rc : stage_collection(rows, products_fd, shown, leaf, lock, out_state, why);
}

static int cannot_lock(int rc, const char *shown, struct pb_err *err)
{
    static const char name[] = PB_PUBLISH_LOCK_DIRECTORY;
    if (rc == -ETIMEDOUT || rc == -ESTALE)
        return pb_fail(err, PB_E_OUTPUT_WRITE,
                       "cannot change a series or " PB_COLLECTION_FILE
                       " in %s: other processes have the lock %s all the time",
                       shown, name);
    if (rc == -EEXIST)
        return pb_fail(err, PB_E_OUTPUT_WRITE,
                       "%s/%s has to be a directory that pushbroom makes; move away what has its "
                       "name",
                       shown, name);
    return pb_io_fail(err, -rc, "cannot make " PB_PUBLISH_LOCK_DIRECTORY " in", shown);
}

int pb_publish_rows_stage(const struct pb_publish_rows *rows, int products_fd, const char *shown,
                          int leaf, int64_t wait_ms, struct pb_err *err,
                          struct pb_publish_lock **out_lock,
                          enum pb_publish_rows_collection *out_state, char why[400])
{
    struct pb_publish_lock *lock = NULL;
    int rc = -ESTALE;
    for (int i = 0; i < BROKEN_TRIES && rc == -ESTALE; i++) {
        rc = pb_publish_lock_take(products_fd, wait_ms, &lock);
        if (rc < 0)
            return cannot_lock(rc, shown, err);
        rc = stage_all(rows, products_fd, shown, leaf, lock, err, out_state, why);
        if (rc < 0)
            pb_publish_lock_drop(lock);
    }
    if (rc == -ESTALE)
        return cannot_lock(rc, shown, err);
    if (rc == 0)
        *out_lock = lock;
    return rc;
}

/* --- the record ------------------------------------------------------------------------------*/

static char *print_record(const struct pb_publish_rows *rows, uint64_t inode)
{
    struct pb_json *json = pb_json_create(false);
    pb_json_object(json, NULL);
    pb_json_string(json, "path", rows->directory);
    pb_json_int(json, "inode", (int64_t)inode);
    pb_json_string(json, "scene", rows->scene);
    pb_json_int(json, "mode", (int64_t)rows->mode);
    pb_json_string(json, "collection", rows->collection);
    pb_json_array(json, "items");
    for (size_t i = 0; i < rows->n_items; i++)
        pb_json_string(json, NULL, rows->item[i]);
    pb_json_end(json);
    pb_json_array(json, "series");
    for (size_t i = 0; i < rows->n_series; i++) {
        pb_json_object(json, NULL);
        pb_json_string(json, "table", rows->series[i].table);
        pb_json_string(json, "name", rows->series[i].name);
        pb_json_end(json);
    }
    pb_json_end(json);
    pb_json_end(json);
    const char *text = pb_json_text(json, NULL);
    char *copy = text != NULL ? strdup(text) : NULL;
    pb_json_destroy(json);
    return copy;
}

int pb_publish_rows_record(const struct pb_publish_rows *rows, int temp_fd, int leaf, int *out_fd)
{
    struct stat st;
    if (fstat(leaf, &st) != 0)
        return -errno;
    char *text = print_record(rows, (uint64_t)st.st_ino);
    if (text == NULL)
        return -ENOMEM;
    int rc = unlinkat(temp_fd, PB_PUBLISH_ROWS_FILE, 0) != 0 && errno != ENOENT ? -errno : 0;
    int fd = rc < 0 ? -1
                    : openat(temp_fd, PB_PUBLISH_ROWS_FILE,
                             O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (rc == 0 && fd < 0)
        rc = -errno;
    const size_t bytes = strlen(text);
    ssize_t n = rc == 0 ? write(fd, text, bytes) : 0;
    if (rc == 0 && n != (ssize_t)bytes)
        rc = n < 0 ? -errno : -ENOSPC;
    free(text);
    if (rc == 0)
        *out_fd = fd;
    else if (fd >= 0)
        (void)close(fd);
    return rc;
}

/* Returns NULL if the record is absent or incomplete: then nothing was published. */
static struct pb_json_value *read_record(int temp_fd)
{
    struct pb_json_value *value = NULL;
    struct stat st;
    int fd = openat(temp_fd, PB_PUBLISH_ROWS_FILE, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    char *text = NULL;
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= RECORD_MAX)
        text = malloc((size_t)st.st_size + 1);
    ssize_t n = text != NULL ? read(fd, text, (size_t)st.st_size) : -1;
    if (fd >= 0)
        (void)close(fd);
    if (n > 0 && pb_json_parse(text, (size_t)n, RECORD_MAX, &value) != 0)
        value = NULL;
    free(text);
    return value;
}

/* Returns true if the text is a name of one component. */
static bool is_name(const char *text)
{
    return text != NULL && strchr(text, '/') == NULL && strcmp(text, "..") != 0;
}

static bool take_name(const struct pb_json_value *value, const char *key, char out[256])
{
    const char *text = pb_json_get_text(value, key);
    return is_name(text) && (size_t)snprintf(out, 256, "%s", text) < 256;
}

static bool take_items(const struct pb_json_value *items, struct pb_publish_rows *out)
{
    for (size_t i = 0; i < pb_json_count(items); i++) {
        const char *text = pb_json_text_of(pb_json_at(items, i));
        if (!is_name(text) || pb_publish_rows_add_item(out, text) < 0)
            return false;
    }
    return true;
}

static bool parse_record(const struct pb_json_value *record, struct pb_publish_rows *out)
{
    int64_t mode = -1;
    const char *path = pb_json_get_text(record, "path");
    const struct pb_json_value *series = pb_json_get(record, "series", NULL);
    const size_t n = pb_json_count(series);
    if (!take_name(record, "scene", out->scene) ||
        !take_name(record, "collection", out->collection) ||
        !take_items(pb_json_get(record, "items", NULL), out) ||
        pb_json_get_int(record, "mode", &mode) != 0 || mode < 0 || mode > 0777)
        return false;
    if (path == NULL || strlen(path) >= sizeof out->directory)
        return false;
    (void)snprintf(out->directory, sizeof out->directory, "%s", path);
    out->mode = (unsigned)mode;
    out->series = calloc(n + 1, sizeof *out->series);
    for (size_t i = 0; out->series != NULL && i < n; i++) {
        struct pb_publish_series *one = &out->series[i];
        if (!take_name(pb_json_at(series, i), "table", one->table) ||
            !take_name(pb_json_at(series, i), "name", one->name))
            return false;
        out->n_series++;
    }
    return out->series != NULL;
}

/* Returns true if the open directory has the products of that run of the job. */
static bool is_of_run(int fd, const char *job, uint64_t epoch)
{
    struct pb_manifest m = {0};
    bool is =
        epoch > 0 && pb_manifest_read(fd, &m) == 0 && strcmp(m.job, job) == 0 && m.epoch == epoch;
    pb_manifest_fini(&m);
    return is;
}

bool pb_publish_rows_are_of(const struct pb_publish_rows *rows, int products_fd, int leaf)
{
    struct stat st, own;
    int fd = pb_publish_parents(products_fd, rows->directory, false, 0);
    bool are = fd >= 0 && fstat(fd, &st) == 0 && fstat(leaf, &own) == 0 && st.st_ino == own.st_ino;
    if (fd >= 0)
        (void)close(fd);
    return are;
}

/* Opens the products that the record describes. -1: they are not in place. */
static int open_products(int products_fd, const struct pb_json_value *record, const char *job,
                         uint64_t epoch)
{
    const char *path = pb_json_get_text(record, "path");
    int64_t inode = 0;
    struct stat st;
    if (path == NULL || path[0] == '.' || strstr(path, "/.") != NULL ||
        pb_json_get_int(record, "inode", &inode) != 0)
        return -1;
    int fd = pb_publish_parents(products_fd, path, false, 0);
    if (fd >= 0 && (fstat(fd, &st) != 0 || (int64_t)st.st_ino != inode) &&
        !is_of_run(fd, job, epoch)) {
        (void)close(fd);
        fd = -1;
    }
    return fd;
}

/* Adds the rows. Returns true if that is done or can never succeed. */
static bool put_in(const struct pb_publish_rows *rows, int products_fd, int leaf)
{
    struct pb_publish_lock *lock = NULL;
    struct pb_err err = {0};
    enum pb_publish_rows_collection state;
    char why[400];
    int rc = pb_publish_rows_stage(rows, products_fd, "products", leaf, RECOVER_WAIT_MS, &err,
                                   &lock, &state, why);
    if (rc < 0)
        return err.code == PB_E_OUTPUT_SERIES;
    rc = pb_publish_lock_place(lock);
    pb_publish_lock_drop(lock);
    return rc == 0 && state != PB_ROWS_COLLECTION_FAILED;
}

bool pb_publish_rows_recover(int products_fd, int temp_fd, const char *job, uint64_t epoch)
{
    struct pb_publish_rows rows = {.n_series = 0};
    struct pb_json_value *record = read_record(temp_fd);
    int leaf = record != NULL ? open_products(products_fd, record, job, epoch) : -1;
    bool done = leaf < 0 || !parse_record(record, &rows) || put_in(&rows, products_fd, leaf);
    pb_publish_rows_fini(&rows);
    pb_json_release(record);
    if (leaf >= 0)
        (void)close(leaf);
    return done;
}
