/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_JOINED_H
#define PB_JOINED_H
/* Loose files that join a scene which was processed before (input.complete.reopen): their job uses
 * them and the files of the set's earlier jobs, read from the archive. The service sends the list
 * with the job, as the member `joined` of the command. It contains all files of the scene, so that
 * products are never rebuilt from fewer files, and the checksums of the input files of the
 * existing products, so that files which were used already start no run. */
#include "config/base/json_reader.h"
#include "pipeline/scene/scene_files.h"
#include "service/jobs/set_parts.h"
#include "service/worker/duplicates.h"

struct pb_input_sum;

/* --- in the service; these read files and the store, on libuv's pool --- */

/* Sets job->joined: NULL if it joins no scene. Returns 0, or *err: the job must not start. */
int pb_joined_describe(struct pb_job_store *store, struct pb_job *job, struct pb_err *err);
/* Does the same as pb_duplicates_judge for a job of a set. */
enum pb_duplicates_verdict pb_joined_judge(struct pb_job_store *store, struct pb_job *job);

/* --- in the worker --- */

/* Opens a scene of loose files in a folder of their own, together with the files that it joins,
 * like pb_scene_files_open_joined. joined: member of the command. */
int pb_joined_open(const struct pb_json_value *joined, const struct pb_pipeline_config *pipeline,
                   const char *folder, const char *scene, struct pb_err *err,
                   struct pb_scene_files *out);
/* Compares like pb_duplicates_compare. joined: member of the command; NULL if it joins no scene. */
int pb_joined_compare(const struct pb_json_value *joined, struct pb_input_sum *sum,
                      struct pb_err *err);
#endif
