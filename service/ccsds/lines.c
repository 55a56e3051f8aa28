/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Each APID delivers its lines in order, therefore a line is complete or given up as soon as every
 * APID has delivered a part of a later one. A ring of lines bounds the distance between APIDs.
 *
 * The counter of lines decides which line a packet belongs to; the sequence count only if packets
 * follow each other. A counter that jumps could be a bit error if neither frames nor packets have a
 * checksum: then it counts if the next line of its APID agrees. */
#include "service/ccsds/lines.h"

#include "config/downlink.h"
#include "service/ccsds/frames.h"
#include "service/ccsds/reorder.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SEQUENCE_MODULUS 16384u
#define FLAG_FIRST       1u /* sequence flag: a line begins with the packet */
#define FLAG_LAST        2u /* a line ends with it */
#define SPARE_LINES      8  /* APIDs may differ by this many lines without any reordering */
#define WINDOW_MOST      4096u

/* The packets of one APID, with the lines of one or several bands. */
struct source {
    struct pb_lines *lines;
    struct pb_reorder reorder;
    uint8_t *data; /* octets of the bands of a line */
    size_t bytes, filled;
    int64_t time;
    bool is_open;     /* data has the line `newest` so far */
    bool has_newest;  /* a line was received */
    bool has_suspect; /* a jump to `suspect` was not believed yet */
    uint32_t suspect;
    uint64_t scene; /* scene of newest */
    int64_t newest; /* number of the last line */
};

/* A line of which a part was received. */
struct slot {
    uint32_t n_done; /* sources */
    bool is_begun;
    int64_t time;
};

struct pb_lines {
    const struct pb_downlink *downlink;
    pb_line_deliver *deliver;
    void *user;
    struct pb_ccsds_counts *counts;
    size_t packet_bytes, line_bytes, band_bytes;
    bool wanted[PB_PACKET_APIDS];
    uint16_t source_of[PB_PACKET_APIDS];
    struct source *sources;
    size_t n_sources;
    uint16_t *band_source; /* source of each band */

    struct slot *slots; /* line n: slot n % window */
    uint8_t *pixels;
    int64_t window;
    bool is_started, has_delivered;
    uint64_t scene; /* times that the counter began again */
    int64_t base;   /* lines before it are delivered or given up */
    int64_t newest; /* last line of which a part was received */
    int64_t delivered;
};

/* --- time ------------------------------------------------------------------------------------- */

static uint64_t number_at(const uint8_t *data, size_t bytes)
{
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; i++)
        value = value << 8 | data[i];
    return value;
}

size_t pb_ccsds_time_bytes(const struct pb_downlink_time *format)
{
    if (format->code == PB_TIME_CUC)
        return (size_t)format->coarse + (size_t)format->fine;
    return (size_t)format->days + 4 + (size_t)format->submilliseconds;
}

static int64_t cuc_time(const struct pb_downlink_time *format, const uint8_t *code)
{
    const size_t coarse = (size_t)format->coarse, fine = (size_t)format->fine;
    const size_t used = fine < 4 ? fine : 4; /* further octets are below a nanosecond */
    const uint64_t fraction = number_at(code + coarse, used);
    const uint64_t ns = fraction * 1000000000u >> (8 * used);
    return (format->epoch_s + (int64_t)number_at(code, coarse)) * 1000000000 + (int64_t)ns -
           llround(format->leap_seconds * 1e9);
}

static int64_t cds_time(const struct pb_downlink_time *format, const uint8_t *code)
{
    const size_t n_days = (size_t)format->days, n_sub = (size_t)format->submilliseconds;
    const int64_t days = (int64_t)number_at(code, n_days);
    const int64_t ms = (int64_t)number_at(code + n_days, 4);
    const int64_t sub = (int64_t)number_at(code + n_days + 4, n_sub);
    const int64_t most_sub = n_sub == 2 ? 999 : 999999999;
    const int64_t s = format->epoch_s + days * 86400;
    if (ms > 86400999 || sub > most_sub || s > 9000000000) /* a leap second is at the day's end */
        return PB_LINES_NO_TIME;
    return s * 1000000000 + ms * 1000000 + (n_sub == 2 ? sub * 1000 : sub / 1000);
}

int64_t pb_ccsds_time(const struct pb_downlink_time *format, const uint8_t *code)
{
    return format->code == PB_TIME_CUC ? cuc_time(format, code) : cds_time(format, code);
}

/* --- the ring of lines ------------------------------------------------------------------------ */

static struct slot *slot_at(struct pb_lines *lines, int64_t line)
{
    return &lines->slots[line % lines->window];
}

static uint8_t *pixels_at(struct pb_lines *lines, int64_t line)
{
    return lines->pixels + (size_t)(line % lines->window) * lines->line_bytes;
}

static void deliver_line(struct pb_lines *lines, int64_t line, const struct slot *slot)
{
    if (lines->has_delivered && line > lines->delivered)
        lines->counts->lines_lost += (uint64_t)(line - lines->delivered - 1);
    lines->counts->lines++;
    lines->has_delivered = true;
    lines->delivered = line;
    lines->deliver(lines->user, (uint64_t)line, pixels_at(lines, line), slot->time);
}

/* Delivers the line `base`, or gives it up. */
static void close_line(struct pb_lines *lines)
{
    struct slot *const slot = slot_at(lines, lines->base);
    if (slot->n_done == lines->n_sources)
        deliver_line(lines, lines->base, slot);
    else
        lines->counts->lines_incomplete += slot->is_begun;
    *slot = (struct slot){.time = PB_LINES_NO_TIME};
    lines->base++;
}

/* Number of the newest line that all sources have reached; they deliver none before it. */
static int64_t reached_by_all(const struct pb_lines *lines)
{
    int64_t least = INT64_MAX;
    for (size_t i = 0; i < lines->n_sources; i++) {
        const struct source *source = &lines->sources[i];
        if (!source->has_newest || source->scene != lines->scene)
            return -1;
        least = source->newest < least ? source->newest : least;
    }
    return least;
}

static void close_lines(struct pb_lines *lines)
{
    const int64_t reached = reached_by_all(lines);
    while (lines->base <= lines->newest &&
           (slot_at(lines, lines->base)->n_done == lines->n_sources || lines->base < reached))
        close_line(lines);
}

static void close_all(struct pb_lines *lines)
{
    for (int64_t n = lines->newest - lines->base; n >= 0; n--)
        close_line(lines);
}

/* Makes room for a line after the newest one. */
static void reach(struct pb_lines *lines, int64_t line)
{
    if (line - lines->base >= 2 * lines->window) {
        close_all(lines);
        lines->base = line - lines->window + 1;
    }
    while (line - lines->base >= lines->window)
        close_line(lines);
    lines->newest = line > lines->newest ? line : lines->newest;
}

static void begin_scene(struct pb_lines *lines, int64_t line)
{
    if (lines->is_started) {
        close_all(lines);
        lines->scene++;
        lines->counts->scenes++;
    }
    lines->is_started = true;
    lines->base = lines->newest = line;
}

/* --- the counter ------------------------------------------------------------------------------ */

/* Distance of a counter from a line, in half of its range either side. */
static int64_t distance(const struct pb_lines *lines, uint32_t counter, int64_t from)
{
    const int64_t range = (int64_t)1 << lines->downlink->lines.counter_bits;
    const int64_t forward = ((int64_t)counter - from % range + range) % range;
    return forward >= range / 2 ? forward - range : forward;
}

/* True if a jump of a source has to be confirmed by its next line. */
static bool is_doubtful(struct source *source, uint32_t counter, int64_t jump)
{
    const struct pb_lines *lines = source->lines;
    const struct pb_downlink_frames *frames = &lines->downlink->frames;
    const bool is_checked =
        lines->downlink->lines.has_crc || (frames->has_crc && frames->kind != PB_FRAMES_NONE);
    if (is_checked || (jump >= 0 && jump < lines->window))
        return false;
    const uint32_t ahead = counter - source->suspect;
    const bool agrees = source->has_suspect && ahead > 0 && ahead <= (uint32_t)lines->window;
    source->has_suspect = !agrees;
    source->suspect = counter;
    return !agrees;
}

/* Line of a counter for a source that has delivered lines of this scene. -1: none. */
static int64_t next_line(struct source *source, uint32_t counter)
{
    struct pb_lines *const lines = source->lines;
    const int64_t jump = distance(lines, counter, source->newest);
    if (is_doubtful(source, counter, jump))
        return -1;
    if (jump >= 0)
        return source->newest + jump;
    begin_scene(lines, (int64_t)counter);
    return (int64_t)counter;
}

/* Line of a counter for a source that has delivered none of this scene yet. -1: none. */
static int64_t first_line(struct source *source, uint32_t counter)
{
    struct pb_lines *const lines = source->lines;
    const int64_t jump = distance(lines, counter, lines->newest);
    const bool is_near = jump > -lines->window && jump < lines->window;
    if (source->has_newest && !is_near && distance(lines, counter, source->newest) > 0)
        return -1; /* still in the former scene */
    if (!is_near && is_doubtful(source, counter, jump))
        return -1;
    return lines->newest + jump;
}

/* Finds the line of a counter and makes room for it. is_begin: a line of the source begins.
 * Returns -1 if its pixels cannot be used. */
static int64_t place(struct source *source, uint32_t counter, bool is_begin)
{
    struct pb_lines *const lines = source->lines;
    if (!lines->is_started)
        begin_scene(lines, (int64_t)counter);
    const bool is_same = source->has_newest && source->scene == lines->scene;
    const int64_t line = is_same ? next_line(source, counter) : first_line(source, counter);
    if (line < 0) {
        lines->counts->lines_late++;
        return -1;
    }
    const bool is_again =
        source->has_newest && source->scene == lines->scene && line == source->newest && is_same;
    source->has_newest = true;
    source->has_suspect = false;
    source->scene = lines->scene;
    source->newest = line;
    if (is_again && is_begin) {
        lines->counts->lines_duplicate++;
        return -1;
    }
    if (line < lines->base) {
        lines->counts->lines_late++;
        return -1;
    }
    reach(lines, line);
    slot_at(lines, line)->is_begun = true;
    close_lines(lines);
    return line >= lines->base ? line : -1;
}

/* --- pixels ----------------------------------------------------------------------------------- */

static void copy_swapped(const uint8_t *from, uint8_t *to, size_t n, size_t bytes)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < bytes; k++)
            to[i * bytes + k] = from[i * bytes + bytes - 1 - k];
}

static void copy_swapped_16(const uint8_t *from, uint8_t *to, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        to[2 * i] = from[2 * i + 1];
        to[2 * i + 1] = from[2 * i];
    }
}

/* Packed pixels of at most 16 bits; type_bytes is 1, 2 or 4. */
static void unpack(const uint8_t *from, uint8_t *to, size_t n, unsigned bits, size_t type_bytes)
{
    uint32_t held = 0;
    unsigned n_held = 0;
    for (size_t i = 0; i < n; i++) {
        for (; n_held < bits; n_held += 8)
            held = held << 8 | *from++;
        n_held -= bits;
        const uint32_t wide = held >> n_held & ((1u << bits) - 1);
        const uint16_t half = (uint16_t)wide;
        if (type_bytes == 4)
            memcpy(to + 4 * i, &wide, 4);
        else if (type_bytes == 2)
            memcpy(to + 2 * i, &half, 2);
        else
            to[i] = (uint8_t)wide;
    }
}

static void copy_band(const struct pb_lines *lines, const uint8_t *from, uint8_t *to)
{
    const struct pb_downlink_lines *format = &lines->downlink->lines;
    const size_t n = (size_t)format->samples, bytes = pb_pixel_type_bytes(format->type);
    const uint16_t probe = 1;
    const bool is_little_machine = *(const uint8_t *)&probe == 1;
    if (format->bits > 0)
        unpack(from, to, n, (unsigned)format->bits, bytes);
    else if (bytes == 1 || (format->is_little == 1) == is_little_machine)
        memcpy(to, from, n * bytes);
    else if (bytes == 2)
        copy_swapped_16(from, to, n);
    else
        copy_swapped(from, to, n, bytes);
}

/* The source's part of its newest line is complete. */
static void complete(struct source *source)
{
    struct pb_lines *const lines = source->lines;
    if (source->scene != lines->scene || source->newest < lines->base) {
        lines->counts->lines_late++; /* given up between its segments */
        return;
    }
    const size_t stride =
        (size_t)lines->downlink->lines.samples * pb_pixel_type_bytes(lines->downlink->lines.type);
    struct slot *const slot = slot_at(lines, source->newest);
    uint8_t *const pixels = pixels_at(lines, source->newest);
    const uint8_t *data = source->data;
    for (size_t i = 0; i < lines->downlink->lines.bands.n; i++) {
        if (&lines->sources[lines->band_source[i]] != source)
            continue;
        copy_band(lines, data, pixels + i * stride);
        data += lines->band_bytes;
    }
    if (source == &lines->sources[0])
        slot->time = source->time;
    slot->n_done++;
    close_lines(lines);
}

/* --- packets ---------------------------------------------------------------------------------- */

static int64_t read_time(struct pb_lines *lines, const uint8_t *packet, size_t bytes)
{
    const struct pb_downlink_time *format = &lines->downlink->time;
    if (!format->is_given)
        return PB_LINES_NO_TIME;
    const size_t at = (size_t)format->at;
    const bool fits = at + pb_ccsds_time_bytes(format) <= bytes;
    const int64_t time = fits ? pb_ccsds_time(format, packet + at) : PB_LINES_NO_TIME;
    lines->counts->times_invalid += time == PB_LINES_NO_TIME;
    return time;
}

/* Reads the counter of a packet, which begins a line or belongs to the open one. Returns false if
 * its pixels cannot be used. */
static bool open_line(struct source *source, const uint8_t *packet, size_t bytes, bool is_begin)
{
    struct pb_lines *const lines = source->lines;
    const struct pb_downlink_lines *format = &lines->downlink->lines;
    const size_t at = (size_t)format->counter_at, n = (size_t)format->counter_bits / 8;
    const int64_t before = source->newest;
    const bool was_open = source->is_open;
    source->is_open = false;
    if (bytes < at + n || bytes < (size_t)format->pixels_at) {
        lines->counts->packets_damaged++;
        return false;
    }
    const int64_t line = place(source, (uint32_t)number_at(packet + at, n), is_begin);
    if (is_begin && line >= 0) {
        source->filled = 0;
        source->time = read_time(lines, packet, bytes);
        source->is_open = true;
    } else if (!is_begin) {
        source->is_open = was_open && line == before;
        lines->counts->packets_stray += !source->is_open;
    }
    return source->is_open;
}

/* Takes the packets of an APID in the order of their sequence counts (pb_reorder_deliver). */
static void take_packet(void *user, const uint8_t *packet, size_t bytes, bool continues)
{
    struct source *const source = user;
    struct pb_lines *const lines = source->lines;
    const struct pb_downlink_lines *format = &lines->downlink->lines;
    const unsigned flags = packet[2] >> 6;
    const bool is_begin = (flags & FLAG_FIRST) != 0, has_header = (packet[0] & 8) != 0;
    const size_t end = bytes - (format->has_crc ? 2 : 0);
    size_t at = (size_t)format->pixels_at;
    if (!continues)
        source->is_open = false;
    if (is_begin || has_header) {
        if (!open_line(source, packet, end, is_begin))
            return;
    } else if (source->is_open) {
        at = 6;
    } else {
        lines->counts->packets_stray++;
        return;
    }
    const size_t n = end - at;
    const bool is_last = (flags & FLAG_LAST) != 0;
    source->is_open = !is_last;
    if (n > source->bytes - source->filled || (is_last && source->filled + n != source->bytes)) {
        source->is_open = false;
        lines->counts->packets_damaged++;
        return;
    }
    memcpy(source->data + source->filled, packet + at, n);
    source->filled += n;
    if (is_last)
        complete(source);
}

void pb_lines_packet(void *user, const uint8_t *packet, size_t bytes)
{
    struct pb_lines *const lines = user;
    const unsigned apid = (unsigned)(packet[0] & 7) << 8 | packet[1];
    if (!lines->wanted[apid]) {
        lines->counts->packets_other++;
        return;
    }
    if (lines->downlink->lines.has_crc && (bytes < 8 || pb_ccsds_crc(packet, bytes) != 0)) {
        lines->counts->packets_damaged++;
        return;
    }
    const uint32_t number = (uint32_t)(packet[2] & 0x3F) << 8 | packet[3];
    pb_reorder_push(&lines->sources[lines->source_of[apid]].reorder, number, packet, bytes);
}

void pb_lines_flush(struct pb_lines *lines)
{
    for (size_t i = 0; i < lines->n_sources; i++) {
        pb_reorder_flush(&lines->sources[i].reorder);
        lines->sources[i].is_open = false;
    }
    if (lines->is_started)
        close_all(lines);
}

size_t pb_lines_packet_bytes(const struct pb_lines *lines)
{
    return lines->packet_bytes;
}

const bool *pb_lines_wanted(const struct pb_lines *lines)
{
    return lines->wanted;
}

/* --- memory ----------------------------------------------------------------------------------- */

/* Numbers the APIDs in the order of the bands; the first band's is source 0. */
static void number_sources(struct pb_lines *lines)
{
    const struct pb_items *bands = &lines->downlink->lines.bands;
    for (size_t i = 0; i < bands->n; i++) {
        const unsigned apid = (unsigned)bands->items[i].num;
        if (!lines->wanted[apid])
            lines->source_of[apid] = (uint16_t)lines->n_sources++;
        lines->wanted[apid] = true;
        lines->band_source[i] = lines->source_of[apid];
        lines->sources[lines->source_of[apid]].bytes += lines->band_bytes;
    }
}

static int open_source(struct pb_lines *lines, struct source *source)
{
    struct pb_ccsds_counts *counts = lines->counts;
    source->lines = lines;
    source->data = malloc(source->bytes);
    source->reorder = (struct pb_reorder){.modulus = SEQUENCE_MODULUS,
                                          .window = (uint32_t)lines->downlink->frames.reorder,
                                          .most_bytes = lines->packet_bytes,
                                          .deliver = take_packet,
                                          .user = source,
                                          .lost = &counts->packets_lost,
                                          .duplicate = &counts->packets_duplicate,
                                          .late = &counts->packets_late,
                                          .jumps = &counts->packets_jumps};
    return source->data != NULL ? pb_reorder_init(&source->reorder) : -ENOMEM;
}

/* Lines that sources may differ by: a source may wait for a packet that is missing, and its
 * channel for a frame, while others continue. */
static int64_t window_of(const struct pb_lines *lines)
{
    const struct pb_downlink *downlink = lines->downlink;
    const size_t reorder = (size_t)downlink->frames.reorder;
    const size_t in_frame = (size_t)downlink->frames.length / (lines->band_bytes + 7) + 1;
    const size_t window = SPARE_LINES + reorder + reorder * in_frame;
    const size_t half = (size_t)1 << (downlink->lines.counter_bits - 2);
    const size_t most = WINDOW_MOST < half ? WINDOW_MOST : half;
    return (int64_t)(window < most ? window : most);
}

static int fill(struct pb_lines *lines)
{
    const struct pb_downlink_lines *format = &lines->downlink->lines;
    const size_t n = format->bands.n, samples = (size_t)format->samples;
    const size_t bits =
        format->bits > 0 ? (size_t)format->bits : 8 * pb_pixel_type_bytes(format->type);
    lines->band_bytes = (samples * bits + 7) / 8;
    lines->line_bytes = n * samples * pb_pixel_type_bytes(format->type);
    lines->window = window_of(lines);
    const size_t slots = (size_t)lines->window;
    if (slots * lines->line_bytes > PB_LINES_BYTES_MAX)
        return -E2BIG;
    lines->sources = calloc(n, sizeof *lines->sources);
    lines->band_source = calloc(n, sizeof *lines->band_source);
    lines->slots = calloc(slots, sizeof *lines->slots);
    lines->pixels = calloc(slots, lines->line_bytes);
    if (lines->sources == NULL || lines->band_source == NULL || lines->slots == NULL ||
        lines->pixels == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < slots; i++)
        lines->slots[i].time = PB_LINES_NO_TIME;
    number_sources(lines);
    size_t most = 0;
    for (size_t i = 0; i < lines->n_sources; i++)
        most = lines->sources[i].bytes > most ? lines->sources[i].bytes : most;
    most += (size_t)format->pixels_at + 2;
    lines->packet_bytes = most < 65542 ? most : 65542;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < lines->n_sources; i++)
        rc = open_source(lines, &lines->sources[i]);
    return rc;
}

int pb_lines_create(const struct pb_downlink *downlink, pb_line_deliver *deliver, void *user,
                    struct pb_ccsds_counts *counts, struct pb_lines **out_lines)
{
    struct pb_lines *lines = calloc(1, sizeof *lines);
    if (lines == NULL)
        return -ENOMEM;
    lines->downlink = downlink;
    lines->deliver = deliver;
    lines->user = user;
    lines->counts = counts;
    const int rc = fill(lines);
    if (rc != 0)
        pb_lines_destroy(lines);
    else
        *out_lines = lines;
    return rc;
}

void pb_lines_destroy(struct pb_lines *lines)
{
    if (lines == NULL)
        return;
    for (size_t i = 0; lines->sources != NULL && i < lines->n_sources; i++) {
        pb_reorder_fini(&lines->sources[i].reorder);
        free(lines->sources[i].data);
    }
    free(lines->sources);
    free(lines->band_source);
    free(lines->slots);
    free(lines->pixels);
    free(lines);
}
