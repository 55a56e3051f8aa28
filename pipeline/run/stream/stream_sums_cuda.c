/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/run/stream/stream_sums.h"
#include "pipeline/device/cuda_err.h"
#include "pipeline/device/engine_limits.h"
#include "pipeline/plan/engine.h"

#include "kernels/chain/chain_device.h"
#include "kernels/chain/chain_sums_device.h"

#include <errno.h>
#include <stdlib.h>

enum { THREADS_MAX = 256, WARP = 32, BLOCKS_MAX = 256 };

struct pb_stream_sums {
    const struct pb_plan *plan;
    struct pb_chain_device chain;
    struct pb_chain_sums_device sums;
    struct pb_chain_sums_launch launch; /* same for all tiles */
    unsigned char *scratch;             /* for all blocks of all lanes */
    size_t lane_bytes;
};

/* Selects the largest number of threads whose registers fit. */
static int shape(struct pb_stream_sums *q, struct pb_err *err)
{
    struct pb_chain_sums_launch *l = &q->launch;
    struct pb_rect full = {0, 0, q->plan->layout.grid.side_px, q->plan->layout.grid.side_px};
    uint32_t parts = pb_plan_parts(q->plan, &full);
    int rc = -E2BIG;
    l->part_w = q->plan->layout.sums.part_w;
    l->part_h = q->plan->layout.sums.part_h;
    l->blocks = parts < BLOCKS_MAX ? parts : BLOCKS_MAX;
    for (l->threads = THREADS_MAX; l->threads >= WARP && rc < 0; l->threads /= 2)
        rc =
            pb_plan_sums_measure(q->plan, l->threads, PB_CHAIN_BLOCK_SHARED, &l->needs, &l->places);
    l->threads *= 2;
    q->lane_bytes = l->blocks * l->places.bytes;
    return rc < 0
               ? pb_fail(err, PB_E_DEVICE_FAILED, "%s", pb_limit_reason(PB_LIMIT_RESIDENT_SHARED))
               : 0;
}

int pb_stream_sums_create(const struct pb_plan *plan, uint32_t lanes, uint32_t n_kept,
                          struct pb_err *err, struct pb_stream_sums **out_sums)
{
    struct pb_stream_sums *q = calloc(1, sizeof *q);
    if (q == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory for the executor");
    q->plan = plan;
    int rc = shape(q, err);
    rc = rc ? rc
            : pb_cuda_rc(err, pb_chain_device_create(plan->work.chain, &q->chain),
                         "uploading the chain");
    rc = rc ? rc
            : pb_cuda_err(err, cudaMalloc((void **)&q->scratch, lanes * q->lane_bytes),
                          "allocating device buffers");
    rc = rc ? rc
            : pb_cuda_rc(err,
                         pb_chain_sums_device_create(plan->work.chain, &plan->layout.sums.chain,
                                                     pb_plan_sums_tile_bytes(plan), n_kept,
                                                     &q->sums),
                         "allocating memory for tiles");
    if (rc < 0) {
        pb_stream_sums_destroy(q);
        return rc;
    }
    *out_sums = q;
    return 0;
}

uint32_t pb_stream_sums_stored(const struct pb_stream_sums *q)
{
    return q->sums.n_stored;
}

static int copy(void *to, const void *from, size_t bytes, void *stream, struct pb_err *err)
{
    return pb_cuda_err(err, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream),
                       "copying a tile in");
}

/* Copies pixels that stay on the device to their place, and the others to the lane. */
int pb_stream_sums_send(struct pb_stream_sums *q, struct pb_stream_sums_tile *t, void *stream,
                        struct pb_err *err)
{
    const size_t head_bytes = q->plan->layout.format.head_bytes;
    const unsigned char *from = (const unsigned char *)t->slot + head_bytes;
    bool stays = t->tile->number < q->sums.n_stored, is_there = stays && t->tile->is_stored != 0;
    int rc = copy(t->lane_slot, t->slot, head_bytes, stream, err);
    t->pixels = (unsigned char *)t->lane_slot + head_bytes;
    if (stays)
        t->pixels = q->sums.store + t->tile->number * q->sums.stored_bytes;
    if (rc == 0 && !is_there && t->bytes > head_bytes)
        rc = copy(t->pixels, from, t->bytes - head_bytes, stream, err);
    return rc;
}

int pb_stream_sums_launch(struct pb_stream_sums *q, uint32_t lane,
                          const struct pb_stream_sums_tile *t, void *stream, struct pb_err *err)
{
    struct pb_tile_in in;
    pb_slot_pixels(&q->plan->layout.format, t->tile, t->pixels, &in);
    return pb_stream_sums_tile(q, lane, t->lane_slot, &in, t->out, stream, err);
}

int pb_stream_sums_tile(struct pb_stream_sums *q, uint32_t lane, const struct pb_slot_head *head,
                        const struct pb_tile_in *in, int32_t *out, void *stream, struct pb_err *err)
{
    struct pb_chain_sums_launch l = q->launch;
    l.chain = &q->chain;
    l.sums = &q->sums;
    l.scratch = q->scratch + lane * q->lane_bytes;
    l.head = head;
    l.out = out;
    l.in = *in;
    return pb_cuda_rc(err, pb_chain_sums_cuda(q->plan->work.chain, &l, stream),
                      "starting the kernels of a tile");
}

void pb_stream_sums_destroy(struct pb_stream_sums *q)
{
    if (q == NULL)
        return;
    pb_chain_sums_device_destroy(&q->sums);
    pb_chain_device_destroy(&q->chain);
    (void)cudaFree(q->scratch);
    free(q);
}
