/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RESAMPLE_PIXEL_H
#define PB_RESAMPLE_PIXEL_H
/* One pixel of a resampled plane, for both devices: which pixels of the source it is made from, by
 * which weights, and the sum. */
#include "kernels/resample/resample.h"

#include <assert.h>

/* Pixels of the source along one axis, and where the made pixel lies among them. */
struct pb_taps {
    int32_t first, n; /* inside the source's grid; n may be 0 */
    int32_t centre;   /* the pixel that holds the centre; may be outside */
    double low, high; /* footprint, or centre and width of the kernel: what pb_tap_weight needs */
};

/* A footprint whose edge lies so near that of a pixel ends there: 1 / (1 / 49) is not 49, and the
 * pixel beyond would count for one whose own have no data. */
#define PB_TAP_EDGE_PX 1e-6

/* Half the width of a kernel, in pixels of the finer grid. */
PB_PIXEL double pb_tap_reach(enum pb_resampling how)
{
    return how == PB_LANCZOS ? 3.0 : how == PB_CUBIC ? 2.0 : how == PB_NEAREST ? 0.0 : 1.0;
}

/* Whether the weights are those of a kernel around the centre. */
PB_PIXEL bool pb_tap_is_kernel(enum pb_resampling how)
{
    return how == PB_BILINEAR || how == PB_CUBIC || how == PB_LANCZOS;
}

PB_PIXEL struct pb_taps pb_taps_of(enum pb_resampling how, int32_t pixel, double scale,
                                   double offset, int32_t size)
{
    const double centre = (pixel + 0.5) * scale + offset;
    const double width = scale > 1.0 ? scale : 1.0;
    const double reach = pb_tap_reach(how) * width;
    struct pb_taps taps;
    double from, to;
    taps.centre = (int32_t)floor(centre);
    if (pb_tap_is_kernel(how)) {
        taps.low = centre;
        taps.high = width;
        from = floor(centre - reach);
        to = ceil(centre + reach);
    } else if (how == PB_NEAREST) {
        taps.low = taps.high = centre;
        from = taps.centre;
        to = taps.centre + 1.0;
    } else {
        taps.low = pixel * scale + offset;
        taps.high = (pixel + 1.0) * scale + offset;
        from = floor(taps.low + PB_TAP_EDGE_PX);
        to = ceil(taps.high - PB_TAP_EDGE_PX);
    }
    from = from > 0.0 ? from : 0.0;
    to = to < size ? to : size;
    taps.first = (int32_t)from;
    taps.n = to > from ? (int32_t)(to - from) : 0;
    return taps;
}

PB_PIXEL float pb_tap_cubic(float t)
{
    const float a = -0.5f;
    if (t < 1.0f) {
        return ((a + 2.0f) * t - (a + 3.0f)) * t * t + 1.0f;
    }
    return t < 2.0f ? ((a * t - 5.0f * a) * t + 8.0f * a) * t - 4.0f * a : 0.0f;
}

/* sin(pi t) for t from 0 to 1, by the series, to 1e-7: the same bits everywhere, which sinf() does
 * not promise. */
PB_PIXEL float pb_tap_sine(float t)
{
    const float u = t > 0.5f ? 1.0f - t : t;
    const float s = u * u;
    const float high = ((-0.007370430946f * s + 0.08214588661f) * s - 0.5992645293f) * s;
    return u * (((high + 2.550164040f) * s - 5.167712780f) * s + 3.141592654f);
}

/* sinc(t) * sinc(t / 3) for t from 0. */
PB_PIXEL float pb_tap_lanczos(float t)
{
    const float square = 9.869604401f; /* of pi */
    const float whole = floorf(t);
    if (t >= 3.0f) {
        return 0.0f;
    }
    if (t < 1e-4f) {
        return 1.0f;
    }
    const float sine = pb_tap_sine(t - whole) * pb_tap_sine(t / 3.0f);
    return (whole == 1.0f ? -3.0f : 3.0f) * sine / (square * t * t);
}

/* Weight of pixel i of the source. */
PB_PIXEL float pb_tap_weight(enum pb_resampling how, const struct pb_taps *taps, int32_t i)
{
    if (pb_tap_is_kernel(how)) {
        const float t = (float)(fabs(i + 0.5 - taps->low) / taps->high);
        return how == PB_CUBIC     ? pb_tap_cubic(t)
               : how == PB_LANCZOS ? pb_tap_lanczos(t)
               : t < 1.0f          ? 1.0f - t
                                   : 0.0f;
    }
    if (how == PB_NEAREST) {
        return 1.0f;
    }
    const double from = taps->low > i ? taps->low : i;
    const double to = taps->high < i + 1.0 ? taps->high : i + 1.0;
    return to > from ? (float)(to - from) : 0.0f;
}

/* The pixels of the source that are there: (x, y) of its grid at pb_resample_at(). The caller made
 * the rect of what the made pixels need, so taps are compared with it in debug builds only. */
struct pb_resample_source {
    const float *data;
    struct pb_rect rect;
};

PB_PIXEL bool pb_taps_inside(const struct pb_taps *taps, int32_t first, int32_t n)
{
    return taps->first >= first && taps->n <= n && taps->first - first <= n - taps->n;
}

/* Whether all pixels of the footprint are there. */
PB_PIXEL bool pb_resample_holds(const struct pb_resample_source *source, const struct pb_taps *x,
                                const struct pb_taps *y)
{
    const bool is_empty = x->n <= 0 || y->n <= 0;
    return is_empty || (pb_taps_inside(x, source->rect.x, source->rect.w) &&
                        pb_taps_inside(y, source->rect.y, source->rect.h));
}

PB_PIXEL float pb_resample_at(const struct pb_resample_source *source, int32_t x, int32_t y)
{
    const size_t row = (size_t)(y - source->rect.y) * (size_t)source->rect.w;
    return source->data[row + (size_t)(x - source->rect.x)];
}

/* Weights of the columns of a footprint that has few, made once for all of its rows. */
#define PB_TAPS_HELD 8
struct pb_held_taps {
    float weight[PB_TAPS_HELD];
};

/* A sum of weighted pixels, and of the weights of those that are valid. */
struct pb_tap_sum {
    float sum, total;
};

PB_PIXEL struct pb_held_taps pb_taps_hold(enum pb_resampling how, const struct pb_taps *x)
{
    struct pb_held_taps held;
    for (int32_t k = 0; k < PB_TAPS_HELD; k++) {
        held.weight[k] = k < x->n ? pb_tap_weight(how, x, x->first + k) : 0.0f;
    }
    return held;
}

PB_PIXEL void pb_tap_add(struct pb_tap_sum *row, float weight, float v)
{
    row->sum = v == v ? row->sum + weight * v : row->sum;
    row->total = v == v ? row->total + weight : row->total;
}

PB_PIXEL struct pb_tap_sum pb_held_row(const struct pb_held_taps *held,
                                       const struct pb_resample_source *source,
                                       const struct pb_taps *x, int32_t j)
{
    struct pb_tap_sum row = {0.0f, 0.0f};
    for (int32_t k = 0; k < PB_TAPS_HELD; k++) {
        if (k < x->n) {
            pb_tap_add(&row, held->weight[k], pb_resample_at(source, x->first + k, j));
        }
    }
    return row;
}

PB_PIXEL struct pb_tap_sum pb_wide_row(enum pb_resampling how,
                                       const struct pb_resample_source *source,
                                       const struct pb_taps *x, int32_t j)
{
    struct pb_tap_sum row = {0.0f, 0.0f};
    for (int32_t i = x->first; i < x->first + x->n; i++) {
        pb_tap_add(&row, pb_tap_weight(how, x, i), pb_resample_at(source, i, j));
    }
    return row;
}

PB_PIXEL float pb_resample_sum(enum pb_resampling how, const struct pb_resample_source *source,
                               const struct pb_taps *x, const struct pb_taps *y)
{
    const bool is_narrow = x->n <= PB_TAPS_HELD;
    const struct pb_held_taps held = pb_taps_hold(how, x);
    float sum = 0.0f, total = 0.0f;
    for (int32_t j = y->first; j < y->first + y->n; j++) {
        const float weight = pb_tap_weight(how, y, j);
        const struct pb_tap_sum row =
            is_narrow ? pb_held_row(&held, source, x, j) : pb_wide_row(how, source, x, j);
        sum = sum + weight * row.sum;
        total = total + weight * row.total;
    }
    return total > 0.0f ? pb_pixel_result(sum / total) : pb_pixel_nan();
}

/* Area of the footprint that has the value. */
PB_PIXEL float pb_resample_area(enum pb_resampling how, const struct pb_resample_source *source,
                                const struct pb_taps *x, const struct pb_taps *y, float value)
{
    float area = 0.0f;
    for (int32_t j = y->first; j < y->first + y->n; j++) {
        const float weight = pb_tap_weight(how, y, j);
        for (int32_t i = x->first; i < x->first + x->n; i++) {
            if (pb_resample_at(source, i, j) == value) {
                area = area + weight * pb_tap_weight(how, x, i);
            }
        }
    }
    return area;
}

/* Whether the value stands before pixel (x_at, y_at) of the footprint, row by row. */
PB_PIXEL bool pb_resample_met(const struct pb_resample_source *source, const struct pb_taps *x,
                              const struct pb_taps *y, int32_t x_at, int32_t y_at, float value)
{
    for (int32_t j = y->first; j <= y_at; j++) {
        const int32_t end = j < y_at ? x->first + x->n : x_at;
        for (int32_t i = x->first; i < end; i++) {
            if (pb_resample_at(source, i, j) == value) {
                return true;
            }
        }
    }
    return false;
}

PB_PIXEL float pb_resample_mode(enum pb_resampling how, const struct pb_resample_source *source,
                                const struct pb_taps *x, const struct pb_taps *y)
{
    float best = pb_pixel_nan(), most = 0.0f;
    for (int32_t j = y->first; j < y->first + y->n; j++) {
        for (int32_t i = x->first; i < x->first + x->n; i++) {
            const float v = pb_resample_at(source, i, j);
            if (v != v || v == best || pb_resample_met(source, x, y, i, j, v)) {
                continue;
            }
            const float area = pb_resample_area(how, source, x, y, v);
            if (area > most || (area == most && area > 0.0f && v < best)) {
                best = v;
                most = area;
            }
        }
    }
    return best;
}

PB_PIXEL float pb_resample_pixel(const struct pb_resample *resample,
                                 const struct pb_resample_source *source, const struct pb_taps *x,
                                 const struct pb_taps *y)
{
    const enum pb_resampling how = resample->how;
    if (x->n <= 0 || y->n <= 0) {
        return pb_pixel_nan();
    }
    assert(pb_resample_holds(source, x, y));
    if (pb_tap_is_kernel(how)) {
        if (x->centre < 0 || x->centre >= resample->source_w || y->centre < 0 ||
            y->centre >= resample->source_h) {
            return pb_pixel_nan();
        }
        const float centre = pb_resample_at(source, x->centre, y->centre);
        return centre == centre ? pb_resample_sum(how, source, x, y) : pb_pixel_nan();
    }
    if (how == PB_NEAREST) {
        return pb_resample_at(source, x->first, y->first);
    }
    return how == PB_MODE ? pb_resample_mode(how, source, x, y)
                          : pb_resample_sum(how, source, x, y);
}
#endif
