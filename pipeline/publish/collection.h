/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_COLLECTION_H
#define PB_COLLECTION_H
/* collection.json in the directory of products: the STAC collection that items name in
 * stac.collection. It says what is known without looking at other items, so all jobs write the same
 * bytes; one that is there already stays as it is, whoever made it. Thread: any; any number of
 * processes. */
#include <stddef.h>

#define PB_COLLECTION_FILE "collection.json"

/* 0; 1: what is there under that name is no collection of this id, *why (static) says what; or a
 * negative errno. mode: permissions, 0 = 0644 without the umask's bits. */
int pb_collection_write(int products_fd, const char *id, unsigned mode, const char **why);
#endif
