/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_BLOCK_DECODE_H
#define PB_BLOCK_DECODE_H
/* Memory of a block reader and decoding of file blocks into it: one block at a time or, if the
 * codec supports it, two blocks at once, the requested one and the next one. Private to
 * block_reader*.c. Belongs to one thread at a time. */
#include "kernels/view.h"
#include "pipeline/codec/decode.h"
#include "pipeline/raster/block_layout.h"

/* One block of one plane, and the intersection of a rectangle with it. */
struct pb_block {
    uint64_t index;
    uint32_t plane, col, row;
    struct pb_block_place place;
    struct pb_rect part; /* image coordinates */
};

enum pb_block_state {
    PB_BLOCK_NONE,
    PB_BLOCK_STARTED, /* being decoded */
    PB_BLOCK_UNREAD,  /* reading ahead failed; the reason is in `rc` and `err` */
    PB_BLOCK_REFUSED, /* refused by the codec; the reason is in `why` */
    PB_BLOCK_DECODED, /* samples as the file has them */
    PB_BLOCK_READY    /* the predictor is undone, bytes are in the host's order */
};

struct pb_block_buffer {
    enum pb_block_state state;
    uint64_t index;
    const char *why;
    int rc;
    struct pb_err err;
    unsigned char *decoded, *stored;
};

struct pb_block_decoder {
    const struct pb_block_layout *layout; /* borrowed */
    const struct pb_decode *decode;       /* NULL: stored uncompressed */
    void *context;
    struct pb_block_buffer buffer[2]; /* the second one is used if n_buffers is 2 */
    unsigned n_buffers;
    bool has_windows; /* the codec decodes through windows, and blocks are small enough for it */
    uint64_t decoded_bytes, stored_bytes; /* bytes of each buffer */
    unsigned char *row;                   /* row after the first buffer's decoded bytes */
    /* A window for each buffer, through which blocks are decoded, and two rows; NULL until they are
     * used. */
    unsigned char *windows;
    size_t window_bytes;
};

/* Windows of a decoder: their addresses, and two rows for the samples of one. */
unsigned char *pb_block_window(const struct pb_block_decoder *decoder, unsigned lane);
unsigned char *pb_block_window_row(const struct pb_block_decoder *decoder, unsigned i);

/* decoder: zeroed; call fini after a failure too. Returns 0; -ENOTSUP: the codec is not
 * supported here; memory. */
int pb_block_decoder_init(struct pb_block_decoder *decoder, const struct pb_block_layout *layout,
                          struct pb_err *err);
void pb_block_decoder_fini(struct pb_block_decoder *decoder);
uint64_t pb_block_decoder_bytes(const struct pb_block_decoder *decoder); /* upper bound */
uint64_t
pb_block_decoder_spared_bytes(const struct pb_block_decoder *decoder); /* bytes that windows save */
int pb_block_decoder_take_memory(struct pb_block_decoder *decoder, struct pb_err *err);
/* The same for windows; requires has_windows. The buffers' stored bytes are used, too. */
int pb_block_decoder_take_windows(struct pb_block_decoder *decoder, struct pb_err *err);

/* Reads a stored block and starts to decode it through window `lane`, 0 or 1. Errors of reading. */
int pb_block_start_window(struct pb_block_decoder *decoder, const struct pb_tiff_file *file,
                          const struct pb_block *block, unsigned lane);

/* Reads and decodes a stored block: *out_buffer is valid until the next call. next: the block of
 * the next call, NULL = unknown; it is read and decoded together with this one if that is
 * faster. Its errors are reported by its own call. */
int pb_block_decode(struct pb_block_decoder *decoder, const struct pb_tiff_file *file,
                    const struct pb_block *block, const struct pb_block *next,
                    struct pb_block_buffer **out_buffer);

/* Fails with input.damaged: the block, its codec, and the reason. */
int pb_block_damaged(const struct pb_block_decoder *decoder, const struct pb_tiff_file *file,
                     const struct pb_block *block, const char *why);
int pb_block_read_bytes(const struct pb_block_decoder *decoder, const struct pb_tiff_file *file,
                        const struct pb_block *block, uint64_t offset, void *out, uint64_t bytes);
#endif
