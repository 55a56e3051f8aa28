/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/product/stac_processing.h"

#include "config/base/number.h"
#include "kernels/index/index_table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FORMAT_NAME "pushbroom"

enum { FORMULA_TEXT = 2048, RULE_TEXT = 160 };

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
}

/* --- the steps -------------------------------------------------------------------------------- */

static bool is_index(const struct pb_step_config *step)
{
    return strcmp(step->op->name, "index") == 0;
}

/* The value an index step uses for a constant; false when the name is not one or has no value. */
static bool constant_of(const struct pb_step_config *step, const char *name, double *out_value)
{
    const struct pb_index_constant *constant = pb_index_constant_find(name);
    if (constant == NULL)
        return false;
    const struct pb_arg *given = pb_op_argument(step->op, &step->args, "constants");
    for (size_t i = 0; given && i < given->n; i++) {
        const struct pb_arg_item *item = &given->items[i];
        if (item->key != NULL && strcmp(item->key, name) == 0) {
            *out_value = item->num;
            return true;
        }
    }
    *out_value = constant->value;
    return constant->has_default;
}

/* "g * (N - R) / (N + L) with g = 2.5, L = 1" */
static void index_formula(const struct pb_step_config *step, const struct pb_index *index,
                          char out[FORMULA_TEXT])
{
    size_t used = (size_t)snprintf(out, FORMULA_TEXT, "%s", index->formula);
    const char *separator = " with ";
    for (const char *at = index->bands; *at != '\0' && used < FORMULA_TEXT;) {
        char name[64], number[PB_NUMBER_TEXT];
        double value;
        size_t length = strcspn(at, " ");
        (void)snprintf(name, sizeof name, "%.*s", (int)length, at);
        at += length;
        at += strspn(at, " ");
        if (!constant_of(step, name, &value))
            continue;
        number_text(value, number);
        used +=
            (size_t)snprintf(out + used, FORMULA_TEXT - used, "%s%s = %s", separator, name, number);
        separator = ", ";
    }
}

/* The formula an item of a parameter gives to a band; false = none. */
static bool formula_of(const struct pb_step_config *step, const struct pb_param *param,
                       const struct pb_arg_item *item, char out[FORMULA_TEXT])
{
    if (!param->makes_bands)
        return false;
    if (param->type == PB_PARAM_EXPRS) {
        (void)snprintf(out, FORMULA_TEXT, "%s", item->text);
        return true;
    }
    const struct pb_index *index = is_index(step) ? pb_index_find(item->text) : NULL;
    if (index != NULL)
        index_formula(step, index, out);
    return index != NULL;
}

/* How one value of a parameter is written. */
static void value_text(const struct pb_param *param, const struct pb_arg_item *item,
                       char out[PB_NUMBER_TEXT], const char **out_text)
{
    switch (param->type) {
    case PB_PARAM_NUMBER:
    case PB_PARAM_INT:
    case PB_PARAM_NUMBERS:
    case PB_PARAM_WEIGHTS:
        number_text(item->num, out);
        *out_text = out;
        break;
    default:
        *out_text = item->text ? item->text : "";
    }
}

static void say_step(FILE *text, const struct pb_step_config *step)
{
    bool first = true;
    (void)fprintf(text, " Step %s:", step->op->name);
    for (size_t p = 0; p < step->op->n_params; p++) {
        const struct pb_param *param = &step->op->params[p];
        for (size_t i = 0; i < step->args.arg[p].n; i++) {
            const struct pb_arg_item *item = &step->args.arg[p].items[i];
            char formula[FORMULA_TEXT], number[PB_NUMBER_TEXT];
            const char *value;
            value_text(param, item, number, &value);
            (void)fprintf(text, "%s ", first ? "" : ",");
            first = false;
            if (formula_of(step, param, item, formula))
                (void)fprintf(text, "%s = %s", pb_item_band(item), formula);
            else if (item->key != NULL)
                (void)fprintf(text, "%s.%s = %s", param->name, item->key, value);
            else
                (void)fprintf(text, "%s = %s", param->name, value);
        }
    }
    (void)fprintf(text, ".");
}

char *pb_stac_lineage(const struct pb_product_env *env)
{
    char *lineage = NULL;
    size_t bytes = 0;
    FILE *text = open_memstream(&lineage, &bytes);
    if (text == NULL)
        return NULL;
    const char *slash = strrchr(env->input, '/');
    (void)fprintf(text, "Made from %s by pipeline %s of pushbroom " PB_VERSION " on %s. ",
                  slash ? slash + 1 : env->input, env->pipeline->name,
                  env->device ? env->device : "cpu");
    say_input(text, env);
    for (size_t i = 0; i < env->pipeline->n_steps; i++)
        say_step(text, &env->pipeline->steps[i]);
    bool failed = ferror(text) != 0;
    if (fclose(text) != 0 || failed) {
        free(lineage);
        return NULL;
    }
    return lineage;
}

/* --- the same as data ------------------------------------------------------------------------- */

static void write_value(struct pb_json *json, const struct pb_param *param,
                        const struct pb_arg_item *item, const char *key)
{
    switch (param->type) {
    case PB_PARAM_NUMBER:
    case PB_PARAM_NUMBERS:
    case PB_PARAM_WEIGHTS:
        pb_json_number(json, key, item->num);
        break;
    case PB_PARAM_INT:
        pb_json_int(json, key, (int64_t)item->num);
        break;
    default:
        pb_json_string(json, key, item->text);
    }
}

static void write_param(struct pb_json *json, const struct pb_param *param,
                        const struct pb_arg *arg)
{
    bool list = param->type == PB_PARAM_NAMES || param->type == PB_PARAM_WEIGHTS || arg->n > 1;
    if (arg->items[0].key != NULL) {
        pb_json_object(json, param->name);
        for (size_t i = 0; i < arg->n; i++)
            write_value(json, param, &arg->items[i], pb_item_band(&arg->items[i]));
        pb_json_end(json);
    } else if (list) {
        pb_json_array(json, param->name);
        for (size_t i = 0; i < arg->n; i++)
            write_value(json, param, &arg->items[i], NULL);
        pb_json_end(json);
    } else {
        write_value(json, param, &arg->items[0], param->name);
    }
}

static void write_step(struct pb_json *json, const struct pb_step_config *step)
{
    pb_json_object(json, NULL);
    pb_json_string(json, "operator", step->op->name);
    if (is_index(step)) {
        pb_json_object(json, "formulas");
        for (size_t p = 0; p < step->op->n_params; p++)
            for (size_t i = 0; i < step->args.arg[p].n; i++) {
                const struct pb_arg_item *item = &step->args.arg[p].items[i];
                char formula[FORMULA_TEXT];
                if (formula_of(step, &step->op->params[p], item, formula))
                    pb_json_string(json, pb_item_band(item), formula);
            }
        pb_json_end(json);
    }
    pb_json_object(json, "parameters");
    for (size_t p = 0; p < step->op->n_params; p++)
        if (step->args.arg[p].n > 0)
            write_param(json, &step->op->params[p], &step->args.arg[p]);
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
        write_step(json, &env->pipeline->steps[i]);
    pb_json_end(json);
    pb_json_end(json);
    pb_json_end(json);
}

/* --- one band --------------------------------------------------------------------------------- */

static bool step_formula(const struct pb_step_config *step, const char *band,
                         char out[FORMULA_TEXT])
{
    for (size_t p = 0; p < step->op->n_params; p++)
        for (size_t i = 0; i < step->args.arg[p].n; i++) {
            const struct pb_arg_item *item = &step->args.arg[p].items[i];
            if (formula_of(step, &step->op->params[p], item, out) &&
                strcmp(pb_item_band(item), band) == 0)
                return true;
        }
    return false;
}

/* Whether the step may have changed the band: it works on all, or names it among those it makes. */
static bool may_change(const struct pb_step_config *step, const char *band)
{
    const struct pb_arg *outputs = pb_op_outputs(step->op, &step->args);
    bool found = outputs->n == 0;
    for (size_t i = 0; i < outputs->n && !found; i++)
        found = strcmp(pb_item_band(&outputs->items[i]), band) == 0;
    return found;
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
        else if (may_change(step, band)) /* not told in one formula: the item's record has it */
            return;
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
