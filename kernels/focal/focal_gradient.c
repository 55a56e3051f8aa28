/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Gradients on the CPU: a loop a choice over a row of windows, which the compiler vectorises. */
#include "kernels/focal/focal_job.h"
#include "kernels/focal/gradient_pixel.h"

size_t pb_focal_gradient_temp_px(const struct pb_focal *focal, size_t w)
{
    return pb_focal_window_temp_px(focal, w);
}

void pb_focal_gradient_begin(struct pb_focal_job *job)
{
    (void)job;
}

__attribute__((always_inline)) static inline void gradients(const float *window, int32_t stride,
                                                            bool fills, int32_t choice, int32_t w,
                                                            float *restrict out)
{
    const float *const a = window, *const r = window + stride, *const b = r + stride;

    for (int32_t x = 0; fills && x < w; x++)
        out[x] = pb_pixel_result(pb_gradient_filled(a + x, r + x, b + x, choice));
    for (int32_t x = 0; !fills && x < w; x++) {
        const float invalid = ((a[x] - a[x]) + (a[x + 1] - a[x + 1]) + (a[x + 2] - a[x + 2])) +
                              ((r[x] - r[x]) + (r[x + 1] - r[x + 1]) + (r[x + 2] - r[x + 2])) +
                              ((b[x] - b[x]) + (b[x + 1] - b[x + 1]) + (b[x + 2] - b[x + 2]));

        out[x] = pb_pixel_result(pb_gradient_of(a + x, r + x, b + x, choice) + invalid);
    }
}

__attribute__((always_inline)) static inline void gradients_of(const float *window, int32_t stride,
                                                               bool fills, int32_t choice,
                                                               int32_t w, float *restrict out)
{
    switch (choice) {
    case PB_GRADIENT_HORN_X:
        gradients(window, stride, fills, PB_GRADIENT_HORN_X, w, out);
        break;
    case PB_GRADIENT_HORN_Y:
        gradients(window, stride, fills, PB_GRADIENT_HORN_Y, w, out);
        break;
    case PB_GRADIENT_ZEVENBERGEN_X:
        gradients(window, stride, fills, PB_GRADIENT_ZEVENBERGEN_X, w, out);
        break;
    case PB_GRADIENT_ZEVENBERGEN_Y:
        gradients(window, stride, fills, PB_GRADIENT_ZEVENBERGEN_Y, w, out);
        break;
    case PB_GRADIENT_ZEVENBERGEN_XX:
        gradients(window, stride, fills, PB_GRADIENT_ZEVENBERGEN_XX, w, out);
        break;
    case PB_GRADIENT_ZEVENBERGEN_YY:
        gradients(window, stride, fills, PB_GRADIENT_ZEVENBERGEN_YY, w, out);
        break;
    default:
        gradients(window, stride, fills, PB_GRADIENT_ZEVENBERGEN_XY, w, out);
        break;
    }
}

PB_CLONES static void gradient_row(const float *window, int32_t stride, bool fills, int32_t choice,
                                   int32_t w, float *restrict out)
{
    if (fills)
        gradients_of(window, stride, true, choice, w, out);
    else
        gradients_of(window, stride, false, choice, w, out);
}

void pb_focal_gradient_row(struct pb_focal_job *job, const int32_t *rows, float *out)
{
    const struct pb_focal *const focal = job->focal;
    const int32_t w = job->out->rect.w;
    int32_t stride;
    const float *const window = pb_focal_find_windows(job, rows, &stride);

    if (focal->radius == 1)
        gradient_row(window, stride, pb_focal_fills(focal), focal->choice, w, out);
    else
        for (int32_t x = 0; x < w; x++)
            out[x] = pb_pixel_result(pb_focal_gradient(window + x, stride, focal->radius, focal));
}
