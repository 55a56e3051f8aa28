/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Blocks without a single valid pixel are written like all others, not left out ("sparse"): GDAL
 * does the same by default, readers other than GDAL's fail on missing blocks, and such a block
 * costs some hundred bytes.
 *
 * Overviews continue down to 512 px even when blocks are larger: these levels are small, and GDAL's
 * validator requires them.
 *
 * cog_file.c makes the file. */
#include "pipeline/cog/cog_writer_inside.h"
#include "pipeline/cog/cog_format.h"

#include <errno.h>
#include <stdlib.h>

#define LEVELS_MAX       32
#define GIVEN_TAGS_USUAL 64 /* for the plan; the tags are only known at the end */

static struct pb_pyramid_options pyramid_options(const struct pb_cog_options *o)
{
    return (struct pb_pyramid_options){
        .grid = o->grid,
        .order = o->order,
        .tiles_in_flight = o->tiles_in_flight,
        .workers = o->workers,
        .block_px = o->block_px,
        .levels = pb_cog_overviews(o),
        .n_bands = pb_cog_writer_planes(o),
        .nearest = o->overviews == PB_OVERVIEWS_NEAREST,
        .join = o->join,
    };
}

/* Size of every block, if it is known in advance; else 0. */
static uint64_t block_bytes(const struct pb_block_format *format)
{
    return format->codec->encode == NULL ? pb_block_raw_bytes(format) : 0;
}

/* Largest size of a codec's output. */
static uint64_t bound_of(const struct pb_codec *codec, uint64_t bytes)
{
    return codec->encode != NULL ? codec->bound((size_t)bytes) : bytes;
}

/* Fills out_level, of 2 * LEVELS_MAX, with the sizes of the levels of the file: including the full
 * image, and a mask of each. Returns their count. */
static uint32_t list_levels(const struct pb_cog_options *o, struct pb_tiff_level *out_level)
{
    uint32_t n = 0, each = o->mask ? 2 : 1, overviews = pb_cog_overviews(o);
    for (uint32_t k = 0; k <= overviews && k < LEVELS_MAX; k++) {
        int32_t w = pb_pyramid_size(o->grid->image_w, k), h = pb_pyramid_size(o->grid->image_h, k);
        uint64_t blocks_of_level = (uint64_t)pb_cog_blocks_along(w, o->block_px) *
                                   (uint64_t)pb_cog_blocks_along(h, o->block_px);
        for (uint32_t i = 0; i < each; i++)
            out_level[n++] = (struct pb_tiff_level){w, h, blocks_of_level, NULL};
    }
    return n;
}

/* Options that are known without tags and tables; level: result of list_levels. */
static struct pb_cog_file_options file_options(const struct pb_cog_options *o,
                                               const struct pb_block_format *format,
                                               const struct pb_tiff_level *level, uint32_t n_levels)
{
    const struct pb_codec *mask = pb_mask_codec(format->codec);
    return (struct pb_cog_file_options){
        .image =
            {
                .level = level,
                .n_levels = n_levels,
                .masks = o->mask,
                .block_bytes = block_bytes(format),
                .mask_block_bytes = block_bytes(format) ? pb_mask_raw_bytes(o->block_px) : 0,
                .mask_compression = mask->tiff_compression,
                .photometric = o->photometric,
                .block_px = o->block_px,
                .n_bands = format->n_bands,
                .alpha = o->painter != NULL && o->painter->alpha,
                .type = o->type,
                .compression = format->codec->tiff_compression,
                .predictor = (uint16_t)format->predictor,
                .software = "pushbroom " PB_VERSION,
                .tags = o->tags,
                .force_big = o->force_big,
            },
        .directory = o->directory,
        .path = o->path,
        .workers = o->workers,
        .most_bytes = bound_of(format->codec, pb_block_raw_bytes(format)),
        .most_mask_bytes = o->mask ? bound_of(mask, pb_mask_raw_bytes(o->block_px)) : 0,
        .progress = o->progress,
        .checksum = o->checksum,
        .pool_bytes = o->pool_bytes,
        .move_gaps = o->move_gaps,
    };
}

uint64_t pb_cog_writer_bytes(const struct pb_cog_options *options)
{
    struct pb_block_format format = {.codec = &pb_codec_none};
    struct pb_tiff_level level[2 * LEVELS_MAX];
    if (pb_cog_format(options, NULL, &format) != 0)
        return UINT64_MAX;
    struct pb_pyramid_options pyramid = pyramid_options(options);
    uint64_t bytes = options->parts == PB_COG_TILES ? pb_pyramid_bytes(&pyramid) : 0;
    if (bytes == UINT64_MAX)
        return UINT64_MAX;
    struct pb_cog_file_options file =
        file_options(options, &format, level, list_levels(options, level));
    bytes += sizeof(struct pb_cog_writer) + pb_cog_file_bytes(&file, GIVEN_TAGS_USUAL);
    bytes += options->workers * sizeof(uint64_t);
    if (options->parts == PB_COG_FINISHED)
        return bytes;
    bytes += options->workers * (sizeof(void *) + pb_block_encoder_bytes(&format));
    if (options->mask)
        bytes +=
            options->workers * (sizeof(void *) + pb_mask_encoder_bytes(pb_mask_codec(format.codec),
                                                                       options->block_px));
    return bytes;
}

uint64_t pb_cog_writer_raw_bytes(const struct pb_cog_options *options, bool *out_packed)
{
    struct pb_block_format format = {.codec = &pb_codec_none};
    struct pb_tiff_level level[2 * LEVELS_MAX];
    uint64_t bytes = 0;
    *out_packed = false;
    if (pb_cog_format(options, NULL, &format) != 0)
        return 0;
    const uint32_t n = list_levels(options, level);
    for (uint32_t i = 0; i < n; i++)
        bytes +=
            level[i].n_blocks * (options->mask && i % 2 == 1 ? pb_mask_raw_bytes(options->block_px)
                                                             : pb_block_raw_bytes(&format));
    *out_packed = format.codec->encode != NULL;
    return bytes;
}

static int create_masks(struct pb_cog_writer *writer, struct pb_err *err)
{
    const struct pb_cog_options *o = &writer->options;
    int rc = 0;
    writer->mask = calloc(o->workers, sizeof(struct pb_mask_encoder *));
    if (writer->mask == NULL)
        return pb_fail(err, PB_E_MEMORY, "no memory for the masks of a product");
    for (uint32_t i = 0; rc == 0 && i < o->workers; i++)
        rc = pb_mask_encoder_create(pb_mask_codec(writer->format.codec), o->block_px, o->n_bands,
                                    o->join.any, err, &writer->mask[i]);
    return rc;
}

static int create_memory(struct pb_cog_writer *writer, struct pb_err *err)
{
    uint32_t workers = writer->options.workers;
    int rc = 0;
    writer->moved = calloc(workers, sizeof *writer->moved);
    if (writer->moved == NULL)
        return pb_fail(err, PB_E_MEMORY, "no memory for a product");
    if (writer->options.parts == PB_COG_FINISHED)
        return 0;
    writer->encoder = calloc(workers, sizeof(struct pb_block_encoder *));
    if (writer->encoder == NULL)
        return pb_fail(err, PB_E_MEMORY, "no memory for the encoders of a product");
    for (uint32_t i = 0; rc == 0 && i < workers; i++)
        rc = pb_block_encoder_create(&writer->format, err, &writer->encoder[i]);
    return rc == 0 && writer->options.mask ? create_masks(writer, err) : rc;
}

/* Sets the tags for a picture's blocks. */
static int describe_picture(struct pb_cog_writer *writer, struct pb_tiff_image *image,
                            struct pb_err *err)
{
    const struct pb_block_format *format = &writer->format;
    size_t bytes = 0;
    if (format->codec->tables == NULL)
        return 0;
    if (format->codec->tables(format->level, format->n_bands, writer->tables, sizeof writer->tables,
                              &bytes) != 0)
        return pb_fail(err, PB_E_MEMORY, "no memory for the tables of a product");
    image->tables = writer->tables;
    image->tables_bytes = bytes;
    if (format->n_bands == 3)
        image->photometric = PB_PHOTOMETRIC_YCBCR;
    return 0;
}

static int open_file(struct pb_cog_writer *writer, struct pb_err *err)
{
    struct pb_tiff_level level[2 * LEVELS_MAX];
    struct pb_cog_file_options options = file_options(&writer->options, &writer->format, level,
                                                      list_levels(&writer->options, level));
    int rc = describe_picture(writer, &options.image, err);
    return rc != 0 ? rc : pb_cog_file_create(&options, err, &writer->file);
}

int pb_cog_writer_create(const struct pb_cog_options *options, struct pb_err *err,
                         struct pb_cog_writer **out_writer)
{
    struct pb_block_format format = {.codec = &pb_codec_none};
    int rc = pb_cog_format(options, err, &format);
    if (rc != 0)
        return rc;
    struct pb_cog_writer *writer = calloc(1, sizeof *writer);
    if (writer == NULL)
        return pb_fail(err, PB_E_MEMORY, "no memory for a product");
    writer->options = *options;
    writer->grid = *options->grid;
    writer->options.grid = &writer->grid;
    writer->format = format;
    if (format.n_planes > format.n_bands && format.painter == NULL)
        writer->format.n_rest = writer->options.n_rest;
    struct pb_pyramid_options pyramid = pyramid_options(&writer->options);
    pyramid.sink = pb_cog_writer_overview;
    pyramid.user = writer;
    writer->n_levels = pyramid.levels + 1;
    rc = create_memory(writer, err);
    if (rc == 0 && pyramid.levels > 0 && options->parts == PB_COG_TILES)
        rc = pb_pyramid_create(&pyramid, err, &writer->pyramid);
    if (rc == 0)
        rc = open_file(writer, err);
    if (rc != 0) {
        pb_cog_writer_destroy(writer);
        return rc;
    }
    *out_writer = writer;
    return 0;
}

const struct pb_block_format *pb_cog_writer_format(const struct pb_cog_writer *writer)
{
    return &writer->format;
}

uint32_t pb_cog_writer_levels(const struct pb_cog_writer *writer)
{
    return writer->n_levels;
}

int pb_cog_writer_finish(struct pb_cog_writer *writer, struct pb_err *err,
                         struct pb_cog_summary *out_summary)
{
    struct pb_cog_summary summary = {0};
    int rc = pb_cog_file_finish(writer->file, err, &summary.bytes, summary.checksum);
    for (uint32_t i = 0; i < writer->options.workers; i++)
        summary.moved += writer->moved[i];
    if (rc == 0)
        *out_summary = summary;
    pb_cog_file_destroy(writer->file);
    writer->file = NULL;
    return rc;
}

void pb_cog_writer_destroy(struct pb_cog_writer *writer)
{
    if (writer == NULL)
        return;
    for (uint32_t i = 0; writer->encoder != NULL && i < writer->options.workers; i++)
        pb_block_encoder_destroy(writer->encoder[i]);
    free(writer->encoder);
    for (uint32_t i = 0; writer->mask != NULL && i < writer->options.workers; i++)
        pb_mask_encoder_destroy(writer->mask[i]);
    free(writer->mask);
    free(writer->moved);
    pb_pyramid_destroy(writer->pyramid);
    pb_cog_file_destroy(writer->file);
    free(writer);
}
