/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SCENE_INPUTS_H
#define PB_SCENE_INPUTS_H
/* The files that a run reads, for their checksums: those of the scene, its metadata, and those of
 * input.sources that belong to the scene. A source whose path is the same for every scene (an
 * elevation model) is not read for a checksum. One thread. */
#include "config/config.h"
#include "pipeline/raster/input_sum.h"
#include "pipeline/scene/scene_files.h"

struct pb_sidecars;

struct pb_scene_inputs {
    const struct pb_config *config;
    const struct pb_pipeline_config *pipeline;
    const char *scene;                        /* its name, for {scene} */
    const struct pb_scene_files *files;       /* of a scene of many files; NULL: it is `file` */
    const struct pb_raster_file *file;        /* open */
    const struct pb_metadata_files *metadata; /* beside `file`; NULL = none */
    const struct pb_sidecars *sidecars;       /* beside `file`; NULL = none; `files` has its own */
};

/* The checksum of the input, of the kind that the pipeline has (output.checksum), which that of the
 * metadata beside a single file and those of sources do not change, and with it those of all files.
 * What is in `inputs` is borrowed for the call. */
int pb_scene_inputs_sum(const struct pb_scene_inputs *inputs, struct pb_err *err,
                        struct pb_input_sum **out_sum);
#endif
