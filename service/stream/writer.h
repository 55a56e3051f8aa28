/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_STREAM_WRITER_H
#define PB_STREAM_WRITER_H
/* Writes lines of a sensor into a stream of pushbroomd (input.stream of a pipeline). Lines are
 * written in groups: consecutive lines, each with its bands one after the other
 * (band-interleaved by line). A group is in memory that the writer and the service share, thus no
 * line is copied on the way.
 *
 *   struct pb_stream_format format = {.type = PB_STREAM_UINT16, .bands = 4, .samples = 4096,
 *                                     .group_lines = 16};
 *   struct pb_stream_options options = {.socket = "/run/pushbroom/streams.sock",
 *                                       .stream = "swir", .format = format};
 *   struct pb_stream_writer *writer;
 *   char error[PB_STREAM_ERROR_BYTES];
 *   if (pb_stream_open(&options, error, &writer) != 0)
 *       ...
 *   while ((rc = pb_stream_acquire(writer, -1, &pixels)) == 0) {
 *       fill(pixels);
 *       pb_stream_publish(writer, line, 16, times);
 *   }
 *   pb_stream_close(writer, 10000);
 *
 * Lines have numbers. A number that is larger than expected is a gap: the lines between are
 * invalid in the products. A smaller one begins a new scene.
 *
 * Functions return 0 or a negative errno. Thread: one at a time for each writer. This header and
 * its library need nothing else of pushbroom. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

#define PB_STREAM_ERROR_BYTES     512
#define PB_STREAM_NAME_BYTES      64
#define PB_STREAM_CRS_BYTES       4096
#define PB_STREAM_BANDS_MAX       256
#define PB_STREAM_SAMPLES_MAX     1048576
#define PB_STREAM_GROUP_LINES_MAX 4096
#define PB_STREAM_GROUP_BYTES_MAX (64u << 20)
#define PB_STREAM_HANDSHAKE_BYTES 16384 /* largest request and answer, with the line feed */
#define PB_STREAM_NO_TIME         INT64_MIN

enum pb_stream_type {
    PB_STREAM_UINT8,
    PB_STREAM_UINT16,
    PB_STREAM_INT16,
    PB_STREAM_UINT32,
    PB_STREAM_INT32,
    PB_STREAM_FLOAT32,
    PB_STREAM_FLOAT64,
    PB_STREAM_TYPES
};

/* Shape of the lines of a writer, the same for all of its groups. */
struct pb_stream_format {
    enum pb_stream_type type;
    uint32_t bands, samples; /* samples: pixels of a line */
    uint32_t group_lines;    /* most lines of a group */
};

struct pb_stream_options {
    const char *socket; /* path of the service's socket of streams */
    const char *stream; /* name of the stream */
    const char *token;  /* content of the stream's token file; NULL = rights by the user */
    struct pb_stream_format format;
    /* GDAL's geotransform of line 0 of the stream; the one of a scene that begins at line n is
     * moved by n lines. Only with has_transform. */
    bool has_transform;
    double transform[6];
    uint32_t epsg; /* code of the coordinate system; 0 = unknown */
};

struct pb_stream_writer;

/* Connects to the service and becomes the writer of the stream. Waits 10 s at most. On failure
 * `error` has the reason. -ENOENT: there is no such stream, or no service; -EACCES: no right to
 * write; -EBUSY: the stream has a writer; -EINVAL: the format is refused; -EPROTO: the answer makes
 * no sense. All strings are borrowed for the call. */
int pb_stream_open(const struct pb_stream_options *options, char error[PB_STREAM_ERROR_BYTES],
                   struct pb_stream_writer **out_writer);
/* Gets room for one group: group_lines lines of bands * samples pixels, owned by the caller until
 * pb_stream_publish. Waits up to timeout_ms (-1: for ever) while all groups are full. Repeated
 * calls return the same room. -ETIMEDOUT; -ECONNRESET: the service ended the stream, or is gone:
 * open again. */
int pb_stream_acquire(struct pb_stream_writer *writer, int64_t timeout_ms, void **out_pixels);
/* Publishes `lines` lines (1 to group_lines) of the acquired room. line: number of the first one;
 * times_ns: time of acquisition of each, nanoseconds since 1970-01-01 UTC, PB_STREAM_NO_TIME =
 * unknown; NULL = all unknown. -EINVAL; -ECONNRESET. */
int pb_stream_publish(struct pb_stream_writer *writer, uint64_t line, uint32_t lines,
                      const int64_t *times_ns);
/* Acquires room, copies the lines and publishes them. */
int pb_stream_copy(struct pb_stream_writer *writer, int64_t timeout_ms, uint64_t line,
                   uint32_t lines, const void *pixels, const int64_t *times_ns);
/* Ends the stream's scene, and waits up to timeout_ms until the service has taken all lines. Frees
 * the writer in any case (NULL is allowed). 0: all lines were taken; -ETIMEDOUT; -ECONNRESET. */
int pb_stream_close(struct pb_stream_writer *writer, int64_t timeout_ms);

/* --- the shared memory, for writers without this library and for the service -------------------
 */

/* Start of a group's slot. Times follow at pb_stream_times_offset, pixels at
 * pb_stream_pixels_offset. */
struct pb_stream_group {
    uint64_t line;
    uint32_t lines;
    uint32_t has_times;   /* 0 or 1 */
    int64_t published_ns; /* CLOCK_MONOTONIC at its publication */
    uint8_t reserved[40];
};

/* Word of a type in the handshake, such as "uint16". NULL: not a type. */
const char *pb_stream_type_word(enum pb_stream_type type);
size_t pb_stream_type_bytes(enum pb_stream_type type);
/* Bytes of one line of all bands. */
size_t pb_stream_line_bytes(const struct pb_stream_format *format);
size_t pb_stream_times_offset(void);
size_t pb_stream_pixels_offset(const struct pb_stream_format *format);
/* Bytes of a slot. 0: the format is invalid, or its groups are too large. */
size_t pb_stream_slot_bytes(const struct pb_stream_format *format);

struct wic_channel;
struct wic_slot;

/* The channel in a memfd: words of the channel in whole pages, then the slots. */
struct pb_stream_room {
    void *base; /* NULL = closed */
    size_t bytes;
    struct wic_channel *channel;
};

/* Bytes of the memfd; 0 = not possible. */
size_t pb_stream_room_bytes(uint32_t slots, size_t slot_bytes);
/* Maps the memfd (borrowed) and joins the channel. first: initialises it. check, context: of struct
 * wic_join. -EINVAL: the memfd is too small; -ENOMEM; -EPROTO. */
int pb_stream_room_open(int fd, uint32_t slots, size_t slot_bytes, bool first,
                        int (*check)(void *context, struct wic_slot *slot), void *context,
                        struct pb_stream_room *out_room);
void pb_stream_room_close(struct pb_stream_room *room);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
