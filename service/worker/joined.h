/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_JOINED_H
#define PB_JOINED_H
/* Loose files that join a scene which was processed before (input.complete.reopen): their job uses
 * them and the files of the set's earlier jobs, read from the archive. The service sends a manifest
 * of all files of the scene with the job, so that products are never rebuilt from fewer files, and
 * the member `earlier` of the command:
 *
 *   {"by","jobs","known"}
 *     "by"      the job that combined the files last
 *     "jobs"    ids of the earlier jobs, a space after each
 *     "known"   if the products exist: manifest of the files that they were made of, so that files
 *               which were used already start no run */
#include "config/base/json_reader.h"
#include "service/jobs/set_parts.h"
#include "service/worker/duplicates.h"

/* --- in the service; these read files and the store, on libuv's pool --- */

/* Sets job->joined and job->earlier; both are empty if it joins no scene. Returns 0; 1 and
 * job->error: the job must fail; negative and *err, a fault of the machine: it must not start now.
 */
int pb_joined_describe(struct pb_job_store *store, struct pb_job *job, struct pb_err *err);
/* Does the same as pb_duplicates_judge for a job of a set. */
enum pb_duplicates_verdict pb_joined_judge(struct pb_job_store *store, struct pb_job *job);

/* --- in the worker --- */

/* Compares like pb_duplicates_compare. earlier: member of the command; NULL if it joins no scene.
 */
int pb_joined_compare(const struct pb_json_value *earlier, const struct pb_duplicates_input *input,
                      struct pb_err *err);
#endif
