/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TIFF_HEADER_H
#define PB_TIFF_HEADER_H
/* Our own look at a TIFF before any library opens it: what it declares is held against the limits
 * and against the file's size, so that a file of some hundred bytes cannot cost seconds or
 * gigabytes, and a file cut short is told from a damaged one. Classic and BigTIFF, both byte
 * orders.
 *
 * Looked at: the chain of directories (counted, loops refused); size, bands and block size of the
 * first one; every block's byte range of the first directory and of full-size masks. Not looked at:
 * overviews (never read here), pixels. Work is bounded by the file's size and by the limits; memory
 * is a few KiB. Thread: any. */
#include "config/config.h"
#include "config/err.h"

#include <stdbool.h>
#include <stdint.h>

/* The first directory, as declared. */
struct pb_tiff_header {
    bool big_endian, big_tiff, tiled;
    int32_t n_directories;
    int32_t width, height, bands;
    uint32_t bits; /* of a sample */
    uint32_t block_w, block_h;
    uint16_t compression; /* TIFF's number: 1 none, 5 LZW, 8 deflate, ... */
    bool planar;          /* every band has its own blocks */
    uint64_t n_blocks;
    uint64_t n_sparse;         /* blocks that are not stored at all */
    uint64_t stored_block_max; /* bytes of the largest block as stored */
    bool one_strip;            /* one compressed strip holds all rows: decodes from the top only */
    char nodata[64];           /* text of the nodata tag, "" = none */
};

/* fd is borrowed and read with pread; name is what errors call the file. On failure *err holds
 * input.not_tiff, input.truncated, input.damaged, input.limit or system. */
int pb_tiff_header_read(int fd, uint64_t file_bytes, const char *name,
                        const struct pb_limits *limits, struct pb_err *err,
                        struct pb_tiff_header *out_header);
#endif
