/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TIFF_HEADER_H
#define PB_TIFF_HEADER_H
/* Checks a TIFF before any library opens it: its header is compared with the limits and with the
 * file's size, so that a file of some hundred bytes cannot cost seconds or gigabytes, and a
 * truncated file is distinguished from a damaged one. Classic and BigTIFF, both byte orders.
 *
 * Checked: the chain of directories (counted, loops refused); size, bands, block size and
 * georeferencing of the first one; every block's byte range of the first directory and of
 * full-size masks, against the file's size and its holes; decoded against stored bytes. Not
 * checked: overviews (never read here), pixels. Work is bounded by the file's size and by the
 * limits; memory is a few KiB. Thread: any. */
#include "config/base/err.h"
#include "pipeline/io/file_part.h"

#include <stdbool.h>
#include <stdint.h>

struct pb_limits;

/* Images of at most this many decoded bytes are accepted at any ratio. */
#define PB_TIFF_RATIO_FLOOR (UINT64_C(4) << 30)

/* GeoKeys with their numbers and texts, byte by byte as stored, in this machine's byte order. */
struct pb_tiff_keys {
    uint32_t n; /* 0: absent, longer than this, or of the other byte order */
    unsigned char bytes[508];
};

/* Georeferencing that the first directory declares. */
struct pb_tiff_geo {
    bool place; /* tie points, or a transformation matrix */
    bool crs;   /* GeoKeys that name or define a CRS */
    bool rpc;
    bool nodata; /* a nodata tag with a value */
    bool unit;   /* GDAL's metadata may have units of bands */
    struct pb_tiff_keys keys;
};

/* The first directory, as declared. */
struct pb_tiff_header {
    bool big_endian, big_tiff, tiled;
    int32_t n_directories;
    int32_t n_pages_more; /* images after the first that are neither overviews nor masks */
    bool own_mask;        /* true if a full-size mask follows the first image, before other pages */
    bool foreign_mask;    /* true if the first full-size mask follows another page */
    bool unclear_masks;   /* true if the page of that mask is unknown: several follow one page */
    int32_t width, height, bands;
    uint32_t bits; /* bits of a sample */
    uint32_t block_w, block_h;
    uint16_t compression; /* TIFF's number: 1 none, 5 LZW, 8 deflate, ... */
    bool planar;          /* every band has its own blocks */
    uint64_t n_blocks;
    uint64_t n_sparse;         /* blocks that are not stored at all */
    uint64_t n_unwritten;      /* blocks that are completely in a hole of the file */
    uint64_t stored_block_max; /* bytes of the largest block as stored */
    bool one_strip;            /* one compressed strip holds all rows: decodes from the top only */
    char nodata[64];           /* text of the nodata tag, "" = none */
    struct pb_tiff_geo geo;
};

/* Finds page number `page`, from 1, among the images that are neither overviews nor masks, and
 * makes the header of the file with that page as its first image: 8 bytes, 16 of a BigTIFF. Checks
 * no more than what it reads. pipeline.band: the file has fewer pages; else the errors of
 * pb_tiff_header_read. */
int pb_tiff_page_head(const struct pb_file_part *part, const char *name, int32_t page,
                      const struct pb_limits *limits, struct pb_err *err, unsigned char out[16],
                      size_t *out_bytes);

/* Reads part with pread; name is the file's name in errors. On failure *err is input.not_tiff,
 * input.truncated, input.damaged, input.empty, input.georeference, input.limit, or a failure of
 * the machine (input.io, memory). */
int pb_tiff_header_read(const struct pb_file_part *part, const char *name,
                        const struct pb_limits *limits, struct pb_err *err,
                        struct pb_tiff_header *out_header);
#endif
