/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/plan/plan_served.h"

#include "pipeline/plan/plan_bands.h"
#include "pipeline/plan/plan_calibrate.h"
#include "pipeline/plan/plan_fit.h"
#include "pipeline/plan/plan_parts.h"

#include "wic/wic.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Coordinates and scales beyond this are no place on a raster. */
#define FAR 1e15

/* --- the process that asks ------------------------------------------------------------------ */

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
        size_t n = pb_chain_reductions(plan->earlier[i]->chain, &r);
        for (size_t k = 0; k < n && rc == 0; k++)
            rc = say_numbers(r[k].results, r[k].reduce.n, err, out);
    }
    size_t n = pb_chain_reductions(own->chain, &r);
    for (size_t k = 0; k < n && rc == 0; k++)
        rc = say_loop(own->chain, &r[k], err, out);
    return rc;
}

static uint64_t slots_bytes(const struct pb_plan *pass)
{
    return pass->in_slots * (uint64_t)wic_slot_stride(pass->in_slot_bytes) +
           pass->out_slots * (uint64_t)wic_slot_stride(pass->out_slot_bytes);
}

/* All passes have the slots of the largest, where the budget has room for them in each. Measured on
 * an H200: streams of several passes take 0.6 of the time then, a resident kernel whose tiles are
 * summed up four times as long; so with one each pass has its own. */
static uint64_t room_bytes(const struct pb_plan *plan, uint64_t budget)
{
    uint64_t most = slots_bytes(plan);
    for (size_t i = 0; i < plan->n_earlier; i++) {
        uint64_t own = slots_bytes(plan->earlier[i]);
        most = own > most ? own : most;
    }
    for (size_t i = 0; i <= plan->n_earlier; i++) {
        const struct pb_plan *pass = i < plan->n_earlier ? plan->earlier[i] : plan;
        if (pass->resident.used || pass->total_bytes - slots_bytes(pass) + most > budget)
            return 0;
    }
    return most;
}

static int say_rules(const struct pb_plan *plan, struct pb_err *err, struct pb_served_request *out)
{
    if (plan->n_calibrated > PB_SERVED_RULES_MAX)
        return pb_fail(err, PB_E_DEVICE_FAILED,
                       "the pipeline calibrates more bands than the process that owns the device "
                       "takes");
    out->n_rules = (uint32_t)plan->n_calibrated;
    for (uint32_t i = 0; i < out->n_rules; i++) {
        const struct pb_calibrated *c = &plan->calibrated[i];
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
    out->side_px = own->grid.side_px;
    out->in_slots = own->in_slots;
    out->out_slots = own->out_slots;
    out->workers = own->workers;
    out->room_bytes = room_bytes(plan, request->config->compute.memory_bytes);
    out->order = (uint32_t)own->order;
    out->window_units = own->window_units;
    out->stripe_cols = own->grid.stripe_cols;
    out->unit_cols = own->grid.unit_cols;
    out->whole = own->whole.used ? 1 + (uint32_t)own->whole.shares : 0;
    pb_served_say_out(&own->out, &out->out);
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

/* --- the process that is asked -------------------------------------------------------------- */

static bool is_near(double x)
{
    return isfinite(x) && fabs(x) <= FAR;
}

static bool is_scale(double x)
{
    return is_near(x) && x >= 1 / FAR;
}

static bool is_source(const struct pb_served_source *s, const struct pb_limits *limits)
{
    bool sized = s->w > 0 && s->h > 0 && s->w <= limits->max_side_px &&
                 s->h <= limits->max_side_px &&
                 (uint64_t)s->w * (uint64_t)s->h <= limits->max_pixels;
    bool banded = s->n_bands > 0 && s->n_bands <= PB_BANDS_MAX && s->n_bands <= limits->max_bands;
    bool mapped = !s->placed || (is_scale(s->map.scale_x) && is_scale(s->map.scale_y) &&
                                 is_near(s->map.offset_x) && is_near(s->map.offset_y));
    return sized && banded && mapped && s->type >= 0 && s->type < PB_TYPE_COUNT;
}

static bool is_layout(const struct pb_served_source *s, const struct pb_limits *limits)
{
    const struct pb_served_layout *l = &s->layout;
    bool sized = l->block_w > 0 && l->block_h > 0 && l->block_w <= limits->max_side_px &&
                 l->block_h <= limits->max_side_px && l->stored_max <= limits->max_block_bytes * 2;
    uint64_t bytes = sized ? (uint64_t)l->block_w * (uint64_t)l->block_h *
                                 pb_type_bytes((enum pb_type)s->type) *
                                 (l->planar ? 1 : (uint64_t)s->n_bands)
                           : UINT64_MAX;
    bool masked = l->alpha_band >= 0 && l->alpha_band <= s->n_bands;
    bool known = masked && l->predictor >= 1 && l->predictor <= 3 && l->compression <= UINT16_MAX;
    bool floats = l->predictor != 3 || s->type == PB_F32 || s->type == PB_F64;
    return sized && known && floats &&
           (l->compression == 1 || (bytes <= limits->max_block_bytes && bytes <= UINT32_MAX)) &&
           bytes <= INT64_MAX / 2;
}

/* The scene, other files, and what is made of its metadata. */
static size_t sources_of(const struct pb_pipeline_config *pipeline)
{
    return 1 + pipeline->input.n_sources + (pb_plan_tables(pipeline) > 0) +
           (pb_plan_cutlines(pipeline) > 0);
}

/* A plane that the last source has. */
static bool is_cutline(const struct pb_served_request *said, const struct pb_served_area *area,
                       const struct pb_pipeline_config *pipeline)
{
    return area->has_cutline == 0 || (pb_plan_cutlines(pipeline) > 0 && area->cutline >= 0 &&
                                      area->cutline < said->source[said->n_sources - 1].n_bands);
}

/* What source i + 1 is made of. */
static enum pb_plan_made_of made_of(const struct pb_pipeline_config *pipeline, size_t i)
{
    if (i < pipeline->input.n_sources)
        return PB_MADE_OF_FILE;
    return i == pipeline->input.n_sources && pb_plan_tables(pipeline) > 0 ? PB_MADE_OF_TABLES
                                                                          : PB_MADE_OF_POLYGONS;
}

static bool is_unit(const struct pb_ground_unit *unit)
{
    const bool even = unit->law == PB_GROUND_EVEN;
    const bool known = even || unit->law == PB_GROUND_LATITUDE || unit->law == PB_GROUND_MERCATOR;
    bool fine = known && unit->square >= 0 && unit->square < 1 && unit->map_square >= 0 &&
                unit->map_square < 1 && is_near(unit->origin);
    for (int i = 0; i < 2; i++)
        fine = fine && is_near(unit->metres[i]) && unit->metres[i] >= 0;
    return fine && (even || (is_scale(unit->axis) && is_scale(unit->radians)));
}

static bool is_sound(const struct pb_served_request *said, const struct pb_plan_request *base)
{
    bool counted = said->in_slots > 0 && said->in_slots <= PB_SERVED_SLOTS_MAX &&
                   said->out_slots > 0 && said->out_slots <= PB_SERVED_SLOTS_MAX &&
                   said->workers > 0 && said->workers <= PB_SERVED_WORKERS_MAX;
    bool ordered = said->order <= PB_ORDER_Z && said->window_units > 0 &&
                   said->window_units <= PB_SERVED_WINDOW_MAX && said->stripe_cols >= 0 &&
                   said->unit_cols >= 0;
    bool sided = said->side_px >= 64 && said->side_px <= 8192;
    bool placed = true;
    for (int i = 0; i < 6; i++)
        placed = placed && (!said->has_transform || is_near(said->transform[i]));
    placed = placed && is_unit(&said->unit);
    if (!counted || !ordered || !sided || !placed || said->n_numbers > PB_SERVED_NUMBERS_MAX ||
        said->n_sources != sources_of(base->pipeline) || said->n_sources > PB_FILES_MAX)
        return false;
    if (said->n_rules > PB_SERVED_RULES_MAX || said->whole > 2 ||
        said->n_areas > PB_SERVED_AREAS_MAX)
        return false;
    for (uint32_t i = 0; i < said->n_areas; i++)
        if (!is_near(said->area[i].left) || !is_near(said->area[i].top) ||
            !is_near(said->area[i].right) || !is_near(said->area[i].bottom) ||
            !is_cutline(said, &said->area[i], base->pipeline))
            return false;
    for (uint32_t i = 0; i < said->n_rules; i++)
        if (!is_near(said->rule[i].gain) || !is_near(said->rule[i].offset) ||
            !is_near(said->rule[i].k1) || !is_near(said->rule[i].k2))
            return false;
    for (uint32_t i = 0; i < said->n_sources; i++)
        if (!is_source(&said->source[i], &base->config->limits) ||
            (said->whole != 0 && !is_layout(&said->source[i], &base->config->limits)))
            return false;
    return true;
}

/* The facts as the header of a file would have told them. */
struct facts {
    struct pb_raster_info info[PB_FILES_MAX];
    struct pb_plan_other others[PB_FILES_MAX];
    struct pb_calibrated rules[PB_SERVED_RULES_MAX];
    struct pb_plan_area areas[PB_SERVED_AREAS_MAX];
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
    info->block_w = info->block_h = 256; /* of no use where nothing is read */
    if (whole)
        take_layout(&said->layout, info);
    info->has_mask = said->has_mask != 0;
    info->complex.kind = said->is_complex ? PB_COMPLEX_F32 : PB_COMPLEX_NONE;
    for (int32_t i = 0; i < said->n_bands; i++) {
        info->band[i].has_nodata = said->has_nodata[i] != 0;
        info->band[i].nodata_unreadable = said->nodata_unreadable[i] != 0;
        info->band[i].nodata = said->nodata[i];
    }
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
    for (uint32_t i = 0; i < said->n_rules; i++) {
        const struct pb_served_rule *from = &said->rule[i];
        facts->rules[i] = (struct pb_calibrated){.step = from->step,
                                                 .entry = from->entry,
                                                 .rule = {.gain = from->gain,
                                                          .offset = from->offset,
                                                          .has_planck = from->has_planck != 0,
                                                          .k1 = from->k1,
                                                          .k2 = from->k2,
                                                          .has_tables = from->has_tables != 0,
                                                          .area = from->area,
                                                          .noise = from->noise}};
    }
    request->said_out = &facts->out;
    request->rules = facts->rules;
    request->n_rules = said->n_rules;
    for (uint32_t i = 0; i < said->n_areas; i++) {
        const struct pb_served_area *from = &said->area[i];
        facts->areas[i] = (struct pb_plan_area){.step = from->step,
                                                .area = {.none = from->none != 0,
                                                         .has_cutline = from->has_cutline != 0,
                                                         .cutline = from->cutline,
                                                         .left = from->left,
                                                         .top = from->top,
                                                         .right = from->right,
                                                         .bottom = from->bottom}};
    }
    request->areas = facts->areas;
    request->n_areas = said->n_areas;
}

/* There are as many numbers as the chain has. */
static int take_numbers(const struct pb_served_request *said, struct pb_plan *plan,
                        struct pb_plan *pass)
{
    const struct pb_chain_reduction *r;
    uint32_t at = 0;
    for (size_t i = 0; i < plan->n_earlier; i++) {
        size_t n = pb_chain_reductions(plan->earlier[i]->chain, &r);
        for (size_t k = 0; k < n; at += r[k].reduce.n, k++) {
            if (r[k].reduce.n > said->n_numbers - at)
                return -EPROTO;
            pb_chain_set_results(plan->chain, &r[k], &said->numbers[at]);
        }
    }
    size_t n = pb_chain_reductions(pass->chain, &r);
    for (size_t k = 0; k < n; at += r[k].reduce.n_numbers, k++) {
        float numbers[PB_REDUCE_NUMBERS_MAX];
        if (r[k].reduce.n_numbers > said->n_numbers - at)
            return -EPROTO;
        for (uint32_t i = 0; i < r[k].reduce.n_numbers; i++)
            numbers[i] = (float)said->numbers[at + i];
        pb_chain_loop_again(pass->chain, &r[k], numbers);
    }
    return at == said->n_numbers ? 0 : -EPROTO;
}

static int bad(struct pb_err *err)
{
    return pb_fail(err, PB_E_SERVICE_PROTOCOL,
                   "a request to compute that does not fit its configuration");
}

/* Sides, slots and threads of the pass, as they were said. */
static int size_pass(struct pb_plan *pass, const struct pb_plan_request *request,
                     const struct pb_served_request *said, struct pb_err *err)
{
    struct pb_plan base = *pass;
    (void)pb_plan_begin(&base, request);
    int rc = pb_plan_with_side(&base, request, said->side_px, err, pass);
    if (rc < 0)
        return rc;
    if (pass->whole.used != (said->whole != 0) || pass->out.n != said->out.n)
        return bad(err);
    pb_plan_size_slots(pass);
    pass->in_slots = said->in_slots;
    pass->out_slots = said->out_slots;
    pass->workers = said->workers;
    pass->order = (enum pb_order)said->order;
    pass->window_units = said->window_units;
    pass->grid.stripe_cols = said->stripe_cols;
    pass->grid.unit_cols = said->unit_cols;
    if (pass->whole.used &&
        (pass->order != PB_ORDER_ROWS || said->stripe_cols != 0 || said->unit_cols != 1))
        return bad(err);
    uint64_t most = request->config->compute.memory_bytes;
    uint64_t in = wic_slot_stride(pass->in_slot_bytes), out = wic_slot_stride(pass->out_slot_bytes);
    if (in > most || out > most || slots_bytes(pass) > most || said->room_bytes > most)
        return bad(err);
    const struct pb_grid *g = &pass->grid;
    int32_t w = g->side_px < g->image_w ? g->side_px : g->image_w;
    int32_t h = g->side_px < g->image_h ? g->side_px : g->image_h;
    if (pass->cuda && pb_chain_plane_px(pass->chain, w, h) > INT32_MAX)
        return bad(err);
    return 0;
}

int pb_plan_serve(const struct pb_plan_request *base, const struct pb_served_request *said,
                  struct pb_err *err, struct pb_plan **out_plan, struct pb_plan **out_pass)
{
    if (!is_sound(said, base))
        return bad(err);
    struct pb_plan_request request = *base;
    struct pb_plan *plan = calloc(1, sizeof *plan), *pass = NULL;
    struct facts *facts = calloc(1, sizeof *facts);
    int rc = plan && facts ? 0 : pb_fail(err, PB_E_MEMORY, "out of memory while planning");
    if (rc == 0 && !pb_served_take_out(&said->out, &facts->out))
        rc = bad(err);
    if (rc == 0) {
        take_facts(said, facts, &request);
        request.remote = true;
        if (said->by_streams && request.stream_why == NULL)
            request.stream_why = "the run asks for streams";
        rc = pb_plan_bands(plan, &request, err);
    }
    if (rc == 0 && said->pass > plan->n_earlier)
        rc = bad(err);
    if (rc == 0) {
        pass = said->pass < plan->n_earlier ? plan->earlier[said->pass] : plan;
        rc = take_numbers(said, plan, pass) == 0 ? size_pass(pass, &request, said, err) : bad(err);
        plan->exchange = base->pipeline->exchange;
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
