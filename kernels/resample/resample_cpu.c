/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Resampling on the CPU. Weighted sums are separable: the row sums of a row of the source are made
 * once for all made rows that need them, and kept in a ring of as many rows as a kernel is high;
 * the order of additions is that of pb_resample_sum, hence the bits, too. A pixel whose sum is NaN
 * has an invalid neighbour, or values too large to add up, and is made again by the pixel function.
 */
#include "kernels/resample/resample_pixel.h"

#include <string.h>

/* Weights of the columns: made pixel x has those of its taps at weight[x * taps]. */
struct columns {
    struct pb_taps *taps;
    float *weight, *total;
    size_t room; /* weights of a column */
};

/* More than any image has: the source's whole grid. */
#define REACH_MAX (1 << 28)

/* MODE: a value, and the area that has it. */
struct share {
    float value, area;
};

struct job {
    const struct pb_resample *resample;
    const struct pb_plane *in, *out;
    struct pb_resample_source source;
    struct columns columns;
    float *total;         /* weights of the row that is being made */
    float *ring;          /* row sums */
    struct share *shares; /* MODE: of the values of a footprint; in the place of sums */
    int32_t *table;       /* MODE: which share a value has; -1 = free */
    int32_t *ring_row;    /* which row of the source each place has; -1 = none */
    size_t ring_rows;
};

const char *pb_resampling_name(enum pb_resampling how)
{
    static const char *const names[PB_RESAMPLING_COUNT] = {"nearest", "bilinear", "cubic",
                                                           "average", "mode",     "lanczos"};
    return names[how];
}

bool pb_resampling_chooses(enum pb_resampling how)
{
    return how == PB_NEAREST || how == PB_MODE;
}

static bool is_weighted(enum pb_resampling how)
{
    return pb_tap_is_kernel(how) || how == PB_AVERAGE;
}

/* Half the width of a kernel along an axis, in pixels of the source. */
static double reach_of(enum pb_resampling how, double scale)
{
    const double width = scale > 1.0 ? scale : 1.0;

    return pb_tap_reach(how) * width;
}

int32_t pb_resample_reach(const struct pb_resample *resample, int32_t margin)
{
    const struct pb_map *const map = &resample->map;
    const double scale = map->scale_x > map->scale_y ? map->scale_x : map->scale_y;

    /* One pixel more on both grids: rects are rounded outwards, sums of float64 are not exact. */
    const double reach = ceil((margin + 1.0) * scale + reach_of(resample->how, scale)) + 1;
    return reach < REACH_MAX ? (int32_t)reach : REACH_MAX;
}

static size_t taps_room(enum pb_resampling how, double scale)
{
    return 2 * (size_t)ceil(reach_of(how, scale)) + 2;
}

/* A power of two, twice as many as there may be values. */
static size_t table_room(size_t values)
{
    size_t room = 8;

    while (room < 2 * values)
        room *= 2;
    return room;
}

size_t pb_resample_temp_px(const struct pb_resample *resample, size_t w)
{
    const size_t taps_px = (sizeof(struct pb_taps) + sizeof(float) - 1) / sizeof(float);
    const size_t across = taps_room(resample->how, resample->map.scale_x);
    const size_t down = taps_room(resample->how, resample->map.scale_y);

    if (resample->how == PB_NEAREST)
        return w * taps_px + 2;
    if (resample->how == PB_MODE)
        return w * (taps_px + across + 1) + 2 * across * down + table_room(across * down) + 2;
    return w * (taps_px + across + 2 + down) + down + 2;
}

/* Carves the temporary memory: what needs the strictest alignment first. */
static void lay_out(struct job *job, float *temp)
{
    const enum pb_resampling how = job->resample->how;
    const size_t w = (size_t)job->out->rect.w;
    const uintptr_t start = ((uintptr_t)temp + 7) & ~(uintptr_t)7;
    struct columns *const c = &job->columns;

    c->taps = (struct pb_taps *)start;
    c->room = taps_room(how, job->resample->map.scale_x);
    c->weight = (float *)(c->taps + w);
    c->total = c->weight + w * c->room;
    job->shares = (struct share *)(c->total + w);
    job->table = (int32_t *)(job->shares + c->room * taps_room(how, job->resample->map.scale_y));
    job->total = c->total + w;
    job->ring = job->total + w;
    job->ring_rows = taps_room(how, job->resample->map.scale_y);
    job->ring_row = (int32_t *)(job->ring + w * job->ring_rows);
}

static void find_columns(struct job *job)
{
    const struct pb_resample *const r = job->resample;
    struct columns *const c = &job->columns;

    for (int32_t i = 0; i < job->out->rect.w; i++) {
        struct pb_taps *const taps = &c->taps[i];

        *taps =
            pb_taps_of(r->how, job->out->rect.x + i, r->map.scale_x, r->map.offset_x, r->source_w);
        if (r->how == PB_NEAREST)
            continue;
        c->total[i] = 0.0f;
        for (int32_t k = 0; k < taps->n; k++) {
            const float weight = pb_tap_weight(r->how, taps, taps->first + k);

            c->weight[(size_t)i * c->room + (size_t)k] = weight;
            c->total[i] = c->total[i] + weight;
        }
    }
}

/* --- mode ------------------------------------------------------------------------------------ */

/* The share of a value, new or known: open addressing by the value's bits. */
static struct share *find_share(const struct job *job, size_t room, size_t *n, float value)
{
    const float plain = value + 0.0f; /* -0 is 0 */
    uint32_t bits;

    memcpy(&bits, &plain, sizeof bits);
    for (size_t at = (bits * 0x9e3779b1u) >> 7;; at++) {
        int32_t *const place = &job->table[at & (room - 1)];

        if (*place < 0) {
            *place = (int32_t)*n;
            job->shares[*n] = (struct share){value, 0.0f};
            return &job->shares[(*n)++];
        }
        if (job->shares[*place].value == value)
            return &job->shares[*place];
    }
}

/* pb_resample_mode with the weights at hand. Areas are added up in the same order. */
static float mode_of(const struct job *job, size_t column, const struct pb_taps *y)
{
    const struct pb_taps *const x = &job->columns.taps[column];
    const float *const weight = job->columns.weight + column * job->columns.room;
    const size_t room = table_room((size_t)x->n * (size_t)y->n);
    struct share best = {pb_pixel_nan(), 0.0f};
    size_t n = 0;

    memset(job->table, 0xff, room * sizeof *job->table);
    for (int32_t j = y->first; j < y->first + y->n; j++) {
        const float row_weight = pb_tap_weight(PB_MODE, y, j);

        for (int32_t k = 0; k < x->n; k++) {
            const float value = pb_resample_at(&job->source, x->first + k, j);

            if (value == value) {
                struct share *const share = find_share(job, room, &n, value);

                share->area = share->area + row_weight * weight[k];
            }
        }
    }
    for (size_t i = 0; i < n; i++) {
        const struct share *const s = &job->shares[i];

        if (s->area > best.area ||
            (s->area == best.area && best.area > 0.0f && s->value < best.value))
            best = *s;
    }
    return best.value;
}

/* --- sums ------------------------------------------------------------------------------------ */

/* The row sums of row y of the source. */
static const float *row_sums(const struct job *job, int32_t y)
{
    const struct columns *const c = &job->columns;
    const size_t w = (size_t)job->out->rect.w, place = (size_t)y % job->ring_rows;
    float *const sums = job->ring + place * w;
    const struct pb_rect *const in = &job->in->rect;
    const float *const row = job->in->data + (size_t)(y - in->y) * (size_t)in->w;

    if (job->ring_row[place] == y)
        return sums;
    job->ring_row[place] = y;
    for (size_t i = 0; i < w; i++) {
        const float *const weight = c->weight + i * c->room;
        float sum = 0.0f;

        for (int32_t k = 0; k < c->taps[i].n; k++)
            sum = sum + weight[k] * row[c->taps[i].first - in->x + k];
        sums[i] = sum;
    }
    return sums;
}

/* out += weight * sums, total += weight * row totals. */
PB_CLONES static void add_row(float *restrict out, float *restrict total,
                              const float *restrict sums, const float *restrict row_total,
                              float weight, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        out[i] = out[i] + weight * sums[i];
        total[i] = total[i] + weight * row_total[i];
    }
}

/* The made row, its pixels with invalid neighbours made again one by one. */
static void make_weighted_row(const struct job *job, const struct pb_taps *y, float *out)
{
    const struct pb_resample *const r = job->resample;
    const size_t w = (size_t)job->out->rect.w;
    const bool centred = r->how != PB_AVERAGE;
    float *const total = job->total;

    memset(out, 0, w * sizeof *out);
    memset(total, 0, w * sizeof *total);
    for (int32_t j = y->first; j < y->first + y->n; j++)
        add_row(out, total, row_sums(job, j), job->columns.total, pb_tap_weight(r->how, y, j), w);
    for (size_t i = 0; i < w; i++) {
        const struct pb_taps *const x = &job->columns.taps[i];
        const bool inside = x->n > 0 && y->n > 0 &&
                            (!centred || (x->centre >= 0 && x->centre < r->source_w &&
                                          y->centre >= 0 && y->centre < r->source_h));

        if (inside && out[i] == out[i] && total[i] > 0.0f)
            out[i] = pb_pixel_result(out[i] / total[i]);
        else
            out[i] = pb_resample_pixel(r, &job->source, x, y);
    }
}

static void make_rows(struct job *job)
{
    const struct pb_resample *const r = job->resample;
    const size_t w = (size_t)job->out->rect.w;

    for (int32_t k = 0; k < job->out->rect.h; k++) {
        const struct pb_taps y =
            pb_taps_of(r->how, job->out->rect.y + k, r->map.scale_y, r->map.offset_y, r->source_h);
        float *const out = job->out->data + (size_t)k * w;

        if (is_weighted(r->how)) {
            make_weighted_row(job, &y, out);
            continue;
        }
        for (size_t i = 0; i < w; i++)
            out[i] = r->how == PB_MODE
                         ? mode_of(job, i, &y)
                         : pb_resample_pixel(r, &job->source, &job->columns.taps[i], &y);
    }
}

void pb_resample_run_cpu(const struct pb_resample *resample, const struct pb_plane *in,
                         const struct pb_plane *out, float *temp)
{
    struct job job = {.resample = resample, .in = in, .out = out};

    job.source = (struct pb_resample_source){in->data, in->rect};
    lay_out(&job, temp);
    find_columns(&job);
    if (is_weighted(resample->how))
        for (size_t i = 0; i < job.ring_rows; i++)
            job.ring_row[i] = -1;
    make_rows(&job);
}
