/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Extremes on the CPU: those of each column of the row of windows once, then those of `side`
 * columns, twice as many at a time, where a pixel may be joined twice. An invalid pixel is an
 * infinity that no other one is beyond, so that it comes through and is no result. temp: the padded
 * rows, then the rows of the least and of the greatest. */
#include "kernels/focal/focal_job.h"
#include "kernels/focal/extreme_pixel.h"

static size_t columns_of(const struct pb_focal *focal, size_t w)
{
    return w + 2 * (size_t)focal->radius;
}

size_t pb_focal_extreme_temp_px(const struct pb_focal *focal, size_t w)
{
    return pb_focal_window_temp_px(focal, w) + 2 * columns_of(focal, w);
}

void pb_focal_extreme_begin(struct pb_focal_job *job)
{
    (void)job;
}

/* A later pixel joined with what was found before; NaN is neither less nor greater. */
static inline float join(bool is_least, float v, float found)
{
    if (is_least)
        return v < found ? v : found;
    return v > found ? v : found;
}

/* A pixel as it is joined. Windows that are filled leave invalid ones out. */
static inline float pixel(bool is_least, bool fills, float v)
{
    return fills || fabsf(v) <= FLT_MAX ? v : is_least ? -INFINITY : INFINITY;
}

/* Of the columns of `side` rows, three at first and then two at a time. */
__attribute__((always_inline)) static inline void columns(bool is_least, bool fills,
                                                          const float *window, int32_t stride,
                                                          int32_t side, int32_t n,
                                                          float *restrict found)
{
    const float *const a = window, *const b = a + stride, *const c = b + stride;

    for (int32_t x = 0; x < n; x++) {
        const float first =
            join(is_least, pixel(is_least, fills, a[x]), is_least ? INFINITY : -INFINITY);

        found[x] = join(is_least, pixel(is_least, fills, c[x]),
                        join(is_least, pixel(is_least, fills, b[x]), first));
    }
    for (int32_t y = 3; y < side; y += 2) {
        const float *const d = window + (size_t)y * (size_t)stride, *const e = d + stride;

        for (int32_t x = 0; x < n; x++)
            found[x] = join(is_least, pixel(is_least, fills, e[x]),
                            join(is_least, pixel(is_least, fills, d[x]), found[x]));
    }
}

PB_CLONES static void find_columns(bool is_least, bool fills, const float *window, int32_t stride,
                                   int32_t side, int32_t n, float *restrict found)
{
    if (is_least && fills)
        columns(true, true, window, stride, side, n, found);
    else if (is_least)
        columns(true, false, window, stride, side, n, found);
    else if (fills)
        columns(false, true, window, stride, side, n, found);
    else
        columns(false, false, window, stride, side, n, found);
}

/* row[x] becomes that of row[x] and row[x + shift], in place: what is read lies ahead of what is
 * written, however many are made at a time. */
PB_CLONES static void join_ahead(bool is_least, int32_t shift, int32_t n, float *row)
{
    if (is_least) {
        PB_INDEPENDENT
        for (int32_t x = 0; x < n; x++)
            row[x] = join(true, row[x + shift], row[x]);
    } else {
        PB_INDEPENDENT
        for (int32_t x = 0; x < n; x++)
            row[x] = join(false, row[x + shift], row[x]);
    }
}

/* Rows joined so that three places are those of a window: x, x + near and x + far. */
struct places {
    int32_t near, far;
};

static struct places join_columns(bool is_least, int32_t side, int32_t n, float *row)
{
    int32_t have = 1;

    for (; 3 * have < side; have *= 2)
        join_ahead(is_least, have, n - 2 * have + 1, row);
    return (struct places){have < side - have ? have : side - have, side - have};
}

static inline float window_of(bool is_least, const float *row, struct places at)
{
    return join(is_least, row[at.far], join(is_least, row[at.near], row[0]));
}

/* As the pixel function's: 0 is positive. */
static inline float result(float v)
{
    return pb_pixel_result(v + 0.0f);
}

PB_CLONES static void finish_row(int32_t choice, const float *low, const float *high,
                                 struct places at, int32_t w, float *restrict out)
{
    if (choice == PB_EXTREME_LEAST)
        for (int32_t x = 0; x < w; x++)
            out[x] = result(window_of(true, low + x, at));
    else if (choice == PB_EXTREME_GREATEST)
        for (int32_t x = 0; x < w; x++)
            out[x] = result(window_of(false, high + x, at));
    else
        for (int32_t x = 0; x < w; x++)
            out[x] = result(window_of(false, high + x, at) - window_of(true, low + x, at));
}

/* Of windows that are filled: invalid where the middle is. */
PB_CLONES static void drop_invalid(const float *middle, int32_t w, float *restrict out)
{
    for (int32_t x = 0; x < w; x++)
        out[x] = pb_pixel_result(out[x] + (middle[x] - middle[x]));
}

void pb_focal_extreme_row(struct pb_focal_job *job, const int32_t *rows, float *out)
{
    const struct pb_focal *const focal = job->focal;
    const int32_t w = job->out->rect.w, n = (int32_t)columns_of(focal, (size_t)w);
    float *const low = job->temp + pb_focal_window_temp_px(focal, (size_t)w);
    float *const high = low + n;
    const bool fills = pb_focal_fills(focal);
    struct places at = {0, 0};
    int32_t stride;
    const float *const window = pb_focal_find_windows(job, rows, &stride);

    if (focal->choice != PB_EXTREME_GREATEST) {
        find_columns(true, fills, window, stride, job->side, n, low);
        at = join_columns(true, job->side, n, low);
    }
    if (focal->choice != PB_EXTREME_LEAST) {
        find_columns(false, fills, window, stride, job->side, n, high);
        at = join_columns(false, job->side, n, high);
    }
    finish_row(focal->choice, low, high, at, w, out);
    if (fills)
        drop_invalid(window + (size_t)focal->radius * ((size_t)stride + 1), w, out);
}
