/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/plan/blocks.h"
#include "pipeline/plan/layout.h"
#include "pipeline/plan/pages.h"
#include "pipeline/raster/raw_blocks.h"

enum {
    COMPRESSION_NONE = 1,
    ALIGN = 256,      /* bytes; as PB_WHOLE_ALIGN (run/whole/whole_map.h) */
    PARTS_SHARE = 512 /* parts of a block exceed it by at most 1 / 512 */
};

/* Units in which a source is sent: blocks, or parts of uncompressed ones. */
struct cells {
    uint64_t w, h, planes;    /* pixels of one; count for the same pixels, 0: nothing is sent */
    uint64_t more;            /* rows by which the ends of parts may differ from multiples of h */
    uint64_t stored, decoded; /* most bytes of one on the device */
};

static uint64_t aligned(uint64_t bytes)
{
    return pb_slot_align(bytes, ALIGN);
}

uint64_t pb_plan_mask_block_bytes(const struct pb_mask_blocks *mask)
{
    return ((uint64_t)mask->block_w * mask->bits + 7) / 8 * (uint64_t)mask->block_h;
}

/* Most bytes of a block that is sent in parts. */
static uint64_t sent(uint64_t bytes)
{
    return aligned(bytes) + bytes / PARTS_SHARE + ALIGN;
}

/* Most bytes of uncompressed rows, in the smallest parts: a slot has a page or a row at least. */
static uint64_t in_parts(uint64_t rows, uint64_t row_bytes)
{
    enum { PAGE = 4096 };
    if (row_bytes == 0)
        return 0;
    const uint64_t part = row_bytes < PAGE ? PAGE / row_bytes * row_bytes : row_bytes;
    return rows * row_bytes + (rows * row_bytes + part - 1) / part * ALIGN;
}

static struct cells pixel_cells(const struct pb_plan *plan, size_t i)
{
    const struct pb_raster_info *info = &plan->work.info[i];
    const struct pb_plan_source *source = &plan->work.source[i];
    struct cells c = {.w = (uint64_t)info->block_w,
                      .h = (uint64_t)pb_raster_stored_rows(info),
                      .planes = source->n_bands};
    uint64_t pixel = pb_raster_sample_bytes(info);
    if (plan->engine.whole.how[i].by_host) {
        uint32_t w, h;
        pb_raw_blocks_stand_in(info, &w, &h);
        return (struct cells){
            .w = w, .h = h, .planes = c.planes, .stored = sent(pb_raw_blocks_stand_in_bytes(info))};
    }
    if (info->pixel_interleaved) {
        c.planes = 1;
        pixel *= (uint64_t)info->n_bands;
    }
    if (pb_raster_is_compressed(info)) {
        c.stored = aligned(info->stored_block_bytes);
        c.decoded = aligned(c.w * c.h * pixel) + ALIGN;
        return c;
    }
    const uint64_t block_h = c.h;
    if (c.w * c.h * pixel > PB_RAW_PART_BYTES)
        c.h = PB_RAW_PART_BYTES > c.w * pixel ? PB_RAW_PART_BYTES / (c.w * pixel) : 1;
    c.more = block_h % c.h != 0 ? c.h : 0; /* parts begin with each block */
    c.stored = in_parts(c.h, c.w * pixel);
    return c;
}

static struct cells mask_cells(const struct pb_plan *plan, size_t i)
{
    const struct pb_raster_info *info = &plan->work.info[i];
    const struct pb_mask_blocks *mask = &info->mask_blocks;
    const struct pb_raw_how *how = &plan->engine.whole.how[i];
    struct cells c = pixel_cells(plan, i);
    c.planes = how->mask != PB_RAW_MASK_NONE &&
               (how->mask != PB_RAW_MASK_ALPHA || !info->pixel_interleaved);
    if (how->mask == PB_RAW_MASK_HOST) {
        c.stored = sent(c.w * c.h);
        c.decoded = 0;
    }
    if (how->mask != PB_RAW_MASK_BLOCKS)
        return c;
    const bool is_plain = mask->compression == COMPRESSION_NONE;
    const uint64_t block = pb_plan_mask_block_bytes(mask);
    return (struct cells){
        .w = (uint64_t)mask->block_w,
        .h = (uint64_t)mask->block_h,
        .planes = 1,
        .stored = is_plain ? in_parts((uint64_t)mask->block_h, block / (uint64_t)mask->block_h)
                           : aligned(mask->stored_max),
        .decoded = is_plain ? 0 : aligned(block) + ALIGN};
}

/* Most bytes of the cells of some rows of a source. */
static uint64_t bytes_of(const struct pb_raster_info *info, const struct cells *c, uint64_t rows)
{
    const uint64_t across = ((uint64_t)info->width + c->w - 1) / c->w;
    return (rows + c->h - 1) / c->h * across * c->planes * (c->stored + c->decoded);
}

uint64_t pb_plan_blocks_all(const struct pb_plan *plan)
{
    uint64_t bytes = pb_plan_gate_device_bytes(plan) + pb_plan_planes_bytes(plan);
    for (size_t i = 0; i < plan->work.n_sources; i++) {
        const struct pb_raster_info *info = &plan->work.info[i];
        const uint64_t rows = (uint64_t)info->height;
        if (plan->work.source[i].n_bands == 0)
            continue;
        struct cells pixels = pixel_cells(plan, i);
        const struct cells mask = mask_cells(plan, i);
        if (pixels.decoded > 0) {
            bytes += info->file_bytes;
            pixels.stored = 0;
        }
        bytes += bytes_of(info, &pixels, rows) + bytes_of(info, &mask, rows);
    }
    return bytes;
}

/* Rows of a source in a band of one row of tiles: those in memory, and those of the cells that are
 * sent for it. */
struct band_rows {
    uint64_t kept, sent;
};

/* Rows of the scene that a row of tiles needs; h 0: none. If the grid changes, some more are added
 * because tiles may need them. */
static struct pb_rect row_need(const struct pb_plan *plan, size_t i, int32_t y)
{
    enum { MORE = 8 };
    const struct pb_grid *grid = &plan->layout.grid;
    const int32_t left = grid->image_h - y;
    const int64_t height = plan->work.info[i].height;
    const struct pb_rect core = {0, y, grid->image_w, left < grid->side_px ? left : grid->side_px};
    if (pb_chain_keeps_grid(plan->work.chain))
        return pb_rect_grow(&core, plan->work.halo, grid->image_w, grid->image_h);
    struct pb_rect need = pb_chain_need(plan->work.chain, plan->work.source[i].window, &core);
    const int32_t top = need.y > MORE ? need.y - MORE : 0;
    const int64_t end = (int64_t)need.y + need.h + MORE, bottom = end < height ? end : height;
    need.h = need.w > 0 && need.h > 0 ? (int32_t)(bottom - top) : 0;
    need.y = top;
    return need;
}

/* Most rows of a source in a band of one row of tiles, if it is sent by cells: all of them, unless
 * rows of tiles need them from the top down. */
static struct band_rows rows_most(const struct pb_plan *plan, size_t i, const struct cells *cells)
{
    const struct pb_grid *grid = &plan->layout.grid;
    const uint64_t unit = cells->h;
    const uint64_t height = ((uint64_t)plan->work.info[i].height + unit - 1) / unit * unit;
    struct band_rows most = {0, 0};
    uint64_t top = 0, bottom = 0, done = 0; /* done: end of the cells that were sent */
    for (int64_t y = 0; y < grid->image_h; y += grid->side_px) {
        const struct pb_rect need = row_need(plan, i, (int32_t)y);
        if (need.h <= 0)
            continue;
        const uint64_t first = (uint64_t)need.y, end = first + (uint64_t)need.h;
        if (first < top || end < bottom)
            return (struct band_rows){height, height};
        top = first;
        bottom = end;
        const uint64_t from = first / unit * unit > done ? first / unit * unit : done;
        const uint64_t to = (end + unit - 1) / unit * unit;
        done = to > done ? to : done;
        most.kept = done - first > most.kept ? done - first : most.kept;
        most.sent = done > from && done - from > most.sent ? done - from : most.sent;
    }
    most.kept += cells->more;
    most.sent += 2 * cells->more;
    return most;
}

uint64_t pb_plan_blocks_least(const struct pb_plan *plan)
{
    uint64_t bytes = 0, row_bytes[PB_SOURCES_MAX] = {0}, rows[PB_SOURCES_MAX] = {0};
    for (size_t i = 0; i < plan->work.n_sources; i++) {
        const struct pb_raster_info *info = &plan->work.info[i];
        const struct pb_plan_source *source = &plan->work.source[i];
        if (source->n_bands == 0)
            continue;
        const struct cells cells[] = {pixel_cells(plan, i), mask_cells(plan, i)};
        const uint64_t width = (uint64_t)info->width;
        uint64_t *kept = &rows[source->window];
        for (size_t k = 0; k < 2 && cells[k].planes > 0; k++) {
            const struct band_rows most = rows_most(plan, i, &cells[k]);
            bytes += bytes_of(info, &cells[k], most.sent);
            *kept = most.kept > *kept ? most.kept : *kept;
        }
        row_bytes[source->window] +=
            aligned(width * pb_type_bytes(source->type)) * source->n_bands +
            aligned(width) * source->has_mask;
    }
    for (size_t w = 0; w < PB_SOURCES_MAX; w++)
        bytes += rows[w] * row_bytes[w];
    return 2 * bytes;
}
