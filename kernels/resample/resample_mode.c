/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * MODE on the CPU: the values of a footprint with their areas, which are added up in the order of
 * pb_resample_mode, and of which the same one is chosen. Of few pixels all are compared with all,
 * many at a time; the values of many pixels are found in a table. */
#include "kernels/resample/resample_job.h"

#define FEW 64 /* pixels of a footprint; more than this: a table */

size_t pb_resample_table_room(size_t values)
{
    size_t room = 8;

    while (room < 2 * values)
        room *= 2;
    return room;
}

/* The larger area; of equal ones the smaller value, of equal values the one that was met first. */
static inline void choose(float value, float area, float *best, float *most)
{
    const bool is_it =
        (area > *most) | ((area == *most) & (*most > 0.0f) & (value < *best)); /* no branches */

    *best = is_it ? value : *best;
    *most = is_it ? area : *most;
}

/* --- few pixels ------------------------------------------------------------------------------ */

/* Pixels of the footprint one after the other, and the area of each. Returns how many. */
static int32_t gather(const struct pb_resample_job *job, size_t column, const struct pb_taps *y)
{
    const struct pb_resample_columns *const c = &job->columns;
    const struct pb_resample_areas *const a = &job->areas;
    const struct pb_taps *const x = &c->taps[column];
    const float *const weight = c->weight + column * c->column_step;
    const struct pb_rect *const in = &job->source.rect;
    const float *row =
        job->source.data + (size_t)(y->first - in->y) * (size_t)in->w + (size_t)(x->first - in->x);
    float *restrict value = a->value, *restrict part = a->part;

    for (int32_t j = 0; j < y->n; j++, row += in->w)
        for (int32_t k = 0; k < x->n; k++) {
            *value++ = row[k];
            *part++ = a->down[j] * weight[k];
        }
    return x->n * y->n;
}

static bool is_one_value(const float *value, int32_t n)
{
    int32_t differ = 0;

    for (int32_t i = 0; i < n; i++)
        differ |= value[i] != value[0];
    return differ == 0;
}

/* Of each pixel the first that has its value; of an invalid one -1. */
PB_CLONES static void find_first(const float *restrict value, int32_t *restrict first, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        first[i] = -1;
    for (int32_t k = n - 1; k >= 0; k--) {
        const float of = value[k];

        for (int32_t i = 0; i < n; i++)
            first[i] = value[i] == of ? k : first[i];
    }
}

static float mode_of_few(const struct pb_resample_areas *a, int32_t n)
{
    float best = pb_pixel_nan(), most = 0.0f;

    if (n > 0 && is_one_value(a->value, n)) {
        for (int32_t i = 0; i < n; i++)
            most = most + a->part[i];
        return most > 0.0f ? a->value[0] : best;
    }
    find_first(a->value, a->first, n);
    for (int32_t i = 0; i < n; i++)
        a->area[i] = 0.0f;
    for (int32_t i = 0; i < n; i++)
        if (a->first[i] >= 0)
            a->area[a->first[i]] = a->area[a->first[i]] + a->part[i];
    for (int32_t i = 0; i < n; i++)
        if (a->first[i] == i)
            choose(a->value[i], a->area[i], &best, &most);
    return best;
}

/* --- many pixels ----------------------------------------------------------------------------- */

/* The place of a value by open addressing, by its bits; n: it is new, and entered. */
static size_t find_place(const struct pb_resample_areas *a, size_t room, size_t n, float value)
{
    const float plain = value + 0.0f; /* -0 is 0 */
    uint32_t bits;

    memcpy(&bits, &plain, sizeof bits);
    for (size_t at = (bits * 0x9e3779b1u) >> 7;; at++) {
        int32_t *const place = &a->first[at & (room - 1)];

        if (*place < 0)
            *place = (int32_t)n;
        if ((size_t)*place == n || a->value[*place] == value)
            return (size_t)*place;
    }
}

static float mode_of_many(const struct pb_resample_job *job, size_t column, const struct pb_taps *y)
{
    const struct pb_resample_columns *const c = &job->columns;
    const struct pb_resample_areas *const a = &job->areas;
    const struct pb_taps *const x = &c->taps[column];
    const float *const weight = c->weight + column * c->column_step;
    const size_t room = pb_resample_table_room((size_t)x->n * (size_t)y->n);
    float best = pb_pixel_nan(), most = 0.0f;
    size_t n = 0, at = 0;

    memset(a->first, 0xff, room * sizeof *a->first);
    for (int32_t j = 0; j < y->n; j++)
        for (int32_t k = 0; k < x->n; k++) {
            const float value = pb_resample_at(&job->source, x->first + k, y->first + j);

            if (value != value)
                continue;
            if (n == 0 || a->value[at] != value) /* it is mostly that of the pixel before */
                at = find_place(a, room, n, value);
            if (at == n) {
                a->value[n] = value;
                a->area[n++] = 0.0f;
            }
            a->area[at] = a->area[at] + a->down[j] * weight[k];
        }
    for (size_t i = 0; i < n; i++)
        choose(a->value[i], a->area[i], &best, &most);
    return best;
}

/* --- rows ------------------------------------------------------------------------------------ */

void pb_resample_mode_row(const struct pb_resample_job *job, const struct pb_taps *y, float *out)
{
    const size_t w = (size_t)job->out->rect.w;

    for (int32_t j = 0; j < y->n; j++)
        job->areas.down[j] = pb_tap_weight(PB_MODE, y, y->first + j);
    for (size_t i = 0; i < w; i++)
        out[i] = (size_t)job->columns.taps[i].n * (size_t)y->n > FEW
                     ? mode_of_many(job, i, y)
                     : mode_of_few(&job->areas, gather(job, i, y));
}
