/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* The receiver of CCSDS data: the first octet chooses a description, the second the size of the
 * pieces in which the rest is fed (0: one datagram). Random frames have wrong checksums: a flag of
 * the first octet makes them right. Required: numbers of lines rise, unless the counter began
 * again, and the counts of lines agree. */
#include "config/downlink.h"
#include "config/yaml/report.h"
#include "service/ccsds/frames.h"
#include "service/ccsds/lines.h"
#include "tests/fuzz/fuzz_check.h"

#include <string.h>

#define TWO_BANDS "lines: {bands: {R: 1, G: 2}, samples: 5, counter_at: 8, counter_bits: 8, "
#define CDS       "time: {code: cds, at: 6, days: 2, epoch: '1958-01-01T00:00:00Z'}\n"

static const char *const descriptions[] = {
    "frames: {length: 32}\n" TWO_BANDS "pixels_at: 9}\n",
    "frames: {length: 40, sync: false, randomized: true, ocf: true, header_crc: true, insert_zone: "
    "2, reorder: 2}\n" TWO_BANDS "pixels_at: 9, bits: 12, crc: true}\n",
    "frames: {kind: tm, length: 36, crc: false, reorder: 64}\n" TWO_BANDS
    "pixels_at: 9, type: float64}\n" CDS,
    "frames: {kind: none, reorder: 3}\n" TWO_BANDS "pixels_at: 10, order: little, type: uint32}\n",
    "frames: {kind: tm, length: 24, sync: false, crc: false, reorder: 0}\n"
    "lines: {bands: {R: 1, G: 1, B: 2}, samples: 3, counter_at: 6, counter_bits: 32, pixels_at: "
    "10, type: uint8, bits: 3}\n"
    "time: {epoch: '1958-01-01T00:00:00Z', leap_seconds: 37, at: 6}\n",
};
#define DESCRIPTIONS (sizeof descriptions / sizeof *descriptions)

struct state {
    uint64_t last, n;
    bool has_last;
    uint64_t scenes;
    const struct pb_ccsds_counts *counts;
    size_t bytes;
    uint8_t copy[256];
};

static void take_line(void *user, uint64_t line, const void *pixels, int64_t time_ns)
{
    struct state *const state = user;
    require(!state->has_last || line > state->last || state->counts->scenes > state->scenes,
            "lines out of order");
    require(time_ns == PB_LINES_NO_TIME || time_ns > INT64_MIN / 2, "a time from nowhere");
    memcpy(state->copy, pixels, state->bytes); /* all of them can be read */
    state->last = line;
    state->has_last = true;
    state->scenes = state->counts->scenes;
    state->n++;
}

/* Makes the checksums of frames right, at the places where frames without faults would be. */
static void mend(const struct pb_downlink_frames *format, uint8_t *data, size_t bytes)
{
    const size_t marker = format->has_sync ? 4 : 0, length = (size_t)format->length;
    static const uint8_t word[4] = {0x1A, 0xCF, 0xFC, 0x1D};
    for (size_t at = 0; length > 0 && at + marker + length <= bytes; at += marker + length) {
        uint8_t frame[64];
        memcpy(data + at, word, marker);
        for (size_t i = 0; i < length; i++)
            frame[i] = data[at + marker + i] ^ (format->is_randomized ? pb_ccsds_random(i) : 0);
        const uint16_t crc = pb_ccsds_crc(frame, length - 2);
        frame[length - 2] = (uint8_t)(crc >> 8);
        frame[length - 1] = (uint8_t)crc;
        for (size_t i = length - 2; format->has_crc && i < length; i++)
            data[at + marker + i] = frame[i] ^ (format->is_randomized ? pb_ccsds_random(i) : 0);
    }
}

static void receive(struct pb_frames *frames, const uint8_t *data, size_t bytes, size_t piece)
{
    if (piece == 0)
        (void)pb_frames_datagram(frames, data, bytes);
    for (size_t n; piece > 0 && bytes > 0; data += n, bytes -= n) {
        n = bytes < piece ? bytes : piece;
        pb_frames_feed(frames, data, n);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static struct pb_err_list errors;
    static struct pb_downlink *downlinks[DESCRIPTIONS];
    static uint8_t copy[4096];
    if (bytes < 2 || bytes - 2 > sizeof copy)
        return 0;
    const size_t choice = (data[0] & 0x7F) % DESCRIPTIONS;
    const char *text = descriptions[choice];
    struct pb_downlink **downlink = &downlinks[choice];
    require(*downlink != NULL || pb_downlink_parse(text, strlen(text), "d", &errors, downlink) == 0,
            "a description is wrong");
    struct pb_ccsds_counts counts = {0};
    struct state state = {.counts = &counts};
    struct pb_lines *lines = NULL;
    struct pb_frames *frames = NULL;
    require(pb_lines_create(*downlink, take_line, &state, &counts, &lines) == 0, "no memory");
    state.bytes = (*downlink)->lines.bands.n * (size_t)(*downlink)->lines.samples *
                  pb_pixel_type_bytes((*downlink)->lines.type);
    const struct pb_frames_options options = {.format = &(*downlink)->frames,
                                              .packet_bytes = pb_lines_packet_bytes(lines),
                                              .wanted = pb_lines_wanted(lines),
                                              .deliver = pb_lines_packet,
                                              .user = lines,
                                              .counts = &counts};
    require(pb_frames_create(&options, &frames) == 0, "no memory");
    memcpy(copy, data + 2, bytes - 2);
    if ((data[0] & 0x80) != 0)
        mend(&(*downlink)->frames, copy, bytes - 2);
    receive(frames, copy, (bytes - 2) / 2, data[1]);
    receive(frames, copy + (bytes - 2) / 2, bytes - 2 - (bytes - 2) / 2, data[1]);
    pb_frames_flush(frames);
    pb_lines_flush(lines);
    require(state.n == counts.lines, "lines were not counted");
    require(counts.frames >= counts.frames_damaged + counts.frames_duplicate + counts.frames_late,
            "more damage than frames");
    require(counts.octets_skipped <= bytes, "more octets skipped than received");
    pb_frames_destroy(frames);
    pb_lines_destroy(lines);
    return 0;
}
