/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/product/stac/stac_links.h"

#include "config/base/href.h"
#include "config/pipeline_config.h"
#include "pipeline/metadata/meta_time.h"
#include "pipeline/product/stac/stac.h"
#include "pipeline/product/stac/stac_time.h"
#include "pipeline/scene/manifest.h"

#include <stddef.h>
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
static bool has_content_href(const struct pb_manifest_entry *file)
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
static void escape_path(const struct pb_scene_manifest *inputs,
                        const struct pb_manifest_entry *file, const char *name, char *out,
                        size_t bytes)
{
    char path[2 * PB_SCENE_MANIFEST_NAME_BYTES + 2];
    const ptrdiff_t n = pb_scene_manifest_inner(inputs, file) - file->path;
    (void)snprintf(path, sizeof path, "%.*s%s", (int)n, file->path, name);
    (void)pb_href_path(path, out, bytes);
}

static void input_href(const struct pb_stac_item *item, const struct pb_manifest_entry *file,
                       const char *name, char out[HREF_BYTES])
{
    const char *form = item->config->derived_from, *mark = form ? strstr(form, "{file}") : NULL;
    char path[HREF_BYTES / 2];
    if (mark == NULL) {
        content_href(pb_checksum_digits(file->checksum), out, HREF_BYTES);
        return;
    }
    escape_path(item->inputs, file, name, path, sizeof path);
    (void)snprintf(out, HREF_BYTES, "%.*s%s%.1024s", (int)(mark - form > 1024 ? 1024 : mark - form),
                   form, path, mark + strlen("{file}"));
}

/* Returns file i of the input that was read; NULL for another entry. */
static const struct pb_manifest_entry *file_at(const struct pb_stac_item *item, size_t i)
{
    const struct pb_manifest_entry *file = &item->inputs->entry[i];
    const bool is_read = pb_role_record_name(pb_scene_manifest_role(item->inputs, i)) != NULL;
    return is_read && file->checksum != NULL ? file : NULL;
}

static bool has_href(const struct pb_stac_item *item, const struct pb_manifest_entry *file)
{
    return item->config->derived_from != NULL || has_content_href(file);
}

static void write_input(const struct pb_stac_item *item, size_t i,
                        const struct pb_manifest_entry *file)
{
    char href[HREF_BYTES], checksum[PB_CHECKSUM_MULTIHASH_BYTES];
    char name[PB_SCENE_MANIFEST_NAME_BYTES];
    const enum pb_role role = pb_scene_manifest_role(item->inputs, i);
    const bool is_via = role == PB_ROLE_METADATA || role == PB_ROLE_LIST;
    struct pb_json *json = item->json;
    pb_scene_manifest_name(item->inputs, file, name);
    input_href(item, file, name, href);
    pb_json_object(json, NULL);
    pb_json_string(json, "rel", is_via ? "via" : "derived_from");
    pb_json_string(json, "href", href);
    if (media_type(name) != NULL)
        pb_json_string(json, "type", media_type(name));
    pb_json_string(json, "title", name);
    pb_json_int(json, "file:size", file->bytes);
    if (pb_checksum_multihash(file->checksum, checksum))
        pb_json_string(json, "file:checksum", checksum);
    pb_json_end(json);
}

static void list_input(const struct pb_stac_item *item, size_t i,
                       const struct pb_manifest_entry *file)
{
    char checksum[PB_CHECKSUM_MULTIHASH_BYTES], name[PB_SCENE_MANIFEST_NAME_BYTES];
    struct pb_json *json = item->json;
    pb_scene_manifest_name(item->inputs, file, name);
    pb_json_object(json, NULL);
    pb_json_string(json, "role", pb_role_record_name(pb_scene_manifest_role(item->inputs, i)));
    pb_json_string(json, "file", name);
    pb_json_int(json, "size", file->bytes);
    if (pb_checksum_multihash(file->checksum, checksum))
        pb_json_string(json, "checksum", checksum);
    pb_json_end(json);
}

static size_t count_of(const struct pb_stac_item *item)
{
    return item->inputs != NULL ? item->inputs->n_entries : 0;
}

bool pb_stac_links_inputs(const struct pb_stac_item *item)
{
    for (size_t i = 0; i < count_of(item); i++)
        if (file_at(item, i) != NULL && has_href(item, file_at(item, i)))
            return true;
    return false;
}

void pb_stac_unlinked(const struct pb_stac_item *item)
{
    size_t n = 0;
    for (size_t i = 0; i < count_of(item); i++) {
        const struct pb_manifest_entry *file = file_at(item, i);
        if (file == NULL || has_href(item, file))
            continue;
        if (n++ == 0)
            pb_json_array(item->json, "pushbroom:inputs");
        list_input(item, i, file);
    }
    if (n > 0)
        pb_json_end(item->json);
}

void pb_stac_links(const struct pb_stac_item *item)
{
    pb_json_array(item->json, "links");
    if (item->config->collection != NULL)
        write_collection(item);
    for (size_t i = 0; i < count_of(item); i++) {
        const struct pb_manifest_entry *file = file_at(item, i);
        if (file != NULL && has_href(item, file))
            write_input(item, i, file);
    }
    pb_json_end(item->json);
}
