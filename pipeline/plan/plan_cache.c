/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Decides which parts of the scene are kept decoded, how many, and which are decoded again.
 *
 * Tiles that consist of whole blocks and have no halo share no block: they are read directly into
 * their slots. All others are read through the cells of the block cache (block_cache.h).
 *
 * A tiled file has cells of whole blocks, about 256 px a side or one block. Along the rows of
 * a stripe, the cells that one row of tiles touches are kept (and a few for readers that are
 * ahead), so a stripe decodes everything in it once; only the columns of cells at its edges are
 * decoded again for the next stripe. Stripes are much better than the Z curve: with halo and cells
 * as large as tiles a cache of 36, 54, 100, 200 cells decodes 1.82, 1.49, 1.35, 1.22 times the
 * scene along the Z curve, and 1.23, 1.11, 1.11, 1.02 times in stripes of 8, 16, 16, 64 tiles
 * (simulated, LRU, 128 x 128 tiles).
 *
 * A striped file has cells as wide as a stripe of tiles with its halo, some dozen rows high. Every
 * stripe of tiles decodes every strip: fewer stripes cost less decoding, narrower cells need less
 * memory.
 *
 * One compressed strip for all the image decodes from its top only: one reader, and a stripe is one
 * pass. With a separate strip for each band, the next band starts from the top as well; therefore
 * cells may grow there, up to the image. */
#include "pipeline/plan/plan_cache_parts.h"

enum { LARGE_BLOCK_BYTES = 8 << 20, BLOCK_OVERHEAD = 256 };

bool pb_plan_reads_direct(const struct pb_plan *plan, const struct pb_raster_info *info)
{
    const struct pb_grid *g = &plan->layout.grid;
    bool across = g->cols == 1 || g->side_px % info->block_w == 0;
    bool down = g->rows == 1 || g->side_px % info->block_h == 0;
    return pb_grid_count(g) == 1 || (plan->work.halo == 0 && across && down);
}

/* Cells of `cell` pixels that the tiles first .. last of `side` pixels touch, halo included. */
static int64_t touched(const struct pb_plan *plan, int64_t first, int64_t last, int32_t cell,
                       int32_t image)
{
    int64_t side = plan->layout.grid.side_px;
    int64_t begin = pb_cache_most(first * side - plan->work.halo, 0);
    int64_t end = pb_cache_least((last + 1) * side + plan->work.halo, image);
    return (end - 1) / cell - begin / cell + 1;
}

/* Largest count of rows of cells that a row of tiles touches. The position of rows within cells
 * repeats after at most as many rows as a cell has pixels; the first ones extend beyond the upper
 * edge with their halo. */
static int64_t touched_by_a_row(const struct pb_plan *plan, const struct pb_cell_shape *cell)
{
    int64_t n = 0, differ = cell->h + (int64_t)plan->work.halo / plan->layout.grid.side_px + 1;
    int32_t rows = (int32_t)pb_cache_least(plan->layout.grid.rows, differ);
    for (int32_t row = 0; row < rows; row++)
        n = pb_cache_most(n, touched(plan, row, row, cell->h, plan->layout.grid.image_h));
    return n;
}

/* --- shape ----------------------------------------------------------------------------------- */

static struct pb_cell_shape shape_of(const struct pb_plan *plan, const struct pb_raster_info *info,
                                     uint32_t growth)
{
    struct pb_cell_shape s = {.image_w = plan->layout.grid.image_w,
                              .image_h = plan->layout.grid.image_h};
    if (!pb_cache_is_striped(info)) {
        s.w = pb_cache_whole_blocks(info->block_w, PB_CELL_PX);
        s.h = pb_cache_whole_blocks(info->block_h, PB_CELL_PX);
        return s;
    }
    int64_t cols = pb_grid_stripe_cols(&plan->layout.grid);
    bool all = plan->layout.order == PB_ORDER_Z || cols == plan->layout.grid.cols;
    s.w = all ? plan->layout.grid.image_w : (int32_t)(cols * plan->layout.grid.side_px);
    s.overlap = all ? 0 : plan->work.halo;
    int64_t row_px = pb_cache_least(s.w + 2 * (int64_t)s.overlap, plan->layout.grid.image_w);
    int64_t rows = pb_cache_strip_rows(&plan->work.source[0], info, row_px);
    s.h = (int32_t)pb_cache_least(rows << growth, plan->layout.grid.image_h);
    return s;
}

uint32_t pb_plan_cache_grow(const struct pb_plan *plan, const struct pb_raster_info *info)
{
    uint32_t n = 0;
    if (info->top_down && !info->pixel_interleaved && plan->work.source[0].n_bands > 1)
        while (((int64_t)1 << n) < plan->layout.grid.image_h)
            n++;
    return n;
}

/* --- count of cells, and its cost --------------------------------------------------------------
 */

static void count_striped(const struct pb_plan *plan, const struct pb_raster_info *info,
                          struct pb_plan_decoding *out)
{
    const struct pb_grid *g = &plan->layout.grid;
    const struct pb_cell_shape *cell = &out->cells[0].shape;
    int64_t passes =
        plan->layout.order == PB_ORDER_Z ? 1 : pb_cache_parts(g->cols, pb_grid_stripe_cols(g));
    int64_t down = touched_by_a_row(plan, cell), all = pb_cache_parts(g->image_h, cell->h);
    /* Half of the next row's cells, for readers that work on it already. */
    int64_t count = down + pb_cache_parts(g->side_px, cell->h) / 2 + plan->layout.readers;
    out->cells[0].count = (uint32_t)pb_cache_least(count, passes * all);
    out->decodes = (double)passes;
    if (pb_plan_cache_grow(plan, info) > 0)
        out->decodes *= 1.0 + 0.5 * (double)(all - 1);
}

static void count_tiled(const struct pb_plan *plan, struct pb_plan_decoding *out)
{
    const struct pb_grid *g = &plan->layout.grid;
    const struct pb_cell_shape *cell = &out->cells[0].shape;
    int64_t across = 0, columns = 0, cols = pb_grid_stripe_cols(g);
    for (int64_t first = 0; first < g->cols; first += cols) {
        int64_t last = pb_cache_least(first + cols, g->cols) - 1;
        int64_t n = touched(plan, first, last, cell->w, g->image_w);
        across = pb_cache_most(across, n);
        columns += n;
    }
    int64_t down = touched_by_a_row(plan, cell);
    int64_t ahead = pb_cache_parts(g->side_px, cell->w) * plan->layout.readers;
    int64_t all = pb_cache_parts(g->image_w, cell->w) * pb_cache_parts(g->image_h, cell->h);
    out->cells[0].count = (uint32_t)pb_cache_least(down * (across + ahead), all);
    out->decodes = (double)columns / (double)pb_cache_parts(g->image_w, cell->w);
}

/* On the Z curve units and blocks are nested: otherwise pb_plan_create does not choose it. */
static void count_z(const struct pb_plan *plan, struct pb_plan_decoding *out)
{
    const struct pb_cell_shape *cell = &out->cells[0].shape;
    int64_t side = 2 * (int64_t)plan->layout.grid.side_px;
    int64_t each = pb_cache_parts(side, cell->w) * pb_cache_parts(side, cell->h);
    int64_t all = pb_cache_parts(plan->layout.grid.image_w, cell->w) *
                  pb_cache_parts(plan->layout.grid.image_h, cell->h);
    out->cells[0].count = (uint32_t)pb_cache_least(plan->layout.readers * (each + 1), all);
}

static struct pb_block_cache_options options_of(const struct pb_plan *plan,
                                                const struct pb_plan_cells *cells, size_t source,
                                                enum pb_plan_part part)
{
    const struct pb_plan_bands bands = pb_plan_bands_of(&plan->work.source[source], part);
    return (struct pb_block_cache_options){
        .shape = cells->shape,
        .count = bands.n > 0 ? cells->count : 0,
        .bands = bands.bands,
        .n_bands = bands.n,
        .type = plan->work.source[source].type,
        .has_mask = bands.has_mask,
    };
}

struct pb_block_cache_options pb_plan_cache_options(const struct pb_plan *plan, size_t source,
                                                    enum pb_plan_part part)
{
    return options_of(plan, &plan->layout.decoding.cells[source], source, part);
}

uint64_t pb_plan_cells_bytes(const struct pb_plan *plan, const struct pb_plan_cells *cells,
                             size_t source)
{
    uint64_t bytes = 0;
    for (int part = 0; part < PB_PLAN_PARTS; part++) {
        struct pb_block_cache_options options =
            options_of(plan, cells, source, (enum pb_plan_part)part);
        bytes += options.count > 0 ? pb_block_cache_bytes(&options) : 0;
    }
    return bytes;
}

/* --- GDAL ------------------------------------------------------------------------------------ */

static bool has_alpha(const struct pb_raster_info *info)
{
    for (int32_t i = 0; i < info->n_bands; i++)
        if (info->band[i].is_alpha)
            return true;
    return false;
}

/* Bytes of GDAL's block cache, for a reader whose windows have this size and never repeat. */
static uint64_t reader_cache(const struct pb_raster_info *info, const struct pb_rect *window)
{
    uint64_t px = (uint64_t)info->block_w * (uint64_t)info->block_h;
    uint64_t plane = px * pb_raster_sample_bytes(info) + BLOCK_OVERHEAD;
    uint64_t planes = (uint64_t)info->n_bands;
    uint64_t blocks = (uint64_t)(pb_cache_parts(window->w, info->block_w) *
                                 pb_cache_parts(window->h, info->block_h));
    uint64_t bytes = pb_raster_cache_bytes(info, window);
    /* Large blocks are not split into all bands when the cache is smaller than that; each
     * band is copied from the decoded block that GDAL holds anyway. */
    if (info->own_blocks)
        bytes = 0;
    else if (planes * plane > LARGE_BLOCK_BYTES)
        bytes = 2 * plane;
    /* Alpha is read for the whole window after the other bands. */
    if (!info->own_blocks && info->has_mask && has_alpha(info) && blocks > 1 &&
        bytes < (blocks + 1) * planes * plane)
        bytes = (blocks + 1) * planes * plane;
    if (info->has_mask) /* to GDAL a mask is a separate file; its blocks usually are the same */
        bytes += 2 * (px + BLOCK_OVERHEAD);
    return bytes;
}

void pb_plan_cache_add_readers(const struct pb_raster_info *info, struct pb_rect window,
                               struct pb_plan_decoding *out)
{
    /* A cell reads its blocks once, whatever part of their width it uses. */
    if (pb_cache_is_striped(info))
        window.w = info->width;
    window.h = (int32_t)pb_cache_least(window.h, info->height);
    out->cache_bytes += out->readers * reader_cache(info, &window);
    out->reader_bytes += out->readers * pb_raster_reader_bytes(info);
}

struct pb_plan_decoding pb_plan_cache(const struct pb_plan *plan, const struct pb_raster_info *info,
                                      uint32_t growth)
{
    const struct pb_grid *g = &plan->layout.grid;
    struct pb_plan_decoding out = {.readers = plan->layout.readers, .decodes = 1.0};
    struct pb_plan_cells *cells = &out.cells[0];
    struct pb_rect window = {0, 0, g->side_px, g->side_px};
    if (!pb_plan_reads_direct(plan, info)) {
        cells->shape = shape_of(plan, info, growth);
        if (plan->layout.order == PB_ORDER_Z)
            count_z(plan, &out);
        else if (pb_cache_is_striped(info))
            count_striped(plan, info, &out);
        else
            count_tiled(plan, &out);
        out.cells_bytes = pb_plan_cells_bytes(plan, cells, 0);
        window = (struct pb_rect){0, 0, cells->shape.w, cells->shape.h};
    }
    /* More readers than cells would only wait. */
    if (cells->count > 0 && cells->count < out.readers)
        out.readers = cells->count;
    pb_plan_cache_add_readers(info, window, &out);
    return out;
}
