/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_BLOCK_READER_INSIDE_H
#define PB_BLOCK_READER_INSIDE_H
/* What block_reader.c and block_reader_stored.c share. */
#include "pipeline/raster/block_decode.h"
#include "pipeline/raster/block_reader.h"

struct pb_block_reader {
    struct pb_tiff_file file;
    struct pb_block_layout layout;
    struct pb_block_decoder decoder;
    struct pb_rect expected; /* of the next read; w == 0: unknown */
};

/* Whether a block that is not compressed is there as a whole; errors in reader->file. A single
 * strip may give any length for itself, as far as libtiff goes. */
int pb_block_check_stored(const struct pb_block_reader *reader, const struct pb_block *block);
#endif
