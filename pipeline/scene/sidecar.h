/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SIDECAR_H
#define PB_SIDECAR_H
/* Files with the product's metadata for a scene that is one file: those in its directory that
 * match input.metadata; of several for one pattern, the one whose name begins like the scene's
 * (pb_metadata_is_of). One thread. */
#include "pipeline/scene/metadata_files.h"

struct pb_pipeline_config;

/* Finds and opens one file for each pattern. input: path of the scene's file. scene: its name,
 * for {scene}. reader: see scene_walk.h. input.metadata_missing names the pattern and the
 * directory; input.ambiguous: two files match; input.link: it is a symbolic link. *out needs
 * close (pb_metadata_files_close) in any case. */
int pb_sidecar_open(const struct pb_pipeline_config *pipeline, const char *input, const char *scene,
                    int64_t reader, struct pb_metadata_files *out, struct pb_err *err);
/* Opens the metadata of one of several loose files before their scene is known: those in its
 * directory, which may be absent (pb_sidecar_is_own). As above. */
int pb_sidecar_open_own(const struct pb_pipeline_config *pipeline, const char *input,
                        int64_t reader, struct pb_metadata_files *out, struct pb_err *err);
/* Return true if the file of that name is metadata of any file; or of `input`, in the same
 * folder. */
bool pb_sidecar_is_metadata(const struct pb_pipeline_config *pipeline, const char *name);
bool pb_sidecar_is_own(const struct pb_pipeline_config *pipeline, const char *input,
                       const char *name);
/* Writes the path of the main file if `folder` is a folder named after a file that is archived
 * with its sidecars (PATH_MAX bytes); else returns false. */
bool pb_sidecar_main(const char *folder, char *out);
#endif
