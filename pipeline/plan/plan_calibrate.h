/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PLAN_CALIBRATE_H
#define PB_PLAN_CALIBRATE_H
/* The rules of steps that calibrate, from the scene's metadata, before the chain is compiled. */
#include "pipeline/plan/plan.h"

/* The bands of the pipeline's files; all borrowed. */
struct pb_plan_calibrate_inputs {
    const struct pb_chain_input *input;
    const int32_t *number; /* in its file, from 1 */
    const uint32_t *file;  /* index into request->file_names */
    size_t n;
};

/* Planes of numbers for each pixel that its steps take besides files: a source of the plan,
 * behind those of the files, that the metadata make. 0: there is none. */
int32_t pb_plan_tables(const struct pb_pipeline_config *pipeline);

/* Planes of polygons that its steps cut with: a source of the plan behind that, if there are any.
 */
int32_t pb_plan_cutlines(const struct pb_pipeline_config *pipeline);

/* Fills plan->calibrated and n_calibrated; takes request->rules when there are any. On failure what
 * pb_calibration_of says, or pipeline.band, config.value, input.metadata_conflict. */
int pb_plan_calibrate(struct pb_plan *plan, const struct pb_plan_request *request,
                      const struct pb_plan_calibrate_inputs *in, struct pb_err *err);
/* Sets what steps ask for. plan and pipeline stay as they are until the chain is compiled. */
struct pb_plan_rules {
    const struct pb_plan *plan;
    const struct pb_pipeline_config *pipeline;
};
void pb_plan_calibrate_facts(const struct pb_plan_rules *rules, struct pb_scene_facts *facts);
#endif
