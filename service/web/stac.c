/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * STAC API 1.0.0: core, collections, OGC API Features, and searches by GET and POST, whose body has
 * the same arguments. Members of items pass as they are in their files, except links, collection
 * and the addresses of assets. A page reads a bounded number of files: with `intersects` it may
 * have fewer items than its limit, or none, and a link to the next one. */
#include "service/web/stac.h"

#include "config/base/clock.h"
#include "config/base/href.h"
#include "config/base/json_reader.h"
#include "config/base/json_writer.h"
#include "pipeline/publish/collection.h"
#include "pipeline/publish/collection_file.h"
#include "service/web/catalog.h"
#include "service/web/document.h"
#include "service/web/files.h"
#include "service/web/request.h"
#include "service/web/shape.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PARTS      4
#define CANDIDATES 10000             /* items whose geometry a page compares */
#define PAGE_BYTES ((size_t)4 << 20) /* a page that is larger ends, with a link to the next one */
#define PAGE_MS    5000              /* the same for a page that takes longer */
#define ITEM_MAX   ((uint64_t)8 << 20)

struct view {
    struct pb_web_catalog *catalog;
    const char *products;
    const struct pb_web_query *query;
    struct pb_web_document *out;
    struct pb_json *json; /* the document being written */
};

static void fail(struct view *view, unsigned status, const char *title, const char *detail)
{
    pb_web_document_fail(view->out, status, NULL, title, detail);
}

static bool allows(struct view *view, const char *const *names, size_t n)
{
    return pb_web_query_allows(view->query, names, n, view->out);
}

/* --- addresses --- */

static void link_to(struct view *view, const char *rel, const char *type, const char *path)
{
    pb_web_link(view->json, view->query, rel, type, NULL, path);
}

/* Writes the path of a collection, or of one of its items (NULL = of the collection). */
static void path_of(const char *collection, const char *item, char out[PB_WEB_HREF_BYTES])
{
    size_t n = (size_t)snprintf(out, PB_WEB_HREF_BYTES, PB_WEB_STAC_PATH "/collections/");
    n += pb_href_part(collection, out + n, PB_WEB_HREF_BYTES - n);
    if (item == NULL)
        return;
    n += (size_t)snprintf(out + n, PB_WEB_HREF_BYTES - n, "/items/");
    (void)pb_href_part(item, out + n, PB_WEB_HREF_BYTES - n);
}

static bool has_scheme(const char *href)
{
    size_t n = 0;
    while (isalnum((unsigned char)href[n]) || href[n] == '+' || href[n] == '-' || href[n] == '.')
        n++;
    return n > 0 && href[n] == ':';
}

/* Writes an address of a file: one that is relative to the item's gets the place of this server. */
static void put_href(struct view *view, const struct pb_web_item *item, const char *href)
{
    char folder[PB_WEB_HREF_BYTES], *whole = NULL;
    if (has_scheme(href) || href[0] == '/') {
        pb_json_string(view->json, "href", href);
        return;
    }
    const int n = (int)(strrchr(item->path, '/') - item->path) + 1;
    char *directory = strndup(item->path, (size_t)n);
    if (directory != NULL)
        (void)pb_href_path(directory, folder, sizeof folder);
    if (directory != NULL && asprintf(&whole, "%s%s%s%s", view->query->base, PB_WEB_PRODUCTS_PATH,
                                      folder, href + (strncmp(href, "./", 2) == 0 ? 2 : 0)) >= 0) {
        pb_json_string(view->json, "href", whole);
        free(whole);
    }
    free(directory);
}

/* --- items --- */

static void put_member(struct pb_json *json, const char *key, const struct pb_json_value *value)
{
    const char *source = value ? pb_json_source(value) : NULL;
    pb_json_raw(json, key, source ? source : "null");
}

/* Copies an object that has an address; its other members are unchanged. */
static void put_addressed(struct view *view, const struct pb_web_item *item, const char *key,
                          const struct pb_json_value *object)
{
    const char *member;
    pb_json_object(view->json, key);
    for (size_t i = 0; (member = pb_json_key(object, i)) != NULL; i++) {
        const char *href = strcmp(member, "href") == 0 ? pb_json_get_text(object, member) : NULL;
        if (href != NULL)
            put_href(view, item, href);
        else
            put_member(view->json, member, pb_json_get(object, member, NULL));
    }
    pb_json_end(view->json);
}

static void put_assets(struct view *view, const struct pb_web_item *item,
                       const struct pb_json_value *assets)
{
    const char *key;
    pb_json_object(view->json, "assets");
    for (size_t i = 0; (key = pb_json_key(assets, i)) != NULL; i++)
        put_addressed(view, item, key, pb_json_get(assets, key, NULL));
    pb_json_end(view->json);
}

/* Returns true for links of the tree, which are others here than in the file. */
static bool is_of_tree(const struct pb_json_value *link)
{
    static const char *const rels[] = {"self",  "root", "parent", "collection", "item",
                                       "items", "next", "prev",   "child"};
    const char *rel = pb_json_get_text(link, "rel");
    for (size_t i = 0; rel != NULL && i < sizeof rels / sizeof rels[0]; i++)
        if (strcmp(rel, rels[i]) == 0)
            return true;
    return rel == NULL || pb_json_get_text(link, "href") == NULL;
}

static void put_item_links(struct view *view, const struct pb_web_item *item,
                           const struct pb_json_value *links)
{
    char own[PB_WEB_HREF_BYTES], collection[PB_WEB_HREF_BYTES];
    const char *file = strrchr(item->path, '/') + 1;
    path_of(item->collection, item->id, own);
    path_of(item->collection, NULL, collection);
    pb_json_array(view->json, "links");
    link_to(view, "self", PB_WEB_GEOJSON, own);
    link_to(view, "root", PB_WEB_JSON, PB_WEB_STAC_PATH);
    link_to(view, "parent", PB_WEB_JSON, collection);
    link_to(view, "collection", PB_WEB_JSON, collection);
    pb_json_object(view->json, NULL);
    pb_json_string(view->json, "rel", "canonical");
    char name[3 * 256 + 1];
    (void)pb_href_part(file, name, sizeof name);
    put_href(view, item, name);
    pb_json_string(view->json, "type", PB_WEB_GEOJSON);
    pb_json_end(view->json);
    for (size_t i = 0; i < pb_json_count(links); i++)
        if (!is_of_tree(pb_json_at(links, i)))
            put_addressed(view, item, NULL, pb_json_at(links, i));
    pb_json_end(view->json);
}

static void put_item(struct view *view, const struct pb_web_item *item,
                     const struct pb_json_value *root)
{
    const char *key;
    pb_json_object(view->json, NULL);
    for (size_t i = 0; (key = pb_json_key(root, i)) != NULL; i++)
        if (strcmp(key, "assets") == 0)
            put_assets(view, item, pb_json_get(root, key, NULL));
        else if (strcmp(key, "links") != 0 && strcmp(key, "collection") != 0)
            put_member(view->json, key, pb_json_get(root, key, NULL));
    pb_json_string(view->json, "collection", item->collection);
    put_item_links(view, item, pb_json_get(root, "links", NULL));
    pb_json_end(view->json);
}

/* Reads the file of an item; NULL if it is gone or was replaced by another one. */
static struct pb_json_value *read_item(const struct view *view, const struct pb_web_item *item)
{
    struct pb_web_file file;
    struct pb_json_value *root = NULL;
    if (pb_web_file_open(view->products, item->path, &file) != 0)
        return NULL;
    char *text = file.bytes <= ITEM_MAX ? malloc(file.bytes + 1) : NULL;
    const ssize_t n = text ? read(file.fd, text, file.bytes) : -1;
    (void)close(file.fd);
    if (n >= 0)
        (void)pb_json_parse(text, (size_t)n, ITEM_MAX, &root);
    free(text);
    const char *id = pb_json_get_text(root, "id");
    if (id == NULL || strcmp(id, item->id) != 0) {
        pb_json_release(root);
        return NULL;
    }
    return root;
}

static void answer_item(struct view *view, const char *collection, const char *id)
{
    const struct pb_web_search search = {.collection = collection, .id = id};
    struct pb_web_item item;
    size_t matched;
    if (!allows(view, NULL, 0))
        return;
    const int n = pb_web_catalog_find(view->catalog, &search, &item, 1, &matched);
    if (n < 0)
        return;
    struct pb_json_value *root = n == 1 ? read_item(view, &item) : NULL;
    if (root == NULL) {
        fail(view, 404, "no such item", id);
    } else {
        view->json = pb_json_create(false);
        put_item(view, &item, root);
        pb_web_document_take(view->out, view->json, PB_WEB_GEOJSON);
    }
    pb_json_release(root);
    if (n == 1)
        pb_web_item_fini(&item);
}

/* --- searches --- */

/* Reads numbers with commas. Returns their count; 0 if malformed. */
static size_t read_numbers(const char *text, double *out, size_t room)
{
    for (size_t n = 0; n < room; n++) {
        char *end;
        out[n] = strtod(text, &end);
        if (end == text || isspace((unsigned char)*text) || !isfinite(out[n]))
            return 0;
        if (*end == '\0')
            return n + 1;
        if (*end != ',')
            return 0;
        text = end + 1;
    }
    return 0;
}

static bool read_bbox(const char *text, struct pb_web_search *search)
{
    double n[6];
    const size_t count = read_numbers(text, n, 6);
    if (count != 4 && count != 6)
        return false;
    const size_t half = count / 2;
    const double box[4] = {n[0], n[1], n[half], n[half + 1]};
    if (half == 3 && n[2] > n[5])
        return false;
    (void)memcpy(search->bbox, box, sizeof box);
    search->has_bbox = true;
    return fabs(box[0]) <= 180 && fabs(box[2]) <= 180 && box[1] >= -90 && box[3] <= 90 &&
           box[1] <= box[3];
}

/* Reads `intersects`. Returns false with a document if it is malformed. */
static bool read_shape(struct view *view, struct pb_web_search *search, struct pb_web_shape *out)
{
    const char *text = pb_web_query_get(view->query, "intersects");
    struct pb_json_value *geometry = NULL;
    if (text == NULL)
        return true;
    int rc = search->has_bbox ? -EINVAL
                              : pb_json_parse(text, strlen(text), PB_WEB_ARGS_BYTES, &geometry);
    rc = rc ? rc : pb_web_shape_read(geometry, out);
    pb_json_release(geometry);
    if (rc == -EINVAL || rc == -EFBIG)
        fail(view, 400, "malformed parameter", "intersects: a geometry of GeoJSON, without bbox");
    if (rc == 0)
        pb_web_shape_bbox(out, search->bbox);
    search->has_bbox = search->has_bbox || rc == 0;
    return rc == 0;
}

/* Reads the arguments of a search. Returns false with a document if one is malformed. */
static bool read_search(struct view *view, struct pb_web_search *search, size_t *out_limit)
{
    const char *bbox = pb_web_query_get(view->query, "bbox");
    const char *datetime = pb_web_query_get(view->query, "datetime");
    static const char *const names[] = {"limit", "bbox",        "datetime",  PB_WEB_CURSOR,
                                        "ids",   "collections", "intersects"};
    if (!allows(view, names, sizeof names / sizeof names[0]))
        return false;
    search->after = pb_web_query_get(view->query, PB_WEB_CURSOR);
    search->separator = pb_web_query_separator(view->query);
    search->ids = pb_web_query_get(view->query, "ids");
    search->collections = pb_web_query_get(view->query, "collections");
    if (bbox != NULL && !read_bbox(bbox, search))
        fail(view, 400, "malformed parameter", "bbox: west,south,east,north in degrees");
    else if (datetime != NULL && !pb_web_interval(datetime, &search->time))
        fail(view, 400, "malformed parameter",
             "datetime: a time of RFC 3339, or two with a slash, one of which may be open (..)");
    else
        return pb_web_query_limit(view->query, out_limit, view->out);
    return false;
}

/* A page of items. */
struct page {
    const char *path;              /* path of the search */
    const struct pb_web_shape *in; /* geometry that the items meet; NULL = any */
    const struct pb_web_item *item;
    size_t n;             /* items that were found, up to one more than the page uses */
    size_t n_used, limit; /* items that it may use, and features that it may have */
    size_t matched;       /* number of all that match, without their geometry */
};

static bool is_in(const struct page *page, const struct pb_json_value *item)
{
    struct pb_web_shape shape = {0};
    if (page->in == NULL)
        return true;
    const bool meets = pb_web_shape_read(pb_json_get(item, "geometry", NULL), &shape) == 0 &&
                       pb_web_shape_meets(&shape, page->in);
    pb_web_shape_fini(&shape);
    return meets;
}

/* Writes the features, for a bounded time. Returns their number. *out_end: the number of items that
 * were used. */
static size_t put_features(struct view *view, const struct page *page, size_t *out_end)
{
    const int64_t until_ms = pb_clock_mono_ms() + PAGE_MS;
    size_t written = 0, bytes = 0, i = 0;
    pb_json_array(view->json, "features");
    for (; i < page->n && i < page->n_used && written < page->limit && bytes < PAGE_BYTES &&
           (i == 0 || pb_clock_mono_ms() < until_ms);
         i++) {
        /* NULL: it was removed or replaced since the last update */
        struct pb_json_value *root = read_item(view, &page->item[i]);
        if (root != NULL && is_in(page, root)) {
            put_item(view, &page->item[i], root);
            written++;
            (void)pb_json_text(view->json, &bytes);
        }
        pb_json_release(root);
    }
    pb_json_end(view->json);
    *out_end = i;
    return written;
}

static void put_page(struct view *view, const struct page *page)
{
    char cursor[PB_WEB_CURSOR_BYTES];
    size_t end = 0;
    view->json = pb_json_create(false);
    pb_json_object(view->json, NULL);
    pb_json_string(view->json, "type", "FeatureCollection");
    const size_t written = put_features(view, page, &end);
    if (page->in == NULL)
        pb_json_int(view->json, "numberMatched", (int64_t)page->matched);
    pb_json_int(view->json, "numberReturned", (int64_t)written);
    pb_json_array(view->json, "links");
    pb_web_link_self(view->json, view->query, PB_WEB_GEOJSON, page->path);
    link_to(view, "root", PB_WEB_JSON, PB_WEB_STAC_PATH);
    if (end < page->n) {
        pb_web_item_cursor(&page->item[end - 1], cursor);
        pb_web_link_next(view->json, view->query, PB_WEB_GEOJSON, page->path, cursor);
    }
    pb_json_end(view->json);
    pb_json_end(view->json);
    pb_web_document_take(view->out, view->json, PB_WEB_GEOJSON);
}

/* Answers a search, whose own path is `path`. */
static void answer_search(struct view *view, struct pb_web_search *search, const char *path)
{
    struct pb_web_shape shape = {0};
    struct page page = {.path = path};
    if (!read_search(view, search, &page.limit) || !read_shape(view, search, &shape))
        return;
    page.in = shape.n_points > 0 ? &shape : NULL;
    page.n_used = page.in != NULL ? CANDIDATES : page.limit;
    struct pb_web_item *items = calloc(page.n_used + 1, sizeof *items);
    const int n =
        items ? pb_web_catalog_find(view->catalog, search, items, page.n_used + 1, &page.matched)
              : -ENOMEM;
    page.item = items;
    page.n = n > 0 ? (size_t)n : 0;
    if (n == -EINVAL)
        fail(view, 400, "malformed parameter", PB_WEB_CURSOR ": from the link of a page");
    else if (n == -E2BIG)
        fail(view, 400, "malformed parameter", "ids, collections: too many words");
    else if (n >= 0)
        put_page(view, &page);
    for (int i = 0; i < n; i++)
        pb_web_item_fini(&items[i]);
    free(items);
    pb_web_shape_fini(&shape);
}

static void answer_all(struct view *view)
{
    struct pb_web_search search = {0};
    answer_search(view, &search, PB_WEB_STAC_PATH "/search");
}

/* --- collections --- */

/* Reads collection.json, which the operator may have completed. NULL if it is another one. */
static struct pb_json_value *read_collection(const struct view *view, const char *id)
{
    struct pb_json_value *root = NULL;
    unsigned mode;
    const int fd = open(view->products, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    const int rc = pb_collection_file_read(fd, PB_COLLECTION_FILE, ITEM_MAX, &root, &mode);
    (void)close(fd);
    const char *own = rc == 0 ? pb_json_get_text(root, "id") : NULL;
    if (own != NULL && strcmp(own, id) == 0)
        return root;
    pb_json_release(root);
    return NULL;
}

static void put_collection_links(struct view *view, const char *id,
                                 const struct pb_json_value *links)
{
    char own[PB_WEB_HREF_BYTES], items[PB_WEB_HREF_BYTES + 8];
    path_of(id, NULL, own);
    (void)snprintf(items, sizeof items, "%s/items", own);
    pb_json_array(view->json, "links");
    link_to(view, "self", PB_WEB_JSON, own);
    link_to(view, "root", PB_WEB_JSON, PB_WEB_STAC_PATH);
    link_to(view, "parent", PB_WEB_JSON, PB_WEB_STAC_PATH);
    link_to(view, "items", PB_WEB_GEOJSON, items);
    for (size_t i = 0; i < pb_json_count(links); i++) {
        const struct pb_json_value *link = pb_json_at(links, i);
        if (!is_of_tree(link) && has_scheme(pb_json_get_text(link, "href")))
            put_member(view->json, NULL, link);
    }
    pb_json_end(view->json);
}

/* Writes members of a collection that has no file. */
static void put_new_members(struct pb_json *json, const char *id)
{
    char *text = NULL;
    pb_json_string(json, "type", "Collection");
    pb_json_string(json, "stac_version", "1.1.0");
    pb_json_string(json, "id", id);
    if (asprintf(&text, "Products of the pipeline %s.", id) >= 0)
        pb_json_string(json, "description", text);
    free(text);
    pb_json_string(json, "license", "other");
}

static void put_collection(struct view *view, const struct pb_web_collection *collection)
{
    struct pb_json_value *root = read_collection(view, collection->id);
    const char *key;
    pb_json_object(view->json, NULL);
    if (root == NULL)
        put_new_members(view->json, collection->id);
    for (size_t i = 0; (key = pb_json_key(root, i)) != NULL; i++)
        if (strcmp(key, "links") != 0 && strcmp(key, "extent") != 0 &&
            strncmp(key, "pushbroom:", strlen("pushbroom:")) != 0)
            put_member(view->json, key, pb_json_get(root, key, NULL));
    pb_collection_extent_write(view->json, &collection->extent);
    put_collection_links(view, collection->id, pb_json_get(root, "links", NULL));
    pb_json_end(view->json);
    pb_json_release(root);
}

static void answer_collections(struct view *view)
{
    struct pb_web_collection *collections = NULL;
    if (!allows(view, NULL, 0))
        return;
    const int n = pb_web_catalog_collections(view->catalog, &collections);
    if (n < 0)
        return;
    view->json = pb_json_create(false);
    pb_json_object(view->json, NULL);
    pb_json_array(view->json, "collections");
    for (int i = 0; i < n; i++)
        put_collection(view, &collections[i]);
    pb_json_end(view->json);
    pb_json_array(view->json, "links");
    link_to(view, "self", PB_WEB_JSON, PB_WEB_STAC_PATH "/collections");
    link_to(view, "root", PB_WEB_JSON, PB_WEB_STAC_PATH);
    link_to(view, "parent", PB_WEB_JSON, PB_WEB_STAC_PATH);
    pb_json_end(view->json);
    pb_json_end(view->json);
    pb_web_document_take(view->out, view->json, PB_WEB_JSON);
    pb_web_collections_free(collections, (size_t)n);
}

/* Answers for a collection, or for its items. */
static void answer_collection(struct view *view, const char *id, bool is_items)
{
    struct pb_web_collection *collections = NULL;
    char path[PB_WEB_HREF_BYTES];
    if (!is_items && !allows(view, NULL, 0))
        return;
    const int n = pb_web_catalog_collections(view->catalog, &collections);
    const struct pb_web_collection *own = NULL;
    for (int i = 0; i < n && own == NULL; i++)
        own = strcmp(collections[i].id, id) == 0 ? &collections[i] : NULL;
    if (n >= 0 && own == NULL) {
        fail(view, 404, "no such collection", id);
    } else if (own != NULL && is_items) {
        struct pb_web_search search = {.collection = id};
        path_of(id, NULL, path);
        (void)snprintf(path + strlen(path), sizeof path - strlen(path), "/items");
        answer_search(view, &search, path);
    } else if (own != NULL) {
        view->json = pb_json_create(false);
        put_collection(view, own);
        pb_web_document_take(view->out, view->json, PB_WEB_JSON);
    }
    if (n >= 0)
        pb_web_collections_free(collections, (size_t)n);
}

/* --- the root --- */

static void put_conformance(struct pb_json *json)
{
    static const char *const classes[] = {
        "https://api.stacspec.org/v1.0.0/core",
        "https://api.stacspec.org/v1.0.0/collections",
        "https://api.stacspec.org/v1.0.0/ogcapi-features",
        "https://api.stacspec.org/v1.0.0/item-search",
        "http://www.opengis.net/spec/ogcapi-features-1/1.0/conf/core",
        "http://www.opengis.net/spec/ogcapi-features-1/1.0/conf/oas30",
        "http://www.opengis.net/spec/ogcapi-features-1/1.0/conf/geojson"};
    pb_json_array(json, "conformsTo");
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++)
        pb_json_string(json, NULL, classes[i]);
    pb_json_end(json);
}

static void link_to_search(struct view *view, const char *method)
{
    char href[PB_WEB_BASE_BYTES + 32];
    (void)snprintf(href, sizeof href, "%s" PB_WEB_STAC_PATH "/search", view->query->base);
    pb_json_object(view->json, NULL);
    pb_json_string(view->json, "rel", "search");
    pb_json_string(view->json, "href", href);
    pb_json_string(view->json, "type", PB_WEB_GEOJSON);
    pb_json_string(view->json, "method", method);
    pb_json_end(view->json);
}

static void put_root_links(struct view *view, const struct pb_web_collection *collections, int n)
{
    char path[PB_WEB_HREF_BYTES];
    pb_json_array(view->json, "links");
    link_to(view, "self", PB_WEB_JSON, PB_WEB_STAC_PATH);
    link_to(view, "root", PB_WEB_JSON, PB_WEB_STAC_PATH);
    link_to(view, "service-desc", PB_WEB_OPENAPI, PB_WEB_SERVICE_DESC);
    link_to(view, "conformance", PB_WEB_JSON, PB_WEB_STAC_PATH "/conformance");
    link_to(view, "data", PB_WEB_JSON, PB_WEB_STAC_PATH "/collections");
    link_to_search(view, "GET");
    link_to_search(view, "POST");
    for (int i = 0; i < n; i++) {
        path_of(collections[i].id, NULL, path);
        pb_web_link(view->json, view->query, "child", PB_WEB_JSON, collections[i].id, path);
    }
    pb_json_end(view->json);
}

static void answer_root(struct view *view)
{
    struct pb_web_collection *collections = NULL;
    if (!allows(view, NULL, 0))
        return;
    const int n = pb_web_catalog_collections(view->catalog, &collections);
    if (n < 0)
        return;
    view->json = pb_json_create(false);
    pb_json_object(view->json, NULL);
    pb_json_string(view->json, "type", "Catalog");
    pb_json_string(view->json, "stac_version", "1.1.0");
    pb_json_string(view->json, "id", "pushbroom");
    pb_json_string(view->json, "title", "pushbroom");
    pb_json_string(view->json, "description", "Products of pushbroom.");
    put_conformance(view->json);
    put_root_links(view, collections, n);
    pb_json_end(view->json);
    pb_web_document_take(view->out, view->json, PB_WEB_JSON);
    pb_web_collections_free(collections, (size_t)n);
}

static void answer_conformance(struct view *view)
{
    if (!allows(view, NULL, 0))
        return;
    view->json = pb_json_create(false);
    pb_json_object(view->json, NULL);
    put_conformance(view->json);
    pb_json_end(view->json);
    pb_web_document_take(view->out, view->json, PB_WEB_JSON);
}

/* Splits a path. Returns the number of its parts, or PARTS + 1 for more. */
static size_t split(char *path, const char *part[PARTS])
{
    size_t n = 0;
    for (char *at = path; at != NULL && *at != '\0';) {
        char *slash = strchr(at, '/');
        if (slash != NULL)
            *slash++ = '\0';
        if (n == PARTS)
            return PARTS + 1;
        part[n++] = at;
        at = slash;
    }
    return n;
}

static void dispatch(struct view *view, char *path)
{
    const char *part[PARTS] = {"", "", "", ""};
    const size_t n = split(path, part);
    const bool is_collections = n > 0 && strcmp(part[0], "collections") == 0;
    if (n == 0)
        answer_root(view);
    else if (n == 1 && strcmp(part[0], "conformance") == 0)
        answer_conformance(view);
    else if (n == 1 && strcmp(part[0], "search") == 0)
        answer_all(view);
    else if (n == 1 && is_collections)
        answer_collections(view);
    else if (is_collections && (n == 2 || (n == 3 && strcmp(part[2], "items") == 0)))
        answer_collection(view, part[1], n == 3);
    else if (n == 4 && is_collections && strcmp(part[2], "items") == 0)
        answer_item(view, part[1], part[3]);
    else
        fail(view, 404, "nothing is at this address", view->query->path);
}

void pb_web_stac(struct pb_web_catalog *catalog, const char *products,
                 const struct pb_web_query *query, struct pb_web_document *out)
{
    struct view view = {.catalog = catalog, .products = products, .query = query, .out = out};
    *out = (struct pb_web_document){0};
    const int rc = pb_web_catalog_update(catalog, products);
    if (rc == -EAGAIN)
        fail(&view, 503, "the catalogue is being read", "Try again in some seconds.");
    else if (rc != 0)
        fail(&view, 500, "the directory of products is unreadable", strerror(-rc));
    if (rc != 0)
        return;
    char *path = strdup(query->path);
    if (path != NULL)
        dispatch(&view, path);
    free(path);
}
