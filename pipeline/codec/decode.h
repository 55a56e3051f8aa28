/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_DECODE_H
#define PB_DECODE_H
/* Decoders of one TIFF block, strict: a block is decoded completely and consistently or refused.
 * When run() returns 0, the first `least` bytes of the output were written by it and depend on the
 * stream alone: no byte that was in the buffer before becomes a pixel. The input is not trusted:
 * any bytes of any length give 0 or -EBADMSG, in time linear in input and output.
 *
 * A block is smaller than 4 GiB. It must give at least `least` bytes (the rows inside the
 * image) and at most `most` (a full block: writers pad the last strip). Bytes after the end of a
 * stream are padding. A context belongs to one thread at a time. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pb_decode_limits {
    size_t least, most;
};

/* Result of next_part(). */
struct pb_decode_part {
    size_t bytes;    /* bytes in the window */
    bool ended;      /* the block is complete or refused; false: the window is full */
    const char *why; /* reason of a refusal; static */
};

struct pb_decode {
    const char *name;
    bool verifies_only;   /* checks whether a stream is complete; run() writes nothing */
    size_t context_bytes; /* upper bound of the memory that create() allocates */
    int (*create)(void **out_context); /* 0 or -ENOMEM. Thread: init */
    void (*destroy)(void *context);    /* NULL is fine */
    /* 0, or -EBADMSG and the error in *out_why (static). */
    int (*run)(void *context, const uint8_t *in, size_t in_bytes, uint8_t *out, size_t least,
               size_t most, const char **out_why);
    /* Decode two blocks alternately, which is faster than one after the other; NULL: not supported
     * by the codec. start() begins a block in lane 0 or 1 and drops the lane's earlier block; in
     * and out are borrowed until next() has reported the end of that lane, or until stop(). next()
     * decodes until a block is complete or refused; results as for run(); a lane must be started.
     * run() may be called between these calls. */
    void (*start)(void *context, unsigned lane, const uint8_t *in, size_t in_bytes, uint8_t *out,
                  size_t least, size_t most);
    int (*next)(void *context, unsigned *out_lane, const char **out_why);
    void (*stop)(void *context, unsigned lane);
    /* The same for a block whose output is copied in rows of row_bytes while it is decoded. It
     * begins in a window of window_bytes(row_bytes). next_part() returns when a block has ended or
     * a window is full; an error of the block may follow later. slide() removes up to `most` bytes
     * from the beginning of a full window, moves the others there, and returns the count of removed
     * ones. */
    size_t (*window_bytes)(size_t row_bytes);
    void (*start_window)(void *context, unsigned lane, const uint8_t *in, size_t in_bytes,
                         uint8_t *window, size_t bytes, const struct pb_decode_limits *limits);
    int (*next_part)(void *context, unsigned *out_lane, struct pb_decode_part *out_part);
    size_t (*slide)(void *context, unsigned lane, size_t most);
};

extern const struct pb_decode pb_decode_deflate;  /* decode_deflate.c */
extern const struct pb_decode pb_decode_lzw;      /* decode_lzw.c */
extern const struct pb_decode pb_decode_packbits; /* decode_packbits.c */
extern const struct pb_decode pb_decode_zstd;     /* decode_zstd.c */
extern const struct pb_decode pb_decode_jpeg, pb_decode_webp, pb_decode_lzma; /* .._envelope.c */

/* Decoder for the value of tag 259; NULL = not supported here, or stored uncompressed. */
const struct pb_decode *pb_decode_of(uint16_t tiff_compression);

/* Messages of decoders. */
extern const char pb_decode_short[], pb_decode_long[], pb_decode_bad[];
#endif
