/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/product/stac/stac_processing.h"
#include "config/pipeline_config.h"
#include "pipeline/product/stac/stac_facts.h"
#include "pipeline/product/stac/stac_formula.h"

#include "kernels/chain/chain.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FORMAT_NAME "pushbroom"

enum { NAME_TEXT = 40 };

static void write_value(struct pb_json *json, const struct pb_key *key, const struct pb_item *item,
                        const char *name)
{
    if (key->type == PB_KEY_INT || key->type == PB_KEY_ODD || key->type == PB_KEY_POWER)
        pb_json_int(json, name, (int64_t)item->num);
    else if (pb_key_is_number(key->type) || (key->type == PB_KEY_WORDS && !isnan(item->num)))
        pb_json_number(json, name, item->num);
    else
        pb_json_string(json, name, item->text);
}

static void write_vectors(struct pb_json *json, const struct pb_key *key,
                          const struct pb_items *items)
{
    pb_json_object(json, key->name);
    for (size_t i = 0, n; i < items->n; i += n) {
        n = pb_items_of_vector(items, i);
        pb_json_array(json, items->items[i].key);
        for (size_t k = 0; k < n; k++)
            pb_json_number(json, NULL, items->items[i + k].num);
        pb_json_end(json);
    }
    pb_json_end(json);
}

static void write_items(struct pb_json *json, const struct pb_key *key,
                        const struct pb_items *items)
{
    if (key->type == PB_KEY_VECTORS) {
        write_vectors(json, key, items);
        return;
    }
    bool list = key->type == PB_KEY_NAMES || key->type == PB_KEY_WEIGHTS ||
                key->type == PB_KEY_WORDS || items->n > 1;
    if (items->items[0].key != NULL) {
        pb_json_object(json, key->name);
        for (size_t i = 0; i < items->n; i++)
            write_value(json, key, &items->items[i], items->items[i].key);
        pb_json_end(json);
    } else if (list) {
        pb_json_array(json, key->name);
        for (size_t i = 0; i < items->n; i++)
            write_value(json, key, &items->items[i], NULL);
        pb_json_end(json);
    } else {
        write_value(json, key, &items->items[0], key->name);
    }
}

/* Writes formulas that the parameters do not show. */
static void write_formulas(struct pb_json *json, const struct pb_step_config *step)
{
    for (size_t k = 0; k < step->op->n_keys; k++) {
        const struct pb_key *key = &step->op->keys[k];
        if (!key->makes_bands || key->type == PB_KEY_EXPRESSIONS || step->op->formula == NULL)
            continue;
        const struct pb_items *outputs = pb_op_outputs(step->op, step->params);
        pb_json_object(json, "formulas");
        for (size_t i = 0; i < outputs->n; i++) {
            char formula[PB_STAC_FORMULA_BYTES];
            if (pb_stac_formula_of(step, key, &outputs->items[i], formula))
                pb_json_string(json, pb_item_band(&outputs->items[i]), formula);
        }
        pb_json_end(json);
    }
}

/* Returns true if one of the first n uses is of the step and that band. */
static bool is_among(const struct pb_chain *chain, size_t n, size_t step, const char *band)
{
    struct pb_chain_use use;
    for (size_t i = 0; i < n && pb_chain_use_at(chain, i, &use); i++)
        if (use.step == step && strcmp(use.band, band) == 0)
            return true;
    return false;
}

/* Writes all results of a band, from its first use on: a step may need several reductions of it. */
static void write_band(struct pb_json *json, const struct pb_chain *chain, size_t first,
                       const struct pb_chain_use *of)
{
    struct pb_chain_use use;
    pb_json_object(json, of->band);
    for (size_t i = first; pb_chain_use_at(chain, i, &use); i++) {
        if (use.step != of->step || strcmp(use.band, of->band) != 0)
            continue;
        for (uint32_t k = use.first; k < use.first + use.n; k++) {
            char name[NAME_TEXT];
            pb_reduce_name(&use.reduction->reduce, k, name, sizeof name);
            pb_json_number(json, name, use.reduction->results[k]);
        }
    }
    pb_json_end(json);
}

/* Writes the results of a step's reductions: {"R": {"percentile 2": 412, ...}}. */
static void write_results(struct pb_json *json, const struct pb_chain *chain, size_t step)
{
    struct pb_chain_use use;
    bool any = false;
    for (size_t i = 0; chain != NULL && pb_chain_use_at(chain, i, &use); i++) {
        if (use.step != step || is_among(chain, i, step, use.band))
            continue;
        if (!any)
            pb_json_object(json, "results");
        any = true;
        write_band(json, chain, i, &use);
    }
    if (any)
        pb_json_end(json);
}

static void write_step(struct pb_json *json, const struct pb_product_env *env, size_t number)
{
    const struct pb_step_config *step = &env->pipeline->steps[number];
    pb_json_object(json, NULL);
    pb_json_string(json, "operator", step->op->name);
    write_formulas(json, step);
    write_results(json, env->chain, number);
    pb_json_object(json, "parameters");
    for (size_t k = 0; k < step->op->n_keys; k++) {
        struct pb_key_value room;
        const struct pb_items items = pb_key_items(&step->op->keys[k], step->params, &room);
        if (items.n > 0)
            write_items(json, &step->op->keys[k], &items);
    }
    pb_json_end(json);
    pb_json_end(json);
}

void pb_stac_expression(struct pb_json *json, const struct pb_product_env *env)
{
    const struct pb_input_config *input = &env->pipeline->input;
    char rule[PB_STAC_RULE_BYTES];
    pb_stac_input_rule(input, rule, sizeof rule);
    pb_json_object(json, "processing:expression");
    pb_json_string(json, "format", FORMAT_NAME);
    pb_json_object(json, "expression");
    pb_json_object(json, "input");
    pb_json_string(json, "rule", rule);
    pb_json_number(json, "scale", input->scale);
    pb_json_number(json, "offset", input->offset);
    pb_json_string(json, "source", "input.scale, input.offset");
    if (input->n_bands > 0) {
        pb_json_object(json, "bands");
        for (size_t i = 0; i < input->n_bands; i++)
            pb_json_int(json, input->bands[i].name, input->bands[i].index);
        pb_json_end(json);
    }
    pb_json_end(json);
    pb_json_array(json, "steps");
    for (size_t i = 0; i < env->pipeline->n_steps; i++)
        write_step(json, env, i);
    pb_json_end(json);
    pb_stac_calibration(json, env);
    pb_json_end(json);
    pb_json_end(json);
}

/* --- one band --------------------------------------------------------------------------------- */

static bool step_formula(const struct pb_step_config *step, const char *band,
                         char out[PB_STAC_FORMULA_BYTES])
{
    const struct pb_items *outputs = pb_op_outputs(step->op, step->params);
    struct pb_formula formula;
    for (size_t i = 0; i < outputs->n && step->op->formula; i++)
        if (strcmp(pb_item_band(&outputs->items[i]), band) == 0 &&
            step->op->formula(step->params, &outputs->items[i], &formula)) {
            pb_stac_formula_text(&formula, out);
            return true;
        }
    return false;
}

static bool is_input(const struct pb_product_env *env, const char *band)
{
    const struct pb_input_config *input = &env->pipeline->input;
    for (size_t i = 0; i < input->n_bands; i++)
        if (strcmp(input->bands[i].name, band) == 0)
            return true;
    if (input->n_bands > 0 || band[0] != 'B')
        return false;
    char *end;
    long number = strtol(band + 1, &end, 10);
    return end != band + 1 && *end == '\0' && number >= 1 && number <= env->info->n_bands;
}

void pb_stac_band_expression(struct pb_json *json, const struct pb_product_env *env,
                             const char *band)
{
    char rule[PB_STAC_RULE_BYTES], formula[PB_STAC_FORMULA_BYTES];
    const char *expression = NULL;
    for (size_t i = env->pipeline->n_steps; i-- > 0 && expression == NULL;) {
        const struct pb_step_config *step = &env->pipeline->steps[i];
        if (step_formula(step, band, formula))
            expression = formula;
        else if (pb_op_makes(step->op, step->params, band))
            return; /* one formula does not describe it; the item's expression does */
    }
    if (expression == NULL && !is_input(env, band))
        return;
    if (expression == NULL) {
        pb_stac_input_rule(&env->pipeline->input, rule, sizeof rule);
        expression = rule + strlen("value = ");
    }
    pb_json_object(json, "processing:expression");
    pb_json_string(json, "format", FORMAT_NAME);
    pb_json_string(json, "expression", expression);
    pb_json_end(json);
}
