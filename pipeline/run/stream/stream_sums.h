/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_STREAM_SUMS_H
#define PB_STREAM_SUMS_H
/* Tiles that the device sums up, queued on streams: tables and memory of all lanes, and the
 * commands for a tile. CUDA builds only. Thread: one. */
#include "pipeline/plan/plan.h"

struct pb_stream_sums;

/* A tile in flight. */
struct pb_stream_sums_tile {
    const struct pb_tile *tile;
    const void *slot; /* the published slot */
    size_t bytes;     /* bytes of the slot that are used */
    void *lane_slot;  /* its copy on the device */
    void *out;        /* device-readable memory for its results */
    void *pixels;     /* set by send: address of its pixels for the device */
};

/* Creates it on the current device. n_kept: tiles whose pixels it keeps, as far as there is memory.
 * Borrows the plan until destroy. */
int pb_stream_sums_create(const struct pb_plan *plan, uint32_t lanes, uint32_t n_kept,
                          struct pb_err *err, struct pb_stream_sums **out_sums);
/* Value for pb_stream.n_stored. */
uint32_t pb_stream_sums_stored(const struct pb_stream_sums *sums);
/* send queues the copies to the device, launch the kernel, on a stream (cudaStream_t). */
int pb_stream_sums_send(struct pb_stream_sums *sums, struct pb_stream_sums_tile *tile, void *stream,
                        struct pb_err *err);
int pb_stream_sums_launch(struct pb_stream_sums *sums, uint32_t lane,
                          const struct pb_stream_sums_tile *tile, void *stream, struct pb_err *err);
/* Queues the kernel for a tile whose pixels are at `in`; all pointers are device-readable. */
int pb_stream_sums_tile(struct pb_stream_sums *sums, uint32_t lane, const struct pb_slot_head *head,
                        const struct pb_tile_in *in, int32_t *out, void *stream,
                        struct pb_err *err);
void pb_stream_sums_destroy(struct pb_stream_sums *sums); /* NULL is fine */
#endif
