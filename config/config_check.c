/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Builds the chain of a pipeline, so that a wrong expression or an unknown band is found when the
 * configuration is loaded and not when the first scene arrives. The scene it assumes has uint16
 * bands: those of input.bands, or B1 to B64 when the bands have no names. The builder finds every
 * mistake in one go (pb_chain_build); before each step of the file stands one that makes what
 * mistakes in reading took away (lost_names.h). */
#include "config/config_parts.h"

#include "config/base/arena.h"
#include "config/lost_names.h"
#include "config/input_files.h"
#include "config/pipeline_config.h"
#include "config/product_check.h"
#include "config/product_config.h"
#include "config/wanted_bands.h"
#include "config/yaml/yaml_tree.h"
#include "kernels/chain/chain.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct check {
    struct pb_load *load;
    const struct pb_yaml *body;
    struct pb_pipeline_config *pipeline;
    const struct pb_pipeline_notes *notes;
    struct pb_chain_input inputs[PB_BANDS_MAX];
    struct pb_chain_source sources[2]; /* the scene, and what stands for all others */
    char names[PB_BANDS_MAX][24];
    struct pb_items *lost;       /* of the input, then of each entry of the list of steps */
    struct pb_chain_step *steps; /* names lost in the input; for each entry names lost, the step */
    struct pb_chain_spec spec;
    size_t n_default; /* outputs of a product that names none */
};

static enum pb_code code_of(const struct pb_diag *diag)
{
    switch (diag->kind) {
    case PB_DIAG_BAND:
        return PB_E_PIPELINE_BAND;
    case PB_DIAG_EXPRESSION:
        return PB_E_PIPELINE_EXPRESSION;
    case PB_DIAG_INDEX:
    case PB_DIAG_CONSTANT:
        return PB_E_PIPELINE_INDEX;
    default:
        return PB_E_CONFIG_VALUE;
    }
}

/* --- reports ---------------------------------------------------------------------------------- */

/* The value of the key that a mistake names; NULL: it names none, or the key is not in the file. */
static const struct pb_yaml *value_of(const struct pb_step_note *note,
                                      const struct pb_step_config *step, const struct pb_diag *diag)
{
    const struct pb_section section = pb_op_section(step->op);
    const struct pb_key *key = pb_key_of(&section, step->params, diag->member);
    const struct pb_yaml *entry = note->entry;
    if (key == NULL || entry->kind != PB_YAML_MAP || entry->n == 0)
        return NULL;
    return pb_yaml_find(entry->items[0], key->name, NULL);
}

/* From a column inside an item's text to a place in the file. Exact for texts on one line and for
 * literal blocks; the first line of texts that YAML folds. */
static void report_step(struct check *t, const struct pb_step_config *step,
                        const struct pb_yaml *value, const struct pb_diag *diag)
{
    int line = value ? value->line : step->line, col = value ? value->col : step->col;
    const struct pb_item *item = diag->item;
    if (item && item->line > 0) {
        line = item->line;
        col = item->col;
        int start = 1;
        for (int i = 1; i < diag->col && item->text[i - 1]; i++) {
            if (item->text[i - 1] != '\n')
                continue;
            line++;
            start = i + 1;
        }
        if (diag->col > 0)
            col += diag->col - start;
    }
    pb_report(&t->load->report, code_of(diag), line, col, "%s: %s", step->op->name, diag->msg);
}

/* Whether a mistake may follow from one found while the step was read: it names a key that has
 * its default instead of an invalid value, or the step as a whole. Mistakes in entries are
 * reported, as entries that were read are valid and operators do not report missing ones
 * (pb_items.is_partial). */
static bool is_consequence(const struct check *t, const struct pb_yaml *value,
                           const struct pb_diag *diag)
{
    return diag->item == NULL && (value == NULL || pb_has_mistake(t->load, value));
}

/* The list entry of a product: entries with mistakes have no product. */
static const struct pb_yaml *entry_of(const struct pb_yaml *list,
                                      const struct pb_product_config *product)
{
    for (size_t i = 0; i < list->n; i++)
        if (list->items[i]->line == product->line && list->items[i]->col == product->col)
            return list->items[i];
    return list;
}

static void report_band(struct check *t, const struct pb_product_config *product, const char *band,
                        const struct pb_diag *diag)
{
    const struct pb_yaml *entry = entry_of(pb_yaml_find(t->body, "products", NULL), product);
    const struct pb_yaml *bands =
        entry->kind == PB_YAML_MAP ? pb_yaml_find(entry->items[0], "bands", NULL) : NULL;
    const struct pb_yaml *place = entry;
    for (size_t i = 0; bands && bands->kind == PB_YAML_LIST && i < bands->n; i++)
        if (bands->items[i]->kind == PB_YAML_SCALAR && strcmp(bands->items[i]->text, band) == 0)
            place = bands->items[i];
    pb_report(&t->load->report, code_of(diag), place->line, place->col, "%s: %s",
              product->kind->section.name, diag->msg);
}

/* Reports a band that no step makes or that does not fit the others, at each product that uses it;
 * a product without bands uses the default ones. A mistake of the outputs together, or of bands
 * that no product names, is not reported when it may follow from another mistake. */
static void report_outputs(struct check *t, const struct pb_diag *diag)
{
    const struct pb_pipeline_config *pipeline = t->pipeline;
    if (diag->output == SIZE_MAX && t->notes->is_sound)
        pb_report(&t->load->report, code_of(diag), pipeline->line, pipeline->col,
                  "pipeline '%.63s': %s", pipeline->name, diag->msg);
    for (size_t i = 0; diag->output != SIZE_MAX && i < pipeline->n_products; i++) {
        const struct pb_product_config *product = pipeline->products[i];
        bool by_default = product->n_bands == 0 && !product->kind->describes_others;
        for (size_t k = 0; k < product->n_bands + product->n_more; k++)
            if (strcmp(product->bands[k], t->spec.outputs[diag->output]) == 0)
                report_band(t, product, product->bands[k], diag);
        if (by_default && diag->output < t->n_default && t->notes->is_sound)
            report_band(t, product, "", diag);
    }
}

static void report(void *to, const struct pb_diag *diag)
{
    struct check *t = to;
    if (diag->step == t->spec.n_steps) {
        report_outputs(t, diag);
    } else if (diag->step > 0 && diag->step % 2 == 0) { /* a step of the file */
        const struct pb_step_note *note = &t->notes->steps[diag->step / 2 - 1];
        const struct pb_step_config *step = &t->pipeline->steps[note->step];
        const struct pb_yaml *value = value_of(note, step, diag);
        if (note->is_sound || !is_consequence(t, value, diag))
            report_step(t, step, value, diag);
    }
}

/* --- the chain -------------------------------------------------------------------------------- */

/* The size that is assumed for scenes and sources, all the same: the real grids are known only with
 * a scene. */
enum { ASSUMED_PX = 1 << 24 };

static size_t add_source(struct check *t, const struct pb_source_config *source, uint32_t number,
                         size_t n)
{
    for (size_t i = 0; i < source->n_bands && n < PB_BANDS_MAX; i++)
        t->inputs[n++] = (struct pb_chain_input){.name = source->bands[i].name,
                                                 .type = PB_U16,
                                                 .has_nodata = source->has_nodata,
                                                 .nodata = source->nodata,
                                                 .scale = source->scale,
                                                 .offset = source->offset,
                                                 .bring = source->resample,
                                                 .source = number};
    return n;
}

static void set_inputs(struct check *t)
{
    const struct pb_input_config *input = &t->pipeline->input;
    size_t named = 0;
    for (size_t i = 0; i < input->n_sources; i++)
        named += input->sources[i].n_bands;
    size_t n = input->n_bands ? input->n_bands : named < PB_BANDS_MAX ? PB_BANDS_MAX - named : 1;
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(t->names[i], sizeof t->names[i], "B%zu", i + 1);
        t->inputs[i] = (struct pb_chain_input){
            .name = input->n_bands ? input->bands[i].name : t->names[i],
            .type = PB_U16,
            .has_nodata = input->has_nodata,
            .nodata = input->nodata,
            .scale = input->scale,
            .offset = input->offset,
        };
    }
    for (size_t i = 0; i < input->n_sources; i++)
        n = add_source(t, &input->sources[i], 1, n);
    for (size_t i = 0; i < 2; i++)
        t->sources[i] = (struct pb_chain_source){
            .w = ASSUMED_PX, .h = ASSUMED_PX, .placed = true, .map = pb_map_identity()};
    t->spec.inputs = t->inputs;
    t->spec.n_inputs = n;
    t->spec.sources = t->sources;
    t->spec.n_sources = input->n_sources > 0 ? 2 : 1;
}

static bool set_steps(struct check *t, struct pb_arena *arena)
{
    static const struct pb_items none;
    const struct pb_pipeline_notes *notes = t->notes;
    t->lost = pb_arena_alloc(arena, 1 + notes->n_steps, sizeof *t->lost);
    t->steps = pb_arena_alloc(arena, 1 + 2 * notes->n_steps, sizeof *t->steps);
    if (t->lost == NULL || t->steps == NULL || !pb_lost_of_body(arena, t->body, notes, &t->lost[0]))
        return false;
    t->steps[0] = (struct pb_chain_step){&pb_lost_names, &t->lost[0]};
    for (size_t i = 0; i < notes->n_steps; i++) {
        const struct pb_step_note *note = &notes->steps[i];
        const struct pb_step_config *step =
            note->step == PB_STEP_NONE ? NULL : &t->pipeline->steps[note->step];
        if (!note->is_sound &&
            !pb_lost_of_entry(arena, t->load, note->entry, step ? step->op : NULL, &t->lost[i + 1]))
            return false;
        t->steps[2 * i + 1] = (struct pb_chain_step){&pb_lost_names, &t->lost[i + 1]};
        t->steps[2 * i + 2] = step ? (struct pb_chain_step){step->op, step->params}
                                   : (struct pb_chain_step){&pb_lost_names, &none};
    }
    t->spec.steps = t->steps;
    t->spec.n_steps = 1 + 2 * notes->n_steps;
    return true;
}

/* The bands that the plan will choose. When these are bands of a scene that is one file, whose
 * number is not known here, the first stands for all. */
static bool set_outputs(struct check *t, struct pb_arena *arena)
{
    struct pb_wanted_bands *wanted = pb_arena_alloc(arena, 1, sizeof *wanted);
    const struct pb_pipeline_config *pipeline = t->pipeline;
    const char *inputs[PB_BANDS_MAX];
    const bool is_known = pipeline->input.n_files > 0 || pipeline->input.pages;
    size_t n = is_known ? pipeline->input.n_bands : 1;
    if (wanted == NULL)
        return false;
    for (size_t i = 0; i < pipeline->input.n_sources; i++)
        n += pipeline->input.sources[i].of_scene ? pipeline->input.sources[i].n_bands : 0;
    for (size_t i = 0; i < n; i++)
        inputs[i] = t->inputs[i].name;
    if (pb_wanted_bands(pipeline, inputs, n, wanted) < 0)
        pb_report(&t->load->report, PB_E_CONFIG_VALUE, pipeline->line, pipeline->col,
                  "pipeline '%.63s': the products want more than %d bands", pipeline->name,
                  PB_WANTED_BANDS_MAX);
    t->spec.outputs = wanted->name;
    t->spec.n_outputs = wanted->n;
    t->n_default = wanted->n_default;
    return true;
}

/* Whether values of the band are neither of the scene's files nor a few, or whole numbers that
 * steps made. */
static bool is_continuous(const struct check *t, const struct pb_chain *chain, const char *band)
{
    for (size_t i = 0; i < t->spec.n_outputs; i++)
        if (strcmp(t->spec.outputs[i], band) == 0)
            return !pb_chain_classes(chain)[i] && pb_chain_origins(chain)[i] < 0;
    return false;
}

static void check_classes(struct check *t, const struct pb_chain *chain)
{
    const struct pb_yaml *list = pb_yaml_find(t->body, "products", NULL);
    for (size_t i = 0; i < t->pipeline->n_products; i++) {
        const struct pb_product_config *product = t->pipeline->products[i];
        const char *key = NULL;
        const char *band = product->kind->classes ? product->kind->classes(product, &key) : NULL;
        if (band == NULL || !is_continuous(t, chain, band))
            continue;
        const struct pb_yaml *entry = entry_of(list, product);
        const struct pb_yaml *value =
            entry->kind == PB_YAML_MAP ? pb_yaml_find(entry->items[0], key, NULL) : NULL;
        const struct pb_yaml *at = value ? value : entry;
        pb_report(&t->load->report, PB_E_PIPELINE_PRODUCT, at->line, at->col, PB_NO_CLASSES,
                  product->kind->section.name, band, key);
    }
}

/* Reports the step of the chain that cannot be computed before the last line of a scene is there.
 */
static void report_whole(struct check *t, size_t chain_step)
{
    if (chain_step == 0 || chain_step % 2 != 0 || chain_step >= t->spec.n_steps)
        return;
    const struct pb_step_note *note = &t->notes->steps[chain_step / 2 - 1];
    const struct pb_step_config *step = &t->pipeline->steps[note->step];
    pb_report(&t->load->report, PB_E_CONFIG_VALUE, step->line, step->col,
              "%s needs the whole image before its first pixel, and lines of input.stream '%.63s' "
              "arrive later; leave it out, or give it fixed numbers",
              step->op->name, t->pipeline->input.stream);
}

static bool is_step(const struct check *t, size_t i, const char *name)
{
    return t->spec.steps[i].op == pb_op_find(name);
}

static void check_lines(struct check *t, const struct pb_chain *chain)
{
    struct pb_chain_use use;
    const struct pb_chain_image *images;
    bool is_whole[2 * PB_BANDS_MAX + 2] = {false};
    const size_t room = sizeof is_whole / sizeof *is_whole;
    const size_t n_images = pb_chain_images(chain, &images);
    for (size_t i = 0; pb_chain_use_at(chain, i, &use); i++)
        if (use.step < room)
            is_whole[use.step] = true;
    for (size_t i = 0; i < n_images; i++)
        if (images[i].step < room)
            is_whole[images[i].step] = true;
    for (size_t i = 0; i < t->spec.n_steps && i < room; i++)
        if (is_whole[i] || is_step(t, i, "warp") || is_step(t, i, "histogram_match"))
            report_whole(t, i);
}

static int build(struct check *t, struct pb_chain **out_chain)
{
    const char *class_bands[PB_BANDS_MAX];
    t->spec.class_bands = class_bands;
    t->spec.n_class_bands = pb_class_bands(t->pipeline, class_bands);
    int rc = pb_chain_build(&t->spec, report, t, out_chain);
    t->spec.class_bands = NULL;
    return rc;
}

void pb_check_chain(struct pb_load *load, const struct pb_yaml *body,
                    struct pb_pipeline_config *pipeline, const struct pb_pipeline_notes *notes)
{
    struct pb_arena *scratch = pb_arena_create();
    struct check *t = pb_arena_alloc(scratch, 1, sizeof *t);
    struct pb_chain *chain = NULL;
    int rc = -ENOMEM;
    if (t) {
        *t = (struct check){.load = load, .body = body, .pipeline = pipeline, .notes = notes};
        set_inputs(t);
        if (set_steps(t, scratch) && set_outputs(t, scratch))
            rc = build(t, &chain);
    }
    if (rc == -ENOMEM)
        pb_arena_fail(load->arena);
    if (chain != NULL)
        pb_input_files_mark(pipeline, chain);
    if (chain != NULL)
        check_classes(t, chain);
    if (chain != NULL && pipeline->input.stream != NULL)
        check_lines(t, chain);
    pb_chain_destroy(chain);
    pb_arena_destroy(scratch);
}
