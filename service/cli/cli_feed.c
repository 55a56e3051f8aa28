/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* `pushbroom feed`: replays a file into a stream of the service, as a sensor would write it. */
#include "service/cli/cli.h"

#include "config/base/clock.h"
#include "config/base/json_writer.h"
#include "config/limits_config.h"
#include "kernels/view.h"
#include "pipeline/raster/raster.h"
#include "service/status/client.h"
#include "service/stream/writer.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CLOSE_MS 60000
#define WAIT_MS  200 /* a full channel is looked at this often for an interrupt */

struct feed {
    const char *file, *stream, *socket, *token_file, *start;
    double rate; /* lines a second; 0 = as fast as possible */
    int64_t group, first, repeat, skip_from, skip_lines;
    bool json;
    char token[512], path[4096];
    int64_t start_ns; /* time of the first line; 0: lines have no times */
    struct pb_raster *raster;
    struct pb_stream_format format;
    struct pb_stream_writer *writer;
    int64_t *times_ns;
    uint64_t lines, gap; /* written, left out */
};

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    (void)number;
    interrupted = 1;
}

/* --- options ---------------------------------------------------------------------------------- */

static bool take_int(const char *text, int64_t least, int64_t *out)
{
    char *end;
    errno = 0;
    const long long n = strtoll(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || n < least)
        return false;
    *out = n;
    return true;
}

static bool take_rate(const char *text, double *out)
{
    char *end;
    const double rate = strtod(text, &end);
    if (end == text || *end != '\0' || !(rate > 0) || !isfinite(rate))
        return false;
    *out = rate;
    return true;
}

/* FIRST:COUNT */
static bool take_skip(const char *text, struct feed *feed)
{
    char from[32];
    const char *colon = strchr(text, ':');
    if (colon == NULL || (size_t)(colon - text) >= sizeof from)
        return false;
    (void)snprintf(from, sizeof from, "%.*s", (int)(colon - text), text);
    return take_int(from, 0, &feed->skip_from) && take_int(colon + 1, 1, &feed->skip_lines);
}

/* False: the option has no such value. */
static bool take_option(struct feed *feed, int c, const char *value)
{
    switch (c) {
    case 's':
        feed->stream = value;
        return true;
    case 'r':
        return take_rate(value, &feed->rate);
    case 'g':
        return take_int(value, 1, &feed->group) && feed->group <= PB_STREAM_GROUP_LINES_MAX;
    case 'f':
        return take_int(value, 0, &feed->first) && feed->first <= INT64_MAX / 4;
    case 'n':
        return take_int(value, 1, &feed->repeat) && feed->repeat <= INT32_MAX;
    case 'k':
        return take_skip(value, feed);
    case 't':
        feed->start = value;
        return true;
    case 'T':
        feed->token_file = value;
        return true;
    case 'S':
        feed->socket = value;
        return true;
    default:
        feed->json = true;
        return true;
    }
}

static int parse(int argc, char **argv, struct feed *feed)
{
    static const struct option longs[] = {
        {"stream", required_argument, NULL, 's'},
        {"lines-per-second", required_argument, NULL, 'r'},
        {"group", required_argument, NULL, 'g'},
        {"first", required_argument, NULL, 'f'},
        {"repeat", required_argument, NULL, 'n'},
        {"skip", required_argument, NULL, 'k'},
        {"start", required_argument, NULL, 't'},
        {"token-file", required_argument, NULL, 'T'},
        {"socket", required_argument, NULL, 'S'},
        {"json", no_argument, NULL, 'j'},
        {NULL, 0, NULL, 0},
    };
    int c, at = 0;
    while ((c = getopt_long(argc, argv, ":s:", longs, &at)) != -1) {
        if (c == '?' || c == ':')
            return cli_bad_option("feed", argv, c, longs);
        if (!take_option(feed, c, optarg))
            return cli_usage("feed", "'%s' is no value of this option", optarg);
    }
    if (feed->stream == NULL)
        return cli_usage("feed", "the stream is missing: --stream NAME");
    if (argc - optind != 1)
        return cli_usage("feed", "one FILE is needed, not %d", argc - optind);
    if (feed->start != NULL && feed->rate == 0)
        return cli_usage("feed", "--start needs --lines-per-second, from which times follow");
    feed->file = argv[optind];
    return CLI_DONE;
}

/* Sets the time of the first line: "now", or RFC 3339 in whole seconds. */
static int find_start(struct feed *feed)
{
    int64_t seconds;
    if (feed->start == NULL)
        return CLI_DONE;
    if (strcmp(feed->start, "now") == 0)
        feed->start_ns = pb_clock_wall_ms() * 1000000;
    else if (pb_clock_read(feed->start, &seconds) && seconds > 0)
        feed->start_ns = seconds * 1000000000;
    else
        return cli_usage("feed", "--start: '%s' is no time, such as 2026-11-30T12:00:00Z, or now",
                         feed->start);
    return CLI_DONE;
}

static int read_token(struct feed *feed, struct pb_err *err)
{
    if (feed->token_file == NULL)
        return 0;
    FILE *file = fopen(feed->token_file, "re");
    if (file == NULL)
        return pb_fail(err, PB_E_USAGE, "cannot read %s: %s", feed->token_file, strerror(errno));
    if (fgets(feed->token, sizeof feed->token, file) == NULL)
        feed->token[0] = '\0';
    (void)fclose(file);
    feed->token[strcspn(feed->token, "\r\n")] = '\0';
    return 0;
}

/* --- the file --------------------------------------------------------------------------------- */

static bool take_type(enum pb_type type, enum pb_stream_type *out)
{
    static const struct {
        enum pb_type type;
        enum pb_stream_type stream;
    } types[] = {{PB_U8, PB_STREAM_UINT8},   {PB_U16, PB_STREAM_UINT16},
                 {PB_I16, PB_STREAM_INT16},  {PB_U32, PB_STREAM_UINT32},
                 {PB_I32, PB_STREAM_INT32},  {PB_F32, PB_STREAM_FLOAT32},
                 {PB_F64, PB_STREAM_FLOAT64}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].type == type) {
            *out = types[i].stream;
            return true;
        }
    return false;
}

static int open_file(struct feed *feed, struct pb_err *err)
{
    static const struct pb_limits limits = {.max_pixels = UINT64_MAX,
                                            .max_block_bytes = UINT64_C(1) << 30,
                                            .max_side_px = PB_STREAM_SAMPLES_MAX,
                                            .max_bands = 64,
                                            .max_directories = 1024};
    int rc = pb_raster_ready(err);
    rc = rc ? rc : pb_raster_open(feed->file, &limits, err, &feed->raster);
    if (rc != 0)
        return rc;
    const struct pb_raster_info *info = pb_raster_info(feed->raster);
    feed->format = (struct pb_stream_format){.bands = (uint32_t)info->n_bands,
                                             .samples = (uint32_t)info->width,
                                             .group_lines = (uint32_t)feed->group};
    if (!take_type(info->type, &feed->format.type))
        return pb_fail(err, PB_E_INPUT_UNSUPPORTED, "%s: streams have no such type of pixels",
                       feed->file);
    if (pb_stream_slot_bytes(&feed->format) == 0)
        return pb_fail(err, PB_E_USAGE, "groups of %lld lines of %s are too large; use --group",
                       (long long)feed->group, feed->file);
    feed->times_ns = calloc((size_t)feed->group, sizeof *feed->times_ns);
    return feed->times_ns ? 0 : pb_fail(err, PB_E_MEMORY, "out of memory");
}

/* --- the stream ------------------------------------------------------------------------------- */

static enum pb_code code_of(int rc)
{
    return rc == -EINVAL ? PB_E_USAGE : PB_E_SERVICE_UNREACHABLE;
}

static int open_stream(struct feed *feed, struct pb_err *err)
{
    const struct pb_raster_info *info = pb_raster_info(feed->raster);
    const char *status = feed->socket ? feed->socket : pb_client_default_path();
    const char *slash = strrchr(status, '/');
    char error[PB_STREAM_ERROR_BYTES] = "";
    struct pb_stream_options options = {.socket = feed->path,
                                        .stream = feed->stream,
                                        .token = feed->token[0] ? feed->token : NULL,
                                        .format = feed->format,
                                        .has_transform = info->has_transform};
    (void)snprintf(feed->path, sizeof feed->path, "%.*sstreams.sock",
                   slash ? (int)(slash - status) + 1 : 0, status);
    (void)memcpy(options.transform, info->transform, sizeof options.transform);
    if (strncmp(info->crs_code, "EPSG:", 5) == 0)
        options.epsg = (uint32_t)strtoul(info->crs_code + 5, NULL, 10);
    const int rc = pb_stream_open(&options, error, &feed->writer);
    return rc ? pb_fail(err, code_of(rc), "stream %s: %s", feed->stream, error) : 0;
}

/* Waits until line n of all is due. */
static void pace(const struct feed *feed, uint64_t start_ns, uint64_t line)
{
    if (feed->rate == 0)
        return;
    const uint64_t due = start_ns + (uint64_t)((double)line / feed->rate * 1e9);
    const struct timespec at = {(time_t)(due / 1000000000), (long)(due % 1000000000)};
    while (!interrupted && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR) {
    }
}

/* Gets room, and gives up when the command is interrupted. */
static int acquire(struct feed *feed, void **out_pixels)
{
    int rc;
    do
        rc = pb_stream_acquire(feed->writer, WAIT_MS, out_pixels);
    while (rc == -ETIMEDOUT && !interrupted);
    return rc;
}

static int read_lines(struct feed *feed, int32_t row, int32_t n, void *pixels, struct pb_err *err)
{
    int32_t bands[PB_BANDS_MAX];
    const size_t line_bytes = pb_stream_line_bytes(&feed->format);
    for (int32_t b = 0; b < (int32_t)feed->format.bands; b++)
        bands[b] = b + 1;
    const struct pb_window to = {.data = pixels,
                                 .row_bytes = line_bytes,
                                 .plane_bytes = line_bytes / feed->format.bands,
                                 .rect = {0, row, (int32_t)feed->format.samples, n}};
    return pb_raster_read(feed->raster, bands, feed->format.bands, &to, err);
}

/* Writes n lines of the file, which are lines `at` and later of all that are fed. */
static int write_group(struct feed *feed, int32_t row, int32_t n, uint64_t at, struct pb_err *err)
{
    void *pixels = NULL;
    int rc = acquire(feed, &pixels);
    if (rc != 0)
        return interrupted ? -EINTR
                           : pb_fail(err, PB_E_SERVICE_UNREACHABLE,
                                     "stream %s: the service ended it", feed->stream);
    rc = read_lines(feed, row, n, pixels, err);
    if (rc != 0)
        return rc;
    for (int32_t i = 0; i < n; i++)
        feed->times_ns[i] =
            feed->start_ns +
            (feed->rate > 0 ? (int64_t)((double)(at + (uint64_t)i) / feed->rate * 1e9) : 0);
    rc = pb_stream_publish(feed->writer, (uint64_t)feed->first + at, (uint32_t)n,
                           feed->start_ns > 0 ? feed->times_ns : NULL);
    feed->lines += rc == 0 ? (uint64_t)n : 0;
    return rc ? pb_fail(err, PB_E_SERVICE_UNREACHABLE, "stream %s: the service ended it",
                        feed->stream)
              : 0;
}

/* Count of lines from `at` that --skip leaves out; *n: lines before the next that it does. */
static uint64_t skipped(const struct feed *feed, uint64_t at, int32_t *n)
{
    const uint64_t from = (uint64_t)feed->skip_from, end = from + (uint64_t)feed->skip_lines;
    if (feed->skip_lines == 0 || at >= end)
        return 0;
    if (at >= from)
        return end - at;
    if (from - at < (uint64_t)*n)
        *n = (int32_t)(from - at);
    return 0;
}

static int play(struct feed *feed, struct pb_err *err)
{
    const int32_t height = pb_raster_info(feed->raster)->height;
    const uint64_t total = (uint64_t)height * (uint64_t)feed->repeat;
    const uint64_t start_ns = pb_clock_mono_ns();
    int rc = 0;
    for (uint64_t at = 0; rc == 0 && at < total && !interrupted;) {
        const int32_t row = (int32_t)(at % (uint64_t)height);
        int32_t n = height - row < (int32_t)feed->group ? height - row : (int32_t)feed->group;
        const uint64_t skip = skipped(feed, at, &n);
        if (skip > 0) {
            feed->gap += skip;
            at += skip;
            continue;
        }
        pace(feed, start_ns, at + (uint64_t)n);
        rc = interrupted ? -EINTR : write_group(feed, row, n, at, err);
        at += (uint64_t)n;
    }
    return interrupted ? -EINTR : rc;
}

/* --- the command ------------------------------------------------------------------------------ */

static void print_result(const struct feed *feed, double seconds)
{
    if (!feed->json) {
        printf("%llu lines in %.2f s to stream %s\n", (unsigned long long)feed->lines, seconds,
               feed->stream);
        return;
    }
    struct pb_json *json = pb_json_create(false);
    pb_json_object(json, NULL);
    pb_json_string(json, "stream", feed->stream);
    pb_json_int(json, "lines", (int64_t)feed->lines);
    pb_json_int(json, "left_out", (int64_t)feed->gap);
    pb_json_number(json, "seconds", seconds);
    pb_json_end(json);
    (void)cli_finish_json(json);
}

static int run(struct feed *feed, struct pb_err *err)
{
    int rc = read_token(feed, err);
    rc = rc ? rc : open_file(feed, err);
    rc = rc ? rc : open_stream(feed, err);
    if (rc != 0)
        return rc;
    (void)signal(SIGINT, on_signal);
    (void)signal(SIGTERM, on_signal);
    const uint64_t start_ns = pb_clock_mono_ns();
    rc = play(feed, err);
    const int end = pb_stream_close(feed->writer, CLOSE_MS);
    feed->writer = NULL;
    if (rc == -EINTR) /* a requested end, with all lines so far */
        rc = 0;
    if (rc == 0 && end != 0)
        rc = pb_fail(err, PB_E_SERVICE_UNREACHABLE,
                     "stream %s: the service did not confirm the last lines", feed->stream);
    if (rc == 0)
        print_result(feed, (double)(pb_clock_mono_ns() - start_ns) / 1e9);
    return rc;
}

int cli_feed(int argc, char **argv)
{
    struct feed *feed = calloc(1, sizeof *feed);
    struct pb_err err = {0};
    if (feed == NULL)
        return CLI_JOB_FAILED;
    feed->group = 16;
    feed->repeat = 1;
    int code = parse(argc, argv, feed);
    code = code ? code : find_start(feed);
    const int rc = code == CLI_DONE ? run(feed, &err) : 0;
    if (rc != 0) {
        cli_print_err(&err);
        code = err.code == PB_E_SERVICE_UNREACHABLE ? CLI_UNREACHABLE
               : err.code == PB_E_USAGE             ? CLI_USAGE
                                                    : CLI_JOB_FAILED;
    }
    pb_raster_close(feed->raster);
    free(feed->times_ns);
    free(feed);
    return code;
}
