/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CHANGES_H
#define PB_CHANGES_H
/* Names below an inbox that may have changed since the last scan. A name stands for the entry and
 * for everything below it. Plain memory. Thread: any, one at a time; the loop collects the names
 * and passes them to a scan on the pool. */
#include <stdbool.h>
#include <stddef.h>

#define PB_CHANGES_MAX 8192 /* more names are `all` */

/* All-zero: no changes. */
struct pb_changes {
    char **name; /* paths below the inbox, malloc'd */
    size_t n, room;
    bool all; /* true if anything may have changed; the names do not count then */
};

/* Adds the entry `name` of a folder below the inbox ("" is the inbox); the name "" is the folder
 * itself. Out of memory: all. */
void pb_changes_add(struct pb_changes *changes, const char *folder, const char *name);
void pb_changes_add_all(struct pb_changes *changes);
/* Sorts the names and removes those that occur twice. */
void pb_changes_sort(struct pb_changes *changes);
/* Returns true if the path, or a folder that contains it, is among the sorted names. */
bool pb_changes_cover(const struct pb_changes *changes, const char *path);
void pb_changes_fini(struct pb_changes *changes); /* all-zero again */
#endif
