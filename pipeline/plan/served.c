/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* The request is checked number by number, then the same functions make the plan. Structs of the
 * tail are copied as the other process has them, and each member that is used is checked. */
#include "pipeline/plan/served.h"
#include "pipeline/device/device.h"
#include "config/config.h"
#include "config/pipeline_config.h"
#include "pipeline/plan/choose.h"
#include "pipeline/plan/memory.h"
#include "pipeline/plan/ways.h"
#include "pipeline/plan/staged.h"
#include "pipeline/plan/values.h"
#include "pipeline/plan/work.h"

#include "kernels/codec/pixel_join.h"
#include "kernels/vm/curve_pixel.h"
#include "pipeline/numbers/value_tally.h"
#include "wic/wic.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- the check -------------------------------------------------------------------------------- */

static bool is_source(const struct pb_served_source *s, const struct pb_limits *limits)
{
    bool sized = s->w > 0 && s->h > 0 && s->w <= limits->max_side_px &&
                 s->h <= limits->max_side_px &&
                 (uint64_t)s->w * (uint64_t)s->h <= limits->max_pixels;
    bool banded = s->n_bands > 0 && s->n_bands <= PB_BANDS_MAX && s->n_bands <= limits->max_bands;
    bool mapped =
        !s->placed || (pb_served_is_scale(s->map.scale_x) && pb_served_is_scale(s->map.scale_y) &&
                       pb_served_is_near(s->map.offset_x) && pb_served_is_near(s->map.offset_y));
    return sized && banded && mapped && s->type >= 0 && s->type < PB_TYPE_COUNT;
}

static bool is_mask_layout(const struct pb_mask_blocks *m, const struct pb_limits *limits)
{
    return pb_served_is_bool(&m->tiled) &&
           (m->block_w == 0 ||
            (m->block_w > 0 && m->block_h > 0 && m->block_w <= limits->max_side_px &&
             m->block_h <= limits->max_side_px && (m->bits == 1 || m->bits == 8) &&
             (uint64_t)m->block_w * (uint64_t)m->block_h <= limits->max_block_bytes &&
             (uint64_t)m->block_w * (uint64_t)m->block_h <= UINT32_MAX &&
             m->stored_max <= limits->max_block_bytes * 2 &&
             (m->predictor == 1 || (m->predictor == 2 && m->bits == 8))));
}

static bool is_layout(const struct pb_served_source *s, const struct pb_limits *limits)
{
    const struct pb_served_layout *l = &s->layout;
    bool sized = l->block_w > 0 && l->block_h > 0 && l->block_w <= limits->max_side_px &&
                 l->block_h <= limits->max_side_px && l->file_bytes <= INT64_MAX / PB_FILES_MAX &&
                 l->stored_max <= limits->max_block_bytes * 2;
    uint64_t bytes = sized ? (uint64_t)l->block_w * (uint64_t)l->block_h *
                                 pb_type_bytes((enum pb_type)s->type) *
                                 (l->planar ? 1 : (uint64_t)s->n_bands)
                           : UINT64_MAX;
    bool masked = l->alpha_band >= 0 && l->alpha_band <= s->n_bands;
    bool known = masked && l->predictor >= 1 && l->predictor <= 3 && l->compression <= UINT16_MAX;
    bool floats = l->predictor != 3 || s->type == PB_F32 || s->type == PB_F64;
    /* The host makes planes of interleaved blocks. */
    bool split = l->by_host || s->n_bands == 1 || (s->interleaved == 0) == (l->planar != 0);
    return sized && known && floats && split && is_mask_layout(&l->mask, limits) &&
           (l->compression == 1 || (bytes <= limits->max_block_bytes && bytes <= UINT32_MAX)) &&
           bytes <= INT64_MAX / 2;
}

/* Count of sources: the scene, other files, tables of the metadata, and polygons. */
static size_t sources_of(const struct pb_pipeline_config *pipeline)
{
    return 1 + pipeline->input.n_sources + (pb_plan_tables(pipeline) > 0) +
           (pb_plan_cutlines(pipeline) > 0);
}

static bool is_text(const char *text, size_t room)
{
    return memchr(text, '\0', room) != NULL;
}

/* The encoder checks the rest (pb_encode_measure). */
static bool is_paint(const struct pb_paint *p)
{
    return pb_served_is_bool(&p->has_ramp) && pb_served_is_bool(&p->has_shade) &&
           pb_served_is_bool(&p->overlays) && pb_served_is_bool(&p->any) &&
           pb_served_is_bool(&p->alpha) && pb_served_is_bool(&p->has_nodata) &&
           p->n_planes <= PB_PAINT_PLANES_MAX && p->n_steps <= PB_PAINT_STEPS_MAX;
}

/* True if values are not counted, or by tables of the one size that products have. */
static bool is_counted(const struct pb_device_blocks *blocks)
{
    return blocks->values == 0 || (blocks->parts && blocks->values == PB_VALUE_TALLY_VALUES);
}

/* Only the process that computes knows how many planes its tiles have: pb_plan_out checks the rest.
 */
static bool is_blocks(const struct pb_plan_made *made)
{
    const struct pb_device_blocks *b = &made->blocks;
    const struct pb_encode_format *f = &b->format;
    const int32_t px = f->block_px;
    const bool painted = is_paint(&f->paint);
    bool planes = painted && f->n_bands >= 1 && f->n_bands <= PB_BANDS_MAX && made->n_planes >= 1 &&
                  made->n_planes <= PB_SERVED_PLANES_MAX &&
                  made->first_plane < PB_SERVED_PLANES_MAX && b->n_join <= pb_encode_planes(f) &&
                  (b->n_join == 0 || made->n_planes <= PB_JOIN_PLANES);
    for (uint32_t i = 0; planes && i < pb_encode_planes(f); i++)
        planes = f->plane[i] < made->n_planes;
    bool sized = px >= 16 && px <= 4096 && (px & (px - 1)) == 0 && b->levels < PB_OUT_LEVELS;
    bool flags = pb_served_is_bool(&b->has_mask) && pb_served_is_bool(&b->nearest) &&
                 pb_served_is_bool(&b->any) && pb_served_is_bool(&b->top_only) &&
                 pb_served_is_bool(&b->parts) && pb_served_is_bool(&f->mask) &&
                 pb_served_is_bool(&f->any) && pb_served_is_bool(&f->repeats);
    return planes && sized && flags && !f->mask && (uint32_t)f->quantizer.type < PB_TYPE_COUNT &&
           (uint32_t)f->with <= PB_ENCODE_PAIRS && (uint32_t)b->mask_with <= PB_ENCODE_INTEGERS;
}

static bool is_made(const struct pb_plan_made *made)
{
    struct pb_encode_needs needs;
    if (!is_blocks(made) || !is_counted(&made->blocks))
        return false;
    if (made->blocks.parts) /* no encoder is used */
        return !made->blocks.has_mask && made->blocks.levels == 0 &&
               made->blocks.format.paint.n_planes == 0;
    for (uint32_t layer = 0; layer < (made->blocks.has_mask ? 2u : 1u); layer++) {
        const struct pb_encode_format format = pb_plan_out_format(made, layer);
        if (pb_encode_measure(&format, 1, &needs) != 0)
            return false;
    }
    return true;
}

static bool is_rule(const struct pb_calibrated *rule)
{
    return pb_served_is_bool(&rule->rule.has_planck) && pb_served_is_bool(&rule->rule.has_tables) &&
           pb_served_is_bool(&rule->has_columns) && pb_served_is_near(rule->rule.gain) &&
           pb_served_is_near(rule->rule.offset) && pb_served_is_near(rule->rule.k1) &&
           pb_served_is_near(rule->rule.k2) && is_text(rule->band, sizeof rule->band) &&
           is_text(rule->of, sizeof rule->of);
}

/* True if the area's cutline is a plane of the last source. */
static bool is_cutline(const struct pb_served_request *said, const struct pb_area *area,
                       const struct pb_pipeline_config *pipeline)
{
    return !area->has_cutline || (pb_plan_cutlines(pipeline) > 0 && area->cutline >= 0 &&
                                  area->cutline < said->source[said->n_sources - 1].n_bands);
}

static bool is_area(const struct pb_served_request *said, const struct pb_plan_area *area,
                    const struct pb_pipeline_config *pipeline)
{
    const struct pb_area *a = &area->area;
    const bool near = pb_served_is_near(a->left) && pb_served_is_near(a->top) &&
                      pb_served_is_near(a->right) && pb_served_is_near(a->bottom);
    return near && pb_served_is_bool(&a->none) && pb_served_is_bool(&a->has_both) &&
           pb_served_is_bool(&a->has_cutline) && is_cutline(said, a, pipeline);
}

static bool is_tile(const struct pb_ground_tile *tile)
{
    bool near = pb_served_is_near(tile->pixel) && tile->pixel >= 0;
    for (int i = 0; i < 4; i++)
        near = near && pb_served_is_near(tile->bounds[i]);
    return near && is_text(tile->id, sizeof tile->id) && is_text(tile->code, sizeof tile->code) &&
           is_text(tile->crs, sizeof tile->crs);
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
        placed = placed && (!said->has_transform || pb_served_is_near(said->transform[i]));
    placed = placed && pb_served_is_unit(&said->unit);
    const bool managed = base->traits != NULL && base->traits->managed && said->whole != 0;
    if (!counted || !ordered || !sided || !placed || said->whole > 2 ||
        (said->managed && !managed) || said->n_made > PB_OUT_PRODUCTS ||
        said->out_size >= PB_OUT_SIZES || said->n_sources != sources_of(base->pipeline) ||
        said->n_sources > PB_FILES_MAX)
        return false;
    if (said->has_tile && !is_tile(&said->tile))
        return false;
    for (uint32_t i = 0; i < said->n_sources; i++)
        if (!is_source(&said->source[i], &base->config->limits) ||
            (said->whole != 0 && !is_layout(&said->source[i], &base->config->limits)))
            return false;
    return true;
}

/* --- the request that arrives ----------------------------------------------------------------- */

static uint64_t slots_bytes(const struct pb_plan *pass)
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
    info->block_h = info->stored_block_h = said->block_h;
    info->tiled = said->tiled != 0;
    info->big_endian = said->big_endian != 0;
    info->tiff_compression = (uint16_t)said->compression;
    info->tiff_predictor = (uint16_t)said->predictor;
    info->stored_block_bytes = said->stored_max;
    info->file_bytes = said->file_bytes;
    info->mask_blocks = said->mask;
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
    info->is_growing = said->is_growing != 0;
    info->pixel_interleaved = said->interleaved != 0;
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
    request->said_managed = said->managed != 0;
    request->said_keeps = said->keeps != 0;
    facts->info[0].has_transform = said->has_transform != 0;
    memcpy(facts->info[0].transform, said->transform, sizeof said->transform);
    facts->info[0].unit = said->unit;
    request->info = &facts->info[0];
    request->n_others = said->n_sources - 1;
    for (uint32_t i = 1; i < said->n_sources; i++) {
        facts->info[i].is_made = made_of(request->pipeline, i - 1) != PB_MADE_OF_FILE;
        facts->others[i - 1] =
            (struct pb_plan_other){.config = i <= request->pipeline->input.n_sources
                                                 ? &request->pipeline->input.sources[i - 1]
                                                 : NULL,
                                   .made_of = made_of(request->pipeline, i - 1),
                                   .info = &facts->info[i],
                                   .is_absent = said->source[i].is_absent != 0,
                                   .placed = said->source[i].placed != 0,
                                   .map = said->source[i].map};
    }
    request->others = facts->others;
    facts->out.size = said->out_size;
    facts->out.host_planes = said->host_planes;
    request->said_out = &facts->out;
    request->tile = said->has_tile ? &said->tile : NULL;
}

/* Takes the colours of painted products, which stay in the tail. */
static bool take_steps(struct pb_served_tail *tail, struct pb_plan_out *out)
{
    for (uint32_t i = 0; i < out->n; i++) {
        struct pb_device_blocks *blocks = &out->made[i].blocks;
        const uint32_t n = blocks->format.paint.n_planes > 0 ? blocks->format.paint.n_steps : 0;
        const struct pb_paint_step *step = pb_served_tail_take(tail, n, sizeof *step);
        bool sound = step != NULL;
        for (uint32_t k = 0; sound && k < n; k++)
            sound = isfinite(step[k].from) && (k == 0 || step[k].from > step[k - 1].from);
        if (!sound)
            return false;
        blocks->steps = step;
    }
    return true;
}

static bool take_made(const struct pb_served_request *said, struct pb_served_tail *tail,
                      struct pb_plan_out *out)
{
    const struct pb_plan_made *made = pb_served_tail_take(tail, said->n_made, sizeof *made);
    for (uint32_t i = 0; made != NULL && i < said->n_made; i++) {
        if (!is_made(&made[i]))
            return false;
        out->made[i] = (struct pb_plan_made){.product = made[i].product,
                                             .first_plane = made[i].first_plane,
                                             .n_planes = made[i].n_planes,
                                             .blocks = made[i].blocks};
    }
    out->n = said->n_made;
    return made != NULL && take_steps(tail, out);
}

/* Takes the rules and areas, which stay in the tail. */
static bool take_arrays(const struct pb_served_request *said, struct pb_served_tail *tail,
                        struct pb_plan_request *request)
{
    request->rules = pb_served_tail_take(tail, said->n_rules, sizeof *request->rules);
    request->areas = pb_served_tail_take(tail, said->n_areas, sizeof *request->areas);
    bool sound = request->rules != NULL && request->areas != NULL;
    for (uint32_t i = 0; i < said->n_rules && sound; i++)
        sound = is_rule(&request->rules[i]);
    for (uint32_t i = 0; i < said->n_areas && sound; i++)
        sound = is_area(said, &request->areas[i], request->pipeline);
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
    base.layout.no_strips = said->lines == 0;
    int rc = pb_plan_with_side(&base, request, said->side_px, err, pass);
    if (rc < 0)
        return rc;
    if (pass->engine.whole.used != (said->whole != 0) || pass->engine.out.n != said->n_made ||
        pass->layout.lines != said->lines)
        return bad(err);
    pass->layout.strip_cols = 1;
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
    const uint64_t planes = pass->engine.whole.planes_bytes;
    if (in > most || out > most || planes > most || slots_bytes(pass) > most - planes ||
        said->room_bytes > most - planes)
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
    if (!is_sound(said, base))
        return bad(err);
    struct pb_plan *plan = calloc(1, sizeof *plan), *pass = NULL;
    struct facts *facts = calloc(1, sizeof *facts);
    int rc = plan && facts ? 0 : pb_fail(err, PB_E_MEMORY, "out of memory while planning");
    if (rc == 0 && !(take_made(said, tail, &facts->out) && take_arrays(said, tail, &request)))
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

/* --- the request ------------------------------------------------------------------------------ */

static void say_source(const struct pb_raster_info *info, struct pb_served_source *out)
{
    out->w = info->width;
    out->h = info->height;
    out->n_bands = info->n_bands;
    out->type = (int32_t)info->type;
    out->has_mask = info->has_mask;
    out->is_growing = info->is_growing;
    out->is_complex = info->complex.kind != PB_COMPLEX_NONE;
    out->interleaved = info->pixel_interleaved;
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
    uint64_t most = slots_bytes(plan);
    for (size_t i = 0; i < plan->n_earlier; i++) {
        uint64_t own = slots_bytes(plan->earlier[i]);
        most = own > most ? own : most;
    }
    for (size_t i = 0; i <= plan->n_earlier; i++) {
        const struct pb_plan *pass = i < plan->n_earlier ? plan->earlier[i] : plan;
        if (pass->engine.resident.used ||
            pass->memory.total_bytes - slots_bytes(pass) + most > budget)
            return 0;
    }
    return most;
}

/* Appends the facts of variable size. */
static int make_tail(const struct pb_plan_request *request, const struct pb_plan *plan,
                     const struct pb_plan *own, struct pb_err *err, struct pb_served_tail *tail)
{
    const struct pb_plan_out *out = &own->engine.out;
    int rc = pb_served_tail_add(tail, out->made, out->n * sizeof out->made[0], err);
    for (uint32_t i = 0; i < out->n && rc == 0; i++)
        if (out->made[i].blocks.format.paint.n_planes > 0)
            rc = pb_served_tail_add(
                tail, out->made[i].blocks.steps,
                out->made[i].blocks.format.paint.n_steps * sizeof *out->made[i].blocks.steps, err);
    rc = rc ? rc
            : pb_served_tail_add(tail, plan->work.calibrated,
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
    out->lines = own->layout.lines;
    out->whole = own->engine.whole.used ? 1 + (uint32_t)own->engine.whole.shares : 0;
    out->managed = own->engine.whole.managed;
    out->keeps = own->engine.whole.keeps;
    out->n_made = own->engine.out.n;
    out->out_size = own->engine.out.size;
    out->host_planes = own->engine.out.host_planes;
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
