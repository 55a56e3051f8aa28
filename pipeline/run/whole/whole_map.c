/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Tiles are visited by whole rows, so the number of a tile is its place in the order, and all
 * blocks of a row of blocks are needed first by tiles of one row. Pieces are sorted by the tile
 * that needs them first; bands, groups and loads are runs of that list. */
#include "pipeline/run/whole/whole_map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NEVER UINT32_MAX

enum {
    PART_BYTES = 1 << 20, /* of blocks that are not compressed: one read */
    GROUPS = 4,           /* of a scene: one is decoded while the next one is sent */
    GROUP_LEAST = 64,
    PIECES_MOST = 1 << 24
};

/* A source as rows and columns of pieces. */
struct cells {
    const struct pb_block_layout *layout;
    uint32_t parts, part_rows; /* of a block */
    uint32_t *first;           /* tile that needs the piece first; NEVER: none does */
    uint64_t n;
};

static uint64_t aligned(uint64_t n)
{
    return (n + PB_WHOLE_ALIGN - 1) / PB_WHOLE_ALIGN * PB_WHOLE_ALIGN;
}

static bool is_plain(const struct pb_raw_blocks *blocks)
{
    return blocks->layout->compression == 1;
}

bool pb_whole_is_compressed(const struct pb_raw_blocks *blocks, const struct pb_whole_piece *piece)
{
    return !piece->by_host && !is_plain(blocks);
}

static int no_memory(struct pb_err *err)
{
    return pb_fail(err, PB_E_MEMORY, "out of memory for the order of a scene's blocks");
}

/* --- pieces ---------------------------------------------------------------------------------- */

static int cells_init(struct cells *cells, const struct pb_raw_blocks *blocks, uint64_t slot_bytes)
{
    const struct pb_block_layout *l = blocks->layout;
    uint64_t most = slot_bytes < PART_BYTES ? slot_bytes : PART_BYTES;
    cells->layout = l;
    cells->part_rows = l->block_h;
    if (is_plain(blocks) && !blocks->how.by_host && l->block_bytes > most)
        cells->part_rows = (uint32_t)(most / l->row_bytes > 0 ? most / l->row_bytes : 1);
    cells->parts = (l->block_h + cells->part_rows - 1) / cells->part_rows;
    cells->n = (uint64_t)l->across * l->down * cells->parts;
    if (cells->n > PIECES_MOST)
        return -ENOMEM;
    cells->first = malloc(cells->n * sizeof *cells->first);
    for (uint64_t i = 0; cells->first != NULL && i < cells->n; i++)
        cells->first[i] = NEVER;
    return cells->first != NULL ? 0 : -ENOMEM;
}

/* The row of pieces that a row of pixels is in. */
static uint32_t row_of(const struct cells *cells, int32_t y)
{
    uint32_t h = cells->layout->block_h;
    return (uint32_t)y / h * cells->parts + (uint32_t)y % h / cells->part_rows;
}

static void note_tile(struct cells *cells, const struct pb_rect *read, uint32_t tile)
{
    uint32_t w = cells->layout->block_w;
    if (read->w <= 0 || read->h <= 0)
        return;
    for (uint32_t row = row_of(cells, read->y); row <= row_of(cells, read->y + read->h - 1); row++)
        for (uint32_t col = (uint32_t)read->x / w; col <= (uint32_t)(read->x + read->w - 1) / w;
             col++) {
            uint32_t *first = &cells->first[(uint64_t)row * cells->layout->across + col];
            *first = *first == NEVER ? tile : *first;
        }
}

/* Pixels of the piece; h 0: it lies below the image, as the last parts of a last block may. */
static struct pb_rect rect_of(const struct cells *cells, uint32_t col, uint32_t row)
{
    const struct pb_block_layout *l = cells->layout;
    int64_t x = (int64_t)col * l->block_w, end_x = x + l->block_w;
    int64_t top = (int64_t)(row / cells->parts) * l->block_h, end_y = top + l->block_h;
    int64_t y = top + (int64_t)(row % cells->parts) * cells->part_rows;
    end_y = y + cells->part_rows < end_y ? y + cells->part_rows : end_y;
    end_x = end_x < l->width ? end_x : l->width;
    end_y = end_y < l->height ? end_y : l->height;
    return (struct pb_rect){(int32_t)x, (int32_t)y, (int32_t)(end_x - x), (int32_t)(end_y - y)};
}

/* Planes of blocks that the plan wants of a source; the mask comes behind them. */
static uint32_t planes_of(const struct pb_plan_source *source, const struct pb_raw_blocks *blocks)
{
    return blocks->layout->planar ? (uint32_t)source->n_bands : 1;
}

static bool has_mask_pieces(const struct pb_raw_blocks *blocks)
{
    return blocks->how.mask == PB_RAW_MASK_HOST ||
           (blocks->how.mask == PB_RAW_MASK_ALPHA && blocks->layout->planar);
}

/* Of plane p of those that are wanted of a cell that the host decodes. */
static struct pb_whole_piece host_piece(const struct pb_whole_map *map, uint32_t source,
                                        const struct cells *cells, uint64_t cell, uint32_t p)
{
    const struct pb_plan_source *from = &map->plan->source[source];
    const struct pb_raw_blocks *blocks = &map->blocks[source];
    const struct pb_block_layout *l = cells->layout;
    uint32_t planes = planes_of(from, blocks);
    struct pb_whole_piece piece = {.first = cells->first[cell], .by_host = true};
    piece.is_mask = p == planes;
    piece.is_apart = piece.is_mask && !(blocks->how.by_host && l->bits == 8);
    piece.plane = piece.is_mask || !l->planar ? 0 : (uint32_t)from->bands[p] - 1;
    piece.block = cell * (planes + 1) + p;
    piece.rect = rect_of(cells, (uint32_t)(cell % l->across), (uint32_t)(cell / l->across));
    piece.bytes = (uint64_t)piece.rect.h * l->block_w * (piece.is_mask ? 1 : l->bits / 8);
    return piece;
}

static struct pb_whole_piece stored_piece(const struct pb_raw_blocks *blocks,
                                          const struct cells *cells, uint64_t cell, uint32_t plane)
{
    const struct pb_block_layout *l = cells->layout;
    uint32_t col = (uint32_t)(cell % l->across), row = (uint32_t)(cell / l->across);
    struct pb_whole_piece piece = {.plane = plane, .first = cells->first[cell]};
    piece.block = ((uint64_t)plane * l->down + row / cells->parts) * l->across + col;
    piece.rect = rect_of(cells, col, row);
    piece.bytes = blocks->place[piece.block].bytes;
    piece.least = pb_block_layout_need(l, row / cells->parts);
    if (piece.bytes > 0 && is_plain(blocks)) {
        piece.from = (uint64_t)(row % cells->parts) * cells->part_rows * l->row_bytes;
        piece.bytes = (uint64_t)piece.rect.h * l->row_bytes;
    }
    return piece;
}

static struct pb_whole_piece piece_of(const struct pb_whole_map *map, uint32_t source,
                                      const struct cells *cells, uint64_t cell, uint32_t p)
{
    const struct pb_plan_source *from = &map->plan->source[source];
    const struct pb_raw_blocks *blocks = &map->blocks[source];
    bool is_mask = p == planes_of(from, blocks);
    if (blocks->how.by_host || (is_mask && blocks->how.mask == PB_RAW_MASK_HOST))
        return host_piece(map, source, cells, cell, p);
    int32_t band = is_mask ? blocks->alpha_band : blocks->layout->planar ? from->bands[p] : 1;
    struct pb_whole_piece piece = stored_piece(blocks, cells, cell, (uint32_t)band - 1);
    piece.is_mask = piece.is_apart = is_mask;
    return piece;
}

/* Those of a source; at: NULL counts them. */
static uint64_t list_pieces(const struct pb_whole_map *map, uint32_t source,
                            const struct cells *cells, struct pb_whole_piece *at)
{
    const struct pb_raw_blocks *blocks = &map->blocks[source];
    uint64_t n = 0;
    for (uint64_t i = 0; i < cells->n; i++) {
        if (cells->first[i] == NEVER)
            continue;
        uint32_t pieces = planes_of(&map->plan->source[source], blocks) + has_mask_pieces(blocks);
        for (uint32_t p = 0; p < pieces; p++, n++)
            if (at != NULL) {
                at[n] = piece_of(map, source, cells, i, p);
                at[n].source = source;
            }
    }
    return n;
}

static int compare(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

/* Those that are taken apart alike follow each other: masks of sources that the device decodes
 * behind their pixels. (Of others, a cell's pixels and mask come by one read where they are of one
 * size.) */
static int by_place(const void *a, const void *b)
{
    const struct pb_whole_piece *x = a, *y = b;
    int c = compare(x->source, y->source);
    c = c != 0 ? c : compare(x->is_apart, y->is_apart);
    c = c != 0 ? c : compare(x->block, y->block);
    return c != 0 ? c : compare(x->from, y->from);
}

static int by_first(const void *a, const void *b)
{
    const struct pb_whole_piece *x = a, *y = b;
    return x->first != y->first ? compare(x->first, y->first) : by_place(a, b);
}

static int in_group(const void *a, const void *b)
{
    const struct pb_whole_piece *x = a, *y = b;
    return (x->bytes == 0) != (y->bytes == 0) ? (x->bytes == 0) - (y->bytes == 0) : by_place(a, b);
}

static int make_pieces(struct pb_whole_map *map, struct cells *cells, struct pb_err *err)
{
    const struct pb_plan *plan = map->plan;
    uint64_t n = 0;
    for (uint32_t t = 0; t < map->n_tiles; t++) {
        struct pb_tile tile = pb_plan_tile(plan, t, t);
        for (uint32_t i = 0; i < plan->n_sources; i++)
            if (cells[i].n > 0)
                note_tile(&cells[i], &tile.read[plan->source[i].window], t);
    }
    for (uint32_t i = 0; i < plan->n_sources; i++)
        n += list_pieces(map, i, &cells[i], NULL);
    map->piece = n < NEVER ? calloc(n + 1, sizeof *map->piece) : NULL;
    if (map->piece == NULL)
        return no_memory(err);
    for (uint32_t i = 0; i < plan->n_sources; i++)
        map->n_pieces += (uint32_t)list_pieces(map, i, &cells[i], map->piece + map->n_pieces);
    qsort(map->piece, map->n_pieces, sizeof *map->piece, by_first);
    return 0;
}

/* --- groups ---------------------------------------------------------------------------------- */

/* How many pieces of n make a group: at most twice as many as the device decodes at once. */
static uint32_t group_size(const struct pb_whole_map *map, uint32_t n)
{
    uint32_t size = (n + GROUPS - 1) / GROUPS, most = 2 * map->plan->whole.streams;
    size = most == 0 || size < most ? size : most;
    size = size > GROUP_LEAST ? size : GROUP_LEAST;
    most = map->plan->in_slots / 2; /* a piece has a slot of its own, at worst */
    return map->plan->whole.in_place && size > most ? most : size;
}

/* Places of the group's pieces in their band's rooms; sorted before. */
static void fill_group(struct pb_whole_map *map, struct pb_whole_group *group)
{
    struct pb_whole_band *band = &map->band[group->band];
    uint32_t i = group->first;
    for (; i < group->end && map->piece[i].bytes > 0; i++) {
        struct pb_whole_piece *piece = &map->piece[i];
        const struct pb_raw_blocks *blocks = &map->blocks[piece->source];
        piece->stored_at = band->stored_bytes;
        band->stored_bytes += aligned(piece->bytes);
        if (pb_whole_is_compressed(blocks, piece)) {
            piece->decoded_bytes = blocks->layout->block_bytes;
            piece->decoded_at = band->decoded_bytes;
            band->decoded_bytes += aligned(piece->decoded_bytes);
        }
    }
    group->stored_end = i;
}

/* The pieces first .. end of a band. */
static void make_groups(struct pb_whole_map *map, uint32_t band, uint32_t first, uint32_t end)
{
    uint32_t size = group_size(map, end - first);
    map->band[band].first_group = map->n_groups;
    for (uint32_t i = first; i < end; i += size) {
        uint32_t last = end - i < size ? end : i + size;
        struct pb_whole_group *group = &map->group[map->n_groups];
        *group = (struct pb_whole_group){.first = i, .end = last, .band = band};
        for (uint32_t t = map->piece[i].first; t < map->n_tiles; t++)
            map->need[t] = map->n_groups + 1;
        qsort(map->piece + i, last - i, sizeof *map->piece, in_group);
        for (uint32_t p = i; p < last; p++)
            map->piece[p].group = map->n_groups;
        map->n_groups++;
        fill_group(map, group);
    }
    map->band[band].end_group = map->n_groups;
}

/* --- bands ----------------------------------------------------------------------------------- */

/* Rows of the windows that the band's tiles read, those of the pieces that come with it, and those
 * that came with bands before: the next band takes what it shares from this one alone. */
static void find_rows(struct pb_whole_map *map, struct pb_whole_band *band, uint32_t first,
                      uint32_t end)
{
    const struct pb_plan *plan = map->plan;
    int32_t bottom[PB_SOURCES_MAX] = {0};
    bool any[PB_SOURCES_MAX] = {false};
    for (uint32_t w = 0; w < PB_SOURCES_MAX && band > map->band; w++)
        bottom[w] = band[-1].y[w] + band[-1].h[w];
    for (uint32_t t = band->first; t < band->end; t++) {
        struct pb_tile tile = pb_plan_tile(plan, t, t);
        for (uint32_t w = 0; w < PB_SOURCES_MAX; w++) {
            const struct pb_rect *read = &tile.read[w];
            if (read->w <= 0 || read->h <= 0)
                continue;
            band->y[w] = !any[w] || read->y < band->y[w] ? read->y : band->y[w];
            bottom[w] = read->y + read->h > bottom[w] ? read->y + read->h : bottom[w];
            any[w] = true;
        }
    }
    for (uint32_t i = first; i < end; i++) {
        const struct pb_rect *rect = &map->piece[i].rect;
        uint32_t w = plan->source[map->piece[i].source].window;
        bottom[w] = rect->y + rect->h > bottom[w] ? rect->y + rect->h : bottom[w];
    }
    for (uint32_t w = 0; w < PB_SOURCES_MAX; w++)
        band->h[w] = any[w] ? bottom[w] - band->y[w] : 0;
}

static void place_windows(struct pb_whole_map *map)
{
    const struct pb_slot_format *format = &map->plan->format;
    for (uint32_t w = 0; w < PB_SOURCES_MAX; w++) {
        struct pb_whole_window *window = &map->window[w];
        int32_t most = 0;
        for (uint32_t b = 0; b < map->n_bands; b++)
            most = map->band[b].h[w] > most ? map->band[b].h[w] : most;
        window->at = map->pixel_bytes;
        window->row_bytes = aligned((uint64_t)window->image_w * format->source[w].sample_bytes);
        window->plane_bytes = window->row_bytes * (uint64_t)most;
        map->pixel_bytes += window->plane_bytes * format->source[w].n_planes;
        window->mask_at = map->pixel_bytes;
        window->mask_row_bytes =
            format->source[w].has_mask ? aligned((uint64_t)window->image_w) : 0;
        map->pixel_bytes += window->mask_row_bytes * (uint64_t)most;
    }
    for (uint32_t b = 0; b < map->n_bands; b++) {
        const struct pb_whole_band *band = &map->band[b];
        map->stored_bytes =
            band->stored_bytes > map->stored_bytes ? band->stored_bytes : map->stored_bytes;
        map->decoded_bytes =
            band->decoded_bytes > map->decoded_bytes ? band->decoded_bytes : map->decoded_bytes;
    }
    if (map->plan->whole.in_place) /* they are in the slots */
        map->stored_bytes = 0;
}

static void forget_bands(struct pb_whole_map *map)
{
    free(map->group);
    free(map->band);
    map->group = NULL;
    map->band = NULL;
    map->n_groups = map->n_bands = 0;
    map->pixel_bytes = map->stored_bytes = map->decoded_bytes = 0;
}

/* Bands of `rows` rows of tiles. */
static int make_bands(struct pb_whole_map *map, uint32_t rows, struct pb_err *err)
{
    const struct pb_grid *grid = &map->plan->grid;
    uint32_t tiles = rows * (uint32_t)grid->cols, piece = 0;
    forget_bands(map);
    map->n_bands = ((uint32_t)grid->rows + rows - 1) / rows;
    map->band = calloc(map->n_bands, sizeof *map->band);
    map->group = calloc(map->n_pieces + 1, sizeof *map->group);
    if (map->band == NULL || map->group == NULL)
        return no_memory(err);
    qsort(map->piece, map->n_pieces, sizeof *map->piece, by_first);
    memset(map->need, 0, map->n_tiles * sizeof *map->need);
    for (uint32_t b = 0; b < map->n_bands; b++) {
        struct pb_whole_band *band = &map->band[b];
        uint32_t first = piece;
        band->first = b * tiles;
        band->end = map->n_tiles - band->first < tiles ? map->n_tiles : band->first + tiles;
        while (piece < map->n_pieces && map->piece[piece].first < band->end)
            piece++;
        find_rows(map, band, first, piece);
        make_groups(map, b, first, piece);
    }
    place_windows(map);
    return 0;
}

uint32_t pb_whole_map_rooms(const struct pb_whole_map *map)
{
    return map->n_bands > 1 ? 2 : 1;
}

uint64_t pb_whole_map_bytes(const struct pb_whole_map *map)
{
    return pb_whole_map_rooms(map) * (map->pixel_bytes + map->stored_bytes + map->decoded_bytes);
}

static int find_bands(struct pb_whole_map *map, uint64_t budget, struct pb_err *err)
{
    uint32_t rows = (uint32_t)map->plan->grid.rows;
    bool may_cut = pb_chain_keeps_grid(map->plan->chain);
    for (;; rows = (rows + 1) / 2) {
        int rc = make_bands(map, rows, err);
        if (rc < 0 || pb_whole_map_bytes(map) <= budget)
            return rc;
        if (rows == 1 || !may_cut)
            return pb_fail(err, PB_E_PLAN_MEMORY,
                           "the scene's blocks take %llu MiB on the GPU, and they may take %llu: "
                           "raise compute.device_memory, or set compute.codecs to host",
                           (unsigned long long)(pb_whole_map_bytes(map) >> 20),
                           (unsigned long long)(budget >> 20));
    }
}

int pb_whole_map_init(struct pb_whole_map *map, const struct pb_plan *plan,
                      const struct pb_raw_blocks *blocks, uint64_t slot_bytes, uint64_t budget,
                      struct pb_err *err)
{
    struct cells cells[PB_FILES_MAX] = {{.n = 0}};
    *map = (struct pb_whole_map){
        .plan = plan, .blocks = blocks, .n_tiles = pb_grid_count(&plan->grid)};
    int rc = 0;
    for (uint32_t i = 0; i < plan->n_sources && rc == 0; i++) {
        struct pb_whole_window *window = &map->window[plan->source[i].window];
        if (plan->source[i].n_bands == 0)
            continue;
        window->image_w = blocks[i].layout->width;
        window->image_h = blocks[i].layout->height;
        rc = cells_init(&cells[i], &blocks[i], slot_bytes);
    }
    map->need = calloc(map->n_tiles, sizeof *map->need);
    if (rc < 0 || map->need == NULL)
        rc = no_memory(err);
    rc = rc ? rc : make_pieces(map, cells, err);
    rc = rc ? rc : find_bands(map, budget, err);
    for (uint32_t i = 0; i < plan->n_sources; i++)
        free(cells[i].first);
    return rc;
}

void pb_whole_map_fini(struct pb_whole_map *map)
{
    forget_bands(map);
    free(map->piece);
    free(map->need);
    memset(map, 0, sizeof *map);
}
