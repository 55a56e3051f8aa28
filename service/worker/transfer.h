/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TRANSFER_H
#define PB_TRANSFER_H
/* Files between the two workers of a run whose home is another node (away.h): a line that describes
 * the file, its bytes, and a line with the checksum that the sender computed while it read them.
 * The receiver computes it again from the bytes that it writes. One thread. */
#include "config/base/err.h"
#include "config/base/json_writer.h"
#include "pipeline/io/checksum.h"
#include "service/base/line_reader.h"

#include <stdint.h>

/* Called repeatedly with the number of bytes of the file so far. */
struct pb_transfer_wait {
    void (*alive)(void *user, uint64_t bytes); /* NULL = not called */
    void *user;
};

/* Sends the header (taken; a complete object), then `bytes` bytes of the open file and the
 * checksum. 0; -EPIPE: the other end is gone; another negative errno: the file cannot be read, or
 * has become shorter, and the connection cannot be used any more. */
int pb_transfer_send(int socket, struct pb_json *header, int file, int64_t bytes,
                     enum pb_checksum kind, const struct pb_transfer_wait *wait);
/* Receives what follows a header into the open file. 0 and *out_sum; -EPIPE: the other end is gone;
 * -EBADMSG: the checksums differ; another negative errno: the file cannot be written. */
int pb_transfer_receive(struct pb_line_reader *reader, int file, int64_t bytes,
                        enum pb_checksum kind, const struct pb_transfer_wait *wait,
                        char out_sum[PB_CHECKSUM_TEXT_BYTES]);
/* Sends a complete object (taken) as a line. Returns false if the other end is gone. */
bool pb_transfer_line(int socket, struct pb_json *json);
/* Reads the next line, valid until the next call; NULL: the other end is gone. */
char *pb_transfer_next(struct pb_line_reader *reader, size_t *out_bytes);
#endif
