/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The result of a job as a worker reports it. The worker's own JSON is not kept: values that
 * pass the checks are written again, so that the store and every client get bounded and readable
 * values. */
#include "pipeline/io/checksum.h"
#include "config/base/json_writer.h"
#include "config/base/text_clean.h"
#include "pipeline/io/file_name.h"
#include "pipeline/product/product_kinds.h"
#include "config/base/json_reader.h"
#include "service/worker/worker_lines.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_BYTES     512
#define REPORT_DEPTH   6
#define REPORT_VALUES  2000
#define REPORT_MEMBERS 64

bool pb_worker_is_place(const struct pb_worker_lines *lines, const char *path)
{
    size_t n = strlen(lines->products);
    if (lines->directory[0] != '\0')
        return strcmp(path, lines->directory) == 0;
    if (strlen(path) >= PB_WORKER_PATH_BYTES || n == 0 || strncmp(path, lines->products, n) != 0)
        return false;
    if (lines->products[n - 1] != '/' && path[n++] != '/')
        return false;
    if (lines->scene[0] == '.' || strchr(lines->scene, '/') != NULL)
        return false;
    return pb_output_path_fits(&lines->place, path + n);
}

static bool is_clean(const char *word, size_t bytes_max)
{
    char clean[TEXT_BYTES];
    return word != NULL && word[0] != '\0' && strlen(word) < bytes_max &&
           pb_text_clean(word, clean, sizeof clean) == strlen(word) && strcmp(word, clean) == 0;
}

/* Returns true if the path is a file directly in the directory. */
static bool is_file_of(const char *path, const char *directory)
{
    size_t n = strlen(directory);
    if (path == NULL || strncmp(path, directory, n) != 0 || path[n] != '/')
        return false;
    return pb_file_name_is_clean(path + n + 1);
}

/* word: a checksum of the product; JSON null if it has no checksum. */
static bool is_checksum(const struct pb_json_value *product, const char *word)
{
    enum pb_checksum kind;
    const char *digits;
    bool found;
    if (word == NULL)
        return pb_json_get(product, "checksum", &found) == NULL && found;
    return pb_checksum_parse(word, &kind, &digits) == 0 && digits != NULL;
}

/* Returns true for four places: longitude, latitude of each. */
static bool is_corners(const struct pb_json_value *corners)
{
    bool good = pb_json_count(corners) == 4;
    for (size_t i = 0; good && i < 4; i++) {
        const struct pb_json_value *corner = pb_json_at(corners, i);
        good = pb_json_count(corner) == 2 &&
               fabs(pb_json_number_of(pb_json_at(corner, 0), 999)) <= 720 &&
               fabs(pb_json_number_of(pb_json_at(corner, 1), 999)) <= 90;
    }
    return good;
}

static const char *print_product(struct pb_json *json, const struct pb_json_value *product,
                                 const char *directory)
{
    const struct pb_json_value *corners = pb_json_get(product, "corners", NULL);
    const char *type = pb_json_get_text(product, "type"), *name = pb_json_get_text(product, "name");
    const char *path = pb_json_get_text(product, "path");
    const char *checksum = pb_json_get_text(product, "checksum");
    const char *media_type = pb_json_get_text(product, "media_type");
    int64_t bytes = -1, moved = 0;
    if (type == NULL || pb_product_kind_find(type) == NULL)
        return "a product of an unknown type";
    if (!is_file_of(path, directory))
        return "a product outside the job's directory";
    if (pb_json_get_int(product, "bytes", &bytes) != 0 || bytes < 0)
        return "a product without a size";
    if (!is_checksum(product, checksum))
        return "a product without a checksum";
    if ((name != NULL && !is_clean(name, 256)) || !is_clean(media_type, 128))
        return "a product with an unreadable name or media type";
    pb_json_object(json, NULL);
    pb_json_string(json, "type", type);
    if (name != NULL)
        pb_json_string(json, "name", name);
    pb_json_string(json, "path", path);
    pb_json_int(json, "bytes", bytes);
    if (checksum != NULL)
        pb_json_string(json, "checksum", checksum);
    else
        pb_json_null(json, "checksum");
    pb_json_string(json, "media_type", media_type);
    if (pb_json_get_int(product, "moved_off_nodata", &moved) == 0 && moved > 0)
        pb_json_int(json, "moved_off_nodata", moved);
    if (is_corners(corners))
        pb_json_raw(json, "corners", pb_json_source(corners));
    pb_json_end(json);
    return NULL;
}

/* Returns the writer's text, owned by the caller, unless `wrong` is set. */
static char *finish(struct pb_json *json, const char *wrong, char why[PB_WORKER_WHY_BYTES])
{
    size_t bytes = 0;
    const char *text = wrong == NULL ? pb_json_text(json, &bytes) : NULL;
    char *copy = text ? strdup(text) : NULL;
    if (wrong != NULL)
        (void)snprintf(why, PB_WORKER_WHY_BYTES, "%s", wrong);
    pb_json_destroy(json);
    return copy;
}

char *pb_worker_products(const struct pb_json_value *products, const char *directory,
                         char why[PB_WORKER_WHY_BYTES])
{
    struct pb_json *json = pb_json_create(false);
    const char *wrong = NULL;
    size_t n = pb_json_count(products);
    if (!pb_json_is_array(products) || n == 0 || n > PB_WORKER_PRODUCTS_MAX)
        wrong = "no list of products";
    pb_json_array(json, NULL);
    for (size_t i = 0; i < n && wrong == NULL; i++)
        wrong = print_product(json, pb_json_at(products, i), directory);
    pb_json_end(json);
    return finish(json, wrong, why);
}

static bool is_key(const char *key)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    size_t n = strlen(key);
    return n > 0 && n <= 48 && strspn(key, allowed) == n;
}

/* Copies a value of any shape within the limits; *left counts down the values of the whole
 * document. */
static const char *copy_value(struct pb_json *json, const char *key,
                              const struct pb_json_value *value, int depth, int *left)
{
    char text[TEXT_BYTES];
    const char *wrong = NULL, *member;
    bool is_array = pb_json_is_array(value);
    if (--*left < 0 || depth > REPORT_DEPTH)
        return "a report too large or too deep";
    if (!is_array && !pb_json_is_object(value)) {
        if (pb_json_text_of(value) != NULL) {
            (void)pb_text_clean(pb_json_text_of(value), text, sizeof text);
            pb_json_string(json, key, text);
        } else if (pb_json_is_plain(value)) {
            pb_json_raw(json, key, pb_json_source(value));
        } else {
            pb_json_null(json, key);
        }
        return NULL;
    }
    if (is_array)
        pb_json_array(json, key);
    else
        pb_json_object(json, key);
    for (size_t i = 0; is_array && i < pb_json_count(value) && wrong == NULL; i++)
        wrong = copy_value(json, NULL, pb_json_at(value, i), depth + 1, left);
    for (size_t i = 0; wrong == NULL && (member = pb_json_key(value, i)) != NULL; i++)
        wrong = i < REPORT_MEMBERS && is_key(member)
                    ? copy_value(json, member, pb_json_get(value, member, NULL), depth + 1, left)
                    : "a report with members that no worker writes";
    pb_json_end(json);
    return wrong;
}

char *pb_worker_report(const struct pb_json_value *report, char why[PB_WORKER_WHY_BYTES])
{
    struct pb_json *json = pb_json_create(false);
    int left = REPORT_VALUES;
    const char *wrong = "no report";
    if (pb_json_is_object(report))
        wrong = copy_value(json, NULL, report, 0, &left);
    return finish(json, wrong, why);
}
