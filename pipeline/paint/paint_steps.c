/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/paint/paint_steps.h"
#include "kernels/reduce/statistics_key.h"

#include <math.h>
#include <stdlib.h>

/* Values are visited by their keys, which order as the values do. */
struct finder {
    const struct pb_painter *painter;
    uint32_t first, last;       /* keys of the least and of the largest finite value */
    bool descends;              /* positions on the ramp fall while values rise */
    struct pb_paint_step *step; /* found steps */
    uint32_t n;                 /* their count; over PB_PAINT_STEPS_MAX: too many */
};

static struct pb_paint_step step_of(const struct finder *f, uint32_t key)
{
    struct pb_paint_step step = {.from = pb_statistics_value(key)};
    if (f->painter->has_ramp)
        pb_painter_ramp(f->painter, (double)step.from, step.rgba);
    else
        step.rgba[0] = pb_painter_level(f->painter, 0, (double)step.from);
    return step;
}

/* Position on the ramp. */
static double position_of(const struct finder *f, uint32_t key)
{
    const double value = (double)pb_statistics_value(key);
    return f->painter->is_curved ? pb_stretch_share(&f->painter->curve[0], value) : value;
}

static bool is_alike(const struct pb_paint_step *a, const struct pb_paint_step *b)
{
    return memcmp(a->rgba, b->rgba, sizeof a->rgba) == 0;
}

/* Adds the steps of keys lo .. hi, in which no channel changes its direction. */
static void add_steps(struct finder *f, uint32_t lo, uint32_t hi)
{
    const struct pb_paint_step begin = step_of(f, lo), end = step_of(f, hi);
    if (f->n > PB_PAINT_STEPS_MAX)
        return;
    if (!is_alike(&begin, &end)) {
        const uint32_t middle = lo + (hi - lo) / 2;
        add_steps(f, lo, middle);
        add_steps(f, middle + 1, hi);
    } else if (f->n == 0 || !is_alike(&f->step[f->n - 1], &begin)) {
        if (f->n < PB_PAINT_STEPS_MAX)
            f->step[f->n] = begin;
        f->n++;
    }
}

/* First key whose position has reached a stop, or `past` it; last + 1: there is no such key. */
static uint32_t first_at(const struct finder *f, double stop, bool past)
{
    uint32_t low = f->first, high = f->last + 1;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const double at = position_of(f, middle);
        if ((at == stop && !past) || (f->descends ? at < stop : at > stop))
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static int by_key(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* Adds the steps between two neighbours of the sorted keys. */
static void add_between(struct finder *f, const uint32_t *key, size_t n)
{
    for (size_t i = 0; i + 1 < n; i++)
        if (key[i] < key[i + 1])
            add_steps(f, key[i], key[i + 1] - 1);
}

uint32_t pb_paint_steps_find(const struct pb_painter *painter, struct pb_paint_step *room)
{
    struct finder f = {.painter = painter,
                       .first = pb_statistics_key(-FLT_MAX),
                       .last = pb_statistics_key(FLT_MAX),
                       .step = room};
    const size_t stops = painter->has_ramp ? pb_ramp_table_stops(painter->ramp) : 0;
    uint32_t *key = malloc((2 * stops + 2) * sizeof *key);
    size_t n = 0;
    if (key == NULL)
        return 0;
    f.descends = position_of(&f, f.first) > position_of(&f, f.last);
    key[n++] = f.first;
    key[n++] = f.last + 1;
    for (size_t i = 0; i < stops; i++) {
        const double stop = pb_ramp_table_stop(painter->ramp, i);
        key[n++] = first_at(&f, stop, false);
        key[n++] = first_at(&f, stop, true);
    }
    qsort(key, n, sizeof *key, by_key);
    add_between(&f, key, n);
    free(key);
    return f.n <= PB_PAINT_STEPS_MAX ? f.n : 0;
}

struct pb_paint pb_paint_of(const struct pb_painter *painter, const struct pb_paint_steps *steps)
{
    struct pb_paint paint = {
        .n_planes = painter->n_planes,
        .n_steps = steps->n,
        .has_ramp = painter->has_ramp,
        .has_shade = painter->has_shade,
        .overlays = painter->blend == PB_BLEND_OVERLAY,
        .any = painter->any,
        .alpha = painter->alpha,
        .has_nodata = painter->has_nodata,
        .nodata = painter->nodata,
    };
    memcpy(paint.invalid, steps->invalid, sizeof paint.invalid);
    if (!painter->has_ramp && isfinite(painter->fill))
        paint.fill = pb_painter_level(painter, 0, painter->fill);
    return paint;
}
