/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_JOB_START_H
#define PB_JOB_START_H
/* Starts a job: from the queue to a worker. Thread: loop. */
#include "service/runner/job_end.h"
#include "service/runner/worker_pool.h"

struct pb_job_starts {
    const struct pb_runner_env *env; /* borrowed, like all of these */
    struct pb_worker_pool *pool;
    struct pb_pending_list *pending;
    struct pb_faults *faults;
    struct pb_job_ends *ends;
};

/* Runs a job that was taken with that configuration, in the slot that is reserved for it. Takes its
 * memory. A job that cannot run at all fails. A job with scenes, which are over, ends. */
void pb_job_start(struct pb_job_starts *starts, struct pb_pool_slot *slot, struct pb_taken *taken,
                  const struct pb_config *config);
/* Starts a worker in a slot without one: before a job is taken, which would have to be put back,
 * and again before it runs, because its worker may have ended meanwhile. */
int pb_job_start_worker(struct pb_pool_slot *slot, struct pb_err *err);
/* Sets the pipeline of a job without one, or whose own is gone: another that takes the file as an
 * input by itself. If none does, taken->unmatched may have the reason. Thread: pool. */
void pb_job_start_match(const struct pb_config *config, struct pb_taken *taken);
/* Returns true if the configuration has the pipeline of the job or, for a job without one, a
 * pipeline that takes its name. Thread: any. */
bool pb_job_start_knows(const struct pb_config *config, const struct pb_job *job);
/* Distance of the pipeline's priority from the highest of the configuration. A job whose pipeline
 * does not follow from names is among the last: it is found at the start, or the job fails. */
int64_t pb_job_start_rank(const struct pb_config *config, const struct pb_job *job);
#endif
