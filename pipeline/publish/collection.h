/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_COLLECTION_H
#define PB_COLLECTION_H
/* collection.json in the directory of products: the STAC collection that items name in
 * stac.collection. Its extent grows with the items; everything else in it stays as it is found, so
 * a description, a licence or links may be written into it. One that lacks the member
 * "pushbroom:extent" was not made here, or is not to be changed any more: it stays as it is.
 *
 * Writers hold a lock (flock) on the directory, which ends with their process, and replace the file
 * by a rename: a reader sees the old or the new one, whoever is killed when. Thread: any; any
 * number of processes. */
#include "pipeline/publish/collection_extent.h"

#define PB_COLLECTION_FILE "collection.json"

/* Makes it, or lets its extent hold that of an item. Called before the item is visible, so that at
 * any time the extent holds all items. 0; 1: what is there under that name is no collection of this
 * id, *why (static) says what; or a negative errno (-ETIMEDOUT: another process has held the lock
 * for too long). mode: permissions, 0 = 0644 without the umask's bits; those of a file that is
 * there are kept. */
int pb_collection_write(int products_fd, const char *id, const struct pb_collection_extent *item,
                        unsigned mode, const char **why);
#endif
