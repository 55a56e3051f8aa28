/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* The bound, counted instead of estimated.
 *
 * Let pos(t) be a tile's place in the visiting order. At any moment there is an f (the first
 * unfinished tile's place) so that every tile before f is finished and none at or after f + T is
 * started, T being tiles_in_flight. In which order the tiles between complete does not matter:
 *
 *   - a block of level k gets memory when its first child is complete. A child is complete only if
 *     all of its tiles were started, so first = min over children of (max pos of the child's tiles)
 *     is <= f + T - 1;
 *   - it gives the memory back, at the latest, inside the add() of the last of its tiles, which is
 *     not finished then: last = max pos of its tiles is >= f.
 *
 * So a block can hold memory only while first - T + 1 <= f <= last, and the most intervals that
 * cover one f is a bound for any schedule. One sweep over a difference array finds it, for whatever
 * order and shape of the image.
 *
 * A block that lies within one tile is left out of the sweep. add() walks its tile depth first, so
 * a worker has at most one of them in hand on each level: their bound is the number of workers. */
#include "pipeline/pyramid_bound.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct sweep {
    const struct pb_pyramid_options *options;
    uint32_t n_tiles, window, workers;
    uint32_t *pos;   /* by tile */
    int32_t *change; /* by f: blocks that start minus blocks that ended; n_tiles + 1 */
    uint32_t *done;  /* of the level below: place at which a block is complete at the latest */
    uint32_t *done_here;
};

int32_t pb_pyramid_blocks(int32_t image_px, int32_t block_px, uint32_t level)
{
    int32_t size = pb_pyramid_size(image_px, level);
    return size / block_px + (size % block_px != 0);
}

static int find_positions(struct sweep *sweep)
{
    const struct pb_grid *grid = sweep->options->grid;
    enum pb_order order = sweep->options->order;
    uint32_t *tiles = malloc(pb_order_unit_max(grid, order) * sizeof *tiles), place = 0;
    if (tiles == NULL)
        return -ENOMEM;
    for (uint32_t u = 0; u < pb_order_units(grid, order); u++) {
        uint32_t n = pb_order_unit(grid, order, u, tiles);
        for (uint32_t i = 0; i < n; i++)
            sweep->pos[tiles[i]] = place++;
    }
    free(tiles);
    return 0;
}

struct span {
    uint32_t first, last;
};

/* Tile columns (rows) that a block covers. */
static struct span tiles_of(const struct sweep *sweep, uint32_t level, int32_t block, int32_t image)
{
    int64_t side = (int64_t)sweep->options->block_px << level;
    int64_t end = (block + 1) * side < image ? (block + 1) * side : image;
    int32_t tile = sweep->options->grid->side_px;
    return (struct span){(uint32_t)(block * side / tile), (uint32_t)((end - 1) / tile)};
}

/* When the first and the last child of a block can be complete. Children of level 1 are pieces of
 * tiles, those of higher levels are blocks. */
static struct span times_of(const struct sweep *sweep, uint32_t level, int32_t col, int32_t row)
{
    const struct pb_grid *grid = sweep->options->grid;
    struct span x, y, times = {UINT32_MAX, 0};
    uint32_t stride;
    const uint32_t *when;
    if (level == 1) {
        x = tiles_of(sweep, 1, col, grid->image_w);
        y = tiles_of(sweep, 1, row, grid->image_h);
        stride = (uint32_t)grid->cols;
        when = sweep->pos;
    } else {
        int32_t px = sweep->options->block_px;
        stride = (uint32_t)pb_pyramid_blocks(grid->image_w, px, level - 1);
        uint32_t rows = (uint32_t)pb_pyramid_blocks(grid->image_h, px, level - 1);
        uint32_t c = 2 * (uint32_t)col, r = 2 * (uint32_t)row;
        x = (struct span){c, c + 1 < stride ? c + 1 : c};
        y = (struct span){r, r + 1 < rows ? r + 1 : r};
        when = sweep->done;
    }
    for (uint32_t j = y.first; j <= y.last; j++)
        for (uint32_t i = x.first; i <= x.last; i++) {
            uint32_t t = when[j * stride + i];
            times.first = t < times.first ? t : times.first;
            times.last = t > times.last ? t : times.last;
        }
    return times;
}

static bool within_one_tile(const struct sweep *sweep, uint32_t level, int32_t col, int32_t row)
{
    const struct pb_grid *grid = sweep->options->grid;
    struct span x = tiles_of(sweep, level, col, grid->image_w);
    struct span y = tiles_of(sweep, level, row, grid->image_h);
    return x.first == x.last && y.first == y.last;
}

static uint32_t count_level(struct sweep *sweep, uint32_t level)
{
    const struct pb_grid *grid = sweep->options->grid;
    int32_t cols = pb_pyramid_blocks(grid->image_w, sweep->options->block_px, level);
    int32_t rows = pb_pyramid_blocks(grid->image_h, sweep->options->block_px, level);
    uint32_t own = 0, at_once = 0, most = 0;
    memset(sweep->change, 0, (sweep->n_tiles + (size_t)1) * sizeof *sweep->change);
    for (int32_t row = 0; row < rows; row++)
        for (int32_t col = 0; col < cols; col++) {
            struct span times = times_of(sweep, level, col, row);
            sweep->done_here[(size_t)row * (size_t)cols + (size_t)col] = times.last;
            if (within_one_tile(sweep, level, col, row)) {
                own++;
                continue;
            }
            uint32_t before = sweep->window - 1;
            sweep->change[times.first > before ? times.first - before : 0]++;
            sweep->change[times.last + 1]--;
        }
    for (uint32_t f = 0; f < sweep->n_tiles; f++) {
        at_once += (uint32_t)sweep->change[f];
        most = at_once > most ? at_once : most;
    }
    uint32_t *below = sweep->done;
    sweep->done = sweep->done_here;
    sweep->done_here = below;
    return most + (own < sweep->workers ? own : sweep->workers);
}

int pb_pyramid_bound(const struct pb_pyramid_options *options, uint32_t *out_blocks)
{
    const struct pb_grid *grid = options->grid;
    uint32_t n = pb_grid_count(grid), t = options->tiles_in_flight;
    struct sweep sweep = {.options = options, .n_tiles = n};
    sweep.window = t < 1 ? 1 : t > n ? n : t;
    sweep.workers = options->workers > 0 ? options->workers : sweep.window;
    out_blocks[0] = 0;
    if (options->levels == 0)
        return 0;
    size_t blocks = (size_t)pb_pyramid_blocks(grid->image_w, options->block_px, 1) *
                    (size_t)pb_pyramid_blocks(grid->image_h, options->block_px, 1);
    sweep.pos = malloc(n * sizeof *sweep.pos);
    sweep.change = malloc((n + (size_t)1) * sizeof *sweep.change);
    sweep.done = malloc(blocks * sizeof *sweep.done);
    sweep.done_here = malloc(blocks * sizeof *sweep.done_here);
    int rc = -ENOMEM;
    if (sweep.pos != NULL && sweep.change != NULL && sweep.done != NULL && sweep.done_here != NULL)
        rc = find_positions(&sweep);
    for (uint32_t level = 1; rc == 0 && level <= options->levels; level++)
        out_blocks[level] = count_level(&sweep, level);
    free(sweep.pos);
    free(sweep.change);
    free(sweep.done);
    free(sweep.done_here);
    return rc;
}
