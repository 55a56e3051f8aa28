/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/publish/collection.h"

#include "config/base/json_reader.h"
#include "config/base/json_writer.h"
#include "pipeline/product/stac/stac.h"
#include "pipeline/publish/collection_file.h"
#include "pipeline/publish/publish_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Values: "items": the extent is that of the items; "assumed": the extent is the world, because
 * no item has a place. */
#define MARK "pushbroom:extent"

enum { READ_MAX = 4 * 1024 * 1024 };

/* --- the document ----------------------------------------------------------------------------*/

static void write_link(struct pb_json *json, const char *rel, const char *href)
{
    pb_json_object(json, NULL);
    pb_json_string(json, "rel", rel);
    pb_json_string(json, "href", href);
    pb_json_string(json, "type", "application/json");
    pb_json_end(json);
}

static bool has_link(const struct pb_json_value *links, const char *rel, const char *href)
{
    for (size_t i = 0; i < pb_json_count(links); i++) {
        const struct pb_json_value *link = pb_json_at(links, i);
        const char *own_rel = pb_json_get_text(link, "rel");
        const char *own_href = pb_json_get_text(link, "href");
        if (own_rel != NULL && strcmp(own_rel, rel) == 0 &&
            (href == NULL || (own_href != NULL && strcmp(own_href, href) == 0)))
            return true;
    }
    return false;
}

static void page_href(const char *month, char out[PB_PAGE_NAME_BYTES + 2])
{
    (void)snprintf(out, PB_PAGE_NAME_BYTES + 2, "./" PB_STAC_PAGE, month);
}

/* Returns true if an earlier item has the month of item i. */
static bool is_known_month(const struct pb_page_items *items, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (strcmp(items->month[k], items->month[i]) == 0)
            return true;
    return false;
}

static bool lacks_links(const struct pb_json_value *links, const struct pb_page_items *items)
{
    char href[PB_PAGE_NAME_BYTES + 2];
    if (!has_link(links, "root", NULL) || !has_link(links, "parent", NULL))
        return true;
    for (size_t i = 0; i < items->n; i++) {
        page_href(items->month[i], href);
        if (!is_known_month(items, i) && !has_link(links, "child", href))
            return true;
    }
    return false;
}

/* Writes the links that are missing in `links`: to the root, which is also the parent, and to
 * the pages. */
static void write_missing_links(struct pb_json *json, const struct pb_json_value *links,
                                const struct pb_page_items *items)
{
    char href[PB_PAGE_NAME_BYTES + 2];
    if (!has_link(links, "root", NULL))
        write_link(json, "root", "./" PB_STAC_CATALOG);
    if (!has_link(links, "parent", NULL))
        write_link(json, "parent", "./" PB_STAC_CATALOG);
    for (size_t i = 0; i < items->n; i++) {
        page_href(items->month[i], href);
        if (!is_known_month(items, i) && !has_link(links, "child", href))
            write_link(json, "child", href);
    }
}

static struct pb_json *print_new(const struct pb_collection_change *change)
{
    struct pb_json *json = pb_json_create(true);
    char text[400];
    (void)snprintf(text, sizeof text, "Products of pushbroom, collection %.200s.", change->id);
    pb_json_object(json, NULL);
    pb_json_string(json, "type", "Collection");
    pb_json_string(json, "stac_version", "1.1.0");
    pb_json_string(json, "id", change->id);
    pb_json_string(json, "description", text);
    pb_json_string(json, "license", "other");
    pb_collection_extent_write(json, &change->extent);
    pb_json_string(json, MARK, change->extent.has_bbox ? "items" : "assumed");
    pb_json_array(json, "links");
    write_missing_links(json, NULL, &change->items);
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

static void write_links(struct pb_json *json, const struct pb_json_value *links,
                        const struct pb_page_items *items)
{
    pb_json_array(json, "links");
    for (size_t i = 0; i < pb_json_count(links); i++)
        copy(json, NULL, pb_json_at(links, i));
    write_missing_links(json, links, items);
    pb_json_end(json);
}

/* Prints the same document with another extent and the missing links. */
static struct pb_json *print_changed(const struct pb_json_value *old,
                                     const struct pb_collection_change *change,
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
        else if (strcmp(key, "links") == 0)
            write_links(json, pb_json_get(old, key, NULL), &change->items);
        else
            copy(json, key, pb_json_get(old, key, NULL));
    }
    pb_json_end(json);
    return json;
}

/* --- the files -------------------------------------------------------------------------------*/

/* Reads the collection. Returns 0 and *out (the caller's), whose permissions are *mode; -ENOENT:
 * no such file; 1: another file has the name, *why describes it. */
static int look(int products_fd, const char *id, struct pb_json_value **out, unsigned *mode,
                const char **why)
{
    int rc = pb_collection_file_read(products_fd, PB_COLLECTION_FILE, READ_MAX, out, mode);
    if (rc == -ENOENT)
        return rc;
    const char *found = pb_json_get_text(*out, "id"), *type = pb_json_get_text(*out, "type");
    *why = "is no collection";
    if (rc != 0 || type == NULL || strcmp(type, "Collection") != 0 || found == NULL)
        return 1;
    *why = "is another collection";
    return strcmp(found, id) == 0 ? 0 : 1;
}

static int grow(struct pb_publish_lock *lock, const struct pb_json_value *old,
                const struct pb_collection_change *change, unsigned mode)
{
    struct pb_collection_extent extent;
    const char *mark = pb_json_get_text(old, MARK);
    if (mark == NULL || !pb_collection_extent_parse(pb_json_get(old, "extent", NULL), &extent))
        return 0;
    extent.has_bbox = strcmp(mark, "assumed") != 0;
    const bool grew = pb_collection_extent_grow(&extent, &change->extent);
    if (!grew && !lacks_links(pb_json_get(old, "links", NULL), &change->items))
        return 0;
    return pb_collection_file_stage(lock, PB_COLLECTION_FILE, print_changed(old, change, &extent),
                                    mode);
}

/* Writes the root of the tree. An existing file with its name is unchanged. */
static int stage_root(struct pb_publish_lock *lock, int products_fd, unsigned mode)
{
    if (faccessat(products_fd, PB_STAC_CATALOG, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return 0;
    struct pb_json *json = pb_json_create(true);
    pb_json_object(json, NULL);
    pb_json_string(json, "type", "Catalog");
    pb_json_string(json, "stac_version", "1.1.0");
    pb_json_string(json, "id", "pushbroom");
    pb_json_string(json, "description", "Products of pushbroom.");
    pb_json_array(json, "links");
    write_link(json, "root", "./" PB_STAC_CATALOG);
    write_link(json, "child", "./" PB_COLLECTION_FILE);
    pb_json_end(json);
    pb_json_end(json);
    return pb_collection_file_stage(lock, PB_STAC_CATALOG, json, mode);
}

int pb_collection_stage(struct pb_publish_lock *lock, int products_fd,
                        const struct pb_collection_change *change, const char **why)
{
    struct pb_json_value *old = NULL;
    unsigned own_mode = 0;
    int pages = 0, rc = look(products_fd, change->id, &old, &own_mode, why);
    const bool is_new = rc == -ENOENT;
    const bool is_kept = rc == 0 && pb_json_get_text(old, MARK) == NULL;
    rc = is_new ? 0 : rc;
    if (rc == 0 && !is_kept)
        rc = pages = pb_collection_pages_stage(lock, products_fd, change->id, &change->items,
                                               change->mode, why);
    if (rc == 0 || pages > 0) {
        rc = is_new ? pb_collection_file_stage(lock, PB_COLLECTION_FILE, print_new(change),
                                               change->mode)
                    : grow(lock, old, change, change->mode != 0 ? change->mode : own_mode);
        if (rc == 0 && !is_kept)
            rc = stage_root(lock, products_fd, change->mode);
    }
    pb_json_release(old);
    return rc != 0 ? rc : pages > 0 ? PB_COLLECTION_UNLINKED : 0;
}
