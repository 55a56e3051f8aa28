/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_FILE_PART_H
#define PB_FILE_PART_H
/* A plain file, or a part of one that is a file itself: a member that is stored uncompressed in
 * an archive. Offsets of readers count from its beginning. Thread: any. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct pb_file_part {
    int fd;        /* borrowed */
    uint64_t base; /* its offset in the file; 0 = the complete file */
    uint64_t bytes;
    /* Bytes in place of the first head_bytes of it; borrowed. NULL: none are replaced. */
    const unsigned char *head;
    size_t head_bytes;
    bool is_growing; /* ranges that are not written yet will be: they are no holes */
};

/* Reads up to `bytes` at `at`. Returns the count, fewer only at the end of the part or the file,
 * or a negative errno. done: count of bytes read before an error; may be NULL. */
ssize_t pb_file_part_read(const struct pb_file_part *part, uint64_t at, void *out, size_t bytes,
                          size_t *done);
#endif
