/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * A rank of windows on the CPU: the network of rank_network.h over the rows of LANES windows beside
 * each other at a time, so that every comparison is one of vectors. temp: the padded rows, then the
 * network, then its rows. Medians of small windows have loops of their own (focal_median.h). */
#include "kernels/focal/focal_job.h"
#include "kernels/focal/focal_median.h"
#include "kernels/focal/rank_network.h"
#include "kernels/pixel.h"

#include <assert.h>
#include <string.h>

#define LANES  128
#define VECTOR 16 /* whole vectors are made, whatever is in the last one */
#define PITCH  (LANES + 2 * VECTOR)
static_assert(PB_FOCAL_WINDOW_SIDE_MAX <= VECTOR, "shifted results stay inside a row");

static size_t round_px(size_t px)
{
    return (px + 15) / 16 * 16;
}

static size_t network_px(void)
{
    return round_px((sizeof(struct pb_rank_network) + sizeof(float) - 1) / sizeof(float));
}

static struct pb_rank_network *network_of(const struct pb_focal_job *job)
{
    const size_t px = pb_focal_window_temp_px(job->focal, (size_t)job->out->rect.w);

    return (struct pb_rank_network *)(void *)(job->temp + round_px(px));
}

static float *rows_of(const struct pb_focal_job *job)
{
    return (float *)(void *)network_of(job) + network_px();
}

size_t pb_focal_rank_temp_px(const struct pb_focal *focal, size_t w)
{
    return round_px(pb_focal_window_temp_px(focal, w)) + network_px() +
           (size_t)PB_RANK_ROWS_MAX * PITCH;
}

void pb_focal_rank_begin(struct pb_focal_job *job)
{
    struct pb_rank_network *const network = network_of(job);

    if (pb_focal_is_small_median(job->focal))
        return;
    pb_rank_network_make(job->side, job->focal->choice, network);
    memset(rows_of(job), 0, network->n_rows * PITCH * sizeof(float));
}

/* Both, or one of them; n: a multiple of VECTOR. What is read lies at or ahead of what is written.
 */
__attribute__((always_inline)) static inline void both_of(const float *a, const float *b,
                                                          float *low, float *high, int n)
{
    PB_INDEPENDENT
    for (int i = 0; i < n; i++) {
        const float x = a[i], y = b[i];

        low[i] = x < y ? x : y;
        high[i] = y < x ? x : y; /* whatever happens to NaN: `invalid` tells */
    }
}

__attribute__((always_inline)) static inline void low_of(const float *a, const float *b, float *low,
                                                         int n)
{
    PB_INDEPENDENT
    for (int i = 0; i < n; i++)
        low[i] = a[i] < b[i] ? a[i] : b[i];
}

__attribute__((always_inline)) static inline void high_of(const float *a, const float *b,
                                                          float *high, int n)
{
    PB_INDEPENDENT
    for (int i = 0; i < n; i++)
        high[i] = b[i] < a[i] ? a[i] : b[i];
}

/* For so many windows. */
PB_CLONES static void run_network(const struct pb_rank_network *network, int32_t windows,
                                  float *rows)
{
    for (uint32_t k = 0; k < network->n_steps; k++) {
        const struct pb_rank_step *const step = &network->step[k];
        const float *const a = rows + (size_t)step->a * PITCH + step->shift_a;
        const float *const b = rows + (size_t)step->b * PITCH + step->shift_b;
        float *const low = rows + (size_t)step->low * PITCH;
        float *const high = rows + (size_t)step->high * PITCH;
        const int n = (windows + step->more + VECTOR - 1) / VECTOR * VECTOR;

        if (step->high == PB_RANK_NONE)
            low_of(a, b, low, n);
        else if (step->low == PB_RANK_NONE)
            high_of(a, b, high, n);
        else
            both_of(a, b, low, high, n);
    }
}

/* Brings the rows of n windows; invalid[x] becomes NaN where the window has a pixel that is. */
PB_CLONES static void load_rows(const float *window, int32_t stride, int32_t side, int32_t n,
                                float *rows, float *restrict invalid)
{
    float column[LANES + VECTOR] = {0.0f};

    for (int32_t k = 0; k < side; k++) {
        const float *const from = window + (size_t)k * (size_t)stride;
        float *const to = rows + (size_t)k * PITCH;

        for (int32_t i = 0; i < n + side - 1; i++) {
            to[i] = from[i] + 0.0f; /* -0 becomes +0 */
            column[i] += from[i] - from[i];
        }
    }
    for (int32_t i = 0; i < n; i++)
        invalid[i] = column[i];
    for (int32_t k = 1; k < side; k++)
        for (int32_t i = 0; i < n; i++)
            invalid[i] += column[i + k];
}

PB_CLONES static void finish(const float *value, const float *invalid, int32_t n,
                             float *restrict out)
{
    for (int32_t i = 0; i < n; i++)
        out[i] = pb_pixel_result(value[i] + invalid[i]);
}

void pb_focal_rank_row(struct pb_focal_job *job, const int32_t *rows, float *out)
{
    const struct pb_rank_network *const network = network_of(job);
    const int32_t w = job->out->rect.w;
    float *const values = rows_of(job);
    float invalid[LANES];
    int32_t stride;
    const float *const window = pb_focal_find_windows(job, rows, &stride);

    if (pb_focal_is_small_median(job->focal)) {
        pb_focal_small_median_row(job->side, window, stride, w, out);
        return;
    }
    for (int32_t x = 0; x < w; x += LANES) {
        const int32_t n = w - x < LANES ? w - x : LANES;

        load_rows(window + x, stride, job->side, n, values, invalid);
        run_network(network, n, values);
        finish(values + (size_t)network->result * PITCH + network->result_shift, invalid, n,
               out + x);
    }
}
