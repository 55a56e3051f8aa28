/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_OUTCOME_H
#define PB_OUTCOME_H
/* Decides whether a job was successful by the products that a reader of products/ can see: the
 * complete directory with the job's id in its manifest is in place, no matter how its worker ended
 * and what it reported last. Therefore a failure reported after the rename, a worker killed before
 * its last line, a late cancel, a service that dies before it stores the end and an abandoned
 * worker that publishes late have the same result: the job is successful, and it is not run again.
 * All runs of the job so far are fenced first (pipeline/publish/publish_temp.h): after the check
 * none of them can publish. If the disk refuses that, it is logged: a run that has its permit
 * already (runner/pending.h) may publish later. Checked before a job fails, returns to the queue or
 * starts again, while no run of it is wanted. Thread: pool (runner/pending.c). */
#include "service/jobs/job.h"

/* Returns true if the job's products are in place; path: output.path of its pipeline. Then sets
 * their directory and list in the job and clears its error, which is logged as a warning. */
bool pb_outcome_is_published(struct pb_job *job, const char *products, const char *path);
#endif
