/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/plan/plan_digits.h"

#include "config/pipeline_config.h"
#include "pipeline/codec/rest.h"

#include <stdio.h>
#include <stdlib.h>

/* Finds the outputs that are bands of the scene, and the tags of all outputs. */
static void find_scene_bands(struct pb_plan *plan, const struct pb_plan_digits_inputs *in)
{
    const int32_t *origins = pb_chain_origins(plan->work.chain);
    for (size_t i = 0; i < plan->work.outputs.n; i++)
        if (origins[i] >= 0 && in->file[origins[i]] == 0)
            plan->work.outputs.bands[i] = in->number[origins[i]];
    for (size_t i = 0; i < plan->work.outputs.n; i++)
        plan->work.outputs.tags[i] = pb_chain_output_tags(plan->work.chain, i);
}

/* Finds the outputs whose pixels are at their place in a band of the scene. */
static void find_kept(struct pb_plan *plan, const struct pb_plan_digits_inputs *in)
{
    const int32_t *places = pb_chain_places(plan->work.chain);
    const bool *untouched = pb_chain_untouched(plan->work.chain);
    for (size_t i = 0; i < plan->work.outputs.n; i++) {
        if (places[i] < 0 || in->file[places[i]] != 0)
            continue;
        const struct pb_chain_input *input = &in->input[places[i]];
        plan->work.outputs.kept[i] = (struct pb_plane_kept){
            .band = in->number[places[i]],
            .untouched = untouched[i],
            .has_nodata = input->has_nodata,
            .nodata = input->nodata,
        };
    }
}

/* --- how products store outputs --------------------------------------------------------------- */

struct stored {
    bool as_float, whole; /* stored by a product in float32; by one in a type of more digits */
};

static int find_stored(const struct pb_plan *plan, const struct pb_plan_request *request,
                       struct stored *out, struct pb_err *err)
{
    const struct pb_pipeline_config *pipeline = request->pipeline;
    const struct pb_product_env env = {.config = request->config,
                                       .pipeline = pipeline,
                                       .band_names = (const char *const *)plan->work.outputs.names,
                                       .n_bands = plan->work.outputs.n,
                                       .n_default = plan->work.outputs.n_default};
    for (size_t i = 0; i < pipeline->n_products; i++) {
        const struct pb_product_config *config = pipeline->products[i];
        const struct pb_product_type *type = pb_product_type(config->kind);
        enum pb_digits digits = type->digits != NULL ? type->digits(config) : PB_DIGITS_SOME;
        uint32_t plane[PB_BANDS_MAX];
        int n = digits != PB_DIGITS_SOME ? pb_product_bands(&env, config, plane, err) : 0;
        if (n < 0)
            return n;
        for (int b = 0; b < n; b++) {
            out[plane[b]].as_float |= digits == PB_DIGITS_FLOAT;
            out[plane[b]].whole |= digits == PB_DIGITS_ALL;
        }
    }
    return 0;
}

/* --- bands with more digits than float32 ------------------------------------------------------ */

static struct pb_plan_wide wide_of(const struct pb_plan *plan,
                                   const struct pb_plan_digits_inputs *in, uint32_t input)
{
    const struct pb_chain_input *band = &in->input[input];
    const struct pb_plan_source *source = &plan->work.source[in->file[input]];
    const struct pb_geometry grid = pb_chain_geometry(plan->work.chain);
    const struct pb_map shift = pb_map_between(&grid.map, &in->source[source->window].map);
    struct pb_plan_wide wide = {.window = source->window,
                                .plane = (uint32_t)source->plane,
                                .type = band->type,
                                .has_nodata = band->has_nodata,
                                .nodata = band->nodata};
    for (size_t i = 0; i < source->n_bands && source->bands[i] != in->number[input]; i++)
        wide.plane++;
    wide.shifts = grid.frame == 0 && in->source[source->window].placed && pb_map_is_shift(&shift);
    if (wide.shifts) {
        wide.dx = (int32_t)shift.offset_x;
        wide.dy = (int32_t)shift.offset_y;
    }
    (void)snprintf(wide.name, sizeof wide.name, "%s", band->name);
    return wide;
}

/* True if output i can keep all digits of the band. */
static bool keeps(const struct pb_plan *plan, const struct pb_plan_wide *wide, size_t i,
                  uint32_t input, const struct stored *stored)
{
    return stored[i].whole && wide->shifts &&
           pb_chain_places(plan->work.chain)[i] == (int32_t)input;
}

/* Kind of pixels to count in a band: rounded integers if a step or product uses them rounded;
 * rounded doubles if a product of doubles uses them, because everything else is float32 anyway. */
static enum pb_wide_count count_of(const struct pb_plan *plan, const struct pb_plan_wide *wide,
                                   uint32_t input, const struct stored *stored)
{
    const int32_t *origins = pb_chain_origins(plan->work.chain);
    bool kept = false, rounded = wide->type != PB_F64 && pb_chain_computed(plan->work.chain)[input];
    for (size_t i = 0; i < plan->work.outputs.n; i++) {
        if (origins[i] != (int32_t)input)
            continue;
        bool keep = keeps(plan, wide, i, input, stored);
        kept = kept || keep;
        rounded =
            rounded || (stored[i].whole && !keep) || (stored[i].as_float && wide->type != PB_F64);
    }
    return rounded ? PB_WIDE_ROUNDED : kept ? PB_WIDE_LOST : PB_WIDE_NOT;
}

/* Adds residual planes for the outputs that copy band `input` in place. */
static bool add_rests(struct pb_plan *plan, const struct pb_plan_wide *wide, uint32_t input,
                      const struct stored *stored)
{
    bool any = false;
    for (size_t i = 0; i < plan->work.outputs.n; i++) {
        if (!keeps(plan, wide, i, input, stored))
            continue;
        plan->work.outputs.rest[i] =
            (struct pb_plane_rest){plan->work.outputs.n_rest, pb_rest_planes(wide->type)};
        plan->work.outputs.rest_of[i] = (uint32_t)plan->work.n_wide;
        plan->work.outputs.n_rest += plan->work.outputs.rest[i].n;
        any = true;
    }
    return any;
}

static void find_wide(struct pb_plan *plan, const struct pb_plan_digits_inputs *in,
                      const struct stored *stored)
{
    const uint32_t *used;
    size_t n = pb_chain_used(plan->work.chain, &used);
    for (size_t i = 0; i < n; i++) {
        if (pb_rest_planes(in->input[used[i]].type) == 0)
            continue;
        struct pb_plan_wide wide = wide_of(plan, in, used[i]);
        wide.count = count_of(plan, &wide, used[i], stored);
        bool has_rests = add_rests(plan, &wide, used[i], stored);
        if (has_rests || wide.count != PB_WIDE_NOT)
            plan->work.wide[plan->work.n_wide++] = wide;
    }
}

/* Finds bands of files in which an infinity is not a nodata value. Other inputs have no name. */
static void find_floats(struct pb_plan *plan, const struct pb_plan_digits_inputs *in)
{
    const uint32_t *used;
    size_t n = pb_chain_used(plan->work.chain, &used);
    for (size_t i = 0; i < n; i++) {
        const struct pb_chain_input *band = &in->input[used[i]];
        if (band->name[0] != '\0' && (band->type == PB_F32 || band->type == PB_F64))
            plan->work.floats[plan->work.n_floats++] = wide_of(plan, in, used[i]);
    }
}

int pb_plan_digits(struct pb_plan *plan, const struct pb_plan_request *request,
                   const struct pb_plan_digits_inputs *in, struct pb_err *err)
{
    size_t n = plan->work.outputs.n;
    struct stored *stored = calloc(n + 1, sizeof *stored);
    plan->work.outputs.bands = calloc(n + 1, sizeof *plan->work.outputs.bands);
    plan->work.outputs.tags = calloc(n + 1, sizeof *plan->work.outputs.tags);
    plan->work.outputs.kept = calloc(n + 1, sizeof *plan->work.outputs.kept);
    plan->work.wide = calloc(in->n + 1, sizeof *plan->work.wide);
    plan->work.floats = calloc(in->n + 1, sizeof *plan->work.floats);
    plan->work.outputs.rest = calloc(n + 1, sizeof *plan->work.outputs.rest);
    plan->work.outputs.rest_of = calloc(n + 1, sizeof *plan->work.outputs.rest_of);
    const bool room = stored && plan->work.outputs.bands && plan->work.outputs.tags &&
                      plan->work.outputs.kept && plan->work.wide && plan->work.floats &&
                      plan->work.outputs.rest && plan->work.outputs.rest_of;
    int rc = room ? 0 : pb_fail(err, PB_E_MEMORY, "out of memory while planning");
    if (rc == 0) {
        find_scene_bands(plan, in);
        find_kept(plan, in);
        rc = find_stored(plan, request, stored, err);
    }
    if (rc == 0)
        find_wide(plan, in, stored);
    if (rc == 0)
        find_floats(plan, in);
    free(stored);
    return rc;
}

/* --- memory ----------------------------------------------------------------------------------- */

uint32_t pb_plan_rest_slots(const struct pb_plan *plan)
{
    const uint32_t slots = plan->layout.by_workers ? plan->layout.workers
                                                   : plan->layout.in_slots + plan->layout.out_slots;
    return plan->work.outputs.n_rest > 0 ? slots : 0;
}

size_t pb_plan_rest_px(const struct pb_plan *plan)
{
    const struct pb_grid *g = &plan->layout.grid;
    int32_t w = g->side_px < g->image_w ? g->side_px : g->image_w;
    int32_t h = g->side_px < g->image_h ? g->side_px : g->image_h;
    const struct pb_tile largest = {.core = {0, 0, w, h}};
    return plan->work.outputs.n_rest * pb_tile_out_px(&largest);
}

uint64_t pb_plan_rest_bytes(const struct pb_plan *plan)
{
    return (uint64_t)pb_plan_rest_slots(plan) * pb_plan_rest_px(plan) * sizeof(float);
}
