/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_ARCHIVE_INSIDE_H
#define PB_ARCHIVE_INSIDE_H
/* Iteration over the members of an archive, for archive*.c only. One thread. */
#include "pipeline/archive/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <limits.h>
#include <locale.h>

#define PB_ARCHIVE_CHUNK_BYTES (256u << 10)

struct pb_archive_reader {
    struct pb_archive *archive;
    struct archive *a;
    uint64_t at;
    int error; /* errno of a read that failed */
    bool cancelled;
    locale_t utf8, before; /* locale in which libarchive does not convert names */
    struct pb_err *err;
    char path[PATH_MAX]; /* path of the current member; "" = the folder that contains all others */
    unsigned char chunk[PB_ARCHIVE_CHUNK_BYTES];
};

#define PB_ARCHIVE_FAIL(r, code, ...)                                                              \
    pb_fail_at((r)->err, code, (r)->archive->name, 0, 0, __VA_ARGS__)

/* `archive` must have its file and limits. */
int pb_archive_reader_begin(struct pb_archive *archive, struct pb_err *err,
                            struct pb_archive_reader **out);
void pb_archive_reader_end(struct pb_archive_reader *reader); /* NULL is fine */
/* Reads the next member's header, and checks its kind and name. Returns 1; 0 at the end; or the
 * error. */
int pb_archive_reader_next(struct pb_archive_reader *reader, struct archive_entry **out);
/* Returns true if the bytes of the current member can be used in the archive. */
bool pb_archive_reader_stays(const struct pb_archive_reader *reader, struct archive_entry *entry);
/* Checks the limits for `bytes` more unpacked bytes. */
int pb_archive_reader_allow(struct pb_archive_reader *reader, uint64_t bytes);
/* Reports the last error of libarchive on `what`. */
int pb_archive_reader_fail(struct pb_archive_reader *reader, const char *what);
#endif
