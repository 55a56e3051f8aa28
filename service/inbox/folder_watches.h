/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_FOLDER_WATCHES_H
#define PB_FOLDER_WATCHES_H
/* Event watches (inotify) of an inbox and of its sub-folders, which senders create and remove. The
 * events are collected as names that may have changed; after an overflow of the kernel's queue
 * anything may have changed. Thread: loop. */
#include "service/inbox/scan.h"

#include <uv.h>

/* watches of an inbox; files of other folders are found by listings only */
#define PB_FOLDER_WATCHES_MAX 8192

struct pb_folder_watches;

/* changes: borrowed until stop; the names are added to it, and then on_event is called, except for
 * names that are never taken. root: copied. NULL = out of memory. */
struct pb_folder_watches *pb_folder_watches_create(uv_loop_t *loop, const char *root,
                                                   struct pb_changes *changes,
                                                   void (*on_event)(void *user), void *user);
/* Watches exactly these folders. Files that arrived before a new watch caused no event: its folder
 * is added to the changes. Returns true if there are such folders. */
bool pb_folder_watches_follow(struct pb_folder_watches *watches,
                              const struct pb_scan_folders *folders);
/* Adds the names of events that the loop has not read yet. */
void pb_folder_watches_read(struct pb_folder_watches *watches);
/* Returns true if each folder of the last follow has a watch; otherwise only a listing finds what
 * changed. */
bool pb_folder_watches_see_all(const struct pb_folder_watches *watches);
/* Ends all events; the memory is freed when libuv has closed the handle. NULL is allowed. */
void pb_folder_watches_stop(struct pb_folder_watches *watches);
#endif
