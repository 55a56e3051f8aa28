/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TUNE_SCENE_H
#define PB_TUNE_SCENE_H
/* Scene for tuning transfer plans: bands of 16-bit pixels from which some arithmetic makes one band
 * of floats, planned like a run. Arithmetic only. Thread: any, one at a time. */
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
#endif
