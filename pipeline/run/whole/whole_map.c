/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Tiles are visited by whole rows; therefore the number of a tile is its index in the order. If a
 * scene may be cut into bands, all blocks of a row of blocks belong to one band. Bands, groups and
 * loads are ranges of the list of pieces (whole_pieces.c). */
#include "pipeline/run/whole/whole_map.h"
#include "pipeline/plan/exchange.h"
#include "pipeline/plan/layout.h"
#include "pipeline/run/whole/whole_lots.h"
#include "pipeline/run/whole/whole_pieces.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NONE INT32_MAX

enum {
    GROUPS = 4, /* groups of a scene: one is decoded while the next one is sent */
    GROUP_LEAST = 64,
    GROUP_FIRST = 16 /* pieces of the first group */
};

static uint64_t aligned(uint64_t n)
{
    return (n + PB_WHOLE_ALIGN - 1) / PB_WHOLE_ALIGN * PB_WHOLE_ALIGN;
}

/* --- groups ---------------------------------------------------------------------------------- */

/* Count of pieces in the next group of a band of n pieces: at most twice as many as the device
 * decodes at once. The first groups of the scene are small and grow, because the device is idle
 * until the first one has arrived. */
static uint32_t group_size(const struct pb_whole_map *map, uint32_t n)
{
    uint32_t size = (n + GROUPS - 1) / GROUPS, most = 2 * map->plan->engine.whole.streams;
    size = most == 0 || size < most ? size : most;
    size = size > GROUP_LEAST ? size : GROUP_LEAST;
    if (map->n_groups < 8 && size > (uint32_t)GROUP_FIRST << map->n_groups)
        size = (uint32_t)GROUP_FIRST << map->n_groups;
    most = map->plan->layout.in_slots / 2; /* in the worst case each piece has a slot of its own */
    most = most > 0 ? most : 1;
    return map->plan->engine.whole.in_place && size > most ? most : size;
}

static void begin_lot(struct pb_whole_map *map)
{
    map->lot[map->n_lots++] =
        (struct pb_whole_lot){.first_group = map->n_groups, .end_group = map->n_groups};
}

/* Puts the group into the last lot, or, with managed planes, into another one if it does not fit.
 * Sets the offsets of its pieces, which are sorted, in the lot's memory. */
static void fill_group(struct pb_whole_map *map, struct pb_whole_group *group)
{
    const struct pb_whole_lot *last = &map->lot[map->n_lots - 1];
    if (map->plan->engine.whole.managed && last->end_group > last->first_group &&
        last->stored_bytes + last->decoded_bytes +
                pb_whole_group_bytes(map, group->first, group->end) >
            map->pages.lot_bytes)
        begin_lot(map);
    struct pb_whole_lot *lot = &map->lot[map->n_lots - 1];
    uint32_t i = group->first;
    group->lot = map->n_lots - 1;
    lot->end_group = map->n_groups + 1;
    for (; i < group->end && map->piece[i].bytes > 0; i++) {
        struct pb_whole_piece *piece = &map->piece[i];
        const struct pb_raw_blocks *blocks = &map->blocks[piece->source];
        piece->stored_at = lot->stored_bytes;
        lot->stored_bytes += aligned(piece->bytes);
        if (pb_whole_is_compressed(blocks, piece)) {
            piece->decoded_bytes = pb_whole_layout(blocks, piece)->block_bytes;
            piece->decoded_at = lot->decoded_bytes;
            lot->decoded_bytes += aligned(piece->decoded_bytes);
        }
    }
    group->stored_end = i;
}

/* End of the pieces from `first` on that have the same turn. */
static uint32_t end_of_turn(const struct pb_whole_map *map, uint32_t first, uint32_t end)
{
    uint32_t i = first;
    while (i < end && map->piece[i].turn == map->piece[first].turn)
        i++;
    return i;
}

/* Makes groups of the pieces first .. end of a band. */
static void make_groups(struct pb_whole_map *map, struct pb_whole_counted *counted, uint32_t band,
                        uint32_t first, uint32_t end)
{
    begin_lot(map);
    for (uint32_t i = first, last, turn = first; i < end; i = last) {
        if (i == turn) /* a group has pieces of one turn */
            turn = end_of_turn(map, i, end);
        const uint32_t size = group_size(map, end - first);
        last = pb_whole_group_end(map, counted, i, turn - i < size ? turn : i + size);
        struct pb_whole_group *group = &map->group[map->n_groups];
        *group = (struct pb_whole_group){.first = i, .end = last, .band = band};
        qsort(map->piece + i, last - i, sizeof *map->piece, pb_whole_in_group);
        for (uint32_t p = i; p < last; p++) {
            map->piece[p].group = map->n_groups;
            map->need[(size_t)map->piece[p].first * map->n_parts + map->piece[p].part] =
                map->n_groups + 1;
        }
        fill_group(map, group);
        map->n_groups++;
    }
}

/* Makes each tile need what the tiles before it need, because they are computed first. */
static void add_up_needs(struct pb_whole_map *map)
{
    const size_t n = (size_t)map->n_tiles * map->n_parts;
    for (size_t i = map->n_parts; i < n; i++)
        if (map->need[i] < map->need[i - map->n_parts])
            map->need[i] = map->need[i - map->n_parts];
}

uint32_t pb_whole_map_need(const struct pb_whole_map *map, uint32_t tile, uint32_t part)
{
    return map->need[(size_t)tile * map->n_parts + part];
}

/* --- bands ----------------------------------------------------------------------------------- */

static int32_t later(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

/* Finds the rows that are decoded by the end of the band, with its pieces first .. end. A mask
 * without pieces of its own is decoded with the pixels. */
static void find_end_rows(const struct pb_whole_map *map, struct pb_whole_band *band,
                          uint32_t first, uint32_t end)
{
    bool has_mask[PB_FILES_MAX] = {false};
    for (uint32_t i = 0; i < map->n_pieces; i++)
        if (map->piece[i].is_mask)
            has_mask[map->piece[i].source] = true;
    for (size_t s = 0; s < map->plan->work.n_sources; s++) {
        band->end_row[s] = band > map->band ? band[-1].end_row[s] : 0;
        band->mask_end_row[s] = band > map->band ? band[-1].mask_end_row[s] : 0;
    }
    for (uint32_t i = first; i < end; i++) {
        const struct pb_whole_piece *piece = &map->piece[i];
        int32_t bottom = piece->rect.y + piece->rect.h;
        int32_t *row = &band->end_row[piece->source], *mask = &band->mask_end_row[piece->source];
        if (!piece->is_mask)
            *row = later(*row, bottom);
        if (piece->is_mask || !has_mask[piece->source])
            *mask = later(*mask, bottom);
    }
}

/* Finds the first row of each window that the band's tiles read (NONE: they read nothing), and the
 * end, h, of the rows that they or bands before read or decode. */
static void find_rows(struct pb_whole_map *map, struct pb_whole_band *band, uint32_t first,
                      uint32_t end)
{
    const struct pb_plan *plan = map->plan;
    for (uint32_t w = 0; w < PB_SOURCES_MAX; w++) {
        band->y[w] = NONE;
        band->h[w] = band > map->band ? band[-1].h[w] : 0;
    }
    for (uint32_t t = band->first; t < band->end; t++) {
        struct pb_tile tile = pb_plan_tile(plan, t, t);
        for (uint32_t k = 0; k < 2 * PB_SOURCES_MAX; k++) {
            const uint32_t w = k % PB_SOURCES_MAX;
            if (k == PB_SOURCES_MAX && plan->layout.gate.chain == NULL)
                break;
            if (k == PB_SOURCES_MAX)
                tile = pb_plan_gate_tile(plan, &tile);
            const struct pb_rect *read = &tile.read[w];
            if (read->w <= 0 || read->h <= 0)
                continue;
            band->y[w] = read->y < band->y[w] ? read->y : band->y[w];
            band->h[w] = later(band->h[w], read->y + read->h);
        }
    }
    for (uint32_t i = first; i < end; i++) {
        const struct pb_rect *rect = &map->piece[i].rect;
        const uint32_t w = plan->work.source[map->piece[i].source].window;
        band->h[w] = later(band->h[w], rect->y + rect->h);
    }
}

/* Sets the rows that have memory, of bands whose rows are found: a band has all rows that later
 * bands read and bands before have decoded, because the next band copies its shared rows from this
 * one only. */
static void settle_rows(struct pb_whole_map *map)
{
    for (uint32_t b = map->n_bands; b-- > 0;) {
        struct pb_whole_band *band = &map->band[b];
        for (uint32_t w = 0; w < PB_SOURCES_MAX; w++) {
            const int32_t below = b + 1 < map->n_bands && band[1].h[w] > 0 ? band[1].y[w] : NONE;
            band->y[w] = band->y[w] < below ? band->y[w] : below;
            band->h[w] = band->y[w] < band->h[w] ? band->h[w] - band->y[w] : 0;
            band->y[w] = band->y[w] == NONE ? 0 : band->y[w];
        }
    }
}

static void place_windows(struct pb_whole_map *map)
{
    const struct pb_slot_format *format = &map->plan->layout.format;
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
}

static void size_lots(struct pb_whole_map *map)
{
    for (uint32_t i = 0; i < map->n_lots; i++) {
        struct pb_whole_lot *lot = &map->lot[i];
        if (map->plan->engine.whole.managed) {
            lot->decoded_from = lot->stored_bytes;
            lot->stored_bytes += lot->decoded_bytes;
            lot->decoded_bytes = 0;
        }
        map->stored_bytes =
            lot->stored_bytes > map->stored_bytes ? lot->stored_bytes : map->stored_bytes;
        map->decoded_bytes =
            lot->decoded_bytes > map->decoded_bytes ? lot->decoded_bytes : map->decoded_bytes;
    }
    if (map->plan->engine.whole.in_place) /* stored bytes are used in the slots */
        map->stored_bytes = 0;
}

static void forget_bands(struct pb_whole_map *map)
{
    free(map->group);
    free(map->band);
    free(map->lot);
    map->group = NULL;
    map->band = NULL;
    map->lot = NULL;
    map->n_groups = map->n_bands = map->n_lots = 0;
    map->pixel_bytes = map->stored_bytes = map->decoded_bytes = 0;
}

/* End of the band's pieces, which begin with `first`. */
static uint32_t end_of_band(const struct pb_whole_map *map, uint32_t first,
                            const struct pb_whole_band *band)
{
    while (first < map->n_pieces && map->piece[first].first < band->end)
        first++;
    return band->end == map->n_tiles ? map->n_pieces : first;
}

static int make_all_groups(struct pb_whole_map *map, struct pb_err *err)
{
    struct pb_whole_counted counted;
    uint32_t piece = 0;
    int rc = pb_whole_counted_init(&counted, map, err);
    for (uint32_t b = 0; b < map->n_bands && rc == 0; b++) {
        const uint32_t first = piece;
        piece = end_of_band(map, first, &map->band[b]);
        make_groups(map, &counted, b, first, piece);
    }
    pb_whole_counted_fini(&counted);
    return rc;
}

/* Makes bands of `rows` rows of tiles. */
static int make_bands(struct pb_whole_map *map, uint32_t rows, struct pb_err *err)
{
    const struct pb_grid *grid = &map->plan->layout.grid;
    uint32_t tiles = rows * (uint32_t)grid->cols, piece = 0;
    forget_bands(map);
    map->n_bands = ((uint32_t)grid->rows + rows - 1) / rows;
    map->band = calloc(map->n_bands, sizeof *map->band);
    map->group = calloc(map->n_pieces + 1, sizeof *map->group);
    map->lot = calloc((size_t)map->n_bands + map->n_pieces, sizeof *map->lot);
    if (map->band == NULL || map->group == NULL || map->lot == NULL)
        return pb_whole_no_memory(err);
    qsort(map->piece, map->n_pieces, sizeof *map->piece, pb_whole_by_first);
    memset(map->need, 0, (size_t)map->n_tiles * map->n_parts * sizeof *map->need);
    for (uint32_t b = 0; b < map->n_bands; b++) {
        struct pb_whole_band *band = &map->band[b];
        const uint32_t first = piece;
        band->first = b * tiles;
        band->end = map->n_tiles - band->first < tiles ? map->n_tiles : band->first + tiles;
        piece = end_of_band(map, first, band);
        find_rows(map, band, first, piece);
        find_end_rows(map, band, first, piece);
    }
    settle_rows(map);
    place_windows(map);
    int rc = make_all_groups(map, err);
    add_up_needs(map);
    size_lots(map);
    return rc;
}

uint32_t pb_whole_map_rooms(const struct pb_whole_map *map)
{
    return map->n_lots > 1 ? 2 : 1;
}

uint64_t pb_whole_map_bytes(const struct pb_whole_map *map)
{
    const uint64_t blocks = pb_whole_map_rooms(map) * (map->stored_bytes + map->decoded_bytes);
    const struct pb_plan_pages *pages = &map->pages;
    if (map->plan->engine.whole.managed) {
        const uint64_t most = ((uint64_t)pages->decoding + pages->computing) * pages->chunk_bytes;
        return blocks + (most < map->pixel_bytes ? most : map->pixel_bytes);
    }
    return blocks + pb_whole_map_rooms(map) * map->pixel_bytes;
}

static int find_bands(struct pb_whole_map *map, uint64_t budget, struct pb_err *err)
{
    uint32_t rows = (uint32_t)map->plan->layout.grid.rows;
    bool may_cut = !map->plan->engine.whole.one_band && !map->plan->engine.whole.managed;
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
                      const bool *leave_out, struct pb_err *err)
{
    *map = (struct pb_whole_map){.plan = plan,
                                 .blocks = blocks,
                                 .n_tiles = pb_grid_count(&plan->layout.grid),
                                 .n_parts = pb_plan_tile_parts(plan)};
    if (plan->engine.whole.managed)
        map->pages = pb_plan_pages(plan);
    for (uint32_t i = 0; i < plan->work.n_sources; i++) {
        struct pb_whole_window *window = &map->window[plan->work.source[i].window];
        if (plan->work.source[i].n_bands == 0)
            continue;
        map->is_planar[i] = blocks[i].layout->planar;
        window->image_w = blocks[i].layout->width;
        window->image_h = blocks[i].layout->height;
    }
    map->need = calloc((size_t)map->n_tiles * map->n_parts, sizeof *map->need);
    if (map->need == NULL)
        return pb_whole_no_memory(err);
    int rc = pb_whole_pieces_make(map, slot_bytes, leave_out, err);
    rc = rc ? rc : find_bands(map, budget, err);
    return rc;
}

void pb_whole_map_fini(struct pb_whole_map *map)
{
    forget_bands(map);
    free(map->piece);
    free(map->need);
    memset(map, 0, sizeof *map);
}
