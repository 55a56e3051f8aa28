/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/io/file_part.h"

#include "pipeline/io/io_watch.h"

#include <errno.h>
#include <unistd.h>

ssize_t pb_file_part_read(const struct pb_file_part *part, uint64_t at, void *out, size_t bytes,
                          size_t *done)
{
    size_t n_done = 0;
    ssize_t n = 1;
    if (at >= part->bytes || part->base > (uint64_t)INT64_MAX - part->bytes)
        bytes = 0; /* past the end */
    else if (bytes > part->bytes - at)
        bytes = (size_t)(part->bytes - at);
    while (n_done < bytes && n != 0) {
        pb_io_begin();
        n = pread(part->fd, (char *)out + n_done, bytes - n_done,
                  (off_t)(part->base + at + n_done));
        pb_io_end();
        if (n < 0 && errno != EINTR)
            break;
        n_done += n > 0 ? (size_t)n : 0;
    }
    for (size_t i = 0; i < n_done && at + i < part->head_bytes; i++)
        ((unsigned char *)out)[i] = part->head[at + i];
    if (done != NULL)
        *done = n_done;
    return n < 0 && n_done < bytes ? -errno : (ssize_t)n_done;
}
