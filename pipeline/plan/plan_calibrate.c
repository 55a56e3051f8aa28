/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/plan/plan_calibrate.h"

#include "config/pipeline_config.h"
#include "kernels/ops/geometry/crop.h"
#include "kernels/ops/pixel/calibrate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Parameters of a step that calibrates; NULL for any other step. */
static const struct pb_calibrate *calibrate_of(const struct pb_step_config *step)
{
    return step->op == pb_op_find("calibrate") ? step->params : NULL;
}

static int check_sensor(const struct pb_calibrate *step, const struct pb_metadata *facts,
                        struct pb_err *err)
{
    size_t length;
    const char *word = pb_key_choice(PB_CALIBRATE_SENSORS, step->sensor, &length);
    if (step->sensor == 0 ||
        (strlen(facts->family->name) == length && memcmp(word, facts->family->name, length) == 0))
        return 0;
    return pb_fail(err, PB_E_INPUT_METADATA_CONFLICT,
                   "calibrate.sensor is %.*s, but the scene's metadata are of %s", (int)length,
                   word, facts->family->name);
}

static const char *as_of(const struct pb_calibrate *step, const char *band)
{
    for (size_t i = 0; i < step->as.n; i++)
        if (step->as.items[i].key != NULL && strcmp(step->as.items[i].key, band) == 0)
            return step->as.items[i].text;
    return NULL;
}

/* Configured solar irradiance of the band; 0 = not configured. */
static double irradiance_of(const struct pb_calibrate *step, const char *band)
{
    for (size_t i = 0; i < step->irradiance.n; i++)
        if (strcmp(step->irradiance.items[i].key, band) == 0)
            return step->irradiance.items[i].num;
    return 0;
}

/* True if an earlier step has replaced the band with calibrated values. */
static bool is_done(const struct pb_plan *plan, size_t step, const char *band)
{
    for (size_t i = 0; i < plan->work.n_calibrated; i++)
        if (plan->work.calibrated[i].step < step &&
            strcmp(plan->work.calibrated[i].band, band) == 0)
            return true;
    return false;
}

static int add_entry(struct pb_plan *plan, const struct pb_plan_request *request,
                     const struct pb_plan_calibrate_inputs *in, size_t step, size_t entry,
                     int32_t *tables, struct pb_err *err)
{
    const struct pb_calibrate *of = calibrate_of(&request->pipeline->steps[step]);
    const struct pb_item *item = &of->bands.items[entry];
    struct pb_calibrated *out = &plan->work.calibrated[plan->work.n_calibrated];
    const struct pb_meta_band *band = NULL;
    size_t i = 0;
    while (i < in->n && strcmp(in->input[i].name, item->text) != 0)
        i++;
    if (i == in->n || is_done(plan, step, item->text))
        return pb_fail(err, PB_E_PIPELINE_BAND,
                       i == in->n ? "calibrate: '%.60s' is no band of the scene"
                                  : "calibrate: '%.60s' is calibrated by an earlier step already",
                       item->text);
    if (in->input[i].scale != 1 || in->input[i].offset != 0)
        return pb_fail(err, PB_E_CONFIG_VALUE,
                       "calibrate: '%.60s' must have its stored values: leave scale and offset of "
                       "the input out",
                       item->text);
    const struct pb_raster_info *info =
        in->file[i] == 0 ? request->info : request->others[in->file[i] - 1].info;
    const struct pb_calibration_input input = {.name = item->text,
                                               .file = request->file_names[in->file[i]],
                                               .number = in->number[i],
                                               .n_bands = info->n_bands,
                                               .width = info->width,
                                               .height = info->height,
                                               .noise = of->noise == 1,
                                               .irradiance = irradiance_of(of, item->text),
                                               .as = as_of(of, item->text)};
    *out = (struct pb_calibrated){.step = step,
                                  .entry = entry,
                                  .to = (enum pb_quantity)of->to,
                                  .irradiance = input.irradiance};
    int rc = pb_calibration_of(request->metadata, &input, out->to, &out->rule, &band, err);
    if (rc < 0)
        return rc;
    if (out->rule.has_tables) {
        out->rule.area = plan->work.first_table + (*tables)++;
        out->rule.noise = out->rule.noise < 0 ? -1 : plan->work.first_table + (*tables)++;
    }
    (void)snprintf(out->band, sizeof out->band, "%s", pb_item_band(item));
    (void)snprintf(out->of, sizeof out->of, "%s", band->id);
    plan->work.n_calibrated++;
    return 0;
}

int32_t pb_plan_tables(const struct pb_pipeline_config *pipeline)
{
    size_t n = 0;
    for (size_t i = 0; i < pipeline->n_steps; i++) {
        const struct pb_calibrate *step = calibrate_of(&pipeline->steps[i]);
        if (step != NULL && pb_calibrate_is_radar(step))
            n += step->bands.n * (step->noise == 1 ? 2 : 1);
    }
    return n < INT32_MAX ? (int32_t)n : INT32_MAX;
}

int32_t pb_plan_cutlines(const struct pb_pipeline_config *pipeline)
{
    int32_t n = 0;
    for (size_t i = 0; i < pipeline->n_steps; i++)
        n += pipeline->steps[i].op == pb_op_find("crop") && pb_crop_cuts(pipeline->steps[i].params);
    return n;
}

static size_t count_entries(const struct pb_pipeline_config *pipeline)
{
    size_t n = 0;
    for (size_t i = 0; i < pipeline->n_steps; i++)
        if (calibrate_of(&pipeline->steps[i]) != NULL)
            n += calibrate_of(&pipeline->steps[i])->bands.n;
    return n;
}

int pb_plan_calibrate(struct pb_plan *plan, const struct pb_plan_request *request,
                      const struct pb_plan_calibrate_inputs *in, struct pb_err *err)
{
    const struct pb_pipeline_config *pipeline = request->pipeline;
    size_t n = count_entries(pipeline);
    int32_t tables = 0;
    int rc = 0;
    if (n == 0)
        return 0;
    plan->work.calibrated = calloc(n, sizeof *plan->work.calibrated);
    if (plan->work.calibrated == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory while planning");
    if (request->rules != NULL) {
        plan->work.n_calibrated = request->n_rules < n ? request->n_rules : n;
        memcpy(plan->work.calibrated, request->rules,
               plan->work.n_calibrated * sizeof *plan->work.calibrated);
        return 0;
    }
    if (request->metadata == NULL || request->metadata->family == NULL)
        return pb_fail(err, PB_E_INPUT_METADATA_MISSING,
                       "pipeline %s calibrates, and the scene has no metadata", pipeline->name);
    for (size_t s = 0; s < pipeline->n_steps && rc == 0; s++) {
        const struct pb_calibrate *step = calibrate_of(&pipeline->steps[s]);
        rc = step != NULL ? check_sensor(step, request->metadata, err) : 0;
        for (size_t e = 0; step != NULL && e < step->bands.n && rc == 0; e++)
            rc = add_entry(plan, request, in, s, e, &tables, err);
    }
    return rc;
}

static bool find_rule(const void *of, const void *params, size_t entry,
                      struct pb_calibration_rule *out)
{
    const struct pb_plan_rules *rules = of;
    for (size_t i = 0; i < rules->plan->work.n_calibrated; i++) {
        const struct pb_calibrated *c = &rules->plan->work.calibrated[i];
        if (c->entry == entry && c->step < rules->pipeline->n_steps &&
            rules->pipeline->steps[c->step].params == params) {
            *out = c->rule;
            return true;
        }
    }
    return false;
}

void pb_plan_calibrate_facts(const struct pb_plan_rules *rules, struct pb_scene_facts *facts)
{
    facts->calibration = find_rule;
    facts->calibration_of = rules;
}
