/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_FOCAL_JOB_H
#define PB_FOCAL_JOB_H
/* One focal operation over one plane on the CPU, row by row: what the kinds of focal.def share.
 * Internal to kernels/focal/. One thread. */
#include "kernels/focal/focal.h"

/* Rows filtered along x, the newest `side` of them: image row y is at y % side. */
struct pb_focal_ring {
    float *rows; /* side rows of out->rect.w */
    const float *weight;
    int32_t held[PB_FOCAL_SIDE_MAX]; /* which image row is there, -1 = none */
};

struct pb_focal_job {
    const struct pb_focal *focal;
    const struct pb_plane *in, *out;
    int32_t image_w, image_h, side;
    float *temp;                  /* pb_focal_temp_px */
    struct pb_focal_ring ring[2]; /* of sums */
};

/* Makes a row of the output. rows: the `side` image rows around it, as pb_focal_index says;
 * PB_FOCAL_NONE = a row of invalid pixels, which FLAT alone gets. */
typedef void pb_focal_row(struct pb_focal_job *job, const int32_t *rows, float *out);
/* Before the first row. */
typedef void pb_focal_begin(struct pb_focal_job *job);
/* Floats of temp for rows of w pixels. */
typedef size_t pb_focal_temp(const struct pb_focal *focal, size_t w);
#define PB_FOCAL_SUM(NAME, name) pb_focal_row pb_focal_##name##_row;
#define PB_FOCAL_WINDOW(NAME, name)                                                                \
    pb_focal_row pb_focal_##name##_row;                                                            \
    pb_focal_begin pb_focal_##name##_begin;                                                        \
    pb_focal_temp pb_focal_##name##_temp_px;
#include "kernels/focal/focal.def"

/* run(side, ...) where each side has a loop of its own: the compiler unrolls what it knows. */
#define PB_FOCAL_EACH_SIDE(side, run, ...)                                                         \
    switch (side) {                                                                                \
    case 3:                                                                                        \
        run(3, __VA_ARGS__);                                                                       \
        break;                                                                                     \
    case 5:                                                                                        \
        run(5, __VA_ARGS__);                                                                       \
        break;                                                                                     \
    case 7:                                                                                        \
        run(7, __VA_ARGS__);                                                                       \
        break;                                                                                     \
    case 9:                                                                                        \
        run(9, __VA_ARGS__);                                                                       \
        break;                                                                                     \
    case 11:                                                                                       \
        run(11, __VA_ARGS__);                                                                      \
        break;                                                                                     \
    case 13:                                                                                       \
        run(13, __VA_ARGS__);                                                                      \
        break;                                                                                     \
    default:                                                                                       \
        run(15, __VA_ARGS__);                                                                      \
        break;                                                                                     \
    }

/* Of all kinds of sums. */
pb_focal_begin pb_focal_sum_begin;
pb_focal_temp pb_focal_sum_temp_px;
/* Of window kinds: what pb_focal_find_windows takes, from the start of temp. */
pb_focal_temp pb_focal_window_temp_px;

/* The upper left pixel of the first window of a row, rows *out_stride floats apart: in the plane
 * itself where the image has all pixels of the row's windows, else in a copy in temp. */
const float *pb_focal_find_windows(const struct pb_focal_job *job, const int32_t *rows,
                                   int32_t *out_stride);

/* Image row y from column out.x - radius to out.x + out.w + radius: in place where the image has
 * all of it, else a copy in `padded`. */
const float *pb_focal_source_row(const struct pb_focal_job *job, int32_t y, float *padded);
#endif
