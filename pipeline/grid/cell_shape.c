/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/grid/cell_shape.h"

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

struct pb_rect pb_cell_rect(const struct pb_cell_shape *s, int32_t col, int32_t row)
{
    int64_t x = most((int64_t)col * s->w - s->overlap, 0);
    int64_t right = least(((int64_t)col + 1) * s->w + s->overlap, s->image_w);
    int64_t y = (int64_t)row * s->h, bottom = least(y + s->h, s->image_h);
    return (struct pb_rect){(int32_t)x, (int32_t)y, (int32_t)(right - x), (int32_t)(bottom - y)};
}

uint64_t pb_cell_px_max(const struct pb_cell_shape *s)
{
    int64_t w = least((int64_t)s->w + 2 * (int64_t)s->overlap, s->image_w);
    return (uint64_t)w * (uint64_t)least(s->h, s->image_h);
}

/* Overlapping cells have whole tiles: one column of cells is enough then. */
struct pb_cell_fragments pb_cell_fragments_of(const struct pb_cell_shape *s,
                                              const struct pb_rect *rect)
{
    int32_t right = rect->x + rect->w;
    struct pb_cell_fragments p = {.shape = s, .rect = *rect};
    p.col0 = rect->x / s->w;
    p.cols = (right - 1) / s->w - p.col0 + 1;
    for (int32_t col = p.col0; col < p.col0 + p.cols && p.cols > 1; col++) {
        struct pb_rect cell = pb_cell_rect(s, col, 0);
        if (cell.x <= rect->x && cell.x + cell.w >= right) {
            p.col0 = col;
            p.cols = 1;
        }
    }
    p.row0 = rect->y / s->h;
    p.rows = (rect->y + rect->h - 1) / s->h - p.row0 + 1;
    return p;
}

struct pb_cell_fragment pb_cell_fragment(const struct pb_cell_fragments *fragments, uint32_t i)
{
    const struct pb_cell_shape *s = fragments->shape;
    const struct pb_rect *r = &fragments->rect;
    struct pb_cell_fragment p = {fragments->col0 + (int32_t)(i % (uint32_t)fragments->cols),
                                 fragments->row0 + (int32_t)(i / (uint32_t)fragments->cols), *r};
    int64_t y = most(r->y, (int64_t)p.row * s->h);
    p.rect.h = (int32_t)(least((int64_t)r->y + r->h, ((int64_t)p.row + 1) * s->h) - y);
    p.rect.y = (int32_t)y;
    if (fragments->cols > 1) {
        int64_t x = most(r->x, (int64_t)p.col * s->w);
        p.rect.w = (int32_t)(least((int64_t)r->x + r->w, ((int64_t)p.col + 1) * s->w) - x);
        p.rect.x = (int32_t)x;
    }
    return p;
}
