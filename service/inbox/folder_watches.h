/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_FOLDER_WATCHES_H
#define PB_FOLDER_WATCHES_H
/* Event watches of an inbox and of its sub-folders, which senders create and remove. Events are
 * hints: files that arrive in a folder without a watch are found by the periodic scan. Thread:
 * loop. */
#include "service/inbox/inbox.h"

#include <uv.h>

/* watches of an inbox; other folders have the periodic scan only */
#define PB_FOLDER_WATCHES_MAX 1024

struct pb_folder_watches;

/* on_event is called after an event in one of the folders. root: copied. NULL = out of memory. */
struct pb_folder_watches *pb_folder_watches_create(uv_loop_t *loop, const char *root,
                                                   void (*on_event)(void *user), void *user);
/* Watches exactly these folders; "" is the root. Returns true if a watch is new: files that
 * arrived before it caused no event. */
bool pb_folder_watches_follow(struct pb_folder_watches *watches,
                              const struct pb_inbox_folder *folders, size_t n);
/* Ends all events; the memory is freed when libuv has closed the handles. NULL is allowed. */
void pb_folder_watches_stop(struct pb_folder_watches *watches);
#endif
