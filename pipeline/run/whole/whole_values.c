/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Values of a product's bands, counted in tables on the device. A table has room for a limited
 * number of new values; therefore planes are added in groups, and tall planes by rows. */
#include "pipeline/run/whole/whole_inside.h"

static struct pb_value_table *table_of(const struct whole_made *made, uint32_t band)
{
    return (struct pb_value_table *)(void *)(made->tables + band * made->table_bytes);
}

int whole_values_open(struct pb_exec_whole *e, uint32_t number, struct pb_err *err)
{
    struct whole_made *made = &e->dispatch.out.made[number];
    const struct pb_plan_out *plan = &e->map.plan->engine.out;
    const uint32_t limit = made->plan->blocks.values, bands = made->plan->blocks.format.n_bands;
    void *memory[2] = {NULL, e->dispatch.out.spare};
    if (limit == 0)
        return 0;
    made->table_bytes =
        (pb_value_table_bytes(limit) + PB_WHOLE_ALIGN - 1) / PB_WHOLE_ALIGN * PB_WHOLE_ALIGN;
    int rc = e->ops->memory(e->device, bands * made->table_bytes, err, &memory[0]);
    made->tables = memory[0];
    if (rc == 0 && e->dispatch.out.spare == NULL)
        rc = e->ops->memory(e->device, plan->spare_bytes, err, &memory[1]);
    e->dispatch.out.spare = memory[1];
    for (uint32_t b = 0; b < bands && rc == 0; b++)
        rc = e->ops->values_begin(e->device, QUEUE_OUT, table_of(made, b), limit, err);
    return rc ? rc : e->ops->values_begin(e->device, QUEUE_OUT, e->dispatch.out.spare, limit, err);
}

/* Adds planes of one band, of at most side x side pixels each, in groups that a table has room for.
 */
static int add_planes(struct pb_exec_whole *e, struct pb_value_table *table, uint64_t most_px,
                      struct pb_value_planes all, struct pb_err *err)
{
    const uint64_t side = (uint64_t)e->map.plan->layout.grid.side_px;
    const uint64_t fit = most_px / (side * side), rows = most_px / side;
    const uint32_t each = fit > 0 ? (uint32_t)fit : 1;
    int rc = 0;
    for (uint32_t i = 0; i < all.n && rc == 0; i += each)
        for (uint64_t y = 0; y < side && rc == 0; y += rows) {
            const struct pb_value_planes some = {.plane = all.plane + i * all.step,
                                                 .n = all.n - i < each ? all.n - i : each,
                                                 .step = all.step,
                                                 .row = (int32_t)y,
                                                 .rows = (int32_t)(rows < side ? rows : side)};
            rc = e->ops->values_add(e->device, QUEUE_OUT, table, e->dispatch.out.spare, &some, err);
        }
    return rc;
}

int whole_values_add(struct pb_exec_whole *e, const struct whole_batch_note *note,
                     const struct whole_batch *batch, struct pb_err *err)
{
    const struct whole_made *made = &e->dispatch.out.made[note->made];
    const uint32_t bands = made->plan->blocks.format.n_bands, limit = made->plan->blocks.values;
    const struct pb_statistics_plane *plane = (const void *)batch->input;
    int rc = 0;
    for (uint32_t i = 0; i < bands && i < note->n && limit > 0 && rc == 0; i++)
        rc = add_planes(e, table_of(made, batch->block[i].level), pb_value_table_px(limit),
                        (struct pb_value_planes){.plane = plane + i,
                                                 .n = (note->n - i + bands - 1) / bands,
                                                 .step = bands},
                        err);
    return rc;
}

int whole_values_list(struct pb_exec_whole *e, const struct whole_batch_note *note,
                      const struct whole_batch *batch, struct pb_err *err)
{
    const struct whole_made *made = &e->dispatch.out.made[note->made];
    return e->ops->values_list(e->device, QUEUE_OUT, table_of(made, batch->block[0].level),
                               made->plan->blocks.values,
                               (struct pb_value_part *)(void *)batch->encoded, err);
}
