/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PLAN_VALUES_H
#define PB_PLAN_VALUES_H
/* Meaning of the pixels of the files: validity, calibration, and bands of more digits than float32.
 */
#include "pipeline/plan/plan.h"

struct pb_input_config;
struct pb_source_config;

enum { PB_PLAN_INPUTS_MAX = PB_BANDS_MAX + PB_SOURCES_MAX };

/* Bands of all sources: the scene's under the configured names, or B1, B2, ... without names; the
 * others' under the names in their part of the configuration. Whole images are added last. */
struct pb_plan_inputs {
    struct pb_chain_input input[PB_PLAN_INPUTS_MAX];
    int32_t number[PB_PLAN_INPUTS_MAX]; /* band number in its file, from 1 */
    char own_name[PB_BANDS_MAX][8];
    size_t n, n_scene; /* bands of all files; bands of the scene's files, which are first */
    uint32_t file[PB_PLAN_INPUTS_MAX];                  /* file of each input: 0 = the scene */
    struct pb_chain_source source[PB_SOURCES_MAX];      /* indexed by window */
    const struct pb_raster_info *first[PB_SOURCES_MAX]; /* facts of the first file in each */
    size_t n_sources;
    uint32_t window[PB_FILES_MAX]; /* the source that a file is a part of */
    size_t n_files;
};

/* Name of the part of the configuration with the keys of a file: "input", "input.files",
 * "input.sources". source NULL: the file with the grid. */
const char *pb_plan_section(const struct pb_input_config *input,
                            const struct pb_source_config *source);

/* Fills plan->valid: the source of the validity of the scene's pixels, and notes on declarations in
 * a file that are not used: an alpha band that is read as data, nodata values that the type cannot
 * hold, declarations that input.valid excludes, an alpha band that is not of uint8. */
void pb_plan_valid(struct pb_plan *plan, const struct pb_plan_request *request);

/* Rules of steps that calibrate, from the scene's metadata, before the chain is compiled. */

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
                      const struct pb_plan_inputs *in, struct pb_err *err);
/* Sets the facts that steps query. plan and pipeline must not change until the chain is compiled.
 */
struct pb_plan_rules {
    const struct pb_plan *plan;
    const struct pb_pipeline_config *pipeline;
};
void pb_plan_calibrate_facts(const struct pb_plan_rules *rules, struct pb_scene_facts *facts);

/* Steps compute in float32, whose 24 bits cannot hold all integers of 32 bits nor all doubles. If a
 * band of such a type is copied unchanged to a product, the digits that float32 loses are kept in
 * separate residual planes (codec/rest.h); in other such bands the pixels that lose digits are
 * counted. */

/* Fills plan->output_bands, tags, kept, wide, n_wide, floats, n_floats, rest, rest_of and n_rest of
 * the last pass, whose chain, names and sources are known. */
int pb_plan_digits(struct pb_plan *plan, const struct pb_plan_request *request,
                   const struct pb_plan_inputs *in, struct pb_err *err);
/* Host memory for the residuals of the tiles in flight. */
uint64_t pb_plan_rest_bytes(const struct pb_plan *plan);
/* Count of tiles that can have residuals at a time. */
uint32_t pb_plan_rest_slots(const struct pb_plan *plan);
/* Count of floats for the residuals of the largest tile. */
size_t pb_plan_rest_px(const struct pb_plan *plan);
#endif
