/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_COLLECTION_H
#define PB_COLLECTION_H
/* collection.json in the directory of products: the STAC collection that items name in
 * stac.collection. Its extent grows with the items, and it links the pages of its items
 * (collection_pages.h) and catalog.json, the root of the tree, which is made if it is missing.
 * Everything else in it is preserved; therefore users may add a description, a licence or links.
 * A file without the member "pushbroom:extent" was not made here, or must not be changed any
 * more: it is unchanged and gets no pages. Thread: any. */
#include "pipeline/publish/collection_extent.h"
#include "pipeline/publish/collection_pages.h"

#define PB_COLLECTION_FILE     "collection.json"
#define PB_COLLECTION_UNLINKED 2 /* result of pb_collection_stage */

struct pb_publish_lock;

/* Items that are about to be published. Borrowed. */
struct pb_collection_change {
    const char *id;                     /* id of the collection */
    struct pb_collection_extent extent; /* extent of all these items */
    struct pb_page_items items;
    unsigned mode; /* permissions; 0 = those of the file, or 0644 without the umask's bits for a new
                      one */
};

/* Makes or changes the collection, as files of the lock (publish_lock.h). Returns 0; 1: the file
 * of its name is not a collection of this id, *why (static) gives the reason;
 * PB_COLLECTION_UNLINKED: done, but without links to items of a page, *why gives the reason; or
 * a negative errno (-ESTALE: the lock was broken). */
int pb_collection_stage(struct pb_publish_lock *lock, int products_fd,
                        const struct pb_collection_change *change, const char **why);
#endif
