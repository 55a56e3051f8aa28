/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Search for a valid pixel in tiles whose products the device makes, for the user's note that a
 * step found none on its new grid (run_publish.c). The valid pixels of each tile are counted there
 * until one is found; a lane counts in memory of its own, because its tiles follow each other. */
#include "pipeline/run/whole/whole_inside.h"

#include <stdlib.h>

_Static_assert(offsetof(struct pb_statistics_part, valid) == 0, "a part begins with its count");

int whole_valid_open(struct pb_exec_whole *e, struct pb_err *err)
{
    const struct pb_plan *plan = e->map.plan;
    struct whole_valid *v = &e->valid;
    void *memory[3] = {NULL};
    if (plan->work.warp == PB_CHAIN_NO_WARP || plan->is_earlier || plan->engine.out.n == 0)
        return 0;
    const size_t n = plan->work.outputs.n, flights = e->n_flights * n;
    int rc = e->ops->table(e->device, flights * sizeof *v->planes, err, &memory[0]);
    rc = rc ? rc : e->ops->memory(e->device, e->n_lanes * n * sizeof *v->parts, err, &memory[1]);
    rc = rc ? rc : e->ops->table(e->device, flights * sizeof *v->told, err, &memory[2]);
    v->looked = calloc(e->n_flights, sizeof *v->looked);
    if (rc == 0 && v->looked == NULL)
        rc = pb_fail(err, PB_E_MEMORY, "out of memory for the executor");
    v->planes = memory[0];
    v->parts = memory[1];
    v->told = memory[2];
    v->n = rc == 0 ? (uint32_t)n : 0;
    return rc;
}

void whole_valid_close(struct pb_exec_whole *e)
{
    free(e->valid.looked);
}

int whole_valid_look(struct pb_exec_whole *e, uint32_t lane, uint32_t flight,
                     const struct pb_tile *tile, const struct pb_tile_out *out, struct pb_err *err)
{
    struct whole_valid *v = &e->valid;
    if (v->n == 0)
        return 0;
    struct pb_statistics_plane *plane = v->planes + (size_t)flight * v->n;
    struct pb_statistics_part *part = v->parts + (size_t)lane * v->n;
    v->looked[flight] = !atomic_load(&v->found);
    if (!v->looked[flight])
        return 0;
    for (uint32_t i = 0; i < v->n; i++)
        plane[i] = (struct pb_statistics_plane){.data = out->data + i * out->plane_px,
                                                .row_px = (uint32_t)tile->core.w,
                                                .w = tile->core.w,
                                                .h = tile->core.h};
    int rc = e->ops->statistics(e->device, QUEUE_LANE + lane, plane, v->n,
                                (uint64_t)tile->core.w * (uint64_t)tile->core.h, part, err);
    for (uint32_t i = 0; i < v->n && rc == 0; i++)
        rc = e->ops->copy(e->device, QUEUE_LANE + lane, &v->told[(size_t)flight * v->n + i],
                          &part[i], sizeof *v->told, err);
    return rc;
}

void whole_valid_take(struct pb_exec_whole *e, uint32_t flight)
{
    struct whole_valid *v = &e->valid;
    for (uint32_t i = 0; i < v->n && v->looked[flight]; i++)
        if (v->told[(size_t)flight * v->n + i] > 0)
            atomic_store(&v->found, true);
}
