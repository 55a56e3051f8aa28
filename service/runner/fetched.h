/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_FETCHED_H
#define PB_FETCHED_H
/* Copies of files of other nodes: <work>/.fetched/<job>.<epoch> has the input and the products of
 * a run whose home is another node (service/worker/away.h). The worker makes it; the service
 * removes it when the end of the run is stored, and at its start. Nothing else is removed. Thread:
 * any. */
#include "service/base/files.h"
#include "service/jobs/nodes.h"
#include "service/runner/runner_env.h"

/* Writes the directory of the job's run. */
void pb_fetched_room(const char *work, const struct pb_job *job, char out[PB_FILES_PATH_BYTES]);
/* Writes its directory of products. */
void pb_fetched_products(const char *work, const struct pb_job *job, char out[PB_FILES_PATH_BYTES]);
/* Finds the node from which a run here would fetch the input of a waiting job; borrowed. NULL: the
 * input is here. Thread: loop. */
const struct pb_node *pb_fetched_home(const struct pb_runner_env *env, const struct pb_job *job);
/* Sets job->home and home_products for a run that begins. home: result of pb_fetched_home, also
 * NULL. Returns 0 or -ENOMEM. */
int pb_fetched_begin(struct pb_job *job, const struct pb_node *home);
/* Checks a job that joins a scene (joined.h): returns 1 and sets job->error if files of the scene's
 * earlier jobs are on another node than its input; 0; negative and *err: the store failed. */
int pb_fetched_check_parts(struct pb_job_store *store, struct pb_job *job, struct pb_err *err);
/* Removes the directories of the job's runs up to its epoch. */
void pb_fetched_remove(const char *work, const struct pb_job *job);
/* Removes those of all jobs, none of which runs. */
void pb_fetched_sweep(const char *work);
#endif
