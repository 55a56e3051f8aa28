/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/areas/areas_runs.h"
#include "kernels/pixel.h"

enum { STEPS = 8 }; /* looked at together: most pixels have the value of the one before */

/* step[x]: a run begins at pixel x of a row. Invalid pixels are runs, too. */
PB_CLONES static void find_steps(const float *row, uint32_t w, uint8_t *step)
{
    step[0] = 1;
    for (uint32_t x = 1; x < w; x++) {
        const bool differs = row[x] != row[x - 1];
        const bool valid = row[x] == row[x] || row[x - 1] == row[x - 1];

        step[x] = differs && valid;
    }
}

/* Adds the runs of a row to n others, first: number of its first pixel. Returns how many there are
 * then. The place of the next run is written for every pixel, which needs no branch. */
static uint32_t add_runs(const uint8_t *step, uint32_t w, uint32_t first, uint32_t *start,
                         uint32_t n)
{
    for (uint32_t x = 0; x < w; x += STEPS) {
        uint64_t any;

        memcpy(&any, step + x, sizeof any);
        if (any == 0)
            continue;
        for (uint32_t k = x; k < x + STEPS; k++) {
            start[n] = first + k;
            n += step[k];
        }
    }
    return n;
}

static void find_runs(struct pb_runs *runs)
{
    uint8_t step[PB_AREAS_SIDE_MAX + STEPS] = {0};
    uint32_t n = 0;

    for (uint32_t y = 0; y < runs->h; y++) {
        const float *const row = runs->plane + y * runs->stride;
        const uint32_t first = y * runs->w, from = n;

        find_steps(row, runs->w, step);
        n = add_runs(step, runs->w, first, runs->start, n);
        runs->row[y] = from;
        for (uint32_t i = from; i < n; i++)
            runs->value[i] = row[runs->start[i] - first];
    }
    runs->row[runs->h] = n;
    runs->start[n] = runs->w * runs->h;
    runs->n = n;
}

/* --- areas ----------------------------------------------------------------------------------- */

/* Until areas have numbers, `area` is another run of the same area, or the run itself, and `value`
 * is by run. */
static uint32_t find_first(uint32_t *area, uint32_t run)
{
    while (area[run] != run) {
        area[run] = area[area[run]];
        run = area[run];
    }
    return run;
}

/* Runs that touch are of one area when their values are equal. */
static void join(void *of, uint32_t run, uint32_t above)
{
    const struct pb_runs *const runs = of;
    uint32_t *const area = runs->area;

    if (runs->value[run] != runs->value[above])
        return;
    if (area[run] == run) {
        area[run] = area[above];
        return;
    }
    const uint32_t one = find_first(area, run), other = find_first(area, above);
    if (one < other)
        area[other] = one;
    else
        area[one] = other;
}

/* Of each area the first run comes first, and the run that another one refers to before that. There
 * are no more areas than runs that are through, so that `value` is free for them. */
static void number_areas(struct pb_runs *runs)
{
    uint32_t *const area = runs->area;
    uint32_t n = 0;

    for (uint32_t i = 0; i < runs->n; i++) {
        const uint32_t px = runs->start[i + 1] - runs->start[i];
        const float value = runs->value[i];

        if (area[i] != i) {
            area[i] = area[area[i]];
            runs->size[area[i]] += px;
        } else if (value != value) {
            area[i] = PB_AREAS_NONE;
        } else {
            runs->value[n] = value;
            runs->size[n] = px;
            area[i] = n++;
        }
    }
    runs->n_areas = n;
}

void pb_runs_find(struct pb_runs *runs)
{
    find_runs(runs);
    for (uint32_t i = 0; i < runs->n; i++)
        runs->area[i] = i;
    for (uint32_t y = 1; y < runs->h; y++)
        pb_runs_pairs(runs, y, join, runs);
    number_areas(runs);
}
