/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SCENE_INPUTS_H
#define PB_SCENE_INPUTS_H
/* Files that a run reads, for their checksums: those of the scene, its metadata, and those of
 * input.sources that belong to the scene. A source whose path is the same for every scene (an
 * elevation model) is not read for a checksum. One thread. */
#include "pipeline/raster/input_sum.h"
#include "pipeline/scene/scene.h"

struct pb_config;
struct pb_pipeline_config;

struct pb_scene_inputs {
    const struct pb_config *config;
    const struct pb_pipeline_config *pipeline;
    const char *name;             /* name of the scene, for {scene} */
    const struct pb_scene *scene; /* open */
};

/* Creates the checksum of the input, of the pipeline's kind (output.checksum), and of all files;
 * metadata next to a single file and sources do not change the input's checksum. `inputs` is
 * borrowed for the call. */
int pb_scene_inputs_sum(const struct pb_scene_inputs *inputs, struct pb_err *err,
                        struct pb_input_sum **out_sum);
#endif
