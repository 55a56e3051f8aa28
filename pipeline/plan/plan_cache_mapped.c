/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Decoded cells of sources on whose grid the tiles do not lie (plan_cache.c is for the others).
 * Tiles are visited by rows, in stripes; a row of a stripe touches a window of the source, whose
 * cells are kept while the row is made, with a row more for what the next one needs of them. A
 * striped file has cells as wide as the image. */
#include "pipeline/plan/plan_cache.h"

enum { CELL_PX = 256, STRIP_ROWS = 32, STRIP_CELL_BYTES = 4 << 20 };

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t parts(int64_t length, int64_t each)
{
    return (length + each - 1) / each;
}

static int32_t whole_blocks(int32_t block, int64_t wanted)
{
    return block >= wanted ? block : (int32_t)(wanted / block * block);
}

static struct pb_cell_shape shape_of(const struct pb_plan_source *source,
                                     const struct pb_raster_info *info)
{
    struct pb_cell_shape s = {.image_w = info->width, .image_h = info->height};
    if (info->block_w < info->width) {
        s.w = whole_blocks(info->block_w, CELL_PX);
        s.h = whole_blocks(info->block_h, CELL_PX);
        return s;
    }
    if (info->top_down && !info->pixel_interleaved && source->n_bands > 1) {
        s.w = info->width; /* each band begins at the top again: once for all */
        s.h = info->height;
        return s;
    }
    int64_t row =
        (int64_t)info->width * (int64_t)(pb_type_bytes(source->type) * source->n_bands + 1);
    int64_t rows = STRIP_CELL_BYTES / row > 0 ? STRIP_CELL_BYTES / row : 1;
    s.w = info->width;
    s.h = (int32_t)least(whole_blocks(info->block_h, least(STRIP_ROWS, rows)), info->height);
    return s;
}

/* Cells that a window of a length may touch along an axis, wherever it begins. */
static int64_t touched(int64_t length, int64_t cell, int64_t image)
{
    return least(parts(length, cell) + 1, parts(image, cell));
}

static void count(struct pb_plan *plan, size_t source)
{
    const struct pb_grid *g = &plan->grid;
    struct pb_plan_source *s = &plan->source[source];
    const struct pb_cell_shape *cell = &s->cell;
    int32_t cols = g->stripe_cols > 0 && g->stripe_cols < g->cols ? g->stripe_cols : g->cols;
    int64_t stripe_px = least((int64_t)cols * g->side_px, g->image_w);
    struct pb_rect row =
        pb_chain_need_most(plan->chain, (uint32_t)source, (int32_t)stripe_px, g->side_px);
    struct pb_rect tile = pb_chain_need_most(plan->chain, (uint32_t)source, g->side_px, g->side_px);
    int64_t across = touched(row.w, cell->w, cell->image_w);
    int64_t ahead = touched(tile.w, cell->w, cell->image_w) * plan->readers;
    int64_t down = touched(row.h, cell->h, cell->image_h);
    int64_t columns = parts(cell->image_w, cell->w);
    int64_t stripes = parts(g->cols, cols);
    s->cell_count =
        (uint32_t)least(down * (across + ahead), columns * parts(cell->image_h, cell->h));
    /* The cells at the edges of a stripe are decoded for the next one again. */
    s->decodes =
        stripes == 1 ? 1.0 : (double)least(stripes * across, stripes * columns) / (double)columns;
    s->decodes = s->decodes < 1.0 ? 1.0 : s->decodes;
}

void pb_plan_cache_mapped(struct pb_plan *plan, const struct pb_plan_request *request)
{
    plan->cells_bytes = plan->cache_bytes = plan->reader_bytes = 0;
    plan->decodes = 1.0;
    for (size_t i = 0; i < plan->n_sources; i++) {
        struct pb_plan_source *s = &plan->source[i];
        const struct pb_raster_info *info = i == 0 ? request->info : request->others[i - 1].info;
        s->cell = (struct pb_cell_shape){0};
        s->cell_count = 0;
        s->decodes = 1.0;
        if (s->n_bands == 0)
            continue;
        s->cell = shape_of(s, info);
        count(plan, i);
        struct pb_block_cache_options options = pb_plan_cache_options(plan, i);
        plan->cells_bytes += pb_block_cache_bytes(&options);
        plan->decodes = s->decodes > plan->decodes ? s->decodes : plan->decodes;
        pb_plan_cache_add_readers(plan, info, (struct pb_rect){0, 0, s->cell.w, s->cell.h});
    }
}
