/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Runs the receiver of pushbroom-ccsds without a service: reads a downlink's description and a
 * file, and writes each line (number, time, pixels) to standard output; the counts to standard
 * error, `name=number` a line. With --datagrams the file has datagrams, each after its length (four
 * octets, big endian); otherwise octets, which are fed in pieces of the given size. */
#include "config/downlink.h"
#include "config/yaml/report.h"
#include "service/ccsds/frames.h"
#include "service/ccsds/lines.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t line_bytes;

static void write_line(void *user, uint64_t line, const void *pixels, int64_t time_ns)
{
    FILE *const out = user;
    (void)fwrite(&line, sizeof line, 1, out);
    (void)fwrite(&time_ns, sizeof time_ns, 1, out);
    (void)fwrite(pixels, 1, line_bytes, out);
}

static int feed(struct pb_frames *frames, FILE *in, size_t piece)
{
    static uint8_t data[1 << 20];
    for (size_t n; (n = fread(data, 1, piece, in)) > 0;)
        pb_frames_feed(frames, data, n);
    return ferror(in) ? 1 : 0;
}

static int feed_datagrams(struct pb_frames *frames, FILE *in, struct pb_ccsds_counts *counts)
{
    static uint8_t data[65536];
    uint8_t length[4];
    while (fread(length, 1, sizeof length, in) == sizeof length) {
        const size_t n = (size_t)length[2] << 8 | length[3];
        if (fread(data, 1, n, in) != n)
            return 1;
        counts->datagrams++;
        counts->datagrams_refused += !pb_frames_datagram(frames, data, n);
    }
    return 0;
}

int main(int argc, char **argv)
{
    static struct pb_err_list errors;
    struct pb_downlink *downlink = NULL;
    struct pb_lines *lines = NULL;
    struct pb_frames *frames = NULL;
    struct pb_ccsds_counts counts = {0};
    FILE *const in = argc == 4 ? fopen(argv[2], "rbe") : NULL;
    if (in == NULL || pb_downlink_load(argv[1], &errors, &downlink) != 0) {
        (void)fprintf(stderr, "usage: ccsds_lines DOWNLINK FILE --datagrams|BYTES; %s\n",
                      errors.n > 0 ? errors.err[0].msg : "");
        return 2;
    }
    line_bytes = downlink->lines.bands.n * (size_t)downlink->lines.samples *
                 pb_pixel_type_bytes(downlink->lines.type);
    if (pb_lines_create(downlink, write_line, stdout, &counts, &lines) != 0)
        return 1;
    const struct pb_frames_options options = {.format = &downlink->frames,
                                              .packet_bytes = pb_lines_packet_bytes(lines),
                                              .wanted = pb_lines_wanted(lines),
                                              .deliver = pb_lines_packet,
                                              .user = lines,
                                              .counts = &counts};
    if (pb_frames_create(&options, &frames) != 0)
        return 1;
    const int rc = strcmp(argv[3], "--datagrams") == 0
                       ? feed_datagrams(frames, in, &counts)
                       : feed(frames, in, (size_t)strtoul(argv[3], NULL, 10));
    pb_frames_flush(frames);
    pb_lines_flush(lines);
#define PB_COUNT(name, meaning) (void)fprintf(stderr, #name "=%" PRIu64 "\n", counts.name);
    PB_CCSDS_COUNTS
#undef PB_COUNT
    pb_frames_destroy(frames);
    pb_lines_destroy(lines);
    pb_downlink_destroy(downlink);
    (void)fclose(in);
    return rc;
}
