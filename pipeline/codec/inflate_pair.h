/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_INFLATE_PAIR_H
#define PB_INFLATE_PAIR_H
/* Decodes two zlib streams (RFC 1950) in turn by one thread. A lone stream waits for one symbol
 * after the other; of two, one is decoded while the other waits: 1.3 to 1.6 times as fast as
 * libdeflate on 16-bit samples with a predictor, 1.0 to 1.2 times without one. Slower on streams of
 * a few KiB and on long runs. What is a valid stream is what libdeflate takes for one. A pair
 * belongs to one thread at a time. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pb_inflate_pair;

enum pb_inflate_end {
    PB_INFLATE_COMPLETE, /* and its Adler-32 is right */
    PB_INFLATE_LONGER,   /* than the output */
    PB_INFLATE_DAMAGED
};

int pb_inflate_pair_create(struct pb_inflate_pair **out_pair); /* 0 or -ENOMEM. Thread: init */
void pb_inflate_pair_destroy(struct pb_inflate_pair *pair);    /* NULL is fine */
extern const size_t pb_inflate_pair_bytes;                     /* that create() takes */

/* Begins a stream in lane 0 or 1; what it had is dropped. in and out are borrowed until it has
 * ended; out has `most` bytes, all of which may be written. */
void pb_inflate_pair_start(struct pb_inflate_pair *pair, unsigned lane, const uint8_t *in,
                           size_t in_bytes, uint8_t *out, size_t most);
/* Decodes until a stream has ended, and returns its lane, which has none then; the other one can go
 * on with another. At least one was started. *out_bytes: of the output, of a complete stream. */
unsigned pb_inflate_pair_next(struct pb_inflate_pair *pair, enum pb_inflate_end *out_end,
                              size_t *out_bytes);
void pb_inflate_pair_stop(struct pb_inflate_pair *pair, unsigned lane); /* drops its stream */
#endif
