/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* A file is searched for markers octet by octet. A marker that was not expected counts if the frame
 * after it has a right checksum, or if the next marker is where it should be. A frame at the
 * expected place is taken even if its marker is damaged, by the same rule. */
#include "service/ccsds/frames.h"

#include "config/downlink.h"
#include "service/ccsds/reorder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MARKER       0x1ACFFC1Du
#define MARKER_BYTES 4
#define MARKER_WRONG 3 /* bits of a marker at its expected place that may be wrong */
#define HEADER_BYTES 6
#define CRC_BYTES    2
#define OCF_BYTES    4
#define CHANNELS     64
#define CHANNEL_IDLE 63 /* aos */
#define RANDOM_BYTES 255
#define BUFFER_BYTES 65536

/* A virtual channel. */
struct channel {
    struct pb_frames *frames;
    struct pb_reorder reorder;
    struct pb_packets packets;
    bool is_used;
};

struct pb_frames {
    struct pb_frames_options options;
    size_t length;       /* octets of a frame */
    size_t marker_bytes; /* 0 or 4 */
    struct channel channels[CHANNELS];
    uint8_t *frame; /* one frame, without the pseudo-random sequence */
    uint8_t *buffer;
    size_t n_buffer, most_buffer;
    bool is_locked; /* the next frame is expected at the start of the buffer */
};

static void fill_table(uint16_t table[256])
{
    for (unsigned n = 0; n < 256; n++) {
        unsigned value = n << 8;
        for (int bit = 0; bit < 8; bit++)
            value = (value & 0x8000) != 0 ? value << 1 ^ 0x1021 : value << 1;
        table[n] = (uint16_t)value;
    }
}

uint16_t pb_ccsds_crc(const uint8_t *data, size_t bytes)
{
    static uint16_t table[256];
    unsigned crc = 0xFFFF;
    if (table[1] == 0)
        fill_table(table);
    for (size_t i = 0; i < bytes; i++)
        crc = (crc << 8 ^ table[(crc >> 8 ^ data[i]) & 0xFF]) & 0xFFFF;
    return (uint16_t)crc;
}

/* The sequence of 255 bits repeats after 255 octets. */
static void fill_random(uint8_t sequence[RANDOM_BYTES])
{
    unsigned state = 0xFF; /* bit 7 is the next output */
    for (size_t i = 0; i < RANDOM_BYTES; i++) {
        unsigned octet = 0;
        for (int bit = 0; bit < 8; bit++) {
            octet = octet << 1 | state >> 7;
            const unsigned next = (state >> 7 ^ state >> 4 ^ state >> 2 ^ state) & 1;
            state = (state << 1 | next) & 0xFF;
        }
        sequence[i] = (uint8_t)octet;
    }
}

static const uint8_t *random_octets(void)
{
    static uint8_t sequence[RANDOM_BYTES];
    if (sequence[0] == 0)
        fill_random(sequence);
    return sequence;
}

uint8_t pb_ccsds_random(size_t at)
{
    return random_octets()[at % RANDOM_BYTES];
}

/* --- one frame -------------------------------------------------------------------------------- */

static unsigned word_at(const uint8_t *data)
{
    return (unsigned)data[0] << 8 | data[1];
}

/* Number of wrong bits of the marker. */
static int wrong_bits(const uint8_t *data)
{
    const uint32_t word = (uint32_t)word_at(data) << 16 | word_at(data + 2);
    return __builtin_popcount(word ^ MARKER);
}

/* Copies a frame without the pseudo-random sequence. Returns false if its checksum is wrong. */
static bool open_frame(struct pb_frames *frames, const uint8_t *data)
{
    const struct pb_downlink_frames *format = frames->options.format;
    memcpy(frames->frame, data, frames->length);
    if (format->is_randomized) {
        const uint8_t *sequence = random_octets();
        for (size_t i = 0; i < frames->length; i++)
            frames->frame[i] ^= sequence[i % RANDOM_BYTES];
    }
    return !format->has_crc || pb_ccsds_crc(frames->frame, frames->length) == 0;
}

/* Header of a frame: the fields that both kinds have. */
struct header {
    unsigned version, spacecraft, channel;
    uint32_t count;
};

static struct header read_header(enum pb_frame_kind kind, const uint8_t *frame)
{
    const unsigned first = word_at(frame);
    if (kind == PB_FRAMES_AOS)
        return (struct header){.version = first >> 14,
                               .spacecraft = first >> 6 & 0xFF,
                               .channel = first & 0x3F,
                               .count = word_at(frame + 2) << 8 | frame[4]};
    return (struct header){.version = first >> 14,
                           .spacecraft = first >> 4 & 0x3FF,
                           .channel = first >> 1 & 7,
                           .count = frame[3]};
}

/* Takes an opened frame to its channel. */
static void take_frame(struct pb_frames *frames)
{
    const struct pb_downlink_frames *format = frames->options.format;
    struct pb_ccsds_counts *counts = frames->options.counts;
    const struct header header = read_header(format->kind, frames->frame);
    const bool is_aos = format->kind == PB_FRAMES_AOS;
    const unsigned version = is_aos ? 1 : 0;
    if (header.version == version && is_aos && header.channel == CHANNEL_IDLE)
        counts->frames_idle++;
    else if (header.version != version || !frames->channels[header.channel].is_used ||
             (format->has_spacecraft && header.spacecraft != (unsigned)format->spacecraft))
        counts->frames_foreign++;
    else
        pb_reorder_push(&frames->channels[header.channel].reorder, header.count, frames->frame,
                        frames->length);
}

/* Takes a frame, which was opened with this result. */
static void receive_frame(struct pb_frames *frames, bool is_right)
{
    frames->options.counts->frames++;
    if (is_right)
        take_frame(frames);
    else
        frames->options.counts->frames_damaged++;
}

/* Cuts a frame of a channel into packets, in the order of its counter (pb_reorder_deliver). */
static void deliver_frame(void *user, const uint8_t *frame, size_t bytes, bool continues)
{
    struct channel *const channel = user;
    const struct pb_downlink_frames *format = channel->frames->options.format;
    size_t begin = HEADER_BYTES, end = bytes - (format->has_crc ? CRC_BYTES : 0);
    unsigned first;
    if (format->kind == PB_FRAMES_AOS) {
        begin += (size_t)format->insert_zone + (format->has_header_crc ? CRC_BYTES : 0);
        end -= format->has_ocf ? OCF_BYTES : 0;
        first = begin + 2 <= end ? word_at(frame + begin) & 0x7FF : 0;
        begin += 2;
    } else {
        const unsigned status = word_at(frame + 4);
        first = status & 0x7FF;
        end -= (frame[1] & 1) != 0 ? OCF_BYTES : 0;
        if ((status & 0x8000) != 0) /* the secondary header has its length less one */
            begin += (size_t)(frame[HEADER_BYTES] & 0x3F) + 1;
        if ((status & 0x4000) != 0) /* synchronised data are no packets */
            begin = bytes;
    }
    if (begin >= end) {
        channel->frames->options.counts->frames_foreign++;
        pb_packets_cut(&channel->packets);
        return;
    }
    channel->frames->options.counts->frames_idle += first == PB_PACKET_IDLE_FIELD;
    pb_packets_frame(&channel->packets, frame + begin, end - begin, first, continues);
}

/* --- octets ----------------------------------------------------------------------------------- */

/* True if a marker is `at` octets after the start of the buffer; *out_known false: the buffer ends
 * before it. */
static bool has_marker(const struct pb_frames *frames, size_t at, size_t start, bool *out_known)
{
    *out_known = start + at + MARKER_BYTES <= frames->n_buffer;
    return *out_known && wrong_bits(frames->buffer + start + at) <= MARKER_WRONG;
}

/* Takes the frame at `start` of the buffer, which has all of its octets. Returns the octets used;
 * 0: more are needed to decide. is_last: no more will follow. */
static size_t take_at(struct pb_frames *frames, size_t start, bool is_last)
{
    const size_t step = frames->marker_bytes + frames->length;
    const uint8_t *data = frames->buffer + start;
    const int wrong = frames->marker_bytes > 0 ? wrong_bits(data) : 0;
    const bool is_marked = wrong <= (frames->is_locked ? MARKER_WRONG : 0);
    const bool has_crc = frames->options.format->has_crc;
    if (!is_marked && !frames->is_locked)
        return 1;
    const bool is_right = open_frame(frames, data + frames->marker_bytes);
    const bool is_sure =
        frames->marker_bytes == 0 || (has_crc ? is_right : is_marked && frames->is_locked);
    bool is_known, is_next = has_marker(frames, step, start, &is_known);
    if (!is_sure && !is_known && !is_last)
        return 0;
    is_next = is_next || (is_last && !is_known && start + step == frames->n_buffer);
    frames->is_locked = is_sure || is_next;
    if (frames->is_locked || is_marked) /* marked only: octets of it are missing, or were added */
        receive_frame(frames, is_right && frames->is_locked);
    return frames->is_locked ? step : 1;
}

static void take_buffer(struct pb_frames *frames, bool is_last)
{
    const size_t step = frames->marker_bytes + frames->length;
    size_t at = 0, n = 1;
    while (n > 0 && at + step <= frames->n_buffer) {
        n = take_at(frames, at, is_last);
        at += n;
        frames->options.counts->octets_skipped += n == 1;
    }
    memmove(frames->buffer, frames->buffer + at, frames->n_buffer - at);
    frames->n_buffer -= at;
}

void pb_frames_feed(struct pb_frames *frames, const uint8_t *data, size_t bytes)
{
    if (frames->options.format->kind == PB_FRAMES_NONE) {
        pb_packets_feed(&frames->channels[0].packets, data, bytes);
        return;
    }
    while (bytes > 0) {
        const size_t room = frames->most_buffer - frames->n_buffer;
        const size_t n = bytes < room ? bytes : room;
        memcpy(frames->buffer + frames->n_buffer, data, n);
        frames->n_buffer += n;
        data += n;
        bytes -= n;
        take_buffer(frames, false);
    }
}

bool pb_frames_datagram(struct pb_frames *frames, const uint8_t *data, size_t bytes)
{
    struct pb_packets *packets = &frames->channels[0].packets;
    if (frames->options.format->kind == PB_FRAMES_NONE) {
        packets->is_searching = false;
        pb_packets_cut(packets);
        pb_packets_feed(packets, data, bytes);
        packets->is_searching = false;
        pb_packets_cut(packets);
        return bytes >= PB_PACKET_HEADER;
    }
    const size_t marked = MARKER_BYTES + frames->length;
    const bool is_marked = bytes > 0 && frames->marker_bytes > 0 && bytes % marked == 0 &&
                           wrong_bits(data) <= MARKER_WRONG;
    const size_t skip = is_marked ? MARKER_BYTES : 0, step = skip + frames->length;
    if (bytes == 0 || bytes % step != 0)
        return false;
    for (size_t at = 0; at < bytes; at += step)
        receive_frame(frames, open_frame(frames, data + at + skip));
    return true;
}

void pb_frames_flush(struct pb_frames *frames)
{
    take_buffer(frames, true);
    frames->options.counts->octets_skipped += frames->n_buffer;
    frames->n_buffer = 0;
    frames->is_locked = false;
    for (int i = 0; i < CHANNELS; i++) {
        if (!frames->channels[i].is_used)
            continue;
        pb_reorder_flush(&frames->channels[i].reorder);
        if (frames->options.format->kind == PB_FRAMES_NONE)
            pb_packets_cut(&frames->channels[i].packets);
    }
}

/* --- memory ----------------------------------------------------------------------------------- */

static bool is_channel(const struct pb_downlink_frames *format, int number)
{
    bool found =
        format->channels.n == 0 && number < (format->kind == PB_FRAMES_TM ? 8 : CHANNEL_IDLE);
    for (size_t i = 0; i < format->channels.n; i++)
        found = found || format->channels.items[i].num == (double)number;
    return format->kind == PB_FRAMES_NONE ? number == 0 : found;
}

static int open_channel(struct pb_frames *frames, struct channel *channel)
{
    const struct pb_frames_options *options = &frames->options;
    struct pb_ccsds_counts *counts = options->counts;
    const bool is_stream = options->format->kind == PB_FRAMES_NONE;
    channel->frames = frames;
    channel->is_used = true;
    channel->packets = (struct pb_packets){.most_bytes = options->packet_bytes,
                                           .is_stream = is_stream,
                                           .wanted = options->wanted,
                                           .deliver = options->deliver,
                                           .user = options->user,
                                           .counts = counts};
    channel->reorder =
        (struct pb_reorder){.modulus = options->format->kind == PB_FRAMES_AOS ? 1u << 24 : 1u << 8,
                            .window = is_stream ? 0 : (uint32_t)options->format->reorder,
                            .most_bytes = is_stream ? 1 : frames->length,
                            .deliver = deliver_frame,
                            .user = channel,
                            .lost = &counts->frames_lost,
                            .duplicate = &counts->frames_duplicate,
                            .late = &counts->frames_late,
                            .jumps = &counts->frames_jumps};
    const int rc = pb_packets_init(&channel->packets);
    return rc != 0 ? rc : pb_reorder_init(&channel->reorder);
}

int pb_frames_create(const struct pb_frames_options *options, struct pb_frames **out_frames)
{
    struct pb_frames *frames = calloc(1, sizeof *frames);
    int rc = frames != NULL ? 0 : -ENOMEM;
    if (frames != NULL) {
        frames->options = *options;
        frames->length = (size_t)options->format->length;
        frames->marker_bytes = options->format->has_sync ? MARKER_BYTES : 0;
        frames->most_buffer = BUFFER_BYTES + 2 * (frames->length + 2 * MARKER_BYTES);
        frames->frame = malloc(frames->length + 1);
        frames->buffer = malloc(frames->most_buffer);
        rc = frames->frame != NULL && frames->buffer != NULL ? 0 : -ENOMEM;
    }
    for (int i = 0; rc == 0 && i < CHANNELS; i++)
        if (is_channel(options->format, i))
            rc = open_channel(frames, &frames->channels[i]);
    if (rc != 0)
        pb_frames_destroy(frames);
    else
        *out_frames = frames;
    return rc;
}

void pb_frames_destroy(struct pb_frames *frames)
{
    if (frames == NULL)
        return;
    for (int i = 0; i < CHANNELS; i++) {
        pb_packets_fini(&frames->channels[i].packets);
        pb_reorder_fini(&frames->channels[i].reorder);
    }
    free(frames->frame);
    free(frames->buffer);
    free(frames);
}
