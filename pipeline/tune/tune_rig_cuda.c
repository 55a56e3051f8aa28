/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/tune/tune_rig.h"

#include "pipeline/device/copies.h"
#include "pipeline/device/cuda_err.h"
#include "pipeline/device/mem.h"

#include <errno.h>

#define LINK_BYTES   ((size_t)32 << 20)    /* for measuring the link in one direction */
#define COPIES_BYTES (UINT64_C(256) << 20) /* for both directions, input */

int pb_tune_rig_open(struct pb_tune_rig *rig, int32_t index, struct pb_err *err)
{
    rig->index = index;
    int rc = pb_device_use(index, err);
    if (rc == 0 && pb_device_traits(index, &rig->traits) != 0)
        rc = pb_fail(err, PB_E_DEVICE_FAILED, "the properties of CUDA device %d cannot be read",
                     index);
    for (int i = 0; i < 2 && rc == 0; i++)
        rc = pb_mem_alloc(PB_MEM_PINNED, PB_TUNE_SLOTS_BYTES, err, &rig->slots[i]);
    if (rc == 0)
        pb_device_link(index, LINK_BYTES, &rig->to_device, &rig->from_device);
    return rc;
}

static void unset(struct pb_tune_rig *rig)
{
    if (!pb_device_left_behind())
        pb_chain_resident_destroy(rig->chain);
    rig->chain = NULL;
    pb_tune_scene_close(&rig->scene);
}

void pb_tune_rig_close(struct pb_tune_rig *rig)
{
    unset(rig);
    for (int i = 0; i < 2 && !pb_device_left_behind(); i++)
        pb_mem_free(PB_MEM_PINNED, rig->slots[i], PB_TUNE_SLOTS_BYTES);
}

/* Makes the chain, with scratch for the candidate with the most blocks. */
static int make_chain(struct pb_tune_rig *rig, struct pb_err *err)
{
    const struct pb_plan *plan = rig->scene.plan;
    const struct pb_plan_resident *r = &plan->engine.resident;
    struct pb_chain_resident_shape shape = {.px = r->px,
                                            .scratch_bytes = r->scratch_bytes,
                                            .plane_px = r->plane_px,
                                            .by_line = r->by_line,
                                            .part_w = r->part_w,
                                            .part_h = r->part_h,
                                            .format = plan->layout.format};
    for (size_t i = 0; i < rig->n_trials; i++)
        if (rig->trials[i].plan.blocks > shape.blocks)
            shape.blocks = rig->trials[i].plan.blocks;
    return pb_cuda_rc(err, pb_chain_resident_create(plan->work.chain, &shape, &rig->chain),
                      "uploading the chain");
}

int pb_tune_rig_set(struct pb_tune_rig *rig, const struct pb_tune_shape *shape,
                    const struct wic_transfer_row *rows, size_t n_rows, struct pb_err *err)
{
    unset(rig);
    int rc = pb_tune_scene_open(shape, &rig->traits, err, &rig->scene);
    if (rc < 0)
        return rc;
    const struct pb_tune_scene *s = &rig->scene;
    const struct wic_gpu *gpu = &rig->traits.gpu;
    rig->n_trials = n_rows == 0
                        ? wic_tune_enumerate(gpu, &s->shape, &s->work, rig->trials)
                        : wic_tune_rows(gpu, &s->shape, &s->work, rows, n_rows, rig->trials);
    rc = make_chain(rig, err);
    if (rc < 0)
        return rc;
    rig->stream = (struct wic_tune_stream){
        .link = {.in = rig->slots[0],
                 .out = rig->slots[1],
                 .in_stride = s->in_stride,
                 .out_stride = s->out_stride,
                 .in_slots = s->slots,
                 .out_slots = s->slots,
                 .kernel = pb_chain_resident_kernel(rig->chain),
                 .argument = pb_chain_resident_argument(rig->chain)},
        .tile = s->posted,
    };
    return 0;
}

static int explain(const struct pb_tune_rig *rig, int rc, struct pb_err *err)
{
    if (rc == -ETIMEDOUT) {
        pb_device_leave_behind();
        return pb_fail(err, PB_E_DEVICE_LOST, "CUDA device %d hangs: a tile was not done in time",
                       rig->index);
    }
    if (rc == -EBUSY)
        return pb_fail(err, PB_E_DEVICE_BUSY, "other programs fill CUDA device %d", rig->index);
    if (rc == -ETIME)
        return pb_fail(err, PB_E_DEVICE_BUSY,
                       "measuring on CUDA device %d takes too long: other programs use it, or this "
                       "machine's cores; end them and tune again",
                       rig->index);
    if (rc == -ENODEV)
        return pb_fail(err, PB_E_DEVICE_FAILED, "no transfer plan works on CUDA device %d",
                       rig->index);
    return pb_cuda_rc(err, rc, "measuring a transfer plan");
}

int pb_tune_rig_measure(struct pb_tune_rig *rig, const struct wic_transfer_plan *plan, uint64_t ns,
                        struct pb_err *err, double *out_rate)
{
    int rc = wic_tune_measure(&rig->stream, plan, ns, out_rate);
    return rc < 0 ? explain(rig, rc, err) : 0;
}

int pb_tune_rig_copies(struct pb_tune_rig *rig, struct pb_err *err, double *out_rate)
{
    const struct pb_tune_scene *s = &rig->scene;
    struct pb_copies_side in = {rig->slots[0], s->in_stride, s->posted.bytes, s->slots};
    struct pb_copies_side out = {rig->slots[1], s->out_stride, s->posted.out_bytes, s->slots};
    uint64_t tiles = COPIES_BYTES / s->posted.bytes + 1;
    double seconds;
    int rc = pb_copies_measure(&in, &out, tiles, err, &seconds);
    if (rc == 0)
        *out_rate = (double)(tiles * s->posted.bytes) / seconds;
    return rc;
}

int pb_tune_rig_find(struct pb_tune_rig *rig, uint64_t budget_ns, struct pb_err *err)
{
    const struct wic_tune_meter meter = {wic_tune_measure, NULL, &rig->stream};
    int rc = wic_tune_halve(rig->trials, rig->n_trials, &meter, budget_ns);
    return rc < 0 ? explain(rig, rc, err) : 0;
}
