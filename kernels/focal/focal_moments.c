/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Moments on the CPU: the sums of each column of the row of windows once, then those over `side`
 * columns. temp: the padded rows, then two rows of float64 sums. */
#include "kernels/focal/focal_job.h"
#include "kernels/focal/moments_pixel.h"

/* The first of the rows of sums; the second one begins behind `columns` more. */
static double *sums_of(const struct pb_focal *focal, float *temp, size_t w)
{
    return (double *)(void *)(temp + (pb_focal_window_temp_px(focal, w) + 15) / 16 * 16);
}

static size_t columns_of(const struct pb_focal *focal, size_t w)
{
    return w + 2 * (size_t)focal->radius;
}

size_t pb_focal_moments_temp_px(const struct pb_focal *focal, size_t w)
{
    return (pb_focal_window_temp_px(focal, w) + 15) / 16 * 16 +
           2 * columns_of(focal, w) * sizeof(double) / sizeof(float);
}

void pb_focal_moments_begin(struct pb_focal_job *job)
{
    (void)job;
}

/* The sums of each column of the row of windows. */
PB_CLONES static void sum_columns(const float *window, int32_t stride, int32_t side, int32_t w,
                                  double *restrict first)
{
    for (int32_t x = 0; x < w; x++)
        first[x] = 0.0;
    for (int32_t y = 0; y < side; y++) {
        const float *const row = window + (size_t)y * (size_t)stride;

        for (int32_t x = 0; x < w; x++)
            first[x] += (double)row[x];
    }
}

/* And those of their squares. */
PB_CLONES static void sum_squares(const float *window, int32_t stride, int32_t side, int32_t w,
                                  double *restrict first, double *restrict second)
{
    for (int32_t x = 0; x < w; x++)
        first[x] = second[x] = 0.0;
    for (int32_t y = 0; y < side; y++) {
        const float *const row = window + (size_t)y * (size_t)stride;

        for (int32_t x = 0; x < w; x++) {
            const double v = (double)row[x];

            first[x] += v;
            second[x] += v * v;
        }
    }
}

__attribute__((always_inline)) static inline void moments_of(int32_t side, const double *first,
                                                             const double *second, int32_t choice,
                                                             int32_t w, float *restrict out)
{
    for (int32_t x = 0; x < w; x++) {
        double sum = 0.0, squares = 0.0;

#pragma GCC unroll 16
        for (int32_t k = 0; k < side; k++) {
            sum += first[x + k];
            squares += second[x + k];
        }
        out[x] = pb_pixel_result(pb_moment_of(sum, squares, (double)(side * side), choice));
    }
}

/* Each choice has a loop of its own, so that a mean costs no square root. */
__attribute__((always_inline)) static inline void moments_of_side(int32_t side, const double *first,
                                                                  const double *second,
                                                                  int32_t choice, int32_t w,
                                                                  float *restrict out)
{
    switch (choice) {
    case PB_MOMENT_MEAN:
        moments_of(side, first, second, PB_MOMENT_MEAN, w, out);
        break;
    case PB_MOMENT_VARIANCE:
        moments_of(side, first, second, PB_MOMENT_VARIANCE, w, out);
        break;
    case PB_MOMENT_DEVIATION:
        moments_of(side, first, second, PB_MOMENT_DEVIATION, w, out);
        break;
    default:
        moments_of(side, first, second, PB_MOMENT_VARIATION, w, out);
        break;
    }
}

PB_CLONES static void finish_row(int32_t side, const double *first, const double *second,
                                 int32_t choice, int32_t w, float *restrict out)
{
    PB_FOCAL_EACH_SIDE(side, moments_of_side, first, second, choice, w, out);
}

void pb_focal_moments_row(struct pb_focal_job *job, const int32_t *rows, float *out)
{
    const size_t w = (size_t)job->out->rect.w;
    double *const first = sums_of(job->focal, job->temp, w);
    double *const second = first + columns_of(job->focal, w);
    int32_t stride;
    const float *const window = pb_focal_find_windows(job, rows, &stride);

    if (job->focal->choice == PB_MOMENT_MEAN)
        sum_columns(window, stride, job->side, (int32_t)columns_of(job->focal, w), first);
    else
        sum_squares(window, stride, job->side, (int32_t)columns_of(job->focal, w), first, second);
    finish_row(job->side, first, second, job->focal->choice, (int32_t)w, out);
}
