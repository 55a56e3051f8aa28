/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SCENE_INPUTS_H
#define PB_SCENE_INPUTS_H
/* Files that a run reads, as a manifest with their checksums: those of the scene, its metadata, and
 * those of input.sources that belong to the scene. A source whose path is the same for every scene
 * (an elevation model) is not listed. One thread. */
#include "pipeline/raster/input_sum.h"
#include "pipeline/scene/manifest.h"
#include "pipeline/scene/scene.h"

struct pb_config;
struct pb_pipeline_config;

struct pb_scene_inputs {
    const struct pb_config *config;
    const struct pb_pipeline_config *pipeline;
    const char *name;             /* name of the scene, for {scene} */
    const char *delivered;        /* name of the file, folder or archive as delivered */
    const struct pb_scene *scene; /* open */
};

/* Lists the files, and creates the checksum of the input, of the pipeline's kind (output.checksum),
 * and of all files; metadata next to a single file and sources do not change the input's checksum.
 * out_files: an entry for each file of the sum, in its order, then the folder that has them, unless
 * they are loose. out_sum: NULL = the files are only listed. `inputs` is borrowed for the call. On
 * failure nothing is created. */
int pb_scene_inputs_sum(const struct pb_scene_inputs *inputs, struct pb_err *err,
                        struct pb_scene_manifest *out_files, struct pb_input_sum **out_sum);
/* Sets sizes and checksums of the files as far as the sum has computed that kind; the others get no
 * checksum. 0 or -ENOMEM. */
int pb_scene_inputs_know(const struct pb_input_sum *sum, enum pb_checksum kind,
                         struct pb_scene_manifest *files);
#endif
