/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* The pyramid as a set of incomplete blocks.
 *
 * A level has as many buffers as pyramid_bound.c proves to be enough, each for the upper or the
 * lower half of a block: by rows of tiles lower halves start late, so half of the memory is enough.
 * The first complete child in a half takes a buffer for it, every child writes its own
 * quarter of the block, without a lock because quarters do not overlap, and decrements the count of
 * missing children. The thread that brings the count to zero owns the block: it passes it to the
 * sink, halves it into its own parent, frees the buffers, and continues upwards if that completed
 * the parent.
 *
 * add() descends from the top level to the tile's parts of level 1 (depth first), so that blocks
 * inside one tile are completed one after the other; pyramid_bound.c relies on that.
 *
 * Locks: one a level (pyramid_level.c), never two at a time. */
#include "pipeline/cog/pyramid.h"
#include "pipeline/cog/halve.h"
#include "pipeline/cog/pyramid_bound.h"
#include "pipeline/cog/pyramid_level.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

#define LEVELS_MAX 32

struct pb_pyramid {
    struct pb_pyramid_options options;
    struct pb_grid grid;
    size_t plane_px, half_px; /* size of a plane's half, and of a half over all planes */
    struct pb_pyramid_level level[LEVELS_MAX]; /* [0] only has its size */
};

/* Current block of a thread. */
struct block {
    uint32_t level, slot;
    int32_t col, row;
};

uint32_t pb_pyramid_levels(int32_t image_w, int32_t image_h, int32_t block_px)
{
    uint32_t level = 0;
    while (pb_pyramid_size(image_w, level) > block_px || pb_pyramid_size(image_h, level) > block_px)
        level++;
    return level;
}

int32_t pb_pyramid_size(int32_t size_px, uint32_t level)
{
    return (int32_t)(((int64_t)size_px + (INT64_C(1) << level) - 1) >> level);
}

static uint64_t half_bytes(const struct pb_pyramid_options *options)
{
    return (uint64_t)options->block_px * (uint64_t)options->block_px / 2 * options->n_bands *
           sizeof(float);
}

uint64_t pb_pyramid_bytes(const struct pb_pyramid_options *options)
{
    struct pb_pyramid_held held[LEVELS_MAX];
    if (options->levels == 0)
        return 0;
    if (options->levels >= LEVELS_MAX || pb_pyramid_bound(options, held) != 0)
        return UINT64_MAX;
    uint64_t bytes = sizeof(struct pb_pyramid);
    for (uint32_t k = 1; k <= options->levels; k++) {
        uint64_t cols = (uint64_t)pb_pyramid_blocks(options->grid->image_w, options->block_px, k);
        uint64_t rows = (uint64_t)pb_pyramid_blocks(options->grid->image_h, options->block_px, k);
        bytes += cols * rows * sizeof(int32_t);
        bytes += held[k].halves * (half_bytes(options) + sizeof(uint32_t));
        bytes += held[k].blocks * (4 * sizeof(uint32_t) + 1);
    }
    return bytes;
}

int pb_pyramid_create(const struct pb_pyramid_options *options, struct pb_err *err,
                      struct pb_pyramid **out_pyramid)
{
    struct pb_pyramid_held held[LEVELS_MAX];
    if (options->levels >= LEVELS_MAX || options->n_bands < 1 || options->block_px < 4 ||
        (options->block_px & (options->block_px - 1)) != 0 ||
        (options->join.planes != 0 && options->n_bands > PB_PYRAMID_JOINED_MAX) ||
        (options->grid->side_px % options->block_px != 0 && pb_grid_count(options->grid) != 1))
        return pb_fail(err, PB_E_SYSTEM,
                       "overviews: tiles of %d px and %u bands cannot be cut into blocks of %d",
                       options->grid->side_px, options->n_bands, options->block_px);
    struct pb_pyramid *pyramid = calloc(1, sizeof *pyramid);
    int rc = pyramid == NULL ? -ENOMEM : pb_pyramid_bound(options, held);
    if (rc != 0)
        goto out;
    pyramid->options = *options;
    pyramid->grid = *options->grid;
    pyramid->options.grid = &pyramid->grid;
    pyramid->plane_px = (size_t)options->block_px * (size_t)options->block_px / 2;
    pyramid->half_px = pyramid->plane_px * options->n_bands;
    for (uint32_t k = 0; rc == 0 && k <= options->levels; k++) {
        struct pb_pyramid_level *level = &pyramid->level[k];
        level->w = pb_pyramid_size(pyramid->grid.image_w, k);
        level->h = pb_pyramid_size(pyramid->grid.image_h, k);
        level->cols = pb_pyramid_blocks(pyramid->grid.image_w, options->block_px, k);
        level->rows = pb_pyramid_blocks(pyramid->grid.image_h, options->block_px, k);
        if (k > 0)
            rc = pb_pyramid_level_create(level, held[k], pyramid->half_px);
    }
out:
    if (rc != 0) {
        pb_pyramid_destroy(pyramid);
        return pb_fail(err, PB_E_MEMORY, "no memory for the overviews' half-made blocks");
    }
    *out_pyramid = pyramid;
    return 0;
}

void pb_pyramid_destroy(struct pb_pyramid *pyramid)
{
    if (pyramid == NULL)
        return;
    for (uint32_t k = 0; k < LEVELS_MAX; k++)
        pb_pyramid_level_destroy(&pyramid->level[k]);
    free(pyramid);
}

/* Count of the existing children of a block of `level`: 1, 2 or 4. */
static uint32_t children(const struct pb_pyramid_level *below, int32_t col, int32_t row)
{
    uint32_t x = 2 * col + 1 < below->cols ? 2 : 1, y = 2 * row + 1 < below->rows ? 2 : 1;
    return x * y;
}

/* Finds the block's slot, or takes a free one for it, with these halves. */
static int hold(struct pb_pyramid *pyramid, struct block *block, unsigned halves,
                struct pb_err *err)
{
    struct pb_pyramid_level *level = &pyramid->level[block->level];
    const uint32_t n = children(level - 1, block->col, block->row);
    if (!pb_pyramid_level_hold(level, block->col, block->row, n, halves, &block->slot))
        return pb_fail(err, PB_E_SYSTEM, "overviews: more tiles are in flight than the %u declared",
                       pyramid->options.tiles_in_flight);
    return 0;
}

static void let_go(struct pb_pyramid *pyramid, const struct block *block)
{
    pb_pyramid_level_let_go(&pyramid->level[block->level], block->slot);
}

static float *pixels_of(const struct pb_pyramid *pyramid, const struct block *block, int32_t half)
{
    return pb_pyramid_level_pixels(&pyramid->level[block->level], block->slot, half);
}

static int32_t valid_px(int32_t block_px, int32_t at, int32_t size)
{
    int64_t left = size - (int64_t)at * block_px;
    return left < block_px ? (int32_t)left : block_px;
}

static uint8_t child_bit(int32_t col, int32_t row)
{
    return (uint8_t)(1u << (2 * (row & 1) + (col & 1)));
}

/* Marks children as empty, before they are counted as done. */
static void add_empty(struct pb_pyramid *pyramid, const struct block *block, uint8_t bits)
{
    (void)atomic_fetch_or_explicit(&pyramid->level[block->level].empty[block->slot], bits,
                                   memory_order_relaxed);
}

/* Fills the pixels of the empty children. False: all children are empty. */
static bool fill_empty(struct pb_pyramid *pyramid, const struct block *block, int32_t w, int32_t h)
{
    const struct pb_pyramid_level *level = &pyramid->level[block->level], *below = level - 1;
    uint8_t empty = atomic_load_explicit(&level->empty[block->slot], memory_order_relaxed);
    const int32_t px = pyramid->options.block_px, half = px / 2;
    if ((uint32_t)__builtin_popcount(empty) == children(below, block->col, block->row))
        return false;
    for (int32_t child = 0; child < 4; child++) {
        const int32_t x0 = child % 2 * half, y0 = child / 2 * half;
        if (!(empty & child_bit(child % 2, child / 2)))
            continue;
        float *pixels = pixels_of(pyramid, block, child / 2);
        for (uint32_t b = 0; b < pyramid->options.n_bands; b++)
            for (int32_t y = 0; y < half && y0 + y < h; y++) {
                float *row = pixels + b * pyramid->plane_px + (size_t)y * (size_t)px;
                for (int32_t x = x0; x < x0 + half && x < w; x++)
                    row[x] = NAN;
            }
    }
    return true;
}

/* Counts n children as done. True for the one caller that completes the block; the writes of the
 * others are visible to it (release by each of them, acquire by the last). */
static bool completes(struct pb_pyramid *pyramid, const struct block *block, uint32_t n)
{
    _Atomic uint32_t *missing = &pyramid->level[block->level].missing[block->slot];
    return atomic_fetch_sub_explicit(missing, n, memory_order_acq_rel) == n;
}

static void halve(const struct pb_pyramid *pyramid, const float *from, size_t row_px, int32_t w,
                  int32_t h, float *to)
{
    size_t to_row_px = (size_t)pyramid->options.block_px;
    if (pyramid->options.nearest)
        pb_halve_nearest(from, row_px, w, h, to, to_row_px);
    else
        pb_halve_average(from, row_px, w, h, to, to_row_px);
}

/* Halves a complete block of w x h pixels into its quarter of the parent. */
static void halve_block(const struct pb_pyramid *pyramid, const struct block *block, int32_t w,
                        int32_t h, const struct block *parent)
{
    const int32_t px = pyramid->options.block_px, half = px / 2;
    float *to =
        pixels_of(pyramid, parent, block->row % 2) + (size_t)(block->col % 2) * (size_t)half;
    for (int32_t i = 0; i < 2 && i * half < h; i++) {
        const float *from = pixels_of(pyramid, block, i);
        const int32_t rows = h - i * half < half ? h - i * half : half;
        const size_t at = (size_t)i * (size_t)(half / 2) * (size_t)px;
        for (uint32_t b = 0; b < pyramid->options.n_bands; b++)
            halve(pyramid, from + b * pyramid->plane_px, (size_t)px, w, rows,
                  to + b * pyramid->plane_px + at);
    }
}

static int give_to_sink(struct pb_pyramid *pyramid, const struct block *block, int32_t w, int32_t h,
                        bool any, uint32_t worker, struct pb_err *err)
{
    const float *half[2] = {NULL, NULL};
    for (int32_t i = 0; i < 2 && any && i * (pyramid->options.block_px / 2) < h; i++)
        half[i] = pixels_of(pyramid, block, i);
    return pyramid->options.sink(pyramid->options.user, block->level, (uint32_t)block->col,
                                 (uint32_t)block->row, w, h, any ? half : NULL, worker, err);
}

/* The caller owns the complete block: passes it to the sink and to its parent, and continues while
 * parents become complete. */
static int pass_up(struct pb_pyramid *pyramid, struct block block, uint32_t worker,
                   struct pb_err *err)
{
    int32_t px = pyramid->options.block_px;
    for (;;) {
        const struct pb_pyramid_level *level = &pyramid->level[block.level];
        int32_t w = valid_px(px, block.col, level->w), h = valid_px(px, block.row, level->h);
        bool any = fill_empty(pyramid, &block, w, h);
        int rc = give_to_sink(pyramid, &block, w, h, any, worker, err);
        if (rc != 0)
            return rc;
        if (block.level == pyramid->options.levels) {
            let_go(pyramid, &block);
            return 0;
        }
        struct block parent = {block.level + 1, 0, block.col / 2, block.row / 2};
        rc = hold(pyramid, &parent, block.row % 2 == 0 ? PB_PYRAMID_UPPER : PB_PYRAMID_LOWER, err);
        if (rc != 0)
            return rc;
        if (any)
            halve_block(pyramid, &block, w, h, &parent);
        else
            add_empty(pyramid, &parent, child_bit(block.col, block.row));
        let_go(pyramid, &block);
        if (!completes(pyramid, &parent, 1))
            return 0;
        block = parent;
    }
}

struct tile_part {
    struct pb_pyramid *pyramid;
    const struct pb_rect *core;
    const float *const *planes; /* NULL: no pixel is valid */
    size_t row_px;
    uint32_t worker;
    struct pb_err *err;
};

/* Children of a block of level 1 that a part of a tile covers. */
static uint8_t covered(struct pb_rect part, int32_t px)
{
    uint8_t bits = 0;
    for (int32_t y = part.y / px; y <= (part.y + part.h - 1) / px; y++)
        for (int32_t x = part.x / px; x <= (part.x + part.w - 1) / px; x++)
            bits |= child_bit(x, y);
    return bits;
}

/* Halves the part of the tile in a half of a block of level 1, if there is one. Pixels of the
 * image are valid together by `join`; those of level 1 and above each by itself. */
static void halve_part(const struct tile_part *tile_part, const struct block *block, int32_t half,
                       struct pb_rect part)
{
    struct pb_pyramid *pyramid = tile_part->pyramid;
    const int64_t px = pyramid->options.block_px, first = (2 * (int64_t)block->row + half) * px;
    const int64_t y0 = part.y > first ? part.y : first;
    const int64_t end = part.y + (int64_t)part.h, y1 = end < first + px ? end : first + px;
    if (y0 >= y1)
        return;
    size_t from = (size_t)(y0 - tile_part->core->y) * tile_part->row_px +
                  (size_t)(part.x - tile_part->core->x);
    float *to = pixels_of(pyramid, block, half) + (y0 - first) / 2 * px +
                (part.x - 2 * (int64_t)block->col * px) / 2;
    const struct pb_pyramid_options *o = &pyramid->options;
    if (o->join.planes != 0 && !o->nearest) {
        const float *planes[PB_PYRAMID_JOINED_MAX];
        for (uint32_t b = 0; b < o->n_bands; b++)
            planes[b] = tile_part->planes[b] + from;
        pb_halve_average_joined(&o->join, planes, o->n_bands, tile_part->row_px, part.w,
                                (int32_t)(y1 - y0), to, pyramid->plane_px, (size_t)px);
        return;
    }
    for (uint32_t b = 0; b < o->n_bands; b++)
        halve(pyramid, tile_part->planes[b] + from, tile_part->row_px, part.w, (int32_t)(y1 - y0),
              to + b * pyramid->plane_px);
}

/* Adds the part of the tile in a block of level 1. */
static int add_first(const struct tile_part *tile_part, int32_t col, int32_t row,
                     struct pb_rect part)
{
    struct pb_pyramid *pyramid = tile_part->pyramid;
    int32_t px = pyramid->options.block_px;
    struct block block = {1, 0, col, row};
    const uint8_t bits = covered(part, px);
    const unsigned upper = (bits & 3) != 0 ? PB_PYRAMID_UPPER : 0,
                   lower = (bits & 12) != 0 ? PB_PYRAMID_LOWER : 0;
    int rc = hold(pyramid, &block, upper | lower, tile_part->err);
    if (rc != 0)
        return rc;
    if (tile_part->planes == NULL)
        add_empty(pyramid, &block, bits);
    for (int32_t half = 0; half < 2 && tile_part->planes != NULL; half++)
        halve_part(tile_part, &block, half, part);
    uint32_t n = (uint32_t)((part.w + px - 1) / px) * (uint32_t)((part.h + px - 1) / px);
    return completes(pyramid, &block, n)
               ? pass_up(pyramid, block, tile_part->worker, tile_part->err)
               : 0;
}

/* Descends into the parts of a block that the tile touches, down to level 1. */
static int visit(const struct tile_part *tile_part, uint32_t level, int32_t col, int32_t row)
{
    const struct pb_rect *core = tile_part->core;
    int64_t side = (int64_t)tile_part->pyramid->options.block_px << level;
    int64_t x0 = col * side, y0 = row * side, x1 = x0 + side, y1 = y0 + side;
    x0 = x0 > core->x ? x0 : core->x;
    y0 = y0 > core->y ? y0 : core->y;
    x1 = x1 < core->x + (int64_t)core->w ? x1 : core->x + (int64_t)core->w;
    y1 = y1 < core->y + (int64_t)core->h ? y1 : core->y + (int64_t)core->h;
    if (x0 >= x1 || y0 >= y1)
        return 0;
    if (level == 1)
        return add_first(
            tile_part, col, row,
            (struct pb_rect){(int32_t)x0, (int32_t)y0, (int32_t)(x1 - x0), (int32_t)(y1 - y0)});
    int rc = 0;
    for (int32_t child = 0; rc == 0 && child < 4; child++)
        rc = visit(tile_part, level - 1, 2 * col + child % 2, 2 * row + child / 2);
    return rc;
}

int pb_pyramid_add(struct pb_pyramid *pyramid, const struct pb_rect *core,
                   const float *const *planes, size_t row_px, uint32_t worker, struct pb_err *err)
{
    uint32_t top = pyramid->options.levels;
    if (top == 0)
        return 0;
    struct tile_part tile_part = {pyramid, core, planes, row_px, worker, err};
    int64_t side = (int64_t)pyramid->options.block_px << top;
    int rc = 0;
    for (int64_t row = core->y / side; rc == 0 && row * side < (int64_t)core->y + core->h; row++)
        for (int64_t col = core->x / side; rc == 0 && col * side < (int64_t)core->x + core->w;
             col++)
            rc = visit(&tile_part, top, (int32_t)col, (int32_t)row);
    return rc;
}
