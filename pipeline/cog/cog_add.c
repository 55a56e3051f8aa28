/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Cuts tiles into blocks, encodes these and those of overviews, and adds them to the file; finished
 * blocks are added unchanged. */
#include "pipeline/cog/cog_writer_inside.h"
#include "pipeline/profile/work.h"

#include <assert.h>

/* Level of the file; with masks it has two for each level of the pyramid. */
static uint32_t file_level(const struct pb_cog_writer *writer, uint32_t level, bool mask)
{
    return writer->options.mask ? 2 * level + mask : level;
}

static uint64_t block_number(const struct pb_cog_writer *writer, uint32_t level, uint32_t col,
                             uint32_t row)
{
    int32_t width = pb_pyramid_size(writer->grid.image_w, level);
    return (uint64_t)row * (uint64_t)pb_cog_blocks_along(width, writer->options.block_px) + col;
}

/* --- blocks of pixels ------------------------------------------------------------------------ */

/* Encodes a block of the pyramid, or takes it from a file that has it. */
static int make_block(struct pb_cog_writer *writer, uint32_t level,
                      const struct pb_same_block *block, uint32_t worker, struct pb_err *err,
                      const void **out_data, size_t *out_bytes)
{
    struct pb_block_encoder *encoder = writer->encoder[worker];
    const struct pb_same_blocks *same = &writer->options.same;
    int rc = 0;
    *out_bytes = 0;
    if (level == 0 && same->raster != NULL) {
        pb_work_begin(PB_WORK_COPY, level);
        rc = pb_same_block_take(same, &writer->format, block, encoder, err, out_data, out_bytes);
        pb_work_end();
    }
    if (rc != 0 || *out_bytes > 0)
        return rc;
    rc = pb_block_encode(encoder, &block->pixels, err, out_data, out_bytes);
    if (rc == 0 && level == 0)
        writer->moved[worker] += pb_block_encoder_moved(encoder);
    return rc;
}

static int add_pixels(struct pb_cog_writer *writer, uint32_t level,
                      const struct pb_same_block *block, uint32_t worker, struct pb_err *err)
{
    uint64_t i = block_number(writer, level, block->col, block->row);
    struct pb_block_bytes made = {.stays = false};
    pb_work_begin(PB_WORK_ENCODE, level);
    int rc = make_block(writer, level, block, worker, err, &made.data, &made.bytes);
    pb_work_end();
    if (rc == 0)
        rc = pb_cog_file_add(writer->file, file_level(writer, level, false), i, &made, worker, err);
    if (rc != 0 || writer->mask == NULL)
        return rc;
    pb_work_begin(PB_WORK_ENCODE, level);
    rc = pb_mask_encode(writer->mask[worker], &block->pixels, err, &made.data, &made.bytes);
    pb_work_end();
    return rc != 0 ? rc
                   : pb_cog_file_add(writer->file, file_level(writer, level, true), i, &made,
                                     worker, err);
}

int pb_cog_writer_overview(void *user, uint32_t level, uint32_t col, uint32_t row, int32_t w,
                           int32_t h, const float *const *half, uint32_t worker, struct pb_err *err)
{
    struct pb_cog_writer *writer = user;
    const int32_t side = writer->options.block_px;
    const size_t plane_px = (size_t)side * (size_t)side / 2;
    const float *upper[PB_COG_PLANES_MAX], *lower[PB_COG_PLANES_MAX];
    for (uint32_t b = 0; b < writer->format.n_planes && half != NULL; b++) {
        upper[b] = half[0] + b * plane_px;
        lower[b] = half[1] != NULL ? half[1] + b * plane_px : NULL;
    }
    const struct pb_same_block block = {
        col, row, {half != NULL ? upper : NULL, lower, side / 2, (size_t)side, w, h}};
    return add_pixels(writer, level, &block, worker, err);
}

int pb_cog_writer_tile(struct pb_cog_writer *writer, const struct pb_rect *core,
                       const float *const *planes, uint32_t worker, struct pb_err *err)
{
    const float *part[PB_COG_PLANES_MAX];
    int32_t side = writer->options.block_px;
    size_t row_px = (size_t)core->w;
    int rc = 0;
    assert(writer->options.parts == PB_COG_TILES);
    for (int32_t y = 0; rc == 0 && y < core->h; y += side)
        for (int32_t x = 0; rc == 0 && x < core->w; x += side) {
            for (uint32_t b = 0; b < writer->format.n_planes && planes != NULL; b++)
                part[b] = planes[b] + (size_t)y * row_px + (size_t)x;
            int32_t w = core->w - x < side ? core->w - x : side;
            int32_t h = core->h - y < side ? core->h - y : side;
            const struct pb_same_block block = {
                (uint32_t)((core->x + x) / side),
                (uint32_t)((core->y + y) / side),
                {planes != NULL ? part : NULL, NULL, side, row_px, w, h}};
            rc = add_pixels(writer, 0, &block, worker, err);
        }
    if (rc != 0 || writer->pyramid == NULL)
        return rc;
    pb_work_begin(PB_WORK_OVERVIEWS, 0);
    rc = pb_pyramid_add(writer->pyramid, core, planes, row_px, worker, err);
    pb_work_end();
    return rc;
}

/* --- blocks with a position ------------------------------------------------------------------ */

/* Checks the position of a block, which the caller has numbered. */
static int check_place(const struct pb_cog_writer *writer, uint32_t level, uint32_t col,
                       uint32_t row, struct pb_err *err)
{
    const struct pb_grid *grid = &writer->grid;
    int32_t side = writer->options.block_px, cols = 0, rows = 0;
    if (level < writer->n_levels) {
        cols = pb_cog_blocks_along(pb_pyramid_size(grid->image_w, level), side);
        rows = pb_cog_blocks_along(pb_pyramid_size(grid->image_h, level), side);
    }
    if (col < (uint32_t)cols && row < (uint32_t)rows)
        return 0;
    return pb_fail(err, PB_E_SYSTEM,
                   "a block for column %u, row %u of level %u of '%s', which has %d x %d blocks "
                   "there",
                   col, row, level, writer->options.path, cols, rows);
}

static int check_bytes(const struct pb_cog_writer *writer, const struct pb_cog_block *block,
                       uint64_t wanted, struct pb_err *err)
{
    if (block->bytes == wanted)
        return 0;
    return pb_fail(err, PB_E_SYSTEM,
                   "block %u, %u of level %u of '%s' has %zu bytes before compression, not %llu",
                   block->col, block->row, block->level, writer->options.path, block->bytes,
                   (unsigned long long)wanted);
}

static int compress(struct pb_cog_writer *writer, const struct pb_cog_block *block, uint32_t worker,
                    struct pb_err *err, const void **out_data, size_t *out_bytes)
{
    uint64_t wanted = block->mask ? pb_mask_raw_bytes(writer->options.block_px)
                                  : pb_block_raw_bytes(&writer->format);
    int rc = check_bytes(writer, block, wanted, err);
    if (rc != 0)
        return rc;
    pb_work_begin(PB_WORK_ENCODE, block->level);
    rc = block->mask
             ? pb_mask_compress(writer->mask[worker], block->data, err, out_data, out_bytes)
             : pb_block_compress(writer->encoder[worker], block->data, err, out_data, out_bytes);
    pb_work_end();
    return rc;
}

void pb_cog_writer_expect(struct pb_cog_writer *writer, const struct pb_cog_block *block)
{
    if (!block->raw && (!block->mask || writer->options.mask) &&
        check_place(writer, block->level, block->col, block->row, NULL) == 0)
        pb_cog_file_expect(writer->file, file_level(writer, block->level, block->mask),
                           block_number(writer, block->level, block->col, block->row),
                           block->bytes);
}

int pb_cog_writer_block(struct pb_cog_writer *writer, const struct pb_cog_block *block,
                        uint32_t worker, struct pb_err *err)
{
    struct pb_block_bytes bytes = {block->data, block->bytes, block->stays && !block->raw};
    int rc = check_place(writer, block->level, block->col, block->row, err);
    if (rc == 0 && ((block->mask && !writer->options.mask) ||
                    (block->raw && writer->options.parts != PB_COG_BLOCKS)))
        rc = pb_fail(err, PB_E_SYSTEM, "'%s' takes no %s", writer->options.path,
                     block->mask ? "masks" : "blocks that are not compressed yet");
    if (rc == 0 && block->raw)
        rc = compress(writer, block, worker, err, &bytes.data, &bytes.bytes);
    if (rc == 0)
        rc = pb_cog_file_add(writer->file, file_level(writer, block->level, block->mask),
                             block_number(writer, block->level, block->col, block->row), &bytes,
                             worker, err);
    if (rc == 0 && block->level == 0 && !block->mask)
        writer->moved[worker] += block->moved;
    return rc;
}
