/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_BLOCK_READER_H
#define PB_BLOCK_READER_H
/* Reads pixels of one image of a TIFF, block by block, without GDAL: plain layouts, stored
 * uncompressed or with deflate, LZW, PackBits or zstd. A block decodes completely and
 * consistently or fails the read; memory is cleared before a decoder reads it. For images whose
 * pixels only GDAL can make, it verifies that the blocks decode (pb_block_reader_check).
 *
 * Holds one stored and one decoded block, or two of each, or two stored ones and the windows
 * through which they are decoded, allocated by the first read of that kind. Belongs to one thread
 * at a time. */
#include "pipeline/raster/block_copy.h"
#include "pipeline/raster/block_layout.h"
#include "pipeline/raster/raster.h"

struct pb_block_reader;

/* part is copied, its descriptor and name are borrowed until destroy. directory: offset of the
 * image's directory. Returns 0, with NULL if the layout or the codec is not supported here, or
 * an error of reading. */
int pb_block_reader_create(const struct pb_file_part *part, const char *name, uint64_t directory,
                           struct pb_err *err, struct pb_block_reader **out_reader);
void pb_block_reader_destroy(struct pb_block_reader *reader); /* NULL is fine */

/* True if it can read pixels: a plain layout and a codec that is decoded here. */
bool pb_block_reader_decodes(const struct pb_block_reader *reader);
const struct pb_block_layout *pb_block_reader_layout(const struct pb_block_reader *reader);
/* Upper bound of its memory in bytes. spared: bytes of it that reads by pb_block_reader_read_two
 * alone do not need. */
uint64_t pb_block_reader_bytes(const struct pb_block_reader *reader);
uint64_t pb_block_reader_spared_bytes(const struct pb_block_reader *reader);

/* Reads into target->to as pb_raster_read does, for a plain layout of samples of target->type.
 * The mask is made from the alpha band: a sample that rounds to 0 is invalid; without an alpha
 * band all pixels are valid. target->layout is the reader's, target->rect is inside the image.
 * On failure *err is input.damaged with codec, block and reason, input.truncated, input.io, or
 * memory. Thread: the reader's. */
int pb_block_reader_read(struct pb_block_reader *reader, const struct pb_block_target *target,
                         struct pb_err *err);

/* Reads n targets, 1 or 2, with blocks of both at once, if pb_block_reader_is_ahead. Rows are
 * copied while their block is decoded: after a failure a target has any pixels. Errors as above,
 * for each target. out_result: zeroed. */
void pb_block_reader_read_two(struct pb_block_reader *reader, const struct pb_block_target *target,
                              unsigned n, struct pb_read_result *out_result);

/* Returns true if two blocks are decoded alternately, which is faster. The second one is the
 * next block in the rectangle of a read or, after its last block, the first block of the
 * rectangle given to pb_block_reader_expect: the rectangle of the next read; an empty one
 * cancels. Only the speed depends on it. */
bool pb_block_reader_is_ahead(const struct pb_block_reader *reader);
void pb_block_reader_expect(struct pb_block_reader *reader, const struct pb_rect *rect);

/* Copies a stored block of the first plane. *out_bytes is 0 if the block is not stored or larger
 * than `capacity`. Thread: any, also while the reader is used. */
int pb_block_reader_stored(const struct pb_block_reader *reader, uint32_t col, uint32_t row,
                           void *out, size_t capacity, struct pb_err *err, size_t *out_bytes);

/* Places of all blocks, row-major within a plane, planes one after the other: across * down of
 * each. bytes is the count to read: at most the layout's stored_max; for uncompressed blocks the
 * bytes of their rows. Errors of reading. Thread: any. */
int pb_block_reader_places(const struct pb_block_reader *reader, struct pb_err *err,
                           struct pb_block_place *out_place);
/* Reads stored bytes of the block at that place, from byte `from` of the block, as a read of its
 * pixels would do, with the same errors. Thread: any. */
int pb_block_reader_fetch(const struct pb_block_reader *reader, uint64_t index,
                          const struct pb_block_place *place, uint64_t from, void *out,
                          size_t bytes, struct pb_err *err);
/* Decodes a stored block of a reader that reads no pixels. *out_data is valid until the reader's
 * next call: the layout's block_bytes, with the predictor not yet undone. Errors as above.
 * Thread: the reader's. */
int pb_block_reader_decode(struct pb_block_reader *reader, uint64_t index, struct pb_err *err,
                           const void **out_data);

/* Decodes the blocks below rect, of all planes, for verification only. Errors as above. */
int pb_block_reader_check(struct pb_block_reader *reader, const struct pb_rect *rect,
                          struct pb_err *err);
/* Verifies all blocks without holding one in memory: for deflate strips as high as the image.
 * Blocks of other codecs are not verified. */
int pb_block_reader_check_long(struct pb_block_reader *reader, struct pb_err *err);
#endif
