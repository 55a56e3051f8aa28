/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Focal operations on the CPU: the rows and columns that the edge rule puts in the place of those
 * outside the image, and the dispatch to the kind's rows. Kinds never see an edge: a row that
 * reaches over the left or right edge is copied into a padded row, a row above or below is another
 * row's index. */
#include "kernels/focal/focal_job.h"
#include "kernels/focal/extreme_pixel.h"
#include "kernels/focal/focal_pixel.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

static const struct {
    const char *name;
    pb_focal_row *row;
    pb_focal_temp *temp_px;
    pb_focal_begin *begin;
} kinds[PB_FOCAL_COUNT] = {
#define PB_FOCAL_SUM(NAME, name)                                                                   \
    [PB_FOCAL_##NAME] = {#name, pb_focal_##name##_row, pb_focal_sum_temp_px, pb_focal_sum_begin},
#define PB_FOCAL_WINDOW(NAME, name)                                                                \
    [PB_FOCAL_##NAME] = {#name, pb_focal_##name##_row, pb_focal_##name##_temp_px,                  \
                         pb_focal_##name##_begin},
#include "kernels/focal/focal.def"
};

const char *pb_focal_name(enum pb_focal_kind kind)
{
    return kinds[kind].name;
}

int32_t pb_focal_side_max(enum pb_focal_kind kind)
{
    const bool is_wide = kind == PB_FOCAL_SEPARABLE || kind == PB_FOCAL_FULL ||
                         kind == PB_FOCAL_MAGNITUDE || kind == PB_FOCAL_FLAT;

    return is_wide ? PB_FOCAL_SIDE_MAX : PB_FOCAL_WINDOW_SIDE_MAX;
}

bool pb_focal_chooses(const struct pb_focal *focal)
{
    return focal->kind == PB_FOCAL_RANK || focal->kind == PB_FOCAL_FLAT ||
           (focal->kind == PB_FOCAL_EXTREME && focal->choice != PB_EXTREME_RANGE);
}

/* Column x outside the image; row: its column 0. */
static float pixel_beside(const struct pb_focal_job *job, int32_t x, const float *row)
{
    int32_t column = pb_focal_index(x, job->image_w, job->focal->edge);
    if (job->focal->edge == PB_EDGE_EXTRAPOLATE) {
        return pb_focal_beyond(row[pb_focal_index(x, job->image_w, PB_EDGE_CLAMP)],
                               row[pb_focal_index(x, job->image_w, PB_EDGE_REFLECT)]);
    }
    return column == PB_FOCAL_NONE ? pb_pixel_nan() : row[column];
}

const float *pb_focal_source_row(const struct pb_focal_job *job, int32_t y, float *padded)
{
    const struct pb_rect *in = &job->in->rect;
    const float *row = job->in->data + (size_t)(y - in->y) * (size_t)in->w;
    int32_t left = job->out->rect.x - job->focal->radius;
    int32_t right = job->out->rect.x + job->out->rect.w + job->focal->radius;
    if (left >= 0 && right <= job->image_w) {
        return row + (left - in->x);
    }
    int32_t from = left > 0 ? left : 0;
    int32_t to = right < job->image_w ? right : job->image_w;
    memcpy(padded + (from - left), row + (from - in->x), (size_t)(to - from) * sizeof(float));
    for (int32_t x = left; x < right; x++) {
        if (x == from) {
            x = to;
            if (x >= right) {
                break;
            }
        }
        padded[x - left] = pixel_beside(job, x, row - in->x);
    }
    return padded;
}

static void fill_invalid(const struct pb_focal_job *job, float *out)
{
    for (int32_t x = 0; x < job->out->rect.w; x++) {
        out[x] = pb_pixel_nan();
    }
}

/* What pb_focal_index says of the image rows that output row y needs; whether it has all. */
static bool rows_around(const struct pb_focal_job *job, int32_t y, int32_t rows[PB_FOCAL_SIDE_MAX])
{
    bool all = true;
    for (int32_t k = 0; k < job->side; k++) {
        rows[k] = pb_focal_index(y + k - job->focal->radius, job->image_h, job->focal->edge);
        all = all && rows[k] != PB_FOCAL_NONE;
    }
    return all;
}

size_t pb_focal_temp_px(const struct pb_focal *focal, const struct pb_rect *out_rect)
{
    return kinds[focal->kind].temp_px(focal, (size_t)out_rect->w);
}

void pb_focal_run_cpu(const struct pb_focal *focal, const struct pb_plane *in,
                      const struct pb_plane *out, int32_t image_w, int32_t image_h, float *temp)
{
    struct pb_focal_job job = {.focal = focal,
                               .in = in,
                               .out = out,
                               .image_w = image_w,
                               .image_h = image_h,
                               .side = 2 * focal->radius + 1,
                               .temp = temp};
    int32_t rows[PB_FOCAL_SIDE_MAX];
    assert(focal->radius >= 1 && job.side <= pb_focal_side_max(focal->kind));
    assert(focal->edge != PB_EDGE_EXTRAPOLATE || kinds[focal->kind].begin != pb_focal_sum_begin);
    kinds[focal->kind].begin(&job);
    for (int32_t i = 0; i < out->rect.h; i++) {
        float *row = out->data + (size_t)i * (size_t)out->rect.w;
        if (rows_around(&job, out->rect.y + i, rows) || focal->kind == PB_FOCAL_FLAT) {
            kinds[focal->kind].row(&job, rows, row);
        } else {
            fill_invalid(&job, row);
        }
    }
}

size_t pb_focal_patch_bytes(const struct pb_focal *focal)
{
    const int32_t side = PB_FOCAL_PATCH + 2 * focal->radius;
    const int32_t bands = focal->kind == PB_FOCAL_SEPARABLE   ? 1
                          : focal->kind == PB_FOCAL_MAGNITUDE ? 2
                                                              : 0;

    if (focal->radius < 1 || 2 * focal->radius + 1 > pb_focal_side_max(focal->kind))
        return 0;
    return (size_t)(side * (side + bands * PB_FOCAL_PATCH)) * sizeof(float);
}
