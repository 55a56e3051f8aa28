/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_HANDSHAKE_H
#define PB_HANDSHAKE_H
/* Data that a writer of a stream sends: the request of its connection, one JSON object in one line,
 * and the headers of its groups. Both may be hostile. Pure. Thread: any. */
#include "kernels/view.h"
#include "service/stream/writer.h"

#define PB_HANDSHAKE_WHY_BYTES   200
#define PB_HANDSHAKE_TOKEN_BYTES 512

struct pb_stream_request {
    char stream[PB_STREAM_NAME_BYTES];
    char token[PB_HANDSHAKE_TOKEN_BYTES]; /* "" = absent */
    struct pb_stream_format format;
    enum pb_type type; /* format.type as a type of pixels */
    bool has_transform;
    double transform[6];
    uint16_t epsg; /* 0 = unknown */
};

/* Reads a request without its line feed. Returns 0; -EINVAL and the reason in `why`; -ENOMEM. */
int pb_handshake_parse(const char *line, size_t n, struct pb_stream_request *out,
                       char why[PB_HANDSHAKE_WHY_BYTES]);
/* Prints the answer to a refused request: code is one word. Returns its length with the line feed.
 */
size_t pb_handshake_refuse(const char *code, const char *message,
                           char out[PB_STREAM_HANDSHAKE_BYTES]);
/* Copies the header of a group, which the writer may change at any time, and its times to
 * out_times_ns (format->group_lines; 0 = unknown). Returns 0; -EINVAL: the header makes no sense,
 * reason in `why`. */
int pb_handshake_group(const void *slot, const struct pb_stream_format *format,
                       struct pb_stream_group *out, int64_t *out_times_ns,
                       char why[PB_HANDSHAKE_WHY_BYTES]);
#endif
