/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Making a chain: the steps build the graph, chain_plan.c cuts it into stages. Running one is
 * chain_cpu.c and chain_cuda.cu. */
#include "kernels/chain/chain.h"
#include "kernels/graph/builder_state.h"
#include "kernels/chain/chain_curves.h"
#include "kernels/chain/chain_gate.h"
#include "kernels/chain/chain_outputs.h"
#include "kernels/chain/chain_passes.h"
#include "kernels/chain/chain_plan.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OUTPUTS_MAX 4096

/* Each source's grid. One that is not placed lies nowhere on the others. */
static int define_grids(struct pb_builder *b, const struct pb_chain_spec *spec)
{
    static const struct pb_chain_source unsized = {
        .w = 1 << 24, .h = 1 << 24, .placed = true, .map = {1.0, 1.0, 0.0, 0.0}};
    const size_t n = spec->n_sources ? spec->n_sources : 1;

    if (n > PB_SOURCES_MAX)
        return pb_builder_mistake(b, PB_DIAG_VALUE, NULL, 0, "1 to %d sources, not %zu",
                                  PB_SOURCES_MAX, n);
    for (size_t i = 0; i < n; i++) {
        const struct pb_chain_source *const source = spec->n_sources ? &spec->sources[i] : &unsized;
        struct pb_geometry grid = {source->w, source->h, source->map, 0};

        if (!source->placed)
            grid.map.scale_x = grid.map.scale_y = (double)NAN;
        b->source_grid[i] = pb_graph_grid(&b->graph, &grid);
    }
    return 0;
}

/* The band on the scene's grid. */
static pb_value bring(struct pb_builder *b, const struct pb_chain_input *input, pb_value v)
{
    const enum pb_resampling how = (enum pb_resampling)(input->bring - 1);
    const pb_value on_grid = pb_builder_resample(b, how, v, b->source_grid[0]);

    if (on_grid >= 0 && on_grid != v && !pb_resampling_chooses(how) &&
        pb_builder_class(b, v, input->name) == PB_CLASS_FILE)
        pb_builder_note_mixed(b, input->name, how);
    return on_grid;
}

/* The band, brought onto the scene's grid where that is wanted. */
static int define_input(struct pb_builder *b, const struct pb_chain_input *input, uint32_t number)
{
    pb_value v = input->is_absent
                     ? pb_builder_constant(b, NAN)
                     : pb_graph_input(&b->graph, number, b->source_grid[input->source]);

    if (v >= 0 && input->bring > 0 && !input->is_absent)
        v = bring(b, input, v);
    b->input[number] = v;
    b->n_inputs = (int32_t)number + 1;
    if (v < 0 || input->name[0] == '\0')
        return v < 0 ? v : 0;
    const int rc = pb_builder_define(b, input->name, v);
    if (rc == 0 && (input->scale != 1.0 || input->offset != 0.0)) {
        b->bands[b->n_bands - 1].scale = (float)input->scale;
        b->bands[b->n_bands - 1].offset = (float)input->offset;
    }
    return rc;
}

/* Whether a step or a product takes the values of a band of that name for classes. */
static bool is_class_name(const struct pb_builder *b, const char *name)
{
    bool is = false;

    for (size_t i = 0; i < b->n_class_names && !is; i++)
        is = strcmp(b->class_names[i], name) == 0;
    return is;
}

static int define_inputs(struct pb_builder *b, const struct pb_chain_spec *spec)
{
    int rc = 0;

    if (spec->n_inputs < 1 || spec->n_inputs > PB_BUILDER_INPUTS_MAX)
        return pb_builder_mistake(b, PB_DIAG_VALUE, NULL, 0,
                                  "a scene must have 1 to %d bands, not %zu", PB_BUILDER_INPUTS_MAX,
                                  spec->n_inputs);
    for (size_t i = 0; i < spec->n_inputs && rc == 0; i++) {
        const struct pb_chain_input *const input = &spec->inputs[i];
        const struct pb_band_tags none = {.scale = 1};
        const bool as_stored = input->scale == 1.0 && input->offset == 0.0;

        if (input->name[0] != '\0' && pb_builder_find(b, input->name) >= 0)
            return pb_builder_mistake(b, PB_DIAG_BAND, NULL, 0,
                                      "two bands of the scene are named '%s'", input->name);
        if ((int)input->type < 0 || input->type >= PB_TYPE_COUNT)
            return pb_builder_mistake(b, PB_DIAG_VALUE, NULL, 0, "band '%s' has an unknown type",
                                      input->name);
        if (input->source >= (spec->n_sources ? spec->n_sources : 1))
            return pb_builder_mistake(b, PB_DIAG_VALUE, NULL, 0, "band '%s' has no source",
                                      input->name);
        if (input->is_class || is_class_name(b, input->name))
            b->graph.class_inputs |= (uint64_t)1 << i;
        rc = pb_value_tags_add_input(&b->tags, as_stored ? &input->tags : &none, input->name);
        rc = rc ? rc : define_input(b, input, (uint32_t)i);
    }
    /* Behind what the spec has. */
    b->graph.first_image = (uint32_t)spec->n_inputs;
    b->graph.images_max = PB_SOURCES_MAX - (spec->n_sources ? spec->n_sources : 1);
    return rc;
}

/* What the step makes, for the steps after it. */
static int poison_outputs(struct pb_builder *b, const struct pb_chain_step *step)
{
    const struct pb_items *const outputs = pb_op_outputs(step->op, step->params);
    const size_t n = outputs->n ? outputs->n : pb_builder_band_count(b);
    int rc = 0;

    for (size_t i = 0; i < n && rc == 0; i++)
        rc = pb_builder_define(
            b, outputs->n ? pb_item_band(&outputs->items[i]) : pb_builder_band_name(b, i),
            PB_VALUE_POISON);
    if (rc == 0 && pb_op_one_more(step->op, step->params))
        rc = pb_builder_define(b, pb_op_one_more(step->op, step->params), PB_VALUE_POISON);
    return rc;
}

/* --- what numbers mean ------------------------------------------------------------------------ */

static int keep_tags(struct pb_builder *b, const char *band, const struct pb_value_tags_read *of)
{
    const pb_value value = pb_builder_find(b, band);
    struct pb_value_tags_conflict c;
    char one[100], other[100];

    if (value < 0 || value == PB_VALUE_POISON)
        return 0;
    const int rc = pb_value_tags_keep(&b->tags, &b->graph, of, value, &c);
    if (rc <= 0)
        return rc;
    return pb_builder_mistake(
        b, PB_DIAG_SCALE, NULL, 0,
        "band '%.63s' would mix numbers that mean different things: %.63s has "
        "%s, %.63s has %s, by the tags of their files",
        band, c.one->name, pb_band_tags_text(&c.one->tags, one, sizeof one), c.other->name,
        pb_band_tags_text(&c.other->tags, other, sizeof other));
}

static int keep_all_tags(struct pb_builder *b, const struct pb_chain_step *step,
                         const struct pb_value_tags_read *of)
{
    const struct pb_items *const outputs = pb_op_outputs(step->op, step->params);
    const size_t n = outputs->n ? outputs->n : pb_builder_band_count(b);
    int rc = pb_value_tags_follow(&b->tags, &b->graph);

    for (size_t i = 0; i < n && rc == 0; i++) {
        const char *const band =
            outputs->n ? pb_item_band(&outputs->items[i]) : pb_builder_band_name(b, i);

        rc = keep_tags(b, band, of);
    }
    return rc;
}

/* Negative errno: the building ends. */
static int build_step(struct pb_builder *b, const struct pb_chain_step *step)
{
    const size_t before = b->n_mistakes, n_read = b->graph.n;
    const bool keeps = step->op->keeps_tags && step->op->keeps_tags(step->params);
    uint8_t *const read = calloc(n_read + 1, 1); /* not 0: the value had a name before the step */

    if (!read)
        return -ENOMEM;
    for (size_t i = 0; i < b->n_bands; i++)
        if (b->bands[i].value != PB_VALUE_POISON)
            read[b->bands[i].value] = 1;
    int rc = step->op->build(step->params, b);
    if (rc == 0 && (keeps || step->op->compares_tags) && !b->error)
        rc = keep_all_tags(b, step, &(struct pb_value_tags_read){read, n_read, keeps});
    free(read);
    if (b->error || rc == -ENOMEM)
        return b->error ? b->error : rc;
    if (rc < 0 && b->n_mistakes == before)
        (void)pb_builder_mistake(b, PB_DIAG_VALUE, NULL, 0, "step '%s' cannot be built",
                                 step->op->name);
    return rc < 0 ? poison_outputs(b, step) : 0;
}

/* Names of bands whose values a step takes for classes: other steps leave these classes whole. */
static void add_class_names(struct pb_builder *b, const struct pb_chain_step *step)
{
    for (size_t k = 0; k < step->op->n_keys; k++) {
        const struct pb_key *const key = &step->op->keys[k];
        const struct pb_items *const items =
            (const struct pb_items *)(const void *)((const char *)step->params + key->offset);

        if (key->names_classes && items->n > 0)
            b->class_names[b->n_class_names++] = items->items[0].text;
    }
}

static int find_class_names(struct pb_builder *b, const struct pb_chain_spec *spec)
{
    size_t most = spec->n_class_bands;

    for (size_t i = 0; i < spec->n_steps; i++)
        for (size_t k = 0; k < spec->steps[i].op->n_keys; k++)
            most += spec->steps[i].op->keys[k].names_classes;
    b->class_names = calloc(most + 1, sizeof *b->class_names);
    if (!b->class_names)
        return -ENOMEM;
    for (size_t i = 0; i < spec->n_class_bands; i++)
        b->class_names[b->n_class_names++] = spec->class_bands[i];
    for (size_t i = 0; i < spec->n_steps; i++)
        add_class_names(b, &spec->steps[i]);
    return 0;
}

/* All outputs are pixels of the same tiles. */
static void check_one_grid(struct pb_builder *b, const struct pb_chain_spec *spec,
                           const pb_value *values)
{
    size_t first = SIZE_MAX;

    for (size_t i = 0; i < spec->n_outputs; i++) {
        const int32_t grid = pb_builder_grid(b, values[i]);

        if (grid < 0)
            continue;
        if (first == SIZE_MAX)
            first = i;
        if (isnan(pb_builder_geometry(b, grid).map.scale_x)) {
            b->output = i;
            (void)pb_builder_mistake(b, PB_DIAG_GRID, NULL, 0,
                                     "'%.80s' is a band of " PB_UNPLACED_SOURCE, spec->outputs[i]);
            return;
        }
        if (grid == pb_builder_grid(b, values[first]))
            continue;
        char sizes[100];
        pb_builder_say_grids(b, pb_builder_grid(b, values[first]), grid, sizes, sizeof sizes);
        b->output = i;
        (void)pb_builder_mistake(
            b, PB_DIAG_GRID, NULL, 0,
            "'%.80s' and '%.80s' are on different grids%s; products take bands "
            "of one: add a resample step, or another pipeline",
            spec->outputs[first], spec->outputs[i], sizes);
        return;
    }
}

static int find_outputs(struct pb_builder *b, const struct pb_chain_spec *spec, pb_value *values)
{
    bool poison = false;

    if (spec->n_outputs < 1 || spec->n_outputs > OUTPUTS_MAX)
        return pb_builder_mistake(b, PB_DIAG_VALUE, NULL, 0, "1 to %d output bands, not %zu",
                                  OUTPUTS_MAX, spec->n_outputs);
    for (size_t i = 0; i < spec->n_outputs && b->error == 0; i++) {
        const char *const name = spec->outputs[i];

        values[i] = pb_builder_find(b, name);
        poison = poison || values[i] == PB_VALUE_POISON;
        if (values[i] >= 0)
            continue;
        const char *const near = pb_builder_nearest(b, name);
        b->output = i;
        (void)pb_builder_mistake(b, PB_DIAG_BAND, NULL, 0, "no step makes a band '%.80s'%s%s%s",
                                 name, near ? "; did you mean '" : "", near ? near : "",
                                 near ? "'?" : "");
    }
    b->output = SIZE_MAX;
    if (!poison && b->n_mistakes == 0)
        check_one_grid(b, spec, values);
    if (poison && b->n_mistakes == 0) /* lost by who made the steps */
        return pb_builder_mistake(b, PB_DIAG_VALUE, NULL, 0, "a step lacks what the outputs need");
    return b->n_mistakes ? -EINVAL : 0;
}

static int build(struct pb_builder *b, const struct pb_chain_spec *spec, pb_value *values)
{
    int rc = find_class_names(b, spec);

    rc = rc ? rc : define_grids(b, spec);
    rc = rc ? rc : define_inputs(b, spec);
    for (size_t i = 0; i < spec->n_steps && rc == 0; i++) {
        b->step = i;
        b->told_grids = false;
        rc = build_step(b, &spec->steps[i]);
    }
    if (rc == 0) {
        b->step = spec->n_steps;
        rc = find_outputs(b, spec, values);
    }
    return rc;
}

/* The spec with the whole images of the graph as inputs, each alone on a source. inputs:
 * room for all. */
static struct pb_chain_spec with_images(const struct pb_graph *graph,
                                        const struct pb_chain_spec *spec,
                                        struct pb_chain_input *inputs)
{
    const uint32_t n_sources = spec->n_sources ? (uint32_t)spec->n_sources : 1;
    struct pb_chain_spec all = *spec;

    memcpy(inputs, spec->inputs, spec->n_inputs * sizeof *inputs);
    for (uint32_t i = 0; i < graph->n_images; i++)
        inputs[all.n_inputs++] = (struct pb_chain_input){
            .name = "", .type = PB_F32, .scale = 1.0, .source = n_sources + i};
    all.inputs = inputs;
    return all;
}

/* The gate, the chain, and the passes before it. */
static int plan(struct pb_builder *b, const pb_value *values, const struct pb_chain_spec *spec,
                struct pb_chain *chain)
{
    struct pb_chain_gating gating = {.chain = NULL};
    int rc = pb_chain_gating_init(b, spec, &gating);

    chain->own_gate = gating.chain;
    if (rc == 0) {
        pb_chain_gating_give(&gating, values, spec->n_outputs, spec->outputs, chain);
        rc = pb_chain_plan(&b->graph, values, spec->n_outputs, spec, chain);
    }
    if (rc == 0) {
        pb_chain_gating_reach(&b->graph, chain);
        rc = pb_chain_passes(&b->graph, values, spec, &gating, chain);
        rc = rc ? rc : pb_chain_curves_define(&b->graph, chain);
    }
    pb_chain_gating_fini(&gating);
    return rc;
}

int pb_chain_build(const struct pb_chain_spec *spec, pb_diag_report *report, void *to,
                   struct pb_chain **out_chain)
{
    struct pb_chain *chain = calloc(1, sizeof *chain);
    pb_value *const values = calloc(spec->n_outputs + 1, sizeof *values);
    struct pb_chain_input inputs[PB_BUILDER_INPUTS_MAX + PB_SOURCES_MAX];
    struct pb_chain_spec all;
    struct pb_builder b;
    int rc = -ENOMEM;

    pb_builder_init(&b, report, to);
    if (spec->scene)
        b.scene = spec->scene;
    if (!chain || !values)
        goto out;
    rc = build(&b, spec, values);
    if (rc == 0)
        all = with_images(&b.graph, spec, inputs);
    if (rc == 0)
        rc = pb_chain_describe_outputs(&b, values, &all, chain);
    if (rc == 0)
        rc = plan(&b, values, &all, chain);
    if (rc == -E2BIG)
        rc = pb_builder_mistake(
            &b, PB_DIAG_VALUE, NULL, 0,
            "the outputs need more than %d intermediate bands at the same time; split "
            "the pipeline in two",
            PB_PROGRAM_REGISTERS_MAX);
    if (rc == -EXDEV)
        rc = pb_builder_mistake(&b, PB_DIAG_GRID, NULL, 0,
                                "bands of one file are heights of the ground for a step and pixels "
                                "for others: list the file twice in input.sources");
out:
    pb_builder_fini(&b);
    free(values);
    if (rc < 0) {
        pb_chain_destroy(chain);
        return rc;
    }
    *out_chain = chain;
    return 0;
}

static void keep_first(void *to, const struct pb_diag *diag)
{
    struct pb_diag *const first = to;

    if (first->kind == PB_DIAG_NONE)
        *first = *diag;
}

int pb_chain_create(const struct pb_chain_spec *spec, struct pb_diag *diag, size_t *out_step,
                    struct pb_chain **out_chain)
{
    memset(diag, 0, sizeof *diag);
    const int rc = pb_chain_build(spec, keep_first, diag, out_chain);
    if (rc < 0)
        *out_step = diag->step;
    return rc;
}

void pb_chain_destroy(struct pb_chain *chain)
{
    if (!chain)
        return;
    for (size_t i = 0; i < chain->n_earlier; i++)
        pb_chain_destroy(chain->earlier[i]);
    free(chain->earlier);
    pb_chain_destroy(chain->own_gate);
    free(chain->uses);
    free(chain->images);
    pb_chain_curves_fini(chain);
    free(chain->reductions);
    free(chain->numbers);
    free(chain->patches);
    for (size_t i = 0; i < chain->n_stages; i++) {
        free(chain->stages[i].code);
        free(chain->stages[i].focals);
    }
    free(chain->stages);
    free(chain->used);
    free(chain->classes);
    free(chain->origins);
    free(chain->places);
    free(chain->untouched);
    free(chain->computed);
    free(chain->meanings);
    free(chain->notes);
    free(chain->leaf_places);
    for (size_t i = 0; i < chain->n_warps; i++)
        pb_warp_put(chain->warps[i]);
    free(chain->warps);
    free(chain->legs);
    free(chain->ground.crs);
    free(chain->grids);
    free(chain->inputs);
    free(chain);
}

size_t pb_chain_used(const struct pb_chain *chain, const uint32_t **out_indices)
{
    *out_indices = chain->used;
    return chain->n_used;
}

size_t pb_chain_output_count(const struct pb_chain *chain)
{
    return chain->n_outputs;
}

bool pb_chain_keeps_grid(const struct pb_chain *chain)
{
    return chain->keeps_grid;
}

struct pb_geometry pb_chain_geometry(const struct pb_chain *chain)
{
    return chain->geometry;
}

struct pb_rect pb_chain_need(const struct pb_chain *chain, uint32_t source,
                             const struct pb_rect *core)
{
    const struct pb_source_need *const need = &chain->sources[source];

    return pb_chain_rect_on(chain, need->grid, core, need->halo);
}

int32_t pb_chain_halo(const struct pb_chain *chain)
{
    return chain->halo;
}

size_t pb_chain_instruction_count(const struct pb_chain *chain)
{
    size_t n = 0;

    for (size_t i = 0; i < chain->n_stages; i++)
        n += chain->stages[i].n_code;
    return n;
}

int pb_chain_describe(const struct pb_chain *chain, char *text, size_t bytes)
{
    int total = 0;

#define SAY(...)                                                                                   \
    total += snprintf((size_t)total < bytes ? text + total : NULL,                                 \
                      (size_t)total < bytes ? bytes - (size_t)total : 0, __VA_ARGS__)
    for (size_t i = 0; i < chain->n_stages; i++) {
        const struct pb_stage *const stage = &chain->stages[i];

        SAY("stage %zu: %u instructions, %u registers, margin %d", i + 1, (unsigned)stage->n_code,
            (unsigned)stage->n_registers, stage->margin);
        for (size_t k = 0; k < stage->n_focals; k++) {
            const int side = 2 * stage->focals[k].focal.radius + 1;

            if (stage->focals[k].is_warp)
                SAY("%s%s", k ? ", " : "; warp ", pb_resampling_name(stage->focals[k].warp.how));
            else if (stage->focals[k].is_resample)
                SAY("%s%s", k ? ", " : "; resample ",
                    pb_resampling_name(stage->focals[k].resample.how));
            else
                SAY("%s%d x %d %s", k ? ", " : "; focal ", side, side,
                    pb_focal_name(stage->focals[k].focal.kind));
        }
        SAY("\n");
    }
#undef SAY
    return total;
}
