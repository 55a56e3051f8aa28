/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_LEFT_H
#define PB_LEFT_H
/* Entries of an inbox that stay there whatever they contain: ignored names, names that no pipeline
 * takes, links, devices, folders that cannot be read. They are remembered from scan to scan:
 * a listing of 100,000 of them compares only names and inodes. Plain memory.
 * Thread: pool, one scan at a time. */
#include "service/inbox/settle.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PB_LEFT_FIRST_MAX 100 /* entries that pb_left_first returns */

struct pb_left;

struct pb_left_entry {
    const char *name; /* path below the inbox; pb_left_add copies it */
    const char *text; /* reason for the user; pb_left_add copies it */
    uint64_t inode;
    unsigned char type; /* d_type of readdir */
    /* true if the name, the type and the configuration decide: an entry with the same inode is not
     * examined again */
    bool is_final;
    enum pb_settle_reason reason; /* ignored, refused or foreign */
    enum pb_code code;
};

struct pb_left *pb_left_create(void);       /* NULL = out of memory */
void pb_left_destroy(struct pb_left *left); /* NULL is allowed */
/* Lets the next listing examine all entries again, because another configuration may take them. No
 * entry is final until then. */
void pb_left_reopen(struct pb_left *left);

/* One scan: begin; confirm or add for each entry that the scan finds; then drop_old for each name
 * that it examined, or drop_all_old after a listing. */
void pb_left_begin(struct pb_left *left);
/* Returns true if the entry is known, is_final, and has the same type and inode. */
bool pb_left_confirm(struct pb_left *left, const char *name, unsigned char type, uint64_t inode);
/* Adds or replaces an entry. Returns 1 if the name is new, or stays for another reason than before;
 * otherwise 0; -ENOMEM. */
int pb_left_add(struct pb_left *left, const struct pb_left_entry *entry);
/* Forgets the entry of that name unless the scan found it. */
void pb_left_drop_old(struct pb_left *left, const char *name);
/* Forgets the entries that the scan did not find and for which `covers`, which may be NULL, is
 * true. */
void pb_left_drop_all_old(struct pb_left *left, bool (*covers)(const void *user, const char *name),
                          const void *user);

/* Finds entries that are not final, `most` at most; borrowed until the next change. Returns their
 * number. */
size_t pb_left_open(const struct pb_left *left, const char **out_names, size_t most);
size_t pb_left_count(const struct pb_left *left, enum pb_settle_reason reason);
/* Finds the first entries of that reason (refused or foreign) in the order of their names,
 * PB_LEFT_FIRST_MAX at most; borrowed until the next change. Returns their number. */
size_t pb_left_first(struct pb_left *left, enum pb_settle_reason reason,
                     const struct pb_left_entry *out[PB_LEFT_FIRST_MAX]);

/* Summary of the entries of one inbox that are not taken: those that still settle, those that the
 * service cannot take, and those that no pipeline fits. */
#define PB_STAYS_MAX 100 /* entries with a name */

struct pb_stay {
    char name[256];               /* end of its path below the inbox */
    enum pb_settle_reason reason; /* refused or foreign */
    enum pb_code code;
    char text[512];
};

struct pb_stays {
    size_t n_refused, n_foreign, n_settling; /* total counts */
    /* wall clock: time at which the last entry settles if no file changes; 0 = no entry settles */
    int64_t settled_ms;
    size_t n; /* entries in `at`; refused entries before foreign ones */
    struct pb_stay at[PB_STAYS_MAX];
};

/* Collects the summary from the entries that stay and the notes of the files of the last scan. */
void pb_stays_collect(struct pb_left *left, const struct pb_settle *settle, struct pb_stays *out);
#endif
