/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_ENTRY_H
#define PB_ENTRY_H
/* Input of the assembly of scenes (assemble.h): entries of a listing, and facts about them that
 * only their content has. Callers that list directories and read metadata make them. Plain memory.
 */
#include "config/base/err.h"
#include "config/group_pattern.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pb_entry {
    const char *path; /* below the directory of the listing, or as named by a user; borrowed */
    uint64_t bytes, inode;
    int64_t mtime_ns, ctime_ns; /* wall clock */
    bool is_folder;
    bool is_settled;   /* it stopped changing */
    bool is_companion; /* marker or checksum file of another entry: a member of no scene */
};

/* Facts that input.by takes from the metadata of a loose file, or the reason why they are
 * missing. */
struct pb_described {
    struct pb_group_facts facts;
    enum pb_code code; /* PB_OK: the facts are valid */
    char message[1024];
};

/* Finds the answer about the metadata of an entry; NULL: they were not read yet. digest: a number
 * that differs when the file or its metadata changed. The answer is borrowed as long as the
 * assembly is used. */
struct pb_entry_facts {
    const struct pb_described *(*find)(void *user, const char *path, uint64_t digest);
    void *user;
};
#endif
