/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CCSDS_PACKETS_H
#define PB_CCSDS_PACKETS_H
/* Cuts the data fields of a virtual channel into space packets (CCSDS 133.0-B). Encapsulation
 * packets (133.1-B), which fill frames, are skipped. One thread. */
#include "service/ccsds/counts.h"

#include <stdbool.h>

#define PB_PACKET_HEADER     6
#define PB_PACKET_BYTES_MAX  65542
#define PB_PACKET_APIDS      2048
#define PB_PACKET_APID_IDLE  2047
#define PB_PACKET_NO_HEADER  0x7FF /* first header pointer: no packet begins in the field */
#define PB_PACKET_IDLE_FIELD 0x7FE /* first header pointer: the field is idle data */

/* Receives whole packets; packet is valid for the call. */
typedef void pb_packet_deliver(void *user, const uint8_t *packet, size_t bytes);

struct pb_packets {
    size_t most_bytes;  /* longer packets are skipped */
    bool is_stream;     /* packets without frames, in which a header is searched octet by octet */
    const bool *wanted; /* APIDs at which the search ends; only with is_stream */
    pb_packet_deliver *deliver;
    void *user;
    struct pb_ccsds_counts *counts;

    uint8_t *packet;
    size_t have,
        total; /* octets of the packet received so far; total 0: its header is incomplete */
    bool is_searching;
};

/* Members before `packet` are set by the caller. 0 or -ENOMEM. */
int pb_packets_init(struct pb_packets *packets);
void pb_packets_fini(struct pb_packets *packets); /* all-zero memory is allowed */
/* Takes the data field of a frame. first: its first header pointer. continues: the frame before it
 * in the channel was taken as well. */
void pb_packets_frame(struct pb_packets *packets, const uint8_t *data, size_t bytes, unsigned first,
                      bool continues);
/* Takes octets without frames, with is_stream. */
void pb_packets_feed(struct pb_packets *packets, const uint8_t *data, size_t bytes);
/* Drops a packet that is incomplete. */
void pb_packets_cut(struct pb_packets *packets);
#endif
