/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_BLOCK_READER_H
#define PB_BLOCK_READER_H
/* Reads pixels of one image of a TIFF, block by block, without GDAL: plain layouts that are stored
 * as they are, or by deflate, LZW, PackBits or zstd. A block decodes completely and consistently or
 * fails the read; memory is cleared before a decoder sees it. Of images whose pixels only GDAL can
 * make, it verifies that the blocks decode (pb_block_reader_check).
 *
 * Holds one block as stored and one as decoded, or two of each, taken with the first read. Belongs
 * to one thread at a time. */
#include "pipeline/raster/block_copy.h"
#include "pipeline/raster/block_layout.h"
#include "pipeline/raster/raster.h"

struct pb_block_reader;

/* part is copied, its descriptor and name are borrowed until destroy. directory: where the image's
 * directory is. 0 with NULL when the layout or the codec is none that is understood here; errors of
 * reading. */
int pb_block_reader_create(const struct pb_file_part *part, const char *name, uint64_t directory,
                           struct pb_err *err, struct pb_block_reader **out_reader);
void pb_block_reader_destroy(struct pb_block_reader *reader); /* NULL is fine */

/* It can read pixels: a plain layout, and a codec that is decoded here. */
bool pb_block_reader_decodes(const struct pb_block_reader *reader);
const struct pb_block_layout *pb_block_reader_layout(const struct pb_block_reader *reader);
/* Most memory that it holds. */
uint64_t pb_block_reader_bytes(const struct pb_block_reader *reader);

/* Reads into target->to as pb_raster_read does, for a plain layout of samples of target->type. The
 * mask is made from the alpha band: a sample that rounds to 0 is invalid; without one all is valid.
 * target->layout is the reader's, target->rect lies in the image. On failure *err holds
 * input.damaged with codec, block and what is wrong with it, input.truncated, input.io, or memory.
 * Thread: the reader's. */
int pb_block_reader_read(struct pb_block_reader *reader, const struct pb_block_target *target,
                         struct pb_err *err);

/* Whether two blocks are decoded in turn, which is faster: then the next one in the rectangle of a
 * read is, and of its last one the first block of the rectangle that was last expected. That is the
 * rectangle of the next read; an empty one takes it back. Nothing depends on it but the speed. */
bool pb_block_reader_is_ahead(const struct pb_block_reader *reader);
void pb_block_reader_expect(struct pb_block_reader *reader, const struct pb_rect *rect);

/* A block of the first plane as the file has it. *out_bytes is 0 when it is not stored, or takes
 * more than `capacity`. Thread: any, also while the reader is used. */
int pb_block_reader_stored(const struct pb_block_reader *reader, uint32_t col, uint32_t row,
                           void *out, size_t capacity, struct pb_err *err, size_t *out_bytes);

/* The places of all blocks, row-major within a plane, planes one after the other: across * down of
 * each. bytes is what is to be read: at most layout's stored_max, and of blocks that are stored as
 * they are what their rows need. Errors of reading. Thread: any. */
int pb_block_reader_places(const struct pb_block_reader *reader, struct pb_err *err,
                           struct pb_block_place *out_place);
/* Stored bytes of a block at that place, from byte `from` of it, as a read of its pixels would get
 * them: the same errors. Thread: any. */
int pb_block_reader_fetch(const struct pb_block_reader *reader, uint64_t index,
                          const struct pb_block_place *place, uint64_t from, void *out,
                          size_t bytes, struct pb_err *err);
/* Decodes a stored block; *out_data: the reader's until its next call, layout's block_bytes of it
 * as the predictor has left them. Errors as above. Of a reader that reads no pixels. Thread: the
 * reader's. */
int pb_block_reader_decode(struct pb_block_reader *reader, uint64_t index, struct pb_err *err,
                           const void **out_data);

/* Decodes the blocks below rect, of all planes, for verification only. Errors as above. */
int pb_block_reader_check(struct pb_block_reader *reader, const struct pb_rect *rect,
                          struct pb_err *err);
/* The same for all blocks, without holding one: for deflate strips as high as the image. Of other
 * codecs nothing is verified. */
int pb_block_reader_check_long(struct pb_block_reader *reader, struct pb_err *err);
#endif
