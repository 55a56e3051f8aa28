/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CCSDS_FRAMES_H
#define PB_CCSDS_FRAMES_H
/* Finds transfer frames in octets, checks them, puts those of each virtual channel in order and
 * cuts them into packets. AOS: CCSDS 732.0-B; TM: 132.0-B; marker and pseudo-random sequence:
 * 131.0-B. Memory is allocated by create alone. One thread. */
#include "service/ccsds/packets.h"

struct pb_downlink_frames;
struct pb_frames;

struct pb_frames_options {
    const struct pb_downlink_frames *format; /* borrowed while the frames exist */
    size_t packet_bytes;                     /* longer packets are skipped */
    const bool *wanted;                      /* PB_PACKET_APIDS; those with lines. Borrowed */
    pb_packet_deliver *deliver;
    void *user;
    struct pb_ccsds_counts *counts; /* borrowed */
};

/* 0 or -ENOMEM. */
int pb_frames_create(const struct pb_frames_options *options, struct pb_frames **out_frames);
void pb_frames_destroy(struct pb_frames *frames); /* NULL is allowed */
/* Takes octets of a file or pipe, in pieces of any size. */
void pb_frames_feed(struct pb_frames *frames, const uint8_t *data, size_t bytes);
/* Takes a datagram: whole frames, with or without markers, or whole packets. False: of another
 * size; nothing of it was used. */
bool pb_frames_datagram(struct pb_frames *frames, const uint8_t *data, size_t bytes);
/* Takes what is left of a file, and gives up all that is missing. */
void pb_frames_flush(struct pb_frames *frames);

/* CRC-16 of CCSDS: polynomial 1021, all ones at the start. 0 over data with its checksum. */
uint16_t pb_ccsds_crc(const uint8_t *data, size_t bytes);
/* Octet `at` of the pseudo-random sequence. */
uint8_t pb_ccsds_random(size_t at);
#endif
