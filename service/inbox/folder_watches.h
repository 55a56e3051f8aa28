/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_FOLDER_WATCHES_H
#define PB_FOLDER_WATCHES_H
/* Events of an inbox and of its sub-folders, which come and go with what senders do. They are
 * hints: what comes into a folder without a watch is found by the periodic scan. Thread: loop. */
#include "service/inbox/inbox.h"

#include <uv.h>

#define PB_FOLDER_WATCHES_MAX 1024 /* of an inbox; others have the periodic scan alone */

struct pb_folder_watches;

/* on_event: something happened in one of the folders. root: copied. NULL = out of memory. */
struct pb_folder_watches *pb_folder_watches_create(uv_loop_t *loop, const char *root,
                                                   void (*on_event)(void *user), void *user);
/* Watches exactly these folders; "" is the root. Whether a watch is new: what arrived before
 * it made no event. */
bool pb_folder_watches_follow(struct pb_folder_watches *watches,
                              const struct pb_inbox_folder *folders, size_t n);
/* No event comes any more; memory goes when libuv has closed the handles. NULL is fine. */
void pb_folder_watches_stop(struct pb_folder_watches *watches);
#endif
