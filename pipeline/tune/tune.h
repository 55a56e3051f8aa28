/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TUNE_H
#define PB_TUNE_H
/* Measures which transfer plans are fastest on a GPU, with the kernel that computes pipelines and
 * with slots in their format. No other work should use the GPU meanwhile. Thread: one; create
 * before other threads use the GPU. */
#include "config/base/err.h"
#include "pipeline/device/tuning.h"
#include "pipeline/plan/plan.h"

#include "wic/device/tune.h"

/* Full tiles: count of bands, and side. */
struct pb_tune_shape {
    int32_t bands, side_px;
};

/* 1 to 8 bands: from twice as many bytes of results as of input, to a quarter. */
enum { PB_TUNE_SHAPES = 12 };
extern const struct pb_tune_shape pb_tune_shapes[PB_TUNE_SHAPES];

/* Pinned memory for the slots of each of these shapes, of input and of results. */
#define PB_TUNE_SLOTS_BYTES ((size_t)68 << 20)

/* Scene for tuning: bands of 16-bit pixels from which some arithmetic makes one band of floats,
 * planned like a run. Arithmetic only. */
struct pb_tune_scene {
    struct pb_config *config;
    struct pb_plan *plan;
    struct wic_tile_shape shape; /* shape and work: input for the list of candidates */
    struct wic_work work;
    struct wic_link_tile posted;                                    /* a full tile */
    _Alignas(struct pb_tile) unsigned char user[WIC_PLAN_USER_MAX]; /* its user bytes */
    size_t in_stride, out_stride;
    uint32_t slots; /* on each side, in PB_TUNE_SLOTS_BYTES */
};

/* Uses the built-in table's plan for this GPU, whatever was measured before. -ENODEV with *err: no
 * resident kernel can pull tiles on this GPU, therefore tuning is impossible. The caller closes it.
 */
int pb_tune_scene_open(const struct pb_tune_shape *shape, const struct pb_device_traits *traits,
                       struct pb_err *err, struct pb_tune_scene *out_scene);
void pb_tune_scene_close(struct pb_tune_scene *scene);

/* Result for one shape. */
struct pb_tune_result {
    struct pb_tune_shape shape;
    struct pb_tuning_row row;
    struct wic_transfer_plan plan; /* plan from the row */
    /* Speed of the built-in table's plan, bytes of input a second; 0: not measured. */
    uint64_t table_rate;
    size_t trials;     /* count of the plans that were measured */
    const char *limit; /* message for the user: the limit of the speed */
};

#define PB_TUNE_SECONDS 2.9

/* Measures all pb_tune_shapes in `seconds` and calls on_result for each. 0 and *out_tuning,
 * whose date is now; or a negative errno with *err. After device.lost this process cannot use the
 * GPU any more (pb_device_left_behind). Without CUDA: device.missing. */
int pb_tune(int32_t index, double seconds,
            void (*on_result)(void *user, const struct pb_tune_result *result), void *user,
            struct pb_err *err, struct pb_tuning *out_tuning);

/* Channels between resident kernels of two devices (wic/peer), chunks of 16 KiB. */
struct pb_tune_peer {
    char plan[160];   /* the fastest one */
    uint64_t rate;    /* bytes per second */
    uint32_t word_ns; /* time of a word, one way */
};
/* 0, or a negative errno with *err; as pb_tune. Less than a second. */
int pb_tune_peer(int32_t from, int32_t to, struct pb_err *err, struct pb_tune_peer *out_peer);

/* Limit of a row, if copies alone reach to_device and from_device bytes a second, one direction at
 * a time. Static text. */
const char *pb_tune_limit(const struct pb_tuning_row *row, double to_device, double from_device);
#endif
