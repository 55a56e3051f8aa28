/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Decides which parts of the scene are kept decoded, how many, and which are decoded again.
 *
 * Tiles that consist of whole blocks and have no halo share no block: they are read directly into
 * their slots. All others are read through the cells of the block cache (block_cache.h).
 *
 * A tiled file has cells of whole blocks, about 256 px a side or one block. Along the rows of
 * a stripe, the cells that the next row of tiles touches too are kept, those that only this row
 * touches until the tile at their right is read, and a few are decoded for tiles ahead: a stripe
 * decodes everything in it once; only the columns of cells at its edges are decoded again for the
 * next stripe. Tiles that a gate leaves out do not release their cells: all that a row touches are
 * kept then. Stripes are much better than the Z curve: with halo and cells
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
 * cells may grow there, up to the image.
 *
 * Sources whose grid is not that of the tiles: tiles are visited by rows, in stripes; a row of a
 * stripe touches a window of the source, whose cells are kept while the row is made. A striped file
 * has cells as wide as the image.
 *
 * Grids are mapped to each other axis by axis, therefore the cells that a tile touches follow from
 * its column and its row alone: a loop over both counts them. If no block is touched by two columns
 * or by two rows (bands of one scene in files of their own, blocks as tiles), tiles are read
 * straight into their slots. A grid with more columns or rows than WALKED_MAX gets an upper
 * estimate. */
#include "pipeline/plan/cache.h"

enum { LARGE_BLOCK_BYTES = 8 << 20, BLOCK_OVERHEAD = 256 };

enum {
    CELL_PX = 256, /* approximate side of a cell in a tiled file */
    STRIP_CELL_ROWS = 32,
    STRIP_CELL_BYTES = 4 << 20
};

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t parts(int64_t length, int64_t each)
{
    return (length + each - 1) / each;
}

static bool is_striped(const struct pb_raster_info *info)
{
    return info->block_w >= info->width;
}

/* Largest multiple of whole blocks up to `wanted` pixels, at least one block. */
static int32_t whole_blocks(int32_t block, int32_t wanted)
{
    return block >= wanted ? block : wanted / block * block;
}

/* Rows of a cell in a striped file whose cells have rows of row_px pixels of all bands. */
static int32_t strip_rows(const struct pb_plan_source *source, const struct pb_raster_info *info,
                          int64_t row_px)
{
    int64_t row_bytes = row_px * (int64_t)(pb_type_bytes(source->type) * source->n_bands + 1);
    int64_t rows = smaller(STRIP_CELL_ROWS, larger(STRIP_CELL_BYTES / row_bytes, 1));
    return whole_blocks(info->block_h, (int32_t)rows);
}

bool pb_plan_reads_direct(const struct pb_plan *plan, const struct pb_raster_info *info)
{
    const struct pb_grid *g = &plan->layout.grid;
    bool across = g->cols == 1 || g->side_px % info->block_w == 0;
    bool down = g->rows == 1 || g->side_px % info->block_h == 0;
    /* Copies of a growing file's lines are cheaper than cells, and need no complete cell. */
    return info->is_growing || pb_grid_count(g) == 1 || (plan->work.halo == 0 && across && down);
}

/* Cells of `cell` pixels that the tiles first .. last of `side` pixels touch, halo included. */
static int64_t touched(const struct pb_plan *plan, int64_t first, int64_t last, int32_t cell,
                       int32_t image)
{
    int64_t side = plan->layout.grid.side_px;
    int64_t begin = larger(first * side - plan->work.halo, 0);
    int64_t end = smaller((last + 1) * side + plan->work.halo, image);
    return (end - 1) / cell - begin / cell + 1;
}

/* Largest count of rows of cells that a row of tiles touches. The position of rows within cells
 * repeats after at most as many rows as a cell has pixels; the first ones extend beyond the upper
 * edge with their halo. */
static int64_t touched_by_a_row(const struct pb_plan *plan, const struct pb_cell_shape *cell)
{
    int64_t n = 0, differ = cell->h + (int64_t)plan->work.halo / plan->layout.grid.side_px + 1;
    int32_t rows = (int32_t)smaller(plan->layout.grid.rows, differ);
    for (int32_t row = 0; row < rows; row++)
        n = larger(n, touched(plan, row, row, cell->h, plan->layout.grid.image_h));
    return n;
}

/* Largest count of rows of cells that a row of tiles and the next one touch. */
static int64_t touched_by_two_rows(const struct pb_plan *plan, const struct pb_cell_shape *cell)
{
    int64_t n = 0, differ = cell->h + (int64_t)plan->work.halo / plan->layout.grid.side_px + 1;
    const int32_t image = plan->layout.grid.image_h;
    int32_t rows = (int32_t)smaller(plan->layout.grid.rows - 1, differ);
    for (int32_t row = 0; row < rows; row++)
        n = larger(n, touched(plan, row, row, cell->h, image) +
                          touched(plan, row + 1, row + 1, cell->h, image) -
                          touched(plan, row, row + 1, cell->h, image));
    return n;
}

static bool releases(const struct pb_plan *plan)
{
    return pb_chain_keeps_grid(plan->work.chain) && plan->layout.order == PB_ORDER_ROWS &&
           pb_chain_gate(plan->work.chain) == NULL;
}

bool pb_plan_cache_rest(const struct pb_plan *plan, uint32_t number, uint32_t window,
                        struct pb_rect out_rest[2])
{
    const struct pb_grid *g = &plan->layout.grid;
    const uint32_t cols = (uint32_t)g->cols, width = (uint32_t)pb_grid_stripe_cols(g);
    const uint32_t col = number % cols;
    if (!releases(plan))
        return false;
    out_rest[0] = out_rest[1] = (struct pb_rect){0, 0, 0, 0};
    if (col + 1 < cols && (col + 1) % width != 0)
        out_rest[0] = pb_plan_tile(plan, number + 1, 0).read[window];
    if (number + cols < pb_grid_count(g)) {
        out_rest[1] = pb_plan_tile(plan, number + cols, 0).read[window];
        out_rest[1].x = 0;
        out_rest[1].w = INT32_MAX;
    }
    return true;
}

/* --- shape ----------------------------------------------------------------------------------- */

static struct pb_cell_shape shape_of(const struct pb_plan *plan, const struct pb_raster_info *info,
                                     uint32_t growth)
{
    struct pb_cell_shape s = {.image_w = plan->layout.grid.image_w,
                              .image_h = plan->layout.grid.image_h};
    if (!is_striped(info)) {
        s.w = whole_blocks(info->block_w, CELL_PX);
        s.h = whole_blocks(info->block_h, CELL_PX);
        return s;
    }
    int64_t cols = pb_grid_stripe_cols(&plan->layout.grid);
    bool all = plan->layout.order == PB_ORDER_Z || cols == plan->layout.grid.cols;
    s.w = all ? plan->layout.grid.image_w : (int32_t)(cols * plan->layout.grid.side_px);
    s.overlap = all ? 0 : plan->work.halo;
    int64_t row_px = smaller(s.w + 2 * (int64_t)s.overlap, plan->layout.grid.image_w);
    int64_t rows = strip_rows(&plan->work.source[0], info, row_px);
    s.h = (int32_t)smaller(rows << growth, plan->layout.grid.image_h);
    return s;
}

uint32_t pb_plan_cache_grow(const struct pb_plan *plan)
{
    const struct pb_raster_info *info = &plan->work.info[0];
    uint32_t n = 0;
    if (info->top_down && !info->pixel_interleaved && plan->work.source[0].n_bands > 1)
        while (((int64_t)1 << n) < plan->layout.grid.image_h)
            n++;
    return n;
}

/* --- count of cells, and its cost ------------------------------------------------------------- */

static void count_striped(const struct pb_plan *plan, struct pb_plan_decoding *out)
{
    const struct pb_grid *g = &plan->layout.grid;
    const struct pb_cell_shape *cell = &out->cells[0].shape;
    int64_t passes = plan->layout.order == PB_ORDER_Z ? 1 : parts(g->cols, pb_grid_stripe_cols(g));
    int64_t down = touched_by_a_row(plan, cell), all = parts(g->image_h, cell->h);
    /* Half of the next row's cells, for readers that work on it already. */
    int64_t count = down + parts(g->side_px, cell->h) / 2 + plan->layout.readers;
    out->cells[0].count = (uint32_t)smaller(count, passes * all);
    out->decodes = (double)passes;
    if (pb_plan_cache_grow(plan) > 0)
        out->decodes *= 1.0 + 0.5 * (double)(all - 1);
}

static void count_tiled(const struct pb_plan *plan, struct pb_plan_decoding *out)
{
    const struct pb_grid *g = &plan->layout.grid;
    const struct pb_cell_shape *cell = &out->cells[0].shape;
    int64_t across = 0, columns = 0, cols = pb_grid_stripe_cols(g);
    for (int64_t first = 0; first < g->cols; first += cols) {
        int64_t last = smaller(first + cols, g->cols) - 1;
        int64_t n = touched(plan, first, last, cell->w, g->image_w);
        across = larger(across, n);
        columns += n;
    }
    int64_t down = touched_by_a_row(plan, cell), step = parts(g->side_px, cell->w);
    int64_t kept = releases(plan) ? touched_by_two_rows(plan, cell) : down;
    int64_t all = parts(g->image_w, cell->w) * parts(g->image_h, cell->h);
    /* Columns of cells that are kept for the tiles in work: of each reader a tile and the two later
     * cells that it decodes. */
    int64_t reach = parts((int64_t)g->side_px + 2 * (int64_t)plan->work.halo, cell->w) + 1;
    int64_t ahead = reach + step * (3 * (int64_t)plan->layout.readers - 1);
    int64_t count = kept * across + larger(down - kept, 1) * ahead;
    if (!releases(plan))
        count = down * (across + step * plan->layout.readers);
    out->cells[0].count = (uint32_t)smaller(count, all);
    out->decodes = (double)columns / (double)parts(g->image_w, cell->w);
}

/* On the Z curve units and blocks are nested: otherwise pb_plan_create does not choose it. */
static void count_z(const struct pb_plan *plan, struct pb_plan_decoding *out)
{
    const struct pb_cell_shape *cell = &out->cells[0].shape;
    int64_t side = 2 * (int64_t)plan->layout.grid.side_px;
    int64_t each = parts(side, cell->w) * parts(side, cell->h);
    int64_t all =
        parts(plan->layout.grid.image_w, cell->w) * parts(plan->layout.grid.image_h, cell->h);
    out->cells[0].count = (uint32_t)smaller(plan->layout.readers * (each + 1), all);
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

static uint64_t cells_bytes(const struct pb_plan *plan, const struct pb_plan_cells *cells,
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
    uint64_t blocks = (uint64_t)(parts(window->w, info->block_w) * parts(window->h, info->block_h));
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

/* has_cells: its pixels are read through cells only. */
static void add_readers(const struct pb_raster_info *info, struct pb_rect window, bool has_cells,
                        struct pb_plan_decoding *out)
{
    /* A cell reads its blocks once, whatever part of their width it uses. */
    if (is_striped(info))
        window.w = info->width;
    window.h = (int32_t)smaller(window.h, info->height);
    out->cache_bytes += out->readers * reader_cache(info, &window);
    out->reader_bytes +=
        out->readers * (pb_raster_reader_bytes(info) - (has_cells ? info->spared_bytes : 0));
}

struct pb_plan_decoding pb_plan_cache(const struct pb_plan *plan, uint32_t growth)
{
    const struct pb_raster_info *info = &plan->work.info[0];
    const struct pb_grid *g = &plan->layout.grid;
    struct pb_plan_decoding out = {.readers = plan->layout.readers, .decodes = 1.0};
    struct pb_plan_cells *cells = &out.cells[0];
    struct pb_rect window = {0, 0, g->side_px, g->side_px};
    if (!pb_plan_reads_direct(plan, info)) {
        cells->shape = shape_of(plan, info, growth);
        if (plan->layout.order == PB_ORDER_Z)
            count_z(plan, &out);
        else if (is_striped(info))
            count_striped(plan, &out);
        else
            count_tiled(plan, &out);
        out.cells_bytes = cells_bytes(plan, cells, 0);
        window = (struct pb_rect){0, 0, cells->shape.w, cells->shape.h};
    }
    /* More readers than cells would only wait. */
    if (cells->count > 0 && cells->count < out.readers)
        out.readers = cells->count;
    add_readers(info, window, cells->count > 0, &out);
    return out;
}

enum { WALKED_MAX = 1 << 12 };

static struct pb_cell_shape mapped_shape_of(const struct pb_plan_source *source,
                                            const struct pb_raster_info *info)
{
    struct pb_cell_shape s = {.image_w = info->width, .image_h = info->height};
    if (!is_striped(info)) {
        s.w = whole_blocks(info->block_w, CELL_PX);
        s.h = whole_blocks(info->block_h, CELL_PX);
        return s;
    }
    if (info->top_down && !info->pixel_interleaved && source->n_bands > 1) {
        s.w = info->width; /* each band starts from the top: the cell is the image */
        s.h = info->height;
        return s;
    }
    s.w = info->width;
    s.h = (int32_t)smaller(strip_rows(source, info, info->width), info->height);
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
    end = smaller(end, a->down ? g->image_h : g->image_w);
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
        int64_t last = smaller(first + n, a->tiles) - 1;
        int64_t parts = touched_by(a, (int32_t)first, (int32_t)last).n;
        most = larger(most, parts);
        *out_sum += parts;
    }
    return most;
}

/* Upper estimate of the same for too many tiles, for groups at any position. */
static int64_t most_anywhere(const struct axis *a, int32_t n, int64_t *out_sum)
{
    const struct pb_grid *g = &a->plan->layout.grid;
    int64_t px = smaller((int64_t)n * g->side_px, a->down ? g->image_h : g->image_w);
    const struct pb_rect need =
        pb_chain_need_most(a->plan->work.chain, a->window, (int32_t)px, (int32_t)px);
    int64_t most = smaller(parts(a->down ? need.h : need.w, a->part) + 1, parts(a->image, a->part));
    *out_sum = most * parts(a->tiles, n);
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
    return !looked_at && (info->is_made || info->is_growing || (are_apart(&x) && are_apart(&y)));
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
    int64_t columns = parts(cell->image_w, cell->w);
    cells->count =
        (uint32_t)smaller(down * (across + ahead), columns * parts(cell->image_h, cell->h));
    /* The cells at the edges of a stripe are decoded again for the next one. */
    double decodes = (double)stripes / (double)columns;
    return decodes < 1.0 ? 1.0 : decodes;
}

struct pb_plan_decoding pb_plan_cache_mapped(const struct pb_plan *plan)
{
    struct pb_plan_decoding out = {.readers = plan->layout.readers, .decodes = 1.0};
    for (size_t i = 0; i < plan->work.n_sources; i++) {
        struct pb_plan_cells *cells = &out.cells[i];
        const struct pb_raster_info *info = &plan->work.info[i];
        if (plan->work.source[i].n_bands == 0)
            continue;
        if (reads_direct(plan, i, info)) {
            struct pb_rect tile =
                pb_chain_need_most(plan->work.chain, plan->work.source[i].window,
                                   plan->layout.grid.side_px, plan->layout.grid.side_px);
            add_readers(info, tile, false, &out);
            continue;
        }
        cells->shape = mapped_shape_of(&plan->work.source[i], info);
        double decodes = count(plan, i, cells);
        out.cells_bytes += cells_bytes(plan, cells, i);
        out.decodes = decodes > out.decodes ? decodes : out.decodes;
        add_readers(info, (struct pb_rect){0, 0, cells->shape.w, cells->shape.h}, true, &out);
    }
    return out;
}
