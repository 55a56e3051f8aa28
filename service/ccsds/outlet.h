/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CCSDS_OUTLET_H
#define PB_CCSDS_OUTLET_H
/* Writes lines into a stream of pushbroomd, in groups. A stream that the service ended is opened
 * again; lines that wait for it are kept up to a group, and the rest is counted. One thread. */
#include "config/base/err.h"

#include <signal.h>
#include <stddef.h>
#include <stdint.h>

struct pb_ccsds_counts;
struct pb_downlink_lines;
struct pb_outlet;

struct pb_outlet_options {
    const char *stream;     /* name; NULL = lines are only counted */
    const char *socket;     /* status socket of pushbroomd; streams.sock is next to it */
    const char *token_file; /* NULL = rights by the user */
    uint32_t group_lines;   /* 1 to PB_STREAM_GROUP_LINES_MAX */
    int64_t patience_ms;    /* time without the stream before lines are dropped */
    const struct pb_downlink_lines *lines;
    struct pb_ccsds_counts *counts;
    const volatile sig_atomic_t *stop; /* not 0: no wait continues */
};

/* Opens the stream. The options' pointers are borrowed while the outlet exists. 0, or a negative
 * errno with its reason: service.unreachable, config.file, memory. */
int pb_outlet_open(const struct pb_outlet_options *options, struct pb_outlet **out_outlet,
                   struct pb_err *err);
/* Takes a line (pb_line_deliver); waits while the stream is full. */
void pb_outlet_line(void *outlet, uint64_t line, const void *pixels, int64_t time_ns);
/* Publishes the lines of a group that is not full. */
void pb_outlet_flush(struct pb_outlet *outlet);
/* Publishes the rest, ends the scene and frees the outlet (NULL is allowed). 0, or a negative errno
 * if the service did not take all lines. */
int pb_outlet_close(struct pb_outlet *outlet);
#endif
