/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* The length of a packet is only believed if it agrees with the first header pointers of the frames
 * that it reaches: a packet that was joined across frames of which some are missing is dropped. */
#include "service/ccsds/packets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define VERSION_SPACE         0
#define VERSION_ENCAPSULATION 7

int pb_packets_init(struct pb_packets *packets)
{
    packets->have = packets->total = 0;
    packets->is_searching = false;
    packets->packet = malloc(packets->most_bytes);
    return packets->packet != NULL ? 0 : -ENOMEM;
}

void pb_packets_fini(struct pb_packets *packets)
{
    free(packets->packet);
    packets->packet = NULL;
}

void pb_packets_cut(struct pb_packets *packets)
{
    packets->counts->packets_cut += packets->have > 0;
    packets->have = packets->total = 0;
}

/* Octets of the header, by its first octet; 0: of an unknown version. */
static size_t header_bytes(uint8_t first)
{
    static const size_t encapsulation[] = {1, 2, 4, 8};
    if (first >> 5 == VERSION_SPACE)
        return PB_PACKET_HEADER;
    return first >> 5 == VERSION_ENCAPSULATION ? encapsulation[first & 3] : 0;
}

/* Octets of the packet, by its complete header. */
static size_t packet_bytes(const uint8_t *header, size_t n_header)
{
    if (header[0] >> 5 == VERSION_SPACE)
        return (size_t)(header[4] << 8 | header[5]) + 1 + PB_PACKET_HEADER;
    size_t total = n_header == 1 ? 1 : 0;
    for (size_t i = n_header < 8 ? n_header / 2 : 4; n_header > 1 && i < n_header; i++)
        total = total << 8 | header[i];
    return total >= n_header ? total : n_header;
}

static unsigned apid_of(const uint8_t *packet)
{
    return (unsigned)(packet[0] & 7) << 8 | packet[1];
}

static void finish(struct pb_packets *packets)
{
    const bool is_space = packets->packet[0] >> 5 == VERSION_SPACE;
    const bool is_idle = !is_space || apid_of(packets->packet) == PB_PACKET_APID_IDLE;
    const size_t bytes = packets->total;
    packets->have = packets->total = 0;
    packets->counts->packets++;
    if (is_idle)
        packets->counts->packets_idle++;
    else if (bytes > packets->most_bytes)
        packets->counts->packets_other++;
    else
        packets->deliver(packets->user, packets->packet, bytes);
}

/* Takes at most `most` octets into the packet, whose header needs n of them or whose end does. */
static size_t take(struct pb_packets *packets, const uint8_t *data, size_t most, size_t n)
{
    n = n < most ? n : most;
    if (packets->have < packets->most_bytes) {
        const size_t room = packets->most_bytes - packets->have;
        memcpy(packets->packet + packets->have, data, n < room ? n : room);
    }
    packets->have += n;
    return n;
}

/* Takes octets of the header. Returns their number; 0: the version is unknown, and the packet is
 * dropped. */
static size_t take_header(struct pb_packets *packets, const uint8_t *data, size_t bytes)
{
    const size_t n_header = header_bytes(packets->have > 0 ? packets->packet[0] : data[0]);
    if (n_header == 0) {
        packets->have = 0;
        return 0;
    }
    const size_t n = take(packets, data, bytes, n_header - packets->have);
    if (packets->have == n_header)
        packets->total = packet_bytes(packets->packet, n_header);
    return n;
}

/* Takes octets of one packet, and delivers it when it is complete. */
static size_t take_packet(struct pb_packets *packets, const uint8_t *data, size_t bytes)
{
    size_t n = 0;
    if (packets->total == 0) {
        n = take_header(packets, data, bytes);
        if (n == 0)
            return 0;
    }
    if (packets->total > 0 && n < bytes)
        n += take(packets, data + n, bytes - n, packets->total - packets->have);
    if (packets->total > 0 && packets->have == packets->total)
        finish(packets);
    return n;
}

/* True if the packet that is incomplete ends where the next one begins: `gap` octets of it are
 * left in this frame, and it ends there (is_end) or later. */
static bool fits(struct pb_packets *packets, const uint8_t *data, size_t gap, bool is_end)
{
    uint8_t header[8];
    size_t total = packets->total;
    if (total == 0) {
        const size_t n_header = header_bytes(packets->packet[0]);
        if (packets->have + gap < n_header)
            return !is_end;
        memcpy(header, packets->packet, packets->have);
        memcpy(header + packets->have, data, n_header - packets->have);
        total = packet_bytes(header, n_header);
    }
    return is_end ? total == packets->have + gap : total >= packets->have + gap;
}

void pb_packets_frame(struct pb_packets *packets, const uint8_t *data, size_t bytes, unsigned first,
                      bool continues)
{
    const bool is_end = first != PB_PACKET_NO_HEADER;
    const size_t begin = is_end ? first : bytes;
    if (!continues || first == PB_PACKET_IDLE_FIELD || begin > bytes)
        pb_packets_cut(packets);
    if (first == PB_PACKET_IDLE_FIELD)
        return;
    if (begin > bytes) { /* the pointer is damaged */
        packets->counts->packets_cut++;
        return;
    }
    if (packets->have > 0 && !fits(packets, data, begin, is_end))
        pb_packets_cut(packets);
    if (packets->have > 0)
        for (size_t at = 0; at < begin;)
            at += take_packet(packets, data + at, begin - at);
    for (size_t at = begin; at < bytes;) {
        const size_t n = take_packet(packets, data + at, bytes - at);
        packets->counts->packets_cut += n == 0; /* no header: the next frame has a pointer */
        at = n > 0 ? at + n : bytes;
    }
}

/* True at octets that look like the header of a packet with lines. */
static bool is_header(const struct pb_packets *packets, const uint8_t *data)
{
    return data[0] >> 5 == VERSION_SPACE && packets->wanted[apid_of(data)] &&
           packet_bytes(data, PB_PACKET_HEADER) <= packets->most_bytes;
}

void pb_packets_feed(struct pb_packets *packets, const uint8_t *data, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        if (packets->is_searching) { /* a header that two calls share is not found */
            while (at + PB_PACKET_HEADER <= bytes && !is_header(packets, data + at))
                at++, packets->counts->octets_skipped++;
            packets->is_searching = at + PB_PACKET_HEADER > bytes;
            packets->counts->octets_skipped += packets->is_searching ? bytes - at : 0;
            if (packets->is_searching)
                return;
        }
        const size_t n = take_packet(packets, data + at, bytes - at);
        packets->is_searching = n == 0;
        at += n;
    }
}
