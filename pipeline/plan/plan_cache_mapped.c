/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Decoded cells of sources on whose grid the tiles do not lie (plan_cache.c is for the others).
 * Tiles are visited by rows, in stripes; a row of a stripe touches a window of the source, whose
 * cells are kept while the row is made, with a row more for what the next one needs of them. A
 * striped file has cells as wide as the image. */
#include "pipeline/plan/plan_cache_parts.h"

static struct pb_cell_shape shape_of(const struct pb_plan_source *source,
                                     const struct pb_raster_info *info)
{
    struct pb_cell_shape s = {.image_w = info->width, .image_h = info->height};
    if (!pb_cache_is_striped(info)) {
        s.w = pb_cache_whole_blocks(info->block_w, PB_CELL_PX);
        s.h = pb_cache_whole_blocks(info->block_h, PB_CELL_PX);
        return s;
    }
    if (info->top_down && !info->pixel_interleaved && source->n_bands > 1) {
        s.w = info->width; /* each band begins at the top again: once for all */
        s.h = info->height;
        return s;
    }
    s.w = info->width;
    s.h = (int32_t)pb_cache_least(pb_cache_strip_rows(source, info, info->width), info->height);
    return s;
}

/* Cells that a window of a length may touch along an axis, wherever it begins. */
static int64_t touched(int64_t length, int64_t cell, int64_t image)
{
    return pb_cache_least(pb_cache_parts(length, cell) + 1, pb_cache_parts(image, cell));
}

/* Sets how many cells are kept; returns how often a block is decoded, on average. */
static double count(const struct pb_plan *plan, size_t source, struct pb_plan_cells *cells)
{
    const struct pb_grid *g = &plan->grid;
    const struct pb_cell_shape *cell = &cells->shape;
    int32_t cols = pb_grid_stripe_cols(g);
    int64_t stripe_px = pb_cache_least((int64_t)cols * g->side_px, g->image_w);
    const uint32_t window = plan->source[source].window;
    struct pb_rect row = pb_chain_need_most(plan->chain, window, (int32_t)stripe_px, g->side_px);
    struct pb_rect tile = pb_chain_need_most(plan->chain, window, g->side_px, g->side_px);
    int64_t across = touched(row.w, cell->w, cell->image_w);
    int64_t ahead = touched(tile.w, cell->w, cell->image_w) * plan->readers;
    int64_t down = touched(row.h, cell->h, cell->image_h);
    int64_t columns = pb_cache_parts(cell->image_w, cell->w);
    int64_t stripes = pb_cache_parts(g->cols, cols);
    cells->count = (uint32_t)pb_cache_least(down * (across + ahead),
                                            columns * pb_cache_parts(cell->image_h, cell->h));
    /* The cells at the edges of a stripe are decoded for the next one again. */
    double decodes = (double)(stripes * pb_cache_least(across, columns)) / (double)columns;
    return stripes == 1 || decodes < 1.0 ? 1.0 : decodes;
}

struct pb_plan_decoding pb_plan_cache_mapped(const struct pb_plan *plan,
                                             const struct pb_plan_request *request)
{
    struct pb_plan_decoding out = {.readers = plan->readers, .decodes = 1.0};
    for (size_t i = 0; i < plan->n_sources; i++) {
        struct pb_plan_cells *cells = &out.cells[i];
        const struct pb_raster_info *info = i == 0 ? request->info : request->others[i - 1].info;
        if (plan->source[i].n_bands == 0)
            continue;
        cells->shape = shape_of(&plan->source[i], info);
        double decodes = count(plan, i, cells);
        out.cells_bytes += pb_plan_cells_bytes(plan, cells, i);
        out.decodes = decodes > out.decodes ? decodes : out.decodes;
        pb_plan_cache_add_readers(info, (struct pb_rect){0, 0, cells->shape.w, cells->shape.h},
                                  &out);
    }
    return out;
}
