/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/publish/collection.h"

#include "config/base/json_reader.h"
#include "config/base/json_writer.h"
#include "pipeline/publish/publish_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* "items": the extent is that of the items; "assumed": it is the world, as no item has a place. */
#define MARK "pushbroom:extent"

enum { READ_MAX = 4 * 1024 * 1024 };

/* --- the document ----------------------------------------------------------------------------*/

static struct pb_json *make(const char *id, const struct pb_collection_extent *extent)
{
    struct pb_json *json = pb_json_create(true);
    char text[400];
    (void)snprintf(text, sizeof text, "Products of pushbroom, collection %.200s.", id);
    pb_json_object(json, NULL);
    pb_json_string(json, "type", "Collection");
    pb_json_string(json, "stac_version", "1.1.0");
    pb_json_string(json, "id", id);
    pb_json_string(json, "description", text);
    pb_json_string(json, "license", "other");
    pb_collection_extent_write(json, extent);
    pb_json_string(json, MARK, extent->has_bbox ? "items" : "assumed");
    pb_json_array(json, "links");
    pb_json_end(json);
    pb_json_end(json);
    return json;
}

static void copy(struct pb_json *json, const char *key, const struct pb_json_value *value)
{
    if (pb_json_is_object(value)) {
        pb_json_object(json, key);
        const char *member;
        for (size_t i = 0; (member = pb_json_key(value, i)) != NULL; i++)
            copy(json, member, pb_json_get(value, member, NULL));
        pb_json_end(json);
    } else if (pb_json_is_array(value)) {
        pb_json_array(json, key);
        for (size_t i = 0; i < pb_json_count(value); i++)
            copy(json, NULL, pb_json_at(value, i));
        pb_json_end(json);
    } else if (pb_json_text_of(value) != NULL) {
        pb_json_string(json, key, pb_json_text_of(value));
    } else if (pb_json_is_plain(value)) {
        pb_json_raw(json, key, pb_json_source(value));
    } else {
        pb_json_null(json, key);
    }
}

/* The same document with another extent. */
static struct pb_json *change(const struct pb_json_value *old,
                              const struct pb_collection_extent *extent)
{
    struct pb_json *json = pb_json_create(true);
    const char *key;
    pb_json_object(json, NULL);
    for (size_t i = 0; (key = pb_json_key(old, i)) != NULL; i++) {
        if (strcmp(key, "extent") == 0)
            pb_collection_extent_write(json, extent);
        else if (strcmp(key, MARK) == 0)
            pb_json_string(json, MARK, extent->has_bbox ? "items" : "assumed");
        else
            copy(json, key, pb_json_get(old, key, NULL));
    }
    pb_json_end(json);
    return json;
}

/* --- the file --------------------------------------------------------------------------------*/

/* What lies there. 0 and *out (the caller's), whose permissions are *mode; -ENOENT: nothing; 1:
 * another thing. */
static int look(int products_fd, const char *id, struct pb_json_value **out, unsigned *mode,
                const char **why)
{
    int fd =
        openat(products_fd, PB_COLLECTION_FILE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat st;
    char *text = NULL;
    if (fd < 0 && errno == ENOENT)
        return -ENOENT;
    *why = "is no collection";
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= READ_MAX)
        text = malloc((size_t)st.st_size + 1);
    ssize_t n = text != NULL ? read(fd, text, (size_t)st.st_size) : -1;
    if (fd >= 0)
        (void)close(fd);
    if (n >= 0 && pb_json_parse(text, (size_t)n, READ_MAX, out) == 0) {
        const char *found = pb_json_get_text(*out, "id");
        const char *type = pb_json_get_text(*out, "type");
        if (type != NULL && strcmp(type, "Collection") == 0 && found != NULL)
            *why = strcmp(found, id) == 0 ? NULL : "is another collection";
        *mode = st.st_mode & 0777u;
    }
    free(text);
    return *why == NULL ? 0 : 1;
}

/* A whole file: `place` of the lock gives it its name. */
static int stage(struct pb_publish_lock *lock, const char *text, size_t bytes, unsigned mode)
{
    int fd = -1, rc = pb_publish_lock_file(lock, PB_COLLECTION_FILE, 0644, &fd);
    if (rc < 0)
        return rc;
    ssize_t n = write(fd, text, bytes);
    rc = n < 0 ? -errno : n != (ssize_t)bytes ? -ENOSPC : 0;
    if (rc == 0 && ((mode != 0 && fchmod(fd, mode) != 0) || fsync(fd) != 0))
        rc = -errno;
    (void)close(fd);
    return rc;
}

static int stage_document(struct pb_publish_lock *lock, struct pb_json *json, unsigned mode)
{
    size_t bytes = 0;
    const char *text = pb_json_document(json, &bytes);
    int rc = text != NULL ? stage(lock, text, bytes, mode) : -ENOMEM;
    pb_json_destroy(json);
    return rc;
}

static int grow(struct pb_publish_lock *lock, const struct pb_json_value *old,
                const struct pb_collection_extent *item, unsigned mode)
{
    struct pb_collection_extent extent;
    const char *mark = pb_json_get_text(old, MARK);
    if (mark == NULL || !pb_collection_extent_parse(pb_json_get(old, "extent", NULL), &extent))
        return 0;
    extent.has_bbox = strcmp(mark, "assumed") != 0;
    if (!pb_collection_extent_grow(&extent, item))
        return 0;
    return stage_document(lock, change(old, &extent), mode);
}

int pb_collection_stage(struct pb_publish_lock *lock, int products_fd, const char *id,
                        const struct pb_collection_extent *item, unsigned mode, const char **why)
{
    struct pb_json_value *old = NULL;
    unsigned own_mode = 0;
    int rc = look(products_fd, id, &old, &own_mode, why);
    if (rc == -ENOENT)
        rc = stage_document(lock, make(id, item), mode);
    else if (rc == 0)
        rc = grow(lock, old, item, mode != 0 ? mode : own_mode);
    pb_json_release(old);
    return rc;
}
