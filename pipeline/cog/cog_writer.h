/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_COG_WRITER_H
#define PB_COG_WRITER_H
/* A cloud-optimised GeoTIFF in one pass over tiles that come in any order on several threads. Each
 * tile is cut into blocks, which are compressed where they arrive and go into the file in a fixed
 * order (cog_file.h), so its bytes depend on pixels and options only; the pyramid does the same
 * with the overviews. Or blocks come from elsewhere, those of overviews as well: then there is no
 * pyramid. It does not depend on scenes and products; cog.c does. */
#include "config/config.h"
#include "config/base/err.h"
#include "kernels/codec/pixel_join.h"
#include "pipeline/raster/raster.h"
#include "pipeline/codec/rest.h"
#include "pipeline/io/checksum.h"
#include "pipeline/cog/same_blocks.h"
#include "pipeline/cog/tiff_writer.h"
#include "pipeline/grid/tile.h"

#include <stdint.h>

struct pb_block_format;
struct pb_cog_writer;

struct pb_file_progress;

/* What the file is made of. */
enum pb_cog_parts {
    PB_COG_TILES,   /* pb_cog_writer_tile(), which makes the overviews */
    PB_COG_BLOCKS,  /* pb_cog_writer_block(): each block of each level, once */
    PB_COG_FINISHED /* the same, none of them raw: there are no encoders */
};

struct pb_cog_options {
    const struct pb_grid *grid;
    enum pb_order order;
    uint32_t tiles_in_flight, workers; /* see struct pb_product_env */
    const char *directory;             /* of the spool; borrowed until destroy */
    const char *path;                  /* of the file; borrowed until destroy */
    const struct pb_tiff_tags *tags;   /* of the first directory; borrowed; NULL = none */
    uint32_t n_bands;                  /* values of tiles; without a painter also of the file */
    uint8_t n_rest[PB_BANDS_MAX]; /* of each value: planes of rests (codec/rest.h), behind those of
                                     all values; of I32, U32 and F64 without scale */
    const struct pb_painter *painter; /* of uint8: paints the pixels, and those of overviews, whose
                                         values are averaged first; borrowed; NULL = none */
    enum pb_type type;
    enum pb_compress compress;
    int32_t level;     /* 0 = the codec's default */
    int32_t predictor; /* 0 = auto; ignored without compression */
    int32_t block_px;
    enum pb_overviews overviews;
    bool has_nodata; /* integers must have one, or a mask; floats without one take NaN */
    double nodata;
    bool mask;   /* of valid pixels, in the file, also of overviews; with it no value is nodata:
                    has_nodata is false, and what is invalid is stored as `fill`, in floats NaN */
    double fill; /* a value of the type; 0 unless set */
    struct pb_pixel_join join; /* of a mask or an alpha band: which pixels are valid, of the n_bands
                                  values that decide, the first planes */
    enum pb_photometric photometric; /* of struct pb_tiff_image */
    double scale, offset; /* value = stored * scale + offset; scale 0: values are stored as they
                             are. nodata is of what is stored */
    enum pb_cog_parts parts;
    struct pb_same_blocks same;        /* a file that has blocks of the full image already */
    struct pb_file_progress *progress; /* of the file; borrowed; NULL = none */
    enum pb_checksum checksum;         /* of the file */
    /* For tests: */
    bool force_big;      /* BigTIFF although the file would fit into 4 GiB */
    bool move_gaps;      /* see struct pb_cog_file_options */
    uint64_t pool_bytes; /* the same; 0 = chosen */
};

struct pb_cog_summary {
    uint64_t bytes;
    uint64_t moved; /* valid values of the image that were nodata, and are stored beside it */
    char checksum[PB_CHECKSUM_TEXT_BYTES];
};

/* The nodata value as it will be stored. */
double pb_cog_writer_nodata(const struct pb_cog_options *options);
/* Memory that create() and finish() take; UINT64_MAX when the options are invalid. */
uint64_t pb_cog_writer_bytes(const struct pb_cog_options *options);
/* Bytes of all blocks of the file before compression; *out_packed: whether there is any. 0 when the
 * options are invalid. */
uint64_t pb_cog_writer_raw_bytes(const struct pb_cog_options *options, bool *out_packed);
/* 0; pipeline.product for options that cannot be, memory, output.*. Copies options. The file is
 * made here and, without compression, its space reserved. Thread: init. */
int pb_cog_writer_create(const struct pb_cog_options *options, struct pb_err *err,
                         struct pb_cog_writer **out_writer);
enum { PB_COG_PLANES_MAX = (1 + PB_REST_MAX) * PB_BANDS_MAX };
/* Planes of values and rests that tiles have. */
uint32_t pb_cog_writer_planes(const struct pb_cog_options *options);
/* planes[b]: core.w x core.h pixels, tightly packed, invalid = NaN, also in rests. Allocates
 * nothing. Thread: any, worker < workers and each worker on one thread at a time. */
int pb_cog_writer_tile(struct pb_cog_writer *writer, const struct pb_rect *core,
                       const float *const *planes, uint32_t worker, struct pb_err *err);
/* How a block is encoded. Borrowed. */
const struct pb_block_format *pb_cog_writer_format(const struct pb_cog_writer *writer);
/* Of the pyramid, with the image. */
uint32_t pb_cog_writer_levels(const struct pb_cog_writer *writer);

struct pb_cog_block {
    uint32_t level, col, row; /* level of the pyramid, 0 = the image */
    bool mask;                /* a block of the level's mask, not of its values */
    bool raw;                 /* predicted and not compressed, which is left to the writer */
    const void *data;         /* borrowed for the call, or ... */
    bool stays; /* ... until finish() has returned, or destroy(): the file is written from there,
                   without a copy. Not of raw blocks */
    size_t bytes;
    uint64_t moved; /* of the image: valid values that were moved off nodata */
};

/* Takes a block as the writer would encode it. Allocates nothing. Thread: as
 * pb_cog_writer_tile. */
int pb_cog_writer_block(struct pb_cog_writer *writer, const struct pb_cog_block *block,
                        uint32_t worker, struct pb_err *err);
/* After the last tile or block, once: writes and fsyncs the file, and frees all other space on
 * disk. */
int pb_cog_writer_finish(struct pb_cog_writer *writer, struct pb_err *err,
                         struct pb_cog_summary *out_summary);
/* Removes the file unless it was finished. NULL is fine. */
void pb_cog_writer_destroy(struct pb_cog_writer *writer);
#endif
