/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * MODE on the CPU: the values of a footprint with their areas, which are added up in the order of
 * pb_resample_mode, and of which the same one is chosen. Of few pixels all are compared with all,
 * those of many columns at a time, without branches; the values of many pixels are found in a
 * table. */
#include "kernels/resample/resample_job.h"

enum {
    FEW = 64,  /* pixels of a footprint; more than this: a table */
    LANES = 16 /* columns that are made at a time */
};

size_t pb_resample_table_room(size_t values)
{
    size_t room = 8;

    while (room < 2 * values)
        room *= 2;
    return room;
}

/* --- few pixels ------------------------------------------------------------------------------ */

/* The footprints of LANES columns. One that is narrower than others has its last column again in
 * their place, without an area. */
struct few {
    float value[FEW][LANES], part[FEW][LANES]; /* of each pixel, and the area that it has */
};

/* Where the columns of the footprints are in a row of the plane, and their weights. */
struct across {
    int32_t n;
    int32_t at[FEW][LANES];
    float weight[FEW][LANES];
};

/* Lanes beyond `lanes`, and those without a pixel, take pixels of `some` and have no area. */
static void find_lane(const struct pb_resample_job *job, size_t column, bool is_there, size_t some,
                      int lane, struct across *across)
{
    const struct pb_resample_columns *const c = &job->columns;
    const bool is_any = is_there && c->taps[column].n > 0;
    const struct pb_taps *const x = &c->taps[is_any ? column : some];
    const int32_t first = x->first - job->source.rect.x;

    for (int32_t k = 0; k < across->n; k++) {
        across->at[k][lane] = first + (k < x->n ? k : x->n - 1);
        across->weight[k][lane] =
            is_any && k < x->n ? c->weight[column * c->column_step + (size_t)k] : 0.0f;
    }
}

/* some: a column with the most pixels, at most FEW. */
static void find_across(const struct pb_resample_job *job, size_t column, size_t lanes, size_t some,
                        struct across *across)
{
    across->n = job->columns.taps[some].n;
    for (size_t i = 0; i < LANES; i++)
        find_lane(job, column + i, i < lanes, some, (int)i, across);
}

/* A row of the footprints; down: its weight. */
PB_CLONES static void gather_row(const float *row, const struct across *across, float down,
                                 float (*restrict value)[LANES], float (*restrict part)[LANES])
{
    for (int32_t k = 0; k < across->n; k++)
        for (int i = 0; i < LANES; i++) {
            value[k][i] = row[across->at[k][i]];
            part[k][i] = down * across->weight[k][i];
        }
}

/* Returns how many pixels a footprint has. */
static int32_t gather(const struct pb_resample_job *job, const struct across *across,
                      const struct pb_taps *y, struct few *few)
{
    const struct pb_rect *const in = &job->source.rect;
    const float *row = job->source.data + (size_t)(y->first - in->y) * (size_t)in->w;
    int32_t n = 0;

    for (int32_t j = 0; j < y->n; j++, row += in->w, n += across->n)
        gather_row(row, across, job->areas.down[j], few->value + n, few->part + n);
    return n;
}

/* A number of each of LANES columns. */
typedef float values __attribute__((vector_size(LANES * sizeof(float))));
typedef int32_t places __attribute__((vector_size(LANES * sizeof(int32_t))));

/* Whether every footprint has the same value, by its bits, from its first to its last pixel, which
 * are looked at before the others. */
PB_CLONES static bool is_one_value_each(const struct few *few, int32_t n)
{
    places first, other, differ = {0};
    int32_t any = 0;

    memcpy(&first, few->value[0], sizeof first);
    if (memcmp(&first, few->value[n - 1], sizeof first) != 0)
        return false;
    for (int32_t k = 1; k < n; k++) {
        memcpy(&other, few->value[k], sizeof other);
        differ |= other ^ first;
    }
    for (int i = 0; i < LANES; i++)
        any |= differ[i];
    return any == 0;
}

/* The modes: the largest area; of equal ones the smallest value, of equal values the one that was
 * met first. The area of a value is that of the first pixel that has it and of those after it; from
 * a later one on it is not larger. Areas are 0 or more, so that they are compared as whole numbers,
 * by the sign of the difference. begin: from how many pixels on. */
PB_CLONES static void modes_of_few(const struct few *few, int32_t n, int32_t begin, float *out)
{
    places most = {0};
    values best = (values){0} + pb_pixel_nan();

    for (int32_t k = 0; k < begin; k++) {
        values value, pixel, part, sum = {0};

        memcpy(&value, few->value[k], sizeof value);
        for (int32_t m = k; m < n; m++) {
            memcpy(&pixel, few->value[m], sizeof pixel);
            memcpy(&part, few->part[m], sizeof part);
            const places same = pixel == value;

            sum = sum + (values)(same & (places)part);
        }
        const places area = (places)sum, is_more = (most - area) >> 31;
        const places is_equal = ~(is_more | (area - most) >> 31), is_less = value < best;
        const places is_it = is_more | (is_equal & is_less);

        best = (values)((is_it & (places)value) | (~is_it & (places)best));
        most = (is_it & area) | (~is_it & most);
    }
    memcpy(out, &best, sizeof best);
}

/* --- many pixels ----------------------------------------------------------------------------- */

/* The larger area; of equal ones the smaller value, of equal values the one that was met first. */
static inline void choose(float value, float area, float *best, float *most)
{
    const bool is_it =
        (area > *most) | ((area == *most) & (*most > 0.0f) & (value < *best)); /* no branches */

    *best = is_it ? value : *best;
    *most = is_it ? area : *most;
}

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

static size_t widest_of(const struct pb_taps *taps, size_t column, size_t lanes)
{
    size_t widest = column;

    for (size_t i = column; i < column + lanes; i++)
        widest = taps[i].n > taps[widest].n ? i : widest;
    return widest;
}

/* The columns from `column` on, up to LANES of them. */
static void mode_columns(const struct pb_resample_job *job, size_t column, size_t lanes,
                         const struct pb_taps *y, float *out)
{
    const size_t widest = widest_of(job->columns.taps, column, lanes);
    const int32_t across_n = job->columns.taps[widest].n;
    struct across across;
    struct few few;
    float modes[LANES];

    if (across_n > FEW || y->n > FEW || across_n * y->n > FEW) {
        for (size_t i = 0; i < lanes; i++)
            out[i] = mode_of_many(job, column + i, y);
        return;
    }
    find_across(job, column, lanes, widest, &across);
    const int32_t n = gather(job, &across, y, &few);
    modes_of_few(&few, n, n > 1 && is_one_value_each(&few, n) ? 1 : n, modes);
    memcpy(out, modes, lanes * sizeof *out);
}

void pb_resample_mode_row(const struct pb_resample_job *job, const struct pb_taps *y, float *out)
{
    const size_t w = (size_t)job->out->rect.w;

    for (int32_t j = 0; j < y->n; j++)
        job->areas.down[j] = pb_tap_weight(PB_MODE, y, y->first + j);
    for (size_t i = 0; i < w; i += LANES)
        mode_columns(job, i, w - i < LANES ? w - i : LANES, y, out + i);
}
