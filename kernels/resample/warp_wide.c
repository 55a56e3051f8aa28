/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Pixels whose taps differ in number: kernels that are wider than their own because the new pixels
 * are larger than the old ones, and areas. All pixels of a part take as many taps as the one that
 * has most; those beyond its own weigh 0, which changes no sum of finite numbers. A sum that an
 * infinite or invalid tap beyond has made NaN is made again by the pixel function, as every NaN is.
 */
#include "kernels/resample/warp_part.h"

#define PX PB_WARP_PART_PX

/* --- taps -------------------------------------------------------------------------------------
 */

/* Taps from `first` to in front of `end`; more than there may be: one too many; of NaN none. */
static inline int32_t count_taps(double first, double end)
{
    const double n = end - first;
    const double at_most = n <= PB_WARP_TAPS_MOST ? n : PB_WARP_TAPS_MOST + 1;

    return n > 0.0 ? (int32_t)at_most : 0;
}

/* Those of pb_warp_taps, of a grid without edges. Returns the most of a pixel. */
PB_CLONES static int32_t find_kernel(double reach, struct pb_warp_axis *a, int32_t n)
{
    int32_t most = 0;

    for (int32_t i = 0; i < n; i++) {
        const double centre = a->low[i];

        a->first[i] = floor(centre - reach - 0.5) + 1.0;
        a->n[i] = count_taps(a->first[i], ceil(centre + reach - 0.5));
        most = a->n[i] > most ? a->n[i] : most;
    }
    return most;
}

/* --- weights ----------------------------------------------------------------------------------
 */

/* As pb_tap_weight. how is a constant where it is called. */
static inline __attribute__((always_inline)) void
weigh(enum pb_resampling how, double width, int32_t taps, struct pb_warp_axis *a, int32_t n)
{
    for (int32_t k = 0; k < taps; k++) {
        float *const weight = a->weight[k];

        for (int32_t i = 0; i < n; i++) {
            const double tap = a->first[i] + k;
            const float t = (float)(fabs(tap + 0.5 - a->low[i]) / width);
            const float w = how == PB_CUBIC     ? pb_tap_cubic(t)
                            : how == PB_LANCZOS ? pb_tap_lanczos(t)
                            : t < 1.0f          ? 1.0f - t
                                                : 0.0f;

            weight[i] = k < a->n[i] ? w : 0.0f;
        }
    }
}

PB_CLONES static void weigh_bilinear(double width, int32_t taps, struct pb_warp_axis *a, int32_t n)
{
    weigh(PB_BILINEAR, width, taps, a, n);
}

PB_CLONES static void weigh_cubic(double width, int32_t taps, struct pb_warp_axis *a, int32_t n)
{
    weigh(PB_CUBIC, width, taps, a, n);
}

PB_CLONES static void weigh_lanczos(double width, int32_t taps, struct pb_warp_axis *a, int32_t n)
{
    weigh(PB_LANCZOS, width, taps, a, n);
}

static void weigh_axis(enum pb_resampling how, double width, int32_t taps, struct pb_warp_axis *a,
                       int32_t n)
{
    if (how == PB_BILINEAR)
        weigh_bilinear(width, taps, a, n);
    else if (how == PB_CUBIC)
        weigh_cubic(width, taps, a, n);
    else
        weigh_lanczos(width, taps, a, n);
}

/* --- sums -------------------------------------------------------------------------------------
 */

/* Which pixels have all of taps_x x taps_y taps in the plane, and where; of the others any place in
 * it. */
PB_CLONES static void find_places(const struct pb_rect *rect, int32_t taps_x, int32_t taps_y,
                                  struct pb_warp_part *p)
{
    const double left = rect->x, right = (double)rect->x + rect->w - taps_x;
    const double top = rect->y, bottom = (double)rect->y + rect->h - taps_y;
    const int32_t row_px = rect->w, n = p->n;

    for (int32_t i = 0; i < n; i++) {
        const double x = p->x.first[i] >= left ? p->x.first[i] : left;
        const double y = p->y.first[i] >= top ? p->y.first[i] : top;
        const double x_in = x <= right ? x : right, y_in = y <= bottom ? y : bottom;

        p->inside[i] =
            (p->x.first[i] == x_in) & (p->y.first[i] == y_in) & (p->x.n[i] > 0) & (p->y.n[i] > 0);
        p->at[i] = (int32_t)(y_in - top) * row_px + (int32_t)(x_in - left);
    }
}

/* A row of taps: row += weight * pixel. */
PB_CLONES static void add_row(int32_t taps, const float *restrict data, struct pb_warp_part *p)
{
    const int32_t n = p->n;
    float *restrict const row = p->row;

    for (int32_t i = 0; i < n; i++)
        row[i] = 0.0f;
    for (int32_t k = 0; k < taps; k++) {
        const float *restrict const weight = p->x.weight[k];

        for (int32_t i = 0; i < n; i++)
            row[i] = row[i] + weight[i] * data[p->at[i] + k];
    }
}

PB_CLONES static void begin_sums(int32_t taps, struct pb_warp_part *p, float *restrict out)
{
    const int32_t n = p->n;

    for (int32_t i = 0; i < n; i++)
        out[i] = p->total[i] = p->across[i] = 0.0f;
    for (int32_t k = 0; k < taps; k++)
        for (int32_t i = 0; i < n; i++)
            p->across[i] = p->across[i] + p->x.weight[k][i];
}

PB_CLONES static void add_to_sums(const float *restrict weight, struct pb_warp_part *p,
                                  float *restrict out)
{
    const int32_t n = p->n;

    for (int32_t i = 0; i < n; i++) {
        out[i] = out[i] + weight[i] * p->row[i];
        p->total[i] = p->total[i] + weight[i] * p->across[i];
    }
}

PB_CLONES static void end_sums(const struct pb_warp_part *p, float *restrict out)
{
    const int32_t n = p->n;

    for (int32_t i = 0; i < n; i++) {
        const float value = pb_pixel_result(out[i] / p->total[i]);
        const bool is_there = p->inside[i] & (p->total[i] > 0.0f);

        out[i] = is_there ? value : pb_pixel_nan();
    }
}

static bool fits(const struct pb_plane *in, int32_t taps_x, int32_t taps_y)
{
    return in->rect.w >= taps_x && in->rect.h >= taps_y && taps_x > 0 && taps_y > 0 &&
           taps_x <= PB_WARP_TAPS_MOST && taps_y <= PB_WARP_TAPS_MOST &&
           (int64_t)in->rect.w * in->rect.h <= INT32_MAX;
}

bool pb_warp_make_wide(const struct pb_warp_job *job, const struct pb_plane *in,
                       struct pb_warp_part *p, float *out)
{
    const double reach = pb_tap_reach(job->how);
    const int32_t taps_x = find_kernel(reach * job->scale_x, &p->x, p->n);
    const int32_t taps_y = find_kernel(reach * job->scale_y, &p->y, p->n);

    if (!fits(in, taps_x, taps_y))
        return false;
    weigh_axis(job->how, job->scale_x, taps_x, &p->x, p->n);
    weigh_axis(job->how, job->scale_y, taps_y, &p->y, p->n);
    find_places(&in->rect, taps_x, taps_y, p);
    begin_sums(taps_x, p, out);
    for (int32_t j = 0; j < taps_y; j++) {
        add_row(taps_x, in->data + (size_t)j * (size_t)in->rect.w, p);
        add_to_sums(p->y.weight[j], p, out);
    }
    end_sums(p, out);
    return true;
}

/* --- nearest ----------------------------------------------------------------------------------
 */

PB_CLONES static void take(const float *restrict data, const struct pb_warp_part *p,
                           float *restrict out)
{
    const int32_t n = p->n;

    for (int32_t i = 0; i < n; i++) {
        const float value = data[p->at[i]];

        out[i] = p->inside[i] ? value : pb_pixel_nan();
    }
}

PB_CLONES static void find_holders(struct pb_warp_axis *a, int32_t n)
{
    for (int32_t i = 0; i < n; i++) {
        a->first[i] = floor(a->low[i] + PB_WARP_EDGE_PX);
        a->n[i] = 1;
    }
}

bool pb_warp_make_nearest(const struct pb_warp_job *job, const struct pb_plane *in,
                          struct pb_warp_part *p, float *out)
{
    (void)job;
    if (!fits(in, 1, 1))
        return false;
    find_holders(&p->x, p->n);
    find_holders(&p->y, p->n);
    find_places(&in->rect, 1, 1, p);
    take(in->data, p, out);
    return true;
}
