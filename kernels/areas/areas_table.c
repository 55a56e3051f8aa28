/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The table of areas that touch a cell's border. Each cell has its own range of it, so cells need
 * no lock. What borders have in common is done by one thread between the rounds: the pairs of
 * pixels on both sides of a border are few. */
#include "kernels/areas/areas_inside.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

static int32_t cells_along(int32_t length, int32_t side)
{
    return (int32_t)(((int64_t)length + side - 1) / side);
}

static int32_t shorter(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

int32_t pb_areas_side(int32_t tile_side)
{
    return shorter(tile_side, PB_AREAS_SIDE_MAX);
}

static uint64_t border_of(int32_t image_w, int32_t image_h, int32_t side)
{
    return 2 * ((uint64_t)shorter(side, image_w) + (uint64_t)shorter(side, image_h));
}

uint64_t pb_areas_bytes(int32_t image_w, int32_t image_h, int32_t side)
{
    const uint64_t cells =
        (uint64_t)cells_along(image_w, side) * (uint64_t)cells_along(image_h, side);
    const uint64_t border = border_of(image_w, image_h, side);

    if (cells * border >= PB_AREAS_NONE)
        return UINT64_MAX;
    return cells * (border * (sizeof(struct pb_areas_entry) + sizeof(uint16_t)) + sizeof(uint32_t));
}

int pb_areas_create(const struct pb_sieve *sieve, int32_t image_w, int32_t image_h, int32_t side,
                    struct pb_areas **out_areas)
{
    if (pb_areas_bytes(image_w, image_h, side) == UINT64_MAX)
        return -E2BIG;
    struct pb_areas *const areas = calloc(1, sizeof *areas);
    if (!areas)
        return -ENOMEM;
    *areas = (struct pb_areas){.sieve = *sieve,
                               .image_w = image_w,
                               .image_h = image_h,
                               .side = side,
                               .cols = cells_along(image_w, side),
                               .rows = cells_along(image_h, side),
                               .border_px = (uint32_t)border_of(image_w, image_h, side)};
    const size_t cells = pb_areas_cells(areas);
    areas->entry = calloc(cells * areas->border_px, sizeof *areas->entry);
    areas->border = calloc(cells * areas->border_px, sizeof *areas->border);
    areas->n = calloc(cells, sizeof *areas->n);
    if (!areas->entry || !areas->border || !areas->n) {
        pb_areas_destroy(areas);
        return -ENOMEM;
    }
    *out_areas = areas;
    return 0;
}

void pb_areas_destroy(struct pb_areas *areas)
{
    if (!areas)
        return;
    free(areas->entry);
    free(areas->border);
    free(areas->n);
    free(areas);
}

uint32_t pb_areas_cells(const struct pb_areas *areas)
{
    return (uint32_t)areas->cols * (uint32_t)areas->rows;
}

struct pb_rect pb_areas_cell(const struct pb_areas *areas, uint32_t cell)
{
    struct pb_rect rect = {.x = (int32_t)(cell % (uint32_t)areas->cols) * areas->side,
                           .y = (int32_t)(cell / (uint32_t)areas->cols) * areas->side};

    rect.w = shorter(areas->side, areas->image_w - rect.x);
    rect.h = shorter(areas->side, areas->image_h - rect.y);
    return rect;
}

/* --- pixels on both sides of a border -------------------------------------------------------- */

/* The entry of the area of a pixel in the first or last row or column of its cell; PB_AREAS_NONE:
 * the pixel is invalid. */
static uint32_t entry_at(const struct pb_areas *areas, int32_t x, int32_t y)
{
    const uint32_t cell =
        (uint32_t)(y / areas->side) * (uint32_t)areas->cols + (uint32_t)(x / areas->side);
    const struct pb_rect rect = pb_areas_cell(areas, cell);
    const size_t base = (size_t)cell * areas->border_px;
    const int32_t in_x = x - rect.x, in_y = y - rect.y;
    int32_t at = 0;

    if (areas->n[cell] == 0)
        return PB_AREAS_NONE;
    if (in_y == 0)
        at = in_x;
    else if (in_y == rect.h - 1)
        at = rect.w + in_x;
    else if (in_x == 0)
        at = 2 * rect.w + in_y;
    else
        at = 2 * rect.w + rect.h + in_y;
    const uint16_t number = areas->border[base + (size_t)at];
    return number == PB_AREAS_BORDER_NONE ? PB_AREAS_NONE : (uint32_t)base + number;
}

typedef void pair_fn(struct pb_areas *areas, uint32_t one, uint32_t other, uint64_t first);

static void pair(struct pb_areas *areas, pair_fn *fn, int32_t x, int32_t y, enum pb_areas_way way)
{
    const int32_t dx = way == PB_AREAS_UP ? 0 : way == PB_AREAS_UP_RIGHT ? 1 : -1;
    const int32_t dy = way == PB_AREAS_LEFT ? 0 : -1;
    const int32_t other_x = x + dx, other_y = y + dy;

    if (x < 0 || other_x < 0 || other_x >= areas->image_w || other_y < 0)
        return;
    const uint32_t one = entry_at(areas, x, y), other = entry_at(areas, other_x, other_y);
    if (one != PB_AREAS_NONE && other != PB_AREAS_NONE)
        fn(areas, one, other, pb_areas_first(areas, x, y, way));
}

/* Pairs across the border above a row of cells. */
static void pairs_above(struct pb_areas *areas, int32_t y, pair_fn *fn)
{
    for (int32_t x = 0; x < areas->image_w; x++) {
        pair(areas, fn, x, y, PB_AREAS_UP);
        if (areas->sieve.connectivity == 8) {
            pair(areas, fn, x, y, PB_AREAS_UP_LEFT);
            pair(areas, fn, x, y, PB_AREAS_UP_RIGHT);
        }
    }
}

/* Pairs across the border to the left of a column of cells, but for those across one above. */
static void pairs_left(struct pb_areas *areas, int32_t x, pair_fn *fn)
{
    for (int32_t y = 0; y < areas->image_h; y++) {
        pair(areas, fn, x, y, PB_AREAS_LEFT);
        if (areas->sieve.connectivity == 8 && y % areas->side != 0) {
            pair(areas, fn, x, y, PB_AREAS_UP_LEFT);
            pair(areas, fn, x - 1, y, PB_AREAS_UP_RIGHT);
        }
    }
}

/* What ends the work between the rounds. */
struct end {
    pb_areas_stop *stop;
    const void *of;
};

static bool goes_on(const struct end *end)
{
    return end->stop == NULL || !end->stop(end->of);
}

/* Calls fn for every pair of valid neighbours in two cells, once. False: it was ended. */
static bool each_pair(struct pb_areas *areas, const struct end *end, pair_fn *fn)
{
    bool on = true;

    for (int32_t row = 1; row < areas->rows && (on = goes_on(end)); row++)
        pairs_above(areas, row * areas->side, fn);
    for (int32_t col = 1; col < areas->cols && on && (on = goes_on(end)); col++)
        pairs_left(areas, col * areas->side, fn);
    return on;
}

typedef void entry_fn(struct pb_areas *areas, uint32_t entry);

/* Calls fn for every entry, in ascending order. False: it was ended. */
static bool each_entry(struct pb_areas *areas, const struct end *end, entry_fn *fn)
{
    const uint32_t cells = pb_areas_cells(areas);
    bool on = true;

    for (uint32_t cell = 0; cell < cells && (on = goes_on(end)); cell++)
        for (uint32_t i = 0; i < areas->n[cell]; i++)
            fn(areas, cell * areas->border_px + i);
    return on;
}

/* --- sizes ----------------------------------------------------------------------------------- */

static uint32_t find_first(struct pb_areas *areas, uint32_t entry)
{
    struct pb_areas_entry *const all = areas->entry;

    while (all[entry].parent != entry) {
        all[entry].parent = all[all[entry].parent].parent;
        entry = all[entry].parent;
    }
    return entry;
}

static void join(struct pb_areas *areas, uint32_t one, uint32_t other, uint64_t first)
{
    (void)first;
    if (areas->entry[one].value != areas->entry[other].value)
        return;
    one = find_first(areas, one);
    other = find_first(areas, other);
    if (one < other)
        areas->entry[other].parent = one;
    else
        areas->entry[one].parent = other;
}

/* The first entry of an area comes before the others. */
static void add_size(struct pb_areas *areas, uint32_t entry)
{
    const uint32_t first = find_first(areas, entry);

    areas->entry[entry].parent = first;
    if (first != entry)
        areas->entry[first].size = pb_areas_sum(areas->entry[first].size, areas->entry[entry].size);
}

bool pb_areas_connect(struct pb_areas *areas, pb_areas_stop *stop, const void *of)
{
    const struct end end = {stop, of};

    return each_pair(areas, &end, join) && each_entry(areas, &end, add_size);
}

/* --- chains ---------------------------------------------------------------------------------- */

/* Another neighbour of an area, with what its chain is then. */
static void offer(struct pb_areas_entry *to, uint32_t size, uint64_t first,
                  const struct pb_areas_chain *chain)
{
    if (size < to->best_size || (size == to->best_size && first >= to->best_first))
        return;
    to->best_size = size;
    to->best_first = first;
    to->chain = *chain;
}

static void offer_entry(struct pb_areas *areas, uint32_t to, uint32_t neighbour, uint64_t first)
{
    const struct pb_areas_chain chain = {PB_AREAS_ENTRY, {.entry = neighbour}};

    offer(&areas->entry[to], areas->entry[neighbour].size, first, &chain);
}

static void meet(struct pb_areas *areas, uint32_t one, uint32_t other, uint64_t first)
{
    one = areas->entry[one].parent;
    other = areas->entry[other].parent;
    if (one == other)
        return;
    offer_entry(areas, one, other, first);
    offer_entry(areas, other, one, first);
}

/* What a cell has found for its part of an area. */
static void gather(struct pb_areas *areas, uint32_t entry)
{
    const struct pb_areas_entry *const part = &areas->entry[entry];

    if (part->parent != entry && part->best_size > 0)
        offer(&areas->entry[part->parent], part->best_size, part->best_first, &part->chain);
}

/* An area that is not small has its own value, and one without a neighbour keeps it. */
static void end_chain(struct pb_areas *areas, uint32_t entry)
{
    struct pb_areas_entry *const e = &areas->entry[entry];

    if (e->parent != entry)
        return;
    if (!pb_areas_is_small(areas, e->size))
        e->chain = (struct pb_areas_chain){PB_AREAS_VALUE, {.value = e->value}};
    else if (e->best_size == 0)
        e->chain = (struct pb_areas_chain){PB_AREAS_KEEPS, {.entry = 0}};
}

/* Follows the chain to its end, and puts that into all areas on the way. */
static void walk(struct pb_areas *areas, uint32_t entry)
{
    struct pb_areas_chain found = {PB_AREAS_KEEPS, {.entry = 0}};
    uint32_t at = entry;

    if (areas->entry[entry].parent != entry)
        return;
    while (areas->entry[at].chain.end == PB_AREAS_ENTRY) {
        areas->entry[at].chain.end = PB_AREAS_WALKED;
        at = areas->entry[at].chain.to.entry;
    }
    if (areas->entry[at].chain.end != PB_AREAS_WALKED)
        found = areas->entry[at].chain;
    for (at = entry; areas->entry[at].chain.end == PB_AREAS_WALKED;) {
        const uint32_t next = areas->entry[at].chain.to.entry;

        areas->entry[at].chain = found;
        at = next;
    }
}

bool pb_areas_resolve(struct pb_areas *areas, pb_areas_stop *stop, const void *of)
{
    const struct end end = {stop, of};

    return each_pair(areas, &end, meet) && each_entry(areas, &end, gather) &&
           each_entry(areas, &end, end_chain) && each_entry(areas, &end, walk);
}
