/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_STREAM_SUMS_H
#define PB_STREAM_SUMS_H
/* Tiles that are summed up on the device, by streams: tables and memory of all lanes, and what is
 * queued for a tile. CUDA builds only. Thread: one. */
#include "pipeline/plan/plan.h"

struct pb_stream_sums;

/* A tile on its way. */
struct pb_stream_sums_tile {
    const struct pb_tile *tile;
    const void *slot; /* as it was published, and */
    size_t bytes;     /* so much of it */
    void *lane_slot;  /* where it goes on the device; NULL: the device reads it where it is */
    void *out;        /* device-readable, for its results */
    void *pixels;     /* set by send: where they are then */
};

/* On the current device. Borrows the plan until destroy. */
int pb_stream_sums_create(const struct pb_plan *plan, uint32_t lanes, struct pb_err *err,
                          struct pb_stream_sums **out_sums);
/* pb_stream.n_stored. */
uint32_t pb_stream_sums_stored(const struct pb_stream_sums *sums);
/* Queues the copies to the device, and the kernel, on a stream (cudaStream_t). */
int pb_stream_sums_send(struct pb_stream_sums *sums, struct pb_stream_sums_tile *tile, void *stream,
                        struct pb_err *err);
int pb_stream_sums_launch(struct pb_stream_sums *sums, uint32_t lane,
                          const struct pb_stream_sums_tile *tile, void *stream, struct pb_err *err);
void pb_stream_sums_destroy(struct pb_stream_sums *sums); /* NULL is fine */
#endif
