/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/product/stac/stac_links.h"

#include "config/base/href.h"
#include "config/pipeline_config.h"
#include "pipeline/metadata/meta_time.h"
#include "pipeline/product/stac/stac.h"
#include "pipeline/product/stac/stac_time.h"
#include "pipeline/raster/input_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { HREF_BYTES = 6144 };

/* Writes a link to a file in products/ (pipeline/publish/collection.h). */
static void write_shared(const struct pb_stac_item *item, const char *rel, const char *file)
{
    char href[PB_OUTPUT_PARTS_MAX * 3 + 64];
    const char *path = item->env->pipeline->output.path;
    int depth = 1;
    for (const char *at = path ? path : PB_OUTPUT_PATH_DEFAULT; *at != '\0'; at++)
        depth += *at == '/';
    size_t used = 0;
    for (int i = 0; i < depth && used + 40 < sizeof href; i++)
        used += (size_t)snprintf(href + used, sizeof href - used, "../");
    (void)snprintf(href + used, sizeof href - used, "%s", file);
    pb_json_object(item->json, NULL);
    pb_json_string(item->json, "rel", rel);
    pb_json_string(item->json, "href", href);
    pb_json_string(item->json, "type", "application/json");
    pb_json_end(item->json);
}

/* Writes the link that the member collection requires. The parent is the page of the month. */
static void write_collection(const struct pb_stac_item *item)
{
    struct pb_stac_when when;
    struct pb_err err = {0};
    char page[40], utc[40];
    write_shared(item, "root", PB_STAC_CATALOG);
    write_shared(item, "collection", "collection.json");
    if (pb_stac_when(item->config, item->env, &when, &err) != 0 ||
        pb_meta_time(when.datetime[0] ? when.datetime : when.start, utc, sizeof utc) != 0)
        return;
    (void)snprintf(page, sizeof page, PB_STAC_PAGE, utc);
    write_shared(item, "parent", page);
}

/* --- the files that were read ----------------------------------------------------------------- */

/* Media type of the kinds of files that are read; NULL = unknown from the name. */
static const char *media_type(const char *name)
{
    static const struct {
        const char *suffix, *type;
    } known[] = {{".tif", "image/tiff; application=geotiff"},
                 {".tiff", "image/tiff; application=geotiff"},
                 {".jp2", "image/jp2"},
                 {".xml", "application/xml"},
                 {".json", "application/json"},
                 {".txt", "text/plain"},
                 {".imd", "text/plain"}};
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot != NULL && i < sizeof known / sizeof *known; i++)
        if (strcasecmp(dot, known[i].suffix) == 0)
            return known[i].type;
    return NULL;
}

/* RFC 6920 defines addresses for SHA-256, but not for BLAKE3. */
static bool has_content_href(const struct pb_input_file *file)
{
    return strncmp(file->checksum, "sha256:", strlen("sha256:")) == 0;
}

/* Writes base64url without padding, as in RFC 6920, of the 32 bytes in hex. */
static void content_href(const char *hex, char *out, size_t bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    size_t n = (size_t)snprintf(out, bytes, "ni:///sha-256;");
    unsigned held = 0, bits = 0;
    for (const char *at = hex; *at != '\0' && n + 2 < bytes; at++) {
        const char digit[2] = {*at, '\0'};
        held = held << 4 | (unsigned)strtoul(digit, NULL, 16);
        for (bits += 4; bits >= 6; bits -= 6)
            out[n++] = digits[held >> (bits - 6) & 63];
    }
    if (bits > 0)
        out[n++] = digits[held << (6 - bits) & 63];
    out[n] = '\0';
}

/* Writes the file's path inside the delivery, each part escaped. */
static void escape_path(const struct pb_input_files *inputs, const char *name, char *out,
                        size_t bytes)
{
    char path[sizeof inputs->folder + sizeof inputs->file[0].name + 2];
    (void)snprintf(path, sizeof path, "%s%s%s", inputs->folder, inputs->folder[0] ? "/" : "", name);
    (void)pb_href_path(path, out, bytes);
}

static void input_href(const struct pb_stac_item *item, const struct pb_input_file *file,
                       char out[HREF_BYTES])
{
    const char *form = item->config->derived_from, *mark = form ? strstr(form, "{file}") : NULL;
    char path[HREF_BYTES / 2];
    if (mark == NULL) {
        content_href(pb_checksum_digits(file->checksum), out, HREF_BYTES);
        return;
    }
    escape_path(item->inputs, file->name, path, sizeof path);
    (void)snprintf(out, HREF_BYTES, "%.*s%s%.1024s", (int)(mark - form > 1024 ? 1024 : mark - form),
                   form, path, mark + strlen("{file}"));
}

static bool has_href(const struct pb_stac_item *item, const struct pb_input_file *file)
{
    return item->config->derived_from != NULL || has_content_href(file);
}

static void write_input(const struct pb_stac_item *item, const struct pb_input_file *file)
{
    char href[HREF_BYTES], checksum[PB_CHECKSUM_MULTIHASH_BYTES];
    struct pb_json *json = item->json;
    input_href(item, file, href);
    pb_json_object(json, NULL);
    pb_json_string(json, "rel", file->role == PB_INPUT_METADATA ? "via" : "derived_from");
    pb_json_string(json, "href", href);
    if (media_type(file->name) != NULL)
        pb_json_string(json, "type", media_type(file->name));
    pb_json_string(json, "title", file->name);
    pb_json_int(json, "file:size", (int64_t)file->bytes);
    if (pb_checksum_multihash(file->checksum, checksum))
        pb_json_string(json, "file:checksum", checksum);
    pb_json_end(json);
}

static void list_input(struct pb_json *json, const struct pb_input_file *file)
{
    char checksum[PB_CHECKSUM_MULTIHASH_BYTES];
    pb_json_object(json, NULL);
    pb_json_string(json, "role", pb_input_role_name(file->role));
    pb_json_string(json, "file", file->name);
    pb_json_int(json, "size", (int64_t)file->bytes);
    if (pb_checksum_multihash(file->checksum, checksum))
        pb_json_string(json, "checksum", checksum);
    pb_json_end(json);
}

bool pb_stac_links_inputs(const struct pb_stac_item *item)
{
    for (size_t i = 0; item->inputs != NULL && i < item->inputs->n; i++)
        if (has_href(item, &item->inputs->file[i]))
            return true;
    return false;
}

void pb_stac_unlinked(const struct pb_stac_item *item)
{
    size_t n = 0;
    for (size_t i = 0; item->inputs != NULL && i < item->inputs->n; i++) {
        const struct pb_input_file *file = &item->inputs->file[i];
        if (has_href(item, file))
            continue;
        if (n++ == 0)
            pb_json_array(item->json, "pushbroom:inputs");
        list_input(item->json, file);
    }
    if (n > 0)
        pb_json_end(item->json);
}

void pb_stac_links(const struct pb_stac_item *item)
{
    pb_json_array(item->json, "links");
    if (item->config->collection != NULL)
        write_collection(item);
    for (size_t i = 0; item->inputs != NULL && i < item->inputs->n; i++)
        if (has_href(item, &item->inputs->file[i]))
            write_input(item, &item->inputs->file[i]);
    pb_json_end(item->json);
}
