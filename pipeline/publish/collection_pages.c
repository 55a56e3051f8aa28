/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/publish/collection_pages.h"

#include "config/base/href.h"
#include "config/base/json_reader.h"
#include "config/base/json_writer.h"
#include "pipeline/product/stac/stac.h"
#include "pipeline/publish/collection.h"
#include "pipeline/publish/collection_file.h"
#include "pipeline/publish/publish_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MARK "pushbroom:page"

enum { READ_MAX = 64 * 1024 * 1024, HREF_BYTES = 3 * PATH_MAX };

struct link {
    char *href;
    bool is_child; /* true for a page; false for an item */
    bool is_new;   /* added here: its file may not yet exist */
};

struct page {
    char name[PB_PAGE_NAME_BYTES], month[8];
    bool is_base, is_foreign, is_changed;
    struct link *link; /* n, room for `room` */
    size_t n, n_items, room;
};

struct pages {
    int products_fd;
    const char *id;
    struct page *page; /* n */
    size_t n;
};

/* --- links -----------------------------------------------------------------------------------*/

static int add_link(struct page *page, const char *href, bool is_child, bool is_new)
{
    if (page->n == page->room) {
        const size_t room = page->room > 0 ? page->room * 2 : 64;
        struct link *more = realloc(page->link, room * sizeof *more);
        if (more == NULL)
            return -ENOMEM;
        page->link = more;
        page->room = room;
    }
    char *copy = strdup(href);
    if (copy == NULL)
        return -ENOMEM;
    page->link[page->n++] = (struct link){.href = copy, .is_child = is_child, .is_new = is_new};
    page->n_items += !is_child;
    return 0;
}

static bool has_link(const struct page *page, const char *href)
{
    for (size_t i = 0; i < page->n; i++)
        if (strcmp(page->link[i].href, href) == 0)
            return true;
    return false;
}

/* "./scene%201/x.stac.json" -> "scene 1/x.stac.json". Returns false if it does not fit. */
static bool path_of(const char *href, char *out, size_t bytes)
{
    size_t n = 0;
    for (href += strncmp(href, "./", 2) == 0 ? 2 : 0; *href != '\0' && n + 1 < bytes; href++) {
        const char digits[3] = {href[0] == '%' ? href[1] : '\0', href[0] == '%' ? href[2] : '\0'};
        if (digits[0] != '\0' && digits[1] != '\0') {
            out[n++] = (char)strtoul(digits, NULL, 16);
            href += 2;
        } else {
            out[n++] = *href;
        }
    }
    out[n] = '\0';
    return *href == '\0';
}

static bool is_gone(int products_fd, const struct link *link)
{
    char path[PATH_MAX];
    return !link->is_new && !link->is_child && path_of(link->href, path, sizeof path) &&
           faccessat(products_fd, path, F_OK, AT_SYMLINK_NOFOLLOW) != 0 &&
           (errno == ENOENT || errno == ENOTDIR);
}

/* The path of a file below the directory of products as a relative address. */
static void href_of(const char *directory, const char *file, char out[HREF_BYTES])
{
    char path[PATH_MAX + NAME_MAX + 2];
    const size_t used = (size_t)snprintf(out, HREF_BYTES, "./");
    (void)snprintf(path, sizeof path, "%s%s%s", directory, directory[0] != '\0' ? "/" : "", file);
    (void)pb_href_path(path, out + used, HREF_BYTES - used);
}

/* FNV-1a, folded to a byte. */
static unsigned hash_of(const char *href)
{
    uint32_t hash = UINT32_C(2166136261);
    for (; *href != '\0'; href++)
        hash = (hash ^ (unsigned char)*href) * UINT32_C(16777619);
    hash ^= hash >> 16;
    return (hash ^ hash >> 8) & 0xff;
}

/* --- pages -----------------------------------------------------------------------------------*/

static int take_links(struct page *page, const struct pb_json_value *root)
{
    const struct pb_json_value *links = pb_json_get(root, "links", NULL);
    int rc = 0;
    for (size_t i = 0; i < pb_json_count(links) && rc == 0; i++) {
        const char *rel = pb_json_get_text(pb_json_at(links, i), "rel");
        const char *href = pb_json_get_text(pb_json_at(links, i), "href");
        if (rel == NULL || href == NULL)
            continue;
        if (strcmp(rel, "item") == 0 || strcmp(rel, "child") == 0)
            rc = add_link(page, href, rel[0] == 'c', false);
    }
    return rc;
}

static int load(struct pages *pages, struct page *page)
{
    struct pb_json_value *root = NULL;
    unsigned mode;
    int rc = pb_collection_file_read(pages->products_fd, page->name, READ_MAX, &root, &mode);
    if (rc == -ENOENT)
        return 0;
    const char *mark = pb_json_get_text(root, MARK);
    page->is_foreign = rc != 0 || mark == NULL || strcmp(mark, pages->id) != 0;
    rc = page->is_foreign ? 0 : take_links(page, root);
    pb_json_release(root);
    return rc;
}

/* Finds the page of that name; reads it at the first use. hash < 0: the page of the month. Valid
 * until the next call. NULL = out of memory. */
static struct page *find_page(struct pages *pages, const char *month, int hash)
{
    char name[PB_PAGE_NAME_BYTES];
    if (hash < 0)
        (void)snprintf(name, sizeof name, PB_STAC_PAGE, month);
    else
        (void)snprintf(name, sizeof name, "collection-%.7s-%02x.json", month, (unsigned char)hash);
    for (size_t i = 0; i < pages->n; i++)
        if (strcmp(pages->page[i].name, name) == 0)
            return &pages->page[i];
    struct page *more = realloc(pages->page, (pages->n + 1) * sizeof *more);
    if (more == NULL)
        return NULL;
    pages->page = more;
    struct page *page = &more[pages->n++];
    *page = (struct page){.is_base = hash < 0};
    (void)snprintf(page->name, sizeof page->name, "%s", name);
    (void)snprintf(page->month, sizeof page->month, "%.7s", month);
    return load(pages, page) == 0 ? page : NULL;
}

static int add_new(struct page *page, const char *href, bool is_child)
{
    page->is_changed = true;
    return add_link(page, href, is_child, true);
}

/* Adds a link unless present: a republished item has its link already, in the page of the month
 * or in that of its hash. */
static int add_item(struct pages *pages, const char *month, const char *href)
{
    const int hash = (int)hash_of(href);
    struct page *page = find_page(pages, month, -1);
    if (page == NULL)
        return -ENOMEM;
    if (page->is_foreign || has_link(page, href))
        return 0;
    const bool is_full = page->n_items >= PB_PAGE_ITEMS;
    page = find_page(pages, month, hash);
    if (page == NULL)
        return -ENOMEM;
    if (page->is_foreign || has_link(page, href))
        return 0;
    if (!is_full)
        return add_new(find_page(pages, month, -1), href, false);
    char child[PB_PAGE_NAME_BYTES + 2];
    (void)snprintf(child, sizeof child, "./%s", page->name);
    int rc = add_new(page, href, false);
    page = find_page(pages, month, -1);
    return rc != 0 || has_link(page, child) ? rc : add_new(page, child, true);
}

/* --- writing ---------------------------------------------------------------------------------*/

static void print_link(struct pb_json *json, const char *rel, const char *href, const char *type)
{
    pb_json_object(json, NULL);
    pb_json_string(json, "rel", rel);
    pb_json_string(json, "href", href);
    pb_json_string(json, "type", type);
    pb_json_end(json);
}

static struct pb_json *print_page(const struct pages *pages, const struct page *page)
{
    struct pb_json *json = pb_json_create(true);
    char text[400], base[PB_PAGE_NAME_BYTES + 2];
    const char *part = page->is_base ? "" : page->name + strlen("collection-2020-02");
    pb_json_object(json, NULL);
    pb_json_string(json, "type", "Catalog");
    pb_json_string(json, "stac_version", "1.1.0");
    (void)snprintf(text, sizeof text, "%.200s-%s%.3s", pages->id, page->month, part);
    pb_json_string(json, "id", text);
    (void)snprintf(text, sizeof text, "%s%.3s", page->month, part);
    pb_json_string(json, "title", text);
    (void)snprintf(text, sizeof text, "Items of the collection %.200s of %s.", pages->id,
                   page->month);
    pb_json_string(json, "description", text);
    pb_json_string(json, MARK, pages->id);
    pb_json_array(json, "links");
    print_link(json, "root", "./" PB_STAC_CATALOG, "application/json");
    (void)snprintf(base, sizeof base, "./" PB_STAC_PAGE, page->month);
    print_link(json, "parent", page->is_base ? "./" PB_COLLECTION_FILE : base, "application/json");
    for (size_t i = 0; i < page->n; i++) {
        const struct link *link = &page->link[i];
        if (!is_gone(pages->products_fd, link))
            print_link(json, link->is_child ? "child" : "item", link->href,
                       link->is_child ? "application/json" : "application/geo+json");
    }
    pb_json_end(json);
    pb_json_end(json);
    return json;
}

static int stage_pages(const struct pages *pages, struct pb_publish_lock *lock, unsigned mode,
                       const char **why)
{
    int rc = 0;
    bool foreign = false;
    for (size_t i = 0; i < pages->n && rc == 0; i++) {
        foreign = foreign || pages->page[i].is_foreign;
        if (pages->page[i].is_changed)
            rc = pb_collection_file_stage(lock, pages->page[i].name,
                                          print_page(pages, &pages->page[i]), mode);
    }
    if (rc == 0 && foreign)
        *why = "a file that is no page of this collection has the name of one (collection-*.json)";
    return rc != 0 ? rc : foreign;
}

int pb_collection_pages_stage(struct pb_publish_lock *lock, int products_fd, const char *id,
                              const struct pb_page_items *items, unsigned mode, const char **why)
{
    struct pages pages = {.products_fd = products_fd, .id = id};
    char *href = malloc(HREF_BYTES);
    int rc = href != NULL ? 0 : -ENOMEM;
    for (size_t i = 0; i < items->n && rc == 0; i++) {
        href_of(items->directory, items->file[i], href);
        rc = add_item(&pages, items->month[i], href);
    }
    rc = rc != 0 ? rc : stage_pages(&pages, lock, mode, why);
    for (size_t i = 0; i < pages.n; i++) {
        for (size_t k = 0; k < pages.page[i].n; k++)
            free(pages.page[i].link[k].href);
        free(pages.page[i].link);
    }
    free(pages.page);
    free(href);
    return rc;
}
