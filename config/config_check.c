/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* A trial run of the chain builder, so that a wrong expression or an unknown band is found when the
 * configuration is loaded and not when the first scene arrives. The scene it assumes has uint16
 * bands: those of input.bands, or B1 to B64 when the bands have no names. First the grammar of
 * every expression (all mistakes), then the chain (it stops at its first), then the bands that
 * products name (all mistakes). */
#include "config/config_parts.h"

#include "config/arena.h"
#include "config/yaml_tree.h"
#include "kernels/builder.h"
#include "kernels/chain.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define OUTPUTS_MAX 4096

struct trial {
    struct pb_load *load;
    const struct pb_yaml *body;
    const struct pb_pipeline_config *pipeline;
    struct pb_chain_input inputs[PB_BANDS_MAX];
    char names[PB_BANDS_MAX][24];
    struct pb_chain_spec spec;
};

static enum pb_code code_of(const struct pb_diag *diag)
{
    switch (diag->kind) {
    case PB_DIAG_BAND:
        return PB_E_PIPELINE_BAND;
    case PB_DIAG_EXPRESSION:
        return PB_E_PIPELINE_EXPRESSION;
    case PB_DIAG_INDEX:
        return PB_E_PIPELINE_INDEX;
    default:
        return PB_E_CONFIG_VALUE;
    }
}

/* From a column inside an item's text to a place in the file. Exact for texts on one line and for
 * literal blocks; the first line of texts that YAML folds. */
static void report_diag(struct trial *t, const struct pb_step_config *step,
                        const struct pb_diag *diag)
{
    int line = step->line, col = step->col;
    const struct pb_arg_item *item = diag->item;
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

/* False when one has a mistake. */
static bool check_grammar(struct trial *t)
{
    size_t before = pb_report_count(&t->load->report);
    for (size_t i = 0; i < t->pipeline->n_steps; i++) {
        const struct pb_step_config *step = &t->pipeline->steps[i];
        for (size_t k = 0; k < step->op->n_params; k++) {
            const struct pb_arg *arg = &step->args.arg[k];
            if (step->op->params[k].type != PB_PARAM_EXPRS)
                continue;
            for (size_t m = 0; m < arg->n; m++) {
                struct pb_diag diag = {.kind = PB_DIAG_NONE};
                int rc = pb_expression_names(arg->items[m].text, NULL, NULL, 0, &diag);
                if (diag.item == NULL)
                    diag.item = &arg->items[m];
                if (rc == -EINVAL)
                    report_diag(t, step, &diag);
            }
        }
    }
    return pb_report_count(&t->load->report) == before;
}

static void make_inputs(struct trial *t)
{
    const struct pb_input_config *input = &t->pipeline->input;
    size_t n = input->n_bands ? input->n_bands : PB_BANDS_MAX;
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
    t->spec.inputs = t->inputs;
    t->spec.n_inputs = n;
}

/* Builds with these outputs. 0, or -EINVAL with *out_step and *diag. */
static int build(struct trial *t, const char *const *outputs, size_t n, size_t *out_step,
                 struct pb_diag *diag)
{
    struct pb_chain *chain = NULL;
    *diag = (struct pb_diag){.kind = PB_DIAG_NONE};
    *out_step = 0;
    t->spec.outputs = outputs;
    t->spec.n_outputs = n;
    int rc = pb_chain_create(&t->spec, diag, out_step, &chain);
    pb_chain_destroy(chain);
    if (rc == -ENOMEM)
        pb_arena_fail(t->load->arena);
    return rc;
}

/* Names of bands that products ask for, each once, behind the first input: that one is always
 * there, so that steps are checked even when no product names a band. */
static size_t wanted_bands(const struct trial *t, const char **out_names)
{
    size_t n = 0;
    out_names[n++] = t->inputs[0].name;
    for (size_t i = 0; i < t->pipeline->n_products; i++) {
        const struct pb_product_config *product = &t->pipeline->products[i];
        for (size_t k = 0; k < product->n_bands && n < OUTPUTS_MAX; k++) {
            bool there = false;
            for (size_t m = 0; m < n && !there; m++)
                there = strcmp(out_names[m], product->bands[k]) == 0;
            if (!there)
                out_names[n++] = product->bands[k];
        }
    }
    return n;
}

/* One band of one product on its own, to say which one is wrong. */
static void check_band(struct trial *t, size_t product, size_t band)
{
    const struct pb_product_config *config = &t->pipeline->products[product];
    const char *outputs[] = {t->inputs[0].name, config->bands[band]};
    struct pb_diag diag;
    size_t step = 0;
    if (build(t, outputs, 2, &step, &diag) != -EINVAL)
        return;
    const struct pb_yaml *list = pb_yaml_find(t->body, "products", NULL);
    const struct pb_yaml *entry = list->items[product];
    const struct pb_yaml *bands =
        entry->kind == PB_YAML_MAP ? pb_yaml_find(entry->items[0], "bands", NULL) : NULL;
    const struct pb_yaml *place = bands && band < bands->n ? bands->items[band] : entry;
    pb_report(&t->load->report, code_of(&diag), place->line, place->col, "%s: %s",
              pb_product_kind_name(config->kind), diag.msg);
}

void pb_check_chain(struct pb_load *load, const struct pb_yaml *body,
                    const struct pb_pipeline_config *pipeline)
{
    struct trial *t = pb_arena_alloc(load->arena, 1, sizeof *t);
    struct pb_chain_step *steps = pb_arena_alloc(load->arena, pipeline->n_steps, sizeof *steps);
    const char **names = pb_arena_alloc(load->arena, OUTPUTS_MAX, sizeof *names);
    struct pb_diag diag;
    size_t step = 0;
    if (t == NULL || steps == NULL || names == NULL)
        return;
    t->load = load;
    t->body = body;
    t->pipeline = pipeline;
    if (!check_grammar(t))
        return;
    make_inputs(t);
    for (size_t i = 0; i < pipeline->n_steps; i++)
        steps[i] = (struct pb_chain_step){pipeline->steps[i].op, &pipeline->steps[i].args};
    t->spec.steps = steps;
    t->spec.n_steps = pipeline->n_steps;
    if (build(t, names, wanted_bands(t, names), &step, &diag) != -EINVAL)
        return;
    if (step < pipeline->n_steps) {
        report_diag(t, &pipeline->steps[step], &diag);
        return;
    }
    for (size_t i = 0; i < pipeline->n_products; i++)
        for (size_t k = 0; k < pipeline->products[i].n_bands; k++)
            check_band(t, i, k);
}
