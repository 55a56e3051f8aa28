/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * MODE on the CPU: the values of a footprint with their areas, which are added up in the order of
 * pb_resample_mode, and of which the same one is chosen. Of few pixels all are compared with all,
 * many at a time, without branches; the values of many pixels are found in a table. */
#include "kernels/resample/resample_job.h"

enum {
    FEW = 64,  /* pixels of a footprint; more than this: a table */
    LANES = 16 /* pixels that are compared with another one at a time */
};

size_t pb_resample_table_room(size_t values)
{
    size_t room = 8;

    while (room < 2 * values)
        room *= 2;
    return room;
}

/* --- few pixels ------------------------------------------------------------------------------ */

/* A footprint, up to a multiple of LANES with invalid pixels. */
struct few {
    float value[FEW], part[FEW]; /* of each pixel, and the area that it has */
    float area[FEW];             /* of all pixels with the value of this one, which is the first */
    int32_t first[FEW];          /* that has the value of this one; of an invalid one itself */
};

/* Returns how many pixels there are. */
static int32_t gather(const struct pb_resample_job *job, size_t column, const struct pb_taps *y,
                      struct few *few)
{
    const struct pb_resample_columns *const c = &job->columns;
    const struct pb_taps *const x = &c->taps[column];
    const float *const weight = c->weight + column * c->column_step;
    const struct pb_rect *const in = &job->source.rect;
    const float *row =
        job->source.data + (size_t)(y->first - in->y) * (size_t)in->w + (size_t)(x->first - in->x);
    int32_t n = 0;

    for (int32_t j = 0; j < y->n; j++, row += in->w)
        for (int32_t k = 0; k < x->n; k++, n++) {
            few->value[n] = row[k];
            few->part[n] = job->areas.down[j] * weight[k];
        }
    for (int32_t i = n; i % LANES != 0; i++)
        few->value[i] = pb_pixel_nan();
    return n;
}

static bool is_one_value(const float *value, int32_t n)
{
    int32_t differ = 0;

    for (int32_t i = 0; i < n; i++)
        differ |= value[i] != value[0];
    return differ == 0;
}

/* LANES pixels, which stay in registers while all pixels are compared with them. */
typedef float values __attribute__((vector_size(LANES * sizeof(float))));
typedef int32_t places __attribute__((vector_size(LANES * sizeof(int32_t))));

PB_CLONES static void find_first(struct few *few, int32_t n)
{
    for (int32_t from = 0; from < n; from += LANES) {
        const int32_t end = from + LANES < n ? from + LANES : n;
        values value;
        places first = (places){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} + from;

        memcpy(&value, few->value + from, sizeof value);
        for (int32_t k = end - 1; k >= 0; k--) {
            const places same = value == few->value[k];

            first = (same & k) | (~same & first);
        }
        memcpy(few->first + from, &first, sizeof first);
    }
}

/* A number that rises with the value. */
static inline int32_t rank_of(float value)
{
    int32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits < 0 ? bits ^ INT32_MAX : bits;
}

/* The value of the largest area, of equal ones the smallest; n: a multiple of LANES. Pixels that
 * are not the first of their value have no area. */
PB_CLONES static float choose_of_few(const struct few *few, int32_t n)
{
    int32_t most = 0, least = INT32_MAX;

    for (int32_t i = 0; i < n; i++) {
        const int32_t area = rank_of(few->area[i]);

        most = area > most ? area : most;
    }
    for (int32_t i = 0; i < n; i++) {
        const int32_t rank = rank_of(few->area[i]) == most ? rank_of(few->value[i]) : INT32_MAX;

        least = rank < least ? rank : least;
    }
    if (most == 0)
        return pb_pixel_nan();
    const int32_t bits = least < 0 ? least ^ INT32_MAX : least;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static float mode_of_few(const struct pb_resample_job *job, size_t column, const struct pb_taps *y)
{
    struct few few;
    const int32_t n = gather(job, column, y, &few);
    float all = 0.0f;

    if (n > 0 && few.value[0] == few.value[n - 1] && is_one_value(few.value, n)) {
        for (int32_t i = 0; i < n; i++)
            all = all + few.part[i];
        return all > 0.0f ? few.value[0] : pb_pixel_nan();
    }
    const int32_t padded = (n + LANES - 1) / LANES * LANES;
    find_first(&few, n);
    memset(few.area, 0, (size_t)padded * sizeof few.area[0]);
    for (int32_t i = 0; i < n; i++)
        if (few.value[i] == few.value[i])
            few.area[few.first[i]] = few.area[few.first[i]] + few.part[i];
    return choose_of_few(&few, padded);
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

void pb_resample_mode_row(const struct pb_resample_job *job, const struct pb_taps *y, float *out)
{
    const size_t w = (size_t)job->out->rect.w;

    for (int32_t j = 0; j < y->n; j++)
        job->areas.down[j] = pb_tap_weight(PB_MODE, y, y->first + j);
    for (size_t i = 0; i < w; i++)
        out[i] = (size_t)job->columns.taps[i].n * (size_t)y->n > FEW ? mode_of_many(job, i, y)
                                                                     : mode_of_few(job, i, y);
}
