/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* STAC APIs with the Transaction extension: the item of a published STAC product is created, or
 * replaced if it exists. */
#include "config/base/href.h"
#include "config/base/json_reader.h"
#include "config/base/json_writer.h"
#include "config/notify_config.h"
#include "service/notify/http.h"
#include "service/notify/sender.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HREF_BYTES = 3 * PATH_MAX, URL_BYTES = 4096 };

static void destroy(void *sender)
{
    pb_http_destroy(sender);
}

static void *create(const struct pb_notify_config *notify, const struct pb_stop *stop)
{
    return pb_http_create(notify, stop);
}

/* URL/collections/COLLECTION and what follows it: rest, and an id unless NULL. */
static void write_url(const struct pb_http *http, const char *collection, const char *rest,
                      const char *id, char out[URL_BYTES])
{
    const char *root = pb_http_notify(http)->url;
    size_t n = strlen(root);
    while (n > 0 && root[n - 1] == '/')
        n--;
    size_t used =
        (size_t)snprintf(out, URL_BYTES, "%.*s/collections/", (int)(n < 2048 ? n : 2048), root);
    used += pb_href_part(collection, out + used, 900);
    used += (size_t)snprintf(out + used, URL_BYTES - used, "%s", rest);
    if (id != NULL)
        (void)pb_href_part(id, out + used, URL_BYTES - used);
}

/* --- the item as the API gets it -------------------------------------------------------------*/

/* An address with a scheme, "https:", "ni:". */
static bool is_absolute(const char *href)
{
    const size_t n = strcspn(href, ":/?#.");
    return n > 0 && href[n] == ':';
}

/* The base address without the slash at its end, and the directory of the item. */
static void write_base(const char *base_url, const char *place, char out[HREF_BYTES])
{
    size_t n = strlen(base_url);
    while (n > 0 && base_url[n - 1] == '/')
        n--;
    size_t used = (size_t)snprintf(out, HREF_BYTES, "%.*s/", (int)(n < 2048 ? n : 2048), base_url);
    const char *slash = strrchr(place, '/');
    char directory[PATH_MAX];
    (void)snprintf(directory, sizeof directory, "%.*s",
                   slash != NULL ? (int)(slash + 1 - place) : 0, place);
    (void)pb_href_path(directory, out + used, HREF_BYTES - used);
}

static void copy_members(struct pb_json *json, const struct pb_json_value *object, const char *but)
{
    const char *key;
    for (size_t i = 0; (key = pb_json_key(object, i)) != NULL; i++) {
        const struct pb_json_value *value = pb_json_get(object, key, NULL);
        if (but != NULL && strcmp(key, but) == 0)
            continue;
        if (value != NULL)
            pb_json_raw(json, key, pb_json_source(value));
        else
            pb_json_null(json, key);
    }
}

/* Files of the item's directory by their public address. */
static void write_assets(struct pb_json *json, const struct pb_json_value *assets, const char *base)
{
    const char *key;
    char href[2 * HREF_BYTES];
    pb_json_object(json, "assets");
    for (size_t i = 0; (key = pb_json_key(assets, i)) != NULL; i++) {
        const struct pb_json_value *asset = pb_json_get(assets, key, NULL);
        const char *own = pb_json_get_text(asset, "href");
        pb_json_object(json, key);
        if (own != NULL && !is_absolute(own)) {
            (void)snprintf(href, sizeof href, "%s%s", base, strncmp(own, "./", 2) ? own : own + 2);
            own = href;
        }
        pb_json_string(json, "href", own);
        copy_members(json, asset, "href");
        pb_json_end(json);
    }
    pb_json_end(json);
}

/* Relative links lead to files of the directory of products: of these only that to the collection
 * has a counterpart in the API, and the schema of items demands it. */
static void write_links(struct pb_json *json, const struct pb_json_value *links,
                        const char *collection_url)
{
    pb_json_array(json, "links");
    pb_json_object(json, NULL);
    pb_json_string(json, "rel", "collection");
    pb_json_string(json, "href", collection_url);
    pb_json_string(json, "type", "application/json");
    pb_json_end(json);
    for (size_t i = 0; i < pb_json_count(links); i++) {
        const struct pb_json_value *link = pb_json_at(links, i);
        const char *href = pb_json_get_text(link, "href");
        if (href != NULL && is_absolute(href))
            pb_json_raw(json, NULL, pb_json_source(link));
    }
    pb_json_end(json);
}

static void write_item(const struct pb_http *http, struct pb_json *json,
                       const struct pb_json_value *item, const char *base, const char *collection)
{
    const char *key;
    char url[URL_BYTES];
    write_url(http, collection, "", NULL, url);
    pb_json_object(json, NULL);
    for (size_t i = 0; (key = pb_json_key(item, i)) != NULL; i++) {
        const struct pb_json_value *value = pb_json_get(item, key, NULL);
        if (strcmp(key, "assets") == 0)
            write_assets(json, value, base);
        else if (strcmp(key, "links") == 0)
            write_links(json, value, url);
        else if (strcmp(key, "collection") == 0)
            continue;
        else if (value != NULL)
            pb_json_raw(json, key, pb_json_source(value));
        else
            pb_json_null(json, key);
    }
    pb_json_string(json, "collection", collection);
    pb_json_end(json);
}

/* --- requests --------------------------------------------------------------------------------*/

/* An answer that stays the same at the next try: a client error other than missing rights, a
 * missing collection, a conflict, or a limit of time or of rate. */
static bool is_permanent(int status)
{
    static const int passing[] = {401, 403, 404, 408, 409, 423, 425, 429};
    for (size_t i = 0; i < sizeof passing / sizeof passing[0]; i++)
        if (status == passing[i])
            return false;
    return status >= 400 && status < 500;
}

static enum pb_sent put(struct pb_http *http, const char *collection, const char *id,
                        const struct pb_json_value *product, struct pb_sent_why *why)
{
    char base[HREF_BYTES], url[URL_BYTES];
    struct pb_http_request request = {.method = "POST", .url = url, .type = "application/geo+json"};
    struct pb_json *json = pb_json_create(false);
    write_base(pb_http_notify(http)->base_url, pb_json_get_text(product, "place"), base);
    write_item(http, json, pb_json_get(product, "item", NULL), base, collection);
    request.body = pb_json_text(json, &request.bytes);
    int status = 0;
    if (request.body == NULL) {
        pb_sent_fail(why, "out of memory");
    } else {
        write_url(http, collection, "/items", NULL, url);
        status = pb_http_send(http, &request, why);
        if (status == 409) {
            request.method = "PUT";
            write_url(http, collection, "/items/", id, url);
            status = pb_http_send(http, &request, why);
        }
    }
    pb_json_destroy(json);
    if (status >= 200 && status < 300)
        return PB_SENT;
    return is_permanent(status) ? PB_SENT_REFUSED : PB_SENT_NOT;
}

static enum pb_sent send_letter(void *sender, const struct pb_letter *letter,
                                struct pb_sent_why *why)
{
    struct pb_http *http = sender;
    const struct pb_json_value *item = pb_json_get(letter->product, "item", NULL);
    if (pb_json_get_text(letter->product, "place") == NULL)
        return PB_SENT; /* another product: its item names it */
    const char *id = pb_json_get_text(item, "id");
    const char *collection = pb_http_notify(http)->collection != NULL
                                 ? pb_http_notify(http)->collection
                                 : pb_json_get_text(item, "collection");
    if (id == NULL) {
        pb_sent_fail(why, "the event has no item: the file is larger than 128 KiB, or was replaced "
                          "when the event was written");
        return PB_SENT_REFUSED;
    }
    if (collection == NULL) {
        pb_sent_fail(why,
                     "the item %.100s names no collection: write stac.collection in the "
                     "pipeline, or collection in this entry",
                     id);
        return PB_SENT_REFUSED;
    }
    return put(http, collection, id, letter->product, why);
}

const struct pb_sender_kind pb_sender_stac = {create, send_letter, NULL, destroy};
