/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Windows on the CPU: where a row of them lies, in the plane itself where the image has all of
 * their pixels, else in a copy of `side` padded rows. */
#include "kernels/focal/focal_job.h"
#include "kernels/focal/focal_pixel.h"

#include <stdbool.h>
#include <string.h>

static size_t padded_row_px(const struct pb_focal *focal, size_t w)
{
    return w + 2 * (size_t)focal->radius;
}

size_t pb_focal_window_temp_px(const struct pb_focal *focal, size_t w)
{
    const size_t more = focal->edge == PB_EDGE_EXTRAPOLATE; /* the reflected row */
    return (2 * (size_t)focal->radius + 1 + more) * padded_row_px(focal, w);
}

/* Whether the windows of a row are all inside the image. */
static bool is_inside(const struct pb_focal_job *job, const int32_t *rows)
{
    const struct pb_rect *out = &job->out->rect;
    int32_t radius = job->focal->radius;
    for (int32_t k = 1; k < job->side; k++) {
        if (rows[k] != rows[0] + k) {
            return false;
        }
    }
    return rows[0] >= 0 && rows[job->side - 1] < job->image_h && out->x >= radius &&
           out->x + out->w + radius <= job->image_w;
}

static void fill_invalid(size_t px, float *row)
{
    for (size_t x = 0; x < px; x++) {
        row[x] = pb_pixel_nan();
    }
}

/* Image row y, as far as the windows reach. */
static void copy_row(const struct pb_focal_job *job, int32_t y, size_t px, float *padded)
{
    const float *source = pb_focal_source_row(job, y, padded);
    if (source != padded) {
        memcpy(padded, source, px * sizeof *padded);
    }
}

/* A row above or below the image, along the lines through the edge row and the reflected one. */
static void extrapolate_row(const struct pb_focal_job *job, int32_t y, size_t px, float *reflected,
                            float *padded)
{
    copy_row(job, pb_focal_index(y, job->image_h, PB_EDGE_CLAMP), px, padded);
    copy_row(job, pb_focal_index(y, job->image_h, PB_EDGE_REFLECT), px, reflected);
    for (size_t x = 0; x < px; x++) {
        padded[x] = pb_focal_beyond(padded[x], reflected[x]);
    }
}

const float *pb_focal_find_windows(const struct pb_focal_job *job, const int32_t *rows,
                                   int32_t *out_stride)
{
    const struct pb_rect *in = &job->in->rect, *out = &job->out->rect;
    if (is_inside(job, rows)) {
        *out_stride = in->w;
        return job->in->data + (size_t)(rows[0] - in->y) * (size_t)in->w +
               (size_t)(out->x - job->focal->radius - in->x);
    }
    size_t px = padded_row_px(job->focal, (size_t)out->w);
    for (int32_t k = 0; k < job->side; k++) {
        float *padded = job->temp + (size_t)k * px;
        if (rows[k] == PB_FOCAL_NONE) {
            fill_invalid(px, padded);
        } else if (rows[k] < 0 || rows[k] >= job->image_h) {
            extrapolate_row(job, rows[k], px, job->temp + (size_t)job->side * px, padded);
        } else {
            copy_row(job, rows[k], px, padded);
        }
    }
    *out_stride = (int32_t)px;
    return job->temp;
}
