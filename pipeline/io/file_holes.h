/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_FILE_HOLES_H
#define PB_FILE_HOLES_H
/* Bytes of a file that were never written: holes, and space that was only reserved (fallocate).
 * A transfer that sets the length first leaves such ranges for missing data; they read as zeros.
 * Bytes in the page cache that are not yet on the disk count as written. If the file system does
 * not report holes, all bytes count as written. Thread: one per object. */
#include "pipeline/io/file_part.h"

#include <stdbool.h>
#include <stdint.h>

struct pb_file_holes {
    struct pb_file_part file; /* its file position changes */
    bool any;                 /* the file has a hole */
    uint64_t from, to;        /* the current segment */
    bool is_hole;             /* true if the current segment is a hole */
};

/* The state of a range. */
struct pb_holes_found {
    bool data;     /* some bytes were written */
    bool hole;     /* some were not */
    bool reserved; /* some of those have reserved space; only with ask_reserved */
};

void pb_file_holes_init(struct pb_file_holes *holes, const struct pb_file_part *file);
/* Examines a range. ask_reserved: costs one more call per hole. */
struct pb_holes_found pb_file_holes_look(struct pb_file_holes *holes, uint64_t at, uint64_t bytes,
                                         bool ask_reserved);
/* Returns true if at least `enough` bytes of the file were written. */
bool pb_file_holes_data(struct pb_file_holes *holes, uint64_t enough);
#endif
