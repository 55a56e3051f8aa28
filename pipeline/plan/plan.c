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

struct pb_tile pb_plan_strip(const struct pb_plan *plan, uint32_t col, int32_t first, int32_t n)
{
    const struct pb_grid *const g = &plan->layout.grid;
    const int64_t cols = g->cols, all = plan->layout.strip_cols;
    const int32_t x = (int32_t)(cols * col / all) * g->side_px;
    const int64_t end = cols * (col + 1) / all * g->side_px;
    struct pb_tile strip = {
        .number = (uint32_t)first,
        .unit = (uint32_t)n,
        .core = {x, first, (int32_t)(end < g->image_w ? end : g->image_w) - x, n}};
    set_reads(plan, &strip);
    return strip;
}

int32_t pb_plan_strip_lines(const struct pb_plan *plan, int32_t first)
{
    const struct pb_grid *const g = &plan->layout.grid;
    const int32_t row = g->side_px - first % g->side_px;
    const int32_t left = row < g->image_h - first ? row : g->image_h - first;
    return left < plan->layout.lines ? left : plan->layout.lines;
}

void pb_plan_core_most(const struct pb_plan *plan, int32_t *out_w, int32_t *out_h)
{
    const struct pb_grid *const g = &plan->layout.grid;
    const bool by_strips = plan->layout.lines > 0;
    const int32_t w = by_strips ? g->image_w : g->side_px;
    const int32_t h = by_strips ? plan->layout.lines : g->side_px;
    *out_w = w < g->image_w ? w : g->image_w;
    *out_h = h < g->image_h ? h : g->image_h;
}

size_t pb_plan_strip_tile_bytes(const struct pb_plan *plan)
{
    const struct pb_grid *const g = &plan->layout.grid;
    const struct pb_tile tile = {.core = pb_grid_core(g, 0)};
    return pb_tile_out_px(&tile) * plan->work.outputs.n * sizeof(float);
}

uint64_t pb_plan_strip_rows_bytes(const struct pb_plan *plan)
{
    return plan->layout.lines > 0
               ? (uint64_t)plan->layout.strip_rows * (uint64_t)plan->layout.grid.cols *
                     pb_plan_strip_tile_bytes(plan)
               : 0;
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
