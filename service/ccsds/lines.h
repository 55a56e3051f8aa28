/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CCSDS_LINES_H
#define PB_CCSDS_LINES_H
/* Makes lines of packets: puts the packets of each APID in order, joins segments, and waits for
 * all bands of a line. A line with a part missing is never delivered. Memory is allocated by create
 * alone. One thread. */
#include "service/ccsds/counts.h"

#include <stdbool.h>

struct pb_downlink;
struct pb_lines;

#define PB_LINES_NO_TIME INT64_MIN

/* Receives complete lines. pixels: all bands of the line, one after the other, in the order of
 * `bands`, in the machine's order of octets; valid for the call. line: grows, unless the counter
 * began again. time_ns: nanoseconds since 1970 UTC, or PB_LINES_NO_TIME. */
typedef void pb_line_deliver(void *user, uint64_t line, const void *pixels, int64_t time_ns);

/* downlink is borrowed while the lines exist. 0, -ENOMEM or -E2BIG: the lines that may be
 * incomplete at a time need more than PB_LINES_BYTES_MAX. */
#define PB_LINES_BYTES_MAX (512u << 20)
int pb_lines_create(const struct pb_downlink *downlink, pb_line_deliver *deliver, void *user,
                    struct pb_ccsds_counts *counts, struct pb_lines **out_lines);
void pb_lines_destroy(struct pb_lines *lines); /* NULL is allowed */
/* Limit of the packets with lines, in octets. */
size_t pb_lines_packet_bytes(const struct pb_lines *lines);
/* PB_PACKET_APIDS flags: APIDs with bands. */
const bool *pb_lines_wanted(const struct pb_lines *lines);
/* Takes a space packet of at most pb_lines_packet_bytes (pb_packet_deliver). */
void pb_lines_packet(void *lines, const uint8_t *packet, size_t bytes);
/* Gives up packets and lines that are incomplete. */
void pb_lines_flush(struct pb_lines *lines);

/* Time of a time code (CCSDS 301.0-B) at `code`; PB_LINES_NO_TIME: it is no time. */
struct pb_downlink_time;
int64_t pb_ccsds_time(const struct pb_downlink_time *format, const uint8_t *code);
size_t pb_ccsds_time_bytes(const struct pb_downlink_time *format);
#endif
