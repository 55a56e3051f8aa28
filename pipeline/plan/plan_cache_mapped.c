/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Decoded cells of sources whose grid is not that of the tiles (plan_cache.c is for the others).
 * Tiles are visited by rows, in stripes; a row of a stripe touches a window of the source, whose
 * cells are kept while the row is made. A striped file has cells as wide as the image.
 *
 * Grids are mapped to each other axis by axis, therefore the cells that a tile touches follow from
 * its column and its row alone: a loop over both counts them. If no block is touched by two columns
 * or by two rows (bands of one scene in files of their own, blocks as tiles), tiles are read
 * straight into their slots. A grid with more columns or rows than WALKED_MAX gets an upper
 * estimate. */
#include "pipeline/plan/plan_cache_parts.h"

enum { WALKED_MAX = 1 << 12 };

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
        s.w = info->width; /* each band starts from the top: the cell is the image */
        s.h = info->height;
        return s;
    }
    s.w = info->width;
    s.h = (int32_t)pb_cache_least(pb_cache_strip_rows(source, info, info->width), info->height);
    return s;
}

/* --- one axis -------------------------------------------------------------------------------- */

/* Columns or rows of tiles, and the parts (cells or blocks) of a source that they read. */
struct axis {
    const struct pb_plan *plan;
    uint32_t window;
    bool down;
    int32_t tiles;
    int32_t part, image; /* sizes in px of the source */
};

/* Parts that neighbouring tiles touch together. */
struct touched {
    int64_t first, n;
};

static struct touched touched_by(const struct axis *a, int32_t first, int32_t last)
{
    const struct pb_grid *g = &a->plan->layout.grid;
    int64_t begin = (int64_t)first * g->side_px, end = ((int64_t)last + 1) * g->side_px;
    end = pb_cache_least(end, a->down ? g->image_h : g->image_w);
    struct pb_rect core = {0, 0, g->image_w, g->image_h};
    *(a->down ? &core.y : &core.x) = (int32_t)begin;
    *(a->down ? &core.h : &core.w) = (int32_t)(end - begin);
    const struct pb_rect need = pb_chain_need(a->plan->work.chain, a->window, &core);
    int64_t from = a->down ? need.y : need.x, length = a->down ? need.h : need.w;
    if (length == 0)
        return (struct touched){0, 0};
    int64_t n = (from + length - 1) / a->part - from / a->part + 1;
    return (struct touched){from / a->part, n};
}

/* Most parts that `n` neighbouring tiles touch, in groups of n tiles; *out_sum: sum over the
 * groups. */
static int64_t most_touched(const struct axis *a, int32_t n, int64_t *out_sum)
{
    int64_t most = 0;
    *out_sum = 0;
    for (int64_t first = 0; first < a->tiles; first += n) {
        int64_t last = pb_cache_least(first + n, a->tiles) - 1;
        int64_t parts = touched_by(a, (int32_t)first, (int32_t)last).n;
        most = pb_cache_most(most, parts);
        *out_sum += parts;
    }
    return most;
}

/* Upper estimate of the same for too many tiles, for groups at any position. */
static int64_t most_anywhere(const struct axis *a, int32_t n, int64_t *out_sum)
{
    const struct pb_grid *g = &a->plan->layout.grid;
    int64_t px = pb_cache_least((int64_t)n * g->side_px, a->down ? g->image_h : g->image_w);
    const struct pb_rect need =
        pb_chain_need_most(a->plan->work.chain, a->window, (int32_t)px, (int32_t)px);
    int64_t most = pb_cache_least(pb_cache_parts(a->down ? need.h : need.w, a->part) + 1,
                                  pb_cache_parts(a->image, a->part));
    *out_sum = most * pb_cache_parts(a->tiles, n);
    return most;
}

static int64_t touched_most(const struct axis *a, int32_t n, int64_t *out_sum)
{
    return a->tiles <= WALKED_MAX ? most_touched(a, n, out_sum) : most_anywhere(a, n, out_sum);
}

/* True if no part is touched by two tiles. */
static bool are_apart(const struct axis *a)
{
    int64_t end = 0;
    for (int32_t i = 0; i < a->tiles && a->tiles <= WALKED_MAX; i++) {
        const struct touched own = touched_by(a, i, i);
        if (own.n > 0 && own.first < end)
            return false;
        end = own.n > 0 ? own.first + own.n : end;
    }
    return a->tiles <= WALKED_MAX;
}

/* --- a source --------------------------------------------------------------------------------- */

static struct axis axis_of(const struct pb_plan *plan, size_t source, bool down, int32_t part,
                           int32_t image)
{
    return (struct axis){.plan = plan,
                         .window = plan->work.source[source].window,
                         .down = down,
                         .tiles = down ? plan->layout.grid.rows : plan->layout.grid.cols,
                         .part = part,
                         .image = image};
}

/* True for direct reading; not with a gate, whose area may be larger than the tile. */
static bool reads_direct(const struct pb_plan *plan, size_t source,
                         const struct pb_raster_info *info)
{
    const struct axis x = axis_of(plan, source, false, info->block_w, info->width);
    const struct axis y = axis_of(plan, source, true, info->block_h, info->height);
    bool looked_at = plan->work.source[source].n_later < plan->work.source[source].n_bands;
    return !looked_at && (info->is_made || (are_apart(&x) && are_apart(&y)));
}

/* Sets the count of cells; returns how often a block is decoded, on average. */
static double count(const struct pb_plan *plan, size_t source, struct pb_plan_cells *cells)
{
    const struct pb_cell_shape *cell = &cells->shape;
    const struct axis x = axis_of(plan, source, false, cell->w, cell->image_w);
    const struct axis y = axis_of(plan, source, true, cell->h, cell->image_h);
    int64_t stripes, one, rows;
    int64_t across = touched_most(&x, pb_grid_stripe_cols(&plan->layout.grid), &stripes);
    int64_t ahead = touched_most(&x, 1, &one) * plan->layout.readers;
    int64_t down = touched_most(&y, 1, &rows);
    int64_t columns = pb_cache_parts(cell->image_w, cell->w);
    cells->count = (uint32_t)pb_cache_least(down * (across + ahead),
                                            columns * pb_cache_parts(cell->image_h, cell->h));
    /* The cells at the edges of a stripe are decoded again for the next one. */
    double decodes = (double)stripes / (double)columns;
    return decodes < 1.0 ? 1.0 : decodes;
}

struct pb_plan_decoding pb_plan_cache_mapped(const struct pb_plan *plan,
                                             const struct pb_plan_request *request)
{
    struct pb_plan_decoding out = {.readers = plan->layout.readers, .decodes = 1.0};
    for (size_t i = 0; i < plan->work.n_sources; i++) {
        struct pb_plan_cells *cells = &out.cells[i];
        const struct pb_raster_info *info = pb_plan_info(plan, request, i);
        if (plan->work.source[i].n_bands == 0)
            continue;
        if (reads_direct(plan, i, info)) {
            struct pb_rect tile =
                pb_chain_need_most(plan->work.chain, plan->work.source[i].window,
                                   plan->layout.grid.side_px, plan->layout.grid.side_px);
            pb_plan_cache_add_readers(info, tile, &out);
            continue;
        }
        cells->shape = shape_of(&plan->work.source[i], info);
        double decodes = count(plan, i, cells);
        out.cells_bytes += pb_plan_cells_bytes(plan, cells, i);
        out.decodes = decodes > out.decodes ? decodes : out.decodes;
        pb_plan_cache_add_readers(info, (struct pb_rect){0, 0, cells->shape.w, cells->shape.h},
                                  &out);
    }
    return out;
}
