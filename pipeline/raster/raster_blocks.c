/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/raster/raster_blocks.h"

#include <string.h>

static bool same_complex(const struct pb_block_layout *layout, enum pb_complex_kind kind)
{
    bool is_float = kind == PB_COMPLEX_F32 || kind == PB_COMPLEX_F64;
    return layout->bits == 8 * pb_complex_bytes(kind) &&
           layout->format == (is_float ? PB_SAMPLE_COMPLEX_FLOAT : PB_SAMPLE_COMPLEX_SIGNED);
}

static bool same_type(const struct pb_block_layout *layout, const struct pb_raster_info *info)
{
    enum pb_type type = info->type;
    static const struct {
        uint32_t bits;
        uint16_t format;
    } types[PB_TYPE_COUNT] = {
        [PB_U8] = {8, PB_SAMPLE_UNSIGNED},   [PB_I16] = {16, PB_SAMPLE_SIGNED},
        [PB_U16] = {16, PB_SAMPLE_UNSIGNED}, [PB_I32] = {32, PB_SAMPLE_SIGNED},
        [PB_U32] = {32, PB_SAMPLE_UNSIGNED}, [PB_F32] = {32, PB_SAMPLE_FLOAT},
        [PB_F64] = {64, PB_SAMPLE_FLOAT},
    };
    if (info->complex.kind != PB_COMPLEX_NONE)
        return same_complex(layout, info->complex.kind);
    return layout->bits == types[type].bits && layout->format == types[type].format;
}

/* Both readers of the header (tiff_header.c and GDAL) must agree; otherwise GDAL, which made the
 * metadata, reads the pixels. GDAL splits large strips: uncompressed ones, which makes no
 * difference here, and compressed ones that it decodes row by row, which then need no memory. */
static bool agrees(const struct pb_block_layout *layout, const struct pb_raster_info *info)
{
    bool split = layout->compression == 1 && !layout->tiled;
    return layout->width == info->width && layout->height == info->height &&
           layout->bands == info->n_bands && same_type(layout, info) &&
           (info->n_bands == 1 || info->pixel_interleaved == !layout->planar) &&
           (int64_t)layout->block_w == info->block_w &&
           (split || (int64_t)layout->block_h == info->block_h);
}

static int open_one(const struct pb_file_part *part, const char *name, bool mask,
                    int32_t max_directories, struct pb_err *err, struct pb_block_reader **out)
{
    uint64_t directory = 0;
    int rc = pb_block_layout_find(part, name, mask, max_directories, err, &directory);
    if (rc < 0 || directory == 0)
        return rc;
    return pb_block_reader_create(part, name, directory, err, out);
}

static struct pb_mask_blocks mask_of(const struct pb_block_layout *l,
                                     const struct pb_raster_info *info)
{
    if (l->width != info->width || l->height != info->height || info->alpha_band > 0 ||
        !pb_block_layout_is_mask(l))
        return (struct pb_mask_blocks){.block_w = 0};
    return (struct pb_mask_blocks){.block_w = (int32_t)l->block_w,
                                   .block_h = (int32_t)l->block_h,
                                   .bits = l->bits,
                                   .tiled = l->tiled,
                                   .compression = l->compression,
                                   .predictor = l->predictor,
                                   .stored_max = l->stored_max};
}

int pb_raster_blocks_open(struct pb_raster_blocks *blocks, const struct pb_file_part *part,
                          const char *name, int32_t max_directories, struct pb_raster_info *info,
                          struct pb_err *err)
{
    int rc = open_one(part, name, false, max_directories, err, &blocks->image);
    if (rc == 0 && info->has_mask)
        rc = open_one(part, name, true, max_directories, err, &blocks->mask);
    if (rc < 0)
        return rc;
    if (blocks->image != NULL) {
        const struct pb_block_layout *layout = pb_block_reader_layout(blocks->image);
        blocks->own = pb_block_reader_decodes(blocks->image) && agrees(layout, info);
        info->decoder_bytes += info->top_down ? 0 : pb_block_reader_bytes(blocks->image);
        info->spared_bytes =
            blocks->own && !info->top_down ? pb_block_reader_spared_bytes(blocks->image) : 0;
    }
    if (blocks->mask != NULL) {
        info->mask_blocks = mask_of(pb_block_reader_layout(blocks->mask), info);
        info->decoder_bytes += pb_block_reader_bytes(blocks->mask);
    }
    info->own_blocks = blocks->own;
    if (blocks->own) {
        const struct pb_block_layout *layout = pb_block_reader_layout(blocks->image);
        info->stored_block_h = (int32_t)layout->block_h;
        info->tiled = layout->tiled;
        info->big_endian = layout->big_endian;
        info->tiff_compression = layout->compression;
        info->tiff_predictor = layout->predictor;
    }
    return 0;
}

void pb_raster_blocks_close(struct pb_raster_blocks *blocks)
{
    pb_block_reader_destroy(blocks->image);
    pb_block_reader_destroy(blocks->mask);
    memset(blocks, 0, sizeof *blocks);
}

int pb_raster_blocks_check(struct pb_raster_blocks *blocks, bool mask,
                           const struct pb_raster_info *info, const struct pb_rect *rect,
                           struct pb_err *err)
{
    struct pb_block_reader *reader = mask ? blocks->mask : blocks->image;
    if (reader == NULL)
        return 0;
    /* A strip that GDAL decodes row by row, without reaching its end, would need a buffer for
     * all of it. */
    if (!mask && info->top_down) {
        int rc = blocks->checked ? 0 : pb_block_reader_check_long(reader, err);
        blocks->checked = rc == 0;
        return rc;
    }
    const struct pb_block_layout *layout = pb_block_reader_layout(reader);
    if (layout->width != info->width || layout->height != info->height)
        return 0;
    return pb_block_reader_check(reader, rect, err);
}
