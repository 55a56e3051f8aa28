/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The areas of one cell, found anew in every round, which costs less than keeping for every pixel
 * of the image which area it belongs to. */
#include "kernels/areas/areas_runs.h"

#include <stdbool.h>
#include <string.h>

struct cell {
    const struct pb_areas *areas;
    struct pb_rect rect;
    uint32_t base; /* of the cell's entries */
    struct pb_runs runs;
    /* By area. */
    uint32_t *entry, *best;
    union found {
        uint64_t rank; /* of the best neighbour */
        struct pb_areas_chain chain;
    } * found;
};

/* An end of pb_areas_chain in a cell: that of the best neighbour. */
enum { OPEN = PB_AREAS_WALKED + 1 };

enum { N_ARRAYS = 6 }; /* of a uint32_t or a float for each pixel, and one more */

uint64_t pb_areas_scratch_bytes(int32_t image_w, int32_t image_h, int32_t side)
{
    const uint64_t w = (uint64_t)(image_w < side ? image_w : side);
    const uint64_t h = (uint64_t)(image_h < side ? image_h : side);

    return w * h * sizeof(union found) +
           (N_ARRAYS * (w * h + 1) + (h + 1) + 1) / 2 * 2 * sizeof(uint32_t);
}

/* With its runs and areas. */
static struct cell cell_of(const struct pb_areas *areas, uint32_t number, const float *plane,
                           size_t stride, void *scratch)
{
    struct cell c = {
        .areas = areas, .rect = pb_areas_cell(areas, number), .base = number * areas->border_px};
    const uint32_t w = (uint32_t)c.rect.w, h = (uint32_t)c.rect.h, n = w * h + 1;

    c.found = scratch;
    c.entry = (uint32_t *)(void *)(c.found + w * h);
    c.best = c.entry + n;
    c.runs = (struct pb_runs){.plane = plane,
                              .stride = stride,
                              .w = w,
                              .h = h,
                              .reach = areas->sieve.connectivity == 8,
                              .start = c.best + n,
                              .area = c.best + 2 * (size_t)n,
                              .size = c.best + 3 * (size_t)n,
                              .value = (float *)(void *)(c.best + 4 * (size_t)n),
                              .row = c.best + 5 * (size_t)n};
    pb_runs_find(&c.runs);
    return c;
}

/* --- entries --------------------------------------------------------------------------------- */

static void number_entry(const struct cell *c, uint32_t run, uint32_t *n)
{
    const uint32_t area = c->runs.area[run];

    if (area != PB_AREAS_NONE && c->entry[area] == PB_AREAS_NONE)
        c->entry[area] = c->base + (*n)++;
}

/* Numbers the areas that touch the border, in the same order in every round. Returns how many. */
static uint32_t number_entries(const struct cell *c)
{
    const struct pb_runs *const runs = &c->runs;
    uint32_t n = 0;

    memset(c->entry, 0xff, runs->n_areas * sizeof *c->entry);
    for (uint32_t run = 0; run < runs->row[1]; run++)
        number_entry(c, run, &n);
    for (uint32_t run = runs->row[runs->h - 1]; run < runs->n; run++)
        number_entry(c, run, &n);
    for (uint32_t y = 0; y < runs->h; y++)
        number_entry(c, runs->row[y], &n);
    for (uint32_t y = 0; y < runs->h; y++)
        number_entry(c, runs->row[y + 1] - 1, &n);
    return n;
}

/* What a border says of the pixels of a run. */
static uint16_t border_of(const struct cell *c, uint32_t run)
{
    const uint32_t area = c->runs.area[run];

    return area == PB_AREAS_NONE ? PB_AREAS_BORDER_NONE : (uint16_t)(c->entry[area] - c->base);
}

static void fill_row(const struct cell *c, uint32_t y, uint16_t *border)
{
    const struct pb_runs *const runs = &c->runs;

    for (uint32_t run = runs->row[y]; run < runs->row[y + 1]; run++)
        for (uint32_t i = runs->start[run]; i < runs->start[run + 1]; i++)
            border[i - y * runs->w] = border_of(c, run);
}

static void fill_border(const struct cell *c, uint16_t *border)
{
    const struct pb_runs *const runs = &c->runs;
    uint16_t *const left = border + 2 * (size_t)runs->w, *const right = left + runs->h;

    fill_row(c, 0, border);
    fill_row(c, runs->h - 1, border + runs->w);
    for (uint32_t y = 0; y < runs->h; y++) {
        left[y] = border_of(c, runs->row[y]);
        right[y] = border_of(c, runs->row[y + 1] - 1);
    }
}

void pb_areas_add(struct pb_areas *areas, uint32_t number, const float *plane, size_t stride,
                  void *scratch)
{
    const struct cell c = cell_of(areas, number, plane, stride, scratch);

    areas->n[number] = number_entries(&c);
    fill_border(&c, areas->border + (size_t)number * areas->border_px);
    for (uint32_t i = 0; i < c.runs.n_areas; i++)
        if (c.entry[i] != PB_AREAS_NONE)
            areas->entry[c.entry[i]] = (struct pb_areas_entry){
                .parent = c.entry[i], .value = c.runs.value[i], .size = c.runs.size[i]};
}

/* --- neighbours ------------------------------------------------------------------------------ */

/* Sizes of whole areas. Returns whether one of them is small. */
static bool find_all_sizes(const struct cell *c)
{
    bool any = false;

    for (uint32_t i = 0; i < c->runs.n_areas; i++) {
        if (c->entry[i] != PB_AREAS_NONE)
            c->runs.size[i] = pb_areas_of(c->areas, c->entry[i])->size;
        c->best[i] = PB_AREAS_NONE;
        c->found[i].rank = 0;
        any = any || pb_areas_is_small(c->areas, c->runs.size[i]);
    }
    return any;
}

/* A neighbour of more pixels ranks higher; of equal ones the one that the walk over the cell meets
 * first. first: a pixel's number * PB_AREAS_WAYS + the way. */
static inline uint64_t rank_of(uint32_t size, uint32_t first)
{
    return (uint64_t)size << 32 | (UINT32_MAX - first);
}

static inline uint32_t first_of(uint64_t rank)
{
    return UINT32_MAX - (uint32_t)rank;
}

/* Without a branch: which one is the best is hard to foretell. */
static inline void offer(const struct cell *c, uint32_t to, uint32_t neighbour, uint64_t rank)
{
    const uint64_t best = c->found[to].rank;
    const uint32_t old = c->best[to];

    c->found[to].rank = rank > best ? rank : best;
    c->best[to] = rank > best ? neighbour : old;
}

/* Two runs touch, first at pixel i of the cell. Two parts of one area are no neighbours: they have
 * the same value, so that they do not touch. */
static inline void meet(const struct cell *c, uint32_t run, uint32_t other, uint32_t i,
                        enum pb_areas_way way)
{
    const uint32_t to = c->runs.area[run], from = c->runs.area[other];
    const uint32_t first = i * PB_AREAS_WAYS + way;

    if (to == PB_AREAS_NONE || from == PB_AREAS_NONE)
        return;
    offer(c, to, from, to == from ? 0 : rank_of(c->runs.size[from], first));
    offer(c, from, to, to == from ? 0 : rank_of(c->runs.size[to], first));
}

static void meet_above(void *of, uint32_t run, uint32_t above)
{
    const struct cell *const c = of;
    const struct pb_runs *const runs = &c->runs;
    const uint32_t at = runs->start[run], above_at = runs->start[above] + runs->w;

    if (above_at > at)
        meet(c, run, above, above_at - runs->reach, runs->reach ? PB_AREAS_UP_RIGHT : PB_AREAS_UP);
    else if (runs->start[above + 1] + runs->w > at)
        meet(c, run, above, at, PB_AREAS_UP);
    else
        meet(c, run, above, at, PB_AREAS_UP_LEFT);
}

/* The best neighbour of each area in this cell. */
static void find_best(struct cell *c)
{
    const struct pb_runs *const runs = &c->runs;

    for (uint32_t y = 0; y < runs->h; y++) {
        if (y > 0)
            pb_runs_pairs(runs, y, meet_above, c);
        for (uint32_t run = runs->row[y] + 1; run < runs->row[y + 1]; run++)
            meet(c, run, run - 1, runs->start[run], PB_AREAS_LEFT);
    }
}

/* --- chains ---------------------------------------------------------------------------------- */

/* The chain of an area as far as it is known without that of its best neighbour. */
static struct pb_areas_chain start_of(const struct cell *c, uint32_t area)
{
    if (c->entry[area] != PB_AREAS_NONE)
        return (struct pb_areas_chain){PB_AREAS_ENTRY,
                                       {.entry = c->areas->entry[c->entry[area]].parent}};
    if (!pb_areas_is_small(c->areas, c->runs.size[area]))
        return (struct pb_areas_chain){PB_AREAS_VALUE, {.value = c->runs.value[area]}};
    return (struct pb_areas_chain){c->best[area] == PB_AREAS_NONE ? PB_AREAS_KEEPS : (uint32_t)OPEN,
                                   {.entry = 0}};
}

/* Follows the chain to where it ends or leaves the cell, and puts that into all areas on the way.
 */
static void walk(const struct cell *c, uint32_t area)
{
    struct pb_areas_chain end = {PB_AREAS_KEEPS, {.entry = 0}};
    uint32_t at = area;

    while (c->found[at].chain.end == OPEN) {
        c->found[at].chain.end = PB_AREAS_WALKED;
        at = c->best[at];
    }
    if (c->found[at].chain.end != PB_AREAS_WALKED)
        end = c->found[at].chain;
    for (at = area; c->found[at].chain.end == PB_AREAS_WALKED; at = c->best[at])
        c->found[at].chain = end;
}

static void find_chains(const struct cell *c)
{
    for (uint32_t i = 0; i < c->runs.n_areas; i++)
        c->found[i].chain = start_of(c, i);
    for (uint32_t i = 0; i < c->runs.n_areas; i++)
        walk(c, i);
}

/* What areas are next to, but not the chains. Returns whether an area of the cell is small. */
static bool find_neighbours(struct cell *c)
{
    (void)number_entries(c);
    if (!find_all_sizes(c))
        return false;
    find_best(c);
    return true;
}

/* A small area whose best neighbour in this cell is told to the table. */
static bool is_told(const struct cell *c, uint32_t area)
{
    return c->entry[area] != PB_AREAS_NONE && c->best[area] != PB_AREAS_NONE &&
           pb_areas_is_small(c->areas, c->runs.size[area]);
}

/* Where the walk over the image meets what that over the cell meets at `first`. */
static uint64_t first_in_image(const struct cell *c, uint32_t first)
{
    const uint32_t px = first / PB_AREAS_WAYS;

    /* NOLINTNEXTLINE(clang-analyzer-core.DivideZero) no cell is empty */
    return pb_areas_first(c->areas, c->rect.x + (int64_t)(px % c->runs.w),
                          c->rect.y + (int64_t)(px / c->runs.w), first % PB_AREAS_WAYS);
}

void pb_areas_look(struct pb_areas *areas, uint32_t number, const float *plane, size_t stride,
                   void *scratch)
{
    if (areas->n[number] == 0)
        return;
    struct cell c = cell_of(areas, number, plane, stride, scratch);
    if (!find_neighbours(&c))
        return;
    for (uint32_t i = 0; i < c.runs.n_areas; i++)
        if (is_told(&c, i)) {
            areas->entry[c.entry[i]].best_size = c.runs.size[c.best[i]];
            areas->entry[c.entry[i]].best_first = first_in_image(&c, first_of(c.found[i].rank));
        }
    find_chains(&c);
    for (uint32_t i = 0; i < c.runs.n_areas; i++)
        if (is_told(&c, i))
            areas->entry[c.entry[i]].chain = c.found[c.best[i]].chain;
}

/* The pixels of a run of row y become `value`. */
static void fill(const struct cell *c, uint32_t y, uint32_t run, float *plane, float value)
{
    const struct pb_runs *const runs = &c->runs;
    float *const row = plane + y * runs->stride;

    for (uint32_t i = runs->start[run]; i < runs->start[run + 1]; i++)
        row[i - y * runs->w] = value;
}

bool pb_areas_replace(const struct pb_areas *areas, uint32_t number, float *plane, size_t stride,
                      void *scratch)
{
    struct cell c = cell_of(areas, number, plane, stride, scratch);
    bool any = false;

    if (!find_neighbours(&c))
        return false;
    find_chains(&c);
    for (uint32_t i = 0; i < c.runs.n_areas; i++)
        if (c.found[i].chain.end == PB_AREAS_ENTRY)
            c.found[i].chain = areas->entry[c.found[i].chain.to.entry].chain;
    for (uint32_t y = 0; y < c.runs.h; y++)
        for (uint32_t run = c.runs.row[y]; run < c.runs.row[y + 1]; run++) {
            const uint32_t area = c.runs.area[run];

            if (area == PB_AREAS_NONE || c.found[area].chain.end != PB_AREAS_VALUE ||
                !pb_areas_is_small(areas, c.runs.size[area]))
                continue;
            fill(&c, y, run, plane, c.found[area].chain.to.value);
            any = true;
        }
    return any;
}
