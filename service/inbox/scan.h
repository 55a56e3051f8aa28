/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SCAN_H
#define PB_SCAN_H
/* Scans of an inbox: they find its plain files and the folders that are scenes, and record the
 * entries that stay (left.h). If the inbox recurses, other folders are searched.
 *
 * A listing reads all names. An update examines the names that may have changed, and the files that
 * have not settled; it takes the others over from the last scan. Both run in steps, so that a scan
 * of a huge inbox does not keep a thread. On a file system that other machines or a FUSE server may
 * change without an event, every scan is a listing. Thread: pool, one at a time. */
#include "service/inbox/inbox.h"
#include "service/inbox/left.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Names below an inbox that may have changed since the last scan. A name stands for the entry and
 * for everything below it. Plain memory. Thread: any, one at a time; the loop collects the names
 * and passes them to a scan on the pool. */
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

/* Rules for the names in the inbox; a result depends on the name and the configuration only. */
struct pb_scan_rules {
    bool (*takes)(void *user, const char *name); /* true if a folder of that name is a scene */
    /* true if the path below the inbox is to be ignored */
    bool (*ignores)(void *user, const char *path);
    /* true if a file with that path belongs to no input, whatever is next to it, and stays */
    bool (*leaves)(void *user, const char *path);
    void *user;
};

struct pb_scan_folder {
    char *path; /* path below the inbox; "" is the inbox */
    dev_t device;
    ino_t inode;
};

/* Folders that were searched, sorted by path. */
struct pb_scan_folders {
    struct pb_scan_folder *folder;
    size_t n, room;
};

struct pb_scan;

/* inbox, settle and left are borrowed until destroy. NULL = out of memory. */
struct pb_scan *pb_scan_create(const struct pb_inbox *inbox, const struct pb_scan_rules *rules,
                               struct pb_settle *settle, struct pb_left *left);
void pb_scan_destroy(struct pb_scan *scan); /* NULL is allowed; a scan may be in progress */
/* Begins a scan, and one of settle and one of left; takes the content of *changes. It is a listing
 * if changes->all, if the last listing failed, if the file system reports not all changes, or if
 * another directory is at the path of the inbox now; otherwise an update. Returns 0; a negative
 * errno: the inbox cannot be read, and the entries that stay are those of the last scan. */
int pb_scan_begin(struct pb_scan *scan, struct pb_changes *changes);
/* After begin returned 0: examines about n more entries. Adds every plain file with one link, and
 * every folder that the rules take, to settle. Returns 1 if entries remain; 0 at the end; a
 * negative errno: the inbox cannot be read to its end. Such an error of a sub-folder is recorded as
 * an entry that stays, and its files are missing from the scan. */
int pb_scan_step(struct pb_scan *scan, size_t n);
bool pb_scan_is_listing(const struct pb_scan *scan); /* kind of the last scan */
/* Returns true if the last scan did not reach all entries; the next one is a listing. */
bool pb_scan_needs_listing(const struct pb_scan *scan);
/* Valid until the next begin. */
const struct pb_scan_folders *pb_scan_folders(const struct pb_scan *scan);
#endif
