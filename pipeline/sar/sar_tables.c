/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Lines are computed in parts: first the two vectors around a line, each along its own pixels,
 * then the interpolation between them. All in float64, so that a number does not depend on the
 * beginning of a part. */
#include "pipeline/sar/sar_tables.h"

#include "config/base/arena.h"

#include <stdio.h>
#include <string.h>

enum { PART = 256 };

struct pb_sar *pb_sar_create(void)
{
    struct pb_arena *arena = pb_arena_create();
    struct pb_sar *sar = pb_arena_alloc(arena, 1, sizeof *sar);
    if (sar != NULL)
        sar->arena = arena;
    else
        pb_arena_destroy(arena);
    return sar;
}

void pb_sar_destroy(struct pb_sar *sar)
{
    if (sar != NULL)
        pb_arena_destroy(sar->arena);
}

const struct pb_sar_channel *pb_sar_find(const struct pb_sar *sar, const char *id)
{
    for (size_t i = 0; sar != NULL && i < sar->n; i++)
        if (strcmp(sar->channel[i].id, id) == 0)
            return &sar->channel[i];
    return NULL;
}

struct pb_sar_channel *pb_sar_channel(struct pb_sar *sar, const char *id)
{
    size_t i = 0;
    while (i < sar->n && strcmp(sar->channel[i].id, id) != 0)
        i++;
    if (i == PB_SAR_CHANNELS_MAX)
        return NULL;
    if (i == sar->n)
        (void)snprintf(sar->channel[sar->n++].id, sizeof sar->channel[i].id, "%s", id);
    return &sar->channel[i];
}

/* Index of the last entry that is not after x; 0 if all are after it. */
static size_t before(const double *at, size_t n, double x)
{
    size_t low = 0, high = n;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (at[middle] <= x)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Interpolates the vector at n whole pixels from x; beyond its ends it has the first and last
 * number. */
static void along(const struct pb_sar_vector *v, int32_t x, int32_t n, double *out)
{
    size_t k = before(v->pixel, v->n, x);
    for (int32_t i = 0; i < n;) {
        const double from = v->pixel[k];
        const double slope =
            k + 1 < v->n ? (v->value[k + 1] - v->value[k]) / (v->pixel[k + 1] - from) : 0.0;
        int32_t end = n;
        if (k + 1 < v->n && v->pixel[k + 1] < (double)x + n)
            end = (int32_t)v->pixel[k + 1] - x + (v->pixel[k + 1] > (int32_t)v->pixel[k + 1]);
        for (; i < end; i++) {
            const double d = (double)(x + i) - from;
            out[i] = v->value[k] + (d > 0.0 ? d * slope : 0.0);
        }
        k++;
    }
}

static void table_part(const struct pb_sar_table *t, int32_t line, int32_t x, int32_t n,
                       double *out)
{
    double next[PART];
    size_t k = 0;
    while (k + 1 < t->n && t->vector[k + 1].line <= line)
        k++;
    along(&t->vector[k], x, n, out);
    if (k + 1 == t->n || line <= t->vector[k].line)
        return;
    const double part =
        (double)(line - t->vector[k].line) / (double)(t->vector[k + 1].line - t->vector[k].line);
    along(&t->vector[k + 1], x, n, next);
    for (int32_t i = 0; i < n; i++)
        out[i] += (next[i] - out[i]) * part;
}

static int32_t at_least(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

static int32_t at_most(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

/* Multiplies by the blocks' factors. */
static void azimuth_part(const struct pb_sar_channel *c, int32_t line, int32_t x, int32_t n,
                         double *out)
{
    for (size_t b = 0; b < c->n_blocks; b++) {
        const struct pb_sar_block *block = &c->block[b];
        const int32_t first = at_least(block->first_pixel, x);
        const int32_t last = at_most(block->last_pixel, x + n - 1);
        double factor;
        if (line < block->first_line || line > block->last_line || first > last)
            continue;
        along(&block->along, line, 1, &factor);
        for (int32_t i = first; i <= last; i++)
            out[i - x] *= factor;
    }
}

static void fill_columns(const float *column, const struct pb_rect *rect, void *out,
                         size_t row_bytes)
{
    for (int32_t y = 0; y < rect->h; y++)
        memcpy((char *)out + (size_t)y * row_bytes, column + rect->x,
               (size_t)rect->w * sizeof *column);
}

int pb_sar_fill(const void *planes, int32_t band, const struct pb_rect *rect, void *out,
                size_t row_bytes, struct pb_err *err)
{
    const struct pb_sar_plane *plane = &((const struct pb_sar_planes *)planes)->plane[band - 1];
    const struct pb_sar_channel *c = plane->channel;
    const struct pb_sar_table *table = c == NULL          ? NULL
                                       : plane->area >= 0 ? &c->area[plane->area]
                                                          : &c->noise;
    double part[PART];
    (void)err;
    if (plane->column != NULL) {
        fill_columns(plane->column, rect, out, row_bytes);
        return 0;
    }
    for (int32_t y = 0; y < rect->h; y++) {
        float *row = (float *)((char *)out + (size_t)y * row_bytes);
        for (int32_t x = 0; x < rect->w; x += PART) {
            const int32_t n = at_most(PART, rect->w - x);
            table_part(table, rect->y + y, rect->x + x, n, part);
            if (plane->area < 0)
                azimuth_part(c, rect->y + y, rect->x + x, n, part);
            for (int32_t i = 0; i < n; i++)
                row[x + i] = (float)(plane->area >= 0 ? part[i] * part[i] : part[i]);
        }
    }
    return 0;
}
