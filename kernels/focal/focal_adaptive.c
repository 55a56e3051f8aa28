/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Adaptive weights on the CPU: LANES windows beside each other at a time, a tap of all of them
 * after the other, in the order of the pixel function. */
#include "kernels/focal/focal_job.h"
#include "kernels/focal/adaptive_pixel.h"

#define LANES 32

size_t pb_focal_adaptive_temp_px(const struct pb_focal *focal, size_t w)
{
    return pb_focal_window_temp_px(focal, w);
}

void pb_focal_adaptive_begin(struct pb_focal_job *job)
{
    (void)job;
}

/* Of n windows, what pb_adaptive_alpha says. */
__attribute__((always_inline)) static inline void find_alphas(const float *window, int32_t stride,
                                                              int32_t side, float strength,
                                                              int32_t n, float *restrict alpha)
{
    double first[LANES] = {0.0}, second[LANES] = {0.0};

    for (int32_t x = 0; x < side; x++) {
        double column[LANES] = {0.0}, squares[LANES] = {0.0};

        for (int32_t y = 0; y < side; y++) {
            const float *const from = window + (size_t)y * (size_t)stride + x;

            for (int32_t i = 0; i < n; i++) {
                const double v = (double)from[i];

                column[i] += v;
                squares[i] += v * v;
            }
        }
        for (int32_t i = 0; i < n; i++) {
            first[i] += column[i];
            second[i] += squares[i];
        }
    }
    for (int32_t i = 0; i < n; i++)
        alpha[i] = pb_adaptive_alpha(first[i], second[i], (double)(side * side), strength);
}

__attribute__((always_inline)) static inline void means_of(const float *window, int32_t stride,
                                                           const struct pb_focal *focal,
                                                           int32_t choice, int32_t n,
                                                           float *restrict out)
{
    const int32_t side = 2 * focal->radius + 1;
    const float *const middle = window + (size_t)focal->radius * (size_t)stride + focal->radius;
    const float strength = focal->strength;
    float alpha[LANES] = {0.0f}, sum[LANES] = {0.0f}, total[LANES] = {0.0f};

    if (choice == PB_ADAPTIVE_FROST)
        find_alphas(window, stride, side, strength, n, alpha);
    for (int32_t y = 0; y < side; y++)
        for (int32_t x = 0; x < side; x++) {
            const float *const from = window + (size_t)y * (size_t)stride + x;
            const float at = focal->weight[y * side + x];

            for (int32_t i = 0; i < n; i++) {
                const float difference = from[i] - middle[i];
                const float weight = pb_adaptive_weight(choice, difference, strength, alpha[i], at);

                sum[i] += weight * difference;
                total[i] += weight;
            }
        }
    for (int32_t i = 0; i < n; i++)
        out[i] = pb_pixel_result(middle[i] + sum[i] / total[i]);
}

/* Full strips have a loop whose length the compiler knows. */
PB_CLONES static void adaptive_row(const float *window, int32_t stride,
                                   const struct pb_focal *focal, int32_t w, float *restrict out)
{
    int32_t x = 0;

    if (focal->choice == PB_ADAPTIVE_FROST) {
        for (; x + LANES <= w; x += LANES)
            means_of(window + x, stride, focal, PB_ADAPTIVE_FROST, LANES, out + x);
        means_of(window + x, stride, focal, PB_ADAPTIVE_FROST, w - x, out + x);
    } else {
        for (; x + LANES <= w; x += LANES)
            means_of(window + x, stride, focal, PB_ADAPTIVE_BILATERAL, LANES, out + x);
        means_of(window + x, stride, focal, PB_ADAPTIVE_BILATERAL, w - x, out + x);
    }
}

void pb_focal_adaptive_row(struct pb_focal_job *job, const int32_t *rows, float *out)
{
    int32_t stride;
    const float *const window = pb_focal_find_windows(job, rows, &stride);

    adaptive_row(window, stride, job->focal, job->out->rect.w, out);
}
