/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Processing of the values: calibration, validity of pixels, steps. */
#include "config/config.h"
#include "config/pipeline_config.h"
#include "config/units.h"
#include "kernels/nodata.h"
#include "pipeline/explain/explain_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void explain_calibration(const struct pb_run_view *view, struct pb_json *json)
{
    const struct pb_plan *plan = view->plan;
    const struct pb_metadata *facts = &view->metadata->facts;
    if (plan->work.n_calibrated == 0)
        return;
    pb_json_array(json, "calibration");
    for (size_t i = 0; i < plan->work.n_calibrated; i++) {
        const struct pb_calibrated *c = &plan->work.calibrated[i];
        char rule[256], source[256];
        pb_json_object(json, NULL);
        pb_json_string(json, "band", c->band);
        pb_json_string(json, "to", pb_calibrated_quantity(c));
        pb_json_string(json, "of", c->of);
        pb_json_string(json, "formula", pb_calibration_text(c, rule, sizeof rule));
        pb_json_string(json, "rule", pb_calibrated_source(c, facts, source, sizeof source));
        pb_json_end(json);
    }
    pb_json_end(json);
    pb_json_string(json, "calibration_why", facts->boa_offset[0] ? facts->boa_offset : NULL);
}

/* Writes "0 (input.nodata)", or the file's own value; "" = no nodata. */
static void nodata_text(const struct pb_run_view *view, char out[80])
{
    const struct pb_input_config *input = &view->options->pipeline->input;
    const struct pb_raster_info *info = view->env->info;
    char number[PB_UNITS_TEXT];
    out[0] = '\0';
    if (input->has_nodata && !pb_nodata_fits(info->type, input->nodata))
        return; /* a note reports it */
    if (input->has_nodata) {
        (void)snprintf(out, 80, "%s (input.nodata)", pb_units_number_text(input->nodata, number));
        return;
    }
    if (info->complex.has_nodata)
        (void)snprintf(out, 80, "%s + 0i (the file's)",
                       pb_units_number_text(info->complex.nodata, number));
    for (int32_t i = 0; i < info->n_bands && out[0] == '\0'; i++)
        if (info->band[i].has_nodata)
            (void)snprintf(out, 80, "%s (the file's)",
                           pb_units_number_text(info->band[i].nodata, number));
}

static void explain_valid(const struct pb_run_view *view, struct pb_json *json)
{
    const struct pb_plan_valid *valid = &view->plan->work.valid;
    char nodata[80], text[sizeof valid->by + sizeof valid->notes + 100];
    nodata_text(view, nodata);
    (void)snprintf(text, sizeof text, "%s%s%s%s%s", valid->by, nodata[0] ? ": " : "", nodata,
                   valid->notes[0] ? "; " : "", valid->notes);
    pb_json_string(json, "valid", text);
}

/* Writes the configured steps; those that products add are described by the products. */
static void explain_steps(const struct pb_run_view *view, struct pb_json *json)
{
    const struct pb_pipeline_config *pipeline = view->options->pipeline;
    pb_json_array(json, "steps");
    for (size_t i = 0; i < pipeline->n_steps; i++) {
        const struct pb_step_config *step = &pipeline->steps[i];
        char unsaid[300] = "";
        if (step->product != NULL)
            continue;
        if (step->op->unsaid != NULL)
            step->op->unsaid(step->params, unsaid, sizeof unsaid);
        char *text = pb_config_step_text(step);
        pb_json_object(json, NULL);
        pb_json_string(json, "text", text);
        pb_json_string(json, "note", unsaid[0] ? unsaid : NULL);
        pb_json_end(json);
        free(text);
    }
    pb_json_end(json);
}

/* Writes the notes on steps that are known before a pixel is read. */
static void explain_notes(const struct pb_run_view *view, struct pb_json *json)
{
    const struct pb_chain *chain = view->plan->work.chain;
    if (pb_chain_note_count(chain) == 0)
        return;
    pb_json_array(json, "notes");
    for (size_t i = 0; i < pb_chain_note_count(chain); i++)
        pb_json_string(json, NULL, pb_chain_note(chain, i));
    pb_json_end(json);
}

void pb_explain_steps(const struct pb_run_view *view, struct pb_json *json)
{
    explain_calibration(view, json);
    explain_valid(view, json);
    explain_steps(view, json);
    explain_notes(view, json);
}
