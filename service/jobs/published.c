/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/jobs/published.h"

#include "config/base/json_reader.h"
#include "pipeline/product/product_kinds.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PRODUCTS_MAX = 64 * 1024 * 1024 };

/* Reads the item in a file; NULL if it is absent or has more than `most` bytes. *out_bytes: size
 * of the file. */
static struct pb_json_value *read_item(const char *path, size_t most, size_t *out_bytes)
{
    struct pb_json_value *item = NULL;
    struct stat st;
    char *text = NULL;
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (size_t)st.st_size <= most)
        text = malloc((size_t)st.st_size + 1);
    ssize_t n = text != NULL ? read(fd, text, (size_t)st.st_size) : -1;
    if (fd >= 0)
        (void)close(fd);
    *out_bytes = n > 0 ? (size_t)n : 0;
    const bool is_json = n > 0 && pb_json_parse(text, (size_t)n, most, &item) == 0;
    free(text);
    const char *type = is_json ? pb_json_get_text(item, "type") : NULL;
    if (type != NULL && strcmp(type, "Feature") == 0)
        return item;
    pb_json_release(item);
    return NULL;
}

/* Writes the members of a product. left: remaining limit for bytes of items of the job. */
static void write_product(struct pb_json *json, const struct pb_json_value *product,
                          const char *root, const char *files, size_t *left)
{
    char copy[PATH_MAX];
    const char *key, *type = pb_json_get_text(product, "type"),
                     *path = pb_json_get_text(product, "path");
    const size_t n = strlen(root);
    pb_json_object(json, NULL);
    for (size_t i = 0; (key = pb_json_key(product, i)) != NULL; i++) {
        const struct pb_json_value *value = pb_json_get(product, key, NULL);
        if (value != NULL)
            pb_json_raw(json, key, pb_json_source(value));
        else
            pb_json_null(json, key);
    }
    const struct pb_product_kind *kind = type != NULL ? pb_product_kind_find(type) : NULL;
    if (kind != NULL && kind->describes_others && path != NULL && strncmp(path, root, n) == 0 &&
        path[n] == '/') {
        size_t bytes = 0;
        const size_t most = *left < PB_PUBLISHED_ITEM_MAX ? *left : PB_PUBLISHED_ITEM_MAX;
        if (files != NULL)
            (void)snprintf(copy, sizeof copy, "%.3000s%.1000s", files, strrchr(path, '/'));
        struct pb_json_value *item = read_item(files != NULL ? copy : path, most, &bytes);
        pb_json_string(json, "place", path + n + 1);
        if (item != NULL) {
            pb_json_raw(json, "item", pb_json_source(item));
            *left -= bytes;
        }
        pb_json_release(item);
    }
    pb_json_end(json);
}

void pb_published_describe(struct pb_job *job, const char *root, const char *files)
{
    struct pb_json_value *products = NULL;
    size_t left = PB_PUBLISHED_ALL_MAX;
    char real[PATH_MAX];
    if (files != NULL)
        (void)snprintf(real, sizeof real, "%s", root);
    if (job->products == NULL || (files == NULL && realpath(root, real) == NULL) ||
        pb_json_parse(job->products, strlen(job->products), PRODUCTS_MAX, &products) != 0)
        return;
    struct pb_json *json = pb_json_create(false);
    pb_json_array(json, NULL);
    for (size_t i = 0; i < pb_json_count(products); i++)
        write_product(json, pb_json_at(products, i), real, files, &left);
    pb_json_end(json);
    const char *text = pb_json_text(json, NULL);
    if (text != NULL)
        (void)pb_job_set(&job->published, text);
    pb_json_destroy(json);
    pb_json_release(products);
}
