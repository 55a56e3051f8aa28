/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Makes the request of the process that has the scene to the one that computes. */
#include "pipeline/plan/plan_served.h"
#include "config/config.h"
#include "pipeline/plan/plan_served_parts.h"

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

static int say_numbers(const double *from, uint32_t n, struct pb_err *err,
                       struct pb_served_request *out)
{
    if (n > PB_SERVED_NUMBERS_MAX - out->n_numbers)
        return pb_fail(err, PB_E_DEVICE_FAILED,
                       "the pipeline has more reductions than the process that owns the device "
                       "takes");
    memcpy(&out->numbers[out->n_numbers], from, n * sizeof *from);
    out->n_numbers += n;
    return 0;
}

static int say_loop(const struct pb_chain *pass, const struct pb_chain_reduction *loop,
                    struct pb_err *err, struct pb_served_request *out)
{
    float now[PB_REDUCE_NUMBERS_MAX] = {0};
    double numbers[PB_REDUCE_NUMBERS_MAX];
    pb_chain_loop_start(pass, loop, now);
    for (uint32_t k = 0; k < loop->reduce.n_numbers; k++)
        numbers[k] = now[k];
    return say_numbers(numbers, loop->reduce.n_numbers, err, out);
}

static int say_results(const struct pb_plan *plan, const struct pb_plan *own, struct pb_err *err,
                       struct pb_served_request *out)
{
    const struct pb_chain_reduction *r;
    int rc = 0;
    for (size_t i = 0; i < plan->n_earlier; i++) {
        size_t n = pb_chain_reductions(plan->earlier[i]->work.chain, &r);
        for (size_t k = 0; k < n && rc == 0; k++)
            rc = say_numbers(r[k].results, r[k].reduce.n, err, out);
    }
    size_t n = pb_chain_reductions(own->work.chain, &r);
    for (size_t k = 0; k < n && rc == 0; k++)
        rc = say_loop(own->work.chain, &r[k], err, out);
    return rc;
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

static int say_rules(const struct pb_plan *plan, struct pb_err *err, struct pb_served_request *out)
{
    if (plan->work.n_calibrated > PB_SERVED_RULES_MAX)
        return pb_fail(err, PB_E_DEVICE_FAILED,
                       "the pipeline calibrates more bands than the process that owns the device "
                       "takes");
    out->n_rules = (uint32_t)plan->work.n_calibrated;
    for (uint32_t i = 0; i < out->n_rules; i++) {
        const struct pb_calibrated *c = &plan->work.calibrated[i];
        out->rule[i] = (struct pb_served_rule){.step = (uint32_t)c->step,
                                               .entry = (uint32_t)c->entry,
                                               .has_planck = c->rule.has_planck,
                                               .gain = c->rule.gain,
                                               .offset = c->rule.offset,
                                               .k1 = c->rule.k1,
                                               .k2 = c->rule.k2,
                                               .has_tables = c->rule.has_tables,
                                               .area = c->rule.area,
                                               .noise = c->rule.noise};
    }
    return 0;
}

static int say_areas(const struct pb_plan_request *request, struct pb_err *err,
                     struct pb_served_request *out)
{
    if (request->n_areas > PB_SERVED_AREAS_MAX)
        return pb_fail(err, PB_E_DEVICE_FAILED,
                       "the pipeline crops more often than the process that owns the device takes");
    out->n_areas = (uint32_t)request->n_areas;
    for (uint32_t i = 0; i < out->n_areas; i++) {
        const struct pb_area *a = &request->areas[i].area;
        out->area[i] = (struct pb_served_area){.step = (uint32_t)request->areas[i].step,
                                               .none = a->none,
                                               .has_cutline = a->has_cutline,
                                               .cutline = a->cutline,
                                               .left = a->left,
                                               .top = a->top,
                                               .right = a->right,
                                               .bottom = a->bottom};
    }
    return 0;
}

int pb_served_request_make(const struct pb_plan_request *request, const struct pb_plan *plan,
                           uint32_t pass, struct pb_err *err, struct pb_served_request *out)
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
    int rc = say_rules(plan, err, out);
    rc = rc ? rc : say_areas(request, err, out);
    return rc ? rc : say_results(plan, own, err, out);
}
