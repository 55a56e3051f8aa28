/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_ARCHIVE_H
#define PB_ARCHIVE_H
/* A ZIP or TAR file whose members are the files of a scene: the list of its members, checked before
 * a byte is unpacked, and the members that are wanted, each as a part of a file: of the archive
 * itself where it is stored as it is, else of one file for all of them. No member is ever opened or
 * made by its name. libarchive reads the formats. To be called in the confined process that decodes
 * a job; one thread an object. */
#include "config/config.h"
#include "config/base/err.h"
#include "pipeline/io/file_part.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pb_archive_member {
    char *path; /* without "./" and slashes at the end */
    uint64_t bytes;
    bool is_folder;
    bool stays; /* stored as it is: no bytes are unpacked for it */
};

struct pb_archive {
    struct pb_file_part file; /* its descriptor is borrowed */
    const char *name;         /* for messages; borrowed */
    const struct pb_limits *limits;
    struct pb_archive_member *member; /* in the order of reading */
    size_t n, room;
    uint64_t bytes;  /* of all members */
    bool compressed; /* as a whole: a .tar.gz */
    /* Called while a file is read; false ends that with -ECANCELED. NULL: nobody waits. */
    bool (*goes_on)(void *user, uint64_t read_bytes);
    void *user;
};

/* Lists the members. file, name and limits: as in the struct, which is zeroed but for goes_on and
 * user. On failure *err names the archive and
 *   input.not_archive        it is none of the formats
 *   input.archive_unsafe     absolute paths, "..", links, devices, a name twice
 *   input.archive_encrypted  it, or a member, is encrypted
 *   input.limit              more members, bytes or folders below one another than limits allow
 *   input.truncated, input.damaged, input.io, memory
 * *archive needs close in any case. */
int pb_archive_list(struct pb_archive *archive, const struct pb_file_part *file, const char *name,
                    const struct pb_limits *limits, struct pb_err *err);
void pb_archive_close(struct pb_archive *archive); /* a zeroed one is fine */

/* A member that is wanted, and where it lies afterwards. */
struct pb_archive_wish {
    size_t member;
    struct pb_file_part part;
    bool in_place; /* in the archive */
};
/* Brings the wanted members into the empty file `room`, which is borrowed and named by room_name in
 * messages, where they cannot stay in the archive. At least least_free bytes stay free on its disk
 * for users who are not root. Members are verified as far as the format has check sums.
 *   output.full              there is not enough space
 *   input.changed            the archive is not as it was listed
 * and as pb_archive_list. */
int pb_archive_take(struct pb_archive *archive, struct pb_archive_wish *wish, size_t n, int room,
                    const char *room_name, uint64_t least_free, struct pb_err *err);
#endif
