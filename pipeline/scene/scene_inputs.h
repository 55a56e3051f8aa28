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

#include <sys/stat.h>

struct pb_config;
struct pb_pipeline_config;

struct pb_scene_inputs {
    const struct pb_config *config;
    const struct pb_pipeline_config *pipeline;
    const char *name;             /* name of the scene, for {scene} */
    const char *delivered;        /* name of the file, folder or archive as delivered */
    const struct pb_scene *scene; /* open */
    /* Files whose checksums are known, each for the state of the file that the entry has; the
     * checksum of a file in this state is not computed again. NULL = none. */
    const struct pb_scene_manifest *known;
};

/* Lists the files, and creates the checksum of the input, of the pipeline's kind (output.checksum),
 * and of all files; metadata next to a single file and sources do not change the input's checksum.
 * out_files: an entry for each file of the sum, in its order, then the folder that has them, unless
 * they are loose. out_sum: NULL = the files are only listed. `inputs` is borrowed for the call. On
 * failure nothing is created. */
int pb_scene_inputs_sum(const struct pb_scene_inputs *inputs, struct pb_err *err,
                        struct pb_scene_manifest *out_files, struct pb_input_sum **out_sum);
/* Sets the state of a file: its size, inode and times. */
void pb_scene_inputs_state(const struct stat *st, struct pb_manifest_entry *out);
/* Sets sizes and checksums of the files as far as the sum has computed that kind; the others get no
 * checksum. 0 or -ENOMEM. */
int pb_scene_inputs_know(const struct pb_input_sum *sum, enum pb_checksum kind,
                         struct pb_scene_manifest *files);
#endif
