/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WEB_INDEX_H
#define PB_WEB_INDEX_H
/* The STAC items in the directory of products: those that a .pushbroom.json names, with place and
 * time. An index is read at once and not changed afterwards; the next one takes what is unchanged
 * from it. Thread: any, one at a time. */
#include "pipeline/publish/collection_extent.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct pb_web_item {
    char *path;       /* path of its file, below the directory of products */
    char *id;         /* unique in its collection */
    char *collection; /* the item's, else the name of the pipeline */
    struct pb_collection_extent extent;
    double start, end; /* Julian days */
};

struct pb_web_collection {
    char *id;
    struct pb_collection_extent extent;
    size_t n_items;
};

struct pb_web_folder;
struct pb_web_left;

/* Zeroed: empty. */
struct pb_web_index {
    struct pb_web_folder *folder; /* n, by path */
    size_t n, room;
    struct pb_web_left *left; /* folders that are left out, by the digest of their path */
    size_t n_left, left_room;
    struct pb_web_item **item; /* n_items, newest first */
    size_t n_items;
    struct pb_web_collection *collection; /* n_collections, by id */
    size_t n_collections;
    size_t unreadable; /* folders */
    size_t n_older;    /* items that are older than those of the index */
};

/* Reads the newest items: items_max of them, or nine tenths of that after items were removed. Items
 * of unchanged folders are moved from the index before, which can only be freed afterwards, unless
 * this fails. Returns 0; -ECANCELED: *is_ending was set; or another negative errno. */
int pb_web_index_read(const char *products, struct pb_web_index *before, size_t items_max,
                      const atomic_bool *is_ending, struct pb_web_index *out);
void pb_web_index_free(struct pb_web_index *index); /* leaves it empty */
/* Returns true for a failure that each further file would have. */
bool pb_web_index_is_scarce(int failure);

/* Returns 0 or -ENOMEM; the copy is the caller's (pb_web_item_fini). */
int pb_web_item_copy(const struct pb_web_item *item, struct pb_web_item *out);
void pb_web_item_fini(struct pb_web_item *item);
/* Place of an item that begins at `start` relative to another one, newest first: as strcmp. */
int pb_web_item_order(double start, const char *path, const struct pb_web_item *item);
void pb_web_collections_free(struct pb_web_collection *collections, size_t n);
#endif
