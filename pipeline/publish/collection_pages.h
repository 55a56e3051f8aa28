/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_COLLECTION_PAGES_H
#define PB_COLLECTION_PAGES_H
/* Pages of a collection: STAC catalogues in the directory of products that link its items.
 * collection.json links a page for each month of acquisition, collection-2020-02.json. A page
 * links up to PB_PAGE_ITEMS items. Further items of its month are in pages
 * collection-2020-02-00.json to -ff, which the page of the month links: the hash of an item's
 * path selects the page. A publication therefore reads and writes two bounded files, however
 * many items the collection has.
 *
 * A page has the member "pushbroom:page" with the id of the collection. A file of its name
 * without that member is unchanged. Links to deleted items are dropped when their page is
 * written again. Thread: any. */
#include <stdbool.h>
#include <stddef.h>

#define PB_PAGE_ITEMS      1000
#define PB_PAGE_NAME_BYTES 32

struct pb_publish_lock;

/* Items of one directory that is about to be published. Borrowed. */
struct pb_page_items {
    const char *directory;   /* below the directory of products: "scene/pipeline" */
    const char (*file)[256]; /* n names in it */
    const char (*month)[8];  /* n of "2020-02" */
    size_t n;
};

/* Writes the pages that link the items, as files of the lock (publish_lock.h). Returns 0; 1:
 * another file has the name of a page, *why (static) describes it, and the items of that page
 * have no link; or a negative errno (-ESTALE: the lock was broken). mode: permissions; 0 = 0644
 * without the umask's bits. */
int pb_collection_pages_stage(struct pb_publish_lock *lock, int products_fd, const char *id,
                              const struct pb_page_items *items, unsigned mode, const char **why);
#endif
