/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/plan/plan.h"

enum { KEPT_ALIGN = 64 };

static bool reads_itself(const struct pb_plan *plan, size_t source, int32_t band)
{
    for (size_t b = 0; b < plan->work.source[source].n_bands; b++)
        if (band == 0 || plan->work.source[source].bands[b] == band)
            return true;
    return false;
}

bool pb_plan_reads(const struct pb_plan *plan, size_t source, int32_t band)
{
    bool reads = reads_itself(plan, source, band);
    for (size_t i = 0; i < plan->n_earlier && !reads; i++)
        reads = reads_itself(plan->earlier[i], source, band);
    return reads;
}

static void set_reads(const struct pb_plan *plan, struct pb_tile *out)
{
    struct pb_tile tile = *out;
    for (uint32_t i = 0; i < plan->work.n_sources; i++) {
        const uint32_t window = plan->work.source[i].window;
        if (plan->work.source[i].n_bands == 0 || tile.read[window].w > 0)
            continue;
        tile.read[window] = pb_chain_keeps_grid(plan->work.chain)
                                ? pb_rect_grow(&tile.core, plan->work.halo,
                                               plan->layout.grid.image_w, plan->layout.grid.image_h)
                                : pb_chain_need(plan->work.chain, window, &tile.core);
    }
    *out = tile;
}

struct pb_tile pb_plan_tile(const struct pb_plan *plan, uint32_t number, uint32_t unit)
{
    struct pb_tile tile = {
        .number = number, .unit = unit, .core = pb_grid_core(&plan->layout.grid, number)};
    set_reads(plan, &tile);
    return tile;
}

struct pb_tile pb_plan_tile_rows(const struct pb_plan *plan, const struct pb_tile *of,
                                 int32_t first, int32_t n)
{
    struct pb_tile tile = {.number = of->number, .unit = of->unit, .core = of->core};
    tile.core.y += first;
    tile.core.h = n;
    set_reads(plan, &tile);
    return tile;
}

size_t pb_plan_lines_bytes(const struct pb_plan *plan)
{
    const struct pb_grid *const g = &plan->layout.grid;
    const size_t w = (size_t)(g->side_px < g->image_w ? g->side_px : g->image_w);
    return (size_t)plan->layout.lines * w * plan->work.outputs.n * sizeof(float);
}

struct pb_plan_bands pb_plan_bands_of(const struct pb_plan_source *source, enum pb_plan_part part)
{
    bool split = source->n_later < source->n_bands, first = part == PB_PLAN_FIRST;
    size_t from = first ? source->n_later : 0, to = first ? source->n_bands : source->n_later;
    return (struct pb_plan_bands){.bands = source->bands + from,
                                  .first = from,
                                  .n = to - from,
                                  .has_mask = source->has_mask && to > from && split == first};
}

size_t pb_plan_kept_bytes_of(const struct pb_plan *plan, uint32_t number)
{
    const struct pb_tile tile = pb_plan_tile(plan, number, 0);
    return pb_slot_align(pb_slot_tile_bytes(&plan->layout.format, &tile), KEPT_ALIGN);
}

uint32_t pb_plan_sink_workers(const struct pb_plan *plan)
{
    /* If readers are threads of their own, their count is at most that of writers. */
    return plan->layout.writers *
           (!plan->layout.by_workers && plan->layout.gate.chain != NULL ? 2 : 1);
}

uint64_t pb_plan_image_cells(const struct pb_plan *pass)
{
    const uint64_t side = (uint64_t)pb_areas_side(pass->layout.grid.side_px);
    return (((uint64_t)pass->layout.grid.image_w + side - 1) / side) *
           (((uint64_t)pass->layout.grid.image_h + side - 1) / side);
}

uint64_t pb_plan_image_steps(const struct pb_plan *plan)
{
    const struct pb_chain_image *images;
    uint64_t n = 0;
    for (size_t i = 0; i < plan->n_earlier; i++)
        n += PB_AREAS_LATER_ROUNDS * pb_chain_images(plan->earlier[i]->work.chain, &images) *
             pb_plan_image_cells(plan->earlier[i]);
    return n;
}

const struct pb_plan *pb_plan_largest(const struct pb_plan *plan)
{
    const struct pb_plan *most = plan;
    for (size_t i = 0; i < plan->n_earlier; i++)
        if (plan->earlier[i]->memory.total_bytes > most->memory.total_bytes)
            most = plan->earlier[i];
    return most;
}

uint64_t pb_plan_total_bytes(const struct pb_plan *plan)
{
    return pb_plan_largest(plan)->memory.total_bytes;
}

uint64_t pb_plan_wanted_bytes(const struct pb_plan *plan)
{
    uint64_t most = plan->memory.wanted_bytes;
    for (size_t i = 0; i < plan->n_earlier; i++)
        if (plan->earlier[i]->memory.wanted_bytes > most)
            most = plan->earlier[i]->memory.wanted_bytes;
    return most;
}
