/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/publish/collection.h"

#include "config/base/json_reader.h"
#include "config/base/json_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READ_MAX = 4 * 1024 * 1024 };

static void write_extent(struct pb_json *json)
{
    static const double world[] = {-180, -90, 180, 90};
    pb_json_object(json, "extent");
    pb_json_object(json, "spatial");
    pb_json_array(json, "bbox");
    pb_json_array(json, NULL);
    for (int i = 0; i < 4; i++)
        pb_json_number(json, NULL, world[i]);
    pb_json_end(json);
    pb_json_end(json);
    pb_json_end(json);
    pb_json_object(json, "temporal");
    pb_json_array(json, "interval");
    pb_json_array(json, NULL);
    pb_json_null(json, NULL); /* open on both sides */
    pb_json_null(json, NULL);
    pb_json_end(json);
    pb_json_end(json);
    pb_json_end(json);
    pb_json_end(json);
}

static struct pb_json *make(const char *id)
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
    write_extent(json);
    pb_json_array(json, "links");
    pb_json_end(json);
    pb_json_end(json);
    return json;
}

/* What lies there: 0 = a collection of this id, 1 = another thing. */
static int look(int products_fd, const char *id, const char **why)
{
    int fd =
        openat(products_fd, PB_COLLECTION_FILE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct pb_json_value *value = NULL;
    struct stat st;
    char *text = NULL;
    *why = "is no collection";
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= READ_MAX)
        text = malloc((size_t)st.st_size + 1);
    ssize_t n = text != NULL ? read(fd, text, (size_t)st.st_size) : -1;
    if (fd >= 0)
        (void)close(fd);
    if (n >= 0 && pb_json_parse(text, (size_t)n, READ_MAX, &value) == 0) {
        const char *found = pb_json_get_text(value, "id");
        const char *type = pb_json_get_text(value, "type");
        if (type != NULL && strcmp(type, "Collection") == 0 && found != NULL)
            *why = strcmp(found, id) == 0 ? NULL : "is another collection";
    }
    pb_json_release(value);
    free(text);
    return *why == NULL ? 0 : 1;
}

/* A file of its own first, then a link under the name, which fails where one is there: a reader
 * sees all of it or none. */
static int place(int products_fd, const char *text, size_t bytes, unsigned mode)
{
    char temp[64];
    (void)snprintf(temp, sizeof temp, "." PB_COLLECTION_FILE ".%ld.tmp", (long)getpid());
    (void)unlinkat(products_fd, temp, 0); /* of a process of that number that has ended */
    int fd = openat(products_fd, temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0)
        return -errno;
    bool good = write(fd, text, bytes) == (ssize_t)bytes && (mode == 0 || fchmod(fd, mode) == 0) &&
                fsync(fd) == 0;
    int rc = good ? 0 : -errno;
    (void)close(fd);
    if (rc == 0 && linkat(products_fd, temp, products_fd, PB_COLLECTION_FILE, 0) != 0)
        rc = -errno;
    (void)unlinkat(products_fd, temp, 0);
    return rc;
}

int pb_collection_write(int products_fd, const char *id, unsigned mode, const char **why)
{
    struct stat st;
    size_t bytes = 0;
    if (fstatat(products_fd, PB_COLLECTION_FILE, &st, AT_SYMLINK_NOFOLLOW) == 0)
        return look(products_fd, id, why);
    struct pb_json *json = make(id);
    const char *text = pb_json_text(json, &bytes);
    int rc = text != NULL ? place(products_fd, text, bytes, mode) : -ENOMEM;
    pb_json_destroy(json);
    return rc == -EEXIST ? look(products_fd, id, why) : rc;
}
