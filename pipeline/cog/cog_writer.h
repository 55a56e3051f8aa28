/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_COG_WRITER_H
#define PB_COG_WRITER_H
/* Writes a cloud-optimised GeoTIFF in one pass over tiles that arrive in any order on several
 * threads. Each tile is cut into blocks, which are compressed on that thread and placed in the file
 * in a fixed order (cog_file.h); therefore its bytes depend on pixels and options only. The pyramid
 * does the same with the overviews. Or the caller encodes all blocks, also those of overviews: then
 * there is no pyramid. It does not depend on scenes and products; cog.c does. */
#include "config/base/err.h"
#include "config/input_values.h"
#include "config/product_words.h"
#include "kernels/codec/pixel_join.h"
#include "pipeline/codec/rest.h"
#include "pipeline/cog/same_blocks.h"
#include "pipeline/cog/tiff_writer.h"
#include "pipeline/grid/tile.h"
#include "pipeline/io/checksum.h"
#include "pipeline/raster/raster.h"

#include <stdint.h>

struct pb_block_format;
struct pb_cog_writer;

struct pb_file_progress;

/* Input of the file. */
enum pb_cog_parts {
    PB_COG_TILES,   /* pb_cog_writer_tile(), which makes the overviews */
    PB_COG_BLOCKS,  /* pb_cog_writer_block(): each block of each level, once */
    PB_COG_FINISHED /* the same, without raw blocks: there are no encoders */
};

struct pb_cog_options {
    const struct pb_grid *grid;
    enum pb_order order;
    uint32_t tiles_in_flight, workers; /* see struct pb_product_env */
    const char *directory;             /* for the spool; borrowed until destroy */
    const char *path;                  /* path of the file; borrowed until destroy */
    const struct pb_tiff_tags *tags;   /* tags of the first directory; borrowed; NULL if absent */
    uint32_t n_bands;                  /* values of tiles; without a painter also of the file */
    /* For each value: count of its residual planes (codec/rest.h), which follow the planes of all
     * values; for I32, U32 and F64 without scale. */
    uint8_t n_rest[PB_BANDS_MAX];
    /* For uint8: paints the pixels, and those of overviews, whose values are averaged first;
     * borrowed; NULL if unused. */
    const struct pb_painter *painter;
    enum pb_type type;
    enum pb_compress compress;
    int32_t level;     /* 0 = the codec's default */
    int32_t predictor; /* 0 = auto; ignored without compression */
    int32_t block_px;
    enum pb_overviews overviews;
    bool has_nodata; /* integers must have one, or a mask; floats without one take NaN */
    double nodata;
    /* true: the file has a mask of valid pixels, also for overviews. No value is nodata then:
     * has_nodata is false, and invalid pixels are stored as `fill`, in floats NaN. */
    bool mask;
    double fill; /* a value of the type; 0 unless set */
    /* With a mask or an alpha band: rule for the valid pixels, from the n_bands values that decide,
     * which are the first planes. */
    struct pb_pixel_join join;
    enum pb_photometric photometric; /* as in struct pb_tiff_image */
    /* value = stored * scale + offset; scale 0: values are stored unchanged. nodata is a stored
     * value. */
    double scale, offset;
    enum pb_cog_parts parts;
    struct pb_same_blocks same;        /* a file that has blocks of the full image already */
    struct pb_file_progress *progress; /* progress of the file; borrowed; NULL if unused */
    enum pb_checksum checksum;         /* checksum of the file */
    /* For tests: */
    bool force_big;      /* BigTIFF although the file would fit into 4 GiB */
    bool move_gaps;      /* see struct pb_cog_file_options */
    uint64_t pool_bytes; /* the same; 0 = default */
};

struct pb_cog_summary {
    uint64_t bytes;
    uint64_t moved; /* valid values of the image that were nodata, and are stored as a neighbour */
    char checksum[PB_CHECKSUM_TEXT_BYTES];
};

/* The nodata value in its stored form. */
double pb_cog_writer_nodata(const struct pb_cog_options *options);
/* Memory that create() and finish() allocate; UINT64_MAX when the options are invalid. */
uint64_t pb_cog_writer_bytes(const struct pb_cog_options *options);
/* Bytes of all blocks of the file before compression; *out_packed: true if some are compressed. 0
 * when the options are invalid. */
uint64_t pb_cog_writer_raw_bytes(const struct pb_cog_options *options, bool *out_packed);
/* 0; pipeline.product for invalid options, memory, output.*. Copies options. Creates the file
 * and, without compression, reserves its space. Thread: init. */
int pb_cog_writer_create(const struct pb_cog_options *options, struct pb_err *err,
                         struct pb_cog_writer **out_writer);
enum { PB_COG_PLANES_MAX = (1 + PB_REST_MAX) * PB_BANDS_MAX };
/* Count of the planes of values and residuals in tiles. */
uint32_t pb_cog_writer_planes(const struct pb_cog_options *options);
/* planes[b]: core.w x core.h pixels, tightly packed, invalid = NaN, also in residuals. Allocates
 * nothing. Thread: any, worker < workers and each worker on one thread at a time. */
int pb_cog_writer_tile(struct pb_cog_writer *writer, const struct pb_rect *core,
                       const float *const *planes, uint32_t worker, struct pb_err *err);
/* Format of the encoded blocks. Borrowed. */
const struct pb_block_format *pb_cog_writer_format(const struct pb_cog_writer *writer);
/* Count of the pyramid's levels, including the image. */
uint32_t pb_cog_writer_levels(const struct pb_cog_writer *writer);

struct pb_cog_block {
    uint32_t level, col, row; /* level of the pyramid, 0 = the image */
    bool mask;                /* a block of the level's mask, not of its values */
    bool raw;                 /* predicted and not compressed, which is left to the writer */
    const void *data;         /* borrowed for the call, or ... */
    /* ... until finish() has returned, or destroy(): the file is written from there, without a
     * copy. Not for raw blocks. */
    bool stays;
    size_t bytes;
    uint64_t moved; /* in blocks of the image: valid values that were moved off nodata */
};

/* Announces a block that will be added; its data are not used. With the blocks of a batch announced
 * first, several threads write them at their places at the same time. Thread: any. */
void pb_cog_writer_expect(struct pb_cog_writer *writer, const struct pb_cog_block *block);
/* Adds a block that is encoded like the writer would do it. Allocates nothing. Thread: as for
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
