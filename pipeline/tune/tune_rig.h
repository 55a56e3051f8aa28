/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TUNE_RIG_H
#define PB_TUNE_RIG_H
/* Slots, chain and candidates of one shape after the other on a GPU. CUDA builds only; the current
 * device of the thread is the rig's. Thread: one. */
#include "kernels/chain/chain_resident.h"
#include "pipeline/device/device.h"
#include "pipeline/tune/tune.h"

struct pb_tune_rig {
    int32_t index;
    struct pb_device_traits traits;
    double to_device, from_device; /* bytes a second, one way at a time */
    void *slots[2];                /* pinned, PB_TUNE_SLOTS_BYTES each */
    struct pb_tune_scene scene;    /* scene of the current shape */
    struct pb_chain_resident *chain;
    struct wic_tune_stream stream;
    struct wic_tune_trial trials[WIC_TUNE_TRIALS_MAX];
    size_t n_trials;
};

/* Pins the slots and measures the link. rig is zeroed; must be closed also after a failure. */
int pb_tune_rig_open(struct pb_tune_rig *rig, int32_t index, struct pb_err *err);
void pb_tune_rig_close(struct pb_tune_rig *rig);
/* Makes chain and candidates of a shape, and frees those before. Candidates: the table's row
 * and the n_rows of rows; all, if n_rows is 0. */
int pb_tune_rig_set(struct pb_tune_rig *rig, const struct pb_tune_shape *shape,
                    const struct wic_transfer_row *rows, size_t n_rows, struct pb_err *err);
/* Bytes of input a second of one plan, measured for about `ns`. */
int pb_tune_rig_measure(struct pb_tune_rig *rig, const struct wic_transfer_plan *plan, uint64_t ns,
                        struct pb_err *err, double *out_rate);
/* Same for copies alone, in both directions. */
int pb_tune_rig_copies(struct pb_tune_rig *rig, struct pb_err *err, double *out_rate);
/* Finds the fastest candidate by halving their number; it is rig->trials[0] then. */
int pb_tune_rig_find(struct pb_tune_rig *rig, uint64_t budget_ns, struct pb_err *err);
#endif
