/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Rows of tiles on the device, and their consumers. All work on them is queued in order; therefore
 * a strip is overwritten after the work that reads it. Only the lists that the device reads in host
 * memory need a wait. */
#include "pipeline/run/whole/whole_inside.h"

#include <stdlib.h>
#include <string.h>

/* A kind of product that is made from rows of tiles: whole_encode.c. */
struct consumer {
    int (*open)(struct pb_exec_whole *e, struct pb_err *err);
    void (*close)(struct pb_exec_whole *e);
    /* Queues the work on the row out->row in QUEUE_OUT. */
    int (*row)(struct pb_exec_whole *e, struct pb_err *err);
};

static const struct consumer consumers[] = {
    {whole_encode_open, whole_encode_close, whole_encode_row},
};
enum { CONSUMERS = sizeof consumers / sizeof consumers[0] };

static const struct pb_plan_out *plan_of(const struct pb_exec_whole *e)
{
    return &e->map.plan->engine.out;
}

static uint32_t strip_of(const struct pb_exec_whole *e, uint32_t row)
{
    return row % plan_of(e)->strips;
}

int whole_out_open(struct pb_exec_whole *e, struct pb_err *err)
{
    const struct pb_plan_out *plan = plan_of(e);
    const uint64_t tiles = (uint64_t)plan->strips * (uint64_t)e->map.plan->layout.grid.cols;
    void *memory = NULL;
    if (plan->n == 0)
        return 0;
    e->dispatch.out.lane_row = calloc(e->n_lanes, sizeof *e->dispatch.out.lane_row);
    if (e->dispatch.out.lane_row == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory for the executor");
    int rc = e->ops->memory(e->device, tiles * plan->tile_bytes, err, &memory);
    e->dispatch.out.strips = memory;
    for (int i = 0; i < CONSUMERS && rc == 0; i++)
        rc = consumers[i].open(e, err);
    return rc;
}

void whole_out_close(struct pb_exec_whole *e)
{
    for (int i = 0; i < CONSUMERS; i++)
        consumers[i].close(e);
    free(e->dispatch.out.lane_row);
}

float *whole_out_place(const struct pb_exec_whole *e, uint32_t tile)
{
    const uint32_t cols = (uint32_t)e->map.plan->layout.grid.cols;
    if (plan_of(e)->n == 0)
        return NULL;
    const uint64_t place = (uint64_t)strip_of(e, tile / cols) * cols + tile % cols;
    return (float *)(void *)(e->dispatch.out.strips + place * plan_of(e)->tile_bytes);
}

int whole_out_before(struct pb_exec_whole *e, uint32_t lane, uint32_t tile, struct pb_err *err)
{
    const uint32_t row = tile / (uint32_t)e->map.plan->layout.grid.cols;
    if (plan_of(e)->n == 0 || e->dispatch.out.lane_row[lane] == row + 1)
        return 0;
    e->dispatch.out.lane_row[lane] = row + 1;
    return row < plan_of(e)->strips
               ? 0
               : e->ops->after(e->device, QUEUE_LANE + lane,
                               whole_event(e, EVENT_STRIP, strip_of(e, row)), err);
}

/* Makes later work in QUEUE_OUT wait for all queued tiles. */
static int join_lanes(struct pb_exec_whole *e, struct pb_err *err)
{
    int rc = 0;
    for (uint32_t i = 0; i < e->n_lanes && rc == 0; i++) {
        rc = e->ops->mark(e->device, QUEUE_LANE + i, whole_event(e, EVENT_LANE, i), err);
        rc = rc ? rc : e->ops->after(e->device, QUEUE_OUT, whole_event(e, EVENT_LANE, i), err);
    }
    return rc;
}

int whole_out_after(struct pb_exec_whole *e, uint32_t tile, struct pb_err *err)
{
    const uint32_t cols = (uint32_t)e->map.plan->layout.grid.cols, row = tile / cols;
    if (plan_of(e)->n == 0 || tile % cols != cols - 1)
        return 0;
    const uint32_t event = whole_event(e, EVENT_STRIP, strip_of(e, row));
    int rc = row < plan_of(e)->strips
                 ? 0
                 : whole_wait_event(e, event, PB_DEVICE_WAIT_DISPATCH_ROW, "making products", err);
    rc = rc ? rc : join_lanes(e, err);
    e->dispatch.out.row = row;
    for (int i = 0; i < CONSUMERS && rc == 0; i++)
        rc = consumers[i].row(e, err);
    return rc ? rc : e->ops->mark(e->device, QUEUE_OUT, event, err);
}
