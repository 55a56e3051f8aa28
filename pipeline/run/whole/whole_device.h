/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WHOLE_DEVICE_H
#define PB_WHOLE_DEVICE_H
/* Device functions for the executor that decodes on a device. Work is put into queues: sequential
 * within a queue, concurrent in different ones. The functions that queue work return
 * at once; memory in their arguments must stay valid until the work is done. 0, or a negative errno
 * with *err filled. Thread: any, with a queue used by one at a time. */
#include "kernels/codec/decode_device.h"
#include "kernels/codec/encode_device.h"
#include "kernels/codec/halve_device.h"
#include "kernels/codec/unpredict_device.h"
#include "kernels/reduce/passing_device.h"
#include "kernels/reduce/percentiles_device.h"
#include "kernels/reduce/statistics_device.h"
#include "kernels/reduce/value_table.h"
#include "pipeline/plan/plan.h"

struct pb_whole_counts {
    uint32_t queues, events, lanes;
    uint32_t first_lane;         /* queue of lane 0; those of the other lanes follow */
    uint32_t first_slow, n_slow; /* queues of lower priority than the others */
};

struct pb_whole_device {
    /* Opens the plan's device; lane: one tile's chain at a time. plan is borrowed until close. */
    int (*open)(const struct pb_plan *plan, const struct pb_whole_counts *counts,
                struct pb_err *err, void **out_device);
    /* Frees everything, after the queued work; NULL is fine. */
    void (*close)(void *device);
    /* Makes the device current for the calling thread. */
    int (*use)(void *device, struct pb_err *err);
    /* memory: device memory; table: host memory that both sides read and write. Freed by close. */
    int (*memory)(void *device, size_t bytes, struct pb_err *err, void **out);
    int (*table)(void *device, size_t bytes, struct pb_err *err, void **out);
    /* Managed memory, whose bytes are the host's until they are moved; freed by close. */
    int (*managed)(void *device, size_t bytes, struct pb_err *err, void **out);
    /* Queues the move of managed bytes to the device, or back to the host. */
    int (*move)(void *device, uint32_t queue, void *memory, size_t bytes, bool to_device,
                struct pb_err *err);
    /* keep: memory() of the device is the caller's from now on; drop frees it when it is unused. */
    void (*keep)(void *device, void *memory);
    void (*drop)(int32_t device_index, void *memory, uint64_t bytes);

    /* Sets *out to the device's pointer to the bytes of a host slot. */
    int (*seen)(void *device, void *host, struct pb_err *err, void **out);
    int (*copy)(void *device, uint32_t queue, void *to, const void *from, size_t bytes,
                struct pb_err *err);
    int (*decode)(void *device, uint32_t queue, enum pb_device_codec codec,
                  const struct pb_decode_batch *batch, struct pb_err *err);
    int (*unpredict)(void *device, uint32_t queue, const struct pb_unpredict_form *form,
                     const struct pb_unpredict_block *blocks, uint32_t n, uint32_t rows_most,
                     struct pb_err *err);
    int (*tile)(void *device, uint32_t lane, const struct pb_tile_in *in,
                const struct pb_tile_out *out, struct pb_err *err);
    /* Instead of tile, in a pass whose tiles are summed up (struct pb_plan_sums): sums of the parts
     * of a tile, made with the numbers of *head, which is a table. out: pb_plan_out_bytes. */
    int (*sums)(void *device, uint32_t lane, const struct pb_slot_head *head,
                const struct pb_tile_in *in, int32_t *out, struct pb_err *err);
    /* In a plan with a gate: makes the plane of the gate's chain for in->core. */
    int (*gate)(void *device, uint32_t queue, const struct pb_tile_in *in,
                const struct pb_tile_out *out, struct pb_err *err);
    int (*passing)(void *device, uint32_t queue, const struct pb_statistics_plane *planes,
                   uint32_t n, uint64_t most_px, uint32_t *counts, struct pb_err *err);
    int (*halve)(void *device, uint32_t queue, const struct pb_halve_part *parts, uint32_t n,
                 uint32_t n_planes, int32_t most_rows, bool nearest, struct pb_err *err);
    int (*encode)(void *device, uint32_t queue, const struct pb_encode_batch *batch,
                  struct pb_err *err);
    int (*statistics)(void *device, uint32_t queue, const struct pb_statistics_plane *planes,
                      uint32_t n, uint64_t most_px, struct pb_statistics_part *parts,
                      struct pb_err *err);
    int (*percentiles)(void *device, uint32_t queue, struct pb_percentiles *state,
                       const struct pb_statistics_plane *planes, uint32_t n, uint64_t most_px,
                       struct pb_err *err);
    /* Tables of values, as the functions of value_table.h. */
    int (*values_begin)(void *device, uint32_t queue, struct pb_value_table *table, uint32_t limit,
                        struct pb_err *err);
    int (*values_add)(void *device, uint32_t queue, struct pb_value_table *table,
                      struct pb_value_table *spare, const struct pb_value_planes *planes,
                      struct pb_err *err);
    int (*values_list)(void *device, uint32_t queue, struct pb_value_table *table, uint32_t limit,
                       struct pb_value_part *parts, struct pb_err *err);
    /* The event happens when the work in the queue at this time is done; a later mark resets it. */
    int (*mark)(void *device, uint32_t queue, uint32_t event, struct pb_err *err);
    /* Later work in the queue waits for the last mark of the event. */
    int (*after)(void *device, uint32_t queue, uint32_t event, struct pb_err *err);
    /* 1: it has happened; 0: not yet; a negative errno: work before it has failed. */
    int (*happened)(void *device, uint32_t event, const char *what, struct pb_err *err);
    /* Time at which an event happened, in ns since open, by the device's clock. */
    int (*when)(void *device, uint32_t event, uint64_t *out_ns, struct pb_err *err);
};

/* CUDA builds only. */
extern const struct pb_whole_device pb_whole_cuda;
#endif
