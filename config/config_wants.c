/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "config/config_parts.h"

#include "config/pipeline_config.h"
#include "config/yaml/yaml_tree.h"
#include "kernels/op.h"
#include "kernels/ops/pixel/calibrate.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* How the input scales a band; false: it is no band of the input. */
static bool scaling_of(const struct pb_input_config *input, const char *band, double *out_scale,
                       double *out_offset)
{
    for (size_t i = 0; i < input->n_bands; i++)
        if (strcmp(input->bands[i].name, band) == 0) {
            *out_scale = input->scale;
            *out_offset = input->offset;
            return true;
        }
    for (size_t i = 0; i < input->n_sources; i++)
        for (size_t b = 0; b < input->sources[i].n_bands; b++)
            if (strcmp(input->sources[i].bands[b].name, band) == 0) {
                *out_scale = input->sources[i].scale;
                *out_offset = input->sources[i].offset;
                return true;
            }
    *out_scale = input->scale; /* B1, B2, ... without names */
    *out_offset = input->offset;
    return input->n_bands == 0;
}

static void check_stored(struct pb_load *load, const struct pb_input_config *input,
                         const struct pb_step_config *step)
{
    const struct pb_items *bands = pb_op_outputs(step->op, step->params);
    for (size_t i = 0; i < bands->n; i++) {
        const struct pb_item *item = &bands->items[i];
        double scale = 1, offset = 0;
        if (!scaling_of(input, item->text, &scale, &offset) || (scale == 1 && offset == 0))
            continue;
        char shift[48] = "";
        if (offset != 0)
            (void)snprintf(shift, sizeof shift, " %c %g", offset < 0 ? '-' : '+', fabs(offset));
        pb_report(
            &load->report, PB_E_CONFIG_VALUE, item->line ? item->line : step->line,
            item->line ? item->col : step->col,
            "%s: '%.60s' must have its stored values, but the input makes it DN * %g%s; leave "
            "scale and offset of the input out",
            step->op->name, item->text, scale, shift);
        return;
    }
}

/* True if the step calibrates by a table for columns, in place of metadata. */
static bool has_table(const struct pb_step_config *step)
{
    return step->op == pb_op_find("calibrate") &&
           ((const struct pb_calibrate *)step->params)->columns != NULL;
}

void pb_check_wants(struct pb_load *load, const struct pb_pipeline_config *pipeline,
                    const struct pb_pipeline_notes *notes)
{
    for (size_t i = 0; i < notes->n_steps; i++) {
        const struct pb_step_note *note = &notes->steps[i];
        if (note->step == PB_STEP_NONE || !note->is_sound)
            continue;
        const struct pb_step_config *step = &pipeline->steps[note->step];
        const bool wants = step->op->wants_metadata && !has_table(step);
        if (wants && pipeline->input.n_metadata == 0)
            pb_report(&load->report, PB_E_CONFIG_VALUE, step->line, step->col,
                      "%s needs the scene's metadata; name their file with input.metadata: "
                      "\"{scene}_MTL.txt\"",
                      step->op->name);
        else if (wants && pipeline->input.metadata_each)
            pb_report(&load->report, PB_E_CONFIG_VALUE, step->line, step->col,
                      "%s needs the metadata of one scene, and with %s each file "
                      "has its own; calibrate the files before",
                      step->op->name,
                      pipeline->input.order == PB_FILES_BY_CLOUD ? "input.order: cloud"
                                                                 : "input.by of metadata");
        if (step->op->wants_stored)
            check_stored(load, &pipeline->input, step);
    }
}
