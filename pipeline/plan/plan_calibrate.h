/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PLAN_CALIBRATE_H
#define PB_PLAN_CALIBRATE_H
/* Rules of steps that calibrate, from the scene's metadata, before the chain is compiled. */
#include "pipeline/plan/plan.h"

/* Bands of the pipeline's files; all borrowed. */
struct pb_plan_calibrate_inputs {
    const struct pb_chain_input *input;
    const int32_t *number; /* band number in its file, from 1 */
    const uint32_t *file;  /* index into request->file_names */
    size_t n;
};

/* Count of the planes of numbers for each pixel that the pipeline's steps need in addition to
 * files: one source of the plan, after those of the files, made from the metadata. 0: no such
 * source. */
int32_t pb_plan_tables(const struct pb_pipeline_config *pipeline);

/* Count of the planes of polygons with which its steps cut: one source of the plan, after that one.
 * 0: no such source. */
int32_t pb_plan_cutlines(const struct pb_pipeline_config *pipeline);

/* Fills plan->calibrated and n_calibrated; uses request->rules if present. On failure the error of
 * pb_calibration_of, or pipeline.band, config.value, input.metadata_conflict. */
int pb_plan_calibrate(struct pb_plan *plan, const struct pb_plan_request *request,
                      const struct pb_plan_calibrate_inputs *in, struct pb_err *err);
/* Sets the facts that steps query. plan and pipeline must not change until the chain is compiled.
 */
struct pb_plan_rules {
    const struct pb_plan *plan;
    const struct pb_pipeline_config *pipeline;
};
void pb_plan_calibrate_facts(const struct pb_plan_rules *rules, struct pb_scene_facts *facts);
#endif
