/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Resampling on the CPU. Weighted sums are separable: the row sums of a row of the source are made
 * once for all made rows that need them, and kept in a ring of as many rows as a kernel is high;
 * the order of additions is that of pb_resample_sum, hence the bits, too. A pixel whose sum is NaN
 * has an invalid neighbour, or values too large to add up, and is made again by the pixel function.
 */
#include "kernels/resample/resample_job.h"

/* More than any image has: the source's whole grid. */
#define REACH_MAX (1 << 28)

#define STRIDE_MOST 4

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

size_t pb_resample_temp_px(const struct pb_resample *resample, size_t w)
{
    const size_t taps_px = (sizeof(struct pb_taps) + sizeof(float) - 1) / sizeof(float);
    const size_t across = taps_room(resample->how, resample->map.scale_x);
    const size_t down = taps_room(resample->how, resample->map.scale_y);

    if (resample->how == PB_NEAREST)
        return w * taps_px + 2;
    if (resample->how == PB_MODE)
        return w * (taps_px + across) + 2 * across * down + down +
               pb_resample_table_room(across * down) + 2;
    return w * (taps_px + across + 4 + down) + down + 2;
}

/* Carves the temporary memory: what needs the strictest alignment first. */
static void lay_out(struct pb_resample_job *job, float *temp)
{
    const enum pb_resampling how = job->resample->how;
    const size_t w = (size_t)job->out->rect.w;
    const size_t across = taps_room(how, job->resample->map.scale_x);
    const size_t down = taps_room(how, job->resample->map.scale_y);
    struct pb_resample_columns *const c = &job->columns;

    c->taps = (struct pb_taps *)(((uintptr_t)temp + 7) & ~(uintptr_t)7);
    c->weight = (float *)(c->taps + w);
    c->column_step = how == PB_MODE ? across : 1;
    c->tap_step = how == PB_MODE ? 1 : w;
    if (how == PB_MODE) {
        job->areas.value = c->weight + w * across;
        job->areas.area = job->areas.value + across * down;
        job->areas.down = job->areas.area + across * down;
        job->areas.first = (int32_t *)(job->areas.down + down);
        return;
    }
    c->total = c->weight + w * across;
    job->total = c->total + w;
    job->ring = job->total + w;
    job->ring_rows = down;
    job->ring_row = (int32_t *)(job->ring + w * down);
    c->first = job->ring_row + down;
    c->inside = (bool *)(c->first + w);
}

static void find_taps(struct pb_resample_job *job)
{
    const struct pb_resample *const r = job->resample;
    struct pb_resample_columns *const c = &job->columns;

    for (int32_t i = 0; i < job->out->rect.w; i++) {
        c->taps[i] =
            pb_taps_of(r->how, job->out->rect.x + i, r->map.scale_x, r->map.offset_x, r->source_w);
        c->most = c->taps[i].n > c->most ? c->taps[i].n : c->most;
    }
}

/* Weights of the taps that a column has from `first` on. */
static void weigh_column(struct pb_resample_job *job, size_t column, int32_t first, int32_t n)
{
    struct pb_resample_columns *const c = &job->columns;
    const struct pb_taps *const taps = &c->taps[column];

    for (int32_t k = 0; k < n; k++) {
        const int32_t tap = first + k;
        const bool own = tap >= taps->first && tap < taps->first + taps->n;

        c->weight[column * c->column_step + (size_t)k * c->tap_step] =
            own ? pb_tap_weight(job->resample->how, taps, tap) : 0.0f;
    }
}

/* The columns around the middle one whose first taps are as far apart as there. */
static void find_even(struct pb_resample_columns *c, size_t w)
{
    const size_t middle = w / 2;

    c->stride = w > 1 ? c->first[middle] - c->first[middle - 1] : 0;
    if (c->stride < 2 || c->stride > STRIDE_MOST)
        c->stride = 0;
    c->even_from = c->even_to = middle;
    while (c->stride > 0 && c->even_from > 0 &&
           c->first[c->even_from] - c->first[c->even_from - 1] == c->stride)
        c->even_from--;
    while (c->stride > 0 && c->even_to < w &&
           (c->even_to == c->even_from ||
            c->first[c->even_to] - c->first[c->even_to - 1] == c->stride))
        c->even_to++;
}

/* Of sums: see struct pb_resample_columns. */
static void level_columns(struct pb_resample_job *job)
{
    const struct pb_resample *const r = job->resample;
    const struct pb_rect *const in = &job->in->rect;
    struct pb_resample_columns *const c = &job->columns;
    const int32_t last = in->w - c->most;

    for (size_t i = 0; i < (size_t)job->out->rect.w; i++) {
        const struct pb_taps *const taps = &c->taps[i];
        const int32_t wanted = taps->n > 0 ? taps->first - in->x : 0;

        c->first[i] = wanted < last ? wanted : last;
        weigh_column(job, i, c->first[i] + in->x, c->most);
        c->total[i] = 0.0f;
        for (int32_t k = 0; k < c->most; k++)
            c->total[i] = c->total[i] + c->weight[i + (size_t)k * c->tap_step];
        c->inside[i] = taps->n > 0 &&
                       (r->how == PB_AVERAGE || (taps->centre >= 0 && taps->centre < r->source_w));
    }
    find_even(c, (size_t)job->out->rect.w);
}

/* --- sums ------------------------------------------------------------------------------------ */

/* sums += weight * row[first], one tap of each column. */
PB_CLONES static void add_taps(float *restrict sums, const float *restrict weight,
                               const float *restrict row, const int32_t *restrict first, size_t n)
{
    for (size_t i = 0; i < n; i++)
        sums[i] = sums[i] + weight[i] * row[first[i]];
}

/* The same of columns that are even. */
PB_CLONES static void add_even_taps(float *restrict sums, const float *restrict weight,
                                    const float *restrict row, int32_t stride, size_t n)
{
    if (stride == 2)
        for (size_t i = 0; i < n; i++)
            sums[i] = sums[i] + weight[i] * row[2 * i];
    else if (stride == 3)
        for (size_t i = 0; i < n; i++)
            sums[i] = sums[i] + weight[i] * row[3 * i];
    else
        for (size_t i = 0; i < n; i++)
            sums[i] = sums[i] + weight[i] * row[4 * i];
}

/* The row sums of row y of the source. */
static const float *row_sums(const struct pb_resample_job *job, int32_t y)
{
    const struct pb_resample_columns *const c = &job->columns;
    const size_t w = (size_t)job->out->rect.w, place = (size_t)y % job->ring_rows;
    float *const sums = job->ring + place * w;
    const struct pb_rect *const in = &job->in->rect;
    const float *row = job->in->data + (size_t)(y - in->y) * (size_t)in->w;
    const size_t from = c->even_from, to = c->even_to;

    if (job->ring_row[place] == y)
        return sums;
    job->ring_row[place] = y;
    memset(sums, 0, w * sizeof *sums);
    for (int32_t k = 0; k < c->most; k++, row++) {
        const float *const weight = c->weight + (size_t)k * c->tap_step;

        add_taps(sums, weight, row, c->first, from);
        if (to > from)
            add_even_taps(sums + from, weight + from, row + c->first[from], c->stride, to - from);
        add_taps(sums + to, weight + to, row, c->first + to, w - to);
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

/* NaN where there is no pixel, or an invalid one among those of the sum. */
PB_CLONES static void end_row(float *restrict out, const float *restrict total,
                              const bool *restrict inside, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const float value = pb_pixel_result(out[i] / total[i]);
        const bool is_there = inside[i] & (total[i] > 0.0f);

        out[i] = is_there ? value : pb_pixel_nan();
    }
}

/* The made row, its pixels with invalid neighbours made again one by one. */
static void make_weighted_row(const struct pb_resample_job *job, const struct pb_taps *y,
                              float *out)
{
    const struct pb_resample *const r = job->resample;
    const size_t w = (size_t)job->out->rect.w;

    memset(out, 0, w * sizeof *out);
    memset(job->total, 0, w * sizeof *job->total);
    for (int32_t j = y->first; j < y->first + y->n; j++)
        add_row(out, job->total, row_sums(job, j), job->columns.total, pb_tap_weight(r->how, y, j),
                w);
    end_row(out, job->total, job->columns.inside, w);
    for (size_t i = 0; i < w; i++)
        if (out[i] != out[i] ||
            (r->how != PB_AVERAGE && (y->centre < 0 || y->centre >= r->source_h)))
            out[i] = pb_resample_pixel(r, &job->source, &job->columns.taps[i], y);
}

static void make_rows(const struct pb_resample_job *job)
{
    const struct pb_resample *const r = job->resample;
    const size_t w = (size_t)job->out->rect.w;

    for (int32_t k = 0; k < job->out->rect.h; k++) {
        const struct pb_taps y =
            pb_taps_of(r->how, job->out->rect.y + k, r->map.scale_y, r->map.offset_y, r->source_h);
        float *const out = job->out->data + (size_t)k * w;

        if (is_weighted(r->how))
            make_weighted_row(job, &y, out);
        else if (r->how == PB_MODE)
            pb_resample_mode_row(job, &y, out);
        else
            for (size_t i = 0; i < w; i++)
                out[i] = pb_resample_pixel(r, &job->source, &job->columns.taps[i], &y);
    }
}

void pb_resample_run_cpu(const struct pb_resample *resample, const struct pb_plane *in,
                         const struct pb_plane *out, float *temp)
{
    struct pb_resample_job job = {.resample = resample, .in = in, .out = out};

    job.source = (struct pb_resample_source){in->data, in->rect};
    lay_out(&job, temp);
    find_taps(&job);
    if (is_weighted(resample->how)) {
        level_columns(&job);
        for (size_t i = 0; i < job.ring_rows; i++)
            job.ring_row[i] = -1;
    } else if (resample->how == PB_MODE) {
        for (size_t i = 0; i < (size_t)out->rect.w; i++)
            weigh_column(&job, i, job.columns.taps[i].first, job.columns.taps[i].n);
    }
    make_rows(&job);
}
