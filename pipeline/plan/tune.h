/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TUNE_H
#define PB_TUNE_H
/* Measures which transfer plans are fastest on a GPU, with the kernel that computes pipelines and
 * with slots as they have them. Nothing else should use the GPU meanwhile. Thread: one; create
 * before other threads use the GPU. */
#include "config/base/err.h"
#include "pipeline/device/tuning.h"
#include "pipeline/plan/tune_scene.h"

/* How one shape came out. */
struct pb_tune_result {
    struct pb_tune_shape shape;
    struct pb_tuning_row row;
    struct wic_transfer_plan plan; /* that the row makes */
    uint64_t table_rate;           /* of the built-in table's plan, bytes of input a second; 0: that
                                      was not measured */
    size_t trials;                 /* plans that were measured */
    const char *limit;             /* what keeps it from being faster, for people */
};

#define PB_TUNE_SECONDS 2.9

/* All pb_tune_shapes in `seconds`, told to `on_result` one after the other. 0 and *out_tuning,
 * whose date is now; or a negative errno with *err. After device.lost the GPU is of no use to this
 * process (pb_device_left_behind). Without CUDA: device.missing. */
int pb_tune(int32_t index, double seconds,
            void (*on_result)(void *user, const struct pb_tune_result *result), void *user,
            struct pb_err *err, struct pb_tuning *out_tuning);

/* What limits a row, where copies alone reach to_device and from_device bytes a second when they go
 * one way at a time. Static text. */
const char *pb_tune_limit(const struct pb_tuning_row *row, double to_device, double from_device);
#endif
