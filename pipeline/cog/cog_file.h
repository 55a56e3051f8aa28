/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_COG_FILE_H
#define PB_COG_FILE_H
/* The file of a COG, made of encoded blocks that arrive in any order. If all blocks have one size,
 * each is written to its final offset. Else those of the full image, and of a large first overview,
 * are written after a gap of the largest possible size of the data before them, and the
 * gap is closed at the end (block_store.h, io/gap_file.h). If all blocks wait in memory, the
 * file is written from there at the end, from its first byte to its last, and hashed meanwhile.
 * The BLAKE3 of a file with blocks of one size is computed while they are written. The BLAKE3 of
 * another file depends on its final offsets: several threads compute it at the end.
 * The bytes of the file depend on the blocks only. */
#include "config/base/err.h"
#include "pipeline/cog/block_store.h"
#include "pipeline/cog/cog_writer.h"
#include "pipeline/cog/tiff_writer.h"

#include <stddef.h>
#include <stdint.h>

struct pb_cog_file;

struct pb_cog_file_options {
    struct pb_tiff_image image; /* without the blocks of its levels, which the file keeps itself */
    const char *directory;      /* for the spool; borrowed */
    const char *path;           /* borrowed */
    uint32_t workers;
    uint64_t most_bytes, most_mask_bytes; /* limits of an encoded block; unused with block_bytes */
    struct pb_file_progress *progress;    /* borrowed; NULL if unused */
    enum pb_checksum checksum;
    uint64_t pool_bytes; /* for waiting blocks; 0 = default */
    bool move_gaps;      /* for pb_gap_file_move */
};

/* Memory that create and finish allocate, with n_tags in image.tags. */
uint64_t pb_cog_file_bytes(const struct pb_cog_file_options *options, size_t n_tags);
/* Makes the file, and copies options and image.level. Thread: init. */
int pb_cog_file_create(const struct pb_cog_file_options *options, struct pb_err *err,
                       struct pb_cog_file **out_file);
/* Announces an encoded block of that size, which must be added then: blocks after it can be written
 * at their place before it. Thread: any. */
void pb_cog_file_expect(struct pb_cog_file *file, uint32_t level, uint64_t block, size_t bytes);
/* Takes a copy of an encoded block unless it stays. Allocates nothing. Thread: any, worker <
 * workers and each worker on one thread at a time. */
int pb_cog_file_add(struct pb_cog_file *file, uint32_t level, uint64_t block,
                    const struct pb_block_bytes *bytes, uint32_t worker, struct pb_err *err);
/* After the last block, once: fsyncs the file, and frees all other space on disk. */
int pb_cog_file_finish(struct pb_cog_file *file, struct pb_err *err, uint64_t *out_bytes,
                       char out_checksum[PB_CHECKSUM_TEXT_BYTES]);
/* Removes the file unless it was finished. NULL is fine. */
void pb_cog_file_destroy(struct pb_cog_file *file);
#endif
