/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Warping on the CPU: a part of a row at a time, first the positions, square by square of the tree,
 * then the pixels. Kernels of their own width are made without a branch, all pixels of the part
 * side by side; the order of additions is that of pb_resample_sum, hence the bits, too. A pixel
 * whose sum is NaN has a neighbour that is invalid or not there, and is made by the pixel function.
 */
#include "kernels/resample/warp_area.h"
#include "kernels/resample/warp_part.h"

#include <assert.h>

#define PART_PX PB_WARP_PART_PX
static_assert(PB_WARP_NARROW_MOST <= PB_WARP_TAPS_MOST, "a part has room for narrow kernels");

int32_t pb_warp_reach(const struct pb_warp_job *job)
{
    const double scale = job->scale_x > job->scale_y ? job->scale_x : job->scale_y;
    const double reach = ceil(pb_tap_reach(job->how) * scale);
    /* No pixel is farther away than the source is long, however large new pixels are on it. */
    const int32_t most = job->source_w > job->source_h ? job->source_w : job->source_h;

    return (reach < most ? (int32_t)reach : most) + 1;
}

size_t pb_warp_temp_px(const struct pb_warp_job *job, size_t w)
{
    (void)job;
    (void)w;
    return sizeof(struct pb_warp_part) / sizeof(float) + 2;
}

/* --- positions -------------------------------------------------------------------------------- */

/* Of n pixels from `x` on (on the warp's new grid), which lie in one square. */
PB_CLONES static void place_run(const struct pb_warp_job *job, const struct pb_warp_row *row,
                                double column, double *restrict x, double *restrict y, int32_t n)
{
    const struct pb_warp_row r = *row;
    const struct pb_map to = job->to, from = job->from;

    for (int32_t i = 0; i < n; i++) {
        const double at = (column + i) * to.scale_x + to.offset_x;
        const double f = (at - r.left) * r.per_px;

        x[i] = (r.x.v + f * (r.x.b + f * r.x.c)) * from.scale_x + from.offset_x;
        y[i] = (r.y.v + f * (r.y.b + f * r.y.c)) * from.scale_y + from.offset_y;
    }
}

/* How many pixels from `column` on, at most n, lie in the square. */
static int32_t run_length(const struct pb_warp_job *job, const struct pb_warp_square *s,
                          double column, int32_t n)
{
    const double end = s->x + s->size;
    const double guess = ((end - job->to.offset_x) / job->to.scale_x) - column;
    int32_t length = guess < 1 ? 1 : guess < n ? (int32_t)guess : n;

    while (length > 1 && (column + (length - 1)) * job->to.scale_x + job->to.offset_x >= end)
        length--;
    while (length < n && (column + length) * job->to.scale_x + job->to.offset_x < end)
        length++;
    return length;
}

/* Pixels of the part whose centres lie beyond the new grid are nowhere. */
static void hide_beyond(const struct pb_warp_job *job, int32_t column, int32_t row,
                        struct pb_warp_part *p)
{
    const struct pb_map to = job->to;
    const int32_t w = job->warp->w;
    const bool row_is_on = pb_warp_is_on(row + 0.5, to.scale_y, to.offset_y, job->warp->h);

    if (row_is_on && pb_warp_is_on(column + 0.5, to.scale_x, to.offset_x, w) &&
        pb_warp_is_on(column + p->n - 0.5, to.scale_x, to.offset_x, w))
        return;
    for (int32_t i = 0; i < p->n; i++)
        if (!row_is_on || !pb_warp_is_on(column + i + 0.5, to.scale_x, to.offset_x, w))
            p->x.low[i] = p->y.low[i] = (double)pb_pixel_nan();
}

/* Places of the pixels of a part from (column, row) on: that far `within` each, to the right and
 * down; 0.5 is the centre. */
struct spots {
    int32_t column, row;
    double within;
    const float *heights; /* of these places; NULL: they do not count */
};

/* By the tree of one height. */
static void place_by(const struct pb_warp_job *job, const struct pb_warp *warp,
                     const struct spots *at, int32_t n_px, double *x, double *y)
{
    const double down =
        pb_warp_to(at->row + at->within, job->to.scale_y, job->to.offset_y, warp->h);

    for (int32_t i = 0; i < n_px;) {
        const double first = at->column + i + at->within;
        const struct pb_warp_square s =
            pb_warp_find(warp, first * job->to.scale_x + job->to.offset_x, down);
        const struct pb_warp_row r = pb_warp_row_of(warp, &s, down);
        /* The last square of a row reaches as far as the grid. */
        const bool last = s.x + s.size >= (double)warp->cols * warp->side;
        const int32_t n = last ? n_px - i : run_length(job, &s, first, n_px - i);

        place_run(job, &r, first, x + i, y + i, n);
        i += n;
    }
}

/* Places whose heights lie in the piece that begins with height `first`; the others stay. */
static void place_piece(const struct pb_warp_job *job, uint32_t first, const struct spots *at,
                        struct pb_warp_part *p, double *x, double *y)
{
    int32_t n = 0;

    for (int32_t i = 0; i < p->n; i++)
        n += pb_warp_piece_of(job->warp, at->heights[i]).first == first;
    if (n == 0)
        return;
    for (uint32_t k = 0; k < 3; k++)
        place_by(job, pb_warp_level(job->warp, first + k), at, p->n, p->at_x[k], p->at_y[k]);
    for (int32_t i = 0; i < p->n; i++) {
        const struct pb_warp_piece piece = pb_warp_piece_of(job->warp, at->heights[i]);
        const struct pb_warp_at low = {p->at_x[0][i], p->at_y[0][i]},
                                middle = {p->at_x[1][i], p->at_y[1][i]},
                                high = {p->at_x[2][i], p->at_y[2][i]};

        if (piece.first == first) {
            const struct pb_warp_at between = pb_warp_between(&low, &middle, &high, piece.f);

            x[i] = between.x;
            y[i] = between.y;
        }
    }
}

/* Places beyond the new grid to the left and right, which the runs of squares leave. */
static void place_beyond(const struct pb_warp_job *job, const struct spots *at,
                         const struct pb_warp_part *p, double *x, double *y)
{
    for (int32_t i = 0; i < p->n; i++) {
        const double column = at->column + i + at->within;

        if (pb_warp_is_on(column, job->to.scale_x, job->to.offset_x, job->warp->w))
            continue;
        const struct pb_warp_at to = pb_warp_place(job, column, at->row + at->within,
                                                   at->heights != NULL ? at->heights[i] : 0.0f);
        x[i] = to.x;
        y[i] = to.y;
    }
}

static void place_part(const struct pb_warp_job *job, const struct spots *at,
                       struct pb_warp_part *p, double *x, double *y)
{
    const struct pb_map to = job->to;
    const int32_t w = job->warp->w;

    if (at->heights == NULL)
        place_by(job, job->warp, at, p->n, x, y);
    for (uint32_t first = 0; at->heights != NULL && first + 2 < job->warp->n_heights; first += 2)
        place_piece(job, first, at, p, x, y);
    if (!pb_warp_is_on(at->column + at->within, to.scale_x, to.offset_x, w) ||
        !pb_warp_is_on(at->column + p->n - 1 + at->within, to.scale_x, to.offset_x, w))
        place_beyond(job, at, p, x, y);
}

/* --- kernels of their own width --------------------------------------------------------------- */

/* Taps and their weights of the pixels of a part. how and taps are constants where it is called. */
static inline __attribute__((always_inline)) void
weigh(enum pb_resampling how, int taps, const struct pb_rect *rect, struct pb_warp_part *p)
{
    const double right = (double)rect->x + rect->w - taps,
                 bottom = (double)rect->y + rect->h - taps;
    const double left = rect->x, top = rect->y;
    const int32_t row_px = rect->w, n = p->n;

    for (int32_t i = 0; i < n; i++) {
        double x, y;
        const bool in_x = pb_warp_first_tap(p->x.low[i], taps, left, right, &x);
        const bool in_y = pb_warp_first_tap(p->y.low[i], taps, top, bottom, &y);

        p->inside[i] = in_x & in_y;
        p->at[i] = (int32_t)(y - top) * row_px + (int32_t)(x - left);
        for (int k = 0; k < taps; k++) {
            p->x.weight[k][i] = pb_warp_weight(how, p->x.low[i], x + k);
            p->y.weight[k][i] = pb_warp_weight(how, p->y.low[i], y + k);
        }
    }
}

static inline __attribute__((always_inline)) void add_up(int taps, const float *restrict data,
                                                         int32_t row_px,
                                                         const struct pb_warp_part *p,
                                                         float *restrict out)
{
    const int32_t n = p->n;

    for (int32_t i = 0; i < n; i++) {
        float sum = 0.0f, total = 0.0f, weights = 0.0f;

        for (int k = 0; k < taps; k++)
            weights = weights + p->x.weight[k][i];
        for (int j = 0; j < taps; j++) {
            float row = 0.0f;

            for (int k = 0; k < taps; k++)
                row = row + p->x.weight[k][i] * data[p->at[i] + j * row_px + k];
            sum = sum + p->y.weight[j][i] * row;
            total = total + p->y.weight[j][i] * weights;
        }
        sum = sum / total;
        out[i] = p->inside[i] ? pb_pixel_result(sum) : pb_pixel_nan();
    }
}

PB_CLONES static void make_bilinear(const struct pb_plane *in, struct pb_warp_part *p, float *out)
{
    weigh(PB_BILINEAR, 2, &in->rect, p);
    add_up(2, in->data, in->rect.w, p, out);
}

PB_CLONES static void make_cubic(const struct pb_plane *in, struct pb_warp_part *p, float *out)
{
    weigh(PB_CUBIC, 4, &in->rect, p);
    add_up(4, in->data, in->rect.w, p, out);
}

PB_CLONES static void make_lanczos(const struct pb_plane *in, struct pb_warp_part *p, float *out)
{
    weigh(PB_LANCZOS, 6, &in->rect, p);
    add_up(6, in->data, in->rect.w, p, out);
}

/* Whether the part was made, but for pixels that are NaN. */
static bool make_narrow(const struct pb_warp_job *job, const struct pb_plane *in,
                        struct pb_warp_part *p, float *out)
{
    const int32_t taps = pb_warp_narrow(job);

    if (in->rect.w < taps || in->rect.h < taps || (int64_t)in->rect.w * in->rect.h > INT32_MAX)
        return false;
    if (job->how == PB_BILINEAR)
        make_bilinear(in, p, out);
    else if (job->how == PB_CUBIC)
        make_cubic(in, p, out);
    else
        make_lanczos(in, p, out);
    return true;
}

/* --- rows ------------------------------------------------------------------------------------- */

/* What a row of a plane is made of, and where it begins. */
struct from {
    const struct pb_plane *in, *heights; /* heights: NULL: they do not count */
    int32_t column, row;
};

/* The pixels one by one, or those that are NaN. */
static void make_singly(const struct pb_warp_job *job, const struct from *from, bool all,
                        struct pb_warp_part *p, float *out)
{
    const struct pb_resample_source source = {from->in->data, from->in->rect};

    for (int32_t i = 0; i < p->n; i++) {
        const struct pb_warp_at at = {p->x.low[i], p->y.low[i]};

        if (all || out[i] != out[i])
            out[i] = pb_warp_kernel_pixel(job, &source, &at);
    }
}

/* Centres of the row's pixels, with the heights there. */
static void find_places(const struct pb_warp_job *job, const struct from *from,
                        struct pb_warp_part *p)
{
    const float *const heights =
        from->heights != NULL ? pb_plane_at(from->heights, from->column, from->row) : NULL;
    const struct spots at = {from->column, from->row, 0.5, heights};

    place_part(job, &at, p, p->x.low, p->y.low);
    hide_beyond(job, from->column, from->row, p);
}

static void make_part(const struct pb_warp_job *job, const struct from *from,
                      struct pb_warp_part *p, float *out)
{
    bool made = false;

    find_places(job, from, p);
    if (job->how == PB_NEAREST && pb_warp_make_nearest(job, from->in, p, out))
        return;
    if (pb_warp_narrow(job) > 0)
        made = make_narrow(job, from->in, p, out);
    else if (job->how != PB_NEAREST)
        made = pb_warp_make_wide(job, from->in, p, out);
    make_singly(job, from, !made, p, out);
}

/* --- areas ------------------------------------------------------------------------------------ */

/* Corners of the pixels of a part above (0) or below (1) them. */
static void find_corners(const struct pb_warp_job *job, const struct from *from, int below,
                         struct pb_warp_part *p)
{
    const int32_t n = p->n, row = from->row + below;
    const float *const heights =
        from->heights != NULL ? pb_plane_at(from->heights, from->column, row) : NULL;
    const struct spots at = {from->column, row, 0.0, heights};

    p->n = n + 1;
    place_part(job, &at, p, p->corners.x[below], p->corners.y[below]);
    p->n = n;
}

/* Whether positions jump between the corners of one of n pixels. */
static bool holds_torn(const struct pb_warp_job *job, const struct from *from, int32_t n)
{
    struct pb_warp_footprint footprint;
    bool is_torn = false;

    if (job->warp->n_torn == 0 || job->warp->n_heights > 1)
        return false;
    for (int32_t i = 0; i < n && !is_torn; i++)
        is_torn = pb_warp_is_torn(job, from->column + i, from->row, &footprint);
    return is_torn;
}

static bool is_on_grid(const struct pb_warp_job *job, const struct from *from, int32_t n)
{
    const struct pb_map to = job->to;
    const struct pb_warp *const warp = job->warp;

    return pb_warp_is_on(from->row + 0.5, to.scale_y, to.offset_y, warp->h) &&
           pb_warp_is_on(from->column + 0.5, to.scale_x, to.offset_x, warp->w) &&
           pb_warp_is_on(from->column + n - 0.5, to.scale_x, to.offset_x, warp->w);
}

/* A part of PART_PX - 1 pixels at most: their corners are one more. */
static void make_area_part(const struct pb_warp_job *job, const struct from *from,
                           struct pb_warp_part *p, float *out)
{
    const struct pb_resample_source source = {from->in->data, from->in->rect};

    find_corners(job, from, 0, p);
    find_corners(job, from, 1, p);
    for (int32_t first = 0; first < p->n; first += PB_WARP_AREA_LANES) {
        const int32_t left = p->n - first;
        const int32_t n = left < PB_WARP_AREA_LANES ? left : PB_WARP_AREA_LANES;
        const struct from part = {from->in, from->heights, from->column + first, from->row};

        if (is_on_grid(job, &part, n) && !holds_torn(job, &part, n) &&
            pb_warp_make_areas(job, from->in, p, first, n, out + first))
            continue;
        for (int32_t i = 0; i < n; i++)
            out[first + i] =
                pb_warp_area_pixel(job, &source, part.column + i, from->row, from->heights);
    }
}

void pb_warp_run_cpu(const struct pb_warp_job *job, const struct pb_plane *in,
                     const struct pb_plane *heights, const struct pb_plane *out, float *temp)
{
    struct pb_warp_part *const p = (struct pb_warp_part *)(((uintptr_t)temp + 7) & ~(uintptr_t)7);
    const int32_t w = out->rect.w;

    const bool is_area = pb_warp_is_area(job->how);
    const int32_t part_px = is_area ? PART_PX - 1 : PART_PX;

    for (int32_t k = 0; k < out->rect.h; k++)
        for (int32_t i = 0; i < w; i += part_px) {
            const struct from from = {in, heights, out->rect.x + i, out->rect.y + k};
            float *const to = out->data + (size_t)k * (size_t)w + (size_t)i;

            p->n = w - i < part_px ? w - i : part_px;
            if (is_area)
                make_area_part(job, &from, p, to);
            else
                make_part(job, &from, p, to);
        }
}
