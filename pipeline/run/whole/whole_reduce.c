/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Reductions of an earlier pass that the device computes from the planes of tiles in its memory:
 * percentiles are counted in a state on the device, which is copied back after the last tile;
 * moments are computed tile by tile, and merged by the finisher. Both are exact; therefore the
 * results equal those of the host's additions. */
#include "pipeline/run/whole/whole_inside.h"
#include "pipeline/plan/staged.h"

#include "kernels/reduce/histogram.h"
#include "kernels/reduce/moments.h"
#include "pipeline/run/passes/reducing.h"

#include <stdlib.h>
#include <string.h>

/* Table entries of a flight. */
static struct pb_statistics_plane *planes_of(const struct pb_exec_whole *e, uint32_t flight)
{
    return e->reduce.planes + (size_t)flight * e->reduce.n;
}

static struct pb_statistics_part *parts_of(const struct pb_exec_whole *e,
                                           struct pb_statistics_part *all, uint32_t flight)
{
    return all + (size_t)flight * e->reduce.n;
}

static bool has_moments(const struct pb_exec_whole *e)
{
    for (uint32_t i = 0; i < e->reduce.n; i++)
        if (e->reduce.of[i].device == NULL)
            return true;
    return false;
}

/* --- making ---------------------------------------------------------------------------------- */

/* Lists the reductions of this round, percentiles last. */
static int list_reductions(struct pb_exec_whole *e, struct pb_err *err)
{
    const struct pb_plan *plan = e->map.plan;
    const struct pb_chain_reduction *reduction;
    const size_t n = pb_chain_reductions(plan->work.chain, &reduction);
    e->reduce.of = calloc(n + 1, sizeof *e->reduce.of);
    if (e->reduce.of == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory for the executor");
    for (int percentiles = 0; percentiles < 2; percentiles++)
        for (size_t i = 0; i < n; i++) {
            const bool is_one = reduction[i].reduce.kind == PB_REDUCE_PERCENTILES;
            void *state = is_one == percentiles && pb_plan_out_reduces(plan, i)
                              ? pb_reducing_device_state(e->stream->reducing, i)
                              : NULL;
            if (state != NULL)
                e->reduce.of[e->reduce.n++] =
                    (struct whole_reduced){.reduction = &reduction[i], .state = state};
        }
    return 0;
}

/* Allocates the state of percentiles on the device. */
static int open_state(struct pb_exec_whole *e, struct whole_reduced *of, struct pb_err *err)
{
    void *memory[2] = {NULL};
    of->bytes = pb_chain_state_bytes(of->reduction);
    int rc = e->ops->memory(e->device, of->bytes, err, &memory[0]);
    rc = rc ? rc : e->ops->table(e->device, of->bytes, err, &memory[1]);
    if (rc < 0)
        return rc;
    of->device = memory[0];
    of->told = memory[1];
    memcpy(of->told, of->state, of->bytes);
    return e->ops->copy(e->device, QUEUE_SEND, of->device, of->told, of->bytes, err);
}

static int open_parts(struct pb_exec_whole *e, struct pb_err *err)
{
    const size_t n = (size_t)e->n_flights * e->reduce.n;
    void *memory[3] = {NULL};
    int rc = e->ops->table(e->device, n * sizeof *e->reduce.planes, err, &memory[0]);
    e->reduce.planes = memory[0];
    if (rc < 0 || !has_moments(e))
        return rc;
    rc = e->ops->memory(e->device, n * sizeof *e->reduce.parts, err, &memory[1]);
    rc = rc ? rc : e->ops->table(e->device, n * sizeof *e->reduce.told, err, &memory[2]);
    e->reduce.parts = memory[1];
    e->reduce.told = memory[2];
    e->finish.scratch = calloc(1, sizeof *e->finish.scratch);
    if (rc == 0 && e->finish.scratch == NULL)
        rc = pb_fail(err, PB_E_MEMORY, "out of memory for the executor");
    return rc;
}

int whole_reduce_open(struct pb_exec_whole *e, struct pb_err *err)
{
    const uint32_t event = whole_event(e, EVENT_FLIGHT, 0); /* unused before the first flight */
    if (e->map.plan->engine.out.reduced == 0 || e->stream->reducing == NULL)
        return 0;
    int rc = list_reductions(e, err);
    for (uint32_t i = 0; i < e->reduce.n && rc == 0; i++)
        if (e->reduce.of[i].reduction->reduce.kind == PB_REDUCE_PERCENTILES)
            rc = open_state(e, &e->reduce.of[i], err);
    rc = rc ? rc : open_parts(e, err);
    rc = rc ? rc : e->ops->mark(e->device, QUEUE_SEND, event, err);
    return rc ? rc : whole_wait_event(e, event, PB_DEVICE_WAIT_FINISH_DONE, "sending counts", err);
}

void whole_reduce_close(struct pb_exec_whole *e)
{
    free(e->reduce.of);
    free(e->finish.scratch);
}

/* --- tiles ----------------------------------------------------------------------------------- */

int whole_reduce_tile(struct pb_exec_whole *e, uint32_t lane, uint32_t flight,
                      const struct pb_tile *tile, const struct pb_tile_out *out, struct pb_err *err)
{
    const uint64_t px = (uint64_t)tile->core.w * (uint64_t)tile->core.h;
    struct pb_statistics_plane *plane;
    uint32_t moments = 0;
    int rc = 0;
    if (e->reduce.planes == NULL) /* no reduction on the device */
        return 0;
    plane = planes_of(e, flight);
    for (uint32_t i = 0; i < e->reduce.n; i++) {
        const struct whole_reduced *of = &e->reduce.of[i];
        plane[i] = (struct pb_statistics_plane){.data = out->data +
                                                        of->reduction->output[0] * out->plane_px,
                                                .row_px = (uint32_t)tile->core.w,
                                                .w = tile->core.w,
                                                .h = tile->core.h};
        moments += of->device == NULL;
    }
    if (moments > 0) {
        struct pb_statistics_part *parts = parts_of(e, e->reduce.parts, flight);
        rc = e->ops->statistics(e->device, QUEUE_LANE + lane, plane, moments, px, parts, err);
        rc = rc ? rc
                : e->ops->copy(e->device, QUEUE_LANE + lane, parts_of(e, e->reduce.told, flight),
                               parts, moments * sizeof *parts, err);
    }
    for (uint32_t i = moments; i < e->reduce.n && rc == 0; i++)
        rc = e->ops->percentiles(e->device, QUEUE_LANE + lane, e->reduce.of[i].device, &plane[i], 1,
                                 px, err);
    return rc;
}

void whole_reduce_take(struct pb_exec_whole *e, uint32_t flight)
{
    const struct pb_statistics_part *part;
    if (e->reduce.told == NULL) /* no moments on the device */
        return;
    part = parts_of(e, e->reduce.told, flight);
    for (uint32_t i = 0; i < e->reduce.n && e->reduce.of[i].device == NULL; i++) {
        struct pb_moments moments;
        memset(e->finish.scratch, 0, sizeof *e->finish.scratch);
        if (pb_statistics_take(&part[i], &moments, e->finish.scratch))
            pb_reduce_merge(&e->reduce.of[i].reduction->reduce, e->reduce.of[i].state, &moments);
    }
}

int whole_reduce_end(struct pb_exec_whole *e, struct pb_err *err)
{
    const uint32_t event = whole_event(e, EVENT_FLIGHT, 0); /* all flights have ended */
    int rc = 0;
    if (e->reduce.n == 0)
        return 0;
    for (uint32_t i = 0; i < e->reduce.n && rc == 0; i++)
        if (e->reduce.of[i].device != NULL)
            rc = e->ops->copy(e->device, QUEUE_DOWN, e->reduce.of[i].told, e->reduce.of[i].device,
                              e->reduce.of[i].bytes, err);
    rc = rc ? rc : e->ops->mark(e->device, QUEUE_DOWN, event, err);
    rc = rc ? rc
            : whole_wait_event(e, event, PB_DEVICE_WAIT_FINISH_DONE, "bringing counts back", err);
    for (uint32_t i = 0; i < e->reduce.n && rc == 0; i++)
        if (e->reduce.of[i].device != NULL)
            memcpy(e->reduce.of[i].state, e->reduce.of[i].told, e->reduce.of[i].bytes);
    return rc;
}
