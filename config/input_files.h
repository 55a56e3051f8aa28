/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_INPUT_FILES_H
#define PB_INPUT_FILES_H
/* What follows from the keys of `input` about the files that a pipeline reads: the file whose grid
 * is the scene's and its bands, and all others. Internal to config/. */
#include "config/schema.h"

struct pb_input_config;
struct pb_pipeline_config;

/* Checks the keys against each other and fills the members of *input that are not keys. node: the
 * section, NULL = not given. */
void pb_input_files_resolve(struct pb_load *load, const struct pb_yaml *owner,
                            const struct pb_yaml *node, struct pb_input_config *input);

struct pb_chain;
/* Marks the files that the pipeline's outputs depend on. chain: the pipeline's, whose inputs are
 * the bands of the file with the grid, then those of the others in order. */
void pb_input_files_mark(struct pb_pipeline_config *pipeline, const struct pb_chain *chain);
#endif
