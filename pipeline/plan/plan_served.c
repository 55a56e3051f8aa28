/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Plan of a process that computes for another, from the request of that process. */
#include "pipeline/plan/plan_served.h"

#include "config/config.h"
#include "config/pipeline_config.h"
#include "pipeline/plan/work.h"
#include "pipeline/plan/values.h"
#include "pipeline/plan/memory.h"
#include "pipeline/plan/choose.h"
#include "pipeline/plan/plan_served_parts.h"

#include "kernels/vm/curve_pixel.h"
#include "wic/wic.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

uint64_t pb_served_slots_bytes(const struct pb_plan *pass)
{
    return pass->layout.in_slots * (uint64_t)wic_slot_stride(pass->layout.in_slot_bytes) +
           pass->layout.out_slots * (uint64_t)wic_slot_stride(pass->layout.out_slot_bytes);
}

/* The facts in the form in which a file header would give them. */
struct facts {
    struct pb_raster_info info[PB_FILES_MAX];
    struct pb_plan_other others[PB_FILES_MAX];
    struct pb_plan_out out;
};

static void take_layout(const struct pb_served_layout *said, struct pb_raster_info *info)
{
    info->own_blocks = said->by_host == 0;
    info->alpha_band = said->alpha_band;
    info->block_w = said->block_w;
    info->block_h = said->block_h;
    info->tiled = said->tiled != 0;
    info->big_endian = said->big_endian != 0;
    info->pixel_interleaved = said->planar == 0;
    info->tiff_compression = (uint16_t)said->compression;
    info->tiff_predictor = (uint16_t)said->predictor;
    info->stored_block_bytes = said->stored_max;
}

static void take_source(const struct pb_served_source *said, bool whole,
                        struct pb_raster_info *info)
{
    info->width = said->w;
    info->height = said->h;
    info->n_bands = said->n_bands;
    info->type = (enum pb_type)said->type;
    info->block_w = info->block_h = 256; /* unused without reading */
    if (whole)
        take_layout(&said->layout, info);
    info->has_mask = said->has_mask != 0;
    info->complex.kind = said->is_complex ? PB_COMPLEX_F32 : PB_COMPLEX_NONE;
    for (int32_t i = 0; i < said->n_bands; i++) {
        info->band[i].has_nodata = said->has_nodata[i] != 0;
        info->band[i].nodata_unreadable = said->nodata_unreadable[i] != 0;
        info->band[i].nodata = said->nodata[i];
        info->band[i].is_class = said->is_class[i] != 0;
    }
}

/* Origin of source i + 1. */
static enum pb_plan_made_of made_of(const struct pb_pipeline_config *pipeline, size_t i)
{
    if (i < pipeline->input.n_sources)
        return PB_MADE_OF_FILE;
    return i == pipeline->input.n_sources && pb_plan_tables(pipeline) > 0 ? PB_MADE_OF_TABLES
                                                                          : PB_MADE_OF_POLYGONS;
}

static void take_facts(const struct pb_served_request *said, struct facts *facts,
                       struct pb_plan_request *request)
{
    for (uint32_t i = 0; i < said->n_sources; i++)
        take_source(&said->source[i], said->whole != 0, &facts->info[i]);
    request->whole_said = said->whole != 0 ? (int32_t)said->whole : -1;
    facts->info[0].has_transform = said->has_transform != 0;
    memcpy(facts->info[0].transform, said->transform, sizeof said->transform);
    facts->info[0].unit = said->unit;
    request->info = &facts->info[0];
    request->n_others = said->n_sources - 1;
    for (uint32_t i = 1; i < said->n_sources; i++)
        facts->others[i - 1] =
            (struct pb_plan_other){.config = i <= request->pipeline->input.n_sources
                                                 ? &request->pipeline->input.sources[i - 1]
                                                 : NULL,
                                   .made_of = made_of(request->pipeline, i - 1),
                                   .info = &facts->info[i],
                                   .is_absent = said->source[i].is_absent != 0,
                                   .placed = said->source[i].placed != 0,
                                   .map = said->source[i].map};
    request->others = facts->others;
    request->said_out = &facts->out;
    request->tile = said->has_tile ? &said->tile : NULL;
}

/* Takes the rules and areas, which stay in the tail. */
static bool take_arrays(const struct pb_served_request *said, struct pb_served_tail *tail,
                        struct pb_plan_request *request)
{
    request->rules = pb_served_tail_take(tail, said->n_rules, sizeof *request->rules);
    request->areas = pb_served_tail_take(tail, said->n_areas, sizeof *request->areas);
    bool sound = request->rules != NULL && request->areas != NULL;
    for (uint32_t i = 0; i < said->n_rules && sound; i++)
        sound = pb_served_is_rule(&request->rules[i]);
    for (uint32_t i = 0; i < said->n_areas && sound; i++)
        sound = pb_served_is_area(said, &request->areas[i], request->pipeline);
    request->n_rules = said->n_rules;
    request->n_areas = said->n_areas;
    return sound;
}

/* Takes the knots of a pass's curves. */
static bool take_curves(struct pb_served_tail *tail, const struct pb_plan *plan,
                        struct pb_plan *pass)
{
    for (uint32_t i = 0; i < pb_chain_curves(plan->work.chain); i++) {
        const uint32_t *n = pb_served_tail_take(tail, 1, sizeof *n);
        const float *knots = n != NULL && *n <= PB_CURVE_KNOTS_MAX
                                 ? pb_served_tail_take(tail, *n, 2 * sizeof *knots)
                                 : NULL;
        bool sound = knots != NULL;
        for (uint32_t k = 0; sound && k < *n; k++)
            sound = isfinite(knots[2 * k]) && isfinite(knots[2 * k + 1]) &&
                    (k == 0 || knots[2 * k] >= knots[2 * k - 2]);
        if (!sound)
            return false;
        pb_chain_set_knots(pass->work.chain, i, knots, *n);
    }
    return true;
}

/* Takes the numbers; the chain determines how many there are. */
static bool take_numbers(struct pb_served_tail *tail, struct pb_plan *plan, struct pb_plan *pass)
{
    const struct pb_chain_reduction *r;
    for (size_t i = 0; i < plan->n_earlier; i++) {
        size_t n = pb_chain_reductions(plan->earlier[i]->work.chain, &r);
        for (size_t k = 0; k < n; k++) {
            const double *results = pb_served_tail_take(tail, r[k].reduce.n, sizeof *results);
            if (results == NULL)
                return false;
            pb_chain_set_results(plan->work.chain, &r[k], results);
        }
    }
    size_t n = pb_chain_reductions(pass->work.chain, &r);
    for (size_t k = 0; k < n; k++) {
        const float *numbers = pb_served_tail_take(tail, r[k].reduce.n_numbers, sizeof *numbers);
        if (numbers == NULL)
            return false;
        pb_chain_loop_again(pass->work.chain, &r[k], numbers);
    }
    return take_curves(tail, plan, pass);
}

static int bad(struct pb_err *err)
{
    return pb_fail(err, PB_E_SERVICE_PROTOCOL,
                   "a request to compute that does not fit its configuration");
}

/* Sets sides, slots and threads of the pass from the request. */
static int size_pass(struct pb_plan *pass, const struct pb_plan_request *request,
                     const struct pb_served_request *said, struct pb_err *err)
{
    struct pb_plan base = *pass;
    (void)pb_plan_begin(&base, request);
    int rc = pb_plan_with_side(&base, request, said->side_px, err, pass);
    if (rc < 0)
        return rc;
    if (pass->engine.whole.used != (said->whole != 0) || pass->engine.out.n != said->out.n)
        return bad(err);
    pb_plan_size_slots(pass);
    pass->layout.in_slots = said->in_slots;
    pass->layout.out_slots = said->out_slots;
    pass->layout.workers = said->workers;
    pass->layout.order = (enum pb_order)said->order;
    pass->layout.window_units = said->window_units;
    pass->layout.grid.stripe_cols = said->stripe_cols;
    pass->layout.grid.unit_cols = said->unit_cols;
    if (pass->engine.whole.used &&
        (pass->layout.order != PB_ORDER_ROWS || said->stripe_cols != 0 || said->unit_cols != 1))
        return bad(err);
    uint64_t most = request->config->compute.memory_bytes;
    uint64_t in = wic_slot_stride(pass->layout.in_slot_bytes),
             out = wic_slot_stride(pass->layout.out_slot_bytes);
    if (in > most || out > most || pb_served_slots_bytes(pass) > most || said->room_bytes > most)
        return bad(err);
    const struct pb_grid *g = &pass->layout.grid;
    int32_t w = g->side_px < g->image_w ? g->side_px : g->image_w;
    int32_t h = g->side_px < g->image_h ? g->side_px : g->image_h;
    if (pass->engine.cuda && pb_chain_plane_px(pass->work.chain, w, h) > INT32_MAX)
        return bad(err);
    return 0;
}

int pb_plan_serve(const struct pb_plan_request *base, const struct pb_served_request *said,
                  struct pb_served_tail *tail, struct pb_err *err, struct pb_plan **out_plan,
                  struct pb_plan **out_pass)
{
    struct pb_plan_request request = *base;
    if (!pb_served_is_sound(said, base) || !take_arrays(said, tail, &request))
        return bad(err);
    struct pb_plan *plan = calloc(1, sizeof *plan), *pass = NULL;
    struct facts *facts = calloc(1, sizeof *facts);
    int rc = plan && facts ? 0 : pb_fail(err, PB_E_MEMORY, "out of memory while planning");
    if (rc == 0 && !pb_served_take_out(&said->out, &facts->out))
        rc = bad(err);
    if (rc == 0) {
        take_facts(said, facts, &request);
        request.remote = true;
        request.ways = tail;
        if (said->by_streams && request.stream_why == NULL)
            request.stream_why = "the run requests streams";
        rc = pb_plan_bands(plan, &request, err);
    }
    if (rc == 0 && said->pass > plan->n_earlier)
        rc = bad(err);
    if (rc == 0) {
        pass = said->pass < plan->n_earlier ? plan->earlier[said->pass] : plan;
        rc = take_numbers(tail, plan, pass) ? size_pass(pass, &request, said, err) : bad(err);
        plan->layout.exchange = base->pipeline->exchange;
    }
    free(facts);
    if (rc < 0) {
        pb_plan_destroy(plan);
        return rc;
    }
    *out_plan = plan;
    *out_pass = pass;
    return 0;
}
