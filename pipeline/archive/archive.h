/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_ARCHIVE_H
#define PB_ARCHIVE_H
/* ZIP or TAR file whose members are the files of a scene: lists its members, checked before a
 * byte is unpacked, and provides the requested members, each as a part of a file: of the archive
 * itself if stored uncompressed, else of one file for all of them. No member is ever opened or
 * made by its name. libarchive reads the formats. Call it in the confined process that decodes a
 * job; one thread per object. */
#include "config/base/err.h"
#include "pipeline/io/file_part.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pb_limits;

struct pb_archive_member {
    char *path; /* without "./" and trailing slashes */
    uint64_t bytes;
    bool is_folder;
    bool stays; /* stored uncompressed: no bytes are unpacked for it */
};

struct pb_archive {
    struct pb_file_part file; /* its descriptor is borrowed */
    const char *name;         /* for messages; borrowed */
    const struct pb_limits *limits;
    struct pb_archive_member *member; /* in the order of reading */
    size_t n, room;
    uint64_t bytes;  /* sum of all members */
    bool compressed; /* compressed as a whole: a .tar.gz */
    /* Called while a file is read; false ends that with -ECANCELED. NULL: not called. */
    bool (*goes_on)(void *user, uint64_t read_bytes);
    void *user;
};

/* Lists the members. file, name and limits: see the struct, which is zeroed except for goes_on
 * and user. On failure *err names the archive and
 *   input.not_archive        it has none of the formats
 *   input.archive_unsafe     absolute paths, "..", links, devices, a repeated name
 *   input.archive_encrypted  it, or a member, is encrypted
 *   input.limit              more members, bytes or nested folders than limits allow
 *   input.truncated, input.damaged, input.io, memory
 * *archive needs close in any case. */
int pb_archive_list(struct pb_archive *archive, const struct pb_file_part *file, const char *name,
                    const struct pb_limits *limits, struct pb_err *err);
void pb_archive_close(struct pb_archive *archive); /* a zeroed one is fine */

/* Requested member, and its place afterwards. */
struct pb_archive_wish {
    size_t member;
    struct pb_file_part part;
    bool in_place; /* in the archive */
};
/* Unpacks the requested members that cannot be used in the archive into the empty file `room`,
 * which is borrowed and named by room_name in messages. At least least_free bytes remain free on
 * its disk for users other than root. Members are verified as far as the format has check sums.
 *   output.full              there is not enough space
 *   input.changed            the archive differs from its listing
 * and the errors of pb_archive_list. */
int pb_archive_take(struct pb_archive *archive, struct pb_archive_wish *wish, size_t n, int room,
                    const char *room_name, uint64_t least_free, struct pb_err *err);
#endif
