/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/product/stac_processing.h"
#include "config/base/base_name.h"
#include "pipeline/product/stac_facts.h"

#include "config/base/number.h"
#include "kernels/chain/chain.h"
#include "pipeline/metadata/calibration.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FORMAT_NAME "pushbroom"

enum { FORMULA_TEXT = 2048, RULE_TEXT = 160, NAME_TEXT = 40 };

/* --- the input rule --------------------------------------------------------------------------- */

/* pb_number_text is for finite numbers; a nodata value may be NaN. */
static void number_text(double value, char out[PB_NUMBER_TEXT])
{
    if (isfinite(value))
        (void)pb_number_text(value, out);
    else
        (void)snprintf(out, PB_NUMBER_TEXT, "%s",
                       isnan(value) ? "NaN"
                       : value < 0  ? "-inf"
                                    : "inf");
}

static void input_rule(const struct pb_input_config *input, char *out, size_t bytes)
{
    char scale[PB_NUMBER_TEXT], offset[PB_NUMBER_TEXT];
    number_text(input->scale, scale);
    number_text(fabs(input->offset), offset);
    if (input->scale == 1 && input->offset == 0)
        (void)snprintf(out, bytes, "value = DN");
    else
        (void)snprintf(out, bytes, "value = DN * %s %c %s", scale, input->offset < 0 ? '-' : '+',
                       offset);
}

static bool is_tagged(const struct pb_raster_band *band)
{
    return band->scale != 1 || band->offset != 0;
}

static bool same_number(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

/* Every band of info has the nodata of the first. */
static bool same_nodata(const struct pb_raster_info *info)
{
    for (int32_t i = 1; i < info->n_bands; i++)
        if (info->band[i].has_nodata != info->band[0].has_nodata ||
            (info->band[i].has_nodata && !same_number(info->band[i].nodata, info->band[0].nodata)))
            return false;
    return true;
}

static void say_input(FILE *text, const struct pb_product_env *env)
{
    const struct pb_input_config *input = &env->pipeline->input;
    const struct pb_raster_info *info = env->info;
    char rule[RULE_TEXT], number[PB_NUMBER_TEXT], tag_offset[PB_NUMBER_TEXT];
    input_rule(input, rule, sizeof rule);
    (void)fprintf(text, "Input: %s (input.scale, input.offset of pipeline %s).", rule,
                  env->pipeline->name);
    for (int32_t i = 0; i < info->n_bands; i++)
        if (is_tagged(&info->band[i])) {
            number_text(info->band[i].scale, number);
            number_text(info->band[i].offset, tag_offset);
            (void)fprintf(text,
                          " The file's own scale and offset tags (%s, %s on band %d) were not "
                          "applied.",
                          number, tag_offset, i + 1);
            break;
        }
    if (input->has_nodata) {
        number_text(input->nodata, number);
        (void)fprintf(text, " Invalid: DN = %s (input.nodata)", number);
    } else if (!same_nodata(info)) {
        (void)fprintf(text, " Invalid: DN = the nodata value of its band in the file");
    } else if (info->band[0].has_nodata) {
        number_text(info->band[0].nodata, number);
        (void)fprintf(text, " Invalid: DN = %s (nodata of the file)", number);
    } else {
        (void)fprintf(text, " No nodata value");
    }
    (void)fprintf(text, "%s.", info->has_mask ? "; pixels masked in the file" : "");
    if (info->not_looked_at != NULL)
        (void)fprintf(text, " The file has %s as well, which input.valid leaves out of account.",
                      info->not_looked_at + strlen("its "));
    for (size_t i = 0; i < input->n_sources; i++)
        (void)fprintf(text, " Source %s: %s.", input->sources[i].name, input->sources[i].file);
}

/* --- the steps -------------------------------------------------------------------------------- */

/* "g * (N - R) / (N + L) with g = 2.5, L = 1" */
static void formula_text(const struct pb_formula *formula, char out[FORMULA_TEXT])
{
    size_t used = (size_t)snprintf(out, FORMULA_TEXT, "%s", formula->text);
    for (size_t i = 0; i < formula->n_constants && used < FORMULA_TEXT; i++) {
        char number[PB_NUMBER_TEXT];
        number_text(formula->constant[i].value, number);
        used += (size_t)snprintf(out + used, FORMULA_TEXT - used, "%s%s = %s", i ? ", " : " with ",
                                 formula->constant[i].name, number);
    }
}

/* The formula of the band that an entry of a key makes; false = none. */
static bool formula_of(const struct pb_step_config *step, const struct pb_key *key,
                       const struct pb_item *item, char out[FORMULA_TEXT])
{
    struct pb_formula formula;
    if (!key->makes_bands || step->op->formula == NULL ||
        !step->op->formula(step->params, item, &formula))
        return false;
    formula_text(&formula, out);
    return true;
}

/* How one value of a key is written. */
static void value_text(const struct pb_key *key, const struct pb_item *item,
                       char out[PB_NUMBER_TEXT], const char **out_text)
{
    *out_text = item->text ? item->text : "";
    if (pb_key_is_number(key->type)) {
        number_text(item->num, out);
        *out_text = out;
    }
}

/* " (R: percentile 2 = 412, percentile 98 = 2980)" for each band that the step reduced. */
static void say_results(FILE *text, const struct pb_chain *chain, size_t step)
{
    struct pb_chain_use use;
    for (size_t i = 0; chain != NULL && pb_chain_use_at(chain, i, &use); i++) {
        const struct pb_chain_reduction *r = use.reduction;
        for (uint32_t k = 0; k < use.n && use.step == step; k++) {
            char name[NAME_TEXT], number[PB_NUMBER_TEXT];
            pb_reduce_name(&r->reduce, use.first + k, name, sizeof name);
            number_text(r->results[use.first + k], number);
            (void)fprintf(text, "%s%s%s %s = %s", k ? "," : " (", k ? "" : use.band, k ? "" : ":",
                          name, number);
        }
        if (use.step == step)
            (void)fprintf(text, ")");
    }
}

/* "; R = DN * 2e-05 - 0.1 of band 4; by the metadata: (DN * ...) / sin(...)" */
static void say_calibration(FILE *text, const struct pb_product_env *env, size_t which)
{
    const struct pb_calibrated *last = NULL;
    char formula[256];
    for (size_t i = 0; i < env->n_calibrated; i++)
        if (env->calibrated[i].step == which) {
            last = &env->calibrated[i];
            (void)fprintf(text, "; %s = %s of band %s", last->band,
                          pb_calibration_text(&last->rule, formula, sizeof formula), last->of);
        }
    if (last != NULL)
        (void)fprintf(text, "; by the scene's metadata: %s", env->metadata->rule[last->to]);
}

/* What a key has: "name = value" for each entry, "name = [value, value]" of a list; *first: nothing
 * was said before. */
static void say_items(FILE *text, const struct pb_step_config *step, const struct pb_key *key,
                      const struct pb_items *items, bool *first)
{
    char formula[FORMULA_TEXT], number[PB_NUMBER_TEXT];
    bool list = items->n > 1 && items->items[0].key == NULL &&
                !formula_of(step, key, &items->items[0], formula);
    for (size_t i = 0; i < items->n; i++) {
        const struct pb_item *item = &items->items[i];
        const char *value;
        value_text(key, item, number, &value);
        (void)fprintf(text, "%s ", *first ? "" : ",");
        *first = false;
        if (list)
            (void)fprintf(text, "%s%s%s", i ? "" : key->name, i ? "" : " = [", value);
        else if (formula_of(step, key, item, formula))
            (void)fprintf(text, "%s = %s", pb_item_band(item), formula);
        else
            (void)fprintf(text, "%s%s%s = %s", key->name, item->key ? "." : "",
                          item->key ? item->key : "", value);
    }
    if (list)
        (void)fprintf(text, "]");
}

static void say_step(FILE *text, const struct pb_product_env *env, size_t which)
{
    const struct pb_step_config *step = &env->pipeline->steps[which];
    bool first = true;
    (void)fprintf(text, " Step %s:", step->op->name);
    for (size_t k = 0; k < step->op->n_keys; k++) {
        const struct pb_key *key = &step->op->keys[k];
        struct pb_key_value room;
        const struct pb_items items = pb_key_items(key, step->params, &room);
        say_items(text, step, key, &items, &first);
    }
    say_results(text, env->chain, which);
    say_calibration(text, env, which);
    (void)fprintf(text, ".");
}

char *pb_stac_lineage(const struct pb_product_env *env)
{
    char *lineage = NULL;
    size_t bytes = 0;
    FILE *text = open_memstream(&lineage, &bytes);
    if (text == NULL)
        return NULL;
    (void)fprintf(text, "Made from %s by pipeline %s of pushbroom " PB_VERSION " on %s. ",
                  pb_base_name(env->input), env->pipeline->name, env->device ? env->device : "cpu");
    say_input(text, env);
    for (size_t i = 0; i < env->pipeline->n_steps; i++)
        say_step(text, env, i);
    bool failed = ferror(text) != 0;
    if (fclose(text) != 0 || failed) {
        free(lineage);
        return NULL;
    }
    return lineage;
}

/* --- the same as data ------------------------------------------------------------------------- */

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

static void write_items(struct pb_json *json, const struct pb_key *key,
                        const struct pb_items *items)
{
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

/* Formulas that the parameters do not show. */
static void write_formulas(struct pb_json *json, const struct pb_step_config *step)
{
    for (size_t k = 0; k < step->op->n_keys; k++) {
        const struct pb_key *key = &step->op->keys[k];
        if (!key->makes_bands || key->type == PB_KEY_EXPRESSIONS || step->op->formula == NULL)
            continue;
        const struct pb_items *outputs = pb_op_outputs(step->op, step->params);
        pb_json_object(json, "formulas");
        for (size_t i = 0; i < outputs->n; i++) {
            char formula[FORMULA_TEXT];
            if (formula_of(step, key, &outputs->items[i], formula))
                pb_json_string(json, pb_item_band(&outputs->items[i]), formula);
        }
        pb_json_end(json);
    }
}

/* What a step reduced the image to: {"R": {"percentile 2": 412, ...}}. */
static void write_results(struct pb_json *json, const struct pb_chain *chain, size_t step)
{
    struct pb_chain_use use;
    bool any = false;
    for (size_t i = 0; chain != NULL && pb_chain_use_at(chain, i, &use); i++) {
        if (use.step != step)
            continue;
        if (!any)
            pb_json_object(json, "results");
        any = true;
        pb_json_object(json, use.band);
        for (uint32_t k = use.first; k < use.first + use.n; k++) {
            char name[NAME_TEXT];
            pb_reduce_name(&use.reduction->reduce, k, name, sizeof name);
            pb_json_number(json, name, use.reduction->results[k]);
        }
        pb_json_end(json);
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
    char rule[RULE_TEXT];
    input_rule(input, rule, sizeof rule);
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
                         char out[FORMULA_TEXT])
{
    const struct pb_items *outputs = pb_op_outputs(step->op, step->params);
    struct pb_formula formula;
    for (size_t i = 0; i < outputs->n && step->op->formula; i++)
        if (strcmp(pb_item_band(&outputs->items[i]), band) == 0 &&
            step->op->formula(step->params, &outputs->items[i], &formula)) {
            formula_text(&formula, out);
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
    char rule[RULE_TEXT], formula[FORMULA_TEXT];
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
        input_rule(&env->pipeline->input, rule, sizeof rule);
        expression = rule + strlen("value = ");
    }
    pb_json_object(json, "processing:expression");
    pb_json_string(json, "format", FORMAT_NAME);
    pb_json_string(json, "expression", expression);
    pb_json_end(json);
}
