/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_COLLECTION_H
#define PB_COLLECTION_H
/* collection.json in the directory of products: the STAC collection that items name in
 * stac.collection. Its extent grows with the items; everything else in it stays as it is found, so
 * a description, a licence or links may be written into it. One that lacks the member
 * "pushbroom:extent" was not made here, or is not to be changed any more: it stays as it is.
 * Thread: any. */
#include "pipeline/publish/collection_extent.h"

#define PB_COLLECTION_FILE "collection.json"

struct pb_publish_lock;

/* Makes it, or lets its extent hold that of an item, as a file of the lock (publish_lock.h). 0; 1:
 * what is there under that name is no collection of this id, *why (static) says what; or a negative
 * errno (-ESTALE: the lock was broken). mode: permissions; 0 = those that the file has, or of a new
 * one 0644 without the umask's bits. */
int pb_collection_stage(struct pb_publish_lock *lock, int products_fd, const char *id,
                        const struct pb_collection_extent *item, unsigned mode, const char **why);
#endif
