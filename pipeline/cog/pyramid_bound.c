/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* The bound, counted instead of estimated.
 *
 * Let pos(t) be a tile's index in the visiting order. At any moment there is an f (the first
 * unfinished tile's index) so that every tile before f is finished and none at or after f + T is
 * started, T being tiles_in_flight. In which order the tiles between complete does not matter:
 *
 *   - a block of level k gets memory when its first child is complete. A child is complete only if
 *     all of its tiles were started, so first = min over children of (max pos of the child's tiles)
 *     is <= f + T - 1;
 *   - it releases the memory, at the latest, inside the add() of the last of its tiles, which is
 *     not finished then: last = max pos of its tiles is >= f.
 *
 * So a block can hold memory only while first - T + 1 <= f <= last, and the most intervals that
 * cover one f is a bound for any schedule. One sweep over a difference array finds it, for any
 * order and shape of the image. Because pos grows with the column and with the row, first and last
 * are the indexes of single tiles, and no memory depends on the number of tiles or blocks. The
 * array has a fixed size: in a scene of more tiles an entry represents several adjacent f, and
 * counts the intervals that touch any of them.
 *
 * Halves of blocks are counted in the same way, each with its own children. By rows of
 * tiles that halves the memory: the lower halves of a row of blocks only exist for the tiles
 * in flight, because the blocks are complete then.
 *
 * A block inside one tile is left out of the sweep. add() visits its tile depth first,
 * so a worker has at most one of them on each level at a time: their bound is the number of
 * workers. */
#include "pipeline/cog/pyramid_bound.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { ENTRIES_MAX = 1 << 17 };

struct sweep {
    const struct pb_pyramid_options *options;
    uint32_t n_tiles, window, workers;
    uint32_t each;    /* count of f in an entry */
    uint32_t entries; /* count of entries for n_tiles */
    int32_t *change;  /* indexed by entry: blocks that start minus blocks that ended; entries + 1 */
    struct column *column; /* columns of a level's blocks; as many as level 1 has */
};

int32_t pb_pyramid_blocks(int32_t image_px, int32_t block_px, uint32_t level)
{
    int32_t size = pb_pyramid_size(image_px, level);
    return size / block_px + (size % block_px != 0);
}

struct span {
    uint32_t first, last;
};

/* A column of blocks, in columns of tiles: end of its left children, and its own end. */
struct column {
    uint32_t child, last;
    bool is_one; /* it is inside one column of tiles */
};

/* Tile columns (rows) that a block covers. */
static struct span tiles_of(const struct sweep *sweep, uint32_t level, int32_t block, int32_t image)
{
    int64_t side = (int64_t)sweep->options->block_px << level;
    int64_t end = (block + 1) * side < image ? (block + 1) * side : image;
    int32_t tile = sweep->options->grid->side_px;
    return (struct span){(uint32_t)(block * side / tile), (uint32_t)((end - 1) / tile)};
}

/* The last tile column (row) of a block's child 0 or 1. Children of level 1 are parts of tiles,
 * those of higher levels are blocks. */
static uint32_t child_end(const struct sweep *sweep, uint32_t level, int32_t block, int32_t child,
                          int32_t image)
{
    return tiles_of(sweep, level - 1, 2 * block + child, image).last;
}

static void add_interval(struct sweep *sweep, uint32_t first, uint32_t last)
{
    uint32_t before = sweep->window - 1;
    uint32_t begin = first > before ? first - before : 0;
    sweep->change[begin / sweep->each]++;
    sweep->change[last / sweep->each + 1]--;
}

static uint32_t most_at_once(const struct sweep *sweep)
{
    uint32_t at_once = 0, most = 0;
    for (uint32_t i = 0; i < sweep->entries; i++) {
        at_once += (uint32_t)sweep->change[i];
        most = at_once > most ? at_once : most;
    }
    return most;
}

static void find_columns(struct sweep *sweep, uint32_t level)
{
    const int32_t w = sweep->options->grid->image_w;
    const int32_t cols = pb_pyramid_blocks(w, sweep->options->block_px, level);
    for (int32_t col = 0; col < cols; col++) {
        const struct span x = tiles_of(sweep, level, col, w);
        sweep->column[col] =
            (struct column){child_end(sweep, level, col, 0, w), x.last, x.first == x.last};
    }
}

/* Adds the intervals of a level's blocks (half 0) or of their lower halves (1); those inside one
 * tile are counted instead. */
static uint32_t add_level(struct sweep *sweep, uint32_t level, int32_t half)
{
    const struct pb_grid *grid = sweep->options->grid;
    enum pb_order order = sweep->options->order;
    int32_t cols = pb_pyramid_blocks(grid->image_w, sweep->options->block_px, level);
    int32_t rows = pb_pyramid_blocks(grid->image_h, sweep->options->block_px, level);
    int32_t rows_below = pb_pyramid_blocks(grid->image_h, sweep->options->block_px, level - 1);
    uint32_t own = 0;
    for (int32_t row = 0; row < rows && 2 * row + half < rows_below; row++) {
        struct span y = tiles_of(sweep, level, row, grid->image_h);
        uint32_t y_child = child_end(sweep, level, row, half, grid->image_h);
        for (const struct column *x = sweep->column; x < sweep->column + cols; x++) {
            if (x->is_one && y.first == y.last)
                own += own < sweep->workers;
            else
                add_interval(sweep, pb_order_position(grid, order, x->child, y_child),
                             pb_order_position(grid, order, x->last, y.last));
        }
    }
    return own;
}

static struct pb_pyramid_held count_level(struct sweep *sweep, uint32_t level)
{
    const struct pb_grid *grid = sweep->options->grid;
    const int32_t px = sweep->options->block_px;
    struct pb_pyramid_held held;
    if (sweep->n_tiles == 1 || grid->side_px % ((int64_t)px << level) == 0) {
        uint64_t own = (uint64_t)pb_pyramid_blocks(grid->image_w, px, level) *
                       (uint64_t)pb_pyramid_blocks(grid->image_h, px, level);
        held.blocks = own < sweep->workers ? (uint32_t)own : sweep->workers; /* without a loop */
        held.halves = 2 * held.blocks;
        return held;
    }
    memset(sweep->change, 0, (sweep->entries + (size_t)1) * sizeof *sweep->change);
    find_columns(sweep, level);
    uint32_t own = add_level(sweep, level, 0);
    held.blocks = most_at_once(sweep) + own;
    own += add_level(sweep, level, 1);
    held.halves = most_at_once(sweep) + own;
    return held;
}

int pb_pyramid_bound(const struct pb_pyramid_options *options, struct pb_pyramid_held *out_held)
{
    uint32_t n = pb_grid_count(options->grid), t = options->tiles_in_flight;
    struct sweep sweep = {.options = options, .n_tiles = n};
    sweep.window = t < 1 ? 1 : t > n ? n : t;
    sweep.workers = options->workers > 0 ? options->workers : sweep.window;
    sweep.each = n / ENTRIES_MAX + (n % ENTRIES_MAX != 0);
    sweep.entries = n / sweep.each + (n % sweep.each != 0);
    out_held[0] = (struct pb_pyramid_held){0, 0};
    if (options->levels == 0)
        return 0;
    const int32_t columns = pb_pyramid_blocks(options->grid->image_w, options->block_px, 1);
    sweep.change = malloc((sweep.entries + (size_t)1) * sizeof *sweep.change);
    sweep.column = malloc((size_t)columns * sizeof *sweep.column);
    const bool have = sweep.change != NULL && sweep.column != NULL;
    for (uint32_t level = 1; have && level <= options->levels; level++)
        out_held[level] = count_level(&sweep, level);
    free(sweep.change);
    free(sweep.column);
    return have ? 0 : -ENOMEM;
}
