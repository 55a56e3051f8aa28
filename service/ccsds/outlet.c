/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Lines are collected in memory of the outlet, not in the stream's room: if the service is killed,
 * the group is published again in the stream that follows. */
#include "service/ccsds/outlet.h"

#include "config/base/clock.h"
#include "config/downlink.h"
#include "service/base/log.h"
#include "service/ccsds/counts.h"
#include "service/ccsds/lines.h"
#include "service/stream/writer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SOCKET_NAME "streams.sock"
#define WAIT_MS     200   /* a full stream is looked at this often for a signal */
#define AGAIN_MS    500   /* between attempts to open it */
#define CLOSE_MS    60000 /* for the service to take the last lines */
#define TOKEN_BYTES 512

_Static_assert(PB_LINES_NO_TIME == PB_STREAM_NO_TIME,
               "lines and streams have one word for no time");

struct pb_outlet {
    struct pb_outlet_options options;
    char socket[4096], token[TOKEN_BYTES];
    struct pb_stream_format format;
    struct pb_stream_writer *writer; /* NULL = not open */
    bool has_failed;                 /* lines were dropped at the end of the patience */
    int64_t closed_ms, tried_ms;
    size_t line_bytes;
    uint64_t first; /* number of the group's first line */
    uint32_t n;
    uint8_t *pixels;
    int64_t *times;
    uint64_t expected; /* number after the last line, for messages */
    bool has_line;
};

static int read_token(struct pb_outlet *outlet, struct pb_err *err)
{
    const char *path = outlet->options.token_file;
    if (path == NULL)
        return 0;
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return pb_fail(err, PB_E_CONFIG_FILE, "%s: %s", path, strerror(errno));
    const size_t n = fread(outlet->token, 1, sizeof outlet->token - 1, file);
    (void)fclose(file);
    outlet->token[n] = '\0';
    outlet->token[strcspn(outlet->token, "\r\n")] = '\0';
    if (outlet->token[0] == '\0')
        return pb_fail(err, PB_E_CONFIG_FILE, "%s: the file has no token", path);
    return 0;
}

static int open_stream(struct pb_outlet *outlet, struct pb_err *err)
{
    char error[PB_STREAM_ERROR_BYTES] = "";
    const struct pb_stream_options options = {.socket = outlet->socket,
                                              .stream = outlet->options.stream,
                                              .token = outlet->token[0] ? outlet->token : NULL,
                                              .format = outlet->format};
    outlet->tried_ms = pb_clock_mono_ms();
    if (pb_stream_open(&options, error, &outlet->writer) == 0)
        return 0;
    outlet->writer = NULL;
    return pb_fail(err, PB_E_SERVICE_UNREACHABLE, "stream %s: %s", options.stream, error);
}

static void fill_format(struct pb_outlet *outlet)
{
    static const enum pb_stream_type types[] = {
        [PB_PIXEL_UINT8] = PB_STREAM_UINT8,     [PB_PIXEL_UINT16] = PB_STREAM_UINT16,
        [PB_PIXEL_INT16] = PB_STREAM_INT16,     [PB_PIXEL_UINT32] = PB_STREAM_UINT32,
        [PB_PIXEL_INT32] = PB_STREAM_INT32,     [PB_PIXEL_FLOAT32] = PB_STREAM_FLOAT32,
        [PB_PIXEL_FLOAT64] = PB_STREAM_FLOAT64,
    };
    const struct pb_downlink_lines *lines = outlet->options.lines;
    const char *status = outlet->options.socket, *slash = strrchr(status, '/');
    outlet->format = (struct pb_stream_format){.type = types[lines->type],
                                               .bands = (uint32_t)lines->bands.n,
                                               .samples = (uint32_t)lines->samples,
                                               .group_lines = outlet->options.group_lines};
    outlet->line_bytes = pb_stream_line_bytes(&outlet->format);
    (void)snprintf(outlet->socket, sizeof outlet->socket, "%.*s%s",
                   slash != NULL ? (int)(slash - status) + 1 : 0, status, SOCKET_NAME);
}

int pb_outlet_open(const struct pb_outlet_options *options, struct pb_outlet **out_outlet,
                   struct pb_err *err)
{
    struct pb_outlet *outlet = calloc(1, sizeof *outlet);
    if (outlet == NULL)
        return pb_fail(err, PB_E_MEMORY, "no memory for the lines");
    outlet->options = *options;
    fill_format(outlet);
    outlet->pixels = malloc(outlet->line_bytes * options->group_lines);
    outlet->times = calloc(options->group_lines, sizeof *outlet->times);
    int rc = outlet->pixels != NULL && outlet->times != NULL
                 ? 0
                 : pb_fail(err, PB_E_MEMORY, "no memory for the lines");
    if (rc == 0 && options->stream != NULL)
        rc = read_token(outlet, err);
    if (rc == 0 && options->stream != NULL)
        rc = open_stream(outlet, err);
    if (rc != 0)
        (void)pb_outlet_close(outlet);
    else
        *out_outlet = outlet;
    return rc;
}

/* Tries to open the stream again. Returns false while it is not open. */
static bool is_open(struct pb_outlet *outlet)
{
    struct pb_err err = {0};
    if (outlet->writer == NULL && pb_clock_mono_ms() - outlet->tried_ms >= AGAIN_MS &&
        open_stream(outlet, &err) == 0) {
        pb_log(PB_LOG_NOTICE, "stream %s is open again", outlet->options.stream);
        outlet->has_failed = false;
    }
    return outlet->writer != NULL;
}

static void lose_stream(struct pb_outlet *outlet)
{
    pb_log(PB_LOG_WARNING, "stream %s: the service ended it", outlet->options.stream);
    (void)pb_stream_close(outlet->writer, 0);
    outlet->writer = NULL;
    outlet->closed_ms = outlet->tried_ms = pb_clock_mono_ms();
}

static void drop_group(struct pb_outlet *outlet)
{
    if (!outlet->has_failed)
        pb_log(PB_LOG_ERROR, "stream %s is closed: lines are dropped", outlet->options.stream);
    outlet->has_failed = true;
    outlet->options.counts->lines_unsent += outlet->n;
    outlet->n = 0;
}

void pb_outlet_flush(struct pb_outlet *outlet)
{
    const struct timespec pause = {0, WAIT_MS * 1000000};
    while (outlet->n > 0 && outlet->options.stream != NULL) {
        if (!is_open(outlet)) {
            if (outlet->has_failed || *outlet->options.stop ||
                pb_clock_mono_ms() - outlet->closed_ms >= outlet->options.patience_ms)
                drop_group(outlet);
            else
                (void)nanosleep(&pause, NULL);
            continue;
        }
        const int rc = pb_stream_copy(outlet->writer, WAIT_MS, outlet->first, outlet->n,
                                      outlet->pixels, outlet->times);
        if (rc == 0)
            outlet->n = 0;
        else if (rc != -ETIMEDOUT)
            lose_stream(outlet);
        else if (*outlet->options.stop)
            drop_group(outlet);
    }
    outlet->n = 0;
}

static void log_gap(struct pb_outlet *outlet, uint64_t line)
{
    if (outlet->has_line && line < outlet->expected)
        pb_log(PB_LOG_NOTICE, "the counter of lines begins again at %llu",
               (unsigned long long)line);
    else if (outlet->has_line && line == outlet->expected + 1)
        pb_log(PB_LOG_INFO, "line %llu is missing", (unsigned long long)outlet->expected);
    else if (outlet->has_line && line > outlet->expected)
        pb_log(PB_LOG_INFO, "lines %llu to %llu are missing", (unsigned long long)outlet->expected,
               (unsigned long long)line - 1);
    outlet->has_line = true;
    outlet->expected = line + 1;
}

void pb_outlet_line(void *user, uint64_t line, const void *pixels, int64_t time_ns)
{
    struct pb_outlet *const outlet = user;
    log_gap(outlet, line);
    if (outlet->n > 0 && line != outlet->first + outlet->n)
        pb_outlet_flush(outlet);
    if (outlet->n == 0)
        outlet->first = line;
    memcpy(outlet->pixels + outlet->n * outlet->line_bytes, pixels, outlet->line_bytes);
    outlet->times[outlet->n++] = time_ns;
    if (outlet->n == outlet->options.group_lines)
        pb_outlet_flush(outlet);
}

int pb_outlet_close(struct pb_outlet *outlet)
{
    int rc = 0;
    if (outlet == NULL)
        return 0;
    if (outlet->pixels != NULL && outlet->times != NULL)
        pb_outlet_flush(outlet);
    if (outlet->writer != NULL)
        rc = pb_stream_close(outlet->writer, CLOSE_MS);
    if (outlet->has_failed)
        rc = -ECONNRESET;
    free(outlet->pixels);
    free(outlet->times);
    free(outlet);
    return rc;
}
