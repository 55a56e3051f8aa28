/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* A trial run of the chain builder, so that a wrong expression or an unknown band is found when the
 * configuration is loaded and not when the first scene arrives. The scene it assumes has uint16
 * bands: those of input.bands, or B1 to B64 when the bands have no names. First the grammar of
 * every expression, then the chain (a build stops at its first mistake: trial.h mends it and the
 * next build shows the next), then the bands that products name. */
#include "config/config_parts.h"

#include "config/base/arena.h"
#include "config/trial.h"
#include "config/yaml_tree.h"
#include "kernels/graph/builder.h"
#include "kernels/chain/chain.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUILDS_MAX 64

struct check {
    struct pb_load *load;
    const struct pb_yaml *body;
    const struct pb_pipeline_config *pipeline;
    struct pb_trial trial;
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

/* From a column inside an item's text to a place in the file. Exact for texts on one line and for
 * literal blocks; the first line of texts that YAML folds. */
static void report_diag(struct check *t, const struct pb_step_config *step,
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

/* Every expression that cannot be parsed, at once. */
static void check_grammar(struct check *t)
{
    for (size_t i = 0; i < t->trial.spec.n_steps; i++) {
        const struct pb_trial_step *step = &t->trial.steps[i];
        for (size_t k = 0; step->config && k < step->config->op->n_params; k++) {
            if (step->config->op->params[k].type != PB_PARAM_EXPRS)
                continue;
            for (size_t m = 0; m < step->args.arg[k].n; m++) {
                struct pb_arg_item *item = &pb_trial_items(&t->trial, i, k)[m];
                struct pb_diag diag = {.kind = PB_DIAG_NONE};
                if (pb_expression_names(item->text, NULL, NULL, 0, &diag) != -EINVAL)
                    continue;
                diag.item = item;
                report_diag(t, step->config, &diag);
                pb_trial_blank(item);
            }
        }
    }
}

/* Builds with these outputs. 0, or -EINVAL with *out_step and *diag. */
static int build(struct check *t, const char *const *outputs, size_t n, size_t *out_step,
                 struct pb_diag *diag)
{
    struct pb_chain *chain = NULL;
    *diag = (struct pb_diag){.kind = PB_DIAG_NONE};
    *out_step = 0;
    t->trial.spec.outputs = outputs;
    t->trial.spec.n_outputs = n;
    int rc = pb_chain_create(&t->trial.spec, diag, out_step, &chain);
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
static size_t wanted_bands(const struct check *t, const char **out_names)
{
    size_t n = 0, unique = 0;
    out_names[n++] = t->trial.inputs[0].name;
    for (size_t i = 0; i < t->pipeline->n_products; i++)
        for (size_t k = 0; k < t->pipeline->products[i].n_bands; k++)
            out_names[n++] = t->pipeline->products[i].bands[k];
    qsort(out_names, n, sizeof *out_names, by_name);
    for (size_t i = 0; i < n; i++)
        if (unique == 0 || strcmp(out_names[unique - 1], out_names[i]) != 0)
            out_names[unique++] = out_names[i];
    return unique;
}

/* The entry of the list that a product came from: entries with mistakes became none. */
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
              pb_product_kind_name(product->kind), diag->msg);
}

/* Finds the bands of a product that are wrong by halving the list, so that a long list with one
 * mistake takes few builds; ends when it alone fills the report. */
static void check_bands(struct check *t, const struct pb_product_config *product, size_t first,
                        size_t end, size_t *found)
{
    struct pb_diag diag;
    size_t step = 0, middle = first + (end - first) / 2;
    if (first == end || *found > PB_CONFIG_ERRORS_MAX)
        return;
    if (build(t, (const char *const *)product->bands + first, end - first, &step, &diag) != -EINVAL)
        return;
    if (end - first == 1) {
        report_band(t, product, product->bands[first], &diag);
        ++*found;
        return;
    }
    check_bands(t, product, first, middle, found);
    check_bands(t, product, middle, end, found);
}

/* Builds until the steps build: after each failure the step is mended and the next one shows. False
 * when that has no end, or the report is full. */
static bool check_steps(struct check *t, const char **names, size_t n_names, struct pb_diag *diag,
                        int *out_rc)
{
    size_t step = 0, found = 0;
    char last[sizeof diag->msg] = "";
    for (int i = 0; i < BUILDS_MAX && found <= PB_CONFIG_ERRORS_MAX; i++) {
        *out_rc = build(t, names, n_names, &step, diag);
        if (*out_rc != -EINVAL || step == t->trial.spec.n_steps)
            return true;
        if (t->trial.steps[step].config == NULL)
            return false;
        bool again = diag->item == NULL && strcmp(diag->msg, last) == 0; /* all of them too much */
        if (!again && !pb_trial_is_consequence(&t->trial, step, diag)) {
            report_diag(t, t->trial.steps[step].config, diag);
            (void)snprintf(last, sizeof last, "%s", diag->msg);
            found++;
        }
        if (!pb_trial_repair(&t->trial, step, diag)) {
            pb_arena_fail(t->load->arena);
            return false;
        }
    }
    return false;
}

/* Everything but the grammar. */
static void check_build(struct check *t, const char **names, bool is_sound)
{
    const struct pb_pipeline_config *pipeline = t->pipeline;
    size_t before = pb_report_count(&t->load->report);
    struct pb_diag diag;
    int rc = 0;
    if (check_steps(t, names, wanted_bands(t, names), &diag, &rc)) {
        for (size_t i = 0; rc == -EINVAL && i < pipeline->n_products; i++) {
            size_t found = 0;
            check_bands(t, &pipeline->products[i], 0, pipeline->products[i].n_bands, &found);
        }
    }
    /* Each is fine, all together are not. */
    if (rc == -EINVAL && is_sound && pb_report_count(&t->load->report) == before)
        pb_report(&t->load->report, code_of(&diag), pipeline->line, pipeline->col,
                  "pipeline '%.63s': %s", pipeline->name, diag.msg);
}

void pb_check_chain(struct pb_load *load, const struct pb_yaml *body,
                    const struct pb_pipeline_config *pipeline,
                    const struct pb_pipeline_notes *notes)
{
    struct pb_arena *scratch = pb_arena_create();
    struct check *t = pb_arena_alloc(scratch, 1, sizeof *t);
    const char **names = pb_arena_alloc(scratch, count_bands(pipeline) + 1, sizeof *names);
    if (t && names && pb_trial_init(&t->trial, scratch, load, body, pipeline, notes)) {
        t->load = load;
        t->body = body;
        t->pipeline = pipeline;
        check_grammar(t);
        check_build(t, names, notes->is_sound);
    } else {
        pb_arena_fail(load->arena);
    }
    pb_arena_destroy(scratch);
}
