/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_FILE_HOLES_H
#define PB_FILE_HOLES_H
/* Which bytes of a file were never written: holes, and space that was only reserved (fallocate). A
 * transfer that sets the length first leaves such ranges where data is still to come; they read as
 * zeros. Bytes in the page cache that are not on the disk yet count as written. Where the file
 * system does not report holes, all bytes count as written. Thread: one per object. */
#include "pipeline/io/file_part.h"

#include <stdbool.h>
#include <stdint.h>

struct pb_file_holes {
    struct pb_file_part file; /* its file position is moved */
    bool any;                 /* there is a hole at all */
    uint64_t from, to;        /* the current segment */
    bool is_hole;             /* what it is */
};

/* The state of a range. */
struct pb_holes_found {
    bool data;     /* some bytes were written */
    bool hole;     /* some were not */
    bool reserved; /* of those, some have space reserved for them; only when asked for */
};

void pb_file_holes_init(struct pb_file_holes *holes, const struct pb_file_part *file);
/* ask_reserved: costs one more call per hole. */
struct pb_holes_found pb_file_holes_look(struct pb_file_holes *holes, uint64_t at, uint64_t bytes,
                                         bool ask_reserved);
/* Whether at least `enough` bytes of the file were written. */
bool pb_file_holes_data(struct pb_file_holes *holes, uint64_t enough);
#endif
