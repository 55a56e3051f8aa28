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
#include <stdlib.h>
#include <string.h>

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

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static size_t count_bands(const struct pb_pipeline_config *pipeline)
{
    size_t n = 0;
    for (size_t i = 0; i < pipeline->n_products; i++)
        n += pipeline->products[i].n_bands;
    return n;
}

/* Names of bands that products ask for, each once, and the first input: that one is always there,
 * so that steps are checked even when no product names a band. names has room for all. */
static size_t wanted_bands(const struct trial *t, const char **out_names)
{
    size_t n = 0, unique = 0;
    out_names[n++] = t->inputs[0].name;
    for (size_t i = 0; i < t->pipeline->n_products; i++)
        for (size_t k = 0; k < t->pipeline->products[i].n_bands; k++)
            out_names[n++] = t->pipeline->products[i].bands[k];
    qsort(out_names, n, sizeof *out_names, by_name);
    for (size_t i = 0; i < n; i++)
        if (unique == 0 || strcmp(out_names[unique - 1], out_names[i]) != 0)
            out_names[unique++] = out_names[i];
    return unique;
}

static void report_band(struct trial *t, size_t product, size_t band, const struct pb_diag *diag)
{
    const struct pb_yaml *list = pb_yaml_find(t->body, "products", NULL);
    const struct pb_yaml *entry = list->items[product];
    const struct pb_yaml *bands =
        entry->kind == PB_YAML_MAP ? pb_yaml_find(entry->items[0], "bands", NULL) : NULL;
    const struct pb_yaml *place = bands && band < bands->n ? bands->items[band] : entry;
    pb_report(&t->load->report, code_of(diag), place->line, place->col, "%s: %s",
              pb_product_kind_name(t->pipeline->products[product].kind), diag->msg);
}

/* Finds the bands of a product that are wrong by halving the list, so that a long list with one
 * mistake takes few builds; ends when the report is full. */
static void check_bands(struct trial *t, size_t product, size_t first, size_t end)
{
    char **bands = t->pipeline->products[product].bands;
    struct pb_diag diag;
    size_t step = 0, middle = first + (end - first) / 2;
    if (first == end || pb_report_count(&t->load->report) > PB_CONFIG_ERRORS_MAX)
        return;
    if (build(t, (const char *const *)bands + first, end - first, &step, &diag) != -EINVAL)
        return;
    if (end - first == 1) {
        report_band(t, product, first, &diag);
        return;
    }
    check_bands(t, product, first, middle);
    check_bands(t, product, middle, end);
}

/* Everything but the grammar. */
static void check_build(struct trial *t, struct pb_chain_step *steps, const char **names)
{
    const struct pb_pipeline_config *pipeline = t->pipeline;
    size_t before = pb_report_count(&t->load->report), step = 0;
    struct pb_diag diag;
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
        check_bands(t, i, 0, pipeline->products[i].n_bands);
    if (pb_report_count(&t->load->report) == before) /* each is fine, all together are not */
        pb_report(&t->load->report, code_of(&diag), pipeline->line, pipeline->col,
                  "pipeline '%.63s': %s", pipeline->name, diag.msg);
}

void pb_check_chain(struct pb_load *load, const struct pb_yaml *body,
                    const struct pb_pipeline_config *pipeline)
{
    struct pb_arena *scratch = pb_arena_create();
    struct trial *t = pb_arena_alloc(scratch, 1, sizeof *t);
    struct pb_chain_step *steps = pb_arena_alloc(scratch, pipeline->n_steps, sizeof *steps);
    const char **names = pb_arena_alloc(scratch, count_bands(pipeline) + 1, sizeof *names);
    if (t && steps && names) {
        t->load = load;
        t->body = body;
        t->pipeline = pipeline;
        if (check_grammar(t))
            check_build(t, steps, names);
    } else {
        pb_arena_fail(load->arena);
    }
    pb_arena_destroy(scratch);
}
