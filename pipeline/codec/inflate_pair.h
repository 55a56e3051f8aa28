/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_INFLATE_PAIR_H
#define PB_INFLATE_PAIR_H
/* Decodes two zlib streams (RFC 1950) alternately in one thread. In a single stream each symbol
 * waits for the one before; of two streams, one is decoded while the other waits: 1.4 to 1.6 times
 * as fast as libdeflate on samples with a predictor and 1.3 to 1.5 times without one, and one
 * stream alone 1.2 to 1.4 times. About as fast on long matches; slower on streams of a few KiB. It
 * accepts the same streams as libdeflate. A pair belongs to one thread at a time. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pb_inflate_pair;

enum pb_inflate_end {
    PB_INFLATE_COMPLETE, /* complete, with the right Adler-32 */
    PB_INFLATE_LONGER,   /* longer than the output may be */
    PB_INFLATE_DAMAGED,
    PB_INFLATE_PAUSED /* not ended: the window is full */
};

/* Bytes of a window for an output that is taken in rows of row_bytes. */
size_t pb_inflate_window_bytes(size_t row_bytes);

int pb_inflate_pair_create(struct pb_inflate_pair **out_pair); /* 0 or -ENOMEM. Thread: init */
void pb_inflate_pair_destroy(struct pb_inflate_pair *pair);    /* NULL is fine */
extern const size_t pb_inflate_pair_bytes;                     /* memory that create() allocates */

/* Begins a stream in lane 0 or 1; drops the lane's earlier stream. in and out are borrowed until it
 * has ended; out has `most` bytes, all of which may be written. */
void pb_inflate_pair_start(struct pb_inflate_pair *pair, unsigned lane, const uint8_t *in,
                           size_t in_bytes, uint8_t *out, size_t most);
/* The same for an output of `most` bytes that does not fit into memory: next reports a full window,
 * and slide makes room in it. The caller leaves the window unchanged, because the stream may repeat
 * its bytes. */
void pb_inflate_pair_start_window(struct pb_inflate_pair *pair, unsigned lane, const uint8_t *in,
                                  size_t in_bytes, uint8_t *window, size_t window_bytes,
                                  size_t most);
/* Call it after PAUSED, before the next call of next. Removes bytes from the beginning of the
 * window that the stream cannot repeat, up to `most`, a multiple of 64, and returns their count.
 * There is room for a row then if `most` includes all whole rows. */
size_t pb_inflate_pair_slide(struct pb_inflate_pair *pair, unsigned lane, size_t most);
/* Decodes until a stream has ended or paused, and returns its lane. After its end it is empty, and
 * the other lane can continue with a new partner. At least one lane must be started. *out_bytes:
 * bytes of a complete stream, or those in its window. */
unsigned pb_inflate_pair_next(struct pb_inflate_pair *pair, enum pb_inflate_end *out_end,
                              size_t *out_bytes);
bool pb_inflate_pair_is_idle(const struct pb_inflate_pair *pair);       /* no stream is started */
void pb_inflate_pair_stop(struct pb_inflate_pair *pair, unsigned lane); /* drops its stream */
#endif
