/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WEB_CATALOG_H
#define PB_WEB_CATALOG_H
/* Index of the STAC items in the directory of products: those that a .pushbroom.json names, with
 * place and time. It is in memory, and follows the directory: an update reads manifests that
 * changed. Thread: any, but destroy after all others. */
#include "service/web/document.h"
#include "service/web/index.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PB_WEB_ITEMS_MAX    100000 /* items that are in the index, the newest */
#define PB_WEB_WORDS_MAX    500    /* limit of a list of a search */
#define PB_WEB_CURSOR_BYTES 4096

/* Zeroed: all items. Texts are borrowed. */
struct pb_web_search {
    const char *collections, *ids; /* lists; NULL = all */
    char separator;                /* separator of the words; NUL = a comma */
    const char *collection, *id;   /* one of them; NULL = all */
    bool has_bbox;
    double bbox[4]; /* west > east: across 180 degrees */
    struct pb_web_interval time;
    const char *after; /* cursor; NULL = from the first on */
};

struct pb_web_catalog;

/* items_max: PB_WEB_ITEMS_MAX, or less. NULL = out of memory. */
struct pb_web_catalog *pb_web_catalog_create(size_t items_max);
void pb_web_catalog_destroy(struct pb_web_catalog *catalog); /* NULL is allowed */

/* Reads changes in the directory of products, unless that was done a moment ago or is being done.
 * After some seconds the index before is used on. Returns 0; -EAGAIN: the first reading takes long;
 * another negative errno. */
int pb_web_catalog_update(struct pb_web_catalog *catalog, const char *products);
/* Makes an update due soon: products were published. */
void pb_web_catalog_changed(struct pb_web_catalog *catalog);

/* When the next update is due: after a change an update may take half of the time, otherwise a
 * tenth of it, until a limit. Zeroed: at once. */
struct pb_web_pace {
    bool is_changed;          /* since the last update began */
    int64_t next_ms, soon_ms; /* earliest time of an update; of one after a change */
};
void pb_web_pace_begin(struct pb_web_pace *pace);
void pb_web_pace_end(struct pb_web_pace *pace, int64_t begun_ms, int64_t now_ms);
bool pb_web_pace_is_due(const struct pb_web_pace *pace, int64_t now_ms);

/* Finds up to `room` items, newest first, which the caller frees. Returns their number, or
 * -ENOMEM; -EINVAL: the cursor is malformed; -E2BIG: a list has too many words. *out_matched: the
 * number of all that match, from the first on. */
int pb_web_catalog_find(struct pb_web_catalog *catalog, const struct pb_web_search *search,
                        struct pb_web_item *out, size_t room, size_t *out_matched);
/* Writes the cursor of the page that follows an item. */
void pb_web_item_cursor(const struct pb_web_item *item, char out[PB_WEB_CURSOR_BYTES]);

/* Copies the collections, by name: malloc'd, freed by pb_web_collections_free. Returns their
 * number or -ENOMEM. */
int pb_web_catalog_collections(struct pb_web_catalog *catalog, struct pb_web_collection **out);
#endif
