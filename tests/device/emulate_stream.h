/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_EMULATE_STREAM_H
#define PB_EMULATE_STREAM_H
/* The host's part of wic/stream.hpp, by a link that the program brings (tests/unit/fake_link.h): a
 * result has the bytes of its frame, each plus the ninth user byte of the frame. Each function uses
 * a stream of its own and returns NULL or what was wrong. `words`: buffer of EMULATE_WORDS bytes
 * for stream::error(). Thread: any, one at a time. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define EMULATE_WORDS 400

/* Pushes frames of different sizes by one thread that pops what is there. copies: by push, else by
 * acquire and publish; alone: options.one_thread. */
const char *emulate_stream_frames(uint32_t frames, uint32_t slots, bool copies, bool alone,
                                  char *words);
/* A frame that is acquired and dropped gives an empty result. */
const char *emulate_stream_dropped_frame(char *words);
/* Pushes until no slot is free, then pops everything. */
const char *emulate_stream_full(char *words);
const char *emulate_stream_wrong_size(bool whole, char *words);
/* Opens a stream of this many units; good: true if that works. */
const char *emulate_stream_open(size_t units, uint32_t slots, bool good, char *words);
/* Pushes and pops until a call fails. */
const char *emulate_stream_failure(char *words);
/* A second thread pops, and waits when the stream is cancelled. */
const char *emulate_stream_cancel(char *words);
/* Stops a stream with frames under way, when wait returns; good: the result of stop. */
const char *emulate_stream_stop(bool good, void (*wait)(void), char *words);

/* wic/guest.hpp: frames with pauses between them by a kernel that stays, which is there when wait
 * returns; a kernel that leaves; a stream that cannot be opened. */
const char *emulate_stream_guests(void (*wait)(void), char *words);
const char *emulate_stream_guests_without_kernel(char *words);
const char *emulate_stream_guests_open(size_t units, bool alone, char *words);
/* wic/rows.hpp: frames of these shapes; each pixel of a frame is in one piece, by one thread. */
const char *emulate_stream_rows(char *words);
const char *emulate_stream_pixels(void);
const char *emulate_stream_layouts(void);
/* wic/reduction.hpp: the size of results; values of threads that are combined at the same time. */
const char *emulate_stream_parts(char *words);
const char *emulate_stream_tree(void);
const char *emulate_stream_wrong_image(uint32_t width, uint32_t height, uint32_t bands,
                                       size_t pitch, char *words);

#ifdef __cplusplus
}
#endif
#endif
