/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/plan/plan_gate.h"

#include <math.h>

enum { SQUARE_PX = 512 };

void pb_plan_gate_split(struct pb_plan *plan, uint32_t source, const struct pb_raster_info *info)
{
    const struct pb_chain *gate = pb_chain_gate(plan->work.chain);
    struct pb_plan_source *s = &plan->work.source[source];
    size_t first = gate != NULL ? pb_chain_planes_of(gate, source) : 0;
    s->n_later = first > 0 && info->pixel_interleaved ? 0 : s->n_bands - first;
}

void pb_plan_gate_set(struct pb_plan *plan)
{
    struct pb_plan_gate gate = {.chain = pb_chain_gate(plan->work.chain),
                                .format = plan->layout.format};
    plan->layout.gate = gate;
    if (gate.chain == NULL)
        return;
    /* With a gate each file has its own window. */
    for (size_t i = 0; i < plan->work.n_sources; i++) {
        const struct pb_plan_bands first = pb_plan_bands_of(&plan->work.source[i], PB_PLAN_FIRST);
        gate.format.source[i].n_planes = (uint32_t)first.n;
        gate.format.source[i].has_mask = first.has_mask;
    }
    plan->layout.gate = gate;
}

static int32_t larger(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

static int32_t smaller(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

/* Smallest rectangle around both. */
static struct pb_rect united(const struct pb_rect *a, const struct pb_rect *b)
{
    if (a->w <= 0 || b->w <= 0)
        return a->w <= 0 ? *b : *a;
    int32_t x = smaller(a->x, b->x), y = smaller(a->y, b->y);
    return (struct pb_rect){x, y, larger(a->x + a->w, b->x + b->w) - x,
                            larger(a->y + a->h, b->y + b->h) - y};
}

struct pb_tile pb_plan_gate_tile(const struct pb_plan *plan, const struct pb_tile *tile)
{
    struct pb_tile first = *tile;
    first.core = pb_chain_gate_rect(plan->work.chain, &tile->core, true);
    for (uint32_t i = 0; i < plan->work.n_sources; i++) {
        struct pb_rect need = {0, 0, 0, 0};
        if (plan->layout.gate.format.source[i].n_planes == 0) {
            first.read[i] = need;
            continue;
        }
        if (first.core.w > 0 && pb_chain_planes_of(plan->layout.gate.chain, i) > 0)
            need = pb_chain_need(plan->layout.gate.chain, i, &first.core);
        first.read[i] = united(&need, &tile->read[i]);
    }
    return first;
}

struct pb_plan_gate_look pb_plan_gate_look(const struct pb_plan *plan, const struct pb_tile *tile)
{
    const double minimum = pb_chain_gate_minimum(plan->work.chain);
    struct pb_plan_gate_look look = {
        .first = pb_plan_gate_tile(plan, tile),
        .part = pb_chain_gate_rect(plan->work.chain, &tile->core, minimum == 0),
        .enough = 1};
    if (minimum > 0)
        look.enough = (uint64_t)ceil(minimum * look.part.w * look.part.h);
    return look;
}

struct pb_rect pb_plan_gate_most(const struct pb_plan *plan)
{
    const struct pb_grid *g = &plan->layout.grid;
    return pb_chain_gate_rect_most(plan->work.chain, smaller(g->side_px, g->image_w),
                                   smaller(g->side_px, g->image_h));
}

uint64_t pb_plan_gate_device_bytes(const struct pb_plan *plan)
{
    if (pb_chain_gate(plan->work.chain) == NULL)
        return 0;
    const struct pb_rect most = pb_plan_gate_most(plan);
    return PB_GATE_BATCH * (uint64_t)most.w * (uint64_t)most.h * sizeof(float);
}

struct pb_tile_in pb_plan_gate_view(const struct pb_plan *plan, const struct pb_tile_in *in,
                                    const struct pb_slot_format *format)
{
    const struct pb_chain *chain = plan->layout.gate.chain;
    const struct pb_geometry grid = pb_chain_geometry(chain);
    struct pb_tile_in view = *in;
    view.image_w = grid.w;
    view.image_h = grid.h;
    for (uint32_t i = 0; i < plan->work.n_sources; i++) {
        const size_t before = format->source[i].n_planes - pb_chain_planes_of(chain, i);
        if (view.window[i].data != NULL)
            view.window[i].data = (char *)view.window[i].data + before * view.window[i].plane_bytes;
    }
    return view;
}

void pb_plan_gate_size(struct pb_plan *plan, const struct pb_tile *largest)
{
    if (plan->layout.gate.chain == NULL)
        return;
    struct pb_rect core =
        pb_chain_gate_rect_most(plan->work.chain, largest->core.w, largest->core.h);
    struct pb_tile first = *largest;
    for (uint32_t i = 0; i < plan->work.n_sources; i++) {
        struct pb_rect need = pb_chain_need_most(plan->layout.gate.chain, i, core.w, core.h);
        /* Both grow by the same amount on every side, except for rounding. */
        first.read[i].w = larger(need.w, largest->read[i].w) + 2;
        first.read[i].h = larger(need.h, largest->read[i].h) + 2;
    }
    plan->layout.gate.plane_px = (size_t)core.w * (size_t)core.h;
    plan->layout.gate.read_bytes = pb_slot_tile_bytes(&plan->layout.gate.format, &first);
    plan->layout.gate.scratch_bytes =
        pb_chain_scratch_bytes(plan->layout.gate.chain, core.w, core.h);
}

uint64_t pb_plan_gate_blocks(const struct pb_plan_source *source, const struct pb_raster_info *info)
{
    uint64_t across =
        ((uint64_t)info->width + (uint64_t)info->block_w - 1) / (uint64_t)info->block_w;
    uint64_t down =
        ((uint64_t)info->height + (uint64_t)info->block_h - 1) / (uint64_t)info->block_h;
    return source->n_later > 0 ? across * down : 0;
}

uint64_t pb_plan_gate_bytes(const struct pb_plan *plan, const struct pb_plan_request *request)
{
    const struct pb_plan_gate *g = &plan->layout.gate;
    if (g->chain == NULL)
        return 0;
    uint64_t bytes = 0;
    for (size_t i = 0; i < plan->work.n_sources; i++)
        bytes +=
            2 *
            (pb_plan_gate_blocks(&plan->work.source[i], pb_plan_info(plan, request, i)) / 8 + 8);
    if (plan->engine.whole.used) /* the device computes the gate */
        return bytes;
    return bytes + plan->layout.readers *
                       ((uint64_t)g->read_bytes + g->scratch_bytes + g->plane_px * sizeof(float));
}

int32_t pb_plan_gate_side(const struct pb_plan *plan)
{
    return pb_chain_gate(plan->work.chain) != NULL && pb_chain_gate_minimum(plan->work.chain) > 0
               ? SQUARE_PX
               : 0;
}
