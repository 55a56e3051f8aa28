/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Makes the request of the process that has the scene to the one that computes. */
#include "pipeline/plan/plan_served.h"
#include "config/config.h"
#include "pipeline/plan/plan_served_parts.h"
#include "pipeline/plan/plan_ways.h"

#include <errno.h>
#include <string.h>

static void say_source(const struct pb_raster_info *info, struct pb_served_source *out)
{
    out->w = info->width;
    out->h = info->height;
    out->n_bands = info->n_bands;
    out->type = (int32_t)info->type;
    out->has_mask = info->has_mask;
    out->is_complex = info->complex.kind != PB_COMPLEX_NONE;
    for (int32_t i = 0; i < info->n_bands; i++) {
        out->has_nodata[i] = info->band[i].has_nodata;
        out->nodata_unreadable[i] = info->band[i].nodata_unreadable;
        out->nodata[i] = info->band[i].nodata;
        out->is_class[i] = info->band[i].is_class;
    }
}

static int send_loop(const struct pb_chain *pass, const struct pb_chain_reduction *loop,
                     struct pb_err *err, struct pb_served_tail *tail)
{
    float now[PB_REDUCE_NUMBERS_MAX] = {0};
    pb_chain_loop_start(pass, loop, now);
    return pb_served_tail_add(tail, now, loop->reduce.n_numbers * sizeof *now, err);
}

static int send_curves(const struct pb_plan *plan, const struct pb_plan *own, struct pb_err *err,
                       struct pb_served_tail *tail)
{
    int rc = 0;
    for (uint32_t i = 0; i < pb_chain_curves(plan->work.chain) && rc == 0; i++) {
        const float *knots;
        const uint32_t n = pb_chain_curve_knots(own->work.chain, i, &knots);
        rc = pb_served_tail_add(tail, &n, sizeof n, err);
        rc = rc ? rc : pb_served_tail_add(tail, knots, n * 2 * sizeof *knots, err);
    }
    return rc;
}

static int send_results(const struct pb_plan *plan, const struct pb_plan *own, struct pb_err *err,
                        struct pb_served_tail *tail)
{
    const struct pb_chain_reduction *r;
    int rc = 0;
    for (size_t i = 0; i < plan->n_earlier; i++) {
        size_t n = pb_chain_reductions(plan->earlier[i]->work.chain, &r);
        for (size_t k = 0; k < n && rc == 0; k++)
            rc = pb_served_tail_add(tail, r[k].results, r[k].reduce.n * sizeof *r[k].results, err);
    }
    size_t n = pb_chain_reductions(own->work.chain, &r);
    for (size_t k = 0; k < n && rc == 0; k++)
        rc = send_loop(own->work.chain, &r[k], err, tail);
    return rc ? rc : send_curves(plan, own, err, tail);
}

/* All passes have the slots of the largest, if the budget has room for them in each. Measured on
 * an H200: streams of several passes take 0.6 of the time then, but a resident kernel whose tiles
 * are summed up takes four times as long; with such a kernel each pass therefore has its own. */
static uint64_t room_bytes(const struct pb_plan *plan, uint64_t budget)
{
    uint64_t most = pb_served_slots_bytes(plan);
    for (size_t i = 0; i < plan->n_earlier; i++) {
        uint64_t own = pb_served_slots_bytes(plan->earlier[i]);
        most = own > most ? own : most;
    }
    for (size_t i = 0; i <= plan->n_earlier; i++) {
        const struct pb_plan *pass = i < plan->n_earlier ? plan->earlier[i] : plan;
        if (pass->engine.resident.used ||
            pass->memory.total_bytes - pb_served_slots_bytes(pass) + most > budget)
            return 0;
    }
    return most;
}

/* Appends the facts of variable size. */
static int make_tail(const struct pb_plan_request *request, const struct pb_plan *plan,
                     const struct pb_plan *own, struct pb_err *err, struct pb_served_tail *tail)
{
    int rc = pb_served_tail_add(tail, plan->work.calibrated,
                                plan->work.n_calibrated * sizeof *plan->work.calibrated, err);
    rc = rc ? rc
            : pb_served_tail_add(tail, request->areas, request->n_areas * sizeof *request->areas,
                                 err);
    rc = rc ? rc : pb_plan_ways_send(plan, tail, err);
    return rc ? rc : send_results(plan, own, err, tail);
}

int pb_served_request_make(const struct pb_plan_request *request, const struct pb_plan *plan,
                           uint32_t pass, struct pb_err *err, struct pb_served_request *out,
                           struct pb_served_tail *out_tail)
{
    const struct pb_plan *own = pass < plan->n_earlier ? plan->earlier[pass] : plan;
    const struct pb_raster_info *info = request->info;
    memset(out, 0, sizeof *out);
    out->pass = pass;
    out->side_px = own->layout.grid.side_px;
    out->in_slots = own->layout.in_slots;
    out->out_slots = own->layout.out_slots;
    out->workers = own->layout.workers;
    out->room_bytes = room_bytes(plan, request->config->compute.memory_bytes);
    out->order = (uint32_t)own->layout.order;
    out->window_units = own->layout.window_units;
    out->stripe_cols = own->layout.grid.stripe_cols;
    out->unit_cols = own->layout.grid.unit_cols;
    out->whole = own->engine.whole.used ? 1 + (uint32_t)own->engine.whole.shares : 0;
    pb_served_say_out(&own->engine.out, &out->out);
    out->by_streams = request->stream_why != NULL;
    out->has_transform = info->has_transform;
    memcpy(out->transform, info->transform, sizeof out->transform);
    out->unit = info->unit;
    out->n_sources = 1 + (uint32_t)request->n_others;
    say_source(info, &out->source[0]);
    out->source[0].placed = true;
    out->source[0].map = pb_map_identity();
    for (size_t i = 0; i < request->n_others; i++) {
        say_source(request->others[i].info, &out->source[i + 1]);
        out->source[i + 1].placed = request->others[i].placed;
        out->source[i + 1].is_absent = request->others[i].is_absent;
        if (request->others[i].placed)
            out->source[i + 1].map = request->others[i].map;
    }
    out->n_rules = (uint32_t)plan->work.n_calibrated;
    out->n_areas = (uint32_t)request->n_areas;
    out->has_tile = request->tile != NULL;
    if (request->tile != NULL)
        out->tile = *request->tile;
    return make_tail(request, plan, own, err, out_tail);
}
