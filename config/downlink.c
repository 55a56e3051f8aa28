/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Tables of the keys of a downlink, and the checks across them. */
#include "config/downlink.h"

#include "config/base/arena.h"
#include "config/base/clock.h"
#include "config/base/text.h"
#include "config/schema_rows.h"
#include "config/yaml/yaml_tree.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AT(type, member)                    offsetof(struct pb_downlink_##type, member)
#define FLAG(n, at, dflt, text)             CHOICE(n, at, "false|true", dflt, text)
#define WHOLE(n, at, low, high, dflt, text) RANGED(n, PB_KEY_INT, at, low, high, dflt, text)

#define FRAME_BYTES_MAX  65536
#define PACKET_BYTES_MAX 65542
#define LINE_BYTES_MAX   (16 << 20) /* all bands of a line */
#define BANDS_MAX        256
#define APID_IDLE        2047
#define EPOCH_MOST       3786912000 /* 120 years in seconds: times fit 64 bits of nanoseconds */
#define DAY_SECONDS      86400

static const struct pb_key frames_keys[] = {
    CHOICE("kind", AT(frames, kind), "aos|tm|none", "aos",
           "Transfer frames: aos (CCSDS 732.0-B) or tm (132.0-B). none: packets follow each other "
           "without frames."),
    {.name = "length",
     .type = PB_KEY_INT,
     .offset = AT(frames, length),
     .min = 16,
     .max = FRAME_BYTES_MAX,
     .example = "1115",
     .sample = "1115",
     .doc = "Octets of a frame, without sync marker and code symbols. Not with kind: none."},
    FLAG("sync", AT(frames, has_sync), "true",
         "Each frame follows the sync marker 1ACFFC1D. In a file a lost frame is found again by "
         "it."),
    FLAG("randomized", AT(frames, is_randomized), "false",
         "Frames are combined with the pseudo-random sequence of CCSDS 131.0-B (255 bits)."),
    FLAG("crc", AT(frames, has_crc), "true",
         "Frames end with frame error control (CRC-16). A frame with a wrong one is dropped."),
    FLAG("ocf", AT(frames, has_ocf), "false",
         "An operational control field is before the frame error control. For aos; a tm frame has "
         "a flag for it."),
    FLAG("header_crc", AT(frames, has_header_crc), "false",
         "Frame header error control of two octets follows the header (aos). It is skipped."),
    WHOLE("insert_zone", AT(frames, insert_zone), 0, FRAME_BYTES_MAX, "0",
          "Octets of the insert zone (aos)."),
    {.name = "spacecraft",
     .type = PB_KEY_INT,
     .offset = AT(frames, spacecraft),
     .more = AT(frames, has_spacecraft),
     .min = 0,
     .max = 1023,
     .example = "42",
     .doc = "Frames of other spacecraft are dropped. Without this key all are read."},
    {.name = "channels",
     .type = PB_KEY_WEIGHTS,
     .offset = AT(frames, channels),
     .min = 0,
     .max = 62,
     .example = "[5]",
     .doc = "Virtual channels with packets. Without this key all but idle frames are read."},
    WHOLE("reorder", AT(frames, reorder), 0, 64, "16",
          "A frame or packet may arrive after this many later ones of its channel or APID. A "
          "missing one is given up after them."),
};

static const struct pb_key time_keys[] = {
    CHOICE("code", AT(time, code), "cuc|cds", "cuc",
           "Time code in the packet (CCSDS 301.0-B), without its preamble: cuc (unsegmented) or "
           "cds (days, milliseconds)."),
    WHOLE("at", AT(time, at), 6, PACKET_BYTES_MAX, "6",
          "Octet of the packet at which it begins; the primary header has octets 0 to 5."),
    WHOLE("coarse", AT(time, coarse), 1, 4, "4", "Octets of seconds (cuc)."),
    WHOLE("fine", AT(time, fine), 0, 6, "2", "Octets of fractions of a second (cuc)."),
    WHOLE("days", AT(time, days), 2, 3, "2", "Octets of the day (cds)."),
    WHOLE("submilliseconds", AT(time, submilliseconds), 0, 4, "0",
          "Octets of parts of a millisecond (cds): 0, 2 (microseconds) or 4 (picoseconds)."),
    {.name = "epoch",
     .type = PB_KEY_TEXT,
     .offset = AT(time, epoch),
     .example = "2000-01-01T12:00:00Z",
     .sample = "2000-01-01T12:00:00Z",
     .doc = "Time that the code counts from. CCSDS recommends 1958-01-01T00:00:00Z."},
    {.name = "leap_seconds",
     .type = PB_KEY_NUMBER,
     .offset = AT(time, leap_seconds),
     .more = AT(time, has_leap_seconds),
     .min = -1000,
     .max = 1000,
     .example = "18",
     .sample = "18",
     .doc = "Seconds that are subtracted from the time to get UTC; needed with cuc. 37: TAI since "
            "2017, with an epoch in TAI. 18: GPS. 0: the code counts UTC."},
};

static const struct pb_key lines_keys[] = {
    {.name = "bands",
     .type = PB_KEY_CONSTANTS,
     .offset = AT(lines, bands),
     .min = 0,
     .max = APID_IDLE - 1,
     .example = "{R: 100, N: 101}",
     .sample = "{R: 100, N: 101}",
     .required = true,
     .doc = "APID of each band, in the order of the stream. Bands with one APID follow each other "
            "in its packets; each begins at an octet."},
    {.name = "samples",
     .type = PB_KEY_INT,
     .offset = AT(lines, samples),
     .min = 1,
     .max = 1048576,
     .example = "4096",
     .sample = "4096",
     .required = true,
     .doc = "Pixels of a line."},
    NEEDED("counter_at", AT(lines, counter_at), 6, PACKET_BYTES_MAX, "12",
           "Octet of the packet with the counter of lines (big endian)."),
    WHOLE("counter_bits", AT(lines, counter_bits), 8, 32, "32",
          "Bits of the counter: 8, 16, 24 or 32."),
    NEEDED("pixels_at", AT(lines, pixels_at), 6, PACKET_BYTES_MAX, "16",
           "Octet of the packet with the first pixel. A line may have several packets "
           "(segments, by their sequence flags); those after the first one without a secondary "
           "header have pixels from octet 6."),
    CHOICE("type", AT(lines, type), "uint8|uint16|int16|uint32|int32|float32|float64", "uint16",
           "Type of pixels, also that of the stream."),
    CHOICE("order", AT(lines, is_little), "big|little", "big", "Order of their octets."),
    WHOLE("bits", AT(lines, bits), 0, 16, "0",
          "Bits of a packed pixel, the most significant one first: 10, 12 or 14 in uint16, for "
          "example. 0: pixels are not packed."),
    FLAG("crc", AT(lines, has_crc), "false",
         "Packets end with packet error control (CRC-16). A packet with a wrong one is dropped."),
};

static const struct pb_section frames_section = {"frames", "Transfer frames.", frames_keys,
                                                 N_OF(frames_keys)};
static const struct pb_section time_section = {
    "time",
    "Time of a line: that of the packet of its first band. Without this section lines have "
    "no time.",
    time_keys, N_OF(time_keys)};
static const struct pb_section lines_section = {"lines", "Lines in packets.", lines_keys,
                                                N_OF(lines_keys)};

size_t pb_pixel_type_bytes(enum pb_pixel_type type)
{
    static const size_t bytes[] = {1, 2, 2, 4, 4, 4, 8};
    return bytes[type];
}

/* Reports a mistake at a key of a section, or at the section. */
static void wrong(struct pb_load *load, const struct pb_yaml *section, const char *name,
                  const char *key, const char *message)
{
    const struct pb_yaml *at = pb_yaml_find(section, key, NULL);
    at = at != NULL ? at : section;
    pb_report(&load->report, PB_E_CONFIG_VALUE, at != NULL ? at->line : 1, at != NULL ? at->col : 1,
              "%s.%s %s", name, key, message);
}

static bool are_whole(const struct pb_items *items)
{
    for (size_t i = 0; i < items->n; i++)
        if (items->items[i].num != (double)(int)items->items[i].num)
            return false;
    return true;
}

static void check_frames(struct pb_load *load, const struct pb_yaml *section,
                         const struct pb_downlink_frames *frames)
{
    const bool is_none = frames->kind == PB_FRAMES_NONE;
    if (frames->length == 0 && !is_none)
        wrong(load, section, "frames", "length", "is missing; write the octets of a frame");
    if (frames->length > 0 && is_none)
        wrong(load, section, "frames", "length", "has no meaning with kind: none");
    if (!is_none && frames->length > 0 && frames->insert_zone + 16 > frames->length)
        wrong(load, section, "frames", "insert_zone", "leaves no room for packets in the frame");
    if (frames->kind != PB_FRAMES_AOS &&
        (frames->insert_zone > 0 || frames->has_header_crc || frames->has_ocf))
        wrong(load, section, "frames", "kind",
              "must be aos with insert_zone, header_crc or ocf; tm frames have a flag for ocf");
    if (!are_whole(&frames->channels))
        wrong(load, section, "frames", "channels", "has a number that is not whole");
}

static void check_time(struct pb_load *load, const struct pb_yaml *section,
                       struct pb_downlink_time *time)
{
    const bool is_cuc = time->code == PB_TIME_CUC;
    const size_t length = time->epoch != NULL ? strlen(time->epoch) : 0;
    if (!time->is_given)
        return;
    if (time->epoch == NULL)
        wrong(load, section, "time", "epoch", "is missing; write it as 1958-01-01T00:00:00Z");
    else if (length != 20 || time->epoch[19] != 'Z' || !pb_clock_read(time->epoch, &time->epoch_s))
        wrong(load, section, "time", "epoch", "is not a time; write it as 1958-01-01T00:00:00Z");
    else if (time->epoch_s < -EPOCH_MOST || time->epoch_s > EPOCH_MOST)
        wrong(load, section, "time", "epoch", "must be between 1850 and 2090");
    else if (!is_cuc && time->epoch_s % DAY_SECONDS != 0)
        wrong(load, section, "time", "epoch", "must be midnight with cds, which counts days");
    if (is_cuc && !time->has_leap_seconds)
        wrong(load, section, "time", "leap_seconds",
              "is missing: cuc counts seconds, and UTC needs the leap seconds since the epoch; "
              "write 37 (TAI), 18 (GPS) or 0 (UTC)");
    if (!is_cuc && time->has_leap_seconds)
        wrong(load, section, "time", "leap_seconds", "has no meaning with cds, which counts UTC");
    if (time->submilliseconds % 2 != 0)
        wrong(load, section, "time", "submilliseconds", "must be 0, 2 or 4");
}

static void check_lines(struct pb_load *load, const struct pb_yaml *section,
                        const struct pb_downlink_lines *lines)
{
    const size_t width = 8 * pb_pixel_type_bytes(lines->type);
    const size_t bands = lines->bands.n;
    if (!are_whole(&lines->bands))
        wrong(load, section, "lines", "bands", "has an APID that is not a whole number");
    if (bands > BANDS_MAX)
        wrong(load, section, "lines", "bands", "has more than 256 bands");
    if (lines->counter_bits % 8 != 0)
        wrong(load, section, "lines", "counter_bits", "must be 8, 16, 24 or 32");
    if (lines->bits > 0 && (lines->type > PB_PIXEL_UINT32 || lines->type == PB_PIXEL_INT16 ||
                            (size_t)lines->bits > width))
        wrong(load, section, "lines", "bits", "needs an unsigned type that holds them");
    if (bands * (size_t)lines->samples * (width / 8) > LINE_BYTES_MAX)
        wrong(load, section, "lines", "samples", "makes lines of more than 16 MiB");
}

static void read_root(struct pb_load *load, const struct pb_yaml *root, struct pb_downlink *out)
{
    static const char *const names[] = {"frames", "time", "lines"};
    char found[80];
    if (root == NULL || root->kind != PB_YAML_MAP) {
        pb_report(&load->report, PB_E_CONFIG_SYNTAX, 1, 1,
                  "the file must be a map with frames, time and lines, not %s",
                  root != NULL ? pb_yaml_what(root, found, sizeof found) : "empty");
        return;
    }
    const struct pb_yaml *frames = pb_yaml_find(root, "frames", NULL);
    const struct pb_yaml *time = pb_yaml_find(root, "time", NULL);
    const struct pb_yaml *lines = pb_yaml_find(root, "lines", NULL);
    pb_report_unknown(load, root, "the file", names, N_OF(names));
    pb_schema_read(load, &frames_section, frames, &out->frames);
    pb_schema_read(load, &time_section, time, &out->time);
    out->time.is_given = time != NULL;
    pb_schema_read(load, &lines_section, lines, &out->lines);
    pb_schema_need(load, &lines_section, lines != NULL ? lines : root, lines);
    if (pb_arena_failed(load->arena) || pb_report_count(&load->report) > 0)
        return;
    check_frames(load, frames != NULL ? frames : root, &out->frames);
    check_time(load, time, &out->time);
    check_lines(load, lines, &out->lines);
}

int pb_downlink_parse(const char *text, size_t bytes, const char *name, struct pb_err_list *errors,
                      struct pb_downlink **out_downlink)
{
    memset(errors, 0, sizeof *errors);
    struct pb_load load = {.arena = pb_arena_create(), .report = {.list = errors, .file = name}};
    struct pb_downlink *downlink = pb_arena_alloc(load.arena, 1, sizeof *downlink);
    const struct pb_yaml *root = NULL;
    int rc =
        downlink == NULL ? -ENOMEM : pb_yaml_parse(text, bytes, load.arena, &load.report, &root);
    if (rc == 0)
        read_root(&load, root, downlink);
    if (rc == -ENOMEM || load.arena == NULL || pb_arena_failed(load.arena))
        pb_report_memory(&load.report);
    if (errors->n > 0) {
        pb_arena_destroy(load.arena);
        return pb_code_errno(errors->err[0].code);
    }
    downlink->memory = load.arena;
    *out_downlink = downlink;
    return 0;
}

int pb_downlink_load(const char *path, struct pb_err_list *errors,
                     struct pb_downlink **out_downlink)
{
    struct pb_report report = {.list = errors, .file = path};
    memset(errors, 0, sizeof *errors);
    FILE *file = fopen(path, "re");
    char *text = malloc(PB_CONFIG_BYTES_MAX + 1);
    int rc = 0;
    if (text == NULL)
        rc = pb_report_memory(&report);
    else if (file == NULL)
        rc = pb_report(&report, PB_E_CONFIG_FILE, 0, 0, "cannot be opened: %s", strerror(errno));
    const size_t bytes = rc == 0 ? fread(text, 1, PB_CONFIG_BYTES_MAX + 1, file) : 0;
    if (rc == 0 && ferror(file))
        rc = pb_report(&report, PB_E_CONFIG_FILE, 0, 0, "cannot be read: %s", strerror(errno));
    if (rc == 0) /* the parser refuses a file that is too long */
        rc = pb_downlink_parse(text, bytes, path, errors, out_downlink);
    if (file != NULL)
        (void)fclose(file);
    free(text);
    return rc;
}

void pb_downlink_destroy(struct pb_downlink *downlink)
{
    if (downlink != NULL)
        pb_arena_destroy(downlink->memory);
}

char *pb_downlink_example(void)
{
    static const struct pb_section *const sections[] = {&frames_section, &time_section,
                                                        &lines_section};
    struct pb_text out = {.text = NULL};
    pb_text_comment(&out, 0, "Description of a downlink for pushbroom-ccsds, with every key.");
    for (size_t i = 0; i < N_OF(sections); i++) {
        pb_text_add(&out, "\n");
        pb_text_comment(&out, 0, sections[i]->doc);
        pb_text_add(&out, "%s:\n", sections[i]->name);
        pb_schema_default(&out, sections[i], 2);
    }
    return pb_text_take(&out);
}
