/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Writes 256 lines of a test pattern into a stream of pushbroomd:
 *
 *   cc stream_writer.c -lpushbroom-stream -o stream_writer
 *   ./stream_writer /run/pushbroom/streams.sock swir */
#include <pushbroom/stream.h>

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { LINES = 256, GROUP = 16, BANDS = 4, SAMPLES = 512 };

/* Sample s of band b of line l. */
static uint16_t value(int l, int b, int s)
{
    return (uint16_t)(1 + l + 1000 * b + s);
}

int main(int argc, char **argv)
{
    struct pb_stream_options options = {
        .format = {
            .type = PB_STREAM_UINT16, .bands = BANDS, .samples = SAMPLES, .group_lines = GROUP}};
    struct pb_stream_writer *writer;
    char error[PB_STREAM_ERROR_BYTES] = "";
    if (argc != 3) {
        fprintf(stderr, "usage: stream_writer SOCKET STREAM\n");
        return 2;
    }
    options.socket = argv[1];
    options.stream = argv[2];
    int rc = pb_stream_open(&options, error, &writer);
    if (rc != 0) {
        fprintf(stderr, "stream_writer: %s (%s)\n", error, strerror(-rc));
        return 1;
    }
    for (int first = 0; rc == 0 && first < LINES; first += GROUP) {
        void *room;
        int64_t times_ns[GROUP];
        rc = pb_stream_acquire(writer, -1, &room);
        if (rc != 0)
            break;
        uint16_t *pixel = room;
        for (int l = first; l < first + GROUP; l++) {
            struct timespec now;
            (void)timespec_get(&now, TIME_UTC);
            times_ns[l - first] = now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
            for (int b = 0; b < BANDS; b++)
                for (int s = 0; s < SAMPLES; s++)
                    *pixel++ = value(l, b, s);
        }
        rc = pb_stream_publish(writer, (uint64_t)first, GROUP, times_ns);
    }
    const int end = pb_stream_close(writer, 60000);
    rc = rc != 0 ? rc : end;
    if (rc != 0)
        fprintf(stderr, "stream_writer: %s\n", strerror(-rc));
    return rc == 0 ? 0 : 1;
}
