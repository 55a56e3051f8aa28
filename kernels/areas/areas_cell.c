/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The areas of one cell. An area is known by its first pixel, row by row; what is known of it is in
 * arrays by pixel, at that one. Cells are labelled anew in every round, which costs less than
 * keeping a label for every pixel of the image. */
#include "kernels/areas/areas_inside.h"

#include <stdbool.h>
#include <string.h>

struct cell {
    const struct pb_areas *areas;
    struct pb_rect rect;
    uint32_t base; /* of the cell's entries */
    uint32_t n;    /* pixels */
    const float *plane;
    size_t stride;
    /* By pixel. */
    uint32_t *label; /* the first pixel of its area; PB_AREAS_NONE: it is in none */
    /* By first pixel of an area. */
    uint32_t *size, *entry, *best;
    union found {
        uint64_t first; /* where the walk meets the best neighbour */
        struct pb_areas_chain chain;
    } * found;
};

/* An end of pb_areas_chain in a cell: that of the best neighbour. */
enum { OPEN = PB_AREAS_WALKED + 1 };

enum { PIXEL_BYTES = 4 * sizeof(uint32_t) + sizeof(union found) };

uint64_t pb_areas_scratch_bytes(int32_t image_w, int32_t image_h, int32_t side)
{
    const int32_t w = image_w < side ? image_w : side, h = image_h < side ? image_h : side;

    return (uint64_t)w * (uint64_t)h * PIXEL_BYTES;
}

static struct cell cell_of(const struct pb_areas *areas, uint32_t number, const float *plane,
                           size_t stride, void *scratch)
{
    struct cell c = {.areas = areas,
                     .rect = pb_areas_cell(areas, number),
                     .base = number * areas->border_px,
                     .plane = plane,
                     .stride = stride};

    c.n = (uint32_t)c.rect.w * (uint32_t)c.rect.h;
    c.found = scratch;
    c.label = (uint32_t *)(void *)(c.found + c.n);
    c.size = c.label + c.n;
    c.entry = c.size + c.n;
    c.best = c.entry + c.n;
    return c;
}

/* --- labels ---------------------------------------------------------------------------------- */

static uint32_t find_first(uint32_t *label, uint32_t i)
{
    while (label[i] != i) {
        label[i] = label[label[i]];
        i = label[i];
    }
    return i;
}

static void join(uint32_t *label, uint32_t a, uint32_t b)
{
    a = find_first(label, a);
    b = find_first(label, b);
    if (a < b)
        label[b] = a;
    else
        label[a] = b;
}

/* Joins pixel i, of column x, with equal ones of the row above. Equal neighbours in that row are
 * joined already, and so is the pixel to the left with those above it. */
static void join_above(const struct cell *c, uint32_t i, int32_t x, const float *row,
                       const float *above)
{
    const uint32_t up = i - (uint32_t)c->rect.w;
    const bool left = x > 0 && row[x - 1] == row[x];
    const bool up_left = x > 0 && above[x - 1] == row[x];
    const bool corners = c->areas->sieve.connectivity == 8;

    if (above[x] == row[x]) {
        if (!left)
            c->label[i] = c->label[up];
        else if (!up_left)
            join(c->label, up, i);
        return;
    }
    if (!corners)
        return;
    if (up_left && !left)
        c->label[i] = c->label[up - 1];
    if (x + 1 < c->rect.w && above[x + 1] == row[x])
        join(c->label, up + 1, i);
}

static void find_labels(const struct cell *c)
{
    const int32_t w = c->rect.w;
    uint32_t i = 0;

    for (int32_t y = 0; y < c->rect.h; y++) {
        const float *const row = c->plane + (size_t)y * c->stride;

        for (int32_t x = 0; x < w; x++, i++) {
            c->label[i] = PB_AREAS_NONE;
            if (row[x] != row[x])
                continue;
            c->label[i] = x > 0 && row[x - 1] == row[x] ? c->label[i - 1] : i;
            if (y > 0)
                join_above(c, i, x, row, row - c->stride);
        }
    }
    for (i = 0; i < c->n; i++) /* of each chain the pixels before are through */
        if (c->label[i] != PB_AREAS_NONE)
            c->label[i] = c->label[c->label[i]];
}

static void find_sizes(const struct cell *c)
{
    memset(c->size, 0, c->n * sizeof *c->size);
    for (uint32_t i = 0; i < c->n; i++)
        if (c->label[i] != PB_AREAS_NONE)
            c->size[c->label[i]]++;
}

static float value_of(const struct cell *c, uint32_t pixel)
{
    const uint32_t w = (uint32_t)c->rect.w; /* no cell is empty */

    /* NOLINTNEXTLINE(clang-analyzer-core.DivideZero) */
    return c->plane[(size_t)(pixel / w) * c->stride + pixel % w];
}

/* --- entries --------------------------------------------------------------------------------- */

/* The pixel at place k of the border. */
static uint32_t border_pixel(const struct cell *c, uint32_t k)
{
    const uint32_t w = (uint32_t)c->rect.w, h = (uint32_t)c->rect.h;

    if (k < w)
        return k;
    if (k < 2 * w)
        return (h - 1) * w + (k - w);
    if (k < 2 * w + h)
        return (k - 2 * w) * w;
    return (k - 2 * w - h) * w + w - 1;
}

static uint32_t border_length(const struct cell *c)
{
    return 2 * ((uint32_t)c->rect.w + (uint32_t)c->rect.h);
}

/* Numbers the areas that touch the border, in the same order in every round. Returns how many. */
static uint32_t number_entries(const struct cell *c)
{
    uint32_t n = 0;

    memset(c->entry, 0xff, c->n * sizeof *c->entry);
    for (uint32_t k = 0; k < border_length(c); k++) {
        const uint32_t area = c->label[border_pixel(c, k)];

        if (area != PB_AREAS_NONE && c->entry[area] == PB_AREAS_NONE)
            c->entry[area] = c->base + n++;
    }
    return n;
}

static void fill_border(const struct cell *c, uint16_t *border)
{
    for (uint32_t k = 0; k < border_length(c); k++) {
        const uint32_t area = c->label[border_pixel(c, k)];

        border[k] =
            area == PB_AREAS_NONE ? PB_AREAS_BORDER_NONE : (uint16_t)(c->entry[area] - c->base);
    }
}

void pb_areas_add(struct pb_areas *areas, uint32_t number, const float *plane, size_t stride,
                  void *scratch)
{
    const struct cell c = cell_of(areas, number, plane, stride, scratch);

    find_labels(&c);
    find_sizes(&c);
    areas->n[number] = number_entries(&c);
    fill_border(&c, areas->border + (size_t)number * areas->border_px);
    for (uint32_t k = 0; k < border_length(&c); k++) {
        const uint32_t area = c.label[border_pixel(&c, k)];

        if (area != PB_AREAS_NONE)
            areas->entry[c.entry[area]] = (struct pb_areas_entry){
                .parent = c.entry[area], .value = value_of(&c, area), .size = c.size[area]};
    }
}

/* --- neighbours ------------------------------------------------------------------------------ */

/* Sizes of whole areas. Returns whether one of them is small. */
static bool find_all_sizes(const struct cell *c)
{
    bool any = false;

    find_sizes(c);
    for (uint32_t i = 0; i < c->n; i++) {
        if (c->label[i] != i)
            continue;
        if (c->entry[i] != PB_AREAS_NONE)
            c->size[i] = pb_areas_of(c->areas, c->entry[i])->size;
        c->best[i] = PB_AREAS_NONE;
        any = any || pb_areas_is_small(c->areas, c->size[i]);
    }
    return any;
}

static void offer(const struct cell *c, uint32_t to, uint32_t neighbour, uint64_t first)
{
    if (!pb_areas_is_small(c->areas, c->size[to]))
        return;
    if (c->best[to] != PB_AREAS_NONE && c->size[c->best[to]] >= c->size[neighbour])
        return;
    c->best[to] = neighbour;
    c->found[to].first = first;
}

/* Two areas touch at pixel i of the cell. */
static void meet(const struct cell *c, uint32_t i, uint32_t other, enum pb_areas_way way)
{
    const uint32_t one = c->label[i], w = (uint32_t)c->rect.w;
    const int64_t x = c->rect.x + (int64_t)(i % w), y = c->rect.y + (int64_t)(i / w);

    if (one == PB_AREAS_NONE || other == PB_AREAS_NONE)
        return;
    offer(c, one, other, pb_areas_first(c->areas, x, y, way));
    offer(c, other, one, pb_areas_first(c->areas, x, y, way));
}

/* Pixel i and the one `back` pixels before it: most are of one area. */
static inline void compare(const struct cell *c, uint32_t i, uint32_t back, enum pb_areas_way way)
{
    if (c->label[i] != c->label[i - back])
        meet(c, i, c->label[i - back], way);
}

/* The best neighbour of each small area in this cell. Two parts of one area are no neighbours: they
 * have the same value, so that they do not touch. */
static void find_best(const struct cell *c)
{
    const bool corners = c->areas->sieve.connectivity == 8;
    const uint32_t w = (uint32_t)c->rect.w;
    uint32_t i = 0;

    for (int32_t y = 0; y < c->rect.h; y++)
        for (int32_t x = 0; x < c->rect.w; x++, i++) {
            if (y > 0)
                compare(c, i, w, PB_AREAS_UP);
            if (corners && y > 0 && x > 0)
                compare(c, i, w + 1, PB_AREAS_UP_LEFT);
            if (corners && y > 0 && x + 1 < c->rect.w)
                compare(c, i, w - 1, PB_AREAS_UP_RIGHT);
            if (x > 0)
                compare(c, i, 1, PB_AREAS_LEFT);
        }
}

/* --- chains ---------------------------------------------------------------------------------- */

/* The chain of an area as far as it is known without that of its best neighbour. */
static struct pb_areas_chain start_of(const struct cell *c, uint32_t area)
{
    if (c->entry[area] != PB_AREAS_NONE)
        return (struct pb_areas_chain){PB_AREAS_ENTRY,
                                       {.entry = c->areas->entry[c->entry[area]].parent}};
    if (!pb_areas_is_small(c->areas, c->size[area]))
        return (struct pb_areas_chain){PB_AREAS_VALUE, {.value = value_of(c, area)}};
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
    for (uint32_t i = 0; i < c->n; i++)
        if (c->label[i] == i)
            c->found[i].chain = start_of(c, i);
    for (uint32_t i = 0; i < c->n; i++)
        if (c->label[i] == i)
            walk(c, i);
}

/* All of the cell but the chains. Returns whether an area of it is small. */
static bool find_areas(const struct cell *c)
{
    find_labels(c);
    (void)number_entries(c);
    if (!find_all_sizes(c))
        return false;
    find_best(c);
    return true;
}

void pb_areas_look(struct pb_areas *areas, uint32_t number, const float *plane, size_t stride,
                   void *scratch)
{
    const struct cell c = cell_of(areas, number, plane, stride, scratch);

    if (areas->n[number] == 0 || !find_areas(&c))
        return;
    for (uint32_t i = 0; i < c.n; i++)
        if (c.label[i] == i && c.entry[i] != PB_AREAS_NONE && c.best[i] != PB_AREAS_NONE) {
            areas->entry[c.entry[i]].best_size = c.size[c.best[i]];
            areas->entry[c.entry[i]].best_first = c.found[i].first;
        }
    find_chains(&c);
    for (uint32_t i = 0; i < c.n; i++)
        if (c.label[i] == i && c.entry[i] != PB_AREAS_NONE && c.best[i] != PB_AREAS_NONE)
            areas->entry[c.entry[i]].chain = c.found[c.best[i]].chain;
}

bool pb_areas_replace(const struct pb_areas *areas, uint32_t number, float *plane, size_t stride,
                      void *scratch)
{
    const struct cell c = cell_of(areas, number, plane, stride, scratch);

    const uint32_t w = (uint32_t)c.rect.w;
    bool any = false;

    if (!find_areas(&c))
        return false;
    find_chains(&c);
    for (uint32_t i = 0; i < c.n; i++)
        if (c.label[i] == i && c.found[i].chain.end == PB_AREAS_ENTRY)
            c.found[i].chain = areas->entry[c.found[i].chain.to.entry].chain;
    for (uint32_t i = 0; i < c.n; i++) {
        const uint32_t area = c.label[i];

        if (area == PB_AREAS_NONE || c.found[area].chain.end != PB_AREAS_VALUE ||
            !pb_areas_is_small(areas, c.size[area]))
            continue;
        plane[(size_t)(i / w) * stride + i % w] = c.found[area].chain.to.value;
        any = true;
    }
    return any;
}
