/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_BLOCK_READER_INSIDE_H
#define PB_BLOCK_READER_INSIDE_H
/* Struct and check shared by block_reader.c and block_reader_stored.c. */
#include "pipeline/raster/block_decode.h"
#include "pipeline/raster/block_reader.h"

struct pb_block_reader {
    struct pb_tiff_file file;
    struct pb_block_layout layout;
    struct pb_block_decoder decoder;
    struct pb_rect expected; /* rectangle of the next read; w == 0: unknown */
};

/* Checks that the file contains an uncompressed block completely; errors in reader->file. A
 * single strip may have any length entry, because libtiff ignores it. */
int pb_block_check_stored(const struct pb_block_reader *reader, const struct pb_block *block);
#endif
